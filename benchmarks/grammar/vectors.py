"""Word vectors in span features, as clusters and as numbers: vectors of what stands around words in plain text."""

from __future__ import annotations

import warnings

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from common.vectors import DIMENSIONS, features_of
from grammar.choices import LONGEST, counts, f1
from grammar.data import treebank
from structsvm.datasets import fetch_ud_english_ewt
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar

SIZES = (200, 800)
COLUMNS = {
    "terminals": ("from", ""),
    "trees": ("trees", "d"),
    "seen": ("seen of vectors", ""),
    "f1": ("F1 %", ".2f"),
    "more": ("more", "+.2f"),
    "error": ("standard error", ".2f"),
    "cpu": ("training, CPU s", ".1f"),
}

# As it came before relative frequencies.
USUAL = {"C": 0.3, "grammar": TreebankGrammar(h=0), "prior": None, "max_iter": 4, "random_state": 0}


def run(options):
    trees, _ = treebank(LONGEST, options.quick)
    n = len(trees) // 5
    train, test = trees[:-n], trees[-n:]
    texts = [[word.form.lower() for word in tree.words] for tree in fetch_ud_english_ewt().train]
    choices = features_of(texts + [[word.lower() for word in tree.leaves()] for tree in train])
    table = Table(f"Word vectors, {n} trees to judge by", COLUMNS, notes=notes(NOTES))
    draws = np.random.default_rng(0).integers(0, n, size=(1000, n))
    for terminals in ("words", "both"):
        for size in SIZES:
            some, plain = train[:: max(len(train) // size, 1)][:size], None
            for seen, features in choices.items():
                with warnings.catch_warnings(), Clock() as clock:
                    warnings.simplefilter("ignore")  # gaps of few passes, sentences without a parse
                    parser = GrammarParser(terminals=terminals, features=SpanFeatures(columns=features), **USUAL).fit(
                        some
                    )
                    found = counts(test, parser)
                row = {"terminals": terminals, "trees": len(some), "seen": seen, "f1": f1(found), "cpu": clock.cpu}
                if plain is None:
                    plain = found
                else:
                    row["more"] = f1(found) - f1(plain)
                    row["error"] = (f1(found[draws]) - f1(plain[draws])).std()
                table.rows.append(row)
                yield table


NOTES = f"""
Sentences up to {LONGEST} words of wsj_0001-0159: trees at equal distances in the first four fifths, judged on the last
fifth; C = 0.3. Vectors of {DIMENSIONS} numbers from the words of these four fifths and of UD English EWT's training
part, without their trees; 16, 64 and 256 clusters. CPU seconds are of training and judging.
"""
