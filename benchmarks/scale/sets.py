"""The instruction sets that kernels are compiled for: the same training with each, on this processor."""

from __future__ import annotations

import json
import os
import sys
from functools import partial

from binary.data import adult, mnist, trial, usps
from common.measure import repeat, run_module
from common.report import Table, notes
from scale.threads import cases
from structsvm.datasets import fetch_ud_dutch
from structsvm.tasks import DependencyParser, LaSVMClassifier

SETS = ("baseline", "avx2", "avx512")
VARIABLE = "STRUCTSVM_KERNELS"
PASSES = 4
COLUMNS = {"task": ("", ""), **{name: (f"{name}: CPU s", ".2f") for name in SETS}, "ratio": ("baseline by best", ".2f")}


def run(options):
    """Yield the table, again with each set."""
    before, rows = os.environ.get(VARIABLE), {}
    for name in SETS:
        os.environ[VARIABLE] = name
        try:
            found = run_module("scale.sets", str(options.repeat), *["quick"] * options.quick)
        except RuntimeError as error:  # the processor does not support it
            if "ImportError" not in str(error):
                raise
            continue
        finally:
            os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})
        for task, seconds in found.items():
            rows.setdefault(task, {"task": task})[name] = seconds
        yield Table("Instruction sets", COLUMNS, [row | {"ratio": ratio(row)} for row in rows.values()], ABOUT)


def ratio(row):
    seconds = [row[name] for name in SETS if name in row]
    return seconds[0] / min(seconds)


def measure(times, quick):
    """CPU seconds of each task's training, with the set of this process."""
    return {name: repeat(fit, times)[1].cpu for name, fit in trainings(quick)}


def trainings(quick):
    """Yield names and functions that train, one by one: their data are large."""
    for case in cases(quick):
        yield case.name, partial(case.fit, PASSES, 1)
    trees = fetch_ud_dutch().train[: 100 if quick else 1000]
    yield "UD Dutch, 1,000 sentences", partial(DependencyParser(C=0.01, random_state=0).fit, trees)
    for task in (adult(), usps(noise=True), mnist(0)):
        some = trial(task) if quick else task
        yield f"LaSVM, {task.name}", partial(LaSVMClassifier(random_state=0, **task.params).fit, some.X, some.y)


ABOUT = notes(f"""The whole fit, the best of some runs, each set in a process of its own (`{VARIABLE}`); {PASSES} passes
of the tasks that threads are measured on, the parser with C = 0.01. Chains, charts and alignments have no kernels for
avx512 and use those for avx2. Rows of adult are sparse; those of USPS and MNIST (10,000 digits) are dense.""")


if __name__ == "__main__":
    json.dump(measure(int(sys.argv[1]), "quick" in sys.argv), sys.stdout)
