"""Solvers to one optimum: up to 10 words, from tags."""

from __future__ import annotations

from common.measure import Clock
from common.report import Table, notes
from grammar.data import treebank
from structsvm import CuttingPlane, FrankWolfe, LaRank
from structsvm.tasks import GrammarParser

C, TOL = 0.1, 0.01
SOLVERS = {
    "LaRank": LaRank(C=C, tol=TOL, max_iter=1000, random_state=0),
    "Frank-Wolfe": FrankWolfe(C=C, tol=TOL, max_iter=1000, random_state=0),
    "cutting plane, n slacks": CuttingPlane(C=C, tol=TOL, max_iter=1000),
    "cutting plane, one slack": CuttingPlane(C=C, tol=TOL, max_iter=1000, form="one_slack"),
}
COLUMNS = {
    "solver": ("solver", ""),
    "dual": ("dual", ".4f"),
    "primal": ("primal", ".4f"),
    "gap": ("gap %", ".2f"),
    "passes": ("passes", "d"),
    "calls": ("oracle calls", "d"),
    "cpu": ("training, CPU s", ".1f"),
}


def run(options):
    trees, _ = treebank(10, options.quick)
    table = Table(f"To one optimum: {len(trees)} trees of up to 10 words", COLUMNS, notes=notes(NOTES))
    for name, solver in SOLVERS.items():
        with Clock() as clock:
            result = GrammarParser(None, solver=solver).fit(trees).result_
        row = {"solver": name, "dual": result.dual, "primal": result.primal, "gap": 100.0 * result.gap / result.primal}
        table.rows.append(row | {"passes": result.n_iter, "calls": result.n_argmax, "cpu": clock.cpu})
        yield table


NOTES = f"""
From tags, h = 1, features of spans, the Hamming loss, margin rescaling, C = {C}, a relative gap of {TOL:g}, from zero:
one problem, so that the optimum is between the greatest dual and the least primal of all rows.
"""
