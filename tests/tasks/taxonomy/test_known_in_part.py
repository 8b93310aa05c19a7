"""TaxonomyClassifier on documents at inner nodes, and on sets of nodes."""

import pickle
from functools import partial

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning, CuttingPlane, FrankWolfe, LaRank, LatentSVM
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks import TaxonomyClassifier

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

PATHS = [["comp", "mac"], ["comp", "pc"], ["rec", "autos"], ["rec", "motor"], ["rec", "sport", "hockey"]]
NAMES = [path[-1] for path in PATHS]
TAXONOMY = Taxonomy.from_paths(PATHS)
INNER = {name: TAXONOMY.path(name)[0] for name in NAMES}

# Inner nodes mean unknown leaves below.
in_part = partial(TaxonomyClassifier, taxonomy=PATHS, leaf_only=True)


def data(n=120, noise=0.5, seed=0):
    """Rows around a centre for each leaf, near that of its parent."""
    rng = np.random.default_rng(0)
    above = {name: rng.normal(size=6) for name in ("comp", "rec")}
    centres = {path[-1]: above[path[0]] + 0.7 * rng.normal(size=6) for path in PATHS}
    rng = np.random.default_rng(seed)
    y = rng.choice(NAMES, n)
    return np.array([centres[name] for name in y]) + noise * rng.normal(size=(n, 6)), y


X, y = data()


def at_inner_nodes(y, share, seed=0):
    hidden = np.random.default_rng(seed).random(len(y)) < share
    return np.where(hidden, [INNER[name] for name in y], y), hidden


def as_objects(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def sets_of(labels, sets):
    """Labels, of which some are sets."""
    return as_objects([set_ if set_ is not None else label for label, set_ in zip(labels, sets, strict=True)])


@pytest.mark.parametrize("form", ["nodes", "sets of nodes", "sets of leaves", "list"])
def test_forms(form):
    """The same documents, known in the same way."""
    names, hidden = at_inner_nodes(y, 0.5)
    model = in_part(C=1.0, random_state=0).fit(X, names)
    below = {inner: {name for name in NAMES if INNER[name] == inner} for inner in set(INNER.values())}
    if form == "sets of nodes":
        names = sets_of(names, [{name} if h else None for name, h in zip(names, hidden, strict=True)])
    elif form in ("sets of leaves", "list"):
        names = sets_of(names, [below[name] if h else None for name, h in zip(names, hidden, strict=True)])
    other = in_part(C=1.0, random_state=0).fit(X, list(names) if form == "list" else names)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.result_.n_rounds > 1
    assert set(model.classes_) == set(NAMES)


def test_half_of_the_documents_at_inner_nodes_are_worth_more_than_none():
    X, y = data(80, noise=1.0, seed=3)
    X_test, y_test = data(2000, noise=1.0, seed=4)
    names, hidden = at_inner_nodes(y, 0.8)
    part, alone = (
        in_part(C=0.3, random_state=0).fit(rows, labels) for rows, labels in ((X, names), (X[~hidden], y[~hidden]))
    )
    assert part.score(X_test, y_test) > alone.score(X_test, y_test)


def test_what_is_known_whole_is_trained_on_as_ever():
    model = in_part(C=1.0, random_state=0).fit(X, y)
    for labels in ([{name} for name in y], [{name} if k % 2 else name for k, name in enumerate(y)]):
        other = in_part(C=1.0, random_state=0).fit(X, as_objects(labels))
        np.testing.assert_array_equal(model.coef_, other.coef_)
        assert other.result_.n_rounds == 0
        assert (other.C_, other.temperature_) == (model.C_, model.temperature_)


def test_an_inner_node_above_one_label_is_that_label():
    taxonomy = [("root", "a"), ("a", "a1"), ("root", "b"), ("b", "b1"), ("b", "b2")]
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 3)), rng.choice(["a1", "b1"], 40)
    upper = np.where(rng.random(40) < 0.5, [label[0] for label in labels], labels)
    model, other = (
        TaxonomyClassifier(taxonomy, leaf_only=True, C=1.0, random_state=0).fit(rows, names)
        for names in (labels, upper)
    )
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert other.classes_.tolist() == ["a1", "b1"]


