"""The range checks that all simulators share."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np

from structsvm.parameters import Interval

__all__ = ["COUNT", "SHARE", "RandomState", "check_arguments"]

RandomState = int | np.random.Generator | None

COUNT = Interval(Integral, 1)
SHARE = Interval(Real, 0.0, 1.0, closed="both")


def check_arguments(maker: str, arguments: Mapping[str, object], **allowed: Interval) -> None:
    """Raise ValueError, naming it, for the first of a simulator's arguments that is out of its range."""
    for name, interval in allowed.items():
        if not interval.accepts(arguments[name]):
            raise ValueError(f"The {name!r} parameter of {maker} must be {interval}. Got {arguments[name]!r} instead.")
