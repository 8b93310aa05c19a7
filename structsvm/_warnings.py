"""Warnings that point to the user's line, from however deep in the package they come."""

from __future__ import annotations

import sys
import warnings

# The package, and what scikit-learn puts around its `fit`.
SKIPPED = (__name__.partition(".")[0] + ".", "sklearn.callback.")


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line outside the package.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 2, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(SKIPPED):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
