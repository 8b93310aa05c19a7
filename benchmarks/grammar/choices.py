"""Trials for parsing from tags, on two divisions of the training trees."""

from __future__ import annotations

import warnings

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from grammar.data import treebank
from structsvm import Perceptron
from structsvm.metrics import bracket_scores
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar
from structsvm.tasks.grammar.parameters import PASSES_OF_MANY
from structsvm.tasks.grammar.templates import default_templates, rule_templates

LONGEST = 25
# As it came before features by rule and relative frequencies, but for rows that say otherwise.
USUAL = {"C": 0.3, "random_state": 0, "decode": "tree", "grammar": TreebankGrammar(h=1), "prior": None, "max_iter": 4}
CHOICES = {
    "as it comes, C = 0.3": {},
    "C = 0.1": {"C": 0.1},
    "averaged perceptron, 6 passes": {
        "C": None,
        "random_state": None,
        "max_iter": None,
        "solver": Perceptron(max_iter=6, random_state=0),
    },
    "C = 0.1, h = 0": {"C": 0.1, "grammar": TreebankGrammar(h=0)},
    "C = 0.1, h = 2": {"C": 0.1, "grammar": TreebankGrammar(h=2)},
    "C = 0.1, v = 2": {"C": 0.1, "grammar": TreebankGrammar(h=1, v=2)},
    "C = 0.1, 8 passes": {"C": 0.1, "max_iter": 8},
    "F1 loss, C = 2": {"C": 2.0, "loss": "f1"},
    "three orders of examples, weights averaged": {"seeds": (0, 1, 2)},
}
BY_LENGTH = tuple(f"{side}.terminal length" for side in ("first", "last", "first-1", "last+1"))
STARTS = {
    "as it comes, C = 0.3": {},
    "C = 0.1, borders with the length": {
        "C": 0.1,
        "features": SpanFeatures(templates=[*default_templates("tags"), *BY_LENGTH]),
    },
    "C = 0.1, after the PCFG": {"C": 0.1, "start": "pcfg"},
    "C = 0.1, after the PCFG, 8 passes": {"C": 0.1, "start": "pcfg", "max_iter": 8},
    "F1 loss, C = 1, 2 passes after the PCFG": {"C": 1.0, "loss": "f1", "start": "pcfg", "max_iter": 2},
    "F1 loss, C = 0.01, 2 passes after the first row": {"C": 0.01, "loss": "f1", "start": {}, "max_iter": 2},
}
LIKELY = {
    "C = 0.3, the best tree": {},
    "C = 0.3, likely brackets": {"decode": "brackets"},
    "C = 0.1, the best tree": {"C": 0.1},
    "C = 0.1, likely brackets": {"C": 0.1, "decode": "brackets"},
}


def of_rules(kind, C=0.1):
    """Without templates by rule and with them, for the children that an intermediate knows (h)."""
    plain = default_templates(kind, rules=False)
    usual = {"C": C, "decode": "brackets", "terminals": kind}
    return {
        f"h = {h}{', features by rule' * bool(more)}": usual
        | {"grammar": TreebankGrammar(h=h), "features": SpanFeatures(templates=[*plain, *more])}
        for more in ((), rule_templates(kind))
        for h in (1, 0)
    }


def of_priors(kind, C=0.1):
    """From zero and from relative frequencies, for the children that an intermediate knows (h)."""
    usual = {"C": C, "decode": "brackets", "terminals": kind, "features": None, "max_iter": PASSES_OF_MANY}
    return {
        f"from {name}, h = {h}": usual | {"grammar": TreebankGrammar(h=h), "prior": prior}
        for name, prior in (("zero", None), ("frequencies", "pcfg"))
        for h in (0, 1)
    }


