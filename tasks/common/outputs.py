"""Outputs of any length in one list, which scikit-learn can join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np

Y = TypeVar("Y")


class Function(Protocol):
    """One of NumPy's."""

    def __call__(self, *args: object, **kwargs: object) -> object: ...


class Outputs(list[Y]):
    """A list of predictions, one an input; `numpy.concatenate` of several is one array of objects.

    That is how `cross_val_predict` joins the predictions of its parts, where lists of different lengths (labels of
    sequences, sets, orders) make no array of their own. Numbers and text are joined as ever, and all else of NumPy sees
    a list.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.tasks.common.outputs import Outputs
    >>> np.concatenate([Outputs([["B", "I"]]), Outputs([["O"], []])]).tolist()
    [['B', 'I'], ['O'], []]
    """

    def __array_function__(
        self, function: Function, types: Iterable[type], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        first = args[0] if args else None
        if function is np.concatenate and len(args) == 1 and not kwargs and isinstance(first, (list, tuple)):
            joined = list(chain.from_iterable(first))
            if not all(np.isscalar(y) for y in joined):
                return np.fromiter(joined, dtype=object, count=len(joined))
        return function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})


def plain(value: object) -> object:
    """Return outputs, or a list or tuple with some, as plain lists."""
    if isinstance(value, Outputs):
        return list(value)
    if type(value) is list:
        return [plain(entry) for entry in value]
    return tuple(plain(entry) for entry in value) if type(value) is tuple else value
