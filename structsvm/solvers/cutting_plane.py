"""SVMstruct (Tsochantaridis and others 2004): cutting planes, one slack an example or one for all of them."""

from __future__ import annotations

import time
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from structsvm._cutting_plane import WorkingSets
from structsvm._dual import DualState
from structsvm._problem import Problem
from structsvm._rounds import collect
from structsvm.parameters import Interval, Options, seed_from
from structsvm.solvers.base import DualSolver, Run

# While nothing is known, every example's answer is the same kind of nonsense: portions of the first round.
FIRST_PORTIONS = 32

# With a hard margin: rounds after which to find out whether any weights can be feasible, what the linear programme
# may have in rows times columns, and how scipy says no.
HARD_CHECKS = (5, 10, 20, 50, 100, 200, 500)
LARGEST_PROGRAMME = 10**8
INFEASIBLE = 2

# Rounds for which one_slack keeps a constraint that has become inactive.
PATIENCE = 50


class CuttingPlane(DualSolver):
    """Batch training by cutting planes, to a certified optimum.

    In rounds: the most violated constraint of every example is asked for at the present weights, which also
    gives the exact primal objective; those that are violated by more than the example's slack and `epsilon`
    join its working set; then the dual is optimised over all working sets.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks. SVMstruct divides by the number of examples: its C is n times this one.
    form : {"n_slack", "one_slack"}, default="n_slack"
        One slack an example (algorithm 1 of the paper), or one for all of them and one constraint a round, the sum of
        the examples' (Joachims, Finley and Yu 2009; linear penalty only). Both have the same optimum.
    rescaling : {"margin", "slack"}, default="margin"
    penalty : {"linear", "quadratic", None}, default="linear"
        Slack penalty; None asks for a hard margin.
    epsilon : float, default=0.0
        Violations up to the slack and epsilon are tolerated (in units of the loss); when no constraint has more,
        training ends.
    optimize : {"round", "constraint"}, default="round"
        When the dual is optimised over all working sets: after each round (an example's own set is optimised as soon
        as a constraint joins it), or, as algorithm 1 is written, after each constraint.
    qp_tol : float, default=0.05
        The dual is optimised over the working sets until the gap of that smaller problem is `qp_tol` times the whole
        gap (times the dual, where the gap is not known) ...
    max_sweeps : int, default=6
        ... or for so many sweeps over them.
    max_iter : int, default=1000
        Rounds at most.
    tol : float or None, default=1e-3
        Relative duality gap, (primal - dual) / primal, to stop at. None: `epsilon` alone decides.
    random_state : int, RandomState or None
        Seeds the order within sweeps.
    n_jobs : int or None
        Jobs that ask the oracle; see `structsvm.parallel`. The model does not depend on it.
    checkpoint, checkpoint_every
        As for `LaRank`.
    """

    average = False

    _constraints = DualSolver._constraints | {
        "form": Options("n_slack", "one_slack"),
        "epsilon": Interval(Real, 0.0),
        "optimize": Options("round", "constraint"),
        "qp_tol": Interval(Real, 0.0, closed="neither"),
        "max_sweeps": Interval(Integral, 1),
    }

    def __init__(
        self,
        C=1.0,
        *,
        form="n_slack",
        rescaling="margin",
        penalty="linear",
        epsilon=0.0,
        optimize="round",
        qp_tol=0.05,
        max_sweeps=6,
        max_iter=1000,
        tol=1e-3,
        random_state=None,
        n_jobs=None,
        checkpoint=None,
        checkpoint_every=1,
    ):
        self.C = C
        self.form = form
        self.rescaling = rescaling
        self.penalty = penalty
        self.epsilon = epsilon
        self.optimize = optimize
        self.qp_tol = qp_tol
        self.max_sweeps = max_sweeps
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def validate(self):
        super().validate()
        if self.form == "one_slack" and self.penalty != "linear":
            raise ValueError(
                "form='one_slack' needs penalty='linear': only a sum of slacks is a slack of sums. "
                f"Got penalty={self.penalty!r}; use form='n_slack'"
            )
        if self.form == "one_slack" and self.optimize != "round":
            raise ValueError("form='one_slack' has one constraint a round: leave optimize='round'")

    @property
    def run_type(self):
        return CuttingPlaneRun

    def state_on(self, problem, C, base):
        if self.form == "n_slack":
            return super().state_on(problem, C, base)
        whole = OneSlackProblem(problem)
        return DualState(whole, np.ones(1), seed=seed_from(self.random_state), base=base, patience=PATIENCE)

    def schedule_on(self, state, rounds, C):
        if self.form == "n_slack":
            return NSlackSchedule(self, state, rounds)
        return OneSlackSchedule(self, state, rounds, C)


