"""From parameters and trees to a model and its encoded examples."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from structsvm.features.inputs.seen_columns import SeenColumns
from structsvm.features.word_codes import OwnColumns
from structsvm.metrics import EVALB_DELETED
from structsvm.oracles.cky import CKYOracle
from structsvm.structures.grammar import Grammar
from structsvm.structures.rules import Rule, Terminal, category_of
from structsvm.structures.spans import Token
from structsvm.structures.trees import STRETCH, Tree
from structsvm.tasks.common.parameters import bits_for, check_group_unchanged, check_unchanged
from structsvm.tasks.common.units import later_vectors, units_of_vectors
from structsvm.tasks.grammar.model import GrammarModel, Trees, known_or_all_rules
from structsvm.tasks.grammar.parameters import (
    OF_FEATURES,
    OF_GRAMMAR,
    SETTLED,
    SpanFeatures,
    TreebankGrammar,
    features_of,
    grammar_of,
    make_templates,
)
from structsvm.tasks.grammar.templates import sees_rules
from structsvm.tasks.grammar.terminals import FOUND, UNKNOWN, Terminals, given_tokens
from structsvm.tasks.grammar.trees import encode_trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Weights
    from structsvm.tasks.grammar.parameters import Params

# Without bits: so many rows per word of the training trees, in powers of two, and their bounds; see `bits_for`.
SPAN_BITS = (0, 8, 16)


def prepare(
    params: Params, trees: Sequence[Tree], before: GrammarModel | None = None, weight: Weights | None = None
) -> tuple[GrammarModel, Trees]:
    """Return ``(model, examples)``: a model as parameters ask for it, and the trees encoded.

    Its grammar is that of the trees. `before` is a model to resume, whose grammar stays: ValueError, naming the
    parameter, if another one is asked for.
    """
    if before is not None:
        return _resumed(params, trees, before, weight)
    settings = grammar_of(params)
    terminals = Terminals.of_trees(params.terminals, trees, settings.min_count, features_of(params).columns)
    encoded = encode_trees(terminals, settings.v, trees)
    _settle_units(terminals, encoded, weight)
    for i, tree in enumerate(encoded):
        n = len(tree.leaves())
        if n > params.max_length:
            raise ValueError(f"tree {i}: {n} words are more than the cap max_length={params.max_length}")
    oracle = _oracle(params, terminals, _grammar_of_trees(params, terminals, encoded), encoded)
    model = GrammarModel(terminals, oracle, settings.v, seen=seen_words(params, trees))
    return model, Trees(encoded, weight=weight)


def _resumed(
    params: Params, trees: Sequence[Tree], before: GrammarModel, weight: Weights | None
) -> tuple[GrammarModel, Trees]:
    """A model to resume, whose parameters are unchanged, and trees encoded for it."""
    check_unchanged(params, before, SETTLED)
    check_group_unchanged("grammar", TreebankGrammar, params, before, OF_GRAMMAR)
    check_group_unchanged("features", SpanFeatures, params, before, OF_FEATURES)
    before.set_columns(features_of(params).columns)
    encoded = encode_trees(before.terminals, before.v, trees, before.oracle.grammar)
    own = before.terminals.own
    if own.vectors:
        tokens, numbers = _vectors(own, encoded)
        for token, row in zip(tokens, later_vectors(numbers, own), strict=True):
            token.numbers = row
    if before.result is None or before.oracle.loss_name != params.loss:
        oracle = before.oracle
        before = before.as_prior(_oracle(params, before.terminals, oracle.grammar, encoded, oracle))
    return before, Trees(encoded, weight=weight)


def _grammar_of_trees(params: Params, terminals: Terminals, encoded: Sequence[Tree]) -> Grammar:
    """The grammar read off encoded trees."""
    settings = grammar_of(params)
    rules = dict.fromkeys(rule for tree in encoded for rule in known_or_all_rules(tree, settings.v))
    if terminals.finds_tags:
        unknown = "<unk" if terminals.kind == "words" else ""  # any tags that are given may be new
        rare = [rule for rule in rules if any(isinstance(s, Terminal) and s.name.startswith(unknown) for s in rule.rhs)]
        rules |= dict.fromkeys(Rule(rule.lhs, (Terminal(UNKNOWN),)) for rule in rare if len(rule.rhs) == 1)
    made = {rule.lhs for rule in rules}
    starts = tuple(dict.fromkeys(tree.label for tree in encoded if tree.label in made))
    if not starts or not rules:
        raise ValueError(
            "no tree is known with its root, or no node with its children: there is no grammar to read off"
        )
    by_rule = sees_rules(make_templates(params, terminals))
    grammar = Grammar(
        rules,
        starts,
        h=int(not by_rule) if isinstance(settings.h, str) else settings.h,
        max_unary=max(map(_longest_chain, encoded)) if settings.max_unary is None else settings.max_unary,
        uncounted=EVALB_DELETED,
    )
    if settings.v == 1:
        check_categories(grammar)
    return grammar


def _tokens_of(tree: Tree) -> list[Token]:
    """The tokens of a tree."""
    return [token for token in tree.leaves() if isinstance(token, Token)]


def _vectors(own: OwnColumns, trees: list[Tree]) -> tuple[list[Token], NDArray[np.float32]]:
    """The tokens of trees, and their vectors side by side."""
    tokens = list(chain.from_iterable(map(_tokens_of, trees)))
    return tokens, np.array([token.numbers for token in tokens], np.float32).reshape(-1, len(own.number_names))


def _settle_units(terminals: Terminals, trees: list[Tree], weight: Weights | None) -> None:
    """Find the units of vectors, by the trees that count, and have the numbers of all tokens in them."""
    own = terminals.own
    if not own.vectors:
        return
    tokens, numbers = _vectors(own, trees)
    counts = slice(None) if weight is None else np.repeat(weight > 0.0, [len(_tokens_of(tree)) for tree in trees])
    own.units = units_of_vectors(numbers[counts], own.number_names)
    if own.units is not None:
        for token, row in zip(tokens, own.units.applied(numbers), strict=True):
            token.numbers = row


def seen_words(params: Params, trees: Iterable[Tree]) -> SeenColumns | None:
    """The frequent words of trees, and their tags: those in place of which words may be given, or those given with
    them. None for parsers whose terminals are tags.
    """
    if params.terminals not in FOUND:
        return None
    tokens = [token for tree in trees for token in given_tokens(tree)]
    words, tags = (Counter(token[k] for token in tokens if token[k]) for k in (0, 1))
    seen = SeenColumns.of({"word": words, "tag": tags}, len(tokens))
    if params.terminals == "predicted":
        return seen
    return SeenColumns({"word": seen.columns["word"], "tag": seen.columns["tag"]._replace(share=0.0)})


def pcfg(params: Params, trees: Sequence[Tree], smoothing: float) -> tuple[GrammarModel, Trees]:
    """Return ``(model, examples)``: the maximum-likelihood grammar of whole trees, without features of spans."""
    rules_only = copy.copy(params)
    rules_only.features = SpanFeatures(**features_of(params).get_params() | {"templates": ()})
    model, examples = prepare(rules_only, trees)
    model.estimate(examples.trees, smoothing)
    return model, examples


def check_categories(grammar: Grammar) -> None:
    """Raise ValueError for labels without annotations of which losses and features would see the same part."""
    first: dict[str, str] = {}
    for name in grammar.nodes:
        other = first.setdefault(category_of(name), name)
        if other != name:
            raise ValueError(
                f"the labels {other!r} and {name!r} differ only after a '^', where annotations stand; rename them"
            )


def _oracle(
    params: Params, terminals: Terminals, grammar: Grammar, encoded: list[Tree], before: CKYOracle | None = None
) -> CKYOracle:
    """The oracle of a grammar that parameters ask for, with the templates of the one before, if it has any."""
    bits: int | None
    if before is not None and before.span_features:
        texts, bits = before.templates.texts, before.templates.bits
    else:
        n_words = sum(len(tree.leaves()) for tree in encoded)
        texts, bits = make_templates(params, terminals), features_of(params).bits
        bits = bits_for(n_words, *SPAN_BITS, row=8 * len(grammar.categories)) if bits is None else bits
    return CKYOracle(
        grammar,
        loss=params.loss,
        span_features=texts,
        columns=terminals.columns,
        vectors=terminals.own.vectors,
        span_bits=bits,
        max_length=params.max_length,
        max_chart_bytes=params.max_chart_bytes,
    )


def _longest_chain(tree: Tree) -> int:
    """Rules in the longest chain of unary rules between nonterminals."""
    lengths: list[int] = []

    def make(node: Tree, children: list[int]) -> int:
        only = len(children) == 1 and isinstance(node.children[0], Tree)
        lengths.append(children[0] + (node.label != STRETCH) if only else 0)
        return lengths[-1]

    tree.map(make)
    return max(lengths)
