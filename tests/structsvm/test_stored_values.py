"""Tables of the arrays in model files: what they let through, and what they say of the rest."""

import numpy as np
import pytest

from structsvm.stored_values import Array, checked_arrays, csr, strings

TABLE = {
    "support": Array("i8", ("n",), within=(-1, None), once=True),
    "labels": Array("i4", ("n",), within=(0, "n_labels")),
    "box": Array("f4 f8", ("n",), within=(0.0, None)),
    "history": Array("f8", ("rows",), finite=False, needed=False),
    **csr("coef", "n_labels", "n", ascends=True),
    **strings("names", "starts", "n"),
}
SOUND = {
    "support": np.array([4, -1, 2]),
    "labels": np.array([0, 1, 1], dtype=np.int32),
    "box": np.ones(3),
    "coef.indptr": np.array([0, 2, 3], dtype=np.int32),
    "coef.indices": np.array([0, 2, 1], dtype=np.int32),
    "coef.data": np.array([1.0, -1.0, 0.5]),
    "starts": np.array([0, 1, 1, 3]),
    "names": np.frombuffer(b"abc", dtype=np.uint8),
}


def test_sound_arrays_are_returned():
    extra = {"history": np.array([np.nan, np.inf]), "unknown": np.zeros(3)}
    found = checked_arrays(SOUND | extra, TABLE, n_labels=2)
    assert list(found) == list(TABLE)
    assert all(found[name] is array for name, array in SOUND.items())
    empty = {name: array[:0] for name, array in SOUND.items()}
    empty |= {"coef.indptr": np.zeros(3, np.int32), "starts": np.zeros(1, np.int64)}
    assert checked_arrays(empty, TABLE, n_labels=2)["support"].shape == (0,)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("box", None, "missing"),
        ("box", np.ones(3, dtype=np.int64), "has dtype int64, expected f4 or f8"),
        ("labels", np.zeros((3, 1), dtype=np.int32), "has 2 dimensions, expected 1"),
        ("labels", np.zeros(2, dtype=np.int32), r"has shape \(2,\), expected 2 to be 3 \(n\)"),
        ("box", np.array([1.0, np.nan, 1.0]), "not finite"),
        ("box", np.array([1.0, np.inf, 1.0]), "not finite"),
        ("box", np.array([1.0, -1.0, 1.0]), r"from -1.0 to 1.0, expected from 0.0 up to"),
        ("history", np.array([1], dtype=np.int64), "has dtype int64, expected f8"),
        ("support", np.array([4, -2, 2]), "from -2 to 4"),
        ("support", np.array([4, 2, 2]), "a value twice"),
        ("labels", np.array([0, 2, 1], dtype=np.int32), "from 0 to 2"),
        ("labels", np.array([0, -1, 1], dtype=np.int32), "from -1 to 1"),
        ("coef.indptr", np.array([0, 3, 0], dtype=np.int32), "must begin with 0 and never fall"),
        ("coef.indptr", np.array([1, 2, 3], dtype=np.int32), "must begin with 0 and never fall"),
        ("coef.indptr", np.array([0, 3], dtype=np.int32), "has shape"),
        ("coef.indices", np.array([0, 3, 1], dtype=np.int32), "from 0 to 3"),
        ("coef.indices", np.array([2, 0, 1], dtype=np.int32), "must ascend within each row"),
        ("coef.indices", np.array([2, 2, 1], dtype=np.int32), "must ascend within each row"),
        ("coef.data", np.ones(2), "has shape"),
        ("starts", np.array([0, 1, 1, 2]), "has shape"),
        ("starts", np.zeros(0, dtype=np.int64), r"has shape \(0,\)"),
    ],
)
def test_what_is_not_sound_is_named(name, array, message):
    arrays = {key: value for key, value in (SOUND | {name: array}).items() if value is not None}
    blamed = (
        {"coef.indptr": "coef", "coef.data": "coef", "starts": "names"}.get(name, name)
        if message == "has shape"
        else name
    )
    with pytest.raises(ValueError, match=rf"^array '{blamed}[.a-z]*' .*{message}"):
        checked_arrays(arrays, TABLE, n_labels=2)
