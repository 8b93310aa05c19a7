"""Natural language parsing with weighted context-free grammars (SVMstruct paper, sections 2 and 5.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm._warnings import AdviceWarning, warn
from structsvm.callbacks import with_callbacks
from structsvm.metrics import bracket_scores
from structsvm.parameters import declared
from structsvm.structures.rules import format_rule
from structsvm.tasks.common.estimator import StructureEstimator, as_list
from structsvm.tasks.common.examples import check_no_words, checked_sample_weight
from structsvm.tasks.common.labels import check_no_classes
from structsvm.tasks.common.likelihood import check_least, probabilities_in
from structsvm.tasks.common.parameters import snapshot
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.grammar.model import GrammarModel
from structsvm.tasks.grammar.parameters import GRAMMAR_C, GrammarParserParameters, features_of
from structsvm.tasks.grammar.preparation import pcfg, prepare
from structsvm.tasks.grammar.terminals import FOUND, given_tokens
from structsvm.tasks.grammar.trees import check_whole, is_nothing, trees_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.solvers import Solver
    from structsvm.structures.rules import Rule
    from structsvm.structures.trees import Tree
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.grammar.model import Bracket, Trees
    from structsvm.tasks.grammar.trees import SentenceLike, TreeLike


@declared
class GrammarParser(GrammarParserParameters, StructureEstimator):
    """A parser whose grammar is read off a treebank and whose rules are weighted with a large margin.

    Parameters
    ----------
    C : float, "auto" or None, default="auto"
        Weight of the sum of slacks. "auto": chosen on held-out trees (`validation_`), of at most 800, see
        `structsvm.tasks.common.selection`; 1 with fewer than 20 trees, and in `partial_fit` before any `fit`.
        None: 1. A solver given as an object has its own.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"} or Solver
        Default "larank". A name, to which `C`, `max_iter`, `tol`, `random_state` and `checkpoint` apply; or a solver
        object with its own parameters, such as ``LaRank(C=1.0, rescaling="slack")``.
    loss : {"hamming", "f1", "zero_one", "log"}, default="hamming"
        What training minimises, see `structsvm.oracles.cky.CKYOracle`. "log": not a margin but the conditional
        likelihood of the trees (a log-linear grammar), by `structsvm.solvers.ConditionalLikelihood`, which stores a
        number per feature that the trees of each sentence can have: for small treebanks, or few templates.
    probability : bool, default=False
        Whether training on a margin fits the temperature at which scores are probabilities: at the end, on held-out
        trees. Sums over all trees take several times as long as parsing.
    terminals : {"tags", "words", "both", "predicted"}, default="tags"
        What sentences consist of: part-of-speech tags, as in the paper; words; or pairs (word, tag), with tags for the
        grammar and words for the span features. "predicted": pairs as well, with tags of a tagger, or several with
        blanks between them, the likeliest first; the parser finds the tags of its trees itself. Train it with tags that
        are as often wrong as later ones: ``fit(sentences, trees)``, or `structsvm.tasks.TaggedParser`.
    grammar : TreebankGrammar, optional
        How the grammar is read off the trees: Markovisation, classes of rare words, unary chains.
    features : SpanFeatures, optional
        What nodes see of their spans: templates, hashing, columns of the user's own.
    on_no_parse : {"fragments", "flat", "raise"}, default="fragments"
        For a sentence that the grammar does not cover: the fewest constituents side by side under the heaviest start
        symbol, and of these the best; its words there; or a `NoParseError`.
    decode : {"brackets", "tree"}, optional
        What `predict` looks for. "tree": the tree with the best score. "brackets": those that are probably right, each
        over 0.45 or so, with P(tree) ~ exp(score / `temperature_`), or exp(score) for the Hamming loss, whose margin is
        one per bracket (Goodman 1996): F1 is higher; the tree may have rules that the treebank does not have, and need
        not be the first of `predict_kbest`. None: "brackets", except without a temperature after another loss or slack
        rescaling.
    prior : {"pcfg"} or None, default="pcfg"
        Weights w0 that a first training starts from and stays close to, minimising ``1/2 |w - w0|^2 + C sum_i xi_i``:
        half of the logarithms of the rules' relative frequencies, 0 for all other features. None: 0.
    max_length : int, default=500
        Longest sentence, in words.
    max_chart_bytes : int, default=2**31
        Largest chart.
    max_iter, tol, random_state, checkpoint
        As for the solver; None: the solver's own. LaRank without either of the first two makes six passes, over 1,000
        trees or more three.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model, with its grammar: the same run on the same trees, around the
        current weights on others.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    grammar_ : list of (Rule, float)
        The rules with their weights (binary rules, if `grammar.h` is given); `grammar_text` writes them.
    start_ : dict of str to float
        The labels allowed at the root, with their weights (0 if there is only one).
    coef_ : ndarray of shape (n_features,), float64
    C_ : float
        The C of the last training.
    validation_ : dict
        The table from which "auto" chose C: arrays "C", "score", "error" (standard errors of the scores) and "passes"
        (over the part that was trained on), the "metric" and the number of examples "n_held_out".
    temperature_ : float or None
        Divisor of the scores for probabilities: 1 for the log loss and `from_counts`; None if unknown.
    result_ : Result or None
        None after `from_counts`.
    n_iter_ : int

    Examples
    --------
    >>> from structsvm.tasks import GrammarParser
    >>> trees = ["(S (NP (DT the) (NN cat)) (VP (VBZ eats) (NP (DT a) (NN fly))))", "(S (NP (NN ice)) (VP (VBZ is)))"]
    >>> parser = GrammarParser(random_state=0).fit(trees)
    >>> print(parser.predict([["NN", "VBZ", "DT", "NN"]])[0])
    (S (NP (NN NN)) (VP (VBZ VBZ) (NP (DT DT) (NN NN))))
    """

    _model_class = GrammarModel
    _reader = "structures.trees.read_trees"
    _requires_y = False
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: Iterable[TreeLike | SentenceLike],
        y: Iterable[TreeLike] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Read the grammar off trees and train its weights.

        Parameters
        ----------
        X : list of trees, or of sentences if there is y
            A tree is a `structsvm.structures.trees.Tree`, bracketed text, or ``nltk.Tree``; a sentence as for
            `predict`. Trees may be known in part: a node ``_`` is a bracket with unknown label, and a node ``...``
            stands for siblings of which only the brackets in it are known (see `structsvm.structures.known_trees`).
            With ``loss="log"`` training maximises the likelihood of what is known; with a margin, such trees are
            completed and trained on in turn (`structsvm.LatentSVM`). C is chosen on the fully known ones.
        y : list of trees, optional
            Those of the sentences. None: the trees X are inputs and outputs at once.
        sample_weight : array-like of shape (n_trees,), optional
            Factor on each tree's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, a malformed or too long tree, a sentence with other tokens than its tree (the
            message names parameter, tree or sentence); if no tree is left to train on; or with ``on_no_parse="raise"``
            for a partly known tree with which no tree of the grammar agrees.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.

        Warns
        -----
        AdviceWarning
            Partly known trees are left out, as no tree of the grammar agrees with them. With ``terminals="predicted"``
            and trees alone: the trees' own tags stand in for a tagger's.
        """
        warn_of_gold_tags(self, y)
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: Iterable[TreeLike | SentenceLike],
        y: Iterable[TreeLike] | None = None,
        classes: None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current weights.

        The first call fixes the grammar: a later tree with a rule outside it raises ValueError. The batch's
        problem is solved around the current weights w0: minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies
        that problem. `classes` must be None: trees have none.
        """
        check_no_classes(classes, "trees have no classes")
        warn_of_gold_tags(self, y)
        return self._train(X, y, sample_weight, passes=1)

    @classmethod
    def from_counts(cls, trees: Iterable[TreeLike], *, smoothing: float = 0.0, **params: Any) -> Self:
        """A probabilistic context-free grammar, which needs no training: relative frequencies of the trees' rules.

        The generative baseline. `fit` with ``warm_start=True`` starts from its weights.

        Parameters
        ----------
        trees : list of trees
            As for `fit`; all of them whole.
        smoothing : float, default=0.0
            Added to each rule's count.
        params
            Parameters of the class. Those of the grammar apply, but no templates: a generative grammar has only rules.

        Raises
        ------
        ValueError
            For a parameter out of range, templates of span features, or a malformed, too long or partly known tree; the
            message names parameter or tree.

        Examples
        --------
        >>> from structsvm.tasks import GrammarParser
        >>> trees = ["(S (NP (NN ice)) (VP (VBZ is)))", "(S (NP (DT the) (NN cat)) (VP (VBZ eats)))"]
        >>> print(GrammarParser.from_counts(trees).grammar_text())
        S -> NP VP [1]
        NP -> 'NN' [0.5]
        VP -> 'VBZ' [1]
        NP -> 'DT' 'NN' [0.5]
        """
        self = cls(**params)
        self._check_params()
        if features_of(self).templates:
            raise ValueError("templates of spans have no meaning in from_counts: a generative grammar has only rules")
        trees = trees_of(trees, None, self)
        check_whole(trees, "from_counts")
        model, _ = pcfg(self, trees, smoothing)
        model.params = snapshot(self.get_params(deep=False))
        self._adopt(model)
        return self

    def calibrate(self, X: Iterable[TreeLike | SentenceLike], y: Iterable[TreeLike] | None = None) -> Self:
        """Fit `temperature_` to trees that the model was not trained on, by their likelihood.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a tree with a rule that is not in the grammar; the message names both.
        """
        return self._calibrated(trees_of(X, y, self))

    def _fitted(self) -> GrammarModel:
        model = super()._fitted()
        columns = features_of(self).columns
        if columns is not None and model.terminals.own.features is None:  # it was read from a file
            model.set_columns(columns)
        return model

    def _make_solver(self, before: TaskModel | None = None) -> Solver:
        return make_solver(self, GRAMMAR_C)

    def _prepare(
        self,
        X: Iterable[TreeLike | SentenceLike],
        y: Iterable[TreeLike] | None,
        sample_weight: ArrayLike | None,
        before: GrammarModel | None,
    ) -> tuple[GrammarModel, Trees]:
        trees = trees_of(X, y, self)
        model, examples = prepare(self, trees, before, checked_sample_weight(sample_weight, len(trees)))
        return model, model.learnable(examples, self.on_no_parse)

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[SentenceLike]) -> list[Any]:
        """Return a tree for each sentence, see `decode`, as a list of `Tree`; None for a sentence without words.

        Parameters
        ----------
        X : list of sentences
            A sentence is a list of tags or words (what `terminals` says), or of (word, tag), or text, cut at blanks.

        Raises
        ------
        NoParseError
            With ``on_no_parse="raise"``: a sentence that the grammar does not cover; the message names its index.
        ValueError
            A sentence longer than `max_length`, or one whose chart is larger than `max_chart_bytes`.

        Warns
        -----
        AdviceWarning
            There are sentences that the grammar does not cover; says how many.
        """
        model, X = self._fitted(), as_list(X, "sentences")
        check_no_words(X)
        if self.on_no_parse == "raise":
            return model.predict(X, on_no_parse="raise", n_jobs=self._threads, decode=self.decode)
        trees = model.predict(X, on_no_parse=None, n_jobs=self._threads, decode=self.decode)
        without = warned_of([i for i, tree in enumerate(trees) if tree is None and not is_nothing(X[i])], len(X), self)
        return [model.fallback(X[i], self.on_no_parse) if i in without else tree for i, tree in enumerate(trees)]

    def predict_kbest(
        self, X: Iterable[SentenceLike], k: int, *, probabilities: bool = False
    ) -> list[list[tuple[Tree, float]]]:
        """Return per sentence a list of ``(tree, score)``, its k best trees, best first (fewer if fewer exist;
        none for a sentence without words).

        With `probabilities` the tree's probability replaces its score: among all trees of the grammar, at
        `temperature_`. For a sentence that the grammar does not cover, `on_no_parse` says: a tree with
        score -inf (probability 0), or an error.
        """
        model, X = self._fitted(), as_list(X, "sentences")
        check_no_words(X)
        if self.on_no_parse == "raise":
            return list(model.predict_kbest(X, k, on_no_parse="raise", probabilities=probabilities))
        ranked = list(model.predict_kbest(X, k, on_no_parse=None, probabilities=probabilities))
        without = warned_of([i for i, trees in enumerate(ranked) if trees and trees[0][0] is None], len(X), self)
        return [
            [(model.fallback(X[i], self.on_no_parse), trees[0][1])] if i in without else trees
            for i, trees in enumerate(ranked)
        ]

    def probability_of(
        self, X: Iterable[TreeLike | SentenceLike], y: Iterable[TreeLike] | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of given trees: array (n_trees,), float64.

        Among all trees of the grammar, for their sentence; X and y are those of `fit`. A tree that is known in part has
        the sum over all trees that agree with it: so does a bracket.

        Raises
        ------
        ValueError
            If there are no probabilities (`temperature_` is None), and as `calibrate` does.
        """
        model = self._fitted()
        return probabilities_in(model, model.known_problem(trees_of(X, y, self)))

    def predict_spans(self, X: Iterable[SentenceLike], *, least: float = 0.5) -> list[list[Bracket]]:
        """Return per sentence the brackets that are probable, as ``(start, stop, label, probability)``, by place.

        A bracket's probability is that of all trees of the grammar that have it, at `temperature_`: it is computed by
        inside and outside. Brackets are nodes above the tags, without those that EVALB leaves out (TOP, punctuation).
        Brackets of more than half are never across one another.

        Parameters
        ----------
        X : list of sentences
            See `predict`. A sentence that the grammar does not cover has no brackets.
        least : float, default=0.5
            The least probability, over 0.

        Raises
        ------
        ValueError
            If there are no probabilities (`temperature_` is None), or for a `least` out of range.
        """
        check_least(least, "GrammarParser.predict_spans")
        model, X = self._fitted(), as_list(X, "sentences")
        check_no_words(X)
        return model.predict_spans(X, least)

    def score(self, X: Iterable[TreeLike | SentenceLike], y: Iterable[TreeLike] | None = None) -> float:
        """Return the bracketing F1, as EVALB counts it, of the predictions for the sentences of trees: X, or y."""
        self._fitted()
        trees = trees_of(X, y, self)
        check_whole(trees, "score")
        by_words = self.terminals == "words"
        sentences = [tree.leaves() if by_words else given_tokens(tree) for tree in trees]
        return bracket_scores(trees, self.predict(sentences)).f1

    # ---- views ---------------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        return self._fitted().weights

    @property
    def grammar_(self) -> list[tuple[Rule, float]]:
        return self._fitted().weighted_rules()

    @property
    def start_(self) -> dict[str, float]:
        return self._fitted().weighted_starts()

    def grammar_text(self, *, weights: bool = True) -> str:
        """The grammar as text, one rule per line: with weights as ``S -> NP VP [0.25]``, without them as NLTK reads it.

        After `from_counts` the weights written are probabilities, and NLTK reads them too (``nltk.PCFG.fromstring``).
        Labels that NLTK does not allow are escaped, see `structsvm.structures.grammar.format_rule`; `parse_rules` there
        reads the text without weights. Start symbols after the first are not in it, see `start_`.

        Raises
        ------
        ValueError
            A word with quotes of both kinds, which the text cannot contain.
        """
        model = self._fitted()
        number = np.exp if model.result is None else float
        return "\n".join(
            # NLTK reads no exponents.
            format_rule(rule) + (f" [{np.format_float_positional(number(weight), trim='-')}]" if weights else "")
            for rule, weight in model.weighted_rules()
        )


def warn_of_gold_tags(params: GrammarParser, y: object) -> None:
    """Warn of trees whose own tags are the evidence: a tagger is not as often right."""
    if params.terminals == "predicted" and y is None:
        warn(
            "terminals='predicted' without y learns from the trees' own tags, and will trust a tagger's as much: use "
            "TaggedParser, or fit(X, y) with sentences of (word, tag) by a tagger that was not trained on them",
            AdviceWarning,
        )


def warned_of(without: list[int], n: int, params: GrammarParser) -> set[int]:
    """The indices of the sentences without a parse, after a warning if there are any."""
    if without:
        advice = "TreebankGrammar(h=0) makes more rules that were not seen, " * (params.model_.oracle.grammar.h != 0)
        if params.terminals not in FOUND:
            advice += "terminals='words' knows classes of unknown words, "
        warn(
            f"the grammar has no tree for {len(without)} of {n} sentences ({len(without) / n:.1%}; sentence "
            f"{without[0]} is the first); on_no_parse says what they get; {advice}on_no_parse='raise' stops instead",
            AdviceWarning,
        )
    return set(without)
