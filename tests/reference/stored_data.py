"""The data that `tests/data/make_models.py` stored as JSON."""

import numpy as np

from structsvm.features.columns import read_columns


def decoded(value):
    """The inverse of `encoded` in `tests/data/make_models.py`."""
    if isinstance(value, list):
        return [decoded(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"])
    if "tuple" in value:
        return tuple(decoded(value["tuple"]))
    if "set" in value:
        return set(value["set"])
    if "columns" in value:
        return read_columns(value["columns"].splitlines())
    return {k: decoded(v) for k, v in value.items()}
