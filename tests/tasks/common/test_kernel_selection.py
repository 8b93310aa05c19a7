"""C and gamma of kernel machines, chosen together on samples of the training data."""

import numpy as np
import pytest
from cases import CHOICES
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

import structsvm
from structsvm.kernel._kernels import Kernel
from structsvm.kernel.parameters import KernelFunction, kernel_params
from structsvm.solvers.choosing import Row
from structsvm.tasks import HullerClassifier, LaRankClassifier
from structsvm.tasks.common.selection import kernels as kernel_selection
from structsvm.tasks.common.selection import search as selection
from structsvm.tasks.common.selection.kernels import KernelPart, KernelSearch, evenly, power, values_of

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:500], X[500:900], y[:500], y[500:900]
rng = np.random.default_rng(0)
# Machines that choose a width, on other data than their cases have.
KINDS = {name: case for name, case in CHOICES.items() if "gamma" in case.params or "kernel" in case.params}
each = pytest.mark.parametrize("name", KINDS)


def make(name, gamma="auto", **params):
    case = KINDS[name]
    width = {"gamma": gamma} if "gamma" in case.params else {"kernel": KernelFunction(gamma=gamma)}
    return case.make(**width | params)


def labels(name, y):
    return y > 4 if name == "lasvm" else y


@each
def test_both_are_chosen_and_trained_with(name, tmp_path):
    model = make(name).fit(X, labels(name, y))
    table = model.validation_
    assert table["C"][np.argmax(table["score"])] == model.C_ and table["gamma"] == model.gamma_
    (row,) = table["gammas"][table["gammas"][:, 0] == model.gamma_]
    assert row[1] == model.C_ and row[2] == table["score"].max() == table["gammas"][:, 2].max()
    assert len(table["gammas"]) >= 3
    fixed = make(name, C=model.C_, gamma=model.gamma_).fit(X, labels(name, y))
    assert fixed.result_.dual == model.result_.dual
    np.testing.assert_array_equal(fixed.predict(X_test), model.predict(X_test))
    model.save(tmp_path / "m", training_state=True)
    loaded = structsvm.load(tmp_path / "m")
    assert kernel_params(loaded).gamma == "auto" and loaded.gamma_ == model.gamma_
    np.testing.assert_array_equal(loaded.validation_["gammas"], table["gammas"])
    assert structsvm.load(tmp_path / "m").set_params(warm_start=True).fit(X, labels(name, y)).gamma_ == model.gamma_


def test_a_wrong_scale_is_found():
    """An outlier makes "scale" useless: it is all of the variance."""
    data = X.copy()
    data[0, 0] = 1e4
    plain = LaRankClassifier(gamma="scale", random_state=0).fit(data, y)
    chosen = LaRankClassifier(random_state=0).fit(data, y)
    assert chosen.score(X_test, y_test) > plain.score(X_test, y_test) + 0.02
    assert chosen.gamma_ > plain.gamma_


@pytest.mark.parametrize("factor", [1e-3, 100.0])
def test_the_choice_does_not_depend_on_units(factor):
    one, other = LaRankClassifier(random_state=0).fit(X, y), LaRankClassifier(random_state=0).fit(factor * X, y)
    assert other.gamma_ == pytest.approx(one.gamma_ / factor**2, rel=1e-5) and other.C_ == one.C_
    assert np.mean(other.predict(factor * X_test) == one.predict(X_test)) > 0.99


def test_a_number_is_kept_and_the_other_one_chosen():
    model = LaRankClassifier(3.0, random_state=0).fit(X, y)
    assert model.C_ == 3.0 and model.gamma_ in model.validation_["gammas"][:, 0]
    assert model.validation_["C"].tolist() == [3.0]
    model = LaRankClassifier(gamma=1e-3, random_state=0).fit(X, y)
    assert model.gamma_ == 1e-3 and "gamma" not in model.validation_ and len(model.validation_["C"]) >= 3
    assert not hasattr(LaRankClassifier(1.0, gamma="scale", random_state=0).fit(X, y), "validation_")
    # A kernel without gamma, and one that has it.
    assert "gamma" not in LaRankClassifier(kernel="linear", random_state=0).fit(X, y).validation_
    assert "gamma" in LaRankClassifier(kernel="poly", coef0=1.0, random_state=0).fit(X, y).validation_


