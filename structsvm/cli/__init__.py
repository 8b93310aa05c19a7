"""The command line: train, predict, evaluate, inspect, demo.

Each task has a module here, imported when its command runs, with a `Task`; only that of taxonomies, whose texts need
it, and demos import scikit-learn.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from functools import partial
from typing import Any

import click

from structsvm import __version__
from structsvm.cli.output import FILE, FILE_OR_STDIN, NEW, TEXT, check_files, drawable, save, writing
from structsvm.cli.task import Task, Wanted
from structsvm.model_file import read_model

TASKS = (
    *("alignment", "binary", "dependency", "grammar", "graph"),
    *("multiclass", "ranking", "semantics", "sequence", "taxonomy"),
)


class Friendly(click.Group):
    """Turns the errors of bad input into one line each; a programming error still shows its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, say) has closed the pipe; keep the interpreter from flushing into it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except (ValueError, OSError, OverflowError, ImportError) as error:  # of the last kind: an extra is missing
            raise click.ClickException(" ".join(str(error).splitlines())) from error
        except MemoryError as error:
            raise click.ClickException(f"not enough memory ({error})") from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)


@click.group(cls=Friendly, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="structsvm")
def main() -> None:
    """Structural support vector machines: train, predict, evaluate, inspect."""


class Tasks(click.Group):
    """One command per task, defined in the task's module."""

    def list_commands(self, ctx: Any) -> Any:
        return sorted(TASKS)

    def get_command(self, ctx: Any, name: Any) -> Any:
        return task_of(name).train if name in TASKS else None


def task_of(name: str) -> Task:
    """The commands of a task."""
    task: Task = importlib.import_module(f"structsvm.cli.{name}").TASK
    return task


@main.command(cls=Tasks)
def train() -> None:
    """Train a model: structsvm train TASK TRAIN --model FILE."""


def opened(path: str, plot: str | None = None) -> tuple[Task, Any]:
    """The task of a model file, and its model.

    Raises OSError, ImportError, ValueError or UsageError if an output could not be drawn or saved.
    """
    check_files()
    drawable(plot)
    kind = read_model(path, mmap=True).kind
    if kind not in TASKS:
        raise click.ClickException(f"{path}: a model of the task {kind!r}; the command line knows {', '.join(TASKS)}")
    task = task_of(kind)
    undrawn = task.undrawn.get(click.get_current_context().info_name or "")
    if plot and undrawn:
        raise ValueError(f"--plot {undrawn}")
    return task, task.load(path, mmap=True)


MODEL = click.argument("model", type=FILE)
INPUT = click.argument("input", type=FILE_OR_STDIN)
JOBS = click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads.")


@main.command()
@MODEL
@INPUT
@click.option("-o", "--output", type=TEXT, help="File to write to (default: standard output).")
@click.option("-k", "--kbest", type=click.IntRange(1), help="Write the k best outputs with their scores.")
@JOBS
@click.option("--confidence", is_flag=True, help="Write the probability of each output; with -k, instead of its score.")
@click.option("--pretty", is_flag=True, help="Trees: write them as indented text.")
def predict(model: Any, input: Any, output: str | None, **wanted: Any) -> None:
    """Label, parse, align or rank INPUT with MODEL."""
    task, model = opened(model)
    if wanted["pretty"] and not task.has_trees:
        raise click.UsageError("--pretty is for models that predict trees")
    if wanted["confidence"] and not task.has_probabilities:
        raise click.UsageError("--confidence is for models that have probabilities")
    with writing(output) as stream:
        stream.writelines(task.predict(model, input, Wanted(**wanted)))


@main.command()
@MODEL
@INPUT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@JOBS
@click.option("--plot", type=NEW, help="Save a picture: confusions, a wrong tree, NDCG by places.")
@click.option("--query", type=FILE, help="Rankings: the sizes of INPUT's queries, one a line.  [default: INPUT.query]")
def evaluate(model: Any, input: Any, as_json: bool, jobs: int, plot: str | None, **given: Any) -> None:
    """Compare MODEL's predictions with what is true in INPUT."""
    task, model = opened(model, plot)
    if given["query"] and not task.has_queries:
        raise click.UsageError("--query is for models that rank the rows of queries")
    scores, text, draw = task.evaluate(model, input, jobs, **given if task.has_queries else {})
    click.echo(json.dumps(scores) if as_json else text)
    if plot:
        save(draw(), plot, say=partial(click.echo, err=True))


@main.command()
@MODEL
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Features to show for each label.")
@click.option("--label", multiple=True, help="Show these labels only.")
@click.option("--plot", type=NEW, help="Save training history and transitions as a picture.")
def inspect(model: Any, top: int, label: Any, plot: str | None) -> None:
    """Show what is in MODEL: its certificate, its parameters, its heaviest weights."""
    task, model = opened(model, plot)
    figure = task.picture(model) if plot else None
    task.inspect(model, top, label)
    if plot:
        save(figure, plot)


@main.command()
@click.argument("task", type=click.Choice(sorted(TASKS)), default="semantics")
@click.option("-o", "--output", type=NEW, default="structsvm-demo.png", show_default=True, help="Picture to save.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def demo(task: Any, output: str, seed: int) -> None:
    """Train on simulated data, print the scores, save a picture.

    Without a TASK, a simulated house: a semantic parser learns its language from ambiguous sentences.
    """
    check_files()
    drawable(output)
    save(task_of(task).demo(seed), output)
