"""What data sets of a training and a test part share."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Examples = TypeVar("Examples")
Labels = TypeVar("Labels", bound=Sized)


@dataclass(frozen=True, repr=False)
class Split(Generic[Examples, Labels]):
    """Examples and labels of both parts."""

    X_train: Examples
    y_train: Labels
    X_test: Examples
    y_test: Labels

    def _sizes(self) -> dict[str, int]:
        return {"n_train": len(self.y_train), "n_test": len(self.y_test)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={size}' for name, size in self._sizes().items())})"


def fields(read: Callable[[str], tuple[Any, ...]], *parts: str, names: tuple[str, ...] = ("X", "y")) -> dict[str, Any]:
    """Return ``X_train``, ``y_train`` and so on, given a function that returns X and y of a part."""
    return {
        f"{name}_{part}": value
        for part in parts or ("train", "test")
        for name, value in zip(names, read(part), strict=True)
    }
