"""The cost of exact loss-augmented inference, in units of a plain parse of the same sentences."""

from __future__ import annotations

import numpy as np

from common.measure import repeat
from common.report import Table, notes
from grammar.data import model_of, treebank
from structsvm import LaRank

LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40))
COLUMNS = {
    "words": ("words", ""),
    "weights": ("weights", ""),
    "plain": ("plain ms", ".3f"),
    "zero_one": ("zero-one", ".2f"),
    "hamming": ("Hamming, margin", ".2f"),
    "f1_margin": ("F1, margin", ".2f"),
    "f1_slack": ("F1, slack", ".2f"),
    "fronts": ("fronts asked %", ".0f"),
    "edges": ("combinations in them", ".0f"),
}
NOTES = """
The grammar of all training sentences up to 40 words, rules exactly as they are; 40 sentences of each length. Plain: the
best parse, CPU milliseconds a sentence. The others in units of it. Weights: all zero; the logarithms of the PCFG's
probabilities; those after one pass of LaRank (F1, margin) over sentences up to 20 words.

Fronts: for F1 with margin rescaling, how often one chart's bound did not decide, and how many combinations of rule and
split the outside pass then left.
"""


def run(options):
    train, _ = treebank(40, options.quick)
    model, encoded = model_of(train)
    oracle = model.oracle
    model.estimate(encoded, 0.0)
    short = [tree for tree in encoded if len(tree.leaves()) <= 20]
    trained = LaRank(1.0, max_iter=1, random_state=0).solve(oracle.bind(None, short)).weights
    weights = {"zero": np.zeros(oracle.n_features), "PCFG": model.weights, "trained": trained}
    rows = []
    for low, high in LENGTHS[: 2 if options.quick else 4]:
        trees = [tree for tree in encoded if low <= len(tree.leaves()) <= high][:40]
        rows += [row(f"{low}-{high}", name, w, oracle, trees) for name, w in weights.items()]
    yield Table("Loss-augmented inference, in plain parses", COLUMNS, rows, notes(NOTES))


def row(words, name, w, oracle, trees):
    parser = oracle.parser()
    sentences = [oracle.grammar.sentence(tree.leaves()) for tree in trees]
    plain = repeat(lambda: [parser.parse(sentence, w) for sentence in sentences], 3)[1].cpu
    found = {"words": words, "weights": name, "plain": 1000.0 * plain / len(trees)}
    for key, loss, rescaling in (
        ("zero_one", "zero_one", "margin"),
        ("hamming", "hamming", "margin"),
        ("f1_margin", "f1", "margin"),
        ("f1_slack", "f1", "slack"),
    ):
        other = type(oracle)(oracle.grammar, loss=loss)
        problem = other.bind(None, trees, rescaling=rescaling)
        rounds = LaRank(rescaling=rescaling).start(problem).rounds
        found[key] = repeat(lambda rounds=rounds: rounds.violations(w), 3)[1].cpu / plain
        if key == "f1_margin":
            asked = max(problem.n_fronts, 1)
            found |= {"fronts": 100.0 * problem.n_fronts / (3 * len(trees)), "edges": problem.n_edges / asked}
    return found
