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
        Of each exchange: bytes to and from workers, CPU seconds of the busiest and of all.
    """

    is_lost = False

    def __init__(self, problem, n_workers):
        self.log, self.busy = [], 0.0
        weight = np.full(problem.n_samples, C)
        state = SharedState(problem, weight, SOLVER, [1] * n_workers, self.connect, seed=0, averaging="linear")
        schedule = ExchangeSchedule(state, SOLVER.schedule_on(state, None, weight))
        self.run = DualRun(SOLVER, problem, state, schedule, MemberRounds(state), C=weight)
        self.n_turns = state.n_parts

    def connect(self, members):
        self.members = members
        return self

    def map(self, function, shared, arguments):
        answers, seconds = [], []
        for member, rest in zip(self.members, arguments, strict=True):
            begin = time.process_time()
            answers.append(function(member, shared, *rest))
            seconds.append(time.process_time() - begin)
        self.busy += sum(seconds)
        if function is Member.exchange:
            _, _, *change = shared
            sizes = [sum(array.nbytes for array in arrays[:2]) for arrays in (change, *answers)]
            row = {"up": sum(sizes[1:]), "down": len(self.members) * sizes[0]}
            self.log.append(row | {"worker": max(seconds), "workers": sum(seconds)})
        return answers

    def run_pass(self):
        """A pass; returns the CPU seconds of the client."""
        begin, self.busy = time.process_time(), 0.0
        self.run.state.costs.clear()  # of workers one after the other: as many exchanges in each pass
        while not self.run.advance(math.inf):
            pass
        return time.process_time() - begin - self.busy

    def means(self, n_passes):
        """Of the log, but for the first of more than one pass."""
        rows = self.log[self.n_turns if n_passes > 1 else 0 :]
        return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}

    def cut_bytes(self):
        """Bytes of constraints and alphas."""
        arrays = self.run.state.get_state()
        return sum(arrays[name].nbytes for name in CUTS)
