"""The table of estimators with data for them: what all of them share is tested, and guarded, on each of its cases.

A case that takes no part in a subject of tests says why, in `Case.apart`.
"""

import copy
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from python_oracles import Multiclass
from sklearn.base import clone

from structsvm import ConvergenceWarning, CuttingPlane, LaRank, StructuredSVM, tasks
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

# Checks of scikit-learn that estimators take no part in, with the reasons.
SAME_WEIGHTS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
NO_WEIGHTS = {"explanations": "there are no weights of features"}
ORDER = dict.fromkeys(
    SAME_WEIGHTS, "training visits examples in an order that copies change, and stops before the optimum's last digit"
)
OF_SEQUENCES = ORDER | {
    "check_complex_data": "errors name sequence and token, and a wrong type is a TypeError",
    "check_dtype_object": "object arrays hold tokens with attributes, not rows of numbers",
    "check_estimators_empty_data_messages": "errors name the sequence",
    "check_fit1d": "errors name sequence and token, and a wrong shape of a token is a TypeError",
    "check_fit2d_predict1d": "errors name sequence and token, and a wrong shape of a token is a TypeError",
    "check_n_features_in_after_fitting": "errors name sequence and token",
}
OF_ORACLES = {SAME_WEIGHTS[0]: ORDER[SAME_WEIGHTS[0]]} | dict.fromkeys(
    (
        "check_complex_data",
        "check_estimators_empty_data_messages",
        "check_estimators_nan_inf",
        "check_fit1d",
        "check_fit2d_predict1d",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_sample_weights_not_an_array",
    ),
    "X goes to the oracle as it is, whatever it is: what may be wrong with it, only the oracle can say",
)
OF_QUERIES = dict.fromkeys(
    (*SAME_WEIGHTS, "check_sample_weights_not_overwritten"), "all rows of a query have the same weight"
) | {"check_fit2d_1sample": "a query of one row is no error beside others, and the error says what is missing"}
OF_SETS = {"labels that exclude one another": "an output is a set of labels"} | dict.fromkeys(
    (
        *SAME_WEIGHTS,
        "check_classifier_data_not_an_array",
        "check_classifier_multioutput",
        "check_classifier_not_supporting_multiclass",
        "check_classifiers_classes",
        "check_classifiers_multilabel_representation_invariance",
        "check_classifiers_one_label",
        "check_classifiers_one_label_sample_weights",
        "check_classifiers_regression_target",
        "check_classifiers_train",
        "check_decision_proba_consistency",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimators_dtypes",
        "check_estimators_partial_fit_n_features",
        "check_fit2d_1feature",
        "check_n_features_in_after_fitting",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ),
    "y is one column of classes there, or a list of rows of 0 and 1: an output is a set of labels, or a matrix's row",
)


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
    copies: int = 100  # so many of the data take some 10 MB to train on
    empty: tuple | None = None  # an input without words, nodes or items, and its output; None: inputs are rows
    apart: dict = field(default_factory=dict)  # subjects of tests that the case takes no part in, each with the reason
    about: Callable[[int], dict] = lambda n: {}  # keywords that `fit` needs for n examples

    @property
    def has_rows(self):
        """Whether an example is a row of numbers."""
        return isinstance(self.X, np.ndarray)

    @property
    def has_columns(self):
        """Whether an example is a row of numbers, or several."""
        return getattr(rows_of(self.X[0]), "dtype", None) == np.float64

    @property
    def n_columns(self):
        return rows_of(self.X[0]).shape[-1]

    @property
    def room(self):
        """The folder of the estimator."""
        return self.kind.__module__.split(".")[-2]

    @property
    def is_stream(self):
        return hasattr(self.kind, "partial_fit")

    def passes(self, n, **params):
        """Parameters for so many passes; an estimator without passes has none."""
        if "training" in self.apart:
            return params
        if isinstance(solver := self.params.get("solver"), Solver):
            return {"solver": clone(solver).set_params(max_iter=n)} | params
        return {"max_iter": n} | ({"tol": 1e-9} if self.kind in BATCH else {}) | params

    def make(self, **params):
        return self.kind(**self.params | params)

    def fit(self, **params):
        return self.train(self.make(**params))

    @cached_property
    def trained(self):
        """The estimator as `fit` leaves it, trained once: for tests that ask it and change nothing."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # cases stop after some passes
            return self.fit()

    def fitted(self):
        """A copy of what is trained, for a test to change."""
        return copy.deepcopy(self.trained)

    def train(self, model, start=0, stop=None, method="fit", **options):
        """Train a model on a part of the examples; returns what the method does."""
        return self.train_on(model, *self.part(start, stop), method, **options)

    def train_on(self, model, X, y, method="fit", **options):
        """Train a model on other data than the case has."""
        return getattr(model, method)(X, y, **self.about(len(X)), **options)

    def fit_on(self, X, y, **params):
        return self.train_on(self.make(**params), X, y)

    def without_choice(self, **params):
        """The estimator with a C that is given, where it would choose one."""
        model = self.make(**params)
        chooses = model.get_params().get("C") == "auto" and self.params.get("solver") != "perceptron"
        return model.set_params(C=0.1) if chooses else model

    def copied(self, n):
        """Return n copies of inputs and outputs of training, and of inputs of predictions."""
        return [
            np.concatenate([data] * n) if isinstance(data, np.ndarray) else None if data is None else list(data) * n
            for data in (self.X, self.y, self.questions)
        ]

    def predicted(self, model):
        """Return a model's predictions for the data, as text to compare."""
        return repr([*model.predict(self.questions)])

    def scaled(self, factors, offset=0.0):
        """Return X with columns in other units, and from other origins."""
        if self.has_rows:
            return factors * (self.X + offset)
        rows = (factors * (rows_of(x) + offset) for x in self.X)
        return [(own, *x[1:]) if isinstance(x, tuple) else own for own, x in zip(rows, self.X, strict=True)]

    @property
    def questions(self):
        return self.X if self.inputs is None else self.inputs

    def part(self, start, stop):
        return self.X[start:stop], None if self.y is None else self.y[start:stop]


