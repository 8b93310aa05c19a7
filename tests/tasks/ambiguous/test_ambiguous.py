"""AmbiguousClassifier: learning from candidates, streams, files, bad input; real partial labels."""

import os
import pickle

import bag_reference as reference
import numpy as np
import pytest
import scipy.sparse as sp

import structsvm
from structsvm import LaRank, LatentSVM, ModelFileError, PassiveAggressive
from structsvm.datasets import fetch_lost, fetch_msrcv2
from structsvm.model_file import read_model, write_model
from structsvm.oracles.ambiguous import AmbiguousOracle
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood
from structsvm.tasks import AmbiguousClassifier
from structsvm.tasks.ambiguous.model import LOSSES, PATIENCE_OF_BAGS, BaggedRows, encode_bags

NAMES = np.array(["anna", "bo", "cem", "dia", "eva"])


def clusters(n=300, seed=0, n_wrong=2):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)
    X = np.eye(5)[truth] * 3.0 + 0.7 * rng.normal(size=(n, 5))
    bags = [{str(NAMES[y]), *map(str, rng.choice(NAMES, n_wrong))} for y in truth]
    return X, bags, NAMES[truth]


def test_candidates_are_enough():
    X, bags, _ = clusters()
    X_test, _, truth_test = clusters(seed=1)
    for solver in ("larank", "passive_aggressive", "cutting_plane", "frank_wolfe"):
        model = AmbiguousClassifier(solver=solver, random_state=0).fit(X, bags)
        assert model.score(X_test, truth_test) > 0.88
        assert model.classes_.tolist() == NAMES.tolist()
    assert model.predict(X_test).dtype == NAMES.dtype
    np.testing.assert_allclose(model.decision_function(X_test), X_test @ model.coef_.T + model.intercept_, atol=1e-10)
    assert model.score(X, bags) == np.mean([p in bag for p, bag in zip(model.predict(X), bags, strict=True)])


def test_the_certificate_is_of_the_objective():
    X, bags, _ = clusters(40)
    settings = {"loss": "pairwise", "C": 0.5, "tol": 1e-6, "max_iter": 3000, "random_state": 0}
    model = AmbiguousClassifier(**settings, fit_intercept=False, standardize=False).fit(X, bags)
    assert model.result_.status == "converged"
    number = {name: k for k, name in enumerate(NAMES.tolist())}
    sets = [{number[name] for name in bag} for bag in bags]
    value = reference.primal(model.coef_.T.ravel(), X, sets, 5, np.full(40, 0.5))
    assert model.result_.primal == pytest.approx(value, rel=1e-9)
    assert not model.intercept_.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_dense_and_sparse_are_one(loss, fit_intercept):
    X, bags, _ = clusters(40)
    X[np.abs(X) < 1.0] = 0.0
    settings = {"loss": loss, "fit_intercept": fit_intercept, "standardize": False, "max_iter": 20, "random_state": 0}
    models = [AmbiguousClassifier(0.1, **settings).fit(form, bags) for form in (X, sp.csr_matrix(X), sp.csc_array(X))]
    for model in models[1:]:
        assert model.result_.primal == pytest.approx(models[0].result_.primal, rel=1e-5)
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-12 if loss == "pairwise" else 1e-2)
        np.testing.assert_array_equal(model.predict(sp.csr_array(X)), models[0].predict(X))


def test_any_collection_is_a_bag():
    X, bags, truth = clusters(60)
    models = [
        AmbiguousClassifier(random_state=0).fit(X, y)
        for y in (
            bags,
            [sorted(b) for b in bags],
            [tuple(sorted(b, reverse=True)) for b in bags],
            [*map(frozenset, bags)],
        )
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
    known = AmbiguousClassifier(random_state=0).fit(X, truth)
    same = AmbiguousClassifier(random_state=0).fit(X, [[name] for name in truth])
    np.testing.assert_array_equal(known.coef_, same.coef_)
    mixed = AmbiguousClassifier(loss="log", random_state=0).fit(X, [1 if k % 2 else {2, 3} for k in range(60)])
    assert mixed.classes_.tolist() == [1, 2, 3]


def test_a_stream():
    X, bags, truth = clusters(400)
    model = AmbiguousClassifier(solver="passive_aggressive", random_state=0)
    for k in range(0, 400, 20):
        model.partial_fit(X[k : k + 20], bags[k : k + 20], classes=NAMES)
    assert model.score(X, truth) > 0.88
    with pytest.raises(ValueError, match="example 0 has the candidate 'zoe', which is not one of the model's labels"):
        model.partial_fit(X[:1], [{"zoe"}])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:1, :3], bags[:1])
    np.testing.assert_array_equal(model.coef_, before)


