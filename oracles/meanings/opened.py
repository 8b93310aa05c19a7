"""Kinds of leaves that their sentences spell out: others may be copied, however often those were met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from structsvm.oracles.meanings.lexicon import FEWEST_NAMES, Lexicon
from structsvm.structures.meaning_units import MeaningUnits, around, around_text

# Leaves are names if this share of them, by how often bags hold them, is written in its sentences. To open a kind that
# is none costs less than a hundredth of exact F1, to leave one closed costs all questions with a name that is new.
SPELT_OUT = 0.5


# From what stands around leaves, see `around_text`, to how often sentences spell one and how often bags hold one.
Spellings: TypeAlias = dict[str, tuple[float, float]]


def spellings(
    units: MeaningUnits,
    sentences: Sequence[Sequence[str]],
    bags: Sequence[Mapping[int, float]],
    before: Mapping[str, tuple[float, float]] | None = None,
) -> Spellings:
    """Count how often sentences spell leaves out whose term has arguments before the last one.

    Parameters
    ----------
    units : MeaningUnits
    sentences : list of lists of words
    bags : list of dicts
        From the ids of units to the shares of a bag's meanings that hold them.
    before : dict, optional
        The counts of earlier sentences, which are added.

    Examples
    --------
    >>> from structsvm.oracles.meanings.opened import spellings, spelt_out
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> from structsvm.structures.meanings import parse_meaning
    >>> trees = [parse_meaning(f"ask(in(a,{name}),{k})") for name in ("ulm", "bonn", "kiel") for k in range(20)]
    >>> units = MeaningUnits(trees)
    >>> bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    >>> counts = spellings(units, [[tree[1][2], "?"] for tree in trees], bags)
    >>> counts, spelt_out(units, counts)
    ({'in(a,_)': (60.0, 60.0)}, {'in(a,_)'})
    """
    group_of = leaves_of_terms(units)
    found = {group: [*counts] for group, counts in (before or {}).items()}
    lexicon = Lexicon(units, {}, ())
    for words, bag in zip(sentences, bags, strict=True):
        own = {leaf: p for leaf, p in bag.items() if leaf in group_of}
        written = {leaf for _, _, leaf in lexicon.written_in(words)} if own else set[int]()
        for leaf, p in own.items():
            counts = found.setdefault(group_of[leaf], [0.0, 0.0])
            counts[0] += leaf in written
            counts[1] += p
    return {group: (n_written, n_met) for group, (n_written, n_met) in sorted(found.items())}


def spelt_out(units: MeaningUnits, counts: Mapping[str, tuple[float, float]]) -> set[str]:
    """Kinds of leaves that sentences spell out, by the counts of `spellings`, among those that are units of their own.

    `FEWEST_NAMES` leaves are of the kind, and as many were spelt.
    """
    n_leaves = Counter(group for leaf, group in leaves_of_terms(units).items() if units.kinds[leaf] == leaf)
    return {
        group
        for group, (n_written, n_met) in counts.items()
        if n_leaves[group] >= FEWEST_NAMES and n_written >= max(FEWEST_NAMES, SPELT_OUT * n_met)
    }


def leaves_of_terms(units: MeaningUnits) -> dict[int, str]:
    """From leaves whose term has arguments before the last one to what stands around them."""
    found = {}
    for leaf, unit in enumerate(units.units):
        if unit.places is None and unit.words and len(before := around(unit.tree)) > 1:
            found[leaf] = around_text(before)
    return found
