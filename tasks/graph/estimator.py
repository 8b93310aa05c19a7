"""Label the nodes of graphs: regions of pictures, pixels, pages and their links, atoms, cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.metrics._counts import is_unknown, mark_for, say_unseen
from structsvm.parameters import declared
from structsvm.tasks.common.estimator import StructureEstimator
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_stream_weight
from structsvm.tasks.common.likelihood import probabilities_in
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.graph.labels import by_node, encode_labels
from structsvm.tasks.graph.model import GraphModel
from structsvm.tasks.graph.parameters import GraphLabelerParameters
from structsvm.tasks.graph.preparation import prepare

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.tasks.graph.examples import Constraints, GraphLabels, GraphsLike, LabeledGraphs


@declared
class GraphLabeler(GraphLabelerParameters, StructureEstimator):
    """Support vector machine or conditional random field for the labels of the nodes of graphs.

    The score of a labelling y of a graph with nodes v, features x_v, and edges e = (a, b), features z_e, is

        sum_v <W[:, y_v], x_v> + sum_e <V[:, y_a, y_b], z_e>.

    Parameters
    ----------
    C : float, "auto" or None, default="auto"
        Weight of the sum of slacks, or of log losses. "auto": chosen on held-out graphs (`validation_`), with fewer
        than 20 graphs on held-out parts of them, see `structsvm.tasks.common.selection`; 0.1 (log loss: 1) with few
        nodes, and in `partial_fit` before any `fit`. None: these numbers. A solver object has its own.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"} or Solver, default="larank"
        A name, to which `C`, `max_iter`, `tol`, `random_state` and `checkpoint` apply; or a solver object with its own
        parameters.
    interactions : {"auto", "none", "potts", "associative", "symmetric", "full"}, default="auto"
        What V distinguishes. "potts": whether labels agree. "associative": on which label they agree. "symmetric":
        pairs of labels. "full": ordered pairs, the label of the edge's first node first. "none": there is no V. "auto":
        "full", but "symmetric" for undirected networkx graphs, and "potts" for ``method="cut"``.
    method : {"auto", "junction", "cut", "relaxed", "expansion"}, default="auto"
        How the best labelling is found. "junction": exactly, for graphs close to trees. "cut": exactly, for two labels,
        with weights V that favour equal ones. "relaxed": the linear relaxation, with the certificate of the
        relaxed problem; predictions round fractional solutions. "expansion": expansion moves, approximate.
        "auto": exactly where graphs allow it, else relaxed.
    loss : {"hamming", "log"}, default="hamming"
        A margin of the number of wrong nodes; or the log loss, for graphs close to trees (`max_table`).
    max_table : int, default=65536
        Entries of the largest table of "junction", n_labels^(1 + tree-width).
    neighbours : {4, 8}, default=4
        Of the cells of grids.
    contrast : bool, default=True
        Whether edges of grids have a feature ``exp(-d / (2 mean d))``, d the squared distance of the features of both
        cells, beside their direction (Boykov and Jolly 2001).
    probability : bool, default=False
        Whether training on a margin fits the temperature at which scores are probabilities: at the end, on held-out
        graphs; for graphs close to trees.
    class_weight : dict or "balanced", optional
        Cost of a wrong label, by the true label (default 1).
    unknown : object, default="auto"
        The mark of nodes whose label is not known, in y; "auto": -1, and training says how many there are. None: there
        is none, and -1 is a label. None and -100 in y are always unknown labels.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model: the same run on the same graphs, around the current weights
        on others.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted.
    coef_ : ndarray of shape (n_features, n_labels)
        W, for the features as given.
    intercept_ : ndarray of shape (n_labels,)
    edge_coef_ : ndarray of shape (n_edge_features, n_labels, n_labels)
        V, for the features as given; for grids: right, down (with 8 neighbours: both diagonals) and contrast.
    edge_intercept_ : ndarray of shape (n_labels, n_labels)
        Weights of every edge.
    feature_names_ : list of str
    C_ : float
    validation_ : dict
        The table from which "auto" chose C.
    temperature_ : float or None
        Divisor of the scores for probabilities; None if unknown.
    result_ : Result
        Its `inference` says whether all training graphs were labelled exactly.
    n_iter_, n_features_in_ : int

    Notes
    -----
    X is a list of graphs: tuples ``(nodes, edges)`` or ``(nodes, edges, edge_features)``, nodes a 2-D array, a sparse
    matrix, or a list with a dict of features (a list of attributes) per node, edges an array (n_edges, 2); networkx
    graphs, whose features are the attribute "features" of nodes (without: all attributes but the label) and of edges
    (without: "weight"); or grids, arrays (height, width, n_features). X may also be a single networkx graph. Features
    may have any units (`structsvm.tasks.common.units`); nodes and edges have an intercept.

    y has per graph the labels of its nodes, for a grid in its shape; for networkx graphs a dict by
    node, or the name of an attribute. Labels may be anything hashable. None is an unknown label, and so are
    -100 and the mark `unknown`; a set contains those that the node may have. Training
    completes it (`structsvm.LatentSVM`; with the log loss, sums over it). Labels that occur only in sets are states
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
    _reader = "structures.graphs.files.read_graphs"
    _inputs = ("three_d_array", "sparse", "dict")
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: GraphsLike,
        y: GraphLabels,
        sample_weight: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
    ) -> Self:
        """Train on graphs and the labels of their nodes.

        Parameters
        ----------
        X, y : see the notes of the class
        sample_weight : array-like of shape (n_graphs,), optional
            Factor on each graph's C.
        constraints : list, optional
            Per graph the constraints on its labels, as for `predict`: training compares the labels only with labellings
            that satisfy them; with ``method="relaxed"``, or "auto" where it means that, with the points of the
            relaxation that do.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, self-loops or duplicate edges, numbers of nodes or features that do not match,
            values that are not finite, fewer than two labels, constraints that the labels violate (the message names
            parameter, or graph and edge or constraint).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.

        Warns
        -----
        AdviceWarning
            If the relaxation leaves many nodes without an integral label.
        """
        return self._train(X, y, sample_weight, constraints=constraints)

    @with_callbacks
    def partial_fit(
        self,
        X: GraphsLike,
        y: GraphLabels,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
    ) -> Self:
        """One pass over a batch of graphs, starting from the current weights.

        The first call fixes features, their units, and labels (`classes` names labels that come later). The batch's
        problem is solved around the current weights w0: minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies
        that problem.
        """
        check_stream_weight(self.class_weight)
        return self._train(X, y, sample_weight, passes=1, classes=classes, constraints=constraints)

    def calibrate(self, X: GraphsLike, y: GraphLabels) -> Self:
        """Fit `temperature_` to labelled graphs that the model was not trained on, by their likelihood."""
        return self._calibrated(X, y)

    def _prepare(
        self,
        X: GraphsLike,
        y: GraphLabels,
        sample_weight: ArrayLike | None,
        before: GraphModel | None,
        *,
        classes: Iterable[Hashable] | None = None,
        constraints: Constraints | None = None,
    ) -> tuple[GraphModel, LabeledGraphs]:
        return prepare(self, X, y, before, classes=classes, constraints=constraints, weight=sample_weight)

    # ---- prediction -----------------------------------------------------------------------------

    def predict(
        self, X: GraphsLike, *, known: GraphLabels | None = None, constraints: Constraints | None = None
    ) -> Any:
        """Return per graph the labels of its nodes: an array, for a grid in its shape; a dict if y had dicts.

        Parameters
        ----------
        X : graphs
        known : labels in one of the forms of y, optional
            Known labels, None or a set elsewhere: they are kept, and the others are the best given them.
        constraints : list, optional
            Per graph a list (or None) of constraints on its labels, ``(kind, pairs)`` with a list of pairs (node,
            label); a node is given by its number, in a grid by (row, column), in a networkx graph by its name.
            "at_most_one", "exactly_one" and "or" say in how many pairs the node has the label; "implies" that it has it
            in all others if in the first. The labels are the best that satisfy all: if the best labelling does not, by
            an integer programme (HiGHS), for graphs of some hundred nodes.

        Raises
        ------
        ValueError
            For constraints that no labelling satisfies; the message names the graph.
        """
        found = self._fitted().predict(X, known=known, constraints=constraints, n_jobs=self._threads)
        return Outputs(found) if isinstance(found, list) else found

    def predict_marginals(self, X: GraphsLike) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Return per graph an array (n_nodes, n_labels) of the probability of each label of each node.

        Exact sums over all labellings: of the model itself with ``loss="log"``; otherwise of its scores, divided by
        `temperature_`.

        Raises
        ------
        ValueError
            Without a temperature, and for a graph whose junction tree exceeds `max_table`, where such sums are
            impossible; the message names it.
        """
        return self._fitted().marginals(X)

    def probability_of(self, X: GraphsLike, y: GraphLabels) -> NDArray[np.float64]:
        """Return the probability of given labellings: array (n_graphs,), float64.

        A labelling that is known in part (see `fit`) has the sum over all labellings that agree with it.

        Raises
        ------
        ValueError
            If there are no probabilities (`temperature_` is None), and as `calibrate` does.
        """
        model = self._fitted()
        return probabilities_in(model, model.known_problem(X, y))

    def predict_kbest(self, X: GraphsLike, k: int, *, probabilities: bool = False) -> Any:
        """Return per graph its k best labellings: a list of ``(labels, score)``, best first, labels as of `predict`.

        Fewer if fewer exist. With `probabilities` the labelling's probability replaces its score (see
        `predict_marginals`). Takes the time of n_nodes inferences per labelling.

        Raises
        ------
        ValueError
            For a graph whose inference is not exact; the message names it.
        """
        return self._fitted().predict_kbest(X, k, probabilities=probabilities)

    def decision_function(self, X: GraphsLike) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Return per graph an array (n_nodes, n_labels) of the change of score by each label.

        The score of the predicted labelling with that label there in place of the predicted one, minus its own:
        0 for the predicted label.
        """
        return self._fitted().costs(X)

    def score(self, X: GraphsLike, y: GraphLabels, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of correctly labelled nodes, among those with a label in y."""
        model = self._fitted()
        inputs, is_one = model.inputs(X)
        found, _ = by_node([y] if is_one and not isinstance(y, str) else y, inputs.forms)
        # Labels outside the model are wrong.
        place = {label: k for k, label in enumerate(model.labels)}
        mark = mark_for(self.unknown, place)
        labels, ids, _ = encode_labels(found, unknown=mark, least=1)
        ids = np.append(np.array([place.get(label, len(place)) for label in labels], dtype=np.int64), -1)[
            np.maximum(ids, -1)
        ]
        if not (ids >= 0).any():
            raise ValueError("y tells no label of any node")
        say_unseen((label for own in found for label in own if not is_unknown(label, mark)), place, "nodes")
        right = model.predict_many(model.encode(inputs), None, self._threads) == ids
        weight = checked_sample_weight(sample_weight, len(inputs.forms))
        counts = np.repeat(np.ones(len(inputs.forms)) if weight is None else weight, [f.n_nodes for f in inputs.forms])
        return float(counts @ right / (counts @ (ids >= 0)))

    # ---- views ----------------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        return self._fitted().node_weights()[0]

    @property
    def intercept_(self) -> Floats:
        return self._fitted().node_weights()[1]

    @property
    def edge_coef_(self) -> Floats:
        return self._fitted().edge_weights()[0]

    @property
    def edge_intercept_(self) -> Floats:
        return self._fitted().edge_weights()[1]

    @property
    def feature_names_(self) -> Sequence[str]:
        return self._fitted().encoder.feature_names
