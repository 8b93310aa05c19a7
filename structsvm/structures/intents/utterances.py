"""Sentences of intents with their meanings.

An intent is a relation of its slots, each a relation of its value: "fly to Boston" means ``fly(city(Boston))``. A slot
is called by its entity and, if it has one, its role (``city.from``), in Snips' files by its slot name; its value is the
one that is given, else the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_PLAIN = re.compile(r"""[^\s(),'"]+""")


class Utterance(NamedTuple):
    """A sentence with its meaning, and its name in messages."""

    place: str
    sentence: str
    meaning: str


def meaning_of(place: str, intent: object, slots: Iterable[tuple[object, object]]) -> str:
    """The meaning of an intent with slots and their values; ValueError, which begins with `place`, for other names."""
    arguments = [f"{_name(place, 'slot', slot)}({_constant(place, value)})" for slot, value in slots]
    return f"{_name(place, 'intent', intent)}({','.join(arguments)})"


def _name(place: str, what: str, name: object) -> str:
    """The name of an intent or a slot, which a meaning takes as it is."""
    if not isinstance(name, str):
        hint = ": YAML reads no, off, yes and on as truth values, quotes make text of them" * isinstance(name, bool)
        raise ValueError(f"{place}: the {what} must be text, got {name!r:.60}{hint}")
    if not _PLAIN.fullmatch(name):
        raise ValueError(f"{place}: the {what} {name!r:.60} has a blank, a comma, a bracket or a quote, or is empty")
    return name


def checked_slots(place: str, text: str, slots: Iterable[tuple[object, object]]) -> None:
    """Raise ValueError, which begins with `place`, unless slots, (start, stop), are words of the text, each once.

    Examples
    --------
    >>> from structsvm.structures.intents.utterances import checked_slots
    >>> checked_slots("line 1", "fly to Boston", [(7, 13)])
    >>> checked_slots("line 1", "fly to Boston", [(5, 13)])
    Traceback (most recent call last):
        ...
    ValueError: line 1: the slot at 5 to 13 begins or ends within a word, 'o Boston'
    """
    last = 0
    for start, stop in slots:
        if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= len(text):
            raise ValueError(f"{place}: a slot at {start!r:.20} to {stop!r:.20} of a text of {len(text)} characters")
        if start < last:
            raise ValueError(
                f"{place}: the slot at {start} to {stop}, {text[start:stop]!r:.60}, overlaps the one before"
            )
        if any(0 < k < len(text) and text[k - 1].isalnum() and text[k].isalnum() for k in (start, stop)):
            raise ValueError(
                f"{place}: the slot at {start} to {stop} begins or ends within a word, {text[start:stop]!r:.60}"
            )
        last = stop


def _constant(place: str, value: object) -> str:
    """A value as a constant: with quotes if it has more than one word, or a sign of its own."""
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"{place}: the value of a slot must be text or a number, got {value!r:.60}")
    text = " ".join(str(value).split())
    if "'" in text and '"' in text:
        raise ValueError(f"{place}: the value {text!r:.60} has both kinds of quotes, and a constant can have one")
    if _PLAIN.fullmatch(text):
        return text
    return f'"{text}"' if "'" in text else f"'{text}'"
