"""One contract for all estimators (DESIGN, section 3): signatures, warm starts, files, Ctrl-C, checkpoints, threads."""

import copy
import gc
import inspect
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import CASES, ROWS, TABLE
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import structsvm
from structsvm import tasks
from structsvm.dual import parallel
from structsvm.model_file import read_model
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.tasks.common.estimator import CallbackMonitor
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import is_same
from structsvm.tasks.registry import ESTIMATORS

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

PRODUCTS = (tasks.AmbiguousClassifier, tasks.Ranker)  # whose scores are one product of matrices
STREAMS = {name: case for name, case in CASES.items() if case.is_stream}


def each(cases):
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


def test_every_estimator_has_a_case():
    assert {entry.name for entry in ESTIMATORS} == {case.kind.__name__ for case in TABLE.values()} - {"StructuredSVM"}


@each(TABLE)
def test_signatures(case):
    fit = list(inspect.signature(case.kind.fit).parameters)
    assert fit[:4] == ["self", "X", "y", "sample_weight"]
    if hasattr(case.kind, "partial_fit"):
        parameters = inspect.signature(case.kind.partial_fit).parameters
        assert list(parameters)[:5] == ["self", "X", "y", "classes", "sample_weight"]
        assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[5:])
    assert set(case.shared) <= case.make().get_params().keys()


@each(CASES)
def test_copies_and_files(case, tmp_path):
    model = case.trained
    said = case.predicted(model)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m", **case.load)
    assert type(loaded) is case.kind
    assert read_model(tmp_path / "m").meta["params"].keys() <= model.get_params(deep=False).keys()
    others = [loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), case.train(clone(model))]
    for other in others:
        assert case.predicted(other) == said
    stored, given = loaded.get_params(deep=False), model.get_params(deep=False)
    assert stored.keys() == given.keys()
    assert all(is_same(value, given[name]) for name, value in stored.items() if name != "solver")
    assert loaded.result_.certificate() == model.result_.certificate()
    assert loaded.n_iter_ == model.n_iter_


@each({name: CASES[name] for name in ("kernel perceptron", "lasvm", "sgdqn", "tracking", "taxonomy", "ambiguous")})
@pytest.mark.parametrize("dtype", [int, float, bool, str])
def test_classes_have_the_type_of_the_labels(case, dtype, tmp_path):
    y = (ROWS[:, 0] > 0.0).astype(dtype)
    model = case.make().fit(ROWS, y)
    model.save(tmp_path / "m")
    for one in (model, structsvm.load(tmp_path / "m")):
        assert one.classes_.dtype.kind == y.dtype.kind
        assert one.predict(ROWS).dtype.kind == y.dtype.kind


# The passes of a training with completions, as the "max" of bags is one, are those of each round: two fits have other
# rounds than one.
@each({name: case for name, case in CASES.items() if not name.startswith(("open", "max loss of bags"))})
def test_a_warm_start_resumes_bit_for_bit(case, tmp_path):
    whole = case.fit(**case.passes(3))
    model = case.fit(**case.passes(1, warm_start=True))
    model.save(tmp_path / "m")
    for again in (model, structsvm.load(tmp_path / "m", **case.load)):
        case.train(again.set_params(**case.passes(2)))
        assert again.n_iter_ == whole.n_iter_
        assert case.predicted(again) == case.predicted(whole)
        if case.kind is not tasks.SemanticParser:  # its history is that of the last fit
            assert whole_passes(again) == whole_passes(whole) > {1.0, 2.0}
        np.testing.assert_allclose(again.result_.dual, whole.result_.dual, rtol=case.rounding, atol=0.0)


def whole_passes(model):
    """The ends of passes in the history."""
    return {n for n in model.result_.history["n_iter"] if n > 0.0 and n == int(n)}


