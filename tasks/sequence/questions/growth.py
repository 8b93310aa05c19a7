"""Room for new features and labels in a model of label sequences; what it has learnt stays as it is."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from structsvm.metrics._counts import is_unknown
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks.common.labels import is_hashable, sort_labels
from structsvm.tasks.sequence.labels import COLLECTIONS
from structsvm.tasks.sequence.parameters import make_oracle

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from structsvm.arrays import Floats, Integers
    from structsvm.oracles.chain import LabelChain
    from structsvm.tasks.sequence.model import SequenceModel
    from structsvm.tasks.sequence.parameters import LabelerParams

# Values that a model computes of its labels once, and keeps.
OF_LABELS = ("parts_of_tags", "tags_of_kinds", "shown", "shown_array")


def labels_in(Y: Sequence[object], unknown: object) -> set[Hashable]:
    """The labels that labellings name, also in sets; the third parts of spans."""
    found: set[Hashable] = set()
    for label in chain.from_iterable(y for y in Y if hasattr(y, "__iter__") and not isinstance(y, (str, bytes))):
        for one in label if isinstance(label, COLLECTIONS) else (label,):
            if one is not None and is_hashable(one) and not is_unknown(one, unknown):
                found.add(one.item() if isinstance(one, np.generic) else one)
    return found


def grown(params: LabelerParams, model: SequenceModel, X: Sequence[object], new: set[Hashable]) -> SequenceModel | None:
    """A copy of the model with the features of X, which has no empty sequence, and new labels; None: it cannot have
    these.

    Features are added where they have names and each counts: ``min_count=1``, no hashing, no numbers, no segments;
    elsewhere unknown ones are ignored, as `partial_fit` does.
    """
    more = model.copy()
    if new and (model.segments is not None or not isinstance(model.oracle, ViterbiOracle)):
        return None
    if model.segments is None and model.units is None and model.encoder.can_grow and model.report is None:
        more.encoder = model.encoder.grown(X)
    if more.encoder is model.encoder and not new:
        return more
    more.labels = sort_labels([*model.labels, *new]) if new else model.labels
    more.oracle = make_oracle(params, more.encoder, more.labels, np.zeros(0, dtype=np.int32), model, units=model.units)
    places = np.array([more.labels.index(label) for label in model.labels], dtype=np.intp)
    more.encoder = more.encoder.relabelled(places) if new else more.encoder
    more.weights = laid_out(model.weights, model.oracle, more.oracle, places)
    more.columns = model.columns | {"n_features_in_": more.encoder.n_features}
    more.margin = more.state = None
    more.fingerprint = 0
    for name in OF_LABELS:
        more.__dict__.pop(name, None)
    return more


def laid_out(weights: Floats, old: LabelChain, new: LabelChain, places: Integers) -> Floats:
    """The weights of a larger oracle: those of the smaller one, and 0 where it had none.

    Parameters
    ----------
    places : ndarray of shape (old.n_labels,)
        The ids of the old labels among the new ones.
    """
    table = np.zeros((new.n_rows, new.stride), dtype=weights.dtype)
    rows = np.empty(old.n_rows, dtype=np.intp)
    rows[: old.n_token_features] = np.arange(old.n_token_features)
    first, last = old.n_token_features, old.first_bigram_row
    rows[first:last] = new.n_token_features + _history(old, new, places)
    pairs = np.arange(old.n_bigrams)[:, np.newaxis] * new.n_labels + places
    rows[last:] = new.first_bigram_row + pairs.ravel()
    table[rows[:, np.newaxis], places] = weights.reshape(-1, old.stride)[:, : old.n_labels]
    return table.ravel()


def _history(old: LabelChain, new: LabelChain, places: Integers) -> Integers:
    """Where the rows of histories come: label before, beginning and end, and for order 2 pairs of these."""
    if old.n_labels == new.n_labels:
        return np.arange(old.n_history_rows)
    begins = np.append(places, new.n_labels)  # the beginning comes after all labels
    rows = [places, new.n_labels + np.arange(2)]
    if old.order == 2:
        rows.append((new.n_labels + 2 + begins[:, np.newaxis] * new.n_labels + places).ravel())
    return np.concatenate(rows)
