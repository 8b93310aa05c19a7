"""SequenceLabeler: every form of input, every option, and what it says to bad input."""

import os
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import structsvm
from structsvm import AdviceWarning, LaRank, PassiveAggressive, Perceptron
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.metrics import Scheme, chunk_f1, chunk_scores, token_accuracy
from structsvm.progress import Bar
from structsvm.solvers.run import Run
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.common import estimator
from structsvm.tasks.sequence.constraints import compiled
from structsvm.tasks.sequence.model import LEAST_READ, LEAST_SHARED, SequenceModel, n_sums


def sentences(n=40, *, seed=0, n_labels=5):
    return make_sequences(n, n_labels=n_labels, n_words=200, mean_length=8.0, random_state=seed)


X, y = sentences()
X_test, y_test = sentences(20, seed=1)


def dicts(X):
    return [[{"word": word, "tag": tag, "bias": 1.0, "long": len(word) > 3} for word, tag in s] for s in X]


def names(X):
    return [[[f"w={word}", f"t={tag}"] for word, tag in s] for s in X]


TAGS = sorted({tag for s in X + X_test for _, tag in s})


def rows(X):
    return [np.array([[float(tag == t) for t in TAGS] for _, tag in s]) for s in X]


def fitted(X=X, y=y, **params):
    lengths = params.pop("lengths", None)
    # Parameters that need no choice of C and of the loss.
    given = {"random_state": 0} | ({} if "solver" in params else {"C": 0.1, "loss": "hamming"})
    return SequenceLabeler(**given | params).fit(X, y, lengths=lengths)


# ---- forms of input ----------------------------------------------------------------------------

FORMS = {
    "words": lambda X: X,
    "dicts": dicts,
    "names": names,
    "sets": lambda X: [[set(token) for token in s] for s in names(X)],
    "tuple of tuples": lambda X: tuple(tuple(map(tuple, s)) for s in X),
    "arrays": rows,
    "int arrays": lambda X: [a.astype(np.int64) for a in rows(X)],
    "csr": lambda X: [sp.csr_array(a) for a in rows(X)],
    "coo matrix": lambda X: [sp.coo_matrix(a) for a in rows(X)],
    "columns": Columns.from_sequences,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_learns_and_predicts(form):
    model = fitted(FORMS[form](X), C=1.0)
    predicted = model.predict(FORMS[form](X_test))
    assert [len(s) for s in predicted] == [len(s) for s in y_test]
    assert token_accuracy(y_test, predicted) > 0.6
    assert len(model.feature_names_) == model.n_features_in_ == len(model.emission_)
    assert model.score(FORMS[form](X_test), y_test) == token_accuracy(y_test, predicted)


def test_numeric_forms_are_one():
    lengths = [len(s) for s in X]
    base = fitted(rows(X))
    ends = np.cumsum([0, *(len(s) for s in X_test)])
    flat = np.concatenate(rows(X_test))
    for make in (np.asarray, sp.csr_array, sp.csr_matrix, sp.coo_array):
        model = fitted(make(np.concatenate(rows(X))), lengths=lengths)
        np.testing.assert_array_equal(model.emission_, base.emission_)
        assert model.predict(make(flat), lengths=np.diff(ends)) == base.predict(rows(X_test))
    cube = np.stack([np.eye(3), np.eye(3)[::-1]])
    assert fitted(cube, [["a", "b", "c"], ["c", "b", "a"]], C=10.0).predict(cube) == [["a", "b", "c"], ["c", "b", "a"]]


def test_generators_are_encoded_as_they_come():
    model = fitted(s for s in names(X))
    assert list(model.predict(s for s in names(X_test))) == fitted(names(X)).predict(names(X_test))


def test_object_arrays_and_arrays_of_labels():
    base = fitted(names(X))
    objects = np.empty(len(X), dtype=object)
    objects[:] = names(X)
    labels = np.empty(len(y), dtype=object)
    labels[:] = y
    for X_, y_ in [
        (objects, labels),
        (names(X), [np.array(s) for s in y]),
        (names(X), tuple(map(tuple, y))),
        (names(X), [np.array(s, dtype=object) for s in y]),
    ]:
        model = fitted(X_, y_)
        assert model.classes_.tolist() == base.classes_.tolist()
        assert all(type(label) is str for s in model.predict(objects) for label in s)
        np.testing.assert_array_equal(model.emission_, base.emission_)


def test_flat_labels_beside_one_matrix():
    lengths = [len(s) for s in X]
    flat = [label for s in y for label in s]
    matrix = np.concatenate(rows(X))
    for labels in (flat, np.array(flat)):
        np.testing.assert_array_equal(fitted(matrix, labels, lengths=lengths).emission_, fitted(rows(X)).emission_)


def test_columns_with_labels_as_columns():
    columns = Columns.from_sequences(
        [[(*token, label) for token, label in zip(s, t, strict=True)] for s, t in zip(X, y, strict=True)]
    )
    model = fitted(columns.drop_last(), columns.select([2]), templates="crf++")
    assert model.classes_.tolist() == sorted({label for s in y for label in s})
    assert model.predict(columns.drop_last()) == fitted(columns.drop_last(), y, templates="crf++").predict(
        columns.drop_last()
    )
    with pytest.raises(ValueError, match="y has 3 columns"):
        fitted(columns.drop_last(), columns)


def test_values_of_features_count():
    X = [[{"x": 1.0}], [{"x": -1.0}], [{"x": 2.5}], [{"x": -0.5}]]
    assert fitted(X, [["+"], ["-"], ["+"], ["-"]], C=10.0).predict([[{"x": 0.3}], [{"x": -0.3}]]) == [["+"], ["-"]]


def test_predict_nothing():
    model = fitted(names(X))
    assert model.predict([]) == model.decision_function([]) == model.predict_kbest([], 2) == []
    greedy = fitted(names(X), inference="greedy")
    assert greedy.predict([]) == greedy.decision_function([]) == []


# ---- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rename",
    [
        lambda k: f"L{k}",
        lambda k: k - 2,
        lambda k: 2**70 + k,
        lambda k: k / 2,
        lambda k: ("chunk", k),
        lambda k: False if k == 0 else f"L{k}",
        lambda k: [False, 1, "one", ("one", 1), 2.5][k],
        lambda k: frozenset([k]),
        lambda k: bytes([k]),
        lambda k: np.int64(k),
        lambda k: np.str_(f"L{k}"),
        lambda k: f"étiquette-{k}-標籤",
    ],
)
def test_labels_of_any_hashable_type(rename):
    numbers = {label: k for k, label in enumerate(sorted({label for s in y for label in s}))}
    renamed = [[rename(numbers[label]) for label in s] for s in y]
    model = fitted(names(X), renamed, C=0.1, unknown=None)  # the metric that chooses C depends on the labels
    plain = fitted(names(X), y, C=0.1)
    assert set(model.classes_) == {label for s in renamed for label in s}
    assert all(type(label).__module__ != "numpy" for s in model.predict(names(X)) for label in s)
    back = {rename(k): label for label, k in numbers.items()}
    if list(map(back.__getitem__, model.classes_.tolist())) == plain.classes_.tolist():
        assert [[back[label] for label in s] for s in model.predict(names(X))] == plain.predict(names(X))
    assert model.score(names(X), renamed) > 0.9


@pytest.mark.filterwarnings("ignore:all .* labels in y are the same")
def test_one_label_only():
    for params in (
        {},
        {"inference": "greedy"},
        {"solver": "perceptron"},
        {"solver": "passive_aggressive"},
        {"order": 2},
    ):
        model = fitted(names(X), [["O"] * len(s) for s in X], **params)
        assert model.predict(names(X_test)) == [["O"] * len(s) for s in X_test]
        assert model.score(names(X_test), [["O"] * len(s) for s in X_test]) == 1.0


