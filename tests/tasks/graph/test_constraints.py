"""Labels under constraints: against the enumeration of all labellings, and what is refused."""

import copy
import itertools
import signal
import threading
from dataclasses import replace
from functools import cache, partial
from itertools import product

import graph_reference as reference
import networkx as nx
import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import OptimizeResult

from structsvm.dual._rounds import completions, violations
from structsvm.oracles.graph import GraphOracle
from structsvm.structures.graphs.rules import BoundedSum, Rules
from structsvm.tasks import GraphLabeler
from structsvm.tasks.graph.constraints import all_rules
from structsvm.tasks.graph.examples import fragments
from structsvm.tasks.graph.inputs import Form
from structsvm.tasks.graph.model import GraphModel

rng = np.random.default_rng(0)
EDGES = np.array([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])
X = [(rng.normal(size=(5, 3)), EDGES) for _ in range(24)]
Y = [np.array(list("abc"))[rows.argmax(axis=1)] for rows, _ in X]
TESTS = [(rng.normal(size=(5, 3)), EDGES) for _ in range(6)]

RULES = {
    "at_most_one": [("at_most_one", [(v, "b") for v in range(5)]), ("at_most_one", [(v, "a") for v in range(5)])],
    "exactly_one": [("exactly_one", [(v, "c") for v in range(5)])],
    "or": [("or", [(0, "a"), (4, "c")]), ("or", [(1, "b")])],
    "implies": [("implies", [(v, k), (u, k)]) for v, u in EDGES.tolist() for k in "abc"],
    "several": [("implies", [(0, "a"), (1, "b"), (2, "c")]), ("or", [(0, "a"), (3, "a")]), ("at_most_one", [(3, "a")])],
}


def is_met(kind, pairs, y):
    there = [y[v] == k for v, k in pairs]
    if kind == "implies":
        return all(there[1:]) or not there[0]
    return {"at_most_one": sum(there) <= 1, "exactly_one": sum(there) == 1, "or": any(there)}[kind]


@cache
def trained(**params):
    return GraphLabeler(C=0.1, max_iter=5, random_state=0, **params).fit(X, Y)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("method", ["junction", "relaxed", "expansion"])
def test_the_best_that_obeys(name, method):
    model, n_changed = trained(method=method), 0
    own = model.model_
    graphs = own.encode(own.inputs(TESTS)[0])
    found = model.predict(TESTS, constraints=[RULES[name]] * 6)
    for i, y in enumerate(found):
        decoder = own.oracle.decoder(graphs[i : i + 1])
        ways = [z for z in product("abc", repeat=5) if all(is_met(kind, pairs, z) for kind, pairs in RULES[name])]
        scores = [decoder.values(np.searchsorted(list("abc"), z), own.weights)[0] for z in ways]
        assert tuple(y) in ways
        assert scores[ways.index(tuple(y))] == pytest.approx(max(scores), abs=1e-7)
        n_changed += tuple(y) != tuple(model.predict(TESTS[i : i + 1])[0])
    assert n_changed


@pytest.mark.parametrize("name", RULES)
def test_what_is_broken_first(name):
    (own,) = all_rules([RULES[name]], [Form(5)], list("abc"))
    for z in product("abc", repeat=5):
        broken = [r for r, rule in enumerate(RULES[name]) if not is_met(*rule, z)]
        found = own.broken(np.searchsorted(list("abc"), z))
        assert ([] if found is None else [found.number]) == broken[:1]


def test_what_obeys_and_is_not_known_to_be_best():
    """Expansion moves prove nothing: a rule that all labellings obey still asks for the best one."""
    model, n_changed = copy.deepcopy(trained(method="expansion")), 0
    own = model.model_
    graphs = own.encode(own.inputs(TESTS)[0])
    ways = [np.searchsorted(list("abc"), z) for z in product("abc", repeat=5)]
    for seed in range(4):
        own.weights = np.random.default_rng(seed).normal(size=len(own.weights))
        found = model.predict(TESTS, constraints=[[("or", [(0, k) for k in "abc"])]] * 6)
        for i, (y, plain) in enumerate(zip(found, model.predict(TESTS), strict=True)):
            decoder = own.oracle.decoder(graphs[i : i + 1])
            best = ways[int(np.argmax([decoder.values(z, own.weights)[0] for z in ways]))]
            np.testing.assert_array_equal(np.searchsorted(list("abc"), y), best)
            n_changed += bool((y != plain).any())
    assert n_changed


