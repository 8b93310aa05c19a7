"""All cores: training in threads that keep one another's weights up to date.

    python benchmarks/scale.py [--part threads|all] [--quick]

Prints tables and stores them in benchmarks/results/scale.json and scale.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("threads",)

if __name__ == "__main__":
    main("scale", PARTS, __doc__)
