"""Alignments: SequenceAligner() beside aligners with published costs."""

from __future__ import annotations

import warnings

import numpy as np

from common.measure import package_version
from common.report import verdict
from defaults.methods import Method, Score, Trained, compared
from structsvm.datasets import fetch_oxbench, fetch_prefab
from structsvm.metrics import alignment_scores
from structsvm.structures.gapped import strip_gaps
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner

OPENS, EXTENDS = (-0.9, -1.2, -1.6, -2.1, -2.8), (-0.03, -0.08, -0.17, -0.35)  # times the mean score of equal letters
NOTHING = 1e-9  # a C so small that the costs stay those of the prior
MODES = ("global", "semi-global", "local")
ABOUT = """
Q: share of the reference's core pairs found, mean over the pairs

The peers align by published costs, with the best of three modes and 20 pairs of gaps (parasail's are integers), without
a training. structsvm chooses among modes, matrices, gaps and C; nothing learnt: the costs that it starts from
"""


def run(options):
    for name, fetch in (("PREFAB 4.0", fetch_prefab), ("OXBench", fetch_oxbench)):
        if options.only in name:
            data = fetch()
            n = 60 if options.quick else None
            train, test = (data.X_train[:n], data.y_train[:n]), (data.X_test[:n], data.y_test[:n])
            for table in compared(f"{name}: Q", methods(), train, test, Q, ABOUT, options):
                if len(table.rows) == len(methods()):
                    table.notes.append(above_prior(*table.rows[:2]))
                yield table


def above_prior(ours, prior):
    """A note on the target that learning never ends below what it starts from."""
    return verdict(
        "not below the costs that learning starts from",
        f"{ours['score']:.2f}, nothing learnt {prior['score']:.2f}",
        ours["score"] >= prior["score"],
    )


def methods():
    peers = [("Biopython", "BLOSUM62", Biopython), ("Biopython", "GONNET1992", Biopython)]
    if package_version("parasail") is not None:
        peers.append(("parasail", "BLOSUM62", Parasail))
    return [
        Method("structsvm", ours, trains=False),
        Method("structsvm, nothing learnt", lambda X, y, setting: ours(X, y, {"C": NOTHING}), trains=False),
        *(published(f"{program}, {matrix}", program.lower(), matrix, kind) for program, matrix, kind in peers),
    ]


def ours(X, y, setting):
    """The aligner; a setting other than none stands beside its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # references with letters that no cost has been seen for
        model = SequenceAligner(random_state=0, **setting).fit(X, y)
    return Trained(model.predict, {"from": f"{model.prior_}"} | ({} if setting else {"C": float(model.C_)}))


def published(name, package, matrix, kind):
    """A peer with a matrix, and the grid of its mode and gaps."""
    costs = SubstitutionMatrix.published(matrix)
    unit = np.diag(costs.values)[[costs.alphabet.index(c) for c in "ACDEFGHIKLMNPQRSTVWY"]].mean()
    gaps = [(kind.rounded(unit * a), kind.rounded(unit * b)) for a in OPENS for b in EXTENDS]
    grid = [{"mode": mode, "open": a, "extend": b} for mode in MODES for a, b in dict.fromkeys(gaps)]
    return Method(name, lambda X, y, s: Trained(kind(costs, *s.values())), grid, package, trains=False)


Q = Score(
    lambda y, predicted: np.array([[alignment_scores([a], [b]).q, 1.0] for a, b in zip(y, predicted, strict=True)]),
    lambda n: 100.0 * n[0] / n[1],
)


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
