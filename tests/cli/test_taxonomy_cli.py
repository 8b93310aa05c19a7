"""The command line for taxonomies: in this process, and once end to end in processes of its own."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import run
from sklearn.feature_extraction.text import TfidfVectorizer

import structsvm
from structsvm.datasets import make_taxonomy, write_documents
from structsvm.metrics import hierarchical_scores, tree_loss
from structsvm.tasks import KernelFunction, TaxonomyClassifier

SIZE = {"n_leaves": 12, "depth": 2, "n_words": 300}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with documents, edges, and a model of them."""
    folder = tmp_path_factory.mktemp("taxonomy")
    for name, n, seed in (("train.txt", 200, 0), ("test.txt", 60, 1)):
        X, y, taxonomy = make_taxonomy(n, **SIZE, random_state=seed)
        write_documents(folder / name, X, y, taxonomy, folder / "edges.tsv")
    run(folder, "train", "taxonomy", "train.txt", "--taxonomy", "edges.tsv", "--model", "m", "--quiet")
    return folder


def own_model(**params):
    X, y, taxonomy = make_taxonomy(200, **SIZE, random_state=0)
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    return TaxonomyClassifier(taxonomy, vectorizer=vectorizer, random_state=0, **params).fit(X, y)


def test_train_says_what_it_did(data, tmp_path):
    args = ["train", "taxonomy", "train.txt", "--taxonomy", "edges.tsv", "--model", tmp_path / "m"]
    out, err = run(data, *args, "--plot", tmp_path / "h.png")
    assert "200 documents, 12 labels in a taxonomy of 16 nodes and 12 leaves\n" in out
    assert "primal" in out and "gap" in out and f"model: {tmp_path / 'm'}" in out and err == ""
    assert (tmp_path / "h.png").stat().st_size > 1000
    X, y, taxonomy = make_taxonomy(60, **SIZE, random_state=1)
    model = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(model.decision_function(X).shape, own_model().decision_function(X).shape)
    np.testing.assert_array_equal(model.predict(X), own_model().predict(X))
    assert model.taxonomy_ == taxonomy and model.score(X, y) > 0.5


def test_options_reach_the_model(data, tmp_path):
    args = ["--any-node", "--balanced", "--loss", "path", "--attributes", "normalized", "-C", "0.5", "--min-count", "2"]
    args += ["--ngrams", "2", "--max-weights", "2000", "--max-iter", "2", "--seed", "3"]
    run(data, "train", "taxonomy", "train.txt", "--taxonomy", "edges.tsv", "-m", tmp_path / "m", "-q", *args)
    params = structsvm.load(tmp_path / "m").get_params()
    wanted = {
        "leaf_only": False, "class_weight": "balanced", "loss": "path", "attributes": "normalized", "C": 0.5,
        "vectorizer__min_df": 2, "vectorizer__ngram_range": (1, 2), "max_weights": 2000, "max_iter": 2,
        "random_state": 3,
    }  # fmt: skip
    assert {name: params[name] for name in wanted} == wanted


def test_predict(data, tmp_path):
    X = make_taxonomy(60, **SIZE, random_state=1)[0]
    labels = structsvm.load(data / "m").predict(X).tolist()
    out, _ = run(data, "predict", "m", "test.txt")
    assert out.splitlines() == labels
    assert run(data, "predict", "m", "-", text="".join(f"{text}\n" for text in X))[0] == out
    run(data, "predict", "m", "test.txt", "-o", tmp_path / "p")
    assert (tmp_path / "p").read_text() == out
    best = [line.split("\t") for line in run(data, "predict", "m", "test.txt", "--kbest", "3")[0].splitlines()]
    assert [row[0].split()[0] for row in best] == labels and {len(row) for row in best} == {3}
    scores = np.array([[float(cell.split()[1]) for cell in row] for row in best])
    assert (np.diff(scores, axis=1) <= 0.0).all()


