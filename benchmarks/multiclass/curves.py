"""Figure 1 of the LaRank paper (thesis, figure 5.1): test error against kernel values."""

from __future__ import annotations

import io
import warnings

import numpy as np

from common.pictures import Panel, draw, lines_of
from common.report import Table, notes
from multiclass.data import ABOUT, CACHE, error, load
from structsvm import ConvergenceWarning
from structsvm.kernel._kernels import Gram, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import KernelLaRank, KernelPerceptron
from structsvm.tasks.kernel.model import KernelModel

SETS, PARTS, PASSES, LATER = ("LETTER", "USPS"), 5, (2, 3, 5, 10), 3
COLUMNS = {
    "data": ("data", ""),
    "method": ("method", ""),
    "passes": ("passes", ".1f"),
    "error": ("error %", ".2f"),
    "kernels": ("kernels (M)", ".2f"),
    "patterns": ("patterns", ".0f"),
}
NOTES = f"""
{ABOUT}

One order of the examples. A part of a pass is a pass over the first examples of that order. AvgPerceptron: the averaged
perceptron; MIRA: ProcessNew alone

The finding of the paper: LaRank is almost at its last error after one pass; MIRA and the averaged perceptron need
several, and come less far

picture: multiclass_curves.png
"""


def run(options):
    panels, table = [], Table("Figure 1: test error against kernel values", COLUMNS, notes=notes(NOTES))
    for name in SETS:
        data = load(name, options.quick)
        rows = [row for method, make in methods(data.setting.C).items() for row in points(data, method, make)]
        table.rows += rows
        lines = lines_of(rows, "method", "kernels", "error")
        panels.append(Panel(name, "kernel values (million)", "test error (%)", lines, axes={"xscale": "log"}))
        yield table
    draw(panels, len(panels), io.BytesIO() if options.quick else options.output / "multiclass_curves.png")


def methods(C):
    common = {"cache_size": CACHE, "random_state": 0}
    return {
        "LaRank": lambda passes: KernelLaRank(C, schedule="adaptive", max_iter=passes, **common),
        "MIRA": lambda passes: KernelLaRank(C, schedule=(0, 0), max_iter=passes, **common),
        "AvgPerceptron": lambda passes: KernelPerceptron(max_iter=passes, **common),
    }


def points(data, method, make):
    """Rows along a run of each length."""
    order = np.random.default_rng(0).permutation(len(data.y))
    for k in range(1, PARTS + 1):
        yield point(data, method, make(1), order[: len(order) * k // PARTS], k / PARTS)
    for passes in PASSES if method == "AvgPerceptron" else PASSES[:LATER]:
        yield point(data, method, make(passes), order, passes)


def point(data, method, solver, rows, passes):
    problem = KernelProblem(Gram(data.setting.kernel, Rows(data.X[rows])), data.y[rows], data.n_labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = solver.solve(problem)
    model = KernelModel(np.arange(data.n_labels), data.setting.kernel)
    model.set_weights_from(run)
    return {
        "data": data.name,
        "method": method,
        "passes": passes,
        "error": error(model.predict(data.X_test), data.y_test),
        "kernels": problem.gram.n_values / 1e6,
        "patterns": len(model.support),
    }
