"""Trainer of sklearn-crfsuite's estimator."""

from __future__ import annotations

from structsvm.interop.crfsuite_log import Figures
from structsvm.interop.pycrfsuite import Trainer

__all__ = ["LinePerIterationTrainer"]

# Figures of an iteration: what a line calls them, their names in the record, and their formats.
FIGURES = (
    ("time", "time", ".2f"),
    ("loss", "loss", ".2f"),
    ("active", "active_features", "d"),
    ("precision", "avg_precision", ".3f"),
    ("recall", "avg_recall", ".3f"),
    ("F1", "avg_f1", ".3f"),
    ("Acc(item)", "item_accuracy_float", ".3f"),
    ("Acc(seq)", "instance_accuracy_float", ".3f"),
    ("feature_norm", "feature_norm", ".2f"),
)


class LinePerIterationTrainer(Trainer):
    """Trainer that prints a line per iteration, and at the end the last scores of the labels of a holdout group."""

    def on_iteration(self, log: str, info: Figures | None) -> None:
        """Print the figures of an iteration."""
        figures = info or {}
        parts = [f"{shown}={figures[name]:{form}}" for shown, name, form in FIGURES if name in figures]
        print(f"Iter {figures.get('num', 0):<3}", *parts, sep="  ")  # noqa: T201

    def on_optimization_end(self, log: str) -> None:
        """Print the scores of the labels, if there are any."""
        scores = ((self.logparser and self.logparser.last_iteration) or {}).get("scores", {})
        if scores:
            width = max(map(len, [*scores, "Label"]))
            print(f"{'Label':{width}}  Precision  Recall     F1  Support")  # noqa: T201
        for label, one in sorted(scores.items()):
            precision, recall, f1 = (value or 0.0 for value in (one.precision, one.recall, one.f1))
            print(f"{label:{width}}  {precision:9.3f}  {recall:6.3f}  {f1:5.3f}  {one.ref:7}")  # noqa: T201
        super().on_optimization_end(log)