# ---- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"inference": "exact", "order": 1},
        {"inference": "exact", "order": 2},
        {"inference": "exact", "features": TokenFeatures(end=True)},
        {"inference": "exact", "loss": "zero_one"},
        {"inference": "greedy", "order": 0},
        {"inference": "greedy", "order": 2},
        {"inference": "greedy", "order": 10},
    ],
)
@pytest.mark.parametrize(
    "solver",
    [
        "larank",
        "passive_aggressive",
        "perceptron",
        LaRank(C=0.5, schedule="fixed", n_reprocess=2),
        LaRank(C=0.5, schedule="adaptive"),
        LaRank(C=0.5, rescaling="slack"),
        LaRank(C=0.5, penalty="quadratic"),
        PassiveAggressive(C=0.5, average=True),
        Perceptron(average=False),
    ],
    ids=repr,
)
def test_every_inference_with_every_solver(params, solver):
    if isinstance(solver, str):
        params = params | {"random_state": 0}
    else:
        solver.set_params(random_state=0)
        params = params | {"random_state": None}
    model = fitted(names(X), solver=solver, **params)
    again = fitted(names(X), solver=solver, **params)
    np.testing.assert_array_equal(model.model_.weights, again.model_.weights)
    assert model.score(names(X), y) > 0.7
    assert model.score(names(X_test), y_test) > 0.5
    assert model.n_iter_ == model.result_.n_iter >= 1
    K = len(model.classes_)
    assert model.emission_.shape == (model.n_features_in_, K)
    assert model.transition_.shape == (K, K)
    assert model.emission_.dtype == model.transition_.dtype == np.float32


def test_min_count_drops_and_hashing_bounds():
    assert fitted(names(X), features=TokenFeatures(min_count=3)).n_features_in_ < fitted(names(X)).n_features_in_
    assert fitted(names(X), features=TokenFeatures(hash_bits=6)).n_features_in_ == 64
    assert fitted(names(X), features=TokenFeatures(hash_bits=12)).score(names(X), y) > 0.9
    with pytest.raises(ValueError, match="min_count=1000000"):
        fitted(names(X), features=TokenFeatures(min_count=1_000_000))


def test_tol_stops_with_a_certificate():
    model = fitted(names(X), tol=0.01, max_iter=500)
    assert model.result_.status == "converged"
    assert 0.0 <= model.result_.relative_gap <= 0.01


def test_sample_weight_counts_copies():
    weight = np.ones(len(X))
    weight[::2] = 3.0
    copies = [i for i in range(len(X)) for _ in range(int(weight[i]))]
    tight = {"tol": 1e-4, "max_iter": 5000, "C": 0.05}
    weighted = SequenceLabeler(random_state=0, **tight).fit(names(X), y, sample_weight=weight)
    copied = fitted([names(X)[i] for i in copies], [y[i] for i in copies], **tight)
    assert weighted.result_.primal == pytest.approx(copied.result_.primal, rel=3e-4)
    for inference in ("exact", "greedy"):
        only = np.zeros(len(X))
        only[:5] = 1.0
        some = SequenceLabeler(random_state=0, inference=inference, C=1.0).fit(names(X), y, sample_weight=only)
        assert some.score(names(X)[:5], y[:5]) > some.score(names(X)[5:], y[5:])
        assert some.score(names(X), y, sample_weight=only) == pytest.approx(some.score(names(X)[:5], y[:5]))


def test_class_weight_is_the_cost_of_an_error():
    # Costs of 2 at w are costs of 1 at w / 2: primal(2 D, C) = 4 primal(D, C / 2).
    tight = {"tol": 1e-4, "max_iter": 5000}
    double = fitted(names(X), C=0.1, class_weight=dict.fromkeys({label for s in y for label in s}, 2.0), **tight)
    single = fitted(names(X), C=0.05, **tight)
    assert double.result_.primal == pytest.approx(4.0 * single.result_.primal, rel=3e-4)
    balanced = fitted(names(X), class_weight="balanced")
    counts = {c: sum(s.count(c) for s in y) for c in balanced.classes_}
    n = sum(counts.values())
    by_hand = fitted(names(X), class_weight={c: n / (len(counts) * count) for c, count in counts.items()})
    np.testing.assert_array_equal(balanced.emission_, by_hand.emission_)


def test_the_history_of_labels_is_seen():
    """Tokens that say nothing: only the labels before tell, and only a history long enough sees them."""
    pattern = list("AABB") * 5
    X, y = [[["bias"]] * 20] * 10, [pattern] * 10
    long = fitted(X, y, inference="greedy", order=4, C=10.0, max_iter=50)
    assert long.predict(X[:1]) == [pattern]
    second = fitted(X, y, order=2, C=10.0, max_iter=50)
    assert second.predict(X[:1]) == [pattern]
    assert fitted(X, y, C=10.0, max_iter=50).score(X, y) < 1.0


# ---- bigrams -----------------------------------------------------------------------------------


