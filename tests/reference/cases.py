"""The table of estimators with data for them: what all of them share is tested, and guarded, on each of its cases."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from python_oracles import Multiclass
from sklearn.base import clone

from structsvm import CuttingPlane, LaRank, StructuredSVM, tasks
from structsvm._adapter import as_objects
from structsvm.datasets import (
    make_alignment,
    make_ambig_house,
    make_concept_world,
    make_dependency_trees,
    make_orderings,
    make_sequences,
    make_treebank,
)
from structsvm.solvers.base import Solver
from structsvm.structures.trees import parse_tree

ROWS = np.random.default_rng(0).normal(size=(60, 4))
CLASSES = np.where(ROWS[:, 0] > 0.5, "a", np.where(ROWS[:, 1] > 0.0, "b", "c"))
OPEN = as_objects([{"a", c} if k % 3 == 1 else c for k, c in enumerate(CLASSES.tolist())])
SETS = [{c} | ({"d"} if x > 0.0 else set()) for c, x in zip(CLASSES.tolist(), ROWS[:, 2], strict=True)]
INDICATORS = np.array([[label in labels for label in "abcd"] for labels in SETS]).astype(int)
GRADES = np.round(ROWS[:, 0] - ROWS[:, 0].min())
TWO = np.where(ROWS[:, 0] + ROWS[:, 1] > 0.0, "q", "p")
WORDS = [[{"w": "the"}, {"w": "red"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}], [{"w": "runs"}, {"w": "the"}]] * 4
TAGS = [["D", "A", "N"], ["D", "N"], ["V", "D"]] * 4
SPANS = [[(0, 2, "P"), (2, 3, "N")], [(0, 1, "P"), (1, 2, "N")], [(1, 2, "P")]] * 4
TREES = [str(tree) for tree in make_treebank(8, max_length=7, random_state=0)] * 2  # the first half settles the grammar
SENTENCES = make_dependency_trees(12, max_length=7, crossing=0.2, random_state=0)
ARCS = [tree.arcs for tree in SENTENCES]
HOUSE = make_ambig_house(40, 1, random_state=0)
SCENES, CONCEPTS, WORLDS = make_concept_world(30, random_state=0)
PAIRS = make_alignment(8, random_state=0)
ITEMS, ORDERS = make_orderings(20, 3, 2, max_items=5, random_state=0)
ORACLE = Multiclass(3, 4)
PATH, RING = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
GRAPHS = [(ROWS[3 * k : 3 * k + 3], (PATH, RING)[k % 2]) for k in range(20)]
NODES = [CLASSES[3 * k : 3 * k + 3] for k in range(20)]
GRIDS, CELLS = list(ROWS.reshape(10, 2, 3, 4)), list(CLASSES.reshape(10, 2, 3))
OPEN_TAGS = [[None, *tags[1:]] if k % 3 == 1 else tags for k, tags in enumerate(TAGS)]
RBF = tasks.KernelFunction("rbf", gamma=0.1)

# They run until a tolerance is met.
BATCH = (tasks.CrammerSingerClassifier, tasks.PairwiseClassifier, tasks.WestonWatkinsClassifier)


@dataclass
class Case:
    """An estimator class with quick parameters, and data for it."""

    kind: Any
    params: dict
    X: Any
    y: Any
    strange: Any = None  # labels of X[:2], one of them unseen; None: there are no labels
    inputs: Any = None  # inputs of predictions; None: X
    shared: tuple = ("warm_start", "n_jobs", "checkpoint", "verbose")
    rounding: float = 0.0  # between two warm fits and one longer one: the end of a fit may compute its point afresh
    load: dict = field(default_factory=dict)
    has_names: bool = True  # whether its weights are those of features with names
    metric: str = "accuracy"  # by which C is chosen
    C_of_few: float = 1.0  # C where there are too few examples to choose it
    about: Callable[[int], dict] = lambda n: {}  # keywords that `fit` needs for n examples

    @property
    def has_rows(self):
        """Whether an example is a row of numbers."""
        return isinstance(self.X, np.ndarray)

    @property
    def is_stream(self):
        return hasattr(self.kind, "partial_fit")

    def passes(self, n, **params):
        """Parameters for so many passes."""
        if isinstance(solver := self.params.get("solver"), Solver):
            return {"solver": clone(solver).set_params(max_iter=n)} | params
        return {"max_iter": n} | ({"tol": 1e-9} if self.kind in BATCH else {}) | params

    def make(self, **params):
        return self.kind(**self.params | params)

    def fit(self, **params):
        return self.train(self.make(**params))

    def train(self, model, start=0, stop=None, method="fit", **options):
        """Train a model on a part of the examples; returns what the method does."""
        X, y = self.part(start, stop)
        return getattr(model, method)(X, y, **self.about(len(X)), **options)

    def predicted(self, model):
        """Return a model's predictions for the data, as text to compare."""
        return repr([*model.predict(self.questions)])

    @property
    def questions(self):
        return self.X if self.inputs is None else self.inputs

    def part(self, start, stop):
        return self.X[start:stop], None if self.y is None else self.y[start:stop]


