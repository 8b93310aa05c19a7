"""Named features whose values are numbers as text: a feature each, where one with a value may be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from structsvm._warnings import AdviceWarning, warn

SAMPLED = 1000  # tokens that are looked at
# Different values of a key that are no names, and the share of them with a point or an exponent.
LEAST, WITH_POINT = 10, 0.5
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|nan|[+-]?inf", re.ASCII | re.IGNORECASE)


def warn_of_number_texts(sequences: Any) -> None:
    """Warn of keys of feature dicts that have numbers in some tokens and numbers as text in others, or such text alone.

    Text is a name, ``"x:1.5"`` of value 1. Text alone is said where it has many values, most of them with a point.
    """
    texts, numbers = dict[object, list[str]](), set[object]()
    for token in _sampled(sequences):
        for key, value in token.items():
            if isinstance(value, str):
                texts.setdefault(key, []).append(value)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers.add(key)
    warn_of_rows_of_texts(sequences)
    for key, values in texts.items():
        found = [value for value in values if _NUMBER.fullmatch(value)]
        if found and (key in numbers or _are_measured(found, values)):
            others = " beside numbers" * (key in numbers)
            warn(
                f"the feature {key!r:.40} has numbers as text{others}, such as {found[0]!r:.40}, and each of them is a "
                f"feature of its own, {f'{key}:{found[0]}'!r:.60}: float() makes a value of them",
                AdviceWarning,
            )


def warn_of_rows_of_texts(sequences: Any) -> None:
    """Warn of arrays of numbers as text, whose entries are names of features."""
    if not isinstance(sequences, (list, tuple)) or not all(getattr(one, "ndim", 0) == 2 for one in sequences):
        return
    names = [name for one in sequences[:SAMPLED] for name in one.ravel()[:SAMPLED].tolist()]
    texts = [name for name in names if isinstance(name, str) and _NUMBER.fullmatch(name)]
    if names and _are_measured(texts, names):
        warn(
            f"X holds numbers as text, such as {texts[0]!r:.40}, and each of them is a feature of its own: "
            "astype(float) makes values of them",
            AdviceWarning,
        )


def _are_measured(found: list[str], values: list[str]) -> bool:
    """Whether a key has many different numbers as text, and nothing else: no codes, years or words."""
    different = set(found)
    with_point = sum("." in text or "e" in text.lower() for text in different)
    return len(found) == len(values) and len(different) >= LEAST and with_point > WITH_POINT * len(different)


def _sampled(sequences: Any) -> Iterator[Mapping[object, object]]:
    """The dicts among evenly spread tokens; none of what can be read once only."""
    if not isinstance(sequences, (list, tuple)) or not all(isinstance(one, (list, tuple)) for one in sequences):
        return
    step = -(-max(sum(map(len, sequences)), 1) // SAMPLED)
    k = 0
    for sequence in sequences:
        yield from (sequence[t] for t in range(-k % step, len(sequence), step) if isinstance(sequence[t], Mapping))
        k += len(sequence)
