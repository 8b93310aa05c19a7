"""Binary classification by losses of the whole sample (Joachims 2005)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from structsvm.metrics import break_even_point, ordered_pairs, precision_at_k
from structsvm.parameters import COUNT, FLAG, NONE, Kind, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.classifier import Classifier
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_labelled, label_ids_of
from structsvm.tasks.common.parameters import OF_C, Training, check_unchanged
from structsvm.tasks.common.solver import AUTO, make_solver
from structsvm.tasks.common.units import check_scale, later_rows, settle_sizes
from structsvm.tasks.ranking.model import SAMPLE_LOSSES, SampleModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from structsvm.arrays import Floats, LabelArray, Matrix, MatrixLike, Weights
    from structsvm.tasks.common.examples import LabeledRows
    from structsvm.tasks.common.model import TaskModel


@declared
class MultivariateClassifier(Training, Classifier):
    """Linear classifier of two classes that minimises a loss of the whole sample, such as 1 - F1 (Joachims 2005).

    Minimises ``1/2 |w|^2 + C n xi``, where for all labellings (for "roc_area": orders) y' of the n training rows

        <w, Psi(y) - Psi(y')> >= loss(y, y') - xi,     Psi(y) = 1/n sum of the rows that y finds,

    and the second class of `classes_` is the one to be found. The sample is one example; its most violated labelling is
    found in O(n log n), and cutting planes need a few dozen of them for any n. There is no `partial_fit`: the loss of a
    sample is no sum over batches of it.

    Parameters
    ----------
    loss : {"roc_area", "f1", "error", "prec_at_k", "prbep"}, default="roc_area"
        1 - area under the ROC curve; 1 - F1; the share of wrong rows (the linear SVM, with the same C); 1 - precision
        among the k best; the same with k = the number of rows of the class, where precision equals recall.
    k : int, optional
        For "prec_at_k", of the training rows.
    C : float, "auto" or None, default="auto"
        Weight of the loss, times the number of rows. "auto": chosen on held-out rows (`validation_`), by the loss's own
        metric, see `structsvm.tasks.common.selection`; 0.1 with fewer than 20 rows. None: 0.1. A solver given as an
        object has its own. With "f1", "prbep" and "prec_at_k" their own hinge is compared with that of "roc_area"
        (``validation_["losses"]``), which still learns if classes overlap so much that no w brings the bound of their
        own below 1, and is used unless their own is better by more than a standard error.
    solver : {"cutting_plane", "larank", "frank_wolfe"} or Solver, default="cutting_plane"
    fit_intercept : bool, default=True
        With "f1" and "error" a bias, regularised like the weights. The other losses only order rows: instead there is a
        threshold that finds as many rows as belong to the class, among the held-out rows on which C was chosen, else
        among the training rows; False: 0. With "f1" held-out rows add the threshold of their best F1, or of
        the best expected one where few of them belong to the class.
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero arrays, with variance 1 each, so units make no difference.
        `coef_` is for the columns as given, C and `result_` for the scaled ones.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes from the last training.
    n_jobs : int, optional
        Threads for prediction, -1 for one per processor.
    checkpoint : path-like, optional
        File that stores the state of training after every round (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    C_ : float
    validation_ : dict
        The table from which "auto" chose C and the hinge, and the threshold: of scores above their mean, over the norm
        of the weights.
    result_ : Result
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.tasks import MultivariateClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 5))
    >>> y = X[:, 0] + X[:, 1] > 2.0
    >>> model = MultivariateClassifier("f1", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    loss: Literal["roc_area", "f1", "error", "prec_at_k", "prbep"] = parameter(
        Options(*SAMPLE_LOSSES), default="roc_area", kw_only=False
    )
    k: int | None = parameter(COUNT, NONE, default=None)
    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO)
    solver: str | Solver = parameter(
        Options("cutting_plane", "larank", "frank_wolfe"), Kind(Solver, "a Solver"), default="cutting_plane"
    )
    fit_intercept: bool = parameter(FLAG, default=True)
    standardize: bool = parameter(FLAG, default=True)

    _model_class = SampleModel
    _is_binary = True
    probability = False

    def _make_solver(self, before: TaskModel[LabeledRows] | None = None) -> Solver:
        return make_solver(self, closes_gap=True)  # there is one example: a round asks the oracle once

    def _start(self, X: Matrix, labels: LabelArray, before: SampleModel | None) -> tuple[SampleModel, Matrix]:
        model = before
        if model is None:
            model = SampleModel(X.shape[1], self.loss, self.k, labels=labels, fit_intercept=bool(self.fit_intercept))
        else:
            check_unchanged(self, model, ("loss", "k"))
        return model, X

    def _prepare(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        before: TaskModel[LabeledRows] | None,
        *,
        classes: Iterable[Hashable] | None = None,
    ) -> tuple[SampleModel, LabeledRows]:
        if (self.loss == "prec_at_k") != (self.k is not None):
            raise ValueError(
                f"The 'k' parameter belongs to loss='prec_at_k', which needs it. Got k={self.k!r}, loss={self.loss!r}."
            )
        model, examples = super()._prepare(X, y, sample_weight, before, classes=classes)
        X, label_ids, weight = examples.rows, examples.label_ids, examples.weight
        check_copies(weight)
        if before is None:
            check_scale(X)
            if self.standardize:
                model.set_units(X, weight)
            settle_sizes(model, X)
        else:
            X = later_rows(model, X, is_cut=self.standardize)
        counts = np.bincount(label_ids, weights=weight, minlength=2)
        if not counts.all():
            raise ValueError(
                f"y has only one class, {model.labels.tolist()[counts.argmax()]!r}: a loss of the sample needs two"
            )
        if self.k is not None and self.k > counts.sum():
            raise ValueError(f"k = {self.k} rows are to be found of {counts.sum():g}")
        model.share = (self.k or 0) / counts.sum()
        return model, replace(examples, rows=model.rows(X))

    # ---- what was learnt ------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        model = self._fitted()
        return model.coef[np.newaxis]

    @property
    def intercept_(self) -> Floats:
        return np.array([self._fitted().intercept])

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the loss's own metric: F1, accuracy, precision among the k best, break-even point, or ROC area.

        Raises
        ------
        ValueError
            If there are fewer than k rows.
        """
        model = self._fitted()
        scores = self.decision_function(X)
        check_labelled(y)
        ids = label_ids_of(np.asarray(y), model.labels)
        if len(ids) != len(scores):
            raise ValueError(f"X has {len(scores)} samples, y has {len(ids)}")
        weight = checked_sample_weight(sample_weight, len(ids))
        weight = np.ones(len(ids)) if weight is None else weight
        if model.loss == "error":
            return float(np.average((scores > 0.0) == ids, weights=weight))
        if model.loss == "f1":
            found = scores > 0.0
            total = weight @ (1.0 * found + ids)
            return float(2.0 * (weight @ (found * ids)) / total) if total > 0.0 else 0.0
        check_copies(weight)
        copies = np.repeat(np.arange(len(ids)), weight.astype(np.int64))
        ids, scores = ids[copies], scores[copies]
        if model.loss == "roc_area":
            return ordered_pairs(ids, scores)
        return precision_at_k(ids, scores, model.k) if model.k else break_even_point(ids, scores)


def check_copies(weight: Weights | None) -> None:
    """Raise ValueError unless the weights of rows are integers: how often each counts."""
    if weight is not None and np.modf(weight)[0].any():
        i = int(np.flatnonzero(np.modf(weight)[0])[0])
        raise ValueError(
            "sample_weight says how often a row counts in a loss of the whole sample: whole numbers are wanted, "
            f"got {weight[i]:g} for row {i}"
        )
    if weight is not None and weight.sum() >= 2**31:
        raise ValueError(f"sample_weight makes {weight.sum():g} rows of {len(weight)}: more than 2**31")
