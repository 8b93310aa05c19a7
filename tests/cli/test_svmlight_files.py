"""Conventions of files in svmlight format on the command line, the same for every task that reads them."""

import numpy as np
import pytest
from command_line import run
from sklearn.datasets import dump_svmlight_file

pytestmark = pytest.mark.filterwarnings("default::structsvm.AdviceWarning")  # the command prints them

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(40, 5)) * (RNG.random((40, 5)) < 0.7), 3)
X[:, 4] += 1.0
Y = (X[:, 1] + X[:, 4] > 0.8).astype(int)
TASKS = {
    "multiclass": (),
    "binary": (),
    "ranking": ("-C", "1"),
    "taxonomy": ("-C", "1"),
    "binary sgdqn": ("--machine", "sgdqn"),
}
tasks = pytest.mark.parametrize("task", TASKS)


@pytest.fixture
def work(tmp_path):
    for first in (0, 1):
        path = tmp_path / f"from{first}"
        dump_svmlight_file(X, Y, str(path), zero_based=first == 0, query_id=np.arange(40) // 4)
        lines = path.read_text().splitlines()
        (tmp_path / f"bare{first}").write_text("".join(line.partition(" ")[2] + "\n" for line in lines))
        (tmp_path / f"more{first}").write_text(
            "".join(f"{line} {5 + first + k % 3}:9\n" for k, line in enumerate(lines))
        )
    return tmp_path


def train(work, task, data, *options, **expected):
    return run(work, "train", task.split()[0], data, "-m", f"{task}-{data}", *TASKS[task], "-q", *options, **expected)


@tasks
def test_indices_from_0_and_from_1_are_the_same_features(work, task):
    found = []
    for first in (0, 1):
        train(work, task, f"from{first}")
        found += [run(work, "predict", f"{task}-from{first}", f"{kind}{first}")[0] for kind in ("from", "bare")]
    assert len(set(found)) == 1 and found[0].count("\n") == 40


@tasks
def test_a_test_file_counts_as_the_training_file(work, task):
    lines = [k for k in range(40) if not X[k, 0]]
    wanted = {}
    for first in (0, 1):
        train(work, task, f"from{first}")
        rows = (work / f"from{first}").read_text().splitlines()
        (work / f"part{first}").write_text("".join(rows[k] + "\n" for k in lines))  # none has the first feature
        wanted[first] = run(work, "predict", f"{task}-from{first}", f"part{first}")[0]
    assert wanted[0] == wanted[1]
    for command in ("predict", "evaluate"):
        err = run(work, command, f"{task}-from1", "from0", status=1)[1]
        assert "from0, line 1: has the index 0, and the indices of the data before begin with 1" in err
    err = run(work, "predict", f"{task}-from0", "from1")[1]
    assert "do its indices begin with 1, where those of training begin with 0?" in err


@tasks
def test_features_beyond_those_of_training_are_ignored(work, task):
    for first in (0, 1):
        train(work, task, f"from{first}")
        out, err = run(work, "predict", f"{task}-from{first}", f"more{first}")
        assert out == run(work, "predict", f"{task}-from{first}", f"from{first}")[0]
        assert err == (
            f"warning: more{first}: 40 of 40 rows have features beyond the 5 of training (up to number 8), "
            "which are ignored\n"
        )


@tasks
def test_lines_without_labels_are_not_trained_on(work, task):
    train(work, task, "from1")
    for args in (("train", task.split()[0], "bare1", "-m", "m"), ("evaluate", f"{task}-from1", "bare1")):
        err = run(work, *args, status=1)[1]
        assert "bare1" in err and ("line 1: has no" in err or "the documents have no labels" in err)
    rows = (work / "from1").read_text() + "qid:99 1:1\n"
    (work / "mixed").write_text(rows)
    err = run(work, "train", task.split()[0], "mixed", "-m", "m", status=1)[1]
    assert "mixed, line 41: has no label, unlike the lines before" in err
    (work / "late").write_text((work / "bare1").read_text() + "1 qid:99 1:1\n")
    assert "late, line 41: has a label" in run(work, "predict", f"{task}-from1", "late", status=1)[1]


def test_another_label_per_row_is_not_learnt(work):
    (work / "d").write_text("".join(f"{k} 1:{k % 3}\n" for k in range(30)))
    for task in ("multiclass", "taxonomy"):
        err = run(work, "train", task, "d", "-m", "m", status=1)[1]
        assert "d: 30 of the 30 labels in y differ: are they names or numbers of rows" in err


def test_labels_that_read_as_several(tmp_path):
    (tmp_path / "t").write_text("1,3 1:.5 2:1\n2 2:.5\n" * 10)
    for task in ("multiclass", "binary"):
        said = run(tmp_path, "train", task, "t", "-m", "m", "-C", "1")[1]
        assert "labels such as '1,3' are one class each; train multilabel" in said
        assert not run(tmp_path, "train", task, "t", "-m", "m", "-C", "1", "-q")[1]


def test_sets_between_semicolons_are_asked_about(tmp_path):
    (tmp_path / "t").write_text("1;3 1:.5 2:1\n2 2:.5\n" * 10)
    texts = {"multiclass": "labels such as '1;3' are one class", "multilabel": "'1;3' is one label: several"}
    for task, said in texts.items():
        assert said in run(tmp_path, "train", task, "t", "-m", "m", "-C", "1")[1]


@tasks
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_rows_in_other_units(tmp_path, task, command):
    for name, factor in (("usual", 1.0), ("other", 1e5)):
        lines = (" ".join(f"{j}:{factor * x:.6g}" for j, x in enumerate(row, 1)) for row in 2.0 + RNG.random((40, 3)))
        (tmp_path / name).write_text("".join(f"{k % 2} qid:{k // 4} {line}\n" for k, line in enumerate(lines)))
    train(tmp_path, task, "usual")
    said = "40 of 40 rows looked at have values a thousand times those of training"
    assert said in run(tmp_path, command, f"{task}-usual", "other")[1]
    assert said not in run(tmp_path, command, f"{task}-usual", "usual")[1]


@pytest.mark.parametrize("task", ["multiclass", "binary"])
def test_a_huge_value_is_named(task, tmp_path):
    """By the command line as by the estimators, in files that are mostly zeros or not."""
    rows = [f"{k % 2} 1:{0.1 * k + 0.5:.1f} 2:{k % 3 + 1}" for k in range(40)]
    rows[3] = "1 1:1e15 2:2"
    for own in (rows, [f"{row} {k + 9}:1" for k, row in enumerate(rows)]):
        (tmp_path / "t").write_text("\n".join(own) + "\n")
        said = run(tmp_path, "train", task, "t", "-m", "m", "-C", "1")[1]
        assert "feature '0' has 1 values of up to 1e+15" in said and "the kernel sees them as they are" in said
