"""Linear scores of rows, learnt by losses of groups of them: what ranker and classifier share, and both models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from structsvm._warnings import LEAST_INPUTS, AdviceWarning, warn
from structsvm.features.dense import DenseRows
from structsvm.features.matrices import is_sparse
from structsvm.metrics import average_precision, ndcg, ordered_pairs
from structsvm.metrics._counts import IGNORED
from structsvm.oracles.ranking import Groups, RankingOracle
from structsvm.solvers import CuttingPlane, LaRank
from structsvm.solvers.cutting_plane import CuttingPlaneRun
from structsvm.solvers.run import DualRun
from structsvm.stored_values import Array, Count, Flag, OneOf, Record, Stored
from structsvm.tasks.common.examples import Examples, LabeledRows
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.labels import label_array
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import check_unchanged
from structsvm.tasks.common.selection.choice import Choice, ChosenLoss, ChosenThreshold
from structsvm.tasks.common.selection.search import Held, LossSearch, PatientRun, Search, difference, total_variance
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import (
    UNITS,
    Units,
    check_scale,
    cut_rows,
    later_rows,
    rows_in,
    settle_sizes,
    undone,
    units_of,
)
from structsvm.tasks.ranking.thresholds import threshold_of_count, threshold_of_f1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, Weights
    from structsvm.features.sparse import SparseRows
    from structsvm.oracles._ranking import GroupProblem
    from structsvm.solvers import Solver
    from structsvm.solvers.choosing import Row
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.selection.choice import Best
    from structsvm.tasks.common.selection.search import Part
    from structsvm.tasks.common.solver import Settings
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.ranking.parameters import RankerParameters

# The examples: queries, or a sample of rows.
Ranked = TypeVar("Ranked", bound=Examples)

RANKER_LOSSES = ("pairs", "map", "ndcg")
SAMPLE_LOSSES = ("f1", "error", "prec_at_k", "prbep", "roc_area")
# Losses that count a row as found where its score is positive, and not by the order of scores.
WITH_INTERCEPT = ("f1", "error")
# Losses whose bound is below 1 for hardly any weights where classes overlap.
STEEP = ("f1", "prbep", "prec_at_k")

# Where the path of C begins, in units of 1 / scale. On a sample: most values on the path, and how many of them may be
# worse than the best, as the losses of a few held-out rows jump.
LOWEST_OF_RANKING, LONGEST_OF_SAMPLE, PATIENCE_OF_SAMPLE = 0.03, 11, 4
# With fewer rows of the class than FEW_POSITIVES, each fifth of the rows is held out in turn.
FEW_POSITIVES, TURNS = 500, 5
# Rounds over each C on the path at least, unless the relative gap is SOLVED before: few cuts say little of all rows.
LEAST_ROUNDS, SOLVED = 200, 5e-3
# Scores of held-out queries vary more than those of neighbouring values of C: with few queries there are so many
# divisions, and the least value is chosen whose score is within so many standard errors of the best.
DIVISIONS_OF_QUERIES, LEEWAY_OF_QUERIES = 3, 0.3
# Over queries: most passes with each C, and the gap at which they end, as a share of the gain over w = 0. With a wider
# one the scores of other queries depend on the seed.
MOST_PASSES, SOLVED_OF_GAIN = 200, 1e-3


def record_of(losses: tuple[str, ...]) -> Record:
    """Return the record of models with these losses."""
    return Record({
        "loss": OneOf(losses),
        "k": Count(1, null=True),
        "n_features_in": Count(1, of="n_features"),
        "weights": Array("f8", ("n_weights",)),
        "units": UNITS,
    })  # fmt: skip


def primal_of_zero(run: DualRun) -> float:
    """The primal objective at w = 0 of the problem that a run solves."""
    return float(run.primal_at(np.zeros_like(run.state.weights)))


class PatientRounds(PatientRun, CuttingPlaneRun):
    """Rounds until the gap is closed."""

    least_passes, solved = LEAST_ROUNDS, SOLVED

    @property
    def is_at_zero(self) -> bool:
        """Whether w = 0 solves the problem as well as the weights do."""
        most = primal_of_zero(self)
        return bool(most - self.dual <= self.solved * most)


class PatientQueries(PatientRun, DualRun):
    """Passes until the gap is small beside what training gains over w = 0.

    With a small C the primal hardly falls from its value at w = 0: a gap that is small beside it says nothing.
    """

    least_passes, solved = MOST_PASSES, SOLVED_OF_GAIN

    @cached_property
    def at_zero(self) -> float:
        return primal_of_zero(self)

    @property
    def remaining(self) -> float:
        gain = self.at_zero - self.dual
        return max(self.primal - self.dual, 0.0) / gain if gain > 0.0 else 0.0


class SampleSearch(Search):
    """The choice of C, and of the threshold on the held-out rows.

    Attributes
    ----------
    has_rival : bool
        Whether another bound is tried beside this steep one. Where w = 0 solves it, weights are what is left of a
        training's way there, and those of the last training, on all rows, are others: their score is 0.
    """

    has_rival = False

    @property
    def loss(self) -> str:
        return self.model.bound

    def _scores(self, parts: Sequence[Part]) -> Held:
        held = super()._scores(parts)
        if self.has_rival and all(part.run.is_at_zero for part in parts):
            return held._replace(numerator=np.zeros_like(held.numerator))
        return held

    def _is_blank(self, row: Row) -> bool:
        return super()._is_blank(row) and not self.has_rival

    def keep(self) -> None:
        super().keep()
        rows = judged_rows(self.parts) if self.model.has_threshold else None
        threshold_of = threshold_of_f1 if self.model.loss == "f1" else threshold_of_count
        self.others = () if rows is None else (ChosenThreshold(threshold_of(*rows)),)


class BoundSearch(LossSearch):
    """The choice of a hinge: the steep one, which is first, where held-out rows are surely predicted better with it.

    With few rows of the class its C is one of several far apart that are equally good on them by chance.
    """

    def _preferred(self, losses: Mapping[str, Best]) -> Search:
        steep, smooth = self.searches
        gain, error = difference(smooth.held, steep.held)
        return steep if gain > error else smooth


def judged_rows(parts: Sequence[Part]) -> tuple[Floats, NDArray[np.bool_], Weights] | None:
    """``(scores, labels, weights)`` of held-out rows; None: a model's weights are 0.

    Scores are above the mean of the rows of training, over the norm of the weights: a threshold of one model's is then
    one of another's.
    """
    found = []
    for part in parts:
        size = float(np.linalg.norm(part.model.weights))
        if size == 0.0:
            return None
        others = part.others
        scores = (part.model.scores_of(others.rows) - part.model.mean_score(part.problem)) / size
        weight = np.ones(len(scores)) if others.weight is None else others.weight
        found.append((scores, others.label_ids > 0, weight))
    scores_of, positive, weights = zip(*found, strict=True)
    return np.concatenate(scores_of), np.concatenate(positive), np.concatenate(weights)


class GroupModel(TaskModel[Ranked]):
    """A weight for each feature, that of an intercept last.

    Attributes
    ----------
    loss : str
    k : int or None
        As the oracle has it.
    has_intercept : bool
    bound : str
        The loss whose hinge is minimised.
    units : Units or None
        In which weights are learnt.
    weights : ndarray of shape (n_features + has_intercept,), float64
    """

    def __init__(self, n_features: int, loss: str, k: int | None = None, *, has_intercept: bool = False) -> None:
        super().__init__()
        self.loss, self.k, self.has_intercept = loss, k, has_intercept
        self.bound = loss
        self.units: Units | None = None
        self.weights = np.zeros(n_features + has_intercept)
        self.columns = {"n_features_in_": n_features}

    def weight_table(self) -> WeightTable:
        labels = getattr(self, "labels", None)
        label = None if labels is None else list(labels)[-1]
        return WeightTable(self.name_columns(self.n_features), [label], self.coef[:, np.newaxis])

    @property
    def n_features(self) -> int:
        return len(self.weights) - self.has_intercept

    @property
    def own_weights(self) -> Floats:
        """Weights of columns as given, and that of an intercept."""
        return undone(self.units, self.weights[:, np.newaxis])[:, 0]

    @property
    def coef(self) -> Floats:
        return self.own_weights[: self.n_features]

    @property
    def intercept(self) -> float:
        return float(self.own_weights[-1]) if self.has_intercept else 0.0

    def search_of_loss(self, examples: Ranked, solver: Solver) -> Search:
        search = super().search_of_loss(examples, solver)
        search.lowest = LOWEST_OF_RANKING
        return search

    def oracle(self, k: int | None) -> RankingOracle:
        return RankingOracle(len(self.weights), self.bound, k)

    def rows(self, X: Matrix) -> SparseRows | DenseRows:
        """A matrix as rows in units, with an intercept if there is one."""
        return rows_in(self.units, X, self.has_intercept)

    def set_units(self, X: Matrix, weight: Weights | None = None) -> None:
        """Standardise dense columns."""
        self.units = Units.of_matrix(X, self.has_intercept, weight)

    def scores(self, X: Matrix) -> Floats:
        """Scores of the rows of a matrix."""
        return np.asarray(cut_rows(self.units, X) @ self.coef) + self.intercept

    def scores_of(self, rows: SparseRows | DenseRows) -> Floats:
        """Scores of encoded rows, without a threshold."""
        if isinstance(rows, DenseRows):
            d = rows.values.shape[1]
            return rows.values @ self.weights[:d] + self.weights[d:].sum()
        matrix = csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows), len(self.weights)))
        return matrix @ self.weights

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        n_features, found = stored.n_features_in, stored.arrays()
        if len(found["weights"]) - n_features not in (0, 1):  # before there is a model of that size
            raise ValueError(f"array 'weights' has {len(found['weights'])} numbers for {n_features} features")
        model = cls.untrained(n_features, stored)
        model.weights = stored.arrays(n_weights=len(model.weights))["weights"]
        model.units = units_of(stored.units, n_features)
        return model

    @classmethod
    def untrained(cls, n_features: int, stored: Stored) -> Self:
        """A model as the header of a file describes it."""
        return cls(n_features, stored.loss, stored.k)


@dataclass(frozen=True, eq=False)
class Queries(Examples):
    """Queries: groups of rows with grades.

    Attributes
    ----------
    rows : Groups
    grades : ndarray of shape (n_rows,)
    """

    rows: Groups
    grades: NDArray[np.float64]

    def take(self, chosen: NDArray[np.intp]) -> Self:
        rows, places = self.rows.take(chosen)
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, rows=rows, grades=self.grades[places], weight=weight)


class RankerModel(GroupModel[Queries]):
    """A model of the grades of rows within their queries."""

    kind = "ranking"
    estimator = "Ranker"
    record = record_of(RANKER_LOSSES)

    def settle(self, job: Job[Queries]) -> None:
        if job.passes is None:
            self.make_patient(job.solver)

    def search_of_loss(self, examples: Queries, solver: Solver) -> Search:
        search = super().search_of_loss(examples, solver)
        search.repeats, search.leeway = DIVISIONS_OF_QUERIES, LEEWAY_OF_QUERIES
        self.make_patient(search.solver)
        return search

    def make_patient(self, solver: Solver) -> None:
        """Let LaRank, where it is named and its passes are left open, go on until the gap is closed."""
        is_named = isinstance(self.params.get("solver", "larank"), str)
        if is_named and type(solver) is LaRank and solver.tol is None and solver.max_iter is None:
            solver.run_type, solver.usual_passes, solver.least_passes = PatientQueries, MOST_PASSES, MOST_PASSES

    def bind(self, examples: Queries, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        return self.oracle(self.k).bind(examples.rows, examples.grades, **solver.formulation()), examples.weight

    def held_out_scores(self, examples: Queries) -> Held:
        """The mean over queries of the loss's metric; a query whose grades say nothing does not count."""
        groups, grades = examples.rows, examples.grades
        values = self.metrics(grades, self.scores_of(groups.rows), groups.bounds)
        says = ~np.isnan(values)
        name = {"pairs": "ordered pairs", "map": "average precision", "ndcg": "NDCG"}[self.loss]
        return Held(name, np.where(says, values, 0.0), 1.0 * says)

    def metric(self, grades: Floats, scores: Floats) -> float:
        """The score of one query's ranking, 1 minus the loss; NaN if all its grades are equal."""
        if (grades == grades[0]).all():
            return np.nan
        if self.loss == "pairs":
            return ordered_pairs(grades, scores)
        return ndcg(grades, scores, self.k) if self.loss == "ndcg" else average_precision(grades, scores)

    def metrics(self, grades: Floats, scores: Floats, bounds: Integers) -> Floats:
        """`metric` by query: array (n_queries,)."""
        return np.array([self.metric(grades[a:b], scores[a:b]) for a, b in pairwise(bounds)])

    def scale(self, examples: Queries) -> float:
        return total_variance(examples.rows.rows)

    def explain(self, x: Matrix) -> Explanation:
        """For the rows of one query, a matrix: why one row is ranked before the next; outputs are row numbers."""
        best = np.argsort(-self.scores(x), kind="stable")[:2].tolist()
        ranked = [(k, x[[k]].toarray()[0] if is_sparse(x) else x[k]) for k in best]
        names, alone = self.name_columns(self.n_features), "the query has one row only, and two are compared"
        return Explanation.of_best(ranked, self.coef, lambda k: (names[k], ""), alone)


