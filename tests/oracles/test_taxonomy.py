"""Classes in a taxonomy against all of them written out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from structures_table import Taxonomies

from structsvm import LaRank, Perceptron, StructuredSVM, UnsupportedFormulation
from structsvm.dual._dual import DualState
from structsvm.features.dense import DenseRows
from structsvm.oracles.taxonomy import Candidates, TaxonomyOracle, as_documents
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.taxonomy import Taxonomy


@st.composite
def cases(draw):
    flags = {name: draw(st.booleans()) for name in ("tree", "leaves", "lists")}
    return Taxonomies(draw(st.integers(0, 2**32 - 1)), n_nodes=draw(st.integers(2, 8)), **flags)


# --- scores and decisions -------------------------------------------------------------------------


@given(cases())
def test_scores_and_decisions(case):
    decoder, w = case.oracle.decoder(case.X), case.weights(0)
    scores = case.scores(w)
    at = case.oracle.attributes.arrays[5]
    found = decoder.scores(w)[:, at]
    np.testing.assert_allclose(found, scores, rtol=1e-5, atol=2e-5)
    best = decoder.decode(w)
    np.testing.assert_allclose(scores[np.arange(len(best)), best], scores.max(axis=1), rtol=1e-5, atol=2e-5)
    np.testing.assert_array_equal(case.oracle.decoder(sp.csr_array(case.X)).decode(w), best)
    assert [case.oracle.argmax(x, w) for x in case.X] == best.tolist()


def test_ties_go_to_the_first():
    oracle = TaxonomyOracle(Taxonomy.flat("abc"), 2)
    assert oracle.decoder(np.ones((2, 2))).decode(np.zeros(oracle.n_features)).tolist() == [0, 0]
    assert oracle.decoder(np.zeros((1, 2))).decode(np.ones(oracle.n_features)).tolist() == [0]
    assert oracle.decoder(np.zeros((0, 2))).decode(np.ones(oracle.n_features)).shape == (0,)


@pytest.mark.parametrize("n_classes", [7, 8, 9, 31, 32, 33, 100])
def test_widths_of_rows(n_classes):
    rng = np.random.default_rng(n_classes)
    oracle = TaxonomyOracle(Taxonomy.flat(range(n_classes)), 3, attributes="flat")
    X, W = rng.normal(size=(20, 3)), rng.normal(size=(3, oracle.stride))
    W[:, n_classes:] = 0.0
    np.testing.assert_array_equal(oracle.decoder(X).decode(W.ravel()), (X @ W)[:, :n_classes].argmax(axis=1))


def test_scores_that_overflow_are_said():
    oracle = TaxonomyOracle(Taxonomy.flat("ab"), 1)
    problem = oracle.bind(np.array([[10.0], [10.0]]), [0, 1])
    with pytest.raises(ValueError, match=r"example \d: its scores overflow; scale the features down"):
        LaRank(random_state=0).solve(problem, base=np.full(oracle.n_features, 3e38, dtype=np.float32))


def test_a_hard_margin_around_other_weights():
    """Scaling makes weights feasible that nearly are, but it would move the objective's centre."""
    oracle = TaxonomyOracle(Taxonomy.flat("ab"), 1, attributes="flat")
    problem, C = oracle.bind(np.ones((1, 1)), [0], penalty=None), np.ones(1)
    w = np.zeros(oracle.n_features)
    w[:2] = 0.25, -0.25  # a margin of 1/2
    assert DualState(problem, C).primal(w) == pytest.approx(0.5 * 0.125 / 0.25)
    assert DualState(problem, C, base=0.0 * w).primal(w) == np.inf
    assert DualState(problem, C, base=w).primal(2.0 * w) == pytest.approx(0.5 * 0.125)


def test_a_state_with_another_label():
    case = Taxonomies(1)
    problem = case.bind()
    state = LaRank(C=1.0, max_iter=2, random_state=0).solve(problem).get_state()
    state["cut_words"][0] = case.K
    with pytest.raises(ValueError, match="cut 0 is none of example 0"):
        DualState(problem, np.ones(len(case.X))).set_state(state)


