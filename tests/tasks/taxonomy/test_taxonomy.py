"""TaxonomyClassifier: what it learns, takes, returns, keeps in files, and refuses."""

import pickle
import re
import tracemalloc
import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from dual_reference import constraint, solve_dual
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsvm
from structsvm import FrankWolfe, LaRank
from structsvm.kernel._kernels import Kernel
from structsvm.metrics import path_loss, tree_loss
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.solvers.kernel.larank import KernelLaRank
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks import KernelFunction, TaxonomyClassifier
from structsvm.tasks.taxonomy.kernel import KernelTaxonomyModel, attribute_vectors
from structsvm.tasks.taxonomy.rows import WeightRows

# Few rows, or rows far from the origin: 20 passes are not enough for all of them.
pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

PATHS = [["comp", "mac"], ["comp", "pc"], ["rec", "autos"], ["rec", "motor"], ["rec", "sport", "hockey"]]
NAMES = ["mac", "pc", "autos", "motor", "hockey"]


def data(n=120, noise=0.5, seed=0):
    """Rows around a centre for each leaf, near that of its parent."""
    rng = np.random.default_rng(seed)
    above = {name: rng.normal(size=6) for name in ("comp", "rec")}
    centres = {path[-1]: above[path[0]] + 0.7 * rng.normal(size=6) for path in PATHS}
    y = rng.choice(NAMES, n)
    return np.array([centres[name] for name in y]) + noise * rng.normal(size=(n, 6)), y


X, y = data()


def fitted(taxonomy=None, **params):
    """A model with a seed; the taxonomy is that of `PATHS` unless given."""
    return TaxonomyClassifier(PATHS if taxonomy is None else taxonomy, random_state=0, **params).fit(X, y)


# --- scikit-learn ---------------------------------------------------------------------------------

# Machines with weights put equal documents together.
COPIES = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")],
    "kernel machines visit examples in a random order, and copies are examples of their own",
)
CHECKS = parametrize_with_checks(
    [
        TaxonomyClassifier(unknown=None, random_state=0, C=0.5, loss="path"),
        TaxonomyClassifier(unknown=None, random_state=0, C=1.0, max_weights=30),
        TaxonomyClassifier(unknown=None, random_state=0, C=1.0, loss="log"),
        TaxonomyClassifier(unknown=None, random_state=0, C=1.0, kernel=KernelFunction("rbf", gamma="scale")),
    ],
    expected_failed_checks=lambda estimator: {} if estimator.kernel is None else COPIES,
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sklearn.exceptions.SkipTestWarning)
        check(estimator)


def test_parameters_nest_and_tags():
    model = TaxonomyClassifier(PATHS, solver=LaRank(C=0.5), vectorizer=TfidfVectorizer())
    assert model.get_params()["solver__C"] == 0.5
    assert model.set_params(vectorizer__min_df=2).vectorizer.min_df == 2
    assert is_classifier(model) and model.__sklearn_tags__().input_tags.string
    assert repr(TaxonomyClassifier(C=2.0)) == "TaxonomyClassifier(C=2.0)"
    with pytest.raises(NotFittedError):
        clone(fitted()).predict(X)


def test_grid_search():
    scoring = make_scorer(tree_loss, greater_is_better=False, taxonomy=PATHS)
    search = GridSearchCV(
        TaxonomyClassifier(PATHS, random_state=0),
        {"C": [1e-4, 1.0], "attributes": ["ancestors", "flat"]},
        scoring=scoring,
    ).fit(X, y)
    assert search.best_params_["C"] == 1.0 and -0.5 < search.best_score_ <= 0.0
    assert cross_val_score(TaxonomyClassifier(random_state=0), X, y).mean() > 0.8


def test_texts():
    texts = [f"{'apple core' if name == 'mac' else 'wheel ' + name} word{k % 7}" for k, name in enumerate(y)]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    inside = TaxonomyClassifier(PATHS, vectorizer=vectorizer, random_state=0).fit(texts, y)
    before = make_pipeline(clone(vectorizer), TaxonomyClassifier(PATHS, random_state=0)).fit(texts, y)
    np.testing.assert_array_equal(inside.decision_function(texts), before.decision_function(texts))
    assert inside.score(texts, y) == before.score(texts, y) == 1.0
    assert inside.predict(["apple", "", "nothing known"]).shape == (3,)
    assert not hasattr(vectorizer, "vocabulary_")
    for wrong in ("one text", X):
        with pytest.raises(ValueError, match="with a vectorizer X must be a list of texts"):
            inside.predict(wrong)
    search = GridSearchCV(before, {"taxonomyclassifier__C": [0.1, 1.0]}, cv=2).fit(texts, y)
    assert search.score(texts, y) == 1.0


PETS, ANIMALS = ["a cat sat", "dogs run", "my cat", "a dog barks"] * 4, ["c", "d"] * 8
TOKENS = [text.split() for text in PETS]
OF_TEXTS = ["predict", "decision_function", "node_scores", "predict_proba", "node_proba", "predict_path"]


@pytest.mark.parametrize("strange", [["a", "cat"], None, 1.5, float("nan"), {"a": 1}], ids=str)
@pytest.mark.parametrize("name", ["fit", "partial_fit", "score", "explain", *OF_TEXTS])
def test_documents_that_are_no_texts(name, strange):
    words = isinstance(strange, list)
    wanted = rf"the vectorizer TfidfVectorizer takes texts, and X\[{0 if name == 'explain' else 2}\] is the "
    wanted += "list .*: join its words by blanks, or give vectorizer=TfidfVectorizer" if words else ".*: give a text"
    X, model = [*PETS[:2], strange, *PETS[3:]], TaxonomyClassifier(vectorizer=TfidfVectorizer(), C=1.0)
    if not name.endswith("fit"):
        model.fit(PETS, ANIMALS)
    labels = [ANIMALS] if name.endswith("fit") or name == "score" else []
    with pytest.raises(ValueError, match=wanted):
        getattr(model, name)(strange if name == "explain" else X, *labels)


def test_lists_of_words_with_a_vectorizer_that_takes_them():
    model = TaxonomyClassifier(vectorizer=TfidfVectorizer(analyzer=list), C=1.0, random_state=0).fit(TOKENS, ANIMALS)
    pattern = TfidfVectorizer(token_pattern=r"\S+")
    same = TaxonomyClassifier(vectorizer=pattern, C=1.0, random_state=0).fit(PETS, ANIMALS)
    np.testing.assert_array_equal(model.decision_function(TOKENS), same.decision_function(PETS))
    assert model.explain(TOKENS[0]).margin == same.explain(PETS[0]).margin
    with pytest.raises(ValueError, match="explain takes one input, got 16"):
        same.explain(PETS)


