"""Alignments of two strings: the oracle behind learnt substitution and gap costs (Tsochantaridis and others 2004,
section 5.4).
"""

from __future__ import annotations

from math import prod
from numbers import Integral

import numpy as np

from structsvm.oracles._smith_waterman import Aligner, AlignmentProblem, DecoyProblem
from structsvm.oracles.alignment import PAIR, SKIP_X, SKIP_Z, Alignment, References, Strings
from structsvm.oracles.suboptimal import alignments_by_score
from structsvm.protocol import Oracle

# Scores of all pairs of symbols stand in a table that is made anew for each example.
MAX_SYMBOLS = 1024


class SmithWatermanOracle(Oracle):
    """Alignments of two strings with exact inference: Smith-Waterman, Needleman-Wunsch, Gotoh.

    An alignment is a sequence of operations: M pairs a letter of x with one of z, X puts a letter of x against a gap,
    Z one of z. The joint feature is the histogram of operations; what they score are the weights.

    Parameters
    ----------
    n_letters : int
        Size of the alphabet; a string is an integer array of letters 0 .. n_letters - 1.
    classes : tuple of int, default=()
        Position features: how many values each has (hydrophobicity classes, predicted structure). A string is then an
        integer array (length, 1 + len(classes)), the letter first.
    mode : {"global", "semi_global", "local"}, default="global"
        Both strings whole; from the first letter of one to the last letter of one (overlap: what stands out at the
        ends is free); or any part of one with any part of the other.
    gaps : {"affine", "linear"}, default="affine"
        The first letter of a gap weighs differently from the others, or all the same.
    symmetric : bool, default=False
        Whether a pair (a, b) and a pair (b, a) have one weight.
    letter_gaps : bool, default=False
        Whether gaps also have weights by the letter that stands against the gap. (By its classes they always have.)
    band : int or (int, int), optional
        Search only cells with ``min(0, d) - low <= j - i <= max(0, d) + high``, d the difference of the lengths; one
        number is both. None: all cells.
    loss : {"q", "zero_one"}, default="q"
        The share of the reference's assessed pairs that an alignment misses, or 1 for any other alignment.
    window : int, default=0
        "q": a reference pair counts as found if its letter of x is paired with one of z at most so far from its own.

    Attributes
    ----------
    n_features : int
        Length of w: the pairs of letters (n_letters^2, row by row; symmetric: the upper triangle and its diagonal),
        the pairs of values of each class; opening and extension of a gap (linear: one weight), then both by each
        value of the letters (`letter_gaps`) and classes.
    n_symbols : int
        Combinations of a letter and its classes.

    Notes
    -----
    Exact for all formulations. Margin rescaling with a linear penalty, and the zero-one loss, cost m n cells; with "q",
    slack rescaling and other penalties tell the counts of found pairs apart and cost R m n for R reference pairs.

    Where gaps in both strings meet, X comes before Z, so that the global alignments of two strings are as many as their
    sets of pairs, ``binomial(m + n, m)``; all orders of the operations would be the Delannoy number. The first
    letter of a gap scores ``open``, each further one ``extend``: -11 and -1 are what NCBI writes as 10 and 1.

    "q" can be 0 for alignments other than the reference: those that only add pairs which are not assessed. Their
    constraints have right-hand side 0; with slack rescaling they have none.
    """

    is_exact = True
    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(
        self,
        n_letters,
        *,
        classes=(),
        mode="global",
        gaps="affine",
        symmetric=False,
        letter_gaps=False,
        band=None,
        loss="q",
        window=0,
    ):
        for name, value, known in (
            ("mode", mode, ("global", "semi_global", "local")),
            ("gaps", gaps, ("affine", "linear")),
            ("loss", loss, ("q", "zero_one")),
        ):
            if value not in known:
                raise ValueError(
                    f"The {name!r} parameter of SmithWatermanOracle must be {known}. Got {value!r} instead."
                )
        self.sizes = (_count("n_letters", n_letters, 1), *(_count("classes", size, 1) for size in classes))
        self.mode, self.gaps, self.loss_name = mode, gaps, loss
        self.symmetric, self.letter_gaps = bool(symmetric), bool(letter_gaps)
        self.window = _count("window", window, 0)
        if band is not None:
            band = (band, band) if isinstance(band, Integral) else tuple(band)
            if len(band) != 2:
                raise ValueError(
                    f"The 'band' parameter of SmithWatermanOracle must be one or two integers. Got {band!r}."
                )
            low, high = band
            band = (-_count("band", low, 0), _count("band", high, 0))
        self.band = band
        self.n_symbols = prod(self.sizes)
        if self.n_symbols > MAX_SYMBOLS:
            raise ValueError(
                f"{self.n_symbols} combinations of letters and classes are more than {MAX_SYMBOLS}; use fewer classes"
            )
        self._lay_out()

    def _lay_out(self):
        """Number the features; for each operation on symbols, those that it counts in."""
        values = np.stack(np.unravel_index(np.arange(self.n_symbols), self.sizes), axis=1)
        pairs, self.first_pair = [], []
        at = 0
        for track, size in enumerate(self.sizes):
            a, b = values[:, None, track], values[None, :, track]
            if self.symmetric:
                a, b = np.minimum(a, b), np.maximum(a, b)
                pairs.append(at + a * size - a * (a - 1) // 2 + b - a)
            else:
                pairs.append(at + a * size + b)
            self.first_pair.append(at)
            at += size * (size + 1) // 2 if self.symmetric else size * size
        self.pair_features = np.stack([p.ravel() for p in pairs], axis=1).astype(np.int32)
        affine = self.gaps == "affine"
        self.first_gap = at
        opening, extension = [np.full(self.n_symbols, at)], [np.full(self.n_symbols, at + affine)]
        at += 1 + affine
        self.first_gap_by = {}
        for track, size in enumerate(self.sizes):
            if track > 0 or self.letter_gaps:
                self.first_gap_by[track] = at
                opening.append(at + values[:, track])
                extension.append(at + affine * size + values[:, track])
                at += (1 + affine) * size
        self.open_features = np.stack(opening, axis=1).astype(np.int32)
        self.extend_features = np.stack(extension, axis=1).astype(np.int32)
        self.n_features = at

    def pair_table(self, w, track=0):
        """The weights of pairs of letters, or of a class's values, as a square matrix."""
        size = self.sizes[track]
        a, b = np.indices((size, size))
        if self.symmetric:
            a, b = np.minimum(a, b), np.maximum(a, b)
            return w[self.first_pair[track] + a * size - a * (a - 1) // 2 + b - a]
        return w[self.first_pair[track] + a * size + b]

    # ---- strings and alignments -----------------------------------------------------------------

    def encode(self, string):
        """One symbol a position from an integer array (length,), or with classes (length, 1 + n_classes).

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
                f"a string must be an integer array of {len(self.sizes)} numbers a position, got {values.dtype} "
                f"{np.shape(string)}"
            )
        if len(values) == 0:
            raise ValueError("a string is empty")
        if (values < 0).any() or (values >= self.sizes).any():
            raise ValueError(f"a string has values outside 0..{np.array(self.sizes) - 1}")
        return np.ravel_multi_index(tuple(values.T), self.sizes).astype(np.int32)

    def check_strings(self, strings):
        """Raise ValueError unless the strings are what the compiled aligner can follow blindly."""
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

    def check_alignment(self, alignment, m, n):
        """Raise ValueError unless it is an alignment of strings of m and n letters in this mode and band."""
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
            raise ValueError("a global alignment must take both strings whole")
        if self.mode == "semi_global" and (min(x_start, z_start) > 0 or (x_stop < m and z_stop < n)):
            raise ValueError(
                "a semi-global alignment must begin with the first letter of one string and end with a last"
            )
        if self.band is not None:
            offset = z_start - x_start + np.cumsum((codes != SKIP_X).astype(int) - (codes != SKIP_Z))
            low, high = min(0, n - m) + self.band[0], max(0, n - m) + self.band[1]
            if min(offset.min(), z_start - x_start) < low or max(offset.max(), z_start - x_start) > high:
                raise ValueError(f"the alignment leaves the band (j - i in {low}..{high}); widen it")

    def check_weights(self, w):
        """Return the weights as float64 array of n_features finite values, or raise ValueError."""
        weights = np.ascontiguousarray(w, dtype=np.float64)
        if weights.shape != (self.n_features,):
            raise ValueError(f"w has shape {weights.shape}, expected ({self.n_features},)")
        if not np.isfinite(weights).all():
            raise ValueError("w holds weights that are not finite")
        return weights

    # ---- the protocol ---------------------------------------------------------------------------

    def bind(self, X, Y, *, rescaling="margin", penalty="linear"):
        """Bind pairs of strings with their reference alignments; see `Oracle.bind`.

        X is a list of pairs (x, z) of integer arrays (see `encode`), Y a list of `Alignment`.
        """
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}")
        strings = Strings.of([self.encode(string) for pair in X for string in pair])
        pairs = np.arange(2 * len(X)).reshape(-1, 2)
        return self.bind_references(References.of(strings, pairs, Y), rescaling=rescaling, penalty=penalty)

    def bind_references(self, references, *, rescaling="margin", penalty="linear"):
        """Bind `References`: with decoys, homologues are learnt to be told from them, else alignments."""
        self.check_formulation(rescaling, penalty)
        lengths = np.diff(references.strings.offsets)
        for name in ("x", "z", "decoys"):
            numbers = getattr(references, name)
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(lengths):
                raise IndexError(f"{name} names strings outside 0..{len(lengths) - 1}")
        for k in range(len(references)):
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
            raise ValueError(f"example {alone[0]} has no decoys, and others have")
        return DecoyProblem(self, references, rescaling=rescaling, penalty=penalty)

    def aligner(self, strings, pairs, *, traceback=True):
        """Return the compiled aligner of pairs (n, 2) out of `Strings`."""
        return Aligner(self, strings, pairs, traceback=traceback)

    def _aligner_of(self, x):
        return self.aligner(Strings.of([self.encode(string) for string in x]), [[0, 1]])

    def joint_feature(self, x, y):
        return self._aligner_of(x).histogram(0, 1, y.x_start, y.z_start, y.codes)

    def loss(self, y_true, y):
        if self.loss_name == "zero_one":
            return float(
                y._replace(operations=y.operations.upper()) != y_true._replace(operations=y_true.operations.upper())
            )
        cells = y_true.pairs[y_true.assessed[y_true.codes == PAIR]]
        found = dict(y.pairs.tolist())
        hits = sum(i in found and abs(found[i] - j) <= self.window for i, j in cells.tolist())
        return (len(cells) - hits) / len(cells)

    def argmax(self, x, w, y_true=None, rescaling=None):
        if y_true is None:
            x_start, z_start, codes, _ = self._aligner_of(x).align(w, 0, 1)
        else:
            x_start, z_start, codes = self.bind([x], [y_true], rescaling=rescaling).most_violated(0, w)
        return Alignment.from_codes(x_start, z_start, codes)

    def alignments(self, x, w):
        """Yield ``(score, Alignment)`` of all alignments of x = (x, z), the best first.

        Lazy: the next one takes time in proportion to the lengths, but all cells are kept meanwhile (24 bytes each).
        """
        table, pair, gap_x, gap_z = self._aligner_of(x).table(w, 0, 1)
        return alignments_by_score(table, pair, gap_x, gap_z, self.mode)


def _count(name, value, least):
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"The {name!r} parameter of SmithWatermanOracle must be an integer of at least {least}. Got {value!r}."
        )
    return int(value)
