"""Allowed labels per token: labelling schemes, and partly known labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from sys import intern
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.metrics._counts import has_unlabelled
from structsvm.tasks.common.labels import is_hashable, sort_labels

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.features.tokens import Tokens
    from structsvm.tasks.sequence.examples import AllowedLike, Masks

    # A scheme, or masks (transitions, first, last).
    ConstraintsLike: TypeAlias = str | tuple[ArrayLike | None, ...] | None


def label_masks(constraints: ConstraintsLike, labels: Sequence[Any]) -> Any:
    """Masks ``(transitions, first, last)`` of a labelling scheme, for the oracles; None where all is allowed.

    ``"bio"``: I-X stands only after B-X or I-X. ``"bioes"``: further, B-X and I-X are followed by I-X or
    E-X, and S-X and E-X end a chunk.
    """
    if constraints is None:
        return None, None, None
    if isinstance(constraints, tuple):
        if len(constraints) != 3:
            raise ValueError(f"constraints must hold three masks (transitions, first, last), got {len(constraints)}")
        return constraints
    numbers = [label for label in labels if not isinstance(label, str)]
    if numbers:
        raise TypeError(
            f"constraints={constraints!r} needs labels that are strings, such as 'B-PER', got {numbers[0]!r}. Numbers "
            "of a list of names (Hugging Face: names = features['ner_tags'].feature.names) become labels by "
            "y = [[names[k] for k in labels] for labels in y]"
        )
    opens = {"bio": "", "bioes": "BI"}[constraints]  # a chunk must go on after these
    inside = {"bio": "I", "bioes": "IE"}[constraints]  # a chunk must be open before these
    begins = {"bio": "BI", "bioes": "BI"}[constraints]
    parts = [parts_of(label) for label in labels]

    def allowed(a: tuple[str, str | None], b: tuple[str, str | None]) -> bool:
        (before, kind), (here, kind_here) = a, b
        if kind_here is not None and here in inside:
            return before in begins and kind == kind_here
        return kind is None or before not in opens

    outside = ("O", None)
    transitions = np.array([[allowed(a, b) for b in parts] for a in parts])
    first = np.array([allowed(outside, b) for b in parts])
    last = np.array([allowed(a, outside) for a in parts])
    return transitions, first, last


def parts_of(label: str) -> tuple[str, str | None]:
    """The tag and the type of a label: "" of B, I, E and S alone; None of others, which are all tag."""
    if label[1:2] == "-" and label[2:]:
        return label[0], label[2:]
    return label, "" if label in ("B", "I", "E", "S") else None


def label_of(tag: str, kind: str) -> str:
    """The label of a tag and a type; one object for all tokens that have it."""
    return intern(f"{tag}-{kind}") if kind else tag


def repaired(scheme: str, labels: Sequence[str]) -> list[str]:
    """The labelling of a sequence in a scheme that has the chunks which conlleval reads in it.

    A chunk begins at B and S, after E and S, and wherever none of its type is open.
    """
    chunks: list[list[int]] = []
    before = None
    for t, label in enumerate(labels):
        tag, kind = parts_of(label)
        if kind is not None and kind == before and tag not in "BS":
            chunks[-1].append(t)
        elif kind is not None:
            chunks.append([t])
        before = None if tag in "ES" else kind
    new = list(labels)
    for chunk in chunks:
        kind = parts_of(labels[chunk[0]])[1] or ""
        tags = "B" + "I" * (len(chunk) - 1)
        if scheme == "bioes":
            tags = tags[:-1] + "E" if len(chunk) > 1 else "S"
        for t, tag in zip(chunk, tags, strict=True):
            new[t] = label_of(tag, kind)
    return new


def repair(
    scheme: ConstraintsLike,
    labels: Sequence[Hashable],
    label_ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    is_open: bool,
) -> tuple[Sequence[Hashable], NDArray[np.int32]]:
    """Return ``(labels, label_ids)`` with the sequences that break a scheme `repaired`, and the labels that this needs.

    ValueError for masks, and for new labels unless the set of labels is open.
    """
    if scheme is None:
        return labels, label_ids
    if isinstance(scheme, tuple):
        raise ValueError("broken='repair' needs constraints='bio' or 'bioes': masks do not say what is meant")
    transitions, first, last = label_masks(scheme, labels)
    bounds = np.unique(offsets)
    wrong = np.zeros(len(label_ids), dtype=bool)
    wrong[1:] = ~transitions[label_ids[:-1], label_ids[1:]]
    wrong[bounds[:-1]] = ~first[label_ids[bounds[:-1]]]
    wrong[bounds[1:] - 1] |= ~last[label_ids[bounds[1:] - 1]]
    names = np.array(labels, dtype=object)[label_ids]
    for k in np.unique(np.searchsorted(bounds, np.flatnonzero(wrong), side="right")):
        part = slice(bounds[k - 1], bounds[k])
        names[part] = repaired(scheme, names[part].tolist())
    new = sorted(set(names.tolist()) - set(labels))
    if new and not is_open:
        raise ValueError(f"broken='repair' makes the label {new[0]!r}, which is not one of the labels {list(labels)}")
    labels = sort_labels([*labels, *new]) if new else labels
    id_of = {label: k for k, label in enumerate(labels)}
    return labels, np.array([id_of[name] for name in names], dtype=np.int32)


def names_chunks(labels: Sequence[Hashable]) -> bool:
    """Whether labels are those of chunks in a scheme: B, I, E or S, maybe a dash and a type, or O."""
    return any(label != "O" for label in labels) and all(label == "O" or has_tag(label, "BIES") for label in labels)


def has_tag(label: object, tags: str) -> bool:
    """Whether a label has one of the tags of a scheme."""
    tag, kind = parts_of(label) if isinstance(label, str) else ("", None)
    return kind is not None and tag in tags


def allowed_masks(allowed: AllowedLike | None, labels: Sequence[Hashable]) -> Masks | None:
    """Boolean arrays (length, n_labels) of partly known labels; None for a sequence about which nothing is known.

    Parameters
    ----------
    allowed : list or None
        Per sequence None, or a list with, per token, None, a label, or a collection of the labels that it may have.
    labels : list
        The model's labels.
    """
    if allowed is None:
        return None
    id_of = {label: k for k, label in enumerate(labels)}
    takes_any = has_unlabelled([-1], labels)
    masks: list[NDArray[np.bool_] | None] = []
    for i, sequence in enumerate(allowed):
        if sequence is None:
            masks.append(None)
            continue
        mask = np.ones((len(sequence), len(id_of)), dtype=bool)
        for t, some in enumerate(sequence):
            if some is not None and not (takes_any and is_hashable(some) and some == -1):
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
