"""Which labels may stand where: labelling schemes, and partly known labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm.tasks.common.labels import is_hashable


def label_masks(constraints: Any, labels: Any) -> Any:
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
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(f"constraints={constraints!r} needs labels that are strings")
    opens = {"bio": "", "bioes": "BI"}[constraints]  # a chunk must go on after these
    inside = {"bio": "I", "bioes": "IE"}[constraints]  # a chunk must be open before these
    begins = {"bio": "BI", "bioes": "BI"}[constraints]
    parts = [(label[:1], label[2:]) if label[1:2] == "-" else (label, "") for label in labels]

    def allowed(a: Any, b: Any) -> Any:
        (before, kind), (here, kind_here) = a, b
        if here in inside and kind_here:
            return before in begins and kind == kind_here
        return not (before in opens and kind)

    outside = ("O", "")
    transitions = np.array([[allowed(a, b) for b in parts] for a in parts])
    first = np.array([allowed(outside, b) for b in parts])
    last = np.array([allowed(a, outside) for a in parts])
    return transitions, first, last


def allowed_masks(allowed: Any, labels: Any) -> Any:
    """Boolean arrays (length, n_labels) of partly known labels; None for a sequence of which nothing is known.

    Parameters
    ----------
    allowed : list or None
        For each sequence None, or for each token None, a label, or a collection of labels that may stand there.
    labels : list
        The model's labels.
    """
    if allowed is None:
        return None
    number = {label: k for k, label in enumerate(labels)}
    masks: list[np.ndarray | None] = []
    for i, sequence in enumerate(allowed):
        if sequence is None:
            masks.append(None)
            continue
        mask = np.ones((len(sequence), len(number)), dtype=bool)
        for t, some in enumerate(sequence):
            if some is not None:
                mask[t] = False
                mask[t, _numbers(some, number, f"sequence {i}, token {t}")] = True
        masks.append(mask)
    return masks


def _numbers(some: Any, number: Any, where: Any) -> list[Any]:
    """The numbers of the labels `some`, which is one of them or a collection."""
    if is_hashable(some) and (some in number or not hasattr(some, "__iter__") or isinstance(some, str)):
        some = [some]
    some = list(some)
    unknown = [label for label in some if label not in number]
    if unknown:
        raise ValueError(f"{where}: {unknown[0]!r} is not one of the labels {list(number)}")
    if not some:
        raise ValueError(f"{where}: no label is allowed; None allows all")
    return [number[label] for label in some]


def check_allowed(allowed: Any, tokens: Any) -> None:
    """Raise ValueError, naming the sequence, unless masks fit the sequences."""
    if allowed is None:
        return
    if len(allowed) != len(tokens):
        raise ValueError(f"X has {len(tokens)} sequences, allowed has {len(allowed)}")
    for i, (mask, length) in enumerate(zip(allowed, tokens.lengths)):
        if mask is not None and len(mask) != length:
            raise ValueError(f"sequence {i} has {length} tokens, but allowed has {len(mask)} for it")
