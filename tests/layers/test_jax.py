"""Losses as functions of JAX: the values and gradients of NumPy, under its transformations."""

import numpy as np
import pytest

from structsvm.layers import Arborescence, Assignment, Chain, hinge, kl_divergence, log_loss, perturbed
from structsvm.layers.jax import differentiable

jax = pytest.importorskip("jax")
jnp = jax.numpy
Y, LENGTHS = np.array([[0, 1, 2, 1], [2, 2, -1, -1]]), np.array([4, 2])


def parts_of(*shapes):
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


CHAIN = parts_of((2, 4, 3), (3, 3))


@pytest.mark.parametrize("loss", [log_loss, hinge])
@pytest.mark.parametrize("jit", [False, True], ids=["plain", "jit"])
def test_values_and_weighted_gradients(loss, jit):
    function = differentiable(loss, Chain())
    weights = np.array([0.5, -2.0], np.float32)

    def total(parts, lengths):
        return (function(parts, Y, lengths) * weights).sum()

    value, gradients = (jax.jit if jit else lambda f: f)(jax.value_and_grad(total))(CHAIN, LENGTHS)
    values, (of_emissions, of_transitions) = loss(Chain(), CHAIN, Y, LENGTHS, per_entry=True)
    assert value == pytest.approx((values * weights).sum(), rel=1e-5)
    np.testing.assert_allclose(gradients[0], of_emissions * weights[:, None, None], atol=1e-6)
    np.testing.assert_allclose(gradients[1], np.einsum("b,bij->ij", weights, of_transitions), atol=1e-6)
    assert gradients[0].dtype == np.float32


def test_left_out_parts_and_other_structures():
    start = np.ones(3, np.float32)
    function = differentiable(log_loss, Chain())
    for parts in ((*CHAIN, None, start), (*CHAIN, start)):
        found = jax.grad(lambda p: function(p, Y, LENGTHS).sum())(parts)
        expected = log_loss(Chain(), parts, Y, LENGTHS)[1]
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, atol=1e-6)
    arcs = parts_of((2, 5, 5))
    heads = np.array([[0, 1, 2, 3], [2, 0, 2, 3]])
    found = jax.grad(lambda p: differentiable(log_loss, Arborescence())(p, heads).sum())(arcs)
    np.testing.assert_allclose(found[0], log_loss(Arborescence(), arcs, heads)[1][0], atol=1e-6)


def test_seeds_and_costs_change_from_call_to_call():
    pairs, y = parts_of((1, 3, 3)), np.array([[0, 1, 2]])
    function = jax.jit(differentiable(perturbed, Assignment(), n_samples=3))
    values = [float(function(pairs, y, seed=seed)[0]) for seed in (1, 2, 1)]
    assert values[0] == values[2] != values[1]
    assert values[0] == pytest.approx(perturbed(Assignment(), pairs, y, n_samples=3, seed=1)[0][0], rel=1e-5)
    cost = 3 * np.ones((2, 4, 3), np.float32)
    found = differentiable(hinge, Chain())(CHAIN, Y, LENGTHS, cost=cost)
    np.testing.assert_allclose(found, hinge(Chain(), CHAIN, Y, LENGTHS, cost=cost)[0], rtol=1e-5)


def test_vmap_of_batches():
    function = differentiable(log_loss, Chain())
    several = np.stack([CHAIN[0], 2 * CHAIN[0]])
    found = jax.vmap(lambda emissions: function((emissions, CHAIN[1]), Y, LENGTHS))(several)
    for one, emissions in zip(found, several, strict=True):
        np.testing.assert_allclose(one, log_loss(Chain(), (emissions, CHAIN[1]), Y, LENGTHS)[0], rtol=1e-5)


def test_errors_keep_their_message():
    function = differentiable(log_loss, Chain())
    bad = CHAIN[0].copy()
    bad[1, 1, 0] = np.nan
    with pytest.raises(Exception, match=r"emissions must be finite.* at batch entry 1, position \(1, 0\)"):
        jax.block_until_ready(function((bad, CHAIN[1]), Y, LENGTHS))
    with pytest.raises(ValueError, match="transitions must have shape"):
        function((CHAIN[0], CHAIN[1][:2]), Y, LENGTHS)


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        (
            log_loss,
            {"lengths": LENGTHS},
            r"lengths is no option of differentiable: give it to .*f\(parts, y, lengths\)",
        ),
        (log_loss, {"y": Y}, "y is no option of differentiable"),
        (log_loss, {"per_entry": True}, "per_entry is no option of differentiable"),
        (log_loss, {"n_samples": 3}, r"log_loss has no option 'n_samples'\. Its options: none"),
        (perturbed, {"n_sample": 3}, r"perturbed has no option 'n_sample'\. Its options: sigma, n_samples, seed"),
    ],
)
def test_options_that_a_loss_has_not(loss, options, message):
    with pytest.raises(TypeError, match=message):
        differentiable(loss, Chain(), **options)


