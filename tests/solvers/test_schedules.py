"""The schedule that a solver's parameters choose, and what of it a run restores."""

import numpy as np
import pytest
from python_oracles import Data

from structsvm import CuttingPlane, FrankWolfe, LaRank
from structsvm.dual._schedules import AdaptiveSchedule, FixedSchedule, SolveSchedule
from structsvm.solvers import frank_wolfe
from structsvm.tasks import SequenceLabeler


@pytest.mark.parametrize(
    ("name", "kind"), [("decode-once", SolveSchedule), ("fixed", FixedSchedule), ("adaptive", AdaptiveSchedule)]
)
def test_the_schedules_of_larank(name, kind):
    assert type(LaRank(schedule=name, n_reprocess=2).start(Data().bind()).schedule) is kind


@pytest.mark.parametrize("sampling", ["uniform", "gap"])
def test_the_sampling_of_frank_wolfe(sampling, monkeypatch):
    given, make = [], frank_wolfe.FrankWolfeSchedule
    monkeypatch.setattr(frank_wolfe, "FrankWolfeSchedule", lambda *_, **options: given.append(options) or make(*_))
    FrankWolfe(sampling=sampling, n_cached=3).start(Data().bind())
    FrankWolfe(sampling=sampling, n_cached=3, tol=None, max_iter=1).start(Data().bind())
    options = {"n_cached": 3, "gap_sampling": sampling == "gap"}
    assert given == [options | {"usual_passes": 20}, options | {"usual_passes": 0}]


def few_noisy_chains(seed):
    """Six short sequences whose labels have nothing to do with their tokens: at C = 5 all constraints matter."""
    draws = np.random.default_rng(seed)
    lengths = draws.integers(1, 6, 6)
    X = [[{f"word={draws.integers(4)}": 1.0, f"shape={draws.integers(4)}": 1.0} for _ in range(n)] for n in lengths]
    return X, [[str(draws.integers(3)) for _ in range(n)] for n in lengths]


@pytest.mark.parametrize("solver", [LaRank(5.0, tol=1e-3, random_state=0), FrankWolfe(5.0, tol=1e-3, random_state=0)])
def test_small_gaps_take_few_passes(solver):
    """With two old examples per fresh one LaRank takes up to 170, with steps to corners FrankWolfe over 1,000."""
    for seed in range(6):
        labeler = SequenceLabeler(solver=solver, loss="hamming").fit(*few_noisy_chains(seed))
        assert labeler.result_.status == "converged" and labeler.n_iter_ < 90


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("solver", [LaRank(5.0, n_reprocess=0.7), FrankWolfe(5.0, sampling="gap")], ids=repr)
def test_late_passes_resume_bit_for_bit(solver):
    problem = Data().bind()
    solver.random_state, solver.tol = 0, 1e-12
    whole = solver.solve(problem, passes=50)
    run = solver.start(problem)
    run.set_state(solver.solve(problem, passes=45).get_state())
    np.testing.assert_array_equal(solver.solve(problem, run=run, passes=5).state.weights, whole.state.weights)


@pytest.mark.parametrize("solver", [LaRank(random_state=0), CuttingPlane(random_state=0)], ids=repr)
def test_another_schedule_is_restored_only_if_asked(solver):
    problem = Data().bind()
    arrays = solver.solve(problem).get_state() | {"schedule": np.full(7, 0.5)}
    run = solver.start(problem)
    before = run.schedule.get_state()
    with pytest.raises(ValueError, match="schedule"):
        run.set_state(arrays)
    assert run.n_iter == 0 and run.n_support == 0
    run.set_state(arrays, adapt=True)
    np.testing.assert_array_equal(run.schedule.get_state(), before)  # nothing due
    assert run.n_iter > 0 and run.n_support > 0


def test_one_slack_resumes_with_another_C():
    """Its cuts are sums of constraints times C: where all C change by one factor, the weights stay."""
    problem = Data().bind()
    run = CuttingPlane(C=0.5, form="one_slack", random_state=0).solve(problem)
    for factor in (0.5, 2.0):
        other = CuttingPlane(C=0.5 * factor, form="one_slack", random_state=0).start(problem)
        other.set_state(run.get_state(), adapt=True)
        scale = min(factor, 1.0)  # into the box
        np.testing.assert_allclose(other.state.weights, scale * run.state.weights, atol=1e-9)
        assert other.state.n_cuts == run.state.n_cuts > 0
    weight = np.linspace(0.5, 1.5, problem.n_samples)
    other = CuttingPlane(C=0.5, form="one_slack", random_state=0).start(problem, sample_weight=weight)
    other.set_state(run.get_state(), adapt=True)
    assert not other.state.weights.any() and other.state.n_cuts == 0


@pytest.mark.parametrize("n", [10, 30, 100])
def test_few_examples_do_not_settle_far_from_the_optimum(n):
    """A ProcessNew that finds no new example gives its turn away: before, gaps were 65 to 81 %."""
    run = LaRank(schedule="adaptive", random_state=0).solve(Data(0, n=n, n_classes=5, separable=True).bind())
    assert run.status == "settled" and run.primal - run.dual < 0.25 * run.primal
