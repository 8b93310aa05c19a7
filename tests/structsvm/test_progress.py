"""Monitors of a run: the bar, several at once, and scikit-learn's callbacks where they are and where not."""

import builtins
import importlib
import io
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from structsvm import ConvergenceWarning, LaRank, PathSearch, Perceptron
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.progress import Bar, Monitor, Monitors
from structsvm.tasks import SequenceLabeler

X, y = make_sequences(30, n_labels=5, n_words=100, mean_length=6.0, random_state=0)


class Log(Monitor):
    def __init__(self, stop_after=None):
        self.stop_after, self.events = stop_after, []

    def begin_pass(self, run):
        self.events.append(("begin", run.n_iter))

    def tick(self, run):
        self.events.append(("tick", run.progress))

    def end_pass(self, run):
        self.events.append(("end", run.n_iter))
        return run.n_iter == self.stop_after

    def close(self):
        self.events.append("close")


def solve(solver, monitor):
    from structsvm.oracles.viterbi import ViterbiOracle

    rng = np.random.default_rng(0)
    data = [rng.normal(size=(5, 3)) for _ in range(20)]
    labels = [rng.integers(0, 2, 5).astype(np.int32) for _ in range(20)]
    problem = ViterbiOracle(2, 3).bind(data, labels, **solver.formulation())
    return solver.solve(problem, monitor=monitor)


def test_a_monitor_sees_every_pass():
    log = Log()
    solve(LaRank(max_iter=3, random_state=0), log)
    assert [e for e in log.events if e[0] == "begin"] == [("begin", 0), ("begin", 1), ("begin", 2)]
    assert [e for e in log.events if e[0] == "end"] == [("end", 1), ("end", 2), ("end", 3)]
    ticks = [at for what, at in (e for e in log.events if e != "close") if what == "tick"]
    assert ticks == sorted(ticks) and ticks[-1] == 3
    assert log.events[-1] == "close" and log.events.count("close") == 1


def test_any_of_several_monitors_stops_and_all_are_closed():
    first, second = Log(), Log(stop_after=2)
    run = solve(LaRank(max_iter=50, random_state=0), Monitors(first, second))
    assert (run.n_iter, run.status) == (2, "stopped")
    assert first.events == second.events
    assert first.events[-1] == "close"


def test_monitors_are_closed_after_an_error():
    class Broken(Log):
        def end_pass(self, run):
            raise RuntimeError("mine")

    broken = Broken()
    with pytest.raises(RuntimeError, match="mine"):
        solve(LaRank(), broken)
    assert broken.events[-1] == "close"


