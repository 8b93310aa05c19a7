"""How things are measured: clocks, the machine, and commands in processes of their own."""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import structsvm

LAUNCHER = Path(__file__).with_name("launch.py")
BENCHMARKS = Path(__file__).parents[1]
# Runs of which the best counts, in programs of other languages too.
FEWEST_RUNS, MOST_RUNS, LEAST_SECONDS = 3, 200, 1.5
# One thread for every program, the same hashes of strings in every run, and our modules on the path of every process.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONPATH": os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]),
}


@dataclass(frozen=True)
class Repeats:
    """Wall and CPU seconds of equal runs.

    On a machine that others use too, the best CPU time is the steadier measure of the two.
    """

    walls: tuple[float, ...]
    cpus: tuple[float, ...]

    @classmethod
    def of(cls, runs):
        """From objects with `wall` and `cpu`."""
        return cls(tuple(run.wall for run in runs), tuple(run.cpu for run in runs))

    @property
    def best(self):
        return min(self.walls)

    @property
    def median(self):
        return statistics.median(self.walls)

    @property
    def cpu(self):
        return min(self.cpus)


@contextmanager
def no_gc():
    """Collect garbage first, then disable it inside the block."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Clock:
    """Wall and CPU seconds of a ``with`` block, without garbage collection in it."""

    def __enter__(self):
        self._quiet = no_gc()
        self._quiet.__enter__()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error):
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu
        return self._quiet.__exit__(*error)


def repeat(action, times):
    """Call `action` `times` times; return its last value and the `Repeats`."""
    clocks = []
    for _ in range(times):
        with Clock() as clock:
            value = action()
        clocks.append(clock)
    return value, Repeats.of(clocks)


def repeat_for(action, seconds=LEAST_SECONDS):
    """As `repeat`, for at least so many seconds of a clock: FEWEST_RUNS to MOST_RUNS times."""
    clocks = []
    while len(clocks) < FEWEST_RUNS or (len(clocks) < MOST_RUNS and sum(one.wall for one in clocks) < seconds):
        with Clock() as clock:
            value = action()
        clocks.append(clock)
    return value, Repeats.of(clocks)


def peak():
    """Largest resident set so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


# ---- commands in processes of their own --------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """Result of a command.

    Attributes
    ----------
    stdout, stderr : str
    wall, cpu : float
        Seconds from start to end.
    peak : float
        Largest resident set, in MB (1e6 bytes).
    in_time : bool
        False if it was interrupted because its time was over.
    """

    stdout: str
    stderr: str
    wall: float
    cpu: float
    peak: float
    in_time: bool


def run_command(arguments, *, limit=None):
    """Run a command to its end, or interrupt it (as Ctrl-C does) after `limit` seconds, and kill it later.

    Raises
    ------
    RuntimeError
        It failed; the message contains the end of its standard error.
    """
    request = json.dumps({"arguments": [str(a) for a in arguments], "limit": limit})
    done = subprocess.run(
        [sys.executable, "-S", "-E", LAUNCHER],
        input=request,
        capture_output=True,
        text=True,
        env=os.environ | ENVIRONMENT,
        check=True,
    )
    answer = json.loads(done.stdout)
    status = answer.pop("status")
    if status != 0:
        raise RuntimeError(f"{Path(arguments[0]).name} ended with {status}: {answer['stderr'][-2000:]}")
    return Command(**answer)


def run_module(name, *arguments):
    """Run a module of the benchmarks in a process of its own, and return the JSON that it prints."""
    return json.loads(run_command([sys.executable, "-P", "-m", name, *arguments]).stdout)


# ---- the machine -------------------------------------------------------------------------------


def machine():
    """CPU, memory and versions; nothing that identifies this machine."""
    names = (
        "structured-svm",
        "numpy",
        "scipy",
        "scikit-learn",
        "python-crfsuite",
        "distributed",
        "biopython",
        "parasail",
        "hiclass",
    )
    return {
        "cpu": _cpu_model(),
        "kernels": structsvm.instruction_set(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: package_version(name) for name in names},
    }


def _cpu_model():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    about = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = ", ".join(
        f"{name} {about[key]}" for key, name in (("cpu family", "family"), ("model", "model")) if key in about
    )
    return about.get("model name", "unknown") + (f" ({numbers})" if numbers else "")


def package_version(name):
    """Version of an installed distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
