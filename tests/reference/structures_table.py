"""The table (structure, oracle, reference): small random problems of every structure with all of their outputs.

A case holds an oracle, a few examples, and for each input its `Space`: every output with its joint feature and its loss
by the reference. `STRUCTURES` names the makers of cases; `tests/oracles/test_structures.py` drives the properties that
all structures share over it, and the tests of one structure draw their cases from the classes here.
"""

import importlib.util
import sys
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import combinations, permutations, product
from pathlib import Path

import bag_reference
import graph_reference
import numpy as np
import ordering_reference
import pytest
import ranking_reference
import scipy.sparse as sp
from alignment_reference import ReferenceAligner
from chain_reference import ReferenceChain, ReferenceGreedy
from dependency_reference import ReferenceArcs, all_heads
from dual_reference import constraint
from python_oracles import FORMS, Multiclass
from segment_reference import joint_feature, labels_of, random_case, segmentations
from taxonomy_reference import ReferenceTaxonomy, random_edges
from tree_reference import ReferenceGrammar, as_text, hidden, random_grammar, random_sentence
from tree_reference import agrees as agrees_in_part

from structsvm.features.arc_templates import ArcTemplates
from structsvm.features.tokens import Tokens
from structsvm.oracles.ambiguous import AmbiguousOracle
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.assignment import AssignmentOracle, Pairs
from structsvm.oracles.cky import CKYOracle
from structsvm.oracles.eisner import EisnerOracle
from structsvm.oracles.graph import GraphOracle
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.label_sets import LabelSetOracle
from structsvm.oracles.ordering import OrderingOracle
from structsvm.oracles.ranking import RankingOracle
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures.alignments import Alignment, Context, References, Strings
from structsvm.structures.grammar import Grammar
from structsvm.structures.languages import Automaton
from structsvm.structures.spans import PLAIN, Token
from structsvm.structures.taxonomy import Taxonomy
from structsvm.structures.trees import Tree, parse_tree

FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]


def single(values):
    """As float64, rounded to what float32 holds."""
    return np.asarray(values).astype(np.float32).astype(np.float64)


def key(output):
    """A hashable key that distinguishes an output from others."""
    if isinstance(output, Alignment):
        return output.x_start, output.z_start, output.operations.upper()
    return (np.shape(output), *np.ravel(output).tolist()) if np.ndim(output) else str(output)


@dataclass
class Space:
    """All outputs of one input: joint features (n, n_features), losses (n,), and which output is the true one."""

    outputs: list
    psi: np.ndarray
    loss: np.ndarray
    true: int

    @cached_property
    def places(self):
        """The index of each output by its key."""
        return {key(y): k for k, y in enumerate(self.outputs)}

    def find(self, output):
        """Index of an output."""
        return self.places[key(output)]

    def constraints(self, rescaling, penalty):
        """(b, psi) of every output but the true one; a wrong output of loss 0 asks for no margin."""
        found = []
        for k, (difference, loss) in enumerate(zip(self.psi[self.true] - self.psi, self.loss, strict=True)):
            if loss > 0.0:
                found.append(constraint(difference, loss, rescaling, penalty))
            elif k != self.true and rescaling != "slack":
                found.append((0.0, difference))
        return found

    def values(self, w, rescaling):
        """The objective of argmax, for every output."""
        scores = self.psi @ w
        if rescaling is None:
            return scores
        return self.loss + scores if rescaling == "margin" else self.loss * (1.0 - scores[self.true] + scores)


class Case:
    """A small problem: `oracle`, examples `X` and `Y`, and the `spaces` of the inputs.

    Attributes
    ----------
    is_single : bool
        Whether the weights are float32.
    prefers_others : bool
        Whether plain inference returns another output that ties with the true one.
    augments : bool
        Whether examples of the bound problem are those of `X`, and `argmax` offers loss-augmented inference.
    keeps_protocol : bool
        Whether, moreover, losses are 0 for the true output alone, and all that the oracle declares can be bound.
    enumerates : bool
        Whether `spaces` hold the outputs that `argmax` chooses from.
    returns_satisfied : bool
        Whether with a hard margin the tightest constraint is returned though it holds.
    """

    is_single = False
    prefers_others = True
    augments = True
    enumerates = True
    returns_satisfied = True

    @property
    def keeps_protocol(self):
        return self.augments

    @property
    def formulations(self):
        """The (rescaling, penalty) that the oracle declares."""
        return [f for f in FORMULATIONS if f[0] in self.oracle.rescalings and f[1] in self.oracle.penalties]

    def bind(self, rescaling="margin", penalty="linear"):
        return self.oracle.bind(self.X, self.Y, rescaling=rescaling, penalty=penalty)

    def weights(self, seed, *, whole=False):
        rng = np.random.default_rng(seed)
        n = self.oracle.n_features
        return rng.integers(-2, 3, n).astype(float) if whole else single(rng.normal(size=n))

    def winning_weights(self, i):
        """Weights, by perceptron steps, under which the true output of example i wins if it can."""
        differences = np.array([psi for _, psi in self.constraints("margin", None)[i]])
        w = self.weights(i)
        for _ in range(50 if len(differences) else 0):
            w = w + differences[(differences @ w).argmin()]
        return single(w)

    def constraints(self, rescaling, penalty):
        """(b, psi) of all constraints, by example of the bound problem."""
        return [space.constraints(rescaling, penalty) for space in self.spaces]

    def knowledge(self, seed):
        """For each input what may be known of its true output, and which outputs agree; None: there is no such verb."""
        return

    def whole(self):
        """`Y`, known whole."""
        return self.Y

    def others(self):
        """Bound problems of the same oracle and other data."""
        yield self.oracle.bind(self.X[:-1], self.Y[:-1])
        for i, found in enumerate(self.other_outputs()):
            if found is not None:
                Y = list(self.Y)
                Y[i] = found
                yield self.oracle.bind(self.X, Y)
        X = self.other_inputs()
        if X is not None:
            yield self.oracle.bind(X, self.Y)

    def other_outputs(self):
        """For each input an output that could be the true one instead, or None."""
        for space in self.spaces:
            wrong = np.flatnonzero(space.loss > 0.0)
            yield space.outputs[wrong[0]] if len(wrong) else None

    def other_inputs(self):
        """`X` with one number changed."""
        X = [np.array(x) for x in self.X]
        X[-1][..., 0] += 1.0
        return X

    @property
    def tolerance(self):
        return {"rel": 1e-5, "abs": 1e-4} if self.is_single else {"rel": 1e-9, "abs": 1e-9}


def stacked(table, n_features):
    """The numbers b and the rows psi of a table of constraints."""
    return np.array([b for b, _ in table]), np.array([psi for _, psi in table]).reshape(-1, n_features)


def is_one_of(b, psi, numbers, rows):
    """Whether a stacked table has a constraint, but for rounding."""
    near = np.isclose(b, numbers, rtol=1e-6, atol=1e-12)
    return np.isclose(psi, rows[near], rtol=1e-5, atol=1e-6).all(axis=1).any()


def check_most_violated(case, weights, rescaling, penalty):
    """Assert that `separate` returns the most violated of all constraints, or the zero one where none is violated."""
    problem = case.bind(rescaling, penalty)
    for i, table in enumerate(case.constraints(rescaling, penalty)):
        numbers, rows = stacked(table, problem.n_features)
        for w in weights:
            b, psi = problem.separate(i, w)
            is_zero = b == 0.0 and not psi.any()
            assert is_zero or is_one_of(b, psi, numbers, rows)
            best = np.max(numbers - rows @ w, initial=-np.inf)
            if penalty is not None:
                assert b - psi @ w == pytest.approx(max(best, 0.0), **case.tolerance)
            elif best > 0.0 or (table and case.returns_satisfied):
                assert b - psi @ w == pytest.approx(best, **case.tolerance)
            else:
                assert is_zero or b - psi @ w <= 1e-9


# --- label chains ---------------------------------------------------------------------------------


