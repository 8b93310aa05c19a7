"""Structures that pystruct, dlib and SVMperf have: losses of whole samples, rankings, label sets, graphs, segments.

    python benchmarks/structures.py [--part multivariate|ranking|multilabel|graphs|segments|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/structures.json and structures.md. The environment variable
STRUCTSVM_DATA names the folder of the data. LightGBM and python-crfsuite are peers where they are installed.
"""

from common.parts import main

PARTS = ("multivariate", "ranking", "multilabel", "graphs", "segments")

if __name__ == "__main__":
    main("structures", PARTS, __doc__)
