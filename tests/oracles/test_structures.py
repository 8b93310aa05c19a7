"""The properties that all structures share, over the table of `structures_table`: enumeration decides."""

import pickle
from functools import cache, partial

import numpy as np
import pytest
from dual_reference import primal, solve_dual
from scipy.optimize import minimize
from structures_table import FORMULATIONS, STRUCTURES, case_of, check_most_violated, is_one_of, key, stacked

from structsvm import (
    CuttingPlane,
    FrankWolfe,
    LaRank,
    LatentSVM,
    Oracle,
    Perceptron,
    StructuredSVM,
    UnsupportedFormulation,
)
from structsvm.adapter import sparse_feature
from structsvm.dual._rounds import collect, completions, losses, violations
from structsvm.solvers import ConditionalLikelihood
from structsvm.testing import check_oracle

SEEDS = range(6)


def declared(structure):
    return case_of(structure, 0).formulations


EVERY = pytest.mark.parametrize("structure", STRUCTURES)
EVERY_FORMULATION = pytest.mark.parametrize(
    ("structure", "rescaling", "penalty"),
    [pytest.param(name, *form, id=f"{name}, {form[0]}, {form[1]}") for name in STRUCTURES for form in declared(name)],
)
KEEPS_PROTOCOL = pytest.mark.parametrize("structure", [s for s in STRUCTURES if case_of(s, 0).keeps_protocol])


def assert_same_targets(found, expected):
    """Words of outputs; those of an oracle in Python are the outputs themselves."""
    assert found.shape == expected.shape
    for one, other in zip(found.tolist(), expected.tolist(), strict=True):
        np.testing.assert_array_equal(one, other)


def dense(oracle, x, y):
    indices, values = sparse_feature(oracle.joint_feature(x, y), oracle.n_features, "joint_feature")
    psi = np.zeros(oracle.n_features)
    psi[indices] = values
    return psi


LABELLED = pytest.mark.parametrize(
    "structure",
    [
        *("chain of order 1", "chain of order 2, bigrams, masks", "segments", "greedy", "taxonomy, tree loss"),
        *("graphs, trees", "projective dependencies", "dependencies"),
    ],
)


@LABELLED
def test_joint_feature_refuses_what_is_no_output(structure):
    case = case_of(structure, 0)
    for x, y in zip(case.X, case.Y, strict=True):
        for label in (-1, 1000):
            wrong = np.array(y)
            wrong[(..., -1) if wrong.ndim else ()] = label
            with pytest.raises(ValueError, match=r"expected|known"):
                case.oracle.joint_feature(x, wrong)


# --- inference ------------------------------------------------------------------------------------


def outputs_of(case):
    """(x, y, space) of the inputs whose outputs are enumerated whole."""
    return zip(case.X, case.Y, case.spaces, strict=True)


EXACT = pytest.mark.parametrize(
    "structure", [s for s in STRUCTURES if case_of(s, 0).oracle.is_exact and case_of(s, 0).enumerates]
)


@EXACT
def test_argmax(structure):
    for seed in SEEDS:
        case = case_of(structure, seed)
        for whole in (False, True):
            w = case.weights(seed, whole=whole)
            for x, _, space in outputs_of(case):
                scores = space.psi @ w
                y = case.oracle.argmax(x, w)
                assert scores[space.find(y)] == pytest.approx(scores.max(), **case.tolerance)
                second = np.sort(scores)[-2:][0]
                if scores.max() - second > 1e-3:
                    assert space.find(y) == scores.argmax()
                assert key(case.oracle.argmax(x, w)) == key(y)


HAS_EXPECT = pytest.mark.parametrize("structure", [s for s in STRUCTURES if case_of(s, 0).oracle.has_expect])


def softmax(scores):
    """``(log of the sum of exponentials, probabilities)``."""
    best = scores.max()
    total = np.exp(scores - best).sum()
    return best + np.log(total), np.exp(scores - best) / total


@HAS_EXPECT
def test_expect(structure):
    for seed in SEEDS:
        case = case_of(structure, seed)
        w = case.weights(seed)
        for x, _, space in outputs_of(case):
            log_sum, p = softmax(space.psi @ w)
            found, expectation = case.oracle.expect(x, w)
            assert found == pytest.approx(log_sum, **case.tolerance)
            psi = np.zeros(case.oracle.n_features)
            indices, values = sparse_feature(expectation, case.oracle.n_features, "expect")
            psi[indices] = values
            assert psi == pytest.approx(p @ space.psi, **case.tolerance)


