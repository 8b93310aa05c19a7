"""SGD-QN for linear classification (thesis, chapter 3)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.parameters import Seed, declared
from structsvm.solvers.linear.sgdqn import SGDQN, SGDQNParameters
from structsvm.tasks.common.classifier import Classifier
from structsvm.tasks.common.labels import check_stream_weight
from structsvm.tasks.common.parameters import ClassWeight, MachineRunning, Standardize
from structsvm.tasks.linear.model import LinearModel

if TYPE_CHECKING:
    from structsvm.arrays import Floats, LabelArray, Matrix, MatrixLike


@declared
class SGDQNClassifier(SGDQNParameters, ClassWeight, Standardize, Seed, MachineRunning, Classifier):
    """Linear support vector machine by stochastic gradient descent with a diagonal rescaling.

    Minimises ``alpha / 2 |w|^2 + 1/n sum_i l(y_i (<w, x_i> + b))``, where |w|^2 counts b, and n no example of weight 0;
    more than two classes one against the rest.

    Parameters
    ----------
    alpha, loss, method, t0, average, fit_intercept, max_iter
        As for `structsvm.solvers.SGDQN`.
    class_weight : dict or "balanced", optional
        Factor on the loss by class (default 1); "balanced": ``n_samples / (n_classes * count)``.
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero arrays, with mean 0 and variances that sum to 1: equal ones if
        that brings examples of one class together (by nearest neighbours), otherwise in the given proportions. `coef_`
        and `intercept_` are for the columns as given, alpha and `result_` for the scaled ones. The first `fit` or batch
        decides; with fewer than 20 rows columns are used as given.
    random_state : int, RandomState or None
        Seeds the order of examples.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model, of `fit` or `partial_fit`.
    n_jobs : int, optional
        Threads for prediction and, with three classes or more, for training, -1 for one per processor; weights and
        scores do not depend on it.
    checkpoint
        As for the solver.
    probability : bool, default=False
        Fit a temperature for `predict_proba` on held-out examples: costs about one more training, on small data five.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of the type of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    t0_ : float
        The one that was used; 0 if training was interrupted before one was chosen.
    result_ : Result
        With the primal objective, summed over classes; there is no dual.
    n_iter_, n_features_in_ : int

    Notes
    -----
    float32 data are trained in float32, which is faster. Dense rows are read once per pass, of sparse ones the
    nonzeros; the regularisation is applied every 16 visits, or 16 over the share of nonzeros, and at least 16 times per
    pass. Large dense data are visited in runs of 16 rows: shuffle them if they are sorted.

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
    _solver_class = SGDQN

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch of new examples, from the current weights, gains and rescaling.

        t0, unless given, is chosen on the first batch. With ``average`` the weights are averaged over the
        batch.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            All classes, in the first call; default: those of its y. Any other label is an error.
        """
        check_stream_weight(self.class_weight)
        metadata = {"sample_weight": sample_weight}
        return self._train(X, y, sample_weight, passes=1, metadata=metadata, classes=classes)

    def _start(self, X: Matrix, labels: LabelArray, before: LinearModel | None) -> tuple[LinearModel, Matrix]:
        return (LinearModel(labels), X) if before is None else (before, X.astype(before.coef.dtype, copy=False))

    # ---- views ----------------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        return self._fitted().coef

    @property
    def intercept_(self) -> Floats:
        return self._fitted().intercept

    @property
    def t0_(self) -> float:
        return float(self._fitted().state["numbers"][1])
