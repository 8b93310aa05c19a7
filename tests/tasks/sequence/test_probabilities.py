"""The log loss and probabilities of label sequences: `loss="log"`, marginals, temperatures, confidence."""

import copy
import itertools
import pickle
from functools import cache

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm import CuttingPlane, LaRank
from structsvm.datasets import make_sequences, write_columns
from structsvm.features.columns import Columns
from structsvm.solvers import ConditionalLikelihood, Solver
from structsvm.tasks import SequenceLabeler

X, y = make_sequences(150, random_state=0)
X_TEST, Y_TEST = make_sequences(60, random_state=1)
X, X_TEST = Columns.from_sequences(X), Columns.from_sequences(X_TEST)


@pytest.fixture(scope="module")
def field():
    return SequenceLabeler(loss="log", max_iter=5, random_state=0).fit(X, y)


@cache
def trained():
    return SequenceLabeler(C=0.1, random_state=0).fit(X, y)


@pytest.fixture
def margin():
    return copy.deepcopy(trained())


def likelihood(labeler, X, y):
    """The mean log of the labels' probabilities."""
    at = {label: k for k, label in enumerate(labeler.classes_)}
    p = labeler.predict_marginals(X)
    return np.mean([np.log(max(row[at[c]], 1e-30)) for rows, labels in zip(p, y) for row, c in zip(rows, labels)])


def test_the_log_loss_trains_a_conditional_random_field(field):
    assert field.score(X_TEST, Y_TEST) > 0.85
    assert field.temperature_ == 1.0
    assert field.result_.dual <= field.result_.primal
    solver = ConditionalLikelihood(field.C_, max_iter=5, random_state=0)
    by_object, by_name = SequenceLabeler(loss="log", solver=solver), SequenceLabeler(loss="log", C=field.C_)
    by_name.set_params(max_iter=5, random_state=0)
    assert np.array_equal(by_object.fit(X, y).emission_, by_name.fit(X, y).emission_)


@pytest.mark.parametrize("which", ["field", "margin"])
def test_marginals_are_those_of_all_labellings(which, request):
    labeler = request.getfixturevalue(which)
    short = [x for x in (X_TEST[i : i + 1] for i in range(len(X_TEST))) if x.n_tokens <= 3]
    K = len(labeler.classes_)
    for x in short[:3]:
        (p,) = labeler.predict_marginals(x)
        n = K**x.n_tokens
        (found,) = labeler.predict_kbest(x, n, probabilities=True)
        assert sum(probability for _, probability in found) == pytest.approx(1.0, abs=1e-4)
        (scored,) = labeler.predict_kbest(x, n)
        assert [labels for labels, _ in scored] == [labels for labels, _ in found]
        (score, second), (p0, p1) = [s for _, s in scored[:2]], [q for _, q in found[:2]]
        assert np.log(p0 / p1) == pytest.approx((score - second) / labeler.temperature_, rel=1e-3, abs=1e-4)
        for t, (c, label) in itertools.product(range(x.n_tokens), enumerate(labeler.classes_)):
            assert p[t, c] == pytest.approx(sum(q for labels, q in found if labels[t] == label), abs=1e-4)


def test_marginals_of_known_labels(field):
    known = [None] * len(X_TEST)
    known[3] = [Y_TEST[3][0]] + [None] * (len(Y_TEST[3]) - 1)
    p, free = field.predict_marginals(X_TEST, allowed=known), field.predict_marginals(X_TEST)
    assert p[3][0, field.classes_.tolist().index(Y_TEST[3][0])] == pytest.approx(1.0, abs=1e-6)
    assert np.array_equal(p[2], free[2])
    with pytest.raises(ValueError, match="X has 60 sequences, allowed has 1"):
        field.predict_marginals(X_TEST, allowed=[None])


