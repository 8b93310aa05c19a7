"""The parameters of `GrammarParser` and their groups, and those that a trained model keeps."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal

from structsvm.parameters import (
    CALLABLE,
    COUNT,
    FLAG,
    NONE,
    Interval,
    Kind,
    Options,
    ParameterGroup,
    declared,
    group_of,
    parameter,
)
from structsvm.solvers import Solver
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Training, lines
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.grammar.templates import default_templates
from structsvm.tasks.grammar.terminals import KINDS

if TYPE_CHECKING:
    from structsvm.features.word_codes import OwnFeatures
    from structsvm.tasks.grammar.terminals import Terminals

GRAMMAR_C = 1.0
# Passes of LaRank where nothing says how many, and from so many trees on: later ones raise the dual, and hardly F1.
PASSES, MANY_TREES, PASSES_OF_MANY = 6, 1000, 3
# Parameters that grammar and features depend on, beside the trees: the parser's, and those of its groups.
SETTLED = ("terminals", "prior", "max_length", "max_chart_bytes")
OF_GRAMMAR, OF_FEATURES = ("min_count", "h", "v", "max_unary"), ("templates", "bits")
# The prior of relative frequencies.
PCFG = "pcfg"
# How scores become a tree: the best one, or the one of the likeliest brackets.
TREE, BRACKETS = "tree", "brackets"


@declared
class TreebankGrammar(ParameterGroup):
    """How a grammar is read off a treebank: the parameter `grammar` of `GrammarParser`.

    Parameters
    ----------
    min_count : int, default=2
        For words: rarer ones, and unknown ones, are replaced by a class (capitals, digits, suffix). With 1 there
        are no classes, and no tree for a sentence with an unknown word.
    h : int, "auto" or None, default="auto"
        Horizontal Markovisation: so many children before it are known to a child. "auto": 0 where templates by rule see
        what stands between children, as they do by default, otherwise 1. None: exactly the rules of the
        treebank.
    v : int, default=1
        Vertical Markovisation: labels include their v - 1 nearest ancestors.
    max_unary : int, optional
        Longest chain of unary rules; None: as long as in the training trees.
    clean : bool, default=True
        Remove traces, empty nodes and functions (what follows ``-`` or ``=`` in a label) from the training trees.

    Examples
    --------
    >>> from structsvm.tasks import GrammarParser, TreebankGrammar
    >>> trees = ["(S (NP (NN ice)) (VP (VBZ is)))", "(S (NP (DT the) (NN cat)) (VP (VBZ eats)))"]
    >>> print(GrammarParser.from_counts(trees, grammar=TreebankGrammar(v=2)).grammar_text(weights=False))
    S -> NP^S VP^S
    NP^S -> 'NN'
    VP^S -> 'VBZ'
    NP^S -> 'DT' 'NN'
    """

    min_count: int = parameter(COUNT, default=2)
    h: int | Literal["auto"] | None = parameter(Interval(Integral, 0), Options(AUTO, None), default=AUTO)
    v: int = parameter(COUNT, default=1)
    max_unary: int | None = parameter(Interval(Integral, 0), NONE, default=None)
    clean: bool = parameter(FLAG, default=True)


@declared
class SpanFeatures(ParameterGroup):
    """The features of nodes that see their spans: the parameter `features` of `GrammarParser`.

    Parameters
    ----------
    templates : str or sequence of str, optional
        What nodes see, one per line, see `structsvm.structures.spans`. Columns: terminal, and except with tags word,
        prefix, end1 to end4, shape. None: those of `structsvm.tasks.grammar.templates`, except in `from_counts`. An
        empty sequence: nodes have no weights for their spans.
    bits : int, optional
        Features are hashed to ``2**bits`` rows of weights. None: by the number of words, up to 16.
    columns : callable, optional
        From the words of a sentence, a list of str, to attributes of each: a str, or a vector, a 1-D array of as many
        numbers for each word, or a list of these. They are columns ``own1``, ``own2`` ... of templates, with default
        ones. Model files do not contain it: call ``set_params(features__columns=...)`` after `load`. See
        `structsvm.features.word_codes` for `WordVectors` and `VectorClusters`.

    Examples
    --------
    >>> from structsvm.tasks import GrammarParser, SpanFeatures
    >>> trees = ["(S (NP (NN ice)) (VP (VBZ is)))", "(S (NP (DT the) (NN cat)) (VP (VBZ eats)))"]
    >>> parser = GrammarParser(features=SpanFeatures(templates="length"), random_state=0)
    >>> len(parser.fit(trees).coef_) > len(parser.set_params(features__templates=()).fit(trees).coef_) == 4
    True
    """

    templates: str | Sequence[str] | None = parameter(
        Kind((str, list, tuple), "a str or a list of str"), NONE, default=None
    )
    bits: int | None = parameter(Interval(Integral, 1, 24, closed="both"), NONE, default=None)
    columns: OwnFeatures | None = parameter(CALLABLE, NONE, default=None)


@declared
class GrammarParserParameters(Training):
    """The parameters of `GrammarParser`."""

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")
    loss: str = parameter(Options("hamming", "f1", "zero_one", "log"), default="hamming")
    probability: bool = parameter(FLAG, default=False)
    terminals: str = parameter(Options(*KINDS), default="tags")
    grammar: TreebankGrammar | None = group_of(TreebankGrammar)
    features: SpanFeatures | None = group_of(SpanFeatures)
    on_no_parse: str = parameter(Options("fragments", "flat", "raise"), default="fragments")
    decode: str | None = parameter(Options(BRACKETS, TREE), NONE, default=None)
    prior: str | None = parameter(Options(PCFG, None), default=PCFG)
    max_length: int = parameter(COUNT, default=500)
    max_chart_bytes: int = parameter(Interval(Integral, 1, 2**63 - 1, closed="both"), default=2**31)


# The parameters of a parser, or what the command line has read of them.
Params = GrammarParserParameters | SimpleNamespace


def grammar_of(params: Params) -> TreebankGrammar:
    """How the grammar is read off the treebank."""
    return params.grammar or TreebankGrammar()


def features_of(params: Params) -> SpanFeatures:
    """The features of spans."""
    return params.features or SpanFeatures()


def make_templates(params: Params, terminals: Terminals) -> tuple[str, ...]:
    """The templates of span features that parameters ask for."""
    given = features_of(params).templates
    if given is None:
        # The log loss stores a number per feature that the trees of a sentence can have.
        own = terminals.own
        return default_templates(terminals.kind, own.names, own.vectors, rules=params.loss != "log")
    texts = lines(given) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"The 'templates' parameter of SpanFeatures must have str. Got {text!r:.80} instead.")
    return texts
