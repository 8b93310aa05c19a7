"""The flow between classes against a linear programme solver, and the biases against what they minimise."""

import numpy as np
import pytest
import weston_watkins_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.kernel._circulation import Circulation


@st.composite
def programmes(draw, supplied=True):
    """Scores, classes in order, capacities, and what a flow within them leaves each class with."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 5))
    y = np.sort(np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, draw(st.integers(0, 9)))]))
    n = len(y)
    # Scores of few values have many ties, and near ties far from the optimum; capacities of very different sizes.
    kind = draw(st.sampled_from(["any", "ties", "near ties"]))
    F = rng.normal(size=(n_classes, n)) if kind == "any" else rng.integers(-1, 2, (n_classes, n)).astype(float)
    if kind == "near ties":
        F = rng.normal(size=(n_classes, 1)) + 1e-9 * rng.normal(size=(n_classes, n))
        F[y, np.arange(n)] += rng.integers(0, 2, n)
    C = 10.0 ** rng.uniform(-2, 2, n) if draw(st.booleans()) else np.ones(n)
    supply = np.zeros(n_classes)
    if supplied and draw(st.booleans()):
        for i, k in reference.arcs(y, n_classes):
            flow = C[i] * rng.choice([0.0, rng.uniform(), 1.0])
            supply[y[i]] += flow
            supply[k] -= flow
    return F, y, np.searchsorted(y, np.arange(n_classes + 1)), C, supply


@given(programmes())
@settings(max_examples=150)
def test_flow_and_potentials_are_both_optimal(programme):
    F, y, start, C, supply = programme
    circulation = Circulation(start, C, supply)
    beta = np.empty_like(F)
    slacks = circulation.solve(F, beta)
    here = 1e-11 * C.sum() * len(F) * (1.0 + np.abs(F).max())
    # The flow is one: within its capacities, and leaving each class with its supply.
    own = beta[y, np.arange(len(y))]
    others = beta.copy()
    others[y, np.arange(len(y))] = 0.0
    assert (others <= 0.0).all() and (others >= -C).all()
    np.testing.assert_allclose(own, -others.sum(axis=0), atol=here)
    np.testing.assert_allclose(beta.sum(axis=1), supply, atol=here)
    # Its reward, sum g gamma, is that of the potentials: each proves the other one optimal.
    reward = own.sum() - np.vdot(F, beta)
    assert reward == pytest.approx(slacks + supply @ circulation.biases, abs=here)
    assert slacks + supply @ circulation.biases == pytest.approx(
        reference.potentials(F, y, C, supply, circulation.biases), abs=here
    )
    assert reward == pytest.approx(reference.solve_programme(F, y, C, supply), abs=1e-6 * C.sum())


@given(programmes(supplied=False))
@settings(max_examples=60)
def test_centre_is_optimal_and_in_the_middle(programme):
    F, y, start, C, supply = programme
    circulation = Circulation(start, C, supply)
    slacks = circulation.solve(F)
    circulation.centre(F)
    b = circulation.biases
    here = 1e-10 * C.sum() * len(F) * (1.0 + np.abs(F).max())
    assert reference.potentials(F, y, C, supply, b) == pytest.approx(slacks, abs=here)
    assert b.sum() == pytest.approx(0.0, abs=1e-10)
    # Turning all scores round turns nothing else: minus the machine of minus the scores is not the same machine, but
    # a permutation of the classes is the same machine, and so has the same middle.
    order = np.random.default_rng(len(y)).permutation(len(F))
    place = np.argsort(order)
    by_class = np.argsort(place[y], kind="stable")
    other = Circulation(np.searchsorted(place[y][by_class], np.arange(len(F) + 1)), C[by_class], supply)
    turned = np.ascontiguousarray(F[order][:, by_class])
    other.solve(turned)
    other.centre(turned)
    np.testing.assert_allclose(other.biases, b[order], atol=1e-9 * (1.0 + np.abs(F).max()))


def test_of_two_classes_the_middle_of_the_interval():
    # g is 1 for both: any |b_0 - b_1| <= 1 has the least slacks, 2; the search starts at 0 and may end anywhere.
    circulation = Circulation(np.array([0, 1, 2]), np.ones(2), np.zeros(2))
    F = np.array([[0.25, 0.0], [0.0, 0.25]])
    circulation.biases[:] = [0.5, 0.0]
    assert circulation.solve(F) == pytest.approx(1.5)
    circulation.centre(F)
    np.testing.assert_allclose(circulation.biases, 0.0, atol=1e-15)


@given(programmes())
@settings(max_examples=30)
def test_where_the_search_starts_does_not_matter(programme):
    F, _, start, C, supply = programme
    circulation = Circulation(start, C, supply)
    first = circulation.solve(F) + supply @ circulation.biases
    circulation.biases[:] = np.random.default_rng(0).normal(size=len(F)) * 10
    again = circulation.solve(F) + supply @ circulation.biases
    assert again == pytest.approx(first, abs=1e-10 * C.sum() * len(F) * (1.0 + np.abs(F).max()))


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="start must rise"):
        Circulation(np.array([0, 3, 2]), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="one entry per class"):
        Circulation(np.array([0, 1, 2]), np.ones(2), np.zeros(3))
    with pytest.raises(ValueError, match="F must be of shape"):
        Circulation(np.array([0, 1, 2]), np.ones(2), np.zeros(2)).solve(np.zeros((2, 3)))


def test_a_supply_that_no_flow_has():
    with pytest.raises(ValueError, match="no flow has the supply"):
        Circulation(np.array([0, 1, 2]), np.ones(2), np.array([5.0, -5.0])).solve(np.zeros((2, 2)))