@HAS_EXPECT
def test_the_log_loss_and_its_solver(structure):
    """Losses, entropies and gradients of the bound problem; steps whose dual is the dual recomputed."""
    for seed in SEEDS:
        case = case_of(structure, seed)
        problem, w = case.oracle.bind(case.X, case.Y, rescaling=None), case.weights(seed)
        assert "expectations" in problem.offers
        for i, space in enumerate(case.spaces):
            log_sum, p = softmax(space.psi @ w)
            loss, entropy, gradient = problem.expect(i, w)
            assert loss == pytest.approx(log_sum - space.psi[space.true] @ w, **case.tolerance)
            assert entropy == pytest.approx(log_sum - p @ space.psi @ w, **case.tolerance)
            single = {name: max(value, 1e-6) for name, value in case.tolerance.items()}  # moments are float32
            assert gradient == pytest.approx(p @ space.psi - space.psi[space.true], **single)
        assert losses(problem, w) == pytest.approx([problem.expect(i, w)[0] for i in range(len(case.X))])
        run = ConditionalLikelihood(1.0, random_state=seed).start(problem)
        for _ in range(3):
            run.start_pass()
            while not run.schedule.run(1.0):
                pass
            before, weights = run.state.dual, run.weights
            assert run.state.settle() == pytest.approx(before, rel=1e-4, abs=1e-6)
            assert run.weights == pytest.approx(weights, rel=1e-4, abs=1e-5)
        run.certify()
        assert run.primal >= run.state.dual


def least_log_loss(spaces, agree, C, w):
    """The least ``1/2 |w|^2 + C sum_i (log sum_y - log sum_{y that agree}) exp <w, Psi>``, by L-BFGS from w."""

    def objective(w):
        value, gradient = 0.5 * w @ w, w.copy()
        for space, mask in zip(spaces, agree, strict=True):
            scores = space.psi @ w
            (all_, p), (some, q) = softmax(scores), softmax(scores[mask])
            value += C * (all_ - some)
            gradient += C * (p @ space.psi - q @ space.psi[mask])
        return value, gradient

    options = {"ftol": 1e-9, "gtol": 1e-9, "maxiter": 2000, "maxfun": 4000}
    return minimize(objective, w.astype(float), jac=True, method="L-BFGS-B", options=options).fun


@HAS_EXPECT
@pytest.mark.parametrize(("C", "sampling"), [(1e-3, "uniform"), (1e3, "gap")])
def test_the_log_loss_is_solved_as_it_comes(structure, C, sampling):
    """Whatever C is, and however examples are drawn, the bounds enclose the optimum of an independent solver."""
    case = case_of(structure, 0)
    problem = case.oracle.bind(case.X, case.Y, rescaling=None)
    run = ConditionalLikelihood(C, sampling=sampling, random_state=0).solve(problem)
    true = [np.arange(len(space.outputs)) == space.true for space in case.spaces]
    expected = least_log_loss(case.spaces, true, C, run.weights)
    assert run.status == "settled" and run.primal - run.dual <= 0.05 * run.primal
    assert run.dual <= expected * (1.0 + 1e-5) + 1e-9
    assert expected <= run.primal * (1.0 + 1e-5)


