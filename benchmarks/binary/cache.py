"""Training time against the size of the kernel cache: figures 4.4 and 4.9 of the thesis."""

from __future__ import annotations

from sklearn.svm import SVC

from binary.data import measured, mnist, trial
from common.report import Table, notes
from structsvm.tasks import HullerClassifier, LaSVMClassifier

SIZES = (1, 4, 16, 64, 256)
COLUMNS = {
    "size": ("cache, MB", ".0f"),
    "svc": ("SVC, CPU s", ".2f"),
    "lasvm": ("LaSVM x1, CPU s", ".2f"),
    "huller": ("Huller x1, CPU s", ".2f"),
    "svc_relative": ("SVC, relative", ".2f"),
    "lasvm_relative": ("LaSVM, relative", ".2f"),
    "hit_rate": ("LaSVM rows found, %", ".1f"),
}


def run(options):
    task, rows = trial(mnist(8)) if options.quick else mnist(8), []
    for size in SIZES:
        _, svc = measured(SVC(cache_size=size, **task.params), task)
        _, ours = measured(LaSVMClassifier(cache_size=size, random_state=0, **task.params), task)
        huller = HullerClassifier(gamma=task.params["gamma"], max_iter=1, cache_size=size, random_state=0)
        row = {"size": size, "svc": svc["cpu"], "lasvm": ours["cpu"], "hit_rate": ours["hit_rate"]}
        rows.append(row | {"huller": measured(huller, task)[1]["cpu"]})
    for row in rows:
        row["svc_relative"], row["lasvm_relative"] = row["svc"] / rows[-1]["svc"], row["lasvm"] / rows[-1]["svc"]
    yield Table(
        "Time against cache size (thesis, figures 4.4 and 4.9)",
        COLUMNS,
        rows,
        notes(f"""mnist 8 against the rest, {len(task.y)} training examples. Relative to SVC with the largest cache. The
        models of LaSVM and of the Huller are the same whatever the cache."""),
    )
