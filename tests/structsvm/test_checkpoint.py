"""Checkpoints: a run that was killed at any moment ends in the same model, bit for bit."""

import errno
import os
import re
from contextlib import suppress

import numpy as np
import pytest

from structsvm import (
    Checkpoint,
    CuttingPlane,
    FrankWolfe,
    LaRank,
    ModelFileError,
    PassiveAggressive,
    Perceptron,
    StructuredSVM,
    checkpoint,
)
from structsvm.checkpoint import as_array, as_text, kind_of, resumed, table_of
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.linear.problem import LinearProblem
from structsvm.model_file import read_model, write_model
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.solvers import SGDQN, CrammerSinger, Huller, KernelLaRank, KernelPerceptron, LaSVM, WestonWatkins
from structsvm.solvers.kernel.base import KernelRun
from structsvm.tasks import SequenceLabeler

SOLVERS = [
    LaRank(C=0.5, tol=1e-4, random_state=3),
    LaRank(C=0.5, max_iter=7, schedule="adaptive", random_state=3),
    PassiveAggressive(C=0.5, max_iter=6, average=True, random_state=1),
    CuttingPlane(C=0.5, random_state=1),
    CuttingPlane(C=0.5, rescaling="slack", penalty="quadratic", tol=1e-2, random_state=1),
    CuttingPlane(C=0.5, optimize="constraint", epsilon=0.01, tol=None, random_state=1),
    CuttingPlane(C=0.5, form="one_slack", tol=1e-2, random_state=1),
    FrankWolfe(C=0.5, random_state=1),
    Perceptron(random_state=1),
]


MACHINES = [
    KernelLaRank(C=2.0, max_iter=6, random_state=1),
    KernelLaRank(C=2.0, schedule="adaptive", selection="gain", tol=1e-4, random_state=1),
    KernelLaRank(C=2.0, schedule=(0.3, 2.5), max_iter=6, random_state=1),
    CrammerSinger(C=2.0, tol=1e-6, random_state=1),
    WestonWatkins(C=2.0, tol=1e-6, cache_size=0.002),
    WestonWatkins(C=2.0, method="frank_wolfe", tol=1e-2),
    LaSVM(C=2.0, max_iter=6, n_reprocess=0.7, random_state=1),
    LaSVM(C=2.0, tol=1e-7, tau=0.3, random_state=1),
    LaSVM(C=2.0, max_iter=6, selection="active", max_visits=40, delta_max=0.5, random_state=1),
    Huller(max_iter=6, random_state=1),
    KernelPerceptron(max_iter=6, random_state=1),
    KernelPerceptron(max_iter=6, average=False, random_state=1),
    KernelPerceptron(max_iter=6, average=False, budget=9, margin=0.5, random_state=1),
    SGDQN(alpha=1e-2, max_iter=6, random_state=1),
    SGDQN(alpha=1e-2, average=True, method="svmsgd2", loss="hinge", max_iter=6, random_state=1),
]
EVERY = [*SOLVERS, *MACHINES]


def name_of(solver):
    return repr(solver).replace("random_state=1", "")


class Killed(Exception):
    pass


class Killer(Monitor):
    def __init__(self, after):
        self.after = after

    def end_pass(self, run):
        if run.n_iter == self.after:
            raise Killed
        return False


def chains(n=50, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, n)
    return [rng.normal(size=(t, 5)) for t in lengths], [rng.integers(0, 3, t) for t in lengths]


def points(solver, n=80, seed=0):
    """A kernel problem, or a linear one, with as many labels as the solver takes."""
    rng = np.random.default_rng(seed)
    n_labels = 2 if isinstance(solver, (LaSVM, Huller)) else 4
    y = np.arange(n, dtype=np.int32) % n_labels
    X = rng.normal(size=(n, 5)) + 1.2 * np.eye(5)[y]
    if isinstance(solver, SGDQN):
        return LinearProblem(Rows(X), y, n_labels)
    return KernelProblem(Gram(Kernel("rbf", gamma=0.3), Rows(X)), y, n_labels)


def problem_of(solver, kind=ViterbiOracle, data=None, seed=0):
    if isinstance(solver, tuple(map(type, MACHINES))):
        return points(solver, seed=seed)
    return kind(3, 5).bind(*(data or chains(seed=seed)), **solver.formulation())


def changed(solver, **params):
    return type(solver)(**solver.get_params() | params)


