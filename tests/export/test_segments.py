"""Whole segments in the runtime in C against Python: phrases, lengths, schemes, hostile tables of nodes."""

import ctypes
import json
import warnings
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest
from runtime_models import COMPILER, OTHERS, SEGMENTS, arrays_of, bytes_of, fitted, sequences, sound, with_tokens

from structsvm.metrics._schemes import BIO, BIOES
from structsvm.tasks import SequenceLabeler, TokenFeatures
from structsvm.tasks.sequence.phrases import MADE

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
NUMBERS = count()  # makes rare words
N_OF_NODES = 15  # the arrays of a model's nodes


@pytest.mark.parametrize("name", SEGMENTS)
def test_the_models_have_what_they_are_tried_for(name):
    model = fitted(name).model_
    rows = model.weights.reshape(-1, model.oracle.stride)
    assert np.count_nonzero(rows[model.oracle.first_bigram_row :]) > 3  # phrases
    assert np.count_nonzero(rows[model.oracle.first_bigram_row - model.oracle.max_length - 1 :]) > 6
    lengths = {stop - start for spans in fitted(name).predict_spans(sequences(name)) for start, stop, _ in spans}
    assert max(lengths) > 1
    assert (model.oracle.language is not None) == ("rules" in name)


def test_segments_are_longer_than_those_with_weights_of_their_own(runtime):
    words = [[f"w{k}" for k in range(n)] for n in (1, 5, 9)] * 4
    labels = [["B-x", *["I-x"] * (len(x) - 1)] for x in words]
    model = SequenceLabeler(segments=2, C=1.0, loss="log", random_state=0).fit(words, labels)
    tagger = runtime.load(bytes_of(model))
    assert model.model_.oracle.max_length == 2
    for x in [*words[:3], [f"w{k % 9}" for k in range(40)]]:
        assert tagger.predict(x) == model.predict([x])[0]
        assert tagger.kbest(x, 5) == [(list(y), score) for y, score in model.predict_kbest([x], 5)[0]]
    assert tagger.predict(words[2]) == labels[2]


def test_all_labellings_of_a_few_tokens_are_ranked(runtime):
    tagger, model = runtime.load(bytes_of(fitted("segments"))), fitted("segments")
    x = sequences("segments")[0][:3]
    found = tagger.kbest(x, 10_000)
    assert found == [(list(y), score) for y, score in model.predict_kbest([x], 10_000)[0]]
    assert len(found) == 13  # B, I and O, without I behind O


