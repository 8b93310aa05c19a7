"""Columns that are no numbers: of every estimator of rows one rule, an error with the remedy or the field's reading."""

import datetime as dt
import re
from decimal import Decimal
from fractions import Fraction
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from cases import CASES, DRAWN, TABLE

from structsvm import tasks

N = 60
A = DRAWN.normal(size=(N, 4))
DAYS = np.datetime64("2020-01-01", "s") + 86400 * np.arange(N)
# One case per estimator of rows. An oracle of one's own sees X as it is.
ROWS = {
    case.kind.__name__: case
    for case in reversed(CASES.values())
    if case.has_rows and "check_n_features_in" not in case.apart
}
rows = pytest.mark.parametrize("case", ROWS.values(), ids=ROWS)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(gap|converge|C = )"),
    pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning"),
]


def frame(**columns):
    return pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "c": A[:, 2], **columns})


def quick(case):
    return case.make(**{"max_iter": 2} if "max_iter" in case.make().get_params() else {})


def fit(case, X):
    return quick(case).fit(X, case.y, **case.about(N))


NO_NUMBERS = {
    "dates": (np.repeat(DAYS[:, np.newaxis], 4, axis=1), r"X holds datetime64\[s\]; numbers are wanted: of dates"),
    "durations": (np.repeat((DAYS - DAYS[0])[:, np.newaxis], 4, axis=1), r"X holds timedelta64\[s\]; numbers"),
    "records": (np.zeros(N, dtype=[("a", "f8"), ("b", "f8")]), "records with the fields a, b; .*to_unstructured"),
    "column of dates": (frame(d=DAYS), r"the column 'd' of X holds datetime64\[s\]; numbers are wanted"),
    "dates of a zone": (
        frame(d=pd.Series(DAYS).dt.tz_localize("UTC")),
        r"the column 'd' of X holds datetime64\[s, UTC\]",
    ),
    "column of durations": (frame(d=DAYS - DAYS[0]), r"'d' of X holds timedelta64\[s\]"),
    "periods": (frame(d=pd.period_range("2020-01", periods=N, freq="M")), r"'d' of X holds period\[M\]"),
    "intervals": (frame(d=pd.interval_range(0, N)), r"'d' of X holds interval"),
    "words": (
        frame(d=np.where(A[:, 3] > 0.0, "x", "y")),
        "to float: '.', in 'd' of X; numbers are wanted.*get_dummies",
    ),
    "categories": (
        frame(d=pd.Categorical(np.where(A[:, 3] > 0.0, "x", "y"))),
        "in 'd' of X; numbers are wanted.*get_dummies",
    ),
    "dates of Python": (np.full((N, 4), dt.datetime(2020, 1, 1), dtype=object), "'datetime.datetime'; numbers are"),
    "lists": (frame(d=[[1, 2]] * N), "with a sequence, in 'd' of X; numbers are wanted"),
    "complex": (A + 0j, "Complex data not supported"),
    "missing": (frame(d=pd.array([None] + [1] * (N - 1), dtype="Int64")), "NaN"),
    "None": (np.where(np.arange(4) == 3, None, A.astype(object)), "NaN"),
}

FRAMES = {"polars": lambda pl, days: pl.DataFrame({"d": days}), "pyarrow": lambda pa, days: pa.table({"d": days})}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("days", [DAYS.astype("M8[ms]"), (DAYS - DAYS[0]).astype("m8[ms]")], ids=["dates", "durations"])
@rows
def test_dates_of_other_data_frames(case, library, days):
    X = FRAMES[library](pytest.importorskip(library), days)
    with pytest.raises(ValueError, match=r"the column 'd' of X holds .*; numbers are wanted"):
        fit(case, X)


@pytest.mark.parametrize("n_pair_features", [0, 1])
def test_dates_of_items(n_pair_features):
    days = DAYS[:2].reshape(2, 1)
    x = (A[:2], np.zeros((2, 2, 1), dtype="m8[s]")) if n_pair_features else days
    with pytest.raises(ValueError, match=r"X holds (datetime64|timedelta64)\[s\]"):
        tasks.ItemOrderer(C=0.1).fit([x] * 4, [[0, 1]] * 4)


@rows
@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_number(case, name):
    X, message = NO_NUMBERS[name]
    with pytest.raises((ValueError, TypeError), match=message):
        fit(case, X)


@rows
@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: [[Decimal(str(x)) for x in row] for row in rows],
        lambda rows: np.array([[Fraction(x) for x in row] for row in rows], dtype=object),
        lambda rows: rows.astype(object),
        lambda rows: rows.astype(str),
        lambda rows: pd.DataFrame(rows).astype("Float64"),
    ],
    ids=["Decimal", "Fraction", "object", "text", "Float64"],
)
def test_what_scikit_learn_takes_for_numbers_is_the_same_number(case, convert):
    X = A.round(2)
    scores = [quick(case).fit(rows, case.y, **case.about(N)).predict(rows) for rows in (X, convert(X))]
    assert repr(list(scores[0])) == repr(list(scores[1]))


@rows
def test_dates_in_a_prediction(case):
    model = quick(case).fit(A, case.y, **case.about(N))
    with pytest.raises(ValueError, match=r"X holds datetime64\[s\]; numbers are wanted"):
        model.predict(NO_NUMBERS["dates"][0])


WEIGHED = {name: case for name, case in TABLE.items() if "sample_weight" in signature(case.kind.fit).parameters}


@pytest.mark.parametrize("case", WEIGHED.values(), ids=WEIGHED)
@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]", "complex128"])
def test_weights_that_are_no_numbers(case, kind):
    with pytest.raises((ValueError, TypeError), match="sample_weight"):
        case.train(case.make(), sample_weight=np.ones(len(case.X)).astype(kind))


LABELLED = {name: case for name, case in ROWS.items() if name != "MultilabelClassifier"}


@pytest.mark.parametrize("case", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]"])
def test_dates_as_labels_or_grades(case, kind):
    """No model file could hold them, and grades would be numbers in whatever unit they have."""
    y = (np.arange(N) % 2).astype(kind)
    with pytest.raises(ValueError, match=f"y holds {re.escape(kind)}: labels are names or whole numbers"):
        quick(case).fit(A, y, **case.about(N))
