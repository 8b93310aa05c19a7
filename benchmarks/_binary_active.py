"""Which example comes next: figures 4.11 to 4.15 of the thesis."""

from __future__ import annotations

from _binary_data import QUICK, adult, first, measured, mnist
from _report import Table, notes
from sklearn.svm import SVC

from structsvm.tasks import LaSVMClassifier

VISITS = (250, 500, 1000, 2000, 4000)
SELECTIONS = ("random", "gradient", "active", "autoactive")
COLUMNS = {
    "data": ("data", ""),
    "n": ("n", ".0f"),
    "machine": ("selection", ""),
    "visits": ("examples visited", ".0f"),
    "error": ("error %", ".2f"),
    "n_support": ("SV", ".0f"),
    "share": ("of SVC's SV, %", ".0f"),
    "kernel": ("kernel values / 1e6", ".2f"),
    "cpu": ("CPU s", ".2f"),
}


def run(options):
    for make in (adult, lambda: mnist(8), lambda: mnist(8, noise=True)):
        task = make()
        task = first(task, QUICK) if options.quick else task
        _, svc = measured(SVC(cache_size=200, **task.params), task)
        rows = [svc | {"machine": "SVC", "share": 100.0}]
        for selection in SELECTIONS:
            for visits in VISITS:
                if visits > len(task.y) // 2:
                    continue
                _, row = measured(
                    LaSVMClassifier(selection=selection, max_visits=visits, random_state=0, **task.params), task
                )
                share = 100.0 * row["n_support"] / svc["n_support"]
                rows.append(row | {"machine": selection, "visits": visits, "share": share})
        yield Table(f"Active selection: {task.name} (thesis, figures 4.11 to 4.15)", COLUMNS, rows, ABOUT)


ABOUT = notes("""One pass that ends after so many examples, and the finishing step; one seed. "gradient", "active": the
best of 50 drawn; "autoactive": of up to 100, until five are within 1 + delta / 2. The labels of the training part are
noisy where it says so, those of the test part never.""")
