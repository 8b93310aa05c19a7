"""C chosen on held-out examples, for all tasks: ``C="auto"``.

C grows along a path: 1 and 3 times powers of ten, each training starting from the dual point of the last, which is
feasible at any greater C. So a value costs a few passes, and the whole path about as much as one training. It begins
where C is so small that hardly any example has a margin (see `TaskModel.scale`), and ends once larger values
no longer improve the held-out score; if the first one is clearly the best, smaller ones follow. The prior that training
starts from (see `TaskModel.prior`) is scored too, as a C so small that nothing is learnt: learnt weights that predict
held-out examples worse are not preferred to it. A fifth of the examples is held out; of few examples, each third in
turn.

Every metric is a ratio of two sums over examples, ``r = sum_i a_i / sum_i b_i``, of variance

    n / (n - 1) sum_i (a_i - r b_i)^2 / (sum_i b_i)^2.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.checkpoint import CheckpointWriter
from structsvm.dual.parallel import beside, n_threads
from structsvm.features.dense import DenseRows, column_moments
from structsvm.model_file import read_model, under, unsound
from structsvm.parameters import seed_from
from structsvm.progress import Monitor
from structsvm.solvers.choosing import Row, is_loss, rank, walk
from structsvm.solvers.larank import LaRank
from structsvm.tasks.common.selection.choice import Choice, Chosen, ChosenLoss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structsvm._problem import Problem
    from structsvm.arrays import AnyArray, Floats, Integers, Weights
    from structsvm.features.sparse import SparseRows
    from structsvm.features.tokens import Tokens
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.examples import Examples
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.selection.choice import Best

# Fewer examples than LEAST_EXAMPLES are not divided at all; from ENOUGH_EXAMPLES on, one part of them is enough.
LEAST_EXAMPLES, ENOUGH_EXAMPLES = 20, 300
PARTS, PARTS_OF_FEW = 5, 3

# In units of 1 / scale: where the path begins, and how many values it has at most. Beyond 100 hardly an example's box
# holds it, and a larger C changes nothing but probabilities.
LOWEST, LONGEST, LONGEST_OF_LOG = 0.3, 7, 11
# The least probability of which a loss is taken.
TINY = 1e-12
# In units of the path's first value: so small that nothing is learnt.
NOTHING = 1e-6
# In units of 1 / scale, where the path of a log loss begins that is added to a margin, or has the 1-norm: below, hardly
# anything is learnt.
LOWEST_OF_LOG = 10.0 * LOWEST
# Weights of examples beyond which C, or C times a weight, might be infinite.
MOST_WEIGHT = 1e200
# Values that may be worse than the best so far before the path ends.
PATIENCE = 2
# Passes over each value: until one of them has raised the dual by no more than this share of it, or seen no more gap.
# Unfinished likelihoods with a large C can be far worse than finished ones.
LEAST_GAIN, MOST_OF_MARGIN, MOST_OF_LIKELIHOOD, MOST_OF_BATCH = 0.05, 6, 12, 100
# The next value of a likelihood is tried after so many passes at least, once one of them no longer changes the held-out
# score by more than noise: larger values need more of them, and fewer would favour small ones.
LEAST_PASSES = 3
# Parts that are held out in turn where one of them leaves doubt.
TURNS = 3


# Prefix of the arrays of points in a checkpoint, and the name of their rows.
POINTS, ROWS = "points.", "rows"
# A training state, or what of it a run starts from, and the rows of the examples that it is of.
Point = tuple[dict[str, NDArray[Any]], NDArray[np.integer[Any]]]


class Held(NamedTuple):
    """Scores of held-out examples: the metric is the ratio of the sums of two arrays, one entry per example.

    As in scikit-learn, less is better if the name ends in "loss" or "error".
    """

    metric: str
    numerator: Floats
    denominator: Floats


class ChoiceCheckpoint(CheckpointWriter):
    """The checkpoint of a training whose C was chosen, or that had too few examples for that (None).

    `points` are those that the trainings of other losses start from.
    """

    def __init__(self, checkpoint: str | os.PathLike[str], choice: Choice | None, points: Mapping[str, Point]) -> None:
        super().__init__(checkpoint)
        self.choice = choice
        self.arrays = {f"{POINTS}{loss}.{ROWS}": rows for loss, (_, rows) in points.items()}
        for loss, (point, _) in points.items():
            self.arrays |= {f"{POINTS}{loss}.{name}": array for name, array in point.items()}

    def contents(self, run: Run, **about: object) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        choice = None if self.choice is None else self.choice.to_json()
        meta, arrays = super().contents(run, choice=choice, **about)
        return meta, arrays | self.arrays


def stored_choice(path: str | os.PathLike[str]) -> tuple[Choice | None, dict[str, Point], bool]:
    """The `Choice` that a checkpoint stores, with its points, and whether it is that of a `ChoiceCheckpoint`."""
    # A map, of which only the points are copied: the run reads the whole file, and verifies it.
    file = read_model(path, kind=ChoiceCheckpoint.kind, mmap=True)
    with unsound(path, ChoiceCheckpoint.kind):
        choice = file.meta.get("choice")
        arrays = {name: np.array(array) for name, array in file.under(POINTS).items()}
        losses = {name.partition(".")[0] for name in arrays}
        points = {loss: under(arrays, f"{loss}.") for loss in losses}
        found = {loss: (point, point.pop(ROWS)) for loss, point in points.items()}
        return None if choice is None else Choice.from_json(choice), found, "choice" in file.meta


class PatientRun:
    """Base beside a run's own class: `least_passes` at least, unless the relative gap is `solved` before."""

    shares_state = False
    least_passes: int
    solved: float
    gap_seen = np.nan  # ends nothing

    def advance(self: Any, *seconds: float) -> bool:
        done = bool(super().advance(*seconds))  # type: ignore[misc]
        if done:
            self.primal = np.nan  # it belongs to an earlier pass
        return done

    @property
    def is_solved(self: Any) -> bool:
        if self.solver.tol is not None and self.solver.tol < self.solved:
            return False
        if np.isnan(self.primal):
            self.certify()
        return bool(self.remaining <= self.solved)


