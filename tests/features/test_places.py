"""Errors of training and scoring name file and line of an example that a reader has read, else its index."""

import json

import command_line
import pytest

from structsvm.features.columns import read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.inputs.places import PlacedList, located, place_of
from structsvm.features.templates import TemplateError
from structsvm.structures.dependencies import parse_conllu, read_conllu
from structsvm.structures.trees import read_trees
from structsvm.tasks import DependencyParser, GrammarParser, SequenceLabeler

OTHERS = 8 * "\t_"


def conllu(*sentences):
    """Sentences of two words with ids, a multiword token before them, from their heads and labels."""
    return "".join(
        f"# sent_id = s{k}\n# text = a b\n1-2\tab{OTHERS}\n"
        + "".join(f"{m}\t{f}\t{f}\tX\tx\t_\t{h}\t{label}\t_\t_\n" for m, f, (h, label) in zip("12", "ab", arcs))
        + "\n"
        for k, arcs in enumerate(sentences, start=1)
    )


GOOD = (2, "l"), (0, "root")
# The second sentence of a file, and the line of it that is wrong.
BROKEN = {
    "a cycle": (((2, "l"), (1, "l")), 10, "word 1 is below itself"),
    "an unknown label": (((2, "l"), (0, "new")), 11, "word 2 has the label 'new'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_dependencies(name, tmp_path):
    arcs, line, message = BROKEN[name]
    path = tmp_path / "trees.conllu"
    path.write_text(conllu(GOOD, arcs))
    wanted = rf"^{path}:{line} \(sent_id s2\): sentence 1: {message}"
    parser = DependencyParser(C=0.1, warm_start=True, random_state=0).fit(parse_conllu(conllu(GOOD, GOOD)))
    trees = read_conllu(path)
    with pytest.raises(ValueError, match=wanted):
        parser.fit(trees)
    with pytest.raises(ValueError, match=wanted.replace("sentence 1", "sentence 0")):
        parser.fit(trees[1:])  # a tree keeps its place
    with pytest.raises(ValueError, match=f"^sentence 1: {message}"):
        parser.fit([tree.words for tree in trees], [tree.arcs for tree in trees])
    if name != "an unknown label":
        with pytest.raises(ValueError, match=wanted):
            parser.score(trees)
        _, error = command_line.run(tmp_path, "train", "dependency", path, "--model", tmp_path / "model", status=1)
        assert f"{path}:{line} (sent_id s2): sentence 1: {message}" in error


def test_trees(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("(S (NP (N a)) (VP (V b)))\n\n(S\n (NP (N a)) (XP (V b)))\n")
    trees = read_trees(path)
    assert trees.places == [f"{path}:1", f"{path}:3"]
    parser = GrammarParser(C=1.0, warm_start=True, random_state=0).fit(trees[:1])
    with pytest.raises(ValueError, match=f"^{path}:3: tree 1: the grammar has no rule"):
        parser.fit(trees)
    with pytest.raises(ValueError, match=r"^tree 0: the grammar has no rule"):
        parser.fit(trees[1:])


def test_columns(tmp_path):
    path = tmp_path / "tokens.txt"
    path.write_text("\n\na X B-P\nb Y I-P\n \n\na X O\nb Y I-P\n")
    columns = read_columns(path)
    X, y = columns.drop_last(), columns.select([-1])
    labeler = SequenceLabeler(C=1.0, constraints="bio", random_state=0)
    with pytest.raises(
        ValueError, match=f"^{path}:8: sequence 1: the constraints do not allow its label 'I-P' at token 1"
    ):
        labeler.fit(X, y)
    with pytest.raises(ValueError, match=r"^sequence 0: the constraints"):
        labeler.fit(X[1:], y[1:])  # no longer those of the file
    known = SequenceLabeler(C=1.0, warm_start=True, random_state=0).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=f"^{path}:7: sequence 1, token 0: label 'O' is not one of the model's"):
        known.fit(X, y)
    path.write_text("other\n\nother\nother\n")
    assert X.place_of(1, 1) is None
    path.unlink()
    assert X.place_of(1, 1) is None and columns.is_whole and not columns[:1].is_whole


@pytest.mark.parametrize("kind", ["fit", "command"])
def test_graphs_and_templates_of_commands(kind, tmp_path):
    if kind == "fit":
        path = tmp_path / "templates"
        path.write_text("# words\n\nU00:%x[0,0]\nU01:%x[0,9]\n")
        with pytest.raises(TemplateError, match=rf"^{path}:4: 'U01:%x\[0,9\]': column 9 of data with 1 columns"):
            FeatureEncoder(path).fit([["a", "b"]])
        return
    (tmp_path / "trees.conllu").write_text(conllu(GOOD, GOOD))
    (tmp_path / "arcs").write_text("# arcs\nh.form m.form\n\nh.word  m.form\n")
    options = "--model", tmp_path / "model", "--arc-templates", tmp_path / "arcs"
    _, error = command_line.run(tmp_path, "train", "dependency", tmp_path / "trees.conllu", *options, status=1)
    assert f"{tmp_path / 'arcs'}:4: 'h.word  m.form': no column 'word'" in error
    nodes = [{"features": [1.0], "label": label} for label in "ab"]
    graphs = [json.dumps({"nodes": nodes, "edges": edges}) for edges in ([[0, 1]], [[1, 0]], [[0, 1], [1, 0]])]
    (tmp_path / "graphs.jsonl").write_text("\n".join(graphs))
    _, error = command_line.run(
        tmp_path, "train", "graph", tmp_path / "graphs.jsonl", "--model", tmp_path / "model", status=1
    )
    assert "graphs.jsonl, line 3" in error


def test_an_error_without_an_index_stays_as_it_is():
    for text in ("no sentences", "C must be positive", "sentence 9: beyond"):
        with pytest.raises(ValueError, match=f"^{text}$"), located(PlacedList(["a"], ["f:1"])):
            raise ValueError(text)
    assert place_of([1, 2], 0) is None and place_of(PlacedList("ab", ["f:1", "f:2"]), 1) == "f:2"
