"""Losses of all structures: values (B,) and gradients of their sum with respect to the parts.

With `per_entry` the gradients are each value's own: those of parts that all entries share have a batch axis.

With the score s(y), the log partition log Z and a cost c(y) that is a sum over the parts of y and 0 for the truth:

- `log_loss` = log Z - s(truth); where the truth is known in part, s(truth) is the log partition of all that agree;
- `hinge` = max_y (s(y) + c(y)) - s(truth);
- `softmax_margin` = log sum_y exp(s(y) + c(y)) - s(truth);
- `ramp` = max_y (s(y) + c(y)) - max_y s(y);
- `perturbed` = E max_y (s(y) + noise(y)) - s(truth), the Fenchel-Young loss of a perturbed maximum;
- `kl_divergence` = log Z - E s(y) less the same of a teacher's scores, where E is the teacher's expectation.

`minimum_risk` decodes: it returns the output of the least expected cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from structsvm.layers._chain import above, are_huge, within
from structsvm.layers.structure import (
    GREATEST,
    Gradients,
    Labels,
    Parts,
    Scores,
    Structure,
    Values,
    as_floats,
    expected,
    generators_of,
    masked_truth,
)
from structsvm.parameters import checked_count

Loss = tuple[Values, Gradients]
FIRST_ONLY = "Layers have first derivatives only: the gradient of a loss has none."


class LossFunction(Protocol):
    """A loss of this kind; options of its own have defaults."""

    def __call__(
        self,
        structure: Structure,
        parts: Sequence[object],
        y: ArrayLike,
        lengths: ArrayLike | None = None,
        *,
        per_entry: bool = False,
    ) -> Loss: ...


def options_of(loss: LossFunction, structure: Structure) -> tuple[str, ...] | None:
    """The names of a loss's own options; None if it takes any.

    Raises TypeError if the two are no loss and no structure: without this, another's call would fail later.
    """
    if not callable(loss):
        raise TypeError(f"loss must be a function, such as log_loss. Got {loss!r}.")
    if not isinstance(structure, Structure):
        hint = f" Write {structure.__name__}()." if isinstance(structure, type) else ""
        raise TypeError(f"structure must be a Structure, such as Chain(). Got {structure!r}.{hint}")
    found = inspect.signature(loss).parameters.values()
    if any(one.kind == one.VAR_KEYWORD for one in found):
        return None
    return tuple(one.name for one in found if one.kind == one.KEYWORD_ONLY and one.name != "per_entry")


def check_options(loss: LossFunction, own: tuple[str, ...] | None, names: Iterable[str]) -> None:
    """Refuse what is no option of a loss, or is an argument of the function that a binding returns.

    Raises TypeError, as the loss would, but before it is called back, where its error would be another's.
    """
    for name in names:
        if name in ("parts", "y", "lengths"):
            raise TypeError(
                f"{name} is no option of differentiable: give it to the function that it returns, f(parts, y, lengths)."
            )
        if name == "per_entry":
            raise TypeError("per_entry is no option of differentiable: its function returns a value per entry.")
        if own is not None and name not in own:
            title = getattr(loss, "__name__", type(loss).__name__)
            raise TypeError(f"{title} has no option {name!r}. Its options: {', '.join(own) or 'none'}.")


def several(parts: Sequence[object]) -> tuple[object, ...]:
    """Parts as a tuple; ValueError for one array in the place of a tuple of them."""
    shape = getattr(parts, "shape", None)
    if shape is not None:
        raise ValueError(
            f"parts must be a tuple of arrays, as (emissions, transitions) or (arcs,). Got an array of shape {shape}."
        )
    return tuple(parts)


def log_loss(
    structure: Structure,
    parts: Sequence[object],
    y: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    per_entry: bool = False,
) -> Loss:
    """The negative log likelihood. What is unknown in y (-1) is summed over.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, log_loss
    >>> parts = np.zeros((1, 2, 3)), np.zeros((3, 3))  # emissions, transitions
    >>> values, (emissions, transitions) = log_loss(Chain(), parts, [[0, 1]])
    >>> values.round(2).tolist(), emissions[0, 0].round(2).tolist()
    ([2.2], [-0.67, 0.33, 0.33])
    >>> log_loss(Chain(), parts, [[0, -1]])[0].round(2).tolist()
    [1.1]
    """
    scores = structure.check_for_sums(parts, lengths)
    log_z, known, marginals = structure.sums_less(scores, y, per_entry=per_entry)
    if structure.is_centred and are_huge(known):
        _compute_huge(structure, scores, structure.check_output(y, scores, partly=True), log_z, known)
    return above(log_z, known), scores.gradients(per_entry, marginals)


def _compute_huge(structure: Structure, scores: Scores, truth: Labels, log_z: Values, known: Values) -> None:
    """Replace the sums of each entry with a huge one, whose truth is known: no entry's value depends on another's."""
    for entry in np.flatnonzero([are_huge(known[[entry]]) for entry in range(len(known))]).tolist():
        own, y = scores.take([entry]), truth[[entry]]
        if structure.is_known(y, own):
            near = structure.centred(own, y)
            log_z[entry] = structure.sums(near, marginals=False)[0][0]
            known[entry] = structure.values_of(y, near, structure.indicators(y, near))[0]


def hinge(
    structure: Structure,
    parts: Sequence[object],
    y: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    cost: ArrayLike | None = None,
    per_entry: bool = False,
) -> Loss:
    """The margin-rescaled hinge: zero if the truth beats each output by its cost.

    `cost` is an array like the first part, finite; by default each wrong part of it costs 1, and of sets, matchings,
    alignments and paths each missing one as well. The truth's own cost is taken off.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, hinge
    >>> parts = np.zeros((1, 2, 3)), np.zeros((3, 3))  # emissions, transitions
    >>> hinge(Chain(), parts, [[0, 1]])[0].tolist()
    [2.0]
    """
    scores, truth, harder, base = _with_cost(structure, parts, y, lengths, cost)
    worst = structure.indicators(structure.best(harder), scores)
    right = structure.indicators(truth, scores)
    gradients = _minus(worst, right)
    return np.maximum(expected(harder, worst) - base, 0.0), scores.gradients(per_entry, gradients)


def softmax_margin(
    structure: Structure,
    parts: Sequence[object],
    y: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    cost: ArrayLike | None = None,
    per_entry: bool = False,
) -> Loss:
    """The log loss of potentials to which the cost is added; `cost` as in `hinge`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, softmax_margin
    >>> parts = np.zeros((1, 2, 3)), np.zeros((3, 3))  # emissions, transitions
    >>> softmax_margin(Chain(), parts, [[0, 1]])[0].round(2).tolist()
    [3.72]
    """
    scores, truth, harder, base = _with_cost(structure, parts, y, lengths, cost)
    log_z, marginals = structure.sums(harder)
    return np.maximum(log_z - base, 0.0), scores.gradients(
        per_entry, _minus(marginals, structure.indicators(truth, scores))
    )


def ramp(
    structure: Structure,
    parts: Sequence[object],
    y: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    cost: ArrayLike | None = None,
    per_entry: bool = False,
) -> Loss:
    """The maximum with the cost less the one without: a bound of the prediction's cost, with `cost` as in `hinge`.

    The ramp is not convex; the gradient is a piece's.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, ramp
    >>> parts = np.zeros((1, 2, 3)), np.zeros((3, 3))  # emissions, transitions
    >>> ramp(Chain(), parts, [[0, 1]])[0].tolist()
    [2.0]
    """
    scores, truth, harder, base = _with_cost(structure, parts, y, lengths, cost)
    worst = structure.indicators(structure.best(harder), scores)
    best = structure.indicators(structure.best(scores), scores)
    right = expected(scores, structure.indicators(truth, scores))
    values = (expected(harder, worst) - base) - (expected(scores, best) - right)
    return np.maximum(values, 0.0), scores.gradients(per_entry, _minus(worst, best))


def perturbed(
    structure: Structure,
    parts: Sequence[object],
    y: ArrayLike,
    lengths: ArrayLike | None = None,
    *,
    sigma: float = 1.0,
    n_samples: int = 8,
    seed: int = 0,
    per_entry: bool = False,
) -> Loss:
    """The Fenchel-Young loss of the maximum under normal noise of deviation `sigma` on the first part.

    An average over `n_samples` draws; each batch entry has a generator of its own. It needs maxima alone. Berthet and
    others (2020), "Learning with differentiable perturbed optimizers", section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, perturbed
    >>> parts = np.zeros((1, 2, 3)), np.zeros((3, 3))  # emissions, transitions
    >>> values, (emissions, transitions) = perturbed(Chain(), parts, [[0, 1]], n_samples=100)
    >>> values.shape, emissions.shape, transitions.shape
    ((1,), (1, 2, 3), (3, 3))
    """
    checked_count("n_samples", n_samples, 1)
    if not 0 < sigma < np.inf:
        raise ValueError(f"sigma must be a number above 0. Got {sigma!r}.")
    scores = structure.check(parts, lengths)
    right = structure.indicators(structure.check_output(y, scores), scores)
    first = scores.parts[0]
    draws = generators_of(seed, len(first))
    values, total = -score_of_truth(scores, right), [-part for part in right]
    for _ in range(n_samples):
        noise = np.stack([sigma * draw.standard_normal(first.shape[1:]) for draw in draws]) if draws else first
        noisy = scores.plus(noise)
        best = structure.indicators(structure.best(noisy), scores)
        values += expected(noisy, best) / n_samples
        total = [t + b / n_samples for t, b in zip(total, best, strict=True)]
    return values, scores.gradients(per_entry, tuple(total))


def kl_divergence(
    structure: Structure,
    parts: Sequence[object],
    y: object,
    lengths: ArrayLike | None = None,
    *,
    per_entry: bool = False,
) -> Loss:
    """The Kullback-Leibler divergence from a teacher's distribution over whole outputs: distillation.

    `y` is the teacher's parts, potentials like `parts`. The gradients are the marginals less the teacher's.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, kl_divergence
    >>> parts = np.zeros((1, 2, 3)), np.zeros((3, 3))  # emissions, transitions
    >>> teacher = np.array([[[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]), np.zeros((3, 3))
    >>> values, (emissions, transitions) = kl_divergence(Chain(), parts, teacher)
    >>> values.round(2).tolist(), emissions[0, 0].round(2).tolist()
    ([0.73], [-0.58, 0.29, 0.29])
    """
    if not isinstance(y, Sequence):
        raise ValueError(f"y must be a teacher's parts, a tuple of arrays. Got {type(y).__name__}.")
    scores, teacher = structure.check(parts, lengths), structure.check(y, lengths)
    own_shapes, shapes = ([part.shape[1:] for part in one.parts] for one in (scores, teacher))
    if own_shapes != shapes or len(scores.lengths) != len(teacher.lengths):
        raise ValueError("y must be a teacher's parts, arrays of the shapes that the parts have.")
    (log_z, marginals), (of_teacher, wanted) = structure.sums(scores), structure.sums(teacher)
    own = expected(scores, wanted)
    for entry in np.flatnonzero(np.isneginf(own))[:1].tolist():
        raise ValueError(
            f"batch entry {entry} has a part whose score is -inf, but not the teacher's. Mask what the teacher masks."
        )
    values = (log_z - own) - (of_teacher - expected(teacher, wanted))
    return np.maximum(values, 0.0), scores.gradients(per_entry, _minus(marginals, wanted))


def minimum_risk(structure: Structure, parts: Sequence[object], lengths: ArrayLike | None = None) -> Labels:
    """Return the outputs whose expected cost is least, by the default cost of `hinge`.

    For a chain these are the labels whose probabilities have the greatest sum, among the labellings that masks allow.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, minimum_risk
    >>> emissions, transitions = np.zeros((1, 2, 3)), np.array([[9.0, -9, -9], [-9, 8.5, 8.5], [-9, -9, -9]])
    >>> Chain().argmax(emissions, transitions).tolist(), minimum_risk(Chain(), (emissions, transitions)).tolist()
    ([[0, 0]], [[1, 0]])
    """
    scores = structure.check(parts, lengths)
    gains = [np.zeros_like(part) for part in scores.parts]
    gains[0] = -structure.costs(structure.sums(scores)[1][0])
    masked = [
        np.where(np.isneginf(part), part, gain).astype(part.dtype)
        for part, gain in zip(scores.parts, gains, strict=True)
    ]
    return structure.best(replace(scores, parts=tuple(masked)))


def _minus(left: Parts, right: Parts) -> Parts:
    return tuple(a - b for a, b in zip(left, right, strict=True))


def _with_cost(
    structure: Structure, parts: Sequence[object], y: ArrayLike, lengths: ArrayLike | None, cost: ArrayLike | None
) -> tuple[Scores, Labels, Scores, Values]:
    """Potentials, truth, potentials with the cost added, and the truth's score by these."""
    scores = structure.check(parts, lengths)
    truth = structure.check_output(y, scores)
    right = structure.indicators(truth, scores)
    first, indicator = scores.parts[0], right[0]
    added = np.ascontiguousarray(structure.costs(indicator)) if cost is None else as_floats("cost", cost)
    if added.shape != first.shape or not within(added, GREATEST[first.dtype]):
        raise ValueError(
            f"cost must be finite and have the shape {first.shape} of the first part. Got {added.shape}, "
            f"with numbers up to {np.abs(added).max(initial=0.0):g}."
        )
    harder = scores.plus(added)
    return scores, truth, harder, score_of_truth(harder, right)


def score_of_truth(scores: Scores, right: Parts) -> Values:
    """The scores of the true outputs, by their indicators."""
    own = expected(scores, right)
    for entry in np.flatnonzero(np.isneginf(own))[:1].tolist():
        raise masked_truth(entry)
    return own
