"""Natural language parsing with weighted context-free grammars (SVMstruct paper, sections 2 and 5.5)."""

from __future__ import annotations

import os
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from structsvm.callbacks import CallbackSupportMixin, with_callbacks
from structsvm.metrics import bracket_scores
from structsvm.parameters import CHECKPOINT, FLAG, N_JOBS, POSITIVE, RANDOM_STATE, Interval, Kind, Options, validate
from structsvm.solvers.base import Solver, raise_if_interrupted
from structsvm.structures.grammar import format_rule
from structsvm.tasks.common.estimator import checked_sample_weight
from structsvm.tasks.common.solver import SOLVERS
from structsvm.tasks.common.stored_estimator import StoredEstimatorMixin, monitor_for
from structsvm.tasks.grammar.model import PCFG, GrammarModel, as_trees, prepare
from structsvm.tasks.grammar.parameters import check_unchanged, make_grammar_solver


class GrammarParser(StoredEstimatorMixin, CallbackSupportMixin, BaseEstimator):
    """A parser whose grammar is read off a treebank and whose rules are weighted with a large margin.

    Parameters
    ----------
    C : float, optional
        Weight of the sum of slacks. None: 1, or what a solver given as an object says.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron", "pcfg"} or Solver
        Default "larank". A name, to which `C`, `rescaling`, `penalty`, `max_iter`, `tol`, `random_state` and
        `checkpoint` apply; a solver object with parameters of its own; or "pcfg", the generative baseline: relative
        frequencies instead of training.
    loss : {"f1", "hamming", "zero_one"}, default="f1"
        What training minimises, see `structsvm.oracles.cky.CKYOracle`.
    rescaling : {"margin", "slack"}, default="margin"
    penalty : {"linear", "quadratic"}, default="linear"
    terminals : {"tags", "words"}, default="tags"
        What sentences are made of: part-of-speech tags, as in the paper, or words.
    min_count : int, default=2
        For words: rarer ones are known by a class (capitals, digits, suffix) only, as unknown ones are. With 1 there
        are no classes, and no tree for a sentence with an unknown word.
    h : int, optional
        Horizontal Markovisation; None: exactly the rules of the treebank.
    v : int, default=1
        Vertical Markovisation: labels know their v - 1 nearest ancestors.
    span_features : bool, default=False
        Whether nodes have weights for their first and last words, those around them, their length and their split.
    max_unary : int, optional
        Longest chain of unary rules; None: as long as in the training trees.
    clean : bool, default=True
        Take traces, empty nodes and functions (what follows ``-`` or ``=`` in a label) off the training trees.
    on_no_parse : {"flat", "raise"}, default="flat"
        For a sentence that the grammar does not cover: all words side by side under the heaviest start symbol, or a
        `NoParseError`.
    smoothing : float, default=0.0
        For "pcfg": added to each rule's count.
    max_length : int, default=400
        Longest sentence, in words.
    max_chart_bytes : int, default=2**31
        Largest chart.
    max_iter, tol, random_state, checkpoint, checkpoint_every
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one, on the same trees.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    grammar_ : list of (Rule, float)
        The rules with their weights (binary rules, if `h` is given); `grammar_text` writes them.
    start_ : dict of str to float
        The labels that trees may have at the root, with their weights (0 if there is only one).
    coef_ : ndarray of shape (n_features,), float64
    result_ : Result or None
        None for "pcfg".
    n_iter_ : int

    Examples
    --------
    >>> from structsvm.tasks import GrammarParser
    >>> trees = ["(S (NP (DT the) (NN cat)) (VP (VBZ eats) (NP (DT a) (NN fly))))", "(S (NP (NN ice)) (VP (VBZ is)))"]
    >>> parser = GrammarParser(random_state=0).fit(trees)
    >>> print(parser.predict([["NN", "VBZ", "DT", "NN"]])[0])
    (S (NP (NN NN)) (VP (VBZ VBZ) (NP (DT DT) (NN NN))))
    """

    def __init__(
        self,
        C=None,
        *,
        solver="larank",
        loss="f1",
        rescaling="margin",
        penalty="linear",
        terminals="tags",
        min_count=2,
        h=None,
        v=1,
        span_features=False,
        max_unary=None,
        clean=True,
        on_no_parse="flat",
        smoothing=0.0,
        max_length=400,
        max_chart_bytes=2**31,
        max_iter=None,
        tol=None,
        random_state=None,
        warm_start=False,
        n_jobs=None,
        checkpoint=None,
        checkpoint_every=1,
        verbose=False,
    ):
        self.C = C
        self.solver = solver
        self.loss = loss
        self.rescaling = rescaling
        self.penalty = penalty
        self.terminals = terminals
        self.min_count = min_count
        self.h = h
        self.v = v
        self.span_features = span_features
        self.max_unary = max_unary
        self.clean = clean
        self.on_no_parse = on_no_parse
        self.smoothing = smoothing
        self.max_length = max_length
        self.max_chart_bytes = max_chart_bytes
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose

    _model_class = GrammarModel
    _kind = "grammar"
    _constraints = {
        "C": (POSITIVE, Options(None)),
        "solver": (Options(*SOLVERS, PCFG), Kind(Solver, "a Solver")),
        "loss": Options("f1", "hamming", "zero_one"),
        "rescaling": Options("margin", "slack"),
        "penalty": Options("linear", "quadratic"),
        "terminals": Options("tags", "words"),
        "min_count": Interval(Integral, 1),
        "h": (Interval(Integral, 0), Options(None)),
        "v": Interval(Integral, 1),
        "span_features": FLAG,
        "max_unary": (Interval(Integral, 0), Options(None)),
        "clean": FLAG,
        "on_no_parse": Options("flat", "raise"),
        "smoothing": Interval(Real, 0.0),
        "max_length": Interval(Integral, 1),
        "max_chart_bytes": Interval(Integral, 1),
        "max_iter": (Interval(Integral, 1), Options(None)),
        "tol": (Interval(Real, 0.0, closed="neither"), Options(None)),
        "random_state": RANDOM_STATE,
        "warm_start": FLAG,
        "n_jobs": N_JOBS,
        "checkpoint": CHECKPOINT,
        "checkpoint_every": Interval(Integral, 1),
        "verbose": FLAG,
    }

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Read the grammar off trees and train its weights.

        Parameters
        ----------
        X : list of trees
            `structsvm.structures.trees.Tree`, bracketed text, or ``nltk.Tree``.
        y : None
            The trees are inputs and outputs in one.
        sample_weight : array-like of shape (n_trees,), optional
            Factor on each tree's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, a tree that is none or is too long (the message names parameter or tree).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.
        """
        validate(self, self._constraints)
        trees = as_trees(X, self.clean)
        weight = checked_sample_weight(sample_weight, len(trees))
        if isinstance(self.solver, str) and self.solver == PCFG:
            if weight is not None:
                raise ValueError("sample_weight has no meaning for solver='pcfg'")
            return self._estimate(trees)
        solver = make_grammar_solver(self)
        resume = self.warm_start and hasattr(self, "model_") and self.model_.state is not None
        model, encoded = prepare(self, trees)
        if resume:
            check_unchanged(self.model_, model)
            model = self.model_
        monitor = monitor_for(
            self,
            X,
            y,
            solver.n_passes,
            lambda run: {"model_": GrammarModel(model.terminals, model.oracle, model.v, weights=run.weights)},
        )
        run = model.train(encoded, solver, sample_weight=weight, monitor=monitor, resume=resume)
        self._adopt(model)
        raise_if_interrupted(run)
        return self

    def _estimate(self, trees):
        if self.span_features:
            raise ValueError("span_features=True has no meaning for solver='pcfg': a generative grammar has only rules")
        model, encoded = prepare(self, trees)
        model.estimate(encoded, self.smoothing)
        self._adopt(model)
        return self

    def _adopt(self, model):
        self.model_ = model
        self.result_ = model.result
        self.n_iter_ = 0 if model.result is None else model.result.n_iter

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X):
        """Return the best tree of each sentence, as a list of `Tree`.

        Parameters
        ----------
        X : list of sentences
            A sentence is a list of tags or words (what `terminals` says), or of (word, tag).

        Raises
        ------
        NoParseError
            With ``on_no_parse="raise"``: a sentence that the grammar does not cover; the message names its index.
        ValueError
            An empty sentence, one longer than `max_length`, or one whose chart is larger than `max_chart_bytes`.
        """
        check_is_fitted(self)
        jobs = (os.cpu_count() or 1) if self.n_jobs == -1 else self.n_jobs or 1
        return self.model_.predict(X, on_no_parse=self.on_no_parse, n_jobs=jobs)

    def predict_kbest(self, X, k):
        """Return for each sentence a list of ``(tree, score)``, its k best trees, best first (fewer if there are).

        For a sentence that the grammar does not cover, `on_no_parse` says: the flat tree with score -inf, or an error.
        """
        check_is_fitted(self)
        return list(self.model_.predict_kbest(X, k, on_no_parse=self.on_no_parse))

    def score(self, X, y=None):
        """Return the bracketing F1 of the predictions for the sentences of trees X, as EVALB counts it."""
        check_is_fitted(self)
        trees = as_trees(X, self.clean)
        return bracket_scores(trees, self.predict([tree.tokens() for tree in trees])).f1

    # ---- views, files ---------------------------------------------------------------------------

    @property
    def coef_(self):
        return self.model_.weights

    @property
    def grammar_(self):
        return self.model_.weighted_rules()

    @property
    def start_(self):
        return self.model_.weighted_starts()

    def grammar_text(self, *, weights=True):
        """The grammar as text, a rule a line: with weights as ``S -> NP VP [0.25]``, without them as NLTK reads it.

        For "pcfg" the weights written are probabilities, and NLTK reads them too (``nltk.PCFG.fromstring``). Labels
        that NLTK cannot hold are escaped, see `structsvm.structures.grammar.format_rule`; `parse_rules` there reads the
        text without weights back. Start symbols beyond the first are not in it, see `start_`.

        Raises
        ------
        ValueError
            A word with quotes of both kinds, which the text cannot hold.
        """
        check_is_fitted(self)
        number = np.exp if self.model_.result is None else float
        return "\n".join(
            # NLTK reads no exponents.
            format_rule(rule) + (f" [{np.format_float_positional(number(weight), trim='-')}]" if weights else "")
            for rule, weight in self.model_.weighted_rules()
        )
