"""Allowed labels per token: labelling schemes, and partly known labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.metrics._counts import AUTO, is_unknown, mark_for
from structsvm.metrics._schemes import Scheme, scheme_for
from structsvm.tasks.common.labels import is_hashable, sort_labels

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.features.tokens import Tokens
    from structsvm.tasks.sequence.examples import AllowedLike, Masks

    # A scheme, or masks (transitions, first, last).
    ConstraintsLike: TypeAlias = str | tuple[ArrayLike | None, ...] | None


def label_masks(constraints: ConstraintsLike, labels: Sequence[Any]) -> Any:
    """Masks ``(transitions, first, last)`` of a labelling scheme, for the oracles; None where all is allowed."""
    if constraints is None:
        return None, None, None
    if isinstance(constraints, tuple):
        if len(constraints) != 3:
            raise ValueError(f"constraints must hold three masks (transitions, first, last), got {len(constraints)}")
        return constraints
    return constrained(constraints, labels).masks(labels)


def constrained(constraints: str, labels: Iterable[Any]) -> Scheme:
    """The scheme that `constraints` names, in the form of the labels; see `scheme_for` for errors."""
    try:
        return scheme_for(labels, constraints)
    except (TypeError, ValueError) as error:
        raise type(error)(f"constraints={constraints!r}: {error}") from None


def repair(
    scheme: ConstraintsLike,
    labels: Sequence[Hashable],
    label_ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    is_open: bool,
) -> tuple[Sequence[Hashable], NDArray[np.int32]]:
    """Return ``(labels, label_ids)`` with the sequences that break a scheme repaired, and the labels that this needs.

    ValueError for masks, and for new labels unless the set of labels is open.
    """
    if scheme is None:
        return labels, label_ids
    if isinstance(scheme, tuple):
        raise ValueError("broken='repair' needs constraints='bio' or another scheme: masks do not say what is meant")
    transitions, first, last = label_masks(scheme, labels)
    named = constrained(scheme, labels)
    bounds = np.unique(offsets)
    wrong = np.zeros(len(label_ids), dtype=bool)
    wrong[1:] = ~transitions[label_ids[:-1], label_ids[1:]]
    wrong[bounds[:-1]] = ~first[label_ids[bounds[:-1]]]
    wrong[bounds[1:] - 1] |= ~last[label_ids[bounds[1:] - 1]]
    names = np.array(labels, dtype=object)[label_ids]
    for k in np.unique(np.searchsorted(bounds, np.flatnonzero(wrong), side="right")):
        part = slice(bounds[k - 1], bounds[k])
        names[part] = named.repaired(names[part].tolist())
    new = sorted(set(names.tolist()) - set(labels))
    if new and not is_open:
        raise ValueError(f"broken='repair' makes the label {new[0]!r}, which is not one of the labels {list(labels)}")
    labels = sort_labels([*labels, *new]) if new else labels
    id_of = {label: k for k, label in enumerate(labels)}
    return labels, np.array([id_of[name] for name in names], dtype=np.int32)


def allowed_masks(allowed: AllowedLike | None, labels: Sequence[Hashable], unknown: object = AUTO) -> Masks | None:
    """Boolean arrays (length, n_labels) of partly known labels; None for a sequence about which nothing is known.

    Parameters
    ----------
    allowed : list or None
        Per sequence None, or a list with, per token, None, a label, or a collection of the labels that it may have.
    labels : list
        The model's labels.
    unknown : object
        The mark that stands for None (`is_unknown`).
    """
    if allowed is None:
        return None
    id_of = {label: k for k, label in enumerate(labels)}
    unknown = mark_for(unknown, labels)
    masks: list[NDArray[np.bool_] | None] = []
    for i, sequence in enumerate(allowed):
        if sequence is None:
            masks.append(None)
            continue
        mask = np.ones((len(sequence), len(id_of)), dtype=bool)
        for t, some in enumerate(sequence):
            if not is_unknown(some, unknown):
                mask[t] = False
                mask[t, _ids_of(some, id_of, f"sequence {i}, token {t}")] = True
        masks.append(mask)
    return masks


def _ids_of(some: Any, id_of: Mapping[Hashable, int], where: str) -> list[int]:
    """The ids of the labels `some`, which is one of them or a collection."""
    if is_hashable(some) and (some in id_of or not hasattr(some, "__iter__") or isinstance(some, str)):
        some = [some]
    some = list(some)
    unknown = [label for label in some if label not in id_of]
    if unknown:
        raise ValueError(f"{where}: {unknown[0]!r} is not one of the labels {list(id_of)}")
    if not some:
        raise ValueError(f"{where}: no label is allowed; None allows all")
    return [id_of[label] for label in some]


def check_allowed(allowed: Masks | None, tokens: Tokens) -> None:
    """Raise ValueError, naming the sequence, unless masks fit the sequences."""
    if allowed is None:
        return
    if len(allowed) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, allowed has {len(allowed)}")
    for i, (mask, length) in enumerate(zip(allowed, tokens.lengths)):
        if mask is not None and len(mask) != length:
            raise ValueError(f"sequence {i} has {length} tokens, but allowed has {len(mask)} for it")
