"""Partial knowledge: sets of candidate labels, sequences, trees, documents at inner nodes, alignments.

    python benchmarks/partial.py [--part bags|sequences|trees|taxonomy|alignment|cost|all] [--quick]

Prints tables and stores them in benchmarks/results/partial.json and partial.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from common.parts import main

PARTS = ("bags", "sequences", "trees", "taxonomy", "alignment", "cost")

if __name__ == "__main__":
    main("partial", PARTS, __doc__)
