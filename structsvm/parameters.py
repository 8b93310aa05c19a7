"""Parameters as fields: a line declares a parameter's name, type, default and constraints.

From this line come the signature of the constructor, the attribute, the check of its value and the option of the
command line. `Parameters` adds scikit-learn's contract for objects that must not import scikit-learn (it takes a
second, longer than training a chunker): `get_params`, `set_params` and `clone` work as they do there, so solvers nest
in estimators and grids.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeVar, dataclass_transform
from unicodedata import category

import numpy as np

from structsvm.arrays import MAX_COUNT

# By the names of parameters: Interval, Options, Kind or others with `accepts`, of which one has to accept the value.
Constraints = Mapping[str, tuple[Any, ...]]
T = TypeVar("T")
# Categories of control characters, separators of lines and paragraphs, and halves of surrogate pairs.
UNSEEN = ("Cc", "Zl", "Zp", "Cs")

MOST_THREADS = 1024


class Interval:
    """Numbers of one kind between two bounds; `closed` names the bounds that belong to it.

    Integers without an upper bound end at MAX_COUNT.
    """

    def __init__(
        self,
        kind: type[Any],
        low: float,
        high: float | None = None,
        closed: Literal["left", "right", "both", "neither"] = "left",
    ) -> None:
        if kind is Integral and high is None:
            high, closed = MAX_COUNT, "both" if closed == "left" else "right"
        self.kind, self.low, self.high, self.closed = kind, low, high, closed
        self.plain = int if kind is Integral else float  # isinstance takes longer with abstract classes

    def accepts(self, value: Any) -> bool:
        if value is None:
            return False
        if type(value) is not self.plain and (not isinstance(value, self.kind) or isinstance(value, bool)):
            return False
        if value != value:
            return False
        try:
            number = float(value)  # as it is stored: 0.0 for a fraction that no float is near
        except OverflowError:
            return False
        value = value if self.kind is Integral else number
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        if self.high is None:
            return above and value != np.inf
        return above and (value <= self.high if self.closed in ("right", "both") else value < self.high)

    def __str__(self) -> str:
        name = "an int" if self.kind is Integral else "a float"
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") and self.high is not None else ")"
        return f"{name} in the range {left}{self.low}, {'inf' if self.high is None else self.high}{right}"


class Options:
    """One of a few values; `others` returns the value of another name for one, or None.

    `instead` says of values that may be looked for here, in lower case, what to use in their place.
    """

    def __init__(
        self, *values: Any, others: Callable[[str], str | None] | None = None, instead: Mapping[str, str] | None = None
    ) -> None:
        self.values, self.others, self.instead = values, others, instead or {}
        self.names = {value for value in values if isinstance(value, str)}
        self.ids = set(map(id, values))

    def accepts(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.names or (self.others is not None and self.others(value) is not None)
        return id(value) in self.ids

    def __str__(self) -> str:
        return " or ".join(repr(v) for v in self.values)


class Kind:
    """Instances of a class or of several; messages call them `text`."""

    def __init__(self, kind: type | tuple[type, ...], text: str) -> None:
        self.kind, self.text = kind, text

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return self.text


class RandomStates:
    """NumPy's random states. Their module, which loads what encrypts, is not imported to see that there is none."""

    def accepts(self, value: Any) -> bool:
        return "numpy.random" in sys.modules and isinstance(value, np.random.RandomState)

    def __str__(self) -> str:
        return "a RandomState"


def printable(name: object) -> str:
    r"""The name as text of one line, with escapes (``\n``, ``\x07``) for what would break it or cannot be written."""
    text = str(name)
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if category(c) in UNSEEN else c for c in text)


def did_you_mean(name: object, names: Iterable[object]) -> str:
    """The end of a message about a name that is not there: the one that it is most like, if there is such a one."""
    from difflib import get_close_matches

    known = {str(other).casefold(): other for other in names}
    near = get_close_matches(str(name).casefold(), known, n=1)
    if not near:
        return ""
    found = known[near[0]]
    return f"; did you mean {(str(found) if isinstance(found, str) else found)!r}?"


