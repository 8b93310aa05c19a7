"""Runs mutants in child processes, each under a limit of CPU time and of memory.

A child is forked with everything imported, and takes mutants until one of them ends it: a signal (a crash, or SIGPROF
after LIMIT_SECONDS of CPU) is charged to the mutant that the child had announced in shared memory, and another child
goes on behind it. A mutant is a function of the seed, the kind and its index, so that each can be repeated alone.
"""

from __future__ import annotations

import mmap
import os
import pickle
import random
import resource
import signal
import struct
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

LIMIT_SECONDS = 10.0
LIMIT_BYTES = 4 << 30
BATCH = 20_000  # mutants per child: what a mutant leaves behind does not pile up


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes
    ----------
    name : str
    seeds : callable
        Returns a list of sound files, in whatever form `mutate` takes them; called once.
    mutate : callable
        ``mutate(rng, seed)`` returns the bytes of a mutant.
    read : callable
        ``read(data, seed)`` reads a mutant and uses what it holds; returns what became of it, a word.
    allowed : tuple of exception types
        What reading may raise.
    """

    name: str
    seeds: Callable[[], list[Any]]
    mutate: Callable[[random.Random, Any], bytes]
    read: Callable[[bytes, Any], str]
    allowed: tuple[type[BaseException], ...]


@dataclass
class Report:
    """The fate of the mutants of a kind: counts of outcomes, and the first mutant of each fault."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[int]] = field(default_factory=dict)

    def add_fault(self, what: str, index: int) -> None:
        self.faults.setdefault(what, []).append(index)


def mutant(kind: FileKind, seeds: list[Any], seed: int, index: int) -> tuple[bytes, Any]:
    """Return ``(data, seed file)`` of a mutant."""
    rng = random.Random(f"{seed}/{kind.name}/{index}")
    original = rng.choice(seeds)
    return kind.mutate(rng, original), original


def run(kind: FileKind, seed: int, first: int, count: int) -> Report:
    """Read the mutants ``first .. first + count - 1`` of a kind."""
    seeds, report = kind.seeds(), Report()
    shared = mmap.mmap(-1, 8)
    end = first + count
    while first < end:
        stop = min(end, first + BATCH)
        status = _forked(kind, seeds, seed, range(first, stop), shared, report)
        if status == 0:
            first = stop
            continue
        index = struct.unpack("<q", shared[:8])[0]
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if ended_by == signal.SIGINT:
            raise KeyboardInterrupt
        name = signal.Signals(ended_by).name if ended_by else f"exit {os.waitstatus_to_exitcode(status)}"
        report.add_fault(f"more than {LIMIT_SECONDS:g} s" if ended_by == signal.SIGPROF else name, index)
        first = index + 1
    return report


def _forked(kind: FileKind, seeds: list[Any], seed: int, indices: range, shared: mmap.mmap, report: Report) -> int:
    """Run mutants in a child; returns its wait status, 0 if it has read all of them."""
    source, sink = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(source)
        try:
            with os.fdopen(sink, "wb") as pipe:
                _work(kind, seeds, seed, indices, shared, pipe)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)  # a fault of the fuzzer
    os.close(sink)
    with os.fdopen(source, "rb") as pipe:
        for outcome, fault, index in _outcomes(pipe):
            if fault:
                report.add_fault(outcome, index)
            else:
                report.outcomes[outcome] += 1
    return os.waitpid(child, 0)[1]


def _outcomes(pipe: Any) -> Iterator[Any]:
    while True:
        try:
            yield pickle.load(pipe)
        except (EOFError, pickle.UnpicklingError):  # the child has ended
            return


def _work(kind: FileKind, seeds: list[Any], seed: int, indices: range, shared: mmap.mmap, pipe: Any) -> None:
    if "STRUCTSVM_SANITIZED" not in os.environ:  # the sanitizer's own memory is without end
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    for index in indices:
        shared[:8] = struct.pack("<q", index)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
        outcome = outcome_of(kind, *mutant(kind, seeds, seed, index))
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        pickle.dump((*outcome, index), pipe)
        pipe.flush()


def outcome_of(kind: FileKind, data: bytes, original: Any) -> tuple[str, bool]:
    """Return what became of a mutant, and whether that is a fault."""
    try:
        return kind.read(data, original), False
    except kind.allowed as error:
        return type(error).__name__, False
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((f for f in reversed(frames) if "site-packages" not in f.filename), frames[-1])
        return f"{type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}: {error!s:.100}", True
