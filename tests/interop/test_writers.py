"""Trained models in the forms of Wapiti and CRF++: the same labels and probabilities, there too if it is installed."""

import itertools
import os
import shutil
import subprocess

import numpy as np
import pytest

from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.interop import read_crfpp, read_wapiti, write_crfpp, write_wapiti
from structsvm.tasks import GrammarParser, SequenceLabeler, TokenFeatures

WAPITI = os.environ.get("WAPITI") or shutil.which("wapiti")
CRF_LEARN = os.environ.get("CRF_LEARN") or shutil.which("crf_learn")

CRFPP = "U00:%x[-2,0]\nU01:%x[0,0]/%x[1,1]\nU:%x[-1,1]\nU:%x[1,1]\nU9\nB01:%x[0,1]\n"
PATTERNS = 'u:w=%X[0,0]\nu:%x[-1,1]/%t[1,0,"a"]\n*:p=%x[0,1]\nu:m=%m[0,0,".$"]\nb\n'


@pytest.fixture(scope="module")
def data():
    X, y = make_sequences(60, random_state=0)
    return X, y, make_sequences(40, random_state=1)[0]


def trained(data, templates, **params):
    """A labeler; which solution it is does not matter here."""
    X, y, _ = data
    X = Columns.from_sequences(X) if templates is not None else X
    return SequenceLabeler(C=1.0, templates=templates, random_state=0, **params).fit(X, y)


def attributes(X):
    return [[{"w": word, "t": {"is": [tag]}} for word, tag in x] for x in X]


def lists(X):
    return [[[f"w={word}", f"tag={tag}", tag] for word, tag in x] for x in X]


def agree(model, labeler, X, its=None):
    """Labels, the best paths and marginals are the labeler's."""
    its = X if its is None else its
    assert model.predict(its) == labeler.predict(X)
    ours = labeler.predict_marginals(X)
    columns = [model.labels.index(label) for label in labeler.classes_]
    for a, b in zip(model.predict_marginals(its), ours):
        np.testing.assert_allclose(a[:, columns], b, atol=2e-5)


FORMS = [
    ("wapiti", "crf++", {}),
    ("wapiti", CRFPP, {}),
    ("wapiti", CRFPP, {"features": TokenFeatures(end=True), "loss": "log"}),
    ("wapiti", PATTERNS, {}),
    ("crfpp", "crf++", {}),
    ("crfpp", CRFPP, {"features": TokenFeatures(end=True), "loss": "log"}),
]


@pytest.mark.parametrize(("kind", "templates", "params"), FORMS, ids=[f"{k}-{i}" for i, (k, _, _) in enumerate(FORMS)])
def test_models_of_templates(data, tmp_path, kind, templates, params):
    labeler = trained(data, templates, **params)
    write, read = (write_wapiti, read_wapiti) if kind == "wapiti" else (write_crfpp, read_crfpp)
    write(labeler, tmp_path / "m")
    agree(read(tmp_path / "m"), labeler, data[2])
    program = WAPITI if kind == "wapiti" else CRF_LEARN
    if program is not None:
        text = "".join("".join(f"{w} {t}\n" for w, t in x) + "\n" for x in data[2])
        assert labels_of(program, tmp_path, text) == labeler.predict(data[2])


@pytest.mark.parametrize("form", [attributes, lists])
@pytest.mark.parametrize("end", [False, True])
def test_models_of_attributes(data, tmp_path, form, end):
    X, y, X_test = data
    features = TokenFeatures(end=end, bigrams="t" if form is attributes else "tag")
    labeler = SequenceLabeler(C=1.0, features=features, random_state=0).fit(form(X), y)
    write_wapiti(labeler, tmp_path / "m")
    model = read_wapiti(tmp_path / "m")
    known = set(model.attributes)
    observed = []
    for x in form(X_test):
        names = [[f"w:{a['w']}", f"t:is:{a['t']['is'][0]}"] if form is attributes else a for a in x]
        observed.append([["b", *(f"*{n}" if f"*{n}" in known else f"u{n}" for n in token)] for token in names])
        observed[-1][0].append("u__BOS__")
        observed[-1][-1].append("u__EOS__")
    agree(model, labeler, form(X_test), observed)
    if WAPITI is not None:
        text = "".join("".join(" ".join(token) + "\n" for token in x) + "\n" for x in observed)
        assert labels_of(WAPITI, tmp_path, text) == labeler.predict(form(X_test))


