"""Losses as functions of tensors: of PyTorch's where it is installed, and of stand-ins that have what is called."""

import sys
import types

import numpy as np
import pytest

from structsvm.layers import Assignment, Chain, hinge, log_loss, perturbed
from structsvm.layers import torch as binding

Y, LENGTHS = np.array([[0, 1, 2, 1], [2, 2, -1, -1]]), np.array([4, 2])
WEIGHTS = np.array([0.5, -2.0], np.float32)


class Tensor:
    """Numbers with the methods of a tensor that a layer calls."""

    def __init__(self, array, requires_grad=False):
        self.array, self.requires_grad, self.grad, self.dtype = np.asarray(array), requires_grad, None, array.dtype
        self.shape, self.kept = self.array.shape, None

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.array

    def float(self):
        return Tensor(self.array.astype(np.float32))

    def is_floating_point(self):
        return self.array.dtype.kind == "f"

    def element_size(self):
        return self.array.itemsize

    def to(self, other):
        return Tensor(self.array.astype(other.dtype))

    def dim(self):
        return self.array.ndim

    def reshape(self, *shape):
        return Tensor(self.array.reshape(shape))

    def sum(self, axis):
        return Tensor(self.array.sum(axis))

    def __mul__(self, other):
        return Tensor(self.array * other.array)

    def backward(self, weights):
        layer, context, parts = self.kept
        nothing, *gradients = layer.backward(context, weights)
        assert nothing is None
        for part, gradient in zip(parts, gradients, strict=True):
            if part is not None and part.requires_grad:
                part.grad = gradient


class Function:
    @classmethod
    def apply(cls, compute, *parts):
        context = types.SimpleNamespace()
        context.save_for_backward = lambda *tensors: setattr(context, "saved_tensors", tensors)
        values = cls.forward(context, compute, *parts)
        if isinstance(values, Tensor):
            values.kept = cls, context, parts
        return values


@pytest.fixture(params=["torch", "stand-in"])
def tensor(request, monkeypatch):
    """A factory of tensors that require a gradient."""
    if request.param == "torch":
        torch = pytest.importorskip("torch")
        yield lambda array: torch.tensor(array, requires_grad=array.dtype.kind == "f")
    else:
        autograd = types.ModuleType("torch.autograd")
        autograd.Function = Function
        torch = types.ModuleType("torch")
        torch.autograd, torch.from_numpy = autograd, Tensor
        for module in (torch, autograd):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        binding._layer.cache_clear()
        yield lambda array: Tensor(array, requires_grad=True)
        binding._layer.cache_clear()


def parts_of(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


@pytest.mark.parametrize("loss", [log_loss, hinge])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_values_and_weighted_gradients(tensor, loss, dtype):
    arrays = (*parts_of((2, 4, 3), (3, 3), dtype=dtype), None, np.ones(3, dtype))
    parts = [None if array is None else tensor(array) for array in arrays]
    found = binding.differentiable(loss, Chain())(parts, tensor(Y), tensor(LENGTHS))
    found.backward(tensor(WEIGHTS.astype(dtype)))
    values, gradients = loss(Chain(), arrays, Y, LENGTHS, per_entry=True)
    tol = 5e-2 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found.detach().numpy(), values, rtol=tol)
    np.testing.assert_allclose(parts[0].grad.numpy(), gradients[0] * WEIGHTS[:, None, None], atol=tol)
    for part, gradient in ((parts[1], gradients[1]), (parts[3], gradients[3])):
        np.testing.assert_allclose(part.grad.numpy(), np.einsum("b,b...->...", WEIGHTS, gradient), atol=tol)
    assert found.detach().numpy().dtype == parts[0].grad.numpy().dtype == dtype


def test_options_change_from_call_to_call(tensor):
    (pairs,), y = parts_of((1, 3, 3)), [[0, 1, 2]]
    function = binding.differentiable(perturbed, Assignment(), n_samples=3)
    values = [function([tensor(pairs)], y, seed=seed).detach().numpy()[0] for seed in (1, 2, 1)]
    assert values[0] == values[2] != values[1]
    assert values[0] == pytest.approx(perturbed(Assignment(), (pairs,), y, n_samples=3, seed=1)[0][0], rel=1e-5)


def test_second_derivatives_are_refused():
    torch = pytest.importorskip("torch")
    emissions, transitions = (torch.tensor(part, requires_grad=True) for part in parts_of((2, 4, 3), (3, 3)))
    value = binding.differentiable(log_loss, Chain())((emissions, transitions), Y, LENGTHS).sum()
    (gradient,) = torch.autograd.grad(value, emissions, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        (gradient**2).sum().backward()
