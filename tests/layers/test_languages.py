"""Chains under a language, against the enumeration of all labellings."""

from itertools import pairwise, product

import numpy as np
import pytest

from structsvm.layers import Chain, hinge, label_language, log_loss
from structsvm.layers.structure import NoOutput
from structsvm.structures.languages import Automaton, at_most_once, max_length

NAMES = ["a", "b", "c"]
LANGUAGES = {
    "a rule": label_language(NAMES, at_most_once("a")),
    "two rules": label_language(NAMES, "at_most_once(a, b)", max_length("c", 2)),
    "an expression": label_language(NAMES, "(a b)* c?"),
    "a table": Automaton([[1, 0, 2], [2, 1, -1], [0, -1, 1]], [True, False, True]),
    "all": label_language(NAMES),
}
LENGTHS = [4, 2, 3, 1]


def scores(seed, form):
    rng = np.random.default_rng(seed)
    shapes = {"one": (3, 3), "each": (4, 1, 3, 3), "steps": (4, 3, 3, 3)}
    return [rng.normal(size=shape) for shape in ((4, 4, 3), shapes[form], (3,), (3,))]


def score(parts, entry, y):
    emissions, transitions, start, end = parts
    steps = transitions if transitions.ndim == 2 else transitions[entry]
    total = sum(emissions[entry, t, label] for t, label in enumerate(y)) + start[y[0]] + end[y[-1]]
    for t, (a, b) in enumerate(pairwise(y)):
        table = steps if steps.ndim == 2 else steps[t if len(steps) > 1 else 0]
        total += table[a, b]
    return total


def valid(language, length):
    return [y for y in product(range(3), repeat=length) if language.accepts(y)]


@pytest.mark.parametrize("form", ["one", "each", "steps"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_all_verbs_by_enumeration(name, form):
    language, parts = LANGUAGES[name], scores(len(name), form)
    keep = [k for k in range(4) if valid(language, LENGTHS[k])]
    lengths = [LENGTHS[k] for k in keep]
    parts = [parts[0][keep], parts[1] if form == "one" else parts[1][keep], *parts[2:]]
    chain = Chain(language=language)
    every = [valid(language, length) for length in lengths]
    values = [np.array([score(parts, k, y) for y in own]) for k, own in enumerate(every)]
    log_z = [np.logaddexp.reduce(own) for own in values]
    np.testing.assert_allclose(chain.log_partition(*parts, lengths=lengths), log_z)
    best = chain.argmax(*parts, lengths=lengths)
    ranked, ranks = chain.kbest(*parts, k=3, lengths=lengths)
    labels, steps, *_ = chain.marginals(*parts, lengths=lengths)
    tops = chain.max_marginals(*parts, lengths=lengths)
    drawn = chain.sample(*parts, n_samples=20, seed=0, lengths=lengths)
    for k, length in enumerate(lengths):
        order = np.argsort(-values[k], kind="stable")
        assert tuple(best[k, :length]) == every[k][order[0]] and (best[k, length:] == -1).all()
        n = min(3, len(order))
        np.testing.assert_allclose(ranks[k, :n], values[k][order[:n]])
        assert [tuple(y[:length]) for y in ranked[k, :n]] == [every[k][i] for i in order[:n]]
        p = np.exp(values[k] - log_z[k])
        for t, label in product(range(length), range(3)):
            has = np.array([y[t] == label for y in every[k]])
            assert labels[k, t, label] == pytest.approx(p[has].sum(), abs=1e-9)
            top = values[k][has].max() if has.any() else -np.inf
            assert tops[k, t, label] == pytest.approx(top)
        pairs = np.zeros((max(length - 1, 0), 3, 3))
        for own, y in zip(p, every[k], strict=True):
            for t in range(length - 1):
                pairs[t, y[t], y[t + 1]] += own
        found = np.asarray(steps[k]).reshape(-1, 3, 3)
        found = found[: max(length - 1, 0)] if form == "steps" else found.sum(axis=0)
        np.testing.assert_allclose(found, pairs if form == "steps" else pairs.sum(axis=0), atol=1e-9)
        assert {tuple(y[:length]) for y in drawn[k]} <= set(every[k])


@pytest.mark.parametrize("loss", [log_loss, hinge])
def test_gradients_by_finite_differences(loss):
    chain, parts = Chain(language=LANGUAGES["two rules"]), scores(0, "one")
    y = np.full((4, 4), -1, dtype=np.int32)
    for k, length in enumerate(LENGTHS):
        every = valid(chain.language, length)
        y[k, :length] = every[k % len(every)]
    value, gradients = loss(chain, parts, y, lengths=LENGTHS)
    for part, gradient in zip(parts, gradients, strict=True):
        place = tuple(np.unravel_index(part.size // 2, part.shape))
        part[place] += 1e-6
        higher = loss(chain, parts, y, lengths=LENGTHS)[0].sum()
        part[place] -= 2e-6
        lower = loss(chain, parts, y, lengths=LENGTHS)[0].sum()
        part[place] += 1e-6
        total = gradient.sum(axis=0)[place] if gradient.ndim > part.ndim else gradient[place]
        assert total == pytest.approx((higher - lower) / 2e-6, abs=1e-4)
    assert (value >= 0.0).all() or loss is hinge


def test_known_labels_are_those_of_the_language():
    """Labels known in part have the probability of all valid labellings that agree with it."""
    chain, parts = Chain(language=LANGUAGES["a rule"]), scores(1, "one")
    y = np.array([[0, -1, -1, 2], [-1, 0, -1, -1], [1, -1, -1, -1], [2, -1, -1, -1]])
    values, _ = log_loss(chain, parts, y, lengths=LENGTHS)
    for k, length in enumerate(LENGTHS):
        every = valid(chain.language, length)
        logs = np.array([score(parts, k, own) for own in every])
        agree = [all(b in (-1, a) for a, b in zip(own, y[k, :length], strict=True)) for own in every]
        assert values[k] == pytest.approx(np.logaddexp.reduce(logs) - np.logaddexp.reduce(logs[agree]))


def test_what_is_refused():
    parts = scores(0, "one")
    with pytest.raises(ValueError, match=r"language is for chains of order 1\. Got order=2"):
        Chain(order=2, language=LANGUAGES["all"])
    with pytest.raises(ValueError, match="emissions have 3 labels, and language has 2"):
        Chain(language=label_language(["a", "b"])).argmax(*parts)
    chain = Chain(language=LANGUAGES["an expression"])
    with pytest.raises(ValueError, match="y at batch entry 1 is no labelling of the language"):
        log_loss(chain, parts, np.array([[0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1]]))
    with pytest.raises(NoOutput):
        Chain(language=label_language(NAMES, "a b c")).argmax(*parts, lengths=[4, 3, 3, 3])
    with pytest.raises(ValueError, match="no labelling meets"):
        label_language(NAMES, "a b", "b a")
    with pytest.raises(ValueError, match="'z'"):
        label_language(NAMES, "a z")
