r"""The one file format of all models: named arrays and a JSON header, no pickle.

Layout (every number little-endian)::

    8 bytes   b"\x89SVM\r\n\x1a\n"; as in PNG, the guard shows a transfer in text mode
    uint32    length of the header in bytes
    uint32    crc32 of the length field and the header
    header    JSON in UTF-8, padded with spaces to a multiple of 64 bytes from the start
    data      the arrays in the order of the header, in C order, each at a multiple of
              64 bytes, zero bytes in between, nothing after the last

The header is an object: ``schema`` (integer), ``version`` (of the library that wrote it),
``kind``, ``meta``, and ``arrays``, a list of objects with ``name``, ``dtype`` (NumPy's code,
``"<f8"``), ``shape``, ``offset`` (from the start of the data) and ``crc32`` of its bytes in the file. Since schema 2
an array may be deflated (zlib, RFC 1950): ``deflated`` is then the number of its bytes in the file. Such an array has
at most 4 MiB, and all of a file have at most 64 MiB: no more memory is taken to inflate those of a forged file.

Evolution: readers ignore unknown keys and keep unknown arrays, so adding either needs no new
schema. A change that an old reader would misunderstand increments ``SCHEMA``, and the new
reader still reads every earlier schema. The prefix and the keys ``schema`` and ``version``
never change.

Checksum: zlib.crc32 is faster than cryptographic sums, and detects every burst of up to 32 bits. It
detects accidents, not forgery. A forged file passes it, so safety does not depend on it: each
field is checked on its own, before anything is allocated.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import reprlib
import stat
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from mmap import ACCESS_READ
from mmap import mmap as _map_file
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeAlias

import numpy as np

from structsvm.files.new_file import NotAFileError, new_file
from structsvm.files.strict_json import json_problem, parse_json

__all__ = [
    "Destination",
    "ModelFile",
    "ModelFileError",
    "Origin",
    "name_of",
    "read_header",
    "read_model",
    "under",
    "unsound",
    "whole",
    "write_model",
]

# Where a model file is written to, and read from; bytes are the contents of a file.
Destination: TypeAlias = str | os.PathLike[str] | BinaryIO
Origin: TypeAlias = str | os.PathLike[str] | BinaryIO | bytes | bytearray | memoryview

SCHEMA = 2  # with a deflated array; a file without one has schema 1
MAGIC = b"\x89SVM\r\n\x1a\n"
ALIGN = 64
# A parsed header takes up to 28 times its length in memory (measured): at most 460 MB.
MAX_HEADER = 1 << 24
MAX_DIMENSIONS = 32  # the limit of NumPy 1
MAX_NBYTES = sys.maxsize  # the limit of NumPy's addresses
# Bytes of a deflated array in memory, and of all of a file: no more memory is taken to inflate those of a forged file.
# Larger arrays are not deflated: what is mapped of them stays in the file, and is there at once.
MOST_DEFLATED, MOST_IN_ALL = 1 << 22, 1 << 26

_PREFIX = struct.Struct("<8sII")
_NUMERIC = frozenset({
    "|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2",
    "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16",
})  # fmt: skip
_SMALL = frozenset({"|b1", "|i1", "|u1", "<i2", "<u2"})
_BYTES = re.compile(r"\|S[1-9][0-9]{0,8}")


class ModelFileError(ValueError):
    """A file that is not a complete, valid model file of the wanted kind.

    The message names the path and what is wrong with it.

    Examples
    --------
    >>> import structsvm
    >>> try:
    ...     structsvm.load(structsvm.__file__)
    ... except structsvm.ModelFileError as error:
    ...     print("is not a structsvm model file" in str(error))
    True
    """


# Errors of code that reads a header and arrays which are not as they were written.
UNSOUND = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


@contextmanager
def unsound(path: Any, kind: str) -> Iterator[None]:
    """Turn what reading an unsound model raises into a ModelFileError that names the file."""
    try:
        yield
    except ModelFileError:
        raise
    except UNSOUND as error:
        raise ModelFileError(f"{name_of(path)}: not a sound {kind} model: {error}") from error


@dataclass(frozen=True, eq=False, slots=True)
class ModelFile:
    """The contents of a model file.

    Attributes
    ----------
    kind : str
        Name of the task, such as ``"sequence"``.
    meta : dict
        JSON values: parameters, names, certificates.
    arrays : dict of str to ndarray
        In the order in which they were written. Read-only if memory-mapped.
    version : str
        Version of structsvm that wrote the file, or ``"unknown"``.
    nbytes : dict of str to int
        Bytes that each array takes in the file; empty for contents that are not from a file.
    """

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    version: str = "unknown"
    nbytes: dict[str, int] = field(default_factory=dict)

    def under(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays whose names begin with `prefix`, by the rest of their names."""
        return under(self.arrays, prefix)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes in the file by the first part of the arrays' names, such as ``"weights"``, the largest first."""
        found: dict[str, int] = {}
        for name, nbytes in self.nbytes.items():
            part = name.partition(".")[0]
            found[part] = found.get(part, 0) + nbytes
        return dict(sorted(found.items(), key=lambda one: -one[1]))


