"""Batch solvers: the paper's named entities, time to a duality gap, and rounds in parallel.

    python benchmarks/svmstruct.py [--part table3|gaps|parallel|all] [--quick] [--repeat N]

Prints tables and keeps them in benchmarks/results/svmstruct.json and svmstruct.md, with a picture of the
gaps in svmstruct_gaps.png. The data come from `structsvm.datasets`; the environment variable
STRUCTSVM_DATA names their folder. The part "parallel" needs dask's `distributed`.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _svmstruct_gaps
import _svmstruct_parallel
import _svmstruct_table3
from _parts import parser, run

PARTS = {
    "table3": _svmstruct_table3,
    "gaps": _svmstruct_gaps,
    "parallel": _svmstruct_parallel,
}


def arguments():
    return parser(__doc__, PARTS).parse_args()


if __name__ == "__main__":
    run("svmstruct", PARTS, arguments())
