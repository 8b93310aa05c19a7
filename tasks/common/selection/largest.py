"""C chosen on few held-out examples, for losses that a large C does not harm.

The score of few examples is noise as much as signal, and the errors of a choice are not alike: for chains with the log
loss ten times the best C costs next to nothing, and a tenth of it points. So of the values that score as well as the
best one, as far as the held-out examples can tell, the largest is chosen; and the path begins later, and has fewer
values unless scores still rise, so that it costs no more.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from structsvm.tasks.common.selection.search import LONGEST, Search, difference, round_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from structsvm.progress import Monitor
    from structsvm.solvers.choosing import Row
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.selection.choice import Choice
    from structsvm.tasks.common.selection.search import Held, Part

# Where the path begins, in units of where it begins with many examples; and how many values it has
# unless scores still rise.
ABOVE, MOST = 10.0, 4


class LargestSearch(Search):
    """The choice of C by few examples, see the head of this file.

    Attributes
    ----------
    helds : dict
        By value, how the held-out examples were predicted.
    kept : dict
        By value that may yet be chosen, the models and the states of their trainings.
    """

    longest = MOST
    helds: dict[float, Held]
    kept: dict[float, tuple[list[TaskModel], Sequence[dict[str, NDArray[Any]]]]]

    def _explore(self, monitor: Monitor) -> None:
        self.helds, self.kept = {}, {}
        super()._explore(monitor)
        if self.values is None:
            for C in islice(round_values(self._first(), self.step), MOST, LONGEST):
                if not self._is_rising():
                    break
                self._walk([C], monitor)

    def _is_rising(self) -> bool:
        """Whether the largest value is chosen, and a larger one may be better."""
        last = max(self.table, key=lambda row: row.C)
        return self.choice.C == last.C and (self.choice.is_at_edge or self._is_blank(last))

    def _first(self) -> float:
        return ABOVE * super()._first()

    def tried(self, parts: Sequence[Part], C: float, monitor: Monitor) -> Row:
        row = super().tried(parts, C, monitor)
        self.keep()
        self.helds[C], self.kept[C] = self.held, (self.models, self.states)
        return row

    def rank(self, row: Row) -> tuple[float, float]:
        """The key that sorts rows: first those as good as the best, the largest C first; then the others."""
        change, error = difference(self.helds[self._best()], self.helds[row.C])
        return (0.0, -row.C) if change >= -error else (1.0, row.C)

    def _best(self) -> float:
        """The value with the best score."""
        return min(self.table, key=super().rank).C

    def _value_of(self, best: Row) -> float:
        return best.C

    def choice_of(self, C: float) -> Choice:
        if max(self.kept) == self.table[-1].C:  # upwards no value below the best will be chosen
            self.kept = {value: of for value, of in self.kept.items() if value >= self._best()}
        self.held, (self.models, self.states) = self.helds[C], self.kept[C]
        return super().choice_of(C)
