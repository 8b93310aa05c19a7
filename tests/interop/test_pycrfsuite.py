"""The module of python-crfsuite: its classes on their own, and beside the original where that is installed."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from attribute_sequences import sequences

from structsvm import AdviceWarning
from structsvm.interop import pycrfsuite
from structsvm.interop.crfsuite import to_bytes
from structsvm.interop.crfsuite_margin import PossibleChain
from structsvm.interop.crfsuite_parameters import ALGORITHMS
from structsvm.interop.crfsuite_problem import problem_of
from structsvm.interop.pycrfsuite import ItemSequence, Tagger, Trainer
from structsvm.interop.pycrfsuite.trainer import Instances

X = [
    {"walk": 1, "shop": 0.5},
    {"walk": 1},
    {"shop": 0.5, "ü": b"\xc3\xbc"},
    {"clean": 1, "n": {"a": ["b"]}},
    {},
    {"clean": 2},
]
Y = ["sunny", "sunny", "rainy", "rainy", "好", "rainy"]
ITEMS = [
    {"walk": 1.0, "shop": 0.5},
    {"walk": 1.0},
    {"shop": 0.5, "ü:ü": 1.0},
    {"clean": 1.0, "n:a:b": 1.0},
    {},
    {"clean": 2.0},
]


def trained(path, algorithm=None, params=None, n=60, module=pycrfsuite, **options):
    trainer = module.Trainer(algorithm, params, verbose=False)
    for x, y in zip(*sequences(n), strict=True):
        trainer.append(x, y)
    trainer.train(str(path), **options)
    tagger = module.Tagger()
    tagger.open(str(path))
    return tagger, trainer


# ---- sequences ----------------------------------------------------------------------------------


def test_items():
    assert ItemSequence(X).items() == ITEMS
    assert ItemSequence(ItemSequence(X)).items() == ITEMS
    assert ItemSequence(ITEMS).items() == ITEMS
    assert ItemSequence([["a", b"b", "a"], {"x": {"y": 1}, "x:y": 2, "t": ("u", "v")}]).items() == [
        {"a": 2.0, "b": 1.0},
        {"x:y": 3.0, "t:u": 1.0, "t:v": 1.0},
    ]
    assert len(ItemSequence(X)) == 6
    assert repr(ItemSequence(X)) == "<ItemSequence of size 6>"
    assert len(ItemSequence([])) == 0


@pytest.mark.parametrize(
    ("token", "error", "message"),
    [
        ("text", TypeError, "token 1 is the text 'text'"),
        ([3], TypeError, "token 1: attributes must be str, got 3"),
        ({"a": None}, TypeError, "token 1: feature 'a' must be a number"),
        ({"a": {"b": object}}, TypeError, "token 1: feature 'b' must be a number"),
        ({"a": float("inf")}, ValueError, "token 1: feature 'a' must be finite"),
    ],
)
def test_refused_items(token, error, message):
    for take in (ItemSequence, lambda x: Trainer().append(x, ["y", "y"])):
        with pytest.raises(error, match=message):
            take([[], token])


# ---- tagging ------------------------------------------------------------------------------------


def test_tagger(tmp_path):
    tagger, _ = trained(tmp_path / "m")
    xs, _ = sequences()
    assert sorted(tagger.labels()) == ["A", "B", "C"]
    labels = tagger.tag(xs[0])
    assert tagger.tag() == tagger.tag(ItemSequence(xs[0])) == labels
    total = sum(tagger.probability([a]) for a in "ABC") if len(xs[0]) == 1 else tagger.probability(labels)
    assert 0 < total <= 1 + 1e-12
    for t in range(len(labels)):
        assert sum(tagger.marginal(label, t) for label in "ABC") == pytest.approx(1.0)
    assert tagger.marginals().shape == (len(labels), 3)
    with tagger.open_inmemory((tmp_path / "m").read_bytes()) as again:
        assert again.tag(xs[0]) == labels
    with pytest.raises(ValueError, match="the tagger has no model: call open first"):
        tagger.labels()
    with pytest.raises(RuntimeError, match="no model"):
        tagger.info()


def test_refused_questions(tmp_path):
    tagger, _ = trained(tmp_path / "m")
    with pytest.raises(ValueError, match="the tagger has no sequence: call set or tag first"):
        tagger.tag()
    tagger.set([["w:w1"]])
    first = tagger.marginal("A", 0)
    tagger.set([["w:w2"]])
    assert tagger.marginal("A", 0) != first
    tagger.tag([["w:w1"]])
    assert tagger.marginal("A", 0) == first
    for ask, message in (
        (lambda: tagger.marginal("no", 0), "y is 'no', which is no label"),
        (lambda: tagger.marginal("A", 1), "pos must be between 0 and 0, got 1"),
        (lambda: tagger.marginal("A", -1), "pos must be between 0 and 0, got -1"),
        (lambda: tagger.probability(["A", "A"]), "as many as tokens, 1, got 2"),
        (lambda: tagger.probability(["no"]), "labels\\[0\\] is 'no'"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_labels_and_places_in_other_forms(tmp_path):
    tagger, _ = trained(tmp_path / "m")
    tagger.set([["w:w1"], ["w:w2"]])
    assert tagger.marginal(b"A", np.int64(1)) == tagger.marginal(np.str_("A"), True) == tagger.marginal("A", 1)
    whole = tagger.probability(["A", "B"])
    assert tagger.probability(iter("AB")) == tagger.probability([b"A", b"B"]) == tagger.probability(("A", "B")) == whole
    with pytest.raises(TypeError):
        tagger.marginal("A", "1")
    assert list(vars(tagger.info())) == ["header", "labels", "attributes", "transitions", "state_features"]


def test_a_failed_open_keeps_the_model(tmp_path):
    tagger, _ = trained(tmp_path / "m")
    (tmp_path / "bad").write_bytes(b"lCRFfoo")
    with pytest.raises(ValueError, match=f"^{tmp_path}/bad: "):
        tagger.open(tmp_path / "bad")
    with pytest.raises(FileNotFoundError):
        tagger.open(tmp_path / "none")
    with pytest.raises(ValueError, match="no model of CRFsuite"):
        tagger.open_inmemory(b"")
    assert tagger.tag([["w:w1"]])


def test_info_and_dump(tmp_path, capsys):
    tagger, _ = trained(tmp_path / "m")
    info = tagger.info()
    assert info.header["num_labels"] == "3"
    assert info.header["size"] == str((tmp_path / "m").stat().st_size)
    assert info.labels == {label: str(k) for k, label in enumerate(tagger.labels())}
    assert info.attributes["odd"].isdigit()
    assert info.state_features["w:w0", "A"] > info.state_features.get(("w:w0", "B"), 0.0)
    assert set(info.transitions) <= {(a, b) for a in "ABC" for b in "ABC"}
    assert all(isinstance(weight, float) for weight in [*info.transitions.values(), *info.state_features.values()])
    tagger.dump(tmp_path / "dump")
    text = (tmp_path / "dump").read_text()
    assert "LABELS = {\n      0: " in text
    assert f"  (0) w:w0 --> A: {info.state_features['w:w0', 'A']:f}\n" in text
    tagger.dump()
    assert capsys.readouterr().out == text


def test_an_opened_model_imports_no_scipy(tmp_path):
    trained(tmp_path / "m")
    code = (
        "import sys; from structsvm.interop import pycrfsuite; t = pycrfsuite.Tagger(); t.open(sys.argv[1]); "
        "t.tag([{'w': 'w1'}]); print({'scipy', 'sklearn', 'structsvm.tasks'} & set(sys.modules))"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "m")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"


# ---- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "averaged-perceptron", "passive-aggressive", "LBFGS"])
def test_parameters(algorithm):
    trainer = Trainer(algorithm)
    params = trainer.get_params()
    assert list(params) == trainer.params()
    trainer.set_params(params)
    assert trainer.get_params() == params
    assert all(trainer.help(name) for name in params)
    trainer.set("feature.possible_states", True)
    assert trainer.get("feature.possible_states") is True
    trainer.set("max_iterations", "7")
    assert trainer.get("max_iterations") == 7
    for verb in (trainer.get, trainer.help, lambda name: trainer.set(name, 1)):
        with pytest.raises(ValueError, match="'foo' is no parameter of"):
            verb("foo")
    with pytest.raises(ValueError, match="max_iterations must be a number, got 'many'"):
        trainer.set("max_iterations", "many")


def test_an_algorithm_has_its_own_parameters():
    trainer = Trainer(params={"c2": 100})
    assert trainer.get("c2") == 100.0
    trainer.select("l2sgd")
    assert trainer.get("c2") == 1.0
    with pytest.raises(ValueError, match="'c1' is no parameter of l2sgd"):
        trainer.set("c1", 1)
    for wrong in (("foo",), ("lbfgs", "semi")):
        with pytest.raises(ValueError, match="algorithm must be one of lbfgs, l2sgd"):
            trainer.select(*wrong)


def test_refused_instances(tmp_path):
    trainer = Trainer(verbose=False)
    with pytest.raises(ValueError, match="xseq has 1 tokens, yseq 2 labels"):
        trainer.append([["a"]], ["A", "B"])
    with pytest.raises(TypeError, match="labels must be str, got 1"):
        trainer.append([["a"]], [1])
    with pytest.raises(ValueError, match="no sequences to train on"):
        trainer.train(tmp_path / "m")
    trainer.append([["a"]], ["A"], 2)
    with pytest.raises(ValueError, match="of another group than holdout"):
        trainer.train(tmp_path / "m", holdout=2)
    with pytest.raises(ValueError, match="holdout=3: there are no sequences of this group"):
        trainer.train(tmp_path / "m", holdout=3)
    assert not (tmp_path / "m").exists()
    with pytest.warns(
        AdviceWarning, match="all weights of the model are 0, and it tells no labels apart: there is one"
    ):
        trainer.train(tmp_path / "m")
    trainer.clear()
    with pytest.raises(ValueError, match="no sequences to train on"):
        trainer.train(tmp_path / "m")


@pytest.mark.parametrize(
    ("algorithm", "params", "message"),
    [
        ("lbfgs", {"linesearch": "Backtracking"}, "linesearch: lbfgs here has no such parameter"),
        ("l2sgd", {"calibration.eta": 1}, "calibration.eta: l2sgd here has no such parameter"),
        ("ap", {"epsilon": 0.1}, "epsilon: ap here"),
        ("lbfgs", {"c1": 1e9}, "all weights of the model are 0, .* feature.minfreq, c1 or c2 may be too large"),
        ("pa", {"feature.minfreq": 1e9}, "all weights of the model are 0"),
        ("arow", {"max_iterations": 2}, "arow: there is no such algorithm here; LaRank"),
    ],
)
def test_a_sentence_for_what_has_no_effect_or_too_much(tmp_path, algorithm, params, message):
    with pytest.warns(AdviceWarning, match=message):
        trained(tmp_path / "m", algorithm, params, 10)


@pytest.mark.parametrize(
    ("algorithm", "params", "message"),
    [
        ("lbfgs", {"c1": -1}, "c1 must be at least 0 and at most 1e.100, got -1"),
        ("lbfgs", {"c1": float("nan")}, "c1 must be at least 0 and at most 1e.100, got nan"),
        ("l2sgd", {"c2": float("inf")}, "c2 must be at least 0 and at most 1e.100, got inf"),
        ("lbfgs", {"num_memories": 0}, "num_memories must be at least 1"),
        ("lbfgs", {"max_iterations": -1}, "max_iterations must be at least 0"),
        ("ap", {"max_iterations": 0}, "max_iterations must be at least 1"),
        ("lbfgs", {"num_memories": 1e9}, "num_memories must be at least 1 and at most 1000, got 1000000000"),
        ("lbfgs", {"period": 1e30}, "period must be at least 0 and at most 2147483647"),
        ("ap", {"max_iterations": 1e30}, "max_iterations must be at least 1 and at most 2147483647"),
        ("lbfgs", {"c2": 1e308}, "c2 must be at least 0 and at most 1e.100, got 1e.308"),
        ("pa", {"c": 0}, "c must be at least 1e-100 and at most 1e.100, got 0"),
        ("arow", {"gamma": 1e-320}, "gamma must be at least 1e-100"),
        ("lbfgs", {"feature.minfreq": float("nan")}, "feature.minfreq must be at least 0"),
        ("pa", {"type": 2}, "type=2: passive-aggressive training here has type 0 or 1"),
    ],
)
def test_refused_parameters(tmp_path, algorithm, params, message):
    with pytest.raises(ValueError, match=message):
        trained(tmp_path / "m", algorithm, params, 10)


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{"max_iterations": 0}, {"period": 0}, {"max_iterations": 0, "c1": 0.1}])
def test_no_limit(tmp_path, params):
    """CRFsuite goes on without a limit of iterations where it is 0, and tests no delta over a period of 0."""
    _, trainer = trained(tmp_path / "m", params=params)
    _, usual = trained(tmp_path / "n", params={"c1": 0.1} if "c1" in params else {})
    record, other = trainer.logparser, usual.logparser
    assert len(record.iterations) >= len(other.iterations) > 5
    assert record.last_iteration["loss"] == pytest.approx(other.last_iteration["loss"], rel=1e-5)


@pytest.mark.parametrize("algorithm", ["ap", "pa"])
def test_the_loss_of_a_margin_s_pass_is_that_of_the_labels_found(tmp_path, algorithm):
    trainer = Trainer(algorithm, {"max_iterations": 20}, verbose=False)
    for word, label in [("a", "A"), ("b", "B"), ("c", "A")]:
        trainer.append([[word]] * 3, [label] * 3)
    trainer.train(tmp_path / "m")
    losses = [one["loss"] for one in trainer.logparser.iterations]
    assert losses[0] == (6.0 if algorithm == "ap" else 9.0)
    assert losses[-1] < losses[0]
    assert algorithm == "pa" or losses[-1] == 0.0


def test_names_that_the_file_cannot_have_are_refused_before_training(tmp_path):
    for tokens, labels in (([["a\0b"]], ["A"]), ([["a"]], ["A\0"])):
        trainer = Trainer(verbose=False)
        trainer.append(tokens, labels)
        with pytest.raises(ValueError, match="has a zero byte"):
            trainer.train(tmp_path / "m")
        assert trainer.logparser is None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.filterwarnings("ignore:arow")
def test_trained_models_learn(tmp_path, algorithm):
    tagger, _ = trained(tmp_path / "m", algorithm, {"max_iterations": 30} if algorithm != "arow" else {})
    xs, ys = sequences()
    right = sum(a == b for x, y in zip(xs, ys, strict=True) for a, b in zip(tagger.tag(x), y, strict=True))
    assert right / sum(map(len, ys)) > 0.85


def objective(tagger, xs, ys, c1, c2):
    """CRFsuite's objective of an opened model."""
    model = tagger._model
    losses = sum(model.log_partition(x) - model.score(x, y) for x, y in zip(xs, ys, strict=True))
    w = np.concatenate([model.states.weights, model.transitions.ravel()])
    return losses + c1 * np.abs(w).sum() + c2 * (w @ w)