# --- what is learnt -------------------------------------------------------------------------------


def test_all_forms_of_taxonomies_and_matrices_are_one():
    taxonomy = Taxonomy.from_paths(PATHS)
    scores = fitted().node_scores(X)
    for form in (taxonomy, nx.DiGraph(taxonomy.edges), taxonomy.edges):
        model = fitted(form)
        columns = [model.nodes_.tolist().index(z) for z in fitted().nodes_]
        np.testing.assert_allclose(model.node_scores(X)[:, columns], scores, rtol=1e-5, atol=1e-5)
    for matrix in (X.astype(np.float32), X.tolist(), np.asfortranarray(X)):
        model = TaxonomyClassifier(PATHS, random_state=0).fit(matrix, y.tolist())
        np.testing.assert_array_equal(model.node_scores(matrix), scores)
    # Sums over the entries of sparse rows come in another order, and their columns are not standardised.
    scores = fitted(standardize=False).node_scores(X)
    sparse = [
        TaxonomyClassifier(PATHS, random_state=0).fit(form(X), y.tolist()).node_scores(form(X))
        for form in (sp.csr_array, sp.csc_matrix)
    ]
    np.testing.assert_array_equal(*sparse)
    np.testing.assert_allclose(sparse[0], scores, rtol=1e-3, atol=1e-3)


def test_predictions_are_the_best_scores():
    model = fitted()
    scores = model.node_scores(X)
    nodes = model.nodes_.tolist()
    assert nodes[0] == "ROOT" and set(nodes) == set(Taxonomy.from_paths(PATHS).nodes) and scores.shape == (120, 9)
    leaves = [nodes.index(name) for name in model.classes_]
    np.testing.assert_array_equal(model.classes_[scores[:, leaves].argmax(axis=1)], model.predict(X))
    # A node's score is its parent's and its own weights'.
    W = model.coef_ @ X.T + model.intercept_[:, None]
    for k, name in enumerate(nodes[1:]):
        above = scores[:, nodes.index(model.taxonomy_.parents(name)[0])]
        np.testing.assert_allclose(scores[:, k + 1] - above, W[k], rtol=1e-4, atol=1e-4)
    assert model.predict_path(X[:9]) == [model.taxonomy_.path(name) for name in model.predict(X[:9])]
    assert model.score(X, y) > 0.85
    assert model.results_["tree"].status == "settled" and 1 < model.results_["tree"].n_iter < 20


def test_dense_columns_have_two_models_that_are_added(tmp_path):
    model = fitted()
    scales = model.validation_["scales"]
    assert model.results_.keys() == {"log", "tree"} == scales.keys() and model.result_ is model.results_["log"]
    C = {loss: float(found[0]) for loss, found in model.validation_["losses"].items()}
    parts = {loss: fitted(loss=loss, C=C[loss]) for loss in scales}
    added = sum(scale * parts[loss].node_scores(X) for loss, scale in scales.items())
    np.testing.assert_allclose(model.node_scores(X), added, rtol=1e-4, atol=1e-4)
    assert model.temperature_ == 1.0
    model.save(tmp_path / "sum.model", training_state=True)
    again = structsvm.load(tmp_path / "sum.model")
    assert again.results_.keys() == scales.keys()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    n_iter = {loss: result.n_iter for loss, result in model.results_.items()}
    again.set_params(warm_start=True).fit(X, y)
    assert all(again.results_[loss].n_iter > n for loss, n in n_iter.items())


@pytest.mark.parametrize(
    "params", [{"loss": "path"}, {"C": 1.0}, {"leaf_only": False}, {"solver": "perceptron", "C": None}]
)
def test_a_margin_alone(params):
    assert len(fitted(**params).results_) == 1
    assert list(TaxonomyClassifier(random_state=0).fit(sp.csr_array(X > 1.0, dtype=float), y).results_) == ["tree"]


def test_scores_of_classes_and_of_nodes():
    """`decision_function` has the columns of `classes_`, whatever is predicted."""
    model = fitted()
    assert model.decision_function(X).shape == (120, len(model.classes_))
    columns = [model.nodes_.tolist().index(name) for name in model.classes_]
    np.testing.assert_array_equal(model.decision_function(X), model.node_scores(X)[:, columns])
    np.testing.assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    inner = fitted(leaf_only=False)
    columns = [inner.nodes_.tolist().index(name) for name in inner.classes_]
    np.testing.assert_array_equal(inner.decision_function(X), inner.node_scores(X)[:, columns])
    flat = fitted(leaf_only=False, attributes="flat").decision_function(X)
    assert np.isneginf(flat).any(axis=0).tolist() == [name not in NAMES for name in inner.classes_]
    two = fitted().fit(X[np.isin(y, NAMES[:2])], y[np.isin(y, NAMES[:2])])
    scores = two.decision_function(X)
    assert scores.shape == (120,) and two.node_scores(X).shape == (120, len(two.nodes_))
    np.testing.assert_array_equal(two.classes_[(scores > 0.0).astype(int)], two.predict(X))


def test_probabilities_of_nodes_are_sums_over_labels():
    model = fitted()
    proba, nodes = model.predict_proba(X), model.taxonomy_.nodes
    of_nodes = model.node_proba(X)
    assert of_nodes.shape == (120, len(nodes))
    np.testing.assert_allclose(of_nodes[:, 0], 1.0)
    for k, name in enumerate(nodes[1:], start=1):
        below = [name in model.taxonomy_.ancestors(label) for label in model.classes_]
        np.testing.assert_allclose(of_nodes[:, k], proba[:, below].sum(axis=1), rtol=1e-12)
    best = model.predict_kbest(X[:5], 2)
    assert [found[0][0] for found in best] == model.predict(X[:5]).tolist()
    for found, row in zip(best, proba, strict=False):
        np.testing.assert_array_equal([p for _, p in found], np.sort(row)[::-1][:2])
    assert len(model.predict_kbest(X[:1], 99)[0]) == len(model.classes_)
    for k in (0, 1.5):
        with pytest.raises(ValueError, match="k must be an integer of at least 1"):
            model.predict_kbest(X, k)


def test_probabilities_where_inner_nodes_are_labels():
    rng = np.random.default_rng(0)
    names = np.where(rng.random(len(y)) < 0.3, [Taxonomy.from_paths(PATHS).path(name)[0] for name in y], y)
    model = TaxonomyClassifier(PATHS, leaf_only=False, random_state=0).fit(X, names)
    proba = model.predict_proba(X)
    assert proba.shape == (120, len(model.classes_))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert not proba[:, ~np.isin(model.classes_, names)].any()
    comp = model.taxonomy_.nodes.index("comp")
    assert (model.node_proba(X)[:, comp] >= proba[:, model.classes_.tolist().index("comp")]).all()


