"""Ambiguous supervision: the thesis's figures 6.3 and 6.4, its tables 6.1 and 6.2, hybrid trees, questions to a map,
speed, and its appendix C.

    python benchmarks/semantics.py [--part figures|tables|hybrid|bags|queries|speed|concepts|all] [--quick] [--repeat N]
        [--only TEXT]

Prints tables and stores them in benchmarks/results/semantics.json and semantics.md, with the figures in
semantics_figures.png. The data come from `structsvm.datasets`; the environment variable STRUCTSVM_DATA names their
folder.
"""

from common.parts import main

PARTS = ("figures", "tables", "hybrid", "bags", "queries", "speed", "concepts")

if __name__ == "__main__":
    main(
        "semantics",
        PARTS,
        __doc__,
        only="""of hybrid trees, bags and questions, only tables with this text in their titles; of concepts, rows of
        table C.2, or one of C.1, C.3, C.7, RoboCup, curve""",
    )
