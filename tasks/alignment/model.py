"""A model of alignment costs without scikit-learn: letters, oracle, weights; and what it is trained on.

`SequenceAligner` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.dual.parallel import parallel_parts
from structsvm.features.inputs.places import PlacedList
from structsvm.oracles.smith_waterman import SmithWatermanOracle, WordAlignmentOracle
from structsvm.parameters import Interval, checked_k
from structsvm.solvers import LaRank
from structsvm.stored_values import Array, Count, Flag, Record, Stored, Text, Value
from structsvm.structures.alignments import FREE, PAIR, Alignment, References, Strings
from structsvm.structures.gapped import as_rows, as_string, in_upper, is_row_of_words, join_rows, split_rows, strip_gaps
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks.alignment.contexts import MOST_LETTERS, contexts_of
from structsvm.tasks.alignment.decoding import PAIRS, SHARPNESS, DecodedSearch, spread
from structsvm.tasks.alignment.doubts import (
    have_gaps,
    letters_in,
    warn_of_alphabet,
    warn_of_gaps,
    warn_of_lacking,
    warn_of_two_scores,
)
from structsvm.tasks.alignment.examples import AlignedPairs
from structsvm.tasks.alignment.letters import LetterEncoder
from structsvm.tasks.alignment.selection import (
    LETTERS_AROUND,
    NO_CONTEXT,
    Costs,
    Selection,
    is_auto,
    prior_costs,
    scaled,
)
from structsvm.tasks.alignment.words import WordEncoder
from structsvm.tasks.common.calibration import check_evidence, fit_temperature
from structsvm.tasks.common.inspection.inputs import depth
from structsvm.tasks.common.inspection.weights import Explanation, WeightTable
from structsvm.tasks.common.labels import is_hashable
from structsvm.tasks.common.likelihood import with_probabilities
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import check_settled, check_unchanged
from structsvm.tasks.common.selection.choice import ChosenDecoding
from structsvm.tasks.common.selection.search import Held
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.common.stored_labels import Labels

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.solvers import Solver
    from structsvm.tasks.alignment.examples import GappedRows, String, StringPair
    from structsvm.tasks.alignment.parameters import SequenceAlignerParameters
    from structsvm.tasks.alignment.selection import MatrixSource
    from structsvm.tasks.common.selection.search import Search
    from structsvm.tasks.common.solver import Settings
    from structsvm.tasks.common.training import Job

ALIGNMENT_C = 0.001
N_FOR_SCALE = 64

# An alignment of which nothing is known.
NOTHING = Alignment(0, 0, b"")

# Parameters that the oracle stores as they are.
STRUCTURE = ("mode", "gaps", "symmetric", "letter_gaps", "window")
# Alphabet and oracle, which give the weights their meaning.
LETTERS = Record({
    "alphabet": Text(of="encoder.alphabet"),
    "classes": Value(
        lambda classes: tuple(classes) if isinstance(classes, list) else classes, of="encoder.stored_classes"
    ),
    "words": Labels(0, of="encoder.words", needed=False),
    "oracle": Record({
        "mode": Text(),
        "gaps": Text(),
        "symmetric": Flag(),
        "letter_gaps": Flag(),
        "window": Count(),
        "context": Text(of=lambda oracle: LETTERS_AROUND if oracle.contexts else None, needed=False),
        "loss": Text(of="loss_name"),
        "band": Value(list, lambda band: [-band[0], band[1]], null=True),
    }),
})  # fmt: skip
RECORD = LETTERS | {
    "costs": Value(Costs.read, list, null=True),
    "weights": Array("f8", ("n_features",)),
    "guide": Array("f8", ("n_features",), needed=False),
    "seen": Text(needed=False),
}


class AlignmentModel(TaskModel[AlignedPairs]):
    """Letters, oracle and weights.

    Attributes
    ----------
    encoder : LetterEncoder or WordEncoder
    oracle : SmithWatermanOracle
    weights : ndarray of shape (oracle.n_features,), float64
    costs : Costs or None
        The costs of the prior that training started from.
    temperature : float or None
        Divisor of the scores for probabilities, from `calibrate`; None: unknown.
    guide : ndarray of shape (oracle.n_features,), float64, or None
        The costs by which columns that the references do not assess were aligned for the last training.
    seen : str or None
        The letters that strings of training had; None: costs were given.
    sharpness : float or None
        While C is chosen: how sharp the probabilities are by which alignments are decoded, see `beta`. Else None.
    """

    kind = "alignment"
    record = RECORD
    estimator = "SequenceAligner"
    has_temperature = True

    costs: Costs | None = None
    sharpness: float | None = None

    def __init__(
        self,
        encoder: LetterEncoder | WordEncoder,
        oracle: SmithWatermanOracle,
        *,
        weights: Floats | None = None,
        guide: Floats | None = None,
        seen: str | None = None,
    ) -> None:
        super().__init__()
        self.seen = seen
        self.encoder, self.oracle, self.guide = encoder, oracle, guide
        self.weights = np.zeros(oracle.n_features) if weights is None else weights

    @classmethod
    def of(cls, params: SequenceAlignerParameters | Settings) -> AlignmentModel:
        """An untrained model as parameters (attributes of an object) ask for it; semi-global if they leave it open."""
        return cls._of(LetterEncoder(params.alphabet, params.classes), params)

    @classmethod
    def of_words(cls, params: SequenceAlignerParameters | Settings, lists: Iterable[Any]) -> AlignmentModel:
        """An untrained model of lists of words; ValueError where parameters ask for what letters alone have."""
        if params.classes is not None:
            raise ValueError("The 'classes' parameter must be None where the sequences are lists of words.")
        return cls._of(WordEncoder.of_lists(params.alphabet, lists), params)

    @classmethod
    def _of(cls, encoder: LetterEncoder | WordEncoder, params: SequenceAlignerParameters | Settings) -> AlignmentModel:
        settings = {name: getattr(params, name) for name in (*STRUCTURE, "band", "loss")}
        settings["mode"] = "semi_global" if params.mode == AUTO else params.mode
        if params.context == LETTERS_AROUND and not contexts_of(encoder):
            raise ValueError(
                f"The 'context' parameter must be 'auto' or 'none' for words, and for an alphabet of more than "
                f"{MOST_LETTERS} letters other than 'protein': of other letters nothing is known. Got 'letters'."
            )
        return cls(encoder, oracle_of(encoder, context=params.context, **settings))

    @classmethod
    def prepared(
        cls,
        params: SequenceAlignerParameters | Settings,
        X: Iterable[StringPair],
        y: Iterable[GappedRows | None] | None,
        decoys: Iterable[Iterable[String]] | None = None,
        sample_weight: Weights | None = None,
    ) -> tuple[AlignmentModel, References]:
        """Return ``(model, references)``: an untrained model and encoded pairs, with what parameters leave open chosen.

        The model's weights are the costs to start from. `y` None: unknown alignments, with decoys instead.
        `sample_weight`: pairs of weight 0 have no part in the choice. Nor have those of unknown alignments, but if all
        are.
        """
        X, y, decoys = listed(X, y, decoys)
        lists = None if isinstance(params.classes, tuple) else lists_of_words(X, decoys)
        model = cls.of(params) if lists is None else cls.of_words(params, lists)
        is_open = params.mode == AUTO
        references = (model.in_mode("global") if is_open else model).references(X, y, decoys)
        letters = letters_in(references, model.encoder)
        warn_of_alphabet(letters, model.encoder, len(references.strings.symbols))
        if y is not None:
            warn_of_gaps(len(references), has_gaps=have_gaps(references))
        if not is_open and params.prior is None:
            return model, references
        if decoys is None and model.oracle.loss_name == "q":
            references.check_assessed()
        weighty = references if sample_weight is None else references.chosen(np.flatnonzero(sample_weight))
        if y is not None and weighty.has_unknown:
            weighty = weighty.chosen(np.flatnonzero(np.diff(weighty.bounds)))
        selection = Selection(model, params, weighty)
        given = prior_costs(params.prior)[0]
        if given is not None and not is_auto(given):
            warn_of_lacking(letters, read_matrix(given))
        costs = selection.choose()
        if is_open:
            model = model.in_mode(costs.mode)
            references = model.trimmed(references)
        if params.prior is not None:
            if params.context == AUTO and selection.context_helps(costs):
                model = model.in_context(LETTERS_AROUND)
            model.set_costs(selection.matrices[costs.matrix], costs.gap_open, costs.gap_extend)
            if is_auto(prior_costs(params.prior)[0]) and y is not None:
                costs = costs._replace(scale=scaled(model, model.trimmed(weighty) if is_open else weighty))
            model.weights *= costs.scale
            model.costs = costs
        return model, references

    def in_mode(self, mode: str) -> AlignmentModel:
        """The same model without costs, in another mode."""
        return self._otherwise(mode=mode)

    def in_context(self, context: str) -> AlignmentModel:
        """The same model without costs, with contexts, if there are any for its letters, or without them."""
        return self._otherwise(context=context)

    def _otherwise(self, **structure: str) -> AlignmentModel:
        return type(self)(self.encoder, oracle_of(self.encoder, **LETTERS.write(self)[0]["oracle"] | structure))

    # ---- the weights as costs -------------------------------------------------------------------

    def set_costs(self, matrix: MatrixSource, gap_open: float, gap_extend: float) -> None:
        """Put a substitution matrix (or the path or the name of one) and scores of gaps in the weights' place."""
        for name, cost in (("gap_open", gap_open), ("gap_extend", gap_extend)):
            if not Interval(Real, -np.inf, closed="neither").accepts(cost):
                raise ValueError(f"{name} must be a finite number, got {cost!r:.80}")
            if cost > 0.0:
                raise ValueError(
                    f"{name} must not be positive: it is a score, and alignments would gain by gaps. Where others "
                    "write costs of 10 and 1, the scores are -10 and -1 (BLAST, whose first letter costs both: -11 and "
                    f"-1). Got {cost:g}."
                )
        if gap_extend < gap_open:
            warn(
                f"gap_extend={gap_extend:g} is below gap_open={gap_open:g}: a gap's further letters cost more than its "
                "first one. The score of the first letter stands first",
                AdviceWarning,
            )
        values = self.matrix_of(matrix).values
        if self.oracle.symmetric:
            warn_of_two_scores(values, self.encoder.letters)
            values = 0.5 * (values + values.T)
        self.weights = np.zeros(self.oracle.n_features)
        self.weights[self.oracle.pair_ids()] = values
        first = self.oracle.first_gap
        self.weights[first] = gap_open
        if self.oracle.gaps == "affine":
            self.weights[first + 1] = gap_extend

    def log_odds(self, references: References) -> SubstitutionMatrix:
        """The matrix that `log_odds_matrix` makes of the references."""
        (core_x, core_z, bounds), strings = references.core(), references.strings
        counts = np.ones((len(self.encoder.letters),) * 2)
        letters = []
        for place, string in ((core_x, references.x), (core_z, references.z)):
            symbols = strings.symbols[np.repeat(strings.offsets[string], np.diff(bounds)) + place - 1]
            letters.append(np.unravel_index(symbols, self.encoder.sizes)[0])
        np.add.at(counts, tuple(letters), 1.0)
        return log_odds(self.encoder.letters, counts, self.oracle.symmetric)

    def matrix_of(self, prior: MatrixSource) -> SubstitutionMatrix:
        """A prior's matrix, over the letters of the model; ValueError for distances."""
        matrix = read_matrix(prior)
        others = matrix.values[~np.eye(len(matrix.alphabet), dtype=bool)]
        own = np.diag(matrix.values)
        if len(others) and others.min() > own.max():
            raise ValueError(
                f"the substitution matrix has {own.max():g} at most for a letter with itself and more for all others: "
                "these are distances, and alignments would pair unlike letters; give scores, such as "
                "SubstitutionMatrix(letters, -distances)"
            )
        return matrix.over(self.encoder.letters)

    @property
    def substitution_matrix(self) -> SubstitutionMatrix:
        return SubstitutionMatrix(self.encoder.letters, self.oracle.pair_table(self.weights))

    @property
    def gap_open(self) -> float:
        return float(self.weights[self.oracle.first_gap])

    @property
    def gap_extend(self) -> float:
        return float(self.weights[self.oracle.first_gap + (self.oracle.gaps == "affine")])

    def highest_gap(self, strings: Strings) -> float:
        """The highest score that a letter against a gap can have, at any place of these strings."""
        values, bounds = self.oracle.context_values(strings), strings.offsets
        is_inside = np.ones(len(strings.symbols) + 1, dtype=bool)
        is_inside[bounds] = False
        found = []
        for features, beside in zip(
            (self.oracle.open_features, self.oracle.extend_features), self.oracle.context_gaps, strict=True
        ):
            letter = self.weights[beside[values]].sum(axis=0)
            places = (np.append(0.0, letter) + np.append(letter, 0.0))[is_inside]
            borders = letter[bounds[:-1]], letter[bounds[1:] - 1]
            highest = max(part.max(initial=-np.inf) for part in (places, *borders))
            found.append(self.weights[features].sum(axis=1).max() + highest)
        return float(max(found))

    # ---- training -------------------------------------------------------------------------------

    def bind(self, examples: AlignedPairs, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """The oracle bound to pairs, whose columns that are not assessed the guide has aligned."""
        references = examples.references
        if self.guide is not None:
            references = self.oracle.completed(references, self.guide)
        return self.oracle.bind_references(references, **solver.formulation()), examples.weight

    def recentred(
        self, problem: Any, sample_weight: Weights | None, solver: Solver
    ) -> tuple[BoundProblem, Weights | None, Floats]:
        # Alignments completed by the guide of an earlier training are completed anew.
        if not problem.references.is_whole and not solver.completes:
            self.guide = self.weights
            references = self.oracle.completed(problem.references, self.guide)
            problem = self.oracle.bind_references(references, **solver.formulation())
        return problem, sample_weight, self.weights

    def prior(self, examples: AlignedPairs) -> Floats | None:
        """The costs that the model was made with."""
        return self.weights if self.weights.any() else None

    def settle(self, job: Job[AlignedPairs]) -> None:
        """Align columns that are not assessed once, before training, as the costs that it starts from align them best.

        The problem that is solved, and certified, is the convex one with these alignments. An alignment with
        other costs could only score more, so that its primal objective bounds the one in which they are left open.
        Homologues whose alignments are not known at all, or a `LatentSVM`, align them in each round.
        """
        references = job.examples.references
        if isinstance(self.encoder, LetterEncoder) and (self.seen is not None or not self.is_trained):
            ids = np.unravel_index(references.strings.symbols, self.encoder.sizes)[0]
            found = {self.encoder.letters[k] for k in np.unique(ids)}
            self.seen = "".join(sorted(found.union(self.seen or "")))
        if job.solver.completes:
            self.guide = None
        elif not job.continues:
            self.guide = None if references.is_whole else self._first_guide(references)

    def finish(self, job: Job[AlignedPairs]) -> None:
        """Warn of gaps that are rewarded in local mode."""
        if self.oracle.mode != "local":
            return
        highest = self.highest_gap(job.examples.references.strings)
        if highest > 0.0:
            warn(
                f"a letter against a gap scores up to {highest:.3g} in this local model, so that alignments "
                "grow with the sequences; use a lower C, a prior, or another mode",
                UserWarning,
            )

    def _first_guide(self, references: References) -> Floats:
        """The costs of the prior, or those learnt in one pass from the alignments as they are given."""
        if self.weights.any():
            return self.weights
        solver = LaRank(C=ALIGNMENT_C, max_iter=1, random_state=0)
        run = solver.solve(self.oracle.bind_references(references, **solver.formulation()))
        if run.status == "interrupted":
            raise KeyboardInterrupt("before the training itself had begun: the estimator is as it was")
        return run.weights

    def references(
        self,
        X: Iterable[StringPair],
        y: Iterable[GappedRows | None] | None,
        decoys: Iterable[Iterable[String]] | None = None,
    ) -> References:
        """Encode pairs of strings, their reference alignments (pairs of rows; None: all or one unknown) and decoys."""
        X, y, decoys = listed(X, None if y is None else in_upper(y), decoys)
        for name, other in (("y", y), ("decoys", decoys)):
            if other is not None and len(other) != len(X):
                raise ValueError(f"X has {len(X)} pairs, {name} has {len(other)}")
        pool, pairs, alignments, known, sets = StringPool(self.encoder), [], [], [], []
        for k, pair in enumerate(X):
            pair = as_pair(pair, k)
            of_one = [] if decoys is None or isinstance(decoys[k], str) else list(decoys[k])
            x, z, *others = pool.add_all([*pair, *of_one], k)
            pairs.append((x, z))
            try:
                rows = None if y is None else y[k]
                if rows is None:
                    whole = Alignment(0, 0, b"x" * len(pool.arrays[pairs[k][0]]) + b"z" * len(pool.arrays[pairs[k][1]]))
                else:
                    whole = self.read_rows(pair[0], pair[1], rows)
                alignments.append(NOTHING if rows is None else trimmed(whole.operations, self.oracle.mode))
                known.append(None if rows is not None and whole.is_assessed else whole.known)
            except (ValueError, TypeError) as error:
                raise ValueError(f"y, example {k}: {error}") from None
            if decoys is not None:
                if not of_one:
                    raise ValueError(
                        f"decoys, example {k}: expected a list of at least one string, got {decoys[k]!r:.80}"
                    )
                sets.append(others)
        known = known_of_local(known) if self.oracle.mode == "local" else known
        return References.of(pool.strings(), pairs, alignments, sets if decoys is not None else None, known)

    def trimmed(self, references: References) -> References:
        """References with alignments of whole strings, as the model's mode has them."""
        if self.oracle.mode == "global" or len(references.codes) == 0:
            return references
        wholes = [references.alignment(k).operations for k in range(len(references))]
        found = references.with_alignments([trimmed(w, self.oracle.mode) if w else NOTHING for w in wholes])
        if self.oracle.mode == "local":
            found.known = known_of_local(found.known)
        return found

    def read_rows(self, x: String, z: String, rows: Any) -> Alignment:
        """The `Alignment` of two gapped rows, whole; ValueError if they are not rows of x and z."""
        rows = as_rows(rows)
        of_words = isinstance(self.encoder, WordEncoder)
        if len(rows) != 2 or not all(isinstance(row, list if of_words else str) for row in rows):
            what = "lists of words" if of_words else "strings"
            raise ValueError(f"an alignment is a pair of gapped {what}, got {rows!r:.80}")
        row_x, row_z, operations = split_rows(*rows)
        for name, row, string in (("x", row_x, x), ("z", row_z, z)):
            letters = self.encoder.letters_of(string)
            if row != letters:
                place = next((k for k, (a, b) in enumerate(zip(row, letters)) if a != b), min(len(row), len(letters)))
                where = "; where '-' is a word, gaps are None" if of_words and "-" in letters else ""
                part = "word" if of_words else "letter"
                raise ValueError(f"its row of {name} is not {name}: they differ from {part} {place + 1} on{where}")
        return Alignment(0, 0, operations)

    # ---- choosing -------------------------------------------------------------------------------

    def search_of_loss(self, examples: AlignedPairs, solver: Solver) -> Search:
        """Homologues whose alignments are not known are aligned by the prior, and stay so while C is chosen."""
        if examples.has_unknown:
            examples = replace(examples, references=self.oracle.completed(examples.references, self.weights))
        if len(examples.references.decoys):
            return super().search_of_loss(examples, solver)
        return DecodedSearch(self, examples.subsample(self.most_examples), solver)

    @property
    def beta(self) -> float:
        """The factor on scores by which alignments are decoded, for the most expected pairs; 0: best alignments."""
        return self.beta_of(None)

    def beta_of(self, decode: str | None) -> float:
        """The same if one of `BEST` and `PAIRS` is asked for, or None: as was chosen."""
        chosen = None if self.choice is None else self.choice.get(ChosenDecoding)
        sharpness = self.sharpness
        if sharpness is None:
            sharpness = 0.0 if chosen is None else chosen.sharpness
        if decode is not None:
            sharpness = (sharpness or SHARPNESS) if decode == PAIRS else 0.0
        return sharpness / spread(self.oracle.pair_table(self.weights)) if sharpness else 0.0

    def held_out_scores(self, examples: AlignedPairs) -> Held:
        """The metric, and for each example what was found and what was wanted: the share of assessed pairs that the
        best alignment has; or with decoys, whether the homologue scores more than all of them.
        """
        data = examples.references
        if len(data.decoys) == 0:
            found = self.oracle.aligner(data.strings, data.pairs).hits(self.weights, data, self.beta)
            return Held("Q", found / np.maximum(np.diff(data.core()[2]), 1), np.ones(len(data)))
        pairs = np.concatenate([data.pairs, data.decoy_pairs()])
        scores = self.oracle.aligner(data.strings, pairs, traceback=False).scores(self.weights, pairs)
        highest = np.maximum.reduceat(scores[len(data) :], data.decoy_bounds[:-1])
        return Held("homologues chosen", (scores[: len(data)] > highest).astype(float), np.ones(len(data)))

    def scale(self, examples: AlignedPairs) -> float:
        """The mean of ``|dPsi|^2 / loss`` of the most violated constraints at the costs to start from."""
        few = examples.references.chosen(np.arange(min(len(examples), N_FOR_SCALE)))
        problem = self.oracle.bind_references(few)
        found = [problem.separate(i, self.weights) for i in range(len(few))]
        sizes = [float(psi @ psi) / b for b, psi in found if b > 0.0]
        return float(np.mean(sizes)) if sizes else 1.0

    # ---- prediction -----------------------------------------------------------------------------

    def align(self, X: Sequence[StringPair], n_jobs: int = 1, decode: str | None = None) -> list[tuple[str, str]]:
        """The alignment of each pair of strings, see `beta_of`, as pairs of rows.

        An empty string stands against nothing but gaps.
        """
        found = [self._with_nothing(pair, k) for k, pair in enumerate(X)]
        full = [k for k, rows in enumerate(found) if rows is None]
        beta = self.beta_of(decode)

        def work(a: int, b: int) -> list[tuple[str, str]]:
            pool, part = StringPool(self.encoder), full[a:b]
            pairs = np.array([pool.add_all(as_pair(X[k], k), k) for k in part], dtype=np.int64).reshape(-1, 2)
            aligner = self.oracle.aligner(pool.strings(), pairs)
            return [
                self._rows(as_pair(X[k], k), *aligner.align(self.weights, *pair, beta)[:3])
                for k, pair in zip(part, pairs.tolist())
            ]

        for k, rows in zip(full, parallel_parts(work, len(full), n_jobs), strict=True):
            found[k] = rows
        self.say_unseen(string for k, pair in enumerate(X) for string in as_pair(pair, k))
        return found

    def say_unseen(self, strings: Iterable[String]) -> None:
        """Warn of letters that no string of training had."""
        encoder = self.encoder
        if self.seen is None or isinstance(encoder, WordEncoder) or not (strange := encoder.read_as_others(self.seen)):
            return
        texts = list(map(encoder.letters_of, strings))
        counts = {letter: sum(text.count(letter) for text in texts) for letter in strange}
        counts = {letter: n for letter, n in counts.items() if n}
        if counts:
            names = ", ".join(f"{letter!r} {n} times" for letter, n in counts.items())
            scores = "their pairs score what the prior says" if self.costs is not None else "nothing is known of them"
            warn(
                f"the strings have letters that training never saw: {names}; {scores}. Train on strings that have them",
                AdviceWarning,
            )

    def _with_nothing(self, pair: StringPair, k: int) -> Any:
        """The alignment of example k if one of its strings is empty, else None."""
        strings = as_pair(pair, k)
        of_words = isinstance(self.encoder, WordEncoder)
        if all(not isinstance(s, (str, tuple, list)) or (len(s) > 0 if of_words else any(s)) for s in strings):
            return None
        letters: list[Any] = []
        for name, string in zip("xz", strings, strict=True):
            try:
                letters.append(self.encoder.letters_of(string))
                if letters[-1]:
                    self.encoder.encode_all([string])
            except ValueError as error:
                raise ValueError(f"{name} of example {k}: {error}") from None
        x, z = letters
        return join_rows(x, z, 0, 0, b"", local=self.oracle.mode == "local")

    def align_kbest(
        self, pair: StringPair, k: int, *, probabilities: bool = False
    ) -> list[tuple[tuple[str, str], float]]:
        """The k best alignments of a pair of strings: a list of ``(rows, score)``, best first.

        With `probabilities` each has its probability among all alignments instead. Rows that several alignments have (a
        gap at an end of semi-global ones is free, or paid for) are found once: their score is that of the best of them,
        their probability that of all.
        """
        k = checked_k(k)
        pair = as_pair(pair, 0)
        strings = self._encoded(pair)
        found: dict[Hashable, tuple[Any, float, Alignment]] = {}
        for score, a in self.oracle.alignments(strings, self.weights):
            rows = self._rows(pair, a.x_start, a.z_start, a.codes)
            found.setdefault(tuple(map(tuple, rows)), (rows, score, a))
            if len(found) == k:
                break
        best = list(found.values())
        if not probabilities:
            return [(rows, score) for rows, score, _ in best]
        if self.temperature is None:
            raise ValueError(
                "probabilities=True needs probabilities, and scores are none: call calibrate on aligned pairs"
            )
        weights = self.weights / self.temperature
        log_sum = self.oracle.log_sum(strings, weights)
        of_rows = self.oracle.log_sums_of_rows(strings, weights, [a for _, _, a in best])
        return with_probabilities(zip([rows for rows, _, _ in best], of_rows, strict=True), log_sum)

    def calibrate(self, X: Iterable[StringPair], y: Iterable[GappedRows | None] | None) -> None:
        """Fit the temperature to aligned pairs that the model was not trained on: to the likelihood of all that agrees
        with their assessed columns.
        """
        X, y, _ = listed(X, y)
        references = self.references(X, y)
        check_evidence(y is not None and any(rows is not None for rows in y))
        aligner = self.oracle.aligner(references.strings, references.pairs)
        whole = [references.alignment(k) for k in range(len(references))]
        told = references.known
        if self.oracle.mode == "semi_global":  # gaps at an end are free, or paid for
            lengths = np.diff(references.strings.offsets)[references.pairs].tolist()
            told = [
                a.whole(*both).known if known is None else known
                for a, both, known in zip(whole, lengths, told, strict=True)
            ]
        examples = list(zip(references.x.tolist(), references.z.tolist(), told, strict=True))
        scores = [
            float(aligner.histogram(x, z, a.x_start, a.z_start, a.codes) @ self.weights)
            for (x, z, _), a in zip(examples, whole, strict=True)
        ]

        def loss(beta: float) -> tuple[float, float]:
            value = slope = 0.0
            for (x, z, known), score in zip(examples, scores, strict=True):
                log_sum, mean = aligner.log_sum(self.weights, x, z, beta)
                log_right, right = (
                    (beta * score, score) if known is None else aligner.log_sum(self.weights, x, z, beta, known)
                )
                value += log_sum - log_right
                slope += mean - right
            return value, slope

        self.temperature = fit_temperature(loss)

    def _encoded(self, pair: tuple[String, ...]) -> list[Integers]:
        """The strings as the oracle takes them."""
        strings = self.encoder.encode_all(pair)
        return [s[:, 0] if s.ndim == 2 and s.shape[1] == 1 else s for s in strings]

    def _rows(self, pair: tuple[String, ...], x_start: int, z_start: int, codes: NDArray[np.uint8]) -> tuple[str, str]:
        x, z = (self.encoder.letters_of(string) for string in pair)
        operations = Alignment.from_codes(x_start, z_start, codes).operations
        return join_rows(x, z, x_start, z_start, operations, local=self.oracle.mode == "local")

    def scores(self, X: Sequence[String], candidates: Sequence[Sequence[String]], n_jobs: int = 1) -> list[Floats]:
        """The scores of the best alignments of each x with each of its candidates: a list of float64 arrays."""
        pool, pairs, counts = StringPool(self.encoder), [], []
        for k, (x, others) in enumerate(zip(X, candidates, strict=True)):
            first, *rest = pool.add_all([x, *others], k, candidates=True)
            pairs += [(first, other) for other in rest]
            counts.append(len(others))
        strings, table = pool.strings(), np.array(pairs, dtype=np.int64).reshape(-1, 2)

        def work(a: int, b: int) -> Floats:
            return self.oracle.aligner(strings, table[a:b], traceback=False).scores(self.weights, table[a:b])

        found = parallel_parts(work, len(table), n_jobs)
        self.say_unseen([*X, *chain.from_iterable(candidates)])
        return np.split(found, np.cumsum(counts)[:-1])

    def weight_names(self) -> list[str]:
        """Return names of weights: pairs of letters, then gaps, then position features by their number."""
        letters, oracle, ids = self.encoder.letters, self.oracle, self.oracle.pair_ids()
        names = [f"weight {k}" for k in range(oracle.n_features)]
        a, b = np.triu_indices(len(letters)) if oracle.symmetric else np.indices((len(letters),) * 2).reshape(2, -1)
        for i, j in zip(a[::-1].tolist(), b[::-1].tolist()):  # the first of the pairs with one weight names it
            names[ids[i, j]] = f"{letters[i]} with {letters[j]}"
        of_gaps = ["gap opened", "gap extended"] if oracle.gaps == "affine" else ["gap"]
        for k, name in enumerate(of_gaps):
            names[oracle.first_gap + k] = name
        for context, (pairs, gaps) in zip(oracle.contexts, oracle.context_ids(), strict=True):
            for i, j in np.argwhere(np.triu(np.ones(pairs.shape))).tolist():
                names[pairs[j, i]] = f"{context.name} {j} with {i}"
                names[pairs[i, j]] = f"{context.name} {i} with {j}"
            for name, ids in zip(of_gaps, gaps, strict=False):
                for value, feature in enumerate(ids.tolist()):
                    names[feature] = f"{name} beside {context.name} {value}"
        return names

    def weight_table(self) -> WeightTable:
        return WeightTable(self.weight_names(), [None], self.weights[:, np.newaxis])

    def holds_several(self, x: Any) -> bool:
        if isinstance(self.encoder, WordEncoder):
            return len(x) != 2 or not (is_row_of_words(x[0]) and all(map(is_hashable, x[0])))
        return depth(x) > 1

    def explain(self, x: StringPair) -> Explanation:
        pair = as_pair(x, 0)
        strings, names = self._encoded(pair), self.weight_names()
        ranked = (
            (self._rows(pair, a.x_start, a.z_start, a.codes), self.oracle.joint_feature(strings, a))
            for _, a in self.oracle.alignments(strings, self.weights)
        )
        alone = "the strings have one alignment only, and two are compared"
        return Explanation.of_best(ranked, self.weights, lambda k: (names[k], ""), alone)

    # ---- model files ----------------------------------------------------------------------------

    def check_unchanged(self, params: SequenceAlignerParameters | Settings) -> None:
        """Raise ValueError, naming the parameter, if parameters ask for a model of another structure."""
        other = AlignmentModel.of(params)
        if isinstance(self.encoder, WordEncoder):
            other = AlignmentModel._of(self.encoder, params)
        mine, wanted = (LETTERS.write(model)[0] for model in (self, other))
        mine, wanted = ({"context": NO_CONTEXT} | one.pop("oracle") | one for one in (mine, wanted))
        settled = {name: value for name, value in mine.items() if name != "words" and getattr(params, name) != AUTO}
        check_settled((name, wanted[name], value) for name, value in settled.items())
        check_unchanged(params, self, ["prior"])

    def stored_params(self) -> dict[str, object]:
        prior = self.params.get("prior")
        matrix, *gaps = prior_costs(prior)
        if matrix is None or is_name(matrix):
            return self.params
        values = read_matrix(matrix)
        return self.params | {"prior": (values, *gaps) if isinstance(prior, tuple) else values}

    @staticmethod
    def suspicion(header: dict[str, Any]) -> str | None:
        prior = header["params"].get("prior")
        matrix = prior[0] if isinstance(prior, list) and prior else prior
        if not isinstance(matrix, str) or is_name(matrix):
            return None
        return f"its prior is a substitution matrix in the file {matrix!r:.200}, which training would open"

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        encoder: LetterEncoder | WordEncoder = LetterEncoder(stored.alphabet, stored.classes)
        if stored.words is not None:
            encoder = WordEncoder(stored.alphabet, stored.words)
        oracle = oracle_of(encoder, **stored.oracle)
        model = cls(encoder, oracle, **stored.arrays(n_features=oracle.n_features))
        model.costs, model.seen = stored.costs, stored.seen
        if strange := set(model.seen or "") - set(encoder.letters):
            raise ValueError(f"training saw {min(strange)!r}, which is no letter of the alphabet")
        return model


def listed(
    X: Iterable[object], y: Iterable[object] | None, decoys: Iterable[object] | None = None
) -> tuple[list[Any], list[Any] | None, list[Any] | None]:
    """Pairs, alignments and decoys as lists: what has an index of its own is read by place. None stays None."""
    X = X if isinstance(X, PlacedList) else list(X)
    return X, None if y is None else list(y), None if decoys is None else list(decoys)


def as_pair(pair: StringPair, k: int) -> tuple[String, ...]:
    """The two strings of example k; ValueError if it is no pair. Of an alignment of Biopython, those that it aligns."""
    if not isinstance(pair, (tuple, list)):
        try:
            rows = as_rows(pair)
        except ValueError as error:
            raise ValueError(f"X, example {k}: {error}") from None
        if rows is not pair:
            return tuple(map(strip_gaps, rows))
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"X, example {k}: expected a pair of strings, got {pair!r:.80}")
    return tuple(map(as_string, pair))


