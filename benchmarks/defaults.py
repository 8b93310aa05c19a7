"""Defaults: estimators as they come, beside a search over everything and beside other programs at their best.

    python benchmarks/defaults.py [--part C|ways|sequences|taxonomies|alignments|classes|calibration|all]
                                  [--only TEXT] [--fresh] [--quick]

Prints tables and stores them in benchmarks/results/defaults.json and defaults.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. Rows of other programs are kept and
reused, unless --fresh. The parts need python-crfsuite, hiclass, Biopython and parasail. sklearn-crfsuite, and Wapiti
and CRF++ on the PATH or by the environment variables WAPITI and CRF_LEARN, are left out where they are not found.
"""

from common.parts import main

PARTS = ("C", "ways", "sequences", "taxonomies", "alignments", "classes", "calibration")

if __name__ == "__main__":
    main(
        "defaults",
        PARTS,
        __doc__,
        fresh="run the other programs again, do not reuse their results",
        only="only tables with this text in their titles; the others stay as they are",
    )
