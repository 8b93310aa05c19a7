"""The references are modules that tests share; nothing of the package is imported here."""

import gc
import signal
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "reference"))

# Tests assert results, not seconds: a busy machine is no failure. `--hypothesis-profile=long` is for once a week.
settings.register_profile("structsvm", deadline=None, max_examples=30)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("structsvm")

# A shell that runs the tests in the background may have them, and every process they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup():
    """Python loses a KeyboardInterrupt in a callback of the garbage collector; hypothesis has one, for times."""
    gc.callbacks.clear()


def pytest_collection_finish():
    """What collection has made lives to the end: each full collection of garbage would walk through all of it."""
    gc.collect()
    gc.freeze()
