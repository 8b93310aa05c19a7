"""The likelihood of bags of meanings, whose derivations are hidden, and stochastic steps that raise it.

    max_w  sum_i log p(bag_i | x_i) - PENALTY/2 |w - w0|^2,  p(bag | x) = sum over its meanings' derivations / over all

A meaning m counts 1 / pi(m) times in its bag, pi(m) being how often a bag holds it by chance: of the bags that hold m
and are about x, a share proportional to that means m. Without it what happens all the time explains everything.

A bag may lack the right meaning: where bags hold several, it is log(p + DOUBT) from the third pass on, once p tells
something; steps are p / (p + DOUBT) times as long.

It is not concave, and begins at w0: weights from co-occurrence (IBM model 1). The steps are those of AdaGrad; the
weights are the mean of all iterates, the t-th counted t times. In every second pass words seen once are taken for
unknown ones.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._problem import BoundProblem
from structsvm._warnings import AdviceWarning, warn
from structsvm.arrays import checksum
from structsvm.checkpoint import COUNTS, STATES, as_array
from structsvm.dual._weights import half_norm
from structsvm.oracles._hybrid import Learner
from structsvm.oracles.hybrid import (
    BEGIN,
    END,
    RARE,
    HybridTrees,
    Lexicon,
    border_attributes,
    encoded_words,
    word_attributes,
)
from structsvm.oracles.meanings.opened import spellings, spelt_out
from structsvm.oracles.meanings.types import spelt_types, type_spellings
from structsvm.parameters import COUNT, POSITIVE, Checkpoints, Seed, declared, parameter, seed_from
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.stored_values import Array
from structsvm.structures.meaning_units import MeaningUnits, fixed_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from structsvm.arrays import Floats, State, Weights
    from structsvm.oracles._hybrid import Forest
    from structsvm.oracles.meanings.lexicon import Copy
    from structsvm.oracles.meanings.opened import Spellings
    from structsvm.structures.meanings import Meaning, MeaningGrammar
    from structsvm.tasks.semantics.features import Tokens

    # A sentence in a pass: its attributes, and the forests of its bag and of all that it may mean.
    OfPass: TypeAlias = tuple[tuple[NDArray[np.int32], ...], Forest, Forest]

# Weights at the start: a word that says a unit, by the log of how much; a word that a unit is named with; an unknown
# word that is copied; a unit without words below others, and one in a span without words.
PRIOR, NAMED, COPIED, WORDLESS, EMPTY_SPAN = 0.2, 4.0, 2.0, -1.0, -2.0
# Parts of a relation's name (badPass: bad, pass): those of so many letters name it, and the words that begin alike.
PART, LETTERS, ALIKE = re.compile(r"[^\W\d_A-Z]+|[A-Z]+[^\W\d_A-Z]*"), 3, 4
# A name that may be written in two words.
TWO = re.compile(r"([^\W\d_]{2,})(\d+)")
# How probable it is of any bag that it lacks the right meaning, and the passes in which nothing is doubted.
DOUBT, SURE = 0.1, 2
# The longest step of a weight, roughly, and what is tried beside it; the weight of the penalty.
STEP, SLOWER, PENALTY = 0.2, 0.05, 1e-3
# The pace of the features of a unit and a word anywhere in the sentence.
PRESENT = 0.3
# Weight of what a meaning holds below its root: how much it counts that a bag would hold it by chance.
BELOW = 0.5
# Bytes of forests that passes share, roughly.
KEPT_BYTES = 2**28
KEPT_OF_FEATURES = ("weights", "squares", "sum", "start")
# Added to how often a slot is filled by each unit that may fill it.
FILLED = 0.5
# Passes of IBM model 1, and the probability of a pair that makes no difference.
IBM_PASSES, NEUTRAL_PROBABILITY = 8, 1e-3


# Optional features, with the prefixes of the names of their attributes; and the default ones.
FEATURES = {"affixes": ("p:", "s:"), "shape": ("h:",), "bigrams": ("l:", "r:"), "borders": (), "inside": ()}
USUAL = ("affixes", "bigrams", "borders")


def hybrid_trees(
    tokens: Sequence[Tokens],
    bags: Sequence[Sequence[Meaning]],
    grammar: MeaningGrammar | None,
    meanings: Iterable[Meaning],
    before: HybridTrees | None = None,
    phrases: Mapping[tuple[str, ...], Meaning] | None = None,
    features: Sequence[str] = USUAL,
) -> HybridTrees:
    """The units of `meanings`, which the bags hold, a lexicon and features; those of `before`, and more."""
    beginnings = tuple(chain.from_iterable(FEATURES[name] for name in features))
    meanings, sentences = list(meanings), [[token[0] for token in sentence] for sentence in tokens]
    units, in_bags, spelt = found_units(meanings, grammar, sentences, bags, before)
    of_words = {f"w:{word}": None for word in chain.from_iterable(sentences)}
    leaves = [number for number, unit in enumerate(units.units) if unit.n_slots == 0]
    of_words |= {f"w:{word}": None for leaf in leaves for word in units.tokens(leaf)}
    of_words[f"w:{RARE}"] = None
    n_seen: Counter[str] = Counter()
    of_borders: dict[str, None] = {}
    for sentence in sentences:
        around = [BEGIN, *sentence, END]
        for t in range(1, len(around) - 1):
            of_word = word_attributes(around, t, of_words, "shape" in features)[1:]
            n_seen.update(name for name in of_word if name.startswith(beginnings))
        for t in range(len(around) - 1 if "borders" in features else 0):
            of_borders |= dict.fromkeys(border_attributes(around[t], around[t + 1]))
    # A grammar has all names.
    lexicon = learnt_lexicon(units, sentences, in_bags, phrases, before, is_closed=grammar is not None)
    attributes = [*of_words, *(name for name, n in n_seen.items() if n > 1), *lexicon.listed]
    if before is not None:
        names = dict.fromkeys([*before.attributes, *attributes])
        attributes = sorted(names, key=lambda name: not name.startswith("w:"))
        of_borders = dict.fromkeys([*before.borders, *of_borders])
    known = {name: k for k, name in enumerate(attributes)}
    columns = columns_of_names(units, lexicon, known, sentences, bags, shapes="shape" in features)
    if before is not None:
        for number, of_name in before.columns_in(units, known).items():
            columns[number] |= of_name
    of_names = {number: sorted(of_name) for number, of_name in columns.items()}
    shared, by_name = (True, False) if before is None else (before.may_share, before.by_name)
    hybrid = HybridTrees(
        units,
        lexicon,
        attributes,
        [*of_borders],
        inside="inside" in features,
        columns=of_names,
        shared=shared,
        by_name=by_name,
        spelt=spelt,
    )
    hybrid.check_arguments()
    return hybrid


def learnt_lexicon(
    units: MeaningUnits,
    sentences: Sequence[Sequence[str]],
    in_bags: Sequence[Mapping[int, float]],
    phrases: Mapping[tuple[str, ...], Meaning] | None,
    before: HybridTrees | None,
    *,
    is_closed: bool,
) -> Lexicon:
    """A lexicon of sentences and the shares of units in their bags, and what was learnt before."""
    if before is None:
        return Lexicon.learn(units, sentences, in_bags, phrases, is_closed=is_closed)
    known = {name.removeprefix("w:") for name in before.attributes if name.startswith("w:")}
    looking = before.lexicon.looking_in(units)
    lexicon = Lexicon.learn(units, sentences, in_bags, phrases, is_closed=is_closed, looking=looking, known=known)
    return lexicon.with_those_of(before.lexicon, before.units)


def found_units(
    meanings: Sequence[Meaning],
    grammar: MeaningGrammar | None,
    sentences: Sequence[Sequence[str]],
    bags: Sequence[Sequence[Meaning]],
    before: HybridTrees | None = None,
) -> tuple[MeaningUnits, list[dict[int, float]], Spellings]:
    """Units of meanings, whose leaves are names also where sentences spell them out; and two things about the bags.

    They are the shares of the units in each bag, and how often sentences spell leaves out, and names without their
    types, those of `before` too.
    """
    known, counts = (None, None) if before is None else (before.units, before.spelt)
    opened, terms = () if known is None else known.opened, fixed_terms(meanings, known)
    of_types = type_spellings(meanings, sentences, bags, counts)
    typed = spelt_types(of_types)
    units = MeaningUnits(meanings, grammar, opened, terms, typed)
    in_bags = shares(units, bags)
    spelt = spellings(units, sentences, in_bags, counts) | of_types
    more = spelt_out(units, spelt)
    return MeaningUnits(meanings, grammar, units.opened | more, terms, typed) if more else units, in_bags, spelt


def columns_of_names(
    units: MeaningUnits,
    lexicon: Lexicon,
    known: Mapping[str, int],
    sentences: Sequence[Sequence[str]],
    bags: Sequence[Sequence[Meaning]],
    *,
    shapes: bool = False,
) -> dict[int, set[int]]:
    """Attributes of words that each name has features of: those of the sentences that may be about it, and its own."""
    found: dict[int, set[int]] = {u: {known[f"w:{RARE}"]} for u, kind in enumerate(units.kinds) if kind != u}
    own = words_of_units(units, lexicon, sentences)
    for number, of_name in found.items():
        of_name.update(known[f"w:{word}"] for word in own[number])
    for name, numbers in lexicon.listed.items():
        for number in numbers:
            if number in found:
                found[number].add(known[name])
    for words, trees in zip(sentences, bags, strict=True):
        met = lexicon.called(words).union(*[units.unit_ids(tree) for tree in trees])
        attributes = {*chain.from_iterable(encoded_words(words, known, lexicon, shapes=shapes))}
        for number in met & found.keys():
            found[number] |= attributes
    return found


def words_of_units(units: MeaningUnits, lexicon: Lexicon, sentences: Sequence[Sequence[str]]) -> Mapping[int, set[str]]:
    """Words of some sentences that units are named with."""
    words = {*chain.from_iterable(sentences)}
    beginnings = defaultdict(list)
    for word in words:
        beginnings[word[:ALIKE]].append(word)
    found = lexicon.spelt(sentences)
    for number, unit in enumerate(units.units):
        if unit.n_slots == 0:
            found[number].update(own := units.tokens(number))
            for pieces in filter(None, map(TWO.fullmatch, own)):
                found[number].update(pieces.groups() if words >= {*pieces.groups()} else ())
        else:
            parts = [part.casefold()[:ALIKE] for part in PART.findall(unit.name) if len(part) >= LETTERS]
            found[number].update(chain.from_iterable(beginnings[part] for part in parts))
    return found


def shares(units: MeaningUnits, bags: Iterable[Sequence[Meaning]]) -> list[dict[int, float]]:
    """For each bag, the share of its meanings that have each unit."""
    out = []
    for trees in bags:
        share: dict[int, float] = defaultdict(float)
        for tree in trees:
            for unit in dict.fromkeys(units.unit_ids(tree)):
                share[unit] += 1 / len(trees)
        out.append(share)
    return out


def rarities(units: MeaningUnits, bags: Sequence[Sequence[Meaning]]) -> list[dict[Meaning, float]]:
    """Rarity of each meaning of each bag: minus the log of how often a bag holds it by chance; 0 for the bag's rarest.

    A bag holds the unit at its root as often as in all bags, and that each slot holds what fills it, as often as in
    all meanings; units below the root come together, and count `BELOW` each.
    """
    n_bags: Counter[int] = Counter()
    seen: Counter[tuple[int, int]] = Counter()
    filled: Counter[int] = Counter()
    pairs = {tree: [*units.pairs_of(tree)] for tree in dict.fromkeys(chain.from_iterable(bags))}
    for trees in bags:
        n_bags.update({pairs[tree][0][1] for tree in trees})
        for pair in chain.from_iterable(pairs[tree][1:] for tree in trees):
            seen[pair] += 1
            filled[pair[0]] += 1
    log = {pair: float(np.log(n / filled[pair[0]])) for pair, n in seen.items()}
    rarity = {
        tree: -float(np.log(n_bags[root])) - BELOW * sum(log[pair] for pair in below)
        for tree, ((_, root), *below) in pairs.items()
    }
    most = [max(rarity[tree] for tree in trees) for trees in bags]
    return [{tree: rarity[tree] - top for tree in trees} for trees, top in zip(bags, most, strict=True)]


def said_by(
    units: MeaningUnits, sentences: Sequence[Sequence[int]], bags: Sequence[Sequence[Meaning]], n_words: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Units, words and how much one says the other, of pairs that go together: IBM model 1.

    Each word is said by one of its bag's units. What it says is the log of the probability that a word is that unit's,
    over `NEUTRAL_PROBABILITY`, and at least 0. Pairs that never go together count 1e-9.
    """
    keys: list[NDArray[np.int64]] = []
    places: list[NDArray[np.int64]] = []
    weights: list[NDArray[np.float64]] = []
    n_places = 0
    for of_words, share in zip(sentences, shares(units, bags), strict=True):
        of_units, weight = np.array([*share]), np.array([*share.values()])
        keys.append((of_units[:, None] * n_words + np.asarray(of_words)).ravel())
        places.append(np.tile(np.arange(n_places, n_places + len(of_words)), len(of_units)))
        weights.append(np.repeat(weight, len(of_words)))
        n_places += len(of_words)
    pairs, pair = np.unique(np.concatenate(keys), return_inverse=True)
    place, weight = np.concatenate(places), np.concatenate(weights)
    unit, word = np.divmod(pairs, n_words)
    others = 1e-9 * (n_words - np.bincount(unit)), 1e-9 * (len(units.units) - np.bincount(word))
    p: NDArray[np.float64] = np.ones(len(pairs))
    count = p
    for _ in range(IBM_PASSES):
        posterior = p[pair] * weight
        posterior /= np.bincount(place, posterior)[place]
        count = 1e-9 + np.bincount(pair, posterior).astype(np.float64, copy=False)
        p = count / (np.bincount(unit, count) + others[0])[unit]
    of_word = count / (np.bincount(word, count) + others[1])[word]
    return unit, word, np.log(np.maximum(of_word, NEUTRAL_PROBABILITY) / NEUTRAL_PROBABILITY)


