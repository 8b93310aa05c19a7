"""The model of a task, without scikit-learn: what was learnt, how training continues, and its file.

Estimators wrap it for Python users; the command line uses it directly, because importing scikit-learn takes longer than
training a chunker.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.checkpoint import checked_state
from structsvm.features.dense import DenseRows, are_uneven
from structsvm.features.tables.forms import Reading
from structsvm.files.weight_rows import in_few_bits
from structsvm.model_file import ModelFile, ModelFileError, name_of, read_model, under, unsound, write_model
from structsvm.result import read_result, result_arrays
from structsvm.solvers import LatentSVM
from structsvm.stored_values import Count, Field, Names, Number, Record, Stored, Text, Value
from structsvm.tasks.common.examples import E
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.parameters import params_from_json, params_to_json
from structsvm.tasks.common.selection.choice import Choice
from structsvm.tasks.common.selection.compaction import report_from
from structsvm.tasks.common.selection.pruning import BITS, is_fine
from structsvm.tasks.common.selection.search import Held, LossSearch, Search
from structsvm.tasks.common.solver import AUTO, named, solver_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structsvm._problem import BoundProblem
    from structsvm.arrays import AnyArray, Floats, Integers, State, Weights
    from structsvm.model_file import Destination, Origin
    from structsvm.parameters import ParameterGroup
    from structsvm.result import Result
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.calibration import Calibration
    from structsvm.tasks.common.kernel_machine import KernelPoint
    from structsvm.tasks.common.selection.search import Part
    from structsvm.tasks.common.selection.sparse import RivalSearch
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.common.units import Units


class Outcome(Field):
    """The result of a training, and its state."""

    def put(
        self,
        name: str,
        value: tuple[Result | None, State | None],
        header: dict[str, object],
        arrays: dict[str, AnyArray],
    ) -> None:
        result, state = value
        header[name] = None if result is None else result.to_dict()
        arrays |= result_arrays(result, state)

    def get(
        self, name: str, header: Mapping[str, object], arrays: Any = None, prefix: str = ""
    ) -> tuple[Result | None, State | None]:
        numbers = super().get(name, header)
        return (None, None) if numbers is None else read_result(numbers, under(arrays, prefix))


# Attributes that scikit-learn's `validate_data` sets from X.
COLUMNS = ("n_features_in_", "feature_names_in_")
# Entries of a training in a file, and of the model around it.
TRAINING = Record({
    "fingerprint": Count(-(2**63), 2**64 - 1),
    "C": Number(null=True),
    "result": Outcome(of=lambda model: (model.result, model.state), null=True),
})  # fmt: skip
# Entries of a sum's part that was trained on a margin.
MARGIN = Record({"loss": Text(), **TRAINING.fields}, needed=False)
AROUND = Record({
    "feature_names": Names(of=lambda model: model.named_columns, null=True),
    "choice": Value(Choice.from_json, Choice.to_json, null=True),
    "reading": Value(Reading.of, Reading.to_json, needed=False),
    "first_index": Count(0, 1, needed=False),
    "temperature": Number(null=True),
    "report": Value(report_from, needed=False),
    **TRAINING.fields,
})  # fmt: skip


class TaskModel(ABC, Generic[E]):
    """Base of the models.

    A subclass names its `kind` and its usual `estimator`, and implements `bind`, `record` and `from_record`; for
    ``C="auto"`` also `held_out_scores` and `scale`. All other methods have defaults, which say what they are for.

    Attributes
    ----------
    weights : ndarray
    result : Result or None
        None: not trained.
    state : dict of ndarray, or None
        The training state (`Run.get_state`) that training resumes on the same data; None after a batch.
    fingerprint : int
        Of the problem that `state` belongs to.
    C : float or None
        That of the last training, if its solver has one.
    choice : Choice or None
        How C was chosen, if it was.
    params : dict
        The estimator's parameters; a model file stores those that it can.
    estimator : str
        Name of the estimator's class.
    record : Record
        What a file contains of the model, beside what all of them have.
    temperature : float or None
        Scores divided by it are log-odds; see `structsvm.tasks.common.calibration`.
    columns : dict
        What scikit-learn records about X: ``n_features_in_``, and ``feature_names_in_`` if the columns had names.
    reading : Reading or None
        The columns of the training file that are meant, if the command line was told, for the files of predictions.
    first_index : int or None
        The index of the first feature in the training file, of the command line, if it was in svmlight format.
    margin : TaskModel or None
        The part of a sum of losses that was trained on a margin; `result` and `state` are then those of the log loss's
        part. None: there is one part.
    units : Units or None
        The units of columns of numbers; None: they have none.
    largest : float or None
        The largest number in the rows of the first training, without outliers; None: not known.
    n_unknown : int or None
        The number of labels of which the last training knew nothing; None: not trained here.
    n_left_out : int or None
        Features without weight that the model's file does not have; None: it has all.
    report : dict or None
        Of a compact model, what `TaskEstimator.compact` reports.
    scaled : tuple or None
        Weights, a temperature, and the weights divided by it, once these were asked for: `probable_weights`.
    """

    kind: ClassVar[str]
    has_temperature: ClassVar[bool] = False  # whether its scores can become probabilities
    calibration: ClassVar[Calibration | None] = None  # how the temperature is fitted after training
    calibrates: bool = True  # whether it is without a parameter `probability`
    sums_over_known: ClassVar[bool] = False  # whether the log loss needs no completions of outputs known in part
    most_examples: ClassVar[float] = np.inf  # for the choice of C, drawn if there are more
    C_of_few: ClassVar[float | None] = None  # for too few examples to be divided; None: that of batches
    compares_always: ClassVar[bool] = False  # whether losses are compared even if C is given
    comparison: ClassVar[type[LossSearch] | None] = None  # search over losses, if "auto" leaves them open
    rivals: ClassVar[tuple[type[Solver], ...]] = ()  # solvers that may replace the usual one then
    groups: ClassVar[tuple[type[ParameterGroup], ...]] = ()  # classes of groups among the parameters
    narrows: ClassVar[bool] = False  # whether the oracle can score those features alone that a batch has
    needs_state: ClassVar[bool] = False  # whether a stream continues, or its attributes are read, from its state alone
    prunes: ClassVar[bool] = False  # whether weights that no output feels become 0, where C is chosen
    grows: ClassVar[bool] = False  # whether LaRank goes on, in a sum, from where the choice of C has left it
    estimator: str
    record: ClassVar[Record]

    oracle: Any
    weights: Floats
    loss: Any
    result: Any = None
    state: State | None = None
    fingerprint: int = 0
    temperature: float | None = None
    C: float | None = None
    choice: Choice | None = None
    margin: Any = None
    reading: Reading | None = None
    first_index: int | None = None
    units: Units | None = None
    largest: float | None = None
    n_unknown: int | None = None
    n_left_out: int | None = None
    report: dict[str, float | str] | None = None
    scaled: tuple[Floats, float, Floats] | None = None

    def __init__(self, *, params: dict[str, Any] | None = None) -> None:
        self.params = {} if params is None else params
        self.columns: dict[str, Any] = {}

    # ---- what was learnt ------------------------------------------------------------------------

    def weight_table(self) -> WeightTable:
        """Weights by feature and label; TypeError if features have no names (kernels, hashed features)."""
        raise TypeError(f"{self.estimator} has no weights of named features")

    def explain(self, x: Any) -> Explanation:
        """Why the best output of an input beats the second best."""
        raise TypeError(f"{self.estimator} does not explain its outputs")

    def holds_several(self, x: object) -> bool:
        """Return whether x is a list of inputs; a model of rows of numbers says so where it reads the row."""
        return False

    def cause_of_gap(self, examples: Any) -> str:
        """A clause on what in the data keeps training far from the optimum, with the cure; empty if nothing does."""
        if not are_uneven(examples.inputs):
            return ""
        return "features of very different sizes, as here, slow training down: bring them to one size"

    def name_columns(self, n: int) -> list[str]:
        """Names of the columns of X: those of a data frame, or their numbers."""
        names = self.columns.get("feature_names_in_")
        return [f"feature {j}" for j in range(n)] if names is None else list(map(str, names))

    @property
    def results(self) -> dict[str, Result]:
        """The outcome of each training, by its loss."""
        trained = [model for model in (self, self.margin) if model is not None and model.is_trained]
        return {named(model.loss): model.result for model in trained}

    @property
    def usual_sizes(self) -> Floats | None:
        """Sizes that values of each column of X had in training; None: not known."""
        units = self.units
        return None if units is None or units.centre is None else units.usual

    # ---- training: see `structsvm.tasks.common.training` ------------------------------------------

    @property
    def is_trained(self) -> bool:
        return self.result is not None

    def adapted(self, solver: Any, examples: E) -> Solver:
        """The solver as training on examples needs it: in a `LatentSVM` if some outputs are known in part."""
        is_able = solver.completes or (self.sums_over_known and solver.is_likelihood)
        return solver if is_able or not examples.has_unknown else LatentSVM(solver)

    def most_passes(self, solver: Any) -> int:
        """Maximum number of passes where the loss is chosen; `solver` is the one of the first loss."""
        is_limited = solver.inner.max_iter is not None or solver.inner.tol is not None
        if is_limited or self.params.get("solver") not in (AUTO, "larank"):
            return solver.n_passes
        return max([solver.n_passes, *(rival.usual_passes for rival in self.rivals)])

    def settle(self, job: Job[E]) -> None:
        """Set what the examples of a first training settle, such as units; may change the job's examples."""
        return

    @abstractmethod
    def bind(self, examples: E, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """Return ``(problem, sample_weight)``: the oracle bound to examples, and the weight of each of its own."""

    def prior(self, examples: E) -> Floats | None:
        """The weights that a first training starts from and stays close to; None: 0."""
        return None

    def warm_run(self, job: Job[E]) -> Run | None:
        """The run that a first training resumes; None: a fresh one. One that was interrupted ends training."""
        return None

    def solver_around(self, solver: Solver) -> Solver:
        """The solver that starts from what was learnt before, where no run is resumed."""
        return solver

    def recentred(
        self, problem: BoundProblem, sample_weight: Weights | None, solver: Solver
    ) -> tuple[BoundProblem, Weights | None, Floats | KernelPoint | State | None]:
        """Return ``(problem, sample_weight, base)``: a bound problem, and the current model to start from.

        With weights, the problem is unchanged; a kernel machine adds its support patterns.
        """
        return problem, sample_weight, problem.from_oracle(self.weights)

    def narrowed(self, examples: E) -> tuple[Self, E, Integers | None]:
        """Return ``(model, examples, rows)``: the model of only those features that a batch has, the batch in its
        features, and the rows of weights that are its own; the model, the batch and None if it must learn all weights.

        The cost of a batch of a stream then depends on the batch alone.
        """
        if not self.narrows or isinstance(examples.inputs, DenseRows):
            return self, examples, None
        model = self.copy()
        model.oracle, inputs, rows = self.oracle.touched(examples.inputs)
        if not len(rows):  # the features have no weights
            return self, examples, None
        model.weights = rows_of(self.weights, rows, model.oracle.n_features)
        return model, examples.with_inputs(inputs), rows

    def set_weights_from(self, run: Any) -> None:
        """Set the weights to those of a run, in the order of the oracle."""
        self.weights = run.problem.to_oracle(run.weights)

    def state_of(self, run: Run, passes: int | None) -> State | None:
        """The training state to store after a run, or after `passes` passes over a batch of a stream."""
        return reordered(run.get_state(), run.problem.to_oracle) if passes is None else None

    def state_for(self, problem: BoundProblem) -> State | None:
        """The stored training state, in the form that a problem takes."""
        return None if self.state is None else reordered(self.state, problem.from_oracle)

    def finish(self, job: Job[E]) -> None:
        """Learn what does not come from the run itself. If Ctrl-C ends this, the run's status becomes "interrupted"."""
        return

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, for copies and pickles, without what is computed again when it is needed."""
        return {**self.__dict__, "scaled": None}

    def copy(self) -> Self:
        """A copy of the model, to be trained further while this one still predicts."""
        return copy.copy(self)

    # ---- the choice of C and of the loss: see `structsvm.tasks.common.selection` --------------------

    def search(self, examples: Any, solver: Solver) -> Search | LossSearch | RivalSearch:
        """The search for C and the loss: its `choose` returns a `Choice`, its `part` is the running training.

        Of shards, C is chosen on as many examples as one may have, and the loss is not.
        """
        if examples.is_stored:
            return self.search_of_loss(examples.in_memory(), solver)
        losses = self.losses_to_compare(examples)
        if self.comparison is None or not losses:
            return self.search_of_loss(examples, solver)
        models = [self.with_loss(loss) for loss in losses]
        searches = [model.search_of_loss(examples, self.solver_of_loss(model.loss)) for model in models]
        return self.comparison(searches, solver.n_jobs)

    def search_of_loss(self, examples: E, solver: Solver) -> Search:
        """The search for C with the current loss."""
        return Search(self, examples.subsample(self.most_examples), solver)

    def held_out_scores(self, examples: E) -> Held:
        """The predictions of examples scored by the task's own metric."""
        raise TypeError(f"{self.estimator} does not choose C")

    def choice_scores(self, examples: E) -> Held:
        """The scores of held-out examples by which C is chosen."""
        return self.held_out_scores(examples)

    def outputs_of(self, examples: E) -> Integers:
        """The predicted outputs of examples, to compare models by: one integer per label."""
        raise TypeError(f"{self.estimator} does not prune weights")

    def pruned(self, size: float) -> Floats:
        """The weights, with 0 for those below a size."""
        return np.where(np.abs(self.weights) < size, self.weights.dtype.type(0.0), self.weights)

    def without_unfelt(self, size: float) -> Floats:
        """The weights, with 0 for those below a size that no output feels, in 16 bits where these change far less."""
        weights, lengths = self.pruned(size), self.weight_rows()
        if lengths is None or not is_fine(weights, size):
            return weights
        return in_few_bits(weights, lengths, BITS)

    # ---- compact models: see `structsvm.tasks.common.selection.compaction` --------------------------

    def weight_rows(self) -> Integers | None:
        """Lengths of the rows of weights, which share a unit in few bits; None: there are no compact models."""
        return None

    def in_few_bits(self, least: float, bits: int) -> Self:
        """A copy with 0 for weights below a size, and with few bits for the others."""
        other, lengths = self.without_state(), self.weight_rows()
        if lengths is not None:
            other.weights = in_few_bits(self.pruned(least), lengths, bits)
        return other

    def output_scores(self, examples: E) -> Held:
        """The scores of examples by the outputs that users see."""
        return self.held_out_scores(examples)

    @property
    def stored_weights(self) -> tuple[Floats, Integers | None]:
        """The weights, and the lengths of their rows if a file is to have these by their entries."""
        return self.weights, None if self.report is None else self.weight_rows()

    def scale(self, examples: E) -> float:
        """The scale of 1 / C: roughly the size of ``|dPsi|^2 / loss``."""
        raise TypeError(f"{self.estimator} does not choose C")

    def adopt(self, part: Part) -> None:
        """Convert indices of examples in a model trained on a part of them into indices of all."""
        return

    def adopt_loss(self, other: Self) -> None:
        """Take over the loss that another copy of the model is trained with."""
        return

    def apply_choice(self, choice: Choice) -> None:
        """Set the other chosen parameters."""
        return

    def first_loss(self, examples: E) -> str:
        """The loss of a first training if none is chosen."""
        return self.loss

    def losses_to_compare(self, examples: E) -> Sequence[str]:
        """The losses to choose from, in the order of preference; none if the loss is fixed."""
        return ()

    def solver_of_loss(self, loss: str) -> Solver:
        """The solver that the model's parameters name for a loss."""
        return solver_of(self.params, loss)

    def set_loss(self, loss: Any) -> None:
        """Train with a loss from now on."""
        if loss != self.loss:
            self.oracle = self.oracle.with_loss(loss)

    def with_loss(self, loss: Any) -> Self:
        """The same model, to be trained with another loss."""
        model = self.copy()
        model.set_loss(loss)
        return model

    # ---- probabilities: see `structsvm.tasks.common.calibration` -------------------------------------

    @property
    def can_sum(self) -> bool:
        """Whether all outputs compete: greedy search has no others to compare."""
        return True

    def no_sums(self, asked: str) -> str:
        """The reason why what asks for sums has none, where `can_sum` is False."""
        return f"{asked} needs inference='exact'; greedy search has no other labellings to compare"

    def incomplete(self, problem: BoundProblem) -> BoundProblem:
        """The problem whose outputs are known as far as the data tell, of one that completions may have changed."""
        return problem

    def class_scores(self, X: Any) -> Floats:
        """Scores of all labels for encoded examples: array (n_samples, n_labels)."""
        raise TypeError(f"{self.estimator} has no scores of classes")

    def examples_of(self, problem: Any, chosen: Integers) -> tuple[Any, NDArray[np.bool_]]:
        """Some examples of a problem, by their indices: encoded, and as bool array which labels each may have."""
        raise TypeError(f"{self.estimator} has no scores of classes")

    # ---- model files ----------------------------------------------------------------------------

    def set_margin(self, stored: Stored | None) -> None:
        """Restore the margin's training, if a file has one."""
        if stored is None:
            return
        self.margin = self.with_loss(stored.loss)
        self.margin.set_training(stored)
        if None in (self.margin.C, self.margin.result):
            raise ValueError("a part of a sum without its training")

    @classmethod
    @abstractmethod
    def from_record(cls, stored: Stored) -> Self:
        """A model of what a file contains, without its training. Any exception of `unsound` for invalid contents."""

    @classmethod
    def kind_in(cls, header: dict[str, object]) -> type[TaskModel]:
        """The class of the model that a file's header describes."""
        return cls

    def check(self) -> None:
        """Raise ValueError if the contents of a file, including its training state, do not fit together."""
        return

    def state_sizes(self) -> dict[str, int]:
        """Sizes of the model, by their names in the tables of its training states."""
        return {}

    def stored_params(self) -> dict[str, object]:
        """The parameters as stored in a file."""
        return self.params

    @staticmethod
    def suspicion(header: dict[str, object]) -> str | None:
        """Return why a file's header needs `trusted`: something to run or to open. None: it does not."""
        return None

    def restored_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The stored parameters, in the form that the estimator takes."""
        return params

    @property
    def named_columns(self) -> list[str] | None:
        """Names of the columns of X, if they have some."""
        names = self.columns.get("feature_names_in_")
        return None if names is None else [str(name) for name in names]

    def set_training(self, stored: Stored) -> None:
        """Restore the last training, and the fingerprint of its problem even if there is no state."""
        self.C, (self.result, self.state), self.fingerprint = stored.C, stored.result, stored.fingerprint
        if self.state is not None:
            self.state = checked_state(self.state, **self.state_sizes())

    def save(self, path: Destination, *, training_state: bool | None = None) -> None:
        """Write the model file; see `structsvm.model_file`, and `contents` for `training_state`.

        Raises
        ------
        TypeError
            For what a file cannot hold, such as labels that are not strings, numbers or tuples. No file is touched.
        """
        write_model(path, self.kind, *self.contents(training_state=training_state), deflated=True)

    def contents(self, *, training_state: bool | None = None) -> tuple[dict[str, object], dict[str, AnyArray]]:
        """Header and arrays of the model file.

        The training state, from which a warm start resumes the run on the same data, is often larger than the model: it
        is written if `training_state` is True, or None and the parameter `warm_start` is True.
        """
        if training_state is None:
            training_state = bool(self.params.get("warm_start"))
        model = self if training_state or self.needs_state else self.without_state().narrowed_by_weights()
        own, arrays = model.record.write(model)
        params, matrices = params_to_json(model.stored_params())
        around, of_training = AROUND.write(model)
        header = {"estimator": model.estimator, "params": params, **own, **around}
        return header, arrays | matrices | of_training

    def without_state(self) -> Self:
        """A copy of the model without what only training needs."""
        model = self.copy()
        model.state = None
        if model.margin is not None:
            model.margin = model.margin.without_state()
        return model

    def narrowed_by_weights(self) -> Self:
        """The model without features that have no weight, where such were set to 0: what prediction needs."""
        return self

    @classmethod
    def load(cls, path: Origin, *, mmap: bool = False, trusted: bool = False) -> Self:
        """Read a model file; ModelFileError if it is not a complete, valid model of this kind.

        `trusted`: see `structsvm.load`.
        """
        return cls.of_contents(path, read_model(path, kind=cls.kind, mmap=mmap), trusted)

    @classmethod
    def of_contents(cls, path: Origin, file: ModelFile, trusted: bool) -> Self:
        """The model of `contents`, read from `path`; raises as `load`."""
        with unsound(path, cls.kind):
            header = file.meta
            suspicion = None if trusted else cls.suspicion(header)
            if suspicion is not None:
                raise ModelFileError(
                    f"{name_of(path)}: {suspicion}; if you trust the file's author, load it with trusted=True"
                )
            kind = cls.kind_in(header)
            model: Any = kind.from_record(kind.record.read(header, file.arrays))
            model.estimator = header["estimator"]
            params = params_from_json(header["params"], file.under("params."), cls.groups)
            model.params = model.restored_params(params)
            stored = AROUND.read(header, file.arrays)
            if stored.feature_names is not None:
                if len(stored.feature_names) != model.columns.get("n_features_in_"):
                    raise ValueError(f"{len(stored.feature_names)} names of features")
                model.columns["feature_names_in_"] = np.array(stored.feature_names, dtype=object)
            model.choice, model.temperature, model.report = stored.choice, stored.temperature, stored.report
            if model.margin is not None:
                model.margin.choice = stored.choice
            if model.report is not None and model.weight_rows() is None:
                raise ValueError("the report of a compact model, which models of this kind are not")
            model.reading, model.first_index = stored.reading, stored.first_index
            if model.temperature is not None and not model.has_temperature:
                raise ValueError("a temperature, which models of this kind do not have")
            model.set_training(stored)
            if model.margin is not None and (model.state is None) != (model.margin.state is None):
                raise ValueError("a state of one part of a sum alone")
            model.check()
        return model


def rows_of(weights: Floats, rows: Integers, n_features: int) -> Floats:
    """Some rows of weights, flat: those of an oracle with so many features."""
    return weights.reshape(-1, n_features // len(rows))[rows].ravel()


# The arrays of a training state that are vectors of weights.
VECTORS = ("weights", "average_sum", "base", "latent_under")


def reordered(state: State, order: Callable[[Floats], Floats]) -> State:
    """A training state with its vectors of weights in another order."""
    return state | {name: order(state[name]) for name in VECTORS if len(state.get(name, ()))}
