"""What commands read and write: standard input, files that appear whole or not at all, scores, weights, pictures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import click
import numpy as np


def source(path: str) -> Any:
    """The path, or the bytes of standard input for "-"."""
    return click.get_binary_stream("stdin") if path == "-" else path  # type: ignore[operator]


def check_writable(path: str) -> None:
    """Say before training, not after it, that a file cannot be written."""
    if path is None:
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the folder {folder} cannot be written to")


@contextmanager
def writing(output: str | None) -> Iterator[Any]:
    """Standard output, or a file that appears under its name only when it is complete; UTF-8 either way."""
    if output is None:
        stream = click.get_text_stream("stdout", encoding="utf-8")  # type: ignore[operator]
        yield stream
        stream.flush()
        return
    if os.path.exists(output) and not os.path.isfile(output):  # /dev/stdout, a pipe
        with open(output, "w", encoding="utf-8") as stream:
            yield stream
        return
    check_writable(output)
    output = os.path.realpath(output)  # a link stays, what it points to is replaced
    temporary = Path(f"{output}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            yield stream
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


def write_best(stream: Any, labels: Any, scores: Any, kbest: int | None) -> None:
    """Write the label of highest score for each row of scores, or the `kbest` best ones with their scores."""
    for row in scores:
        best = np.argsort(-row, kind="stable")[: kbest or 1]
        stream.write("\t".join(f"{labels[k]}" if kbest is None else f"{labels[k]} {row[k]:.6f}" for k in best) + "\n")


# ---- scores and models as text ------------------------------------------------------------------


def scores(found: Any, as_json: bool, text: str) -> None:
    """Print scores as a JSON object, or as a text."""
    click.echo(json.dumps(found) if as_json else text)


def chosen(only: Sequence[str], names: Any, what: str = "labels", *, listed: bool = True) -> list[tuple[int, str]]:
    """The names of --label, or all, as pairs ``(k, name)``; ValueError, which lists the names, for another one."""
    names = list(map(str, names))
    unknown = next((name for name in only if name not in names), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is not one of the {what}" + (f" {', '.join(names)}" if listed else ""))
    return [(k, name) for k, name in enumerate(names) if not only or name in only]


def parameters(params: dict[str, Any], defaults: Any) -> None:
    """Print the parameters that are not the defaults."""
    told = {k: v for k, v in params.items() if k not in defaults or (v is not defaults[k] and v != defaults[k])}
    click.echo("parameters: " + (", ".join(f"{k}={shorten(repr(v), 60)}" for k, v in told.items()) or "defaults"))


def certificate(model: Any) -> None:
    """Print what a training came to, if there was one."""
    if model.result is not None:
        click.echo(model.result.certificate())


def heaviest(weights: Any, top: int, name: Any, precision: str = ".3f") -> None:
    """Print the `top` greatest positive and the `top` least negative weights; ``name(j)`` is that of the j-th."""
    for sign, column in (("+", weights), ("-", -weights)):
        best = [j for j in np.argsort(-column, kind="stable")[:top] if column[j] > 0.0]
        click.echo(f"  {sign} " + "  ".join(f"{name(j)} {column[j]:{precision}}" for j in best))


# ---- pictures -----------------------------------------------------------------------------------


def drawable(output: str | None) -> None:
    """Raise OSError or ValueError, before the work, if a picture could not be saved after it."""
    if output is None:
        return
    check_writable(output)
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise OSError("pictures need matplotlib: pip install 'structsvm[plot]'") from None
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if Path(output).suffix[1:].lower() not in known:
        raise ValueError(f"{output}: a picture's name ends in one of {', '.join('.' + kind for kind in known)}")


def blank(width: float, height: float) -> Any:
    """An empty figure, in inches; without pyplot, which would look for a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, output: str | None, *, say: Any = click.echo) -> None:
    """Write a figure, and say where it is."""
    figure.savefig(output, dpi=120)
    say(f"picture: {output}")


def note(text: str) -> None:
    """Say something where standard output has the scores."""
    click.echo(text, err=True)


def history(model: Any, output: str | None, *, say: Any = click.echo) -> None:
    """Save the objectives and the gap over time."""
    from structsvm.plotting import HistoryDisplay

    figure = blank(7, 6)
    HistoryDisplay(model.result.history).plot(ax=figure.subplots(2, sharex=True, height_ratios=(3, 2)))
    save(figure, output, say=say)


def confusions(gold: Any, predicted: Any, output: str | None) -> None:
    """Save the confusion matrix of lists of labels, if there is an output."""
    if output is None:
        return
    from structsvm.plotting import ConfusionDisplay

    figure = blank(7, 6)
    ConfusionDisplay.from_predictions(gold, predicted, ax=figure.add_subplot())
    save(figure, output, say=note)
