"""The choice of C where labels are known in part: by the labels of chunks, which are few beside those outside.

Of enough sequences the log loss of what is known and a margin on what that completes are added.
"""

import io

import numpy as np
import pytest

import structsvm
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood, LatentSVM
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.common import training
from structsvm.tasks.common.selection.largest import LargestSearch
from structsvm.tasks.common.selection.search import ENOUGH_EXAMPLES, Search
from structsvm.tasks.common.selection.sums import SumSearch
from structsvm.tasks.sequence import model as sequence_model
from structsvm.tasks.sequence.preparation import prepare


def sentences(n, seed, hidden=0.5):
    """Words of which one in six is a name; what is hidden is None."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        is_name = rng.random(8) < 0.16
        X.append([f"Name{rng.integers(40)}" if name else f"word{rng.integers(60)}" for name in is_name])
        y.append([None if rng.random() < hidden else ("B-PER" if name else "O") for name in is_name])
    return X, y


def test_f1_of_known_tokens_in_chunks():
    X, y = sentences(80, 0)
    model = SequenceLabeler(random_state=0, probability=False).fit(X, y)
    assert model.validation_["metric"] == "F1"
    held, examples = model.model_, sentences(30, 1)
    found = held.held_out_scores(held_examples(held, *examples))
    predicted = model.predict(examples[0])
    pairs = [
        [(true, guess) for true, guess in zip(t, p, strict=True) if true is not None]
        for t, p in zip(examples[1], predicted, strict=True)
    ]
    right = [2.0 * sum(true == guess != "O" for true, guess in of) for of in pairs]
    total = [1.0 * sum((true != "O") + (guess != "O") for true, guess in of) for of in pairs]
    assert found.numerator.tolist() == pytest.approx(right) and found.denominator.tolist() == pytest.approx(total)
    assert sum(right) > 0.0


def held_examples(model, X, y):
    """The examples of a trained model."""
    return prepare(SequenceLabeler(random_state=0, probability=False), X, y, before=model)[1]


@pytest.mark.parametrize("hidden", [0.0, 0.5])
def test_c_of_labels_known_in_part_is_chosen_as_of_few_sequences(hidden):
    """Sequences count by the share that is known of them: of values as good as the best the largest is chosen."""
    X, y = sentences(sequence_model.FEW_SEQUENCES + 10, 1, hidden=hidden)
    model, examples = prepare(SequenceLabeler(random_state=0), X, y)
    search = model.with_loss("log").search_of_loss(examples, ConditionalLikelihood())
    assert type(search) is (LargestSearch if hidden else Search)


def test_accuracy_without_chunks():
    X, y = sentences(80, 2)
    y = [[label and {"B-PER": "name", "O": "word"}[label] for label in labels] for labels in y]
    assert SequenceLabeler(random_state=0, probability=False).fit(X, y).validation_["metric"] == "accuracy"


def test_a_margin_is_added_to_the_likelihood_of_what_is_known(tmp_path):
    X, y = sentences(ENOUGH_EXAMPLES + 60, 3)
    model = SequenceLabeler(random_state=0).fit(X, y)
    table = model.validation_
    assert table["losses"].keys() == table["scales"].keys() == model.results_.keys() == {"log", "hamming"}
    assert model.loss_ == "log" and model.results_["log"] is model.result_
    # The margin is completed by a likelihood first, then by itself.
    margin = SequenceLabeler(
        loss="hamming",
        C=None,
        solver=LatentSVM(structsvm.LaRank(table["losses"]["hamming"][0], random_state=0), start="soft"),
    ).fit(X, y)
    assert margin.result_.dual == model.results_["hamming"].dual
    likelihood = SequenceLabeler(loss="log", C=model.C_, random_state=0).fit(X, y)
    parts = {"log": likelihood, "hamming": margin}
    total = sum(table["scales"][loss] * part.emission_ for loss, part in parts.items())
    np.testing.assert_allclose(model.emission_, total, atol=0.1 * np.abs(total).max())  # gaps of 1 %
    model.save(tmp_path / "m")
    again = structsvm.load(tmp_path / "m")
    assert again.predict(X) == model.predict(X) and again.results_.keys() == model.results_.keys()


@pytest.mark.parametrize(
    ("n", "weigh"), [(ENOUGH_EXAMPLES - 1, False), (ENOUGH_EXAMPLES, True)], ids=["few", "weights"]
)
def test_nothing_is_added_for_few_sequences_and_weights_of_labels(n, weigh):
    X, y = sentences(n, 4)
    if weigh:
        y = [[{"B-PER": 0.5, "O": 0.5} if label is None else label for label in labels] for labels in y]
    model = SequenceLabeler(random_state=0).fit(X, y)
    assert model.results_.keys() == {"log"} and "losses" not in model.validation_


def test_runs_of_known_labels_are_held_out_with_their_sequences(monkeypatch):
    seen, choose = [], SumSearch.choose
    monkeypatch.setattr(SumSearch, "choose", lambda self, monitor: seen.append(self) or choose(self, monitor))
    X, y = sentences(ENOUGH_EXAMPLES + 60, 5)
    y[7] = [None] * len(y[7])
    SequenceLabeler(random_state=0).fit(X, y)
    ((of_log, of_margin),) = [search.searches for search in seen]
    origin = of_margin.examples.origin
    assert len(origin) > len(X) and 7 not in origin
    for whole, runs in zip(of_log.parts, of_margin.parts, strict=True):
        assert {*origin[runs.held_out].tolist()} == {*whole.held_out.tolist()} - {7}
        assert {*origin[runs.rows].tolist()} == {*whole.rows.tolist()} - {7}
    for whole, runs in zip(*(search.elsewhere(Monitor()).parts for search in (of_log, of_margin)), strict=True):
        assert {*origin[runs.held_out].tolist()} == {*whole.held_out.tolist()} - {7}


@pytest.mark.parametrize(("n_known", "n_held_out"), [(0, 100), (5, 35)])
def test_sequences_without_weight_are_not_enough(n_known, n_held_out):
    X, y = sentences(ENOUGH_EXAMPLES + 30, 6)
    unknown = [[None] * len(labels) for labels in y[:100]]
    weight = np.repeat([1.0, 0.0, 1.0], [n_known, len(X) - n_known, 100])
    model = SequenceLabeler(random_state=0).fit(X + X[:100], y + unknown, weight)
    assert model.results_.keys() == {"log"} and model.validation_["n_held_out"] == n_held_out


def test_c_is_not_chosen_where_nothing_known_is_held_out(monkeypatch):
    monkeypatch.setattr(sequence_model, "ENOUGH_EXAMPLES", 2)
    X, y = sentences(60, 7)
    y = [labels if i < 2 else [None] * len(labels) for i, labels in enumerate(y)]
    model = SequenceLabeler(random_state=0).fit(X, y)
    assert model.results_.keys() == {"log"} and model.model_.C_of_few == model.C_
    assert model.model_.choice is None


class Interrupt(Monitor):
    """Ctrl-C after some passes."""

    n_passes = 4

    def end_pass(self, run):
        self.n_passes -= 1
        if not self.n_passes:
            raise KeyboardInterrupt


def contents(model, **options):
    stream = io.BytesIO()
    model.save(stream, **options)
    return stream.getvalue()


def test_a_margin_resumes_from_a_file_within_its_completion(monkeypatch):
    X, y = sentences(ENOUGH_EXAMPLES + 10, 8)
    model, solve = SequenceLabeler(random_state=0, warm_start=True), training.solve
    interrupted = lambda job, monitor: solve(job, monitor if job.model.loss == "log" else Interrupt())  # noqa: E731
    monkeypatch.setattr(training, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.results_["hamming"].n_iter == 4
    again = structsvm.load(contents(model))
    for one in (model, again):
        one.fit(X, y)
    assert model.results_["hamming"].n_iter > 4
    assert again.results_["hamming"].dual == model.results_["hamming"].dual
    np.testing.assert_array_equal(again.emission_, model.emission_)


def tags_by_two(n, seed):
    """Words of which some are inside of chunks that nothing known begins."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = rng.integers(30, size=6).tolist()
        tags = ["I-P" if t and k % 3 == 0 else "B-P" if k % 7 == 0 else "O" for t, k in enumerate(words)]
        before = zip(tags, [*tags[1:], "O"], strict=True)
        X.append([f"w{k}" for k in words])
        y.append([None if (tag, after) == ("O", "I-P") else tag for tag, after in before])
    return X, y


@pytest.mark.parametrize("params", [{}, {"loss": "hamming"}], ids=["sum", "hamming"])
def test_ctrl_c_in_the_choice_of_c_keeps_the_constraints(params, monkeypatch):
    """Whichever training it ends: the runs of known labels, too, which may begin with any label."""
    seen, tried = [], Search.tried

    def interrupt(self, *arguments, **options):
        found = tried(self, *arguments, **options)
        seen.append(self.loss)
        if self.loss == "hamming":
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(Search, "tried", interrupt)
    X, y = tags_by_two(ENOUGH_EXAMPLES + 10, 9)
    model = SequenceLabeler(random_state=0, constraints="bio", **params)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert seen[-1] == "hamming" == model.loss_
    for one in (model, structsvm.load(contents(model))):
        for labels in one.predict([["w3", "w1", "w3", "w1", "w6", "w2", "w9"], *X]):
            pairs = zip(["O", *labels[:-1]], labels, strict=True)
            assert not any(pair == ("O", "I-P") for pair in pairs)
