"""Learnt alignment costs: table 4 of the paper, real proteins, and the speed of the dynamic programmes.

    python benchmarks/alignment.py [--part table4|proteins|defaults|speed|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/alignment.json and alignment.md. The proteins come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. The parts "defaults" and "speed" need
Biopython, and measure parasail as well if it is installed.
"""

from common.parts import main

PARTS = ("table4", "proteins", "defaults", "speed")

if __name__ == "__main__":
    main("alignment", PARTS, __doc__)
