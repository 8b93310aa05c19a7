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


def meaning_of(intent: str, slots: Iterable[tuple[str, str]]) -> str:
    """The meaning of an intent with slots and their values."""
    return f"{intent}({','.join(f'{slot}({_constant(value)})' for slot, value in slots)})"


def _constant(value: object) -> str:
    """A value as a constant: with quotes if it has more than one word, or a sign of its own."""
    text = " ".join(str(value).split())
    if _PLAIN.fullmatch(text):
        return text
    return f'"{text}"' if "'" in text else f"'{text}'"
