"""Masked arrays, NA of pandas and nulls of polars in the data of every estimator, of metrics and of scorers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import TABLE, Case, rows_of, taking_part

from structsvm import metrics, tasks
from structsvm._adapter import as_objects
from structsvm.metrics import SCORERS

# Estimators that learn from rows, tokens or nodes of which nothing is known, by the names of their cases.
OPEN = ("sequence", "graph", "grids", "taxonomy", "ambiguous", "multilabel, tree")
WITH_ROWS = taking_part("masks", {name: case for name, case in TABLE.items() if case.has_columns})
FLAT = taking_part(
    "masks",
    {
        name: case
        for name, case in TABLE.items()
        if case.has_rows and isinstance(case.y, np.ndarray) and case.y.ndim == 1 and case.y.dtype != object
        if name not in (*OPEN, "kernel taxonomy", "structured")
    },
)


def first_masked(values):
    values = np.asarray(values)
    mask = np.zeros(values.shape, dtype=bool)
    mask.flat[0] = True
    return np.ma.array(values, mask=mask)


def first_none(values):
    values = np.array(values, dtype=object)
    values.flat[0] = None
    return values


def of_each(change, case):
    """The case's outputs with one of them changed, or one of each example's."""
    if case.has_rows:
        y = [min(candidates) for candidates in case.y] if isinstance(case.y, list) else case.y
        return change(y)
    return [change(labels) for labels in case.y]


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.filterwarnings("ignore:.*(gap|converge)")
def test_masked_labels_are_not_known(name):
    case: Case = TABLE[name]
    masked, open_ = (case.train_on(case.make(), case.X, of_each(f, case)) for f in (first_masked, first_none))
    assert masked.n_unknown_ == open_.n_unknown_ > 0
    np.testing.assert_array_equal(masked.model_.weights, open_.model_.weights)
    assert masked.score(case.X, of_each(first_masked, case)) == open_.score(case.X, of_each(first_none, case))


@FLAT
def test_masked_labels_are_refused(case):
    y = first_masked(case.y)
    with pytest.raises(ValueError, match=r"no label .* in 1 of its rows, row 0|grades must be finite"):
        case.fit_on(case.X, y)
    with pytest.raises(ValueError, match=r"no label|the label None|must be finite"):
        case.trained.score(case.X, y, **case.about(len(case.X)))


@WITH_ROWS
def test_masked_inputs_are_refused(case):
    masks = [(first_masked(x[0]), *x[1:]) if isinstance(x, tuple) else first_masked(rows_of(x)) for x in case.X]
    X = first_masked(case.X) if case.has_rows else masks
    with pytest.raises(ValueError, match="X has masked entries"):
        case.fit_on(X, case.y)
    with pytest.raises(ValueError, match="X has masked entries"):
        case.trained.predict(X)


def test_probabilities_of_masked_inputs_are_refused():
    case = TABLE["larank"]
    model = case.fit(probability=True)
    for method in (model.predict_proba, model.predict_log_proba, model.decision_function):
        with pytest.raises(ValueError, match="X has masked entries"):
            method(first_masked(case.X))


def test_masked_weights_are_refused():
    case = TABLE["larank"]
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        case.train(case.make(), sample_weight=first_masked(np.ones(len(case.X))))


MISSING = {
    "NaN": lambda y: [float("nan"), *list(y)[1:]],
    "NA": lambda y: [pd.NA, *list(y)[1:]],
    "strings of pandas": lambda y: pd.array([pd.NA, *list(y)[1:]], dtype="string"),
    "categories": lambda y: pd.Categorical([None, *list(y)[1:]]),
}


@pytest.mark.parametrize("form", MISSING.values(), ids=MISSING.keys())
@pytest.mark.parametrize("name", ["sequence", "graph", "taxonomy", "ambiguous"])
def test_missing_values_are_refused_by_fit_and_by_score(name, form):
    case = TABLE[name]
    y = of_each(form, case)
    with pytest.raises(ValueError, match=r"NaN|NA"):
        case.fit_on(case.X, y)
    model = case.trained
    with pytest.raises(ValueError, match=r"NaN|<NA>|is nan"):
        model.score(case.X, y)


def test_machines_with_kernels_know_every_label():
    case = TABLE["kernel taxonomy"]
    with pytest.raises(ValueError, match="rows without a label, and with a kernel each label must be known"):
        case.fit_on(case.X, first_masked(case.y))


def test_constants_of_masks_in_lists():
    """They stand for entries of an array that became a list."""
    case = TABLE["sequence"]
    for method in (case.make().fit, case.trained.score):
        with pytest.raises((ValueError, TypeError), match="masked"):
            method(case.X, of_each(lambda y: list(first_masked(y)), case))
    flat = TABLE["taxonomy"]
    assert flat.fit_on(flat.X, list(first_masked(flat.y))).n_unknown_ == 1


@pytest.mark.parametrize("kind", [str, int])
def test_nulls_of_polars_are_not_known(kind):
    case = TABLE["taxonomy"]
    y = case.y if kind is str else np.unique(case.y, return_inverse=True)[1]
    series = pl.Series([None, *y.tolist()[1:]])
    model, same = (case.fit_on(case.X, labels) for labels in (series, series.to_list()))
    assert model.classes_.tolist() == same.classes_.tolist() == np.unique(y).tolist() and model.n_unknown_ == 1
    np.testing.assert_array_equal(model.model_.weights, same.model_.weights)


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_missing_entries_of_matrices_of_label_sets(dtype):
    case = TABLE["multilabel, tree"]
    y = pd.DataFrame(case.y).astype(dtype)
    y.iloc[0, 1] = pd.NA
    same = case.fit_on(case.X, np.where(np.arange(case.y.size).reshape(case.y.shape) == 1, -1, case.y))
    np.testing.assert_array_equal(case.fit_on(case.X, y).model_.weights, same.model_.weights)


def test_candidates_with_none_among_them():
    case = TABLE["open taxonomy"]
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match=f"{missing} in it"):
            case.fit_on(case.X, as_objects([{missing, "a"}, *case.y[1:]]))


# ---- metrics and scorers ---------------------------------------------------------------------------

NODES = [("all", "a"), ("all", "b")]
LABELS = [
    lambda true, pred: metrics.token_accuracy([true], [pred]),
    lambda true, pred: metrics.label_report([true], [pred])["b"].precision,
    lambda true, pred: metrics.flat_f1_score([true], [pred], average="micro"),
    lambda true, pred: metrics.record_accuracy([true], [pred]),
    lambda true, pred: metrics.node_accuracy([true], [pred]),
    lambda true, pred: 1.0 - metrics.tree_loss(true, pred, NODES),
    lambda true, pred: 1.0 - metrics.path_loss(true, pred, NODES, sample_weight=[1.0, 2.0, 1.0]),
    lambda true, pred: metrics.hierarchical_scores(true, pred, NODES).f1,
]


@pytest.mark.parametrize("score", LABELS)
def test_metrics_leave_out_what_is_masked(score):
    true = np.array(["a", "b", "b"])
    assert score(true, np.array(["b", "b", "b"])) < 1.0
    assert score(first_masked(true), np.array(["b", "b", "b"])) == 1.0
    for missing in (float("nan"), pd.NA):
        with pytest.raises(ValueError, match=r": the label is (nan|<NA>); None"):
            score([missing, "b", "b"], ["b", "b", "b"])


@pytest.mark.parametrize(
    "score", [metrics.ndcg, metrics.average_precision, metrics.break_even_point, metrics.ordered_pairs]
)
def test_masked_grades_are_refused(score):
    grades, scores = np.array([2.0, 1.0, 0.0]), np.array([0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="y_true has masked entries"):
        score(first_masked(grades), scores)
    with pytest.raises(ValueError, match="y_score has masked entries"):
        score(grades, first_masked(scores))


def test_masked_predictions_are_refused():
    with pytest.raises(ValueError, match="y_pred has masked entries"):
        metrics.token_accuracy([["a", "b"]], [first_masked(["a", "b"])])
    with pytest.raises(ValueError, match="confidence has masked entries"):
        metrics.calibration_scores(first_masked([0.5, 0.6]), [True, False])


def test_scorers_know_masks():
    case = TABLE["sequence"]
    model, y = case.trained, of_each(first_masked, case)
    assert SCORERS["token_accuracy"](model, case.X, y) == model.score(case.X, y)
    two = TABLE["lasvm"]
    model = two.trained
    for y in (first_masked(two.y), [None, *two.y[1:]]):
        with pytest.raises(ValueError, match="row 0 of y has no label"):
            SCORERS["break_even_point"](model, two.X, y)


def test_documents_without_a_label_are_left_out_by_scorers():
    case = TABLE["taxonomy"]
    model, y = case.trained, first_none(case.y)
    rest = tasks.TaxonomyClassifier.score(model, case.X[1:], case.y[1:])
    assert model.score(case.X, y) == rest
    assert SCORERS["tree_loss"](model, case.X, y) == -metrics.tree_loss(
        case.y[1:], model.predict(case.X[1:]), model.taxonomy_
    )