def tokens_of(arrays, n_features, *, ones=False):
    """Sparse tokens from dense arrays; with `ones` without values."""
    rows = np.concatenate([np.asarray(a, dtype=np.float64) for a in arrays])
    there = rows != 0.0
    return Tokens(
        np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64),
        np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64),
        np.nonzero(there)[1].astype(np.int32),
        None if ones else rows[there].astype(np.float32),
        n_features,
    )


def with_bigrams(tokens, bigrams, *, ones=False):
    """The tokens with bigrams from dense arrays, as a list of `Tokens` of one sequence each."""
    tokens = replace(tokens, bigrams=tokens_of(bigrams, bigrams[0].shape[1], ones=ones))
    return [tokens[i : i + 1] for i in range(len(tokens))]


def random_tokens(rng, lengths, n_features, *, ones):
    def rows(n):
        if ones:
            return rng.integers(0, 2, (n, n_features))
        return rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)

    return [np.asarray(rows(n), dtype=np.float32) for n in lengths]


class Chains(Case):
    """Sequences with exact inference, and true labellings that the masks allow."""

    is_single = True
    prefers_others = False

    def __init__(
        self,
        seed,
        K,
        lengths,
        order,
        *,
        end=False,
        ones=False,
        masks=False,
        costs=False,
        language=False,
        n_bigrams=0,
        **options,
    ):
        rng = np.random.default_rng(seed)
        self.rng, self.K, self.F = rng, K, int(rng.integers(1, 4))
        self.X = random_tokens(rng, lengths, self.F, ones=ones)
        self.Y = [rng.integers(0, K, n) for n in lengths]
        self.masks = self._draw_masks() if masks else {}
        if costs:
            options["label_costs"] = single(rng.uniform(0.2, 3.0, K) if costs == "any" else rng.integers(2, 6, K) / 4.0)
        if language:
            options["language"] = self._draw_language()
        self.structure = {"order": order, "end": end, **self.masks, **options}
        self.oracle = ViterbiOracle(K, self.F, n_bigrams=n_bigrams, **self.structure)
        self.draw_bigrams(lengths, n_bigrams, ones)
        self.references = [
            ReferenceChain(x, K, bigrams=b, **self.structure) for x, b in zip(self.dense, self.bigrams, strict=True)
        ]

    def draw_bigrams(self, lengths, n_bigrams, ones):
        """Bigrams as dense arrays, also at first tokens, where they count for nothing; X is then a list of `Tokens`."""
        self.dense, self.bigrams, self.tokens = self.X, [None for _ in self.X], tokens_of(self.X, self.F, ones=ones)
        if n_bigrams:
            self.bigrams = random_tokens(self.rng, lengths, n_bigrams, ones=ones)
            self.X = with_bigrams(self.tokens, self.bigrams, ones=ones)
            self.tokens = Tokens.joined(self.X)

    def knowledge(self, seed):
        """Labels of tokens: each token's label, a set with it, or nothing; some sequences are known whole."""
        rng, found = np.random.default_rng([seed, 1]), []
        for y, space in zip(self.Y, self.spaces, strict=True):
            allowed = rng.random((len(y), self.K)) < rng.choice([0.0, 0.4, 1.0], len(y))[:, None]
            allowed[np.arange(len(y)), y] = True
            agree = np.array([allowed[np.arange(len(y)), z].all() for z in space.outputs])
            found.append((y if agree.sum() == 1 and rng.random() < 0.5 else allowed, agree))
        return found

    def other_inputs(self):
        if self.dense is self.X:
            return super().other_inputs()
        bigrams = [b.copy() for b in self.bigrams]
        bigrams[0][-1] += 1.0
        return with_bigrams(replace(self.tokens, bigrams=None), bigrams)

    def _draw_masks(self):
        rng, K = self.rng, self.K
        masks = {
            "allowed_transitions": rng.random((K, K)) < 0.6,
            "allowed_first": rng.random(K) < 0.6,
            "allowed_last": rng.random(K) < 0.6,
        }
        for y in self.Y:
            masks["allowed_transitions"][y[:-1], y[1:]] = True
            masks["allowed_first"][y[0]] = masks["allowed_last"][y[-1]] = True
        return {name: mask for name, mask in masks.items() if rng.random() < 0.7}

    def _draw_language(self):
        """A random automaton that accepts the true labellings, of which masks say some."""
        rng, n = self.rng, int(self.rng.integers(2, 5))
        following = np.where(rng.random((n, self.K)) < 0.7, rng.integers(0, n, (n, self.K)), -1)
        accepting = rng.random(n) < 0.5
        for y in self.Y:
            state = 0
            for label in y:
                if following[state, label] < 0:
                    following[state, label] = rng.integers(0, n)
                state = following[state, label]
            accepting[state] = True
        return Automaton(following, accepting)

    @property
    def keeps_protocol(self):
        return self.oracle.label_costs is None or getattr(self.oracle, "cost_units", None) is not None

    @property
    def formulations(self):
        # Costs without a common unit are added up, not counted.
        return super().formulations if self.keeps_protocol else [("margin", "linear")]

    @cached_property
    def spaces(self):
        found = []
        for reference, y in zip(self.references, self.Y, strict=True):
            labellings = reference.labellings()
            psi = np.array([reference.joint_feature(z) for z in labellings])
            loss = np.array([reference.loss(y, z) for z in labellings])
            found.append(Space([np.array(z) for z in labellings], psi, loss, labellings.index(tuple(y))))
        return found


class GreedyChains(Chains):
    """Sequences labelled left to right: each token is an example whose history is the true one."""

    augments = False
    keeps_protocol = False
    formulations = Case.formulations
    knowledge = Case.knowledge

    def __init__(self, seed, K, lengths, order, *, ones=False, masks=False, costs=False, n_bigrams=0):
        rng = np.random.default_rng(seed)
        self.rng, self.K, self.F = rng, K, int(rng.integers(1, 4))
        self.X = random_tokens(rng, lengths, self.F, ones=ones)
        self.Y = [rng.integers(0, K, n) for n in lengths]
        structure = {"order": order}
        if masks:
            structure |= {
                "allowed_transitions": rng.random((K, K)) < 0.7,
                "allowed_first": rng.random(K) < 0.7,
                "allowed_last": rng.random(K) < 0.7,
            }
        self.costs = rng.uniform(0.3, 2.0, K) if costs else np.ones(K)
        self.oracle = GreedyOracle(K, self.F, n_bigrams=n_bigrams, **structure, label_costs=self.costs)
        self.draw_bigrams(lengths, n_bigrams, ones)
        self.references = [
            ReferenceGreedy(x, K, bigrams=b, **structure) for x, b in zip(self.dense, self.bigrams, strict=True)
        ]

    def other_outputs(self):
        for y in self.Y:
            yield (y + 1) % self.K

    def token_space(self, s, t):
        y, reference = self.Y[s], self.references[s]
        psi = np.array([reference.token_feature(t, label, y) for label in range(self.K)])
        return Space(list(range(self.K)), psi, self.costs[y[t]] * (np.arange(self.K) != y[t]), int(y[t]))

    @cached_property
    def spaces(self):
        return [self.token_space(s, t) for s, y in enumerate(self.Y) for t in range(len(y))]


