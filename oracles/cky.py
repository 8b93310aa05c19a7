"""Parse trees under a weighted context-free grammar, with exact inference (SVMstruct, sections 2 and 5.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.oracles._cky import LOSSES, Parser, TreeProblem
from structsvm.oracles.enumeration.kbest import derivations, fragments
from structsvm.parameters import COUNT, Interval, Kind, Options, check_arguments, checked_k
from structsvm.protocol import Oracle, Penalty, Rescaling, checked_weights
from structsvm.structures.grammar import Grammar
from structsvm.structures.known_trees import AllowedRows, KnownTrees, is_partial, known_spans
from structsvm.structures.rules import category_of
from structsvm.structures.spans import PLAIN, SpanTemplates
from structsvm.structures.trees import Tree

__all__ = ["CKYOracle", "NoParseError"]

BATCH = 400  # words of sentences that are parsed in one call


class NoParseError(ValueError):
    """A sentence without a parse in the grammar.

    Examples
    --------
    >>> from structsvm.oracles.cky import CKYOracle
    >>> CKYOracle("S -> 'a' 'b'").argmax(["a", "a"], [0.0])
    Traceback (most recent call last):
        ...
    structsvm.oracles.cky.NoParseError: the grammar has no tree for the sentence 'a a'
    """


class CKYOracle(Oracle):
    """Trees of a context-free grammar.

    An input x is a sentence, a list of names of terminals; an output y is a `Tree` whose words are those
    terminals. The joint feature counts the rules of the grammar in the tree (paper, section 2 and figure 1).

    Parameters
    ----------
    grammar : Grammar or str
        A grammar, or its text.
    loss : {"f1", "hamming", "zero_one", "log"}, default="f1"
        With g labelled spans (category, begin, end) of counted nodes in the true tree, p in the other and c in
        both: ``1 - F1 = 1 - 2 c / (g + p)``, ``g + p - 2 c``, or 1 for any other tree. A different tree with the same
        spans (other labels that are not counted, a chain in another order) counts as having one span more. "log": as
        "zero_one" where a loss is needed, but for training by `structsvm.solvers.ConditionalLikelihood`.
    span_features : bool or sequence of str, default=False
        Whether nodes also have weights for their spans, per category: templates of what they see, see
        `structsvm.structures.spans`. True: the first and the last word, the words before and after, the length, and the
        first word of the second child of a binary (or binarised) rule.
    columns : sequence of str
        Columns of words that templates see beside terminals. Each word is then a `structsvm.structures.spans.Token`.
    vectors : mapping of str to int, optional
        Further columns, which have vectors of so many numbers: `numbers` of each word, side by side.
    span_bits : int, default=16
        Rows of weights for what templates see, ``2**span_bits``, except for "length" and for terminals alone, which
        have their own rows.
    max_length : int, default=500
        Maximum length of a sentence, in words.
    max_chart_bytes : int, default=2**31
        Maximum size of a chart.

    Attributes
    ----------
    n_features : int
        ``len(grammar.features)`` (rules and, if there are several, start symbols), and K more per row of span features,
        for K categories: with ``span_features=True`` there are 5 (T + 1) + 9 rows, for T terminals. Rows by rule have
        a number per pair of children and category of their parent; those of vectors come last.

    Notes
    -----
    Exact for all losses, both rescalings and all penalties; expectations by the inside-outside algorithm. A chart takes
    8 bytes per span and symbol that can be derived from the sentence's words, and 16 per rule and possible end of its
    left child; its time is that of a maximum over contiguous numbers per rule and span of a left child. Ctrl-C
    interrupts it. See `structsvm.oracles._cky` for the cost of loss-augmented inference; losses that count take 24
    bytes more per possible pair of counts, and sums over all trees twice as much again as the chart's values.
    `max_chart_bytes` limits the sum of these.

    Examples
    --------
    >>> from structsvm.oracles.cky import CKYOracle
    >>> oracle = CKYOracle("S -> S S | 'a' | 'b'")
    >>> print(oracle.argmax(["a", "b"], [0.0] * oracle.n_features))
    (S (S a) (S b))
    """

    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(
        self,
        grammar: Grammar | str,
        *,
        loss: str = "f1",
        span_features: bool | Sequence[str] = False,
        columns: Sequence[str] = (),
        vectors: Mapping[str, int] | None = None,
        span_bits: int = 16,
        max_length: int = 500,
        max_chart_bytes: int = 2**31,
    ) -> None:
        check_arguments(
            "CKYOracle",
            locals(),
            grammar=Kind((Grammar, str), "a Grammar or text"),
            loss=Options(*LOSSES),
            span_bits=Interval(Integral, 1, 24, closed="both"),
            max_length=COUNT,
            max_chart_bytes=Interval(Integral, 1, 2**63 - 1, closed="both"),
        )
        self.grammar = Grammar(grammar) if isinstance(grammar, str) else grammar
        self.loss_name, self.span_features = loss, bool(span_features)
        texts = (PLAIN if span_features else ()) if isinstance(span_features, bool) else span_features
        self.templates = SpanTemplates(texts, columns, int(span_bits), len(self.grammar.terminals), vectors)
        self.max_length, self.max_chart_bytes = int(max_length), int(max_chart_bytes)
        n_rules, n_spans = len(self.grammar.features), self.templates.n_rows * len(self.grammar.categories)
        n_spans += self.templates.n_rule_rows * len(self.grammar.arrays["pair_left"])
        n_spans += self.templates.n_number_rows * len(self.grammar.categories)
        self.n_features = n_rules + n_spans
        if self.n_features >= 2**31:
            raise ValueError(f"{n_rules} rules and {n_spans} span features are more than 2**31 weights")

    def parser(self) -> Parser:
        """A new parser with its own chart, for one thread and many sentences.

        Methods that are given one take the weights as `check_weights` returned them.
        """
        return Parser(self.grammar, self.n_features, self.templates, self.max_length, self.max_chart_bytes)

    def words(self, x: Sequence[str]) -> NDArray[np.int32] | None:
        """The words of a sentence as `SpanTemplates.keys` takes them; None if the grammar lacks one of its terminals.

        Raises
        ------
        ValueError
            For a word without the codes or the numbers that templates need.
        """
        terminal_ids = self.grammar.sentence(x)
        return None if terminal_ids is None else self._coded(x, terminal_ids)

    def _coded(self, x: Sequence[str], terminal_ids: NDArray[np.int32]) -> NDArray[np.int32]:
        templates, parts = self.templates, [terminal_ids]
        for name, n, dtype, what in (
            ("codes", len(templates.columns), np.int32, f"codes of the columns {', '.join(templates.columns)}"),
            ("numbers", templates.n_numbers, np.float32, f"vectors of {templates.n_numbers} numbers together"),
        ):
            if n == 0:
                continue
            rows = [getattr(word, name, ()) for word in x]
            short = next((word for word, row in zip(x, rows, strict=True) if len(row) != n), None)
            if short is not None:
                raise ValueError(f"the word {short!r:.80} has no {what}")
            parts.append(np.array(rows, dtype=dtype).reshape(-1, n).view(np.int32))
        return np.column_stack(parts)

    def bind(
        self,
        X: Sequence[Sequence[str]] | None,
        Y: Sequence[Tree],
        *,
        rescaling: Rescaling | None = "margin",
        penalty: Penalty | None = "linear",
    ) -> TreeProblem:
        """Bind training trees; see `Oracle.bind`. X may be None: the words of the trees are used.

        Trees may be known in part, see `structsvm.structures.known_trees`.
        """
        self.check_formulation(rescaling, penalty)
        words: list[NDArray[np.int32]] = []
        rows: list[NDArray[np.int32]] = []
        partial: list[Tree | None] = []
        for i, tree in enumerate(Y):
            try:
                partial.append(tree if is_partial(tree) else None)
                sentence, derivation = self._partial(tree) if partial[i] else self.grammar.encode(tree)
                if len(sentence) > self.max_length:
                    raise ValueError(f"{len(sentence)} words are more than the cap max_length={self.max_length}")
            except ValueError as error:
                raise ValueError(f"tree {i}: {error}") from None
            words.append(self._coded(tree.leaves(), sentence))
            rows.append(derivation)
        if X is not None:
            if len(X) != len(words):
                raise ValueError(f"X has {len(X)} sentences, Y has {len(words)} trees")
            for i, (x, sentence) in enumerate(zip(X, words, strict=True)):
                if list(x) != [self.grammar.terminals[t] for t in sentence[:, 0]]:
                    raise ValueError(f"tree {i} does not have the words of the sentence")
        known = KnownTrees.of(self.grammar, partial)
        return TreeProblem(
            self,
            *_joined(words, (0, 1 + len(self.templates.columns) + self.templates.n_numbers)),
            *_joined(rows, (0, 6)),
            None,
            known,
            rescaling=rescaling,
            penalty=penalty,
        )

    def _partial(self, tree: Tree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The terminals of a tree that is known in part, and no derivation."""
        sentence = self.grammar.sentence(tree.leaves())
        if sentence is None:
            word = next(word for word in tree.leaves() if word not in self.grammar.terminal_number)
            raise ValueError(f"the grammar has no terminal {word!r}")
        return sentence, np.empty((0, 6), dtype=np.int32)

    def disagreeing(self, Y: Sequence[Tree]) -> dict[int, str]:
        """The trees, by their index, with which no tree of the grammar agrees, and why."""
        rows, why, others = AllowedRows(self.grammar), dict[int, str](), list[int]()
        for i, tree in enumerate(Y):
            if is_partial(tree):
                try:
                    self._partial(tree)
                    for what in known_spans(tree).values():
                        rows.number(what)
                    others.append(i)
                except ValueError as error:
                    why[i] = str(error)
        found = self.bind(None, [Y[i] for i in others], rescaling=None).disagreeing()
        return why | {others[k]: "the grammar has no tree that agrees with what is known of it" for k in found}

    # ---- the protocol on single objects ---------------------------------------------------------

    def may_have_twins(
        self,
        words: NDArray[np.int32],
        offsets: NDArray[np.int64],
        nodes: NDArray[np.int32],
        node_offsets: NDArray[np.int64],
    ) -> NDArray[np.uint8]:
        """By tree: whether another one may have just its counted nodes, see `Grammar.may_have_twin`."""
        spans, derivations = pairwise(offsets.tolist()), pairwise(node_offsets.tolist())
        found = [
            self.grammar.may_have_twin(words[a:b, 0], nodes[c:d])
            for (a, b), (c, d) in zip(spans, derivations, strict=True)
        ]
        return np.array(found, dtype=np.uint8)

    def joint_feature(self, x: Sequence[str], y: Tree) -> NDArray[np.float64]:
        words, rows = self.grammar.encode(y)
        grammar, K = self.grammar, len(self.grammar.categories)
        keys = self.templates.keys(self._coded(y.leaves(), words)) if self.span_features else None
        arrays = grammar.arrays
        psi = np.zeros(self.n_features)
        n_pairs, bound = len(arrays["pair_left"]), len(grammar.features) + K * self.templates.n_rows
        of_numbers = self.n_features - K * self.templates.n_number_rows
        spans, numbers = psi[len(grammar.features) : bound].reshape(-1, K), psi[of_numbers:].reshape(-1, K)
        rules = psi[bound:of_numbers].reshape(-1, max(n_pairs, 1))
        start = arrays["start_feature"][grammar.node_number[y.label]]
        psi[start] += start >= 0
        for symbol, i, j, unary, rule, split in rows.tolist():
            labels = [grammar.nodes[symbol]] if symbol < len(grammar.nodes) else []
            if unary >= 0:
                labels = list(grammar.chains[unary])
                for k in range(len(labels) - 1):
                    psi[arrays["chain_feature"][grammar.chain_number[tuple(labels[k:])]]] += 1.0
            if rule >= 0:
                feature = arrays["lexical_feature" if split < 0 else "rule_feature"][rule]
                psi[feature] += feature >= 0
            if keys is None:
                continue
            categories = [grammar.categories.index(category_of(label)) for label in labels]
            for category in categories:
                np.add.at(spans[:, category], self.templates.rows(keys, i, j), 1.0)
                numbers[:, category] += self.templates.numbers(keys, i, j - 1)
            if split >= 0 and categories:
                numbers[:, categories[-1]] += self.templates.numbers(keys, None, None, split)
                np.add.at(spans[:, categories[-1]], self.templates.split_rows(keys, split), 1.0)
            if split >= 0:
                rows_ = self.templates.rule_rows(keys, split, None if categories else i)
                np.add.at(rules[:, arrays["rule_pair"][rule]], rows_, 1.0)
        return psi

    def loss(self, y_true: Tree, y: Tree) -> float:
        if y == y_true:
            return 0.0
        true, other = self.counted_spans(y_true), self.counted_spans(y)
        g, p, c = len(true), len(other), len(true & other)
        if self.loss_name in ("zero_one", "log"):
            return 1.0
        if c == g == p:
            p += 1
        return float(g + p - 2 * c) if self.loss_name == "hamming" else 1.0 - 2.0 * c / (g + p)

    def counted_spans(self, tree: Tree) -> set[tuple[str, int, int]]:
        """The labelled spans that losses count: a set of (category, begin, end)."""
        spans = ((category_of(label), i, j) for label, i, j in tree.spans())
        return {span for span in spans if span[0] not in self.grammar.uncounted}

    def argmax(
        self, x: Sequence[str], w: ArrayLike, y_true: Tree | None = None, rescaling: Rescaling | None = None
    ) -> Tree:
        if y_true is None:
            found = self.parse(x, w)
            if found is None:
                raise NoParseError(f"the grammar has no tree for the sentence {' '.join(x)!r:.200}")
            return found[0]
        return self.grammar.decode(self.bind([x], [y_true], rescaling=rescaling).most_violated(0, w), x)

    def complete(self, x: Sequence[str], known: Tree, w: ArrayLike) -> Tree:
        rows = self.bind([x], [known]).complete(0, self.check_weights(w)).reshape(-1, 6)
        return self.grammar.decode(rows, x)

    def expect(self, x: Sequence[str], w: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        coded = self.words(x)
        log_sum, psi = self.parser().expect(coded, self.check_weights(w)) if coded is not None else (-np.inf, None)
        if psi is None or log_sum == -np.inf:
            raise NoParseError(f"the grammar has no tree for the sentence {' '.join(x)!r:.200}")
        return log_sum, psi

    def log_sum(self, x: Sequence[str], w: ArrayLike, *, parser: Parser | None = None) -> float:
        """The log of the sum of exp(score) over all trees of a sentence, -inf if the grammar has none."""
        coded = self.words(x)
        return -np.inf if coded is None else (parser or self.parser()).total(coded, self._weights(w, parser))

    def brackets(
        self, x: Sequence[str], w: ArrayLike, least: float, *, has_tags: bool = False, parser: Parser | None = None
    ) -> list[tuple[int, int, str, float]]:
        """Labelled spans with their probabilities under p(tree) ~ exp(score), those of at least `least`, by place.

        A label that trees have twice over one span, in a chain, counts with the expected number of its nodes there, up
        to 1. `has_tags`: nodes right above words are tags, and left out. Empty where the grammar has no tree.
        """
        coded = self.words(x)
        if coded is None:
            return []
        chances = (parser or self.parser()).brackets(coded, self._weights(w, parser), has_tags)
        begins, ends, labels = np.nonzero(chances >= least)
        names, values = self.grammar.categories, np.minimum(chances[begins, ends, labels], 1.0)
        rows = zip(begins.tolist(), ends.tolist(), labels.tolist(), values.tolist(), strict=True)
        return [(i, j, names[k], p) for i, j, k, p in rows if names[k] not in self.grammar.uncounted]

    # ---- parsing --------------------------------------------------------------------------------

    def parse(
        self, x: Sequence[str], w: ArrayLike, *, words: Sequence[str | Tree] | None = None, parser: Parser | None = None
    ) -> tuple[Tree, float] | None:
        """The best tree of a sentence and its score, or None if the grammar has none.

        `words` replace the terminals in the tree, words or trees; default: the terminals.
        """
        return next(self.parse_all([x], w, words=None if words is None else [words], parser=parser))

    def parse_all(
        self,
        X: Sequence[Sequence[str]],
        w: ArrayLike,
        *,
        words: Sequence[Sequence[str | Tree]] | None = None,
        parser: Parser | None = None,
        cost: float | None = None,
    ) -> Iterator[tuple[Tree, float] | None]:
        """`parse` of each sentence, a lazy iterator. A given parser must not be used meanwhile.

        With a `cost`: under p(tree) ~ exp(score), the labelled spans whose probabilities less it have the largest sum,
        and this sum (Goodman 1996). Such a tree may have rules that the grammar does not have. What is in no tree
        at least e^-3 as probable as the best one has no probability.
        """
        weights, parser, read = self._weights(w, parser), parser or self.parser(), 0
        parsed: list[Any] = []  # trees of the batch at work, the next one last
        terminal_ids = [self.grammar.sentence(x) for x in X]
        known = [(x, found) for x, found in zip(X, terminal_ids, strict=True) if found is not None]
        made = self.grammar.decode if cost is None else self.grammar.tree_of
        if known:
            joined, offsets = _joined([found for _, found in known], (0,))
            parser.read(self._coded([word for x, _ in known for word in x], joined), offsets)
        for ids, shown in zip(terminal_ids, X if words is None else words, strict=True):
            found = None
            if ids is not None:
                if not parsed:
                    stop = int(np.searchsorted(offsets, offsets[read] + BATCH, side="right")) - 1
                    ends, rows, values = parser.parse_read(read, max(stop, read + 1), weights, cost)
                    parsed = list(zip(np.split(rows, ends), values.tolist()))[len(ends) - 1 :: -1]
                    read += len(parsed)
                found = parsed.pop()
            yield None if found is None or not len(found[0]) else (made(found[0], shown), found[1])

    def kbest(
        self,
        x: Sequence[str],
        w: ArrayLike,
        k: int | None = None,
        *,
        words: Sequence[str | Tree] | None = None,
        parser: Parser | None = None,
    ) -> Iterator[tuple[Tree, float]]:
        """The trees of a sentence with their scores, best first: a lazy iterator over the best k (None: all).

        A given parser, and its weights, must not be used or changed meanwhile.
        """
        k = k if k is None else checked_k(k)
        coded, weights = self.words(x), self._weights(w, parser)
        if coded is None:
            return iter(())
        parser, weights = (self.parser(), weights.copy()) if parser is None else (parser, weights)
        ranked = islice(derivations(parser, coded, weights), k)
        return ((self.grammar.decode(rows, words or x), score) for rows, score in ranked)

    def fragments(
        self, x: Sequence[str], w: ArrayLike, *, words: Sequence[str | Tree] | None = None, parser: Parser | None = None
    ) -> list[Tree | str]:
        """The fewest constituents side by side over a sentence, and of these the best.

        Words in none of them stand alone, as in `words` (default: the terminals); so do those that the grammar
        does not have.
        """
        words, weights, parser = list(words or x), self._weights(w, parser), parser or self.parser()
        found: list[Tree | str] = []
        for is_known, run in groupby(range(len(words)), lambda k: x[k] in self.grammar.terminal_number):
            part = list(run)
            coded = self.words([x[k] for k in part]) if is_known else None
            alone = [words[k] for k in part]
            if coded is not None:
                alone = [self.grammar.decode(rows, alone) for rows in fragments(parser, coded, weights)]
            found += alone
        return found

    def check_weights(self, w: ArrayLike) -> NDArray[np.float64]:
        """Return the weights as a float64 array of n_features finite values; raises ValueError."""
        return checked_weights(w, self.n_features, np.float64, finite=True)

    def _weights(self, w: ArrayLike, parser: Parser | None) -> NDArray[np.float64]:
        return self.check_weights(w) if parser is None else np.asarray(w)


def _joined(arrays: list[NDArray[np.int32]], empty: tuple[int, ...]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The concatenated arrays, and the start of each."""
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int64)
    return (np.concatenate(arrays) if arrays else np.empty(empty, dtype=np.int32)), offsets
