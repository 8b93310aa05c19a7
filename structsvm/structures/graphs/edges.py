"""Attributes of edges: those that are read, and a warning of the others."""

from __future__ import annotations

from collections.abc import Iterable

from structsvm._warnings import AdviceWarning, warn

__all__: list[str] = []

# The attributes of edges that are features, and those of an edge of JSON that are none.
FEATURES, WEIGHT = "features", "weight"
OF_EDGES = (FEATURES, WEIGHT, "source", "target", "id", "key")


def warn_of_unread(edges: Iterable[object]) -> None:
    """Warn of attributes of edges that are not read."""
    unread = sorted({str(name) for edge in edges if isinstance(edge, dict) for name in edge if name not in OF_EDGES})
    if unread:
        warn(
            f"edges have {', '.join(map(repr, unread)):.100}, which is not read: {WEIGHT!r}, or {FEATURES!r}, a list "
            "of numbers, are their features",
            AdviceWarning,
        )
