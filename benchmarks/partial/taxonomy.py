"""Documents of which only an inner node is known: what they are worth, by way of learning and by start."""

from __future__ import annotations

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from structsvm import LaRank, LatentSVM
from structsvm.tasks import TaxonomyClassifier
from taxonomy.data import splits

NAMES, SEED = ("CLINC150", "ImCLEF07A"), 0
SHARES, MOST, QUICK = (0.5, 0.9), 5000, 1500
WAYS = {
    "all leaves known": {},
    "the others dropped": {},
    "completed in rounds (the default)": {},
    "started easiest first": {"start": "easiest"},
    "started at random": {"start": "random"},
    "started softly": {"start": "soft"},
    "likelihood of what is known": {"loss": "log"},
}
COLUMNS = {"way": ("way", "")} | {
    key: (f"{100 * (1 - share):.0f} % at leaves: {what}", form)
    for share in SHARES
    for key, what, form in (
        (f"accuracy {share}", "accuracy %", ".1f"),
        (f"above {share}", "% right at the node above", ".1f"),
        (f"times {share}", "trainings", ".1f"),
    )
}


def run(options):
    for name in NAMES:
        train, test = splits(name)
        rng = np.random.default_rng(SEED)
        train = train.take(rng.permutation(len(train.y))[: QUICK if options.quick else MOST])
        yield compared(name, train, test, rng)


def compared(name, train, test, rng):
    made = Table(
        f"Accuracy on {name}: {len(train.y)} documents, some of them at the parent of their leaf alone",
        COLUMNS,
        notes=notes(
            """
            documents are put at the parents at random (one draw), but for one of each leaf; C is chosen by those at
            leaves, and the other starts have that of the default; test documents are the published ones

            trainings: CPU time with the choice of C, in units of that of "all leaves known"; of the other starts
            without the choice
            """
        ),
    )
    X, X_test = train.features(test)
    taxonomy = train.taxonomy
    above = {leaf: (taxonomy.path(leaf)[:-1] or [taxonomy.root])[-1] for leaf in taxonomy.leaves}
    cells = {way: {"way": way} for way in WAYS}
    for share in SHARES:
        hidden = rng.random(len(train.y)) < share
        hidden[np.unique(train.y, return_index=True)[1]] = False
        known = np.array([above[leaf] if h else leaf for leaf, h in zip(train.y, hidden, strict=True)], dtype=object)
        C = whole = None
        for way, settings in WAYS.items():
            rows = ~hidden if way == "the others dropped" else np.ones(len(hidden), dtype=bool)
            labels = train.y if way in ("all leaves known", "the others dropped") else known
            params = {"random_state": SEED, "loss": settings.get("loss", "tree")}
            if "start" in settings:
                solver = LatentSVM(LaRank(C=C, random_state=SEED), start=settings["start"])
                params = {"C": None, "solver": solver}
            with Clock() as clock:
                model = TaxonomyClassifier(taxonomy, leaf_only=True, **params).fit(X[rows], labels[rows])
            whole = whole or clock.cpu
            C = model.C_
            predicted = model.predict(X_test)
            cells[way] |= {
                f"accuracy {share}": 100.0 * np.mean(predicted == test.y),
                f"above {share}": 100.0
                * np.mean([above[a] == above[b] for a, b in zip(predicted, test.y, strict=True)]),
                f"times {share}": clock.cpu / whole,
            }
    made.rows.extend(cells.values())
    return made
