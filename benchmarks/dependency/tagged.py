"""From words alone: a tagger's likely tags or its best ones, jackknifed for training or not, gold tags, and none."""

from __future__ import annotations

from sklearn.base import clone

from common.report import Table, notes
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.structures.dependencies import Word
from structsvm.tasks import DependencyParser, SequenceLabeler, TaggedParser

SENTENCES, QUICK = 500, 60
TAGGER = SequenceLabeler(C=0.1, loss="hamming", random_state=0)
BEST = clone(TAGGER).set_params(probability=False)  # hands on its best labelling alone


def words_of(trees, *columns):
    """Sentences of forms with these columns."""
    return [
        [Word(word.form, **{name: getattr(word, name) for name in columns}) for word in tree.words] for tree in trees
    ]


def of_columns(*columns):
    def fit(train):
        parser = DependencyParser(random_state=0).fit(words_of(train, *columns), [tree.arcs for tree in train])
        return lambda trees: parser.predict(words_of(trees, *columns))

    return fit


def tagged_by(tagger, *columns):
    def fit(train):
        arcs = [tree.arcs for tree in train]
        return TaggedParser(DependencyParser(random_state=0), tagger).fit(words_of(train, *columns), arcs).predict

    return fit


def trained_on_gold(train):
    both = TaggedParser(DependencyParser(random_state=0), BEST, n_folds=2).fit(train)
    both.parser_.fit(words_of(train, *both.columns_), [tree.arcs for tree in train])
    return both.predict


PARSERS = {
    "gold UPOS and XPOS, in training and parsing": of_columns("upos", "xpos"),
    "no tags": of_columns(),
    "likely UPOS and XPOS, jackknifed": tagged_by(TAGGER, "upos", "xpos"),
    "likely UPOS, jackknifed": tagged_by(TAGGER, "upos"),
    "best UPOS and XPOS, jackknifed": tagged_by(BEST, "upos", "xpos"),
    "best UPOS, jackknifed": tagged_by(BEST, "upos"),
    "best UPOS and XPOS, trained on gold ones": trained_on_gold,
}


def run(options):
    data = TREEBANKS["UD English EWT"]()
    train = some(data.train, QUICK if options.quick else SENTENCES)
    title = f"From words alone: {len(train)} sentences of UD English EWT, the development part"
    table = Table(title, COLUMNS, notes=notes(NOTES))
    for name, fit in PARSERS.items():
        if options.only and options.only not in name:
            continue
        table.rows.append(measured(name, train, data.dev[:100] if options.quick else data.dev, fit))
        yield table


NOTES = """
Words, UPOS and XPOS, no lemmas and morphology. Tags by `SequenceLabeler`, trained on the same sentences (C = 0.1, a
margin), for training by five folds. Likely tags: all of a probability of 0.1 or more, beside the likeliest. Rates are
with tagging.
"""
