"""The libraries of the runtime in C, by ctypes, and models that they open."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

__all__ = ["NO_TEXT", "Model", "ModelError", "as_array", "check", "library"]

FILE, MEMORY, INPUT, UTF8, NOTHING, SIZE, MARGINS, VERSION, COLUMNS = range(-1, -10, -1)
MOST_BYTES = NO_TEXT = 1 << 31
ERRORS: dict[int, tuple[type[Exception], str]] = {
    MEMORY: (MemoryError, "no memory"),
    INPUT: (
        ValueError,
        (
            "a value that is not finite, k below 1, a text longer than 2**24 bytes, words without a column of training,"
            " lists of attributes for a model of segments of dicts, or dicts for one of lists"
        ),
    ),
    UTF8: (ValueError, "a text that is not UTF-8"),
    NOTHING: (ValueError, "the model's constraints leave no labelling, or its scores overflow"),
    SIZE: (
        ValueError,
        "the input, or k, would need more than 2**31 bytes, or a sentence is longer than the parser takes",
    ),
    MARGINS: (ValueError, "the scores of this model are margins: train with loss='log', or call calibrate"),
    VERSION: (ValueError, "a model that another version of structsvm exported: export it again"),
    COLUMNS: (ValueError, "no token has a column that all tokens of training had"),
}


class ModelError(ValueError):
    """A file that is no complete, sound model of the runtime."""


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint32), ("value", ctypes.c_float)]


class _Label(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint32), ("value", ctypes.c_float)]


class _Head(ctypes.Structure):
    _fields_ = [
        ("n_labels", ctypes.c_uint32),
        ("n_columns", ctypes.c_uint32),
        ("labels", ctypes.POINTER(_Label)),
        ("own", ctypes.c_void_p),
        ("n_numbers", ctypes.c_uint32),
        ("has_trees", ctypes.c_uint32),
        ("n_required", ctypes.c_uint32),
        ("required", ctypes.POINTER(_Label)),
    ]


@cache
def library(structure: str) -> Any:
    """The library of a structure, one of those of `setup.py`; ImportError if it was not compiled."""
    folder = Path(__file__).parent
    for suffix in (*EXTENSION_SUFFIXES, ".so", ".dylib", ".dll"):
        if (path := folder / f"_{structure}{suffix}").exists():
            found = ctypes.CDLL(os.fspath(path))
            found.structsvm_close.restype = None
            return found
    raise ImportError(f"{folder} has no compiled runtime for {structure}: install structsvm-runtime")


class Model:
    """An open model.

    Parameters
    ----------
    source : path-like or bytes
        A file that structsvm exported, which is mapped into memory, or its contents.

    Attributes
    ----------
    labels : list of str
    n_columns : int
        Strings of each token, or document; 0: tokens have attributes.
    n_numbers : int
        Numbers of each row, of a model of rows of numbers; 0: another one.

    Raises
    ------
    ModelError
        If it is no complete, sound model of the structure.
    """

    structure: ClassVar[str]

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self._lock, self._pointer, self._library = Lock(), ctypes.POINTER(_Head)(), library(self.structure)
        name = "bytes" if isinstance(source, bytes) else os.fspath(source)
        if isinstance(source, bytes):
            self._bytes: Any = ctypes.create_string_buffer(source, max(len(source), 1))
            size = len(source)
        else:
            with Path(source).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size == 0:
                    raise ModelError(f"{name}: not a model of the runtime: the file is empty")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._bytes = (ctypes.c_char * size).from_buffer(self._map)
        status = self._library.structsvm_open(self._bytes, ctypes.c_size_t(size), ctypes.byref(self._pointer))
        if status == FILE:
            raise ModelError(f"{name}: not a complete, sound model of the runtime")
        check(status)
        head = self._pointer.contents
        self.n_columns: int = head.n_columns
        self.n_numbers: int = head.n_numbers
        self.labels = _texts(head.labels, head.n_labels)
        self._required = _texts(head.required, head.n_required)

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self._library.structsvm_close(self._pointer)

    def _call(self, verb: str, *arguments: object) -> int:
        """Call a function of the runtime; the error that its status stands for is raised."""
        with self._lock:
            return check(getattr(self._library, f"structsvm_{verb}")(self._pointer, *arguments))


def _texts(found: Any, n: int) -> list[str]:
    return [ctypes.string_at(text.data, text.size).decode("utf-8", "surrogatepass") for text in found[:n]]


def as_array(texts: Sequence[tuple[bytes, int, float]]) -> Any:
    """Texts as C has them: their bytes, what is added to their size (0, or `NO_TEXT`), and their values."""
    most = NO_TEXT - 1  # longer ones are refused, too
    return (_Text * len(texts))(*((data, min(len(data), most) + mark, value) for data, mark, value in texts))


def check(status: int) -> int:
    """Return a status; raises the error that it stands for."""
    if status < 0:
        kind, message = ERRORS[status]
        raise kind(message)
    return status
