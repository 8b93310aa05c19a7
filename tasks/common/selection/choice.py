"""Choices made on held-out examples: C, and with it the loss, a sum of losses, a kernel's gamma, a threshold.

Each kind of choice is a record. Its fields are its entries in a file's header, and columns for users.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from structsvm.solvers.choosing import Row, is_loss, rank

# C, score, standard error; and gamma, C, score, standard error.
Best = tuple[float, float, float]
Gamma = tuple[float, float, float, float]
K = TypeVar("K", bound="Chosen")


class Chosen:
    """Base of the records of what is chosen with a C."""

    def described(self, text: str, metric: str) -> str:
        """The line of a choice, from its line without this record."""
        return text


@dataclass(frozen=True)
class ChosenLoss(Chosen):
    """A loss, of several that were compared.

    Attributes
    ----------
    loss : str
    losses : dict of (C, score, standard error)
        By loss, its best C.
    """

    loss: str
    losses: dict[str, Best]

    def described(self, text: str, metric: str) -> str:
        _, score, error = self.losses[self.loss]
        values = [f"{shown(score, metric)} +- {shown(error, metric)}"]
        beaten = ((name, row[1]) for name, row in self.losses.items() if name != self.loss)
        values += [f"{shown(score, metric)} with {name!r}" for name, score in beaten]
        return f"loss = {self.loss!r} (held-out {metric} {', '.join(values)}), {text}"

    @classmethod
    def from_json(cls, value: Any) -> Self:
        loss, losses = value["loss"], value["losses"]
        best = {str(name): (float(C), float(score), float(error)) for name, (C, score, error) in losses.items()}
        if loss not in best or not are_finite(best.values()):
            raise ValueError(f"a choice of the loss {loss!r:.80} by {best!r:.80}")
        return cls(loss, best)


@dataclass(frozen=True)
class ChosenSum(ChosenLoss):
    """A sum of models that were trained with several losses; `loss` is that of the training that is resumed.

    Attributes
    ----------
    scales : dict of float
        By loss, the factor of its weights.
    sum : (score, standard error)
    tables : dict of table
        By loss.
    """

    scales: dict[str, float]
    sum: tuple[float, float]
    tables: dict[str, list[Row]]

    @property
    def edges(self) -> list[str]:
        """Losses whose C is at the edge of the tried values, as text."""
        chosen = {loss: C for loss, (C, *_) in self.losses.items() if at_edge(C, self.tables.get(loss, []))}
        return [f"C = {C:g} of the loss {loss!r}" for loss, C in chosen.items()]

    def described(self, text: str, metric: str) -> str:
        rows = self.losses.items()
        parts = " and ".join(f"{loss!r} at C = {C:g} ({shown(score, metric)})" for loss, (C, score, _) in rows)
        score, error = (shown(value, metric) for value in self.sum)
        return f"losses {parts}, added (held-out {metric} {score} +- {error})"

    @classmethod
    def from_json(cls, value: Any) -> Self:
        parts = ChosenLoss.from_json(value)
        scales = {str(name): float(scale) for name, scale in value["scales"].items()}
        if scales.keys() != parts.losses.keys() or not all(0.0 < scale < np.inf for scale in scales.values()):
            raise ValueError(f"a sum of losses by {scales!r:.80}")
        tables = {str(name): rows_from_json(rows) for name, rows in value.get("tables", {}).items()}
        if not tables.keys() <= scales.keys():
            raise ValueError(f"a choice of losses by {tables!r:.80}")
        score, error = map(float, value["sum"])
        return cls(**vars(parts), scales=scales, sum=(score, error), tables=tables)


@dataclass(frozen=True)
class ChosenSolver(Chosen):
    """A solver, of two that were compared on the same examples; the first one unless the other is surely better.

    Attributes
    ----------
    solver : str
    solvers : dict of (score, standard error)
        By name.
    gain : (difference, standard error)
        How much better the second one's score is, and the standard error of the difference.
    """

    solver: str
    solvers: dict[str, tuple[float, float]]
    gain: tuple[float, float]

    def described(self, text: str, metric: str) -> str:
        others = [f"{shown(score, metric)} with {name!r}" for name, (score, _) in self.solvers.items()]
        gain, error = (shown(value, metric) for value in self.gain)
        return f"solver = {self.solver!r} (held-out {metric} {', '.join(others)}: {gain} +- {error} better), {text}"

    @classmethod
    def from_json(cls, value: Any) -> Self:
        solvers = {str(name): (float(score), float(error)) for name, (score, error) in value["solvers"].items()}
        gain, error = map(float, value["gain"])
        numbers = [gain, error, *(number for pair in solvers.values() for number in pair)]
        if value["solver"] not in solvers or not np.isfinite(numbers).all():
            raise ValueError(f"a choice of the solver {value['solver']!r:.80} by {solvers!r:.80}")
        return cls(value["solver"], solvers, (gain, error))


@dataclass(frozen=True)
class ChosenGamma(Chosen):
    """A kernel's gamma, of several that were compared.

    Attributes
    ----------
    gamma : float
    gammas : list of (gamma, C, score, standard error)
        Each with its best C.
    """

    gamma: float
    gammas: list[Gamma]

    def described(self, text: str, metric: str) -> str:
        return f"gamma = {self.gamma:.3g} (of {self.gammas[0][0]:.3g} to {self.gammas[-1][0]:.3g}), {text}"

    @classmethod
    def from_json(cls, value: Any) -> Self:
        gamma = value["gamma"]
        gammas = [(float(width), float(C), float(score), float(error)) for width, C, score, error in value["gammas"]]
        if not (np.isfinite(gammas).all() and gamma in [row[0] for row in gammas] and gamma > 0.0):
            raise ValueError(f"a choice of gamma = {gamma!r:.80}")
        return cls(gamma, gammas)


@dataclass(frozen=True)
class ChosenThreshold(Chosen):
    """A threshold of the scores of rows, at which as many held-out rows are found as are positive.

    Attributes
    ----------
    threshold : float
        Above the mean score, over the norm of the weights.
    """

    threshold: float

    @classmethod
    def from_json(cls, value: Any) -> Self:
        if not np.isfinite(threshold := float(value["threshold"])):
            raise ValueError(f"a threshold {threshold}")
        return cls(threshold)


@dataclass(frozen=True)
class ChosenDecoding(Chosen):
    """How sharp the probabilities are by which outputs are decoded; 0: the best output is predicted.

    Attributes
    ----------
    sharpness : float
    decoded : (difference, standard error)
        How much better held-out outputs are than the best ones, and the standard error of the difference.
    """

    sharpness: float
    decoded: tuple[float, float]

    def described(self, text: str, metric: str) -> str:
        gain, error = (shown(value, metric) for value in self.decoded)
        kind = f"most expected pairs, sharpness {self.sharpness:.3g}" if self.sharpness else "best outputs"
        return f"decoded by {kind} ({gain} +- {error} better than the best), {text}"

    @classmethod
    def from_json(cls, value: Any) -> Self:
        sharpness, (gain, error) = float(value["sharpness"]), map(float, value["decoded"])
        if not (np.isfinite([sharpness, gain, error]).all() and sharpness >= 0.0):
            raise ValueError(f"a choice of the sharpness {sharpness!r:.80}")
        return cls(sharpness, (gain, error))


@dataclass(frozen=True)
class ChosenLeast(Chosen):
    """The size of weights below which they are 0, as outputs do not feel them.

    Attributes
    ----------
    least_weight : float
    """

    least_weight: float

    @classmethod
    def from_json(cls, value: Any) -> Self:
        if not 0.0 <= (least := float(value["least_weight"])) < np.inf:
            raise ValueError(f"weights below {least} are 0")
        return cls(least)


@dataclass(frozen=True)
class Choice:
    """A C, the table from which it was chosen, and what was chosen with it.

    Attributes
    ----------
    C : float
    metric : str
    table : list of Row
        The path.
    n_held_out : int
        Examples that the scores are of.
    others : tuple of Chosen
        One per kind.
    """

    C: float
    metric: str
    table: list[Row]
    n_held_out: int
    others: tuple[Chosen, ...] = ()

    def get(self, kind: type[K]) -> K | None:
        """The record of a kind, if something of that kind was chosen."""
        return next((chosen for chosen in self.others if isinstance(chosen, kind)), None)

    @property
    def is_at_edge(self) -> bool:
        return at_edge(self.C, self.table)

    @property
    def edges(self) -> list[str]:
        """Choices at the edge of the tried values, as text; each loss of a sum is checked."""
        added = self.get(ChosenSum)
        return [self.text] * self.is_at_edge if added is None else added.edges

    @property
    def columns(self) -> dict[str, object]:
        """The table by columns, as arrays."""
        about = {"metric": self.metric, "n_held_out": self.n_held_out}
        for chosen in self.others:
            about |= {name: as_arrays(value) for name, value in vars(chosen).items()}
        return about | dict(zip(Row._fields, map(np.array, zip(*self.table, strict=True)), strict=True))

    @property
    def text(self) -> str:
        """One line: what was chosen, and how sure that is."""
        others = sorted(self.table, key=partial(rank, metric=self.metric))
        place = [row.C for row in others].index(self.C)
        chosen = others.pop(place)
        score, error = (shown(value, self.metric) for value in (chosen.score, chosen.error))
        text = f"C = {chosen.C:g} (of {self.table[0].C:g} to {self.table[-1].C:g}; held-out {self.metric} "
        text += f"{score} +- {error}"
        if others:
            score = shown(others[0].score, self.metric)
            text += f", {'best' if place else 'next best'} {score} at C = {others[0].C:g}"
        text += ")"
        for other in self.others:
            text = other.described(text, self.metric)
        return text

    def to_json(self) -> dict[str, Any]:
        about = {name: value for name, value in vars(self).items() if name != "others"}
        for chosen in self.others:
            about |= vars(chosen)
        return dict(json.loads(json.dumps(about)))  # lists for tuples, as a file is read

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The inverse of `to_json`; KeyError, TypeError or ValueError for what it cannot have written."""
        table = rows_from_json(value["table"])
        if type(value["metric"]) is not str or type(value["n_held_out"]) is not int or value["n_held_out"] < 1:
            raise TypeError(f"a choice of C by {value['metric']!r:.80} of {value['n_held_out']!r:.80} examples")
        if float(value["C"]) not in [row.C for row in table]:
            raise ValueError(f"a choice of C = {value['C']!r:.80}")
        of_loss = ChosenSum if value.keys() & {"scales", "tables"} else ChosenLoss
        kinds = (of_loss, ChosenGamma, ChosenThreshold, ChosenSolver, ChosenDecoding, ChosenLeast)
        others = [kind.from_json(value) for kind in kinds if any(part.name in value for part in fields(kind))]
        return cls(float(value["C"]), value["metric"], table, value["n_held_out"], tuple(others))


def shown(score: float, metric: str) -> str:
    """A score as text: a loss as it is, others in percent."""
    return f"{score:.3f}" if is_loss(metric) else f"{100.0 * score:.1f}"


def as_arrays(value: Any) -> Any:
    """A value with arrays for lists."""
    if isinstance(value, dict):
        return {name: as_arrays(part) for name, part in value.items()}
    return np.array(value) if isinstance(value, list) else value


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
    if len(table) < 3 or table[1].C * 1e-3 > C:
        return False
    ends = (table[0], table[1]), (table[-1], table[-2])
    return any(end.C == C and abs(end.score - beside.score) > end.error for end, beside in ends)
