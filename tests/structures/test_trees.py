"""Trees, their text, and the treebank's conventions."""

import copy
import gzip
import os
import pickle
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm.structures.trees import (
    Tree,
    TreeFileError,
    after_comments,
    clean_tree,
    merge_repeats,
    parse_tree,
    parse_trees,
    read_trees,
    write_trees,
)

labels = st.text("ABC-=:", max_size=3)
words = st.text("abc()é-", min_size=1, max_size=4)
trees = st.recursive(
    st.builds(Tree, labels.filter(bool), words.map(lambda w: (w,))),
    lambda below: st.builds(Tree, labels.filter(bool), st.lists(below | words, min_size=1, max_size=3)),
    max_leaves=8,
)


def escaped(tree):
    """The text form of brackets within words."""
    write = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
    return tree.map(
        lambda node, kids: Tree(node.label, [k.translate(write) if isinstance(k, str) else k for k in kids])
    )


@given(trees)
def test_text_and_back(tree):
    assert parse_tree(str(tree)) == escaped(tree)
    assert parse_tree(tree.pretty()) == escaped(tree)
    assert pickle.loads(pickle.dumps(tree)) == tree and hash(pickle.loads(pickle.dumps(tree))) == hash(tree)
    assert copy.deepcopy(tree) == tree and tree != Tree("X", (tree,))
    spans = tree.spans()
    assert [label for label, _, _ in spans] == [node.label for node in tree.preorder()]
    for node, (_, i, j) in zip(tree.preorder(), spans, strict=True):
        assert node.leaves() == tree.leaves()[i:j]


