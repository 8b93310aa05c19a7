"""The second stage of a parser: scores of pairs of arcs, learnt around the scores that arcs have by themselves.

To a parser, arcs that it was trained on score far better than new ones do, and nothing would be left to learn. So the
sentences get their candidates by halves, each from the arcs as they would be without it (stacking: Wolpert 1992; for
parsers Martins, Das, Smith and Xing 2008).
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.dual.cuts import joined, scaled
from structsvm.features.arc_templates import PairTemplates
from structsvm.files.weight_rows import RaggedRows, blocks, in_few_bits, n_blocks, rows_from
from structsvm.oracles.dependency.arcs import DependencyOracle
from structsvm.oracles.dependency.pairs import PairOracle, TreeCandidates
from structsvm.solvers import LaRank
from structsvm.stored_values import Count, Flag, Names, Number, Record, Stored
from structsvm.tasks.common.parameters import bits_for
from structsvm.tasks.dependency.examples import ParsedSentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from structsvm.arrays import AnyArray, Integers, State, Weights
    from structsvm.oracles.dependency._dependency import ArcsProblem, DependencyProblem
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run, WeightRun

# How the stage is trained, found on the development parts of UD English EWT and UD Dutch, where values beside each are
# within 0.2 points of LAS: C and passes of LaRank, halves of the sentences, how far from a word's best arc its
# candidates may be, in units of the loss, what scores of arcs are multiplied by, lest regularisation hold them back.
C, PASSES, PARTS, GAP, SCALE = 0.005, 3, 2, 1.2, 10.0
# `turning_point` of arcs that were trained with a margin: 0.63 to 0.74 with 400 and 1,500 sentences of both.
OF_MARGIN = 0.7
MEASURED = 500  # sentences that it is found on
FEWEST_SENTENCES = 20  # sentences
BITS = (5, 10, 20)  # bits of the number of words; see `bits_for`
PAIRS = Record(
    {
        "templates": Names(of="oracle.templates.texts"),
        "bits": Count(1, 28, of="oracle.bits"),
        "projective": Flag(of="oracle.projective"),
        "unit": Number(),
    },
    needed=False,
)
PAIR_WEIGHTS = RaggedRows(("n_pairs",), of="stored_pairs", name="pairs")


class SecondStage(NamedTuple):
    """The oracle and the weights of the second stage, and what a unit of the loss is in the scores of arcs."""

    oracle: PairOracle
    weights: NDArray[np.float32]
    unit: float

    def parse(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64], candidates: TreeCandidates
    ) -> NDArray[np.int32]:
        """The trees of sentences, int32 (n_words, 2)."""
        decoder = self.oracle.decoder(int(np.diff(offsets).max(initial=1)))
        return decoder.parse(codes, offsets, candidates, self.weights)

    @property
    def arc_unit(self) -> float:
        """Weight of a unit of the scores of arcs."""
        return SCALE / self.unit * float(self.weights[-2])

    def score(self, codes: NDArray[np.int32], tree: Integers, arcs: float) -> float:
        """The score of a sentence's tree whose arcs score so much."""
        features, crossings = self.oracle.decoder(len(codes)).features(
            codes, np.ascontiguousarray(tree, dtype=np.int32)
        )
        pairs = self.weights[features].sum(dtype=np.float64) + crossings * self.weights[-1]
        return self.arc_unit * arcs + float(pairs)

    def weight_rows(self) -> Integers:
        """Lengths of the rows of weights, which share a unit in few bits."""
        return rows_of_pairs(self.oracle)

    def in_few_bits(self, least: float, bits: int) -> Self:
        """A copy with 0 for weights of pairs below a share of the largest, and with few bits for the others."""
        sizes = np.abs(self.weights[:-2])
        weights = self.weights.copy()
        weights[:-2][sizes < least * sizes.max(initial=0.0)] = 0.0
        return self._replace(weights=in_few_bits(weights, self.weight_rows(), bits))

    @classmethod
    def from_record(cls, stored: Stored, arrays: Mapping[str, AnyArray], arcs: DependencyOracle) -> Self:
        """The second stage of a file around these arcs."""
        templates = PairTemplates(arcs.templates.columns, stored.templates, arcs.templates.vectors)
        oracle = PairOracle(arcs.n_labels, templates, projective=stored.projective, bits=stored.bits)
        weights = rows_from(arrays, "pairs", n_blocks(oracle.n_features - 2) + 2, lambda: rows_of_pairs(oracle))
        if np.shape(weights) != (oracle.n_features,):
            raise ValueError(f"array 'pairs' has shape {np.shape(weights)}, expected ({oracle.n_features},)")
        return cls(oracle, weights, stored.unit)


def rows_of_pairs(oracle: PairOracle) -> Integers:
    """Lengths of the rows of weights: of hashed numbers, then those of arcs and of crossings."""
    return np.concatenate([blocks(oracle.n_features - 2), [1, 1]])