def labels_of(program, folder, text):
    """Labels by the program itself."""
    (folder / "d").write_text(text)
    if program == WAPITI:
        args = [program, "label", "-l", "-m", "m", "d"]
    else:
        subprocess.run([program, "-C", "m", "b"], cwd=folder, check=True, capture_output=True)
        args = [program.replace("crf_learn", "crf_test"), "-m", "b", "d"]
    out = subprocess.run(args, cwd=folder, check=True, capture_output=True, text=True).stdout
    blocks = out.strip().split("\n\n")
    return [[line.split("\t")[-1] for line in block.split("\n")] for block in blocks]


def test_scores_are_the_labelers(data, tmp_path):
    """Differences of scores between labellings: weights of first labels, transitions and bigrams, each."""
    labeler = trained(data, CRFPP, features=TokenFeatures(end=True), loss="log")
    write_crfpp(labeler, tmp_path / "m")
    model = read_crfpp(tmp_path / "m")
    x = data[2][0][:3]
    ranked = labeler.predict_kbest([x], 1000, probabilities=True)[0]
    assert len(ranked) == len(labeler.classes_) ** 3 or len(ranked) == 1000
    for labels, chance in itertools.islice(ranked, 50):
        assert model.probability(x, labels) == pytest.approx(chance, abs=1e-5)


def bio(data):
    X, y, _ = data
    return SequenceLabeler(C=1.0, constraints="bio", templates="crf++", broken="repair").fit(X, y)


def numbers(data):
    X, y, _ = data
    return SequenceLabeler(C=1.0).fit([[{"w": w, "n": 3.0 * len(w)} for w, _ in x] for x in X], y)


@pytest.mark.parametrize("model", [SequenceLabeler(), None, "model", GrammarParser()], ids=str)
def test_what_is_no_trained_labeler(model, tmp_path):
    for write in (write_wapiti, write_crfpp):
        with pytest.raises(TypeError, match="trained SequenceLabeler or a ChainModel"):
            write(model, tmp_path / "m")


@pytest.mark.parametrize(
    ("make", "write", "message"),
    [
        (
            lambda d: trained(d, "U:%lower[0,0]\nB"),
            write_wapiti,
            r"Wapiti has no counterpart of the template .U:%lower",
        ),
        (lambda d: trained(d, "U:%lower[0,0]\nB"), write_crfpp, r"CRF\+\+ has no counterpart of the template"),
        (lambda d: trained(d, PATTERNS), write_crfpp, "Wapiti's patterns"),
        (lambda d: trained(d, 'u:%m[0,0,"\\l?\\l"]\nb'), write_wapiti, "Wapiti takes more of a string than matches"),
        (lambda d: trained(d, "U 1:%x[0,0]\nB"), write_crfpp, r"'U 1:.*' cannot stand on a line of CRF\+\+'s text"),
        (lambda d: trained(d, "U:%x[-5,0]\nB"), write_wapiti, "further than 4 tokens"),
        (lambda d: trained(d, "crf++", segments=True), write_wapiti, "whole segments"),
        (lambda d: trained(d, "crf++", order=2), write_wapiti, "three labels"),
        (lambda d: trained(d, "crf++", inference="greedy"), write_crfpp, "greedy"),
        (lambda d: trained(d, "crf++", features=TokenFeatures(hash_bits=10)), write_crfpp, "hashed"),
        (bio, write_wapiti, "constraints"),
        (numbers, write_wapiti, "numbers as values"),
        (lambda d: SequenceLabeler(C=1.0).fit(attributes(d[0]), d[1]), write_crfpp, "attributes"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(data, tmp_path, make, write, message):
    with pytest.raises(ValueError, match=message):
        write(make(data), tmp_path / "m")
    assert not (tmp_path / "m").exists()
