"""Compiled programs that call losses: to the bits of JAX's callback, which remains where XLA's interface is unknown."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from ast import literal_eval
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import structsvm.layers
from structsvm.execution import _foreign, foreign
from structsvm.execution._stop import look_every
from structsvm.layers import (
    Alignment,
    Arborescence,
    Assignment,
    Chain,
    LabelSets,
    Ordering,
    Projective,
    SemiMarkov,
    Solver,
    Spans,
    Structure,
    hinge,
    label_language,
    log_loss,
    perturbed,
    softmax_margin,
)
from structsvm.layers import jax as binding
from structsvm.layers.jax import differentiable

jax = pytest.importorskip("jax")
jnp = jax.numpy
SIZE, LENGTHS = (5, 7, 4), np.array([3, 7, 0, 7, 1])


def parts_of(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


def labels(size=SIZE):
    return np.random.default_rng(1).integers(size[2], size=size[:2])


EDGES = parts_of(SIZE, (4, 4), (4,), (4,))
Y = labels()


@pytest.fixture
def doubles():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def called(monkeypatch):
    """The losses of chains that Python has computed."""
    calls, own = [], Chain.sums_less

    def counted(self, scores, y, *, per_entry=True):
        calls.append(len(scores.lengths))  # not the scores, whose memory is XLA's
        return own(self, scores, y, per_entry=per_entry)

    monkeypatch.setattr(Chain, "sums_less", counted)
    return calls


def by_callback(monkeypatch, compute):
    """The same, as if XLA's interface were not known."""
    with monkeypatch.context() as patch:
        patch.setattr(binding, "can_call", lambda arrays: False)
        return compute()


def equal(found, wanted):
    found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def both(loss, structure, parts, *others, **options):
    """Values and weighted gradients by a compiled program of a loss."""
    function = differentiable(loss, structure, **options)
    weights = np.linspace(-1, 2, len(parts[0])).astype(parts[0].dtype)
    values, pull = jax.jit(lambda parts, others: jax.vjp(lambda p: function(p, *others), parts))(tuple(parts), others)
    return values, pull(jnp.asarray(weights))