def test_a_programme_that_is_not_solved(monkeypatch):
    """It is no proof that nothing obeys; and what is asked for is the best labelling, not one within 0.01 %."""

    def stopped(*args, options, **others):
        assert options["mip_rel_gap"] <= 1e-9
        return OptimizeResult(status=4, x=None, message="numbers went wrong")

    monkeypatch.setattr("scipy.optimize.milp", stopped)
    with pytest.raises(RuntimeError, match="the programme of graph 0 was not solved: numbers went wrong"):
        trained().predict(TESTS[:1], constraints=[RULES["exactly_one"]])


@pytest.mark.parametrize("phase", ["fit", "predict"])
def test_a_programme_is_interrupted(monkeypatch, phase):
    """While HiGHS, which does not look up, is at work."""
    go_on, solve, at_work = threading.Event(), scipy.optimize.milp, []

    def slow(*args, **options):
        at_work.append(threading.current_thread())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        go_on.wait(60.0)
        return solve(*args, **options)

    model = trained() if phase == "predict" else GraphLabeler(C=1.0, interactions="potts", random_state=0)
    call = partial(model.predict, TESTS[:1]) if phase == "predict" else partial(model.fit, X[:6], Y[:6])
    monkeypatch.setattr("scipy.optimize.milp", slow)
    with pytest.raises(KeyboardInterrupt):
        call(constraints=[RULES["exactly_one"]] if phase == "predict" else OWN[:6])
    assert threading.main_thread() not in at_work
    go_on.set()


def test_beside_labels_that_are_known():
    model = trained()
    known = [np.array([None, "b", None, None, None], dtype=object)]
    found = model.predict(TESTS[:1], known=known, constraints=[RULES["at_most_one"]])[0]
    assert found[1] == "b" and (found == "b").sum() == 1 and (found == "a").sum() <= 1
    with pytest.raises(ValueError, match="graph 0: no labelling obeys all constraints"):
        model.predict(TESTS[:1], known=known, constraints=[[("or", [(1, "a"), (1, "c")])]])
    plain = model.predict(TESTS)
    for y, z in zip(plain, model.predict(TESTS, constraints=[None, *[[]] * 5]), strict=True):
        np.testing.assert_array_equal(y, z)


def test_names_of_nodes():
    """Cells of grids by row and column, nodes of networkx by name; one graph has one list of constraints."""
    grids = [rng.normal(size=(2, 3, 2)) for _ in range(20)]
    model = GraphLabeler(C=0.1, random_state=0).fit(grids, [(g[..., 0] > 0).astype(int) for g in grids])
    for label in (0, 1):
        assert model.predict(grids[:1], constraints=[[("or", [((1, 2), label)])]])[0][1, 2] == label
    with pytest.raises(ValueError, match=r"graph 0, constraint 0: \(2, 0\) is no node of \(2, 3\)"):
        model.predict(grids[:1], constraints=[[("or", [((2, 0), 1)])]])
    graph = nx.karate_club_graph()
    for v, own in graph.nodes(data=True):
        own["features"] = [graph.degree[v], float(v)]
    club = GraphLabeler(C=1.0, interactions="potts", random_state=0).fit(graph, {v: v > 15 for v in graph})
    assert club.predict(graph, constraints=[("or", [(33, False)])])[33] is False


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (("xor", [(0, "a")]), r"graph 0, constraint 0: expected \(kind, pairs\), kind one of at_most_one"),
        (("or", [(0, "a", 1)]), r"graph 0, constraint 0: expected pairs \(node, label\)"),
        (("or", 3), r"graph 0, constraint 0: expected pairs \(node, label\), got 3"),
        (("or", [(0, ["a"])]), "is not one of the model's labels"),
        (("or", [(0, "d")]), "graph 0, constraint 0: 'd' is not one of the model's labels"),
        (("or", [(5, "a")]), "graph 0, constraint 0: 5 is no node of 5"),
        (("or", [(0.5, "a")]), r"graph 0, constraint 0: 0\.5 is no node"),
        (("or", [(0, "a"), (0, "a")]), "graph 0, constraint 0: 'or' needs some pairs, all different"),
        (("or", []), "graph 0, constraint 0: 'or' needs some pairs"),
        (("implies", [(0, "a")]), "graph 0, constraint 0: 'implies' needs two pairs"),
    ],
    ids=str,
)
def test_what_is_no_constraint(rule, message):
    model = trained()
    with pytest.raises(ValueError, match=message):
        model.predict(TESTS[:1], constraints=[[rule]])
    with pytest.raises(ValueError, match="constraints must hold a list of constraints per graph, of 6"):
        model.predict(TESTS, constraints=[[rule]])


