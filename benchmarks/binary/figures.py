"""The figures of chapters 3 and 4 of the thesis, drawn from the rows that the other parts have stored."""

from __future__ import annotations

import io

import numpy as np

from common.pictures import Panel, draw, lines_of
from common.report import Table

LINEAR = ("SVMSGD2", "SGD-QN", "SGD-QN, averaged", "oLBFGS", "LinearSVC, dual")
LABELS = {
    "error": "test error (%)",
    "cpu": "CPU seconds",
    "n_support": "support vectors",
    "passes": "passes",
    "primal": "primal",
    "digit": "digit",
    "bound": "delta_max",
}
LOG = {"xscale": "log"}
PICTURES = {
    "binary_linear.png": ("3.1, 3.2", "linear"),
    "binary_digits.png": ("4.3 to 4.9", "huller, lasvm, cache"),
    "binary_selection.png": ("4.10 to 4.17", "reprocess, active, retraining"),
}


def run(options):
    """Draw from what is kept; the last figure is computed."""
    panels = dict(zip(PICTURES, (linear(options.kept), digits(options.kept), selection(options.kept)), strict=True))
    for name, found in panels.items():
        draw(found, 4, io.BytesIO() if options.quick else options.output / name)
    columns = {"file": ("picture", ""), "figures": ("of the thesis's figures", ""), "parts": ("from the parts", "")}
    rows = [{"file": name, "figures": figures, "parts": parts} for name, (figures, parts) in PICTURES.items()]
    yield Table("Pictures: chapters 3 and 4 of the thesis", columns, rows)


def panel(title, rows, name, x, y, **axes):
    return Panel(title, LABELS[x], LABELS[y], lines_of(rows, name, x, y), axes=axes)


def linear(kept):
    panels = []
    for table in [table for table in kept.tables("linear") if table.title.startswith("Linear machines")][:3]:
        rows = [row for row in table.rows if row["machine"] in LINEAR]
        for y in ("error",) if panels else ("primal", "error"):
            figure = "3.1" if y == "primal" else "3.2"
            panels += [panel(f"{figure}: {rows[0]['data']}", rows, "machine", x, y, **LOG) for x in ("passes", "cpu")]
    return panels


def digits(kept):
    """By digit, then time by support vectors, then by cache."""
    panels = []
    for part, figures in (("huller", ("4.3", "4.3", "4.3", "4.3")), ("lasvm", ("4.5", "4.6", "4.8", "4.7"))):
        rows = [row for table in kept.tables(part) for row in table.rows if row["data"].startswith("mnist")]
        rows = [row | {"digit": int(row["data"].split()[1])} for row in rows]
        shapes = (("digit", "error"), ("digit", "cpu"), ("digit", "n_support"), ("n_support", "cpu"))
        for figure, (x, y) in zip(figures, shapes, strict=True):
            found = panel(f"{figure}: digits of MNIST", rows, "machine", x, y, yscale="log" if y == "cpu" else "linear")
            found.style = "-" if x == "digit" else ""
            panels.append(found)
    (cache,) = kept.tables("cache")
    times = {"SVC": "svc", "LaSVM x1": "lasvm", "Huller x1": "huller"}
    sizes = [row["size"] for row in cache.rows]
    lines = {name: (sizes, [row[key] for row in cache.rows]) for name, key in times.items()}
    return [*panels, Panel("4.4, 4.9: digit 8", "cache (MB)", LABELS["cpu"], lines, axes=LOG | {"yscale": "log"})]


def selection(kept):
    (reprocess,) = kept.tables("reprocess")
    svc, *rows = reprocess.rows
    rows += [svc | {"bound": row["bound"]} for row in rows if row["machine"] == rows[0]["machine"]]
    panels = [panel("4.10: banana", rows, "machine", "bound", y, **LOG) for y in ("error", "cpu", "n_support")]
    sets = {table.rows[0]["data"]: table.rows[1:] for table in kept.tables("active")}
    for figures, (data, rows) in zip(("4.11, 4.12", "4.13, 4.15", "4.14, 4.15"), sets.items(), strict=True):
        panels += [panel(f"{figures}: {data}", rows, "machine", x, "error", **LOG) for x in ("cpu", "n_support")]
    (steps,) = kept.tables("retraining")
    lines = lines_of(steps.rows, "learner", "labels", "error")
    panels.append(Panel("4.16: USPS, 0 against the rest", "labels", LABELS["error"], lines))
    return panels + [Panel(f"4.17: C = {C}", "alpha", "", duality(C), marker="") for C in (1.5, 0.7)]


def duality(C):
    """Lemma 5 with one example, x = 1 and y = 1: P - D, its bound C mu(Delta), and P - P*."""
    alpha = np.linspace(0.0, C, 200)
    primal, dual = 0.5 * alpha**2 + C * np.maximum(0.0, 1.0 - alpha), alpha - 0.5 * alpha**2
    best = min(1.0, C)
    ascent = best - 0.5 * best**2 - dual
    bound = C * np.sqrt(2.0 * ascent) + ascent
    lines = {"P - D": primal - dual, "bound": bound, "P - P*": primal - (best - 0.5 * best**2)}
    return {name: (alpha, values) for name, values in lines.items()}
