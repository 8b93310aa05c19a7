"""A prediction whose rows are in other units than those of training is said to be so."""

import warnings

import numpy as np
import pytest
from cases import CASES
from scipy.sparse import csr_array

from structsvm import AdviceWarning

ROWS = {name: case for name, case in CASES.items() if case.has_rows and "units" not in case.apart}
# Sparse columns have no units of training, but for the support patterns of kernels.
SPARSE = {name: case for name, case in ROWS.items() if case.room == "kernel" or name == "kernel taxonomy"}
CALLS = [(name, np.asarray) for name in ROWS] + [(name, csr_array) for name in SPARSE]


@pytest.mark.filterwarnings("ignore:.*(not converge|gap|passes|C = )")
@pytest.mark.parametrize(("name", "form"), CALLS, ids=lambda own: getattr(own, "__name__", own))
def test_rows_a_thousand_times_those_of_training(name, form):
    case = ROWS[name]
    X, about = form(case.X), case.about(len(case.X))
    model = case.make().fit(X, case.y, **about)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        model.predict(form(100.0 * case.X))
        model.predict(form(1e9 * case.X[:5]))  # few
    for other in (1e5 * case.X, case.X * [1.0, 1e5, 1.0, 1.0]):
        with pytest.warns(AdviceWarning, match=r"of 60 rows looked at have values a thousand times those of training"):
            model.predict(form(other))
