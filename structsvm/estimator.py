"""The generic estimator: any oracle, any solver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm._warnings import AdviceWarning, warn
from structsvm.adapter import OracleError, by_place
from structsvm.callbacks import with_callbacks
from structsvm.model_file import ModelFileError, Origin, name_of
from structsvm.parameters import NONE, Kind, Verbose, WarmStart, declared, parameter
from structsvm.protocol import Oracle
from structsvm.solvers import LaRank, Solver
from structsvm.stored_values import Array, Record, Stored, Text
from structsvm.tasks.common.estimator import TaskEstimator
from structsvm.tasks.common.examples import Examples, checked_sample_weight
from structsvm.tasks.common.inspection.confidence import without
from structsvm.tasks.common.labels import check_no_classes
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.outputs import Outputs


@dataclass(frozen=True, eq=False)
class InputsAndOutputs(Examples):
    """Inputs and outputs as the oracle takes them."""

    X: Any
    y: Any


class StructuredModel(TaskModel):
    """Weights for any oracle. The oracle is code, and is not stored in files."""

    kind = "structured"
    estimator = "StructuredSVM"

    record = Record({
        "oracle": Text(of=lambda model: type(model.oracle).__qualname__),
        "coef": Array("f4 f8", ("n_features",), of="weights"),
    })  # fmt: skip
    oracle: Any
    oracle_name: str

    def bind(self, examples: InputsAndOutputs, solver: Any) -> tuple[Any, Any]:
        problem = self.oracle.bind(examples.X, examples.y, **solver.formulation())
        return problem, checked_sample_weight(examples.weight, problem.n_samples)

    def stored_params(self) -> dict[Any, Any]:
        return {name: value for name, value in self.params.items() if name != "oracle"}

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        model = cls()
        model.oracle_name, model.weights = stored.oracle, stored.arrays()["coef"]
        return model

    def check(self) -> None:
        if self.result is None:
            raise ValueError("there is no result")


@declared
class StructuredSVM(WarmStart, Verbose, TaskEstimator):
    """A structural support vector machine over any oracle.

    Parameters
    ----------
    oracle : Oracle
        The structure: joint feature, loss and inference; an instance of a subclass of `structsvm.Oracle`.
    solver : Solver, optional
        Default: ``LaRank()``. Grid searches name its parameters ``solver__C`` and so on.
    warm_start : bool, default=False
        Whether `fit` resumes the last one, for another `max_iter` passes over the same examples.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights.
    result_ : Result
        Objectives, certificate, counts, history.
    n_iter_ : int
        Passes over the data.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import LaRank, StructuredSVM
    >>> from structsvm.oracles.assignment import AssignmentOracle
    >>> X, Y = [np.array([[[1.0], [0.2]], [[0.9], [0.8]]])], [[0, 1]]
    >>> StructuredSVM(AssignmentOracle(1), LaRank(C=1.0, random_state=0)).fit(X, Y).predict(X)[0].tolist()
    [0, 1]
    """

    oracle: Oracle | None = parameter(default=None, kw_only=False)  # `fit` refuses None
    solver: Solver | None = parameter(Kind(Solver, "a Solver"), NONE, default=None, kw_only=False)

    _confidence = without
    _model_class = StructuredModel

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on examples.

        Parameters
        ----------
        X, y : sequences of equal length
            Inputs and true outputs, of any type that the oracle accepts.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters out of range, an oracle that breaks the protocol (`OracleError`), or a
            formulation that it does not offer (`UnsupportedFormulation`).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        self._train(X, y, sample_weight)
        if not self.coef_.any() and not self.result_.dual:
            warn(
                "all weights are 0: no output that argmax returned violates a margin. Does it add the loss where "
                "y_true is given, and is the loss of each wrong output above 0?",
                AdviceWarning,
            )
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """One pass over a batch, starting from the current weights w0.

        The batch's own problem is solved around them: minimise ``1/2 |w - w0|^2 + C sum_i xi_i`` over the
        batch; `result_` certifies that. Earlier batches are not visited again. `classes` must be None: the oracle
        knows its outputs.
        """
        check_no_classes(classes, "the oracle knows its outputs")
        return self._train(X, y, sample_weight, passes=1)

    def _make_solver(self, before: Any = None) -> Any:
        if not isinstance(self.oracle, Oracle):
            raise ValueError(
                "The 'oracle' parameter of StructuredSVM must be an instance of a subclass of structsvm.Oracle. "
                f"Got {self.oracle!r} instead."
            )
        return LaRank() if self.solver is None else self.solver

    @property
    def _structure(self) -> Any:
        """The oracle, which `fit` has found to be one."""
        return self.oracle

    def _prepare(self, X: Any, y: Any, sample_weight: Any, before: Any) -> tuple[Any, Any]:
        model = StructuredModel() if before is None else before
        if before is not None and before.weights.shape != (self._structure.n_features,):
            raise ValueError(
                f"the model has {len(before.weights)} weights and the oracle {self._structure.n_features} features: "
                "train afresh, or set the oracle back"
            )
        model.oracle = self.oracle
        return model, InputsAndOutputs(by_place(X), by_place(y), weight=sample_weight)

    @property
    def coef_(self) -> Any:
        return self._fitted().weights

    def predict(self, X: Any) -> list[Any]:
        """Return the oracle's argmax for each input, as a list."""
        weights = self._fitted().weights.view()
        weights.flags.writeable = False
        if self._structure.n_features != len(weights):
            raise ValueError(f"the oracle has {self._structure.n_features} features now, and the model {len(weights)}")
        if isinstance(X, (str, bytes)) or not (hasattr(X, "__len__") or isinstance(X, Iterable)):
            raise ValueError(f"X must be a list or another collection, got {X!r:.80}")
        return Outputs(self._argmax(i, x, weights) for i, x in enumerate(by_place(X)))

    def _argmax(self, i: int, x: Any, weights: Any) -> Any:
        try:
            return self._structure.argmax(x, weights)
        except Exception as error:
            error.add_note(f"while {type(self.oracle).__name__} was asked about example {i}")
            raise

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the mean loss of the predictions: 0 is perfect. Raises `OracleError` for a loss below 0."""
        predicted = self.predict(X)
        if len(predicted) != len(y):
            raise ValueError(f"X has {len(predicted)} examples, y has {len(y)}")
        losses = [self._structure.loss(true, guess) for true, guess in zip(by_place(y), predicted, strict=True)]
        if losses and min(losses) < 0.0:
            raise OracleError(f"{type(self.oracle).__name__}.loss returned {min(losses)!r:.40}, expected a number >= 0")
        return -float(np.average(losses, weights=checked_sample_weight(sample_weight, len(losses))))

    @classmethod
    def load(  # type: ignore[override]
        cls, path: Origin, *, oracle: Oracle, mmap: bool = False, trusted: bool = False
    ) -> Self:
        """Open a file written by `save`; the oracle must be given again."""
        model = StructuredModel.load(path, mmap=mmap, trusted=trusted)
        if isinstance(oracle, type):
            raise TypeError(
                f"oracle must be an instance of {oracle.__qualname__}, not the class: {oracle.__qualname__}(...)"
            )
        if model.oracle_name != type(oracle).__qualname__:
            raise ModelFileError(
                f"{name_of(path)}: the model is for the oracle {model.oracle_name!r:.80}, not "
                f"{type(oracle).__qualname__!r}"
            )
        if model.weights.shape != (oracle.n_features,):
            raise ModelFileError(f"{name_of(path)}: no weights for the {oracle.n_features} features of the oracle")
        model.oracle = oracle
        return cls._loaded(path, model, oracle=oracle)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
