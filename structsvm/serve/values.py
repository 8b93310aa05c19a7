"""Values of requests, checked as they are read: each error names where the value stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast
from xml.etree import ElementTree as ET

Object = Mapping[str, object]


def an_object(value: object, name: str) -> Object:
    """A JSON object. Raises ValueError for anything else."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    return cast("Object", value)


def a_list(value: object, name: str) -> Sequence[object]:
    """A JSON list. Raises ValueError for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list")
    return cast("Sequence[object]", value)


def a_text(value: object, name: str) -> str:
    """A text. Raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    return value


def a_number(value: object, name: str) -> int:
    """A whole number from 0 on. Raises ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} must be a number from 0, got {value!r:.40}")
    return value


def an_element(text: str, name: str) -> ET.Element:
    """The root of XML. Raises ValueError for what is none, and for a document type, which may define entities."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError(f"{name}: XML with a document type is refused")
    try:
        return ET.fromstring(text)  # noqa: S314 (without a document type there are no entities to expand)
    except ET.ParseError as error:
        raise ValueError(f"{name}: no XML: {error}") from None
