"""The curve of risk against coverage."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from structsvm.plotting import RiskCoverageDisplay
from structsvm.risk import RiskController, RiskCurve

mpl.use("Agg")


@pytest.fixture(autouse=True)
def pyplot():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_the_curve_counts_from_the_surest_down():
    curve = RiskCurve.of(np.array([0.2, 0.9, 0.9, 0.5]), np.array([1.0, 0.0, 1.0, 0.0]))
    np.testing.assert_allclose(curve.threshold, [0.9, 0.5, 0.2])
    np.testing.assert_allclose(curve.coverage, [0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.risk, [0.5, 1 / 3, 0.5])
    weighted = RiskCurve.of(np.array([0.9, 0.5]), np.array([0.0, 1.0]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(weighted.coverage, [0.75, 1.0])
    np.testing.assert_allclose(weighted.risk, [0.0, 0.25])


def test_what_is_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0.0).astype(int)
    model = LogisticRegression().fit(X[:100], y[:100])
    careful = RiskController(model, alpha=0.1, delta=0.1).calibrate(X[100:], y[100:])
    one = RiskCoverageDisplay.from_estimator(careful, name="one")
    np.testing.assert_allclose(one.line_.get_xydata()[:, 1], careful.curve_.risk)
    (point,) = (line for line in one.ax_.lines if line.get_marker() == "o")
    np.testing.assert_allclose(point.get_xydata(), [[careful.coverage_, careful.risk_]])
    other = RiskCoverageDisplay(careful.curve_, name="other").plot(ax=one.ax_, color="red")
    assert other.figure_ is one.figure_ and other.line_.get_color() == "red"
    with pytest.raises(TypeError, match="LogisticRegression has no attribute 'curve_'"):
        RiskCoverageDisplay.from_estimator(model)
