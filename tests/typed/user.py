"""A user's typed program: `.ci/run types` checks it with ``mypy --strict`` and pyright, the suite runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import structsvm
from structsvm import ConvergenceWarning, LaRank, ModelFileError, OracleError, Result, StructuredSVM, Taxonomy
from structsvm.datasets import make_sequences, make_taxonomy, make_treebank
from structsvm.features.columns import Columns
from structsvm.metrics import GraphScores, RankingScores, chunk_f1, graph_scores, ranking_scores, tree_loss
from structsvm.progress import Monitor
from structsvm.protocol import Rescaling
from structsvm.solvers.run import Run
from structsvm.structures.trees import Tree, parse_tree
from structsvm.tasks import (
    GrammarParser,
    GraphLabeler,
    MultivariateClassifier,
    Ranker,
    SequenceLabeler,
    TaxonomyClassifier,
)
from structsvm.testing import check_oracle

Vector = NDArray[np.float64]


class SignOracle(structsvm.Oracle):
    """Vectors of signs: x is an array (n, n_features), y an array of n numbers -1 or 1."""

    rescalings = ("margin",)
    penalties = ("linear",)

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def joint_feature(self, x: Vector, y: Vector) -> Vector:
        feature: Vector = y @ x
        return feature

    def loss(self, y_true: Vector, y: Vector) -> float:
        return float((y_true != y).sum())

    def argmax(self, x: Vector, w: Vector, y_true: Vector | None = None, rescaling: Rescaling | None = None) -> Vector:
        scores = x @ w if y_true is None else x @ w - 0.5 * y_true
        return np.where(scores > 0.0, 1.0, -1.0)


class PlainOracle(structsvm.Oracle):
    """One label of two, with plain types and an approximate argmax."""

    n_features = 2
    inference = "approximate"

    def joint_feature(self, x: float, y: int) -> tuple[list[int], list[float]]:
        return [y], [x]

    def loss(self, y_true: int, y: int) -> int:
        return int(y_true != y)

    def argmax(self, x: float, w: Vector, y_true: int | None = None, rescaling: str | None = None) -> int:
        scores = [float(w[y]) * x + (y_true is not None and y != y_true) for y in range(2)]
        return scores.index(max(scores))


class FirstPasses(Monitor):
    """Stops a run after some passes."""

    def __init__(self, n_passes: int) -> None:
        self.n_passes = n_passes

    def end_pass(self, run: Run) -> bool:
        return run.n_iter >= self.n_passes


def signs(n_samples: int, random_state: int) -> tuple[list[Vector], list[Vector]]:
    rng = np.random.default_rng(random_state)
    X = [rng.normal(size=(int(rng.integers(2, 6)), 3)) for _ in range(n_samples)]
    return X, [np.where(x @ np.array([1.0, -2.0, 0.5]) > 0.0, 1.0, -1.0) for x in X]


def own_oracle() -> float:
    X, Y = signs(40, 0)
    oracle = SignOracle(3)
    check_oracle(oracle, X, Y, n_trials=5, random_state=0)
    check_oracle(PlainOracle(), [1.0, -1.0], [0, 1])
    problem = oracle.bind(X, Y, rescaling="margin", penalty="linear")
    b, psi = problem.separate(0, np.zeros(3))
    assert problem.n_samples == 40 and b > 0.0 and psi.shape == (3,)

    model = StructuredSVM(oracle=oracle, solver=LaRank(C=1.0, tol=0.1, random_state=0)).fit(X, Y)
    result: Result = model.result_
    gap: float = result.relative_gap
    line: str = result.certificate()
    seconds: NDArray[np.float64] = result.history["seconds"]
    assert gap <= 0.1 and line.startswith("primal") and len(seconds) > 0
    return float(np.mean([oracle.loss(y, z) for y, z in zip(Y, model.predict(X), strict=True)]))


def chunks(path: Path) -> float:
    X, y = make_sequences(60, n_words=200, random_state=0)
    train = Columns.from_sequences(X)
    labeler = SequenceLabeler(C=0.1, constraints="bio", random_state=0).fit(train, y)
    labeler.save(path)
    try:
        loaded = structsvm.load(path, mmap=True)
    except ModelFileError as error:
        raise SystemExit(str(error)) from error
    predicted: list[list[str]] = loaded.predict(train[:20])
    score: float = chunk_f1(y[:20], predicted)
    return score


def documents() -> float:
    X, y, taxonomy = make_taxonomy(200, n_leaves=4, depth=2, n_words=100, random_state=0)
    names: dict[str, int] = {}
    rows = np.zeros((len(X), 100))
    for row, text in zip(rows, X, strict=True):
        for word in text.split():
            row[names.setdefault(word, len(names))] += 1.0
    classifier = TaxonomyClassifier(taxonomy, C=1.0, random_state=0).fit(rows, y)
    guessed = classifier.predict(rows)
    parents: list[str] = taxonomy.parents(str(guessed[0]))
    leaves: int = len(Taxonomy([("top", "a"), ("top", "b")]).leaves)
    assert len(parents) == 1 and leaves == 2
    return float(tree_loss(y, guessed, taxonomy))


def rankings() -> tuple[float, float]:
    X, _ = signs(1, 1)
    rows = np.concatenate([X[0], np.eye(3), -np.eye(3)])
    grades = np.arange(len(rows)) % 3
    ranker = Ranker("ndcg", k=2, C=1.0, random_state=0).fit(rows, grades, group=[3, len(rows) - 3])
    scores: RankingScores = ranking_scores(grades, ranker.predict(rows), group=[3, len(rows) - 3])
    machine = MultivariateClassifier("f1", C=1.0, random_state=0).fit(rows, grades > 0)
    return scores.ndcg_at[1], machine.score(rows, grades > 0)


def regions() -> float:
    grids = [np.random.default_rng(k).normal(size=(4, 4, 2)) for k in range(3)]
    labels = [(grid[..., 0] > 0.0).astype(int) for grid in grids]
    model = GraphLabeler(C=1.0, interactions="potts", neighbours=8, random_state=0).fit(grids, labels)
    scores: GraphScores = graph_scores(labels, model.predict(grids))
    return scores.mean_jaccard


def words(text: str) -> list[str]:
    tree: Tree = parse_tree(text)
    return [word for word, tag in tree.tokens() if tag is not None]


def brackets() -> tuple[str, str]:
    trees = make_treebank(20, max_length=8, random_state=0)
    parser = GrammarParser(C=0.1, max_iter=1, random_state=0).fit(trees)
    by_tags = parser.predict([[tag for _, tag in tree.tokens()] for tree in trees])
    by_pairs = parser.predict([tree.tokens() for tree in trees])
    return str(by_tags[0]), str(by_pairs[0])


def failures() -> list[type[Exception]]:
    return [ConvergenceWarning, OracleError, ModelFileError, structsvm.UnsupportedFormulation]


def main(path: Path) -> None:
    print(
        own_oracle(),
        chunks(path),
        documents(),
        rankings(),
        regions(),
        brackets(),
        words("(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"),
    )
    print([error.__name__ for error in failures()], FirstPasses(1).n_passes)
