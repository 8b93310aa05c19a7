"""A pool of inputs without answers, ranked by how much an answer would teach.

A reader says which value no input exceeds under the model of the moment. The k best are found by reading inputs in the
order of these bounds until the k best of all are read: the same k as by reading all of them, with ties in the order of
the pool. Where a reader has no bounds all inputs are read again, or, if the user says so, some of them: those of
highest value under earlier models, and those that were read longest ago.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from structsvm.parameters import NONE, Interval, check_arguments
from structsvm.tasks.common.questions.strategies import RANDOM, STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike

    from structsvm.arrays import Floats, Integers
    from structsvm.tasks.common.questions.loop import LearningLoop
    from structsvm.tasks.common.questions.reading import Reader

# Inputs that are read at first, and twice as many each time that these do not settle it; the most that are in memory at
# a time; and those that `diversity` chooses among, per one asked for.
AT_ONCE, MOST_AT_ONCE, AMONG, FEWEST_AMONG = 4, 1024, 4, 50
# One in so many of the inputs that `refresh` reads is one that was read longest ago.
OLDEST = 4

Strategy = Literal["margin", "confidence", "entropy", "span", "risk", "random"]


class Pool:
    """Inputs without answers, encoded once for a loop of `query` and `teach`.

    After an answer the scores of tokens follow the weights that have changed; bounds from them say which few inputs
    `query` has to read. That holds for `SequenceLabeler` with exact inference of order 1, without segments and
    languages; other estimators read all inputs again once the model has changed, or `refresh` of them.

    Parameters
    ----------
    estimator : estimator that has `query`
        Fitted or not; the pool is for its models alone.
    X : inputs, as the estimator's `predict` takes them
        Not empty.
    refresh : int, optional
        For models without bounds: how many inputs `query` reads once the model has changed by an answer, from 4 on, and
        not fewer than it chooses. Three in four are those of highest value as it was read last, the others those that
        were read longest ago; the k are the best of what was read, and `diversity` chooses among it, too: several times
        the k that are asked for are needed then. None: all, so that the k are the best of the pool.

    Attributes
    ----------
    estimator : estimator
    n_read : int
        How many inputs have been read so far, each time that one was.
    n_stale : int
        How many inputs the last query passed over for what they were worth to an earlier model; 0 without `refresh`.
    left : ndarray of int64
        Indices of the inputs that `query` may return, by `discard` and `keep`.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> from structsvm.tasks import Pool, SequenceLabeler
    >>> X, y = make_sequences(60, random_state=0)
    >>> labeler = SequenceLabeler(C=0.1, random_state=0).fit(X[:20], y[:20])
    >>> pool = Pool(labeler, X[20:])
    >>> (i,) = labeler.query(pool)
    >>> pool.discard(i)
    >>> labeler.teach(X[20:][i], y[20:][i]).query(pool, 3).shape
    (3,)
    """

    _line: object = None  # also of pools that were pickled without it

    def __init__(self, estimator: LearningLoop, X: Collection[Any], *, refresh: int | None = None) -> None:
        check_arguments("Pool", locals(), refresh=(Interval(Integral, OLDEST), NONE))
        if not hasattr(estimator, "_pool_inputs"):
            name = type(estimator).__name__
            raise TypeError(f"a pool is of an estimator that has teach, and {name} has none: its query takes X itself")
        self.estimator, self.refresh = estimator, refresh
        self._reader: Reader[Any] | None = None
        self._X = estimator._pool_inputs(X)  # noqa: SLF001 (the loop's own)
        n = self._X.shape[0] if hasattr(self._X, "shape") else len(self._X)
        if n == 0:
            raise ValueError("the pool is empty: there is nothing to ask about")
        self.n_read, self.n_stale, self._is_left = 0, 0, np.ones(n, dtype=np.bool_)
        self._model: Any = None
        self._upper: Floats = np.full(n, np.inf)
        self._has_bounds = False
        self._since = np.zeros(n, dtype=np.int64)
        self._forget(None)
        if estimator.__sklearn_is_fitted__():
            self._encoded(self._fitted())

    def __len__(self) -> int:
        return len(self._is_left)

    @property
    def left(self) -> Integers:
        return np.flatnonzero(self._is_left)

    def discard(self, rows: ArrayLike) -> None:
        """Leave inputs out of later queries, by their indices; ValueError for other numbers."""
        self._is_left[self._checked(rows, "discard")] = False

    def keep(self, rows: ArrayLike) -> None:
        """Ask about these inputs alone in later queries, also about those that were discarded; as `discard`."""
        index = self._checked(rows, "keep")
        self._is_left[:] = False
        self._is_left[index] = True

    def _checked(self, rows: ArrayLike, name: str) -> Integers:
        index = np.atleast_1d(np.asarray(rows))
        index = index if index.size else index.astype(np.int64)
        n = len(self)
        if index.ndim != 1 or index.dtype.kind not in "iu" or not ((index >= 0) & (index < n)).all():
            raise ValueError(f"{name} takes indices of the pool, integers from 0 to {n - 1}, got {rows!r:.80}")
        return index

    def best(self, k: int, strategy: Strategy, diversity: float, cost: float, random_state: object) -> Integers:
        """The k most useful inputs; see `LearningLoop.query`."""
        left = self.left
        if k > len(left):
            raise ValueError(f"k={k} is more than the {len(left)} inputs that are left in the pool")
        self.n_stale = 0
        if strategy == RANDOM:
            drawn: Integers = check_random_state(random_state).permutation(left)[:k]
            return drawn
        reader = self._followed(strategy)
        price = cost * np.log(np.maximum(reader.parts, 1)) if cost else np.zeros(len(self))
        if self.refresh is not None and not self._has_bounds:
            self._refresh(max(k, self.refresh), strategy, price)
            self.n_stale = int((~self._is_read[left]).sum())
            left = left[self._is_read[left]]
        if not diversity:
            return self._highest(left, k, strategy, price)[0]
        among, worth = self._highest(left, min(max(AMONG * k, FEWEST_AMONG), len(left)), strategy, price)
        return among[_spread_out(reader.vectors(among), worth, k, diversity)]

    # ---- reading --------------------------------------------------------------------------------

    def _forget(self, strategy: str | None) -> None:
        """Know nothing of the values any more."""
        n = len(self)
        self._strategy, self._temperature, self._model = strategy, None, None
        self._values, self._is_read = np.full(n, np.inf), np.zeros(n, dtype=np.bool_)

    def _encoded(self, model: Any) -> Reader[Any]:
        """The reader of the inputs for a model."""
        reader = self._reader
        if reader is None or not reader.fits(model):
            reader = self.estimator._reader_of(model, self._X)  # noqa: SLF001 (the loop's own)
            self._reader = reader
            self._forget(None)
        return reader

    def _fitted(self) -> Any:
        return self.estimator._fitted()  # noqa: SLF001 (the loop's own)

    def _followed(self, strategy: str) -> Reader[Any]:
        """The reader, with bounds for the model of the moment."""
        model = self._fitted()
        reader = self._encoded(model)
        if strategy not in reader.strategies:
            known = ", ".join((*reader.strategies, RANDOM))
            raise ValueError(f"{type(self.estimator).__name__} has no strategy {strategy!r}; it has {known}")
        temperature = model.temperature
        is_other = strategy != self._strategy or (strategy != "margin" and temperature != self._temperature)
        is_other |= self._line is not self.estimator._line  # noqa: SLF001 (the loop's own)
        if is_other or model is not self._model:
            if is_other or self.refresh is None:
                self._forget(strategy)
            upper = reader.upper(model, strategy)
            self._has_bounds = upper is not None
            self._is_read[:] = False
            self._upper = np.full(len(self), np.inf)
            if upper is not None:
                self._upper = np.where(np.isnan(upper), np.inf, upper)
        self._temperature, self._model, self._line = temperature, model, self.estimator._line  # noqa: SLF001
        return reader

    def _highest(self, left: Integers, k: int, strategy: str, price: Floats) -> tuple[Integers, Floats]:
        """``(indices, worth)``: the k inputs of those left whose value less their price is highest, highest first."""
        at_once = max(k, AT_ONCE) if self._has_bounds else len(left)
        is_read = self._is_read[left]
        worth = np.where(is_read, self._values[left], self._upper[left]) - price[left]
        while True:
            top = np.arange(len(left))
            if len(left) > k:  # all above the k-th value, and the first that equal it
                least = np.partition(worth, len(left) - k)[len(left) - k]
                above = np.flatnonzero(worth > least)
                top = np.concatenate([above, np.flatnonzero(worth == least)[: k - len(above)]])
            if is_read[top].all():
                order = top[np.lexsort((top, -worth[top]))]
                return left[order], worth[order]
            waiting = np.flatnonzero(~is_read)
            if len(waiting) > at_once:
                waiting = waiting[np.argpartition(-worth[waiting], at_once)[:at_once]]
            waiting = np.union1d(waiting, top[~is_read[top]])
            self._read_again(left[waiting], strategy)
            worth[waiting] = self._values[left[waiting]] - price[left[waiting]]
            is_read[waiting] = True
            at_once *= 2

    def _refresh(self, n: int, strategy: str, price: Floats) -> None:
        """Read inputs until n of those left, or all, are read, and none of them has never been."""
        waiting = self.left[~self._is_read[self.left]]
        worth = self._values[waiting] - price[waiting]
        n = min(max(n - len(self.left) + len(waiting), int(np.isposinf(worth).sum())), len(waiting))
        best, others = np.split(waiting[np.argsort(-worth, kind="stable")], [n - n // OLDEST])
        oldest = others[np.argsort(self._since[others], kind="stable")[: n // OLDEST]]
        self._read_again(np.union1d(best, oldest), strategy)

    def _read_again(self, chosen: Integers, strategy: str) -> None:
        """Read some inputs, not all of a large pool in one piece of memory."""
        reader, model = self._reader, self._fitted()
        if reader is None:
            raise RuntimeError("the pool has no reader")
        for start in range(0, len(chosen), MOST_AT_ONCE):
            some = chosen[start : start + MOST_AT_ONCE]
            values = reader.read(model, some, strategy)
            if np.isnan(values).any():
                raise ValueError(f"input {int(some[np.isnan(values).argmax()])} of the pool: its scores overflow")
            self._values[some] = values
        self._is_read[chosen] = True
        self.n_read += len(chosen)
        self._since[chosen] = self.n_read


def _spread_out(vectors: Any, worth: Floats, k: int, diversity: float) -> Integers:
    """k of the candidates, one after the other: high in worth, and unlike those chosen before.

    Worth is brought to 0 .. 1 among the candidates, likeness is the cosine of features with the most
    similar one of those chosen.
    """
    sizes = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    finite = worth[np.isfinite(worth)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    share = (np.clip(worth, low, high) - low) / ((high - low) or 1.0)
    likeness, chosen = np.zeros(len(worth)), []
    is_free = np.ones(len(worth), dtype=np.bool_)
    for _ in range(k):
        i = int(np.where(is_free, (1.0 - diversity) * share - diversity * likeness, -np.inf).argmax())
        chosen.append(i)
        is_free[i] = False
        products = np.asarray((vectors @ vectors[[i]].T).todense()).ravel()
        likeness = np.maximum(likeness, products / np.maximum(sizes * sizes[i], np.finfo(np.float64).tiny))
    return np.array(chosen, dtype=np.int64)


def check_strategy(strategy: object) -> None:
    """Raise ValueError for what is no strategy."""
    if not isinstance(strategy, str) or strategy not in (*STRATEGIES, RANDOM):
        raise ValueError(f"strategy must be one of {', '.join((*STRATEGIES, RANDOM))}, got {strategy!r:.80}")
