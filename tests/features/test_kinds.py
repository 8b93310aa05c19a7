"""Kinds of words, learnt from labels: a word of training has the kind that other sequences give it."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest

from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.functions import kinds
from structsvm.features.templates import TemplateError
from structsvm.result import ConvergenceWarning
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence.preparation import prepare

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


def by_counting(patterns, n_patterns, sequences, label_ids, counted):
    """Kinds of tokens and of patterns, in plain Python."""

    def most(labels):
        counts = Counter(labels)
        return min(counts, key=lambda label: (-counts[label], label)) if counts else -1

    places = [[t for t in np.flatnonzero(counted) if patterns[t] == p] for p in range(n_patterns)]
    of_tokens = [
        most(label_ids[t] for t in places[p] if sequences[t] != s) for p, s in zip(patterns, sequences, strict=True)
    ]
    of_patterns = [most(label_ids[t] for t in one) for one in places]
    return of_tokens, of_patterns, [len(one) for one in places]


@pytest.mark.parametrize("seed", range(5))
def test_as_counted(seed, monkeypatch):
    monkeypatch.setattr(kinds, "CHUNK", 7)
    rng = np.random.default_rng(seed)
    sequences = np.sort(rng.integers(0, 30, 100))
    patterns, label_ids, counted = rng.integers(0, 12, 100), rng.integers(0, 4, 100), rng.random(100) < 0.8
    rare = rng.random(100) < 0.2
    patterns, label_ids = np.where(rare, 12 + patterns // 4, patterns), np.where(rare, patterns % 2, label_ids)
    found = kinds.kinds_of(patterns, 16, sequences, label_ids, counted)
    for own, wanted in zip(found, by_counting(patterns, 16, sequences, label_ids, counted), strict=True):
        assert own.tolist() == list(wanted)
    assert (np.array(found.of_tokens) != found.of_patterns[patterns]).any()


def test_no_table_of_words_and_labels():
    n = 60_000
    tracemalloc.start()
    found = kinds.kinds_of(np.arange(n), n, np.arange(n), np.arange(n) % 1000, np.ones(n, dtype=bool))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20  # a table of int32 has 229 MiB
    assert (found.of_patterns == np.arange(n) % 1000).all()
    assert (found.of_tokens == -1).all()


def test_equal_sequences_have_one_number():
    ids = np.array([[0, 1], [2, 3], [0, 1], [0, 1], [2, 3], [0, 1], [2, 4]])
    assert kinds.equal_sequences(ids, np.array([0, 2, 3, 5, 5, 7])).tolist() == [0, 0, 1, 0, 0, 3, 3]


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("U:k=%kind[0,0]\nU:k=%kind[1,0]", r":3: 'U:k=%kind\[1,0\]': a template of %kind needs a text of its own"),
        ("U:x=%kind[0,0]", r":2: 'U:x=%kind\[0,0\]': .*, and line 1 has the same one"),
        ("U:k=%kind[0,0]\nU:k=%pattern[0,0]", r":3: 'U:k=%pattern\[0,0\]': .*, and line 2 has the same one"),
        ("U:k=%kind[0,3]", r":2: 'U:k=%kind\[0,3\]': column 3 of data with 1 columns"),
    ],
)
def test_names_of_features_differ(line, message, tmp_path):
    """The error comes before anything is encoded, and names file and line."""
    text = f"U:x=%x[0,0]\n{line}\nB\n"
    with pytest.raises(TemplateError, match="templates" + message):
        FeatureEncoder(text).fit(X)
    path = tmp_path / "own.txt"
    path.write_text(text)
    with pytest.raises(TemplateError, match=r"own\.txt" + message):
        FeatureEncoder(path).fit(X)


@pytest.mark.parametrize("rows", [(-1,), (2,), (-2, 1)])
def test_kinds_reach_further_than_other_templates(rows):
    lines = "".join(f"U:k[{row}]=%kind[{row},0]\n" for row in rows)
    encoder = FeatureEncoder(f"U:x=%x[0,0]\nU:both=%x[0,0]/%x[1,0]\n{lines}B\n")
    columns = Columns.from_sequences(X)
    plain = encoder.fit_transform(columns)
    names = encoder.feature_names
    tokens = encoder.learn_kinds(columns, plain, LABELS, np.ones(8, dtype=bool))
    assert encoder.feature_names[: len(names)] == names
    again = FeatureEncoder.from_arrays(*encoder.to_arrays())
    for one in (tokens, encoder.transform(X), again.transform(X)):
        assert features_of(encoder, one, "U:x") == features_of(encoder, plain, "U:x")
        assert features_of(encoder, one, "U:both") == features_of(encoder, plain, "U:both")
    found = {
        row: features_of(encoder, encoder.transform([["Ann", "Q", "Q"], ["Q", "Q", "Lee"]]), f"U:k[{row}]")
        for row in rows
    }
    if -1 in rows:
        assert found[-1] == [[], ["U:k[-1]=ann"], [], [], [], []]


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
    for other in (f"feature_kinds_{name.rsplit('_', 1)[1]}", "kinds_of_sequences"):
        for wrong in (arrays[other].reshape(-1, 1), arrays[other].astype(np.float64)):
            with pytest.raises(ValueError, match=other):
                FeatureEncoder.from_arrays(meta, arrays | {other: wrong})
    for damaged in (arrays[name][:-1] * 0, arrays[name] + 1000, arrays[name].astype(np.float64)):
        with pytest.raises(ValueError, match=name):
            FeatureEncoder.from_arrays(meta, arrays | {name: damaged})


def kinds_of_words(model, tokens):
    return features_of(model.encoder, tokens, "U:kind=")


def test_training_resumes_with_the_kinds_that_it_had():
    X, y = people(60, 0)
    whole = SequenceLabeler(**QUICK, warm_start=True, max_iter=2, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="after 2 passes"):
        whole.fit(X, y)
    first, emission = whole.model_, whole.emission_.copy()

    def entries(X, y, before):
        return prepare(whole, X, y, before)[1].tokens.indices

    assert np.array_equal(entries(X, y, None), entries(X, y, first))
    assert not np.array_equal(entries(X, y, first), first.encoder.transform(X).indices)
    whole.set_params(max_iter=None).fit(X, y)
    straight = SequenceLabeler(**QUICK, tol=1e-3).fit(X, y)
    np.testing.assert_allclose(whole.result_.primal, straight.result_.primal, rtol=2e-3)
    assert not np.array_equal(whole.emission_, emission)
    assert whole.partial_fit(*people(60, 1)).model_.encoder.has_kinds


@pytest.mark.parametrize("stored", [False, True])
def test_no_word_has_its_own_label_in_later_training(stored, tmp_path):
    """Neither in another order, nor among fewer or more sequences, nor alone."""
    X, y = people(60, 0)
    labeler = SequenceLabeler(**QUICK).fit(X, y)
    if stored:
        labeler.save(tmp_path / "model")
        labeler = SequenceLabeler.load(tmp_path / "model")
    model = labeler.model_

    def trained_on(X, y):
        return kinds_of_words(model, prepare(labeler, X, y, model)[1].tokens)

    at_first = prepare(labeler, X, y)
    then = kinds_of_words(at_first[0], at_first[1].tokens)
    assert trained_on(X, y) == then
    assert trained_on(X[::-1], y[::-1]) == [kind for i in range(60)[::-1] for kind in then[2 * i : 2 * i + 2]]
    fewer = prepare(labeler, X[:30], y[:30])  # kinds among these
    by_label = {"U:kind=" + word: label for x, labels in zip(X, y, strict=True) for word, label in zip(x, labels)}

    def labels_of(found):
        return [[by_label[kind] for kind in one] for one in found]

    assert labels_of(trained_on(X[:30], y[:30])) == labels_of(kinds_of_words(fewer[0], fewer[1].tokens))
    new = [i for i, x in enumerate(people(40, 1)[0]) if x not in X]
    more = [[people(40, 1)[k][i] for i in new] for k in (0, 1)]
    found = trained_on(X + more[0], y + more[1])
    own = prepare(labeler, X + more[0], y + more[1])
    assert labels_of(found[:120]) == labels_of(kinds_of_words(own[0], own[1].tokens)[:120])
    # Words of sequences that it was not trained on are as in prediction.
    assert found[120:] == kinds_of_words(model, model.encoder.transform(more[0]))
    assert [kind for i in range(60) for kind in trained_on(X[i : i + 1], y[i : i + 1])] == [[]] * 120
    assert trained_on(*more) == found[120:]
    # Held-out sequences are as in prediction.
    held_out = prepare(labeler, X, y, model, held_out=True)[1].tokens
    assert np.array_equal(held_out.indices, model.encoder.transform(X).indices)


def test_copies_do_not_tell_labels():
    X, y = people(60, 0)
    once = prepare(SequenceLabeler(**QUICK), X, y)
    twice = prepare(SequenceLabeler(**QUICK), X + X, y + y)
    wanted = kinds_of_words(once[0], once[1].tokens)
    found = kinds_of_words(twice[0], twice[1].tokens)
    assert found[:120] == found[120:]
    assert [bool(kind) for kind in found[:120]] == [bool(kind) for kind in wanted]


def test_a_batch_is_encoded_by_what_is_there(monkeypatch):
    X, y = people(60, 0)
    labeler = SequenceLabeler(**QUICK).fit(X, y)
    monkeypatch.setattr(FeatureEncoder, "fit_transform", None)
    assert labeler.partial_fit(X[:5], y[:5]).predict(X[:5])


def test_new_words_are_learnt():
    """Plain features are added, those of kinds stay; new labels change the number of others, which kinds name."""
    X, y = people(60, 0)
    labeler = SequenceLabeler(**QUICK).fit(X, y)
    names = labeler.feature_names_
    of_kinds = [name for name in names if name.startswith("U:kind")]
    labeler.teach(["Zoë", "Quist"], ["given", "family"])
    added = labeler.feature_names_[len(names) :]
    assert labeler.feature_names_[: len(names)] == names
    assert sorted(added) == ["U:next=Quist", "U:x=Quist", "U:x=Zoë"]
    assert labeler.model_.encoder.transform(X).n_features == len(names) + 3
    before = prepare(labeler, X, y, labeler.model_)[1].tokens
    labeler.teach(["Dr", "Quist"], ["a title", "family"])
    assert labeler.classes_.tolist() == ["a title", "family", "given"]
    after = prepare(labeler, X, y, labeler.model_)[1].tokens
    assert kinds_of_words(labeler.model_, after) == kinds_of_words(labeler.model_, before)
    assert [name for name in labeler.feature_names_ if name.startswith("U:kind")] == of_kinds
    assert labeler.predict([["Dr", "Quist"]]) == [["a title", "family"]]
    labeler.consolidate()
    assert "U:x=Dr" in labeler.feature_names_


def test_a_loaded_model_grows(tmp_path):
    X, y = people(60, 0)
    SequenceLabeler(**QUICK).fit(X, y).save(tmp_path / "model")
    labeler = SequenceLabeler.load(tmp_path / "model")
    labeler.teach(["Zoë", "Quist"], ["given", "family"])
    labeler.save(tmp_path / "model")
    again = SequenceLabeler.load(tmp_path / "model")
    assert again.feature_names_ == labeler.feature_names_
    assert again.consolidate().predict(X) == labeler.predict(X)
    assert labeler.consolidate().model_.encoder.can_grow


@pytest.mark.parametrize("templates", ["records", "record-kinds"])
def test_odd_batches(templates):
    """Errors are those of other templates."""
    X, y = people(60, 0)
    labeler = SequenceLabeler(**QUICK | {"templates": templates})
    with pytest.raises(ValueError, match="X contains no sequences"):
        labeler.fit([], [])
    labeler.fit(iter(X), y)
    with pytest.raises(ValueError, match="there are no examples to train on"):
        labeler.partial_fit([], [])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        labeler.partial_fit([X[0], []], [y[0], []])
    with pytest.raises(ValueError, match="templates need columns"):
        labeler.partial_fit(X[0], y[0], lengths=[2])
    with pytest.raises(ValueError, match="templates need columns"):
        labeler.partial_fit([[{"word": "Ann"}]], [["given"]])
    labeler.partial_fit(iter(X), y)