def under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `prefix`, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class _Block(NamedTuple):
    """The position of one array in the data."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int
    end: int
    crc32: int
    is_deflated: bool

    @property
    def nbytes(self) -> int:
        """Bytes of the array in memory."""
        return self.dtype.itemsize * math.prod(self.shape)


# --- writing ---------------------------------------------------------------------------


def write_model(
    path: Destination, kind: str, meta: dict[str, Any], arrays: dict[str, np.ndarray], *, deflated: bool = False
) -> None:
    """Write a model file in one step: `path` holds the old file or the new one, whole.

    See `structsvm.files.new_file` for how. The same input gives the same bytes; if arrays are deflated, by the same
    version of zlib.

    Parameters
    ----------
    path : path-like, or binary file open for writing
        File to create or to replace; a file or another stream is written to at its position.
    kind : str
        Name of the task, such as ``"sequence"``.
    meta : dict
        Strictly JSON: dicts with str keys, lists, str, bool, None, int of at most
        1000 digits, finite float; no tuples, no NumPy integers; at most 100 levels deep and
        16 MiB with the table of arrays. Long lists of names belong into arrays.
    arrays : dict of str to ndarray
        Bool, integer, float, complex or fixed-width bytes (``S``) of any shape and memory
        order. They come back little-endian or native, in C order. They must not change
        while they are written.
    deflated : bool, default=False
        Whether to deflate arrays of bool and of integers of one or two bytes where that makes them smaller: those of at
        most 4 MiB, up to 64 MiB in all.

    Raises
    ------
    TypeError
        If `kind`, `meta` or `arrays` hold anything else, or `path` is a file of text. No file has been touched.
    ValueError
        If the header exceeds 16 MiB. No file has been touched.
    ModelFileError
        If `path` exists and is not a regular file.
    OSError
        If the file cannot be written.
    """
    if isinstance(path, io.TextIOBase):
        raise TypeError(f"{name_of(path)} is open for text: open it with mode 'wb'")
    chunks = _encode(kind, meta, arrays, deflated)
    if hasattr(path, "write"):
        for chunk in chunks:
            _write_all(path, memoryview(chunk))
        return
    try:
        with new_file(path) as file:
            file.writelines(chunks)
    except NotAFileError as error:
        raise ModelFileError(str(error)) from error


def _write_all(stream: Any, left: memoryview) -> None:
    """Write to a stream, of which one without a buffer, such as a socket's, may take a part at once."""
    while len(left):
        n = stream.write(left)
        if n is None and isinstance(stream, io.RawIOBase):
            raise BlockingIOError(f"{name_of(stream)} takes no more bytes: open it for blocking")
        if n is not None and (isinstance(n, bool) or not 0 < n <= len(left)):
            raise OSError(f"{name_of(stream)}: write returned {n!r} for {len(left)} bytes")
        left = left[len(left) if n is None else n :]


