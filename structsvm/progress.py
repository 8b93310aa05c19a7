"""Monitors of a training run: none, a bar on the terminal, scikit-learn's callbacks."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from structsvm.result import relative_gap

if TYPE_CHECKING:
    from tqdm.std import tqdm

    from structsvm.solvers.run import Run


class Monitor:
    """Watches a `Run`; this one does nothing. `end_pass` stops the run by returning True."""

    def begin_pass(self, run: Run) -> None:
        """Called before a pass."""

    def tick(self, run: Run) -> None:
        """Called about twenty times a second."""

    def end_pass(self, run: Run) -> bool:
        """Called after a pass; returns whether to stop the run."""
        return False

    def try_value(self, C: float) -> None:
        """Called before the run begins, once per C that is tried on a part of the examples."""

    def close(self) -> None:
        """Called when the run has ended for any reason."""


class Monitors(Monitor):
    """Several monitors at once; any of them may stop the run."""

    def __init__(self, *monitors: Monitor) -> None:
        self.monitors = monitors

    def begin_pass(self, run: Run) -> None:
        for monitor in self.monitors:
            monitor.begin_pass(run)

    def tick(self, run: Run) -> None:
        for monitor in self.monitors:
            monitor.tick(run)

    def end_pass(self, run: Run) -> bool:
        # All of them are called, even after one has stopped the run.
        stops = [monitor.end_pass(run) for monitor in self.monitors]
        return any(stops)

    def try_value(self, C: float) -> None:
        for monitor in self.monitors:
            monitor.try_value(C)

    def close(self) -> None:
        for monitor in self.monitors:
            monitor.close()


class Meter:
    """Progress of work: a bar on terminals and in notebooks, lines of text elsewhere, in logs and pipes.

    Parameters
    ----------
    what : str
    disable : bool or None
        None: neither bar nor lines but on a terminal.
    """

    def __init__(self, what: str, *, disable: bool | None = None) -> None:
        self.what, self.share = what, 0.0
        self.bar: tqdm | None = None
        has_stream = sys.stderr is not None  # it may be closed
        has_bars = (has_stream and sys.stderr.isatty()) or "ipykernel" in sys.modules
        self.has_lines = disable is False and has_stream and not has_bars
        if disable or not has_bars:
            return
        from tqdm.auto import tqdm

        self.bar = tqdm(
            total=1.0, leave=False, desc=what, unit="", bar_format="{desc} {percentage:3.0f}%|{bar}| {unit}{postfix}"
        )

    def show(self, share: float, done: str, more: str = "") -> None:
        """Move the bar to a share of 1, never back, followed by what is done and more about it."""
        if self.bar is not None:
            self.share = max(self.share, min(share, 1.0))
            self.bar.n, self.bar.unit = self.share, done
            self.bar.set_postfix_str(more, refresh=False)
            self.bar.refresh()

    def line(self, text: str) -> None:
        """A line where there is no bar."""
        if self.has_lines:
            print(f"{self.what}: {text}", file=sys.stderr, flush=True)  # noqa: T201 (what `verbose` asks for)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


class Bar(Monitor):
    """A `Meter` of passes that shows the objective, on standard error; its lines come after 1, 2, 4, 8 ... passes.

    If a tolerance ends the run, the bar shows the logarithm of the gap, from the first known one to the tolerance.

    Parameters
    ----------
    max_iter : int
        Maximum number of passes.
    disable : bool or None
        None: shown on a terminal only. False: lines of text where there is no terminal.
    """

    def __init__(self, max_iter: int, *, disable: bool | None = None) -> None:
        self.max_iter, self.disable = max_iter, disable
        self.meter: Meter | None = None
        self.search: Meter | None = None
        self.first, self.first_gap, self.said, self.last = 0, math.nan, 0, ""

    def try_value(self, C: float) -> None:
        if self.search is None:
            self.search = Meter("choosing C on held-out examples", disable=self.disable)
            self.search.line("begins")
        self.search.show(0.0, f"C = {C:g}")

    def begin_pass(self, run: Run) -> None:
        self.end_search()
        if self.meter is None:
            # Created here, so that a failure before the first pass leaves no empty bar.
            self.first = run.n_iter
            self.meter = Meter("training", disable=self.disable)

    def tick(self, run: Run) -> None:
        if self.meter is not None and self.meter.bar is not None:
            done = run.progress - self.first
            self.meter.show(self.share(run), f"{done:.1f}/{self.max_iter} passes", self.about(run))

    def end_pass(self, run: Run) -> bool:
        done = run.n_iter - self.first
        self.last = f"{done} passes, {self.about(run)}"
        if self.meter is not None and done >= 2 * self.said:
            self.meter.line(self.last)
            self.said, self.last = max(done, 1), ""
        return False

    def share(self, run: Run) -> float:
        """Progress of a run: by the gap if it ends at one, else by passes."""
        tol, gap = getattr(run.solver, "tol", None), relative_gap(run.primal, run.dual)
        if tol is None or not tol > 0.0:
            return (run.progress - self.first) / self.max_iter
        if not gap > 0.0:  # nor if it is not known
            return 0.0
        if math.isnan(self.first_gap):
            self.first_gap = gap
        return math.log(self.first_gap / gap) / math.log(self.first_gap / tol) if self.first_gap > tol else 1.0

    @staticmethod
    def about(run: Run) -> str:
        """The objectives of a run, and its support vectors."""
        parts = [f"support vectors {run.n_support}"]
        if run.has_dual:
            parts.insert(0, f"dual {run.state.dual:.5g}")
        if run.primal == run.primal:
            parts.insert(0, f"primal {run.primal:.5g}")
        if run.remark:
            parts.append(run.remark)
        return ", ".join(parts)

    def end_search(self) -> None:
        if self.search is not None:
            self.search.close()
            self.search = None

    def close(self) -> None:
        self.end_search()
        if self.meter is not None:
            if self.last:
                self.meter.line(self.last)
            self.meter.close()
