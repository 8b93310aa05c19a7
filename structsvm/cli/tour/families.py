"""One small training per family: data that are simulated, a model, its score on fresh data, one of its outputs.

The family of a task bears the name of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from structsvm.cli.tour import pictures

# Parameters that keep a training short; where C is given, none is chosen.
SETTINGS: dict[str, Any] = {"C": 0.1, "tol": 0.1}


class Family(NamedTuple):
    """The figures and the picture shown of a family of structures.

    Attributes
    ----------
    name, data, score : str
    result : Result
        Its certificate.
    draw : callable or None
        Draws an output of the model on the axes that it is given; None: labels and scores, which are no structures.
    """

    name: str
    data: str
    score: str
    result: Any
    draw: Callable[[Any], Any] | None = None


FAMILIES: dict[str, Callable[[int], Family]] = {}


def family(train: Callable[[int], Family]) -> Callable[[int], Family]:
    """Enter a function in `FAMILIES`, whose order is that of this file."""
    FAMILIES[train.__name__] = train
    return train


def families(seed: int) -> Iterator[Family]:
    """Train them, one after the other."""
    for train in FAMILIES.values():
        yield train(seed)


@family
def sequence(seed: int) -> Family:
    """Fields of postal addresses."""
    from structsvm.datasets import make_addresses
    from structsvm.tasks import SequenceLabeler

    (X, y), (X_test, y_test) = (make_addresses(n, random_state=seed + k) for k, n in enumerate((200, 150)))
    labeler = SequenceLabeler(**SETTINGS, probability=False, random_state=seed).fit(X, y)
    return labelled("label sequences", "200 addresses", labeler.result_, X_test, y_test, labeler.predict(X_test))


def labelled(name: str, data: str, result: Any, X_test: Any, y_test: Any, predicted: Any) -> Family:
    """Scores of the lines labelled, and one of middling length with many fields."""
    from structsvm.metrics import field_f1, record_accuracy

    lines = [k for k, labels in enumerate(predicted) if 6 <= len(labels) <= 9]
    shown = max(lines, key=lambda k: len(set(predicted[k])))
    right, fields = (100 * metric(y_test, predicted) for metric in (record_accuracy, field_f1))
    score = f"{right:.1f} % of lines, {fields:.1f} % F1 of fields"
    return Family(
        name, data, score, result, lambda ax: pictures.sentence(ax, X_test[shown], predicted[shown], y_test[shown])
    )


@family
def grammar(seed: int) -> Family:
    """Trees of a simulated treebank."""
    from structsvm.datasets import make_treebank
    from structsvm.plotting import TreeDisplay
    from structsvm.tasks import GrammarParser

    trees, test = (
        make_treebank(n, max_length=10, english=True, random_state=seed + k) for k, n in enumerate((150, 80))
    )
    parser = GrammarParser(**SETTINGS, probability=False, random_state=seed).fit(trees)
    shown = next(tree for tree in test if 5 <= len(tree.leaves()) <= 8)
    (found,) = parser.predict([shown.tokens()])
    score = f"bracket F1 {100 * parser.score(test):.1f} %"
    return Family("parse trees", "150 trees", score, parser.result_, lambda ax: TreeDisplay(found).plot(ax=ax))


@family
def dependency(seed: int) -> Family:
    """Arcs between words."""
    from structsvm.datasets import make_dependency_trees
    from structsvm.metrics import dependency_scores
    from structsvm.plotting import DependencyDisplay
    from structsvm.tasks import DependencyParser

    trees, test = (
        make_dependency_trees(n, max_length=12, english=True, random_state=seed + k) for k, n in enumerate((100, 60))
    )
    parser = DependencyParser(**SETTINGS, random_state=seed).fit(trees)
    predicted = [tree.with_arcs(arcs) for tree, arcs in zip(test, parser.predict(test))]
    shown = next(tree for tree in predicted if 5 <= len(tree) <= 8)
    score = f"LAS {100 * dependency_scores(test, predicted).las:.1f} %"
    return Family(
        "dependency trees", "100 trees", score, parser.result_, lambda ax: DependencyDisplay(shown).plot(ax=ax)
    )


@family
def alignment(seed: int) -> Family:
    """Alignments of simulated homologues."""
    from structsvm.datasets import make_alignment
    from structsvm.tasks import SequenceAligner

    data, test = (make_alignment(n, length=30, random_state=seed + k) for k, n in enumerate((40, 40)))
    aligner = SequenceAligner(C=1.0, tol=0.1, mode="global", prior=None, random_state=seed).fit(data.X, data.y)
    (rows,) = aligner.predict(test.X[:1])
    score = f"{100 * aligner.score(test.X, test.y):.1f} % of pairs found"
    return Family("alignments", "40 pairs", score, aligner.result_, lambda ax: pictures.alignment(ax, *rows))


@family
def taxonomy(seed: int) -> Family:
    """Titles of products in a shop's tree of categories."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from structsvm.datasets import make_products
    from structsvm.metrics import tree_loss
    from structsvm.tasks import TaxonomyClassifier

    (X, y, tree), (X_test, y_test, _) = (make_products(300, random_state=seed + k) for k in range(2))
    classifier = TaxonomyClassifier(tree, C=1.0, tol=0.1, vectorizer=TfidfVectorizer(), random_state=seed).fit(X, y)
    predicted = classifier.predict(X_test)
    score = f"mean tree loss {tree_loss(y_test, predicted, tree):.3f}"
    shown = max(range(60), key=lambda k: len(X_test[k]))
    path = ["shop", *predicted[shown].split("/")]
    return Family(
        "taxonomies", "300 product titles", score, classifier.result_, lambda ax: pictures.path(ax, path, X_test[shown])
    )


