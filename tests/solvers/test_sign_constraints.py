"""Weights that must be >= 0, against a quadratic programme that has them as bounds."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from dual_reference import PlainPerceptron, solve_primal
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data, Logistic

from structsvm import (
    ConvergenceWarning,
    CuttingPlane,
    FrankWolfe,
    LaRank,
    LatentSVM,
    OracleError,
    PassiveAggressive,
    Perceptron,
    StructuredSVM,
)
from structsvm._problem import BoundProblem
from structsvm.solvers import ConditionalLikelihood
from structsvm.testing import check_oracle

MASK = np.arange(12) % 3 != 1
TIGHT = {"tol": 1e-6, "random_state": 0}
SOLVERS = {
    "decode-once": lambda **o: LaRank(**TIGHT, **o),
    "fixed": lambda **o: LaRank(schedule="fixed", **TIGHT, **o),
    "adaptive": lambda **o: LaRank(schedule="adaptive", **TIGHT, **o),
    "threads": lambda **o: LaRank(n_jobs=2, deterministic=False, **TIGHT, **o),
    "n_slack": lambda **o: CuttingPlane(qp_tol=1e-2, **TIGHT, **o),
    "one_slack": lambda **o: CuttingPlane(form="one_slack", **TIGHT, **o),
    "frank-wolfe": lambda **o: FrankWolfe(tol=1e-3, random_state=0, **o),
    "passive-aggressive": lambda **o: PassiveAggressive(max_iter=3, random_state=0, **o),
}
LINEAR_ONLY = {"one_slack", "frank-wolfe"}


def data(seed=0, penalty="linear", mask=MASK, **options):
    made = Data(seed, penalty=penalty, **options)
    made.oracle.nonnegative = mask
    return made


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "passive-aggressive"])
@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 1.0, 10.0]),
    penalty=st.sampled_from(["linear", "quadratic"]),
    signs=st.lists(st.integers(0, 11), max_size=12),
)
def test_the_optimum_is_that_of_the_programme(name, seed, C, penalty, signs):
    if name in LINEAR_ONLY:
        penalty = "linear"
    made = data(seed, penalty, np.array(signs, dtype=np.int64), n=5)
    best = solve_primal(made.oracle.constraints(made.X, made.Y, "margin"), C, penalty, nonnegative=signs)
    solver = SOLVERS[name](
        C=C, **({} if name == "frank-wolfe" else {"penalty": penalty} if penalty != "linear" else {})
    )
    run = solver.solve(made.bind())
    assert run.status == "converged"
    room = 1e-6 * (1.0 + abs(best))
    assert run.dual - room <= best <= run.primal + room
    assert (run.weights[signs] >= 0.0).all()


@pytest.mark.parametrize("name", SOLVERS)
def test_the_oracle_sees_no_negative_weight(name):
    made = data(3, n=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = (
            SOLVERS[name](max_iter=30).solve(made.bind())
            if name != "passive-aggressive"
            else SOLVERS[name]().solve(made.bind())
        )
    seen = np.array(made.oracle.calls)
    assert (seen[:, MASK] >= 0.0).all() and (seen[:, ~MASK] < 0.0).any()
    # The last weights are projected. What is returned may be their average, which is 0 only where all of them were; of
    # threads, where those that the first one saw were: it may see what another did in a pass at the end of it. After a
    # few passes of theirs there may be no 0 among the weights; near the optimum there are two.
    assert (run.state.weights[MASK] == 0.0).any() and (run.weights[MASK] >= 0.0).all() and run.dual <= run.primal


def test_the_dual_never_falls():
    made, duals = data(1, n=15), []

    class Watch:
        def begin_pass(self, run):
            pass

        def tick(self, run):
            duals.append(run.state.dual)

        def end_pass(self, run):
            before = run.state.dual
            assert before == pytest.approx(run.state.settle(), rel=1e-12)  # the sum of all gains
            return False

        def close(self):
            pass

    LaRank(max_iter=5, random_state=0).solve(made.bind(), monitor=Watch())
    assert len(duals) >= 5 and (np.diff(duals) >= -1e-12 * duals[-1]).all()


def test_an_average_is_one_of_the_projected_weights():
    made = data(2, n=9)
    run = PassiveAggressive(C=0.3, average=True, max_iter=1, random_state=0).start(made.bind())
    while not run.advance():
        pass
    after = np.array([*made.oracle.calls[1:], run.state.weights])
    want = np.average(after, axis=0, weights=np.arange(1, len(after) + 1))
    np.testing.assert_allclose(run.state.averaged(), want, atol=1e-12)
    assert (after[:, MASK] == 0.0).any()


def test_the_perceptron_projects():
    made = data(4, n=15)
    made.oracle.calls.clear()
    problem = made.perceptron()
    run = Perceptron(average=True, max_iter=1, random_state=0).start(problem)
    order = []
    argmax = made.oracle.argmax
    made.oracle.argmax = lambda x, w, **options: (order.append(x), argmax(x, w, **options))[1]
    while not run.advance():
        pass
    plain, truth = PlainPerceptron(12), {x.tobytes(): y for x, y in zip(made.X, made.Y, strict=True)}
    for x in order:
        y = truth[x.tobytes()]
        guess = argmax(x, plain.w)
        plain.w = np.where(
            MASK,
            np.maximum(plain.w + made.oracle.dense(x, y) - made.oracle.dense(x, guess), 0.0),
            plain.w + made.oracle.dense(x, y) - made.oracle.dense(x, guess),
        )
        plain.total += plain.w
    np.testing.assert_allclose(run.state.weights, plain.w, atol=1e-12)
    np.testing.assert_allclose(run.state.averaged(), plain.total / len(order), atol=1e-12)


def test_a_training_that_resumes_is_the_same_bit_for_bit():
    made = data(5, n=12)
    whole = LaRank(max_iter=4, random_state=0).solve(made.bind())
    first = LaRank(max_iter=2, random_state=0).solve(made.bind())
    again = LaRank(max_iter=2, random_state=0).start(made.bind())
    again.set_state(first.get_state())
    again = LaRank(max_iter=2, random_state=0).solve(made.bind(), run=again)
    assert np.array_equal(whole.weights, again.weights) and whole.dual == again.dual


@pytest.mark.parametrize("penalty", ["linear", "quadratic"])
def test_around_other_weights(penalty):
    made = data(6, penalty, n=5)
    base = np.random.default_rng(0).normal(size=12)
    constraints = made.oracle.constraints(made.X, made.Y, "margin")
    best = solve_primal(constraints, 1.0, penalty, nonnegative=np.flatnonzero(MASK), base=base)
    run = LaRank(penalty=penalty, **TIGHT).solve(made.bind(), base=base)
    assert run.dual - 1e-6 <= best <= run.primal + 1e-6 and run.status == "converged"
    assert (made.oracle.calls[0][MASK] == np.maximum(base[MASK], 0.0)).all()


def test_partial_fit_keeps_the_signs():
    made = data(7, n=12)
    model = StructuredSVM(made.oracle, LaRank(random_state=0))
    for part in (slice(0, 6), slice(6, 12)):
        model.partial_fit(made.X[part], made.Y[part])
    assert (model.coef_[MASK] >= 0.0).all() and (model.coef_[MASK] == 0.0).any() and model.result_.gap >= -1e-12


def test_a_hard_margin_that_signs_forbid():
    X, Y = [np.array([1.0]), np.array([-1.0])], [0, 1]
    free = Data(0, n=2, n_classes=2, n_inputs=1, penalty=None)
    free.X, free.Y = X, Y
    assert CuttingPlane(penalty=None, tol=1e-6, random_state=0).solve(free.bind()).primal == pytest.approx(0.25)
    free.oracle.nonnegative = [1]  # w = (1/2, -1/2) no more, but (1, 0)
    assert CuttingPlane(penalty=None, tol=1e-6, random_state=0).solve(free.bind()).primal == pytest.approx(0.5)
    free.Y = [1, 0]  # for which w_0 < w_1
    free.oracle.nonnegative = [0]
    assert CuttingPlane(penalty=None, tol=1e-6, random_state=0).solve(free.bind()).primal == pytest.approx(0.5)


class Halves(Logistic):
    """Completes: the known is a set of classes."""

    def complete(self, x, known, w):
        self.calls.append(np.array(w))
        known = {known} if isinstance(known, int) else known
        return max(sorted(known), key=lambda y: float(self.dense(x, y) @ w))


@pytest.mark.parametrize("start", ["uniform", "random"])
def test_outputs_known_in_part(start):
    made = data(8, n=12)
    oracle = Halves(3, 4)
    oracle.nonnegative = MASK
    known = [{y, (y + 1) % 3} if k % 2 else {y} for k, y in enumerate(made.Y)]
    run = LatentSVM(LaRank(random_state=0), start=start).solve(oracle.bind(made.X, known))
    assert (np.array(oracle.calls)[:, MASK] >= 0.0).all() and run.dual <= run.primal


def test_who_cannot_keep_them_says_so():
    made = data(0)
    oracle = Logistic(3, 4)
    oracle.nonnegative = MASK
    with pytest.raises(
        ValueError, match=r"ConditionalLikelihood cannot keep weights >= 0, and Logistic declares 8 of 12"
    ):
        StructuredSVM(oracle, ConditionalLikelihood()).fit(made.X, made.Y)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones(11, bool), r"Multiclass.nonnegative must be None, a bool mask of shape \(12,\)"),
        ([0.5], "Multiclass.nonnegative must be None"),
        ("all", "Multiclass.nonnegative must be None"),
        ([[1]], "Multiclass.nonnegative must be None"),
        ([3, 12], r"Multiclass.nonnegative has indices in 3..12, expected 0..11"),
        ([-1], r"Multiclass.nonnegative has indices in -1..-1"),
    ],
)
def test_a_mask_must_be_one(mask, message):
    made = data(0, mask=mask)
    with pytest.raises(OracleError, match=message):
        made.bind()
    with pytest.raises(OracleError, match=message):
        check_oracle(made.oracle, made.X, made.Y)


def test_what_a_problem_declares():
    made = data(0)
    problem = made.bind()
    for again in (problem, copy.copy(problem), pickle.loads(pickle.dumps(problem)), problem.shard(1, 3)):
        assert np.array_equal(again.nonnegative, np.flatnonzero(MASK)) and again.nonnegative.dtype == np.int64
    assert np.array_equal(BoundProblem(2, 5, nonnegative=[3, 1, 3]).nonnegative, [1, 3])
    for nothing in (None, [], np.zeros(12, bool)):
        assert data(0, mask=nothing).bind().nonnegative is None


def test_check_oracle_keeps_the_signs():
    made = data(0)

    class Strict(type(made.oracle)):
        penalties = ("linear",)

        def argmax(self, x, w, y_true=None, rescaling=None):
            assert (w[MASK] >= 0.0).all()
            return super().argmax(x, w, y_true, rescaling)

    oracle = Strict(3, 4, costs=made.oracle.costs)
    with pytest.raises(AssertionError):
        check_oracle(oracle, made.X, made.Y)
    oracle.nonnegative = MASK
    with pytest.warns(UserWarning, match="cannot be pickled"):
        check_oracle(oracle, made.X, made.Y)
