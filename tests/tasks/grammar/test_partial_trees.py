"""GrammarParser on trees that are known in part; trees for sentences that the grammar does not cover."""

import numpy as np
import pytest
from command_line import run

from structsvm import AdviceWarning, LaRank, LatentSVM
from structsvm.datasets import make_treebank
from structsvm.metrics import bracket_scores
from structsvm.structures.known_trees import is_partial
from structsvm.structures.trees import STRETCH, UNKNOWN_LABEL, Tree, parse_tree, write_trees
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar

TRAIN, TEST = make_treebank(100, max_length=8, random_state=0), make_treebank(60, max_length=8, random_state=1)
SETTINGS = {"C": 0.3, "grammar": TreebankGrammar(h=1), "max_iter": 5, "random_state": 0}


def hidden(tree, rng):
    """Half of the brackets are not known, nor some labels."""

    def make(node, children):
        if node.is_preterminal:
            return node
        inside = Tree(STRETCH, children)
        if rng.random() < 0.5:
            return inside
        return Tree(node.label if rng.random() < 0.8 else UNKNOWN_LABEL, [inside])

    return tree.map(make)


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(0)
    return [tree if i < 12 else hidden(tree, rng) for i, tree in enumerate(TRAIN)]


def f1(parser):
    return bracket_scores(TEST, parser.predict([tree.tokens() for tree in TEST])).f1


@pytest.mark.filterwarnings("ignore:the grammar has no tree for:structsvm.AdviceWarning")
@pytest.mark.filterwarnings("ignore:.*are left out:structsvm.AdviceWarning")
@pytest.mark.parametrize("loss", ["log", "hamming", "f1"])
def test_what_is_known_in_part_teaches(known, loss):
    params = SETTINGS | {"loss": loss, "terminals": "words"}
    parser = GrammarParser(**params).fit(known)
    assert "completed in" in parser.result_.certificate()
    assert f1(parser) > f1(GrammarParser(**params).fit([t for t in known if not is_partial(t)]))
    sentences = [tree.tokens() for tree in TEST[:3]]
    again = GrammarParser(**params).fit([tree.leaves() for tree in known], known)
    assert again.predict(sentences) == parser.predict(sentences)


@pytest.mark.filterwarnings("ignore:.*are left out:structsvm.AdviceWarning")
def test_trees_of_which_nothing_is_known():
    """They teach the log loss nothing, and are no hindrance."""
    nothing = [tree.map(lambda node, inside: node if node.is_preterminal else Tree(STRETCH, inside)) for tree in TRAIN]
    params = SETTINGS | {"loss": "log", "max_iter": 30}
    alone, among = (GrammarParser(**params).fit(trees) for trees in (TRAIN[:12], [*TRAIN[:12], *nothing[12:40]]))
    assert among.result_.primal == pytest.approx(alone.result_.primal, rel=1e-2)
    with pytest.raises(ValueError, match="no tree is known with its root"):
        GrammarParser(**params).fit(nothing[:12])


def test_what_is_known_whole_is_trained_on_as_ever():
    ordinary = GrammarParser(**SETTINGS).fit(TRAIN[:20])
    latent = GrammarParser(
        **SETTINGS | {"solver": LatentSVM(LaRank(0.3, max_iter=5, random_state=0)), "max_iter": None}
    )
    latent.set_params(C=None, random_state=None).fit(TRAIN[:20])
    assert latent.coef_.tobytes() == ordinary.coef_.tobytes()


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_c_is_chosen_on_whole_trees(known):
    parser = GrammarParser(grammar=TreebankGrammar(h=1), loss="hamming", max_iter=4, random_state=0).fit(
        [*known, *TRAIN[12:30]]
    )
    assert parser.validation_["n_held_out"] == 30
    assert GrammarParser(max_iter=1).fit(known[8:]).C_ == 1.0


