"""LaRank beside LIBSVM (and ThunderSVM), each in a process of its own; and time against the number of examples."""

from __future__ import annotations

import importlib.util
import json
import statistics

import numpy as np

from common.measure import run_module
from common.report import Table, notes, verdict
from multiclass.data import ABOUT, CACHE, SETTINGS, load

ONCE = 30.0  # CPU seconds from which on one run is enough
MOST_ERROR = {"LETTER": 2.80, "USPS": 4.25, "MNIST": 1.45}  # LaRank x1: the paper's, and the for MNIST
MOST_OF_SVC = 1.0 / 3.0
MOST_OF_FLOOR = {"MNIST": 4.0}
MOST_MEMORY = 1.5

COLUMNS = {
    "program": ("program", ""),
    "error": ("error %", ".2f"),
    "fit": ("fit CPU s", ".3f"),
    "of_svc": ("/ SVC", ".2f"),
    "predict": ("predict CPU s", ".3f"),
    "patterns": ("patterns", ".0f"),
    "kernels": ("kernels (M)", ".1f"),
    "floor": ("floor s", ".3f"),
    "of_floor": ("fit / floor", ".2f"),
    "memory": ("memory MB", ".0f"),
    "data_size": ("data MB", ".0f"),
    "of_bound": ("(data + memory) / (data + cache)", ".2f"),
}
NOTES = f"""
{ABOUT}

medians of some runs with different seeds, each in a process of its own; fit: with checks of the input and, of LaRank,
the certificate; floor: numpy's float32 matrix products for as many kernel values as LaRank computed, the certificate's
included; memory: by how much the largest resident set grew in fit

SVC: scikit-learn's, LIBSVM, one against one; LaRank x1: LaRankClassifier(max_iter=1); 100: with schedule=(1, 100),
twice the Optimize steps; LaRank: LaRankClassifier(); ThunderSVM: on the CPU, one thread; left out on MNIST, and on
20news, where it did not end within ten minutes
"""
SCALING = {
    "n": ("n", ".0f"),
    "larank": ("LaRank x1, CPU s", ".3f"),
    "kernels": ("kernels (M)", ".1f"),
    "larank_exponent": ("exponent", ".2f"),
    "larank_error": ("error %", ".2f"),
    "svc": ("SVC, CPU s", ".3f"),
    "svc_exponent": ("exponent", ".2f"),
    "svc_error": ("error %", ".2f"),
}


def programs(name):
    found = ["SVC", "LaRank x1", "LaRank x1, 100", "LaRank"]
    return found + ["ThunderSVM"] * (importlib.util.find_spec("thundersvm") is not None and name in ("LETTER", "USPS"))


def measured(program, name, options, n=None):
    """The medians of some runs."""
    runs = []
    while len(runs) < options.repeat:
        task = {"program": program, "name": name, "n": n, "seed": len(runs), "quick": options.quick}
        runs.append(run_module("multiclass.peer", json.dumps(task)))
        if runs[-1]["fit"] > ONCE:
            break
    return {key: None if runs[0][key] is None else statistics.median(r[key] for r in runs) for key in runs[0]}


def run(options):
    """Yield one table per set, and one of times against the number of examples."""
    for name in SETTINGS:
        rows = []
        for program in programs(name):
            row = {"program": program} | measured(program, name, options)
            row["of_svc"] = row["fit"] / (rows or [row])[0]["fit"]
            if row.get("floor"):
                row["of_floor"] = row["fit"] / row["floor"]
            if row["kernels"]:
                row["of_bound"] = (row["data_size"] + row["memory"]) / (row["data_size"] + CACHE)
            rows.append(row)
        table = Table(f"LaRank beside other kernel machines: {name}", COLUMNS, rows, notes(NOTES))
        if importlib.util.find_spec("thundersvm") is None:
            table.notes.append("ThunderSVM was not installed.")
        table.notes += [] if options.quick else verdicts(name, rows)
        yield table
    yield scaling(options)


def verdicts(name, rows):
    """Verdicts on the targets of LaRank x1, with the default schedule and with more Optimize steps."""
    return [note for row in rows if row["program"].startswith("LaRank x1") for note in verdicts_of(name, row)]


def verdicts_of(name, row):
    targets = [
        ("error", row["error"], MOST_ERROR.get(name), "%"),
        ("time", row["of_svc"], MOST_OF_SVC, "of SVC's"),
        ("time", row.get("of_floor"), MOST_OF_FLOOR.get(name), "times the floor"),
        ("memory", row["of_bound"], MOST_MEMORY, "times data and cache"),
    ]
    return [
        verdict(f"{row['program']}, {what} at most {most:.3g} {unit}", f"{value:.3g}", value <= most + 1e-9)
        for what, value, most, unit in targets
        if most is not None
    ]


def scaling(options):
    n, rows = len(load("MNIST", options.quick).y), []
    for share in (16, 8, 4, 2, 1):
        ours = measured("LaRank x1", "MNIST", options, n // share)
        svc = measured("SVC", "MNIST", options, n // share)
        row = {"n": n // share, "larank": ours["fit"], "kernels": ours["kernels"], "larank_error": ours["error"]}
        rows.append(row | {"svc": svc["fit"], "svc_error": svc["error"]})
        if len(rows) > 1:
            for key in ("larank", "svc"):
                rows[-1][f"{key}_exponent"] = float(np.log2(rows[-1][key] / rows[-2][key]))
    about = "MNIST as above; the exponent e of time ~ n^e, from the row before to this one"
    return Table("Time against the number of examples", SCALING, rows, notes(about))