CASES = {
    "chain": (log_loss, Chain(), EDGES[:2], Y, LENGTHS),
    "start": (log_loss, Chain(), EDGES[:3], Y, LENGTHS),
    "edges": (log_loss, Chain(), EDGES, Y, LENGTHS),
    "whole": (log_loss, Chain(), EDGES, Y),
    "empty sequences": (log_loss, Chain(), EDGES, Y, 0 * LENGTHS),
    "sorted": (log_loss, Chain(), EDGES, Y, -np.sort(-LENGTHS)),
    "lanes": (log_loss, Chain(), parts_of((37, 9, 20), (20, 20)), labels((37, 9, 20)), np.arange(37) % 10),
    "one label": (log_loss, Chain(), parts_of((3, 4, 1), (1, 1)), np.zeros((3, 4), int)),
    "no entry": (log_loss, Chain(), parts_of((0, 4, 2), (2, 2)), np.zeros((0, 4), int)),
    "no token": (log_loss, Chain(), parts_of((2, 0, 2), (2, 2)), np.zeros((2, 0), int)),
    "unknown labels": (log_loss, Chain(), EDGES, np.where(Y == 1, -1, Y), LENGTHS),
    "huge scores": (log_loss, Chain(), (1e9 * EDGES[0], *EDGES[1:]), Y, LENGTHS),
    "masks": (log_loss, Chain(), (np.where(np.arange(4) == (Y[..., None] + 1) % 4, -np.inf, EDGES[0]), EDGES[1]), Y),
    "far apart": (log_loss, Chain(), (EDGES[0], 100 * EDGES[1], *EDGES[2:]), Y, LENGTHS),
    "left out": (log_loss, Chain(), (*EDGES[:2], None, EDGES[3]), Y, LENGTHS),
    "threads": (log_loss, Chain(n_threads=2), EDGES, Y, LENGTHS),
    "steps": (log_loss, Chain(), parts_of(SIZE, (5, 6, 4, 4)), Y, LENGTHS),
    "order 2": (log_loss, Chain(order=2), parts_of(SIZE, (4, 4, 4)), Y, LENGTHS),
    "hinge": (hinge, Chain(), EDGES, Y, LENGTHS),
    "margin": (softmax_margin, Chain(), EDGES, Y, LENGTHS),
    "perturbed": (perturbed, Chain(), EDGES, Y, LENGTHS),
    "arcs": (log_loss, Projective(), parts_of((2, 5, 5)), np.array([[0, 1, 2, 3], [2, 0, 2, 3]])),
    "any arcs": (log_loss, Arborescence(), parts_of((2, 5, 5)), np.array([[0, 1, 2, 3], [2, 0, 2, 3]])),
    "pairs": (log_loss, Alignment(), parts_of((2, 4, 4)), np.tile(np.arange(4), (2, 1))),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_bits_are_those_of_the_callback(case, monkeypatch):
    assert foreign.can_call(case[2][:1])
    equal(both(*case), by_callback(monkeypatch, lambda: both(*case)))


@pytest.mark.parametrize("n_parts", [2, 3, 4])
def test_the_bits_in_float64(n_parts, monkeypatch, doubles, called):
    parts = parts_of(SIZE, (4, 4), (4,), (4,), dtype=np.float64)[:n_parts]
    case = log_loss, Chain(), parts, Y.astype(np.int32), LENGTHS
    found = both(*case)
    assert not called and found[0].dtype == np.float64
    equal(found, by_callback(monkeypatch, lambda: both(*case)))
    case = (*case[:3], Y, LENGTHS.astype(np.int16))
    equal(both(*case), by_callback(monkeypatch, lambda: both(*case)))


def test_the_bits_under_vmap_and_scan(monkeypatch):
    several = np.stack([EDGES[0], 2 * EDGES[0], -EDGES[0]])

    def compute():
        function = differentiable(log_loss, Chain())
        gradient = jax.grad(lambda emissions: function((emissions, *EDGES[1:]), Y, LENGTHS).sum())
        mapped = jax.jit(jax.vmap(gradient))(several)
        _, scanned = jax.lax.scan(lambda carry, emissions: (carry, gradient(emissions)), 0, several)
        return mapped, scanned, jax.vmap(jax.vmap(gradient))(several[None]), jax.checkpoint(gradient)(several[0])

    found = compute()
    equal(found[0], found[1])
    equal(found, by_callback(monkeypatch, compute))


def test_python_is_not_called_where_nothing_is_amiss(called):
    for name in ("chain", "start", "edges", "whole", "sorted", "lanes", "one label", "masks", "far apart"):
        both(*CASES[name])
    assert not called
    for name in ("unknown labels", "huge scores", "threads", "steps", "left out", "order 2"):
        both(*CASES[name])
        assert called, name
        called.clear()


def test_batches_of_several_forms_use_the_same_scratch(monkeypatch):
    several = [CASES[name] for name in ("lanes", "chain", "one label", "edges", "whole", "start", "sorted")]
    wanted = by_callback(monkeypatch, lambda: [both(*case) for case in several])
    for first in range(len(several)):
        for k in (first, -1 - first, 0):
            equal(both(*several[k]), wanted[k])


def test_a_batch_after_one_that_failed(called):
    function = jax.jit(differentiable(log_loss, Chain()))
    bad = EDGES[0].copy()
    bad[1, 6, 2] = np.nan
    for _ in range(2):
        with pytest.raises(Exception, match=r"ValueError: emissions must be .* at batch entry 1, position \(6, 2\)"):
            jax.block_until_ready(function((bad, EDGES[1]), Y, LENGTHS))
        np.testing.assert_allclose(
            function(EDGES, Y, LENGTHS), log_loss(Chain(), EDGES, Y, LENGTHS)[0], rtol=1e-5, atol=1e-6
        )
    assert len(called) == 4  # by NumPy, and for the bad ones


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts, y, lengths: (parts, y + 4, lengths), "y must contain labels from 0 to 3"),
        (lambda parts, y, lengths: (parts, y, lengths + 5), "lengths must be 5 integers from 0 to 7"),
        (lambda parts, y, lengths: (parts, y, lengths - 1), "lengths must be 5 integers from 0 to 7"),
        (lambda parts, y, lengths: ((parts[0], np.inf * parts[1]), y, lengths), "transitions must be finite"),
        (lambda parts, y, lengths: ((*parts[:3], np.nan * parts[3]), y, lengths), "end must be finite"),
        (lambda parts, y, lengths: ((parts[0], np.full((4, 4), -np.inf, "f4")), y, lengths), "has no output"),
        (
            lambda parts, y, lengths: (
                (np.where(Y[..., None] == np.arange(4), -np.inf, parts[0]), parts[1]),
                y,
                lengths,
            ),
            "y of batch entry 0 has a part whose score is -inf",
        ),
    ],
    ids=["label", "length", "negative", "transitions", "end", "masks", "truth"],
)
def test_errors_are_those_of_numpy(change, message):
    parts, y, lengths = change(EDGES, Y, LENGTHS)
    with pytest.raises(ValueError, match=message) as wanted:
        log_loss(Chain(), parts, y, lengths)
    with pytest.raises(Exception, match=message) as found:
        jax.block_until_ready(jax.jit(differentiable(log_loss, Chain()))(parts, y, lengths))
    assert str(wanted.value) in str(found.value)