def test_empty_sequences(field):
    features = [[{"a": 1.0}, {"b": 1.0}], [], [{"b": 1.0}]]
    labeler = SequenceLabeler(loss="log", random_state=0).fit([features[0], features[2]], [["x", "y"], ["y"]])
    p = labeler.predict_marginals(features)
    assert [len(rows) for rows in p] == [2, 0, 1] and p[1].shape == (0, 2)
    assert np.array_equal(p[2], labeler.predict_marginals(features[2:])[0])
    assert labeler.predict_kbest([[]], 2, probabilities=True) == [[([], 1.0)]]
    labeler.calibrate(features, [["x", "y"], [], ["y"]])


def test_the_temperature_is_that_of_greatest_likelihood(margin):
    plain = SequenceLabeler(C=0.1, probability=False, random_state=0).fit(X, y)
    assert np.array_equal(plain.emission_, margin.emission_)  # the model itself is the same
    assert plain.temperature_ is None
    plain.calibrate(X_TEST, Y_TEST)
    best, at = plain.temperature_, likelihood
    problem = plain.model_.oracle.bind(
        plain.model_.encode(X_TEST), np.searchsorted(plain.classes_, list(itertools.chain(*Y_TEST))), rescaling=None
    )

    def loss(tau):
        return sum(problem.expect(i, plain.model_.weights / tau)[0] for i in range(problem.n_samples))

    assert loss(best) <= min(loss(0.9 * best), loss(1.1 * best))
    # The training data alone say nearly what fresh data say.
    assert 0.5 < margin.temperature_ / best < 2.0
    assert at(margin, X_TEST, Y_TEST) > at(plain, X_TEST, Y_TEST) - 0.02


def test_without_probabilities(field):
    plain = SequenceLabeler(C=0.1, probability=False, random_state=0).fit(X, y)
    for ask in (plain.predict_marginals, lambda x: plain.predict_kbest(x, 2, probabilities=True)):
        with pytest.raises(ValueError, match=r"needs probabilities.*loss='log'.*probability=True.*calibrate"):
            ask(X_TEST)
    greedy = SequenceLabeler(inference="greedy", random_state=0).fit(X, y)
    for ask in (greedy.predict_marginals, lambda x: greedy.calibrate(x, Y_TEST)):
        with pytest.raises(ValueError, match="needs inference='exact'; greedy search has no other labellings"):
            ask(X_TEST)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "log", "solver": "cutting_plane"}, "solver='cutting_plane' trains a margin, and loss='log' has a"),
        ({"loss": "log", "solver": LaRank()}, "solver='LaRank' trains a margin, and loss='log' has"),
        ({"loss": "hamming", "solver": ConditionalLikelihood()}, "minimises the log loss; use it with loss='log'"),
        ({"loss": "log", "solver": ConditionalLikelihood(), "C": 2.0}, "'C' parameter is set beside a solver object"),
        ({"loss": "log", "inference": "greedy"}, "loss='log' needs inference='exact'"),
        ({"loss": "log", "class_weight": "balanced"}, "class_weight has no meaning with loss='log'"),
        (
            {"loss": "logistic"},
            "The 'loss' parameter of SequenceLabeler must be 'auto' or 'hamming' or 'zero_one' or 'log'",
        ),
    ],
    ids=str,
)
def test_parameters_that_do_not_go_together(params, message):
    with pytest.raises(ValueError, match=message):
        SequenceLabeler(**params).fit(X, y)


@pytest.mark.parametrize("which", ["field", "margin"])
def test_files_keep_probabilities(which, request, tmp_path):
    labeler = request.getfixturevalue(which)
    labeler.save(tmp_path / "model")
    for again in (structsvm.load(tmp_path / "model"), pickle.loads(pickle.dumps(labeler))):
        assert again.temperature_ == labeler.temperature_
        for a, b in zip(again.predict_marginals(X_TEST), labeler.predict_marginals(X_TEST)):
            assert np.array_equal(a, b)


