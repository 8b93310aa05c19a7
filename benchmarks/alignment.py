"""Learnt alignment costs: table 4 of the paper, real proteins, speed, significance of scores.

    python benchmarks/alignment.py [--part table4|proteins|speed|significance|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/alignment.json and alignment.md. The proteins come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. The part "speed" needs Biopython, and
measures parasail as well if it is installed. Aligners as they come: benchmarks/defaults.py --part alignments.
"""

from common.parts import main

PARTS = ("table4", "proteins", "speed", "significance")

if __name__ == "__main__":
    main("alignment", PARTS, __doc__)
