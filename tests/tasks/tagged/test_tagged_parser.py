"""TaggedParser: tags of training sentences come from taggers that do not know them."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import structsvm
from structsvm.datasets import make_dependency_trees, make_treebank
from structsvm.model_file import read_model, write_model
from structsvm.structures.dependencies import Word
from structsvm.tasks import DependencyParser, GrammarParser, SequenceLabeler, TaggedParser
from structsvm.tasks.tagged.lattice import BATCH, LEAST, MOST
from structsvm.tasks.tagged.sentences import MOST_LABELS, columns_in, columns_of

TRAIN, TEST = (make_dependency_trees(n, max_length=10, random_state=n) for n in (90, 30))
PARSER = DependencyParser(C=0.1, max_iter=2, random_state=0)
TAGGER = SequenceLabeler(C=0.1, loss="hamming", max_iter=2, probability=False, random_state=0)


class Memory(BaseEstimator):
    """Tags the sentences that it was trained on rightly, and those that it has not seen as X, with XPOS Y."""

    def fit(self, X, y):
        self.seen_ = {tuple(word for (word,) in one) if isinstance(one[0], tuple) else tuple(one): tags
                      for one, tags in zip(X, y, strict=True)}  # fmt: skip
        return self

    def predict(self, X):
        return [self.seen_.get(tuple(one), ["X\tY"] * len(one)) for one in X]


class Seen(BaseEstimator):
    """A parser that keeps what it is given."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        return self

    def predict(self, X):
        return X


def test_a_parser_never_sees_tags_of_a_tagger_that_knows_the_sentence():
    trees = [tree for k, tree in enumerate(TRAIN) if str(tree) not in {str(other) for other in TRAIN[:k]}]
    one = TaggedParser(Seen(), Memory(), n_folds=3).fit(trees, sample_weight=np.ones(len(trees)))
    assert one.columns_ == ("upos", "xpos") and one.tag_accuracy_ == 0.0
    assert [[Word(form, upos="X", xpos="Y") for form in str(tree).split()] for tree in trees] == one.parser_.X_
    assert one.parser_.y_ == [tree.arcs for tree in trees] and len(one.parser_.weight_) == len(trees)
    # The tagger of new sentences has been trained on all; the tags of trees are not looked at.
    tagged = [[Word(w.form, upos=w.upos, xpos=w.xpos) for w in tree.words] for tree in trees[:2]]
    assert one.predict(trees[:2]) == tagged
    pairs = [[(word.form, "zz") for word in trees[0].words], [word.form for word in trees[0].words]]
    assert one.predict(pairs) == tagged[:1] * 2


@pytest.mark.parametrize(
    ("hidden", "columns"),
    [
        ({}, ("upos", "xpos")),
        ({"xpos": "_"}, ("upos",)),
        ({"feats": "Case=Nom"}, ("upos", "xpos")),
        ({"xpos": "_", "feats": "Case=Nom"}, ("upos", "feats")),
    ],
    ids=["xpos", "upos", "both", "feats"],
)
def test_columns_of_tags_are_those_of_training(hidden, columns):
    X = [[word._replace(**hidden) for word in tree.words] for tree in TRAIN[:30]]
    one = TaggedParser(Seen(), Memory(), n_folds=7).fit(X * 2, [tree.arcs for tree in TRAIN[:30]] * 2)
    wanted = [[(word.form, word.upos) for word in sentence] for sentence in X]
    if len(columns) > 1:
        wanted = [[Word(word.form, **{name: getattr(word, name) for name in columns}) for word in one] for one in X]
    # Each sentence has a copy in another fold, so that the tagger knows it.
    assert one.columns_ == columns and wanted * 2 == one.parser_.X_ and one.tag_accuracy_ == 1.0