POSITIVE = Interval(Real, 0.0, closed="neither")
COUNT = Interval(Integral, 1)
NONE = Options(None)
# ProcessOld, or what stands for it, per example: more would never end.
N_REPROCESS = Interval(Real, 0.0, 1e6, closed="both")
PATH = Kind((str, os.PathLike), "a path")
CHECKPOINT = (Kind((str, os.PathLike), "a path or a Checkpoint"), NONE)
N_JOBS = (COUNT, Options(None, -1))
CALLABLE = Kind(Callable, "a callable")  # type: ignore[arg-type]  # of an abstract class
FLAG = Kind((bool, np.bool_), "a bool")
RANDOM_STATE = (Interval(Integral, 0, 2**32 - 1, closed="both"), RandomStates(), NONE)


def plain(value: Any) -> bool | int | float | str | None:
    """A parameter as a JSON value: numpy scalars as Python's; None for any other object (a RandomState)."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) else None


def validate(owner: object, constraints: Constraints) -> None:
    """Raise ValueError for the first attribute of `owner`, or of a group, that none of its constraints accepts."""
    for name, allowed in constraints.items():
        _check(type(owner).__name__, name, getattr(owner, name), allowed)


def check_arguments(owner: str, arguments: Mapping[str, object], /, **allowed: Any) -> None:
    """Raise ValueError for the first argument that its constraint does not accept, or none of several in a tuple."""
    for name, own in allowed.items():
        _check(owner, name, arguments[name], own if isinstance(own, tuple) else (own,))


def _check(owner: str, name: str, value: object, allowed: tuple[Any, ...]) -> None:
    for constraint in allowed:
        if constraint.accepts(value):
            break
    else:
        wanted = " or ".join(map(str, allowed))
        hints = [c.instead.get(str(value).lower(), "") for c in allowed if isinstance(c, Options)]
        hint = "".join(f" {text}" for text in hints if text)
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {value!r:.400} instead.{hint}")
    if isinstance(value, ParameterGroup):
        value.validate()


def checked_k(k: Any) -> int:
    """How many of the best are wanted, at most what can be counted. Raises ValueError unless k is an int above 0."""
    return min(checked_count("k", k, 1), sys.maxsize)


def checked_count(name: str, value: Any, least: int) -> int:
    """An argument that is a whole number. Raises ValueError, which names it, unless it is one and at least that."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r:.80}")
    return int(value)


def checked_threads(n_threads: Any) -> int:
    """A number of threads. Raises ValueError unless it is an integer from 1 to 1,024."""
    if checked_count("n_threads", n_threads, 1) > MOST_THREADS:
        raise ValueError(f"n_threads must be at most {MOST_THREADS}, got {n_threads!r:.80}")
    return int(n_threads)


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed from a random state as scikit-learn has it (None: numpy's global one)."""
    if isinstance(random_state, Integral):
        return int(random_state)
    generator: Any = np.random if random_state is None else random_state
    return int(generator.randint(0, 2**32, dtype=np.uint64))


def parameter(
    *constraints: Any, default: Any = dataclasses.MISSING, kw_only: bool = True, alias: str | None = None
) -> Any:
    """A field of a class that is `declared`: a parameter, of which one of the constraints has to accept the value.

    The constructor calls it `alias`, if its name is taken.
    """
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"constraints": constraints, "alias": alias})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def declared(cls: type[T]) -> type[T]:
    """Make a class a dataclass of parameters: its own, then those of its bases, in the order of the class statement.

    Parameters are keyword-only unless declared otherwise. The constructor stores them and does nothing else;
    `_constraints` are theirs.
    """
    owner: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    known = {field.name: field for field in dataclasses.fields(owner)}
    names = [name for name in inspect.get_annotations(cls) if name in known]
    names += [name for base in cls.__bases__ for name in getattr(base, "__dataclass_fields__", ()) if name in known]
    fields = sorted((known[name] for name in dict.fromkeys(names)), key=lambda field: field.kw_only is True)
    owner.__dataclass_fields__ = {field.name: field for field in fields}
    owner._constraints = {name_of(field): constraints for field in fields if (constraints := constraints_of(field))}
    if "__init__" not in cls.__dict__:
        owner.__init__ = Constructor(cls)
    return cls


def name_of(field: dataclasses.Field[Any]) -> str:
    """The parameter's name in the constructor."""
    return field.metadata.get("alias") or field.name


def constraints_of(field: dataclasses.Field[Any]) -> tuple[Any, ...]:
    """The constraints of a parameter; without any, all values are accepted."""
    constraints: tuple[Any, ...] = field.metadata.get("constraints", ())
    return constraints


