"""Sequences some of whose labels are not known: the likelihood of what is known, and what else could be done."""

from __future__ import annotations

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from structsvm.datasets import fetch_conll2000, fetch_conll2002
from structsvm.features.columns import Columns
from structsvm.metrics import chunk_scores
from structsvm.tasks import SequenceLabeler

C, C_OF_MARGIN, SEED = 1.0, 0.1, 0
SHARES = (0.1, 0.3, 0.5, 0.7)
DATA = {"CoNLL-2000 chunks": fetch_conll2000, "CoNLL-2002 Spanish entities": fetch_conll2002}
QUICK = 150
METHODS = (
    "full labels",
    "likelihood of what is known",
    "completed in rounds (LatentSVM)",
    "fewer sentences",
    "unknown as O",
)
COLUMNS = {"known": ("labels known", "")} | {name: (name, ".2f") for name in METHODS}
COSTS = {
    "method": ("method", ""),
    "cpu": ("CPU s", ".1f"),
    "times": ("times full labels", ".2f"),
    "passes": ("passes", "d"),
}
SPANS = "spans"  # a fifth of the sentences whole, of the others every second span alone


def run(options):
    for name, fetch in DATA.items():
        yield from compared(name, fetch(), options)
    yield as_they_come(fetch_conll2000(), options)


def compared(name, data, options):
    n = QUICK if options.quick else len(data.X_train)
    X, y = data.X_train[:n], data.y_train[:n]
    made = Table(
        f"F1 on {name}, trained on {n} sentences some of whose labels are not known",
        COLUMNS,
        notes=notes(
            f"""
            log loss with C = {C} and 16 passes (rounds: a margin with C = {C_OF_MARGIN}), the estimator's values where
            C is not chosen; tokens are hidden at random (one draw)

            "fewer sentences": as many as there are labels, whole

            spans: of a fifth of the sentences all labels are known, of the others those of every second chunk alone.
            Nobody knows then that the other tokens are mostly O: what is unknown is not unknown at random

            target: half of the labels cost at most 0.5 on chunks
            """
        ),
    )
    costs = Table(f"What training takes on {name}", COSTS, notes=notes("with half of the labels; as above"))
    test = Columns.from_sequences(data.X_test), data.y_test
    full = trained(X, y, test, "log")
    for share in (*SHARES, SPANS):
        known = hidden(y, share)
        rng = np.random.default_rng(SEED + 1)
        kept = np.array([None not in labels for labels in known]) if share == SPANS else rng.random(n) >= share
        fewer = [i for i in range(n) if kept[i]]
        runs = {
            "full labels": full,
            "likelihood of what is known": trained(X, known, test, "log"),
            "completed in rounds (LatentSVM)": trained(X, known, test, "hamming"),
            "fewer sentences": trained([X[i] for i in fewer], [y[i] for i in fewer], test, "log"),
            "unknown as O": trained(X, [["O" if k is None else k for k in labels] for labels in known], test, "log"),
        }
        what = "a fifth of the sentences, half of the spans" if share == SPANS else f"{100 * (1 - share):.0f} %"
        made.rows.append({"known": what} | {method: f1 for method, (f1, _, _) in runs.items()})
        if share == 0.5:
            for method, (_, cpu, passes) in runs.items():
                costs.rows.append({"method": method, "cpu": cpu, "times": cpu / full[1], "passes": passes})
        yield made
    yield costs


DEFAULTS = {"known": ("labels known", ""), "f1": ("F1", ".2f"), "made": ("made of", ""), "cpu": ("CPU s", ".1f")}


def as_they_come(data, options):
    """Trained with C and losses chosen."""
    n = QUICK if options.quick else len(data.X_train)
    about = notes(
        """
        SequenceLabeler(probability=False): all known: margin and log loss added; else the log loss

        target: half of the labels cost at most 0.5
        """
    )
    made = Table(f"F1 on CoNLL-2000 chunks by default, {n} sentences", DEFAULTS, notes=about)
    X, y, test = data.X_train[:n], data.y_train[:n], Columns.from_sequences(data.X_test)
    for known, labels in (("all", y), ("half", hidden(y, 0.5))):
        with Clock() as clock:
            model = SequenceLabeler(probability=False, random_state=SEED).fit(Columns.from_sequences(X), labels)
        losses = model.validation_.get("losses", {"log": (model.C_,)})
        f1 = 100.0 * chunk_scores(data.y_test, model.predict(test)).f1
        parts = ", ".join(f"{loss} C {row[0]:g}" for loss, row in losses.items())
        made.rows.append({"known": known, "f1": f1, "made": parts, "cpu": clock.cpu})
    return made


def hidden(y, share, seed=SEED):
    """Labels, None where they are hidden."""
    rng = np.random.default_rng(seed)
    if share != SPANS:
        return [[None if rng.random() < share else label for label in labels] for labels in y]
    found, n_spans = [], 0
    for labels in y:
        if rng.random() < 0.2:
            found.append(labels)
            continue
        known, is_known = [], False
        for label in labels:
            if label[0] == "B":
                n_spans += 1
                is_known = n_spans % 2 == 0
            known.append(label if is_known and label != "O" else None)
        found.append(known)
    return found


def trained(X, y, test, loss):
    """``(F1, CPU seconds, passes)``."""
    model = SequenceLabeler(C if loss == "log" else C_OF_MARGIN, loss=loss, probability=False, random_state=SEED)
    with Clock() as clock:
        model.fit(Columns.from_sequences(X), y)
    return 100.0 * chunk_scores(test[1], model.predict(test[0])).f1, clock.cpu, model.n_iter_
