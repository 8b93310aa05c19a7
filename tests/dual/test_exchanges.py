"""Workers that exchange changes of w, as copies in this process: the optimum of one thread, certificates, losses."""

import pickle

import numpy as np
import pytest
from python_oracles import Data, Multiclass

from structsvm import AdviceWarning, CuttingPlane, FrankWolfe, LaRank, LatentSVM, PassiveAggressive
from structsvm.dual import exchanges, members
from structsvm.dual import threads as dual_threads
from structsvm.dual._dual import DualState
from structsvm.dual._rounds import violations
from structsvm.dual._weights import add_sparse, sum_up
from structsvm.dual.cuts import CUTS, mixed
from structsvm.dual.exchanges import ExchangeSchedule, SharedState
from structsvm.dual.members import Member, Shard, SharedWeights
from structsvm.oracles import taxonomy
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Bar
from structsvm.shards.storage import dumps_references
from structsvm.solvers import online
from structsvm.structures.taxonomy import Taxonomy


def chains(n=60, oracle=ViterbiOracle, **formulation):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(t, 6)) for t in rng.integers(1, 9, n)]
    w = rng.normal(size=(6, 3))
    labels = [np.argmax(x @ w + rng.normal(size=(len(x), 3)), axis=1) for x in X]
    return oracle(3, 6).bind(X, labels, **formulation)


class Copies:
    """Workers without a cluster: what is sent to them is pickled."""

    made: list["Copies"] = []
    is_lost = False

    def __init__(self, members):
        self.members, self.is_open = members, True
        self.there = [self.copy(k) for k in range(len(members))]
        self.made.append(self)

    def copy(self, k):
        return pickle.loads(dumps_references(self.members[k]))

    def all_to_all(self, first, then, arguments):
        found = self.map(first, None, [arguments] * len(self.there))
        return self.map(then, found, [arguments] * len(self.there))

    def lose(self, k):
        """As `Cluster` does: who is asked next is a copy of what the client has."""
        self.there[k] = self.copy(k)

    def map(self, function, shared, arguments):
        assert self.is_open and len(arguments) == len(self.there)
        return [function(member, shared, *rest) for member, rest in zip(self.there, arguments, strict=True)]

    def close(self):
        self.is_open = False


@pytest.fixture(autouse=True)
def workers(monkeypatch):
    """Lets solvers find a cluster of three workers, one of which has two threads."""
    threads = [1, 2, 1]
    monkeypatch.setattr(Copies, "made", [])
    monkeypatch.setattr(online, "cluster_client", lambda: "a client")
    monkeypatch.setattr(online, "on_workers", lambda client: {"n_threads": threads, "connect": Copies})
    monkeypatch.setattr(exchanges, "DEAR_SECONDS", 10.0)  # whatever else the machine does
    monkeypatch.setattr(exchanges, "stride_for", lambda work, rest, n_parts: 1)
    return threads


def free(solver):
    return type(solver)(**solver.get_params() | {"deterministic": False})


def start(solver, problem=None):
    run = free(solver).start(chains(**solver.formulation()) if problem is None else problem)
    assert isinstance(run.state, SharedState) and isinstance(run.schedule, ExchangeSchedule)
    return run


def advance(run, n_passes=1):
    last = run.n_iter + n_passes
    while run.n_iter < last:
        run.advance()
    return run


def dual_of(run):
    """The dual at the alphas, by a state that knows nothing of members."""
    state = DualState(run.problem, run.C)
    state.set_state(run.state.get_state())
    return state.settle()


STRIDE_FOR = exchanges.stride_for
LARANK = LaRank(C=0.3, tol=2e-2, max_iter=1000, random_state=0)


@pytest.mark.parametrize(
    "solver",
    [
        LARANK,
        LaRank(C=0.3, tol=5e-2, max_iter=1000, penalty="quadratic", schedule="fixed", random_state=0),
        LaRank(C=0.3, tol=5e-2, max_iter=1000, rescaling="slack", average=False, random_state=0),
        FrankWolfe(C=0.3, tol=5e-2, random_state=0),
    ],
    ids=repr,
)
def test_the_optimum_is_that_of_one_thread(solver):
    problem = chains(**solver.formulation())
    alone = solver.solve(problem)
    run = free(solver).solve(problem)
    assert run.status == "converged"
    assert run.dual == pytest.approx(alone.dual, rel=2.0 * solver.tol)
    assert run.dual == pytest.approx(dual_of(run), rel=1e-6)
    assert run.primal == pytest.approx(run.primal_at(run.weights), rel=1e-9)
    assert run.result().n_argmax >= run.n_iter * problem.n_samples
    assert [copies.is_open for copies in Copies.made] == [False]
    assert run.state.cluster is None