# ---- training -----------------------------------------------------------------------------------


def once(y):
    """A rule per label: exactly one of the nodes that do not have it, and one that has."""
    return [
        ("exactly_one", [(v, str(k)) for v in range(5) if y[v] != k or v == list(y).index(k)]) for k in sorted(set(y))
    ]


OWN = [once(y) for y in Y]


def ways(rules):
    return [z for z in product("abc", repeat=5) if all(is_met(kind, pairs, z) for kind, pairs in rules)]


@pytest.mark.parametrize("method", ["junction", "relaxed", "expansion"])
def test_the_most_violated_of_those_that_obey(method):
    """Against the enumeration, or of the relaxation the linear programme with the rules as further rows."""
    oracle = GraphOracle(3, 3, 1, interactions="full", method=method)
    forms, rows = [Form(5)] * 6, [(*x, np.ones((5, 1))) for x in X[:6]]
    plain = oracle.as_graphs(rows)
    graphs = replace(plain, rules=all_rules(OWN[:6], forms, list("abc")))
    labels = [np.searchsorted(list("abc"), y) for y in Y[:6]]
    w = np.random.default_rng(3).normal(size=oracle.n_features)
    problem = oracle.bind(graphs, labels)
    found, free = violations(problem, w), violations(oracle.bind(plain, labels), w)
    assert not np.array_equal(found, free) and "expectations" not in problem.offers
    for i, y in enumerate(labels):
        unary, pairs = reference.scores(rows[i], w, 3, "full")
        true = reference.joint_feature(rows[i], y, 3, "full") @ w
        if method == "relaxed":
            sums = [{v * 3 + "abc".index(k): 1.0 for v, k in members} for _, members in OWN[i]]
            best = reference.relaxation(unary + (np.arange(3) != y[:, None]), EDGES, pairs, sums)
        else:
            numbers = [np.searchsorted(list("abc"), z) for z in ways(OWN[i])]
            best = max((z != y).sum() + reference.joint_feature(rows[i], z, 3, "full") @ w for z in numbers)
        assert found[i] == pytest.approx(best - true, abs=1e-6)
        b, psi = problem.separate(i, w)
        assert b - psi @ w == pytest.approx(best - true, abs=1e-6)
    if method == "relaxed":  # whose best points are fractional
        exact = GraphOracle(3, 3, 1, interactions="full").bind(graphs, labels)
        assert found.sum() > violations(exact, w).sum() + 1.0
    np.testing.assert_allclose(violations(oracle.bind(graphs[2:4], labels[2:4]), w), found[2:4])
    np.testing.assert_allclose(
        violations(oracle.bind(graphs.take([5, 0])[0], [labels[5], labels[0]]), w), found[[5, 0]]
    )


