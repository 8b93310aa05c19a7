"""Estimators as promises see them: what is asked of one that a promise wraps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from structsvm.arrays import AnyArray, Floats, LabelArray
    from structsvm.metrics import Scheme
    from structsvm.structures.meanings import MeaningGrammar
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.structures.trees import Tree
    from structsvm.tasks.sequence.likely import Chunks

# Inputs and outputs in all forms that estimators take: lists, arrays, matrices, data frames.
Inputs: TypeAlias = "Sequence[object]"
Outputs: TypeAlias = "Sequence[object]"
# Labelled spans with their probabilities: begin, end, label.
Chances: TypeAlias = "list[list[tuple[int, int, str, float]]]"


class Model(Protocol):
    """The model of an estimator of `structsvm.tasks`."""

    kind: str
    labels: Sequence[Hashable]
    has_spans: bool
    is_greedy: bool
    can_sum: bool
    method: str
    scheme: Scheme | None
    segments: object
    grammar: MeaningGrammar | None

    def no_sums(self, asked: str) -> str: ...
    def as_tags(
        self, y: Outputs, predicted: Outputs, X: Inputs, lengths: None
    ) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]: ...
    def likely_chunks(self, X: Inputs, least: float) -> Chunks: ...
    def lengths_of(self, X: Inputs) -> Sequence[int]: ...
    def brackets_of(self, tree: Tree) -> set[tuple[int, int, str]]: ...


class Estimator(Protocol):
    """An estimator; each kind has a part of these methods."""

    model_: Model
    classes_: LabelArray
    taxonomy_: Taxonomy
    temperature_: float | None
    unknown: object
    terminals: str

    def contents(self, *, training_state: bool | None = None) -> tuple[dict[str, object], dict[str, AnyArray]]: ...
    def fit(self, X: Inputs, y: Outputs | None = None, **options: object) -> Self: ...
    def predict(self, X: Inputs) -> Outputs: ...
    def predict_proba(self, X: Inputs) -> Floats: ...
    def predict_marginals(self, X: Inputs) -> list[NDArray[np.float64]]: ...
    def decision_function(self, X: Inputs) -> Floats: ...
    def predict_kbest(self, X: Inputs, k: int, *, probabilities: bool = False) -> list[list[tuple[object, float]]]: ...
    def predict_spans(self, X: Inputs, **options: object) -> Chances: ...
    def node_proba(self, X: Inputs) -> Floats: ...
