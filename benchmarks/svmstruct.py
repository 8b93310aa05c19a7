"""Batch solvers: the paper's named entities, time to a duality gap, and rounds in parallel.

    python benchmarks/svmstruct.py [--part table3|gaps|parallel|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/svmstruct.json and svmstruct.md, with a picture of the
gaps in svmstruct_gaps.png. The data come from `structsvm.datasets`; the environment variable
STRUCTSVM_DATA names their folder. The part "parallel" needs dask's `distributed`.
"""

from common.parts import main

PARTS = ("table3", "gaps", "parallel")

if __name__ == "__main__":
    main("svmstruct", PARTS, __doc__)
