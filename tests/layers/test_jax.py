"""Losses as functions of JAX: the values and gradients of NumPy, under its transformations."""

import numpy as np
import pytest

from structsvm.layers import (
    Arborescence,
    Assignment,
    Chain,
    Ordering,
    Projective,
    hinge,
    kl_divergence,
    log_loss,
    perturbed,
    spo_plus,
)
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


def test_vmap_of_vmap_of_batches():
    function = jax.jit(differentiable(log_loss, Chain()))
    several = np.stack([scale * CHAIN[0] for scale in range(6)]).reshape(3, 2, *CHAIN[0].shape)
    each = jax.vmap(
        jax.vmap(lambda emissions: jax.grad(lambda e: function((e, CHAIN[1]), Y, LENGTHS).sum())(emissions))
    )
    found = np.asarray(each(several)).reshape(6, 2, 4, 3)
    for one, emissions in zip(found, several.reshape(6, 2, 4, 3), strict=True):
        np.testing.assert_allclose(one, log_loss(Chain(), (emissions, CHAIN[1]), Y, LENGTHS)[1][0], atol=1e-6)


@pytest.mark.parametrize("jit", [False, True], ids=["plain", "jit"])
def test_integers_and_truths_as_scores(jit):
    function = differentiable(log_loss, Chain())
    counts = np.rint(3 * CHAIN[0]).astype(int)
    for emissions in (counts, counts > 0):
        found, of_transitions = (jax.jit if jit else lambda f: f)(
            jax.value_and_grad(lambda steps, scores=emissions: function((scores, steps), Y, LENGTHS).sum())
        )(CHAIN[1])
        values, gradients = log_loss(Chain(), (emissions, CHAIN[1]), Y, LENGTHS)
        assert found.dtype == jnp.float32 and float(found) == pytest.approx(values.sum(), rel=1e-5)
        np.testing.assert_allclose(of_transitions, gradients[1], atol=1e-5)


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


def test_orders_of_fewer_items_than_there_is_room_for():
    (pairs,), y = parts_of((2, 12, 12)), np.full((2, 12), -1)
    y[:, :3] = [[2, 0, 1], [0, 1, 2]]
    found = jax.jit(differentiable(log_loss, Ordering()))((pairs,), y, np.array([3, 3]))
    np.testing.assert_allclose(found, log_loss(Ordering(), (pairs,), y, [3, 3])[0], rtol=1e-5)


def test_arrays_of_jax_are_taken_by_all_verbs():
    wanted = Chain().argmax(*CHAIN, lengths=LENGTHS)
    np.testing.assert_array_equal(Chain().argmax(*map(jnp.asarray, CHAIN), lengths=jnp.asarray(LENGTHS)), wanted)
    halves = [jnp.asarray(part, jnp.bfloat16) for part in CHAIN]
    rounded = [np.asarray(part, np.float32) for part in halves]
    values = Chain().log_partition(*halves, lengths=LENGTHS)
    np.testing.assert_array_equal(values, Chain().log_partition(*rounded, lengths=LENGTHS))
    assert Chain().marginals(*halves)[0].dtype == np.float32


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


@pytest.mark.parametrize(
    "derive",
    [
        lambda f: jax.jvp(f, (CHAIN,), (CHAIN,)),
        lambda f: jax.jacfwd(f)(CHAIN),
        lambda f: jax.linearize(f, CHAIN)[1](CHAIN),
        lambda f: jax.hessian(f)(CHAIN),
        lambda f: jax.jvp(jax.grad(f), (CHAIN,), (CHAIN,)),
    ],
    ids=["jvp", "jacfwd", "linearize", "hessian", "jvp of grad"],
)
def test_forward_and_second_derivatives_are_refused(derive):
    function = differentiable(log_loss, Chain())
    with pytest.raises((TypeError, NotImplementedError), match=r"forward-mode|first derivatives only"):
        derive(lambda parts: function(parts, Y, LENGTHS).sum())


