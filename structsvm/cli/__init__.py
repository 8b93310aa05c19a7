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
    """One command a task, defined in the task's module."""

    def list_commands(self, ctx: Any) -> Any:
        return sorted(TASKS)

    def get_command(self, ctx: Any, name: Any) -> Any:
        return importlib.import_module(f"structsvm.cli.{name}").command if name in TASKS else None


@main.command(cls=Tasks)
def train() -> None:
    """Train a model: structsvm train TASK TRAIN --model FILE."""


def commands_for(path: str) -> Any:
    """The module with the commands of a model file's task."""
    kind = read_model(path, mmap=True).kind
    if kind not in TASKS:
        raise click.ClickException(f"{path}: a model of the task {kind!r}; the command line knows {', '.join(TASKS)}")
    return importlib.import_module(f"structsvm.cli.{kind}")


def only_given(options: Any) -> dict[Any, Any]:
    """The options that were given: a task's command refuses those that it does not know."""
    return {name: value for name, value in options.items() if value}


MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
INPUT = click.argument("input", type=click.Path(exists=True, dir_okay=False, allow_dash=True))


@main.command()
@MODEL
@INPUT
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="File to write to (default: standard output).")
@click.option("-k", "--kbest", type=click.IntRange(1), help="Write the k best outputs with their scores.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads.")
@click.option("--pretty", is_flag=True, help="Trees: write them as indented text.")
def predict(model: Any, input: Any, output: Any, kbest: int | None, jobs: Any, **more: Any) -> None:
    """Label, parse or align INPUT with MODEL."""
    commands_for(model).predict(model, input, output, kbest, jobs, **only_given(more))


@main.command()
@MODEL
@INPUT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save a picture: confusions, or a wrong tree.")
def evaluate(model: Any, input: Any, as_json: bool, jobs: Any, plot: Any) -> None:
    """Compare MODEL's predictions with what is true in INPUT."""
    commands_for(model).evaluate(model, input, as_json, jobs, plot)


@main.command()
@MODEL
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Features to show of each label.")
@click.option("--label", multiple=True, help="Show these labels only.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save training history and transitions as a picture.")
def inspect(model: Any, top: Any, label: Any, plot: Any) -> None:
    """Say what is in MODEL: its certificate, its parameters, its heaviest weights."""
    commands_for(model).inspect(model, top, label, plot)


@main.command()
@click.argument("task", type=click.Choice(sorted(TASKS)), default="semantics")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="structsvm-demo.png",
    show_default=True,
    help="Where the picture goes.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def demo(task: Any, output: Any, seed: Any) -> None:
    """Train on simulated data, print what comes of it, save a picture.

    Without a TASK, a simulated house: a semantic parser learns its language from ambiguous sentences.
    """
    importlib.import_module(f"structsvm.cli.{task}").demo(output, seed)
