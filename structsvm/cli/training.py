"""Options, messages, the training itself and the exit status of the commands that train."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any, Self

import click

import structsvm.cli.output as out
from structsvm.arrays import MAX_COUNT
from structsvm.checkpoint import Checkpoint
from structsvm.dual.parallel import n_threads
from structsvm.execution.products import product_threads
from structsvm.features.inputs.places import located, place_of
from structsvm.parameters import FLAG, Interval, Options, ParameterGroup, constraints_of
from structsvm.progress import Bar
from structsvm.shards.base import DEFAULT_MEMORY
from structsvm.tasks.common.labels import warn_of_odd_labels
from structsvm.tasks.common.parameters import OF_C, Limits
from structsvm.tasks.common.solver import AUTO, SOLVERS, Settings, is_to_choose
from structsvm.tasks.common.training import Job, train

WARM_START = """Continue from this model, whose parameters are the defaults: resume its run on the file that it was
trained on, start from what it has learnt on others. --model may replace it."""

# A model may replace the one that it continues: the file appears whole, and the one before stays until then.
MODEL = out.Output(replaces="warm_start")

# Options that are no parameters of a model.
NOT_OF_MODELS = ("model", "quiet", "warm_start", "training_state", "plot", "checkpoint_every", "encoding")


class Number(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A number that an interval accepts, or one of a few words."""

    name = "float"

    def __init__(self, interval: Interval, words: Sequence[str] = ()) -> None:
        self.interval, self.words = interval, words

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in self.words:
            return value
        with suppress(ValueError):
            if self.interval.accepts(float(value)):
                return float(value)
        return self.fail(f"{value!r} is not {' or '.join([*self.words, str(self.interval)])}", param, ctx)


def choice(name: Any, *values: str, text: str | None = None) -> Any:
    """An option that is one of these values, by default the first."""
    return click.option(name, type=out.NameChoice(values), default=values[0], show_default=True, help=text)


def count(name: Any, default: Any, text: str, *param: str, least: int = 1) -> Any:
    """An option that is an integer, `least` or more; `param` is the name of its parameter if it is another one."""
    return click.option(name, *param, type=click.IntRange(least), default=default, show_default=True, help=text)


def flag(name: Any, text: str) -> Any:
    """An option without a value."""
    return click.option(name, is_flag=True, default=False, help=text)


def optional(name: Any, kind: Any, text: str) -> Any:
    """An option of a type, None where it is not given; a type None has "--yes/--no" without a value."""
    return click.option(name, type=kind, default=None, help=text)


def option_of(of: Any, name: str, text: str | None = None, option: str | None = None) -> Any:
    """The option of a parameter of the class `of`, which is `declared`: its type, choices and default.

    `option` is its name if it is another one than the parameter's.
    """
    declared = field_of(of, name)
    default = declared.default
    option = option or "--" + name.replace("_", "-")
    if constraints_of(declared)[0] is FLAG:
        option += f"/--no-{option[2:]}" if default else ""
        return click.option(option, name, is_flag=True, default=default, show_default=default, help=text)
    kind = type_of(*constraints_of(declared), default=default)
    return click.option(option, name, type=kind, default=default, show_default=default is not None, help=text)


def given_of(of: Any, name: str, text: str = "", shown: str | None = None) -> Any:
    """As `option_of`, but None where it is not given; `shown` is the default in the help, if not the field's own."""
    declared = field_of(of, name)
    if shown is None and declared.default is not None:
        shown = declared.default if isinstance(declared.default, str) else f"{declared.default:g}"
    kind = type_of(*constraints_of(declared), default=declared.default)
    return optional("--" + name.replace("_", "-"), kind, text if shown is None else f"{text}  [default: {shown}]")


def field_of(of: Any, name: str) -> Any:
    """The field of a parameter of the class `of`."""
    return next(field for field in fields(of) if field.name == name)


