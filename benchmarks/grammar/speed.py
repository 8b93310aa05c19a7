"""Parsing speed by length, and beside NLTK's ViterbiParser if it is installed."""

from __future__ import annotations

import numpy as np

from common.measure import package_version, repeat
from common.report import Table, notes
from grammar.data import model_of, treebank
from grammar.floor import compiled, floor
from structsvm.tasks import GrammarParser, TreebankGrammar

COLUMNS = {
    "words": ("words", ""),
    "grammar": ("grammar", ""),
    "rules": ("binary rules", "d"),
    "rate": ("sentences/s", ".0f"),
    "cpu": ("CPU ms", ".3f"),
    "applications": ("rule applications", ".0f"),
    "ns": ("ns each", ".2f"),
    "floor": ("floor ns", ".2f"),
    "over": ("times floor", ".1f"),
    "nltk": ("NLTK CPU s", ".2f"),
    "ratio": ("times NLTK", ".0f"),
}
NOTES = """
PCFG of the training sentences up to 40 words: rules exactly as they are, markovised (h = 1), and with parents' names
(h = 1, v = 2). CPU: the best derivation, from terminals to its nodes. Rule applications: rules times the places
i < k < j where both children have values, counted in the chart.

Floor: the max-plus loops over the same arrays and nothing else, compiled for this machine, on three sentences of each
length.

NLTK: ViterbiParser with the same grammar, on the first three and two sentences of the length, by CPU seconds; one of 21
to 30 words takes it a minute.
"""
LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40))
GRAMMARS = (
    ("exact", {}),
    ("h = 1", {"grammar": TreebankGrammar(h=1)}),
    ("h = 1, v = 2", {"grammar": TreebankGrammar(h=1, v=2)}),
)
NLTK_SENTENCES = {(1, 10): 3, (11, 20): 2}


def run(options):
    train, test = treebank(40, options.quick)
    loop, rows = compiled(), []
    for name, changes in GRAMMARS:
        model, encoded = model_of(train, **changes)
        model.estimate(encoded, 0.0)
        for low, high in LENGTHS:
            sentences = [tree.tokens() for tree in test if low <= len(tree.leaves()) <= high][:60]
            if sentences:
                rows.append(row((low, high), name, model, sentences, loop))
    if package_version("nltk") is not None:
        with_nltk(rows, GrammarParser.from_counts(train), test, options.quick)
    for found in rows:
        found["words"] = "{}-{}".format(*found["words"])
    yield Table("Parsing from tags", COLUMNS, rows, notes(NOTES))


def row(words, name, model, sentences, loop):
    parser, grammar = model.oracle.parser(), model.oracle.grammar
    encoded = [grammar.sentence([tag for _, tag in sentence]) for sentence in sentences]
    encoded = [sentence for sentence in encoded if sentence is not None]
    w = model.weights
    cpu = repeat(lambda: [parser.parse(sentence, w) for sentence in encoded], 5)[1].cpu / len(encoded)
    applications = np.array([count(parser, sentence, w) for sentence in encoded])
    found = {
        "words": words,
        "grammar": name,
        "rules": len(grammar.arrays["rule_pair"]),
        "rate": 1.0 / cpu,
        "cpu": 1000.0 * cpu,
        "applications": applications.mean(),
        "ns": 1e9 * cpu / applications.mean(),
    }
    if loop is not None:
        few = encoded[:3]
        found["floor"] = 1e9 * sum(floor(loop, parser, sentence, w) for sentence in few) / applications[:3].sum()
        found["over"] = found["ns"] / found["floor"]
    return found


def count(parser, sentence, w):
    parser.fill(sentence, w)
    return parser.n_applications()


def nltk_parser(parser):
    """NLTK's ViterbiParser with the same grammar, built rule by rule: its text format lacks labels such as ADVP|PRT."""
    import nltk

    def symbol(item):
        return nltk.Nonterminal(item) if isinstance(item, str) else item.name

    productions = [
        nltk.ProbabilisticProduction(symbol(rule.lhs), [symbol(item) for item in rule.rhs], prob=float(np.exp(weight)))
        for rule, weight in parser.grammar_
    ]
    return nltk.ViterbiParser(nltk.PCFG(nltk.Nonterminal("TOP"), productions), max_time=None)


def with_nltk(rows, parser, test, quick):
    viterbi = nltk_parser(parser)
    known = set(parser.model_.oracle.grammar.terminals)
    for found in [row for row in rows if row["grammar"] == "exact"][: 1 if quick else None]:
        if found["words"] not in NLTK_SENTENCES:
            continue
        low, high = found["words"]
        chosen = [[tag for _, tag in tree.tokens()] for tree in test if low <= len(tree.leaves()) <= high]
        chosen = [tags for tags in chosen if set(tags) <= known][: NLTK_SENTENCES[low, high]]
        own = model_seconds(parser, chosen)
        cpu = repeat(lambda chosen=chosen: [list(viterbi.parse(tags)) for tags in chosen], 1)[1].cpu / len(chosen)
        found |= {"nltk": cpu, "ratio": cpu / own}


def model_seconds(parser, sentences):
    """CPU seconds per sentence of our parser on the same ones."""
    oracle, w = parser.model_.oracle, parser.coef_
    own, encoded = oracle.parser(), [oracle.grammar.sentence(tags) for tags in sentences]
    return repeat(lambda: [own.parse(sentence, w) for sentence in encoded], 5)[1].cpu / len(encoded)
