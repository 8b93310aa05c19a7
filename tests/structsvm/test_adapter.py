"""The adapter of Python oracles: every check, its message, and what the state is like afterwards."""

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from python_oracles import FORMS, Data, Logistic, Multiclass

from structsvm import CuttingPlane, FrankWolfe, LaRank, Oracle, OracleError, Perceptron, UnsupportedFormulation
from structsvm.adapter import offers_of, sparse_feature
from structsvm.testing import check_oracle


class Trouble(Multiclass):
    """Misbehaves from its `after`-th call of a method on."""

    def __init__(self, *args, method, answer, after=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.method, self.answer, self.left = method, answer, after

    def _troubled(self, method, *args):
        if method == self.method:
            self.left -= 1
            if self.left <= 0:
                return True, self.answer(*args) if callable(self.answer) else self.answer
        return False, None

    def joint_feature(self, x, y):
        troubled, answer = self._troubled("joint_feature", x, y)
        return answer if troubled else super().joint_feature(x, y)

    def loss(self, y_true, y):
        troubled, answer = self._troubled("loss", y_true, y)
        return answer if troubled else super().loss(y_true, y)

    def argmax(self, x, w, y_true=None, rescaling=None):
        troubled, answer = self._troubled("argmax", x, w)
        return answer if troubled else super().argmax(x, w, y_true, rescaling)


def csr1(values):
    return sp.coo_array(np.asarray(values, dtype=float))


ANSWERS = [
    ("joint_feature", np.zeros(11), r"returned an array of shape \(11,\), expected \(12,\)"),
    ("joint_feature", np.zeros((12, 1)), r"returned an array of shape \(12, 1\), expected \(12,\)"),
    ("joint_feature", None, "returned None, expected an array of 12 numbers; is a return missing"),
    ("joint_feature", "text", r"returned values that are not real numbers: 'text'"),
    ("joint_feature", np.full(12, 1j), "returned values that are not real numbers"),
    ("joint_feature", [[1.0], [2.0, 3.0]], "returned values that are not real numbers"),
    ("joint_feature", np.full(12, np.nan), "returned a value that is not finite"),
    ("joint_feature", ([0], [np.inf]), "returned a value that is not finite"),
    ("joint_feature", ([0], ["a"]), "returned values that are not real numbers"),
    ("joint_feature", ([12], [1.0]), r"returned indices in 12..12, expected 0..11 \(n_features is 12\)"),
    ("joint_feature", ([-1, 3], [1.0, 1.0]), r"returned indices in -1..3, expected 0..11"),
    ("joint_feature", (np.array([2**63], dtype=np.uint64), [1.0]), r"returned indices in 9223372036854775808"),
    ("joint_feature", ([0.0], [1.0]), "returned indices of type float64, expected integers"),
    ("joint_feature", ([0, 1], [1.0]), r"returned \(2,\) indices with \(1,\) values"),
    ("joint_feature", ([[0]], [[1.0]]), r"returned \(1, 1\) indices with"),
    ("joint_feature", ([0], [1.0], 12), r"returned a tuple of 3, expected \(indices, values\)"),
    (
        "joint_feature",
        sp.csr_array(np.ones((1, 11))),
        r"returned a sparse array of shape \(1, 11\), expected \(1, 12\)",
    ),
    ("joint_feature", sp.csr_matrix(np.ones((12, 1))), r"returned a sparse array of shape \(12, 1\)"),
    ("joint_feature", sp.csr_matrix(np.full((1, 12), np.nan)), "returned a value that is not finite"),
    ("loss", -1.0, "returned -1.0, expected a finite number >= 0"),
    ("loss", np.nan, "returned nan, expected a finite number >= 0"),
    ("loss", np.inf, "returned inf, expected a finite number >= 0"),
    ("loss", None, "returned None, expected a finite number >= 0"),
    ("loss", "much", "returned 'much', expected a finite number >= 0"),
    ("loss", 0.0, "returned 0 for an output whose joint feature differs from the true one's"),
]


@pytest.mark.parametrize("after", [1, 15])
@pytest.mark.parametrize(("method", "answer", "message"), ANSWERS, ids=lambda v: str(v)[:30])
def test_answers_that_break_the_protocol(method, answer, message, after):
    """An OracleError with class, method and example; the state it leaves trains on."""
    data = Data(0, n=9)
    oracle = Trouble(3, 4, costs=data.oracle.costs, method=method, answer=answer, after=after)
    solver = LaRank(C=0.5, schedule="fixed", n_reprocess=1, max_iter=50, random_state=0, average=False)
    problem = oracle.bind(data.X, data.Y)
    run = solver.start(problem)
    with pytest.raises(OracleError, match=rf"^Trouble.{method} \(example \d\) (?s:.*){message}"):
        solver.solve(problem, run=run)
    oracle.left = 10**9
    run = solver.solve(problem, run=run)
    assert run.primal - run.dual <= 1e-2 * run.primal


def test_worse_than_the_true_output():
    def wrong(x, w):
        return int(np.argmin(w.reshape(3, 4) @ x))

    data = Data(0, n=9, costs=False)
    for inference, a in (("exact", "an exact"), ("relaxed", "a relaxed"), ("approximate", None)):
        oracle = Trouble(3, 4, method="argmax", answer=wrong, after=1)
        oracle.inference = inference
        solver = LaRank(C=5.0, max_iter=20, random_state=0)
        if a is not None:
            with pytest.raises(
                OracleError,
                match=(
                    r"^Trouble.argmax \(example \d\) returned an output that scores .* worse than the true "
                    rf"one in the loss-augmented problem; {a} oracle cannot \(set inference = 'approximate'"
                ),
            ):
                solver.solve(oracle.bind(data.X, data.Y))
        else:
            run = solver.solve(oracle.bind(data.X, data.Y))
            assert np.isnan(run.primal) and run.dual > 0.0


def test_the_example_is_named():
    data = Data(0, n=9)
    oracle = Trouble(3, 4, method="loss", answer=-1.0)
    problem = oracle.bind(data.X, data.Y)
    for i in (0, 5, 8):
        with pytest.raises(OracleError, match=rf"Trouble.loss \(example {i}\) returned -1.0"):
            problem.separate(i, np.zeros(12))


def test_scores_that_overflow():
    data = Data(0, n=3)
    data.X = data.X * 1e300
    with (
        np.errstate(all="ignore"),
        pytest.raises(OracleError, match=r"Multiclass.argmax \(example 0\): the score of the returned"),
    ):
        data.bind().separate(0, np.full(12, 1e300) * np.repeat([1.0, -1.0, 1.0], 4))


@pytest.mark.parametrize("value", [0, -1, 1.5, None, 2**31, "12"])
def test_n_features(value):
    oracle = Multiclass(3, 4)
    oracle.n_features = value
    with pytest.raises(OracleError, match=r"Multiclass.n_features must be an integer in 1 .. 2\*\*31 - 1, got"):
        oracle.bind([np.ones(4)], [0])


def test_n_features_is_forgotten():
    class Forgetful(Oracle):
        def joint_feature(self, x, y): ...
        def loss(self, y_true, y): ...
        def argmax(self, x, w, y_true=None, rescaling=None): ...

    with pytest.raises(OracleError, match=r"Forgetful.n_features must be .* got None"):
        Forgetful().bind([1], [1])


def test_all_three_methods_must_be_there():
    class Half(Oracle):
        def joint_feature(self, x, y): ...

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_formulations_that_are_not_declared():
    class Narrow(Multiclass):
        rescalings = ("margin",)
        penalties = ("linear",)

    for options, message in [
        ({"rescaling": "slack"}, r"rescaling='slack' needs loss-augmented inference that Narrow does not declare"),
        ({"penalty": "quadratic"}, r"penalty='quadratic' needs inference that Narrow does not declare"),
        ({"penalty": None}, r"penalty=None needs inference that Narrow does not declare"),
    ]:
        with pytest.raises(UnsupportedFormulation, match=message):
            Narrow(3, 4).bind([np.ones(4)], [0], **options)
    Narrow(3, 4).bind([np.ones(4)], [0], rescaling=None)
    with pytest.raises(ValueError, match="X has 1 examples, Y has 2"):
        Narrow(3, 4).bind([np.ones(4)], [0, 1])


@pytest.mark.parametrize(
    "solver", [LaRank(max_iter=2, random_state=0), Perceptron(max_iter=2, random_state=0)], ids=str
)
def test_weights_are_read_only(solver):
    class Vandal(Multiclass):
        def argmax(self, x, w, y_true=None, rescaling=None):
            assert isinstance(w, np.ndarray) and w.shape == (12,) and w.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                w[0] = 1.0
            return super().argmax(x, w, y_true, rescaling)

    data = Data()
    run = solver.solve(Vandal(3, 4).bind(data.X, data.Y, **solver.formulation()))
    assert run.status == "max_iter"


def test_each_method_is_called_once_an_example():
    data = Data(0, n=5)
    counts = {"joint_feature": 0, "loss": 0}
    for method in counts:
        plain = getattr(data.oracle, method)

        def counting(*args, _plain=plain, _method=method):
            counts[_method] += 1
            return _plain(*args)

        setattr(data.oracle, method, counting)
    problem = data.bind()
    for _ in range(3):
        for i in range(5):
            problem.separate(i, np.zeros(12))
    assert len(data.oracle.calls) == 15
    assert counts["joint_feature"] == counts["loss"] == 15 + 5  # the true output's once per example


def test_forms_of_joint_features():
    psi = np.array([0.0, 1.5, 0.0, -2.0, 0.0])
    for form in (
        psi,
        list(psi),
        psi.astype(np.float32),
        ([1, 3], [1.5, -2.0]),
        ([3, 1], [-2.0, 1.5]),
        ([1, 3, 1, 0, 3], [1.0, -1.0, 0.5, 0.0, -1.0]),
        (np.array([1, 3], dtype=np.uint8), np.array([1.5, -2.0], dtype=np.float32)),
        ([1, 3, 2, 2], [1.5, -2.0, 4.0, -4.0]),
        sp.csr_matrix(psi),
        sp.csr_array(psi[None]),
        sp.coo_matrix(psi),
        sp.csc_array(psi[None]),
        sp.coo_array((np.array([1.0, -2.0, 0.5]), (np.zeros(3, dtype=int), np.array([1, 3, 1]))), shape=(1, 5)),
        csr1(psi),
    ):
        indices, values = sparse_feature(form, 5, "here")
        assert indices.dtype == np.int32 and values.dtype == np.float64
        assert list(indices) == [1, 3] and list(values) == [1.5, -2.0]
    for nothing in (np.zeros(5), ([], []), sp.csr_array((1, 5))):
        indices, values = sparse_feature(nothing, 5, "here")
        assert len(indices) == len(values) == 0
    # One dimension: of coo_array since scipy 1.13, of csr_array since 1.15.
    version = tuple(map(int, scipy.__version__.split(".")[:2]))
    flat = [sp.coo_array] * (version >= (1, 13)) + [sp.csr_array] * (version >= (1, 15))
    for container in flat:
        assert container(psi).ndim == 1
        indices, values = sparse_feature(container(psi), 5, "here")
        assert list(indices) == [1, 3] and list(values) == [1.5, -2.0]


@pytest.mark.parametrize("form", FORMS)
def test_forms_make_no_difference(form):
    plain, other = (Data(3, n=12, form=f) for f in ("pair", form))
    a, b = (LaRank(random_state=0, max_iter=3).solve(d.bind()) for d in (plain, other))
    assert np.allclose(a.weights, b.weights, rtol=1e-12, atol=1e-14)
    assert a.state.n_argmax == b.state.n_argmax


class Reusing(Multiclass):
    """Fills one buffer with every joint feature that it returns."""

    def __init__(self, *args, form, **kwargs):
        super().__init__(*args, **kwargs)
        self.buffer, self.reused_form = np.zeros(12), form
        self.row = sp.csr_array((self.buffer, np.arange(12), np.array([0, 12])), shape=(1, 12))

    def joint_feature(self, x, y):
        self.buffer[:] = self.dense(x, y)
        if self.reused_form == "pair":
            return np.arange(12), self.buffer
        self.row.data[:] = self.buffer
        return self.buffer if self.reused_form == "dense" else self.row


@pytest.mark.parametrize("form", ["pair", "dense", "sparse"])
def test_arrays_that_an_oracle_reuses_are_copied(form):
    data = Data(3, n=12)
    reusing = Reusing(3, 4, form=form, costs=data.oracle.costs)
    a, b = (LaRank(random_state=0, max_iter=3).solve(oracle.bind(data.X, data.Y)) for oracle in (data.oracle, reusing))
    assert np.any(a.weights != 0.0)
    assert np.allclose(a.weights, b.weights, rtol=1e-12, atol=1e-14)
    with pytest.raises(OracleError, match=r"Reusing.joint_feature \(example \d+\) returned arrays that a later call"):
        check_oracle(reusing, data.X, data.Y)


@pytest.mark.parametrize("solver", [LaRank(), FrankWolfe(), CuttingPlane(), CuttingPlane(form="one_slack")])
def test_a_loss_of_the_true_output_is_refused(solver):
    data = Data(3, n=12)
    oracle = Multiclass(3, 4, costs=data.oracle.costs)
    oracle.loss = lambda y_true, y: 0.5 + (y != y_true)
    with pytest.raises(OracleError, match=r"Multiclass.loss \(example \d+\) returned 0.5 for the true output itself"):
        solver.solve(oracle.bind(data.X, data.Y))


class Tired(Multiclass):
    """Says that it is exact, and after 100 calls finds no violated output any more."""

    def argmax(self, x, w, y_true=None, rescaling=None):
        found = super().argmax(x, w, y_true, rescaling)
        return found if y_true is None or len(self.calls) <= 100 else y_true


@pytest.mark.parametrize("solver", [LaRank, FrankWolfe, CuttingPlane])
def test_a_dual_above_its_primal_is_an_error(solver):
    data = Data(3, n=40)
    options = {"max_iter": 12, "tol": None, "random_state": 0}
    oracle = Tired(3, 4, costs=data.oracle.costs)
    with pytest.raises(OracleError, match=r"Tired: the dual objective \S+ is above .* causes: argmax"):
        solver(**options).solve(oracle.bind(data.X, data.Y))
    oracle = Tired(3, 4, costs=data.oracle.costs)
    oracle.inference = "approximate"
    assert np.isnan(solver(**options).solve(oracle.bind(data.X, data.Y)).result().gap)


def test_outputs_and_inputs_may_be_anything():
    class Words(Oracle):
        n_features = 4

        def joint_feature(self, x, y):
            return [ord(x) % 2 * 2 + (y == {"odd"})], [1.0]

        def loss(self, y_true, y):
            return y_true != y

        def argmax(self, x, w, y_true=None, rescaling=None):
            return max(
                [{"odd"}, {"even"}], key=lambda y: (y != y_true) * (y_true is not None) + w[self.joint_feature(x, y)[0]]
            )

    run = LaRank(C=10.0, tol=1e-6, max_iter=100, random_state=0).solve(
        Words().bind(("a", "b", "c"), [{"odd"}, {"even"}, {"odd"}])
    )
    assert run.status == "converged"
    assert Words().argmax("e", run.weights) == {"odd"} and Words().argmax("f", run.weights) == {"even"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"returned None, expected \(log_sum, expectation\)"),
        ((np.nan, np.zeros(12)), "returned the log-sum nan, expected a finite number"),
        ((1.0, np.zeros(11)), r"returned an array of shape \(11,\), expected \(12,\)"),
        ((1.0, ([12], [1.0])), "returned indices in 12..12"),
        ((1.0, np.full(12, np.nan)), "returned a value that is not finite"),
        ((-1e6, np.zeros(12)), r"returned the log-sum -1e\+06, and the true output's score is .*cannot be less"),
        ((1e3, np.full(12, 1e6)), r"returned the log-sum 1000, and the expected score is .*cannot be less"),
    ],
    ids=str,
)
def test_expectations_are_checked(answer, message):
    data = Data(0)
    w = np.ones(12)
    oracle = type("Wrong", (Logistic,), {"expect": lambda self, x, w: answer})(3, 4)
    problem = oracle.bind(data.X, data.Y, rescaling=None)
    with pytest.raises(OracleError, match=rf"Wrong.expect \(example 2\) {message}"):
        problem.expect(2, w)


