"""Sequences known in part: what y may hold, what is learnt from it, constraints, the command line, bad input."""

import numpy as np
import pytest
from command_line import run
from sklearn.base import clone

import structsvm
from structsvm import FrankWolfe, LaRank, LatentSVM
from structsvm.callbacks import CallbackMonitor
from structsvm.datasets import make_sequences, write_columns
from structsvm.features.columns import Columns
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.common.labels import from_text
from structsvm.tasks.common.training import Job, train
from structsvm.tasks.sequence.preparation import prepare

X, y = make_sequences(150, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
X_test, y_test = make_sequences(100, n_labels=5, n_words=100, mean_length=8.0, random_state=1)
LABELS = sorted({label for labels in y for label in labels})


def hidden(share, seed=0, y=y):
    rng = np.random.default_rng(seed)
    return [[None if rng.random() < share else label for label in labels] for labels in y]


def fitted(y, **params):
    return SequenceLabeler(**{"C": 1.0, "loss": "log", "random_state": 0} | params).fit(X, y)


WAYS = {
    "log": {},
    "order 2": {"order": 2},
    "hamming": {"loss": "hamming"},
    "slack": {
        "loss": "hamming",
        "C": None,
        "solver": LaRank(0.1, rescaling="slack", random_state=0),
        "random_state": None,
    },
    "frank_wolfe": {"loss": "hamming", "solver": "frank_wolfe"},
    "greedy": {"loss": "hamming", "inference": "greedy"},
}


@pytest.mark.parametrize("way", WAYS)
def test_it_learns_more_than_from_sequences_that_are_known_whole(way):
    """Half of the labels, against the quarter of the sequences that has as many tokens or more: the mean of
    three orders, as a token more in some hundreds is often noise.
    """
    gains = []
    for seed in range(3):
        order = WAYS[way] | ({"random_state": seed} if "random_state" not in WAYS[way] else {})
        part = fitted(hidden(0.5), **order)
        few = SequenceLabeler(**{"C": 1.0, "loss": "log"} | order).fit(X[:38], y[:38])
        gains.append(part.score(X_test, y_test) - few.score(X_test, y_test))
        assert part.classes_.tolist() == LABELS
    assert np.mean(gains) > 0.0


def test_what_y_may_hold():
    """A label, None, collections; of one label it is known whole, of all of them nothing."""
    plain = [list(labels) for labels in y]
    plain[0] = [None, *plain[0][1:]]
    plain[1][0] = {plain[1][0], LABELS[0], LABELS[1]}
    one = fitted(plain, max_iter=3)
    for form in (set, list):
        other = [list(labels) for labels in plain]
        other[0][0] = form(LABELS)
        other[1][0] = form(other[1][0])
        other[2] = [form([label]) for label in other[2]]
        np.testing.assert_array_equal(fitted(other, max_iter=3).emission_, one.emission_)
    columns = fitted([np.array(labels, dtype=object) for labels in plain], max_iter=3)
    np.testing.assert_array_equal(columns.emission_, one.emission_)
    whole = [[{label} for label in labels] for labels in y]
    np.testing.assert_array_equal(fitted(whole, max_iter=3).emission_, fitted(y, max_iter=3).emission_)
    # A hashable value is a label.
    assert frozenset("ab") in fitted([[frozenset("ab"), *labels[1:]] for labels in y], max_iter=1).model_.labels
    tuples = [[(label, 1) for label in labels] for labels in y]
    tuples[0][0] = None
    assert fitted(tuples, max_iter=1).model_.labels == [(label, 1) for label in LABELS]


def test_votes():
    """Votes of annotators who err teach more than the sets of their labels; equal ones are sets."""
    rng = np.random.default_rng(0)
    votes = [[rng.multinomial(5, [0.16 + 0.2 * (k == label) for k in LABELS]) for label in labels] for labels in y]
    dicts = [[{k: int(n) for k, n in zip(LABELS, counts)} for counts in labels] for labels in votes]
    model = fitted(dicts)
    sets = fitted([[{k for k, n in said.items() if n} for said in labels] for labels in dicts])
    assert model.score(X_test, y_test) > sets.score(X_test, y_test) + 0.01
    assert model.classes_.tolist() == LABELS
    equal, same = (
        fitted(
            [[known if label == LABELS[0] else label for label in labels] for labels in y], max_iter=3
        ).model_.weights
        for known in (dict.fromkeys(LABELS[:2], 2), set(LABELS[:2]))
    )
    np.testing.assert_array_equal(equal, same)
    for params in ({"loss": "hamming"}, {"loss": "hamming", "inference": "greedy"}):
        with pytest.raises(ValueError, match="weights of labels need exact inference and the log loss"):
            fitted(dicts, **params)


def test_minus_one_is_not_known():
    """Whatever the other labels are; not where classes name it, nor with unknown=None."""
    ids = [[LABELS.index(label) for label in labels] for labels in y]
    gone, none = ([[k or unknown for k in labels] for labels in ids] for unknown in (-1, None))
    model, same = (fitted(known, max_iter=3, unknown=-1) for known in (gone, none))
    assert model.classes_.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(model.model_.weights, same.model_.weights)
    labels = [[(-1, 1)[k % 2] for k in labels] for labels in ids]
    assert fitted(labels, max_iter=1, unknown=None).classes_.tolist() == [-1, 1]
    three = [[k % 3 - 1 for k in labels] for labels in ids]
    assert fitted(three, max_iter=1, unknown=-1).classes_.tolist() == [0, 1]
    assert SequenceLabeler(random_state=0).partial_fit(X, three, classes=[-1, 0, 1]).classes_.tolist() == [-1, 0, 1]
    lesser = [[k - 2 for k in labels] for labels in ids]
    assert fitted(lesser, max_iter=1, unknown=-1).classes_.tolist() == [-2, 0, 1, 2]


@pytest.mark.filterwarnings("ignore:labels such as 'new' stand among tags of chunks")
def test_labels_that_stand_in_sets_alone():
    known = [[{label, "new"} if i == 0 else label for label in labels] for i, labels in enumerate(y)]
    assert "new" in fitted(known, max_iter=1).classes_


def test_what_agrees_is_what_is_completed():
    known = [[{label, LABELS[0]} if t % 3 else label for t, label in enumerate(labels)] for labels in y]
    model, examples = prepare(SequenceLabeler(loss="hamming", C=0.1), Columns.from_sequences(X), known)
    run = train(Job(model, examples, LaRank(0.1, random_state=0)))
    found = model.split(run.problem.labels, examples.tokens.offsets)
    for labels, names in zip(known, found, strict=True):
        assert all(
            name in label if isinstance(label, set) else name == label
            for name, label in zip(names, labels, strict=True)
        )


def test_c_is_chosen_on_known_labels():
    """On runs of known tokens, those of a sequence together; constraints are no hindrance."""
    for params in ({}, {"loss": "hamming"}, {"inference": "greedy", "loss": "hamming"}):
        found = fitted(hidden(0.3), C="auto", constraints="bio", **params)
        assert found.C_ in found.validation_["C"]
        assert found.validation_["n_held_out"] > 0
        weighted = SequenceLabeler(**found.get_params()).fit(X, hidden(0.3), sample_weight=np.arange(len(X)) % 2)
        assert weighted.C_ > 0.0
    assert "n_held_out" not in vars(fitted(hidden(0.3), C=0.5))


def test_probabilities_of_a_margin():
    """The temperature is fitted to what is known, not to completions, of which the model is sure."""
    part, whole = fitted(hidden(0.5), loss="hamming", C=0.1), fitted(y, loss="hamming", C=0.1)
    assert 0.4 < part.temperature_ / whole.temperature_ < 2.5
    again = fitted(hidden(0.5), loss="hamming", C=0.1)
    again.calibrate(X_test, hidden(0.5, y=y_test))
    assert 0.4 < again.temperature_ / whole.temperature_ < 2.5


def test_sample_weights_streams_and_files(tmp_path):
    known = hidden(0.5)
    model = fitted(known, max_iter=4)
    double = SequenceLabeler(2.0, loss="log", random_state=0, max_iter=4).fit(X, known)
    weighted = SequenceLabeler(1.0, loss="log", random_state=0, max_iter=4).fit(X, known, np.full(len(X), 2.0))
    np.testing.assert_array_equal(double.emission_, weighted.emission_)
    model.save(tmp_path / "model", training_state=True)
    loaded = structsvm.load(tmp_path / "model").set_params(warm_start=True, max_iter=4)
    np.testing.assert_array_equal(
        loaded.fit(X, known).emission_, model.set_params(warm_start=True).fit(X, known).emission_
    )
    stream = SequenceLabeler(1.0, loss="log", random_state=0)
    for k in range(0, len(X), 50):
        stream.partial_fit(X[k : k + 50], known[k : k + 50], classes=LABELS)
    assert stream.score(X_test, y_test) > 0.6


@pytest.mark.parametrize("loss", ["log", "hamming"])
def test_checkpoints_resume_bit_for_bit(loss, tmp_path, monkeypatch):
    known, path = hidden(0.5), tmp_path / "state"
    end_pass, n = CallbackMonitor.end_pass, [0]

    def kill(self, run):
        n[0] += 1
        if n[0] == 3:
            raise SystemExit
        return end_pass(self, run)

    params = {"loss": loss, "C": 0.3, "max_iter": 6, "probability": False}
    whole = fitted(known, **params)

    with monkeypatch.context() as patched:
        patched.setattr(CallbackMonitor, "end_pass", kill)
        with pytest.raises(SystemExit):
            fitted(known, **params | {"checkpoint": path})
    resumed = fitted(known, **params | {"checkpoint": path})
    np.testing.assert_array_equal(resumed.emission_, whole.emission_)
    with pytest.raises(ValueError, match=r"checkpoint|training state"):
        fitted(hidden(0.4), **params | {"checkpoint": path})


def test_a_solver_of_ones_own():
    solver = LatentSVM(FrankWolfe(0.1, random_state=0), start="easiest", rounds=2)
    model = SequenceLabeler(solver=solver, loss="hamming", probability=False).fit(X, hidden(0.5))
    assert model.result_.n_rounds <= 2 + 5
    assert clone(model).solver.get_params()["start"] == "easiest"


# --- the command line -----------------------------------------------------------------------------


def test_names_in_columns():
    for name, known in [
        ("_", None),
        ("A", "A"),
        ("A|B", {"A", "B"}),
        ("A|A", {"A"}),
        (r"\_", "_"),
        (r"\_|B", {"_", "B"}),
        (r"A\|B", "A|B"),
        (r"A\|B|C", {"A|B", "C"}),
        (r"a\b", r"a\b"),
    ]:
        assert from_text(name) == known
    for name in ("A|", "|A", "|", "A||B", "A|_"):
        with pytest.raises(ValueError, match="each side of a bar must name a label"):
            from_text(name)


@pytest.mark.filterwarnings("ignore:labels such as '_' stand among tags of chunks")
def test_the_command_line(tmp_path):
    known = hidden(0.5)
    known[3][0] = {LABELS[0], LABELS[1]}
    text = [
        ["_" if k is None else "|".join(sorted(k)) if isinstance(k, set) else k for k in labels] for labels in known
    ]
    write_columns(tmp_path / "part.txt", X, text)
    train = ("train", "sequence", "part.txt", "-m", "model", "-C", "1", "--loss", "log", "--max-iter", "3")
    assert f" {len(LABELS)} labels" in run(tmp_path, *train, "--partial")[0]
    expected = SequenceLabeler(1.0, loss="log", max_iter=3, random_state=0).fit(Columns.from_sequences(X), known)
    np.testing.assert_array_equal(structsvm.load(tmp_path / "model").emission_, expected.emission_)
    # Without it names are labels.
    assert f" {len(LABELS) + 2} labels" in run(tmp_path, *train)[0]
    text[0][0] = "A|"
    write_columns(tmp_path / "part.txt", X, text)
    assert "the label 'A|': each side of a bar" in run(tmp_path, *train, "--partial", status=1)[1]


# --- bad input ------------------------------------------------------------------------------------

BIO = [["O", "B-X", "I-X"], ["B-Y", "I-Y", "O"]]
THREE = [[{"w": 1.0}, {"w": 2.0}, {"v": 1.0}]] * 2


@pytest.mark.parametrize(
    ("y", "params", "message"),
    [
        (
            [["O", "B-X", "I-X"], [None, "O", "I-X"]],
            {},
            r"sequence 1: .* contradicts the constraints.* up to token 2 \('I-X'\)",
        ),
        (
            [["O", "B-X", "I-X"], [{"O", "B-Y"}, "I-X", "O"], ["B-Y"] * 3],
            {},
            r"sequence 1: .* contradicts the constraints.* up to token 1 \('I-X'\)",
        ),
        ([["O", "B-X", set()], ["O"] * 3], {}, "sequence 0, token 2: y holds an empty collection of labels; None"),
        ([["O", "B-X", []], ["O"] * 3], {}, "sequence 0, token 2: y holds an empty collection of labels; None"),
        ([["O", "B-X", {}], ["O"] * 3], {}, "sequence 0, token 2: y holds an empty collection of labels; None"),
        ([["O", "B-X", {"O": -1.0}], ["O"] * 3], {}, "token 2: y holds weights that are no finite numbers from 0 on"),
        ([["O", "B-X", {"O": np.nan, "B-X": 1}], ["O"] * 3], {}, "token 2: y holds weights that are no finite numbers"),
        ([["O", "B-X", {"O": 0}], ["O"] * 3], {}, "token 2: y holds weights that are no finite numbers from 0 on"),
        ([[None] * 3, [None] * 3], {}, "y tells no label of any token"),
        ([["O", None, "B-X"], ["O"] * 3], {"broken": "repair"}, "broken='repair' needs labels that are all known"),
        ([["O", [{}], "B-X"], ["O"] * 3], {}, "labels must be hashable"),
        ([["O", None], ["O"] * 3], {}, "sequence 0 has 3 tokens but 2 labels"),
    ],
)
@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_bad_input(y, params, message, inference):
    X = THREE + THREE[: len(y) - 2]
    estimator = SequenceLabeler(0.1, loss="hamming", constraints="bio", inference=inference, **params)
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(X, y)
    assert not hasattr(estimator, "model_")


def test_labels_that_the_first_batch_settles():
    model = SequenceLabeler(0.1, loss="hamming").partial_fit(THREE, BIO)
    with pytest.raises(ValueError, match="label 'B-Z' is not one of the model's labels"):
        model.partial_fit(THREE, [[{"B-Z", "O"}, "O", "O"], ["O"] * 3])


def test_all_that_agrees_is_all_there_is():
    """Sequences of which nothing is known teach nothing, and are no hindrance."""
    nothing = [[None] * len(labels) if i % 2 else labels for i, labels in enumerate(y)]
    half = SequenceLabeler(1.0, loss="log", max_iter=60, random_state=0).fit(X, nothing)
    alone = SequenceLabeler(1.0, loss="log", max_iter=60, random_state=0).fit(X[::2], y[::2])
    assert half.result_.primal == pytest.approx(alone.result_.primal, rel=1e-2)
    assert abs(half.score(X_test, y_test) - alone.score(X_test, y_test)) < 0.02


@pytest.mark.parametrize("params", [{}, {"segments": True}], ids=["tokens", "segments"])
def test_a_labelling_of_which_nothing_is_known_is_certain(params):
    """In a batch of its own as beside others; there is nothing in it to calibrate on or to learn from."""
    model = fitted(y, **params)
    nothing = [[None] * len(labels) for labels in y[:2]]
    assert model.probability_of(X[:2], nothing) == pytest.approx([1.0, 1.0])
    assert model.probability_of(X[:2], [nothing[0], y[1]])[0] == pytest.approx(1.0)
    for learn in (model.calibrate, model.partial_fit):
        with pytest.raises(ValueError, match="y tells no label of any token"):
            learn(X[:2], nothing)


def test_the_loss_is_the_likelihood_of_what_is_known():
    """Where the loss is left open and possible; training goes on with it."""
    known = hidden(0.5)
    model = SequenceLabeler(random_state=0, max_iter=3).fit(X, known)
    assert model.loss_ == "log" and model.C_ in model.validation_["C"]
    given = SequenceLabeler(model.C_, loss="log", random_state=0, max_iter=3).fit(X, known)
    least = model.validation_["least_weight"]
    is_felt = np.abs(given.emission_) >= least
    np.testing.assert_allclose(model.emission_, given.emission_ * is_felt, rtol=0.0, atol=least / 16.0)
    assert SequenceLabeler(0.3, random_state=0, max_iter=1).fit(X, known).loss_ == "log"
    assert SequenceLabeler(0.3, random_state=0, max_iter=1).fit(X, y).loss_ == "hamming"
    assert SequenceLabeler(0.3, inference="greedy", random_state=0, max_iter=1).fit(X, known).loss_ == "hamming"
    assert SequenceLabeler(0.3, class_weight="balanced", random_state=0, max_iter=1).fit(X, known).loss_ == "hamming"
    stream = SequenceLabeler(0.3, random_state=0).partial_fit(X[:50], known[:50], classes=LABELS)
    assert stream.partial_fit(X[50:], y[50:]).loss_ == "log"
    stream = SequenceLabeler(0.3, random_state=0).partial_fit(X[:50], y[:50], classes=LABELS)
    assert stream.partial_fit(X[50:], known[50:]).loss_ == "hamming"


def test_score_is_of_what_is_known():
    model = SequenceLabeler(C=0.1, loss="hamming", random_state=0).fit(X, y)
    found = model.predict(X_test)
    known = [[None if k % 2 else label for k, label in enumerate(labels)] for labels in y_test]
    right = [a == b for s, t in zip(found, known, strict=True) for a, b in zip(s, t, strict=True) if b is not None]
    assert model.score(X_test, known) == pytest.approx(np.mean(right))
    assert model.score(X_test, [[{label, "other"} for label in labels] for labels in y_test]) == model.score(
        X_test, y_test
    )
    lengths = [len(labels) for labels in y_test]
    flat = [label for labels in y_test for label in labels]
    numbers = [np.arange(3.0 * n).reshape(n, 3) for n in lengths]
    other = SequenceLabeler(C=0.1, loss="hamming", random_state=0).fit(np.vstack(numbers), flat, lengths=lengths)
    by_list = other.score(np.vstack(numbers), y_test, lengths=lengths)
    assert other.score(np.vstack(numbers), flat, lengths=lengths) == by_list
    assert other.score(np.vstack(numbers), flat, np.ones(len(lengths)), lengths=lengths) == pytest.approx(by_list)


def test_minus_one_of_numpy():
    words, of_numpy = [["a", "b", "c"]] * 9, [np.int64(0), np.int64(-1), np.int64(1)]
    model = SequenceLabeler(1.0, loss="log", unknown=-1).fit(words, [of_numpy] * 9)
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="y holds a set of labels with -1 in it; -1 alone: it may be any"):
        SequenceLabeler(1.0, loss="log").fit(words, [[0, {-1, 1}, 1]] * 9)