def filled_as(hybrid: HybridTrees, bags: Sequence[Sequence[Meaning]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of a slot and what may fill it, each once, and the log of how much more often than all others it does.

    As often as all others is 0; each pair counts `FILLED` times more than in the bags, whose meanings share in one.
    """
    units, n_rows = hybrid.units, hybrid.layout.n_rows
    n_met: dict[int, float] = defaultdict(float)
    for trees in bags:
        for pair in chain.from_iterable(map(units.pairs_of, trees)):
            n_met[hybrid.pair(*pair)] += 1 / len(trees)
    pairs = np.unique([hybrid.pair(slot, unit) for slot, fillers in units.fillers.items() for unit in fillers])
    counts = np.array([n_met.get(pair, 0.0) for pair in pairs.tolist()]) + FILLED
    slots = pairs // n_rows
    mean = np.bincount(slots, counts) / np.maximum(np.bincount(slots), 1)
    return pairs, np.log(counts / mean[slots])


def first_weights(
    hybrid: HybridTrees, tokens: Sequence[Tokens], bags: Sequence[Sequence[Meaning]]
) -> NDArray[np.float64]:
    """Weights from how words and units go together, from words that units are named with, and from what fills slots."""
    units, layout = hybrid.units, hybrid.layout
    sentences = [[token[0] for token in sentence] for sentence in tokens]
    words = {word: k for k, word in enumerate(dict.fromkeys(chain.from_iterable(sentences)))}
    w = np.zeros(layout.n_features)

    def add(numbers: ArrayLike, of_words: ArrayLike, values: ArrayLike) -> None:
        """Add to the weights of units and attributes of words that there are, no pair twice."""
        features = hybrid.word_features(numbers, of_words)
        w[features[features >= 0]] += np.broadcast_to(values, features.shape)[features >= 0]

    columns = np.array([hybrid.attributes[f"w:{word}"] for word in words])
    of_units, of_words, says = said_by(
        units, [[words[word] for word in sentence] for sentence in sentences], bags, len(words)
    )
    add(of_units, columns[of_words], PRIOR * says)
    named = words_of_units(units, hybrid.lexicon, sentences)
    for number, of_unit in named.items():
        add(number, [hybrid.attributes[f"w:{word}"] for word in of_unit], NAMED)
    for name, rows in hybrid.lexicon.listed.items():
        add(rows, hybrid.attributes[name], NAMED)
    unknown = hybrid.attributes[f"w:{RARE}"]
    for kind in hybrid.lexicon.new:
        add(kind, unknown, COPIED)
        add([u for u, own in enumerate(units.kinds) if own == kind], unknown, -COPIED)
    # A unit without words is one of those that may stand there: sums over what may be left unsaid stay in range.
    others, kind_of = np.ones(layout.n_rows), layout.rows[units.kinds]
    for fillers in units.fillers.values():
        kinds = np.unique(kind_of[fillers])
        others[kinds] = np.maximum(others[kinds], len(kinds))
    w[layout.wordless : layout.empty] = WORDLESS - np.log(others)
    w[layout.empty : layout.order] = EMPTY_SPAN - np.log(others)
    pairs, values = filled_as(hybrid, bags)
    w[layout.pair + pairs] = values
    return w


def paces(hybrid: HybridTrees) -> NDArray[np.float64]:
    """A factor on the length of the steps of each feature."""
    layout = hybrid.layout
    pace = np.ones(layout.n_features)
    pace[layout.present : layout.name] = PRESENT
    return pace


class HybridProblem(BoundProblem):
    """Sentences with their bags of meanings, encoded for the charts."""

    offers = frozenset({"meanings in bags"})
    formulation = {"rescaling": None, "penalty": "linear"}

    def __init__(self, hybrid: HybridTrees, tokens: Sequence[Tokens], bags: Sequence[Sequence[Meaning]]) -> None:
        super().__init__(len(tokens), hybrid.n_features, inference="approximate")
        sentences = [[token[0] for token in sentence] for sentence in tokens]
        bags = [hybrid.as_said(words, trees) for words, trees in zip(sentences, bags, strict=True)]
        self.hybrid, self.tokens, self.bags = hybrid, tokens, bags
        self.doubt = DOUBT if any(len(trees) > 1 for trees in bags) else 0.0
        units = hybrid.units
        leaves = {u for u, unit in enumerate(units.units) if unit.n_slots == 0}
        n_words = Counter(chain.from_iterable(sentences))
        once = self.once = frozenset(word for word, n in n_words.items() if n == 1)
        self.encoded = [hybrid.encode(words) for words in sentences]
        self.less_known = [hybrid.encode(words, once) for words in sentences]
        # Units that the words seen once may be, if they were not known.
        self.copies = [hybrid.copies(words, once & set(words)) for words in sentences]
        # Names with a look are always copied.
        self.looking = [hybrid.copies(words) if hybrid.lexicon.looks else [] for words in sentences]
        self.priors = rarities(units, bags)
        self._kept: dict[tuple[int, bool], OfPass] = {}
        self._most_kept = KEPT_BYTES // hybrid.bytes_of_forest
        self.known = [self._known(i, copies) for i, copies in enumerate(self.looking)]
        self.leaves = [
            frozenset(hybrid.lexicon.called(words) | (leaves & set(forest.units.tolist())))
            for words, forest in zip(sentences, self.known, strict=True)
        ]

    def of_pass(self, i: int, k: int) -> OfPass:
        """Sentence i in the k-th pass: its attributes, the forests of its bag and of all that it may mean."""
        is_less_known = k % 2 == 1
        found = self._kept.get((i, is_less_known))
        if found is None:
            found = self._of_pass(i, is_less_known)
            if len(self._kept) < self._most_kept:
                self._kept[i, is_less_known] = found
        return found

    def _of_pass(self, i: int, is_less_known: bool) -> OfPass:
        if not is_less_known:
            copies = self.looking[i]
            return self.encoded[i], self.known[i], self.hybrid.free(self.leaves[i] - self.hybrid.hidden(copies), copies)
        copies = self.copies[i]
        known = self._known(i, copies) if copies else self.known[i]
        return self.less_known[i], known, self.hybrid.free(self.leaves[i] - self.hybrid.hidden(copies), copies)

    def _known(self, i: int, copies: Sequence[Copy]) -> Forest:
        return self.hybrid.known(self.bags[i], copies, self.priors[i], self.hybrid.hidden(copies))

    def structure_fingerprint(self) -> int:
        """A checksum of units and features."""
        hybrid = self.hybrid
        names = hybrid.units.units, [*hybrid.attributes], [*hybrid.borders]
        return checksum([as_array(repr(names)), hybrid.layout.name_ptr, hybrid.layout.name_columns])

    def fingerprint(self) -> int:
        """A checksum of the sentences and the bags."""
        return checksum([as_array(repr((self.tokens, self.bags)))])


STATES["bag likelihood"] = dict.fromkeys(KEPT_OF_FEATURES, Array("f8", ("n_kept",))) | {
    "features": Array("i8", ("n_kept",), within=COUNTS),
    "counters": Array("i8", (3,), within=COUNTS),
}


class LikelihoodState:
    """Weights and what AdaGrad keeps of its steps."""

    kind = "bag likelihood"

    def __init__(self, weights: NDArray[np.float64], penalty: float, paces: NDArray[np.float64]) -> None:
        self.learner = Learner(weights, penalty, paces)
        self.n_argmax = 0
        self.n_left_out = 0

    def get_state(self) -> State:
        learner = self.learner
        features = np.flatnonzero((learner.squares > 0.0) | (learner.start != 0.0))
        arrays = {name: getattr(learner, name)[features] for name in KEPT_OF_FEATURES}
        counters = np.array([learner.n_steps, self.n_argmax, self.n_left_out])
        return arrays | {"features": features, "counters": counters}

    def set_state(self, arrays: State, *, adapt: bool = False) -> None:
        learner = self.learner
        features = arrays["features"]
        if not within(features, len(learner.weights)):
            raise ValueError("array 'features' of the training state must be indices of features, ascending")
        for name in KEPT_OF_FEATURES:
            getattr(learner, name)[:] = 0.0
            getattr(learner, name)[features] = arrays[name]
        learner.n_steps, self.n_argmax, self.n_left_out = arrays["counters"].tolist()


def within(features: NDArray[np.int64], n_features: int) -> bool:
    """Whether indices ascend, up to the last feature at most."""
    return not len(features) or bool(features[-1] < n_features and (np.diff(features) > 0).all())


class LikelihoodSchedule:
    """One step per sentence, in an order that a pass draws."""

    def __init__(
        self, problem: HybridProblem, state: LikelihoodState, solver: BagLikelihood, weight: Weights | None, seed: int
    ) -> None:
        self.problem, self.state, self.solver, self.weight, self.seed = problem, state, solver, weight, seed
        self.n_samples = problem.n_samples
        self.next = self.n_samples
        self.n_passes = 0
        self.loss = 0.0

    def start_pass(self, n_before: int = 0) -> None:
        self.order = np.random.default_rng([self.seed, self.n_passes]).permutation(self.n_samples)
        self.next, self.loss = 0, 0.0

    def run(self, seconds: float) -> bool:
        end, state, problem = time.perf_counter() + seconds, self.state, self.problem
        doubt = problem.doubt if self.n_passes >= SURE else 0.0
        while self.next < self.n_samples:
            i = int(self.order[self.next])
            weight = 1.0 if self.weight is None else float(self.weight[i])
            if weight > 0.0:
                learnt = self.solver.step(problem, problem.of_pass(i, self.n_passes), state.learner, weight, doubt)
                state.n_argmax += 2
                if learnt == -np.inf:
                    state.n_left_out += 1
                else:
                    self.loss -= weight * learnt
            self.next += 1
            if time.perf_counter() > end and self.next < self.n_samples:
                return False
        self.n_passes += 1
        return True

    def get_state(self) -> NDArray[np.float64]:
        return np.array([self.n_passes, self.seed], dtype=np.float64)

    def set_state(self, numbers: Floats) -> None:
        if len(numbers) != 2 or max(numbers) >= 2.0**53:
            raise ValueError("array 'schedule' of the training state must be 2 numbers below 2**53")
        self.n_passes, self.seed = (int(number) for number in numbers)
        self.next = self.n_samples


def warn_of_left_out(n: int, n_all: int) -> None:
    """Warn of sentences that are left out of training, if there are any, as a share of all of them."""
    if n > 0:
        warn(
            f"{100 * n / n_all:.3g} % of the sentences were left out of training: none of their meanings has a "
            "derivation over their words, or the sum over what they may mean overflows",
            AdviceWarning,
        )


class BagLikelihoodRun(Run):
    """A run whose weights are the average of the last passes."""

    carries = False  # other steps begin anew

    @property
    def least_passes(self) -> int:  # type: ignore[override]
        return self.solver.max_iter

    def warn_of_left_out(self) -> None:
        """Warn of sentences that no step was made for, as a share of all of them."""
        warn_of_left_out(2 * self.state.n_left_out, max(self.state.n_argmax, 1))

    @property
    def weights(self) -> NDArray[np.float64]:
        return self.state.learner.average

    def norms(self) -> tuple[float, float]:
        return half_norm(self.weights), np.nan


@declared
class BagLikelihood(Seed, Checkpoints, Solver):
    """AdaGrad on the likelihood of bags of meanings; it claims no objective, which is not concave.

    Parameters
    ----------
    C : float, default=0.2
        Longest step of a weight, roughly.
    max_iter : int, default=10
        Passes.
    random_state : int, RandomState or None
        Seeds the order of the sentences.
    checkpoint
        As for `LaRank`.
    """

    C: float = parameter(POSITIVE, default=STEP, kw_only=False)
    max_iter: int = parameter(COUNT, default=10)

    needs = frozenset({"meanings in bags"})
    completes = True

    def formulation(self) -> dict[str, str | None]:
        return HybridProblem.formulation

    def step(self, problem: HybridProblem, of_pass: OfPass, learner: Learner, weight: float, doubt: float) -> float:
        """Learn from one sentence, as `HybridProblem.of_pass` returns it; returns log p(bag), or -inf of none."""
        encoded, known, free = of_pass
        return problem.hybrid.sums.learn(encoded, known, free, learner, self.C, weight, doubt)

    def start(self, problem: HybridProblem, *, sample_weight: Weights | None = None, base: Floats | None = None) -> Run:
        """Return a fresh `BagLikelihoodRun` from the weights `base`, by default those of co-occurrence."""
        if base is None:
            base = first_weights(problem.hybrid, problem.tokens, problem.bags)
        state = LikelihoodState(np.array(base, dtype=np.float64), PENALTY, paces(problem.hybrid))
        schedule = LikelihoodSchedule(problem, state, self, sample_weight, seed_from(self.random_state))
        return BagLikelihoodRun(self, problem, state, schedule)


class BagPerceptron(BagLikelihood):
    """The averaged perceptron on bags of meanings: where the best derivation of all is none of the bag's best one.

    Its steps are those of `BagLikelihood`, whose sums are maxima: psi of the best derivation of the bag less psi of the
    best of all. Nothing is doubted.
    """

    def step(self, problem: HybridProblem, of_pass: OfPass, learner: Learner, weight: float, doubt: float) -> float:
        encoded, known, free = of_pass
        best = [problem.hybrid.best_features(encoded, forest, learner.weights) for forest in (known, free)]
        if best[0] is None or best[1] is None:
            return -np.inf
        features, places = np.unique(np.concatenate([best[0][0], best[1][0]]), return_inverse=True)
        counts = np.bincount(places, weights=np.concatenate([best[0][1], -best[1][1]]), minlength=len(features))
        learner.move(features[counts != 0.0], weight * counts[counts != 0.0], self.C)
        return 0.0


LEARNERS = {"likelihood": BagLikelihood, "perceptron": BagPerceptron}
