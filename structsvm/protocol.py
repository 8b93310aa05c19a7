"""What a user writes for a new structure: an oracle, three verbs on plain objects.

The order of the words here is the whole contract; `structsvm.testing.check_oracle` tries it on data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class UnsupportedFormulation(ValueError):
    """A solver asks for a formulation that an oracle cannot serve; said before anything runs."""


class OracleError(ValueError):
    """An oracle returned something that breaks the protocol; names class, method and example."""


class Oracle(ABC):
    """A structure: its joint feature, its loss, and inference.

    Subclass it, set `n_features`, and write the three methods. Inputs x and outputs y may be any
    objects; outputs are only ever handed back to the oracle's own methods.

    Attributes
    ----------
    n_features : int
        Length of the weight vector w and of every joint feature.
    is_exact : bool, default=True
        Whether `argmax` always finds a maximiser. Without it no duality gap is claimed.
    rescalings : tuple, default=("margin",)
        Loss-augmented problems that `argmax` can solve, of ``"margin"`` and ``"slack"``.
    penalties : tuple, default=("linear",)
        Slack penalties for which it does. ``"quadratic"`` asks `argmax` for the square root of the
        loss, which equals the loss only where that is 0 or 1; declare it only then.
    """

    n_features: int
    is_exact: bool = True
    rescalings: tuple = ("margin",)
    penalties: tuple = ("linear",)

    @abstractmethod
    def joint_feature(self, x, y):
        """Return Psi(x, y): ``(indices, values)``, a scipy sparse row, or a dense vector of n_features."""

    @abstractmethod
    def loss(self, y_true, y):
        """Return Delta(y_true, y): a finite float >= 0, and 0 if and only if the two are equal."""

    @abstractmethod
    def argmax(self, x, w, y_true=None, rescaling=None):
        """Return the best output of x under the weights `w` (ndarray (n_features,), read-only).

        =============  =====================================================================
        ``y_true``     maximise over y
        =============  =====================================================================
        None           <w, Psi(x, y)>
        given, margin  Delta(y_true, y) + <w, Psi(x, y)>
        given, slack   Delta(y_true, y) * (1 - <w, Psi(x, y_true)> + <w, Psi(x, y)>)
        =============  =====================================================================
        """

    def bind(self, X, Y, *, rescaling="margin", penalty="linear"):
        """Return the oracle bound to its training examples: the problem that a solver sees.

        Parameters
        ----------
        X, Y : sequences of equal length
            Inputs and true outputs.
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
        """
        from structsvm._adapter import PythonProblem

        self.check_formulation(rescaling, penalty)
        return PythonProblem(self, X, Y, rescaling=rescaling, penalty=penalty)

    def check_formulation(self, rescaling, penalty):
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
