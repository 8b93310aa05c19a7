"""Monitors of a training run: none, a bar on the terminal, scikit-learn's callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structsvm.solvers.base import Run


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
        """Called before the run begins, once for each C that is tried on a part of the examples."""

    def close(self) -> None:
        """Called when the run has ended, in whatever way."""


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


class Bar(Monitor):
    """A tqdm bar over passes that shows the objective, on standard error.

    Parameters
    ----------
    max_iter : int
        Maximum number of passes.
    disable : bool or None
        None: shown on a terminal only.
    """

    def __init__(self, max_iter: int, *, disable: bool | None = None) -> None:
        self.max_iter, self.disable = max_iter, disable
        self.bar: Any = None
        self.search: Any = None

    def try_value(self, C: float) -> None:
        from tqdm import tqdm

        if self.search is None:
            self.search = tqdm(disable=self.disable, leave=False, bar_format="{desc}")
        self.search.set_description_str(f"choosing C on held-out examples: {C:g}")

    def begin_pass(self, run: Run) -> None:
        self.end_search()
        if self.bar is None:
            from tqdm import tqdm

            # Created here, so that a failure before the first pass leaves no empty bar.
            self.first = run.n_iter
            self.bar = tqdm(
                total=float(self.max_iter),
                disable=self.disable,
                leave=False,
                desc="training",
                bar_format="{desc} {percentage:3.0f}%|{bar}| {n:.1f}/{total:.0f} passes{postfix}",
            )

    def tick(self, run: Run) -> None:
        if self.bar is None or self.bar.disable:
            return
        parts = [f"support vectors {run.n_support}"]
        if run.has_dual:
            parts.insert(0, f"dual {run.state.dual:.5g}")
        if run.primal == run.primal:
            parts.insert(0, f"primal {run.primal:.5g}")
        self.bar.set_postfix_str(", ".join(parts), refresh=False)
        self.bar.n = min(run.progress - self.first, self.bar.total)
        self.bar.refresh()

    def end_search(self) -> None:
        if self.search is not None:
            self.search.close()
            self.search = None

    def close(self) -> None:
        self.end_search()
        if self.bar is not None:
            self.bar.close()
