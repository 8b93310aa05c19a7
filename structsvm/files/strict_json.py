"""Strict and bounded JSON: no NaN, no key twice, no integers or nesting of unlimited size."""

import json
import math
import reprlib
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

__all__ = ["json_problem", "parse_json"]

MAX_DEPTH = 100
MAX_DIGITS = 1000

_INT_BOUND = 10**MAX_DIGITS


def parse_json(text: bytes) -> Any:
    """The value of JSON in UTF-8. Raises ValueError for anything else, RecursionError if nested too deeply."""
    return json.loads(
        text.decode("utf-8"), parse_int=_parse_int, parse_constant=_refuse_constant, object_pairs_hook=_object
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose last one of two equal keys would replace the first."""
    value = dict(pairs)
    if len(value) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {key!r:.60} stands twice in an object")
    return value


def _parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS + 1:  # and a sign
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def json_problem(value: Any, depth: int = 0) -> str | None:
    """Return where and why a value is not strict JSON, such as ``"['C'] is nan"``."""
    if value is None or isinstance(value, (str, bool)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f" is {value}, which JSON does not have"
    if isinstance(value, int):
        fits = -_INT_BOUND < value < _INT_BOUND
        return None if fits else f" is an integer of more than {MAX_DIGITS} digits"
    if not isinstance(value, (dict, list)):
        return f" is of type {type(value).__name__}, which JSON does not have"
    if depth >= MAX_DEPTH:
        return f" is nested deeper than {MAX_DEPTH} levels"
    if isinstance(value, list):
        return _items_problem(enumerate(value), depth)
    for key in value:
        if not isinstance(key, str):
            return f" has the key {reprlib.repr(key)}, which is not a str"
    return _items_problem(value.items(), depth)


def _items_problem(items: Iterable[tuple[Any, Any]], depth: int) -> str | None:
    for key, item in items:
        if type(item) is not str:  # long lists of names are the common case
            problem = json_problem(item, depth + 1)
            if problem is not None:
                return f"[{reprlib.repr(key)}]{problem}"
    return None