def rows_of(x):
    """The rows of numbers of an input, without what else it has."""
    return x[0] if isinstance(x, tuple) else x


def taking_part(subject, cases=None):
    """The cases of a table that take part in a subject of tests, for `pytest.mark.parametrize`."""
    part = {name: case for name, case in (TABLE if cases is None else cases).items() if subject not in case.apart}
    return pytest.mark.parametrize("case", part.values(), ids=part.keys())


def tokens_of(tree):
    """The words and tags of a tree, or of a bracketed string."""
    return (parse_tree(tree) if isinstance(tree, str) else tree).tokens()


def tagged(y=TAGS, **params):
    strange = [["zz", "A", "N"], ["D", "N"]]
    params = {"random_state": 0} | params
    about = {"copies": 4000, "empty": ([], []), "apart": OF_SEQUENCES}
    return Case(tasks.SequenceLabeler, params, WORDS, y, strange, **about)


def arcs(X, y, **params):
    strange = [[(head, "zz") for head, _ in ARCS[0]], ARCS[1]]
    params = {"C": 0.1, "random_state": 0} | params
    return Case(tasks.DependencyParser, params, X, y, strange, has_names=False, empty=([], []))


def nodes(X, y, strange, empty=((ROWS[:0], []), []), **params):
    params = {"C": 0.1, "random_state": 0} | params
    return Case(tasks.GraphLabeler, params, X, y, strange, has_names=False, empty=empty, copies=400)


def meanings(n, **params):
    data = HOUSE.sentences[:n], HOUSE.bags[:n]
    empty = "", HOUSE.bags[0]
    return Case(tasks.SemanticParser, {"random_state": 0} | params, *data, has_names=False, empty=empty)


def concepts(y):
    params, X = {"dimension": 4, "hidden": 8, "max_iter": 3, "random_state": 0}, list(zip(SCENES, WORLDS, strict=True))
    return Case(
        tasks.ConceptLabeler, params, X, y, has_names=False, empty=(([], WORLDS[0]), []), copies=300, apart=NO_WEIGHTS
    )


def orders(y, **params):
    rows, pairs = ITEMS[0]
    empty = (rows[:0], pairs[:0, :0]), []
    return Case(tasks.ItemOrderer, {"C": 0.01, "random_state": 0} | params, ITEMS, y, empty=empty, copies=400)


def kernel(kind, y, rounding=0.0, **params):
    strange = np.array(["zz", y[0]])
    about = {"rounding": rounding, "has_names": False, "copies": 20, "apart": ORDER | NO_WEIGHTS}
    return Case(kind, {"gamma": 0.5} | params, ROWS, y, strange, **about)


def linear(kind, y, **params):
    return Case(kind, {"random_state": 0} | params, ROWS, y, np.array(["zz", y[0]]), copies=2000, apart=ORDER)