def candidates_of(
    oracle: DependencyOracle,
    weights: NDArray[np.float32],
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    unit: float,
    outputs: NDArray[np.int32] | None = None,
) -> TreeCandidates:
    """The candidates of sentences, in this unit of the loss; with their true `outputs`, these arcs are among them."""
    decoder = oracle.decoder(int(np.diff(offsets).max(initial=1)))
    found = TreeCandidates(*decoder.candidates(codes, offsets, weights, GAP * unit, outputs))
    found.arcs["score"] *= SCALE / unit
    return found


def turning_point(oracle: DependencyOracle, weights: NDArray[np.float32], data: ParsedSentences) -> float:
    """The t for which scores divided by t have the least hinge loss on sentences that weights were not trained on.

    With a word's margin d, its true arc's score minus that of its best other one, the sum of max(0, 1 - d / t) is least
    where the margins below t add up to 0.
    """
    decoder = oracle.decoder(int(np.diff(data.offsets).max(initial=1)))
    margins = []
    for a, b in pairwise(data.offsets[: MEASURED + 1].tolist()):
        table, words = decoder.table(data.codes[a:b], weights), np.arange(b - a)
        heads, labels = data.outputs[a:b].T
        true = table[heads, words, labels].astype(np.float64)
        table[heads, words, labels] = -np.inf
        margins.append(true - table.max(axis=(0, 2)))
    ascending = np.sort(np.concatenate(margins))
    ascending = ascending[np.isfinite(ascending)]
    k = int(np.searchsorted(np.cumsum(ascending), 0.0, side="right"))
    return float(ascending[k]) if k < len(ascending) else 0.0


class Halves(NamedTuple):
    """Training data of a second stage.

    Parameters
    ----------
    data : ParsedSentences
        Those with whole trees, half by half.
    candidates : TreeCandidates
        Theirs, by the arcs that the others have taught.
    unit : float
        Of the loss in these arcs' scores.
    parts : list of (ndarray of int, dict of ndarray)
        The others of each half, by their indices in the problem, and the state of training on them.
    """

    data: ParsedSentences
    candidates: TreeCandidates
    unit: float
    parts: list[tuple[NDArray[np.intp], State]]

    @classmethod
    def trained(
        cls, oracle: DependencyOracle, solver: Solver, problem: DependencyProblem, weight: Weights | None
    ) -> Self | None:
        """Train on the halves of a problem; None if it has too few sentences.

        Raises KeyboardInterrupt on Ctrl-C.
        """
        every = ParsedSentences(problem.codes_array, problem.offsets_array, problem.told[0], weight=weight)
        whole = every.whole
        if len(whole) < FEWEST_SENTENCES:
            return None
        found, parts, units = [], [], []
        for k in range(PARTS):
            others = np.delete(whole, np.s_[k::PARTS])
            rest, some = every.take(others), every.take(whole[k::PARTS])
            bound = rest.bound(oracle, **solver.formulation())
            run = after(PASSES, solver, bound, rest.weight)
            has_margin = run.state.kind != "weights"
            units.append(1.0 if has_margin else turning_point(oracle, run.weights, some) / OF_MARGIN)
            if units[-1] <= 0.0:
                return None  # these arcs tell nothing
            found.append(candidates_of(oracle, run.weights, some.codes, some.offsets, units[-1], some.outputs))
            parts.append((others, run.state.get_state()))
        data = every.take(np.concatenate([whole[k::PARTS] for k in range(PARTS)]))
        return cls(data, TreeCandidates.together(found), float(np.mean(units)), parts)

    def start(self, run: Run) -> None:
        """Let a fresh run start from the alphas of all halves, times what makes its dual greatest."""
        cuts = joined(self.parts)
        run.state.count_argmax(sum(int(part["counters"][0]) for _, part in self.parts))
        state = run.state.get_state()
        run.state.set_state(state | cuts, adapt=True)
        linear = float(cuts["cut_numbers"][:, 0] @ cuts["cut_numbers"][:, 1])
        quadratic = linear - run.state.dual
        if linear < 2.0 * quadratic:
            run.state.set_state(state | scaled(cuts, linear / (2.0 * quadratic)), adapt=True)


def after(n_passes: int, solver: Solver, problem: ArcsProblem, weight: Weights | None) -> WeightRun:
    """A run of so many passes, without a certificate."""
    solver = copy.copy(solver)
    solver.checkpoint, solver.random_state = None, 0
    run = solver.start(problem, sample_weight=weight)
    try:
        while run.n_iter < n_passes and not run.is_solved:
            run.advance()
    finally:
        run.close()
    return run


def train_pairs(n_labels: int, templates: PairTemplates, projective: bool, halves: Halves) -> SecondStage:
    """The second stage. Raises KeyboardInterrupt on Ctrl-C."""
    data = halves.data
    bits = bits_for(len(data.codes), *BITS)
    oracle = PairOracle(n_labels, templates, projective=projective, bits=bits)
    problem = oracle.bind((data.codes, data.offsets, halves.candidates), data.outputs)
    return SecondStage(oracle, after(PASSES, LaRank(C=C), problem, data.weight).weights, halves.unit)
