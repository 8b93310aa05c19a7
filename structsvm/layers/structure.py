"""The contract of a structure on given scores, and the border that checks the arrays.

A structure's outputs consist of parts (labels of tokens, pairs of labels). Each part has a score, its potential, and an
output's score is the sum of those of its parts. Potentials come as named arrays in a fixed order, batch first; an array
without a batch axis is shared by all entries. A potential of -inf is a mask: no output may contain that part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import AnyArray, Floats, Integers
from structsvm.execution._stop import each_range
from structsvm.features.inputs.masks import check_no_masks
from structsvm.layers._chain import GREATEST as GREATEST_OF
from structsvm.layers._chain import are_alike, first_masked, is_plain, sum_rows, within
from structsvm.parameters import checked_count

if TYPE_CHECKING:
    from structsvm.layers._spans import Entries

T = TypeVar("T")

# Arrays in the order of the parts.
Parts = tuple[Floats, ...]
# The same for users: None for an optional part that was left out.
Gradients = tuple[Floats | None, ...]
Labels = NDArray[np.int32]
Values = NDArray[np.float64]
Shapes = tuple[tuple[int, ...] | None, ...]
Generators = list[np.random.Generator]


# Scores of a type are less.
GREATEST = dict(zip((np.dtype(np.float32), np.dtype(np.float64)), GREATEST_OF, strict=True))


@dataclass(slots=True, eq=False)
class Scores:
    """Checked potentials of a batch: each array with a batch axis, which has one entry where all share it.

    Not frozen: that would take as long as all checks of one entry.
    """

    parts: Parts
    shapes: Shapes  # shapes that the user gave
    lengths: NDArray[np.int64]
    n_threads: int = 1  # to add up gradients
    truth: Labels | None = None  # outputs as `sums_less_known` takes them, where `check_output` found none unknown
    later: Callable[[], None] | None = None  # checks the first part's numbers, where they have not been checked

    def settle(self) -> Scores:
        """Check what is left to be checked later."""
        later, self.later = self.later, None
        if later is not None:
            later()
        return self

    def take(self, entries: list[int]) -> Scores:
        """The potentials of some entries, which may repeat."""
        own = tuple(part[entries] if len(part) == len(self.lengths) else part for part in self.parts)
        return replace(self, parts=own, lengths=self.lengths[entries], truth=None)

    def plus(self, extra: Floats) -> Scores:
        """The potentials with an array added to the first part."""
        first, *others = self.parts
        return replace(self, parts=(np.ascontiguousarray((first + extra).astype(first.dtype)), *others), truth=None)

    def per_entry(self, arrays: Parts) -> Gradients:
        """Arrays with one entry per batch entry, in the shapes that the user's parts have."""
        shaped: list[Floats | None] = []
        for shape, array in zip(self.shapes, arrays, strict=False):  # parts left out at the end have no shape
            if shape is None:
                shaped.append(None)
            else:
                shaped.append(array.reshape(shape if len(shape) == array.ndim else (len(self.lengths), *shape)))
        return tuple(shaped)

    def gradients(self, per_entry: bool, arrays: Parts) -> Gradients:
        """Arrays like the user's parts; those that all entries share are summed over the batch, unless `per_entry`."""
        if per_entry:
            return self.per_entry(arrays)
        total: list[Floats | None] = []
        for part, shape, array in zip(self.parts, self.shapes, arrays, strict=False):
            if shape is None:
                total.append(None)
            elif array.shape == shape and array.dtype == part.dtype:
                total.append(array)
            else:
                own = len(part) == len(array)
                summed = array if own else sum_rows(np.ascontiguousarray(array), self.n_threads)
                total.append(summed.astype(part.dtype, copy=False).reshape(shape))
        return tuple(total)


