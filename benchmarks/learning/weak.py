"""Votes of simulated sources: their labels by majority and by a model of their errors, and what is learnt from them."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from learning.data import tasks
from structsvm.weak import VoteModel, majority

SEEDS = 5
SOURCES = {
    "alike": (0.7, 0.7, 0.7, 0.7, 0.7),
    "of different quality": (0.95, 0.6, 0.6, 0.5, 0.5),
    "one good, with gaps": (0.95, 0.4, 0.4, 0.4),
}
ABSTAINS = 0.3
COLUMNS = {
    "task": ("task", ""),
    "sources": ("sources", ""),
    "majority": ("labels right %, majority", ".2f"),
    "rows": ("without a chain", ".2f"),
    "model": ("by the model", ".2f"),
    "hard": ("learnt from the majority", ".2f"),
    "soft": ("learnt from the model", ".2f"),
    "full": ("learnt from true labels", ".2f"),
}


def run(options):
    text = f"""
        a source gives the right label with its probability, else any other one, and abstains from
        {100 * ABSTAINS:.0f} % of the words; means of {SEEDS} seeds
        """
    made = Table("Labels of several sources, and what is learnt from them", COLUMNS, notes=notes(text))
    yield made
    n_seeds = 1 if options.quick else SEEDS
    for task in tasks(options, {"treebank tags, accuracy", "addresses, accuracy of words"}):
        for name, qualities in SOURCES.items():
            found = [scores(task, qualities, seed) for seed in range(n_seeds)]
            means = dict(zip(list(COLUMNS)[2:], np.mean(found, axis=0).tolist(), strict=True))
            made.rows.append({"task": task.name, "sources": name} | means)
            yield made


def scores(task, qualities, seed):
    rng = np.random.default_rng(seed)
    labels = sorted({label for y in task.y for label in y})
    votes = [[[vote(rng, label, labels, q) for label in y] for y in task.y] for q in qualities]
    lengths = [len(y) for y in task.y]
    of_most = [[label or labels[0] for label in one] for one in majority(votes, lengths=lengths)]
    model = VoteModel().fit(votes, lengths=lengths)
    alone = VoteModel(chain=False).fit(votes, lengths=lengths)
    found = [of_most, alone.predict(votes, lengths=lengths), model.predict(votes, lengths=lengths)]
    known = [of_most, model.candidates(votes, lengths=lengths, least=0.05), task.y]
    learnt = [task.estimator(seed).fit(task.X, y).predict(task.X_test) for y in known]
    return [right(task.y, one) for one in found] + [task.score(task.y_test, [*one]) for one in learnt]


def right(true, found):
    return 100.0 * float(np.mean([a == b for y, p in zip(true, found, strict=True) for a, b in zip(y, p, strict=True)]))


def vote(rng, label, labels, quality):
    """A source's vote on a word; None: it abstains."""
    if rng.random() < ABSTAINS:
        return None
    if rng.random() < quality:
        return label
    others = [other for other in labels if other != label]
    return others[rng.integers(len(others))]