@pytest.mark.parametrize(
    "solver",
    [LaRank(max_iter=3, random_state=0), LaRank(max_iter=30, tol=0.5, random_state=0), Perceptron(max_iter=3)],
    ids=repr,
)
def test_the_bar_shows_passes_and_objectives(solver, capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tqdm.tqdm.monitor_interval", 0)
        solve(solver, Bar(solver.max_iter, disable=False))
    shown = capsys.readouterr().err
    assert "training" in shown and "passes" in shown and "support vectors" in shown
    assert ("dual" in shown) == isinstance(solver, LaRank)
    assert ("primal" in shown) == (solver.tol is not None)
    places = [shown.rfind(what) for what in ("primal", "dual", "support vectors")]
    assert places == sorted(places)


def test_the_bar_is_for_terminals(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    solve(LaRank(max_iter=2), Bar(2))
    assert stream.getvalue() == ""


def test_an_error_before_the_first_pass_shows_no_bar(capsys):
    with pytest.raises(ValueError, match="no features"):
        SequenceLabeler(verbose=True).fit([[{}]], [["A"]])
    bar = Bar(3, disable=False)
    bar.close()
    assert capsys.readouterr().err == ""


def test_without_scikit_learns_callbacks(monkeypatch, tmp_path):
    """As before scikit-learn 1.9: the module is absent, and fit works the same."""
    import structsvm.callbacks as module

    with_them = SequenceLabeler(random_state=0).fit(X, y)
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.startswith("sklearn.callback"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    code = """
import builtins, sys
real = builtins.__import__
def absent(name, *args, **kwargs):
    if name == "sklearn.callback" and sys._getframe(1).f_globals["__name__"].startswith("structsvm"):
        raise ModuleNotFoundError(name)
    return real(name, *args, **kwargs)
builtins.__import__ = absent
import numpy as np
from structsvm import LaRank
from structsvm.datasets import make_sequences
from structsvm.tasks import SequenceLabeler
X, y = make_sequences(30, n_labels=5, n_words=100, mean_length=6.0, random_state=0)
model = SequenceLabeler(random_state=0).fit(X, y)
assert not hasattr(model, "set_callbacks") and not hasattr(model, "_init_callback_context")
print(float(np.abs(model.emission_).sum(dtype=float)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert float(done.stdout) == pytest.approx(float(np.abs(with_them.emission_).sum(dtype=float)), rel=0)
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", absent)
        try:
            importlib.reload(module)
            assert module.with_callbacks(absent) is absent
            monitor = module.CallbackMonitor(object(), X, y, 3)
            monitor.begin_pass(None)
            assert monitor.end_pass(None) is False
            monitor.close()
        finally:
            patch.undo()
            importlib.reload(module)


# ---- terminals and logs ----------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def fake_run(n_iter, primal=np.nan, dual=1.0, tol=None):
    state = SimpleNamespace(dual=dual)
    return SimpleNamespace(
        n_iter=n_iter, progress=float(n_iter), primal=primal, dual=dual, has_dual=True, n_support=3, state=state,
        solver=SimpleNamespace(tol=tol), remark="",
    )  # fmt: skip


def test_logs_have_lines_and_no_bars(capsys):
    bar = Bar(100, disable=False)
    bar.try_value(0.1)
    for n in range(1, 71):
        bar.begin_pass(fake_run(n - 1))
        bar.tick(fake_run(n - 1))
        bar.end_pass(fake_run(n))
    bar.close()
    shown = capsys.readouterr().err
    assert "\r" not in shown and "|" not in shown
    begun, *lines = shown.splitlines()
    assert begun == "choosing C on held-out examples: begins"
    assert [int(line.split()[1]) for line in lines] == [1, 2, 4, 8, 16, 32, 64, 70]
    assert lines[-1] == "training: 70 passes, dual 1, support vectors 3"


def test_a_terminal_has_a_bar_that_goes_by_the_gap(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)
    bar = Bar(1000, disable=None)
    shares = []
    for n, gap in enumerate((np.nan, 0.1, 0.01, 0.02, 0.001)):
        run = fake_run(n, primal=10.0, dual=10.0 * (1.0 - gap), tol=0.001)
        bar.begin_pass(run)
        bar.tick(run)
        shares.append(bar.meter.share)
        bar.end_pass(run)
    bar.close()
    # From 0.1 to 0.001 by its logarithm, and never back.
    assert shares == pytest.approx([0.0, 0.0, 0.5, 0.5, 1.0])
    assert "50%|" in stream.getvalue() and "4.0/1000 passes" in stream.getvalue()
    assert "\ntraining" not in stream.getvalue()
    assert Bar(10).share(fake_run(5)) == 0.5


def test_the_path_tells_where_it_is(capsys):
    X, y = make_sequences(30, random_state=0)
    labeler = SequenceLabeler(templates="attributes", max_iter=2, random_state=0)
    search = PathSearch(labeler, C_min=0.01, C_max=0.02, tol=0.5, refit=False, random_state=0, verbose=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(Columns.from_sequences(X), y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(search.path_)
    assert lines[0].startswith("path: C = 0.01, score 0.") and lines[0].endswith("at 0.01")
