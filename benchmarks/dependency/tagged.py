"""From words alone: tags of a tagger, jackknifed for training or not, beside gold tags and none."""

from __future__ import annotations

from common.report import Table, notes
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.structures.dependencies import Word
from structsvm.tasks import DependencyParser, SequenceLabeler, TaggedParser

SENTENCES, QUICK = 500, 60
TAGGER = SequenceLabeler(C=0.1, loss="hamming", probability=False, random_state=0)


def with_upos(trees, tags=None):
    """Sentences of forms and UPOS, or of forms alone."""
    return [[Word(word.form, upos=word.upos if tags is None else tags) for word in tree.words] for tree in trees]


def gold(train):
    parser = DependencyParser(random_state=0).fit(with_upos(train), [tree.arcs for tree in train])
    return lambda trees: parser.predict(with_upos(trees))


def none(train):
    parser = DependencyParser(random_state=0).fit(with_upos(train, "_"), [tree.arcs for tree in train])
    return lambda trees: parser.predict(with_upos(trees, "_"))


def jackknifed(train):
    return TaggedParser(DependencyParser(random_state=0), TAGGER).fit(train).predict


def trained_on_gold(train):
    both = TaggedParser(DependencyParser(random_state=0), TAGGER, n_folds=2).fit(train)
    both.parser_.fit(with_upos(train), [tree.arcs for tree in train])
    return both.predict


PARSERS = {
    "gold UPOS, in training and parsing": gold,
    "no tags": none,
    "tagged, jackknifed for training": jackknifed,
    "tagged, trained on gold UPOS": trained_on_gold,
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
Words and UPOS, no XPOS, lemmas and morphology. Tags by `SequenceLabeler`, trained on the same sentences (C = 0.1, a
margin), for training by five folds. Rates are with tagging.
"""
