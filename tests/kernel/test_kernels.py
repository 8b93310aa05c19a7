"""Kernel values against plain numpy, and that a value is the same wherever it is computed."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.kernel._kernels import KERNELS, Gram, Kernel, Rows

PARAMS = {"gamma": 0.3, "degree": 4, "coef0": 0.5}
FUNCTIONS = ["linear", "poly", "rbf", "sigmoid"]
LAYOUTS = {
    "dense": lambda X: X,
    "csr": sp.csr_matrix,
    "csr64": lambda X: widen(sp.csr_array(X)),
    "unsorted": lambda X: unsorted(sp.csr_matrix(X)),
}


def widen(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted(X):
    """The same matrix, the entries of each row turned round and its first one in two halves."""
    rows = [(X.indices[a:b][::-1], X.data[a:b][::-1]) for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
    indices = [np.append(i, i[:1]) for i, _ in rows]
    data = [np.append(np.append(v[:1] / 2, v[1:]), v[:1] / 2) for _, v in rows]
    indptr = np.cumsum([0, *map(len, indices)])
    return sp.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=X.shape)


def reference(name, X, Z, gamma=1.0, degree=3, coef0=0.0):
    X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
    if name == "linear":
        return X @ Z.T
    if name == "poly":
        return (gamma * X @ Z.T + coef0) ** degree
    if name == "sigmoid":
        return np.tanh(gamma * X @ Z.T + coef0)
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def data(seed, n, d, dtype, density=0.5):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * (rng.random((n, d)) < density)).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 90), d=st.integers(1, 70))
@settings(max_examples=4)
def test_values(name, dtype, layout, seed, n, d):
    X = data(seed, n, d, dtype)
    rows = Rows(LAYOUTS[layout](X))
    rng = np.random.default_rng(seed)
    ia, ib = rng.integers(0, n, 67), rng.integers(0, n, 35)
    found = Kernel(name, **PARAMS).block(rows, ia, rows, ib)
    wanted = reference(name, X[ia], X[ib], **PARAMS)
    assert found.dtype == np.float32 and found.shape == (67, 35)
    scale = max(1.0, np.abs(X).max() ** 2 * d) ** (4 if name == "poly" else 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=(2e-7 if dtype == np.float32 else 1e-14) * scale)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), d=st.integers(1, 40))
@settings(max_examples=3)
def test_a_value_has_the_same_bits_in_every_block(name, dtype, layout, seed, n, d):
    rows = Rows(LAYOUTS[layout](data(seed, n, d, dtype)))
    kernel, every = Kernel(name, **PARAMS), np.arange(n)
    K = kernel.block(rows, every, rows, every)
    np.testing.assert_array_equal(K, K.T)
    if name == "rbf":
        assert (np.diag(K) == 1.0).all()
    rng = np.random.default_rng(seed)
    for _ in range(5):
        ia, ib = rng.integers(0, n, rng.integers(1, 20)), rng.integers(0, n, rng.integers(1, 20))
        np.testing.assert_array_equal(kernel.block(rows, ia, rows, ib), K[np.ix_(ia, ib)])


def test_dense_and_sparse_rows_have_the_same_kernel():
    X = data(0, 30, 300, np.float64, density=0.05)
    every = np.arange(30)
    for name in FUNCTIONS:
        dense, sparse = (
            Kernel(name, **PARAMS).block(rows, every, rows, every) for rows in (Rows(X), Rows(sp.csr_array(X)))
        )
        np.testing.assert_allclose(dense, sparse, rtol=3e-7)


def test_far_points_and_points_that_are_the_same():
    X = np.array([[0.0], [1e3], [1e3], [9.0]], dtype=np.float32)
    K = Kernel("rbf", gamma=1.0).block(Rows(X), range(4), Rows(X), range(4))
    assert K[0, 1] == 0.0 and K[1, 2] == 1.0
    assert K[0, 3] == pytest.approx(np.exp(-81.0), rel=1e-5)


def test_an_offset_costs_nothing_in_double_precision():
    X = data(1, 20, 5, np.float64, density=1.0)
    near, far = Rows(X), Rows(X + 1000.0)
    kernel = Kernel("rbf", gamma=0.5)
    np.testing.assert_allclose(
        kernel.block(far, range(20), far, range(20)), kernel.block(near, range(20), near, range(20)), rtol=1e-6
    )


def test_precomputed():
    K = np.random.default_rng(0).normal(size=(6, 6))
    gram = Gram(Kernel("precomputed"), Rows(K))
    np.testing.assert_array_equal(gram.block([1, 4], [0, 2, 5]), K[np.ix_([1, 4], [0, 2, 5])].astype(np.float32))
    test = Rows(K[:3, :])  # three examples against six
    np.testing.assert_array_equal(gram.kernel.block(test, [2], gram.rows, [5]), K[2:3, 5:6].astype(np.float32))
    with pytest.raises(ValueError, match=r"square matrix, got shape \(3, 6\)"):
        Gram(Kernel("precomputed"), test)
    with pytest.raises(TypeError, match="dense"):
        Gram(Kernel("precomputed"), Rows(sp.csr_array(K)))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_callables_get_blocks_of_rows(layout):
    X = data(2, 12, 4, np.float64)
    seen = []

    def kernel(A, B):
        seen.append((A.shape, B.shape))
        return A @ B.T

    rows = Rows(LAYOUTS[layout](X))
    gram = Gram(Kernel(kernel), rows)
    np.testing.assert_allclose(gram.block([3, 1], [0, 5, 7]), X[[3, 1]] @ X[[0, 5, 7]].T, rtol=1e-6)
    assert seen == [((2, 4), (3, 4))]
    assert gram.n_values == 6


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda A, B: np.zeros((len(A), len(B) + 1)), r"shape \(2, 3\) .* got shape \(2, 4\)"),
        (lambda A, B: 0.0, r"got shape \(\)"),
        (lambda A, B: np.full((len(A), len(B)), "a"), "real numbers"),
        (lambda A, B: np.full((len(A), len(B)), 1j), "real numbers"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "kernel of rows 4 and 0 is nan"),
        (lambda A, B: np.full((len(A), len(B)), 1e300), "no finite float32"),
    ],
)
def test_what_callables_return_is_checked(returned, message):
    rows = Rows(data(0, 5, 3, np.float64))
    with pytest.raises(ValueError, match=message):
        Gram(Kernel(returned), rows).block([4, 1], [0, 2, 3])


def test_errors_of_callables_come_out_as_they_are():
    def kernel(A, B):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Gram(Kernel(kernel), Rows(np.eye(2))).block([0], [1])


def test_values_that_no_float32_can_hold():
    X = np.full((3, 2), 1e30)
    with pytest.raises(ValueError, match="kernel of rows 1 and 0 is inf"):
        Gram(Kernel("poly", degree=3), Rows(X)).block([1], [0])
    with pytest.raises(ValueError, match="squares of row 0 add up to more than float32"):
        Gram(Kernel("rbf"), Rows(X.astype(np.float32)))


def test_rows_that_are_none():
    with pytest.raises(TypeError, match="float32 or float64, got int64"):
        Rows(np.eye(2, dtype=np.int64))
    with pytest.raises(TypeError, match="1 dimensions"):
        Rows(np.ones(3))
    with pytest.raises(TypeError, match="must be CSR, got csc"):
        Rows(sp.csc_matrix(np.eye(2)))
    bad = sp.csr_matrix(np.eye(3))
    bad.indices[1] = 7
    with pytest.raises(ValueError, match="out of range for 3 features"):
        Rows(bad)
    bad = sp.csr_matrix(np.eye(3))
    bad.indptr[1] = 99
    with pytest.raises(ValueError, match="indptr"):
        Rows(bad)
    rows, other = Rows(np.eye(2)), Rows(np.eye(3))
    with pytest.raises(ValueError, match="2 features and rows of 3 features"):
        Kernel("linear").block(rows, [0], other, [0])
    with pytest.raises(TypeError, match="same kind"):
        Kernel("linear").block(rows, [0], Rows(sp.csr_array(np.eye(2))), [0])
    with pytest.raises(IndexError, match="from 0 to 1, got 0 to 2"):
        Kernel("linear").block(rows, [0, 2], rows, [0])
    assert set(FUNCTIONS) | {"precomputed"} == set(KERNELS)
