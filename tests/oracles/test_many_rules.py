"""Margins under rules that are too many for one automaton: the same cuts as under the automaton of all."""

import pickle
import warnings
from functools import reduce
from operator import and_

import numpy as np
import pytest
from joblib import parallel_config
from structures_table import Chains

import structsvm.oracles._viterbi as compiled
from structsvm import AdviceWarning, CuttingPlane, FrankWolfe, LaRank
from structsvm.dual.parallel import Rounds
from structsvm.oracles.enumeration import lazily
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.languages import Automaton, at_least_one, at_most_once, automaton

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
    monkeypatch.setattr(ViterbiOracle, "under", lambda self, rules: made.append(rules) or under(self, rules))
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


MOST = 8
NAMES = [f"L{k}" for k in range(MOST)]
OF_MANY = tuple(at_most_once(name).automaton(NAMES, [None] * MOST) for name in NAMES)
EVERY = reduce(and_, OF_MANY)
JOINT = 4  # so many have 48 states together, five 112


@pytest.fixture
def small(monkeypatch):
    """Automata of few states alone."""
    monkeypatch.setattr(automaton, "MOST_STATES", 64)


def many_case(n=6, seed=0, rules=OF_MANY):
    """Sequences that have each label twice, apart, by their tokens; their true labels have one run of each."""
    rng, k = np.random.default_rng(seed), len(rules)
    oracle = ViterbiOracle(k, k).within((None, None, None), None, rules)
    gold = [rng.permutation(k)[np.arange(2 * k) // 2] for _ in range(n)]
    x = [np.eye(k)[rng.permutation(np.repeat(np.arange(k), 2))] for _ in range(n)]
    short = rng.permutation(k)[:2]
    return oracle, [*x, np.eye(k)[short]], [*gold, short]


def violation(problem, i, w):
    b, psi = problem.separate(i, w)
    return b - psi @ w


def valid(labels, n=MOST):
    ids = np.asarray(labels, dtype=np.int32)
    return all(rule.breaks(np.array([0, len(ids)]), ids)[0] < 0 for rule in OF_MANY[:n])


def test_labellings_that_break_too_many_at_once_keep_to_the_first_rules(small):
    oracle, x, y = many_case()
    assert oracle.n_joint_rules == JOINT
    problem, w = oracle.bind(x, y), np.zeros(oracle.n_features)
    w.reshape(-1, oracle.stride)[:MOST, :MOST] = 9.0 * np.eye(MOST)
    assert problem.inference == "exact" and not problem.relaxed.any()
    found = problem.most_violated(0, w)
    assert valid(found, JOINT) and not valid(found)
    assert valid(problem.most_violated(len(x) - 1, w))
    assert problem.inference == "relaxed" and problem.relaxed.tolist() == [True] + [False] * (len(x) - 1)
    theirs = oracle.within((None, None, None), reduce(and_, OF_MANY[:JOINT])).bind(x, y)
    assert same(problem.separate(0, w), theirs.separate(0, w))
    # From now on sequence 0 is relaxed, also where a labelling breaks few rules.
    for seed in range(20):
        weak = np.random.default_rng(seed).normal(size=oracle.n_features).astype(np.float32) / 9.0
        assert violation(problem, 0, weak) == pytest.approx(violation(theirs, 0, weak), rel=1e-5)
    shard = problem.shard(0, 2)
    shard.most_violated(1, w)
    assert problem.relaxed.tolist() == [True, True] + [False] * (len(x) - 2)  # shards share the marks
    assert pickle.loads(pickle.dumps(problem)).relaxed.tolist() == problem.relaxed.tolist()


def test_sequences_that_other_processes_find_relaxed_are_marked():
    """Also where their labellings are no cuts: in a round that asks for violations alone.

    Under the limit of states as it is, which processes have that are no forks of this one: eleven rules are too many.
    """
    names = [f"L{k}" for k in range(11)]
    oracle, x, y = many_case(rules=tuple(at_most_once(name).automaton(names, [None] * 11) for name in names))
    here, there = oracle.bind(x, y), oracle.bind(x, y)
    w = np.zeros(oracle.n_features, dtype=np.float32)
    w.reshape(-1, oracle.stride)[:11, :11] = 9.0 * np.eye(11)
    alone = Rounds(here).violations(w)
    with parallel_config(backend="loky", n_jobs=2):
        assert (Rounds(there, 2).violations(w) == alone).all()
    assert here.relaxed.any() and there.relaxed.tolist() == here.relaxed.tolist() and there.inference == "relaxed"


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", [LaRank, FrankWolfe, CuttingPlane])
def test_certificates_of_relaxed_sequences(solver, n_jobs, small):
    """The dual never passes the primal, which bounds that of all rules; a run that is restored, as cuts of other
    processes are, knows the sequences."""
    oracle, x, y = many_case()
    problem = oracle.bind(x, y)
    ours = solver(C=1.0, tol=1e-2, max_iter=300, n_jobs=n_jobs).solve(problem)
    result = ours.result()
    assert problem.relaxed.any() and result.inference == "relaxed" and "of the relaxed problem" in result.certificate()
    assert -1e-6 * result.primal <= result.gap <= 1e-2 * result.primal
    again = oracle.bind(x, y)
    run = solver(C=1.0, tol=1e-2, max_iter=300).start(again)
    run.set_state(ours.get_state())
    assert again.relaxed.any() and not (again.relaxed & ~problem.relaxed).any()


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


@pytest.mark.parametrize("order", [1, 2])
def test_the_best_labelling_found_keeps_all_rules_and_says_how_far_it_may_be(order, small):
    """Beside the best one by the automaton of all: never invalid, never said to be nearer than it is."""
    every = EVERY
    n_best = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = [rng.normal(size=(n, MOST)) for n in (3, 9, 12)]
        oracle = ViterbiOracle(MOST, MOST, order=order, end=True)
        w = rng.normal(size=oracle.n_features).astype(np.float32)
        w.reshape(-1, oracle.stride)[:, MOST:] = 0.0
        lazy, full = oracle.within((None, None, None), None, OF_MANY), oracle.within((None, None, None), every)
        scores = [
            [own.joint_feature(one, labels) @ w for one, labels in zip(x, found, strict=True)]
            for own in (lazy, full)
            for found in [np.split(decoded(own, x, w), [3, 12])]
        ]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = np.split(lazy.chain(x).decode(w), [3, 12])
        assert all(map(valid, found))
        below = np.subtract(scores[1], scores[0])
        assert (below >= -1e-4).all()
        bound = max([float(str(own.message).rsplit(" ", 1)[1]) for own in said], default=0.0)
        assert below.max() <= bound * (1.0 + 1e-3) + 1e-4
        n_best += int((below < 1e-4).sum())
    assert n_best >= 18  # 36 there are


def decoded(oracle, x, w):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return oracle.chain(x).decode(w)


def test_labels_that_may_stand_are_kept(small):
    """Masks and scores of tokens hold in the search beyond one automaton, too; where nothing was found, it is said."""
    oracle = ViterbiOracle(MOST, MOST).within((None, None, None), None, OF_MANY)
    x, w = [np.zeros((12, MOST))], np.zeros(oracle.n_features, dtype=np.float32)
    scores = np.full((12, oracle.stride), -np.inf, dtype=np.float32)
    scores[:, :MOST] = 5.0 * np.eye(MOST)[np.arange(12) % 6] + 0.1 * np.eye(MOST)[7]
    with pytest.warns(AdviceWarning, match=r"1 of 1 sequences break so many of the 8 rules"):
        found = oracle.chain(x).decode(w, scores=scores)
    assert valid(found) and scores[np.arange(12), found].sum() >= 20.0
    w.reshape(-1, oracle.stride)[:MOST, :MOST] = 5.0 * np.eye(MOST)
    may = np.ones((12, MOST), dtype=bool)
    may[3] = np.arange(MOST) == 7
    tokens = [np.eye(MOST)[np.arange(12) % 6]]
    with pytest.warns(AdviceWarning, match=r"their labels keep all rules"):
        found = oracle.chain(tokens).decode(w, allowed=[may])
    assert valid(found) and found[3] == 7
    may[:] = np.eye(MOST, dtype=bool)[np.arange(12) % 6]
    with pytest.raises(ValueError, match=r"sequence 0: .* leave"):
        oracle.chain(tokens).decode(w, allowed=[may])


def test_the_sequence_that_its_labels_leave_nothing_is_named(small):
    """Also where it is searched with others, under some rules."""
    oracle = ViterbiOracle(MOST, MOST).within((None, None, None), None, OF_MANY)
    w = np.zeros(oracle.n_features, dtype=np.float32)
    w.reshape(-1, oracle.stride)[:MOST, :MOST] = 5.0 * np.eye(MOST)
    valid, broken = np.eye(MOST)[[0, 0, 1]], np.eye(MOST)[[0, 1, 0]]
    may = np.eye(MOST, dtype=bool)[[0, 1, 0]]
    with pytest.raises(ValueError, match=r"^sequence 2: the masks leave no labelling"):
        oracle.chain([valid, broken, broken, valid]).decode(w, allowed=[None, None, may, None])
    with pytest.raises(ValueError, match=r"^sequence 2: the masks leave no labelling"):
        oracle.chain([valid, broken, broken, valid]).decode(w, start=1, stop=3, allowed=[None, may])


def counts_of(label, times, most):
    """How often a label stands, among these numbers modulo `most`."""
    following = np.tile(np.arange(most)[:, None], (1, 3))
    following[:, label] = (np.arange(most) + 1) % most
    return Automaton(following, np.isin(np.arange(most), times))


def test_a_rule_that_does_not_fit_beside_the_masks(small):
    """It is a group of its own, whose labellings keep to the states of the masks."""
    follows = np.ones((3, 3), dtype=bool)
    follows[0, 1] = follows[1, 2] = False
    rules = counts_of(0, (0, 1, 2), 40), counts_of(1, (0,), 5)
    oracle = ViterbiOracle(3, 3).within((follows, None, None), None, rules)
    assert oracle.n_joint_rules == 0
    x, w = np.eye(3)[[0] * 6 + [1, 1]], np.zeros(oracle.n_features, dtype=np.float32)
    w.reshape(-1, oracle.stride)[:3, :3] = np.eye(3)
    with pytest.warns(AdviceWarning, match=r"1 of 1 sequences break so many of the 2 rules"):
        found = oracle.chain([x]).decode(w)
    assert follows[found[:-1], found[1:]].all() and all(rule.accepts(found.tolist()) for rule in rules)
    assert x[np.arange(8), found].sum() == 4.0  # 0, 0, 2, and 1 five times


@pytest.mark.parametrize("length", [MOST, MOST + 1, 3 * MOST])
@pytest.mark.parametrize("first_of", [1, 3])
def test_rules_that_a_label_each_has_to_meet_are_met_in_time(length, first_of, small):
    """Nearly all labels of the shortest sequence have to change; its first ones must not, or not to any."""
    rules = tuple(at_least_one(name).automaton(NAMES, [None] * MOST) for name in NAMES)
    oracle = ViterbiOracle(MOST, MOST).within((None, None, None), None, rules)
    assert oracle.n_joint_rules < MOST
    w = np.zeros(oracle.n_features, dtype=np.float32)
    w.reshape(-1, oracle.stride)[:MOST, :MOST] = 5.0 * np.eye(MOST)
    may = np.ones((length, MOST), dtype=bool)
    may[:first_of, MOST // 2 :] = False
    with pytest.warns(AdviceWarning, match=r"1 of 1 sequences break so many of the 8 rules"):
        found = oracle.chain([np.eye(MOST)[[0] * length]]).decode(w, allowed=[may])
    assert set(found.tolist()) == set(range(MOST)) and may[np.arange(length), found].all()
    assert (found == 0).sum() == length - MOST + 1


def test_products_that_are_too_large_are_tried_once(small, monkeypatch):
    """By whatever problem or decoder of an oracle; copies for other processes and other losses begin anew."""
    given_up, both = [], Automaton.__and__

    def recorded(one, other):
        try:
            return both(one, other)
        except automaton.TooLarge:
            given_up.append((one, other))
            raise

    monkeypatch.setattr(Automaton, "__and__", recorded)
    oracle, x, y = many_case()
    w = np.zeros(oracle.n_features, dtype=np.float32)
    w.reshape(-1, oracle.stride)[:MOST, :MOST] = 9.0 * np.eye(MOST)
    found = []
    for n in range(2):
        found.append([decoded(oracle, x[:2], w), oracle.bind(x, y).most_violated(0, w)])
        if n == 0:
            assert len(given_up) > 2
            given_up.clear()
    assert not given_up and all(map(np.array_equal, *found))
    for other in (pickle.loads(pickle.dumps(oracle)), oracle.with_loss("zero_one")):
        assert not other.products.too_large and other.products.rules == oracle.products.rules
    assert oracle.within((None, None, None), None, OF_MANY[:2]).products.rules[1:] == list(OF_MANY[:2])


@pytest.mark.parametrize("most", [0, 1 << 26], ids=["no room", "room"])
def test_products_of_rules_are_kept_as_long_as_there_is_room(most, monkeypatch):
    monkeypatch.setattr(lazily, "MOST_BYTES", most)
    made, both = [], Automaton.__and__
    monkeypatch.setattr(Automaton, "__and__", lambda one, other: made.append(other) or both(one, other))
    products = lazily.Products(Automaton.of_masks(None, None, None, MOST), OF_MANY)
    for rules in (frozenset([4, 1]), frozenset([1, 4, 6]), frozenset([1, 4, 6]), frozenset([1])):
        found = products.of(rules)
        for n in (3, 5):
            every = np.stack(np.unravel_index(np.arange(MOST**n)[:: 7 * n], (MOST,) * n), axis=1).astype(np.int32)
            bounds = np.arange(len(every) + 1) * n
            valid = np.all([OF_MANY[k].breaks(bounds, every.ravel()) < 0 for k in rules], axis=0)
            np.testing.assert_array_equal(found.breaks(bounds, every.ravel()) < 0, valid)
    assert (len(made) == 3) == (most > 0) and sum(one.following.nbytes for one in products.found.values()) <= 1 << 26
    assert products.of(frozenset()) is products.rules[0]
