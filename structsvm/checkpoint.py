"""Checkpoints and warm starts: runs that resume from the arrays of `Run.get_state`.

A checkpoint belongs to one run: resuming from it gives bit-identical results, so problem, solver and parameters must be
the same. A warm start belongs to a model: its training state may be from other parameters.
"""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm._warnings import warn
from structsvm.arrays import checksum
from structsvm.files.new_file import check_new_file
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.parameters import COUNT, PATH, plain, validate
from structsvm.progress import Monitor
from structsvm.stored_values import Array, Table, checked_arrays, optional

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, CheckedArray

# Parameters that may differ between the run that wrote a checkpoint and the one that resumes from it.
FREE = {"max_iter", "rounds", "tol", "n_jobs", "deterministic", "checkpoint"}


@dataclasses.dataclass(frozen=True)
class Checkpoint(os.PathLike[str]):
    """The file that stores the state of a training: what a path as `checkpoint` means, with more to choose.

    Parameters
    ----------
    path : path-like
    every : int, default=1
        Passes between two files.

    Raises
    ------
    ValueError
        If `path` is no path, or `every` no int of at least 1.

    Examples
    --------
    >>> from structsvm import Checkpoint, LaRank
    >>> LaRank(C=0.1, checkpoint=Checkpoint("run.ckpt", every=5)).checkpoint.every
    5
    """

    path: str | os.PathLike[str]
    every: int = 1

    def __post_init__(self) -> None:
        validate(self, {"path": (PATH,), "every": (COUNT,)})

    def __fspath__(self) -> str:
        return os.fspath(self.path)


class CheckpointWriter(Monitor, os.PathLike[str]):
    """Writes the state of a run every few passes; an unfinished pass is repeated.

    The file appears under its name only when it is complete. It never contains a finished run: the last passes are
    repeated, with the same model as the result. A path that cannot be written raises an error before training begins
    (OSError, or ModelFileError if another kind of file has that name). If a later write fails, on a full disk say, a
    warning is issued, training continues, and the previous file stays.

    Parameters
    ----------
    checkpoint : path-like
        A path, or a `Checkpoint`.
    """

    kind = "checkpoint"  # the file's
    last: int  # the pass after which the run ends
    about: dict[str, Any]

    def __init__(self, checkpoint: str | os.PathLike[str]) -> None:
        self.path, self.every = os.fspath(checkpoint), getattr(checkpoint, "every", 1)

    def __fspath__(self) -> str:
        return self.path

    def restore(self, run: Any, last: int) -> int:
        """Restore a run from the file, if there is one, and watch it until the pass `last`; returns that pass.

        Raises
        ------
        ModelFileError
            If the file is damaged, or belongs to another problem or solver. The file is not changed.
        """
        self.last, self.about = last, describe(run)
        if os.path.exists(self.path):
            file = read_model(self.path, kind=self.kind)
            self.check_same(file.meta, self.about)
            self.set_run(run, file.arrays)
            if run.n_iter >= last:
                raise ModelFileError(
                    f"{self.path}: the checkpoint has {run.n_iter} passes behind it; set max_iter higher"
                )
        check_new_file(self.path)
        return last

    def check_same(self, header: dict[str, Any], wanted: Any) -> None:
        """Raise ModelFileError, naming what differs, unless a file's header has these values."""
        for what, value in wanted.items():
            if header.get(what) != value:
                raise ModelFileError(
                    f"{self.path}: the checkpoint is of another {what}; delete it to start anew, or choose another path"
                )

    def set_run(self, run: Any, arrays: dict[str, AnyArray], *, adapt: bool = False) -> None:
        """Restore a run from arrays of the file; see `Run.set_state`."""
        try:
            run.set_state(arrays, adapt=adapt)
        except (ValueError, TypeError) as error:
            raise ModelFileError(f"{self.path}: not a sound checkpoint: {error}") from error

    def end_pass(self, run: Any) -> bool:
        if run.status == "running" and run.n_iter < self.last and run.n_iter % self.every == 0:
            self.write(run)
        return False

    def write(self, run: Any, **about: Any) -> None:
        """Write the file; a UserWarning where that fails."""
        try:
            write_model(self.path, self.kind, *self.contents(run, **about))
        except (OSError, ModelFileError) as error:
            warn(f"the checkpoint of pass {run.n_iter} was not written, and training goes on: {error}", UserWarning)

    def contents(self, run: Any, **about: Any) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The header of the file, and its arrays; `about` is what a subclass adds to the header."""
        return self.about | about, run.get_state()


def describe(run: Any) -> dict[str, Any]:
    """Parameters and sizes that distinguish the run from those that cannot resume from its state."""
    solver = run.solver
    parameters = {name: plain(v) for name, v in solver.get_params().items() if name.rpartition("__")[2] not in FREE}
    weights = [np.asarray(run.C)] if run.C is not None else []
    problem, sizes = run.problem, [run.problem.n_samples, run.problem.n_features]
    return {
        "solver": [type(solver).__name__, parameters],
        "problem": [problem.fingerprint(), *sizes, checksum(weights), problem.structure_fingerprint()],
    }


def resumed(solver: Any, problem: Any, state: Any, fingerprint: Any, sample_weight: Any = None) -> Any:
    """A run that resumes from the training state of a fitted model, with any C, max_iter, tol or schedule.

    Where C has become smaller for some examples, their alphas are scaled down into the box.

    Parameters
    ----------
    solver, problem, sample_weight : see `Solver.start`
    state : dict of ndarray, or None
        Arrays of `Run.get_state`; None: the model has none (`partial_fit` leaves none).
    fingerprint : int
        Checksum of the problem that the state belongs to.

    Returns
    -------
    Run, or None
        None if there is no state, or if it belongs to other data or another kind of solver. The caller then starts from
        the model itself, as `partial_fit` does: from its weights (``solver.start(problem, base=weights)``, which solves
        the problem around them), or with its support patterns in the problem.

    Raises
    ------
    ValueError
        If the state belongs to another formulation, or is damaged.
    """
    if state is None or "run" not in state:
        return None
    check_formulation(state, problem)
    if problem.fingerprint() != fingerprint:
        return None
    base = state.get("base")
    try:
        run = solver.start(problem, sample_weight=sample_weight, **{} if base is None else {"base": base})
        if kind_of(state) not in run.kinds:
            return None
        run.set_state(state, adapt=True)
    except ValueError as error:
        raise ValueError(f"training cannot go on from where the model stands: {error}") from error
    return run


# Bytes of text at most: Python's parser takes a hundred times as much memory.
MOST_TEXT = 1000


def as_array(text: str) -> AnyArray:
    """Text as an array of a training state."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def as_text(arrays: Mapping[str, AnyArray], name: str) -> str:
    """The inverse of `as_array`."""
    array = np.asarray(arrays.get(name))
    if array.dtype != np.uint8 or array.ndim != 1 or len(array) > MOST_TEXT:
        raise ValueError(
            f"array {name!r} of the training state must be text of up to {MOST_TEXT} bytes as uint8 numbers"
        )
    return array.tobytes().decode(errors="replace")