def test_flat_is_crammer_and_singer():
    """Without taxonomy and intercept it is the problem that LinearSVC(multi_class="crammer_singer") solves."""
    given = {"fit_intercept": False, "standardize": False}
    ours = TaxonomyClassifier(C=0.5, tol=1e-4, random_state=0, max_iter=3000, **given).fit(X, y)
    theirs = LinearSVC(
        multi_class="crammer_singer", C=0.5, fit_intercept=False, tol=1e-6, max_iter=100_000, random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=0.02)


def test_the_log_loss_is_logistic_regression(tmp_path):
    given = {"fit_intercept": False, "standardize": False}
    ours = TaxonomyClassifier(loss="log", C=0.5, tol=1e-5, max_iter=3000, random_state=0, **given).fit(X, y)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=5e-3)
    assert ours.temperature_ == 1.0
    ours.save(tmp_path / "m", training_state=True)
    again = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), ours.predict_proba(X))
    assert again.set_params(warm_start=True, tol=None, max_iter=1).fit(X, y).n_iter_ == ours.n_iter_ + 1
    sparse = TaxonomyClassifier(loss="log", C=0.5, tol=1e-5, max_iter=3000, fit_intercept=False, random_state=0)
    np.testing.assert_allclose(sparse.fit(sp.csr_array(X), y).predict_proba(X), ours.predict_proba(X), atol=5e-3)


def test_the_log_loss_in_a_taxonomy():
    model = TaxonomyClassifier(PATHS, loss="log", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85 and isinstance(model.partial_fit(X[:9], y[:9]), TaxonomyClassifier)
    solver = ConditionalLikelihood(C=1.0, max_iter=2, random_state=0)
    assert TaxonomyClassifier(PATHS, loss="log", solver=solver).fit(X, y).n_iter_ == 2
    inner = TaxonomyClassifier(PATHS, loss="log", leaf_only=False, random_state=0).fit(X, y)
    assert set(inner.predict(X)) <= set(inner.classes_)
    for options, message in (
        ({"kernel": "rbf"}, "The 'kernel' parameter must be None with loss='log'"),
        ({"solver": "frank_wolfe"}, "solver='frank_wolfe' trains a margin, and loss='log' has a solver of its own"),
        ({"solver": solver, "C": 2.0}, "'C' parameter is set beside a solver object"),
    ):
        with pytest.raises(ValueError, match=message):
            TaxonomyClassifier(PATHS, loss="log", **options).fit(X, y)


LATTICE = [
    ("all", "a"), ("all", "b"), ("a", "mac"), ("a", "pc"), ("b", "pc"), ("b", "autos"), ("b", "c"), ("c", "motor"),
    ("a", "c"), ("c", "hockey"),
]  # fmt: skip


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"attributes": "normalized", "loss": "path"},
        {"attributes": "flat", "loss": "zero_one"},
        {"taxonomy": LATTICE, "leaf_only": False},
        {"attributes": np.arange(15.0).reshape(5, 3) % 4, "loss": 2.0 - 2.0 * np.eye(5)},
        {"taxonomy": "none"},
    ],
)
def test_a_linear_kernel_is_explicit_weights(params):
    """The optimum, the scores of all nodes, and what is predicted."""
    params = dict(params)
    taxonomy = params.pop("taxonomy", PATHS)
    given = {"C": 0.1, "tol": 1e-6, "max_iter": 20_000, "random_state": 0} | params
    models = [
        TaxonomyClassifier(None if isinstance(taxonomy, str) else taxonomy, **given, **how).fit(X[:50], y[:50])
        for how in ({"fit_intercept": False, "standardize": False}, {"kernel": "linear"})
    ]
    assert models[1].result_.primal == pytest.approx(models[0].result_.primal, rel=1e-5)
    assert models[1].result_.dual == pytest.approx(models[0].result_.dual, rel=1e-5)
    scores = [model.node_scores(X) for model in models]
    np.testing.assert_allclose(scores[1], scores[0], atol=0.01)
    assert models[0].nodes_.tolist() == models[1].nodes_.tolist()
    assert np.mean(models[0].predict(X) == models[1].predict(X)) > 0.95  # but for near ties


@pytest.mark.parametrize("attributes", ["ancestors", "normalized"])
def test_a_kernel_against_an_independent_solver(attributes):
    """The factor k of the joint kernel k(x, x') <L(y), L(y')> is made explicit, row by row of its square root."""
    some, names, gamma = X[:14], y[:14], 0.3
    options = {"C": 0.5, "tol": 1e-7, "max_iter": 50_000, "random_state": 0}
    model = TaxonomyClassifier(PATHS, kernel=KernelFunction("rbf", gamma=gamma), attributes=attributes, **options).fit(
        some, names
    )
    taxonomy, labels = model.taxonomy_, model.classes_.tolist()
    distances = ((some[:, None] - some[None, :]) ** 2).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-gamma * distances))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    L = taxonomy.indicators(labels, normalized=attributes == "normalized")
    constraints = [
        [
            constraint(np.outer(row, L[labels.index(name)] - L[k]).ravel(), taxonomy.loss("tree", name, other), *FORM)
            for k, other in enumerate(labels)
            if other != name
        ]
        for row, name in zip(root, names.tolist())
    ]
    assert model.result_.dual == pytest.approx(solve_dual(constraints, np.full(14, 0.5), "linear"), rel=1e-4)


FORM = ("margin", "linear")


def test_a_kernel_and_many_labels():
    """Only training needs the losses of all pairs of labels: a file with many labels is read, and predicts."""
    names = [f"t{k}" for k in range(20_000)]
    taxonomy = Taxonomy.from_paths([[f"p{k % 100}", name] for k, name in enumerate(names)])
    structure = {"leaf_only": True, "intercept": False, "loss": "tree", "attributes": "ancestors"}
    tracemalloc.start()
    try:
        model = KernelTaxonomyModel(taxonomy, np.array(names), Kernel("rbf", gamma=1.0), **structure)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert model.machine.attributes.shape[0] == len(names)


@pytest.mark.parametrize("attributes", ["ancestors", "normalized", "flat"])
def test_vectors_of_all_positions(attributes):
    oracle = TaxonomyOracle(Taxonomy.from_paths(PATHS), 1, attributes=attributes)
    positions, outputs = attribute_vectors(oracle.attributes)
    np.testing.assert_array_equal(
        outputs.toarray(), [oracle.attributes.vector(k) for k in range(oracle.attributes.n_outputs)]
    )
    np.testing.assert_array_equal(positions.toarray()[oracle.attributes.arrays[-1]], outputs.toarray())


