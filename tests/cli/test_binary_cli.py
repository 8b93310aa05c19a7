"""The command line for machines of two classes."""

import json

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_banana
from structsvm.features.svmlight import write_svmlight
from structsvm.tasks import HullerClassifier, LaSVMClassifier, LaSVMSteps, SGDQNClassifier, TrackingClassifier


def banana(seed):
    X, y = make_banana(300, random_state=seed)
    return X.astype(np.float32), np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with points of two crescents, and a model of them."""
    folder = tmp_path_factory.mktemp("binary")
    for seed, name in enumerate(("train.svm", "test.svm")):
        write_svmlight(folder / name, *banana(seed))
    run(folder, "train", "binary", "train.svm", "--model", "m", "--gamma", "1", "--quiet")
    return folder


@pytest.mark.parametrize(
    ("machine", "options", "wanted"),
    [
        (
            "lasvm",
            ["--gamma", "0.5", "-C", "10", "--max-iter", "2", "--selection", "active", "--balanced"],
            LaSVMClassifier(10.0, gamma=0.5, max_iter=2, selection="active", class_weight="balanced", random_state=0),
        ),
        (
            "huller",
            ["--gamma", "20", "--cache-size", "1"],
            HullerClassifier(gamma=20.0, cache_size=1.0, random_state=0),
        ),
        (
            "sgdqn",
            ["--alpha", "0.01", "--loss", "hinge", "--average", "--balanced"],
            SGDQNClassifier(0.01, loss="hinge", average=True, class_weight="balanced", random_state=0),
        ),
    ],
)
def test_train_is_the_estimator(data, tmp_path, machine, options, wanted):
    model, picture = tmp_path / "m", tmp_path / "h.png"
    out, err = run(data, "train", "binary", "train.svm", "-m", model, "--machine", machine, *options, "--plot", picture)
    assert "300 examples, 2 features" in out and "is y = 1" in out and err == ""
    assert f"model: {model}" in out and picture.stat().st_size > 1000
    ours, (X, y) = structsvm.load(model), banana(0)
    wanted.fit(X, y)
    assert repr(ours) == repr(wanted)
    X_test, y_test = banana(1)
    np.testing.assert_array_equal(ours.decision_function(X_test), wanted.decision_function(X_test))
    out = json.loads(run(data, "evaluate", model, "test.svm", "--json")[0])
    assert out == {"accuracy": pytest.approx(wanted.score(X_test, y_test)), "n_samples": 300, "n_unseen": 0}
    lines = run(data, "predict", model, "test.svm")[0].split()
    assert lines == wanted.predict(X_test).tolist()
    out, _ = run(data, "inspect", model, "--top", "2")
    assert f"task: binary, {type(wanted).__name__}" in out and "\nyes: " in out and "\nno: " in out


def test_steps_of_lasvm_are_in_the_file(data, tmp_path):
    path = tmp_path / "m"
    run(data, "train", "binary", "train.svm", "-m", path, "-C", 1, "--n-reprocess", 2, "-q")
    assert structsvm.load(path).steps == LaSVMSteps(n_reprocess=2)
    structsvm.load(path).set_params(steps=LaSVMSteps(n_reprocess=3, finishing=False)).save(path)
    run(data, "train", "binary", "train.svm", "-m", path, "--warm-start", path, "--max-iter", 2, "-q")
    assert structsvm.load(path).steps == LaSVMSteps(n_reprocess=3, finishing=False)


def test_scores_of_both_labels(data):
    X_test, _ = banana(1)
    f = structsvm.load(data / "m").decision_function(X_test)
    lines = run(data, "predict", "m", "test.svm", "--kbest", "2")[0].splitlines()
    for value, line in zip(f, lines, strict=True):
        first, second = line.split("\t")
        assert first.split()[0] == ("yes" if value > 0 else "no")
        assert float(first.split()[1]) == pytest.approx(abs(value), abs=1e-6)
        assert float(second.split()[1]) == pytest.approx(-abs(value), abs=1e-6)
    one = run(data, "predict", "m", "-", "--kbest", "1", text="yes 1:0.5\n")[0]
    assert "\t" not in one


@pytest.mark.parametrize("machine", ["lasvm", "sgdqn"])
def test_confidence(data, tmp_path, machine):
    args = ["train", "binary", "train.svm", "-m", tmp_path / "m", "--machine", machine, "--probability", "-q"]
    run(data, *args)
    X_test, _ = banana(1)
    proba = structsvm.load(tmp_path / "m").predict_proba(X_test)
    rows = [
        line.split("\t") for line in run(data, "predict", tmp_path / "m", "test.svm", "--confidence")[0].splitlines()
    ]
    np.testing.assert_allclose([float(p) for _, p in rows], proba.max(axis=1), atol=1e-4)
    assert "train it again" in run(data, "predict", "m", "test.svm", "--confidence", status=1)[1]


def test_inspect_one_label(data, tmp_path):
    out, _ = run(data, "inspect", "m", "--label", "yes", "--plot", tmp_path / "h.png")
    assert "yes: " in out and "no: " not in out and (tmp_path / "h.png").exists()
    assert "'other' is not one of the labels" in run(data, "inspect", "m", "--label", "other", status=1)[1]


def test_a_model_of_tracking(data, tmp_path):
    wanted = TrackingClassifier(random_state=0).fit(*banana(0))
    wanted.save(tmp_path / "m")
    assert run(data, "predict", tmp_path / "m", "test.svm")[0].split() == wanted.predict(banana(1)[0]).tolist()
    assert "task: binary, TrackingClassifier, linear" in run(data, "inspect", tmp_path / "m")[0]


def test_demo(tmp_path):
    out, _ = run(tmp_path, "demo", "binary", "-o", "d.png")
    assert "accuracy" in out and (tmp_path / "d.png").stat().st_size > 1000


def test_bad_input(data, tmp_path):
    (tmp_path / "three.svm").write_text("1 1:1\n2 1:2\n3 1:3\n")
    (tmp_path / "one.svm").write_text("1 1:1\n1 1:2\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 x\n")
    for name, message in [
        ("three.svm", "two classes are wanted, and there are 3: 1, 2, 3"),
        ("one.svm", "two classes are wanted, and there are 1: 1"),
        ("bad.svm", "bad.svm, line 2"),
    ]:
        assert message in run(tmp_path, "train", "binary", name, "-m", "m", status=1)[1]
    for options, message in [
        (["--machine", "huller", "-C", "2"], "--machine huller has no C"),
        (["--machine", "huller", "--balanced"], "--machine huller has no balanced"),
        (["--machine", "sgdqn", "--kernel", "rbf"], "--machine sgdqn has no kernel"),
        (["--alpha", "1"], "--machine lasvm has no alpha"),
        (["-C", "-1"], "'-C': '-1' is not auto or a float in the range"),
        (["--gamma", "1", "--kernel", "linear"], "--gamma has no effect with --kernel linear"),
    ]:
        assert message in run(data, "train", "binary", "train.svm", "-m", tmp_path / "m", *options, status=2)[1]
    run(data, "train", "binary", "train.svm", "-m", tmp_path / "m", "--gamma", "-1", status=2)
    run(data, "train", "binary", "train.svm", "-m", tmp_path / "m", "--coef0", "nan", status=2)
    assert not (tmp_path / "m").exists()