def solve(solver, path=None, every=1, monitor=None, kind=ViterbiOracle, data=None, **options):
    solver = changed(solver, checkpoint=path if every == 1 else Checkpoint(path, every))
    return solver.solve(problem_of(solver, kind, data), monitor=monitor, **options)


def weights(run):
    """The model, as a list of arrays."""
    if isinstance(run, KernelRun):
        vectors = run.support_vectors
        return [*run.state.coefficients(), vectors.members, vectors.slots, vectors.labels, vectors.beta, run.intercept]
    return [run.weights]


def same(run, other):
    for mine, its in zip(weights(run), weights(other), strict=True):
        np.testing.assert_array_equal(mine, its)
    mine, its = run.result().to_dict(), other.result().to_dict()
    assert mine | {"seconds": 0} == its | {"seconds": 0}
    for column, values in run.result().history.items():
        # Rows come by the clock as well; those at the end of passes are in every history.
        if column != "seconds":
            its = other.result().history
            mine = {n: v for n, v in zip(run.result().history["n_iter"], values, strict=True) if n == int(n)}
            assert str(mine) == str({n: v for n, v in zip(its["n_iter"], its[column], strict=True) if n == int(n)})


@pytest.mark.parametrize("solver", EVERY, ids=name_of)
@pytest.mark.parametrize("every", [1, 2])
def test_a_run_that_is_left_and_resumed(tmp_path, solver, every):
    whole = solve(solver)
    assert whole.n_iter > 3
    for after in (1, 3, 4):
        if after < whole.n_iter:
            with pytest.raises(Killed):
                solve(solver, tmp_path / "c", every, Killer(after))
    same(solve(solver, tmp_path / "c", every), whole)
    same(solve(solver, tmp_path / "c", every), whole)  # the file of a run that has ended


@pytest.mark.parametrize("every", [1, 2, 3])
def test_how_often_it_is_written(tmp_path, monkeypatch, every):
    passes = []

    def write(path, kind, about, arrays):
        assert (path, kind) == (str(tmp_path / "c"), "checkpoint")
        passes.append(int(arrays["run"][0]))

    monkeypatch.setattr(checkpoint, "write_model", write)
    solve(LaRank(max_iter=7, random_state=0), tmp_path / "c", every)
    assert passes == [k for k in range(1, 7) if k % every == 0]  # the last pass needs none