def test_the_root_says_nothing():
    names = as_objects([*y[:60], *["ROOT"] * 60])
    model = in_part(C=1.0, random_state=0).fit(X, names)
    assert set(model.classes_) == set(y[:60])
    assert model.score(X[60:], y[60:]) > 0.8


@pytest.mark.parametrize("labels", [[1, 2, 3], [("x", 1), ("x", 2), ("y", 1)], ["p", "q", "r"]], ids=repr)
def test_sets_without_a_taxonomy(labels):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    ids = rows.argmax(axis=1)
    known = [
        labels[k] if rng.random() < 0.3 else frozenset({labels[k], labels[int(rng.integers(3))]}) for k in ids.tolist()
    ]
    model = TaxonomyClassifier(C=1.0, random_state=0).fit(rows, as_objects(known))
    assert model.classes_.tolist() == labels
    assert np.mean([a == labels[k] for a, k in zip(model.predict(rows).tolist(), ids, strict=True)]) > 0.9


def test_with_any_node_sets_alone_are_open():
    names, _ = at_inner_nodes(y, 0.3)
    whole = TaxonomyClassifier(PATHS, leaf_only=False, C=1.0, random_state=0).fit(X, names)
    assert whole.result_.n_rounds == 0
    known = sets_of(names, [{"comp", "pc"} if name in ("comp", "pc") else None for name in names])
    model = TaxonomyClassifier(PATHS, leaf_only=False, C=1.0, random_state=0).fit(X, known)
    assert model.result_.n_rounds > 0
    assert set(model.model_.labels) >= {"comp", "pc", "rec"}


@pytest.mark.parametrize("dense", [True, False])
def test_auto_chooses_c_on_what_is_known_whole(dense):
    names, hidden = at_inner_nodes(y, 0.5)
    rows = X if dense else __import__("scipy.sparse").sparse.csr_array(X)
    model = in_part(standardize=False, random_state=0).fit(rows, names)
    alone = in_part(standardize=False, random_state=0).fit(rows[~hidden], names[~hidden])
    assert model.C_ == alone.C_
    assert model.validation_["n_held_out"] == alone.validation_["n_held_out"]
    few = in_part(random_state=0).fit(X, at_inner_nodes(y, 0.9)[0])
    assert few.C_ == 1.0


