"""Predict, then optimise: a user's solver as a structure, the loss of its decisions, and their regret.

With predicted scores p, true scores s, the solver's best output y(.) and y* = y(s):

- `spo_plus` = max_y <2 p - s, y> - 2 <p, y*> + <s, y*>, a convex bound of the regret, from which its gradient
  2 (y(2 p - s) - y*) follows;
- `regret` = <s, y*> - <s, y(p)>.

Both need maxima alone, and take every structure. Elmachtoub and Grigas (2022), "Smart 'Predict, then Optimize'",
Management Science 68(1), definition 3, for costs, which are scores with the other sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Never, cast

import numpy as np
from numpy.typing import ArrayLike

from structsvm.arrays import AnyArray, Floats
from structsvm.layers.losses import Loss, score_of_truth
from structsvm.layers.structure import (
    Generators,
    Labels,
    Parts,
    Scores,
    Structure,
    Values,
    as_outputs,
    as_parts,
    check_values,
    expected,
    no_lengths,
    over_batch,
)
from structsvm.parameters import checked_threads


class Solver(Structure):
    """The outputs of a solver of one's own: vectors whose inner product with the scores it makes as great as possible.

    The part is ``scores``, an array (B, ...) of finite numbers. An output is an array like it: how much of each score a
    decision has, as a rule 0 or 1. The default cost of losses counts, of such, what only one of two decisions has.

    Parameters
    ----------
    solve : callable
        ``solve(scores)`` returns the best decision for the float64 scores of one entry, an array of their shape. Who
        minimises costs gives them with a minus sign.
    batched : bool, default=False
        Whether `solve` takes and returns whole batches (B, ...).
    n_threads : int, default=1
        Entries are split among so many threads, unless `batched`. `solve` must allow that, and release the
        interpreter's lock for it to pay.

    Notes
    -----
    There are no sums, k best outputs and max-marginals: nothing is known of decisions but the best one. `hinge`,
    `ramp`, `perturbed`, `sparsemap` and `spo_plus` need no more. Whether a true decision is feasible is not checked.
    Exceptions of `solve` come out unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Solver, perturbed, regret, spo_plus
    >>> def two_best(values):  # of items that weigh the same
    ...     return (values >= np.sort(values)[-2]).astype(float)
    >>> choice, truth = Solver(two_best), np.array([[5.0, 1.0, 3.0]])
    >>> choice.argmax(truth).tolist()
    [[1.0, 0.0, 1.0]]
    >>> guess = np.array([[5.0, 4.0, 3.0]])
    >>> regret(choice, (guess,), (truth,)).tolist()
    [2.0]
    >>> values, (gradient,) = spo_plus(choice, (guess,), (truth,))
    >>> values.tolist(), gradient.tolist()
    ([4.0], [[0.0, 2.0, -2.0]])
    >>> values, (gradient,) = perturbed(choice, (guess,), choice.argmax(truth), n_samples=50)
    >>> bool(gradient[0, 1] > 0 > gradient[0, 2])
    True
    """

    part_names: ClassVar[tuple[str, ...]] = ("scores",)

    def __init__(self, solve: Callable[[Values], ArrayLike], *, batched: bool = False, n_threads: int = 1) -> None:
        if not callable(solve):
            raise TypeError(f"solve must be a function of scores. Got {solve!r:.80}.")
        self.solve, self.batched, self.n_threads = solve, batched, checked_threads(n_threads)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        no_lengths(Solver, lengths)
        present, shapes = as_parts(Solver, parts, 1)
        scores = present["scores"]
        if scores.ndim < 2:
            raise ValueError(f"scores must have a batch axis and others. Got shape {scores.shape}.")
        check_values("scores", scores)
        if np.isneginf(scores).any():
            raise ValueError("scores must be finite: a solver has no masks. Got -inf.")
        return Scores((scores,), shapes, np.ones(len(scores), np.int64))

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        return self._checked("y", as_outputs(y), scores.parts[0].shape)

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        return (y.astype(scores.parts[0].dtype),)

    def costs(self, right: Floats) -> Floats:
        return 1 - 2 * right

    def best(self, scores: Scores) -> Labels:
        first = scores.parts[0].astype(np.float64)
        if self.batched:
            return self._checked("solve(scores)", np.asarray(self.solve(first)), first.shape)
        found = np.empty_like(first)

        def work(start: int, stop: int) -> None:
            for entry in range(start, stop):
                name = f"solve(scores) of batch entry {entry}"
                found[entry] = self._checked(name, np.asarray(self.solve(first[entry])), first[entry].shape)

        over_batch(len(first), self.n_threads, work)
        return cast(Labels, found)

    @staticmethod
    def _checked(name: str, decision: AnyArray, shape: tuple[int, ...]) -> Labels:
        """Numbers of this shape, as they are: those of a decision need not be integers."""
        if decision.shape != shape or decision.dtype.kind not in "fiub" or not np.isfinite(decision).all():
            raise ValueError(f"{name} must be finite numbers of shape {shape}. Got {decision.dtype} {decision.shape}.")
        return cast(Labels, decision.astype(np.float64))

    # ---- nothing else is known of decisions ----------------------------------------------------------------

    def sums(self, scores: Scores, *, marginals: bool = True) -> Never:
        self._refuse("log_partition, marginals, entropy and sample")

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Never:
        self._refuse("sample")

    def restrict(self, scores: Scores, y: Labels) -> Never:
        self._refuse("outputs that are known in part")

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> Never:
        self._refuse("kbest")

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Never:
        self._refuse("max_marginals")

    def _refuse(self, verbs: str) -> Never:
        raise NotImplementedError(
            f"Solver has no {verbs}: of its outputs only the best is known. Take argmax, and the losses spo_plus, "
            "perturbed, hinge, ramp and sparsemap."
        )


def spo_plus(
    structure: Structure,
    parts: Sequence[object],
    y: object,
    lengths: ArrayLike | None = None,
    *,
    known: ArrayLike | None = None,
    per_entry: bool = False,
) -> Loss:
    """The convex bound of the regret of decisions by predicted scores, SPO+.

    `y` is the true scores, parts like `parts`. `known` is the best outputs by these, where they have been found before:
    ``structure.argmax(*y)``.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Assignment, spo_plus
    >>> truth, guess = np.array([[[2.0, 0.0], [0.0, 1.0]]]), np.array([[[0.0, 1.0], [0.0, 0.0]]])
    >>> values, (gradient,) = spo_plus(Assignment(), (guess,), (truth,))
    >>> values.tolist(), gradient[0].tolist()
    ([5.0], [[-2.0, 2.0], [2.0, -2.0]])
    """
    scores, truth = _both(structure, parts, y, lengths)
    wanted = structure.best(truth) if known is None else structure.check_output(known, truth)
    right = structure.indicators(wanted, scores)
    with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
        ahead = tuple(
            np.ascontiguousarray(np.where(np.isneginf(own), own, own + (own - np.where(np.isneginf(true), 0, true))))
            for own, true in zip(scores.parts, truth.parts, strict=True)
        )
    harder = replace(scores, parts=tuple(part.astype(own.dtype) for part, own in zip(ahead, scores.parts, strict=True)))
    worst = structure.indicators(structure.best(harder), scores)
    values = expected(harder, worst) - 2 * score_of_truth(scores, right) + expected(truth, right)
    gradients = tuple(2 * (found - own) for found, own in zip(worst, right, strict=True))
    return np.maximum(values, 0.0), scores.gradients(per_entry, gradients)


def regret(structure: Structure, parts: Sequence[object], y: object, lengths: ArrayLike | None = None) -> Values:
    """Return what decisions by predicted scores lose, (B,): the best true score less the chosen output's.

    `y` is the true scores, parts like `parts`. The normalised regret of a batch is the sum over that of the sizes of
    the best true scores.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Assignment, regret
    >>> truth, guess = np.array([[[2.0, 0.0], [0.0, 1.0]]]), np.array([[[0.0, 1.0], [0.0, 0.0]]])
    >>> regret(Assignment(), (guess,), (truth,)).tolist()
    [3.0]
    """
    scores, truth = _both(structure, parts, y, lengths)
    best, chosen = (structure.indicators(structure.best(by), truth) for by in (truth, scores))
    return np.maximum(expected(truth, best) - expected(truth, chosen), 0.0)


def _both(structure: Structure, parts: Sequence[object], y: object, lengths: ArrayLike | None) -> tuple[Scores, Scores]:
    """Predicted and true scores, of the same shapes and with the same masks."""
    if not isinstance(y, Sequence):
        raise ValueError(f"y must be the true scores, a tuple of arrays. Got {type(y).__name__}.")
    scores, truth = structure.check(parts, lengths), structure.check(y, lengths)
    n, n_true = len(scores.lengths), len(truth.lengths)
    if n != n_true:
        raise ValueError(f"y must have the batch entries that the parts have. Got {n_true}, not {n}.")
    for own, true in zip(scores.parts, truth.parts, strict=True):
        if own.shape[1:] != true.shape[1:]:
            raise ValueError(
                f"y must have arrays of the shapes that the parts have. Got {true.shape}, not {own.shape}."
            )
        if (np.isneginf(own) != np.isneginf(true)).any():
            raise ValueError("y must be masked (-inf) where the parts are, and nowhere else.")
    return scores, truth