def prepare(
    params: RankerParameters | Settings,
    X: Matrix,
    grades: NDArray[np.float64],
    bounds: NDArray[np.int64],
    before: RankerModel | None = None,
    weight: Weights | None = None,
) -> tuple[RankerModel, Queries]:
    """Return ``(model, examples)``: a model as parameters ask for it, or the one to resume, and what it is trained on.

    Parameters
    ----------
    params : object with `Ranker`'s parameters as attributes
    X : matrix of shape (n_rows, n_features), of floats
    grades : float64 array of shape (n_rows,)
    bounds : int64 array
        See `query_bounds`.
    before : RankerModel, optional
        The model to resume.
    weight : array of shape (n_rows,), optional
        Rows of weight 0 have no part in what is standardised.

    Raises
    ------
    ValueError
        For parameters that do not fit, and queries none of which has different grades.
    """
    checked_grades(grades, params.loss)
    if params.k is not None and params.loss != "ndcg":
        raise ValueError(f"The 'k' parameter belongs to loss='ndcg'. Got k={params.k!r}, loss={params.loss!r}.")
    if before is not None:
        check_unchanged(params, before, ("loss", "k"))
    model = before
    if model is None:
        check_scale(X)
        model = RankerModel(X.shape[1], params.loss, params.k)
        if params.standardize:
            model.set_units(X, weight)
        settle_sizes(model, X)
    else:
        X = later_rows(model, X, is_cut=params.standardize)
    says = grades if params.loss != "map" else 1.0 * (grades > 0.0)
    are_equal = np.maximum.reduceat(says, bounds[:-1]) == np.minimum.reduceat(says, bounds[:-1])
    if (are_equal if weight is None else are_equal | (weight[bounds[:-1]] == 0.0)).all():
        of_weight = "" if weight is None else " whose weight is not 0"
        raise ValueError(f"nothing can be learnt: in each query{of_weight} all rows have the same grade")
    if before is None:
        warn_of_places(grades, bounds)
    if params.loss == "ndcg":  # without gains a query adds nothing; with equal ones it would ask for equal scores
        grades = np.where(np.repeat(are_equal, np.diff(bounds)), 0.0, grades)
    return model, Queries(Groups(model.rows(X), bounds), grades)


