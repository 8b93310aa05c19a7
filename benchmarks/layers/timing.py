"""Scores of a case, and the time of what is done with them. Programs that do not have structsvm import it, too."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback

import numpy as np

LEAST = 0.2  # seconds that a case is repeated, at least


def answer(argument, program):
    """Print the wall milliseconds of each case, None for what the program does not have."""
    request = json.loads(argument)
    bind(0, request["threads"])
    print(json.dumps([timed(case, program, request) for case in request["cases"]]))


def bind(first, several):
    """Bind the process to so many processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[first:][:several])


def timed(case, program, request):
    """The best of the repeats, after one that does not count."""
    try:
        action = program(case, request["threads"])
        if action is None:
            return None
        action()
    # Another program's limits, and those of memory.
    except (RuntimeError, ValueError, AssertionError, ImportError, NotImplementedError, MemoryError):
        print(case, traceback.format_exc(limit=-1), file=sys.stderr)
        return None
    best, began, runs = float("inf"), time.perf_counter(), 0
    gc.collect()
    while runs < request["repeat"] or (request["repeat"] > 1 and time.perf_counter() - began < LEAST):
        start = time.perf_counter()
        action()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return 1e3 * best


def scores(case):
    """Float32 scores of the parts, in structsvm's shapes."""
    rng = np.random.default_rng(0)
    B, T, K = case["batch"], case["size"], case["labels"]
    shapes = {
        "Chain": ((B, T, K), (K, K), (K,), (K,)),
        "Projective": ((B, T + 1, T + 1),),
        "Arborescence": ((B, T + 1, T + 1),),
        "Alignment": ((B, T, T),),
        "SemiMarkov": ((B, T, case["longest"], K), (K, K)),
        "Spans": ((B, T, T, K),),
    }
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes[case["structure"]]]


def labels(case):
    """Random labels of a chain (B, T)."""
    return np.random.default_rng(1).integers(case["labels"], size=(case["batch"], case["size"]))
