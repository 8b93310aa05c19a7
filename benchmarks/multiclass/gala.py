"""Table 1 and figure 1 of the GaLa paper (Tuma and Igel 2011): the selection of old examples, over many shuffles."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import numpy as np

from common.report import Table, notes
from multiclass.data import ABOUT, CACHE, SETTINGS, error, load
from structsvm.kernel._kernels import Gram, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import KernelLaRank
from structsvm.tasks.kernel.model import KernelModel

RUNS, RUNS_MNIST, QUICK_RUNS = 10, 3, 2
SLICE = 1e-3  # seconds between two looks at the dual
# ProcessOld and Optimize for each ProcessNew (table 1), INEX's for 20news; speed-up of GaLa in %.
RATES = {"USPS": (1.94, 36.7), "LETTER": (1.75, 82.6), "20news": (3.67, 35.1), "MNIST": (1.65, 53.4)}
SPEEDUP = {"USPS": 12, "LETTER": 9, "20news": 18, "MNIST": 2}
METHODS = {
    "LaRank": lambda name: {"schedule": "adaptive"},
    "GaLa": lambda name: {"schedule": "adaptive", "selection": "gain"},
    "LaRankFix": lambda name: {"schedule": RATES[name]},
    "GaLaFix": lambda name: {"schedule": RATES[name], "selection": "gain"},
}
STYLES = {
    "LaRank": ("#0072B2", "-"),
    "GaLa": ("#D55E00", "-"),
    "LaRankFix": ("#0072B2", ":"),
    "GaLaFix": ("#D55E00", ":"),
}

TITLE = "GaLa: one pass, selection of old examples at random and by gain"
RATES_TITLE = "Table 1: steps of the adaptive schedule"
COLUMNS = {
    "data": ("data", ""),
    "method": ("method", ""),
    "runs": ("runs", ".0f"),
    "error": ("error %", ".2f"),
    "error_spread": ("±", ".2f"),
    "dual": ("dual", ".1f"),
    "dual_spread": ("±", ".1f"),
    "cpu": ("CPU s", ".3f"),
    "cost": ("cost model s", ".3f"),
    "old": ("ProcessOld", ".2f"),
    "optimize": ("Optimize", ".1f"),
    "faster": ("faster, CPU %", ".0f"),
    "faster_cost": ("faster, cost %", ".0f"),
    "paper": ("paper %", ".0f"),
}
NOTES = f"""
{ABOUT}

one pass; mean and standard deviation of so many orders of the examples; ProcessOld, Optimize: for each ProcessNew

LaRank, GaLa: the adaptive schedule by the deterministic model of costs; LaRankFix, GaLaFix: the rates of the paper's
table 1 (20news: those of INEX), {RATES}

faster: how much earlier GaLa reaches the dual at which LaRank ends than LaRank does, or, negative, how much later it
ends than LaRank reached the same dual; GaLaFix against LaRankFix; paper: GaLa against LaRank by the clock, INEX for
20news

picture: multiclass_gala.png, the dual against CPU time
"""


RATE_RUNS, MOST_RATE_RUNS = {"MNIST": 1}, 3
PADDED = {"LETTER": 32, "USPS": 8}
RATE_COLUMNS = {
    "data": ("data", ""),
    "values": ("kernel values", ""),
    "old": ("ProcessOld", ".2f"),
    "paper_old": ("paper", ".2f"),
    "optimize": ("Optimize", ".1f"),
    "paper_optimize": ("paper", ".1f"),
    "dual": ("dual", ".1f"),
    "error": ("error %", ".2f"),
    "cpu": ("CPU s", ".3f"),
}
RATE_NOTES = """
one pass of LaRank with random selection; ProcessOld and Optimize for each ProcessNew; means of 3 orders of the examples
(MNIST: 1). Paper: 20news has the rates of INEX

