"""What commands write: files that appear whole or not at all, and pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


def check_writable(path: str | os.PathLike[str]) -> None:
    """Say before training, not after it, that a file cannot be written."""
    if path is None:
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the folder {folder} cannot be written to")


@contextmanager
def writing(output: Any) -> Iterator[Any]:
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


def drawable(output: Any) -> None:
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


def blank(width: Any, height: Any) -> Any:
    """An empty figure, in inches; without pyplot, which would look for a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, output: Any, *, say: Any = click.echo) -> None:
    """Write a figure, and say where it is."""
    figure.savefig(output, dpi=120)
    say(f"picture: {output}")
