"""From parameters and graphs to a model and its encoded examples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows, warn_of_few_digits
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.inputs.outliers import table
from structsvm.features.sparse import SparseRows
from structsvm.metrics._counts import AUTO
from structsvm.oracles.graph import GraphOracle
from structsvm.structures.graphs.data import Graphs
from structsvm.structures.graphs.edges import warn_of_unread
from structsvm.structures.graphs.files import LABEL
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_classes, label_costs, listed, sort_labels
from structsvm.tasks.common.parameters import check_unchanged
from structsvm.tasks.common.units import Units
from structsvm.tasks.graph.constraints import all_rules
from structsvm.tasks.graph.examples import LabeledGraphs
from structsvm.tasks.graph.inputs import Inputs, as_list, collect, is_networkx
from structsvm.tasks.graph.labels import by_node, encode_labels
from structsvm.tasks.graph.model import GraphModel, assembled, between, by_graph, node_rows, with_edges
from structsvm.tasks.graph.units import EdgeUnits

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from structsvm.tasks.common.solver import Settings
    from structsvm.tasks.graph.examples import Constraints, GraphLabels, GraphsLike
    from structsvm.tasks.graph.parameters import GraphLabelerParameters

# Parameters that a model must keep to continue.
SETTLED = ("interactions", "method", "loss", "neighbours", "contrast", "class_weight", "max_table")


def prepare(
    params: GraphLabelerParameters | Settings,
    X: GraphsLike,
    y: GraphLabels,
    before: GraphModel | None = None,
    *,
    classes: Iterable[Hashable] | None = None,
    constraints: Constraints | None = None,
    weight: ArrayLike | None = None,
) -> tuple[GraphModel, LabeledGraphs]:
    """Return ``(model, examples)``: a model as parameters ask for it, or the one to resume, and the graphs encoded.

    Parameters
    ----------
    params : object with `GraphLabeler`'s parameters as attributes
    X, y : graphs and labels of their nodes
    before : GraphModel, optional
        The model to resume; ValueError if the parameters ask for other features or another structure.
    classes : iterable, optional
        All labels that a new model is to know; for `before`, None or those that it knows.
    constraints : list, optional
        Per graph what its labels obey.
    weight : array-like of shape (n_graphs,), optional
    """
    model, examples, inputs, is_one = _prepared(params, X, y, before, classes)
    if constraints is not None:
        if model.loss == "log" or params.probability:
            raise ValueError("constraints are for a margin: loss='log' and probability=True sum over all labellings")
        rules = all_rules([constraints] if is_one else constraints, inputs.forms, model.labels)
        examples = replace(examples, graphs=replace(examples.graphs, rules=rules))
    if params.probability:
        try:
            model.oracle.plan(examples.graphs, "junction")
        except ValueError as error:
            raise ValueError(f"probability=True: {error}") from None
    return model, replace(examples, weight=checked_sample_weight(weight, len(examples)))


def _prepared(
    params: GraphLabelerParameters | Settings,
    X: GraphsLike,
    y: GraphLabels,
    before: GraphModel | None,
    classes: Iterable[Hashable] | None,
) -> tuple[GraphModel, LabeledGraphs, Inputs, bool]:
    found, is_one = as_list(X)
    label = y if isinstance(y, str) else LABEL if before is None else before.label
    inputs = collect(found, params.neighbours, label)
    labels, is_named = by_node([y] if is_one and not isinstance(y, str) else y, inputs.forms)
    unknown = getattr(params, "unknown", AUTO)
    if not inputs.forms:
        raise ValueError("X contains no graphs")
    if before is not None:
        check_unchanged(params, before, SETTLED)
        check_classes(classes, before.labels)
        graphs = before.encode(inputs, to_learn=True)
        return before, LabeledGraphs(graphs, *encode_labels(labels, before.labels, unknown)[1:]), inputs, is_one
    warn_of_unread(own for x in found if is_networkx(x) for _, _, own in x.edges(data=True))
    names, label_ids, sets = new_labels(labels, inputs, classes, unknown)
    encoder, units, nodes = encoded_nodes(inputs.rows)
    graphs, contrast = with_contrast(inputs, nodes, inputs.has_grids and params.contrast)
    if params.loss == "log" and params.class_weight is not None:
        raise ValueError(
            "class_weight has no meaning with loss='log', which has no costs; use sample_weight, or a margin"
        )
    edge_units = EdgeUnits.of(graphs.edge_features, params.method == "cut")
    graphs = with_edges(graphs, edge_units.applied(graphs.edge_features))
    oracle = GraphOracle(
        len(names),
        encoder.n_features + 1,
        edge_units.n_columns,
        interactions=interactions_of(params, inputs),
        method=params.method,
        loss=params.loss,
        label_costs=label_costs(params.class_weight, names, label_ids[label_ids >= 0]),
        max_table=params.max_table,
    )
    model = GraphModel(
        encoder,
        units,
        edge_units,
        names,
        oracle,
        grids=inputs.has_grids,
        contrast=contrast,
        neighbours=int(params.neighbours),
        is_named=is_named,
        label=label,
    )
    return model, LabeledGraphs(graphs, label_ids, sets), inputs, is_one


def new_labels(
    labels: list[object], inputs: Inputs, classes: Iterable[Hashable] | None, unknown: object
) -> tuple[Sequence[Hashable], NDArray[np.int32], NDArray[np.bool_]]:
    """The result of `encode_labels` for a new model; ValueError for a graph without nodes, or fewer than two labels."""
    for i, form in enumerate(inputs.forms):
        if not form.n_nodes:
            raise ValueError(f"graph {i} has no nodes")
    settled = None if classes is None else sort_labels(listed(classes))
    names, label_ids, sets = encode_labels(labels, settled, unknown)
    if len(names) < 2:
        named = "; label= of read_graphs and --label name the entry of nodes that is their label"
        only = f"only one label: {names[0]!r}" if names else f"no label of any node{named}"
        raise ValueError(f"2 labels or more are needed, and y has {only}")
    return names, label_ids, sets


def encoded_nodes(rows: list[object]) -> tuple[FeatureEncoder, Units, DenseRows | SparseRows]:
    """A new encoder of nodes, their units, and the nodes in these; ValueError if they have no features."""
    encoder = FeatureEncoder()
    tokens = by_graph(encoder.fit_transform, rows)
    if not encoder.n_features:
        raise ValueError("the nodes have no features at all")
    units = Units.of_named(tokens, encoder)
    if units.centre is not None:
        warn_of_few_digits(table(tokens), encoder.feature_names.__getitem__)
    return encoder, units, node_rows(units.applied(tokens), units)


def with_contrast(inputs: Inputs, nodes: DenseRows | SparseRows, is_wanted: bool) -> tuple[Graphs, float | None]:
    """Graphs whose edges have, if wanted, their contrast as the last feature; and its unit, or None."""
    graphs = assembled(inputs, nodes, inputs.n_edge_features + is_wanted)
    if not is_wanted:
        return graphs, None
    squares = between(graphs)
    mean = float(squares.mean()) if len(squares) else 0.0
    contrast = mean if mean > 0.0 else 1.0
    graphs.edge_features[:, -1] = np.exp(-0.5 * squares / contrast)
    return graphs, contrast


def interactions_of(params: GraphLabelerParameters | Settings, inputs: Inputs) -> str:
    """The kind of interactions: as given, or what the method and the graphs suggest."""
    given: str = params.interactions
    if given != "auto":
        return given
    return "potts" if params.method == "cut" else "full" if inputs.is_ordered else "symmetric"
