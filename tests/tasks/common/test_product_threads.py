"""Matrix products take `n_jobs` threads: in all that estimators and solvers do, whoever calls them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import CASES
from python_oracles import Multiclass
from threadpoolctl import threadpool_info, threadpool_limits

from structsvm import CuttingPlane, LaRank, StructuredSVM
from structsvm.dual.parallel import parallel_map
from structsvm.execution import products
from structsvm.execution.products import product_threads
from structsvm.solvers.run import Run
from structsvm.tasks import LaRankClassifier, SequenceLabeler
from structsvm.tasks.common.estimator import TaskEstimator

pytestmark = [
    pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning"),
]
METHODS = ("predict", "decision_function", "predict_proba", "predict_marginals", "explain")


def in_use():
    """The highest number of threads that a product may take."""
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


@pytest.fixture(autouse=True)
def four():
    """Libraries that would take four threads; no block leaves another number behind."""
    with threadpool_limits(4, "blas"):
        yield
        assert in_use() == 4


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_estimators_take_one_thread_unless_n_jobs_says_more(case, monkeypatch):
    found, fitted, record = [], TaskEstimator._fitted, Run.record

    def watched(self):
        found.append(in_use())
        return fitted(self)

    def recorded(self):
        found.append(in_use())
        return record(self)

    monkeypatch.setattr(Run, "record", recorded)
    model = case.fit()
    if case.is_stream:
        case.train(model, 0, 6, "partial_fit")
    assert found == [] or set(found) == {1}  # some have records of their own
    monkeypatch.setattr(TaskEstimator, "_fitted", watched)
    for n, n_jobs in ((1, None), (1, 1), (2, 2)):
        if "n_jobs" in case.shared or n == 1:
            if "n_jobs" in case.shared:
                model.set_params(n_jobs=n_jobs)
            found.clear()
            for name in METHODS:
                if hasattr(model, name) and model._multiplies(name):
                    try:
                        getattr(model, name)(case.questions)
                    except (TypeError, ValueError, NotImplementedError):  # it has no such outputs, or asks for more
                        continue
            assert set(found) == {n}


class Watching(Multiclass):
    """An oracle that writes down how many threads a product in it may take."""

    def argmax(self, x, w, y_true=None, rescaling=None):
        self.found = getattr(self, "found", set()) | {in_use()}
        return super().argmax(x, w, y_true, rescaling)


X, Y = np.random.default_rng(0).normal(size=(30, 3)), [k % 3 for k in range(30)]


@pytest.mark.parametrize(
    ("solver", "n"), [(LaRank(C=0.1), {1}), (LaRank(C=0.1, n_jobs=2), {1, 2}), (CuttingPlane(C=0.1), {1})], ids=repr
)
def test_solvers(solver, n):
    """In the threads of a round each product has one; outside of them it has all."""
    oracle = Watching(3, 3)
    model = StructuredSVM(oracle, solver).fit(X, Y)
    assert oracle.found == n
    oracle.found = set()
    solver.solve(oracle.bind(X, Y))
    assert oracle.found == n
    oracle.found = set()
    model.predict(X)
    assert oracle.found == {max(n)}


def test_parameters_that_are_wrong_are_said_as_ever():
    with pytest.raises(ValueError, match="The 'n_jobs' parameter of SequenceLabeler must be"):
        SequenceLabeler(n_jobs=0).fit([["a"]], [["b"]])


def test_blocks_of_several_threads_end_in_any_order():
    """The number is that of the process: the last to end restores it."""
    inside, leave = threading.Barrier(3), [threading.Event(), threading.Event()]

    def work(k):
        with product_threads(k + 1):
            inside.wait()
            leave[k].wait()

    found = []
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(work, k) for k in range(2)]
        inside.wait()
        for k in range(2):
            found.append(in_use())
            leave[k].set()
            ends[k].result()
    assert found == [1, 2]
    assert in_use() == 4


def test_blocks_only_lower_the_number():
    with product_threads(2), product_threads(3):
        assert in_use() == 2
        with pytest.raises(RuntimeError), product_threads(1):
            raise RuntimeError("within")
        assert in_use() == 2
    with product_threads(64):
        assert in_use() == 4
    found = []
    with product_threads(4):
        parallel_map(lambda _: found.append(in_use()), [1, 2, 3], 2)
    assert found == [1, 1, 1]


def test_libraries_are_looked_for_once(monkeypatch):
    model = LaRankClassifier(C=1.0, random_state=0).fit(X, Y)
    monkeypatch.setattr("threadpoolctl.ThreadpoolController.__init__", None)
    model.predict(X)


@pytest.mark.parametrize("where", ["add", "remove"])
def test_ctrl_c_leaves_no_limit(where, monkeypatch):
    change, calls = getattr(products._limits, where), []

    def interrupted(*given):
        change(*given) if where == "add" else None
        calls.append(given)
        if len(calls) == 1:
            raise KeyboardInterrupt
        change(*given)

    monkeypatch.setattr(products._limits, where, interrupted)
    with pytest.raises(KeyboardInterrupt), product_threads(1):
        pass
    assert in_use() == 4 and not products._limits.at_work
