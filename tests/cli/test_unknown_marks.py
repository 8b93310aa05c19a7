"""Marks of unknown labels in files: -100 always, -1 unless it is a label, what --unknown names."""

import json

import command_line
import pytest

import structsvm
from structsvm.cli import TASKS, task_of

pytestmark = pytest.mark.filterwarnings("default::structsvm.AdviceWarning")  # the command prints them


def tokens(mark):
    return "".join(f"w{k % 7} {mark if k % 5 == 0 else 'XY'[k % 2]}\n" + "\n" * (k % 4 == 3) for k in range(80))


def conllu(mark):
    def word(i, j):
        tag = mark if (i + j) % 5 == 0 else "XY"[j % 2]
        return f"{j}\tw{j}\t_\t{tag}\t_\t_\t{int(j > 1)}\tdep\t_\t_\n"

    return "".join("".join(word(i, j) for j in (1, 2, 3, 4)) + "\n" for i in range(20))


def rows(mark):
    return "".join(f"{mark if k % 5 == 0 else 'XY'[k % 2]} {k % 2 + 1}:1 {4 + k % 3}:0.5\n" for k in range(80))


def texts(mark):
    return "".join(f"{mark if k % 5 == 0 else 'XY'[k % 2]}\tw{k % 2} v{k % 3}\n" for k in range(80))


def graphs(mark):
    """Numbers stand as numbers, text as text."""
    mark = int(mark) if mark.lstrip("-").isdigit() else mark
    labels = [mark if k % 5 == 0 else "XY"[k % 2] for k in range(80)]
    nodes = [{"features": [k % 2, k % 3], "label": label} for k, label in enumerate(labels)]
    return "".join(json.dumps({"nodes": nodes[k : k + 2], "edges": [[0, 1]]}) + "\n" for k in range(0, 80, 2))


FORMS = {
    "sequence": (tokens, "token", 16),
    "sequence of CoNLL-U": (conllu, "token", 16),
    "taxonomy": (rows, "document", 16),
    "taxonomy of texts": (texts, "document", 16),
    "multilabel": (rows, "row", 16),
    "graph": (graphs, "node", 16),
}
WITH_MARKS = pytest.mark.parametrize("name", FORMS)


def train(folder, name, text, *options, **about):
    (folder / "data").write_text(text)
    return command_line.run(folder, "train", name.split()[0], "data", "-m", "m", "-C", 1, *options, **about)


def labels_of(folder):
    return [str(label) for label in structsvm.load(folder / "m").classes_]


@WITH_MARKS
@pytest.mark.parametrize("mark", ["-100", "-1"])
def test_numbers_are_counted_aloud(name, mark, tmp_path):
    form, what, n = FORMS[name]
    said = train(tmp_path, name, form(mark))[1]
    assert f"y is {mark} at {n} {what}s, which is read as: not known" in said and "--unknown" in said
    assert labels_of(tmp_path) == ["X", "Y"]
    scores = command_line.run(tmp_path, "evaluate", "m", "data", "--json")[0]
    found = json.loads(scores)
    assert found["n_unknown"] == n and found["accuracy"] > 0.9
    assert train(tmp_path, name, form(mark), "--unknown", mark)[1] == ""
    assert labels_of(tmp_path) == ["X", "Y"]


@WITH_MARKS
def test_other_marks_are_named(name, tmp_path):
    form, _, n = FORMS[name]
    train(tmp_path, name, form("?"), "-q")
    assert labels_of(tmp_path) == ["?", "X", "Y"]
    for mark in ("?", "-7"):
        assert train(tmp_path, name, form(mark), "-q", "--unknown", mark)[1] == ""
        assert labels_of(tmp_path) == ["X", "Y"]
        found = json.loads(command_line.run(tmp_path, "evaluate", "m", "data", "--json")[0])
        assert found["n_unknown"] == n and found["accuracy"] > 0.9
        (tmp_path / "other").write_text(form("!"))
        found = json.loads(command_line.run(tmp_path, "evaluate", "m", "other", "--json", "--unknown", "!")[0])
        assert found["n_unknown"] == n and found["accuracy"] > 0.9


@WITH_MARKS
def test_none_makes_a_label_of_it(name, tmp_path):
    train(tmp_path, name, FORMS[name][0]("-1"), "-q", "--unknown", "none")
    assert len(labels_of(tmp_path)) == 3 and "-1" in labels_of(tmp_path)


@pytest.mark.parametrize("task", TASKS)
def test_the_option_is_of_all_whose_estimator_has_the_parameter(task):
    has_option = any(option.name == "unknown" for option in task_of(task).train.params)
    assert has_option == task_of(task).has_unknown == (task in {name.split()[0] for name in FORMS})


@pytest.mark.parametrize("task", ["multiclass", "binary"])
def test_flat_machines_refuse_it_with_its_line(task, tmp_path):
    error = train(tmp_path, task, rows("-100"), status=1)[1]
    assert "data, line 1: the label -100 means one that is not known, and stands in 16 lines: leave these out" in error
    train(tmp_path, task, rows("X"), "-q")
    command_line.run(tmp_path, "evaluate", "m", "data", "--unknown", "X", status=2)
    (tmp_path / "data").write_text(rows("-100"))
    assert "not known" in command_line.run(tmp_path, "evaluate", "m", "data", status=1)[1]


def test_streams_and_shards(tmp_path):
    train(tmp_path, "sequence", tokens("-100"), "--stream")
    assert labels_of(tmp_path) == ["X", "Y"]
    error = train(tmp_path, "sequence", tokens("-100"), "--shards", "s", status=1)[1]
    assert "shards need labels that are all known, and theirs hold '-100'" in error


def test_heads_of_trees(tmp_path):
    heads = {k: str(2 if k == 1 else 0 if k == 2 else 1) for k in (1, 2, 3)}

    def trees(mark):
        sentence = "".join(f"{k}\tw{k}\t_\tX\t_\t_\t{heads[k]}\tdep\t_\t_\n" for k in heads) + "\n"
        last = "".join(f"{k}\tw{k}\t_\tX\t_\t_\t{mark if k == 3 else heads[k]}\tdep\t_\t_\n" for k in heads) + "\n"
        return sentence * 5 + last * 3

    for mark in ("_", "-100"):
        out, said = train(tmp_path, "dependency", trees(mark), "--max-iter", 2)
        assert "3 labels are not known" in out
        assert (f"HEAD or DEPREL is {mark} 3 times, which is read as: not known" in said) == (mark != "_")
        error = command_line.run(tmp_path, "evaluate", "m", "data", "-q", status=1)[1]
        assert "data:23: " in error and "word 3 has no head, and so there is nothing to compare with" in error
