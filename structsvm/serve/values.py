"""Values of requests, checked as they are read: each error names where the value stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import cast
from xml.etree import ElementTree as ET

Object = Mapping[str, object]

# Texts in a request, and levels of XML.
MAX_TEXTS, MAX_DEPTH = 10_000, 100
HALVES = re.compile(r"[\ud800-\udfff]")


def an_object(value: object, name: str) -> Object:
    """A JSON object. Raises ValueError for anything else."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    return cast("Object", value)


def a_list(value: object, name: str, *, most: int | None = None) -> Sequence[object]:
    """A JSON list, of at most so many values. Raises ValueError for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list")
    if most is not None and len(value) > most:
        raise ValueError(f"{name}: {len(value)} of them, and at most {most} in a request")
    return cast("Sequence[object]", value)


def a_text(value: object, name: str) -> str:
    """A text. Raises ValueError for anything else, also for half a character of UTF-16, which no answer can have."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    if half := HALVES.search(value):
        raise ValueError(f"{name}: half a character of UTF-16, {half[0]!r}, at character {half.start()}")
    return value


def a_number(value: object, name: str) -> int:
    """A whole number from 0 on. Raises ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be a number from 0, got {value!r:.40}")
    return value


def an_element(text: str, name: str) -> ET.Element:
    """The root of XML.

    Raises
    ------
    ValueError
        For what is no XML, for a document type, which may define entities, and for deeply nested elements.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError(f"{name}: XML with a document type is refused")
    try:
        root = ET.fromstring(text)  # noqa: S314 (without a document type there are no entities to expand)
    except ET.ParseError as error:
        raise ValueError(f"{name}: no XML: {error}") from None
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
        if not level:
            return root
    raise ValueError(f"{name}: XML nested deeper than {MAX_DEPTH} levels")


def utf16_offsets(text: str) -> list[int]:
    """Where each character begins in UTF-16, and where the text ends."""
    return list(accumulate((1 + (character > "\uffff") for character in text), initial=0))