@pytest.mark.parametrize(("algorithm", "c1"), [("lbfgs", 0.0), ("lbfgs", 0.5), ("l2sgd", 0.0)])
@pytest.mark.parametrize("every", [False, True])
def test_the_objective_is_the_program_s(tmp_path, algorithm, c1, every):
    """Nothing that the objective counts can be moved to make it smaller; weights that may not be are 0."""
    params = {"c2": 0.3, "feature.possible_states": every, "feature.possible_transitions": every, "delta": 1e-9}
    tagger, trainer = trained(tmp_path / "m", algorithm, params | ({"c1": c1} if c1 else {}))
    xs, ys = sequences()
    least = objective(tagger, xs, ys, c1, 0.3)
    assert trainer.logparser.last_iteration["loss"] == pytest.approx(least, rel=1e-5)
    model = tagger._model
    weights, between = model.states.weights.copy(), model.transitions.copy()
    rng = np.random.default_rng(0)
    for scale in (1e-2, 1e-1):
        for _ in range(10):
            model.states.weights[:] = weights + scale * rng.normal(size=weights.shape)
            model.transitions[:] = between + scale * rng.normal(size=between.shape) * (between != 0)
            moved = pycrfsuite.Tagger()
            moved.open_inmemory(to_bytes(model))
            assert objective(moved, xs, ys, c1, 0.3) > least - 1e-4
    seen = {(f"w:{token['w']}", label) for x, y in zip(xs, ys, strict=True) for token, label in zip(x, y, strict=True)}
    found = {pair for pair in tagger.info().state_features if pair[0].startswith("w:")}
    assert (found <= seen) is not every or bool(c1)


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap", "pa"])
def test_transitions_are_those_within_sequences(tmp_path, algorithm):
    trainer = Trainer(algorithm, verbose=False)
    for labels in (["A", "B"], ["C", "D"], ["A"]):
        trainer.append([["x"], ["y"]][: len(labels)], labels)
    trainer.train(tmp_path / "m")
    tagger = Tagger()
    tagger.open(tmp_path / "m")
    assert set(tagger.info().transitions) <= {("A", "B"), ("C", "D")}
    assert set(tagger.info().state_features) <= {("x", "A"), ("x", "C"), ("y", "B"), ("y", "D")}