class Segments(Chains):
    """Chains of segments, with phrases; their scores by the definition of the joint feature."""

    def __init__(self, seed, lengths, n_types, n_plain, max_length=2, *, costs=False, language=False):
        rng = self.rng = np.random.default_rng(seed)
        self.oracle, self.tokens, self.plain = random_case(rng, lengths, n_types, n_plain, max_length, costs=costs)
        self.K = self.oracle.n_labels
        self.X = [self.tokens[i : i + 1] for i in range(len(lengths))]
        self.chains = [segmentations(n, n_types, n_plain) for n in lengths]
        self.true = [int(rng.integers(len(chains))) for chains in self.chains]
        self.Y = [
            labels_of(chains[k], self.oracle.tags, self.plain) for chains, k in zip(self.chains, self.true, strict=True)
        ]
        if language:
            self._keep_to(self._draw_language())

    def _keep_to(self, language):
        """Leave the chains whose labels belong to a language, which has the true ones."""
        self.oracle = self.oracle.within((None, None, None), language)
        for i, (chains, k) in enumerate(zip(self.chains, self.true, strict=True)):
            true = chains[k]
            own = [one for one in chains if language.accepts(labels_of(one, self.oracle.tags, self.plain))]
            self.chains[i], self.true[i] = own, own.index(true)

    def other_inputs(self):
        tokens = self.tokens
        return (
            [replace(x, values=np.full(x.n_entries, 2.0, dtype=np.float32)) for x in self.X]
            if tokens.n_entries
            else None
        )

    @cached_property
    def spaces(self):
        found = []
        for x, y, chains, k in zip(self.X, self.Y, self.chains, self.true, strict=True):
            outputs = [labels_of(segments, self.oracle.tags, self.plain) for segments in chains]
            costs = np.ones(self.K) if self.oracle.label_costs is None else self.oracle.label_costs
            psi = np.array([joint_feature(self.oracle, x, segments, self.plain) for segments in chains])
            found.append(Space(outputs, psi, np.array([costs[y][y != z].sum() for z in outputs]), k))
        return found


# --- trees ----------------------------------------------------------------------------------------


class Trees(Case):
    """Sentences of a random grammar with a number of trees in `n_trees`; the true trees are drawn."""

    def __init__(self, seed, n_sentences=3, n_trees=(2, 25), **options):
        rng = self.rng = np.random.default_rng(seed)
        self.X = []
        while len(self.X) < n_sentences:
            self.draw_grammar(rng)
            self.X, self.forests = [], []
            for _ in range(4 * n_sentences):
                x = random_sentence(rng, self.rules, int(rng.integers(1, 6)))
                trees = self.reference.trees(x)
                if n_trees[0] <= len(trees) <= n_trees[1] and len(self.X) < n_sentences:
                    self.X.append(x)
                    self.forests.append(trees)
        self.true = [int(rng.integers(max(len(trees), 1))) for trees in self.forests]
        self.oracle = CKYOracle(self.grammar, **options)

    def draw_grammar(self, rng):
        self.rules = random_grammar(rng, int(rng.integers(1, 5)), int(rng.integers(1, 3)), int(rng.integers(2, 9)))
        start = ("S",) if rng.random() < 0.6 else tuple(sorted({lhs for lhs, _ in self.rules}))[:2]
        max_unary, uncounted = int(rng.integers(0, 4)), ("A",) if rng.random() < 0.3 else ()
        self.reference = ReferenceGrammar(self.rules, start, max_unary, uncounted)
        self.grammar = Grammar(as_text(self.rules), start, max_unary=max_unary, uncounted=uncounted)

    def tree(self, tree):
        return parse_tree(self.reference.text(tree))

    def knowledge(self, seed):
        """Some brackets, labels and siblings of each tree; or all of it."""
        rng, found = np.random.default_rng([seed, 2]), []
        for trees, k in zip(self.forests, self.true, strict=True):
            known = trees[k] if rng.random() < 0.2 else hidden(rng, trees[k])
            found.append((self.tree(known), np.array([agrees_in_part(known, tree) for tree in trees])))
        return found

    @cached_property
    def Y(self):
        return [self.tree(trees[k]) for trees, k in zip(self.forests, self.true, strict=True)]

    def feature(self, tree):
        """Rule counts, by the reference."""
        counts = self.reference.counts(tree)
        counts["start symbol", (tree[0],)] = 1
        return np.array([counts[lhs, tuple(map(str, rhs))] for lhs, rhs in self.grammar.features], dtype=float)

    def spans(self, tree, i=0):
        """Category, begin and end of each node, and where the second child begins, if there is one."""
        label, children = tree
        ends, found = [i], []
        for child in children:
            below = [] if isinstance(child, str) else self.spans(child, ends[-1])
            ends.append(below[-1][2] if below else ends[-1] + 1)
            found += below
        return [*found, (self.grammar.categories.index(label), i, ends[-1], ends[1] if len(children) > 1 else None)]

    def span_feature(self, x, tree):
        """Rule counts and span features, as the class documents them."""
        T, K = len(self.grammar.terminals), len(self.grammar.categories)
        tables, lengths = np.zeros((5, T + 1, K)), np.zeros((9, K))
        words = [self.grammar.terminals.index(word) for word in x]

        for k, i, j, split in self.spans(tree):
            tables[0, words[i], k] += 1
            tables[1, words[j - 1], k] += 1
            tables[2, words[i - 1] if i else T, k] += 1
            tables[3, words[j] if j < len(words) else T, k] += 1
            lengths[sum(j - i >= bound for bound in (2, 3, 4, 5, 7, 10, 15, 20)), k] += 1
            if split is not None:
                tables[4, words[split], k] += 1
        return np.concatenate([self.feature(tree), tables[:4].ravel(), lengths.ravel(), tables[4].ravel()])

    def other_inputs(self):
        return None  # the words are the trees'

    def joint_feature(self, x, tree):
        return self.span_feature(x, tree) if self.oracle.span_features else self.feature(tree)

    @cached_property
    def spaces(self):
        found = []
        for x, trees, k in zip(self.X, self.forests, self.true, strict=True):
            psi = np.array([self.joint_feature(x, tree) for tree in trees])
            loss = np.array([self.reference.loss(trees[k], tree, self.oracle.loss_name) for tree in trees])
            found.append(Space([self.tree(tree) for tree in trees], psi, loss, k))
        return found


class TemplateTrees(Trees):
    """Trees whose words have codes that templates of span features see; `tests/structures/test_spans.py` has what."""

    TEMPLATES = ("first.terminal", "length", "first-1.form last.form", "last+1.shape", "split-1.form split.terminal")
    COLUMNS = ("form", "shape")

    def __init__(self, seed, n_sentences=2, **options):
        own = {"span_features": self.TEMPLATES, "columns": self.COLUMNS, "span_bits": 5}
        super().__init__(seed, n_sentences, **own | options)
        self.X = [self.coded(x) for x in self.X]

    @staticmethod
    def coded(words):
        """Words with codes by their place."""
        return [Token(word, (ord(word[-1]) % 3, k % 4)) for k, word in enumerate(words)]

    def tree(self, tree):
        tree = super().tree(tree)
        words = iter(self.coded(tree.leaves()))

        def spelt(node):
            return Tree(node.label, [next(words) if isinstance(c, str) else spelt(c) for c in node.children])

        return spelt(tree)

    def joint_feature(self, x, tree):
        return self.oracle.joint_feature(x, self.tree(tree))


class VectorTrees(TemplateTrees):
    """Trees whose words have two vectors that span features see."""

    OF_VECTORS = (("first", 0, "far"), ("last", 1, "near"), ("split", -1, "near"), ("first", -1, "near"))
    TEMPLATES = (*PLAIN, "first.far", "last+1.near", "split-1.near", "first-1.near")
    COLUMNS = ()
    PLACES = {"near": slice(0, 1), "far": slice(1, 3)}

    def __init__(self, seed, n_sentences=2, **options):
        super().__init__(seed, n_sentences, vectors={"near": 1, "far": 2}, **options)

    @staticmethod
    def coded(words):
        """Words with numbers by their place."""
        numbers = [(k % 3 - 1, ord(word[-1]) % 4 / 2, k * k % 5 - 2) for k, word in enumerate(words)]
        return [Token(word, (), np.array(row, np.float32)) for word, row in zip(words, numbers, strict=True)]

    def joint_feature(self, x, tree):
        rows = [np.zeros((self.PLACES[name].stop - self.PLACES[name].start, len(self.grammar.categories)))
                for _, _, name in self.OF_VECTORS]  # fmt: skip
        for k, i, j, split in self.spans(tree):
            for (side, offset, name), row in zip(self.OF_VECTORS, rows, strict=True):
                word = {"first": i, "last": j - 1, "split": split}[side]
                if word is not None and 0 <= word + offset < len(x):
                    row[:, k] += x[word + offset].numbers[self.PLACES[name]]
        return np.concatenate([self.span_feature(x, tree), *map(np.ravel, rows)])