class Part:
    """A training on some of the examples, with one C after another, and the others to score it on."""

    model: Any
    run: Any
    others: Any
    rows: Integers
    held_out: Integers
    races = False  # whether trainings are left early
    scores: list[Held]  # then: after each pass but the first ones, which end no training
    is_scored = False  # whether the last of them is that of the model

    def __init__(self, model: TaskModel, examples: Examples, held_out: NDArray[np.bool_], solver: Solver) -> None:
        self.rows, self.held_out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        self.model = model.copy()
        self.run = None
        examples, self.others = examples.take(self.rows), examples.take(self.held_out)
        self.base = model.prior(examples)
        self.problem, self.weight = self.model.bind(examples, solver)
        solver.check(self.problem)

    def train(self, solver: Solver, monitor: Monitor, gap: float = LEAST_GAIN) -> int:
        """Train with another C, from the current point, until a pass gains little; returns the number of passes.

        A likelihood is then solved to a relative gap by rounds, if that is less, or passes do not tell of it; if they
        do, it is left once they no longer change the held-out score by more than noise: see `finish`.
        """
        run, is_first = solver.start(self.problem, sample_weight=self.weight, base=self.base), self.run is None
        if not is_first and run.carries:
            run.follow(self.run)
        self.run = run  # only now: what Ctrl-C leaves is what was learnt
        run.goal = gap
        by_rounds = solver.is_likelihood and (run.needs_rounds or gap < LEAST_GAIN)
        self.races, self.scores = solver.is_likelihood and not by_rounds, []
        n_passes = self._train(self.most_passes(solver, is_first), monitor)
        if by_rounds:
            run.minimise(gap, MOST_OF_BATCH)
            self.model.set_weights_from(run)
        return n_passes

    def finish(self, solver: Solver, state: dict[str, NDArray[Any]], monitor: Monitor) -> None:
        """Train with the C of a state, from where it was left, until a pass gains little."""
        run = solver.start(self.problem, sample_weight=self.weight, base=self.base)
        run.set_state(state)
        self.run, self.races, self.is_scored = run, False, False  # only now, as in `train`
        if self.run.gap_seen > LEAST_GAIN:
            self._train(self.most_passes(solver, is_first=False), monitor)
        else:
            self.model.set_weights_from(self.run)

    def _train(self, most: int, monitor: Monitor) -> int:
        """Make passes until they are enough; returns their number."""
        first, is_enough = self.run.n_iter, False
        while not is_enough:
            while not self.run.advance():
                monitor.tick(self.run)
            n_passes = self.run.n_iter - first
            is_enough = self._is_enough(n_passes, most)
            if is_enough and self.run.solver.finishing:
                self.run.certify()
            self.is_scored = not is_enough and self.races and n_passes >= LEAST_PASSES - 1 and self._is_steady()
            is_enough = is_enough or self.is_scored
        self.model.set_weights_from(self.run)
        return int(self.run.n_iter - first)

    def _is_steady(self) -> bool:
        """Whether the last pass has changed the score of the held-out examples by no more than its standard error.

        Asked from the pass before the first that may end a training: only the last two scores are compared.
        """
        self.run.shares_weights = True
        self.model.set_weights_from(self.run)
        self.run.shares_weights = False
        self.scores.append(self.held_out_scores())
        if len(self.scores) < 2:
            return False
        change, error = difference(*self.scores[-2:])
        return abs(change) <= error

    def most_passes(self, solver: Solver, is_first: bool) -> int:
        """Maximum number of passes over one value."""
        most = MOST_OF_LIKELIHOOD if solver.rescaling is None else MOST_OF_MARGIN
        return min(most, (solver.n_passes + 1) // 2)

    def _is_enough(self, n_passes: int, most: int) -> bool:
        solver = self.run.solver
        if self.run.is_solved or n_passes < self.run.least_passes:
            return self.run.is_solved
        if solver.tol is not None:  # a batch solver, whose passes look at few examples
            self.run.certify()
            return self.run.remaining <= LEAST_GAIN or n_passes >= MOST_OF_BATCH
        # The dual of a log loss holds the entropy of all outputs, beside which all gains are small.
        left = self.run.gap_seen if solver.rescaling is None else self.run.gain
        return left <= LEAST_GAIN or n_passes >= most

    def held_out_scores(self) -> Held:
        metric, a, b = self.model.choice_scores(self.others)
        weight = 1.0 if self.others.weight is None else self.others.weight
        return Held(metric, a * weight, b * weight)


class Search:
    """The choice of C for the training of a model.

    Parameters
    ----------
    model : TaskModel
    examples : Examples
    solver : Solver
        Of the training; the path is LaRank's wherever it maximises a margin with explicit weights.
    values : sequence of float, optional
        Values to try instead of the path.

    Attributes
    ----------
    lowest : float
        Where the path begins, in units of 1 / scale.
    step : int
        From one value to the next, in half decades.
    longest : int
        Maximum number of values on the path, unless the metric is a log loss.
    patience : int
        Values that may be worse than the best so far before the path ends.
    leeway : float
        The least value is chosen whose score is hardly below the best, by so many of its standard errors.
    turns : int
        Parts of many examples that are held out in turn.
    repeats : int
        Divisions of few examples, each of whose parts are held out in turn.
    enough : int
        Fewer examples are few.
    others : tuple of Chosen
        What is chosen with the best value.
    gap : float
        Relative gap to which likelihoods are trained at least.
    part : Part or None
        The training that runs.
    held : Held
        How the held-out examples were predicted at the best value.
    models : list of TaskModel
        Per split of the examples, the model at the best value.
    grows : bool
        Whether training on all examples starts from the point that a part of them has reached.
    states : sequence of dict
        Per split, the state of the training with the best value, if it was left early, or the point that grows.
    mean_weight : float
        See the function `mean_weight`: C times so much is what counts.
    whole : Search or None
        The search of whole examples that these are parts of, by their groups: they are held out as the whole ones are.
    """

    lowest, step, longest, patience, leeway, gap = LOWEST, 1, LONGEST, PATIENCE, 0.0, LEAST_GAIN
    grows = False
    turns, repeats, enough = 1, 1, ENOUGH_EXAMPLES
    others: tuple[Chosen, ...] = ()
    states: Sequence[dict[str, NDArray[Any]]] = ()
    whole: Search | None = None
    model: Any
    examples: Any

    def __init__(
        self, model: TaskModel, examples: Examples, solver: Solver, values: Sequence[float] | None = None
    ) -> None:
        self.model, self.values = model, values
        self.part: Part | None = None
        self.mean_weight = mean_weight(examples.weight)
        self.examples = examples.merged()
        self.seed = seed_from(solver.random_state)
        self.solver = path_solver(solver, self.seed)

    @property
    def loss(self) -> str:
        """Name of the loss that training minimises."""
        return self.model.loss

    @property
    def first_search(self) -> Search:
        """The search of the first loss: the only one."""
        return self

    @property
    def scale(self) -> float:
        """Scale of the examples whose weight is not 0."""
        return float(self.model.scale(self.examples.of_weight()))

    def choose(self, monitor: Monitor) -> Choice | None:
        """Follow the path and choose the value with the best score; None if there are too few examples to split."""
        held_out = list(self.divisions())
        return self.choose_on(held_out, monitor) if held_out else None

    def choose_on(self, held_out: list[NDArray[np.bool_]], monitor: Monitor) -> Choice:
        """The choice by these splits of the examples."""
        self.parts = [Part(self.model, self.examples, rows, self.solver) for rows in held_out]
        self.table: list[Row] = []
        self._explore(monitor)
        if self.parts[0].races:
            self._finish(monitor)
        return self.choice

    def more(self, monitor: Monitor) -> Held:
        """How the examples of other parts than the first are predicted with what was chosen."""
        return self.elsewhere(monitor).held

    def elsewhere(self, monitor: Monitor) -> Self:
        """The search that tries the chosen value alone, on other parts than the first."""
        again = self.of_choice()
        _, *others = again.divisions()
        again.choose_on(others, monitor)
        return again

    def of_choice(self) -> Self:
        """The search that tries the chosen value alone, on more parts."""
        again = type(self)(self.model, self.examples, self.solver, [self.choice.C])
        again.seed, again.turns, again.gap = self.seed, TURNS, self.gap
        again.whole = None if self.whole is None else self.whole.of_choice()
        return again

    def _explore(self, monitor: Monitor) -> None:
        """Try the given values, or those of the path."""
        if self.values is not None:
            self._walk(self.values, monitor)
            return
        first = self._first()
        values = self._values(first, self.step)
        self._walk(values if self.parts[0].base is None else chain([NOTHING * first], values), monitor)
        if self.table[0].C == self.choice.C and (self.choice.is_at_edge or self.parts[0].base is not None):
            self._walk(islice(self._values(first, -self.step), 1, None), monitor)

    def _first(self) -> float:
        """Where the path begins."""
        scale = self.scale * self.mean_weight
        return self.lowest / scale if 0.0 < scale < np.inf else self.lowest

    def _finish(self, monitor: Monitor) -> None:
        """Train with the best value as long as passes gain: on the way it was left early, as the others were."""
        solver = self.solver.set_params(C=min(self.table, key=self.rank).C)
        for part, state in zip(self.parts, self.states, strict=True):
            self.part = part
            part.finish(solver, state, monitor)
        self.last = self._scores(self.parts)
        self.keep()
        self.states = [part.run.get_state() for part in self.parts]

    def release(self) -> None:
        """Keep no more than what was chosen: neither runs nor other models, whose weights may be many."""
        for part, model in zip(self.parts, self.models, strict=True):
            part.run, part.model = None, model

    @property
    def held_out(self) -> list[tuple[TaskModel, Examples]]:
        """Per split, the model at the best value and the examples that it was not trained on."""
        return [(model, part.others) for model, part in zip(self.models, self.parts, strict=True)]

    def points(self, examples: Examples) -> dict[str, Point]:
        """By loss, the point that was reached with the best value; nothing where it is of other examples than these."""
        return {self.loss: (self.states[0], self.parts[0].rows)} if self.states and examples is self.examples else {}

    def _values(self, first: float, step: int) -> Iterator[float]:
        """The round values of a path: more for a log loss, as the metric says once a value was tried."""
        values = round_values(first, step)
        yield from islice(values, self.longest)
        if self.metric == "log loss":
            yield from islice(values, LONGEST_OF_LOG - self.longest)

    def _walk(self, values: Iterable[float], monitor: Monitor) -> None:
        """Try values until `patience` of them follow the best."""
        try_value = partial(self.tried, self.parts, monitor=monitor)
        for best in walk(values, try_value, self.table, self.rank, self.patience, self._is_blank):
            if best is self.table[-1]:
                self.keep()
            self.choice = self.choice_of(self._value_of(best))

    def _value_of(self, best: Row) -> float:
        """The value to choose: of those that are hardly worse than the best, the least."""
        return min(row.C for row in self.table if abs(row.score - best.score) <= self.leeway * best.error)

    def _is_blank(self, row: Row) -> bool:
        """Whether nothing is learnt with a value: nothing held out is right."""
        return row.score == 0.0 and not is_loss(self.metric)

    def rank(self, row: Row) -> tuple[float, float]:
        """The key that sorts rows of the table, the best first."""
        return rank(row, self.metric)

    def choice_of(self, C: float) -> Choice:
        """The choice of a value."""
        return Choice(C, self.metric, sorted(self.table), self.n_held_out, self.others)

    def keep(self) -> None:
        """Keep what is needed of the last value, the best so far."""
        self.held, self.models = self.last, [part.model.copy() for part in self.parts]
        self.states = [part.run.get_state() for part in self.parts if part.races]
        if self.grows and all(part.problem.groups is None for part in self.parts):
            self.states = [part.run.get_point() for part in self.parts]

    def tried(self, parts: Sequence[Part], C: float, monitor: Monitor) -> Row:
        """Train parts further with a value, and score them."""
        monitor.try_value(C)
        n_passes = 0
        for self.part in parts:
            n_passes += self.part.train(self.solver.set_params(C=C), monitor, self.gap)
        self.last = self._scores(parts)
        score, error = ratio(*self.last[1:])
        times = len(self.last.numerator) // self.n_held_out  # how often each example is held out
        return Row(C, score, error * math.sqrt(times), n_passes)

    def _scores(self, parts: Sequence[Part]) -> Held:
        """How the held-out examples of parts are predicted."""
        held = joined([part.scores[-1] if part.is_scored else part.held_out_scores() for part in parts])
        self.metric, self.n_held_out = held.metric, len(held.numerator)
        if self.repeats > 1:
            times = self.n_held_out // len(np.unique(np.concatenate([part.held_out for part in parts])))
            self.n_held_out //= times
        return held

    def divisions(self) -> Iterator[Any]:
        """Yield the examples to hold out, as boolean arrays; none if there are too few.

        Examples of one group stay together. Each label keeps its share, and a label's only example is never held out.
        """
        examples = self.examples
        group, label = examples.groups, examples.strata
        if self.whole is not None:
            parts = [held_out[group] for held_out in self.whole.divisions()]
            if all(0 < np.count_nonzero(held_out) < len(held_out) for held_out in parts):
                yield from parts
            return
        group = np.arange(len(examples)) if group is None else group
        if examples.weight is not None:
            group = np.where(examples.weight > 0.0, group, -1)
        members = np.unique(group[group >= 0])
        if len(members) < LEAST_EXAMPLES:
            return
        rng, is_few = np.random.default_rng(self.seed), len(members) < self.enough
        n_parts, turns, repeats = (PARTS_OF_FEW, PARTS_OF_FEW, self.repeats) if is_few else (PARTS, self.turns, 1)
        for _ in range(repeats):
            order = rng.permutation(members)
            if label is not None:
                counts = np.bincount(label[order])
                order = order[np.argsort(label[order], kind="stable")]
                order = order[counts[label[order]] > 1]
            for k in range(turns):
                held_out = np.isin(group, order[k::n_parts])
                if held_out.any():
                    yield held_out


class LossSearch:
    """The choice of a loss, each at its best C, on the same held-out examples.

    Parameters
    ----------
    searches : list of Search
        One per loss, named by its `loss`; in a tie the first is chosen.
    n_jobs : int or None
        With more than one, the others are searched beside the first.

    Attributes
    ----------
    held : Held
        How the held-out examples were predicted by what was chosen.
    """

    held: Held

    def __init__(self, searches: Sequence[Search], n_jobs: int | None = None) -> None:
        self.searches, self.n_threads = searches, n_threads(n_jobs)
        self.search = searches[0]
        for search in searches:
            search.seed = self.search.seed

    @property
    def first_search(self) -> Search:
        """The search of the first loss."""
        return self.searches[0]

    @property
    def part(self) -> Part | None:
        """The training that runs; with threads, one of them."""
        return first_run(self.search, *self.searches)

    @property
    def held_out(self) -> list[tuple[TaskModel, Examples]]:
        """See `Search.held_out`; of the chosen loss."""
        return self.search.held_out

    def points(self, examples: Examples) -> dict[str, Point]:
        """See `Search.points`."""
        found = [search.points(examples) for search in self.searches]
        return {loss: point for points in found for loss, point in points.items()}

    def choose(self, monitor: Monitor) -> Choice | None:
        others = partial(self.choose_others, monitor if self.n_threads == 1 else Monitor())
        with beside(others, self.n_threads) as wait:
            if self.choose_first(monitor) is None:
                return None
            wait()
        return self.compared()

    def more(self, monitor: Monitor) -> Held:
        """See `Search.more`; with the chosen loss."""
        return self.search.more(monitor)

    def choose_first(self, monitor: Monitor) -> Choice | None:
        """The choice of C for the first loss."""
        choice = self.first_search.choose(monitor)
        if choice is not None:
            self.first_search.release()
        return choice

    def choose_others(self, monitor: Monitor) -> None:
        """Choose C for the other losses."""
        for search in self.searches[1:]:
            self.search = search
            search.choose(monitor)
            search.release()

    @property
    def losses(self) -> dict[str, Best]:
        """By loss, its best C, once that is chosen."""
        return {search.loss: (search.choice.C, *ratio(*search.held[1:])) for search in self.searches}

    def compared(self) -> Choice:
        """The choice, once C is chosen for each loss."""
        losses = self.losses
        best = self.search = self._preferred(losses)
        self.held = best.held
        return replace(best.choice, others=(ChosenLoss(best.loss, losses), *best.choice.others))

    def _preferred(self, losses: Mapping[str, Best]) -> Search:
        """The search to continue with: the one with the best score."""
        sign = 1.0 if is_loss(self.search.held.metric) else -1.0
        return min(self.searches, key=lambda search: sign * losses[search.loss][1])


def first_run(*searches: Search | LossSearch) -> Part | None:
    """The part of the first of some searches whose training has begun."""
    parts = (search.part for search in searches)
    return next((part for part in parts if part is not None and part.run is not None), None)


def joined(parts: list[Held]) -> Held:
    """The scores of the examples of several parts; without those of parts that have no F1 where others have."""
    if len({part.metric for part in parts}) > 1:
        parts = [part for part in parts if part.metric == "F1"]
    return Held(parts[0].metric, *(np.concatenate(sums) for sums in list(zip(*parts, strict=True))[1:]))


def mean_weight(weight: Weights | None) -> float:
    """The geometric mean of the weights of examples that are not 0, as a power of ten.

    One heavy example hardly moves it. Weights of about 1 are as good as none: copies of examples are weights, too.
    """
    positive = np.empty(0) if weight is None else weight[weight > 0.0]
    if not len(positive):
        return 1.0
    most = float(positive.max())
    mean = float(f"1e{round(float(np.log10(positive).mean()))}")
    if most > MOST_WEIGHT or mean < 1.0 / MOST_WEIGHT:
        raise ValueError(
            f"sample_weight must be at most {MOST_WEIGHT:g}, and its geometric mean at least {1.0 / MOST_WEIGHT:g}, "
            f"where C is chosen. Got a maximum of {most:g} and a mean of {mean:g}: multiply all weights by a number"
        )
    return mean


def path_solver(solver: Any, seed: int) -> Solver:
    """The solver for the path: without its own stopping rule, and without a file."""
    if solver.maximises_dual and solver.rescaling is not None:
        return LaRank(rescaling=solver.rescaling, penalty=solver.penalty, random_state=seed)
    known, default = solver.get_params(), type(solver)()
    own = {"checkpoint": None, "random_state": seed, "tol": default.tol, "max_iter": default.max_iter}
    return type(solver)(**known | {name: value for name, value in own.items() if name in known})


def round_values(first: float, step: int = 1) -> Iterator[float]:
    """1 and 3 times powers of ten (step 2: powers alone), up or down from the greatest that is no more than `first`."""
    return map(round_value, count(half_decades(first) // abs(step) * abs(step), step))


def half_decades(value: float) -> int:
    """The index of the greatest round value that is no more than this."""
    return math.floor(2.0 * math.log10(value) + 1e-9)


def round_value(k: int) -> float:
    """1 or 3 times a power of ten."""
    return float(f"{3 if k % 2 else 1}e{k // 2}")


def ratio(a: Floats, b: Floats) -> tuple[float, float]:
    """The ratio of two sums, and its standard error; see the head of this file."""
    n, total = len(a), float(b.sum())
    if not total > 0.0:
        return 0.0, 0.0
    r = float(a.sum()) / total
    return r, math.sqrt(n / max(n - 1, 1) * float(((a - r * b) ** 2).sum())) / total


def difference(before: Held, after: Held) -> tuple[float, float]:
    """How much a ratio of two sums has changed on the same examples, and the standard error of that."""
    ratios, parts = [], []
    for _, a, b in (before, after):
        total = max(float(b.sum()), TINY)
        ratios.append(float(a.sum()) / total)
        parts.append((a - ratios[-1] * b) / total)
    n = len(parts[0])
    return ratios[1] - ratios[0], math.sqrt(n / max(n - 1, 1) * float(((parts[1] - parts[0]) ** 2).sum()))


PIECE = 1 << 22  # entries between which Ctrl-C is heard


def total_variance(rows: DenseRows | SparseRows | Tokens) -> float:
    """The mean squared distance of rows from their mean; for rows that are all the same, their mean square.

    `rows` are `DenseRows`, or sparse: ``indptr``, ``indices``, ``values`` (None: ones), ``n_features``.
    """
    if isinstance(rows, DenseRows):
        mean, variances = column_moments(rows.values)
        variance, square = float(variances.sum()), float((variances + mean**2).sum())
        rounding = (64.0 * float(np.finfo(rows.values.dtype).eps)) ** 2
        return variance if variance > rounding * square else square + rows.has_intercept
    n, square, mean = max(len(rows.indptr) - 1, 1), 0.0, np.zeros(rows.n_features)
    for first in range(0, len(rows.indices), PIECE):
        indices = rows.indices[first : first + PIECE]
        values = None if rows.values is None else rows.values[first : first + PIECE].astype(np.float64)
        square += (float(len(indices)) if values is None else float(values @ values)) / n
        mean += np.bincount(indices, weights=values, minlength=rows.n_features) / n
    variance = square - float(mean @ mean)
    return variance if variance > 1e-9 * square else square


def first_scale(problem: Problem) -> float:
    """``|psi|^2`` of the constraints that are most violated at weights 0, per violation; over at most 64 examples."""
    n, w = problem.n_samples, np.zeros(problem.n_features, dtype=problem.weight_dtype)
    every = [problem.separated_norm(i, w) for i in np.linspace(0, n - 1, min(n, 64)).astype(int).tolist()]
    violations, squares = np.sum(every, axis=0)
    return float(squares / violations) if violations > 0.0 else 0.0
