"""UAS, LAS and CLAS beside the official evaluation's way of counting, written out once more."""

import numpy as np
import pytest

from structsvm.datasets import make_dependency_trees
from structsvm.metrics import CONTENT_RELATIONS, dependency_scores

RELATIONS = ["nsubj", "nsubj:pass", "case", "punct", "obl", "obl:agent", "root", "det", "acl:relcl"]


def official(gold, system):
    """F1 of heads, of heads and relations, and of those of content words, over aligned words of a whole file."""

    def alignment_score(key, keep=lambda _: True):
        n_gold = sum(keep(word) for word in gold)
        n_system = sum(keep(word) for word in system)
        correct = sum(key(a) == key(b) for a, b in zip(gold, system) if keep(a))
        return 2.0 * correct / (n_gold + n_system) if n_gold + n_system else 0.0

    def base(word):
        return word[1].split(":")[0]

    return (
        alignment_score(lambda word: word[0]),
        alignment_score(lambda word: (word[0], base(word))),
        alignment_score(lambda word: (word[0], base(word)), lambda word: base(word) in CONTENT_RELATIONS),
    )


def test_scores_are_the_official_ones():
    rng = np.random.default_rng(0)
    for _ in range(50):
        lengths = rng.integers(1, 7, 4)
        gold, system = (
            [[(int(rng.integers(0, n + 1)), str(rng.choice(RELATIONS))) for _ in range(n)] for n in lengths]
            for _ in range(2)
        )
        for k, tree in enumerate(system):
            system[k] = [true if rng.random() < 0.6 else own for true, own in zip(gold[k], tree)]
        scores = dependency_scores(gold, system)
        whole = [[(i, *arc) for i, tree in enumerate(trees) for arc in tree] for trees in (gold, system)]
        expected = official(*([((i, head), label) for i, head, label in words] for words in whole))
        np.testing.assert_allclose((scores.uas, scores.las, scores.clas), expected)
        same = [a == b for a, b in zip(*whole)]
        assert scores.las_subtypes == pytest.approx(np.mean(same))
        assert (scores.n_sentences, scores.n_words) == (4, lengths.sum())


def test_trees_and_reports():
    trees = make_dependency_trees(5, random_state=0)
    scores = dependency_scores(trees, [tree.arcs for tree in trees])
    assert scores.uas == scores.las == scores.clas == scores.las_subtypes == scores.accuracy == 1.0
    assert "LAS                  = 100.00" in scores.report()
    with pytest.raises(ValueError, match=r"y_true has 5 trees and y_pred has 4"):
        dependency_scores(trees, trees[:4])
    with pytest.raises(ValueError, match=r"tree 1: y_true has \d+ words and y_pred"):
        dependency_scores(trees[:2], [trees[0], trees[1].arcs[:-1]])
    for what in ("ab", None):
        with pytest.raises(ValueError, match=r"tree 0: expected a DependencyTree"):
            dependency_scores([what], [what])
    for arc in ((-1, "x"), (0, None), (None, "x")):
        with pytest.raises(ValueError, match=r"tree 0: the head or the relation of word 2 is unknown"):
            dependency_scores([[(2, "det"), arc]], [[(2, "det"), (0, "root")]])
