"""Losses of layers as functions of PyTorch tensors, and a head with parameters, on the host's processors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, cast

from structsvm.arrays import Floats
from structsvm.layers.chain import Chain
from structsvm.layers.losses import FIRST_ONLY, LossFunction, check_options, log_loss, options_of, several
from structsvm.layers.structure import Structure

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
else:
    try:
        from torch.nn import Module
    except ImportError:  # the docstrings are read without it
        Module = object

__all__ = ["CRF", "differentiable"]

REDUCTIONS = ("none", "sum", "mean", "token_mean")


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
        `log_loss`, `hinge`, `softmax_margin`, `ramp`, `perturbed`, `sparsemap`, `kl_divergence`, `spo_plus`.
    structure : Structure
    **options
        The loss's own, if they stay the same: ``n_samples=16``.

    Returns
    -------
    callable
        ``f(parts, y, lengths=None, **options)``: values (B,) on the device of the first part and of its type, but of
        float32 where this is of half precision, with gradients by `parts`, a tuple of tensors (None: left out); all
        else is constant, a teacher's parts, too. Parts of integers count as of PyTorch's default type. Scores on a GPU
        travel. Second derivatives are refused with NotImplementedError.

    Raises
    ------
    TypeError
        There is no loss or no structure; or an option is none of the loss, or an argument of the function returned.

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
    own = options_of(loss, structure)
    check_options(loss, own, options)

    def function(
        parts: Sequence[torch.Tensor | None], y: object, lengths: object = None, **more: object
    ) -> torch.Tensor:
        check_options(loss, own, more)
        arrays = {name: host(value) for name, value in (options | more).items()}
        compute = partial(loss, structure, y=host(y), lengths=host(lengths), per_entry=True, **arrays)  # type: ignore[arg-type]
        given = several(parts)
        for part in given:
            if part is not None and not hasattr(part, "detach"):
                raise TypeError(f"parts must be tensors, or None for those left out. Got {type(part).__name__}.")
        values: torch.Tensor = _layer().apply(compute, *given)
        return values

    return function


def host(value: object) -> object:
    """A tensor, or several, as arrays in main memory, halves as float32; other objects as they are."""
    if isinstance(value, tuple):  # a teacher's parts
        return tuple(host(part) for part in value)
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
                    total = (total if gradient.dim() == part.dim() else total.sum(0)).to(part)
                found.append(total)
            return tuple(found)

        @staticmethod
        def backward(ctx, *weights):  # type: ignore[no-untyped-def]
            raise NotImplementedError(FIRST_ONLY)

    class Layer(torch.autograd.Function):
        """A loss's values; per entry its gradients are kept for what weighs them."""

        @staticmethod
        def forward(ctx, compute, *parts):  # type: ignore[no-untyped-def]
            real = torch.get_default_dtype()
            given = [host(part if part is None or part.is_floating_point() else part.to(real)) for part in parts]
            values, arrays = compute(given)
            gradients = [
                None if part is None else torch.from_numpy(array).to(part.device)
                for part, array in zip(parts, arrays, strict=True)
            ]
            ctx.save_for_backward(*parts, *gradients)
            return torch.from_numpy(values.astype(cast(Floats, given[0]).dtype)).to(parts[0].device)

        @staticmethod
        def backward(ctx, weights):  # type: ignore[no-untyped-def]
            return None, *Gradient.apply(weights, *ctx.saved_tensors)

    return Layer


