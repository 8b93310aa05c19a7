"""The order of a schedule's visits: groups of examples, section by section, or examples by their parts of the gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from structsvm.arrays import Floats, Integers


def itinerary(
    n_samples: int, groups: Integers | None, visited: Integers | None, sections: Integers | None
) -> tuple[Integers, Integers, Integers, Integers, Integers, int]:
    """Return ``(groups, visited, sections, bounds, ends, n)`` for a state's attributes of these names.

    Groups are offsets of examples (None: one each), and `visited` the numbers of those that are visited (None: all),
    which have n examples. Sections are cut to these; so many of the visited groups (`bounds`), and so many of their
    examples (`ends`), lie before the bounds of each.
    """
    groups = np.arange(n_samples + 1, dtype=np.int64) if groups is None else groups
    visited = np.arange(len(groups) - 1, dtype=np.int64) if visited is None else visited
    starts, sizes = groups[visited], np.diff(groups)[visited]
    before = np.append(0, np.cumsum(sizes))
    whole = [starts[0], starts[-1] + sizes[-1]] if len(visited) else [0, 0]
    sections = np.array(whole) if sections is None else np.unique(np.clip(sections, whole[0], whole[1]))
    bounds = np.searchsorted(starts, sections)
    return groups, visited, sections, bounds, before[bounds], int(before[-1])


def drawn_by_gap(examples: Integers, gaps: Floats, units: Callable[[int], Floats]) -> Integers:
    """As many of a section's examples as it has, with odds proportional to their gaps, or to a tenth of the mean.

    ``units(n)`` returns n random numbers from [0, 1). All examples, as they come, if no gap is known.
    """
    ascending = np.sort(examples)
    gaps = gaps[ascending]
    ends = np.cumsum(np.maximum(gaps, 0.1 * gaps.mean()))
    total = ends.max()
    if total == 0.0:
        return examples
    return ascending[np.minimum(np.searchsorted(ends, units(len(ends)) * total, side="right"), len(ends) - 1)]
