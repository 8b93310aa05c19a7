"""check_oracle passes sound oracles and names what is wrong with broken ones."""

import numpy as np
import pytest
from python_oracles import FORMS, Data, Logistic, Multiclass
from scipy.sparse import csr_array

import structsvm
from structsvm import Oracle, OracleError
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.testing import check_oracle


def sequences(K=3, F=4, n=6):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(t, F)) for t in rng.integers(1, 6, n)]
    return X, [rng.integers(0, K, len(x)) for x in X]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": 2},
        {"end": True},
        {"loss": "zero_one"},
        {"order": 2, "end": True, "loss": "zero_one"},
        {"allowed_last": np.array([True, True, True])},
    ],
    ids=str,
)
def test_viterbi(options):
    check_oracle(ViterbiOracle(3, 4, **options), *sequences())


def test_greedy_is_not_held_to_exactness():
    check_oracle(GreedyOracle(3, 4, order=3), *sequences())


@pytest.mark.parametrize("form", FORMS)
def test_sound_python_oracles(form):
    data = Data(0, form=form)
    data.oracle.penalties = ("linear",)
    check_oracle(data.oracle, data.X, data.Y)
    data.oracle.costs = 1.0 - np.eye(3)
    data.oracle.penalties = ("linear", "quadratic")
    check_oracle(data.oracle, data.X, data.Y, n_trials=3)


def test_what_is_maximised_with_other_penalties():
    """Losses of 1, 2, 3 and the margin-rescaled argmax do not solve the quadratic problem."""
    data = Data(0, n=5, n_classes=6)
    with pytest.raises(
        OracleError, match=r"penalty='quadratic', but one of an output found.*take it out of 'penalties'"
    ):
        check_oracle(data.oracle, data.X, data.Y, n_trials=100)


RNG = np.random.default_rng(0)


class Sound(Multiclass):
    penalties = ("linear",)


def broken(method, function, **attributes):
    kind = type("Broken", (Sound,), {method: function, **attributes} if method else attributes)
    return kind(3, 4)


def noisy(self, x, y):
    return self.dense(x, y) + RNG.normal(size=12)


def worst(self, x, w, y_true=None, rescaling=None):
    return int(np.argmin(w.reshape(3, 4) @ x))


def without_loss(self, x, w, y_true=None, rescaling=None):
    return int(np.argmax(w.reshape(3, 4) @ x))


def margin_only(self, x, w, y_true=None, rescaling=None):
    return Multiclass.argmax(self, x, w, y_true, rescaling and "margin")


def greedy_hands(self, x, w, y_true=None, rescaling=None):
    w *= 2.0
    return Multiclass.argmax(self, x, w, y_true, rescaling)


def moody(self, x, w, y_true=None, rescaling=None):
    return int(RNG.integers(0, 3))


def clumsy(self, x, w, y_true=None, rescaling=None):
    y = Multiclass.argmax(self, x, w, y_true, rescaling)
    x *= 1.5
    return y


def lazy(self, x, w, y_true=None, rescaling=None):
    if rescaling == "slack":
        raise NotImplementedError("one day")
    return Multiclass.argmax(self, x, w, y_true, rescaling)


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (
            broken("joint_feature", lambda self, x, y: ([12], [1.0])),
            r"Broken.joint_feature \(example \d\) returned indices in 12..12",
        ),
        (
            broken("joint_feature", lambda self, x, y: np.full(12, np.nan)),
            r"Broken.joint_feature \(example \d\) .* not finite",
        ),
        (broken("joint_feature", lambda self, x, y: np.zeros(11)), r"array of shape \(11,\), expected \(12,\)"),
        (broken("joint_feature", noisy), r"Broken.joint_feature \(example \d\) returned different values"),
        (broken("loss", lambda self, y, z: 1.0), r"Broken.loss \(example \d\) returned 1.0 for the true output itself"),
        (
            broken("loss", lambda self, y, z: 0.0),
            r"Broken.loss \(example \d\) returned 0 for an output whose joint feature differs",
        ),
        (
            broken("loss", lambda self, y, z: -float(y != z)),
            r"Broken.loss \(example \d\) returned -1.0, expected a finite number >= 0",
        ),
        (broken("loss", lambda self, y, z: None), r"Broken.loss \(example \d\) returned None"),
        (
            broken("loss", lambda self, y, z: (y != z) * RNG.random()),
            r"Broken.loss \(example \d\) returned .*, then .* for the same outputs",
        ),
        (
            broken("argmax", worst),
            r"Broken.argmax \(example \d\) returned an output with the score .* set inference = 'approximate'",
        ),
        (
            broken("argmax", without_loss),
            r"Broken.argmax \(example \d\) returned an output with the margin-rescaled score",
        ),
        (broken("argmax", margin_only, costs=np.arange(9.0)), None),
        (
            broken("argmax", lambda self, x, w, **asked: None),
            r"Broken.argmax \(example \d\) returned None, expected an output: is its 'return' missing",
        ),
        (broken("argmax", greedy_hands), r"Broken.argmax \(example \d\) modified the weights"),
        (broken("argmax", clumsy), r"Broken.argmax \(example \d\) modified the input, or the true output"),
        (broken("argmax", moody), r"Broken.argmax \(example \d\) returned two different outputs"),
        (
            broken("argmax", lazy),
            r"Broken.argmax \(example \d\), rescaling='slack' is not implemented.*take 'slack' out",
        ),
        (broken(None, None, rescalings="margin"), "Broken.rescalings must be a tuple of names among"),
        (broken(None, None, penalties=("none",)), "Broken.penalties must be a tuple"),
        (broken(None, None, penalties=None), "Broken.penalties must be a tuple"),
    ],
)
def test_broken_oracles(oracle, message):
    data = Data(0, n=4)
    if message is None:  # needs losses that differ
        oracle.costs = data.oracle.costs
        message = "returned an output with the slack-rescaled score"
    with pytest.raises(OracleError, match=message):
        check_oracle(oracle, data.X, data.Y, n_trials=40)


