"""The command line: train, predict, evaluate, inspect, annotate, serve, demo.

Each task has a module here, imported when its command runs, with a `Task`; only that of taxonomies, whose texts need
it, and demos import scikit-learn.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import click

import structsvm  # no names of it: another project's file may stand in its place, which the import of tasks says
from structsvm.cli.annotation.annotate import annotate
from structsvm.cli.annotation.serve import serve
from structsvm.cli.output import (
    COLUMNS,
    ENCODING,
    FILE,
    FILE_OR_STDIN,
    NEW,
    TEXT,
    Mark,
    NameChoice,
    Output,
    blank,
    brief_warnings,
    check_files,
    check_stdout,
    chosen,
    drawable,
    drop_errors,
    naming,
    save,
    writing,
)
from structsvm.cli.task import Task, Wanted
from structsvm.execution.products import product_threads
from structsvm.export.folders import TARGETS
from structsvm.files.new_file import new_file
from structsvm.interop.kinds import KINDS, OWN, kind_by_content, kind_by_name, write_chain
from structsvm.model_file import read_header
from structsvm.opening import load_estimator
from structsvm.parameters import did_you_mean
from structsvm.tasks.registry import ESTIMATORS

# Where shells look for completions of a command, below the home directory.
COMPLETIONS = {
    "bash": ".local/share/bash-completion/completions/structsvm",
    "zsh": ".zfunc/_structsvm",
    "fish": ".config/fish/completions/structsvm.fish",
}
TASKS = sorted({entry.kind for entry in ESTIMATORS if entry.has_commands})


class Suggesting(click.Group):
    """A group whose error for an unknown command suggests the closest one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = did_you_mean(args[0], self.list_commands(ctx))
            if not near or "Did you mean" in error.format_message():  # click may say so itself
                raise
            raise click.UsageError(error.format_message().removesuffix(".") + near, ctx) from None


class Friendly(Suggesting):
    """Turns the errors of bad input into one line each; a programming error still shows its traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if sys.stderr is None:  # it is closed, and no other file may take its place
            drop_errors()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:  # --help, which no command invokes
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)

    def invoke(self, ctx: Any) -> Any:
        try:
            with brief_warnings():
                return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, say) has closed the pipe; keep the interpreter from flushing into it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except (ValueError, OSError, OverflowError, ImportError) as error:  # the last kind: an extra is missing
            raise click.ClickException(" ".join(str(error).splitlines())) from error
        except MemoryError as error:
            raise click.ClickException(f"not enough memory ({error})") from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)


@click.group(cls=Friendly, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(structsvm.__version__, prog_name="structsvm")
def main() -> None:
    """Structural support vector machines: train, predict, evaluate, inspect."""


# Other names of tasks in the field.
OTHER_NAMES = {
    "sequence": "sequences tagging tagger tags pos ner entity entities chunking chunks crf hmm chain labeling "
    "labelling segments conll",
    "grammar": "parser parsing constituency treebank pcfg trees",
    "dependency": "dependencies conllu ud",
    "taxonomy": "hierarchy hierarchical text texts documents category categories catalogue products paths",
    "alignment": "align aligner pairs",
    "semantics": "semantic meaning meanings",
    "graph": "graphs grid nodes",
    "multiclass": "classes classifier classification svm svc",
    "binary": "lasvm huller sgdqn two-class",
    "ranking": "rank ranker queries ltr",
}


def named_task(name: str) -> str:
    """The end of a message about a task of another name; empty for a name that is none."""
    for entry in ESTIMATORS:
        if name.casefold() in (entry.kind, entry.name.casefold()):
            known = entry.kind if entry.kind in TASKS else None
            api = f"structsvm.tasks.{entry.name} in Python"
            if entry.kind == "tagged":
                return f": train sequence learns tags and train dependency parses, {api} does both"
            return f": it has no command, but {api}" if known is None else f": it is train {known}"
    found = next((task for task, names in OTHER_NAMES.items() if name.casefold() in names.split()), None)
    return "" if found is None else f": it is train {found}"


class Tasks(Suggesting):
    """One command per task, defined in the task's module."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in TASKS and (right := named_task(args[0])):
            raise click.UsageError(f"No such command {args[0]!r}{right}", ctx)
        if args[0] not in TASKS and os.path.exists(args[0]):
            raise click.UsageError(f"{args[0]!r} is a file; before it comes the task, one of {', '.join(TASKS)}", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> Any:
        return TASKS

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
    kind = kind_by_content(path) or read_header(path).kind
    if kind in KINDS:
        task = task_of("sequence.programs")
    elif kind in TASKS:
        task = task_of(kind)
    else:
        known = f"the command line knows {', '.join(TASKS)}"
        raise click.ClickException(f"{path}: a model of the task {kind!r}, which structsvm.load opens; {known}")
    undrawn = task.undrawn.get(click.get_current_context().info_name or "")
    if plot and undrawn:
        raise ValueError(f"--plot {undrawn}")
    return task, task.load(path)


MODEL = click.argument("model", type=FILE)
EXPORTED = "SequenceLabeler, TaxonomyClassifier, AmbiguousClassifier and DependencyParser"
INPUT = click.argument("input", type=FILE_OR_STDIN)


def threads(_context: Any, _option: Any, n_jobs: int) -> int:
    """The number of threads for --jobs."""
    if n_jobs == 0:
        raise click.BadParameter("0 is no number of threads")
    if n_jobs == 1:
        return 1
    from structsvm.dual.parallel import n_threads

    return n_threads(n_jobs)


SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)
JOBS = click.option(
    *("-j", "--jobs"),
    type=click.IntRange(-1),
    default=1,
    show_default=True,
    callback=threads,
    help="Threads; -1: one per core.",
)


