"""Alignments some of whose columns nobody has assessed: learnt as if they were true, or left open."""

from __future__ import annotations

import warnings
from itertools import groupby

import numpy as np

from alignment.proteins import GIVEN, GRID, NEAR, NEAR_GRID, choose, measure, standard_error
from common.report import Table, notes
from structsvm import LaRank, LatentSVM
from structsvm.datasets import fetch_oxbench, fetch_prefab
from structsvm.structures.gapped import split_rows
from structsvm.tasks import SequenceAligner

PASSES, SEED, QUICK, N_NARROW = 6, 0, 80, 400
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


# Alignments most of whose columns nobody has assessed: their columns in the file, and what is done with them.
HIDDEN = {
    "as they were, learnt as if true": (False, True, LaRank, {}),
    "side by side, learnt as if true": (True, True, LaRank, {}),
    "aligned once (the default)": (True, False, LaRank, {}),
    "completed in rounds (LatentSVM)": (True, False, LatentSVM, {}),
    "completed in the steps (online=True)": (True, False, LatentSVM, {"online": True}),
}
SIDE_BY_SIDE = list(HIDDEN)[1]
COLUMNS_NARROW = {name: heading for name, heading in COLUMNS.items() if name != "difference"} | {
    "difference": ("Q minus side by side", ""),
    "more": ("first minus side by side", ""),
}


def run(options):
    for name, fetch in (("PREFAB 4.0", fetch_prefab), ("OXBench", fetch_oxbench)):
        yield from compared(name, fetch(), options)
        yield from narrowed(name, fetch(), options)


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


def narrowed(name, data, options):
    """The middle half of each run of core columns is known; the letters between are side by side in the file."""
    n = QUICK if options.quick else N_NARROW
    X, given = data.X_train[:n], [halved(*rows) for rows in data.y_train[:n]]
    shifted = [side_by_side(*rows) for rows in given]
    made = Table(f"{name}: {len(X)} alignments, most of whose columns nobody has assessed", COLUMNS_NARROW)
    made.notes = notes(f"{ABOUT_NARROW}{100.0 * share_of(given):.0f} % of the columns are known")
    for prior, near, grid in (("nothing", {}, GRID), ("BLOSUM62", NEAR, NEAR_GRID)):
        found = {}
        for way, (is_shifted, is_true, kind, params) in HIDDEN.items():
            y = shifted if is_shifted else given
            y = [tuple(row.upper() for row in rows) for rows in y] if is_true else y

            def made_with(C, y=y, kind=kind, params=params, near=near):
                solver = LaRank(C=C, max_iter=PASSES, random_state=SEED)
                solver = solver if kind is LaRank else LatentSVM(solver, **params)
                return SequenceAligner(C=None, solver=solver, mode=GIVEN["mode"], **({"prior": None} | near)).fit(X, y)

            makers = {f"C = {C}": lambda C=C, make=made_with: make(C) for C in grid[: 1 if options.quick else None]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row, model = choose(way, makers, data)
            found[way] = row, *measure(model, data, n, row)
        base_row, base, base_wrong = found[SIDE_BY_SIDE]
        for way, (row, q, wrong) in found.items():
            apart, better = q - base, 100.0 * (base_wrong - wrong)
            made.rows.append(
                {name: row[name] for name in ("chosen", "valid", "q", "cpu")}
                | {"prior": prior, "way": way, "first": 100.0 * (1.0 - wrong.mean())}
                | {"difference": f"{apart.mean():+.4f} ± {standard_error(apart):.4f}"}
                | {"more": f"{better.mean():+.1f} ± {standard_error(better):.1f}"}
                | {"times": row["cpu"] / base_row["cpu"]}
            )
        yield made


def halved(row_x, row_z):
    """In lower case but for the middle half of each run of columns of two capitals."""
    is_core = [a.isupper() and b.isupper() for a, b in zip(row_x, row_z, strict=True)]
    at = 0
    for core, run_of in groupby(is_core):
        size = len(list(run_of))
        if core:
            kept = (size + 1) // 2
            first = at + (size - kept) // 2
            is_core[at : at + size] = [first <= k < first + kept for k in range(at, at + size)]
        at += size
    return tuple(
        "".join(c if core else c.lower() for c, core in zip(row, is_core, strict=True)) for row in (row_x, row_z)
    )


def side_by_side(row_x, row_z):
    """The letters that are not in known columns one against the other, gaps where one row has more of them."""
    rows, at = ["", ""], 0
    for core, run_of in groupby(a.isupper() and b.isupper() for a, b in zip(row_x, row_z, strict=True)):
        stop = at + len(list(run_of))
        parts = [row[at:stop] if core else row[at:stop].replace("-", "") for row in (row_x, row_z)]
        width = max(map(len, parts))
        rows = [row + (part.rjust(width, "-") if at == 0 else part.ljust(width, "-")) for row, part in zip(rows, parts)]
        at = stop
    return tuple(rows)


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

ABOUT_NARROW = f"""
what a file often has: of each run of core columns the middle half is kept, and all other letters are written side by
side, as a formatter leaves them. "As they were": the columns of the reference, which nobody has then. Differences are
those to "{SIDE_BY_SIDE}"

semi-global alignments, {PASSES} passes (a round); C chosen by Q of the validation pairs; Q: share of all core pairs
found, mean over {N_NARROW} test pairs; ± is the standard error of the mean, of differences that of the paired ones

homologues first: the homologue scores more than its 10 decoys; costs are learnt from alignments alone


"""