def tokens_of(tree):
    """The words and tags of a tree, or of a bracketed string."""
    return (parse_tree(tree) if isinstance(tree, str) else tree).tokens()


def tagged(y=TAGS, **params):
    return Case(tasks.SequenceLabeler, {"random_state": 0} | params, WORDS, y, [["zz", "A", "N"], ["D", "N"]])


def arcs(X, y, **params):
    strange = [[(head, "zz") for head, _ in ARCS[0]], ARCS[1]]
    return Case(tasks.DependencyParser, {"C": 0.1, "random_state": 0} | params, X, y, strange, has_names=False)


def nodes(X, y, strange, **params):
    return Case(tasks.GraphLabeler, {"C": 0.1, "random_state": 0} | params, X, y, strange, has_names=False)


def meanings(n, **params):
    data = HOUSE.sentences[:n], HOUSE.bags[:n]
    return Case(tasks.SemanticParser, {"random_state": 0} | params, *data, has_names=False)


def concepts(y):
    params = {"dimension": 4, "hidden": 8, "max_iter": 3, "random_state": 0}
    return Case(tasks.ConceptLabeler, params, list(zip(SCENES, WORLDS, strict=True)), y, has_names=False)


def orders(y, **params):
    return Case(tasks.ItemOrderer, {"C": 0.01, "random_state": 0} | params, ITEMS, y)


def kernel(kind, y, rounding=0.0, **params):
    strange = np.array(["zz", y[0]])
    return Case(kind, {"gamma": 0.5} | params, ROWS, y, strange, rounding=rounding, has_names=False)