def test_margins_are_of_the_possible_weights():
    data = Instances()
    for x, y in zip(*sequences(20), strict=True):
        data.append(ItemSequence(x).tokens, y, 0)
    values = Trainer("ap").get_params() | {"feature.minfreq": 3.0}
    problem, _ = problem_of(data, np.ones(20, dtype=bool), values)
    oracle, chain = PossibleChain(problem, "hamming"), problem.oracle
    assert 0 < problem.possible.sum() < chain.n_features
    rng = np.random.default_rng(0)
    w = rng.normal(size=chain.n_features) * problem.possible
    for i in range(20):
        tokens = problem.tokens[i : i + 1]
        y = rng.integers(3, size=tokens.n_tokens)
        numbers, values = oracle.joint_feature(i, y)
        dense = np.zeros(chain.n_features)
        dense[numbers] = values
        np.testing.assert_allclose(dense, chain.joint_feature(tokens, y) * problem.possible)
        assert oracle.argmax(i, w).tolist() == chain.argmax(tokens, w).tolist()


def test_minfreq(tmp_path):
    tagger, trainer = trained(tmp_path / "m", params={"feature.minfreq": 5})
    counts = {}
    for x, y in zip(*sequences(), strict=True):
        for token, label in zip(ItemSequence(x).items(), y, strict=True):
            for name, value in token.items():
                counts[name, label] = counts.get((name, label), 0.0) + value
    assert set(tagger.info().state_features) == {pair for pair, count in counts.items() if count >= 5}
    assert trainer.logparser.featgen_num_features == len(tagger.info().state_features) + len(tagger.info().transitions)
    assert trainer.logparser.last_iteration["scores"] == {}