class StringPool:
    """Encoded strings, each kept once."""

    def __init__(self, encoder: LetterEncoder | WordEncoder) -> None:
        self.encoder = encoder
        self.ids: dict[Hashable, int] = {}
        self.arrays: list[Integers] = []
        self.sources: dict[Hashable, int] = {}
        self.source: list[int] = []

    def add_all(self, strings: Sequence[String], k: int, *, candidates: bool = False) -> list[int]:
        """The ids of the strings of example k: x, then z and decoys, or candidates.

        ValueError, beginning with the string's name, if one cannot be encoded.
        """
        strings = [as_string(string) for string in strings]
        if isinstance(self.encoder, LetterEncoder):
            return [self.add(string, name_of(n, k, candidates=candidates)) for n, string in enumerate(strings)]
        for n, string in enumerate(strings):
            try:
                self.encoder.encode_all([string])
            except ValueError as error:
                raise ValueError(f"{name_of(n, k, candidates=candidates)}: {error}") from None
        keys = [tuple(self.encoder.letters_of(words)) for words in strings]
        arrays = self.encoder.encode_all(strings)
        return [self._keep((key, array.tobytes()), array, key) for key, array in zip(keys, arrays, strict=True)]

    def add(self, string: String, what: str) -> int:
        """The id of a string of letters; ValueError, beginning with `what`, if it cannot be encoded."""
        key = tuple(string) if isinstance(string, (tuple, list)) else string
        if key in self.ids:
            return self.ids[key]
        try:
            (values,) = self.encoder.encode_all([key])
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        return self._keep(key, np.ravel_multi_index(tuple(values.T), self.encoder.sizes), key)

    def _keep(self, key: Hashable, array: Integers, source: Hashable) -> int:
        if key not in self.ids:
            self.ids[key] = len(self.arrays)
            self.arrays.append(array)
            self.source.append(self.sources.setdefault(source, len(self.sources)))
        return self.ids[key]

    def strings(self) -> Strings:
        return Strings.of(self.arrays, np.array(self.source, dtype=np.int64))


