"""Masks and nulls, which become None in outputs and are refused elsewhere."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from structsvm.features.inputs.masks import check_no_masks, is_masked, reads_masks, without_masks


def masked(values, mask):
    return np.ma.array(values, mask=mask)


@pytest.mark.parametrize(
    "y",
    [
        masked([1, 2, 3], [0, 1, 0]),
        masked([1.0, 2.0, 3.0], [0, 1, 0]),
        pl.Series([1, None, 3]),
        pa.array([1, None, 3]),
        pa.chunked_array([[1, None], [3]]),
    ],
    ids=["integers", "floats", "polars", "Arrow", "chunks of Arrow"],
)
def test_what_is_missing_is_none(y):
    assert without_masks(y).tolist() == [1, None, 3]
    assert [own.tolist() for own in without_masks([y, np.arange(2)])] == [[1, None, 3], [0, 1]]


def test_shapes_and_types_stay():
    grid = without_masks(masked([["a", "b"], ["c", "d"]], [[0, 0], [1, 0]]))
    assert grid.tolist() == [["a", "b"], [None, "d"]] and grid.dtype == object
    whole = without_masks(masked([1, 2], False))
    assert whole.dtype == int and not is_masked(whole)
    assert without_masks(np.ma.masked) is None


@pytest.mark.parametrize(
    "y", [[1, 2], "text", None, {"a": 1}, np.arange(3), pl.Series([1, 2]), pl.DataFrame({"a": [None]}), [[1], [2]]]
)
def test_other_outputs_are_the_same_object(y):
    assert without_masks(y) is y


def test_masked_inputs_are_counted():
    rows = masked(np.zeros((3, 2)), [[0, 1], [1, 1], [0, 0]])
    for X in (rows, [rows], (rows, [(0, 1)]), [(rows, [(0, 1)])]):
        with pytest.raises(ValueError, match=r"X has masked entries, 3 of them.*numpy.ma.filled"):
            check_no_masks(X, "X")
    check_no_masks(masked([1.0], False), "X")


def test_the_decorator_knows_arguments_by_name():
    class Learner:
        @reads_masks
        def fit(self, X, y=None, *, decoys=None):
            return y

    y = masked([1, 2], [1, 0])
    assert Learner().fit([], y).tolist() == Learner().fit([], y=y).tolist() == [None, 2]
    assert Learner().fit([]) is None
    for about in ({"X": y}, {"X": [], "decoys": y}):
        with pytest.raises(ValueError, match=f"{next(reversed(about))} has masked entries"):
            Learner().fit(**about)
