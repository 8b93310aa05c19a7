"""Votes of sources: their labels by majority and by a model of their errors, and what is learnt from them."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from learning.data import accuracy, tasks
from learning.word_lists import votes_on
from structsvm.weak import VoteModel, majority

SEEDS, N_SENTENCES = 3, 500
SOURCES = {
    "alike": (0.7, 0.7, 0.7, 0.7, 0.7),
    "of different quality": (0.95, 0.6, 0.6, 0.5, 0.5),
    "one good, with gaps": (0.95, 0.4, 0.4, 0.4),
}
ABSTAINS = 0.3
ENTITIES = "Spanish entities, F1"
COLUMNS = {
    "task": ("task", ""),
    "sources": ("sources", ""),
    "majority": ("labels, majority", ".2f"),
    "rows": ("labels, model without a chain", ".2f"),
    "model": ("labels, model", ".2f"),
    "steps": ("steps", ".0f"),
    "learnt_majority": ("learnt from the majority", ".2f"),
    "learnt_labels": ("from the model's labels", ".2f"),
    "learnt_candidates": ("from its candidates", ".2f"),
    "learnt_true": ("from true labels", ".2f"),
}


def run(options):
    text = f"""
        word lists: four lists with half of the names of their kind, three patterns, two taggers of 400 sentences each,
        200 of them in common; all others give the right label with their probability, else any other one, and abstain
        from {100 * ABSTAINS:.0f} % of the words; scores of the labels of the pool, and, learnt, of the test set, which
        a labeler reaches that chooses C on the labels that it is given; means of {SEEDS} seeds; {N_SENTENCES}
        sentences, of entities twice as many
        """
    made = Table("Labels of several sources, and what is learnt from them", COLUMNS, notes=notes(text))
    yield made
    n_seeds = 1 if options.quick else SEEDS
    for task, name, votes_of, outside in worlds(options):
        found = [scores(task, *votes_of(seed), outside, seed) for seed in range(n_seeds)]
        means = dict(zip(list(COLUMNS)[2:], np.mean(found, axis=0).tolist(), strict=True))
        made.rows.append({"task": task.name, "sources": name} | means)
        yield made


def worlds(options):
    """Yield ``(task, name of the sources, votes and lengths by seed, outside)``."""
    for task in tasks(options, {ENTITIES}, 2 * N_SENTENCES):
        yield task, "word lists", lambda seed, task=task: votes_on(task, seed), "O"
    for task in tasks(options, {"treebank tags, accuracy", "addresses, accuracy of words"}, N_SENTENCES):
        for name, qualities in SOURCES.items():
            yield task, name, lambda seed, task=task, q=qualities: simulated(task, q, seed), None


def scores(task, votes, lengths, outside, seed):
    labels = sorted({label for y in task.y for label in y})
    of_most = majority(votes, lengths=lengths, outside=outside)
    of_most = [[label or labels[0] for label in y] for y in of_most]
    alone, model = (
        VoteModel(labels, outside=outside, chain=chain).fit(votes, lengths=lengths) for chain in (False, True)
    )
    found = [of_most, alone.predict(votes, lengths=lengths), model.predict(votes, lengths=lengths)]
    known = [of_most, found[-1], model.candidates(votes, lengths=lengths), task.y]
    learnt = [task.score(task.y_test, [*taught(task, y, seed).predict(task.X_test)]) for y in known]
    judge = accuracy if outside is None else task.score
    return [judge(task.y, one) for one in found] + [len(model.objectives_)] + learnt


def taught(task, y, seed):
    """Labels that are wrong in part want another C: each set of them chooses its own."""
    return task.estimator(seed).set_params(C="auto").fit(task.X, y)


def simulated(task, qualities, seed):
    rng = np.random.default_rng(seed)
    labels = sorted({label for y in task.y for label in y})
    return [[[vote(rng, label, labels, q) for label in y] for y in task.y] for q in qualities], [len(y) for y in task.y]


def vote(rng, label, labels, quality):
    """A source's vote on a word; None: it abstains."""
    if rng.random() < ABSTAINS:
        return None
    if rng.random() < quality:
        return label
    others = [other for other in labels if other != label]
    return others[rng.integers(len(others))]
