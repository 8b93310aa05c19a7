"""Structures beside those that have a page of their own: losses of whole samples, rankings, label sets, matchings.

    python benchmarks/structures.py [--part multivariate|ranking|multilabel|matching|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/structures.json and structures.md. The environment variable
STRUCTSVM_DATA names the folder of the data. LightGBM is a peer where it is installed, SVMperf
where SVM_PERF names the folder of its programs.
"""

from common.parts import main

PARTS = ("multivariate", "ranking", "multilabel", "matching")

if __name__ == "__main__":
    main("structures", PARTS, __doc__)
