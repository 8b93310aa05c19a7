"""Parameters of estimators: the constraints that tasks share, and the one form in which model files store them."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.matrices import is_sparse
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Checkpoints,
    Jobs,
    Kind,
    Options,
    ParameterGroup,
    Seed,
    Verbose,
    WarmStart,
    declared,
    parameter,
    plain,
)
from structsvm.solvers import Solver
from structsvm.stored_values import Array, checked_arrays
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks.common.solver import AUTO, SOLVERS, solver_from_json, solver_to_json
from structsvm.tasks.common.stored_labels import label_from_json, label_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structsvm.arrays import Arrays
    from structsvm.tasks.common.model import TaskModel

# The constraints of parameters that several estimators have.
OF_C = (POSITIVE, Options(AUTO, None))
OF_SOLVER = (Options(*SOLVERS), Kind(Solver, "a Solver"))

# A mark of labels that are not known.
MARK = (Kind((str, Real, tuple), "a label"), NONE)

# Parameters about inputs, of any estimator: the first training has encoded what it saw by them.
OF_INPUTS = ("fit_intercept", "standardize", "max_weights", "vectorizer")

CLASS_WEIGHT = (Options("balanced", None), Kind(dict, "a dict"))
# Weights by label. The keys of a `dict` are of one type, whichever it is.
ByLabel = dict[Any, float]


@declared
class Limits:
    """When training ends."""

    max_iter: int | None = parameter(COUNT, NONE, default=None)
    tol: float | None = parameter(POSITIVE, NONE, default=None)


@declared
class Running(WarmStart, Jobs, Checkpoints, Verbose):
    """The parameters of the run of a training: what it starts from, what it uses, and what it says."""


@declared
class Training(Limits, Seed, Running):
    """The parameters of training that estimators have whose solver the user may choose."""


@declared
class ClassWeight:
    """The cost of errors by class."""

    class_weight: str | ByLabel | None = parameter(*CLASS_WEIGHT, default=None)


@declared
class Probability:
    """Whether scores become probabilities."""

    probability: bool = parameter(FLAG, default=False)


@declared
class Standardize:
    """Whether columns are scaled."""

    standardize: bool = parameter(FLAG, default=True)


@declared
class MachineRunning(WarmStart, Jobs, Checkpoints, Probability, Verbose):
    """`Running` of kernel and of linear machines."""


def snapshot(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with copies of their groups, which `set_params` changes in place."""
    return {name: copy.copy(value) if isinstance(value, ParameterGroup) else value for name, value in params.items()}


def lines(text: str) -> tuple[str, ...]:
    """The templates of a text, one per line; empty lines and comments (``#``) are left out."""
    found = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(line for line in found if line)


def check_settled(parameters: Iterable[tuple[str, object, object]]) -> None:
    """Raise ValueError for the first parameter, ``(name, given, trained with)``, whose two values differ."""
    for name, wanted, own in parameters:
        if not is_same(wanted, own):
            raise unlike(name, wanted, own)


def unlike(name: str, wanted: object, own: object) -> ValueError:
    """The error of a parameter with another value than the model was trained with."""
    is_plain = all(value is None or plain(value) is not None for value in (wanted, own))
    return ValueError(
        f"the model was trained with another {name!r}; set it back, or train afresh (warm_start=False)"
        + (f". Got {wanted!r:.80}, it has {own!r:.80}" if is_plain else "")
    )


def check_unchanged(params: object, model: TaskModel, settled: Iterable[str]) -> None:
    """Raise ValueError for the first of the fixed parameters that differs from the model's, where this has it."""
    own = model.params
    check_settled((name, getattr(params, name), own[name]) for name in settled if name in own)


def check_group_unchanged(
    name: str, kind: type[ParameterGroup], params: Any, model: TaskModel, settled: Iterable[str]
) -> None:
    """Raise ValueError for the first of the fixed parameters of a group, ``NAME__PARAMETER``, that differs."""
    given, own = (group or kind() for group in (getattr(params, name), model.params.get(name)))
    check_settled((f"{name}__{field}", getattr(given, field), getattr(own, field)) for field in settled)


