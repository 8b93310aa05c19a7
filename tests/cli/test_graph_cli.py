"""The command line for labelled graphs."""

import json

import networkx as nx
import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_snakes
from structsvm.metrics import graph_scores
from structsvm.structures.graphs.files import read_graphs, write_graphs
from structsvm.tasks import GraphLabeler


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with graphs to train and to test on, and a model of them."""
    folder = tmp_path_factory.mktemp("graph")
    for seed, name in enumerate(("train", "test")):
        write_graphs(folder / name, *make_snakes(10, length=4, size=4, random_state=seed))
    run(folder, "train", "graph", "train", "--model", "m", "-C", "0.1", "--max-iter", 4, "--quiet")
    return folder


@pytest.mark.parametrize("options", [[], ["--interactions", "potts", "--method", "expansion"]], ids=str)
def test_train_is_the_estimator(data, tmp_path, options):
    out, err = run(data, "train", "graph", "train", "-m", tmp_path / "m", "-C", "0.1", "--max-iter", 4, *options)
    assert "10 graphs, 160 nodes, 240 edges, 45 features, 5 labels" in out and err == ""
    given = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}
    wanted = GraphLabeler(C=0.1, max_iter=4, random_state=0, **given).fit(
        *make_snakes(10, length=4, size=4, random_state=0)
    )
    ours = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(ours.model_.weights, wanted.model_.weights)
    assert repr(ours) == repr(wanted)


def test_predict_and_evaluate(data, tmp_path):
    out, _ = run(data, "predict", "m", "test")
    X, y = make_snakes(10, length=4, size=4, random_state=1)
    predicted = structsvm.load(data / "m").predict(X)
    assert [json.loads(line)["labels"] for line in out.splitlines()] == [own.tolist() for own in predicted]
    out, _ = run(data, "evaluate", "m", "test", "--json", "--plot", tmp_path / "p.png")
    scores, found = graph_scores(y, predicted), json.loads(out.splitlines()[0])
    assert found["accuracy"] == scores.accuracy and found["mean_jaccard"] == scores.mean_jaccard
    assert found["jaccard"] == {str(k): v for k, v in scores.jaccard.items()} and found["n_nodes"] == 160
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert f"accuracy {100 * scores.accuracy:.2f} %" in run(data, "evaluate", "m", "test")[0]
    for unknown in (-1, None):
        write_graphs(tmp_path / "part", X, [np.where(own == own.max(), unknown, own).tolist() for own in y])
        out, _ = run(data, "evaluate", "m", tmp_path / "part", "--json", "--plot", tmp_path / "p.png")
        part = json.loads(out.splitlines()[0])
        assert part["n_nodes"] == sum((own != own.max()).sum() for own in y) and "-1" not in part["jaccard"]
    write_graphs(tmp_path / "none", X[:1], [[-1] * 16])
    assert "its nodes have no label" in run(data, "evaluate", "m", tmp_path / "none", status=1)[1]


def test_inspect(data):
    out, _ = run(data, "inspect", "m", "--top", 2, "--label", "1")
    assert "task: graph, interactions full" in out and "45 features of nodes, 20 of edges" in out
    assert out.count("edge ") == 2 and "\n1  " in out and "\n2  " not in out
    assert "'7' is not one of the labels" in run(data, "inspect", "m", "--label", "7", status=1)[1]


def test_graphml_and_labels_of_another_name(tmp_path):
    rng = np.random.default_rng(0)
    graph = nx.path_graph(40)
    for v, x in enumerate(rng.normal(size=40).tolist()):
        graph.nodes[v].update(x=x, kind="warm" if x > 0.0 else "cold")
    del graph.nodes[3]["kind"]
    nx.write_graphml(graph, tmp_path / "g.graphml")
    args = ["-C", "0.1", "--label", "kind", "--probability", "--max-iter", 5]
    run(tmp_path, "train", "graph", "g.graphml", "-m", "m", *args)
    model = structsvm.load(tmp_path / "m")
    assert model.interactions == "symmetric" and model.classes_.tolist() == ["cold", "warm"]
    out, _ = run(tmp_path, "predict", "m", "g.graphml")
    labels = json.loads(out)["labels"]
    assert labels.keys() == {str(v) for v in range(40)}
    assert np.mean([labels[str(v)] == own["kind"] for v, own in graph.nodes(data=True) if v != 3]) > 0.9
    out, _ = run(tmp_path, "evaluate", "m", "g.graphml", "--json")
    assert json.loads(out)["n_nodes"] == 39
    write_graphs(tmp_path / "bare", [(np.zeros((2, 1)), [(0, 1)])])
    for args, message in [
        (["evaluate", "m", "bare"], "the model was|have no label|features"),
        (["predict", "m", "bare"], "edges|nodes have numeric"),
    ]:
        err = run(tmp_path, *args, status=1)[1]
        assert err.startswith("Error: ") and len(err.splitlines()) == 1, (err, message)


def test_the_k_best_and_labels_under_constraints(tmp_path):
    """By nodes' ids where they have such, by their numbers where not; what is no rule is named by file and line."""
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(4, 2)), [(0, 1), (1, 2), (2, 3)]) for _ in range(10)]
    write_graphs(tmp_path / "g", X, [np.where(rows[:, 0] > 0.0, "warm", "cold") for rows, _ in X])
    run(tmp_path, "train", "graph", "g", "-m", "m", "-C", "0.1", "--probability", "--quiet")
    model = structsvm.load(tmp_path / "m")
    out, _ = run(tmp_path, "predict", "m", "g", "--kbest", 2)
    for line, own in zip(out.splitlines(), model.predict_kbest(X, 2), strict=True):
        found = json.loads(line)
        assert [one["labels"] for one in found] == [labels.tolist() for labels, _ in own]
        assert [one["score"] for one in found] == pytest.approx([score for _, score in own], abs=1e-5)
    chances = json.loads(run(tmp_path, "predict", "m", "g", "-k", 2, "--confidence")[0].splitlines()[0])
    assert 0.0 < chances[1]["probability"] <= chances[0]["probability"] < 1.0
    rules = [["exactly_one", [[v, "warm"] for v in range(4)]]]
    (tmp_path / "rules").write_text(10 * (json.dumps(rules) + "\n"))
    out, _ = run(tmp_path, "predict", "m", "g", "--constraints", "rules")
    assert all(json.loads(line)["labels"].count("warm") == 1 for line in out.splitlines())
    accuracy = [
        json.loads(run(tmp_path, "evaluate", "m", "g", "--json", *more)[0])["accuracy"]
        for more in ((), ("--constraints", "rules"))
    ]
    true = [np.where(rows[:, 0] > 0.0, "warm", "cold").tolist() for rows, _ in X]
    found = [json.loads(line)["labels"] for line in out.splitlines()]
    assert accuracy[1] == pytest.approx(
        np.mean([a == b for x, y in zip(true, found, strict=True) for a, b in zip(x, y)])
    )
    assert accuracy[0] != accuracy[1]
    most = [["at_most_one", [[v, "warm"] for v in range(4) if X[0][0][v, 0] <= 0.0]]]
    (tmp_path / "known").write_text(json.dumps(most) + 9 * "\n[]")
    run(
        tmp_path,
        "train",
        "graph",
        "g",
        "-m",
        "ruled",
        "-C",
        "0.1",
        "--constraints",
        "known",
        "--max-iter",
        "2",
        "--quiet",
    )
    model = GraphLabeler(C=0.1, max_iter=2, random_state=0)
    model.fit(X, [np.where(rows[:, 0] > 0.0, "warm", "cold") for rows, _ in X], constraints=[most, *[None] * 9])
    np.testing.assert_array_equal(structsvm.load(tmp_path / "ruled").model_.weights, model.model_.weights)
    (tmp_path / "known").write_text("[]")
    err = run(tmp_path, "train", "graph", "g", "-m", "no", "--constraints", "known", status=1)[1]
    assert "constraints must hold a list of constraints per graph, of 10" in err
    (tmp_path / "named").write_text(
        json.dumps({"nodes": [{"id": c, "features": [-1.0, 0.0]} for c in "abc"], "edges": [["a", "b"], ["b", "c"]]})
    )
    (tmp_path / "one").write_text('[["or", [["c", "warm"]]]]')
    found = json.loads(run(tmp_path, "predict", "m", "named", "--constraints", "one")[0])["labels"]
    assert found == {"a": "cold", "b": "cold", "c": "warm"}
    for text, message in [
        ('[["or", [["d", "warm"]]]]', "bad:1: 'd' is no node"),
        ("[]\n[]", "bad:2: expected a list"),
        ('[["or", 3]]', "bad:1: expected a list"),
        ("{", "bad:1: expected a list"),
        ('[["some", [["c", "warm"]]]]', "graph 0, constraint 0: expected (kind, pairs)"),
    ]:
        (tmp_path / "bad").write_text(text)
        assert message in run(tmp_path, "predict", "m", "named", "--constraints", "bad", status=1)[1]
    err = run(tmp_path, "predict", "m", "g", "--constraints", "rules", "-k", "2", status=2)[1]
    assert "--constraints and --kbest do not go together" in err


def test_bad_files(tmp_path):
    (tmp_path / "g").write_text('{"nodes": [{"features": [1]}, {"features": [2]}], "edges": [[0, 2]]}\n')
    err = run(tmp_path, "train", "graph", "g", "-m", "m", status=1)[1]
    assert "g, line 1: edge 0 joins 0 and 2, and there is no such node" in err
    (tmp_path / "g").write_text('{"nodes": [{"features": [1]}, {"features": [2]}], "edges": []}\n')
    assert "no label of any node" in run(tmp_path, "train", "graph", "g", "-m", "m", status=1)[1]
    assert not (tmp_path / "m").exists() and read_graphs(tmp_path / "g").y == [[None, None]]


def test_demo(tmp_path):
    out, _ = run(tmp_path, "demo", "graph", "-o", "p.png")
    assert "no edges: " in out and "edges, cut: " in out and (tmp_path / "p.png").stat().st_size > 1000
