"""Declared parameters: the constructor, what is accepted, what the messages say, scikit-learn's contract."""

import dataclasses
import inspect
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from python_oracles import Data
from sklearn.base import clone

from structsvm import LaRank, PassiveAggressive, Perceptron
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    RANDOM_STATE,
    Constructor,
    Interval,
    Options,
    Parameters,
    Seed,
    Verbose,
    check_arguments,
    declared,
    parameter,
    seed_from,
)

SOLVERS = [LaRank, PassiveAggressive, Perceptron]


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (LaRank(C=-1), r"The 'C' parameter of LaRank must be a float in the range \(0.0, inf\). Got -1 instead."),
        (LaRank(C=0), "'C' parameter of LaRank"),
        (LaRank(C=np.nan), "'C'"),
        (LaRank(C=np.inf), "'C'"),
        (LaRank(C="1"), r"Got '1' instead"),
        (LaRank(C=None), "Got None instead"),
        (LaRank(C=True), "Got True instead"),
        (PassiveAggressive(C=0.0), "The 'C' parameter of PassiveAggressive must be"),
        (
            LaRank(rescaling="both"),
            r"The 'rescaling' parameter of LaRank must be 'margin' or 'slack'. Got 'both' instead.",
        ),
        (
            LaRank(penalty="cubic"),
            r"The 'penalty' parameter of LaRank must be 'linear' or 'quadratic' or None. Got 'cubic'",
        ),
        (LaRank(schedule="greedy"), "The 'schedule' parameter of LaRank must be 'decode-once' or"),
        (
            LaRank(n_reprocess=-1),
            r"The 'n_reprocess' parameter of LaRank must be a float in the range \[0.0, 1000000.0\]. Got -1",
        ),
        (LaRank(n_reprocess=np.inf), "'n_reprocess'"),
        (
            LaRank(n_reprocess=0.5, schedule="fixed"),
            "'n_reprocess' parameter of LaRank must be a whole number for schedule='fixed'",
        ),
        (LaRank(max_iter=0), r"The 'max_iter' parameter of LaRank must be an int in the range \[1, 2147483647\]"),
        (Perceptron(max_iter=1.0), "The 'max_iter' parameter of Perceptron must be an int"),
        (Perceptron(max_iter=True), "'max_iter'"),
        (LaRank(tol=0.0), r"The 'tol' parameter of LaRank must be a float in the range \(0.0, inf\) or None. Got 0.0"),
        (LaRank(tol=-1e-3), "'tol'"),
        (
            LaRank(random_state=-1),
            r"'random_state' parameter of LaRank must be an int in the range \[0, 4294967295\] or a Ra",
        ),
        (LaRank(random_state=2**32), "'random_state'"),
        (LaRank(random_state=0.5), "'random_state'"),
        (Perceptron(average="yes"), "The 'average' parameter of Perceptron must be a bool. Got 'yes' instead."),
        (LaRank(average=1), "The 'average' parameter of LaRank must be a bool"),
    ],
    ids=str,
)
def test_messages(solver, message):
    """Checked when training begins, not before; and before anything is touched."""
    with pytest.raises(ValueError, match=message):
        solver.validate()
    with pytest.raises(ValueError, match=message):
        solver.solve(Data().bind())


@pytest.mark.parametrize(
    "solver",
    [
        LaRank(C=np.float32(0.5)),
        LaRank(C=1),
        LaRank(max_iter=np.int64(3)),
        LaRank(tol=np.float64(0.1)),
        LaRank(random_state=np.int32(7)),
        LaRank(random_state=np.random.RandomState(0)),
        LaRank(random_state=2**32 - 1),
        LaRank(n_reprocess=2.0, schedule="fixed"),
        Perceptron(average=np.True_),
    ],
    ids=lambda solver: re.sub(" at 0x[0-9A-F]+", "", str(solver)),
)
def test_numbers_of_numpy_are_numbers(solver):
    solver.validate()
    data = Data()
    solver.solve(data.bind() if solver.formulation()["rescaling"] else data.perceptron())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), r"^The 'n' parameter of make must be an int in the range \[1, 2147483647\]. Got 0 instead.$"),
        ((True,), "The 'n' parameter of make"),
        ((1, "c"), "The 'loss' parameter of make must be 'a' or 'b'. Got 'c' instead."),
        ((1, "a", 0), r"The 'k' parameter of make must be an int in the range .* or None. Got 0 instead."),
    ],
    ids=str,
)
def test_arguments_are_checked_as_parameters_are(arguments, message):
    def make(n, loss="a", k=None):
        check_arguments("make", locals(), n=COUNT, loss=Options("a", "b"), k=(COUNT, NONE))
        return n

    assert make(np.int64(3), "b", 2) == 3
    with pytest.raises(ValueError, match=message):
        make(*arguments)


