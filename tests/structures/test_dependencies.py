"""CoNLL-U in and out, and what is refused; crossing arcs; trees as text."""

import gzip
from itertools import product
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from dependency_reference import all_heads

from structsvm.datasets import make_dependency_trees
from structsvm.structures.dependencies import (
    ConlluError,
    DependencyTree,
    Word,
    crossing_arcs,
    parse_conllu,
    read_conllu,
    with_one_root,
    write_conllu,
)

TEXT = """# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tvamos\tir\tVERB\t_\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\tCase=Acc\t1\tobj\t_\t_
2.1\t\u2205\t_\tX\t_\t_\t_\t_\t1:dep\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl:arg\t1:obl\t_

# newpar
0.1\twho\t_\tX\t_\t_\t_\t_\t_\t_
1\t\u6d77 \u3067\t_\t_\t_\t_\t_\t_\t_\t_
1.1\tx\t_\tX\t_\t_\t_\t_\t_\t_

"""


def test_what_is_read_comes_out_as_it_was(tmp_path):
    trees = parse_conllu(TEXT)
    assert "".join(tree.to_conllu() for tree in trees) == TEXT
    assert trees[0].arcs == [(0, "root"), (1, "obj"), (5, "case"), (5, "det"), (1, "obl:arg")]
    assert trees[1].arcs == [(-1, "_")]
    assert trees[0].words[0] == Word("vamos", "ir", "VERB", "_", "Mood=Imp", 0, "root", "_", "_")
    write_conllu(trees, tmp_path / "a")
    assert (tmp_path / "a").read_text(encoding="utf-8") == TEXT
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_conllu(tmp_path / "a.gz") == trees
    assert parse_conllu("\ufeff" + TEXT.replace("\n", "\r\n").rstrip()) == trees
    changed = trees[0].with_arcs([(2, "a"), (0, "root"), (2, "b"), (2, "c"), (2, "d")])
    assert changed.heads == [2, 0, 2, 2, 2] and changed.others == trees[0].others
    with pytest.raises(ValueError, match="2 arcs for 5 words"):
        trees[0].with_arcs([(0, "root")] * 2)


@pytest.mark.parametrize("form", ["a\tb", "a\nb", "a\r"])
def test_what_conllu_cannot_hold_is_not_written(form):
    tree = DependencyTree((Word("the", head=2, deprel="det"), Word(form, head=0, deprel="root")))
    with pytest.raises(ValueError, match="word 2 has a tab or a line break in a column"):
        tree.to_conllu()


def row(*columns):
    return "\t".join(str(column) for column in columns) + "\n"


def word(k, head, form="w"):
    return row(k, form, "_", "_", "_", "_", head, "_", "_", "_")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"f: no sentences"),
        ("# only\n\n", r"f: no sentences"),
        ("1\ta\n", r"f:1: expected 10 columns between tabs, got 2"),
        ("# c\n" + word(1, 0) + word(3, 1), r"f:3: expected the id 2, got '3'"),
        (word(2, 0), r"f:1: expected the id 1, got '2'"),
        (word("1-1", 0), r"f:1: expected the id 1, got '1-1'"),
        (word(1, 0) + word("3.1", "_"), r"f:2: expected the id 2"),
        (row("1-5", *"abcdefghi") + word(1, 0) + word(2, 1), r"f:1: '1-5' ends after the last of 2 words"),
        (row("1-2", *"abcdefghi") * 2 + word(1, 0) + word(2, 1), r"f:2: expected the id 1, got '1-2'"),
        (row("1-2", *"abcdefghi") + word(1, 0) + row("2-3", *"abcdefghi"), r"f:3: expected the id 2, got '2-3'"),
        (word(1, 0) + row("1.1", *"abcdefghi") + row("1.3", *"abcdefghi"), r"f:3: expected the id 2, got '1.3'"),
        (row("1-2", *"abcdefghi") + row("0.1", *"abcdefghi"), r"f:2: expected the id 1, got '0.1'"),
        (word(1, 0) + word(2, 3), r"f:2: the head of word 2 is 3, of 2 words"),
        (row("1-2", *"abcdefghi") + word(1, 0) + word(2, 2), r"f:3: the head of word 2 is itself"),
        (row("1." + "9" * 5000, *"abcdefghi"), r"f:1: expected the id 1, got '1.999"),
        (word(1, -1), r"f:1: expected a head"),
        (word(1, 0) + word(2, "01"), r"f:2: expected a head, the number of a word or '_', got '01'"),
        (word(1, "x"), r"f:1: expected a head"),
        (word(1, "\u0663"), r"f:1: expected a head"),
        (word(1, "9" * 30), r"f:1: expected a head"),
        (word(1, 0, form=""), r"f:1: the word has no form"),
        (row("1-2", *"abcdefghi"), r"f:1: a sentence without words"),
        (word(1, 0) + "# late\n", r"f:2: expected 10 columns"),
        (word(1, 0, form="a\rb"), r"f:1: a carriage return within a line"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ConlluError, match=message):
        parse_conllu(text, "f")


def test_comments_are_those_of_the_next_sentence():
    trees = parse_conllu("# a\n\n \n# b\n" + word(1, 0) + "\n" + word(1, 0) + "\n# of none\n")
    assert [tree.comments for tree in trees] == [("# a", "# b"), ()]


def test_bytes_that_are_not_text(tmp_path):
    (tmp_path / "f").write_bytes(word(1, 0).encode() + b"\n1\t\xff\n")
    with pytest.raises(ConlluError, match=r"f:3: bytes that are not UTF-8"):
        read_conllu(tmp_path / "f")