class Structure(ABC):
    """A set of outputs made of parts; all verbs take the potentials of the parts, in the order of `part_names`.

    ``lengths`` (B,) says how much of each entry counts, all of it by default. Values are float64, arrays like the parts
    have the potentials' type. Values are as exact as float64 has the scores: beyond 1e15 a loss is no more than an
    integer. ValueError: a shape does not fit, a potential is nan, +inf or so great that sums could overflow (4e37 in
    float32, 1e300 in float64), or the masks leave an entry without an output (`log_partition` returns -inf for it).

    Examples
    --------
    >>> from structsvm.layers import Chain, Structure
    >>> isinstance(Chain(), Structure), Chain.part_names
    (True, ('emissions', 'transitions', 'start', 'end', 'pairs'))
    """

    part_names: ClassVar[tuple[str, ...]]
    is_centred: ClassVar[bool] = False  # whether `centred` takes something off

    @abstractmethod
    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        """Check potentials, and give each a batch axis."""

    def check_for_sums(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        """The same for `sums_less`, which looks at the first part's numbers where `later` is left to it."""
        return self.check(parts, lengths)

    @abstractmethod
    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        """Check outputs; only with `partly` may something within the lengths be unknown (-1)."""

    @abstractmethod
    def indicators(self, y: Labels, scores: Scores) -> Parts:
        """How often each output has each part: arrays with one entry per batch entry."""

    @abstractmethod
    def restrict(self, scores: Scores, y: Labels) -> Scores:
        """Mask the outputs that contradict what is known of y."""

    @abstractmethod
    def best(self, scores: Scores) -> Labels:
        """The best output of each entry."""

    @abstractmethod
    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        """Log partitions, and the expected indicators if they are wanted."""

    def is_known(self, y: Labels, scores: Scores) -> bool:
        """Whether each y surely is one output, for which no sum is needed."""
        return bool((y >= 0).all())

    def agreeing(self, scores: Scores, y: Labels) -> tuple[Values, Parts]:
        """Log partitions, and expected indicators, of the outputs that agree with what is known of y."""
        if not self.is_known(y, scores):
            return self.sums(self.restrict(scores, y))
        counts = self.indicators(y, scores)
        return possible(self.values_of(y, scores, counts)), counts

    def less_agreeing(self, scores: Scores, y: Labels, marginals: Parts) -> Values:
        """Take the expected indicators of `agreeing` off arrays; returns its log partitions."""
        values, counts = self.agreeing(scores, y)
        for expectation, agreed in zip(marginals, counts, strict=True):
            expectation -= agreed  # in place: to allocate the difference takes longer than to compute it
        return values

    def sums_less(self, scores: Scores, y: ArrayLike, *, per_entry: bool = True) -> tuple[Values, Values, Parts]:
        """Log partitions of all outputs and of those that agree with y, and the difference of expected indicators.

        y is as the user gave it, `scores` as `check_for_sums` left them: the threads of chains of order 1 and of trees
        check the first part's numbers as they sum. Without `per_entry` differences of parts that all entries share may
        be sums over several of them.
        """
        return self.sums_less_known(scores.settle(), self.check_output(y, scores, partly=True))

    def sums_less_known(self, scores: Scores, y: Labels) -> tuple[Values, Values, Parts]:
        """The same for checked outputs, each entry's own."""
        log_z, marginals = self.sums(scores)
        try:
            return log_z, self.less_agreeing(scores, y, marginals), marginals
        except NoOutput as error:
            raise masked_truth(error.entry) from None

    def values_of(self, y: Labels, scores: Scores, counts: Parts) -> Values:
        """Scores of outputs, whose indicators are `counts`."""
        return expected(scores, counts)

    def centred(self, scores: Scores, y: Labels) -> Scores:
        """Scores of the same distribution, in which outputs score 0 or so: sums lose no digits to huge ones."""
        return scores

    def costs(self, right: Floats) -> Floats:
        """The default cost of each part of the first array, by the truth's indicators: 1 for each that is wrong."""
        return 1 - right

    @abstractmethod
    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        """The k best outputs in order, and their scores (B, k); -1 and -inf where there are fewer."""

    @abstractmethod
    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        """The best score of an output that has the part, for each part of the first array."""

    @abstractmethod
    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        """Independent outputs, drawn by the generator of each entry."""

    def sample(self, *parts: object, n_samples: int, seed: int, lengths: ArrayLike | None = None) -> Labels:
        """Independent outputs of the Gibbs distribution, (B, n_samples, ...), from a generator per entry."""
        scores = self.check(parts, lengths)
        n_samples = checked_count("n_samples", n_samples, 0)
        return self.samples(scores, n_samples, generators_of(seed, len(scores.lengths)))

    def score(self, y: ArrayLike, *parts: object, lengths: ArrayLike | None = None) -> Values:
        """The sum of the potentials of the parts of y."""
        scores = self.check(parts, lengths)
        return expected(scores, self.indicators(self.check_output(y, scores), scores))

    def argmax(self, *parts: object, lengths: ArrayLike | None = None) -> Labels:
        """The output with the greatest score."""
        return self.best(self.check(parts, lengths))

    def log_partition(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        """The log of the sum over all outputs of exp(score)."""
        return self.sums(self.check(parts, lengths), marginals=False)[0]

    def marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Gradients:
        """The expected indicators under the Gibbs distribution, in the order of the parts.

        They are the gradient of each entry's log partition: parts that all entries share get a batch axis.
        """
        scores = self.check(parts, lengths)
        return scores.per_entry(self.sums(scores)[1])

    def entropy(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        """The entropy of the Gibbs distribution, in nats: the log partition less the expected score.

        Computed in float64. Chains and trees lose no digits to huge scores; elsewhere its error is an ulp of the log
        partition's size, 1e-7 where that is 1e9.
        """
        scores = widened(self.check(parts, lengths))
        if self.is_centred:
            scores = self.centred(scores, self.best(scores))
        log_z, marginals = self.sums(scores)
        return np.maximum(log_z - expected(scores, marginals), 0.0)


class Summed(Structure):
    """A structure whose sums are compiled; those of entries whose probabilities would underflow are sums of logs."""

    n_threads: int

    @abstractmethod
    def _batch(self, scores: Scores) -> Entries:
        """The potentials for compiled code."""

    @abstractmethod
    def _expect(
        self, scores: Scores, log_z: Values, truth: Labels | None = None, known: Values | None = None
    ) -> tuple[Floats, ...]:
        """Write log partitions; the expected parts, less those of known outputs, whose scores are written."""

    @abstractmethod
    def _log_sums(self, scores: Scores, entry: int) -> tuple[float, Values, Values]:
        """Log partition of an entry and its expected parts, by sums of logs."""

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        log_z = np.empty(len(scores.lengths))
        if marginals:
            return log_z, self._expect(scores, log_z)
        for entry in self._batch(scores).sums(self.n_threads, log_z, None, None):
            log_z[entry] = self._log_sums(scores, entry)[0]
        return log_z, ()

    def sums_less_known(self, scores: Scores, y: Labels) -> tuple[Values, Values, Parts]:
        """In one go for each entry, where all of y is known."""
        if scores.truth is None:
            return super().sums_less_known(scores, y)
        log_z, known = np.empty(len(y)), np.empty(len(y))
        counts = self._expect(scores, log_z, scores.truth, known)
        return log_z, possible_truths(known), counts


def expected(scores: Scores, weights: Parts) -> Values:
    """Sum of potentials times weights per entry; a mask counts only where its weight is not 0."""
    total = np.zeros(len(scores.lengths))
    for part, weight in zip(scores.parts, weights, strict=True):
        with np.errstate(invalid="ignore"):
            terms = np.where(weight != 0, part * weight.astype(np.float64), 0.0)
        total += terms.reshape(len(total), -1 if terms.size else 0).sum(axis=1)
    return total


def widened(scores: Scores) -> Scores:
    """The same in float64."""
    return replace(scores, parts=tuple([part.astype(np.float64, copy=False) for part in scores.parts]), truth=None)


def zeros_like(scores: Scores) -> list[Floats]:
    """Arrays of zeros like the parts, each with all entries of the batch."""
    return [np.zeros((len(scores.lengths), *part.shape[1:]), part.dtype) for part in scores.parts]


def shares_of(logs: Values, axis: int | tuple[int, ...]) -> Values:
    """exp(logs) over their sum along axes, which no log has to hold beside huge scores; 0 where all are -inf."""
    top = logs.max(axis=axis, keepdims=True)
    weights = np.exp(logs - np.where(np.isneginf(top), 0.0, top))
    total = weights.sum(axis=axis, keepdims=True)
    shares: Values = weights / np.where(total > 0, total, 1.0)
    return shares


def as_outputs(y: ArrayLike) -> Integers:
    """A contiguous array of outputs, whose type is yet to be checked.

    A copy: another thread may write to y once it is checked, and compiled code takes places in memory from it.
    """
    if type(y) is np.ndarray:
        return y.copy()
    check_no_masks(y, "y")
    try:
        return np.array(y, order="C")
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError("y has entries of different lengths: pad the shorter ones, by -1, and give lengths.") from None


def plain_outputs(y: ArrayLike, shape: tuple[int, ...]) -> Labels | None:
    """Outputs of a shape as a contiguous array of int32, a copy; None if they are none."""
    found = as_outputs(y)
    narrow, is_narrow = as_narrow(found) if found.shape == shape and found.dtype.kind in "iu" else (found, False)
    return cast(Labels, narrow) if is_narrow else None


def as_narrow(y: Integers) -> tuple[Labels, bool]:
    """A contiguous array of int32, and whether it has the same numbers, of what `as_outputs` returned."""
    if y.dtype == np.int32 and y.flags.carray:  # numpy.require takes as long as the copy
        return cast(Labels, y), True
    narrow = np.require(y, np.int32, ["C", "A"])
    return narrow, np.array_equal(narrow, y)


def generators_of(seed: int, n: int) -> Generators:
    """A generator per batch entry, the same ones for a seed however many entries there are."""
    seed = checked_count("seed", seed, 0)
    return [np.random.default_rng([seed, entry]) for entry in range(n)]


def as_floats(name: str, array: object) -> Floats:
    """A contiguous array of float32 or float64, without a copy where it is one (NumPy, or anything with DLPack)."""
    if type(array) is np.ndarray and is_plain(array):
        return array
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
        array = from_dlpack(array)
    check_no_masks(array, name)
    found: AnyArray = np.asarray(array)
    if found.dtype.name == "bfloat16":  # a type of JAX's, which NumPy takes for none of numbers
        found = found.astype(np.float32)
    if found.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers. Got dtype {found.dtype}.")
    kept = np.float32 if found.dtype in (np.float16, np.float32) else np.float64
    return np.require(found.astype(kept, copy=False), requirements=["C", "A"])  # a number stays one


def from_dlpack(array: object) -> object:
    """The same memory as NumPy's; the array as it is where NumPy has no such type, or it is elsewhere."""
    try:
        return np.from_dlpack(array)  # type: ignore[arg-type]
    except (BufferError, RuntimeError):
        return array


def as_parts(structure: type[Structure], parts: Sequence[object], n_needed: int) -> tuple[dict[str, Floats], Shapes]:
    """Arrays of one type by name, the first `n_needed` of which must be there, and their shapes."""
    names = structure.part_names
    if not n_needed <= len(parts) <= len(names):
        raise ValueError(
            f"{structure.__name__} has the parts {', '.join(names)}, of which {n_needed} to {len(names)} are given. "
            f"Got {len(parts)}."
        )
    if are_alike(parts):
        plain = cast("Parts", parts)
        return dict(zip(names, plain, strict=False)), tuple([part.shape for part in plain])
    found: dict[str, Floats] = {}
    shapes: list[tuple[int, ...] | None] = []
    dtypes = set()
    for name, part in zip(names, parts, strict=False):
        if part is None and len(shapes) < n_needed:
            raise ValueError(f"{name} of {structure.__name__} must be an array. Got None.")
        if part is None:
            shapes.append(None)
            continue
        found[name] = array = as_floats(name, part)
        shapes.append(array.shape)
        dtypes.add(array.dtype)
    if len(dtypes) > 1:
        found = {name: array.astype(np.float64, copy=False) for name, array in found.items()}
    return found, tuple(shapes)


def batched(name: str, part: Floats, n: int, shape: tuple[int, ...]) -> Floats:
    """A checked part of this shape that all n entries share, or each has its own of, with a batch axis."""
    if part.shape not in (shape, (n, *shape)):
        raise ValueError(f"{name} must have shape {shape} or {(n, *shape)}. Got {part.shape}.")
    check_values(name, part, is_batch=part.shape != shape)
    return part.reshape(-1 if part.size else (n if part.shape != shape else 1), *shape)


def check_values(
    name: str,
    part: Floats,
    counts: Callable[[], NDArray[np.bool_]] | None = None,
    *,
    is_batch: bool = True,
    n_threads: int = 1,
) -> None:
    """Refuse nan, +inf and numbers from `GREATEST` on, where `counts()` (its first axes); -inf is a mask."""
    most = GREATEST[part.dtype]
    if within(part, most, n_threads):
        return
    good = part < most
    good &= (part > -most) | np.isneginf(part)
    if counts is not None:
        counted = counts()
        good |= ~counted.reshape(counted.shape + (1,) * (part.ndim - counted.ndim))
    if good.all():
        return
    place = tuple(np.argwhere(~good)[0].tolist())
    where = f"batch entry {place[0]}, position {place[1:]}" if is_batch else f"position {place}"
    raise ValueError(
        f"{name} must be finite, or -inf for what is not allowed. Got {part[place]} at {where}; scale the scores, "
        "or look for a division by zero where they are computed."
    )


def check_lengths(lengths: ArrayLike | None, n: int, longest: int) -> NDArray[np.int64]:
    """One length per entry, all of them `longest` by default; a copy, for the reason that `as_outputs` names."""
    if lengths is None:
        whole = np.empty(n, np.int64)
        whole.fill(longest)
        return whole
    check_no_masks(lengths, "lengths")
    found = np.array(lengths)
    if found.dtype == bool:
        raise ValueError("lengths must be integers, one per batch entry. Got a mask: give mask.sum(axis=1).")
    if found.shape == (0,) == (n,):
        return np.empty(0, np.int64)
    got = ""
    if found.shape != (n,):
        got = f"shape {found.shape}"
    elif found.dtype.kind not in "iu":
        got = f"dtype {found.dtype}"
    elif n and not 0 <= found.min() <= found.max() <= longest:
        got = f"{found.tolist()!r:.80}"
    if got:
        raise ValueError(f"lengths must be {n} integers from 0 to {longest}, one per batch entry. Got {got}.")
    return np.require(found, np.int64, ["C", "A"])


def check_two_lengths(lengths: ArrayLike | None, n: int, longest: tuple[int, int], meaning: str) -> NDArray[np.int64]:
    """Two lengths per entry, (n, 2), all of them `longest` by default."""
    if lengths is None:
        whole = np.empty((n, 2), np.int64)
        whole[:] = longest
        return whole
    check_no_masks(lengths, "lengths")
    found = np.asarray(lengths)
    if found.shape != (n, 2):
        raise ValueError(f"lengths must have shape ({n}, 2): {meaning}. Got {found.shape}.")
    return np.stack([check_lengths(found[:, k], n, longest[k]) for k in (0, 1)], axis=1)


class NoOutput(ValueError):
    """The masks of a batch entry allow no output, or nothing does for another reason."""

    def __init__(self, entry: int, why: str = "each one has a part whose score is -inf. Mask fewer parts.") -> None:
        super().__init__(f"Batch entry {entry} has no output: {why}")
        self.entry = entry


def possible(values: Values) -> Values:
    """Scores of outputs; NoOutput for the first that a mask forbids."""
    entry = first_masked(values)
    if entry >= 0:
        raise NoOutput(entry)
    return values


def possible_truths(values: Values) -> Values:
    """Scores of true outputs; ValueError for the first that a mask forbids."""
    entry = first_masked(values)
    if entry >= 0:
        raise masked_truth(entry)
    return values


def masked_truth(entry: int) -> ValueError:
    """The error for a truth whose loss would be infinite."""
    return ValueError(f"y of batch entry {entry} has a part whose score is -inf. Mask no part of a truth.")


def without_output(values: Values) -> list[int]:
    """Entries of a batch whose value is -inf."""
    return [] if first_masked(values) < 0 else np.flatnonzero(np.isneginf(values)).tolist()


def no_lengths(structure: type[Structure], lengths: ArrayLike | None) -> None:
    """Refuse lengths of a structure whose entries are all of one size."""
    if lengths is not None:
        raise ValueError(f"{structure.__name__} has no lengths: mask by scores of -inf what an entry does not have.")


def drawn(weights: Values, uniforms: Values) -> NDArray[np.int64]:
    """An index per row of weights, with probabilities in proportion to them."""
    sums = np.cumsum(weights, axis=-1)
    below: NDArray[np.int64] = (sums <= uniforms[..., None] * sums[..., -1:]).sum(axis=-1)
    return below


def over_batch(n: int, n_threads: int, function: Callable[[int, int], T]) -> list[T]:
    """Results of ``function(first, last)`` over ranges of the n entries, in threads, in their order."""
    if n_threads == 1 or n < 2:
        return [function(0, n)] if n else []
    n_parts = min(n, n_threads)
    return each_range(function, [n * part // n_parts for part in range(n_parts + 1)], n_threads)
