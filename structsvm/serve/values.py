"""Values of requests, checked as they are read: each error names where the value stands."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import cast
from xml.etree import ElementTree as ET

Object = Mapping[str, object]

# Texts in a request, levels of XML, and its characters, which in memory take up to forty times their size.
MAX_TEXTS, MAX_DEPTH, MAX_XML = 10_000, 100, 2**25
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


def an_optional_text(value: object, name: str) -> str:
    """A text, empty for null. Raises ValueError for anything else."""
    return "" if value is None else a_text(value, name)


def a_number(value: object, name: str) -> int:
    """A whole number from 0 on. Raises ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be a number from 0, got {value!r:.40}")
    return value


class _Shallow(ET.TreeBuilder):
    """The tree of XML, refused as soon as it is too deep."""

    depth = 0

    def start(self, tag: str, attrs: dict[str, str]) -> ET.Element:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RecursionError(f"XML nested deeper than {MAX_DEPTH} levels")
        return super().start(tag, attrs)

    def end(self, tag: str) -> ET.Element:
        self.depth -= 1
        return super().end(tag)


def an_element(text: str, name: str) -> ET.Element:
    """The root of XML.

    Raises
    ------
    ValueError
        For what is no XML, for a document type, which may define entities, for deeply nested elements, and for more
        than 32 million characters.
    """
    if len(text) > MAX_XML:
        raise ValueError(f"{name}: XML of {len(text)} characters, and at most {MAX_XML}")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError(f"{name}: XML with a document type is refused")
    try:
        # Without a document type there are no entities to expand.
        return ET.fromstring(text, ET.XMLParser(target=_Shallow()))  # noqa: S314
    except ET.ParseError as error:
        raise ValueError(f"{name}: no XML: {error}") from None
    except RecursionError as error:
        raise ValueError(f"{name}: {error}") from None


def utf16_offsets(text: str) -> array[int]:
    """Where each character begins in UTF-16, and where the text ends: 4 bytes a character."""
    return array("i", accumulate((1 + (character > "\uffff") for character in text), initial=0))
