"""Losses of layers as functions of JAX: under `jit`, `grad` and `vmap`, on the host's processors."""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

import structsvm.layers
from structsvm.execution.foreign import can_call, results_of, serve
from structsvm.layers._chain import LogLoss
from structsvm.layers.chain import Chain
from structsvm.layers.losses import FIRST_ONLY, Loss, LossFunction, check_options, log_loss, options_of, several
from structsvm.layers.structure import Structure, as_outputs

if TYPE_CHECKING:
    import jax

    from structsvm.arrays import AnyArray, Integers

    # Parts, y, lengths, and what else changes from call to call.
    Given = tuple[tuple[AnyArray | None, ...], AnyArray, AnyArray | None, dict[str, AnyArray]]

__all__ = ["differentiable"]

FORMAT, LONGEST = 1, 10_000  # texts that name losses in compiled programs


class Function(Protocol):
    """Losses as functions of JAX."""

    def __call__(self, parts: Sequence[object], y: object, lengths: object = None, **arrays: object) -> AnyArray: ...


class Bound(Protocol):
    """A loss of a structure, with its options."""

    def __call__(self, parts: object, y: object, lengths: object = None, **more: object) -> Loss: ...


def as_numbers(y: ArrayLike) -> AnyArray:
    """Outputs as an array that JAX can hold; ValueError for texts and lists of different lengths."""
    found: AnyArray = as_outputs(y)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"y must be an array of integers, the numbers of labels. Got dtype {found.dtype}.")
    return found


def is_output(y: object) -> TypeGuard[ArrayLike]:
    """Whether y is NumPy's or consists of lists of integers or texts; a list of arrays may be a teacher's parts."""
    import jax

    return isinstance(y, np.ndarray) or (
        isinstance(y, list | tuple)
        and not any(hasattr(leaf, "shape") or isinstance(leaf, float) for leaf in jax.tree.leaves(y))
    )


def check_integers(name: str, given: object) -> None:
    """Refuse integers that JAX would wrap: beyond int32, unless it is told to use 64 bits."""
    import jax

    for leaf in jax.tree.leaves(given):
        if isinstance(leaf, jax.Array):
            continue
        found: Integers = np.asarray(leaf)
        if found.dtype.kind not in "iu" and not isinstance(leaf, int):
            continue
        bounds = np.iinfo(jax.dtypes.canonicalize_dtype(np.uint64 if found.dtype.kind == "u" else np.int64))
        for number in found[(found < bounds.min) | (found > bounds.max)].tolist()[:1]:
            raise ValueError(f"{name} must have integers from {bounds.min} to {bounds.max}. Got {number}.")


def plain(values: dict[str, object]) -> dict[str, object]:
    """Numbers of NumPy's as Python's, which have a text, and no type that arrays take over."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def text_of(
    loss: LossFunction, structure: Structure, options: dict[str, object], form: jax.tree_util.PyTreeDef
) -> str | None:
    """The text of which `function_of` makes a loss again; None if it depends on anything but names and numbers.

    Losses and structures of this package keep no array that they were given.
    """
    import jax

    names = [getattr(one, "__name__", "") for one in (loss, type(structure))]
    if [getattr(structsvm.layers, name, None) for name in names] != [loss, type(structure)]:
        return None
    arguments = {name: getattr(structure, name, structure) for name in inspect.signature(type(structure)).parameters}
    arguments = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    found = (FORMAT, *names, plain(arguments), options, jax.tree.unflatten(form, range(form.num_leaves)))
    with suppress(Exception):  # anyone's `__repr__` may fail
        text = repr(found)
        return text if len(text) <= LONGEST and literal_eval(text) == found else None
    return None


@lru_cache(maxsize=256)
def function_of(text: str) -> Callable[[list[AnyArray]], tuple[AnyArray, ...]]:
    """The function of flat arrays that a program calls by `text_of` a loss."""
    import jax

    try:
        made_by, loss, structure, arguments, options, places = literal_eval(text)
        if made_by != FORMAT:
            raise ValueError(f"Got format {made_by} instead of {FORMAT}.")
        own, form = getattr(structsvm.layers, structure)(**arguments), jax.tree.structure(places)
        bound = partial(getattr(structsvm.layers, loss), own, per_entry=True, **options)
    except Exception as error:
        raise RuntimeError("the program was compiled by another version of structsvm: compile it again") from error
    return lambda arrays: computed(bound, jax.tree.unflatten(form, arrays))


def computed(bound: Bound, given: Given) -> tuple[AnyArray, ...]:
    """Values in the gradients' type, and the gradients of the parts that there are."""
    parts, y, lengths, arrays = given
    more = {name: value.item() if value is not None and value.ndim == 0 else value for name, value in arrays.items()}
    values, gradients = bound(parts, y, lengths, **more)
    kept = [gradient for gradient in gradients if gradient is not None]
    return values.astype(kept[0].dtype), *kept


def is_quick(loss: LossFunction, structure: Structure, given: Given) -> bool:
    """Whether it is the log loss of a chain, of known labels, which no thread of Python has to wait for."""
    parts, y, _, more = given
    return (
        loss is log_loss
        and type(structure) is Chain
        and (structure.order, structure.language, structure.n_threads) == (1, None, 1)
        and not more
        and all(part is not None for part in parts)
        and hasattr(y, "shape")
    )


