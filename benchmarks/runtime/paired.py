"""How far a score falls from one model to another on the same sentences, with its standard error."""

from __future__ import annotations

from itertools import chain

import numpy as np

from structsvm.metrics._chunks import chunk_counts
from structsvm.metrics._records import runs
from structsvm.metrics._schemes import scheme_of
from structsvm.tasks.common.selection.search import Held, difference


def fall(gold, before, after):
    """Points of F1 that `after` has less than `before`, and the standard error of that: sentences are drawn."""
    is_of_chunks = scheme_of(chain.from_iterable(chain(gold, before, after))) is not None
    change, error = difference(*(counted(gold, labels, is_of_chunks) for labels in (before, after)))
    return 0.0 - 100.0 * change, 100.0 * error


def counted(gold, predicted, is_of_chunks):
    """The two sums of F1 by sentence: twice the right fields; the true and the found ones."""
    if is_of_chunks:
        true, found, right = np.asarray(chunk_counts(gold, predicted), dtype=np.float64)
    else:
        sets = [[{*runs(labels)} for labels in y] for y in (gold, predicted)]
        true, found = (np.array([len(own) for own in part], dtype=np.float64) for part in sets)
        right = np.array([len(a & b) for a, b in zip(*sets, strict=True)], dtype=np.float64)
    return Held("F1", 2.0 * right, true + found)


def fewer_right(before, after, lengths):
    """Tokens right, in percent, that `after` has less than `before`, and the standard error of that.

    All are numbers by sentence: of tokens that are right, and of all.
    """
    sizes = np.array(lengths, dtype=np.float64)
    change, error = difference(*(Held("accuracy", np.array(own, dtype=np.float64), sizes) for own in (before, after)))
    return 0.0 - 100.0 * change, 100.0 * error


def right_of(gold, labels):
    """By sentence, how many tokens are right."""
    return [sum(a == b for a, b in zip(*pair, strict=True)) for pair in zip(gold, labels, strict=True)]


def in_words(pair):
    """A fall and its error, as a table has them."""
    return f"{pair[0]:.2f} ± {pair[1]:.2f}"
