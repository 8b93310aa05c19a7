"""How the inputs of a pool are read: a subclass for each kind of outputs, and the one for labels of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.common.model import COLUMNS
from structsvm.tasks.common.questions.strategies import log_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from structsvm.arrays import Floats, Integers, Matrix

M = TypeVar("M", bound="Any")


class Reader(ABC, Generic[M]):
    """The encoded inputs of a pool, and how sure a model is of their outputs.

    Parameters
    ----------
    model : TaskModel
    X : inputs, as `predict` takes them

    Attributes
    ----------
    strategies : tuple of str
        Those that it knows; a strategy among the others is refused, by the estimator's name.
    parts : ndarray of shape (n,)
        The number of parts of each output, which whoever answers has to check.
    """

    strategies: ClassVar[tuple[str, ...]] = ("margin", "confidence", "entropy", "risk")
    parts: Integers

    @abstractmethod
    def __init__(self, model: M, X: Any) -> None: ...

    def __len__(self) -> int:
        return len(self.parts)

    def fits(self, model: M) -> bool:
        """Whether the inputs are encoded for a model, or will be once `upper` is asked for."""
        return True

    @abstractmethod
    def read(self, model: M, chosen: Integers, strategy: str) -> Floats:
        """The values of some inputs under a strategy; ValueError if the model has no such confidence."""

    def upper(self, model: M, strategy: str) -> Floats | None:
        """Numbers that the values of all inputs do not exceed under a model; None: all have to be read."""
        return None

    @abstractmethod
    def vectors(self, chosen: Integers) -> csr_array:
        """The features of some inputs, as rows."""


class RowReader(Reader[M]):
    """Rows with one label each: a subclass encodes them and scores labels.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n, n_features)
    columns : dict
        The number of columns of the model that they were read for, and their names if they have any.
    """

    rows: Matrix

    def __init__(self, model: M, X: Any) -> None:
        self.rows, self.columns = X, dict(model.columns)
        self.parts = np.ones(X.shape[0], dtype=np.int64)

    def fits(self, model: M) -> bool:
        """Whether rows have the columns of a model: so many, and under the same names."""
        own, its = ([columns.get(name) for name in COLUMNS] for columns in (self.columns, model.columns))
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(own, its, strict=True))

    @abstractmethod
    def scores(self, model: M, rows: Matrix) -> Floats:
        """Scores of all labels: array (n, n_labels)."""

    def probabilities(self, model: M, scores: Floats) -> Floats:
        return class_probabilities(model, scores)

    def read(self, model: M, chosen: Integers, strategy: str) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the pool
            return self._values(model, chosen, strategy)

    def _values(self, model: M, chosen: Integers, strategy: str) -> Floats:
        scores = np.asarray(self.scores(model, self.rows[chosen]), dtype=np.float64)
        if strategy == "margin":
            two = np.partition(scores, -2, axis=1)[:, -2:]
            return np.asarray(two[:, 0] - two[:, 1])
        p = self.probabilities(model, scores)
        if strategy == "entropy":
            return log_of(-(p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(axis=1))
        p[np.arange(len(p)), scores.argmax(axis=1)] = 0.0
        return log_of(p.sum(axis=1))

    def vectors(self, chosen: Integers) -> csr_array:
        from scipy.sparse import csr_array

        return csr_array(self.rows[chosen], dtype=np.float64)