class Constructor:
    """The constructor of a `declared` class, compiled at its first use, which takes longer than the class itself."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = self.owner.__init__ = self.compiled()
        return function.__get__(instance, owner)

    def compiled(self) -> Any:
        """The function that stores its arguments; its defaults and annotations are those of the fields."""
        fields = {name_of(field): field for field in dataclasses.fields(self.owner)}
        made: dict[str, Any] = {
            name: field.default for name, field in fields.items() if field.default is not dataclasses.MISSING
        }
        head, named = (
            [f"{name}={name}" if name in made else name for name, field in fields.items() if field.kw_only is is_named]
            for is_named in (False, True)
        )
        signature = ", ".join(["self", *head, *(["*"] if named else []), *named])
        body = [f" self.{field.name} = {name}" for name, field in fields.items()]
        module = vars(sys.modules[self.owner.__module__])
        exec("\n".join([f"def __init__({signature}):", *body]), module, made)  # noqa: S102 (as dataclasses do)
        function = made["__init__"]
        function.__qualname__ = f"{self.owner.__qualname__}.__init__"
        function.__annotations__ = {name: field.type for name, field in fields.items()} | {"return": "None"}
        return function


@declared
class Seed:
    """The parameter of what is random."""

    random_state: int | np.random.RandomState | None = parameter(*RANDOM_STATE, default=None)


@declared
class WarmStart:
    """Whether `fit` goes on from what was learnt before."""

    warm_start: bool = parameter(FLAG, default=False)


@declared
class Jobs:
    """The parameter of parallel work."""

    n_jobs: int | None = parameter(*N_JOBS, default=None)


@declared
class Checkpoints:
    """The parameter of the file that stores the state of training."""

    checkpoint: str | os.PathLike[str] | None = parameter(*CHECKPOINT, default=None)


@declared
class Verbose:
    """Whether training shows its progress."""

    verbose: bool = parameter(FLAG, default=False)


class Parameters:
    """An object whose constructor only stores its arguments; its class is `declared`, or has `_constraints`."""

    _constraints: Constraints = {}

    @classmethod
    @cache
    def parameter_names(cls) -> list[str]:
        """Names of the parameters."""
        return [p.name for p in inspect.signature(cls.__init__).parameters.values() if p.name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as a dict from names to values."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name and return self. Raises ValueError for a name that does not exist.

        Those of a nested object, ``NAME__OWN``, are set last, and on a copy of it, as others may have it too.
        """
        names, nested = self.parameter_names(), dict[str, dict[str, Any]]()
        for name, value in params.items():
            if name in names:
                setattr(self, name, value)
            else:
                holder, _, own = name.partition("__")
                nested.setdefault(holder, {})[own] = value
        for holder, given in nested.items():
            inner = getattr(self, holder) if holder in names else None
            if not isinstance(inner, Parameters):
                name = holder + "".join(f"__{own}" for own in [*given][:1] if own)
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}")
            setattr(self, holder, copy.copy(inner).set_params(**given))
        return self

    def validate(self) -> None:
        """Raise ValueError, naming the parameter, unless every value is acceptable."""
        validate(self, self._constraints)

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        given = (
            f"{k}={v!r}"
            for k, v in self.get_params(deep=False).items()
            if v is not defaults[k].default and v != defaults[k].default
        )
        return f"{type(self).__name__}({', '.join(given)})"


class ParameterGroup(Parameters):
    """Parameters that belong together, as the value of one parameter of an estimator.

    Estimators nest them as they nest solvers: ``GROUP__NAME`` in grids. An estimator's own default is None, which means
    the defaults of the group. `structsvm.tasks.registry` lists them; model files store them. A solver within is nested,
    too: ``GROUP__solver__C``. Groups are equal if their parameters are.
    """

    __hash__ = None  # type: ignore[assignment]  # they can be changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.get_params(deep=False) == other.get_params(deep=False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params = super().get_params()
        nested = {name: value for name, value in params.items() if deep and isinstance(value, Parameters)}
        for name, value in nested.items():
            params |= {f"{name}__{own}": item for own, item in value.get_params().items()}
        return params


def group_of(kind: type[ParameterGroup], *others: Any) -> Any:
    """A field whose value is a group, one of `others`, or None for the defaults of the group."""
    return parameter(*others, Kind(kind, f"a {kind.__name__}"), NONE, default=None)
