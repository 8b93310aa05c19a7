"""Label sequences: the thesis's tables, other programs, the log loss, the targets, scaling, a web service,
kernels.

    python benchmarks/sequence.py [--part tables|peers|log|targets|scaling|serving|curves|kernels|all] [--quick]
        [--repeat N] [--fresh]

Prints tables and stores them in benchmarks/results/sequence.json and sequence.md, the curves in sequence_curves.png.
The data come from `structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("tables", "peers", "log", "targets", "scaling", "serving", "curves", "kernels")

if __name__ == "__main__":
    main("sequence", PARTS, __doc__, fresh="run the other programs again, do not reuse their results")
