"""Learning curve: the parser as it comes on more and more sentences of UD English EWT."""

from __future__ import annotations

from common.report import Table, notes
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.tasks import DependencyParser

SIZES, QUICK = (125, 250, 500, 1000, 2000, 4000), (50, 100)


def run(options):
    data = TREEBANKS["UD English EWT"]()
    table = Table("UD English EWT: by training sentences, the development part", COLUMNS, notes=notes(NOTES))
    for n in QUICK if options.quick else SIZES:

        def fit(train):
            return DependencyParser(random_state=0).fit(train).predict

        test = data.dev[:100] if options.quick else data.dev
        table.rows.append(measured("structsvm, as it comes", some(data.train, n), test, fit))
        yield table


NOTES = """
Gold tags; of a permutation of the training part the first so many.
"""
