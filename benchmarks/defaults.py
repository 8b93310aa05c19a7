"""Defaults: what estimators choose by themselves, beside what a search over everything finds.

    python benchmarks/defaults.py [--part C|all] [--quick]

Prints tables and stores them in benchmarks/results/defaults.json and defaults.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("C",)

if __name__ == "__main__":
    main("defaults", PARTS, __doc__)
