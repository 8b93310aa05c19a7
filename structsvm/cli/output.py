"""Input and output of commands: standard input, files that appear whole or not at all, scores, weights, pictures."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import click
import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.tables.forms import Reading
from structsvm.features.text.encodings import Encoded
from structsvm.files.new_file import check_new_file, new_file
from structsvm.parameters import did_you_mean, printable


class NameChoice(click.Choice):  # type: ignore[type-arg]  # click 8.1 takes none
    """A choice among names: the error about an unknown name suggests the one that was probably meant."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = did_you_mean(value, self.choices)
            raise click.BadParameter(error.message.removesuffix(".") + near, ctx, param) from None


class OtherNames(NameChoice):
    """A choice among names that are also known by others."""

    def __init__(self, names: Iterable[str], others: Callable[[str], str | None]) -> None:
        super().__init__(list(names))
        self.others = others

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return super().convert(self.others(value) or value, param, ctx)


class Mark(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """The mark of unknown labels: a number, `none`, or any other text."""

    name = "mark"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from structsvm.metrics._counts import number_of  # with all metrics, which prediction needs not

        number = number_of(value)
        if number is None:
            return None if value == "none" else value
        return int(number) if number.is_integer() else number


class Input(click.Path):
    """The type of parameters that name a file to read; without `exists`, also those that may name something else."""


class Output(click.Path):
    """The type of parameters that name a file to write.

    Parameters
    ----------
    stream : bool
        Whether it may also be a device or a pipe, such as /dev/stdout, which is written as the text comes.
    replaces : str, optional
        The parameter whose file may be replaced by this one.
    """

    def __init__(self, *, stream: bool = False, replaces: str | None = None) -> None:
        super().__init__(dir_okay=False)
        self.stream, self.replaces = stream, replaces


class NewFolder(click.Path):
    """The type of parameters that name a folder to make."""


FILE, NEW, TEXT = Input(exists=True, dir_okay=False), Output(), Output(stream=True)
FILE_OR_STDIN = Input(exists=True, dir_okay=False, allow_dash=True)
ENCODING = click.option(
    "--encoding", help="Encoding of the text, such as latin-1.  [default: UTF-8, or what its byte-order mark says]"
)
# Columns of column files, and ends of their sequences: `reading`.
COLUMNS = (
    click.option("--columns", help="Columns of tokens: numbers from 1 or names, separated by commas.  [default: all]"),
    click.option("--label", help="Column of labels: a number from 1 or a name.  [default: the last; CoNLL-U: upos]"),
    click.option("--sequence", help="Column that names the sequence of each token, in place of blank lines."),
    click.option("--sentence-end", help="Tokens after which a sequence ends, separated by blanks; '': none."),
)


def source(path: str) -> Any:
    """The path, or the bytes of standard input for "-", with the encoding that --encoding names."""
    if path == "-" and sys.stdin is None:
        raise ValueError("standard input is closed")
    found = click.get_binary_stream("stdin") if path == "-" else path  # type: ignore[operator]
    encoding = _given().get("encoding")
    return found if encoding is None else Encoded(found, encoding)


def _given() -> dict[str, Any]:
    """The parameters of the current command; none outside of one."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.params


def reading(before: Reading | None = None) -> Reading:
    """The options `COLUMNS` of the current command; those not given are as `before`."""
    given, own = _given(), before or Reading()
    columns, ends = given.get("columns"), given.get("sentence_end")
    return Reading(
        own.columns if columns is None else tuple(name.strip() for name in columns.split(",")),
        given.get("label") or own.label,
        given.get("sequence") or own.sequence,
        own.sentence_end if ends is None else tuple(ends.split()),
        own.left_out,
    )


def named_files(context: Any) -> list[tuple[Any, Any]]:
    """The parameters of a command that are given and name files or folders, and these."""
    return [
        (p, context.params[p.name])
        for p in context.command.params
        if isinstance(p.type, (Input, Output, NewFolder)) and context.params.get(p.name) is not None
    ]


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turns errors about a given parameter into click.UsageError about its option; others name a file, or `path`."""
    try:
        yield
    except ValueError as error:
        context, text = click.get_current_context(), " ".join(str(error).splitlines())
        found = re.match(r"(?:The )?'?(\w+)'?(?: parameter)?", text)
        for option in context.command.params:
            source = context.get_parameter_source(option.name or "")
            is_given = source is click.core.ParameterSource.COMMANDLINE and not isinstance(option.type, click.Path)
            if found and option.name == found[1] and is_given:
                raise click.UsageError(option.opts[-1] + text[found.end() :]) from error
        names = "|".join(re.escape(os.fspath(name)) for _, name in named_files(context))
        if re.search(rf"--|^The '|^standard |<stdin>|(^|[ '])({names})($|[ ':,/])", text):
            raise
        raise click.ClickException(f"{'<stdin>' if path == '-' else path}: {text}") from error


def check_files() -> None:
    """Before the current command starts: check its `Input`, `Output` and `NewFolder` parameters.

    Raises
    ------
    click.UsageError
        If an output is one of the inputs, which would be lost, or lies in a folder that is read or made, or two outputs
        are the same.
    OSError
        If an output cannot be written.
    """
    context = click.get_current_context()
    files = named_files(context)
    for output, path in files:
        if isinstance(output.type, Input):
            continue
        for other, place in files:
            if other is output or other.name == getattr(output.type, "replaces", None):
                continue
            names = f"{output.get_error_hint(context)} {{}} {other.get_error_hint(context)}"
            if isinstance(other.type, Input):
                is_same = _same_file(path, place)
            else:  # neither may be there yet
                is_same = os.path.realpath(path) == os.path.realpath(place)
            if is_same:
                raise click.UsageError(f"{names.format('and')} are the same file, {path}, of which one would be lost")
            is_folder = isinstance(other.type, NewFolder) or os.path.isdir(place)
            if is_folder and Path(place).resolve() in Path(path).resolve().parents:
                where = names.format(f"is {path}, in the folder")
                raise click.UsageError(f"{where}, whose files nothing may replace")
        if not path:
            raise click.UsageError(f"{output.get_error_hint(context)} is empty: expected the name of a file")
        if isinstance(output.type, Output) and not (output.type.stream and (path == "-" or _is_stream(path))):
            check_new_file(path)


def _same_file(path: str, other: str) -> bool:
    """Whether two paths lead to the same file; "-" is standard input."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other))
    except (OSError, ValueError):  # one of them is not there, but for what `realpath` makes of it; or a closed input
        return other != "-" and os.path.exists(other) and os.path.realpath(path) == os.path.realpath(other)


def _is_stream(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def check_stdout() -> None:
    """Raise ValueError if standard output is closed."""
    if sys.stdout is None:
        raise ValueError("standard output is closed")


@contextmanager
def writing(output: str | None) -> Iterator[Any]:
    """Standard output (None, "-"), or a file that appears under its name only when it is complete; UTF-8 either way."""
    if output in (None, "-"):
        check_stdout()
        stream = click.get_text_stream("stdout", encoding="utf-8")  # type: ignore[operator]
        yield stream
        stream.flush()
        return
    with (open if _is_stream(output) else new_file)(output, "w", encoding="utf-8") as stream:
        yield stream


def drop_errors() -> None:
    """Let standard error lead nowhere, for the whole process."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


@contextmanager
def brief_warnings(quiet: bool = False) -> Iterator[None]:
    """Warnings in one line each on standard error, or not at all: one that cannot be written ends nothing."""

    def show(message: Any) -> None:
        try:
            click.echo(f"warning: {message}", err=True)
        except OSError:  # and what is in the buffer would be an error at exit
            drop_errors()

    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        warnings.showwarning = lambda message, *_: show(message)
        yield


@contextmanager
def held_interrupts(wanted: bool = True) -> Iterator[list[int]]:
    """Finish what the first Ctrl-C comes upon; yields a list that is empty if none came. A second one is not held."""
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)

    def hold(number: int, _frame: Any) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, handler)

    if not wanted or handler is not signal.default_int_handler:  # it is ignored, or somebody else's
        yield came
        return
    signal.signal(signal.SIGINT, hold)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, handler)


