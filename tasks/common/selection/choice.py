"""Choices made on held-out examples: C, and with it the loss, a sum of losses, a kernel's gamma, a threshold.

Each kind of choice is a record, with its entries in a file's header, its columns for users and its line of text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from structsvm.solvers.choosing import Row, is_loss, rank

# C, score, standard error; and gamma, C, score, standard error.
Best = tuple[float, float, float]
Gamma = tuple[float, float, float, float]


@dataclass(frozen=True)
class ChosenSum:
    """A sum of models that were trained with several losses.

    Attributes
    ----------
    scales : dict of float
        By loss, the factor of its weights.
    score : (score, standard error)
    tables : dict of table
        By loss.
    """

    scales: dict[str, float]
    score: tuple[float, float]
    tables: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, object]:
        tables = {loss: np.array(table) for loss, table in self.tables.items()}
        return {"scales": dict(self.scales), "sum": self.score, "tables": tables}

    def to_json(self) -> dict[str, object]:
        tables = {loss: [list(row) for row in rows] for loss, rows in self.tables.items()}
        return {"scales": dict(self.scales), "sum": list(self.score), "tables": tables}

    @classmethod
    def from_json(cls, value: Any, losses: Iterable[str]) -> Self | None:
        scales = {str(name): float(scale) for name, scale in value.get("scales", {}).items()}
        if not scales and not value.get("tables"):
            return None
        if scales.keys() != {*losses} or not all(0.0 < scale < np.inf for scale in scales.values()):
            raise ValueError(f"a sum of losses by {scales!r:.80}")
        tables = {str(name): rows_from_json(rows) for name, rows in value.get("tables", {}).items()}
        if not tables.keys() <= scales.keys():
            raise ValueError(f"a choice of losses by {tables!r:.80}")
        return cls(scales, (float(value["sum"][0]), float(value["sum"][1])), tables)


@dataclass(frozen=True)
class ChosenLoss:
    """A loss, of several that were compared.

    Attributes
    ----------
    name : str
    best : dict of (C, score, standard error)
        By loss, its best C.
    sum : ChosenSum or None
        None: the model of `name` alone.
    """

    name: str
    best: dict[str, Best]
    sum: ChosenSum | None = None

    @property
    def columns(self) -> dict[str, object]:
        own: dict[str, object] = {"loss": self.name, "losses": dict(self.best)}
        return own if self.sum is None else own | self.sum.columns

    def to_json(self) -> dict[str, object]:
        own: dict[str, object] = {"loss": self.name, "losses": {name: list(row) for name, row in self.best.items()}}
        return own if self.sum is None else own | self.sum.to_json()

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        name, losses = value.get("loss"), value.get("losses", {})
        best = {str(loss): (float(C), float(score), float(error)) for loss, (C, score, error) in losses.items()}
        if name is None and not best:
            return None
        if name not in best or not are_finite(best.values()):
            raise ValueError(f"a choice of the loss {name!r:.80} by {best!r:.80}")
        return cls(name, best, ChosenSum.from_json(value, best))


@dataclass(frozen=True)
class ChosenGamma:
    """A kernel's gamma, of several that were compared.

    Attributes
    ----------
    gamma : float
    table : list of (gamma, C, score, standard error)
        Each with its best C.
    """

    gamma: float
    table: list[Gamma]

    @property
    def columns(self) -> dict[str, object]:
        return {"gamma": self.gamma, "gammas": np.array(self.table)}

    @property
    def text(self) -> str:
        return f"gamma = {self.gamma:.3g} (of {self.table[0][0]:.3g} to {self.table[-1][0]:.3g}), "

    def to_json(self) -> dict[str, object]:
        return {"gamma": self.gamma, "gammas": [list(row) for row in self.table]}

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        gamma = value.get("gamma")
        if gamma is None:
            return None
        table = [(float(width), float(C), float(score), float(error)) for width, C, score, error in value["gammas"]]
        if not (np.isfinite(table).all() and gamma in [row[0] for row in table] and gamma > 0.0):
            raise ValueError(f"a choice of gamma = {gamma!r:.80}")
        return cls(gamma, table)


@dataclass(frozen=True)
class Choice:
    """A C, the table from which it was chosen, and what was chosen with it.

    Attributes
    ----------
    C : float
    metric : str
    table : list of (C, score, standard error, passes)
        The path; passes are over the part that was trained on.
    n_held_out : int
        Examples that the scores are of.
    loss : ChosenLoss or None
    gamma : ChosenGamma or None
    threshold : float or None
        Of the scores of rows, over the norm of the weights, where as many held-out rows are found as are positive.
    """

    C: float
    metric: str
    table: list[Row]
    n_held_out: int
    loss: ChosenLoss | None = None
    gamma: ChosenGamma | None = None
    threshold: float | None = None

    @property
    def sum(self) -> ChosenSum | None:
        """The sum of losses, if models are added."""
        return None if self.loss is None else self.loss.sum

    @property
    def is_at_edge(self) -> bool:
        return at_edge(self.C, self.table)

    @property
    def edges(self) -> list[str]:
        """Choices at the edge of the tried values, as text; each loss of a sum is checked."""
        if self.loss is None or self.sum is None:
            return [self.text] * self.is_at_edge
        tables = self.sum.tables
        chosen = {loss: C for loss, (C, *_) in self.loss.best.items() if at_edge(C, tables.get(loss, []))}
        return [f"C = {C:g} of the loss {loss!r}" for loss, C in chosen.items()]

    @property
    def columns(self) -> dict[str, object]:
        """The table by columns, as arrays."""
        C, score, error, passes = (np.array(column) for column in zip(*self.table, strict=True))
        about: dict[str, object] = {"metric": self.metric, "n_held_out": self.n_held_out}
        for chosen in (self.loss, self.gamma):
            about |= {} if chosen is None else chosen.columns
        return about | {"C": C, "score": score, "error": error, "passes": passes}

    @property
    def text(self) -> str:
        """One line: what was chosen, and how sure that is."""
        if self.loss is not None and self.sum is not None:
            parts = [f"{loss!r} at C = {C:g} ({self._value(score)})" for loss, (C, score, _) in self.loss.best.items()]
            sums = f"{self._value(self.sum.score[0])} +- {self._value(self.sum.score[1])}"
            return f"losses {' and '.join(parts)}, added (held-out {self.metric} {sums})"
        others = sorted(self.table, key=partial(rank, metric=self.metric))
        place = [row.C for row in others].index(self.C)
        chosen = others.pop(place)
        text = "" if self.gamma is None else self.gamma.text
        text += f"C = {chosen[0]:g} (of {self.table[0][0]:g} to {self.table[-1][0]:g}; held-out {self.metric} "
        text += f"{self._value(chosen[1])} +- {self._value(chosen[2])}"
        if others:
            text += f", {'best' if place else 'next best'} {self._value(others[0][1])} at C = {others[0][0]:g}"
        if self.loss is None:
            return text + ")"
        _, score, error = self.loss.best[self.loss.name]
        values = [f"{self._value(score)} +- {self._value(error)}"]
        beaten = ((name, row[1]) for name, row in self.loss.best.items() if name != self.loss.name)
        values += [f"{self._value(score)} with {name!r}" for name, score in beaten]
        return f"loss = {self.loss.name!r} (held-out {self.metric} {', '.join(values)}), {text})"

    def _value(self, score: float) -> str:
        return f"{score:.3f}" if is_loss(self.metric) else f"{100.0 * score:.1f}"

    def to_json(self) -> dict[str, object]:
        table = [list(row) for row in self.table]
        about = {"C": self.C, "metric": self.metric, "table": table, "n_held_out": self.n_held_out}
        for chosen in (self.loss, self.gamma):
            about |= {} if chosen is None else chosen.to_json()
        return about if self.threshold is None else about | {"threshold": self.threshold}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for what it cannot have written."""
        table = rows_from_json(value["table"])
        if type(value["metric"]) is not str or type(value["n_held_out"]) is not int or value["n_held_out"] < 1:
            raise TypeError(f"a choice of C by {value['metric']!r:.80} of {value['n_held_out']!r:.80} examples")
        if float(value["C"]) not in [row[0] for row in table]:
            raise ValueError(f"a choice of C = {value['C']!r:.80}")
        threshold = value.get("threshold")
        if threshold is not None and not np.isfinite(threshold := float(threshold)):
            raise ValueError(f"a threshold {threshold}")
        loss, gamma = ChosenLoss.from_json(value), ChosenGamma.from_json(value)
        return cls(float(value["C"]), value["metric"], table, value["n_held_out"], loss, gamma, threshold)


def rows_from_json(rows: Any) -> list[Row]:
    """A table as a file has it: of each C, which is above 0, its score, the score's error and the passes."""
    table = [Row(float(C), float(score), float(error), int(passes)) for C, score, error, passes in rows]
    if not are_finite(table):
        raise ValueError(f"a choice of losses and C by {table!r:.80}")
    return table


def are_finite(rows: Iterable[tuple[float, ...]]) -> bool:
    """Whether rows contain finite numbers, the first of each, a C, above 0."""
    return all(row[0] > 0.0 and np.isfinite(row).all() for row in rows)


def at_edge(C: float, table: list[Row]) -> bool:
    """Whether C is the least or the greatest value, and better than the one beside it by a standard error.

    A C with which nothing is learnt is not an edge; with only two values there is none either.
    """
    if len(table) < 3 or table[1][0] * 1e-3 > C:
        return False
    ends = (table[0], table[1]), (table[-1], table[-2])
    return any(end[0] == C and abs(end[1] - beside[1]) > end[2] for end, beside in ends)