# --- alignments -----------------------------------------------------------------------------------


def paired_cells(alignment):
    """The pairs of an alignment, as places in both strings."""
    i, j = alignment.x_start, alignment.z_start
    for operation in alignment.operations.upper():
        if operation in b"M":
            yield i, j
        i += operation not in b"Z"
        j += operation not in b"X"


def agrees(alignment, known):
    """Whether an alignment has the known pairs, and leaves the letters unpaired that are known to be."""
    partner, unpaired_x, unpaired_z, i, j = set(), set(), set(), 0, 0
    for operation in known.operations:
        if operation in b"M":
            partner.add((i, j))
        elif operation in b"X":
            unpaired_x.add(i)
        elif operation in b"Z":
            unpaired_z.add(j)
        i += operation not in b"Zz"
        j += operation not in b"Xx"
    found = set(paired_cells(alignment))
    return partner <= found and not any(i in unpaired_x or j in unpaired_z for i, j in found)


def draw_contexts(rng, sizes):
    """None, one or two contexts of strings over these symbols; the means of halves and thirds never are a limit."""
    found = []
    for k in range(int(rng.choice([0, 0, 1, 2]))):
        scale = tuple(int(v) for v in rng.integers(0, 4, int(np.prod(sizes))))
        offsets = tuple(int(v) for v in np.unique(rng.integers(-2, 3, int(rng.integers(1, 4)))))
        found.append(Context(f"c{k}", scale, offsets, (0.7, 1.7, 2.7)[: int(rng.integers(1, 4))]))
    return tuple(found)


class Alignments(Case):
    """Pairs of strings with reference alignments, some of whose pairs are assessed."""

    returns_satisfied = False

    def __init__(self, seed, mode, gaps, *, n=1, loss="q", longest=4, tracks=None, banded=None):
        rng = self.rng = np.random.default_rng(seed)
        classes = tuple(int(k) for k in rng.integers(1, 3, int(rng.integers(0, 3)) if tracks is None else tracks))
        self.sizes = (int(rng.integers(1, 4)), *classes)
        banded = rng.random() < 0.3 if banded is None else banded
        band = tuple(int(b) for b in rng.integers(0, 3, 2)) if banded else None
        options = {"mode": mode, "gaps": gaps, "symmetric": bool(rng.random() < 0.5), "loss": loss}
        options |= {"letter_gaps": bool(rng.random() < 0.5), "window": int(rng.integers(0, 3)), "band": band}
        options["contexts"] = draw_contexts(np.random.default_rng([seed, 1]), self.sizes)
        self.oracle = SmithWatermanOracle(self.sizes[0], classes=classes, **options)
        self.reference = ReferenceAligner(self.sizes, **options)
        self.strings = [tuple(self.draw_string(k) for k in rng.integers(1, longest + 1, 2)) for _ in range(n)]
        self.alignments = [self.reference.alignments(len(x), len(z)) for x, z in self.strings]
        self.gold = [self._draw_paired(found) for found in self.alignments]
        self.assessed = [self._draw_assessed(path.count("M")) for _, _, path in self.gold]
        self.X = [(self.as_given(x), self.as_given(z)) for x, z in self.strings]
        self.Y = [self._marked(gold, marks) for gold, marks in zip(self.gold, self.assessed, strict=True)]

    @property
    def keeps_protocol(self):
        return self.augments and self.oracle.loss_name == "zero_one"

    def draw_string(self, length):
        return np.stack([self.rng.integers(0, size, length) for size in self.sizes], axis=1)

    def _draw_paired(self, alignments):
        paired = [a for a in alignments if "M" in a[2]]
        with_gap = [a for a in paired if not a[2].endswith("M")]
        chosen = with_gap if with_gap and self.rng.random() < 0.5 else paired
        return chosen[int(self.rng.integers(len(chosen)))]

    def _draw_assessed(self, n):
        assessed = self.rng.random(n) < 0.7
        assessed[int(self.rng.integers(n))] = True
        return assessed

    def _marked(self, gold, assessed):
        marks = iter(assessed)
        letters = "".join(("M" if next(marks) else "m") if c == "M" else c for c in gold[2])
        return Alignment(gold[0], gold[1], letters.encode())

    def whole(self):
        return [y._replace(operations=y.operations.upper()) for y in self.Y]

    def knowledge(self, seed):
        """Some operations in lower case; where all of them are open, alignments without any pair would agree."""
        if not self.augments:
            return None
        rng = np.random.default_rng(seed)
        found = []
        for space, y, (x, z) in zip(self.spaces, self.Y, self.strings, strict=True):
            whole = y.operations.upper()
            free = rng.random(len(whole)) < rng.choice([0.0, 0.5, 1.0])
            free[int(rng.choice([k for k, c in enumerate(whole) if c in b"M"]))] = False
            known = y._replace(operations=bytes(c + 32 if f else c for c, f in zip(whole, free, strict=True)))
            agree = [not free.any() and key(other) == key(known) for other in space.outputs]
            if free.any():
                agree = [agrees(other, known.whole(len(x), len(z))) for other in space.outputs]
            found.append((known, np.array(agree)))
        return found

    def other_outputs(self):
        for space in self.spaces:
            paired = (y for y, loss in zip(space.outputs, space.loss, strict=True) if loss and b"M" in y.operations)
            yield next(paired, None)

    def other_inputs(self):
        if max(self.sizes) == 1:
            return None
        x = (self.strings[0][0] + 1) % self.sizes
        return [(self.as_given(x), self.X[0][1]), *self.X[1:]]

    def as_given(self, string):
        return string if len(self.sizes) > 1 else string[:, 0]

    @cached_property
    def spaces(self):
        found = []
        for (x, z), all_of, gold, assessed in zip(self.strings, self.alignments, self.gold, self.assessed, strict=True):
            psi = np.array([self.reference.histogram(x, z, a) for a in all_of])
            loss = np.array([self.reference.loss(gold, assessed, a) for a in all_of])
            outputs = [Alignment(i, j, path.encode()) for i, j, path in all_of]
            outputs[all_of.index(gold)] = self._marked(gold, assessed)
            found.append(Space(outputs, psi, loss, all_of.index(gold)))
        return found


class Decoys(Alignments):
    """Homologues to be told from decoys: every alignment with a decoy is wrong, whatever the formulation."""

    augments = False
    returns_satisfied = True

    def __init__(self, seed, mode, gaps, **options):
        super().__init__(seed, mode, gaps, longest=3, **options)
        lengths = self.rng.integers(1, 4, (len(self.strings), 2))
        self.decoys = [[self.draw_string(k) for k in of_one] for of_one in lengths]

    def others(self):
        yield self.bind(stop=-1)
        yield self.bind(n_decoys=1)

    def bind(self, rescaling="margin", penalty="linear", *, stop=None, n_decoys=None):
        arrays, pairs, decoys = [], [], []
        for pair, others in zip(self.strings[:stop], [d[:n_decoys] for d in self.decoys], strict=False):
            first = len(arrays)
            pairs.append((first, first + 1))
            decoys.append(list(range(first + 2, first + 2 + len(others))))
            arrays += [self.oracle.encode(self.as_given(string)) for string in (*pair, *others)]
        references = References.of(Strings.of(arrays), pairs, self.Y[:stop], decoys)
        return self.oracle.bind_references(references, rescaling=rescaling, penalty=penalty)

    def constraints(self, rescaling, penalty):
        return [
            [
                (1.0, self.reference.histogram(x, z, gold) - self.reference.histogram(x, decoy, a))
                for decoy in decoys
                for a in self.reference.alignments(len(x), len(decoy))
            ]
            for (x, z), gold, decoys in zip(self.strings, self.gold, self.decoys, strict=True)
        ]


