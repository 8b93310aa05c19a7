"""Checkpoints: a file from which a killed run goes on, bit for bit as if nothing had happened."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from structsvm.checksum import checksum
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.parameters import plain
from structsvm.progress import Monitor

KIND = "checkpoint"

# What may differ between the run that wrote a checkpoint and the one that goes on from it.
FREE = {"max_iter", "tol", "n_jobs", "checkpoint", "checkpoint_every"}


class Checkpoint(Monitor):
    """Writes the state of a run after every so many passes; an unfinished pass is done again.

    The file appears under its name only when it is whole. It never holds a finished run: the last passes are
    done again, which ends in the same model.

    Parameters
    ----------
    path : path-like
    every : int
        Passes between two files.
    last : int
        The pass after which the run ends.
    """

    def __init__(self, path, every, last):
        self.path, self.every, self.last = os.fspath(path), every, last
        self.about: dict[str, Any] = {}

    def take_up(self, run):
        """Let a fresh run go on from the file, if there is one.

        Raises
        ------
        ModelFileError
            If the file is damaged, or of another problem or solver. It stays as it is.
        """
        self.about = describe(run)
        if not os.path.lexists(self.path):
            return
        file = read_model(self.path, kind=KIND)
        for what, value in self.about.items():
            if file.meta.get(what) != value:
                raise ModelFileError(
                    f"{self.path}: the checkpoint is of another {what}; delete it to start anew, or choose another path"
                )
        try:
            take_up(run, file.arrays)
        except (ValueError, TypeError) as error:
            raise ModelFileError(f"{self.path}: not a sound checkpoint: {error}") from error
        if run.n_iter >= self.last:
            raise ModelFileError(f"{self.path}: the checkpoint has {run.n_iter} passes behind it; set max_iter higher")

    def end_pass(self, run):
        if run.status == "running" and run.n_iter < self.last and run.n_iter % self.every == 0:
            write_model(self.path, KIND, self.about, run.get_state())
        return False


def describe(run):
    """What tells the run from those that could not go on from its state."""
    solver = run.solver
    parameters = {name: plain(value) for name, value in solver.get_params().items() if name not in FREE}
    weights = [np.asarray(run.C)] if run.C is not None else []
    return {
        "solver": [type(solver).__name__, parameters],
        "problem": [run.problem.fingerprint(), run.problem.n_samples, run.problem.n_features, checksum(weights)],
    }


def resumed(solver, problem, state, fingerprint, *, sample_weight=None):
    """A run that stands where the one of a fitted model ended.

    Parameters
    ----------
    solver, problem, sample_weight : see `Solver.start`
    state : dict of ndarray, or None
        What `Run.get_state` returned then; None: the model has none.
    fingerprint : int
        Of the problem that it was trained on.

    Raises
    ------
    ValueError
        If there is no state, the problem is another one, or the solver or its parameters are.
    """
    if state is None:
        raise ValueError("the model holds no training state to go on from (partial_fit leaves none)")
    if problem.fingerprint() != fingerprint:
        raise ValueError(
            "the training data differ from those that the model was trained on, or their losses or kernel do; go on "
            "with the same, or train afresh (warm_start=False)"
        )
    run = solver.start(problem, sample_weight=sample_weight)
    take_up(run, state)
    return run


def take_up(run, arrays):
    """`Run.set_state`, with advice where it fails."""
    try:
        run.set_state(arrays)
    except ValueError as error:
        raise ValueError(
            f"training cannot go on from where the model stands: {error}. The solver must be the one of before, "
            "with the same parameters and sample weights (C may grow, and max_iter and tol may change)"
        ) from error