def name_of(n: int, k: int, *, candidates: bool) -> str:
    """The name of the n-th string of example k in errors."""
    if candidates:
        return f"candidate {n - 1} of example {k}" if n else f"x of example {k}"
    return f"decoy {n - 2} of example {k}" if n > 1 else f"{'xz'[n]} of example {k}"


def oracle_of(
    encoder: LetterEncoder | WordEncoder, *, context: str | None = None, **settings: Any
) -> SmithWatermanOracle:
    """The oracle of an encoder's symbols."""
    if isinstance(encoder, WordEncoder):
        return WordAlignmentOracle(len(encoder.words), **settings)
    contexts = contexts_of(encoder) if context == LETTERS_AROUND else ()
    return SmithWatermanOracle(encoder.sizes[0], classes=encoder.sizes[1:], contexts=contexts, **settings)


def lists_of_words(X: Sequence[Any], decoys: Sequence[Any] | None) -> Iterator[Any] | None:
    """The sequences of all examples, if those of the first one are lists of words, else None."""
    if not X or not isinstance(X[0], (tuple, list)) or not all(map(is_row_of_words, X[0])):
        return None
    return chain(chain.from_iterable(as_pair(pair, k) for k, pair in enumerate(X)), *(decoys or ()))


def trimmed(operations: bytes, mode: str) -> Alignment:
    """The `Alignment` of whole strings by these operations, as a mode has it: without what is free at the ends.

    Local alignments begin and end with a pair. Semi-global ones leave out the longer of the two gaps that may stand at
    an end.
    """
    steps = operations.upper()
    paired = [k for k, operation in enumerate(operations) if operation in b"Mm"]
    if not paired:
        raise ValueError("the alignment has no pair of letters")
    if mode == "global":
        return Alignment(0, 0, operations)
    head, body, tail = steps[: paired[0]], operations[paired[0] : paired[-1] + 1], steps[paired[-1] + 1 :]
    x, z = head.count(b"X"), head.count(b"Z")
    if mode == "local":
        return Alignment(x, z, body)
    keep_head = b"Z" * z if x >= z else b"X" * x
    keep_tail = b"Z" * tail.count(b"Z") if tail.count(b"X") >= tail.count(b"Z") else b"X" * tail.count(b"X")
    return Alignment(x if x >= z else 0, 0 if x >= z else z, keep_head + body + keep_tail)


