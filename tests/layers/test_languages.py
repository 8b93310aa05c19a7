"""Chains under a language, against the enumeration of all labellings."""

import sys
from itertools import product

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


def scores(seed, form, order=1):
    rng = np.random.default_rng(seed)

    def shape(order):
        own = (3,) * (order + 1)
        return {"one": own, "each": (4, 1, *own), "steps": (4, 4 - order, *own)}[form]

    pairs = [shape(1)] if order == 2 else []
    return [rng.normal(size=shape) for shape in ((4, 4, 3), shape(order), (3,), (3,), *pairs)]


def taken(parts, form, keep):
    """The parts of some entries."""
    return [part if k in (2, 3) or (k != 0 and form == "one") else part[keep] for k, part in enumerate(parts)]


def score(parts, entry, y):
    emissions, transitions, start, end = parts[:4]
    total = sum(emissions[entry, t, label] for t, label in enumerate(y)) + start[y[0]] + end[y[-1]]
    for part in (transitions, *parts[4:]):
        order = 1 if len(parts) == 4 or part is parts[4] else 2
        own = part if part.ndim == order + 1 else part[entry]
        for t in range(len(y) - order):
            table = own if own.ndim == order + 1 else own[t if len(own) > 1 else 0]
            total += table[tuple(y[t : t + order + 1])]
    return total


def valid(language, length):
    return [y for y in product(range(3), repeat=length) if language.accepts(y)]