# --- taxonomies -----------------------------------------------------------------------------------


class Taxonomies(Case):
    """Documents, a taxonomy, some of its nodes as outputs; the joint feature by its definition."""

    is_single = True

    def __init__(
        self, seed, *, n_nodes=7, n_samples=3, tree=False, leaves=True, lists=False, attributes=None, loss=None
    ):
        rng = self.rng = np.random.default_rng(seed)
        edges = random_edges(rng, n_nodes, tree=tree)
        self.taxonomy, self.reference = Taxonomy(edges), ReferenceTaxonomy(edges)
        nodes = self.taxonomy.nodes
        if leaves:
            names = list(self.taxonomy.leaves)
        else:
            names = [nodes[k] for k in rng.choice(n_nodes, rng.integers(1, n_nodes + 1), replace=False)]
        self.names, self.K, self.F = names, len(names), int(rng.integers(1, 5))
        self.X = single(rng.normal(size=(n_samples, self.F)) * (rng.random((n_samples, self.F)) < 0.7))
        self.Y = rng.integers(0, self.K, n_samples)
        self.kind = attributes or rng.choice(["ancestors", "normalized", "flat", "matrix"])
        self.loss_kind = loss or rng.choice(["zero_one", "tree", "path", "matrix"])
        self.L = self._attribute_matrix()
        self.delta = self._losses()
        self.mask = np.ones((self.F, self.L.shape[1]), dtype=bool)
        options = {}
        if lists:
            n_listed = int(rng.integers(1, self.F + 1))
            self.mask[self.F - n_listed :] = rng.random((n_listed, self.L.shape[1])) < 0.6
            matrix = sp.csr_array(self.mask[self.F - n_listed :])
            options["lists"] = (matrix.indptr, matrix.indices)
        self.oracle = TaxonomyOracle(
            self.taxonomy,
            self.F,
            outputs=[nodes.index(name) for name in names],
            loss=self.delta if self.loss_kind == "matrix" else self.loss_kind,
            attributes=self.L if self.kind == "matrix" else self.kind,
            **options,
        )

    def _attribute_matrix(self):
        if self.kind == "matrix":
            return single(self.rng.normal(size=(self.K, 3)) * (self.rng.random((self.K, 3)) < 0.7))
        if self.kind == "flat":
            return np.eye(self.K)
        rows = [self.reference.attributes(z, normalized=self.kind == "normalized") for z in self.names]
        return np.array([[row.get(a, 0.0) for a in self.taxonomy.nodes[1:]] for row in rows])

    def _losses(self):
        if self.loss_kind == "matrix":
            return single(self.rng.uniform(0.2, 3.0, (self.K, self.K))) * (1.0 - np.eye(self.K))
        return np.array([[self.reference.loss(self.loss_kind, a, b) for b in self.names] for a in self.names])

    def joint_feature(self, i, k):
        """Features times attributes, in the layout of w."""
        psi = np.outer(self.X[i], self.L[k]) * self.mask
        n, stride = self.oracle.n_full, self.oracle.stride
        out = np.zeros(self.oracle.n_features)
        out[: n * stride].reshape(n, stride)[:, : psi.shape[1]] = psi[:n]
        listed = psi[n:][self.mask[n:]]
        out[n * stride : n * stride + len(listed)] = listed
        return out

    def knowledge(self, seed):
        rng = np.random.default_rng(seed)
        found = []
        for y in self.Y:
            agree = rng.random(self.K) < rng.choice([0.0, 0.4, 1.0])
            agree[y] = True
            known = np.flatnonzero(agree).tolist()
            found.append((set(known) if len(known) > 1 or rng.random() < 0.5 else known[0], agree))
        return found

    def scores(self, w):
        """Scores of all documents and outputs."""
        return np.array([space.psi @ w for space in self.spaces])

    @cached_property
    def spaces(self):
        return [
            Space(
                list(range(self.K)), np.array([self.joint_feature(i, k) for k in range(self.K)]), self.delta[y], int(y)
            )
            for i, y in enumerate(self.Y)
        ]


# --- bags, and oracles in Python ------------------------------------------------------------------


class Bags(Case):
    """Inputs with bags of candidate labels; the constraints are the corners of equation (6.7)."""

    augments = False

    def __init__(self, seed, n=3, K=3, d=3):
        rng = self.rng = np.random.default_rng(seed)
        self.K = K
        self.X = rng.normal(size=(n, d))
        self.Y = [set(rng.choice(K, m, replace=False).tolist()) for m in rng.integers(1, K, n)]
        self.oracle = AmbiguousOracle(K, d)

    def other_outputs(self):
        for bag in self.Y:
            yield {k for k in range(self.K) if k not in bag}

    @cached_property
    def spaces(self):
        labels = np.eye(self.K)
        return [
            Space(
                list(range(self.K)),
                np.array([np.outer(x, label).ravel() for label in labels]),
                np.array([float(k not in bag) for k in range(self.K)]),
                min(bag),
            )
            for x, bag in zip(self.X, self.Y, strict=True)
        ]

    def constraints(self, rescaling, penalty):
        return [
            [(b, psi) for b, psi in bag_reference.corners(x, bag, self.K) if b > 0.0]
            for x, bag in zip(self.X, self.Y, strict=True)
        ]


class Groups(Case):
    """Groups of rows with grades, and the outputs of each loss; in one of the groups they may say nothing."""

    augments = enumerates = False

    def __init__(self, seed, loss, n_grades=2, k=None, d=3):
        rng = self.rng = np.random.default_rng(seed)
        self.loss, self.k = loss, k
        self.X = [rng.normal(size=(n, d)).round(1) * (rng.random((n, d)) < 0.8) for n in (4, 2 + seed % 3, 3)]
        self.Y = [rng.permutation(np.arange(len(x)) % n_grades) for x in self.X]
        if seed % 2 and loss != "error":
            self.Y[1][:] = 0
        self.oracle = RankingOracle(d, loss, k)

    def other_outputs(self):
        for y in self.Y:
            other = y.copy()
            other[0] = 1 - min(other[0], 1)
            yield other

    def constraints(self, rescaling, penalty):
        found = []
        for x, y in zip(self.X, self.Y, strict=True):
            everything = ranking_reference.outputs(x, y, self.loss, self.k)
            table = [constraint(psi, loss, rescaling, penalty) for loss, psi in everything if loss > 1e-12]
            if rescaling != "slack":
                table += [(0.0, psi) for loss, psi in everything if loss <= 1e-12 and np.abs(psi).max() > 1e-12]
            found.append(table)
        return found


class LabelSets(Case):
    """Rows with all of their sets of labels; `shape` says which pairs of labels interact."""

    prefers_others = returns_satisfied = False

    def __init__(self, seed, shape, loss, n=3, L=3, d=2):
        rng = self.rng = np.random.default_rng(seed)
        pairs = [(a, b) for b in range(L) for a in range(b)]
        chain = [(int(rng.integers(0, b)), b) for b in range(1, L)]  # a tree
        self.edges = {"none": [], "forest": chain[: L - 1 - seed % 2], "graph": pairs}[shape]
        self.loss, self.L = loss, L
        self.X = rng.normal(size=(n, d)).round(1) * (rng.random((n, d)) < 0.8)
        self.Y = list(rng.integers(0, 2, (n, L)).astype(np.int8))
        self.oracle = LabelSetOracle(L, d, self.edges, loss)

    def loss_of(self, y, z):
        if self.loss == "f1":
            return 1.0 - 2.0 * sum(y & z) / (sum(y) + sum(z)) if any(y | z) else 0.0
        return float(sum(y != z) if self.loss == "hamming" else any(y != z))

    @cached_property
    def spaces(self):
        outputs = [np.array(z, dtype=np.int8) for z in product((0, 1), repeat=self.L)]
        found = []
        for x, y in zip(self.X, self.Y, strict=True):
            psi = [[v * on for v in x for on in z] + [z[a] * z[b] for a, b in self.edges] for z in outputs]
            true = next(k for k, z in enumerate(outputs) if (z == y).all())
            loss = np.array([self.loss_of(y, z) for z in outputs])
            found.append(Space(outputs, np.array(psi, dtype=float), loss, true))
        return found

    def knowledge(self, seed):
        """Some labels are not known."""
        rng, found = np.random.default_rng([seed, 1]), []
        for y, space in zip(self.Y, self.spaces, strict=True):
            known = np.where(rng.random(self.L) < rng.choice([0.0, 0.5, 1.0]), -1, y).astype(np.int8)
            found.append((known, np.array([((known < 0) | (z == known)).all() for z in space.outputs])))
        return found