def test_a_field_goes_on(tmp_path):
    """Warm starts, streams and checkpoints of the log loss."""
    whole = SequenceLabeler(loss="log", max_iter=6, random_state=0).fit(X, y)
    half = SequenceLabeler(loss="log", max_iter=3, random_state=0, warm_start=True).fit(X, y)
    half.save(tmp_path / "half")
    for labeler in (half, structsvm.load(tmp_path / "half")):
        assert np.array_equal(labeler.fit(X, y).emission_, whole.emission_)
        assert labeler.n_iter_ == 6
    with pytest.raises(ValueError, match="trained with another 'loss'"):
        half.set_params(loss="hamming").fit(X, y)
    stream = SequenceLabeler(loss="log", random_state=0)
    for a in range(0, 150, 50):
        stream.partial_fit(X[a : a + 50], y[a : a + 50], classes=sorted(set(itertools.chain(*y))))
    assert stream.score(X_TEST, Y_TEST) > 0.8
    assert len(stream.predict_marginals(X_TEST)) == 60
    weighted = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X, y, sample_weight=np.arange(150) < 75)
    alone = SequenceLabeler(C=1.0, loss="log", random_state=0, max_iter=16).fit(X[:75], y[:75])
    assert weighted.result_.primal == pytest.approx(alone.result_.primal, rel=0.05)


@pytest.mark.parametrize(
    ("solver", "knows"),
    [
        ("perceptron", False),
        ("passive_aggressive", True),
        ("frank_wolfe", True),
        ("cutting_plane", True),
        (LaRank(penalty=None, max_iter=2), False),
        (LaRank(penalty="quadratic", rescaling="slack", max_iter=2), True),
        (CuttingPlane(form="one_slack", max_iter=2, tol=None), False),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_solvers_whose_dual_is_one_of_sequences(solver, knows):
    params = {} if isinstance(solver, Solver) else {"max_iter": 3, "random_state": 0}
    labeler = SequenceLabeler(solver=solver, **params).fit(X[:30], y[:30])
    assert (labeler.temperature_ is not None) == knows
    if knows:
        assert 1 / 64 <= labeler.temperature_ <= 64
    assert SequenceLabeler(max_iter=1).fit(X[:1], y[:1]).temperature_ is None


def test_a_stream_scores_each_batch_before_it_is_trained_on(margin):
    labeler = pickle.loads(pickle.dumps(margin))
    before = labeler.temperature_
    labeler.partial_fit(X_TEST, Y_TEST)
    alone = margin.calibrate(X_TEST, Y_TEST).temperature_
    assert min(before, alone) <= labeler.temperature_ <= max(before, alone)
    assert labeler.temperature_ != before
    labeler.set_params(probability=False).partial_fit(X_TEST, Y_TEST)
    assert labeler.temperature_ is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("columns")
    for name, columns, labels in (("train", X, y), ("test", X_TEST, Y_TEST)):
        write_columns(found / name, [list(zip(*s)) for s in zip(columns.column(0), columns.column(1))], labels)
    return found


@pytest.mark.parametrize("options", [["--loss", "log", "-C", "0.1"], []], ids=" ".join)
def test_confidence_on_the_command_line(options, folder):
    run(folder, "train", "sequence", "train", "-m", "model", *options)
    out, _ = run(folder, "predict", "model", "test", "--confidence")
    rows = [line.split("\t") for line in out.splitlines() if line]
    labeler = structsvm.load(folder / "model")
    predicted, p = labeler.predict(X_TEST), labeler.predict_marginals(X_TEST)
    assert [row[-2] for row in rows] == list(itertools.chain(*predicted))
    at = {label: k for k, label in enumerate(labeler.classes_)}
    expected = [row[at[c]] for rows_, labels in zip(p, predicted) for row, c in zip(rows_, labels)]
    assert [float(row[-1]) for row in rows] == pytest.approx(expected, abs=1e-6)
    out, _ = run(folder, "predict", "model", "test", "--confidence", "-k", "2")
    found = [float(line.split()[2]) for line in out.splitlines() if line.startswith("# ")]
    kbest = labeler.predict_kbest(X_TEST, 2, probabilities=True)
    assert found == pytest.approx([p for best in kbest for _, p in best], abs=1e-6)


def test_confidence_of_a_model_that_knows_none(folder):
    run(folder, "train", "sequence", "train", "-m", "plain", "--no-probability", "--loss", "hamming", "-C", "0.1")
    _, err = run(folder, "predict", "plain", "test", "--confidence", status=1)
    assert "needs probabilities" in err
