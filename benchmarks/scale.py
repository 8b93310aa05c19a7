"""All cores, any amount of data: threads that keep one another's weights up to date; shards in mapped files; clusters.

    python benchmarks/scale.py [--part threads|shards|streams|growth|tags|headers|sets|plan|all] [--quick] [--only TEXT]

Prints tables and stores them in benchmarks/results/scale.json and scale.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("threads", "shards", "streams", "growth", "tags", "headers", "sets", "plan")

if __name__ == "__main__":
    main(
        "scale",
        PARTS,
        __doc__,
        only="of streams and plan, tables with this text in their titles, of headers, rows; what they need is taken "
        "from the kept ones",
    )
