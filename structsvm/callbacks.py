"""scikit-learn's callback interface (1.9 and later) for our estimators; nothing where it is not there."""

from __future__ import annotations

from structsvm.progress import Monitor

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method):
        return method


class CallbackMonitor(Monitor):
    """Reports every pass of a run as a task of the estimator's fit; a callback may stop it."""

    def __init__(self, estimator, X, y, max_iter):
        self.estimator, self.data = estimator, {"X": X, "y": y}
        self.task = None
        self.context = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=max_iter)
            self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def begin_pass(self, run):
        if self.context is not None:
            self.task = self.context.subcontext(task_name="pass")
            self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end_pass(self, run):
        return self.task is not None and bool(
            self.task.call_on_fit_task_end(estimator=self.estimator, **self.data))

    def close(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)