def best(labels: Any, scores: Any, kbest: int | None, *, confidence: bool = False) -> Iterator[str]:
    """A line per row of scores: its best label, or the `kbest` best ones with their scores.

    With `confidence` the scores are probabilities, and that of a single label is in a column after it.
    """
    for row in scores:
        order = np.argsort(-row, kind="stable")[: kbest or 1]
        if kbest is None and confidence:
            yield f"{labels[order[0]]}\t{row[order[0]]:.6f}\n"
        else:
            yield "\t".join(f"{labels[k]}" if kbest is None else f"{labels[k]} {row[k]:.6f}" for k in order) + "\n"


def named(scores: Any, *names: str) -> dict[str, Any]:
    """Some scores, by their names."""
    return {name: getattr(scores, name) for name in names}


def widened(X: Any, path: str, n_features: int) -> Any:
    """The sparse matrix of a file with the columns of a model; a warning says how many rows have others."""
    if X.shape[1] > n_features:
        beyond = np.diff(np.concatenate([[0], np.cumsum(X.indices >= n_features)])[X.indptr]) > 0
        is_shifted = X.shape[1] == n_features + 1 and not (X.indices == 0).any()
        hint = "; do its indices begin with 1, where those of training begin with 0?" * is_shifted
        warn(
            f"{path}: {beyond.sum()} of {len(beyond)} rows have features beyond the {n_features} of training (up to "
            f"number {X.shape[1]}), which are ignored{hint}",
            AdviceWarning,
        )
    X.resize(X.shape[0], n_features)
    return X