@cache
def known_problem(structure):
    """The problem of outputs known in part, and what agrees with each; None where it has no log loss."""
    case = case_of(structure, 0)
    knowledge = case.knowledge(0)
    if knowledge is None or not case.oracle.has_expect:
        return None
    problem = case.oracle.bind(case.X, [known for known, _ in knowledge], rescaling=None)
    return (case, problem, [agree for _, agree in knowledge]) if "expectations" in problem.offers else None


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if known_problem(s)])
@pytest.mark.parametrize("C", [1e-3, 1e3])
def test_the_log_loss_of_what_is_known_ends_in_a_minimum(structure, C):
    """From where training ends as it comes an independent solver hardly finds a lower objective."""
    case, problem, agree = known_problem(structure)
    run = ConditionalLikelihood(C, random_state=0).solve(problem)
    expected = least_log_loss(case.spaces, agree, C, run.weights)
    assert run.status == "settled" and run.primal - run.dual <= 0.05 * run.primal
    assert 0.95 * run.primal <= expected <= run.primal * (1.0 + 1e-5)


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if known_problem(s)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_passes_over_what_is_known_lower_the_objective(structure, C):
    """Steps without a length that surely gains do not lead away from where they begin."""
    _, problem, _ = known_problem(structure)
    run = ConditionalLikelihood(C, max_iter=1, random_state=0).start(problem)
    before = run.state.gradient(run.weights)[0]
    while not run.is_near:
        run.advance()
        run.checked_certify()
        assert 0.0 <= run.dual <= run.primal * (1.0 + 1e-6)
    assert run.primal <= before * (1.0 + 1e-6)


HAS_COMPLETE = pytest.mark.parametrize("structure", [s for s in STRUCTURES if case_of(s, 0).knowledge(0) is not None])


@HAS_COMPLETE
def test_complete(structure):
    """The best of all outputs that agree, by the oracle and by its bound problem; of what is known whole, that."""
    for seed in SEEDS:
        case = case_of(structure, seed)
        knowledge = case.knowledge(seed)
        problem = case.oracle.bind(case.X, [known for known, _ in knowledge])
        bounds, words = completions(problem, case.weights(seed))
        completed = problem.with_targets((bounds, words))
        assert not completed.differ(completions(completed, case.weights(seed))).any()
        shards = [problem.shard(i, i + 1) for i in range(problem.n_samples)]
        for whole in (False, True):
            w = case.weights(seed, whole=whole)
            for i, (known, agree) in enumerate(knowledge):
                x, space = case.X[i], case.spaces[i]
                k = space.find(case.oracle.complete(x, known, w))
                scores = space.psi @ w
                assert agree[k]
                assert scores[k] == pytest.approx(scores[agree].max(), **case.tolerance)
                assert key(case.oracle.complete(x, case.whole()[i], w)) == key(case.Y[i])
                assert_same_targets(problem.complete(i, w), shards[i].complete(0, w))
        for i, (known, _) in enumerate(knowledge):
            found = case.oracle.complete(case.X[i], known, case.weights(seed))
            one = case.oracle.bind([case.X[i]], [found]).targets[1]
            assert_same_targets(words[bounds[i] : bounds[i + 1]], one)


@HAS_COMPLETE
def test_latent_problems(structure):
    """Constraints are those of the completions; what is known whole is trained on as ever, bit for bit."""
    n_open = 0
    for seed in SEEDS[:3]:
        case = case_of(structure, seed)
        for rescaling, penalty in case.formulations:
            if penalty is None:
                continue
            solver = LaRank(C=0.5, rescaling=rescaling, penalty=penalty, max_iter=3, random_state=0)
            known = case.oracle.bind(case.X, case.whole(), rescaling=rescaling, penalty=penalty)
            ordinary = solver.solve(known)
            whole = LatentSVM(solver).solve(known)
            assert whole.weights.tobytes() == ordinary.weights.tobytes()
            assert (whole.primal, whole.dual) == (ordinary.primal, ordinary.dual)
            Y = [known for known, _ in case.knowledge(seed)]
            problem = case.oracle.bind(case.X, Y, rescaling=rescaling, penalty=penalty)
            fingerprint = problem.fingerprint()
            latent = LatentSVM(solver, tol=0.0, start="random", rounds=8)
            run = latent.solve(problem)
            assert run.problem.fingerprint() == fingerprint
            primal = run.history.arrays()["primal"]
            assert (np.diff(primal[np.isfinite(primal)]) <= 0.0).all()
            if (rescaling, penalty) == case.formulations[0]:
                threads = LaRank(**solver.get_params() | {"n_jobs": 2})
                two = LatentSVM(threads, tol=0.0, start="random", rounds=8).solve(problem)
                assert two.weights.tobytes() == run.weights.tobytes()
            restored = latent.start(pickle.loads(pickle.dumps(problem)))
            restored.set_state(run.get_state())
            assert_same_targets(restored.problem.targets[1], run.problem.targets[1])
            n_open += any(agree.sum() > 1 for _, agree in case.knowledge(seed))
    assert n_open


