"""Labels of nodes that are known in part: sets of those that they may be, and states that nobody annotates."""

import numpy as np
import pytest

from structsvm.metrics import node_accuracy_scorer
from structsvm.tasks import GraphLabeler
from structsvm.tasks.graph.examples import LabeledGraphs
from structsvm.tasks.graph.hidden import clustered, clusters
from structsvm.tasks.graph.labels import encode_labels

STATES = {"first", "second", "third"}
KINDS = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 1, 0]])


def objects(n, seed):
    """Six parts with labels by the object's kind, seen under noise; node 6 is joined to all of them."""
    draws = np.random.default_rng(seed)
    parts = KINDS[draws.integers(3, size=n)]
    rows = np.zeros((n, 7, 2))
    rows[:, :6, 0], rows[:, 6, 1] = 2 * parts - 1 + 1.5 * draws.normal(size=(n, 6)), 1.0
    ends = [[(6, k) if k < 3 else (k, 6) for k in range(6)]] * n
    return [(own, edges, np.eye(6)) for own, edges in zip(rows, ends, strict=True)], parts.tolist()


X, PARTS = objects(80, 0)
X_TEST, PARTS_TEST = objects(100, 1)


@pytest.mark.parametrize(("C", "loss"), [(1.0, "hamming"), ("auto", "hamming"), (1.0, "log")])
def test_states_that_nobody_annotates(C, loss):
    """They carry from part to part what no part knows by itself, whatever they are called."""
    model = GraphLabeler(C=C, loss=loss, random_state=0).fit(X, [[*own, STATES] for own in PARTS])
    assert set(model.classes_.tolist()) == {0, 1, *STATES}
    may = [[{0, 1}] * 6 + [STATES]] * len(X_TEST)
    found = model.predict(X_TEST, known=may)
    assert {labels[6] for labels in found} == STATES
    right = np.mean([labels[:6].tolist() == own for labels, own in zip(found, PARTS_TEST, strict=True)])
    by_sign = np.mean([((x[0][:6, 0] > 0) == own).all() for x, own in zip(X_TEST, PARTS_TEST, strict=True)])
    assert right > by_sign + 0.3  # whole objects
    if C == "auto":
        assert model.validation_["n_held_out"] >= 16 and model.validation_["score"].max() > 0.85


def test_clusters_are_of_what_is_known_around():
    """The two sides of edges, the labels there and the features of edges all tell nodes apart."""
    ends = np.array([[0, 4], [4, 1], [2, 5], [3, 5], [6, 2]])
    features = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    ids = np.array([-2, -2, -2, -2, 0, 1, -1], dtype=np.int32)
    sets = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0]], dtype=bool)
    found = clustered(ends, features, ids, sets)
    assert sorted(found[:4].tolist()) == [2, 3, 4, 5]
    assert found[4:].tolist() == [0, 1, -1] and (ids[:4] == -2).all()
    ids[6] = -3  # another node has a label that this one may have: no state
    np.testing.assert_array_equal(clustered(ends, features, ids, sets)[4:], [0, 1, -3])


def test_clusters():
    rows = np.array([[0.0], [0.2], [5.0], [5.2], [9.0], [9.5]])
    own = clusters(rows, 3)
    assert own[0] == own[1] and own[2] == own[3] and own[4] == own[5] and len(set(own.tolist())) == 3
    assert clusters(np.zeros((4, 2)), 3).tolist() == [0] * 4
    assert sorted(clusters(rows[[0, 4]], 3).tolist()) == [0, 1]


EDGES = [(0, 1), (1, 2), (2, 3), (3, 0)]
ROWS = np.random.default_rng(2).normal(size=(30, 4, 3))
CHAINS = [(rows, EDGES) for rows in ROWS]
Y = [np.array(list("abc"))[rows.argmax(axis=1)].tolist() for rows in ROWS]
IN_PART = [
    [{label, "bca"["abc".index(label)]} if k % 2 else label for k, label in enumerate(own, i)]
    for i, own in enumerate(Y)
]


