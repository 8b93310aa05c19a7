"""The regularisation path: C chosen in little more than one training.

C grows, and each training starts from the last. The values between two steps are covered too: the relative gap of a
model of C is also bounded at a larger C', because its weights are primal feasible there and its alpha, scaled by any s
in [0, C'/C], is dual feasible:

    P(C') = 1/2 |w|^2 + C' sum_i xi_i,      D(C') >= s sum alpha b - s^2 / 2 |w_alpha|^2.

So the path steps as far as the current model reaches (the approximate path of Giesen, Jaggi and Laue 2012).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from structsvm.checkpoint import CheckpointWriter, describe
from structsvm.features.columns import Columns
from structsvm.features.tokens import Tokens
from structsvm.files.new_file import check_new_file
from structsvm.model_file import ModelFileError, read_model
from structsvm.parameters import (
    FLAG,
    POSITIVE,
    Checkpoints,
    Interval,
    Seed,
    Verbose,
    declared,
    parameter,
    plain,
    validate,
)
from structsvm.progress import Meter
from structsvm.result import Result
from structsvm.solvers.choosing import PathPoint, rank, walk

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

# A fraction that leaves something on both sides.
SHARE = Interval(Real, 0.0, 1.0, closed="neither")


def gap_at(result: Any, C: Any, new_C: Any) -> Any:
    """An upper bound on the relative gap at ``new_C >= C`` of a model trained with C (linear penalty)."""
    primal = result.primal_norm + new_C * (result.primal - result.primal_norm) / C
    linear = result.dual + result.dual_norm
    scale = min(linear / (2.0 * result.dual_norm), new_C / C) if result.dual_norm > 0.0 else new_C / C
    dual = max(scale * linear - scale * scale * result.dual_norm, result.dual)
    return (primal - dual) / primal if primal > 0.0 else 0.0


def reach_of(result: Any, C: Any, tol: float | None, most: Any) -> Any:
    """The largest C' <= most at which the model's relative gap is surely at most `tol` (at least C)."""
    low, high = C, most
    if gap_at(result, C, most) <= tol:
        return most
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if gap_at(result, C, middle) <= tol else (low, middle)
    return float(low)


def _best_has(name: Any) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name))


@declared
class PathSearch(Seed, Checkpoints, Verbose, MetaEstimatorMixin, BaseEstimator):
    """Chooses C on a regularisation path, by the score on held-out examples.

    Parameters
    ----------
    estimator : SequenceLabeler, StructuredSVM, or another estimator of this kind
        With a linear slack penalty. Its C and tol (those of its solver, if that is an object) are set by the search.
    C_min, C_max : float, default=1e-3 and 10
    tol : float, default=0.1
        For every C between them, one of the models has at most this relative duality gap. Each is trained to half of
        it.
    validation_fraction : float, default=0.2
        Share of the examples that are held out along the path.
    scoring : str, callable or None
        As in scikit-learn; None: the estimator's own `score`.
    refit : bool, default=True
        Train on all examples with the best C at the end (to `tol`).
    random_state : int, RandomState or None
        Seeds the choice of the held-out examples.
    checkpoint
        As for `LaRank`: the file stores the finished values of C and the state of the running training.
    verbose : bool, default=False
        Show the progress along the path, and the scores; lines of text without a terminal.

    Attributes
    ----------
    path_ : list of PathPoint
    best_C_, best_score_ : float
    best_estimator_ : estimator
        Trained on all examples, or, without `refit`, the path's last model of the best C.

    Examples
    --------
    >>> from structsvm import PathSearch
    >>> from structsvm.datasets import make_sequences
    >>> from structsvm.metrics import token_accuracy_scorer
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = make_sequences(30, random_state=0)
    >>> labeler = SequenceLabeler(random_state=0)
    >>> search = PathSearch(labeler, C_min=0.01, C_max=0.1, scoring=token_accuracy_scorer, random_state=0)
    >>> 0.01 <= search.fit(X, y).best_C_ <= 0.1
    True
    """

    estimator: Any = parameter(kw_only=False)
    C_min: float = parameter(POSITIVE, default=1e-3)
    C_max: float = parameter(POSITIVE, default=10.0)
    tol: float = parameter(SHARE, default=0.1)
    validation_fraction: float = parameter(SHARE, default=0.2)
    scoring: Any = parameter(default=None)
    refit: bool = parameter(FLAG, default=True)

    def fit(self, X: Any, y: Any) -> Self:
        """Follow the path, and train with the best C.

        Raises
        ------
        ValueError
            For parameters out of range, or an estimator whose problem has no linear slack penalty.
        """
        validate(self, self._constraints)
        if self.C_max < self.C_min:
            raise ValueError(f"C_max={self.C_max} is less than C_min={self.C_min}")
        n = len(y)
        held_out = round(n * self.validation_fraction)
        if not 0 < held_out < n:
            raise ValueError(f"validation_fraction={self.validation_fraction} of {n} examples leaves a part empty")
        seed = self.random_state
        rng = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
        order = rng.permutation(n)
        file = self._open_checkpoint(order)
        if file is not None:
            order = file.order
        test, train = np.sort(order[:held_out]), np.sort(order[held_out:])
        known, meter = (part(X, train), part(y, train)), Meter("path", disable=not self.verbose)
        try:
            self._walk(*known, part(X, test), part(y, test), file, meter)
        finally:
            meter.close()
        best = min(self.path_, key=rank)
        self.best_C_, self.best_score_ = best.C, best.score
        if file is not None:
            file.stage = REFIT
        examples, tol = ((X, y), self.tol) if self.refit else (known, self.tol / 2)
        self.best_estimator_ = self._train(clone(self.estimator), best.C, tol, *examples, file)
        if file is not None:
            file.run = None  # the estimator is to be pickled
        return self

    def _open_checkpoint(self, order: Any) -> Any:
        """The file of this search, or None."""
        if self.checkpoint is None:
            return None
        names = ("C_min", "C_max", "tol", "validation_fraction", "refit", "random_state")
        search = {name: plain(getattr(self, name)) for name in names}
        search["estimator"] = type(self.estimator).__name__
        search["scoring"] = self.scoring if isinstance(self.scoring, str) else getattr(self.scoring, "__name__", None)
        return PathCheckpoint(self.checkpoint, search, order)

    def _walk(self, X: Any, y: Any, X_test: Any, y_test: Any, file: Any, meter: Meter) -> None:
        model = clone(self.estimator).set_params(warm_start=True)
        if self.scoring is None and "probability" in model.get_params():
            model.set_params(probability=False)  # its score asks for none, and they take trainings of their own
        scorer = check_scoring(model, self.scoring)

        def try_value(C: float) -> PathPoint:
            result = self._train(model, C, self.tol / 2, X, y, file).result_
            if result.inference == "approximate":
                raise ValueError("PathSearch needs a duality gap, and with approximate inference there is none")
            reach = reach_of(result, C, self.tol, float(self.C_max))
            return PathPoint(C, reach, float(scorer(model, X_test, y_test)), result)

        self.path_: list[PathPoint] = [] if file is None else file.points
        if file is not None and file.stage == WALK and not any(self._values()):  # only the data are to be compared
            self._train(model, self.path_[-1].C, self.tol / 2, X, y, file)
        for best in walk(self._values(), try_value, self.path_):
            self._tell(best, meter)
            if file is not None:
                file.end_value()

    def _values(self) -> Iterator[float]:
        """Values of C: the least, then as far as the last model of the path reaches, until that is the greatest."""
        if not self.path_:
            yield float(self.C_min)
        while max((last := self.path_[-1]).C, last.reach) < self.C_max:
            yield min(max(last.reach, last.C * 1.05), float(self.C_max))

    def _tell(self, best: PathPoint, meter: Meter) -> None:
        """Show the last point of the path, by the logarithm of C, and the best one."""
        last = self.path_[-1]
        said = f"C = {last.C:.4g}", f"score {last.score:.5g}, best {best.score:.5g} at {best.C:.4g}"
        whole = np.log(self.C_max / self.C_min)
        meter.show(float(np.log(last.reach / self.C_min) / whole) if whole > 0.0 else 1.0, *said)
        meter.line(", ".join(said))

    def _train(self, estimator: Any, C: Any, tol: float | None, X: Any, y: Any, file: Any) -> Self:
        """Fit the estimator, with this checkpoint instead of its own."""
        self._set(estimator, C, tol)
        if file is None:
            return estimator.fit(X, y)
        names = estimator.get_params()
        name = next((name for name in (f"{prefix_in(names)}checkpoint", "checkpoint") if name in names), None)
        if name is None:
            raise ValueError(f"The 'checkpoint' parameter of PathSearch has no meaning for {estimator!r:.120}")
        own = names[name]
        try:
            return estimator.set_params(**{name: file}).fit(X, y)
        finally:
            estimator.set_params(**{name: own})

    def _set(self, estimator: Any, C: Any, tol: float | None) -> Any:
        """Give C and tol to the estimator, or to its solver."""
        names = estimator.get_params()
        prefix = prefix_in(names)
        if f"{prefix}C" not in names or names.get(f"{prefix}penalty", "linear") != "linear":
            raise ValueError(
                "PathSearch needs an estimator, or a solver in it, with a C and penalty='linear'; "
                f"got {estimator!r:.120}"
            )
        return estimator.set_params(**{f"{prefix}C": C, f"{prefix}tol": tol})

    @_best_has("predict")
    def predict(self, X: Any) -> Any:
        """Predictions of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @_best_has("score")
    def score(self, X: Any, y: Any) -> float:
        """Its score, by `scoring`."""
        check_is_fitted(self)
        return check_scoring(self.best_estimator_, self.scoring)(self.best_estimator_, X, y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def part(data: Any, indices: Any) -> Any:
    """Some examples of a list, an array, a data frame, `Columns` or `Tokens`."""
    return data.take(indices) if isinstance(data, (Columns, Tokens)) else _safe_indexing(data, indices)


# ---- its checkpoint -------------------------------------------------------------------------------

# The trainings of a search: one per C of the path, and the last one.
WALK, REFIT = "walk", "refit"


def prefix_in(names: Any) -> str:
    """Prefix of the parameters of the solver in an estimator, or in a group of its parameters; empty without one."""
    found = (name.removesuffix("C") for name in names if name.endswith("solver__C"))
    return next((prefix for prefix in found if prefix.count("solver__") == 1), "")


class PathCheckpoint(CheckpointWriter):
    """Writes the state of a search every few passes, and after each C.

    It replaces the path in the `checkpoint` of each solver, one run after the other.

    Parameters
    ----------
    checkpoint : see `CheckpointWriter`
    search : dict
        Parameters of the search, for the header: they must be the same when it resumes.
    order : ndarray of shape (n_samples,), int64
        The order of the examples; the first ones are held out. An existing file has its own.

    Attributes
    ----------
    points : list of PathPoint
        The finished trainings.
    stage : str
        The training that runs: WALK or REFIT.
    """

    kind = "path"

    def __init__(self, checkpoint: str | os.PathLike[str], search: Any, order: Any) -> None:
        super().__init__(checkpoint)
        self.search, self.order = search, order
        self.points: list[PathPoint] = []
        self.stage = WALK
        self.run = self.file = None
        if os.path.exists(self.path):
            self.read(read_model(self.path, kind=self.kind))
        check_new_file(self.path)

    def read(self, file: Any) -> None:
        """Restore order and points from a file; its training state waits for a run."""
        self.check_same(file.meta, {"search": self.search})
        try:
            order = np.array(file.arrays["order"])
            if order.dtype != np.int64 or not np.array_equal(np.sort(order), np.arange(len(self.order))):
                raise ValueError("array 'order' must hold each example once")
            points = [
                PathPoint(float(C), float(reach), float(score), Result.from_dict(result, file.under(f"point{k}.")))
                for k, (C, reach, score, result) in enumerate(file.meta["points"])
            ]
            if file.meta["stage"] not in (WALK, REFIT) or type(file.meta["first"]) is not int:
                raise ValueError(f"a training {file.meta['stage']!r:.40} from pass {file.meta['first']!r:.40} on")
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{self.path}: not a sound checkpoint: {error}") from error
        self.file, self.order, self.points, self.stage = file, order, points, file.meta["stage"]

    def restore(self, run: Any, last: Any) -> Any:
        self.about, self.run, self.first = about_any_c(run), run, run.n_iter
        if self.file is not None and self.file.meta["stage"] == self.stage:
            file, self.file = self.file, None
            self.check_same(file.meta, self.about)
            # State of the previous C, whose training has ended, or of this one.
            is_running = len(self.points) == file.meta["n_points"] and not file.meta["is_finished"]
            self.set_run(run, file.under("state."), adapt=not is_running)
            self.first = file.meta["first"] if is_running else run.n_iter
            last += self.first
        self.last = last
        return last

    def end_value(self) -> None:
        """Called when the training of a C has ended, and is one of the points."""
        self.write(self.run, is_finished=True)

    def contents(self, run: Any, **about: Any) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        meta, state = super().contents(run, **{"is_finished": False} | about)
        meta |= {
            "search": self.search,
            "points": [[*values, result.to_dict()] for *values, result in self.points],
            "n_points": len(self.points),
            "stage": self.stage,
            "first": self.first,
        }
        arrays = {"order": self.order} | {f"state.{name}": array for name, array in state.items()}
        for k, (*_, result) in enumerate(self.points):
            arrays |= {f"point{k}.{name}": column for name, column in result.history.items()}
        return meta, arrays


def about_any_c(run: Any) -> dict[str, Any]:
    """As `describe`, whatever C is."""
    about = describe(run)
    name, parameters = about["solver"]
    parameters.pop("C", None)
    return {"solver": [name, parameters], "problem": about["problem"][:3]}