dear: rows have 32 (LETTER) or 8 (USPS) times as many features, all further ones 0, with which a value
costs 9 and 33 updates of a derivative in place of 1 and 5
"""


def run(options):
    if options.only in RATES_TITLE:
        yield rates(options)
    if options.only in TITLE:
        yield from comparison(options)


def rates(options):
    """Table 1: how often the adaptive schedule chooses each step."""
    table = Table(RATES_TITLE, RATE_COLUMNS, notes=notes(RATE_NOTES))
    for name in list(SETTINGS)[: 2 if options.quick else None]:
        data, (old, optimize) = load(name, options.quick), RATES[name]
        ways = {"as they are": data}
        if name in PADDED:
            ways["dear"] = padded(data, PADDED[name])
        for values, rows in ways.items():
            n_runs = RATE_RUNS.get(name, MOST_RATE_RUNS)
            ends = [curve(rows, {"schedule": "adaptive"}, seed)[0] for seed in range(n_runs)]
            row = {"data": name, "values": values, "paper_old": old, "paper_optimize": optimize}
            table.rows.append(row | {key: np.mean([end[key] for end in ends]) for key in ends[0]})
    return table


def padded(data, times):
    """The data with so many times the features."""
    more = ((0, 0), (0, (times - 1) * data.X.shape[1]))
    return replace(data, X=np.pad(data.X, more), X_test=np.pad(data.X_test, more))


def comparison(options):
    rows, curves = [], {}
    for name in list(SETTINGS)[: 2 if options.quick else None]:
        data = load(name, options.quick)
        n_runs = QUICK_RUNS if options.quick else RUNS_MNIST if name == "MNIST" else RUNS
        done = {method: [curve(data, make(name), seed) for seed in range(n_runs)] for method, make in METHODS.items()}
        curves[name] = {method: runs[0][1] for method, runs in done.items()}
        for method, runs in done.items():
            ends = [end for end, _ in runs]
            row = {key: np.mean([end[key] for end in ends]) for key in ends[0]}
            row |= {f"{key}_spread": np.std([end[key] for end in ends]) for key in ("error", "dual")}
            rows.append({"data": name, "method": method, "runs": n_runs} | row)
            if method.startswith("GaLa"):
                other = done[method.replace("GaLa", "LaRank")]
                for key, column in (("faster", 0), ("faster_cost", 1)):
                    pairs = zip(other, runs, strict=True)
                    rows[-1][key] = np.mean(
                        [advantage(a[:, [column, 2]], b[:, [column, 2]]) for (_, a), (_, b) in pairs]
                    )
            if method == "GaLa":
                rows[-1]["paper"] = SPEEDUP[name]
    yield Table(TITLE, COLUMNS, rows, notes(NOTES))
    draw(curves, io.BytesIO() if options.quick else options.output / "multiclass_gala.png")


def curve(data, settings, seed):
    """The result of a pass; and its curve, rows of CPU seconds, cost and dual."""
    problem = KernelProblem(Gram(data.setting.kernel, Rows(data.X)), data.y, data.n_labels)
    solver = KernelLaRank(data.setting.C, cache_size=CACHE, max_iter=1, random_state=seed, **settings)
    began = time.process_time()
    run = solver.start(problem)
    points, done = [(0.0, 0.0, 0.0)], False
    while not done:
        done = run.advance(SLICE)
        points.append((time.process_time() - began, 1e-9 * run.state.cost, run.state.dual))
    model = KernelModel(np.arange(data.n_labels), data.setting.kernel)
    model.set_weights_from(run)
    end = {"cpu": points[-1][0], "cost": points[-1][1], "dual": points[-1][2]}
    end["error"] = error(model.predict(data.X_test), data.y_test)
    end["old"] = run.state.n_visits / len(data.y) - 1.0
    end["optimize"] = run.state.n_optimize / len(data.y)
    return end, np.array(points)


def advantage(a, b):
    """By how many % curve `b`, of time and dual, reaches the lower of the two last duals before `a` does."""
    least = min(a[-1, 1], b[-1, 1])
    at = [np.interp(least, np.maximum.accumulate(curve[:, 1]), curve[:, 0]) for curve in (a, b)]
    return 100.0 * (at[0] - at[1]) / max(at)


def draw(curves, where):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    for ax, (name, lines) in zip(figure.subplots(2, 2).flat, curves.items(), strict=False):
        for method, points in lines.items():
            color, style = STYLES[method]
            ax.plot(points[:, 0], points[:, 2], color=color, linestyle=style, linewidth=1.4, label=method)
        ax.set(title=name, xlabel="CPU seconds", ylabel="dual")
        ax.grid(color="#999999", alpha=0.3, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=4)
    figure.savefig(where, dpi=100, format="png")
