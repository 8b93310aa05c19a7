"""structsvm's side: NumPy in, NumPy out."""

from __future__ import annotations

import inspect
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from layers.timing import answer, bind, scores, timed
from structsvm import layers

# Seconds that one process waits for the other.
PATIENCE = 600


def program(case, threads):
    """Return the function that is timed for a case, None without threads of its own."""
    kind = getattr(layers, case["structure"])
    options = {"n_threads": threads} if "n_threads" in inspect.signature(kind).parameters else {}
    if threads > 1 and not options:
        return None
    structure, parts = kind(**options), scores(case)
    if case["action"] == "decode":
        return lambda: structure.argmax(*parts)
    if case["action"] == "sample":
        return lambda: structure.sample(*parts, n_samples=case["samples"], seed=0)
    y = structure.sample(*parts, n_samples=1, seed=0)[:, 0]
    return lambda: layers.log_loss(structure, parts, y)


def at_once(request):
    """The milliseconds of each case by a process while another one does the same: those of the slower one."""
    context = get_context("spawn")
    barrier, numbers = context.Barrier(2, timeout=PATIENCE), context.Queue()
    for number in range(2):
        numbers.put(number)
    with ProcessPoolExecutor(2, context, begin, (barrier, numbers)) as pool:
        pairs = [[pool.submit(beside, case, request) for _ in range(2)] for case in request["cases"]]
        return [max(one.result() for one in pair) for pair in pairs]


def begin(barrier, numbers):
    """Give a process a processor of its own."""
    beside.barrier = barrier
    bind(numbers.get(), 1)


def beside(case, request):
    """The milliseconds of a case, once the other process has reached it, too."""
    action = program(case, 1)
    action()
    beside.barrier.wait()
    return timed(case, lambda *_: action, request)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    if asked.get("at_once"):
        print(json.dumps(at_once(asked)))
    else:
        answer(sys.argv[1], program)
