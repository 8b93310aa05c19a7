"""An intercept is one more column, of ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from structsvm.features.sparse import as_rows
from structsvm.oracles.taxonomy import as_documents
from structsvm.tasks.common.intercept import with_intercept


def dense(rows):
    values = np.ones(len(rows.indices)) if rows.values is None else rows.values
    return sp.csr_array((values, rows.indices, rows.indptr), shape=(len(rows), rows.n_features)).toarray()


@pytest.mark.parametrize("encode", [as_documents, lambda X: as_rows(X, X.shape[1])])
@pytest.mark.parametrize("binary", [False, True])
def test_a_column_of_ones(encode, binary):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if binary else 4, (7, 4)).astype(np.float32)
    X[3] = 0.0
    X = sp.csr_array(X)
    rows = encode(X)
    longer = with_intercept(rows)
    assert type(longer) is type(rows)
    np.testing.assert_array_equal(dense(longer), np.column_stack([X.toarray(), np.ones(7)]))
    for name in ("indptr", "indices", "values"):
        if getattr(rows, name) is not None:
            assert getattr(longer, name).dtype == getattr(rows, name).dtype