class OneList(Sound):
    """Outputs are lists of one label; `argmax` returns the same list each time."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.answer = [0]

    def joint_feature(self, x, y):
        return super().joint_feature(x, y[0])

    def loss(self, y_true, y):
        return super().loss(y_true[0], y[0])

    def argmax(self, x, w, y_true=None, rescaling=None):
        self.answer[0] = super().argmax(x, w, y_true and y_true[0], rescaling)
        return self.answer


def test_an_output_that_is_used_again():
    data = Data(0, n=4)
    with pytest.raises(OracleError, match=r"OneList.argmax \(example \d\) returned an output that a later call"):
        check_oracle(OneList(3, 4), data.X, [[y] for y in data.Y])


@pytest.mark.filterwarnings("ignore:Broken cannot be pickled")
def test_approximate_inference_may_miss_the_best():
    check_oracle(broken("argmax", without_loss, inference="approximate"), Data(0).X, Data(0).Y)
    check_oracle(broken("argmax", lazy, inference="approximate"), Data(0).X, Data(0).Y)


def test_n_features():
    for value in (0, -1, 2.0, None, True, 2**31):
        oracle = Sound(3, 4)
        oracle.n_features = value
        with pytest.raises(OracleError, match=r"Sound.n_features must be an integer in 1 .. 2\*\*31 - 1, got"):
            check_oracle(oracle, [np.ones(4)], [0])


def test_no_oracle_no_data():
    with pytest.raises(OracleError, match=r"str is not an Oracle: derive it from structsvm\.Oracle"):
        check_oracle("oracle", [1], [1])
    with pytest.raises(ValueError, match="X has 1 examples, Y has 2"):
        check_oracle(Sound(3, 4), [1], [1, 2])
    with pytest.raises(ValueError, match="at least one example"):
        check_oracle(Sound(3, 4), [], [])


def test_exceptions_come_out_unchanged():
    def fails(self, x, y):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        check_oracle(broken("joint_feature", fails), Data(0).X, Data(0).Y)


def test_an_oracle_that_does_not_pickle_warns():
    oracle = Sound(3, 4)
    oracle.extra = lambda: None
    with pytest.warns(UserWarning, match="Sound cannot be pickled"):
        check_oracle(oracle, Data(0).X, Data(0).Y)
    assert issubclass(structsvm.OracleError, ValueError)


def scaled(log_sum=1.0, expectation=1.0, shift=0.0):
    def expect(self, x, w):
        found = Logistic.expect(self, x, w)
        return log_sum * found[0] + shift, expectation * found[1]

    return expect


def modifies_expect(self, x, w):
    w[0] += 1.0
    return Logistic.expect(self, x, w)


def fickle_expect(self, x, w):
    self.calls.append(w)
    log_sum, expectation = Logistic.expect(self, x, w)
    return log_sum + 1e-12 * len(self.calls), expectation


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        (scaled(shift=-1.5), r"returned the log-sum .*, but the outputs found alone have"),
        (scaled(expectation=0.9), r"an expectation that is not the log-sum's gradient"),
        (scaled(expectation=-1.0), r"an expectation that is not the log-sum's gradient"),
        (scaled(log_sum=1.2, shift=100.0), r"an expectation that is not the log-sum's gradient"),
        (modifies_expect, "modified the weights"),
        (fickle_expect, "two different answers for the same weights"),
        (lambda self, x, w: 1.0, r"returned 1.0, expected \(log_sum, expectation\)"),
        (lambda self, x, w: ("a", w), "returned the log-sum 'a', expected a finite number"),
        (lambda self, x, w: (np.inf, w), "returned the log-sum inf, expected a finite number"),
        (lambda self, x, w: (1e3, w[1:]), r"returned an array of shape \(11,\), expected \(12,\)"),
        (lambda self, x, w: (1e3, w * np.nan), "a value that is not finite"),
    ],
    ids=range(11),
)
def test_expectations_that_are_wrong(expect, message):
    oracle = type("Broken", (Logistic,), {"expect": expect})(3, 4)
    oracle.penalties = ("linear",)
    data = Data(0)
    with pytest.raises(OracleError, match=rf"Broken.expect \(example \d\).*{message}"):
        check_oracle(oracle, data.X, data.Y)


def test_sound_expectations():
    oracle = Logistic(3, 4)
    oracle.penalties = ("linear",)
    check_oracle(oracle, Data(0).X, Data(0).Y)
    assert oracle.has_expect
    assert not Multiclass(3, 4).has_expect
    with pytest.raises(NotImplementedError, match="Multiclass does not implement expect"):
        Multiclass(3, 4).expect(None, None)


def test_data_of_any_library_go_by_place():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    data = Data(0, n=6, costs=False)
    frame = pd.DataFrame(np.array(data.X), columns=list("abcd"), index=range(6, 0, -1))
    solver = structsvm.LaRank(tol=1e-3, max_iter=500, random_state=0)
    expected = structsvm.StructuredSVM(data.oracle, solver).fit(data.X, data.Y).predict(data.X)
    for X in (frame, pl.DataFrame(np.array(data.X)), pa.Table.from_pandas(frame, preserve_index=False)):
        for Y in (
            pd.Series(data.Y, index=frame.index),
            pl.Series(data.Y),
            pa.array(data.Y),
            pa.chunked_array([data.Y]),
        ):
            check_oracle(data.oracle, X, Y, n_trials=2)
            model = structsvm.StructuredSVM(data.oracle, solver).fit(X, Y)
            assert model.predict(X) == expected and model.score(X, Y) == model.score(data.X, data.Y)
    with pytest.raises(ValueError, match="a sparse matrix is no list of examples"):
        check_oracle(data.oracle, csr_array(np.array(data.X)), data.Y)


class Intervals(structsvm.Oracle):
    """The best interval of a signal; its features are sums, so that losses are small beside scores."""

    n_features = 3

    def joint_feature(self, x, y):
        return np.array([*x[y[0] : y[1]].sum(axis=0), y[1] - y[0]])

    def loss(self, y_true, y):
        shared = max(0, min(y_true[1], y[1]) - max(y_true[0], y[0]))
        return 1.0 - shared / (max(y_true[1], y[1]) - min(y_true[0], y[0]))

    def argmax(self, x, w, y_true=None, rescaling=None):
        def score(y):
            return self.joint_feature(x, y) @ w + (self.loss(y_true, y) if y_true is not None else 0.0)

        return max(((a, b) for b in range(1, len(x) + 1) for a in range(b)), key=score)


def test_a_search_without_the_loss_is_found_where_features_are_large():
    class Forgetful(Intervals):
        def argmax(self, x, w, y_true=None, rescaling=None):
            return super().argmax(x, w)

    rng = np.random.default_rng(0)
    X, Y = list(30.0 * rng.normal(size=(8, 12, 2))), [(k, k + 4) for k in range(8)]
    check_oracle(Intervals(), X, Y)
    with pytest.raises(OracleError, match=r"Forgetful.argmax .* margin-rescaled score .*, but an output found"):
        check_oracle(Forgetful(), X, Y)


@pytest.mark.parametrize("size", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_a_search_without_the_loss_is_found_whatever_the_losses_size_is(rescaling, size):
    class Sign(Oracle):
        n_features = 1
        rescalings = (rescaling,)

        def loss(self, y_true, y):
            return size * abs(y_true - y)

        def joint_feature(self, x, y):
            return np.array([x * y])

        def argmax(self, x, w, y_true=None, rescaling=None):
            return int(w[0] * x > 0.0)

    with pytest.raises(OracleError, match=rf"{rescaling}-rescaled score .*, but an output found"):
        check_oracle(Sign(), [1370.0], [1])
