"""Conformal sets of spans, heads and whole trees over many splits: how often all true ones are inside, and how many."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import betabinom

from common.report import Table, notes
from risk.pools import SEED, pool_of, shuffled
from structsvm.datasets import fetch_treebank_sample, fetch_ud_english_ewt
from structsvm.risk.best_outputs import ranked, strangeness_of_truth
from structsvm.risk.bounds import conformal_quantile, conformal_rank
from structsvm.risk.spans import read_spans, strangest
from structsvm.risk.strangeness import units_of, values_at
from structsvm.tasks import DependencyParser, GrammarParser

SPLITS, QUICK = 200, 20
ALPHAS = (0.05, 0.1, 0.2, 0.5)
# Words of a sentence at most, and those of further ones to train on; trees in a set at most.
LONGEST, LONGER, K_BEST = 15, 25, (20, 200)
COLUMNS = {
    "data": ("data", ""),
    "what": ("a set of", ""),
    "never": ("outputs whose truth is in no set %", ".1f"),
    "alpha": ("promise: all true ones inside %", "g"),
    "refused": ("splits that calibrate refuses %", ".1f"),
    "covered": ("inside %", ".2f"),
    "within": ("splits within their band of 95 %", ".1f"),
    "size": ("in a set", ".2f"),
    "true": ("true ones", ".2f"),
}
ABOUT = """
Half of the pool is held out, the other half is what comes later; over all splits that are not refused. A set of spans
has all that are as probable as its threshold, and the truth is inside if all true ones are. A set of heads is that of a
word, and all words of a sentence have to have theirs inside. A set of trees is some of the k best.

Truth in no set: a true span has a probability below 0.001, a true tree is none of the k best. Where these are too many
for a promise, calibrate refuses it. Splits that are not refused, beside others that are, have fewer such outputs in
their first half, and more in the other.

The band of a split is what a beta-binomial distribution gives for these numbers, with continuous scores; scores that
are tied, and outputs without true spans, lift it above.
"""


@dataclass
class Candidates:
    """Candidates for the sets of the outputs of a pool.

    Attributes
    ----------
    data, what : str
    worst : ndarray (n,)
        The strangeness of the strangest true part of each output.
    every : list of ndarray
        The strangeness of all candidates of each output.
    n_units : ndarray (n,)
        The number of sets that an output has.
    true : float
        How many true parts a set has, as a mean.
    """

    data: str
    what: str
    worst: np.ndarray
    every: list
    n_units: np.ndarray
    true: float


def spans(data, what, estimator, X, y):
    """Entities, fields or brackets."""
    likely, true = read_spans(estimator, X, y)
    every = np.split(1.0 - likely.chance, likely.offsets[1:-1])
    return Candidates(data, what, strangest(likely, true), every, np.ones(len(true)), true.sizes.mean())


def trees(data, estimator, X, y, k):
    """Whole trees, some of the k best."""
    every = [np.array([strange for _, strange in own]) for own in ranked(estimator, X, k)]
    worst = strangeness_of_truth(estimator, X, y, k)
    return Candidates(data, f"trees, of the {k} best", worst, every, np.ones(len(worst)), 1.0)


def heads(data, estimator, X, y):
    """Heads of words."""
    units = units_of(estimator)
    every, true = units.strange(estimator, X), units.true(estimator, X, y)
    worst = np.array([values_at(*pair).max() for pair in zip(every, true, strict=True)])
    return Candidates(
        data, "heads of a word", worst, [own.ravel() for own in every], np.array(list(map(len, true))), 1.0
    )


def of_taggers(quick):
    """Spans of the taggers of other parts."""
    for name, what in (("entities (Spanish)", "entities"), ("addresses", "fields")):
        pool = pool_of(name, quick)
        yield spans(name, what, pool.estimator, pool.X, pool.y)


def of_a_treebank(quick):
    """Brackets and trees of short sentences."""
    name, parser, X, later = treebank(quick)
    yield spans(name, "brackets", parser, X, later)
    for k in K_BEST:
        yield trees(name, parser, X, later, k)


@cache
def treebank(quick):
    """A parser of short sentences: half of them, and longer ones, are trained on. With the others, and its name."""
    data = fetch_treebank_sample()
    every = [tree for tree in [*data.train, *data.test] if len(tree.leaves()) <= LONGER]
    short = [tree for tree in every if len(tree.leaves()) <= LONGEST]
    short, longer = shuffled(short, short)[0], [tree for tree in every if len(tree.leaves()) > LONGEST]
    n = 100 if quick else len(short) // 2
    parser = GrammarParser(terminals="both", probability=True, random_state=SEED)
    parser.fit(short[:n] if quick else [*short[:n], *longer])
    later = short[n : 3 * n]
    return "treebank (WSJ)", parser, [tree.tokens() for tree in later], later


@cache
def dependencies(quick):
    """A parser of sentences of web pages, with later ones, and its name."""
    data, n = fetch_ud_english_ewt(), 100 if quick else 1000
    parser = DependencyParser(probability=True, random_state=SEED).fit(shuffled(data.train, data.train)[0][:n])
    later = data.dev[: 2 * n]
    return "dependencies (UD English EWT)", parser, [tree.words for tree in later], [tree.arcs for tree in later]


def parsers(quick):
    """Names, parsers and examples that they have not seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [treebank(quick), dependencies(quick)]


def candidates(quick):
    yield from of_taggers(quick)
    yield from of_a_treebank(quick)
    yield heads(*dependencies(quick))


def run(options):
    made = Table("Sets of spans, heads and trees", COLUMNS, notes=notes(ABOUT))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for own in candidates(options.quick):
            made.rows += [row_of(own, alpha, QUICK if options.quick else SPLITS) for alpha in ALPHAS]
            yield made


def row_of(own, alpha, n_splits):
    """The means over splits."""
    rng, covered, within, sizes, n = np.random.default_rng(SEED), [], [], [], len(own.worst)
    for _ in range(n_splits):
        order = rng.permutation(n)
        held, later = order[: n // 2], order[n // 2 :]
        most = conformal_quantile(own.worst[held], alpha)
        if most == np.inf:
            continue
        inside, m, rank = int((own.worst[later] <= most).sum()), len(later), conformal_rank(len(held), alpha)
        low, high = betabinom.interval(0.95, m, rank, len(held) + 1 - rank)
        covered.append(inside / m)
        within.append(low <= inside <= high)
        sizes.append(sum(int((own.every[i] <= most).sum()) for i in later) / own.n_units[later].sum())
    row = {"data": own.data, "what": own.what, "alpha": 100.0 * (1.0 - alpha), "true": own.true}
    row |= {"never": 100.0 * (own.worst == np.inf).mean(), "refused": 100.0 * (1.0 - len(covered) / n_splits)}
    if covered:
        row |= {"covered": 100.0 * np.mean(covered), "within": 100.0 * np.mean(within), "size": np.mean(sizes)}
    return row
