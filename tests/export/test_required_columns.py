"""Tokens without a column that all tokens of training had are refused where Python's `predict` refuses them."""

import json
import random
import subprocess
import warnings

import pytest
import runtime_models
from runtime_models import bytes_of, sound

from structsvm.export.folders import RUNTIME, compiled_wasm
from structsvm.tasks import SequenceLabeler

LABELS = ["B-a", "I-a", "O"]
DICTS = [[{"w": word, "n": 1.0, "ends": [word[-1]], "more": {"x": "y"}} for word in ("to", "be", "or", "not")]] * 6
# Tokens of training: dicts, dicts with a mark in a key, lists.
TRAINED = {
    "dicts": DICTS,
    "marks": [[{"w:x": "a", "w=": 1.0, "": True}, {"w:x": "b", "w=": 1.0, "": 1.0}]] * 6,
    "lists": [[["w=a", "x:b", "c"], ["w=b", "x:c=d", "=e"]]] * 6,
    "sets": [[{"w=a", "c"}, {"w=b", "d"}]] * 6,
}
TOKENS = [
    {"w": "to", "n": 1.0, "ends": ["o"], "more": {"x": "y"}}, {"w": "", "n": 0.0, "ends": [], "more": {}},
    {"w": ["to"], "n": True, "ends": {}, "more": []}, {"w": 1, "n": "1", "ends": "o", "more": "y"},
    {"w:x": "a", "w=": 0.0, "": 1}, {"w:x": "a", "w=": []}, {"": {}}, {"w": "to", "w:": 1.0}, {"w:x:": 1.0, "w=": "a"},
    {"n": 1, "ends": {"o": {"p": []}}, "more": [1.0]}, {"n": False, "ends": [[]], "more": [{}]}, {"w": "a", "x": "b"},
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


@pytest.mark.parametrize(("name", "n_arrays"), [("dicts", 2), ("lists", 2)])
def test_files_before_format_6_require_nothing(runtime, name, n_arrays):
    data = bytes_of(fitted(name))
    at, starts = 24, []
    while at < len(data):
        starts.append(at)
        at += 16 + (int.from_bytes(data[at + 8 : at + 16], "little") * (data[at] & 15) + 7) // 8 * 8
    older = bytearray(sound(data[: starts[-n_arrays]]))
    older[8] = 5
    tagger = runtime.load(bytes(older))
    assert tagger.predict([{"other": 1.0}]) == tagger.predict([{}])
    older[8] = 6
    with pytest.raises(runtime.ModelError):
        runtime.load(bytes(older))
    newer = bytearray(data)
    newer[8] = 5
    with pytest.raises(runtime.ModelError):
        runtime.load(bytes(newer))


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
    for name in ("dicts", "marks", "lists"):
        model, X = fitted(name), sequences(3, 300)
        (tmp_path / "model").write_bytes(bytes_of(model))
        (tmp_path / "X.json").write_text(json.dumps(X), encoding="ascii")
        command = [runtime_models.NODE, *(str(tmp_path / file) for file in ("test.mjs", "model", "X.json"))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == wanted(model, X), name
