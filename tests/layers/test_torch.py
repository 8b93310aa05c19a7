"""Losses as functions of tensors: of PyTorch's where it is installed, and of stand-ins that have what is called."""

import pickle
import sys
import types
from itertools import pairwise, product

import numpy as np
import pytest

from structsvm.layers import Assignment, Chain, Solver, hinge, kl_divergence, log_loss, perturbed, spo_plus
from structsvm.layers import torch as binding

Y, LENGTHS = np.array([[0, 1, 2, 1], [2, 2, -1, -1]]), np.array([4, 2])
WEIGHTS = np.array([0.5, -2.0], np.float32)


class Tensor:
    """Numbers with the methods of a tensor that a layer calls."""

    def __init__(self, array, requires_grad=False):
        self.array, self.requires_grad, self.grad, self.dtype = np.asarray(array), requires_grad, None, array.dtype
        self.shape, self.device, self.kept = self.array.shape, "cpu", None

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
        return self if other == self.device else Tensor(self.array.astype(getattr(other, "dtype", other)))

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
        torch.autograd, torch.from_numpy, torch.get_default_dtype = autograd, Tensor, lambda: np.dtype(np.float32)
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
    assert found.detach().numpy().dtype == (np.float32 if dtype == np.float16 else dtype)
    assert parts[0].grad.numpy().dtype == parts[1].grad.numpy().dtype == dtype


def test_losses_of_halves_and_of_integers_are_no_such_numbers(tensor):
    """A sum of 40 halves of 3,000 is beyond what a half can hold, and a loss has fractions."""
    emissions, y = np.zeros((1, 40, 2), np.float16), np.zeros((1, 40), int)
    emissions[..., 1] = 3000
    found = binding.differentiable(log_loss, Chain())([tensor(emissions), tensor(np.zeros((2, 2), np.float16))], y)
    assert found.detach().numpy() == [120000]
    numbers = [tensor(np.zeros((1, 3, 2), int)), tensor(np.zeros((2, 2), np.float32))]
    found = binding.differentiable(log_loss, Chain())(numbers, [[0, 1, 1]])
    assert found.detach().numpy() == pytest.approx([3 * np.log(2)])
    assert found.detach().numpy().dtype == np.float32


def test_options_change_from_call_to_call(tensor):
    (pairs,), y = parts_of((1, 3, 3)), [[0, 1, 2]]
    function = binding.differentiable(perturbed, Assignment(), n_samples=3)
    values = [function([tensor(pairs)], y, seed=seed).detach().numpy()[0] for seed in (1, 2, 1)]
    assert values[0] == values[2] != values[1]
    assert values[0] == pytest.approx(perturbed(Assignment(), (pairs,), y, n_samples=3, seed=1)[0][0], rel=1e-5)


def test_options_that_a_loss_has_not(tensor):
    with pytest.raises(TypeError, match="lengths is no option of differentiable"):
        binding.differentiable(log_loss, Chain(), lengths=LENGTHS)
    function, parts = binding.differentiable(hinge, Chain()), [tensor(part) for part in parts_of((2, 4, 3), (3, 3))]
    with pytest.raises(TypeError, match=r"hinge has no option 'costs'\. Its options: cost"):
        function(parts, Y, LENGTHS, costs=1.0)
    with pytest.raises(ValueError, match=r"parts must be a tuple of arrays, .* Got an array of shape \(2, 4, 3\)"):
        function(np.zeros((2, 4, 3)), Y, LENGTHS)
    with pytest.raises(TypeError, match=r"parts must be tensors, or None for those left out\. Got ndarray"):
        function(parts_of((2, 4, 3), (3, 3)), Y, LENGTHS)


def test_a_teacher_is_given_in_tensors(tensor):
    arrays, teacher = parts_of((2, 4, 3), (3, 3)), tuple(2 * part for part in parts_of((2, 4, 3), (3, 3)))
    parts = [tensor(array) for array in arrays]
    function = binding.differentiable(kl_divergence, Chain())
    found = function(parts, tuple(tensor(array) for array in teacher), tensor(LENGTHS))
    found.backward(tensor(np.ones(2, np.float32)))
    values, gradients = kl_divergence(Chain(), arrays, teacher, LENGTHS)
    np.testing.assert_allclose(found.detach().numpy(), values, rtol=1e-4)
    for part, gradient in zip(parts, gradients, strict=True):
        np.testing.assert_allclose(part.grad.numpy(), gradient, atol=1e-5)