@pytest.mark.parametrize("threads", [[1], [1] * 5, [1] * 100], ids=len)
def test_any_number_of_workers(workers, threads):
    workers[:] = threads
    run = advance(start(LARANK))
    assert len(run.state.members) == min(len(threads), 60)
    assert [span for part in run.state.spans for span in part][-1][1] == 60
    assert run.state.n_argmax == 60
    assert run.dual == pytest.approx(dual_of(run), rel=1e-6)


def documents(known=None, n=120):
    """Documents of a class stand one after the other."""
    rng, y = np.random.default_rng(0), np.arange(n) * 4 // n
    X = rng.normal(size=(n, 6)) + 2.0 * np.eye(4, 6)[y]
    return taxonomy.TaxonomyOracle(Taxonomy.flat("abcd"), 6).bind(X, y if known is None else known)


def test_documents_are_dealt_out_in_mixed_order():
    problem = documents()
    run = advance(start(LARANK, problem), 2)
    state, rounds, w = run.state, run.rounds, run.weights
    assert sorted(state.order) == list(range(120))
    dealt = [np.concatenate([part.labels for part in member.parts]) for member in state.members]
    np.testing.assert_array_equal(np.concatenate(dealt), problem.labels[state.order])
    assert all(np.bincount(labels, minlength=4).min() >= 4 for labels in dealt)
    assert run.dual == pytest.approx(dual_of(run), rel=1e-6)
    found = violations(problem, w)
    np.testing.assert_allclose(rounds.violations(w), found, rtol=1e-5)
    part = rounds.part(0.0, 0.5)
    assert 36 <= len(set(part)) == len(part) <= 60
    np.testing.assert_allclose(rounds.violations(w, 0.0, 0.5), found[part], rtol=1e-5)
    alone = DualState(problem, run.C)
    alone.set_state(state.get_state())
    np.testing.assert_allclose(state.known_violations(w), alone.known_violations(w), rtol=1e-5)


def test_mixed_documents_resume_what_one_thread_has_begun(workers):
    workers[:] = [1, 1]
    problem = documents()
    alone = advance(LARANK.start(problem), 2)
    run = start(LARANK, problem)
    run.set_state(alone.get_state())
    assert run.dual == pytest.approx(alone.dual, rel=1e-6)
    back = run.get_state()
    for name in CUTS:
        np.testing.assert_array_equal(back[name], alone.get_state()[name])
    run = free(LARANK).solve(problem, run=run)
    assert run.status == "converged" and run.dual > alone.dual