def test_loops_and_branches_of_programs():
    function = differentiable(log_loss, Chain())
    wanted = log_loss(Chain(), CHAIN, Y, LENGTHS)[0].sum()

    def value(parts):
        return function(parts, Y, LENGTHS).sum()

    def total(parts):
        loop = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + value(parts)), (0, 0.0))
        return loop[1] + jax.lax.cond(loop[0] == 3, lambda: value(parts), lambda: 0.0)

    assert float(jax.jit(total)(CHAIN)) == pytest.approx(4 * wanted, rel=1e-5)
    compiled = jax.jit(function).lower(CHAIN, Y, LENGTHS).compile()
    assert float(compiled(CHAIN, Y, LENGTHS).sum()) == pytest.approx(wanted, rel=1e-5)
    rows = jax.jacrev(lambda parts: function(parts, Y, LENGTHS))(CHAIN)
    assert [row.shape for row in rows] == [(2, *part.shape) for part in CHAIN]


def test_a_teacher_is_given_in_arrays():
    teacher = tuple(2 * part for part in CHAIN)
    loss = differentiable(kl_divergence, Chain())
    value, found = jax.jit(jax.value_and_grad(lambda parts: loss(parts, teacher, LENGTHS).sum()))(CHAIN)
    values, gradients = kl_divergence(Chain(), CHAIN, teacher, LENGTHS)
    assert float(value) == pytest.approx(values.sum(), rel=1e-4)
    for one, gradient in zip(found, gradients, strict=True):
        np.testing.assert_allclose(one, gradient, atol=1e-5)


@pytest.mark.parametrize("jit", [False, True], ids=["plain", "jit"])
@pytest.mark.parametrize("loss", [kl_divergence, spo_plus])
def test_a_teacher_in_a_list(loss, jit):
    teacher = [2 * part for part in CHAIN]
    function = differentiable(loss, Chain())
    found = (jax.jit if jit else lambda f: f)(lambda *teacher: function(CHAIN, [*teacher], LENGTHS))(*teacher)
    expected = loss(Chain(), CHAIN, teacher, LENGTHS)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    numbers = [part.tolist() for part in teacher]
    np.testing.assert_allclose(function(CHAIN, numbers, LENGTHS), expected, rtol=1e-4)
    np.testing.assert_allclose(function(CHAIN, tuple(numbers), LENGTHS), expected, rtol=1e-4)


def test_a_teacher_of_one_part_in_a_list():
    arcs, teacher = parts_of((2, 4, 4), (2, 4, 4))
    function = differentiable(kl_divergence, Projective())
    expected = kl_divergence(Projective(), (arcs,), [teacher])[0]
    np.testing.assert_allclose(function((arcs,), [teacher]), expected, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(lambda q: function((arcs,), [q]))(teacher), expected, rtol=1e-4)


def test_outputs_in_lists_of_rows_and_in_tuples():
    function = differentiable(log_loss, Chain())
    expected = log_loss(Chain(), CHAIN, Y, LENGTHS)[0]
    rows = tuple(jnp.asarray(row) for row in Y)
    for y in (list(rows), list(Y), tuple(map(tuple, Y.tolist())), [[np.int64(label) for label in row] for row in Y]):
        np.testing.assert_allclose(function(CHAIN, y, LENGTHS.tolist()), expected, rtol=1e-5)
    found = jax.jit(lambda first, second: function(CHAIN, [first, second], LENGTHS))(*rows)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="y has entries of different lengths: pad the shorter ones, by -1"):
        function(CHAIN, ((0, 1, 2, 1), (2, 2)), LENGTHS)