def test_going_on_and_files(tmp_path):
    X, bags, _ = clusters(60)
    whole = AmbiguousClassifier(max_iter=6, random_state=0).fit(X, bags)
    half = AmbiguousClassifier(max_iter=3, random_state=0, warm_start=True).fit(X, bags)
    half.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert isinstance(loaded, AmbiguousClassifier)
    assert loaded.get_params() == half.get_params()
    np.testing.assert_array_equal(loaded.predict(X), half.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(half)).decision_function(X), half.decision_function(X))
    for model in (half, loaded):
        model.fit(X, bags)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert model.n_iter_ == 6
    again = loaded.fit(X[::-1].copy(), bags[::-1])  # other data: the problem around the weights so far
    assert again.n_iter_ == 3
    assert 0.0 <= again.result_.gap < np.inf
    solver = AmbiguousClassifier(solver=PassiveAggressive(C=3.0, random_state=1)).fit(X, bags)
    solver.save(tmp_path / "s")
    assert structsvm.load(tmp_path / "s").solver.C == 3.0


def test_what_the_model_was_trained_with_stays(tmp_path):
    """Whatever becomes of the parameters, and whatever later fits refuse."""
    X, bags, _ = clusters(60)
    model = AmbiguousClassifier(random_state=0).fit(X, bags)
    wanted = model.decision_function(X)
    model.set_params(fit_intercept=False)
    with pytest.raises(ValueError, match="candidate labels of example 0 is empty"):
        model.fit(np.ones((2, 3)), [set(), {"anna"}])
    np.testing.assert_array_equal(model.decision_function(X), wanted)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(structsvm.load(tmp_path / "m").decision_function(X), wanted)
    with pytest.raises(ValueError, match="another 'fit_intercept'"):
        model.partial_fit(X, bags)
    assert model.set_params(fit_intercept=True).partial_fit(X, bags).intercept_.any()


def test_sparse_rows_with_repeated_columns():
    """Entries of one place add up."""
    twice = sp.csr_array(([1.0, 1.0, 2.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    models = [AmbiguousClassifier(C=1.0, random_state=0).fit(rows, ["a", "b"]) for rows in (twice, twice.toarray())]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_)
    assert twice.nnz == 3


@pytest.mark.parametrize("scale", [1e160, 1e200])
def test_squares_that_overflow(scale):
    with pytest.raises(ValueError, match="squares of X overflow; scale the features down"):
        AmbiguousClassifier().fit(scale * np.eye(2), ["a", "b"])


def test_classes_of_a_stream():
    X, bags, _ = clusters(20)
    model = AmbiguousClassifier(random_state=0).partial_fit(X, bags, classes=[*NAMES, "anna"])
    assert model.classes_.tolist() == sorted(NAMES)
    model.partial_fit(X, bags, classes=NAMES)
    with pytest.raises(ValueError, match="not the same as on the last call"):
        model.partial_fit(X, bags, classes=["anna", "bo"])


def test_damaged_files(tmp_path):
    X, bags, _ = clusters(30)
    model = AmbiguousClassifier(random_state=0).fit(X, bags)
    model.save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    for meta, arrays in (
        ({"labels": ["a"] * 5}, {}),
        ({"labels": ["a"]}, {}),
        ({"params": {"C": -1.0, "solver": "larank"}}, {}),
        ({"params": None}, {}),
        ({"n_features_in": 7}, {}),
        ({}, {"weights": file.arrays["weights"] * np.nan}),
        ({}, {"weights": file.arrays["weights"][:3]}),
    ):
        write_model(tmp_path / "d", "ambiguous", file.meta | meta, file.arrays | arrays)
        with pytest.raises(ModelFileError, match="not a sound ambiguous model"):
            structsvm.load(tmp_path / "d")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([{"a"}, set(), {"b"}], "candidate labels of example 1 is empty"),
        ([{"a"}, {"b"}], "X has 3 samples, y has 2"),
        ([{"a"}, {"a"}, {"a"}], "at least 2 classes"),
        ([{0.5}, {1.0}, {2.0}], "Unknown label type: continuous"),
        (None, "the target y is None"),
    ],
)
def test_candidates_that_do_not_fit(y, message):
    with pytest.raises(ValueError, match=message):
        AmbiguousClassifier().fit(np.ones((3, 2)), y)


