"""Chain whose weights came from another program's file: observations, their rows of weights, and decoding.

Sums run in the order in which Wapiti and CRF++ add, and ties go to the label with the lower index as there,
so labels are identical to theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from structsvm.features.patterns import Pattern

__all__ = ["ChainModel", "ModelFileError", "Weights"]

MOST_LABELS = 4096

Token = Sequence[str]
Floats = NDArray[np.float32] | NDArray[np.float64]


class ModelFileError(ValueError):
    """A model file of another program that cannot be read; the message names file and place."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that are not zero: ``values[k]`` belongs to number ``codes[k]``, ascending.

    An observation whose block starts at ``s`` has its weight of label y at ``s + y``, and its weight of the pair
    (y', y) at ``s + y' * n_labels + y``. Blocks that were looked up are kept in ``rows``.
    """

    codes: NDArray[np.int64]
    values: Floats

    rows: dict[tuple[int, int], tuple[NDArray[np.int64], Floats]] = field(default_factory=dict, repr=False)

    def add_to(self, scores: Floats, start: int) -> None:
        """Add the block that starts at `start` to a flat array of scores."""
        row = self.rows.get((start, scores.size))
        if row is None:
            low, high = np.searchsorted(self.codes, (start, start + scores.size))
            row = self.rows[start, scores.size] = self.codes[low:high] - start, self.values[low:high]
        scores[row[0]] += row[1]


@dataclass(frozen=True, slots=True, eq=False)
class ChainModel:
    """Model read from a Wapiti or CRF++ file.

    Attributes
    ----------
    labels : list of str
    patterns : list of Pattern
        Without any, the tokens themselves are lists of observations.
    states, pairs : dict
        Start of the block of weights per observation, for labels and for pairs of labels.
    weights : Weights
    cost_factor : float
        CRF++'s factor of all scores.
    independent : bool
        Whether each token is a sequence of its own (Wapiti's maximum entropy mode).
    kind : str
        ``"wapiti"`` or ``"crfpp"``.
    """

    labels: list[str]
    patterns: list[Pattern]
    states: dict[bytes, int]
    pairs: dict[bytes, int]
    weights: Weights
    kind: str
    cost_factor: float = 1.0
    independent: bool = False
    n_columns: int = field(init=False)

    def __post_init__(self) -> None:
        columns = max((pattern.n_columns for pattern in self.patterns), default=0)
        object.__setattr__(self, "n_columns", columns)

    def observations(self, sequence: Sequence[Token]) -> list[list[bytes]]:
        """Observations of each token, in the order of the patterns.

        Wapiti's maximum entropy mode puts a "u" before each, and leaves out what ``b`` patterns form.
        """
        tokens = [[string.encode("utf-8", "surrogateescape") for string in token] for token in sequence]
        if not self.patterns:
            return [[b"u" + name for name in token] for token in tokens] if self.independent else tokens
        for t, token in enumerate(tokens):
            if len(token) < self.n_columns:
                raise ValueError(f"token {t} has {len(token)} columns: the model's patterns read {self.n_columns}")
        applied = [pattern.apply(tokens) for pattern in self.patterns]
        found = [list(column) for column in zip(*applied, strict=True)]
        if self.independent:
            return [[b"u" + name for name in names if not name.startswith(b"b")] for names in found]
        return found

    def scores(self, sequence: Sequence[Token]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Scores of labels (T, K), and of neighbouring pairs (K, K) for each token but the first."""
        found = self.observations(sequence)
        K, dtype = len(self.labels), self.weights.values.dtype
        factor = np.float64(self.cost_factor)
        emissions = np.zeros((len(found), K), dtype=dtype)
        transitions = []
        known: dict[tuple[int, ...], NDArray[np.float64]] = {}  # most tokens share one or a few
        for t, names in enumerate(found):
            for name in names:
                if (start := self.states.get(name)) is not None:
                    self.weights.add_to(emissions[t], start)
            if not t:
                continue
            starts = tuple(self.pairs[name] for name in names if name in self.pairs)
            if starts not in known:
                scores = np.zeros(K * K, dtype=dtype)
                for start in starts:
                    self.weights.add_to(scores, start)
                known[starts] = factor * scores.reshape(K, K)
            transitions.append(known[starts])
        return factor * emissions, transitions

    def decode(self, sequence: Sequence[Token]) -> tuple[list[str], float]:
        """Labels of the best path, and its score."""
        if self.independent and len(sequence) > 1:
            parts = [self.decode([token]) for token in sequence]
            return [labels[0] for labels, _ in parts], sum(score for _, score in parts)
        if not len(sequence):
            return [], 0.0
        emissions, transitions = self.scores(sequence)
        best = emissions[0]
        back = []
        for scores, pairs in zip(emissions[1:], transitions, strict=True):
            arcs = self._arcs(best, pairs, scores)
            back.append(arcs.argmax(axis=0))
            best = arcs.max(axis=0)
        path = [int(best.argmax())]
        for pointers in reversed(back):
            path.append(int(pointers[path[-1]]))
        return [self.labels[y] for y in reversed(path)], float(best.max())

    def _arcs(self, best: Floats, pairs: Floats, scores: Floats) -> Floats:
        """Scores of all steps (K, K); the two programs add the three terms in another order."""
        if self.kind == "wapiti":
            return best[:, None] + (pairs + scores)
        return (best[:, None] + pairs) + scores

    def predict(self, X: Iterable[Sequence[Token]]) -> list[list[str]]:
        """Labels of each sequence."""
        return list(self.predict_iter(X))

    def predict_iter(self, X: Iterable[Sequence[Token]]) -> Iterator[list[str]]:
        """Labels of one sequence after the other."""
        return (self.decode(sequence)[0] for sequence in X)

    def predict_marginals(self, X: Iterable[Sequence[Token]]) -> list[NDArray[np.float64]]:
        """Probabilities of the labels of each token: an array (T, K) per sequence."""
        return [self._marginals(sequence) for sequence in X]

    def log_partition(self, sequence: Sequence[Token]) -> float:
        """Logarithm of the sum over all labellings of exp(score)."""
        if self.independent and len(sequence) > 1:
            return sum(self.log_partition([token]) for token in sequence)
        return float(np.logaddexp.reduce(self._forward(*self.scores(sequence))[-1])) if len(sequence) else 0.0

    @staticmethod
    def _forward(emissions: Floats, transitions: list[NDArray[np.float64]]) -> list[Floats]:
        alpha = [emissions[0]]
        for scores, pairs in zip(emissions[1:], transitions, strict=True):
            alpha.append(np.logaddexp.reduce(alpha[-1][:, None] + pairs, axis=0) + scores)
        return alpha

    def _marginals(self, sequence: Sequence[Token]) -> NDArray[np.float64]:
        if self.independent and len(sequence) > 1:
            return np.concatenate([self._marginals([token]) for token in sequence])
        if not len(sequence):
            return np.zeros((0, len(self.labels)))
        emissions, transitions = self.scores(sequence)
        alpha = np.array(self._forward(emissions, transitions))
        beta = [np.zeros(len(self.labels))]
        for scores, pairs in zip(emissions[:0:-1], transitions[::-1], strict=True):
            beta.append(np.logaddexp.reduce(pairs + (scores + beta[-1]), axis=1))
        log = alpha + np.array(beta[::-1])
        return np.exp(log - np.logaddexp.reduce(log, axis=1, keepdims=True))

    def score(self, sequence: Sequence[Token], labels: Sequence[str]) -> float:
        """Score of a labelling."""
        if self.independent and len(sequence) > 1:
            return sum(self.score([token], [label]) for token, label in zip(sequence, labels, strict=True))
        emissions, transitions = self.scores(sequence)
        path = [self.labels.index(label) for label in labels]
        steps = sum(pairs[a, b] for pairs, (a, b) in zip(transitions, pairwise(path), strict=True))
        return float(emissions[np.arange(len(path)), path].sum() + steps)