class CuttingPlaneRun(Run):
    """A run whose certificate is the next round's question."""

    def advance(self, *seconds):
        done = super().advance(*seconds)
        if done and self.solver.penalty is None and self.n_iter in HARD_CHECKS and self.schedule.joined:
            refuse_inseparable(self.state)
        return done

    def certify(self):
        begin = time.perf_counter()
        if self.problem.is_exact:
            self.primal = self.state.primal(violation=self.schedule.ask())
            if np.isfinite(self.primal):
                self.schedule.gap = max(self.primal - self.dual, 0.0)
        self.seconds += time.perf_counter() - begin

    @property
    def is_solved(self):
        """Without a `tol`: no constraint joined in the last round, and the working sets are solved."""
        return self.solver.tol is None and self.schedule.joined == 0 and self.schedule.is_optimal


def refuse_inseparable(state):
    """Raise ValueError if no weights at all keep the constraints found so far: a linear programme knows."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    if state.n_cuts * state.problem.n_features > LARGEST_PROGRAMME:
        return
    examples, b, rows = state.constraints()
    psi = csr_array(
        (
            np.concatenate([values for _, values in rows]),
            np.concatenate([indices for indices, _ in rows]),
            np.cumsum([0, *(len(values) for _, values in rows)]),
        ),
        shape=(len(rows), state.problem.n_features),
    )
    outcome = linprog(np.zeros(psi.shape[1]), A_ub=-psi, b_ub=-b, bounds=(None, None), method="highs")
    if outcome.status == INFEASIBLE:
        raise ValueError(
            f"the data cannot be separated: no weights keep the {len(b)} constraints of "
            f"{len(np.unique(examples))} examples found so far, so penalty=None (a hard margin) has no solution; "
            "use penalty='linear' or 'quadratic'"
        )


class RoundSchedule:
    """Rounds, with the interface of `structsvm._schedules.Schedule`; a subclass says what one is."""

    def __init__(self, solver, state, rounds):
        self.solver, self.state, self.rounds = solver, state, rounds
        self.sets = WorkingSets(state, solver.epsilon)
        self.n_samples = self.next = rounds.problem.n_samples
        self.answers: Any = None  # the constraints most violated at the present weights, once they have been asked for
        self.asked = False  # whether they have been, and were counted
        self.gap = 0.0  # the duality gap at the present weights; 0: not known
        self.joined: int | None = None  # constraints that joined in the last round
        self.is_optimal = False  # whether the dual over the working sets was then solved to `qp_tol`

    def get_state(self):
        return np.array([self.asked, self.gap], dtype=np.float64)

    def set_state(self, numbers):
        numbers = np.asarray(numbers)
        if numbers.shape != (2,) or numbers.dtype != np.float64 or not (np.isfinite(numbers) & (numbers >= 0.0)).all():
            raise ValueError("the schedule of the training state must be 2 finite numbers >= 0, as CuttingPlane writes")
        self.asked, self.gap = bool(numbers[0]), float(numbers[1])

    def start_pass(self):
        self.next = 0

    def run(self, seconds):
        """One round, whatever the time (Ctrl-C gets through, and leaves a whole state)."""
        self.joined = self.round()
        self.answers, self.asked, self.gap = None, False, 0.0
        self.next = self.n_samples
        return True

    def question(self):
        """The violations at the present weights, and the constraints as `round` takes them."""
        raise NotImplementedError

    def round(self):
        """Do a round; returns how many constraints joined."""
        raise NotImplementedError

    def ask(self):
        """Put a round's question, once; returns the violation of every example of the state's problem."""
        if self.answers is None:
            violation, self.answers = self.question()
            if not self.asked:
                self.state.count_argmax(self.n_samples)
            self.asked = True
            self.violation = violation
        return self.violation

    def optimize(self):
        enough = self.solver.qp_tol * (self.gap or self.state.dual)
        self.is_optimal = self.sets.optimize(enough, self.solver.max_sweeps) <= enough

    def join(self, answers):
        return sum(self.sets.join(first, *constraints) for first, (_, *constraints) in answers)


class NSlackSchedule(RoundSchedule):
    """Algorithm 1 of the paper."""

    def question(self):
        answers = self.rounds.collect(self.state.weights)
        return np.concatenate([violation for _, (violation, *_) in answers]), answers

    def round(self):
        if self.solver.optimize == "constraint":
            return self.by_constraint()
        if self.answers is None and self.state.n_patterns == 0:
            return self.first_round()
        self.ask()
        joined = self.join(self.answers)
        self.optimize()
        return joined

    def first_round(self):
        """In portions, between which the weights change: at w = 0 all answers are the same kind of nonsense."""
        joined = 0
        for start, stop in pairwise(np.linspace(0.0, 1.0, FIRST_PORTIONS + 1)):
            joined += self.join(self.rounds.collect(self.state.weights, start, stop))
        self.state.count_argmax(self.n_samples)
        self.optimize()
        return joined

    def by_constraint(self):
        """As the paper writes it: one example after the other, the whole dual after each constraint."""
        joined = 0
        for i in range(self.n_samples):
            answer = collect(self.state.problem, self.state.weights, i, i + 1)
            self.state.count_argmax(1)
            if self.join([(i, answer)]):
                joined += 1
                self.optimize()
        if joined == 0:
            self.optimize()
        return joined


class OneSlackSchedule(RoundSchedule):
    """Algorithm 3 of Joachims, Finley and Yu: one constraint a round; those that stay inactive go after a while."""

    def __init__(self, solver, state, rounds, C):
        super().__init__(solver, state, rounds)
        self.C = C

    def question(self):
        violation, b, psi = self.rounds.collect_sum(self.state.weights, self.C)
        words = self.state.problem.words(psi)
        total = float(self.C @ np.maximum(violation, 0.0))
        return np.array([total]), (np.array([[b, 1.0]]), np.array([0, len(words)]), words)

    def round(self):
        self.ask()
        joined = self.sets.join(0, *self.answers)
        self.optimize()
        return joined


class OneSlackProblem(Problem):
    """All examples as one.

    With a linear penalty, sum_i C_i xi_i is a single slack, and its constraints are

        <w, sum_i C_i psi_i> >= sum_i C_i b_i - xi,

    one for each choice of a constraint (or none) of every example. The dual state of one example with C = 1 solves
    it; a cut is such a sum, as a sparse vector.
    """

    def __init__(self, problem):
        super().__init__(
            1,
            problem.n_features,
            weight_dtype=problem.weight_dtype,
            is_exact=problem.is_exact,
            **problem.formulation,
        )

    def words(self, psi):
        """A joint feature (n_features,) as the words of a cut: values, then indices."""
        indices = np.flatnonzero(psi)
        if len(indices) == 0:
            return np.zeros(3, dtype=np.int32)  # an explicit zero
        return np.concatenate([psi[indices].view(np.int32), indices.astype(np.int32)])
