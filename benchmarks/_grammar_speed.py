"""Parsing speed by length, and beside NLTK's ViterbiParser where it is installed."""

from __future__ import annotations

import numpy as np
from _grammar_data import model_of, treebank
from _measure import package_version, repeat
from _report import Table, notes

from structsvm.tasks import GrammarParser

COLUMNS = {
    "words": ("words", ""),
    "grammar": ("grammar", ""),
    "rate": ("sentences/s", ".0f"),
    "cpu": ("CPU ms", ".3f"),
    "applications": ("rule applications", ".0f"),
    "ns": ("ns each", ".3f"),
    "floor": ("floor ns", ".3f"),
    "nltk": ("NLTK CPU s", ".2f"),
    "ratio": ("times NLTK", ".0f"),
}
NOTES = """
PCFG of the training sentences up to 40 words, as it is or markovised (h = 1). Rule applications: pairs of children
times the splits at which both are there, counted in the chart. Floor: a compiled maximum over sums of two contiguous
arrays of 8-byte numbers, by numpy on arrays that stay in the cache.

NLTK: ViterbiParser with the same grammar, on the first two sentences of the length; up to 20 words, longer ones take it
minutes.
"""


def run(options):
    train, test = treebank(40, options.quick)
    rows = []
    for name, h in (("exact", None), ("h = 1", 1)):
        model, encoded = model_of(train, h=h)
        model.estimate(encoded, 0.0)
        for low, high in ((1, 10), (11, 20), (21, 30), (31, 40)):
            sentences = [tree.tokens() for tree in test if low <= len(tree.leaves()) <= high][:60]
            if sentences:
                rows.append(row(f"{low}-{high}", name, model, sentences))
    if package_version("nltk") is not None:
        with_nltk(rows, GrammarParser(solver="pcfg").fit(train), test)
    yield Table("Parsing from tags", COLUMNS, rows, notes(NOTES))


def row(words, name, model, sentences):
    parser, grammar = model.oracle.parser(), model.oracle.grammar
    numbers = [grammar.sentence([tag for _, tag in sentence]) for sentence in sentences]
    numbers = [sentence for sentence in numbers if sentence is not None]
    cpu = repeat(lambda: [parser.parse(sentence, model.weights) for sentence in numbers], 3)[1].cpu / len(numbers)
    applications = sum(count(parser, sentence, model.weights) for sentence in numbers) / len(numbers)
    return {
        "words": words,
        "grammar": name,
        "rate": 1.0 / cpu,
        "cpu": 1000.0 * cpu,
        "applications": applications,
        "ns": 1e9 * cpu / max(applications, 1),
        "floor": floor(),
    }


def count(parser, sentence, w):
    """Rule applications in a sentence's chart: the splits at which both children of a pair have values."""
    parser.fill(sentence, w)
    return parser.n_applications()


def floor():
    """Nanoseconds a split of max(l + r) in numpy."""
    l, r, out = (np.random.default_rng(k).normal(size=4096) for k in range(3))
    return 1e9 * repeat(lambda: [np.add(l, r, out=out).max() for _ in range(2000)], 3)[1].cpu / (2000 * len(l))


def nltk_parser(parser):
    """NLTK's ViterbiParser with the same grammar, made rule by rule: its text form lacks labels such as ADVP|PRT."""
    import nltk

    def symbol(item):
        return nltk.Nonterminal(item) if isinstance(item, str) else item.name

    productions = [
        nltk.ProbabilisticProduction(symbol(rule.lhs), [symbol(item) for item in rule.rhs], prob=float(np.exp(weight)))
        for rule, weight in parser.grammar_
    ]
    return nltk.ViterbiParser(nltk.PCFG(nltk.Nonterminal("TOP"), productions), max_time=None)


def with_nltk(rows, parser, test):
    """Only up to 20 words: longer ones take it minutes each."""
    viterbi = nltk_parser(parser)
    known = set(parser.model_.oracle.grammar.terminals)
    for of_length in [row for row in rows if row["grammar"] == "exact"][:2]:
        low, high = map(int, of_length["words"].split("-"))
        chosen = [[tag for _, tag in tree.tokens()] for tree in test if low <= len(tree.leaves()) <= high]
        chosen = [tags for tags in chosen if set(tags) <= known][:2]
        cpu = repeat(lambda chosen=chosen: [list(viterbi.parse(tags)) for tags in chosen], 1)[1].cpu / len(chosen)
        of_length |= {"nltk": cpu, "ratio": 1000.0 * cpu / of_length["cpu"]}