def test_decisions_of_a_solver(tensor):
    (guess,), rng = parts_of((3, 4)), np.random.default_rng(1)
    truth = rng.normal(size=(3, 4)).astype(np.float32)
    choice = Solver(lambda values: (values >= np.sort(values)[-2]).astype(float))
    scores = tensor(guess)
    found = binding.differentiable(spo_plus, choice)([scores], (tensor(truth),))
    found.backward(tensor(np.array([0.5, -2.0, 1.0], np.float32)))
    values, (gradient,) = spo_plus(choice, (guess,), (truth,))
    assert values.max() > 0.1
    np.testing.assert_allclose(found.detach().numpy(), values, rtol=1e-5)
    np.testing.assert_allclose(scores.grad.numpy(), gradient * [[0.5], [-2.0], [1.0]], atol=1e-6)


def test_noise_and_solvers_in_a_network(tensor):
    """`perturbed` of a solver: the loss is the one without the binding."""
    (guess,) = parts_of((2, 4))
    choice = Solver(lambda values: (values >= np.sort(values)[-2]).astype(float))
    y, scores = np.array([[1.0, 1.0, 0.0, 0.0]] * 2), tensor(guess)
    found = binding.differentiable(perturbed, choice, n_samples=5)([scores], y)
    found.backward(tensor(np.ones(2, np.float32)))
    values, (gradient,) = perturbed(choice, (guess,), y, n_samples=5)
    np.testing.assert_allclose(found.detach().numpy(), values, rtol=1e-5)
    np.testing.assert_allclose(scores.grad.numpy(), gradient, atol=1e-6)


def test_second_derivatives_are_refused():
    torch = pytest.importorskip("torch")
    emissions, transitions = (torch.tensor(part, requires_grad=True) for part in parts_of((2, 4, 3), (3, 3)))
    value = binding.differentiable(log_loss, Chain())((emissions, transitions), Y, LENGTHS).sum()
    (gradient,) = torch.autograd.grad(value, emissions, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        (gradient**2).sum().backward()


# ---- CRF, whose behaviour is pytorch-crf's ----------------------------------------------------------


def crf_of(K=3, **options):
    pytest.importorskip("torch")
    return binding.CRF(K, **options)


def likelihoods(crf, emissions, tags, lengths):
    """The log likelihood of each sequence, by the enumeration of all taggings."""
    start, end, steps = (
        p.detach().double().numpy() for p in (crf.start_transitions, crf.end_transitions, crf.transitions)
    )
    found = []
    for rows, y, length in zip(emissions, tags, lengths, strict=True):
        scores = {
            z: start[z[0]] + end[z[-1]] + sum(rows[t, q] for t, q in enumerate(z)) + sum(steps[a] for a in pairwise(z))
            for z in product(range(crf.num_tags), repeat=int(length))
        }
        found.append(scores[tuple(y[:length].tolist())] - np.logaddexp.reduce(list(scores.values())))
    return np.array(found)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["bool", "uint8", "int64"])