class LabelledGraphs(Case):
    """Graphs with a number of nodes each; one of them has no edges."""

    prefers_others = False

    def __init__(self, seed, K, sizes, density, *, sparse=False, costs=False, **options):
        rng = np.random.default_rng(seed)
        self.K, F, Fe = K, int(rng.integers(1, 4)), int(rng.integers(1, 3))
        if costs:
            options["label_costs"] = rng.uniform(0.2, 3.0, K)
        self.oracle = GraphOracle(K, F, Fe, **options)
        self.parts = [graph_reference.random_graph(rng, n, density, F, Fe) for n in sizes]
        self.parts[-1] = self.parts[-1][0], self.parts[-1][1][:0], self.parts[-1][2][:0]
        self.X = [(sp.csr_array(x[0]), *x[1:]) for x in self.parts] if sparse else self.parts
        self.Y = [rng.integers(0, K, n).astype(np.int32) for n in sizes]

    def knowledge(self, seed):
        """Labels of nodes: each node's label, a set with it, or nothing; some graphs are known whole."""
        rng, found = np.random.default_rng([seed, 1]), []
        for y, space in zip(self.Y, self.spaces, strict=True):
            allowed = rng.random((len(y), self.K)) < rng.choice([0.0, 0.4, 1.0], len(y))[:, None]
            allowed[np.arange(len(y)), y] = True
            agree = np.array([allowed[np.arange(len(y)), z].all() for z in space.outputs])
            found.append((y if agree.sum() == 1 and rng.random() < 0.5 else allowed, agree))
        return found

    def other_inputs(self):
        rows, edges, features = self.parts[0]
        return [(rows, edges, features + 1.0), *self.parts[1:]]

    @cached_property
    def spaces(self):
        found, o = [], self.oracle
        for x, y in zip(self.parts, self.Y, strict=True):
            labellings = list(product(range(self.K), repeat=len(y)))
            psi = np.array([graph_reference.joint_feature(x, z, self.K, o.interactions) for z in labellings])
            costs = np.ones(self.K) if o.label_costs is None else o.label_costs
            loss = np.array(
                [sum(costs[a] for a, b in zip(y, z, strict=True) if a != b) for z in labellings], dtype=float
            )
            found.append(Space([np.array(z) for z in labellings], psi, loss, labellings.index(tuple(y))))
        return found


class Classes(Case):
    """Multiclass data with an oracle in Python; the loss is 0 or 1, so that it is its own root."""

    prefers_others = False

    def __init__(self, seed, form="pair", n=3, K=3, d=3):
        rng = self.rng = np.random.default_rng(seed)
        self.X, self.Y = rng.normal(size=(n, d)), [int(y) for y in rng.integers(0, K, n)]
        self.oracle = Multiclass(K, d, form=form)
        self.oracle.penalties = ("linear", "quadratic")

    @cached_property
    def spaces(self):
        K = self.oracle.n_classes
        return [
            Space(list(range(K)), np.array([self.oracle.dense(x, k) for k in range(K)]), 1.0 * (np.arange(K) != y), y)
            for x, y in zip(self.X, self.Y, strict=True)
        ]


@cache
def load_example(name):
    """A module of the folder `examples`; its classes can be pickled."""
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"examples_{name}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Matchings(Case):
    """The oracle of `examples/new_oracle.py`."""

    prefers_others = False

    def __init__(self, seed, n=3, size=3, d=3):
        rng = self.rng = np.random.default_rng(seed)
        self.X = [rng.normal(size=(size, size, d)) for _ in range(n)]
        self.Y = [rng.permutation(size) for _ in range(n)]
        self.oracle = load_example("new_oracle").MatchingOracle(d)

    @cached_property
    def spaces(self):
        found = []
        for x, y in zip(self.X, self.Y, strict=True):
            everything = [np.array(z) for z in permutations(range(len(y)))]
            psi = np.array([sum(x[i, j] for i, j in enumerate(z)) for z in everything])
            loss = np.array([float(sum(a != b for a, b in zip(y, z, strict=True))) for z in everything])
            found.append(Space(everything, psi, loss, [tuple(z) for z in everything].index(tuple(y))))
        return found


class Assignments(Case):
    """Small sets of nodes with all of their matchings; as arrays of all pairs, or as sparse rows of some."""

    prefers_others = False

    def __init__(self, seed, sizes, d=2, *, some=False, **options):
        rng = self.rng = np.random.default_rng(seed)
        self.oracle = AssignmentOracle(d, **options)
        self.tables, self.rooms, self.X = [], [], []
        for n, m in sizes:
            features = rng.integers(-2, 3, (n, m + 1, d)).astype(float)  # whole numbers: scores that tie
            there = rng.random((n, m + 1)) < 0.7 if some else np.ones((n, m + 1), dtype=bool)
            there[:, m] = there[:, m] & some  # feature of staying alone; without a row: nothing
            room = rng.integers(0, 3, m) if some else [self.oracle.capacity or n] * m
            self.tables.append(np.where(there[:, :, None], features, 0.0 if some else np.nan))
            self.tables[-1][:, m][~there[:, m]] = 0.0
            self.tables[-1][:, :m][~there[:, :m]] = np.nan
            self.rooms.append(room)
            if some:
                pairs = np.argwhere(there)[rng.permutation(there.sum())]
                rows = sp.csr_array(features[pairs[:, 0], pairs[:, 1]])
                self.X.append(Pairs((n, m), np.where(pairs == [[-9, m]], -1, pairs), rows, room))
            else:
                self.X.append(features[:, :m])
        self.true = [int(rng.integers(len(self.outputs(i)))) for i in range(len(sizes))]
        self.Y = [self.outputs(i)[k] for i, k in enumerate(self.true)]

    def outputs(self, i):
        table, room = self.tables[i], self.rooms[i]
        n, m = table.shape[0], table.shape[1] - 1
        found = []
        for y in product(range(-1, m), repeat=n):
            if any(y.count(j) > room[j] for j in range(m)) or any(np.isnan(table[a, j]).any() for a, j in enumerate(y)):
                continue
            if self.oracle.unmatched or y.count(-1) == max(n - sum(room), 0):
                found.append(np.array(y, dtype=np.int64))
        return found

    def other_inputs(self):
        i = max(i for i, y in enumerate(self.Y) if (y >= 0).any() or i == 0)
        X, x = list(self.X), self.X[i]
        if isinstance(x, Pairs):
            X[i] = replace(x, features=x.features + sp.csr_array(np.ones(x.features.shape)))
        else:
            X[i] = x + 1.0
        return X if (self.Y[i] >= 0).any() else None

    def knowledge(self, seed):
        rng = np.random.default_rng(seed)
        found = []
        for i, y in enumerate(self.Y):
            outputs = self.outputs(i)
            if rng.random() < 0.5:
                known = np.where(rng.random(len(y)) < 0.5, y, -2)
                agree = np.array([((known == -2) | (known == z)).all() for z in outputs])
            else:
                known = rng.random((len(y), self.tables[i].shape[1])) < 0.6
                known[np.arange(len(y)), y] = True
                agree = np.array([known[np.arange(len(y)), z].all() for z in outputs])
            found.append((known, agree))
        return found

    @cached_property
    def spaces(self):
        found = []
        for i, table in enumerate(self.tables):
            outputs, true = self.outputs(i), self.Y[i]
            psi = np.zeros((len(outputs), self.oracle.n_features))
            loss = np.zeros(len(outputs))
            for k, y in enumerate(outputs):
                for a, j in enumerate(y):
                    psi[k, : table.shape[2]] += table[a, j]
                    psi[k, table.shape[2] :] += j == -1
                    if j != true[a]:
                        loss[k] += self.oracle.missed_cost * (true[a] >= 0) + self.oracle.false_cost * (j >= 0)
            found.append(Space(outputs, psi, loss, self.true[i]))
        return found