PARTS = {"choices": CHOICES, "choices-starts": STARTS, "choices-brackets": LIKELY}
PARTS |= {"choices-rules": of_rules("tags"), "choices-rules-both": of_rules("both")}
PARTS |= {"choices-rules-words": of_rules("words", C=1.0)}
PARTS |= {"choices-priors": of_priors("tags"), "choices-priors-both": of_priors("both")}
PARTS |= {"choices-priors-words": of_priors("words", C=1.0)}
CHOSEN = "C = 0.1, after the PCFG, 8 passes"
ALL = 70
WHOLE = {"choice": ("choice", ""), "f1": ("test F1 %", ".2f"), "cpu": ("training, CPU s", ".1f")}
COLUMNS = {
    "choice": ("choice", ""),
    "first": ("F1 %, first", ".2f"),
    "second": ("F1 %, second", ".2f"),
    "more": ("more than the first row", "+.2f"),
    "error": ("standard error", ".2f"),
    "cpu": ("training, CPU s", ".1f"),
}


def trained(train, seeds=(0,), start=None, **params):
    """A parser; of several orders of examples the weights are averaged. `start`: an earlier training, or "pcfg"."""
    if start is not None:
        usual = USUAL | {"warm_start": True}
        counted = start == "pcfg"
        parser = GrammarParser.from_counts(train, **usual) if counted else GrammarParser(**usual | start).fit(train)
        return parser.set_params(**USUAL | params).fit(train)
    params = {"features": SpanFeatures(templates=default_templates("tags", rules=False))} | params
    parsers = [GrammarParser(**USUAL | params | ({} if len(seeds) == 1 else {"random_state": s})) for s in seeds]
    for parser in parsers:
        parser.fit(train)
    if len(parsers) > 1:
        parsers[0].coef_[:] = np.mean([parser.coef_ for parser in parsers], axis=0)
    return parsers[0]


def counts(trees, parser):
    """Per sentence: brackets in both, and in each."""
    found = parser.predict([tree.tokens() for tree in trees])
    scores = [bracket_scores([tree], [other]) for tree, other in zip(trees, found, strict=True)]
    return np.array([(s.n_correct, s.n_true + s.n_predicted) for s in scores], dtype=np.float64)


def f1(counts):
    return 200.0 * counts[..., 0].sum(axis=-1) / counts[..., 1].sum(axis=-1)


def run(options):
    yield from (whole if options.part == "choices-whole" else divided)(options)


def whole(options):
    """The best choice of the divisions, once, on the test part."""
    train, test = treebank(ALL, options.quick)
    title = f"Up to {ALL} words, {len(train)} trees to train on, {len(test)} to test on"
    with warnings.catch_warnings(), Clock() as clock:
        warnings.simplefilter("ignore")
        parser = trained(train, **STARTS[CHOSEN])
        found = counts(test, parser)
    yield Table(title, WHOLE, [{"choice": CHOSEN, "f1": f1(found), "cpu": clock.cpu}], notes(OF_WHOLE))


def divided(options):
    trees, _ = treebank(LONGEST, options.quick)
    n = len(trees) // 5
    divisions = [(trees[:-n], trees[-n:]), (trees[n:], trees[:n])]
    kind = next(iter(PARTS[options.part].values())).get("terminals", "tags")
    title = f"From {kind}: {len(divisions[0][0])} trees to train on, {n} others of the training part to judge by, twice"
    table = Table(title, COLUMNS, notes=notes(NOTES))
    draws = np.random.default_rng(0).integers(0, 2 * n, size=(1000, 2 * n))
    base = None
    for choice, params in PARTS[options.part].items():
        with warnings.catch_warnings(), Clock() as clock:
            warnings.simplefilter("ignore")  # gaps of few passes, sentences without a parse
            both = [counts(test, trained(train, **params)) for train, test in divisions]
        every = np.concatenate(both)
        base = every if base is None else base
        differences = f1(every[draws]) - f1(base[draws])
        row = {"choice": choice, "first": f1(both[0]), "second": f1(both[1]), "cpu": clock.cpu / 2}
        table.rows.append(row | {"more": f1(every) - f1(base), "error": differences.std()})
        yield table


NOTES = f"""
Sentences up to {LONGEST} words of wsj_0001-0159: the last fifth of them to judge by, then the first fifth; nothing of
the test part. The difference is of both together, its standard error that of 1000 draws of sentences, paired. CPU
seconds are of one training with its judging.
"""
OF_WHOLE = """
From tags; the choice that is the best on the divisions of the training trees. CPU seconds are with judging.
"""
