"""Constant databases of strings, the chunks in CRFsuite's files that number labels and attributes.

All numbers are 32-bit and little-endian; offsets count from the first byte of the chunk:

    "CQDB", size, flags, 0x62445371, number of ids, offset of the backward array
    256 pairs (offset, number of slots): the hash tables
    records (id, length, bytes with a zero byte at the end)
    slots (hash, offset of the record), an offset of 0 is an empty one
    offsets of the records, by id: the backward array

A string is looked up in table ``hash % 256`` from slot ``hash // 256 % n_slots`` on; half of the slots are empty.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct("<4sIIIII")
_BYTE_ORDER = 0x62445371
_TABLES = 256
_RECORDS = _HEAD.size + 8 * _TABLES  # offset of the first record

Words = NDArray[np.uint32]


def hashes(keys: Sequence[bytes]) -> Words:
    """Hash of each key by Jenkins's lookup3 (`hashlittle`, initial value 0), all keys of as many blocks at once."""
    lengths = np.array([len(key) for key in keys], dtype=np.uint32)
    n_blocks = np.maximum(1, -(-lengths.astype(np.int64) // 12))
    found = np.empty(len(keys), dtype=np.uint32)
    for n in np.unique(n_blocks).tolist():
        which = np.flatnonzero(n_blocks == n)
        padded = b"".join(keys[k].ljust(12 * n, b"\0") for k in which.tolist())
        blocks = np.frombuffer(padded, "<u4").reshape(len(which), n, 3).astype(np.uint32)
        a = lengths[which] + np.uint32(0xDEADBEEF)
        b, c = a.copy(), a.copy()
        for block in range(n):
            a, b, c = a + blocks[:, block, 0], b + blocks[:, block, 1], c + blocks[:, block, 2]
            a, b, c = _mixed(a, b, c) if block < n - 1 else _final(a, b, c)
        found[which] = c
    return found


def _rotated(x: Words, bits: int) -> Words:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))


def _mixed(a: Words, b: Words, c: Words) -> tuple[Words, Words, Words]:
    for first, second, third in ((4, 6, 8), (16, 19, 4)):
        a = (a - c) ^ _rotated(c, first)
        c = c + b
        b = (b - a) ^ _rotated(a, second)
        a = a + c
        c = (c - b) ^ _rotated(b, third)
        b = b + a
    return a, b, c


def _final(a: Words, b: Words, c: Words) -> tuple[Words, Words, Words]:
    c = (c ^ b) - _rotated(b, 14)
    a = (a ^ c) - _rotated(c, 11)
    b = (b ^ a) - _rotated(a, 25)
    c = (c ^ b) - _rotated(b, 16)
    a = (a ^ c) - _rotated(c, 4)
    b = (b ^ a) - _rotated(a, 14)
    return a, b, (c ^ b) - _rotated(b, 24)


def database(names: Sequence[bytes]) -> bytes:
    """Make the chunk of names whose ids are their places."""
    keys = [name + b"\0" for name in names]
    sizes = np.array([8 + len(key) for key in keys], dtype=np.int64)
    offsets = (_RECORDS + np.cumsum(sizes) - sizes).tolist()
    records = b"".join(struct.pack("<II", k, len(key)) + key for k, key in enumerate(keys))
    members: list[list[tuple[int, int]]] = [[] for _ in range(_TABLES)]
    for value, offset in zip(hashes(keys).tolist(), offsets, strict=True):
        members[value % _TABLES].append((value, offset))
    at = _RECORDS + len(records)
    references, tables = b"", b""
    for table in map(_slots, members):
        references += struct.pack("<II", at + len(tables) if table else 0, len(table) // 8)
        tables += table
    backward = at + len(tables) if names else 0
    size = at + len(tables) + 4 * len(names)
    head = _HEAD.pack(b"CQDB", size, 0, _BYTE_ORDER, len(names), backward)
    return b"".join((head, references, records, tables, np.array(offsets, dtype="<u4").tobytes()))


def _slots(members: list[tuple[int, int]]) -> bytes:
    """Hash table with twice as many slots as members; a member whose slot is taken gets the next empty one."""
    n = 2 * len(members)
    slots = [(0, 0)] * n
    for value, offset in members:
        k = (value >> 8) % n
        while slots[k][1]:
            k = (k + 1) % n
        slots[k] = value, offset
    return np.array(slots, dtype="<u4").tobytes()


def names_in(data: bytes, start: int, count: int) -> list[bytes]:
    """Names with the ids 0 .. count - 1 in the chunk that begins at an offset.

    Raises
    ------
    ValueError
        For a chunk that is damaged; the message begins with the offset.
    """
    if start + _RECORDS > len(data):
        raise ValueError(f"offset {start:,}: a database of names does not fit into the rest of the file")
    magic, size, _, order, n_ids, backward = _HEAD.unpack_from(data, start)
    if magic != b"CQDB" or order != _BYTE_ORDER:
        raise ValueError(f"offset {start:,}: wanted 'CQDB' and its byte order, got {magic!r} and {order:#x}")
    if not _RECORDS <= size <= len(data) - start:
        raise ValueError(f"offset {start:,}: a database of {size:,} bytes does not fit into the rest of the file")
    if count == 0:
        return []
    if n_ids < count or not _RECORDS <= backward <= size - 4 * count:
        raise ValueError(
            f"offset {start:,}: {count:,} names are announced, the database lists {n_ids:,} at {backward:,}"
        )
    chunk = data[start : start + size]
    offsets = np.frombuffer(chunk, "<u4", count, backward).astype(np.int64)
    wrong = (offsets < _RECORDS) | (offsets > size - 8)
    if wrong.any():
        raise ValueError(f"offset {start:,}: name {int(wrong.argmax())} stands outside of the database")
    return _records(chunk, offsets, start)


def _records(chunk: bytes, offsets: NDArray[np.int64], start: int) -> list[bytes]:
    view = np.frombuffer(chunk, np.uint8)
    heads = view[offsets[:, None] + np.arange(8)].view("<u4").astype(np.int64)
    ends = offsets + 8 + heads[:, 1]
    wrong = (heads[:, 0] != np.arange(len(offsets))) | (heads[:, 1] < 1) | (ends > len(chunk))
    if not wrong.any():
        wrong = view[ends - 1] != 0
    # Records do not overlap, so that names are no larger than the file.
    if wrong.any() or heads[:, 1].sum() + 8 * len(offsets) > len(chunk):
        k = int(wrong.argmax())
        raise ValueError(f"offset {start + int(offsets[k]):,}: wanted name {k}, its length, and a zero byte at its end")
    names = [chunk[a:b] for a, b in zip((offsets + 8).tolist(), (ends - 1).tolist(), strict=True)]
    if len(set(names)) < len(names) or any(b"\0" in name for name in names):
        raise ValueError(f"offset {start:,}: a name stands twice in the database, or has a zero byte")
    return names
