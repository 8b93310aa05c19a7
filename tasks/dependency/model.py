"""A trained dependency parser without scikit-learn: labels, templates, oracle, weights.

`DependencyParser` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.dual.parallel import parallel_parts
from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.features.inputs.seen_columns import SeenColumns
from structsvm.features.word_codes import OWN, OwnColumns
from structsvm.files.weight_rows import RaggedRows, blocks, n_blocks, rows_from
from structsvm.metrics._counts import IGNORED, number_of
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.dependency.arcs import DependencyOracle
from structsvm.oracles.eisner import EisnerOracle
from structsvm.parameters import checked_k
from structsvm.stored_values import Count, Flag, Names, Record, Stored, Text, Value
from structsvm.structures.dependencies import DependencyTree, crossing_arcs, what_is_no_tree, with_one_root
from structsvm.tasks.common.examples import check_no_words, checked_sample_weight
from structsvm.tasks.common.inspection.inputs import are_sentences
from structsvm.tasks.common.inspection.weights import Contribution, Explanation, two_best
from structsvm.tasks.common.labels import check_classes, listed
from structsvm.tasks.common.likelihood import (
    StructureCalibration,
    calibrate_on,
    probable_weights,
    ranking_weights,
    temperature_of_loss,
    with_probabilities,
)
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import bits_for, check_group_unchanged, check_unchanged
from structsvm.tasks.common.selection.search import TINY, Held, Search, first_scale
from structsvm.tasks.common.units import later_vectors, units_of_vectors
from structsvm.tasks.dependency.examples import ParsedSentences
from structsvm.tasks.dependency.pairs import (
    PAIR_WEIGHTS,
    PAIRS,
    Halves,
    SecondStage,
    candidates_of,
    train_pairs,
)
from structsvm.tasks.dependency.parameters import (
    OF_FEATURES,
    SETTLED,
    ArcFeatures,
    features_of,
    make_pair_templates,
    make_templates,
)
from structsvm.tasks.dependency.words import COLUMNS, GIVEN, encoded, is_given, stand_in, values_given, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.features.word_codes import OwnFeatures
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.dependency.examples import Arcs, ArcsLike
    from structsvm.tasks.dependency.parameters import Params
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

# From this share of training arcs that cross others on, "auto" lets arcs cross, and without them there is a warning. A
# projective parser never finds them, but errs less elsewhere.
MANY_CROSSING = 0.02
# More values of XPOS than that are morphology, which FEATS tells as well: UPOS stands in for it.
MOST_TAGS = 100
# Trees that a second stage ranks anew: so many times those asked for, and at least so many.
MORE, FEWEST_RANKED = 2, 16
UPOS, XPOS = COLUMNS.index("upos"), COLUMNS.index("xpos")
# Without arc_bits and row_bits: so many numbers and rows per word of the training trees, in powers of two, and their
# bounds; see `bits_for`.
ARC_BITS, ROW_BITS = (5, 10, 22), (1, 6, 18)


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


def check_sentences(X: object) -> None:
    """Raise ValueError unless X is a list or another collection."""
    if isinstance(X, (str, bytes, DependencyTree)) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list of sentences, got {X!r:.80}")
    check_no_words(X)


def known_arcs_of(X: Collection[SentenceLike], y: Collection[ArcsLike] | None) -> list[Arcs]:
    """`arcs_of` trees to compare with, with one root or several: ValueError for a word without a head, or no tree."""
    found = arcs_of(X, y)
    for i, tree in enumerate(found):
        for j, (head, _) in enumerate(tree):
            if head < 0:
                raise ValueError(f"sentence {i}: word {j + 1} has no head, and so there is nothing to compare with")
        problem = what_is_no_tree(with_one_root([head for head, _ in tree]))
        if problem:
            raise ValueError(f"sentence {i}: {problem}")
    return found


def arcs_of(X: Collection[SentenceLike], y: Collection[ArcsLike] | None) -> list[Arcs]:
    """The (head, label) of the words of each sentence: those of y, of the trees y, or of the trees X."""
    check_sentences(X)
    given: Collection[SentenceLike | ArcsLike] = X if y is None else y
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise ValueError(f"y must be a list of trees, got {given!r:.80}")
    if len(given) != len(X):
        raise ValueError(f"X has {len(X)} sentences, y has {len(given)} trees")
    if len(X) == 0:
        raise ValueError("there are no sentences")
    found, n_marks = [], 0
    for i, tree in enumerate(given):
        if isinstance(tree, DependencyTree):
            found.append(tree.arcs)
            continue
        if y is None:
            raise ValueError(f"sentence {i}: without y it must be a DependencyTree, got {tree!r:.80}")
        if isinstance(tree, (str, bytes)) or not hasattr(tree, "__len__"):
            raise ValueError(f"sentence {i}: its tree must be a list of (head, label), got {tree!r:.80}")
        found.append([_arc(i, pair) for pair in tree])
        n_marks += sum(number_of(part) == IGNORED for pair in tree for part in pair)
    if n_marks:
        warn(
            f"y is {IGNORED} at {n_marks} heads and labels, which is read as: not known; None in its place says so "
            "without this message",
            AdviceWarning,
        )
    return found


def single_rooted(arcs: list[Arcs]) -> list[Arcs]:
    """Trees to train on, with one word below the root each; warns of those that have several, as CoNLL-X may have."""
    several = [i for i, tree in enumerate(arcs) if sum(head == 0 for head, _ in tree) > 1]
    for i in several:
        heads = with_one_root([head for head, _ in arcs[i]])
        arcs[i] = [(head, label) for head, (_, label) in zip(heads, arcs[i], strict=True)]
    if several:
        warn(
            f"{len(several)} of {len(arcs)} sentences have several words below the root (sentence {several[0]} is the "
            "first), and this parser predicts one: the others are trained on as below the first; split such sentences, "
            "or give these words heads of your own, for other trees",
            AdviceWarning,
        )
    return arcs


def _arc(i: int, pair: object) -> tuple[int, str]:
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
        raise ValueError(f"sentence {i}: an arc must be a pair (head, label), got {pair!r:.80}")
    head, label = (None if number_of(part) == IGNORED else part for part in pair)
    if head is None:
        head = -1
    if isinstance(head, bool) or not isinstance(head, (int, np.integer)):
        raise ValueError(f"sentence {i}: a head must be an int, or None where it is not known, got {head!r:.80}")
    if label is not None and (not isinstance(label, str) or not label):
        raise ValueError(f"sentence {i}: a label must be a str, or None where it is not known, got {label!r:.80}")
    return int(head), "_" if label is None else label


def outputs_of(arcs: Iterable[Arcs], offsets: Integers, labels: Sequence[str], subtypes: bool) -> NDArray[np.int32]:
    """Heads and label ids as int32 (n_words, 2), -1 where they are not known; ValueError, naming sentence and word."""
    number = {label: k for k, label in enumerate(labels)} | {"_": -1}
    lengths = np.diff(offsets).tolist()
    rows: list[tuple[int, int]] = []
    for i, (tree, n) in enumerate(zip(arcs, lengths, strict=True)):
        if len(tree) != n:
            raise ValueError(f"sentence {i}: {n} words, and its tree has {len(tree)} arcs")
        for m, (head, label) in enumerate(tree, start=1):
            kept = label if subtypes else without_subtype(label)
            if kept not in number:
                raise ValueError(f"sentence {i}: word {m} has the label {kept!r}, which the model does not know")
            if not -1 <= head <= n or head == m:
                raise ValueError(f"sentence {i}: word {m} has head {head}, of {n} words")
            rows.append((head, number[kept]))
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


def cut_labels(classes: Iterable[str], params: Params) -> list[str]:
    """The argument `classes` of `partial_fit`, without subtypes if parameters say so; ValueError for other than str."""
    found = listed(classes)
    if not all(isinstance(label, str) for label in found):
        raise ValueError(f"classes must be a list of str, got {classes!r:.80}")
    return found if params.subtypes else list(map(without_subtype, found))


def without_subtype(label: str) -> str:
    """``acl`` of ``acl:relcl``."""
    return label.partition(":")[0]


def prepare(
    params: Params,
    X: Collection[SentenceLike],
    y: Collection[ArcsLike] | None,
    before: DependencyModel | None = None,
    *,
    classes: Iterable[str] | None = None,
    weight: ArrayLike | None = None,
) -> tuple[DependencyModel, ParsedSentences]:
    """Return ``(model, examples)``: a model as parameters ask for it, and the sentences encoded.

    Parameters
    ----------
    params : object with `DependencyParser`'s parameters as attributes
    X, y : sentences and their arcs, or trees
    before : DependencyModel, optional
        The model to resume; ValueError if the parameters ask for other features or trees.
    classes : iterable, optional
        All labels that a new model is to know; for `before`, None or those that it knows.
    weight : array-like of shape (n_sentences,), optional
    """
    arcs, features = single_rooted(arcs_of(X, y)), features_of(params)
    if before is None:
        own = OwnColumns(features.columns, () if features.columns is None else None)
    else:
        before.set_columns(features.columns)
        own = before.own
    codes, offsets = encoded(X, own)
    check_lengths(offsets, params.max_length)
    labels: Sequence[str]
    weights = checked_sample_weight(weight, len(arcs))
    if before is None:
        _settle_units(own, codes, None if weights is None else np.repeat(weights > 0.0, np.diff(offsets)))
        labels = labels_of(arcs, classes, params)
    else:
        check_unchanged(params, before, SETTLED)
        check_group_unchanged("features", ArcFeatures, params, before, OF_FEATURES)
        check_classes(None if classes is None else cut_labels(classes, params), before.labels)
        labels = before.labels
        if n := len(own.number_names):
            numbers = codes[:, -n:].view(np.float32)
            numbers[:] = later_vectors(numbers, own)
    outputs = outputs_of(arcs, offsets, labels, params.subtypes)
    model = new_model(params, own, codes, arcs, labels, outputs) if before is None else before
    codes, offsets = model.as_trained(codes, offsets)
    model.pair_templates = make_pair_templates(params, own)
    model.pairs_cross = params.projective == "auto" and model.n_crossing > 0
    return model, ParsedSentences(codes, offsets, outputs, weight=weights)


def labels_of(arcs: Iterable[Arcs], classes: Iterable[str] | None, params: Params) -> list[str]:
    """The labels of a new model, sorted: `classes`, or those of the arcs; ValueError if there are none."""
    if classes is None:
        found = {label if params.subtypes else without_subtype(label) for tree in arcs for _, label in tree} - {"_"}
    else:
        found = set(cut_labels(classes, params))
    if not found:
        raise ValueError("no arc has a label")
    return sorted(found)


def new_model(
    params: Params,
    own: OwnColumns,
    codes: NDArray[np.int32],
    arcs: Sequence[Arcs],
    labels: Sequence[str],
    outputs: NDArray[np.int32],
) -> DependencyModel:
    """A model as parameters ask for it, whose oracle suits the arcs and the number of words."""
    crossing = [len(crossing_arcs([head for head, _ in tree])) for tree in arcs]
    n_crossing, is_many = sum(map(bool, crossing)), sum(crossing) >= MANY_CROSSING * max(len(codes), 1)
    projective = not is_many if params.projective == "auto" else params.projective
    if projective and is_many:
        warn(
            f"{n_crossing} of {len(arcs)} trees have crossing arcs, which a projective parser never finds: "
            "projective=False does, and 'auto' would choose it",
            AdviceWarning,
        )
    kind: type[DependencyOracle] = EisnerOracle if projective else ArborescenceOracle
    features = features_of(params)
    oracle = kind(
        len(labels),
        make_templates(features, own),
        arc_bits=features.arc_bits or bits_for(len(codes), *ARC_BITS),
        row_bits=features.row_bits or bits_for(len(codes), *ROW_BITS, row=4 * len(labels)),
        root_label=_root_label(outputs, len(labels)),
        loss=params.loss,
    )
    return DependencyModel(
        labels,
        oracle,
        subtypes=params.subtypes,
        max_length=params.max_length,
        n_crossing=n_crossing,
        coarse=len(np.unique(codes[:, XPOS])) > MOST_TAGS,
        own=own,
        seen=SeenColumns.of(values_given(codes, GIVEN), len(codes)),
    )


def _settle_units(own: OwnColumns, codes: NDArray[np.int32], counts: NDArray[np.bool_] | None) -> None:
    """Find the units of vectors, by the words that count, and have the numbers behind the codes in them."""
    n = len(own.number_names)
    if n:
        numbers = codes[:, -n:].view(np.float32)
        own.units = units_of_vectors(numbers if counts is None else numbers[counts], own.number_names)
        if own.units is not None:
            numbers[:] = own.units.applied(numbers)


def _root_label(outputs: Integers, n_labels: int) -> int | None:
    """The label of all arcs from the root, and of no others; None if there is none."""
    known = outputs[(outputs >= 0).all(axis=1)]
    of_root = np.unique(known[known[:, 0] == 0, 1])
    if n_labels < 2 or len(of_root) != 1 or of_root[0] in known[known[:, 0] > 0, 1]:
        return None
    half_known = outputs[(outputs[:, 0] < 0) | (outputs[:, 1] < 0)]
    clashes = (half_known[:, 0] == 0) & (half_known[:, 1] >= 0) & (half_known[:, 1] != of_root[0])
    return None if clashes.any() else int(of_root[0])
