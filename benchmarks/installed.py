"""Installed programs: parsers of addresses and citations and taggers as they run today, and by one change of import.

    python benchmarks/installed.py [--part tagging-addresses|tagging-citations|tagging-chunks|tagging-entities|all]
                                   [--fresh] [--quick]

Prints tables and stores them in benchmarks/results/installed.json and installed.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. Rows of other programs are kept and
reused, unless --fresh. The parts need python-crfsuite, that of addresses usaddress, whose features it takes. Wapiti and
CRF++, on the PATH or by the environment variables WAPITI and CRF_LEARN, are left out where they are not found.
"""

from common.parts import main

PARTS = ("tagging-addresses", "tagging-citations", "tagging-chunks", "tagging-entities")

if __name__ == "__main__":
    main("installed", PARTS, __doc__, fresh="run the other programs again, do not reuse their results")