def test_threads_that_call_one_program():
    function = jax.jit(jax.value_and_grad(lambda parts: differentiable(log_loss, Chain())(parts, many).sum()))
    many, parts = labels((64, 50, 9)), parts_of((64, 50, 9), (9, 9))
    batches = [tuple(scale * part for part in parts) for scale in np.linspace(0.1, 3, 8, dtype="f4")]
    wanted = [function(batch) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        for found, other in zip(threads.map(function, 5 * batches), 5 * wanted, strict=True):
            equal(found, other)


def test_losses_and_structures_of_ones_own_are_called_back(monkeypatch):
    kept = []

    def keeping(structure, parts, y, lengths=None, *, per_entry=False):
        kept.extend(parts)
        return log_loss(structure, parts, y, lengths, per_entry=per_entry)

    class Own(Chain):
        def check(self, parts, lengths):
            kept.extend(parts)
            return super().check(parts, lengths)

        check_for_sums = check

    wanted = log_loss(Chain(), EDGES, Y, LENGTHS)[0]
    for case in ((keeping, Chain()), (log_loss, Own())):
        assert binding.text_of(*case, {}, jax.tree.structure((EDGES, Y, LENGTHS, {}))) is None
        np.testing.assert_allclose(jax.jit(differentiable(*case))(EDGES, Y, LENGTHS), wanted, rtol=1e-5, atol=1e-6)
        assert kept
        kept.clear()
    assert issubclass(Own, Structure)


@pytest.mark.parametrize(
    "patch",
    [
        lambda m: m.setattr(jax, "device_count", lambda: 2),
        lambda m: m.setattr(jax.extend.backend, "backends", lambda: {"cpu": None, "cuda": None}),
        lambda m: m.delattr(jax.ffi, "register_ffi_target"),
        lambda m: m.setattr(jax.ffi, "register_ffi_target", refuse),
    ],
    ids=["several devices", "a GPU", "an older JAX", "a version of XLA's that is not known"],
)
def test_where_the_callback_remains(patch, monkeypatch, called):
    foreign.is_registered.cache_clear()
    patch(monkeypatch)
    found = jax.jit(differentiable(log_loss, Chain()))(EDGES, Y, LENGTHS)
    monkeypatch.undo()
    foreign.is_registered.cache_clear()
    assert called and foreign.can_call(EDGES)
    np.testing.assert_allclose(found, log_loss(Chain(), EDGES, Y, LENGTHS)[0], rtol=1e-5, atol=1e-6)


def test_a_batch_that_two_devices_share():
    """In a process of its own: their number is that of a process."""
    program = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from structsvm.layers import Chain, log_loss
from structsvm.layers.jax import differentiable
parts, y = (np.arange(24.0).reshape(4, 3, 2) % 5, np.eye(2)), np.zeros((4, 3), int)
over = NamedSharding(Mesh(np.array(jax.devices()), "b"), PartitionSpec("b"))
loss = differentiable(log_loss, Chain())
found = jax.jit(loss)((jax.device_put(parts[0].astype("f4"), over), parts[1]), jax.device_put(y, over))
np.testing.assert_allclose(found, log_loss(Chain(), parts, y)[0], rtol=1e-5)
print(len(jax.devices()))
"""
    own = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-P", "-c", program], env=own, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2"], done.stderr


def refuse(*_, **__):
    raise RuntimeError("this version is not supported")


@pytest.fixture
def serve():
    """Have a function of a test stand for each text."""
    foreign.can_call([np.ones(3, np.float32)])
    before = foreign.serve(None)
    yield lambda function: foreign.serve(lambda text: function)
    foreign.serve(before)


def call(text=""):
    x = np.ones(3, np.float32)
    return jax.block_until_ready(foreign.results_of(text, [jax.ShapeDtypeStruct(x.shape, x.dtype)], [x]))


def test_what_a_function_may_not_do(serve):
    kept = []
    for function, message in (
        (lambda arrays: kept.extend(arrays) or arrays, "a loss kept its arrays"),
        (lambda arrays: [], "returned 0 arrays instead of 1"),
        (lambda arrays: [arrays[0].astype(np.float64)], "returned an array of float64"),
        (lambda arrays: [arrays[0][:2]], r"returned an array of float32 \(2,\)"),
    ):
        serve(function)
        with pytest.raises(Exception, match=message):
            call()
    serve(lambda arrays: [2 * arrays[0]])
    np.testing.assert_array_equal(call()[0], 2 * np.ones(3))


def test_a_text_that_is_none_is_refused():
    foreign.can_call([np.ones(3, np.float32)])
    with pytest.raises(Exception, match="Error: "):
        call("no text")


def test_an_error_whose_message_fails_is_one(monkeypatch, serve):
    """Else the program would take what stands in its memory for results."""

    def refused(*_):
        raise MemoryError

    serve(refused)
    monkeypatch.setattr("traceback.format_exception", refused)
    with pytest.raises(Exception, match="a loss failed, and so did the message of its error"):
        call()


class Stop(BaseException):
    """Raised by handlers of signals, as deadlines are by some."""


STOPS = (KeyboardInterrupt, SystemExit, Stop)


@pytest.fixture(params=STOPS)
def interrupted(request, serve):
    """The threads of calls, the second of which is interrupted, and by what; the first is asked for its thread."""
    calls, shape = [], [jax.ShapeDtypeStruct((3,), np.float32)]

    def handler(*_):
        raise request.param("now")

    def doubled(arrays):
        calls.append(threading.current_thread())
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
            calls.append("the rest of the call")
        return [2 * arrays[0]]

    serve(doubled)
    jax.block_until_ready(jax.jit(lambda x: foreign.results_of("", shape, [x])[0])(np.ones(3, np.float32)))
    if calls[0] is not threading.main_thread():
        pytest.skip("this JAX runs small programs in threads of its own")
    before = signal.signal(signal.SIGINT, handler)
    yield calls, request.param, lambda x: foreign.results_of("", shape, [x])[0]
    signal.signal(signal.SIGINT, before)


def compiled(calls, program):
    """A program that was called once, so that no Python of JAX's is between it and a test."""
    calls[1:] = [None, None]
    jax.block_until_ready(program(np.ones(3, np.float32)))
    del calls[1:]
    return program


def test_ctrl_c_interrupts_what_called_the_program(interrupted):
    calls, error, loss = interrupted
    program, x = compiled(calls, jax.jit(loss)), np.ones(3, np.float32)
    with pytest.raises(error, match="now"):
        calls.append(program(x))  # not even this
    assert len(calls) == 2
    np.testing.assert_array_equal(program(x), 2 * x)  # it comes once


def test_ctrl_c_ends_a_program_of_many_calls(interrupted):
    calls, error, loss = interrupted
    several = [jax.jit(lambda x, n=n: jax.lax.scan(lambda y, _: (loss(y) / 2, 0), x, length=n)[0]) for n in (50, 2000)]
    few, many = (compiled(calls, program) for program in several)
    x, raised = np.ones(3, np.float32), None
    with pytest.raises(error, match="now"):
        calls.append(few(x))
    assert len(calls) == 2
    del calls[1:]
    try:
        try:
            many(x)
        except Exception as found:
            raised = found
        for _ in range(100):  # soon
            calls.append(None)
    except error:
        pass
    assert "interrupted in an earlier call" in str(raised) and len(calls) < 10


def test_ctrl_c_is_not_swallowed_by_a_callback_of_the_same_program(interrupted):
    calls, error, loss = interrupted
    seen = []

    def look(x):
        for _ in range(100):
            seen.append(np.isnan(x).all())
        return np.asarray(x)

    program = jax.jit(lambda x: jax.pure_callback(look, jax.ShapeDtypeStruct((3,), np.float32), loss(x)))
    with pytest.raises(error, match="now"):
        program(np.ones(3, np.float32))
    assert seen == 100 * [True] and len(calls) == 2


def test_ctrl_c_while_the_message_of_an_error_is_made(monkeypatch, interrupted):
    calls, error, loss = interrupted
    foreign.serve(None)  # the call fails
    monkeypatch.setattr("traceback.format_exception", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(error, match="now"):
        jax.jit(loss)(np.ones(3, np.float32))
    assert len(calls) == 1


def test_ctrl_c_where_python_is_not_called(called):
    function = jax.jit(differentiable(log_loss, Chain()))
    wanted = jax.block_until_ready(function(EDGES, Y, LENGTHS))
    seen = []

    def interrupt():
        if not seen:
            seen.append(threading.current_thread())
            raise KeyboardInterrupt

    raised = False
    look_every(1, interrupt)
    try:
        jax.block_until_ready(function(EDGES, Y, LENGTHS))
    except KeyboardInterrupt:
        raised = True
    except Exception:
        raised = False
    finally:
        look_every()
    if seen != [threading.main_thread()]:
        pytest.skip("this JAX runs small programs in threads of its own")
    assert raised and not called
    equal(function(EDGES, Y, LENGTHS), wanted)


def test_programs_are_stored_for_other_processes(tmp_path):
    """Their texts are the same in each; what this one has made of them is forgotten here."""
    compilation_cache = pytest.importorskip("jax.experimental.compilation_cache.compilation_cache")
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = [getattr(jax.config, name) for name in names]
    batch = parts_of((3, 4, 5), (5, 5)), labels((3, 4, 5))

    def compiled():
        jax.clear_caches()
        binding.function_of.cache_clear()
        found = [jax.jit(differentiable(loss, Chain()))(*batch) for loss in (log_loss, hinge)]
        return found, sorted(path.name for path in tmp_path.iterdir() if path.name.endswith("-cache"))

    try:
        for name, value in zip(names, (str(tmp_path), 0.0), strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        found, stored = compiled()
        again, after = compiled()
    finally:
        for name, value in zip(names, before, strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()
    assert stored and after == stored
    equal(again, found)


def test_nothing_is_kept_of_functions_that_are_gone():
    """Functions, and forms of batches, however many a process makes."""
    made = []
    for n in range(1, 6):
        for _ in range(2):
            batch = parts_of((n, 2, 3), (3, 3)), np.zeros((n, 2), int)
            jax.block_until_ready(jax.jit(differentiable(perturbed, Chain(), n_samples=1))(*batch))
            made.append(binding.function_of.cache_info())
    assert len({info.currsize for info in made}) == 1 and made[0].maxsize is not None
    assert made[-1].misses == made[0].misses and made[-1].hits >= made[0].hits + 9


@pytest.mark.parametrize(
    "structure",
    [
        Chain(order=2, n_threads=3), SemiMarkov(n_threads=2), Spans(), Projective(several_roots=True), Arborescence(),
        Alignment("local"), Assignment(), Ordering(), LabelSets(3), LabelSets(3, [(0, 1)]), Chain(order=np.int64(2)),
    ],
    ids=lambda structure: type(structure).__name__,
)  # fmt: skip
def test_a_text_says_all_of_a_structure(structure):
    form = jax.tree.structure(((0, None, 0), 0, None, {"cost": 0}))
    text = binding.text_of(hinge, structure, {}, form)
    made_by, loss, name, arguments, options, places = literal_eval(text)
    assert made_by == binding.FORMAT
    again = getattr(structsvm.layers, name)(**arguments)
    assert (loss, options, places) == ("hinge", {}, ((0, None, 1), 2, None, {"cost": 3}))
    assert type(again) is type(structure) and binding.text_of(hinge, again, {}, form) == text
    assert vars(again).keys() == vars(structure).keys()
    assert all(value == getattr(structure, own) for own, value in vars(again).items() if isinstance(value, int | str))


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no text")


def test_numbers_of_numpy_are_those_of_python(monkeypatch):
    made, own = [], binding.text_of
    monkeypatch.setattr(binding, "text_of", lambda *given: made.append(own(*given)) or made[-1])
    case = perturbed, Chain(), EDGES, Y, LENGTHS
    found = [both(*case, sigma=sigma, n_samples=n) for sigma, n in ((0.5, 5), (np.float64(0.5), np.int64(5)))]
    assert made[-1] is not None and len(set(made)) == 1
    equal(*found)
    equal(found[1], by_callback(monkeypatch, lambda: both(*case, sigma=np.float64(0.5), n_samples=np.int64(5))))


def test_a_text_of_another_version_says_so():
    form = jax.tree.structure((EDGES, Y, LENGTHS, {}))
    text = binding.text_of(log_loss, Chain(), {}, form)
    for other in (text.replace("(1,", "(2,", 1), text.replace("log_loss", "no_loss"), text.replace("(1, ", "(", 1)):
        with pytest.raises(RuntimeError, match="another version of structsvm: compile it again"):
            binding.function_of(other)


def test_what_is_no_name_and_no_number_has_no_text():
    form = jax.tree.structure((EDGES, Y, LENGTHS, {}))
    for structure, options in (
        (Chain(), {"cost": np.ones(SIZE)}),
        (Chain(language=label_language(["a", "b"], "at_most_once(a)")), {}),
        (Solver(np.sign), {}),
        (LabelSets(4000, [(k, k + 1) for k in range(3999)]), {}),
        (Chain(), {"seed": 10**5000}),
        (Chain(), {"cost": [0.5] * 10000}),
        (Chain(), {"cost": Unspeakable()}),
    ):
        assert binding.text_of(hinge, structure, options, form) is None
    found = jax.jit(differentiable(hinge, Chain(), cost=np.ones(SIZE, "f4")))(EDGES, Y, LENGTHS)
    np.testing.assert_allclose(found, hinge(Chain(), EDGES, Y, LENGTHS, cost=np.ones(SIZE, "f4"))[0], rtol=1e-5)


def test_an_error_without_python_is_one_in_any_thread():
    """In XLA's own threads, where it is gone when Python is entered again: the function is called, which has it too."""

    def fail():
        threads.append(threading.current_thread() is threading.main_thread())
        raise MemoryError("no more")

    loss, threads, more = differentiable(log_loss, Chain()), [], np.ones((400, 400), np.float32)
    program = jax.jit(
        lambda scores, more: loss((scores + 0 * jnp.tanh(more @ more).sum(), EDGES[1]), Y.astype(np.int32))
    )
    jax.block_until_ready(program(EDGES[0], more))
    look_every(1, fail)
    try:
        with pytest.raises(Exception, match="no more"):
            jax.block_until_ready(program(EDGES[0], more))
    finally:
        look_every()
    assert threads


class Arrays(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("n", ctypes.c_int64),
                ("kinds", ctypes.c_void_p), ("items", ctypes.c_void_p)]  # fmt: skip


class Attributes(ctypes.Structure):
    _fields_ = [*Arrays._fields_[:-1], ("names", ctypes.c_void_p), ("items", ctypes.c_void_p)]


class Failure(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("message", ctypes.c_char_p),
                ("code", ctypes.c_int)]  # fmt: skip


FAIL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Failure))


class Functions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("version_size", ctypes.c_size_t),
                ("version_extensions", ctypes.c_void_p), ("major", ctypes.c_int), ("minor", ctypes.c_int),
                ("internal", ctypes.c_void_p), ("fail", FAIL)]  # fmt: skip


class Call(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("functions", ctypes.POINTER(Functions)),
                ("context", ctypes.c_void_p), ("stage", ctypes.c_int), ("arguments", Arrays), ("results", Arrays),
                ("attributes", Attributes)]  # fmt: skip


class Array(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("type", ctypes.c_int),
                ("data", ctypes.c_void_p), ("n_axes", ctypes.c_int64), ("shape", ctypes.c_void_p)]  # fmt: skip


class Text(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Answer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p),
                ("major", ctypes.c_int), ("minor", ctypes.c_int), ("traits", ctypes.c_uint32)]  # fmt: skip


