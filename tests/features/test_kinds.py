"""Kinds of words, learnt from labels: a word of training has the kind that other sequences give it."""

from collections import Counter

import numpy as np
import pytest

from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.functions import kinds
from structsvm.features.templates import TemplateError
from structsvm.result import ConvergenceWarning
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence.model import prepare

TEMPLATES = "U:x=%x[0,0]\nU:next=%x[1,0]\nU:kind=%kind[0,0]\nU:kind[1]=%kind[1,0]\nB\n"
X = [["Ann", "Lee"], ["ann,", "Ray"], ["Bob", "Lee"], ["Ann", "Cox"]]
LABELS = np.array([0, 1, 0, 1, 0, 1, 1, 1])


def encoded(X, label_ids, counted=None, **params):
    encoder, columns = FeatureEncoder(TEMPLATES, **params), Columns.from_sequences(X)
    counted = np.ones(len(label_ids), dtype=bool) if counted is None else counted
    return encoder, encoder.learn_kinds(columns, encoder.fit_transform(columns), np.array(label_ids), counted)


def features_of(encoder, tokens, start="U:kind"):
    """Names of the features of each token that begin so."""
    names = encoder.feature_names
    ends = zip(tokens.indptr[:-1], tokens.indptr[1:], strict=True)
    return [[names[j] for j in tokens.indices[a:b] if names[j].startswith(start)] for a, b in ends]


def by_counting(patterns, n_patterns, offsets, label_ids, counted):
    """Kinds of tokens and of patterns, in plain Python."""

    def most(labels):
        counts = Counter(labels)
        return min(counts, key=lambda label: (-counts[label], label)) if counts else -1

    sequences = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    places = [[t for t in np.flatnonzero(counted) if patterns[t] == p] for p in range(n_patterns)]
    of_tokens = [
        most(label_ids[t] for t in places[p] if sequences[t] != s) for p, s in zip(patterns, sequences, strict=True)
    ]
    return of_tokens, [most(label_ids[t] for t in one) for one in places], [len(one) for one in places]


@pytest.mark.parametrize("seed", range(5))
def test_as_counted(seed, monkeypatch):
    monkeypatch.setattr(kinds, "CHUNK", 7)
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(rng.integers(1, 6, 30)))
    n = offsets[-1]
    patterns, label_ids, counted = rng.integers(0, 12, n), rng.integers(0, 4, n), rng.random(n) < 0.8
    found = kinds.kinds_of(patterns, 13, offsets, label_ids, counted)
    for own, wanted in zip(found, by_counting(patterns, 13, offsets, label_ids, counted), strict=True):
        assert own.tolist() == list(wanted)
    assert (np.array(found.of_tokens) != found.of_patterns[patterns]).any()


@pytest.mark.parametrize("row", [-2, 0, 1])
def test_neighbours_end_with_their_sequence(row):
    values, offsets = np.arange(10, 17), np.array([0, 3, 4, 7])
    wanted = [
        values[t + row] if offsets[s] <= t + row < offsets[s + 1] else -1
        for s in range(3)
        for t in range(offsets[s], offsets[s + 1])
    ]
    assert kinds.neighbours(values, offsets, row).tolist() == wanted


def test_training_and_prediction():
    """Marks, capitals and digits apart, words of a kind share a feature, which has the name of the most frequent."""
    encoder, tokens = encoded(X, LABELS)
    # Ray and Cox stand in one sequence, Bob too: no other one says what they are.
    given, family = "U:kind=ann", "U:kind=lee"
    found = features_of(encoder, tokens, "U:kind=")
    assert found == [[given], [family], [given], [], [], [family], [given], []]
    assert features_of(encoder, tokens, "U:kind[1]=")[0] == ["U:kind[1]=lee"]
    unseen = encoder.transform([["Bob", "Ray", "Zoe"]])
    assert features_of(encoder, unseen, "U:kind=") == [[given], [family], []]
    assert features_of(encoder, unseen, "U:kind[1]=") == [["U:kind[1]=lee"], [], []]
    assert tokens.n_features == encoder.n_features == len(set(encoder.feature_names))


def test_labels_that_do_not_count():
    counted = np.array([True, True, True, True, True, True, False, False])
    encoder, tokens = encoded(X, LABELS, counted)
    found = features_of(encoder, tokens, "U:kind=")
    assert found[0] == found[2] == found[6] == ["U:kind=ann"]
    assert features_of(encoder, encoder.transform([["Cox"]]), "U:kind=") == [[]]


