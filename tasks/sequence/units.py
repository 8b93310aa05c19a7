"""Rows of numbers, without their units: each column divided by its size, and an intercept.

A column counts as much as any other, whatever it is measured in, and a row as much as the label before: the mean
square of its length is 1, as each transition is 1; of attributes each weighs as much as that. Rows that are filled are
centred too; zeros of others stay zeros.
The model learns weights of what `Units.apply` returns; `Units.folded` has those of the columns as they came.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import FILLED
from structsvm.stored_values import Array, checked_arrays

LEAST = float(np.finfo(np.float32).tiny)
ARRAYS = {
    "scale": Array("f4", ("n_features",), within=(LEAST, None)),
    "centre": Array("f4", ("n_features",), needed=False),
}
# Rows with a smaller share of numbers that are not zero are those of attributes (one column per word, say).
ATTRIBUTES = 0.05
# A column whose standard deviation is a smaller share of its mean is constant.
CONSTANT = 1e-6


class Units:
    """What is taken from columns, and what they are divided by.

    Attributes
    ----------
    scale : ndarray of shape (n_features,), float32
    centre : ndarray of shape (n_features,), float32, or None
        None: zeros stay zeros.
    """

    def __init__(self, scale: Any, centre: Any = None) -> None:
        self.scale, self.centre = scale, centre

    @classmethod
    def fit(cls, tokens: Any) -> Self:
        """Those of training data: standard deviations around means; with many zeros, the size of what is not zero."""
        n, d = max(tokens.n_tokens, 1), tokens.n_features
        if tokens.n_entries > FILLED * n * d:
            rows = table(tokens)
            centre = rows.mean(axis=0, dtype=np.float64)
            size = rows.std(axis=0, dtype=np.float64)
            size[size <= CONSTANT * np.abs(centre)] = 0.0
            length = math.sqrt(max(int(np.count_nonzero(size)), 1))
        else:
            centre = None
            values = np.ones(tokens.n_entries) if tokens.values is None else tokens.values.astype(np.float64)
            counts = np.bincount(tokens.indices, minlength=d)
            size = np.sqrt(np.bincount(tokens.indices, weights=values**2, minlength=d) / np.maximum(counts, 1))
            length = 1.0 if tokens.n_entries < ATTRIBUTES * n * d else math.sqrt(tokens.n_entries / n)
        size[size == 0.0] = 1.0
        scale = np.clip(size * length, LEAST, np.finfo(np.float32).max)
        return cls(scale.astype(np.float32), None if centre is None else centre.astype(np.float32))

    @property
    def n_features(self) -> int:
        """Columns, and the intercept."""
        return len(self.scale) + 1

    def apply(self, tokens: Any) -> Any:
        """Tokens without units, with one more feature of value 1; bigrams stay as they are."""
        n, d = tokens.n_tokens, tokens.n_features
        if self.centre is None:
            ends = tokens.indptr[1:]
            values = np.float32(1.0) if tokens.values is None else tokens.values
            values = values / self.scale[tokens.indices]
            return replace(
                tokens,
                indptr=tokens.indptr + np.arange(n + 1),
                indices=np.insert(tokens.indices, ends, d),
                values=np.insert(values, ends, 1.0),
                n_features=d + 1,
            )
        rows = np.ones((n, d + 1), dtype=np.float32)
        np.subtract(table(tokens), self.centre, out=rows[:, :d])
        rows[:, :d] /= self.scale
        return replace(
            tokens,
            indptr=np.arange(0, n * (d + 1) + 1, d + 1, dtype=np.int64),
            indices=np.tile(np.arange(d + 1, dtype=np.int32), n),
            values=rows.ravel(),
            n_features=d + 1,
        )

    def folded(self, weights: Any) -> tuple[Any, Any]:
        """Weights of the columns as they came, array (n_features, n_labels), and the intercepts, (n_labels,)."""
        columns = weights[:-1] / self.scale[:, None].astype(np.float64)
        intercepts = weights[-1] if self.centre is None else weights[-1] - self.centre @ columns
        return columns.astype(np.float32), intercepts.astype(np.float32)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"scale": self.scale} | ({} if self.centre is None else {"centre": self.centre})

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> Self:
        """The inverse of `to_arrays`; ValueError for what it cannot have written."""
        found = checked_arrays(arrays, ARRAYS, n_features=n_features)
        return cls(found["scale"], found.get("centre"))


def table(tokens: Any) -> NDArray[np.float32]:
    """The rows of tokens as an array (n_tokens, n_features)."""
    n, d = tokens.n_tokens, tokens.n_features
    if tokens.n_entries == n * d:
        values = np.ones(n * d, np.float32) if tokens.values is None else tokens.values
        return values.reshape(n, d)
    rows = np.zeros((n, d), dtype=np.float32)
    at = np.repeat(np.arange(n), np.diff(tokens.indptr))
    rows[at, tokens.indices] = 1.0 if tokens.values is None else tokens.values
    return rows
