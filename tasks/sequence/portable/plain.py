"""Names and weights of label-sequence models as JSON, for programs that decode themselves: `docs/runtime/json.md`."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from structsvm.tasks.sequence.segments import part_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.arrays import Floats
    from structsvm.oracles.chain import LabelChain
    from structsvm.tasks.sequence.model import SequenceModel
    from structsvm.tasks.sequence.phrases import Phrases

VERSION = 1
FIRST = 0  # the place of the first token's tag among those of a type


def json_files(model: SequenceModel) -> dict[str, bytes]:
    """The file of a model, by its name.

    Raises
    ------
    ValueError
        For rows of numbers, named features with numbers, and hashed features, which have no names.
    """
    for holds, what in [
        (model.encoder.kind == "numeric", "rows of numbers"),
        (model.units is not None, "named features with numbers"),
        (model.encoder.hash_bits is not None, "hashed features (hash_bits)"),
    ]:
        if holds:
            raise ValueError(f"a SequenceLabeler with {what} cannot be exported as JSON")
    return {"model.json": json.dumps(contents(model), ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"}


def contents(model: SequenceModel) -> dict[str, object]:
    """The object of the file."""
    encoder, oracle = model.encoder, model.oracle
    K, first = oracle.n_labels, oracle.n_token_features
    rows = model.weights.reshape(oracle.n_rows, oracle.stride)[:, :K]
    words = encoder.words_of_kinds
    found: dict[str, object] = {
        "format": "structsvm sequence weights",
        "version": VERSION,
        "labels": [str(label) for label in model.labels],
        "order": oracle.order,
        "inference": "greedy" if model.is_greedy else "exact",
        "temperature": model.temperature,
        "tokens": {"kind": encoder.kind, "templates": encoder.layout.text if encoder.layout is not None else None},
        "features": by_name(encoder.feature_names, rows[:first], model.labels)
        | by_name([*words], rows[[*words.values()]], model.labels),
        "transitions": numbers(rows[first : first + K]),
        "first": numbers(rows[first + K]),
        "last": numbers(rows[first + K + 1]) if oracle.end else None,
        "allowed": masks(oracle),
    }
    if oracle.order == 2 and not model.is_greedy:
        found["triples"] = numbers(rows[first + K + 2 : oracle.first_bigram_row].reshape(K + 1, K, K))
    if encoder.n_bigrams:
        pairs = rows[oracle.first_bigram_row :].reshape(encoder.n_bigrams, K, K)
        found["pairs"] = dict(zip(encoder.bigram_names, numbers(pairs), strict=True))
    if oracle.language is not None:
        found["automaton"] = {
            "following": oracle.language.following.tolist(),
            "accepting": oracle.language.accepting.tolist(),
        }
    if model.segments is not None:
        found["segments"] = segments_of(model, model.segments.phrases, rows)
    return found


def segments_of(model: SequenceModel, phrases: Phrases, rows: Floats) -> dict[str, object]:
    """Parts of whole segments: weights of lengths and of phrases by type, and how users see tags."""
    oracle = model.oracle
    kinds = [part_of(model.labels[tags[FIRST]]).kind for tags in oracle.tags.tolist()]
    own, at = rows[oracle.first_bigram_row :], 0
    texts: list[dict[str, dict[str, float]]] = [{} for _ in phrases.sources]
    for m, k in product(range(oracle.max_length - 1), range(len(texts))):
        n = len(phrases.keys[k][m])
        texts[k] |= by_name([phrases.name_of(at + i) for i in range(n)], own[at : at + n, : len(kinds)], kinds)
        at += n
    lengths = rows[oracle.first_bigram_row - oracle.max_length - 1 : oracle.first_bigram_row]
    return {
        "max_length": oracle.max_length,
        "shown": [str(label) for label in model.shown],
        "lengths": [dict(zip(kinds, map(number, row), strict=False)) for row in lengths],
        "names": [list(source) for source in phrases.sources],
        "phrases": texts,
    }


def by_name(names: Sequence[str], rows: Floats, labels: Sequence[object]) -> dict[str, dict[str, float]]:
    """Weights that are not 0: by feature, then by label."""
    found: dict[str, dict[str, float]] = {}
    for j, k in zip(*np.nonzero(rows), strict=True):
        found.setdefault(names[j], {})[str(labels[k])] = number(rows[j, k])
    return found


def number(value: np.float32) -> float:
    """The shortest decimal fraction that is this float32."""
    return float(str(value))


def numbers(array: Floats) -> list[object]:
    """Nested lists of such fractions."""
    return [numbers(one) if isinstance(one, np.ndarray) else number(one) for one in array]


def masks(oracle: LabelChain) -> dict[str, object]:
    """The labels that may follow, stand first and stand last; None where all may."""
    names = ("transitions", "first", "last")
    return {name: None if mask is None else mask.tolist() for name, mask in zip(names, oracle.allowed, strict=True)}