def test_mixed_documents_that_are_known_in_part(workers):
    workers[:] = [1, 1]
    sets = [[0], [1], [2], [3], [0, 1], [1, 2, 3]]
    which = np.array([4, 4, 5, 5])[np.arange(120) // 30]
    which[::3] = np.arange(120)[::3] // 30
    problem = documents(taxonomy.Candidates.of(sets, which))
    solver = LaRank(C=0.3, tol=1e-3, max_iter=1000, random_state=0)
    alone, run = (LatentSVM(one).solve(problem) for one in (solver, free(solver)))
    assert run.status == "converged" and run.round > 1 and run.inner.state.order is not None
    assert run.primal == pytest.approx(alone.primal, rel=2e-3)


def test_weights_of_python_oracles_and_hard_margins(workers):
    workers[:] = [1, 1]  # users' classes are asked by one thread at a time
    for penalty in ("linear", None):
        solver = LaRank(C=0.5, penalty=penalty, max_iter=3, random_state=0)
        run = free(solver).solve(Data(0, n=30, penalty=penalty, separable=True).bind())
        assert run.dual == pytest.approx(dual_of(run), rel=1e-9)
        assert 0.0 < run.dual <= run.primal


def test_weights_to_start_from_and_weights_of_examples():
    rng = np.random.default_rng(1)
    problem = chains()
    w, weight = 0.1 * rng.normal(size=problem.n_features), rng.integers(0, 3, 60).astype(float)
    runs = [s.solve(problem, base=w, sample_weight=weight) for s in (LARANK, free(LARANK))]
    assert runs[1].dual == pytest.approx(runs[0].dual, rel=0.04) and runs[1].status == "converged"


def test_approximate_inference_claims_no_gap(workers):
    workers[:] = [1, 1]
    data = Data(0, n=30)
    data.oracle.inference = "approximate"
    problem = data.bind()
    run = free(LaRank(C=0.3, max_iter=4, random_state=0)).solve(problem)
    assert np.isnan(run.primal) and run.dual <= run.primal_found
    known = DualState(problem, run.C)
    known.set_state(run.state.get_state())
    np.testing.assert_array_equal(run.state.known_violations(run.weights), known.known_violations(run.weights))


def test_a_state_on_weights_of_others():
    problem, other = chains(), advance(LARANK.start(chains()))
    w = np.ones(problem.n_features, dtype=problem.weight_dtype)
    state = DualState(problem, other.C, on=w)
    state.set_state(other.state.get_state())
    assert state.weights is w and (w == 1.0).all() and state.n_cuts == other.state.n_cuts > 0
    sums = np.zeros(len(w))
    linear, ridge = state.add_sums(sums)
    np.testing.assert_allclose(sums, other.state.weights, atol=1e-6)
    assert linear - 0.5 * sums @ sums - 0.5 * ridge == pytest.approx(other.state.dual)
    schedule = LARANK.schedule_on(state, None, other.C)
    schedule.start_pass(0)
    schedule.run(np.inf)
    assert (w != 1.0).any()
    state.settle()
    assert (w != 1.0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sum_of_sparse_vectors(dtype):
    rng, n = np.random.default_rng(0), 200_000
    edges = [0, 65535, 65536, n - 1]
    where = [np.unique([*rng.integers(0, n, size), *edges]) for size in (5000, 1, 70_000)]
    values = [rng.integers(-9, 9, len(indices)).astype(dtype) for indices in where]
    values[0][-1], values[1][-1], values[2][-1] = 1.0, 1.0, -2.0
    expected = np.zeros(n, dtype=dtype)
    for indices, vector in zip(where, values, strict=True):
        expected[indices] += vector
    bounds = np.cumsum([0, *map(len, where)])
    where, values = np.concatenate(where), np.concatenate(values)
    assert sum_up(where, values, bounds, n) == np.square(expected, dtype=float).sum()
    assert np.count_nonzero(values) == np.count_nonzero(expected)
    w, copy, u = np.ones(n, dtype=dtype), np.full(n, 5.0, dtype=dtype), np.full(n, 2.0, dtype=dtype)
    add_sparse(where, values, w, copy, u, 3.0)
    np.testing.assert_array_equal(w, 1.0 + expected)
    np.testing.assert_array_equal(u, 2.0 + 3.0 * expected)
    touched = np.isin(np.arange(n), where)
    np.testing.assert_array_equal(copy, np.where(touched, w, 5.0))
    add_sparse(where, values, w, copy, None, 0.0)
    np.testing.assert_array_equal(w, 1.0 + 2.0 * expected)


def test_a_scaled_state():
    problem, other = chains(penalty="quadratic"), LaRank(C=0.3, penalty="quadratic", random_state=0)
    run = advance(other.start(problem), 2)
    states = []
    for C in (run.C, 4.0 * run.C):
        states.append(DualState(problem, C, on=run.state.weights.copy()))
        states[-1].set_state(run.state.get_state())
    states[0].scale(4.0)
    sums = [np.zeros(problem.n_features) for _ in states]
    (linear, ridge), (smaller, smaller_ridge) = (state.add_sums(s) for state, s in zip(states, sums, strict=True))
    np.testing.assert_allclose(sums[0], 4.0 * sums[1])
    assert linear == pytest.approx(4.0 * smaller) and ridge == pytest.approx(16.0 * smaller_ridge)
    np.testing.assert_array_equal(states[0].weights, run.state.weights)
    violation = np.linspace(0.0, 1.0, 60)
    assert states[0].primal(violation=violation) == pytest.approx(states[1].primal(violation=violation))


def test_the_dual_rises_with_each_exchange():
    run = advance(start(LARANK))
    state, found = run.state, []
    run.start_pass()
    for part in range(state.n_parts):
        before = state.weights
        state.exchange(part, 1)
        found.append(state.dual)
        assert (state.weights != before).any()
        for member in state.cluster.there:  # the same bits, in the order of members
            np.testing.assert_array_equal(member.w, state.weights)
            np.testing.assert_array_equal(member.work, member.w)
    assert found == sorted(found) and len(set(found)) > 4
    assert state.recompute() == pytest.approx(found[-1], rel=1e-5)


@pytest.mark.parametrize("average", [True, False])
def test_the_average_is_of_the_weights_after_exchanges(average):
    run = advance(start(LaRank(C=0.3, average=average, random_state=0)))
    run.start_pass()
    seen = []
    for part in range(run.state.n_parts):
        run.state.exchange(part, 1)
        seen.append(run.state.weights.copy())
    expected = np.average(seen, axis=0, weights=np.arange(1, len(seen) + 1)) if average else seen[-1]
    np.testing.assert_allclose(run.state.averaged(), expected, atol=1e-5)


@pytest.mark.parametrize("penalty", ["linear", "quadratic"])
def test_several_parts_between_exchanges(monkeypatch, penalty):
    solver = LaRank(C=0.3, penalty=penalty, random_state=0)
    run = advance(start(solver, chains(penalty=penalty)))
    state, found = run.state, []
    state.sigma = 0.05  # a share of it is taken
    run.start_pass()
    state.exchange(0, 1, 5)
    assert state.sigma > 0.05 and state.n_argmax > 60
    assert state.dual == pytest.approx(dual_of(run), rel=1e-5)
    monkeypatch.setattr(exchanges, "stride_for", lambda *given: found.append(given) or 3)
    exchange = state.exchange
    monkeypatch.setattr(state, "exchange", lambda *given: found.append(given) or exchange(*given))
    advance(run)
    assert not any(len(given) == 3 and given[2] - given[0] > 1 for given in found)
    found.clear()
    advance(run)
    assert [given[0] for given in found[1:]] == [0, 3, 6] and [given[2] for given in found[1:]] == [3, 6, 8]
    assert run.dual == pytest.approx(dual_of(run), rel=1e-5)
    assert "3 of 8 parts" in run.remark and run.remark in Bar.about(run)


def test_exchanges_take_half_of_the_time_at_most():
    chosen = [STRIDE_FOR(1.0, rest, 8) for rest in (0.0, 0.9, 1.0, 1.1, 3.5, 7.5, 100.0)]
    assert chosen == [1, 1, 1, 2, 4, 8, 8] and STRIDE_FOR(0.0, 1.0, 8) == 1


def test_a_share_of_an_exchange_is_a_share_of_each_alpha():
    problem, C = chains(), np.full(60, 0.3)
    ends = []
    for n_passes in (1, 3):
        run = advance(LARANK.start(problem), n_passes)
        ends.append({name: run.state.get_state()[name] for name in CUTS})
    assert mixed(*ends, 0.0) is ends[0] and mixed(*ends, 1.0) is ends[1]
    cuts = mixed(*ends, 0.25)
    assert (np.diff(cuts["cut_example"]) >= 0).all()
    state, sums, expected = DualState(problem, C), np.zeros(problem.n_features), np.zeros(problem.n_features)
    state.set_state(state.get_state() | cuts)
    assert max(len(end["cut_example"]) for end in ends) < state.n_cuts < len(cuts["cut_example"])
    state.add_sums(sums)
    for end, share in zip(ends, (0.75, 0.25), strict=True):
        state.set_state(state.get_state() | end)
        state.add_sums(found := np.zeros(problem.n_features))
        expected += share * found
    np.testing.assert_allclose(sums, expected, atol=1e-12)


def test_a_sum_that_goes_too_far_is_taken_in_part(workers):
    workers[:] = [1] * 8
    run = advance(start(LARANK))
    state = run.state
    run.start_pass()
    for part, sigma in ((0, 0.2), (1, 0.01), (0, 8.0)):  # one of them is safe
        dual, state.sigma = state.dual, sigma
        state.exchange(part, 1)
        assert state.dual > dual
        assert (state.sigma > sigma) == (sigma < 1.0)
        assert state.dual == pytest.approx(dual_of(run), rel=1e-5)
    assert state.recompute() == pytest.approx(state.dual, abs=1e-9)


def test_a_sum_in_the_wrong_direction_is_undone():
    run = advance(start(LARANK))
    state, cluster, ask = run.state, run.state.cluster, run.state.cluster.map
    run.start_pass()
    before, w, dual = state.get_state(), state.weights, state.dual

    def turned(function, *asked):
        answers = ask(function, *asked)
        return [(*a[:2], -1.0, *a[3:]) for a in answers] if function is Member.train else answers

    cluster.map = turned
    state.exchange(0, 1)
    cluster.map = ask
    assert state.dual == dual
    np.testing.assert_array_equal(state.weights, w)
    after = state.get_state()
    for name in CUTS:
        np.testing.assert_array_equal(after[name], before[name])


def test_workers_keep_their_states(monkeypatch, workers):
    workers[:] = [1, 1, 1]
    made = []
    monkeypatch.setattr(members, "NEARLY", -np.inf)  # all of each sum is taken
    monkeypatch.setattr(
        members, "DualState", lambda *args, **kwargs: made.append(args[0]) or DualState(*args, **kwargs)
    )
    run = advance(start(LARANK), 3)
    run.checked_certify()
    assert len(made) == len(set(map(id, made))) == 24  # one for each part
    for member in run.state.cluster.there:
        for part, (state, sigma, cuts) in member.states.items():
            assert cuts is member.cuts[part] and state.weights is member.work
            found = state.get_state()
            np.testing.assert_allclose(found["cut_numbers"][:, 0], sigma * cuts["cut_numbers"][:, 0])
            np.testing.assert_array_equal(found["cut_words"], cuts["cut_words"])
    run.state.cluster.lose(1)
    advance(run)
    assert len(made) == 24 + 8 + 2  # the lost one's, and what the others undid
    assert run.dual == pytest.approx(dual_of(run), rel=1e-5)


def test_what_was_learnt_before_an_error_is_undone(monkeypatch):
    run = advance(start(LARANK))

    def fail(*given):
        raise RuntimeError("after the steps")

    before = run.state.recompute()
    with monkeypatch.context() as patch:
        patch.setattr(Member, "keep", fail)
        with pytest.raises(RuntimeError, match="after the steps"):
            run.state.exchange(0, 1)
    assert run.state.dual == pytest.approx(before, rel=1e-9)


def test_threads_of_a_worker_make_no_sums(monkeypatch, workers):
    asked = []

    class WatchedPart(dual_threads.ThreadPart):
        def total(self):
            asked.append(self)
            return super().total()

    monkeypatch.setattr(dual_threads, "ThreadPart", WatchedPart)
    workers[:] = [2, 2]
    advance(start(LARANK))
    assert not asked
    monkeypatch.setattr(online, "cluster_client", lambda: None)
    advance(LaRank(C=0.3, n_jobs=2, deterministic=False, random_state=0).start(chains()))
    assert len(asked) == 2


def test_sigma_follows_the_line_search(workers):
    workers[:] = [1] * 8
    run = start(LARANK)
    assert run.state.sigma == 8.0
    seen = set()
    for _ in range(3):
        advance(run)
        seen.add(run.state.sigma)
    assert min(seen) < 8.0 and all(1.0 <= sigma <= 8.0 for sigma in seen)


def test_what_the_client_has_of_examples_and_alphas():
    solver = free(LARANK)
    run = solver.solve(chains())
    assert all(isinstance(shard, Shard) for member in run.state.members for shard in member.shards)
    arrays = run.get_state()
    for name in CUTS:
        base = arrays[name]
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap) and len(arrays[name]), name


def test_a_question_that_comes_twice_is_answered_once():
    run = advance(start(LARANK))
    run.start_pass()
    state, member = run.state, run.state.cluster.there[0]
    message = state.number, 0, 0, 1, 1.0, 1
    change = member.train(None, *message)
    assert change is not None and member.train(None, *message) is None
    assert member.take([change, None], *message) is None
    assert member.take([change], *message) is not None and member.take([change], *message) is None
    assert member.train(None, *message) is None
    assert member.begin([], -1) is None


@pytest.mark.parametrize("stored", [False, True])
def test_a_lost_worker_loses_its_alphas_alone(stored):
    run = advance(start(LARANK), 2)
    state = run.state
    kept = run.get_state() if stored else {"cut_example": np.zeros(0)}
    first, stop = state.spans[1][0][0], state.spans[1][-1][1]
    own = (kept["cut_example"] >= first) & (kept["cut_example"] < stop)
    before = state.dual
    run.start_pass()
    state.cluster.lose(1)
    state.exchange(0, 2)
    assert state.n_lost == 1
    arrays = state.get_state()
    left = (arrays["cut_example"] >= first) & (arrays["cut_example"] < stop)
    assert left.sum() == own.sum() and (own.sum() > 0) == stored
    assert (~left).sum() > 0
    assert state.dual == pytest.approx(dual_of(run), rel=1e-6)
    assert state.dual == pytest.approx(before, rel=1e-5) if stored else state.dual < before
    run = free(LARANK).solve(run.problem, run=run)
    assert run.status == "converged" and run.state.n_lost == 1


def test_a_worker_that_is_lost_while_all_is_summed():
    run = advance(start(LARANK))
    state, cluster, asked = run.state, run.state.cluster, []
    ask = cluster.map

    def ask_and_lose(function, shared, arguments):
        asked.append(function)
        if len(asked) == 2:
            cluster.lose(2)
        return ask(function, shared, arguments)

    cluster.map = ask_and_lose
    dual = state.recompute()
    assert asked == [Member.totals, Member.begin] * 2 and state.n_lost == 1
    assert dual == pytest.approx(dual_of(run), rel=1e-6)


@pytest.mark.parametrize("question", [Member.take, Member.half_norm, Member.answers, Member.known_violations])
def test_a_worker_that_is_lost_between_any_two_answers(workers, question):
    workers[:] = [1, 1]
    data = Data(0, n=30)
    if question is Member.known_violations:
        data.oracle.inference = "approximate"
    run = advance(start(LaRank(C=0.3, random_state=0), data.bind()), 2)
    cluster, ask = run.state.cluster, run.state.cluster.map

    def lose_and_ask(function, *asked):
        if function is question and not run.state.n_lost:
            cluster.lose(1)
        return ask(function, *asked)

    cluster.map = lose_and_ask
    before = run.dual
    advance(run)
    run.checked_certify()
    assert run.state.n_lost == 1 and run.dual != before
    assert run.dual == pytest.approx(dual_of(run), rel=1e-9)
    if question is not Member.known_violations:
        assert run.primal == pytest.approx(run.primal_at(run.weights), rel=1e-9)


@pytest.mark.parametrize("average", [True, False])
def test_weights_are_read_once_from_whoever_has_them(monkeypatch, average):
    monkeypatch.setattr(exchanges, "READ", 40)
    run = advance(start(LaRank(C=0.3, average=average, random_state=0)), 2)
    run.checked_certify()
    run.state.cluster.lose(0)
    member = run.state.cluster.there[1]
    expected = member.held(SharedWeights(run.state.n_exchanged if run.use_average else 0)).copy()
    run.close()
    assert run.weights is run.weights
    np.testing.assert_array_equal(run.weights, expected)
    assert run.result().dual_norm == pytest.approx(0.5 * member.w @ member.w, rel=1e-5)
    run = advance(start(LARANK))
    for k in range(3):
        run.state.cluster.lose(k)
    with pytest.raises(exchanges.LostError, match="no member has the weights"):
        run.close()


@pytest.mark.parametrize("question", [Member.train, Member.take])
def test_ctrl_c_in_the_middle_of_an_exchange(question):
    run = advance(start(LARANK))
    state, cluster = run.state, run.state.cluster
    ask, dual = cluster.map, []

    def ask_and_stop(function, shared, arguments):
        outcome = ask(function, shared, arguments)
        if function is question and arguments[0][2] == 3 and not dual:
            dual.append(state.objective)
            raise KeyboardInterrupt
        return outcome

    cluster.map = ask_and_stop
    solver = free(LARANK)
    solver.solve(run.problem, run=run)
    assert run.status == "interrupted" and not cluster.is_open
    assert run.dual == state.dual == pytest.approx(dual_of(run), rel=1e-5)
    if question is Member.train:
        assert run.dual == pytest.approx(dual[0], rel=1e-5)  # the sum of all that was answered before
    else:
        assert run.dual > dual[0]
    assert solver.solve(run.problem, run=run).status == "converged"


def test_nobody_is_asked_for_what_a_lost_cluster_had():
    run = advance(start(LARANK))
    kept = run.get_state()
    advance(run)
    run.state.cluster.is_lost = True
    run.close()
    assert not Copies.made[0].is_open
    arrays = run.state.get_state()
    for name in CUTS:
        np.testing.assert_array_equal(arrays[name], kept[name])


def test_checkpoints_are_those_of_one_thread(tmp_path):
    path = tmp_path / "run.ckpt"
    problem = chains()
    first = LaRank(C=0.3, max_iter=3, random_state=0, checkpoint=path).solve(problem)
    on_workers = LaRank(C=0.3, max_iter=6, random_state=0, checkpoint=path, deterministic=False).solve(problem)
    assert on_workers.n_iter == 6 and on_workers.dual > first.dual
    alone = LaRank(C=0.3, max_iter=8, random_state=0, checkpoint=path).solve(problem)
    assert alone.n_iter == 8 and alone.dual > on_workers.dual
    run = start(LARANK, problem)
    with pytest.raises(ValueError, match="'cut_numbers' of the training state"):
        run.state.set_state(alone.state.get_state() | {"cut_numbers": np.zeros((1, 3))})
    run.set_state(alone.get_state())
    assert run.state.dual == pytest.approx(alone.state.settle(), rel=1e-6)


class Candidates(Multiclass):
    """The known part are the classes that an example may have."""

    def complete(self, x, known, w):
        return max(known, key=lambda y: w.reshape(self.n_classes, -1)[y] @ x)


def test_passive_aggressive_and_completions(workers):
    run = free(PassiveAggressive(C=0.3, random_state=0)).solve(chains())
    assert run.n_iter == 1 and run.dual > 0.0
    workers[:] = [1, 1]
    oracle, X = Candidates(3, 4), np.random.default_rng(0).normal(size=(24, 4))
    known = [(0,) if x[0] > 0.5 else (1, 2) for x in X]
    run = LatentSVM(free(LARANK)).solve(oracle.bind(X, known))
    assert run.status == "converged" and run.round > 1
    assert len(Copies.made) > 2 and not any(copies.is_open for copies in Copies.made)


@pytest.mark.parametrize("solver", [LARANK, PassiveAggressive(C=0.3, random_state=0)], ids=["larank", "pa"])
def test_weights_to_start_from(solver):
    """The weights of a batch of a stream, in the problem's own type."""
    problem = chains()
    base = np.random.default_rng(0).normal(size=problem.n_features).astype(problem.weight_dtype)
    run = free(solver).solve(problem, base=base)
    assert run.dual <= run.primal == pytest.approx(run.primal_at(run.weights), rel=1e-6)
    if solver is LARANK:
        assert run.dual == pytest.approx(solver.solve(problem, base=base).dual, rel=2.0 * solver.tol)


def test_dear_oracles_are_asked_in_rounds(monkeypatch):
    monkeypatch.setattr(exchanges, "DEAR_SECONDS", 0.0)
    problem = chains()
    with pytest.warns(AdviceWarning, match="rounds of CuttingPlane on this cluster: a call of the oracle takes"):
        run = free(LARANK).start(problem, sample_weight=np.full(60, 0.5))
    assert isinstance(run.solver, CuttingPlane) and run.C[0] == 0.15
    shared = ("C", "rescaling", "penalty", "tol")
    assert [getattr(run.solver, name) for name in shared] == [getattr(LARANK, name) for name in shared]


def test_weights_with_signs_are_trained_in_rounds():
    data = Data(0)
    data.oracle.nonnegative = [1]
    problem = data.bind()
    with pytest.warns(AdviceWarning, match="some weights must be >= 0"):
        assert isinstance(free(LARANK).start(problem).solver, CuttingPlane)


def test_deterministic_training_stays_here():
    assert type(LARANK.start(chains()).state) is DualState
