"""Workers that train one model and exchange changes of w alone: each owns the alphas of its sequences (CoCoA+).

From the same w every worker solves its part of the dual as if the others would step likewise: for the change A d of w,
d = alpha - alpha before, it maximises

    sum_i d_i b_i - <w, A d> - sigma / 2 |A d|^2,

which, divided by sigma, is the dual of losses b / sigma from the weights w / sigma on. For K workers sigma = K is safe:
the sum of all changes raises the dual. The sum is taken as far as an exact line search says, and sigma follows it.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from common.measure import peak
from structsvm import LaRank, SequenceShards
from structsvm.dual._dual import DualState
from structsvm.oracles.viterbi import ViterbiOracle

C = 0.1
FACTOR = 1.2  # of sigma, after each exchange
NOTHING = np.zeros(0, np.int32), np.zeros(0, np.float32)


class Member:
    """A worker.

    Parameters
    ----------
    folder : path
        Of `SequenceShards`; the worker maps its part of the files.
    bounds : list of int
        Ends of its parts, of which it visits one per exchange.
    """

    def __init__(self, folder, bounds):
        shards = SequenceShards.open(folder)
        offsets = shards.tokens.offsets
        self.tokens = [shards.tokens[a:b] for a, b in pairwise(bounds)]
        self.label_ids = [shards.label_ids[offsets[a] : offsets[b]] for a, b in pairwise(bounds)]
        self.n_labels = len(shards.labels)
        self.w = np.zeros(self.problem(0).n_features, dtype=np.float32)
        self.start, self.moved = np.empty_like(self.w), np.empty_like(self.w)
        self.sum, self.n_summed = None, 0
        self.found = [None for _ in self.tokens]  # constraints and alphas of each part
        self.before = self.last = None

    def problem(self, part, sigma=1.0):
        tokens = self.tokens[part]
        oracle = ViterbiOracle(self.n_labels, tokens.n_features, label_costs=np.full(self.n_labels, 1.0 / sigma))
        return oracle.bind(tokens, self.label_ids[part])

    def turn(self, part, sigma, share, change):
        """Keep a share of the last turn, apply all workers' change of w, and do a pass over a part.

        Returns
        -------
        change : (indices, values)
            A d.
        slope : float
            Of the dual objective along it at w.
        cpu : float
            Seconds.
        """
        begin = time.process_time()
        self.keep(share, *change)
        problem = self.problem(part, sigma)
        solver = LaRank(C=C, max_iter=1, average=False)
        state = DualState(problem, np.full(problem.n_samples, C), seed=part)
        before = self.found[part]
        if before is not None:
            state.set_state(scaled(before, 1.0 / sigma))
        state.weights[:] = np.divide(self.w, np.float32(sigma), out=self.start)
        schedule = solver.schedule_on(state, None, None)
        schedule.start_pass()
        schedule.run(np.inf)
        found = scaled(state.get_state(), sigma)
        self.found[part], self.before, self.last = found, before, part
        moved = np.subtract(state.weights, self.start, out=self.moved)
        indices = np.flatnonzero(moved).astype(np.int32)
        moved = moved[indices]
        slope = linear(found) - linear(before) - float(self.w[indices].astype(float) @ moved)
        return (indices, moved), slope, time.process_time() - begin

    def keep(self, share, indices, values):
        """As in `turn`."""
        if share < 1.0:
            self.found[self.last] = blend(self.before, self.found[self.last], share)
        self.w[indices] += values
        if self.sum is not None and len(indices):
            self.sum += self.w
            self.n_summed += 1

    def average(self):
        """The average of w since the last call, if there was one."""
        mean = self.w if self.sum is None else self.sum / max(self.n_summed, 1)
        self.sum, self.n_summed = np.zeros_like(self.w), 0
        return mean

    def dual_parts(self):
        """The sum of alpha b and that of alpha psi, exactly; bytes of constraints; the peak of memory in MB."""
        exact, size = np.zeros(len(self.w)), 0
        for part, found in enumerate(self.found):
            problem = self.problem(part)
            state = DualState(problem, np.full(problem.n_samples, C))
            state.set_state(found)
            exact += state.weights
            size += sum(array.nbytes for array in found.values())
        return sum(map(linear, self.found)), exact, size, peak()


class Exchanges:
    """The side of the client.

    Parameters
    ----------
    members : list
        Objects with the methods of `Member`.
    n_features : int
    n_parts : int
        Exchanges per pass.
    wait : callable
        The results of what all members' methods return.
    """

    def __init__(self, members, n_features, n_parts, wait=list):
        self.members, self.n_features, self.n_parts, self.wait = members, n_features, n_parts, wait
        self.dual, self.sigma = 0.0, float(len(members))
        self.message = 1.0, NOTHING
        self.log = []

    def run_pass(self):
        """Visit all sequences once; a row of `log` per exchange."""
        for part in range(self.n_parts):
            self.log.append(self.exchange(part))

    def exchange(self, part):
        begin = time.perf_counter(), time.process_time()
        answers = self.wait([member.turn(part, self.sigma, *self.message) for member in self.members])
        asked = time.process_time()
        step = np.zeros(self.n_features, dtype=np.float32)
        for (indices, values), *_ in answers:
            step[indices] += values
        indices = np.flatnonzero(step).astype(np.int32)
        step = step[indices]
        slope, curvature = sum(slope for _, slope, _ in answers), float(step @ step)
        share = min(max(slope / curvature, 0.0), 1.0)
        self.dual += share * (slope - 0.5 * share * curvature)
        self.message = share, (indices, share * step)
        log = {
            "up": 8 * sum(len(indices) for (indices, _), *_ in answers),
            "down": 8 * len(indices) * len(self.members),
            "worker": max(cpu for *_, cpu in answers),
            "workers": sum(cpu for *_, cpu in answers),
            "summing": time.process_time() - asked,
            "client": time.process_time() - begin[1],
            "wall": time.perf_counter() - begin[0],
            "sigma": self.sigma,
        }
        self.sigma = max(self.sigma / FACTOR, 1.0) if share == 1.0 else min(self.sigma * FACTOR, len(self.members))
        return log

    def apply(self):
        """Let the members apply the last change."""
        share, change = self.message
        self.wait([member.keep(share, *change) for member in self.members])
        self.message = 1.0, NOTHING

    def certificate(self):
        """The dual objective from all alphas, bytes of constraints, and the largest peak of a member's memory in MB."""
        self.apply()
        linear, w, size, peaks = zip(*self.wait([member.dual_parts() for member in self.members]))
        return sum(linear) - 0.5 * float(np.square(sum(w)).sum()), sum(size), max(peaks)