def test_kernels_without_choice():
    model = HullerClassifier(random_state=0).fit(X, y > 4)
    assert model.gamma_ == pytest.approx(1.0 / (64 * X.var())) and not hasattr(model, "validation_")
    few = LaRankClassifier(random_state=0).fit(X[:19], y[:19])
    assert (few.C_, few.gamma_) == (1.0, pytest.approx(1.0 / (64 * X[:19].var())))
    stream = LaRankClassifier(random_state=0).partial_fit(X, y)
    assert (stream.C_, stream.gamma_) == (1.0, pytest.approx(1.0 / (64 * X.var())))
    assert stream.partial_fit(X_test, y_test).gamma_ == stream.gamma_


@pytest.mark.parametrize("layout", ["array", "csr", "float32", "precomputed", "callable"])
def test_every_kind_of_rows(layout):
    data, test, kernel = X, X_test, {}
    if layout == "csr":
        data, test = csr_array(X), csr_array(X_test)
    elif layout == "float32":
        data, test = X.astype(np.float32), X_test.astype(np.float32)
    elif layout == "precomputed":
        data, test, kernel = rbf_kernel(X, gamma=1e-3), rbf_kernel(X_test, X, gamma=1e-3), {"kernel": "precomputed"}
    elif layout == "callable":
        kernel = {"kernel": lambda a, b: rbf_kernel(a, b, gamma=1e-3)}
    model = LaRankClassifier(random_state=0, **kernel).fit(data, y)
    assert model.score(test, y_test) > 0.88
    assert model.validation_["n_held_out"] == len(X)


@pytest.mark.parametrize(("few", "sizes", "values", "most"), [(1000, [33], 3, 45), (300, [13, 25], 4, 12)])
def test_the_work_is_bounded(few, sizes, values, most, monkeypatch):
    """Samples, passes over them, and kernel values: all together a few trainings, of few examples some more."""
    monkeypatch.setattr(KernelSearch, "enough", few)
    monkeypatch.setattr(kernel_selection, "LEAST", 0)
    work, passes = [], []
    block, train = kernel_selection.values_of, kernel_selection.KernelPart.train

    def counted(kernel, data, train, test):
        of_train, of_test = block(kernel, data, train, test)
        work.append((len(train), of_train.size + of_test.size))
        return of_train, of_test

    def timed(self, *given):
        n = train(self, *given)
        passes.append(n * len(self.rows))
        return n

    monkeypatch.setattr(kernel_selection, "values_of", counted)
    monkeypatch.setattr(kernel_selection.KernelPart, "train", timed)
    LaRankClassifier(random_state=0).fit(X, y)
    assert sorted({size // 10 for size, _ in work}) == sizes
    assert sum(n for _, n in work) < values * len(X) ** 2
    assert sum(passes) <= most * len(X)


def test_a_C_that_binds_nothing_is_not_raised():
    model = LaRankClassifier(gamma=1e-3, random_state=0).fit(X, y)
    table = model.validation_
    assert table["C"][-1] <= 1000.0
    unbound = LaRankClassifier(1e5, gamma=1e-3, random_state=0).fit(X, y)
    assert np.abs(unbound.dual_coef_.toarray()).max() < table["C"][-1]


def test_samples():
    model, n = LaRankClassifier(random_state=0), 2000
    labels = np.repeat(["often", "rarely", "once"], [n * 9 // 10 - 1, n // 10, 1])
    model.model_ = prepared = model._prepare(rng.normal(size=(n, 3)), labels, None, None)[0]
    prepared.params = model.get_params()
    examples = model._prepare(rng.normal(size=(n, 3)), labels, None, None)[1]
    search = KernelSearch(prepared, examples, model._make_solver())
    (first,), (second,) = search.divisions()
    for (train, test), size in ((first, 600), (second, 1000)):
        names = prepared.labels[search.examples.label_ids]
        assert abs(len(train) - size) <= 2 and not set(train) & set(test)
        assert len(test) == min(n - len(train), 1000)
        assert "once" in names[train] and (names[train] == "rarely").sum() == pytest.approx(size / 10, abs=1)
    for size in (60, 999):
        few = KernelSearch(prepared, examples.take(np.arange(size)), model._make_solver())
        (turns,) = few.divisions()
        np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in turns])), np.arange(size))
    assert evenly(10, 4).tolist() == [0, 2, 5, 7] and evenly(3, 9).tolist() == [0, 1, 2] and evenly(0, 4).size == 0