@HAS_COMPLETE
def test_completions_in_steps(structure):
    """Steps leave what the problem made anew of their completions has; the dual is exact through all of it."""
    n_changed = 0
    for seed in SEEDS[:3]:
        case = case_of(structure, seed)
        knowledge = case.knowledge(seed)
        for rescaling, penalty in case.formulations:
            if penalty is None:
                continue
            params = {"C": 0.5, "rescaling": rescaling, "penalty": penalty, "random_state": 0}
            problem = case.oracle.bind(case.X, [known for known, _ in knowledge], rescaling=rescaling, penalty=penalty)
            run = LatentSVM(LaRank(**params), start="random", online=True).start(problem)
            begun = run.problem.targets
            for _ in range(3):
                run.schedule.start_pass()
                assert run.schedule.run(10.0)
            state, targets = run.state, run.problem.targets
            before = state.dual
            assert state.settle() == pytest.approx(before, rel=1e-5, abs=1e-6)
            anew = problem.with_targets(targets)
            assert not anew.differ(targets).any()
            assert (state.changed | ~anew.differ(begun)).all()
            n_changed += state.changed.sum()
            w = case.weights(seed)
            for i in range(problem.n_samples):
                (b, psi), (other, other_psi) = run.problem.separate(i, w), anew.separate(i, w)
                assert b == other
                np.testing.assert_array_equal(psi, other_psi)
            fresh = LaRank(**params).start(anew)
            fresh.set_state(state.get_state() | fresh.schedule_arrays() | run.inner.get_state(), adapt=True)
            assert fresh.state.dual == pytest.approx(state.dual, rel=1e-5, abs=1e-6)
            assert state.dual <= state.primal() * (1.0 + 1e-6) + 1e-9
            w = run.state.weights
            known = case.oracle.bind(case.X, case.whole(), rescaling=rescaling, penalty=penalty)
            ordinary = LaRank(**params).solve(known)
            latent = LatentSVM(LaRank(**params), start="random", online=True).solve(known)
            assert latent.weights.tobytes() == ordinary.weights.tobytes()
    assert n_changed


@EXACT
def test_joint_feature_and_loss(structure):
    for seed in SEEDS:
        case = case_of(structure, seed)
        for x, true, space in outputs_of(case):
            for k in range(0, len(space.outputs), 1 + len(space.outputs) // 12):
                y = space.outputs[k]
                np.testing.assert_allclose(dense(case.oracle, x, y), space.psi[k], rtol=1e-6, atol=1e-7)
                loss = case.oracle.loss(true, y)
                assert loss == pytest.approx(space.loss[k], rel=1e-6, abs=1e-12) and loss >= 0.0
                assert loss == 0.0 if k == space.true else (loss > 0.0) == (space.loss[k] > 0.0)


@pytest.mark.parametrize(
    ("structure", "rescaling"),
    [(s, r) for s in STRUCTURES if case_of(s, 0).augments for r in dict.fromkeys(r for r, _ in declared(s))],
)
def test_loss_augmented_argmax(structure, rescaling):
    for seed in SEEDS:
        case = case_of(structure, seed)
        for whole in (False, True):
            w = case.weights(seed + 100, whole=whole)
            for x, true, space in outputs_of(case):
                values = space.values(w, rescaling)
                k = space.find(case.oracle.argmax(x, w, y_true=true, rescaling=rescaling))
                assert values[k] == pytest.approx(values.max(), **case.tolerance)


@EVERY_FORMULATION
def test_the_most_violated_constraint(structure, rescaling, penalty):
    for seed in SEEDS:
        case = case_of(structure, seed)
        weights = case.weights(seed + 200), case.weights(seed, whole=True), case.winning_weights(seed % 2)
        check_most_violated(case, weights, rescaling, penalty)


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if s != "bags"])
def test_plain_inference_for_perceptrons(structure):
    """Another output that ties with the true one is a mistake: otherwise w = 0 would never be left."""
    for seed in SEEDS:
        case = case_of(structure, seed)
        problem, tables = case.bind(None), case.constraints(None, "linear")
        zero = np.zeros(problem.n_features)
        weights = case.weights(seed), case.weights(seed, whole=True), case.winning_weights(seed % 2), zero
        for i, table in enumerate(tables):
            _, differences = stacked(table, problem.n_features)
            for w in weights:
                best = np.max(-differences @ w, initial=-np.inf)
                _, psi = problem.separate(i, w)
                assert -psi @ w == pytest.approx(max(best, 0.0), **case.tolerance)
                assert not psi.any() or np.isclose(differences, psi, atol=1e-6).all(axis=1).any()
                if case.prefers_others and not w.any() and len(table) and differences.any(axis=1).all():
                    assert psi.any()


