"""The probability of a chunk: of all labellings in which exactly it is read, at its place and of its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from structsvm.metrics._schemes import OUTSIDE, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from numpy.typing import NDArray

    from structsvm.metrics._schemes import Scheme

# Roles after which a chunk goes on, and roles with which it does: `structsvm.metrics._schemes.chunks_of`.
OPEN, INSIDE = ("B", "I"), ("I", "E")


def parts_by(scheme: Scheme | None, labels: Sequence[Hashable]) -> list[Part]:
    """The role and the type of each label; without a scheme, each run of one label but O is a chunk of that type."""
    if scheme is not None:
        return [scheme.part(label) or OUTSIDE for label in labels]
    return [OUTSIDE if label == "O" else Part("I", label) for label in labels]  # type: ignore[arg-type]


def chance_of_chunk(
    share: Callable[[NDArray[np.bool_]], float], parts: Sequence[Part], length: int, chunk: tuple[int, int, str]
) -> float:
    """The probability that a chunk ``(start, stop, type)`` is read.

    With M the labellings whose labels from start to stop belong together, A those of M in which the chunk begins
    before start, and B those in which it goes on after stop: P(M) - P(A) - P(B) + P(A and B), each of which is a sum
    over labellings that only have some labels at each token.

    Parameters
    ----------
    share : callable
        The probability of all labellings with allowed labels alone, given by a mask (length, n_labels).
    parts : list of Part
        Role and type of each label.
    length : int
        The number of tokens.
    chunk : tuple
    """
    start, stop, kind = chunk
    own = np.array([part.role != "O" and part.kind == kind for part in parts])
    opens = own & np.array([part.role in OPEN for part in parts])
    inside = own & np.array([part.role in INSIDE for part in parts])
    mask = np.ones((length, len(parts)), dtype=bool)
    mask[start:stop] = own
    mask[start : stop - 1] &= opens
    mask[start + 1 : stop] &= inside
    before, after = mask.copy(), mask.copy()
    if start > 0:
        before[start - 1] &= opens
        before[start] &= inside
    if stop < length:
        after[stop] &= inside
        after[stop - 1] &= opens
    found = share(mask)
    if start > 0:
        found -= share(before)
    if stop < length:
        found -= share(after)
    if start > 0 and stop < length:
        found += share(before & after)
    return min(max(found, 0.0), 1.0)
