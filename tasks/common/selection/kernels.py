"""C, and the kernel's gamma, chosen on held-out examples, for kernel machines: ``C="auto"`` and ``gamma="auto"``.

Training on a part of the examples costs the square of its share. So gamma is searched on a sample, by factors of 4
from "scale" while that helps, smaller values where no greater one is better, and C by factors of 10; then, around the
best and on a larger sample, gamma by factors of 2 and C by factors of 3. The examples outside a sample are scored. Of
few examples, on a small part of which other values would be best, each third is held out in turn. The kernel values of
a sample are computed once for all C; those of the RBF kernel at other gammas are their powers: k at 2 gamma is k
squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import is_filled
from structsvm.features.ranges import pieces
from structsvm.kernel._kernels import Kernel, Rows
from structsvm.kernel.parameters import kernel_params, leaves_gamma
from structsvm.kernel.soundness import warn_of_equal
from structsvm.solvers import CrammerSinger, KernelLaRank
from structsvm.solvers.choosing import Row
from structsvm.tasks.common.calibration import LabelCalibration, one_hot
from structsvm.tasks.common.kernel_machine import WIDE, KernelRows, kernel_of, precise
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.selection.choice import Choice, ChosenGamma
from structsvm.tasks.common.selection.search import Part, Search, half_decades, round_value
from structsvm.tasks.common.solver import Settings, is_auto, leaves_C
from structsvm.tasks.common.units import warn_of_large_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.arrays import Floats, Integers, Matrix, Weights
    from structsvm.kernel.problem import KernelProblem
    from structsvm.progress import Monitor
    from structsvm.solvers import Solver
    from structsvm.solvers.kernel.base import KernelRun
    from structsvm.tasks.common.kernel_machine import KernelPoint
    from structsvm.tasks.common.training import Job

# The two samples: shares of all examples, and the least and the most of them; as many judge, and no fewer than JUDGES.
# Fewer than FEW examples have no samples.
FEW, SHARES, LEAST, MOST, JUDGES = 1000, (0.25, 0.5), 600, (1000, 4000), 1000
# LaRank with all kernel values at hand: nearly at the optimum in so many passes, where fewer leave the scores noisy.
SCHEDULE, PASSES = (1, 10), 3
# Powers of 2 on gamma="scale": the step of the first search, and the farthest.
STEP, FARTHEST = 2, 8
# Columns that a warning names.
SHOWN = 5
# Mean kernel values from which on others are not made from them.
NEAR_1 = 0.9
# The first values of C, in half decades above 2 / scale, at which about half of the margins fit into their boxes; and
# how often the search goes on beyond its ends.
FIRST, BEYOND = (0, 2), 3


class KernelPart(Part):
    """A training on a sample, with all of its kernel values in memory.

    They are powers of those of `near`, a part on the same sample at another gamma, unless these are powers themselves
    or most are near 1: rounding there, and numbers too small for a float, would grow from step to step.
    """

    def __init__(self, search: KernelSearch, kernel: Kernel, train: Integers, test: Integers, near: Any = None) -> None:
        examples = search.examples
        self.kernel, self.X, self.rows, self.run, self.base = kernel, precise(kernel, examples.rows), train, None, None
        self.model = search.model.copy()
        self.model.machine.kernel = kernel
        self.model.machine.column_scale = None  # the search's rows are in their units
        can = near is not None and kernel.name == "rbf" and near.X.dtype == self.X.dtype
        self.are_powers = can and not near.are_powers and near.values[0].mean() < NEAR_1
        if self.are_powers:
            self.values = tuple(power(values, kernel.gamma / near.kernel.gamma) for values in near.values)
        else:
            self.values = values_of(kernel, examples.rows, train, test)
        of_train, self.others = (
            KernelRows(
                values,
                examples.label_ids[chosen],
                are_values=True,
                weight=None if examples.weight is None else examples.weight[chosen],
            )
            for values, chosen in zip(self.values, (train, test), strict=True)
        )
        self.model.machine.kernel = Kernel("precomputed")
        self.problem, self.weight = self.model.bind(of_train, search.solver)
        search.solver.check(self.problem)

    def most_passes(self, solver: Solver, is_first: bool) -> int:
        """All of the solver's over the first value, one less over others, which resume from it."""
        return max(1, solver.n_passes - (not is_first))

    @property
    def is_bound(self) -> bool:
        """Whether a greater C would change anything: a coefficient is near its bound."""
        vectors = self.run.support_vectors
        return bool((np.abs(vectors.beta) > 0.5 * self.run.C[vectors.members][vectors.slots]).any())


# Kernels of the columns of rows, in their units.
COMPARING = ("linear", "poly", "rbf", "sigmoid")


class MachineCalibration(LabelCalibration):
    """Calibration of kernel machines, which need an example of each label."""

    def held_out(self, model: MachineModel, problem: Any) -> Iterator[Integers]:
        """As `LabelCalibration.held_out`, but a label of which all examples would be held out keeps one."""
        total = np.bincount(problem.y)
        for chosen in super().held_out(model, problem):
            ids, first, counts = np.unique(problem.y[chosen], return_index=True, return_counts=True)
            kept = np.delete(chosen, first[counts == total[ids]])
            if len(kept):
                yield kept


