"""A method beside others: its grid is searched on a part of the training data, then it trains on everything."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from common.measure import Clock, package_version
from common.report import Table, notes, verdict

DRAWS = 1000
MOST = 3000  # training examples on which a grid is searched
TIMES = 6.0  # greatest cost of choosing, in trainings
COLUMNS = {
    "method": ("method", ""),
    "setting": ("setting", ""),
    "score": ("score %", ".2f"),
    "spread": ("±", ".2f"),
    "cpu": ("training CPU s", ".2f"),
    "total": ("with the choice", ".2f"),
    "beside": ("n_jobs=2, times faster", ".2f"),
}
NOTES = f"""
structsvm: as it comes, without a parameter but random_state=0; further rows name theirs. The others: the best of a grid
on a fifth of {MOST} training examples (of all where there are fewer), trained on the rest of them; then on everything

score: on the test part; ±: its standard error, from {DRAWS} draws of test examples with replacement

training: CPU seconds of one training on everything with the setting that was chosen; with the choice: the trainings and
predictions of the search, too, of structsvm the whole `fit`. One core

n_jobs=2: the time of the whole `fit` on one core, over that with two jobs on two
"""
ELSEWHERE = """
without a time with the choice: the grid was searched on another machine, by the same version of the program; the best
of these methods was trained and tested here, the others, without times, are as measured there
"""


@dataclass(frozen=True)
class Method:
    """A program and its grid.

    Attributes
    ----------
    name : str
    fit : callable
        ``fit(X, y, setting)`` returns a `Trained`.
    grid : list of dict
        One setting: nothing is searched.
    package : str
        The distribution whose version the result depends on.
    trains : bool
        Whether a training can be told from the choice.
    takes_jobs : bool
        Whether it is timed with ``n_jobs=2``, too.
    """

    name: str
    fit: Callable
    grid: list = field(default_factory=lambda: [{}])
    package: str = "structsvm"
    trains: bool = True
    takes_jobs: bool = False


@dataclass(frozen=True)
class Trained:
    """A trained predictor, and how it was trained.

    Attributes
    ----------
    predict : callable
        X -> predictions.
    chosen : dict
        What it chose itself, to be shown.
    again : dict or None
        The setting that trains it once more without the choice.
    cpu : float or None
        CPU seconds of a command; None: those of the call count.
    """

    predict: Callable
    chosen: dict = field(default_factory=dict)
    again: dict | None = None
    cpu: float | None = None


@dataclass(frozen=True)
class Score:
    """How predictions are scored: counts per example, and the percentage that sums of them make."""

    tally: Callable  # (y, predicted) -> array (n_examples, n_counts)
    value: Callable  # (n_counts,) -> float


ACCURACY = Score(
    lambda y, predicted: np.column_stack([np.asarray(y) == np.asarray(predicted), np.ones(len(y))]),
    lambda n: 100.0 * n[0] / n[1],
)


def compared(title, methods, train, test, score, about, options):
    """Yield the table of a data set after each new row. The other programs' rows are kept for later runs."""
    if options.quick:
        methods = [replace(method, grid=method.grid[:2]) for method in methods]
    kept = [row for table in options.kept.tables(options.part) if table.title == title for row in table.rows]
    kept = [] if options.fresh or options.quick else [row for row in kept if row.get("key")]
    keys = {m.name: key_of(m, title, train, options.machine) for m in methods if m.package != "structsvm"}
    rows = {row["method"]: row for row in kept if row["key"] in keys.values()}
    same = [m for m in methods if m.name in keys and m.name not in rows and m.trains]
    elsewhere = {m.name: row for m in same for row in kept if anywhere(row["key"]) == anywhere(keys[m.name])}
    best = max(elsewhere | rows, key=lambda name: (elsewhere | rows)[name]["score"], default=None)
    rows |= {name: row | {"cpu": None, "total": None} for name, row in elsewhere.items() if name != best}
    for method in methods:
        if method.name in rows:
            continue
        print(f"  {title}: {method.name}", file=sys.stderr, flush=True)
        known = elsewhere[best]["grid"] if method.name == best else None
        rows[method.name] = row_of(method, train, test, score, known) | {"key": keys.get(method.name)}
        missing = "; ".join(m.name for m in methods if m.name not in rows)
        found = [rows[m.name] for m in methods if m.name in rows]
        yield Table(title, COLUMNS, found, [f"unfinished: without {missing}", *verdicts(found)])
    ordered = [rows[m.name] for m in methods]
    about = NOTES + about + ELSEWHERE * any(row["total"] is None for row in ordered)
    yield Table(title, COLUMNS, ordered, [*notes(about), *verdicts(ordered)])


