"""Learning to rank the rows of queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.parameters import declared
from structsvm.structures.queries import query_bounds
from structsvm.tasks.common.classifier import ACCEPTED
from structsvm.tasks.common.estimator import TaskEstimator
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.inspection.confidence import without
from structsvm.tasks.common.inspection.inputs import depth, refuse
from structsvm.tasks.common.labels import check_no_classes, check_no_dates
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.ranking.model import RankerModel, checked_grades, prepare
from structsvm.tasks.ranking.parameters import RankerParameters

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from structsvm.arrays import Floats, MatrixLike
    from structsvm.solvers import Solver
    from structsvm.tasks.common.inspection.weights import Explanation
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.ranking.model import Queries


@declared
class Ranker(RankerParameters, TaskEstimator):
    """Linear scores that rank the rows of each query by their grades.

    Minimises ``1/2 |w|^2 + C sum_q xi_q``, where for all rankings (for "pairs": orders of pairs) y' of query q

        <w, Psi(y_q) - Psi(y')> >= loss(y_q, y') - xi_q.

    Parameters
    ----------
    loss : {"pairs", "map", "ndcg"}, default="ndcg"
        "pairs": the share of pairs of different grades in the wrong order, and Psi the mean of the pairs' differences,
        so that xi is the mean of ``max(0, 1 - (s_better - s_worse))`` (SVMrank: Joachims 2006). "map": 1 - average
        precision, with the same Psi, grades > 0 are relevant (Yue and others 2007). "ndcg": 1 - normalised discounted
        cumulative gain, and Psi the sum of rows times discounts (Le and Smola 2007; Chakrabarti and others 2008).
    k : int, optional
        First places that "ndcg" counts; None: all.
    C : float, "auto" or None, default="auto"
        Weight of a query's loss. "auto": chosen on held-out queries (`validation_`), by the loss's own metric, the
        least within 0.3 standard errors of the best, see `structsvm.tasks.common.selection`; 0.1 with fewer than 20
        queries, and in `partial_fit` before any `fit`. None: 0.1. A solver given as an object has its own.
    solver : {"larank", "passive_aggressive", "cutting_plane", "frank_wolfe", "perceptron"} or Solver, default="larank"
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero arrays, with variance 1 each, so units make no difference.
        `coef_` is for the columns as given, C and `result_` for the scaled ones.
    max_iter, tol, random_state
        As for the solver. None: the solver's own; "larank" goes on until the gap is below 0.1 % of what training gains
        over w = 0, for at most 200 passes.
    warm_start : bool, default=False
        Whether `fit` resumes from the last training.
    n_jobs : int, optional
        Jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    C_ : float
    validation_ : dict
        The table from which "auto" chose C.
    result_ : Result
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> from structsvm.tasks import Ranker
    >>> X, grades = [[3.0, 1.0], [2.0, 0.0], [1.0, 2.0], [5.0, 1.0], [4.0, 3.0]], [2, 1, 0, 1, 0]
    >>> model = Ranker(C=1.0, random_state=0).fit(X, grades, group=[3, 2])
    >>> model.predict(X[:3]).argsort().tolist()
    [2, 1, 0]
    """

    _confidence = without
    _model_class = RankerModel
    _reader = "structures.queries.read_queries"
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Train on rows, their grades, and their queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows of a query follow one another.
        y : array-like of shape (n_rows,)
            Grades, more is better; for "ndcg" from 0 to 50.
        sample_weight : array-like of shape (n_rows,), optional
            Factor on C, the same for all rows of a query.
        group : array-like of int, optional
            Rows of each query, as LightGBM and XGBoost have it; ``[n_rows]`` if all are of one.
        qid : array-like of shape (n_rows,), optional
            Each row's query. One of `group` and `qid` must be given.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, values that are not finite, rows without queries or that do not fit them, and
            queries none of which has different grades.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight, group=group, qid=qid)

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch of queries, starting from the current weights; arguments are those of `fit`."""
        check_no_classes(classes, "grades are numbers")
        return self._train(X, y, sample_weight, passes=1, group=group, qid=qid)

    def _make_solver(self, before: TaskModel[Queries] | None = None) -> Solver:
        return make_solver(self, closes_gap=True)  # as LaRank's passes here, see `RankerModel.make_patient`

    def _prepare(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        before: RankerModel | None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> tuple[RankerModel, Queries]:
        check_no_dates(y)
        X, y, columns = self._validated(X, y, before=before, y_numeric=True, **ACCEPTED)
        grades = np.asarray(y, dtype=np.float64)
        bounds = query_bounds(len(grades), group, qid)
        weight = checked_sample_weight(sample_weight, len(grades))
        model, queries = prepare(self, X, grades, bounds, before, weight)
        if before is None:
            model.columns = columns
        if weight is not None:
            starts = bounds[:-1]
            if (np.maximum.reduceat(weight, starts) != np.minimum.reduceat(weight, starts)).any():
                raise ValueError("sample_weight must be the same for all rows of a query")
            queries = replace(queries, weight=weight[starts])
        return model, queries

    # ---- prediction -----------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        return self._fitted().coef

    def predict(self, X: MatrixLike) -> Floats:
        """Return scores, array (n_rows,): the rows of a query are ranked from the highest to the lowest."""
        model = self._fitted()
        return model.scores(self._rows_of_prediction(X, model, **ACCEPTED))

    def explain(self, x: MatrixLike) -> Explanation:
        """Why one row of a query is ranked first and not the next one: an `Explanation` of their numbers, to print.

        x is the matrix of the query's rows; ValueError if there is one only, and for a list of such matrices.
        """
        model = self._fitted()
        if depth(x) > 2:
            refuse(x)
        return model.explain(self._rows_of_prediction(x, model, **ACCEPTED))

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> float:
        """Return the mean over queries of what the loss is of: ordered pairs, average precision, or NDCG.

        Queries whose rows all have one grade are left out: NaN if there are no others. See
        `structsvm.metrics.ranking_scores` for all three.
        """
        model, scores = self._fitted(), self.predict(X)
        grades = checked_grades(np.asarray(y, dtype=np.float64), model.loss)
        if grades.shape != scores.shape:
            raise ValueError(f"X has {len(scores)} rows, y has {grades.shape} grades")
        weight = checked_sample_weight(sample_weight, len(grades))
        bounds = query_bounds(len(grades), group, qid)
        values = model.metrics(grades, scores, bounds)
        says = ~np.isnan(values)
        if not says.any():
            return float("nan")
        share = np.ones(len(values)) if weight is None else weight[bounds[:-1]]
        if not share[says].any():
            return float("nan")
        return float(np.average(values[says], weights=share[says]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
