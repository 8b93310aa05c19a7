"""Records: what they write, read and refuse."""

from types import SimpleNamespace

import numpy as np
import pytest

from structsvm.stored_values import Array, Count, Flag, Group, Names, Number, OneOf, Part, Record, Text, TextOr, Value

RECORD = Record({
    "names": Names(),
    "n": Count(1, 5),
    "form": OneOf(("a", 2)),
    "text": Text(null=True),
    "share": Number(0.0, 1.0, needed=False),
    "inner": Record(
        {
            "flag": Flag(of="is_so"),
            "loss": TextOr(Array("f8", ("n_names",), needed=False)),
            "costs": Array("f8", ("n_names",), needed=False),
        },
        of="other",
    ),
    "absent": Record({"n": Count()}, needed=False),
    "units": Record({"scale": Array("f8", ("n",)), "centre": Array("f8", ("n",), needed=False)}, needed=False),
    "pair": Value(tuple, list),
    "part": Part(lambda header, arrays: (header, arrays["x"]), lambda part: (part[0], {"x": part[1]})),
    "others": Group(),
    "ids": Array("i8", ("n_ids",), within=(0, "n_rows"), name="names", of=lambda model: np.array([0, 2])),
    "weights": Array("f8", ("n_rows", "n+1")),
})  # fmt: skip
MODEL = SimpleNamespace(
    names=("x", "y"),
    n=np.int64(2),
    form="a",
    text=None,
    share=None,
    other=SimpleNamespace(is_so=np.True_, loss=np.ones(2), costs=None),
    absent=None,
    units=None,
    pair=(1, 2),
    part=("head", np.zeros(1)),
    others={"0": np.ones(1)},
    weights=np.zeros((3, 3)),
)


def test_what_is_written_is_read():
    header, arrays = RECORD.write(MODEL)
    assert header == {
        "names": ["x", "y"],
        "n": 2,
        "form": "a",
        "text": None,
        "inner": {"flag": True, "loss": None},
        "pair": [1, 2],
        "part": "head",
    }
    assert [*header] == ["names", "n", "form", "text", "inner", "pair", "part"]
    assert [*arrays] == ["inner.loss", "part.x", "others.0", "names", "weights"]
    stored = RECORD.read(header, arrays)
    assert (stored.names, stored.n, stored.share, stored.absent, stored.units) == (["x", "y"], 2, None, None, None)
    assert dict(stored.inner) == {"flag": True, "loss": None} and stored.pair == (1, 2)
    found = stored.inner.arrays()
    assert found["loss"].tolist() == [1.0, 1.0] and found["costs"] is None
    assert stored.part[1] is arrays["part.x"] and [*stored.others] == ["0"]
    assert {name: array.shape for name, array in stored.arrays(n_rows=3).items()} == {"names": (2,), "weights": (3, 3)}
    with pytest.raises(AttributeError):
        _ = stored.weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 6}, "'n' must be an integer from 1 to 5, got 6"),
        ({"n": True}, "'n' must be an integer from 1 to 5, got True"),
        ({"n": 10**400}, "'n' must be an integer from 1 to 5, got 1000"),
        ({"n": None}, "'n' must be an integer from 1 to 5, got None"),
        ({"names": ["x", "x"]}, "'names' must be a list of distinct strings"),
        ({"names": "xy"}, "'names' must be a list of distinct strings"),
        ({"form": 2.0}, "'form' must be one of 'a', 2, got 2.0"),
        ({"text": 1}, "'text' must be text, got 1"),
        ({"share": 1.5}, "'share' must be a number from 0 to 1, got 1.5"),
        ({"inner": None}, "'inner' must be an object, got None"),
        ({"inner": {"flag": 1, "loss": None}}, "'inner.flag' must be true or false, got 1"),
        ({"inner": {"loss": None}}, "'inner.flag' is missing"),
        ({"absent": {"n": -1}}, "'absent.n' must be an integer"),
    ],
)
def test_headers_that_are_refused(change, message):
    header, arrays = RECORD.write(MODEL)
    with pytest.raises(ValueError, match=message):
        RECORD.read(header | change, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": None}, "array 'weights' is missing"),
        ({"weights": np.zeros((2, 3))}, "array 'weights' has shape"),
        ({"names": np.array([0, 3])}, "array 'names' has values from 0 to 3, expected from 0 up to, not including, 3"),
    ],
)
def test_arrays_that_are_refused(change, message):
    header, arrays = RECORD.write(MODEL)
    changed = {name: array for name, array in (arrays | change).items() if array is not None}
    with pytest.raises(ValueError, match=message):
        RECORD.read(header, changed).arrays(n_rows=3)


def test_a_part_is_there_as_a_whole():
    header, arrays = RECORD.write(MODEL)
    with pytest.raises(ValueError, match=r"array 'units.scale' is missing"):
        RECORD.read(header, arrays | {"units.centre": np.zeros(2)}).units.arrays()
    with pytest.raises(ValueError, match=r"array 'units.scale' has shape \(3,\), expected 3 to be 2 \(n\)"):
        RECORD.read(header, arrays | {"units.scale": np.zeros(3)}).units.arrays()