def of_columns(command: Any) -> Any:
    """Decorate a command with the options of column files."""
    for option in reversed(COLUMNS):
        command = option(command)
    return command


def check_columns(task: Task, given: dict[str, Any]) -> None:
    """Remove what `out.source` and `out.reading` take; UsageError for columns of other files than column files."""
    for name in pop_columns(given):
        if not task.has_columns:
            raise click.UsageError(f"--{name.replace('_', '-')} is for models of column files")


def pop_columns(given: dict[str, Any]) -> list[str]:
    """Remove what `out.source` and `out.reading` take, and return the names of options of column files."""
    given.pop("encoding")
    return [name for name in ("columns", "label", "sequence", "sentence_end") if given.pop(name) is not None]


def labels_alone(path: str, *, confidence: bool, **wanted: Any) -> Any:
    """The function that writes labels by a chain, without what trains; None where more is wanted, or another model."""
    if any(wanted[name] for name in ("kbest", "pretty", "constraints")):
        return None
    check_files()
    if kind_by_content(path) is not None or read_header(path).kind != "sequence":
        return None
    prediction = importlib.import_module("structsvm.cli.sequence.prediction")
    model = prediction.opened(path, needs_probabilities=confidence)
    return None if model is None else partial(prediction.predict, model)


def check_wanted(task: Task, *, abstain: bool, abstain_below: float | None, **wanted: Any) -> None:
    """Raise UsageError for what models of a task do not write."""
    if abstain and abstain_below is not None:
        raise click.UsageError("--abstain and --abstain-below do not go together")
    selects = abstain or abstain_below is not None
    if selects and (wanted["kbest"] or wanted["confidence"] or wanted["pretty"] or wanted["constraints"]):
        name = "--abstain" if abstain else "--abstain-below"
        raise click.UsageError(f"{name} goes without --kbest, --confidence, --pretty and --constraints")
    if wanted["pretty"] and not task.has_trees:
        raise click.UsageError("--pretty is for models that predict trees")
    if wanted["constraints"] and not task.has_constraints:
        raise click.UsageError("--constraints is for models that label sequences or graphs")
    if wanted["constraints"] and wanted["kbest"] and not task.has_columns:
        raise click.UsageError("--constraints and --kbest do not go together")
    if wanted["confidence"] and not task.has_probabilities:
        raise click.UsageError("--confidence is for models that have probabilities")


