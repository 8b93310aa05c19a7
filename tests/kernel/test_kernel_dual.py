"""The kernel dual state: invariants of its steps, its optimum, its cache, its certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from kernel_reference import Machine, kernel_matrix

from structsvm.checkpoint import as_array, checked_state
from structsvm.dual._schedules import AdaptiveSchedule, FixedSchedule, SolveSchedule, SubgradientSchedule
from structsvm.kernel._full_gradient import FullGradient
from structsvm.kernel._kernel_dual import KernelDual, WorkingSetSchedule
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel._row_cache import RowCache
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import CrammerSinger, KernelLaRank

SCHEDULES = {
    "decode-once": lambda state: SolveSchedule(state, 3),
    "fixed": lambda state: FixedSchedule(state, 1, 10),
    "fractions": lambda state: FixedSchedule(state, 0.3, 4.7),
    "working-set": WorkingSetSchedule,
    "adaptive": AdaptiveSchedule,
}


def problem(seed, n=None, kernel="rbf", general=False):
    """A random problem, its kernel matrix as the state sees it, and the arguments of the state."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 40)) if n is None else n, int(rng.integers(2, 6))
    X, y = rng.normal(size=(n, 3)), rng.integers(0, k, n).astype(np.int32)
    X[n // 2] = X[0]  # the same example, perhaps with another label
    C = rng.choice([0.0, 0.1, 1.0, 10.0], n)
    C[0] = 1.0
    loss = attributes = None
    if general:
        loss, attributes = rng.random((k, k)), rng.normal(size=(k, 3))
        np.fill_diagonal(loss, 0.0)
    gram = Gram(Kernel(kernel, gamma=0.5, coef0=1.0, degree=2), Rows(X))
    found = KernelProblem(gram, y, k, loss=loss, attributes=attributes)
    K = gram.kernel.block(gram.rows, range(n), gram.rows, range(n)).astype(np.float64)
    similarity = None if attributes is None else attributes @ attributes.T
    return found, Machine(K, y, C, k, loss, similarity)


def state_of(found, machine, **kwargs):
    return KernelDual(
        found.gram, found.y, machine.C, found.n_labels, loss=found.loss, similarity=found.similarity, **kwargs
    )


def check(state, machine):
    """The point is feasible, and what is tracked is what is true; returns the point."""
    members, slots, labels, beta, g = state.coefficients()
    B = machine.dense((members, slots, labels, beta))
    assert machine.feasible(B)
    assert (beta != 0.0).all() and np.array_equal(np.unique(slots), np.arange(len(members)))
    scale = max(1.0, np.abs(machine.scores(B)).max())
    np.testing.assert_allclose(g, machine.gradient(B)[members[slots], labels], rtol=0, atol=1e-10 * scale)
    assert state.dual == pytest.approx(machine.dual(B), rel=1e-9, abs=1e-10)
    assert state.n_vectors == len(beta)
    return B


@pytest.mark.parametrize("general", [False, True], ids=["flat", "attributes"])
@pytest.mark.parametrize("selection", ["random", "gain"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@given(seed=st.integers(0, 10**6), tau=st.sampled_from([0.0, 0.1]))
@settings(max_examples=5)
def test_invariants(schedule, selection, general, seed, tau):
    found, machine = problem(seed, general=general)
    state = state_of(found, machine, selection=selection, seed=seed)
    state.tau = tau
    plan, value = SCHEDULES[schedule](state), 0.0
    for _ in range(3):
        plan.start_pass()
        done = False
        while not done:
            done = plan.run(0.0)
            assert state.dual >= value - 1e-12 * max(1.0, value)
            value = state.dual
            check(state, machine)
        state.settle()
        B = check(state, machine)
        primal, dual, norm = state.certify()
        assert primal == pytest.approx(machine.primal(B), rel=1e-9, abs=1e-9)
        assert dual == pytest.approx(machine.dual(B), rel=1e-9, abs=1e-9)
        assert norm == pytest.approx(0.5 * np.sum(B * machine.scores(B)), rel=1e-9, abs=1e-9)
        assert dual <= primal + 1e-9 * max(1.0, primal)


@pytest.mark.parametrize("schedule", [(1, 0), (0, 1)], ids=["process_old", "optimize"])
def test_the_bound_on_the_steps_of_larank(schedule):
    """LaRank's theorem: a step of slope above tau with room above kappa gains min(tau^2 / 2 nu, kappa tau / 2) or more,
    nu = |Phi(x, y) - Phi(x, z)|^2, and the dual is n C at most."""
    found, machine = problem(3, n=12)
    state = state_of(found, machine, seed=3)
    tau, nu = 0.1, 2.0 * np.diag(machine.K).max()
    state.tau, n_steps, kappa, dual = tau, 0, np.inf, 0.0
    before = machine.dense(state.coefficients()[:4])
    for _ in range(150):
        plan = FixedSchedule(state, *schedule)
        plan.start_pass()
        for _ in range(2):  # ProcessNew; then one step on an old example, and perhaps another ProcessNew
            plan.run(0.0)
            after, least = machine.dense(state.coefficients()[:4]), 0.0
            for i in np.flatnonzero((after != before).any(axis=1)):
                plus = np.argmax(after[i] - before[i])
                room = (machine.C[i] if plus == machine.y[i] else 0.0) - before[i, plus]
                least += min(tau**2 / (2.0 * nu), room * tau / 2.0)
                n_steps, kappa = n_steps + 1, min(kappa, room)
            assert state.dual - dual >= least * (1.0 - 1e-9)
            before, dual = after, state.dual
    total = machine.C.sum()
    assert dual <= total
    assert 12 <= n_steps <= max(2.0 * nu * total / tau**2, 2.0 * total / (kappa * tau))


def test_galas_selection_against_the_algorithm_written_out():
    """Algorithm 2 of GaLa after each ProcessNew: of the patterns with one of the two labels just moved and a random
    third one the best step, before all one that removes a vector; none, which is a random pattern, if none gains."""
    none = 0
    for seed in range(6):
        found, machine = problem(seed, n=12)
        state = state_of(found, machine, selection="gain", seed=seed)
        before, had_one = machine.dense(state.coefficients()[:4]), False
        for _ in range(30):
            plan = FixedSchedule(state, 0, 0)
            plan.start_pass()
            plan.run(0.0)  # one example
            B = machine.dense(state.coefficients()[:4])
            change = (B - before).sum(axis=0) if (before != B).any() else None
            before = B
            if change is None or machine.k < 3:
                continue
            moved = np.flatnonzero(change)
            chosen, *pair = state.get_state()["counters"][5:]
            others = np.setdiff1d(range(machine.k), moved)
            best = {third: best_gain(machine, B, moved, third) for third in others}
            if chosen < 0:
                assert min(best.values()) == (False, 0.0)
                none += had_one
            else:
                assert pair[0] in moved and pair[1] in others
                assert gain_of(machine, B, chosen, *pair) == pytest.approx(best[pair[1]])
            had_one = chosen >= 0
    assert none > 0


def best_gain(machine, B, moved, third):
    """The best step between a label just moved and a third one: whether it removes a vector, and its gain."""
    both = [(i, label) for label in moved for i in np.flatnonzero((B[:, label] != 0.0) & (B[:, third] != 0.0))]
    assert all(sum(label == one for _, one in both) <= 5 for label in moved)  # the few that are looked at
    steps = [gain_of(machine, B, i, label, third) for i, label in both]
    return max((step for step in steps if step[1] > 0.0), default=(False, 0.0))


def gain_of(machine, B, i, a, b):
    g = machine.gradient(B)[i]
    plus, slope = (a if g[a] >= g[b] else b), abs(g[a] - g[b])
    room = (machine.C[i] if plus == machine.y[i] else 0.0) - B[i, plus]
    amount = min(slope / (2.0 * machine.K[i, i]), room)
    return bool(amount == room and plus != machine.y[i]), amount * (slope - amount * machine.K[i, i])


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("general", [False, True], ids=["flat", "attributes"])
@example(seed=39, selection="gain")  # a pattern that selection by gain alone never comes to
@given(seed=st.integers(0, 10**6), selection=st.sampled_from(["random", "gain"]))
@settings(max_examples=3)
def test_the_optimum_is_that_of_a_general_solver(kernel, general, seed, selection):
    """The sigmoid kernel has a concave dual on few examples only."""
    n = 3 if kernel == "sigmoid" else 7
    found, machine = problem(seed, n=n, kernel=kernel, general=general)
    if kernel == "sigmoid":
        found.gram = Gram(Kernel("sigmoid", gamma=0.3), found.gram.rows)
        machine.K = found.gram.block(range(n), range(n)).astype(np.float64)
        assume(np.linalg.eigvalsh(machine.K).min() > -1e-9)
    state = state_of(found, machine, selection=selection, seed=seed)
    state.tau = 1e-10
    plan = FixedSchedule(state, 2, 20)
    primal, dual = np.inf, 0.0
    for _ in range(4000):
        plan.start_pass()
        plan.run(np.inf)
        primal, dual, _ = state.certify()
        if primal - dual <= 1e-7 * primal:
            break
    wanted = machine.optimum()
    assert dual == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert primal == pytest.approx(wanted, rel=1e-5, abs=1e-5)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_larank_crammer_singer_and_a_general_solver_agree(seed):
    found, machine = problem(seed, n=12)
    if not machine.C.any():
        return
    weight = machine.C
    exact = CrammerSinger(C=1.0, tol=1e-8, random_state=seed).solve(found, sample_weight=weight)
    online = KernelLaRank(C=1.0, tol=1e-7, random_state=seed).solve(found, sample_weight=weight)
    assert exact.status == online.status == "converged"
    wanted = machine.optimum()
    for run in (exact, online):
        B = machine.dense(run.state.coefficients())
        assert machine.feasible(B)
        assert run.dual == pytest.approx(machine.dual(B), rel=1e-7, abs=1e-9)
        assert run.primal == pytest.approx(machine.primal(B), rel=1e-7, abs=1e-9)
        assert run.dual == pytest.approx(wanted, rel=1e-6, abs=1e-7)


@given(seed=st.integers(0, 10**6), tau=st.sampled_from([0.0, 0.3]))
@settings(max_examples=20)
def test_full_gradient(seed, tau):
    """Each visit solves its row exactly: no violation is left there; the gradient stays what it is."""
    found, machine = problem(seed)
    state = FullGradient(found.gram, found.y, machine.C, found.n_labels, seed=seed)
    state.tau, plan, value = tau, SolveSchedule(state, 0), 0.0
    for _ in range(3):
        plan.start_pass()
        done = False
        while not done:
            done = plan.run(0.0)
            assert state.dual >= value - 1e-12 * max(1.0, value)
            value = state.dual
            B = machine.dense(state.coefficients())
            assert machine.feasible(B)
            assert state.dual == pytest.approx(machine.dual(B), rel=1e-9, abs=1e-9)
            assert state.n_vectors == np.count_nonzero(B)
    primal, dual, _ = state.certify()
    assert primal == pytest.approx(machine.primal(B), rel=1e-9, abs=1e-9)
    assert dual == pytest.approx(machine.dual(B), rel=1e-9, abs=1e-9)


def test_one_row_is_solved_exactly():
    """After the first visit nothing is left to gain on that example: the best direction of its row has no slope."""
    solved = 0
    for seed in range(30):
        found, machine = problem(seed)
        state = FullGradient(found.gram, found.y, machine.C, found.n_labels, seed=seed)
        plan = SolveSchedule(state, 0)
        plan.start_pass()
        plan.run(0.0)
        B = machine.dense(state.coefficients())
        for i in np.flatnonzero(B.any(axis=1)):
            g = machine.gradient(B)[i]
            free = B[i] < np.where(np.arange(machine.k) == machine.y[i], machine.C[i], 0.0)
            assert g[free].max(initial=-np.inf) - g.min() <= 1e-9
            solved += 1
    assert solved > 10


# ---- the cache ---------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["decode-once", "fixed", "adaptive"])
@pytest.mark.parametrize("selection", ["random", "gain"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=3)
def test_the_cache_has_no_influence_on_the_model(schedule, selection, seed):
    found, machine = problem(seed, n=150)
    kept = []
    for rows in (1, 2, 7, 150):
        gram = Gram(found.gram.kernel, found.gram.rows)
        state = KernelDual(
            gram, found.y, machine.C, found.n_labels, cache_size=(rows + 0.5) * 150 * 4 / 2**20, selection=selection,
            seed=seed,
        )  # fmt: skip
        plan = SCHEDULES[schedule](state)
        for _ in range(2):
            plan.start_pass()
            plan.run(np.inf)
            state.settle()
        kept.append((state.coefficients(), state.certify(), state.cache.hit_rate, gram.n_values))
    for coefficients, certificate, _, _ in kept:
        for mine, its in zip(coefficients, kept[0][0], strict=True):
            np.testing.assert_array_equal(mine, its)
        assert certificate == pytest.approx(kept[0][1], rel=1e-12)
    assert kept[0][2] <= kept[-1][2] == 1.0
    assert kept[0][3] >= kept[-1][3]
    if schedule == "fixed":
        assert kept[0][2] < 1.0 and kept[0][3] > kept[-1][3]


def test_fresh_examples_come_in_blocks_in_every_pass():
    found, machine = problem(0, n=300)
    state = state_of(found, machine, seed=0)
    plan = FixedSchedule(state, 1, 50)
    for passes in range(1, 5):
        plan.start_pass()
        assert plan.run(np.inf)
        assert state.cache.n_blocks <= passes * -(-300 // 64)
        # Alone are those at most that were members when their block was taken and are none when their turn comes.
        assert passes > 1 or state.cache.n_alone == 0
    assert state.cache.n_alone < 0.1 * 4 * 300


def test_rows_of_the_cache_are_rows_of_the_kernel():
    """Rows that count as computed are computed: fresh blocks, rows that were dropped, certificates."""
    found, machine = problem(3, n=100)
    state = state_of(found, machine, seed=0)
    machine.C[:] = 1.0
    plan = FixedSchedule(state, 0, 0)
    plan.start_pass()
    plan.run(np.inf)
    # Two blocks: 64 with one another; 36 with the members so far and with one another.
    first = found.gram.n_values
    assert 64 * 64 + 36 * 36 <= first <= 64 * 64 + 36 * (64 + 36)
    assert state.cache.n_missed == 0
    state.certify()
    assert found.gram.n_values == first + (100 - state.cache.n_members) * state.cache.n_members


def test_a_cache_that_is_too_small():
    gram = Gram(Kernel("linear"), Rows(np.eye(1000)))
    with pytest.raises(
        ValueError, match=r"cache_size=0.001 MB is less than one row .* of 1000 examples, .* 0.00381 MB"
    ):
        RowCache(gram, 0.001)
    RowCache(gram, 0.0039)


# ---- where the state stands --------------------------------------------------------------------


def trained(found, machine, seed=0, passes=2):
    state = state_of(found, machine, seed=seed, selection="gain")
    plan = AdaptiveSchedule(state)
    for _ in range(passes):
        plan.start_pass()
        plan.run(np.inf)
        state.settle()
    return state, plan


def test_a_state_goes_on_bit_for_bit():
    found, machine = problem(5, n=80)
    state, plan = trained(found, machine)
    copy = state_of(found, machine, seed=99, selection="gain")
    copy.set_state(state.get_state())
    other = AdaptiveSchedule(copy)
    other.set_state(plan.get_state())
    for _ in range(2):
        for p in (plan, other):
            p.start_pass()
            p.run(np.inf)
        state.settle()
        copy.settle()
    for mine, its in zip(state.coefficients(), copy.coefficients(), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert state.dual == copy.dual and state.cost == copy.cost


def test_derivatives_can_be_computed_anew():
    found, machine = problem(6, n=60, general=True)
    state, _ = trained(found, machine)
    copy = state_of(found, machine)
    copy.restart(*state.coefficients()[:4])
    check(copy, machine)
    assert copy.dual == pytest.approx(state.dual, rel=1e-9)


def through_the_table(arrays, state):
    return checked_state(arrays | {"kind": as_array(state.kind)}, n_labels=state.n_labels, examples=state.n_samples)


def test_states_that_are_not_sound():
    found, machine = problem(7, n=60)
    state, _ = trained(found, machine)
    sound = state.get_state()
    fresh = state_of(found, machine)
    label, numbers = sound["vector_label"].copy(), sound["vector_numbers"].copy()
    label[0] = 99
    numbers[0, 0] = 1e9
    for change, message in [
        ({"vector_label": label}, "'vector_label' has values"),
        ({"vector_numbers": numbers}, "not feasible"),
        ({"vector_numbers": sound["vector_numbers"][:, :-1]}, "vector_numbers"),
        ({"support": sound["support"] + 60}, "'support' has values from"),
        ({"support": np.zeros_like(sound["support"])}, "array 'support' has a value twice"),
        ({"vector_slot": np.zeros_like(sound["vector_slot"])}, "'vector_slot' must hold every slot"),
        ({"random": np.zeros(4, dtype=np.uint64)}, "array 'random' is all 0"),
        ({"counters": sound["counters"] - 10**6}, "counters"),
        ({"counters": np.where(np.arange(8) == 0, 2**62, sound["counters"])}, "counters"),
        ({"counters": np.where(np.arange(8) == 5, 60, sound["counters"])}, "a selection out of range"),
        ({"counters": np.where(np.arange(8) == 6, -1, sound["counters"])}, "a selection out of range"),
        ({"cost": None}, "array 'cost' is missing"),
    ]:
        with pytest.raises(ValueError, match=message):
            fresh.set_state(through_the_table(sound | change, fresh))
    fresh.set_state(through_the_table(sound, fresh))
    check(fresh, machine)


def test_arguments_of_the_state():
    gram = Gram(Kernel("linear"), Rows(np.eye(3)))
    with pytest.raises(ValueError, match="y has 2 and C 3 entries for 3 examples"):
        KernelDual(gram, [0, 1], np.ones(3), 2)
    with pytest.raises(ValueError, match="labels from 0 to 1"):
        KernelDual(gram, [0, 1, 2], np.ones(3), 2)
    with pytest.raises(ValueError, match="finite and not negative"):
        KernelDual(gram, [0, 1, 1], np.array([1.0, -1.0, 0.0]), 2)


# ---- steps that a state does not have; the perceptron -------------------------------------------


def test_a_state_says_what_it_cannot_do():
    found, machine = problem(8, n=10)
    state = state_of(found, machine)
    with pytest.raises(
        TypeError, match="SubgradientSchedule needs a state with subgradient_step; KernelDual has optimize"
    ):
        SubgradientSchedule(state)


def test_sparse_similarity_is_the_dense_one():
    found, _ = problem(9, general=True)
    again = KernelProblem(found.gram, found.y, found.n_labels, attributes=sp.csr_array(np.eye(found.n_labels)))
    assert found.similarity.shape == (found.n_labels,) * 2
    np.testing.assert_array_equal(again.similarity.toarray(), np.eye(found.n_labels))


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid"])
def test_kernels_agree_with_the_reference(name):
    X = np.random.default_rng(0).normal(size=(8, 3))
    K = Kernel(name, gamma=0.5, coef0=1.0, degree=2).block(Rows(X), range(8), Rows(X), range(8))
    np.testing.assert_allclose(K, kernel_matrix(name, X, X, 0.5, 2, 1.0), rtol=1e-6)


def test_the_order_of_attributes_makes_no_other_structure():
    gram, y = Gram(Kernel("rbf"), Rows(np.eye(6))), np.arange(6) % 3
    attributes = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    prints = {
        KernelProblem(gram, y, 3, attributes=kind(attributes[:, order])).structure_fingerprint()
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1])
        for kind in (np.array, sp.csr_array, sp.csc_array)
    }
    assert len(prints) == 1
    assert KernelProblem(gram, y, 3).structure_fingerprint() not in prints
    assert KernelProblem(gram, y, 3, attributes=2.0 * attributes).structure_fingerprint() not in prints
