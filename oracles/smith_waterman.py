"""Alignments of two strings, or lists of words: the oracles for learning substitution and gap costs (Tsochantaridis and
others 2004, section 5.4).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.dual._rounds import completions
from structsvm.oracles._smith_waterman import Aligner, AlignmentProblem, DecoyProblem
from structsvm.oracles.enumeration.suboptimal import alignments_by_score, log_sum_of_rows, pair_to_keep
from structsvm.parameters import Interval, Options, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling, checked_weights
from structsvm.structures.alignments import FREE, PAIR, SKIP_X, SKIP_Z, Alignment, Context, References, Strings

__all__ = ["SmithWatermanOracle", "WordAlignmentOracle"]

# The table of scores of all pairs of symbols is refilled for each example.
MAX_SYMBOLS = 1024
# Symbols of words that are not frequent and that two lists have in common.
FEWEST_SLOTS, MOST_SLOTS = 2, 2048


class SmithWatermanOracle(Oracle):
    """Alignments of two strings with exact inference: Smith-Waterman, Needleman-Wunsch, Gotoh.

    An alignment is a sequence of operations: M pairs a letter of x with one of z, X puts a letter of x against a gap,
    Z one of z. The joint feature is the histogram of operations; the weights are their scores.

    Parameters
    ----------
    n_letters : int
        Size of the alphabet; a string is an integer array of letters 0 .. n_letters - 1.
    classes : tuple of int, default=()
        Number of values of each position feature (hydrophobicity classes, predicted structure). A string is then an
        integer array (length, 1 + len(classes)), the letter first.
    mode : {"global", "semi_global", "local"}, default="global"
        Both whole strings; from the first letter of one to the last letter of one (overlap: unaligned ends are
        free); or any part of one with any part of the other.
    gaps : {"affine", "linear"}, default="affine"
        The first letter of a gap has another weight than the others, or the same.
    symmetric : bool, default=False
        Whether the pairs (a, b) and (b, a) share one weight.
    letter_gaps : bool, default=False
        Whether gaps also have weights by the letter against the gap. (By its classes they always have.)
    band : int or (int, int), optional
        Search only cells with ``min(0, d) - low <= j - i <= max(0, d) + high``, d the difference of the lengths; one
        int gives both. None: all cells.
    contexts : sequence of Context, default=()
        Values of the letters around each position. Two paired letters have a weight for the pair of their values, and a
        letter against a gap has one for each of the values of the two letters that the gap is between: an opening
        gap, and an extended one.
    loss : {"q", "zero_one"}, default="q"
        The fraction of the reference's assessed pairs that an alignment misses, or 1 for any other alignment.
    window : int, default=0
        "q": a reference pair counts as found if its letter of x is paired with one of z at most `window` away.

    Attributes
    ----------
    n_features : int
        Length of w: the pairs of letters (n_letters^2, row by row; symmetric: the upper triangle and its diagonal),
        the pairs of values of each class; opening and extension of a gap (linear: one weight), then both by each
        value of the letters (`letter_gaps`) and classes; of each context the pairs of values, then opening and
        extension by each value.
    n_symbols : int
        Number of combinations of a letter and its classes.

    Notes
    -----
    Exact for all formulations. Margin rescaling with a linear penalty, and the zero-one loss, cost m n cells; with "q",
    slack rescaling and other penalties count the found pairs and cost R m n for R reference pairs.

    Where gaps in both strings meet, X comes before Z, so the number of global alignments of two strings is that
    of their sets of pairs, ``binomial(m + n, m)``; with all orders of the operations it would be the Delannoy number.
    The first letter of a gap scores ``open``, each further one ``extend``: -11 and -1 are NCBI's 10 and 1.

    "q" can be 0 for alignments other than the reference: those that only add unassessed pairs. Their
    constraints have right-hand side 0; with slack rescaling they have none.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.smith_waterman import SmithWatermanOracle
    >>> oracle = SmithWatermanOracle(n_letters=2)
    >>> w = np.array([2.0, -1.0, -1.0, 2.0, -2.0, -1.0])
    >>> oracle.argmax(([0, 1, 1], [0, 1]), w).operations
    b'MXM'
    """

    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(
        self,
        n_letters: int,
        *,
        classes: Sequence[int] = (),
        mode: str = "global",
        gaps: str = "affine",
        symmetric: bool = False,
        letter_gaps: bool = False,
        band: int | tuple[int, int] | None = None,
        contexts: Sequence[Context] = (),
        loss: str = "q",
        window: int = 0,
    ) -> None:
        check_arguments(
            "SmithWatermanOracle",
            locals(),
            mode=Options("global", "semi_global", "local"),
            gaps=Options("affine", "linear"),
            loss=Options("q", "zero_one"),
        )
        self.sizes = (_count("n_letters", n_letters, 1), *(_count("classes", size, 1) for size in classes))
        self.mode, self.gaps, self.loss_name = mode, gaps, loss
        self.symmetric, self.letter_gaps = bool(symmetric), bool(letter_gaps)
        self.contexts = tuple(contexts)
        self.window = _count("window", window, 0)
        self.band: tuple[int, int] | None = None
        if band is not None:
            sides = (band, band) if isinstance(band, (int, np.integer)) else tuple(band)
            if len(sides) != 2:
                raise ValueError(
                    f"The 'band' parameter of SmithWatermanOracle must be one or two integers. Got {sides!r}."
                )
            self.band = -_count("band", sides[0], 0), _count("band", sides[1], 0)
        self.n_symbols = prod(self.sizes)
        if self.n_symbols > MAX_SYMBOLS:
            raise ValueError(
                f"{self.n_symbols} combinations of letters and classes are more than {MAX_SYMBOLS}; use fewer classes"
            )
        for context in self.contexts:
            if len(context.scale) != self.n_symbols:
                raise ValueError(
                    f"the context {context.name!r} has numbers for {len(context.scale)} symbols, the strings have "
                    f"{self.n_symbols}"
                )
        self._lay_out()

    def _lay_out(self) -> None:
        """Number the features, and list those of each operation on symbols."""
        values = np.stack(np.unravel_index(np.arange(self.n_symbols), self.sizes), axis=1)
        pairs: list[NDArray[np.int64]] = []
        self.first_pair: list[int] = []
        at = 0
        for track, size in enumerate(self.sizes):
            pairs.append(at + self._pair_numbers(size)[np.ix_(values[:, track], values[:, track])])
            self.first_pair.append(at)
            at += self._n_pairs(size)
        self.pair_features = np.stack([p.ravel() for p in pairs], axis=1).astype(np.int32)
        affine = self.gaps == "affine"
        self.first_gap = at
        opening, extension = [np.full(self.n_symbols, at)], [np.full(self.n_symbols, at + affine)]
        at += 1 + affine
        self.first_gap_by: dict[int, int] = {}
        for track, size in enumerate(self.sizes):
            if track > 0 or self.letter_gaps:
                self.first_gap_by[track] = at
                opening.append(at + values[:, track])
                extension.append(at + affine * size + values[:, track])
                at += (1 + affine) * size
        self.open_features = np.stack(opening, axis=1).astype(np.int32)
        self.extend_features = np.stack(extension, axis=1).astype(np.int32)
        self.n_features = self._lay_out_contexts(at)

    def _lay_out_contexts(self, at: int) -> int:
        """Number the features of contexts from `at` on, of all values of all of them; returns where they end."""
        n_values = sum(context.size for context in self.contexts)
        self.context_pairs = np.zeros((n_values, n_values), dtype=np.int32)
        self.context_gaps = np.zeros((2, n_values), dtype=np.int32)
        affine = self.gaps == "affine"
        for context, (pairs, gaps) in zip(self.contexts, self.context_ids(), strict=True):
            pairs[:] = at + self._pair_numbers(context.size)
            at += self._n_pairs(context.size)
            gaps[:] = at + np.arange(context.size), at + affine * context.size + np.arange(context.size)
            at += (1 + affine) * context.size
        return at

    def context_ids(self) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """The features of each context: of the pairs of values, as a square matrix; of gaps opened and extended beside
        each value, (2, n_values).
        """
        bounds = pairwise(np.cumsum([0, *(context.size for context in self.contexts)]).tolist())
        return [(self.context_pairs[a:b, a:b], self.context_gaps[:, a:b]) for a, b in bounds]

    def _n_pairs(self, size: int) -> int:
        return size * (size + 1) // 2 if self.symmetric else size * size

    def _pair_numbers(self, size: int) -> NDArray[np.int64]:
        """The numbers of pairs of values, as a square matrix."""
        a, b = np.indices((size, size))
        if self.symmetric:
            a, b = np.minimum(a, b), np.maximum(a, b)
            return a * size - a * (a - 1) // 2 + b - a
        return a * size + b

    def context_values(self, strings: Strings) -> NDArray[np.int32]:
        """The values of all contexts (rows) at all letters of the strings; each counts on from the one before."""
        found = np.empty((len(self.contexts), len(strings.symbols)), dtype=np.int32)
        first = 0
        for k, context in enumerate(self.contexts):
            found[k] = first + context.values(strings)
            first += context.size
        return found

    def pair_table(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights of pairs of letters as a square matrix."""
        return w[self.pair_ids()]

    def pair_ids(self, track: int = 0) -> NDArray[np.int64]:
        """The features of pairs of letters, or of values of a class, as a square matrix."""
        return self.first_pair[track] + self._pair_numbers(self.sizes[track])

    # ---- strings and alignments -----------------------------------------------------------------

    def encode(self, string: ArrayLike) -> NDArray[np.int32]:
        """One symbol per position from an integer array (length,), or with classes (length, 1 + n_classes).

        Raises
        ------
        ValueError
            For another shape, an empty string, or values out of range.
        """
        values = np.asarray(string)
        if values.ndim == 1 and len(self.sizes) == 1:
            values = values[:, None]
        if values.ndim != 2 or values.shape[1] != len(self.sizes) or values.dtype.kind not in "iu":
            raise ValueError(
                f"a string must be an integer array of {len(self.sizes)} numbers per position, got {values.dtype} "
                f"{np.shape(string)}"
            )
        if len(values) == 0:
            raise ValueError("a string is empty")
        if (values < 0).any() or (values >= self.sizes).any():
            raise ValueError(f"a string has values outside 0..{np.array(self.sizes) - 1}")
        return np.ravel_multi_index(tuple(values.T), self.sizes).astype(np.int32)

    def check_strings(self, strings: Strings) -> None:
        """Raise ValueError unless the strings are valid; the compiled aligner does not check them."""
        symbols, offsets = strings.symbols, strings.offsets
        for name, array, dtype in (("symbols", symbols, np.int32), ("offsets", offsets, np.int64)):
            if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous or not array.flags.aligned:
                raise ValueError(f"the strings' {name} must be a contiguous array of {np.dtype(dtype)}")
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(symbols):
            raise ValueError(f"the strings' offsets must ascend from 0 to {len(symbols)}")
        empty = np.flatnonzero(np.diff(offsets) <= 0)
        if len(empty):
            raise ValueError(f"string {empty[0]} is empty")
        if len(symbols) and not 0 <= symbols.min() <= symbols.max() < self.n_symbols:
            raise ValueError(f"the strings have symbols outside 0..{self.n_symbols - 1}")

    def check_alignment(self, alignment: Alignment, m: int, n: int) -> None:
        """Raise ValueError unless it is a valid alignment of strings of m and n letters in this mode and band."""
        codes = alignment.codes
        if not (codes == PAIR).any():
            raise ValueError("the alignment has no pair")
        if ((codes[:-1] == SKIP_Z) & (codes[1:] == SKIP_X)).any():
            raise ValueError("where gaps meet, X must come before Z")
        x_start, z_start = alignment.x_start, alignment.z_start
        x_stop, z_stop = alignment.stop
        if min(x_start, z_start) < 0 or x_stop > m or z_stop > n:
            raise ValueError(
                f"the alignment takes letters {x_start}..{x_stop} and {z_start}..{z_stop} of strings of {m} and {n}"
            )
        if self.mode == "local" and codes[[0, -1]].any():
            raise ValueError("a local alignment must begin and end with a pair")
        if self.mode == "global" and ((x_start, z_start) != (0, 0) or (x_stop, z_stop) != (m, n)):
            raise ValueError("a global alignment must cover both strings whole")
        if self.mode == "semi_global" and (min(x_start, z_start) > 0 or (x_stop < m and z_stop < n)):
            raise ValueError(
                "a semi-global alignment must begin with the first letter of one string and end with a last"
            )
        if self.band is not None:
            offset = z_start - x_start + np.cumsum((codes != SKIP_X).astype(int) - (codes != SKIP_Z))
            low, high = min(0, n - m) + self.band[0], max(0, n - m) + self.band[1]
            if min(offset.min(), z_start - x_start) < low or max(offset.max(), z_start - x_start) > high:
                raise ValueError(f"the alignment leaves the band (j - i in {low}..{high}); widen it")

    def check_weights(self, w: ArrayLike) -> NDArray[np.float64]:
        """Return the weights as a float64 array of n_features finite values; raises ValueError."""
        return checked_weights(w, self.n_features, np.float64, finite=True)

    # ---- the protocol ---------------------------------------------------------------------------

    def bind(
        self,
        X: Sequence[tuple[ArrayLike, ArrayLike]],
        Y: Sequence[Alignment],
        *,
        rescaling: Rescaling | None = "margin",
        penalty: Penalty | None = "linear",
    ) -> AlignmentProblem:
        """Bind pairs of strings with their reference alignments; see `Oracle.bind`.

        X is a list of pairs (x, z) of integer arrays (see `encode`), Y a list of `Alignment`. Lower-case operations are
        trained on as given, except by `structsvm.LatentSVM`, which completes them.
        """
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}")
        strings = Strings.of([self.encode(string) for pair in X for string in pair])
        pairs = np.arange(2 * len(X)).reshape(-1, 2)
        lengths = np.diff(strings.offsets).reshape(-1, 2).tolist()
        known = [None if y.is_assessed else y.whole(*both).known for y, both in zip(Y, lengths, strict=True)]
        references = References.of(strings, pairs, Y, known=known)
        problem = self.bind_references(references, rescaling=rescaling, penalty=penalty)
        return cast(AlignmentProblem, problem)  # there are no decoys

    def bind_references(
        self, references: References, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> AlignmentProblem | DecoyProblem:
        """Bind `References`: with decoys, to learn to separate homologues from them; else to learn alignments."""
        self.check_formulation(rescaling, penalty)
        lengths = np.diff(references.strings.offsets)
        for name in ("x", "z", "decoys"):
            indices = getattr(references, name)
            if len(indices) and not 0 <= indices.min() <= indices.max() < len(lengths):
                raise IndexError(f"{name} refers to strings outside 0..{len(lengths) - 1}")
        for k in range(len(references)):
            if references.known[k] is not None and references.bounds[k] == references.bounds[k + 1]:
                continue  # to be completed
            try:
                self.check_alignment(references.alignment(k), lengths[references.x[k]], lengths[references.z[k]])
            except ValueError as error:
                raise ValueError(f"example {k}: {error}") from None
        if len(references.decoys) == 0:
            if self.loss_name == "q":
                references.check_assessed()
            return AlignmentProblem(self, references, rescaling=rescaling, penalty=penalty)
        alone = np.flatnonzero(np.diff(references.decoy_bounds) == 0)
        if len(alone):
            raise ValueError(f"example {alone[0]} has no decoys, but others have")
        return DecoyProblem(self, references, rescaling=rescaling, penalty=penalty)

    def aligner(self, strings: Strings, pairs: ArrayLike, *, traceback: bool = True) -> Aligner:
        """Return the compiled aligner of pairs (n, 2) of `Strings`."""
        return Aligner(self, strings, pairs, traceback=traceback)

    def _aligner_of(self, x: tuple[ArrayLike, ArrayLike]) -> Aligner:
        return self.aligner(Strings.of([self.encode(string) for string in x]), [[0, 1]])

    def joint_feature(self, x: tuple[ArrayLike, ArrayLike], y: Alignment) -> NDArray[np.float64]:
        return self._aligner_of(x).histogram(0, 1, y.x_start, y.z_start, y.codes)

    def loss(self, y_true: Alignment, y: Alignment) -> float:
        if self.loss_name == "zero_one":
            return float(
                y._replace(operations=y.operations.upper()) != y_true._replace(operations=y_true.operations.upper())
            )
        cells = y_true.pairs[y_true.assessed[y_true.codes == PAIR]]
        found = dict(y.pairs.tolist())
        hits = sum(i in found and abs(found[i] - j) <= self.window for i, j in cells.tolist())
        return (len(cells) - hits) / len(cells)

    def argmax(
        self,
        x: tuple[ArrayLike, ArrayLike],
        w: ArrayLike,
        y_true: Alignment | None = None,
        rescaling: Rescaling | None = None,
    ) -> Alignment:
        if y_true is None:
            x_start, z_start, codes, _ = self._aligner_of(x).align(w, 0, 1)
        else:
            x_start, z_start, codes = self.bind([x], [y_true], rescaling=rescaling).most_violated(0, w)
        return Alignment.from_codes(x_start, z_start, codes)

    def complete(self, x: tuple[ArrayLike, ArrayLike], known: Alignment, w: ArrayLike) -> Alignment:
        """The best alignment that agrees with what is known of the true one.

        Parameters
        ----------
        x : (array-like, array-like)
        known : Alignment
            Its operations in upper case are known: these pairs, and letters that stand against a gap or outside the
            alignment. Letters of those in lower case may be anywhere between. An alignment in this mode without any
            of them is fully known.
        w : array-like of shape (n_features,)

        Returns
        -------
        Alignment
            In this mode; pairs that are not known ones are ``m``.
        """
        aligner = self._aligner_of(x)
        m, n = (len(aligner.strings[k]) for k in (0, 1))
        if known.is_assessed:
            try:
                self.check_alignment(known, m, n)
            except ValueError:
                pass  # both strings whole, say
            else:
                return known
        return Alignment.from_codes(*aligner.complete(w, 0, 1, known.whole(m, n).known))

    def completed(self, references: References, w: ArrayLike) -> References:
        """References with the alignments that `complete` finds where columns are not assessed."""
        if references.is_whole:
            return references
        return references.with_words(completions(AlignmentProblem(self, references), self.check_weights(w)))

    def with_a_pair(self, aligner: Aligner, w: NDArray[np.float64], x: int, z: int) -> list[int]:
        """`References.words` of the best alignment of strings x and z that has a pair, where the best of all has none.

        In a band another one may be better by the gaps behind its last pair.
        """
        known = pair_to_keep(*aligner.table(w, x, z), self.mode)
        x_start, z_start, codes = aligner.complete(w, x, z, known)
        return [x_start, z_start, *np.where(codes == PAIR, PAIR + FREE, codes).tolist()]

    def alignments(self, x: tuple[ArrayLike, ArrayLike], w: ArrayLike) -> Iterator[tuple[float, Alignment]]:
        """Yield ``(score, Alignment)`` of all alignments of x = (x, z), best first.

        Lazy: each one takes time proportional to the lengths, but all cells stay in memory (24 bytes each).
        """
        return alignments_by_score(*self._aligner_of(x).table(w, 0, 1), self.mode)

    def log_sum(self, x: tuple[ArrayLike, ArrayLike], w: ArrayLike) -> float:
        """The log of the sum of exp(score) over all alignments of x = (x, z)."""
        return self._aligner_of(x).log_sum(w, 0, 1)[0]

    def log_sums_of_rows(
        self, x: tuple[ArrayLike, ArrayLike], w: ArrayLike, alignments: Sequence[Alignment]
    ) -> list[float]:
        """The log of the sum of exp(score) over the alignments that have the rows of each of these.

        There are several in semi-global mode, where any part of a gap at an end is free, and the rest paid for.
        """
        aligner = self._aligner_of(x)
        if self.mode != "semi_global":
            w = self.check_weights(w)
            return [float(aligner.histogram(0, 1, a.x_start, a.z_start, a.codes) @ w) for a in alignments]
        _, pair, gap_x, gap_z = aligner.table(w, 0, 1)
        (m, n), (low, high) = pair.shape, self.band or (-np.inf, np.inf)
        limits = min(0, n - m) + low, max(0, n - m) + high
        return [log_sum_of_rows(a.whole(m, n).codes, pair, gap_x, gap_z, limits) for a in alignments]


class WordAlignmentOracle(SmithWatermanOracle):
    """Alignments of two lists of words.

    A symbol below `n_words` is a frequent word, `n_words` itself any other word that one of the lists alone has. The
    symbols above are other words that both have, numbered anew for each example: the weights do not depend on them.

    Parameters
    ----------
    n_words : int
        Number of frequent words, 0 or more.
    settings
        Those of `SmithWatermanOracle`, but for `classes` and `contexts`.

    Attributes
    ----------
    n_features : int
        Length of w: as of `SmithWatermanOracle` with a letter per frequent word and one for all others, whose pair is
        that of two different ones; last the weight of another word with itself.

    Examples
    --------
    >>> from structsvm.oracles.smith_waterman import SmithWatermanOracle, WordAlignmentOracle
    >>> WordAlignmentOracle(3).n_features - SmithWatermanOracle(4).n_features
    1
    """

    def __init__(self, n_words: int, **settings: Any) -> None:
        self.n_words, self.n_slots = n_words, FEWEST_SLOTS
        super().__init__(n_words + 1, **settings)

    def _lay_out(self) -> None:
        super()._lay_out()
        self.n_features += 1
        self._base = self.pair_features.reshape(self.n_words + 1, -1), self.open_features, self.extend_features
        self._unfold()

    def _unfold(self) -> None:
        """List the features of operations on all symbols, from those of words."""
        self.n_symbols = self.n_words + 1 + self.n_slots
        word = np.minimum(np.arange(self.n_symbols), self.n_words)
        pairs, opening, extension = self._base
        table = pairs[np.ix_(word, word)]
        slots = np.arange(self.n_words + 1, self.n_symbols)
        table[slots, slots] = self.n_features - 1
        self.pair_features = np.ascontiguousarray(table.reshape(-1, 1))
        self.open_features, self.extend_features = opening[word], extension[word]

    def pair_ids(self, track: int = 0) -> NDArray[np.int64]:
        shown = np.delete(np.arange(self.n_words + 3), self.n_words)
        return self.pair_features.reshape(self.n_symbols, -1)[np.ix_(shown, shown)].astype(np.int64)

    def holding(self, strings: Strings) -> Self:
        """The same oracle with as many symbols as strings have."""
        n_slots = int(strings.symbols.max(initial=0)) - self.n_words
        if n_slots <= self.n_slots:
            return self
        if n_slots > MOST_SLOTS:
            raise ValueError(
                f"two lists have {n_slots} different words in common that are not frequent, more than {MOST_SLOTS}: "
                "align parts of them"
            )
        oracle = copy.copy(self)
        oracle.n_slots = n_slots
        oracle._unfold()  # noqa: SLF001 (a copy)
        return oracle

    def encode(self, string: ArrayLike) -> NDArray[np.int32]:
        symbols = np.asarray(string)
        if symbols.ndim != 1 or symbols.dtype.kind not in "iu" or not len(symbols) or symbols.min() < 0:
            raise ValueError(f"a list of words must be an array of symbols from 0 up, got {symbols!r:.80}")
        return symbols.astype(np.int32)

    def bind_references(
        self, references: References, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> AlignmentProblem | DecoyProblem:
        oracle = self.holding(references.strings)
        return SmithWatermanOracle.bind_references(oracle, references, rescaling=rescaling, penalty=penalty)

    def completed(self, references: References, w: ArrayLike) -> References:
        return SmithWatermanOracle.completed(self.holding(references.strings), references, w)

    def aligner(self, strings: Strings, pairs: ArrayLike, *, traceback: bool = True) -> Aligner:
        return SmithWatermanOracle.aligner(self.holding(strings), strings, pairs, traceback=traceback)


def _count(name: str, value: Any, least: int) -> int:
    check_arguments("SmithWatermanOracle", {name: value}, **{name: Interval(Integral, least)})
    return int(value)
