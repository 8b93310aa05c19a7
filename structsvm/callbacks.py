"""scikit-learn's callback interface (1.9 and later) for our estimators; nothing where it is not there."""

from __future__ import annotations

from structsvm.progress import Monitor

__all__ = ["CallbackMonitor", "CallbackSupportMixin", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


class CallbackMonitor(Monitor):
    """Reports every pass of a run as a task of the estimator's fit; a callback may stop it.

    Parameters
    ----------
    estimator : estimator
        Whose callbacks are told.
    X, y : object
        The training data, as `fit` was given them.
    max_iter : int
        Passes that the run will do at most.
    metadata : dict
        Further arguments of `fit`, without those that are None.
    attributes : callable, optional
        From the run to the fitted attributes that prediction needs, as of now: what callbacks that ask for a
        fitted estimator (a `ScoringMonitor`) look at.
    """

    def __init__(self, estimator, X, y, max_iter, attributes=None, **metadata):
        self.estimator, self.attributes = estimator, attributes
        metadata = {name: value for name, value in metadata.items() if value is not None}
        self.data = {"X": lambda: X, "y": lambda: y, "metadata": metadata}
        self.task = self.context = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=max_iter)  # noqa: SLF001 (the protocol's name)
            self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def begin_pass(self, run):
        if self.context is not None:
            self.task = self.context.subcontext(task_name="pass")
            self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end_pass(self, run):
        if self.task is None:
            return False
        return bool(self.task.call_on_fit_task_end(estimator=self.estimator, **self.data, **self._fitted(run)))

    def close(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def _fitted(self, run):
        return {} if self.attributes is None else {"reconstruction_attributes": lambda: self.attributes(run)}
