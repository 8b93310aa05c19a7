"""A huge value that first comes in a later batch, or where nothing is brought to units, is named."""

import copy
import warnings
from itertools import product

import numpy as np
import pytest
from cases import TABLE
from scipy.sparse import csr_array
from sklearn.utils import get_tags

import structsvm
from structsvm import tasks
from structsvm.datasets import make_dependency_trees
from structsvm.tasks import GraphLabeler, ItemOrderer, SequenceLabeler, TokenFeatures, registry

OF_ROWS = {
    entry.name: kind
    for entry in registry.ESTIMATORS
    if get_tags((kind := getattr(tasks, entry.name))()).input_tags.two_d_array
}
ONLINE = {name: kind for name, kind in OF_ROWS.items() if hasattr(kind, "partial_fit")}
SWITCHES = {name: kind for name, kind in OF_ROWS.items() if "standardize" in kind().get_params()}
FORMS = {"dense": np.asarray, "sparse": csr_array}


def rows(n, seed=0, *, sparse=False):
    """Rows of numbers, with zeros if sparse, and labels that one column tells."""
    X = np.random.default_rng(seed).normal(size=(n, 5))
    y = np.where(X[:, 1] > 0.0, "b", "a")
    return (np.where(np.abs(X) > 0.7, X, 0.0) if sparse else X), y


def outputs(name, y):
    """Labels as an estimator takes them."""
    if name in ("AmbiguousClassifier", "MultilabelClassifier"):
        return [[label] for label in y.tolist()]
    return (y == "b").astype(int) if name == "Ranker" else y


def train(model, X, y, method="partial_fit"):
    about = {"group": [X.shape[0]]} if type(model).__name__ == "Ranker" else {}
    return getattr(model, method)(X, outputs(type(model).__name__, y), **about)


def score(model, X, y):
    about = {"group": [X.shape[0]]} if type(model).__name__ == "Ranker" else {}
    return model.score(X, outputs(type(model).__name__, y), **about)


