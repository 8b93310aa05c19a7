"""The command line for multiclass kernel machines: in this process, and once without scikit-learn."""

import json
import subprocess
import sys

import numpy as np
import pytest
from command_line import run
from matplotlib.image import imread

import structsvm
from structsvm.cli.multiclass import clouds
from structsvm.features.svmlight import write_svmlight
from structsvm.tasks import CrammerSingerClassifier, LaRankClassifier


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with points of five classes, and a model of them."""
    folder = tmp_path_factory.mktemp("multiclass")
    for name, fresh in (("train.svm", False), ("test.svm", True)):
        X, y = clouds(300, 0, fresh=fresh)
        write_svmlight(folder / name, X, [f"c{label}" for label in y])
    run(folder, "train", "multiclass", "train.svm", "--model", "m", "--quiet")
    return folder


def test_train_is_the_estimator(data, tmp_path):
    X, y = clouds(300, 0)
    names = np.array([f"c{label}" for label in y])
    options = ["--kernel", "rbf", "--gamma", "0.025", "-C", "10", "--max-iter", "3", "--plot", tmp_path / "h.png"]
    options.append("--training-state")
    out, err = run(data, "train", "multiclass", "train.svm", "-m", tmp_path / "m", *options)
    assert "300 examples, 10 features, 5 classes, kernel rbf(gamma=0.025)" in out and err == ""
    assert "primal" in out and "gap" in out and "million kernel values" in out and f"model: {tmp_path / 'm'}" in out
    assert (tmp_path / "h.png").stat().st_size > 1000
    ours = structsvm.load(tmp_path / "m")
    wanted = LaRankClassifier(C=10.0, gamma=0.025, max_iter=3, random_state=0).fit(X, names)
    np.testing.assert_array_equal(ours.dual_coef_.toarray(), wanted.dual_coef_.toarray())
    assert repr(ours) == repr(wanted)
    # It goes on from there as from its own.
    more = [model.set_params(warm_start=True).fit(X, names).dual_coef_.toarray() for model in (ours, wanted)]
    np.testing.assert_array_equal(*more)


def test_every_solver(data, tmp_path):
    for solver, options in [
        ("crammer_singer", ["--balanced", "--tol", "1e-4"]),
        ("weston_watkins", ["--kernel", "linear"]),
        ("pairwise", ["--probability"]),
        ("perceptron", ["--kernel", "poly", "--degree", "2", "--coef0", "1", "--max-iter", "3"]),
        ("larank", ["--schedule", "adaptive", "--selection", "gain", "--n-reprocess", "2", "--cache-size", "1"]),
    ]:
        run(data, "train", "multiclass", "train.svm", "-m", tmp_path / "m", "--solver", solver, *options, "-q")
        assert json.loads(run(data, "evaluate", tmp_path / "m", "test.svm", "--json")[0])["accuracy"] > 0.6
        out, _ = run(data, "inspect", tmp_path / "m")
        assert type(structsvm.load(tmp_path / "m")).__name__ in out
    seeded = ["--solver", "weston_watkins", "--seed", "1"]
    _, err = run(data, "train", "multiclass", "train.svm", "-m", tmp_path / "x", *seeded, status=2)
    assert "--solver weston_watkins has no random_state" in err
    X, y = clouds(300, 0)
    run(
        data, "train", "multiclass", "train.svm", "-m", tmp_path / "m", "--solver", "crammer_singer", "--balanced", "-q"
    )
    wanted = CrammerSingerClassifier(class_weight="balanced", random_state=0).fit(X, y)
    np.testing.assert_array_equal(structsvm.load(tmp_path / "m").dual_coef_.toarray(), wanted.dual_coef_.toarray())


def test_confidence(data, tmp_path):
    assert "train it again" in run(data, "predict", "m", "test.svm", "--confidence", status=1)[1]
    run(data, "train", "multiclass", "train.svm", "-m", tmp_path / "m", "--probability", "-q")
    model = structsvm.load(tmp_path / "m")
    X, _ = clouds(300, 0, fresh=True)
    proba = model.predict_proba(X)
    out, _ = run(data, "predict", tmp_path / "m", "test.svm", "--confidence")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [label for label, _ in rows] == model.predict(X).tolist()
    np.testing.assert_allclose([float(p) for _, p in rows], proba.max(axis=1), atol=1e-5)
    best, _ = run(data, "predict", tmp_path / "m", "test.svm", "--confidence", "-k", "2")
    first = [line.split("\t")[0].split() for line in best.splitlines()]
    assert first == rows


def test_predict_and_evaluate(data, tmp_path):
    model = structsvm.load(data / "m")
    X, y = clouds(300, 0, fresh=True)
    out, _ = run(data, "predict", "m", "test.svm")
    assert out.split() == model.predict(X).tolist()
    best, _ = run(data, "predict", "m", "-", "--kbest", "2", text=(data / "test.svm").read_text())
    rows = [line.split("\t") for line in best.splitlines()]
    assert [row[0].split()[0] for row in rows] == out.split() and {len(row) for row in rows} == {2}
    np.testing.assert_allclose(
        [float(row[0].split()[1]) for row in rows], model.decision_function(X).max(axis=1), atol=1e-6
    )
    run(data, "predict", "m", "test.svm", "-o", tmp_path / "labels")
    assert (tmp_path / "labels").read_text() == out
    accuracy = np.mean(model.predict(X) == np.array([f"c{label}" for label in y]))
    scores, _ = run(data, "evaluate", "m", "test.svm", "--json", "--plot", tmp_path / "c.png")
    assert json.loads(scores) == {"accuracy": accuracy, "n_samples": 300, "n_unseen": 0}
    assert (tmp_path / "c.png").stat().st_size > 1000
    assert f"accuracy {100 * accuracy:.2f}%" in run(data, "evaluate", "m", "test.svm")[0]


def test_inspect_and_demo(data, tmp_path):
    out, _ = run(data, "inspect", "m", "--top", "2", "--label", "c3", "--plot", tmp_path / "h.png")
    assert "task: multiclass, 5 classes, LaRankClassifier, kernel rbf(gamma=" in out
    model = structsvm.load(data / "m").model_
    row = model.coef[[model.labels.tolist().index("c3")]].toarray().ravel()
    assert out.split("\n\n")[1].splitlines() == [
        f"c3: {np.sum(clouds(300, 0)[1][model.support] == 3)} support patterns",
        *(
            f"  {sign} " + "  ".join(f"example {model.support[j] + 1} {abs(row[j]):.4g}" for j in best)
            for sign, best in (("+", np.argsort(-row, kind="stable")[:2]), ("-", np.argsort(row, kind="stable")[:2]))
        ),
    ]
    _, err = run(data, "inspect", "m", "--label", "x", status=1)
    assert "'x' is not one of the labels" in err
    out, _ = run(data, "demo", "multiclass", "-o", tmp_path / "d.png")
    assert "accuracy 9" in out
    assert (imread(tmp_path / "d.png")[..., :3].min(axis=(0, 2)) < 1.0).mean() > 0.8, "columns that are not blank"


def test_errors(data, tmp_path):
    (tmp_path / "one.svm").write_text("1 1:1\n1 2:1\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n2 x\n")
    train = ["train", "multiclass"]
    for args, message in [
        ([*train, tmp_path / "one.svm", "-m", "x"], "two classes or more"),
        ([*train, tmp_path / "bad.svm", "-m", "x"], "bad.svm, line 2"),
        ([*train, "train.svm", "-m", "none/x"], "there is no folder"),
    ]:
        assert message in run(data, *args, status=1)[1]
    for options, message in [
        (["-C", "-1"], "'-C': '-1' is not auto or a float in the range (0.0, inf)"),
        (["--kernel", "poly", "--degree", "2147483648"], "--degree of KernelFunction must be an int in the range [0, "),
        (["--kernel", "poly", "--coef0", "nan"], "'--coef0': 'nan' is not a float in the range (-inf, inf)"),
        (["--cache-size", "1e-6"], "less than one row"),
        (["--cache-size", "-1"], "'--cache-size': -1.0 is not in the range x>0.0"),
        (["--solver", "perceptron", "-C", "1"], "--solver perceptron has no C"),
        (["--kernel", "linear", "--gamma", "1"], "--gamma has no effect with --kernel linear"),
        (["--degree", "2"], "--degree has no effect with --kernel rbf"),
        (["--kernel", "linear", "--coef0", "1"], "--coef0 has no effect with --kernel linear"),
        (["--kernel", "sigmoid", "--degree", "2"], "--degree has no effect with --kernel sigmoid"),
    ]:
        assert message in run(data, *train, "train.svm", "-m", "x", *options, status=2)[1]
    for value in ("0", "-1", "wide", "nan"):
        assert (
            "is not auto or scale or a float in the range (0.0, inf)"
            in run(data, *train, "train.svm", "-m", "x", "--gamma", value, status=2)[1]
        )
    assert not (data / "x").exists()


def test_without_scikit_learn(data):
    """The command line starts fast: scikit-learn takes longer to import than many a training."""
    code = (
        "import sys; from structsvm.cli import main\n"
        "main(['evaluate', 'm', 'test.svm'], standalone_mode=False)\n"
        "assert 'sklearn' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=data, capture_output=True, check=True)
    assert b"accuracy" in done.stdout