def _encode(kind: str, meta: dict[str, Any], arrays: dict[str, np.ndarray], deflated: bool = False) -> list[Any]:
    """Return the file as a list of buffers; arrays in C order are not copied."""
    if not isinstance(kind, str):
        raise TypeError(f"kind must be a str. Got {reprlib.repr(kind)} instead.")
    for label, given in (("meta", meta), ("arrays", arrays)):
        if not isinstance(given, dict):
            raise TypeError(f"{label} must be a dict. Got {type(given).__name__} instead.")
    problem = json_problem(meta)
    if problem is not None:
        raise TypeError(f"meta{problem}")
    table: list[dict[str, Any]] = []
    chunks: list[Any] = []
    end, room = 0, MOST_IN_ALL if deflated else 0
    for name, value in arrays.items():
        array = _on_disk(name, value)
        raw = array.reshape(-1).view(np.uint8)
        packed = _deflated(raw) if array.dtype.str in _SMALL and raw.size <= min(room, MOST_DEFLATED) else None
        room -= 0 if packed is None else raw.size
        stored = raw.data if packed is None else packed
        offset = _round_up(end)
        table.append(
            {
                "name": name,
                "dtype": array.dtype.str,
                "shape": array.shape,
                "offset": offset,
                "crc32": zlib.crc32(stored),
                **({} if packed is None else {"deflated": len(packed)}),
            }
        )
        chunks += [bytes(offset - end), raw if packed is None else packed]
        end = offset + len(stored)
    return [_encode_header(kind, meta, table), *chunks]


def _deflated(raw: np.ndarray) -> bytes | None:
    """The bytes of an array, deflated; None where they are as many."""
    packed = zlib.compress(raw.data)
    return packed if len(packed) < raw.size else None


def _on_disk(name: str, value: np.ndarray) -> np.ndarray:
    """Return the array in the byte and memory order of the file."""
    if not isinstance(name, str):
        raise TypeError(f"names of arrays must be str. Got {reprlib.repr(name)} instead.")
    # Subclasses (masked arrays, quantities) have state that the file would silently lose.
    if type(value) not in (np.ndarray, np.memmap):
        raise TypeError(f"arrays[{name!r}] must be a numpy.ndarray. Got {type(value).__name__} instead.")
    dtype = value.dtype.newbyteorder("<") if value.dtype.kind in "biufcS" else value.dtype
    if not _is_allowed(dtype.str) or value.ndim > MAX_DIMENSIONS:
        raise TypeError(
            f"arrays[{name!r}] must be of bool, integer, float, complex or bytes dtype "
            f"with at most {MAX_DIMENSIONS} dimensions. "
            f"Got {value.dtype} with {value.ndim} instead."
        )
    array = np.asarray(value, dtype=dtype, order="C")
    if dtype.kind == "b":  # a view of other bytes may contain truth values other than 0 and 1
        array = array.view(np.uint8) != 0
    return array