@pytest.mark.parametrize(("n", "columns"), [(MOST_LABELS, ("upos", "xpos")), (MOST_LABELS + 1, ("upos",))])
def test_many_pairs_of_tags_are_too_many(n, columns):
    X = [[Word("a", upos="N", xpos=str(k)), Word("b", upos="N", xpos=str(k // 2))] for k in range(n)]
    assert columns_in(X) == columns


def test_few_words_with_xpos_are_too_few():
    X = [[Word("a", upos="N", feats="K=V"), Word("b", upos="N", feats="K=W")] for _ in range(4)]
    X[0][0] = X[0][0]._replace(xpos="X")
    assert columns_in(X) == ("upos", "feats")
    assert columns_in([[word._replace(xpos="X") for word in one] for one in X]) == ("upos", "xpos")


def test_upos_stands_in_for_a_value_that_is_not_given():
    class Doubtful(Memory):
        classes_, temperature_ = ["N\t_", "V\tX"], 1.0

        def predict_marginals(self, X):
            assert len(X) <= BATCH
            return [np.full((len(one), 2), 0.5) for one in X]

    X = [[Word("a", upos="V", xpos="X"), Word("b", upos="V", xpos="X"), Word("c", upos="N")]] * (BATCH + 20)
    parser = TaggedParser(PARSER, Doubtful(), n_folds=2).fit(X, [[(0, "root"), (1, "x"), (1, "x")]] * len(X))
    tagged = parser.tagged(X)
    assert len(tagged) == len(X) and {(w.upos, w.xpos, w.feats) for one in tagged for w in one} == {("N", "_", "N|X")}


def test_tags_of_one_column_may_have_tabs_and_must_be_text():
    X, y = [[Word("a", upos="D\t1"), Word("b", upos="N")]] * 4, [[(2, "x"), (0, "root")]] * 4
    words = TaggedParser(PARSER, Memory(), n_folds=2).fit(X, y).parser_
    assert words.predict(X) == y
    for column in ("upos", "xpos"):
        wrong = [[word._replace(**{"xpos": "X", column: 3}) for word in X[0]]] * 4
        with pytest.raises(ValueError, match=f"sentence 0: a word's {column} must be a str, got 3"):
            TaggedParser(PARSER, Memory(), n_folds=2).fit(wrong, y)
    pairs, trees = [[("a", 3), ("b", "N")]] * 4, ["(S (D a) (N b))"] * 4
    with pytest.raises(ValueError, match="sentence 0: a word's upos must be a str, got 3"):
        TaggedParser(tagger=Memory(), n_folds=2).fit(pairs, trees)


def test_a_tagger_may_have_no_marginals():
    class Scaled(Memory):
        temperature_ = 1.0

    assert TaggedParser(PARSER, Scaled(), n_folds=2).fit(TRAIN[:10]).predict(TEST[:1])


def test_a_column_that_is_not_in_all_words_is_left_out():
    pairs = [[(word.form, word.upos) for word in tree.words] for tree in TRAIN[:10]]
    X, y = [*pairs, *(tree.words for tree in TRAIN[10:20])], [tree.arcs for tree in TRAIN[:20]]
    assert TaggedParser(Seen(), Memory(), n_folds=2).fit(pairs * 2, y).columns_ == ("upos",)
    assert TaggedParser(Seen(), Memory(), n_folds=2).fit(X, y).columns_ == ("upos",)
    with pytest.raises(ValueError, match=r"sentence 0: a tag of the word 'a' has a tab: \['D', 'x\\ty'\]"):
        TaggedParser(Seen(), Memory(), n_folds=2).fit([[Word("a", upos="D", xpos="x\ty")]] * 4, y[:4])

    class Plain(Memory):
        def predict(self, X):
            return [["D"] * len(one) for one in X]

    with pytest.raises(ValueError, match="the tagger's label 'D' of 'nnp4' has not the columns upos, xpos"):
        TaggedParser(Seen(), Plain(), n_folds=2).fit(TRAIN[:10])


def test_dependencies_from_words_alone():
    parser = TaggedParser(PARSER, TAGGER, n_folds=2).fit(TRAIN)
    words = [[word.form for word in tree.words] for tree in TEST]
    assert parser.predict(words) == parser.predict(TEST) == parser.parser_.predict(parser.tagged(words))
    assert 0.5 < parser.tag_accuracy_ <= 1.0
    bare = [tree.with_arcs(tree.arcs).words for tree in TRAIN]
    without = DependencyParser(C=0.1, max_iter=2, random_state=0).fit(
        [[Word(word.form) for word in sentence] for sentence in bare], [tree.arcs for tree in TRAIN]
    )
    assert parser.score(TEST) >= without.score([[Word(w.form) for w in t.words] for t in TEST], [t.arcs for t in TEST])
    assert parser.score(words, [tree.arcs for tree in TEST]) == parser.score(TEST)
    one, two = (tree for tree, _ in parser.predict_kbest(words[:1], 2)[0])
    found = parser.explain(words[0])
    assert (found.winner, found.runner_up) == (one, two)


def test_one_file_holds_tagger_and_parser(tmp_path):
    path, words = tmp_path / "model", [[word.form for word in tree.words] for tree in TEST[:5]]
    parser = TaggedParser(PARSER, TAGGER, n_folds=2).fit(TRAIN)
    parser.save(path)
    for other in (TaggedParser.load(path), structsvm.load(path, mmap=True), pickle.loads(pickle.dumps(parser))):
        assert other.predict(words) == parser.predict(words)
        assert (other.tag_accuracy_, other.n_folds) == (parser.tag_accuracy_, 2)
        assert repr(other.parser) == repr(PARSER) and repr(other.tagger) == repr(TAGGER)
    parser.parser_.save(path)
    with pytest.raises(structsvm.ModelFileError, match="a model for the task 'dependency', but one for 'tagged'"):
        TaggedParser.load(path)
    before = path.read_bytes()
    parser.tagger_ = Memory()
    with pytest.raises(TypeError, match="cannot hold a tagger that is no SequenceLabeler: Memory"):
        parser.save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": ["xpos"]}, "'columns' must be some of"),
        ({"columns": ["upos", "lemma"]}, "'columns' must be some of"),
        ({"columns": [1]}, "'columns' must be some of"),
        ({"columns": 3}, "not a sound tagged model"),
        ({"tagger": None}, "not a sound tagged model"),
        ({"tag_accuracy": 2.0}, "'tag_accuracy' must be from 0 to 1"),
        ({"n_folds": 1}, "'n_folds' must be an integer from 2"),
        ({"tagger": {"estimator": "DependencyParser"}}, "not a sound tagged model: 'DependencyParser'"),
        ({"parser": {"estimator": "DependencyParser"}}, "not a sound dependency model: '"),
    ],
)
def test_files_that_are_not_sound(tmp_path, changed, message):
    path = tmp_path / "model"
    TaggedParser(PARSER, TAGGER, n_folds=2).fit(TRAIN[:20]).save(path)
    file = read_model(path)
    write_model(path, file.kind, file.meta | changed, file.arrays)
    with pytest.raises(structsvm.ModelFileError, match=message):
        structsvm.load(path)


@pytest.mark.filterwarnings("ignore:the grammar has no tree")
def test_constituents_from_words_alone(tmp_path):
    train, test = make_treebank(60, random_state=0), make_treebank(10, random_state=1)
    parser = TaggedParser(GrammarParser(terminals="both", C=0.3, max_iter=2, random_state=0), TAGGER, n_folds=2)
    parser.fit(list(map(str, train)))
    predicted = parser.predict([tree.leaves() for tree in test])
    assert [tree.leaves() for tree in predicted] == [tree.leaves() for tree in test]
    assert parser.score(test) > 0.5
    parser.save(tmp_path / "model")
    assert structsvm.load(tmp_path / "model").predict([tree.leaves() for tree in test]) == predicted


def test_a_parser_that_decides_has_the_likely_tags(tmp_path):
    train, test = make_treebank(120, random_state=0), make_treebank(10, random_state=1)
    tagger = SequenceLabeler(C=0.1, loss="hamming", max_iter=2, templates="rich", random_state=0)
    parser = TaggedParser(GrammarParser(terminals="predicted", C=0.3, max_iter=2, random_state=0), tagger, n_folds=2)
    words = [tree.leaves() for tree in test]
    tagged = parser.fit(train).tagged(words)
    chances, names = parser.tagger_.predict_marginals(columns_of(tagged)), list(parser.tagger_.classes_)
    for sentence, rows in zip(tagged, chances, strict=True):
        for (_, tags), row in zip(sentence, rows, strict=True):
            likely = sorted(np.flatnonzero(row >= LEAST), key=lambda k: -row[k])[:MOST] or [int(row.argmax())]
            assert tags.split() == [names[k] for k in likely]
    predicted = parser.predict(words)
    assert [tree.leaves() for tree in predicted] == words and parser.predict(words) == parser.parser_.predict(tagged)
    parser.save(tmp_path / "model")
    assert structsvm.load(tmp_path / "model").predict(words) == predicted
    final = TaggedParser(clone(parser.parser).set_params(terminals="both"), tagger, n_folds=2).fit(train)
    best = final.tagger_.predict(columns_of(tagged))
    assert final.tagged(words) == [list(zip(one, tags, strict=True)) for one, tags in zip(words, best, strict=True)]
    without = TaggedParser(parser.parser, TAGGER, n_folds=2).fit(train)
    assert all(len(tag.split()) == 1 for sentence in without.tagged(words) for _, tag in sentence)


def test_parsers_of_before_have_no_column_of_likely_tags(tmp_path):
    tagger = SequenceLabeler(C=0.1, loss="hamming", max_iter=2, templates="rich", random_state=0)
    X, y = [pairs_of(tree) for tree in TRAIN], [tree.arcs for tree in TRAIN]
    old = TaggedParser(PARSER, tagger, n_folds=2).fit(X, y)
    expected = [[(word.form, word.upos) for word in one] for one in old.tagged(X)]
    old.parser_.fit(expected, y)
    old.save(tmp_path / "model")
    file = read_model(tmp_path / "model")
    del file.meta["columns"]
    write_model(tmp_path / "model", file.kind, file.meta, file.arrays)
    state = vars(old) | {}
    del state["columns_"]
    pickled = TaggedParser.__new__(TaggedParser)
    pickled.__setstate__(state)
    for other in (structsvm.load(tmp_path / "model"), pickled):
        assert other.columns_ == ("upos",) and other.tagged(X) == expected and other.predict(X[:3])
    unfitted = pickle.loads(pickle.dumps(TaggedParser(PARSER)))
    assert not hasattr(unfitted, "columns_")


def test_heads_are_found_with_the_likely_tags_as_a_column():
    tagger = SequenceLabeler(C=0.1, loss="hamming", max_iter=2, templates="rich", random_state=0)
    for X, columns in ((TRAIN, ("upos", "xpos")), ([pairs_of(tree) for tree in TRAIN], ("upos",))):
        parser = TaggedParser(PARSER, tagger, n_folds=2).fit(X, [tree.arcs for tree in TRAIN])
        words = [pairs_of(tree) for tree in TEST]
        tagged = parser.tagged(words)
        assert parser.columns_ == columns and parser.predict(words) == parser.parser_.predict(tagged)
        names, several = [name.split("\t") for name in parser.tagger_.classes_], 0
        chances = parser.tagger_.predict_marginals(columns_of(words))
        for sentence, rows in zip(tagged, chances, strict=True):
            for word, row in zip(sentence, rows, strict=True):
                likely = sorted(np.flatnonzero(row >= LEAST), key=lambda k: -row[k])[:MOST] or [int(row.argmax())]
                assert [getattr(word, name) for name in columns] == names[likely[0]]
                assert word.feats == "|".join(dict.fromkeys(names[k][-1] for k in likely))
                several += len(likely) > 1
        assert several > 0


def pairs_of(tree):
    return [(word.form, word.upos) for word in tree.words]


def test_tags_with_blanks_are_refused_where_they_would_be_several():
    X, y = [[("ice", "N N"), ("melts", "V")]] * 4, ["(S (NP (N ice)) (VP (V melts)))"] * 4
    with pytest.raises(ValueError, match="sentence 0: the tag 'N N' must not have blanks"):
        TaggedParser(GrammarParser(terminals="predicted"), Memory(), n_folds=2).fit(X, y)


def test_the_usual_tagger_is_a_margin_with_probabilities():
    tagger = TaggedParser(PARSER, n_folds=2).fit(TRAIN).tagger_
    assert (tagger.loss, tagger.probability) == ("hamming", True) and tagger.temperature_ > 0.0


def test_trees_may_be_read_once_and_wrong_ones_are_named():
    X, trees = [tree.words for tree in TRAIN[:20]], [tree.arcs for tree in TRAIN[:20]]
    read = TaggedParser(tagger=TAGGER, n_folds=2).fit(X, iter(trees))
    assert read.predict(X[:3]) == TaggedParser(tagger=TAGGER, n_folds=2).fit(X, trees).predict(X[:3])
    heads = [np.array([head for head, _ in tree]) for tree in trees]
    with pytest.raises(ValueError, match=r"sentence 0: .*arc"):
        TaggedParser(tagger=TAGGER, n_folds=2).fit(X, heads)


def test_the_usual_parser_is_of_the_kind_of_tree():
    tagger = SequenceLabeler(C=0.1, loss="hamming", max_iter=1, probability=False, random_state=0)
    trees = make_treebank(20, random_state=0)
    for X, y, kind in (
        (TRAIN[:20], None, DependencyParser),
        (trees, None, GrammarParser),
        ([tree.tokens() for tree in trees], [tree.to_nltk() for tree in trees], GrammarParser),
        ([tree.words for tree in TRAIN[:20]], [tree.arcs for tree in TRAIN[:20]], DependencyParser),
    ):
        one = TaggedParser(tagger=tagger, n_folds=2).fit(X, y)
        assert type(one.parser_) is kind and getattr(one.parser_, "terminals", "predicted") == "predicted"


@pytest.mark.parametrize(
    ("params", "X", "message"),
    [
        ({"n_folds": 1}, TRAIN, "The 'n_folds' parameter of TaggedParser must be an int in the range"),
        ({}, TRAIN[:4], "4 sentences cannot be divided into n_folds=5"),
        ({}, "text", "X must be a list of sentences"),
        ({}, 5, "X must be a list of sentences, got 5"),
        ({"n_folds": 2}, [[("a", "D")], ["b"]], "sentence 1: 'b' has no tag"),
        ({"n_folds": 2}, [[], [("a", "D")]], "sentence 0: it has no words"),
        ({"n_folds": 2}, [[("a", "D")], [("a", "D", 1)]], "sentence 1: a word must be a str, a pair"),
        ({"n_folds": 2}, [[("a", "D")], 1], "sentence 1: it must be a list of words or a tree"),
    ],
    ids=["folds", "few", "text", "integer", "tags", "words", "token", "number"],
)
def test_what_is_refused(params, X, message):
    with pytest.raises(ValueError, match=message):
        TaggedParser(PARSER, TAGGER, **params).fit(X)


@pytest.mark.parametrize("parser", [PARSER, GrammarParser(terminals="both", C=0.1, max_iter=1, random_state=0)])
def test_sentences_without_words_are_parsed_as_by_the_parser(parser):
    trees = TRAIN if parser is PARSER else make_treebank(40, random_state=0)
    one = TaggedParser(parser, TAGGER, n_folds=2).fit(trees)
    words = [word[0] for word in one.tagged(trees[:1])[0]]
    (nothing,) = one.parser_.predict([[]])
    assert one.predict([[], words, []]) == [nothing, *one.predict([words]), nothing] and one.predict([[]]) == [nothing]


def test_compact_is_refused_by_name():
    with pytest.raises(TypeError, match="TaggedParser has no compact models: parser_ and tagger_"):
        TaggedParser().compact(bits=8)
