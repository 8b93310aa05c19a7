"""Labels of sequences as users give them, fully known or in part, and their ids for oracles."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import LEAST_INPUTS, AdviceWarning, warn
from structsvm.features.attributes import unwrapped
from structsvm.features.columns import Columns
from structsvm.metrics._counts import AUTO, is_nan, is_unknown, mark_for, say_unknown
from structsvm.metrics._schemes import doubt_of_tags, scheme_of
from structsvm.oracles.chain import place_of
from structsvm.tasks.common.labels import from_text, ids_by_label, is_hashable, sort_labels, weights_of

if TYPE_CHECKING:
    from structsvm.arrays import Integers
    from structsvm.features.tokens import Tokens
    from structsvm.tasks.sequence.examples import LabelSets, LabelsLike

# A hashable value is a label, unless it is None.
COLLECTIONS = (set, list, dict)


def encode_known(
    y: LabelsLike | None,
    tokens: Tokens | Columns,
    labels: Sequence[Hashable] | None = None,
    unknown: object = AUTO,
    *,
    needs_label: bool = True,
) -> tuple[Sequence[Hashable], NDArray[np.int32], LabelSets]:
    """Return ``(labels, label_ids, sets)``: the distinct labels, sorted where they can be, and int32 label ids.

    A token whose label is not known has n_labels + k instead, where row k of `sets`, a boolean array
    (n_sets, n_labels), says which labels it may have; or a float64 array of their weights, if some have weights.

    Parameters
    ----------
    y : list of label lists, or Columns with one column
        In the place of a label None, which may be any, or a set or list of those that it may be, or a dict of their
        weights. One flat list or array of all labels does too, if it cannot be taken for the other.
    tokens : Tokens or Columns
        Whose lengths y must have.
    labels : list, optional
        The labels known already; ValueError for another one.
    unknown : object
        The mark that stands for None (`is_unknown`).
    needs_label : bool
        Whether one token at least must have a label, if there are tokens.
    """
    found: dict[int, Collection[Hashable] | None] = {}
    unknown = unknown if labels is None else mark_for(unknown, labels)
    if isinstance(y, Columns) and y.n_columns != 1:
        raise ValueError(f"y has {y.n_columns} columns, expected the one of the labels: columns.select([j])")
    if isinstance(y, Columns) and any(is_unknown(name, unknown) for name in y.vocabularies[0].tolist()):
        y = y.column(0)
    if isinstance(y, Columns):
        names, lengths = y.vocabularies[0].tolist(), np.diff(y.offsets)
        used: list[object] = [
            name for name, count in zip(names, np.bincount(y.ids[:, 0], minlength=len(names))) if count
        ]
    else:
        flat, lengths = _flatten(y, tokens)
        flat, used, found = _distinct(flat, labels, np.cumsum([0, *lengths]), unknown)
        if needs_label and flat and not used:
            raise ValueError("y tells no label of any token")
    if len(lengths) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, y has {len(lengths)}")
    wrong = lengths != tokens.lengths
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"sequence {i} has {tokens.lengths[i]} tokens but {lengths[i]} labels")
    if labels is None:
        labels = sort_labels(used)
    try:
        id_of = ids_by_label(labels, used)
    except ValueError as error:
        every, known = chain.from_iterable(y) if isinstance(y, Columns) else flat, {*labels, None}
        at = next((k for k, label in enumerate(every) if is_hashable(label) and label not in known), None)
        if at is None:
            raise
        raise ValueError(f"{_place(at, tokens.offsets)}: {error}") from None
    if found:
        return labels, *_encoded_sets(flat, found, id_of, tokens.offsets)
    if isinstance(y, Columns):
        label_ids = np.array([id_of.get(name, -1) for name in names], dtype=np.int32)[y.ids[:, 0]]
    else:
        label_ids = np.fromiter(map(id_of.__getitem__, flat), dtype=np.int32, count=len(flat))
    return labels, label_ids, np.zeros((0, len(labels)), dtype=bool)


def _place(at: int, offsets: NDArray[np.int64]) -> str:
    """The sequence, and its token, of a token by its index among all."""
    i = int(np.searchsorted(offsets, at, side="right")) - 1
    return f"sequence {i}, token {at - offsets[i]}"


def _distinct(
    flat: list[object], labels: Sequence[Hashable] | None, offsets: NDArray[np.int64], unknown: object
) -> tuple[list[object], list[object], dict[int, Collection[Hashable] | None]]:
    """Return ``(flat, used, found)``: labels with None for marks, the distinct ones, and by their ids the objects in
    place of labels that are not known.
    """
    found: dict[int, Collection[Hashable] | None] = {
        id(label): label for label in flat if label is None or isinstance(label, COLLECTIONS)
    }
    named = flat
    if found:
        alone = (label for label in flat if id(label) not in found)
        named = [*alone, *chain.from_iterable(some for some in found.values() if some is not None)]
    if any(some is not None and None in some for some in found.values()):
        raise ValueError("y holds a set of labels with None in it; None alone: it may be any")
    try:
        used = list(dict.fromkeys(named))
    except TypeError:
        bad = next(label for label in named if not is_hashable(label))
        raise TypeError(f"labels must be hashable (strings, numbers, tuples), got {bad!r:.80}") from None
    missing = {id(label) for label in used if is_nan(label)}
    if missing:
        held = (some if isinstance(some, COLLECTIONS) else (some,) for some in flat)
        at = next(k for k, some in enumerate(held) if not missing.isdisjoint(map(id, some)))
        i, t = place_of(at, offsets)
        raise ValueError(f"sequence {i}, token {t}: y holds NaN as a label ({flat[at]!r:.80}); None: it may be any")
    marks = [label for label in used if is_unknown(label, unknown)]
    if marks:
        inside = (label for some in found.values() if some is not None for label in some)
        if any(is_unknown(label, unknown) for label in inside):
            raise ValueError(f"y holds a set of labels with {marks[0]!r} in it; {marks[0]!r} alone: it may be any")
        used = [label for label in used if label not in marks]
        say_unknown(flat, unknown, used if labels is None else None, "tokens")
        flat = [None if is_hashable(label) and is_unknown(label, unknown) else label for label in flat]
        found[id(None)] = None
    return flat, used, found


def _encoded_sets(
    flat: list[object],
    found: dict[int, Collection[Hashable] | None],
    id_of: dict[Hashable, int],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int32], LabelSets]:
    """Return ``(label_ids, sets)`` of labels of which `found` are known in part; see `encode_known`."""
    sets: dict[frozenset[tuple[int, float]], int] = {}
    of_object = {}
    for key, some in found.items():
        weights = _weights(list(id_of) if some is None else some)
        if not weights:
            i, t = place_of(next(t for t, label in enumerate(flat) if id(label) == key), offsets)
            what = f"weights that are no finite numbers from 0 on, or all 0: {some!r:.80}"
            what = what if some else "an empty collection of labels; None: it may be any"
            raise ValueError(f"sequence {i}, token {t}: y holds {what}")
        ids = frozenset((id_of[label], weight) for label, weight in weights.items())
        of_object[key] = min(ids)[0] if len(ids) == 1 else sets.setdefault(ids, len(id_of) + len(sets))
    label_ids = [of_object[id(label)] if id(label) in of_object else id_of[label] for label in flat]
    is_weighted = any(weight != 1.0 for ids in sets for _, weight in ids)
    rows = np.zeros((len(sets), len(id_of)), dtype=np.float64 if is_weighted else bool)
    for row, ids in zip(rows, sets, strict=True):
        for k, weight in ids:
            row[k] = weight
    return np.array(label_ids, dtype=np.int32), rows


def _weights(some: Collection[Hashable]) -> dict[Hashable, float]:
    """The weights of labels, the greatest 1; none if they are no weights."""
    try:
        weights = weights_of(some)
    except ValueError:
        return {}
    most = max(weights.values(), default=1.0)
    return {label: weight / most for label, weight in weights.items()}


def fragments(
    tokens: Tokens, label_ids: NDArray[np.int32], n_labels: int
) -> tuple[Tokens, NDArray[np.int32], NDArray[np.intp]]:
    """Return ``(tokens, label_ids, origin)``: runs of tokens whose labels are known, and the sequence of each."""
    rows = np.flatnonzero(label_ids < n_labels)
    sequence = np.searchsorted(tokens.offsets, rows, side="right") - 1
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (np.diff(rows) > 1) | (np.diff(sequence) > 0)
    alone = tokens.with_offsets(np.arange(tokens.n_tokens + 1)).take(rows)
    return alone.with_offsets(np.append(np.flatnonzero(begins), len(rows))), label_ids[rows], sequence[begins]


def labelled(columns: Columns, name: str) -> tuple[Columns, Columns]:
    """Split off the last column as labels."""
    if columns.n_columns < 2:
        raise ValueError(f"{name}: has one column; training needs at least a word and, last, its label")
    return columns.drop_last(), columns.select([columns.n_columns - 1])


def known_columns(y: Columns) -> list[list[str | set[str] | None]]:
    """A column of labels that are known in part, as `encode_known` has them; see `from_text`."""
    known = []
    for k, name in enumerate(y.vocabularies[0].tolist()):
        try:
            known.append(from_text(name))
        except ValueError as error:
            raise ValueError(f"{_place(int((y.ids[:, 0] == k).argmax()), y.offsets)}: {error}") from None
    flat = [known[k] for k in y.ids[:, 0].tolist()]
    return [flat[a:b] for a, b in pairwise(y.offsets.tolist())]


def encode_labels(
    y: LabelsLike, tokens: Tokens, labels: Sequence[Hashable] | None = None
) -> tuple[Sequence[Hashable], NDArray[np.int32]]:
    """``(labels, label_ids)`` of `encode_known` for labels that are all known; ValueError for others."""
    labels, label_ids, sets = encode_known(y, tokens, labels)
    if len(sets):
        raise ValueError("y must hold the label of each token, and tells some in part")
    return labels, label_ids


def warn_of_columns(X: Columns, labels: Sequence[Hashable], label_ids: Integers) -> None:
    """Warn where another column looks like the labels: one with the same values, or a first one of chunks' tags."""
    if X.n_tokens < LEAST_INPUTS or len(labels) < 2:
        return
    for j, vocabulary in enumerate(X.vocabularies):
        names, ids = vocabulary.tolist(), X.ids[:, j]
        used = {names[i] for i in np.unique(ids).tolist()}
        place = {label: k for k, label in enumerate(labels)}
        as_labels = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        if np.array_equal(as_labels[ids], label_ids):
            warn(f"the labels are the values of column {j + 1}: is another column the label?", AdviceWarning)
        elif j == 0 and scheme_of(used - {"O"}) is not None and used != {"O"} and scheme_of(labels) is None:
            first = min(used - {"O"})
            warn(
                f"column 1 has tags of chunks alone, such as {first!r:.80}, and the labels are words such as "
                f"{labels[0]!r:.80}: does the label stand first? (label=1 of read_columns, --label 1)",
                AdviceWarning,
            )


