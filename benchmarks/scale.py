"""All cores, any amount of data: threads that keep one another's weights up to date; shards in mapped files.

    python benchmarks/scale.py [--part threads|shards|all] [--quick]

Prints tables and stores them in benchmarks/results/scale.json and scale.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("threads", "shards")

if __name__ == "__main__":
    main("scale", PARTS, __doc__)