def test_messages(tmp_path, capsys):
    class Capturing(Trainer):
        def __init__(self):  # without the base's, as programs have it
            self.lines, self.events = [], []

        def message(self, message):
            self.lines.append(message)
            super().message(message)

        def on_iteration(self, log, info):
            self.events.append((log, info))

    trainer = Capturing()
    trainer.select("lbfgs")
    trainer.set("max_iterations", 4)
    for k, (x, y) in enumerate(zip(*sequences(), strict=True)):
        trainer.append(x, y, k % 4)
    assert not trainer.lines
    trainer.train(str(tmp_path / "m"), holdout=3)
    record = trainer.logparser
    assert "type: CRF1d\n" in trainer.lines
    assert "".join(trainer.lines) == "".join(record.log)
    assert [event for event, _, _ in record.events] == [
        "start", "featgen_end", "prepared", *["iteration"] * 4, "optimization_end", "end",
    ]  # fmt: skip
    log, info = trainer.events[-1]
    assert log.startswith("***** Iteration #4 *****\nLoss: ")
    assert record.last_iteration is info
    assert len(record.iterations) == 4
    assert record.featgen_percent == 100
    assert record.iterations[0]["loss"] > info["loss"]
    tagger = Tagger()
    tagger.open(tmp_path / "m")
    held = [pair for k, pair in enumerate(zip(*sequences(), strict=True)) if k % 4 == 3]
    pairs = [(a, b) for x, y in held for a, b in zip(tagger.tag(x), y, strict=True)]
    assert info["item_accuracy_float"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert info["instance_accuracy_float"] == pytest.approx(sum(tagger.tag(x) == y for x, y in held) / len(held))
    assert info["scores"]["A"].ref == sum(b == "A" for _, b in pairs)
    assert info["scores"]["A"].match == sum(a == b == "A" for a, b in pairs)
    assert f"Item accuracy: {sum(a == b for a, b in pairs)} / {len(pairs)} " in log
    assert "Iteration" not in capsys.readouterr().out  # the override's business


def test_an_exception_in_a_message_comes_out(tmp_path):
    class Faulty(Trainer):
        def message(self, message):
            raise KeyError("mine")

    trainer = Faulty()
    trainer.append([["a"]], ["A"])
    with pytest.raises(KeyError, match="mine"):
        trainer.train(tmp_path / "m")


def test_no_file_for_an_empty_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = Trainer(verbose=False)
    trainer.append([["a"], [], []], ["A", "B", "A"])
    trainer.append([], [])
    trainer.train("")
    assert not list(tmp_path.iterdir())


# ---- beside the original ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("pycrfsuite")


def test_items_there(original):
    assert original.ItemSequence(X).items() == ITEMS


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_parameters_there(original, algorithm):
    assert original.Trainer(algorithm).get_params() == Trainer(algorithm).get_params()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"c1": 0.2, "c2": 0.05},
        {"feature.possible_states": 1, "feature.possible_transitions": 1},
        {"feature.minfreq": 3},
    ],
)
def test_trained_as_there(original, tmp_path, params):
    theirs, there = trained(tmp_path / "theirs", None, params, module=original)
    ours, here = trained(tmp_path / "ours", None, params)
    assert here.logparser.featgen_num_features == there.logparser.featgen_num_features
    assert here.logparser.last_iteration["loss"] == pytest.approx(there.logparser.last_iteration["loss"], rel=1e-4)
    opened = original.Tagger()
    opened.open(str(tmp_path / "ours"))
    for x in sequences(30, seed=1)[0]:
        labels = theirs.tag(x)
        assert opened.tag(x) == ours.tag(x)
        assert ours.probability(labels) == pytest.approx(opened.probability(labels), abs=1e-9)
        assert ours.probability(labels) == pytest.approx(theirs.probability(labels), abs=0.02)


