"""Encoded training data: one frozen dataclass a task, with an entry per example in its fields; sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.matrices import is_sparse

if TYPE_CHECKING:
    import typing_extensions

    from structsvm.arrays import Integers, Weights

    # The examples of one task; where a model is that of any task, they need not be named.
    E = typing_extensions.TypeVar("E", bound="Examples", default=Any)
else:
    E = TypeVar("E")

# The metadata of a field that belongs to all examples together.
SHARED = {"shared": True}

# How a bracketed tree begins, and no sentence whose first word is a bracket: (S ..., or ( (S ...
TREE = re.compile(r"\s*\((\s*\(|[^\s()])")


@dataclass(frozen=True, eq=False)
class Examples:
    """Base of the types of training data.

    A subclass adds its fields; one that is not indexed by example is `SHARED`.

    Attributes
    ----------
    weight : ndarray of shape (n_examples,), float64, or None
        Factor of each example's loss; None: 1.
    """

    weight: Weights | None = field(default=None, kw_only=True)

    @classmethod
    def _first(cls) -> str:
        return next(f.name for f in fields(cls) if f.name != "weight")

    @property
    def inputs(self) -> Any:
        """The first field: what the oracle scores."""
        return getattr(self, self._first())

    def with_inputs(self, inputs: Any) -> Self:
        """The same examples with inputs in another form."""
        return replace(self, **{self._first(): inputs})

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, chosen: NDArray[np.intp]) -> Self:
        """Some examples, by their indices."""
        indexed = [f.name for f in fields(self) if not f.metadata]
        return replace(self, **{name: entries(getattr(self, name), chosen) for name in indexed})

    def subsample(self, most: float) -> Self:
        """At most so many examples, drawn if there are more; always the same ones."""
        n = len(self)
        if n <= most:
            return self
        return self.take(np.sort(np.random.default_rng(0).permutation(n)[: int(most)]))

    def of_weight(self) -> Self:
        """The examples whose weight is not 0."""
        if self.weight is None or self.weight.all():
            return self
        return self.take(np.flatnonzero(self.weight))

    def merged(self) -> Self:
        """The examples with equal ones merged, where training does not distinguish them."""
        return self

    @property
    def is_stored(self) -> bool:
        """Whether the examples are in shards."""
        return False

    @property
    def has_unknown(self) -> bool:
        """Whether some outputs are known in part."""
        return False

    @property
    def n_unknown(self) -> int:
        """The number of labels of which nothing is known."""
        return 0

    def fully_known(self) -> Self:
        """The examples that can be scored: those whose outputs are fully known."""
        return self

    @property
    def groups(self) -> Integers | None:
        """A number >= 0 per example, equal for examples that are not independent; None: all of them are."""
        return None

    @property
    def strata(self) -> Integers | None:
        """Label ids of the examples; each label keeps its share. None: examples do not have a single label."""
        return None

    @property
    def output_ids(self) -> Integers | None:
        """Integers, equal for equal outputs, of rows, tokens or nodes; below 0 where one is not known.

        None: outputs are structures, all of which may differ.
        """
        return None

    @property
    def weighed_ids(self) -> Integers | None:
        """`output_ids` of the examples whose weight is not 0: what training learns from."""
        return None if self.output_ids is None else self.of_weight().output_ids

    @property
    def doubt(self) -> str | None:
        """A sentence about outputs from which nothing can be learnt, None if there is no such doubt."""
        return None if (ids := self.weighed_ids) is None else doubt_of_outputs(ids)

    @property
    def has_one_output(self) -> bool:
        """Whether all outputs that training learns from are known to be the same."""
        ids = self.weighed_ids
        return ids is not None and not (ids < -1).any() and len(np.unique(ids[ids >= 0])) == 1


@dataclass(frozen=True, eq=False)
class LabeledRows(Examples):
    """Rows with one label each.

    Attributes
    ----------
    rows : ndarray, CSR matrix, or encoded rows
    label_ids : ndarray of shape (n_rows,), int
    """

    rows: Any
    label_ids: Integers

    def __len__(self) -> int:
        return len(self.label_ids)

    @property
    def strata(self) -> Integers:
        return self.label_ids

    @property
    def output_ids(self) -> Integers | None:
        return self.label_ids

    @property
    def weighed_ids(self) -> Integers | None:
        ids = self.output_ids
        return ids if ids is None or self.weight is None else ids[self.weight != 0.0]  # without a copy of the rows


# Outputs that may all differ by chance, and the share of different ones that is no matter of chance.
FEW_OUTPUTS, MOST_DIFFERENT = 10, 0.9


def doubt_of_outputs(ids: Integers) -> str | None:
    """A sentence about outputs that are all the same, or nearly all different, by their ids; None for others."""
    known = ids[ids >= 0]
    n, n_different = len(known), len(np.unique(known))
    if n > 1 and n_different == 1:
        return f"all {n} labels in y are the same: nothing else could be predicted"
    if n >= FEW_OUTPUTS and n_different > MOST_DIFFERENT * n:
        return f"{n_different} of the {n} labels in y differ: are they names or numbers of rows, and no classes?"
    return None


def entries(values: Any, chosen: NDArray[np.intp]) -> Any:
    """The chosen entries of a list, an array or encoded data; None stays None."""
    if values is None:
        return None
    if isinstance(values, list):
        return [values[i] for i in chosen]
    if isinstance(values, np.ndarray) or is_sparse(values):
        return values[chosen]
    return values.take(chosen)


def checked_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> Weights | None:
    """Return sample weights as float64 array, or None; ValueError unless finite, >= 0, one per sample."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight)
        if weight.dtype.kind in "mMcV":  # NumPy makes numbers of dates, and drops imaginary parts
            raise TypeError
        weight = weight.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be {n_samples} numbers, got {sample_weight!r:.80}") from None
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n_samples},)")
    if not np.isfinite(weight).all() or (weight < 0.0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if n_samples and not weight.any():
        raise ValueError("sample_weight must not be zero for every sample")
    return weight


# ---- sentences that are text ---------------------------------------------------------------------


def split_text(sentence: Any) -> Any:
    """The words of a sentence that is text; anything else as it is. ValueError for a bracketed tree."""
    if not isinstance(sentence, str):
        return sentence
    if TREE.match(sentence):
        raise ValueError(f"a sentence must be a list of words or text, and this seems to be a tree: {sentence!r:.80}")
    return sentence.split()


def check_no_words(X: Any) -> None:
    """Raise ValueError for several texts without a blank, which are the words of one sentence."""
    if not isinstance(X, (list, tuple)) or len(X) < 2:
        return
    if all(isinstance(text, str) and len(text.split()) < 2 for text in X):
        raise ValueError(
            f"X must be a list of sentences, and seems to be the words of one, {X!r:.80}: give [X], or sentences of "
            f"one word as lists, [[{X[0]!r:.40}], ...]"
        )
