"""Words with a tagger's tags: evidence for a parser that finds the tags of its trees itself."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_reference import ReferenceGrammar

import structsvm
from structsvm.datasets import make_treebank
from structsvm.structures.trees import Tree, parse_tree
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar
from structsvm.tasks.grammar.terminals import GIVEN, given_tokens, with_given
from structsvm.tasks.grammar.trees import encode_trees

TRAIN, TEST = make_treebank(150, random_state=0), make_treebank(40, random_state=1)
TAGS = sorted({tag for tree in TRAIN for _, tag in tree.tokens()})
# Words in different places of two trees, a node that stands in a tree twice, and words beside nodes.
SHARED = parse_tree("(NP (D a) (N b))")
AMBIGUOUS = [
    "(S (NP (N a) (N b)) (VP (V a) (NP (N b))))",
    "(S (NP (N a)) (VP (V b) (NP (N a) (N b))))",
    "(S (NP (V a) (N b)) (VP (V b)))",
    "(S (NP (N b)) (VP (VP (V b)) (NP (V a))))",
]


def noisy(trees, rng, share=0.2):
    """Sentences whose tags are wrong as often as this."""
    return [[(word, str(rng.choice(TAGS)) if rng.random() < share else tag) for word, tag in t.tokens()] for t in trees]


def fitted(X, y=None, **params):
    usual = {"terminals": "predicted", "C": 0.1, "max_iter": 2, "random_state": 0}
    return GrammarParser(**usual | params).fit(X, y)


@given(seed=st.integers(0, 10_000), length=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_the_best_tree_is_the_best_of_all_trees_and_taggings(seed, length):
    rng = np.random.default_rng(seed)
    # With the rules of the trees as they are, and without classes of rare words, enumeration is simple.
    parser = fitted(AMBIGUOUS * 3, prior=None, grammar=TreebankGrammar(min_count=1, h=None), decode="tree")
    model = parser.model_
    model.weights = rng.normal(size=len(model.weights))
    x = [(str(rng.choice(["a", "b"])), str(rng.choice(["N", "V", "?"]))) for _ in range(length)]
    rules = [(rule.lhs, tuple(s if isinstance(s, str) else f"'{s.name}'" for s in rule.rhs))
             for rule, _ in model.weighted_rules()]  # fmt: skip
    reference = ReferenceGrammar(rules, ["S"], model.oracle.grammar.max_unary)
    every = sorted(map(reference.text, reference.trees(word for word, _ in x)))
    ranked = parser.predict_kbest([x], 10_000)[0]
    if not every:
        assert ranked[0][1] == -np.inf
        return
    tagged = [with_given(parse_tree(text), [tag for _, tag in x]) for text in every]
    encoded = encode_trees(model.terminals, 1, tagged, model.oracle.grammar)
    scores = [float(model.weights @ model.oracle.joint_feature(None, tree)) for tree in encoded]
    assert sorted(str(tree) for tree, _ in ranked) == every
    assert [score for _, score in ranked] == pytest.approx(sorted(scores, reverse=True), abs=1e-9)
    (best,) = parser.predict([x])
    assert scores[every.index(str(best))] == pytest.approx(max(scores), abs=1e-9)


def test_given_tags_are_a_column_of_words():
    """The same model, bit for bit, as of words with a callable that returns the tags."""
    rng = np.random.default_rng(0)
    X = noisy(TRAIN, rng)
    tags = {tuple(word for word, _ in x): [tag for _, tag in x] for x in X}
    X = [[(word, tag) for (word, _), tag in zip(x, tags[tuple(word for word, _ in x)], strict=True)] for x in X]
    one = fitted(X, TRAIN)
    texts = [text.replace(f".{GIVEN}", ".own1") for text in one.model_.oracle.templates.texts]
    columns = SpanFeatures(templates=texts, columns=lambda words: tags[tuple(words)])
    other = fitted(TRAIN, terminals="words", features=columns)
    assert np.array_equal(one.coef_, other.coef_) and np.count_nonzero(one.coef_)
    assert one.predict(X) == other.predict([[word for word, _ in x] for x in X])
    assert any(f".{GIVEN}" in text for text in one.model_.oracle.templates.texts)


@pytest.mark.filterwarnings("ignore:the grammar has no tree")
def test_wrong_tags_are_overruled():
    rng = np.random.default_rng(0)
    X, new = noisy(TRAIN, rng), noisy(TEST, rng)
    final, evidence = (fitted(X, TRAIN, terminals=kind) for kind in ("both", "predicted"))
    assert evidence.score(new, TEST) > final.score(new, TEST) + 0.02
    found = evidence.predict(new)
    share = [np.mean([a == b for t, true in zip(y, TEST, strict=True) for (_, a), (_, b) in zip(t, true.tokens())])
             for y in (new, [tree.tokens() for tree in found])]  # fmt: skip
    assert share[1] > share[0] + 0.05
    assert [tree.leaves() for tree in found] == [tree.leaves() for tree in TEST]
    assert all(type(word) is str for tree in found for word in tree.leaves())


def test_without_sentences_the_tags_are_those_of_the_trees():
    one, other = fitted(TRAIN[:30]), fitted([tree.tokens() for tree in TRAIN[:30]], TRAIN[:30])
    assert np.array_equal(one.coef_, other.coef_) and np.count_nonzero(one.coef_)
    assert one.score(TEST[:5]) == one.score([tree.tokens() for tree in TEST[:5]], TEST[:5])


def test_words_keep_their_tags_wherever_they_stand():
    tree = Tree("S", ("x", SHARED, "y", Tree("S", (SHARED, "z"))))
    tags = [str(k) for k in range(len(tree.leaves()))]
    made = with_given(tree, tags)
    assert given_tokens(made) == list(zip(tree.leaves(), tags, strict=True)) and str(made) == str(tree)
    assert given_tokens(pickle.loads(pickle.dumps(made))) == given_tokens(made)
    assert given_tokens(SHARED) == SHARED.tokens()


def test_files_explanations_and_trees_known_in_part(tmp_path):
    known = Tree(TRAIN[0].label, (Tree("...", TRAIN[0].children),))  # one of its trees is the whole one
    model = fitted([*TRAIN[:20], known])
    sentences = [tree.tokens() for tree in TEST[:5]]
    model.save(tmp_path / "model")
    for other in (structsvm.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.predict(sentences) == model.predict(sentences) and other.terminals == "predicted"
    ambiguous, x = fitted(AMBIGUOUS * 5), [("a", "N"), ("b", "V"), ("b", "N")]
    (first, best), (second, next_) = ambiguous.predict_kbest([x], 2)[0]
    found = ambiguous.explain(x)
    assert (found.winner, found.runner_up) == (first, second) and found.margin == pytest.approx(best - next_)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["a"]], r"sentence 0: with terminals='predicted' a token must be a pair \(word, tag\), got 'a'"),
        ([[("a", "")]], "sentence 0: a word and its tag must not be empty"),
        ([[("a", None)]], r"sentence 0: a token must be a str or a pair \(word, tag\)"),
        ([[token[::-1] for token in tree.tokens()] for tree in TEST], "the values of 'word' in X are those that 'tag'"),
    ],
    ids=["words", "empty", "none", "swapped"],
)  # fmt: skip
def test_sentences_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        fitted(TRAIN[:60]).predict(X)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([["a", "b"]], [SHARED], r"sentence 0: its token 0 is 'a'; with terminals='predicted' it must be a pair"),
        ([[("a", "D"), ("c", "N")]], [SHARED], r"sentence 0: its token 1 is \('c', 'N'\), and its tree has"),
        ([[("a", "D")]], [SHARED], "sentence 0: it has 1 tokens, and its tree 2 words"),
        ([parse_tree("(S a (B b))")], None, "tree 0: the word 'a' has no tag of its own; use terminals='words'"),
    ],
    ids=["words", "word", "length", "tree"],
)
def test_training_data_that_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        fitted(X, y)
