"""Trees of which some brackets are known: the likelihood of what is known, and completions in rounds."""

from __future__ import annotations

import warnings

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from structsvm import AdviceWarning
from structsvm.datasets import fetch_treebank_sample
from structsvm.metrics import bracket_scores
from structsvm.structures.known_trees import is_partial
from structsvm.structures.trees import STRETCH, Tree
from structsvm.tasks import GrammarParser, TreebankGrammar
from structsvm.tasks.grammar.trees import as_trees, encode_trees

LENGTH, FOLDS, WHOLE, SEED = 15, 4, 0.2, 0
H = 0
C = {"log": 1.0, "hamming": 0.1}
METHODS = {
    "all trees whole": "log",
    "likelihood of what is known": "log",
    "completed in rounds (LatentSVM)": "hamming",
    "the whole trees alone": "log",
    "the same, margin": "hamming",
}
COLUMNS = {"known": ("known of the others", ""), "left_out": ("left out", "d")}
COLUMNS |= {name: (name, ".1f") for name in METHODS} | {"cpu": ("CPU s, likelihood", ".1f"), "times": ("times", ".2f")}


def run(options):
    trees = [tree for tree in as_trees(fetch_treebank_sample().train, True) if 1 < len(tree.leaves()) <= LENGTH]
    trees = trees[:150] if options.quick else trees
    folds = [(trees[k::FOLDS], [tree for i, tree in enumerate(trees) if i % FOLDS != k]) for k in range(FOLDS)]
    yield compared(folds[:1] if options.quick else folds, len(trees))


def compared(folds, n):
    made = Table(
        f"F1 of brackets, {n} trees of up to {LENGTH} words in {FOLDS} folds, a fifth of the others known whole",
        COLUMNS,
        notes=notes(
            f"""
            the training part of the treebank sample, from tags; h = {H}, span features, C = {C["log"]:g} (log loss) and
            {C["hamming"]:g} (margin), the solvers' own numbers of passes

            left out: trees known in part with which no tree of the grammar agrees; its rules are those of the trees
            known whole

            times: CPU of the likelihood in units of that of all trees whole
            """
        ),
    )
    for name, hide in {"noun phrases": noun_phrases, "half of the brackets": half}.items():
        counts = {method: np.zeros(3) for method in METHODS}
        cpu, left_out = dict.fromkeys(METHODS, 0.0), 0
        for test, train in folds:
            rng = np.random.default_rng(SEED)
            known = [tree if rng.random() < WHOLE else hide(tree, rng) for tree in train]
            whole = [tree for tree in known if not is_partial(tree)]
            for method, loss in METHODS.items():
                trees = train if method == "all trees whole" else whole if loss and "whole" in method else known
                trees = whole if method == "the same, margin" else trees
                parser = GrammarParser(C[loss], loss=loss, grammar=TreebankGrammar(h=H), prior=None, random_state=SEED)
                with warnings.catch_warnings(), Clock() as clock:
                    warnings.simplefilter("ignore", AdviceWarning)
                    parser.fit(trees)
                    predicted = parser.predict([tree.tokens() for tree in test])
                scores = bracket_scores(test, predicted)
                counts[method] += scores.n_correct, scores.n_true, scores.n_predicted
                cpu[method] += clock.cpu
                if method == "likelihood of what is known":
                    model = parser.model_
                    left_out += len(model.oracle.disagreeing(encode_trees(model.terminals, model.v, known)))
        f1 = {method: 100.0 * 2.0 * right / (true + guessed) for method, (right, true, guessed) in counts.items()}
        likelihood = cpu["likelihood of what is known"]
        row = {"known": name, "left_out": left_out, "cpu": likelihood, "times": likelihood / cpu["all trees whole"]}
        made.rows.append(row | f1)
    return made


def noun_phrases(tree, rng):
    """The tree of which noun phrases alone are known."""
    return without(tree, lambda node: node.label == "NP")


def half(tree, rng):
    """The tree of which each bracket is known or not, at random."""
    return without(tree, lambda node: rng.random() < 0.5)


def without(tree, is_known):
    """The tree with those brackets that are known, and nothing of their insides but brackets and tags."""

    def make(node, children):
        if node.is_preterminal:
            return node
        inside = Tree(STRETCH, children)
        return Tree(node.label, [inside]) if is_known(node) else inside

    return tree.map(make)