def test_the_crf_is_the_log_likelihood_of_tags(batch_first, kind):
    crf = crf_of(batch_first=batch_first)
    import torch

    (emissions,) = parts_of((2, 4, 3))
    mask, tags = np.arange(4) < LENGTHS[:, None], np.where(Y < 0, -100, Y)
    arrays = [a if batch_first else a.swapaxes(0, 1) for a in (emissions, tags, mask.astype(kind))]
    tensors = [torch.tensor(a) for a in arrays]
    expected = likelihoods(crf, emissions.astype(float), Y, LENGTHS)
    for reduction, value in (
        ("none", expected),
        ("sum", expected.sum()),
        ("mean", expected.mean()),
        ("token_mean", expected.sum() / 6),
    ):
        np.testing.assert_allclose(crf(*tensors, reduction=reduction).detach().numpy(), value, rtol=1e-5)
    assert crf(*tensors).item() == pytest.approx(expected.sum(), rel=1e-5)
    whole = crf(tensors[0], torch.tensor(np.abs(arrays[1]) % 3))
    assert whole.item() == pytest.approx(
        likelihoods(crf, emissions.astype(float), np.abs(tags) % 3, [4, 4]).sum(), rel=1e-5
    )
    crf(*tensors).backward()
    assert all(np.isfinite(p.grad.numpy()).all() and p.grad.abs().sum() > 0 for p in crf.parameters())


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_crf_decodes_lists_as_long_as_the_mask(batch_first):
    crf = crf_of(batch_first=batch_first)
    import torch

    (emissions,) = parts_of((3, 4, 3))
    lengths = np.array([4, 0, 2])
    mask = torch.tensor(np.arange(4) < lengths[:, None])
    given = torch.tensor(emissions)
    given, mask = (given, mask) if batch_first else (given.transpose(0, 1), mask.transpose(0, 1))
    found = crf.decode(given, mask)
    assert [len(tags) for tags in found] == lengths.tolist() and all(type(tag) is int for tag in found[0])
    for b in (0, 2):
        tried = np.array(list(product(range(3), repeat=int(lengths[b]))))
        best = tried[np.argmax([likelihoods(crf, emissions[b : b + 1], y[None], lengths[b : b + 1])[0] for y in tried])]
        assert found[b] == best.tolist()
    assert [len(tags) for tags in crf.decode(given)] == [4, 4, 4]


def test_the_crf_takes_states_pickles_and_half_precision():
    crf = crf_of(batch_first=True)
    import torch

    names = {"start_transitions": (3,), "end_transitions": (3,), "transitions": (3, 3)}
    assert {name: tuple(value.shape) for name, value in crf.state_dict().items()} == names
    assert all(0 < p.abs().max() <= 0.1 for p in crf.parameters())
    assert repr(crf) == "CRF(num_tags=3)"
    other = pickle.loads(pickle.dumps(crf))
    emissions, tags = torch.tensor(parts_of((2, 4, 3))[0], requires_grad=True), torch.tensor(np.abs(Y))
    assert torch.equal(other(emissions, tags), crf(emissions, tags))
    half = crf(emissions.half(), tags)
    assert half.dtype == torch.float32 and half.item() == pytest.approx(crf(emissions, tags).item(), rel=1e-2)
    half.backward()
    assert emissions.grad.shape == emissions.shape
    assert crf.double()(emissions.double(), tags).dtype == torch.float64
    unknown = tags.clone()
    unknown[:] = -1
    assert crf(emissions.double(), unknown).item() == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"emissions": (2, 4)}, r"emissions must have shape \(B, T, 3\). Got \(2, 4\)"),
        ({"emissions": (2, 4, 5)}, r"emissions must have shape \(B, T, 3\)"),
        ({"tags": [[0, 1]]}, r"tags must have the shape \(2, 4\) of the emissions"),
        ({"tags": [[0, 1, 2, 1], [0, -100, 0, 0]]}, "Got -100 at batch entry 1, token 1: turn the mask off there"),
        ({"tags": [[0, 1, 2, 3], [0, 0, 0, 0]]}, "tags must be from 0 to 2.*Got 3 at batch entry 0, token 3"),
        ({"mask": [[True, True]]}, r"mask must have the shape \(2, 4\)"),
        ({"mask": [[1, 1, 1, 1], [1, 0, 1, 0]]}, "Batch entry 1 is off at token 1 and on later: pad on the right"),
        ({"mask": [[0, 1, 1, 1], [1, 1, 1, 1]]}, "mask must be on from the first.*Batch entry 0 is off at token 0"),
        ({"reduction": "max"}, "reduction must be one of none, sum, mean, token_mean. Got 'max'"),
    ],
)
def test_what_the_crf_refuses(change, message):
    crf = crf_of(batch_first=True)
    import torch

    options = {"tags": np.abs(Y), "mask": np.ones((2, 4), bool), "reduction": "sum"} | change
    tensors = {name: value if name == "reduction" else torch.tensor(value) for name, value in options.items()}
    tensors["emissions"] = torch.zeros(change.get("emissions", (2, 4, 3)))
    with pytest.raises(ValueError, match=message):
        crf(**tensors)


def test_a_crf_without_labels_is_refused():
    with pytest.raises(ValueError, match="num_tags must be at least 1"):
        crf_of(0)