def key_of(method, title, train, machine):
    """Key of a result: all it depends on."""
    about = [method.name, package_version(method.package) or method.package, method.grid, title, len(train[1]), MOST]
    return json.dumps([*about, *(machine[name] for name in ("cpu", "cores", "python"))])


def anywhere(key):
    """A key without the machine."""
    return json.dumps(json.loads(key)[:-3])


def row_of(method, train, test, score, known=None):
    """Choose, train on everything, test; `train` and `test` are pairs of lists or arrays (X, y).

    `known`: the scores of the grid, if they are.
    """
    found, spent = known or [], 0.0
    if len(method.grid) > 1 and not known:
        inner, held_out = parts(*train)
        for setting in method.grid:
            done, clock = trained(method, inner, setting)
            spent += clock.cpu
            with Clock() as clock:
                predicted = done.predict(held_out[0])
            spent += clock.cpu
            found.append(score.value(score.tally(held_out[1], predicted).sum(axis=0)))
    setting = method.grid[int(np.argmax(found)) if found else 0]
    done, clock = trained(method, train, setting)
    cpu, total = clock.cpu, None if known else spent + clock.cpu
    beside = clock.wall / trained(method, train, setting | {"n_jobs": 2})[1].wall if method.takes_jobs else None
    if done.again is not None:
        cpu = trained(method, train, done.again)[1].cpu
    counts = np.asarray(score.tally(test[1], done.predict(test[0])), dtype=float)
    rng, n = np.random.default_rng(0), len(counts)
    draws = [score.value(np.bincount(rng.integers(0, n, n), minlength=n) @ counts) for _ in range(DRAWS)]
    return {
        "method": method.name,
        "setting": ", ".join(f"{name} {shown(value)}" for name, value in (setting | done.chosen).items()),
        "score": score.value(counts.sum(axis=0)),
        "spread": float(np.std(draws)),
        "cpu": cpu if method.trains else None,
        "total": total,
        "beside": beside,
        "grid": found,
    }


def trained(method, train, setting):
    """A training and its time."""
    with Clock() as clock:
        done = method.fit(*train, setting)
    if done.cpu is not None:
        clock.cpu = done.cpu
    return done, clock


def shown(value):
    return f"{value:g}" if isinstance(value, float) else value


def parts(X, y):
    """Four fifths of at most `MOST` examples, and the others of them."""
    order = np.random.default_rng(0).permutation(len(y))[:MOST]
    held_out, inner = np.sort(order[: len(order) // 5]), np.sort(order[len(order) // 5 :])
    return [(pick(X, places), pick(y, places)) for places in (inner, held_out)]


def pick(items, places):
    """Items of a list, rows of a matrix."""
    return [items[i] for i in places] if isinstance(items, list) else items[places]


def verdicts(rows):
    """Notes on the targets, for the estimator as it comes: the first row."""
    ours, *others = rows
    others = [row for row in others if not row["method"].startswith("structsvm")]
    if not others:
        return []
    best = max(others, key=lambda row: row["score"])
    name = best["method"]
    both = f"with the choice {ours['total']:.2f} s" + (f", {name} {best['total']:.2f} s" if best["total"] else "")
    first = verdict(
        "first, or within one standard error of the first",
        f"{ours['score']:.2f}, {name} {best['score']:.2f} ± {best['spread']:.2f}",
        ours["score"] >= best["score"] - best["spread"],
    )
    if ours["cpu"] is None:
        return [first, verdict("no more CPU time than that peer's", both, ours["total"] <= best["total"])]
    if best["cpu"] is None:
        return [first]
    return [
        first,
        verdict(
            "one training in no more CPU time than that peer's",
            f"{ours['cpu']:.2f} s, {name} {best['cpu']:.2f} s ({both})",
            ours["cpu"] <= best["cpu"],
        ),
        verdict(
            f"the choice and the training in at most {TIMES:g} times one training",
            f"{ours['total'] / ours['cpu']:.1f}",
            ours["total"] <= TIMES * ours["cpu"],
        ),
    ]
