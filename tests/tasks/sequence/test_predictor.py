"""Models opened to predict alone: the same labels, errors as of `load`, and no import of scikit-learn or scipy."""

import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning, ModelFileError
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.model_file import read_model, write_model
from structsvm.tasks import LaRankClassifier, SequenceLabeler, TokenFeatures
from structsvm.tasks.sequence import predictor

X, Y = make_sequences(60, n_labels=3, n_words=60, mean_length=6.0, random_state=0)
PARTLY = [[*X[0][:2]], [], *X[1:9]]


def dicts(sequences):
    return [[{"w": token[0], "nested": {"length": str(len(token[0]))}} for token in tokens] for tokens in sequences]


def attributes(sequences):
    return [[[f"w={token[0]}", "bias"] for token in tokens] for tokens in sequences]


def words(sequences):
    return [[token[0] for token in tokens] for tokens in sequences]


FORMS = {
    "tuples": (list, {}),
    "columns": (lambda sequences: Columns.from_sequences(sequences, allow_empty=True), {"templates": "crf++"}),
    "words": (words, {}),
    "dicts": (dicts, {}),
    "attributes": (attributes, {"loss": "log", "C": 0.1}),
    "hashed": (dicts, {"features": TokenFeatures(hash_bits=10), "C": 0.1}),
    "bigrams": (dicts, {"features": TokenFeatures(bigrams="w", end=True), "C": 0.1}),
    "templates with bigrams": (list, {"templates": "U0:%x[0,0]\nB\nB0:%x[0,0]\n", "C": 0.1}),
    "order 2": (list, {"order": 2, "C": 0.1}),
    "greedy": (list, {"inference": "greedy", "C": 0.1}),
    "constraints": (list, {"constraints": "bio", "C": 0.1, "loss": "hamming"}),
}


@pytest.mark.parametrize(("given", "params"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_predictions_are_those_of_the_model(given, params, mmap, tmp_path, monkeypatch):
    model = SequenceLabeler(max_iter=3, random_state=0, **params).fit(given(X), Y)
    model.save(tmp_path / "m")
    reader = structsvm.load(tmp_path / "m", predictor=True, mmap=mmap)
    assert type(reader) is predictor.Predictor
    assert reader.classes_ == model.classes_.tolist()
    assert reader.predict(given(X)) == model.predict(given(X))
    assert reader.predict(given(PARTLY)) == model.predict(given(PARTLY))
    monkeypatch.setattr(predictor, "BATCH", 4)
    if not isinstance(given(X), Columns):
        assert list(islice(reader.predict_iter(iter(given(X))), 9)) == model.predict(given(X))[:9]
    if model.inference == "greedy":
        with pytest.raises(ValueError, match="predict_marginals needs probabilities"):
            reader.predict_marginals(given(X))
        return
    for one, other in zip(reader.predict_marginals(given(PARTLY)), model.predict_marginals(given(PARTLY)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_compact_models_and_bytes_are_opened(tmp_path):
    small = SequenceLabeler(max_iter=3, random_state=0).fit(X, Y).compact(bits=8)
    small.save(tmp_path / "m")
    for origin in (tmp_path / "m", (tmp_path / "m").read_bytes()):
        assert structsvm.load(origin, predictor=True).predict(X) == small.predict(X)


def test_other_models_and_damaged_files_are_refused(tmp_path):
    numbers = [np.eye(3)[[k % 3 for k in range(len(labels))]] for labels in Y]
    named = [[{"w": token[0], "n": 0.5 * k} for k, token in enumerate(tokens)] for tokens in X]
    for data, params in ((X, {"segments": True}), (numbers, {}), (named, {})):
        SequenceLabeler(C=0.1, max_iter=2, random_state=0, **params).fit(data, Y).save(tmp_path / "m")
        with pytest.raises(ValueError, match=r"m: predictor=True opens chains .* load\(path\) opens it"):
            structsvm.load(tmp_path / "m", predictor=True)
    LaRankClassifier().fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "m")
    with pytest.raises(ValueError, match="opens a SequenceLabeler, and this is a model of 'multiclass'"):
        structsvm.load(tmp_path / "m", predictor=True)
    SequenceLabeler(C=0.1, max_iter=2, random_state=0).fit(X, Y).save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    for meta, arrays in (
        ({"oracle": {**file.meta["oracle"], "n_token_features": 3}}, {}),
        ({"temperature": -1.0}, {}),
        ({"labels": ["a", "a"]}, {}),
        ({}, {"weights.data": np.full_like(file.arrays["weights.data"], np.nan)}),
    ):
        write_model(tmp_path / "n", file.kind, file.meta | meta, file.arrays | arrays)
        with pytest.raises(ModelFileError, match="n: not a sound sequence model"):
            structsvm.load(tmp_path / "n", predictor=True)


def test_tokens_without_known_features_are_said(tmp_path):
    SequenceLabeler(C=0.1, max_iter=2, random_state=0).fit(attributes(X), Y).save(tmp_path / "m")
    reader = structsvm.load(tmp_path / "m", predictor=True)
    with pytest.warns(AdviceWarning, match="have no feature that the model knows"):
        reader.predict([[["w=strange"]] * 20])


# Modules that take a third of the time and memory of a first answer, and that none needs.
UNNEEDED = {"numpy.random", "pathlib", "difflib", "inspect", "structsvm.parameters"}


def test_neither_scipy_nor_scikit_learn_is_imported(tmp_path):
    SequenceLabeler(max_iter=2, random_state=0).fit(X, Y).save(tmp_path / "m")
    code = (
        f"import sys, structsvm; print(structsvm.load({str(tmp_path / 'm')!r}, predictor=True).predict({X[:1]!r}))\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'scipy', 'sklearn', 'networkx', 'joblib'}))\n"
        "print(sorted(name for name in sys.modules if name.startswith(('structsvm.solvers', 'structsvm.metrics'))))\n"
        f"print(sorted(set(sys.modules) & {UNNEEDED - imported_anyway()!r}))"
    )
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[1:] == ["[]", "[]", "[]"]


def imported_anyway():
    """The modules of a process that imports NumPy, through an editable installation maybe."""
    code = "import numpy, structsvm, sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True).stdout.split())
