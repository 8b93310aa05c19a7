"""Attributes of words that a callable of the user's makes, in both parsers; clusters of vectors."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import structsvm
from structsvm.datasets import make_dependency_trees, make_treebank
from structsvm.features.word_codes import VectorClusters, WordVectors
from structsvm.model_file import read_model, write_model
from structsvm.structures.dependencies import Word
from structsvm.tasks import ArcFeatures, DependencyParser, GrammarParser, SpanFeatures
from structsvm.tasks.common.units import units_of_vectors

ARCS = make_dependency_trees(60, max_length=10, random_state=0)
TREES = make_treebank(60, random_state=0)
BARE = [[Word(word.form) for word in tree.words] for tree in ARCS]
TAG_OF = {word.form: word.upos for tree in ARCS for word in tree.words}
LABEL_OF = {word: tag for tree in TREES for word, tag in tree.tokens()}


def attributes(words):
    """The tags of words as attributes, and their lengths."""
    return [(TAG_OF.get(word, LABEL_OF.get(word, "?")), str(len(word))) for word in words]


def first_words(words):
    return [words[0]] * len(words)


def dependency(columns=None, warm_start=False, **templates):
    features = ArcFeatures(columns=columns, **templates)
    parser = DependencyParser(C=0.1, max_iter=2, random_state=0, features=features, warm_start=warm_start)
    return parser.fit(BARE, [tree.arcs for tree in ARCS]), BARE


def grammar(columns=None, templates=None, terminals="words", **params):
    features = SpanFeatures(columns=columns, templates=templates)
    parser = GrammarParser(C=0.3, max_iter=1, terminals=terminals, random_state=0, features=features, **params)
    return parser.fit(TREES), [tree.tokens() for tree in TREES]


def test_attributes_stand_in_for_columns():
    """A column of the tags of words, given by a callable, is what the column of tags is."""
    templates = "h.own1 m.own1 dist\nh.own1 b.own1 m.own1 dist\nm.own1 m+1.own1 dir"
    pairs = "h.own1 s.own1 m.own1 dir\ng.own1 h.label m.own1"
    given = {"arcs": templates, "labels": "m.own1", "pairs": pairs}
    of_tags = {name: text.replace("own1", "upos") for name, text in given.items()}
    tagged = DependencyParser(C=0.1, max_iter=2, random_state=0, features=ArcFeatures(**of_tags)).fit(ARCS)
    own, X = dependency(attributes, **given)
    assert own.predict(X) == tagged.predict(ARCS)
    assert np.count_nonzero(own.coef_) == np.count_nonzero(tagged.coef_)
    templates = "first.own1\nlast.own1 last+1.own1\nsplit-1.own1 split.own1"
    scores = [grammar(attributes, text, terminals="tags")[0].coef_
              for text in (templates, templates.replace("own1", "own2"))]  # fmt: skip
    assert not np.array_equal(*scores)


@pytest.mark.parametrize("make", [dependency, grammar])
def test_whole_sentences_are_seen_and_files_hold_no_callable(make, tmp_path):
    plain, X = make()
    parser, _ = make(columns=attributes)
    assert parser.coef_.tolist() != plain.coef_.tolist()  # there are templates for them as it comes
    expected = parser.predict(X[:10])
    parser.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    with pytest.raises(ValueError, match=r"trained with a callable 'columns'.*set_params"):
        loaded.predict(X[:10])
    assert loaded.set_params(features__columns=attributes).predict(X[:10]) == expected
    assert pickle.loads(pickle.dumps(parser)).predict(X[:10]) == expected
    again = loaded.set_params(features__columns=first_words)
    with pytest.raises(ValueError, match="'columns' must return 2 str for each of"):
        structsvm.load(tmp_path / "m").set_params(features__columns=first_words).predict(X[:1])
    assert again.predict(X[:10]) == expected  # the model's own stay
    seen = []
    make(columns=lambda words: seen.append(words) or words)
    assert max(map(len, seen)) == max(map(len, X))


@pytest.mark.parametrize("make", [dependency, grammar])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (lambda words: words[1:], "'columns' must return 1 str for each of"),
        (lambda words: [1 for _ in words], "'columns' must return 1 to 256 str for each of"),
        (lambda words: [(1,) for _ in words], "'columns' must return 1 str for each of"),
        (lambda words: [() for _ in words], "'columns' must return 1 to 256 str for each of"),
        (lambda words: [("a",) * 257 for _ in words], "'columns' must return 1 to 256 str for each of"),
        ("text", "The 'columns' parameter of .* must be a callable or None"),
    ],
    ids=["few", "numbers", "number", "none", "many", "text"],
)
def test_what_is_no_attribute(make, columns, message):
    with pytest.raises(ValueError, match=message):
        make(columns)


@pytest.mark.parametrize("make", [dependency, grammar])
@pytest.mark.parametrize("n", [257, 10**9, -1, 1.0])
def test_files_with_another_number_of_them(make, n, tmp_path):
    path = tmp_path / "m"
    make(columns=attributes)[0].save(path)
    file = read_model(path)
    (file.meta if make is dependency else file.meta["terminals"])["own"] = n
    write_model(path, file.kind, file.meta, file.arrays)
    with pytest.raises(structsvm.ModelFileError, match=r"own' must be an integer from 0 to 256"):
        structsvm.load(path)


@pytest.mark.parametrize("make", [dependency, grammar])
def test_training_goes_on_with_them_alone(make):
    parser, _ = make(columns=attributes, warm_start=True)
    data = (BARE, [tree.arcs for tree in ARCS]) if make is dependency else (TREES,)
    assert parser.fit(*data).n_iter_ > 1
    with pytest.raises(ValueError, match="the model was trained with 'columns'"):
        parser.set_params(features__columns=None).fit(*data)
    parser, _ = make(warm_start=True)
    with pytest.raises(ValueError, match="the model was trained without 'columns'"):
        parser.set_params(features__columns=attributes).fit(*data)


def test_clusters_of_vectors():
    rng = np.random.default_rng(0)
    tags = sorted(set(TAG_OF.values()))
    centre = dict(zip(tags, 3.0 * np.eye(len(tags)), strict=True))
    vectors = {word: centre[tag] + 0.01 * rng.normal(size=len(tags)) for word, tag in TAG_OF.items()}
    clusters = VectorClusters(vectors, [len(centre), 2])
    names = {word: name for word in TAG_OF for name in clusters([word])}
    of_tags = {tag: {name[0] for word, name in names.items() if TAG_OF[word] == tag} for tag in tags}
    assert all(len(found) == 1 for found in of_tags.values()) and len(set.union(*of_tags.values())) > len(tags) // 2
    assert {name for _, name in names.values()} == {"0", "1"}
    assert clusters(["zebra", next(iter(TAG_OF)).upper()]) == [("_", "_"), names[next(iter(TAG_OF)).lower()]]
    test = make_dependency_trees(60, max_length=10, random_state=1)
    bare, arcs = [[Word(word.form) for word in tree.words] for tree in test], [tree.arcs for tree in test]
    assert dependency(columns=clusters)[0].score(bare, arcs) >= dependency()[0].score(bare, arcs)
    for wrong in ({"a": [1.0], "b": [1.0, 2.0]}, {"a": [np.nan]}):
        with pytest.raises(ValueError, match="'vectors' must be finite rows of one length"):
            VectorClusters(wrong)
    with pytest.raises(ValueError, match="the 'sizes' of VectorClusters must be one number of clusters or more"):
        VectorClusters(vectors, [])


NUMBERS = {word: [float(len(word)), float(ord(word[0]) % 7) - 3.0] for word in (*TAG_OF, *LABEL_OF)}


def mixed(words):
    """A vector, an attribute, and another vector of each word in its sentence."""
    vectors = WordVectors(NUMBERS)(words)
    return [(row, words[k][-1], row[:1] * (k == 0)) for k, row in enumerate(vectors)]


@pytest.mark.parametrize("make", [dependency, grammar])
def test_vectors_are_trained_on_and_files_hold_their_sizes(make, tmp_path):
    parser, X = make(columns=mixed, warm_start=True)
    assert parser.coef_.shape > make(columns=lambda words: [word[-1] for word in words])[0].coef_.shape
    X = [X[0], [], *X[1:]]  # a sentence without words
    expected = parser.predict(X[:20])
    parser.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    with pytest.raises(ValueError, match=r"trained with a callable 'columns'.*set_params"):
        loaded.predict(X[:1])
    with pytest.raises(ValueError, match=r"return 3 str for each of .*, or arrays .*, here own1 of 2, own3 of 1; got"):
        structsvm.load(tmp_path / "m").set_params(features__columns=WordVectors(NUMBERS)).predict(X[:1])
    loaded.set_params(features__columns=mixed, n_jobs=2)
    assert loaded.predict(X[:20]) == pickle.loads(pickle.dumps(parser)).predict(X[:20]) == expected
    x, best = next((x, trees) for x, trees in zip(X, loaded.predict_kbest(X, 2), strict=True) if len(trees) == 2)
    explained = parser.explain(x)
    assert explained.winner == best[0][0]
    assert sum(one.value for one in explained.contributions) == pytest.approx(best[0][1] - best[1][1], rel=1e-4)
    data = (BARE, [tree.arcs for tree in ARCS]) if make is dependency else (TREES,)
    assert parser.fit(*data).n_iter_ > loaded.n_iter_
    assert parser.partial_fit(*data).result_.gap >= 0.0
    file = read_model(tmp_path / "m")
    header = file.meta if make is dependency else file.meta["terminals"]
    for wrong, message in (([2, 0], "'own_sizes' must be 3"), ([2, 0, 10**9], "'own_sizes'"), ([2, 0, 2], "weights")):
        header["own_sizes"] = wrong
        write_model(tmp_path / "wrong", file.kind, file.meta, file.arrays)
        with pytest.raises(structsvm.ModelFileError, match=message):
            structsvm.load(tmp_path / "wrong")


@pytest.mark.parametrize("make", [dependency, grammar])
def test_zeros_are_no_vectors(make):
    """Weights of numbers that are 0 stay 0, and all others are what they are without them."""
    plain, X = make()
    zeros, _ = make(columns=lambda words: np.zeros((len(words), 3)))
    n = len(plain.coef_)
    assert zeros.coef_[:n].tolist() == plain.coef_.tolist() and not zeros.coef_[n:].any() and len(zeros.coef_) > n
    assert zeros.predict(X[:10]) == plain.predict(X[:10])


@pytest.mark.parametrize("make", [dependency, grammar])
def test_vectors_that_tell_tags_are_as_good_as_tags(make):
    tags = sorted({*TAG_OF.values(), *LABEL_OF.values()})
    vectors = WordVectors({word: np.eye(len(tags))[tags.index(tag)] for word, tag in (TAG_OF | LABEL_OF).items()})
    if make is dependency:
        templates = {"arcs": "h.shape m.shape dist", "labels": "m.own1 dir\nh.own1 dir\nh+1.own1"}
        test = make_dependency_trees(60, max_length=10, random_state=1)
        data = [[Word(word.form) for word in tree.words] for tree in test], [tree.arcs for tree in test]
        blind = {**templates, "labels": "dir"}
        assert make(columns=vectors, **templates)[0].score(*data) > make(**blind)[0].score(*data) + 0.2
    else:
        # Without frequencies, which tell the words' tags on their own.
        sighted, _ = make(columns=vectors, prior=None, templates="first.own1\nlast+1.own1\nsplit.own1")
        assert sighted.score(TREES) > make(prior=None, templates="length")[0].score(TREES) + 0.01


@pytest.mark.parametrize("make", [dependency, grammar])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (lambda words: [np.zeros(1 + k) for k, _ in enumerate(words)], "here own1 of 1; got"),
        (lambda words: np.full((len(words), 2), np.nan), "'columns' must return finite numbers, and does not for"),
        (lambda words: np.full((len(words), 2), 1e300), "'columns' must return finite numbers"),
        (lambda words: np.zeros((len(words), 2, 2)), "'columns' must return 1 str for each"),
        (lambda words: np.zeros((len(words), 0)), "'columns' must return 1 str for each"),
        (lambda words: np.zeros(len(words)), "'columns' must return 1 to 256 str for each"),
        (lambda words: np.array(words, dtype=object)[:, None], "'columns' must return 1 str for each"),
        (lambda words: np.zeros((len(words), 2**16 + 1), np.float32), "65536 at most, here own1 of 65537"),
        (lambda words: np.zeros((len(words) - 1, 2)), "'columns' must return 1 str for each"),
    ],
    ids=["ragged", "nan", "float32", "matrices", "nothing", "a number", "objects", "long", "few"],
)
def test_what_is_no_vector(make, columns, message):
    with pytest.raises(ValueError, match=message):
        make(columns)


def test_word_vectors():
    vectors = WordVectors({"cat": np.array([3, 4]), "of": [0.0, 1.0]}, length=2.0)
    found = vectors(["cat", "OF", "zebra"])
    assert found.dtype == np.float32 and not found[2].any() and vectors([]).shape == (0, 2)
    assert (np.linalg.norm(found[:2], axis=1) ** 2).mean() == pytest.approx(4.0)
    assert WordVectors({"cat": [3, 4]}, None)(["cat"]).tolist() == [[3.0, 4.0]]
    assert not WordVectors({"cat": [0.0, 0.0]})(["cat"]).any()
    for wrong in ({}, {"a": [1.0], "b": [1.0, 2.0]}, {"a": [np.nan]}, {"a": 1.0}, {"a": []}, {"a": [[1.0]]}):
        with pytest.raises(ValueError, match="'vectors' must be finite rows of one length"):
            WordVectors(wrong)
    for length in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="The 'length' parameter of WordVectors must be positive"):
            WordVectors({"a": [1.0]}, length)


DRAWN = {word: number for number, word in zip(np.random.default_rng(0).normal(size=500), TAG_OF | LABEL_OF)}
SIZES = {
    "none": lambda word, k: 0.0,
    "plain": lambda word, k: DRAWN[word],
    "times": lambda word, k: 1.7e9 + 1e7 * DRAWN[word],
    "large": lambda word, k: 1e9 * DRAWN[word],
    "ages": lambda word, k: 50.0 * DRAWN[word],
    "one": lambda word, k: 1e30 if k == 3 else DRAWN[word],
}


def vectors(kind, factor=1.0):
    """The tags of words as vectors, and one number more, which says nothing."""
    tags = sorted({*TAG_OF.values(), *LABEL_OF.values()})
    runs = {"n": 0}

    def of(words):
        runs["n"] += 1
        return [
            (
                np.array([0.7 * (TAG_OF.get(word, LABEL_OF.get(word)) == tag) for tag in tags]),
                np.array([factor * SIZES[kind](word, len(words) + k if runs["n"] % 7 else k)]),
            )
            for k, word in enumerate(words)
        ]

    return of


@pytest.mark.parametrize("make", [dependency, grammar])
@pytest.mark.parametrize("kind", ["times", "large", "ages", "one"])
@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_numbers_of_vectors_of_any_size_leave_the_rest(make, kind, tmp_path):
    y = [[tree.arcs for tree in ARCS]] if make is dependency else [TREES]
    plain, X = make(columns=vectors("none"))
    parser, _ = make(columns=vectors(kind))
    own = (parser.model_ if make is dependency else parser.model_.terminals).own
    assert parser.score(X, *y) > plain.score(X, *y) - 0.03
    assert (own.units.scale[:-1] == 1.0).all() and own.units.limit[-1] < 1e13
    parser.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m").set_params(features__columns=vectors(kind))
    assert loaded.predict(X) == parser.set_params(features__columns=vectors(kind)).predict(X)
    file = read_model(tmp_path / "m")
    name = next(name for name in file.arrays if name.endswith("own_units.scale"))
    for wrong in (own.units.scale[1:], 0.0 * own.units.scale, np.nan * own.units.scale):
        write_model(tmp_path / "wrong", file.kind, file.meta, file.arrays | {name: wrong})
        with pytest.raises(structsvm.ModelFileError, match="scale"):
            structsvm.load(tmp_path / "wrong")


@pytest.mark.parametrize("make", [dependency, grammar])
def test_large_numbers_of_vectors_are_named(make):
    with pytest.warns(structsvm.AdviceWarning, match=r"size of other features.*'own2\[0\]' \(1.7\de\+09\)"):
        make(columns=vectors("times"))
    with pytest.warns(structsvm.AdviceWarning, match=r"size of other features.*'own2\[0\]'"):
        scores = [make(columns=vectors("large", factor))[0].coef_ for factor in (1.0, 2.0**10)]
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-6)
    with pytest.warns(structsvm.AdviceWarning, match=r"feature 'own2\[0\]' has \d+ values of up to 1e\+30"):
        make(columns=vectors("one"))
    plain, _ = make(columns=vectors("plain"))
    for parser in (plain, make(columns=attributes)[0]):
        assert (parser.model_ if make is dependency else parser.model_.terminals).own.units is None


def test_units_of_vectors_by_hand():
    numbers = np.zeros((200, 4), dtype=np.float32)
    numbers[:, 0] = 0.01
    numbers[:100, 1] = 300.0
    numbers[:, 2] = 2.0
    numbers[7, 2] = 1e30
    numbers[:, 3] = 5.0
    with pytest.warns(structsvm.AdviceWarning, match="'c' has 1 values"):
        units = units_of_vectors(numbers, list("abcd"))
    assert units.scale.tolist() == [1.0, 300.0, 1.0, 1.0]
    assert units.limit[[1, 2]].tolist() == [300000.0, 2.0] and (units.limit[[0, 3]] > 1e38).all()
    assert units.applied(numbers).max(axis=0).tolist() == pytest.approx([0.01, 1.0, 2.0, 5.0])
    assert units_of_vectors(numbers[:, [0, 3]], list("ad")) is None
    assert units_of_vectors(numbers[:0], list("abcd")) is None


@pytest.mark.parametrize("make", [dependency, grammar])
@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_sentences_of_weight_0_tell_nothing_of_units(make):
    def columns(words):
        return [np.array([1.0 if words != first else 1e9]) for _ in words]

    data = (BARE, [tree.arcs for tree in ARCS]) if make is dependency else (TREES,)
    first = [word.form for word in BARE[0]] if make is dependency else TREES[0].leaves()
    parser, _ = make(columns=columns)
    others = [float(words != first) for words in (
        [[word.form for word in x] for x in BARE] if make is dependency else [tree.leaves() for tree in TREES]
    )]  # fmt: skip
    for weight, has_units in ((None, True), (others, False)):
        model = clone(parser).fit(*data, sample_weight=weight).model_
        assert ((model if make is dependency else model.terminals).own.units is not None) == has_units
