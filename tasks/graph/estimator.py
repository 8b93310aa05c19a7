"""Label the nodes of graphs: regions of pictures, pixels, pages and their links, atoms, cells."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.parameters import FLAG, Interval, Options
from structsvm.solvers import Solver
from structsvm.tasks.common.estimator import StructureEstimator, checked_sample_weight
from structsvm.tasks.common.labels import check_stream_weight
from structsvm.tasks.common.parameters import CLASS_WEIGHT, SOLVER_CHOICE
from structsvm.tasks.graph.labels import by_node, encode_labels
from structsvm.tasks.graph.model import GraphModel, prepare


class GraphLabeler(StructureEstimator):
    """Support vector machine or conditional random field for the labels of the nodes of graphs.

    The score of a labelling y of a graph with nodes v, features x_v, and edges e = (a, b), features z_e, is

        sum_v <W[:, y_v], x_v> + sum_e <V[:, y_a, y_b], z_e>.

    Parameters
    ----------
    C : float, "auto" or None, default="auto"
        Weight of the sum of slacks, or of log losses. "auto": chosen by held-out graphs (`validation_`), of fewer than
        20 graphs by held-out parts of them, see `structsvm.tasks.common.selection`; 0.1 (log loss: 1) with few nodes,
        and in `partial_fit` before any `fit`. None: the same. A solver given as an object has its own.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"} or Solver, default="larank"
        A name, to which `C`, `max_iter`, `tol`, `random_state` and `checkpoint` apply; or a solver object with
        parameters of its own.
    interactions : {"auto", "none", "potts", "associative", "symmetric", "full"}, default="auto"
        What V tells apart. "potts": whether labels agree. "associative": on which label they do. "symmetric": pairs of
        labels. "full": ordered pairs, the label of the edge's first node first. "none": there is no V. "auto": "full",
        but "symmetric" for undirected networkx graphs, and "potts" for ``method="cut"``.
    method : {"auto", "junction", "cut", "relaxed", "expansion"}, default="auto"
        How the best labelling is found. "junction": exactly, of graphs near to trees. "cut": exactly, for two labels,
        with weights V that favour equal ones. "relaxed": the linear relaxation, whose certificate is that of the
        relaxed problem, and which predictions round where it is fractional. "expansion": expansion moves, approximate.
        "auto": exactly where graphs allow it, else relaxed.
    loss : {"hamming", "log"}, default="hamming"
        A margin of the number of wrong nodes; or the log loss, for graphs near to trees (`max_table`).
    max_table : int, default=65536
        Entries of the largest table of "junction", n_labels^(1 + tree-width).
    neighbours : {4, 8}, default=4
        Of the cells of grids.
    contrast : bool, default=True
        Whether edges of grids have a feature ``exp(-d / (2 mean d))``, d the squared distance of the features of both
        cells, beside their direction (Boykov and Jolly 2001).
    probability : bool, default=False
        Whether training on a margin finds the temperature at which scores are probabilities: in the end, on graphs held
        out; for graphs near to trees.
    class_weight : dict or "balanced", optional
        What a wrong label costs, by the true label (default 1).
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes from what was learnt before: the same run on the same graphs, around the present weights
        on others.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that keeps the state of training every `checkpoint_every` passes; if it exists, `fit` resumes from it.
    checkpoint_every : int, default=1
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted.
    coef_ : ndarray of shape (n_features, n_labels)
        W, for features as they came.
    intercept_ : ndarray of shape (n_labels,)
    edge_coef_ : ndarray of shape (n_edge_features, n_labels, n_labels)
        V, for features as they came; of grids: right, down (with 8 neighbours: both diagonals) and contrast.
    edge_intercept_ : ndarray of shape (n_labels, n_labels)
        What any edge has.
    feature_names_ : list of str
    C_ : float
    validation_ : dict
        What "auto" has chosen C from.
    temperature_ : float or None
        What scores are divided by before they become probabilities; None where it is not known.
    result_ : Result
        Its `inference` says whether all training graphs were labelled exactly.
    n_iter_, n_features_in_ : int

    Notes
    -----
    X is a list of graphs: tuples ``(nodes, edges)`` or ``(nodes, edges, edge_features)``, nodes a 2-D array, a sparse
    matrix, or a list with a dict of features (a list of attributes) per node, edges an array (n_edges, 2); networkx
    graphs, whose features are the attribute "features" of nodes (without: all attributes but the label) and of edges
    (without: "weight"); or grids, arrays (height, width, n_features). It may be one networkx graph as well. Features
    may have any units (`structsvm.tasks.common.units`); nodes and edges have an intercept.

    y holds per graph the labels of its nodes, that of a grid in its shape; of networkx graphs it may hold a dict by
    node, or be the name of an attribute. Labels may be anything hashable. None is a label that is not known, and so is
    -1 where labels are whole numbers from 0 on, two or more; a set holds those that it may be. Training
    completes it (`structsvm.LatentSVM`; with the log loss, sums over it). Labels that stand in sets alone are states
    that nobody annotates: training begins with clusters of what is known around their nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.tasks import GraphLabeler
    >>> path, ring = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
    >>> X = [(np.array([[2.0], [0.1], [1.0]]), path), (np.array([[-2.0], [0.2], [-1.0]]), ring)]
    >>> model = GraphLabeler(C=1.0, interactions="potts", random_state=0).fit(X, [["a", "a", "a"], ["b", "b", "b"]])
    >>> [labels.tolist() for labels in model.predict(X)]
    [['a', 'a', 'a'], ['b', 'b', 'b']]
    """

    _model_class = GraphModel
    _inputs = ("three_d_array", "sparse", "dict")
    _constraints = SOLVER_CHOICE | {
        "interactions": Options("auto", "none", "potts", "associative", "symmetric", "full"),
        "method": Options("auto", "junction", "cut", "relaxed", "expansion"),
        "loss": Options("hamming", "log"),
        "max_table": Interval(Integral, 2, 2**28, closed="both"),
        "neighbours": Options(4, 8),
        "contrast": FLAG,
        "probability": FLAG,
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self,
        C: float | Literal["auto"] | None = "auto",
        *,
        solver: str | Solver = "larank",
        interactions: Literal["auto", "none", "potts", "associative", "symmetric", "full"] = "auto",
        method: Literal["auto", "junction", "cut", "relaxed", "expansion"] = "auto",
        loss: Literal["hamming", "log"] = "hamming",
        max_table: int = 2**16,
        neighbours: Literal[4, 8] = 4,
        contrast: bool = True,
        probability: bool = False,
        class_weight: str | dict[Any, float] | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.solver = solver
        self.interactions = interactions
        self.method = method
        self.loss = loss
        self.max_table = max_table
        self.neighbours = neighbours
        self.contrast = contrast
        self.probability = probability
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose

    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, constraints: Any = None) -> Self:
        """Train on graphs and the labels of their nodes.

        Parameters
        ----------
        X, y : see the notes of the class
        sample_weight : array-like of shape (n_graphs,), optional
            Factor on each graph's C.
        constraints : list, optional
            Per graph what its labels obey, as `predict` takes it: training compares them with none that do not. With
            ``method="relaxed"``, or "auto" where it is that, with the points of the relaxation that obey.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, an edge that joins a node with itself or what another edge joins, numbers of
            nodes or features that do not fit, values that are not finite, labels of one kind only, constraints that the
            labels do not obey (the message names parameter, or graph and edge or constraint).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.

        Warns
        -----
        AdviceWarning
            Where the relaxation leaves many nodes without a whole label.
        """
        return self._train(X, y, sample_weight, constraints=constraints)

    @with_callbacks
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None, *, constraints: Any = None
    ) -> Self:
        """One pass over a batch of graphs, starting from the present weights.

        The first call settles features, their units, and labels (`classes` names labels that come later). The batch's
        problem is solved around the weights w0 so far: minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies
        that problem.
        """
        check_stream_weight(self.class_weight)
        return self._train(X, y, sample_weight, passes=1, classes=classes, constraints=constraints)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Fit `temperature_` to labelled graphs that the model was not trained on, by their likelihood."""
        return self._calibrated(X, y)

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, before: Any, *, classes: Any = None, constraints: Any = None
    ) -> tuple[Any, Any, Any]:
        model, data = prepare(self, X, y, before, classes=classes, constraints=constraints)
        return model, data, checked_sample_weight(sample_weight, len(data[0]))

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Any, *, known: Any = None, constraints: Any = None) -> Any:
        """Return per graph the labels of its nodes: an array, of a grid in its shape; a dict where y had dicts.

        Parameters
        ----------
        X : graphs
        known : labels in one of the forms of y, optional
            Those that are known, None or a set elsewhere: they stay, and the others are the best ones beside them.
        constraints : list, optional
            Per graph a list (or None) of what its labels must obey, ``(kind, pairs)`` with a list of pairs (node,
            label); a node is its number, of a grid (row, column), of a networkx graph its name. "at_most_one",
            "exactly_one" and "or" say of how many pairs the node has the label; "implies" that it has in all others if
            in the first.
            The labels are the best that obey all: where the best of all do not, by an integer programme (HiGHS), for
            graphs of some hundred nodes.

        Raises
        ------
        ValueError
            For constraints that no labelling obeys; the message names the graph.
        """
        return self._fitted().predict(X, known=known, constraints=constraints, n_jobs=self._threads)

    def predict_marginals(self, X: Any) -> Any:
        """Return per graph an array (n_nodes, n_labels) of the probability of each label of each node.

        Exact sums over all labellings: of the model itself with ``loss="log"``; otherwise of its scores, divided by
        `temperature_`.

        Raises
        ------
        ValueError
            Without a temperature, and for a graph whose junction tree exceeds `max_table`, where such sums cannot be
            had; the message names it.
        """
        return self._fitted().marginals(X)

    def predict_kbest(self, X: Any, k: int, *, probabilities: bool = False) -> Any:
        """Return per graph its k best labellings: a list of ``(labels, score)``, best first, labels as of `predict`.

        Fewer where there are fewer. With `probabilities` the labelling's probability stands in the place of its score
        (see `predict_marginals`). Takes time for n_nodes inferences per labelling.

        Raises
        ------
        ValueError
            For a graph whose inference is not exact; the message names it.
        """
        return self._fitted().predict_kbest(X, k, probabilities=probabilities)

    def decision_function(self, X: Any) -> Any:
        """Return per graph an array (n_nodes, n_labels) of what each label would change.

        The score of the predicted labelling with that label there in the place of the predicted one, minus its own:
        0 for the predicted label.
        """
        return self._fitted().costs(X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the nodes whose label is right, among those of which y tells it."""
        model = self._fitted()
        inputs, is_one = model.inputs(X)
        found, _ = by_node([y] if is_one and not isinstance(y, str) else y, inputs.forms)
        # Labels that the model does not have are wrong.
        labels, ids, _ = encode_labels(found)
        place = {label: k for k, label in enumerate(model.labels)}
        ids = np.append(np.array([place.get(label, len(place)) for label in labels], dtype=np.int64), -1)[
            np.maximum(ids, -1)
        ]
        if not (ids >= 0).any():
            raise ValueError("y tells no label of any node")
        right = model.predict_many(model.encode(inputs), None, self._threads) == ids
        weight = checked_sample_weight(sample_weight, len(inputs.forms))
        counts = np.repeat(np.ones(len(inputs.forms)) if weight is None else weight, [f.n_nodes for f in inputs.forms])
        return float(counts @ right / (counts @ (ids >= 0)))

    # ---- views ----------------------------------------------------------------------------------

    @property
    def coef_(self) -> Any:
        return self._fitted().node_weights()[0]

    @property
    def intercept_(self) -> Any:
        return self._fitted().node_weights()[1]

    @property
    def edge_coef_(self) -> Any:
        return self._fitted().edge_weights()[0]

    @property
    def edge_intercept_(self) -> Any:
        return self._fitted().edge_weights()[1]

    @property
    def feature_names_(self) -> Any:
        return self._fitted().encoder.feature_names
