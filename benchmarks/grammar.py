"""Grammar learning on the treebank sample: table 5 of the SVMstruct paper, and the cost of exact inference.

Parts: table5 (the paper's figures), table5-10, -15, -20 and -40 (methods by longest sentence), table5-folds (the same,
cross-validated), table5-C (at values of C), whole (the parser as it comes, all lengths), peers (the same beside other
programs, which `grammar/commands.py` finds; their rows are kept and reused, unless --fresh), curves, choices,
-brackets, -rules and -priors (each also with -both and -words), -starts and -whole, mixtures, mixtures-whole and
subsymbols (what was tried), vectors (of words), cost (loss-augmented inference beside plain parsing), speed (parsing),
lengths (time against length), solvers (to one optimum), trees (brute force).

    python benchmarks/grammar.py [--part table5-10] [--fresh] [--quick]
"""

from common.parts import main

PARTS = (
    "table5",
    "table5-10",
    "table5-15",
    "table5-20",
    "table5-40",
    "table5-folds",
    "table5-C",
    "whole",
    "peers",
    "curves",
    "choices",
    "choices-brackets",
    "choices-rules",
    "choices-rules-both",
    "choices-rules-words",
    "choices-priors",
    "choices-priors-both",
    "choices-priors-words",
    "choices-starts",
    "choices-whole",
    "mixtures",
    "mixtures-whole",
    "subsymbols",
    "vectors",
    "cost",
    "speed",
    "lengths",
    "solvers",
    "trees",
)

if __name__ == "__main__":
    main("grammar", PARTS, __doc__, fresh="run the other programs again, do not reuse their results")
