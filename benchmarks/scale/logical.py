"""The members of `structsvm.dual.members` one after the other in this process, and what they would send."""

from __future__ import annotations

import math
import time

import numpy as np

from structsvm import LaRank
from structsvm.dual.cuts import CUTS
from structsvm.dual.exchanges import ExchangeSchedule, MemberRounds, SharedState
from structsvm.dual.members import Member
from structsvm.solvers.run import DualRun

C = 0.1
SOLVER = LaRank(C=C, random_state=0, deterministic=False)


class Logical:
    """A run with so many workers of so many threads each.

    Attributes
    ----------
    log : list of dict
        Of each exchange: bytes of all changes; seconds of the busiest worker, of all, and of one for the sum. They are
        CPU seconds of one thread, wall time of more.
    """

    is_lost = False

    def __init__(self, problem, n_workers, n_threads=1):
        self.log, self.clock = [], time.process_time if n_threads == 1 else time.perf_counter
        weight = np.full(problem.n_samples, C)
        state = SharedState(problem, weight, SOLVER, [n_threads] * n_workers, self.connect, seed=0, averaging="linear")
        schedule = ExchangeSchedule(state, SOLVER.schedule_on(state, None, weight))
        self.run = DualRun(SOLVER, problem, state, schedule, MemberRounds(state), C=weight)
        self.n_turns = state.n_parts

    def connect(self, members):
        self.members = members
        return self

    def map(self, function, shared, arguments):
        answers, self.seconds = [], []
        for member, rest in zip(self.members, arguments, strict=True):
            begin = self.clock()
            answers.append(function(member, shared, *rest))
            self.seconds.append(self.clock() - begin)
        return answers

    def all_to_all(self, first, then, arguments):
        found = self.map(first, None, [arguments] * len(self.members))
        training = self.seconds
        answers = self.map(then, found, [arguments] * len(self.members))
        if first is Member.train:
            self.log.append({
                "bytes": sum(array.nbytes for change in found for array in change[:2]),
                "worker": max(training) + max(self.seconds),
                "workers": sum(training) + sum(self.seconds),
                "taking": sum(self.seconds) / len(self.members),
            })  # fmt: skip
        return answers

    def close(self):
        pass

    def run_pass(self):
        self.run.state.costs.clear()  # workers one after the other: as many exchanges in each pass
        while not self.run.advance(math.inf):
            pass

    def means(self, n_passes):
        """Means over the log, but for the first of more than one pass; the median for `taking`.

        Most sums are taken as they are, without mixing alphas.
        """
        rows = self.log[self.n_turns if n_passes > 1 else 0 :]
        found = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        return found | {"taking": float(np.median([row["taking"] for row in rows]))}

    def cut_bytes(self):
        """Bytes of constraints and alphas."""
        arrays = self.run.state.get_state()
        return sum(arrays[name].nbytes for name in CUTS)