@pytest.mark.parametrize("form", ["one", "each", "steps"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", LANGUAGES)
def test_all_verbs_by_enumeration(name, order, form):
    language, parts = LANGUAGES[name], scores(len(name), form, order)
    keep = [k for k in range(4) if valid(language, LENGTHS[k])]
    lengths = [LENGTHS[k] for k in keep]
    parts = taken(parts, form, keep)
    chain = Chain(order=order, language=language)
    every = [valid(language, length) for length in lengths]
    values = [np.array([score(parts, k, y) for y in own]) for k, own in enumerate(every)]
    log_z = [np.logaddexp.reduce(own) for own in values]
    np.testing.assert_allclose(chain.log_partition(*parts, lengths=lengths), log_z)
    best = chain.argmax(*parts, lengths=lengths)
    ranked, ranks = chain.kbest(*parts, k=3, lengths=lengths)
    labels, *others = chain.marginals(*parts, lengths=lengths)
    tops = chain.max_marginals(*parts, lengths=lengths)
    drawn = chain.sample(*parts, n_samples=20, seed=0, lengths=lengths)
    for k, length in enumerate(lengths):
        ranking = np.argsort(-values[k], kind="stable")
        assert tuple(best[k, :length]) == every[k][ranking[0]] and (best[k, length:] == -1).all()
        n = min(3, len(ranking))
        np.testing.assert_allclose(ranks[k, :n], values[k][ranking[:n]])
        assert [tuple(y[:length]) for y in ranked[k, :n]] == [every[k][i] for i in ranking[:n]]
        p = np.exp(values[k] - log_z[k])
        for t, label in product(range(length), range(3)):
            has = np.array([y[t] == label for y in every[k]])
            assert labels[k, t, label] == pytest.approx(p[has].sum(), abs=1e-9)
            top = values[k][has].max() if has.any() else -np.inf
            assert tops[k, t, label] == pytest.approx(top)
        for n, steps in [(order, others[0])] if order == 1 else [(2, others[0]), (1, others[3])]:
            expected = np.zeros((max(length - n, 0), *[3] * (n + 1)))
            for own, y in zip(p, every[k], strict=True):
                for t in range(length - n):
                    expected[t, *y[t : t + n + 1]] += own
            found = np.asarray(steps[k]).reshape(-1, *expected.shape[1:])
            found = found[: len(expected)] if form == "steps" else found.sum(axis=0)
            np.testing.assert_allclose(found, expected if form == "steps" else expected.sum(axis=0), atol=1e-9)
        assert {tuple(y[:length]) for y in drawn[k]} <= set(every[k])


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", [log_loss, hinge])
def test_gradients_by_finite_differences(loss, order):
    chain, parts = Chain(order=order, language=LANGUAGES["two rules"]), scores(0, "one", order)
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


@pytest.mark.parametrize("order", [1, 2])
def test_known_labels_are_those_of_the_language(order):
    """Labels known in part have the probability of all valid labellings that agree with it."""
    chain, parts = Chain(order=order, language=LANGUAGES["a rule"]), scores(1, "one", order)
    y = np.array([[0, -1, -1, 2], [-1, 0, -1, -1], [1, -1, -1, -1], [2, -1, -1, -1]])
    values, _ = log_loss(chain, parts, y, lengths=LENGTHS)
    for k, length in enumerate(LENGTHS):
        every = valid(chain.language, length)
        logs = np.array([score(parts, k, own) for own in every])
        agree = [all(b in (-1, a) for a, b in zip(own, y[k, :length], strict=True)) for own in every]
        assert values[k] == pytest.approx(np.logaddexp.reduce(logs) - np.logaddexp.reduce(logs[agree]))


def test_what_is_refused():
    parts = scores(0, "one")
    with pytest.raises(ValueError, match="emissions have 3 labels, and language has 2"):
        Chain(language=label_language(["a", "b"])).argmax(*parts)
    chain = Chain(language=LANGUAGES["an expression"])
    with pytest.raises(ValueError, match="y at batch entry 1 is no labelling of the language"):
        log_loss(chain, parts, np.array([[0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 0, 1]]))
    with pytest.raises(NoOutput, match="entry 0 has no output: each one has a part whose score is -inf"):
        Chain(language=label_language(NAMES, "a b c")).argmax(
            np.full_like(parts[0], -np.inf), parts[1], lengths=[3] * 4
        )
    with pytest.raises(ValueError, match="no labelling meets"):
        label_language(NAMES, "a b", "b a")
    with pytest.raises(ValueError, match="'z'"):
        label_language(NAMES, "a z")


@pytest.mark.parametrize("longest", [0, 1, 2, 3])
@pytest.mark.parametrize("form", ["one", "each", "steps"])
def test_order_2_over_short_batches(form, longest):
    """All labellings, as a language: the chain without one."""
    rng = np.random.default_rng(longest)

    def shape(order):
        own = (3,) * (order + 1)
        return {"one": own, "each": (2, 1, *own), "steps": (2, max(longest - order, 0), *own)}[form]

    parts = [rng.normal(size=size) for size in ((2, longest, 3), shape(2), (3,), (3,), shape(1))]
    lengths = [longest, max(longest - 1, 0)]
    ruled, free = Chain(order=2, language=LANGUAGES["all"]), Chain(order=2)
    np.testing.assert_allclose(
        ruled.log_partition(*parts, lengths=lengths), free.log_partition(*parts, lengths=lengths), atol=1e-12
    )
    np.testing.assert_array_equal(ruled.argmax(*parts, lengths=lengths), free.argmax(*parts, lengths=lengths))
    for mine, its in zip(
        ruled.marginals(*parts, lengths=lengths), free.marginals(*parts, lengths=lengths), strict=True
    ):
        np.testing.assert_allclose(mine, its, atol=1e-9)


VERBS = {
    "marginals": lambda chain, parts: chain.marginals(*parts),
    "kbest": lambda chain, parts: chain.kbest(*parts, k=2),
    "max_marginals": lambda chain, parts: chain.max_marginals(*parts),
    "sample": lambda chain, parts: chain.sample(*parts, n_samples=2, seed=0),
    "argmax": lambda chain, parts: chain.argmax(*parts),
}


@pytest.mark.parametrize(("verb", "each", "once"), [("marginals", 32, 0), ("kbest", 0, 0), ("argmax", 0, 0)])
@pytest.mark.parametrize(("form", "rows", "steps"), [("one", 1, 1), ("each", 4, 1), ("steps", 4, 3)])
def test_tables_of_a_large_language_are_refused(verb, each, once, form, rows, steps, monkeypatch):
    chain, parts = Chain(order=2, language=LANGUAGES["two rules"]), scores(0, form, 2)
    n = len(chain._nodes.labels)
    size = n**2 * (steps * (8 * rows + each) + once)
    monkeypatch.setattr("structsvm.layers.chain.MAX_TABLE_BYTES", size)
    VERBS[verb](chain, parts)
    monkeypatch.setattr("structsvm.layers.chain.MAX_TABLE_BYTES", size - 1)
    with pytest.raises(ValueError, match=f"{n} pairs of labels and states: 4 .* 4 tokens need tables of {size} bytes"):
        VERBS[verb](chain, parts)


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_fills_the_memory(verb):
    """40 labels, of which 6 at most once each: 60 GB, which is refused before anything is allocated."""
    names = [f"l{k}" for k in range(40)]
    chain = Chain(order=2, language=label_language(names, *(at_most_once(name) for name in names[:6])))
    parts = [np.zeros((1, 2, 40)), np.zeros((40, 40, 40))]
    with pytest.raises(ValueError, match="pairs of labels and states: 1 sequences of up to 2 tokens need tables"):
        VERBS[verb](chain, parts)


@pytest.mark.parametrize("order", [1, 2])
def test_lengths_that_a_language_does_not_have_are_named(order):
    parts, chain = scores(0, "one", order), Chain(order=order, language=label_language(NAMES, "(a b)+ | a b c"))
    lengths, y = [2, 0, 3, 1], np.array([[0, 1, -1, -1], [-1] * 4, [0, 1, 2, -1], [-1] * 4])
    says = r"Batch entry 3 has no output: the language has no labelling of length 1 \(the nearest: 2\)\."
    for asked in (
        lambda: chain.argmax(*parts, lengths=lengths),
        lambda: chain.marginals(*parts, lengths=lengths),
        lambda: chain.sample(*parts, n_samples=2, seed=0, lengths=lengths),
        lambda: log_loss(chain, parts, y, lengths=lengths),
    ):
        with pytest.raises(NoOutput, match=says):
            asked()
    assert np.isneginf(chain.log_partition(*parts, lengths=lengths)).tolist() == [False, False, False, True]
    # An entry without tokens has the empty labelling, whatever the language is.
    assert log_loss(chain, parts, y, lengths=[2, 0, 3, 2])[0][1] == 0.0
    assert (
        hinge(chain, parts, np.where(np.arange(4)[:, None] == 3, [0, 1, -1, -1], y), lengths=[2, 0, 3, 2])[0][1] == 0.0
    )


def lines_of(call):
    """How many lines of Python a call runs."""
    lines, before = 0, sys.gettrace()

    def count(_frame, event, _):
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("order", [1, 2])
def test_the_work_in_python_does_not_grow_with_a_language(order):
    names, parts = [f"l{k}" for k in range(5)], [np.zeros((1, 6, 5)), np.zeros((5,) * (order + 1))]
    small, large = (
        Chain(order=order, language=label_language(names, *(at_most_once(name) for name in names[:n]))) for n in (1, 3)
    )
    assert len(large._nodes.labels) > 2 * len(small._nodes.labels)
    small.marginals(*parts)
    of_small = lines_of(lambda: small.marginals(*parts))
    assert lines_of(lambda: large.marginals(*parts)) == of_small


def test_constraints_in_all_their_forms():
    once = at_most_once("a")
    one = label_language(NAMES, once, "(a b)* c?")
    for same in ([once, "(a b)* c?"], ["at_most_once(a)", label_language(NAMES, "(a b)* c?")]):
        assert np.array_equal(label_language(NAMES, same).following, one.following)
    tags = ["O", "B-X", "I-X"]
    bio = label_language(tags, ["bio", "at_most_once(X)"])
    assert bio.accepts([0, 1, 2, 0]) and not bio.accepts([0, 2]) and not bio.accepts([1, 1])
    with pytest.raises(TypeError, match="a constraint is a text, a Rule or an Automaton, got int"):
        label_language(NAMES, 3)
    with pytest.raises(ValueError, match=rf"the automaton has 3 labels, labels {len(NAMES) + 1}"):
        label_language([*NAMES, "more"], label_language(tags, "bio"))
