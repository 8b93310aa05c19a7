"""Sources of text: paths, files and lines, compressed or not."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any


class DamagedFileError(ValueError):
    """Compressed data that cannot be read; the message names the file."""


def load_bytes(source: Any) -> tuple[bytes, str, bool]:
    """Bytes of a source, its name, and whether it was text."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError("source must be a path, a file or lines; wrap bytes into io.BytesIO")
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        return _decompress(Path(source).read_bytes(), name), name, False
    name = str(getattr(source, "name", "<lines>"))
    if hasattr(source, "read"):
        content = source.read()
        if isinstance(content, bytes):
            return _decompress(content, name), name, False
        return content.encode("utf-8", "surrogatepass"), name, True
    lines = []
    for k, line in enumerate(source):
        if not isinstance(line, str):
            raise TypeError(f"line {k + 1} must be a str, got {type(line).__name__}")
        lines.append(line if line.endswith("\n") else line + "\n")
    return "".join(lines).encode("utf-8", "surrogatepass"), name, True


def load_text(source: Any, error: type[ValueError], place: str = "{}:{}") -> tuple[str, str]:
    """Text of a source and its name; raises `error` for bytes that are not UTF-8, with `place` of name and line."""
    data, name, _ = load_bytes(source)
    try:
        return data.decode("utf-8-sig"), name
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise error(f"{place.format(name, line)}: bytes that are not UTF-8") from None


# Kind by suffix, and by the first bytes (which practically no UTF-8 text begins with).
_COMPRESSION = {
    "gzip": (".gz", re.compile(rb"\x1f\x8b")),
    "xz": (".xz", re.compile(rb"\xfd7zXZ\x00")),
    "bzip2": (".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")),
}


def _decompress(data: bytes, name: str) -> bytes:
    for kind, (suffix, magic) in _COMPRESSION.items():
        if not (name.lower().endswith(suffix) or magic.match(data)):
            continue
        try:
            if kind == "gzip":
                import gzip

                return gzip.decompress(data)
            if kind == "xz":
                import lzma

                return lzma.decompress(data)
            import bz2

            return bz2.decompress(data)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # EOFError, OSError, zlib.error, LZMAError, ValueError
            raise DamagedFileError(f"{name}: damaged {kind} data ({error})") from error
    return data
