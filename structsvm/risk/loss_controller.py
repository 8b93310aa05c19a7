"""Control of a loss: as many parts of an output as keep it below a bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from structsvm.parameters import CALLABLE, FLAG, NONE, RANDOM_STATE, Constraints, Options, declared, parameter
from structsvm.risk.base import SHARE, Promise, generator
from structsvm.risk.bounds import certified_step, controlled_step, needed_for_quantile, needed_for_threshold
from structsvm.risk.curves import LossCurves, curves_of, own_curves_of
from structsvm.risk.losses import LOSSES, Safe
from structsvm.risk.outputs import n_inputs, unwrapped
from structsvm.risk.parts import parts_of
from structsvm.risk.steps import GRID, Steps, grid, path_by_label
from structsvm.risk.tables import names_alone

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from structsvm.arrays import Floats
    from structsvm.risk.parts import Parts
    from structsvm.risk.tables import PartTable
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs


@declared
class LossController(Promise):
    """Predicts the parts of an output above a threshold, at which the expected loss is at most `alpha`.

    Parts are entities and other spans, brackets of trees, arcs, labels of nodes and of sets, nodes of a taxonomy. On
    outputs that the estimator has not seen, `calibrate` finds the threshold of their probabilities: with
    ``loss="missed"`` the highest one at which the expected share of missed parts (false negatives) is at most `alpha`,
    with ``"wrong"`` the lowest one at which the share of wrong parts is. It assumes that later outputs are drawn as the
    held-out ones were.

    Without `delta`, the mean over calibrations is promised, ``E[loss] <= alpha`` (conformal risk control: Angelopoulos,
    Bates, Fisch, Lei and Schuster 2022); with it, that the loss expected of later outputs is at most `alpha` with
    probability ``1 - delta`` over the held-out ones (learn then test: Angelopoulos, Bates, Candès, Jordan and Lei
    2021).

    Parameters
    ----------
    estimator : estimator
        `SequenceLabeler`, `GrammarParser`, `DependencyParser`, `GraphLabeler`, `MultilabelClassifier`,
        `TaxonomyClassifier` or another classifier, with probabilities, or a pipeline that ends in one. `calibrate`
        takes it fitted; `fit` trains a clone.
    loss : {"missed", "wrong", "f1", "path"} or callable, default="missed"
        The loss of an output: the share of its true parts that are missed; the share of the found ones that are wrong
        (0 if none is found); 1 - F1; or the edges between the true node of a taxonomy and the found one, as a share of
        the most that there can be. Or ``loss(true, found)`` of two sets of parts, a number from 0 to 1. The last three
        do not fall towards either end: they need `delta`, and half of the held-out outputs choose the threshold that
        the other half tests.
    alpha : float, default=0.1
        The greatest expected loss.
    delta : float, optional
        The probability that the held-out outputs mislead, and the expected loss is greater.
    by_label : bool, default=False
        Whether each label has its own threshold: half of the held-out outputs show the way from high thresholds to low
        ones, and the other half, how far to go. More is found at the same loss where labels differ. Not for a callable.
    held_out : float, default=0.3
        The share of the examples of `fit` that are held out.
    random_state : int, RandomState or None, default=None
        For `fit`: which ones; and which half of the held-out outputs shows the way.

    Attributes
    ----------
    estimator_ : estimator
    threshold_ : float or dict of float
        The least probability of a part that is predicted; by label with `by_label`, where None is any other label.
    risk_ : float
        The mean loss of the held-out outputs that tested the threshold.
    size_ : float
        How many parts an output has, as a mean over the same.
    n_calibration_ : int
        The number of held-out outputs.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> from structsvm.risk import LossController
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = make_sequences(400, random_state=0)
    >>> tagger = SequenceLabeler(loss="log", C=1.0, random_state=0).fit(X[:100], y[:100])
    >>> found = LossController(tagger, loss="missed", alpha=0.1).calibrate(X[100:], y[100:])
    >>> spans = found.predict(X[:1])[0]
    >>> all(len(span) == 3 for span in spans), found.risk_ <= 0.1
    (True, True)
    """

    estimator: object = parameter(kw_only=False)
    loss: Literal["missed", "wrong", "f1", "path"] | Callable[[frozenset[Hashable], frozenset[Hashable]], float] = (
        parameter(Options(*LOSSES), CALLABLE, default="missed")
    )
    alpha: float = parameter(SHARE, default=0.1)
    delta: float | None = parameter(SHARE, NONE, default=None)
    by_label: bool = parameter(FLAG, default=False)
    held_out: float = parameter(SHARE, default=0.3)
    random_state: int | np.random.RandomState | None = parameter(*RANDOM_STATE, default=None)
    _constraints: ClassVar[Constraints]

    @property
    def _safe(self) -> Safe:
        """Where the loss is surely small."""
        return None if callable(self.loss) else LOSSES[self.loss].safe

    def _calibrate(self, estimator: Estimator, X: Inputs, y: Outputs, weight: Floats | None) -> dict[str, object]:
        estimator, X = unwrapped(estimator, X)
        parts, counts = parts_of(estimator), np.ones(n_inputs(X), dtype=bool) if weight is None else weight > 0.0
        self._check(estimator, parts, int(np.count_nonzero(counts)))
        likely, true, weight = rows_of(parts.likely(estimator, X), parts.true(estimator, X, y), weight, counts)
        shows = np.zeros(len(true), dtype=bool)
        if self.by_label or self._safe is None:
            shows[generator(self.random_state).permutation(len(true))[: len(true) // 2]] = True
        show, test = (rows_of(likely, true, weight, part) for part in (shows, ~shows))
        steps = self._steps(most_of(estimator), *show)
        losses = self._losses(steps, test[0], test[1], most_of(estimator))
        step = self._step(losses, test[2])
        found = np.bincount(test[0].output[steps.only(step).first(test[0]) == 0], minlength=len(test[0]))
        return {
            "threshold_": self._threshold(steps, step),
            "risk_": float(np.average(losses.at(step), weights=test[2])),
            "size_": float(np.average(found, weights=test[2])),
            "n_calibration_": len(true),
        }

    def restore(self, values: dict[str, object], estimator: Estimator) -> None:
        """Become what a file contains; ValueError for parameters out of range, or thresholds of another form."""
        found = values.get("threshold_")
        if isinstance(found, dict) != self.by_label or (isinstance(found, dict) and None not in found):
            raise ValueError("a threshold for each label, and for others, goes with by_label, and one with its absence")
        super().restore(values, estimator)

    def _check(self, estimator: Estimator, parts: Parts, n: int) -> None:
        """Raise ValueError for parameters that do not go together, and for too few outputs."""
        if self._safe is None and self.delta is None:
            raise ValueError(
                f"loss={self.loss!r:.60} falls neither towards more parts nor towards fewer: its expectation is "
                "controlled with probability 1 - delta; give delta, such as 0.1"
            )
        if self.loss == "path" and not hasattr(estimator, "taxonomy_"):
            raise ValueError(f"loss='path' is for nodes of a taxonomy, not for {type(estimator).__name__}")
        if self.by_label and (callable(self.loss) or not parts.has_labels):
            what = "a loss that is a function" if callable(self.loss) else "arcs, which have no labels"
            raise ValueError(f"by_label=True is not for {what}")
        halves = 2 if self.by_label or self._safe is None else 1
        delta = self.delta
        least = halves * (needed_for_quantile(self.alpha) if delta is None else needed_for_threshold(self.alpha, delta))
        if n < least:
            says = "" if delta is None else f" with delta={delta:g}"
            raise ValueError(f"alpha={self.alpha:g}{says} needs at least {least} held-out outputs, got {n}")

    def _steps(self, most: int, likely: PartTable, true: PartTable, weight: Floats | None) -> Steps:
        """The steps to test, from none to all, or, of a loss that falls towards neither, the one that looks best."""
        steps = grid()
        if self.by_label:
            others = {"all": float(GRID[-1]), "none": np.inf, None: 0.5}[self._safe]
            steps = path_by_label(likely, true, others=others, weight=weight)
        if self._safe is not None:
            return steps
        risks = self._losses(steps, likely, true, most).means(weight)
        return steps.only(int(risks.round(12).argmin()))  # the first of equal ones, however sums are rounded

    def _losses(self, steps: Steps, likely: PartTable, true: PartTable, most: int) -> LossCurves:
        """Losses of outputs along steps."""
        if callable(self.loss):
            return own_curves_of(steps, likely, true, self.loss)
        return curves_of(steps, likely, true, LOSSES[self.loss].of, most)

    def _step(self, losses: LossCurves, weight: Floats | None) -> int:
        """The last step from the safe end on that keeps the promise; ValueError if none does."""
        is_all, n = self._safe == "all", len(losses)
        # As parts of the largest of all held-out outputs, also where these are half of them.
        own = np.ones(n) if weight is None else weight
        if self.delta is None:
            total, counted = losses.raised(from_last=is_all).sums(own), float(own.sum())
            last = controlled_step(total[:: -1 if is_all else 1], counted, self.alpha)
        else:
            sums, binary = losses.excess(own, self.alpha), bool(own.min() == 1.0) and losses.are_binary
            from_safe = slice(None, None, -1 if is_all else 1)
            last = certified_step(lambda of: sums(of)[from_safe], n, self.alpha, self.delta, binary=binary)
        if last < 0:
            least = float(losses.means(own).min())
            count = "" if weight is None else f", which count as {own.sum():.3g} under their weights"
            raise ValueError(
                f"no threshold keeps the expected loss at alpha={self.alpha:g}: the least mean loss of the held-out "
                f"outputs is {least:.4g}{count}; take a greater alpha, more held-out outputs, or a better estimator"
            )
        return losses.n_steps - 1 - last if is_all else last

    def _threshold(self, steps: Steps, step: int) -> float | dict[Hashable, float]:
        """A step as users see it."""
        row = steps.thresholds[step].tolist()
        return dict(zip([*steps.labels, None], row, strict=True)) if self.by_label else float(row[0])

    @property
    def _found_steps(self) -> Steps:
        """The threshold as a step."""
        if not isinstance(self.threshold_, dict):
            return Steps(np.array([[self.threshold_]]))
        labels = [name for name in self.threshold_ if name is not None]
        return Steps(np.array([[self.threshold_[name] for name in [*labels, None]]]), labels)

    def predict(self, X: Inputs) -> list[list[Hashable]]:
        """Return per input the parts that are found: spans and arcs by place, labels from the most probable on."""
        estimator, X = self._inputs(X)
        likely = parts_of(estimator).likely(estimator, X)
        likely = likely.by_chance() if likely.form is names_alone else likely
        return likely.chosen(self._found_steps.first(likely) == 0)

    def score(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return 1 less the mean loss."""
        X, y, weight = self._asked(X, y, sample_weight)
        estimator, X = self._inputs(X)
        parts = parts_of(estimator)
        likely, true = parts.likely(estimator, X), parts.true(estimator, X, y)
        losses = self._losses(self._found_steps, likely, true, most_of(estimator))
        return 1.0 - float(np.average(losses.at(0), weights=weight))


def rows_of(
    likely: PartTable, true: PartTable, weight: Floats | None, chosen: NDArray[np.bool_]
) -> tuple[PartTable, PartTable, Floats | None]:
    """Some of the outputs."""
    return likely.take(chosen), true.take(chosen), None if weight is None else weight[chosen]


def most_of(estimator: Estimator) -> int:
    """The most edges between two nodes of an estimator's taxonomy; 0 without one."""
    taxonomy = getattr(estimator, "taxonomy_", None)
    return 0 if taxonomy is None else 2 * int(taxonomy.depth.max())
