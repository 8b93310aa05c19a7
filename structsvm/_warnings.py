"""Warnings that point to the user's line, from however deep in the package they come."""

from __future__ import annotations

import sys
import warnings

# The package, and what calls its `fit` and `predict` for users: searches, pipelines, threads.
SKIPPED = (__name__.partition(".")[0] + ".", "sklearn.", "joblib.", "concurrent.", "threading.")


class AdviceWarning(UserWarning):
    """A valid result that a known change would improve.

    Examples
    --------
    >>> import warnings
    >>> from structsvm import AdviceWarning
    >>> from structsvm.tasks import SequenceLabeler
    >>> labeler = SequenceLabeler(C=1.0, random_state=0).fit([[{"a": 1}, {"b": 1}]], [["x", "y"]])
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     predicted = labeler.predict([[{"not seen": 1}] * 20])
    >>> said[0].category is AdviceWarning
    True
    """


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line of the user's: outside the package, and what calls it for users.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 2, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(SKIPPED):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# Share of inputs without a known feature, and number of them, from which on something is wrong with all of them.
MANY_UNKNOWN, LEAST_INPUTS = 0.5, 10


def warn_of_unknown(n_unknown: int, n: int, what: str) -> None:
    """Warn of a prediction for inputs that mostly have no known feature."""
    if n >= LEAST_INPUTS and n_unknown > MANY_UNKNOWN * n:
        warn(
            f"{n_unknown} of {n} {what} have no feature that the model knows: their labels are guessed without looking "
            "at them; are the features those of the training data?",
            AdviceWarning,
        )
