"""Helpers under sklearn-crfsuite's names."""

from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

__all__ = ["flatten"]

T = TypeVar("T")


def flatten(y: Iterable[Iterable[T]]) -> list[T]:
    """Return the items of all lists as one list."""
    return list(chain.from_iterable(y))
