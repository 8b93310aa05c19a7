"""A trained labeler of graphs without scikit-learn: features, labels, oracle, weights.

`GraphLabeler` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn, warn_of_unknown
from structsvm.dual.parallel import renumbered_parts
from structsvm.features._tokens import steps
from structsvm.features.dense import DenseRows
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.ranges import pieces
from structsvm.features.sparse import SparseRows
from structsvm.metrics._counts import AUTO
from structsvm.oracles._graph import GraphProblem
from structsvm.oracles.enumeration.labellings import best_labellings
from structsvm.oracles.graph import GraphOracle
from structsvm.parameters import checked_k
from structsvm.stored_values import Array, Count, Flag, Number, OneOf, Part, Record, Stored, Text
from structsvm.structures.graphs.data import Graphs
from structsvm.structures.graphs.files import LABEL
from structsvm.structures.graphs.methods import INFERENCE
from structsvm.tasks.common.inspection.inputs import depth
from structsvm.tasks.common.inspection.weights import Explanation
from structsvm.tasks.common.likelihood import (
    StructureCalibration,
    calibrate_on,
    probable_weights,
    ranking_weights,
    temperature_of_loss,
    with_probabilities,
)
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES, Held, total_variance
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import UNITS, Units, later_tokens
from structsvm.tasks.graph.constraints import all_rules
from structsvm.tasks.graph.examples import LabeledGraphs, global_edges, sums_before
from structsvm.tasks.graph.inputs import Inputs, as_list, collect
from structsvm.tasks.graph.labels import by_node, encode_labels, in_form, may_have
from structsvm.tasks.graph.units import EDGE_UNITS, EdgeUnits, distances

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, Integers, Weights
    from structsvm.features.tokens import Tokens
    from structsvm.oracles._graph import GraphDecoder
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.common.selection.search import Search
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.graph.examples import Constraints, GraphLabels, GraphLike, GraphsLike
    from structsvm.tasks.graph.inputs import Form

ORACLE = Record({
    "n_node_features": Count(1),
    "n_edge_features": Count(1),
    "interactions": Text(),
    "method": Text(),
    "loss": Text(of="loss_name"),
    "max_table": Count(1),
    "nonnegative": Flag(of="keeps_sign"),
    "label_costs": Array("f8", ("n_labels",), within=(0.0, None), needed=False),
})  # fmt: skip
RECORD = Record({
    "weights": Array("f8", ("n_features",)),
    "units": replace(UNITS, needed=True),
    "edges": EDGE_UNITS,
    "labels": Labels(2),
    "encoder": Part(FeatureEncoder.from_arrays, FeatureEncoder.to_arrays),
    "oracle": ORACLE,
    "grids": Flag(),
    "contrast": Number(null=True),
    "neighbours": OneOf((4, 8)),
    "is_named": Flag(),
    "label": Text(),
})  # fmt: skip

# Nodes that C is chosen on, roughly.
MOST_NODES = 100_000
# A share of nodes without a whole label from which on a relaxed training says so.
MANY_FRACTIONAL = 0.25


class GraphModel(TaskModel[LabeledGraphs]):
    """Features, labels, oracle and weights.

    Attributes
    ----------
    encoder : FeatureEncoder
        Of features of nodes.
    units : Units
    edge_units : EdgeUnits
    labels : list
        An oracle's label k is ``labels[k]``.
    oracle : GraphOracle
    weights : ndarray of shape (oracle.n_features,), float64
    grids : bool
        Whether graphs are grids.
    contrast : float or None
        Of grids: edges have a column ``exp(-d / (2 contrast))``, d the squared distance of their nodes' rows.
    neighbours : int
        Of the cells of grids.
    is_named : bool
        Whether labels of networkx's nodes came by node.
    label : str
        The attribute of networkx's nodes that is no feature.
    """

    kind = "graph"
    record = RECORD
    estimator = "GraphLabeler"
    has_temperature = True
    calibration = StructureCalibration()
    calibrates = False
    sums_over_known = True
    units: Units

    def __init__(
        self,
        encoder: FeatureEncoder,
        units: Units,
        edge_units: EdgeUnits,
        labels: Sequence[Hashable],
        oracle: GraphOracle,
        *,
        grids: bool = False,
        contrast: float | None = None,
        neighbours: int = 4,
        is_named: bool = False,
        label: str = LABEL,
        weights: Floats | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.units, self.edge_units = encoder, units, edge_units
        self.labels, self.oracle = labels, oracle
        self.grids, self.contrast, self.neighbours = grids, contrast, neighbours
        self.is_named, self.label = is_named, label
        self.weights = np.zeros(oracle.n_features) if weights is None else weights
        self.columns = {"n_features_in_": encoder.n_features}
        self.temperature = temperature_of_loss(oracle)

    @property
    def loss(self) -> str:
        return str(self.oracle.loss_name)

    # ---- training -------------------------------------------------------------------------------

    def bind(self, examples: LabeledGraphs, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        return examples.bound(self.oracle, **solver.formulation()), examples.weight

    def warm_run(self, job: Job[LabeledGraphs]) -> Run | None:
        """Let completions begin with what the parts of graphs between known nodes teach.

        Training stays close to that: completions that begin anywhere find little but themselves.
        """
        guess = job.examples.guessed()
        if not job.solver.completes and (guess.label_ids == job.examples.label_ids).all():
            return None
        own = copy.copy(job.solver.inner)
        own.checkpoint = None
        known = guess.known_parts(1)
        problem = self.bind(known, own)[0]
        run = own.solve(problem, sample_weight=known.weight, passes=job.passes)
        if run.status == "interrupted":
            job.problem, self.C = problem, own.get_params().get("C")
            return run
        job.base = run.weights
        return None

    def incomplete(self, problem: Any) -> GraphProblem:
        """Return the problem of known labels; each graph has the junction tree that sums over labellings need."""
        known = problem.incomplete
        if "expectations" in known.offers:
            return known
        plans = self.oracle.plan(known.graphs, "junction")
        return GraphProblem(self.oracle, known.graphs, known.labels, known.allowed, plans, rescaling=None)

    def finish(self, job: Job[LabeledGraphs]) -> None:
        """Say where the relaxation leaves many nodes without a whole label."""
        run = job.run
        if job.before is None and run.status != "interrupted" and run.problem.inference == "relaxed":
            graphs = run.problem.graphs
            share = self.fractional(graphs[: max(len(graphs) * MOST_NODES // max(graphs.n_nodes, MOST_NODES), 1)])
            if share > MANY_FRACTIONAL:
                warn(
                    f"the relaxation has no whole label for {share:.0%} of the training nodes: pairs of labels weigh "
                    "more than it can tell apart, and predictions are rounded. method='cut' (two labels), 'junction' "
                    "(graphs near to trees) and 'expansion' have whole labels",
                    AdviceWarning,
                )

    def fractional(self, graphs: Graphs) -> float:
        """The share of nodes that the relaxation gives no whole label."""
        nodes, _ = self.oracle.decoder(graphs).relaxed(self.weights)
        return float((nodes.max(axis=1) < 0.999).mean()) if len(nodes) else 0.0

    # ---- choosing C -----------------------------------------------------------------------------

    def search_of_loss(self, examples: LabeledGraphs, solver: Solver) -> Search:
        n, most = len(examples), 0.0
        if n:
            most = max(MOST_NODES * n / max(examples.graphs.n_nodes, 1), 3 * LEAST_EXAMPLES)
        return super().search_of_loss(examples.subsample(most), solver)

    def held_out_scores(self, examples: LabeledGraphs) -> Held:
        graphs, label_ids = examples.graphs, examples.label_ids
        right = self.predict_ids(graphs) == label_ids
        return Held("accuracy", *(np.diff(sums_before(of)[graphs.node_bounds]) for of in (right, label_ids >= 0)))

    def scale(self, examples: LabeledGraphs) -> float:
        graphs = examples.graphs
        ends = 2.0 * len(graphs.edges) / max(graphs.n_nodes, 1)
        size = float((graphs.edge_features**2).sum(axis=1).mean()) if len(graphs.edges) else 0.0
        return 2.0 * (total_variance(graphs.nodes) + ends * size)

    # ---- prediction -----------------------------------------------------------------------------

    def encode(self, inputs: Inputs, *, to_learn: bool = False) -> Graphs:
        """Graphs as the oracle takes them, `to_learn` without outliers; warns if most nodes have no known feature."""
        if inputs.forms and inputs.has_grids != self.grids:
            raise ValueError(f"the model was trained on {'grids' if self.grids else 'graphs that are no grids'}")
        if any(map(len, inputs.edges)) and inputs.n_edge_features != len(self.edge_units.shift) - (
            self.contrast is not None
        ):
            raise ValueError(
                f"edges have {inputs.n_edge_features} features, the model was trained with "
                f"{len(self.edge_units.shift) - (self.contrast is not None)}"
            )
        tokens = by_graph(self.encoder.transform, inputs.rows)
        n_bare = steps(tokens.indptr)[2]
        if n_bare and not self.encoder.has_numbers:
            warn_of_unknown(n_bare, tokens.n_tokens, "nodes")
        if to_learn:
            tokens = later_tokens(self.units, tokens, self.encoder.name_of)
        graphs = assembled(inputs, node_rows(self.units.applied(tokens), self.units), len(self.edge_units.shift))
        if self.contrast is not None:
            graphs.edge_features[:, -1] = np.exp(-0.5 * between(graphs) / self.contrast)
        edges = self.edge_units.later(graphs.edge_features) if to_learn else graphs.edge_features
        return with_edges(graphs, self.edge_units.applied(edges))

    def inputs(self, X: GraphsLike) -> tuple[Inputs, bool]:
        """Graphs in parts, and whether X is one graph."""
        found, is_one = as_list(X)
        return collect(found, self.neighbours, self.label), is_one

    def predict_ids(self, graphs: Graphs, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.int32]:
        """Label ids of all nodes, of those that are allowed, a boolean array (n_nodes, n_labels)."""
        found: NDArray[np.int32] = self.decoding.decoder(graphs).decode(self.weights, allowed)
        return found

    @property
    def decoding(self) -> GraphOracle:
        """The oracle that predicts: that of the log loss takes graphs near to trees alone."""
        return make_oracle(self, loss="hamming") if self.loss == "log" and self.oracle.method == "auto" else self.oracle

    def predict(
        self,
        X: GraphsLike,
        *,
        known: GraphLabels | None = None,
        constraints: Constraints | None = None,
        n_jobs: int = 1,
    ) -> Any:
        """The labels of each graph's nodes, in the form that its labels have."""
        inputs, is_one = self.inputs(X)
        graphs = self.encode(inputs)
        allowed = None
        if known is not None:
            found, _ = by_node([known] if is_one and not isinstance(known, str) else known, inputs.forms)
            allowed = may_have(*encode_labels(found, self.labels, self.unknown)[1:])
        if constraints is not None:
            graphs = replace(
                graphs, rules=all_rules([constraints] if is_one else constraints, inputs.forms, self.labels)
            )
        label_ids = self.predict_many(graphs, allowed, n_jobs)
        bounds = graphs.node_bounds.tolist()
        labelled = [
            in_form(label_ids[a:b], self.labels, form, self.is_named)
            for (a, b), form in zip(pairwise(bounds), inputs.forms, strict=True)
        ]
        return labelled[0] if is_one else labelled

    @property
    def unknown(self) -> object:
        """The mark of unknown labels in y."""
        return self.params.get("unknown", AUTO)

    def predict_many(
        self, graphs: Graphs, allowed: NDArray[np.bool_] | None = None, n_jobs: int = 1
    ) -> NDArray[np.int32]:
        """`predict_ids` in threads."""
        bounds = graphs.node_bounds

        def work(a: int, b: int) -> NDArray[np.int32]:
            return self.predict_ids(graphs[a:b], None if allowed is None else allowed[bounds[a] : bounds[b]])

        return renumbered_parts(work, len(graphs), n_jobs)

    def calibrate(self, X: GraphsLike, y: GraphLabels) -> None:
        """Fit the temperature to graphs that the model was not trained on."""
        calibrate_on(self, self.known_problem(X, y))

    def known_problem(self, X: GraphsLike, y: GraphLabels) -> BoundProblem:
        """The problem of graphs with what is known of their labels."""
        inputs, is_one = self.inputs(X)
        found, _ = by_node([y] if is_one and not isinstance(y, str) else y, inputs.forms)
        own = encode_labels(found, self.labels, self.unknown)[1:]
        return LabeledGraphs(self.encode(inputs), *own).bound(self.oracle, rescaling=None)

    def marginals(self, X: GraphsLike) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Per graph an array (n_nodes, n_labels): the probability of each label of each node."""
        weights = probable_weights(self, "predict_marginals")
        inputs, is_one = self.inputs(X)
        graphs = self.encode(inputs)
        _, nodes = self.oracle.decoder(graphs).marginals(weights)
        found = shaped(nodes, graphs, inputs.forms)
        return found[0] if is_one else found

    def predict_kbest(self, X: GraphsLike, k: int, *, probabilities: bool = False) -> Any:
        """The k best ``(labels, score)`` of each graph; see `GraphLabeler.predict_kbest`."""
        k = checked_k(k)
        weights = ranking_weights(self, probabilities=probabilities)
        inputs, is_one = self.inputs(X)
        graphs, found = self.encode(inputs), []
        for i, form in enumerate(inputs.forms):
            decoder = self.decoding.decoder(graphs[i : i + 1])
            if INFERENCE[decoder.methods[0]] != "exact":
                raise ValueError(
                    f"graph {i}: the k best labellings need exact inference, and its method is "
                    f"{decoder.methods[0]!r}; 'junction' (with max_table for graphs near to trees) and 'cut' are exact"
                )

            def best(may: NDArray[np.bool_], decoder: GraphDecoder = decoder) -> tuple[float, NDArray[np.int32]]:
                labels = decoder.decode(weights, may)
                return decoder.values(labels, weights)[0], labels

            ranked = best_labellings(best, np.ones((form.n_nodes, len(self.labels)), dtype=bool), k)
            if probabilities:
                ranked = with_probabilities(ranked, float(decoder.marginals(weights)[0][0]))
            found.append(
                [(in_form(labels, self.labels, form, self.is_named), float(score)) for labels, score in ranked]
            )
        return found[0] if is_one else found

    def holds_several(self, x: object) -> bool:
        return isinstance(x, list) or depth(x) > 3  # a grid is an array

    def explain(self, x: GraphLike) -> Explanation:
        inputs, _ = self.inputs([x])
        oracle, graphs, ranked = self.oracle, self.encode(inputs), []
        for labels, _ in self.predict_kbest([x], 2)[0]:
            _, label_ids, _ = encode_labels(by_node([labels], inputs.forms)[0], self.labels)
            ranked.append((labels, oracle.joint_feature(graphs, label_ids)))
        names, K = [*self.encoder.feature_names, "intercept"], oracle.n_labels
        ends = {pair: (a, b) for (a, b), pair in reversed([*np.ndenumerate(oracle.pair_index)])}
        m = len(self.edge_units.shift)

        def name(k: int) -> tuple[str, str]:
            if k < oracle.first_edge_weight:
                column, label = divmod(k, K)
                return names[column], str(self.labels[label])
            column, pair = divmod(k - oracle.first_edge_weight, oracle.n_pairs)
            what = "edge" if column == 0 else f"edge feature {(column - 1) % m}" + ", less" * (column > m)
            return what, " with ".join(str(self.labels[label]) for label in ends[pair])

        alone = "the graph has one labelling only, and two are compared"
        return Explanation.of_best(ranked, self.weights, name, alone)

    def costs(self, X: GraphsLike) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Per graph an array (n_nodes, n_labels): what each label would change in the score of what is predicted."""
        inputs, is_one = self.inputs(X)
        graphs = self.encode(inputs)
        found = shaped(self.costs_of(graphs, self.predict_ids(graphs)), graphs, inputs.forms)
        return found[0] if is_one else found

    def costs_of(self, graphs: Graphs, label_ids: Integers) -> NDArray[np.float64]:
        """Change of score if one node took another label and all others kept theirs: array (n_nodes, n_labels)."""
        scores = self.oracle.decoder(graphs).scores(self.weights)
        tables = self.oracle.split(self.weights)[1]
        ends = global_edges(graphs)
        K = len(self.labels)
        for piece in pieces(len(ends), K):
            (a, b), z = ends[piece].T, graphs.edge_features[piece]
            for here, there, pairs in ((a, b, tables.transpose(0, 2, 1)), (b, a, tables)):
                # pairs[:, label of the other end, label of this one]
                np.add.at(scores, here, np.einsum("em,emk->ek", z, pairs.transpose(1, 0, 2)[label_ids[there]]))
        return scores - scores[np.arange(len(scores)), label_ids][:, np.newaxis]

    # ---- views ----------------------------------------------------------------------------------

    def node_weights(self) -> tuple[Floats, Floats]:
        """Weights of features as given, and of the intercept: arrays (n_features, K) and (K,)."""
        own = self.units.undone(self.oracle.split(self.weights)[0])
        return own[:-1], own[-1]

    def edge_weights(self) -> tuple[Floats, Floats]:
        """Tables of edge features as given (of grids: of directions and contrast), and that of any edge."""
        return self.edge_units.undone(self.oracle.split(self.weights)[1])

    # ---- model files ----------------------------------------------------------------------------

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        encoder, labels, both = stored.encoder, stored.labels, stored.oracle.nonnegative
        if encoder.kind not in ("attributes", "numeric"):
            raise ValueError(f"features of the kind {encoder.kind!r}")
        units = Units(**stored.units.arrays(n_columns=encoder.n_features))
        edge_units = EdgeUnits(**stored.edges.arrays(), both=both)
        oracle = GraphOracle(len(labels), **stored.oracle, **stored.oracle.arrays())
        if oracle.n_node_features != encoder.n_features + 1:
            raise ValueError(f"{encoder.n_features} features of nodes, {oracle.n_node_features} in the oracle")
        if oracle.n_edge_features != edge_units.n_columns:
            raise ValueError(f"{edge_units.n_columns} columns of edges, {oracle.n_edge_features} in the oracle")
        weights = stored.arrays(n_features=oracle.n_features)["weights"]
        if both and (weights[oracle.first_edge_weight :] < 0.0).any():
            raise ValueError("weights of edges below 0 where these are kept nonnegative")
        if stored.contrast is not None and not (stored.grids and len(edge_units.shift)):
            raise ValueError("a contrast of graphs that are no grids")
        about = {name: stored[name] for name in ("grids", "contrast", "neighbours", "is_named", "label")}
        return cls(encoder, units, edge_units, labels, oracle, weights=weights, **about)


