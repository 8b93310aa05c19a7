"""Ways to choose C, and a kernel's gamma: what each finds, and what it costs."""

from __future__ import annotations

import time
import warnings
from itertools import islice

import numpy as np

from common.report import Table, notes
from defaults.data import CASES
from structsvm.tasks import TaxonomyClassifier
from structsvm.tasks.common.selection.search import PARTS, PATIENCE, round_values

TAXONOMIES = (
    "CLINC150, tf-idf", "CLINC150, 100 columns", "Amazon, 100 columns", "ImCLEF07A, 80 bins as they are",
)  # fmt: skip
MACHINES = (
    "letter, LaRankClassifier, 1500", "USPS, LaRankClassifier, 1000", "USPS, 3 and 8, LaSVMClassifier, 500",
)  # fmt: skip
N_VALUES = 9
LOWEST = 0.1  # lowest C, for kernel machines
GAMMAS = (0.25, 1.0, 4.0, 16.0)  # times 1 / (columns * variance)
RUNGS = ((1 / 9, 3), (1 / 3, 2), (1.0, 1))  # shares of what is trained on, and how many settings stay
COLUMNS = {
    "case": ("data", ""),
    "way": ("way", ""),
    "chosen": ("chosen", ""),
    "score": ("accuracy %", ".2f"),
    "spread": ("±", ".2f"),
    "trainings": ("CPU, in trainings", ".1f"),
    "cpu": ("CPU s", ".2f"),
}
NOTES = f"""
as it comes: the estimator's own way, with random_state=0, which is a path for taxonomies and growing samples for kernel
machines. The others look at {N_VALUES} values of C, 1 and 3 times powers of ten, for kernel machines at each of
{len(GAMMAS)} gammas (0.25 to 16, in units of "scale"), and judge by a fifth of the training part. Full grid: each is
trained from 0 on the other four fifths. Growing sample: all on a ninth of these, the best three on a third, two of them
on all. Path: C grows, each training going on from the last, until {PATIENCE} values were worse; one per gamma

accuracy: on the test part, trained on the whole training part with what was chosen; ±: its standard error. CPU: of the
choice and that training; in trainings: over the CPU of a training on everything with the setting of the first row, of
one model where the estimator as it comes adds two (dense columns)
"""


def run(options):
    """Yield one table, again after each data set."""
    table = Table("Path, growing sample and full grid", COLUMNS, notes=notes(NOTES))
    names = [*TAXONOMIES, *MACHINES] if options.only in table.title else []
    for name in names[:1] if options.quick else names:
        table.rows += [{"case": name} | row for row in rows(CASES[name]())]
        yield table


def rows(case):
    warnings.simplefilter("ignore")
    has_gamma = case.kind is not TaxonomyClassifier
    auto, cpu = timed(lambda: fitted(case, {"C": "auto"} | ({"gamma": "auto"} if has_gamma else {})))
    setting = {"C": float(auto.C_)} | ({"gamma": float(auto.gamma_)} if has_gamma else {})
    _, one = timed(lambda: fitted(case, setting))
    found = [row("as it comes", case, setting, auto, cpu, one)]
    order = np.random.default_rng(1).permutation(len(case.y))
    held_out, inner = np.sort(order[: len(order) // PARTS]), order[len(order) // PARTS :]
    first = LOWEST if has_gamma else 0.34 * auto.validation_["C"][0]
    gammas = [{"gamma": g / (case.X.shape[1] * float(np.var(case.X)))} for g in GAMMAS] if has_gamma else [{}]
    lines = [[{"C": C} | gamma for C in islice(round_values(first), N_VALUES)] for gamma in gammas]
    for name, way in (("path", path), ("growing sample", growing), ("full grid", grid)):
        chosen, spent = timed(lambda way=way: way(case, inner, held_out, lines))
        model, last = timed(lambda chosen=chosen: fitted(case, chosen))
        found.append(row(name, case, chosen, model, spent + last, one))
    return found


def row(way, case, setting, model, cpu, one):
    right = np.asarray(model.predict(case.X_test)) == np.asarray(case.y_test)
    if "gamma" in setting:
        setting = setting | {"gamma": setting["gamma"] * case.X.shape[1] * float(np.var(case.X))}
    return {
        "way": way,
        "chosen": ", ".join(f"{name} {value:.3g}" for name, value in setting.items()),
        "score": 100.0 * right.mean(),
        "spread": 100.0 * right.std() / len(right) ** 0.5,
        "cpu": cpu,
        "trainings": cpu / one,
    }


def grid(case, inner, held_out, lines):
    return best(case, inner, held_out, [setting for line in lines for setting in line], 1)[0]


def growing(case, inner, held_out, lines):
    settings = [setting for line in lines for setting in line]
    for share, kept in RUNGS:
        settings = best(case, inner[: int(share * len(inner))], held_out, settings, kept)
    return settings[0]


def best(case, rows, held_out, settings, kept):
    """The settings of the best scores, trained on these rows; of equal ones the first."""
    scores = [case.score_on(fitted(case, setting, np.sort(rows)), held_out) for setting in settings]
    return [settings[k] for k in np.argsort([-score for score in scores], kind="stable")[:kept]]


def path(case, inner, held_out, lines):
    scores = []
    for line in lines:
        model, of_line = None, []
        for setting in line:
            model = fitted(case, setting | {"warm_start": True}, np.sort(inner), model)
            of_line.append(case.score_on(model, held_out))
            if len(of_line) - int(np.argmax(of_line)) > PATIENCE:
                break
        scores += zip(of_line, line)
    return max(scores, key=lambda pair: pair[0])[1]


def fitted(case, setting, rows=None, model=None):
    """An estimator with a setting; `model` goes on where it is given."""
    X, y = (case.X, case.y) if rows is None else (case.X[rows], case.y[rows])
    if model is None:
        return case.kind(**case.params | {"random_state": 0} | setting).fit(X, y)
    return model.set_params(**setting).fit(X, y)


def timed(action):
    begin = time.process_time()
    value = action()
    return value, time.process_time() - begin