@pytest.mark.parametrize("kind", SOLVERS)
def test_contract_of_scikit_learn(kind):
    solver = kind(max_iter=3, random_state=5)
    params = solver.get_params()
    assert params["max_iter"] == 3
    assert list(params) == list(kind().get_params())
    other = clone(solver)
    assert type(other) is kind and other is not solver and other.get_params() == params
    assert pickle.loads(pickle.dumps(solver)).get_params() == params
    assert solver.set_params(max_iter=4) is solver and solver.max_iter == 4
    with pytest.raises(ValueError, match=rf"{kind.__name__} has no parameter 'depth'; it has "):
        solver.set_params(depth=2)
    assert repr(kind()) == f"{kind.__name__}()"
    assert repr(other) == f"{kind.__name__}(max_iter=3, random_state=5)"
    assert eval(repr(other), {kind.__name__: kind}).get_params() == params
    # The constructor stores what it is given, and nothing else.
    marker = object()
    assert all(getattr(kind(**{name: marker}), name) is marker for name in params)


@pytest.mark.parametrize(
    ("interval", "inside", "outside", "text"),
    [
        (
            POSITIVE,
            [1, 1e-300, np.float32(2)],
            [0, -1, np.inf, np.nan, True, "1", None, 1j],
            "a float in the range (0.0, inf)",
        ),
        (POSITIVE, [Fraction(1, 3)], [Fraction(1, 10**400), Fraction(10**400)], "a float in the range (0.0, inf)"),
        (Interval(float, 0.0, 1.0), [0.0, 0.5], [1.0, -0.1, 1], "a float in the range [0.0, 1.0)"),
        (Interval(float, 0.0, 1.0, closed="both"), [0.0, 1.0], [1.1], "a float in the range [0.0, 1.0]"),
        (Interval(float, 0.0, 1.0, closed="right"), [1.0], [0.0], "a float in the range (0.0, 1.0]"),
        (Options("a", None, 3), ["a", None], ["b", 0, ["a"]], "'a' or None or 3"),
        (FLAG, [True, False, np.True_], [0, 1, None, "True"], "a bool"),
    ],
)
def test_constraints(interval, inside, outside, text):
    assert all(interval.accepts(v) for v in inside)
    assert not any(interval.accepts(v) for v in outside)
    assert str(interval) == text


def test_seeds():
    assert seed_from(7) == 7
    assert seed_from(np.int64(7)) == 7
    drawn = seed_from(None), seed_from(None)
    assert drawn[0] != drawn[1]
    np.random.seed(0)  # noqa: NPY002 - as each test begins
    assert drawn == (seed_from(None), seed_from(None))
    rng = np.random.RandomState(0)
    assert seed_from(rng) != seed_from(rng)
    assert seed_from(np.random.RandomState(0)) == seed_from(np.random.RandomState(0))
    assert any(c.accepts(np.random.RandomState(0)) for c in RANDOM_STATE)


@pytest.mark.parametrize(
    "solver",
    [
        LaRank(n_reprocess=1e30),
        LaRank(n_reprocess=10**400),
        LaRank(max_iter=10**30),
        LaRank(max_iter=2**31),
        LaRank(C=10**400),
        LaRank(tol=10**400),
    ],
)
def test_numbers_are_bounded(solver):
    """By what compiled code counts in, and by what a float holds."""
    with pytest.raises(ValueError, match=r"The '\w+' parameter of LaRank must be an? .* in the range"):
        solver.validate()
    LaRank(max_iter=2**31 - 1, n_reprocess=1e6).validate()


@declared
class Depth:
    depth: int | None = parameter(COUNT, NONE, default=None)


@declared
class Base(Seed, Parameters):
    x: float = parameter(kw_only=False)
    shape: str = parameter(Options("tree", "chain"), default="tree", kw_only=False)
    start_from: str = parameter(Options("left", "right"), default="left", alias="start")

    def start(self):
        return self.start_from


@declared
class Leaf(Depth, Base, Verbose):
    random_state: int = parameter(COUNT, default=1)


def test_signatures():
    """The positional parameters, those of the class, those of its bases in their order; each at its first place."""
    assert str(inspect.signature(Base)) == (
        "(x: float, shape: str = 'tree', *, start: str = 'left', "
        "random_state: 'int | np.random.RandomState | None' = None) -> 'None'"
    )
    assert [*inspect.signature(Leaf).parameters] == ["x", "shape", "random_state", "depth", "start", "verbose"]
    assert [field.name for field in dataclasses.fields(Leaf)][4:] == ["start_from", "verbose"]


def test_constructors_store():
    made = Leaf(0.5, "chain", start="right")
    assert vars(made) == {
        "x": 0.5,
        "shape": "chain",
        "random_state": 1,
        "depth": None,
        "start_from": "right",
        "verbose": False,
    }
    assert made.start() == "right" and made != Leaf(0.5, "chain", start="right")
    with pytest.raises(TypeError, match=r"Leaf.__init__\(\) got an unexpected keyword argument 'deep'"):
        Leaf(0.5, deep=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Leaf()


def test_constructors_are_compiled_once_when_they_are_first_used():
    @declared
    class Late(Depth):
        pass

    class User(Late):
        def __init__(self):
            super().__init__(depth=3)

    assert isinstance(vars(Late)["__init__"], Constructor)
    assert User().depth == 3
    assert vars(Late)["__init__"] is Late.__init__ and inspect.isfunction(Late.__init__)


def test_constraints_are_inherited():
    assert Leaf._constraints["random_state"] == (COUNT,)
    assert [*Leaf._constraints] == ["shape", "random_state", "depth", "start", "verbose"]