def make_oracle(model: GraphModel, **others: Any) -> GraphOracle:
    """The oracle of a model with other arguments."""
    oracle = model.oracle
    header, arrays = ORACLE.write(oracle)
    return GraphOracle(len(model.labels), **header | arrays | others)


def by_graph(encode: Callable[[list[Any]], Tokens], rows: list[Any]) -> Tokens:
    """Encoded rows of graphs; what is wrong with them is said of nodes."""
    try:
        return encode(rows)
    except (ValueError, TypeError) as error:
        text = str(error).replace("sequence", "graph").replace("token", "node").replace("X contains", "the nodes have")
        raise type(error)(text) from None


def node_rows(tokens: Any, units: Units) -> DenseRows | SparseRows:
    """Encoded tokens as rows of float64."""
    n, d = tokens.n_tokens, tokens.n_features
    if units.centre is not None:
        return DenseRows(tokens.values.reshape(n, d).astype(np.float64))
    values = np.ones(tokens.n_entries) if tokens.values is None else tokens.values.astype(np.float64)
    return SparseRows(tokens.indptr, tokens.indices, values, d)


def assembled(inputs: Inputs, nodes: DenseRows | SparseRows, n_edge_features: int) -> Graphs:
    """Graphs with features of edges as they came, in `n_edge_features` columns; ValueError unless they are sound."""
    m = inputs.n_edge_features
    edges = np.concatenate([np.zeros((0, 2), dtype=np.int32), *inputs.edges])
    features = np.zeros((len(edges), max(n_edge_features, 1)))
    if m and len(edges):
        features[:, :m] = np.concatenate(inputs.features)
    graphs = Graphs(
        nodes,
        sums_before([form.n_nodes for form in inputs.forms]),
        edges,
        sums_before([len(own) for own in inputs.edges]),
        features,
    )
    graphs.check()
    return graphs if n_edge_features else with_edges(graphs, features[:, :0])


def with_edges(graphs: Graphs, features: NDArray[np.float64]) -> Graphs:
    """The same graphs with other features of edges."""
    return replace(graphs, edge_features=features)


def between(graphs: Graphs) -> NDArray[np.float64]:
    """Squared distances of the rows of the nodes of edges."""
    rows = graphs.nodes
    if not isinstance(rows, DenseRows):
        matrix = np.zeros((len(rows), rows.n_features))
        matrix[np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), rows.indices] = rows.values
        rows = DenseRows(matrix)
    return distances(rows, global_edges(graphs))


def shaped(table: NDArray[np.float64], graphs: Graphs, forms: list[Form]) -> list[NDArray[np.float64]]:
    """Rows of nodes by graph, those of grids in their shape."""
    parts, n = (table[a:b] for a, b in pairwise(graphs.node_bounds.tolist())), table.shape[1]
    return [own if form.shape is None else own.reshape(*form.shape, n) for own, form in zip(parts, forms, strict=True)]
