"""The weights of a model by the names of features and labels, and what they contribute to a decision."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm.parameters import checked_k, did_you_mean, printable
from structsvm.tasks.common.inspection.inputs import refuse

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

    from structsvm.arrays import Floats, MatrixLike

T = TypeVar("T")


@dataclass(frozen=True)
class WeightTable:
    """Weights of features (rows) for labels (columns).

    Attributes
    ----------
    features : sequence of str
    labels : list
    weights : array or sparse matrix of shape (n_features, n_labels)
    transitions : array of shape (n_labels, n_labels), optional
        Of label b (column) after label a (row).
    """

    features: Sequence[str]
    labels: Sequence[Hashable]
    weights: Floats | sparray | spmatrix
    transitions: Floats | None = None

    def column(self, label: Hashable) -> NDArray[np.float64]:
        """The weights of a label; ValueError for one that has none."""
        if label not in self.labels:
            near = did_you_mean(label, self.labels)
            raise ValueError(f"label must be one of those with weights. Got {label!r:.80}{near}")
        column = self.weights[:, [self.labels.index(label)]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column, dtype=np.float64).ravel()

    def top(self, label: Hashable, k: int) -> list[tuple[str, float]]:
        """The k features of the greatest weights for a label, by absolute value; fewer where others are 0."""
        weights = self.column(label)
        order = np.argsort(-np.abs(weights), kind="stable")[: checked_k(k)]
        return [(self.features[j], float(weights[j])) for j in order.tolist() if weights[j] != 0.0]

    def entries(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Feature, label and value of the weights that are not 0, by feature."""
        matrix = self.weights
        if hasattr(matrix, "tocsr"):
            matrix = matrix.tocsr().tocoo()
            rows, columns, values = matrix.row, matrix.col, matrix.data
            rows, columns, values = (part[values != 0.0] for part in (rows, columns, values))
        else:
            rows, columns = np.nonzero(matrix)
            values = matrix[rows, columns]
        return rows.astype(np.intp), columns.astype(np.intp), values.astype(np.float64)

    def to_frame(self) -> pd.DataFrame:
        """The weights that are not 0 as a pandas data frame of feature, label and weight, the heaviest first.

        Raises ImportError without pandas.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install 'structured-svm[tables]'") from None
        rows, columns, values = self.entries()
        order = np.argsort(-np.abs(values), kind="stable")
        features = np.asarray(self.features, dtype=object)[rows[order]]
        labels = np.fromiter(self.labels, dtype=object, count=len(self.labels))[columns[order]]
        return pd.DataFrame({"feature": features, "label": labels, "weight": values[order]})


class Contribution(NamedTuple):
    """The share of a feature in the margin of the winner over its runner-up.

    Attributes
    ----------
    feature : str
    label : str
        Where the feature counts: for a label, after a label.
    value : float
        Positive if the feature favours the winner.
    """

    feature: str
    label: str
    value: float


@dataclass(frozen=True)
class Explanation:
    """Why an output won over its runner-up.

    Attributes
    ----------
    winner, runner_up : object
    margin : float
        The difference of their scores, which is the sum of all contributions.
    contributions : list of Contribution
        Not 0, the greatest by absolute value first.
    """

    winner: Any
    runner_up: Any
    margin: float
    contributions: list[Contribution] = field(repr=False)

    @classmethod
    def of(cls, winner: object, runner_up: object, found: list[Contribution]) -> Explanation:
        """With contributions in any order."""
        found = [part for part in found if part.value != 0.0]
        found.sort(key=lambda part: -abs(part.value))
        return cls(winner, runner_up, float(sum(part.value for part in found)), found)

    @classmethod
    def of_best(
        cls,
        ranked: Iterable[tuple[object, Floats]],
        weights: Floats,
        name: Callable[[int], tuple[str, str]],
        alone: str = "there is one output only, and two are compared",
    ) -> Explanation:
        """From outputs with their joint features, best first; ValueError, saying `alone`, for fewer than two.

        `name` returns the feature and the label of weight k.
        """
        (winner, first), (runner_up, second) = two_best(ranked, alone)
        values = np.asarray(first - second, dtype=np.float64) * weights
        found = [Contribution(*name(k), float(values[k])) for k in np.flatnonzero(values).tolist()]
        return cls.of(winner, runner_up, found)

    @classmethod
    def of_row(
        cls, x: MatrixLike, table: WeightTable, intercepts: ArrayLike, labels: Sequence[Hashable]
    ) -> Explanation:
        """Why a label's linear score is the highest for one row of numbers; of two labels the first's may be 0."""
        row = np.append(one_row(x, len(table.features)), 1.0)
        weights = np.vstack([table.weights, intercepts])
        if weights.shape[1] < len(labels):
            weights = np.column_stack([np.zeros(len(weights)), weights])
        best = np.argsort(-(row @ weights), kind="stable")[:2].tolist()
        names, label = [*table.features, "intercept"], ", not ".join(str(labels[k]) for k in best)
        # A label's score is as well the row's, by the label's weights.
        ranked = [(labels[k], weights[:, k]) for k in best]
        return cls.of_best(ranked, row, lambda k: (names[k], label), "there is one label only, and two are compared")

    def __str__(self) -> str:
        return self.text()

    def text(self, k: int = 10) -> str:
        """The k greatest contributions, one per line."""
        lines = [f"{self.winner}", f"wins by {self.margin:.4g} over", f"{self.runner_up}"]
        lines += [
            f"  {part.value:+.4g}  {printable(part.feature)}  {printable(part.label)}"
            for part in self.contributions[:k]
        ]
        left = self.contributions[k:]
        if left:
            lines.append(f"  {sum(part.value for part in left):+.4g}  {len(left)} others")
        return "\n".join(lines)


def two_best(ranked: Iterable[T], alone: str) -> tuple[T, T]:
    """Return the first two outputs; ValueError, saying `alone`, if there are fewer."""
    best = list(islice(ranked, 2))
    if len(best) < 2:
        raise ValueError(alone)
    return best[0], best[1]


def one_row(x: MatrixLike, n_columns: int) -> NDArray[np.float64]:
    """One row of numbers, as an array or a sparse or dense matrix of one row; ValueError for anything else."""
    row = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)
    if row.ndim == 2 and row.shape[0] > 1:
        refuse(row)
    if row.shape not in ((n_columns,), (1, n_columns)):
        raise ValueError(f"x must be one row of {n_columns} columns, got an array of shape {row.shape}")
    if not np.isfinite(row).all():
        raise ValueError("x has values that are not finite")
    return row.ravel()
