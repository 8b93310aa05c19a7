"""Constant databases of strings against the hash that its author published, and a look-up one step at a time."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.interop.cqdb import database, hashes, names_in

HEAD = 24 + 8 * 256


def found(chunk, name):
    """The id of a name, as a reader with no more than one record in memory finds it; None: there is no such name."""
    value = int(hashes([name + b"\0"])[0])
    at, n = struct.unpack_from("<II", chunk, 24 + 8 * (value % 256))
    if not n:
        return None
    k = (value >> 8) % n
    for _ in range(n):
        hashed, offset = struct.unpack_from("<II", chunk, at + 8 * k)
        if not offset:
            return None
        number, size = struct.unpack_from("<II", chunk, offset)
        if hashed == value and chunk[offset + 8 : offset + 8 + size] == name + b"\0":
            return number
        k = (k + 1) % n
    raise AssertionError("no slot is empty")


def test_published_hashes():
    assert hashes([b"Four score and seven years ago"]).tolist() == [0x17770551]
    # All lengths of a last block, alone and behind others, are hashed as they are beside others.
    keys = [b"abcdefghijklmnopqrstuvwxyz"[:n] for n in range(1, 27)]
    assert hashes(keys).tolist() == [int(hashes([key])[0]) for key in keys]
    assert len(set(hashes(keys).tolist())) == 26


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=40).map(lambda name: name.replace(b"\0", b"")), unique=True, max_size=400))
def test_names_are_found_and_listed(names):
    chunk = database(names)
    assert struct.unpack_from("<4sI", chunk) == (b"CQDB", len(chunk))
    assert names_in(b"before" + chunk + b"behind", 6, len(names)) == names
    assert [found(chunk, name) for name in names] == list(range(len(names)))
    assert found(chunk, b"no such name, with more than 40 characters") is None


def test_many_names_share_tables():
    names = [str(k).encode() for k in range(5000)]
    chunk = database(names)
    assert [found(chunk, name) for name in names] == list(range(5000))
    assert names_in(chunk, 0, 5000) == names


def test_records_that_overlap_take_no_more_memory_than_the_file():
    """Each record lies within the one before; read one by one they would be as long as all of them, squared."""
    n = 2000
    records = b"".join(struct.pack("<II", k, 8 * (n - k) - 8 + 2) for k in range(n)) + b"a\0"
    backward = HEAD + len(records)
    head = struct.pack("<4sIIIII", b"CQDB", backward + 4 * n, 0, 0x62445371, n, backward)
    chunk = head + bytes(8 * 256) + records + b"".join(struct.pack("<I", HEAD + 8 * k) for k in range(n))
    with pytest.raises(ValueError, match="wanted name 0, its length"):
        names_in(chunk, 0, n)


def test_first_names():
    assert names_in(database([b"a", b"b", b"c"]), 0, 2) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, 0, "offset 0: wanted 'CQDB'"),
        (4, 1 << 30, "a database of 1,073,741,824 bytes does not fit"),
        (4, 24, "a database of 24 bytes does not fit"),
        (12, 0x71534462, "its byte order"),
        (16, 1, "2 names are announced, the database lists 1"),
        (20, 1 << 31, "2 names are announced"),
        (20, 8, "2 names are announced"),
        (HEAD, 7, "wanted name 0"),
        (HEAD + 4, 0, "wanted name 0"),
        (HEAD + 4, 1 << 31, "wanted name 0"),
        (HEAD + 4, 1, "wanted name 0"),
        (HEAD + 4, 15, "wanted name 0"),
        (-8, 0, "name 0 stands outside"),
        (-4, 1 << 31, "name 1 stands outside"),
        (HEAD + 8, 0x62, "stands twice"),
        (HEAD + 4, 10, "has a zero byte|wanted name 0"),
    ],
)
def test_damage_is_refused(at, value, message):
    data = bytearray(database([b"a", b"b"]))
    struct.pack_into("<I" if at != HEAD + 8 else "<H", data, at % len(data), value & (0xFFFF if at == HEAD + 8 else -1))
    with pytest.raises(ValueError, match=message):
        names_in(bytes(data), 0, 2)


@pytest.mark.parametrize("size", [0, 23, 24, HEAD - 1, HEAD, HEAD + 9])
def test_a_cut_database_is_refused(size):
    with pytest.raises(ValueError, match="does not fit"):
        names_in(database([b"a", b"b"])[:size], 0, 2)