@each(CASES)
def test_a_warm_start_goes_on_with_other_data(case):
    model = case.fit(warm_start=True)
    labels = model.classes_.tolist() if hasattr(model, "classes_") else None
    case.train(model, len(case.X) // 2)
    assert labels is None or model.classes_.tolist() == labels
    case.predicted(model)


@each(CASES)
def test_data_are_bound_once(case, monkeypatch):
    model, calls, within = case.fitted().set_params(warm_start=True), [], []

    def counted(bind):
        def wrapper(*args, **kwargs):
            if not within:  # one that calls its base is one
                calls.append(bind)
            within.append(bind)
            try:
                return bind(*args, **kwargs)
            finally:
                within.pop()

        return wrapper

    for kind in all_subclasses(TaskModel):
        if "bind" in vars(kind):
            monkeypatch.setattr(kind, "bind", counted(kind.bind))
    for part in [(0, None), (len(case.X) // 2, None), (0, 6)]:
        calls.clear()
        case.train(model, *part)
        assert len(calls) == len(getattr(model, "results_", (None,)))  # a sum has two trainings


@each(STREAMS)
def test_a_warm_start_goes_on_after_a_stream(case):
    model = case.make(warm_start=True)
    half = len(case.X) // 2
    if case.strange is None or case.kind is tasks.SemanticParser:
        case.train(model, 0, half, "partial_fit")
    else:
        case.train(model, 0, half, "partial_fit", classes=case.trained.classes_)
    case.train(model, half, None, "partial_fit")
    case.train(model)
    case.predicted(model)


@each(STREAMS)
def test_a_stream_goes_on_from_its_file(case, tmp_path):
    n = len(case.X)
    model = case.train(case.make(), 0, n, "partial_fit")
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m", **case.load)
    assert case.predicted(loaded) == case.predicted(model)
    for one in (model, loaded):
        case.train(one, 0, n // 2, "partial_fit")
    assert case.predicted(loaded) == case.predicted(model)
    np.testing.assert_array_equal(loaded.result_.dual, model.result_.dual)


@each(TABLE)
def test_a_fit_leaves_no_circles(case):
    """In which a training's memory would stay until Python looks for them: training again took twice as much."""
    model = case.fitted()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        case.train(model)
        gc.collect()
        kept = {f"{type(item).__module__}.{type(item).__name__}" for item in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert [name for name in sorted(kept) if name.startswith("structsvm")] == []


@each({name: case for name, case in CASES.items() if case.strange is not None})
def test_other_labels_are_refused(case):
    model = case.fitted().set_params(warm_start=True)
    said = case.predicted(model)
    for method in ("fit", "partial_fit"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match="zz"):
                getattr(model, method)(case.X[:2], case.strange)
    assert case.predicted(model) == said


@each(TABLE)
def test_what_is_not_trained_says_so(case, tmp_path):
    model, X, y = case.make(), case.questions[:1], case.X[:1] if case.y is None else case.y[:1]
    asks = {name: (X, *more) for name, more in (("predict", ()), ("predict_kbest", (2,)), ("predict_marginals", ()))}
    scored = (X,) if case.kind is not tasks.SequenceAligner else (X, [X])
    asks |= {"decision_function": scored, "explain": (X[0],), "score": (X, y), "save": (tmp_path / "m",)}
    for name, arguments in asks.items():
        if hasattr(model, name):
            with pytest.raises(NotFittedError, match=case.kind.__name__):
                getattr(model, name)(*arguments)
    assert not (tmp_path / "m").exists()


PYTHONS_OWN = r"not iterable|has no len|unsupported operand|not subscriptable|has no attribute|unexpected keyword"


@pytest.mark.parametrize("X", [None, 3, [None]], ids=str)
@each(TABLE)
def test_what_is_no_collection_of_inputs(case, X):
    """The error is one of ours, not one that Python raises somewhere further down."""
    model = case.trained
    for method, more in (("predict", ()), ("predict_kbest", (2,)), ("predict_proba", ()), ("decision_function", ())):
        if hasattr(model, method) and "candidates" not in inspect.signature(getattr(model, method)).parameters:
            with pytest.raises((TypeError, ValueError)) as error:
                getattr(model, method)(X, *more)
            assert not re.search(PYTHONS_OWN, str(error.value)), (method, error.value)
    with pytest.raises((TypeError, ValueError)) as error:
        case.make().fit(X, case.y)
    assert not re.search(PYTHONS_OWN, str(error.value)), error.value


@each(TABLE)
def test_a_failed_fit_leaves_the_old_model(case, monkeypatch):
    model = case.fit()
    before, said = dict(vars(model)), case.predicted(model)

    def fail(*_args, **_kwargs):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(Run, "start_pass", fail)
    for subclass in all_subclasses(Run):
        if "start_pass" in vars(subclass):
            monkeypatch.setattr(subclass, "start_pass", fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        case.train(model, 0, len(case.X) - 1)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    assert case.predicted(model) == said


def all_subclasses(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from all_subclasses(subclass)


@each(TABLE)
def test_prediction_goes_on_during_a_refit(case, monkeypatch):
    model = case.fitted()
    said, found = case.predicted(model), []
    solve = Solver.solve

    def watched(self, *args, **kwargs):
        found.append(case.predicted(model))
        run = solve(self, *args, **kwargs)
        found.append(case.predicted(model))
        return run

    monkeypatch.setattr(Solver, "solve", watched)
    case.train(model, 0, len(case.X) - 2)
    assert found
    assert set(found) == {said}


@each(CASES)
def test_ctrl_c_leaves_a_partial_model(case, monkeypatch):
    model, end_pass, n = case.make(**case.passes(50)), CallbackMonitor.end_pass, [0]

    def interrupt(self, run):
        n[0] += 1
        if n[0] == 2:
            raise KeyboardInterrupt
        return end_pass(self, run)

    monkeypatch.setattr(CallbackMonitor, "end_pass", interrupt)
    with pytest.raises(KeyboardInterrupt, match="holds the model as it was then"):
        case.train(model)
    assert model.result_.status == "interrupted"
    assert model.n_iter_ == 2
    case.predicted(model)


@each({name: case for name, case in CASES.items() if "checkpoint" in case.shared})
def test_a_killed_fit_resumes_from_its_checkpoint(case, tmp_path, monkeypatch):
    whole = case.fit(**case.passes(4))
    end_pass, n = CallbackMonitor.end_pass, [0]

    def kill(self, run):
        n[0] += 1
        if n[0] == 3:
            raise SystemExit
        return end_pass(self, run)

    monkeypatch.setattr(CallbackMonitor, "end_pass", kill)
    model = case.make(**case.passes(4, checkpoint=structsvm.Checkpoint(tmp_path / "c", every=2)))
    with pytest.raises(SystemExit):
        case.train(model)
    assert (tmp_path / "c").is_file()
    assert not hasattr(model, "model_")
    monkeypatch.undo()
    case.train(model)
    assert model.n_iter_ == whole.n_iter_
    assert case.predicted(model) == case.predicted(whole)
    np.testing.assert_equal(model.result_.dual, whole.result_.dual)


@each({name: case for name, case in CASES.items() if "n_jobs" in case.shared})
def test_threads_predict_the_same(case, monkeypatch):
    pools = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, n_threads):
            pools.append(n_threads)
            super().__init__(n_threads)

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr("structsvm.tasks.common.classifier.PART", 20)
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_SHARED", 0)
    monkeypatch.setattr("structsvm.tasks.taxonomy.linear.BLOCK", 20)
    monkeypatch.setattr("structsvm.tasks.taxonomy.kernel.BLOCK", 20)
    model = case.fit()
    said, n = case.predicted(model), threading.active_count()
    assert pools == []
    assert case.predicted(model.set_params(n_jobs=2)) == said
    assert set(pools) == (set() if case.kind in PRODUCTS else {2})
    assert threading.active_count() <= n + 2


@each({name: case for name, case in CASES.items() if "verbose" in case.shared})
def test_verbose_shows_a_bar(case, capsys):
    case.fit(**case.passes(2))
    assert capsys.readouterr().err == ""
    case.fit(**case.passes(2, verbose=True))
    assert "training" in capsys.readouterr().err