def warn_of_tags(labels: Iterable[object], *, segments: bool = False) -> None:
    """Warn of labels that look like tags of chunks and have no scheme, of tokens or of `segments`."""
    doubt = doubt_of_tags(labels)
    if doubt is not None:
        are = "segments are runs of one label" if segments else "spans are runs of one label, and have no F1 of chunks"
        warn(f"{doubt}. As it is, {are}", AdviceWarning)


def by_sequence(y: object, lengths: Sequence[int] | Integers) -> Columns | list[Any]:
    """A list of labels per sequence, also where y is one flat collection of as many as there are tokens."""
    if isinstance(y, Columns):
        return y
    y = y.tolist() if isinstance(y, np.ndarray) else list(unwrapped(y))
    is_nested = any(isinstance(labels, (list, tuple, np.ndarray)) for labels in y)
    if is_nested or len(y) != sum(lengths) or len(y) == len(lengths):
        return y
    return [y[end - n : end] for n, end in zip(lengths, np.cumsum(lengths).tolist(), strict=True)]


def _flatten(y: LabelsLike | None, tokens: Tokens | Columns) -> tuple[list[object], Integers]:
    """All labels of y in one list, and the number in each sequence (int64)."""
    if y is None:
        raise ValueError("SequenceLabeler requires y to be passed, but the target y is None")
    if not hasattr(y, "__iter__") or (isinstance(y, np.ndarray) and y.ndim == 0):
        raise TypeError(f"y must hold a list of labels for each sequence, got {y!r:.80}")
    y = by_sequence(y, tokens.lengths)
    flat, lengths = [], np.empty(len(y), dtype=np.int64)
    for i, labels in enumerate(map(unwrapped, y)):
        if isinstance(labels, np.ndarray) and labels.ndim == 1:
            labels = labels.tolist()
        elif isinstance(labels, (set, frozenset, dict)):
            raise ValueError(
                f"sequence {i}: y holds {labels!r:.80}. A set, a dict or Not(...) stands for a token's label, in a "
                "list with an entry per token"
            )
        elif isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__") or not hasattr(labels, "__iter__"):
            raise TypeError(
                f"y must hold a list of labels for each sequence, one label per token; for sequence {i} it "
                f"holds {labels!r:.80}"
            )
        lengths[i] = len(labels)
        flat.extend(labels)
    return [label.item() if isinstance(label, np.generic) else label for label in flat], lengths
