"""SGD-QN for linear classification (thesis, chapter 3)."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm.callbacks import CallbackSupportMixin, with_callbacks
from structsvm.dual._weights import checked_array
from structsvm.kernel._kernels import Rows
from structsvm.linear.problem import LinearProblem
from structsvm.parameters import FLAG, RANDOM_STATE, validate
from structsvm.solvers.base import raise_if_interrupted
from structsvm.solvers.sgdqn import SGDQN
from structsvm.tasks.common.estimator import checked_sample_weight
from structsvm.tasks.common.labels import check_stream_weight, label_costs, label_ids_of, settled_labels
from structsvm.tasks.common.stored_estimator import StoredEstimatorMixin, all_or_nothing, monitor_for
from structsvm.tasks.kernel.classifier import CLASS_WEIGHT
from structsvm.tasks.linear.model import LinearModel


class SGDQNClassifier(StoredEstimatorMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
    _kind = "binary"
    _constraints = {
        name: SGDQN._constraints[name]
        for name in ("alpha", "loss", "method", "t0", "average", "fit_intercept", "max_iter")
    } | {"class_weight": CLASS_WEIGHT, "random_state": RANDOM_STATE, "verbose": FLAG}

    def __init__(
        self,
        alpha=1e-4,
        *,
        loss="squared_hinge",
        method="sgdqn",
        t0=None,
        average=False,
        fit_intercept=True,
        max_iter=5,
        class_weight=None,
        random_state=None,
        verbose=False,
    ):
        self.alpha = alpha
        self.loss = loss
        self.method = method
        self.t0 = t0
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
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
        validate(self, self._constraints)
        X, y = self._validated(X, y, reset=True)
        labels = np.unique(y)
        if len(labels) < 2:
            only = labels.tolist()[0]
            raise ValueError(
                f"{type(self).__name__} needs samples of 2 classes or more; y has only one class: {only!r}"
            )
        return self._train(X, y, labels, sample_weight, None, self.max_iter)

    @with_callbacks
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One pass over a batch of new examples, which goes on with weights, gains and rescaling.

        t0, if it is to be chosen, is chosen on the first batch. With ``average`` the weights are averaged over the
        batch.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            All classes, in the first call; default: those of its y. A label that is none of them is an error.
        """
        validate(self, self._constraints)
        check_stream_weight(self.class_weight)
        old = getattr(self, "model_", None)
        X, y = self._validated(X, y, reset=old is None)
        labels = settled_labels(y, classes, None if old is None else old.labels)
        return self._train(X, y, labels, sample_weight, old, 1)

    def _train(self, X, y, labels, sample_weight, old, passes):
        numbers = label_ids_of(y, labels)
        solver = SGDQN(**{name: getattr(self, name) for name in SGDQN().get_params()})
        weight = checked_sample_weight(sample_weight, len(numbers))
        costs = label_costs(self.class_weight, labels.tolist(), numbers)
        if costs is not None:
            weight = costs[numbers] * (1.0 if weight is None else weight)
        if old is not None:
            X = X.astype(old.coef.dtype)

        def fitted(run):
            seen = LinearModel(labels)
            seen.take(run.weights)
            return {"model_": seen, "classes_": labels}

        problem = LinearProblem(Rows(X), numbers, len(labels))
        monitor = monitor_for(self, X, y, passes, fitted, sample_weight=sample_weight)
        run = solver.start(problem, sample_weight=weight, base=None if old is None else old.state or {})
        run = solver.solve(problem, run=run, monitor=monitor, passes=passes)
        if not np.isfinite(run.weights).all():
            raise ValueError("the weights have overflowed: scale the features, or set a larger t0")
        model = LinearModel(labels, estimator=type(self).__name__)
        model.take(run.weights, run.result(), run.state.get_state())
        self._adopt(model)
        raise_if_interrupted(run)
        return self

    def _validated(self, X, y, *, reset):
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        check_classification_targets(y)
        return X, y

    def _adopt(self, model):
        self.model_ = model
        self.classes_ = model.labels
        self.n_features_in_ = model.n_features
        self.result_ = model.result
        self.n_iter_ = 0 if model.result is None else model.result.n_iter

    # ---- prediction, views, files ---------------------------------------------------------------

    def decision_function(self, X):
        """Scores of the classes: array (n_samples, n_classes); (n_samples,) of the second class for two."""
        scores = self._checked_model().decision_function(self._test(X))
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        """The class of highest score for each row: array (n_samples,)."""
        return self._checked_model().predict(self._test(X))

    def _test(self, X):
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])

    def _checked_model(self):
        check_is_fitted(self)
        return self.model_

    @property
    def coef_(self):
        return self._checked_model().coef

    @property
    def intercept_(self):
        return self._checked_model().intercept

    @property
    def t0_(self):
        return float(checked_array(self._checked_model().state or {}, "numbers", np.float64, (4,))[1])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
