"""Label sequences: the thesis's tables, other programs, the targets, and scaling.

    python benchmarks/sequence.py [--part tables|peers|targets|scaling|all] [--quick] [--repeat N] [--fresh]

Prints tables and keeps them in benchmarks/results/sequence.json and sequence.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _sequence_peers
import _sequence_scaling
import _sequence_tables
import _sequence_targets
from _parts import parser, run

PARTS = {
    "tables": _sequence_tables,
    "peers": _sequence_peers,
    "targets": _sequence_targets,
    "scaling": _sequence_scaling,
}


def arguments():
    options = parser(__doc__, PARTS)
    options.add_argument(
        "--fresh", action="store_true", help="run the other programs again, do not reuse their results"
    )
    return options.parse_args()


if __name__ == "__main__":
    run("sequence", PARTS, arguments())