def test_probabilities_are_fitted_to_what_is_known():
    names, _ = at_inner_nodes(y, 0.5)
    model = in_part(C=1.0, random_state=0).fit(X, names)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert -np.log(proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean() < np.log(5)


SOLVERS = [
    "larank",
    "cutting_plane",
    "frank_wolfe",
    "passive_aggressive",
    LaRank(C=0.5, rescaling="slack", random_state=0),
    FrankWolfe(C=0.5, random_state=0),
    CuttingPlane(C=0.5, form="one_slack", random_state=0),
    LatentSVM(LaRank(C=0.5, random_state=0), start="easiest", rounds=6),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_solvers(solver):
    names, _ = at_inner_nodes(y, 0.5)
    params = {"C": 1.0, "random_state": 0} if isinstance(solver, str) else {"C": None}
    model = in_part(solver=solver, **params).fit(X, names)
    assert model.result_.n_rounds > 1
    assert model.score(X, y) > 0.55  # passive-aggressive steps go over the documents once a round
    assert model.get_params()["solver"] is solver


def test_the_log_loss():
    names, _ = at_inner_nodes(y, 0.5)
    model = in_part(loss="log", C=1.0, random_state=0).fit(X, names)
    assert model.result_.n_rounds > 1
    assert model.score(X, y) > 0.8
    model = TaxonomyClassifier(
        PATHS, leaf_only=True, loss="log", solver=LatentSVM(ConditionalLikelihood(random_state=0)), C=None
    )
    with pytest.raises(ValueError, match="has a solver of its own"):
        model.fit(X, names)


def test_files_and_warm_starts(tmp_path):
    names, _ = at_inner_nodes(y, 0.5)
    model = in_part(C=1.0, random_state=0, warm_start=True).fit(X, names)
    model.save(tmp_path / "m")
    before = model.result_.primal
    for other in (structsvm.load(tmp_path / "m"), pickle.loads(pickle.dumps(model)), model):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.fit(X, names).result_.primal <= before * (1.0 + 1e-9)
    solver = LatentSVM(LaRank(C=0.5, random_state=0), rounds=6, start="random")
    in_part(C=None, solver=solver).fit(X, names).save(tmp_path / "s")
    loaded = structsvm.load(tmp_path / "s").solver
    assert repr(loaded) == repr(solver)
    # With other data training goes on around the weights.
    model.fit(X[:40], y[:40])
    assert model.result_.n_rounds == 0


@pytest.mark.parametrize("loss", ["tree", "log"])
def test_a_warm_start_around_other_weights(loss):
    """In a problem around weights w0 every round's objective is around them, whether it is resumed or not."""
    names, _ = at_inner_nodes(y, 0.6)
    model = in_part(loss=loss, C=0.1, random_state=0, warm_start=True).fit(X[:40], y[:40])
    first = model.coef_.copy(), model.intercept_.copy()
    for _ in range(3):
        model.fit(X[40:], names[40:])
        norm = 0.5 * sum(((a - b) ** 2).sum() for a, b in zip((model.coef_, model.intercept_), first, strict=True))
        assert model.result_.primal >= norm * (1.0 - 1e-6)
        assert model.result_.n_rounds > 0
        assert "base" in model.model_.state
    again = in_part(loss=loss, C=0.1, random_state=0, warm_start=True).fit(X[:40], y[:40])
    assert model.result_.primal <= again.fit(X[40:], names[40:]).result_.primal * (1.0 + 1e-9)


def test_a_stream():
    names, _ = at_inner_nodes(y, 0.5)
    model = in_part(random_state=0)
    for start in range(0, 120, 30):
        model.partial_fit(X[start : start + 30], names[start : start + 30], classes=sorted(NAMES))
    assert model.n_iter_ == 1
    assert model.score(X, y) > 0.8


def test_a_checkpoint(tmp_path):
    names, _ = at_inner_nodes(y, 0.5)
    whole = in_part(C=1.0, random_state=0).fit(X, names)
    path = tmp_path / "run"
    found = in_part(C=1.0, random_state=0, checkpoint=path).fit(X, names)
    np.testing.assert_array_equal(found.coef_, whole.coef_)
    assert path.exists()
    again = in_part(C=1.0, random_state=0, checkpoint=path).fit(X, names)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_few_weights():
    names, _ = at_inner_nodes(y, 0.5)
    rows = (X > 0.0).astype(float)
    model = in_part(C=1.0, random_state=0, max_weights=30).fit(rows, names)
    assert hasattr(model.coef_, "indptr")
    assert model.score(rows, y) > 0.5


def test_jobs_make_no_difference():
    names, _ = at_inner_nodes(y, 0.5)
    one, two = (in_part(C=1.0, random_state=0, n_jobs=n).fit(X, names) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    ("labels", "params", "message"),
    [
        ([set(), *y[1:]], {}, "y holds an empty set, and a document has one label"),
        ([{"mac", "linux"}, *y[1:]], {}, "the label 'linux' is no node of the taxonomy"),
        (["linux", "comp", *y[2:]], {}, "the label 'linux' is no node of the taxonomy"),
        (["sport", *np.where(y == "hockey", "pc", y)[1:]], {}, "y has the inner node 'sport', and none of the leaves"),
        (["comp"] * len(y), {}, "y has the inner node 'comp', and none of the leaves"),
        ([{"mac"}] * len(y), {}, "needs at least 2 classes"),
        (["comp", *y[1:]], {"kernel": "rbf"}, "with a kernel each label must be known"),
        (["comp", *y[1:]], {"class_weight": "balanced"}, "class_weight goes by the true class"),
        (["comp", *y[1:]], {"solver": "perceptron"}, "'solver' parameter of LatentSVM must be a solver of the dual"),
        ([["mac"], *y[1:]], {}, "y"),
    ],
)
def test_bad_input(labels, params, message):
    model = TaxonomyClassifier(
        PATHS, leaf_only=True, random_state=0, **({} if "solver" in params else {"C": 1.0}) | params
    )
    with pytest.raises(ValueError, match=message):
        model.fit(X, as_objects(list(labels)))
    assert not hasattr(model, "model_")


def test_labels_of_a_stream_are_settled():
    model = in_part(random_state=0).partial_fit(X, np.where(y == "hockey", "pc", y))
    with pytest.raises(ValueError, match="y has the inner node 'sport', and none of the leaves below"):
        model.partial_fit(X[:2], np.array(["sport", "mac"]))
    flat = TaxonomyClassifier(random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="y has a set with the label 'linux', which is none of the classes"):
        flat.partial_fit(X[:2], as_objects([{"linux", "mac"}, "mac"]))


def test_a_solver_of_whole_outputs_is_refused():
    names, _ = at_inner_nodes(y, 0.5)
    model = in_part(C=1.0, random_state=0).fit(X, names).model_
    problem = model.oracle.bind(model.encode(X.astype(np.float32)), [{0, 1} if k % 2 else 0 for k in range(len(X))])
    with pytest.raises(ValueError, match="does not offer constraints; its outputs are known in part, which LatentSVM"):
        LaRank().solve(problem)
    with pytest.raises(ValueError, match="the output of document 1 is known in part: train with LatentSVM"):
        problem.separate(1, np.zeros(problem.n_features))
    assert problem.expect(1, np.zeros(problem.n_features))[0] == pytest.approx(np.log(5) - np.log(2))


# --- votes, and labels that are not known -----------------------------------------------------------


def test_votes():
    """Votes of annotators who err, for leaves and inner nodes; equal ones are sets, and a margin refuses them."""
    rng = np.random.default_rng(0)
    X, y = data(300, noise=1.0)
    votes = [
        {str(name): int(n) for name, n in zip(NAMES, rng.multinomial(5, [0.16 + 0.2 * (k == label) for k in NAMES]))}
        for label in y
    ]
    X_test, y_test = data(1000, noise=1.0, seed=1)
    model, other = (
        in_part(C=0.3, loss="log", random_state=0).fit(X, as_objects(known)).score(X_test, y_test)
        for known in (votes, [{name for name, n in vote.items() if n} for vote in votes])
    )
    assert model > other + 0.01
    equal, same = (
        in_part(C=0.3, loss="log", random_state=0).fit(X[:40], as_objects([*y[:39], known])).coef_
        for known in ({"mac": 2.0, "pc": 2.0}, {"mac", "pc"})
    )
    np.testing.assert_array_equal(equal, same)
    # A vote for an inner node is shared by the leaves below it.
    for known in ({"comp": 2.0, "autos": 1.5}, {"mac": 1.0, "pc": 1.0, "autos": 1.5}):
        model = in_part(C=0.3, loss="log", random_state=0)
        examples = model._prepare(X[:40], as_objects([*y[:39], known]), None, None)[1]
        assert examples.sets[0] == {0: 1.5} | examples.sets[0]
    with pytest.raises(ValueError, match="weights of candidates need the log loss"):
        in_part(C=1.0).fit(X, as_objects(votes))


@pytest.mark.parametrize("unknown", [None, -1])
def test_labels_that_are_not_known(unknown):
    ids = np.array([NAMES.index(name) for name in y])
    known = [unknown if k % 3 == 0 else int(label) for k, label in enumerate(ids)]
    rest = np.arange(len(y)) % 3 > 0
    settings = {"loss": "log", "C": 1.0, "max_iter": 200, "random_state": 0}
    model = TaxonomyClassifier(unknown=-1, **settings).fit(X, np.array(known) if unknown == -1 else as_objects(known))
    alone = TaxonomyClassifier(**settings).fit(X[rest], ids[rest])
    assert model.classes_.tolist() == [0, 1, 2, 3, 4] and model.n_unknown_ == (~rest).sum()
    assert np.mean(model.predict(X) == alone.predict(X)) > 0.97  # unknown labels say nothing
    # -1 is a label where classes name it, and with unknown=None.
    settings = {"C": 1.0, "random_state": 0}
    for labels in ([-1, 1], [-1, 0, 1], [-2, -1, 0]):
        targets = np.resize(labels, len(y))
        assert TaxonomyClassifier(**settings).partial_fit(X, targets, classes=labels).classes_.tolist() == labels
        assert TaxonomyClassifier(unknown=None, **settings).fit(X, targets).classes_.tolist() == labels
    edges, targets = [(9, -1), (9, 0), (9, 1)], np.resize([-1, 0, 1], len(y))
    assert TaxonomyClassifier(edges, unknown=None, **settings).fit(X, targets).classes_.tolist() == [-1, 0, 1]
    with pytest.raises(ValueError, match="y has -1, which is a node of the taxonomy, and means a label that"):
        TaxonomyClassifier(edges, **settings).fit(X, targets)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([None] * len(y), "y tells nothing of any document"),
        ([{"mac": 0.0}, *y[1:]], "y holds an empty set"),
        ([{"mac": np.nan, "pc": 1.0}, *y[1:]], "weights must be finite and not negative"),
        ([{"mac": -1.0, "pc": 1.0}, *y[1:]], "weights must be finite and not negative"),
        ([{"mac": "many", "pc": 1.0}, *y[1:]], "weights must be numbers"),
    ],
)
def test_bad_votes(labels, message):
    with pytest.raises(ValueError, match=message):
        in_part(loss="log", C=1.0).fit(X, as_objects(list(labels)))