# --- bound problems -------------------------------------------------------------------------------


@EVERY
def test_what_a_problem_says_of_itself(structure):
    case = case_of(structure, 1)
    for rescaling, penalty in case.formulations:
        problem = case.bind(rescaling, penalty)
        assert problem.n_samples == len(case.constraints(rescaling, penalty))
        assert problem.n_features == case.oracle.n_features
        assert problem.weight_dtype == (np.float32 if case.is_single else np.float64)
        assert problem.formulation == {"rescaling": rescaling, "penalty": penalty}
        assert problem.is_exact
        for i in (-1, problem.n_samples):
            with pytest.raises(IndexError, match=f"example {i} is out of range for {problem.n_samples} examples"):
                problem.separate(i, np.zeros(problem.n_features))


@EVERY
def test_the_norm_of_a_constraint(structure):
    case, w = case_of(structure, 1), case_of(structure, 1).weights(2)
    for rescaling, penalty in case.formulations:
        problem = case.bind(rescaling, penalty)
        for i in range(problem.n_samples):
            b, psi = problem.separate(i, w)
            assert problem.separated_norm(i, w) == pytest.approx((b, psi @ psi), **case.tolerance)


def cuts_of(problem, w):
    return [problem.separate(i, w) for i in range(problem.n_samples)]


def assert_same_cuts(found, expected):
    for (b, psi), (b_y, psi_y) in zip(found, expected, strict=True):
        assert b == b_y
        np.testing.assert_array_equal(psi, psi_y)