def type_of(*constraints: Any, default: Any) -> Any:
    """The type of an option whose values one of the constraints accepts; of a few values, the default comes first."""
    for one in constraints:
        if isinstance(one, Options) and one.others is not None:
            return out.OtherNames(filter(None, one.values), one.others)
    words = [value for one in constraints if isinstance(one, Options) for value in one.values if value is not None]
    constraint: Any = next((one for one in constraints if isinstance(one, Interval)), None)
    if constraint is None:
        return out.NameChoice(sorted(words, key=lambda value: value != default))
    if words or constraint.low == -math.inf:
        return Number(constraint, words)
    high = None if constraint.high is None or constraint.high >= MAX_COUNT else constraint.high
    if constraint.plain is int:
        return click.IntRange(constraint.low, high)
    return click.FloatRange(constraint.low, high, min_open=constraint.closed in ("right", "neither"))


@dataclass
class InShards:
    """The options `SHARDS` of a training file; true if training is to go from shard to shard."""

    path: str
    folder: str | None
    megabytes: int | None

    @classmethod
    def taken(cls, path: str, params: dict[str, Any]) -> Self:
        """Remove the options from a command's parameters."""
        found = cls(path, params.pop("shards", None), params.pop("max_memory", None))
        if found.megabytes is not None and found.folder is None:
            raise click.UsageError("--max-memory needs --shards")
        return found

    def __bool__(self) -> bool:
        return self.folder is not None or os.path.isdir(self.path)

    def of(self, kind: Any, **given: Any) -> Any:
        """The shards in the folder that the path names, or new ones of its file; `given` is for `kind.make`."""
        if self.folder is None:
            return kind.open(self.path)
        if os.path.isdir(self.path):
            raise click.UsageError(f"--shards: {self.path} is a folder of shards itself")
        memory = DEFAULT_MEMORY if self.megabytes is None else self.megabytes * 10**6
        return kind.make(out.source(self.path), self.folder, max_memory=memory, **given)


SHARDS = (
    optional("--shards", out.NewFolder(), "Encode the data into files of this new folder, and train shard by shard."),
    optional("--max-memory", click.IntRange(1), "Megabytes of a shard.  [default: 268]"),
)


# The mark of unknown labels.
UNKNOWN = click.option(
    "--unknown",
    type=out.Mark(),
    default=AUTO,
    show_default=True,
    help="Mark of labels that are not known, as -100 always is; auto: -1; none: no other.",
)


def refuse(given: dict[str, Any], *rules: tuple[Any, str, str]) -> None:
    """Raise UsageError for a given option without effect: of rules (whether they have none, names, why)."""
    for option in click.get_current_context().command.params:
        for has_none, names, why in rules:
            if has_none and option.name in given and option.name in names.split():
                is_off = given[option.name] is False and option.secondary_opts
                raise click.UsageError(f"{(is_off or option.opts)[-1]} has no effect {why}")


def with_options(options: Sequence[Any], command: Any) -> Any:
    """Decorate a command with options, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def defaults(command: Any, *others: Any) -> dict[str, Any]:
    """Default parameters of a command's models; `others` are options beside `NOT_OF_MODELS` that are none."""
    options = [option for option in command.params if option.name not in (*NOT_OF_MODELS, *others)]
    values = {option.name: option.default for option in options if isinstance(option, click.Option)}
    # Where an option has no default, click has a value of its own.
    return {name: value if isinstance(value, (bool, int, float, str)) else None for name, value in values.items()}


