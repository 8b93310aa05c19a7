"""Multiclass kernel machines: the tables of three papers, LIBSVM, and time against the number of examples.

    python benchmarks/multiclass.py [--part tables|gala|operations|ww|peers|all] [--quick] [--repeat N]

Prints tables and keeps them in benchmarks/results/multiclass.json and multiclass.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. ThunderSVM takes part where it is
installed.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _multiclass_gala
import _multiclass_operations
import _multiclass_peers
import _multiclass_tables
import _multiclass_ww
from _parts import parser, run

PARTS = {
    "tables": _multiclass_tables,
    "gala": _multiclass_gala,
    "operations": _multiclass_operations,
    "ww": _multiclass_ww,
    "peers": _multiclass_peers,
}

if __name__ == "__main__":
    run("multiclass", PARTS, parser(__doc__, PARTS).parse_args())
