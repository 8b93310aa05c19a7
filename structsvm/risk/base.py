"""The contract of all promises: they wrap an estimator, are calibrated on held-out outputs, and are saved with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from structsvm.model_file import ModelFileError, name_of, whole
from structsvm.parameters import Constraints, Interval, seed_from, validate
from structsvm.risk.files import opened, saved
from structsvm.risk.outputs import inner_of, n_inputs, sentences_of, unwrapped
from structsvm.risk.wrapped import is_same, is_still, learnt_by
from structsvm.tasks.common.bases import BaseEstimator
from structsvm.tasks.common.examples import checked_sample_weight

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Tags

    from structsvm.arrays import Floats, LabelArray
    from structsvm.model_file import Destination, Origin
    from structsvm.risk.wrapped import Estimator, Inputs, Learnt, Outputs

SHARE = Interval(Real, 0.0, 1.0, closed="neither")


class Promise(BaseEstimator, ABC):
    """Base of what wraps an estimator and promises something about its outputs.

    A subclass has the parameters `estimator`, `held_out` and `random_state`, and implements `_calibrate`. Fitted
    attributes are set by `calibrate` alone, at its end: after an error the old ones stay.
    """

    _constraints: ClassVar[Constraints]
    estimator: object
    held_out: float
    random_state: int | np.random.RandomState | None
    estimator_: Estimator
    threshold_: float | dict[Hashable, float]
    coverage_: float
    risk_: float
    size_: float
    quantile_: float | dict[Hashable, float] | None
    folds_: list[tuple[Estimator, Floats]]
    n_calibration_: int
    _learnt: Learnt | None  # None: the estimator has changed

    def fit(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train a clone of the estimator on a part of the examples, and calibrate on the others.

        Parameters
        ----------
        X, y
            As the estimator's `fit` takes them.
        sample_weight : array-like, optional
            For both.

        Returns
        -------
        self
        """
        self._check_wrapped()
        X, y = at_hand(X), None if y is None else at_hand(y)
        n = n_inputs(X)
        if n < 2:
            raise ValueError(f"fit trains on a part of the examples and holds out the others: it needs 2, got {n}")
        weight = checked_sample_weight(sample_weight, n)
        held = np.zeros(n, dtype=bool)
        n_held = min(max(round(self.held_out * n), 1), n - 1)
        held[generator(self.random_state).permutation(n)[:n_held]] = True
        rest, own = (
            (chosen(X, part), None if y is None else chosen(y, part), None if weight is None else weight[part])
            for part in (~held, held)
        )
        trained = trained_on(fresh(self.estimator), *rest)
        self._settle(trained, *own)
        return self

    def calibrate(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Settle what is promised, on examples that the estimator has not seen.

        Nothing may have been learnt from them: no weights, no C, no temperature. What holds, holds for later examples
        drawn as these were: whole outputs, one from another independent.

        Parameters
        ----------
        X, y
            Inputs and true outputs, as the estimator's `fit` takes them; all of y is known.
        sample_weight : array-like, optional
            For outputs that come in other proportions later: how many times likelier each one is then than here, up to
            a common factor. Later ones may not have larger weights than the largest of these.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For fewer outputs than are needed (the message says how many), unknown ones, or parameters out of range.
        NotFittedError
            If the estimator is not fitted; `fit` would train it.
        """
        self._check_wrapped()
        self._settle(self._trained(), X, y, sample_weight)
        return self

    def _check_wrapped(self) -> None:
        """ValueError for parameters out of range, TypeError for a promise about a promise."""
        validate(self, self._constraints)
        last: object = self.estimator
        while not isinstance(last, Promise) and (inner := within(last)) is not None:
            last = inner
        if isinstance(last, Promise):
            raise TypeError(
                f"{type(self).__name__} wraps an estimator, and {type(last).__name__} is a promise itself: wrap the "
                "estimator that is within"
            )

    def _trained(self) -> Estimator:
        """The estimator that `fit` has trained of `estimator`, or `estimator` itself."""
        own = vars(self)
        if "estimator_" in own and own["_template"] is self.estimator:
            return self.estimator_
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            raise NotFittedError(
                f"{type(self).__name__} calibrates an estimator that is fitted, and this "
                f"{type(self.estimator).__name__} is not: call fit, which trains it on a part of the examples"
            ) from None
        return cast("Estimator", self.estimator)

    def _read(
        self, estimator: Estimator, X: Inputs, y: Outputs | None, sample_weight: ArrayLike | None
    ) -> tuple[Inputs, Outputs, Floats | None]:
        """Inputs, true outputs and weights, the largest 1, checked; trees alone are split into sentences and trees."""
        X, y = sentences_of(estimator, at_hand(X), None if y is None else at_hand(y))
        n = n_inputs(X)
        if n_inputs(y) != n:
            raise ValueError(f"X has {n} inputs, y has {n_inputs(y)} outputs")
        return X, y, of_largest(checked_sample_weight(sample_weight, n))

    def _asked(
        self, X: Inputs, y: Outputs | None, sample_weight: ArrayLike | None
    ) -> tuple[Inputs, Outputs, Floats | None]:
        """Inputs, true outputs and weights of `score`; ValueError for none, NotFittedError before `calibrate`."""
        check_is_fitted(self)
        X, y, weight = self._read(self.estimator_, X, y, sample_weight)
        if not n_inputs(X):
            raise ValueError("X has no inputs, and a mean over none is no score")
        return X, y, weight

    @abstractmethod
    def _calibrate(self, estimator: Estimator, X: Inputs, y: Outputs, weight: Floats | None) -> dict[str, object]:
        """Return the fitted attributes."""

    def _settle(self, estimator: Estimator, X: Inputs, y: Outputs | None, sample_weight: ArrayLike | None) -> None:
        """Calibrate, and remember the estimator as it is; what is replaced by predicting is not learnt."""
        before = learnt_by(estimator)
        self._store(self._calibrate(estimator, *self._read(estimator, X, y, sample_weight)), estimator, before)

    def _store(self, found: dict[str, object], estimator: Estimator, before: Learnt | None = None) -> None:
        learnt = learnt_by(estimator)
        if before is not None:
            learnt = {place: own for place, own in learnt.items() if place in before and is_same(own, before[place])}
        self.__dict__.update(found, estimator_=estimator, _template=self.estimator, _learnt=learnt)

    def restore(self, values: dict[str, object], estimator: Estimator) -> None:
        """Become what a file contains; ValueError for parameters out of range."""
        validate(self, self._constraints)
        self._store(values, estimator)

    def _inputs(self, X: Inputs) -> tuple[Estimator, Inputs]:
        """The estimator behind pipelines, and its inputs; NotFittedError as `_check_calibrated` raises it."""
        self._check_calibrated()
        return unwrapped(self.estimator_, at_hand(X))

    def _check_calibrated(self) -> None:
        """NotFittedError before `calibrate`, and if the estimator has been trained, or calibrated, since then.

        The objects that `learnt_by` finds are compared. Changes that compiled code of other libraries makes within its
        own objects, and other values of parameters, are not seen. Training the fitted estimator that is a parameter of
        another one, as of CalibratedClassifierCV, counts as a change, even if only a clone of it is predicted with.
        """
        check_is_fitted(self)
        if self._learnt is not None and not is_still(self._learnt, learnt_by(self.estimator_)):
            self._learnt = None
        if self._learnt is None:
            name = type(self.estimator_).__name__
            raise NotFittedError(
                f"{type(self).__name__} was calibrated before its {name} was changed, by training or by a calibrate of "
                f"its own, and promises nothing about what it is now: call {type(self).__name__}.calibrate again"
            )

    def __getstate__(self) -> dict[str, object]:
        """The attributes; in place of what is remembered of the estimator, the places that are not compared."""
        state = dict(super().__getstate__())
        if (learnt := vars(self).get("_learnt")) is not None:
            now = learnt_by(self.estimator_)
            state["_learnt"] = [place for place in now if place not in learnt] if is_still(learnt, now) else None
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        apart = state.get("_learnt", ...)
        if "estimator_" in state and apart is not None:
            self._learnt = learnt_by(self.estimator_)
            for place in apart if isinstance(apart, list) else ():
                self._learnt.pop(place, None)

    def __sklearn_is_fitted__(self) -> bool:
        return "n_calibration_" in vars(self)

    def save(self, path: Destination, *, training_state: bool | None = None) -> None:
        """Write the estimator and what is promised to one file; `structsvm.load` opens it.

        It is a model file of the estimator's, for the command line too.

        Parameters
        ----------
        path, training_state
            See the estimator's `save`.

        Raises
        ------
        TypeError
            For an estimator of another library, a pipeline, several estimators (`cv`) or parameters that are
            functions: no file contains these.
        """
        self._check_calibrated()
        saved(self, path, training_state)

    @classmethod
    def load(cls, path: Origin, *, mmap: bool = False, trusted: bool = False) -> Self:
        """Open a file written by `save`; ModelFileError if it is not a complete, valid one of this class.

        `trusted`: see `structsvm.load`.
        """
        path = whole(path)
        found = opened(path, mmap=mmap, trusted=trusted)
        if type(found) is not cls:
            raise ModelFileError(f"{name_of(path)}: a {type(found).__name__}, not a {cls.__name__}")
        return found

    @property
    def classes_(self) -> LabelArray:
        """The estimator's labels."""
        check_is_fitted(self)
        return self.estimator_.classes_

    def __sklearn_tags__(self) -> Tags:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.target_tags, tags.input_tags = None, own.target_tags, own.input_tags
        return tags


def within(estimator: object) -> object | None:
    """The estimator that another one predicts with, or will once it is fitted; None if there is none."""
    inner = inner_of(estimator)
    return getattr(estimator, "estimator", None) if inner is None else inner


def of_largest(weight: Floats | None) -> Floats | None:
    """Weights as parts of the largest, so that their sums are finite; parts that are no normal floats are 0."""
    if weight is None or not len(weight):
        return weight
    parts = weight / weight.max()
    return np.where(parts < np.finfo(np.float64).tiny, 0.0, parts)


def at_hand(data: Inputs) -> Inputs:
    """Inputs or outputs that can be read twice: of an iterator, a list."""
    return list(data) if isinstance(data, Iterator) else data


def fresh(estimator: object) -> Estimator:
    """A copy of an estimator that is not fitted."""
    return cast("Estimator", clone(estimator))


def chosen(data: Inputs, part: NDArray[np.bool_]) -> Inputs:
    """Some of the inputs, or outputs."""
    return cast("Inputs", _safe_indexing(data, np.flatnonzero(part)))


def trained_on(estimator: Estimator, X: Inputs, y: Outputs | None, weight: Floats | None = None) -> Estimator:
    """Train an estimator; trees may be inputs and outputs at once, without y."""
    if weight is None:
        return estimator.fit(X) if y is None else estimator.fit(X, y)
    return estimator.fit(X, sample_weight=weight) if y is None else estimator.fit(X, y, sample_weight=weight)


def generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """The random numbers of a parameter."""
    return np.random.RandomState(seed_from(random_state))
