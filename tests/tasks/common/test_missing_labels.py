"""Rows without labels, which classifiers refuse by their number."""

import numpy as np
import pandas as pd
import pytest
from kernel_kinds import CLASSIFIERS

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
