"""Kinds of leaves that their sentences spell out: others may be copied, however often those were met."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from structsvm.oracles.meanings.lexicon import FEWEST_NAMES, Lexicon
from structsvm.structures.meaning_units import MeaningUnits, around, around_text

# Leaves are names if this share of them, by how often bags hold them, is written in its sentences. To open a kind that
# is none costs less than a hundredth of exact F1, to leave one closed costs all questions with a name that is new.
SPELT_OUT = 0.5


def spelt_out(units: MeaningUnits, sentences: Sequence[Sequence[str]], bags: Sequence[Mapping[int, float]]) -> set[str]:
    """Kinds of leaves that sentences spell out, as `around_text` has them, among those that are units of their own.

    Parameters
    ----------
    units : MeaningUnits
    sentences : list of lists of words
    bags : list of dicts
        From the ids of units to the shares of a bag's meanings that hold them.

    Examples
    --------
    >>> from structsvm.oracles.meanings.opened import spelt_out
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> from structsvm.structures.meanings import parse_meaning
    >>> trees = [parse_meaning(f"ask(in(a,{name}),{k})") for name in ("ulm", "bonn", "kiel") for k in range(20)]
    >>> units = MeaningUnits(trees)
    >>> bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    >>> spelt_out(units, [[tree[1][2], "?"] for tree in trees], bags)
    {'in(a,_)'}
    """
    group_of = closed_leaves(units)
    if not group_of:
        return set()
    lexicon = Lexicon(units, {}, ())
    met: dict[str, float] = defaultdict(float)
    written = Counter[str]()
    for words, bag in zip(sentences, bags, strict=True):
        own = {leaf: p for leaf, p in bag.items() if leaf in group_of}
        for leaf, p in own.items():
            met[group_of[leaf]] += p
        found = {leaf for _, _, leaf in lexicon.written_in(words)} if own else set[int]()
        written.update(group_of[leaf] for leaf in own.keys() & found)
    return {group for group, n in met.items() if written[group] >= SPELT_OUT * n}


def closed_leaves(units: MeaningUnits) -> dict[int, str]:
    """From leaves that are no names, whose term has arguments before the last one, to what stands around them.

    Those of which a kind has `FEWEST_NAMES` or more.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for leaf, unit in enumerate(units.units):
        if unit.places is None and unit.words and units.kinds[leaf] == leaf:
            before = around(unit.tree)
            if len(before) > 1:
                groups[around_text(before)].append(leaf)
    return {leaf: text for text, leaves in groups.items() if len(leaves) >= FEWEST_NAMES for leaf in leaves}
