"""Every task's `train` continues from a model: on the same file its run, on others from what it has learnt."""

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm.cli.multiclass import clouds
from structsvm.datasets import (
    make_alignment,
    make_ambig_house,
    make_banana,
    make_dependency_trees,
    make_rankings,
    make_snakes,
    make_taxonomy,
    make_treebank,
    write_alignments,
    write_documents,
)
from structsvm.features.svmlight import write_svmlight
from structsvm.structures.bag_lines import write_bags
from structsvm.structures.dependencies import write_conllu
from structsvm.structures.graphs.files import write_graphs
from structsvm.structures.trees import write_trees


def write_files(folder, task):
    """Write a training file ("a") and another one of the same structure ("b"); returns further options."""
    for seed, name in enumerate("ab"):
        if task == "binary":
            write_svmlight(folder / name, *make_banana(200, random_state=seed))
        elif task == "multiclass":
            write_svmlight(folder / name, *clouds(200, 0, fresh=bool(seed)))
        elif task == "ranking":
            X, y, qid = make_rankings(30, random_state=seed)
            write_svmlight(folder / name, X, y, qid=qid)
        elif task == "semantics":
            house = make_ambig_house(100, 1, random_state=seed)
            write_bags(folder / name, house.sentences, house.bags)
        elif task == "alignment":
            write_alignments(folder / name, make_alignment(10, divergence=0.5, random_state=seed).y)
        elif task == "dependency":
            write_conllu(make_dependency_trees(60, random_state=0)[30 * seed :], folder / name)
        elif task == "graph":
            X, y = make_snakes(6, length=4, size=4, random_state=seed)
            write_graphs(folder / name, X, y)
        elif task == "grammar":
            write_trees(folder / name, make_treebank(60, random_state=0)[30 * seed :])
        else:
            X, y, taxonomy = make_taxonomy(200, n_leaves=12, depth=2, n_words=300, random_state=seed)
            write_documents(folder / name, X, y, taxonomy, folder / "edges")
    return ["--taxonomy", "edges"] if task == "taxonomy" else []


def learnt(path):
    """The weights in a model file, as one array."""
    model = structsvm.load(path).model_
    for name in ("machine", "symbols"):
        model = getattr(model, name, model)
    arrays = [model.coef, model.intercept] if hasattr(model, "coef") else [model.weights]
    return np.concatenate([np.ravel(a.toarray() if hasattr(a, "toarray") else a) for a in arrays])


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("binary", ["--machine", "huller"]),
        ("binary", ["--machine", "sgdqn", "--t0", "1e4"]),
        ("multiclass", ["--balanced", "-C", "3"]),
        ("alignment", ["--mode", "global"]),
        ("dependency", ["-C", "0.001"]),
        ("grammar", ["-C", "0.001"]),
        ("graph", ["-C", "0.1", "--interactions", "potts"]),
        ("ranking", ["--k", "3", "-C", "0.3"]),
        ("semantics", []),
        ("semantics", ["--method", "ospas", "--ngrams", "2"]),
        ("taxonomy", ["--loss", "path"]),
        ("taxonomy", ["--kernel", "rbf", "--gamma", "0.5"]),
    ],
)
def test_warm_start(tmp_path, task, options):
    options = [*write_files(tmp_path, task), *options]
    train = ["train", task, "a", "--quiet", "--max-iter"]
    run(tmp_path, *train, 2, *options, "-m", "whole")
    run(tmp_path, *train, 1, *options, "-m", "part", "--training-state")
    run(tmp_path, *train, 1, "--warm-start", "part", "-m", "resumed")
    np.testing.assert_array_equal(learnt(tmp_path / "resumed"), learnt(tmp_path / "whole"))
    assert structsvm.load(tmp_path / "resumed").n_iter_ == 2
    assert repr(structsvm.load(tmp_path / "resumed")) == repr(structsvm.load(tmp_path / "part"))
    run(tmp_path, "train", task, "b", "-q", "--max-iter", 1, "--warm-start", "part", "-m", "more")
    run(tmp_path, "train", task, "b", "-q", "--max-iter", 1, *options, "-m", "fresh")
    more, fresh, part = (learnt(tmp_path / name) for name in ("more", "fresh", "part"))
    assert more.shape != fresh.shape or (more != fresh).any()
    assert more.shape != part.shape or (more != part).any()


