"""Grammars with relative frequencies: probabilities, files, and trainings that start from them."""

from collections import Counter

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_treebank
from structsvm.structures.rules import Terminal
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar
from structsvm.tasks.grammar.pcfg import pcfg_weights

TRAIN = make_treebank(150, max_length=12, random_state=0)
SENTENCES = [tree.tokens() for tree in make_treebank(40, max_length=12, random_state=1)]
pytestmark = pytest.mark.filterwarnings("ignore:the grammar has no tree for:structsvm.AdviceWarning")


def test_pcfg_is_relative_frequencies():
    parser = GrammarParser.from_counts(TRAIN, grammar=TreebankGrammar(h=None), smoothing=0.5)
    counts = Counter()
    for tree in TRAIN:
        for node in tree.preorder():
            if not node.is_preterminal:
                counts[node.label, tuple(c.label for c in node.children)] += 1
    sides = Counter()
    for (lhs, _), count in counts.items():
        sides[lhs] += count + 0.5
    for rule, weight in parser.grammar_:
        rhs = tuple(s.name if isinstance(s, Terminal) else s for s in rule.rhs)
        assert np.exp(weight) == pytest.approx((counts[rule.lhs, rhs] + 0.5) / sides[rule.lhs])
    # A score is the logarithm of the tree's probability.
    (tree, score), *_ = parser.predict_kbest(SENTENCES[:1], 3)[0]
    weights = {(rule.lhs, tuple(map(str, rule.rhs))): weight for rule, weight in parser.grammar_}
    rhs = [
        (n.label, tuple(f"'{c.label}'" if c.is_preterminal else c.label for c in n.children))
        for n in tree.preorder()
        if not n.is_preterminal
    ]
    assert score == pytest.approx(sum(weights[rule] for rule in rhs))


def test_pcfg_agrees_with_nltk():
    nltk = pytest.importorskip("nltk")
    rare = "(TOP (S (NP (DT a) (DT b)) (VP (VB c))))"  # a probability that is written with an exponent
    parser = GrammarParser.from_counts([*TRAIN, rare], grammar=TreebankGrammar(h=None), smoothing=1e-4)
    assert "e-" not in parser.grammar_text()
    viterbi = nltk.ViterbiParser(nltk.PCFG.fromstring(parser.grammar_text()))
    for sentence in SENTENCES[:10]:
        best = list(viterbi.parse([tag for _, tag in sentence]))
        found = parser.predict_kbest([sentence], 1)[0]
        assert len(best) == len(found)
        if best:
            assert found[0][1] == pytest.approx(best[0].logprob() * np.log(2.0))


def test_pcfg_without_counts():
    grammar = structsvm.structures.grammar.Grammar("S -> A B | 'a'\nA -> 'a'\nB -> 'b'")
    with pytest.raises(ValueError, match="the rule S -> 'a' never occurs: its probability needs smoothing > 0"):
        pcfg_weights(grammar, np.array([1.0, 0.0, 1.0, 1.0]))
    assert np.allclose(np.exp(pcfg_weights(grammar, np.array([1.0, 0.0, 0.0, 1.0]), 1.0)), [2 / 3, 1 / 3, 1.0, 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": np.inf}, r"smoothing must be a number in \[0, inf\). Got inf"),
        ({"smoothing": -0.5}, r"smoothing must be a number in \[0, inf\). Got -0.5"),
        (
            {"features": SpanFeatures(templates="rule first.terminal")},
            "templates of spans have no meaning in from_counts",
        ),
        ({"grammar": TreebankGrammar(v=0)}, "The 'v' parameter"),
    ],
)
def test_bad_parameters_of_counts(options, message):
    with pytest.raises(ValueError, match=message):
        GrammarParser.from_counts(TRAIN[:5], **options)


def test_partial_fit_starts_from_counts():
    parser = GrammarParser.from_counts(TRAIN[:12], C=1e-9, random_state=0)
    weights, rules = parser.coef_.copy(), parser.model_.oracle.grammar
    assert parser.result_ is None and parser.temperature_ == 1.0 and not parser.model_.oracle.span_features
    parser.partial_fit(TRAIN[:12])
    assert parser.model_.oracle.grammar is rules and parser.n_iter_ == 1
    assert np.allclose(parser.coef_[: len(weights)], weights, atol=1e-6) and len(parser.coef_) > len(weights)


def test_counts_are_saved_and_trained_from(tmp_path):
    parser = GrammarParser.from_counts(TRAIN[:60], smoothing=0.5, max_iter=1, warm_start=True, random_state=0)
    parser.save(tmp_path / "m.model")
    other = structsvm.load(tmp_path / "m.model")
    assert repr(other) == repr(parser) and other.result_ is None and other.temperature_ == 1.0
    assert other.grammar_ == parser.grammar_ and other.predict(SENTENCES) == parser.predict(SENTENCES)
    assert np.array_equal(other.fit(TRAIN[:60]).coef_, parser.fit(TRAIN[:60]).coef_) and other.result_ is not None