def test_all_of_a_rule_is_in_the_fingerprint():
    oracle = GraphOracle(2, 1)
    plain = oracle.as_graphs([(np.ones((3, 1)), [(0, 1), (1, 2)])])
    of = np.array
    changes = (
        {},
        {"nodes": of([0, 2])},
        {"labels": of([1, 1])},
        {"signs": of([1, -1])},
        {"least": -2.0},
        {"most": 2.0},
    )
    seen = {oracle.bind(plain, [np.zeros(3, dtype=int)]).fingerprint()}
    for change in changes:
        rule = BoundedSum(0, of([0, 1]), of([1, 0]), of([1, 1]), -1.0, 1.0)._replace(**change)
        seen.add(oracle.bind(replace(plain, rules=(Rules(0, [rule]),)), [np.zeros(3, dtype=int)]).fingerprint())
    assert len(seen) == 1 + len(changes)


def test_what_messages_leave_open_is_solved():
    """A graph whose sweeps and steps end above its best point; all labellings obey the rule."""
    own, K, at = np.random.default_rng(0), 14, np.arange(16).reshape(4, 4)
    pairs = ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]))
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    oracle = GraphOracle(K, 1, interactions="full", method="relaxed")
    free = oracle.as_graphs([(own.normal(size=(16, 1)), edges)])
    w = own.normal(size=oracle.n_features)
    graphs = replace(free, rules=all_rules([[("or", [(0, k) for k in range(K)])]], [Form(16)], list(range(K))))
    decoder = oracle.decoder(graphs)
    bound, value = decoder.bounds(w)[0], decoder.values(decoder.decode(w), w)[0]
    assert value == pytest.approx(bound) and bound < oracle.decoder(free).bounds(w)[0] - 0.01
    assert value > oracle.decoder(free).values(oracle.decoder(free).decode(w), w)[0] + 0.1


def test_training_under_constraints():
    """The objective is that of the labellings that obey, which is below that of all."""
    X_own, Y_own = X[:6], Y[:6]
    model = GraphLabeler(C=1.0, interactions="potts", max_iter=2, random_state=0)
    model.fit(X_own, Y_own, constraints=OWN[:6])
    own, result = model.model_, model.result_
    graphs = own.encode(own.inputs(X_own)[0])
    primal = np.full(2, 0.5 * own.weights @ own.weights)
    for i, y in enumerate(np.searchsorted(list("abc"), Y_own)):
        decoder = own.oracle.decoder(graphs[i : i + 1])
        for k, rules in enumerate((OWN[i], [])):
            found = [np.searchsorted(list("abc"), z) for z in ways(rules)]
            primal[k] += max(decoder.values(z, own.weights)[0] + (z != y).sum() for z in found)
        primal -= decoder.values(y, own.weights)[0]
    assert result.inference == "exact" and result.primal == pytest.approx(primal[0]) and primal[0] < 0.99 * primal[1]
    assert result.dual <= result.primal


@pytest.mark.parametrize(
    ("n", "method", "n_known", "n_ruled"),
    [(20, "relaxed", 5, 20), (20, "junction", 4, 10), (8, "junction", 5, 4)],
    ids=["relaxed", "known in part", "parts"],
)
def test_the_choice_of_C_obeys(monkeypatch, n, method, n_known, n_ruled):
    """Held-out graphs are predicted under their rules; parts of graphs keep those of their own nodes alone."""
    judged, ruled, judge = [], set(), GraphModel.held_out_scores

    def spy(model, examples):
        graphs, label_ids = examples.graphs, examples.label_ids
        found = model.predict_ids(graphs)
        for own, (a, b) in zip(graphs.rules, itertools.pairwise(graphs.node_bounds.tolist()), strict=True):
            ruled.update([own.graph] * len(own.sums))
            assert own.broken(found[a:b]) is None
        judged.append((found == label_ids).sum())
        return judge(model, examples)

    monkeypatch.setattr(GraphModel, "held_out_scores", spy)
    monkeypatch.setattr("structsvm.tasks.common.selection.search.Search.longest", 2)
    # Rules of node 0 alone, and of nodes 0 and 4.
    rules = [[("or", [(v, str(own[v])) for v in ((0,), (0, 4))[i % 2]])] for i, own in enumerate(Y[:n])]
    labels = [[str(k) if v < n_known else None for v, k in enumerate(own)] for own in Y[:n]]
    model = GraphLabeler(method=method, interactions="potts", max_iter=1, random_state=0)
    model.fit(X[:n], labels, constraints=rules)
    table = model.validation_
    by_value = np.array(judged).reshape(-1, 3).sum(axis=1) / (n * n_known)
    np.testing.assert_allclose(np.sort(table["score"]), np.sort(by_value))
    assert len(ruled) == n_ruled