@EVERY
def test_parts_and_copies_are_the_problem(structure):
    for seed, (rescaling, penalty) in enumerate(declared(structure)):
        case = case_of(structure, seed)
        problem, w = case.bind(rescaling, penalty), case.weights(seed + 300)
        whole, n = cuts_of(problem, w), problem.n_samples
        groups = np.arange(n + 1) if problem.groups is None else problem.groups
        for start, stop in ((0, n), (int(groups[1]), n), (0, int(groups[-2]))):
            part = pickle.loads(pickle.dumps(problem.shard(start, stop)))
            assert (part.first, part.n_samples) == (start, stop - start)
            assert part.formulation == problem.formulation
            assert_same_cuts(cuts_of(part, w), whole[start:stop])
        # A round returns them too, and how much each is violated.
        violation, terms, bounds, _ = collect(problem, w, 0, n)
        expected = np.array([b - psi @ w for b, psi in whole])
        np.testing.assert_allclose(violation, expected, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(violation, violations(problem, w))
        for k in range(n):
            if violation[k] > 0.0 and bounds[k + 1] > bounds[k]:
                assert terms[k, 0] == whole[k][0]


@EVERY
def test_fingerprints_tell_data_apart(structure):
    n_others = 0
    for seed in SEEDS[:3]:
        case = case_of(structure, seed)
        fingerprint = case.bind().fingerprint()
        assert case.bind().fingerprint() == pickle.loads(pickle.dumps(case.bind())).fingerprint() == fingerprint
        others = [problem.fingerprint() for problem in case.others()]
        assert len({fingerprint, *others}) == 1 + len(others)
        n_others += len(others)
    assert n_others >= 6


class Counting(Oracle):
    """An oracle in Python around another one, which counts its calls."""

    def __init__(self, oracle):
        self.oracle, self.n_argmax = oracle, 0
        self.n_features, self.inference = oracle.n_features, oracle.inference
        self.rescalings, self.penalties = oracle.rescalings, ("linear",)

    def joint_feature(self, x, y):
        return self.oracle.joint_feature(x, y)

    def loss(self, y_true, y):
        return self.oracle.loss(y_true, y)

    def argmax(self, x, w, y_true=None, rescaling=None):
        self.n_argmax += 1
        return self.oracle.argmax(x, w, y_true=y_true, rescaling=rescaling)


@EVERY
def test_formulations_that_are_not_declared_are_refused(structure):
    """Before anything runs: the oracle is not called once."""
    case = case_of(structure, 0)
    oracle = Counting(case.oracle)
    oracle.rescalings = oracle.penalties = ()
    solvers = [LaRank(rescaling=r, penalty=p) for r, p in FORMULATIONS]
    refused = [(oracle, solver) for solver in solvers]
    refused += [(case.oracle, solver) for solver, form in zip(solvers, FORMULATIONS) if form not in case.formulations]
    for subject, solver in refused:
        with pytest.raises(UnsupportedFormulation):
            subject.bind(case.X, case.Y, **solver.formulation())
        model = StructuredSVM(subject, solver)
        with pytest.raises(UnsupportedFormulation):
            model.fit(case.X, case.Y)
        assert not hasattr(model, "coef_")
    assert oracle.n_argmax == 0
    rescaling, penalty = case.formulations[0]
    for other in (LaRank(rescaling=rescaling, penalty="quadratic" if penalty == "linear" else "linear"), Perceptron()):
        with pytest.raises(ValueError, match=r"was bound with .*; bind with \*\*solver\.formulation\(\)"):
            other.solve(case.bind(rescaling, penalty))


@EVERY
def test_states_resume_and_rounds_run_in_parallel(structure):
    case = case_of(structure, 0)
    rescaling, penalty = case.formulations[-1] if case.formulations[-1][1] else case.formulations[0]
    shared = {"C": 0.5, "rescaling": rescaling, "penalty": penalty, "tol": None, "max_iter": 2, "random_state": 0}
    solver, problem = LaRank(**shared), case.bind(rescaling, penalty)
    run = solver.solve(problem)
    copy = pickle.loads(pickle.dumps(problem))
    other = solver.start(copy)
    other.set_state(run.get_state())
    np.testing.assert_array_equal(other.state.weights, run.state.weights)
    on, again = solver.solve(problem, run=run, passes=2), solver.solve(copy, run=other, passes=2)
    np.testing.assert_array_equal(on.weights, again.weights)
    assert on.n_iter == again.n_iter == 4 and on.state.n_argmax == again.state.n_argmax
    one, two = (CuttingPlane(n_jobs=n, **shared).solve(case.bind(rescaling, penalty)).weights for n in (1, 2))
    np.testing.assert_array_equal(one, two)


# --- bad input ------------------------------------------------------------------------------------


@EVERY
def test_bad_input(structure):
    case = case_of(structure, 0)
    model = StructuredSVM(case.oracle, LaRank(random_state=0))
    with pytest.raises(ValueError):
        model.fit([], [])
    for X, Y in ((case.X, case.Y[:-1]), (case.X[:-1], case.Y)):
        with pytest.raises(ValueError, match=r"\d"):
            case.oracle.bind(X, Y)
        with pytest.raises(ValueError, match=r"\d"):
            model.fit(X, Y)
    problem = case.bind()
    for weight in ([np.nan] * problem.n_samples, [1.0] * (problem.n_samples + 1)):
        with pytest.raises(ValueError, match="sample_weight"):
            LaRank(random_state=0).solve(problem, sample_weight=np.array(weight))
    with pytest.raises(ValueError, match="w has shape"):
        problem.separate(0, np.zeros(1 + problem.n_features))
    assert not hasattr(model, "coef_")


# --- training -------------------------------------------------------------------------------------


@EVERY_FORMULATION
def test_arithmetic_of_cuts(structure, rescaling, penalty):
    """The weights and the objective that the steps track (Gram matrix, slopes) are those of the dense constraints."""
    for seed, schedule in enumerate(["decode-once", "fixed", "decode-once", "fixed"]):
        case = case_of(structure, seed)
        n = len(case.constraints(rescaling, penalty))
        solver = LaRank(C=0.7, rescaling=rescaling, penalty=penalty, schedule=schedule, n_reprocess=3, random_state=0)
        problem = case.bind(rescaling, penalty)
        run = solver.start(problem)
        try:
            for _ in range(2):
                run.schedule.start_pass()
                run.schedule.run(np.inf)
        except ValueError as error:  # two outputs of one joint feature: no weights keep a hard margin
            if penalty is not None or "the dual is unbounded" not in str(error):
                raise
        tracked, w = run.state.dual, run.state.weights.astype(float)
        examples, b, rows = run.state.constraints()
        owners, alpha = run.state.alphas()
        np.testing.assert_array_equal(owners, examples)
        tables = [stacked(table, problem.n_features) for table in case.constraints(rescaling, penalty)]
        exact, linear, total = np.zeros(len(w)), 0.0, np.zeros(n)
        for i, b_c, (indices, values), a in zip(examples, b, rows, alpha, strict=True):
            psi = np.zeros(len(w))
            psi[indices] = values
            assert is_one_of(b_c, psi, *tables[i])
            exact += a * psi
            linear += a * b_c
            total[i] += a
        value = linear - 0.5 * exact @ exact - (0.5 * np.sum(total**2) / 0.7 if penalty == "quadratic" else 0.0)
        size = max(1.0, abs(value), np.abs(exact).max())
        np.testing.assert_allclose(w, exact, rtol=0.0, atol=case.tolerance["rel"] * 2.0 * size)
        assert tracked == pytest.approx(
            value, rel=10.0 * case.tolerance["rel"], abs=10.0 * case.tolerance["rel"] * size
        )
        assert run.state.settle() == pytest.approx(value, rel=1e-9, abs=1e-9 * size)


@pytest.mark.parametrize(
    ("structure", "rescaling", "penalty"),
    [(name, r, p) for name in STRUCTURES for r, p in declared(name) if p is not None],
)
def test_solvers_reach_the_optimum_of_an_independent_one(structure, rescaling, penalty):
    case = next(case for case in map(partial(case_of, structure), SEEDS) if any(case.constraints(rescaling, penalty)))
    constraints = case.constraints(rescaling, penalty)
    C = np.full(len(constraints), 0.7)
    best = solve_dual(constraints, C, penalty)
    shared = {"C": 0.7, "rescaling": rescaling, "random_state": 0}
    solvers = [
        LaRank(penalty=penalty, tol=1e-4, max_iter=4000, **shared),
        CuttingPlane(penalty=penalty, tol=1e-4, max_iter=1000, **shared),
    ]
    if penalty == "linear":  # its gap falls with the number of passes, no faster
        solvers.append(FrankWolfe(tol=1e-2, max_iter=4000, **shared))
    for solver in solvers:
        run = solver.solve(case.bind(rescaling, penalty))
        assert run.status == "converged"
        assert run.dual <= run.primal * (1.0 + 1e-7) + 1e-9
        assert run.dual <= best * (1.0 + 1e-5) + 1e-7
        assert run.primal == pytest.approx(best, rel=1.2 * solver.tol, abs=1e-6)
        above = primal(run.weights.astype(float), constraints, C, penalty)
        assert run.primal == pytest.approx(above, rel=1e-5, abs=1e-6)


@KEEPS_PROTOCOL
def test_n_argmax_counts_every_call(structure):
    case = case_of(structure, 0)
    reached = []
    for solver in (
        LaRank(C=0.5, tol=1e-3, max_iter=1000, random_state=0),
        CuttingPlane(C=0.5, tol=1e-3, max_iter=1000, random_state=0),
        LaRank(C=0.5, tol=None, max_iter=3, schedule="fixed", random_state=0),
        Perceptron(max_iter=3, random_state=0),
    ):
        oracle = Counting(case.oracle)
        run = solver.solve(oracle.bind(case.X, case.Y, **solver.formulation()))
        assert run.result().n_argmax == oracle.n_argmax > 0
        reached.append(run.primal)
    # The oracle behind one in Python trains the same model as the compiled problem.
    same = LaRank(C=0.5, tol=1e-3, max_iter=1000, random_state=0).solve(case.bind())
    assert reached[:2] == pytest.approx([same.primal] * 2, rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if case_of(s, 0).keeps_protocol or s[:6] == "greedy"])
def test_check_oracle(structure):
    case = case_of(structure, 0)
    check_oracle(case.oracle, list(case.X), list(case.Y), n_trials=9)
