"""The command line: train, predict, evaluate, inspect, demo.

Each task has a module here; nothing of it is imported before its command runs. Only that of taxonomies imports
scikit-learn, which makes the features of texts.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from structsvm import __version__
from structsvm.cli.output import drawable
from structsvm.model_file import read_model

TASKS = ("alignment", "binary", "grammar", "multiclass", "semantics", "sequence", "taxonomy")


class Friendly(click.Group):
    """Turns the errors of bad input into one line each; a programming error still shows its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, say) has seen enough; keep the interpreter from flushing into the pipe again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except (ValueError, OSError, OverflowError) as error:
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
        return importlib.import_module(f"structsvm.cli.{name}").command if name in TASKS else None


@main.command(cls=Tasks)
def train() -> None:
    """Train a model: structsvm train TASK TRAIN --model FILE."""


def commands_for(path: str) -> Any:
    """Return ``(module, model)``: the commands of a model file's task, and its model."""
    kind = read_model(path, mmap=True).kind
    if kind not in TASKS:
        raise click.ClickException(f"{path}: a model of the task {kind!r}; the command line knows {', '.join(TASKS)}")
    module = importlib.import_module(f"structsvm.cli.{kind}")
    return module, module.load(path, mmap=True)


def only_given(options: Any) -> Any:
    """The options that were given: a task's command refuses those that it does not know."""
    return {name: value for name, value in options.items() if value}


NEW = click.Path(dir_okay=False)
MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
INPUT = click.argument("input", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
JOBS = click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads.")


@main.command()
@MODEL
@INPUT
@click.option("-o", "--output", type=NEW, help="File to write to (default: standard output).")
@click.option("-k", "--kbest", type=click.IntRange(1), help="Write the k best outputs with their scores.")
@JOBS
@click.option("--pretty", is_flag=True, help="Trees: write them as indented text.")
def predict(model: Any, input: Any, output: str | None, kbest: int | None, jobs: int, **more: Any) -> None:
    """Label, parse or align INPUT with MODEL."""
    task, model = commands_for(model)
    task.predict(model, input, output, kbest, jobs, **only_given(more))


@main.command()
@MODEL
@INPUT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@JOBS
@click.option("--plot", type=NEW, help="Save a picture: confusions, or a wrong tree.")
def evaluate(model: Any, input: Any, as_json: bool, jobs: int, plot: str | None) -> None:
    """Compare MODEL's predictions with what is true in INPUT."""
    task, model = commands_for(model)
    drawable(plot)
    task.evaluate(model, input, as_json, jobs, plot)


@main.command()
@MODEL
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Features to show for each label.")
@click.option("--label", multiple=True, help="Show these labels only.")
@click.option("--plot", type=NEW, help="Save training history and transitions as a picture.")
def inspect(model: Any, top: int, label: Any, plot: str | None) -> None:
    """Say what is in MODEL: its certificate, its parameters, its heaviest weights."""
    task, model = commands_for(model)
    drawable(plot)
    task.inspect(model, top, label, plot)


@main.command()
@click.argument("task", type=click.Choice(sorted(TASKS)), default="semantics")
@click.option("-o", "--output", type=NEW, default="structsvm-demo.png", show_default=True, help="Picture to save.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def demo(task: Any, output: str | None, seed: int) -> None:
    """Train on simulated data, print what comes of it, save a picture.

    Without a TASK, a simulated house: a semantic parser learns its language from ambiguous sentences.
    """
    drawable(output)
    importlib.import_module(f"structsvm.cli.{task}").demo(output, seed)
