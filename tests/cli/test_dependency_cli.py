"""structsvm train dependency, predict, evaluate, inspect, on CoNLL-U files."""

import json

import pytest
from command_line import run

import structsvm
from structsvm.datasets import make_dependency_trees
from structsvm.metrics import dependency_scores
from structsvm.structures.dependencies import DependencyTree, read_conllu, write_conllu


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dependency")
    write_conllu(make_dependency_trees(60, max_length=10, random_state=0), folder / "train")
    test = [
        DependencyTree(tree.words, (f"# sent_id = {k}",), ((0, "1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_"),))
        for k, tree in enumerate(make_dependency_trees(20, max_length=10, random_state=1))
    ]
    write_conllu(test, folder / "test")
    said, _ = run(folder, "train", "dependency", "train", "-m", "m", "-C", "0.05", "--probability")
    assert "60 sentences" in said and "projective" in said
    return folder


def test_predictions_fill_the_file(work):
    run(work, "predict", "m", "test", "-o", "out")
    test, found = read_conllu(work / "test"), read_conllu(work / "out")
    parser = structsvm.load(work / "m")
    assert [tree.arcs for tree in found] == parser.predict(test)
    assert [tree.with_arcs(true.arcs) for tree, true in zip(found, test)] == test
    scores = dependency_scores(test, found)
    evaluated = json.loads(run(work, "evaluate", "m", "test", "--json")[0])
    assert (evaluated["uas"], evaluated["las"], evaluated["clas"]) == (scores.uas, scores.las, scores.clas)
    assert f"LAS                  = {100 * scores.las:6.2f}" in run(work, "evaluate", "m", "test", "--plot", "p.svg")[0]
    assert (work / "p.svg").read_text().startswith("<?xml")


def test_the_best_trees_and_their_probabilities(work):
    ranked, _ = run(work, "predict", "m", "test", "-k", "3")
    assert ranked.count("# rank = 1\n") == 20 and ranked.count("# score = ") > 40
    sure, _ = run(work, "predict", "m", "test", "--confidence")
    assert sure.count("# probability = ") == 20 and sure.count("# sent_id = ") == 20
    pretty, _ = run(work, "predict", "m", "test", "--pretty")
    assert pretty.count(" root") == 20 and pretty.startswith("# sent_id = 0\n")


def test_what_is_in_a_model(work):
    said, _ = run(work, "inspect", "m", "--top", "2")
    assert said.startswith("task: dependency, projective trees")
    assert "templates of arcs\n  h.form h.xpos dist\n" in said
    said, _ = run(work, "train", "dependency", "train", "-m", "n", "--crossing", "--no-subtypes", "--max-iter", "1")
    assert "arcs may cross" in said
    assert "projective=False, subtypes=False" in run(work, "inspect", "n")[0]
    crossed = make_dependency_trees(100, crossing=0.04, random_state=0)
    write_conllu(crossed, work / "crossed")
    said, _ = run(work, "train", "dependency", "crossed", "-m", "n", "--max-iter", "1")
    assert " projective, but in the second stage arcs may cross (" in said
    assert "trees whose arcs may cross" in run(work, "inspect", "n")[0]
    said, _ = run(work, "train", "dependency", "crossed", "-m", "n", "--order", "1", "--max-iter", "1")
    assert " weights, projective (" in said


def test_templates_of_files(work):
    (work / "templates").write_text("h.upos m.upos dist\n")
    run(work, "train", "dependency", "train", "-m", "n", "--arc-templates", "templates", "--max-iter", "1", "-q")
    assert structsvm.load(work / "n").model_.oracle.templates.arcs == ("h.upos m.upos dist",)
    (work / "templates").write_text("h.word\n")
    err = run(work, "train", "dependency", "train", "-m", "n", "--arc-templates", "templates", status=1)[1]
    assert "no column 'word'" in err


def test_a_second_stage_is_not_lost(work):
    run(work, "train", "dependency", "train", "-m", "two", "-C", "0.1", "--max-iter", "1", "-q")
    again = ["train", "dependency", "train", "--warm-start", "two", "-m", "one", "-q"]
    assert "--order 1: two has a second stage" in run(work, *again, "--order", "1", status=2)[1]
    assert not (work / "one").exists()