@main.command()
@MODEL
@INPUT
@click.option("-o", "--output", type=TEXT, help="File to write to; - is standard output, the default.")
@click.option("-k", "--kbest", type=click.IntRange(1), help="Write the k best outputs with their scores.")
@JOBS
@click.option("--confidence", is_flag=True, help="Write the probability of each output; with -k, instead of its score.")
@click.option("--pretty", is_flag=True, help="Trees: write them as indented text.")
@click.option("--abstain", is_flag=True, help="Write _ where the model is not sure enough: see calibrate.")
@click.option("--abstain-below", type=float, help="Write _ where an output's probability, or margin, is lower.")
@click.option(
    "--constraints",
    type=FILE,
    help="Rules that labels meet: of sequences one per line, of graphs a JSON list per graph.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
@ENCODING
@of_columns
def predict(
    model: Any, input: Any, output: str | None, quiet: bool, abstain: bool, abstain_below: float | None, **wanted: Any
) -> None:
    """Label, parse, align or rank INPUT with MODEL."""
    selects = abstain or abstain_below is not None
    path, write = model, None if selects else labels_alone(model, **wanted)
    if write is None:
        task, model = opened(path)
        check_wanted(task, abstain=abstain, abstain_below=abstain_below, **wanted)
        write = partial(task.predict, model)
        check_columns(task, wanted)
    else:
        pop_columns(wanted)
    with brief_warnings(quiet), writing(output) as stream, naming(input), product_threads(wanted["jobs"]):
        if selects:
            from structsvm.cli.promises import selective

            stream.writelines(selective(path, input, abstain_below))
        else:
            stream.writelines(write(input, Wanted(**wanted)))


@main.command()
@MODEL
@INPUT
@click.option(
    "--risk",
    type=SHARE,
    default=0.01,
    show_default=True,
    help="Greatest share of wrong answers, or mean of --loss parts.",
)
@click.option("--delta", type=SHARE, default=0.05, show_default=True, help="Probability that more of them are wrong.")
@click.option(
    "--loss",
    type=click.Choice(["wrong", "parts"]),
    default="wrong",
    show_default=True,
    help="Count wrong answers, or the share of wrong parts (brackets, entities, arcs, labels) as a mean over answers.",
)
@click.option("-o", "--output", type=Output(replaces="model"), help="File to write to.  [default: MODEL]")
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
@ENCODING
@of_columns
def calibrate(
    model: Any,
    input: Any,
    risk: float,
    delta: float,
    loss: Literal["wrong", "parts"],
    output: str | None,
    quiet: bool,
    **given: Any,
) -> None:
    """Find where MODEL is sure enough, on true outputs in INPUT that it was not trained on.

    predict --abstain then answers only there. With probability 1 - --delta at most a share --risk of its answers is
    wrong; with --loss parts the share of wrong parts in an answer is at most --risk as a mean over answers.
    """
    task, _ = opened(model)
    check_columns(task, given)
    from structsvm.cli.promises import calibrated

    with naming(input), brief_warnings(quiet):
        click.echo(calibrated(model, input, output or model, risk, delta, loss))


@main.command()
@MODEL
@INPUT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@JOBS
@click.option("--plot", type=NEW, help="Save a picture: confusions, a wrong tree, or NDCG by place.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the scores: no warnings, no path of a picture.")
@click.option("--query", type=FILE, help="Rankings: query sizes of INPUT, one per line.  [default: INPUT.query]")
@click.option("--unknown", type=Mark(), help="Mark of labels that are not known.  [default: the model's]")
@click.option("--constraints", type=FILE, help="Rules that predicted labels meet: see predict.")
@ENCODING
@of_columns
def evaluate(model: Any, input: Any, as_json: bool, jobs: int, plot: str | None, quiet: bool, **given: Any) -> None:
    """Compare MODEL's predictions with the true outputs in INPUT."""
    check_stdout()
    task, model = opened(model, plot)
    if given["query"] and not task.has_queries:
        raise click.UsageError("--query is for models that rank the rows of queries")
    if given["constraints"] and not task.has_constraints:
        raise click.UsageError("--constraints is for models that label sequences or graphs")
    check_columns(task, given)
    mark = given.pop("unknown")
    own = {
        name: given[name] for name in ("query", "constraints") if given[name] or (name == "query" and task.has_queries)
    }
    if click.get_current_context().get_parameter_source("unknown") is not click.core.ParameterSource.DEFAULT:
        if not task.has_unknown:
            raise click.UsageError("--unknown is for models whose labels may be unknown")
        model.set_params(unknown=mark) if hasattr(model, "set_params") else model.params.update(unknown=mark)
    with naming(input), brief_warnings(quiet), product_threads(jobs):
        scores, text, draw = task.evaluate(model, input, jobs, **own)
        click.echo(json.dumps(scores) if as_json else text)
        if plot:
            save(draw(), plot, say=(lambda _: None) if quiet else partial(click.echo, err=True))


@main.command()
@MODEL
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Features to show for each label.")
@click.option("--label", multiple=True, help="Show only these labels.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plot", type=NEW, help="Save training history and transitions as a picture.")
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings, and no path of a picture.")
def inspect(model: Any, top: int, label: Any, as_json: bool, plot: str | None, quiet: bool) -> None:
    """Show the contents of MODEL: its certificate, parameters and heaviest weights."""
    check_stdout()
    path = model
    task, model = opened(path, plot)
    sizes = None if kind_by_content(path) else read_header(path).sizes
    figure = task.picture(model) if plot else None
    with naming(path), brief_warnings(quiet):
        promise = promise_in(path)
        if as_json:
            of = task.contents or contents
            found = of(getattr(model, "model_", model), top, label)
            more = {"promise": promise, "bytes": sizes}
            click.echo(json.dumps(found | {name: value for name, value in more.items() if value is not None}))
        else:
            task.inspect(model, top, label)
            if promise is not None:
                click.echo(f"\n{said(promise)}")
            if sizes is not None:
                click.echo(f"\nbytes: {', '.join(f'{name} {size:,}' for name, size in sizes.items())}")
        if plot:
            save(figure, plot, say=(lambda _: None) if quiet else click.echo)


def promise_in(path: str) -> Any:
    """The promise that a model file has, as its header names it; None without one, and of other programs' files."""
    found = None if kind_by_content(path) else read_header(path).meta.get("guarantee")
    return found if isinstance(found, dict) else None


def said(promise: Any) -> str:
    """A promise as text: its class, parameters and what was found on how many held-out outputs."""
    params = ", ".join(f"{name}={value!r}" for name, value in promise["params"].items() if value is not None)
    values = ", ".join(f"{name} {value}" for name, value in promise["values"].items())
    return f"promise: {promise['promise']}({params}): {values}"


def contents(model: Any, top: int, labels: Any) -> dict[str, Any]:
    """Contents that `inspect --json` prints of a model; without weights if features have no names."""
    found: dict[str, Any] = {"task": model.kind, "estimator": model.estimator, "C": model.C}
    found["params"] = {name: plain(value) for name, value in model.params.items()}
    if rules := getattr(model, "rules", None):
        found["rules"] = [{"rule": words, "states": n_states} for words, n_states in rules]
    found["result"] = None
    if model.result is not None:
        names = ("primal", "dual", "gap", "n_iter", "n_argmax", "n_support", "seconds", "status")
        found["result"] = {name: plain(getattr(model.result, name)) for name in names}
    try:
        table = model.weight_table()
    except TypeError:
        return found
    shown = chosen(labels, table.labels)
    found["n_features"] = len(table.features)
    found["weights"] = {name: table.top(table.labels[k], top) for k, name in shown}
    return found


def plain(value: Any) -> Any:
    """A value for JSON, which has no NaN and no infinity; objects become text."""
    value = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return (value if isfinite(value) else None) if isinstance(value, float) else str(value)


@main.command()
@MODEL
@click.argument("out", type=NEW)
@click.option("--to", type=NameChoice([*KINDS, "own"]), help="Kind of OUT.  [default: by the end of its name]")
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
def convert(model: Any, out: str, to: str | None, quiet: bool) -> None:
    """Write MODEL as the model file of another program, to OUT; or theirs as one of ours.

    MODEL is a label-sequence model that was trained here, or a file of Wapiti, CRF++ or CRFsuite. A model that the
    other program has no counterpart of is refused, with the reason. Ours end in .model; models of attributes become
    such ones, which training goes on with.
    """
    check_files()
    if to is None and kind_by_name(out) is None:
        endings = ", ".join([*(ending for kind in KINDS.values() for ending in kind.endings), OWN])
        raise click.UsageError(f"--to names the kind of {out}, which does not end in one of {endings}")
    task, found = opened(model)
    if task not in (task_of("sequence.programs"), task_of("sequence")):
        raise click.ClickException(f"{model}: other programs have models of label sequences alone")
    with naming(model), brief_warnings(quiet):
        write_chain(found, out, to)


main.add_command(annotate)
main.add_command(serve)


@main.command()
@MODEL
@click.option("--to", type=NameChoice([*TARGETS]), required=True, help="What to write.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    required=True,
    help="Folder to write to; it is made if it is missing.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
def export(model: Any, to: str, output: str, quiet: bool) -> None:
    """Write MODEL, of label sequences, classes, candidate labels or dependency trees, for programs without Python.

    c: a source in C99, its header and model.bin. wasm: WebAssembly, a module in JavaScript and model.bin; zig compiles
    it (pip install 'structured-svm[wasm]'). page: all of these in one page for browsers. json, of sequences: names and
    weights.
    """
    check_files()
    with naming(model), brief_warnings(quiet):
        found = load_estimator(model)
        if not hasattr(found, "export"):
            raise click.ClickException(f"{model}: a {type(found).__name__}, and models of {EXPORTED} are exported")
        found.export(output, to)


@main.command()
@click.argument("task", type=NameChoice(TASKS), required=False)
@click.option("-o", "--output", type=NEW, default="structsvm-demo.png", show_default=True, help="Picture to save.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def demo(task: Any, output: str, seed: int) -> None:
    """Train on simulated data, print the scores, save a picture.

    Without a TASK, a small model of each: a table of their scores and certificates, and a picture of the structures
    that they predict.
    """
    check_files()
    drawable(output)
    if task is not None:
        own: Any = task_of(task)
        save(own.demo(seed), output)
        return
    from structsvm.cli.tour import families, pictures

    found = []
    for family in families.families(seed):
        click.echo(f"{family.name}: {family.score}")
        found.append(family)
    click.echo("\n" + pictures.table(found))
    save(pictures.page(found, blank(13, 10)), output)


@main.command()
@click.argument("shell", type=NameChoice(["bash", "zsh", "fish"]))
@click.option("--install", is_flag=True, help="Write it to where the shell looks for it, in your home directory.")
def completion(shell: str, install: bool) -> None:
    """Print a script that makes SHELL complete commands, tasks, options and file names.

    bash needs the package bash-completion, zsh the line `fpath+=~/.zfunc` before `compinit` in ~/.zshrc.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)(main, {}, "structsvm", "_STRUCTSVM_COMPLETE").source()  # type: ignore[misc]
    if not install:
        click.echo(script)
        return
    path = Path.home() / COMPLETIONS[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, "w", encoding="utf-8") as file:
        file.write(script)
    click.echo(f"{path}: in effect in new shells")
