"""CRFsuite's algorithms and their parameters: names and defaults as there, and what each does here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = float | int | bool | str

UNLIMITED = 2**31 - 1  # iterations; the program's largest number of this type
LARGEST = 1e100  # neither squares nor reciprocals overflow
ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default, whose type all its values have, its help, and the least and the greatest number."""

    default: Value
    help: str
    least: float = 0
    most: float | None = None  # None: by type

    def read(self, name: str, value: object) -> Value:
        """The value of this type. Raises ValueError for any other."""
        kind = type(self.default)
        try:
            if kind is str:
                return str(value)
            number = float(value)  # type: ignore[arg-type]
            if kind is bool:
                return bool(int(number))
            return number if kind is float else int(number)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be a number, got {value!r}") from None

    def check(self, name: str, value: Value) -> None:
        """Raise ValueError for a number that nothing can be trained with."""
        if isinstance(value, str):
            return
        most = self.most or (LARGEST if isinstance(value, float) else UNLIMITED)
        if not self.least <= value <= most:
            raise ValueError(f"{name} must be at least {self.least} and at most {most}, got {value}")


MINFREQ = "Least sum of values of an attribute beside a label, and least count of a pair of labels, for a weight."
FEATURES = {
    "feature.minfreq": Parameter(0.0, MINFREQ),
    "feature.possible_states": Parameter(
        False, "Weights also for attributes and labels that training never saw together."
    ),
    "feature.possible_transitions": Parameter(False, "Weights also for pairs of labels that training never saw."),
}
NO_COUNTERPART = "Without counterpart here, and without effect."
L2 = Parameter(1.0, "Coefficient of the squared norm, the L2 regularization: c2 |w|^2.")
PERIOD = Parameter(10, "Iterations over which delta is measured; 0: delta ends nothing.")
PASSES = Parameter(100, "Passes over the data.", least=1)
DELTA = "Training ends when the objective falls by less than this share in `period` iterations."
RATIO = Parameter(0.0, NO_COUNTERPART)

ALGORITHMS: dict[str, dict[str, Parameter]] = {
    "lbfgs": {
        "c1": Parameter(0.0, "Coefficient of the 1-norm, the L1 regularization: c1 |w|_1; most weights are then 0."),
        "c2": L2,
        "max_iterations": Parameter(UNLIMITED, "Most iterations; 0: any number."),
        "num_memories": Parameter(6, "Steps that L-BFGS remembers (with c1 = 0).", least=1, most=1000),
        "epsilon": Parameter(1e-5, "Training ends when the gradient's norm is at most this share of the weights'."),
        "period": PERIOD,
        "delta": Parameter(1e-5, DELTA),
        "linesearch": Parameter("MoreThuente", NO_COUNTERPART),
        "max_linesearch": Parameter(20, NO_COUNTERPART),
    },
    "l2sgd": {
        "c2": L2,
        "max_iterations": Parameter(
            1000, "Most iterations (of L-BFGS, which finds the same weights).", least=1
        ),
        "period": PERIOD,
        "delta": Parameter(1e-6, DELTA),
        "calibration.eta": Parameter(0.1, NO_COUNTERPART),
        "calibration.rate": Parameter(2.0, NO_COUNTERPART),
        "calibration.samples": Parameter(1000.0, NO_COUNTERPART),
        "calibration.candidates": Parameter(10, NO_COUNTERPART),
        "calibration.max_trials": Parameter(20, NO_COUNTERPART),
    },
    "ap": {"max_iterations": PASSES, "epsilon": RATIO},
    "pa": {
        "type": Parameter(1, "0: a hard margin; 1: linear slacks; 2, quadratic slacks, has no counterpart."),
        "c": Parameter(1.0, "Weight of the slacks.", least=1 / LARGEST),
        "error_sensitive": Parameter(True, "Whether the margin counts wrong labels, or is 1 for any."),
        "averaging": Parameter(True, "Whether weights are averaged over the last pass."),
        "max_iterations": PASSES,
        "epsilon": RATIO,
    },
    "arow": {
        "variance": Parameter(1.0, NO_COUNTERPART),
        "gamma": Parameter(1.0, "LaRank, which trains in the place of AROW, has C = 1 / (2 gamma).", least=1 / LARGEST),
        "max_iterations": PASSES,
        "epsilon": RATIO,
    },
}  # fmt: skip


def parameters_of(algorithm: str) -> dict[str, Parameter]:
    """Parameters of an algorithm by name."""
    return FEATURES | ALGORITHMS[algorithm]


def check(algorithm: str, values: dict[str, Value]) -> None:
    """Raise ValueError, by its name, for a value that nothing can be trained with."""
    known = parameters_of(algorithm)
    for name, value in values.items():
        if known[name].help != NO_COUNTERPART:
            known[name].check(name, value)


def unused(algorithm: str, values: dict[str, Value]) -> list[str]:
    """Names of the parameters that were set to another value than the default, and have no effect."""
    known = parameters_of(algorithm)
    return [
        name for name, value in values.items() if known[name].help == NO_COUNTERPART and value != known[name].default
    ]
