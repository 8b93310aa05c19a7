"""Margins under rules that are too many for one automaton: the same cuts as under the automaton of all."""

import pickle
from functools import reduce
from operator import and_

import numpy as np
import pytest
from structures_table import Chains

import structsvm.oracles._viterbi as compiled
from structsvm import CuttingPlane, FrankWolfe, LaRank
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.languages import Automaton, at_least_one, at_most_once

K, LABELS = 5, list("abcde")
FORMULATIONS = [
    {"rescaling": "margin", "penalty": "linear"},
    {"rescaling": "slack", "penalty": "linear"},
    {"rescaling": "margin", "penalty": "quadratic"},
    {"rescaling": "slack", "penalty": None},
    {"rescaling": None},
]


def rules_of(*rules):
    return tuple(rule.automaton(LABELS, [None] * K) for rule in rules)


ONCE = rules_of(*map(at_most_once, LABELS), at_least_one("a", "b"))


def valid_case(seed, order=1, masks=False, **options):
    """An oracle with rules and one with the automaton of all; sequences whose true labellings meet it."""
    rng = np.random.default_rng(seed)
    case = Chains(seed, K, tuple(rng.integers(1, 7, 10).tolist()), order, masks=masks, end=True, **options)
    one = reduce(and_, ONCE, Automaton.of_masks(*case.oracle.allowed, K))
    labels = []
    for length in case.tokens.lengths.tolist():
        every = np.stack(np.unravel_index(np.arange(K**length), (K,) * length), axis=1).astype(np.int32)
        ids, bounds = every.ravel(), np.arange(len(every) + 1) * length
        allowed = every[one.breaks(bounds, ids) < 0]
        labels.append(allowed[rng.integers(len(allowed))] if len(allowed) else None)
    chosen = np.array([own is not None for own in labels])
    lazy = case.oracle.within(case.oracle.allowed, None, ONCE)
    full = case.oracle.within((None, None, None), one)
    return case, lazy, full, case.tokens.take(chosen), np.concatenate([own for own in labels if own is not None])


def same(one, other):
    return one[0] == other[0] and all(np.array_equal(a, b) for a, b in zip(one[1], other[1], strict=True))


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
@pytest.mark.parametrize("order", [1, 2])
def test_cuts_are_those_of_the_whole_automaton(order, formulation, monkeypatch):
    monkeypatch.setattr(compiled, "MOST_BYTES", 1 << 10)  # problems are made anew
    n_changed = 0
    for seed in range(3):
        case, lazy, full, tokens, labels = valid_case(seed, order, masks=seed == 2, n_bigrams=seed % 2)
        for loss in ("hamming", "zero_one"):
            ours, theirs, free = (
                oracle.with_loss(loss).bind(tokens, labels, **formulation)
                for oracle in (lazy, full, case.oracle.within(lazy.allowed, None))
            )
            assert type(ours).__name__ == "LazyProblem" and type(theirs).__name__ == "ChainProblem"
            for k in range(6):
                w = case.weights(k)
                for i in range(len(tokens)):
                    assert same(ours.separate(i, w), theirs.separate(i, w))
                    n_changed += not np.array_equal(ours.most_violated(i, w), free.most_violated(i, w))
    assert n_changed > 20


@pytest.mark.parametrize("solver", [LaRank, FrankWolfe, CuttingPlane])
def test_solvers_reach_the_same_optimum(solver):
    """Ties may lead to other labellings on the way; each certificate holds for both problems."""
    _, lazy, full, tokens, labels = valid_case(1)
    runs = [solver(C=0.3, tol=1e-3, max_iter=2000).solve(one.bind(tokens, labels)).result() for one in (lazy, full)]
    assert all(run.gap <= 1e-3 * run.primal and run.primal > 0.1 for run in runs)
    assert max(run.dual for run in runs) <= min(run.primal for run in runs) * (1.0 + 1e-6)


