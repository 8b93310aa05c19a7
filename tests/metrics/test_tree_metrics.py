"""Brackets against an independent count by EVALB's steps."""

import numpy as np
import pytest
from evalb_reference import evalb
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.datasets import make_treebank
from structsvm.metrics import bracket_scores
from structsvm.structures.trees import Tree, parse_tree


def random_tree(rng, words, tags):
    """Some tree over the words, with chains, repeated labels and deleted ones."""
    parts = [Tree(tag, (word,)) for word, tag in zip(words, tags, strict=True)]
    while len(parts) > 1 or rng.random() < 0.5:
        begin = int(rng.integers(len(parts)))
        end = begin + 1 + int(rng.integers(min(3, len(parts) - begin)))
        label = str(rng.choice(["NP", "VP", "S", "ADVP", "PRT", "TOP", ":"]))
        parts[begin:end] = [Tree(label, parts[begin:end])]
    return Tree("TOP", parts) if parts[0].is_preterminal else parts[0]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_against_the_reference(seed):
    rng = np.random.default_rng(seed)
    golds, tests = [], []
    for _ in range(int(rng.integers(1, 4))):
        words = [f"w{k}" for k in range(int(rng.integers(1, 7)))]
        tags = [str(tag) for tag in rng.choice(["NN", "VB", ",", "."], len(words))]
        other = [tag if tag in ",." or rng.random() < 0.8 else "JJ" for tag in tags]
        golds.append(random_tree(rng, words, tags))
        tests.append(random_tree(rng, words, other) if rng.random() < 0.8 else golds[-1])
    scores = bracket_scores(golds, tests)
    recall, precision, f, complete, tagging = evalb([str(t) for t in golds], [str(t) for t in tests])
    assert (scores.recall, scores.precision, scores.accuracy) == (recall, precision, complete)
    assert scores.f1 == pytest.approx(f, abs=1e-12) and scores.tag_accuracy == pytest.approx(tagging)


def test_a_known_case():
    gold = parse_tree("(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (PRT (RP down))) (. .)))")
    test = parse_tree("(TOP (S (NP (DT the)) (NP (NN cat)) (VP (VBZ sits) (ADVP (RP down)) (. .))))")
    scores = bracket_scores([gold, gold], [test, gold])
    assert (scores.n_true, scores.n_predicted, scores.n_correct) == (8, 9, 3 + 4)
    assert scores.accuracy == 0.5 and scores.tag_accuracy == 1.0
    assert "Bracketing recall    =  87.50" in scores.report()


def test_perfect():
    trees = make_treebank(30, random_state=0)
    scores = bracket_scores(trees, trees)
    assert scores.precision == scores.recall == scores.f1 == scores.accuracy == scores.tag_accuracy == 1.0


def test_true_tags_decide_what_is_deleted():
    gold, test = parse_tree("(S (NP (NN a)) (. b))"), parse_tree("(S (NP (. a)) (NP (NN b)))")
    scores = bracket_scores([gold], [test])
    assert (scores.n_true, scores.n_predicted, scores.n_correct, scores.tag_accuracy) == (2, 2, 2, 0.0)


def test_errors():
    one, other = parse_tree("(S (A a) (B b))"), parse_tree("(S (A a) (B c))")
    with pytest.raises(ValueError, match="tree 1: y_true and y_pred have different words"):
        bracket_scores([one, one], [one, other])
    with pytest.raises(ValueError, match=r"tree 0: expected a Tree, got '\(S a\)'"):
        bracket_scores(["(S a)"], [one])
    with pytest.raises(ValueError, match="y_true has 1 trees and y_pred has 0"):
        bracket_scores([one], [])
    with pytest.raises(ValueError, match="no trees to score"):
        bracket_scores([], [])
