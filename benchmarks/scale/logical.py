"""The members of `structsvm.dual.exchanges` one after the other in this process, and what they would send."""

from __future__ import annotations

import math
import time

import numpy as np

from structsvm import LaRank
from structsvm.dual.exchanges import CUTS, ExchangeSchedule, Member, MemberRounds, SharedState
from structsvm.solvers.base import DualRun

C = 0.1
SOLVER = LaRank(C=C, random_state=0, deterministic=False)


class Logical:
    """A run with so many workers.

    Attributes
    ----------
    log : list of dict
        Of each exchange: bytes of all changes; CPU seconds of the busiest worker, of all, and of one for the sum.
    """

    is_lost = False

    def __init__(self, problem, n_workers):
        self.log = []
        weight = np.full(problem.n_samples, C)
        state = SharedState(problem, weight, SOLVER, [1] * n_workers, self.connect, seed=0, averaging="linear")
        schedule = ExchangeSchedule(state, SOLVER.schedule_on(state, None, weight))
        self.run = DualRun(SOLVER, problem, state, schedule, MemberRounds(state), C=weight)
        self.n_turns = state.n_parts

    def connect(self, members):
        self.members = members
        return self

    def map(self, function, shared, arguments):
        answers, self.seconds = [], []
        for member, rest in zip(self.members, arguments, strict=True):
            begin = time.process_time()
            answers.append(function(member, shared, *rest))
            self.seconds.append(time.process_time() - begin)
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
        self.run.state.costs.clear()  # of workers one after the other: as many exchanges in each pass
        while not self.run.advance(math.inf):
            pass

    def means(self, n_passes):
        """Of the log, but for the first of more than one pass."""
        rows = self.log[self.n_turns if n_passes > 1 else 0 :]
        return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}

    def cut_bytes(self):
        """Bytes of constraints and alphas."""
        arrays = self.run.state.get_state()
        return sum(arrays[name].nbytes for name in CUTS)