def test_files(tmp_path):
    found = [parse_tree("(TOP (S (NN a) (VB b)))"), parse_tree("( (S (NN é)))")]
    write_trees(tmp_path / "t.mrg", found)
    assert read_trees(tmp_path / "t.mrg") == found
    (tmp_path / "t.mrg.gz").write_bytes(gzip.compress("\n\n".join(t.pretty() for t in found).encode()))
    assert read_trees(tmp_path / "t.mrg.gz") == found
    assert read_trees(["(S (A a)) (S\n", "(B b))\n"]) == [parse_tree("(S (A a))"), parse_tree("(S (B b))")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (A a))\n(S (A a)\n", "t.mrg:2: the tree that begins here lacks 1 closing brackets"),
        ("(S (A a))\n(S (A a)))\n", "t.mrg:2: a closing bracket without an opening one"),
        ("(S a)\n()\n", r"t.mrg:2: an empty tree, \(\)"),
        ("(S\n (NP)\n b)", r"t.mrg:2: a node without children, \(NP\)"),
        ("(S a)\n\nb (S a)", "t.mrg:3: 'b' outside of brackets"),
        ("", "t.mrg: no trees .the file is empty"),
        ("\n \n", "t.mrg: no trees .only blank lines"),
        ("(S a)\n(S \udcff)", "t.mrg:2: bytes that are not UTF-8"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "t.mrg"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TreeFileError, match=message):
        read_trees(path)
    path.with_suffix(".gz").write_bytes(b"\x1f\x8b nonsense")
    with pytest.raises(TreeFileError, match="damaged gzip data"):
        read_trees(path.with_suffix(".gz"))


@pytest.mark.parametrize(
    ("label", "children", "message"),
    [("A B", ["a"], "label"), ("A(", ["a"], "label"), ("A", [], "must have children"), ("A", [""], "children"),
     ("A", ["a b"], "children"), ("A", [3], "children"), (3, ["a"], "label")],
)  # fmt: skip
def test_bad_nodes(label, children, message):
    with pytest.raises(ValueError, match=message):
        Tree(label, children)


def test_trees_do_not_change():
    tree = parse_tree("(A a)")
    with pytest.raises(AttributeError, match="immutable"):
        tree.label = "B"
    with pytest.raises(AttributeError, match="immutable"):
        del tree.children


def test_deep_trees():
    depth = 20_000
    for text in ("(A " * depth + "x" + ")" * depth, "(A (B b) " * depth + "x" + ")" * depth):
        tree = parse_tree(text)
        assert str(tree) == text.replace(" )", ")")
        assert pickle.loads(pickle.dumps(tree)) == tree
        assert len(tree.spans()) == len(list(tree.preorder()))
        assert clean_tree(tree) is not None


def test_treebank_conventions():
    raw = parse_tree(
        "( (S (NP-SBJ-1 (NNP Mr.) (NNP X)) (VP (VBZ =) (S (NP-SBJ (-NONE- *-1)) (VP (TO to) (VP (VB go)))))"
        " (-LRB- -LRB-) (ADVP=2 (ADVP (RB x))) (. .)))"
    )
    assert str(clean_tree(raw)) == (
        "(TOP (S (NP (NNP Mr.) (NNP X)) (VP (VBZ =) (S (VP (TO to) (VP (VB go))))) (-LRB- -LRB-) (ADVP (RB x)) (. .)))"
    )
    assert clean_tree(parse_tree("(S (-NONE- *))")) is None
    assert str(merge_repeats(parse_tree("(A (B (A (A a))))"))) == "(A a)"
    assert str(merge_repeats(parse_tree("(A (B (A a) (A b)))"))) == "(A (B (A a) (A b)))"
    same = parse_tree("(A (B (A a) (A b)))")
    assert merge_repeats(same) is same and clean_tree(same) is same


@pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA does not name a data folder")
def test_the_treebank():
    folder = Path(os.environ["STRUCTSVM_DATA"])
    pairs = [read_trees(folder / "wsj_sample" / f"{kind}.test.mrg.gz") for kind in ("trees", "clean")]
    assert [clean_tree(tree) for tree in pairs[0]] == pairs[1]


class OtherTree(list):
    """As much of nltk.Tree as is looked at."""

    def __init__(self, label, children):
        super().__init__(children)
        self._label = label

    def label(self):
        return self._label


def test_from_nltk():
    other = OtherTree("S", [OtherTree("NP", ["a", OtherTree("N", ["b"])]), "c"])
    assert Tree.from_nltk(other) == parse_tree("(S (NP a (N b)) c)")


def test_to_nltk():
    nltk = pytest.importorskip("nltk")
    tree = parse_tree("(S (NP a (N b)) c)")
    assert tree.to_nltk() == nltk.Tree.fromstring(str(tree))
    assert Tree.from_nltk(tree.to_nltk()) == tree


def test_a_picture_for_notebooks():
    tree = parse_tree("(S (NP (DT the) (NN <cat>)) (VP (VBZ sleeps)))")
    picture = ET.fromstring(tree._repr_svg_())
    name = "{http://www.w3.org/2000/svg}"
    spots = {text.text: (float(text.get("x")), float(text.get("y"))) for text in picture.iter(f"{name}text")}
    assert list(spots) == ["S", "NP", "DT", "the", "NN", "<cat>", "VP", "VBZ", "sleeps"]
    # Words side by side at the bottom, a node above the middle of its children.
    assert spots["the"][0] < spots["<cat>"][0] < spots["sleeps"][0]
    assert spots["the"][1] == spots["sleeps"][1] > spots["DT"][1] > spots["NP"][1] > spots["S"][1]
    assert spots["DT"][0] < spots["NP"][0] < spots["NN"][0]
    (path,) = picture.iter(f"{name}path")
    assert path.get("d").count("L") == 8


def test_comments_between_trees():
    text = """# head
%% of ( a ) treebank
*x*x*x* text *x*

(S (NP a)
   (# #))
  ; (S (NP no tree))
( (S b)) (S c)
# the end"""
    assert [str(tree) for tree in parse_trees(text)] == ["(S (NP a) (# #))", "( (S b))", "(S c)"]
    with pytest.raises(TreeFileError, match="<text>:2: '#' outside of brackets"):
        list(parse_trees("# a comment\n(S a) # no comment\n"))
    assert after_comments("# a\n\n% b\n(S c)\n# d\n") == "(S c)\n# d\n"
