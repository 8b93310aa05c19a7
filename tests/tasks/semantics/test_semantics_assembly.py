"""The assembly of meanings against the enumeration of all choices of arguments."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.structures.meanings import MAX_DEPTH, MeaningGrammar, Symbol, format_meaning, parse_meaning
from structsvm.tasks.semantics.assembly import Assembler, is_above

CONSTANTS = [Symbol(name, None) for name in "abcd"]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 4))
@settings(max_examples=60)
def test_the_best_arguments(seed, arity, n_words):
    """Every way to give each argument a word, one word an argument or two the pair (0, 1)."""
    rng = np.random.default_rng(seed)
    relation = Symbol("f", arity)
    roles = {(a,): a + 1 for a in range(arity)} | ({(0, 1): 4} if arity >= 2 and seed % 2 else {})
    symbols = [relation, *CONSTANTS[:n_words]]
    scores = rng.normal(size=(n_words, 5))
    choice = Assembler(None, {relation: roles}, set(), None).choose(
        symbols, 0, (range(1, n_words + 1), scores.tolist()), {}
    )
    ways = []
    for fill in product(range(1, n_words + 1), repeat=arity):
        used = {j: tuple(a for a in range(arity) if fill[a] == j) for j in fill}
        if all(role in roles for role in used.values()):
            ways.append((sum(scores[j - 1, roles[r]] - scores[j - 1, 0] for j, r in used.items()), list(fill)))
    if not ways:
        assert choice is None
        return
    assert choice[0] == pytest.approx(max(ways)[0])
    assert (pytest.approx(choice[0]), choice[1]) in [(w, fill) for w, fill in ways]


def test_nested_relations_make_one_tree():
    """A relation is the argument of one other at most, and never of itself, whatever the scores say."""
    f, g, h = (Symbol(name, 1) for name in "fgh")
    symbols = [f, g, h, CONSTANTS[0]]
    roles = {relation: {(0,): 1} for relation in (f, g, h)}
    for favourites in permutations(range(4)):
        scored = {
            t: (others, [[0.0, float(favourites.index(j))] for j in others])
            for t, others in ((t, [j for j in range(4) if j != t]) for t in range(3))
        }
        nested = {(a, b) for a in roles for b in roles}
        parse = Assembler(None, roles, nested, None).parse(symbols, [1.0] * 4, scored)
        assert parse.trees and parse.value == parse.n_words >= 2
        for tree in parse.trees:
            names = []
            while isinstance(tree, tuple):
                names.append(tree[0])
                tree = tree[1]
            assert tree == "a" and len(set(names)) == len(names)


def test_relations_are_arguments_only_where_they_were_seen():
    f, g = Symbol("f", 1), Symbol("g", 0)
    for nested, trees in ((set(), [("g",)]), ({(f, g)}, [("f", ("g",))])):
        assert (
            Assembler(None, {f: {(0,): 1}}, nested, None).parse([f, g], [1.0] * 2, {0: ([1], [[0.0, 1.0]])}).trees
            == trees
        )


def test_only_what_the_grammar_accepts():
    grammar = MeaningGrammar("S -> 'f' '(' X ')'\nX -> 'a'")
    f = Symbol("f", 1)
    scored = {0: ([1, 2], [[0.0, 1.0], [0.0, 5.0]])}
    symbols = [f, CONSTANTS[0], CONSTANTS[1]]
    assert Assembler(None, {f: {(0,): 1}}, set(), None).parse(symbols, [1.0] * 3, scored).trees == [("f", "b")]
    assert Assembler(grammar, {f: {(0,): 1}}, set(), None).parse(symbols, [1.0] * 3, scored).trees == [("f", "a")]
    nothing = Assembler(grammar, {f: {(0,): 1}}, set(), None).parse(
        [f, CONSTANTS[1]], [1.0] * 2, {0: ([1], [[0.0, 1.0]])}
    )
    assert nothing.trees == [] and nothing.value == -np.inf


def test_meanings_of_the_highest_value_stay():
    f, g = Symbol("f", 0), Symbol("g", 0)
    for limit, trees in ((None, [("g",), ("f",)]), (1, [("f",)]), (2, [("g",), ("f",)])):
        assert Assembler(None, {}, set(), limit).parse([g, f, g], [0.5, 3.0, 1.0], {}).trees in (trees, trees[::-1])
    assert Assembler(None, {}, set(), 1).parse([g, f, g], [0.5, 3.0, 1.0], {}).value == 3.0


def test_is_above():
    parent = {2: 1, 1: 0}
    assert is_above(0, 2, parent) and is_above(2, 2, parent) and not is_above(2, 0, parent)


@pytest.mark.parametrize(("n", "found"), [(MAX_DEPTH - 1, 1), (MAX_DEPTH + 1, 0)])
def test_no_tree_is_deeper_than_text_may_be(n, found):
    f = Symbol("f", 1)
    scored = {t: ([t + 1], [[0.0, 1.0]]) for t in range(n)}
    parse = Assembler(None, {f: {(0,): 1}}, {(f, f)}, None).parse([f] * n + CONSTANTS[:1], [1.0] * (n + 1), scored)
    assert len(parse.trees) == found
    assert all(parse_meaning(format_meaning(tree)) == tree for tree in parse.trees)
