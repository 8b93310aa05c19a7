"""Sources of text: paths, files and lines, compressed or not."""

from __future__ import annotations

import errno
import importlib
import io
import math
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from structsvm.features.text.encodings import Encoded, NotTextError, as_utf8, not_utf8, recoded, without_marks


class DamagedFileError(NotTextError):
    """Compressed data that are damaged, or unfold to too much; the message names the file."""


class ColumnFileError(ValueError):
    """A column file that cannot be used; the message names file and line.

    Examples
    --------
    >>> from structsvm.features.columns import read_columns
    >>> read_columns(["the DT B-NP", "cat NN"])
    Traceback (most recent call last):
        ...
    structsvm.features.sources.ColumnFileError: <lines>:2: expected 3 columns, found 2
    """


def no_tokens(name: str, *, is_blank: bool, has_names: bool = False) -> ColumnFileError:
    """The error for a file without tokens: with the names of columns, with blank lines or with nothing."""
    found = "only the names of columns" if has_names else "only blank lines" if is_blank else "the file is empty"
    return ColumnFileError(f"{name}: no tokens ({found})")


def name_of(source: Any) -> str:
    """Name of a source in messages."""
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "<lines>"))


def load_bytes(source: Any) -> tuple[bytes, str, bool]:
    """Bytes of a source as UTF-8, its name, and whether it was text.

    Raises
    ------
    NotTextError
        For damaged compression, and bytes that are not of the encoding that the source names.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError("source must be a path, a file or lines; wrap bytes into io.BytesIO")
    name = name_of(source)
    source, encoding = (source.source, source.encoding) if isinstance(source, Encoded) else (source, None)
    if isinstance(source, (str, os.PathLike)):
        with opened(source) as file:
            return as_utf8(decompress(file.read(), name, zipped=True), name, encoding), name, False
    if hasattr(source, "read"):
        content = source.read()
        if isinstance(content, bytes):
            return as_utf8(decompress(content, name, zipped=True), name, encoding), name, False
        return without_marks(content.encode("utf-8", "surrogatepass")), name, True
    lines = []
    for k, line in enumerate(source):
        if not isinstance(line, str):
            raise TypeError(f"line {k + 1} must be a str, got {type(line).__name__}")
        lines.append(line if line.endswith("\n") else line + "\n")
    return without_marks("".join(lines).encode("utf-8", "surrogatepass")), name, True


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to read; the error for a text in the place of its path says so."""
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        text = os.fspath(path)
        if "\n" in text or "\0" in text or getattr(error, "errno", None) == errno.ENAMETOOLONG:
            raise ValueError(
                f"source must be the path of a file, got a text: {text!r:.60}; wrap a text into io.StringIO(text)"
            ) from None
        if isinstance(error, FileNotFoundError) and re.search(r"[\s(){}<>]", text):
            raise FileNotFoundError(error.errno, "No such file (wrap a text into io.StringIO(text))", text) from None
        raise


def stream_bytes(source: str | os.PathLike[str] | BinaryIO) -> Iterator[tuple[bytes, float]]:
    """The bytes of a path or binary file as they come, unfolded, at most `BLOCK` at a time, as UTF-8.

    Each with how many of them may be held at once: as many as `decompress` allows for what has
    been read, any number of those that are not compressed. NotTextError as `load_bytes`.
    """
    name = name_of(source)
    source, encoding = (source.source, source.encoding) if isinstance(source, Encoded) else (source, None)
    yield from recoded(_unfolded(source, name), name, encoding)


def _unfolded(source: Any, name: str) -> Iterator[tuple[bytes, float]]:
    """The bytes of a path or binary file, unfolded."""
    with ExitStack() as closing:
        if isinstance(source, (str, os.PathLike)):
            file: Any = closing.enter_context(opened(source))
        elif hasattr(source, "peek"):
            file = source
        elif hasattr(source, "readinto"):
            file = io.BufferedReader(source)
        else:
            raise TypeError(f"source must be a path or a binary file, got {type(source).__name__}")
        kind, module = _compression(file.peek(16), name)
        if kind is None:
            while block := file.read1(BLOCK):
                yield block, math.inf
            return
        counted = _Counted(file)
        unfolding_limit(0)  # outside the block below: its errors are not faults of the data
        with _undamaged(kind, name), importlib.import_module(module).open(counted) as unfolded:
            while block := unfolded.read(BLOCK):
                yield block, unfolding_limit(counted.n)