def known_of_local(known: Sequence[NDArray[np.uint8] | None]) -> Any:
    """Return the known parts of local alignments of a data set (`Alignment.known`; None: all is known).

    Lower case means outside of the alignment, as in predicted rows, if in all alignments only letters before the first
    and behind the last pair are in lower case. Otherwise it means not assessed.
    """
    for codes in known:
        if codes is not None:
            paired = np.flatnonzero(codes & np.uint8(FREE - 1) == PAIR)
            if len(paired) and (codes[paired[0] : paired[-1] + 1] >= FREE).any():
                return known
    return [None if codes is None or (codes & np.uint8(FREE - 1) == PAIR).any() else codes for codes in known]


def is_name(matrix: object) -> bool:
    """Whether a substitution matrix is given by the name of a published one, or to be chosen."""
    return isinstance(matrix, str) and (matrix == AUTO or (matrix.isalnum() and not os.path.exists(matrix)))


def read_matrix(matrix: MatrixSource) -> SubstitutionMatrix:
    """A `SubstitutionMatrix` as it is, of Biopython's Array, from a file in NCBI's text format, or by its name."""
    if isinstance(matrix, SubstitutionMatrix):
        return matrix
    if isinstance(matrix, np.ndarray):
        if not hasattr(matrix, "alphabet"):
            raise ValueError(
                "a matrix of scores must say which letters they are of: SubstitutionMatrix(letters, scores)"
            )
        return SubstitutionMatrix("".join(matrix.alphabet), matrix)
    if isinstance(matrix, str) and not os.path.exists(matrix):
        try:
            return SubstitutionMatrix.published(matrix)
        except ImportError:
            from structsvm.datasets import fetch_substitution_matrix

            return fetch_substitution_matrix(matrix)
    return SubstitutionMatrix.read(matrix)


