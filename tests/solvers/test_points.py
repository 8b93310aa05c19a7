"""Runs that start from the point that a run on a part of the examples, or with another C, has reached."""

import numpy as np
import pytest

from structsvm import LaRank
from structsvm.datasets import make_sequences
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood, CuttingPlane
from structsvm.solvers.run import Run

X, y = make_sequences(40, n_labels=4, n_words=30, mean_length=6.0, random_state=0)
WORDS = sorted({word for x in X for word in x})
ROWS = np.arange(40)[np.arange(40) % 5 > 0]


def rows_of(x):
    return np.array([[float(word == other) for other in WORDS] for word in x])


def problem_of(solver, rows):
    labels = sorted({label for labels in y for label in labels})
    oracle = ViterbiOracle(len(labels), len(WORDS), loss="log" if solver is ConditionalLikelihood else "hamming")
    known = [[labels.index(label) for label in y[i]] for i in rows]
    return oracle.bind([rows_of(X[i]) for i in rows], known, **solver().formulation())


def trained(run, passes):
    for _ in range(passes):
        while not run.advance():
            pass
    return run


@pytest.mark.parametrize("solver", [LaRank, ConditionalLikelihood])
def test_a_point_of_a_part_is_one_of_the_whole(solver):
    part = trained(solver(C=0.5, random_state=0).start(problem_of(solver, ROWS)), 5)
    weights, dual = part.state.weights.copy(), part.state.settle()
    whole = solver(C=0.5, random_state=0).start(problem_of(solver, range(40)))
    whole.start_from(part.get_point(), ROWS)
    np.testing.assert_allclose(whole.state.weights, weights, atol=1e-5)
    assert whole.state.dual == pytest.approx(dual, rel=1e-6) and whole.n_iter == 0
    afresh = solver(C=0.5, random_state=0).start(problem_of(solver, range(40)))
    for run in (whole, afresh):
        trained(run, 1)
    assert whole.dual > max(dual, afresh.dual)
    for run in (whole, afresh):
        trained(run, 60)
        run.certify()
    assert whole.remaining < 0.02 and whole.dual <= afresh.primal and afresh.dual <= whole.primal


OTHER_ROWS = [
    (np.append(ROWS[:-1], 40), "ascending numbers of 40 examples"),
    (ROWS[::-1].copy(), "ascending numbers of 40 examples"),
    (ROWS - 2, "ascending numbers of 40 examples"),
    (ROWS[:3], "a point of 3 examples has others"),
]


@pytest.mark.parametrize(("rows", "error"), OTHER_ROWS)
def test_distributions_of_other_examples_are_refused(rows, error):
    point = trained(ConditionalLikelihood(random_state=0).start(problem_of(ConditionalLikelihood, ROWS)), 2).get_point()
    whole = ConditionalLikelihood(random_state=0).start(problem_of(ConditionalLikelihood, range(40)))
    with pytest.raises(ValueError, match=error.replace("has others", "has shape")):
        whole.start_from(point, rows)
    assert not whole.get_state()["moments"].any()


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("moments", lambda a: a[:-1], "array 'moments' of a point of .* has shape"),
        ("moments", lambda a: a[:1], "array 'moments' of a point of .* has shape"),
        ("moments", lambda a: a * np.nan, "array 'moments' of a point has numbers that are not finite"),
        ("moments", lambda a: a.astype(int), "expected floats of shape"),
        ("entropy", lambda a: a[:1], "array 'entropy' of a point of .* has shape"),
        ("entropy", lambda a: a + np.inf, "array 'entropy' of a point has numbers that are not finite"),
        ("entropy", lambda a: a - 100.0, "array 'entropy' of a point has numbers below 0"),
    ],
)
def test_damaged_distributions_are_refused(name, change, error):
    point = trained(ConditionalLikelihood(random_state=0).start(problem_of(ConditionalLikelihood, ROWS)), 2).get_point()
    whole = ConditionalLikelihood(random_state=0).start(problem_of(ConditionalLikelihood, range(40)))
    with pytest.raises(ValueError, match=error):
        whole.start_from(point | {name: change(point[name])}, ROWS)
    assert not whole.get_state()["moments"].any() and not whole.state.weights.any()


