"""Sources of labels for Spanish entities as people write them: word lists, patterns, and two taggers of little text.

Lists and taggers come from sentences that are in no pool and no test set. A list has half of the names of its kind,
drawn, and knows nothing of their context; the taggers share half of their sentences, and so some of their errors.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from learning.data import labeler
from structsvm.datasets import fetch_conll2002
from structsvm.metrics import Scheme
from structsvm.weak import spans_as_votes

TAGGED = 400  # sentences per tagger


def votes_on(task, seed):
    """Return ``(votes, lengths)`` of all sources on the task's sentences; None where they find nothing."""
    rng = np.random.default_rng(seed)
    X, y = others(task, rng)
    words = [[token[0] for token in x] for x in task.X]
    found = [[matches(row, names, kind) for row in words] for kind, names in sorted(lists(X, y, rng).items())]
    found += [[pattern(row) for row in words] for pattern in (two_capitals, after_en, acronyms)]
    found += [tagged(task.X, X[first : first + TAGGED], y[first : first + TAGGED], seed) for first in (0, TAGGED // 2)]
    lengths = [len(row) for row in words]
    return [spans_as_votes(one, lengths) for one in found], lengths


def others(task, rng):
    """The training sentences that are none of the pool, in random order."""
    data, pool = fetch_conll2002(), {tuple(x) for x in task.X}
    order = [i for i in rng.permutation(len(data.y_train)).tolist() if tuple(data.X_train[i]) not in pool]
    return [data.X_train[i] for i in order], [data.y_train[i] for i in order]


def spans_of(labels):
    return Scheme("bio").chunks(labels)


def lists(X, y, rng):
    """Per kind half of the names in half of the sentences, as tuples of words."""
    names = {}
    for x, labels in zip(X[: len(X) // 2], y, strict=False):
        for start, stop, kind in spans_of(labels):
            names.setdefault(kind, set()).add(tuple(token[0] for token in x[start:stop]))
    return {kind: {name for name in sorted(own) if rng.random() < 0.5} for kind, own in sorted(names.items())}


def matches(words, names, kind):
    """Spans of a list's names from left to right, the longest first."""
    found, t, longest = [], 0, max(map(len, names))
    while t < len(words):
        n = next((n for n in range(min(longest, len(words) - t), 0, -1) if tuple(words[t : t + n]) in names), 0)
        if n:
            found.append((t, t + n, kind))
        t += max(n, 1)
    return found


def capitals(words):
    """Runs of words with a capital: pairs (start, stop)."""
    groups = [list(own) for is_run, own in groupby(range(len(words)), lambda t: words[t][:1].isupper()) if is_run]
    return [(own[0], own[-1] + 1) for own in groups]


def two_capitals(words):
    """Two or three words with a capital, not at the beginning, are a person."""
    return [(start, stop, "PER") for start, stop in capitals(words) if start and stop - start in (2, 3)]


def after_en(words):
    """Capitals after "en" or "desde" are a place."""
    return [(start, stop, "LOC") for start, stop in capitals(words) if start and words[start - 1] in ("en", "desde")]


def acronyms(words):
    return [
        (t, t + 1, "ORG") for t, word in enumerate(words) if word.isupper() and word.isalpha() and 2 <= len(word) <= 5
    ]


def tagged(X, X_own, y_own, seed):
    """The spans that a labeler finds which has learnt from few sentences."""
    return [spans_of(labels) for labels in labeler(seed).fit(X_own, y_own).predict(X)]