class Orderings(Case):
    """Sets of items with all of their orders; `sparse`: rows as CSR matrices."""

    prefers_others = returns_satisfied = False

    def __init__(self, seed, sizes, d, p, loss="kendall", *, sparse=False):
        rng = np.random.default_rng(seed)
        self.oracle, self.p = OrderingOracle(d, p, loss), p
        self.parts = [ordering_reference.random_input(rng, n, d, p, sparse=0.5 * sparse) for n in sizes]
        self.X = [self.as_given(*part, sparse) for part in self.parts]
        self.Y = [rng.permutation(n).astype(np.int32) for n in sizes]

    def as_given(self, rows, table, sparse=False):
        rows = sp.csr_array(rows) if sparse else rows
        return (rows, table) if self.p else rows

    def other_inputs(self):
        rows, table = self.parts[0]
        changed = rows.copy()
        changed[0] += 1.0
        table = table + np.triu(np.ones(table.shape[:2]), 1)[:, :, np.newaxis]
        return [self.as_given(changed, table), *self.X[1:]]

    def knowledge(self, seed):
        """Some pairs of items; some orders are known whole."""
        rng, found = np.random.default_rng([seed, 1]), []
        for y, space in zip(self.Y, self.spaces, strict=True):
            pairs = np.array([*combinations(y, 2)], dtype=np.int64).reshape(-1, 2)
            pairs = pairs[rng.random(len(pairs)) < rng.choice([0.0, 0.4, 1.0])]
            agree = np.array([ordering_reference.agrees(z, pairs) for z in space.outputs])
            found.append((y if agree.sum() == 1 and rng.random() < 0.5 else pairs, agree))
        return found

    @cached_property
    def spaces(self):
        found = []
        for part, y in zip(self.parts, self.Y, strict=True):
            outputs = ordering_reference.permutations_of(len(y))
            psi = np.array([ordering_reference.joint_feature(*part, z) for z in outputs])
            loss = np.array([ordering_reference.loss(y, z, self.oracle.loss_name) for z in outputs])
            found.append(Space(outputs, psi, loss, next(k for k, z in enumerate(outputs) if (z == y).all())))
        return found


# --- the table ------------------------------------------------------------------------------------

ALIGNMENTS = [(mode, gaps) for mode in ("global", "semi_global", "local") for gaps in ("affine", "linear")]


def some_pairs(seed, mode, gaps, **options):
    return Alignments(seed, mode, gaps, n=2, longest=3 + seed % 2, **options)


# One maker per row: seed to case.
# --- dependency trees -----------------------------------------------------------------------------

ARC_TEMPLATES = ("h.word m.word dist", "h.tag b.tag m.tag dir", "m-1.tag m.word", "h+1.tag dir", "b.word")
VECTOR_TEMPLATES = ("m.near dir", "h+1.far", "dir h.near", "m-1.far")
LABEL_TEMPLATES = ("m.word", "m.tag m+1.tag dir", "h.word dir", "h.tag m.tag dist", "dist")


class Dependencies(Case):
    """Sentences of words and tags with all of their labelled trees."""

    is_single = True
    prefers_others = False

    def __init__(self, seed, lengths, n_labels, projective, *, root=False, vectors=None, **options):
        rng = self.rng = np.random.default_rng(seed)
        columns, vectors = ("word", "tag"), vectors or {}
        self.X = [rng.integers(2, 6, (n, 2)).astype(np.int32) for n in lengths]
        numbers = [rng.integers(-4, 5, (n, sum(vectors.values()))) / np.float32(4.0) for n in lengths]
        self.X = [
            np.hstack([x, more.astype(np.float32).view(np.int32)]) for x, more in zip(self.X, numbers, strict=True)
        ]
        self.n_labels, self.projective, self.root = n_labels, projective, 0 if root else None
        kind = EisnerOracle if projective else ArborescenceOracle
        labels = LABEL_TEMPLATES + VECTOR_TEMPLATES if vectors else LABEL_TEMPLATES
        templates = ArcTemplates(columns, ARC_TEMPLATES, labels, vectors)
        self.oracle = kind(n_labels, templates, arc_bits=5, row_bits=3, root_label=self.root, **options)
        self.reference = ReferenceArcs(columns, ARC_TEMPLATES, labels, 5, 3, 8, vectors)
        self.trees = [self._trees(n) for n in lengths]
        self.true = [int(rng.integers(len(trees))) for trees in self.trees]
        self.Y = [trees[k] for trees, k in zip(self.trees, self.true, strict=True)]

    def _trees(self, n):
        found = []
        for heads in all_heads(n, self.projective):
            for labels in product(range(self.n_labels), repeat=n):
                if self.root is None or all((h == 0) == (l == self.root) for h, l in zip(heads, labels)):
                    found.append(np.array([*zip(heads, labels)], dtype=np.int32))
        return found

    def other_inputs(self):
        X = [x.copy() for x in self.X]
        X[-1][0, 0] += 1
        return X

    def knowledge(self, seed):
        rng = np.random.default_rng(seed)
        found = []
        for y, trees in zip(self.Y, self.trees, strict=True):
            known = np.where(rng.random(y.shape) < 0.5, y, -1).astype(np.int32)
            found.append((known, np.array([((known < 0) | (known == tree)).all() for tree in trees])))
        return found

    @cached_property
    def spaces(self):
        found = []
        for x, trees, true in zip(self.X, self.trees, self.true, strict=True):
            n, arcs = len(x), {}
            for h, m, label in product(range(n + 1), range(1, n + 1), range(self.n_labels)):
                if h != m:
                    arcs[h, m, label] = self.reference.arc_feature(x, h, m, label)
            psi = np.array([sum(arcs[h, m, l] for m, (h, l) in enumerate(y.tolist(), 1)) for y in trees])
            loss = np.array([(y != trees[true]).any(axis=1).sum() for y in trees], dtype=float)
            found.append(Space(trees, psi, loss, true))
        return found


