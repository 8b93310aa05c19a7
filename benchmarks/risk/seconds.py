"""CPU seconds of a calibration on 10,000 sentences, beside those that the tagger takes for their probabilities."""

from __future__ import annotations

import time

from common.report import Table, notes
from structsvm.datasets import make_sequences
from structsvm.risk import ConformalSets, ConformalSpans, LossController, RiskController
from structsvm.tasks import SequenceLabeler

SEED, TRAINED, HELD_OUT, QUICK, TARGET = 0, 200, 10_000, 200, 1.0
PROMISES = {
    "RiskController": RiskController(None, alpha=0.5, delta=0.1),
    "ConformalSets": ConformalSets(None, alpha=0.1),
    "ConformalSpans": ConformalSpans(None, alpha=0.5),
    "LossController": LossController(None, alpha=0.2),
    "LossController(delta=0.1)": LossController(None, alpha=0.2, delta=0.1),
    'LossController(loss="wrong")': LossController(None, alpha=0.2, loss="wrong"),
    'LossController(loss="f1", delta=0.1)': LossController(None, alpha=0.5, loss="f1", delta=0.1),
    "LossController(by_label=True)": LossController(None, alpha=0.2, by_label=True),
}
COLUMNS = {
    "promise": ("promise", ""),
    "seconds": ("calibrate, CPU s", ".2f"),
    "ratio": ("times the probabilities alone", ".2f"),
}
ABOUT = f"""
{HELD_OUT:,} simulated sentences of 24 words on average, 11 labels, built-in templates; the least of --repeat runs, one
thread. The probabilities alone: `predict_marginals` of the same sentences, which reads and encodes their words.

target: at most {TARGET:g} s
"""


def run(options):
    made = Table("Seconds", COLUMNS, notes=notes(ABOUT))
    n = QUICK if options.quick else HELD_OUT
    X, y = make_sequences(TRAINED + n, random_state=SEED)
    tagger = SequenceLabeler(loss="log", C=0.1, random_state=SEED).fit(X[:TRAINED], y[:TRAINED])
    X, y = X[TRAINED:], y[TRAINED:]
    alone = least(options.repeat, lambda: tagger.predict_marginals(X))
    made.rows.append({"promise": "probabilities alone", "seconds": alone, "ratio": 1.0})
    for name, promise in PROMISES.items():
        seconds = least(options.repeat, lambda promise=promise: promise.set_params(estimator=tagger).calibrate(X, y))
        made.rows.append({"promise": name, "seconds": seconds, "ratio": seconds / alone})
        yield made


def least(repeat, what):
    """The least CPU seconds of some runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        what()
        times.append(time.process_time() - start)
    return min(times)
