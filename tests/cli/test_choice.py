"""``-C auto`` on the command line: the default of some tasks, offered by others, and one line about it."""

import re

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_sequences
from structsvm.features.svmlight import write_svmlight

LINE = r"C = \S+ \(of \S+ to \S+; held-out (F1|accuracy) \d+\.\d \+- \d+\.\d, next best \d+\.\d at C = \S+\)\n"
SUM = (
    r"losses 'log' at C = \S+ \(\d+\.\d\) and '(?:hamming|tree)' at C = \S+ \(\d+\.\d\), "
    r"added \(held-out (?:F1|accuracy) \d+\.\d \+- \d+\.\d\)\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choice")
    X, y = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
    lines = ("".join(f"{word} {tag} {label}\n" for (word, tag), label in zip(*s, strict=True)) for s in zip(X, y))
    (folder / "train.txt").write_text("\n".join(lines))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 4))
    write_svmlight(folder / "train.svm", rows, np.where(rows[:, 0] + rng.normal(size=80) > 0.0, "p", "q"))
    return folder


@pytest.mark.parametrize(
    ("task", "file", "options"),
    [
        ("sequence", "train.txt", []),
        ("sequence", "train.txt", ["--loss", "log"]),
        ("taxonomy", "train.svm", []),
        ("multiclass", "train.svm", ["-C", "auto"]),
        ("binary", "train.svm", ["-C", "auto"]),
    ],
)
def test_a_line_says_what_was_chosen(folder, task, file, options):
    out, err = run(folder, "train", task, file, "-m", "m", "--training-state", *options)
    adds = task in ("sequence", "taxonomy") and not options
    (found,) = re.finditer(SUM if adds else LINE, out)
    assert err == ""
    model = structsvm.load(folder / "m")
    assert model.get_params()["C"] == "auto" and f"C = {model.C_:g} (" in found[0]
    shown = run(folder, "inspect", "m")[0]
    assert found[0] in shown
    for text in (out, shown):
        claims = re.findall(r"^(?:loss (\w+): )?(?:primal .*, gap|.*no duality gap)", text, re.MULTILINE)
        assert claims == (["log", "hamming" if task == "sequence" else "tree"] if adds else [""])
    # It goes on with what was chosen.
    more, _ = run(folder, "train", task, file, "-m", "more", "--warm-start", "m", "--max-iter", "1")
    assert found[0] in more and structsvm.load(folder / "more").C_ == model.C_
    if adds:
        again = structsvm.load(folder / "more").results_
        assert {loss: result.n_iter for loss, result in again.items()} == {
            loss: result.n_iter + 1 for loss, result in model.results_.items()
        }
    width = ["--gamma", "0.5"] if task in {"multiclass", "binary"} else []
    fixed, _ = run(folder, "train", task, file, "-m", "m", "--training-state", "-C", "0.5", *width)
    assert "held-out" not in fixed and structsvm.load(folder / "m").C_ == 0.5


def test_words_that_are_no_number(folder):
    _, err = run(folder, "train", "sequence", "train.txt", "-m", "m", "-C", "best", status=2)
    assert "Invalid value for '-C': 'best' is not auto or records or tokens or a float in the range (0.0, inf)" in err
