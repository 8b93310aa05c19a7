"""Training a semantic parser: its parameters, its passes, and the choice of the best meaning in each bag."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from structsvm.parameters import POSITIVE
from structsvm.result import Result
from structsvm.structures.meanings import MeaningGrammar
from structsvm.tasks.semantics.model import SemanticModel, symbols_in

PORTION = 500  # sentences that are learnt at a time: their symbols, then their roles


def as_grammar(grammar):
    """A `MeaningGrammar` of one, of its text, or of the file of this path."""
    if grammar is None or isinstance(grammar, MeaningGrammar):
        return grammar
    if isinstance(grammar, str) and "->" in grammar:
        return MeaningGrammar(grammar)
    return MeaningGrammar(Path(grammar).read_text(encoding="utf-8"), os.fspath(grammar))


PARAMS = ("C", "strategy", "average", "window", "ngrams", "role_window", "max_meanings", "complete", "lowercase")


def model_params(params, seed):
    """The parameters of `SemanticModel` out of a dict of those of `SemanticParser`; ValueError for a wrong C."""
    if not POSITIVE.accepts(params["C"]):
        raise ValueError(f"The 'C' parameter of SemanticParser must be {POSITIVE}. Got {params['C']!r} instead.")
    return SimpleNamespace(**{name: params[name] for name in PARAMS}, fold=params["fold_constants"], seed=seed)


def trained_params(model):
    """The parameters of `SemanticParser` that a model has been trained with."""
    return {name: getattr(model.params, name) for name in PARAMS} | {"fold_constants": model.params.fold}


def train(model, tokens, bags, *, passes=1, refine=0, disable=True):
    """Learn sentences and bags as `SemanticModel.read` returns them.

    Parameters
    ----------
    model : SemanticModel
        Fresh, or one to go on with.
    passes : int
        Passes over the sentences, in their order.
    refine : int
        Times that the meaning that fits best is chosen in each bag, and a fresh model learns from these alone.
    disable : bool or None
        Whether to hide the progress bar; None: shown on a terminal only.

    Returns
    -------
    model : SemanticModel
        The last one that has had all its passes; after Ctrl-C in the first passes, what they have taught it so far.
    interrupted : bool
        Whether Ctrl-C has ended training before its time.
    """
    from tqdm import tqdm

    begin, done = time.perf_counter(), 0
    with tqdm(total=len(tokens) * passes * (refine + 1), disable=disable, leave=False, unit="sentences") as bar:
        try:
            for turn in range(refine + 1):
                learner, chosen = model, bags
                if turn > 0:
                    learner, chosen = SemanticModel(model.params, model.grammar), best_meanings(model, tokens, bags)
                learner.register(bags)
                for _ in range(passes):
                    for a in range(0, len(tokens), PORTION):
                        learner.learn(tokens[a : a + PORTION], chosen[a : a + PORTION])
                        bar.update(len(tokens[a : a + PORTION]))
                    done += turn == 0
                model = learner
            interrupted = False
        except KeyboardInterrupt:
            model.settle()
            interrupted = True
    before = model.result
    model.result = Result(
        primal=np.nan,
        dual=np.nan,
        gap=np.nan,
        n_iter=done + (0 if before is None else before.n_iter),
        n_argmax=model.symbols.ospas.n_visits + model.roles.ospas.n_visits,
        n_support=0,
        seconds=time.perf_counter() - begin + (0.0 if before is None else before.seconds),
        status="interrupted" if interrupted else "max_iter",
    )
    return model, interrupted


def best_meanings(model, tokens, bags):
    """For each sentence a bag of the one meaning whose symbols fit its words best.

    A meaning is worth the most that its symbols gain over the empty one when each takes a word of its own.
    """
    from scipy.optimize import linear_sum_assignment

    chosen = []
    for scores, trees in zip(model.symbol_scores(tokens), bags, strict=True):
        gains = scores - scores[:, :1]
        values = []
        for tree in trees:
            table = gains[:, [model.symbols.number[symbol] for symbol in symbols_in(tree)]]
            values.append(table[linear_sum_assignment(table, maximize=True)].sum())
        chosen.append([trees[int(np.argmax(values))]])
    return chosen
