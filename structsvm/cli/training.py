"""What the commands that train have in common: their options, what they say, and how they end."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from structsvm.progress import Bar
from structsvm.tasks.common.solver import SOLVERS

# What the common options are where a model is trained without the command line's parser.
COMMON = {
    "C": None,
    "solver": "larank",
    "max_iter": None,
    "tol": None,
    "random_state": 0,
    "n_jobs": None,
    "checkpoint": None,
    "checkpoint_every": 1,
}


def training(
    default_C: Any,
    more_solvers: Any = (),
    metavar: str = "TRAIN",
    *,
    online: bool = False,
    role_of_C: str = "Weight of the slacks.",
) -> Any:
    """Decorate a task's function: the command ``structsvm train TASK TRAIN --model FILE`` with the common options.

    Parameters
    ----------
    default_C : float
        What the help says; the option is None if it is not given.
    more_solvers : sequence of str
        What --solver takes beside the solvers' names.
    metavar : str
        What the help calls the file to train on.
    online : bool
        Whether the task has an algorithm of its own: then there is no choice of a solver, nor what goes with one.
    role_of_C : str
        What the help says of C.
    """
    common = [
        click.argument("train_file", metavar=metavar, type=click.Path(exists=True, dir_okay=False)),
        click.option(
            "-m", "--model", required=True, type=click.Path(dir_okay=False), help="File to write the model to."
        ),
        click.option("-C", "C", type=float, help=f"{role_of_C}  [default: {default_C:g}]"),
        click.option("--max-iter", type=click.IntRange(1), help="Passes over the data."),
        click.option(
            "--seed",
            "random_state",
            type=click.IntRange(0),
            default=COMMON["random_state"],
            show_default=True,
            help="Seed of the order of examples.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    ]
    of_solvers = [
        click.option(
            "--solver", type=click.Choice([*SOLVERS, *more_solvers]), default=COMMON["solver"], show_default=True
        ),
        click.option("--tol", type=float, help="Stop at this relative duality gap."),
        click.option(
            "--jobs", "n_jobs", type=click.IntRange(-1), help="Threads for batch solvers and the certificate."
        ),
    ]
    checkpoints = [
        click.option(
            "--checkpoint", type=click.Path(dir_okay=False), help="Keep the state of training here; go on from it."
        ),
        click.option(
            "--checkpoint-every",
            type=click.IntRange(1),
            default=COMMON["checkpoint_every"],
            show_default=True,
            help="Passes between two.",
        ),
    ]

    def decorate(function: Any) -> Any:
        for option in reversed(common + ([] if online else of_solvers) + checkpoints):
            function = option(function)
        return click.command(function)

    return decorate


def passes_if_interrupted(run: Any) -> float | None:
    """Passes after which Ctrl-C ended a run, or None."""
    return run.progress if run.status == "interrupted" else None


class Training:
    """One training on the command line, from its begin to its exit status."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.begin = quiet, time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begin

    def say(self, text: str) -> None:
        if not self.quiet:
            click.echo(text)

    def bar(self, solver: Any) -> Any:
        """A monitor: a bar on terminals, unless all is to be quiet."""
        return Bar(solver.n_passes, disable=True if self.quiet else None)

    @contextmanager
    def warnings(self) -> Iterator[Any]:
        """Warnings in one line each on standard error, or not at all."""
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where: (
                None if self.quiet else click.echo(f"warning: {message}", err=True)
            )
            yield

    def end(self, model_path: str, interrupted: float | None = None, hint: str = "") -> int:
        """Say how it ended; returns the exit status, 130 if Ctrl-C came after so many passes."""
        if interrupted is not None:
            click.echo(
                f"interrupted after {interrupted:.1f} passes: {model_path} holds the partial model{hint}", err=True
            )
            return 130
        size = Path(model_path).stat().st_size / 1e6
        self.say(f"model: {model_path} ({size:.1f} MB), {self.seconds:.2f} s in all")
        return 0