class CRF(Module):
    """A linear-chain CRF with learnt transitions, start and end: pytorch-crf's class, on `Chain`.

    Parameters
    ----------
    num_tags : int
        Number of labels K.
    batch_first : bool, default=False
        Whether emissions are (B, T, K), and tags and mask (B, T); otherwise T comes first.
    n_threads : int, default=1
        Threads of `Chain`.

    Attributes
    ----------
    start_transitions, end_transitions : torch.nn.Parameter of shape (K,)
    transitions : torch.nn.Parameter of shape (K, K)
        From row to column. States of pytorch-crf's modules load as they are.

    Notes
    -----
    A mask is on for the tokens that count, from the first one of a sequence; a hole in it is refused. Tags elsewhere
    may be anything (-100), tags of -1 are unknown and summed over. A sequence may be empty.

    Examples
    --------
    >>> import torch
    >>> from structsvm.layers.torch import CRF
    >>> crf = CRF(3, batch_first=True)
    >>> loss = -crf(torch.zeros(1, 2, 3), torch.tensor([[0, 1]]), reduction="mean")
    >>> loss.backward()
    >>> crf.transitions.grad.shape
    torch.Size([3, 3])
    >>> crf.decode(torch.tensor([[[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]]]))
    [[0, 2]]
    """

    def __init__(self, num_tags: int, batch_first: bool = False, *, n_threads: int = 1) -> None:
        import torch

        if num_tags < 1:
            raise ValueError(f"num_tags must be at least 1. Got {num_tags}.")
        super().__init__()
        self.num_tags, self.batch_first = num_tags, batch_first
        self.chain = Chain(n_threads=n_threads)
        self.start_transitions = torch.nn.Parameter(torch.empty(num_tags))
        self.end_transitions = torch.nn.Parameter(torch.empty(num_tags))
        self.transitions = torch.nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters between -0.1 and 0.1."""
        from torch.nn.init import uniform_

        for parameter in self.parameters():
            uniform_(parameter, -0.1, 0.1)

    def extra_repr(self) -> str:
        """The parameters of the module, as `repr` shows them."""
        return f"num_tags={self.num_tags}"

    def forward(
        self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor | None = None, reduction: str = "sum"
    ) -> torch.Tensor:
        """Compute the log likelihood of tags: (B,) for "none", else its "sum", "mean" or "token_mean"."""
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}. Got {reduction!r}.")
        parts, inside, lengths = self._checked(emissions, mask)
        if tags.shape != emissions.shape[:2]:
            raise ValueError(
                f"tags must have the shape {tuple(emissions.shape[:2])} of the emissions' first two axes. "
                f"Got {tuple(tags.shape)}."
            )
        tags = tags if self.batch_first else tags.transpose(0, 1)
        for entry, token in (inside & ((tags < -1) | (tags >= self.num_tags))).nonzero()[:1].tolist():
            raise ValueError(
                f"tags must be from 0 to {self.num_tags - 1}, or -1 for an unknown one. Got "
                f"{tags[entry, token].item()} at batch entry {entry}, token {token}: turn the mask off there."
            )
        values = -differentiable(log_loss, self.chain)(parts, tags, lengths)
        if reduction == "none":
            return values
        total = values.sum()
        counts = {"sum": 1, "mean": len(values), "token_mean": lengths.sum()}
        return total / counts[reduction]

    def decode(self, emissions: torch.Tensor, mask: torch.Tensor | None = None) -> list[list[int]]:
        """Return the best tags of each sequence, as long as its mask is on."""
        parts, _, lengths = self._checked(emissions, mask)
        found = self.chain.argmax(*map(host, parts), lengths=lengths.cpu().numpy())
        return [row[:length].tolist() for row, length in zip(found, lengths.tolist(), strict=True)]

    def _checked(
        self, emissions: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
        """Parts of a batch, batch first and of one type, the tokens that count, and the lengths."""
        import torch

        if emissions.dim() != 3 or emissions.shape[2] != self.num_tags:
            axes = "B, T" if self.batch_first else "T, B"
            raise ValueError(f"emissions must have shape ({axes}, {self.num_tags}). Got {tuple(emissions.shape)}.")
        if mask is None:
            mask = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
        if mask.shape != emissions.shape[:2]:
            raise ValueError(
                f"mask must have the shape {tuple(emissions.shape[:2])} of the emissions' first two axes. "
                f"Got {tuple(mask.shape)}."
            )
        if not self.batch_first:
            emissions, mask = emissions.transpose(0, 1), mask.transpose(0, 1)
        inside = mask.bool()
        lengths = inside.sum(1)
        holes = inside != (torch.arange(inside.shape[1], device=inside.device) < lengths[:, None])
        for entry, token in holes.nonzero()[:1].tolist():
            raise ValueError(
                "mask must be on from the first token of a sequence to its last, and off behind it. Batch entry "
                f"{entry} is off at token {token} and on later: pad on the right."
            )
        wide = emissions.to(torch.promote_types(emissions.dtype, self.transitions.dtype))
        return [wide, self.transitions, self.start_transitions, self.end_transitions], inside, lengths