STRUCTURES = {
    "chain of order 1": lambda seed: Chains(seed, 2 + seed % 2, (3, 1, 4 - seed % 2), 1, ones=bool(seed % 3)),
    "chain of order 2": lambda seed: Chains(seed, 2 + seed % 2, (5 - 2 * (seed % 2), 1, 3), 2, ones=bool(seed % 3)),
    "chain of order 1, masks, end": lambda seed: Chains(seed, 3, (1, 4, 2), 1, end=True, masks=True),
    "chain of order 2, masks, end": lambda seed: Chains(seed, 3, (4, 1, 2), 2, end=True, masks=True),
    "chain, zero-one": lambda seed: Chains(seed, 3, (3, 2), 1 + seed % 2, loss="zero_one", masks=bool(seed % 3)),
    "chain, label costs": lambda seed: Chains(seed, 3, (3, 2), 1 + seed % 2, end=True, costs=True),
    "chain, many labels": lambda seed: Chains(seed, 9 + 8 * (seed % 2), (2, 1), 2 - seed % 2, end=seed > 2),
    "chain of order 1, language": lambda seed: Chains(seed, 2 + seed % 2, (3, 1, 4), 1, end=seed > 2, language=True),
    "chain of order 2, language": lambda seed: Chains(seed, 2 + seed % 2, (3, 1, 4), 2, end=seed > 2, language=True),
    "chain, language, zero-one": lambda seed: Chains(seed, 3, (3, 2), 1 + seed % 2, loss="zero_one", language=True),
    "chain, language, label costs": lambda seed: Chains(seed, 3, (3, 2), 1 + seed % 2, costs=True, language=True),
    "chain, language, many labels": lambda seed: Chains(seed, 9 + 8 * (seed % 2), (2, 1), 2 - seed % 2, language=True),
    "chain, language, bigrams": lambda seed: Chains(seed, 3, (4, 1, 2), 1 + seed % 2, n_bigrams=2, language=True),
    "chain of order 1, bigrams": lambda seed: Chains(
        seed, 2 + seed % 2, (3, 1, 4 - seed % 2), 1, n_bigrams=1 + seed % 3, end=seed > 2, ones=bool(seed % 3)
    ),
    "chain of order 2, bigrams, masks": lambda seed: Chains(seed, 3, (4, 1, 2), 2, n_bigrams=2, masks=True),
    "chain, bigrams, label costs": lambda seed: Chains(seed, 3, (3, 2), 1 + seed % 2, n_bigrams=2, costs="any"),
    "chain, bigrams, many labels": lambda seed: Chains(seed, 9 + 8 * (seed % 2), (2, 1), 2 - seed % 2, n_bigrams=2),
    "segments": lambda seed: Segments(seed, (4 + seed % 2, 1, 3), 1 + seed % 2, 1, 2 + seed % 2),
    "segments, no types": lambda seed: Segments(seed, (3, 1), 0, 2),
    "segments, language": lambda seed: Segments(
        seed, (4 + seed % 2, 1, 3, 5), 1 + seed % 2, 1, 2 + seed % 3, language=True
    ),
    "segments, label costs": lambda seed: Segments(seed, (3, 4), 1, seed % 3, costs=True),
    "greedy": lambda seed: GreedyChains(seed, 3, (3, 1, 2), seed % 4, ones=bool(seed % 3)),
    "greedy, masks": lambda seed: GreedyChains(seed, 4, (3, 1, 2), seed % 4, masks=True),
    "greedy, label costs": lambda seed: GreedyChains(seed, 3, (3, 2), seed % 4, costs=True),
    "greedy, bigrams": lambda seed: GreedyChains(seed, 3, (3, 1, 4), seed % 3, n_bigrams=1 + seed % 3, ones=seed > 3),
    "greedy, many labels": lambda seed: GreedyChains(seed, 9 + 8 * (seed % 2), (2, 3), seed % 4),
    "trees, zero-one": lambda seed: Trees(seed, loss="zero_one"),
    "trees, Hamming": lambda seed: Trees(seed, loss="hamming"),
    "trees, F1": lambda seed: Trees(seed, loss="f1"),
    "trees, span features": lambda seed: Trees(seed, n_sentences=2, span_features=True),
    "trees, templates": TemplateTrees,
    "trees, vectors": VectorTrees,
    **{f"alignments, {mode}, {gaps}": partial(some_pairs, mode=mode, gaps=gaps) for mode, gaps in ALIGNMENTS},
    "alignments, zero-one": lambda seed: some_pairs(seed, *ALIGNMENTS[seed % 6], loss="zero_one"),
    "alignments, decoys": lambda seed: Decoys(seed, *ALIGNMENTS[seed % 6], n=2),
    "taxonomy, tree loss": lambda seed: Taxonomies(seed, attributes="ancestors", loss="tree"),
    "taxonomy, path loss": lambda seed: Taxonomies(seed, attributes="normalized", loss="path", leaves=seed % 2 == 0),
    "taxonomy, zero-one": lambda seed: Taxonomies(seed, attributes="flat", loss="zero_one", tree=True),
    "taxonomy, matrices": lambda seed: Taxonomies(seed, attributes="matrix", loss="matrix", leaves=False),
    "taxonomy, many classes": lambda seed: Taxonomies(seed, n_nodes=24 + 9 * (seed % 2)),
    "taxonomy, lists": lambda seed: Taxonomies(seed, n_nodes=9, lists=True, leaves=seed % 2 == 0),
    "bags": lambda seed: Bags(seed, K=2 + seed % 3),
    **{f"groups, {loss}": partial(Groups, loss=loss) for loss in ("error", "f1", "prbep", "map")},
    "groups, prec_at_k": lambda seed: Groups(seed, "prec_at_k", k=1 + seed % 2),
    "groups, pairs": lambda seed: Groups(seed, "pairs", n_grades=2 + seed % 3),
    "groups, ndcg": lambda seed: Groups(seed, "ndcg", n_grades=2 + seed % 3, k=seed or None),
    **{
        f"label sets, {shape}, {loss}": lambda seed, shape=shape, loss=loss: LabelSets(
            seed, shape, loss, L=2 + seed % 3
        )
        for shape, loss in (
            ("none", "hamming"),
            ("none", "subset"),
            ("none", "f1"),
            ("forest", "hamming"),
            ("forest", "subset"),
            ("forest", "f1"),
            ("graph", "hamming"),
            ("graph", "subset"),
            ("graph", "f1"),
        )
    },
    "graphs, trees": lambda seed: LabelledGraphs(
        seed, 2 + seed % 2, (4, 1, 3), 0.0, interactions=("potts", "full")[seed % 2], sparse=seed % 3 == 0
    ),
    "graphs, junction trees": lambda seed: LabelledGraphs(
        seed, 2 + seed % 2, (4, 2, 3), 0.7, interactions=("symmetric", "full", "associative")[seed % 3], costs=seed > 3
    ),
    "projective dependencies": lambda seed: Dependencies(seed, (3, 1, 3 - seed % 2), 2, projective=True),
    "dependencies": lambda seed: Dependencies(seed, (3, 2), 2, projective=False),
    "projective dependencies, root's label": lambda seed: Dependencies(
        seed, (2 + seed % 3, 3), 3 - seed % 2, projective=True, root=True
    ),
    "dependencies, root's label": lambda seed: Dependencies(seed, (3 + seed % 2, 2), 2, projective=False, root=True),
    "dependencies, one label": lambda seed: Dependencies(seed, (4, 2), 1, projective=bool(seed % 2)),
    "projective dependencies, vectors": lambda seed: Dependencies(
        seed, (3, 2), 2, projective=True, vectors={"near": 1, "far": 2}
    ),
    "dependencies, vectors": lambda seed: Dependencies(
        seed, (3, 2), 3, projective=False, root=True, vectors={"far": 2, "near": 3}
    ),
    "matchings": lambda seed: Assignments(seed, ((3, 2 + seed % 2), (2, 3), (1 + seed % 2, 1)), missed_cost=2.0),
    "matchings of as many as there is room for": lambda seed: Assignments(
        seed, ((3, 2), (2, 3 - seed % 3)), capacity=1 + seed % 2, unmatched=False
    ),
    "matchings of some pairs, with capacities": lambda seed: Assignments(seed, ((3, 2), (2, 3)), some=True),
    "matchings, any number to one": lambda seed: Assignments(seed, ((2, 2), (3, 1)), capacity=None, false_cost=0.5),
    "orderings": lambda seed: Orderings(seed, (3 + seed % 2, 2, 4), 2, 1 + seed % 2),
    "orderings by items": lambda seed: Orderings(seed, (4, 2, 3 - seed % 3), 3, 0, sparse=bool(seed % 2)),
    "orderings by pairs": lambda seed: Orderings(seed, (4, 3), 0, 2 + seed % 2),
    "orderings, zero-one": lambda seed: Orderings(seed, (3, 1, 4), 2, seed % 3, "zero_one", sparse=bool(seed % 2)),
    "oracle in Python": lambda seed: Classes(seed, FORMS[seed % len(FORMS)]),
    "example of a new oracle": Matchings,
}


@cache
def case_of(structure, seed):
    """A case of a row; cases are not changed by tests."""
    return STRUCTURES[structure](seed)
