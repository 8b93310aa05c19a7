"""Colours of the two themes, and what all pictures draw with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt


class Ink(NamedTuple):
    """Colours of a theme: text, faint lines, the ground of boxes, and three that colour-blind readers tell apart."""

    text: str
    faint: str
    ground: str
    blue: str
    orange: str
    green: str


THEMES = {
    "light": Ink("#1f2328", "#8a9199", "#eef1f4", "#0072B2", "#D55E00", "#00805c"),
    "dark": Ink("#e4e6e8", "#868d95", "#2a2f36", "#56B4E9", "#F0883E", "#3fc79a"),
}
PICTURES: dict[str, Callable[[Ink], None]] = {}


def picture(draw: Callable[[Ink], None]) -> Callable[[Ink], None]:
    """Enter a function in `PICTURES`, by its name."""
    PICTURES[draw.__name__.replace("_", "-")] = draw
    return draw


@contextmanager
def colours(ink: Ink) -> Iterator[None]:
    """Matplotlib with the colours of a theme, on no ground of its own."""
    settings: dict[str, Any] = dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.titlecolor", "legend.labelcolor"), ink.text
    )
    settings |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "legend.edgecolor"), ink.faint)
    settings |= {"axes.facecolor": "none", "figure.facecolor": "none", "savefig.transparent": True}
    settings |= {"axes.spines.top": False, "axes.spines.right": False, "font.size": 10.0, "legend.frameon": False}
    settings |= {"xtick.labelcolor": ink.text, "ytick.labelcolor": ink.text, "svg.hashsalt": "structsvm"}
    with plt.rc_context(settings):
        yield


def draw_all(folder: Path) -> None:
    """Each picture in both themes, as ``NAME-THEME.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    for theme, ink in THEMES.items():
        for name, draw in PICTURES.items():
            with colours(ink):
                draw(ink)
                plt.savefig(folder / f"{name}-{theme}.svg", metadata={"Date": None})
                plt.close("all")


def axes(width: float = 7.2, height: float = 2.6, columns: int = 1) -> Any:
    """The axes of a new figure."""
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")[1]
