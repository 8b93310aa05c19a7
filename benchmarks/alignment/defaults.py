"""Alignments as they come, beside aligners with published costs whose settings a grid has chosen."""

from __future__ import annotations

import time
import warnings

import numpy as np

from common.measure import package_version
from common.report import Table, notes
from structsvm.datasets import fetch_oxbench, fetch_prefab
from structsvm.metrics import alignment_scores
from structsvm.structures.gapped import strip_gaps
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner

OPENS, EXTENDS = (-0.9, -1.2, -1.6, -2.1, -2.8), (-0.03, -0.08, -0.17, -0.35)
MODES = ("global", "semi-global", "local")
N_FOR_GRID = 300
COLUMNS = {
    "name": ("", ""),
    "chosen": ("chosen on the training pairs", ""),
    "q": ("test Q", ""),
    "difference": ("minus structsvm's", ""),
    "f1": ("test pair F1", ".4f"),
    "cpu": ("CPU s to choose and train", ".2f"),
    "predict": ("CPU s to align the test pairs", ".2f"),
}


def run(options):
    for name, fetch in (("PREFAB 4.0", fetch_prefab), ("OXBench", fetch_oxbench)):
        data = fetch()
        n = 60 if options.quick else None
        X, y, test = data.X_train[:n], data.y_train[:n], (data.X_test[:n], data.y_test[:n])
        rows, base = [], None
        for row, align in candidates(X, y):
            begin = time.process_time()
            predicted = align(test[0])
            row["predict"] = time.process_time() - begin
            q = np.array([alignment_scores([a], [b]).q for a, b in zip(test[1], predicted, strict=True)])
            base = q if base is None else base
            row |= {"q": mean(q), "f1": alignment_scores(test[1], predicted).pair_f1}
            row["difference"] = mean(q - base, "+.4f")
            rows.append(row)
        yield Table(f"{name}: {len(X)} pairs to train on, {len(q)} to test on", COLUMNS, rows, notes(NOTES))


def candidates(X, y):
    """Yield ``(row, align)``: our aligner without a parameter, and the peers."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SequenceAligner(random_state=0).fit(X, y)
    row = {"name": "structsvm, learnt", "cpu": time.process_time() - begin}
    yield row | {"chosen": f"{model.prior_}; {chosen_C(model)}"}, model.predict
    for matrix in ("BLOSUM62", "GONNET1992"):
        yield gridded(f"Biopython, {matrix}", matrix, Biopython, X, y)
    if package_version("parasail") is not None:
        yield gridded("parasail, BLOSUM62", "BLOSUM62", Parasail, X, y)


def chosen_C(model):
    C = getattr(model, "C_", None)
    return f"C = {C:g}" if C is not None else "C by default"


def gridded(name, matrix, kind, X, y):
    """A peer with the mode and the gaps that find most of `N_FOR_GRID` training pairs, and what that took."""
    order = np.random.default_rng(0).permutation(len(X))[:N_FOR_GRID]
    X, y = [X[k] for k in order], [y[k] for k in order]
    begin = time.process_time()
    published = SubstitutionMatrix.published(matrix)
    unit = np.diag(published.values)[[published.alphabet.index(c) for c in "ACDEFGHIKLMNPQRSTVWY"]].mean()
    best, settings = -1.0, None
    for mode in MODES:
        for gaps in ((unit * a, unit * b) for a in OPENS for b in EXTENDS):
            aligner = kind(published, mode, *map(kind.rounded, gaps))
            score = alignment_scores(y, aligner(X)).q
            if score > best:
                best, settings, chosen = score, aligner, f"{mode}, gaps {aligner.gaps[0]:.3g}, {aligner.gaps[1]:.3g}"
    return {"name": name, "chosen": chosen, "cpu": time.process_time() - begin}, settings


class Biopython:
    """PairwiseAligner: pairs of strings to pairs of rows."""

    rounded = float

    def __init__(self, matrix, mode, gap_open, gap_extend):
        from Bio.Align import PairwiseAligner, substitution_matrices

        letters = "ABCDEFGHIKLMNPQRSTVWXYZ"
        self.gaps, self.aligner = (gap_open, gap_extend), PairwiseAligner()
        values = matrix.over(letters).values
        self.aligner.substitution_matrix = substitution_matrices.Array(letters, 2, values)
        self.aligner.mode = "local" if mode == "local" else "global"
        self.aligner.open_gap_score, self.aligner.extend_gap_score = gap_open, gap_extend
        if mode == "semi-global":
            self.aligner.end_gap_score = 0.0

    def __call__(self, X):
        return [self._rows(x, z) for x, z in X]

    def _rows(self, x, z):
        blocks = self.aligner.align(x, z)[0].aligned
        return from_blocks(x, z, [(*a, *b) for a, b in zip(*blocks, strict=True)])


class Parasail:
    """parasail, striped, whose scores are integers."""

    rounded = staticmethod(lambda gap: min(round(gap), -1))

    def __init__(self, matrix, mode, gap_open, gap_extend):
        import parasail

        self.gaps = gap_open, gap_extend
        self.matrix = parasail.matrix_create(matrix.alphabet, 1, -1)
        for place, value in np.ndenumerate(matrix.values):
            self.matrix[place] = int(value)
        kind = {"global": "nw", "semi-global": "sg", "local": "sw"}[mode]
        self.align = getattr(parasail, f"{kind}_trace_striped_16")

    def __call__(self, X):
        return [self._rows(x, z) for x, z in X]

    def _rows(self, x, z):
        found = self.align(x, z, -self.gaps[0], -self.gaps[1], self.matrix)
        traceback = found.traceback
        head = found.cigar.beg_query, found.cigar.beg_ref
        i, j, blocks = *head, []
        for a, b in zip(traceback.query, traceback.ref, strict=True):
            if a != "-" and b != "-":
                blocks.append((i, i + 1, j, j + 1))
            i, j = i + (a != "-"), j + (b != "-")
        return from_blocks(x, z, blocks)


def from_blocks(x, z, blocks):
    """Gapped rows from pairs of aligned stretches, the rest against gaps."""
    rows, i, j = ["", ""], 0, 0
    for a, b, c, d in [*blocks, (len(x), len(x), len(z), len(z))]:
        rows[0] += x[i:a] + "-" * (c - j) + x[a:b]
        rows[1] += "-" * (a - i) + z[j:c] + z[c:d]
        i, j = b, d
    assert [strip_gaps(row) for row in rows] == [x, z]
    return tuple(rows)


def mean(values, spec=".4f"):
    return f"{values.mean():{spec}} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


NOTES = """
structsvm as it comes: no parameter but random_state=0. It chooses among modes, matrices, gaps and C on the training
pairs, and learns from all of them.

The peers align by published costs. Mode and gaps are those of 60 that find most of what 300 of the same training pairs
assess; CPU seconds of the choice include the metric, which is Python.

Q: share of the reference's core pairs found, mean over the pairs; ± is the standard error of the mean over the test
pairs, for differences that of the paired differences. One core.
"""
