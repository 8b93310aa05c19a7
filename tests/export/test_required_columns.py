"""Tokens without a column that all tokens of training had are refused where Python's `predict` refuses them."""

import json
import random
import subprocess
import warnings

import document_models
import numpy as np
import parser_models
import pytest
import runtime_models
from runtime_models import bytes_of, sound

from structsvm.export.binary import RuntimeFile
from structsvm.export.folders import RUNTIME, compiled_wasm
from structsvm.tasks import SequenceLabeler

LABELS = ["B-a", "I-a", "O"]
DICTS = [[{"w": word, "n": 1.0, "ends": [word[-1]], "more": {"x": "y"}} for word in ("to", "be", "or", "not")]] * 6
# Tokens of training: dicts, dicts with a mark in a key, lists.
TRAINED = {
    "dicts": DICTS,
    "marks": [[{"w:x": "a", "w=": 1.0, "": True}, {"w:x": "b", "w=": 1.0, "": 1.0}]] * 6,
    "names of lists": [[{"length": 1.0}, {"length": True}]] * 6,
    "lists": [[["w=a", "x:b", "c"], ["w=b", "x:c=d", "=e"]]] * 6,
    "sets": [[{"w=a", "c"}, {"w=b", "d"}]] * 6,
}
TOKENS = [
    {"w": "to", "n": 1.0, "ends": ["o"], "more": {"x": "y"}}, {"w": "", "n": 0.0, "ends": [], "more": {}},
    {"w": ["to"], "n": True, "ends": {}, "more": []}, {"w": 1, "n": "1", "ends": "o", "more": "y"},
    {"w:x": "a", "w=": 0.0, "": 1}, {"w:x": "a", "w=": []}, {"": {}}, {"w": "to", "w:": 1.0}, {"w:x:": 1.0, "w=": "a"},
    {"n": 1, "ends": {"o": {"p": []}}, "more": [1.0]}, {"n": False, "ends": [[]], "more": [{}]}, {"w": "a", "x": "b"},
    {"length": True}, ["length"],
    {"n[0]": 1.0, "ends[0]": 1.0, "more:": 1.0, "w=a": 1.0, "x:b": True}, {}, [], ["w=a"], ["x:b", "c"], ["x=w="],
    ["w=", "x:"], ["w:to", "n", "ends:o", "more:x"], ["w:x:a", "w="], ["=e"], ["x:b", "w=z"],
]  # fmt: skip
LONG = [{"n": 1.0, "ends": [], "more": []}] * 1500


def sequences(seed, n):
    rng = random.Random(seed)
    found = [rng.choices(TOKENS, k=rng.randint(1, 3)) for _ in range(n)]
    # Not all of more than 1,000 tokens are looked at: every second one of 1,500.
    return [*found, [], *([*LONG[:t], DICTS[0][0], *LONG[t + 1 :]] for t in (0, 700, 701, 1498, 1499))]


def fitted(name, **params):
    X = TRAINED[name]
    return SequenceLabeler(C=1.0, max_iter=3, random_state=0, **params).fit(
        X, [LABELS[: len(x)] + ["O"] * (len(x) - 3) for x in X]
    )


