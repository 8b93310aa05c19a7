"""Trees known in part: completions and likelihoods by enumeration, for every kind of grammar; what contradicts it."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structures_table import Trees
from tree_reference import agrees, hidden

from structsvm.dual._rounds import completions, log_losses, losses
from structsvm.oracles.cky import CKYOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.grammar import Grammar
from structsvm.structures.known_trees import KnownTrees, is_partial, known_rules, known_spans
from structsvm.structures.rules import annotate, plain, rules_of
from structsvm.structures.trees import parse_tree

CLOSE = {"rel": 1e-6, "abs": 1e-6}


def pairs(tree):
    """A tree as the reference has it."""
    return tree.map(lambda node, children: (node.label, tuple(children)))


class Known:
    """A sentence with all trees of a grammar, Markovised or not, their scores, and what is known of one of them."""

    def __init__(self, seed, h, v, span_features):
        case = Trees(seed, n_sentences=1, n_trees=(2, 40))
        rng = np.random.default_rng([seed, 3])
        trees = [annotate(case.tree(tree), v) for tree in case.forests[0]]
        rules = dict.fromkeys(rule for tree in trees for rule in rules_of(tree))
        starts = tuple(dict.fromkeys(tree.label for tree in trees))
        self.oracle = CKYOracle(Grammar(rules, starts, h=h), span_features=span_features)
        self.x, self.w = case.X[0], np.round(rng.normal(size=self.oracle.n_features), 2)
        ranked = list(self.oracle.kbest(self.x, self.w, 400))
        self.trees, self.scores = [tree for tree, _ in ranked], np.array([score for _, score in ranked])
        self.psi = np.array([self.oracle.joint_feature(self.x, tree) for tree in self.trees])
        known = hidden(rng, pairs(plain(trees[int(rng.integers(len(trees)))])))
        self.known = parse_tree(case.reference.text(known))
        self.agree = np.array([agrees(known, pairs(tree)) for tree in self.trees])


@st.composite
def cases(draw):
    h, v = draw(st.sampled_from([None, 0, 1])), draw(st.sampled_from([1, 2]))
    return Known(draw(st.integers(0, 2**32 - 1)), h, v, draw(st.booleans()))


def under(scores, psi):
    """``(log-sum, expectation, entropy)``."""
    top = scores.max()
    total = top + np.log(np.exp(scores - top).sum())
    p = np.exp(scores - total)
    return total, p @ psi, total - p @ scores


@settings(max_examples=50)
@given(cases())
def test_the_best_tree_and_the_likelihood(case):
    if len(case.trees) == 400 or not is_partial(case.known):
        return
    agree = case.agree
    assert agree.any()
    completed = case.oracle.complete(case.x, case.known, case.w)
    found = [str(tree) for tree in case.trees].index(str(completed))
    assert agree[found]
    assert case.scores[found] == pytest.approx(case.scores[agree].max(), **CLOSE)
    problem = case.oracle.bind([case.x], [case.known], rescaling=None)
    assert problem.disagreeing() == [] and problem.offers == {"expectations", "completions", "marginals"}
    with pytest.raises(ValueError, match="tree 0 is known in part: train with LatentSVM or with the log loss"):
        problem.separate(0, case.w)
    (total, mean, entropy), (inside, mean_inside, entropy_inside) = (
        under(case.scores[chosen], case.psi[chosen]) for chosen in (np.ones_like(agree), agree)
    )
    for part in (problem, pickle.loads(pickle.dumps(problem)), problem.shard(0, 1)):
        loss, found_entropy, gradient = part.expect(0, case.w)
        assert loss == pytest.approx(total - inside, **CLOSE)
        assert gradient == pytest.approx(mean - mean_inside, rel=1e-5, abs=1e-5)
        assert found_entropy == pytest.approx(entropy - entropy_inside, **CLOSE)
    assert losses(problem, case.w) == pytest.approx([total - inside], **CLOSE)
    # A completed problem has another loss, and remembers what was known.
    completed = problem.with_targets(completions(problem, case.w))
    assert completed.offers == {"expectations", "completions", "constraints"}
    first = np.array([0])
    for found, expected in zip(log_losses(completed.incomplete, case.w, first), log_losses(problem, case.w, first)):
        np.testing.assert_array_equal(found, expected)


def test_training_on_what_is_known():
    """Ends where the gradient vanishes, with trees known whole beside others; the same after a restart."""
    oracle = CKYOracle("S -> S S | A A | A S | S A | 'a' | 'b'\nA -> 'a' | 'b' | S A")
    texts = ["(S (... a b) (A b))", "(S (A a) (S (A a) (A b)))", "(... a (_ (... b a)))", "(S (A a) (... b a b))"]
    problem = oracle.bind(None, [parse_tree(text) for text in texts], rescaling=None)
    run = ConditionalLikelihood(1.0, max_iter=300, random_state=0).solve(problem)
    w = run.weights
    value, gradient = 0.5 * w @ w, w.copy()
    for i in range(len(texts)):
        loss, _, slope = problem.expect(i, w)
        value, gradient = value + loss, gradient + slope
    assert run.primal == pytest.approx(value, rel=1e-6) and np.linalg.norm(gradient) < 0.02
    again = ConditionalLikelihood(1.0, random_state=0).start(problem)
    again.set_state(run.get_state())
    np.testing.assert_array_equal(again.weights, w)


def test_rules_of_what_is_known():
    tree = parse_tree("(S (NP (D the) (N cat)) (... eats (NP (... a) fly)) (VP (_ x)) (X (VP (V y) z)))")
    assert [str(rule) for rule in known_rules(tree)] == [
        *("NP -> D N", "D -> 'the'", "N -> 'cat'", "X -> VP", "VP -> V 'z'", "V -> 'y'")
    ]
    assert [str(rule) for rule in known_rules(tree, 2)] == [
        *("NP^S -> D^NP N^NP", "D^NP -> 'the'", "N^NP -> 'cat'", "X^S -> VP^X", "VP^X -> V^VP 'z'", "V^VP -> 'y'")
    ]
    whole = parse_tree("(S (NP (D the) (N cat)) (VP (V eats)))")
    for v in (1, 2, 3):
        assert known_rules(whole, v) == rules_of(annotate(whole, v))
    assert is_partial(tree) and not is_partial(whole)


def test_spans_of_what_is_known():
    found = known_spans(parse_tree("(S (NP a b) (... c (_ d e)) f)"))
    assert found[0, 6] == ("S",) and found[0, 2] == ("NP",) and found[3, 5] == ("...", "_")
    nothing, no_node = 0, 1
    assert {span for span, what in found.items() if what == no_node} == {
        *((0, 1), (1, 2), (3, 4), (4, 5), (5, 6)),  # words that are children themselves
        *((0, 3), (0, 5), (2, 6), (3, 6)),  # several children of S
    }
    assert {span for span, what in found.items() if what == nothing} == {
        *((1, 3), (1, 4), (1, 5), (1, 6)),  # across NP
        *((0, 4), (2, 4), (4, 6)),  # across the bracket in the stretch
    }


def test_what_contradicts_the_grammar():
    oracle = CKYOracle("S -> A S | 'a'\nA -> 'a' | B\nB -> 'b'")
    trees = {
        "(S (... a a))": None,
        "(... (_ a a) a)": "no tree that agrees",
        "(S (C (... a)) a)": "the label 'C' is not in the grammar",
        "(... c a)": "no terminal 'c'",
        "(S (B (A (... a))) (S a))": "no chain B -> A",
        "(A (... b))": "no tree that agrees",
    }
    why = oracle.disagreeing([parse_tree(text) for text in trees])
    assert sorted(why) == [1, 2, 3, 4, 5]
    for i, text in enumerate(trees):
        if i in why:
            assert re.search(trees[text], why[i])
            with pytest.raises(ValueError, match=r"tree 0: (no tree of the grammar agrees|the )"):
                oracle.complete(parse_tree(text).leaves(), parse_tree(text), np.zeros(oracle.n_features))
    problem = oracle.bind(None, [parse_tree("(A (... b))")], rescaling=None)
    with pytest.raises(ValueError, match="tree 0: no tree of the grammar agrees"):
        problem.expect(0, np.zeros(oracle.n_features))
    assert KnownTrees.of(oracle.grammar, [None, None]) is None