@family
def semantics(seed: int) -> Family:
    """Meanings of sentences, from ambiguous ones."""
    from structsvm.datasets import make_ambig_house
    from structsvm.metrics import meaning_scores
    from structsvm.tasks import SemanticParser

    house, test = (
        make_ambig_house(100, level=1, random_state=seed),
        make_ambig_house(60, level=0, random_state=seed + 1),
    )
    parser = SemanticParser(random_state=seed).fit(house.sentences, house.bags)
    found = parser.predict(test.sentences)
    f1 = meaning_scores(test.meanings, found).f1
    sentence, meaning = next((s, m[0] if isinstance(m, list) else m) for s, m in zip(test.sentences, found) if m)
    text = sentence if isinstance(sentence, str) else " ".join(sentence)
    return Family(
        "meanings",
        "100 sentences, two meanings each",
        f"meaning F1 {100 * f1:.1f} %",
        parser.result_,
        lambda ax: pictures.meaning(ax, text, str(meaning)),
    )


@family
def graph(seed: int) -> Family:
    """Cells of noisy grids."""
    from structsvm.datasets import make_noisy_grids
    from structsvm.tasks import GraphLabeler

    (X, y), (X_test, y_test) = (make_noisy_grids(10, size=16, random_state=seed + k) for k in range(2))
    labeler = GraphLabeler(C=0.1, method="cut", tol=0.1, random_state=seed).fit(X, y)
    score = f"{100 * labeler.score(X_test, y_test):.1f} % of cells"
    shown = min(range(10), key=lambda k: abs(y_test[k].mean() - 0.5))  # with cells of either label
    (found,) = labeler.predict(X_test[shown : shown + 1])
    noisy, true = X_test[shown][..., 1] - X_test[shown][..., 0], y_test[shown]
    return Family("graphs", "10 grids", score, labeler.result_, lambda ax: pictures.grids(ax, noisy, found, true))


@family
def segments(seed: int) -> Family:
    """Fields of ingredients as wholes."""
    from structsvm.datasets import make_recipes
    from structsvm.tasks import SequenceLabeler

    (X, y), (X_test, y_test) = (make_recipes(n, random_state=seed + k) for k, n in enumerate((100, 100)))
    labeler = SequenceLabeler(**SETTINGS, segments=True, loss="hamming", probability=False, random_state=seed).fit(X, y)
    return labelled("segments", "100 lines of recipes", labeler.result_, X_test, y_test, labeler.predict(X_test))


