"""Labels in the headers of files."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from structsvm.stored_values import Field


def label_to_json(label: object) -> object:
    """A label for a header; TypeError if JSON cannot hold it."""
    if label is None or isinstance(label, (str, bool, int, float)):
        return label
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise TypeError(
        f"a model file cannot hold the label {label!r}: labels must be strings, numbers, None, or tuples of them"
    )


def label_from_json(value: object) -> Hashable:
    """The inverse of `label_to_json`."""
    if isinstance(value, dict) and isinstance(value["tuple"], list):
        return tuple(label_from_json(part) for part in value["tuple"])
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"a label {value!r:.80}")


@dataclass(frozen=True)
class Labels(Field):
    """Distinct labels in a header: `least` or more."""

    least: int = 0

    @property
    def wanted(self) -> str:  # type: ignore[override]
        return f"a list of {self.least} or more labels"

    def to_json(self, value: Iterable[Hashable]) -> list[object]:
        return [label_to_json(label) for label in (value.tolist() if isinstance(value, np.ndarray) else value)]

    def accepts(self, value: object) -> bool:
        return isinstance(value, list) and len(value) >= self.least

    def from_json(self, value: list[object]) -> list[Hashable]:
        labels = [label_from_json(label) for label in value]
        if len(set(labels)) != len(labels):
            raise ValueError("a label stands there twice")
        return labels
