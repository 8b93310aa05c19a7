"""The base of solvers of kernel machines: runs on kernel states, with certificates of their own."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

import numpy as np

from structsvm.checkpoint import EXAMPLES
from structsvm.kernel.problem import KernelProblem
from structsvm.kernel.support_vectors import SupportVectors
from structsvm.parameters import seed_from
from structsvm.result import relative_gap
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.stored_values import Array, Table

# Support patterns, and the coefficients of their vectors.
VECTORS: Table = {
    "support": Array("i8", ("n_support",), within=EXAMPLES, once=True),
    "vector_slot": Array("i8", ("n_vectors",), within=(0, "n_support")),
    "vector_label": Array("i4", ("n_vectors",), within=(0, "n_labels")),
    "vector_numbers": Array("f8", (2, "n_vectors")),
}


class KernelRun(Run):
    """A run that learns a kernel expansion."""

    def state_sizes(self) -> dict[str, int]:
        return super().state_sizes() | {"n_labels": self.problem.n_labels}

    @property
    def support_vectors(self) -> Any:
        """The `SupportVectors` that the solver returns."""
        return SupportVectors(*self.state.coefficients()[:4])

    @property
    def intercept(self) -> Any:
        """Biases of the labels: array (n_labels,)."""
        return np.zeros(self.problem.n_labels)

    @property
    def n_support(self) -> Any:
        return self.state.n_vectors


class KernelDualRun(KernelRun):
    """A run on the kernel dual; `certify` recomputes both objectives by one pass over all examples."""

    has_dual = True
    warns_of_gap = True
    farthest = 0.4
    near = 0.1
    norm = np.nan

    def start_pass(self) -> None:
        self.solver.prepare_pass(self)
        super().start_pass()

    def certify(self) -> None:
        begin = time.perf_counter()
        self.primal, self.dual, self.norm = self.state.certify()
        self.seconds += time.perf_counter() - begin

    @property
    def distance(self) -> float:
        """The duality gap as a share of what the optimum gains over w = 0 at most: with a large C the primal is small
        beside that, long before the gap is small beside the primal.
        """
        loss = self.problem.loss
        at_zero = float(np.sum(self.C if loss is None else self.C * loss.max(axis=1)[self.problem.y]))
        gain = relative_gap(at_zero, self.dual)
        return relative_gap(at_zero, at_zero - (self.primal - self.dual)) / gain if gain > 0.0 else 0.0

    def contradiction(self, what: str) -> Exception:
        return ValueError(f"{what}: the kernel is not positive semi-definite on these examples; choose another")

    def norms(self) -> tuple[Any, Any]:
        return self.norm, self.norm


# Requirements of machines of two classes.
TWO_CLASSES = frozenset({"kernel", "two classes", "zero-one loss", "independent labels"})

# Examples times classes: a batch solver keeps several such matrices.
LARGEST_MATRIX = 2**26


def check_size(n: Any, n_labels: int) -> None:
    """Raise ValueError if a batch solver had to keep too many coefficients."""
    if n * n_labels > LARGEST_MATRIX:
        raise ValueError(
            f"{n} examples times {n_labels} classes are more than the {LARGEST_MATRIX} coefficients that a batch "
            "solver keeps here; LaRankClassifier keeps those of support vectors alone"
        )


def class_by_class(y: Any, C: Any, n_labels: int) -> tuple[Any, Any, Any]:
    """The examples of positive weight, class by class: their indices, their classes, and where each class begins."""
    used = np.flatnonzero(C)
    order = used[np.argsort(y[used], kind="stable")]
    check_size(len(order), n_labels)
    owner = y[order].astype(np.int64)
    return order, owner, np.searchsorted(owner, np.arange(n_labels + 1))


class KernelSolver(Solver):
    """Base of the solvers of the kernel dual."""

    C: float
    cache_size: float
    needs = frozenset({"kernel"})
    run_type: type[KernelRun] = KernelDualRun

    def formulation(self) -> Any:
        return KernelProblem.formulation

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        """Return a fresh `KernelRun`.

        Parameters
        ----------
        problem : KernelProblem
        sample_weight : ndarray of shape (n_samples,), optional
            Factor on each example's C.
        base : tuple, optional
            A point to start from, as `KernelDual.restart` takes it: its members are the first examples, which
            passes do not visit.
        """
        C = np.full(problem.n_samples, float(self.C))
        if sample_weight is not None:
            C *= sample_weight
        first = 0 if base is None else len(base[0])
        state = self.state_on(problem, C, first, seed_from(self.random_state))
        if base is not None:
            state.restart(*base)
        return self.run_type(self, problem, state, self.schedule_on(state), C=C)

    @abstractmethod
    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        """The state that the solver works on; passes do not visit examples before `first`."""

    @abstractmethod
    def schedule_on(self, state: Any) -> Any:
        """The schedule that drives it."""

    def prepare_pass(self, run: Any) -> None:
        """Called before each pass of a run on the dual."""
