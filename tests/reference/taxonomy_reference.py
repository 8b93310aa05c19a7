"""Taxonomies by their definitions, through sets and networkx; nothing of the package is imported here."""

from functools import cached_property

import networkx as nx
import numpy as np


def random_edges(rng, n_nodes, *, tree):
    """Edges (parent, child) of a rooted DAG on nodes "n0" (the root) and so on, numbered in random order."""
    names = [f"n{k}" for k in rng.permutation(n_nodes)]
    edges = []
    for k in range(1, n_nodes):
        n_parents = 1 if tree else int(rng.integers(1, min(k, 3) + 1))
        edges += [(names[p], names[k]) for p in rng.choice(k, n_parents, replace=False)]
    return [edges[k] for k in rng.permutation(len(edges))]


class ReferenceTaxonomy:
    def __init__(self, edges):
        self.graph = nx.DiGraph(edges)

    @cached_property
    def root(self):
        (root,) = [z for z in self.graph if self.graph.in_degree(z) == 0]
        return root

    @cached_property
    def leaves(self):
        return {z for z in self.graph if self.graph.out_degree(z) == 0}

    def above(self, z):
        """z and its ancestors, the root among them."""
        return nx.ancestors(self.graph, z) | {z}

    def height(self, z):
        """Edges on the longest way down."""
        return max((1 + self.height(child) for child in self.graph.successors(z)), default=0)

    def depth(self, z):
        return nx.shortest_path_length(self.graph, self.root, z)

    def loss(self, kind, true, predicted):
        if true == predicted:
            return 0.0
        if kind == "zero_one":
            return 1.0
        common = self.above(true) & self.above(predicted)
        if kind == "tree":
            return float(min(self.height(a) for a in common))
        distance = nx.shortest_path_length
        return float(min(distance(self.graph, a, true) + distance(self.graph, a, predicted) for a in common))

    def attributes(self, z, *, normalized=False):
        """L(z) as a dict from nodes (without the root) to numbers."""
        above = self.above(z) - {self.root}
        value = 1.0 / np.sqrt(len(above)) if normalized and above else 1.0
        return dict.fromkeys(above, value)


def hierarchical_scores(reference, y_true, y_pred):
    """Precision, recall, F1 over the sets of ancestors, summed over documents (Kiritchenko and others 2006)."""
    common = true = predicted = 0
    for t, p in zip(y_true, y_pred, strict=True):
        a, b = (reference.above(z) - {reference.root} for z in (t, p))
        common, true, predicted = common + len(a & b), true + len(a), predicted + len(b)
    precision, recall = common / predicted if predicted else 0.0, common / true if true else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0