@family
def matching(seed: int) -> Family:
    """Points that are seen again, moved and in another order."""
    import numpy as np

    from structsvm import LaRank, StructuredSVM
    from structsvm.metrics import matching_scores
    from structsvm.oracles.assignment import AssignmentOracle

    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 7, 2))
    y = [rng.permutation(7) for _ in points]
    again = [own[np.argsort(to)] + 0.3 * rng.normal(size=(7, 2)) for own, to in zip(points, y)]
    X = [-np.abs(before[:, None] - after) for before, after in zip(points, again)]
    model = StructuredSVM(AssignmentOracle(2), LaRank(C=0.1, tol=0.1, random_state=seed)).fit(X[:30], y[:30])
    found = model.predict(X[30:])
    return Family(
        "matchings",
        "30 pairs of 7 points",
        f"F1 {100 * matching_scores(y[30:], found).f1:.1f} %",
        model.result_,
        lambda ax: pictures.matching(ax, points[30], again[30], found[0], y[30]),
    )


@family
def multilabel(seed: int) -> Family:
    """Labels that go together."""
    from structsvm.datasets import make_label_sets
    from structsvm.tasks import MultilabelClassifier

    X, y = make_label_sets(300, random_state=seed)
    classifier = MultilabelClassifier(**SETTINGS, random_state=seed).fit(X[:200], y[:200])
    found, true = classifier.predict(X[200:]), y[200:]
    score = f"{100 * (found == true).mean():.1f} % of labels"
    return Family(
        "label sets",
        "200 rows, 6 labels",
        score,
        classifier.result_,
        lambda ax: pictures.label_sets(ax, found[:16], true[:16]),
    )


@family
def ranking(seed: int) -> Family:
    """Rows of queries."""
    from structsvm.datasets import make_rankings
    from structsvm.metrics import ranking_scores
    from structsvm.tasks import Ranker

    (X, y, qid), (X_test, y_test, qid_test) = (make_rankings(60, random_state=seed + k) for k in range(2))
    ranker = Ranker(C=1.0, tol=0.05, random_state=seed).fit(X, y, qid=qid)
    score = f"NDCG {ranking_scores(y_test, ranker.predict(X_test), qid=qid_test).ndcg:.3f}"
    return Family("rankings", "60 queries", score, ranker.result_)


@family
def multivariate(seed: int) -> Family:
    """Few rows of one class, by the area under their ROC curve."""
    from sklearn.datasets import make_classification

    from structsvm.tasks import MultivariateClassifier

    X, y = make_classification(1000, weights=[0.9], random_state=seed)
    classifier = MultivariateClassifier("roc_area", C=1.0, tol=0.05, random_state=seed).fit(X[:500], y[:500])
    score = f"ROC area {100 * classifier.score(X[500:], y[500:]):.1f} %"
    return Family("losses of samples", "500 rows, 10 % of one class", score, classifier.result_)


@family
def multiclass(seed: int) -> Family:
    """Classes with a kernel."""
    from sklearn.datasets import make_blobs

    from structsvm.tasks import LaRankClassifier

    X, y = make_blobs(800, n_features=5, centers=6, cluster_std=3.0, random_state=seed)
    classifier = LaRankClassifier(C=1.0, gamma="scale", tol=0.05, random_state=seed).fit(X[:400], y[:400])
    score = f"accuracy {100 * classifier.score(X[400:], y[400:]):.1f} %"
    return Family("classes, with kernels", "400 points, 6 classes", score, classifier.result_)


@family
def binary(seed: int) -> Family:
    """Two classes in one pass."""
    from structsvm.datasets import make_banana
    from structsvm.tasks import LaSVMClassifier

    (X, y), (X_test, y_test) = (make_banana(400, random_state=seed + k) for k in range(2))
    classifier = LaSVMClassifier(C=1.0, gamma=1.0, random_state=seed).fit(X, y)
    score = f"accuracy {100 * classifier.score(X_test, y_test):.1f} %"
    return Family("two classes, online", "400 points", score, classifier.result_)