def test_kernels_see_what_is_not_linear():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2))
    names = np.array(NAMES)[2 * (np.hypot(*rows.T) > 1.2) + (rows[:, 0] * rows[:, 1] > 0.0)]
    options = {"C": 10.0, "random_state": 0}
    linear = TaxonomyClassifier(PATHS, **options).fit(rows[:200], names[:200])
    curved = TaxonomyClassifier(PATHS, kernel="rbf", **options).fit(rows[:200], names[:200])
    assert linear.score(rows[200:], names[200:]) < 0.7 < 0.9 < curved.score(rows[200:], names[200:])
    assert len(curved.support_) == len(curved.support_vectors_) == curved.dual_coef_.shape[1] < 200
    given = KernelFunction("rbf", gamma=0.5)  # where gamma is chosen, dense columns are scaled
    dense, sparse = (
        TaxonomyClassifier(PATHS, kernel=given, **options).fit(kind(rows[:200]), names[:200])
        for kind in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(sparse.node_scores(rows), dense.node_scores(rows), atol=0.05)
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="kernel"):
            getattr(curved, name)
    with pytest.raises(AttributeError, match="no support vectors"):
        linear.support_  # noqa: B018


def test_what_kernels_do_not_go_with():
    for params, message in [
        ({"kernel": "rbf", "solver": "frank_wolfe"}, "must be 'larank' or a KernelLaRank"),
        ({"kernel": "rbf", "solver": LaRank()}, "must be 'larank' or a KernelLaRank"),
        ({"solver": KernelLaRank()}, "The 'kernel' parameter is None, and KernelLaRank"),
        ({"kernel": "rbf", "solver": KernelLaRank(), "C": 2.0}, "The 'C' parameter is set beside a solver object"),
        ({"kernel": "rbf", "solver": KernelLaRank(), "checkpoint": "f"}, "The 'checkpoint' parameter is set beside"),
        ({"kernel": "precomputed"}, "The 'kernel' parameter of TaxonomyClassifier must be 'linear' or 'poly'"),
        ({"kernel": KernelFunction(gamma=-1.0)}, "The 'gamma' parameter of KernelFunction"),
    ]:
        with pytest.raises(ValueError, match=message):
            TaxonomyClassifier(PATHS, **params).fit(X, y)
    assert TaxonomyClassifier(PATHS, kernel="rbf", solver=KernelLaRank(C=5.0)).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("loss", ["tree", "path", "zero_one"])
@pytest.mark.parametrize("attributes", ["ancestors", "normalized", "flat"])
def test_the_objective_is_the_papers(loss, attributes):
    few, labels = X[:12], y[:12]
    model = TaxonomyClassifier(
        PATHS, loss=loss, attributes=attributes, C=0.3, tol=1e-5, max_iter=5000, fit_intercept=False, random_state=0
    ).fit(few, labels)
    taxonomy, classes = Taxonomy.from_paths(PATHS), model.classes_.tolist()
    nodes = taxonomy.nodes[1:]
    L = {}
    for name in classes:
        on = taxonomy.ancestors(name) if attributes != "flat" else {name}
        L[name] = np.array([z in on for z in nodes]) / (np.sqrt(len(on)) if attributes == "normalized" else 1.0)
    constraints = [
        [
            constraint(np.outer(L[g] - L[k], x).ravel(), taxonomy.loss(loss, g, k), "margin", "linear")
            for k in classes
            if k != g
        ]
        for x, g in zip(few, labels.tolist(), strict=True)
    ]
    optimum = solve_dual(constraints, np.full(12, 0.3), "linear")
    assert model.result_.primal == pytest.approx(optimum, rel=1e-3)


def test_matrices_for_loss_and_attributes():
    taxonomy = Taxonomy.from_paths(PATHS)
    leaves = taxonomy.leaves
    delta = np.array([[taxonomy.loss("tree", a, b) for b in leaves] for a in leaves])
    L = np.array([[z in taxonomy.ancestors(leaf) for z in taxonomy.nodes[1:]] for leaf in leaves], dtype=float)
    model = fitted(loss=delta, attributes=L)
    assert list(model.results_) == ["matrix"]
    np.testing.assert_allclose(
        model.node_scores(X),
        fitted(loss="tree").node_scores(X)[:, [fitted().nodes_.tolist().index(z) for z in model.nodes_]],
        rtol=1e-4,
        atol=1e-4,
    )
    assert model.nodes_.tolist() == model.classes_.tolist()
    assert fitted(loss="tree", attributes=sp.csr_array(L)).predict(X).tolist() == model.predict(X).tolist()
    # Only the labels seen count: rows of the others are left out.
    part = np.isin(y, ["mac", "pc", "autos"])
    seen = TaxonomyClassifier(PATHS, loss=delta, attributes=L, random_state=0).fit(X[part], y[part])
    assert seen.classes_.tolist() == ["autos", "mac", "pc"]


@pytest.mark.parametrize("leaf_only", [True, False])
def test_threads_predict_the_same(leaf_only):
    model = fitted(leaf_only=leaf_only, loss="path")
    many = np.tile(X, (30, 1)) * np.linspace(0.1, 1.0, 3600)[:, None]
    one = model.predict(many)
    np.testing.assert_array_equal(model.set_params(n_jobs=3).predict(many), one)
    np.testing.assert_array_equal(np.concatenate([model.predict(many[i : i + 1]) for i in range(50)]), one[:50])


def test_as_many_labels_as_documents():
    """No warning that they might be numbers to predict: the taxonomy says what they are."""
    model = TaxonomyClassifier(PATHS, random_state=0).fit(np.eye(5), NAMES)
    assert model.score(np.eye(5), NAMES) == 1.0


def test_leaves_without_documents_are_not_predicted():
    part = y != "pc"
    model = TaxonomyClassifier(PATHS, random_state=0).fit(X[part], y[part])
    assert "pc" not in model.classes_ and "pc" not in model.nodes_ and "comp" in model.nodes_
    assert not (model.predict(X) == "pc").any()


def test_labels_may_be_inner_nodes():
    rng = np.random.default_rng(0)
    names = np.where(rng.random(len(y)) < 0.3, [Taxonomy.from_paths(PATHS).path(name)[0] for name in y], y)
    leaves_alone = TaxonomyClassifier(PATHS, leaf_only=True, C=1.0, random_state=0).fit(X, names)
    assert set(leaves_alone.classes_) == set(Taxonomy.from_paths(PATHS).leaves)
    assert leaves_alone.result_.n_rounds > 0
    model = TaxonomyClassifier(PATHS, leaf_only=False, C=1.0, random_state=0).fit(X, names)
    assert set(model.classes_) == set(Taxonomy.from_paths(PATHS).nodes)
    scores = model.node_scores(X)
    assert (scores[:, 0] == 0.0).all()
    # With the tree loss the best label is always the safest.
    seen = np.unique(names)
    columns = [model.nodes_.tolist().index(name) for name in seen]
    np.testing.assert_array_equal(seen[scores[:, columns].argmax(axis=1)], model.predict(X))
    assert np.isin(model.predict(X), ["comp", "rec"]).any()


