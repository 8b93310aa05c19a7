"""A classifier of documents in a taxonomy whose inputs are compared by a kernel.

The joint kernel is ``k(x, x') <L(y), L(y')>`` (Tsochantaridis and others 2004, section 5.1). With beta_j^z the
coefficients of the training documents, output y and node a score

    S(x, y) = <u(x), L(y)>,   u_a(x) = sum_z L(z)_a F_z(x),   F_z(x) = sum_j beta_j^z k(x_j, x),

and F are the scores of a multiclass kernel machine.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from structsvm.oracles._taxonomy import OutputAttributes
from structsvm.solvers.base import Solver
from structsvm.solvers.kernel_larank import KernelLaRank
from structsvm.tasks.kernel.model import KernelModel, kernel_of
from structsvm.tasks.taxonomy.model import BLOCK, TaxonomyModel, numbered, structure_of
from structsvm.tasks.taxonomy.rows import WeightRows


class KernelTaxonomyModel(TaxonomyModel):
    """Taxonomy, labels, and a kernel machine in the place of weights.

    Attributes
    ----------
    machine : KernelModel
    """

    def __init__(self, taxonomy, labels, kernel, **structure):
        super().__init__(taxonomy, labels, WeightRows(1), **structure)
        attributes = self.oracle.attributes
        vectors = csr_array([attributes.vector(k) for k in range(attributes.n_outputs)])
        # Scores of positions are those of labels times <vector of the position, L(label)>.
        base, first, attribute, value, scale, _ = attributes.arrays
        every = np.arange(attributes.n_positions, dtype=np.int32)
        everywhere = OutputAttributes(base, first, attribute, value, scale, every, attributes.n_attributes)
        positions = csr_array([everywhere.vector(z) for z in range(attributes.n_positions)])
        self._mixing = csr_array(vectors @ positions.T)
        self.machine = KernelModel(self.labels, kernel, loss=self._label_losses(), attributes=vectors)

    def _label_losses(self):
        """Losses of true labels (rows) and predicted ones; None: zero-one."""
        oracle = self.oracle
        if oracle.loss_matrix is not None or oracle.loss_name == "zero_one":
            return oracle.loss_matrix
        lattice = oracle.taxonomy.lattice
        return np.stack([lattice.losses(oracle.loss_name, node)[oracle.outputs] for node in oracle.outputs])

    @classmethod
    def prepare(cls, params, X, y, *, classes=None, before=None):
        labels, numbers = numbered(y, classes if before is None else before.labels)
        taxonomy, structure = structure_of(params, labels)
        model = cls(taxonomy, labels, kernel_of(params, X) if before is None else before.machine.kernel, **structure)
        return model, X, numbers.astype(np.int32)

    def check_same(self, other):
        super().check_same(other)
        if self.machine.kernel.__reduce__() != other.machine.kernel.__reduce__():
            raise ValueError(
                "The 'kernel' parameter of TaxonomyClassifier, or one of the kernel's own, is not that of the model to "
                "go on from; set it back, or train afresh."
            )

    def train(self, documents, numbers, solver, *, sample_weight=None, monitor=None, before=None, passes=None):
        """Fit the kernel machine; see `TaxonomyModel.train`. A pass over a batch keeps the support patterns so far."""
        options = {"sample_weight": sample_weight, "monitor": monitor}
        if passes is None:
            resume = None if before is None else before.machine
            if resume is not None:  # a file keeps these with the whole model
                resume.state, resume.fingerprint = before.state, before.fingerprint
            run = self.machine.train(documents, numbers, solver, resume=resume, **options)
        else:
            self.machine = self.machine if before is None else before.machine
            run = self.machine.train_on(documents, numbers, solver, **options)
        self.result = self.machine.result
        self.state, self.fingerprint = self.machine.state, self.machine.fingerprint
        return run

    def take(self, run, documents):
        self.machine.take(run)

    # ---- prediction -----------------------------------------------------------------------------

    def blocks(self, X):
        return [X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK)]

    def best(self, block):
        return self._of_labels(self.scores_of(block)).argmax(axis=1)

    def scores_of(self, block):
        return self.machine.decision_function(block) @ self._mixing

    def weight_matrix(self):
        raise AttributeError("there are no weights: the model has support vectors of a kernel")

    # ---- model files ----------------------------------------------------------------------------

    @property
    def n_input_features(self):
        return self.machine.n_features

    def learnt(self):
        meta, arrays = self.machine.learnt()
        return {"machine": meta}, {f"machine.{name}": array for name, array in arrays.items()}

    @classmethod
    def with_learnt(cls, taxonomy, labels, structure, meta, arrays):
        machine = {name.removeprefix("machine."): array for name, array in arrays.items() if name[:8] == "machine."}
        found = KernelModel.with_learnt(np.array(labels), meta["machine"], machine)
        model = cls(taxonomy, labels, found.kernel, **structure)
        found.loss, found.attributes = model.machine.loss, model.machine.attributes
        model.machine = found
        return model


def make_kernel_solver(params):
    """The solver that parameters with a kernel ask for: `KernelLaRank`, whose parameters they set, or an object."""
    given = {name: getattr(params, name) for name in ("C", "max_iter", "tol", "random_state")}
    given = {name: value for name, value in given.items() if value is not None}
    if params.checkpoint is not None:
        raise ValueError("The 'checkpoint' parameter has no meaning with a kernel: such runs keep none")
    if isinstance(params.solver, Solver) and given:
        raise ValueError(f"The {min(given)!r} parameter is set beside a solver object, which has its own; set it there")
    if isinstance(params.solver, KernelLaRank):
        return params.solver
    if params.solver != "larank":
        raise ValueError(
            f"With a kernel the 'solver' parameter must be 'larank' or a KernelLaRank. Got {params.solver!r} instead."
        )
    return KernelLaRank(**{"C": 1.0} | given)