@pytest.mark.parametrize(("rows", "error"), OTHER_ROWS)
def test_a_point_of_other_examples_is_refused(rows, error):
    point = trained(LaRank(C=0.5, random_state=0).start(problem_of(LaRank, ROWS)), 2).get_point()
    whole = LaRank(C=0.5, random_state=0).start(problem_of(LaRank, range(40)))
    with pytest.raises(ValueError, match=error):
        whole.start_from(point, rows)
    assert whole.state.n_cuts == 0


@pytest.mark.parametrize("passes", [1, 3, 8])
@pytest.mark.parametrize(
    ("solver", "params", "C"),
    [
        (LaRank, {}, 2.0),
        (LaRank, {}, 0.5),
        (LaRank, {}, 0.2),
        (LaRank, {"average": False, "schedule": "adaptive"}, 3.0),
        (ConditionalLikelihood, {}, 2.0),
        (ConditionalLikelihood, {}, 0.1),
    ],
)
def test_a_state_goes_on_with_another_C_as_its_copy_would(solver, params, C, passes):
    problem, weight = problem_of(solver, ROWS), np.linspace(0.5, 1.5, len(ROWS))
    runs = []
    for follow in (solver.run_type.follow, Run.follow):
        before = trained(solver(C=0.5, random_state=0, **params).start(problem, sample_weight=weight), passes)
        before.get_state()  # as a search keeps it
        run = solver(C=C, random_state=0, **params).start(problem, sample_weight=weight)
        follow(run, before)
        grows = solver is ConditionalLikelihood or C >= 0.5
        assert (run.state is before.state) == (grows and follow is not Run.follow)
        runs.append(run)
    for _ in range(3):
        one, other = (run.get_state() for run in runs)
        assert one.keys() == other.keys()
        for name in one:
            if name not in ("run", "history_seconds"):  # seconds
                np.testing.assert_array_equal(one[name], other[name], err_msg=name)
        np.testing.assert_array_equal(one["run"][[0, 2, 3]], other["run"][[0, 2, 3]])
        for run in runs:
            trained(run, 1)


def test_what_a_search_keeps_of_a_state_stays_as_it_was():
    problem = problem_of(ConditionalLikelihood, ROWS)
    before = trained(ConditionalLikelihood(C=0.5, random_state=0).start(problem), 3)
    kept = before.get_state()
    copies = {name: np.array(array) for name, array in kept.items()}
    run = ConditionalLikelihood(C=2.0, random_state=0).start(problem)
    run.follow(before)
    trained(run, 2)
    assert run.state is before.state
    for name, array in copies.items():
        np.testing.assert_array_equal(kept[name], array, err_msg=name)


def test_states_of_other_problems_and_penalties_are_copied():
    solver = LaRank(C=2.0, penalty="quadratic", random_state=0)
    labels = sorted({label for labels in y for label in labels})
    data = [rows_of(x) for x in X], [[labels.index(label) for label in one] for one in y]
    problem = ViterbiOracle(len(labels), len(WORDS)).bind(*data, **solver.formulation())
    before = trained(LaRank(C=0.5, penalty="quadratic", random_state=0).start(problem), 2)
    run = solver.start(problem)
    run.follow(before)
    assert run.state is not before.state and run.state.n_cuts == before.state.n_cuts
    before = trained(LaRank(C=0.5, random_state=0).start(problem_of(LaRank, ROWS)), 2)
    run = LaRank(C=2.0, random_state=0).start(problem_of(LaRank, ROWS))
    run.follow(before)
    assert run.state is not before.state
    before = trained(CuttingPlane(C=0.5, random_state=0).start(problem_of(LaRank, ROWS)), 2)
    run = CuttingPlane(C=2.0, random_state=0).start(before.problem)
    run.follow(before)
    assert run.state is not before.state
