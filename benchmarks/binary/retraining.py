"""Active learning by single steps of LaSVM beside retraining: figure 4.16 of the thesis."""

from __future__ import annotations

import time

import numpy as np
from sklearn.svm import SVC

from binary.data import error, usps
from common.report import Table, notes
from structsvm.tasks import LaSVMClassifier, LaSVMSteps

SHOWN, SEEDS, START, POOL, DRAWN = (25, 50, 100, 200, 300), 3, 10, 2000, 50
LEARNERS = {
    "LaSVM, active 50": (True, DRAWN),
    "LaSVM, active all": (True, POOL),
    "retrained, active 50": (False, DRAWN),
    "retrained, active all": (False, POOL),
    "retrained, random": (False, 1),
}
COLUMNS = {
    "learner": ("selection", ""),
    "labels": ("labels", ".0f"),
    "error": ("error %", ".2f"),
    "spread": ("±", ".2f"),
    "cpu": ("CPU s", ".2f"),
}


def run(options):
    rows, task, seeds = [], usps(), range(1 if options.quick else SEEDS)
    for name, how in LEARNERS.items():
        errors, cpus = np.array([learn(task, *how, seed, SHOWN[: 3 if options.quick else None]) for seed in seeds]).T
        for labels, found, cpu in zip(SHOWN, errors, cpus, strict=False):
            row = {"error": found.mean(), "spread": found.std(), "cpu": cpu.mean()}
            rows.append({"learner": name, "labels": labels} | row)
    yield Table("Active learning: LaSVM's steps beside retraining (thesis, figure 4.16)", COLUMNS, rows, ABOUT)


def learn(task, by_steps, n_drawn, seed, shown):
    """Test error in %, and CPU seconds so far, at so many labels."""
    rng = np.random.default_rng(seed)
    pool = rng.permutation(len(task.y))[:POOL]
    X, y, found, cpu = task.X[pool], task.y[pool], [], 0.0
    labelled = [*np.flatnonzero(y)[:2], *np.flatnonzero(~y)[: START - 2]]
    steps = LaSVMSteps(finishing=False)
    model = LaSVMClassifier(steps=steps, random_state=seed, **task.params) if by_steps else SVC(**task.params)
    while len(labelled) <= shown[-1]:
        begin = time.process_time()
        if not by_steps:
            model.fit(X[labelled], y[labelled])
        elif len(labelled) == START:
            model.partial_fit(X[labelled], y[labelled], classes=[False, True])
        else:
            model.partial_fit(X[labelled[-1:]], y[labelled[-1:]])
        left = np.setdiff1d(np.arange(POOL), labelled)
        left = rng.choice(left, min(n_drawn, len(left)), replace=False)
        best = left[np.argmin(np.abs(model.decision_function(X[left])))]
        cpu += time.process_time() - begin
        if len(labelled) in shown:
            found.append((error(model.decision_function(task.X_test), task), cpu))
        labelled.append(best)
    return found


ABOUT = notes(f"""USPS, zero against the rest, C and gamma of `binary/data.py`. Means over {SEEDS} draws of {POOL}
training examples, {START} of which have labels at first, two of them positive. The example nearest to the boundary of
{DRAWN} drawn, or of all, gets its label. LaSVM makes a Process and a Reprocess with it (`partial_fit`), and has no
finishing step; the others are SVC, trained anew from nothing (in the thesis from the last solution). CPU seconds: of
all steps so far.

The finding of the thesis: all active learners have the same error, below that of random selection, but for 50 drawn at
very few labels; steps are much cheaper than retraining, and drawing than looking at all.""")