@pytest.mark.parametrize(
    ("loss", "structure", "message"),
    [
        ("log_loss", Chain(), r"loss must be a function, such as log_loss\. Got 'log_loss'"),
        (log_loss, Chain, r"structure must be a Structure, such as Chain\(\). .* Write Chain\(\)\."),
        (Chain(), log_loss, "loss must be a function"),
    ],
)
def test_what_is_no_loss_and_no_structure(loss, structure, message):
    with pytest.raises(TypeError, match=message):
        differentiable(loss, structure)


def test_lists_and_halves_as_networks_have_them():
    function = differentiable(log_loss, Chain())
    expected = log_loss(Chain(), CHAIN, Y, LENGTHS)[0]
    np.testing.assert_allclose(function(CHAIN, Y.tolist(), LENGTHS), expected, rtol=1e-5)
    halves = tuple(jnp.asarray(part, jnp.bfloat16) for part in CHAIN)
    value, gradients = jax.value_and_grad(lambda parts: function(parts, Y, LENGTHS).sum())(halves)
    assert float(value) == pytest.approx(expected.sum(), rel=0.02)
    assert [gradient.dtype for gradient in gradients] == [jnp.bfloat16, jnp.bfloat16]
    np.testing.assert_allclose(gradients[0].astype("f4"), log_loss(Chain(), CHAIN, Y, LENGTHS)[1][0], atol=0.02)
    with pytest.raises(ValueError, match="y has entries of different lengths: pad the shorter ones, by -1"):
        function(CHAIN, [[0, 1, 2, 1], [2, 2]], LENGTHS)
    with pytest.raises(ValueError, match=r"y must be an array of integers, the numbers of labels\. Got dtype <U1"):
        function(CHAIN, [["a", "b", "c", "b"]] * 2, LENGTHS)


def test_what_a_call_must_not_have():
    function = differentiable(hinge, Chain())
    with pytest.raises(TypeError, match=r"hinge has no option 'costs'\. Its options: cost"):
        function(CHAIN, Y, LENGTHS, costs=1.0)
    with pytest.raises(ValueError, match=r"parts must be a tuple of arrays, .* Got an array of shape \(2, 4, 3\)"):
        function(CHAIN[0], Y, LENGTHS)


def test_a_loss_of_ones_own_takes_any_option():
    def halved(structure, parts, y, lengths=None, *, per_entry=False, **options):
        values, gradients = hinge(structure, parts, y, lengths, per_entry=per_entry, **options)
        return values / 2, tuple(gradient / 2 for gradient in gradients)

    cost = 3 * np.ones((2, 4, 3), np.float32)
    found = differentiable(halved, Chain(), cost=cost)(CHAIN, Y, LENGTHS)
    np.testing.assert_allclose(found, hinge(Chain(), CHAIN, Y, LENGTHS, cost=cost)[0] / 2, rtol=1e-5)


def test_second_derivatives_are_refused():
    function = differentiable(log_loss, Chain())
    gradient = jax.grad(lambda emissions: function((emissions, CHAIN[1]), Y, LENGTHS).sum())
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        jax.grad(lambda emissions: (gradient(emissions) ** 2).sum())(CHAIN[0])


def test_a_teacher_is_given_in_arrays():
    teacher = tuple(2 * part for part in CHAIN)
    loss = differentiable(kl_divergence, Chain())
    value, found = jax.jit(jax.value_and_grad(lambda parts: loss(parts, teacher, LENGTHS).sum()))(CHAIN)
    values, gradients = kl_divergence(Chain(), CHAIN, teacher, LENGTHS)
    assert float(value) == pytest.approx(values.sum(), rel=1e-4)
    for one, gradient in zip(found, gradients, strict=True):
        np.testing.assert_allclose(one, gradient, atol=1e-5)