def test_trees_that_no_tree_agrees_with(known):
    bad = [*TRAIN[:5], parse_tree("(TOP (... (NP (... (XX a)))))"), parse_tree("(TOP (... (QQ (... (NN a)))))")]
    with pytest.warns(
        AdviceWarning, match=r"2 of 7 trees \(28.6%\) are left out.*tree 5 is the first: .*terminal 'XX'"
    ):
        parser = GrammarParser(C=0.1, max_iter=1).fit(bad, sample_weight=np.ones(7))
    assert parser.model_.oracle.grammar.terminal_number.get("XX") is None
    with pytest.raises(ValueError, match="tree 5: the grammar has no terminal 'XX'"):
        parser.set_params(on_no_parse="raise").fit(bad)
    with pytest.raises(ValueError, match="tree 6: the label 'QQ' is not in the grammar"):
        parser.fit([*bad[:5], bad[0], bad[6]])
    with pytest.raises(ValueError, match=r"tree 0: it is known in part .* and score needs whole trees"):
        parser.score(bad[5:])
    with pytest.raises(ValueError, match=r"tree 5: it is known in part .* and from_counts needs whole trees"):
        GrammarParser.from_counts(bad)
    with pytest.raises(ValueError, match="no tree is known with its root"):
        GrammarParser().fit([parse_tree("(... (NN a) (VB b))")])
    with pytest.raises(ValueError, match="tree 1: the word 'a' has no tag of its own"):
        GrammarParser().fit([TRAIN[0], parse_tree("(TOP (_ a) (NN b))")])


def test_fragments_for_what_is_not_covered():
    trees = ["(S (NP (DT the) (NN cat)) (VP (VB eats)))", "(S (NP (PR it)) (VP (VB eats) (NP (DT a) (NN fly))))"]
    parser = GrammarParser(
        C=1.0, grammar=TreebankGrammar(h=None), features=SpanFeatures(templates=()), max_iter=3, random_state=0
    ).fit(trees)
    sentence = [("on", "IN"), ("the", "DT"), ("cat", "NN"), ("eats", "VB"), ("it", "PR"), ("(", "XX")]
    with pytest.warns(AdviceWarning, match=r"no tree for 1 of 1 sentences \(100.0%; sentence 0 is the first\)"):
        tree = parser.predict([sentence])[0]
    assert str(tree) == "(S (IN on) (S (NP (DT the) (NN cat)) (VP (VB eats) (NP (PR it)))) (XX -LRB-))"
    with pytest.warns(AdviceWarning, match="no tree for 1 of 1"):
        assert parser.predict_kbest([sentence], 2) == [[(tree, -np.inf)]]
    with pytest.warns(AdviceWarning, match="no tree for 1 of 1"):
        flat = parser.set_params(on_no_parse="flat").predict([sentence])[0]
    assert str(flat) == "(S (IN on) (DT the) (NN cat) (VB eats) (PR it) (XX -LRB-))"
    words = GrammarParser(
        C=1.0, terminals="words", grammar=TreebankGrammar(h=None, min_count=1), max_iter=3, random_state=0
    ).fit(trees)
    with pytest.warns(
        AdviceWarning,
        match=r"what they get; TreebankGrammar\(h=0\) makes more rules that were not seen, on_no_parse='raise'",
    ):
        tree = words.predict([["on", "the", "cat", "eats"]])[0]
    assert str(tree) == "(S on (S (NP (DT the) (NN cat)) (VP (VB eats))))"


@pytest.mark.filterwarnings("ignore:.*are left out:structsvm.AdviceWarning")
def test_partial_on_the_command_line(tmp_path, known):
    write_trees(tmp_path / "trees", known[:60])
    train = ["train", "grammar", "trees", "--model", "m", "-C", "0.1", "--max-iter", "2", "--loss", "hamming"]
    assert "it is known in part" in run(tmp_path, *train, status=1)[1]
    out, _ = run(tmp_path, *train, "--partial")
    assert "completed in" in out
    assert "training with --pcfg needs whole trees" in run(tmp_path, *train[:5], "--pcfg", status=1)[1]
    assert "and evaluate needs whole trees" in run(tmp_path, "evaluate", "m", "trees", status=1)[1]
