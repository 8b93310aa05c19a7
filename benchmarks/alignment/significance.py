"""Karlin and Altschul's lambda and K of BLOSUM62, as fitted to random strings, beside those that BLAST uses."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from structsvm.datasets import fetch_substitution_matrix
from structsvm.tasks import SequenceAligner

# Costs of gaps, with BLAST's lambda and K for them.
BLAST = {(11, 1): (0.267, 0.041), (9, 2): (0.279, 0.058), (13, 1): (0.292, 0.071)}
# How often amino acids occur (Robinson and Robinson 1991), in units of 1e-5.
LETTERS = {
    "A": 7805, "R": 5129, "N": 4487, "D": 5364, "C": 1925, "Q": 4264, "E": 6295, "G": 7377, "H": 2199, "I": 5142,
    "L": 9019, "K": 5744, "M": 2243, "F": 3856, "P": 5203, "S": 7120, "T": 5841, "W": 1330, "Y": 3216, "V": 6441,
}  # fmt: skip
SEEDS = 5
COLUMNS = {
    "gaps": ("gaps", ""),
    "blast": ("lambda, BLAST", ".3f"),
    "decay": ("lambda", ".3f"),
    "spread": ("±", ".3f"),
    "more": ("more than BLAST's, %", ".1f"),
    "blast_k": ("K, BLAST", ".3f"),
    "k": ("K", ".3f"),
}
NOTES = f"""
Means over {SEEDS} seeds of `SequenceAligner.significance` with its own numbers of pairs and letters; letters drawn as
often as Robinson and Robinson (1991) counted them.
"""


def run(options):
    """Yield the table."""
    background = ["".join(letter * count for letter, count in LETTERS.items())]
    matrix, table = fetch_substitution_matrix("BLOSUM62"), Table("Significance: BLOSUM62", COLUMNS, notes=notes(NOTES))
    for (first, more), (decay, K) in BLAST.items():
        aligner = SequenceAligner.from_costs(matrix, -first - more, -more, mode="local")
        found = [aligner.significance(background, random_state=seed) for seed in range(1 if options.quick else SEEDS)]
        decays = np.array([chance.decay for chance in found])
        row = {"gaps": f"{first} and {more}", "blast": decay, "decay": decays.mean(), "spread": decays.std()}
        row |= {"more": 100.0 * (decays.mean() / decay - 1.0), "blast_k": K, "k": np.mean([c.K for c in found])}
        table.rows.append(row)
    yield table
