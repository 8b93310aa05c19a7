"""Classification into sets of labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.oracles.label_sets import MOST_EXACT, MOST_RELATED, all_pairs, chow_liu
from structsvm.parameters import FLAG, Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.bases import ClassifierMixin
from structsvm.tasks.common.estimator import TaskEstimator, share_of
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.inspection.confidence import of_set
from structsvm.tasks.common.parameters import MARK, OF_C, OF_SOLVER, Training, check_unchanged
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.common.units import Units, check_scale, later_rows, settle_sizes
from structsvm.tasks.multilabel.model import INTERACTIONS, LOSSES, LabelSets, MultilabelModel
from structsvm.tasks.multilabel.sets import read_sets, without_unseen

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from structsvm.arrays import Floats, Integers, Matrix, MatrixLike
    from structsvm.tasks.multilabel.model import SetsLike


@declared
class MultilabelClassifier(Training, ClassifierMixin, TaskEstimator):
    """Linear classifier whose outputs are sets of labels, with weights for pairs of labels (Finley and Joachims 2008).

    A set y, as indicators, scores ``sum_j <w_j, x> y_j + sum_{(j, k)} t_jk y_j y_k``. Minimises
    ``1/2 |w|^2 + C sum_i xi_i`` over labels' and pairs' weights with margin rescaling by the loss.

    Parameters
    ----------
    loss : {"hamming", "subset", "f1", "log"}, default="hamming"
        The number of wrong labels; whether one is wrong; 1 - F1 of each set (1 where both are empty), the mean over
        examples being what "samples" averages are in scikit-learn. "log": the log loss of whole sets, a conditional
        random field (Ghamrawi and McCallum 2005), wherever sums over all sets are exact.
    interactions : {"auto", "none", "tree", "full"}, default="auto"
        Pairs that have a weight: none, those of the Chow-Liu tree of the training labels, or all; "auto": all up to 20
        labels, and the tree beyond that. Inference is exact, except beyond 20 labels with "full": there training with
        the Hamming loss uses the linear relaxation, whose primal bounds the true one, and a search completes its
        integral labels to predictions. With the other losses ("f1" also with "tree") training searches, too, and no gap
        is claimed. More than 4096 labels do not interact.
    C : float, "auto" or None, default="auto"
        Weight of the sum of losses. "auto": chosen on held-out rows (`validation_`), by the loss's own metric, see
        `structsvm.tasks.common.selection`; 0.1 with fewer than 20 rows, and in `partial_fit` before any `fit`. None:
        0.1. A solver given as an object has its own.
    solver : {"larank", "passive_aggressive", "cutting_plane", "frank_wolfe", "perceptron"} or Solver, default="larank"
    fit_intercept : bool, default=True
        Give each label a bias, regularised like the weights.
    probability : bool, default=False
        Whether training on a margin fits the temperature that `predict_proba` needs: at the end, on held-out rows.
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero arrays, with mean 0 and equal variances that sum to
        1, so units make no difference, and a row weighs as much as a pair of labels. `coef_` and `intercept_` are
        for the columns as given, C and `result_` for the scaled ones.
    unknown : object, default="auto"
        The mark of rows of which nothing is known, in the place of a set; "auto": -1, and training says how many there
        are. None: there is none, and -1 may be a label. None and -100 are always such rows.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes the last one, on the same data.
    n_jobs : int, optional
        Jobs for the rounds of batch solvers, for the certificate, and for prediction; -1: all cores.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    edges_ : ndarray of shape (n_edges, 2)
        Pairs of classes, by their places in `classes_`.
    interactions_ : ndarray of shape (n_edges,)
        Their weights.
    C_ : float
    validation_ : dict
        The table from which "auto" chose C.
    temperature_ : float or None
        Divisor of the scores for probabilities; 1 with ``loss="log"``, None if unknown.
    result_ : Result
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> from structsvm.tasks import MultilabelClassifier
    >>> X = [[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.1]]
    >>> model = MultilabelClassifier(C=10.0, random_state=0).fit(X, [{"a", "b"}, {"a", "b"}, {"c"}, {"c"}])
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]])
    [('a', 'b'), ('c',)]
    """

    loss: Literal["hamming", "subset", "f1", "log"] = parameter(Options(*LOSSES), default="hamming", kw_only=False)
    interactions: Literal["auto", "none", "tree", "full"] = parameter(Options(*INTERACTIONS), default=AUTO)
    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    fit_intercept: bool = parameter(FLAG, default=True)
    standardize: bool = parameter(FLAG, default=True)
    probability: bool = parameter(FLAG, default=False)
    unknown: object = parameter(*MARK, default=AUTO)

    _confidence = of_set
    _model_class = MultilabelModel
    _takes_one_label = True
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: MatrixLike, y: SetsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows and their sets of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array, data frame or sparse matrix of shape (n_samples, n_classes), or list of n_samples collections
            A matrix of 0 and 1, with -1, -100 or NaN for an unknown label (dense); the classes are the columns' names,
            or 0, 1, ... Or the sets of labels, None for an unknown one; the classes are then the labels in them.
            Unknown labels are completed in training (`structsvm.LatentSVM`).
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each row's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, values that are not finite, X and y that do not match.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: SetsLike,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current weights w0.

        The first call fixes the labels (`classes` names those that come later) and their tree. The batch's own problem
        is solved around the current weights: minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies that.
        """
        return self._train(X, y, sample_weight, passes=1, classes=classes)

    def calibrate(self, X: MatrixLike, y: SetsLike) -> Self:
        """Fit `temperature_` to labelled rows that the model was not trained on, by their likelihood."""
        return self._calibrated(self._checked(X), y)

    def _prepare(
        self,
        X: MatrixLike,
        y: SetsLike,
        sample_weight: ArrayLike | None,
        before: MultilabelModel | None,
        *,
        classes: Iterable[Hashable] | None = None,
    ) -> tuple[MultilabelModel, LabelSets]:
        X, columns = self._validated(X, before=before, accept_sparse="csr", dtype=np.float64)
        labels, form, Y = read_sets(y, None if before is None else before.labels, classes, self.unknown)
        if not labels:
            raise ValueError("y holds no label")
        if X.shape[0] != len(Y):
            raise ValueError(f"X has {X.shape[0]} samples, y has {len(Y)}")
        if (Y < 0).all():
            raise ValueError("nothing is known of any row")
        weight = checked_sample_weight(sample_weight, len(Y))
        model = before
        if model is None:
            interactions = self.interactions
            check_scale(X)
            if interactions == "auto":
                interactions = "full" if len(labels) <= MOST_EXACT else "tree"
                interactions = interactions if len(labels) <= MOST_RELATED else "none"
            elif interactions != "none" and len(labels) > MOST_RELATED:
                raise ValueError(
                    f"The 'interactions' parameter of MultilabelClassifier must be 'none' for more than {MOST_RELATED} "
                    f"labels. Got {interactions!r} and {len(labels)} labels."
                )
            edges: ArrayLike = ()
            if interactions != "none":
                edges = all_pairs(len(labels)) if interactions == "full" else chow_liu(Y, weight)
            model = MultilabelModel(
                labels, X.shape[1], edges, self.loss, has_intercept=bool(self.fit_intercept), form=form
            )
            model.columns = columns
            if self.standardize:
                model.units = Units.of_matrix(X, model.has_intercept, weight, short=True)
            settle_sizes(model, X)
        else:
            check_unchanged(self, model, ("loss", "interactions"))
            X = later_rows(model, X, is_cut=self.standardize)
        return model, LabelSets(model.rows(X), Y, weight=weight)

    # ---- what was learnt ------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        model = self._fitted()
        return model.table[: model.columns["n_features_in_"]].T

    @property
    def intercept_(self) -> Floats:
        model = self._fitted()
        return model.table[-1] if model.has_intercept else np.zeros(len(model.labels))

    @property
    def edges_(self) -> Integers:
        return self._fitted().oracle.edges

    @property
    def interactions_(self) -> Floats:
        model = self._fitted()
        return model.weights[len(model.weights) - len(model.oracle.edges) :]

    # ---- prediction -----------------------------------------------------------------------------

    def _checked(self, X: MatrixLike) -> Matrix:
        return self._rows_of_prediction(X, self._fitted(), accept_sparse="csr", dtype=np.float64)

    def decision_function(self, X: MatrixLike) -> Floats:
        """Return per label the score of the best set with it minus that of the best one without.

        Array (n_samples, n_classes): positive where `predict` includes the label.
        """
        return self._fitted().margins(self._checked(X), self._threads)

    def predict_proba(self, X: MatrixLike) -> Floats:
        """Return the probability of each label: array (n_samples, n_classes).

        The sum over the sets that contain it, each with a probability proportional to the exponential of its score over
        `temperature_`: exact, over all sets. With all pairs of more than 20 labels that is impossible, and it is, per
        label, the logistic function of `decision_function` over `temperature_`.

        Raises
        ------
        ValueError
            Without a temperature: train with ``probability=True`` or ``loss="log"``, or call `calibrate`.
        """
        return self._fitted().proba(self._checked(X), self._threads)

    def predict(self, X: MatrixLike) -> Any:
        """Return the set of highest score per row, in the form of y: a matrix, or a list of tuples."""
        return self._fitted().predict(self._checked(X), self._threads)

    def score(self, X: MatrixLike, y: SetsLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose whole set is right, the subset accuracy.

        Labels that y does not know are left out, and so are rows about which nothing is known. A row with a label that
        training never saw is wrong.
        """
        model = self._fitted()
        y, is_unseen = without_unseen(y, model.labels)
        _, _, Y = read_sets(y, model.labels, unknown=self.unknown)
        found = model.indicators(self._checked(X), self._threads)
        if len(found) != len(Y):
            raise ValueError(f"X has {len(found)} samples, y has {len(Y)}")
        says = (Y >= 0).any(axis=1)
        if not says.any():
            raise ValueError("y tells nothing of any example")
        return share_of(((found == Y) | (Y < 0)).all(axis=1) & ~is_unseen, says, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        return tags