def is_same(a: Any, b: Any) -> bool:
    """Whether two parameters are the same: sequences, arrays, matrices, groups and vectorizers by their values."""
    if a is b:
        return True
    a, b = (value.toarray() if is_sparse(value) else value for value in (a, b))
    if hasattr(a, "get_params") or hasattr(b, "get_params"):
        mine, its = ({} if one is None else one.get_params(deep=False) for one in (a, b))
        return type(a) is type(b) and all(is_same(value, its[name]) for name, value in mine.items())
    if isinstance(a, SubstitutionMatrix) and isinstance(b, SubstitutionMatrix):
        return a.alphabet == b.alphabet and np.array_equal(a.values, b.values)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, SEQUENCES) and isinstance(b, SEQUENCES) and np.array_equal(a, b)
    if isinstance(a, SEQUENCES) or isinstance(b, SEQUENCES):
        return isinstance(a, SEQUENCES) and isinstance(b, SEQUENCES) and len(a) == len(b) and all(map(is_same, a, b))
    return bool(a == b)


SEQUENCES = (np.ndarray, list, tuple)

# A parameter that is a matrix.
MATRIX = Array("f8", ("rows", "columns"))


def bits_for(n: int, more: int, least: int, most: int, row: int = 1) -> int:
    """Bits of a hash of n things: log2(n) and `more`, from `least` to `most`.

    Where each has a row of weights, of so many bytes, all rows have at most 2**27: training takes several times that,
    and with 10,000 labels it would take gigabytes.
    """
    return min(max(math.ceil(math.log2(max(n, 1))) + more, least), max(least, min(most, 27 - (row - 1).bit_length())))


def params_to_json(params: Mapping[str, object]) -> tuple[dict[str, object], dict[str, NDArray[np.float64]]]:
    """Return ``(header, arrays)``: parameters as JSON values, matrices among them as arrays ``params.NAME``.

    What neither can contain is left out: a RandomState, a function, a solver of a user's class; and the checkpoint,
    which belongs to one run. A loaded estimator has the default instead.
    """
    header, arrays = {}, {}
    for name, value in params.items():
        if is_sparse(value) or isinstance(value, np.ndarray):
            arrays[f"params.{name}"] = np.asarray(value.toarray() if is_sparse(value) else value, dtype=np.float64)
        elif name != "checkpoint":
            stored = param_to_json(value)
            if stored is not None or value is None:
                header[name] = stored
    return header, arrays


def param_to_json(value: object) -> object:
    """A parameter as a JSON value; None if there is none."""
    if isinstance(value, Solver):
        return solver_to_json(value)
    if isinstance(value, ParameterGroup):
        return {"group": type(value).__name__, "params": params_to_json(value.get_params(deep=False))[0]}
    if isinstance(value, dict):
        labels = [label.item() if isinstance(label, np.generic) else label for label in value]
        return {"weights": [[label_to_json(k), float(v)] for k, v in zip(labels, value.values(), strict=True)]}
    if isinstance(value, SubstitutionMatrix):
        return {"alphabet": value.alphabet, "values": value.values.tolist()}
    if isinstance(value, (list, tuple)):
        return [param_to_json(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else plain(value)


def params_from_json(header: object, arrays: Arrays, groups: Iterable[type[ParameterGroup]] = ()) -> dict[str, object]:
    """The inverse of `params_to_json`; KeyError, TypeError or ValueError for what it cannot have written.

    `groups` are the classes of groups among the parameters.
    """
    if not isinstance(header, dict):
        raise TypeError(f"parameters {header!r:.80}")
    kinds = {kind.__name__: kind for kind in groups}
    # A checkpoint is a path: no file names one that `fit` would open or write.
    params = {name: param_from_json(value, kinds) for name, value in header.items() if name != "checkpoint"}
    return params | checked_arrays(arrays, dict.fromkeys(arrays, MATRIX))


def param_from_json(value: object, kinds: dict[str, type[ParameterGroup]]) -> object:
    """The inverse of `param_to_json`; `kinds` are the classes of groups by name."""
    if isinstance(value, list):
        return tuple(param_from_json(item, kinds) for item in value)
    if not isinstance(value, dict):
        return value
    if "solver" in value:
        return solver_from_json(value)
    if "group" in value:
        group = kinds[value["group"]](**{name: param_from_json(item, {}) for name, item in value["params"].items()})
        group.validate()
        return group
    if "weights" in value:
        return {label_from_json(label): float(weight) for label, weight in value["weights"]}
    return SubstitutionMatrix(value["alphabet"], value["values"])
