"""Five jobs as new users do them, by the public names and commands alone: against any installed structsvm.

They need nothing of the checkout: the folder can be copied elsewhere and run there.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_alignment, make_sequences, make_treebank


def command(folder, *arguments):
    """Run the command line; returns its output."""
    program = Path(sys.executable).with_name("structsvm")
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_entity_tagger_moves_over_from_sklearn_crfsuite(tmp_path):
    """The features, lists and calls of its tutorial."""
    from structsvm.metrics import chunk_f1
    from structsvm.tasks import SequenceLabeler

    def word2features(sentence, i):
        word, tag = sentence[i]
        features = {"bias": 1.0, "word.lower()": word.lower(), "word[-3:]": word[-3:], "postag": tag}
        if i > 0:
            features["-1:postag"] = sentence[i - 1][1]
        else:
            features["BOS"] = True
        return features

    def sent2features(sentence):
        return [word2features(sentence, i) for i in range(len(sentence))]

    sentences, y = make_sequences(150, random_state=0)
    test, y_test = make_sequences(60, random_state=1)
    X, X_test = [sent2features(s) for s in sentences], [sent2features(s) for s in test]
    crf = SequenceLabeler(random_state=0)
    crf.fit(X, y)
    labels = crf.predict(X_test)
    assert [len(s) for s in labels] == [len(s) for s in test]
    assert chunk_f1(y_test, labels) > 0.5
    assert set(crf.classes_) == {label for s in y for label in s}
    assert np.allclose(crf.predict_marginals(X_test[:1])[0].sum(axis=1), 1.0)
    crf.save(tmp_path / "entities.model")
    assert structsvm.load(tmp_path / "entities.model").predict(X_test) == labels


def test_a_parser_from_a_treebank(tmp_path):
    for name, n, seed in (("train.mrg", 120, 0), ("test.mrg", 40, 1)):
        trees = make_treebank(n, random_state=seed)
        (tmp_path / name).write_text("".join(f"{tree}\n" for tree in trees))
    command(tmp_path, "train", "grammar", "train.mrg", "--model", "parser.model", "--quiet")
    scores = json.loads(command(tmp_path, "evaluate", "parser.model", "test.mrg", "--json"))
    assert 0.5 < scores["f1"] <= 1.0
    sentence = make_treebank(1, random_state=2)[0].tokens()
    (tmp_path / "new.txt").write_text(" ".join(tag for _, tag in sentence) + "\n")
    assert command(tmp_path, "predict", "parser.model", "new.txt").startswith("(")


def test_gap_costs_learnt_from_aligned_fasta(tmp_path):
    pytest.importorskip("Bio", reason="FASTA is read with Biopython")
    for name, seed in (("train.fasta", 0), ("test.fasta", 1)):
        data = make_alignment(40, random_state=seed)
        lines = [f">{i}{side}\n{row}\n" for i, rows in enumerate(data.y) for side, row in zip("ab", rows, strict=True)]
        (tmp_path / name).write_text("".join(lines))
    command(tmp_path, "train", "alignment", "train.fasta", "--model", "costs.model", "-C", "0.1", "--quiet")
    scores = json.loads(command(tmp_path, "evaluate", "costs.model", "test.fasta", "--json"))
    assert 0.0 <= scores["error"] < 0.7 and 0.3 < scores["pair_f1"] <= 1.0
    aligner = structsvm.load(tmp_path / "costs.model")
    ((row_x, row_z),) = aligner.predict([("HEAGAWGHEE", "PAWHEAE")])
    assert (row_x.replace("-", ""), row_z.replace("-", "")) == ("HEAGAWGHEE", "PAWHEAE")


def test_a_taxonomy_of_products_in_a_data_frame():
    pandas = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import TfidfVectorizer

    from structsvm.metrics import hierarchical_scores
    from structsvm.tasks import TaxonomyClassifier

    rng = np.random.default_rng(0)
    words = {"Toys > Games > Chess": "king rook board", "Toys > Games > Dice": "dice cup board", "Books": "novel page"}
    category = rng.choice(list(words), size=90)
    title = [" ".join(rng.choice(words[c].split(), size=3)) for c in category]
    frame = pandas.DataFrame({"title": title, "category": category})
    train, test = frame[:60], frame[60:]
    goods = TaxonomyClassifier(" > ", vectorizer=TfidfVectorizer(), C=1.0, random_state=0)
    goods.fit(train["title"], train["category"])
    predicted = goods.predict(test["title"])
    assert np.mean(predicted == test["category"]) > 0.8
    levels = goods.predict_levels(test["title"])
    assert levels.shape[1] == 3 and set(levels[:, 0]) <= {"Toys", "Books"}
    assert hierarchical_scores(test["category"], predicted, taxonomy=goods.taxonomy_).f1 > 0.8


class Subsets(structsvm.Oracle):
    """A choice among five things: those of positive score."""

    n_features = 3

    def joint_feature(self, x, y):
        return x[sorted(y)].sum(axis=0) if y else np.zeros(3)

    def loss(self, y_true, y):
        return float(len(set(y_true) ^ set(y)))

    def argmax(self, x, w, y_true=None, rescaling=None):
        scores = x @ w
        if y_true is not None:
            scores = scores + np.where(np.isin(np.arange(len(x)), sorted(y_true)), -1.0, 1.0)
        return frozenset(np.flatnonzero(scores > 0.0).tolist())


def test_a_structure_of_ones_own(tmp_path):
    from structsvm.testing import check_oracle

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(40)]
    Y = [frozenset(np.flatnonzero(x @ [1.0, -2.0, 0.5] > 0.0).tolist()) for x in X]
    check_oracle(Subsets(), X, Y)
    model = structsvm.StructuredSVM(Subsets(), structsvm.LaRank(C=1.0, tol=1e-3, random_state=0)).fit(X, Y)
    assert model.result_.gap <= 1e-3 * model.result_.primal
    assert np.mean([a == b for a, b in zip(model.predict(X), Y, strict=True)]) > 0.9
    model.save(tmp_path / "subsets.model")
    assert structsvm.load(tmp_path / "subsets.model", oracle=Subsets()).predict(X[:3]) == model.predict(X[:3])
