"""Sequences of tokens and their labels, as python-crfsuite takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from structsvm.export.rows import text_of

MAX_DEPTH = 64  # nested dicts of features

Token: TypeAlias = Iterable[str | bytes] | Mapping[str | bytes, object]


class ItemSequence:
    """Sequence of tokens whose features are flattened once, for several uses.

    Parameters
    ----------
    pyseq : iterable of tokens, or ItemSequence
        A token is an iterable of attributes, or a dict: numbers and bools are values of the attribute ``name``, texts
        the attribute ``name:text``, lists, sets and dicts attributes below ``name:``. Bytes are texts in UTF-8.

    Attributes
    ----------
    tokens : list of dict
        Attributes of each token with their values; of those that stand there twice the sum.

    Examples
    --------
    >>> from structsvm.interop.pycrfsuite import ItemSequence
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Token] | ItemSequence) -> None:
        self.tokens: list[dict[str, float]] = (
            pyseq.tokens if isinstance(pyseq, ItemSequence) else [_item(t, x) for t, x in enumerate(pyseq)]
        )

    def items(self) -> list[dict[str, float]]:
        """Attributes of each token with their values."""
        return [dict(item) for item in self.tokens]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def _item(t: int, token: Token) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in _attributes(t, token, 0):
        found[name] = found.get(name, 0.0) + value
    return found


def _attributes(t: int, token: Token, depth: int) -> Iterator[tuple[str, float]]:
    """Attributes of a token and their values."""
    if isinstance(token, (str, bytes)):
        raise TypeError(f"token {t} is the text {token!r}; wanted a list of attributes or a dict of features")
    if depth > MAX_DEPTH:
        raise ValueError(f"token {t}: features are nested deeper than {MAX_DEPTH} levels")
    if not isinstance(token, Mapping):
        yield from ((_text(t, name), 1.0) for name in token)
        return
    for key, value in token.items():
        name = _text(t, key)
        if isinstance(value, (str, bytes)):
            yield f"{name}:{_text(t, value)}", 1.0
        elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
            yield from ((f"{name}:{rest}", number) for rest, number in _attributes(t, value, depth + 1))
        else:
            yield name, _number(t, name, value)


def _text(t: int, name: object) -> str:
    return name if isinstance(name, str) else text_of(t, name)


def _number(t: int, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"token {t}: feature {name!r} must be a number, text, list or dict, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"token {t}: feature {name!r} must be finite, got {value!r}")
    return number


def label_of(label: Any) -> Any:
    """A label, whose bytes are text in UTF-8."""
    return label.decode("utf-8", "surrogateescape") if isinstance(label, bytes) else label
