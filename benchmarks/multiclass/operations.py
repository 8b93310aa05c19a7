"""Figure 2 of the LaRank paper: one pass over USPS with some of the operations."""

from __future__ import annotations

import io

import numpy as np

from common.report import Table, notes
from multiclass.data import ABOUT, CACHE, load, train
from structsvm.solvers import KernelLaRank, KernelPerceptron

RUNS, QUICK_RUNS = 10, 2
# ProcessOld and Optimize for each ProcessNew: table 1 of the GaLa paper, what the adaptive schedule did on USPS.
OLD, OPTIMIZE = 1.94, 36.7

COLUMNS = {
    "operations": ("operations", ""),
    "error": ("error %", ".2f"),
    "error_spread": ("±", ".2f"),
    "kernels": ("kernels (M)", ".2f"),
    "patterns": ("patterns", ".0f"),
    "dual": ("dual", ".1f"),
    "cpu": ("CPU s", ".3f"),
}
NOTES = f"""
{ABOUT}

mean and standard deviation of {RUNS} orders of the examples; {OLD} ProcessOld and {OPTIMIZE} Optimize for each
ProcessNew, the rates that the GaLa paper found for the adaptive schedule

the finding of the paper: ProcessNew alone does as MIRA; all three together have the least error, and fewer patterns
and kernel values; the averaged perceptron computes fewest

picture: multiclass_operations.png
"""


def run(options):
    data, rows = load("USPS", options.quick), []
    for operations, make in methods(data.setting.C).items():
        found = [train(data, make(seed)) for seed in range(QUICK_RUNS if options.quick else RUNS)]
        row = {key: np.mean([one[key] for one in found]) for key in ("error", "kernels", "patterns", "dual", "cpu")}
        rows.append({"operations": operations} | row | {"error_spread": np.std([one["error"] for one in found])})
    yield Table("Figure 2: operations of LaRank, one pass over USPS", COLUMNS, rows, notes(NOTES))
    draw(rows, io.BytesIO() if options.quick else options.output / "multiclass_operations.png")


def methods(C):
    def larank(old, optimize):
        return lambda seed: KernelLaRank(C, schedule=(old, optimize), max_iter=1, cache_size=CACHE, random_state=seed)

    return {
        "ProcessNew (MIRA)": larank(0, 0),
        "ProcessNew, ProcessOld": larank(OLD, 0),
        "ProcessNew, Optimize": larank(0, OPTIMIZE),
        "all three": larank(OLD, OPTIMIZE),
        "averaged perceptron": lambda seed: KernelPerceptron(max_iter=1, cache_size=CACHE, random_state=seed),
    }


def draw(rows, where):
    """Error against kernel values, as in the paper."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.0), layout="constrained")
    ax = figure.subplots()
    for row in rows:
        ax.errorbar(row["kernels"], row["error"], yerr=row["error_spread"], fmt="o", color="#0072B2", capsize=3)
        ax.annotate(row["operations"], (row["kernels"], row["error"]), textcoords="offset points", xytext=(6, 6))
    ax.set(title="USPS, one pass", xlabel="kernel values (million)", ylabel="test error (%)")
    ax.set_xlim(0.0, 1.45 * max(row["kernels"] for row in rows))
    ax.grid(color="#999999", alpha=0.3, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(where, dpi=100, format="png")
