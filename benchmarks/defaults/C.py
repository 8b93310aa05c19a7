"""``C="auto"`` beside a full grid: the same scores for a fraction of the work."""

from __future__ import annotations

import time
import warnings
from itertools import islice

import numpy as np

from common.report import Table, notes
from defaults.data import CASES, before_path
from structsvm.tasks.common.selection.search import PARTS, PARTS_OF_FEW, round_values

N_VALUES = 9  # size of the grid, from half a decade below the path's first one on
COLUMNS = {
    "case": ("data", ""),
    "metric": ("test score", ""),
    "C": ("C=auto", "g"),
    "auto": ("score", ".2f"),
    "grid_C": ("grid's C", "g"),
    "grid": ("score", ".2f"),
    "best_C": ("best C on the test part", "g"),
    "best": ("score", ".2f"),
    "default": ("score at the fixed C before", ".2f"),
    "cpu": ("CPU s of auto", ".2f"),
    "ratio": ("in trainings at its C", ".1f"),
    "passes": ("passes in all, of a training", ""),
    "grid_ratio": ("grid's CPU, in the same", ".0f"),
}
NOTES = """
auto: as the estimator comes, with random_state=0. Grid: 9 values of 1 and 3 times powers of ten, from a third of the
path's first one on (costs or a grammar to start from, which a path judges first, are not counted), each trained from 0
on four fifths of the training part, in random order, and judged by the test's metric on the other fifth; the best is
trained on all. Best on the test part: the same values, each trained on all and judged by test scores, which no method
may look at: the most that a choice of C can give

scores in percent; a training at its C: the same estimator with C=auto's number, which trains one model where "auto" of
dense columns adds two (a training of both: the part "taxonomies"); passes: those of the path, as shares of
all examples, with the final training's, and those of the latter alone; fixed before: C=None, the default of 0.1.0
(LaRankClassifier and other kernel machines: 1)
"""


def run(options):
    """Yield one table, again after each row."""
    table = Table("C=auto and a full grid", COLUMNS, notes=notes(NOTES))
    for name, make in list(CASES.items())[: 1 if options.quick else None] if options.only in table.title else []:
        table.rows.append({"case": name} | row(make()))
        yield table


def row(case):
    warnings.simplefilter("ignore")
    auto, cpu = timed(lambda: case.fit("auto"))
    _, cpu_fixed = timed(lambda: case.fit(auto.C_))
    grid_cpu, judged, tested = 0.0, {}, {}
    order = np.random.default_rng(1).permutation(len(case.y))
    held_out, others = np.sort(order[: len(order) // PARTS]), np.sort(order[len(order) // PARTS :])
    for C in islice(round_values(before_path(auto.validation_["C"])), N_VALUES):
        model, seconds = timed(lambda C=C: case.fit(C, others))
        judged[C] = case.score_on(model, held_out)
        grid_cpu += seconds
        tested[C] = case.score_on(case.fit(C))
    grid_C, best_C = (max(scores, key=scores.get) for scores in (judged, tested))
    table = auto.validation_
    share = 1.0 - 1.0 / (PARTS if table["n_held_out"] < 0.9 * len(case.y) else PARTS_OF_FEW)
    passes = share * table["passes"].sum() + auto.n_iter_
    default = case.fit(None if "Kernel" not in str(case.kind.__mro__) else 1.0)
    return {
        "metric": case.metric,
        "C": auto.C_,
        "auto": 100.0 * case.score_on(auto),
        "grid_C": grid_C,
        "grid": 100.0 * tested[grid_C],
        "best_C": best_C,
        "best": 100.0 * tested[best_C],
        "default": 100.0 * case.score_on(default),
        "cpu": cpu,
        "ratio": cpu / cpu_fixed,
        "passes": f"{passes:.1f}, {auto.n_iter_}",
        "grid_ratio": (grid_cpu + cpu_fixed) / cpu_fixed,
        "tested": tested,
        "judged": judged,
        "table": table,
        "n_iter": auto.n_iter_,
    }


def timed(action):
    begin = time.process_time()
    value = action()
    return value, time.process_time() - begin
