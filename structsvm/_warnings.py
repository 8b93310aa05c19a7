"""Warnings that point to the user's line, from however deep in the package they come."""

from __future__ import annotations

import sys
import warnings

PACKAGE = __name__.partition(".")[0]
DECORATOR = "sklearn.callback"  # of `fit` and `partial_fit`: see `structsvm.callbacks`


def is_inside(frame):
    """Whether a frame is the package's, or that of the decorator around its methods."""
    name = str(frame.f_globals.get("__name__"))
    return name.partition(".")[0] == PACKAGE or name.startswith(DECORATOR)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line outside the package.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 2, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
