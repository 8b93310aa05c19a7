"""The interface of a task to the command line: its module here defines a `Task` as ``TASK``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from structsvm.cli.output import history


class Wanted(NamedTuple):
    """How to write predictions: with the scores of the `kbest` best (None: the best one alone), or with
    probabilities (`confidence`), and trees as indented text (`pretty`); `jobs` threads may make them. `constraints`
    names a file of rules that they obey.
    """

    kbest: int | None
    jobs: int
    confidence: bool
    pretty: bool
    constraints: str | None = None

    @property
    def is_ranked(self) -> bool:
        """Whether outputs are written with scores or probabilities."""
        return self.kbest is not None or self.confidence


class Task(NamedTuple):
    """The commands of a task.

    `train` is that of ``structsvm train``. ``load(path)`` returns a model; ``predict(model, path, wanted)``
    yields text; ``evaluate(model, path, jobs)`` returns the scores for --json, their text, and a function that draws
    them; ``inspect(model, top, only)`` prints, and ``picture(model)`` draws; ``demo(seed)`` prints, and returns a
    figure. `undrawn` has the reasons of the commands that have no figure, by their names. With `has_queries`,
    ``evaluate(..., query=path)`` takes a file of the sizes of queries; with `has_columns` inputs are column files,
    and with `has_unknown` labels may be unknown, by the model's parameter of that name. ``contents(model, top, only)``
    is what ``inspect --json`` prints, where it is another than of models that were trained here; those of other
    programs have no `train` and no `demo`.
    """

    train: click.Command | None
    load: Callable[..., Any]
    predict: Callable[[Any, Any, Wanted], Iterator[str]]
    evaluate: Callable[..., tuple[dict[str, Any], str, Any]]
    inspect: Callable[[Any, int, Sequence[str]], None]
    demo: Callable[[int], Any] | None
    picture: Callable[[Any], Any] = history
    undrawn: Mapping[str, str] = {}
    has_probabilities: bool = True
    has_trees: bool = False
    has_queries: bool = False
    has_constraints: bool = False
    has_columns: bool = False
    has_unknown: bool = False
    contents: Callable[[Any, int, Sequence[str]], dict[str, Any]] | None = None
