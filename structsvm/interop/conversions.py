"""One program's models in another one's form: other names of observations, other patterns, the same scores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from structsvm.features.functions.patterns import WAPITI_BOUNDARIES, Pattern, parse_crfpp, parse_wapiti
from structsvm.interop.chain_model import PROGRAMS, ChainModel, Weights

# How the places outside a sequence are called, before and after it.
OUTSIDE = {"wapiti": ("_x-", "_x+"), "crfpp": ("_B-", "_B+")}


def converted(chain: ChainModel, kind: str) -> ChainModel:
    """The model in the form of another program.

    Of Wapiti and CRF++ as one of CRFsuite, whose attributes are the observations; of CRFsuite as one of Wapiti without
    patterns; of Wapiti as one of CRF++ and the other way round.

    Raises
    ------
    ValueError
        For what that program has no counterpart of; the message names it.
    """
    if kind == "crfsuite":
        return _observations_alone(chain)
    if not chain.patterns:
        if kind == "crfpp":
            raise ValueError("model: CRF++ has no counterpart of attributes: its observations are formed by templates")
        if chain.kind == "crfsuite":
            return replace(chain, kind=kind, attributes=["u" + name for name in chain.attributes])
    return _with_patterns(chain, kind)


def _observations_alone(chain: ChainModel) -> ChainModel:
    """Observations as attributes; weights of pairs that each token has are transitions."""
    if chain.independent:
        raise ValueError("model: CRFsuite has no counterpart of Wapiti's maximum entropy mode")
    transitions, pairs = chain.apart(["b"] if not chain.patterns else None)
    if pairs is not None:
        raise ValueError(
            f"model: CRFsuite has no counterpart of weights of pairs of labels with an observation, as "
            f"{_first(chain, pairs)!r:.60} has"
        )
    return replace(chain, kind="crfsuite", pairs=None, transitions=transitions, patterns=[])


def _first(chain: ChainModel, weights: Weights) -> str:
    """The first attribute with weights."""
    return chain.attributes[int(weights.rows()[0])]


def _with_patterns(chain: ChainModel, kind: str) -> ChainModel:
    """Patterns as templates, or templates as patterns, with the observations that they form."""
    if chain.independent:
        raise ValueError(f"model: {PROGRAMS[kind]} has no counterpart of Wapiti's maximum entropy mode")
    patterns = [made for pattern in chain.patterns for made in _translated(pattern, kind)]
    renamed = _Renaming(chain, kind)
    names = [renamed(name) for name in chain.attributes]
    if kind == "wapiti":
        attributes = [name[0].lower() + name[1:] for name in names]
        return replace(chain, kind=kind, attributes=_once(attributes), patterns=patterns)
    # A "*" observation is one of labels and one of pairs.
    attributes = [_upper("U" if name[0] == "*" else name[0], name) for name in names]
    both = [row for row, name in enumerate(names) if name[0] == "*"]
    attributes += [_upper("B", names[row]) for row in both]
    numbers = np.arange(len(names))
    numbers[both] = len(names) + np.arange(len(both))
    pairs = None if chain.pairs is None else chain.pairs.placed(numbers, len(attributes))
    states = chain.states.placed(np.arange(len(names)), len(attributes))
    return replace(chain, kind=kind, attributes=_once(attributes), states=states, pairs=pairs, patterns=patterns)


def _once(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("model: two observations would have one name in the other program")
    return names


def _upper(letter: str, name: str) -> str:
    """A name with the letter of CRF++, which keeps the star of Wapiti's observations of both kinds."""
    return letter.upper() + (name if name[0] == "*" else name[1:])


def _translated(pattern: Pattern, kind: str) -> Iterator[Pattern]:
    """The patterns of a program that form what a pattern of the other one does."""
    for command in pattern.commands:
        if command.name != "x" or command.absolute:
            raise ValueError(
                f"model: CRF++ has no counterpart of the pattern {pattern.source!r}: its templates have %x alone"
            )
        if abs(command.offset) > WAPITI_BOUNDARIES:
            raise ValueError(
                f"model: {pattern.source!r} reads further than {WAPITI_BOUNDARIES} tokens: there Wapiti has one name"
            )
    source = pattern.literals[0].decode("utf-8", "surrogateescape")
    for command, literal in zip(pattern.commands, pattern.literals[1:], strict=True):
        source += f"%x[{command.offset},{command.column}]{literal.decode('utf-8', 'surrogateescape')}"
    if kind == "wapiti":
        yield parse_wapiti(source)
    else:
        for letter in "UB" if source[0] == "*" else source[0]:
            yield parse_crfpp(_upper(letter, source))


class _Renaming:
    """Other names of the places outside a sequence in observations, by the patterns that form these.

    Of several ways in which a pattern may have formed an observation the one with most such places is taken.
    """

    def __init__(self, chain: ChainModel, kind: str) -> None:
        self.ours, self.its = OUTSIDE[chain.kind], OUTSIDE[kind]
        self.marks = re.compile("|".join(map(re.escape, self.ours)))
        forms = {form: None for pattern in chain.patterns for form in self._forms(pattern)}
        self.forms = sorted(map(re.compile, forms), key=lambda form: -form.groups)

    def _forms(self, pattern: Pattern) -> Iterator[str]:
        """Forms of a pattern's observations with one place or more, whose distances are groups."""
        literals = [re.escape(literal.decode("utf-8", "surrogateescape")) for literal in pattern.literals]
        places = [
            [f"{re.escape(self.ours[command.offset > 0])}([1-{abs(command.offset)}])"] if command.offset else []
            for command in pattern.commands
        ]
        for chosen in product(*([*place, "(?s:.*?)"] for place in places)):
            if any("[1-" in value for value in chosen):
                yield literals[0] + "".join(map("".join, zip(chosen, literals[1:], strict=True)))

    def __call__(self, name: str) -> str:
        if not self.marks.search(name):
            return name
        match = next(filter(None, (form.fullmatch(name) for form in self.forms)), None)
        for k in range(0 if match is None else match.re.groups, 0, -1):
            end = match.start(k)  # type: ignore[union-attr]  # of the mark before the distance
            mark = name[end - len(self.ours[0]) : end]
            name = name[: end - len(mark)] + self.its[self.ours.index(mark)] + name[end:]
        return name
