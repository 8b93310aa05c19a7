"""The labels of streams of batches: settled by the first call of `partial_fit`."""

from __future__ import annotations

import numpy as np


def settled_labels(y, classes, labels=None):
    """All labels of a stream, ascending.

    Parameters
    ----------
    y : ndarray
        Labels of the batch.
    classes : array-like or None
        What `partial_fit` was given.
    labels : ndarray, optional
        Those that an earlier call has settled.

    Raises
    ------
    ValueError
        `classes` are others than `labels`, or there is one class only.
    """
    if labels is None:
        labels = np.unique(y if classes is None else classes)
    elif classes is not None and not np.array_equal(np.unique(classes), labels):
        raise ValueError(f"classes={classes!r} is not the same as on the last call of partial_fit: {labels}")
    if len(labels) < 2:
        raise ValueError(
            f"2 classes or more are needed, and y has only one class: {labels}; partial_fit takes all as classes="
        )
    return labels


def label_numbers(y, labels):
    """Numbers of labels, int32; ValueError for one that is not settled."""
    unseen = np.setdiff1d(y, labels)
    if len(unseen):
        raise ValueError(
            f"y has the label {unseen.tolist()[0]!r}, none of the classes that the first call has settled: {labels}"
        )
    return np.searchsorted(labels, y).astype(np.int32)


def check_stream_weight(class_weight):
    """ValueError for class weights that need the counts of all labels."""
    if isinstance(class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs the counts of all labels, which a stream does not tell; "
            "give partial_fit a dict"
        )