def test_copies_are_weights():
    again = rng.integers(0, len(X), 200)
    weight = 1.0 + np.bincount(again, minlength=len(X))
    models = [
        LaRankClassifier(gamma=1e-3, random_state=0).fit(np.concatenate([X, X[again]]), np.concatenate([y, y[again]])),
        LaRankClassifier(gamma=1e-3, random_state=0).fit(X, y, sample_weight=weight),
    ]
    np.testing.assert_array_equal(models[0].validation_["score"], models[1].validation_["score"])
    np.testing.assert_array_equal(models[0].validation_["n_held_out"], models[1].validation_["n_held_out"])


def test_values_of_a_sample():
    kernel, train, test = Kernel("rbf", gamma=1e-3), np.array([3, 1, 4]), np.array([0, 2])
    of_train, of_test = values_of(kernel, X, train, test)
    np.testing.assert_allclose(of_train, rbf_kernel(X[train], gamma=1e-3), rtol=1e-5)
    np.testing.assert_allclose(of_test, rbf_kernel(X[test], X[train], gamma=1e-3), rtol=1e-5)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 2.0, 4.0])
def test_powers_of_values(exponent):
    values = rbf_kernel(X[:60], X[:90], gamma=1e-3).astype(np.float32)
    before = values.copy()
    expected = rbf_kernel(X[:60], X[:90], gamma=1e-3 * exponent)
    np.testing.assert_allclose(power(values, exponent), expected, rtol=1e-5)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("kernel", "gamma", "powers"), [("rbf", 1e-3, True), ("rbf", 1e-6, False), ("poly", 1e-3, False)]
)
def test_which_values_are_powers(kernel, gamma, powers):
    """Powers are values beside computed ones that are not all near 1; whichever they are, they are the kernel's."""
    model = LaRankClassifier(kernel=kernel, random_state=0)
    model.model_, examples = model._prepare(X, y, None, None)
    model.model_.params = model.get_params()
    model.model_.machine.kernel = Kernel(kernel, gamma=gamma)
    search = KernelSearch(model.model_, examples, model._make_solver())
    parts = [KernelPart(search, Kernel(kernel, gamma=gamma), np.arange(100), np.arange(100, 300))]
    for factor in (4.0, 16.0, 32.0):
        near = Kernel(kernel, gamma=gamma * factor)
        parts.append(KernelPart(search, near, np.arange(100), np.arange(100, 300), parts[-1]))
        for found, exact in zip(parts[-1].values, values_of(near, X, np.arange(100), np.arange(100, 300)), strict=True):
            np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-30)
    assert [part.are_powers for part in parts] == [False, powers, False, powers]


@each
def test_ctrl_c_leaves_a_machine_of_the_sample(name, monkeypatch):
    judged, n = selection.Part.held_out_scores, [0]

    def interrupt(self):
        n[0] += 1
        if n[0] == 3:
            raise KeyboardInterrupt
        return judged(self)

    monkeypatch.setattr(selection.Part, "held_out_scores", interrupt)
    model = make(name)
    with pytest.raises(KeyboardInterrupt, match="holds the model as it was then"):
        model.fit(X, labels(name, y))
    machine = model.model_.machine
    np.testing.assert_array_equal(machine.vectors, X.astype(machine.vectors.dtype)[machine.support])
    assert machine.kernel.name == "rbf" and model.score(X_test, labels(name, y_test)) > 0.7


@pytest.mark.parametrize(
    ("scores", "tried"),
    [
        ({0: 0.5, 2: 0.6, 4: 0.7, 6: 0.7}, [2, 4, 6]),
        ({0: 0.5, 2: 0.4, -2: 0.6, -4: 0.3}, [2, -2, -4]),
        ({0: 0.5, 2: 0.5, -2: 0.5}, [2, -2]),
        ({k: 0.5 + 0.01 * k for k in range(0, 12, 2)}, [2, 4, 6, 8]),
    ],
)
def test_smaller_gammas_are_tried_if_no_greater_one_is_better(scores, tried):
    search, order = object.__new__(KernelSearch), []
    search.widens, search.metric, search.table = True, "accuracy", {0: {1: Row(3.0, scores[0], 0.1, 1)}}

    def attempt(k, j):
        order.append(k)
        search.table[k] = {j: Row(3.0, scores[k], 0.1, 1)}

    search._try = attempt
    search._spread()
    assert order == tried and search.best[0] == max(scores, key=lambda k: scores[k] if k in {0, *tried} else 0.0)
