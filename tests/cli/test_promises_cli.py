"""calibrate, and predict --abstain."""

import json

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.cli import TASKS
from structsvm.datasets import make_sequences, write_columns
from structsvm.model_file import read_model
from structsvm.risk import ConformalSets, RiskController

DATA = {
    "sequence": "the D B\ndog N I\n\na D B\ncat N I\n\n" * 10,
    "attributes": "B\tw=the\nI\tw=dog\n\nB\tw=a\nI\tw=cat\n\n" * 10,
    "dependency": "1\tdogs\t_\tN\t_\t_\t2\tsubj\t_\t_\n2\tbark\t_\tV\t_\t_\t0\troot\t_\t_\n\n" * 20,
    "multiclass": "1 1:1\n2 2:1\n3 1:1 2:2\n1 1:2\n" * 5,
    "binary": "1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n" * 5,
    "multilabel": "1,2 1:1\n2 2:1\n1 1:2 2:1\n" * 7,
    "taxonomy": "a\tgreen tree\nb\tblue sky\na\ttall tree\nb\twide sky\n" * 5,
    "semantics": '{"sentence": "john sleeps", "bag": ["sleep(john)"]}\n{"sentence": "al runs", "bag": ["run(al)"]}\n'
    * 10,
    "grammar": "(S (NP (NN ice)) (VP (VB is)))\n(S (NP (DT a) (NN cat)) (VP (VB eats)))\n" * 10,
    "graph": "\n".join(
        ['{"nodes": [{"features": [1, 0], "label": "a"}, {"features": [0, 1], "label": "b"}], "edges": [[0, 1]]}'] * 20
    ),
    "alignment": "".join(f">s{k}\nACD-EF\n>t{k}\nACDGEF\n" for k in range(20)),
}
SOLVERS = ("larank", "pairwise", "crammer_singer", "weston_watkins", "perceptron")
OPTIONS = {"semantics": [], "attributes": ["-C", "1", "--format", "crfsuite"]}


ASSUMED = "assumed: later inputs, each as a whole, are drawn as these were, from which nothing was learnt\n"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DATA)
def test_every_task(tmp_path, name):
    (tmp_path / "d").write_text(DATA[name])
    task = "sequence" if name == "attributes" else name
    run(tmp_path, "train", task, "d", "-m", "m", "-q", *OPTIONS.get(name, ["-C", "1"]))
    before = read_model(tmp_path / "m")
    _, err = run(tmp_path, "predict", "m", "d", "--abstain", status=2)
    assert "--abstain needs a model with a promise" in err and "structsvm calibrate m FILE" in err
    out, _ = run(tmp_path, "calibrate", "m", "d", "--risk", "0.5", "--delta", "0.3", "-q")
    assert "held-out outputs: " in out and "of later answers at most 50 % are wrong, with probability 0.7\n" in out
    assert out.endswith(ASSUMED)
    plain, _ = run(tmp_path, "predict", "m", "d", "-q")
    answers, _ = run(tmp_path, "predict", "m", "d", "--abstain", "-q")
    careful = structsvm.load(tmp_path / "m")
    assert careful.alpha == 0.5 and careful.coverage_ > 0.0
    if name == "semantics":
        assert [json.loads(line)["meaning"] for line in plain.splitlines()] == [
            json.loads(line)["meaning"] for line in answers.splitlines()
        ]
    elif careful.coverage_ == 1.0:
        assert answers == plain
    assert "promise: RiskController(alpha=0.5" in run(tmp_path, "inspect", "m", "-q")[0]
    promise = json.loads(run(tmp_path, "inspect", "m", "--json", "-q")[0])["promise"]
    assert promise["values"]["n_calibration"] == careful.n_calibration_ and promise["params"]["delta"] == 0.3
    # All else in the file is as it was, and a second promise replaces the first.
    after = read_model(tmp_path / "m")
    assert {key: value for key, value in after.meta.items() if key != "guarantee"} == before.meta
    assert after.arrays.keys() == before.arrays.keys()
    run(tmp_path, "calibrate", "m", "d", "--risk", "0.6", "--delta", "0.3", "-o", "other", "-q")
    assert structsvm.load(tmp_path / "other").alpha == 0.6 and structsvm.load(tmp_path / "m").alpha == 0.5


