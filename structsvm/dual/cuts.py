"""The constraints of examples as arrays, as they stand in the states of training and travel between workers."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from structsvm.features.ranges import take_ranges
from structsvm.shards.storage import in_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from structsvm.arrays import Integers, State

CUTS = ("cut_example", "cut_bounds", "cut_numbers", "cut_words")  # arrays of `DualState.get_state`


def cuts_of(arrays: State, start: int, stop: int) -> State:
    """The cuts of examples start .. stop - 1, of the arrays of a state."""
    first, last = np.searchsorted(arrays["cut_example"], [start, stop])
    bounds = arrays["cut_bounds"][first : last + 1]
    return {
        "cut_example": arrays["cut_example"][first:last] - start,
        "cut_bounds": bounds - bounds[0],
        "cut_numbers": arrays["cut_numbers"][first:last],
        "cut_words": arrays["cut_words"][bounds[0] : bounds[-1]],
    }


def cuts_at(arrays: State, examples: Integers) -> State:
    """The cuts of examples at these indices, which are then 0, 1, ..., of the arrays of a state."""
    ends = np.searchsorted(arrays["cut_example"], [examples, examples + 1])
    bounds = np.concatenate([[0], np.cumsum(ends[1] - ends[0])])
    number = np.repeat(np.arange(len(examples)), np.diff(bounds))
    return taken(arrays, np.arange(bounds[-1]) + (ends[0] - bounds[:-1])[number]) | {"cut_example": number}


def taken(cuts: State, chosen: Integers) -> State:
    """The cuts at these indices, in their order."""
    bounds, words = take_ranges(cuts["cut_bounds"], chosen)
    return {
        "cut_example": cuts["cut_example"][chosen],
        "cut_bounds": bounds,
        "cut_numbers": cuts["cut_numbers"][chosen],
        "cut_words": cuts["cut_words"][words],
    }


def by_example(cuts: State) -> State:
    """The cuts in the order of their examples."""
    return taken(cuts, np.argsort(cuts["cut_example"], kind="stable"))


def scaled(cuts: State, sigma: float) -> State:
    """The same cuts, their alphas times sigma."""
    return cuts | {"cut_numbers": cuts["cut_numbers"] * [sigma, 1.0, 1.0]}


def mixed(before: State, after: State, share: float) -> State:
    """The cuts of an exchange of which a share is kept: those of both ends, one after the other for each example."""
    if share in (0.0, 1.0):
        return after if share else before
    ends = scaled(before, 1.0 - share), scaled(after, share)
    found = {name: np.concatenate([cuts[name] for cuts in ends]) for name in CUTS}
    sizes = [np.diff(cuts["cut_bounds"]) for cuts in ends]
    return by_example(found | {"cut_bounds": np.concatenate([[0], np.cumsum(np.concatenate(sizes))])})


def joined(parts: Iterable[tuple[Integers, State]]) -> State:
    """The cuts of parts of the examples, each given as their indices among all, and its cuts: mapped from files."""
    examples, cuts = zip(*parts, strict=True)
    n_words = np.cumsum([0, *(part["cut_bounds"][-1] for part in cuts)])[:-1].tolist()
    found = {name: in_file(part[name] for part in cuts) for name in ("cut_numbers", "cut_words")}
    found["cut_example"] = in_file(where[part["cut_example"]] for where, part in zip(examples, cuts, strict=True))
    bounds = (part["cut_bounds"][1:] + n for part, n in zip(cuts, n_words, strict=True))
    found["cut_bounds"] = in_file(chain([np.zeros(1, dtype=np.int64)], bounds))
    return found
