"""Limits of grammars: chains and intermediates are bounded before they are made."""

import numpy as np
import pytest

from structsvm.datasets import make_treebank
from structsvm.oracles.cky import CKYOracle
from structsvm.structures.grammar import START, Grammar
from structsvm.structures.rules import Rule, rules_of


def test_chains_end_with_the_rules():
    text = "A -> B\nB -> C\nC -> D\nD -> 'd'"
    assert Grammar(text, max_unary=10**30).chains == Grammar(text, max_unary=3).chains


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"A{k} -> A{k + 1}" for k in range(2000)),
        "\n".join(f"A{k} -> A{j}" for k in range(40) for j in range(40) if k != j),
    ],
)
def test_chains_are_bounded(text):
    """In number and in symbols."""
    with pytest.raises(ValueError, match="lower max_unary"):
        Grammar(text, max_unary=10**30)


@pytest.mark.parametrize("h", [None, 10**9])
def test_rules_are_bounded(h):
    """The intermediates of a rule take the square of its length."""
    with pytest.raises(ValueError, match="rules of up to 20000 children are too long to be made binary"):
        Grammar("S -> " + "A " * 20_000, h=h)
    assert Grammar("S -> " + "A " * 20_000, h=2).n_symbols == 4


@pytest.mark.parametrize("h", [None, 0, 1, 2])
def test_features_of_rules_are_those_of_trees(h):
    trees = make_treebank(40, random_state=0)
    rules = dict.fromkeys(rule for tree in trees for rule in rules_of(tree))
    starts = {rule.lhs for rule in rules}
    grammar = Grammar(rules, starts, h=h)
    oracle, n = CKYOracle(grammar), len(grammar.features)
    for tree in trees:
        psi, found = oracle.joint_feature(tree.leaves(), tree), np.zeros(n)
        for rule in (*rules_of(tree), Rule(START, (tree.label,))):
            np.add.at(found, grammar.features_of(rule), 1.0)
        assert (found == psi[:n]).all() and found.sum() > len(tree.leaves())
    with pytest.raises(ValueError, match="the grammar has no rule TOP -> S S"):
        Grammar("TOP -> S\nS -> TOP TOP", h=0).features_of(Rule("TOP", ("S", "S")))


def test_tags_of_a_terminal_are_known_at_once():
    """A sentence without a tree is not one walk through the lexicon for each of its words."""
    grammar = Grammar("S -> A B\nA -> 'x' | 'y'\nB -> 'x'")
    numbers, names = grammar.lexical_number, grammar.terminals
    found = {names[t]: {name: k for k, name in rules} for t, rules in grammar.tags.items()}
    tag = grammar.node_number
    assert found == {
        "x": {"A": numbers[tag["A"], names.index("x")], "B": numbers[tag["B"], names.index("x")]},
        "y": {"A": numbers[tag["A"], names.index("y")]},
    }
    grammar.lexical_number = {}
    assert len(grammar.tags) == 2