@pytest.mark.parametrize("loss", ["path", "tree", "zero_one", "matrix"])
def test_the_safest_node_above_the_best_label(loss):
    taxonomy = Taxonomy([*Taxonomy.from_paths(PATHS).edges, ("comp", "hockey")])
    nodes = taxonomy.nodes
    rng = np.random.default_rng(0)
    delta = np.array([[0.0 if loss == "matrix" else taxonomy.loss(loss, a, b) for b in nodes] for a in nodes])
    if loss == "matrix":
        delta = rng.uniform(0.5, 2.0, delta.shape) * (1.0 - np.eye(len(nodes)))
        delta[:, [k for k, node in enumerate(nodes) if node not in NAMES]] *= 0.3
    given = {"loss": delta if loss == "matrix" else loss}
    model = TaxonomyClassifier(taxonomy, leaf_only=False, random_state=0, **given).fit(X, y)
    test = np.vstack([X, 0.3 * X, 0.0 * X])
    proba, predicted, stops = model.predict_proba(test), model.predict(test), 0
    columns = [model.classes_.tolist().index(name) for name in NAMES]
    for p, found in zip(proba[:, columns], predicted.tolist(), strict=True):
        above = {*taxonomy.ancestors(NAMES[p.argmax()]), "ROOT"}
        risk = {
            z: sum(delta[nodes.index(t), nodes.index(z)] * p_t for t, p_t in zip(NAMES, p, strict=True)) for z in above
        }
        assert risk[found] == pytest.approx(min(risk.values()), abs=1e-5)
        stops += found not in NAMES
    assert (stops > 0) == (loss in ("path", "matrix"))
    model.model_.temperature = None  # no probabilities: the margins that training asks for
    scores, predicted = model.node_scores(test), model.predict(test)
    columns = [model.nodes_.tolist().index(name) for name in NAMES]
    for s, found in zip(scores[:, columns], predicted.tolist(), strict=True):
        above = {*taxonomy.ancestors(NAMES[s.argmax()]), "ROOT"}
        risk = {
            z: max(delta[nodes.index(t), nodes.index(z)] + s_t for t, s_t in zip(NAMES, s, strict=True)) for z in above
        }
        assert risk[found] == pytest.approx(min(risk.values()), abs=1e-5)


def test_stopping_early_is_safer():
    """Where leaves cannot be told apart but their parents can, a parent is half as far off as a wrong leaf."""
    rng = np.random.default_rng(1)
    paths = [[group, f"{group}{k}"] for group in ("a", "b") for k in range(4)]
    leaves = rng.choice([path[-1] for path in paths], 300)
    rows = np.array([[1.0, 0.0] if name[0] == "a" else [0.0, 1.0] for name in leaves])
    rows = rows + 0.05 * rng.normal(size=rows.shape)
    free, bound = (
        TaxonomyClassifier(paths, leaf_only=only, loss="path", random_state=0).fit(rows, leaves)
        for only in (False, True)
    )
    assert np.mean(free.predict(rows) == [name[0] for name in leaves]) > 0.95
    assert path_loss(leaves, free.predict(rows), paths) < 0.8 * path_loss(leaves, bound.predict(rows), paths)


def test_the_taxonomy_helps_where_data_are_few():
    losses = []
    for params in ({"attributes": "flat", "loss": "zero_one"}, {"attributes": "ancestors", "loss": "tree"}):
        for seed in range(12):
            rows, labels = data(440, 1.0, seed=seed)
            model = TaxonomyClassifier(PATHS, random_state=0, **params).fit(rows[:40], labels[:40])
            losses.append(tree_loss(labels[40:], model.predict(rows[40:]), PATHS))
    assert np.mean(losses[12:]) < np.mean(losses[:12])


def test_weights_of_samples_and_classes():
    twice = np.repeat(np.arange(len(y)), np.where(y == "mac", 2, 1))
    copies = TaxonomyClassifier(PATHS, random_state=0).fit(X[twice], y[twice])
    weighted = TaxonomyClassifier(PATHS, random_state=0).fit(X, y, sample_weight=np.where(y == "mac", 2.0, 1.0))
    by_class = TaxonomyClassifier(PATHS, random_state=0, class_weight={"mac": 2.0}).fit(X, y)
    for model in (weighted, by_class):
        np.testing.assert_array_equal(model.node_scores(X), copies.node_scores(X))
    balanced = TaxonomyClassifier(PATHS, random_state=0, class_weight="balanced").fit(X, y)
    assert (balanced.node_scores(X) != copies.node_scores(X)).any()


def test_order_makes_no_difference():
    order = np.random.default_rng(0).permutation(len(y))
    model = TaxonomyClassifier(PATHS, random_state=0).fit(X[order], y[order])
    np.testing.assert_array_equal(model.node_scores(X), fitted().node_scores(X))


@pytest.mark.parametrize("solver", ["cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"])
def test_any_solver(solver):
    limits = {"tol": 0.1} if solver in ("cutting_plane", "frank_wolfe") else {}
    assert fitted(solver=solver, **limits).score(X, y) > 0.7


def test_solvers_with_parameters_of_their_own():
    slack = LaRank(rescaling="slack", penalty="quadratic", random_state=0)
    assert TaxonomyClassifier(PATHS, solver=slack).fit(X, y).score(X, y) > 0.8
    with pytest.raises(ValueError, match="Perceptron takes no sample_weight"):
        TaxonomyClassifier(PATHS, solver="perceptron").fit(X, y, sample_weight=np.ones(len(y)))