TABLE = {
    "sequence": tagged(),
    "greedy": replace(
        tagged(inference="greedy"),
        apart=OF_SEQUENCES | {"explanations": "greedy inference has no second best labelling"},
    ),
    "sequence under rules": tagged(constraints=["at_most_once(N)", "in_order(D, N)"]),
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
        empty=([], []),
    ),
    "grammar": Case(
        tasks.GrammarParser,
        {"C": 0.1, "random_state": 0},
        TREES,
        None,
        inputs=[tokens_of(tree) for tree in TREES],
        empty=([], None),
    ),
    "predicted tags": Case(
        tasks.GrammarParser,
        {"terminals": "predicted", "C": 0.1, "random_state": 0},
        [tokens_of(tree) for tree in TREES],
        TREES,
        empty=([], TREES[0]),
    ),
    "dependency": arcs(SENTENCES, ARCS),
    "open dependency": arcs(
        SENTENCES[:6] * 2,
        [[(None, label) for _, label in tree] if k % 3 == 1 else tree for k, tree in enumerate(ARCS[:6] * 2)],
        projective=True,
    ),
    "tagged": Case(
        tasks.TaggedParser,
        {
            "parser": tasks.DependencyParser(C=0.1, random_state=0),
            "tagger": tasks.SequenceLabeler(C=0.1, random_state=0),
            "n_folds": 2,
        },
        SENTENCES,
        ARCS,
        shared=(),
        has_names=False,
        empty=([], []),
        apart={"training": "it is that of two other estimators, which have cases"},
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
    "grids": nodes(GRIDS, CELLS, [np.full((2, 3), "zz"), CELLS[1]], (GRIDS[0][:0], CELLS[0][:0])),
    "alignment": Case(
        tasks.SequenceAligner,
        {"random_state": 0},
        PAIRS.X,
        PAIRS.y,
        empty=(("", ""), ("", "")),
        apart={"k best of empty inputs": "predict_kbest says by an error that the string is empty"},
    ),
    "taxonomy": Case(tasks.TaxonomyClassifier, {"random_state": 0}, ROWS, CLASSES, np.array(["zz", "a"]), copies=2000),
    "kernel taxonomy": Case(
        tasks.TaxonomyClassifier,
        {"kernel": "rbf", "random_state": 0},
        ROWS,
        CLASSES,
        np.array(["zz", "a"]),
        has_names=False,
        apart=NO_WEIGHTS,
    ),
    "open taxonomy": Case(tasks.TaxonomyClassifier, {"C": 1.0, "random_state": 0}, ROWS, OPEN, as_objects(["zz", "a"])),
    "ambiguous": Case(
        tasks.AmbiguousClassifier,
        {"random_state": 0},
        ROWS,
        [{c, "b"} for c in CLASSES],
        [{"zz"}, {"a"}],
        apart=ORDER | {"check_supervised_y_2d": "a row of y is a set of candidates, of one label too"},
    ),
    **{
        f"{loss} loss of bags": Case(
            tasks.AmbiguousClassifier,
            {"loss": loss, "C": 1.0, "random_state": 0},
            ROWS,
            [{c, "b"} for c in CLASSES],
            [{"zz"}, {"a"}],
        )
        for loss in ("mean", "max", "log")
    },
    "semantics": meanings(20, max_iter=3),
    "perceptron of meanings": meanings(8, max_iter=3, method=tasks.Hybrid(solver="perceptron")),
    "open meanings": meanings(8, max_iter=3, method=tasks.Hybrid(solver="larank")),
    "ospas": replace(
        meanings(None, method=tasks.Ospas()), apart={"explanations": "symbols are assembled, not compared with others"}
    ),
    "concepts": concepts(CONCEPTS),
    "bags of concepts": concepts(list(map(Counter, CONCEPTS))),
    "larank": kernel(tasks.LaRankClassifier, CLASSES, random_state=0),
    "crammer singer": kernel(tasks.CrammerSingerClassifier, CLASSES, random_state=0),
    "weston watkins": kernel(tasks.WestonWatkinsClassifier, CLASSES, rounding=1e-12),
    "pairwise": kernel(tasks.PairwiseClassifier, CLASSES),
    "kernel perceptron": kernel(tasks.KernelPerceptronClassifier, CLASSES, random_state=0),
    "lasvm": kernel(tasks.LaSVMClassifier, TWO, random_state=0, steps=tasks.LaSVMSteps(finishing=False)),
    "huller": kernel(tasks.HullerClassifier, TWO, random_state=0),
    "sgdqn": linear(tasks.SGDQNClassifier, TWO),
    "sgdqn of classes": linear(tasks.SGDQNClassifier, CLASSES),
    "tracking": linear(tasks.TrackingClassifier, TWO),
    **{
        f"ranker, {loss}": Case(
            tasks.Ranker,
            {"loss": loss, "C": 1.0, "random_state": 0},
            ROWS,
            grades,
            copies=2000,
            apart=OF_QUERIES,
            about=lambda n: {"group": [n]},
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
            copies=1000,
            apart=OF_SETS,
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
    "multivariate": linear(tasks.MultivariateClassifier, TWO, C=1.0),
    "ROC area": linear(tasks.MultivariateClassifier, TWO, loss="roc_area", C=1.0),
    "structured": Case(
        StructuredSVM,
        {"oracle": ORACLE, "solver": LaRank(random_state=0)},
        ROWS,
        (CLASSES == "a") + 2 * (CLASSES == "b"),
        shared=("warm_start", "verbose"),
        load={"oracle": ORACLE},
        has_names=False,
        apart=OF_ORACLES
        | NO_WEIGHTS
        | {
            "units": "an oracle makes its features itself",
            "sizes of numbers": "an oracle makes its features itself",
            "empty inputs": "X goes to the oracle as it is, a list of no inputs too",
        },
    ),
}

# The cases that train: what a solver, a certificate, a stream or a checkpoint is needed for.
CASES = {name: case for name, case in TABLE.items() if "training" not in case.apart}

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
        tasks.TaxonomyClassifier, {"kernel": RBF, "random_state": 0}, MANY[:90], KINDS[:90], inputs=MANY
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
