"""Solvers that train one problem to a tolerance, for tables of what they end with."""

from __future__ import annotations

from common.measure import Clock
from structsvm.solvers import CuttingPlane, FrankWolfe, LaRank

COLUMNS = {
    "solver": ("solver", ""),
    "dual": ("dual", ".4f"),
    "primal": ("primal", ".4f"),
    "gap": ("gap %", ".2f"),
    "passes": ("passes", "d"),
    "calls": ("oracle calls", "d"),
    "cpu": ("training, CPU s", ".1f"),
}


def rows(C, tol, fit, only=""):
    """Yield a row per solver with `only` in its name; ``fit(solver)`` returns an estimator."""
    solvers = {
        "LaRank": LaRank(C=C, tol=tol, max_iter=1000, random_state=0),
        "Frank-Wolfe": FrankWolfe(C=C, tol=tol, max_iter=1000, random_state=0),
        "cutting plane, n slacks": CuttingPlane(C=C, tol=tol, max_iter=1000),
        "cutting plane, one slack": CuttingPlane(C=C, tol=tol, max_iter=1000, form="one_slack"),
    }
    for name, solver in solvers.items():
        if only not in name:
            continue
        with Clock() as clock:
            result = fit(solver).result_
        row = {"solver": name, "dual": result.dual, "primal": result.primal, "gap": 100.0 * result.gap / result.primal}
        yield row | {"passes": result.n_iter, "calls": result.n_argmax, "cpu": clock.cpu}
