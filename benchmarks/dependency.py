"""Dependency parsing: UD English EWT and UD Dutch, beside UDPipe and spaCy where they are installed.

    python benchmarks/dependency.py [--part treebanks|solvers|lengths|tagged|all] [--quick] [--only NAME] [--whole]

Prints tables and stores them in benchmarks/results/dependency.json and dependency.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. UDPipe (pip install ufal.udpipe) and
spaCy (pip install spacy) are left out where they cannot be imported; with --whole they are trained on whole treebanks,
too, which takes them an hour.
"""

from common.parts import main

PARTS = ("treebanks", "solvers", "lengths", "tagged")

if __name__ == "__main__":
    main("dependency", PARTS, __doc__, only="rows whose name has this text", whole="peers on whole treebanks, too")