def said_of(call, *args):
    """Return the warnings of outliers."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(*args)
    return [text for one in said if "values of up to" in (text := str(one.message))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ONLINE)
def test_a_batch_in_other_units_is_said_once_by_columns(name, form):
    """The columns of the batch are named; nothing is said of its rows, as of those of a prediction."""
    X, y = rows(40, sparse=form == "sparse")
    model = train(OF_ROWS[name](), FORMS[form](X), y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train(model, FORMS[form](X * [1.0, 1.0, 1e6, 1.0, 1.0]), y)
    texts = [text for one in said if "perhaps in other units" in (text := str(one.message)) or "its units" in text]
    assert len(texts) == 1 and texts[0].startswith("feature '2' has")


def test_many_columns_in_other_units_are_said_in_three_warnings():
    X, y = np.random.default_rng(0).normal(size=(40, 30)), np.arange(40) % 2
    model = tasks.SGDQNClassifier(random_state=0).partial_fit(X, y)
    assert len(said_of(model.partial_fit, 1e4 * X, y)) == 3


def test_items_in_other_units_are_said_once():
    case = TABLE["ordering"]
    model = case.fitted()
    columns = np.where(np.arange(case.n_columns) == 1, 1e6, 1.0)
    said = said_of(model.partial_fit, case.scaled(columns), case.y)
    assert len(said) == 1 and said[0].startswith("feature '1' has") and "perhaps in other units" in said[0]


def spoilt(X, value=1e15):
    """The rows with a huge value in the first one, of the sign that its label has."""
    X = X.copy()
    X[0, 1] = value if X[0, 1] > 0.0 else -value
    return X


@pytest.mark.parametrize("n", [40, 2], ids=["many", "two"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ONLINE)
def test_rows_of_a_later_batch(name, form, n, tmp_path):
    make, is_sparse = FORMS[form], form == "sparse"
    (X, y), (later, own) = rows(120, sparse=is_sparse), rows(n, 1, sparse=is_sparse)
    own[1] = "a" if own[0] == "b" else "b"
    for switch in [{}] + [{"standardize": False}] * (name in SWITCHES):
        model = train(ONLINE[name](**switch), make(X), y)
        assert not said_of(train, model, make(later), own)
        other = copy.deepcopy(model)
        train(other, make(later), own)
        assert len(said_of(train, model, make(spoilt(later)), own)) == 1
        if name in SWITCHES and not switch:
            assert score(model, make(X), y) > score(other, make(X), y) - 0.15
    model = train(ONLINE[name](), make(X), y)
    model.save(tmp_path / "m")
    if n > 2 or form == "dense":
        assert len(said_of(train, structsvm.load(tmp_path / "m"), make(spoilt(later)), own)) == 1


@pytest.mark.parametrize("name", sorted(set(ONLINE) - {"Ranker"}))  # whose queries have rows to compare
@pytest.mark.parametrize("form", FORMS)
def test_one_row_alone(name, form):
    X, y = rows(120, sparse=form == "sparse")
    model = train(ONLINE[name](), FORMS[form](X), y)
    assert len(said_of(train, model, FORMS[form](spoilt(X[:1])), y[:1])) == 1


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("form", FORMS)
def test_columns_far_from_zero_are_no_outliers(name, form):
    """Seconds since 1970, whose mean is ten thousand times their deviation."""
    if not hasattr(SWITCHES[name], "partial_fit"):
        return
    X, y = rows(120)
    X[:, 0] = 1.7e9 + 1e5 * X[:, 0]
    for intercept in (True, False):
        model = SWITCHES[name]()
        if "fit_intercept" not in model.get_params():
            continue
        model.set_params(fit_intercept=intercept)
        if form == "sparse":  # the column is named as large
            assert not said_of(train, model, FORMS[form](X), y)
        else:
            train(model, FORMS[form](X), y)
        assert not said_of(train, model, FORMS[form](X[:50] + 1.0), y[:50])
        assert not said_of(train, model, FORMS[form](X[:1]), y[:1]) or name == "Ranker"


def test_pairs_as_they_are():
    parts = [rows(4, seed)[0] for seed in range(30)]
    X = [(part, np.subtract.outer(part[:, 1], part[:, 2])[:, :, None]) for part in parts]
    y = [np.argsort(-part[:, 1]) for part, _ in X]
    X[0][1][0, 1] = 1e15
    assert len(said_of(ItemOrderer(C=0.1, standardize=False).fit, X, y)) == 1


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("form", FORMS)
def test_columns_as_they_are(name, form):
    """`standardize=False` turns the limits off, and not the warning."""
    X, y = rows(120, sparse=form == "sparse")
    model = SWITCHES[name](standardize=False)
    assert not said_of(train, model, FORMS[form](X), y, "fit")
    assert len(said_of(train, model, FORMS[form](spoilt(X)), y, "fit")) == 1


def test_few_weights_turn_the_units_off():
    X, y = rows(120)
    model = tasks.TaxonomyClassifier(max_weights=4)
    assert len(said_of(model.fit, spoilt(X), y)) == 1


@pytest.mark.parametrize("name", SWITCHES)
def test_few_rows(name):
    """Too few for units."""
    X, y = rows(12)
    assert len(said_of(train, SWITCHES[name](), spoilt(X), y, "fit")) == 1
    if name in ONLINE:
        model = train(SWITCHES[name](), X, y)
        assert len(said_of(train, model, spoilt(X[:3]), np.array(["a", "b", "a"]))) == 1


TOKENS = {
    "arrays": lambda part: part,
    "CSR": lambda part: csr_array(np.where(np.abs(part) > 1.0, part, 0.0)),
    "dicts": lambda part: [{f"x{j}": v for j, v in enumerate(row)} for row in part.tolist()],
    "vectors": lambda part: [{"v": row} for row in part],
    "words": lambda part: [
        {f"x{j}": 1.0 if np.abs(v) < 1e9 else v for j, v in enumerate(row)} for row in part.tolist()
    ],
}
PARAMS = {
    "": {},
    "bigrams": {"features": TokenFeatures(bigrams="x1")},
    "hashed": {"features": TokenFeatures(hash_bits=8)},
    "greedy": {"inference": "greedy"},
    "segments": {"segments": True},
}


@pytest.mark.parametrize(("form", "params"), [*product(TOKENS, PARAMS)])
def test_tokens_of_a_later_batch(form, params):
    if params in ("bigrams", "hashed") and form not in ("dicts", "words"):
        return
    tags = ["B-a", "B-b", "O", "I-a", "I-b"] if params == "segments" else ["a", "b"]
    parts = [rows(6, seed) for seed in range(40)]
    X = [TOKENS[form](part) for part, _ in parts]
    y = [[f"B-{label}" if params == "segments" else label for label in own] for _, own in parts]
    model = SequenceLabeler(C=1.0, random_state=0, **PARAMS[params])
    model.partial_fit(X, y, classes=tags)
    assert not said_of(model.partial_fit, X[:3], y[:3])
    other = copy.deepcopy(model)
    for n in (20, 1):
        other.partial_fit(X[:n], y[:n])
        bad = [TOKENS[form](spoilt(parts[0][0])), *X[1:n]]
        assert len(said_of(model.partial_fit, bad, y[:n])) == 1
    assert model.score(X, y) > other.score(X, y) - 0.1


@pytest.mark.parametrize("params", [{}, {"method": "cut", "interactions": "auto"}], ids=["", "cut"])
def test_graphs_of_a_later_batch(params):
    parts = [rows(4, seed) for seed in range(30)]
    X = [(part, [(0, 1), (1, 2), (2, 3)], part[:3, :2].copy()) for part, _ in parts]
    model = GraphLabeler(C=1.0, random_state=0, **params).partial_fit(X, [own for _, own in parts])
    assert not said_of(model.partial_fit, X[:3], [own for _, own in parts[:3]])
    for bad in ((spoilt(X[0][0]), *X[0][1:]), (*X[0][:2], spoilt(X[0][2]))):
        before = model.score(X, [own for _, own in parts])
        assert len(said_of(model.partial_fit, [bad, X[1]], [parts[0][1], parts[1][1]])) == 1
        assert model.score(X, [own for _, own in parts]) > before - 0.1


@pytest.mark.parametrize("standardize", [True, False])
def test_sets_of_a_later_batch(standardize):
    parts = [rows(5, seed)[0] for seed in range(30)]
    X = [(part + 1e9, np.subtract.outer(part[:, 1], part[:, 2])[:, :, None]) for part in parts]
    y = [np.argsort(-part[:, 1]) for part in parts]
    model = ItemOrderer(C=0.1, standardize=standardize, random_state=0).partial_fit(X, y)
    assert not said_of(model.partial_fit, X[:3], y[:3])
    pairs = X[0][1].copy()
    pairs[0, 1] = 1e15
    for bad in ((spoilt(X[0][0], 1e20), X[0][1]), (X[0][0], pairs)):
        other = copy.deepcopy(model).partial_fit(X, y)
        assert len(said_of(model.partial_fit, [bad, *X[1:]], y)) == 1
        assert not standardize or model.score(X, y) > other.score(X, y) - 0.1


@pytest.mark.parametrize("scale", [1.0, 50.0], ids=["as they are", "in units"])
@pytest.mark.parametrize("kind", ["dependency", "grammar"])
def test_vectors_of_words_of_a_later_batch(kind, scale):
    """Vectors that parsers' own columns make, with and without units."""
    huge = set()

    def vectors(words):
        return [np.array([1e9 if word in huge else scale * (1 + len(word) % 3), 0.5]) for word in words]

    if kind == "dependency":
        data = make_dependency_trees(30, max_length=7, random_state=0)
        model = tasks.DependencyParser(C=0.1, random_state=0, features=tasks.ArcFeatures(columns=vectors))
    else:
        data = [f"(S (A a{k % 5}) (B b{k % 4}))" for k in range(30)]
        model = tasks.GrammarParser(
            C=0.1, features=tasks.SpanFeatures(columns=vectors), terminals="both", random_state=0
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(data)
    assert not said_of(model.partial_fit, data[:5])
    huge.add("a1" if kind == "grammar" else data[1].words[0].form)
    (said,) = said_of(model.partial_fit, data[:20])
    assert said.startswith("feature 'own1[0]'")