def test_score_is_of_what_is_known():
    model = in_part(C=1.0, random_state=0).fit(X, y)
    found, above = model.predict(X), [INNER[name] for name in y]
    with pytest.raises(ValueError, match=r"120 of 120 documents are at inner nodes.*nothing is left to score"):
        model.score(X, above)
    some = [b if k % 3 else a for k, (a, b) in enumerate(zip(y, above, strict=True))]
    with pytest.warns(AdviceWarning, match=r"80 of 120 documents are at inner nodes.*score leaves them out"):
        assert model.score(X, some) == np.mean((found == y)[::3])
    by_default = TaxonomyClassifier(PATHS, C=1.0, random_state=0).fit(X, y)
    assert by_default.score(X, above) == 0.0  # labels other than those predicted
    sets = [{name, "hockey"} for name in y]
    assert model.score(X, sets) == np.mean([a in some for a, some in zip(found, sets, strict=True)])
    half = as_objects([None if k % 2 else name for k, name in enumerate(y.tolist())])
    assert model.score(X, half) == np.mean((found == y)[::2])
    weight = np.arange(len(y), dtype=float)
    assert model.score(X, half, weight) == pytest.approx(np.average((found == y)[::2], weights=weight[::2]))
    free = TaxonomyClassifier(PATHS, leaf_only=False, C=1.0, random_state=0).fit(X, y)
    assert free.score(X, above) == np.mean(free.predict(X) == above)  # inner nodes are labels like others
    with pytest.raises(ValueError, match="y tells nothing of any example"):
        model.score(X, as_objects([None] * len(y)))
    with pytest.raises(ValueError, match="X has 120 samples, y has 3"):
        model.score(X, y[:3])


def test_minus_one_beside_0_and_1():
    signs = np.arange(len(X)) % 3 - 1
    with pytest.warns(structsvm.AdviceWarning, match="y is -1 at 40 documents, which is read as: not known"):
        model = TaxonomyClassifier(C=1.0, random_state=0).fit(X, signs)
    assert model.classes_.tolist() == [0, 1]
    with pytest.warns(structsvm.AdviceWarning, match="y is -1 at 40 examples that the score leaves out"):
        found = model.score(X, signs)
    assert found == np.mean((model.predict(X) == signs)[signs >= 0])