def differentiable(loss: LossFunction, structure: Structure, **options: object) -> Function:
    """Make a function of JAX of a loss.

    Parameters
    ----------
    loss : callable
        `log_loss`, `hinge`, `softmax_margin`, `ramp`, `perturbed`, `sparsemap`, `kl_divergence`, `spo_plus`.
    structure : Structure
    **options
        The loss's own, if they stay the same: ``n_samples=16``.

    Returns
    -------
    callable
        ``f(parts, y, lengths=None, **arrays)``: values (B,), with gradients by `parts`, a tuple; all else is constant,
        a teacher's parts, too. Values have the parts' type, but are of float32 where these are of float16 or bfloat16;
        gradients have each part's own. Options that change from call to call, a `seed` or a `cost`, are given as
        `arrays`. It calls back to the host; an error there, such as a nan, ends the computation with its message.
        Second derivatives are refused with NotImplementedError, forward ones with JAX's TypeError.

    Raises
    ------
    TypeError
        There is no loss or no structure; or an option is none of the loss, or an argument of the function returned.
    ValueError
        Integers of y, lengths or options are beyond JAX's own, by default int32.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from structsvm.layers import Chain, log_loss
    >>> from structsvm.layers.jax import differentiable
    >>> loss = differentiable(log_loss, Chain())
    >>> parts, y = (jnp.zeros((1, 2, 3)), jnp.zeros((3, 3))), jnp.array([[0, 1]])
    >>> emissions, transitions = jax.jit(jax.grad(lambda parts: loss(parts, y).sum()))(parts)
    >>> emissions[0, 0].round(2).tolist() == jnp.array([-2 / 3, 1 / 3, 1 / 3]).round(2).tolist()
    True
    """
    import jax

    own = options_of(loss, structure)
    check_options(loss, own, options)
    options = plain(options)
    bound = jax.tree_util.Partial(loss, structure, per_entry=True, **options)

    def host(given: Given) -> tuple[AnyArray, ...]:
        return computed(bound, jax.tree.map(np.asarray, given))

    @jax.custom_jvp
    def call(given: Given) -> tuple[AnyArray, ...]:
        zeros = [None if part is None else np.zeros(part.shape, part.dtype) for part in given[0]]
        scores = structure.check(zeros, None if given[2] is None else np.zeros(given[2].shape, given[2].dtype))
        n = len(scores.lengths)
        wide = tuple(np.broadcast_to(part, (n, *part.shape[1:])) for part in scores.parts)
        arrays = [array for array in scores.per_entry(wide) if array is not None]
        shaped = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        shaped.insert(0, jax.ShapeDtypeStruct((n,), scores.parts[0].dtype))
        found: tuple[AnyArray, ...]
        flat, form = jax.tree.flatten(given)
        text = text_of(loss, structure, options, form)
        if text is not None and can_call(flat):
            found = results_of(text, shaped, flat, quick=is_quick(loss, structure, given))
        else:
            found = jax.pure_callback(host, tuple(shaped), given, vmap_method="sequential")
        return found

    @call.defjvp
    def refuse(primals: tuple[Given], tangents: tuple[Given]) -> None:
        raise NotImplementedError(FIRST_ONLY)

    @jax.custom_vjp
    def values_of(given: Given) -> AnyArray:
        return call(given)[0]

    def forward(given: Given) -> tuple[AnyArray, tuple[Given, list[AnyArray]]]:
        values, *gradients = call(given)
        return values, (given, gradients)

    def backward(kept: tuple[Given, list[AnyArray]], weights: AnyArray) -> tuple[object]:
        given, gradients = kept
        left = iter(gradients)

        def weighted(part: AnyArray) -> AnyArray:
            gradient = next(left)
            total = jax.numpy.einsum("b,b...->b...", weights, gradient)
            summed: AnyArray = total if gradient.ndim == part.ndim else total.sum(axis=0)
            return summed.astype(part.dtype)

        of_parts = tuple(None if part is None else weighted(part) for part in given[0])
        return ((of_parts, *jax.tree.map(no_gradient, given[1:])),)

    def as_real(part: AnyArray) -> AnyArray:
        """Halves as float32, integers as JAX's floats."""
        found: AnyArray = part
        if jax.numpy.issubdtype(part.dtype, jax.numpy.floating):
            found = part.astype(jax.numpy.float32) if part.dtype.itemsize < 4 else part
        elif part.dtype.kind in "biu":
            found = part.astype(jax.dtypes.canonicalize_dtype(np.float64))
        return found

    def no_gradient(array: AnyArray) -> object:
        real = jax.numpy.issubdtype(array.dtype, jax.numpy.floating)
        return jax.numpy.zeros_like(array) if real else np.zeros(array.shape, jax.dtypes.float0)

    values_of.defvjp(forward, backward)

    def function(parts: Sequence[object], y: object, lengths: object = None, **arrays: object) -> AnyArray:
        check_options(loss, own, arrays)
        outputs = as_numbers(y) if is_output(y) else y
        others = {"lengths": lengths, **arrays}
        for name, value in {"y": outputs, **others}.items():
            check_integers(name, value)
        given = jax.tree.map(jax.numpy.asarray, (several(parts), outputs))
        more = {name: None if value is None else jax.numpy.asarray(value) for name, value in others.items()}
        values: AnyArray = values_of((jax.tree.map(as_real, given[0]), given[1], more.pop("lengths"), more))
        return values

    return function


serve(function_of, LogLoss())