def switches(n, *, seed):
    """The first word of a sequence is its label; "keep" and "turn" say what becomes of the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels, words = [], []
        for t in range(int(rng.integers(2, 9))):
            turn = rng.random() < 0.5
            labels.append(str(rng.choice(["A", "B"])) if t == 0 else "AB"[(labels[-1] == "A") == turn])
            words.append(labels[0] if t == 0 else "turn" if turn else "keep")
        X.append(words)
        y.append(labels)
    return X, y


@pytest.mark.parametrize("form", ["templates", "dicts", "names", "hashed"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"order": 2},
        {"loss": "log", "C": 10.0},
        {"loss": "zero_one"},
        {"inference": "greedy"},
        {"inference": "greedy", "order": 0},
        {"constraints": (np.ones((2, 2), dtype=bool), np.array([True, False]), None), "broken": "predict"},
    ],
)
def test_bigrams_tell_what_becomes_of_the_label_before(form, params, tmp_path):
    def made(X):
        if form in ("templates", "hashed"):
            return Columns.from_sequences([[(word,) for word in s] for s in X])
        return [[{"word": word} if form == "dicts" else [f"word={word}"] for word in s] for s in X]

    text = "U0:%x[0,0]\nB\nB0:%x[0,0]\n"
    with_them = {
        "dicts": {"features": TokenFeatures(bigrams="word")},
        "names": {"features": TokenFeatures(bigrams=["word"])},
        "templates": {"templates": text},
        "hashed": {"templates": text, "features": TokenFeatures(hash_bits=8)},
    }
    without = {"templates": {"templates": "U0:%x[0,0]\nB\n"}}
    (X, y), (X_test, y_test) = switches(60, seed=0), switches(40, seed=1)
    if "constraints" in params:
        X_test, y_test = zip(*(pair for pair in zip(X_test, y_test, strict=True) if pair[1][0] == "A"), strict=True)
    params = {"C": 1.0, "max_iter": 10} | params
    model = fitted(made(X), y, **params, **with_them[form])
    assert model.score(made(X_test), y_test) > 0.99
    assert fitted(made(X), y, **params, **without.get(form, {})).score(made(X_test), y_test) < 0.9
    assert model.bigram_.shape == (len(model.bigram_names_), 2, 2)
    if form != "hashed":
        turn = model.bigram_[[name.endswith("turn") for name in model.bigram_names_].index(True)]
        assert turn[0, 1] > turn[0, 0] and turn[1, 0] > turn[1, 1]
        assert len(model.bigram_names_) == 2  # bigrams of first words count for nothing
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(made(X_test)) == model.predict(made(X_test))
    assert loaded.bigram_names_ == model.bigram_names_


def test_bigram_templates_that_no_token_has_change_nothing():
    columns, plain = Columns.from_sequences(X), "U0:%x[0,0]\nB\n"
    without = fitted(columns, y, templates=plain)
    model = fitted(columns, y, templates=plain + "B0:%hyphen[0,0]/%digit[0,0]/%x[-1,0]\n")
    assert model.model_.oracle.n_bigrams == 0
    np.testing.assert_array_equal(model.model_.weights, without.model_.weights)


# ---- constraints -------------------------------------------------------------------------------


def is_bio(labels):
    before = "O"
    for label in labels:
        if label.startswith("I-") and before[2:] != label[2:]:
            return False
        before = label
    return True


def bioes(labels):
    """BIO to BIOES."""
    out = []
    for label, after in pairwise([*labels, "O"]):
        goes_on = after == "I-" + label[2:]
        if label == "O":
            out.append(label)
        elif label[0] == "B":
            out.append(("B" if goes_on else "S") + label[1:])
        else:
            out.append(("I" if goes_on else "E") + label[1:])
    return out


def is_bioes(labels):
    open_ = None
    for label in labels:
        prefix, kind = label[0], label[2:]
        if open_ is not None and (prefix not in "IE" or kind != open_):
            return False
        if open_ is None and prefix in "IE":
            return False
        open_ = kind if prefix in "BI" else None
    return open_ is None


# Few passes, and labels that lie: left alone, the model predicts what is no BIO.
noisy = np.random.default_rng(0)
X_noise = [[[f"n{noisy.integers(3)}"] for _ in range(12)] for _ in range(200)]


@pytest.mark.parametrize("params", [{}, {"order": 2}, {"inference": "greedy"}, {"inference": "greedy", "order": 0}])
def test_bio_is_never_broken(params):
    free = fitted(names(X), max_iter=1, **params)
    model = fitted(names(X), max_iter=1, constraints="bio", **params)
    shuffled = [[s[i] for i in noisy.permutation(len(s))] for s in names(X_test)]
    assert all(map(is_bio, model.predict(shuffled)))
    assert not all(map(is_bio, free.predict(shuffled)))


@pytest.mark.parametrize("params", [{}, {"order": 2}])
def test_bioes_is_never_broken(params):
    labels = [bioes(s) for s in y]
    assert all(map(is_bioes, labels))
    free = fitted(names(X), labels, max_iter=1, **params)
    model = fitted(names(X), labels, max_iter=1, constraints="bioes", **params)
    shuffled = [[s[i] for i in noisy.permutation(len(s))] for s in names(X_test)]
    assert all(map(is_bioes, model.predict(shuffled)))
    assert not all(map(is_bioes, free.predict(shuffled)))
    assert all(is_bioes(path) for found in model.predict_kbest(shuffled, 4) for path, _ in found)


def test_masks_are_never_broken():
    seen = {pair for s in y for pair in pairwise(s)}
    classes = sorted({label for s in y for label in s})
    transitions = np.array([[(a, b) in seen for b in classes] for a in classes])
    first = np.array([c in {s[0] for s in y} for c in classes])
    last = np.array([c in {s[-1] for s in y} for c in classes])
    model = fitted(names(X), constraints=(transitions, first, last))
    for s in model.predict(names(X_test)):
        assert set(pairwise(s)) <= seen
        assert first[classes.index(s[0])] and last[classes.index(s[-1])]
    assert fitted(names(X), constraints=(None, first, None)).score(names(X), y) > 0.8


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_training_data_that_break_constraints(inference):
    broken = [list(s) for s in y]
    broken[7] = ["O", "I-NP"] + ["O"] * (len(broken[7]) - 2)
    with pytest.raises(
        ValueError, match="sequence 7: the constraints do not allow its label 'I-NP' at token 1, after 'O'"
    ):
        fitted(names(X), broken, constraints="bio", inference=inference)
    with pytest.raises(ValueError, match=r"sequence 0: .*at token 0"):
        fitted([[["a"]]], [["I-X"]], constraints="bio", inference=inference)
    with pytest.raises(ValueError, match=r"Correct the data; or constraints='bio', the scheme of labels whose tags"):
        fitted(names(X), y, constraints="bioes", inference=inference)
    with pytest.raises(ValueError, match=r"Correct the data; or broken='repair'"):
        fitted([[["a"]], [["a"]]], [["I-X"], ["S-X"]], constraints="bioes", inference=inference)


@pytest.mark.parametrize("loss", ["auto", "hamming"])
def test_errors_name_sequences_of_the_whole_where_C_is_chosen_on_a_part(loss):
    words, labels = [[["a"], ["b"]]] * 30, [["B-X", "I-X"]] * 28 + [["O", "I-X"]] * 2
    with pytest.raises(ValueError, match="sequence 28: the constraints do not allow its label 'I-X' at token 1"):
        SequenceLabeler(loss=loss, constraints="bio", random_state=0).fit(words, labels)


@pytest.mark.parametrize(
    ("scheme", "labels", "wanted"),
    [
        ("bio", "I-A I-A O I-B", "B-A I-A O B-B"),
        ("bio", "B-A I-B I-B B-B", "B-A B-B I-B B-B"),
        ("bio", "O O", "O O"),
        ("bioes", "B-A I-A O B-A E-A S-B", "B-A E-A O B-A E-A S-B"),
        ("bioes", "I-A E-A I-A B-B O S-A I-A", "B-A E-A S-A S-B O S-A S-A"),
        ("bioes", "E-A E-A", "S-A S-A"),
    ],
)
def test_repairs_keep_the_chunks(scheme, labels, wanted):
    labels, wanted = labels.split(), wanted.split()
    repaired = Scheme(scheme).repaired
    assert repaired(labels) == wanted == repaired(wanted)
    (transitions, first, last), number = compiled(scheme, sorted(set(wanted))).masks, sorted(set(wanted)).index
    assert first[number(wanted[0])] and last[number(wanted[-1])]
    assert all(transitions[number(a), number(b)] for a, b in pairwise(wanted))
    assert set(wanted) == {"O"} or chunk_scores([labels], [wanted]).f1 == 1.0


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_what_becomes_of_broken_labels(inference, tmp_path):
    broken, right = [list(s) for s in y], [list(s) for s in y]
    k = next(k for k, s in enumerate(y) if len(s) > 3)
    broken[k][:3], right[k][:3] = ["I-NP", "I-NP", "I-VP"], ["B-NP", "I-NP", "B-VP"]
    broken[k][3:] = right[k][3:] = ["O"] * (len(y[k]) - 3)
    options = {"C": 0.1, "constraints": "bio", "inference": inference, "max_iter": 2}
    model = fitted(names(X), broken, broken="repair", **options)
    assert np.array_equal(model.model_.weights, fitted(names(X), right, **options).model_.weights)
    model = fitted(names(X), broken, broken="predict", **options)
    free = fitted(names(X), broken, C=0.1, inference=inference, max_iter=2)
    assert np.array_equal(model.model_.weights, free.model_.weights)
    for labels in model.predict(names(X)):
        assert Scheme("bio").repaired(labels) == labels
    model.save(tmp_path / "model", training_state=True)
    again = structsvm.load(tmp_path / "model").set_params(warm_start=True)
    whole = fitted(names(X), broken, broken="predict", **options | {"max_iter": 4})
    assert np.array_equal(again.fit(names(X), broken).model_.weights, whole.model_.weights)
    with pytest.raises(ValueError, match=r"broken='repair' makes the label 'B-X', which is not one of the labels"):
        SequenceLabeler(broken="repair", **options).partial_fit([[["a"]]], [["I-X"]], classes=["I-X", "O"])
    with pytest.raises(ValueError, match=r"broken='repair' needs constraints='bio' or another"):
        fitted(names(X), y, constraints=(None, None, None), broken="repair")


def test_a_repair_brings_the_labels_that_it_needs():
    model = fitted([[["a"], ["b"]], [["b"]]], [["I-X", "O"], ["O"]], constraints="bio", broken="repair")
    assert model.classes_.tolist() == ["B-X", "I-X", "O"]
    assert model.predict([[["a"], ["b"]]]) == [["B-X", "O"]]


def test_constraints_of_a_wrong_kind():
    with pytest.raises(
        TypeError, match=r"need labels that are strings, such as 'B-NP'.*Got 1 of type int.*feature\.names"
    ):
        fitted([[["a"]]], [[1]], constraints="bio")
    with pytest.raises(ValueError, match="three masks"):
        fitted(names(X), constraints=(None, None))
    with pytest.raises(ValueError, match=r"'allowed_first'.*boolean array of shape"):
        fitted(names(X), constraints=(None, np.ones(2, dtype=bool), None))


# ---- partly known labels, k best, margins ------------------------------------------------------


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_allowed_labels(inference):
    model = fitted(names(X), inference=inference)
    free = model.predict(names(X_test))
    assert model.predict(names(X_test), allowed=[None] * len(X_test)) == free
    assert model.predict(names(X_test), allowed=[[None] * len(s) for s in X_test]) == free
    assert model.predict(names(X_test), allowed=y_test) == y_test
    wanted = [[{"O", "B-NP"} if t % 2 else None for t in range(len(s))] for s in X_test]
    for s in model.predict(names(X_test), allowed=wanted):
        assert set(s[1::2]) <= {"O", "B-NP"}
    tuples = [[("O", "B-NP")] * len(s) for s in X_test]
    assert {label for s in model.predict(names(X_test), allowed=tuples) for label in s} <= {"O", "B-NP"}


def test_allowed_labels_that_are_tuples():
    labels = [[("L", label) for label in s] for s in y]
    model = fitted(names(X), labels)
    assert model.predict(names(X), allowed=labels) == labels


def test_allowed_says_what_is_wrong():
    model = fitted(names(X), n_jobs=2)
    with pytest.raises(ValueError, match="X has 20 sequences, allowed has 3"):
        model.predict(names(X_test), allowed=[None] * 3)
    allowed = [None] * len(X_test)
    with pytest.raises(ValueError, match=f"sequence 15 has {len(X_test[15])} tokens, but allowed has 1 for it"):
        model.predict(names(X_test), allowed=[*allowed[:15], [None], *allowed[16:]])
    with pytest.raises(ValueError, match="sequence 1, token 0: 'B-XX' is not one of the labels"):
        model.predict(names(X_test), allowed=[None, ["B-XX"] * len(X_test[1]), *allowed[2:]])
    with pytest.raises(ValueError, match="sequence 0, token 0: no label is allowed"):
        model.predict(names(X_test), allowed=[[[]] * len(X_test[0]), *allowed[1:]])


@pytest.mark.parametrize("params", [{}, {"order": 2}, {"features": TokenFeatures(end=True)}, {"constraints": "bio"}])
def test_kbest_and_margins_agree_with_predict(params):
    model = fitted(names(X), max_iter=1, **params)
    predicted = model.predict(names(X_test))
    best = model.predict_kbest(names(X_test), 1)
    assert [found[0][0] for found in best] == predicted
    margins = model.decision_function(names(X_test))
    for labels, found, table in zip(predicted, model.predict_kbest(names(X_test), 5), margins, strict=True):
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(path) for path, _ in found}) == len(found) <= 5
        assert table.shape == (len(labels), len(model.classes_))
        assert table.max() == 0.0
        np.testing.assert_array_equal(table.max(axis=1), 0.0)
        assert model.classes_[table.argmax(axis=1)].tolist() == labels
        if len(found) > 1:  # the second best labelling differs somewhere, by the smallest margin of all
            runner_up = np.sort(table, axis=1)[:, -2].max()
            assert runner_up == pytest.approx(scores[1] - scores[0], abs=1e-4)


def test_kbest_runs_out():
    model = fitted([[["a"], ["b"]]], [["A", "B"]])
    found = model.predict_kbest([[["a"], ["b"]]], 100)
    assert len(found[0]) == 4
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got 0"):
        model.predict_kbest([[["a"]]], 0)
    only = model.predict_kbest([[["a"], ["b"]]], 9, allowed=[[["A"], None]])[0]
    assert sorted(path for path, _ in only) == [["A", "A"], ["A", "B"]]


def test_greedy_margins():
    model = fitted(names(X), inference="greedy")
    for labels, table in zip(model.predict(names(X_test)), model.decision_function(names(X_test)), strict=True):
        assert model.classes_[table.argmax(axis=1)].tolist() == labels
        np.testing.assert_array_equal(table.max(axis=1), 0.0)
    with pytest.raises(ValueError, match="predict_kbest needs inference='exact'"):
        model.predict_kbest(names(X_test), 2)


# ---- going on ----------------------------------------------------------------------------------

SOLVERS = [
    LaRank(C=0.1),
    LaRank(C=0.1, average=False),
    LaRank(C=0.1, n_reprocess=0.3),
    LaRank(C=0.1, schedule="fixed", n_reprocess=3),
    LaRank(C=0.1, schedule="fixed", n_reprocess=3, average=False),
    LaRank(C=0.1, schedule="adaptive"),
    LaRank(C=0.1, penalty="quadratic", rescaling="slack"),
    PassiveAggressive(C=0.1),
    PassiveAggressive(C=0.1, average=True),
    Perceptron(),
    Perceptron(average=False),
]


@pytest.mark.parametrize("inference", ["exact", "greedy"])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize(("mmap", "bigrams"), [(False, None), (True, None), (True, ["w", "t"])])
def test_going_on_is_one_run_bit_for_bit(tmp_path, inference, solver, mmap, bigrams):
    def labeler(passes, **params):
        return SequenceLabeler(
            solver=type(solver)(**solver.get_params() | {"max_iter": passes, "random_state": 3}),
            inference=inference,
            features=TokenFeatures(bigrams=bigrams),
            **params,
        )

    whole = labeler(5).fit(names(X), y)
    part = labeler(2, warm_start=True).fit(names(X), y)
    part.save(tmp_path / "part.model", training_state=True)
    loaded = SequenceLabeler.load(tmp_path / "part.model", mmap=mmap)
    assert loaded.warm_start and loaded.solver.max_iter == 2
    loaded.set_params(solver__max_iter=3).fit(names(X), y)
    part.set_params(solver__max_iter=3).fit(names(X), y)
    for model in (part, loaded):
        np.testing.assert_array_equal(model.model_.weights, whole.model_.weights)
        assert (model.result_.primal, model.result_.dual) == pytest.approx(
            (whole.result_.primal, whole.result_.dual), nan_ok=True, rel=0
        )
        assert model.n_iter_ == whole.n_iter_ == 5
        assert model.result_.n_support == whole.result_.n_support


def test_going_on_by_solver_name():
    whole = fitted(names(X), max_iter=4)
    part = fitted(names(X), max_iter=1, warm_start=True)
    for _ in range(3):
        part.fit(names(X), y)
    np.testing.assert_array_equal(part.model_.weights, whole.model_.weights)


def test_without_warm_start_fit_begins_anew():
    model = fitted(names(X))
    weights = model.model_.weights
    np.testing.assert_array_equal(model.fit(names(X), y).model_.weights, weights)


def test_going_on_with_other_data_or_parameters():
    model = fitted(names(X), warm_start=True, max_iter=1)
    weights = model.model_.weights.copy()
    for other_X, other_y in ((names(X_test), y_test), (names(X), [s[::-1] for s in y])):
        again = pickle.loads(pickle.dumps(model))
        known = [i for i, s in enumerate(other_y) if set(s) <= set(model.classes_)]
        batch = [other_X[i] for i in known], [other_y[i] for i in known]
        stream = pickle.loads(pickle.dumps(model)).partial_fit(*batch)
        np.testing.assert_array_equal(again.fit(*batch).model_.weights, stream.model_.weights)
        assert again.n_iter_ == 1
    for params in (
        {"order": 2},
        {"inference": "greedy"},
        {"features": TokenFeatures(end=True)},
        {"loss": "zero_one"},
        {"constraints": "bio"},
        {"class_weight": {"O": 2.0}},
        {"templates": "crf++"},
    ):
        model.set_params(**params)
        what = "end" if "features" in params else next(iter(params))
        with pytest.raises(ValueError, match=f"another '{what}'"):
            model.fit(names(X), y)
        model.set_params(**{name: getattr(SequenceLabeler(), name) for name in params})
    np.testing.assert_array_equal(model.model_.weights, weights)
    smaller = pickle.loads(pickle.dumps(model)).set_params(C=1e-6).fit(names(X), y)
    assert smaller.n_iter_ == 2
    assert 0.0 < smaller.result_.dual <= smaller.result_.primal * (1.0 + 1e-7)  # but for rounding
    assert np.abs(smaller.model_.weights).max() < np.abs(weights).max()
    model.set_params(C=None).fit(names(X), y)
    assert model.n_iter_ == 2


def test_partial_fit_streams(tmp_path):
    classes = sorted({label for s in y + y_test for label in s})
    batches = [(names(X)[a : a + 10], y[a : a + 10]) for a in range(0, 40, 10)]
    for params in (
        {"features": TokenFeatures(hash_bits=14)},
        {"features": TokenFeatures(hash_bits=14), "inference": "greedy"},
        {"features": TokenFeatures(hash_bits=14), "solver": "perceptron"},
    ):
        model = SequenceLabeler(random_state=0, **params)
        other = SequenceLabeler(random_state=0, **params)
        for k, (X_, y_) in enumerate(batches):
            model.partial_fit(X_, y_, classes=classes)
            other.partial_fit(X_, y_, classes=classes)
            other.save(tmp_path / f"{k}.model")
            other = SequenceLabeler.load(tmp_path / f"{k}.model")
            np.testing.assert_array_equal(model.model_.weights, other.model_.weights)
            assert model.n_iter_ == 1
        assert model.score(names(X), y) > 0.85
        assert model.predict(names(X_test)) == other.predict(names(X_test))


def test_partial_fit_names_unknown_labels():
    model = SequenceLabeler(random_state=0).partial_fit([[["a"]]], [["A"]])
    with pytest.raises(ValueError, match="label 'B' is not one of the model's labels"):
        model.partial_fit([[["a"]]], [["B"]])
    model = SequenceLabeler(random_state=0).partial_fit([[["a"]]], [["A"]], classes=["A", "B"])
    model.partial_fit([[["a"], ["new"]]], [["B", "B"]])
    assert model.classes_.tolist() == ["A", "B"]
    with pytest.raises(ValueError, match="class_weight='balanced' needs the counts"):
        SequenceLabeler(class_weight="balanced").partial_fit([[["a"]]], [["A"]])


# ---- Ctrl-C ------------------------------------------------------------------------------------

X_long, y_long = make_sequences(2000, random_state=0)


@pytest.mark.parametrize("params", [{}, {"inference": "greedy"}, {"solver": "perceptron"}, {"tol": 1e-9}])
def test_ctrl_c_leaves_a_partial_model(params, tmp_path, monkeypatch):
    model = SequenceLabeler(None, random_state=0, max_iter=100_000, **params)
    columns = Columns.from_sequences(X_long)
    raised, begun, start_pass = [], [], Run.start_pass

    def interrupt():
        raised.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.05, interrupt)

    def starts(run):
        begun.append(run)
        if len(begun) == 3:
            timer.start()
        start_pass(run)

    monkeypatch.setattr(Run, "start_pass", starts)
    try:
        with pytest.raises(KeyboardInterrupt, match="warm_start=True, where it has that, resumes") as caught:
            model.fit(columns, y_long)
        late = time.process_time() - raised[0]
    finally:
        timer.cancel()
    assert "training was interrupted after" in str(caught.value)
    # The promise is 0.2 s; a slow machine gets more. What Ctrl-C must never wait for is the end of a run.
    assert late < 2.0
    assert model.result_.status == "interrupted"
    assert model.score(columns[:100], y_long[:100]) > 0.5
    model.save(tmp_path / "partial.model", training_state=True)
    loaded = SequenceLabeler.load(tmp_path / "partial.model")
    np.testing.assert_array_equal(loaded.model_.weights, model.model_.weights)
    loaded.set_params(warm_start=True, max_iter=1, tol=None).fit(columns, y_long)
    assert loaded.n_iter_ == model.n_iter_ + 1
    assert loaded.result_.status == "max_iter"


# ---- threads -----------------------------------------------------------------------------------


BIGRAM_TEMPLATES = "U0:%x[0,0]\nU1:%x[0,1]\nB\nB0:%x[0,0]\nB1:%x[-1,1]\n"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"inference": "greedy"},
        {"features": TokenFeatures(hash_bits=10)},
        {"order": 2},
        {"templates": BIGRAM_TEMPLATES},
    ],
)
@pytest.mark.parametrize("form", ["dicts", "columns", "arrays"])
def test_sixteen_threads_share_one_model(form, params, tmp_path):
    if form == "arrays" and "features" in params:
        params = {}
    if form != "columns" and "templates" in params:
        params = {"features": TokenFeatures(bigrams="tag" if form == "dicts" else ["0", "3"])}
    fitted(FORMS[form](X), **params).save(tmp_path / "m")
    data = FORMS[form](X_test)
    serial = SequenceLabeler.load(tmp_path / "m").predict(data)
    model = SequenceLabeler.load(tmp_path / "m")  # its caches are empty: all threads fill them at once
    start = threading.Barrier(16)

    def work(_):
        start.wait()
        return [model.predict(data) for _ in range(5)]

    with ThreadPoolExecutor(16) as pool:
        assert all(found == serial for runs in pool.map(work, range(16)) for found in runs)


@pytest.mark.parametrize("shared_from", [0, LEAST_SHARED])
@pytest.mark.parametrize("form", FORMS)
def test_n_jobs_changes_nothing(form, shared_from, monkeypatch):
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_SHARED", shared_from)
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_READ", shared_from)
    monkeypatch.setattr("structsvm.tasks.sequence.model.PART", 7)
    data = FORMS[form](X_test)
    model = fitted(FORMS[form](X))
    serial = model.predict(data)
    for n_jobs in (2, 3, 50, -1):
        assert model.set_params(n_jobs=n_jobs).predict(data) == serial
        assert model.predict(data, allowed=y_test) == y_test


@pytest.mark.parametrize(("more", "n_threads"), [(1, 1), (0, 2)])
def test_threads_begin_where_there_is_work_for_them(more, n_threads, monkeypatch):
    model, threads = fitted(names(X)), set()
    split, serial = SequenceModel.split, model.predict(names(X_test))
    enough = n_sums(model.model_.encode(names(X_test)), len(model.classes_)) + more
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_SHARED", enough)
    monkeypatch.setattr(SequenceModel, "split", lambda *given: threads.add(threading.get_ident()) or split(*given))
    assert model.set_params(n_jobs=2).predict(names(X_test)) == serial
    assert len(threads) == n_threads


@pytest.mark.parametrize(("more", "n_threads"), [(1, 1), (0, 2)])
def test_threads_read_where_there_is_work_for_them(more, n_threads, monkeypatch):
    model, threads = fitted(names(X)), set()
    split, serial = SequenceModel.split, model.predict(names(X_test))
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_READ", sum(map(len, X_test)) + more)
    monkeypatch.setattr(SequenceModel, "split", lambda *given: threads.add(threading.get_ident()) or split(*given))
    assert model.set_params(n_jobs=2).predict(names(X_test)) == serial
    assert len(threads) == n_threads


@pytest.mark.parametrize("n_unknown", [20, 30])
def test_unknown_tokens_are_counted_in_all_parts(n_unknown, monkeypatch):
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_READ", 0)
    known, unknown = [{"w": "a"}], [{"w": "never"}]
    model = SequenceLabeler(C=1.0, random_state=0, n_jobs=2).fit([known * 2, [{"w": "b"}]], [["A", "A"], ["B"]])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.predict([known] * (40 - n_unknown) + [unknown] * n_unknown)
    assert [str(one.message)[:21] for one in said] == ["30 of 40 tokens have "] * (n_unknown == 30)


@pytest.mark.parametrize("least", [0, LEAST_READ])
def test_errors_in_threads_count_sequences_from_the_first(least, monkeypatch):
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_READ", least)
    model = fitted(names(X), n_jobs=4)
    for wrong, error, message in (
        ([{"w": np.nan}], ValueError, "sequence 17, token 0: "),
        ([{}, {1: "a"}], TypeError, "sequence 17, token 1: "),
        ("text", TypeError, "sequence 17 must be a list of tokens"),
    ):
        broken = names(X_test)
        broken[17] = wrong
        with pytest.raises(error, match=message):
            model.predict(broken)


def test_sequences_without_a_labelling_have_the_users_numbers(monkeypatch):
    monkeypatch.setattr("structsvm.tasks.sequence.model.LEAST_READ", 0)
    pairs = [[{"w": "a"}, {"w": "b"}] for _ in range(40)]
    model = SequenceLabeler(C=1.0, constraints="(A B)*", random_state=0, n_jobs=2).fit(pairs, [["A", "B"]] * 40)
    for odd in ([30], [35, 30]):
        X = [x[:1] if i in odd else x for i, x in enumerate(pairs)]
        with pytest.raises(ValueError, match="sequence 30"):
            model.predict(X)


# ---- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([], [], ValueError, "X contains no sequences"),
        ([[["a"]], []], [["A"], []], ValueError, "sequence 1 is empty"),
        ([[["a"]], [["a"], ["b"]]], [["A"], ["A"]], ValueError, "sequence 1 has 2 tokens but 1 labels"),
        ([[["a"]], [["a"]]], [["A"]], ValueError, "X has 2 sequences, y has 1"),
        ([[["a"]]], None, ValueError, "requires y to be passed, but the target y is None"),
        ([[["a"]]], ["A"], TypeError, "for sequence 0 it holds 'A'"),
        ([[["a"], ["b"]]], [1], TypeError, "y must hold a list of labels for each sequence"),
        ([[["a"]]], [[bytearray(b"A")]], TypeError, r"labels must be hashable .*got bytearray\(b'A'\)"),
        ([[["a"]]], [[float("nan")]], ValueError, "y holds NaN as a label"),
        ([[{"x": float("nan")}]], [["A"]], ValueError, "sequence 0, token 0: feature 'x' has the value nan"),
        ([[{"x": float("inf")}]], [["A"]], ValueError, "sequence 0, token 0: feature 'x' has the value inf"),
        ([[{"x": 1e300}]], [["A"]], ValueError, "sequence 0, token 0: feature 'x'"),
        ([np.array([[1.0, np.nan]])], [["A"]], ValueError, "sequence 0, token 0: feature '1' has the value nan"),
        ([[["a"]], [[object()]]], [["A"], ["A"]], TypeError, "sequence 1, token 0: names of features must be strings"),
        ([[{"x": 1j}]], [["A"]], TypeError, "sequence 0, token 0: feature 'x'"),
        ([[{1: "x"}]], [["A"]], TypeError, "sequence 0, token 0: names of features must be strings"),
        ([[3.5]], [["A"]], TypeError, "sequence 0, token 0"),
        (["words"], [["A"]], TypeError, "sequence 0 must be a list of tokens"),
        ("words", [["A"]], ValueError, "SequenceLabeler learns from examples, not from the text 'words'"),
        (np.eye(3), [["A"] * 3], ValueError, "X is one matrix: lengths="),
        ([np.eye(2), np.eye(3)], [["A"] * 2, ["A"] * 3], ValueError, "sequence 1 has 3 columns, expected 2"),
        ([[{}]], [["A"]], ValueError, "the tokens have no features at all"),
    ],
)
def test_bad_data(X, y, error, message):
    with pytest.raises(error, match=message):
        SequenceLabeler().fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        *(
            ({"C": C}, r"The 'C' parameter of SequenceLabeler must be a float in the range \(0.0, inf\)")
            for C in (-1.0, 0, 0.0, float("nan"), float("inf"), "1", True)
        ),
        ({"solver": "svm"}, "'solver' parameter .* 'larank' or 'cutting_plane' or .* or 'auto' or a Solver"),
        ({"solver": LaRank}, "'solver' parameter"),
        ({"inference": "viterbi"}, "'exact' or 'greedy'"),
        ({"order": 0}, "order must be 1 or 2 with inference='exact', got 0; inference='greedy' takes any"),
        ({"order": 3}, "order must be 1 or 2"),
        ({"order": 1.5}, "'order' parameter"),
        ({"order": -1, "inference": "greedy"}, "'order' parameter"),
        ({"features": {"min_count": 2}}, "'features' parameter of SequenceLabeler must be a TokenFeatures or None"),
        *(
            ({"features": TokenFeatures(**features)}, message)
            for features, message in (
                ({"min_count": 0}, "'min_count' parameter of TokenFeatures"),
                ({"hash_bits": 31}, "'hash_bits' parameter of TokenFeatures"),
                ({"hash_bits": 8, "min_count": 2}, "hash_bits keeps no counts"),
                ({"bigrams": 3}, "'bigrams' parameter of TokenFeatures must be a name or a list of names or None"),
                ({"bigrams": ["a", 3]}, "bigrams must be names of attributes"),
                ({"bigrams": "a", "hash_bits": 8}, "hash_bits keeps no names"),
                ({"bigrams": "c"}, "no feature has the name 'c'"),
            )
        ),
        ({"constraints": "ibx"}, "constraints: 'ibx' is no scheme"),
        ({"features": TokenFeatures(end=1)}, "'end' parameter of TokenFeatures"),
        ({"features": TokenFeatures(end=True), "inference": "greedy"}, "end=True needs inference='exact'"),
        ({"loss": "zero_one", "inference": "greedy"}, "loss='zero_one' needs inference='exact'"),
        ({"loss": "f1"}, "'loss' parameter"),
        ({"loss": "zero_one", "class_weight": {"A": 2.0}}, "class_weight has no meaning"),
        ({"class_weight": {"Z": 1.0}}, "class_weight names 'Z'"),
        ({"class_weight": {"A": 0.0}}, "class_weight must be positive and finite, got 0.0 for the label 'A'"),
        ({"class_weight": {"A": "x"}}, "class_weight must be positive"),
        ({"class_weight": "auto"}, "'class_weight' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"random_state": -1}, "'random_state' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"warm_start": "yes"}, "'warm_start' parameter"),
        ({"C": 1.0, "solver": "perceptron"}, "The 'C' parameter has no meaning for solver='perceptron'"),
        ({"C": 1.0, "solver": LaRank()}, r"The 'C' parameter is set beside a solver object.*LaRank\(C=...\)"),
        ({"solver": LaRank(C=-1.0)}, "The 'C' parameter of LaRank"),
        ({"templates": "no-such-set"}, "templates 'no-such-set' are neither built in"),
    ],
)
def test_bad_parameters(params, message):
    model = SequenceLabeler(**params)
    with pytest.raises(ValueError, match=message):
        model.fit([[["a"], ["b"]]], [["A", "B"]])
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("weight", [[1.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0], [1.0]]])
def test_bad_sample_weight(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        SequenceLabeler().fit([[["a"]], [["b"]]], [["A"], ["B"]], sample_weight=weight)


def test_bad_lengths():
    for lengths, message in ([2, 2], "lengths add up to 4, X has 3 rows"), ([3, 0], "sequence 1 is empty"):
        with pytest.raises(ValueError, match=message):
            SequenceLabeler().fit(np.eye(3), [["A"] * n for n in lengths], lengths=lengths)


def test_bad_input_does_no_harm():
    model = fitted(names(X))
    before, predicted = model.model_, model.predict(names(X_test))
    for bad in ([], [[]], [[["a"]]], "x"):
        with pytest.raises((ValueError, TypeError)):
            model.fit(bad, y)
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(bad, y)
    assert model.model_ is before
    assert model.predict(names(X_test)) == predicted


def test_other_kinds_of_data_than_in_training():
    with pytest.raises(ValueError, match="fitted on attributes, X contains numeric"):
        fitted(names(X)).predict(rows(X_test))
    with pytest.raises(ValueError, match="sequence 0 has 2 columns, expected"):
        fitted(rows(X)).predict([np.ones((1, 2))])


def test_labels_and_features_never_seen_in_training():
    model = fitted(names(X))
    unseen = [["B-NEVER"] * len(s) for s in X_test]
    with pytest.warns(AdviceWarning, match=r"have a label that training never saw \('B-NEVER'\)"):
        assert model.score(names(X_test), unseen) == 0.0
    assert chunk_f1(unseen, model.predict(names(X_test))) == 0.0
    new = ["w=new", "t=new"]
    assert [len(s) for s in model.predict([[new, []], [new]])] == [2, 1]


def test_unicode_and_very_long_tokens():
    words = ["naïve", "東京", "🦜" * 1000, "x" * 100_000, " ", "", "a\tb", "\x00"]
    X, y = [[[w] for w in words]], [list("ABABABAB")]
    model = fitted(X, y, C=10.0)
    assert set(model.feature_names_) == set(words)
    assert model.predict(X) == y


@pytest.mark.filterwarnings("ignore:1 sequence of 100000 tokens")
def test_a_sequence_of_100_000_tokens():
    n = 100_000
    X, y = [[["a"], ["b"]] * (n // 2)], [["A", "B"] * (n // 2)]
    for inference in ("exact", "greedy"):
        model = fitted(X, y, inference=inference, max_iter=1)
        assert model.predict(X) == y
    assert fitted(X, y, max_iter=1).decision_function(X)[0].shape == (n, 2)


def test_long_sequences_converge():
    """Their inner products are taken another way; the certificate would not close over wrong ones."""
    rng = np.random.default_rng(0)
    for values in (False, True):
        X = [rng.normal(size=(300, 4)) if values else rng.integers(0, 2, size=(300, 4)) for _ in range(4)]
        y = [[f"{int(t[0] + t[1] > 0.5)}{int(t[2] > 0)}" for t in s] for s in X]
        model = fitted(X, y, tol=1e-3, max_iter=3000, C=0.01)
        assert model.result_.status == "converged"
        assert model.result_.gap >= -1e-6 * model.result_.primal


def test_not_fitted():
    from sklearn.exceptions import NotFittedError

    model = SequenceLabeler()
    for call in (
        lambda: model.predict([]),
        lambda: model.predict_kbest([], 1),
        lambda: model.decision_function([]),
        lambda: model.score([], []),
        lambda: model.save("nowhere"),
    ):
        with pytest.raises(NotFittedError, match="SequenceLabeler"):
            call()


def test_not_converged_is_a_warning():
    from structsvm import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = fitted(names(X), tol=1e-9, max_iter=2)
    assert model.n_iter_ == 2


def test_verbose_shows_a_bar(capsys):
    fitted(names(X), verbose=True)
    assert "training" in capsys.readouterr().err
    fitted(names(X))
    assert capsys.readouterr().err == ""


# ---- beside a CRF, and on real data ------------------------------------------------------------


def test_input_of_sklearn_crfsuite():
    """The very same lists of dicts train both, and all attributes have the same names."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    data = dicts(X)
    for sequence in data:
        for token in sequence:
            token["nested"] = {"a": 1.5, "b": ["x", "y"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = pycrfsuite.Trainer(verbose=False)
        for s, t in zip(data, y, strict=True):
            trainer.append(pycrfsuite.ItemSequence(s), t)
    items = {
        name for s in data for token in pycrfsuite.ItemSequence(s).items() for name, value in token.items() if value
    }
    assert set(fitted(data).feature_names_) == items


def test_classes_that_stand_there_twice(tmp_path):
    model = SequenceLabeler(random_state=0).partial_fit([["a", "b"]] * 5, [["A", "B"]] * 5, classes=["A", "B", "A"])
    assert model.classes_.tolist() == ["A", "B"]


def test_numbers_of_numpy_are_stored(tmp_path):
    end = TokenFeatures(end=np.bool_(True))
    model = SequenceLabeler(C=np.float32(0.5), order=np.int64(1), features=end, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    assert structsvm.load(tmp_path / "model").predict(X_test) == model.predict(X_test)


def test_rows_of_no_weight_have_no_influence_on_units():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(6, 4)) for _ in range(80)]
    labels = [["ab"[int(row[0] > 0.0)] for row in sequence] for sequence in rows]
    far, weight = [*rows, np.full((6, 4), 1e3)], [1.0] * 80 + [0.0]
    params = {"C": 1.0, "class_weight": "balanced", "loss": "hamming", "random_state": 0}
    one = SequenceLabeler(**params).fit(rows, labels)
    other = SequenceLabeler(**params).fit(far, [*labels, list("aaabbb")], sample_weight=weight)
    np.testing.assert_array_equal(other.model_.units.scale, one.model_.units.scale)
    np.testing.assert_array_equal(other.model_.oracle.label_costs, one.model_.oracle.label_costs)


def test_labels_of_arrow_are_scored():
    pa = pytest.importorskip("pyarrow")
    words, labels = ([[str(part) for part in s] for s in part] for part in (X, y))
    model = SequenceLabeler(C=0.1, random_state=0, loss="hamming").fit(pa.array(words), pa.array(labels))
    assert model.score(pa.array(words), pa.array(labels)) == model.score(words, labels) > 0.5


def test_columns_of_polars():
    pl = pytest.importorskip("polars")
    words = [[str(word) for word, _ in s] for s in X]
    frame = pl.DataFrame({"words": words, "tags": y})
    one = SequenceLabeler(C=0.1, random_state=0, loss="hamming").fit(words, y)
    other = SequenceLabeler(C=0.1, random_state=0, loss="hamming").fit(frame["words"], frame["tags"])
    assert other.predict(frame["words"]) == one.predict(words)


@pytest.mark.parametrize("params", [{}, {"segments": True}])
def test_a_scheme_that_the_labels_do_not_have(params):
    for label in ("b-x", "NN", "E-x"):
        with pytest.raises(
            ValueError, match=f"constraints='bio': the label '{label}' is none of the scheme BIO, whose"
        ):
            fitted([["a", "b"]] * 2, [[label, "O"]] * 2, constraints="bio", **params)


def test_a_scheme_that_leaves_no_chunk():
    with pytest.warns(AdviceWarning, match="no chunk can be predicted; is the scheme the one of the data"):
        fitted([["a", "b"]] * 2, [["B-x", "O"]] * 2, constraints="bioes", broken="predict")


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("kind", ["", "-x"])
def test_tags_alone_are_a_scheme(scheme, kind):
    data = [["a", "b", "c"]] * 2, [[f"I{kind}", "O", f"I{kind}"]] * 2
    with pytest.raises(ValueError, match=f"do not allow its label 'I{kind}' at token 0"):
        fitted(*data, constraints=scheme)
    single = f"{'S' if scheme == 'bioes' else 'B'}{kind}"
    assert fitted(*data, constraints=scheme, broken="repair").predict(data[0][:1]) == [[single, "O", single]]
    chunked = [
        [label if label == "O" else label[0] + kind for label in Scheme(scheme).repaired(labels)] for labels in y
    ]
    whole = fitted(X, chunked, C="auto")
    assert whole.validation_["metric"] == "F1"


# ---- columns of tables as sequences, labels and what is allowed ---------------------------------

WORDS, NAMES = [["the", "dog"], ["a", "cat"]], [["D", "N"], ["D", "N"]]


def column_makers():
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    return [pa.array, pd.Series, pl.Series, np.array, tuple]


def test_a_column_is_a_sequence_as_a_list_is():
    base = fitted(WORDS, NAMES)
    for make in [*column_makers(), iter]:
        model = fitted([make(x) for x in WORDS], NAMES)
        assert model.feature_names_ == base.feature_names_
        assert model.predict([make(x) for x in WORDS]) == NAMES
        assert fitted([make(x) for x in WORDS], NAMES, templates="rich").predict(WORDS) == NAMES
        assert fitted([make(x) for x in WORDS], [["O", "B-x"]] * 2, segments=True).predict_spans(WORDS)
        if make is not iter:
            assert fitted(WORDS, [make(labels) for labels in NAMES]).predict(WORDS) == NAMES


def test_a_table_is_no_sequence():
    frame = pytest.importorskip("pandas").DataFrame({"word": ["the", "dog"]})
    for model in (fitted(WORDS, NAMES), fitted([[["a"]]], [["D"]]), fitted(WORDS, NAMES, templates="rich")):
        with pytest.raises(TypeError, match=r"sequence 0 is a table \(DataFrame\)"):
            model.predict([frame])
    for templates in (None, "attributes"):
        with pytest.raises(TypeError, match="sequence 0 is a table"):
            fitted([frame], NAMES[:1], templates=templates)
    with pytest.raises(TypeError, match="sequence 1 is a table"):
        fitted([[{"a": 1}], frame], NAMES)


def test_flat_labels_of_columns_are_learnt_and_scored():
    rows, lengths = np.random.default_rng(0).normal(size=(6, 3)), [2, 4]
    labels = ["O", "B-x", "B-x", "O", "O", "B-x"]
    for params in ({}, {"segments": True}):
        nested = [labels[:2], labels[2:]]
        base = fitted(rows, nested, lengths=lengths, **params)
        score = base.score(rows, nested, lengths=lengths)
        for make in column_makers()[:-1]:
            model = fitted(rows, make(labels), lengths=lengths, **params)
            assert model.model_.weights.tobytes() == base.model_.weights.tobytes()
            assert model.score(rows, make(labels), lengths=lengths) == score
    spans = fitted(rows, [[(1, 2, "x")], [(0, 1, "x"), (3, 4, "x")]], lengths=lengths, segments=True)
    assert spans.score(rows, labels, lengths=lengths) == spans.score(rows, nested, lengths=lengths) == score


def test_columns_of_labels_by_segments():
    base = fitted(WORDS, [["O", "B-x"]] * 2, segments=True)
    for make in column_makers()[:3]:
        model = fitted(WORDS, make([["O", "B-x"]] * 2), segments=True)
        assert model.predict(WORDS) == base.predict(WORDS)


def test_columns_say_what_is_allowed():
    model = fitted(WORDS, NAMES)
    for make in column_makers()[:3]:
        assert model.predict(WORDS, allowed=make([["N", "N"], ["D", "D"]])) == [["N", "N"], ["D", "D"]]
        assert model.predict(WORDS[:1], allowed=[make(["N", "D"])]) == [["N", "D"]]


# ---- what is allowed fits the sequences -----------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5])
def test_allowed_of_another_number_of_sequences(n):
    model = fitted(WORDS, NAMES, n_jobs=2)
    for predict in (model.predict, model.predict_marginals, lambda X, **allowed: model.predict_kbest(X, 2, **allowed)):
        with pytest.raises(ValueError, match=rf"X has 6 sequences, allowed has {n}"):
            predict(WORDS * 3, allowed=[None] * n)
    with pytest.raises(ValueError, match="X has 6 sequences, allowed has 7"):
        model.predict(Columns.from_sequences(WORDS * 3), allowed=[None] * 7)


def test_kbest_of_nothing():
    model = fitted(WORDS, NAMES, constraints=(None, np.array([True, False]), None))
    for predict in (model.predict, model.predict_marginals, lambda X, **allowed: model.predict_kbest(X, 2, **allowed)):
        with pytest.raises(ValueError, match="sequence 1: the masks leave no labelling"):
            predict(WORDS, allowed=[None, ["N", None]])


def test_minus_one_allows_all():
    model = fitted(WORDS, [[0, 1]] * 2)
    assert model.predict(WORDS, allowed=[[-1, 0], np.array([1, -1])]) == [[0, 0], [1, 1]]
    named = fitted(WORDS, NAMES)
    assert named.predict(WORDS, allowed=[[-1, "D"], None])[0][1] == "D"  # whatever the labels are
    with pytest.raises(ValueError, match="-1 is not one of the labels"):
        named.set_params(unknown=None).predict(WORDS, allowed=[[-1, "D"], None])


def test_scores_of_long_sequences():
    tokens = [token for s in dicts(X) for token in s] * 10
    model = fitted(dicts(X), C=1.0).model_
    encoded, weights = model.encode([tokens]), model.weights.astype(np.float64)
    ranked = model.predict_kbest([tokens], 3)[0]
    ids = [[model.labels.index(label) for label in labels] for labels, _ in ranked]
    exact = [float(model.oracle.joint_feature(encoded, path) @ weights) for path in ids]
    np.testing.assert_allclose([score for _, score in ranked], exact, rtol=1e-8)
    assert len(set(map(tuple, ids))) == 3 and exact == sorted(exact, reverse=True)


# ---- what is wrong is named -----------------------------------------------------------------------


@pytest.mark.parametrize("k", [-1, 0, 1.5, True])
def test_the_number_of_features_is_counted(k):
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        fitted(WORDS, NAMES).top_features("D", k)


def test_missing_labels_are_found():
    pd = pytest.importorskip("pandas")
    for missing in (pd.NA, pd.NaT, float("nan"), np.float64("nan"), {"D", float("nan")}):
        with pytest.raises(ValueError, match="sequence 1, token 0: y holds NaN as a label"):
            fitted(WORDS, [["D", "N"], [missing, "N"]])


def test_calibration_names_the_label():
    model = fitted(WORDS, [["B-x", "I-x"]] * 2, constraints="bio")
    with pytest.raises(ValueError, match="sequence 1: the constraints do not allow its label 'I-x' at token 0"):
        model.calibrate([*WORDS, []], [["B-x", "I-x"], ["I-x", "I-x"], []])
    with pytest.raises(ValueError, match=r"up to token 0 \('I-x'\)"):
        model.calibrate(WORDS, [[None, "I-x"], ["I-x", None]])


def test_weights_that_are_none():
    model = fitted(WORDS, NAMES)
    with pytest.raises(ValueError, match=r"must not be zero for every sample$"):
        model.score(WORDS, NAMES, sample_weight=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"sample_weight must be 2 numbers, got \[\[1\], \[1, 2\]\]"):
        model.fit(WORDS, NAMES, sample_weight=[[1], [1, 2]])


SEEN, BIO, FIELDS = (
    [["a", "b", "c"], ["b", "a"]] * 3,
    [["B-x", "I-x", "O"], ["O", "B-x"]] * 3,
    [["x", "x", "y"], ["y", "x"]] * 3,
)
AS_DICTS = [[{"w": word} for word in words] for words in SEEN]


@pytest.mark.parametrize(
    ("X", "y", "params", "passes"),
    [
        (SEEN, BIO, {}, 64),
        (SEEN, BIO, {"solver": "auto"}, 200),
        (SEEN, BIO, {"inference": "greedy"}, 20),
        (SEEN, BIO, {"class_weight": "balanced"}, 20),
        (SEEN, BIO, {"segments": True}, 64),
        (AS_DICTS, BIO, {}, 64),  # the solver for fields is not tried on tags
        (AS_DICTS, FIELDS, {}, 200),
        (AS_DICTS, FIELDS, {"C": 1.0}, 64),
        (AS_DICTS, FIELDS, {"max_iter": 5}, 5),
    ],
)
def test_the_bar_ends_where_the_longest_training_that_may_be_chosen_does(X, y, params, passes, monkeypatch):
    shown = []
    monkeypatch.setattr(estimator, "Bar", lambda n, **_: shown.append(n) or Bar(n, disable=True))
    labeler = SequenceLabeler(verbose=True, random_state=0, **params).fit(X, y)
    assert shown == [passes]
    assert labeler.n_iter_ <= passes