# --- going on, streams ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"max_weights": 30},
        {"kernel": KernelFunction(gamma=0.2)},
        {"solver": "passive_aggressive"},
        {"loss": 1.0 - np.eye(5), "leaf_only": True},
        {"loss": sp.csr_array(2.0 - 2.0 * np.eye(5)), "attributes": sp.csr_array(np.eye(5))},
    ],
)
def test_warm_start_goes_on_bit_for_bit(params, tmp_path):
    whole = fitted(max_iter=3, **params)
    model = fitted(max_iter=1, warm_start=True, **params)
    model.save(tmp_path / "m")
    for again in (model, structsvm.load(tmp_path / "m")):
        again.set_params(max_iter=2).fit(X, y)
        assert again.n_iter_ == 3
        np.testing.assert_array_equal(again.node_scores(X), whole.node_scores(X))
    for other, message in [
        ({"loss": "path"}, "the model was trained with another 'loss'; set it back"),
        ({"attributes": "flat"}, "the model was trained with another 'attributes'; set it back"),
        ({"taxonomy": LATTICE}, "the model was trained with another 'taxonomy'; set it back"),
        (
            {"kernel": None if "kernel" in params else "rbf", "solver": "larank"},
            "the model was trained with another 'kernel'; set it back",
        ),
        *([({"kernel__gamma": 2.0}, "training began with another kernel")] if "kernel" in params else []),
    ]:
        before = model.node_scores(X)
        with pytest.raises(ValueError, match=message):
            clone_of_fitted(model, **other).fit(X, y)
        np.testing.assert_array_equal(model.node_scores(X), before)
    with pytest.raises(ValueError, match="the label 'linux', none of the classes"):
        model.fit(X[:2], ["mac", "linux"])
    again = model.fit(X[y != "mac"], y[y != "mac"])  # other data: what was learnt stays
    assert again.classes_.tolist() == whole.classes_.tolist()
    assert again.result_.dual <= again.result_.primal
    assert again.score(X, y) > 0.6


def clone_of_fitted(model, **params):
    return pickle.loads(pickle.dumps(model)).set_params(**params)


@pytest.mark.parametrize(
    "params",
    [{}, {"max_weights": 40}, {"kernel": KernelFunction(gamma=0.2)}, {"solver": "perceptron", "standardize": False}],
)
def test_partial_fit(params):
    model, duals = TaxonomyClassifier(PATHS, random_state=0, **params), []
    for first in range(0, 120, 20):
        model.partial_fit(X[first : first + 20], y[first : first + 20], classes=NAMES)
        assert model.n_iter_ == 1 and model.classes_.tolist() == sorted(NAMES)
        duals.append(model.result_.dual)
    assert model.score(X, y) > 0.75
    before = model.node_scores(X)
    for bad, message in [
        ((X[:2], ["mac", "linux"]), "y has the label 'linux', none of the classes"),
        ((X[:2, :3], y[:2]), "X has 3 features, but TaxonomyClassifier is expecting 6"),
        ((np.full((2, 6), np.nan), y[:2]), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*bad)
    with pytest.raises(ValueError, match="not the same as on the last call"):
        model.partial_fit(X[:2], y[:2], classes=["mac", "pc"])
    np.testing.assert_array_equal(model.node_scores(X), before)
    assert model.set_params(warm_start=True, max_iter=1).fit(X, y).score(X, y) > 0.75
    with pytest.raises(ValueError, match="balanced"):
        TaxonomyClassifier(PATHS, class_weight="balanced").partial_fit(X, y)
    weighted = TaxonomyClassifier(PATHS, class_weight={"mac": 2.0}, random_state=0)
    weighted.partial_fit(X[y != "mac"], y[y != "mac"], classes=NAMES)


def test_partial_fit_on_texts():
    texts = np.array([f"{name} w{k % 7}" for k, name in enumerate(y)], dtype=object)
    model = TaxonomyClassifier(PATHS, vectorizer=CountVectorizer(), random_state=0)
    model.partial_fit(list(texts[:60]), y[:60], classes=NAMES).partial_fit(list(texts[60:]), y[60:])
    words = sorted(model.vectorizer_.vocabulary_)
    assert model.score(texts, y) == 1.0
    assert model.partial_fit(["mac unheard"], ["mac"]).vectorizer_.get_feature_names_out().tolist() == words


# --- rows and lists of weights --------------------------------------------------------------------


def sparse_texts(n=200, n_features=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(NAMES, n)
    rows = sp.lil_array((n, n_features))
    for i, name in enumerate(labels):
        k = NAMES.index(name)
        rows[i, rng.integers(0, 20, 4)] = 1.0  # words of everyone
        rows[i, 20 + 56 * k + rng.integers(0, 56, 3)] = 1.0  # words of the class
    return sp.csr_array(rows), labels


def test_rare_features_have_lists():
    rows, labels = sparse_texts()
    whole = TaxonomyClassifier(PATHS, random_state=0).fit(rows, labels)
    small = TaxonomyClassifier(PATHS, random_state=0, max_weights=800).fit(rows, labels)
    assert whole.model_.oracle.n_features == 301 * 8
    assert small.model_.oracle.n_features <= 800 and 1 <= small.model_.oracle.n_full < 60
    assert sp.issparse(small.coef_) and small.coef_.shape == whole.coef_.shape == (8, 300)
    # A listed feature has weights for the nodes above labels that it was seen with, and no others.
    seen = {f: set() for f in range(300)}
    for i, f in zip(*rows.nonzero(), strict=True):
        seen[int(f)] |= small.taxonomy_.ancestors(labels[i])
    row = small.model_.rows.row
    for k, f in zip(*small.coef_.nonzero(), strict=True):
        assert row[f] < small.model_.oracle.n_full or small.nodes_[1:][k] in seen[int(f)]
    scores = small.node_scores(rows)
    expected = np.zeros(scores.shape)
    own = (small.coef_ @ rows.T).toarray().T + small.intercept_
    nodes = small.nodes_.tolist()
    for k, name in enumerate(nodes[1:], start=1):
        expected[:, k] = own[:, [nodes.index(a) - 1 for a in small.taxonomy_.ancestors(name)]].sum(axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    test_rows, test_labels = sparse_texts(seed=1)
    assert small.score(test_rows, test_labels) > whole.score(test_rows, test_labels) - 0.05
    assert small.result_.gap >= 0.0


def test_rows_for_documents():
    rows, labels = sparse_texts(40, 300)
    model = TaxonomyClassifier(PATHS, random_state=0, max_weights=1).fit(rows, labels)
    assert model.model_.oracle.n_full == 0  # the lists are as many weights as there are
    made = model.model_.rows
    absent = np.flatnonzero(rows.sum(axis=0) == 0)
    assert (made.row[absent] == -1).all() and made.n_rows == 301 - len(absent)
    assert model.predict(sp.csr_array((1, 300))).shape == (1,)
    assert isinstance(made, WeightRows) and model.score(rows, labels) > 0.9


def test_many_classes_and_features_within_the_budget():
    rng = np.random.default_rng(0)
    n_classes, n_features, n = 2000, 50_000, 4000
    taxonomy = Taxonomy([("r", f"g{g}") for g in range(50)] + [(f"g{k % 50}", k) for k in range(n_classes)])
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    columns = (labels[:, None] * 20 + rng.integers(0, 20, (n, 8))) % n_features
    rows = sp.csr_array((np.ones(n * 8), columns.ravel(), np.arange(n + 1) * 8), shape=(n, n_features))
    tracemalloc.start()
    model = TaxonomyClassifier(taxonomy, max_weights=10**6, max_iter=1, random_state=0).fit(rows, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.model_.oracle.n_features <= 10**6
    assert peak < 120e6  # all pairs would be 50,000 x 2,056 weights: 411 MB each time they are held
    assert model.score(rows, labels) > 0.95


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"taxonomy": "none"},
        {"loss": "path", "leaf_only": False, "attributes": "normalized"},
        {"loss": 1.0 - np.eye(5), "attributes": np.eye(5), "class_weight": {"mac": 2.0}, "fit_intercept": False},
        {"max_weights": 30, "solver": FrankWolfe(C=2.0, random_state=0)},
        {"kernel": KernelFunction(gamma=0.2), "leaf_only": False, "loss": "path"},
        {"kernel": KernelFunction("poly", degree=2, coef0=1.0), "attributes": "flat"},
    ],
)
def test_files(tmp_path, params):
    params = dict(params)
    taxonomy = None if params.pop("taxonomy", PATHS) == "none" else PATHS
    seed = {} if "solver" in params else {"random_state": 0}
    model = TaxonomyClassifier(taxonomy, **params, **seed).fit(X, y)
    model.save(tmp_path / "m")
    for loaded in (structsvm.load(tmp_path / "m"), structsvm.load(tmp_path / "m", mmap=True)):
        assert isinstance(loaded, TaxonomyClassifier)
        np.testing.assert_array_equal(loaded.node_scores(X), model.node_scores(X))
        np.testing.assert_array_equal(loaded.classes_, model.classes_)
        assert loaded.predict_path(X) == model.predict_path(X)
        assert loaded.result_.primal == model.result_.primal and loaded.n_features_in_ == 6
        assert loaded.leaf_only == model.leaf_only and loaded.taxonomy_ == model.taxonomy_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).node_scores(X), model.node_scores(X))


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), CountVectorizer()])
def test_files_with_texts(tmp_path, vectorizer):
    texts = [f"wörd {name} {k % 5}x" for k, name in enumerate(y)]
    model = TaxonomyClassifier(PATHS, vectorizer=vectorizer, random_state=0).fit(texts, y)
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.node_scores(texts), model.node_scores(texts))
    assert loaded.vectorizer_.get_params() == model.vectorizer_.get_params()
    assert clone(loaded).fit(texts, y).score(texts, y) == model.score(texts, y)


