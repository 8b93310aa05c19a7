"""Whole sequences, and fields by runs of labels."""

import numpy as np
import pytest

from structsvm.metrics import chunk_f1, field_f1, field_f1_scorer, record_accuracy, record_accuracy_scorer
from structsvm.tasks import SequenceLabeler

TRUE = [["no", "st", "st"], ["city"], ["O", "st"], []]
FOUND = [["no", "st", "city"], ["city"], ["O", "st"], []]


def test_records_are_whole_sequences():
    assert record_accuracy(TRUE, FOUND) == 2 / 3  # an empty one says nothing
    assert record_accuracy(TRUE, TRUE) == 1.0
    assert record_accuracy([["a", None], [None], ["b", "b"]], [["a", "b"], ["a"], ["b", "a"]]) == 0.5
    with pytest.raises(ValueError, match="sequence 0: y_true has 1 labels and y_pred has 2"):
        record_accuracy([["a"]], [["a", "b"]])


def test_fields_are_runs_where_labels_have_no_scheme():
    # 3 fields are right, of 4 true and 5 found ones: no, city and the last st.
    assert field_f1(TRUE, FOUND) == pytest.approx(2 * 3 / (4 + 5))
    assert field_f1([[1, 1, 2]], [[1, 1, 2]]) == 1.0
    assert field_f1([["a", "a"]], [["a", "b"]]) == 0.0


def test_fields_are_chunks_where_labels_have_a_scheme():
    true, found = [["B-X", "B-X", "O"]], [["B-X", "I-X", "O"]]
    assert field_f1(true, found) == chunk_f1(true, found) == 0.0
    assert field_f1(true, true, "bio") == 1.0


def test_scorers_agree_with_the_functions():
    X = [np.eye(3)[[0, 1, 2]], np.eye(3)[[0, 1]]] * 5
    y = [["p", "q", "q"], ["p", "q"]] * 5
    model = SequenceLabeler(C=1.0, random_state=0).fit(X, y)
    other = [["p", "q", "p"], ["p", "q"]] * 5
    assert record_accuracy_scorer(model, X, y) == record_accuracy(y, model.predict(X))
    assert record_accuracy_scorer(model, X, other) == record_accuracy(other, model.predict(X)) == 0.5
    assert field_f1_scorer(model, X, other) == field_f1(other, model.predict(X)) < 1.0
