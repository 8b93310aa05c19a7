"""Promises: how often they are kept over many splits, and what is answered, beside thresholds on probabilities.

    python benchmarks/risk.py [--part answers|sets|wholes|losses|seconds|peers|all] [--quick]

Prints tables and stores them in benchmarks/results/risk.json and risk.md. The data come from `structsvm.datasets`;
the environment variable STRUCTSVM_DATA names their folder. The part "peers" needs MAPIE (pip install mapie).
"""

from common.parts import main

PARTS = ("answers", "sets", "wholes", "losses", "seconds", "peers")

if __name__ == "__main__":
    main("risk", PARTS, __doc__)
