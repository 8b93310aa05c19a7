"""Losses of layers as functions of PyTorch tensors, on the host's processors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from structsvm.layers.losses import FIRST_ONLY, LossFunction
from structsvm.layers.structure import Structure

if TYPE_CHECKING:
    import torch

__all__ = ["differentiable"]


class Function(Protocol):
    """Losses as functions of tensors."""

    def __call__(
        self, parts: Sequence[torch.Tensor | None], y: object, lengths: object = None, **more: object
    ) -> torch.Tensor: ...


def differentiable(loss: LossFunction, structure: Structure, **options: object) -> Function:
    """Make a function of tensors of a loss.

    Parameters
    ----------
    loss : callable
        `log_loss`, `hinge`, `softmax_margin`, `ramp`, `perturbed`, `sparsemap`.
    structure : Structure
    **options
        The loss's own, if they stay the same: ``n_samples=16``.

    Returns
    -------
    callable
        ``f(parts, y, lengths=None, **options)``: values (B,), of the type and on the device of the first part, with
        gradients by `parts`, a tuple of tensors (None: left out). Scores on a GPU travel; half precision is computed in
        float32. Second derivatives are refused with NotImplementedError.

    Examples
    --------
    >>> import torch
    >>> from structsvm.layers import Chain, log_loss
    >>> from structsvm.layers.torch import differentiable
    >>> loss = differentiable(log_loss, Chain())
    >>> transitions = torch.zeros(3, 3, requires_grad=True)
    >>> loss((torch.zeros(1, 2, 3), transitions), [[0, 1]]).sum().backward()
    >>> [round(number, 2) for number in transitions.grad[0].tolist()]
    [0.11, -0.89, 0.11]
    """

    def function(
        parts: Sequence[torch.Tensor | None], y: object, lengths: object = None, **more: object
    ) -> torch.Tensor:
        arrays = {name: host(value) for name, value in (options | more).items()}
        compute = partial(loss, structure, y=host(y), lengths=host(lengths), per_entry=True, **arrays)  # type: ignore[arg-type]
        values: torch.Tensor = _layer().apply(compute, *parts)
        return values

    return function


def host(value: object) -> object:
    """A tensor as an array in main memory, halves as float32; other objects as they are."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()


@cache
def _layer() -> type[torch.autograd.Function]:
    import torch

    class Gradient(torch.autograd.Function):
        """The gradients by the parts, whose own derivatives are refused."""

        @staticmethod
        def forward(ctx, weights, *saved):  # type: ignore[no-untyped-def]
            n = len(saved) // 2
            found = []
            for part, gradient in zip(saved[:n], saved[n:], strict=True):
                total = part
                if part is not None:
                    total = gradient * weights.reshape(-1, *[1] * (gradient.dim() - 1))
                    total = total if gradient.dim() == part.dim() else total.sum(0)
                found.append(total)
            return tuple(found)

        @staticmethod
        def backward(ctx, *weights):  # type: ignore[no-untyped-def]
            raise NotImplementedError(FIRST_ONLY)

    class Layer(torch.autograd.Function):
        """A loss's values; per entry its gradients are kept for what weighs them."""

        @staticmethod
        def forward(ctx, compute, *parts):  # type: ignore[no-untyped-def]
            values, arrays = compute([host(part) for part in parts])
            gradients = [
                None if part is None else torch.from_numpy(array).to(part)
                for part, array in zip(parts, arrays, strict=True)
            ]
            ctx.save_for_backward(*parts, *gradients)
            return torch.from_numpy(values).to(parts[0])

        @staticmethod
        def backward(ctx, weights):  # type: ignore[no-untyped-def]
            return None, *Gradient.apply(weights, *ctx.saved_tensors)

    return Layer
