"""Sequences of a CRFsuite trainer as a problem of chains: tokens, labels, and which weights there may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.features.tokens import Tokens
from structsvm.interop.crfsuite_parameters import Value
from structsvm.oracles.viterbi import ViterbiOracle

if TYPE_CHECKING:
    from structsvm.interop.pycrfsuite.trainer import Instances

Held: TypeAlias = tuple[Tokens, NDArray[np.int32]]


class PossibleWeights(ViterbiOracle):
    """Chains some of whose weights stay 0, by a mask."""

    mask: NDArray[np.bool_]

    def possible(self, tokens: Tokens, labels: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        return self.mask


class Problem(NamedTuple):
    """Encoded sequences, their labels, the oracle, and the weights that there may be (bool, as the oracle's)."""

    tokens: Tokens
    labels: NDArray[np.int32]
    oracle: ViterbiOracle
    possible: NDArray[np.bool_]


def problem_of(data: Instances, chosen: NDArray[np.bool_], values: dict[str, Value]) -> tuple[Problem, Held | None]:
    """The problem of the chosen sequences, and the others' tokens with their labels (None: there are no others)."""
    ends, token_ends = np.array(data.ends, dtype=np.int64), np.array(data.token_ends, dtype=np.int64)
    numbers, amounts = np.array(data.numbers, dtype=np.int32), np.array(data.values, dtype=np.float64)
    of_token = np.repeat(np.arange(len(token_ends) - 1), np.diff(token_ends))
    order = np.lexsort((numbers, of_token))
    n, K = max(len(data.attributes), 1), len(data.labels)
    tokens = Tokens(ends, token_ends, numbers[order], amounts[order].astype(np.float32), n)
    labels = np.array(data.label_ids, dtype=np.int32)
    train = _chosen(tokens, labels, chosen)
    oracle = PossibleWeights(K, n, loss="log")
    possible = np.zeros((oracle.n_rows, oracle.stride), dtype=bool)
    possible[:n, :K], possible[n : n + K, :K] = _possible(*train, K, values)
    held = None if chosen.all() else _chosen(tokens, labels, ~chosen)
    oracle.mask = possible.ravel()
    return Problem(*train, oracle, oracle.mask), held


def _chosen(tokens: Tokens, labels: NDArray[np.int32], chosen: NDArray[np.bool_]) -> tuple[Tokens, NDArray[np.int32]]:
    chosen = chosen & (tokens.lengths > 0)
    return tokens.take(chosen), labels[np.repeat(chosen, tokens.lengths)]


def _possible(
    tokens: Tokens, labels: NDArray[np.int32], K: int, values: dict[str, Value]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Attributes with labels, and pairs of labels, that may have weights."""
    states = labels[np.repeat(np.arange(tokens.n_tokens), np.diff(tokens.indptr))] + K * tokens.indices.astype(np.int64)
    within = np.ones(max(tokens.n_tokens - 1, 0), dtype=bool)
    within[tokens.offsets[1:-1] - 1] = False
    pairs = (labels[:-1].astype(np.int64) * K + labels[1:])[within]
    found = []
    for codes, amounts, name, size in (
        (states, tokens.values, "states", tokens.n_features * K),
        (pairs, np.ones(len(pairs)), "transitions", K * K),
    ):
        seen = np.bincount(codes, minlength=size) > 0
        sums = np.bincount(codes, amounts, minlength=size)
        found.append(
            ((seen | bool(values[f"feature.possible_{name}"])) & (sums >= float(values["feature.minfreq"]))).reshape(
                -1, K
            )
        )
    return found[0], found[1]


def by_sequence(labels: NDArray[np.integer[Any]], tokens: Tokens) -> list[list[int]]:
    """Flat labels as a list per sequence."""
    return [part.tolist() for part in np.split(labels, tokens.offsets[1:-1])]
