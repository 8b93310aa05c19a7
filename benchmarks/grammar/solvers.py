"""Solvers to one optimum: up to 10 words, from tags."""

from __future__ import annotations

from common.optimum import COLUMNS, rows
from common.report import Table, notes
from grammar.data import treebank
from structsvm.tasks import GrammarParser, TreebankGrammar

C, TOL = 0.1, 0.01


def run(options):
    trees, _ = treebank(10, options.quick)
    table = Table(f"To one optimum: {len(trees)} trees of up to 10 words", COLUMNS, notes=notes(NOTES))
    for row in rows(
        C, TOL, lambda solver: GrammarParser(None, solver=solver, grammar=TreebankGrammar(h=1), prior=None).fit(trees)
    ):
        table.rows.append(row)
        yield table


NOTES = f"""
From tags, h = 1, features of spans, the Hamming loss, margin rescaling, C = {C}, a relative gap of {TOL:g}, from zero:
one problem, so that the optimum is between the greatest dual and the least primal of all rows.
"""
