"""The learning loop: ask for the most useful answers, learn each as it comes, and settle at the end.

A task varies what is data or one function: how a pool is read (`_reader_of`), which labels an answer names
(`_labels_in`), and, where its models can grow, the model with room for new ones (`_grown`). Elsewhere a new label means
a fit on everything that was given.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

from structsvm.features.inputs.places import located
from structsvm.parameters import NONE, Interval, Parameters, check_arguments, checked_k
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.estimator import TaskEstimator
from structsvm.tasks.common.labels import sort_labels
from structsvm.tasks.common.parameters import snapshot
from structsvm.tasks.common.questions.denied import as_answers, marks_in, others, with_marks
from structsvm.tasks.common.questions.given import Batch, Given, can_be_kept
from structsvm.tasks.common.questions.pool import Pool, check_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    import numpy as np
    from numpy.typing import ArrayLike

    from structsvm.arrays import Integers
    from structsvm.tasks.common.labels import Not
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.questions.pool import Strategy
    from structsvm.tasks.common.questions.reading import Reader

ASKED = {"diversity": (Interval(Real, 0, 1, closed="both"),), "cost": (Interval(Real, 0, 100, closed="both"), NONE)}


class LearningLoop(TaskEstimator):
    """Estimators that ask which inputs to label next, and learn one answer at a time."""

    _given: Given | None = None
    _line: object = None  # models that follow each other by answers
    _least_labels: ClassVar[int] = 1  # without which there is nothing to learn

    # ---- what a task varies -----------------------------------------------------------------------

    @abstractmethod
    def _reader_of(self, model: Any, X: Any) -> Reader[Any]:
        """The inputs of a pool, encoded for a model."""

    def _labels_in(self, y: Sequence[Any]) -> set[Hashable]:
        """The labels that answers name; none where these are no matter of the model."""
        return set()

    def _known_labels(self, model: Any) -> Collection[Hashable]:
        """The labels of a model, in the form of `_labels_in`."""
        labels: Collection[Hashable] = list(model.labels)
        return labels

    def _grown(self, model: Any, X: Sequence[Any], y: Sequence[Any], new: set[Hashable]) -> Any:
        """A copy of the model with the features of X and new labels, which have no weight yet; None: it cannot.

        Without new labels there is always one.
        """
        return None if new else model.copy()

    def _choices(
        self, y: Sequence[Any], named: set[Hashable], model: Any
    ) -> tuple[set[Hashable], Callable[[Hashable], set[Hashable]]]:
        """Return ``(labels, below)``: those among which answers choose, and the labels that a node stands for.

        Parameters
        ----------
        y : list
            Answers, without marks.
        named : set
            The labels that they name.
        model : TaskModel or None
            The one that training goes on from.

        Raises
        ------
        ValueError
            Where answers are no labels.
        """
        raise ValueError(f"{type(self).__name__} does not take Not(...): its answers are no labels")

    def _pool_inputs(self, X: Any) -> Any:
        """The inputs of a pool, which can be counted and read again."""
        if isinstance(X, (str, bytes, dict, set, frozenset)) or not hasattr(X, "__iter__"):
            raise TypeError(f"a pool is a list of inputs, got {X!r:.80}")
        return X if hasattr(X, "shape") or hasattr(X, "offsets") else list(X)

    def _one(self, x: Any) -> Any:
        """One input as a batch."""
        return [x]

    # ---- the loop -----------------------------------------------------------------------------------

    def query(
        self,
        pool: Pool | Collection[Any],
        k: int = 1,
        *,
        strategy: Strategy = "margin",
        diversity: float = 0.0,
        cost: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Integers:
        """Choose the inputs of a pool whose answers would teach most.

        Parameters
        ----------
        pool : Pool, or inputs as `predict` takes them
            In a loop a `structsvm.tasks.Pool`, which is encoded once, and of which an answer changes little.
        k : int, default=1
            The number of inputs.
        strategy : {"margin", "confidence", "entropy", "span", "risk", "random"}, default="margin"
            The two best outputs have nearly the same score; the best one has a low probability; the entropy of the
            outputs is high; the least certain span of the best one; the expected number of its wrong parts; or inputs
            at random.
        diversity : float, default=0.0
            From 0 to 1: how much less an input counts that is like those chosen before it, by the cosine of their
            features. The k are then chosen among the 4 k (at least 50) of highest value, or, of a pool with `refresh`,
            among those of them that were read under the model of the moment.
        cost : float, optional
            The value of an answer is divided by the number of its parts (words, say) to this power: 1 chooses by value
            per word to check. From 0 to 100; None: 0.
        random_state : int, RandomState or None
            For ``strategy="random"``.

        Returns
        -------
        ndarray of shape (k,), int64
            Indices into the pool, the most useful first; equal ones in the order of the pool.

        Raises
        ------
        ValueError
            For an empty pool, k above the inputs that are left, a strategy that the estimator does not have, or that
            needs probabilities where there are none (`temperature_`).
        NotFittedError
            For another strategy than "random" before there is a model.

        References
        ----------
        Bordes 2010, chapter 4; Settles and Craven 2008, "An analysis of active learning strategies for sequence
        labeling tasks".
        """
        k = checked_k(k)
        check_strategy(strategy)
        check_arguments("query", locals(), **ASKED)
        if not isinstance(pool, Pool):
            pool = Pool(self, pool)
        elif pool.estimator is not self:
            raise ValueError("the pool was made for another estimator: Pool(estimator, X)")
        return pool.best(k, strategy, float(diversity), float(cost or 0.0), random_state)

    def teach(self, x: Any, y: Any) -> Self:
        """Learn one answer.

        The weights make one step of `partial_fit`, on this example alone. Features and labels may be new. Where a model
        has no room for a new label, it is fitted anew on all that was given.

        Parameters
        ----------
        x : one input, as in the X of `fit`
        y : its answer, as in the y of `fit`
            Whole, or in part by the marks of `fit`: None (or `unknown`) for what is not known, a set of the labels that
            may be, ``Not(label)`` for one that is wrong.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For what `fit` would not take either; the model is then unchanged.
        """
        batch, before = Batch(self._one(x), [y]), self._model
        given = self._before() if before is None or self._given is not None else Given(copied(before))
        named = self._labels_in(with_marks([y], _open))
        if before is None:
            model, line = self._first(given.plus(batch)), object()
        else:
            new = named - set(self._known_labels(before))
            self._check_denied(marks_in([y]), {*self._known_labels(before), *named})
            grown = self._grown(before, batch.X, with_marks(batch.y, _open), new)
            line = object() if grown is None else self._line
            model = self._anew(given.plus(batch), new) if grown is None else self._stepped(grown, batch)
        given = given.plus(batch)
        if model is None:
            self._given = given
        else:
            self._adopt(model, _given=given, _line=line)
        return self

    def consolidate(self) -> Self:
        """Fit the model to everything that `fit`, `partial_fit` and `teach` were given.

        That is `fit` on all these examples, in their order. Examples that are not kept are represented by the weights
        learnt from them, around which the others are fitted: those of a model that was loaded, copied or unpickled, of
        files and tables, and more than 10,000 that `fit` and `partial_fit` were given. X and y are kept as they are,
        not copied.

        Examples of earlier calls that stand again in the X and y of a `partial_fit`, the same objects with the same
        answers, count once. Other answers to them are further examples, as those of a second annotator are: who
        corrects an answer does so in the y that was given, or calls `fit`.

        Returns
        -------
        self
        """
        given = self._given
        if given is None or not given.batches:
            self._fitted()
            return self
        self._adopt(self._anew(given, set()), _given=given, _line=object())
        return self

    # ---- how it learns ------------------------------------------------------------------------------

    def _before(self) -> Given:
        return Given() if self._given is None else self._given

    def _first(self, given: Given) -> TaskModel | None:
        """The first model, of all answers; None while they name too few labels."""
        batch = given.joined()
        plain, marks = with_marks(batch.y, _open), marks_in(batch.y)
        labels = self._labels_in(plain)
        if len(labels) < self._least_labels or (
            marks and self._leaves_none(marks, *self._choices(plain, labels, None))
        ):
            self._check_first(batch)
            return None
        scratch = self._scratch(None)
        scratch.partial_fit(batch.X, batch.y)
        model: TaskModel = scratch.model_
        return model

    @staticmethod
    def _leaves_none(marks: Sequence[Not], labels: set[Hashable], below: Callable[[Hashable], set[Hashable]]) -> bool:
        """Whether one of the marks denies all labels."""
        return any(labels <= set().union(*map(below, mark.labels)) for mark in marks)

    def _check_first(self, batch: Batch) -> None:
        """Raise ValueError for answers that the first model could not learn from."""
        return

    def _stepped(self, model: Any, batch: Batch) -> TaskModel:
        """A model after one step on a batch; one answer says too little of the temperature."""
        known = model.temperature
        scratch = self._scratch(model)
        scratch.partial_fit(batch.X, batch.y)
        learnt: TaskModel = scratch.model_
        if known is not None:
            learnt.temperature = known
        return learnt

    def _anew(self, given: Given, new: set[Hashable]) -> TaskModel:
        """The model of a fit on all examples."""
        base, batch = given.base, given.joined()
        if base is None:
            scratch = self._scratch(None)
        else:
            y = with_marks(batch.y, _open)
            more = self._labels_in(y) - set(self._known_labels(base))
            grown = self._grown(base, batch.X, y, more)
            if grown is None:
                names = ", ".join(map(repr, sort_labels(list(new or more))))
                raise ValueError(
                    f"{type(self).__name__} has no room for the new label {names:.80}, and the examples that it was "
                    "trained on are not kept: fit it on all of them"
                )
            scratch = self._scratch(grown)
            scratch.warm_start = True
        scratch.fit(batch.X, batch.y, **({} if batch.weight is None else {"sample_weight": batch.weight}))
        model: TaskModel = scratch.model_
        model.params = snapshot(self.get_params(deep=False))
        return model

    def _scratch(self, model: Any) -> Any:
        """The estimator with another model, to be trained while this one still predicts.

        A checkpoint is of one run, that of `fit`: an answer has none.
        """
        scratch: Any = _without_checkpoint(self)
        vars(scratch)["_given"] = None
        scratch.__dict__.pop("model_", None)
        if model is not None:
            scratch.model_ = model
        return scratch

    # ---- answers that deny labels -------------------------------------------------------------------

    def _check_denied(self, marks: Sequence[Not], known: set[Hashable]) -> None:
        """Raise ValueError for a mark none of whose labels the model has."""
        if not marks:
            return
        labels, below = self._choices([], known, self._model)
        for mark in marks:
            if not any(below(label) & labels for label in mark.labels):
                raise ValueError(f"y holds {mark!r:.80}, and the model has no such label")

    def _without_marks(self, y: object, model: Any, classes: Iterable[Hashable] | None) -> object:
        """Answers with the sets of the other labels in the place of `Not`."""
        answers = as_answers(y)
        if answers is None or not marks_in(answers):
            return y
        plain = with_marks(answers, _open)
        named = self._labels_in(plain) | set(() if classes is None else classes)
        labels, below = self._choices(plain, named, model)
        return with_marks(answers, lambda mark: others(mark, labels, below))

    # ---- what was given -----------------------------------------------------------------------------

    def _train(self, X: object, y: object, sample_weight: ArrayLike | None = None, **options: Any) -> Self:
        """Train, and keep what was given; see `TaskEstimator._train`."""
        is_stream = options.get("passes") is not None
        is_first = self._model is None or not (is_stream or self.warm_start)
        told = self._without_marks(y, None if is_first else self._model, options.get("classes"))
        with located(y), located(X):
            model, run = self._trained(X, told, sample_weight, **options)
        given = self._kept(X, y, sample_weight, options, is_first=is_first)
        self._adopt(model, _given=given, _line=object())
        raise_if_interrupted(run)
        return self

    def _kept(
        self, X: object, y: object, sample_weight: ArrayLike | None, options: dict[str, Any], *, is_first: bool
    ) -> Given | None:
        """All examples after a training, which come instead of those before it or beside them; None: not kept."""
        others = {name: value for name, value in options.items() if name not in ("passes", "classes", "metadata")}
        y = X if y is None else y  # trees
        can = can_be_kept(X, y) and all(value is None for value in others.values())
        before = Given() if is_first else self._given
        given = None if before is None or not can else before.plus_again(Batch(X, y, sample_weight))
        return None if given is None or given.is_long else given

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"_given": None}  # copies and files hold what was learnt


def _open(mark: Not) -> None:
    """Return None, which says nothing of a label, for a mark."""


def _without_checkpoint(one: Any) -> Any:
    """A copy of an estimator or solver in which none has a checkpoint, those within it neither."""
    free = copy.copy(one)
    for name, value in one.get_params(deep=False).items():
        if name == "checkpoint":
            vars(free)[name] = None
        elif isinstance(value, Parameters):  # a solver or a group of parameters
            vars(free)[name] = _without_checkpoint(value)
    return free


def copied(model: Any) -> Any:
    """A model whose weights training does not change."""
    model = model.copy()
    if "weights" in vars(model):
        model.weights = model.weights.copy()
    return model
