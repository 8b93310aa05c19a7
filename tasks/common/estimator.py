"""The contract of all estimators: fit, partial_fit, warm starts, callbacks, Ctrl-C, files; around a `TaskModel`.

A fitted estimator is its parameters, ``model_`` and what scikit-learn records about X. Training makes another model
and stores it at the end: until then, and after an error, the old one stays usable, also in other threads.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from inspect import isfunction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm._warnings import AdviceWarning, warn
from structsvm.callbacks import CallbackMonitor, CallbackSupportMixin
from structsvm.dual.parallel import in_own_threads
from structsvm.features.inputs.kinds import numbers_wanted
from structsvm.features.inputs.masks import reads_masks
from structsvm.features.inputs.places import PlacedList, located
from structsvm.model_file import ModelFile, ModelFileError, name_of, unsound
from structsvm.parameters import N_JOBS, NONE, Constraints, Interval, Options, check_arguments, validate
from structsvm.progress import Bar, Monitor, Monitors
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.bases import BaseEstimator
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.inspection.confidence import has_probabilities, of_class, of_structure
from structsvm.tasks.common.inspection.inputs import explain_one
from structsvm.tasks.common.labels import label_array, label_costs, warn_of_odd_labels
from structsvm.tasks.common.model import COLUMNS, TaskModel
from structsvm.tasks.common.parameters import OF_INPUTS, check_unchanged, snapshot
from structsvm.tasks.common.selection.compaction import compacted
from structsvm.tasks.common.solver import Usual, is_to_choose, make_solver
from structsvm.tasks.common.training import Job, train
from structsvm.tasks.common.units import warn_of_other_units

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from structsvm.arrays import AnyArray, Floats, LabelArray
    from structsvm.model_file import Destination, Origin
    from structsvm.result import Result
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.examples import Examples, LabeledRows
    from structsvm.tasks.common.inspection.report import WeightReport
    from structsvm.tasks.common.inspection.weights import Explanation

AT_LEAST_1, NOT_NEGATIVE = Interval(Integral, 1), Interval(Real, 0)


class TaskEstimator(Usual, CallbackSupportMixin, BaseEstimator, ABC):
    """Base of the estimators.

    A subclass declares its parameters, names the class of its model, and implements `_prepare`. `fit` and
    `partial_fit`, which say what X and y are, call `_train`.
    """

    _model_class: type[TaskModel]
    _constraints: Constraints
    _confidence = of_class
    _reader: str = "features.svmlight.read_svmlight"  # below `structsvm`; empty: no files have its examples
    _takes_one_label: ClassVar[bool] = False
    model_: Any

    def __init_subclass__(cls, **options: Any) -> None:
        """Let all public methods of the class read masks, and compute in `n_jobs` threads."""
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, in_own_threads(reads_masks(method)))

    def _multiplies(self, name: str) -> bool:
        """Whether the method of this name makes products of matrices."""
        return True

    @abstractmethod
    def _prepare(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, before: Any, *args: Any, **options: Any
    ) -> tuple[Any, Any]:
        """Return ``(model, examples)``: the model to train, and X and y encoded.

        `before` is a copy of the model to resume, or None; ValueError if its labels, features or structure do not match
        X, y and the parameters.
        """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters; cached, as scikit-learn inspects the constructor at each call."""
        return super()._get_param_names()

    def _check_params(self) -> None:
        """Raise ValueError for the first parameter that violates its constraint."""
        validate(self, self._constraints)

    def _check_no_path(self, X: object) -> None:
        """Raise ValueError, which names the reader, for a path or a text in the place of examples."""
        if isinstance(X, (str, bytes, os.PathLike)):
            what = "path" if isinstance(X, os.PathLike) or os.path.exists(X) else "text"
            hint = f": structsvm.{self._reader} reads files" * bool(self._reader)
            raise ValueError(f"{type(self).__name__} learns from examples, not from the {what} {X!r:.60}{hint}")

    def _make_solver(self, before: TaskModel | None = None) -> Solver:
        """The solver that the parameters name; `before` is the model to resume, or None."""
        return make_solver(self)

    def _stream_solver(self, before: TaskModel | None = None) -> Solver:
        """The solver of one batch of a stream."""
        return self._make_solver(before)

    # ---- training -------------------------------------------------------------------------------

    def _train(self, X: object, y: object, sample_weight: ArrayLike | None = None, **options: Any) -> Self:
        """Train on X and y, and store the model; arguments are those of `_trained`."""
        with located(y), located(X):
            model, run = self._trained(X, y, sample_weight, **options)
        self._adopt(model)
        raise_if_interrupted(run)
        return self

    def _trained(
        self,
        X: object,
        y: object,
        sample_weight: ArrayLike | None = None,
        *,
        passes: int | None = None,
        metadata: Mapping[str, object] | None = None,
        **options: object,
    ) -> tuple[TaskModel, Run]:
        """Return ``(model, run)`` of a training, which may have been interrupted.

        Parameters
        ----------
        X, y, sample_weight : see `fit` and `partial_fit`
        passes : int, optional
            Number of passes over a batch of a stream; None: `fit`.
        metadata : dict, optional
            What callbacks receive beside X and y.
        options : dict
            Further arguments of `_prepare`.
        """
        self._check_params()
        self._check_no_path(X)
        if y is None and get_tags(self).target_tags.required:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        resumes = passes is not None or self.warm_start
        before = self._model.copy() if resumes and self._model is not None else None
        if before is not None:
            check_unchanged(self, before, [name for name in OF_INPUTS if hasattr(self, name)])
        solver = self._make_solver(before) if passes is None else self._stream_solver(before)
        solver.validate()
        model, examples = self._prepare(X, y, sample_weight, before, **options)
        if before is None and passes is None:
            self._check_outputs(examples)
        if before is None:
            warn_of_odd_labels(getattr(model, "labels", ()))
        model.params, model.estimator = snapshot(self.get_params(deep=False)), type(self).__name__
        model.n_unknown = examples.n_unknown
        choose = is_to_choose(self, solver)
        job = Job(model, examples, solver, resume=before is not None, passes=passes, choose=choose)
        monitor: Monitor = CallbackMonitor(
            self, X, y, job.most_passes, lambda run: fitted_attributes(job.snapshot(run)), **(metadata or {})
        )
        if self.verbose:
            monitor = Monitors(monitor, Bar(job.most_passes, disable=False))
        return model, train(job, monitor)

    def _check_outputs(self, examples: Examples) -> None:
        """Warn of outputs from which nothing can be learnt; ValueError where weights leave a single class."""
        if examples.weight is not None and not self._takes_one_label and examples.has_one_output:
            raise ValueError(
                "2 classes or more are needed, and all examples whose weight is not 0 have the same label: see "
                "sample_weight"
            )
        if (doubt := examples.doubt) is not None:
            warn(doubt, AdviceWarning)

    def _calibrated(self, *data: object, **options: object) -> Self:
        """Store a copy of the model that is calibrated on data; arguments are those of its `calibrate`."""
        model = self._fitted().copy()
        with located(data[0]):
            model.calibrate(*data, **options)
        self._adopt(model)
        return self

    def _adopt(self, model: TaskModel, **beside: object) -> None:
        """Store a model, and attributes that go with it, in one assignment."""
        for name in COLUMNS:
            if name not in model.columns:
                self.__dict__.pop(name, None)
        self.__dict__.update(fitted_attributes(model) | beside)

    def _validated(
        self, X: object, y: object = "no_validation", *, before: TaskModel | None = None, **options: object
    ) -> Any:
        """Check X and y as scikit-learn does, without changing the estimator.

        Returns ``(X, columns)`` or ``(X, y, columns)``; X must have the columns of the model `before`.
        """
        scratch = copy.copy(self)
        if before is not None:
            scratch.__dict__.update(before.columns)
        # Numbers beyond float32 are errors of the check.
        with numbers_wanted(X), np.errstate(over="ignore", invalid="ignore"):
            checked = validate_data(scratch, X, y, reset=before is None, **options)
        columns = {name: value for name, value in vars(scratch).items() if name in COLUMNS}
        return (checked, columns) if isinstance(y, str) and y == "no_validation" else (*checked, columns)

    def _rows_of_prediction(self, X: object, model: TaskModel, **options: object) -> Any:
        """Check X as `_validated` does, and warn of rows in other units than those of training.

        In training the columns of such a batch are named.
        """
        X = self._validated(X, before=model, **options)[0]
        if (usual := model.usual_sizes) is not None:
            warn_of_other_units(X, usual)
        return X

    @property
    def _threads(self) -> int:
        """Threads for prediction."""
        validate(self, {"n_jobs": N_JOBS})
        return (os.cpu_count() or 1) if self.n_jobs == -1 else self.n_jobs or 1

    # ---- what was learnt ------------------------------------------------------------------------

    @property
    def _model(self) -> Any:
        """The model, or None before `fit`."""
        return vars(self).get("model_")

    def _fitted(self) -> Any:
        """The model; NotFittedError before `fit`."""
        if self._model is None:
            check_is_fitted(self)  # raises; called only here, as it takes longer than a sentence
        return self.model_

    @property
    def classes_(self) -> LabelArray:
        """Labels, sorted."""
        return label_array(self._fitted().labels)

    @property
    def temperature_(self) -> float | None:
        """Divisor of the scores for probabilities; None: there are none."""
        return self._fitted().temperature

    @property
    def result_(self) -> Result:
        """The outcome of the last training."""
        return self._fitted().result

    @property
    def n_unknown_(self) -> int:
        """The number of labels of which the last training knew nothing."""
        n = self._fitted().n_unknown
        if n is None:
            raise AttributeError("there is no count of unknown labels: the model comes from a file")
        return n

    @property
    def n_iter_(self) -> int:
        """Passes over the data."""
        result = self._fitted().result
        return 0 if result is None else result.n_iter

    @property
    def C_(self) -> float:  # noqa: N802 (scikit-learn's form)
        """The C of the last training: the one given, or the one chosen."""
        C = self._fitted().C
        if C is None:
            raise AttributeError("there is no C: the model's solver has none")
        return C

    @property
    def validation_(self) -> dict[str, Any]:
        """The table from which C was chosen: columns by name, the `metric`, and the number of held-out examples."""
        choice = self._fitted().choice
        if choice is None:
            raise AttributeError("there is no table: C was given, or there were too few examples to choose it")
        return choice.columns

    def top_features(self, label: Hashable = None, k: int = 10) -> Any:
        """The k heaviest features of a label, a list of ``(feature, weight)``; without one a dict of them by label.

        Raises
        ------
        TypeError
            If features have no names (kernel machines, hashed features).
        ValueError
            For a label without weights, or k that is no integer above 0.
        """
        table = self._fitted().weight_table()
        return {name: table.top(name, k) for name in table.labels} if label is None else table.top(label, k)

    def to_frame(self) -> pd.DataFrame:
        """The weights that are not 0 as a pandas data frame of feature, label and weight, the heaviest first."""
        return self._fitted().weight_table().to_frame()

    def report(self, labels: Iterable[Hashable] | None = None, k: int = 10) -> WeightReport:
        """The heaviest features of labels (None: all), to print, or as coloured tables in a notebook."""
        from structsvm.tasks.common.inspection.report import WeightReport

        model = self._fitted()
        table, result = model.weight_table(), model.result
        shown = table.labels if labels is None else list(labels)
        for label in shown:
            table.column(label)
        heading = f"{model.estimator}: {len(table.features)} features"
        return WeightReport(table, shown, k, heading + ("" if result is None else f"; {result.certificate()}"))

    @in_own_threads
    def predict_confidence(self, X: Any, predicted: Any = None) -> NDArray[np.float64]:
        """Return how sure the estimator is of each output: array (n_inputs,), float64, the greater the surer.

        The probability of the output where there are probabilities (of a set of labels, that of its least certain
        label), otherwise how far its score is above the next one's. `structsvm.risk.RiskController` finds out from
        which number on few outputs are wrong.

        Parameters
        ----------
        X
            As `predict` takes them, but no iterator.
        predicted
            What `predict` returns for X, if it is at hand.

        Raises
        ------
        TypeError
            For an estimator whose outputs have neither probabilities nor scores.
        """
        found = self._confidence(X, self.predict(X) if predicted is None else predicted)  # type: ignore[attr-defined]
        return np.asarray(found, dtype=np.float64)

    @in_own_threads
    def predict_selective(self, X: Any, *, abstain_below: float) -> list[Any]:
        """Return per input what `predict` does, or None where its confidence is less than `abstain_below`.

        See `predict_confidence`. How often the others are right is not promised: `structsvm.risk.RiskController` finds
        the number that keeps a promise.

        Raises
        ------
        ValueError
            If `abstain_below` is no number, or a probability is asked for that is not from 0 to 1.
        """
        least = Interval(Real, 0.0, 1.0, closed="both") if has_probabilities(self) else Interval(Real, -np.inf)
        check_arguments(f"{type(self).__name__}.predict_selective", locals(), abstain_below=least)
        predicted = self.predict(X)  # type: ignore[attr-defined]
        sure = self.predict_confidence(X, predicted) >= abstain_below
        outputs = predicted.tolist() if getattr(predicted, "ndim", 0) == 1 else list(predicted)
        return [output if own else None for output, own in zip(outputs, sure.tolist(), strict=True)]

    # ---- compact models -------------------------------------------------------------------------

    @in_own_threads
    @reads_masks
    def compact(
        self,
        *,
        budget: int | None = None,
        tolerance: float | None = None,
        bits: int = 32,
        data: tuple[Any, Any] | None = None,
    ) -> Self:
        """Return a smaller model, which predicts, explains and is saved as any other, and is not trained further.

        The weights of features below a size become 0, and a file then has neither these nor, where that changes
        nothing else, features without weight. `compact_` reports what was done: "bytes" of the file now and before
        ("bytes_before"), "bits", "least_weight", and with `data` the "metric" (F1 of chunks, accuracy, LAS, ...),
        "score" and "score_before". Labelers of sequences, parsers of dependencies and of grammars, classifiers of
        documents without a kernel, of candidates and of sets of labels have compact models.

        Parameters
        ----------
        budget : int, optional
            Most bytes of the file; the size is the least with which it has no more.
        tolerance : float, optional
            How far the score of `data` may fall (a loss: rise), .001 for a tenth of a percent. Without `budget` the
            size is the largest with which it falls no further; by default the largest with which it falls by no more
            than chance: the standard error of the fall, which examples that both models predict alike add nothing to.
        bits : {32, 16, 8}, default=32
            Bits of a weight: those of a feature are small multiples of one power of 2.
        data : (X, y), optional
            Labelled examples that the model was not trained on. Without `data` and `budget` only weights that are 0
            already are left out.

        Returns
        -------
        self's class
            A new estimator with the same parameters.

        Raises
        ------
        TypeError
            For an estimator that has no compact models.
        ValueError
            For a parameter out of range; if the smallest file takes more than `budget`, or the file as it is fits
            and has no room for the report; if with `budget` the score falls by more than `tolerance`; if `data` has
            nothing that the metric counts, or a score of 0, which cannot fall.

        Examples
        --------
        >>> from structsvm.datasets import make_sequences
        >>> from structsvm.tasks import SequenceLabeler
        >>> X, y = make_sequences(200, random_state=0)
        >>> small = SequenceLabeler(C=0.1, random_state=0).fit(X, y).compact(budget=20_000, bits=8)
        >>> small.compact_["bytes"] <= 20_000
        True
        """
        constraints = {"budget": (AT_LEAST_1, NONE), "tolerance": (NOT_NEGATIVE, NONE), "bits": Options(8, 16, 32)}
        check_arguments(f"{type(self).__name__}.compact", locals(), **constraints)
        own = self._to_store()
        if own.weight_rows() is None:
            kernel = own.params.get("kernel")
            raise TypeError(f"{own.estimator} has no compact models" + f" with kernel={kernel!r:.60}" * bool(kernel))
        if data is not None and not (isinstance(data, (tuple, list)) and len(data) == 2):
            what = f"{len(data)} of them" if isinstance(data, (tuple, list)) else type(data).__name__
            raise ValueError(f"data must be two things, (X, y); got {what}")
        if tolerance is not None and data is None:
            raise ValueError("tolerance is how far the score of data may fall: give data=(X, y)")
        own.report = None
        examples = None if data is None else self._examples_of(own.copy(), *data)
        return self._loaded("", compacted(own, budget=budget, tolerance=tolerance, bits=bits, examples=examples))

    def _examples_of(self, model: Any, X: Any, y: Any) -> Examples:
        """Examples that a model is scored on, encoded; ValueError unless the output of one of them is known."""
        with located(y), located(X):
            examples = self._prepare(X, y, None, model)[1].fully_known()
        if not len(examples):
            raise ValueError("data has no example whose output is known")
        return examples

    @property
    def compact_(self) -> dict[str, float | str]:
        """The report of `compact`: bytes, bits, scores."""
        report: dict[str, float | str] | None = self._fitted().report
        if report is None:
            raise AttributeError("there is no report: the model is not one that compact returned")
        return report

    @in_own_threads
    def explain(self, x: Any) -> Explanation:
        """Why the best output of one input beats the second best: an `Explanation`, to print.

        Its `contributions` are what each feature adds to the difference of their scores, `margin`; for dependency
        trees, whose features are hashed, what each arc adds. TypeError for estimators without linear weights,
        ValueError for a list of inputs: these are explained one by one.
        """
        return explain_one(self._fitted(), x)

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    # ---- files ----------------------------------------------------------------------------------

    def save(self, path: Destination, *, training_state: bool | None = None) -> None:
        """Write the model to one file: arrays and a JSON header, no pickle. `structsvm.load` opens it.

        Parameters
        ----------
        path : path-like, or binary file open for writing
            A path has the old file until the new one is complete.
        training_state : bool, optional
            Whether the file also holds the state of training, from which ``warm_start=True`` resumes the run on the
            same data; it is often the larger half. Without it, further training starts from the weights and stays close
            to them, as `partial_fit` does. None: if `warm_start` is True.

        Raises
        ------
        TypeError
            For what a file cannot contain, such as labels that are not strings, numbers or tuples. No file is changed.
        """
        self._to_store().save(path, training_state=training_state)

    def contents(self, *, training_state: bool | None = None) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Header and arrays of the file that `save` writes, for a file that holds several estimators."""
        return self._to_store().contents(training_state=training_state)

    def _to_store(self) -> TaskModel:
        model = self._fitted().copy()
        model.params, model.estimator = self.get_params(deep=False), type(self).__name__
        return model

    @classmethod
    def load(cls, path: Origin, *, mmap: bool = False, trusted: bool = False) -> Self:
        """Open a file written by `save`; ModelFileError if it is not a complete, valid model of this class.

        `trusted`: see `structsvm.load`.
        """
        return cls._loaded(path, cls._model_class.load(path, mmap=mmap, trusted=trusted))

    @classmethod
    def of_contents(
        cls, path: Origin, header: dict[str, Any], arrays: dict[str, AnyArray], trusted: bool = False
    ) -> Self:
        """The estimator of `contents`, which stood in the file `path`; raises as `load`."""
        file = ModelFile(cls._model_class.kind, header, arrays)
        return cls._loaded(path, cls._model_class.of_contents(path, file, trusted))

    @classmethod
    def _loaded(cls, path: Origin, model: TaskModel, **given: object) -> Self:
        """The estimator of a model, with its parameters and those that are given."""
        if model.estimator != cls.__name__:
            raise ModelFileError(f"{name_of(path)}: a model of {model.estimator!r:.80}, not of {cls.__name__!r}")
        with unsound(path, model.kind):
            known = cls().get_params(deep=False).keys()
            self = cls(**{name: value for name, value in snapshot(model.params).items() if name in known} | given)
            self._check_params()
            self._adopt(model)
        if others := sorted(model.params.keys() - known):
            warn(
                f"{name_of(path)}: of another version, whose {cls.__name__} had the parameters "
                f"{', '.join(others):.300}; the model predicts as it did, and a training from nothing has the defaults "
                "of what replaced them",
                AdviceWarning,
            )
        return self


class StructureEstimator(TaskEstimator):
    """Base of the estimators whose inputs and outputs are not rows and labels: sequences, trees, alignments, meanings.

    A subclass declares its kinds of inputs with scikit-learn's tags.
    """

    _confidence = of_structure
    _inputs: tuple[str, ...] = ("string",)
    _requires_y = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._requires_y
        tags.target_tags.single_output, tags.target_tags.multi_output = False, True
        tags.input_tags.two_d_array = False
        for kind in self._inputs:
            setattr(tags.input_tags, kind, True)
        return tags


def fitted_attributes(model: TaskModel) -> dict[str, object]:
    """The attributes of an estimator that has this model."""
    return {"model_": model, **model.columns}


def as_list(X: object, what: str, name: str = "X") -> list[Any]:
    """The inputs X as a list; ValueError, with their name, unless they are a collection of `what`."""
    if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
        raise ValueError(f"{name} must be a list of {what}, got {X!r:.80}")
    return X if isinstance(X, PlacedList) else list(X)


def share_of(right: NDArray[np.bool_] | Floats, says: NDArray[np.bool_], sample_weight: ArrayLike | None) -> float:
    """The share of samples that are right, among those of which something is known."""
    weight = checked_sample_weight(sample_weight, len(says))
    return float(np.average(right, weights=says if weight is None else weight * says))


def weighted_by_class(examples: LabeledRows, class_weight: Any, labels: Sequence[Hashable]) -> LabeledRows:
    """`LabeledRows` with their weights times the weight of each row's class."""
    costs = label_costs(class_weight, list(labels), examples.label_ids)
    if costs is None:
        return examples
    weight = 1.0 if examples.weight is None else examples.weight
    return dataclasses.replace(examples, weight=costs[examples.label_ids] * weight)
