"""Ctrl-C in the middle of kernels, in any phase of any task: it comes out, and the estimator is as usable as before."""

import signal
import threading
from functools import cache

import pytest
from cases import CASES

from structsvm.execution._stop import look_every, looks

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

UNRANKED = ("greedy", "ospas")  # whose inference has no k best outputs
PHASES = [
    pytest.param(name, phase, n_jobs, id=f"{name}, {phase}, {n_jobs}")
    for name, case in CASES.items()
    for phase in ("fit", "predict", "predict_kbest")
    for n_jobs in (1, 2)
    if "n_jobs" in case.shared
    if phase != "predict_kbest" or (hasattr(case.kind, phase) and name not in UNRANKED)
]


@pytest.fixture(autouse=True)
def _afterwards():
    yield
    look_every()


def repeat(call, thread):
    thread.start()
    while True:
        call()


def interrupted(call, n):
    """Repeat a call until a Ctrl-C comes out, which is sent after n looks, or soon where kernels are short."""
    main, pause = threading.main_thread().ident, threading.Event()

    def send(start):
        waits = 0
        while looks() < start + n and waits < (200 if looks() > start else 20):
            pause.wait(1e-4)
            waits += 1
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=send, args=(looks(),))
    with pytest.raises(KeyboardInterrupt):
        repeat(call, thread)
    thread.join()


@cache
def trained(name):
    return CASES[name].train(CASES[name].without_choice())


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of threads")
@pytest.mark.parametrize(("name", "phase", "n_jobs"), PHASES)
def test_ctrl_c(name, phase, n_jobs):
    case = CASES[name]
    if phase == "fit":
        model = case.train(case.without_choice(n_jobs=n_jobs))
    else:
        model = trained(name).set_params(n_jobs=n_jobs)
    said = case.predicted(model)
    calls = {
        "fit": lambda: case.train(model),
        "predict": lambda: model.predict(case.questions),
        "predict_kbest": lambda: model.predict_kbest(case.questions, 3),
    }
    for n in (1, 50):
        look_every(500)
        interrupted(calls[phase], n)
        look_every()
        assert len([*model.predict(case.questions)]) == len(case.questions)
        if phase == "fit":
            case.train(model)
        assert case.predicted(model) == said


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_fit_is_interrupted_at_any_look(case):
    """The model that it leaves is usable, and a fit from the start is as it would have been."""
    model = case.make()
    look_every(300, count := Count())
    case.train(model)
    total, said = count.n, case.predicted(model)
    assert total >= 3
    for n in sorted({1, 2, *range(total // 7, total, total // 7 + 1)}):
        look_every(300, Count(n))
        with pytest.raises(KeyboardInterrupt):
            case.train(model)
        look_every()
        assert len([*model.predict(case.questions)]) == len(case.questions)
    case.train(model)
    assert case.predicted(model) == said


class Count:
    """Counts looks; Ctrl-C at the n-th."""

    def __init__(self, n=None):
        self.n, self.last = 0, n

    def __call__(self):
        self.n += 1
        if self.n == self.last:
            raise KeyboardInterrupt
