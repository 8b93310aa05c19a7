"""The parameters of `SemanticParser`, and of its methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any

from structsvm.parameters import (
    CALLABLE,
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Interval,
    Kind,
    Options,
    ParameterGroup,
    Seed,
    check_arguments,
    declared,
    parameter,
)
from structsvm.solvers import LatentSVM, Solver
from structsvm.solvers.base import DualSolver
from structsvm.structures.meanings import MeaningGrammar
from structsvm.tasks.common.parameters import Running, param_from_json
from structsvm.tasks.common.solver import AUTO, SOLVERS
from structsvm.tasks.semantics._ospas import STRATEGIES
from structsvm.tasks.semantics.features import MAX_WINDOW
from structsvm.tasks.semantics.likelihood import FEATURES, LEARNERS, USUAL

DUAL = [name for name, kind in SOLVERS.items() if issubclass(kind, DualSolver)]
LOSSES = "hamming", "f1"

# A grammar, its text, or the path of a file.
GrammarLike = MeaningGrammar | str | os.PathLike[str]

WINDOW = Interval(Integral, 0, MAX_WINDOW, closed="both")


@declared
class Hybrid(ParameterGroup):
    """Hybrid trees: a meaning is a tree of units, each of which covers a stretch of words, or none (Lu 2014).

    Parameters
    ----------
    solver : {"likelihood", "perceptron", "larank", "cutting_plane", "frank_wolfe", "passive_aggressive"} or Solver
        "likelihood" (the default): log p(bag), summed over derivations. "perceptron": the averaged perceptron, with
        steps for the best derivations instead. The others, names or objects, maximise a margin of the units that are
        wrong in their place (`structsvm.oracles.hybrid`), in a `structsvm.LatentSVM` that completes derivations and
        bags; an object has its own C, `max_iter`, `random_state` and `checkpoint`. By name: C = 3, completed after each
        of at most 20 passes, until no completion changes (`max_iter`: passes before each).
    loss : {"hamming", "f1"}, default="hamming"
        Of solvers of the dual, inside inference: the number of units that are wrong in their place, or one less the F1
        of the units; and a part for words that belong to another unit than they should.
    features : sequence of {"affixes", "shape", "bigrams", "borders", "inside"}, optional
        Beside those of a unit with its words, with words anywhere, and of slots with what fills them: beginnings and
        ends of words; their shape (``dx``); pairs of words; words at and beyond the borders of spans; all words of a
        unit's span, including those of its arguments, and the span's length. Default: affixes, bigrams and borders.
    lexicon : dict, optional
        From phrases of a sentence to names of the meaning language (``{"big apple": "cityid('new york')"}``), known
        ones or similar ones.
    executor : callable, optional
        Returns whether the text of a meaning can be run; others are not predicted. Not in model files. When C is
        chosen, `fit` also calls it, on the predictions for held-out sentences.
    abstain_below : float, optional
        Predict nothing for a sentence whose best meaning has a lower probability.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_house
    >>> from structsvm.tasks import Hybrid, SemanticParser
    >>> house = make_ambig_house(20, 1, random_state=0)
    >>> parser = SemanticParser(method=Hybrid(solver="perceptron"), random_state=0)
    >>> len(parser.fit(house.sentences, house.meanings).predict(house.sentences[:1]))
    1
    """

    name = "hybrid"

    solver: str | Solver = parameter(
        Options(*LEARNERS, *DUAL), Kind((DualSolver, LatentSVM), "a solver of the dual"), default="likelihood"
    )
    loss: str = parameter(Options(*LOSSES), default="hamming")
    features: Sequence[str] = parameter(Kind((list, tuple), "a sequence of names of features"), default=USUAL)
    lexicon: dict[str, str] | None = parameter(Kind(dict, "a dict from phrases to names"), NONE, default=None)
    executor: Callable[[str], object] | None = parameter(CALLABLE, NONE, default=None)
    abstain_below: float | None = parameter(Interval(Real, 0.0, 1.0, closed="both"), NONE, default=None)

    def validate(self) -> None:
        super().validate()
        checked_features(self.features)


@declared
class Ospas(ParameterGroup):
    """Two taggers of words, for symbols and for their roles, trained online from bags (thesis, algorithm 24).

    Parameters
    ----------
    strategy : {"order_free", "random", "left_right"}, default="order_free"
        Which word is labelled next in training: the one with the surest symbol, any, or the next. Random is the
        thesis's default; order-free learns faster.
    average : bool, default=False
        Predict with the average of the weights over all words tried; useful with several passes.
    refine : int, default=0
        Times that `fit` chooses the best meaning of each bag and trains again on these alone. If many bags lack the
        right meaning: 1, with strategy="random", max_iter=5, average=True.
    window : int, default=0
        Words to the left and to the right that the symbol of a word may depend on.
    ngrams : int, default=1
        Greatest length of n-grams ending with the word that are features: 2 distinguishes "purple 9" from "pink 9".
    role_window : int, default=2
        Words to the left and to the right that a role may depend on, beside the symbols around.
    max_meanings : int, optional
        Maximum number of meanings to predict for a sentence.
    complete : bool, default=True
        If the best symbols leave words unused, or form no complete meaning, try to make one word a relation.
    fold_constants : bool, default=False
        Whether a relation between constants alone, ``stateid('texas')``, is one symbol.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_house
    >>> from structsvm.tasks import Ospas, SemanticParser
    >>> house = make_ambig_house(20, 1, random_state=0)
    >>> parser = SemanticParser(method=Ospas(window=1), random_state=0)
    >>> len(parser.fit(house.sentences, house.meanings).predict(house.sentences[:1]))
    1
    """

    name = "ospas"

    strategy: str = parameter(Options(*STRATEGIES), default="order_free")
    average: bool = parameter(FLAG, default=False)
    refine: int = parameter(Interval(Integral, 0), default=0)
    window: int = parameter(WINDOW, default=0)
    ngrams: int = parameter(Interval(Integral, 1, MAX_WINDOW, closed="both"), default=1)
    role_window: int = parameter(WINDOW, default=2)
    max_meanings: int | None = parameter(COUNT, NONE, default=None)
    complete: bool = parameter(FLAG, default=True)
    fold_constants: bool = parameter(FLAG, default=False)


METHODS = {kind.name: kind for kind in (Hybrid, Ospas)}
OF_METHOD = (Options(*METHODS), Kind((Hybrid, Ospas), "a Hybrid or an Ospas"))


@declared
class SemanticParserParameters(Seed, Running):
    """The parameters of `SemanticParser`."""

    C: float | str = parameter(POSITIVE, Options(AUTO), default=AUTO, kw_only=False)
    method: str | Hybrid | Ospas = parameter(*OF_METHOD, default=Hybrid.name)
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    grammar: GrammarLike | None = parameter(
        Kind((MeaningGrammar, str, os.PathLike), "a MeaningGrammar, the text of one, or a path"), NONE, default=None
    )
    lowercase: bool = parameter(FLAG, default=True)


# The parameters of a parser, or what the command line has read of them.
Params = SemanticParserParameters | SimpleNamespace


def method_of(method: str | Hybrid | Ospas) -> Any:
    """The method with its parameters: of a name, the defaults."""
    return METHODS[method]() if isinstance(method, str) else method


def method_from_json(stored: object) -> Any:
    """The method with its parameters, of a model file; an exception of `unsound` for any other value."""
    method: Any = param_from_json(stored, {kind.__name__: kind for kind in METHODS.values()})
    check_arguments("a model file", {"method": method}, method=OF_METHOD)
    return method_of(method)


def checked_features(names: Iterable[str]) -> tuple[str, ...]:
    """Names of optional features; ValueError, naming it, for another."""
    for name in names:
        if name not in FEATURES:
            raise ValueError(f"features may be {', '.join(FEATURES)}. Got {name!r:.80}")
    return tuple(names)