@pytest.mark.parametrize("scheme", ["bio", "bioes", "io", "runs", "spans"])
def test_labels_are_in_the_scheme_of_training(runtime, scheme):
    X = [["San", "Diego", "is", "in", "California"], ["We", "saw", "Diego"], ["in", "San", "Diego"]] * 3
    spans = [[(0, 2, "LOC"), (4, 5, "LOC")], [(2, 3, "PER")], [(1, 3, "LOC")]] * 3
    bio = [["B-LOC", "I-LOC", "O", "O", "B-LOC"], ["O", "O", "B-PER"], ["O", "B-LOC", "I-LOC"]] * 3
    bioes = [["B-LOC", "E-LOC", "O", "O", "S-LOC"], ["O", "O", "S-PER"], ["O", "B-LOC", "E-LOC"]] * 3
    labels = {
        "bio": bio,
        "spans": spans,
        "bioes": bioes,
        "io": [[label.replace("B-", "I-") for label in y] for y in bio],
        "runs": [[label[2:] or "other" for label in y] for y in bio],
    }
    constraints = "io" if scheme == "io" else None
    model = SequenceLabeler(segments=True, C=1.0, loss="log", constraints=constraints, random_state=0)
    model.fit(X, labels[scheme])
    tagger = runtime.load(bytes_of(model))
    found = [tagger.predict(x) for x in X]
    assert model.predict(X) == labels[scheme]
    assert found == (bio if scheme == "spans" else labels[scheme])
    assert sorted(tagger.labels) == sorted(set(tagger.labels))
    for x in X[:3]:
        np.testing.assert_allclose(np.sum(tagger.probability(x), axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("token", "params"),
    [
        (lambda word: [f"w={word}", f"w:suffix={word[-1]}"], {}),
        (lambda word: {"w": word, "w=0.5": 1.0}, {}),
        (lambda word: {"w": word, "w/length": str(len(word))}, {}),
        (lambda word: {"w": f"{word}{next(NUMBERS)}q", "same": "s"}, {"features": TokenFeatures(min_count=2)}),
        (lambda word: [f"w={word}{next(NUMBERS)}q", "same"], {"features": TokenFeatures(min_count=2)}),
    ],
    ids=["lists with both marks", "dicts with both marks", "dicts", "rare words in dicts", "rare words in lists"],
)
@pytest.mark.parametrize("is_read", [False, True], ids=["fitted", "read"])
def test_the_texts_of_a_feature_are_told_from_others(runtime, token, params, is_read, tmp_path):
    model, X = with_tokens(token, **params)
    if is_read:
        model.save(tmp_path / "model")
        model = SequenceLabeler.load(tmp_path / "model")
    tagger = runtime.load(bytes_of(model))
    assert model.model_.segments.phrases.sources[0][0] == "w"
    for x in X[:3]:
        assert tagger.kbest(x, 5) == [(list(y), score) for y, score in model.predict_kbest([x], 5)[0]]


@pytest.mark.parametrize(
    "token",
    [
        lambda word: {"w": word, "w:cap": "no"},
        lambda word: {"w:cap": "no", "w": word},
        lambda word: {"w": word, "w:length": 1.0},
        lambda word: {"w": word if word != "san" else [word]},
        lambda word: {"w": word if word != "san" else {word: 1.0}},
    ],
    ids=["key with a text", "key with a text before", "key with a number", "list", "dict"],
)
@pytest.mark.filterwarnings("ignore:training had features that a program in C")
def test_attributes_that_begin_as_the_text_of_a_feature_are_told_from_it(runtime, token):
    model, X = with_tokens(token)
    tagger = runtime.load(bytes_of(model))
    for x in [*X[:3], X[0] + X[1]]:
        assert tagger.kbest(x, 5) == [(list(y), score) for y, score in model.predict_kbest([x], 5)[0]]


def test_the_text_of_a_feature_is_what_python_sees(runtime):
    model, X = with_tokens(lambda word: {"w": word})
    tagger, seen = runtime.load(bytes_of(model)), set()
    for token in OTHERS:
        for x in ([token, X[0][1]], [X[0][0], token, X[0][1], token]):
            found = tagger.kbest(x, 5)
            assert found == [(list(y), score) for y, score in model.predict_kbest([x], 5)[0]], token
            seen.add(found[0][1])
    assert len(seen) > 6
    # An attribute alone is the word where it is not said to be none.
    assert tagger.kbest([{"w": "san"}, X[0][1]], 1) != tagger.kbest([{"w": ["san"]}, X[0][1]], 1)


def test_lists_for_a_model_of_dicts_and_dicts_for_one_of_lists_are_refused(runtime):
    for token, wrong, right in [
        (lambda word: {"w": word}, ["w=san", "a"], [["w:san"], ["a"], ["w:a=san"], []]),
        (lambda word: [f"w={word}"], {"w": "san", "a": 1.0}, [{"a": "w"}, {"w=san": True}, {"w": ["san"]}, {}]),
    ]:
        model, X = with_tokens(token)
        tagger = runtime.load(bytes_of(model))
        for own in (tagger.predict, tagger.probability, lambda x, own=tagger: own.kbest(x, 2)):
            with pytest.raises(ValueError, match="lists of attributes for a model of segments of dicts, or dicts"):
                own([X[0][0], wrong, wrong])
        for token in right:
            x = [*X[0][:2], token, X[0][1]]
            assert tagger.kbest(x, 5) == [(list(y), score) for y, score in model.predict_kbest([x], 5)[0]]


@pytest.mark.parametrize(
    ("token", "named"),
    [
        (lambda word: {"w": word, "w:length": 1.0, "w:cap": "no", "b:c": 1.0}, "'w:cap:', 'w:length'"),
        (lambda word: {"w": word if word != "san" else [word]}, "'w'"),
        (lambda word: {"w": word, "w=0.5": 1.0, "b": ["c"]}, None),
        (lambda word: {"w": word if word != "san" else True}, None),
        (lambda word: [f"w={word}", f"w:suffix={word[-1]}"], None),
    ],
)
def test_features_that_a_program_in_c_has_to_mark_are_named(token, named, tmp_path):
    model, _ = with_tokens(token)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.export(tmp_path / "c")
    assert [str(one.message) for one in said] == [] if named is None else f"attributes of {named}, or" in str(said[0])
    assert all(Path(one.filename).name == Path(__file__).name for one in said)


def test_two_texts_of_one_feature_are_refused(runtime):
    tagger = runtime.load(bytes_of(with_tokens(lambda word: {"w": word})[0]))
    found, starts = (ctypes.c_uint32 * 1)(), (ctypes.c_uint32 * 2)(0, 2)
    for mark in (0, runtime.native.NO_TEXT):
        texts = runtime.native.as_array([(b"w:san", 0, 1.0), (b"w:in", mark, 1.0)])
        status = runtime.native.library("segments").structsvm_predict(tagger._pointer, texts, starts, 1, found)
        assert status == (0 if mark else -3)  # STRUCTSVM_INPUT
    assert runtime.native.as_array([(Long(b"w"), 0, 1.0)])[0].size == runtime.native.NO_TEXT - 1


class Long(bytes):
    """Bytes that say they are more than a size in C holds."""

    def __len__(self):
        return (1 << 32) + 5


def test_a_key_that_may_be_the_text_of_a_list_is_refused(tmp_path):
    model, _ = with_tokens(lambda word: {"w": word, "w=other": 1.0})  # "other" has a shape that words have
    with pytest.raises(ValueError, match="both 'w=' and 'w:' begin features that may be its text"):
        model.export(tmp_path / "none")


def test_a_feature_without_any_text_left_is_refused(tmp_path):
    params = {"features": TokenFeatures(min_count=2)}
    model, _ = with_tokens(lambda word: [f"w={word}{next(NUMBERS)}q", f"w:{next(NUMBERS)}-", "same"], **params)
    with pytest.raises(ValueError, match="both 'w=' and 'w:' begin features"):
        model.export(tmp_path / "none")
    model.model_.encoder.seen = None  # as of sequences that are read once
    with pytest.raises(ValueError, match="neither 'w=' nor 'w:' begin features"):
        model.export(tmp_path / "none")


def test_features_in_lists_and_in_dicts_at_once_are_refused(tmp_path):
    X = [[{"w": "a"}, {"w": "b"}], [["w=a"], ["w=b"]]] * 3
    model = SequenceLabeler(segments=True, C=1.0, random_state=0).fit(X, [["B-x", "I-x"]] * 6)
    with pytest.raises(ValueError, match="both 'w=' and 'w:' begin features"):
        model.export(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_only_models_of_segments_look_for_texts(runtime, monkeypatch):
    """Attributes of other models are not searched for marks."""
    monkeypatch.setattr(runtime.tokens, "_MARK", None)
    for token in (lambda word: {"w": word, "b": 1.0}, lambda word: [f"w={word}", "b"]):
        model, X = with_tokens(token)
        plain = SequenceLabeler(C=1.0, random_state=0).fit(X, model.predict(X))
        assert [runtime.load(bytes_of(plain)).predict(x) for x in X] == plain.predict(X)
        with pytest.raises(AttributeError, match="search"):
            runtime.load(bytes_of(model)).predict(X[0])


def test_compact_models(runtime):
    X = sequences("segments")
    for bits in (8, 16, 32):
        model = fitted("segments").compact(bits=bits)
        tagger = runtime.load(bytes_of(model))
        assert [tagger.predict(x) for x in X] == [list(y) for y in model.predict(X)]
        for x, best in zip(X[:20], model.predict_kbest(X[:20], 3), strict=True):
            assert tagger.kbest(x, 3) == [(list(y), score) for y, score in best]


@pytest.mark.parametrize("name", ["segments", "segments under rules"])
def test_tables_of_nodes_beyond_their_bounds_are_refused(runtime, name):
    """Each number of each table, one at a time: too large, or below -1."""
    data = bytearray(bytes_of(fitted(name)))
    arrays = arrays_of(data)
    n_nodes = int(arrays[0][12])
    of_nodes = [len(array) == n_nodes for array in arrays]
    first = next(i for i in range(len(arrays)) if of_nodes[i] and of_nodes[i + 1] and of_nodes[i + N_OF_NODES])
    runtime.load(bytes(data))
    refused = 0
    for k, array in enumerate(arrays[first : first + N_OF_NODES + 1]):
        for place in range(0, len(array), 1 + len(array) // 9):
            before = int(array[place])
            for value in (1 << 30, 0xFFFFFFFE):
                array[place] = value
                if k == 1:  # whether a sequence may end there: any number but 0 says so
                    runtime.load(sound(bytes(data)))
                else:
                    with pytest.raises(runtime.ModelError):
                        runtime.load(sound(bytes(data)))
                    refused += 1
            array[place] = before
    assert refused > 50


def score_by(model, x, tags):
    """The score of tags by the weights of a file, and what they are shown as; x is dicts of a word and its length."""
    own, start = model["segments"], 0
    number = [model["labels"].index(tag) for tag in tags]
    total = model["first"][number[0]] + sum(model["transitions"][a][b] for a, b in pairwise(number))
    for t, tag in enumerate(tags):
        for name in (f"w:{x[t]['w']}", f"nested:length:{x[t]['nested']['length']}"):
            total += model["features"].get(name, {}).get(tag, 0.0)
        start = t if tag[0] in "BS" else start
        if tag[0] in "ES":
            segment = [token["w"] for token in x[start : t + 1]]
            total += own["lengths"][min(len(segment), own["max_length"] + 1) - 1].get(tag[2:], 0.0)
            for (where, made), phrases in zip(own["names"], own["phrases"], strict=True):
                assert where == "w"
                text = " ".join(map(MADE[made], segment))
                total += phrases.get(text, {}).get(tag[2:], 0.0)
    return total, [own["shown"][k] for k in number]


def test_json_has_all_weights_of_segments(tmp_path):
    fitted("segments of dicts").export(tmp_path, to="json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert len(model["segments"]["lengths"]) == model["segments"]["max_length"] + 1 == 4
    assert sum(map(len, model["segments"]["phrases"])) > 3
    for x, best in zip(sequences("segments of dicts")[:9], fitted("segments of dicts").predict_kbest(
        sequences("segments of dicts")[:9], 4
    ), strict=True):  # fmt: skip
        for labels, score in best:
            found, shown = score_by(model, x, BIOES.labels(BIO.chunks(labels), len(labels)))
            assert found == pytest.approx(score, abs=1e-4)
            assert shown == list(labels)