CASES = {
    "sequence": tagged(),
    "greedy": tagged(inference="greedy"),
    "log loss of sequences": tagged(loss="log", C=0.1),
    "perceptron of sequences": tagged(solver="perceptron"),
    "cutting plane": tagged(solver="cutting_plane", C=0.1, max_iter=5),
    "one slack": replace(
        tagged(solver=CuttingPlane(C=0.1, form="one_slack", max_iter=3, random_state=0), random_state=None),
        shared=("warm_start", "verbose"),
    ),
    "open sequences": tagged(OPEN_TAGS, loss="hamming", C=0.1),
    "open sequences, log loss": tagged(OPEN_TAGS, loss="log", C=0.1),
    "segments": Case(
        tasks.SequenceLabeler,
        {"segments": True, "C": 0.1, "random_state": 0},
        WORDS,
        SPANS,
        [[(0, 1, "zz")], [(1, 2, "N")]],
    ),
    "grammar": Case(
        tasks.GrammarParser,
        {"C": 0.1, "random_state": 0},
        TREES,
        None,
        inputs=[tokens_of(tree) for tree in TREES],
    ),
    "dependency": arcs(SENTENCES, ARCS),
    "open dependency": arcs(
        SENTENCES[:6] * 2,
        [[(None, label) for _, label in tree] if k % 3 == 1 else tree for k, tree in enumerate(ARCS[:6] * 2)],
        projective=True,
    ),
    "graph": nodes(GRAPHS, NODES, [["zz", "a", "b"], NODES[1]]),
    "open graph": nodes(
        GRAPHS,
        [[None, *labels[1:]] if k % 3 == 1 else labels for k, labels in enumerate(NODES)],
        [["zz", "a", "b"], NODES[1]],
    ),
    "cut": nodes(
        GRAPHS, [TWO[3 * k : 3 * k + 3] for k in range(20)], [["zz", "p", "q"], ["p", "p", "q"]], method="cut"
    ),
    "grids": nodes(GRIDS, CELLS, [np.full((2, 3), "zz"), CELLS[1]]),
    "alignment": Case(tasks.SequenceAligner, {"random_state": 0}, PAIRS.X, PAIRS.y),
    "taxonomy": Case(tasks.TaxonomyClassifier, {"random_state": 0}, ROWS, CLASSES, np.array(["zz", "a"])),
    "kernel taxonomy": Case(
        tasks.TaxonomyClassifier,
        {"kernel": "rbf", "random_state": 0},
        ROWS,
        CLASSES,
        np.array(["zz", "a"]),
        has_names=False,
    ),
    "open taxonomy": Case(tasks.TaxonomyClassifier, {"C": 1.0, "random_state": 0}, ROWS, OPEN, as_objects(["zz", "a"])),
    "ambiguous": Case(
        tasks.AmbiguousClassifier, {"random_state": 0}, ROWS, [{c, "b"} for c in CLASSES], [{"zz"}, {"a"}]
    ),
    **{
        f"{loss} loss of bags": Case(
            tasks.AmbiguousClassifier,
            {"loss": loss, "random_state": 0},
            ROWS,
            [{c, "b"} for c in CLASSES],
            [{"zz"}, {"a"}],
        )
        for loss in ("mean", "max", "log")
    },
    "semantics": meanings(20, max_iter=3),
    "perceptron of meanings": meanings(8, method=tasks.Hybrid(solver="perceptron")),
    "open meanings": meanings(8, method=tasks.Hybrid(solver="larank")),
    "ospas": meanings(None, method=tasks.Ospas()),
    "concepts": concepts(CONCEPTS),
    "bags of concepts": concepts(list(map(Counter, CONCEPTS))),
    "larank": kernel(tasks.LaRankClassifier, CLASSES, random_state=0),
    "crammer singer": kernel(tasks.CrammerSingerClassifier, CLASSES, random_state=0),
    "weston watkins": kernel(tasks.WestonWatkinsClassifier, CLASSES, rounding=1e-12),
    "pairwise": kernel(tasks.PairwiseClassifier, CLASSES),
    "kernel perceptron": kernel(tasks.KernelPerceptronClassifier, CLASSES, random_state=0),
    "lasvm": kernel(tasks.LaSVMClassifier, TWO, random_state=0, steps=tasks.LaSVMSteps(finishing=False)),
    "huller": kernel(tasks.HullerClassifier, TWO, random_state=0),
    "sgdqn": Case(tasks.SGDQNClassifier, {"random_state": 0}, ROWS, TWO, np.array(["zz", "p"])),
    "sgdqn of classes": Case(tasks.SGDQNClassifier, {"random_state": 0}, ROWS, CLASSES, np.array(["zz", "a"])),
    "tracking": Case(tasks.TrackingClassifier, {"random_state": 0}, ROWS, TWO, np.array(["zz", "p"])),
    **{
        f"ranker, {loss}": Case(
            tasks.Ranker, {"loss": loss, "C": 1.0, "random_state": 0}, ROWS, grades, about=lambda n: {"group": [n]}
        )
        for loss, grades in (("pairs", GRADES), ("map", np.arange(60) % 3 == 0), ("ndcg", GRADES))
    },
    **{
        f"multilabel, {how}": Case(
            tasks.MultilabelClassifier,
            {"loss": loss, "interactions": how, "C": 1.0, "random_state": 0},
            ROWS,
            sets,
            strange,
        )
        for how, loss, sets, strange in (
            ("none", "f1", SETS, [{"zz"}, {"a"}]),
            ("tree", "subset", INDICATORS, None),
            ("full", "hamming", SETS, [{"zz"}, {"a"}]),
        )
    },
    "ordering": orders(ORDERS),
    "log loss of orders": orders(ORDERS, loss="log", C=0.1),
    "open ordering": orders([[(y[0], y[-1])] if k % 3 == 1 else y for k, y in enumerate(ORDERS)]),
    "multivariate": Case(tasks.MultivariateClassifier, {"C": 1.0, "random_state": 0}, ROWS, TWO, np.array(["zz", "p"])),
    "ROC area": Case(
        tasks.MultivariateClassifier,
        {"loss": "roc_area", "C": 1.0, "random_state": 0},
        ROWS,
        TWO,
        np.array(["zz", "p"]),
    ),
    "structured": Case(
        StructuredSVM,
        {"oracle": ORACLE, "solver": LaRank(random_state=0)},
        ROWS,
        (CLASSES == "a") + 2 * (CLASSES == "b"),
        shared=("warm_start", "verbose"),
        load={"oracle": ORACLE},
        has_names=False,
    ),
}