def test_sets_are_the_labels_that_may_stand():
    """A set of one is that label; sets are nearly as good as all labels, and the score is of what is known."""
    full, part = (GraphLabeler(C=1.0, random_state=0).fit(CHAINS, y) for y in (Y, IN_PART))
    assert part.result_.n_rounds >= 1 and part.score(CHAINS, Y) > full.score(CHAINS, Y) - 0.1
    ones = GraphLabeler(C=1.0, random_state=0).fit(CHAINS, [[{label} for label in own] for own in Y])
    np.testing.assert_array_equal(ones.coef_, full.coef_)
    right = sum(a == b for own, found in zip(IN_PART, part.predict(CHAINS), strict=True) for a, b in zip(own, found))
    assert part.score(CHAINS, IN_PART) == node_accuracy_scorer(part, CHAINS, IN_PART) == pytest.approx(right / 60)


def test_the_log_loss_sums_over_sets():
    model = GraphLabeler(C=1.0, loss="log", max_iter=3, random_state=0).fit(CHAINS, IN_PART)
    own = model.model_
    graphs = own.encode(own.inputs(CHAINS)[0])
    total = 0.5 * own.weights @ own.weights
    for i, labels in enumerate(IN_PART):
        may = np.array([[k == label or (isinstance(label, set) and k in label) for k in "abc"] for label in labels])
        total += own.oracle.expect(graphs[i : i + 1], own.weights)[0]
        total -= own.oracle.expect_known(graphs[i : i + 1], may, own.weights)[0]
    run = LabeledGraphs(graphs, *encode_labels(IN_PART, own.labels)[1:]).bound(own.oracle, rescaling=None)
    losses = [run.moments(i, own.weights)[0] - run.moments(i, own.weights, known=True)[0] for i in range(30)]
    assert 0.5 * own.weights @ own.weights + sum(losses) == pytest.approx(total)
    probability = model.predict_marginals(CHAINS)
    table = [
        probability[i][v, "abc".index(Y[i][v])] for i, own in enumerate(IN_PART) for v in range(4) if v % 2 != i % 2
    ]
    assert np.mean(table) > 0.5


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_best_of_what_may_be(n_jobs):
    """Against the enumeration of all labellings that the sets allow, in one thread and in two."""
    model = GraphLabeler(C=1.0, max_iter=2, random_state=0, n_jobs=n_jobs).fit(CHAINS, Y)
    own, may = model.model_, [[{"a", "b"}, "c", None, {"b", "c"}]] * 8
    graphs = own.encode(own.inputs(CHAINS[:8])[0])
    for i, labels in enumerate(model.predict(CHAINS[:8], known=may)):
        decoder, ways = own.oracle.decoder(graphs[i : i + 1]), []
        for a in (0, 1):
            ways += [np.array([a, 2, b, c]) for b in range(3) for c in (1, 2)]
        best = ways[int(np.argmax([decoder.values(way, own.weights)[0] for way in ways]))]
        assert [*labels] == ["abc"[k] for k in best]


@pytest.mark.parametrize(
    ("label", "error", "message"),
    [
        (set(), ValueError, r"graph 1, node 2: set\(\) is no set of labels; None: it may be any"),
        ({"a", None}, ValueError, "graph 1, node 2: .* is no set of labels"),
        (["a", "b"], TypeError, r"graph 1, node 2: \['a', 'b'\] is no label"),
        ({"a", float("nan")}, ValueError, "graph 1, node 2: the label is NaN"),
        ({"a": 1.0}, TypeError, "graph 1, node 2: .* is no label"),
    ],
    ids=["empty", "None", "list", "NaN", "dict"],
)
def test_what_is_no_set(label, error, message):
    with pytest.raises(error, match=message):
        GraphLabeler(C=1.0).fit(CHAINS, [Y[0], [*Y[1][:2], label, "a"], *Y[2:]])


def test_what_a_set_must_not_hold():
    with pytest.raises(ValueError, match="y holds a set with -1"):
        GraphLabeler(C=1.0).fit(CHAINS[:2], [[0, 1, {1, -1}, 0], [1, 0, 1, -1]])
    model = GraphLabeler(C=1.0, max_iter=1, random_state=0).fit(CHAINS, Y)
    with pytest.raises(ValueError, match="label 'd' is not one of the model's labels"):
        model.predict(CHAINS[:1], known=[[{"a", "d"}, None, None, None]])
