"""Chain whose weights stand in another program's file: names of features, their weights, and what forms the names.

Labels, scores and sums come from `structsvm.export.Tagger`, in float64; ties go to the label with the lower index, as
in Wapiti, CRF++ and CRFsuite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.export import Tagger
from structsvm.model_file import ModelFileError

if TYPE_CHECKING:
    from structsvm.arrays import Integers
    from structsvm.features.functions.patterns import Pattern

__all__ = ["ChainModel", "ModelFileError", "Weights"]

MOST_LABELS = 4096
PROGRAMS = {"wapiti": "Wapiti", "crfpp": "CRF++", "crfsuite": "CRFsuite"}

Token: TypeAlias = object  # columns for patterns, else attributes or a dict of features
Ranked: TypeAlias = list[tuple[list[str], float]]


def named_content(source: str | os.PathLike[str] | bytes) -> tuple[str, bytes]:
    """Name of a file and what it contains; bytes are the content of one without a name."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "model", bytes(source)
    return os.fspath(source), Path(source).read_bytes()


class Weights(NamedTuple):
    """Sparse rows of weights: row r has ``targets[starts[r]:starts[r + 1]]``, with the weights at the same places.

    Targets are labels; of pairs of labels (i, j), i before j, they are ``i * n_labels + j``.
    """

    starts: NDArray[np.int64]
    targets: NDArray[np.int32]
    weights: NDArray[np.float64]

    @classmethod
    def of_entries(cls, rows: Integers, targets: Integers, weights: NDArray[np.float64], n_rows: int) -> Self:
        """From weights whose rows ascend; zeros are left out."""
        kept = weights != 0.0
        starts = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[kept], minlength=n_rows), out=starts[1:])
        return cls(starts, targets[kept].astype(np.int32), weights[kept].astype(np.float64))

    @classmethod
    def of_blocks(
        cls, blocks: NDArray[np.int64], size: int, codes: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> Self:
        """From weights by number, ascending: row r has the numbers ``blocks[r]`` to ``blocks[r] + size - 1``.

        Blocks ascend as far as they are not -1, which is a row without weights.
        """
        filled = np.flatnonzero(blocks >= 0)
        place = np.searchsorted(blocks[filled], codes, side="right") - 1
        within = place >= 0
        offsets = codes[within] - blocks[filled[place[within]]]
        its = offsets < size
        return cls.of_entries(filled[place[within]][its], offsets[its], weights[within][its], len(blocks))

    def rows(self) -> NDArray[np.int64]:
        """Row of each weight."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def placed(self, numbers: NDArray[np.int64], n_rows: int) -> Self:
        """The same rows with these numbers, among `n_rows`."""
        rows = numbers[self.rows()]
        order = np.argsort(rows, kind="stable")
        return self.of_entries(rows[order], self.targets[order], self.weights[order], n_rows)

    def scaled(self, factor: float) -> Self:
        """The same rows with all weights multiplied."""
        return self._replace(weights=self.weights * factor)


@dataclass(frozen=True, eq=False)
class ChainModel:
    """Model of Wapiti, CRF++ or CRFsuite, or one that was trained here in their form.

    Attributes
    ----------
    kind : str
        ``"wapiti"``, ``"crfpp"`` or ``"crfsuite"``: whose names of features these are.
    labels : list of str
    attributes : list of str
        Names of the features, with bytes that are not UTF-8 as lone surrogates (``surrogateescape``).
    states : Weights
        Weights of labels, a row per attribute.
    pairs : Weights, optional
        Weights of pairs of labels, a row per attribute; an attribute of a first token has none.
    transitions : array (n_labels, n_labels), optional
        Weights of a label after another one, whatever the attributes.
    start, end : array (n_labels,), optional
        Weights of first and last labels.
    patterns : list of Pattern
        What forms attributes of columns of tokens. None: tokens are lists of attributes, or dicts of features.
    independent : bool
        Whether each token is a sequence of its own (Wapiti's maximum entropy mode).
    cost_factor : float
        CRF++'s factor of all scores.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.interop import ChainModel
    >>> from structsvm.interop.chain_model import Weights
    >>> states = Weights(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([1.0, 2.0]))
    >>> model = ChainModel("crfsuite", ["N", "V"], ["w=dog", "w=barks"], states)
    >>> model.predict([[["w=dog"], ["w=barks"]]])
    [['N', 'V']]
    >>> model.score([["w=dog"], ["w=barks"]], ["N", "V"])
    3.0
    """

    kind: str
    labels: list[str]
    attributes: list[str]
    states: Weights
    pairs: Weights | None = None
    transitions: NDArray[np.float64] | None = None
    start: NDArray[np.float64] | None = None
    end: NDArray[np.float64] | None = None
    patterns: list[Pattern] = field(default_factory=list)
    independent: bool = False
    cost_factor: float = 1.0

    @cached_property
    def n_columns(self) -> int:
        """Columns of a token that the patterns read."""
        return max((pattern.n_columns for pattern in self.patterns), default=0)

    @cached_property
    def tagger(self) -> Tagger:
        """The chain that predicts; weights of pairs that every token has are its transitions."""
        model = self.rescaled()
        transitions, pairs = model.apart()
        own = (None, None, None) if pairs is None else pairs
        return Tagger(
            self.labels,
            {name: row for row, name in enumerate(self.attributes)},
            *model.states,
            transitions,
            start=model.start,
            end=model.end,
            pair_starts=own[0],
            pair_targets=own[1],
            pair_weights=own[2],
        )

    def rescaled(self) -> Self:
        """The same scores with a cost factor of 1, by which weights are multiplied."""
        factor = self.cost_factor
        if factor == 1.0:
            return self
        transitions, start, end = (
            None if own is None else factor * own for own in (self.transitions, self.start, self.end)
        )
        states, pairs = self.states.scaled(factor), self.pairs and self.pairs.scaled(factor)
        return replace(self, states=states, pairs=pairs, transitions=transitions, start=start, end=end, cost_factor=1.0)

    def apart(self, everywhere: Sequence[str] | None = None) -> tuple[NDArray[np.float64], Weights | None]:
        """Transitions, with the weights of pairs of the attributes that each token has, and other weights of pairs.

        `everywhere` are these attributes; None: what patterns without a command form, each once.
        """
        K, n = len(self.labels), len(self.attributes)
        transitions = np.zeros((K, K)) if self.transitions is None else self.transitions
        if self.pairs is None:
            return transitions, None
        if everywhere is None:
            names = [pattern.source for pattern in self.patterns if not pattern.commands]
            everywhere = [name for name in dict.fromkeys(names) if names.count(name) == 1]
        number, rows = {name: row for row, name in enumerate(self.attributes)}, self.pairs.rows()
        chosen = np.isin(rows, [number[name] for name in everywhere if name in number])
        added = np.zeros(K * K)
        np.add.at(added, self.pairs.targets[chosen], self.pairs.weights[chosen])
        left = ~chosen
        others = Weights.of_entries(rows[left], self.pairs.targets[left], self.pairs.weights[left], n)
        return transitions + added.reshape(K, K), others if len(others.weights) else None

    # ---- tokens ---------------------------------------------------------------------------------

    def observations(self, sequence: Sequence[Token]) -> list[list[str]]:
        """Attributes that the patterns form of each token, in their order.

        Wapiti's maximum entropy mode puts a "u" before each, and leaves out what ``b`` patterns form.
        """
        tokens = [[text.encode("utf-8", "surrogateescape") for text in _strings(token)] for token in sequence]
        for t, token in enumerate(tokens):
            if len(token) < self.n_columns:
                raise ValueError(f"token {t} has {len(token)} columns: the model's patterns read {self.n_columns}")
        applied = [pattern.apply(tokens) for pattern in self.patterns]
        found = [[name.decode("utf-8", "surrogateescape") for name in names] for names in zip(*applied, strict=True)]
        return [[name for name in names if name[0] != "b"] for names in found] if self.independent else found

    def _sequences(self, sequence: Sequence[Token]) -> list[list[Token]]:
        """Sequences for the tagger: the tokens with their attributes, in maximum entropy mode one by one."""
        if not self.independent:
            return [list(self.observations(sequence) if self.patterns else sequence)]
        parts = [self.observations([token])[0] if self.patterns else _strings(token) for token in sequence]
        return [[[f"u{name}" for name in names]] for names in parts]

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[Sequence[Token]]) -> list[list[str]]:
        """Labels of each sequence."""
        return list(self.predict_iter(X))

    def predict_iter(self, X: Iterable[Sequence[Token]]) -> Iterator[list[str]]:
        """Labels of one sequence after the other."""
        for sequence in X:
            yield [label for part in self._sequences(sequence) for label in self.tagger.tag(part)]

    def predict_marginals(self, X: Iterable[Sequence[Token]]) -> list[NDArray[np.float64]]:
        """Probabilities of the labels of each token: an array (n_tokens, n_labels) per sequence."""
        nothing = np.zeros((0, len(self.labels)))
        return [
            np.concatenate([nothing, *(self.tagger.marginals(part) for part in self._sequences(sequence))])
            for sequence in X
        ]

    def predict_kbest(self, X: Iterable[Sequence[Token]], k: int, *, probabilities: bool = False) -> list[Ranked]:
        """The k best ``(labels, score)`` of each sequence, best first, or with probabilities in place of scores."""
        if self.independent:
            raise ValueError("the k best labellings are those of a chain: this model takes each token by itself")
        found = []
        for sequence in X:
            (tokens,) = self._sequences(sequence)
            total = self.tagger.log_partition(tokens) if probabilities else 0.0
            ranked = self.tagger.kbest(tokens, k)
            found.append([(labels, float(np.exp(s - total)) if probabilities else s) for s, labels in ranked])
        return found

    def score(self, sequence: Sequence[Token], labels: Sequence[str]) -> float:
        """Score of a labelling."""
        parts = self._sequences(sequence)
        if not self.independent:
            return self.tagger.score(parts[0], labels)
        return sum(self.tagger.score(part, [label]) for part, label in zip(parts, labels, strict=True))

    def log_partition(self, sequence: Sequence[Token]) -> float:
        """Logarithm of the sum over all labellings of exp(score)."""
        return sum(self.tagger.log_partition(part) for part in self._sequences(sequence))

    def probability(self, sequence: Sequence[Token], labels: Sequence[str]) -> float:
        """Probability of a labelling."""
        return float(np.exp(self.score(sequence, labels) - self.log_partition(sequence)))


def _strings(token: Token) -> list[str]:
    """Strings of a token, which is one or several."""
    return [token] if isinstance(token, str) else list(token)  # type: ignore[call-overload]