DRAWN = np.random.default_rng(0)
MANY = DRAWN.normal(size=(400, 6))
KINDS = np.argmax(MANY[:, :3] + 0.7 * DRAWN.normal(size=(400, 3)), axis=1)
LINES, LINE_TAGS = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
TREEBANK = make_treebank(40, max_length=8, random_state=0)
EDGES = [(MANY[2 * k : 2 * k + 2], [(0, 1)]) for k in range(30)]
TREE_ARCS = make_dependency_trees(40, max_length=8, random_state=0)
HOMOLOGUES = make_alignment(24, random_state=0)
BAGS = [{c, (c + 1) % 3} for c in KINDS.tolist()]

# Enough data, and parameters with which C is chosen.
CHOICES = {
    "sequence": Case(tasks.SequenceLabeler, {"loss": "hamming", "random_state": 0}, LINES, LINE_TAGS, metric="F1"),
    "loss of sequences": Case(tasks.SequenceLabeler, {"random_state": 0}, LINES, LINE_TAGS, metric="F1"),
    "log loss": Case(tasks.SequenceLabeler, {"loss": "log", "random_state": 0}, LINES, LINE_TAGS, metric="F1"),
    "greedy": Case(tasks.SequenceLabeler, {"inference": "greedy", "random_state": 0}, LINES, LINE_TAGS, metric="F1"),
    "grammar": Case(
        tasks.GrammarParser,
        {"random_state": 0},
        TREEBANK,
        None,
        inputs=[tokens_of(tree) for tree in TREEBANK],
        metric="F1",
    ),
    "graph": Case(tasks.GraphLabeler, {"random_state": 0}, EDGES, list(KINDS[:60].reshape(30, 2)), C_of_few=0.1),
    "dependency": Case(tasks.DependencyParser, {"random_state": 0}, TREE_ARCS, None, metric="LAS", C_of_few=0.1),
    "alignment": Case(
        tasks.SequenceAligner, {"random_state": 0}, HOMOLOGUES.X, HOMOLOGUES.y, metric="Q", C_of_few=0.001
    ),
    "taxonomy": Case(tasks.TaxonomyClassifier, {"random_state": 0}, MANY, KINDS),
    "kernel taxonomy": Case(
        tasks.TaxonomyClassifier,
        {"kernel": RBF, "random_state": 0},
        MANY[:90],
        KINDS[:90],
        inputs=MANY,
    ),
    "ambiguous": Case(
        tasks.AmbiguousClassifier,
        {"loss": "pairwise", "random_state": 0},
        MANY,
        BAGS,
        metric="candidate log loss",
        C_of_few=0.1,
    ),
    "multilabel": Case(
        tasks.MultilabelClassifier, {"random_state": 0}, MANY, BAGS, metric="Hamming loss", C_of_few=0.1
    ),
    "ordering": Case(
        tasks.ItemOrderer,
        {"random_state": 0},
        *make_orderings(60, 3, max_items=5, random_state=0),
        metric="Kendall loss",
        C_of_few=0.1,
    ),
    "log loss of bags": Case(
        tasks.AmbiguousClassifier, {"loss": "log", "random_state": 0}, MANY, BAGS, metric="candidate log loss"
    ),
    "larank": Case(tasks.LaRankClassifier, {"gamma": 0.1, "random_state": 0}, MANY, KINDS),
    "lasvm": Case(tasks.LaSVMClassifier, {"gamma": 0.1, "random_state": 0}, MANY, KINDS > 1),
    "crammer singer": Case(
        tasks.CrammerSingerClassifier, {"gamma": 0.1, "random_state": 0}, MANY[:90], KINDS[:90], inputs=MANY
    ),
    "pairwise": Case(tasks.PairwiseClassifier, {"gamma": 0.1}, MANY[:90], KINDS[:90], inputs=MANY),
    "weston watkins": Case(tasks.WestonWatkinsClassifier, {"gamma": 0.1}, MANY[:90], KINDS[:90], inputs=MANY),
}