def test_refusals(tmp_path):
    write_files(tmp_path, "binary")
    run(tmp_path, "train", "binary", "a", "-q", "-m", "m")
    (tmp_path / "c").write_text("7 1:1\n1 1:2\n")
    train = ["train", "binary", "--warm-start", "m", "-m", "x"]
    for args, message in [
        (["a", "--machine", "huller"], "m: a model of LaSVMClassifier, which --machine huller cannot continue"),
        (["a", "--gamma", "3"], "training began with another kernel"),
        (["c"], "y has the label 7"),
    ]:
        assert message in run(tmp_path, *train, *args, status=1)[1]
    err = run(tmp_path, "train", "multiclass", "a", "--warm-start", "m", "-m", "x", status=1)[1]
    assert "m: a model of LaSVMClassifier, which this command cannot continue" in err
    write_files(tmp_path, "taxonomy")
    run(tmp_path, "train", "taxonomy", "a", "-q", "-m", "t")
    err = run(tmp_path, "train", "taxonomy", "a", "--warm-start", "t", "--ngrams", "2", "-m", "x", status=2)[1]
    assert "have no meaning with --warm-start" in err
    write_files(tmp_path, "grammar")
    run(tmp_path, "train", "grammar", "a", "-q", "--pcfg", "-m", "g")
    err = run(tmp_path, "train", "grammar", "a", "--warm-start", "g", "--pcfg", "-m", "x", status=2)[1]
    assert "--warm-start has no effect with --pcfg" in err
    assert not (tmp_path / "x").exists()
    run(tmp_path, "train", "grammar", "a", "-q", "--warm-start", "g", "-C", "1", "-m", "x")
    run(tmp_path, "train", "grammar", "a", "-q", "--warm-start", "x", "--loss", "f1", "-m", "y")
    first, second = structsvm.load(tmp_path / "x"), structsvm.load(tmp_path / "y")
    assert first.n_iter_ == 6 and (second.loss, second.C) == ("f1", 1.0)


def test_formulations_of_grammars(tmp_path):
    """They make the solver an object, to which the options of solvers go, also those that continue a model."""
    write_files(tmp_path, "grammar")
    slack = ["train", "grammar", "a", "-q", "--rescaling", "slack"]
    for options, message in [
        ([], "-C is chosen for margin rescaling and a linear penalty alone: it has to be given"),
        (["-C", 1, "--solver", "perceptron"], "Perceptron has no 'rescaling'"),
        (["-C", 1, "--solver", "frank_wolfe", "--penalty", "quadratic"], "FrankWolfe has no 'penalty'"),
    ]:
        assert message in run(tmp_path, *slack, *options, "-m", "m", status=2)[1]
    run(tmp_path, *slack, "-C", 0.5, "--max-iter", 1, "-m", "part", "--training-state")
    run(tmp_path, *slack, "-C", 0.5, "--max-iter", 2, "-m", "whole")
    continuing = ["train", "grammar", "a", "-q", "--warm-start", "part"]
    run(tmp_path, *continuing, "-m", "resumed")
    run(tmp_path, *continuing, "-C", 0.25, "--checkpoint", "c", "-m", "other")
    part, whole, resumed, other = (structsvm.load(tmp_path / name) for name in ("part", "whole", "resumed", "other"))
    assert np.array_equal(resumed.coef_, whole.coef_) and (part.C, part.random_state) == ("auto", None)
    solvers = [repr(model.solver) for model in (part, whole, resumed, other)]
    assert solvers == [f"LaRank(C={C}, rescaling='slack', max_iter={n}, random_state=0)"
                       for C, n in ((0.5, 1), (0.5, 2), (0.5, 1), (0.25, 1))]  # fmt: skip
    run(tmp_path, "train", "grammar", "a", "-q", "--rescaling", "margin", "-m", "usual")
    assert structsvm.load(tmp_path / "usual").solver == "larank"
