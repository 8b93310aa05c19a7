"""Taxonomies: table 1 of the paper on three data sets, other classifiers, and 100 to 10,000 classes.

    python benchmarks/taxonomy.py [--part table1|peers|scaling|all] [--quick] [--repeat N]

Prints tables and keeps them in benchmarks/results/taxonomy.json and taxonomy.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. HiClass takes part where it is
installed.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _taxonomy_peers
import _taxonomy_scaling
import _taxonomy_table1
from _parts import parser, run

PARTS = {
    "table1": _taxonomy_table1,
    "peers": _taxonomy_peers,
    "scaling": _taxonomy_scaling,
}

if __name__ == "__main__":
    run("taxonomy", PARTS, parser(__doc__, PARTS).parse_args())
