"""Kernel classifiers that learn from streams."""

from __future__ import annotations

from structsvm.callbacks import with_callbacks
from structsvm.parameters import validate
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.labels import check_stream_weight, label_ids_of, settled_labels
from structsvm.tasks.common.stored_estimator import all_or_nothing, monitor_for
from structsvm.tasks.kernel.classifier import KernelClassifier
from structsvm.tasks.kernel.model import kernel_of


class OnlineKernelClassifier(KernelClassifier):
    """Base of the kernel classifiers whose solver takes up a point: those with `partial_fit`."""

    @with_callbacks
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One pass over a batch of new examples.

        The support patterns so far stay in the problem with their coefficients and may change or vanish; other earlier
        examples are forgotten. `result_` certifies the problem of the batch and those patterns. `max_iter` and `tol`
        have no meaning here.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            All classes, in the first call; default: those of its y. A label that is none of them is an error.
        """
        self._check_stream()
        old = getattr(self, "model_", None)
        X, y = self._validated(X, y, reset=old is None)
        if old is not None:
            self._check_kernel(old.kernel, X)
        labels = settled_labels(y, classes, None if old is None else old.labels)
        self._check_labels(labels)
        numbers = label_ids_of(y, labels)
        solver = self._stream_solver()
        weight = self._weights(sample_weight, labels, numbers)
        model = self._new_model(labels, X) if old is None else old
        monitor = monitor_for(self, X, y, 1, None, sample_weight=sample_weight)
        run = model.train_on(X, numbers, solver, sample_weight=weight, monitor=monitor)
        self._adopt(model)
        raise_if_interrupted(run)
        return self

    def _stream_solver(self):
        """The solver of one batch of a stream."""
        return self._make_solver().set_params(tol=None)

    def _check_kernel(self, kernel, X):
        """Raise ValueError if the parameters ask for another kernel; gamma="scale" is that of the first batch."""
        wanted = kernel_of(self, X)
        gamma = kernel.gamma if self.gamma == "scale" else wanted.gamma
        if (wanted.name, gamma, wanted.degree, wanted.coef0) != (
            kernel.name,
            kernel.gamma,
            kernel.degree,
            kernel.coef0,
        ):
            raise ValueError("the stream began with another kernel; set its parameters back, or fit a new model")

    def _check_stream(self):
        """Raise ValueError for parameters that streams leave no meaning."""
        validate(self, self._constraints)
        check_stream_weight(self.class_weight)
        if self.kernel == "precomputed":
            raise ValueError("partial_fit cannot work with kernel='precomputed': the kernel of two batches is unknown")
