"""SGD-QN for linear classification (thesis, chapter 3)."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from structsvm.callbacks import with_callbacks
from structsvm.dual._weights import checked_array
from structsvm.solvers.sgdqn import SGDQN
from structsvm.tasks.common.estimator import TaskEstimator, checked_sample_weight, weighted_by_class
from structsvm.tasks.common.labels import check_stream_weight, label_ids_of, settled_labels
from structsvm.tasks.common.parameters import CLASS_WEIGHT, TRAINING
from structsvm.tasks.linear.model import LinearModel

# What `validate_data` takes for training.
ACCEPTED = {"accept_sparse": "csr", "order": "C"}


class SGDQNClassifier(ClassifierMixin, TaskEstimator):
    """Linear support vector machine by stochastic gradient descent with a diagonal rescaling.

    Minimises ``alpha / 2 |w|^2 + 1/n sum_i l(y_i (<w, x_i> + b))``, where |w|^2 counts b; more than two classes one
    against the rest.

    Parameters
    ----------
    alpha, loss, method, t0, average, fit_intercept, max_iter
        As for `structsvm.solvers.SGDQN`.
    class_weight : dict or "balanced", optional
        Factor on the loss by class (default 1); "balanced": ``n_samples / (n_classes * count)``.
    random_state : int, RandomState or None
        Seeds the order of examples.
    warm_start : bool, default=False
        Whether `fit` goes on from what was learnt before, by `fit` or by `partial_fit`.
    n_jobs : int, optional
        Without effect on a product of matrices.
    checkpoint, checkpoint_every
        As for the solver.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of the type of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    t0_ : float
        The one that was used.
    result_ : Result
        With the primal objective, summed over classes; there is no dual.
    n_iter_, n_features_in_ : int

    Notes
    -----
    float32 data are trained in float32, about twice as fast. Dense rows are read once a pass, sparse ones where they
    are not zero; the regularisation comes every 16 visits, or 16 over the share of numbers that are not zero,
    and 16 times a pass at least. Large dense data are visited in runs of 16 rows: shuffle them if they are sorted.

    Examples
    --------
    >>> from structsvm.datasets import make_ill_conditioned
    >>> from structsvm.tasks import SGDQNClassifier
    >>> X, y = make_ill_conditioned(4000, 20, random_state=1)
    >>> model = SGDQNClassifier(random_state=0).fit(X[:2000], y[:2000])
    >>> bool(model.score(X[2000:], y[2000:]) > 0.8)
    True
    """

    _model_class = LinearModel
    _constraints = TRAINING | {
        name: SGDQN._constraints[name]
        for name in ("alpha", "loss", "method", "t0", "average", "fit_intercept", "max_iter")
    }
    _constraints |= {"class_weight": CLASS_WEIGHT}

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        loss: str = "squared_hinge",
        method: str = "sgdqn",
        t0: float | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        max_iter: int = 5,
        class_weight: str | dict[Any, float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.method = method
        self.t0 = t0
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 are used as they are, others become float64; sparse matrices become CSR.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's loss.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters out of range, data that are not finite or do not fit, labels of one class only, weights
            that overflow.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.
        """
        return self._train(X, y, sample_weight, metadata={"sample_weight": sample_weight})

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """One pass over a batch of new examples, which goes on with weights, gains and rescaling.

        t0, if it is to be chosen, is chosen on the first batch. With ``average`` the weights are averaged over the
        batch.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            All classes, in the first call; default: those of its y. A label that is none of them is an error.
        """
        check_stream_weight(self.class_weight)
        metadata = {"sample_weight": sample_weight}
        return self._train(X, y, sample_weight, passes=1, metadata=metadata, classes=classes)

    def _make_solver(self) -> Any:
        names = self.get_params(deep=False).keys() & SGDQN().get_params().keys()
        return SGDQN(**{name: getattr(self, name) for name in sorted(names)})

    def _prepare(self, X: Any, y: Any, sample_weight: Any, before: Any, *, classes: Any = None) -> tuple[Any, Any, Any]:
        X, y, columns = self._validated(X, y, before=before, dtype=[np.float64, np.float32], **ACCEPTED)
        check_classification_targets(y)
        labels = settled_labels(y, classes, None if before is None else before.labels)
        label_ids = label_ids_of(y, labels)
        if before is None:
            model = LinearModel(labels)
            model.columns = columns
        else:
            model, X = before, X.astype(before.coef.dtype)
        weight = checked_sample_weight(sample_weight, len(label_ids))
        return model, (X, label_ids), weighted_by_class(weight, self.class_weight, labels.tolist(), label_ids)

    # ---- prediction, views, files ---------------------------------------------------------------

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes: array (n_samples, n_classes); (n_samples,) of the second class for two."""
        model = self._fitted()
        scores = model.decision_function(self._test(model, X))
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of highest score for each row: array (n_samples,)."""
        model = self._fitted()
        return model.predict(self._test(model, X))

    def _test(self, model: Any, X: Any) -> Any:
        return self._validated(X, before=model, dtype=[np.float64, np.float32], accept_sparse="csr")[0]

    @property
    def coef_(self) -> Any:
        return self._fitted().coef

    @property
    def intercept_(self) -> Any:
        return self._fitted().intercept

    @property
    def t0_(self) -> float:
        return float(checked_array(self._fitted().state or {}, "numbers", np.float64, (4,))[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
