"""Dependency parsing: UD English EWT and UD Dutch, beside UDPipe and spaCy where they are installed.

    python benchmarks/dependency.py [--part treebanks|...|all] [--only NAME] [--fresh] [--quick]

Prints tables and stores them in benchmarks/results/dependency.json and dependency.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. UDPipe (pip install ufal.udpipe) and
spaCy (pip install spacy) are left out where they cannot be imported; their rows are kept and reused, unless --fresh.

Parts: treebanks (500 sentences), treebanks-large (2000 sentences and whole treebanks: two hours, nearly all of it the
peers'; --only "Dutch" or "EWT, all" for one of its tables), curves, solvers, lengths,
trees (brute force), tagged, vectors (of words).
"""

from common.parts import main

PARTS = ("treebanks", "treebanks-large", "curves", "solvers", "lengths", "trees", "tagged", "vectors")

if __name__ == "__main__":
    main(
        "dependency",
        PARTS,
        __doc__,
        fresh="run the other parsers again, do not reuse their results",
        only="rows whose name has this text",
    )
