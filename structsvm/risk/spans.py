"""Conformal sets of spans: all true entities, or all true brackets, are among them as often as promised."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from structsvm.parameters import FLAG, RANDOM_STATE, Constraints, declared, parameter
from structsvm.risk.base import SHARE, Promise
from structsvm.risk.bounds import conformal_quantile
from structsvm.risk.outputs import unwrapped
from structsvm.risk.parts import LEAST, parts_of
from structsvm.risk.tables import places_in

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from structsvm.arrays import Floats
    from structsvm.risk.parts import Parts
    from structsvm.risk.tables import PartTable
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs


@declared
class ConformalSpans(Promise):
    """Predicts a set of spans per input that has all true ones with probability ``1 - alpha``.

    Spans are the entities of a tagger, fields of a record, or the brackets of a parser, with their begin, end and
    label; those of a set may overlap or cross. On outputs that the estimator has not seen, `calibrate` finds how
    improbable the least probable true span may be (split conformal prediction: Papadopoulos et al. 2002). An output
    without true spans is right with any set. It assumes that later outputs are drawn as the held-out ones were.

    Parameters
    ----------
    estimator : estimator
        A `SequenceLabeler` or `GrammarParser` with probabilities, or a pipeline that ends in one. `calibrate` takes it
        fitted; `fit` trains a clone.
    alpha : float, default=0.1
        The probability that a true span is not in its set.
    by_label : bool, default=False
        Whether the promise is kept for each label on its own, by a threshold for each: of the outputs that have spans
        of a label, a share ``1 - alpha`` has all of them in their sets.
    held_out : float, default=0.3
        The share of the examples of `fit` that are held out.
    random_state : int, RandomState or None, default=None
        For `fit`: which ones.

    Attributes
    ----------
    estimator_ : estimator
    quantile_ : float or dict of float
        1 less the probability of the least probable span in a set; by label with `by_label`. Spans of other labels are
        all in a set.
    n_calibration_ : int
        The number of held-out outputs.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> from structsvm.risk import ConformalSpans
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = make_sequences(300, random_state=0)
    >>> tagger = SequenceLabeler(loss="log", C=1.0, random_state=0).fit(X[:200], y[:200])
    >>> spans = ConformalSpans(tagger, alpha=0.2).calibrate(X[200:], y[200:]).predict(X[:1])[0]
    >>> all(0 <= start < stop <= len(X[0]) for start, stop, label in spans)
    True
    """

    estimator: object = parameter(kw_only=False)
    alpha: float = parameter(SHARE, default=0.1)
    by_label: bool = parameter(FLAG, default=False)
    held_out: float = parameter(SHARE, default=0.3)
    random_state: int | np.random.RandomState | None = parameter(*RANDOM_STATE, default=None)
    _constraints: ClassVar[Constraints]

    def _calibrate(self, estimator: Estimator, X: Inputs, y: Outputs, weight: Floats | None) -> dict[str, object]:
        estimator, X = unwrapped(estimator, X)
        likely, true = read_spans(estimator, X, y)
        quantile: object = None
        if self.by_label:
            names = {true.labels[k]: k for k in np.unique(true.label).tolist()}
            quantile = {
                name: self._quantile(likely, true, weight, name, names[name]) for name in sorted(names, key=str)
            }
        else:
            quantile = self._quantile(likely, true, weight)
        return {"quantile_": quantile, "n_calibration_": len(true)}

    def restore(self, values: dict[str, object], estimator: Estimator) -> None:
        """Become what a file contains; ValueError for parameters out of range, or quantiles of another form."""
        if isinstance(values.get("quantile_"), dict) != self.by_label:
            raise ValueError("a quantile for each label goes with by_label, and one with its absence")
        super().restore(values, estimator)

    def _quantile(
        self, likely: PartTable, true: PartTable, weight: Floats | None, name: Hashable = None, label: int | None = None
    ) -> float:
        """The greatest strangeness of a span in a set; of one label, over the outputs that have it."""
        strange = strangest(likely, true if label is None else true.keep(true.label == label))
        chosen = np.flatnonzero((strange > -np.inf) | (label is None))
        strange = strange[chosen]
        where = "" if name is None else f"label {name!r}: "
        try:
            found = conformal_quantile(strange, self.alpha, None if weight is None else weight[chosen])
        except ValueError as error:
            raise ValueError(f"{where}{error}") from None
        if found == np.inf:
            raise ValueError(
                f"{where}no sets have all true spans with probability {1.0 - self.alpha:g}: those of "
                f"{int(np.isinf(strange).sum())} of {len(strange)} held-out outputs have less than "
                f"{LEAST:g} by the estimator; take a greater alpha, or a better one"
            )
        return found

    def _in_set(self, likely: PartTable) -> NDArray[np.bool_]:
        """Whether each span is in its set."""
        most = self.quantile_
        if not isinstance(most, dict):
            return 1.0 - likely.chance <= cast("float", most)
        each = np.array([most.get(name, np.inf) for name in likely.labels])
        return 1.0 - likely.chance <= (each[likely.label] if len(each) else 0.0)

    def predict(self, X: Inputs) -> list[list[Hashable]]:
        """Return per input the spans of its set, as ``(start, stop, label)``, by place."""
        estimator, X = self._inputs(X)
        likely = spans_of(estimator).likely(estimator, X)
        return likely.chosen(self._in_set(likely))

    def score(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of outputs that have all true spans in their sets."""
        X, y, weight = self._asked(X, y, sample_weight)
        estimator, X = self._inputs(X)
        likely, true = read_spans(estimator, X, y)
        in_set, places = np.append(self._in_set(likely), False), places_in(likely, true)
        n_missed = np.bincount(true.output[~in_set[places]], minlength=len(true))
        return float(np.average(n_missed == 0, weights=weight))


def read_spans(estimator: Estimator, X: Inputs, y: Outputs) -> tuple[PartTable, PartTable]:
    """Probable spans, and true spans."""
    parts = spans_of(estimator)
    return parts.likely(estimator, X), parts.true(estimator, X, y)


def strangest(likely: PartTable, true: PartTable) -> Floats:
    """Per output, 1 less the probability of the least probable true span; infinity for one not probable at all."""
    found = np.full(len(true), -np.inf)
    np.maximum.at(found, true.output, np.append(1.0 - likely.chance, np.inf)[places_in(likely, true)])
    return found


def spans_of(estimator: Estimator) -> Parts:
    """The spans of an estimator's outputs; TypeError for one without."""
    parts = parts_of(estimator)
    if not parts.are_spans:
        raise TypeError(
            f"outputs of {type(estimator).__name__} have no spans: ConformalSets takes sets of labels, heads or classes"
        )
    return parts
