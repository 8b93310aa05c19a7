"""Examples that an estimator was given, for a fit on all of them."""

from __future__ import annotations

import dataclasses
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from structsvm.features.matrices import is_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.tasks.common.model import TaskModel

# Examples that are kept at most: of more than these no memory is held, and the weights learnt from them stand for them.
MOST = 10_000


@dataclasses.dataclass(frozen=True)
class Batch:
    """Examples as they were given, by reference: a list or a matrix of inputs, and what y told of each.

    Attributes
    ----------
    size : int
        How many they were: what a list has got since is no part of them.
    """

    X: Any
    y: Any
    weight: Any = None
    size: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", n_inputs(self.X))

    def __len__(self) -> int:
        return self.size

    def is_part_of(self, other: Self, answers: dict[int, list[Any]]) -> bool:
        """Whether another batch, whose `answers` are given, has all examples of this one: its inputs, told the same."""
        if len(self) > len(other):
            return False
        if self.X is other.X:
            return is_same(self.y, other.y, len(self))
        if not isinstance(self.X, (list, tuple)):
            return False
        try:
            return all(y in answers.get(id(x), ()) for x, y in zip(self.X[: self.size], as_list(self.y), strict=False))
        except ValueError:  # arrays within y
            return False

    def answers(self) -> dict[int, list[Any]]:
        """The answers to each object of a list of inputs, by its `id`; none of a matrix, whose rows are no objects."""
        found: dict[int, list[Any]] = {}
        if isinstance(self.X, (list, tuple)):
            for x, y in zip(self.X, as_list(self.y), strict=False):
                found.setdefault(id(x), []).append(y)
        return found

    def cut(self) -> Self:
        """The batch without what its lists have got since."""
        if n_inputs(self.X) == n_inputs(self.y) == self.size:
            return self
        weight = None if self.weight is None else self.weight[: self.size]
        return type(self)(self.X[: self.size], as_list(self.y)[: self.size], weight)


@dataclasses.dataclass(frozen=True)
class Given:
    """All that an estimator has learnt from.

    Attributes
    ----------
    base : TaskModel or None
        What had been learnt from examples that are not kept; None: all are.
    batches : tuple of Batch
    """

    base: TaskModel | None = None
    batches: tuple[Batch, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    def plus(self, batch: Batch) -> Self:
        return dataclasses.replace(self, batches=(*self.batches, batch))

    def plus_again(self, batch: Batch) -> Self:
        """As `plus`, without the batches that are part of this one: they count once, in the first one's place.

        So an answer that is taught, and then added to the lists that training goes on from, is one example.
        """
        answers = batch.answers()
        others = [one for one in self.batches if not one.is_part_of(batch, answers)]
        place = next((k for k, one in enumerate(others) if one is not self.batches[k]), len(others))
        return dataclasses.replace(self, batches=(*others[:place], batch, *others[place:]))

    @property
    def is_long(self) -> bool:
        """Whether they are too many to be kept."""
        return len(self) > MOST

    def joined(self) -> Batch:
        """All examples as one batch."""
        batches = [batch.cut() for batch in self.batches]
        if len(batches) == 1:
            return batches[0]
        weight = None
        if any(batch.weight is not None for batch in batches):
            parts = [np.ones(len(one)) if one.weight is None else np.asarray(one.weight) for one in batches]
            weight = np.concatenate(parts)
        X = joined([batch.X for batch in batches])
        return Batch(X, list(chain.from_iterable(as_list(batch.y) for batch in batches)), weight)


def n_inputs(X: Any) -> int:
    """The number of a list's inputs, or of a matrix's rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def is_same(y: Any, other: Any, n: int) -> bool:
    """Whether two lists or arrays tell the same of the first n inputs; False where that is not clear."""
    if y is other:
        return True
    try:
        return bool(as_list(y)[:n] == as_list(other)[:n])
    except ValueError:  # arrays within them
        return False


def joined(parts: Sequence[Any]) -> Any:
    """Lists of inputs, or matrices of rows, as one."""
    if all(isinstance(part, (list, tuple)) for part in parts):
        return list(chain.from_iterable(parts))
    if any(is_sparse(part) for part in parts):
        from scipy.sparse import csr_array, vstack

        return vstack([csr_array(part) for part in parts], format="csr")
    return np.concatenate([np.asarray(part) for part in parts])


def one_row(x: Any) -> Any:
    """A row as a matrix, or the list of one text or object."""
    if not is_sparse(x):
        return [x]
    from scipy.sparse import csr_array

    return csr_array(x.reshape(1, -1))


def as_list(y: Any) -> list[Any]:
    """The answers, one per example; labels as Python's own objects."""
    return list(y.tolist()) if isinstance(y, np.ndarray) else list(y)


def can_be_kept(X: object, y: object) -> bool:
    """Whether examples can be read again, and joined with others: lists and matrices, no files and tables."""
    return (isinstance(X, (list, tuple, np.ndarray)) or is_sparse(X)) and isinstance(y, (list, tuple, np.ndarray))
