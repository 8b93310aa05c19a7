"""How an estimator around a task's model is saved and opened: the model holds all of it, parameters too."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.utils.validation import check_is_fitted

from structsvm.callbacks import CallbackMonitor
from structsvm.model_file import ModelFileError
from structsvm.parameters import validate
from structsvm.progress import Bar, Monitors


class StoredEstimatorMixin:
    """`save` and `load` of an estimator whose fitted state is ``model_``.

    A subclass names the class of its model in `_model_class`, and how files name that kind in `_kind`; it has
    `_adopt(model)`, which takes over a model that was trained or read.
    """

    _model_class: Any
    _kind: str
    _constraints: dict
    _adopt: Callable[[Any], None]
    model_: Any
    get_params: Callable[..., dict]

    def save(self, path):
        """Write the model, with the training state that `warm_start` goes on from, to one file.

        Arrays and a JSON header, no pickle; written to a temporary file and renamed. `structsvm.load` opens it.
        """
        check_is_fitted(self)
        self.model_.params = self.get_params(deep=False)
        self.model_.save(path)

    @classmethod
    def load(cls, path, *, mmap=False):
        """Open a file of `save`; ModelFileError if it is not a whole, sound model of this class."""
        model = cls._model_class.load(path, mmap=mmap)
        cls._check_owner(path, model)
        known = cls().get_params()
        self = cls(**{name: value for name, value in model.params.items() if name in known})
        try:
            validate(self, cls._constraints)
            self._adopt(model)
        except ValueError as error:
            raise ModelFileError(f"{path}: not a sound {cls._kind} model: {error}") from error
        return self

    @classmethod
    def _check_owner(cls, path, model):
        """Raise ModelFileError for a model of another estimator of the same task, where models know whose they are."""
        owner = getattr(model, "estimator", cls.__name__)
        if owner != cls.__name__:
            raise ModelFileError(f"{path}: a model of {owner!r:.80}, not of {cls.__name__!r}")

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")


def monitor_for(estimator, X, y, max_iter, attributes, **metadata):
    """The monitors of an estimator's fit: its callbacks (see `CallbackMonitor`), and a bar if it is verbose."""
    callbacks = CallbackMonitor(estimator, X, y, max_iter, attributes, **metadata)
    return Monitors(callbacks, Bar(max_iter, disable=False)) if estimator.verbose else callbacks


def all_or_nothing(method):
    """Make a method that trains leave its estimator as it was, attribute by attribute, if it raises an error.

    Ctrl-C is none: what has been learnt until then stays.
    """

    @wraps(method)
    def train(self, *args, **kwargs):
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    return train