@pytest.mark.parametrize("option", ["--arc-templates", "--label-templates", "--pair-templates"])
def test_files_without_templates(work, option):
    (work / "empty").write_text("\n# none\n")
    err = run(work, "train", "dependency", "train", "-m", "none", option, "empty", status=1)[1]
    assert err == "Error: empty: contains no templates\n" and not (work / "none").exists()


def test_bad_files(work):
    (work / "bad").write_text("1\ta\n")
    for args in (("train", "dependency", "bad", "-m", "x"), ("predict", "m", "bad"), ("evaluate", "m", "bad")):
        assert "bad:1: expected 10 columns" in run(work, *args, status=1)[1]
    (work / "raw").write_text("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    assert "raw:1: sentence 0: word 1 has no head" in run(work, "evaluate", "m", "raw", status=1)[1]
    (work / "circle").write_text("".join(f"{m}\ta\t_\t_\t_\t_\t{3 - m}\t_\t_\t_\n" for m in (1, 2)) + "\n")
    assert "circle:1: sentence 0: word 1 is below itself" in run(work, "evaluate", "m", "circle", status=1)[1]
    assert "missing: 'upos', 'xpos'" in run(work, "predict", "m", "raw", status=1)[1]  # its words have no tags
    (work / "tagged").write_text("1\ta\t_\tX\tx\t_\t_\t_\t_\t_\n\n")
    assert "\t0\troot\t" in run(work, "predict", "m", "tagged")[0]


@pytest.mark.filterwarnings("always::structsvm.AdviceWarning")
def test_treebanks_of_the_shared_tasks(tmp_path):
    """CoNLL-X with several roots, and CoNLL-2009: trained on, scored and parsed."""
    rows = [("cats", "N", 2, "SBJ"), ("sleep", "V", 0, "ROOT"), (".", "P", 0, "ROOT")]
    x = "".join(f"{m}\t{w}\t_\t{t}\t{t}\t_\t{h}\t{r}\t_\t_\n" for m, (w, t, h, r) in enumerate(rows, 1))
    of_2009 = "".join(
        f"{m}\t{w}\t_\t_\t_\t{t}\t_\t_\t{h}\t_\t{r}\t_\t_\t_\tA0\n" for m, (w, t, h, r) in enumerate(rows, 1)
    )
    (tmp_path / "x.conll").write_text(f"{x}\n" * 5)
    (tmp_path / "2009.conll").write_text(f"{of_2009}\n" * 5)
    for name in ("x.conll", "2009.conll"):
        out, err = run(tmp_path, "train", "dependency", name, "-m", "m", "-C", "1")
        assert "5 sentences, 15 words, 2 labels" in out and "warning: 5 of 5 sentences have several words" in err
        scores = json.loads(run(tmp_path, "evaluate", "m", "2009.conll", "--json")[0])
        assert scores["uas"] == pytest.approx(2 / 3) and scores["n_several_roots"] == 5
        assert "several roots in 5 sentences" in run(tmp_path, "evaluate", "m", "x.conll")[0]
        wanted = x.replace("\t0\tROOT\t_\t_\n", "\t2\tROOT\t_\t_\n").replace("V\tV\t_\t2", "V\tV\t_\t0")
        assert run(tmp_path, "predict", "m", "x.conll")[0] == f"{wanted}\n" * 5
        assert run(tmp_path, "predict", "m", "2009.conll")[0].count("\t") == 15 * 9


@pytest.mark.filterwarnings("always::structsvm.AdviceWarning")
def test_relations_that_training_never_saw_are_counted(work):
    trees = read_conllu(work / "test")
    write_conllu([tree.with_arcs([(head, "other:x") for head, _ in tree.arcs]) for tree in trees], work / "other")
    out, err = run(work, "evaluate", "m", "other")
    n = sum(len(tree) for tree in trees)
    assert f"{n} words have a label that training never saw ('other'): they count as wrong" in err
    assert "LAS                  =   0.00" in out
    assert "never saw" not in run(work, "evaluate", "m", "test")[1]
