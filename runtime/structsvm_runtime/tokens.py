"""Tokens as texts with values: columns as they are, attributes as structsvm names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from structsvm_runtime.native import NO_TEXT

__all__ = ["attributes", "check_columns", "columns"]

MAX_DEPTH = 64
MOST_LOOKED_AT = 1000  # tokens of a sequence
_MARK = re.compile("[:=]")
_BEGINNING = re.compile("[^:=]+[:=]")  # before an attribute's value


def columns(tokens: Iterable[object], n_columns: int) -> list[tuple[bytes, int, float]]:
    """The texts of tokens that are strings, or tuples of `n_columns` strings.

    Raises
    ------
    ValueError
        For a token of another number of columns.
    TypeError
        For what is no string.
    """
    texts = []
    for t, token in enumerate(tokens):
        cells = (token,) if isinstance(token, str) else tuple(token) if isinstance(token, (tuple, list)) else None
        if cells is None or not all(isinstance(cell, str) for cell in cells):
            raise TypeError(f"token {t} must be a str, or a tuple of {n_columns} str, got {token!r:.80}")
        if len(cells) != n_columns:
            raise ValueError(f"token {t} has {len(cells)} columns, and the model reads {n_columns}")
        texts += [(coded(cell), 0, 1.0) for cell in cells]
    return texts


def attributes(token: object, t: int, *, has_texts: bool) -> Iterator[tuple[bytes, int, float]]:
    """The attributes of token t, as `as_array` takes them: of a list, tuple or set of names, or a dict of features.

    A str v under the key k is the attribute "k:v", a number or bool the value of "k"; dicts, lists and sets under k
    have attributes below "k:". For models of segments, which read the texts of features (`has_texts`), those that are
    not the text of one feature are marked `NO_TEXT`: in dicts all but strs under keys without a mark, in lists and sets
    those without "=", or with ":" before it.

    Raises
    ------
    TypeError
        For any other token or feature.
    """
    if isinstance(token, Mapping):
        for name, value in token.items():
            mark = found = 0
            if has_texts:
                is_text = isinstance(token, dict) and isinstance(name, str) and isinstance(value, str)
                mark = 0 if is_text and not _MARK.search(name) else NO_TEXT
            for one in _feature(_text(name, t), value, t, 0, mark):
                found += 1
                yield one
            if not found:  # an empty list, which is a column
                yield coded(_text(name, t)), mark, 0.0
    elif isinstance(token, (list, tuple)):
        yield from (_attribute(name, t, has_texts) for name in token)
    elif isinstance(token, (set, frozenset)):
        yield from (_attribute(name, t, has_texts) for name in sorted(token, key=lambda name: _text(name, t)))
    else:
        raise TypeError(f"token {t} must be a list of attributes or a dict of features, got {token!r:.80}")


def check_columns(tokens: Sequence[object], required: Iterable[str]) -> None:
    """Refuse tokens without a column that all tokens of training had.

    Columns are keys of dicts, with ":" behind them if their value is a str, and beginnings of attributes up to ":" or
    "=". One token has to have each; of more than 1,000 not all are looked at, as in structsvm.

    Raises
    ------
    ValueError
        Names the columns that are missing.
    """
    looked_at = tokens[:: -(-len(tokens) // MOST_LOOKED_AT) or 1]
    missing = [name for name in required if not any(_has_column(token, name) for token in looked_at)]
    if missing and tokens:
        raise ValueError(f"all tokens of training had {', '.join(map(repr, missing)):.200}, and these have not")


def _has_column(token: object, column: str) -> bool:
    if isinstance(token, Mapping):
        is_text = column.endswith(":") and any(isinstance(value, (str, bytes)) for value in _values(token, column[:-1]))
        return is_text or any(not isinstance(value, (str, bytes)) for value in _values(token, column))
    names = cast(Iterable[object], token) if _BEGINNING.fullmatch(column) else ()
    return any(coded(name).startswith(coded(column)) for name in names if isinstance(name, (str, bytes)))


def _values(token: Mapping[object, object], key: str) -> list[object]:
    """The values under a key, which may be bytes."""
    return [token[one] for one in (key, coded(key)) if one in token]


def coded(text: str | bytes) -> bytes:
    """The bytes of a text, lone surrogates included."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def _attribute(name: object, t: int, has_texts: bool) -> tuple[bytes, int, float]:
    """The attribute of a name in a list."""
    if not has_texts:
        return coded(_text(name, t)), 0, 1.0
    mark = _MARK.search(name) if isinstance(name, str) else None
    return coded(_text(name, t)), 0 if mark is not None and mark[0] == "=" else NO_TEXT, 1.0


def _feature(name: str, value: object, t: int, depth: int, mark: int) -> Iterator[tuple[bytes, int, float]]:
    if depth > MAX_DEPTH:
        raise ValueError(f"token {t}: features are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, (str, bytes)):
        yield coded(f"{name}:{_text(value, t)}"), mark, 1.0
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _feature(f"{name}:{_text(key, t)}", inner, t, depth + 1, mark)
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            is_text = isinstance(inner, (str, bytes))
            yield from _feature(name if is_text else f"{name}[{place}]", inner, t, depth + 1, mark)
    elif isinstance(value, (set, frozenset)):
        yield from ((coded(f"{name}:{key}"), mark, 1.0) for key in sorted(_text(key, t) for key in value))
    else:
        yield coded(name), mark, _number(name, value, t)


def _number(name: str, value: object, t: int) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"token {t}: feature {name!r} must be a number, str, list or dict, got {value!r:.80}") from None


def _text(name: object, t: int) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, bytes):
        return name.decode("utf-8")
    raise TypeError(f"token {t}: names of features must be str, got {name!r:.80}")