def warn_of_places(grades: Floats, bounds: Integers) -> None:
    """Warn of grades that read as the places 1 .. n of the rows, or 0 .. n - 1: the best one would have the least."""
    sizes = np.diff(bounds)
    if len(grades) < LEAST_INPUTS or len(sizes) < 2 or sizes.max() < 3:
        return
    query = np.repeat(np.arange(len(sizes)), sizes)
    first, place = grades.min(), np.arange(len(grades)) - np.repeat(bounds[:-1], sizes)
    if first in (0.0, 1.0) and np.array_equal(grades[np.lexsort((grades, query))], first + place):
        last = "n" if first else "n - 1"
        warn(
            f"each of the {len(sizes)} queries of n rows has the grades {first:g} .. {last} once, and the largest is "
            f"taken for the best: for places, {first:g} the best, give the place from the end",
            AdviceWarning,
        )


class SampleModel(GroupModel[LabeledRows]):
    """A model of rows that are one example together, whose weight is their number.

    Attributes
    ----------
    labels : ndarray of shape (2,)
        The second one is that of the rows to find.
    threshold : float
        Of the score; 0 where an intercept is learnt.
    share : float
        Of rows to find, with "prec_at_k": k over their number.
    """

    kind = "multivariate"
    estimator = "MultivariateClassifier"
    record = record_of(SAMPLE_LOSSES) | {
        "labels": Labels(2),
        "fit_intercept": Flag(),
        "bound": OneOf(SAMPLE_LOSSES),
        "threshold": Array("f8", (1,), of=lambda model: np.array([model.threshold])),
    }

    def __init__(
        self, n_features: int, loss: str, k: int | None = None, *, labels: LabelArray, fit_intercept: bool = True
    ) -> None:
        super().__init__(n_features, loss, k, has_intercept=fit_intercept and loss in WITH_INTERCEPT)
        self.labels, self.fit_intercept = labels, fit_intercept
        self.threshold = self.share = 0.0

    def with_bound(self, bound: str) -> Self:
        """The same model, to be trained with the hinge of a loss."""
        model = self.copy()
        model.bound = bound
        return model

    @property
    def learns_intercept(self) -> bool:
        return self.has_intercept and self.bound in WITH_INTERCEPT

    @property
    def has_threshold(self) -> bool:
        """Whether held-out rows say where scores are high enough."""
        return self.fit_intercept and self.loss != "error"

    @property
    def intercept(self) -> float:
        return super().intercept - self.threshold

    def bind(self, examples: LabeledRows, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        rows, y = examples.rows, examples.label_ids
        if examples.weight is not None:
            copies = np.repeat(np.arange(len(y)), examples.weight.astype(np.int64))
            rows, y = rows.take(copies), y[copies]
        groups = Groups(rows, np.array([0, len(y)], dtype=np.int64))
        return self.oracle(self.n_found(len(y))).bind(groups, y, **solver.formulation()), np.array([float(len(y))])

    def n_found(self, n: int) -> int | None:
        """Return the number of rows to find among n with "prec_at_k"; None with other losses."""
        return min(max(round(self.share * n), 1), n) if self.loss == "prec_at_k" else None

    def mean_score(self, problem: GroupProblem) -> float:
        """Return the mean score of the rows of a problem, without the threshold."""
        return float(self.scores_of(problem.data.rows).mean())

    def set_weights_from(self, run: Run) -> None:
        """Set the weights to a run's, and the threshold by the held-out rows on which C was chosen.

        Without held-out rows, the threshold finds as many training rows as are positive, unless an intercept is learnt.
        """
        super().set_weights_from(run)
        self.threshold = 0.0
        if not self.has_threshold:
            return
        chosen = None if self.choice is None else self.choice.get(ChosenThreshold)
        if chosen is not None:
            size = float(np.linalg.norm(self.weights))
            self.threshold = self.mean_score(run.problem) + chosen.threshold * size
        elif not self.learns_intercept:
            scores = self.scores_of(run.problem.data.rows)
            first = len(scores) - int(run.problem.grades.sum())  # rank, upwards, of the lowest row to find
            self.threshold = float(np.partition(scores, [first - 1, first])[first - 1 : first + 1].mean())

    def search(self, examples: LabeledRows, solver: Solver) -> Search | LossSearch:
        """C by cutting planes: passes over one example know nothing of its next ones.

        A loss that hardly any weights bound below 1 has the hinge of the ROC area beside its own, see `BoundSearch`.
        """
        bounds = [self.bound]
        if self.loss in STEEP and self.fit_intercept and not self.is_trained and solver.rescaling != "slack":
            bounds.append("roc_area")
        searches = [SampleSearch(self.with_bound(bound), examples, solver) for bound in bounds]
        searches[0].has_rival = len(searches) > 1
        for search in searches:
            search.lowest, search.longest, search.patience = LOWEST_OF_RANKING, LONGEST_OF_SAMPLE, PATIENCE_OF_SAMPLE
            if examples.label_ids.sum() < FEW_POSITIVES:
                search.turns = TURNS
            if solver.maximises_dual:
                rescaling = solver.rescaling or "margin"
                search.solver = CuttingPlane(rescaling=rescaling, tol=SOLVED, random_state=search.seed)
                search.solver.run_type = PatientRounds
        return BoundSearch(searches, solver.n_jobs) if len(searches) > 1 else searches[0]

    def apply_choice(self, choice: Choice) -> None:
        compared = choice.get(ChosenLoss)
        if compared is not None:
            self.bound = compared.loss

    def adopt_loss(self, other: Self) -> None:
        self.bound = other.bound

    def held_out_scores(self, examples: LabeledRows) -> Held:
        """The metric that the loss is of, as a ratio of sums over rows, each as often as its weight says."""
        y, scores = examples.label_ids > 0, self.scores_of(examples.rows)
        weight = np.ones(len(y)) if examples.weight is None else examples.weight
        if self.loss == "error":
            return Held("accuracy", 1.0 * ((scores > 0.0) == y), np.ones(len(y)))
        if self.loss == "f1" and not self.has_threshold:
            return Held("F1", 2.0 * (y & (scores > 0.0)), 1.0 * y + (scores > 0.0))
        if self.loss == "roc_area":
            order = np.argsort(scores[~y], kind="stable")
            below, n_below = scores[~y][order], np.append(0.0, np.cumsum(weight[~y][order]))
            counts = n_below[np.searchsorted(below, scores)] + n_below[np.searchsorted(below, scores, side="right")]
            return Held("ROC area", y * counts / (2.0 * max(n_below[-1], 1.0)), 1.0 * y)
        found = shares_found(scores, weight, self.n_found(int(weight.sum())) or weight[y].sum())
        # F1 where as many are found as are positive: its best threshold, for all parts, comes with the best C.
        name = {"prec_at_k": "precision at k", "prbep": "break-even point", "f1": "F1"}[self.loss]
        return Held(name, found * y, found)

    def scale(self, examples: LabeledRows) -> float:
        """The rows' variance, as of a linear machine; over how much more one wrong row counts than in the error."""
        y = examples.label_ids
        n, n_positive = len(y), max(int(y.sum()), 1)
        variance = total_variance(examples.rows)
        by = {"error": n, "f1": 2 * n_positive, "prec_at_k": self.n_found(n) or 0, "prbep": n_positive}
        return variance * (n / n_positive if self.bound == "roc_area" else by[self.bound] / n)

    def decision_function(self, X: Matrix) -> Floats:
        """Scores, > 0 for the second label: array (n_samples, 1)."""
        return self.scores(X)[:, np.newaxis]

    def predict(self, X: Matrix) -> LabelArray:
        """Labels."""
        return self.labels[(self.scores(X) > 0.0).astype(np.int64)]

    def explain(self, x: ArrayLike) -> Explanation:
        return Explanation.of_row(x, self.weight_table(), self.intercept, self.labels.tolist())

    @classmethod
    def untrained(cls, n_features: int, stored: Stored) -> Self:
        labels = label_array(stored.labels)
        return cls(n_features, stored.loss, stored.k, labels=labels, fit_intercept=stored.fit_intercept)

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        if len(stored.labels) != 2:
            raise ValueError(f"{len(stored.labels)} labels, 2 are wanted")
        model = super().from_record(stored)
        model.bound, model.threshold = stored.bound, float(stored.arrays()["threshold"][0])
        if model.bound not in {model.loss, *(["roc_area"] if model.loss in STEEP else [])}:
            raise ValueError(f"the hinge of {model.bound!r:.80} with the loss {model.loss!r}")
        return model


def shares_found(scores: Floats, weight: Weights, k: float) -> Floats:
    """The share of each row's copies, its weight, that are among the k of highest scores: array (n_rows,)."""
    order = np.argsort(-scores, kind="stable")
    own = weight[order]
    found = np.zeros(len(scores))
    found[order] = np.clip(k - (np.cumsum(own) - own), 0.0, own) / np.maximum(own, 1.0)
    return found


def checked_grades(grades: Floats, loss: str) -> Floats:
    """The grades as they are; ValueError for -100, the mark of an unknown label, and a warning of LETOR's -1."""
    n_ignored, n_lowest = (int(np.count_nonzero(grades == mark)) for mark in (IGNORED, -1.0))
    if n_ignored:
        raise ValueError(
            f"y is {IGNORED} in {n_ignored} rows, the mark of labels that are not known: leave rows without a grade out"
        )
    if loss != "ndcg" and n_lowest and (grades >= -1.0).all() and (grades == 0.0).any():
        warn(
            f"y is -1 in {n_lowest} rows, which is a grade below 0: where it marks rows that nobody has judged, as in "
            "files of LETOR, leave them out",
            AdviceWarning,
        )
    return grades
