"""Online machines of two classes: LaSVM beside SVC, active selection, the Huller, SGD-QN beside liblinear.

    python benchmarks/binary.py [--part lasvm|cache|active|huller|linear|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/binary.json and binary.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("lasvm", "cache", "active", "huller", "linear")

if __name__ == "__main__":
    main("binary", PARTS, __doc__)
