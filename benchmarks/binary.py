"""Online machines of two classes: LaSVM beside SVC, active selection, the Huller, SGD-QN beside liblinear.

    python benchmarks/binary.py [--part lasvm|cache|active|huller|linear|all] [--quick] [--repeat N]

Prints tables and keeps them in benchmarks/results/binary.json and binary.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _binary_active
import _binary_cache
import _binary_huller
import _binary_lasvm
import _binary_linear
from _parts import parser, run

PARTS = {
    "lasvm": _binary_lasvm,
    "cache": _binary_cache,
    "active": _binary_active,
    "huller": _binary_huller,
    "linear": _binary_linear,
}

if __name__ == "__main__":
    run("binary", PARTS, parser(__doc__, PARTS).parse_args())
