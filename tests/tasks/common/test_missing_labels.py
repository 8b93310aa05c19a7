"""Rows without labels, which classifiers refuse by their number."""

import numpy as np
import pandas as pd
import pytest
from kernel_kinds import CLASSIFIERS

from structsvm.metrics._counts import is_nan

X = np.random.default_rng(0).normal(size=(12, 3))
NAMES = ["a", "b"] * 6


@pytest.mark.parametrize(
    "y",
    [
        np.where(np.arange(12) % 4 == 1, np.nan, np.arange(12) % 2),
        [None if k % 4 == 1 else name for k, name in enumerate(NAMES)],
        np.array([np.nan if k % 4 == 1 else name for k, name in enumerate(NAMES)], dtype=object),
        pd.Series([pd.NA if k % 4 == 1 else name for k, name in enumerate(NAMES)]),
        pd.Series([None if k % 4 == 1 else k % 2 for k in range(12)], dtype="Int64"),
    ],
    ids=["NaN", "None", "NaN of names", "NA", "NA of numbers"],
)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_rows_without_a_label(kind, y):
    with pytest.raises(
        ValueError, match=r"y has no label \(but None, NaN, NA or -100\) in 3 of its rows, row 1 the first"
    ):
        kind().fit(X, y)


@pytest.mark.parametrize("label", ["a", ("a", (1, 2)), 1, None, {1}, np.array([np.nan, 1.0])], ids=repr)
def test_texts_numbers_and_collections_are_no_missing_labels(label):
    assert not is_nan(label)


@pytest.mark.parametrize("label", [float("nan"), np.float32("nan"), pd.NA, pd.NaT], ids=repr)
def test_missing_values_of_all_kinds(label):
    assert is_nan(label)
