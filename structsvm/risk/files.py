"""Promises in the model file of their estimator: a part of its header, which who knows nothing of them passes over."""

from __future__ import annotations

import importlib
import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

from structsvm import tasks
from structsvm.model_file import ModelFileError, name_of, read_header, read_model, unsound, whole, write_model
from structsvm.stored_values import FLOAT_MAX, Count, Record, Value
from structsvm.tasks.registry import ESTIMATORS, names_of

if TYPE_CHECKING:
    from structsvm.model_file import Destination, Origin
    from structsvm.risk.wrapped import Estimator

# The part's name in the header.
KEY = "guarantee"
# The classes and the modules below `structsvm.risk` that define them.
PROMISES = {
    "RiskController": "controller",
    "ConformalSets": "sets",
    "ConformalSpans": "spans",
    "ConformalOutputs": "best_outputs",
    "LossController": "loss_controller",
}
# Names of groups and labels that JSON has; None: all others.
NAMES = (str, int, float, bool, type(None))
# Parameters that are not stored: the estimator is the rest of the file, and nothing is drawn after `fit`.
APART = ("estimator", "random_state")


class Promised(Protocol):
    """A promise, as files have it."""

    estimator_: Estimator

    def get_params(self, deep: bool = True) -> dict[str, object]: ...
    def restore(self, values: dict[str, object], estimator: Estimator) -> None: ...


def number_to_json(value: float) -> float | str:
    """A number, or the name of one that JSON does not have."""
    return float(value) if math.isfinite(value) else str(float(value))


def number_from_json(value: object) -> float:
    """The inverse of `number_to_json`; ValueError for anything else."""
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if type(value) in (int, float) and abs(value) <= FLOAT_MAX:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"a number must stand here, got {value!r:.80}")


def threshold_from_json(value: object) -> float:
    """A number that others are compared with: not nan, which is no bound of any."""
    if (found := number_from_json(value)) != found:
        raise ValueError("a threshold must be a number, got nan")
    return found


def numbers_to_json(value: float | dict[Hashable, float]) -> object:
    """A number, or those of groups as pairs; TypeError for names of groups that JSON does not have."""
    if not isinstance(value, dict):
        return number_to_json(value)
    strange = next((name for name in value if type(name) not in NAMES), ...)
    if strange is not ...:
        raise TypeError(f"a model file holds groups that are strings or numbers, not {strange!r:.80}")
    return [[name, number_to_json(own)] for name, own in value.items()]


def numbers_from_json(value: object) -> float | dict[Hashable, float]:
    """The inverse of `numbers_to_json`; ValueError for anything else."""
    if not isinstance(value, list):
        return threshold_from_json(value)
    found: dict[Hashable, float] = {}
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in NAMES:
            raise ValueError(f"a name and a number must stand here, got {pair!r:.80}")
        found[pair[0]] = threshold_from_json(pair[1])
    return found


def number(of: str) -> Value:
    """The field of a number."""
    return Value(read=number_from_json, write=number_to_json, of=of)


RECORDS = {
    "RiskController": Record(
        {
            "threshold": Value(read=threshold_from_json, write=number_to_json, of="threshold_"),
            "coverage": number("coverage_"),
            "risk": number("risk_"),
            "n_calibration": Count(1, of="n_calibration_"),
        }
    ),
    "LossController": Record(
        {
            "threshold": Value(read=numbers_from_json, write=numbers_to_json, of="threshold_"),
            "risk": number("risk_"),
            "size": number("size_"),
            "n_calibration": Count(1, of="n_calibration_"),
        }
    ),
    **dict.fromkeys(
        ("ConformalSets", "ConformalSpans", "ConformalOutputs"),
        Record(
            {
                "quantile": Value(read=numbers_from_json, write=numbers_to_json, of="quantile_"),
                "n_calibration": Count(1, of="n_calibration_"),
            }
        ),
    ),
}


def saved(promise: Promised, path: Destination, training_state: bool | None) -> None:
    """Write an estimator and what is promised of it to one file; TypeError for what no file can contain."""
    estimator = promise.estimator_
    entry = next((entry for entry in ESTIMATORS if entry.name == type(estimator).__name__), None)
    if entry is None:
        raise TypeError(
            f"a model file cannot hold a {type(estimator).__name__}, but the estimators of structsvm.tasks: pickle "
            "the whole"
        )
    header, arrays = estimator.contents(training_state=training_state)
    write_model(path, entry.kind, header | {KEY: part_of(promise)}, arrays, deflated=True)


def with_promise(path: Origin, output: Destination, promise: Promised) -> None:
    """Write a model file with a promise of its estimator's, and all else as it is."""
    file = read_model(path)
    write_model(output, file.kind, file.meta | {KEY: part_of(promise)}, file.arrays, deflated=True)


def part_of(promise: Promised) -> dict[str, object]:
    """The header's part; TypeError for parameters that no file can contain."""
    name = type(promise).__name__
    params = {key: value for key, value in promise.get_params(deep=False).items() if key not in APART}
    if (own := next((key for key, value in params.items() if callable(value)), None)) is not None:
        raise TypeError(f"a model file contains no code, and {own}={params[own]!r:.80} is a function: pickle the whole")
    return {"promise": name, "params": params, "values": RECORDS[name].write(promise)[0]}


def opened(path: Origin, *, mmap: bool = False, trusted: bool = False) -> Promised:
    """The promise of a file that `saved` has written; ModelFileError for one that cannot be of it."""
    path = whole(path)
    file = read_header(path)
    if KEY not in file.meta:
        raise ModelFileError(f"{name_of(path)}: a model without a promise; structsvm.load opens it")
    known = names_of(file.kind)
    with unsound(path, file.kind):
        name = known[0] if len(known) == 1 else known[known.index(file.meta["estimator"])]
    estimator = getattr(tasks, name).load(path, mmap=mmap, trusted=trusted)
    with unsound(path, f"{file.kind} with a promise"):
        head = file.meta[KEY]
        if not isinstance(head, dict) or head.get("promise") not in PROMISES or not isinstance(head["params"], dict):
            raise ValueError(f"{KEY!r} must be an object with the name of a promise and its parameters")
        cls = getattr(importlib.import_module(f"structsvm.risk.{PROMISES[head['promise']]}"), head["promise"])
        self = cls(estimator, **head["params"])
        values = RECORDS[head["promise"]].read(head["values"], {})
        self.restore({f"{key}_": value for key, value in values.items()}, estimator)
    return self