def test_options_in_arrays_keep_their_type():
    function = differentiable(perturbed, Chain())
    values = [np.asarray(function(CHAIN, Y, LENGTHS, sigma=sigma)) for sigma in (1.7, jnp.float32(1.7), np.array(1.7))]
    for found in values:
        np.testing.assert_allclose(found, perturbed(Chain(), CHAIN, Y, LENGTHS, sigma=1.7)[0], rtol=1e-5)
    assert not np.allclose(values[0], function(CHAIN, Y, LENGTHS, sigma=1.0))
    cost = 3 * np.ones((2, 4, 3), np.float32)
    expected = hinge(Chain(), CHAIN, Y, LENGTHS, cost=cost)[0]
    function = differentiable(hinge, Chain())
    for given in (cost.tolist(), list(cost)):
        np.testing.assert_allclose(function(CHAIN, Y, LENGTHS, cost=given), expected, rtol=1e-5)
    found = jax.jit(lambda *rows: function(CHAIN, Y, LENGTHS, cost=list(rows)))(*cost)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(function(CHAIN, Y, LENGTHS, cost=None), hinge(Chain(), CHAIN, Y, LENGTHS)[0], rtol=1e-5)


@pytest.mark.parametrize("jit", [False, True], ids=["plain", "jit"])
@pytest.mark.parametrize("off", [2**32, -(2**32), 2**31])
def test_integers_beyond_32_bits(off, jit):
    function = differentiable(perturbed, Chain())
    beyond = Y + off * (Y == 1)
    number = off + 1
    wanted = r"must have integers from -2147483648 to 2147483647\. Got {}"
    run = jax.jit if jit else lambda f: f
    for y in (beyond, beyond.tolist(), list(beyond), beyond.astype(object).tolist()):
        with pytest.raises(ValueError, match="y " + wanted.format(number)):
            run(lambda parts, y=y: function(parts, y, LENGTHS))(CHAIN)
    for lengths in (LENGTHS + off, (LENGTHS + off).tolist()):
        with pytest.raises(ValueError, match="lengths " + wanted.format(4 + off)):
            run(lambda parts, given=lengths: function(parts, Y, given))(CHAIN)
    for seed in (off, np.int64(off)):
        with pytest.raises(ValueError, match="seed " + wanted.format(off)):
            run(lambda parts, seed=seed: function(parts, Y, LENGTHS, seed=seed))(CHAIN)


@pytest.mark.parametrize("lengths", [np.ones(3, int), np.ones((2, 4), int), np.ones((2, 4), bool), np.ones(2)])
def test_lengths_that_are_none_are_refused_as_numpy_refuses_them(lengths):
    with pytest.raises(ValueError, match="lengths must be") as wanted:
        Chain().log_partition(*CHAIN, lengths=lengths)
    with pytest.raises(ValueError, match="lengths must be") as found:
        differentiable(log_loss, Chain())(CHAIN, Y, lengths)
    assert str(found.value) == str(wanted.value).replace("float64", "float32")
    assert lengths.dtype != int or f"Got shape {lengths.shape}" in str(found.value)


def test_unsigned_integers_beyond_32_bits():
    function = differentiable(log_loss, Chain())
    with pytest.raises(ValueError, match=r"y must have integers from 0 to 4294967295\. Got 4294967297"):
        function(CHAIN, np.where(Y == 1, 2**32 + 1, 0).astype(np.uint64), LENGTHS)


def test_float16_is_computed_in_float32():
    function = differentiable(log_loss, Chain())
    halves = tuple(jnp.asarray(part, jnp.float16) for part in CHAIN)
    values, pull = jax.vjp(lambda parts: function(parts, Y, LENGTHS), halves)
    assert values.dtype == jnp.float32
    assert [gradient.dtype for gradient in pull(jnp.ones_like(values))[0]] == [jnp.float16, jnp.float16]
    np.testing.assert_allclose(values, log_loss(Chain(), CHAIN, Y, LENGTHS)[0], rtol=1e-3)


def test_integers_of_64_bits_where_jax_has_them():
    seed = 2**40
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        found = differentiable(perturbed, Chain())(CHAIN, Y, LENGTHS, seed=seed)
    finally:
        jax.config.update("jax_enable_x64", before)
    np.testing.assert_allclose(found, perturbed(Chain(), CHAIN, Y, LENGTHS, seed=seed)[0], rtol=1e-5)
