"""The result of a solver: objectives, counts, a stop reason, and the history of the run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.adapter import INFERENCES
from structsvm.model_file import under

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Arrays

HISTORY = ("seconds", "n_iter", "primal", "dual", "gap", "n_support", "n_argmax")
STATUSES = ("running", "max_iter", "converged", "settled", "interrupted", "stopped")


class ConvergenceWarning(UserWarning):
    """The tolerance was not reached within `max_iter` passes.

    Examples
    --------
    >>> import warnings
    >>> from structsvm import ConvergenceWarning
    >>> from structsvm.tasks import SequenceLabeler
    >>> labeler = SequenceLabeler(C=1.0, tol=1e-9, max_iter=1, random_state=0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     predicted = labeler.fit([["a", "b"]], [["x", "y"]]).predict([["a"]])
    >>> said[0].category is ConvergenceWarning
    True
    """


@dataclass(frozen=True)
class Result:
    """Outcome of a training run.

    Attributes
    ----------
    primal, dual, gap : float
        Objectives and their difference, recomputed at the end by one pass of the oracle. NaN where
        nothing is claimed: no dual for a perceptron, no primal and gap with approximate inference or after Ctrl-C,
        where the dual is the sum of the steps' gains so far. With relaxed inference they are those of the relaxed
        problem: its primal is not below that of the problem itself (Finley and Joachims 2008).
    n_iter : int
        Complete passes over the data.
    n_argmax : int
        Calls of the oracle's argmax, including those of certificates.
    n_support : int
        Support vectors: pairs of an example and an output whose coefficient is not zero.
    seconds : float
        Wall time of training, including certificates.
    status : {"max_iter", "converged", "settled", "interrupted", "stopped"}
        Why training ended: all passes done, tolerance reached, a pass that gained next to nothing (with approximate
        inference: whose constraints promise no more than the tolerance), Ctrl-C, or a callback.
    primal_norm, dual_norm : float
        1/2 |w|^2 at the weights returned and at the dual point, which differ with `average`. The rest of the
        primal is C times the slacks; the dual is linear in alpha except for its norm (and a quadratic penalty).
    n_rounds : int
        Rounds of completion, if outputs are known in part (`LatentSVM`): primal, dual and gap are those of the convex
        problem whose true outputs are the completions of the last round. 0: there are none.
    inference : {"exact", "relaxed", "approximate"}
        The oracle's, which determines what is claimed; see `structsvm.Oracle`.
    primal_found : float
        With approximate inference, the primal objective of the constraints found: not above the primal objective at
        the weights returned, and not below the dual. Else NaN.
    history : dict of str to ndarray of float64
        Rows over time: seconds, n_iter (fractional), primal, dual, gap (NaN where not computed),
        n_support, n_argmax.

    Examples
    --------
    >>> from structsvm.tasks import SequenceLabeler
    >>> result = SequenceLabeler(C=1.0, tol=0.01, random_state=0).fit([["a", "b"]], [["x", "y"]]).result_
    >>> result.status, result.dual <= result.primal
    ('converged', True)
    """

    primal: float
    dual: float
    gap: float
    n_iter: int
    n_argmax: int
    n_support: int
    seconds: float
    status: str
    primal_norm: float = np.nan
    dual_norm: float = np.nan
    n_rounds: int = 0
    inference: str = "exact"
    primal_found: float = np.nan
    history: dict[str, NDArray[np.float64]] = field(repr=False, default_factory=dict)

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the primal objective; `tol` is compared with it."""
        return relative_gap(self.primal, self.dual)

    def certificate(self) -> str:
        """One line of text: the claim that this result makes, and nothing more."""
        passes = f"{self.n_iter} {'pass' if self.n_iter == 1 else 'passes'}"
        counts = [] if np.isnan(self.dual) or not self.n_support else [f"{self.n_support} support vectors"]
        counts += [f"{self.n_argmax} argmax calls"] * (self.n_argmax > 0) + [f"{self.seconds:.2f} s"]
        if np.isinf(self.primal):
            claim = f"dual {self.dual:.6g}; no weights that keep every margin were found"
        elif not np.isnan(self.primal_found):
            claim = (
                f"dual {self.dual:.6g}, primal at least {self.primal_found:.6g}, no duality gap claimed: inference is "
                "approximate"
            )
        elif np.isnan(self.gap):
            claim = "no duality gap claimed" if np.isnan(self.dual) else f"dual {self.dual:.6g}, no duality gap claimed"
        else:
            claim = (
                f"primal {self.primal:.6g}, dual {self.dual:.6g}, gap {self.gap:.3g} "
                f"({100.0 * self.relative_gap:.3g} %)"
            )
        if self.inference == "relaxed" and not np.isnan(self.dual):
            claim += ", of the relaxed problem, whose primal is not below the true one"
        if self.n_rounds and not np.isnan(self.dual):
            rounds = f"{self.n_rounds} {'round' if self.n_rounds == 1 else 'rounds'}"
            claim += f", of the problem as completed in {rounds}"
        return f"{claim}; {passes} ({self.status}), {', '.join(counts)}"

    def to_dict(self) -> dict[str, Any]:
        """The result without its history, as plain numbers and strings for JSON (NaN as None)."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "history"}
        return {name: None if isinstance(v, float) and np.isnan(v) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any], history: dict[str, NDArray[np.float64]]) -> Result:
        """The inverse of `to_dict`. Raises KeyError, TypeError or ValueError for anything else."""
        values: dict[str, Any] = {name: np.nan if value is None else value for name, value in numbers.items()}
        for name in ("primal", "dual", "gap", "seconds", "primal_norm", "dual_norm", "primal_found"):
            if type(values[name]) not in (int, float):
                raise TypeError(f"a result whose {name} is {values[name]!r:.80}")
            values[name] = float(values[name])
        for name in ("n_iter", "n_argmax", "n_support", "n_rounds"):
            if type(values[name]) is not int or values[name] < 0:
                raise TypeError(f"a result whose {name} is {values[name]!r:.80}")
        result = cls(**values, history=history)
        if result.status not in STATUSES:
            raise ValueError(f"a result whose status is {result.status!r:.80}")
        if result.inference not in INFERENCES:
            raise ValueError(f"a result whose inference is {result.inference!r:.80}")
        History.from_arrays(history)
        return result


def result_arrays(result: Result | None, state: Arrays | None = None) -> dict[str, AnyArray]:
    """Arrays of a run in a model file, beside ``result.to_dict()``: its history, and the arrays of `Run.get_state`."""
    arrays: dict[str, AnyArray] = (
        {} if result is None else {f"history.{name}": column for name, column in result.history.items()}
    )
    # The state contains the history too.
    arrays |= {f"state.{name}": array for name, array in (state or {}).items() if not name.startswith("history_")}
    return arrays


def read_result(numbers: Mapping[str, Any], arrays: Arrays) -> tuple[Result, dict[str, AnyArray] | None]:
    """The `Result` of what a model file stores, and the arrays for `Run.set_state` (None if there are none).

    `structsvm.checkpoint.checked_state` checks the arrays of the state.
    """
    result = Result.from_dict(numbers, under(arrays, "history."))
    state = under(arrays, "state.") or None
    if state is not None:
        state |= {f"history_{name}": column for name, column in result.history.items()}
    return result, state


def relative_gap(primal: float, dual: float) -> float:
    """``(primal - dual) / |primal|``; 0 if both vanish, 1 where the primal is infinite."""
    if primal == dual:
        return 0.0
    if primal == np.inf:
        return 1.0
    return (primal - dual) / max(abs(primal), sys.float_info.min)


class History:
    """Rows of measurements, collected during training; beyond MAX_ROWS every second one is dropped."""

    MAX_ROWS = 4096

    def __init__(self) -> None:
        self.rows: list[list[float]] = []

    def add(self, **row: float) -> None:
        if len(self.rows) == self.MAX_ROWS:
            del self.rows[1::2]
        self.rows.append([float(row.get(name, np.nan)) for name in HISTORY])

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(HISTORY))
        return {name: table[:, k].copy() for k, name in enumerate(HISTORY)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> History:
        history = cls()
        if arrays:
            columns = [np.asarray(arrays.get(name)) for name in HISTORY]
            if any(c.dtype != np.float64 or c.ndim != 1 or len(c) != len(columns[0]) for c in columns):
                raise ValueError(
                    f"the history of the training state must be float64 arrays of one length: {', '.join(HISTORY)}"
                )
            history.rows = np.column_stack(columns).tolist()
        return history
