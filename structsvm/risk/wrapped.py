"""Estimators as promises see them: what is asked of one that a promise wraps, and whether it is still the same."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeGuard, cast

import numpy as np
from scipy import sparse

from structsvm.arrays import checksum
from structsvm.risk.outputs import kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import AnyArray, Floats, LabelArray
    from structsvm.metrics import Scheme
    from structsvm.structures.meanings import MeaningGrammar
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.structures.trees import Tree
    from structsvm.tasks.sequence.likely import Chunks

# Inputs and outputs in all forms that estimators take: lists, arrays, matrices, data frames.
Inputs: TypeAlias = "Sequence[object]"
Outputs: TypeAlias = "Sequence[object]"
# Labelled spans with their probabilities: begin, end, label.
Chances: TypeAlias = "list[list[tuple[int, int, str, float]]]"
# Objects that training makes, by the names that lead to them, each with its length or checksum.
Place: TypeAlias = "tuple[Hashable, ...]"
Made: TypeAlias = "tuple[object, int | None]"
Learnt: TypeAlias = "dict[Place, Made]"

# Larger collections are compared by identity and length, larger arrays by identity alone.
MOST_ENTRIES, MOST_BYTES = 128, 1 << 16


class Model(Protocol):
    """The model of an estimator of `structsvm.tasks`."""

    kind: str
    labels: Sequence[Hashable]
    has_spans: bool
    is_greedy: bool
    can_sum: bool
    method: str
    scheme: Scheme | None
    segments: object
    grammar: MeaningGrammar | None

    def no_sums(self, asked: str) -> str: ...
    def true_tags(self, y: Outputs, X: Inputs, lengths: None) -> Sequence[Sequence[Hashable]]: ...
    def likely_chunks(self, X: Inputs, least: float) -> Chunks: ...
    def lengths_of(self, X: Inputs) -> Sequence[int]: ...
    def brackets_of(self, tree: Tree) -> set[tuple[int, int, str]]: ...


class Estimator(Protocol):
    """An estimator; each kind has a part of these methods."""

    model_: Model
    classes_: LabelArray
    taxonomy_: Taxonomy
    temperature_: float | None
    unknown: object
    terminals: str

    def contents(self, *, training_state: bool | None = None) -> tuple[dict[str, object], dict[str, AnyArray]]: ...
    def fit(self, X: Inputs, y: Outputs | None = None, **options: object) -> Self: ...
    def predict(self, X: Inputs) -> Outputs: ...
    def predict_proba(self, X: Inputs) -> Floats: ...
    def predict_marginals(self, X: Inputs) -> list[NDArray[np.float64]]: ...
    def decision_function(self, X: Inputs) -> Floats: ...
    def predict_kbest(self, X: Inputs, k: int, *, probabilities: bool = False) -> list[list[tuple[object, float]]]: ...
    def predict_spans(self, X: Inputs, **options: object) -> Chances: ...
    def node_proba(self, X: Inputs) -> Floats: ...


# ---- whether an estimator is still the same -------------------------------------------------------


def learnt_by(estimator: object) -> Learnt:
    """The objects that training has made, which another training replaces: none is copied, and no large array read.

    For an estimator of `structsvm.tasks` the model; for others all attributes that are no parameters. Estimators
    within, as steps of a pipeline, are looked through likewise. Collections have their lengths with them, small
    arrays of numbers a checksum, for what is changed in place.
    """
    return dict(made_in(estimator, (), set(), is_made=False))


def is_still(made: Learnt, now: Learnt) -> bool:
    """Whether all objects are the same. What is new does not count, nor an array that has become sparse, or dense.

    Such an array is then remembered in its new form.
    """
    for place, then in made.items():
        own = now.get(place)
        if own is None or not (is_same(own, then) or is_other_form(own[0], then)):
            return False
        made[place] = own
    return True


def is_same(own: Made, then: Made) -> bool:
    """Whether two entries are one object, unchanged."""
    return own[0] is then[0] and own[1] == then[1]


def is_other_form(own: object, then: Made) -> bool:
    """Whether one of two is a sparse matrix, the other a dense one, and their numbers are equal."""
    old, mark = then
    if sparse.issparse(own) == sparse.issparse(old) or mark_of(old) != mark:
        return False
    forms = [cast("NDArray[np.float64]", one) for one in (own, old) if sparse.issparse(one) or is_numbers(one)]
    if len(forms) < 2 or forms[0].shape != forms[1].shape:
        return False
    return (sparse.csr_array(forms[0]) != sparse.csr_array(forms[1])).nnz == 0


def made_in(value: object, place: Place, seen: set[tuple[int, bool]], *, is_made: bool) -> Iterator[tuple[Place, Made]]:
    """A value, if training has made it, and all that training has made within it."""
    if is_made:
        yield place, (value, mark_of(value))
    if (id(value), is_made) in seen:
        return
    for name, part, is_own in parts_of(value, is_made=is_made):
        seen.add((id(value), is_made))
        yield from made_in(part, (*place, name), seen, is_made=is_own)


def parts_of(value: object, *, is_made: bool) -> list[tuple[Hashable, object, bool]]:
    """Entries of a small collection, or attributes of an estimator: name, value, whether training has made it."""
    if isinstance(value, (list, tuple, dict)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [(name, part, is_made) for name, part in pairs] if len(value) <= MOST_ENTRIES else []
    if not (hasattr(type(value), "fit") or hasattr(type(value), "predict_proba")):
        return []
    attributes = list(getattr(value, "__dict__", {}).items())
    if kind_of(value) is not None:
        model = cast("Estimator", value).model_
        return [("model_", model, True), *((name, part, False) for name, part in attributes if name != "model_")]
    parameters = parameters_of(cast("Hashable", type(value)))
    return [(name, part, name not in parameters) for name, part in attributes]


@lru_cache(maxsize=256)
def parameters_of(kind: type) -> frozenset[str]:
    """The names of a class's parameters, as scikit-learn has them; none for a class without `get_params`."""
    if not hasattr(kind, "get_params"):
        return frozenset()
    try:
        return frozenset(inspect.signature(kind).parameters)
    except ValueError:  # compiled, and it does not say
        return frozenset()


def mark_of(value: object) -> int | None:
    """The length of a collection, the checksum of a small array; None for others."""
    if isinstance(value, (list, tuple, dict, set)):
        return len(value)
    return checksum([value]) if is_numbers(value) and value.nbytes <= MOST_BYTES else None


def is_numbers(value: object) -> TypeGuard[AnyArray]:
    """Whether a value is an array of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufc"