TAGGED = "the O\ndog B-N\nbarks I-N\n\na O\ncat B-M\n\n" * 10
# Models of a task that other options train: task, data, options.
VARIANTS = {
    "log loss": ("sequence", DATA["sequence"], "-C 1 --loss log"),
    "margins": ("sequence", DATA["sequence"], "-C 1 --loss hamming --no-probability"),
    "greedy": ("sequence", DATA["sequence"], "-C 1 --inference greedy"),
    "order 2": ("sequence", DATA["sequence"], "-C 1 --order 2"),
    "perceptron": ("sequence", DATA["sequence"], "--solver perceptron"),
    "segments": ("sequence", TAGGED, "-C 1 --segments"),
    "a scheme": ("sequence", TAGGED, "-C 1 --constraints bio"),
    "hashed": ("sequence", DATA["sequence"], "-C 1 --hash-bits 8"),
    "labels in part": ("sequence", DATA["sequence"].replace("N I", "N _", 1), "-C 1 --partial"),
    "a table": ("sequence", "sentence,word,label\n" + "".join(f"{k},the,D\n{k},dog,N\n" for k in range(20)), "-C 1"),
    "averaged": ("semantics", DATA["semantics"], "--solver perceptron"),
    **{name: ("multiclass", DATA["multiclass"], f"--solver {name}") for name in SOLVERS},
    "classes": ("multiclass", DATA["multiclass"] * 3, "-C 1 --probability"),
    **{name: ("binary", DATA["binary"], f"--machine {name}") for name in ("lasvm", "huller", "sgdqn")},
    "two classes": ("binary", DATA["binary"] * 3, "-C 1 --probability"),
    **{name: ("multilabel", DATA["multilabel"], f"-C 1 --interactions {name}") for name in ("none", "tree", "full")},
    "paths": ("taxonomy", "text,category\n" + "green tree,a/x\nblue sky,b/y\nwide sky,b/z\n" * 7, "-C 1"),
    "trees by sums": ("dependency", DATA["dependency"], "-C 1 --loss log"),
    "words": ("grammar", DATA["grammar"], "-C 1 --terminals words"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", VARIANTS)
def test_every_estimator(tmp_path, name):
    """Each kind of model is calibrated from its own files, from a pipe too, and answers what it is sure of."""
    task, data, options = VARIANTS[name]
    (tmp_path / "d").write_text(data)
    (tmp_path / "held").write_text(data.replace("N _", "N I"))
    run(tmp_path, "train", task, "d", "-m", "m", "-q", *options.split())
    run(tmp_path, "calibrate", "m", "held", "--risk", "0.9", "--delta", "0.5", "-q")
    careful = structsvm.load(tmp_path / "m")
    assert careful.coverage_ == 1.0 and careful.n_calibration_ >= 10
    held = (tmp_path / "held").read_text()
    run(tmp_path, "calibrate", "m", "-", "--risk", "0.9", "--delta", "0.5", "-o", "piped", "-q", text=held)
    assert structsvm.load(tmp_path / "piped").threshold_ == careful.threshold_
    plain = given(tmp_path)
    assert plain and given(tmp_path, "--abstain") == given(tmp_path, "--abstain-below", "0") == plain
    # Further training ends the promise.
    run(tmp_path, "train", task, "d", "-m", "more", "-q", "--warm-start", "m", *options.split())
    assert (
        "--abstain needs a model with a promise" in run(tmp_path, "predict", "more", "held", "--abstain", status=2)[1]
    )


def given(folder, *options):
    """Predictions of the model; meanings come without the words that they are from."""
    out = run(folder, "predict", "m", "held", "-q", *options)[0]
    return [json.loads(line)["meaning"] for line in out.splitlines()] if out.startswith('{"sentence"') else out


@pytest.mark.parametrize("method", ["relaxed", "expansion"])
def test_graphs_without_a_second_best_labelling(tmp_path, method):
    (tmp_path / "d").write_text(DATA["graph"])
    run(tmp_path, "train", "graph", "d", "-m", "m", "-q", "-C", "1", "--method", method)
    _, err = run(tmp_path, "calibrate", "m", "d", "--risk", "0.9", status=1)
    assert f"d: graph 0: the k best labellings need exact inference, and its method is '{method}'" in err


def test_meanings_without_confidence(tmp_path):
    (tmp_path / "d").write_text(DATA["semantics"])
    run(tmp_path, "train", "semantics", "d", "-m", "m", "-q", "--method", "ospas")
    for args in (("calibrate", "m", "d"), ("predict", "m", "d", "--abstain-below", "0.5")):
        assert "m: meanings of --method ospas have no confidence" in run(tmp_path, *args, status=2)[1]


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_what_is_not_answered(tmp_path):
    for name, n, seed in (("train", 60, 0), ("held", 200, 1), ("new", 30, 2)):
        write_columns(tmp_path / f"{name}.txt", *make_sequences(n, mean_length=5.0, random_state=seed))
    run(tmp_path, "train", "sequence", "train.txt", "-m", "m", "-C", "1", "--loss", "log", "-q")
    run(tmp_path, "calibrate", "m", "held.txt", "--risk", "0.4")
    plain, answers = (run(tmp_path, "predict", "m", "new.txt", *more)[0] for more in ((), ("--abstain",)))
    careful = structsvm.load(tmp_path / "m")
    assert 0.0 < careful.coverage_ < 1.0
    given = []
    for one, other in zip(plain.split("\n\n"), answers.split("\n\n"), strict=True):
        labels = [line.split()[-1] for line in other.splitlines()]
        assert one == other or set(labels) == {"_"}
        given.append(one == other)
    assert not all(given)
    _, err = run(tmp_path, "export", "m", "--to", "json", "-o", "weights")
    assert "m: its RiskController is left out" in err and (tmp_path / "weights" / "model.json").exists()
    _, err = run(tmp_path, "calibrate", "m", "held.txt", status=1)
    assert "held.txt: alpha=0.01 with delta=0.05 needs at least 299 held-out outputs, got 200" in err
    assert structsvm.load(tmp_path / "m").alpha == 0.4  # the model is as it was
    _, err = run(tmp_path, "calibrate", "m", "held.txt", "--risk", "1.5", status=2)
    assert "--risk" in err
    _, err = run(tmp_path, "predict", "m", "new.txt", "--abstain", "-k", "2", status=2)
    assert "--abstain goes without --kbest" in err
    bare = "\n".join(line.rpartition("\t")[0] for line in (tmp_path / "held.txt").read_text().splitlines())
    if "\t" in (tmp_path / "held.txt").read_text():
        (tmp_path / "bare.txt").write_text(bare + "\n")
        _, err = run(tmp_path, "calibrate", "m", "bare.txt", "--risk", "0.4", status=1)
        assert "bare.txt: has no true outputs to calibrate on" in err


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["grammar", "sequence", "dependency", "taxonomy", "multiclass"])
def test_few_wrong_parts(tmp_path, name):
    (tmp_path / "d").write_text(DATA[name])
    run(tmp_path, "train", name, "d", "-m", "m", "-q", "-C", "1")
    out, _ = run(tmp_path, "calibrate", "m", "d", "--risk", "0.5", "--delta", "0.3", "--loss", "parts", "-q")
    promised = "of later answers the share of wrong parts is at most 50 % as a mean, with probability 0.7\n"
    assert out.endswith(promised + ASSUMED)
    careful = structsvm.load(tmp_path / "m")
    assert careful.loss == "parts" and careful.coverage_ == 1.0
    assert "% of the parts of these wrong, as a mean over answers" in out
    assert run(tmp_path, "predict", "m", "d", "--abstain", "-q") == run(tmp_path, "predict", "m", "d", "-q")


@pytest.mark.filterwarnings("ignore")
def test_few_wrong_segments(tmp_path):
    (tmp_path / "d").write_text("the B-NP\ndog I-NP\nbarks O\n\na B-NP\ncat I-NP\nsleeps O\n\n" * 10)
    run(tmp_path, "train", "sequence", "d", "-m", "m", "-q", "-C", "1", "--segments")
    out, _ = run(tmp_path, "calibrate", "m", "d", "--risk", "0.5", "--delta", "0.3", "--loss", "parts", "-q")
    assert "20 held-out outputs: 100.0 % are answered, 0 % of the parts of these wrong" in out
    assert run(tmp_path, "predict", "m", "d", "--abstain", "-q") == run(tmp_path, "predict", "m", "d", "-q")


def test_promises_that_files_of_others_have(tmp_path):
    """Outputs without parts, and a promise that a program in Python has made."""
    (tmp_path / "d").write_text(DATA["alignment"])
    run(tmp_path, "train", "alignment", "d", "-m", "m", "-q", "-C", "1")
    _, err = run(tmp_path, "calibrate", "m", "d", "--risk", "0.5", "--loss", "parts", status=2)
    assert "m: outputs of SequenceAligner have no parts that are right or wrong" in err
    (tmp_path / "d").write_text(DATA["multiclass"])
    run(tmp_path, "train", "multiclass", "d", "-m", "m", "-q", "-C", "1")
    model = structsvm.load(tmp_path / "m")
    sets = ConformalSets(model)
    sets.restore({"quantile_": 0.5, "n_calibration_": 9}, model)
    sets.save(tmp_path / "sets")
    _, err = run(tmp_path, "predict", "sets", "d", "--abstain", status=2)
    assert "--abstain needs the promise of a RiskController, and this is ConformalSets, for programs in Python" in err


def test_tasks_without_promises(tmp_path):
    from structsvm.cli.promises import READERS

    (tmp_path / "d").write_text("1 qid:1 1:1\n0 qid:1 2:1\n2 qid:2 1:1\n1 qid:2 2:2\n")
    run(tmp_path, "train", "ranking", "d", "-m", "m", "-q")
    _, err = run(tmp_path, "calibrate", "m", "d", status=2)
    assert "a model of the task 'ranking'; promises are for sequence" in err
    assert set(TASKS) - set(READERS) == {"ranking"}


def test_outputs_that_are_not_given(tmp_path):
    """Trees, graphs and alignments without an output; and inputs without true ones."""
    bare = {
        "grammar": "NN VB\n\nDT NN VB\n",
        "graph": '{"nodes": [{"features": [1.0, 0.0]}], "edges": []}\n',
        "alignment": ">a\nACDEF\n>b\nACDGEF\n",
    }
    nothing = {"grammar": "_\n\n_\n", "graph": '{"labels": null}\n', "alignment": ">a\n_\n"}
    for name, text in bare.items():
        (tmp_path / "d").write_text(DATA[name])
        (tmp_path / "bare").write_text(text)
        run(tmp_path, "train", name, "d", "-m", "m", "-q", "-C", "1")
        _, err = run(tmp_path, "calibrate", "m", "bare", "--risk", "0.5", status=1)
        assert "bare" in err and ("no true outputs" in err or "rows" in err or "gap" in err)
        model = structsvm.load(tmp_path / "m")
        careful = RiskController(model, alpha=0.5)
        careful.restore({"threshold_": np.inf, "coverage_": 0.0, "risk_": 0.0, "n_calibration_": 9}, model)
        careful.save(tmp_path / "none")
        assert run(tmp_path, "predict", "none", "bare", "--abstain", "-q")[0] == nothing[name]


def test_abstain_below(tmp_path):
    for name, n, seed in (("train", 60, 0), ("new", 30, 2)):
        write_columns(tmp_path / f"{name}.txt", *make_sequences(n, mean_length=5.0, random_state=seed))
    run(tmp_path, "train", "sequence", "train.txt", "-m", "m", "-C", "1", "--loss", "log", "-q")
    plain, answers = (run(tmp_path, "predict", "m", "new.txt", *more)[0] for more in ((), ("--abstain-below", "0.5")))
    X, _ = make_sequences(30, mean_length=5.0, random_state=2)
    sure = structsvm.load(tmp_path / "m").predict_confidence(X)
    for one, other, own in zip(plain.split("\n\n"), answers.split("\n\n"), sure, strict=False):
        assert (one == other) == (own >= 0.5)
        assert one == other or {line.split()[-1] for line in other.splitlines()} == {"_"}
    assert 0 < np.sum(sure < 0.5) < 30
    _, err = run(tmp_path, "predict", "m", "new.txt", "--abstain-below", "1.5", status=2)
    assert "--abstain-below of SequenceLabeler.predict_selective must be a float in the range [0.0, 1.0]" in err
    _, err = run(tmp_path, "predict", "m", "new.txt", "--abstain-below", "0.5", "--abstain", status=2)
    assert "--abstain and --abstain-below do not go together" in err
    _, err = run(tmp_path, "predict", "m", "new.txt", "--abstain-below", "0.5", "-k", "2", status=2)
    assert "--abstain-below goes without --kbest" in err
