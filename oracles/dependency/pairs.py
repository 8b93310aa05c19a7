"""Dependency trees scored by pairs of their arcs, too: neighbours below one head, and words with their head's head."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.arc_templates import PairTemplates
from structsvm.oracles.dependency._dependency import ARC, CANDIDATES, PairDecoder, PairProblem
from structsvm.oracles.dependency.arcs import MOST_BITS, check_trees, checked_codes
from structsvm.parameters import Interval, Kind, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling, checked_weights

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["PairOracle", "TreeCandidates"]


class TreeCandidates(NamedTuple):
    """Arcs of each word that score best, as `ArcDecoder.candidates` finds them: a search for a tree is among them.

    Attributes
    ----------
    trees : int32 array (2, n_words)
        Heads and labels of the tree that the search begins with.
    arcs : array (n_words, most) of `structsvm.oracles.dependency._dependency.ARC`
        Heads, labels and scores; those of the tree are among them.
    counts : int32 array (n_words,)
        How many arcs each word has.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.arc_templates import ArcTemplates, PairTemplates
    >>> from structsvm.oracles.dependency.pairs import TreeCandidates
    >>> from structsvm.oracles.eisner import EisnerOracle
    >>> arcs = EisnerOracle(1, ArcTemplates(["upos"], ["h.upos m.upos"], []), arc_bits=4, row_bits=1)
    >>> x, scores = np.array([[2], [3], [2]], np.int32), np.zeros(arcs.n_features, np.float32)
    >>> candidates = TreeCandidates(*arcs.decoder(3).candidates(x, np.array([0, 3]), scores, 4.0))
    >>> candidates.counts.tolist()  # all heads score alike
    [3, 3, 3]
    """

    trees: NDArray[np.int32]
    arcs: NDArray[np.void]
    counts: NDArray[np.int32]

    def some(self, words: Any) -> TreeCandidates:
        """The candidates of some words."""
        return TreeCandidates(np.ascontiguousarray(self.trees[:, words]), self.arcs[words], self.counts[words])

    @classmethod
    def together(cls, parts: Sequence[TreeCandidates]) -> TreeCandidates:
        """The candidates of sentences one after the other."""
        trees, arcs, counts = zip(*parts, strict=True)
        return cls(np.concatenate(trees, axis=1), np.concatenate(arcs), np.concatenate(counts))

    def scores(self, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        """The scores of each word's arc in `outputs` (n_words, 2); NaN where it is no candidate."""
        among = np.arange(self.arcs.shape[1]) < self.counts[:, None]
        found = among & (self.arcs["head"] == outputs[:, :1]) & (self.arcs["label"] == outputs[:, 1:])
        score: NDArray[np.float32] = self.arcs["score"][np.arange(len(found)), found.argmax(axis=1)]
        return np.where(found.any(axis=1), score, np.float32(np.nan))