def test_parameters():
    X, bags, _ = clusters(20)
    for params in ({"C": 0.0}, {"solver": "perceptron"}, {"fit_intercept": 1}, {"max_iter": 0}, {"tol": -1.0}):
        (name,) = params
        with pytest.raises(ValueError, match=f"The '{name}' parameter of AmbiguousClassifier must be"):
            AmbiguousClassifier(**params).fit(X, bags)
    with pytest.raises(ValueError, match="beside a solver object"):
        AmbiguousClassifier(C=1.0, solver=LaRank()).fit(X, bags)
    with pytest.raises(ValueError, match="margin"):
        AmbiguousClassifier(solver=LaRank(rescaling="slack")).fit(X, bags)


def test_a_weight_of_two_is_a_row_twice():
    X, bags, _ = clusters(15)
    weight = np.where(np.arange(15) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(15), weight.astype(int))
    settings = {"loss": "pairwise", "C": 0.1, "tol": 1e-9, "max_iter": 5000, "random_state": 0}
    one = AmbiguousClassifier(**settings).fit(X, bags, sample_weight=weight)
    two = AmbiguousClassifier(**settings).fit(X[rows], [bags[i] for i in rows])
    assert one.result_.dual == pytest.approx(two.result_.dual, rel=1e-8)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)


@pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA names no data folder")
@pytest.mark.parametrize(
    ("fetch", "n_rows", "n_labels", "mean", "accuracy"),
    [(fetch_lost, 1122, 16, 2.23, 0.5), (fetch_msrcv2, 1758, 23, 3.16, 0.32)],
)
def test_real_candidates(fetch, n_rows, n_labels, mean, accuracy):
    data = fetch()
    assert repr(data) == f"CandidateLabels(n_rows={n_rows}, n_labels={n_labels})"
    assert np.mean([len(c) for c in data.candidates]) == pytest.approx(mean, abs=0.005)
    assert all(y in c for y, c in zip(data.y, data.candidates, strict=True))
    test = data.folds == 0
    X = (data.X - data.X[~test].mean(axis=0)) / np.maximum(data.X[~test].std(axis=0), 1e-12)
    model = AmbiguousClassifier(C=0.1, max_iter=20, random_state=0)
    model.fit(X[~test], [c for c, out in zip(data.candidates, test, strict=True) if not out])
    assert model.score(X[test], data.y[test]) > accuracy