def test_without_labels_and_without_names_there_are_none():
    encoder = FeatureEncoder(TEMPLATES)
    plain = encoder.fit_transform(X)
    assert encoder.kinds.count("%kind[") == 2
    assert not encoder.has_kinds
    assert features_of(encoder, plain) == [[]] * 8
    hashed, tokens = encoded(X, LABELS, hash_bits=8)
    assert not hashed.has_kinds
    assert tokens.n_features == 2**8
    few, _ = encoded(X, LABELS, min_count=3)
    assert [name for name in few.feature_names if "kind" in name] == ["U:kind=ann"]
    assert not encoded(X, LABELS)[0].can_grow


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("U:k=%kind[0,0]/%x[0,0]", r"templates:1: .*: %kind stands alone in a template that begins with 'U'"),
        ("B:k=%kind[0,0]", r"templates:1: .*: %kind stands alone"),
    ],
)
def test_a_kind_is_no_part(line, message):
    with pytest.raises(TemplateError, match=message):
        FeatureEncoder(f"{line}\nU:x=%x[0,0]\nB\n").fit(X)


@pytest.mark.parametrize("line", ["U:k=%kind[-1,0]", "U:k=%kind[0,0]\nU:k=%kind[1,0]"])
def test_rows_and_names(line):
    encoder = FeatureEncoder(f"U:x=%x[0,0]\nU:next=%x[1,0]\n{line}\nB\n")
    tokens = encoder.fit_transform(X)
    with pytest.raises(TemplateError, match="%kind need names of their own, and rows from 0 to 1"):
        encoder.learn_kinds(Columns.from_sequences(X), tokens, LABELS, np.ones(8, dtype=bool))


def people(n, seed):
    """Given and family names, in any order, of which most are met once or twice."""
    rng = np.random.default_rng(seed)
    names = [f"{a}{b}{c}" for a in "bdgkm" for b in "lnrst" for c in "vwxz"]
    given, family = names[::2], names[1::2]
    rows = [[(str(rng.choice(given)), "given"), (str(rng.choice(family)), "family")] for _ in range(n)]
    rows = [row[::-1] if rng.random() < 0.5 else row for row in rows]
    return [[word for word, _ in row] for row in rows], [[label for _, label in row] for row in rows]


QUICK = {"C": 0.1, "loss": "hamming", "probability": False, "random_state": 0, "templates": TEMPLATES}


def test_files_hold_kinds(tmp_path):
    X, y = people(60, 0)
    labeler = SequenceLabeler(**QUICK).fit(X, y)
    assert labeler.model_.encoder.has_kinds
    unseen = people(60, 1)[0]
    expected = labeler.predict(unseen)
    for kept in ({}, {"training_state": True}):
        labeler.save(tmp_path / "model", **kept)
        again = SequenceLabeler.load(tmp_path / "model")
        assert again.predict(unseen) == expected
        own = [one for one in again.feature_names_ if one.startswith("U:kind")]
        assert set(own) <= set(labeler.feature_names_)
        assert own
    assert again.feature_names_ == labeler.feature_names_
    one_by_one = [again.predict([sequence])[0] for sequence in unseen]
    assert one_by_one == expected


def test_damaged_files_are_refused():
    encoder, _ = encoded(X, LABELS)
    meta, arrays = encoder.to_arrays()
    (name,) = [name for name in arrays if name.startswith("feature_ids_")][:1]
    assert FeatureEncoder.from_arrays(meta, arrays).feature_names == encoder.feature_names
    for damaged in (arrays[name][:-1] * 0, arrays[name] + 1000, arrays[name].astype(np.float64)):
        with pytest.raises(ValueError, match=name):
            FeatureEncoder.from_arrays(meta, arrays | {name: damaged})


def test_training_resumes_with_the_kinds_that_it_had():
    X, y = people(60, 0)
    whole = SequenceLabeler(**QUICK, warm_start=True, max_iter=2, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="after 2 passes"):
        whole.fit(X, y)
    first, emission = whole.model_, whole.emission_.copy()

    def entries(X, y, before):
        return prepare(whole, X, y, before)[1].tokens.indices

    assert np.array_equal(entries(X, y, None), entries(X, y, first))
    other = people(60, 1)
    assert np.array_equal(entries(*other, first), first.encoder.transform(other[0]).indices)
    assert not np.array_equal(entries(X, y, first), first.encoder.transform(X).indices)
    whole.set_params(max_iter=None).fit(X, y)
    straight = SequenceLabeler(**QUICK, tol=1e-3).fit(X, y)
    np.testing.assert_allclose(whole.result_.primal, straight.result_.primal, rtol=2e-3)
    assert not np.array_equal(whole.emission_, emission)
    assert whole.partial_fit(*other).model_.encoder.has_kinds
