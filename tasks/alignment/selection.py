"""The mode, and the costs to start from, chosen on the training pairs: ``mode="auto"`` and ``prior="auto"``.

Published matrices, and the log-odds of the training pairs themselves, align the pairs with gaps of many costs; those
that find most of what the references assess are chosen. First, in each mode and with one matrix, the gaps: all of a
grid on a few pairs, the better ones on three times as many, and so on. From these, costs are learnt in two passes in
each mode: which mode aligns best by published costs says little about learnt ones. The usual mode stays unless another
finds more in held-out pairs, by more than two standard errors of the difference. Then, by turns until nothing helps,
the matrix, the first letter of a gap and the further ones. Gaps are counted in what a letter scores with itself on
average, so that one grid serves matrices in all units.

Alignments do not depend on the unit of their scores; training does, which asks for margins of the loss's size. Chosen
costs are multiplied by the factor at which their mean hinge loss is least.

Last, for ``context="auto"``, costs are learnt from the chosen ones without and with weights by the letters around.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import warn
from structsvm.dual.parallel import Rounds
from structsvm.progress import Monitor
from structsvm.solvers import LaRank
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks.alignment.examples import AlignedPairs, pool_groups
from structsvm.tasks.common.selection.search import Part
from structsvm.tasks.common.solver import AUTO

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import TypeAlias

    from structsvm.arrays import Floats
    from structsvm.structures.alignments import References
    from structsvm.tasks.alignment.model import AlignmentModel
    from structsvm.tasks.alignment.parameters import SequenceAlignerParameters
    from structsvm.tasks.common.solver import Settings

    # A substitution matrix: the name of a published one, a file, or scores; Biopython's Array is an ndarray.
    MatrixSource: TypeAlias = str | os.PathLike[str] | SubstitutionMatrix | NDArray[np.float64]
    # The same alone, or with the scores of the first and of each further letter of a gap.
    Prior: TypeAlias = MatrixSource | tuple[MatrixSource, float | None, float | None] | None

# Values of `context`: strings have contexts, or none.
LETTERS_AROUND, NO_CONTEXT = "letters", "none"
MODES = ("semi_global", "global", "local")
# Matrices in Biopython; COUNTED are the log-odds of the training pairs, EQUAL scores of equal and other letters.
MATRICES = {"protein": ("BLOSUM62", "BLOSUM45", "BLOSUM80", "GONNET1992", "PAM250"), "dna": ("NUC.4.4",)}
COUNTED, EQUAL = "counted", "equal"

# Scores of the first letter of a gap and of each further one, in those of a letter with itself.
OPENS, EXTENDS = (-1.2, -1.9, -2.8), (-0.06, -0.17, -0.4)
OPEN, EXTEND = -1.9, -0.17
# Factors that gaps are refined by.
STEPS = (0.6, 0.8, 1.25, 1.6)
# Fewer pairs choose nothing; the first round is on FIRST pairs, the last on LAST; a round keeps one of KEPT.
FEWEST_PAIRS, FIRST, LAST, KEPT = 20, 32, 288, 3
# The trial of a mode: so many pairs at most, one group of them in HELD_OUT held out, learnt from in two passes; and the
# standard errors of the difference by which another mode than the usual one must be better. The trial of contexts holds
# each part out in turn; as C is chosen afterwards, with the prior as one of the choices, an error in it costs little.
TRIAL, HELD_OUT, SOLVER, SURE = 864, 3, LaRank(C=0.001, max_iter=4, random_state=0), 2.0
SURE_OF_CONTEXT = 1.0
# Factors on the chosen costs.
SCALES = 2.0 ** np.arange(-12.0, 4.0)


def is_auto(prior: object) -> bool:
    """Whether a prior is to be chosen; a matrix of Biopython is an array, which compares by element."""
    return isinstance(prior, str) and prior == AUTO


class Costs(NamedTuple):
    """Costs to start from: the name of a matrix, gaps, and a factor on all of them."""

    mode: str
    matrix: str
    gap_open: float
    gap_extend: float
    scale: float = 1.0

    @classmethod
    def read(cls, value: Any) -> Self:
        """From a list of the fields; ValueError or TypeError for what cannot be one."""
        mode, matrix, *numbers = value
        if mode not in MODES or type(matrix) is not str or len(numbers) != 3 or not np.isfinite(numbers).all():
            raise ValueError(f"costs {value!r:.80}")
        return cls(mode, matrix, *map(float, numbers))

    def __str__(self) -> str:
        return f"{self.matrix}, gaps {self.gap_open:.3g}, {self.gap_extend:.3g}, times {self.scale:.3g}; {self.mode}"


def prior_costs(prior: Prior) -> tuple[MatrixSource | None, float | None, float | None]:
    """The prior's matrix and scores of a gap's first and further letters; None for what is not given."""
    return prior if isinstance(prior, tuple) else (prior, None, None)


class Selection:
    """The choice for a model.

    Parameters
    ----------
    model : AlignmentModel
        As given by the parameters, in any mode if the mode is to be chosen.
    params : object with the attributes mode and prior
    references : References
    """

    def __init__(
        self, model: AlignmentModel, params: SequenceAlignerParameters | Settings, references: References
    ) -> None:
        self.model, self.references = model, references
        self.is_open = params.mode == AUTO
        self.modes = self._fitting_modes() if self.is_open else (params.mode,)
        self.is_linear = model.oracle.gaps == "linear"
        matrix, *self.given = prior_costs(params.prior)
        self.matrices = self._matrices(matrix)
        self.order = np.random.default_rng(0).permutation(len(references))
        self.models: dict[str, AlignmentModel] = {}
        self.parts: dict[int, References] = {}
        self.scores: dict[tuple[Costs, int], Floats] = {}

    def _fitting_modes(self) -> Sequence[str]:
        """The modes in which the references are in the band; all of them if none is, for training to say so."""
        if self.model.oracle.band is None or len(self.references.codes) == 0:
            return MODES
        return [mode for mode in MODES if self._fits(self.model.in_mode(mode))] or MODES[:1]

    def _fits(self, model: AlignmentModel) -> bool:
        try:
            model.oracle.bind_references(model.trimmed(self.references))
        except ValueError:
            return False
        return True

    def _matrices(self, matrix: MatrixSource | None) -> dict[str, SubstitutionMatrix]:
        """The matrices to choose from, the usual one first."""
        if matrix is not None and not is_auto(matrix):
            return {"prior": self.model.matrix_of(matrix)}
        letters, of_letters = self.model.encoder.letters, self.model.encoder.words is None
        names, found = MATRICES.get(self.model.encoder.alphabet, ()) if of_letters else (), {}
        try:
            found = {name: SubstitutionMatrix.published(name).over(letters) for name in names}
        except ImportError as error:
            warn(f"mode and prior are chosen with equal scores of all letters: {error}", UserWarning)
        found = found or {EQUAL: SubstitutionMatrix(letters, 2.0 * np.eye(len(letters)) - 1.0)}
        if of_letters and len(self.references) >= FEWEST_PAIRS and len(self.references.codes):
            found[COUNTED] = self.model.log_odds(self.references)
        return found

    def choose(self) -> Costs:
        """The best costs; the usual ones where there are too few pairs to choose by."""
        first = next(iter(self.matrices))
        unit = self._unit(first)
        opens, extends = self._gaps(OPENS, EXTENDS, unit)
        if len(self.references) < FEWEST_PAIRS:
            opens, extends = self._gaps((OPEN,), (EXTEND,), unit)
            return Costs(self.modes[0], first, opens[0], opens[0] if self.is_linear else extends[0])
        gaps = [(a, a) for a in opens] if self.is_linear else [(a, b) for a in opens for b in extends]
        found = [self._best_gaps([Costs(mode, first, *gap) for gap in gaps]) for mode in self.modes]
        return self._refined(found[0] if len(found) == 1 else self._best_mode(found))

    def _best_gaps(self, found: list[Costs]) -> Costs:
        size = FIRST
        while len(found) > 1 and size < LAST:
            found = sorted(found, key=partial(self.score, size=size), reverse=True)[: -(-len(found) // KEPT)]
            size *= KEPT
        return self._best(found)

    def _best(self, found: list[Costs]) -> Costs:
        return found[0] if len(found) == 1 else max(found, key=self.score)

    def _best_mode(self, found: list[Costs]) -> Costs:
        """The first of these costs, or those that are better by more than `SURE` standard errors of the difference."""
        trial, (held_out, *_) = self._trial()
        held = [self._learnt(self.model.in_mode(costs.mode), costs, trial, held_out) for costs in found]
        best = 0
        for k, one in enumerate(held):
            if is_above(one, held[0], SURE) and one.mean() > held[best].mean():
                best = k
        return found[best]

    def context_helps(self, costs: Costs) -> bool:
        """Whether held-out pairs are aligned better by costs learnt from these with contexts than without.

        False where nothing can be learnt: from few pairs, from decoys, and where the band does not fit, for training to
        say so.
        """
        models = [self.model.in_mode(costs.mode).in_context(context) for context in (NO_CONTEXT, LETTERS_AROUND)]
        data = self.references
        if len(data) < FEWEST_PAIRS or not models[1].oracle.contexts or len(data.decoys) or not len(data.codes):
            return False
        trial, parts = self._trial()
        if any(held_out.all() or not held_out.any() for held_out in parts):
            return False
        try:
            without, with_them = (
                np.concatenate([self._learnt(model, costs, trial, held_out) for held_out in parts]) for model in models
            )
        except ValueError:
            return False
        return is_above(with_them, without, SURE_OF_CONTEXT)

    def _trial(self) -> tuple[References, list[NDArray[np.bool_]]]:
        """Pairs to learn from in a trial, and which of them are held out, in turn."""
        trial = self.references.chosen(np.sort(self.order[:TRIAL]))
        group = pool_groups(trial)
        order = np.random.default_rng(0).permutation(np.unique(group))
        return trial, [np.isin(group, order[k::HELD_OUT]) for k in range(HELD_OUT)]

    def _learnt(self, model: AlignmentModel, costs: Costs, trial: References, held_out: NDArray[np.bool_]) -> Floats:
        """The scores of held-out pairs by costs that were learnt from the others where their alignments are known.

        Contexts make joint features longer, and C is the less.
        """
        model.set_costs(self.matrices[costs.matrix], costs.gap_open, costs.gap_extend)
        pairs = AlignedPairs(model.trimmed(trial) if self.is_open else trial)
        if not len(trial.codes) or held_out.all():
            return model.held_out_scores(pairs.take(np.flatnonzero(held_out))).numerator
        learnt_from = pairs.take(np.flatnonzero(~held_out))
        model.weights *= scaled(model, learnt_from.references)
        model.guide = model.weights
        solver = SOLVER
        if model.oracle.contexts:
            plain = model.in_context(NO_CONTEXT)
            plain.weights = model.weights[: plain.oracle.n_features]
            solver = replace(SOLVER, C=SOLVER.C * plain.scale(learnt_from) / model.scale(learnt_from))
        part = Part(model, pairs, held_out, solver)
        try:
            part.train(solver, Monitor())
        except KeyboardInterrupt:
            raise KeyboardInterrupt("while mode and context were chosen: the estimator is as it was") from None
        return part.model.held_out_scores(part.others).numerator

    def _gaps(self, opens: Sequence[float], extends: Sequence[float], unit: float) -> tuple[tuple[float, ...], ...]:
        """The gaps to choose from, or those that are given."""
        if self.is_linear:
            opens = (-0.2, -0.5, -0.9, -1.4) if len(opens) > 1 else (-0.9,)
        return tuple(
            tuple(gap * unit for gap in gaps) if given is None else (float(given),)
            for gaps, given in zip((opens, extends), self.given, strict=True)
        )

    def _unit(self, name: str) -> float:
        """Mean score of a letter with itself."""
        matrix = self.matrices[name]
        own = np.diag(matrix.values)
        return float(own[own > 0.0].mean()) if (own > 0.0).any() else 1.0

    def _refined(self, best: Costs) -> Costs:
        """Better costs near by: other matrices, with gaps in their units, and other gaps."""
        before = None
        while best != before:
            before = best
            for variants in (self._other_matrices, self._other_gaps):
                best = self._best([best, *variants(best)])
        return best

    def _other_matrices(self, costs: Costs) -> list[Costs]:
        found = []
        for name in self.matrices:
            ratio = self._unit(name) / self._unit(costs.matrix)
            gaps = (
                old * ratio if given is None else old
                for old, given in zip((costs.gap_open, costs.gap_extend), self.given, strict=True)
            )
            found.append(Costs(costs.mode, name, *gaps))
        return [other for other in found if other.matrix != costs.matrix]

    def _other_gaps(self, costs: Costs) -> list[Costs]:
        found = []
        if self.given[0] is None:
            for step in STEPS:
                gap = costs.gap_open * step
                found.append(costs._replace(gap_open=gap, gap_extend=gap if self.is_linear else costs.gap_extend))
        if self.given[1] is None and not self.is_linear:
            found += [costs._replace(gap_extend=costs.gap_extend * step) for step in STEPS]
        return found

    # ---- how good costs are ---------------------------------------------------------------------

    def score(self, costs: Costs, size: int = LAST) -> float:
        """The model's score with these costs on `size` pairs."""
        return float(self.judged(costs, size).mean())

    def judged(self, costs: Costs, size: int = LAST) -> Floats:
        """The scores of the pairs, float64 array."""
        if (costs, size) not in self.scores:
            part = self.parts.setdefault(size, self.references.chosen(np.sort(self.order[:size])))
            model = self.models.setdefault(costs.mode, self.model.in_mode(costs.mode))
            model.set_costs(self.matrices[costs.matrix], costs.gap_open, costs.gap_extend)
            self.scores[costs, size] = model.held_out_scores(AlignedPairs(part)).numerator
        return self.scores[costs, size]


def is_above(one: Floats, other: Floats, sure: float) -> bool:
    """Whether scores are higher than others of the same pairs, by so many standard errors of the difference."""
    difference = one - other
    return bool(difference.mean() > sure * difference.std() / np.sqrt(len(difference)))


def scaled(model: AlignmentModel, references: References) -> float:
    """The factor on a model's weights at which the mean hinge loss of some pairs is least."""
    part = references.chosen(np.arange(min(len(references), FIRST)))
    rounds = Rounds(model.oracle.bind_references(model.oracle.completed(part, model.weights)))
    losses = [rounds.violations(scale * model.weights).sum() for scale in SCALES]
    return float(SCALES[int(np.argmin(losses))])
