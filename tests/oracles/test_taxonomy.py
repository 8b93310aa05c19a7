"""Classes in a taxonomy against all of them written out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from dual_reference import constraint, primal, solve_dual
from hypothesis import given, settings
from hypothesis import strategies as st
from taxonomy_reference import ReferenceTaxonomy, random_edges

from structsvm import CuttingPlane, FrankWolfe, LaRank, Perceptron, StructuredSVM
from structsvm.dual._dual import DualState
from structsvm.oracles.taxonomy import TaxonomyOracle, as_documents
from structsvm.structures.taxonomy import Taxonomy
from structsvm.testing import check_oracle

FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]
CLOSE = {"rel": 1e-5, "abs": 2e-5}  # scores are float32


class Case:
    """Documents, a taxonomy, some of its nodes as outputs; the joint feature by its definition."""

    def __init__(
        self, seed, *, n_nodes=7, n_samples=3, tree=False, leaves=True, lists=False, attributes=None, loss=None
    ):
        rng = self.rng = np.random.default_rng(seed)
        edges = random_edges(rng, n_nodes, tree=tree)
        self.taxonomy, self.reference = Taxonomy(edges), ReferenceTaxonomy(edges)
        nodes = self.taxonomy.nodes
        if leaves:
            names = list(self.taxonomy.leaves)
        else:
            names = [nodes[k] for k in rng.choice(n_nodes, rng.integers(1, n_nodes + 1), replace=False)]
        self.names, self.K, self.F = names, len(names), int(rng.integers(1, 5))
        self.X = rng.normal(size=(n_samples, self.F)) * (rng.random((n_samples, self.F)) < 0.7)
        self.X = self.X.astype(np.float32).astype(np.float64)
        self.y = rng.integers(0, self.K, n_samples)
        self.kind = attributes or rng.choice(["ancestors", "normalized", "flat", "matrix"])
        self.loss_kind = loss or rng.choice(["zero_one", "tree", "path", "matrix"])
        self.L = self._attribute_matrix()
        self.delta = self._losses()
        self.mask = np.ones((self.F, self.L.shape[1]), dtype=bool)
        options = {}
        if lists:
            n_listed = int(rng.integers(1, self.F + 1))
            self.mask[self.F - n_listed :] = rng.random((n_listed, self.L.shape[1])) < 0.6
            matrix = sp.csr_array(self.mask[self.F - n_listed :])
            options["lists"] = (matrix.indptr, matrix.indices)
        self.oracle = TaxonomyOracle(
            self.taxonomy,
            self.F,
            outputs=[nodes.index(name) for name in names],
            loss=self.delta if self.loss_kind == "matrix" else self.loss_kind,
            attributes=self.L if self.kind == "matrix" else self.kind,
            **options,
        )
        self.w = rng.normal(size=self.oracle.n_features).astype(np.float32).astype(np.float64)

    def _attribute_matrix(self):
        if self.kind == "matrix":
            L = self.rng.normal(size=(self.K, 3)) * (self.rng.random((self.K, 3)) < 0.7)
            return L.astype(np.float32).astype(np.float64)
        if self.kind == "flat":
            return np.eye(self.K)
        rows = [self.reference.attributes(z, normalized=self.kind == "normalized") for z in self.names]
        return np.array([[row.get(a, 0.0) for a in self.taxonomy.nodes[1:]] for row in rows])

    def _losses(self):
        if self.loss_kind == "matrix":
            matrix = self.rng.uniform(0.2, 3.0, (self.K, self.K)).astype(np.float32).astype(np.float64)
            return matrix * (1.0 - np.eye(self.K))
        return np.array([[self.reference.loss(self.loss_kind, a, b) for b in self.names] for a in self.names])

    def weights(self):
        """w as a matrix (features, attributes)."""
        full = self.oracle.n_full * self.oracle.stride
        W = np.zeros(self.mask.shape)
        W[: self.oracle.n_full] = self.w[:full].reshape(-1, self.oracle.stride)[:, : self.mask.shape[1]]
        W[self.oracle.n_full :][self.mask[self.oracle.n_full :]] = self.w[
            full : full + self.mask[self.oracle.n_full :].sum()
        ]
        return W

    def joint_feature(self, i, k):
        """As a matrix (features, attributes)."""
        return np.outer(self.X[i], self.L[k]) * self.mask

    def vector(self, psi):
        """A matrix (features, attributes) in the layout of w."""
        out = np.zeros(self.oracle.n_features)
        n = self.oracle.n_full
        rows = out[: n * self.oracle.stride].reshape(n, self.oracle.stride)
        rows[:, : psi.shape[1]] = psi[:n]
        listed = psi[n:][self.mask[n:]]
        out[n * self.oracle.stride : n * self.oracle.stride + len(listed)] = listed
        return out

    def scores(self, i):
        return np.array([np.sum(self.joint_feature(i, k) * self.weights()) for k in range(self.K)])

    def constraints(self, i, rescaling, penalty):
        g = self.y[i]
        return [
            constraint(
                self.vector(self.joint_feature(i, g) - self.joint_feature(i, k)), self.delta[g, k], rescaling, penalty
            )
            for k in range(self.K)
            if k != g
        ]


@st.composite
def cases(draw, **options):
    flags = {name: draw(st.booleans()) for name in ("tree", "leaves", "lists")}
    return Case(draw(st.integers(0, 2**32 - 1)), n_nodes=draw(st.integers(2, 8)), **(flags | options))


# --- scores and decisions -------------------------------------------------------------------------


@given(cases())
def test_scores_and_decisions(case):
    decoder = case.oracle.decoder(case.X)
    scores = np.array([case.scores(i) for i in range(len(case.X))])
    at = case.oracle.attributes.arrays[5]
    found = decoder.scores(case.w)[:, at]
    np.testing.assert_allclose(found, scores, rtol=1e-5, atol=2e-5)
    best = decoder.decode(case.w)
    np.testing.assert_allclose(scores[np.arange(len(best)), best], scores.max(axis=1), rtol=1e-5, atol=2e-5)
    np.testing.assert_array_equal(case.oracle.decoder(sp.csr_array(case.X)).decode(case.w), best)
    assert [case.oracle.argmax(x, case.w) for x in case.X] == best.tolist()


@given(cases())
def test_joint_feature_and_loss(case):
    for i, x in enumerate(case.X):
        for k in range(case.K):
            np.testing.assert_allclose(
                case.oracle.joint_feature(x, k), case.vector(case.joint_feature(i, k)), rtol=1e-6, atol=1e-7
            )
            np.testing.assert_allclose(case.oracle.attributes.vector(k), case.L[k], rtol=1e-6)
            assert case.oracle.loss(case.y[i], k) == pytest.approx(case.delta[case.y[i], k])


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


# --- the most violated constraint -----------------------------------------------------------------


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@given(data=st.data())
@settings(max_examples=30)
def test_separate(rescaling, penalty, data):
    case = data.draw(cases())
    problem = case.oracle.bind(case.X, case.y, rescaling=rescaling, penalty=penalty)
    for i in range(len(case.X)):
        table = case.constraints(i, rescaling, penalty)
        violations = [b - psi @ case.w for b, psi in table]
        b, psi = problem.separate(i, case.w)
        if penalty is None and not violations:
            assert (b, psi.any()) == (0.0, False)
            continue
        best = max(violations) if penalty is None else max([0.0, *violations])
        assert b - psi @ case.w == pytest.approx(best, rel=1e-5, abs=1e-4)
        assert (b == 0.0 and not psi.any()) or any(
            b == pytest.approx(b_y) and np.allclose(psi, psi_y, rtol=1e-5, atol=1e-6) for b_y, psi_y in table
        )


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@given(case=cases())
@settings(max_examples=40)
def test_argmax_of_the_protocol(rescaling, case):
    for i, x in enumerate(case.X):
        scores, g = case.scores(i), case.y[i]
        delta = case.delta[g]
        values = delta + scores if rescaling == "margin" else delta * (1.0 - scores[g] + scores)
        k = case.oracle.argmax(x, case.w, y_true=g, rescaling=rescaling)
        assert values[k] == pytest.approx(values.max(), rel=1e-5, abs=1e-4)


@given(cases())
@settings(max_examples=20)
def test_plain_inference_leaves_zero(case):
    """For perceptrons another output that ties with the true one is a mistake."""
    problem = case.oracle.bind(case.X, case.y, rescaling=None)
    for i in range(len(case.X)):
        k = problem.most_violated(i, np.zeros(case.oracle.n_features))
        assert (k != case.y[i]) == (case.K > 1)
        scores = case.scores(i)
        assert scores[problem.most_violated(i, case.w)] == pytest.approx(scores.max(), **CLOSE)


def test_scores_that_overflow_are_said():
    oracle = TaxonomyOracle(Taxonomy.flat("ab"), 1)
    problem = oracle.bind(np.array([[10.0], [10.0]]), [0, 1])
    with pytest.raises(ValueError, match=r"example \d: its scores overflow; scale the features down"):
        LaRank(random_state=0).solve(problem, base=np.full(oracle.n_features, 3e38, dtype=np.float32))


# --- cuts in a dual state -------------------------------------------------------------------------


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@pytest.mark.parametrize("schedule", ["decode-once", "fixed"])
@given(data=st.data())
@settings(max_examples=8)
def test_arithmetic_of_cuts(rescaling, penalty, schedule, data):
    """w and the objective that the steps track (Gram matrix, slopes) are those of the written-out cuts."""
    case = data.draw(cases(attributes=data.draw(st.sampled_from(["ancestors", "normalized", "flat"]))))
    case.X += 0.5  # a hard margin needs features
    solver = LaRank(C=0.7, rescaling=rescaling, penalty=penalty, schedule=schedule, n_reprocess=3, random_state=0)
    run = solver.start(case.oracle.bind(case.X, case.y, rescaling=rescaling, penalty=penalty))
    try:
        run.schedule.start_pass()
        run.schedule.run(1e9)
    except ValueError as error:
        if penalty is None and "the dual is unbounded" in str(error):
            return
        raise
    tracked, w = run.state.dual, run.state.weights.copy()
    examples, b, rows = run.state.constraints()
    alpha = run.state.alphas()[1]
    exact, linear = np.zeros(case.oracle.n_features), 0.0
    total = np.zeros(len(case.X))
    for i, b_c, (indices, values), a in zip(examples, b, rows, alpha, strict=True):
        exact[indices] += a * values
        linear += a * b_c
        total[i] += a
        wanted = case.constraints(i, rescaling, penalty)
        psi = np.zeros(case.oracle.n_features)
        psi[indices] = values
        assert any(b_c == pytest.approx(b_y) and np.allclose(psi, psi_y, rtol=1e-5, atol=1e-6) for b_y, psi_y in wanted)
    ridge = np.sum(total**2) / 0.7 if penalty == "quadratic" else 0.0
    np.testing.assert_allclose(w, exact, rtol=1e-4, atol=1e-4 * (1.0 + np.abs(exact).max()))
    assert tracked == pytest.approx(linear - 0.5 * exact @ exact - 0.5 * ridge, rel=1e-3, abs=1e-3)
    assert run.state.settle() == pytest.approx(linear - 0.5 * exact @ exact - 0.5 * ridge, rel=1e-6, abs=1e-6)


@given(cases())
@settings(max_examples=20)
def test_a_state_goes_on_from_a_copy(case):
    problem = case.oracle.bind(case.X, case.y)
    solver = LaRank(C=1.0, max_iter=2, random_state=0)
    run = solver.solve(problem)
    other = solver.start(problem)
    other.set_state(run.get_state())
    np.testing.assert_array_equal(other.state.weights, run.state.weights)
    state = run.get_state()
    if len(state["cut_words"]):
        state["cut_words"][0] = case.K
        with pytest.raises(ValueError):
            DualState(problem, np.ones(len(case.X))).set_state(state)


def test_parts_of_a_problem_are_the_problem():
    case = Case(3, n_nodes=12, n_samples=9, lists=True)
    problem = case.oracle.bind(case.X, case.y, rescaling="slack")
    part = pickle.loads(pickle.dumps(problem)).shard(4, 9)
    for i in range(5):
        for a, b in zip(part.separate(i, case.w), problem.separate(4 + i, case.w), strict=True):
            np.testing.assert_array_equal(a, b)
    assert problem.fingerprint() == case.oracle.bind(case.X, case.y).fingerprint()
    assert problem.fingerprint() != case.oracle.bind(case.X, np.roll(case.y, 1)).fingerprint()


# --- optima ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS[:2] + FORMULATIONS[3:5])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_solvers_reach_the_optimum(rescaling, penalty, seed):
    case = Case(seed, n_nodes=6, n_samples=5, lists=bool(seed % 2))
    constraints = [case.constraints(i, rescaling, penalty) for i in range(5)]
    if case.K == 1:
        return
    optimum = solve_dual(constraints, np.full(5, 0.8), penalty)
    shared = {"C": 0.8, "rescaling": rescaling, "max_iter": 4000, "random_state": 0}
    solvers = [LaRank(penalty=penalty, tol=1e-4, **shared), CuttingPlane(penalty=penalty, tol=1e-4, **shared)]
    if penalty == "linear":
        solvers.append(FrankWolfe(tol=1e-3, **shared))  # its gap falls with the number of passes, no faster
    for solver in solvers:
        result = solver.solve(case.oracle.bind(case.X, case.y, rescaling=rescaling, penalty=penalty))
        scale = max(1.0, abs(optimum))
        assert result.dual <= optimum + 1e-4 * scale
        assert result.primal >= optimum - 1e-4 * scale
        assert result.primal - optimum <= 2.0 * solver.tol * scale
        w = result.weights.astype(np.float64)
        assert primal(w, constraints, np.full(5, 0.8), penalty) == pytest.approx(result.primal, rel=1e-4, abs=1e-4)


def test_the_protocol_is_kept():
    for seed in range(4):
        case = Case(seed, n_nodes=8, n_samples=5, tree=bool(seed % 2), lists=seed > 1)
        check_oracle(case.oracle, list(case.X), case.y.tolist())


def test_in_the_generic_estimator():
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy([("r", "a"), ("r", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
    y = rng.integers(0, 4, 80)
    X = rng.normal(size=(80, 4)) * 0.3 + np.eye(4)[y]
    for solver in (LaRank(C=1.0, random_state=0), Perceptron(random_state=0)):
        model = StructuredSVM(TaxonomyOracle(taxonomy, 4), solver).fit(X, y)
        assert np.mean(np.array(model.predict(X)) == y) > 0.9


# --- bad input ------------------------------------------------------------------------------------


def test_bad_parameters():
    taxonomy = Taxonomy.flat("abc")
    for message, options in (
        ("'n_input_features' parameter of TaxonomyOracle must be an integer", {"n_input_features": 0}),
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
