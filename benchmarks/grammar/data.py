"""Trees up to a length, and models of their grammar."""

from __future__ import annotations

from types import SimpleNamespace

from structsvm.datasets import fetch_treebank_sample
from structsvm.metrics import bracket_scores
from structsvm.tasks import SpanFeatures, TreebankGrammar
from structsvm.tasks.grammar.preparation import prepare

SETTINGS = {
    "terminals": "tags",
    "grammar": TreebankGrammar(h=None),
    "features": SpanFeatures(templates=()),
    "loss": "f1",
    "max_length": 500,
    "max_chart_bytes": 2**31,
}


def up_to(trees, length):
    return [tree for tree in trees if len(tree.leaves()) <= length]


def treebank(length, quick):
    """Training and test trees of at most `length` words."""
    data = fetch_treebank_sample()
    train, test = up_to(data.train, length), up_to(data.test, length)
    return (train[:60], test[:20]) if quick else (train, test)


def model_of(trees, **changes):
    """An untrained model of the trees' grammar, and the encoded trees."""
    model, examples = prepare(SimpleNamespace(**SETTINGS | changes), trees)
    return model, examples.trees


def scores_of(model, trees):
    """EVALB's complete match and F1, in percent."""
    predicted = model.predict([tree.tokens() for tree in trees], on_no_parse="flat", decode="tree")
    scores = bracket_scores(trees, predicted)
    return 100.0 * scores.accuracy, 100.0 * scores.f1