def test_files_keep_what_the_vectorizer_knows(tmp_path):
    texts = [f"{name} word{k % 3}" for k, name in enumerate(y)]
    model = TaxonomyClassifier(PATHS, vectorizer=CountVectorizer(vocabulary=NAMES), random_state=0).fit(texts, y)
    model.save(tmp_path / "m")
    again = clone(structsvm.load(tmp_path / "m")).fit(texts, y)
    np.testing.assert_array_equal(again.node_scores(texts), model.node_scores(texts))


def test_what_a_file_cannot_hold(tmp_path):
    texts = [f"{name} word" for name in y]
    for vectorizer, message in (
        (HashingVectorizer(n_features=64), "cannot hold a HashingVectorizer"),
        (CountVectorizer(tokenizer=str.split, token_pattern=None), "cannot hold the parameter tokenizer"),
    ):
        model = TaxonomyClassifier(PATHS, vectorizer=vectorizer, random_state=0).fit(texts, y)
        with pytest.raises(TypeError, match=message):
            model.save(tmp_path / "m")
    paths = [tmp_path / f"{k}.txt" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    model = TaxonomyClassifier(PATHS, vectorizer=CountVectorizer(input="filename"), random_state=0).fit(paths, y)
    with pytest.raises(TypeError, match="input='filename', which opens files"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": "filename"}, "a vectorizer with input='filename'"),
        ({"input": "file"}, "a vectorizer with input='file'"),
        ({"token_pattern": "(a+)+$"}, "trusted=True"),
        ({"token_pattern": "("}, "trusted=True"),
        ({"token_pattern": None}, "trusted=True"),
        ({"dtype": "O"}, "dtype='O'"),
        ({"encoding": "rot13"}, "encoding"),
        ({"ngram_range": [1, 10**9]}, "n-grams"),
        ({"tokenizer": "os.system"}, "not a sound taxonomy model"),
        ({"strip_accents": "exec"}, "not a sound taxonomy model"),
    ],
)
def test_a_file_runs_and_opens_nothing(tmp_path, changes, message):
    texts = [f"{name} word" for name in y]
    TaxonomyClassifier(PATHS, vectorizer=CountVectorizer(), random_state=0).fit(texts, y).save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    vectorizer = file.meta["vectorizer"]
    header = file.meta | {"vectorizer": vectorizer | {"params": vectorizer["params"] | changes}}
    write_model(tmp_path / "bad", "taxonomy", header, dict(file.arrays))
    with pytest.raises(ModelFileError, match=re.escape(message)):
        structsvm.load(tmp_path / "bad")