def answered(predict, x):
    """The labels, or None if they are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return predict(x)
        except ValueError as error:
            if "training had" not in str(error):
                raise
            return None


def wanted(model, X):
    return [answered(lambda x: list(map(str, model.predict([x])[0])), x) for x in X]


@pytest.mark.parametrize("name", TRAINED)
def test_refusals_are_those_of_predict(runtime, name):
    model, X = fitted(name), sequences(0, 300)
    tagger, answers = runtime.load(bytes_of(model)), wanted(model, X)
    assert [answered(tagger.predict, x) for x in X] == answers
    assert 0 < answers.count(None) < len(X)
    x = X[answers.index(None)]
    for ask in (lambda x: tagger.kbest(x, 2), tagger.probability):
        assert answered(ask, x) is None


@pytest.mark.parametrize("name", TRAINED)
def test_c_refuses_nothing_else(runtime, monkeypatch, name):
    """The program in C sees attributes, and not whether they are of lists or dicts."""
    model, X = fitted(name), sequences(1, 300)
    tagger, answers = runtime.load(bytes_of(model)), wanted(model, X)
    monkeypatch.setattr("structsvm_runtime.tagger.check_columns", lambda tokens, required: None, raising=True)
    found = [answered(tagger.predict, x) for x in X]
    assert [(a, b) for a, b in zip(found, answers, strict=True) if a != b and b is not None] == []
    assert found.count(None) > answers.count(None) / 2


def test_segments(runtime):
    X = [x for x in sequences(2, 300) if not any(isinstance(token, list) for token in x)]
    model = fitted("dicts", segments=True)
    tagger, answers = runtime.load(bytes_of(model)), wanted(model, X)
    assert [answered(tagger.predict, x) for x in X] == answers
    assert 0 < answers.count(None) < len(X)


def arrays_with_heads(data):
    """The arrays of a file, each with its head."""
    at, found = 24, []
    while at < len(data):
        size = 16 + (int.from_bytes(data[at + 8 : at + 16], "little") * (data[at] & 15) + 7) // 8 * 8
        found.append(data[at : at + size])
        at += size
    return found


def with_required(data, model, names, version=6):
    """The file with other required columns, or none (None) and not even the arrays of them."""
    arrays, own = arrays_with_heads(data), RuntimeFile()
    own.add_texts(sorted(model.model_.encoder.seen.required, key=lambda name: (len(coded(name)), name)))
    sought = arrays_with_heads(own.contents())
    (at,) = [k for k in range(len(arrays)) if arrays[k : k + 2] == sought]
    other = RuntimeFile()
    if names is not None:
        ends = np.cumsum([0, *(len(name) + 1 for name in names)])
        other.add("<u4", ends)
        other.add("u1", np.frombuffer(b"".join(name + b"\0" for name in names), dtype=np.uint8))
    body = b"".join([*arrays[:at], other.contents()[24:], *arrays[at + 2 :]])
    changed = bytearray(data[:16] + (24 + len(body)).to_bytes(8, "little") + body)
    changed[8] = version
    return bytes(sound(changed))


def coded(name):
    return name.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(("name", "params"), [("dicts", {}), ("lists", {}), ("dicts", {"segments": True})])
def test_files_of_format_5_require_nothing(runtime, name, params):
    model = fitted(name, **params)
    data = bytes_of(model)
    tagger = runtime.load(with_required(data, model, None, version=5))
    assert tagger.predict([{"other": 1.0}]) == tagger.predict([{}])
    x = TRAINED[name][0]
    assert tagger.predict(x) == runtime.load(data).predict(x)
    for wrong in (with_required(data, model, None), with_required(data, model, [b"w:"], version=5)):
        with pytest.raises(runtime.ModelError):
            runtime.load(wrong)


# Models without required columns, and what they label.
OTHERS = {
    "words": lambda: (runtime_models.fitted("words", 20), ["a", "w3"]),
    "segments of words": lambda: (runtime_models.fitted("segments", 20), ["a", "w3"]),
    "documents": lambda: (document_models.fitted("tfidf"), ["red shoes", "a tent"]),
    "trees": lambda: (parser_models.fitted("projective"), parser_models.columns(parser_models.new_sentences()[0])),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_of_format_5_are_as_those_of_6(runtime, name):
    model, x = OTHERS[name]()
    data = bytearray(bytes_of(model))
    labels = runtime.load(bytes(data)).predict(x)
    data[8] = 5
    assert runtime.load(bytes(data)).predict(x) == labels
    for version in (4, 7):
        data[8] = version
        with pytest.raises(ValueError, match="another version"):
            runtime.load(bytes(data))


@pytest.mark.parametrize("name", OTHERS)
def test_labels_that_are_not_utf8_are_refused(runtime, name):
    data = bytes_of(OTHERS[name]()[0])
    label = coded(runtime.load(data).labels[0]) + b"\0"
    at = data.index(label)
    with pytest.raises(runtime.ModelError):
        runtime.load(sound(data[:at] + b"\xff" + data[at + 1 :]))


UNSOUND = {
    "twice": [b"w:", b"w:"],
    "falling": [b"x:", b"w:"],
    "longer ones first": [b"w:", b"w"],
    "too many": [b"%03d" % k for k in range(257)],
    "no UTF-8": [b"\xff"],
    "overlong": [b"\xc0\x80"],
    "cut": [b"a\xc3"],
}


@pytest.mark.parametrize("name", UNSOUND)
@pytest.mark.parametrize("params", [{}, {"segments": True}], ids=["sequences", "segments"])
def test_unsound_names_are_refused(runtime, name, params):
    model = fitted("dicts", **params)
    with pytest.raises(runtime.ModelError):
        runtime.load(with_required(bytes_of(model), model, UNSOUND[name]))


def test_as_many_names_as_can_be_are_read(runtime):
    model, names = fitted("dicts"), [b"", b"w:", *(b"%03d" % k for k in range(252)), b"0000", b"\xed\xa0\x80a"]
    tagger = runtime.load(with_required(bytes_of(model), model, names))
    token = {name.decode("utf-8", "surrogatepass"): 1.0 for name in names} | {"w": "a"}
    assert tagger.predict([token]) == runtime.load(bytes_of(model)).predict(
        [token | {"n": 1.0, "ends": [], "more": []}]
    )
    with pytest.raises(ValueError, match=r"training had '.ud800a', and these"):
        tagger.predict([{key: token[key] for key in token if not key.endswith("a")}])


def test_models_of_many_columns_are_read(runtime):
    """The first 256 of them are required, in the order in which the runtime wants them."""
    token = {f"{'ü' * (k % 3)}{k}": "a" for k in range(400)}
    model = SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit([[token, token]] * 6, [["A", "B"]] * 6)
    tagger, required = runtime.load(bytes_of(model)), model.model_.encoder.seen.required
    assert len(required) == 256
    assert tagger.predict([token]) == list(model.predict([[token]])[0])
    with pytest.raises(ValueError, match="training had"):
        tagger.predict([{key: value for key, value in token.items() if f"{key}:" != required[0]}])


@pytest.mark.parametrize("seed", range(5))
def test_what_is_required_is_what_all_tokens_have(runtime, seed):
    """Models of more tokens than are looked at in predictions label each sequence of their training."""
    rng = random.Random(seed)
    keys = "abcdef"

    def token():
        features = {key: rng.choice(["x", 1.0, ["y"]]) for key in keys[:4]} | {"e": "x", "f": 1.0}
        for key in keys:
            if key != "f" and rng.random() < 0.0005 * (keys.index(key) + 1):
                del features[key]
        return features

    X = [[token() for _ in range(rng.randint(1, 4))] for _ in range(1200)]
    model = SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit(X, [["A", *"B" * (len(x) - 1)] for x in X])
    columns = [{key + ":" * isinstance(value, str) for key, value in features.items()} for x in X for features in x]
    assert set(model.model_.encoder.seen.required) == set.intersection(*columns)
    tagger = runtime.load(bytes_of(model))
    assert [tagger.predict(x) for x in X] == [list(y) for y in model.predict(X)]


def test_bytes_are_the_columns_of_their_texts(runtime):
    X = [[{b"w": b"a", b"n": 1.0}, {b"w": "b", "n": 1.0}]] * 6
    model = SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit(X, [["A", "B"]] * 6)
    assert sorted(model.model_.encoder.seen.required) == ["n", "w:"]
    tagger = runtime.load(bytes_of(model))
    for x in (X[0], [{"w": "a", "n": 1.0}], [{"w": "a"}, {b"n": 1.0}]):
        assert tagger.predict(x) == list(model.predict([x])[0])
    for x in ([{b"w": b"a"}], [{b"n": 1.0}], [{b"w": 1.0, b"n": 1.0}]):
        assert answered(tagger.predict, x) is None
        assert wanted(model, [x]) == [None]
    Z = [[[b"w=a", "x"], ["w=b", b"y"]]] * 6
    model = SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit(Z, [["A", "B"]] * 6)
    tagger = runtime.load(bytes_of(model))
    assert tagger.predict([[b"w=a"]]) == list(model.predict([[[b"w=a"]]])[0])
    assert (
        [answered(tagger.predict, x) for x in ([[b"w"]], [["x"]])] == wanted(model, [[[b"w"]], [["x"]]]) == [None] * 2
    )


NODE = """
import { load } from "./structsvm.mjs"; import { readFileSync } from "node:fs";
const model = await load(readFileSync(process.argv[2]));
const answered = (x) => {
  try { return model.predict(x); } catch (e) { if (!/training had/.test(e)) throw e; return null; }
};
console.log(JSON.stringify(JSON.parse(readFileSync(process.argv[3], "utf8")).map(answered)));
"""


@pytest.mark.skipif(runtime_models.NODE is None, reason="needs node")
def test_javascript(tmp_path):
    pytest.importorskip("ziglang")
    (tmp_path / "structsvm.wasm").write_bytes(compiled_wasm("sequences"))
    (tmp_path / "structsvm.mjs").write_bytes((RUNTIME / "structsvm.mjs").read_bytes())
    (tmp_path / "test.mjs").write_text(NODE, encoding="ascii")
    for name in ("dicts", "marks", "names of lists", "lists"):
        model, X = fitted(name), sequences(3, 300)
        (tmp_path / "model").write_bytes(bytes_of(model))
        (tmp_path / "X.json").write_text(json.dumps(X), encoding="ascii")
        command = [runtime_models.NODE, *(str(tmp_path / file) for file in ("test.mjs", "model", "X.json"))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == wanted(model, X), name
