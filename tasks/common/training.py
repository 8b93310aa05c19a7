"""Training: one procedure for all models, from encoded examples to probabilities, in eight steps.

    complete -> choose -> start -> solve -> store -> add -> prune -> calibrate

What a task varies is data of its model, or a method that the step calls. What only training needs is in the `Job`; a
model is what predicts and is saved.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from structsvm._warnings import AdviceWarning, warn
from structsvm.checkpoint import resumed
from structsvm.dual.parallel import beside, n_threads
from structsvm.files.new_file import check_new_file
from structsvm.model_file import unsound
from structsvm.parameters import seed_from
from structsvm.progress import Monitor
from structsvm.result import ConvergenceWarning, relative_gap
from structsvm.tasks.common.examples import E
from structsvm.tasks.common.selection.choice import ChosenLeast, ChosenLoss, ChosenSum
from structsvm.tasks.common.selection.pruning import least_weight
from structsvm.tasks.common.selection.search import ChoiceCheckpoint, Point, mean_weight, stored_choice
from structsvm.tasks.common.solver import is_auto, is_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from structsvm.arrays import Floats, Integers, State, Weights
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.kernel_machine import KernelPoint
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.selection.search import Part


def check_whole(model: TaskModel[E]) -> None:
    """Raise ValueError for a compact model, which lacks what training needs."""
    if model.report is not None:
        raise ValueError("a compact model is not trained further: train the model that it was made of")


@dataclasses.dataclass
class Job(Generic[E]):
    """One training: what it is asked to do, and its scratch.

    Parameters
    ----------
    model : TaskModel
    examples : Examples
    solver : Solver
    resume : bool
        Resume from the model: the same run on the same examples, the problem around the current weights w0
        (``1/2 |w - w0|^2 + C sum_i xi_i``) on others.
    passes : int, optional
        Number of passes over a batch of a stream, around the current weights; those that the batch touches (see
        `TaskModel.narrowed`) are written in place, at the end.
    choose : bool
        Whether the solver's C is only the default: the C of an earlier choice replaces it, or, if there is none, this
        is not a batch of a stream and the examples are not too few, one that is chosen now.

    Attributes
    ----------
    continues : bool
        Whether the model goes on from what it has learnt.
    is_fresh : bool
        Whether a sum of losses is new, or resumes on the same examples.
    margin : TaskModel or None
        The other part of a sum, as it was before.
    learner : TaskModel
        The model that learns: `model`, or of a batch that of the features that it has alone.
    rows : ndarray of int, or None
        Of weights: those that a narrower learner has.
    problem, weight, base
        See `Solver.start`.
    points : dict of (dict of ndarray, ndarray of int)
        By loss, the training state, and its rows of the examples, that the choice of C leaves to start from.
    points_file : path-like, optional
        The checkpoint that they come from.
    run : Run
    before : TaskModel or None
        The learner before it was trained on other examples than its own.
    notes : object
        What one method of the model leaves to another.
    """

    model: TaskModel[E]
    examples: E
    solver: Any
    resume: bool = False
    passes: int | None = None
    choose: bool = False

    rows: Any = None
    problem: Any = None
    weight: Weights | None = None
    base: Floats | KernelPoint | State | None = None
    points: dict[str, Point] = dataclasses.field(default_factory=dict)
    points_file: str | os.PathLike[str] | None = None
    run: Any = None
    before: TaskModel[E] | None = None
    notes: Any = None

    def __post_init__(self) -> None:
        self.learner = self.model
        self.continues = self.model.is_trained and (self.resume or self.passes is not None)
        check_whole(self.model)
        self.margin = self.model.margin
        self.fingerprint = self.model.fingerprint if self.continues else None
        self.use(self.solver)

    def use(self, solver: Solver) -> None:
        """Train with a solver, as the model and the examples need it."""
        self.solver = self.model.adapted(solver, self.examples)
        self.solver.validate()

    @property
    def chooses_loss(self) -> bool:
        """Whether the parameters leave the loss open."""
        return self.model.comparison is not None and is_auto(self.model.params.get("loss"))

    @property
    def most_passes(self) -> int:
        """Maximum number of passes."""
        if self.passes is not None:
            return self.passes
        return self.model.most_passes(self.solver) if self.chooses_loss else self.solver.n_passes

    def use_loss(self, loss: str) -> None:
        """Train with a loss, by the solver that the parameters name for it, with the checkpoint of the present one."""
        self.model.set_loss(loss)
        own = copy.copy(self.model.solver_of_loss(loss))
        self.use(own.set_params(checkpoint=self.solver.checkpoint))

    def snapshot(self, run: Run) -> TaskModel[E]:
        """The model with the current state of a run, for prediction while training goes on."""
        learner = self.learner.copy()
        learner.set_weights_from(run)
        if self.rows is None:
            return learner
        model = self.model.copy()
        model.weights = put_rows(model.weights.copy(), self.rows, learner.weights)
        return model


def train(job: Job, monitor: Monitor | None = None) -> Run:
    """Fit the model of a job to its examples.

    Parameters
    ----------
    job : Job
    monitor : Monitor, optional
        See `Solver.solve`. It may look at the job, which therefore does not keep it: in a circle, what a training needs
        would stay in memory until Python looks for circles.

    Returns
    -------
    Run
        Which may have been interrupted.

    Raises
    ------
    ValueError
        If training continues and the formulation differs from that of the training so far.
    """
    monitor = monitor or Monitor()
    complete(job)
    choose(job, monitor)
    if job.run is None:
        start(job)
        train_parts(job, monitor)
        prune(job)
        calibrate(job)
    return job.run


def complete(job: Job) -> None:
    """Settle the loss that training begins with, and what the first examples settle."""
    model = job.model
    model.margin = None
    if job.chooses_loss:
        if not job.continues:
            job.use_loss(model.first_loss(job.examples))
        elif is_log(model.loss) != job.solver.inner.is_likelihood:
            job.use_loss(model.loss)
    model.settle(job)


def choose(job: Job, monitor: Monitor) -> None:
    """Choose C, and with it what else is left open; if interrupted, `run` is that of a part of the examples."""
    model = job.model
    compares = job.chooses_loss and model.compares_always and not job.continues
    if not (job.choose or compares):
        model.choice = None
        return
    if model.choice is None and job.passes is None:
        search(job, monitor)
        if job.run is not None:
            return
    choice = model.choice
    if choice is not None:
        compared = choice.get(ChosenLoss)
        if compared is not None and job.chooses_loss and not job.continues:
            job.use_loss(compared.loss)
        job.solver.set_params(C=choice.C)
        model.apply_choice(choice)
    elif job.choose and job.passes is None and model.C_of_few is not None:
        job.solver.set_params(C=model.C_of_few / mean_weight(job.examples.weight))


def search(job: Job, monitor: Monitor) -> None:
    """Set the model's choice, or read it from the solver's checkpoint.

    Partly known examples cannot be scored: the others decide. The checkpoint then stores the choice, so training
    resumes with the same one. If interrupted, the model is that of the current C on a part of the examples.
    """
    model, solver = job.model, job.solver
    path, is_known = solver.checkpoint, False
    if path is not None and os.path.exists(path):
        model.choice, job.points, is_known = stored_choice(path)
        job.points_file = path
    if path is not None:
        check_new_file(path)
    if not is_known:
        found = model.search(job.examples.fully_known(), solver.inner)
        try:
            model.choice = found.choose(monitor)
            if model.prunes and model.choice is not None:
                least = ChosenLeast(least_weight(found.held_out))
                model.choice = dataclasses.replace(model.choice, others=(*model.choice.others, least))
            job.points = found.points(job.examples)
        except KeyboardInterrupt:
            part = found.part
            if part is None or part.run is None:
                raise
            monitor.close()
            job.run = adopted(model, part)
            return
        for text in [] if model.choice is None else model.choice.edges:
            warn(
                f"{text} is at the edge of the values that were tried; the best may lie beyond, which a search "
                "over larger and smaller C would find",
                AdviceWarning,
            )
    if path is not None:
        chosen = chosen_sum(model)
        others = {} if chosen is None else {loss: at for loss, at in job.points.items() if loss != chosen.loss}
        solver.set_params(checkpoint=ChoiceCheckpoint(path, model.choice, others))


def adopted(model: TaskModel, part: Part) -> Run:
    """Make a model that of an interrupted training on a part of the examples; returns its run."""
    run = part.run
    run.interrupt()
    run.is_trial = True
    model.adopt_loss(part.model)
    model.set_weights_from(run)
    model.adopt(part)
    model.result, model.state, model.fingerprint, model.C = run.result(), None, 0, run.solver.C
    model.temperature = None
    return run


def start(job: Job) -> None:
    """Bind the examples, and find the point to start from: fresh, resumed, or around what was learnt before."""
    model, solver, examples = job.model, job.solver, job.examples
    if job.passes is not None:
        job.learner, examples, job.rows = model.narrowed(examples)
    learner = job.learner
    job.problem, job.weight = learner.bind(examples, solver)
    learner.C = solver.inner.get_params().get("C")
    if not job.continues:
        job.base = learner.prior(examples)
        job.run = learner.warm_run(job)
        if job.points and learner.loss in job.points and model.choice is not None:
            start_from(job, *job.points.pop(learner.loss))
        return
    if job.passes is None:
        state = learner.state_for(job.problem)
        job.run = resumed(solver, job.problem, state, learner.fingerprint, sample_weight=job.weight)
        if state is None and (learner.n_left_out or learner.fingerprint == job.problem.fingerprint()):
            warn(
                "the model's file has no training state, so that training starts anew and stays close to its weights: "
                "save(path, training_state=True), or --training-state, keeps what resumes the run",
                AdviceWarning,
            )
    if job.run is None:
        job.before, job.solver = learner.copy(), learner.solver_around(solver)
        job.problem, job.weight, job.base = learner.recentred(job.problem, job.weight, job.solver)


def start_from(job: Job, point: State, rows: Integers) -> None:
    """Start from a point of the choice of C; ModelFileError where one that a checkpoint stores is not sound."""
    job.run = job.solver.start(job.problem, sample_weight=job.weight, base=job.base)
    with nullcontext() if job.points_file is None else unsound(job.points_file, ChoiceCheckpoint.kind):
        job.run.start_from(point, rows)


def solve(job: Job, monitor: Monitor) -> None:
    """Run the solver; beyond its usual passes while they end far from the optimum, and warn if that does not help."""
    if job.run is not None and job.run.status == "interrupted":  # while it was made warm
        return
    job.run = job.solver.solve(
        job.problem, sample_weight=job.weight, base=job.base, run=job.run, monitor=monitor, passes=job.passes
    )
    if misses_tolerance(job) and (cause := job.learner.cause_of_gap(job.examples)):
        warn(cause, ConvergenceWarning)
    if not ends_far(job, job.run.farthest):
        return
    while job.run.n_iter < job.solver.most_passes:
        job.run = job.solver.solve(job.problem, sample_weight=job.weight, run=job.run, passes=1)
        if not ends_far(job, job.run.near):
            return
    warn_of_gap(job)


def store(job: Job) -> None:
    """Store in the model what the run has learnt."""
    learner, run = job.learner, job.run
    learner.result = run.result()  # whose norms may need an average, of which one at a time is enough
    learner.set_weights_from(run)
    learner.state = learner.state_of(run, job.passes)
    learner.fingerprint = job.problem.fingerprint() if job.passes is None else 0


def chosen_sum(model: TaskModel) -> ChosenSum | None:
    """The sum of losses that a model is, if that was chosen."""
    return None if model.choice is None else model.choice.get(ChosenSum)


def other_part(job: Job, **settings: object) -> Job | None:
    """The training of the other part of a sum of losses, new or resumed, by a solver with these settings; or None.

    On other examples, and without its training states, a sum continues as one model.
    """
    model, chosen = job.model, chosen_sum(job.model)
    if job.passes is not None or chosen is None:
        return None
    if job.fingerprint is not None and job.fingerprint != job.problem.fingerprint():
        return None
    if job.margin is not None and job.margin.state is None:
        return None
    part = job.margin if job.resume else None
    if part is None:
        (loss,) = chosen.scales.keys() - {model.loss}
        part = model.with_loss(loss)
        part.result = part.state = None
    solver = copy.copy(model.solver_of_loss(part.loss))
    if job.run is None:  # a random state draws its seed first
        job.run = job.solver.start(job.problem, sample_weight=job.weight, base=job.base)
    solver.set_params(C=chosen.losses[part.loss][0], checkpoint=None, **settings)
    solver.set_params(random_state=seed_from(solver.random_state))
    other = Job(part.copy(), job.examples, solver, resume=job.resume, choose=job.choose)
    other.points, other.points_file = dict(job.points), job.points_file
    return other


def train_parts(job: Job, monitor: Monitor) -> None:
    """Solve, store and add: the model, and beside it the other part of a sum of losses, if there is one."""
    other = other_part(job)
    with beside(partial(finish, other), 1 if other is None else n_threads(job.solver.n_jobs)) as wait:
        solve(job, monitor)
        store(job)
        if job.run.status not in ("stopped", "interrupted"):
            attempt(job, wait)
    if job.run.status == "stopped" and other is not None:  # by a callback, which sees the first training alone
        other = other_part(job, max_iter=job.run.n_iter, random_state=other.solver.inner.random_state)
        attempt(job, partial(finish, other))
    add(job, other)


def finish(other: Job | None) -> None:
    """Train the other part of a sum, if there is one."""
    if other is not None:
        start(other)
        solve(other, Monitor())
        store(other)


def attempt(job: Job, training: Callable[[], object]) -> None:
    """Call what trains the other part of a sum; Ctrl-C leaves the first part, which is trained, as interrupted."""
    try:
        training()
    except KeyboardInterrupt:
        job.run.status = "interrupted"


def add(job: Job, other: Job | None) -> None:
    """Add the other part of a sum of losses; `run` is then the one that ended last.

    After an interrupted training it is added as it was before.
    """
    model, chosen, margin = job.model, chosen_sum(job.model), job.margin if job.resume else None
    if other is None or chosen is None:
        return
    if job.run.status != "interrupted":
        job.run, margin = other.run, other.model
    if job.run.status == "interrupted":
        model.result = dataclasses.replace(model.result, status="interrupted")
    if margin is not None:
        model.margin = margin
        model.weights = chosen.scales[model.loss] * model.weights + chosen.scales[margin.loss] * margin.weights


def prune(job: Job) -> None:
    """Set weights that no output feels to 0, and round others by less, where held-out examples have told which."""
    model = job.model
    least = None if job.passes is not None or model.choice is None else model.choice.get(ChosenLeast)
    if least is not None:
        model.weights = model.without_unfelt(least.least_weight)


def calibrate(job: Job) -> None:
    """Fit the temperature, and learn what else does not come from the run itself; of a batch, write back."""
    learner, model = job.learner, job.model
    if learner.calibration is not None:
        learner.calibration.fit(job)
    learner.finish(job)
    if learner is not model:
        model.__dict__.update({name: getattr(learner, name) for name in TRAINED})
        weights = model.weights if model.weights.flags.writeable else model.weights.copy()
        model.weights, model.scaled = put_rows(weights, job.rows, learner.weights), None


# Attributes that a training sets beside weights.
TRAINED = ("C", "result", "state", "fingerprint", "temperature")


def put_rows(weights: Floats, rows: Integers, values: Floats) -> Floats:
    """Set rows of weights to flat values; returns `weights`."""
    weights.reshape(-1, len(values) // len(rows))[rows] = values.reshape(len(rows), -1)
    return weights


def ends_far(job: Job, distance: float) -> bool:
    """Whether a training without `max_iter` and `tol` has ended farther than that from the optimum."""
    run, solver = job.run, job.solver.inner
    if job.passes is not None or not run.warns_of_gap or run.status not in ("max_iter", "settled"):
        return False
    return solver.tol is None and solver.max_iter is None and run.distance > distance


def misses_tolerance(job: Job) -> bool:
    """Whether a training has made all of its passes without reaching its `tol`, as the solver has said."""
    return job.passes is None and job.run.status == "max_iter" and job.solver.inner.gap_tol is not None


def warn_of_gap(job: Job) -> None:
    """Say where training has ended, and the cure: a smaller C if it was given, the cause if it lies in the data."""
    cause, run = job.learner.cause_of_gap(job.examples), job.run
    if job.choose and not cause:
        return
    C = job.solver.inner.get_params().get("C")
    cures = ["set max_iter or tol for more of them"] + [f"or give a smaller C than {C}"] * (not job.choose)
    warn(
        f"{type(job.solver).__name__} stopped after {run.n_iter} passes at a relative gap of "
        f"{relative_gap(run.primal, run.dual):.2g}: {', '.join(cures)}" + f"; {cause}" * bool(cause),
        ConvergenceWarning,
    )