class MachineModel(TaskModel):
    """Base of the models that score labels by a `KernelMachine`, trained on `KernelRows`.

    Attributes
    ----------
    machine : KernelMachine
    labels : sequence
    """

    has_temperature = True
    calibration = MachineCalibration()
    machine: Any
    labels: Any

    def settle(self, job: Job) -> None:
        """If gamma is chosen, and with other kernels than RBF also C, so are the units of columns.

        Without C nothing is chosen: gamma is that of "scale".
        """
        examples, params = job.examples, Settings(**self.params)
        if not self.is_trained:
            weight = examples.weight
            if isinstance(kernel_params(params).gamma, str) and weight is not None and weight.any():
                self.machine.kernel = kernel_of(params, examples.rows[weight > 0.0])
            chooses_C = "C" in job.solver.get_params() and is_auto(params.C)
            name = self.machine.kernel.name
            is_left_open = (leaves_gamma(params) and (name == "rbf" or chooses_C)) or (chooses_C and name == "linear")
            if is_left_open and job.choose and job.passes is None and is_filled(examples.rows):
                merged = examples.merged()
                self.machine.adapt(merged.rows, merged.label_ids)
            self.machine.warn_of_far(examples.rows)
            if name == "rbf":
                warn_of_equal(self.machine.kernel, self.machine.seen(examples.rows))
            if name in COMPARING and self.machine.column_scale is None:
                warn_of_large_columns(examples.rows, self.name_columns(examples.rows.shape[1]).__getitem__)
        job.choose = job.choose and "C" in job.solver.get_params()

    def bind(self, examples: KernelRows, solver: Solver) -> tuple[KernelProblem, Weights | None]:
        return self.machine.problem(examples.rows, examples.label_ids), examples.weight

    def recentred(
        self, problem: Any, sample_weight: Weights | None, solver: Any
    ) -> tuple[KernelProblem, Weights | None, KernelPoint | None]:
        X, label_ids = problem.examples, problem.y
        problem, weight, base = self.machine.problem_around(X, label_ids, sample_weight, solver.C)
        return problem, weight, base if solver.takes_base else None  # the problem holds what was learnt

    def set_weights_from(self, run: KernelRun) -> None:
        self.machine.set_weights_from(run)

    def finish(self, job: Job) -> None:
        self.machine.settle_values(job.examples.rows)

    def search_of_loss(self, examples: KernelRows, solver: Solver) -> KernelSearch:
        return KernelSearch(self, replace(examples, rows=self.machine.seen(examples.rows)), solver)

    def cause_of_gap(self, examples: KernelRows) -> str:
        """The columns that drown others."""
        wide = self.machine.widest_columns(examples.rows)
        if not wide:
            return ""
        names = self.name_columns(examples.rows.shape[1])
        shown = ", ".join(f"{names[j]!r:.40}" for j in wide[:SHOWN]) + ", ..." * (len(wide) > SHOWN)
        return (
            f"columns vary {WIDE:g} times as much as others or more and slow training down, {shown}: scale them, as "
            "sklearn.preprocessing.StandardScaler does"
        )

    def adopt(self, part: Any) -> None:
        self.machine.adopt(part)

    def apply_choice(self, choice: Choice) -> None:
        chosen = choice.get(ChosenGamma)
        self.machine.grow(None if chosen is None else chosen.gamma)

    def examples_of(self, problem: KernelProblem, chosen: Integers) -> tuple[Floats, NDArray[np.bool_]]:
        return problem.examples[chosen], one_hot(problem.y[chosen], len(self.labels))

    def state_sizes(self) -> dict[str, int]:
        return {"n_labels": self.machine.n_labels}


def values_of(kernel: Kernel, X: Matrix, train: Integers, test: Integers) -> tuple[Floats, Floats]:
    """Kernel values of examples to train on, and of others, with those to train on."""
    if kernel.name == "precomputed":
        return X[np.ix_(train, train)], X[np.ix_(test, train)]
    rows = Rows(precise(kernel, X))
    return kernel.block(rows, train, rows, train), kernel.block(rows, test, rows, train)


def power(values: Floats, exponent: float) -> Floats:
    """Values to an exponent that is a power of 2."""
    out, turns = values.copy(), round(math.log2(exponent))
    for piece in pieces(*values.shape):
        for _ in range(abs(turns)):
            (np.square if turns > 0 else np.sqrt)(out[piece], out=out[piece])
    return out


