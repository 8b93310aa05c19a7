"""Solvers: accuracy on the development part by passes, and runs to one optimum."""

from __future__ import annotations

from common import optimum
from common.report import Table, notes
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.solvers import FrankWolfe, LaRank, PassiveAggressive, Perceptron
from structsvm.tasks import DependencyParser

SENTENCES, QUICK = 500, 100
SOLVERS = {
    "LaRank, C = 0.01": lambda n: LaRank(C=0.01, max_iter=n, random_state=0),
    "LaRank, C = 0.03": lambda n: LaRank(C=0.03, max_iter=n, random_state=0),
    "LaRank, C = 0.1": lambda n: LaRank(C=0.1, max_iter=n, random_state=0),
    "Frank-Wolfe, C = 0.1": lambda n: FrankWolfe(C=0.1, max_iter=n, tol=1e-6, random_state=0),
    "passive-aggressive, averaged, C = 0.1": lambda n: PassiveAggressive(
        C=0.1, average=True, max_iter=n, random_state=0
    ),
    "averaged perceptron": lambda n: Perceptron(max_iter=n, random_state=0),
}
FEW, TOL, SAME_C = 100, 0.01, 0.01


def run(options):
    data = TREEBANKS["UD English EWT"]()
    train = some(data.train, QUICK if options.quick else SENTENCES)
    columns = {"parser": COLUMNS["parser"], "passes": ("passes", "d")} | COLUMNS
    table = Table(
        f"UD English EWT: solvers on {len(train)} sentences, the development part", columns, notes=notes(NOTES)
    )
    for name, make in SOLVERS.items():
        if options.only and options.only not in name:
            continue
        for passes in (1, 2) if options.quick else (1, 3, 6):

            def fit(train, make=make, passes=passes):
                return DependencyParser(None, solver=make(passes), order=1).fit(train).predict

            row = measured(name, train, data.dev[:100] if options.quick else data.dev, fit)
            table.rows.append(row | {"passes": passes})
            yield table
    few = some(data.train, 20 if options.quick else FEW)
    table = Table(f"UD English EWT: to one optimum, {len(few)} sentences", optimum.COLUMNS, notes=notes(OF_OPTIMUM))
    for row in optimum.rows(
        SAME_C, TOL, lambda solver: DependencyParser(None, solver=solver, order=1).fit(few), options.only or ""
    ):
        table.rows.append(row)
        yield table


NOTES = """
One training per row, each from zero. The passive-aggressive algorithm visits only examples without support vectors from
the second pass on: here there are none.
"""
OF_OPTIMUM = f"""
C = {SAME_C}, a relative gap of {TOL:g}, from zero: one problem, so that the optimum is between the greatest dual and
the least primal of all rows.
"""