class Question(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("next", ctypes.c_void_p),
                ("answer", ctypes.POINTER(Answer))]  # fmt: skip


class Scalar(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.c_void_p)]


class OneCall:
    """A call with one array of three floats, one for its result, and the text of a function that doubles it."""

    def __init__(self):
        self.said, self.x, self.found = [], np.ones(3, np.float32), np.zeros(3, np.float32)
        self.fail = FAIL(lambda failure: self.said.append(failure.contents.message.decode()) or 1)
        self.functions = Functions(ctypes.sizeof(Functions), None, 24, None, 0, 3, None, self.fail)
        self.shape = ctypes.c_int64(3)
        of_shape = ctypes.addressof(self.shape)
        self.arrays = [
            Array(ctypes.sizeof(Array), None, 11, own.ctypes.data, 1, of_shape) for own in (self.x, self.found)
        ]
        self.text, self.quick = Text(b"doubled, and more", 7), ctypes.c_int64(0)
        self.scalar = Scalar(5, ctypes.addressof(self.quick))
        self.names = [Text(b"function", 8), Text(b"quick", 5)]
        self.call = Call(ctypes.sizeof(Call), None, ctypes.pointer(self.functions), None, 3)
        items = [[self.arrays[0]], [self.arrays[1]], [self.text, self.scalar]]
        self.kinds = [(ctypes.c_int * len(kinds))(*kinds) for kinds in ((1,), (1,), (4, 3))]
        self.items = [(ctypes.c_void_p * len(own))(*map(ctypes.addressof, own)) for own in items]
        self.of_names = (ctypes.c_void_p * 2)(*map(ctypes.addressof, self.names))
        for k, own in enumerate((self.call.arguments, self.call.results, self.call.attributes)):
            own.size, own.n = ctypes.sizeof(own), len(items[k])
            own.kinds, own.items = ctypes.addressof(self.kinds[k]), ctypes.addressof(self.items[k])
        self.call.attributes.names = ctypes.addressof(self.of_names)

    def answer(self, version=_foreign.VERSIONS[0]):
        place = ctypes.pythonapi.PyCapsule_GetPointer
        place.restype, place.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        handle = place(_foreign.handler(version), None)
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Call))(handle)(ctypes.pointer(self.call))


