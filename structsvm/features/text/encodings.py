"""Encodings of text: UTF-8 of what byte-order marks, or users, say is another encoding."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from typing import Any

# UTF-32 first: its mark begins with the one of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Files that were joined have a mark at the start of each.
MARKS_OF_LINES = re.compile(rb"^(?:\xef\xbb\xbf)+", re.MULTILINE)
PRINTED = re.compile(rb"[!-\xff]")
LOOK = 400  # bytes that tell UTF-16 without a mark
REMEDY = "name the encoding, such as latin-1 or cp1252: --encoding NAME, or open(path, encoding=NAME)"


class NotTextError(ValueError):
    """Data that cannot be read as text: damaged, of another encoding, or too large; the message names the file."""


class Encoded(os.PathLike[str]):
    """A path or binary file with its encoding, for all readers.

    Parameters
    ----------
    source : path or binary file
    encoding : str
        One of Python's names of encodings.

    Raises
    ------
    ValueError
        For another name.
    """

    def __init__(self, source: Any, encoding: str) -> None:
        try:
            if not codecs.lookup(encoding)._is_text_encoding:  # noqa: SLF001 (what str.encode asks for)
                raise LookupError
        except (LookupError, ValueError, TypeError):
            raise ValueError(
                f"The 'encoding' parameter must be a text encoding that Python knows, got {encoding!r:.80}"
            ) from None
        self.source, self.encoding = source, encoding

    def __fspath__(self) -> str:
        source = self.source
        return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "<lines>"))


def marked(data: bytes, name: str) -> str | None:
    """The encoding that the first bytes show, None: UTF-8.

    Raises
    ------
    NotTextError
        For UTF-16 without a byte-order mark, which UTF-8 cannot be told from otherwise.
    """
    found = next((encoding for mark, encoding in MARKS.items() if data.startswith(mark)), None)
    if found is None and b"\0" in data[:LOOK]:
        for first, order in ((0, "be"), (1, "le")):
            nulls, others = data[first:LOOK:2], data[1 - first : LOOK : 2]
            if nulls.count(0) > 0.6 * len(nulls) and len(PRINTED.findall(others)) > 0.4 * len(others):
                raise NotTextError(
                    f"{name}: looks like UTF-16 without a byte-order mark: --encoding utf-16-{order}, or "
                    f"open(path, encoding='utf-16-{order}')"
                )
    return found


def as_utf8(data: bytes, name: str, encoding: str | None = None) -> bytes:
    """UTF-8 of data, without byte-order marks; None: of UTF-8, or of what a byte-order mark says.

    Bytes that are not UTF-8 are left to the readers, which know how they name lines.

    Raises
    ------
    NotTextError
        For bytes that the encoding does not have; the message names file and line.
    """
    encoding = encoding or marked(data, name)
    if encoding is not None:
        try:
            data = data.decode(encoding).encode("utf-8", "surrogatepass")
        except UnicodeError as error:
            start = getattr(error, "start", 0)
            line = data[:start].decode(encoding, "replace").count("\n") + 1
            raise NotTextError(f"{name}:{line}: bytes that are not {encoding}") from None
    return without_marks(data)


def without_marks(data: bytes) -> bytes:
    """UTF-8 without byte-order marks at the start of lines."""
    return MARKS_OF_LINES.sub(b"", data) if codecs.BOM_UTF8 in data else data


def recoded(blocks: Iterator[tuple[bytes, float]], name: str, encoding: str | None) -> Iterator[tuple[bytes, float]]:
    """Blocks of bytes, with a limit each, as UTF-8; raises as `as_utf8`."""
    head, limit, line = b"", 0.0, 1
    while len(head) < 4 and (following := next(blocks, None)) is not None:
        head, limit = head + following[0], following[1]
    encoding = encoding or marked(head, name)
    if encoding is None:
        if head:
            yield head, limit
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(head)
        for block, limit in blocks:
            yield text.encode("utf-8", "surrogatepass"), limit
            line += text.count("\n")
            text = decoder.decode(block)
        yield (text + decoder.decode(b"", final=True)).encode("utf-8", "surrogatepass"), limit
    except UnicodeError:
        raise NotTextError(f"{name}: bytes that are not {encoding}, at line {line} or later") from None


def not_utf8(data: bytes) -> str:
    """A sentence about the first bytes that are not UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start - data.rfind(b"\n", 0, error.start)
        return f"bytes that are not UTF-8 (0x{data[error.start]:02x}, byte {place} of the line); {REMEDY}"
    return f"bytes that are not UTF-8; {REMEDY}"