def test_confidence(data):
    X = make_taxonomy(60, **SIZE, random_state=1)[0]
    model = structsvm.load(data / "m")
    proba = model.predict_proba(X)
    rows = [line.split("\t") for line in run(data, "predict", "m", "test.txt", "--confidence")[0].splitlines()]
    assert [name for name, _ in rows] == model.predict(X).tolist()
    np.testing.assert_allclose([float(p) for _, p in rows], proba.max(axis=1), atol=1e-6)
    best, _ = run(data, "predict", "m", "test.txt", "--confidence", "-k", "2")
    for line, row, kbest in zip(best.splitlines(), proba, model.predict_kbest(X, 2), strict=True):
        cells = [cell.split() for cell in line.split("\t")]
        assert [name for name, _ in cells] == [name for name, _ in kbest]
        np.testing.assert_allclose([float(p) for _, p in cells], np.sort(row)[::-1][:2], atol=1e-6)


def test_confidence_in_nodes_above(data, tmp_path):
    args = ["train", "taxonomy", "train.txt", "--taxonomy", "edges.tsv", "--any-node", "--loss", "path", "-q"]
    run(data, *args, "-m", tmp_path / "m")
    X = make_taxonomy(60, **SIZE, random_state=1)[0]
    model = structsvm.load(tmp_path / "m")
    of_nodes = dict(zip(model.taxonomy_.nodes, model.node_proba(X).T, strict=True))
    for i, line in enumerate(run(data, "predict", tmp_path / "m", "test.txt", "--confidence")[0].splitlines()):
        name, p = line.split("\t")
        assert float(p) == pytest.approx(of_nodes[name][i], abs=1e-6)