def load_text(source: Any, error: type[ValueError], place: str = "{}:{}") -> tuple[str, str]:
    """Text of a source and its name; raises `error` for bytes that are not UTF-8, with `place` of name and line."""
    data, name, _ = load_bytes(source)
    try:
        return data.decode("utf-8-sig"), name
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise error(f"{place.format(name, line)}: {not_utf8(data)}") from None


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers from 1, those of blanks left out."""
    k, first = 0, 0
    while first < len(text):
        k += 1
        end = text.find("\n", first)
        end = len(text) if end < 0 else end
        line = text[first:end]
        if line and not line.isspace():
            yield k, line
        first = end + 1


# Kind by suffix, and by the first bytes (which practically no UTF-8 text begins with); the module.
_COMPRESSION = {
    "gzip": (".gz", re.compile(rb"\x1f\x8b"), "gzip"),
    "xz": (".xz", re.compile(rb"\xfd7zXZ\x00"), "lzma"),
    "bzip2": (".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    "zip": (".zip", re.compile(rb"PK\x03\x04"), "structsvm.features.text.archives"),
}

# Text unfolds to 3 to 20 times its compressed size, and a bomb to 1000 times or more.
LIMIT = "STRUCTSVM_MAX_UNFOLDED"
RATIO, FLOOR, CEILING = 25, 2**25, 2**34
BLOCK = 2**20


def decompress(data: bytes, name: str, *, zipped: bool = False) -> bytes:
    """Unfold data that are compressed with gzip, xz or bzip2, or, if `zipped`, zip; others are returned as they are.

    They may unfold to at most as many bytes as the environment variable STRUCTSVM_MAX_UNFOLDED says; by default to 25
    times their size, but in any case to 32 MiB, and never to more than 16 GiB. What is beyond 32 MiB is counted before
    it is held: refused data have never taken more.

    Raises
    ------
    DamagedFileError
        If they are damaged, or would unfold to more; the message names the file.
    """
    kind, module = _compression(data, name)
    if kind is None or (kind == "zip" and not zipped):
        return data
    unfold, limit = importlib.import_module(module).open, unfolding_limit(len(data))
    held, size = io.BytesIO(), 0
    with _undamaged(kind, name):
        for block in _blocks(unfold, data):
            size += len(block)
            if size > limit:
                break
            if size <= FLOOR:
                held.write(block)
    if size > limit:
        raise DamagedFileError(unfolds_to_more(f"{name}: {len(data)} bytes of {kind} data unfold", limit))
    if size > FLOOR:
        held = io.BytesIO()
        held.writelines(_blocks(unfold, data))
    return held.getvalue()


def unfolds_to_more(what: str, limit: float) -> str:
    """The message where compressed data unfold to more than is allowed."""
    return (
        f"{what} to more than {limit}; unpack the file first, or set the environment variable {LIMIT} to the bytes "
        "that it may take"
    )


class _Counted:
    """A binary file that counts the bytes that are read."""

    def __init__(self, file: Any) -> None:
        self.file, self.n = file, 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(size)
        self.n += len(data)
        return data


def _compression(data: bytes, name: str) -> tuple[str, str] | tuple[None, str]:
    """How data are compressed, by their name and first bytes, and the module that unfolds them; None: they are not."""
    for kind, (suffix, magic, module) in _COMPRESSION.items():
        if name.lower().endswith(suffix) or magic.match(data):
            return kind, module
    return None, ""


@contextmanager
def _undamaged(kind: str, name: str) -> Iterator[None]:
    """Turns what unfolding raises into DamagedFileError."""
    try:
        yield
    except (MemoryError, GeneratorExit):
        raise
    except NotTextError as error:
        raise NotTextError(f"{name}: {error}") from None
    except Exception as error:  # EOFError, OSError, zlib.error, LZMAError, ValueError
        raise DamagedFileError(f"{name}: damaged {kind} data ({error})") from error


def _blocks(unfold: Any, data: bytes) -> Iterator[bytes]:
    """Unfold compressed data, a piece at a time."""
    with unfold(io.BytesIO(data)) as file:
        while block := file.read(BLOCK):
            yield block


def unfolding_limit(size: int) -> int:
    """Bytes that `size` compressed ones may unfold to."""
    text = os.environ.get(LIMIT)
    if text is None:
        return min(max(RATIO * size, FLOOR), CEILING)
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError(f"the environment variable {LIMIT} must be a number of bytes, got {text!r:.40}")
    return int(text)
