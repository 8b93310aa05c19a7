"""Tokens that are rows of numbers."""

import numpy as np
import pytest
from feature_reference import copied_by_arrays, same

from structsvm.features import ranges
from structsvm.features.dense import DenseRows
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.inputs.outliers import table
from structsvm.tasks.common.intercept import with_intercept
from structsvm.tasks.common.selection.search import total_variance
from structsvm.tasks.common.units import Units


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, bool, np.int64])
def test_dense_rows(dtype):
    rng = np.random.default_rng(0)
    X = [(rng.integers(0, 3, size=(n, 60))).astype(dtype) for n in (3, 1, 5)]
    encoder = FeatureEncoder()
    tokens = encoder.fit_transform(X)
    assert encoder.feature_names[:2] == ["0", "1"]
    dense = np.zeros((9, 60))
    rows = np.repeat(np.arange(9), np.diff(tokens.indptr))
    dense[rows, tokens.indices] = 1 if tokens.values is None else tokens.values
    assert np.array_equal(dense, np.concatenate(X).astype(float))
    assert tokens.offsets.tolist() == [0, 3, 4, 9]
    assert same(encoder.transform(np.concatenate(X), lengths=[3, 1, 5]), tokens)
    assert same(FeatureEncoder().fit_transform([list(x) for x in X]), tokens)  # rows
    assert same(copied_by_arrays(encoder).transform(X), tokens)


def test_rows_without_zeros():
    """They are not copied entry by entry, until a sequence has a zero; the tokens are those of sparse rows."""
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(2)
    whole = [rng.uniform(0.5, 2.0, size=(n, 9)) for n in (3, 1, 5)]
    some = whole[1].copy()
    some[0, 4] = 0.0
    ones = [np.ones((n, 9)) for n in (2, 1)]
    for X in (whole, [*whole, some], [*whole, some, whole[0]], [some, *whole], [*ones, *whole], ones, [ones[0], some]):
        tokens = FeatureEncoder().fit_transform(X)
        assert same(tokens, FeatureEncoder().fit_transform([sparse.csr_array(x) for x in X]))
        assert tokens.indices.flags.c_contiguous and tokens.indptr.dtype == tokens.offsets.dtype == np.int64
    assert FeatureEncoder().fit_transform(ones).values is None
    encoder = FeatureEncoder().fit(whole)
    assert encoder.transform([whole[0], np.zeros((0, 9)), whole[1]]).offsets.tolist() == [0, 3, 3, 4]
    some[0, 5] = np.nan
    for X in ([some], [*whole, some]):
        with pytest.raises(ValueError, match=rf"sequence {len(X) - 1}, token 0: feature '5' "):
            encoder.transform(X)


def test_csr_rows():
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(1)
    X = [rng.integers(-1, 2, size=(n, 7)).astype(float) for n in (3, 1, 5)]
    tokens = FeatureEncoder().fit_transform(X)
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_matrix):
        assert same(FeatureEncoder().fit_transform([make(x) for x in X]), tokens)
        whole = make(np.concatenate(X))
        assert same(FeatureEncoder().fit_transform(whole, lengths=[3, 1, 5]), tokens)
        with pytest.raises(ValueError, match="lengths="):
            FeatureEncoder().fit(whole)


class FakeCSR:
    def __init__(self, indptr, indices, data, shape):
        self.indptr, self.indices, self.data = map(np.array, (indptr, indices, data))
        self.shape = shape