def test_dense_files(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = (np.eye(3)[y] @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(200, 5))).astype(np.float32)
    lines = [f"c{label} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(x.tolist(), 1)) for x, label in zip(X, y)]
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    run(tmp_path, "train", "taxonomy", "train.svm", "-m", "m", "-q")
    model = TaxonomyClassifier(random_state=0).fit(X, np.array([f"c{label}" for label in y]))
    np.testing.assert_array_equal(structsvm.load(tmp_path / "m").coef_, model.coef_)
    assert run(tmp_path, "predict", "m", "train.svm")[0].split() == model.predict(X).tolist()


def test_evaluate(data, tmp_path):
    X, y, taxonomy = make_taxonomy(60, **SIZE, random_state=1)
    predicted = structsvm.load(data / "m").predict(X)
    scores = json.loads(run(data, "evaluate", "m", "test.txt", "--json")[0])
    assert scores["accuracy"] == pytest.approx(np.mean(predicted == y))
    assert scores["tree_loss"] == pytest.approx(tree_loss(y, predicted, taxonomy))
    assert scores["hierarchical_f1"] == pytest.approx(hierarchical_scores(y, predicted, taxonomy).f1)
    assert scores["n_documents"] == 60
    out, err = run(data, "evaluate", "m", "test.txt", "--plot", tmp_path / "c.png")
    assert f"60 documents: accuracy {100 * scores['accuracy']:.2f}%" in out and "c.png" in err
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_inspect(data):
    out, _ = run(data, "inspect", "m", "--top", "3")
    assert "task: taxonomy, 12 classes in Taxonomy(16 nodes, 12 leaves, height 2)" in out
    assert "features of texts" in out and "primal" in out and out.count("\n  + ") == 15
    leaf = structsvm.load(data / "m").classes_[0]
    one, _ = run(data, "inspect", "m", "--label", leaf)
    assert one.count("\n  + ") == 1 and f"\n{leaf}\n  + w" in one
    assert "'x' is not one of the nodes" in run(data, "inspect", "m", "--label", "x", status=1)[1]


def test_kernel_machines(data, tmp_path):
    options = ["--taxonomy", "edges.tsv", "--kernel", "rbf", "--gamma", "0.5", "-C", "10", "-m", tmp_path / "m"]
    run(data, "train", "taxonomy", "train.txt", *options)
    out = run(data, "inspect", tmp_path / "m")[0]
    assert "support patterns, kernel rbf" in out and "kernel=KernelFunction(gamma=0.5)" in out
    X, _, _ = make_taxonomy(60, **SIZE, random_state=1)
    own = own_model(kernel=KernelFunction(gamma=0.5), C=10.0)
    assert structsvm.load(tmp_path / "m").predict(X).tolist() == own.predict(X).tolist()
    err = run(data, "train", "taxonomy", "train.txt", "-m", tmp_path / "x", "--gamma", "1", status=2)[1]
    assert "--gamma has no meaning without --kernel" in err and not (tmp_path / "x").exists()


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_svmlight_and_flat_classes(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{k} {k + 1}:1 {rng.integers(5, 9)}:0.5\n" for k in rng.integers(0, 4, 80)]
    (tmp_path / "train.svm").write_text("".join(lines))
    (tmp_path / "test.svm").write_text("3 4:2 99:1\n0 1:1\n")
    assert "80 documents, 4 classes without a taxonomy" in run(tmp_path, "train", "taxonomy", "train.svm", "-m", "m")[0]
    assert run(tmp_path, "predict", "m", "test.svm")[0] == "3\n0\n"
    assert json.loads(run(tmp_path, "evaluate", "m", "test.svm", "--json")[0])["accuracy"] == 1.0
    assert "4 classes\n" in run(tmp_path, "inspect", "m")[0]
    (tmp_path / "text").write_text("3\tsome text\n")
    err = run(tmp_path, "predict", "m", "text", status=1)[1]
    assert "text, line 1: expected a label and index:value pairs" in err


def test_texts_that_look_like_features(tmp_path):
    (tmp_path / "train").write_text("a\talarm 7:30\nb\tlights on\n" * 5)
    (tmp_path / "new").write_text("alarm 7:30\n")
    run(tmp_path, "train", "taxonomy", "train", "-m", "m")
    assert run(tmp_path, "predict", "m", "new")[0] == "a\n"


def test_demo(tmp_path):
    out, _ = run(tmp_path, "demo", "taxonomy", "-o", "d.png")
    losses = [float(line.rsplit(" ", 1)[1]) for line in out.splitlines() if "mean tree loss" in line]
    assert losses[1] < losses[0] and (tmp_path / "d.png").stat().st_size > 1000


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_bad_input(data, tmp_path):
    edges = (data / "edges.tsv").read_text()
    parents = [line.split("\t")[1] for line in edges.splitlines()]
    inner = next(name for name in parents if name not in ("ROOT", "1.0"))
    for name, text in (
        ("cycle.tsv", edges + "ROOT\t1.0\n"),
        ("twice.tsv", edges + edges.splitlines()[0] + "\n"),
        ("roots.tsv", edges + "a\tb\n"),
        ("one.txt", "1.0/2.0\tw1\n1.0/2.0\tw2\n"),
        ("inner.txt", f"1.0/2.0\tw1\n{inner}\tw2\n"),
        ("unknown.txt", "1.0/2.0\tw1\nlinux\tw2\n"),
        ("bare.txt", "w1\nw2\n"),
    ):
        (tmp_path / name).write_text(text)
    good = {"docs": data / "train.txt", "edges": data / "edges.tsv"}
    for message, files in (
        ("the taxonomy has a cycle", {"edges": "cycle.tsv"}),
        ("is repeated", {"edges": "twice.tsv"}),
        ("2 roots", {"edges": "roots.tsv"}),
        ("needs at least 2 classes", {"docs": "one.txt"}),
        (f"y has the inner node {inner!r}, and none of the leaves below", {"docs": "inner.txt"}),
        ("the label 'linux' is no node", {"docs": "unknown.txt"}),
        ("the documents have no labels", {"docs": "bare.txt"}),
    ):
        used = good | files
        args = ["train", "taxonomy", used["docs"], "--taxonomy", used["edges"], "-m", tmp_path / "m", "--leaves"]
        assert message in run(tmp_path, *args, status=1)[1]
        assert not (tmp_path / "m").exists()
    out, err = run(tmp_path, "evaluate", data / "m", "unknown.txt", "--json")
    assert "documents have a label that training never saw" in err and "'linux'" in err and err.count("warning") == 1
    assert json.loads(out)["n_unseen"] in (1, 2) and json.loads(out)["n_documents"] == 2
    assert "no labels to compare" in run(tmp_path, "evaluate", data / "m", "bare.txt", status=1)[1]


def test_paths_and_inner_nodes(tmp_path):
    """Labels that end early are predicted as they stand, and counted; with --leaves they are unknown leaves."""
    labels = ["A", "A > x", "B > y"] * 20
    (tmp_path / "docs").write_text("".join(f"{label}\tword{k % 3} all\n" for k, label in enumerate(labels)))
    args = ["train", "taxonomy", "docs", "--separator", " > ", "-m", "m", "-C", "10"]
    out, _ = run(tmp_path, *args)
    assert "60 documents, 3 labels in a taxonomy of 5 nodes and 2 leaves (20 documents at inner nodes)" in out
    assert run(tmp_path, "predict", "m", "docs")[0].splitlines() == labels
    assert json.loads(run(tmp_path, "evaluate", "m", "docs", "--json")[0])["accuracy"] == 1.0
    run(tmp_path, *args, "--leaves")
    assert "A" not in run(tmp_path, "predict", "m", "docs")[0].splitlines()
    assert json.loads(run(tmp_path, "evaluate", "m", "docs", "--json")[0])["accuracy"] == pytest.approx(2 / 3)
    (tmp_path / "edges").write_text("A\tall\nB\tall\n")
    assert "--taxonomy and --separator" in run(tmp_path, *args, "--taxonomy", "edges", status=2)[1]


def test_ctrl_c_leaves_a_model(tmp_path):
    X, y, taxonomy = make_taxonomy(3000, n_leaves=60, random_state=0)
    write_documents(tmp_path / "docs", X, y, taxonomy, tmp_path / "edges")
    args = ["train", "taxonomy", "docs", "--taxonomy", "edges", "-m", "m", "--max-iter", "1000000", "--checkpoint", "c"]
    process = subprocess.Popen(
        [sys.executable, "-m", "structsvm", *args],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "c").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "passes: m holds the partial model" in err and "Traceback" not in err
    assert structsvm.load(tmp_path / "m").score(X, y) > 0.9


def test_labels_known_in_part(tmp_path):
    """A|B is one of these, and an inner node any leaf below it; without --partial bars are parts of names."""
    X, y, taxonomy = make_taxonomy(80, n_leaves=6, random_state=0)
    edges = "".join(f"{node}\t{parent}\n" for node in taxonomy.nodes for parent in taxonomy.parents(node))
    (tmp_path / "edges").write_text(edges)
    names = [f"{name}|{taxonomy.leaves[0]}" if k % 3 == 0 else str(name) for k, name in enumerate(y)]
    names[1] = str(taxonomy.path(y[1])[0])
    (tmp_path / "docs").write_text("".join(f"{name}\t{text}\n" for name, text in zip(names, X, strict=True)))
    train = ("train", "taxonomy", "docs", "-m", "model", "--taxonomy", "edges", "-C", "1")
    assert "completed in" in run(tmp_path, *train, "--partial")[0]
    sets = np.empty(len(names), dtype=object)
    sets[:] = [set(name.split("|")) if "|" in name else name for name in names]
    vectorizer = structsvm.load(tmp_path / "model").vectorizer_
    expected = TaxonomyClassifier(taxonomy, C=1.0, random_state=0).fit(vectorizer.transform(X), sets)
    np.testing.assert_allclose(structsvm.load(tmp_path / "model").coef_, expected.coef_, rtol=1e-6)
    assert "is no node of the taxonomy" in run(tmp_path, *train, status=1)[1]
    for name, message in (("A|", "each side of a bar must name a label"), ("_", "has the taxonomy's root")):
        (tmp_path / "docs").write_text(f"{name}\tsome words\n" * 3)
        assert message in run(tmp_path, *train, "--partial", status=1)[1]


def test_inner_nodes_that_a_model_of_leaves_does_not_predict(tmp_path):
    (tmp_path / "t").write_text("a\tred\na > b\tblue\na > c\tgreen\n" * 10)
    run(tmp_path, "train", "taxonomy", "t", "-m", "m", "--separator", " > ", "--leaves", "-C", "1", "-q")
    assert "10 documents are at inner nodes, and count as wrong" in run(tmp_path, "evaluate", "m", "t")[0]
    run(tmp_path, "train", "taxonomy", "t", "-m", "m", "--separator", " > ", "-C", "1", "-q")
    assert "inner nodes" not in run(tmp_path, "evaluate", "m", "t")[0]
