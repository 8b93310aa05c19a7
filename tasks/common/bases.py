"""Base classes of scikit-learn, which has no types: with a base of unknown type a constructor would take anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    class BaseEstimator:
        """The interface of scikit-learn's class, for type checkers."""

        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""
            raise NotImplementedError

        def set_params(self, **params: object) -> Self:
            """Set parameters by name and return self."""
            raise NotImplementedError

        @classmethod
        def _get_param_names(cls) -> list[str]:
            raise NotImplementedError

        def __sklearn_tags__(self) -> Any:
            raise NotImplementedError

        def __getstate__(self) -> dict[str, object]:
            raise NotImplementedError

    class ClassifierMixin:
        """The interface of scikit-learn's class, for type checkers."""

        def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
            """The accuracy."""
            raise NotImplementedError

else:
    from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: F401
