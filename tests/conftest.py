"""The references are modules that tests share; nothing of the package is imported here."""

import gc
import signal
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "reference"))

# Tests assert results, not seconds: a busy machine is no failure. The same code gives the same results: what is drawn
# depends on the test alone. `--hypothesis-profile=long`, which draws afresh, is for once a week.
settings.register_profile("structsvm", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("structsvm")

# Objects of tests go when nothing refers to them; the search for cycles after each 700 new objects takes some percent.
gc.set_threshold(20_000)

# A shell that runs the tests in the background may have them, and every process they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup():
    """Each test begins with the same global random state, which `random_state=None` draws from.

    Python loses a KeyboardInterrupt in a callback of the garbage collector; hypothesis has one, for times.
    """
    np.random.seed(0)  # noqa: NPY002
    gc.callbacks.clear()


def pytest_collection_finish():
    """Collected objects live to the end: each full collection of garbage would walk through all of them."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Each reason of the expected failures on a line, with their number: pytest's own summary has a line per test."""
    expected = terminalreporter.stats.get("xfailed", ())
    if expected:
        terminalreporter.section("expected failures", sep="-")
    for reason, count in Counter(report.wasxfail for report in expected).most_common():
        terminalreporter.write_line(f"{count} x {reason}")
