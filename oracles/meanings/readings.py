"""Numbers that are written otherwise than they are meant, as 1845 is by "645pm" and 1990 by "90s".

A reading is of words of one form, digits with the same letters or marks around and between them, and says what number
they mean: the digits times `times`, and `plus` more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from structsvm.structures.meaning_units import MeaningUnits, around

# A reading holds for this share of the words of its form, and was met with so many numbers.
SURE_READING, FEWEST_NUMBERS = 0.5, 3
# Factors of digits.
TIMES = 1, 10, 100, 1000
# Digits of a number.
MOST_DIGITS = 9
ONE_NUMBER = re.compile(r"([^0-9]*)([0-9]+(?:[^\w\s][0-9]+)*)([^0-9]*)")


class Form(NamedTuple):
    """Form of a word with digits: their number, and the texts before, between and behind them."""

    before: str
    n_digits: int
    between: str
    after: str


class Reading(NamedTuple):
    """The number that digits mean: `times` themselves, and `plus`."""

    times: int
    plus: int


# Per kind of names that are numbers: what words of some forms mean.
Readings: TypeAlias = Mapping[int, Mapping[Form, Reading]]


def form_of(word: str) -> tuple[Form, int] | None:
    """The form of a word and its digits; None unless these stand together, single marks aside, and are not too many.

    Examples
    --------
    >>> from structsvm.oracles.meanings.readings import form_of
    >>> form_of("6:45pm"), form_of("1a2")
    ((Form(before='', n_digits=3, between=':', after='pm'), 645), None)
    """
    found = ONE_NUMBER.fullmatch(word)
    if found is None:
        return None
    digits, marks = re.sub("[^0-9]", "", found[2]), re.sub("[0-9]", "", found[2])
    if len(digits) > MOST_DIGITS:
        return None
    return Form(found[1].casefold(), len(digits), marks, found[3].casefold()), int(digits)


def number_in(word: str, readings: Mapping[Form, Reading]) -> int | None:
    """The number that a word means; None if there is no reading of its form."""
    found = form_of(word) if readings else None
    reading = None if found is None else readings.get(found[0])
    return None if found is None or reading is None else reading.times * found[1] + reading.plus


def read_otherwise(readings: Readings) -> set[int]:
    """The kinds with numbers that are not as they are written, so that what these look like says no name."""
    return {kind for kind, own in readings.items() if any(reading != (1, 0) for reading in own.values())}


def numbers_of(units: MeaningUnits, kind: int) -> dict[int, int]:
    """From the leaves of a kind to the numbers that they are; empty unless all are."""
    texts = {leaf: units.parted(units.units[leaf].tree)[1] for leaf in units.members[kind]}
    is_plain = all(len(text) <= MOST_DIGITS and text.isdecimal() and text == str(int(text)) for text in texts.values())
    return {leaf: int(text) for leaf, text in texts.items()} if is_plain else {}


def readings_of(
    units: MeaningUnits, sentences: Iterable[Sequence[str]], bags: Iterable[Mapping[int, float]]
) -> dict[int, dict[Form, Reading]]:
    """Learn readings from sentences, and the shares of the units in their bags.

    Examples
    --------
    >>> from structsvm.oracles.meanings.readings import readings_of
    >>> from structsvm.structures.meaning_units import MeaningUnits
    >>> from structsvm.structures.meanings import parse_meaning
    >>> units = MeaningUnits([parse_meaning(f"at(time({12 + k}00))") for k in range(1, 6)])
    >>> bags = [{u: 1.0} for u, unit in enumerate(units.units) if unit.places is None]
    >>> [*readings_of(units, [[f"{k}pm"] for k in range(1, 6)], bags).values()]
    [{Form(before='', n_digits=1, between='', after='pm'): Reading(times=100, plus=1200)}]
    """
    numbers = {kind: names for kind in units.members if (names := numbers_of(units, kind))}
    # Kinds with the same relation around their names are read alike.
    group = {kind: around(units.units[units.members[kind][0]].tree) for kind in numbers}
    of_leaf = {leaf: (group[kind], number) for kind, names in numbers.items() for leaf, number in names.items()}
    n_met: Counter[Form] = Counter()
    # By group, form and reading: the share of the words that say each number so.
    said: dict[tuple[tuple[str, ...], Form], dict[Reading, dict[int, float]]]
    said = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for words, bag in zip(sentences, bags, strict=True) if of_leaf else ():
        forms = [one for word in words if (one := form_of(str(word))) is not None]
        n_met.update(form for form, _ in forms)
        leaves = [(*of_leaf[u], share) for u, share in bag.items() if u in of_leaf]
        for (relations, number, share), (form, digits), times in product(leaves, forms, TIMES):
            said[relations, form][Reading(times, number - times * digits)][digits] += share
    found: dict[tuple[str, ...], dict[Form, Reading]] = defaultdict(dict)
    for (relations, form), of_form in said.items():
        totals = {reading: sum(shares.values()) for reading, shares in of_form.items()}
        reading = max(totals, key=lambda one: (totals[one], -one.times, one.plus))
        is_sure = totals[reading] >= SURE_READING * n_met[form] and len(of_form[reading]) >= FEWEST_NUMBERS
        if is_sure and not (reading == (1, 0) and form == ("", form.n_digits, "", "")):
            found[relations][form] = reading
    return {kind: found[relations] for kind, relations in group.items() if relations in found}