def training(
    *,
    role_of_C: str = "Weight of the slacks; auto: chosen on held-out examples.",
    of_C: Sequence[Any] = OF_C,
    metavar: str = "TRAIN",
    file: out.Input = out.FILE,
    solvers: Sequence[str] = tuple(SOLVERS),
    plot: str | None = None,
) -> Any:
    """Decorate a task's function: the command ``structsvm train TASK TRAIN --model FILE`` with the common options.

    The function takes the `Training`, the path of the training file, whose type is `file`, and a dict of the other
    options that were given; it returns the exit status. Without `solvers` the task has its own algorithms, and no
    solver options; `of_C` are the constraints of C; `plot` is the help of --plot, None for commands without it.
    """
    options = [
        click.argument("train_file", metavar=metavar, type=file),
        click.option("-m", "--model", required=True, type=MODEL, help="File to write the model to."),
        click.option("-C", "C", type=type_of(*of_C, default=AUTO), default=AUTO, show_default=True, help=role_of_C),
        option_of(Limits, "max_iter", "Passes over the data."),
        count("--seed", 0, "Seed of the order of examples.", "random_state", least=0),
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
        out.ENCODING,
    ]
    if solvers:
        jobs = "Threads for batch solvers and the certificate."
        options += [
            choice("--solver", *solvers),
            option_of(Limits, "tol", "Stop at this relative duality gap."),
            click.option("--jobs", "n_jobs", type=click.IntRange(-1), help=jobs),
        ]
    options += [
        optional("--checkpoint", out.NEW, "Store the state of training here; resume from it."),
        count("--checkpoint-every", 1, "Passes between checkpoints."),
        optional("--warm-start", out.FILE, WARM_START),
        flag("--training-state", "Keep in the model file what a later --warm-start needs to resume this run."),
    ]
    options += [] if plot is None else [optional("--plot", out.NEW, plot)]

    def decorate(function: Any) -> Any:
        @wraps(function)
        def command(
            train_file: str, model: Any, quiet: bool, warm_start: str | None, plot: str | None = None, **params: Any
        ) -> None:
            out.check_files()
            out.drawable(plot)
            source, default = click.get_current_context().get_parameter_source, click.core.ParameterSource.DEFAULT
            params.pop("encoding")  # `out.source` takes it
            keeps_state = params.pop("training_state")
            given = {name: value for name, value in params.items() if source(name) is not default}
            job = Training(model, warm_start, plot, quiet, params["checkpoint"], keeps_state)
            refuse(given, (not job.checkpoint and "stream" not in given, "checkpoint_every", "without --checkpoint"))
            if job.checkpoint and "checkpoint_every" in given:
                given["checkpoint"] = Checkpoint(job.checkpoint, given.pop("checkpoint_every"))
            if given.get("n_jobs") == 0:
                raise click.UsageError("--jobs: 0 is no number of threads")
            try:
                threads = n_threads(given.get("n_jobs"))
                with out.naming(train_file), out.brief_warnings(quiet), located(job), product_threads(threads):
                    sys.exit(function(job, train_file, given))
            except KeyboardInterrupt:
                if not job.is_saved:
                    click.echo("no model was written", err=True)
                raise

        files = "Files that end in .gz, .xz or .bz2 are decompressed."
        return click.command(help=f"{cleandoc(function.__doc__)}\n\n{files}")(with_options(options, command))

    return decorate


def grouped(params: dict[str, Any], given: dict[str, Any], groups: dict[str, type[ParameterGroup]]) -> dict[str, Any]:
    """Parameters with the given options, those of groups in copies of the groups that the parameters have."""
    merged = params | given
    for name, kind in groups.items():
        options = {option: merged.pop(option) for option in kind.parameter_names() if option in merged}
        group = merged.get(name)
        own = group.get_params(deep=False) if isinstance(group, kind) else {}
        if changed := {option: value for option, value in options.items() if option in given}:
            merged[name] = kind(**own | changed)
        merged.setdefault(name, None)
    return merged