@pytest.fixture
def one(serve):
    names = []
    before = foreign.serve(lambda text: names.append(text) or (lambda arrays: [2 * arrays[0]]))
    found = OneCall()
    found.made = names
    yield found
    foreign.serve(before)


def test_a_call_of_the_known_layout_is_answered(one):
    assert one.answer() is None and one.said == []
    assert one.found.tolist() == [2.0, 2.0, 2.0] and one.made == ["doubled"]


@pytest.mark.parametrize("n", [0, 1])
def test_a_call_that_says_quick_and_is_no_chain_is_one_of_python(one, n):
    one.quick.value, one.call.arguments.n = 1, n
    assert (one.answer() is None) == (n == 1) and one.made == ["doubled"]
    assert one.found.tolist() == [2.0 * n] * 3


def test_each_handler_says_its_own_version(one):
    for versions in (_foreign.VERSIONS, _foreign.VERSIONS[::-1]):
        handlers = [_foreign.handler(version) for version in versions]
        for version in versions:
            answer = Answer(ctypes.sizeof(Answer), 24, None, 7, 7, 0)
            question = Question(ctypes.sizeof(Question), 1, None, ctypes.pointer(answer))
            one.call.extensions = ctypes.addressof(question)
            assert one.answer(version) is None and (answer.major, answer.minor) == (0, version)
        del handlers
    assert one.made == []


