"""The learning loop: what to ask, what answers teach one by one, and how long that takes; votes of several sources.

    python benchmarks/learning.py [--part order|strategies|partial|consolidated|latency|weak|all] [--quick]

Prints tables and stores them in benchmarks/results/learning.json and learning.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("order", "strategies", "partial", "consolidated", "latency", "weak")

if __name__ == "__main__":
    main("learning", PARTS, __doc__)