def test_patterns_of_ones_own_ask_for_trust(tmp_path):
    texts = [f"{name} word" for name in y]
    vectorizer = CountVectorizer(token_pattern="[a-z]+")
    model = TaxonomyClassifier(PATHS, vectorizer=vectorizer, random_state=0).fit(texts, y)
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"token_pattern='\[a-z\]\+'; if you trust .* trusted=True"):
        structsvm.load(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m", trusted=True)
    np.testing.assert_array_equal(loaded.node_scores(texts), model.node_scores(texts))
    file = read_model(tmp_path / "m")
    file.meta["vectorizer"]["params"]["token_pattern"] = "("
    write_model(tmp_path / "bad", "taxonomy", file.meta, dict(file.arrays))
    with pytest.raises(ModelFileError, match="token_pattern or encoding is none"):
        structsvm.load(tmp_path / "bad", trusted=True)


def test_damaged_files_of_kernel_machines(tmp_path):
    fitted(kernel="rbf").save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    for meta, arrays in [
        ({"machine": file.meta["machine"] | {"kernel": {"name": "cosine"}}}, {}),
        ({"machine": file.meta["machine"] | {"n_features": 5}}, {}),
        ({"n_features": 5}, {}),
        ({}, {"machine.support_labels": file.arrays["machine.support_labels"] + 100}),
        ({}, {"machine.coef.indices": file.arrays["machine.coef.indices"] + 1000}),
        ({}, {"machine.vectors": np.full_like(file.arrays["machine.vectors"], np.nan)}),
    ]:
        write_model(tmp_path / "bad", "taxonomy", file.meta | meta, dict(file.arrays) | arrays)
        with pytest.raises(ModelFileError, match="not a sound taxonomy model"):
            structsvm.load(tmp_path / "bad")


def test_damaged_files(tmp_path):
    fitted(max_weights=30).save(tmp_path / "m")
    file = read_model(tmp_path / "m")

    def broken(meta=None, **arrays):
        changed = {k: v for k, v in (dict(file.arrays) | arrays).items() if v is not None}
        write_model(tmp_path / "bad", "taxonomy", file.meta | (meta or {}), changed)
        with pytest.raises(ModelFileError, match="not a sound taxonomy model"):
            structsvm.load(tmp_path / "bad")

    for key in ("nodes", "labels", "structure", "n_rows", "params", "n_features", "result"):
        broken({key: None} if key != "result" else {key: {}})
    broken({"labels": ["mac", "linux"]})
    broken({"labels": []})
    broken({"n_rows": 4})
    broken({"n_features": 5})
    for part in ({"loss": "hamming"}, {"attributes": None}, {"leaf_only": 1}, {"intercept": None}):
        broken({"structure": file.meta["structure"] | part})
    broken({"params": file.meta["params"] | {"C": -1.0}})
    broken(weights=None)
    broken(weights=file.arrays["weights"][1:])
    broken(weights=np.full_like(file.arrays["weights"], np.nan))
    broken(**{"taxonomy.parents": file.arrays["taxonomy.parents"] + 100})
    broken(**{"taxonomy.indptr": file.arrays["taxonomy.indptr"][::-1]})
    broken(**{"rows.row": file.arrays["rows.row"] + 100})
    broken(**{"rows.indices": file.arrays["rows.indices"] + 100})


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "labels", "message"),
    [
        ({}, np.where(y == "mac", "linux", y), "the label 'linux' is no node of the taxonomy"),
        ({}, np.full(len(y), "mac"), "needs at least 2 classes; y holds one class, 'mac'"),
        ({}, None, "requires y to be passed"),
        ({}, y[:-1], "inconsistent numbers of samples"),
        ({"taxonomy": [("a", "b"), ("b", "a")]}, y, "the taxonomy has a cycle"),
        ({"taxonomy": [("a", "b"), ("c", "d")]}, y, "the taxonomy has 2 roots"),
        ({"taxonomy": [("a", "b"), ("a", "b")]}, y, "is repeated"),
        ({"taxonomy": None, "leaf_only": False}, y, "leaf_only=False needs a taxonomy"),
        ({"loss": "hamming"}, y, "The 'loss' parameter of TaxonomyClassifier must be 'auto' or 'tree' or 'path'"),
        ({"loss": np.ones((5, 5))}, y, "must be 0 on the diagonal"),
        ({"loss": np.full((5, 5), np.nan)}, y, "'loss' parameter must hold finite numbers"),
        ({"loss": 1.0 - np.eye(9) - 2.0 * (np.arange(9) == 0), "leaf_only": False}, y, "that are not negative"),
        ({"loss": np.ones((4, 4))}, y, "'loss' parameter must have a row for each of the 5 nodes"),
        ({"attributes": np.ones((4, 4))}, y, "'attributes' parameter must have a row for each of the 5 nodes"),
        ({"attributes": [["a"]]}, y, "'attributes' parameter must be a matrix of numbers"),
        ({"C": 0.0}, y, "The 'C' parameter of TaxonomyClassifier must be a float"),
        ({"solver": "sgd"}, y, "The 'solver' parameter"),
        ({"solver": LaRank(), "C": 1.0}, y, "The 'C' parameter is set beside a solver object"),
        ({"max_weights": 0}, y, "The 'max_weights' parameter"),
        ({"class_weight": "even"}, y, "The 'class_weight' parameter"),
    ],
)
def test_bad_input(params, labels, message):
    model = fitted()
    before = model.node_scores(X)
    model.set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(X[:, :3], labels)
    np.testing.assert_array_equal(model.node_scores(X), before)


def test_bad_documents():
    model = fitted()
    with pytest.raises(ValueError, match="X has 3 features, but TaxonomyClassifier is expecting 6"):
        model.predict(X[:, :3])
    with (
        pytest.raises(ValueError, match=r"infinity or a value too large for dtype\('float32'\)"),
        np.errstate(over="ignore"),
    ):
        model.fit(np.where(np.arange(6) == 2, 1e300, X), y)
    with pytest.warns(DataConversionWarning):
        model.fit(X, y[:, None])
    # A document without known features has a prediction like any other: what the intercepts say.
    assert model.predict(sp.csr_array((1, 6)))[0] in NAMES
    assert TaxonomyClassifier(PATHS, fit_intercept=False).fit(np.zeros_like(X), y).predict(X[:1])[0] == "autos"


@pytest.mark.parametrize("first", [True, False])
def test_threads_resume_what_one_has_begun(tmp_path, first):
    def classifier(deterministic, **options):
        solver = LaRank(C=0.1, random_state=0, n_jobs=2, deterministic=deterministic, **options)
        return TaxonomyClassifier(PATHS, solver=solver, warm_start=True)

    begun = {"max_iter": 2, "tol": None, "checkpoint": tmp_path / "checkpoint"}
    model, ended = classifier(first, **begun).fit(X, y), {"max_iter": 200, "tol": 1e-4}
    optimum = classifier(True, **ended).fit(X, y).result_.dual
    assert model.result_.dual < 0.999 * optimum
    from_file = classifier(not first, **begun | ended).fit(X, y)
    for resumed in (from_file, model.set_params(solver=classifier(not first, **ended).solver).fit(X, y)):
        assert resumed.result_.n_iter > 2 and resumed.result_.status == "converged"
        assert resumed.result_.dual == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("attributes", ["ancestors", "flat"])
def test_a_linear_kernel_has_weights(attributes):
    model = TaxonomyClassifier(PATHS, kernel="linear", attributes=attributes, C=1.0, random_state=0).fit(X, y)
    rows = model._documents(model.model_, X)
    scores = rows @ model.coef_.T + model.intercept_
    found = scores if attributes == "flat" else model.node_scores(X)[:, 1:]
    wanted = model.decision_function(X) if attributes == "flat" else scores @ _below(model).T
    np.testing.assert_allclose(wanted, found, atol=1e-3)
    assert not hasattr(TaxonomyClassifier(PATHS, kernel="rbf", C=1.0, random_state=0).fit(X, y), "coef_")


def _below(model):
    """Whether each node is, or is above, each other: rows and columns are the nodes below the root."""
    nodes = model.nodes_.tolist()[1:]
    return np.array([[other in model.taxonomy_.ancestors(node) for other in nodes] for node in nodes], dtype=float)


def test_rows_whose_label_is_missing():
    labels = np.array([np.nan if k % 4 == 1 else name for k, name in enumerate(y)], dtype=object)
    with pytest.raises(ValueError, match=r"y has no label .* row 1 the first: None says that a label is not known"):
        TaxonomyClassifier(C=1.0).fit(X, labels)