class PairOracle(Oracle):
    """Trees among candidate arcs, scored by the scores that these come with and by pairs of arcs.

    An input x is ``(codes, candidates)``: an int32 array (n_words, n_columns) as for
    `structsvm.oracles.dependency.arcs.DependencyOracle`, and `TreeCandidates`. An output is an int32 array (n_words, 2)
    of heads and label ids, candidates all; so is a true one. The joint feature is the sum of the arcs' scores and the
    number of pairs of arcs that cross, as the last two features, and the sums over words m of

        sum_r e[hash(r, g, h, t, s, m)]

    for the templates r and the words that `PairTemplates` tells of; after the last word on each side of each head, m is
    missing.

    Parameters
    ----------
    n_labels : int
    templates : PairTemplates
    projective : bool
        Whether arcs may not cross.
    bits : int, default=18
        Features are hashed to 2**bits numbers.

    Notes
    -----
    Inference is approximate: the search climbs from the tree that candidates come with, by giving a word, or two at a
    time, other candidates, for as long as the score rises. The loss is the number of words with a wrong head or label.

    References
    ----------
    R. McDonald and F. Pereira, Online learning of approximate dependency parsing algorithms, EACL 2006. Y. Zhang,
    T. Lei, R. Barzilay and T. Jaakkola, Greed is good if randomized: new inference for dependency parsing, EMNLP 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.arc_templates import ArcTemplates, PairTemplates
    >>> from structsvm.oracles.dependency.pairs import PairOracle, TreeCandidates
    >>> from structsvm.oracles.eisner import EisnerOracle
    >>> arcs = EisnerOracle(1, ArcTemplates(["upos"], ["h.upos m.upos"], []), arc_bits=4, row_bits=1)
    >>> x, scores = np.array([[2], [3], [2]], np.int32), np.zeros(arcs.n_features, np.float32)
    >>> candidates = TreeCandidates(*arcs.decoder(3).candidates(x, np.array([0, 3]), scores, 4.0))
    >>> oracle = PairOracle(1, PairTemplates(["upos"], ["h.upos m.upos"]), projective=True, bits=4)
    >>> tree = oracle.argmax((x, candidates), np.zeros(oracle.n_features))
    >>> tree.shape
    (3, 2)
    """

    inference = "approximate"
    rescalings: tuple[Rescaling, ...] = ("margin",)
    penalties: tuple[Penalty | None, ...] = ("linear",)

    def __init__(self, n_labels: int, templates: PairTemplates, *, projective: bool, bits: int = 18) -> None:
        check_arguments(
            "PairOracle",
            locals(),
            n_labels=Interval(Integral, 1, 2**20, closed="both"),
            templates=Kind(PairTemplates, "PairTemplates"),
            bits=Interval(Integral, 1, MOST_BITS, closed="both"),
        )
        self.n_labels, self.templates, self.bits = int(n_labels), templates, int(bits)
        self.projective = bool(projective)
        self.n_features = 2**self.bits + 2

    @property
    def identity(self) -> list[AnyArray]:
        """Arrays that distinguish joint features from those of others."""
        return [np.array([self.n_labels, self.bits, self.projective]), *self.templates.arrays.values()]

    def decoder(self, longest: int) -> PairDecoder:
        """A new decoder of sentences of up to that many words, for one thread."""
        return PairDecoder(self, max(int(longest), 1))

    def bind(
        self,
        X: Any,
        Y: Sequence[NDArray[np.int32]] | NDArray[np.int32],
        *,
        rescaling: Rescaling | None = "margin",
        penalty: Penalty | None = "linear",
    ) -> PairProblem:
        """Bind training sentences; see `Oracle.bind`.

        X may also be ``(codes, offsets, candidates)`` and Y one array, of the words of all sentences: sentence i has
        words ``offsets[i]`` to ``offsets[i + 1]``.
        """
        self.check_formulation(rescaling, penalty)
        if isinstance(X, tuple):
            codes, offsets, candidates = X
        else:
            if len(X) != len(Y):
                raise ValueError(f"X has {len(X)} sentences, Y has {len(Y)} trees")
            offsets = np.cumsum([0, *(len(codes) for codes, _ in X)], dtype=np.int64)
            codes = np.concatenate([codes for codes, _ in X])
            candidates = TreeCandidates.together([candidates for _, candidates in X])
            Y = np.concatenate([np.reshape(y, (-1, 2)) for y in Y])
        outputs = np.ascontiguousarray(Y, dtype=np.int32)
        codes, candidates = self.check_inputs(codes, offsets, candidates)
        check_trees(offsets, outputs, self.n_labels)
        unknown = np.flatnonzero(np.isnan(candidates.scores(outputs)))
        if len(unknown):
            i = int(np.searchsorted(offsets, unknown[0], side="right")) - 1
            raise ValueError(f"sentence {i}: the arc of word {unknown[0] - offsets[i] + 1} is no candidate")
        return PairProblem(self, codes, offsets, outputs, candidates, rescaling=rescaling, penalty=penalty)

    def check_inputs(
        self, codes: ArrayLike, offsets: NDArray[np.int64], candidates: TreeCandidates
    ) -> tuple[NDArray[np.int32], TreeCandidates]:
        """Return codes and candidates as the decoder takes them; raises ValueError."""
        checked = checked_codes(codes, self.templates)
        trees, arcs, counts = candidates
        trees, arcs, counts = np.ascontiguousarray(trees), np.ascontiguousarray(arcs), np.ascontiguousarray(counts)
        n = len(checked)
        if trees.shape != (2, n) or arcs.shape != (n, CANDIDATES) or arcs.dtype != ARC or counts.shape != (n,):
            raise ValueError(f"the candidates are not those of {n} words")
        check_trees(offsets, np.ascontiguousarray(trees.T), self.n_labels)
        among = np.arange(CANDIDATES) < counts[:, None]
        ends = np.repeat(np.diff(offsets), np.diff(offsets))[:, None]
        inside = (arcs["head"] >= 0) & (arcs["head"] <= ends) & (arcs["label"] >= 0) & (arcs["label"] < self.n_labels)
        itself = arcs["head"] == (np.arange(n) - np.repeat(offsets[:-1], np.diff(offsets)) + 1)[:, None]
        checked_candidates = TreeCandidates(trees.astype(np.int32), arcs, counts.astype(np.int32))
        if (
            counts.max(initial=0) > CANDIDATES
            or (among & ~(inside & ~itself & np.isfinite(arcs["score"]))).any()
            or np.isnan(checked_candidates.scores(trees.T)).any()
        ):
            raise ValueError("candidates must have heads and labels of the sentence, and those of its tree among them")
        return checked, checked_candidates

    # ---- the protocol on single objects ---------------------------------------------------------

    def joint_feature(self, x: Any, y: NDArray[np.int32]) -> NDArray[np.float64]:
        codes, candidates = x
        features, crossings = self.decoder(len(codes)).features(codes, np.ascontiguousarray(y, dtype=np.int32))
        psi = np.bincount(features, minlength=self.n_features).astype(np.float64)
        psi[-1] = crossings
        psi[-2] = candidates.scores(np.asarray(y)).sum(dtype=np.float64)
        return psi

    def loss(self, y_true: NDArray[np.int32], y: NDArray[np.int32]) -> float:
        return float((np.asarray(y_true) != np.asarray(y)).any(axis=1).sum())

    def argmax(
        self, x: Any, w: ArrayLike, y_true: NDArray[np.int32] | None = None, rescaling: Rescaling | None = None
    ) -> NDArray[np.int32]:
        if y_true is not None:
            return self.bind([x], [y_true], rescaling=rescaling).most_violated(0, w)
        offsets = np.array([0, len(x[0])])
        codes, candidates = self.check_inputs(x[0], offsets, x[1])
        weights = checked_weights(w, self.n_features, np.float32, finite=True)
        return self.decoder(len(codes)).parse(codes, offsets, candidates, weights)