def linear(found):
    return 0.0 if found is None else float(found["cut_numbers"][:, 0] @ found["cut_numbers"][:, 1])


def scaled(found, factor):
    """The constraints with their right-hand sides times a factor."""
    return found | {"cut_numbers": found["cut_numbers"] * [1.0, factor, 1.0]}


def blend(before, after, share):
    """A share of the alphas after a step, and the rest of those before it."""
    numbers = {}
    for found, part in ((before, 1.0 - share), (after, share)):
        if found is None:
            continue
        bounds, words = found["cut_bounds"].tolist(), found["cut_words"]
        for c, (i, row) in enumerate(zip(found["cut_example"].tolist(), found["cut_numbers"].tolist(), strict=True)):
            key = i, words[bounds[c] : bounds[c + 1]].tobytes()
            alpha = part * row[0] + (numbers[key][0] if key in numbers else 0.0)
            numbers[key] = alpha, *row[1:]
    numbers = {key: numbers[key] for key in sorted(numbers) if numbers[key][0] > 0.0}
    words = [np.frombuffer(text, dtype=np.int32) for _, text in numbers]
    return after | {
        "cut_example": np.array([i for i, _ in numbers], dtype=np.int64),
        "cut_bounds": np.cumsum([0, *map(len, words)]),
        "cut_numbers": np.array(list(numbers.values())).reshape(-1, 3),
        "cut_words": np.concatenate([*words, np.zeros(0, np.int32)]),
    }
