"""Online machines of two classes: LaSVM beside SVC, active selection, the Huller, SGD-QN beside liblinear.

    python benchmarks/binary.py [--part NAME] [--quick] [--repeat N] [--only TEXT]

The parts are lasvm, cache, active, huller, linear, together, reprocess, retraining; figures, which draws what others
have stored; and all. Prints tables and stores them in benchmarks/results/binary.json and binary.md, pictures in
binary_*.png. The data come from `structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("lasvm", "cache", "active", "huller", "linear", "together", "reprocess", "retraining", "figures")

if __name__ == "__main__":
    main("binary", PARTS, __doc__, only="of linear, only tables with this text in their titles")