def test_info_and_dump_there(original, tmp_path):
    theirs, _ = trained(tmp_path / "m", module=original)
    ours = Tagger()
    ours.open(tmp_path / "m")
    theirs.dump(str(tmp_path / "theirs"))
    ours.dump(tmp_path / "ours")
    assert (tmp_path / "ours").read_text() == (tmp_path / "theirs").read_text()
    one, other = ours.info(), theirs.info()
    assert (one.header, one.labels, one.attributes) == (other.header, other.labels, other.attributes)
    assert one.state_features == pytest.approx(other.state_features, abs=1e-6)
    assert one.transitions == pytest.approx(other.transitions, abs=1e-6)


def test_both_norms_end_at_the_same_weights_from_the_start_and_from_near_the_optimum(tmp_path):
    """Where iterations are not limited, passes in the dual come before OWL-QN."""
    rng = np.random.default_rng(0)
    X = [[[f"w{rng.integers(0, 9)}", f"p{t}"] for t in range(rng.integers(1, 6))] for _ in range(60)]
    losses, n_iterations = [], []
    for options in ({}, {"max_iterations": 100_000}):
        trainer = pycrfsuite.Trainer(verbose=False, params={"c1": 0.1, "c2": 0.01, "delta": 1e-7} | options)
        for x in X:
            trainer.append(x, [token[0] if token[0] < "w5" else "O" for token in x])
        trainer.train(str(tmp_path / "model"))
        losses.append(trainer.logparser.last_iteration["loss"])
        n_iterations.append(len(trainer.logparser.iterations))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert n_iterations[0] < n_iterations[1]
