"""An oracle in plain Python whose argmax takes a millisecond, asleep or busy.

A busy one does a fixed amount of work, so that two at once take twice as long on one core.
"""

from __future__ import annotations

import time

import numpy as np

from structsvm import Oracle

MILLISECOND = 1e-3
N_CLASSES, N_INPUTS = 5, 20


class SlowOracle(Oracle):
    """Classes: Psi(x, y) puts x into block y; the loss is 0 or 1.

    Parameters
    ----------
    loops : int
        Argument of `spin` in each call; 0: sleep for a millisecond.
    """

    n_features = N_CLASSES * N_INPUTS

    def __init__(self, loops=0):
        self.loops = loops

    def joint_feature(self, x, y):
        return np.arange(y * N_INPUTS, (y + 1) * N_INPUTS, dtype=np.int32), x

    def loss(self, y_true, y):
        return float(y != y_true)

    def argmax(self, x, w, y_true=None, rescaling=None):
        if self.loops:
            spin(self.loops)
        else:
            time.sleep(MILLISECOND)
        score = w.reshape(N_CLASSES, N_INPUTS) @ x
        if y_true is not None:
            score = score + (np.arange(N_CLASSES) != y_true)
        return int(score.argmax())


def spin(loops):
    """Work without releasing the interpreter."""
    total = 0
    for k in range(loops):
        total += k
    return total


def loops_in_a_millisecond():
    """Number of loops that `spin` does in a millisecond of CPU time on this machine."""
    loops, seconds = 100_000, []
    for _ in range(5):
        begin = time.thread_time()
        spin(loops)
        seconds.append(time.thread_time() - begin)
    return max(int(loops * MILLISECOND / min(seconds)), 1)


def examples(n, seed=0):
    """Inputs around one centre per class; the classes overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n)
    X = rng.normal(size=(N_CLASSES, N_INPUTS))[y] + 2.0 * rng.normal(size=(n, N_INPUTS))
    return list(X), y.tolist()
