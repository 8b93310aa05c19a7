"""Sets of labels on the command line."""

import json

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.tasks import MultilabelClassifier


def lines(n, seed, first=1):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 2)
    sets = [[str(k) for k in range(3) if row[k] + 0.3 * row[3] > 0.0] for row in X]
    rows = [" ".join(f"{k + first}:{v}" for k, v in enumerate(row)) for row in X]
    return X, sets, "".join(f"{','.join(labels)} {row}\n" for labels, row in zip(sets, rows))


@pytest.mark.parametrize("first", [0, 1])
def test_train_predict_evaluate_inspect(tmp_path, first):
    X, sets, text = lines(120, 0, first)
    X_test, sets_test, test = lines(60, 1, first)
    (tmp_path / "train").write_text(text)
    (tmp_path / "test").write_text(test)
    out, _ = run(tmp_path, "train", "multilabel", "train", "-m", "m", "--probability", "--loss", "f1")
    assert "120 rows, 4 features, 3 labels" in out
    wanted = MultilabelClassifier("f1", probability=True, random_state=0).fit(
        X.astype(np.float32), [{*map(int, labels)} for labels in sets]
    )
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.coef_.tobytes() == wanted.coef_.tobytes() and loaded.classes_.tolist() == [0, 1, 2]
    predicted = run(tmp_path, "predict", "m", "test")[0]
    answers = wanted.predict(X_test.astype(np.float32))
    assert predicted == "".join(",".join(map(str, labels)) + "\n" for labels in answers)
    scores = json.loads(run(tmp_path, "evaluate", "m", "test", "--json")[0])
    right = [[*map(int, labels)] == [*found] for labels, found in zip(sets_test, answers, strict=True)]
    assert scores["accuracy"] == np.mean(right) > 0.7 and scores["f1"] > 0.9
    assert scores["hamming_loss"] == pytest.approx(
        np.mean([len({*map(int, labels)} ^ {*found}) for labels, found in zip(sets_test, answers)]) / 3
    )
    bare = "".join(line.partition(" ")[2] + "\n" for line in test.splitlines())
    (tmp_path / "bare").write_text(bare)
    assert run(tmp_path, "predict", "m", "bare")[0] == predicted
    confident = run(tmp_path, "predict", "m", "test", "--confidence")[0].splitlines()
    assert [",".join(part.split()[0] for part in line.split("\t") if part) for line in confident] == (
        predicted.splitlines()
    )
    assert f"feature {first}" in run(tmp_path, "inspect", "m", "--label", "0")[0]
    run(tmp_path, "train", "multilabel", "train", "-m", "more", "--warm-start", "m", "--max-iter", "1", "-q")


def test_refusals(tmp_path):
    (tmp_path / "bare").write_text("1:2\n2:1\n")
    (tmp_path / "same").write_text("a,b 1:2\nb,a 2:1\n")
    (tmp_path / "good").write_text("a,b 1:2\n 2:1\nb 1:1 2:1\n")
    run(tmp_path, "train", "multilabel", "good", "-m", "m", "-q")
    for args, message in (
        (("train", "multilabel", "bare", "-m", "n"), "bare, line 1: no line has a label"),
        (("evaluate", "m", "bare"), "bare, line 1: no line has a label"),
        (("train", "multilabel", "same", "-m", "n"), "same: all 2 labels in y are the same"),
        (("predict", "m", "good", "-k", "2"), "--kbest is for models of one output"),
    ):
        assert message in run(tmp_path, *args, status=1)[1]
    (tmp_path / "strange").write_text("a,z 1:2\n")
    assert "1 labels are none of training's" in run(tmp_path, "evaluate", "m", "strange")[0]


def test_demo(tmp_path):
    assert "accuracy of sets" in run(tmp_path, "demo", "multilabel", "-o", "d.png")[0]
    assert (tmp_path / "d.png").exists()