def kind_of(arrays: Mapping[str, AnyArray]) -> str:
    """The kind of the training state in these arrays: `kind` of the class that wrote them."""
    return as_text(arrays, "kind")


def table_of(arrays: Mapping[str, AnyArray]) -> Table:
    """The table of a training state; of a kind that is not in `STATES`, such as another project's, that of the run."""
    return KIND | (RUN if "run" in arrays else {}) | STATES.get(kind_of(arrays), {})


def checked_state(
    arrays: Mapping[str, AnyArray], kinds: Collection[str] | None = None, /, **sizes: int
) -> dict[str, CheckedArray]:
    """Return the arrays of a training state, those of its table in C order; ValueError, naming the first that is wrong.

    `kinds`, if given, are those that it may be of; `sizes` those of the model or the problem, by their names in the
    tables. What a table says is checked here alone: `set_state` of states relies on it, and checks what only the
    problem knows.
    """
    kind = kind_of(arrays)
    if kinds is not None and kind not in kinds:
        raise ValueError(f"the training state is of kind {kind!r:.40}, expected {' or '.join(map(repr, kinds))}")
    try:
        return dict(arrays) | checked_arrays(arrays, table_of(arrays), **{"examples": COUNTS[1]} | sizes)
    except KeyError as error:
        raise ValueError(f"a training state of kind {kind!r:.40}, which has {error}, unlike the model") from None
    except ValueError as error:
        raise ValueError(f"training state: {error}") from None


def formulation_array(problem: Any) -> Any:
    """A problem's formulation as an array of a training state."""
    return as_array(repr(sorted(problem.formulation.items())))


def check_formulation(arrays: dict[str, AnyArray], problem: Any) -> None:
    """Raise ValueError, naming what differs, if a training state is of another formulation than the problem.

    A solver without rescaling, the perceptron, solves none.
    """
    text = as_text(arrays, "formulation")
    try:
        before = dict(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("array 'formulation' of the training state is damaged") from error
    now = problem.formulation
    if before.get("rescaling") is None or now["rescaling"] is None:
        return
    changes = [f"{name}={before.get(name)!r:.40}, not {now[name]!r}" for name in now if before.get(name) != now[name]]
    if arrays["structure"][0] != problem.structure_fingerprint():
        changes.append("other losses or another kernel")
    if changes:
        raise ValueError(
            f"training cannot go on with another formulation ({'; '.join(changes)}); set it back, or train afresh "
            "(warm_start=False)"
        )


# ---- what the arrays of training states may contain --------------------------------------------------

COUNTS = (0, 2**62)
EXAMPLES = (0, "examples")  # their number is that of the problem, which a model file does not know
RANDOM: Table = {"random": Array("u8", (4,), some=True)}  # a random generator, which never is all 0
COST: Table = {"cost": Array("f8", (1,), within=(0.0, None))}  # the work so far


def counters(n: int) -> Table:
    """The entries of a random generator, and of n counters."""
    return RANDOM | {"counters": Array("i8", (n,), within=COUNTS)}


# The tables of states by their kinds: each stands beside the solver whose runs write the state.
STATES: dict[str, Table] = {}
KIND: Table = {"kind": Array("u1", ("bytes of kind",))}
# Entries that `LatentSVM` adds.
LATENT: Table = {
    "latent": Array("f8", (4,), finite=False),
    "latent_seed": Array("u8", (1,)),
    "latent_under": Array("f4 f8", ("n_under",)),
    "latent_chosen": Array("u1", ("n_chosen",), within=(0, 2)),
    "latent_targets": Array("i8", (1,)),
    "latent_online": Array("i8", (1,)),
}
# Entries that `Run` adds to each state.
RUN: Table = {
    "run": Array("f8", (4,), finite=False),
    "formulation": Array("u1", ("bytes of formulation",)),
    "structure": Array("i8", (1,)),
    "schedule": Array("f8", ("schedule",), within=(0.0, None)),
    **optional(LATENT),
}
