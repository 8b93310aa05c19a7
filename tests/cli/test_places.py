"""Errors and warnings about a label of a file name its line, whatever reads the file."""

import json

import command_line
import pytest

pytestmark = pytest.mark.filterwarnings("default::structsvm.AdviceWarning")  # the command prints them

ROWS = [f"{'abc'[k % 3]} {k % 3 + 1}:1 {4 + k % 5}:0.5" for k in range(60)]
TWO = [row.replace("c", "a") for row in ROWS]
SETS = [row.replace("a ", "a,b ") for row in ROWS]
TEXTS = [f"{'abc'[k % 3]}\tword{k % 3} x" for k in range(60)]
TOKENS = [line for k in range(20) for line in (f"w{k % 7} X", f"v{k % 3} Y", "")]
GRAPHS = [
    json.dumps({"nodes": [{"features": [k % 2, 1.0], "label": "ab"[k % 2]}, {"features": [k % 3, 0.5]}], "edges": []})
    for k in range(30)
]
TREE = ("--taxonomy", "tree.tsv")
# By task: lines to train on, and the line with a strange label that stands third, after comments or blank lines.
FILES = {
    "multiclass": (ROWS, "zz 1:1", ()),
    "binary": (TWO, "zz 1:1", ()),
    "multilabel": (SETS, "a,zz 1:1", ()),
    "taxonomy": (ROWS, "zz 1:1", TREE),
    "taxonomy of texts": (TEXTS, "zz\tword1", TREE),
    "sequence": (TOKENS, "w1 zz", ()),
    "graph": (GRAPHS, GRAPHS[0].replace('"a"', '"zz"'), ()),
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "tree.tsv").write_text("a\tr\nb\tr\nc\tr\n")

    def write(task):
        lines, strange, options = FILES[task]
        (tmp_path / "good").write_text("\n".join(lines) + "\n")
        (tmp_path / "bad").write_text("\n".join([*lines[:2], strange, *lines[3:]]) + "\n")
        return task.split()[0], options

    return write


@pytest.mark.parametrize("task", FILES)
def test_a_label_that_the_model_has_not(task, files, tmp_path):
    kind, options = files(task)
    command_line.run(tmp_path, "train", kind, "good", "-m", "m", "-C", 1, "-q", *options)
    error = command_line.run(tmp_path, "train", kind, "bad", "-m", "n", "-C", 1, "--warm-start", "m", status=1)[1]
    assert ("bad:3: " in error or "bad, line 3: " in error) and "zz" in error


@pytest.mark.parametrize("task", ["taxonomy", "taxonomy of texts"])
def test_a_label_that_is_no_node(task, files, tmp_path):
    kind, options = files(task)
    error = command_line.run(tmp_path, "train", kind, "bad", "-m", "m", "-C", 1, *options, status=1)[1]
    assert "bad, line 3: row 2 of y: the label 'zz' is no node of the taxonomy" in error
    error = command_line.run(tmp_path, "train", kind, "bad", "-m", "m", "-C", 1, "--partial", *options, status=1)[1]
    assert "bad, line 3: row 2 of y: the label 'zz' is no node of the taxonomy" in error


@pytest.mark.parametrize("task", ["multiclass", "binary", "taxonomy", "taxonomy of texts"])
def test_a_label_of_test_data_that_training_never_saw(task, files, tmp_path):
    kind, options = files(task)
    command_line.run(tmp_path, "train", kind, "good", "-m", "m", "-C", 1, "-q", *options)
    said = command_line.run(tmp_path, "evaluate", "m", "bad")[1]
    assert "have a label that training never saw ('zz', the first at bad, line 3)" in said


@pytest.mark.parametrize(("task", "label"), [("sequence", "w1 A|"), ("taxonomy", "A| 1:1"), ("taxonomy", "_ 1:1")])
def test_labels_known_in_part(task, label, files, tmp_path):
    kind, options = files(task)
    lines = (tmp_path / "good").read_text().splitlines()
    (tmp_path / "bad").write_text("\n".join([*lines[:3], label, *lines[4:]]) + "\n")
    error = command_line.run(tmp_path, "train", kind, "bad", "-m", "m", "-C", 1, "--partial", *options, status=1)[1]
    assert "bad:4: sequence 1, token 0: the label" in error or "bad, line 4: row 3 of y: the label" in error
