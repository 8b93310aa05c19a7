"""The model file: exact round trips, and nothing but ModelFileError from bad files."""

import gc
import json
import math
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from structsvm import model_file
from structsvm.model_file import ModelFileError, read_header, read_model, write_model

posix_only = pytest.mark.skipif(os.name != "posix", reason="POSIX files")
DTYPES = ["?", "i1", "u1", "<f2", "<c8", "<c16", "S1", "S7"]
DTYPES += [order + code for order in "<>" for code in ("i2", "i4", "i8", "u8", "f4", "f8")]
META = {"C": 0.1, "labels": ["B-NP", "Ω"], "nested": {"none": None, "yes": True}}
ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "mask": np.array([True, False, True]),
    "empty": np.empty((0, 4)),
    "scalar": np.array(np.pi),
    "names": np.array([b"a", b"bcd"]),
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "a.model"
    write_model(path, "sequence", META, ARRAYS)
    return path


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def forge(header, data=b"", pad=64):
    """Return a file with the given header (an object, or the JSON text) and right checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(16 + len(text)) % pad)
    length = len(text).to_bytes(4, "little")
    crc = zlib.crc32(length + text).to_bytes(4, "little")
    return model_file.MAGIC + length + crc + text + data


def entry(**changes):
    data = bytes(range(1, 17))
    good = {"name": "a", "dtype": "<f8", "shape": [2], "offset": 0, "crc32": zlib.crc32(data)}
    return {**good, **changes}


def header(*entries, **changes):
    good = {"schema": 1, "version": "9", "kind": "k", "meta": {}, "arrays": list(entries)}
    return {**good, **changes}


def refusal(path, content, **options):
    """Return the message of the refusal of a file of the given content."""
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_model(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message


def tolerate(path, **options):
    """Read a file: either it is refused or all that it gives can be used."""
    try:
        model = read_model(path, **options)
    except ModelFileError:
        return
    json.dumps(model.meta, allow_nan=False)
    for array in model.arrays.values():
        assert array.flags.c_contiguous
        assert array.copy().nbytes == array.nbytes
        np.count_nonzero(array)


# --- round trips -----------------------------------------------------------------------

shapes = st.one_of(st.just(()), hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
arrays = st.one_of(*(hnp.arrays(dtype, shapes) for dtype in DTYPES))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
metas = st.dictionaries(st.text(), json_values, max_size=4)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "x.model"


@given(st.text(), metas, st.dictionaries(st.text(), arrays, max_size=5), st.booleans())
@settings(deadline=None)
def test_round_trip_is_exact(scratch, kind, meta, arrays, mmap):
    write_model(scratch, kind, meta, arrays)
    model = read_model(scratch, kind=kind, mmap=mmap, verify=True)
    assert model.kind == kind
    assert json.dumps(model.meta) == json.dumps(meta)  # -0.0, 1 and 1.0, order of keys
    assert list(model.arrays) == list(arrays)
    for name, array in arrays.items():
        loaded = model.arrays[name]
        assert same_bits(loaded, array.astype(array.dtype.newbyteorder("=")))
        assert loaded.flags.aligned
        assert loaded.flags.writeable is not mmap
        assert not loaded.size or loaded.ctypes.data % 64 == 0


def test_nan_payloads_survive(tmp_path):
    bits = np.array([0x7FF8000000000001, 0xFFF0000000000000, 1 << 63, 1], dtype=np.uint64)
    write_model(tmp_path / "x", "k", {}, {"a": bits.view(np.float64)})
    assert same_bits(read_model(tmp_path / "x").arrays["a"].view(np.uint64), bits)


@pytest.mark.parametrize("order", ["C", "F", "strided", "broadcast", "read-only"])
def test_any_memory_order_is_written(tmp_path, order):
    base = np.arange(24.0).reshape(4, 6)
    base.flags.writeable = False
    array = {
        "C": base.copy(),
        "F": np.asfortranarray(base),
        "strided": base[::-2, ::3],
        "broadcast": np.broadcast_to(base[0], (3, 6)),
        "read-only": base,
    }[order]
    write_model(tmp_path / "x", "k", {}, {"a": array})
    assert same_bits(read_model(tmp_path / "x").arrays["a"], array)


def test_same_input_same_bytes(model, tmp_path):
    loaded = read_model(model)
    write_model(tmp_path / "again", loaded.kind, loaded.meta, loaded.arrays)
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


def test_odd_truth_values_become_one(tmp_path):
    odd = np.array([0, 1, 2, 255], dtype=np.uint8).view(np.bool_)
    write_model(tmp_path / "x", "k", {}, {"a": odd})
    loaded = read_model(tmp_path / "x").arrays["a"]
    np.testing.assert_array_equal(loaded.view(np.uint8), [0, 1, 1, 1])


def test_str_path_and_no_arrays(tmp_path):
    write_model(str(tmp_path / "x"), "k", {}, {})
    assert read_model(str(tmp_path / "x"), mmap=True, verify=True).arrays == {}


def test_schema_1_is_read_for_ever(tmp_path):
    # Written out by hand after the module's docstring: never change it.
    text = (
        b'{"schema":1,"version":"0.1","kind":"sequence","meta":{"C":0.5},"arrays":['
        b'{"name":"w","dtype":"<f4","shape":[2],"offset":0,"crc32":3280414294},'
        b'{"name":"s","dtype":"|S2","shape":[],"offset":64,"crc32":2659403885}]}'
    ).ljust(240)
    prefix = b"\x89SVM\r\n\x1a\n\xf0\x00\x00\x00\x90\x40\x7c\x67"
    data = b"\x00\x00\x80\x3f\x00\x00\x00\xc0" + bytes(56) + b"ab"
    (tmp_path / "x").write_bytes(prefix + text + data)
    model = read_model(tmp_path / "x", kind="sequence")
    assert (model.meta, model.version) == ({"C": 0.5}, "0.1")
    np.testing.assert_array_equal(model.arrays["w"], np.array([1, -2], np.float32))
    assert model.arrays["s"][()] == b"ab"


def test_unknown_keys_are_ignored_and_unknown_arrays_kept(tmp_path):
    data = bytes(range(1, 17))
    content = forge(header(entry(name="later", unit="m"), later=[1]), data)
    (tmp_path / "x").write_bytes(content)
    assert read_model(tmp_path / "x").arrays["later"].tobytes() == data


# --- memory map ------------------------------------------------------------------------


def test_map_outlives_the_model_and_the_file(model, tmp_path):
    arrays = read_model(model, mmap=True).arrays
    weights = arrays.pop("weights")
    del arrays
    gc.collect()
    write_model(model, "sequence", {}, {})
    os.unlink(model)
    np.testing.assert_array_equal(weights, ARRAYS["weights"])
    with pytest.raises(ValueError, match="read-only"):
        weights[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        weights.flags.writeable = True


def test_a_mapped_model_can_be_saved_over_itself(model):
    loaded = read_model(model, mmap=True)
    write_model(model, loaded.kind, loaded.meta, loaded.arrays)
    assert same_bits(read_model(model).arrays["weights"], ARRAYS["weights"])


def test_map_verifies_only_on_demand(model):
    content = bytearray(model.read_bytes())
    content[-1] ^= 1  # in the last array
    model.write_bytes(content)
    assert read_model(model, mmap=True).arrays["names"][1] == b"bce"
    assert read_model(model, verify=False).arrays["names"][1] == b"bce"
    for mmap in (False, True):
        with pytest.raises(ModelFileError, match="array 'names' does not match its checksum"):
            read_model(model, mmap=mmap, verify=True)


# --- damage ----------------------------------------------------------------------------


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_noticed(model, flip):
    content = model.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= flip
        refusal(model, damaged)
        refusal(model, damaged, mmap=True, verify=True)
        tolerate(model, mmap=True)


@pytest.mark.parametrize("mmap", [False, True])
def test_every_truncation_is_refused(model, mmap):
    content = model.read_bytes()
    for length in range(len(content)):
        message = refusal(model, content[:length], mmap=mmap, verify=False)
        assert "truncated" in message or (length == 0 and "is empty" in message)


@pytest.mark.parametrize("tail", [b"\0", b"\n", bytes(64)])
def test_a_longer_file_is_refused(model, tail):
    message = refusal(model, model.read_bytes() + tail)
    assert f"has {len(tail)} bytes more" in message


@given(st.binary(max_size=300), st.booleans(), st.booleans())
@settings(deadline=None)
def test_random_bytes(scratch, content, magic, mmap):
    scratch.write_bytes(model_file.MAGIC * magic + content)
    with pytest.raises(ModelFileError):
        read_model(scratch, mmap=mmap)


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_random_headers_with_right_checksum(scratch, data):
    odd = json_values | st.sampled_from([-1, 2**31, 2**62, 2**63, 2**64, 10**400, "<f8", "|O"])
    wild = st.lists(odd | st.integers(0, 5), max_size=40)
    keys = st.sampled_from(["name", "dtype", "shape", "offset", "crc32"])
    changes = st.dictionaries(keys, odd | wild | st.integers(0, 256), max_size=2)
    entries = data.draw(st.lists(changes.map(lambda c: entry(**c)) | odd, max_size=3))
    tops = st.sampled_from(["schema", "version", "kind", "meta", "arrays"])
    top = data.draw(st.dictionaries(tops, odd, max_size=1))
    content = forge(header(*entries, **top), data.draw(st.binary(max_size=200)))
    scratch.write_bytes(content)
    tolerate(scratch, verify=False, mmap=data.draw(st.booleans()))
    scratch.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    tolerate(scratch)


@given(st.recursive(json_values, lambda inner: st.lists(inner, max_size=3)))
@settings(deadline=None)
def test_any_json_as_header(scratch, value):
    scratch.write_bytes(forge(value))
    with pytest.raises(ModelFileError):
        read_model(scratch)


BAD_ENTRIES = {
    "not an object": 3,
    "'name' must be of type str, not 3": entry(name=3),
    "'offset' must be of type int, not True": entry(offset=True),
    "'crc32' must be of type int, not 1.0": entry(crc32=1.0),
    "'shape' must be of type list, not '2'": entry(shape="2"),
    "'dtype' must be of type str, and is missing": {"name": "a"},
    "of dtype '|O'": entry(dtype="|O"),
    "of dtype '|S0'": entry(dtype="|S0"),
    "of dtype '<U1'": entry(dtype="<U1"),
    "of dtype '>f8'": entry(dtype=">f8"),
    "of dtype 'f8,f8'": entry(dtype="f8,f8"),
    "of dtype '<M8[s]'": entry(dtype="<M8[s]"),
    "of shape [-1]": entry(shape=[-1]),
    "of shape [2.0]": entry(shape=[2.0]),
    "of shape [True]": entry(shape=[True]),
    "of shape [9223372036854775808]": entry(shape=[2**63]),
    "of shape [1, 1,": entry(shape=[1] * 33),
    "of impossible shape [4294967296, 4294967296]": entry(shape=[2**32, 2**32]),
    "of impossible shape [0, 4611686018427387904]": entry(shape=[0, 2**62]),
    "is truncated": entry(shape=[3]),
    "has 8 bytes more": entry(shape=[1]),
    "wrong offset": entry(offset=64),
    "with other values": entry(dtype="|b1", shape=[16]),
}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("message", BAD_ENTRIES)
def test_bad_entries(tmp_path, message, mmap):
    content = forge(header(BAD_ENTRIES[message]), bytes(range(1, 17)))
    assert message in refusal(tmp_path / "x", content, mmap=mmap)


# ---- deflated arrays ---------------------------------------------------------------------------

COUNTS = {"counts": np.repeat(np.arange(9, dtype=np.uint16), 50).reshape(9, 50), "is_odd": np.arange(90) % 2 == 1}


@pytest.mark.parametrize("mmap", [False, True])
def test_small_numbers_are_deflated_where_that_is_smaller(tmp_path, mmap):
    others = {
        "few": np.arange(3, dtype=np.uint8),
        "noise": np.random.default_rng(0).integers(0, 256, 500, dtype=np.uint8),
        "wide": np.zeros(500, dtype=np.int32),
        "floats": np.zeros(500, dtype=np.float32),
        "large": np.arange((1 << 22) + 1, dtype=np.int64).astype(np.int8),
        "none": np.zeros(0, dtype=np.int8),
    }
    small = {**COUNTS, "same": np.zeros(1 << 22, dtype=np.int8)}
    write_model(tmp_path / "x", "k", META, {**small, **others}, deflated=True)
    header = json.loads((tmp_path / "x").read_bytes()[16:].partition(b"    ")[0])
    assert header["schema"] == 2
    assert {array["name"] for array in header["arrays"] if "deflated" in array} == set(small)
    found = read_model(tmp_path / "x", mmap=mmap, verify=True)
    assert all(same_bits(found.arrays[name], array) for name, array in {**small, **others}.items())
    assert all(array.flags.writeable is not mmap for array in found.arrays.values())
    assert all(array.ctypes.data % 64 == 0 for array in found.arrays.values() if array.size)
    write_model(tmp_path / "y", "k", META, {**small, **others})
    assert (tmp_path / "y").stat().st_size > (tmp_path / "x").stat().st_size + (1 << 22) - 5000
    assert b'"schema":1,' in (tmp_path / "y").read_bytes()[:40]


def deflated_entry(raw, packed, **changes):
    return {
        "name": "a",
        "dtype": "|u1",
        "shape": [len(raw)],
        "offset": 0,
        "crc32": zlib.crc32(packed),
        "deflated": len(packed),
    } | changes


RAW = bytes(range(10)) * 10
PACKED = zlib.compress(RAW)
BAD_DEFLATED = {
    "100 bytes, deflated to 0": ({"deflated": 0}, b""),
    "100 bytes, deflated to 100": ({"deflated": 100}, bytes(100)),
    "4194305 bytes, deflated to 100": ({"deflated": 100, "shape": [(1 << 22) + 1]}, bytes(100)),
    "'deflated' must be of type int, not True": ({"deflated": True}, PACKED),
    "'deflated' must be of type int, not 1.5": ({"deflated": 1.5}, PACKED),
    "'a' cannot be inflated": ({}, b"\0" * len(PACKED)),
    "has not the bytes of its shape": ({"shape": [99]}, PACKED),
    "'a' has not the bytes of its shape": ({"shape": [101]}, PACKED),
    "damaged: array 'a' has not the bytes": ({"deflated": len(PACKED) - 1}, PACKED[:-1]),
    "array 'a' has not the bytes": ({"deflated": len(PACKED) + 1}, PACKED + b"\0"),
    "'a' with other values": ({"dtype": "|b1"}, PACKED),
    "is truncated": ({"deflated": len(PACKED) + 1}, PACKED),
}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("message", BAD_DEFLATED)
def test_bad_deflated_arrays(tmp_path, message, mmap):
    changes, packed = BAD_DEFLATED[message]
    content = forge(header(deflated_entry(RAW, packed, **changes), schema=2), packed)
    assert message in refusal(tmp_path / "x", content, mmap=mmap)


def test_schema_1_knows_no_deflated_arrays(tmp_path):
    (tmp_path / "x").write_bytes(forge(header(deflated_entry(RAW, RAW, deflated=5)), RAW))
    assert read_model(tmp_path / "x").arrays["a"].tobytes() == RAW


def test_an_array_that_inflates_without_end_takes_no_memory(tmp_path):
    bomb, most = zlib.compress(bytes(1 << 28)), 1 << 22
    content = forge(header(deflated_entry(bytes(most), bomb), schema=2), bomb)
    tracemalloc.start()
    try:
        assert "has not the bytes of its shape" in refusal(tmp_path / "x", content)
        assert tracemalloc.get_traced_memory()[1] < 4 * most + 4 * len(bomb)
    finally:
        tracemalloc.stop()


def test_deflated_arrays_have_64_mib_at_most(tmp_path, monkeypatch):
    """A writer leaves what does not fit as it is, and a reader refuses more before it inflates anything."""
    arrays = {f"a{k}": np.zeros(1 << 22, dtype=np.int8) for k in range(18)}
    write_model(tmp_path / "x", "k", {}, arrays, deflated=True)
    assert 2 << 22 < (tmp_path / "x").stat().st_size < 2.1 * (1 << 22)
    found = read_model(tmp_path / "x").arrays
    assert found.keys() == arrays.keys() and not any(array.any() for array in found.values())
    packed, entries = zlib.compress(bytes(1 << 22)), []
    packed += bytes(-len(packed) % 64)
    for k in range(17):
        entries.append(deflated_entry(bytes(1 << 22), packed, name=f"a{k}", offset=k * len(packed)))
    (tmp_path / "y").write_bytes(forge(header(*entries[:16], schema=2), 16 * packed))
    monkeypatch.setattr(model_file.zlib, "decompressobj", lambda: pytest.fail("it inflates"))
    assert "has deflated arrays of more than 67108864 bytes" in refusal(
        tmp_path / "y", forge(header(*entries, schema=2), 17 * packed)
    )


def test_no_memory_to_inflate_is_reported(tmp_path, monkeypatch):
    def empty(*_):
        raise MemoryError

    write_model(tmp_path / "x", "k", {}, COUNTS, deflated=True)
    monkeypatch.setattr(model_file.np, "empty", empty)
    with pytest.raises(ModelFileError, match="x: does not fit into memory with array 'counts'"):
        read_model(tmp_path / "x", mmap=True)


def test_a_header_tells_what_arrays_take_in_the_file(tmp_path, monkeypatch):
    arrays = {
        "weights.data": np.zeros(1000, dtype=np.int8),
        "weights.counts": np.ones(3),
        "mask": np.ones(5, dtype=bool),
    }
    write_model(tmp_path / "x", "k", META, arrays, deflated=True)
    whole = read_model(tmp_path / "x")
    monkeypatch.setattr(model_file.zlib, "decompressobj", lambda: pytest.fail("it inflates"))
    head = read_header(tmp_path / "x", kind="k")
    assert (head.kind, head.meta, head.arrays, head.nbytes) == ("k", META, {}, whole.nbytes)
    data = len(zlib.compress(bytes(1000)))
    assert head.nbytes == {"weights.data": data, "weights.counts": 24, "mask": 5}
    assert head.sizes == {"weights": data + 24, "mask": 5} and list(head.sizes) == ["weights", "mask"]
    assert read_header((tmp_path / "x").read_bytes()).nbytes == head.nbytes
    with pytest.raises(ModelFileError, match="x: is a model for the task 'k', but one for 'other'"):
        read_header(tmp_path / "x", kind="other")
    (tmp_path / "y").write_bytes((tmp_path / "x").read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="y: is truncated"):
        read_header(tmp_path / "y")


def test_every_flipped_byte_of_a_deflated_array_is_noticed(tmp_path):
    write_model(tmp_path / "x", "k", {}, COUNTS, deflated=True)
    content = (tmp_path / "x").read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x10
        refusal(tmp_path / "y", bytes(changed))


def test_names_and_places_are_taken_once(tmp_path):
    data = bytes(80)
    content = forge(header(entry(), entry(offset=64)), data)
    assert "two arrays of the name 'a'" in refusal(tmp_path / "x", content)
    content = forge(header(entry(), entry(name="b")), data)
    assert "array 'b' at a wrong offset" in refusal(tmp_path / "x", content)
    crc = zlib.crc32(bytes(16))
    hidden = bytes(40) + b"!" + bytes(39)
    content = forge(header(entry(crc32=crc), entry(name="b", offset=64, crc32=crc)), hidden)
    assert "damaged before array 'b'" in refusal(tmp_path / "x", content)


NAN = b'{"schema":1,"kind":"k","arrays":[],"meta":{"a":%s}}'
BAD_HEADERS = {
    "NaN is not JSON": NAN % b"NaN",
    "-Infinity is not JSON": NAN % b"-Infinity",
    "meta['a'] is inf": NAN % b"1e999",
    "integer of 1000000 digits": NAN % (b"9" * 1000000),
    "meta['a'] is an integer": NAN % (b"9" * 1001),
    "nested deeper than 100": NAN % (b"[" * 100 + b"]" * 100),
    "nested too deeply": b"[" * 200000,
    "header that is nested too deeply": b'{"a":' * 200000,
    "not strict JSON (Extra data": b"{}{}",
    "not strict JSON ('utf-8'": b'{"\xff": 1}',
    "not strict JSON (Unexpected UTF-8 BOM": b"\xef\xbb\xbf{}",
    "not strict JSON": b"",
    "not a JSON object": b"[]",
    "'schema' must be of type int, and is missing": {},
    "schema 0": header(schema=0),
    "'schema' must be of type int, not True": header(schema=True),
    "'kind' must be of type str, not None": header(kind=None),
    "'meta' must be of type dict, not []": header(meta=[]),
    "'arrays' must be of type list, not {}": header(arrays={}),
}


@pytest.mark.parametrize("message", BAD_HEADERS)
def test_bad_headers(tmp_path, message):
    message_got = refusal(tmp_path / "x", forge(BAD_HEADERS[message]))
    assert message in message_got
    assert len(message_got) < 400 + len(str(tmp_path))


def test_header_length_is_bounded(tmp_path):
    content = forge(b"{}".ljust((1 << 24) + 48))
    assert "cannot be" in refusal(tmp_path / "x", content)
    assert "cannot be" in refusal(tmp_path / "x", forge(header(), pad=1) + b" ")


def test_another_task_and_a_newer_schema(model, tmp_path):
    with pytest.raises(ModelFileError, match="for the task 'sequence', but one for 'gra"):
        read_model(model, kind="grammar")
    later = forge({"schema": 3, "version": "3.1"})
    message = refusal(tmp_path / "x", later, kind="sequence")
    assert "by structsvm '3.1' in schema 3" in message
    assert "upgrade structsvm" in message


def test_foreign_and_mangled_files(tmp_path, model):
    assert "not a structsvm model file" in refusal(tmp_path / "x", b"PK\x03\x04" * 30)
    mangled = model.read_bytes().replace(b"\r\n", b"\n")
    assert "text-mode transfer" in refusal(tmp_path / "x", mangled)


@pytest.mark.parametrize("mmap", [False, True])
def test_huge_claims_take_no_memory(tmp_path, mmap):
    path = tmp_path / "x"
    path.write_bytes(forge(header(entry(shape=[2**57])), bytes(64)))
    huge_header = model_file.MAGIC + b"\xff\xff\xff\xff" + bytes(112)
    (tmp_path / "y").write_bytes(huge_header)
    tracemalloc.start()
    try:
        for bad in (path, tmp_path / "y"):
            with pytest.raises(ModelFileError, match="truncated"):
                read_model(bad, mmap=mmap)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_no_memory_is_reported(model, monkeypatch):
    def empty(*_):
        raise MemoryError

    monkeypatch.setattr(model_file.np, "empty", empty)
    with pytest.raises(ModelFileError, match="does not fit into memory"):
        read_model(model)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_that_shrinks_meanwhile_is_refused(model, monkeypatch, mmap):
    def shrink(header):
        os.truncate(model, 400)
        return decode_table(header)

    decode_table = model_file._decode_table
    monkeypatch.setattr(model_file, "_decode_table", shrink)
    write_model(model, "k", {}, {"a": np.zeros(100000)})
    with pytest.raises(ModelFileError, match="while it was read"):
        read_model(model, mmap=mmap)


# --- what is not a file ----------------------------------------------------------------


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "none")
    with pytest.raises(FileNotFoundError) as caught:
        write_model(tmp_path / "none" / "x", "k", {}, {})
    assert caught.value.filename == str(tmp_path / "none" / "x")
    with pytest.raises(ModelFileError, match="is a directory"):
        read_model(tmp_path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        write_model(tmp_path, "k", {}, {})


@posix_only
def test_fifo_socket_and_device(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path in ("fifo", "socket", os.devnull):
            with pytest.raises(ModelFileError, match="not a regular file"):
                read_model(path)
            with pytest.raises(ModelFileError, match="not a regular file"):
                write_model(path, "k", {}, {})
    # put there after the first look
    monkeypatch.setattr(model_file.os, "stat", lambda path: os.lstat(__file__))
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_model("fifo")
    assert stat.S_ISFIFO(os.lstat("fifo").st_mode)
    assert stat.S_ISCHR(os.lstat(os.devnull).st_mode)


@posix_only
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may do all")
def test_permissions_are_errors_of_the_system(model):
    model.chmod(0o444)
    with pytest.raises(PermissionError):
        write_model(model, "k", {}, {})
    model.chmod(0)
    with pytest.raises(PermissionError):
        read_model(model)


def test_a_read_only_file_is_not_replaced(model, monkeypatch):
    old = model.read_bytes()
    monkeypatch.setattr(model_file.os, "access", lambda *_: False)  # root may do all
    with pytest.raises(PermissionError, match="read-only"):
        write_model(model, "k", {}, {})
    assert model.read_bytes() == old


# --- writing ---------------------------------------------------------------------------

CIRCULAR = []
CIRCULAR.append(CIRCULAR)


@pytest.mark.parametrize(
    ("kind", "meta", "arrays", "message"),
    [
        (3, {}, {}, "kind must be a str"),
        ("k", [], {}, "meta must be a dict"),
        ("k", {}, [], "arrays must be a dict"),
        ("k", {"a": [0, {"b": math.nan}]}, {}, r"meta\['a'\]\[1\]\['b'\] is nan"),
        ("k", {"a": -math.inf}, {}, "is -inf"),
        ("k", {"a": {1: 2}}, {}, r"meta\['a'\] has the key 1"),
        ("k", {"a": (1, 2)}, {}, "type tuple"),
        ("k", {"a": np.int64(1)}, {}, "type int64"),
        ("k", {"a": b"x"}, {}, "type bytes"),
        ("k", {"a": {1, 2}}, {}, "type set"),
        ("k", {"a": 10**1000}, {}, "1000 digits"),
        ("k", {"a": CIRCULAR}, {}, "nested deeper"),
        ("k", {}, {3: np.zeros(1)}, "names of arrays must be str"),
        ("k", {}, {"a": [1.0]}, r"arrays\['a'\] must be a numpy.ndarray. Got list"),
        ("k", {}, {"a": np.float64(1)}, "Got float64"),
        ("k", {}, {"a": np.ma.zeros(3)}, "Got MaskedArray"),
        ("k", {}, {"a": np.array([None])}, "Got object"),
        ("k", {}, {"a": np.array(["x"])}, "Got <U1"),
        ("k", {}, {"a": np.zeros(2, "M8[s]")}, "Got datetime64"),
        ("k", {}, {"a": np.zeros(2, "i4,f8")}, "bytes dtype"),
    ],
)
def test_what_cannot_be_written_touches_no_file(tmp_path, kind, meta, arrays, message):
    with pytest.raises(TypeError, match=message):
        write_model(tmp_path / "x", kind, meta, arrays)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 has no more than 32 dimensions")
def test_too_many_dimensions_are_refused(tmp_path):
    with pytest.raises(TypeError, match="at most 32 dimensions"):
        write_model(tmp_path / "x", "k", {}, {"a": np.zeros((1,) * 33)})


def test_too_long_a_header_touches_no_file(tmp_path):
    with pytest.raises(ValueError, match="put long lists into arrays"):
        write_model(tmp_path / "x", "k", {"a": "x" * (1 << 24)}, {})
    assert not list(tmp_path.iterdir())


def test_what_can_be_written_can_be_read_at_the_limits(tmp_path):
    deep = []
    for _ in range(98):
        deep = [deep]
    meta = {"deep": deep, "int": 1 - 10**1000, "text": "x" * ((1 << 24) - 3000)}
    write_model(tmp_path / "x", "k", meta, {"a": np.zeros((1,) * 32)})
    assert read_model(tmp_path / "x").meta == meta


class Crash(BaseException):
    """An error that no ``except Exception`` would see, as KeyboardInterrupt."""


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left"), Crash()])
def test_a_failure_keeps_the_old_file(model, monkeypatch, where, error):
    old = model.read_bytes()

    def fail(*_):
        raise error

    if where == "write":
        chunks = model_file._encode("k", {}, {"a": np.zeros(10)})
        monkeypatch.setattr(model_file, "_encode", lambda *_: crashing(chunks, fail))
    else:
        monkeypatch.setattr(model_file.os, where, fail)
    with pytest.raises(type(error)):
        write_model(model, "k", {}, {"a": np.zeros(100000)})
    assert model.read_bytes() == old
    assert list(model.parent.iterdir()) == [model]


def crashing(chunks, fail):
    yield from chunks
    fail()


def run(code, path):
    """Run code in another process, with `path` and an array of 8 MB at hand."""
    start = (
        "import os, signal, sys, numpy as np\n"
        "from structsvm.model_file import write_model\n"
        "path = sys.argv[1]; big = {'a': np.ones(1 << 20)}\n"
    )
    return subprocess.run([sys.executable, "-P", "-c", start + code, str(path)], capture_output=True, text=True)


@posix_only
def test_a_full_disk_keeps_the_old_file(model):
    old = model.read_bytes()
    done = run(
        "import resource\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "write_model(path, 'k', {}, big)\n",
        model,
    )
    assert "OSError: [Errno 27]" in done.stderr
    assert model.read_bytes() == old
    assert list(model.parent.iterdir()) == [model]


@posix_only
def test_a_kill_keeps_the_old_file(model):
    old = model.read_bytes()
    done = run("os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\nwrite_model(path, 'k', {}, big)\n", model)
    assert done.returncode == -signal.SIGKILL
    assert model.read_bytes() == old


@posix_only
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_open(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_model(tmp_path / "x", "k", {}, {})
        (tmp_path / "y").touch()
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode
    (tmp_path / "x").chmod(0o640)
    write_model(tmp_path / "x", "k", {"new": 1}, {})
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@posix_only
def test_a_link_stays_a_link(model, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("a.model")
    write_model(link, "k", {}, {})
    assert link.is_symlink()
    assert read_model(model).kind == "k"
    link.unlink()
    link.symlink_to("new.model")
    write_model(link, "k", {}, {})
    assert read_model(tmp_path / "new.model").kind == "k"


def test_two_writers_and_a_reader(tmp_path):
    path = tmp_path / "x"
    write_model(path, "k", {"who": 0}, {"a": np.full(20000, 0.0)})
    failures = []

    def write(who):
        try:
            for _ in range(20):
                write_model(path, "k", {"who": who}, {"a": np.full(20000 * who, float(who))})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in (1, 2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        model = read_model(path, mmap=True, verify=True)
        assert (model.arrays["a"] == model.meta["who"]).all()
    for thread in threads:
        thread.join()
    assert not failures
    assert list(tmp_path.iterdir()) == [path]


@posix_only
def test_file_and_rename_are_flushed_in_this_order(model, monkeypatch):
    events, real = [], {name: getattr(os, name) for name in ("fsync", "replace")}

    def fsync(descriptor):
        events.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real["fsync"](descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda *paths: events.append("rename") or real["replace"](*paths))
    write_model(model, "sequence", META, ARRAYS)
    assert events == ["file", "rename", "directory"]


def test_sizes_are_those_of_parts(tmp_path):
    arrays = {"b": np.zeros(3), "a.x": np.zeros(4, dtype=np.int8), "a.y.z": np.zeros(40, dtype=np.int8)}
    write_model(tmp_path / "m", "x", {}, arrays)
    assert list(read_model(tmp_path / "m").sizes.items()) == [("a", 44), ("b", 24)]
