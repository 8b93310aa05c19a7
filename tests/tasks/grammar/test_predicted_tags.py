"""Words with a tagger's tags: evidence for a parser that finds the tags of its trees itself."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_reference import ReferenceGrammar

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_treebank
from structsvm.structures.rules import Terminal
from structsvm.structures.trees import Tree, parse_tree
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar
from structsvm.tasks.grammar.terminals import UNKNOWN, _with_words, given_tokens, joined, with_given
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
    """Sentences whose first tags are wrong as often as this; the right one is most often the second one then.

    A tag is taken for one other.
    """

    def given(tag):
        first = TAGS[TAGS.index(tag) ^ 1] if rng.random() < share and TAGS.index(tag) ^ 1 < len(TAGS) else tag
        is_doubtful = rng.random() < (0.2 if first == tag else 0.8)
        return f"{first} {TAGS[min(TAGS.index(first) ^ 1, len(TAGS) - 1)]}" if is_doubtful else first

    return [[(word, given(tag)) for word, tag in tree.tokens()] for tree in trees]


def fitted(X, y=None, **params):
    usual = {"terminals": "predicted", "C": 0.1, "max_iter": 2, "random_state": 0}
    if y is None:  # the tags of the trees
        y = [parse_tree(tree) if isinstance(tree, str) else tree for tree in X]
        X = [tree.tokens() for tree in y]
    return GrammarParser(**usual | params).fit(X, y)


@given(seed=st.integers(0, 10_000), length=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_the_best_tree_is_the_best_of_all_trees_and_taggings(seed, length):
    rng = np.random.default_rng(seed)

    def given(words):
        return [(word, str(rng.choice(["N", "V", "N V", "V N"]))) for word in words]

    trees = list(map(parse_tree, AMBIGUOUS * 4))
    grammar = TreebankGrammar(min_count=1, h=None)  # rules as they are: simple to enumerate
    parser = fitted([given(t.leaves()) for t in trees], trees, prior=None, grammar=grammar, decode="tree")
    model = parser.model_
    model.weights = rng.normal(size=len(model.weights))
    x = given(map(str, rng.choice(["a", "b"], size=length)))
    x[0] = x[0][0], str(rng.choice(["N", "?", "? N"]))  # a tag that no word had
    rules = [(rule.lhs, tuple(s if isinstance(s, str) else f"'{s.name}'" for s in rule.rhs))
             for rule, _ in model.weighted_rules()]  # fmt: skip
    tokens, _ = model.terminals.of_sentence(x, model.oracle.grammar)
    every = ReferenceGrammar(rules, ["S"], model.oracle.grammar.max_unary).trees(map(str, tokens))
    encoded = [_with_words(tree_of(tree), tokens) for tree in every]
    scores = [float(model.weights @ model.oracle.joint_feature(None, tree)) for tree in encoded]
    texts = [str(_with_words(tree, [word for word, _ in x])) for tree in encoded]
    ranked = parser.predict_kbest([x], 10_000)[0]
    if not every:
        assert ranked[0][1] == -np.inf
        return
    assert sorted(str(tree) for tree, _ in ranked) == sorted(texts)
    assert [score for _, score in ranked] == pytest.approx(sorted(scores, reverse=True), abs=1e-9)
    (best,) = parser.predict([x])
    assert scores[texts.index(str(best))] == pytest.approx(max(scores), abs=1e-9)


def tree_of(reference):
    label, children = reference
    return Tree.made(label, tuple(child if isinstance(child, str) else tree_of(child) for child in children))


def test_C_is_chosen_and_unlikely_rules_are_printed():
    X = noisy(TRAIN[:40], np.random.default_rng(0))
    parser = GrammarParser(terminals="predicted", max_iter=1, random_state=0).fit(X, TRAIN[:40])
    assert parser.C_ in parser.validation_["C"] and parser.validation_["n_held_out"] > 0
    several = [name for name in parser.model_.terminals.known if "|" in name]
    assert several and all(f"'{name}'" in parser.grammar_text() for name in several)


def test_templates_see_the_first_tag_and_all():
    X = [[("a", "D"), ("b", "N V")], [("b", "N"), ("a", "D V")]] * 2
    trees = [SHARED, parse_tree("(NP (N b) (D a))")] * 2

    def seen(template, x):
        model = fitted(X, trees, features=SpanFeatures(templates=template)).model_
        (tree,) = encode_trees(model.terminals, 1, [with_given(SHARED, x)], model.oracle.grammar)
        return model.oracle.joint_feature(None, tree)[len(model.oracle.grammar.features) :].tolist()

    for template in ("first.tag", "last.tag", "split.tag"):
        assert seen(template, ["D", "N V"]) == seen(template, ["D", "N"]) != seen(template, ["V", "V"])
    for template in ("last.tags", "split.tags"):
        assert seen(template, ["D", "N V"]) == seen(template, ["D", " N  V "]) != seen(template, ["D", "N"])


def test_tags_that_are_rarely_given_together_count_as_the_first():
    trees = list(map(parse_tree, AMBIGUOUS * 2))
    X = [tree.tokens() for tree in trees]
    X[0] = [("a", "N V"), *X[0][1:]]
    X[1] = [("a", "V N"), *X[1][1:]]
    X[2] = [("a", "V N"), *X[2][1:]]
    terminals = fitted(X, trees).model_.terminals
    grammar = fitted(X, trees).model_.oracle.grammar
    assert set(grammar.terminals) == {"N", "V", "V|N", UNKNOWN} and terminals.known == {"N", "V", "V|N"}
    found = [str(terminals.of_given("a", tags, grammar)) for tags in ("N V", "V  N", "V", "? V", "N ?")]
    assert found == ["N", "V|N", "V", UNKNOWN, "N"]


@pytest.mark.filterwarnings("ignore:the grammar has no tree")
def test_wrong_tags_are_overruled():
    rng = np.random.default_rng(0)
    X, new = noisy(TRAIN, rng), noisy(TEST, rng)
    later = [[(word, tag.split()[0]) for word, tag in x] for x in new]
    parser = fitted(X, TRAIN)
    assert parser.score(new, TEST) > 0.85
    found = parser.predict(new)
    share = [np.mean([a == b for t, true in zip(y, TEST, strict=True) for (_, a), (_, b) in zip(t, true.tokens())])
             for y in (later, [tree.tokens() for tree in found])]  # fmt: skip
    assert share[1] > share[0] + 0.05
    assert [tree.leaves() for tree in found] == [tree.leaves() for tree in TEST]
    assert all(type(word) is str for tree in found for word in tree.leaves())


def test_without_sentences_the_tags_are_those_of_the_trees_with_a_warning():
    one, other = (GrammarParser(terminals="predicted", C=0.1, max_iter=2, random_state=0) for _ in range(2))
    for train in (one.fit, one.partial_fit):
        with pytest.warns(AdviceWarning, match=r"learns from the trees' own tags, and will trust a tagger's .*TaggedP"):
            train(TRAIN[:30])
    other.fit([tree.tokens() for tree in TRAIN[:30]], TRAIN[:30])
    other.partial_fit([tree.tokens() for tree in TRAIN[:30]], TRAIN[:30])
    assert np.array_equal(one.coef_, other.coef_) and np.count_nonzero(one.coef_)
    assert one.score(TEST[:5]) == one.score([tree.tokens() for tree in TEST[:5]], TEST[:5])


def test_frequencies_of_given_tags_are_a_grammar():
    parser = GrammarParser.from_counts(TRAIN, terminals="predicted")
    assert np.isfinite(parser.coef_).all() and parser.score(TEST) > 0.8
    rare = [math.exp(weight) for rule, weight in parser.grammar_ if rule.rhs == (Terminal(UNKNOWN),)]
    assert rare and all(0.0 < share < 1.0 for share in rare)  # as if one such word had been seen


@given(st.lists(st.lists(st.text("|\\N", min_size=1), min_size=1, max_size=3), min_size=2, max_size=2))
def test_names_of_terminals_tell_tags_apart(lists):
    one, other = (joined(" ".join(tags)) for tags in lists)
    assert (one == other) == (lists[0] == lists[1])


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
        ([[("a", "D"), ("b", 3)]], [SHARED], "sentence 0: the tag of its token 1 must be a str, got 3"),
        ([[("a", "D")]], [SHARED], "sentence 0: it has 1 tokens, and its tree 2 words"),
        (
            [[("a", None), ("b", "B")]],
            [parse_tree("(S a (B b))")],
            "tree 0: the word 'a' has no tag of its own; use terminals='words'",
        ),
    ],
    ids=["words", "word", "number", "length", "tree"],
)
def test_training_data_that_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        fitted(X, y)
