"""Kernel machines of labels: the kernel that parameters ask for, and the arrays of a file."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from structsvm.kernel._kernels import Kernel
from structsvm.solvers import KernelLaRank
from structsvm.tasks.common import kernel_machine
from structsvm.tasks.common.kernel_machine import MACHINE, KernelMachine, alike, kernel_of, precise, stack, variance_of


def asked(kernel="rbf", gamma="scale"):
    return SimpleNamespace(kernel=kernel, gamma=gamma, degree=3, coef0=0.0)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_gamma(kind):
    X = kind([[0.0, 3.0], [1.0, 0.0], [2.0, 0.0]])
    variance = np.var([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
    assert variance_of(X) == pytest.approx(variance)
    assert kernel_of(asked(), X).gamma == pytest.approx(1.0 / (2 * variance))
    assert kernel_of(asked("linear"), X).gamma == 1.0
    assert kernel_of(asked(gamma="auto"), X).gamma == kernel_of(asked(), X).gamma
    assert kernel_of(asked(gamma=0.25), X).gamma == 0.25
    assert kernel_of(asked(), kind([[2.0], [2.0]])).gamma == 1.0  # no variance
    with pytest.raises(ValueError, match="X has no features"):
        kernel_of(asked(), kind(np.empty((3, 0))))
    assert kernel_of(asked(), kind([[1e9], [1e9 + 1e-6]])).gamma > 0.0  # rounding may leave less than none
    with pytest.raises(ValueError, match="which underflows; scale the features up"):
        kernel_of(asked(), kind([[1e-200], [-1e-200]]))
    with pytest.raises(ValueError, match="which overflows; scale the features down"):
        kernel_of(asked(), kind([[1e200], [-1e200]]))


def test_rows_far_from_0_are_in_double_precision():
    X, kernel = np.full((2, 2), 32.0, dtype=np.float32), Kernel("rbf", gamma=2.0)  # gamma |x|^2 = 4096
    assert precise(kernel, X) is X
    for kind in (np.array, sp.csr_array):
        assert precise(kernel, kind(np.nextafter(X, np.float32(99)))).dtype == np.float64
    assert precise(Kernel("linear"), 2 * X).dtype == np.float32
    assert precise(kernel, X[:0]).dtype == np.float32


@pytest.mark.parametrize("old", [np.array, sp.csr_array])
@pytest.mark.parametrize("new", [np.array, sp.csr_array])
def test_a_batch_becomes_of_the_kind_of_the_patterns(old, new):
    vectors, X = old(np.eye(2, dtype=np.float32)), new(np.ones((1, 2)))
    assert type(alike(X, vectors)) is type(vectors) and alike(X, vectors).dtype == np.float32
    both = stack(vectors, X)
    assert hasattr(both, "indptr") == (old is sp.csr_array)
    np.testing.assert_array_equal(both.toarray() if hasattr(both, "toarray") else both, [[1, 0], [0, 1], [1, 1]])


def machine(kind=np.array):
    rng = np.random.default_rng(0)
    model, y = KernelMachine(3, Kernel("rbf", gamma=0.5)), np.arange(30, dtype=np.int32) % 3
    model.set_weights_from(
        KernelLaRank(random_state=0).solve(model.problem(kind(rng.normal(size=(30, 2)) + np.eye(3, 2)[y]), y))
    )
    return model


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_a_file_goes_around_and_blocks_make_no_difference(kind, monkeypatch):
    model, X = machine(kind), kind(np.random.default_rng(1).normal(size=(20, 2)))
    again = KernelMachine(3, model.kernel)
    again.set_from_record(MACHINE.read(*MACHINE.write(model)))
    said = model.predict_ids(X)
    np.testing.assert_array_equal(again.predict_ids(X), said)
    assert len(list(model.scores(X))) == 1
    monkeypatch.setattr(kernel_machine, "BLOCK_VALUES", 7 * len(model.support))
    assert [first for first, _ in model.scores(X)] == [0, 7, 14]
    np.testing.assert_array_equal(model.predict_ids(X), said)


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("support_labels", lambda a: np.where(np.arange(len(a)) == 0, -1, a).astype(a.dtype)),
        ("support_labels", lambda a: np.where(np.arange(len(a)) == 0, 3, a).astype(a.dtype)),
        ("support_labels", lambda a: a.astype(np.int64)),
        ("support", lambda a: a[1:]),
        ("box", lambda a: a * np.nan),
        ("intercept", lambda a: a[:2]),
        ("coef.indices", lambda a: a + len(a)),
        ("coef.indices", lambda a: a.astype(np.float64)),
        ("coef.indptr", lambda a: a[:-1]),
        ("coef.data", lambda a: a * np.inf),
        ("coef.data", lambda a: a[1:]),
        ("vectors", lambda a: a[:, :1]),
        ("vectors", lambda a: a * np.nan),
    ],
)
def test_arrays_that_are_not_sound(name, harm):
    model = machine()
    meta, arrays = MACHINE.write(model)
    with pytest.raises(ValueError):
        KernelMachine(3, model.kernel).set_from_record(MACHINE.read(meta, arrays | {name: harm(arrays[name])}))


@pytest.mark.parametrize("changes", [{"n_features": 2.0}, {"n_kernel": "1"}, {"hit_rate": 2}, {"n_features": 3}])
def test_headers_that_are_not_sound(changes):
    model = machine()
    meta, arrays = MACHINE.write(model)
    with pytest.raises(ValueError):
        KernelMachine(3, model.kernel).set_from_record(MACHINE.read(meta | changes, arrays))


def drawn(n, scale, seed=0):
    """Rows of two columns that tell the label and six that tell nothing, in another unit."""
    rows = np.random.default_rng(seed).normal(size=(n, 8)) * np.array([1.0, 1.0, *[scale] * 6])
    return rows, (np.hypot(rows[:, 0], rows[:, 1]) > 1.2).astype(np.int64)


@pytest.mark.parametrize(("n", "scale", "helps"), [(300, 0.1, False), (300, 20.0, True), (60, 1e3, True)])
def test_columns_are_scaled_unless_neighbours_suffer(n, scale, helps):
    rows, labels = drawn(n, scale)
    assert kernel_machine.deviations_bring_labels_together(rows, labels) is helps


def test_columns_that_nobody_can_judge_are_scaled_where_that_changes_neighbours():
    rows, labels = drawn(200, 10.0)[0], np.random.default_rng(1).integers(0, 2, 200)
    gains = [
        np.mean(labels[kernel_machine.nearest(part)] == labels[:, None]) for part in (rows / rows.std(axis=0), rows)
    ]
    assert abs(gains[0] - gains[1]) < 0.05  # no more than chance
    assert kernel_machine.deviations_bring_labels_together(rows, labels)
    alike = rows / rows.std(axis=0)
    assert not kernel_machine.deviations_bring_labels_together(alike, labels)
    assert not kernel_machine.deviations_bring_labels_together(rows[:19], labels[:19])


def test_nearest_neighbours():
    rows = np.concatenate([np.arange(6.0), 100.0 + np.arange(6.0)])[:, np.newaxis] + 1e4
    found = kernel_machine.nearest(rows)
    assert found.shape == (12, kernel_machine.NEAREST)
    for k, others in enumerate(found):
        assert {*others} == {j for j in range(12) if j != k and (j < 6) == (k < 6)}
