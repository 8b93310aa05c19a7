"""Ctrl-C within a batch, batches in threads, and in a process that was forked off one with threads."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from structsvm.execution._stop import look_every, looks
from structsvm.layers import Alignment, Arborescence, Chain, Projective, SemiMarkov, Spans, log_loss
from structsvm.layers._spans import Brackets
from structsvm.layers._trees import Batch
from structsvm.layers.structure import over_batch

# Large batches: a structure, and the shapes of its parts.
LONG = {
    "chains": (Chain, [(64, 1500, 120), (120, 120)]),
    "chains of their own": (Chain, [(8, 600, 60), (8, 599, 60, 60)]),
    "segments": (SemiMarkov, [(24, 300, 40, 30), (30, 30)]),
    "brackets": (Spans, [(6, 90, 90, 30), (30, 30, 30)]),
    "projective trees": (Projective, [(24, 221, 221)]),
    "trees": (Arborescence, [(60, 301, 301)]),
    "alignments": (Alignment, [(12, 400, 400)]),
    "short chains": (Chain, [(20000, 5, 60), (60, 60)]),
    "short trees": (Arborescence, [(100000, 4, 4)]),
}
SHORT = {
    "chains": (Chain, [(3000, 3, 5), (5, 5)]),
    "chains of their own": (Chain, [(3000, 3, 5), (3000, 2, 5, 5)]),
    "segments": (SemiMarkov, [(3000, 3, 2, 3), (3, 3)]),
    "brackets": (Spans, [(3000, 3, 3, 2)]),
    "projective trees": (Projective, [(3000, 4, 4)]),
    "trees": (Arborescence, [(3000, 4, 4)]),
    "alignments": (Alignment, [(3000, 3, 3)]),
}
SMALL = {
    "chains": (Chain, [(9, 12, 4), (4, 4)]),
    "segments": (SemiMarkov, [(5, 9, 4, 3), (3, 3)]),
    "brackets": (Spans, [(5, 8, 8, 3), (3, 3, 3)]),
    "projective trees": (Projective, [(7, 9, 9)]),
    "trees": (Arborescence, [(7, 9, 9)]),
    "alignments": (Alignment, [(7, 9, 8)]),
}


def parts_of(shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


@pytest.fixture
def interrupt():
    """Raise KeyboardInterrupt, as Ctrl-C does, once something has been done again and again for so many seconds."""

    def after(seconds, action):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            action()

    def raised(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raised)
    yield after
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def watched():
    """Call a function each time that so much work was done."""
    yield look_every
    look_every()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_a_batch_and_nothing_else(name, n_threads, interrupt, watched):
    kind, shapes = LONG[name]
    structure, parts, before = kind(n_threads=n_threads), parts_of(shapes), looks()
    watched(1 << 17)
    structure.marginals(*parts)
    assert looks() > before
    with pytest.raises(KeyboardInterrupt):
        interrupt(0.02, lambda: structure.marginals(*parts))
    few = [part[:1] if len(part) == len(parts[0]) and part.ndim > 2 else part for part in parts]
    few[0] = few[0][:, :9] if kind in (Chain, SemiMarkov) else few[0][:, :9, :9]
    if few[-1].ndim == 4 and kind is Chain:
        few[-1] = few[-1][:, :8]
    fresh = kind().marginals(*few)
    assert all((a == b).all() for a, b in zip(structure.marginals(*few), fresh, strict=True))


@pytest.mark.parametrize("verb", ["marginals", "log_partition", "argmax"])
@pytest.mark.parametrize("name", SHORT)
def test_batches_of_short_entries_look_up(name, verb, watched):
    kind, shapes = SHORT[name]
    parts, seen = parts_of(shapes), []
    watched(1000, lambda: seen.append(1))
    getattr(kind(), verb)(*parts)
    assert len(seen) > 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SHORT)
def test_another_thread_writes_to_what_was_checked(name, dtype, watched):
    """Compiled code has copies of y and of lengths: without, it would write to places that y gives beyond arrays."""
    kind, shapes = SHORT[name]
    structure, parts = kind(), [part.astype(dtype) for part in parts_of(shapes)]
    y, lengths = structure.argmax(*parts), np.full(3000, 3)
    if kind is Alignment:
        lengths = np.full((3000, 2), 3)
    wanted, gradients = log_loss(structure, parts, y, lengths)
    written = []

    def write():
        y[:], lengths[:] = y[::-1].copy(), 1
        written.append(1)

    watched(100, write)
    found, others = log_loss(structure, parts, y, lengths)
    assert written
    assert found.tolist() == wanted.tolist()
    assert all((a == b).all() for a, b in zip(others, gradients, strict=True))


@pytest.mark.parametrize("kind", [Projective, Arborescence])
def test_trees_do_not_wait_for_the_end_of_a_batch(kind, interrupt):
    arcs, lengths = parts_of([(60, 301, 301)])[0], np.full(60, 300)
    log_z, chances = np.empty(60), np.zeros_like(arcs)

    def summed():
        log_z[:] = np.nan
        Batch(arcs, lengths, kind is Projective, False).sums(1, log_z, chances)

    with pytest.raises(KeyboardInterrupt):
        interrupt(0.02, summed)
    assert np.isnan(log_z[-1])


def test_samples_of_a_short_sentence_do_not_wait_for_the_last_one(interrupt):
    scores = parts_of([(1, 4, 4, 2)])[0]
    log_z, y = np.zeros(1), np.empty((1, 400_000, 4, 4), np.int32)

    def drawn():
        y[:] = -1
        Brackets(scores, (), np.array([4])).draws(0, 1, [np.random.default_rng(0)], log_z, y)

    with pytest.raises(KeyboardInterrupt):
        interrupt(0.1, drawn)
    assert (y[0, -1] == -1).all()


@pytest.mark.parametrize("name", SMALL)
def test_threads_and_neighbours_change_no_bit(name):
    kind, shapes = SMALL[name]
    parts = parts_of(shapes)
    alone = kind()
    y = alone.argmax(*parts)
    values, gradients = log_loss(alone, parts, y, per_entry=True)
    for n_threads in (2, 5):
        others, of_threads = log_loss(kind(n_threads=n_threads), parts, y, per_entry=True)
        assert others.tolist() == values.tolist()
        assert all((a == b).all() for a, b in zip(of_threads, gradients, strict=True))
    one = log_loss(alone, [parts[0][2:3], *parts[1:]], y[2:3])[0]
    assert one == pytest.approx(values[2:3], rel=1e-6)


FORKED = """
import ctypes
import os
import time
import numpy as np
from structsvm.layers import Chain
rng = np.random.default_rng(0)
parts, structure = (rng.normal(size=(90, 200, 9)), rng.normal(size=(9, 9))), Chain(n_threads=3)
wanted = structure.log_partition(*parts)  # starts threads, which a child has not
time.sleep(0.2)  # they may wait for the GIL, which Python's own fork alone sees to
child = FORK()
if child == 0:
    right, tasks = structure.log_partition(*parts).tolist() == wanted.tolist(), "/proc/self/task"
    os._exit(0 if right and (not os.path.isdir(tasks) or len(os.listdir(tasks)) > 1) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("fork", ["os.fork", "ctypes.PyDLL(None).fork"])
def test_a_forked_process_has_threads_of_its_own(fork):
    """In a process of its own: others' threads, such as JAX's, are none of its business. C forks, too."""
    forked = FORKED.replace("FORK", fork)
    done = subprocess.run([sys.executable, "-P", "-c", forked], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["0"], done.stderr


REPLACED = """
import _thread
import threading
from structsvm.layers.structure import over_batch
_thread.start_new_thread = lambda function, arguments: None  # such as a greenlet, which runs when others wait
meeting = threading.Barrier(2)
print(len(over_batch(2, 2, lambda first, last: meeting.wait(30))))
"""


def test_threads_are_started_where_a_library_replaces_those_of_python():
    done = subprocess.run([sys.executable, "-P", "-c", REPLACED], capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr


REFUSED = """
import threading
from structsvm.layers.structure import over_batch
threading.stack_size(1 << 47)  # more than there are addresses
found = [over_batch(4, 3, lambda first, last: (first, last)) for _ in range(2)]
threading.stack_size(0)
meeting = threading.Barrier(2)
print(found[0], found[0] == found[1], len(over_batch(2, 2, lambda first, last: meeting.wait(30))))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit of addresses that is known")
def test_without_another_thread_the_own_one_does_all():
    done = subprocess.run([sys.executable, "-P", "-c", REFUSED], capture_output=True, text=True, timeout=90, check=True)
    assert done.stdout.strip() == "[(0, 1), (1, 2), (2, 4)] True 2"


MANY = """
import os
import numpy as np
from structsvm.layers import Chain
Chain(n_threads=900).log_partition(np.zeros((1200, 400, 9)), np.zeros((9, 9)))
print(len(os.listdir("/proc/self/task")) <= 1 + max(8, 4 * os.cpu_count()))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts the threads of the process")
def test_a_process_has_few_threads_however_many_are_asked_for():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", MANY], capture_output=True, text=True, timeout=90, check=True, env=environment
    )
    assert done.stdout.strip() == "True"


FORKING = """
import os
import signal
import time
import numpy as np
from structsvm.execution._stop import each_range, look_every
from structsvm.layers import Chain
children, parts = [], (np.zeros((1, 60, 20)), np.zeros((20, 20)))

def fork(*_):
    if not children:
        children.append(os.fork())
        if not children[0]:
            signal.alarm(60)

def work(first, last):
    for _ in range(2000):
        if children:
            break
        Chain().log_partition(*parts)
        time.sleep(0.001)
    time.sleep(0.1)  # the other thread is at work when the process is forked
    return first

signal.signal(signal.SIGALRM, fork)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    each_range(work, [0, 1, 2], 2)
except RuntimeError as error:
    print(error, flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_a_handler_forks_at_work_says_that_it_lacks_threads():
    done = subprocess.run([sys.executable, "-P", "-c", FORKING], capture_output=True, text=True, timeout=120)
    assert "a signal's handler forked the process" in done.stdout, done.stderr
    assert done.stdout.split()[-1] == "3"


def met(places, last):
    """Wait until so many threads are at it: they then are others."""
    places.wait(10)
    return threading.get_ident(), last


def test_parts_are_shared_among_threads_and_come_in_order():
    meeting = threading.Barrier(3)
    found = over_batch(9, 3, lambda _, last: met(meeting, last))
    assert [last for _, last in found] == [3, 6, 9]
    assert len({thread for thread, _ in found}) == 3


@pytest.mark.parametrize("entry", [0, 8])
def test_an_error_of_any_thread_is_raised_and_leaves_the_threads(entry):
    meeting = threading.Barrier(3)

    def failing(first, last):
        met(meeting, last)
        if first <= entry < last:
            raise LookupError(f"entry {entry}")

    with pytest.raises(LookupError, match=f"entry {entry}"):
        over_batch(9, 3, failing)
    assert over_batch(4, 2, lambda first, last: (first, last)) == [(0, 2), (2, 4)]


def test_an_interrupt_stops_the_other_threads(interrupt):
    """Each of them counts its work, as kernels do: it would go on for minutes."""
    ended = []

    def work(first, last):
        try:
            for _ in range(3000):
                Chain().log_partition(*parts_of([(1, 900, 60), (60, 60)]))
        finally:
            ended.append(first)

    with pytest.raises(KeyboardInterrupt):
        interrupt(0.1, lambda: over_batch(2, 2, work))
    assert sorted(ended) == [0, 1]


def test_batches_of_several_threads_at_once():
    """Each asks for helpers: those that come to one's parts are not there for another's."""
    parts = parts_of([(40, 60, 12), (12, 12)])
    alone = Chain().log_partition(*parts).tolist()
    with ThreadPoolExecutor(4) as others:
        batches = [others.submit(Chain(n_threads=3).log_partition, *parts) for _ in range(40)]
    assert all(batch.result().tolist() == alone for batch in batches)


def test_batches_within_parts_of_a_batch():
    parts = parts_of([(40, 60, 12), (12, 12)])
    alone = Chain().log_partition(*parts).tolist()
    found = over_batch(4, 4, lambda first, last: Chain(n_threads=3).log_partition(*parts).tolist())
    assert found == [alone] * 4