PARAMETERS = [
    *[(LaRank(C=0.5, random_state=0), {name: value}) for name, value in {
        "C": 0.4, "n_reprocess": 3, "schedule": "adaptive", "average": False, "random_state": 1,
    }.items()],
    (CuttingPlane(random_state=0), {"epsilon": 0.5}),
    (CuttingPlane(random_state=0), {"qp_tol": 0.5}),
    (FrankWolfe(random_state=0), {"n_cached": 3}),
    (Perceptron(random_state=0), {"average": False}),
    (KernelLaRank(random_state=0, max_iter=5), {"n_reprocess": 2}),
    (KernelLaRank(random_state=0, max_iter=5), {"selection": "gain"}),
    (CrammerSinger(random_state=0), {"C": 2.0}),
    (WestonWatkins(), {"method": "frank_wolfe"}),
    (LaSVM(random_state=0, max_iter=5), {"tau": 1e-2}),
    (LaSVM(random_state=0, max_iter=5), {"finishing": False}),
    (Huller(random_state=0), {"random_state": 1}),
    (KernelPerceptron(random_state=0), {"average": False}),
    (KernelPerceptron(average=False, random_state=0), {"budget": 9}),
    (KernelPerceptron(random_state=0), {"margin": 0.5}),
    (SGDQN(random_state=0), {"alpha": 1e-2}),
    (SGDQN(random_state=0), {"loss": "hinge"}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize(("solver", "change"), PARAMETERS, ids=str)
def test_other_parameters_are_refused(tmp_path, solver, change):
    with pytest.raises(Killed):
        solve(solver, tmp_path / "c", monitor=Killer(1))
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(ModelFileError, match="the checkpoint is of another solver; delete it to start anew"):
        solve(changed(solver, **change), tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == before
    solve(changed(solver, max_iter=4), tmp_path / "c", every=2)


@pytest.mark.parametrize("solver", MACHINES[::2], ids=name_of)
def test_other_examples_are_refused(tmp_path, solver):
    solver = changed(solver, checkpoint=tmp_path / "c")
    with pytest.raises(Killed):
        solver.solve(problem_of(solver), monitor=Killer(1))
    with pytest.raises(ModelFileError, match="of another problem"):
        solver.solve(problem_of(solver, seed=1))
    if not isinstance(solver, KernelPerceptron):
        with pytest.raises(ModelFileError, match="of another problem"):
            solver.solve(problem_of(solver), sample_weight=np.r_[2.0, np.ones(79)])


def test_other_losses_attributes_and_kernels_are_refused(tmp_path):
    solver = KernelLaRank(random_state=0, checkpoint=tmp_path / "c")
    problem = points(solver)
    data, y = problem.gram.rows.data, problem.y
    with pytest.raises(Killed):
        solver.solve(problem, monitor=Killer(1))

    def other(kernel=problem.gram.kernel, **options):
        return KernelProblem(Gram(kernel, Rows(data)), y, 4, **options)

    for problem in (
        other(Kernel("rbf", gamma=0.4)),
        other(loss=2.0 * (1.0 - np.eye(4))),
        other(attributes=np.eye(4)[:, :3]),
        other(Kernel(lambda X, Z: X @ Z.T)),
    ):
        with pytest.raises(ModelFileError, match=r"of another problem|with another formulation"):
            solver.solve(problem)
    solver.solve(other())


# ---- what states refuse --------------------------------------------------------------------------


def damaged(state, rng):
    """A copy with something wrong in one array."""
    state = {name: np.array(array) for name, array in state.items()}
    name = str(rng.choice(sorted(state)))
    array = state[name]
    match rng.integers(0, 5):
        case 0:
            del state[name]
        case 1:
            state[name] = array[: rng.integers(0, len(array) + 1)]
        case 2:
            with np.errstate(invalid="ignore"):
                state[name] = array.astype(rng.choice([np.int64, np.float64, np.int32, np.float32, np.int8]))
        case 3 if array.size:
            info = None if array.dtype.kind == "f" else np.iinfo(array.dtype)
            values = [np.nan, np.inf, -1.0, 1e300, 0.0] if info is None else [info.min, info.max, -1, 0, 7, 10**6]
            values = [value for value in values if info is None or info.min <= value <= info.max]
            array.reshape(-1)[rng.integers(0, array.size, rng.integers(1, 4))] = np.array(rng.choice(values)).astype(
                array.dtype
            )
        case 4:
            state[name] = array[None] if rng.random() < 0.5 else np.concatenate([array, array])
    return state


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("solver", MACHINES, ids=name_of)
def test_hostile_states(solver, adapt):
    """Each damaged state is refused by a ValueError and leaves what was there, or is a sound state that trains on."""
    rng = np.random.default_rng(0)
    problem = problem_of(solver)
    saved = solver.solve(problem, passes=2).get_state()
    refused = 0
    for _ in range(60):
        run = solver.solve(problem, passes=1)
        before = run.get_state()
        harmed, said = damaged(saved, rng), None
        try:
            run.set_state(harmed, adapt=adapt)
        except ValueError as error:
            refused += 1
            said = str(error)
            after = run.get_state()
            assert all(np.array_equal(before[key], after[key], equal_nan=True) for key in before)
        assert said is None or re.search(
            r"array '\w+'|coefficients|history of|schedule of|another formulation|of kind", said
        ), said
        with np.errstate(all="ignore"), suppress(ValueError):  # numbers near the largest one overflow
            run.advance()
    assert refused > 15


@pytest.mark.parametrize("solver", EVERY, ids=name_of)
def test_a_state_of_another_kind_is_refused(solver):
    run = solver.start(problem_of(solver))
    state = run.get_state()
    with pytest.raises(ValueError, match="the training state is of kind 'another', expected "):
        run.set_state(state | {"kind": np.frombuffer(b"another", dtype=np.uint8)})
    assert kind_of(state) == run.state.kind
    del state["kind"]
    with pytest.raises(ValueError, match="array 'kind' of the training state must be text"):
        run.set_state(state)


@pytest.mark.parametrize("solver", EVERY, ids=name_of)
def test_a_state_of_another_size_is_refused(solver):
    """Sizes of the problem, and indices below them, are among what tables say."""
    run = solver.solve(problem_of(solver), passes=1)
    state, sizes = run.get_state(), run.state_sizes()
    table = {name: wanted for name, wanted in table_of(state).items() if name in state}
    indices = {name: sizes[wanted.within[1]] for name, wanted in table.items() if wanted.within[1] in sizes}
    for name, size in indices.items():
        with pytest.raises(ValueError, match=f"array '{name}' has values"):
            run.set_state(state | {name: np.full_like(state[name], size)})
    larger = {}
    for size in {*sizes, "n_machines", "n_columns"}:
        sized = {name: wanted.shape.index(size) for name, wanted in table.items() if size in wanted.shape}
        larger[size] = {name: np.concatenate([state[name]] * 2, axis=axis) for name, axis in sized.items()}
    for arrays in filter(None, larger.values()):
        with pytest.raises(ValueError, match="training state: array"):
            run.set_state(state | arrays)
    assert indices or any(larger.values())


# ---- warm start ----------------------------------------------------------------------------------

PRECISE = [
    LaRank(tol=1e-5, random_state=0),
    LaRank(tol=5e-2, random_state=0, penalty="quadratic"),
    CuttingPlane(tol=1e-4, random_state=0),
    CuttingPlane(tol=1e-4, form="one_slack", random_state=0),
    FrankWolfe(tol=3e-2, random_state=0),
    KernelLaRank(tol=1e-5, random_state=0),
    CrammerSinger(tol=1e-5, random_state=0),
    WestonWatkins(tol=1e-5),
    LaSVM(tol=1e-5, random_state=0),
]


@pytest.mark.parametrize("C", [0.02, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", PRECISE, ids=repr)
def test_a_run_resumes_with_another_C(solver, C, weighted):
    """The alphas fit the new box, the certificate holds, and training reaches the new optimum."""
    problem = problem_of(solver)
    before = changed(solver, C=1.0).solve(problem)
    solver = changed(solver, C=C)
    weight = np.random.default_rng(0).choice([0.1, 1.0, 3.0], problem.n_samples) if weighted else None
    if weighted:
        weight[[0, 1, 2, 3]] = 1.0  # each class keeps an example
        weight[5] = 0.0
    run = resumed(solver, problem, before.get_state(), problem.fingerprint(), weight)
    assert run.n_iter == before.n_iter and run.state.kind == before.state.kind
    run.certify()
    assert run.state.settle() <= run.primal * (1.0 + 1e-6)  # weights are of single precision
    check = solver.start(problem, sample_weight=weight)
    check.set_state(run.get_state())  # refuses what does not fit the box
    run = solver.solve(problem, run=run, sample_weight=weight)
    fresh = solver.solve(problem, sample_weight=weight)
    assert run.status == fresh.status == "converged"
    assert run.dual == pytest.approx(fresh.dual, rel=2.0 * solver.tol)
    assert run.primal == pytest.approx(fresh.primal, rel=2.0 * solver.tol)


@pytest.mark.parametrize("solver", PRECISE, ids=repr)
def test_a_smaller_C_is_refused_by_a_checkpoint_of_states(solver):
    if solver.get_params().get("penalty") == "quadratic" or solver.get_params().get("form") == "one_slack":
        return  # there is no box, or it is always 1
    problem = problem_of(solver)
    state = changed(solver, C=1.0).solve(problem).get_state()
    with pytest.raises(ValueError, match=r"exceed its box|not feasible"):
        changed(solver, C=0.01).start(problem).set_state(state)


def test_a_run_resumes_with_other_schedules_and_solvers_of_the_same_dual():
    problem = problem_of(LaRank())
    first = LaRank(tol=1e-2, random_state=0).solve(problem)
    state, mark = first.get_state(), problem.fingerprint()
    optimum = CuttingPlane(tol=1e-5, random_state=0).solve(problem).dual
    for solver in (
        LaRank(tol=1e-4, schedule="adaptive", random_state=0),
        LaRank(tol=1e-4, n_reprocess=0.25, average=False, random_state=0),
        CuttingPlane(tol=1e-4, n_jobs=2, random_state=0),
        FrankWolfe(tol=5e-3, random_state=0),
    ):
        run = solver.solve(problem, run=resumed(solver, problem, state, mark))
        assert run.n_iter > first.n_iter and run.dual == pytest.approx(optimum, rel=2.0 * solver.tol)
    machines = points(KernelLaRank())
    state = KernelLaRank(max_iter=1, random_state=0).solve(machines).get_state()
    solver = KernelLaRank(schedule="decode-once", selection="gain", cache_size=1.0, tol=1e-4, random_state=0)
    run = solver.solve(machines, run=resumed(solver, machines, state, machines.fingerprint()))
    assert run.status == "converged"
    plain, averaged = (Perceptron(average=average, max_iter=2, random_state=0) for average in (False, True))
    problem = problem_of(plain)
    run = resumed(averaged, problem, plain.solve(problem).get_state(), problem.fingerprint())
    np.testing.assert_array_equal(averaged.solve(problem, run=run).state.weights, changed(plain, max_iter=4).solve(
        problem).state.weights)  # fmt: skip
    descents = points(SGDQN())
    steep, flat = SGDQN(alpha=1e-4, max_iter=3, random_state=0), SGDQN(alpha=1.0, max_iter=20, random_state=0)
    run = resumed(flat, descents, steep.solve(descents).get_state(), descents.fingerprint())
    optimum = flat.solve(descents).primal
    assert run.state.rescaling.max() <= 1.0
    assert flat.solve(descents, run=run).primal == pytest.approx(optimum, rel=1e-2)


def test_what_does_not_resume_and_what_is_refused():
    solver = LaRank(max_iter=4, random_state=0)
    problem = problem_of(solver)
    state, mark = solver.solve(problem).get_state(), problem.fingerprint()
    assert resumed(solver, problem, state, mark).n_iter == 4
    assert resumed(solver, problem, None, mark) is None
    assert resumed(solver, problem_of(solver, seed=1), state, mark) is None
    for other in (Perceptron(), CuttingPlane(form="one_slack")):
        assert resumed(other, problem_of(other), state, problem_of(other).fingerprint()) is None
    machine, descent = points(KernelLaRank()), points(SGDQN())
    state_of_machine = KernelLaRank(random_state=0).solve(machine).get_state()
    for other in (CrammerSinger(), WestonWatkins(), KernelPerceptron()):
        assert resumed(other, machine, state_of_machine, machine.fingerprint()) is None
    stream = SGDQN(random_state=0).solve(descent).state.get_state()  # not a run's
    assert resumed(SGDQN(), descent, stream, descent.fingerprint()) is None
    for other, message in (
        (LaRank(rescaling="slack"), r"rescaling='margin', not 'slack'"),
        (LaRank(penalty="quadratic"), r"penalty='linear', not 'quadratic'"),
    ):
        for seed in (0, 1):  # whatever the data
            with pytest.raises(ValueError, match=message):
                resumed(other, problem_of(other, seed=seed), state, mark)
    costs = ViterbiOracle(3, 5, label_costs=[1.0, 2.0, 1.0]).bind(*chains(), **solver.formulation())
    with pytest.raises(ValueError, match="other losses or another kernel"):
        resumed(solver, costs, state, mark)
    with pytest.raises(ValueError, match=r"cannot go on from where the model stands: .*'cut_numbers'"):
        resumed(solver, problem, state | {"cut_numbers": -state["cut_numbers"]}, mark)


def test_tokens_one_by_one(tmp_path):
    solver = LaRank(C=0.5, max_iter=5, random_state=0)
    with pytest.raises(Killed):
        solve(solver, tmp_path / "c", monitor=Killer(3), kind=GreedyOracle)
    same(solve(solver, tmp_path / "c", kind=GreedyOracle), solve(solver, kind=GreedyOracle))


@pytest.mark.parametrize("solver", [LaRank(C=0.5, max_iter=6, random_state=3), CuttingPlane(C=0.5, random_state=1)])
def test_a_disk_that_is_full_in_the_middle(tmp_path, monkeypatch, solver):
    whole = solve(solver)
    path, write, left = tmp_path / "c", checkpoint.write_model, [2]

    def full(*args):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(*args)

    monkeypatch.setattr(checkpoint, "write_model", full)
    with pytest.warns(UserWarning, match="was not written, and training goes on: .*No space") as warned:
        run = solve(solver, path)
    assert -left[0] == len(warned) == run.n_iter - 1 - 2
    assert str(warned[0].message).startswith("the checkpoint of pass 3 was not written")
    same(run, whole)
    monkeypatch.undo()
    same(solve(solver, path), whole)  # from the file of the second pass


@pytest.mark.parametrize("name", ["none/c", "c" * 300, "", "loop"])
def test_a_checkpoint_that_cannot_be_written_is_found_at_once(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.symlink("loop", "loop")
    passes = []

    class Watch(Monitor):
        def begin_pass(self, run):
            passes.append(run)

    with pytest.raises((OSError, ValueError)):
        solve(LaRank(max_iter=2, random_state=0), name, monitor=Watch())
    assert passes == []
    assert os.listdir() == ["loop"]


def test_a_link_that_leads_nowhere_yet(tmp_path):
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "disk")
    solve(LaRank(max_iter=3, random_state=0), path)
    assert path.is_symlink()
    assert (tmp_path / "disk").is_file()


def test_of_another_problem_or_solver(tmp_path):
    solver, path = LaRank(C=0.5, max_iter=4, random_state=0), tmp_path / "c"
    solve(solver, path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="the checkpoint is of another problem; delete it to start anew"):
        solve(solver, path, data=chains(seed=1))
    with pytest.raises(ModelFileError, match="of another problem"):
        solve(solver, path, sample_weight=np.arange(1.0, 51.0))
    with pytest.raises(ModelFileError, match="of another solver"):
        solve(LaRank(C=0.4, max_iter=4, random_state=0), path)
    with pytest.raises(ModelFileError, match="of another solver"):
        solve(CuttingPlane(C=0.5, random_state=0), path)
    with pytest.raises(ModelFileError, match="has 3 passes behind it; set max_iter higher"):
        solve(LaRank(C=0.5, max_iter=2, random_state=0), path)
    assert path.read_bytes() == before


def test_a_damaged_file_is_refused_and_kept(tmp_path):
    solver, path = LaRank(C=0.5, max_iter=4, random_state=0), tmp_path / "c"
    solve(solver, path)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damage)
        with pytest.raises(ModelFileError):
            solve(solver, path)
        assert path.read_bytes() == damage


def test_a_model_is_not_a_checkpoint(tmp_path):
    X, y = chains()
    SequenceLabeler(random_state=0).fit(X, y).save(tmp_path / "m")
    with pytest.raises(ModelFileError):
        solve(LaRank(random_state=0), tmp_path / "m")


def test_estimators(tmp_path):
    X, y = chains()
    oracle = ViterbiOracle(3, 5)
    for make in (
        lambda **options: StructuredSVM(oracle, LaRank(C=0.5, max_iter=5, random_state=0, **options)),
        lambda **options: SequenceLabeler(C=0.5, max_iter=5, random_state=0, **options),
        lambda **options: SequenceLabeler(C=0.5, solver="cutting_plane", tol=1e-2, random_state=0, **options),
    ):
        path = tmp_path / f"c{os.urandom(4).hex()}"
        plain = make().fit(X, y)
        kept = make(checkpoint=path).fit(X, y)
        again = make(checkpoint=path).fit(X, y)
        assert path.is_file()
        for other in (kept, again):
            assert other.result_.dual == plain.result_.dual
        kept.save(tmp_path / "m")
    assert SequenceLabeler.load(tmp_path / "m").checkpoint is None


@pytest.mark.parametrize("value", [3, b"c", ["c"]])
def test_what_is_no_path(value):
    with pytest.raises(ValueError, match="The 'checkpoint' parameter of LaRank must be a path or a Checkpoint or None"):
        solve(LaRank(), value)
    with pytest.raises(ValueError, match=r"The 'path' parameter of Checkpoint must be a path. Got"):
        Checkpoint(value)


@pytest.mark.parametrize("every", [0, 1.5, True, "2"])
def test_how_often_is_a_count(every):
    with pytest.raises(ValueError, match=r"The 'every' parameter of Checkpoint must be an int in the range"):
        Checkpoint("c", every)


def test_text_goes_around_as_an_array():
    assert as_text({"kind": as_array("weights")}, "kind") == "weights"
    for array in (np.zeros(3), np.zeros((1, 3), dtype=np.uint8), np.array(b"dual"), None, as_array("x" * 1001)):
        with pytest.raises(ValueError, match="array 'kind' of the training state must be text"):
            as_text({"kind": array}, "kind")


@pytest.mark.parametrize("name", ["run", "schedule", "kind", "cut_example"])
def test_arrays_that_are_not_sound_name_the_file(tmp_path, name):
    solver, path = LaRank(C=0.5, max_iter=4, random_state=0), tmp_path / "c"
    solve(solver, path)
    file = read_model(path)
    write_model(path, file.kind, file.meta, file.arrays | {name: np.zeros(0)})
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=re.escape(f"{path}: not a sound checkpoint: ")):
        solve(solver, path)
    assert path.read_bytes() == before
