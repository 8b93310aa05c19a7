"""C and the loss chosen by whole records: what records are, how they are scored, and that it is asked for or told."""

import numpy as np
import pytest
from sklearn.base import clone

from structsvm import load
from structsvm.metrics import record_accuracy, token_accuracy
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.common.selection.search import Held
from structsvm.tasks.sequence.preparation import prepare
from structsvm.tasks.sequence.selection.records import are_records, share_of_fields, whole

FIELDS = {"number": "0123456789", "street": "abcdef", "town": "defghi", "state": "ij"}


def records(n, seed, *, recur=False):
    """Records with up to four fields in one order, whose words are hints; with `recur` fields stand there again."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        labels = [name for name in FIELDS for _ in range(rng.integers(0, 3))] or ["town"]
        labels = labels * 2 if recur else labels
        y.append(labels)
        X.append([{"word": rng.choice(list(FIELDS[label])), "place": str(t)} for t, label in enumerate(labels)])
    return X, y


def slow_share(y):
    """The share of labels of sequences that are one run, counted by hand."""
    found = []
    for labels in y:
        runs = [label for t, label in enumerate(labels) if t == 0 or labels[t - 1] != label]
        found += [runs.count(label) == 1 for label in set(labels)]
    return np.mean(found)


@pytest.mark.parametrize("seed", range(5))
def test_fields_are_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    y = [rng.integers(0, 3, size=rng.integers(0, 6)) for _ in range(40)]
    offsets = np.cumsum([0, *map(len, y)])
    assert share_of_fields(np.concatenate(y).astype(np.int32), offsets) == slow_share(list(map(list, y)))


def test_nothing_has_no_fields():
    assert share_of_fields(np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)) == 0.0


def test_whole_records_are_those_without_an_error():
    held = whole(Held("accuracy", np.array([2.0, 1.0, 0.0]), np.array([2.0, 3.0, 0.0])))
    assert held.metric == "records"
    assert held.numerator.tolist() == [1.0, 0.0, 0.0] and held.denominator.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("n", "recur", "is_told"), [(300, False, True), (299, False, False), (300, True, False)], ids=str
)
def test_records_are_told_by_their_labels(n, recur, is_told):
    _, examples = prepare(SequenceLabeler(), *records(n, 0, recur=recur))
    assert are_records(examples) == is_told


def test_long_sequences_are_no_records():
    X, y = records(300, 0)
    X[0], y[0] = X[0] * 10_000, ["town"] * (len(X[0]) * 10_000)
    _, examples = prepare(SequenceLabeler(), X, y)
    assert not are_records(examples)


@pytest.fixture(scope="module")
def trained():
    X, y = records(400, 1)
    return {C: SequenceLabeler(C=C, random_state=0).fit(X, y) for C in ("auto", "records", "tokens")}


@pytest.mark.parametrize(("C", "metric"), [("auto", "records"), ("records", "records"), ("tokens", "accuracy")])
def test_the_criterion_is_told_or_named(trained, C, metric):
    assert trained[C].validation_["metric"] == metric
    scores = [row[1] for row in trained[C].validation_["losses"].values()]
    assert all(0.0 < score <= 1.0 for score in scores)


def test_named_and_told_records_are_the_same_choice(trained):
    assert trained["auto"].C_ == trained["records"].C_
    np.testing.assert_array_equal(trained["auto"].emission_, trained["records"].emission_)


@pytest.mark.parametrize(("C", "score"), [("records", record_accuracy), ("tokens", token_accuracy)])
def test_held_out_scores_are_those_of_the_metrics(trained, C, score):
    model, (X, y) = trained[C].model_, records(100, 2)
    _, examples = prepare(trained[C], X, y, trained[C].model_)
    held = model.choice_scores(examples)
    assert held.numerator.sum() / held.denominator.sum() == pytest.approx(score(y, trained[C].predict(X)))


def test_what_is_known_in_part_is_right_where_it_is_known(trained):
    model, (X, y) = trained["records"].model_, records(100, 3)
    known = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    _, examples = prepare(trained["records"], X, known, model)
    held = model.choice_scores(examples)
    rows = list(zip(known, trained["records"].predict(X), strict=True))
    right = [all(a in (None, b) for a, b in zip(*row, strict=True)) for row in rows]
    says = [any(label is not None for label in labels) for labels, _ in rows]
    assert held.denominator.tolist() == says and held.numerator.tolist() == [a and b for a, b in zip(right, says)]


@pytest.mark.parametrize("C", ["records", "tokens"])
def test_chunks_may_be_chosen_by_records_and_tokens(C):
    X, y = records(60, 4)
    y = [[f"B-{label}" for label in labels] for labels in y]
    usual = SequenceLabeler(random_state=0, loss="hamming").fit(X, y)
    labeler = SequenceLabeler(C=C, random_state=0, loss="hamming").fit(X, y)
    assert usual.validation_["metric"] == "F1"
    assert labeler.validation_["metric"] == {"records": "records", "tokens": "accuracy"}[C]


def test_a_file_and_a_clone_have_the_criterion(trained, tmp_path):
    trained["records"].save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.C == clone(again).C == "records" and again.C_ == trained["records"].C_


def test_weights_of_records_count(trained):
    X, y = records(300, 5)
    _, examples = prepare(SequenceLabeler(), X, y, weight=np.r_[0.0, np.ones(299)])
    assert not are_records(examples)


def test_a_criterion_leaves_no_number():
    with pytest.raises(ValueError, match=r"'auto' or 'records' or 'tokens' or None\. Got 'fields'"):
        SequenceLabeler(C="fields").fit(*records(30, 0))


def test_few_records_train_with_the_usual_number():
    labeler = SequenceLabeler(C="records", random_state=0).fit(*records(10, 0))
    assert labeler.C_ == 1.0
    assert not hasattr(labeler, "validation_")
