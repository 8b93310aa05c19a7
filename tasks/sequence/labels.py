"""Labels of sequences as users give them, and their ids for oracles."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm.features.columns import Columns
from structsvm.tasks.common.labels import is_hashable, sort_labels


def encode_labels(y: Any, tokens: Any, labels: Any = None) -> tuple[Any, Any]:
    """Return ``(labels, numbers)``: the distinct labels, sorted where they can be, and int32 numbers.

    Parameters
    ----------
    y : list of label lists, or Columns with one column
        One flat list or array of all labels does too, if it cannot be taken for the other.
    tokens : Tokens
        Whose lengths y must have.
    labels : list, optional
        The labels known already; ValueError for another one.
    """
    if isinstance(y, Columns):
        if y.n_columns != 1:
            raise ValueError(f"y has {y.n_columns} columns, expected the one of the labels: columns.select([j])")
        names = y.vocabularies[0].tolist()
        lengths = np.diff(y.offsets)
        used = [name for name, count in zip(names, np.bincount(y.ids[:, 0], minlength=len(names))) if count]
    else:
        flat, lengths = _flatten(y, tokens)
        try:
            used = list(dict.fromkeys(flat))
        except TypeError:
            bad = next(label for label in flat if not is_hashable(label))
            raise TypeError(f"labels must be hashable (strings, numbers, tuples), got {bad!r:.80}") from None
    if len(lengths) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, y has {len(lengths)}")
    wrong = np.flatnonzero(lengths != tokens.lengths)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"sequence {i} has {tokens.lengths[i]} tokens but {lengths[i]} labels")
    if labels is None:
        labels = sort_labels(used)
    number = {label: k for k, label in enumerate(labels)}
    unknown = [label for label in used if label not in number]
    if unknown:
        raise ValueError(
            f"label {unknown[0]!r} is not one of the model's labels, which the first fit settles "
            f"(partial_fit can name later ones: classes=): {labels}"
        )
    if isinstance(y, Columns):
        table = np.array([number.get(name, -1) for name in names], dtype=np.int32)
        return labels, table[y.ids[:, 0]]
    return labels, np.fromiter(map(number.__getitem__, flat), dtype=np.int32, count=len(flat))


def _flatten(y: Any, tokens: Any) -> tuple[Any, Any]:
    """All labels of y in one list, and the number in each sequence (int64)."""
    if y is None:
        raise ValueError("SequenceLabeler requires y to be passed, but the target y is None")
    if not hasattr(y, "__iter__") or (isinstance(y, np.ndarray) and y.ndim == 0):
        raise TypeError(f"y must hold a list of labels for each sequence, got {y!r:.80}")
    y = list(y)
    nested = [isinstance(labels, (list, tuple, np.ndarray)) for labels in y]
    if y and not any(nested) and len(y) == tokens.n_tokens != len(tokens):
        return [label.item() if isinstance(label, np.generic) else label for label in y], tokens.lengths
    flat, lengths = [], np.empty(len(y), dtype=np.int64)
    for i, labels in enumerate(y):
        if isinstance(labels, np.ndarray) and labels.ndim == 1:
            labels = labels.tolist()
        elif isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__") or not hasattr(labels, "__iter__"):
            raise TypeError(
                f"y must hold a list of labels for each sequence, one label a token; for sequence {i} it "
                f"holds {labels!r:.80}"
            )
        lengths[i] = len(labels)
        flat.extend(labels)
    return flat, lengths
