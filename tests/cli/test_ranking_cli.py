"""The command line for rankings, on files with qid and on files with the sizes of queries beside them."""

import json
import re

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_rankings
from structsvm.features.svmlight import write_svmlight
from structsvm.metrics import ranking_scores
from structsvm.structures.queries import read_queries
from structsvm.tasks import Ranker


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with queries to train and to test on, with qid and with sizes ("plain"), and a model of them."""
    folder = tmp_path_factory.mktemp("ranking")
    for seed, name in enumerate(("train", "test")):
        X, y, qid = make_rankings(40, 6, max_rows=8, random_state=seed)
        write_svmlight(folder / name, X, y, qid=qid)
        write_svmlight(folder / f"{name}.plain", X, y)
        sizes = np.bincount(qid)[1:]
        (folder / f"{name}.plain.query").write_text("".join(f"{size}\n" for size in sizes))
    run(folder, "train", "ranking", "train", "--model", "m", "-C", "0.3", "--quiet")
    return folder


def rows(path):
    X, y, qid = read_queries(path)
    return X.toarray(), y, qid


@pytest.mark.parametrize("options", [["--loss", "ndcg", "--k", "3"], ["--loss", "pairs"], ["--loss", "map"]], ids=str)
def test_train_is_the_estimator(data, tmp_path, options):
    args = [*options, "-C", "0.3", "--max-iter", "5"]
    out, err = run(data, "train", "ranking", "train", "-m", tmp_path / "m", *args)
    X, y, qid = rows(data / "train")
    assert f"40 queries, {len(y)} rows, 6 features, grades from 0 to 4" in out and "gap" in out and err == ""
    ours, k = structsvm.load(tmp_path / "m"), 3 if "--k" in options else None
    wanted = Ranker(options[1], k=k, C=0.3, max_iter=5, random_state=0).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ours.coef_, wanted.coef_)
    assert repr(ours) == repr(wanted)


def test_sparse_rows_and_a_choice_of_C(data, tmp_path):
    """Another file has ten times the columns, most of them empty; C is chosen, and a line says how."""
    X, y, qid = rows(data / "train")
    wide = np.zeros((len(X), 60))
    wide[:, ::10] = X
    write_svmlight(tmp_path / "wide", wide, y.astype(int), qid=qid)
    out, err = run(tmp_path, "train", "ranking", "wide", "-m", "m")
    assert re.search(r"C = \S+ \(of \S+ to \S+; held-out NDCG \d+\.\d \+- \d+\.\d, next best ", out) and err == ""
    read = read_queries(tmp_path / "wide")
    wanted = Ranker(random_state=0).fit(*read[:2], qid=read[2])
    np.testing.assert_array_equal(structsvm.load(tmp_path / "m").coef_, wanted.coef_)
    # Rows to predict for may have fewer columns.
    scores = run(tmp_path, "predict", "m", "-", text="0 11:1\n0 2:1\n")[0].split()
    assert [float(score) for score in scores] == pytest.approx([wanted.coef_[10], 0.0], rel=1e-8)


def test_predict_and_evaluate(data, tmp_path):
    X, y, qid = rows(data / "test")
    scores = structsvm.load(data / "m").predict(X)
    out, _ = run(data, "predict", "m", "test")
    np.testing.assert_allclose([float(line) for line in out.splitlines()], scores, rtol=1e-6)
    assert run(data, "predict", "m", "test.plain")[0] == out
    run(data, "predict", "m", "-", "-o", tmp_path / "s", text=(data / "test").read_text())
    assert (tmp_path / "s").read_text() == out
    found, _ = run(data, "evaluate", "m", "test", "--json", "--plot", tmp_path / "c.png")
    wanted = ranking_scores(y, scores, qid=qid)
    assert json.loads(found) == pytest.approx(
        {"ndcg": wanted.ndcg, "map": wanted.map, "pairs": wanted.pairs, "n_queries": wanted.n_queries,
         **{f"ndcg@{k}": wanted.ndcg_at[k] for k in (1, 3, 5)}, "n_rows": len(y)}
    )  # fmt: skip
    assert wanted.pairs > 0.6 and (tmp_path / "c.png").stat().st_size > 1000
    text, _ = run(data, "evaluate", "m", "-", text=(data / "test").read_text())
    assert f"NDCG {100 * wanted.ndcg:.2f} % (at 1 {100 * wanted.ndcg_at[1]:.2f}, at 3 " in text
    assert f"ordered pairs {100 * wanted.pairs:.2f} %" in text


def test_sizes_of_queries(data, tmp_path):
    train = ["train", "ranking", "-C", "0.3", "-q", "-m", tmp_path / "m"]
    for args in (["train.plain"], ["train.plain", "--query", "train.plain.query"]):
        run(data, *train, *args)
        np.testing.assert_array_equal(structsvm.load(tmp_path / "m").coef_, structsvm.load(data / "m").coef_)
    scores, _ = run(data, "evaluate", "m", "test", "--json")
    assert run(data, "evaluate", "m", "test.plain", "--json")[0] == scores
    text = (data / "test.plain").read_text()
    assert run(data, "evaluate", "m", "-", "--query", "test.plain.query", "--json", text=text)[0] == scores
    # A file beside one with qid is not looked at.
    (tmp_path / "t").write_text((data / "test").read_text())
    (tmp_path / "t.query").write_text("1\n")
    assert run(data, "evaluate", "m", tmp_path / "t", "--json")[0] == scores
    before = (data / "train.plain.query").read_text()
    err = run(data, "train", "ranking", "train.plain", "-m", "train.plain.query", status=2)[1]
    assert "'--query' are the same file" in err and (data / "train.plain.query").read_text() == before


def test_inspect_and_demo(data, tmp_path):
    out, _ = run(data, "inspect", "m", "--top", "2", "--plot", tmp_path / "h.png")
    w = structsvm.load(data / "m").coef_
    lines = out.splitlines()
    assert lines[:3] == ["task: ranking, loss ndcg", "parameters: C=0.3", "6 features, 6 weights that are not 0"]
    best = np.argsort(-w)[:2]
    assert lines[-5] == "  + " + "  ".join(f"feature {j + 1} {w[j]:.4g}" for j in best)
    X, y, qid = rows(data / "train")
    structsvm.load(data / "m").set_params(loss="ndcg", k=2).fit(X, y, qid=qid).save(tmp_path / "m")
    assert "task: ranking, loss ndcg of the first 2 places" in run(data, "inspect", tmp_path / "m")[0]
    assert "this one ranks rows" in run(data, "inspect", "m", "--label", "x", status=1)[1]
    out, _ = run(data, "demo", "ranking", "-o", tmp_path / "d.png")
    assert all(f"{loss}: " in out for loss in ("pairs", "map", "ndcg")) and (tmp_path / "d.png").stat().st_size > 1000


def test_refusals(data, tmp_path):
    (tmp_path / "bad").write_text("1 qid:2 1:1\n0 qid:1 1:1\n")
    (tmp_path / "none").write_text("1 1:1\n0 1:1\n")
    (tmp_path / "equal").write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    (tmp_path / "empty").write_text("1 qid:1\n0 qid:1\n")
    (tmp_path / "sizes").write_text("3\n")
    train = ["train", "ranking", "-m", tmp_path / "x"]
    for args, message in [
        ([*train, tmp_path / "bad"], "bad, line 2: qid 1 after 2"),
        ([*train, tmp_path / "none"], f"no qid; sizes of queries go into {tmp_path / 'none'}.query"),
        ([*train, tmp_path / "none", "--query", tmp_path / "sizes"], "sizes: the sizes add up to 3 rows"),
        ([*train, tmp_path / "bad", "--query", tmp_path / "none"], "bad, line 2"),
        ([*train, tmp_path / "equal"], "nothing can be learnt: in each query all rows have the same grade"),
        ([*train, tmp_path / "empty"], "empty: the rows have no features"),
        ([*train, "train", "--warm-start", "m", "--loss", "map"], "another 'loss'"),
        (["evaluate", "m", tmp_path / "equal"], "there is nothing to compare with"),
        (["evaluate", "m", tmp_path / "none"], "its lines have no qid"),
        (["predict", "m", "test", "-k", "2"], "this one gives each row a score"),
    ]:
        assert message in run(data, *args, status=1)[1]
    for options, message in [
        (["--loss", "map", "--k", "3"], "--k belongs to loss='ndcg'"),
        (["-C", "-1"], "'-C': '-1' is not auto or a float in the range"),
    ]:
        assert message in run(data, *train, "train", *options, status=2)[1]
    (tmp_path / "-.query").write_text("1\n")  # beside standard input there is no file
    assert "its lines have no qid" in run(tmp_path, "evaluate", data / "m", "-", text="1 1:1\n", status=1)[1]
    assert "models that have probabilities" in run(data, "predict", "m", "test", "--confidence", status=2)[1]
    write_svmlight(tmp_path / "b", [[1.0], [2.0]], [1, 2])
    run(tmp_path, "train", "binary", "b", "-m", "b.m", "-C", "1", "--gamma", "1", "-q")
    assert "--query is for models that rank" in run(tmp_path, "evaluate", "b.m", "b", "--query", "sizes", status=2)[1]
    assert not (tmp_path / "x").exists()


@pytest.mark.filterwarnings("always::structsvm.AdviceWarning")  # the command prints them
def test_places_of_rows_are_asked_about(tmp_path):
    lines = [f"{1 + (3 * q + 2 * k) % 5} qid:{q} 1:{k} 2:{q + k * k}" for q in range(4) for k in range(5)]
    (tmp_path / "places").write_text("\n".join(lines) + "\n")
    _, err = run(tmp_path, "train", "ranking", "places", "-m", "m", "-C", "1")
    assert "each of the 4 queries of n rows has the grades 1 .. n once" in err
