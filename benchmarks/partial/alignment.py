"""Alignments some of whose columns nobody has assessed: learnt as if they were true, or left open."""

from __future__ import annotations

import warnings

import numpy as np

from alignment.proteins import GIVEN, GRID, NEAR, NEAR_GRID, choose, measure
from common.report import Table, notes
from structsvm import LaRank, LatentSVM
from structsvm.datasets import fetch_oxbench, fetch_prefab
from structsvm.structures.gapped import split_rows
from structsvm.tasks import SequenceAligner

PASSES, SEED, QUICK = 6, 0, 80
WAYS = {
    "as if all columns were true": lambda C: LaRank(C=C, max_iter=PASSES, random_state=SEED),
    "aligned once (the default)": lambda C: LaRank(C=C, max_iter=PASSES, random_state=SEED),
    "completed in rounds (LatentSVM)": lambda C: LatentSVM(LaRank(C=C, max_iter=PASSES, random_state=SEED)),
}
AS_TRUE = next(iter(WAYS))
COLUMNS = {
    "prior": ("around", ""),
    "way": ("the other columns", ""),
    "chosen": ("chosen", ""),
    "valid": ("valid Q", ".3f"),
    "q": ("test Q", ""),
    "difference": ("minus as if true", ""),
    "first": ("homologues first %", ".1f"),
    "cpu": ("CPU s a training", ".1f"),
    "times": ("trainings", ".1f"),
}


def run(options):
    for name, fetch in (("PREFAB 4.0", fetch_prefab), ("OXBench", fetch_oxbench)):
        yield from compared(name, fetch(), options)


def compared(name, data, options):
    n = QUICK if options.quick else None
    X, y = data.X_train[:n], data.y_train[:n]
    as_true = [tuple(row.upper() for row in rows) for rows in y]
    made = Table(f"{name}: {len(X)} alignments whose core columns alone are known", COLUMNS)
    made.notes = notes(f"{ABOUT}{100.0 * share_of(y):.0f} % of the columns are core columns")
    for prior, near, grid in (("nothing", {}, GRID), ("BLOSUM62", NEAR, NEAR_GRID)):
        base = cpu = None
        for way, solver in WAYS.items():
            labels, settings = as_true if way == AS_TRUE else y, {"mode": GIVEN["mode"], "prior": None} | near
            makers = {
                f"C = {C}": lambda C=C, solver=solver, labels=labels, settings=settings: SequenceAligner(
                    C=None, solver=solver(C), **settings
                ).fit(X, labels)
                for C in grid[: 1 if options.quick else None]
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row, model = choose(way, makers, data)
            q, wrong = measure(model, data, n, row)
            base, cpu = (q, row["cpu"]) if base is None else (base, cpu)
            apart = q - base
            error = apart.std(ddof=1) / np.sqrt(len(apart))
            made.rows.append(
                {name: row[name] for name in ("chosen", "valid", "q", "cpu")}
                | {"prior": prior, "way": way, "difference": f"{apart.mean():+.4f} ± {error:.4f}"}
                | {"first": 100.0 * (1.0 - wrong.mean()), "times": row["cpu"] / cpu}
            )
            yield made


def share_of(y):
    """The share of the columns that are pairs of assessed letters."""
    operations = b"".join(split_rows(*rows)[2] for rows in y)
    return operations.count(b"M") / len(operations)


ABOUT = f"""
semi-global alignments, {PASSES} passes (a round); C chosen by Q of the validation pairs; Q: share of the core pairs
found, mean over the test pairs; ± is the standard error of the mean, of differences that of the paired ones

homologues first: the homologue scores more than its 10 decoys; costs are learnt from alignments alone

trainings: CPU time in units of that of "{AS_TRUE}"


"""
