"""Labels of sequences as users give them, numbered for oracles, and as arrays and JSON hold them."""

from __future__ import annotations

from numbers import Real

import numpy as np

from structsvm.features.columns import Columns


def encode_labels(y, tokens, labels=None):
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


def _flatten(y, tokens):
    """All labels of y in one list, and the number in each sequence (int64)."""
    if y is None:
        raise ValueError("SequenceLabeler requires y to be passed, but the target y is None")
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


def is_hashable(label):
    """Whether a label can be a key."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def sort_labels(labels):
    """The labels in their own order, or, where they have none, by type and text."""
    for label in labels:
        if label != label:
            raise ValueError("y holds NaN as a label")
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))


def label_array(labels):
    """Labels as an array: of strings or ints where all are, of objects otherwise."""
    if all(type(label) is str for label in labels) or all(type(label) is int for label in labels):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def label_costs(class_weight, labels, numbers):
    """Cost of a wrong label, by the true one: array (n_labels,), or None for 1."""
    if class_weight is None:
        return None
    if class_weight == "balanced":
        counts = np.bincount(numbers, minlength=len(labels))
        return len(numbers) / (len(labels) * np.maximum(counts, 1.0))
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not one of the labels {labels}")
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0.0 < float(weight) < np.inf:
            raise ValueError(f"class_weight must be positive and finite, got {weight!r} for the label {label!r}")
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


def label_to_json(label):
    """A label for a header; TypeError if JSON cannot hold it."""
    if label is None or isinstance(label, (str, bool, int, float)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise TypeError(
        f"a model file cannot hold the label {label!r}: labels must be strings, numbers, None, or tuples of them"
    )


def label_from_json(value):
    """The inverse of `label_to_json`."""
    if isinstance(value, dict) and isinstance(value["tuple"], list):
        return tuple(label_from_json(part) for part in value["tuple"])
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"a label {value!r:.80}")