class KernelSearch(Search):
    """The choice of those of C and gamma that the model's parameters leave open; parameters are those of `Search`.

    Attributes
    ----------
    widens : bool
        Whether gamma is to be chosen.
    table : dict of dict
        Rows of the current samples, by the power of 2 on the first gamma and by the index of C.
    """

    enough = FEW
    model: MachineModel
    examples: KernelRows
    table: dict[int, dict[int, Row]]  # type: ignore[assignment]

    def __init__(self, model: MachineModel, examples: KernelRows, solver: Any) -> None:
        params = Settings(**model.params)
        super().__init__(model, examples, solver, None if leaves_C(params, solver) else [solver.C])
        self.widens = leaves_gamma(params)
        if isinstance(solver, (KernelLaRank, CrammerSinger)):
            self.solver = KernelLaRank(
                schedule=SCHEDULE, max_iter=PASSES, cache_size=solver.cache_size, random_state=self.seed
            )

    def choose_on(self, held_out: Any, monitor: Monitor) -> Choice:
        self.monitor = monitor
        self._begin(held_out[0])
        scale = self.scale * self.mean_weight
        first = half_decades(2.0 / scale) if 0.0 < scale < np.inf else 0
        for j in FIRST if self.values is None else (0,):
            self._try(0, first + j)
        self._spread()
        self._extend(2)
        k, j = self.best
        if len(held_out) > 1:
            self._begin(held_out[1])
        self._try(k, j)
        for near in (k + 1, k - 1) if self.widens else ():  # at twice the distance they were worse
            self._try(near, j)
        self._extend(1)
        return self._choice()

    def _begin(self, samples: Sequence[tuple[Integers, Integers]]) -> None:
        """Use other samples: pairs of examples to train on and to score."""
        self.samples, self.table = samples, {}
        self.machines: dict[int, list[KernelPart]] = {}
        self.bound: set[tuple[int, int]] = set()

    def _spread(self) -> None:
        """Try greater gammas while they are better; if none is, smaller ones."""
        first, j = self.best
        for side in (STEP, -STEP) if self.widens else ():
            near = first
            while self.best[0] == near and abs(near + side) <= FARTHEST:
                near += side
                self._try(near, j)
            if self.best[0] != first:
                break

    def _extend(self, step: int) -> None:
        """Extend the values of C while the best is the least or the greatest of them."""
        before = None
        for _ in range(BEYOND if self.values is None else 0):
            (k, j), rows = self.best, self.table[self.best[0]]
            if before is not None and rows[j].score == rows[before].score:
                break
            if max(rows) == j and (k, j) not in self.bound:
                rows[j + step] = rows[j]._replace(C=round_value(j + step))  # the same machine
            for beyond, end in ((j + step, max(rows)), (j - step, min(rows))):
                if end == j:
                    self._try(k, beyond)
            before = j

    def _try(self, k: int, j: int) -> None:
        """Add a row to the table; parts of gammas that are not the best are dropped."""
        if j in self.table.setdefault(k, {}):
            return
        if k not in self.machines:
            kept = {} if len(self.table) == 1 else {self.best[0]: self.machines[self.best[0]]}
            near = kept[self.best[0]] if kept else [None] * len(self.samples)
            kernel, samples = self._kernel(k), zip(self.samples, near, strict=True)
            self.machines = kept | {k: [KernelPart(self, kernel, train, test, by) for (train, test), by in samples]}
        C = round_value(j) if self.values is None else self.values[0]
        self.table[k][j] = self.tried(self.machines[k], C, self.monitor)
        if any(part.is_bound for part in self.machines[k]):
            self.bound.add((k, j))

    def _kernel(self, k: int) -> Kernel:
        kernel = self.model.machine.kernel
        return Kernel(kernel.name, gamma=kernel.gamma * 2.0**k, degree=kernel.degree, coef0=kernel.coef0)

    @property
    def best(self) -> tuple[int, int]:
        """The gamma and the C of the best row; of equal ones the least C, and the gamma tried first."""
        places = ((k, j) for k, rows in self.table.items() for j in rows)
        return min(places, key=lambda place: self.rank(self.table[place[0]][place[1]]))

    def _choice(self) -> Choice:
        k, j = self.best
        choice = Choice(self.table[k][j].C, self.metric, sorted(self.table[k].values()), self.n_held_out)
        if not self.widens:
            return choice
        bests = {key: min(rows.values(), key=self.rank) for key, rows in self.table.items()}
        gammas = [(self._kernel(key).gamma, *row[:3]) for key, row in sorted(bests.items())]
        return replace(choice, others=(ChosenGamma(self._kernel(k).gamma, gammas),))

    def divisions(self) -> Iterator[Sequence[tuple[Integers, Integers]]]:
        """Yield samples: lists of pairs of examples to train on and to score."""
        turns = [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in super().divisions()]
        if len(turns) != 1:
            yield from [turns] * bool(turns)
            return
        label, weight = self.examples.label_ids, self.examples.weight
        order = np.arange(len(label)) if weight is None else np.flatnonzero(weight > 0.0)
        order = np.random.default_rng(self.seed).permutation(order)
        order = order[np.argsort(label[order], kind="stable")]
        first = np.unique(label[order], return_index=True)[1]
        for share, most in zip(SHARES, MOST, strict=True):
            size = min(max(int(share * len(order)), LEAST), most)
            inner = np.zeros(len(order), dtype=bool)
            inner[evenly(len(order), size)] = inner[first] = True
            train, test = order[inner], order[~inner]
            yield [(np.sort(train), np.sort(test[evenly(len(test), max(len(train), JUDGES))]))]


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """At most `most` of n places, evenly spaced."""
    return np.arange(min(n, most)) * n // max(1, min(n, most))