def test_csr_by_its_attributes():
    # Entries in any order, one twice, one zero.
    matrix = FakeCSR([0, 4, 4], [3, 1, 3, 0], [1.0, 2.0, 0.5, 0.0], (2, 4))
    tokens = FeatureEncoder().fit_transform([matrix])
    assert tokens.indices.tolist() == [1, 3]
    assert tokens.values.tolist() == [2.0, 1.5]
    assert tokens.indptr.tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (FakeCSR([0, 1], [9], [1.0], (1, 4)), "column 9 of a matrix with 4 columns"),
        (FakeCSR([0, 1], [-1], [1.0], (1, 4)), "column -1"),
        (FakeCSR([0, 2], [1], [1.0], (1, 4)), "indptr"),
        (FakeCSR([0, 5, 1], [1], [1.0], (2, 4)), "indptr"),
        (FakeCSR([-4, 1], [1], [1.0], (1, 4)), "indptr"),
        (FakeCSR([0, 1], [1], [1.0], (2, 4)), "indptr"),
        (FakeCSR([0, 1], [1, 2], [1.0], (1, 4)), "do not fit"),
        (FakeCSR([0, 1], [1], [np.nan], (1, 4)), "sequence 0, token 0: feature '1' .* nan"),
    ],
)
def test_hostile_csr(matrix, message):
    with pytest.raises(ValueError, match=message):
        FeatureEncoder().fit([matrix])


@pytest.mark.parametrize(
    ("X", "lengths", "error", "message"),
    [
        ([np.ones((2, 3)), np.ones((1, 4))], None, ValueError, "sequence 1 has 4 columns, exp"),
        ([np.ones((2, 3)), np.ones((0, 3))], None, ValueError, "sequence 1 is empty"),
        ([np.array([[0, 1], [np.nan, 1]])], None, ValueError, "token 1: feature '0' .* nan"),
        ([np.array([[0, 1e300]])], None, ValueError, "feature '1' has the value inf"),
        ([np.ones(3)], None, TypeError, "sequence 0 must be a 2-D array"),
        ([np.ones((2, 2)), [["a"]]], None, TypeError, "sequence 1 must be a 2-D array"),
        ([np.ones((1, 1), dtype=complex)], None, TypeError, "complex"),
        ([[np.ones(2), np.ones(3)]], None, ValueError, "rows of different lengths"),
        (np.ones((4, 2)), None, ValueError, "lengths="),
        (np.ones((4, 2)), [1, 2], ValueError, "add up to 3, X has 4 rows"),
        (np.ones((4, 2)), [4, 0], ValueError, "sequence 1 is empty"),
        (np.ones((4, 2)), [1.5, 2.5], TypeError, "lengths must be"),
    ],
)
def test_bad_rows(X, lengths, error, message):
    with pytest.raises(error, match=message):
        FeatureEncoder().fit_transform(X, lengths)


@pytest.mark.parametrize("share", [1.0, 0.6, 0.02])
def test_many_rows_are_worked_on_in_pieces(share, monkeypatch):
    """Numpy hears no signal within a call: between two of them there is no more than a piece, and nothing differs."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 40)) * (rng.random((n, 40)) < share) for n in rng.integers(1, 30, 40)]

    def all_of_them():
        tokens = FeatureEncoder().fit_transform(X)
        units = Units.of_tokens(tokens)
        applied, taken, rows = units.applied(tokens), tokens.take(rng.permutation(40)[:30]), DenseRows(table(tokens))
        vectors = [table(tokens), taken.offsets, units.scale, [total_variance(rows), total_variance(tokens)]]
        return [tokens, applied, taken, with_intercept(tokens)], vectors

    rng = np.random.default_rng(1)
    tokens, vectors = all_of_them()
    sizes, slices = [], ranges.pieces
    monkeypatch.setattr(ranges, "PIECE", 100)
    for module in ("features.matrices", "features.dense", "tasks.common.units", "tasks.common.intercept"):
        name = f"structsvm.{module}.pieces"
        monkeypatch.setattr(name, lambda *size: (sizes.append(piece) or piece for piece in slices(*size)))
    rng = np.random.default_rng(1)
    again, others = all_of_them()
    assert all(same(one, other) for one, other in zip(tokens, again, strict=True))
    for one, other in zip(vectors, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert len(sizes) > 5 * tokens[0].n_tokens / 100 and max(s.stop - s.start for s in sizes) <= 100
