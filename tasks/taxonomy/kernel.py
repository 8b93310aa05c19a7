"""A classifier of documents in a taxonomy whose inputs are compared by a kernel.

The joint kernel is ``k(x, x') <L(y), L(y')>`` (Tsochantaridis and others 2004, section 5.1). With beta_j^z the
coefficients of the training documents, output y and node a score

    S(x, y) = <u(x), L(y)>,   u_a(x) = sum_z L(z)_a F_z(x),   F_z(x) = sum_j beta_j^z k(x_j, x),

and F are the scores of a multiclass kernel machine.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from scipy.sparse import csr_array

from structsvm.features.matrices import is_sparse
from structsvm.kernel._kernels import Kernel
from structsvm.kernel.soundness import check_inputs
from structsvm.solvers.kernel.larank import KernelLaRank
from structsvm.stored_values import Stored
from structsvm.tasks.common.kernel_machine import MACHINE, KernelMachine, KernelRows, kernel_of
from structsvm.tasks.common.selection.kernels import MachineModel
from structsvm.tasks.common.solver import check_alone, given_to_solver
from structsvm.tasks.taxonomy.known import known_labels
from structsvm.tasks.taxonomy.model import BLOCK, TAXONOMY, TaxonomyModel, structure_of

if TYPE_CHECKING:
    from types import SimpleNamespace

    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, Weights
    from structsvm.oracles._taxonomy import OutputAttributes
    from structsvm.oracles.taxonomy import TaxonomyOutputs
    from structsvm.solvers import Solver
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.tasks.common.solver import Usual
    from structsvm.tasks.taxonomy.model import Structure


class KernelTaxonomyModel(TaxonomyModel, MachineModel, has_machine=True):
    """Taxonomy, labels, and a kernel machine."""

    record = TAXONOMY | {"machine": MACHINE}

    def __init__(
        self, taxonomy: Taxonomy, labels: Sequence[Hashable], kernel: Kernel, **structure: Unpack[Structure]
    ) -> None:
        super().__init__(taxonomy, labels, **structure)
        self._positions, self._outputs = attribute_vectors(self.targets.attributes)
        losses = None if self.targets.loss_name == "zero_one" else partial(label_losses, self.targets)
        self.machine = KernelMachine(len(labels), kernel, losses=losses, attributes=self._outputs)

    @classmethod
    def prepare(
        cls,
        params: SimpleNamespace,
        X: Matrix,
        y: LabelArray,
        *,
        classes: Iterable[Hashable] | None = None,
        before: KernelTaxonomyModel | None = None,
        weight: Weights | None = None,
    ) -> tuple[KernelTaxonomyModel, KernelRows]:
        """Return ``(model, examples)``; see `LinearTaxonomyModel.prepare`."""
        labels, label_ids, sets = known_labels(params, y, classes if before is None else before.labels)
        if sets:
            raise ValueError(
                "y has sets of labels, or inner nodes, or rows without a label, and with a kernel each label must be "
                "known: set kernel=None, or leaf_only=False for inner nodes that are labels"
            )
        taxonomy, structure = structure_of(params, labels, y)
        kernel = kernel_of(params, X)
        check_inputs(kernel, X, None if before is None else before.usual_sizes)
        if before is None:
            model = cls(taxonomy, labels, kernel, **structure)
        else:
            model = before
            model.check_same(taxonomy, structure)
            model.machine.check_kernel(params, X, model.params)
        are_values = kernel.name == "precomputed"
        return model, KernelRows(X, label_ids.astype(np.int32), are_values=are_values, weight=weight)

    @property
    def usual_sizes(self) -> Floats | None:
        return self.machine.vector_sizes

    def copy(self) -> Self:
        other = super().copy()
        other.machine = copy.copy(self.machine)
        return other

    def scale(self, examples: KernelRows) -> float:
        return self.machine.kernel_scale(examples.rows) * self.loss_scale()

    # ---- prediction -----------------------------------------------------------------------------

    def blocks(self, X: Matrix) -> list[Matrix]:
        return [X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK)]

    def best(self, block: Matrix) -> Integers:
        return self._of_labels(self.scores_of(block)).argmax(axis=1)

    def scores_of(self, block: Matrix) -> Floats:
        return self.machine.decision_function(block) @ self._outputs @ self._positions.T

    def weight_matrix(self) -> Floats:
        """The weights of features for each attribute of a linear kernel, (n_attributes, n_features).

        AttributeError for another kernel.
        """
        if self.machine.kernel.name != "linear":
            raise AttributeError("there are no weights: the model has support vectors of a kernel that is not linear")
        weights = self._outputs.T @ self.machine.coef @ self.machine.linear_vectors
        return weights.toarray() if is_sparse(weights) else weights

    # ---- model files ----------------------------------------------------------------------------

    def stored_params(self) -> dict[str, Any]:
        self.machine.check_stored()
        return super().stored_params()

    @property
    def n_input_features(self) -> int:
        """Columns of X."""
        return self.machine.n_features

    @classmethod
    def from_parts(
        cls, taxonomy: Taxonomy, labels: Sequence[Hashable], structure: dict[str, Any], stored: Stored
    ) -> KernelTaxonomyModel:
        model = cls(taxonomy, labels, Kernel(**stored.machine.kernel), **structure)
        model.machine.set_from_record(stored.machine)
        return model


def label_losses(targets: TaxonomyOutputs) -> Floats:
    """Losses of true labels (rows) and predicted ones."""
    return np.stack([targets.losses(k) for k in range(targets.attributes.n_outputs)])


def attribute_vectors(attributes: OutputAttributes) -> tuple[csr_array, csr_array]:
    """L of all positions and L of the outputs, each a CSR array with a row for each and a column per attribute."""
    base, first, attribute, value, scale, position = attributes.arrays
    value = value if len(value) else np.ones(len(attribute), dtype=np.float32)
    own = [slice(*ends) for ends in pairwise(first)]
    # Row z + 1 is that of position z: row 0, of no attributes, is where bases end.
    columns, values = [attribute[:0]], [value[:0]]
    for before, entries in zip(base, own, strict=True):
        columns.append(np.concatenate([columns[before], attribute[entries]]))
        values.append(np.concatenate([values[before], value[entries]]))
    sizes = [len(row) for row in columns[1:]]
    data = np.concatenate(values).astype(np.float64) * np.repeat(scale.astype(np.float64), sizes)
    shape = len(base), attributes.n_attributes
    positions = csr_array((data, np.concatenate(columns), np.concatenate([[0], np.cumsum(sizes)])), shape=shape)
    positions.sum_duplicates()
    return positions, positions[position]


def make_kernel_solver(params: Usual) -> Solver:
    """The solver that parameters with a kernel ask for: `KernelLaRank`, whose parameters they set, or an object."""
    given = given_to_solver(params)
    check_alone(params.solver, given)
    if isinstance(params.solver, KernelLaRank):
        return params.solver
    if params.solver != "larank":
        raise ValueError(
            f"With a kernel the 'solver' parameter must be 'larank' or a KernelLaRank. Got {params.solver!r} instead."
        )
    return KernelLaRank(**{"C": 1.0} | given)
