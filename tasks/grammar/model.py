"""A trained parser without scikit-learn: terminals, grammar, weights.

`GrammarParser` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.dual.parallel import parallel_parts
from structsvm.features.inputs.seen_columns import SeenColumns
from structsvm.features.word_codes import OWN, OwnColumns
from structsvm.files.weight_rows import RaggedRows, blocks, n_blocks, rows_from
from structsvm.oracles.cky import CKYOracle, NoParseError
from structsvm.stored_values import Array, Count, Names, OneOf, Record, Stored, Text, Value
from structsvm.structures.grammar import START, Grammar
from structsvm.structures.known_trees import is_partial, known_rules
from structsvm.structures.rules import Rule, Terminal, category_of, plain, rules_of
from structsvm.structures.trees import Tree
from structsvm.tasks.common.examples import Examples, split_text
from structsvm.tasks.common.inspection.inputs import are_sentences
from structsvm.tasks.common.inspection.weights import Contribution, Explanation, WeightTable, two_best
from structsvm.tasks.common.likelihood import (
    StructureCalibration,
    calibrate_on,
    probable_weights,
    ranking_weights,
    temperature_of_loss,
    with_probabilities,
)
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.selection.search import Held, Search, first_scale
from structsvm.tasks.grammar.parameters import (
    MANY_TREES,
    PASSES,
    PASSES_OF_MANY,
    PCFG,
    TREE,
    SpanFeatures,
    TreebankGrammar,
)
from structsvm.tasks.grammar.pcfg import pcfg_weights
from structsvm.tasks.grammar.terminals import KINDS, UNKNOWN, Terminals, with_given
from structsvm.tasks.grammar.trees import check_sentence, encode_trees, is_nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeGuard

    from numpy.typing import NDArray

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.features.word_codes import OwnFeatures
    from structsvm.oracles._cky import Parser
    from structsvm.solvers import Solver
    from structsvm.tasks.grammar.trees import SentenceLike

# Begin, end and label of a bracket, and its probability.
Bracket = tuple[int, int, str, float]
FRAGMENTS = "fragments"
# The cost of a bracket where the likeliest brackets are wanted: half of the F1 that parsers have, about.
COST = 0.45
# Training starts from frequencies of rules: SCALE is the factor of their logarithms, SMOOTHING is added to each count,
# as a part of the trees need not have all rules.
SCALE, SMOOTHING = 0.5, 0.5
TRAINED = 400  # trees that C is chosen on, at most; beyond that it hardly depends on their number
SHORT = 0.75  # the share of trees, the shortest ones, that choose C where they are many
LOWEST_OF_LOG = 10.0  # where the path of the log loss begins, in units of 1 / scale
BATCH = 256  # sentences whose features are computed side by side

# A rule as ids: nonterminals from 0 up, terminals from -1 down.
RECORD = Record({
    "terminals": Record({
        "kind": OneOf(KINDS),
        "known": Names(of=lambda terminals: sorted(terminals.known)),
        "endings": Names(),
        **OWN,
    }),
    "v": Count(1),
    "seen": Value(SeenColumns.from_json, SeenColumns.to_json, needed=False),
    "grammar": Record(
        {
            "nodes": Names(),
            "terminals": Names(),
            "h": Count(null=True),
            "max_unary": Count(),
            "start": Names(),
            "uncounted": Names(of=lambda grammar: sorted(grammar.uncounted)),
        },
        of="oracle.grammar",
    ),
    "oracle": Record({"loss": Text(of="loss_name"), "max_length": Count(1), "max_chart_bytes": Count(1, 2**63 - 1)}),
    "spans": Record({"bits": Count(1, 24), "templates": Names(of="texts")}, of="oracle.templates"),
    "weights": RaggedRows(("n_features",), dtype="f8", of="stored_weights"),
    "rules": Array(
        "i4",
        ("n_symbols",),
        within=("last_terminal", "n_nodes"),
        of=lambda model: np.array(list(chain.from_iterable(model.flat_rules)), dtype=np.int32),
    ),
    "rule_sizes": Array(
        "i4",
        ("n_rules",),
        within=(2, None),
        of=lambda model: np.array([len(rule) for rule in model.flat_rules], dtype=np.int32),
    ),
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trees(Examples):
    """Encoded trees, some of which may be known in part."""

    trees: list[Tree]

    @property
    def has_unknown(self) -> bool:
        return any(map(is_partial, self.trees))

    def fully_known(self) -> Self:
        return self.take(np.array([i for i, tree in enumerate(self.trees) if not is_partial(tree)], dtype=np.intp))

    def subsample(self, most: float) -> Self:
        """At most so many trees; of more, none longer than three quarters of them: long ones take most of the time."""
        if len(self) <= most:
            return self
        lengths = np.array([len(tree.leaves()) for tree in self.trees])
        short = self.take(np.flatnonzero(lengths <= np.quantile(lengths, SHORT)))
        return Examples.subsample(short, most)


class TreeSearch(Search):
    """The choice of C for trees: of many, as many are held out as are trained on, which takes far longer.

    These cannot tell values half a decade apart: powers of ten are tried, and the least within a standard error of the
    best is chosen (Breiman et al. 1984).

    Beside frequencies, from which training starts, the log loss of the first values of a margin's path changes no
    bracket: its path begins higher.
    """

    def __init__(
        self, model: GrammarModel, examples: Trees, solver: Solver, values: Sequence[float] | None = None
    ) -> None:
        super().__init__(model, examples, solver, values)
        self.is_of_many = len(self.examples) >= 2 * TRAINED
        if self.is_of_many:
            self.lowest, self.step, self.patience, self.leeway = 3.0, 2, 1, 1.0
        if self.solver.is_likelihood:
            self.lowest = LOWEST_OF_LOG

    def divisions(self) -> Iterator[NDArray[np.bool_]]:
        if not self.is_of_many:
            yield from super().divisions()
            return
        held_out = np.ones(len(self.examples), dtype=bool)
        held_out[np.random.default_rng(self.seed).permutation(len(self.examples))[:TRAINED]] = False
        yield held_out


class GrammarModel(TaskModel[Trees]):
    """Terminals, oracle and weights of a parser; a `pcfg` has no result.

    Attributes
    ----------
    terminals : Terminals
    oracle : CKYOracle
    v : int
        Vertical Markovisation of its labels.
    weights : ndarray of shape (oracle.n_features,), float64
    temperature : float or None
        Divisor of the scores for probabilities; None: not known.
    """

    kind = "grammar"
    record = RECORD
    estimator = "GrammarParser"
    has_temperature = True
    calibration = StructureCalibration()
    calibrates = False
    groups = (TreebankGrammar, SpanFeatures)
    most_examples = 2 * TRAINED
    sums_over_known = True

    def __init__(
        self,
        terminals: Terminals,
        oracle: CKYOracle,
        v: int,
        *,
        weights: Floats | None = None,
        seen: SeenColumns | None = None,
    ) -> None:
        super().__init__()
        self.seen = seen
        self.terminals, self.oracle, self.v = terminals, oracle, v
        self.weights = np.zeros(oracle.n_features) if weights is None else weights
        self.temperature = temperature_of_loss(oracle)

    def set_columns(self, columns: OwnFeatures | None) -> None:
        """Set the user's callable; see `OwnColumns.with_features`."""
        self.terminals = copy.copy(self.terminals)
        self.terminals.own = self.terminals.own.with_features(columns)

    # ---- training -------------------------------------------------------------------------------

    def as_prior(self, oracle: CKYOracle) -> GrammarModel:
        """A new model whose training starts from these weights: those of rules come first, spans may be new."""
        weights = np.zeros(oracle.n_features)
        weights[: len(self.weights)] = self.weights
        return GrammarModel(self.terminals, oracle, self.v, weights=weights, seen=self.seen)

    def prior(self, examples: Trees) -> Floats | None:
        if self.weights.any():
            return self.weights
        if self.params.get("prior") != PCFG:
            return None
        weights = np.zeros(self.oracle.n_features)
        frequencies = self.log_frequencies(examples.trees, SMOOTHING, examples.weight)
        weights[: len(frequencies)] = SCALE * frequencies
        return weights

    def bind(self, examples: Trees, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        return self.oracle.bind(None, examples.trees, **solver.formulation()), examples.weight

    def adapted(self, solver: Any, examples: Trees) -> Solver:
        is_open = not solver.is_likelihood and solver.max_iter is None and solver.tol is None
        if is_open and self.params.get("solver") in ("larank", "frank_wolfe"):  # settled or not
            solver.usual_passes = PASSES if len(examples) < MANY_TREES else PASSES_OF_MANY
            solver.least_passes = math.inf
        return super().adapted(solver, examples)

    def learnable(self, examples: Trees, on_no_parse: str | None) -> Trees:
        """The trees but those known in part with which no tree of the grammar agrees; warns of these.

        Raises
        ------
        ValueError
            If there is one and `on_no_parse` is "raise", or if none is left; the message names the tree.
        """
        why = self.oracle.disagreeing(examples.trees) if examples.has_unknown else {}
        if not why:
            return examples
        first, n = min(why), len(examples)
        if on_no_parse == "raise" or len(why) == n:
            raise ValueError(f"tree {first}: {why[first]}")
        warn(
            f"{len(why)} of {n} trees ({len(why) / n:.1%}) are left out: no tree of the grammar "
            f"agrees with what is known of them (tree {first} is the first: {why[first]}). Rules are those of "
            "nodes that are known with their children; on_no_parse='raise' stops instead",
            AdviceWarning,
        )
        return examples.take(np.setdiff1d(np.arange(n), [*why]))

    def search_of_loss(self, examples: Trees, solver: Solver) -> TreeSearch:
        return TreeSearch(self, examples.subsample(self.most_examples), solver)

    def held_out_scores(self, examples: Trees) -> Held:
        """F1 of the best trees' brackets; all rules of the training trees are in the grammar.

        The likeliest brackets take far longer with small weights, and choose no better C.
        """
        counts, parsed = [], self.oracle.parse_all([tree.leaves() for tree in examples.trees], self.weights)
        for tree, found in zip(examples.trees, parsed, strict=True):
            brackets = self.oracle.counted_spans(tree)
            others = set() if found is None else self.oracle.counted_spans(found[0])
            counts.append((2.0 * len(brackets & others), len(brackets) + len(others)))
        return Held("F1", *np.array(counts, dtype=np.float64).T)

    def weight_rows(self) -> Integers:
        return blocks(self.oracle.n_features)

    def scale(self, examples: Trees) -> float:
        return first_scale(self.oracle.bind(None, examples.trees))

    def estimate(self, trees: Iterable[Tree], smoothing: float) -> None:
        """The maximum-likelihood PCFG of encoded trees."""
        self.weights, self.temperature = self.log_frequencies(trees, smoothing), 1.0

    def log_frequencies(self, trees: Iterable[Tree], smoothing: float, sample_weight: Weights | None = None) -> Floats:
        """Logarithms of the frequencies of rules among those with the same left-hand side, in encoded trees."""
        grammar = self.oracle.grammar
        seen: dict[Rule, float] = {}
        for tree, weight in zip(trees, repeat(1.0) if sample_weight is None else sample_weight, strict=False):
            for rule in (*known_or_all_rules(tree, self.v), Rule(START, (tree.label,))):
                seen[rule] = seen.get(rule, 0.0) + weight
        counts = np.zeros(len(grammar.features))
        for rule, count in seen.items():
            if rule.lhs != START or rule in grammar.feature_number:
                np.add.at(counts, grammar.features_of(rule), count)
        # The class that stands for all rare words has all of their counts.
        rare: dict[str, float] = {}
        for (lhs, rhs), count in zip(grammar.features, counts, strict=True):
            if isinstance(rhs[0], Terminal) and rhs[0].name.startswith("<unk"):
                rare[lhs] = rare.get(lhs, 0.0) + count
        for k, (lhs, rhs) in enumerate(grammar.features):
            if rhs == (Terminal(UNKNOWN),):
                counts[k] = rare[lhs] or 1.0  # given tags have no class: as if one such word had been seen
        return pcfg_weights(grammar, counts, smoothing)

    # ---- probabilities --------------------------------------------------------------------------

    def calibrate(self, trees: Iterable[Tree]) -> None:
        """Fit the temperature to trees that the model was not trained on."""
        calibrate_on(self, self.known_problem(trees))

    def known_problem(self, trees: Iterable[Tree]) -> BoundProblem:
        """The problem of sentences with what is known of their trees."""
        encoded = encode_trees(self.terminals, self.v, trees, self.oracle.grammar)
        return self.oracle.bind(None, encoded, rescaling=None)

    # ---- prediction -----------------------------------------------------------------------------

    def _decoding(self, decode: str | None) -> tuple[Floats, float | None]:
        """Weights, and what a bracket costs (None: the best tree), for a value of `decode`; see `GrammarParser`."""
        decode = decode or self.params.get("decode")
        if decode == TREE or (decode is None and self.temperature is None and not self._is_sum):
            return self.weights, None
        return self.weights if self._is_sum else probable_weights(self, "decode='brackets'"), COST

    @property
    def _is_sum(self) -> bool:
        """Whether scores are logarithms of probabilities, about: untempered ones, by a margin of one per bracket."""
        rescaling = getattr(self.params.get("solver"), "rescaling", "margin")
        return self.temperature is None and (self.oracle.loss_name, rescaling) == ("hamming", "margin")

    def predict(
        self,
        sentences: Iterable[SentenceLike],
        *,
        on_no_parse: str | None = "raise",
        n_jobs: int = 1,
        decode: str | None = None,
    ) -> list[Tree | None]:
        """A tree for each sentence; see `GrammarParser.predict`. on_no_parse None: None where there is none.

        decode None: that of the parameters with which the model was trained.
        """
        sentences = list(sentences)
        self.check_words(sentences)
        decoding = self._decoding(decode)

        def part(begin: int, end: int) -> list[Tree | None]:
            parser = self.oracle.parser()
            batches = (range(a, min(a + BATCH, end)) for a in range(begin, end, BATCH))
            return [tree for at in batches for tree in self._predicted(sentences, at, decoding, parser, on_no_parse)]

        return parallel_parts(part, len(sentences), n_jobs)

    def _predicted(
        self,
        sentences: Sequence[SentenceLike],
        at: range,
        decoding: tuple[Floats, float | None],
        parser: Parser,
        on_no_parse: str | None,
    ) -> Iterator[Tree | None]:
        """Yield the trees of the sentences at these indices."""
        encoded = {}
        for i in at:
            if not is_nothing(sentences[i]):
                with _naming(i):
                    encoded[i] = self._encoded(sentences[i])
        terminals, words = zip(*encoded.values(), strict=True) if encoded else ((), ())
        weights, cost = decoding
        parsed = self.oracle.parse_all(terminals, weights, words=words, parser=parser, cost=cost)
        for i in at:
            if i not in encoded:
                yield None
                continue
            with _naming(i):
                found = next(parsed)
            yield self._without_parse(i, sentences[i], on_no_parse) if found is None else self._plain(found[0])

    def _without_parse(self, i: int, sentence: SentenceLike, on_no_parse: str | None) -> Tree | None:
        if on_no_parse == "raise":
            terminals, _ = self._encoded(sentence)
            raise NoParseError(f"sentence {i}: the grammar has no tree for {' '.join(terminals)!r:.200}")
        return None if on_no_parse is None else self.fallback(sentence, on_no_parse)

    def predict_kbest(
        self,
        sentences: Iterable[SentenceLike],
        k: int,
        *,
        on_no_parse: str | None = "raise",
        probabilities: bool = False,
    ) -> Iterator[list[tuple[Any, float]]]:
        """Yield a list of the k best trees of each sentence; see `GrammarParser.predict_kbest`."""
        weights, sentences = ranking_weights(self, probabilities=probabilities), list(sentences)
        self.check_words(sentences)
        parser, weights = self.oracle.parser(), self.oracle.check_weights(weights)
        for i, sentence in enumerate(sentences):
            if is_nothing(sentence):
                yield []
                continue
            with _naming(i):
                terminals, words = self._encoded(sentence)
                ranked = list(self.oracle.kbest(terminals, weights, k, words=words, parser=parser))
                if probabilities and ranked:
                    ranked = with_probabilities(ranked, self.oracle.log_sum(terminals, weights, parser=parser))
            if ranked:
                yield [(self._plain(tree), score) for tree, score in ranked]
            else:
                yield [(self._without_parse(i, sentence, on_no_parse), 0.0 if probabilities else -np.inf)]

    def predict_spans(self, sentences: Iterable[SentenceLike], least: float) -> list[list[Bracket]]:
        """The brackets of each sentence that have at least this probability; see `GrammarParser.predict_spans`."""
        sentences = list(sentences)
        self.check_words(sentences)
        parser, found = self.oracle.parser(), list[list[Bracket]]()
        weights = self.oracle.check_weights(probable_weights(self, "predict_spans"))
        has_tags = self.terminals.finds_tags
        for i, sentence in enumerate(sentences):
            with _naming(i):
                terminals = [] if is_nothing(sentence) else self._encoded(sentence)[0]
                found.append(
                    self.oracle.brackets(terminals, weights, least, has_tags=has_tags, parser=parser)
                    if terminals
                    else []
                )
        return found

    def brackets_of(self, tree: Tree) -> set[tuple[int, int, str]]:
        """The brackets of a tree that `predict_spans` knows of: the nodes above the tags that are counted."""
        spans = zip(tree.preorder(), tree.spans(), strict=True)
        every = {(i, j, label) for node, (label, i, j) in spans if not node.is_preterminal}
        return {bracket for bracket in every if bracket[2] not in self.oracle.grammar.uncounted}

    def _plain(self, tree: Tree) -> Tree:
        """The tree without ancestors in its labels."""
        return plain(tree) if self.v > 1 else tree

    def check_words(self, sentences: Iterable[SentenceLike]) -> None:
        """Raise ValueError if what should be words are training's tags; a parser that goes by tags says so itself."""
        if self.seen is None:
            return
        tokens = chain.from_iterable(sentence for sentence in sentences if isinstance(sentence, (list, tuple)))
        if self.terminals.kind == "predicted":  # other tokens are an error that names its sentence
            pairs = [token for token in tokens if isinstance(token, (list, tuple)) and len(token) == 2]
            if pairs:
                columns = zip(("word", "tag"), zip(*pairs, strict=True), strict=True)
                self.seen.check({name: Counter(map(str, values)) for name, values in columns}, len(pairs))
            return
        words = [str(token if isinstance(token, str) or not token else token[0]) for token in tokens]
        self.seen.check({"word": Counter(words)}, len(words))

    def _encoded(self, sentence: SentenceLike) -> tuple[list[str], list[str | Tree]]:
        sentence = split_text(sentence)
        check_sentence(sentence)
        return self.terminals.of_sentence(sentence, self.oracle.grammar)

    def fallback(self, sentence: SentenceLike, on_no_parse: str = FRAGMENTS) -> Tree:
        """A tree for a sentence that the grammar does not cover.

        Constituents, or ("flat") words, side by side under the heaviest start symbol. A word alone has a tag: the one
        given, or its terminal's best.
        """
        starts = self.weighted_starts()
        label = max(starts, key=lambda name: starts[name])
        terminals, words = self._encoded(sentence)
        nodes = [self._tagged(*token) for token in zip(split_text(sentence), terminals, words, strict=True)]
        if on_no_parse == FRAGMENTS:
            alone, k, pieces = nodes, 0, self.oracle.fragments(terminals, self.weights, words=words)
            nodes = []
            for piece in pieces:
                nodes.append(alone[k] if piece is words[k] else self._plain(piece))
                k += len(piece.leaves()) if isinstance(piece, Tree) else 1
        if len(nodes) == 1 and isinstance(nodes[0], Tree) and nodes[0].label == label:
            return nodes[0]
        if not self._is_inner(label):  # a root's label above one constituent, such as TOP, is for the root alone
            nodes = [node.children[0] if is_unary(node, label) else node for node in nodes]
        return Tree(label, nodes)

    def _is_inner(self, label: str) -> bool:
        """Whether nodes below the root may have a label."""
        names = {name for rule, _ in self.weighted_rules() for name in rule.rhs if isinstance(name, str)}
        return label in (set(map(category_of, names)) if self.v > 1 else names)

    def _tagged(self, token: str | tuple[str, str], terminal: str, word: str | Tree) -> str | Tree:
        """A word with its tag."""
        if isinstance(word, Tree):
            return word
        grammar = self.oracle.grammar
        given = "" if isinstance(token, str) else token[1].split()[0] if self.terminals.finds_tags else token[1]
        if given and (self.terminals.kind != "predicted" or given in grammar.node_number):
            return Tree(given, (word,))
        rules = grammar.tags.get(grammar.terminal_number.get(terminal, -1), ())
        tags = [(self.weights[grammar.arrays["lexical_feature"][k]], name) for k, name in rules]
        return self._plain(Tree(max(tags)[1], (word,))) if tags else word

    # ---- views of the weights ---------------------------------------------------------------------------

    def weighted_rules(self) -> list[tuple[Rule, float]]:
        """The rules with their weights: a list of (Rule, float)."""
        grammar = self.oracle.grammar
        rules = grammar.rules if grammar.h is None else grammar.features[: grammar.n_rules]
        return list(zip(rules, self.weights[: grammar.n_rules].tolist(), strict=True))

    def weighted_starts(self) -> dict[str, float]:
        """The start symbols with their weights, 0 if there is only one: a dict."""
        grammar = self.oracle.grammar
        weights = self.weights[grammar.n_rules : len(grammar.features)].tolist() or [0.0]
        return dict(zip(grammar.start, weights, strict=True))

    def weight_table(self) -> WeightTable:
        """Rules by the nonterminals that they rewrite."""
        rules = self.weighted_rules()
        lefts = list(dict.fromkeys(rule.lhs for rule, _ in rules))
        place = {name: k for k, name in enumerate(lefts)}
        weights = np.zeros((len(rules), len(lefts)))
        for k, (rule, weight) in enumerate(rules):
            weights[k, place[rule.lhs]] = weight
        return WeightTable([str(rule) for rule, _ in rules], lefts, weights)

    def holds_several(self, x: object) -> bool:
        return are_sentences(x)

    def explain(self, x: SentenceLike) -> Explanation:
        self.check_words([x])
        terminals, words = self._encoded(x)
        ranked = list(self.oracle.kbest(terminals, self.weights, 2, words=words))
        alone = f"the grammar has {len(ranked)} trees for the sentence, and two are compared"
        trees = [self._plain(tree) for tree, _ in two_best(ranked, alone)]
        given = trees
        if self.terminals.kind == "predicted":
            tags = [tag for _, tag in split_text(x)]
            given = [with_given(tree, tags) for tree in trees]
        encoded = encode_trees(self.terminals, self.v, given, self.oracle.grammar)
        first, second = (self.oracle.joint_feature(None, tree) for tree in encoded)
        values = (first - second) * self.weights
        rules = self.weighted_rules()
        own = np.flatnonzero(values[: len(rules)]).tolist()
        found = [Contribution(str(rules[k][0]), "", float(values[k])) for k in own]
        rest = float(values[len(rules) :].sum())
        return Explanation.of(trees[0], trees[1], [*found, Contribution("spans", "", rest)])

    # ---- model files ----------------------------------------------------------------------------

    @property
    def flat_rules(self) -> list[list[int]]:
        """The symbols of each rule as ids."""
        nodes, terminals = self.oracle.grammar.node_number, self.oracle.grammar.terminal_number
        return [
            [nodes[s] if isinstance(s, str) else -1 - terminals[s.name] for s in (rule.lhs, *rule.rhs)]
            for rule in self.oracle.grammar.rules
        ]

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        about, words = dict(stored.grammar), stored.terminals
        names = about.pop("nodes"), about.pop("terminals")
        sizes = {"n_nodes": len(names[0]), "last_terminal": -len(names[1])}
        arrays = stored.arrays(**sizes)
        rules = _rules_from(*names, *(arrays[name] for name in ("rules", "rule_sizes")))
        terminals = Terminals(words.kind, words.known, words.endings, OwnColumns.from_record(words))
        oracle = CKYOracle(
            Grammar(rules, **about),
            span_features=stored.spans.templates,
            columns=terminals.columns,
            vectors=terminals.own.vectors,
            span_bits=stored.spans.bits,
            **stored.oracle,
        )
        arrays = stored.arrays(**sizes, n_features=oracle.n_features)
        weights = rows_from(arrays, "weights", n_blocks(oracle.n_features), lambda: blocks(oracle.n_features))
        weights = weights.astype(np.float64, copy=False)
        return cls(terminals, oracle, stored.v, weights=weights, seen=stored.seen)


def is_unary(node: Tree | str, label: str) -> TypeGuard[Tree]:
    """Whether this is a node of a label with one child, which is a node, too."""
    return isinstance(node, Tree) and node.label == label and len(node.children) == 1 and not node.is_preterminal


@contextmanager
def _naming(i: int) -> Iterator[None]:
    """Name the sentence in a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"sentence {i}: {error}") from None


def _rules_from(nodes: Sequence[str], terminals: Sequence[str], flat: Integers, sizes: Integers) -> list[Rule]:
    """Rules of their symbols' ids, and the number of these in each rule."""
    if sizes.sum() != len(flat):
        raise ValueError(f"array 'rules' has {len(flat)} symbols, and 'rule_sizes' add up to {sizes.sum()}")
    symbols = [nodes[k] if k >= 0 else Terminal(terminals[-1 - k]) for k in flat.tolist()]
    ends = np.cumsum(sizes).tolist()
    return [Rule(symbols[end - size], tuple(symbols[end - size + 1 : end])) for end, size in zip(ends, sizes.tolist())]


def known_or_all_rules(tree: Tree, v: int) -> list[Rule]:
    """The rules of a tree, or of those of its nodes that are known."""
    return known_rules(tree, v) if is_partial(tree) else rules_of(tree)
