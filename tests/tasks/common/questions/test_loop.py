"""The learning loop, for each estimator that has it."""

import copy
import io
import pickle

import numpy as np
import pytest
from cases import HOUSE
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

import structsvm
from structsvm.datasets import make_dependency_trees, make_sequences
from structsvm.tasks import (
    AmbiguousClassifier,
    ArcFeatures,
    DependencyParser,
    Hybrid,
    Pool,
    SemanticParser,
    SequenceLabeler,
    TaxonomyClassifier,
)
from structsvm.tasks.ambiguous.questions import BagReader
from structsvm.tasks.dependency.model import DependencyModel

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 4))
CLASSES = np.array(["a", "b", "c"])[ROWS[:, :3].argmax(axis=1)]
SENTENCES, TAGS = make_sequences(60, mean_length=6, random_state=0)
SENTENCES = [list(x) for x in SENTENCES]
TREES = make_dependency_trees(60, max_length=6, random_state=0)
TAXONOMY = [("root", "p"), ("root", "c"), ("p", "a"), ("p", "b")]

LOOPS = {
    "sequence": (SequenceLabeler(C=0.1, random_state=0), SENTENCES, TAGS),
    "log loss": (SequenceLabeler(C=0.1, loss="log", random_state=0), SENTENCES, TAGS),
    "taxonomy": (TaxonomyClassifier(TAXONOMY, C=1.0, random_state=0), ROWS, CLASSES.tolist()),
    "flat": (TaxonomyClassifier(C=1.0, standardize=False, random_state=0), ROWS, CLASSES.tolist()),
    "kernel": (TaxonomyClassifier(C=1.0, kernel="rbf", random_state=0), ROWS, CLASSES.tolist()),
    "ambiguous": (AmbiguousClassifier(C=1.0, random_state=0), ROWS, CLASSES.tolist()),
    "dependency": (DependencyParser(C=1.0, loss="log", random_state=0), TREES, [tree.arcs for tree in TREES]),
    "semantics": (SemanticParser(method=Hybrid(), random_state=0), HOUSE.sentences, HOUSE.bags),
}


@pytest.fixture(params=LOOPS)
def loop(request):
    estimator, X, y = LOOPS[request.param]
    return clone(estimator), X, y


def fitted(loop, n=20):
    estimator, X, y = loop
    return estimator.fit(X[:n], y[:n])


def shown(estimator, X):
    return repr([*estimator.predict(X)])


def test_it_learns_from_the_first_answer_on(loop):
    estimator, X, y = loop
    for i in range(12):
        estimator.teach(X[i], y[i])
    assert len(estimator.predict(X[:5])) == 5
    (best,) = estimator.query(X[12:30])
    assert 0 <= best < 18


def test_consolidated_is_fitted_on_everything(loop):
    """The same model as by `fit` on all that `fit`, `partial_fit` and `teach` were given, in their order."""
    estimator, X, y = loop
    estimator.fit(X[:10], y[:10]).partial_fit(X[10:15], y[10:15])
    for i in range(15, 20):
        estimator.teach(X[i], y[i])
    whole = clone(estimator).fit(X[:20], y[:20])
    assert shown(estimator.consolidate(), X) == shown(whole, X)
    assert shown(estimator.teach(X[20], y[20]).consolidate(), X) == shown(clone(whole).fit(X[:21], y[:21]), X)