@pytest.mark.parametrize("form", FORMS)
def test_expectations_are_copied(form):
    """An oracle may return the same arrays again, filled anew."""

    class Same(Logistic):
        buffer = np.zeros(12)

        def expect(self, x, w):
            log_sum, self.buffer[:] = super().expect(x, w)
            return log_sum, self.buffer

    data, w = Data(0, form=form), np.random.default_rng(0).normal(size=12)
    problem = Same(3, 4, form=form).bind(data.X, data.Y, rescaling=None)
    outcomes = [problem.expect(i, w) for i in range(7)]
    for i, (loss, entropy, gradient) in enumerate(outcomes):
        log_sum, expectation = Logistic(3, 4).expect(data.X[i], w)
        true = problem.oracle.dense(data.X[i], data.Y[i])
        assert loss == pytest.approx(log_sum - true @ w)
        assert entropy == pytest.approx(log_sum - expectation @ w)
        assert gradient == pytest.approx(expectation - true, abs=1e-6)


def test_an_argmax_without_a_return_is_named():
    data = Data(0)
    oracle = Trouble(3, 4, method="argmax", answer=None, after=3)
    with pytest.raises(OracleError, match=r"Trouble.argmax \(example \d\) returned None, expected an output"):
        LaRank(C=1.0, random_state=0).solve(oracle.bind(data.X, data.Y))


@pytest.mark.parametrize(
    ("is_open", "has_sums", "offers"),
    [
        (False, True, {"completions", "constraints", "expectations"}),
        (False, False, {"completions", "constraints"}),
        (True, True, {"completions", "expectations", "marginals"}),
        (True, False, {"completions"}),
    ],
)
def test_offers_of_outputs_that_may_be_unknown(is_open, has_sums, offers):
    assert offers_of(is_open, has_sums) == offers
