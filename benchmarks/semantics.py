"""Ambiguous supervision: the thesis's figures 6.3 and 6.4, its tables 6.1 and 6.2, partial labels, speed.

    python benchmarks/semantics.py [--part figures|tables|labels|speed|all] [--quick] [--repeat N]

Prints tables and keeps them in benchmarks/results/semantics.json and semantics.md, with the figures in
semantics_figures.png. The data come from `structsvm.datasets`; the environment variable STRUCTSVM_DATA names their
folder.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _semantics_figures
import _semantics_labels
import _semantics_speed
import _semantics_tables
from _parts import parser, run

PARTS = {
    "figures": _semantics_figures,
    "tables": _semantics_tables,
    "labels": _semantics_labels,
    "speed": _semantics_speed,
}


def arguments():
    return parser(__doc__, PARTS).parse_args()


if __name__ == "__main__":
    run("semantics", PARTS, arguments())