def say_other_units(X: Any, model: Any) -> None:
    """Warn of a prediction for rows in other units than those of training, as estimators do."""
    from structsvm.tasks.common.units import warn_of_other_units

    if model.usual_sizes is not None:
        warn_of_other_units(X, model.usual_sizes)


def first_index(model: Any) -> int:
    """The index of a model's first feature in files."""
    return 1 if model.first_index is None else int(model.first_index)


# ---- models as text -----------------------------------------------------------------------------


def chosen(only: Sequence[str], names: Any, what: str = "labels", *, listed: bool = True) -> list[tuple[int, str]]:
    """The names of --label, or all, as pairs ``(k, name to print)``; ValueError, which lists them, for another one."""
    names = list(map(str, names))
    unknown = next((name for name in only if name not in names), None)
    if unknown is not None:
        near = did_you_mean(unknown, names)
        raise ValueError(f"{unknown!r} is not one of the {what}" + (f" {', '.join(names)}" if listed else "") + near)
    return [(k, printable(name)) for k, name in enumerate(names) if not only or name in only]


def parameters(params: dict[str, Any], defaults: Any) -> None:
    """Print the parameters that are not the defaults."""
    changed = {k: v for k, v in params.items() if k not in defaults or (v is not defaults[k] and v != defaults[k])}
    click.echo("parameters: " + (", ".join(f"{k}={shorten(repr(v), 60)}" for k, v in changed.items()) or "defaults"))


def heading(model: Any, text: str, defaults: Any = None, more: str = "", *, describe: Any = None) -> None:
    """Describe a model: its parameters that are not the defaults, more about it, and its `certificate`."""
    click.echo(printable(text))
    if defaults is not None:
        parameters(model.params, defaults)
    if more:
        click.echo(printable(more))
    certificate(model, describe)


def certificate(model: Any, describe: Any = None) -> None:
    """Print how C was chosen, if it was, and the certificate of a trained model, or ``describe(model)``."""
    if model.choice is not None:
        click.echo(model.choice.text)
    if model.result is not None:
        click.echo(describe(model) if describe else model.result.certificate())


def certificates(model: Any) -> str:
    """A line per training."""
    if len(model.results) < 2:
        return model.result.certificate()
    return "\n".join(f"loss {loss}: {result.certificate()}" for loss, result in model.results.items())


def heaviest(weights: Any, top: int, name: Any, precision: str = ".3f") -> None:
    """Print the `top` greatest positive and the `top` least negative weights; ``name(j)`` is that of the j-th."""
    for sign, column in (("+", weights), ("-", -weights)):
        best = [j for j in np.argsort(-column, kind="stable")[:top] if column[j] > 0.0]
        click.echo(f"  {sign} " + "  ".join(f"{printable(name(j))} {column[j]:{precision}}" for j in best))


# ---- pictures -----------------------------------------------------------------------------------


def drawable(output: str | None) -> None:
    """Before the work: raise ImportError or ValueError if a picture of such a name could not be drawn after it."""
    if output is None:
        return
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'structured-svm[plot]'") from None
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if Path(output).suffix[1:].lower() not in known:
        raise ValueError(f"{output}: a picture's name ends in one of {', '.join('.' + kind for kind in known)}")


def blank(width: float, height: float) -> Any:
    """An empty figure, in inches; without pyplot, which would look for a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, output: str, *, say: Any = click.echo) -> None:
    """Write a figure, whole or not at all, and print its path."""
    with new_file(output) as file:
        figure.savefig(file, dpi=120, format=Path(output).suffix[1:].lower())
    say(f"picture: {output}")


def history(model: Any, figure: Any = None) -> Any:
    """Draw the objectives and the gap over time, on a new figure or on a part of one; returns it."""
    from structsvm.plotting import HistoryDisplay

    if model.result is None:
        raise ValueError("--plot: the model has no training history")
    figure = blank(7, 6) if figure is None else figure
    HistoryDisplay(model.result.history).plot(ax=figure.subplots(2, sharex=True, height_ratios=(3, 2)))
    return figure


def compared(display: str, size: tuple[float, float], *outputs: Any, **grid: Any) -> Any:
    """Draw true and predicted outputs with a display of `structsvm.plotting`, on subplots in such a grid."""
    figure = blank(*size)
    cls = getattr(importlib.import_module("structsvm.plotting"), display)
    cls.from_predictions(*outputs, ax=figure.subplots(**grid))
    return figure


def first_wrong(
    display: str, true: Any, predicted: Any, n_words: Any, per_word: float, height: float, **grid: Any
) -> Any:
    """As `compared`, the first true and predicted tree that differ, or the first one where none does."""
    pair = next((pair for pair in zip(true, predicted, strict=True) if pair[0] != pair[1]), (true[0], predicted[0]))
    return compared(display, (min(max(per_word * n_words(pair[0]), 6.0), 40.0), height), *pair, **grid)