def test_completions_obey():
    """Nodes whose labels nobody knows; and parts of graphs keep the rules that speak of their nodes alone."""
    oracle = GraphOracle(3, 3, 1, interactions="full")
    free = oracle.as_graphs([(*x, np.ones((5, 1))) for x in X[:6]])
    graphs = replace(free, rules=all_rules(OWN[:6], [Form(5)] * 6, list("abc")))
    w = np.random.default_rng(2).normal(size=oracle.n_features)
    known = [np.where(np.arange(5) < 2, np.searchsorted(list("abc"), y), -1) for y in Y[:6]]
    found = completions(oracle.bind(graphs, known), w)[1].reshape(6, 5)
    assert (found != completions(oracle.bind(free, known), w)[1].reshape(6, 5)).any()
    for i, y in enumerate(found):
        decoder, obeying = oracle.decoder(graphs[i : i + 1]), [np.searchsorted(list("abc"), z) for z in ways(OWN[i])]
        scores = {tuple(z.tolist()): decoder.values(z, w)[0] for z in obeying if (z[:2] == known[i][:2]).all()}
        assert scores[tuple(y.tolist())] == pytest.approx(max(scores.values()))
    lost = [("exactly_one", [(2, "a"), (3, "a")]), ("or", [(2, "b")]), ("or", [(3, "b")])]
    part = [np.array(["b", "b", None, None, None], dtype=object), *Y]
    with pytest.raises(ValueError, match="graph 0: no labelling obeys all constraints"):
        GraphLabeler(C=0.1, random_state=0).fit([X[0], *X], part, constraints=[lost, *[None] * 24])
    graphs = replace(
        GraphOracle(3, 3).as_graphs(X[:2]),
        rules=all_rules([[("or", [(1, "a"), (4, "b")])], OWN[1]], [Form(5)] * 2, list("abc")),
    )
    kept, labels, _ = fragments(graphs, np.array([0, -1, 1, 2, 0, 2, 1, -1, -1, 1]), 1)
    assert kept.rules is not None and [len(own.sums) for own in kept.rules] == [0, 0]
    kept, labels, _ = fragments(graphs, np.array([-1, 0, 1, 2, 1, -1, -1, -1, -1, 1]), 1)
    assert kept.rules[0].sums[0].nodes.tolist() == [0, 3] and labels.tolist() == [0, 1, 2, 1, 1]


def test_refusals_of_training():
    broken = [None] * 3 + [[("or", [(0, "a")]), ("at_most_one", [(v, str(Y[3][0])) for v in range(5)])]] + [None] * 20
    broken[3] = [("or", [(0, str(Y[3][0]))]), ("or", [(0, "abc".replace(str(Y[3][0]), "")[0])])]
    for constraints, params, message in (
        (broken, {}, "graph 3: its labels do not obey constraint 1"),
        (OWN[:3], {}, "constraints must hold a list of constraints per graph, of 24"),
        (OWN, {"loss": "log"}, "constraints are for a margin"),
        (OWN, {"probability": True}, "constraints are for a margin"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphLabeler(C=0.1, random_state=0, **params).fit(X, Y, constraints=constraints)
    impossible = [None] * 5 + [[("exactly_one", [(0, k), (1, k)]) for k in "abc"]]
    with pytest.raises(ValueError, match="graph 5: no labelling obeys all constraints"):
        copy.deepcopy(trained()).set_params(n_jobs=2).predict(TESTS, constraints=impossible)