def test_in_the_generic_estimator():
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy([("r", "a"), ("r", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
    y = rng.integers(0, 4, 80)
    X = rng.normal(size=(80, 4)) * 0.3 + np.eye(4)[y]
    for solver in (LaRank(C=1.0, random_state=0), Perceptron(random_state=0)):
        model = StructuredSVM(TaxonomyOracle(taxonomy, 4), solver).fit(X, y)
        assert np.mean(np.array(model.predict(X)) == y) > 0.9


# --- the log loss ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse", "lists"])
@pytest.mark.parametrize("seed", range(12))
def test_expectations_over_all_outputs(seed, form):
    case = Taxonomies(seed, n_nodes=8, n_samples=4, leaves=seed % 3 > 0, lists=form == "lists")
    X = DenseRows(np.ascontiguousarray(case.X, dtype=np.float32)) if form == "dense" else case.X
    problem = case.oracle.bind(X, case.Y, rescaling=None)
    w = case.weights(seed)
    for i, g in enumerate(case.Y):
        psi = np.array([case.joint_feature(i, k) for k in range(case.K)])
        s = psi @ w
        p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
        loss, entropy, gradient = problem.expect(i, problem.from_oracle(w.astype(np.float32)))
        assert loss == pytest.approx(-np.log(p[g]), rel=1e-4, abs=1e-5)
        assert entropy == pytest.approx(-(p * np.log(np.maximum(p, 1e-300))).sum(), rel=1e-4, abs=1e-5)
        np.testing.assert_allclose(problem.to_oracle(gradient), p @ psi - psi[g], atol=2e-5)
        log_sum, expectation = case.oracle.expect(case.X[i], w)
        assert log_sum == pytest.approx(s.max() + np.log(np.exp(s - s.max()).sum()), rel=1e-4, abs=1e-4)
        np.testing.assert_allclose(expectation, p @ psi, atol=2e-5)


@pytest.mark.parametrize("form", ["dense", "sparse", "lists"])
def test_the_dual_of_the_log_loss(form):
    """Primal and dual meet, so that products and sums of moments are those of the weights that they belong to."""
    case = Taxonomies(5, n_nodes=8, n_samples=30, lists=form == "lists")
    X = DenseRows(np.ascontiguousarray(case.X, dtype=np.float32)) if form == "dense" else case.X
    problem = case.oracle.bind(X, case.Y, rescaling=None)
    run = ConditionalLikelihood(C=0.5, tol=1e-3, random_state=0).solve(problem)
    assert run.status == "converged" and run.dual <= run.primal
    losses = [problem.expect(i, run.weights)[0] for i in range(30)]
    assert run.primal == pytest.approx(0.5 * float(run.weights @ run.weights) + 0.5 * sum(losses), rel=1e-4)


def test_scores_that_overflow_in_the_log_loss():
    oracle = TaxonomyOracle(Taxonomy.flat("ab"), 1)
    problem = oracle.bind(np.array([[10.0], [10.0]]), [0, 1], rescaling=None)
    with pytest.raises(ValueError, match=r"example \d: its scores overflow; scale the features down"):
        ConditionalLikelihood(random_state=0).solve(problem, base=np.full(oracle.n_features, 3e38, dtype=np.float32))


# --- bad input ------------------------------------------------------------------------------------


def test_bad_parameters():
    taxonomy = Taxonomy.flat("abc")
    for message, options in (
        ("'n_input_features' parameter of TaxonomyOracle must be an int in the range", {"n_input_features": 0}),
        ("'outputs' parameter", {"outputs": [0, 0]}),
        ("'outputs' parameter", {"outputs": [0, 4]}),
        ("'loss' parameter", {"loss": "hamming"}),
        (r"'loss' matrix must be finite and of shape \(3, 3\)", {"loss": np.zeros((2, 2))}),
        ("must be 0 on the diagonal and positive", {"loss": np.ones((3, 3))}),
        ("must be 0 on the diagonal and positive", {"loss": np.zeros((3, 3))}),
        ("'attributes' parameter", {"attributes": "parents"}),
        ("'attributes' matrix must be finite and have 3 rows", {"attributes": np.eye(2)}),
        ("'attributes' matrix must be finite", {"attributes": np.full((3, 1), np.nan)}),
        ("'lists' parameter", {"lists": ([0, 1], [3])}),
        ("'lists' parameter", {"lists": ([0, 2], [1, 1])}),
        ("'lists' parameter", {"lists": ([0, 2], [1])}),
        ("'lists' parameter", {"lists": ([0, 0, 0, 0], [])}),
        ("more than 2\\*\\*31", {"n_input_features": 2**30}),
    ):
        with pytest.raises(ValueError, match=message):
            TaxonomyOracle(taxonomy, **({"n_input_features": 2} | options))
    assert TaxonomyOracle(taxonomy, 2, lists=([0, 2, 3], [0, 2, 0])).n_features == 3


def test_bad_documents():
    oracle = TaxonomyOracle(Taxonomy.flat("abc"), 2)
    X = np.ones((2, 2))
    for message, call in (
        ("the documents have 3 features, the oracle 2", lambda: oracle.decoder(np.ones((1, 3)))),
        (r"labels have shape \(1,\), expected \(2,\)", lambda: oracle.bind(X, [0])),
        ("labels are of type float64", lambda: oracle.bind(X, [0.0, 1.0])),
        (r"labels lie in 0\.\.3, expected 0\.\.2", lambda: oracle.bind(X, [0, 3])),
        (r"w has shape \(3,\), expected \(16,\)", lambda: oracle.decoder(X).decode(np.zeros(3))),
        ("NaN or inf", lambda: oracle.decoder(np.full((1, 2), np.inf))),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(IndexError, match="example 2 is out of range"):
        oracle.bind(X, [0, 1]).most_violated(2, np.zeros(16))
    with pytest.raises(IndexError, match="output 3 is out of range"):
        oracle.attributes.vector(3)
    documents = as_documents(X)
    documents.indices[:] = [1, 0, 0, 1]
    with pytest.raises(ValueError, match="features that ascend"):
        oracle.decoder(documents)


def test_ancestors_are_bounded(monkeypatch):
    """A chain whose nodes have the two before them as parents: the ancestors grow with the square of the nodes."""
    taxonomy = Taxonomy([(k, k + d) for d in (1, 2) for k in range(30 - d)])
    assert TaxonomyOracle(taxonomy, 1).n_features >= 29
    monkeypatch.setattr("structsvm.oracles.taxonomy.MAX_ANCESTORS", 400)
    with pytest.raises(ValueError, match="nodes of several parents have more than 400 ancestors in all, up to node"):
        TaxonomyOracle(taxonomy, 1)


# --- the likelihood of candidates -------------------------------------------------------------------


@given(cases(), st.booleans())
def test_the_likelihood_of_candidates(case, weighted):
    """Loss, gradient and entropy by enumeration; the weights of candidates are a prior."""
    rng = np.random.default_rng(len(case.X))
    n, w = case.oracle.n_outputs, case.weights(1)
    known = [rng.choice(n, rng.integers(1, n + 1), replace=False).tolist() for _ in case.X]
    votes = [{k: float(rng.integers(1, 4)) if weighted else 1.0 for k in some} for some in known]
    problem = case.oracle.bind(case.X, votes if weighted else [set(some) for some in known], rescaling=None)
    scores = case.scores(w)
    for part in (problem, pickle.loads(pickle.dumps(problem))):
        for i, (x, vote) in enumerate(zip(case.X, votes, strict=True)):
            prior = np.array([vote.get(k, 0.0) for k in range(n)]) / max(vote.values())
            p, q = np.exp(scores[i]), prior * np.exp(scores[i])
            loss, entropy, gradient = part.expect(i, w)
            assert loss == pytest.approx(np.log(p.sum() / q.sum()), rel=1e-4, abs=1e-4)
            p, q = p / p.sum(), q / q.sum()
            psi = np.array([case.oracle.joint_feature(x, k) for k in range(n)])
            np.testing.assert_allclose(gradient, (p - q) @ psi, rtol=1e-4, atol=1e-4)
            assert loss == pytest.approx(w @ gradient + entropy, rel=1e-3, abs=1e-3)


def test_training_on_the_likelihood_of_candidates():
    """It ends where the gradient vanishes."""
    rng = np.random.default_rng(0)
    X, oracle = rng.normal(size=(12, 3)), TaxonomyOracle(Taxonomy.flat("abcd"), 3)
    votes = [{int(k): 1.0, int(rng.integers(4)): 0.5} for k in rng.integers(4, size=12)]
    problem = oracle.bind(X, votes, rescaling=None)
    run = ConditionalLikelihood(1.0, max_iter=200, random_state=0).solve(problem)
    w = np.asarray(run.weights, dtype=float)
    gradient = w + sum(problem.expect(i, w)[2] for i in range(12))
    assert np.linalg.norm(gradient) < 0.04
    assert run.primal == pytest.approx(0.5 * w @ w + sum(problem.expect(i, w)[0] for i in range(12)), rel=1e-4)
    assert run.primal - run.dual == pytest.approx(0.5 * gradient @ gradient, abs=1e-3)


def test_a_margin_has_no_weights_of_candidates():
    votes = [{0: 1.0, 1: 2.0}]
    for known in (votes, Candidates.of(votes)):
        with pytest.raises(UnsupportedFormulation, match="weights of candidates need the log loss"):
            TaxonomyOracle(Taxonomy.flat("abc"), 2).bind(np.ones((1, 2)), known)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_of_candidates_that_do_not_fit(weight):
    with pytest.raises(ValueError, match="weights of candidates must be 2 float64 numbers > 0, at most 1"):
        TaxonomyOracle(Taxonomy.flat("abc"), 2).bind(np.ones((1, 2)), [{0: 1.0, 1: weight}], rescaling=None)