# --- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_objective_never_rises(n_jobs):
    """The objective of "max" falls or stays from round to round; it is that of the weights with the completions."""
    X, bags, _ = clusters(80)
    sets = encode_bags(bags)[1]
    seen = []

    class Watch(Monitor):
        def end_pass(self, run):
            if not run.is_soft and run.chosen is None and np.isfinite(run.primal):
                seen.append((run.objective, run.primal, run.dual, run.weights, run.problem.labels))
            return False

    for start in ("soft", "random"):
        seen.clear()
        problem = AmbiguousOracle(5, 5, "max").bind(X, sets)
        solver = LatentSVM(LaRank(C=0.3, tol=1e-3, random_state=0, n_jobs=n_jobs), start=start, tol=0.0)
        run = solver.solve(problem, monitor=Watch())
        objectives = np.array([objective for objective, *_ in seen if np.isfinite(objective)])
        assert (np.diff(objectives) <= 1e-9 * objectives[:-1]).all()
        assert run.primal <= objectives[-1]
        assert run.status == "converged"
        for _, primal, dual, weights, labels in seen[:: len(seen) // 3]:
            scores = X @ weights.reshape(5, 5)
            targets = [{y: float(y == label) for y in bag} for bag, label in zip(sets, labels.tolist(), strict=True)]
            bounds, values = (
                [reference.other_loss_of("max", s, dict.fromkeys(bag, 1.0), q) for s, bag, q in zip(scores, sets, of)]
                for of in (targets, [None] * len(sets))
            )
            assert primal == pytest.approx(0.5 * weights @ weights + 0.3 * sum(bounds), rel=1e-5)
            assert sum(values) <= sum(bounds) + 1e-9
            assert dual <= primal * (1.0 + 1e-6)
    model = AmbiguousClassifier(loss="max", C=0.3, fit_intercept=False, random_state=0, n_jobs=n_jobs).fit(X, bags)
    assert "of the problem as completed in" in model.result_.certificate()
    assert 1 < model.result_.n_rounds <= model.n_iter_


def test_a_stationary_point_of_the_log_loss():
    """Where the run has converged, the gradient of the objective itself is 0."""
    X, bags, _ = clusters(60)
    model = AmbiguousClassifier(
        loss="log", C=0.3, tol=1e-6, max_iter=3000, fit_intercept=False, standardize=False, random_state=0
    )
    W = model.fit(X, bags).coef_.T
    assert model.result_.status == "converged"
    known = np.array([[name in bag for name in model.classes_.tolist()] for bag in bags])
    p = np.exp(X @ W)
    q = p * known
    np.testing.assert_allclose(W, 0.3 * X.T @ (q / q.sum(axis=1)[:, None] - p / p.sum(axis=1)[:, None]), atol=1e-2)


def test_the_loss_is_chosen_with_its_C():
    X, bags, truth = clusters(200)
    model = AmbiguousClassifier(random_state=0).fit(X, bags)
    table = model.validation_
    assert set(table["losses"]) == set(LOSSES) and table["loss"] == model.loss_
    assert table["losses"][model.loss_][0] == model.C_
    assert table["losses"][model.loss_][1] == min(score for _, score, _ in table["losses"].values())
    assert table["losses"][model.loss_][1] == table["score"].min()
    same = AmbiguousClassifier(loss=model.loss_, C=model.C_, random_state=0).fit(X, bags)
    np.testing.assert_array_equal(same.coef_, model.coef_)
    assert model.score(X, truth) > 0.9
    # With a C that is given, the loss alone is.
    fixed = AmbiguousClassifier(C=0.3, random_state=0).fit(X, bags)
    assert {C for C, _, _ in fixed.validation_["losses"].values()} == {0.3} == {fixed.C_}
    assert fixed.validation_["C"].tolist() == [0.3]


def test_a_checkpoint_stores_the_choice_of_the_loss(tmp_path):
    X, bags, _ = clusters(60)
    solver = LaRank(C=0.1, max_iter=3, random_state=0, checkpoint=tmp_path / "c")
    model = AmbiguousClassifier(solver=solver).fit(X, bags)
    assert read_model(tmp_path / "c").meta["choice"]["loss"] == model.loss_
    assert solver.checkpoint == tmp_path / "c"  # the user's own object stays as it is


def test_a_stream_that_goes_on_keeps_its_loss():
    X, bags, _ = clusters(40)
    model = AmbiguousClassifier(warm_start=True, random_state=0, max_iter=5).partial_fit(X, bags)
    before = model.loss_
    model.fit(X, bags)
    assert model.loss_ == before == "pairwise"
    assert "losses" not in model.validation_ and model.C_ in model.validation_["C"]


def test_max_is_judged_by_its_predictions():
    """By how many are candidates, over both of its good ranges of C; rows of which nothing is known say nothing."""
    X, bags, _ = clusters(90)
    bags[:10] = [None] * 10
    model = AmbiguousClassifier(loss="max", random_state=0).fit(X, bags)
    table = model.validation_
    assert table["metric"] == "share in candidates"
    C = table["C"].tolist()
    assert table["score"].max() == table["score"][C.index(model.C_)] and len(C) - C.index(model.C_) > PATIENCE_OF_BAGS
    problem, says = model.model_, np.array([bag is not None for bag in bags])
    examples = BaggedRows(problem.rows(X), encode_bags(bags, problem.labels)[1])
    _, right, asked = problem.held_out_scores(examples)
    inside = [bag is not None and guess in bag for guess, bag in zip(model.predict(X).tolist(), bags)]
    np.testing.assert_array_equal(right, 1.0 * np.array(inside))
    np.testing.assert_array_equal(asked, 1.0 * says)
    assert AmbiguousClassifier(random_state=0).fit(X, bags).validation_["metric"] == "candidate log loss"


def test_losses_that_the_solver_minimises():
    X, bags, _ = clusters(60)
    for solver, losses in (
        ("larank", {*LOSSES}),
        ("frank_wolfe", {"pairwise", "mean", "max"}),
        (LaRank(C=0.1, random_state=0), {"pairwise", "mean", "max"}),
    ):
        model = AmbiguousClassifier(solver=solver, random_state=0 if isinstance(solver, str) else None).fit(X, bags)
        assert set(model.validation_["losses"]) == losses
    for loss, solver, message in (
        ("mean", LatentSVM(LaRank()), "loss='mean' needs no completions: loss='max' does"),
        ("log", "frank_wolfe", "loss='log' has a solver of its own"),
        ("pairwise", ConditionalLikelihood(), "minimises the log loss"),
    ):
        with pytest.raises(ValueError, match=message):
            AmbiguousClassifier(loss=loss, solver=solver).fit(X, bags)
    with pytest.raises(ValueError, match="'loss' parameter of AmbiguousClassifier must be"):
        AmbiguousClassifier(loss="hinge").fit(X, bags)
    log = AmbiguousClassifier(solver=ConditionalLikelihood(C=0.3, random_state=0)).fit(X, bags)
    assert log.loss_ == "log" and log.C_ == 0.3


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_go_on(loss, tmp_path):
    """From files, on the same data and on streams; and only with the loss that there was."""
    X, bags, truth = clusters(120)
    settings = {"loss": loss, "C": 0.1, "random_state": 0, "warm_start": True}
    whole = AmbiguousClassifier(**settings, max_iter=6).fit(X, bags)
    half = AmbiguousClassifier(**settings, max_iter=3).fit(X, bags)
    half.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    for model in (half, loaded):
        assert model.fit(X, bags).loss_ == loss
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert model.result_.primal == whole.result_.primal
    stream = AmbiguousClassifier(loss=loss, random_state=0)
    for k in range(0, 120, 40):
        stream.partial_fit(X[k : k + 40], bags[k : k + 40], classes=NAMES)
    assert stream.score(X, truth) > 0.85 and stream.loss_ == loss
    other = "mean" if loss != "mean" else "log"
    with pytest.raises(ValueError, match=f"trained with another 'loss'; set it back.* Got '{other}', it has '{loss}'"):
        loaded.set_params(loss=other).fit(X, bags)
    with pytest.raises(ValueError, match=r"trained with another 'fit_intercept'; set it back.* Got False, it has True"):
        loaded.set_params(loss=loss, fit_intercept=False).fit(X, bags)
    loaded.set_params(fit_intercept=True)
    assert loaded.set_params(loss="auto").partial_fit(X, bags).loss_ == loss


def test_a_file_of_an_unknown_loss(tmp_path):
    X, bags, _ = clusters(60)
    AmbiguousClassifier(loss="pairwise", random_state=0).fit(X, bags).save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    write_model(tmp_path / "bad", "ambiguous", file.meta | {"loss": "hinge"}, file.arrays)
    with pytest.raises(ModelFileError, match="not a sound ambiguous model"):
        structsvm.load(tmp_path / "bad")


# --- what y may be --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["log", "mean", "auto"])
def test_weights_of_candidates(loss):
    """Votes tell more than sets; equal ones are sets; a matrix is the same as dicts."""
    rng = np.random.default_rng(0)
    X, _, truth = clusters(200)
    X += 1.5 * rng.normal(size=X.shape)
    y = np.array([NAMES.tolist().index(name) for name in truth])
    votes = np.array([rng.multinomial(5, np.where(np.arange(5) == k, 0.48, 0.13)) for k in y])
    settings = {"loss": loss, "random_state": 0} | ({} if loss == "auto" else {"C": 0.1})
    dicts = [{k: int(n) for k, n in enumerate(row) if n} for row in votes]
    model = AmbiguousClassifier(**settings).fit(X, dicts)
    for form in (sp.csr_array(votes), votes.astype(float)):
        np.testing.assert_array_equal(AmbiguousClassifier(**settings).fit(X, form).coef_, model.coef_)
    sets = AmbiguousClassifier(**settings).fit(X, [set(bag) for bag in dicts])
    assert model.score(X, y) > sets.score(X, y)
    equal = AmbiguousClassifier(**settings).fit(X, [dict.fromkeys(bag, 2.5) for bag in dicts])
    np.testing.assert_array_equal(equal.coef_, sets.coef_)
    if loss == "auto":
        assert set(model.validation_["losses"]) == {"log", "mean"}


def test_a_frame_of_weights_names_its_columns():
    pandas = pytest.importorskip("pandas")
    X, bags, _ = clusters(60)
    frame = pandas.DataFrame([[float(name in bag) for name in NAMES] for bag in bags], columns=NAMES)
    one, other = (AmbiguousClassifier(loss="log", C=0.1, random_state=0).fit(X, y) for y in (frame, bags))
    assert one.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_rows_of_which_nothing_is_known():
    X, _, truth = clusters(90)
    y = [NAMES.tolist().index(name) for name in truth]
    known = np.arange(90) % 3 > 0
    settings = {"loss": "log", "C": 0.1, "tol": 1e-4, "max_iter": 2000, "standardize": False, "random_state": 0}
    wanted = AmbiguousClassifier(**settings).fit(X[known], [y[i] for i in np.flatnonzero(known)])
    for unknown in (None, -1, {0, 1, 2, 3, 4}):
        model = AmbiguousClassifier(unknown=-1, **settings)
        model.fit(X, [k if there else unknown for k, there in zip(y, known)])
        assert model.n_unknown_ == 30
        assert model.classes_.tolist() == [0, 1, 2, 3, 4]
        assert model.result_.primal == pytest.approx(wanted.result_.primal, rel=2e-4)
    two, five = (AmbiguousClassifier(loss="log", C=0.1, random_state=0, unknown=None) for _ in range(2))
    assert two.fit(X, [-1 if k < 2 else 1 for k in y]).classes_.tolist() == [-1, 1]
    assert five.fit(X, [k - 2 for k in y]).classes_.tolist() == [-2, -1, 0, 1, 2]
    with pytest.warns(structsvm.AdviceWarning, match="1 rows have a label that training never saw"):
        assert model.score(X[:3], [None, None, 7]) == 0.0


@pytest.mark.parametrize(
    ("y", "loss", "message"),
    [
        ([None, None], "log", "nothing is known of any row"),
        ([{"a": 1.0, "b": -1.0}, "b"], "log", "weights of the candidates of example 0 must be finite and not negative"),
        ([{"a": 1.0, "b": np.nan}, "b"], "log", "weights of the candidates of example 0 must be finite"),
        ([{"a": 0.0}, "b"], "log", "candidate labels of example 0 is empty"),
        (sp.csr_array([[0.0, 0.0], [1.0, 1.0]]), "log", "candidate labels of example 0 is empty"),
        ([{"a": 1.0, "b": 2.0}, "b"], "pairwise", "'pairwise' loss does not weight candidates; 'mean' and 'log' do"),
    ],
)
def test_weights_that_do_not_fit(y, loss, message):
    with pytest.raises(ValueError, match=message):
        AmbiguousClassifier(loss=loss, C=1.0).fit(np.eye(2), y)


def test_an_array_of_0_and_1_is_a_matrix():
    X, bags, _ = clusters()
    matrix = np.array([[name in bag for name in NAMES] for bag in bags])
    one = AmbiguousClassifier(C=1.0, random_state=0).fit(X, matrix)
    for form in (matrix.astype(int), sp.csr_array(matrix), sp.csr_array(matrix.astype(int)), sp.csr_matrix(matrix * 1)):
        np.testing.assert_array_equal(AmbiguousClassifier(C=1.0, random_state=0).fit(X, form).coef_, one.coef_)
    pairs = AmbiguousClassifier(C=1.0, random_state=0).fit(X, np.array([[k % 3, 3] for k in range(len(X))]))
    assert pairs.classes_.tolist() == [0, 1, 2, 3]  # candidates by their labels
