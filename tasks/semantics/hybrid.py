"""A semantic parser whose meanings are hybrid trees, learnt from bags by likelihood."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from math import isfinite
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm.dual.parallel import parallel_parts
from structsvm.oracles._hybrid import MOST_ARGUMENTS
from structsvm.oracles.hybrid import Derivation, HybridTrees, Lexicon, Sentence
from structsvm.oracles.meanings.order import ListOrder, Sorting, following, sorting
from structsvm.oracles.meanings.readings import TIMES, Form, Reading
from structsvm.oracles.meanings.types import is_key, key_of, spelt_types, types_of
from structsvm.oracles.meanings.words import Folded
from structsvm.solvers import LatentSVM, Solver
from structsvm.stored_values import Array, Flag, Names, OneOf, Record, Stored, Value
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import ArgumentOrder, Symbol, format_meaning, in_one_order, parse_meaning
from structsvm.tasks.common.calibration import check_evidence
from structsvm.tasks.common.inspection.inputs import are_sentences
from structsvm.tasks.common.inspection.weights import Contribution, Explanation, two_best
from structsvm.tasks.common.likelihood import LARGEST
from structsvm.tasks.common.selection.choice import Choice
from structsvm.tasks.common.selection.search import ENOUGH_EXAMPLES, Held, Search
from structsvm.tasks.common.solver import AUTO, SOLVERS, check_alone
from structsvm.tasks.semantics.bags import SETTINGS, BagModel, MeaningBags
from structsvm.tasks.semantics.growth import carried, same
from structsvm.tasks.semantics.likelihood import (
    LEARNERS,
    SLOWER,
    STEP,
    BagLikelihood,
    BagLikelihoodRun,
    HybridProblem,
    first_weights,
    hybrid_trees,
    warn_of_left_out,
)
from structsvm.tasks.semantics.numbering import from_file, size_in_files, stored_columns, to_file
from structsvm.tasks.semantics.parameters import LOSSES, Hybrid, Ospas, checked_features, method_of
from structsvm.tasks.semantics.trees import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sized

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Weights
    from structsvm.progress import Monitor
    from structsvm.structures.meaning_units import Type
    from structsvm.structures.meanings import Meaning
    from structsvm.tasks.common.selection.search import Part
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.semantics.bags import BagLike, SentenceLike
    from structsvm.tasks.semantics.features import Tokens
    from structsvm.tasks.semantics.parameters import Params

T = TypeVar("T", str, Sorting)

# Words of a sentence: the work of a chart grows with their cube.
MAX_WORDS = 500

# Meanings whose probability is looked at, those of the best derivations, in a search over so many partial ones.
CONSIDERED, MOST_PARTIAL = 4, 2000
# Ways to fill a slot are not followed if they are worth less than this to the best.
LEAST_WORTH = 1e-6

# C of named solvers of the dual; the best of 0.03 to 3 on a third of GeoQuery's training questions.
MARGIN_C = 3.0
# Numbers in files are smaller than this.
MOST_PLUS = 10**18
# Temperatures: the precision of their logarithm; no probability counts as less than this.
PRECISE, SURELY = 0.05, 1e-6


def looks_from(stored: Any) -> dict[int, list[str]]:
    """The looks of names in a header; ValueError for what they cannot be."""
    if not all(type(kind) is int and all(type(look) is str for look in own) for kind, *own in stored):
        raise ValueError("looks of names that are none")
    return {kind: own for kind, *own in stored}


def readings_from(stored: Any) -> dict[int, dict[Form, Reading]]:
    """Readings of numbers in a header; ValueError for what they cannot be."""
    found: dict[int, dict[Form, Reading]] = {}
    for kind, before, n_digits, between, after, times, plus in stored:
        are_numbers = all(type(n) is int for n in (kind, n_digits, times, plus)) and abs(plus) < MOST_PLUS
        if not (are_numbers and all(type(text) is str for text in (before, between, after))):
            raise ValueError("readings of numbers that are none")
        found.setdefault(kind, {})[Form(before, n_digits, between, after)] = Reading(times, plus)
    if not all(reading.times in TIMES for own in found.values() for reading in own.values()):
        raise ValueError("readings of numbers with other factors")
    return found


def no_marks(stored: Any) -> None:
    """Refuse marks of types in a header, which say less than how sentences spell names."""
    raise ValueError("written by an earlier version, which stored types of names differently; train the model again")


def types_in_file(meanings: Sequence[Meaning], spelt: Mapping[str, tuple[float, float]]) -> frozenset[Type]:
    """The types that names have by what a header counts; ValueError for counts of other types than meanings have."""
    counts = {key: pair for key, pair in spelt.items() if is_key(key)}
    if not counts.keys() <= {*map(key_of, types_of(meanings))} or any(n > n_all for n, n_all in counts.values()):
        raise ValueError("counts of names by types that are none")
    return spelt_types(counts)


def follows_from(stored: Any) -> dict[str, list[int]]:
    """How often the arguments of lists follow their words, in a header; ValueError for what it cannot be."""
    counts = {name: [*pair] for name, pair in stored.items()}
    if not all(len(pair) == 2 and all(type(n) is int and n >= 0 for n in pair) for pair in counts.values()):
        raise ValueError("orders of arguments that are none")
    return counts


def sorts_from(stored: Any) -> dict[Sorting, list[int]]:
    """How often arguments are sorted against the words, in a header; ValueError for what it cannot be."""
    counts = {(name, tuple(kind), key): [n, n_words] for name, kind, key, n, n_words in stored}
    are_texts = all(type(text) is str for name, kind, _ in counts for text in (name, *kind))
    if not are_texts or not all(type(n) is int and n >= 0 for (*_, key), own in counts.items() for n in (key, *own)):
        raise ValueError("sorted arguments that are none")
    return counts


def spelt_from(stored: Any) -> dict[str, tuple[float, float]]:
    """How often leaves are spelt out, in a header; ValueError for what it cannot be."""
    counts = {str(group): (float(n_written), float(n_met)) for group, (n_written, n_met) in stored.items()}
    if not all(isfinite(n) and n >= 0.0 for n in chain.from_iterable(counts.values())):
        raise ValueError("counts of spelt leaves that are none")
    return counts


RECORD = Record({
    "method": OneOf((Hybrid.name,)),
    **SETTINGS,
    "meanings": Names(of=lambda model: map(format_meaning, model.meanings)),
    "lexicon": Value(dict, of="settings.lexicon", null=True),
    "features": Names(of="settings.features"),
    "calls": Value(dict, of="hybrid.lexicon.calls"),
    "always": Value(list, of="hybrid.lexicon.always"),
    "new": Value(list, of="hybrid.lexicon.new"),
    "looks": Value(
        looks_from,
        lambda looks: [[kind, *own] for kind, own in sorted(looks.items())],
        needed=False,
        of=lambda model: model.hybrid.lexicon.looks or None,
    ),
    "readings": Value(
        readings_from,
        lambda readings: [[kind, *form, *own[form]] for kind, own in sorted(readings.items()) for form in sorted(own)],
        needed=False,
        of=lambda model: model.hybrid.lexicon.readings or None,
    ),
    "opened": Names(needed=False, of=lambda model: sorted(model.hybrid.units.opened) or None),
    "terms": Names(needed=False, of=lambda model: model.hybrid.units.fixed or None),
    "typed": Value(no_marks, needed=False, null=True, of=lambda model: None),
    "spelt": Value(
        spelt_from,
        lambda spelt: {group: [*counts] for group, counts in spelt.items()},
        needed=False,
        of=lambda model: model.hybrid.spelt or None,
    ),
    "follows": Value(follows_from, needed=False, of=lambda model: model.follows or None),
    "sorts": Value(
        sorts_from,
        lambda sorts: [[name, [*kind], key, *own] for (name, kind, key), own in sorts.items()],
        needed=False,
        of=lambda model: model.sorts or None,
    ),
    "shared": Flag(needed=False, of="hybrid.may_share"),
    "own_slots": Flag(needed=False, of=lambda model: model.hybrid.has_own_slots or None),
    "attributes": Names(of="hybrid.attributes"),
    "borders": Names(of="hybrid.borders"),
    "indices": Array(
        "i8",
        ("n_stored",),
        within=(0, "n_features"),
        once=True,
        name="features",
        of=lambda model: to_file(model.hybrid, model.weights)[0],
    ),
    "weights": Array("f8", ("n_stored",), of=lambda model: to_file(model.hybrid, model.weights)[1]),
})  # fmt: skip


class HybridModel(BagModel, method=Hybrid.name):
    """Units, lexicon, features and their weights.

    Attributes
    ----------
    hybrid : HybridTrees
    meanings : list of trees
        Those of training, from which the units are read.
    follows : dict
        From a list to how often two of its arguments stand as their words do in training, and how often not.
    sorts : dict
        From a kind of arguments to how often they are sorted in training where their words are not, and how often not.
    """

    record = RECORD
    has_temperature = True
    fixed = ("lowercase", "lexicon", "features")
    followed = ("lexicon", "features", "abstain_below", "executor")
    weights: Any = None
    hybrid: HybridTrees
    meanings: list[Meaning]
    follows: dict[str, list[int]]
    sorts: dict[Sorting, list[int]]
    _order: ArgumentOrder
    _list_order: ListOrder

    def __init__(self, params: Params) -> None:
        super().__init__()
        self.follow(params)

    # ---- training -------------------------------------------------------------------------------

    def checked_trees(self, trees: Iterable[Meaning], place: str) -> list[Meaning]:
        trees = list(dict.fromkeys(trees))
        waiting = [*trees]
        while waiting:
            node = waiting.pop()
            if not isinstance(node, str):
                if len(node) - 1 > MOST_ARGUMENTS:
                    raise ValueError(f"{place}: {node[0]} has {len(node) - 1} arguments, more than {MOST_ARGUMENTS}")
                waiting += node[1:]
        return trees

    def bind(self, examples: MeaningBags, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        tokens, bags, weight = examples.sentences, examples.bags, examples.weight
        check_lengths(tokens)
        self._check_grammar(bags)
        meanings = list(chain.from_iterable(bags))
        if not self.is_trained:
            self.meanings = list(dict.fromkeys(meanings))
            options = None, self._phrases(), self.settings.features
            self.hybrid = hybrid_trees(tokens, bags, self.grammar, self.meanings, *options)
        else:
            self._meet(tokens, bags, list(dict.fromkeys([*self.meanings, *meanings])))
        self._learn_order(tokens, bags)
        if solver.needs == HybridProblem.offers:
            return HybridProblem(self.hybrid, tokens, bags), weight
        if not self.is_trained:
            self.weights = first_weights(self.hybrid, tokens, bags)
        self.hybrid.loss_name = method_of(self.params["method"]).loss
        return margin_problem(self.hybrid, tokens, bags, self.weights, solver, weight)

    def _learn_order(self, tokens: Sequence[Tokens], bags: Sequence[Sequence[Meaning]]) -> None:
        """Count in which order arguments stand, also of sentences before."""
        sentences = [[token[0] for token in sentence] for sentence in tokens]
        seen = self.hybrid.lexicon, sentences, bags, self.hybrid.lists
        self.follows = added(self.follows if self.is_trained else {}, following(*seen))
        self.sorts = added(self.sorts if self.is_trained else {}, sorting(*seen))
        self._set_order()

    def _set_order(self) -> None:
        lists = self.hybrid.lists
        free = () if self.grammar is None else self.grammar.any_order
        self._order = ArgumentOrder(self.meanings, but=lists, free=free, against_words=self.sorts)
        self._list_order = ListOrder(self.meanings, lists, self.follows)

    def in_order(self, meaning: Meaning) -> Meaning:
        """The same meaning with arguments in the order of training, where they may stand in any."""
        return self._order.sorted(self._list_order.sorted(meaning))

    def in_one_order(self, meaning: Meaning) -> Meaning:
        """Equal for meanings that differ in the order of arguments which may stand in any."""
        return in_one_order(self._order.sorted(meaning), self.hybrid.lists)

    def settle(self, job: Job[MeaningBags]) -> None:
        """A solver object has its own C."""
        job.choose = job.choose and isinstance(method_of(self.params["method"]).solver, str)

    def adapted(self, solver: Any, examples: MeaningBags) -> Solver:
        """Derivations are hidden: a solver of the dual completes them."""
        return solver if solver.completes else LatentSVM(solver)

    def prior(self, examples: MeaningBags) -> Floats:
        """The weights that binding to a margin has set."""
        return self.weights

    def finish(self, job: Job[MeaningBags]) -> None:
        self.temperature = None
        if isinstance(job.run, BagLikelihoodRun):
            job.run.warn_of_left_out()

    def _phrases(self) -> dict[tuple[str, ...], Meaning]:
        """The lexicon: from the words of phrases to leaves; ValueError, naming the phrase, for anything else."""
        found: dict[tuple[str, ...], Meaning] = {}
        for phrase, text in (self.settings.lexicon or {}).items():
            if not (isinstance(phrase, str) and isinstance(text, str) and phrase.split()):
                raise ValueError(
                    f"the lexicon must be from phrases to texts of names, got {phrase!r:.80}: {text!r:.80}"
                )
            try:
                tree = parse_meaning(text)
            except ValueError as error:
                raise ValueError(f"the lexicon, for {phrase!r:.80}: {error}") from None
            words = tuple(map(Folded if self.settings.lowercase else str, phrase.split()))
            if found.setdefault(words, tree) != tree:
                raise ValueError(
                    f"the lexicon says {format_meaning(found[words]):.80} and {text!r:.80} for {phrase!r:.80}, which "
                    "are the same words to it"
                )
        return found

    def _check_grammar(self, bags: Iterable[Sequence[Meaning]]) -> None:
        """ValueError for a grammar that accepts none of the meanings of a bag: it could never be predicted."""
        if self.grammar is None:
            return
        for i, trees in enumerate(bags):
            if not any(map(self.grammar.accepts, trees)):
                raise ValueError(
                    f"sentence {i}: the grammar accepts no meaning of its bag, as {format_meaning(trees[0]):.200}"
                )

    def _meet(self, tokens: Sequence[Tokens], bags: Sequence[Sequence[Meaning]], meanings: list[Meaning]) -> None:
        """Take in the units and words of more sentences; `meanings` are those of all so far."""
        old, options = self.hybrid, (self.hybrid, self._phrases(), self.settings.features)
        new = hybrid_trees(tokens, bags, self.grammar, meanings, *options)
        self.meanings = meanings
        if same(old, new):
            self.hybrid = old.with_spelt(new.spelt)
        else:
            self.weights = carried(old, self.weights, new, first_weights(new, tokens, bags))
            self.hybrid = new

    # ---- the length of steps --------------------------------------------------------------------

    def search_of_loss(self, examples: MeaningBags, solver: Solver) -> StepSearch:
        return StepSearch(self, examples, solver)

    def held_out_scores(self, examples: MeaningBags) -> Held:
        bags = examples.bags
        found = [{self.in_one_order(d.meaning) for d, _ in best} for best in self.kbest(examples.sentences, 1)]
        in_bags = [not best.isdisjoint(map(self.in_one_order, bag)) for best, bag in zip(found, bags, strict=True)]
        return Held("share in bags", np.array(in_bags, dtype=float), np.ones(len(bags)))

    def scale(self, examples: MeaningBags) -> float:
        """Steps are as long whatever the data."""
        return 1.0

    def adopt(self, part: Part) -> None:
        self.hybrid, self.meanings = part.model.hybrid, part.model.meanings
        self.follows, self.sorts = part.model.follows, part.model.sorts
        self._set_order()

    # ---- probabilities --------------------------------------------------------------------------

    def calibrate(self, X: Sequence[SentenceLike], y: Sequence[BagLike]) -> None:
        """Fit the temperature to sentences and bags that the model was not trained on."""
        from scipy.optimize import minimize_scalar

        examples = self.read(X, y)
        tokens = examples.sentences
        check_evidence(any(self.kbest(tokens, 1)))
        bags = [{*map(self.in_one_order, bag)} for bag in examples.bags]

        def loss(log_temperature: float) -> float:
            """Minus the logs of how probable it was that what is predicted is in the bag, or that it is not."""
            self.temperature = float(np.exp(log_temperature))
            total = 0.0
            for best, bag in zip(self.kbest(tokens, 1), bags, strict=True):
                is_right = bool(best) and self.in_one_order(best[0][0].meaning) in bag
                p = (best[0][1] if is_right else 1.0 - best[0][1]) if best else 0.0
                total -= np.log(max(p, SURELY))
            return total

        found = minimize_scalar(loss, bounds=(-LARGEST, LARGEST), method="bounded", options={"xatol": PRECISE})
        self.temperature = float(np.exp(found.x))

    @property
    def probable_weights(self) -> NDArray[np.float64]:
        """The weights over the temperature."""
        return self.weights if self.temperature is None else self.weights / self.temperature

    # ---- prediction -----------------------------------------------------------------------------

    def accepts(self, meaning: Meaning) -> bool:
        """Whether a meaning, in order, is one of the grammar, and can be run."""
        meaning = self.in_order(meaning)
        if self.grammar is not None and not self.grammar.accepts(meaning):
            return False
        executor = self.settings.executor
        return executor is None or bool(executor(format_meaning(meaning)))

    def kbest(self, tokens: Sequence[Tokens], k: int, n_jobs: int = 1) -> list[list[tuple[Derivation, float]]]:
        """For each sentence at most k meanings with their probabilities, the most probable first."""
        check_lengths(tokens)
        weights = self.probable_weights

        def of_part(a: int, b: int) -> list[list[tuple[Derivation, float]]]:
            found = (self._found([token[0] for token in sentence], k, weights) for sentence in tokens[a:b])
            return [*map(self._in_order, found)]

        return parallel_parts(of_part, len(tokens), n_jobs)

    def _found(self, words: list[str], k: int, weights: NDArray[np.float64]) -> list[tuple[Derivation, float]]:
        """The k most probable meanings, arguments in any order, of a sentence that has a known word."""
        if not any(f"w:{word}" in self.hybrid.attributes for word in words):
            return []
        search: Any = {"considered": max(k, CONSIDERED), "most": max(MOST_PARTIAL, 200 * k), "least": LEAST_WORTH}
        return self.hybrid.kbest(words, weights, k, accepts=self.accepts, **search)

    def _in_order(self, found: list[tuple[Derivation, float]]) -> list[tuple[Derivation, float]]:
        """Meanings with their arguments in order; those that become equal are added up."""
        first: dict[Meaning, Derivation] = {}
        total: dict[Meaning, float] = defaultdict(float)
        for derivation, p in found:
            meaning = self.in_order(derivation.meaning)
            first.setdefault(meaning, derivation._replace(meaning=meaning))
            total[meaning] += p
        return sorted([(first[meaning], p) for meaning, p in total.items()], key=lambda pair: -pair[1])

    def best(self, tokens: Sequence[Tokens], n_jobs: int = 1) -> list[tuple[Derivation, float] | None]:
        """The most probable meaning of each sentence, None where none is probable enough."""
        least = self.settings.abstain_below or 0.0
        return [found[0] if found and found[0][1] >= least else None for found in self.kbest(tokens, 1, n_jobs)]

    def parse(self, tokens: Sequence[Tokens], n_jobs: int = 1) -> list[list[Meaning]]:
        """The meaning of each sentence, as a list with a tree or none."""
        return [[] if found is None else [found[0].meaning] for found in self.best(tokens, n_jobs)]

    def align(self, tokens: Sequence[Tokens]) -> list[list[Symbol]]:
        """The symbol of the unit that each word belongs to, of each sentence: a list of lists."""
        out = []
        for sentence, found in zip(tokens, self.best(tokens), strict=True):
            symbols = [EMPTY] * len(sentence)
            for name, _, words in found[0].nodes if found is not None else ():
                for t in words:
                    symbols[t] = Symbol(name, None)
            out.append(symbols)
        return out

    def holds_several(self, x: object) -> bool:
        return are_sentences(x)

    def knows(self, words: Sequence[str]) -> bool:
        return not words or any(f"w:{word}" in self.hybrid.attributes for word in words)

    def explain(self, x: SentenceLike) -> Explanation:
        words = [token[0] for token in self.tokens_of([x])[0]]
        check_lengths([words])
        weights = self.probable_weights
        found = self._found(words, CONSIDERED, weights)
        orders = defaultdict(list)  # meaning -> the orders of its arguments that were found
        for derivation, _ in found:
            orders[self.in_order(derivation.meaning)].append(derivation.meaning)
        alone = f"the sentence has {len(orders)} meanings, and two are compared"
        best, other = (derivation.meaning for derivation, _ in two_best(self._in_order(found), alone))
        (high, first), (low, second) = (self.hybrid.expect(words, weights, orders[key]) for key in (best, other))
        values = (first - second) * weights
        parts = [Contribution(*self.hybrid.feature_name(k), float(values[k])) for k in np.flatnonzero(values).tolist()]
        parts.append(Contribution("derivations", "", high - low - float(values.sum())))
        return Explanation.of(format_meaning(best), format_meaning(other), parts)

    # ---- model files ----------------------------------------------------------------------------

    def stored_method(self) -> str | Hybrid | Ospas:
        """The method without its lexicon, which stands elsewhere in the file."""
        method = super().stored_method()
        return method.set_params(lexicon=None) if isinstance(method, Hybrid) else method

    def restored_params(self, params: dict[str, object]) -> dict[str, object]:
        if isinstance(params["method"], Hybrid):
            params["method"].set_params(lexicon=self.settings.lexicon)
        return super().restored_params(params)

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        features = checked_features(stored.features)
        stored.params.method.set_params(lexicon=stored.lexicon, features=features)
        model = cls(SimpleNamespace(**stored.params, grammar=None))
        model.grammar = stored.grammar
        model.meanings = model.checked_trees(map(parse_meaning, stored.meanings), "its meanings")
        typed = types_in_file(model.meanings, stored.spelt or {})
        units = MeaningUnits(model.meanings, model.grammar, stored.opened or (), stored.terms or (), typed)
        for leaves in [stored.always, *stored.calls.values()]:
            if not all(type(u) is int and 0 <= u < len(units.units) and not units.units[u].n_slots for u in leaves):
                raise ValueError("a leaf of the lexicon that is none")
        if not (all(type(kind) is int for kind in stored.new) and units.members.keys() >= {*stored.new}):
            raise ValueError("a kind of names that is none")
        looks = stored.looks or {}
        if not looks.keys() <= {*stored.new}:
            raise ValueError("looks of a kind of names that is none")
        if not units.members.keys() >= (stored.readings or {}).keys():
            raise ValueError("readings of a kind of names that is none")
        lexicon = Lexicon(units, stored.calls, stored.always, {*stored.new}, model._phrases(), looks, stored.readings)
        attributes, borders, inside = stored.attributes, stored.borders, "inside" in features
        found = stored.arrays(n_features=size_in_files(units, attributes, len(borders), inside=inside))
        columns = stored_columns(units, len(attributes), found["features"])
        options: Any = {"inside": inside, "columns": columns, "shared": bool(stored.shared), "spelt": stored.spelt}
        options["by_name"] = not stored.own_slots
        model.hybrid = HybridTrees(units, lexicon, attributes, borders, **options)
        model.follows, model.sorts = stored.follows or {}, stored.sorts or {}
        model._set_order()
        model.weights = from_file(model.hybrid, found["features"], found["weights"])
        return model


def added(before: Mapping[T, Sequence[int]], found: Mapping[T, Sequence[int]]) -> dict[T, list[int]]:
    """Pairs of counts, by what is counted."""
    total = defaultdict[T, list[int]](lambda: [0, 0])
    for key, own in chain(before.items(), found.items()):
        total[key] = [a + b for a, b in zip(total[key], own, strict=True)]
    return dict(sorted(total.items()))


class StepSearch(Search):
    """The choice of the length of steps, for a first training on many sentences whose bags hold several meanings."""

    def __init__(self, model: HybridModel, examples: MeaningBags, solver: Solver) -> None:
        super().__init__(model, examples, solver, (STEP, SLOWER))
        self.solver.set_params(max_iter=solver.max_iter)

    def choose(self, monitor: Monitor) -> Choice | None:
        """The steps by which more held-out sentences are predicted a meaning of their bag; of equal ones the usual."""
        bags = self.examples.bags
        is_first = type(self.solver) is BagLikelihood and not self.model.is_trained
        if is_first and len(bags) >= ENOUGH_EXAMPLES and any(len(bag) > 1 for bag in bags):
            return super().choose(monitor)
        return None

    def choice_of(self, C: float) -> Choice:
        scores = {row[0]: row[1] for row in self.table}
        return super().choice_of(STEP if scores[STEP] == scores[C] else C)


def make_learner(params: Params) -> Solver:
    """The solver of hybrid trees that parameters, read as attributes, ask for."""
    named = {name: getattr(params, name) for name in ("C", "max_iter", "random_state", "checkpoint")}
    given = {name: value for name, value in named.items() if value not in (None, AUTO)}
    method = method_of(params.method)
    if method.solver in LEARNERS:
        if method.loss != LOSSES[0]:
            raise ValueError(f"The 'loss' parameter belongs to solvers of the dual. Got {method.loss!r:.80}.")
        return LEARNERS[method.solver](**given)
    if isinstance(method.solver, Solver):
        check_alone(method.solver, given)
        if method.solver.inner.is_likelihood:
            raise ValueError(f"The log loss of hybrid trees is solver='likelihood'. Got {method.solver!r:.80}.")
        return method.solver
    usual = {"C": MARGIN_C, "max_iter": 1, "n_jobs": params.n_jobs}
    return LatentSVM(SOLVERS[method.solver](**usual | given))


def margin_problem(
    hybrid: HybridTrees,
    tokens: Sequence[Tokens],
    bags: Sequence[Sequence[Meaning]],
    weights: NDArray[np.float64],
    solver: Solver,
    sample_weight: Weights | None,
) -> tuple[BoundProblem, Weights | None]:
    """Sentences and bags as a problem for a solver of the dual, and the weight of each.

    In every second sentence words seen once are treated as unknown. Sentences that none of their meanings has a
    derivation over are left out.
    """
    likelihood = HybridProblem(hybrid, tokens, bags)
    rows = [
        i
        for i, (encoded, known) in enumerate(zip(likelihood.encoded, likelihood.known, strict=True))
        if hybrid.sums.log_sum(encoded, known, weights) > -np.inf
    ]
    warn_of_left_out(len(bags) - len(rows), len(bags))
    X = [Sentence([token[0] for token in tokens[i]], likelihood.once if i % 2 else frozenset()) for i in rows]
    hybrid.inference = "exact" if all(len(bag) == 1 for bag in bags) else "approximate"
    problem = hybrid.bind(X, [likelihood.priors[i] for i in rows], **solver.formulation())
    return problem, None if sample_weight is None else sample_weight[rows]


def check_lengths(sentences: Iterable[Sized]) -> None:
    """Raise ValueError for the first sentence of more than `MAX_WORDS` words."""
    for i, sentence in enumerate(sentences):
        if len(sentence) > MAX_WORDS:
            raise ValueError(f"sentence {i}: {len(sentence)} words, and a chart of hybrid trees takes {MAX_WORDS}")


def describe(derivation: Derivation, words: Sequence[str]) -> str:
    """A drawing: one unit per line, indented below the one whose argument it is, with its words beside it."""
    rows = [(f"{'  ' * depth}{name}", " ".join(words[t] for t in own)) for name, depth, own in derivation.nodes]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {own}".rstrip() for name, own in rows)
