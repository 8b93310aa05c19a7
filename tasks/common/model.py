"""The model of a task, without scikit-learn: what was learnt, how training continues, and its file.

Estimators wrap it for Python users; the command line uses it directly, because importing scikit-learn takes longer than
training a chunker.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.checkpoint import check_state, resumed
from structsvm.model_file import ModelFile, ModelFileError, read_model, under, unsound, write_model
from structsvm.new_file import check_new_file
from structsvm.progress import Monitor
from structsvm.result import ConvergenceWarning, read_result, relative_gap, result_arrays
from structsvm.solvers import ConditionalLikelihood, LatentSVM
from structsvm.solvers.latent import LatentRun
from structsvm.solvers.run import DualRun
from structsvm.stored_values import Count, Field, Names, Number, Record, Stored, Value
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.parameters import params_from_json, params_to_json
from structsvm.tasks.common.selection import Choice, ChoiceCheckpoint, Search, stored_choice
from structsvm.tasks.common.solver import inner_of


class Outcome(Field):
    """The result of a training, and its state."""

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        result, state = value
        header[name] = None if result is None else result.to_dict()
        arrays |= result_arrays(result, state)

    def get(self, name: str, header: Any, arrays: Any = None, prefix: str = "") -> Any:
        numbers = super().get(name, header)
        return (None, None) if numbers is None else read_result(numbers, under(arrays, prefix))


# What a file contains of a training, and of the model around it.
TRAINING = Record({
    "fingerprint": Count(-(2**63), 2**64 - 1),
    "C": Number(null=True),
    "result": Outcome(of=lambda model: (model.result, model.state), null=True),
})  # fmt: skip
AROUND = Record({
    "feature_names": Names(of=lambda model: model.named_columns, null=True),
    "choice": Value(Choice.from_json, Choice.to_json, null=True),
    "temperature": Number(null=True),
    **TRAINING.fields,
})  # fmt: skip


class TaskModel(ABC):
    """Base of the models.

    A subclass names its `kind` and its usual `estimator`, and implements `bind`, `record` and `from_record`; also
    `learn` and `around` if it learns anything but one vector of weights.

    Attributes
    ----------
    weights : ndarray
    result : Result or None
        None: not trained.
    state : dict of ndarray, or None
        The training state (`Run.get_state`) that `train` resumes on the same data; None after a batch.
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
    touched_rows : ndarray of int or None
        While a batch is trained on: the rows of weights that it touches.
    """

    kind: ClassVar[str]
    has_temperature: ClassVar[bool] = False  # whether its scores can become probabilities
    sums_over_known: ClassVar[bool] = False  # whether the log loss needs no completions of outputs known in part
    estimator: str
    record: ClassVar[Record]

    oracle: Any
    weights: Any
    result: Any = None
    state: dict[str, np.ndarray] | None = None
    fingerprint: int = 0
    temperature: float | None = None
    C: float | None = None
    choice: Choice | None = None
    touched_rows: Any = None

    def __init__(self, *, params: Any = None) -> None:
        self.params = {} if params is None else params
        self.columns: dict[str, Any] = {}

    # ---- what was learnt ------------------------------------------------------------------------

    def weight_table(self) -> WeightTable:
        """Weights by feature and label; TypeError if features have no names (kernels, hashed features)."""
        raise TypeError(f"{self.estimator} has no weights of named features")

    def explain(self, x: Any) -> Explanation:
        """Why the best output of an input beats the second best."""
        raise TypeError(f"{self.estimator} does not explain its outputs")

    def name_columns(self, n: int) -> list[str]:
        """Names of the columns of X: those of a data frame, or their numbers."""
        names = self.columns.get("feature_names_in_")
        return [f"feature {j}" for j in range(n)] if names is None else list(map(str, names))

    # ---- training -------------------------------------------------------------------------------

    @property
    def is_trained(self) -> bool:
        return self.result is not None

    @abstractmethod
    def bind(self, data: Any, solver: Any, sample_weight: Any = None) -> tuple[Any, Any]:
        """Return ``(problem, sample_weight)``: the oracle bound to encoded data, and the weight of each example."""

    def around(self, problem: Any, sample_weight: Any, solver: Any) -> tuple[Any, Any, Any]:
        """Return ``(problem, sample_weight, base)``: a bound problem, and the current model to start from.

        With weights, the problem is unchanged; a kernel machine adds its support patterns.
        """
        return problem, sample_weight, self.weights

    def learn(self, run: Any) -> None:
        """Set the weights to those of a run."""
        rows, weights = self.touched_rows, self.weights_of(run)
        self.weights = weights if rows is None else put_rows(self.weights.copy(), rows, weights)

    def weights_of(self, run: Any) -> Any:
        """The weights of a run in the order of the model's."""
        return run.weights

    def train(
        self,
        data: Any,
        solver: Any,
        *,
        sample_weight: Any = None,
        monitor: Any = None,
        resume: bool = False,
        passes: int | None = None,
    ) -> Any:
        """Fit to encoded data.

        Parameters
        ----------
        data : object
            As the subclass encodes it.
        solver : Solver
        sample_weight : ndarray of shape (n_samples,), optional
        monitor : see `Solver.solve`
        resume : bool
            Resume from this model: the same run on the same data, the problem around the current weights w0
            (``1/2 |w - w0|^2 + C sum_i xi_i``) on others.
        passes : int, optional
            Number of passes over a batch of a stream, around the current weights; those that the batch touches (see
            `touched`) are written in place, at the end.

        Returns
        -------
        Run
            Which may have been interrupted.

        Raises
        ------
        ValueError
            If `resume` is set and the formulation differs from that of the training so far.
        """
        solver = self.completing(solver, data)
        solver.validate()
        model, data, self.touched_rows = (self, data, None) if passes is None else self.touched(data)
        run = model.solve(data, solver, sample_weight, monitor, resume, passes)
        if self.touched_rows is not None:
            self.__dict__.update({name: getattr(model, name) for name in TRAINED})
            weights = self.weights if self.weights.flags.writeable else self.weights.copy()
            self.weights, self.touched_rows = put_rows(weights, self.touched_rows, model.weights), None
        return run

    def touched(self, data: Any) -> tuple[Any, Any, Any]:
        """Return ``(model, data, rows)``: the model of only those features that a batch has, the batch in its features,
        and the rows of weights that are its own; the model, the data and None if it must learn all weights.

        The cost of a batch of a stream then depends on the batch alone.
        """
        return self, data, None

    def narrowed(self, data: Any) -> tuple[Any, Any, Any]:
        """`touched` of a model whose oracle has that method; the oracle scores the first of its data."""
        model = self.again()
        model.oracle, inputs, rows = self.oracle.touched(data[0])
        if not len(rows):  # the features have no weights
            return self, data, None
        model.weights = self.weights.reshape(-1, model.oracle.n_features // len(rows))[rows].ravel()
        return model, (inputs, *data[1:]), rows

    def solve(self, data: Any, solver: Any, sample_weight: Any, monitor: Any, resume: bool, passes: int | None) -> Any:
        """Train with the chosen solver; see `train`."""
        problem, weight = self.bind(data, solver, sample_weight)
        self.C = inner_of(solver).get_params().get("C")
        run = base = before = None
        if not self.is_trained or not (resume or passes is not None):
            base = self.prior(data, sample_weight)
            run = self.begun(solver, problem, weight) if passes is None else None
        else:
            if passes is None:
                run = resumed(solver, problem, self.state_for(problem), self.fingerprint, sample_weight=weight)
            if run is None:
                before = self.again()
                problem, weight, base = self.around(problem, weight, solver)
        run = solver.solve(problem, sample_weight=weight, base=base, run=run, monitor=monitor, passes=passes)
        if passes is None and isinstance(run, DualRun) and run.has_dual and run.status == "max_iter":
            warn_of_gap(run, solver)
        self.result = run.result()  # whose norms may need an average, of which one at a time is enough
        self.learn(run)
        self.state = self.state_after(run, passes)
        self.fingerprint = problem.fingerprint() if passes is None else 0
        self.finish(run.inner.solver if isinstance(run, LatentRun) else solver, run, weight, before)
        return run

    def is_open(self, data: Any) -> bool:
        """Whether some outputs in encoded data are known in part."""
        return False

    def known_whole(self, data: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Encoded data and weights of the examples whose outputs are fully known."""
        return data, sample_weight

    def completing(self, solver: Any, data: Any) -> Any:
        """The solver, in a `LatentSVM` if some outputs in encoded data are known in part."""
        needs_none = (LatentSVM, ConditionalLikelihood) if self.sums_over_known else LatentSVM
        return LatentSVM(solver) if self.is_open(data) and not isinstance(solver, needs_none) else solver

    def finish(self, solver: Any, run: Any, sample_weight: Any, before: Any) -> None:
        """Learn what does not come from the run itself, such as a temperature.

        `before` is the model before training on new data, such as a batch of a stream; None if there was none, or if it
        was trained on the same data. If Ctrl-C ends this, the run's status becomes "interrupted".
        """
        return

    def state_for(self, problem: Any) -> Any:
        """The stored training state, in the form that a problem takes."""
        return self.state

    def state_after(self, run: Any, passes: int | None) -> Any:
        """The training state to store after a run, or after `passes` passes over a batch of a stream."""
        return run.get_state() if passes is None else None

    def begun(self, solver: Any, problem: Any, sample_weight: Any) -> Any:
        """The run that a first training resumes; None: a fresh one."""
        return

    def prior(self, data: Any, sample_weight: Any) -> Any:
        """The weights that a first training on encoded data starts from and stays close to; None: 0."""
        return

    def again(self) -> Any:
        """A copy of the model, to be trained further while this one still predicts."""
        return copy.copy(self)

    def so_far(self, run: Any) -> Any:
        """A model with the current state of a run, for prediction."""
        model = self.again()
        model.learn(run)
        return model

    # ---- model files ----------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def from_record(cls, stored: Stored) -> Self:
        """A model of what a file contains, without its training. Any exception of `unsound` for invalid contents."""

    @classmethod
    def kind_in(cls, header: dict[str, Any]) -> type[TaskModel]:
        """The class of the model that a file's header describes."""
        return cls

    def check(self) -> None:
        """Raise ValueError if the contents of a file, including its training state, do not fit together."""
        return

    def state_sizes(self) -> dict[str, int]:
        """Sizes of the model, by their names in the tables of its training states."""
        return {}

    def stored_params(self) -> Any:
        """The parameters as stored in a file."""
        return self.params

    @staticmethod
    def suspicion(header: dict[str, Any]) -> str | None:
        """What a file's header needs `trusted` for: something to run or to open."""
        return None

    def restored_params(self, params: Any) -> Any:
        """The stored parameters, in the form that the estimator takes."""
        return params

    @property
    def named_columns(self) -> list[str] | None:
        """Names of the columns of X, if they have some."""
        names = self.columns.get("feature_names_in_")
        return None if names is None else [str(name) for name in names]

    def set_training(self, stored: Stored) -> None:
        """Restore the last training."""
        self.C, (self.result, self.state) = stored.C, stored.result
        if self.state is not None:
            check_state(self.state, **self.state_sizes())
            self.fingerprint = stored.fingerprint

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; see `structsvm.model_file`.

        Raises
        ------
        TypeError
            For what a file cannot hold, such as labels that are not strings, numbers or tuples. No file is touched.
        """
        write_model(path, self.kind, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of the model file."""
        own, arrays = self.record.write(self)
        params, matrices = params_to_json(self.stored_params())
        around, of_training = AROUND.write(self)
        header = {"estimator": self.estimator, "params": params, **own, **around}
        return header, arrays | matrices | of_training

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False, trusted: bool = False) -> Self:
        """Read a model file; ModelFileError if it is not a complete, valid model of this kind.

        `trusted`: see `structsvm.load`.
        """
        return cls.of_contents(path, read_model(path, kind=cls.kind, mmap=mmap), trusted)

    @classmethod
    def of_contents(cls, path: str | os.PathLike[str], file: ModelFile, trusted: bool) -> Self:
        """The model of `contents`, read from `path`; raises as `load`."""
        with unsound(path, cls.kind):
            header = file.meta
            suspicion = None if trusted else cls.suspicion(header)
            if suspicion is not None:
                raise ModelFileError(f"{path}: {suspicion}; if you trust the file's author, load it with trusted=True")
            kind = cls.kind_in(header)
            model: Any = kind.from_record(kind.record.read(header, file.arrays))
            model.estimator = header["estimator"]
            model.params = model.restored_params(params_from_json(header["params"], file.under("params.")))
            stored = AROUND.read(header, file.arrays)
            if stored.feature_names is not None:
                if len(stored.feature_names) != model.columns.get("n_features_in_"):
                    raise ValueError(f"{len(stored.feature_names)} names of features")
                model.columns["feature_names_in_"] = np.array(stored.feature_names, dtype=object)
            model.choice, model.temperature = stored.choice, stored.temperature
            if model.temperature is not None and not model.has_temperature:
                raise ValueError("a temperature, which models of this kind do not have")
            model.set_training(stored)
            model.check()
        return model


class ChoosingModel(TaskModel):
    """Base of the models that choose C on held-out examples: on `most_examples` of them, drawn if there are more.

    Too few to be divided are trained on with `C_of_few`; None: with the C of batches.
    """

    most_examples: ClassVar[float] = np.inf
    C_of_few: ClassVar[float | None] = None

    def train(
        self,
        data: Any,
        solver: Any,
        *,
        sample_weight: Any = None,
        monitor: Any = None,
        passes: int | None = None,
        choose: bool = False,
        **options: Any,
    ) -> Any:
        """As `TaskModel.train`.

        Parameters
        ----------
        choose : bool
            Whether the solver's C is only the default: the C of an earlier choice replaces it, or, if there is none,
            this is not a batch of a stream and the examples are not too few, one that is chosen now.
        """
        if choose:
            solver = self.completing(solver, data)
            solver.validate()
            if self.choice is None and passes is None:
                partial = self._choose(data, solver, sample_weight, Monitor() if monitor is None else monitor)
                if partial is not None:
                    return partial
            if self.choice is not None:
                solver.set_params(C=self.choice.C)
                self.apply_choice(self.choice)
            elif passes is None:
                self.provide_for_few(solver)
        else:
            self.choice = None
        return super().train(data, solver, sample_weight=sample_weight, monitor=monitor, passes=passes, **options)

    def provide_for_few(self, solver: Any) -> None:
        """Give a solver `C_of_few`."""
        if self.C_of_few is not None:
            solver.set_params(C=self.C_of_few)

    def _choose(self, data: Any, solver: Any, sample_weight: Any, monitor: Monitor) -> Any:
        """Set `choice`, or read it from the solver's checkpoint; returns a run that was interrupted meanwhile, or None.

        Partly known examples cannot be scored: the others decide. The checkpoint then stores C, so training resumes
        with the same one. If interrupted, the model is that of the current C on a part of the examples.
        """
        path = solver.checkpoint
        if path is not None and os.path.exists(path):
            self.choice, is_known = stored_choice(path)
        else:
            is_known = False
        if path is not None:
            check_new_file(path)
        if not is_known:
            search = self.search(*self.known_whole(data, sample_weight), inner_of(solver))
            try:
                self.choice = search.choose(monitor)
            except KeyboardInterrupt:
                part = search.part
                if part is None or part.run is None:
                    raise
                monitor.close()
                return self._adopt_part(part)
            for text in [] if self.choice is None else self.choice.edges:
                warn(
                    f"{text} is at the edge of the values that were tried; the best may lie beyond, which a search "
                    "over larger and smaller C would find",
                    AdviceWarning,
                )
        if path is not None:
            solver.set_params(checkpoint=ChoiceCheckpoint(path, solver.checkpoint_every, self.choice))
        return None

    def search(self, data: Any, sample_weight: Any, solver: Any) -> Any:
        """The search for C: its `choose` returns a `Choice`, its `part` is the running training."""
        return Search(self, *self.drawn(data, sample_weight), solver)

    def drawn(self, data: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Encoded data and weights of the examples that choose."""
        n = self.n_examples(data)
        if n <= self.most_examples:
            return data, sample_weight
        drawn = np.sort(np.random.default_rng(0).permutation(n)[: int(self.most_examples)])
        return self.some(data, sample_weight, drawn)

    def some(self, data: Any, sample_weight: Any, chosen: Any) -> tuple[Any, Any]:
        """Encoded data and weights of some examples, given by their indices."""
        return self.divide(data, chosen, chosen[:0])[0], None if sample_weight is None else sample_weight[chosen]

    def _adopt_part(self, part: Any) -> Any:
        """Restore the model of an interrupted training on a part of the examples; returns its run."""
        run = part.run
        run.interrupt()
        run.is_trial = True
        self.learn(run)
        self.adopt(part)
        self.result, self.state, self.fingerprint, self.C = run.result(), None, 0, run.solver.C
        self.temperature = None
        return run

    def adopt(self, part: Any) -> None:
        """Convert indices of examples in a model trained on a part of them into indices of all."""
        return

    def apply_choice(self, choice: Choice) -> None:
        """Set the other chosen parameters."""
        return

    def distinct(self, data: Any, sample_weight: Any, solver: Any) -> tuple[Any, Any]:
        """Encoded data and weights, with equal examples merged if training does not distinguish them."""
        return data, sample_weight

    def n_examples(self, data: Any) -> int:
        """The number of examples of encoded data."""
        return len(data[1])

    def groups(self, data: Any) -> Any:
        """A number >= 0 per example, equal for examples that are not independent; None: all of them are."""
        return

    def strata(self, data: Any) -> Any:
        """Label ids of the examples; each label keeps its share. None: examples do not have a single label."""
        return

    @abstractmethod
    def divide(self, data: Any, train: Any, test: Any) -> tuple[Any, Any]:
        """Encoded data of two sets of examples, given by their indices."""

    @abstractmethod
    def judged(self, data: Any) -> tuple[str, Any, Any]:
        """The predictions of encoded data scored by the task's own metric, as for `Held`."""

    @abstractmethod
    def scale(self, data: Any) -> float:
        """The scale of 1 / C: roughly the size of ``|dPsi|^2 / loss``."""


# What a training sets beside weights.
TRAINED = ("C", "result", "state", "fingerprint", "temperature")


def put_rows(weights: Any, rows: Any, values: Any) -> Any:
    """Set rows of weights to flat values; returns `weights`."""
    weights.reshape(-1, len(values) // len(rows))[rows] = values.reshape(len(rows), -1)
    return weights


# A relative gap at which a training has hardly begun.
WIDE_GAP = 0.5


def warn_of_gap(run: Any, solver: Any) -> None:
    """Warn of a training without `max_iter` and `tol` that has ended far from the optimum."""
    gap = relative_gap(run.primal, run.dual)
    if gap > WIDE_GAP and solver.tol is None and solver.max_iter is None:
        warn(
            f"{type(solver).__name__} stopped after {run.n_iter} passes at a relative gap of {gap:.2g}: set max_iter "
            "or tol for more of them; features of very different sizes slow training down, as does a large C",
            ConvergenceWarning,
        )