@dataclass
class Training:
    """One training on the command line, to its exit status."""

    model_path: str
    warm_start: str | None
    plot: str | None
    quiet: bool
    checkpoint: str | None
    keeps_state: bool = False
    read: Any = None  # the examples as they were read, whose places errors name
    is_saved: bool = False
    begin: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begin

    def place_of(self, i: int, number: int) -> str | None:
        """File and line of an example, see `structsvm.features.inputs.places`."""
        return place_of(self.read, i, number)

    def say(self, text: str) -> None:
        if not self.quiet:
            click.echo(text)

    def announce(self, text: str) -> None:
        """Print the size of the training data, and how long they took to read."""
        self.say(f"{text} ({self.seconds:.2f} s)")

    def start(
        self,
        load: Any,
        default_params: dict[str, Any],
        given: dict[str, Any],
        groups: dict[str, type[ParameterGroup]] | None = None,
    ) -> Any:
        """Return ``(before, settings)``: the model to continue from, or None, and the parameters as attributes.

        `groups` are the parameters whose values are groups; given options of their names go there.
        """
        before = None if self.warm_start is None else load(self.warm_start)
        params = default_params | ({} if before is None else before.params)
        return before, Settings(**grouped(params, given, groups or {}))

    def run(
        self, model: Any, examples: Any, solver: Any, params: dict[str, Any], doubt: str | None = None, **options: Any
    ) -> int:
        """Train a model, with a bar on terminals; returns the exit status of `end`.

        ValueError for examples from which a new model should not be learnt: their `doubt`.
        """
        if doubt is not None and not model.is_trained:
            raise ValueError(doubt)
        if not model.is_trained:
            warn_of_odd_labels(getattr(model, "labels", ()))
        model.params, model.n_unknown = params, examples.n_unknown
        if model.n_unknown:
            self.say(f"{model.n_unknown} labels are not known")
        choose = is_to_choose(Settings(**params), solver)
        job = Job(model, examples, solver, resume=self.warm_start is not None, choose=choose)
        run = train(job, Bar(job.most_passes, disable=True if self.quiet else None))
        interrupted = f"{run.progress:.1f} passes" if run.status == "interrupted" else None
        if interrupted and run.is_trial:
            interrupted += " over a part of the data, while C was chosen"
        return self.end(model, interrupted, **options)

    def end(self, model: Any, interrupted: str | None = None, *, describe: Any = None, draw: Any = out.history) -> int:
        """Save a model and print its certificate; returns the exit status: 130 if Ctrl-C came after so much of it.

        ``describe(model)`` returns the text about a trained model, ``draw(model)`` its picture.
        """
        path = self.model_path
        self.keeps_state |= interrupted is not None
        self.save(model, is_first=interrupted is None)
        if model.choice is not None:
            self.say(model.choice.text)
        if model.result is not None:
            self.say(describe(model) if describe else model.result.certificate())
        if interrupted is not None:
            partial = f"{path} holds the partial model; resume with --warm-start {path}"
            click.echo(f"interrupted after {interrupted}: {partial}", err=True)
        else:
            self.say(f"model: {path} ({Path(path).stat().st_size / 1e6:.1f} MB), {self.seconds:.2f} s in all")
        if self.plot:
            out.save(draw(model), self.plot, say=self.say)
        return 0 if interrupted is None else 130

    def save(self, model: Any, *, is_first: bool = True) -> None:
        """Save a model, and end with Ctrl-C after that, if it comes now and `is_first`.

        Where saving fails, the error says whether a checkpoint holds the work.
        """
        try:
            with out.held_interrupts(is_first) as came:
                model.save(self.model_path, training_state=self.keeps_state)
                self.is_saved = True
        except (OSError, ValueError, MemoryError) as error:
            where = "" if self.model_path in str(error) else f"{self.model_path}: "
            message = f"the model was not saved: {where}{error or 'not enough memory'}"
            if self.checkpoint is not None and os.path.exists(self.checkpoint):
                message += f"; {self.checkpoint} holds its training: run the command again to resume from there"
            raise click.ClickException(message) from error
        if came:
            click.echo(f"{self.model_path} holds the model", err=True)
            raise KeyboardInterrupt
