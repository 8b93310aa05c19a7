"""CRF++'s model files: text and binary read alike, written, and refused when damaged."""

import contextlib
import itertools
import random
import struct

import numpy as np
import pytest
from crfpp_files import KEYS, TEXT, binary, double_array

from structsvm.interop import ModelFileError, read_crfpp, read_wapiti, write_crfpp, write_wapiti

SEQUENCE = [["a"], ["b"], ["c"]]


@pytest.fixture(params=[TEXT, binary()], ids=["text", "binary"])
def data(request):
    return request.param


def read(tmp_path, data, **options):
    (tmp_path / "m").write_bytes(data)
    return read_crfpp(tmp_path / "m", **options)


def test_scores(tmp_path, data):
    model = read(tmp_path, data, cost_factor=2.0)
    states, pairs = [[4.0, 0.5], [1.0, -2.0], [0.0, 0.0]], [[0.0, 3.0], [-6.0, 0.25]]
    for path in itertools.product((0, 1), repeat=3):
        expected = sum(states[t][y] for t, y in enumerate(path)) + sum(pairs[a][b] for a, b in itertools.pairwise(path))
        assert model.score(SEQUENCE, ["AB"[y] for y in path]) == expected


def test_labels_and_probability(tmp_path, data):
    model = read(tmp_path, data)
    (labels,) = model.predict([SEQUENCE])
    assert labels == ["A", "A", "B"]
    assert model.score(SEQUENCE, labels) == 4.0
    np.testing.assert_allclose(model.predict_marginals([SEQUENCE])[0].sum(axis=1), 1)


def test_written_files_are_read(tmp_path, data):
    write_crfpp(read(tmp_path, data), tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"version: 100", b"version: 200", "m:1: "),
        (b"maxid: 8", b"maxid: 9", "m:16: 8 weights"),
        (b"U0:%x[-1,0]\n", b"U0:%y[-1,0]\n", "m:9: "),
        (b"4 B\n", b"5 B\n", "weights at 5 of 8"),
        (b"2 U0:_B-1", b"1 U0:_B-1", "weights at 1 of 8, wanted from 2"),
        (b"4 B\n", b"four B\n", "m:12: "),
        (b"0 U0:a", b"0 U0:_B-1", "m:14: .*each once"),
        (b"2.0000000000000000", b"x", "m:18: wanted a weight"),
        (b"2.0000000000000000", b"inf", "weight 2 is not finite"),
        (b"0.1250000000000000\n", b"0.12", "m:23: .*cut off"),
        (b"A\nB\n", b"A\nA\n", "each once"),
    ],
)
def test_damaged_text(tmp_path, old, new, message):
    with pytest.raises(ModelFileError, match=message):
        read(tmp_path, TEXT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, 99, "offset 0"),
        (16, 1 << 31, "offset"),
        (24, 1 << 31, "offset"),
        (28, 1 << 31, "offset 32"),
        (36, 99, "offset"),
    ],
)
def test_damaged_binary(tmp_path, offset, value, message):
    data = bytearray(binary())
    struct.pack_into("<I", data, offset, value)
    with pytest.raises(ModelFileError, match=message):
        read(tmp_path, bytes(data))


def test_loops_of_the_double_array(tmp_path):
    data = binary()
    start = len(data) - 32 - len(double_array(KEYS))
    units = np.frombuffer(data, "<i4", (len(data) - 32 - start) // 4, start).reshape(-1, 2).copy()
    unit = int(np.flatnonzero(units[:, 1] == 1)[0])
    units[unit, 0] = 1  # its children are the root's
    with pytest.raises(ModelFileError, match="loop"):
        read(tmp_path, data[:start] + units.tobytes() + data[-32:])


def test_mutated_files_are_read_or_refused_by_name(tmp_path, data):
    rng = random.Random(1)
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        at = rng.randrange(min(len(data), 400))
        changed[at : at + rng.randint(0, 4)] = bytes(rng.choices([0, 10, 48, 57, 255], k=rng.randint(0, 4)))
        try:
            model = read(tmp_path, bytes(changed))
        except ModelFileError:
            refused += 1
        else:
            with contextlib.suppress(ValueError):  # more columns than the sequence has
                assert len(model.predict([SEQUENCE])[0]) == 3
    assert refused


def test_a_cost_factor_is_in_the_weights_that_are_written(tmp_path):
    """The program uses no factor of the file."""
    model = read(tmp_path, TEXT, cost_factor=2.5)
    write_crfpp(model, tmp_path / "c")
    write_wapiti(model, tmp_path / "w")
    for written in (read_crfpp(tmp_path / "c"), read_wapiti(tmp_path / "w")):
        for path in itertools.product("AB", repeat=3):
            assert written.score(SEQUENCE, path) == pytest.approx(model.score(SEQUENCE, path))


def test_observations_with_a_blank_are_not_written(tmp_path):
    """CRF++ would take "U0:New York" for "U0:New"."""
    text = TEXT.replace(b"U0:a", b"U0:a b")
    with pytest.raises(ValueError, match=r"'U0:a b' cannot stand on a line of CRF\+\+'s text"):
        write_crfpp(read(tmp_path, text), tmp_path / "w")
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("factor", [0, -1.0, float("nan"), float("inf")])
def test_cost_factor(tmp_path, factor):
    with pytest.raises(ValueError, match="cost_factor"):
        read(tmp_path, TEXT, cost_factor=factor)
