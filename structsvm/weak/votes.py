"""Votes on the labels of sequences: their form, as arrays, and the one that most sources give."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.metrics._counts import is_nan
from structsvm.metrics._schemes import SCHEMES, Scheme, scheme_name

if TYPE_CHECKING:
    from structsvm.arrays import Integers

__all__ = ["majority", "spans_as_votes"]

# Per source, per sequence None or, per token, a label or None where the source abstains.
Votes: TypeAlias = Sequence[Sequence[Sequence[Hashable] | None]]
NOTHING = -2  # a vote until the number of labels is known: nothing found


class VoteTable(NamedTuple):
    """Votes as an array.

    Attributes
    ----------
    votes : ndarray of shape (n_tokens, n_sources), int32
        Label ids; -1 where a source abstains. With `outside`, n_labels where it finds nothing in a sequence that it
        has read.
    offsets : ndarray of shape (n_sequences + 1,), int64
        Sequence i is tokens ``offsets[i]:offsets[i + 1]``.
    n_labels : int
    outside : int, optional
        Id of the label where there is nothing to find.
    """

    votes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    n_labels: int
    outside: int | None = None

    @property
    def n_symbols(self) -> int:
        """Number of different votes: labels, and an abstention if it tells something."""
        return self.n_labels + (self.outside is not None)

    @property
    def n_votes(self) -> int:
        """Number of votes for labels."""
        return int(((self.votes >= 0) & (self.votes < self.n_labels)).sum())

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)


def table_of(
    votes: Votes,
    labels: Sequence[Hashable] | None = None,
    lengths: Sequence[int] | None = None,
    outside: Hashable | None = None,
) -> tuple[list[Hashable], VoteTable]:
    """Return ``(labels, table)``; ValueError, naming source, sequence and token, for votes that do not fit together.

    Parameters
    ----------
    votes : list (sources) of lists (sequences) of label lists
        None in place of a label, or of a whole sequence: the source abstains.
    labels : list, optional
        All labels, in their order; None: those of the votes, sorted where they can be.
    lengths : list of int, optional
        Tokens of each sequence; needed where all sources may abstain from a whole one.
    outside : label, optional
        See `VoteModel`.
    """
    votes = _listed(votes)
    n = len(votes[0])
    sizes = _lengths(votes, n) if lengths is None else _checked_lengths(lengths, n)
    if not sum(sizes):
        raise ValueError("there are no tokens to vote on")
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    found: dict[Hashable, int] = {} if labels is None else _numbered(labels)
    if outside is not None:
        _id_of(outside, found, "outside: ", is_open=labels is None)
    out = np.full((int(offsets[-1]), len(votes)), -1, dtype=np.int32)
    for s, of_source in enumerate(votes):
        for i, sequence in enumerate(of_source):
            if sequence is None:
                continue
            if len(sequence) != sizes[i]:
                raise ValueError(f"source {s}, sequence {i}: {len(sequence)} votes on {sizes[i]} tokens")
            for t, label in enumerate(sequence):
                if label is not None:
                    out[offsets[i] + t, s] = _id_of(label, found, (s, i, t), is_open=labels is None)
                elif outside is not None:
                    out[offsets[i] + t, s] = NOTHING
    if not found:
        raise ValueError("all sources abstain everywhere: there are no votes")
    names = list(found)
    if labels is None:
        names = sorted_labels(names)
        places = np.array([names.index(label) for label in found], dtype=np.int32)
        out = np.where(out < 0, out, places[np.maximum(out, 0)])
    if outside is None:
        return names, VoteTable(out, offsets, len(names))
    out[out == NOTHING] = len(names)
    return names, VoteTable(out, offsets, len(names), names.index(outside))


def _listed(votes: Votes) -> list[list[Sequence[Hashable] | None]]:
    """The votes as lists of sources and of their sequences, whatever an array or Series calls its rows."""
    if not _is_list(votes) or len(votes) == 0:
        raise ValueError(f"votes must be a list with the votes of each source, got {votes!r:.80}")
    found: list[list[Sequence[Hashable] | None]] = []
    for s, of_source in enumerate(votes):
        if not _is_list(of_source):
            raise ValueError(f"source {s}: its votes must be a list of sequences, got {of_source!r:.80}")
        found.append(list(of_source))
        if len(of_source) != len(found[0]):
            raise ValueError(f"source {s} votes on {len(of_source)} sequences, source 0 on {len(found[0])}")
        for i, sequence in enumerate(of_source):
            if sequence is not None and not _is_list(sequence):
                raise ValueError(f"source {s}, sequence {i}: votes must be a list of labels, got {sequence!r:.80}")
    return found


def _is_list(value: object) -> bool:
    """Whether a value has a length and an order; arrays without a dimension have none."""
    has_length = hasattr(value, "__len__") and getattr(value, "shape", None) != ()
    return has_length and not isinstance(value, (str, bytes, AbstractSet, Mapping))


def _checked_lengths(lengths: Sequence[int], n: int) -> list[int]:
    if not _is_list(lengths):
        raise ValueError(f"lengths must be a list of whole numbers, got {lengths!r:.80}")
    if len(lengths) != n:
        raise ValueError(f"lengths has {len(lengths)} entries, and there are {n} sequences")
    for i, length in enumerate(lengths):
        if not isinstance(length, Integral) or length < 0:
            raise ValueError(f"lengths must be whole numbers from 0, got {length!r:.40} for sequence {i}")
    return [int(length) for length in lengths]


def _numbered(labels: Sequence[Hashable]) -> dict[Hashable, int]:
    """The ids of given labels."""
    if not _is_list(labels) or not len(labels):
        raise ValueError(f"labels must be a list of labels, got {labels!r:.80}")
    found: dict[Hashable, int] = {}
    for label in labels:
        if label is not None:
            _id_of(label, found, "labels: ", is_open=True)
    if len(found) < len(labels):
        raise ValueError(f"labels must be different labels, none of them None, got {labels!r:.80}")
    return found


def _lengths(votes: Votes, n: int) -> list[int]:
    """The tokens of each sequence, by the first source that votes on it."""
    sizes = []
    for i in range(n):
        known = next((of_source[i] for of_source in votes if of_source[i] is not None), None)
        if known is None:
            raise ValueError(f"sequence {i}: all sources abstain from it, and lengths= does not say how long it is")
        sizes.append(len(known))
    return sizes


def _id_of(label: Hashable, found: dict[Hashable, int], place: str | tuple[int, int, int], *, is_open: bool) -> int:
    """The id of a label, which is new if others may come."""
    where = place if isinstance(place, str) else "source {}, sequence {}, token {}: ".format(*place)
    own = label.item() if isinstance(label, np.generic) else label
    try:
        if own is None or is_nan(own):  # NaT is None as an object of Python
            raise TypeError
        if is_open:
            return found.setdefault(own, len(found))
        return found[own]
    except TypeError:
        problem = f"a vote must be a label, or None for an abstention, got {label!r:.80}"
    except KeyError:
        problem = f"the label {label!r:.80} is not one of labels="
    raise ValueError(where + problem) from None


def sorted_labels(labels: Iterable[Hashable]) -> list[Hashable]:
    """Labels in their order; those without one by type and text."""
    names = list(labels)
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        return sorted(names, key=lambda label: (type(label).__name__, str(label)))


def counts_of(table: VoteTable) -> NDArray[np.float64]:
    """The number of votes that each label has on each token, array (n_tokens, n_labels)."""
    counts = np.zeros((len(table.votes), table.n_labels))
    for votes in table.votes.T:
        tokens = np.flatnonzero((votes >= 0) & (votes < table.n_labels))
        counts[tokens, votes[tokens]] += 1.0
    return counts


def shares_of(counts: NDArray[np.float64], outside: int | None) -> NDArray[np.float64]:
    """The share of the votes on each token that each label has, from their numbers; 0 without any.

    With `outside`, one vote for another label is enough against all for it, and tokens without such a vote are outside:
    most sources know but some of the spans.
    """
    if outside is not None:
        counts = counts.copy()
        counts[:, outside] = 0.0
        counts[:, outside] = ~counts.any(axis=1)
    total: NDArray[np.float64] = counts.sum(axis=1, keepdims=True)
    return counts / np.maximum(total, 1.0)


def shares(table: VoteTable) -> NDArray[np.float64]:
    """The share of the votes on each token that each label has, array (n_tokens, n_labels); see `shares_of`."""
    return shares_of(counts_of(table), table.outside)


def majority(
    votes: Votes, *, lengths: Sequence[int] | None = None, outside: Hashable | None = None
) -> list[list[Hashable]]:
    """Return per sequence the label that most sources give each token; None where all abstain.

    Of labels with as many votes the first one in sorted order.

    Parameters
    ----------
    votes, lengths : see `VoteModel.fit`
    outside : label, optional
        The label of tokens on which no source votes for another one, however many vote for it.

    Examples
    --------
    >>> from structsvm.weak import majority
    >>> majority([[["a", "b"]], [["a", None]], [["b", "b"]]])
    [['a', 'b']]
    >>> majority([[["O", "a", None]], [["O", "O", None]]], outside="O")
    [['O', 'a', 'O']]
    """
    labels, table = table_of(votes, None, lengths, outside)
    counts = shares(table)
    has_some: NDArray[np.bool_] = counts.max(axis=1) > 0.0
    best = [labels[k] if some else None for k, some in zip(counts.argmax(axis=1), has_some, strict=True)]
    ends = table.offsets.tolist()
    return [best[a:b] for a, b in pairwise(ends)]


def spans_as_votes(
    spans: Sequence[Iterable[tuple[int, int, str]] | None],
    lengths: Sequence[int],
    *,
    scheme: str = "bio",
    outside: Hashable = None,
) -> list[list[Hashable] | None]:
    """Return one source's votes from the spans that it finds.

    Parameters
    ----------
    spans : list, per sequence of spans ``(start, stop, label)`` that do not overlap; None: the source abstains from it
        A label is a str.
    lengths : list of int
        Tokens of each sequence.
    scheme : str, default="bio"
        The scheme of the labels, as in `structsvm.metrics.Scheme`.
    outside : label, optional
        The vote on tokens outside of spans: "O" for a source that finds all spans; None, the default, for one that
        knows some of them and abstains elsewhere.

    Raises
    ------
    ValueError
        For an unknown scheme, for spans that overlap or end outside of their sequence, or that are none.

    Examples
    --------
    >>> from structsvm.weak import spans_as_votes
    >>> spans_as_votes([[(1, 3, "LOC")], []], [4, 2])
    [[None, 'B-LOC', 'I-LOC', None], [None, None]]
    """
    name = scheme_name(scheme)
    if name is None:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r:.80}")
    if not _is_list(spans):
        raise ValueError(f"spans must be a list with the spans of each sequence, got {spans!r:.80}")
    if _is_list(lengths) and len(spans) != len(lengths):
        raise ValueError(f"spans has {len(spans)} sequences, lengths {len(lengths)}")
    found: list[list[Hashable] | None] = []
    for i, (given, n) in enumerate(zip(spans, _checked_lengths(lengths, len(spans)), strict=True)):
        if given is None:
            found.append(None)
            continue
        of_one, inside = _sorted_spans(given, i, n), np.zeros(n, dtype=bool)
        for start, stop, _ in of_one:
            inside[start:stop] = True
        labels = Scheme(name).labels(of_one, n)
        found.append([label if within else outside for label, within in zip(labels, inside, strict=True)])
    return found


def _sorted_spans(given: Iterable[tuple[int, int, str]], i: int, n: int) -> list[tuple[int, int, str]]:
    """The spans of sequence i, which has n tokens, sorted; ValueError for what are none."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise ValueError(f"sequence {i}: its spans must be a list of (start, stop, label), got {given!r:.80}")
    spans: list[tuple[int, int, str]] = []
    for span in given:
        is_one = _is_list(span) and len(span) == 3 and isinstance(span[2], str)
        if not is_one or not all(isinstance(place, Integral) for place in span[:2]):
            raise ValueError(f"sequence {i}: a span is (start, stop, label), with a str as label, got {span!r:.80}")
        start, stop, label = span
        spans.append((int(start), int(stop), label))
    end = 0
    for start, stop, _ in sorted(spans):
        if not end <= start < stop <= n:
            raise ValueError(f"sequence {i}: the span {start}..{stop} overlaps another, or is not within 0..{n}")
        end = stop
    return sorted(spans)
