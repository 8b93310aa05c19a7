"""Sums of models from tags: a margin, an averaged perceptron and the log loss, on the divisions of `choices`."""

from __future__ import annotations

import warnings

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from grammar.choices import ALL, CHOICES, COLUMNS, LONGEST, WHOLE, counts, f1, trained
from grammar.data import treebank
from structsvm.metrics import bracket_scores

MODELS = {
    "margin, C = 0.1": CHOICES["C = 0.1"],
    "averaged perceptron": CHOICES["averaged perceptron, 6 passes"],
    "log loss, C = 1": {"C": 1.0, "loss": "log", "max_iter": 4},
}
SUMS = [["margin, C = 0.1"], ["averaged perceptron"], ["log loss, C = 1"]]
SUMS += [[SUMS[0][0], SUMS[1][0]], [SUMS[0][0], SUMS[2][0]], [*MODELS]]


def run(options):
    yield from (whole if options.part == "mixtures-whole" else divided)(options)


def whole(options):
    """The choice of the divisions, once, on the test part."""
    train, test = treebank(ALL, options.quick)
    title = f"Up to {ALL} words, {len(train)} trees to train on, {len(test)} to test on"
    table = Table(title, WHOLE, notes=notes(OF_WHOLE))
    sentences, weights, cpu = [tree.tokens() for tree in test], 0.0, 0.0
    for name in SUMS[3]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gaps of few passes, sentences without a parse
            with Clock() as training:
                parser = trained(train, **MODELS[name])
            found = 100.0 * bracket_scores(test, parser.predict(sentences)).f1
            table.rows.append({"choice": name, "f1": found, "cpu": training.cpu})
            yield table
            weights, cpu = weights + parser.coef_ / np.linalg.norm(parser.coef_), cpu + training.cpu
    parser.coef_[:] = weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = 100.0 * bracket_scores(test, parser.predict(sentences)).f1
    table.rows.append({"choice": " + ".join(SUMS[3]), "f1": found, "cpu": cpu})
    yield table


def divided(options):
    trees, _ = treebank(LONGEST, options.quick)
    n = len(trees) // 5
    divisions = [(trees[:-n], trees[-n:]), (trees[n:], trees[:n])]
    table = Table(f"Sums of models from tags, {n} trees to judge by, twice", COLUMNS, notes=notes(NOTES))
    draws = np.random.default_rng(0).integers(0, 2 * n, size=(1000, 2 * n))
    seconds, weights, found = {}, [{}, {}], {}
    for name, params in MODELS.items():
        with warnings.catch_warnings(), Clock() as clock:
            warnings.simplefilter("ignore")  # gaps of few passes
            parsers = [trained(train, **params) for train, _ in divisions]
        seconds[name] = clock.cpu / 2
        for known, parser in zip(weights, parsers, strict=True):
            known[name] = parser.coef_ / np.linalg.norm(parser.coef_)
        for names in SUMS:
            if names[-1] != name:
                continue
            for parser, known in zip(parsers, weights, strict=True):
                parser.coef_[:] = sum(known[one] for one in names)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # sentences without a parse
                both = [counts(test, parser) for (_, test), parser in zip(divisions, parsers, strict=True)]
            every = found[" + ".join(names)] = np.concatenate(both)
            base = found[SUMS[0][0]]
            row = {"choice": " + ".join(names), "first": f1(both[0]), "second": f1(both[1])}
            row |= {"more": f1(every) - f1(base), "error": (f1(every[draws]) - f1(base[draws])).std()}
            table.rows.append(row | {"cpu": sum(seconds[one] for one in names)})
            yield table


NOTES = f"""
Sentences, divisions and errors are those of the part of choices (up to {LONGEST} words). Weights are scaled to the
norm 1 and added up. The log loss: four passes of `ConditionalLikelihood`. CPU seconds are of one training of all
models in it.
"""
OF_WHOLE = """
From tags; the sum that the divisions of the training trees have chosen, and its two models. C is given.
"""
