"""Word vectors in a parser from gold tags, as clusters and as numbers."""

from __future__ import annotations

from common.report import Table, notes
from common.vectors import DIMENSIONS, features_of
from dependency.data import COLUMNS, measured, some
from structsvm.datasets import fetch_ud_english_ewt
from structsvm.tasks import ArcFeatures, DependencyParser

SIZES = (500, 2000)


def run(options):
    data = fetch_ud_english_ewt()
    choices = features_of([[word.form.lower() for word in tree.words] for tree in data.train])
    test = data.dev[:100] if options.quick else data.dev
    columns = COLUMNS | {"parser": ("seen of vectors", "")}
    table = Table("UD English EWT: word vectors, gold tags, the development part", columns, notes=notes(NOTES))
    for size in SIZES:
        train = some(data.train, size // 10 if options.quick else size)
        for seen, features in choices.items():
            table.rows.append(
                measured(
                    seen,
                    train,
                    test,
                    lambda trees, own=features: (
                        DependencyParser(C=0.1, features=ArcFeatures(columns=own), random_state=0).fit(trees).predict
                    ),
                )
            )
            yield table


NOTES = f"""
Sentences of the training part, drawn; C = 0.1. Vectors of {DIMENSIONS} numbers from the words of the whole training
part, without its trees; 16, 64 and 256 clusters.
"""
