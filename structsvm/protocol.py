"""The contract of a new structure: an oracle, with three required and three optional methods on plain objects.

These docstrings are the whole contract; `structsvm.testing.check_oracle` tests it on data.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._adapter import PythonProblem
from structsvm._problem import Problem
from structsvm._warnings import warn
from structsvm.adapter import INFERENCES, Inference

if TYPE_CHECKING:
    from structsvm.arrays import Scalar

Rescaling = Literal["margin", "slack"]
Penalty = Literal["linear", "quadratic"]


class UnsupportedFormulation(ValueError):
    """A solver needs a formulation that the oracle does not support; raised before anything runs.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.semi_markov import SemiMarkovOracle
    >>> oracle = SemiMarkovOracle(5, 1, tags=[[0, 1, 2, 3]])
    >>> oracle.bind([np.array([[1.0]])], [[4]], rescaling="slack")
    Traceback (most recent call last):
        ...
    structsvm.protocol.UnsupportedFormulation: rescaling='slack' needs loss-augmented inference that ...
    """


class Oracle(ABC):
    """A structure: its joint feature, its loss, and inference.

    Subclass it, set `n_features`, and write the three methods. Inputs x and outputs y may be any
    objects; outputs are only passed back to the oracle's own methods. To annotate a subclass, name
    its own types for x and y.

    Attributes
    ----------
    n_features : int
        Length of the weight vector w and of every joint feature.
    inference : {"exact", "relaxed", "approximate"}, default="exact"
        The result of `argmax`: a maximiser over all outputs; a maximiser over a larger set of outputs that includes
        fractional ones, which `joint_feature` and `loss` accept as well; or an output found by a search. Certificates
        say what they bound: the problem itself, the relaxed problem, or only a dual value.
    rescalings : tuple of {"margin", "slack"}, default=("margin",)
        Loss-augmented problems that `argmax` can solve.
    penalties : tuple of {"linear", "quadratic", None}, default=("linear",)
        Slack penalties for which it can. ``"quadratic"`` needs the square root of the loss in `argmax`, which equals
        the loss only if that is 0 or 1; declare it only then.
    nonnegative : None, bool mask of shape (n_features,), or indices of features, default=None
        Weights that must be >= 0: `argmax` sees no others. The solvers keep them so, exactly in the dual.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import LaRank, Oracle, StructuredSVM
    >>> class Sign(Oracle):
    ...     n_features = 2
    ...     def joint_feature(self, x, y):
    ...         return y * np.asarray(x) / 2
    ...     def loss(self, y_true, y):
    ...         return float(y != y_true)
    ...     def argmax(self, x, w, y_true=None, rescaling=None):
    ...         return max((-1, 1), key=lambda y: w @ self.joint_feature(x, y) + (y_true not in (None, y)))
    >>> StructuredSVM(Sign(), LaRank(C=1.0, random_state=0)).fit([[1, 0], [0, 1]], [1, -1]).predict([[3, 1]])
    [1]
    """

    n_features: int
    inference: Inference = "exact"
    nonnegative: ArrayLike | None = None
    rescalings: tuple[Rescaling, ...] = ("margin",)
    penalties: tuple[Penalty | None, ...] = ("linear",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        flag = inspect.getattr_static(cls, "is_exact")
        if flag is not Oracle.__dict__["is_exact"]:  # as version 0.1 had it
            cls.inference = _inference_of_flag(cls.__name__, flag)
            cls.is_exact = Oracle.__dict__["is_exact"]  # type: ignore[method-assign]

    @property
    def is_exact(self) -> bool:
        """Whether `inference` is ``"exact"``."""
        return self.inference == "exact"

    @is_exact.setter
    def is_exact(self, flag: bool) -> None:
        self.inference = _inference_of_flag(type(self).__name__, flag)

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return Psi(x, y): ``(indices, values)``, a scipy sparse row, or a dense vector of n_features."""

    @abstractmethod
    def loss(self, y_true: Any, y: Any) -> float:
        """Return Delta(y_true, y): a finite float >= 0, and 0 if and only if the two are equal."""

    @abstractmethod
    def argmax(self, x: Any, w: NDArray[np.float64], y_true: Any = None, rescaling: Rescaling | None = None) -> Any:
        """Return the best output of x under the weights `w` (ndarray (n_features,), read-only).

        =============  =====================================================================
        ``y_true``     maximise over y
        =============  =====================================================================
        None           <w, Psi(x, y)>
        given, margin  Delta(y_true, y) + <w, Psi(x, y)>
        given, slack   Delta(y_true, y) * (1 - <w, Psi(x, y_true)> + <w, Psi(x, y)>)
        =============  =====================================================================
        """

    def complete(self, x: Any, known: Any, w: NDArray[np.float64]) -> Any:
        """Return the output of highest <w, Psi(x, y)> of those that agree with what is known of the true one.

        Optional, for `structsvm.LatentSVM`, which trains on outputs that are known in part. `known` replaces the output
        in the training data, in whatever form the oracle accepts: a labelling with gaps, a set of candidates. A whole
        output means that all is known: it is returned unchanged.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement complete, the verb for outputs that are known in part"
        )

    @property
    def has_complete(self) -> bool:
        """Whether the class implements `complete`."""
        return type(self).complete is not Oracle.complete

    def expect(self, x: Any, w: NDArray[np.float64]) -> tuple[float, Any]:
        """Return ``(log_sum, expectation)`` over all outputs y of x; optional, for the log loss and for probabilities.

        ``log_sum = log sum_y exp <w, Psi(x, y)>``, and its gradient, the expectation of Psi(x, y) under the
        distribution proportional to ``exp <w, Psi(x, y)>``, in one of the forms of `joint_feature`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement expect, the verb for probabilities")

    @property
    def has_expect(self) -> bool:
        """Whether the class implements `expect`."""
        return type(self).expect is not Oracle.expect

    def expect_known(self, x: Any, known: Any, w: NDArray[np.float64]) -> tuple[float, Any]:
        """Return ``(log_sum, expectation)`` over the outputs that agree with what is known of the true one.

        Optional, beside `expect`: with both, `structsvm.solvers.ConditionalLikelihood` maximises the likelihood of what
        is known, and `structsvm.LatentSVM` can start from that. `known` is as for `complete`: for a whole output the
        sum is its score, and the expectation its joint feature.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement expect_known, the verb for likelihoods of what is known in part"
        )

    @property
    def has_expect_known(self) -> bool:
        """Whether the class implements `expect` and `expect_known`."""
        return self.has_expect and type(self).expect_known is not Oracle.expect_known

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> Problem:
        """Return the oracle bound to its training examples: the problem that a solver sees.

        Parameters
        ----------
        X, Y : sequences of equal length
            Inputs and true outputs; for `structsvm.LatentSVM`, what is known of them.
        rescaling : {"margin", "slack", None}
            None: plain inference, for perceptrons.
        penalty : {"linear", "quadratic", None}
            Slack penalty; None: hard margin.

        Returns
        -------
        Problem

        Raises
        ------
        UnsupportedFormulation
            If the oracle does not declare the formulation.
        ValueError
            If X or Y is no sequence.
        """
        self.check_formulation(rescaling, penalty)
        for name, given in (("X", X), ("Y", Y)):
            if not hasattr(given, "__len__"):
                raise ValueError(f"{name} must be a list or another sequence, got {given!r:.80}")
        return PythonProblem(self, X, Y, rescaling=rescaling, penalty=penalty)

    def check_formulation(self, rescaling: Rescaling | None, penalty: Penalty | None) -> None:
        """Raise `UnsupportedFormulation` unless the oracle declares this rescaling and penalty."""
        name = type(self).__name__
        if rescaling is not None and rescaling not in self.rescalings:
            raise UnsupportedFormulation(
                f"rescaling={rescaling!r} needs loss-augmented inference that {name} does not declare "
                f"(its 'rescalings' are {self.rescalings})"
            )
        if rescaling is not None and penalty not in self.penalties:
            raise UnsupportedFormulation(
                f"penalty={penalty!r} needs inference that {name} does not declare "
                f"(its 'penalties' are {self.penalties})"
            )


def _inference_of_flag(name: str, flag: Any) -> Inference:
    """The inference that `is_exact = flag` stands for. Raises TypeError unless the flag is a bool."""
    if not isinstance(flag, (bool, np.bool_)):
        raise TypeError(f"{name}.is_exact is {flag!r:.80}: set inference to one of {', '.join(INFERENCES)} instead")
    inference: Inference = "exact" if flag else "approximate"
    warn(f"{name}.is_exact = {flag} is deprecated: set inference = {inference!r}", DeprecationWarning)
    return inference


def checked_weights(w: ArrayLike, n_features: int, dtype: type[Scalar], *, finite: bool = False) -> NDArray[Scalar]:
    """Return weights as a contiguous array; raises ValueError unless there are `n_features`, finite if they must be."""
    weights = np.ascontiguousarray(w, dtype=dtype)
    if weights.shape != (n_features,):
        raise ValueError(f"w has shape {weights.shape}, expected ({n_features},)")
    if finite and not np.isfinite(weights).all():
        raise ValueError("w has values that are not finite")
    return weights
