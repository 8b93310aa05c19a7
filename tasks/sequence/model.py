"""A trained label-sequence model without scikit-learn: encoded features, labels, oracle, weights.

`SequenceLabeler` wraps it for Python users; the command line uses it as it is, because importing
scikit-learn takes longer than training a chunker.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain, count, pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._warnings import warn_of_unknown
from structsvm.dual.parallel import parallel_map, renumbered_parts
from structsvm.features._tokens import steps
from structsvm.features.attributes import unwrapped
from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.matrices import split_rows
from structsvm.features.tokens import Tokens
from structsvm.metrics._chunks import chunk_counts_of_ids
from structsvm.metrics._schemes import BIOES, chunks_of, scheme_of
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.enumeration.lazily import no_sums, numbered, warn_of_gaps
from structsvm.oracles.greedy import GreedyOracle
from structsvm.parameters import checked_k
from structsvm.solvers import ElasticLikelihood, LatentSVM
from structsvm.stored_values import Count, Group, OneOf, Record, Stored, Value
from structsvm.tasks.common.inspection.inputs import depth, leaf
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.likelihood import (
    StructureCalibration,
    calibrate_on,
    check_sums,
    probabilities_in,
    probable_weights,
    ranking_weights,
    temperature_of_loss,
    with_probabilities,
)
from structsvm.tasks.common.model import MARGIN, TaskModel
from structsvm.tasks.common.selection.choice import ChosenLeast, ChosenSum
from structsvm.tasks.common.selection.largest import LargestSearch
from structsvm.tasks.common.selection.search import ENOUGH_EXAMPLES, Held, Search, total_variance
from structsvm.tasks.common.selection.sparse import RivalSearch, SparseSearch
from structsvm.tasks.common.selection.sums import MOST_MOMENTS, SumSearch
from structsvm.tasks.common.solver import AUTO, RECORDS, Settings, is_auto, is_log, solver_of
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import UNITS, Units, later_tokens, units_of
from structsvm.tasks.sequence.chains import (
    ENCODER,
    ORACLE,
    WEIGHTS,
    allowed_of,
    chain_of,
    check_fits,
    decoded,
    decoder_of,
    marginals_of,
    nothing_left,
    texts_of,
    weights_of,
)
from structsvm.tasks.sequence.chances import Chances, ChancesOfLabels, ChancesOfSegments, parts_by
from structsvm.tasks.sequence.constraints import (
    broken_rule,
    check_allowed,
    constrained,
    is_scheme,
    languages,
    restored_constraint,
    scheme_among,
    stored_constraints,
    under,
    warn_of_relaxed,
)
from structsvm.tasks.sequence.examples import LabeledSequences
from structsvm.tasks.sequence.labels import encode_known
from structsvm.tasks.sequence.likely import Chunks, chances_of, has_room, is_markov, likely_chunks
from structsvm.tasks.sequence.parameters import (
    FEW,
    RIVAL,
    USUAL_SOLVER,
    TokenFeatures,
    check_leaves_zeros,
    has_possible_states,
    leaves_templates,
    may_be_sparse,
    possible_losses,
    segment_oracle,
    solver_for,
)
from structsvm.tasks.sequence.phrases import Phrases, sources_from
from structsvm.tasks.sequence.segments import BY_TEXT, MOST_TOKENS, SHORTEST, SPANS, Segments, given, labels_of, part_of
from structsvm.tasks.sequence.selection.records import criterion_of, whole

if TYPE_CHECKING:
    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.metrics._schemes import Part as TagPart
    from structsvm.metrics._schemes import Scheme
    from structsvm.oracles.chain import LabelChain
    from structsvm.oracles.enumeration.lazily import OnGaps
    from structsvm.solvers import Solver
    from structsvm.structures._labels import LabelLattice
    from structsvm.tasks.common.selection.search import LossSearch
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.sequence.constraints import ConstraintsLike, TagNames
    from structsvm.tasks.sequence.examples import LabelsLike, Masks, SequencesLike, Span
    from structsvm.tasks.sequence.segments import KnownTag
    from structsvm.tasks.sequence.selection.templates import TemplateChoice

RECORD = Record({
    "weights": WEIGHTS,
    "phrases": Group(of=lambda model: None if model.segments is None else model.segments.phrases.to_arrays()),
    "labels": Labels(),
    "encoder": ENCODER,
    "oracle": ORACLE,
    "segments": Record(
        {
            "form": OneOf((*BY_TEXT, SPANS)),
            "sources": Value(sources_from, lambda sources: [list(source) for source in sources], of="phrases.sources"),
            "max_length": Count(2, MOST_TOKENS, of="phrases.max_length"),
        },
        needed=False,
    ),
    "units": UNITS,
    "n_left_out": Count(needed=False),
    "margin": MARGIN,
})  # fmt: skip

# Where the path of a margin begins that is added to a log loss, in units of 1 / scale. It ends after one value that is
# no better: half a decade more or less hardly changes the score of the sum.
LOWEST_ADDED = 1.0

# Fewer sequences than these, times the share of labels known, of which a fifth is held out, tell little of C.
FEW_SEQUENCES = 1000

# Tokens from which on sums of float32 are too far from scores.
LONG = 256

# Scores and pairs of labels that one thread has added, about a millisecond, when another one has begun.
LEAST_SHARED = 2**24

# Tokens with features that two threads label in less time than one, about four milliseconds; and those that one reads
# while another decodes.
LEAST_READ, PART = 4096, 3072

NONE = Phrases([], [], [], SHORTEST)


def n_sums(tokens: Tokens, n_labels: int) -> int:
    """Scores and pairs of labels that the labelling of tokens adds."""
    return (tokens.n_entries + tokens.n_tokens * n_labels) * n_labels


class SequenceModel(TaskModel[LabeledSequences]):
    """Features, labels, oracle and weights of a label-sequence model.

    Attributes
    ----------
    encoder : FeatureEncoder
    labels : list
        The labels; an oracle's label k is ``labels[k]``.
    oracle : ViterbiOracle, GreedyOracle or SemiMarkovOracle
    weights : ndarray of shape (oracle.n_features,), float32
    temperature : float or None
        Divisor of the scores for probabilities; None: not known.
    units : Units or None
        Those of rows of numbers, and of named features with numbers; None: tokens are taken as they are.
    segments : Segments or None
        Where whole segments are scored, their form and phrases; `labels` are then tags.
    """

    kind = "sequence"
    estimator = "SequenceLabeler"
    record = RECORD
    has_temperature = True
    calibration = StructureCalibration()
    calibrates = False
    comparison = SumSearch
    rivals = (ElasticLikelihood,)
    template_choice: TemplateChoice | None = None  # its training's; no file has it
    groups = (TokenFeatures,)
    sums_over_known = narrows = prunes = grows = True
    C_of_few = 1.0
    criterion: str | None = None  # its choice of C; no file has it

    def __init__(
        self,
        encoder: FeatureEncoder,
        labels: Sequence[Any],
        oracle: LabelChain,
        *,
        weights: Floats | None = None,
        units: Units | None = None,
        segments: Segments | None = None,
    ) -> None:
        super().__init__()
        self.segments = segments
        self.encoder, self.labels, self.oracle, self.units = encoder, labels, oracle, units
        self.weights = np.zeros(oracle.n_features, dtype=np.float32) if weights is None else weights
        self.columns = {"n_features_in_": encoder.n_features}
        self.temperature = temperature_of_loss(oracle)

    @property
    def loss(self) -> str:
        return self.oracle.loss_name

    @property
    def unknown(self) -> object:
        """The mark of unknown labels in y."""
        return self.params.get("unknown", AUTO)

    def set_loss(self, loss: str) -> None:
        super().set_loss(loss)
        self.temperature = temperature_of_loss(self.oracle)

    # ---- training -------------------------------------------------------------------------------

    def first_loss(self, examples: LabeledSequences) -> str:
        """The log loss where labels are known in part, and for few long sequences: a margin learns little of these."""
        is_better = examples.has_unknown or examples.are_few_and_long
        return "log" if is_better and "log" in self.possible_losses(examples) else self.loss

    def possible_losses(self, examples: LabeledSequences) -> tuple[str, ...]:
        """The losses that may be added: no log loss if it takes much memory, or under rules that are too many."""
        tokens, oracle = examples.tokens, self.oracle
        if self.segments is None:
            pairs = tokens.n_tokens * oracle.n_labels if oracle.n_bigrams else 0
        else:
            pairs = 0 if tokens.bigrams is None else tokens.bigrams.n_entries
        rows = tokens.n_tokens + pairs + len(tokens) * (oracle.first_bigram_row - oracle.n_token_features)
        is_large = examples.is_stored or rows * oracle.stride > MOST_MOMENTS
        if self.params.get("loss") != AUTO or self.is_trained or is_large or self.trains_lazily:
            return (self.loss,)
        return possible_losses(Settings(**self.params))

    def search(self, examples: LabeledSequences, solver: Solver) -> Search | LossSearch | RivalSearch:
        self._checked(examples)  # whose errors name sequences of the whole
        self.criterion = criterion_of(self.params.get("C"), examples, may_be_records=self._has_fields)
        usual = super().search(examples, solver)
        for search in usual.searches if isinstance(usual, SumSearch) else ():
            if not is_log(search.loss):
                search.lowest, search.patience = LOWEST_ADDED, 1
        if not self._may_be_sparse(examples) or isinstance(usual, RivalSearch):
            return usual
        sparse = solver_of(self.params | {"solver": RIVAL}, "log")
        rival = SparseSearch(self.with_loss("log"), examples, sparse)
        return RivalSearch(usual, rival, (USUAL_SOLVER, RIVAL), solver.n_jobs)

    def _may_be_sparse(self, examples: LabeledSequences) -> bool:
        """Whether training with the 1-norm is tried beside the usual one, see `RIVAL`."""
        if examples.is_stored or examples.has_unknown or not self._has_rival:
            return False
        is_small = examples.tokens.n_tokens * self.oracle.n_labels <= FEW
        return is_auto(self.params["solver"]) or is_small

    @property
    def _has_fields(self) -> bool:
        """Whether the labels may be fields of records."""
        return self.segments is None and self.encoder.kind != "numeric" and self.scheme is None

    @property
    def _has_rival(self) -> bool:
        """Whether there are examples that training with the 1-norm is tried on."""
        params = Settings(**self.params)
        if self.is_trained or self.trains_lazily or not may_be_sparse(params):
            return False
        return is_auto(params.solver) or (self._has_fields and self.encoder.kind == "attributes")

    def most_passes(self, solver: Any) -> int:
        if self.is_trained:
            return solver.n_passes
        if self._has_rival:
            return super().most_passes(solver)
        losses = possible_losses(Settings(**self.params))
        return max([solver.n_passes, *(self.solver_of_loss(loss).n_passes for loss in losses)])

    def solver_around(self, solver: Solver) -> Solver:
        """The usual solver in place of one that was chosen and begins at weights of 0."""
        if solver.inner.takes_base:
            return solver
        return solver_for(self.params, self.loss).set_params(C=solver.inner.get_params()["C"])

    def solver_of_loss(self, loss: str) -> Solver:
        return solver_for(self.params, loss, self.choice)

    def losses_to_compare(self, examples: LabeledSequences) -> tuple[str, ...]:
        losses = self.possible_losses(examples)
        return () if len(losses) < 2 or (examples.has_unknown and not self._may_complete(examples)) else losses

    def _may_complete(self, examples: LabeledSequences) -> bool:
        """Whether a margin is added to the likelihood of labels known in part: of enough sequences that have weight."""
        are_sets = self.segments is None and examples.sets.dtype == bool
        return are_sets and examples.of_weight().n_with_known >= ENOUGH_EXAMPLES

    def adapted(self, solver: Any, examples: LabeledSequences) -> Solver:
        """As for all models; the margin of a sum is first completed by a likelihood, as the other part is one."""
        found = super().adapted(solver, examples)
        is_of_sum = found is not solver and self.choice is not None and self.choice.get(ChosenSum) is not None
        return LatentSVM(solver, start="soft") if is_of_sum else found

    def adopt_loss(self, other: Self) -> None:
        self.set_loss(other.loss)  # and keep the masks, which no fragments have

    def search_of_loss(self, examples: LabeledSequences, solver: Solver) -> Search:
        """Return the search of C. Sequences that training completes enter it as runs of tokens with known labels."""
        model = self
        if examples.has_unknown and not is_log(self.loss):
            model, examples = self.copy(), examples.fragments()
            model.oracle = self.oracle.without_masks()  # a run may begin with any label
        return self._kind_of_search(examples, solver)(model, examples, solver)

    def _kind_of_search(self, examples: LabeledSequences, solver: Solver) -> type[Search]:
        if solver.leaves_zeros:
            return SparseSearch
        some = examples.of_weight()
        return LargestSearch if is_log(self.loss) and len(some) * some.share_known < FEW_SEQUENCES else Search

    def bind(self, examples: LabeledSequences, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """The oracle bound to sequences; a weight per decision for greedy inference."""
        weight = examples.weight
        oracle = self._checked(examples)
        if not has_possible_states(self.params):
            check_leaves_zeros(solver)
            oracle = oracle.of_seen()
        problem = oracle.bind(examples.tokens, examples.known, **solver.formulation())
        if examples.is_stored:
            examples.tokens.set_sections(problem)
        if weight is not None and problem.groups is not None:
            weight = np.repeat(weight, np.diff(problem.groups))
        return problem, weight

    def finish(self, job: Job[LabeledSequences]) -> None:
        if job.problem.inference == "relaxed":
            warn_of_relaxed(job.problem.relaxed, job.problem.chain.tokens.lengths, self.oracle)

    def _checked(self, examples: LabeledSequences) -> LabelChain:
        """The oracle that trains; ValueError if the constraints do not allow what is known of the labels."""
        if self.params.get("broken") == "predict":
            return self.oracle.without_masks()
        if not examples.has_unknown:
            self._check_constraints(examples.tokens, examples.label_ids)
            return self.oracle
        self._check_known(examples.tokens, examples.known)
        # From left to right, completions might find no way through the masks.
        return self.oracle.without_masks() if self.is_greedy else self.oracle

    def _check_known(self, tokens: Tokens, known: Any) -> None:
        """Raise ValueError, naming sequence and token, where the constraints allow nothing that agrees."""
        place = self.oracle.contradicted_at(tokens.offsets, known)
        if place is not None:
            i, t = place
            allowed = known.table[known.which[tokens.offsets[i] + t]]
            names = ", ".join(dict.fromkeys(repr(label) for label, may in zip(self.shown, allowed) if may))
            raise ValueError(
                f"sequence {i}: what y tells contradicts the constraints: they allow nothing that agrees with what "
                f"is known up to token {t} ({names}). Correct the data, or broken='predict' constrains predictions only"
            )

    def _check_constraints(self, tokens: Tokens, labels: Any) -> None:
        """Raise ValueError, naming sequence and labels, if a true labelling is one that may not be predicted."""
        place = self.oracle.broken_at(tokens.offsets, labels)
        if place is not None:
            i, t = place
            names = [self.shown[c] for c in labels[tokens.offsets[i] : tokens.offsets[i + 1]]]
            where = f"{names[t]!r} at token {t}" + (f", after {names[t - 1]!r}" if t else "")
            constraints = self.params.get("constraints")
            if constraints is not None and not isinstance(constraints, tuple) and not is_scheme(constraints):
                own = labels[tokens.offsets[i] : tokens.offsets[i + 1]]
                words = broken_rule(constraints, self.labels, own, self.tag_names)
                raise ValueError(
                    f"sequence {i}: {words} does not allow its label {where}. Correct the data; or loosen the rule; or "
                    "broken='predict' trains on them as they are, and constrains predictions only"
                )
            named, own = self.scheme, scheme_of(self.labels)
            hint = ""
            if own is not None and named is not None and own.name != named.name:
                hint = f"; or constraints={own.name!r}, the scheme of labels whose tags are {', '.join(own.rules.tags)}"
            raise ValueError(
                f"sequence {i}: the constraints do not allow its label {where}. Correct the data{hint}; or "
                "broken='repair' labels such sequences anew, with the chunks that are read in them; or "
                "broken='predict' trains on them as they are, and constrains predictions only"
            )

    # ---- probabilities --------------------------------------------------------------------------

    @property
    def can_sum(self) -> bool:
        return not self.is_greedy and not self.trains_lazily

    @property
    def trains_lazily(self) -> bool:
        """Whether training knows the best labelling alone: its rules are too many for one automaton."""
        return bool(self.oracle.rules) and self.params.get("broken") != "predict"

    def no_sums(self, asked: str) -> str:
        return no_sums(self.oracle.rules) if self.trains_lazily else super().no_sums(asked)

    def calibrate(self, X: SequencesLike, y: LabelsLike, *, lengths: ArrayLike | None = None) -> None:
        """Fit the temperature to sequences that the model was not trained on."""
        check_sums(self, "calibrate")
        calibrate_on(self, self.known_problem(X, y, lengths=lengths)[0])

    def known_problem(
        self, X: SequencesLike, y: LabelsLike, *, lengths: ArrayLike | None = None, needs_label: bool = True
    ) -> tuple[BoundProblem, NDArray[np.int64]]:
        """The problem of sequences, empty ones left out, with what is known of their labels; and their lengths.

        `needs_label` is that of `encode_known`.
        """
        tokens = self.encode(X, lengths)
        if self.segments is not None:
            y, form = given(y, tokens.lengths, before=self.segments, unknown=self.unknown)
            y = dataclasses.replace(self.segments, form=form).tags(y, tokens.lengths, "refuse")
        _, label_ids, sets = encode_known(y, tokens, self.labels, self.unknown, needs_label=needs_label)
        known = KnownLabels(label_ids, sets) if len(sets) else label_ids
        (self._check_known if len(sets) else self._check_constraints)(tokens, known)
        return self.oracle.bind(tokens.without_empty(), known, rescaling=None), tokens.lengths

    def probability_of(
        self, X: SequencesLike, y: LabelsLike, *, lengths: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """The probability of each labelling; see `SequenceLabeler.probability_of`."""
        probable_weights(self, "probability_of")
        problem, sizes = self.known_problem(X, y, lengths=lengths, needs_label=False)
        found = np.ones(len(sizes))
        found[sizes > 0] = probabilities_in(self, problem)
        return found

    def marginals(
        self, X: SequencesLike, *, lengths: ArrayLike | None = None, allowed: Masks | None = None
    ) -> list[NDArray[np.float64]]:
        """For each sequence an array (length, n_labels): the probability of each label at each token.

        `allowed` is that of `predict`.
        """
        weights = probable_weights(self, "predict_marginals")
        tokens = self.encode(X, lengths)
        check_allowed(allowed, tokens)
        return marginals_of(self.oracle, weights, tokens, allowed)

    def predict_kbest(
        self,
        X: SequencesLike,
        k: int,
        *,
        lengths: ArrayLike | None = None,
        allowed: Masks | None = None,
        probabilities: bool = False,
    ) -> list[list[tuple[list[Any], float]]]:
        """The k best ``(labels, score)`` of each sequence; see `SequenceLabeler.predict_kbest`."""
        k = checked_k(k)
        check_sums(self, "predict_kbest")
        weights = ranking_weights(self, probabilities=probabilities)
        tokens = self.encode(X, lengths)
        check_allowed(allowed, tokens)
        decoder, found, place = decoder_of(self.oracle, tokens), list[Any](), 0
        for i, length in enumerate(tokens.lengths.tolist()):
            if not length:
                found.append([([], 1.0 if probabilities else 0.0)])
                continue
            mask = None if allowed is None else allowed[i]
            paths, scores = decoder.kbest(weights, place, k, mask)
            if not len(paths):
                raise nothing_left(self.oracle, i, length)
            if length > LONG and self.segments is None:  # scores of segments are float64
                labellings = np.eye(len(self.labels), dtype=bool)
                scores = np.array([decoder.log_sum(weights, place, labellings[path]) for path in paths])
                order = np.argsort(-scores, kind="stable")
                paths, scores = paths[order], scores[order]
            ranked = list(zip(paths, scores.tolist(), strict=True))
            if probabilities:
                ranked = with_probabilities(ranked, decoder.log_sum(weights, place, mask))
            bounds = np.array([0, length])
            found.append([(*self.split(path, bounds), score) for path, score in ranked])
            place += 1
        return found

    def predict_spans(
        self,
        X: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        probabilities: bool = False,
        least: float | None = None,
    ) -> list[list[Any]]:
        """The spans of each sequence; see `SequenceLabeler.predict_spans`."""
        if probabilities:
            self._check_sums_of_all("predict_spans")
        weights = probable_weights(self, "probabilities=True") if probabilities else None
        tokens = self.encode(X, lengths)
        if least is not None and weights is not None:
            return self._likely_spans(tokens, weights, least).lists()
        found = self.spans_of(self.predict_tokens(tokens), tokens.offsets)
        if weights is None:
            return found
        if self.has_quick_chances(int(tokens.lengths.max(initial=0))):
            own = [spans for n, spans in zip(tokens.lengths.tolist(), found, strict=True) if n]
            with numbered(np.flatnonzero(tokens.lengths)):
                chances = iter(chances_of(self.oracle, weights, tokens.without_empty(), self.parts_of_tags, own))
            return [next(chances) if n else [] for n in tokens.lengths.tolist()]
        decoder, places = decoder_of(self.oracle, tokens), count()
        return [
            self.with_chances(decoder, weights, next(places), n, spans) if n else []
            for n, spans in zip(tokens.lengths.tolist(), found, strict=True)
        ]

    def _check_sums_of_all(self, asked: str) -> None:
        """As `check_sums`, also where training knows nothing of rules that are too many."""
        check_sums(self, asked)
        if self.oracle.rules:
            raise ValueError(no_sums(self.oracle.rules))

    def has_quick_chances(self, longest: int) -> bool:
        """Whether probabilities of chunks of sequences up to a length take one pass, and not one per chunk."""
        return self.segments is None and is_markov(self.oracle) and has_room(self.oracle, longest)

    def lengths_of(self, X: SequencesLike) -> list[int]:
        """The numbers of tokens of sequences."""
        X = read(X)
        if isinstance(X, list) and all(isinstance(x, (list, tuple)) for x in X):
            return list(map(len, X))
        return self.encoder.transform(X, None).lengths.tolist()

    def likely_chunks(self, X: SequencesLike, least: float) -> Chunks:
        """All spans that have at least this probability; ValueError without probabilities."""
        self._check_sums_of_all("predict_spans")
        weights = probable_weights(self, "probabilities=True")
        return self._likely_spans(self.encode(X, None), weights, least)

    def _likely_spans(self, tokens: Tokens, weights: Floats, least: float) -> Chunks:
        """All spans that have at least this probability, by place."""
        if self.segments is None and is_markov(self.oracle):
            with numbered(np.flatnonzero(tokens.lengths)):
                full = likely_chunks(self.oracle, weights, tokens.without_empty(), self.parts_of_tags, least)
            return dataclasses.replace(full, offsets=full.offsets[np.append(0, np.cumsum(tokens.lengths > 0))])
        decoder, found, place = decoder_of(self.oracle, tokens), list[Any](), 0
        for n, marginals in zip(tokens.lengths.tolist(), marginals_of(self.oracle, weights, tokens), strict=True):
            likely = self._chances(decoder, weights, place, n).likely(marginals, least) if n else ()
            found.append(sorted(likely, key=lambda span: (*span[:2], str(span[2]))))
            place += n > 0
        return Chunks.of_lists(found)

    def with_chances(
        self, decoder: LabelLattice, weights: Any, place: int, length: int, spans: Sequence[Span]
    ) -> list[tuple[int, int, str, float]]:
        """Spans with their probabilities: the share of the labellings that have them."""
        chances = self._chances(decoder, weights, place, length)
        return [(*span, chances.of(span)) for span in spans]

    def _chances(self, decoder: LabelLattice, weights: Any, place: int, length: int) -> Chances:
        """Probabilities of the chunks of the sequence at a place of a decoder."""
        total, n_labels = decoder.expect(weights, place)[0], len(self.labels)

        def share(mask: NDArray[np.bool_]) -> float:
            if not mask.any(axis=1).all():
                return 0.0
            return float(np.exp(min(decoder.expect(weights, place, mask)[0] - total, 0.0)))

        if self.segments is None:
            return ChancesOfLabels(share, length, n_labels, self.parts_of_tags)
        return ChancesOfSegments(share, length, n_labels, self.tags_of_kinds)

    def as_tags(
        self, y: LabelsLike, predicted: list[list[Span]], X: SequencesLike, lengths: ArrayLike | None
    ) -> tuple[Sequence[Sequence[KnownTag]], Sequence[Sequence[KnownTag]]]:
        """True segments and predicted spans in tags."""
        true = self.true_tags(y, X, lengths)
        return true, [labels_of(own, len(tags), i) for i, (own, tags) in enumerate(zip(predicted, true, strict=True))]

    def true_tags(self, y: LabelsLike, X: SequencesLike, lengths: ArrayLike | None) -> Sequence[Sequence[KnownTag]]:
        """Segments that users give, as labels or spans, in tags."""
        n = self.encoder.transform(read(X), lengths).lengths
        known, form = given(y, n, before=self.segments, unknown=self.unknown)
        return Segments(form, NONE).tags(known, n, "repair")

    def incomplete(self, problem: Any) -> BoundProblem:
        return problem.incomplete

    # ---- choosing C -----------------------------------------------------------------------------

    def held_out_scores(self, examples: LabeledSequences) -> Held:
        """F1 of chunks where the labels are those of a scheme, else the accuracy of tokens.

        Of sequences known in part, F1 of the tokens in chunks whose labels are known; without a scheme, how many
        predictions agree with what is known of tokens of which something is.
        """
        tokens, label_ids = examples.tokens, examples.label_ids
        is_partial = len(examples.sets) and examples.origin is None
        scheme = self.scheme if self.segments is None else BIOES
        if is_partial and scheme is not None and "O" in self.labels:
            held = self._chunk_token_scores(examples)
            if held is not None:
                return held
        if is_partial or scheme is None or set(self.labels) == {"O"}:
            return self._token_scores(examples)
        predicted = self._without_gaps(tokens)
        true, found, right = chunk_counts_of_ids(label_ids, predicted, tokens.lengths, self.labels, scheme)
        return Held("F1", 2.0 * right, 1.0 * (true + found))

    def _chunk_token_scores(self, examples: LabeledSequences) -> Held | None:
        """F1 of the labels of chunks, over tokens whose label is known; most others are outside, and easy.

        None if no token in a chunk is known.
        """
        offsets, predicted = examples.tokens.offsets, self._without_gaps(examples.tokens)
        table: Any = KnownLabels(examples.label_ids, examples.sets).table
        outside = list(self.labels).index("O")
        is_known = (table.sum(axis=1) == 1)[examples.label_ids]
        label_ids = table.argmax(axis=1)[examples.label_ids]
        true, found = is_known & (label_ids != outside), is_known & (predicted != outside)
        if not true.any():
            return None
        counts = 2.0 * (true & (predicted == label_ids)), 1.0 * true + found
        return Held("F1", *(np.diff(np.concatenate([[0.0], np.cumsum(of)])[offsets]) for of in counts))

    def _token_scores(self, examples: LabeledSequences) -> Held:
        """The accuracy of tokens, or of those of which something is known."""
        offsets, label_ids = examples.tokens.offsets, examples.label_ids
        predicted = self._without_gaps(examples.tokens)
        if not len(examples.sets) or examples.origin is not None:
            right = np.concatenate([[0], np.cumsum(predicted == label_ids)])[offsets]
            return Held("accuracy", np.diff(right), examples.tokens.lengths)
        table: Any = KnownLabels(label_ids, examples.sets).table
        says = ~table.all(axis=1)[label_ids]
        sums = (np.concatenate([[0], np.cumsum(of)]) for of in (says & table[label_ids, predicted], says))
        return Held("accuracy", *(np.diff(of[offsets]) for of in sums))

    def _without_gaps(self, tokens: Tokens) -> NDArray[np.int32]:
        """Predictions in training, which warns once, at its end, that rules are too many."""
        return self.predict_tokens(tokens, on_gaps=lambda gaps: None)

    def choice_scores(self, examples: LabeledSequences) -> Held:
        """Scores by the criterion: whole sequences, tokens, or those of the task."""
        if self.criterion is None:
            return self.held_out_scores(examples)
        held = self._token_scores(examples)
        return whole(held) if self.criterion == RECORDS else held

    def scale(self, examples: LabeledSequences) -> float:
        tokens = examples.tokens
        return 2.0 * (total_variance(tokens) + (total_variance(tokens.bigrams) if tokens.n_bigrams else 0.0))

    # ---- prediction -----------------------------------------------------------------------------

    def encode(self, X: SequencesLike, lengths: ArrayLike | None = None) -> Tokens:
        """Return X as `Tokens` that the oracle takes; a warning where most tokens have none of the model's features."""
        X = X if self.segments is None else read(X)
        tokens = self.encoder.transform(X, lengths)
        n_bare = steps(tokens.indptr)[2]
        if n_bare:
            self._warn_of_bare(n_bare, tokens.n_tokens)
        return self._completed(X, tokens)

    def _completed(self, X: SequencesLike, tokens: Tokens) -> Tokens:
        """Encoded tokens of X as the oracle takes them."""
        return self.in_units(tokens if self.segments is None else self.segments.with_phrases(X, tokens))

    def _warn_of_bare(self, n_bare: int, n: int) -> None:
        """Warn where most of n tokens have none of the model's features."""
        if n_bare and not self.encoder.has_numbers:
            warn_of_unknown(n_bare, n, "tokens")

    def later(self, tokens: Tokens) -> Tokens:
        """The tokens of a later batch without outliers."""
        return later_tokens(self.units, tokens, self.encoder.name_of)

    def in_units(self, tokens: Tokens) -> Tokens:
        """Encoded tokens as the oracle takes them; bigrams are in the units of the features that they are."""
        if self.units is None:
            return tokens
        tokens = self.units.applied(tokens)
        return tokens if self.segments is not None else self.encoder.conjoined(tokens)

    def constrained_by(self, constraints: ConstraintsLike) -> Self:
        """The model under more constraints, for predictions; itself for None."""
        if constraints is None:
            return self
        model = self.copy()
        model.oracle = under(self.oracle, constraints, self.labels, self.tag_names)
        return model

    @property
    def tag_names(self) -> TagNames | None:
        """The names that users have for the tags of segments; None without segments."""
        return None if self.segments is None else self.segments.names_of(self.labels)

    @property
    def rules(self) -> list[tuple[str, int]]:
        """The constraints that the model keeps: each in words, with the number of states of its automaton."""
        given = self.params.get("constraints")
        found = [] if given is None else languages(given, self.labels, self.tag_names)
        return [(words, one.n_states) for words, one in found]

    def predict_tokens(
        self, tokens: Tokens, *, allowed: Masks | None = None, on_gaps: OnGaps | None = None
    ) -> NDArray[np.int32]:
        """Label ids of encoded sequences, as one int32 array of all their tokens; `on_gaps`: see `decoded`."""
        check_allowed(allowed, tokens)
        if allowed is not None:
            allowed = [mask for mask, length in zip(allowed, tokens.lengths) if length]
        return decoded(self.oracle, tokens, self.weights, allowed, on_gaps=on_gaps)

    def predict(
        self, X: Any, *, lengths: ArrayLike | None = None, allowed: Masks | None = None, n_jobs: int = 1
    ) -> list[list[Any]]:
        """Labels of sequences: a list of label lists.

        `allowed` is a list, per sequence None or a boolean array (length, n_labels).
        """
        if n_jobs > 1 and lengths is None and allowed is None:
            found = self._predict_beside(X, n_jobs)
            if found is not None:
                return found
        if n_jobs > 1 and (not isinstance(X, Columns) or lengths is not None or allowed is not None):
            X, lengths = self.encode(X, lengths), None  # Python objects, which one thread at a time reads
            check_allowed(allowed, X)
        if n_jobs == 1 or len(X) < 2 * n_jobs or (isinstance(X, Tokens) and n_sums(X, len(self.labels)) < LEAST_SHARED):
            return self._predict_part(X, allowed, lengths)

        gaps = list[Any]()

        def work(a: int, b: int) -> list[list[Any]]:
            return self._predict_part(X[a:b], None if allowed is None else allowed[a:b], on_gaps=gaps.append)

        found = renumbered_parts(work, len(X), n_jobs)
        self._warn_of_parts(gaps)
        return found

    def _predict_beside(self, X: Any, n_jobs: int) -> list[list[Any]] | None:
        """Labels by threads of which one reads features while others look theirs up and decode; None for other data.

        To read takes the interpreter, for nearly half of the time.
        """
        sizes = list(map(len, X)) if type(X) is list and {list}.issuperset(map(type, X)) else []
        n = sum(sizes)
        read_part = self.encoder.reader(X) if n >= LEAST_READ else None
        if read_part is None:
            return None
        n_bare, gaps = list[int](), list[Any]()

        def work(part: tuple[int, int]) -> list[list[Any]]:
            tokens = read_part(*part)
            n_bare.append(steps(tokens.indptr)[2])
            tokens = self._completed(X[slice(*part)], tokens)
            return self.split(self.predict_tokens(tokens, on_gaps=gaps.append), tokens.offsets)

        n_parts = n_jobs * -(-n // (n_jobs * PART))
        ends = np.linspace(0, n, n_parts + 1)[1:-1]
        bounds = np.unique([0, *np.searchsorted(np.cumsum(sizes), ends), len(X)]).tolist()
        try:
            found = parallel_map(work, list(pairwise(bounds)), n_jobs)
        except Exception:  # noqa: BLE001 - the first one, with the user's numbers
            return self._predict_part(X, None)
        self._warn_of_bare(sum(n_bare), n)
        self._warn_of_parts(gaps)
        return list(chain.from_iterable(found))

    def _warn_of_parts(self, gaps: list[NDArray[np.float64]]) -> None:
        """Warn of the gaps of all parts at once."""
        if gaps:
            warn_of_gaps(np.concatenate(gaps), len(self.oracle.rules))

    def _predict_part(
        self,
        X: SequencesLike | Tokens,
        allowed: Masks | None,
        lengths: ArrayLike | None = None,
        on_gaps: OnGaps | None = None,
    ) -> list[list[Any]]:
        if allowed is None and not isinstance(X, Tokens):
            found = self.scored(X, lengths)
            if found is not None:
                labels = decoded(self.oracle, found[0], self.weights, scores=found[1], on_gaps=on_gaps)
                return self.split(labels, found[0].offsets)
        tokens = X if isinstance(X, Tokens) else self.encode(X, lengths)
        return self.split(self.predict_tokens(tokens, allowed=allowed, on_gaps=on_gaps), tokens.offsets)

    @property
    def multiplies(self) -> bool:
        """Whether predictions may make products of matrices: see `scored`."""
        return self.units is not None and self.units.centre is not None

    def scored(self, X: SequencesLike, lengths: ArrayLike | None) -> tuple[Tokens, NDArray[np.float32]] | None:
        """Tokens without features, and their scores as products of matrices; None where X is not made of filled rows.

        Rows that are not finite are left to `encode`, which says where they are.
        """
        oracle, units = self.oracle, self.units
        if units is None or not self.multiplies or units.limits is not None or oracle.n_bigrams:
            return None
        if not isinstance(X, (list, tuple, np.ndarray)):
            return None
        rows = split_rows(X, lengths) if lengths is not None else X
        d, K = len(units.scale), oracle.n_labels
        if not all(isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[1] == d and x.dtype.kind == "f" for x in rows):
            return None
        offsets = np.concatenate([[0], np.cumsum([len(x) for x in rows])]).astype(np.int64)
        weights = np.zeros((d, oracle.stride), dtype=np.float32)
        row = oracle.padding_row
        own = units.undone(self.rows(0, d + 1))
        weights[:, :K], row[:K] = own[:-1], own[-1]
        scores = np.empty((offsets[-1], oracle.stride), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for x, a, b in zip(rows, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
                np.matmul(x.astype(np.float32, copy=False), weights, out=scores[a:b])
            scores += row
        if not np.isfinite(scores[:, :K]).all():
            return None
        nothing = np.zeros(offsets[-1] + 1, dtype=np.int64)
        return Tokens(offsets, nothing, np.empty(0, dtype=np.int32), None, oracle.n_token_features), scores

    @property
    def is_greedy(self) -> bool:
        """Whether labels are decided from left to right, not by the best score of the whole."""
        return isinstance(self.oracle, GreedyOracle)

    def split(self, label_ids: Integers, offsets: Integers) -> list[list[Any]]:
        """Label lists, or lists of spans, from the label ids of all tokens."""
        if self.has_spans:
            return self.spans_of(label_ids, offsets)
        if self.segments is not None and self.segments.depends_on_neighbours:
            return list(map(self.segments.shown_labels, self.named(label_ids, offsets)))
        labels = self.shown_array.take(label_ids).tolist()
        return [labels[a:b] for a, b in pairwise(offsets.tolist())]

    def spans_of(self, label_ids: Integers, offsets: Integers) -> list[list[Span]]:
        """Lists of the spans ``(start, stop, type)`` of tags."""
        parts, ids = self.parts_of_tags, label_ids.tolist()
        return [list(chunks_of([parts[k] for k in ids[a:b]])) for a, b in pairwise(offsets.tolist())]

    @cached_property
    def parts_of_tags(self) -> list[TagPart]:
        """The role and the type of each label."""
        return parts_by(self.scheme, self.labels) if self.segments is None else [part_of(tag) for tag in self.labels]

    @cached_property
    def tags_of_kinds(self) -> dict[str, list[int]]:
        """By type of segments, the ids of its tags: of the first, inside, last and single token."""
        return {self.parts_of_tags[tags[0]].kind: tags for tags in self.oracle.tags.tolist()}

    def named(self, label_ids: Integers, offsets: Integers) -> list[list[Any]]:
        """Lists of the model's own names of labels."""
        labels = np.fromiter(self.labels, dtype=object).take(label_ids).tolist()
        return [labels[a:b] for a, b in pairwise(offsets.tolist())]

    @property
    def has_spans(self) -> bool:
        """Whether users have lists of spans in place of label lists."""
        return self.segments is not None and self.segments.form == SPANS

    @property
    def scheme(self) -> Scheme | None:
        """The scheme of the labels as users have them: the one that `constraints` names, or theirs; None without one.

        It is that of all labels of the training data, of which others may have a few.
        """
        if self.segments is not None:
            return self.segments.scheme
        named = scheme_among(self.params.get("constraints"))
        return scheme_of(self.labels) if named is None else constrained(named, self.labels)

    def shown_tokens(self, label_ids: Integers, offsets: Integers) -> tuple[list[str], Integers]:
        """Return ``(names, ids)``: the texts that users have for labels, and the index of each token's."""
        if self.segments is not None and self.segments.depends_on_neighbours:
            texts = [text for labels in self.split(label_ids, offsets) for text in labels]
            names = list(dict.fromkeys(texts))
            return names, np.array([names.index(text) for text in texts], dtype=np.int32)
        return texts_of(self.shown, label_ids)

    @cached_property
    def shown(self) -> Sequence[Hashable]:
        """The name that users have for each label."""
        return self.labels if self.segments is None else [self.segments.shown(tag) for tag in self.labels]

    def chances_of_labels(self, X: SequencesLike, y: Sequence[Sequence[Hashable]]) -> list[list[float]]:
        """The probability of each token's label; of whole segments, of any of the tags that the label may be."""
        columns = {label: self._tags_of(label) for labels in y for label in labels}
        tables = self.marginals(X)
        return [
            [float(row[columns[label]].sum()) for row, label in zip(table, labels, strict=True)]
            for table, labels in zip(tables, y, strict=True)
        ]

    def _tags_of(self, label: Hashable) -> list[int]:
        """The numbers of the tags that a user's label may be."""
        tags = [label] if self.segments is None else self.segments.in_tags(str(label))
        return [self.labels.index(tag) for tag in tags if tag in self.labels]

    @cached_property
    def shown_array(self) -> NDArray[np.object_]:
        """`shown` as an array."""
        return np.fromiter(self.shown, dtype=object, count=len(self.shown))

    # ---- weights that are 0 ---------------------------------------------------------------------

    def outputs_of(self, examples: LabeledSequences) -> Integers:
        return self._without_gaps(examples.tokens)

    def pruned(self, size: float) -> Floats:
        """The weights, with 0 for those of features below a size; those of transitions, which are few, stay."""
        weights, stride = super().pruned(size), self.oracle.stride
        history = slice(self.oracle.n_token_features * stride, self.oracle.first_bigram_row * stride)
        weights[history] = self.weights[history]
        return weights

    def without_unfelt(self, size: float) -> Floats:
        """As for all models, but weights of numbers are not rounded: values would multiply what that changes."""
        return super().without_unfelt(size) if self.units is None else self.pruned(size)

    def weight_rows(self) -> Integers:
        return np.full(self.oracle.n_rows, self.oracle.stride)

    def narrowed_by_weights(self) -> Self:
        least = None if self.choice is None else self.choice.get(ChosenLeast)
        if (least is None and self.report is None) or not self.encoder.can_narrow:
            return self
        n = self.encoder.n_features
        kept = np.count_nonzero(self.rows(0, n), axis=1) > 0
        if self.encoder.bigram_features is not None:
            kept[self.encoder.bigram_features] = True
        kept[0] |= not kept.any()
        if kept.all() and self.report is None:
            return self
        model = self.copy()
        model.encoder, model.oracle = self.encoder.narrowed(kept), copy.copy(self.oracle)
        model.units = None if self.units is None else self.units.of_columns(kept)
        n_others = self.oracle.n_token_features - n  # the intercept that units have
        model.oracle.set_features(model.encoder.n_features + n_others, self.oracle.n_bigrams)
        table = self.weights.reshape(-1, self.oracle.stride)
        rows = table[:n][kept]
        if self.report is not None:  # files have few bytes for features by their spaces
            model.encoder, order = model.encoder.by_space()
            rows = rows if order is None else rows[order]
        model.weights = np.concatenate([rows, table[n:]]).ravel()
        model.columns = self.columns | {"n_features_in_": model.encoder.n_features}
        model.n_left_out = (self.n_left_out or 0) + n - model.encoder.n_features
        return model

    # ---- views of the weights -------------------------------------------------------------------

    def rows(self, first: int, count: int) -> Floats:
        """Weight rows without padding: array (count, n_labels)."""
        table = self.weights.reshape(-1, self.oracle.stride)
        return table[first : first + count, : self.oracle.n_labels]

    def emission(self) -> Floats:
        """Weights of labels by feature as it came, array (n_features, n_labels)."""
        weights = self.rows(0, self.oracle.n_token_features)
        return weights if self.units is None else self.units.undone(weights)[:-1]

    def intercept(self) -> Floats:
        """Return scores of labels without any feature, array (n_labels,): 0 but for rows of numbers."""
        if self.units is None:
            return np.zeros(self.oracle.n_labels, dtype=np.float32)
        return self.units.undone(self.rows(0, self.oracle.n_token_features))[-1]

    def transition(self) -> Floats:
        """Weights of label b after label a, array (n_labels, n_labels): the first lag if greedy."""
        return self._pairs()[1]

    def edges(self) -> Floats:
        """Weights of the first and of the last label, array (2, n_labels): 0 where there are none; not if greedy."""
        if self.is_greedy:
            raise AttributeError("greedy inference has no weights of the first and the last label alone")
        return self.rows(self.oracle.n_token_features + self.oracle.n_labels, 2)

    def bigram(self) -> Floats:
        """Weights of label b after label a for each bigram as it came, array (n_bigrams, n_labels, n_labels)."""
        return self._pairs()[0]

    def _pairs(self) -> tuple[Floats, Floats]:
        """Weights of pairs of labels: of each bigram as it came, and alone, which is the bigrams' intercept."""
        oracle, K = self.oracle, self.oracle.n_labels
        alone = self.rows(oracle.n_token_features, K) if oracle.order else np.zeros((K, K), dtype=np.float32)
        n_bigrams = oracle.n_bigrams if self.segments is None else 0
        bigrams = self.rows(oracle.first_bigram_row, n_bigrams * K).reshape(-1, K, K)
        if self.units is None or not n_bigrams:
            return bigrams, alone
        rows = np.concatenate([bigrams, alone[np.newaxis]]).reshape(-1, K * K)
        own = self.units.of_columns(self.encoder.bigram_features).undone(rows).reshape(-1, K, K)
        return own[:-1], own[-1]

    def weight_table(self) -> WeightTable:
        return WeightTable(self.encoder.feature_names, list(self.labels), self.emission(), self.transition())

    def holds_several(self, x: object) -> bool:
        """Return whether x is a list of sequences; lists of lists of texts are one, of tokens with attributes."""
        if self.encoder.kind == "columns" and isinstance(x, list) and x and isinstance(x[0], list):
            return True
        return depth(x) > (1 if isinstance(leaf(x), dict | set | frozenset) else 2)

    def explain(self, x: object) -> Explanation:
        tokens = self.encode([x])
        if self.is_greedy:
            raise TypeError("greedy inference has no second best labelling to compare with")
        paths, _ = self.oracle.chain(tokens).kbest(self.weights, 0, 2) if tokens.n_tokens else ([], [])
        ranked = [([self.labels[c] for c in path], self.oracle.joint_feature(tokens, path)) for path in paths]
        names, after = self.encoder.feature_names, self.oracle.n_token_features

        def name(k: int) -> tuple[str, str]:
            row, label = divmod(k, self.oracle.stride)
            if self.segments is not None and row > after + self.oracle.n_labels:
                m, longest = row - after - self.oracle.n_labels - 1, self.oracle.max_length
                feature = "longer" if m > longest else f"length {m}"
                if row >= self.oracle.first_bigram_row:
                    feature = f"phrase {self.segments.phrases.name_of(row - self.oracle.first_bigram_row)}"
                return feature, part_of(self.labels[self.oracle.tags[label, 0]]).kind
            feature, history = self._named_row(row, after, names)
            return feature, f"{self.labels[label]}{history}"

        alone = "there is one labelling only: the constraints, or an empty sequence, leave no other"
        return Explanation.of_best(ranked, self.weights, name, alone)

    def _named_row(self, row: int, after: int, names: list[str]) -> tuple[str, str]:
        """Return the names of the feature and of the history that a row of weights belongs to."""
        K = self.oracle.n_labels
        if row < after:
            return (names[row] if row < len(names) else "intercept"), ""
        if row >= self.oracle.first_bigram_row:
            bigram, before = divmod(row - self.oracle.first_bigram_row, K)
            return self.encoder.bigram_names[bigram], f" after {self.labels[before]}"
        history = row - after
        if history < K:
            return "transition", f" after {self.labels[history]}"
        if history == K:
            return "transition", " at the beginning"
        if self.oracle.end and history == K + 1:
            return "transition", " at the end"
        two, one = divmod(history - K - 2, K)
        before = "the beginning" if two == K else self.labels[two]
        return "transition", f" after {before}, {self.labels[one]}"

    # ---- model files ----------------------------------------------------------------------------

    def stored_params(self) -> dict[str, object]:
        stored = dict(self.params)
        if not leaves_templates(Settings(**stored)):
            stored["templates"] = self.encoder.templates  # the text: a path may be gone by then
        stored["constraints"] = stored_constraints(stored.get("constraints"), self.labels)
        return stored

    def restored_params(self, params: dict[str, object]) -> dict[str, object]:
        if not leaves_templates(Settings(**params)):
            params = params | {"templates": self.encoder.templates}
        constraints = params.get("constraints")
        if constraints == ("masks",):
            allowed = self.oracle.allowed if self.segments is None else None
            constraints = allowed if self.oracle.language is None else self.oracle.language
            if self.oracle.rules:
                constraints = [*([] if allowed is None else [allowed]), *self.oracle.rules]
        elif isinstance(constraints, tuple):
            constraints = [restored_constraint(text, self.labels) for text in constraints]
        elif isinstance(constraints, str):
            constraints = restored_constraint(constraints, self.labels)
        return params | {"constraints": constraints}

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        encoder, labels, segments = stored.encoder, stored.labels, None
        if stored.segments is not None:
            sources, max_length = stored.segments.sources, stored.segments.max_length
            segments = Segments(stored.segments.form, Phrases.from_arrays(sources, stored.phrases, max_length))
        oracle = oracle_of(stored.oracle, labels, segments)
        units = None if encoder.kind == "columns" else units_of(stored.units, encoder.n_features)
        check_fits(encoder, oracle, units is not None, 0 if segments is not None else oracle.n_bigrams)
        weights = weights_of(stored, oracle)
        model = cls(encoder, labels, oracle, weights=weights, units=units, segments=segments)
        model.n_left_out = stored.n_left_out
        model.set_margin(stored.margin)
        return model


def oracle_of(stored: Stored, labels: Sequence[Hashable], segments: Segments | None) -> LabelChain:
    """The oracle of a file."""
    if segments is None:
        return chain_of(stored, labels)
    if (
        stored.inference == "greedy"
        or stored.order != 1
        or stored.end
        or stored.n_bigrams != segments.phrases.starts[-1]
    ):
        raise ValueError(f"an oracle of segments described by {stored!r:.200}")
    oracle = segment_oracle(labels, stored.n_token_features, segments, stored.loss, stored.arrays()["label_costs"])
    language, rules = allowed_of(stored)
    return oracle if language is None and not rules else oracle.within(oracle.allowed, language, rules)


def read(X: SequencesLike) -> Any:
    """X, which may be an iterator, of iterators, or a column of a table, so that it can be read twice."""
    if isinstance(X, Columns):
        return X
    X = unwrapped(X)
    if isinstance(X, (Iterator, list, tuple)) or (isinstance(X, np.ndarray) and X.dtype == object):
        X = [list(x) if isinstance(x, Iterator) else unwrapped(x) for x in X]
    return X
