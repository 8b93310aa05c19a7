"""The command line: train, predict, evaluate, inspect, demo.

Each task has a module here; nothing of it is imported before its command runs, and scikit-learn never is.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from structsvm import __version__
from structsvm.model_file import read_model

TASKS = ("semantics", "sequence")


class Friendly(click.Group):
    """Turns the errors of bad input into one line each; a programming error still shows its traceback."""

    def invoke(self, ctx):
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
def main():
    """Structural support vector machines: train, predict, evaluate, inspect."""


@main.group()
def train():
    """Train a model: structsvm train TASK TRAIN --model FILE."""


def commands_for(path):
    """The module of the commands for a model file's task."""
    kind = read_model(path, mmap=True).kind
    if kind not in TASKS:
        raise click.ClickException(f"{path}: a model of the task {kind!r}; the command line knows {', '.join(TASKS)}")
    return importlib.import_module(f"structsvm.cli.{kind}")


MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
INPUT = click.argument("input", type=click.Path(exists=True, dir_okay=False, allow_dash=True))


@main.command()
@MODEL
@INPUT
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="File to write to (default: standard output).")
@click.option("-k", "--kbest", type=click.IntRange(1), help="Write the k best outputs with their scores.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads.")
def predict(model, input, output, kbest, jobs):
    """Label INPUT with MODEL."""
    commands_for(model).predict(model, input, output, kbest, jobs)


@main.command()
@MODEL
@INPUT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Threads.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save the confusion matrix as a picture.")
def evaluate(model, input, as_json, jobs, plot):
    """Compare MODEL's predictions with the labels in INPUT."""
    commands_for(model).evaluate(model, input, as_json, jobs, plot)


@main.command()
@MODEL
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Features to show of each label.")
@click.option("--label", multiple=True, help="Show these labels only.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save training history and transitions as a picture.")
def inspect(model, top, label, plot):
    """Say what is in MODEL: its certificate, its parameters, its heaviest weights."""
    commands_for(model).inspect(model, top, label, plot)


@main.command()
@click.argument("task", type=click.Choice(TASKS), default="sequence")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="structsvm-demo.png",
    show_default=True,
    help="Where the picture goes.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def demo(task, output, seed):
    """Train on simulated data, print metrics and certificate, save a picture."""
    importlib.import_module(f"structsvm.cli.{task}").demo(output, seed)


@train.command("sequence")
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True, dir_okay=False))
@click.option("-m", "--model", required=True, type=click.Path(dir_okay=False), help="File to write the model to.")
@click.option("-C", "C", type=float, help="Weight of the slacks.  [default: 0.1]")
@click.option(
    "--templates",
    help="Feature templates: rich, crf++, attributes, or a CRF++ template file.  [default: rich]",
)
@click.option("--min-count", type=click.IntRange(1), default=1, show_default=True, help="Drop rarer features.")
@click.option("--hash-bits", type=click.IntRange(1, 30), help="Hash features to 2**BITS numbers.")
@click.option(
    "--solver",
    type=click.Choice(["larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"]),
    default="larank",
    show_default=True,
)
@click.option("--inference", type=click.Choice(["exact", "greedy"]), default="exact", show_default=True)
@click.option("--order", type=click.IntRange(0), help="Labels before that a score sees.  [default: 1, greedy 2]")
@click.option("--constraints", type=click.Choice(["bio", "bioes"]), help="Predict only labellings of this scheme.")
@click.option("--max-iter", type=click.IntRange(1), help="Passes over the data.")
@click.option("--tol", type=float, help="Stop at this relative duality gap.")
@click.option(
    "--seed",
    "random_state",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the order of examples.",
)
@click.option("--jobs", "n_jobs", type=click.IntRange(-1), help="Threads for batch solvers and the certificate.")
@click.option("--warm-start", type=click.Path(exists=True, dir_okay=False), help="Go on from this model.")
@click.option("--checkpoint", type=click.Path(dir_okay=False), help="Keep the state of training here; go on from it.")
@click.option("--checkpoint-every", type=click.IntRange(1), default=1, show_default=True, help="Passes between two.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save the training history as a picture.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def train_sequence(train_file, model, warm_start, plot, quiet, **params):
    """Train a label-sequence model on a CoNLL column file.

    One token a line, its columns between spaces or tabs, the label last; blank lines end a sequence. Files that
    end in .gz, .xz or .bz2 are read as they are. With --warm-start, options that are not given are those of the
    model, TRAIN must be the file that it was trained on, and --max-iter more passes follow.
    """
    from structsvm.cli import sequence

    if warm_start:
        source = click.get_current_context().get_parameter_source
        default = click.core.ParameterSource.DEFAULT
        params = {name: value for name, value in params.items() if source(name) is not default}
    sys.exit(sequence.train(train_file, model, params, warm_start, plot, quiet))


@train.command("semantics")
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True, dir_okay=False))
@click.option("-m", "--model", required=True, type=click.Path(dir_okay=False), help="File to write the model to.")
@click.option(
    "-C", "C", type=click.FloatRange(0.0, min_open=True), default=0.1, show_default=True, help="Longest step."
)
@click.option(
    "--strategy",
    type=click.Choice(["order_free", "random", "left_right"]),
    default="order_free",
    show_default=True,
    help="Which word is learnt next.",
)
@click.option("--max-iter", type=click.IntRange(1), default=1, show_default=True, help="Passes over the data.")
@click.option("--average", is_flag=True, help="Predict with the average of the weights.")
@click.option("--refine", type=click.IntRange(0), default=0, show_default=True, help="Choose the best meaning of bags.")
@click.option(
    "--window", type=click.IntRange(0), default=0, show_default=True, help="Words beside one as its features."
)
@click.option("--ngrams", type=click.IntRange(1), default=1, show_default=True, help="Longest n-gram as a feature.")
@click.option("--role-window", type=click.IntRange(0), default=2, show_default=True, help="Words beside an argument.")
@click.option("--grammar", type=click.Path(exists=True, dir_okay=False), help="Grammar of the valid meanings.")
@click.option("--max-meanings", type=click.IntRange(1), help="Meanings of a sentence, at most.")
@click.option("--complete/--no-complete", default=True, help="Make one word a relation where that makes a meaning.")
@click.option("--fold-constants", is_flag=True, help="A relation of constants alone is one symbol.")
@click.option("--lowercase/--no-lowercase", default=True)
@click.option("--seed", "random_state", type=click.IntRange(0), default=0, show_default=True, help="Seed of random.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def train_semantics(train_file, model, quiet, **params):
    """Train a semantic parser on JSON lines of sentences with bags of meanings.

    A line is {"sentence": "purple9 passes out", "bag": ["pass(purple9,purple2)", "kick(purple9)"]}. Files that end in
    .gz, .xz or .bz2 are read as they are.
    """
    from structsvm.cli import semantics

    sys.exit(semantics.train(train_file, model, params, quiet))