def test_a_copy_goes_on_from_its_weights(loop):
    """Copies and pickles hold what was learnt: they predict as the model does, and are taught and consolidated."""
    estimator, X, y = loop
    fitted(loop).teach(X[20], y[20])
    for other in (copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert shown(other, X) == shown(estimator, X)
        assert other._given is None
        assert shown(other.consolidate(), X) == shown(estimator, X)
        assert len(other.teach(X[21], y[21]).consolidate().predict(X)) == len(X)
    assert not hasattr(clone(estimator), "model_")


def test_a_file_holds_what_was_taught(loop):
    estimator, X, y = loop
    fitted(loop).teach(X[20], y[20])
    file = io.BytesIO()
    estimator.save(file)
    other = structsvm.load(file.getvalue())
    assert shown(other, X) == shown(estimator, X)
    assert len(other.teach(X[21], y[21]).query(X[22:], 2)) == 2


def test_strategies_rank_the_pool(loop):
    estimator, X, _ = loop
    fitted(loop)
    pool = Pool(estimator, X[20:40])
    known = estimator._reader_of(estimator.model_, estimator._pool_inputs(X[20:40])).strategies
    for strategy in (*known, "random"):
        every = estimator.query(pool, 20, strategy=strategy, random_state=0)
        assert sorted(every.tolist()) == list(range(20))
        assert every[:3].tolist() == estimator.query(pool, 3, strategy=strategy, random_state=0).tolist()
        assert every[:3].tolist() == estimator.query(X[20:40], 3, strategy=strategy, random_state=0).tolist()


def test_diverse_questions_are_other_ones(loop):
    estimator, X, _ = loop
    fitted(loop)
    twice = X[20:40] if isinstance(X, np.ndarray) else list(X[20:40])
    twice = np.concatenate([twice, twice]) if isinstance(X, np.ndarray) else twice + twice
    (first,) = estimator.query(twice, 1, diversity=0.9)
    two = estimator.query(twice, 2, diversity=0.9)
    assert first == two[0] and two[1] % 20 != two[0] % 20  # not the same input again


def test_a_failed_answer_changes_nothing(loop):
    estimator, X, y = loop
    fitted(loop)
    model, given, before = estimator.model_, estimator._given, shown(estimator, X)
    for x, answer in ((object(), y[0]), (X[0], set() if isinstance(estimator, AmbiguousClassifier) else object())):
        with pytest.raises((ValueError, TypeError)):
            estimator.teach(x, answer)
        assert estimator.model_ is model and estimator._given is given and shown(estimator, X) == before


def test_wrong_questions_are_refused(loop):
    estimator, X, _ = loop
    with pytest.raises(NotFittedError):
        estimator.query(X)
    assert len(estimator.query(X, 2, strategy="random", random_state=0)) == 2
    fitted(loop)
    pool = Pool(estimator, X[20:30])
    with pytest.raises(ValueError, match="k=11 is more than the 10 inputs that are left"):
        estimator.query(pool, 11)
    pool.discard([0, 3])
    assert pool.left.tolist() == [1, 2, 4, 5, 6, 7, 8, 9]
    assert 0 not in estimator.query(pool, 8)
    with pytest.raises(ValueError, match="k=9 is more than the 8 inputs that are left"):
        estimator.query(pool, 9)
    for wrong in (10, -1, 0.5, [[1]]):
        with pytest.raises(ValueError, match="discard takes indices of the pool, integers from 0 to 9"):
            pool.discard(wrong)
    with pytest.raises(ValueError, match="the pool is empty"):
        Pool(estimator, X[:0])
    for wrong in ("words", {"words": 1}, {"words"}, None):
        with pytest.raises(TypeError, match="a pool is a list of inputs"):
            estimator.query(wrong)
    with pytest.raises(ValueError, match="another estimator"):
        clone(estimator).query(pool)
    for options, message in (
        ({"strategy": "doubt"}, "strategy must be one of margin, confidence"),
        ({"strategy": ["margin"]}, "strategy must be one of margin, confidence"),
        ({"diversity": 1.5}, "'diversity' parameter of query must be"),
        ({"cost": -1.0}, "'cost' parameter of query must be"),
        ({"cost": 1e308}, "'cost' parameter of query must be"),
        ({"cost": float("nan")}, "'cost' parameter of query must be"),
        ({"k": 0}, "k must be an integer of at least 1"),
        ({"k": 1.0}, "k must be an integer of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.query(pool, **options)


@pytest.mark.parametrize("name", ["sequence", "log loss", "taxonomy", "flat", "ambiguous", "kernel"])
def test_labels_may_be_new(name):
    """Weights of the others stay: the model grows, or is fitted anew on everything."""
    estimator, X, y = LOOPS[name]
    estimator = clone(estimator)
    is_sequence = isinstance(estimator, SequenceLabeler)
    labels = {label for one in y for label in one} if is_sequence else set(y)
    last = max(labels)
    has_last = [last in one if is_sequence else one == last for one in y]
    first, second = (np.flatnonzero(np.array(has_last) == wanted) for wanted in (False, True))
    estimator.fit([X[i] for i in first[:20]], [y[i] for i in first[:20]])
    assert last not in estimator.classes_
    estimator.teach(X[second[0]], y[second[0]])
    assert last in estimator.classes_ and sorted(estimator.classes_) == estimator.classes_.tolist()
    for i in (*second[1:8], *second[1:8]):
        estimator.teach(X[i], y[i])
    assert last in {label for one in estimator.predict(X) for label in (one if is_sequence else [one])}


@pytest.mark.parametrize("name", ["sequence", "ambiguous", "flat", "taxonomy"])
def test_a_new_label_alone_changes_no_score(name):
    estimator, X, y = LOOPS[name]
    estimator = clone(estimator).fit(X[:20], y[:20])
    new = "c" if name == "taxonomy" else "zz"
    if name == "taxonomy":
        chosen = [i for i in range(40) if y[i] != "c"]
        estimator.fit([X[i] for i in chosen], [y[i] for i in chosen])
    answer = [new] * len(X[21]) if name == "sequence" else new
    batch = [X[21]] if name == "sequence" else X[21:22]
    grown = estimator._scratch(estimator._grown(estimator.model_, batch, [answer], {new}))
    if name == "sequence":
        before, after = estimator.predict_kbest(X[20:30], 1), grown.predict_kbest(X[20:30], 1)
        known = [one for one in after if new not in one[0][0]]
        assert len(known) > 5
        assert all(one in before or one[0][1] == pytest.approx(0.0) for one in known)
        return
    scores, more = estimator.decision_function(ROWS), grown.decision_function(ROWS)
    places = [grown.classes_.tolist().index(label) for label in estimator.classes_]
    own = scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1) / 2.0
    np.testing.assert_allclose(np.diff(more[:, places], axis=1), np.diff(own, axis=1), rtol=1e-5, atol=1e-6)


def test_a_parser_is_fitted_anew_for_a_new_label():
    estimator = clone(LOOPS["dependency"][0]).fit(TREES[:10])
    answer = [(head, "new") for head, _ in TREES[11].arcs]
    assert "new" in estimator.teach(TREES[11], answer).model_.labels
    other = pickle.loads(pickle.dumps(estimator))
    with pytest.raises(ValueError, match="DependencyParser has no room for the new label 'other'"):
        other.teach(TREES[12], [(head, "other") for head, _ in TREES[12].arcs])


def test_few_labels_wait_for_a_second():
    estimator = AmbiguousClassifier(C=1.0, random_state=0)
    estimator.teach(ROWS[0], "a").teach(ROWS[1], "a")
    with pytest.raises(NotFittedError):
        estimator.predict(ROWS)
    with pytest.raises(ValueError, match="NaN"):
        estimator.teach([np.nan] * 4, "a")
    assert estimator.teach(ROWS[2], "b").classes_.tolist() == ["a", "b"]


def test_texts_are_taught_and_asked():
    from sklearn.feature_extraction.text import TfidfVectorizer

    X = [f"{('red', 'blue')[i % 2]} {('car', 'bus', 'van')[i % 3]}" for i in range(24)]
    y = [("r", "b")[i % 2] for i in range(24)]
    model = TaxonomyClassifier(C=1.0, vectorizer=TfidfVectorizer(), random_state=0).fit(X, y)
    assert model.teach("green car", "g").classes_.tolist() == ["b", "g", "r"]
    assert model.consolidate().predict(["green", "red", "blue"]).tolist() == ["g", "r", "b"]
    assert len(model.query(X, 3, strategy="entropy")) == 3


@pytest.mark.parametrize("name", ["flat", "ambiguous"])
@pytest.mark.parametrize("form", [csr_array, csr_matrix])
def test_rows_may_be_sparse(name, form):
    estimator, _, y = LOOPS[name]
    rows = np.where(np.abs(ROWS) > 0.5, ROWS, 0.0)
    dense, sparse = (clone(estimator).set_params(standardize=False) for _ in range(2))
    X = form(rows)
    sparse.fit(X[:10], y[:10])
    dense.fit(rows[:10], y[:10])
    for i in range(10, 20):
        dense.teach(rows[i], y[i])
        sparse.teach(X[i], y[i])
    assert sparse.query(X[20:], 5).tolist() == dense.query(rows[20:], 5).tolist()
    assert sparse.consolidate().predict(X).tolist() == dense.consolidate().predict(rows).tolist()


def test_many_examples_are_not_kept(monkeypatch):
    monkeypatch.setattr("structsvm.tasks.common.questions.given.MOST", 12)
    X, y = SENTENCES, TAGS
    assert SequenceLabeler(C=0.1, random_state=0).fit(X[:13], y[:13])._given is None
    estimator = SequenceLabeler(C=0.1, random_state=0).partial_fit(X[:10], y[:10])
    assert len(estimator._given) == 10
    estimator.partial_fit(X[10:15], y[10:15])
    assert estimator._given is None
    estimator.teach(X[15], y[15])
    assert len(estimator._given) == 1 and estimator._given.base is not None
    assert len(estimator.consolidate().predict(X)) == len(X)


def test_examples_are_kept_by_reference():
    X, y = SENTENCES[:10], TAGS[:10]
    estimator = SequenceLabeler(C=0.1, random_state=0).fit(X, y)
    assert estimator._given.batches[0].X is X
    assert SequenceLabeler(C=0.1, random_state=0).fit(iter(X), y)._given is None


def test_weights_of_examples_count():
    weight = RNG.uniform(0.5, 2.0, size=20)
    estimator = clone(LOOPS["ambiguous"][0]).fit(ROWS[:20], CLASSES[:20], sample_weight=weight)
    estimator.teach(ROWS[20], CLASSES[20]).consolidate()
    whole = clone(estimator).fit(ROWS[:21], CLASSES[:21], sample_weight=[*weight, 1.0])
    np.testing.assert_array_equal(estimator.coef_, whole.coef_)


def test_a_pool_of_texts_follows_a_new_vectorizer():
    """A fit makes the features of texts anew: the pool is read by these."""
    X, y = ["red car", "old dog", "blue car", "big dog", "new car"], ["a", "b", "a", "b", "a"]
    texts = ["a red bicycle", "small dogs", "cars and dogs"]
    estimator = TaxonomyClassifier(C=1.0, loss="log", vectorizer=CountVectorizer(), random_state=0).fit(X, y)
    pool = Pool(estimator, texts)
    estimator.query(pool)
    estimator.fit([*X, *texts], [*y, "b", "b", "a"])
    assert estimator.query(pool, 3).tolist() == estimator.query(texts, 3).tolist()


def parsed(n_tags, n=60, seed=0):
    """Trees whose words have so many different XPOS, and a UPOS that says less."""
    rng = np.random.default_rng(seed)
    trees = []
    for tree in make_dependency_trees(n, max_length=6, random_state=seed):
        words = []
        for word in tree.words:
            tag = int(rng.integers(n_tags))
            words.append({"form": word.form, "upos": "AB"[tag % 2], "xpos": f"x{tag}"})
        trees.append((words, tree.arcs))
    return trees


def test_a_pool_of_sentences_follows_how_words_are_read():
    """A fit chooses anew whether UPOS stands in for XPOS, and which columns words have."""
    few, many = parsed(5), parsed(400, 200)
    X = [words for words, _ in parsed(400, 40, seed=1)]
    estimator = DependencyParser(C=1.0, loss="log", random_state=0).fit(*zip(*few, strict=True))
    pool = Pool(estimator, X)
    estimator.query(pool, 4)
    estimator.fit(*zip(*many, strict=True))
    assert estimator.model_.coarse
    assert estimator.query(pool, 40).tolist() == estimator.query(X, 40).tolist()
    encoded = pool._reader
    estimator.teach(*many[0])
    assert estimator.query(pool, 40).tolist() == estimator.query(X, 40).tolist() and pool._reader is encoded
    estimator.set_params(max_length=3)
    estimator.fit(*zip(*[pair for pair in few if len(pair[0]) <= 3], strict=True))
    with pytest.raises(ValueError, match="max_length"):
        estimator.query(pool)


def test_a_pool_of_sentences_follows_the_users_columns():
    """A fit reads words by the columns of the moment."""
    words = {word.form: k % 7 for k, word in enumerate(w for tree in TREES for w in tree.words)}

    def columns(place):
        return lambda sentence: np.array([[float(words[form] == place)] for form in sentence])

    estimator = DependencyParser(C=1.0, loss="log", features=ArcFeatures(columns=columns(1)), random_state=0)
    estimator.fit(TREES[:20])
    pool = Pool(estimator, TREES[30:])
    estimator.query(pool)
    estimator.set_params(features=ArcFeatures(columns=columns(2))).fit(TREES[:25])
    assert estimator.query(pool, 30).tolist() == estimator.query(TREES[30:], 30).tolist()


@pytest.mark.parametrize("name", ["taxonomy", "flat", "kernel", "ambiguous"])
def test_rows_of_another_width_are_refused(name):
    estimator, X, y = LOOPS[name]
    estimator = clone(estimator).fit(X[:20], y[:20])
    pool = Pool(estimator, X[20:])
    estimator.query(pool)
    encoded = pool._reader
    estimator.teach(X[21], y[21]).query(pool)
    assert pool._reader is encoded
    estimator.fit(X[:20, :3], y[:20])
    with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 3"):
        estimator.query(pool)


def test_rows_with_columns_of_other_names_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abcd"))
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(frame[:20], CLASSES[:20].tolist())
    pool = Pool(estimator, frame[20:])
    estimator.query(pool)
    estimator.fit(frame[:20][list("dcba")], CLASSES[:20].tolist())
    with pytest.raises(ValueError, match="feature names"):
        estimator.query(pool)


def test_a_pool_of_objects_follows_the_objects_of_training():
    """A kernel of objects compares the pool with those that the model was trained on."""

    def shared(X, Z):
        return np.array([[float(len(set(x) & set(z))) for z in Z] for x in X])

    X, y = ["abc", "bcd", "xyz", "xzw", "axw", "yzw", "abx", "cdx"], ["a", "a", "b", "b"]
    estimator = TaxonomyClassifier(C=1.0, kernel=shared, random_state=0).fit(X[:4], y)
    pool = Pool(estimator, X)
    estimator.query(pool)
    estimator.fit(X[7:3:-1], y)
    assert estimator.query(pool, 8).tolist() == estimator.query(X, 8).tolist()


def test_without_bounds_a_pool_is_read_once(monkeypatch):
    """There is nothing to choose while all have to be read."""
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(ROWS, CLASSES.tolist())
    sizes, read = [], BagReader.read

    def counted(self, model, chosen, strategy):
        sizes.append(len(chosen))
        return read(self, model, chosen, strategy)

    monkeypatch.setattr(BagReader, "read", counted)
    rows = np.tile(ROWS, (40, 1))
    assert len(estimator.query(rows, 3)) == 3 and sizes == [1024, 1024, 1024, 128]


def test_the_second_tree_is_for_the_margin_alone(monkeypatch):
    estimator = clone(LOOPS["dependency"][0]).fit(TREES[:20])
    ks, ranked = [], DependencyModel.ranked

    def counted(self, codes, k):
        ks.append(k)
        return ranked(self, codes, k)

    monkeypatch.setattr(DependencyModel, "ranked", counted)
    for strategy, k in (("margin", 2), ("confidence", 1), ("entropy", 1), ("span", 1), ("risk", 1)):
        estimator.query(TREES[20:25], 2, strategy=strategy)
        assert set(ks) == {k}
        ks.clear()


def test_a_pool_keeps_some():
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(ROWS[:20], CLASSES[:20].tolist())
    pool = Pool(estimator, ROWS[20:30])
    pool.discard([1, 2])
    pool.keep([2, 5])
    assert pool.left.tolist() == [2, 5] and set(estimator.query(pool, 2).tolist()) == {2, 5}
    pool.keep([])
    with pytest.raises(ValueError, match="k=1 is more than the 0 inputs"):
        estimator.query(pool)
    with pytest.raises(ValueError, match="keep takes indices of the pool, integers from 0 to 9"):
        pool.keep([10])


def weights_of(model):
    """A copy of a model's weights; 0 where there is no model, or one without any."""
    return np.array(getattr(model, "weights", 0.0))


def test_consolidated_twice_is_consolidated_once(loop):
    """Also where what was given before is known by its weights alone, which a fit around them does not change."""
    estimator, X, y = loop
    fitted(loop)
    for one in (copy.deepcopy(estimator), estimator):
        one.teach(X[20], y[20]).consolidate()
        before, base, output = weights_of(one.model_), weights_of(one._given.base), shown(one, X)
        again = one.consolidate()
        assert shown(again, X) == output
        np.testing.assert_array_equal(weights_of(again.model_), before)
        np.testing.assert_array_equal(weights_of(again._given.base), base)


def test_inputs_whose_scores_overflow_are_named():
    """Not a number is above and below nothing: fewer inputs than asked for would come back."""
    huge = np.vstack([ROWS[:3], np.full((1, 4), 3e38)])
    estimator = TaxonomyClassifier(C=1.0, standardize=False, random_state=0).fit(ROWS, CLASSES.tolist())
    with pytest.raises(ValueError, match="input 3 of the pool: its scores overflow"):
        estimator.query(huge, 2, strategy="entropy")
    assert len(estimator.query(huge[:3], 2, strategy="entropy")) == 2


def test_other_answers_to_the_same_inputs_are_kept():
    """A second annotator's, say; the same ones again are one batch, by their last weights."""
    X, y = ROWS[:20], CLASSES[:20].tolist()
    other = [*y[1:], y[0]]
    estimator = clone(LOOPS["ambiguous"][0]).fit(X, y).partial_fit(X, other)
    assert [batch.y for batch in estimator._given.batches] == [y, other]
    whole = clone(estimator).fit(np.concatenate([X, X]), [*y, *other])
    np.testing.assert_array_equal(estimator.consolidate().coef_, whole.coef_)
    weight = RNG.uniform(0.5, 2.0, size=20)
    estimator = clone(estimator).fit(X, y).partial_fit(X, [*y], sample_weight=weight)
    (batch,) = estimator._given.batches
    np.testing.assert_array_equal(batch.weight, weight)
    estimator.partial_fit(X, np.array(y))
    assert len(estimator._given.batches) == 1
    others, named = ROWS[20:40], CLASSES[20:40].tolist()
    for _ in range(3):
        estimator.partial_fit(others, named).partial_fit(X, y)
    assert len(estimator._given.batches) == 2


def test_a_pool_of_meanings_follows_the_parameters():
    """Whether words are in lower case, and which meanings may be run; models of another method have no questions."""
    estimator, X, y = LOOPS["semantics"]
    estimator = clone(estimator).set_params(lowercase=True)
    estimator.fit(X[:20], y[:20])
    loud = [sentence.upper() if isinstance(sentence, str) else [*map(str.upper, sentence)] for sentence in X[20:30]]
    pool = Pool(estimator, loud)
    estimator.query(pool, 3)
    estimator.set_params(lowercase=False).fit(X[:20], y[:20])
    with pytest.warns(UserWarning, match="no feature that the model knows"):
        found = estimator.query(pool, 10, strategy="confidence")
    with pytest.warns(UserWarning, match="no feature that the model knows"):
        assert found.tolist() == estimator.query(loud, 10, strategy="confidence").tolist()
    pool = Pool(estimator, X[20:30])
    estimator.query(pool, 3)
    estimator.set_params(method__executor=lambda meaning: len(meaning) % 2 == 0)
    assert estimator.query(pool, 10).tolist() == estimator.query(X[20:30], 10).tolist()
    estimator.set_params(method="ospas").fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="query is for models of method='hybrid'"):
        estimator.query(pool)
