"""A user's solver as a structure, SPO+ and regret: against the enumeration of all paths of small grids."""

from itertools import combinations

import numpy as np
import pytest

from structsvm.layers import Assignment, Chain, Solver, hinge, perturbed, ramp, regret, sparsemap, spo_plus

SIDE = 3
ARCS = 2 * SIDE * (SIDE - 1)


def arcs_of(steps):
    """The arcs of a path from corner to corner, by its steps: 0 east, 1 south; eastern arcs come first, by rows."""
    arcs, row, column = np.zeros(ARCS), 0, 0
    for south in steps:
        arcs[ARCS // 2 + row * SIDE + column if south else row * (SIDE - 1) + column] = 1
        row, column = row + south, column + 1 - south
    return arcs


PATHS = np.array(
    [arcs_of([step in south for step in range(2 * SIDE - 2)]) for south in combinations(range(2 * SIDE - 2), SIDE - 1)]
)


def solve(scores):
    """The best path by dynamic programming."""
    east, south = scores[: ARCS // 2].reshape(SIDE, SIDE - 1), scores[ARCS // 2 :].reshape(SIDE - 1, SIDE)
    best, steps = np.full((SIDE, SIDE), -np.inf), {(0, 0): []}
    best[0, 0] = 0.0
    for row in range(SIDE):
        for column in range(SIDE):
            before = {0: (row, column - 1), 1: (row - 1, column)}
            gains = {0: east[row, column - 1] if column else None, 1: south[row - 1, column] if row else None}
            for step, gain in gains.items():
                if gain is not None and best[before[step]] + gain > best[row, column]:
                    best[row, column] = best[before[step]] + gain
                    steps[row, column] = [*steps[before[step]], step]
    return arcs_of(steps[SIDE - 1, SIDE - 1])


PATH = Solver(solve)


def drawn(seed, n=6, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(2, n, ARCS)).astype(dtype)


def test_paths_of_a_grid_are_its_binomial_coefficient():
    assert len(PATHS) == 6
    assert len(np.unique(PATHS, axis=0)) == 6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_best_outputs_regret_and_bound_against_all_paths(dtype):
    guess, truth = drawn(0, dtype=dtype)
    assert PATH.argmax(guess).tolist() == PATHS[(guess @ PATHS.T).argmax(axis=1)].tolist()
    of_guess, of_truth = guess.astype(float) @ PATHS.T, truth.astype(float) @ PATHS.T
    rows = np.arange(len(guess))
    lost = of_truth.max(axis=1) - of_truth[rows, of_guess.argmax(axis=1)]
    assert regret(PATH, (guess,), (truth,)) == pytest.approx(lost, abs=1e-6 if dtype == np.float32 else 1e-12)
    best = of_truth.argmax(axis=1)
    bound = (2 * of_guess - of_truth).max(axis=1) - 2 * of_guess[rows, best] + of_truth.max(axis=1)
    values, (gradient,) = spo_plus(PATH, (guess,), (truth,))
    assert values == pytest.approx(bound, abs=1e-6 if dtype == np.float32 else 1e-12)
    worst = (2 * of_guess - of_truth).argmax(axis=1)
    assert gradient.tolist() == (2 * (PATHS[worst] - PATHS[best])).tolist()
    assert gradient.dtype == dtype
    assert (values >= lost - 1e-6).all()
    assert (lost > 0).any()


def test_known_outputs_need_no_search():
    guess, truth = drawn(1)
    calls = []
    counted = Solver(lambda scores: calls.append(0) or solve(scores))
    wanted = counted.argmax(truth)
    calls.clear()
    found = spo_plus(counted, (guess,), (truth,), known=wanted)
    assert len(calls) == len(guess)
    again = spo_plus(counted, (guess,), (truth,))
    assert len(calls) == 3 * len(guess)
    assert found[0].tolist() == again[0].tolist()


def test_true_scores_have_no_loss():
    truth, _ = drawn(2)
    values, (gradient,) = spo_plus(PATH, (truth,), (truth,))
    assert not values.any()
    assert not gradient.any()
    assert not regret(PATH, (truth,), (truth,)).any()


@pytest.mark.parametrize("loss", [perturbed, hinge, ramp, sparsemap])
def test_gradients_are_those_of_the_values(loss):
    guess, truth = drawn(3, n=2)
    y = PATH.argmax(truth)
    _, (gradient,) = loss(PATH, (guess,), y)
    for place in np.ndindex(guess.shape):
        step = np.zeros_like(guess)
        step[place] = 1e-5
        up, down = (loss(PATH, (guess + sign * step,), y)[0].sum() for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(gradient[place], abs=1e-4)


def test_hinge_and_maxima_against_all_paths():
    guess, truth = drawn(4)
    y = PATH.argmax(truth)
    differences = np.abs(PATHS[None] - y[:, None]).sum(axis=2)
    wanted = (guess @ PATHS.T + differences).max(axis=1) - (guess * y).sum(axis=1)
    assert hinge(PATH, (guess,), y)[0] == pytest.approx(wanted, abs=1e-12)
    assert PATH.score(y, guess) == pytest.approx((guess * y).sum(axis=1))


def test_whole_batches_threads_and_entries_give_the_same():
    guess, _ = drawn(5)
    whole = Solver(lambda scores: np.array([solve(row) for row in scores]), batched=True)
    expected = PATH.argmax(guess).tolist()
    assert whole.argmax(guess).tolist() == expected
    assert Solver(solve, n_threads=3).argmax(guess).tolist() == expected
    assert PATH.argmax(np.zeros((0, ARCS))).shape == (0, ARCS)


@pytest.mark.parametrize(("structure", "parts"), [(Assignment(), [(4, 3, 4)]), (Chain(), [(4, 3, 2), (2, 2)])])
def test_structures_of_ours_have_regrets_too(structure, parts):
    rng = np.random.default_rng(0)
    guess, truth = ([rng.normal(size=shape) for shape in parts] for _ in range(2))
    guess[0][0, 0, 0] = truth[0][0, 0, 0] = -np.inf
    values, gradients = spo_plus(structure, guess, truth)
    y = structure.argmax(*truth)
    lost = structure.score(y, *truth) - structure.score(structure.argmax(*guess), *truth)
    assert regret(structure, guess, truth) == pytest.approx(lost, abs=1e-12)
    assert (values >= lost - 1e-12).all()
    ahead = [
        np.where(np.isneginf(own), own, 2 * own - np.where(np.isneginf(own), 0, true))
        for own, true in zip(guess, truth, strict=True)
    ]
    worst = structure.argmax(*ahead)
    bound = structure.score(worst, *ahead) - 2 * structure.score(y, *guess) + structure.score(y, *truth)
    assert values == pytest.approx(bound, abs=1e-12)
    assert [gradient.shape for gradient in gradients] == parts


class Unsolvable(Exception):
    pass


def unsolvable(scores):
    raise Unsolvable("no path")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Solver(3), TypeError, "solve must be a function of scores. Got 3"),
        (lambda: Solver(solve, n_threads=0), ValueError, "n_threads must be"),
        (lambda: PATH.argmax(np.zeros(ARCS)), ValueError, "scores must have a batch axis"),
        (lambda: PATH.argmax(np.full((1, ARCS), -np.inf)), ValueError, "a solver has no masks"),
        (lambda: PATH.argmax(np.full((1, ARCS), np.nan)), ValueError, "Got nan at batch entry 0"),
        (lambda: PATH.argmax(np.zeros((1, ARCS)), lengths=[1]), ValueError, "Solver has no lengths"),
        (lambda: Solver(lambda scores: 0).argmax(np.zeros((2, 3))), ValueError, "of batch entry 0 must be finite"),
        (lambda: Solver(lambda s: s + np.nan).argmax(np.zeros((2, 3))), ValueError, r"numbers of shape \(3,\)"),
        (lambda: Solver(unsolvable).argmax(np.zeros((2, 3))), Unsolvable, "no path"),
        (lambda: Solver(unsolvable, n_threads=2).argmax(np.zeros((2, 3))), Unsolvable, "no path"),
        (lambda: hinge(PATH, (np.zeros((1, ARCS)),), [[0]]), ValueError, r"y must be finite numbers of shape \(1, 12"),
        (lambda: PATH.log_partition(np.zeros((1, ARCS))), NotImplementedError, "Solver has no log_partition"),
        (lambda: PATH.sample(np.zeros((1, ARCS)), n_samples=1, seed=0), NotImplementedError, "Solver has no sample"),
        (lambda: PATH.kbest(np.zeros((1, ARCS)), k=2), NotImplementedError, "Solver has no kbest"),
        (lambda: PATH.max_marginals(np.zeros((1, ARCS))), NotImplementedError, "has no max_marginals"),
        (lambda: regret(PATH, (np.zeros((1, ARCS)),), np.zeros((1, ARCS))), ValueError, "must be the true scores"),
        (lambda: spo_plus(Solver(abs), (np.zeros((1, 2)),), (np.zeros((1, 3)),)), ValueError, "arrays of the shapes"),
        *[
            (
                lambda loss=loss: loss(Solver(abs), (np.zeros((2, 3)),), (np.zeros((3, 3)),)),
                ValueError,
                "y must have the batch entries that the parts have. Got 3, not 2",
            )
            for loss in (spo_plus, regret)
        ],
        (
            lambda: spo_plus(Assignment(), (np.zeros((1, 2, 2)),), (np.full((1, 2, 2), -np.inf),)),
            ValueError,
            "masked .-inf. where the parts are",
        ),
    ],
)
def test_refusals_and_errors_of_solvers(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_decisions_in_jax():
    jax = pytest.importorskip("jax")
    from structsvm.layers.jax import differentiable

    guess, truth = drawn(6, dtype=np.float32)
    loss = differentiable(spo_plus, PATH)
    values = loss((guess,), (truth,))
    gradient = jax.jit(jax.grad(lambda scores: loss((scores,), (truth,)).sum()))(guess)
    wanted, (by_scores,) = spo_plus(PATH, (guess,), (truth,))
    assert np.asarray(values) == pytest.approx(wanted, abs=1e-5)
    assert np.asarray(gradient).tolist() == by_scores.tolist()
