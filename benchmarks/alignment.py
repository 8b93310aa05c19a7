"""Learnt alignment costs: table 4 of the paper, real proteins, and the speed of the dynamic programmes.

    python benchmarks/alignment.py [--part table4|proteins|speed|all] [--quick] [--repeat N]

Prints tables and keeps them in benchmarks/results/alignment.json and alignment.md. The proteins come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. The part "speed" needs
Biopython, and times parasail as well where it is installed.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _alignment_proteins
import _alignment_speed
import _alignment_table4
from _parts import parser, run

PARTS = {
    "table4": _alignment_table4,
    "proteins": _alignment_proteins,
    "speed": _alignment_speed,
}


def arguments():
    return parser(__doc__, PARTS).parse_args()


if __name__ == "__main__":
    run("alignment", PARTS, arguments())