def log_odds_matrix(
    y: Iterable[GappedRows], *, alphabet: str = "protein", pseudocount: float = 1.0, symmetric: bool = True
) -> SubstitutionMatrix:
    """The substitution matrix of the generative model (Tsochantaridis and others 2004, section 5.4).

    ``log P(a, b) / (P(a) P(b))``, with the pairs of letters counted in alignments, every count increased by
    `pseudocount` (Laplace), and the letters' probabilities the margins of the pairs'.

    Parameters
    ----------
    y : list of (str, str)
        Gapped rows; columns with a lower-case letter are left out.
    alphabet : see `LetterEncoder`
    pseudocount : float
    symmetric : bool
        Count each pair in both orders.

    Returns
    -------
    SubstitutionMatrix
        In nats. The paper uses it with linear gaps of -0.2.
    """
    encoder = LetterEncoder(alphabet)
    size = len(encoder.letters)
    counts = np.full((size, size), float(pseudocount))
    for k, rows in enumerate(in_upper(y)):
        try:
            x, z, operations = split_rows(*as_rows(rows))
            a, b = (encoder.encode(string)[:, 0] for string in (x, z))
        except ValueError as error:
            raise ValueError(f"y, example {k}: {error}") from None
        alignment = Alignment(0, 0, operations)
        pairs = alignment.pairs[alignment.assessed[alignment.codes == PAIR]]
        np.add.at(counts, (a[pairs[:, 0]], b[pairs[:, 1]]), 1.0)
    return log_odds(encoder.letters, counts, symmetric)


def log_odds(letters: str | tuple[Hashable, ...], counts: Floats, symmetric: bool) -> SubstitutionMatrix:
    """The matrix ``log P(a, b) / (P(a) P(b))`` of counts of pairs."""
    if symmetric:
        counts = counts + counts.T
    joint = counts / counts.sum()
    return SubstitutionMatrix(letters, np.log(joint / np.outer(joint.sum(axis=1), joint.sum(axis=0))))