@pytest.mark.parametrize(
    "change",
    [
        lambda one: setattr(one.call, "size", one.call.size - 8),
        lambda one: setattr(one.call, "stage", 1),
        lambda one: setattr(one.call.arguments, "size", 48),
        lambda one: setattr(one.call.results, "size", 32),
        lambda one: setattr(one.call.attributes, "size", 56),
        lambda one: setattr(one.functions, "major", 1),
        lambda one: setattr(one.call.attributes, "n", 0),
        lambda one: setattr(one.call.attributes, "n", 1),
        lambda one: setattr(one.names[0], "size", 7),
        lambda one: setattr(one.names[1], "start", b"quiet"),
        lambda one: setattr(one.scalar, "type", 4),
        lambda one: one.kinds[2].__setitem__(0, 3),
        lambda one: one.kinds[2].__setitem__(1, 1),
        lambda one: one.kinds[0].__setitem__(0, 2),
        lambda one: setattr(one.arrays[1], "size", 40),
    ],
    ids=["size", "stage", "arguments", "results", "attributes", "major version", "no attribute", "one attribute",
         "size of a name", "name", "type of the attribute", "kind of the text", "kind of the attribute",
         "kind of an argument", "size of a result"],
)  # fmt: skip
def test_a_call_of_another_layout_is_refused(change, one):
    change(one)
    assert one.answer() == 1 and one.found.tolist() == [0.0, 0.0, 0.0]
    assert one.said == ["XLA called structsvm by a version of its interface that structsvm does not know"]