def _encode_header(kind: str, meta: dict[str, Any], table: list[dict[str, Any]]) -> bytes:
    header = {
        "schema": SCHEMA if any("deflated" in entry for entry in table) else 1,
        "version": str(getattr(sys.modules.get("structsvm"), "__version__", "unknown")),
        "kind": kind,
        "meta": meta,
        "arrays": table,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_HEADER - ALIGN:
        raise ValueError(
            f"kind, meta and the table of arrays take {len(text)} bytes, the limit is "
            f"{MAX_HEADER - ALIGN}: put long lists into arrays."
        )
    text = text.ljust(_round_up(_PREFIX.size + len(text)) - _PREFIX.size)
    return _PREFIX.pack(MAGIC, len(text), _header_crc(text)) + text


# --- reading ---------------------------------------------------------------------------


def read_model(path: Origin, *, kind: str | None = None, mmap: bool = False, verify: bool | None = None) -> ModelFile:
    """Read a model file.

    Header, sizes, positions and the bytes of bool arrays are always checked, so that the
    arrays are valid whatever the file contains. Their *values* may be anything in a forged
    file: `structsvm.stored_values.checked_arrays` checks them.

    Parameters
    ----------
    path : path-like, bytes, or binary file open for reading
        File written by `write_model`, its contents, or a stream that is read from its position to its end.
    kind : str, optional
        The task of the wanted model; None accepts any.
    mmap : bool, default=False
        Return read-only views of one memory map instead of copies in memory: pages are read
        on access and shared between processes. The map lives as long as any of the
        arrays. `write_model` may replace the file meanwhile; truncating it in place (as
        ``cp`` does) kills a process that accesses a lost page, as with any map. Deflated arrays are read-only copies
        that each process has of its own.
    verify : bool, optional
        Whether to verify the checksums of the data, which reads the whole file. Default: not
        with ``mmap=True``, where a damaged number goes unnoticed unless ``verify=True``.

    Returns
    -------
    ModelFile
        Arrays are 64-byte aligned, in C order and native byte order.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is truncated or altered, belongs to another task,
        or was written by a version whose schema this one does not know.
    OSError
        If the file is missing or cannot be read.
    """
    path = whole(path)
    try:
        with _opened(path) as (file, size):
            model, blocks, start = _described(file, size, kind)
            is_file = mmap and not isinstance(path, _CONTENTS)
            data = _map(file, start, size) if is_file else _load(file, size - start)
        if verify or (verify is None and not mmap):
            _verify(data, blocks)
        model.arrays.update((block.name, _view(_raw(data, block), block)) for block in blocks)
    except ModelFileError as error:
        raise ModelFileError(f"{name_of(path)}: {error}") from None
    return model


def read_header(path: Origin, *, kind: str | None = None) -> ModelFile:
    """Read what a model file says of itself: kind, meta, version and bytes, without the arrays.

    Parameters and errors are those of `read_model`; what the arrays contain is not checked.
    """
    path = whole(path)
    try:
        with _opened(path) as (file, size):
            return _described(file, size, kind)[0]
    except ModelFileError as error:
        raise ModelFileError(f"{name_of(path)}: {error}") from None


def _described(file: BinaryIO, size: int, kind: str | None) -> tuple[ModelFile, list[_Block], int]:
    """The checked model without its arrays, their blocks, and the position of the data."""
    header, start = _read_header(file, size)
    model = _decode(header, kind)
    blocks = _decode_table(header)
    _check_size(size, start + (blocks[-1].end if blocks else 0))
    model.nbytes.update((block.name, block.end - block.offset) for block in blocks)
    return model, blocks, start


_CONTENTS = (bytes, bytearray, memoryview)


def whole(path: Any) -> Any:
    """The contents of a file object, so that they can be read twice; a path or contents themselves.

    Raises TypeError for anything else, and for a file of text.
    """
    if not hasattr(path, "read"):
        return path if isinstance(path, _CONTENTS) else os.fsdecode(path)
    contents = path.read()
    if not isinstance(contents, _CONTENTS):
        raise TypeError(f"{name_of(path)} is open for text: open it with mode 'rb'")
    return contents


def name_of(path: Any) -> str:
    """The name of a model file in messages."""
    if isinstance(path, (str, os.PathLike)):
        return os.fsdecode(path)
    return f"<{len(path)} bytes>" if isinstance(path, _CONTENTS) else str(getattr(path, "name", "<stream>"))


@contextmanager
def _opened(path: Any) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file, or contents, open for reading, and their size."""
    if isinstance(path, _CONTENTS):
        yield io.BytesIO(path), memoryview(path).nbytes
        return
    with _open_regular(path) as file:
        status = os.fstat(file.fileno())
        _check_regular(status.st_mode)
        yield file, status.st_size


def _open_regular(path: str) -> BinaryIO:
    # Checked before opening, since opening a device can have side effects, and by the caller
    # again; O_NONBLOCK, so that a FIFO created in between does not hang.
    _check_regular(os.stat(path).st_mode)
    flag = getattr(os, "O_NONBLOCK", 0)
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | flag))


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ModelFileError("is a directory, not a model file")
    if not stat.S_ISREG(mode):
        raise ModelFileError("is not a regular file")


def _check_size(size: int, wanted: int) -> None:
    if size < wanted:
        raise ModelFileError(f"is truncated: {size} bytes where its header wants {wanted}")
    if size > wanted:
        raise ModelFileError(f"has {size - wanted} bytes more than its header describes")


def _read_header(file: Any, size: int) -> tuple[dict[str, Any], int]:
    """Return the header and the position of the data."""
    prefix = file.read(_PREFIX.size)
    if prefix[:8] != MAGIC[: len(prefix)] or not prefix:
        _refuse_magic(prefix)
    if len(prefix) < _PREFIX.size:
        raise ModelFileError(f"is truncated after {len(prefix)} bytes")
    _, length, crc = _PREFIX.unpack(prefix)
    start = _PREFIX.size + length
    if start > size:
        raise ModelFileError(f"is truncated: {size} bytes where its header ends at {start}")
    if length > MAX_HEADER or start % ALIGN:
        raise ModelFileError(f"is damaged: a header of {length} bytes cannot be")
    text = file.read(length)
    if len(text) != length:
        raise ModelFileError("is truncated: it shrank while it was read")
    if _header_crc(text) != crc:
        raise ModelFileError("is damaged: the header does not match its checksum")
    return _parse(text), start


def _refuse_magic(prefix: bytes) -> NoReturn:
    if not prefix:
        raise ModelFileError("is empty")
    if prefix[1:4] == MAGIC[1:4]:
        raise ModelFileError("is damaged from its first bytes on, as by a text-mode transfer")
    raise ModelFileError(f"is not a structsvm model file (it starts with {prefix[:8]!r})")


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = parse_json(text)
    except RecursionError:
        raise ModelFileError("has a header that is nested too deeply") from None
    except ValueError as error:  # JSON or UTF-8
        raise ModelFileError(f"has a header that is not strict JSON ({error})") from None
    if not isinstance(header, dict):
        raise ModelFileError("has a header that is not a JSON object")
    return header


def _decode(header: dict[str, Any], wanted: str | None) -> ModelFile:
    """Check everything except the table of arrays; return the model without arrays."""
    schema = _field(header, "schema", int)
    version = header.get("version", "unknown")
    if schema > SCHEMA:
        raise ModelFileError(
            f"was written by structsvm {reprlib.repr(version)} in schema "
            f"{reprlib.repr(schema)}; this version reads up to schema {SCHEMA}: "
            "upgrade structsvm to read it"
        )
    if schema < 1:
        raise ModelFileError(f"has a header with schema {reprlib.repr(schema)}")
    kind = _field(header, "kind", str)
    if wanted is not None and kind != wanted:
        raise ModelFileError(f"is a model for the task {reprlib.repr(kind)}, but one for {wanted!r} was wanted")
    meta = _field(header, "meta", dict)
    problem = json_problem(meta)
    if problem is not None:
        raise ModelFileError(f"has a header in which meta{problem}")
    return ModelFile(kind, meta, {}, version if type(version) is str else "unknown")


def _decode_table(header: dict[str, Any]) -> list[_Block]:
    blocks: list[_Block] = []
    names: set[str] = set()
    end, room = 0, MOST_IN_ALL
    may_be_deflated = header["schema"] > 1
    for entry in _field(header, "arrays", list):
        if not isinstance(entry, dict):
            raise ModelFileError("has a table of arrays with an entry that is not an object")
        block = _decode_entry(entry, may_be_deflated)
        if block.name in names:
            raise ModelFileError(f"has two arrays of the name {reprlib.repr(block.name)}")
        # The only valid place is right after the previous array: no overlap, nothing hidden.
        if block.offset != _round_up(end):
            raise ModelFileError(f"has array {reprlib.repr(block.name)} at a wrong offset")
        room -= block.is_deflated * block.nbytes
        if room < 0:
            raise ModelFileError(f"has deflated arrays of more than {MOST_IN_ALL} bytes")
        names.add(block.name)
        blocks.append(block)
        end = block.end
    return blocks


def _decode_entry(entry: dict[str, Any], may_be_deflated: bool) -> _Block:
    name = _field(entry, "name", str)
    shown = reprlib.repr(name)
    code = _field(entry, "dtype", str)
    if not _is_allowed(code):
        raise ModelFileError(f"has array {shown} of dtype {reprlib.repr(code)}")
    dtype = np.dtype(code)
    shape = _field(entry, "shape", list)
    if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and 0 <= n <= MAX_NBYTES for n in shape):
        raise ModelFileError(f"has array {shown} of shape {reprlib.repr(shape)}")
    # NumPy also multiplies the strides of an empty array, hence 1 instead of 0.
    if dtype.itemsize * math.prod(n or 1 for n in shape) > MAX_NBYTES:
        raise ModelFileError(f"has array {shown} of impossible shape {reprlib.repr(shape)}")
    offset = _field(entry, "offset", int)
    crc32, nbytes = _field(entry, "crc32", int), dtype.itemsize * math.prod(shape)
    if not may_be_deflated or "deflated" not in entry:
        return _Block(name, dtype, tuple(shape), offset, offset + nbytes, crc32, False)
    size = _field(entry, "deflated", int)
    if not 0 < size < nbytes <= MOST_DEFLATED:
        raise ModelFileError(f"has array {shown} of {nbytes} bytes, deflated to {reprlib.repr(size)}")
    return _Block(name, dtype, tuple(shape), offset, offset + size, crc32, True)


def _field(record: dict[str, Any], key: str, wanted: type) -> Any:
    """Return a value of exactly the wanted type (True is not an integer)."""
    value = record.get(key)
    if type(value) is not wanted:
        raise ModelFileError(
            f"has a header in which {key!r} must be of type {wanted.__name__}, "
            + (f"not {reprlib.repr(value)}" if key in record else "and is missing")
        )
    return value


def _load(file: Any, nbytes: int) -> np.ndarray:
    """Read the data, whose size has been checked against the file's, into aligned memory."""
    try:
        buffer = np.empty(nbytes + ALIGN, np.uint8)
    except MemoryError:
        raise ModelFileError(f"does not fit into memory with its {nbytes} bytes: try mmap=True") from None
    first = -buffer.ctypes.data % ALIGN
    data = buffer[first : first + nbytes]
    if file.readinto(data.data) != nbytes:
        raise ModelFileError("is truncated: it shrank while it was read")
    return data


def _map(file: Any, start: int, size: int) -> np.ndarray:
    mapped = _map_file(file.fileno(), 0, access=ACCESS_READ)
    if len(mapped) != size:
        raise ModelFileError("changed its size while it was read")
    return np.frombuffer(mapped, np.uint8)[start:]


def _verify(data: np.ndarray, blocks: list[_Block]) -> None:
    end = 0
    for block in blocks:
        if data[end : block.offset].any():
            raise ModelFileError(f"is damaged before array {reprlib.repr(block.name)}")
        if zlib.crc32(data[block.offset : block.end].data) != block.crc32:
            raise ModelFileError(f"is damaged: array {reprlib.repr(block.name)} does not match its checksum")
        end = block.end


def _raw(data: np.ndarray, block: _Block) -> np.ndarray:
    """The bytes of an array, inflated if they are deflated."""
    raw = data[block.offset : block.end]
    if not block.is_deflated:
        return raw
    inflater = zlib.decompressobj()
    try:
        found = np.empty(block.nbytes + ALIGN, np.uint8)
        text = inflater.decompress(raw.data, block.nbytes + 1)
    except zlib.error as error:
        raise ModelFileError(f"is damaged: array {reprlib.repr(block.name)} cannot be inflated ({error})") from None
    except MemoryError:
        raise ModelFileError(f"does not fit into memory with array {reprlib.repr(block.name)}") from None
    if len(text) != block.nbytes or not inflater.eof or inflater.unused_data:
        raise ModelFileError(f"is damaged: array {reprlib.repr(block.name)} has not the bytes of its shape")
    found = found[(first := -found.ctypes.data % ALIGN) : first + block.nbytes]
    found[:] = np.frombuffer(text, np.uint8)
    found.flags.writeable = data.flags.writeable
    return found


def _view(raw: np.ndarray, block: _Block) -> np.ndarray:
    # Compiled loops rely on truth values being 0 or 1 (they count by adding).
    if block.dtype.kind == "b" and raw.size and raw.max() > 1:
        raise ModelFileError(f"has bool array {reprlib.repr(block.name)} with other values")
    array = raw.view(block.dtype).reshape(block.shape)
    return array.astype(block.dtype.newbyteorder("="), copy=False)


# --- both ------------------------------------------------------------------------------


def _round_up(position: int) -> int:
    return -(-position // ALIGN) * ALIGN


def _header_crc(text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(struct.pack("<I", len(text))))


def _is_allowed(code: str) -> bool:
    return code in _NUMERIC or _BYTES.fullmatch(code) is not None