def test_crossing_arcs_are_those_of_no_projective_tree():
    for n in range(1, 6):
        projective = set(all_heads(n, True))
        for heads in all_heads(n, False):
            assert (not crossing_arcs(heads)) == (heads in projective)
            tree = DependencyTree(tuple(Word("w", head=h) for h in heads))
            assert tree.is_projective == (heads in projective)
    assert crossing_arcs([3, 4, 0, 3]) == [2]


def test_arcs_over_words_with_unknown_heads_may_be_projective():
    for n in range(1, 6):
        for heads in all_heads(n, True):
            for known in product([True, False], repeat=n):
                assert crossing_arcs([h if k else -1 for h, k in zip(heads, known)]) == []
    assert crossing_arcs([3, -1, 0]) == crossing_arcs([-1, 1, 0]) == []
    assert crossing_arcs([3, 4, 0, -1]) == crossing_arcs([3, 4, -1, 3]) == [1, 2]
    assert crossing_arcs([0, -1, 1]) == [] and crossing_arcs([3, 0, -1]) == [1]


def test_text_has_a_line_and_an_arrow_per_word():
    for tree in make_dependency_trees(30, max_length=12, crossing=0.3, random_state=0):
        lines = tree.pretty().split("\n")
        assert len(lines) == len(tree)
        for line, (head, label) in zip(lines, tree.arcs):
            assert line.endswith(label) and (">" in line) == (head > 0)
    assert DependencyTree((Word("a", head=0, deprel="root"),)).pretty() == " 1 a root"
    tree = parse_conllu(word(1, 2, "x") + word(2, 0, "y"))[0]
    assert [line.rstrip(" _") for line in tree.pretty().split("\n")] == ["\u250c> 1 x", "\u2514\u2500 2 y"]


def test_simulated_trees():
    trees = make_dependency_trees(100, max_length=12, random_state=0)
    assert trees == make_dependency_trees(100, max_length=12, random_state=0)
    assert all(tree.is_projective and tree.heads.count(0) == 1 for tree in trees)
    moved = make_dependency_trees(200, max_length=12, crossing=0.5, random_state=0)
    share = np.mean([not tree.is_projective for tree in moved])
    assert 0.1 < share < 0.5
    for parameters in ({"n_trees": 0}, {"max_length": 4}, {"crossing": 1.5}):
        with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter"):
            make_dependency_trees(**parameters)


def test_a_picture_for_notebooks():
    words = [Word("She", upos="PRON", head=2, deprel="nsubj"), Word("<reads>", head=0, deprel="root"), Word("it")]
    picture = ET.fromstring(DependencyTree(tuple(words))._repr_svg_())
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["She", "PRON", "nsubj", "<reads>", "_", "root", "it", "_"]
    (path,) = picture.iter("{http://www.w3.org/2000/svg}path")
    assert (path.get("d").count("C"), path.get("d").count("V")) == (1, 1)  # an arc and a root; nothing is known of "it"


# One sentence with two roots, in the formats of the shared tasks; 2009: true and predicted lemma, tag, features.
CONLL_X = """1\tJohn\tjohn\tN\tNNP\tnum=s\t2\tSBJ\t2\tSBJ
2\tsleeps\tsleep\tV\tVBZ\t_\t0\tROOT\t_\t_
3\t.\t.\tP\t.\t_\t0\tROOT\t_\t_

"""
CONLL_2009 = """1\tJohn\tjohn\tjohn\tNNP\tNN\tnum=s\tnum=p\t2\t3\tSBJ\tOBJ\t_\t_\tA0
2\tsleeps\tsleep\t_\tVBZ\t_\t_\t_\t0\t0\tROOT\tROOT\tY\tsleep.01\t_
3\t.\t.\t.\t.\t.\t_\t_\t0\t2\tROOT\tP\t_\t_\t_

1\tGo\tgo\tgo\tVB\tVB\t_\t_\t0\t0\tROOT\tROOT\t_\t_

"""


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("(S (NP (NN Anna)))", "trees in brackets are for train grammar"),
        ("Anna sings", "plain words are for TaggedParser"),
    ],
    ids=["brackets", "words"],
)
def test_what_is_no_table_is_told_its_command(line, hint):
    with pytest.raises(ConlluError, match=f"f:1: expected 10 columns between tabs, got 1: {hint}"):
        parse_conllu(line + "\n\n", "f")


def test_the_formats_of_the_shared_tasks():
    (of_x,) = parse_conllu(CONLL_X)
    assert of_x.to_conllu() == CONLL_X and of_x.words[0][:5] == ("John", "john", "N", "NNP", "num=s")
    of_2009, short = parse_conllu(CONLL_2009)
    assert of_2009.arcs == of_x.arcs == [(2, "SBJ"), (0, "ROOT"), (0, "ROOT")] and short.heads == [0]
    # A parser has the predicted columns at hand; where there are none, the others.
    assert [word[:5] for word in of_2009.words] == [
        ("John", "john", "NN", "_", "num=p"),
        ("sleeps", "sleep", "VBZ", "_", "_"),
        (".", ".", ".", "_", "_"),
    ]
    with pytest.raises(ConlluError, match="f:2: expected 14 or more columns between tabs, as in CoNLL-2009, got 10"):
        parse_conllu(CONLL_2009.split("\n")[0] + "\n" + CONLL_X.split("\n")[1], "f")
    with pytest.raises(ConlluError, match="f:2: expected 10 columns between tabs, got 15"):
        parse_conllu(CONLL_X.split("\n")[0] + "\n" + CONLL_2009.split("\n")[1], "f")


def test_one_root_of_several():
    assert with_one_root([2, 0, 0, -1, 0]) == [2, 0, 2, -1, 2]
    assert with_one_root([-1, 1]) == [-1, 1]