def test_parts_and_copies_of_a_problem():
    case, lazy, full, tokens, labels = valid_case(3)
    whole, w = lazy.bind(tokens, labels), case.weights(0)
    theirs = full.bind(tokens, labels)
    part, again = whole.shard(2, 5), pickle.loads(pickle.dumps(whole))
    for i in range(2, 5):
        assert same(part.separate(i - 2, w), theirs.separate(i, w)) and same(
            again.separate(i, w), theirs.separate(i, w)
        )


@pytest.mark.parametrize(("most", "made_again"), [(0, True), (1 << 28, False)], ids=["no room", "room"])
def test_true_labellings_are_checked_once_whatever_is_made_anew(most, made_again, monkeypatch):
    checked, made = [], []
    broken_at, under = ViterbiOracle.broken_at, ViterbiOracle.under
    monkeypatch.setattr(ViterbiOracle, "broken_at", lambda *given: checked.append(given) or broken_at(*given))
    monkeypatch.setattr(ViterbiOracle, "under", lambda self, rules, i: made.append(rules) or under(self, rules, i))
    monkeypatch.setattr(compiled, "MOST_BYTES", most)
    _, lazy, _, tokens, labels = valid_case(1)
    problem = lazy.bind(tokens, labels)
    for w in np.random.default_rng(0).normal(size=(4, lazy.n_features)).astype(np.float32):
        for i in range(len(tokens)):
            problem.most_violated(i, w)
    assert len(checked) == 1 and len(set(made)) > 5
    assert (len(made) > len(set(made))) == made_again


def test_what_needs_all_rules_at_once_is_refused():
    _, lazy, _, tokens, labels = valid_case(4)
    with pytest.raises(ValueError, match=r"6 rules whose automaton .* too many for the log loss, a sum over all"):
        lazy.with_loss("log").bind(tokens, labels, rescaling=None)
    some = [np.eye(K, dtype=bool)[labels[a:b]] for a, b in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)]
    some[0][0] = True
    with pytest.raises(ValueError, match=r"6 rules whose automaton .* too many for labels that are known in part"):
        lazy.bind(tokens, some)
    problem = lazy.bind(tokens, labels, rescaling=None)
    with pytest.raises(ValueError, match=r"6 rules whose automaton .* only the best labelling can be found"):
        ConditionalLikelihood(C=1.0).solve(problem)


def test_labellings_that_break_too_many_at_once():
    """Each of 16 labels twice, apart: the true labelling has it in one run."""
    names = [f"L{k}" for k in range(16)]
    rules = tuple(at_most_once(name).automaton(names, [None] * 16) for name in names)
    oracle = ViterbiOracle(16, 16).within((None, None, None), None, rules)
    x = [np.zeros((1, 16)), np.eye(16)[np.arange(32) % 16]]
    problem, w = oracle.bind(x, [np.array([0]), np.arange(32) // 2]), np.zeros(oracle.n_features)
    assert problem.separate(0, w)[0] == 1.0
    w.reshape(-1, oracle.stride)[:16, :16] = 9.0 * np.eye(16)
    with pytest.raises(
        ValueError, match=r"sequence 1: labellings break 16 of the 16 rules of the constraints in turn, whose"
    ):
        problem.separate(1, w)


def test_scores_that_overflow_end_the_search():
    """Under rules a labelling breaks none of them, unless no score says which is the best."""
    names = [f"L{k}" for k in range(16)]
    some = [*map(at_most_once, names), at_least_one("L0"), at_least_one("L1")]
    rules = tuple(rule.automaton(names, [None] * 16) for rule in some)
    oracle = ViterbiOracle(16, 16).within((None, None, None), None, rules)
    problem = oracle.bind([np.full((4, 16), 1e30)], [np.arange(4)])
    for value in (-1e10, np.nan):
        with pytest.raises(ValueError, match=r"example 0: its scores overflow"):
            problem.separate(0, np.full(oracle.n_features, value, dtype=np.float32))
