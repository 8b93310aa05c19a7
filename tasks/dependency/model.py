"""A trained dependency parser without scikit-learn: labels, templates, oracle, weights.

`DependencyParser` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.dual.parallel import parallel_parts
from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.features.inputs.seen_columns import SeenColumns
from structsvm.features.word_codes import OWN, OwnColumns
from structsvm.files.weight_rows import RaggedRows, blocks, n_blocks, rows_from
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.dependency.arcs import DependencyOracle
from structsvm.oracles.eisner import EisnerOracle
from structsvm.parameters import checked_k
from structsvm.stored_values import Count, Flag, Names, Record, Stored, Text, Value
from structsvm.tasks.common.inspection.inputs import are_sentences
from structsvm.tasks.common.inspection.weights import Contribution, Explanation, two_best
from structsvm.tasks.common.likelihood import (
    StructureCalibration,
    calibrate_on,
    probable_weights,
    ranking_weights,
    temperature_of_loss,
    with_probabilities,
)
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.selection.search import TINY, Held, Search, first_scale
from structsvm.tasks.dependency.arcs import check_sentences, outputs_of
from structsvm.tasks.dependency.examples import ParsedSentences
from structsvm.tasks.dependency.pairs import PAIR_WEIGHTS, PAIRS, Halves, SecondStage, candidates_of, train_pairs
from structsvm.tasks.dependency.parameters import ArcFeatures
from structsvm.tasks.dependency.words import COLUMNS, GIVEN, encoded, is_given, stand_in, values_given, words_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.features.word_codes import OwnFeatures
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.dependency.examples import Arcs
    from structsvm.tasks.dependency.words import SentenceLike

RECORD = Record({
    "labels": Names(),
    "subtypes": Flag(),
    "max_length": Count(1),
    "n_crossing": Count(),
    "templates": Record({"arcs": Names(), "labels": Names()}, of="oracle.templates"),
    "oracle": Record({
        "projective": Flag(),
        "arc_bits": Count(1, 28),
        "row_bits": Count(1, 28),
        "root_label": Count(null=True),
        "loss": Text(of="loss_name"),
    }),
    **OWN,
    "coarse": Flag(),
    "seen": Value(SeenColumns.from_json, SeenColumns.to_json, needed=False),
    "weights": RaggedRows(("n_features",), of="stored_weights"),
    "pairs": PAIRS,
    "weights of pairs": PAIR_WEIGHTS,
})  # fmt: skip

# Trees that a second stage ranks anew: so many times those asked for, and at least so many.
MORE, FEWEST_RANKED = 2, 16
UPOS, XPOS = COLUMNS.index("upos"), COLUMNS.index("xpos")


class DependencyModel(TaskModel[ParsedSentences]):
    """Labels, oracle and weights of a parser.

    Attributes
    ----------
    labels : list of str
        The labels, ascending; an oracle's label k is ``labels[k]``.
    oracle : EisnerOracle or ArborescenceOracle
    subtypes : bool
        Whether labels keep what follows a colon.
    max_length : int
    n_crossing : int
        Trees with crossing arcs among those that it was first trained on.
    coarse : bool
        Whether UPOS replaces XPOS.
    own : OwnColumns
        The user's columns of words.
    seen : SeenColumns or None
        Which columns the words of training had; None: a file of an older version does not say.
    weights : ndarray of shape (oracle.n_features,), float32
    pairs : SecondStage or None
        The second stage.
    pair_templates : PairTemplates or None
        Of the second stage that training is to find, if it is.
    pairs_cross : bool
        Whether that may let arcs cross even where the first stage does not.
    """

    kind = "dependency"
    record = RECORD
    estimator = "DependencyParser"
    pair_templates: PairTemplates | None = None
    pairs_cross = False
    weights: NDArray[np.float32]
    has_temperature = True
    calibration = StructureCalibration()
    calibrates = False
    groups = (ArcFeatures,)
    most_examples = 1000  # beyond that C hardly depends on their number

    def __init__(
        self,
        labels: Sequence[str],
        oracle: DependencyOracle,
        *,
        subtypes: bool,
        max_length: int,
        n_crossing: int = 0,
        coarse: bool = False,
        own: OwnColumns | None = None,
        seen: SeenColumns | None = None,
        weights: NDArray[np.float32] | None = None,
        pairs: SecondStage | None = None,
    ) -> None:
        super().__init__()
        self.own = OwnColumns() if own is None else own
        self.labels, self.oracle, self.subtypes, self.max_length = labels, oracle, subtypes, max_length
        self.n_crossing, self.coarse, self.seen = n_crossing, coarse, seen
        self.weights = np.zeros(oracle.n_features, dtype=np.float32) if weights is None else weights
        self.temperature = temperature_of_loss(oracle)
        self.pairs = pairs

    def set_columns(self, columns: OwnFeatures | None) -> None:
        """Set the user's callable; see `OwnColumns.with_features`."""
        self.own = self.own.with_features(columns)

    @property
    def projective(self) -> bool:
        """Whether no arcs of a predicted tree cross."""
        return bool(self.oracle.projective and (self.pairs is None or self.pairs.oracle.projective))

    # ---- training -------------------------------------------------------------------------------

    def bind(self, examples: ParsedSentences, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        return examples.bound(self.oracle, **solver.formulation()), examples.weight

    def warm_run(self, job: Job[ParsedSentences]) -> Run | None:
        """A run from where those on halves of the sentences, which the second stage needs, have come."""
        solver = job.solver
        if job.passes is not None or self.pair_templates is None:
            return None
        if not solver.takes_back or solver.state_kind != "dual":
            return None
        job.notes = Halves.trained(self.oracle, solver, job.problem, job.weight)
        if job.notes is None:
            return None
        run = solver.start(job.problem, sample_weight=job.weight)
        job.notes.start(run)
        return run

    def finish(self, job: Job[ParsedSentences]) -> None:
        """Train the second stage, but not by a batch of a stream."""
        run, halves = job.run, job.notes
        if self.state is None:
            return
        self.pairs = None
        if self.pair_templates is None or run.status == "interrupted":
            return
        try:
            if halves is None:
                halves = Halves.trained(self.oracle, run.last_solver, run.problem, job.weight)
            if halves is not None:
                projective = self.oracle.projective and not self.pairs_cross
                self.pairs = train_pairs(self.oracle.n_labels, self.pair_templates, projective, halves)
        except KeyboardInterrupt:
            run.status = "interrupted"

    def held_out_scores(self, examples: ParsedSentences) -> Held:
        """Words with the right head and the right label."""
        found = self.parse(examples.codes, examples.offsets)
        right = np.concatenate([[0], np.cumsum((found == examples.outputs).all(axis=1))])
        return Held("LAS", np.diff(right[examples.offsets]), np.diff(examples.offsets))

    def search_of_loss(self, examples: ParsedSentences, solver: Solver) -> LeastSearch:
        self.oracle.check_outputs(examples.offsets, examples.outputs)  # whose errors name a sentence among all
        return LeastSearch(self, examples.subsample(self.most_examples), solver)

    def scale(self, examples: ParsedSentences) -> float:
        return first_scale(examples.bound(self.oracle))

    # ---- probabilities --------------------------------------------------------------------------

    def calibrate(self, X: Collection[SentenceLike], arcs: Sequence[Arcs]) -> None:
        """Fit the temperature to sentences that the model was not trained on."""
        calibrate_on(self, self.known_problem(X, arcs, "calibrate"))

    def known_problem(self, X: Collection[SentenceLike], arcs: Sequence[Arcs], asked: str) -> BoundProblem:
        """The problem of sentences with their trees; ValueError, naming what asks, for one that is known in part."""
        codes, offsets = self.as_trained(*encoded(X, self.own))
        examples = ParsedSentences(codes, offsets, outputs_of(arcs, offsets, self.labels, self.subtypes))
        open_ones = np.setdiff1d(np.arange(len(examples)), examples.whole)
        if len(open_ones):
            raise ValueError(f"sentence {open_ones[0]}: its tree is known in part, and {asked} needs whole ones")
        return examples.bound(self.oracle, rescaling=None)

    def head_chances(self, X: Collection[SentenceLike]) -> Iterator[NDArray[np.float64]]:
        """Yield per sentence an array (n_words, n_words + 1): the probability of each head of each word."""
        weights = probable_weights(self, "predict_proba")
        codes, offsets = self.encode(X)
        decoder = self.oracle.decoder(int(np.diff(offsets).max(initial=1)))
        for a, b in pairwise(offsets.tolist()):
            if a == b:
                yield np.empty((0, 1))
                continue
            _, chances = decoder.chances(decoder.table(codes[a:b], weights))
            yield np.ascontiguousarray(chances.sum(axis=2).T)

    # ---- prediction -----------------------------------------------------------------------------

    def encode(self, X: Collection[SentenceLike]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return ``(codes, offsets)`` of sentences; ValueError for what is not a sentence or is too long."""
        check_sentences(X)
        codes, offsets = encoded(X, self.own)
        check_lengths(offsets, self.max_length)
        return self.as_trained(codes, offsets)

    def as_trained(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The codes of words as training had them: without columns that it did not have, and with UPOS in place of
        XPOS, where that is too fine.

        Raises
        ------
        ValueError
            For a column that the words of training had and these have not, if a template sees it.
        """
        if self.seen is not None:
            names = self.columns_seen
            wanted = SeenColumns({name: self.seen.columns[name] for name in names})
            remedy = ". Words are dicts of their columns, or those of read_conllu; TaggedParser finds tags"
            wanted.check(values_given(codes, names), len(codes), remedy)
            absent = [name for name in GIVEN if not self.seen.columns[name].share]
            more = [name for name in absent if is_given(codes, name).any()]
            if more:
                for name in absent:
                    codes[:, COLUMNS.index(name)] = stand_in(codes, name)
                warn(f"X has {', '.join(more)}, which the words of training had not: left out", AdviceWarning)
        if self.coarse:
            codes[:, XPOS] = codes[:, UPOS]
        return codes, offsets

    @property
    def columns_seen(self) -> list[str]:
        """The columns that users give and a template sees; XPOS in the form of UPOS, if that replaces it."""
        templates = self.oracle.templates
        texts = " ".join([*templates.arcs, *templates.labels])
        if self.pairs is not None:
            texts += " " + " ".join(self.pairs.oracle.templates.texts)
        names = {part.partition(".")[2] for part in texts.split()}
        names |= {"upos"} if self.coarse and "xpos" in names else set()
        return [name for name in GIVEN if name in names and not (self.coarse and name == "xpos")]

    def parse(self, codes: NDArray[np.int32], offsets: NDArray[np.int64], *, n_jobs: int = 1) -> NDArray[np.int32]:
        """Heads and label ids of all words, int32 (n_words, 2)."""

        def work(a: int, b: int) -> NDArray[np.int32]:
            words, places = codes[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a]
            if self.pairs is not None:
                found = candidates_of(self.oracle, self.weights, words, places, self.pairs.unit)
                return self.pairs.parse(words, places, found)
            decoder = self.oracle.decoder(int(np.diff(places).max(initial=1)))
            return decoder.parse(words, places, self.weights)[0]

        return parallel_parts(work, len(offsets) - 1, n_jobs)

    def predict(self, X: Collection[SentenceLike], *, n_jobs: int = 1) -> list[Arcs]:
        """Per sentence, the (head, label) of each word."""
        codes, offsets = self.encode(X)
        outputs = self.parse(codes, offsets, n_jobs=n_jobs)
        return [self.arcs(outputs[a:b]) for a, b in pairwise(offsets.tolist())]

    def arcs(self, output: Integers) -> Arcs:
        """An oracle's output as a list of (head, label)."""
        return [(h, self.labels[label]) for h, label in output.tolist()]

    def predict_kbest(
        self, X: Collection[SentenceLike], k: int | None, *, probabilities: bool = False
    ) -> Iterator[list[tuple[Arcs, float]]]:
        """Yield a list of the k best ``(arcs, score)`` of each sentence; see `DependencyParser.predict_kbest`."""
        if k is not None:
            k = checked_k(k)
        weights = ranking_weights(self, probabilities=probabilities)
        codes, offsets = self.encode(X)
        for a, b in pairwise(offsets.tolist()):
            if a == b:
                yield []
                continue
            if not probabilities:
                found = self.ranked(codes[a:b], k)
            else:
                decoder = self.oracle.decoder(b - a)
                log_sum, _ = decoder.chances(decoder.table(codes[a:b], weights))
                found = with_probabilities(self.oracle.kbest(codes[a:b], weights, k), log_sum)
            yield [(self.arcs(output), score) for output, score in found]

    def ranked(self, codes: NDArray[np.int32], k: int | None) -> list[tuple[NDArray[np.int32], float]]:
        """The k best trees (None: all) of a sentence with their scores; of two stages, of those arcs rank best."""
        if self.pairs is None:
            return list(self.oracle.kbest(codes, self.weights, k))
        offsets = np.array([0, len(codes)])
        best = self.parse(codes, offsets)
        table = self.oracle.decoder(len(codes)).table(codes, self.weights)
        arcs = float(table[best[:, 0], np.arange(len(best)), best[:, 1]].sum(dtype=np.float64))
        others = self.oracle.kbest(codes, self.weights, None if k is None else max(MORE * k, FEWEST_RANKED))
        found = [(best, arcs), *((tree, score) for tree, score in others if (tree != best).any())]
        scored = [(tree, self.pairs.score(codes, tree, arcs)) for tree, arcs in found]
        return sorted(scored, key=lambda one: -one[1])[:k]

    def holds_several(self, x: object) -> bool:
        return are_sentences(x)

    def explain(self, x: SentenceLike) -> Explanation:
        """The features are hashed: what is told is what each arc that is not in both trees scores, and their pairs."""
        codes, _ = self.encode([x])
        alone = "the sentence has fewer than two trees, and two are compared"
        ranked = two_best(self.ranked(codes, 2) if len(codes) else [], alone)
        table = self.oracle.decoder(len(codes)).table(codes, self.weights)
        words = ["the root", *(word[0] for word in words_of(x))]
        trees = [output.tolist() for output, _ in ranked]
        found = [
            Contribution(
                f"{words[m + 1]} ({m + 1}) under {words[h]} ({h})", self.labels[k], sign * float(table[h, m, k])
            )
            for tree, other, sign in ((trees[0], trees[1], 1.0), (trees[1], trees[0], -1.0))
            for m, (h, k) in enumerate(tree)
            if other[m] != [h, k]
        ]
        if self.pairs is not None:
            unit = self.pairs.arc_unit
            found = [one._replace(value=unit * one.value) for one in found]
            more = ranked[0][1] - ranked[1][1] - sum(one.value for one in found)
            found.append(Contribution("pairs of arcs", "all", more))
        winner, runner_up = (self.arcs(output) for output, _ in ranked)
        return Explanation.of(winner, runner_up, found)

    # ---- compact models -------------------------------------------------------------------------

    def weight_rows(self) -> Integers:
        return rows_of_arcs(self.oracle)

    def in_few_bits(self, least: float, bits: int) -> Self:
        """As of all models; of pairs the weights below the same share of their largest are 0."""
        other = super().in_few_bits(least, bits)
        if self.pairs is not None:
            other.pairs = self.pairs.in_few_bits(least / max(float(np.abs(self.weights).max(initial=0.0)), TINY), bits)
        return other

    @property
    def stored_pairs(self) -> tuple[Floats, Integers | None] | None:
        """As `stored_weights`, of the second stage; None: there is none."""
        if self.pairs is None:
            return None
        return self.pairs.weights, None if self.report is None else self.pairs.weight_rows()

    # ---- model files ----------------------------------------------------------------------------

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        labels, about, own = stored.labels, dict(stored.oracle), OwnColumns.from_record(stored)
        if labels != sorted(labels):
            raise ValueError("labels that do not ascend")
        kind = EisnerOracle if about.pop("projective") else ArborescenceOracle
        templates = ArcTemplates(COLUMNS + own.names, stored.templates.arcs, stored.templates.labels, own.vectors)
        oracle = kind(len(labels), templates, **about)
        arrays = stored.arrays(n_features=oracle.n_features)
        weights = rows_from(arrays, "weights", n_rows_of_arcs(oracle), lambda: rows_of_arcs(oracle))
        pairs = None if stored.pairs is None else SecondStage.from_record(stored.pairs, arrays, oracle)
        about = {name: stored[name] for name in ("subtypes", "max_length", "n_crossing", "coarse", "seen")}
        return cls(labels, oracle, own=own, weights=weights, pairs=pairs, **about)


class LeastSearch(Search):
    """The choice of the least C whose score is hardly below the best.

    With few sentences a C from some 0.1 on holds no tree's box and all are the same, but for noise: the first value
    that is worse than the best ends the path. With many the smaller ones are better, by up to 0.4 points of LAS on the
    development parts of UD Dutch and UD English EWT.
    """

    lowest, patience, leeway = 3.0, 1, 0.5


# ---- what parameters ask for --------------------------------------------------------------------


def rows_of_arcs(oracle: DependencyOracle) -> Integers:
    """Lengths of the rows of weights: of the hashed numbers of arcs, then of the rows of labels."""
    return np.concatenate([blocks(1 << oracle.arc_bits), np.full(1 << oracle.row_bits, oracle.stride)])


def n_rows_of_arcs(oracle: DependencyOracle) -> int:
    """How many rows `rows_of_arcs` returns."""
    return n_blocks(1 << oracle.arc_bits) + (1 << oracle.row_bits)


def check_lengths(offsets: Integers, max_length: int) -> None:
    """Raise ValueError for a sentence of more words than `max_length`."""
    lengths = np.diff(offsets)
    if lengths.max(initial=0) > max_length:
        i = int(lengths.argmax())
        raise ValueError(f"sentence {i}: {lengths[i]} words are more than the cap max_length={max_length}")
