"""The functions of the runtime in C, by ctypes."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from threading import Lock
from typing import Any

from structsvm_runtime.tokens import attributes, columns

__all__ = ["ModelError", "Tagger", "load"]

Token = object
FILE, MEMORY, INPUT, UTF8, NOTHING, SIZE, MARGINS = range(-1, -8, -1)
MOST_BYTES = 1 << 31
ERRORS: dict[int, tuple[type[Exception], str]] = {
    MEMORY: (MemoryError, "no memory"),
    INPUT: (ValueError, "a value that is not finite, k below 1, or a text longer than 2**24 bytes"),
    UTF8: (ValueError, "a text that is not UTF-8"),
    NOTHING: (ValueError, "the model's constraints leave no labelling, or its scores overflow"),
    SIZE: (ValueError, "the sequence, or k, would need more than 2**31 bytes"),
    MARGINS: (ValueError, "the scores of this model are margins: train with loss='log', or call calibrate"),
}


class ModelError(ValueError):
    """A file that is no complete, sound model of the runtime."""


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint32), ("value", ctypes.c_float)]


class _Label(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint32), ("value", ctypes.c_float)]


class _Head(ctypes.Structure):
    _fields_ = [("n_labels", ctypes.c_uint32), ("n_columns", ctypes.c_uint32), ("labels", ctypes.POINTER(_Label))]


def _library() -> Any:
    folder = Path(__file__).parent
    for suffix in (*EXTENSION_SUFFIXES, ".so", ".dylib", ".dll"):
        if (path := folder / f"_native{suffix}").exists():
            library = ctypes.CDLL(os.fspath(path))
            library.structsvm_close.restype = None
            return library
    raise ImportError(f"{folder} has no compiled runtime: install structsvm-runtime")


LIBRARY = _library()


def load(source: str | os.PathLike[str] | bytes) -> Tagger:
    """Open a model: the path of a file, which is mapped into memory, or its bytes. As `Tagger`."""
    return Tagger(source)


class Tagger:
    """A model of label sequences.

    Parameters
    ----------
    source : path-like or bytes
        A file that structsvm exported, or its contents.

    Attributes
    ----------
    labels : list of str
    n_columns : int
        Strings of each token; 0: tokens have attributes.

    Raises
    ------
    ModelError
        If it is no complete, sound model.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self._lock, self._pointer = Lock(), ctypes.POINTER(_Head)()
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
        status = LIBRARY.structsvm_open(self._bytes, ctypes.c_size_t(size), ctypes.byref(self._pointer))
        if status == FILE:
            raise ModelError(f"{name}: not a complete, sound model of the runtime")
        _check(status)
        head = self._pointer.contents
        self.n_columns: int = head.n_columns
        texts = [head.labels[y] for y in range(head.n_labels)]
        self.labels = [ctypes.string_at(text.data, text.size).decode("utf-8", "surrogatepass") for text in texts]

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            LIBRARY.structsvm_close(self._pointer)

    def predict(self, tokens: Iterable[Token]) -> list[str]:
        """Return the best labels of a sequence; tokens are as for `SequenceLabeler.predict`."""
        texts, starts, n = self._texts(tokens)
        found = (ctypes.c_uint32 * n)()
        with self._lock:
            _check(LIBRARY.structsvm_predict(self._pointer, texts, starts, n, found))
        return [self.labels[y] for y in found]

    def kbest(self, tokens: Iterable[Token], k: int) -> list[tuple[list[str], float]]:
        """Return the k best ``(labels, score)`` of a sequence, best first; fewer where there are no more."""
        texts, starts, n = self._texts(tokens)
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if 4 * k * (n + 2) > MOST_BYTES:
            _check(SIZE)
        found, scores = (ctypes.c_uint32 * (k * n))(), (ctypes.c_double * k)()
        with self._lock:
            m = _check(LIBRARY.structsvm_kbest(self._pointer, texts, starts, n, k, found, scores))
        return [([self.labels[y] for y in found[i * n : (i + 1) * n]], scores[i]) for i in range(m)]

    def probability(self, tokens: Iterable[Token]) -> list[list[float]]:
        """Return a row per token of the probability of each of `labels`."""
        texts, starts, n = self._texts(tokens)
        K = len(self.labels)
        found = (ctypes.c_float * (K * n))()
        with self._lock:
            _check(LIBRARY.structsvm_probability(self._pointer, texts, starts, n, found))
        return [found[t * K : (t + 1) * K] for t in range(n)]

    def _texts(self, tokens: Iterable[Token]) -> tuple[Any, Any, int]:
        if isinstance(tokens, (str, bytes, dict)):
            raise TypeError(f"tokens must be a list, got {tokens!r:.80}")
        tokens = list(tokens)
        if self.n_columns:
            return _array(columns(tokens, self.n_columns)), None, len(tokens)
        texts: list[tuple[bytes, float]] = []
        starts = [0]
        for t, token in enumerate(tokens):
            texts += attributes(token, t)
            starts.append(len(texts))
        return _array(texts), (ctypes.c_uint32 * len(starts))(*starts), len(tokens)


def _array(texts: Sequence[tuple[bytes, float]]) -> Any:
    return (_Text * len(texts))(*((data, len(data), value) for data, value in texts))


def _check(status: int) -> int:
    if status < 0:
        kind, message = ERRORS[status]
        raise kind(message)
    return status
