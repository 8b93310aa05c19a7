"""Time of parsing against length, and its exponent: scores of arcs, then a chart or an arborescence."""

from __future__ import annotations

from functools import partial

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from dependency.data import TREEBANKS, some
from structsvm.oracles.dependency._dependency import TreeFinder
from structsvm.tasks import DependencyParser

LENGTHS, QUICK = (10, 20, 40, 80, 160, 320), (10, 20)
COLUMNS = {
    "length": ("words", "d"),
    "whole": ("whole parse, us", ".0f"),
    "eisner": ("Eisner alone, us", ".1f"),
    "arborescence": ("arborescence alone, us", ".1f"),
}


def per_call(work, seconds):
    """CPU microseconds of a call, the least of five."""
    best, n = np.inf, 1
    for _ in range(5):
        with Clock() as clock:
            for _ in range(n):
                work()
        best = min(best, clock.cpu / n)
        n = max(1, int(seconds / max(best, 1e-9)))
    return 1e6 * best


def run(options):
    words = [word for tree in TREEBANKS["UD English EWT"]().dev for word in tree.words]
    parser = DependencyParser(C=0.1, max_iter=1, random_state=0).fit(
        some(TREEBANKS["UD English EWT"]().train, 100 if options.quick else 1000)
    )
    model, rng = parser.model_, np.random.default_rng(0)
    table = Table("Time against length", COLUMNS, notes=notes(NOTES))
    for n in QUICK if options.quick else LENGTHS:
        codes, offsets = model.encode([words[:n]])
        decoder = model.oracle.decoder(n)
        scores = rng.normal(size=(n + 1, n + 1)).astype(np.float32)
        finders = {"eisner": TreeFinder(True, n), "arborescence": TreeFinder(False, n)}
        row = {"length": n, "whole": per_call(partial(decoder.parse, codes, offsets, model.weights), 0.05)}
        row |= {name: per_call(partial(finder.tree, scores), 0.05) for name, finder in finders.items()}
        table.rows.append(row)
        yield table
    for name in ("whole", "eisner", "arborescence"):
        first, last = table.rows[-2], table.rows[-1]
        exponent = np.log(last[name] / first[name]) / np.log(last["length"] / first["length"])
        table.notes.append(f"Exponent of the last doubling, {COLUMNS[name][0].partition(',')[0]}: {exponent:.2f}.")
    yield table


NOTES = """
One thread; words in a row of the development part, cut at lengths. Arcs alone: random scores, which have long cycles.
"""
