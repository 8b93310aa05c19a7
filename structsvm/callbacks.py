"""scikit-learn's callback interface (1.9 and later) for our estimators; without effect before that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from structsvm.progress import Monitor

if TYPE_CHECKING:
    from structsvm.solvers.run import Run

__all__ = ["CallbackMonitor", "CallbackSupportMixin", "with_callbacks"]

if TYPE_CHECKING:
    # scikit-learn has no types: without these a decorated `fit` would be Any.
    _Method = TypeVar("_Method", bound=Callable[..., Any])

    class CallbackSupportMixin:
        """scikit-learn's mixin."""

    def with_callbacks(method: _Method) -> _Method:
        """Call the teardown hooks of callbacks when the method ends."""
        return method

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Replaces scikit-learn's mixin."""

        def with_callbacks(method):
            """Return the method unchanged."""
            return method


class CallbackMonitor(Monitor):
    """Reports every pass of a run as a task of the estimator's fit; a callback may stop the run.

    Parameters
    ----------
    estimator : estimator
        Its callbacks are called.
    X, y : object
        The training data, as passed to `fit`.
    max_iter : int
        Maximum number of passes.
    metadata : dict
        Further arguments of `fit`; those that are None are left out.
    attributes : callable, optional
        Maps the run to the current fitted attributes that prediction needs, for callbacks that ask for a
        fitted estimator (a `ScoringMonitor`).
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        max_iter: int,
        attributes: Callable[[Run], dict[str, Any]] | None = None,
        **metadata: Any,
    ) -> None:
        self.estimator, self.attributes = estimator, attributes
        metadata = {name: value for name, value in metadata.items() if value is not None}
        self.data = {"X": lambda: X, "y": lambda: y, "metadata": metadata}
        self.task: Any = None
        self.context: Any = None
        # Without callbacks, of its own or of an estimator around it, contexts take longer than a sentence.
        if hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=max_iter)  # noqa: SLF001 (the protocol's name)
            self.context.call_on_fit_task_begin(estimator=estimator, **self.data)

    def begin_pass(self, run: Run) -> None:
        if self.context is not None:
            self.task = self.context.subcontext(task_name="pass")
            self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end_pass(self, run: Run) -> bool:
        if self.task is None:
            return False
        return bool(self.task.call_on_fit_task_end(estimator=self.estimator, **self.data, **self._fitted(run)))

    def close(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def _fitted(self, run: Run) -> dict[str, Any]:
        attributes = self.attributes
        return {} if attributes is None else {"reconstruction_attributes": lambda: attributes(run)}
