"""Semantic parsing from bags of candidate meanings (Bordes 2010, section 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.metrics import meaning_scores
from structsvm.parameters import checked_k, declared
from structsvm.structures.meanings import format_meaning
from structsvm.tasks.common.estimator import StructureEstimator, as_list
from structsvm.tasks.common.inspection.confidence import of_meaning
from structsvm.tasks.common.inspection.inputs import explain_one
from structsvm.tasks.common.labels import check_no_classes
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.common.parameters import check_settled
from structsvm.tasks.common.questions.loop import LearningLoop
from structsvm.tasks.semantics.bags import BagModel
from structsvm.tasks.semantics.hybrid import HybridModel, describe, make_learner
from structsvm.tasks.semantics.model import SemanticModel
from structsvm.tasks.semantics.parameters import Hybrid, SemanticParserParameters, method_of
from structsvm.tasks.semantics.questions import MeaningReader
from structsvm.tasks.semantics.solver import make_ospas
from structsvm.tasks.semantics.trees import EMPTY

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from structsvm.solvers import Solver
    from structsvm.tasks.common.inspection.weights import Explanation
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.semantics.bags import BagLike, MeaningBags, SentenceLike
    from structsvm.tasks.semantics.features import Tokens


@declared
class SemanticParser(SemanticParserParameters, LearningLoop, StructureEstimator):
    """Semantic parser that learns from sentences and bags of candidate meanings.

    A meaning is a tree of units (relations, names), each of which covers a stretch of words, or none (Lu 2014). One
    chart sums over all derivations of a meaning from a sentence, and AdaGrad maximises the likelihood of the bags.

    With ``method="ospas"``, an online learner of flat meanings: a first tagger gives each word the symbol that it
    means, a relation or a constant, or none; for each relation found, a second one gives the other words their
    roles as its arguments. Both are linear and are trained with algorithm 24 of the thesis, with the mean pairwise
    hinge, on the contents of the bags; the data do not say which word means which symbol. What only one of the methods
    asks for are the parameters of `Hybrid` and of `Ospas`.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Longest step. "auto": 0.1 for OSPAS; for hybrid trees 0.2, or the better of 0.2 and 0.05 if there are at least
        300 sentences and some bags contain several meanings: the one with more predictions for a held-out fifth in
        their bags.
    method : {"hybrid", "ospas"}, `Hybrid` or `Ospas`, default="hybrid"
        A name means the defaults of the object, whose parameters nest: ``method__window``.
    max_iter : int, optional
        Passes over the data, by default 10; for OSPAS 1, and as many again per refinement.
    grammar : MeaningGrammar, str or path, optional
        Only meanings that it accepts are predicted. A str is the grammar's text if it has an arrow ``->``, else a path.
    lowercase : bool, default=True
        Whether words are compared without case, and without marks at their ends ("Paris?").
    random_state : int, RandomState or None
        Seeds the strategy "random".
    warm_start : bool, default=False
        Whether `fit` resumes from the current model, on the same sentences or others.
    n_jobs : int, optional
        Threads for `predict`; -1: one per processor.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    symbols_ : list of str
        The learnt symbols, the empty one ``"-"`` first.
    units_ : dict of str to list of str
        The units that were found in the meanings, of ``method="hybrid"``: relations with ``_1``, ``_2`` ... for their
        slots, leaves, and names of a kind as one unit, ``tag('name',_)``, with those of training.
    relations_ : dict of str to set of int
        The numbers of arguments that each relation was seen with.
    result_ : Result
        Passes, words tried (`n_argmax`), seconds, since training began; an online learner claims no objective.
    n_iter_ : int

    Notes
    -----
    A sentence is a str, split at blanks, or a list of words; a word may be a tuple with more about it (a tag, a
    chunk). A bag is a list of meaning representations, text such as ``"pass(purple9,purple2)"`` or nested tuples such
    as ``("pass", "purple9", "purple2")``; a single one means that it is known to be right.

    Examples
    --------
    >>> from structsvm.datasets import make_ambig_house
    >>> from structsvm.tasks import SemanticParser
    >>> house = make_ambig_house(100, level=1, random_state=0)
    >>> parser = SemanticParser(random_state=0).fit(house.sentences, house.bags)
    >>> parser.predict(["john gets the toy from a table"])
    [['get(john,toy,table)']]
    """

    _confidence = of_meaning
    _model_class = BagModel
    _reader = "structures.bag_lines.read_bags"
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Iterable[SentenceLike], y: Iterable[BagLike], sample_weight: ArrayLike | None = None) -> Self:
        """Train on sentences and bags.

        Parameters
        ----------
        X : list of sentences
        y : list of bags
        sample_weight : array-like of shape (n_sentences,), optional
            Factor on each sentence's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For a parameter out of range, an empty sentence or bag, a malformed meaning; the message names parameter
            or sentence. The model is then unchanged.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: Iterable[SentenceLike],
        y: Iterable[BagLike],
        classes: None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over more sentences, also with new symbols and words.

        Only symbols seen before can compete with the right ones; `fit` knows all of them from the start. Hybrid trees
        begin each call with fresh step lengths, and use a pair of words as a feature once it occurs twice in a call:
        larger portions are better. `classes` must be None: bags contain their symbols.
        """
        check_no_classes(classes, "the bags tell their symbols")
        return self._train(X, y, sample_weight, passes=1)

    def calibrate(self, X: Iterable[SentenceLike], y: Iterable[BagLike]) -> Self:
        """Fit `temperature_` to sentences and bags that the model was not trained on.

        Of ``method="hybrid"``: scores are divided by it, so that the probability of what is predicted says how often
        its like is in the bag, after a margin or a perceptron, too. Sums over derivations change with it, and so may
        what is predicted.

        Returns
        -------
        self
        """
        self._hybrid("calibrate")
        return self._calibrated(as_list(X, "sentences"), as_list(y, "bags", "y"))

    def _make_solver(self, before: TaskModel[MeaningBags] | None = None) -> Solver:
        return make_learner(self) if method_of(self.method).name == Hybrid.name else make_ospas(self)

    def _prepare(
        self, X: Iterable[SentenceLike], y: Iterable[BagLike], sample_weight: ArrayLike | None, before: BagModel | None
    ) -> tuple[BagModel, MeaningBags]:
        X, y = as_list(X, "sentences"), as_list(y, "bags", "y")
        if not X:
            raise ValueError("there are no sentences to train on")
        method = method_of(self.method).name
        if before is not None:
            check_settled([("method", method, before.method)])
        model = BagModel.methods[method](self) if before is None else before
        model.follow(self)
        examples = model.read(X, y, weight=sample_weight)
        return model, examples if isinstance(model, SemanticModel) else examples.of_weight()  # 0 teaches no phrases

    def _fitted(self) -> HybridModel | SemanticModel:
        """The model, with the parameters as they are now that prediction alone asks for."""
        model = super()._fitted()
        method = method_of(self.method)
        if method.name == model.method == Hybrid.name:
            model.settings.executor, model.settings.abstain_below = method.executor, method.abstain_below
        return model

    # ---- the learning loop ------------------------------------------------------------------------

    _least_labels = 0  # symbols grow with the bags

    def _reader_of(self, model: BagModel, X: Iterable[SentenceLike]) -> MeaningReader:
        return MeaningReader(self._hybrid("query"), X)

    def _known_labels(self, model: BagModel) -> list[Hashable]:
        return []

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[SentenceLike]) -> list[list[str]]:
        """Return the meaning representations of each sentence: a list of lists of text, in the order of the words.

        A sentence without words has none.
        """
        model = self._fitted()
        parsed = model.parse(tokens_of(model, X), self._threads)
        return Outputs([format_meaning(tree) for tree in trees] for trees in parsed)

    def predict_kbest(self, X: Iterable[SentenceLike], k: int = 5) -> list[list[tuple[str, float]]]:
        """Return per sentence at most k meanings with their probabilities, the most probable first.

        They are those of the best derivations. For ``method="hybrid"``; other models raise ValueError.
        """
        k = checked_k(k)
        model = self._hybrid("predict_kbest")
        found = model.kbest(tokens_of(model, X), k, self._threads)
        return [[(format_meaning(derivation.meaning), p) for derivation, p in of_one] for of_one in found]

    def predict_derivation(self, X: Iterable[SentenceLike]) -> list[str | None]:
        """Return per sentence a drawing of which words say what, None if nothing is predicted.

        Each unit is a line with its words, indented below the unit whose argument it is. For ``method="hybrid"``; other
        models raise ValueError.
        """
        model = self._hybrid("predict_derivation")
        tokens = tokens_of(model, X)
        return [
            None if found is None else describe(found[0], [token[0] for token in sentence])
            for sentence, found in zip(tokens, model.best(tokens, self._threads), strict=True)
        ]

    def explain(self, x: SentenceLike) -> Explanation:
        """Why one meaning of a sentence is more probable than the next one: an `Explanation`, to print.

        Its `margin` is the log of the ratio of their probabilities, which sum over derivations. Each feature adds its
        weight times the difference of its expectations; what is left, how many derivations share it, is "derivations".
        Of ``method="hybrid"``; ValueError for a model of another, for a sentence of fewer meanings than two, and for a
        list of sentences.
        """
        return explain_one(self._hybrid("explain"), x)

    def _hybrid(self, name: str) -> HybridModel:
        model = self._fitted()
        if not isinstance(model, HybridModel):
            raise ValueError(f"{name} is for models of method='hybrid', this is one of {model.method!r}")
        return model

    def predict_alignment(self, X: Iterable[SentenceLike]) -> list[list[tuple[str, str]]]:
        """Return per sentence a list of pairs of a word and the symbol that it means, ``"-"`` for none."""
        model = self._fitted()
        tokens = tokens_of(model, X)
        return [
            [(token[0], symbol.name) for token, symbol in zip(sentence, symbols, strict=True)]
            for sentence, symbols in zip(tokens, model.align(tokens), strict=True)
        ]

    def score(self, X: Iterable[SentenceLike], y: Iterable[BagLike]) -> float:
        """Return the F1 of the meanings; see `structsvm.metrics.meaning_scores`.

        Arguments may stand in any order where the grammar says so.
        """
        grammar = self._fitted().grammar
        return meaning_scores(y, self.predict(X), any_order=() if grammar is None else grammar.any_order).f1

    # ---- views ----------------------------------------------------------------------------------

    @property
    def symbols_(self) -> list[str]:
        model = self._fitted()
        if isinstance(model, HybridModel):
            return [unit.name for unit in model.hybrid.units.units]
        return [symbol.name for symbol in model.symbols.labels]

    @property
    def units_(self) -> dict[str, list[str]]:
        model = self._fitted()
        if not isinstance(model, HybridModel):
            raise AttributeError(f"units_ is for models of method='hybrid', this is one of {model.method!r}")
        return model.hybrid.units.described()

    @property
    def relations_(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        model = self._fitted()
        if isinstance(model, HybridModel):
            symbols = [unit.symbol for unit in model.hybrid.units.units if unit.places is not None]
        else:
            symbols = [symbol for symbol in model.symbols.labels if symbol != EMPTY]
        for symbol in symbols:
            if symbol.arity is not None:
                found.setdefault(symbol.name, set()).add(symbol.arity)
        return found


def tokens_of(model: BagModel, X: Iterable[SentenceLike]) -> list[Tokens]:
    """Words of sentences; TypeError for a single text."""
    if isinstance(X, str):
        raise TypeError(f"X must be a list of sentences, got the text {X!r:.80}")
    return model.tokens_of(as_list(X, "sentences"))
