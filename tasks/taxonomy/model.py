"""A classifier of documents in a taxonomy: its structure and what it predicts, whatever scores its nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from structsvm.dual.parallel import parallel_map
from structsvm.kernel.parameters import KernelFunction
from structsvm.oracles.taxonomy import TaxonomyOutputs
from structsvm.parameters import did_you_mean
from structsvm.stored_values import Array, Count, Flag, Part, Record, Stored, Text, TextOr
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks.common.calibration import fit_temperature, one_hot, probabilities, softmax_loss
from structsvm.tasks.common.labels import label_array, sort_labels
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import check_settled
from structsvm.tasks.common.selection.search import TINY, Held
from structsvm.tasks.common.solver import is_auto, is_log
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.taxonomy.known import SETS
from structsvm.tasks.taxonomy.vectorizer import suspicion, vectorizer_from_file, vectorizer_to_file

if TYPE_CHECKING:
    from types import SimpleNamespace

    from scipy.sparse import csr_array
    from sklearn.base import BaseEstimator

    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, Numbers
    from structsvm.tasks.common.examples import LabeledRows

BLOCK = 1024  # documents that a thread decides, and whose scores are held, at a time
USUAL_LOSS = "tree"

NUMBERS = "f8 f4 i8 i4 i2 i1 u8 u4 u2 u1 b1"
TAXONOMY = Record({
    # The parents of each node.
    "taxonomy": Record(
        {
            "indptr": Array("i4 i8", ("n_nodes+1",), rises_to="n_edges"),
            "parents": Array("i4 i8", ("n_edges",), within=(0, "n_nodes")),
        },
        of="taxonomy.lattice",
    ),
    "nodes": Labels(of="taxonomy.nodes"),
    "labels": Labels(2),
    "structure": Record(
        {
            "leaf_only": Flag(),
            "intercept": Flag(),
            "loss": TextOr(Array(NUMBERS, ("n_scored", "n_scored"), within=(0, None), needed=False)),
            "attributes": TextOr(Array(NUMBERS, ("n_labels", "n_attributes"), needed=False)),
        },
        of=lambda model: model,
    ),
    "n_features": Count(1, of=lambda model: int(model.columns["n_features_in_"])),
    "vectorizer": Part(vectorizer_from_file, vectorizer_to_file, null=True),
    "separator": Text(of="taxonomy.separator", null=True),
})  # fmt: skip


class Structure(TypedDict):
    """The arguments of a model beside taxonomy and labels."""

    leaf_only: bool
    intercept: bool
    loss: str | Numbers
    attributes: str | Numbers | csr_array


class TaxonomyModel(TaskModel):
    """Taxonomy and labels. A subclass scores nodes, by weights or by a kernel.

    Attributes
    ----------
    forms : dict
        The subclasses, by whether they score by a kernel machine.
    taxonomy : Taxonomy
        The whole one. That of `targets` is what lies above the labels.
    labels : ndarray
        The labels seen in training, sorted; output k is ``labels[k]``.
    leaf_only : bool
        Whether labels alone are predicted, or the nodes above them too.
    targets : TaxonomyOutputs
    intercept : bool
        Whether documents get one more feature, of value 1.
    loss, attributes : str or array
        As the parameters, matrices for the labels alone (without `leaf_only` the loss for ``targets.taxonomy.nodes``).
    risk : str or array
        The loss of a prediction, where that is not what is trained on: "zero_one" for the log loss.
    vectorizer : vectorizer or None
        The fitted one that makes documents of texts.
    """

    kind = "taxonomy"
    groups = (KernelFunction,)
    estimator = "TaxonomyClassifier"
    forms: ClassVar[dict[bool, type[TaxonomyModel]]] = {}

    def __init_subclass__(cls, *, has_machine: bool) -> None:
        super().__init_subclass__()
        cls.forms[has_machine] = cls

    def __init__(
        self,
        taxonomy: Taxonomy,
        labels: Sequence[Hashable],
        *,
        leaf_only: bool,
        intercept: bool,
        loss: str | Numbers,
        attributes: str | Numbers | csr_array,
    ) -> None:
        super().__init__()
        self.taxonomy, self.labels = taxonomy, label_array(labels)
        self.leaf_only, self.intercept, self.attributes = leaf_only, intercept, attributes
        self.aim_at(loss)
        self.vectorizer: BaseEstimator | None = None

    @property
    @abstractmethod
    def n_input_features(self) -> int:
        """Columns of X."""

    def aim_at(self, loss: str | Numbers) -> None:
        """Set the loss that is trained on."""
        part = self.taxonomy.restricted(self.labels)
        outputs = [part.number(label) for label in self.labels]
        self.loss = loss
        if not isinstance(loss, str):
            self.risk: str | Numbers = loss
            loss = loss if self.leaf_only else loss[outputs][:, outputs]
        else:
            self.risk = loss = "zero_one" if loss == "log" else loss
        self.targets = TaxonomyOutputs(part, outputs, loss=loss, attributes=self.attributes)

    def check_same(self, taxonomy: Taxonomy, structure: Structure) -> None:
        """Raise ValueError, naming the parameter, if parameters ask for another structure."""
        check_settled([
            ("taxonomy", taxonomy, self.taxonomy),
            ("leaf_only", structure["leaf_only"], self.leaf_only),
            ("loss", structure["loss"], self.loss),
            ("attributes", structure["attributes"], self.attributes),
        ])  # fmt: skip

    # ---- what a subclass scores -----------------------------------------------------------------

    def encode(self, X: Matrix) -> Any:
        """A matrix of documents as the subclass takes them."""
        return X

    @abstractmethod
    def blocks(self, documents: Any) -> Sequence[Any]:
        """Encoded documents in parts of at most BLOCK, as `best` and `scores_of` take them."""

    @abstractmethod
    def best(self, block: Any) -> Integers:
        """Ids of the labels of highest score."""

    @abstractmethod
    def scores_of(self, block: Any) -> Floats:
        """Scores of all `nodes`, float64 array (documents of the block, n_nodes)."""

    # ---- choosing C -----------------------------------------------------------------------------

    def held_out_scores(self, examples: LabeledRows) -> Held:
        """The log loss where the user asks for it; under another loss with a name the accuracy where leaves alone are
        predicted, else the mean loss.

        The losses "tree" and "path" follow the accuracy as C changes, and vary more.
        """
        blocks, label_ids = list(self.blocks(examples.rows)), examples.label_ids
        n = len(label_ids)
        if self.leaf_only and not is_log(self.params.get("loss")):
            chosen = np.concatenate([np.empty(0, np.intp), *map(self.best, blocks)])
            if isinstance(self.loss, str):
                return Held("accuracy", (chosen == label_ids).astype(np.float64), np.ones(n))
            return Held("mean loss", self.losses[label_ids, chosen].astype(np.float64), np.ones(n))
        scores = self._of_labels(np.concatenate([self.scores_of(block) for block in blocks]))
        if is_log(self.loss):
            p = probabilities(scores, 1.0)[np.arange(n), label_ids]
            return Held("log loss", -np.log(np.maximum(p, TINY)), np.ones(n))
        temperature = fit_temperature(softmax_loss(scores, one_hot(label_ids, len(self.labels))))
        return Held(
            "mean loss", self.losses[label_ids, self._safest(scores, temperature)].astype(np.float64), np.ones(n)
        )

    @property
    def losses(self) -> Numbers:
        """The loss of each label (row) and each of `classes`."""
        if self.leaf_only:
            return np.stack([self.targets.losses(k) for k in range(len(self.labels))])
        taxonomy = self.targets.taxonomy
        return np.stack(
            [self._losses_if(taxonomy.number(z))[self.targets.outputs] for z in self.classes.tolist()], axis=1
        )

    def loss_scale(self) -> float:
        """``|L(y) - L(y')|^2 / loss(y, y')`` of labels and the ones most unlike them, in the mean."""
        vectors = [self.targets.attributes.vector(k) for k in range(min(len(self.labels), 64))]
        losses = [self.targets.losses(k)[: len(vectors)] for k in range(len(vectors))]
        pairs = [(k, int(np.argmax(row))) for k, row in enumerate(losses)]
        return sum(float(((vectors[k] - vectors[z]) ** 2).sum()) for k, z in pairs) / sum(
            float(losses[k][z]) for k, z in pairs
        )

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Matrix, *, n_jobs: int = 1) -> LabelArray:
        """Names of the best nodes, array (n_documents,); `n_jobs` threads."""
        chosen = parallel_map(self.decide, list(self.blocks(self.encode(X))), n_jobs)
        return self.classes[np.concatenate([np.empty(0, dtype=np.intp), *chosen])]

    def decide(self, block: Any) -> Integers:
        """Places in `classes` of the best nodes."""
        if self.leaf_only:
            return self.best(block)
        return self._safest(self._of_labels(self.scores_of(block)), self.temperature)

    @property
    def classes(self) -> LabelArray:
        """Names of what is predicted, sorted."""
        return self.labels if self.leaf_only else label_array(sort_labels(self.targets.taxonomy.nodes))

    def _safest(self, scores: Floats, temperature: float | None) -> Integers:
        """For each document the place in `classes` of its best label, or of the node above that is safest.

        What node z risks is the loss to be expected, ``sum_y P(y) loss(y, z)``; of the best label and its ancestors the
        one of least risk is chosen, of several the lowest. Without a temperature there are no probabilities. But
        training asks that ``s(y) >= loss(y, y') + s(y')`` for the true y and all y', so z risks ``max_y loss(y, z) +
        s(y)``, which is s(z) itself for a label that keeps its margins.
        """
        taxonomy, outputs = self.targets.taxonomy, self.targets.outputs
        best = scores.argmax(axis=1)
        p = None if temperature is None else probabilities(scores, temperature)
        place = {name: k for k, name in enumerate(self.classes.tolist())}
        chosen = np.empty(len(best), dtype=np.intp)
        for k in np.unique(best):
            of_k = np.flatnonzero(best == k)
            label = self.labels.tolist()[k]
            above = sorted({*taxonomy.ancestors(label), taxonomy.root}, key=taxonomy.number)[::-1]
            losses = [self._losses_if(taxonomy.number(z))[outputs] for z in above]
            risks = [(scores[of_k] + loss).max(axis=1) if p is None else p[of_k] @ loss for loss in losses]
            chosen[of_k] = np.array([place[z] for z in above])[np.argmin(risks, axis=0)]
        return chosen

    def _losses_if(self, z: int) -> Numbers:
        """Loss of predicting node z, by the true node."""
        return self.targets.taxonomy.lattice.losses(self.risk, z) if isinstance(self.risk, str) else self.risk[:, z]

    def scores(self, X: Matrix, *, n_jobs: int = 1) -> Floats:
        """Scores of all `nodes`, float64 array (n_documents, n_nodes)."""
        return self._scores(self.encode(X), n_jobs)

    def label_scores(self, X: Matrix, *, n_jobs: int = 1) -> Floats:
        """Scores of the labels alone, float64 array (n_documents, n_labels)."""
        return self._of_labels(self.scores(X, n_jobs=n_jobs))

    def class_scores(self, X: Any) -> Floats:
        return self._of_labels(self._scores(X, 1))

    def _scores(self, documents: Any, n_jobs: int) -> Floats:
        empty = np.empty((0, self.targets.attributes.n_positions))
        return np.concatenate([empty, *parallel_map(self.scores_of, list(self.blocks(documents)), n_jobs)])

    def _of_labels(self, scores: Floats) -> Floats:
        return scores[:, self.targets.attributes.arrays[5]]

    def of_classes(self, values: Floats, columns: Iterable[Hashable], missing: float) -> Floats:
        """Values of labels, or of other names given, by `classes`: those without one have `missing`."""
        found = np.full((len(values), len(self.classes)), missing)
        place = {name: k for k, name in enumerate(self.classes.tolist())}
        found[:, [place[name] for name in columns]] = values
        return found

    def below(self) -> NDArray[np.bool_]:
        """Return whether each label (row) is a node of the taxonomy (column) or below it: bool array."""
        taxonomy = self.targets.taxonomy
        table = np.zeros((len(self.labels), len(taxonomy)), dtype=bool)
        for k, label in enumerate(self.labels.tolist()):
            table[k, [0, taxonomy.number(label), *map(taxonomy.number, taxonomy.ancestors(label))]] = True
        return table

    @property
    def nodes(self) -> list[Hashable]:
        """Names of what `scores` scores: nodes, or labels alone where attributes are not those of ancestors."""
        of_ancestors = isinstance(self.attributes, str) and self.attributes != "flat"
        return self.targets.taxonomy.nodes if of_ancestors else self.labels.tolist()

    # ---- model files ----------------------------------------------------------------------------

    def stored_params(self) -> dict[str, Any]:
        return {name: value for name, value in self.params.items() if name not in ("taxonomy", "vectorizer")}

    @staticmethod
    def suspicion(header: dict[str, Any]) -> str | None:
        return suspicion(header["vectorizer"])

    def restored_params(self, params: dict[str, Any]) -> dict[str, Any]:
        params = {name: value for name, value in params.items() if name not in ("taxonomy", "vectorizer")}
        if self.taxonomy.root is not None:
            params["taxonomy"] = self.taxonomy
        if self.vectorizer is not None:
            params["vectorizer"] = unfitted(self.vectorizer)
        return params

    @classmethod
    def kind_in(cls, header: dict[str, Any]) -> type[TaxonomyModel]:
        return cls.forms["machine" in header]

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        taxonomy, matrices = _taxonomy_from(stored), stored.structure.arrays()
        structure = {name: matrices[name] if value is None else value for name, value in stored.structure.items()}
        model: Self = cls.from_parts(taxonomy, stored.labels, structure, stored)
        n_features = model.columns["n_features_in_"] = stored.n_features
        if n_features != model.n_input_features:
            raise ValueError(f"{n_features} features, and the model is of {model.n_input_features}")
        model.vectorizer = stored.vectorizer
        if model.vectorizer is not None and len(model.vectorizer.vocabulary_) != n_features:
            raise ValueError(f"a vectorizer of {len(model.vectorizer.vocabulary_)} terms, and {n_features} features")
        return model

    @classmethod
    @abstractmethod
    def from_parts(
        cls, taxonomy: Taxonomy, labels: Sequence[Hashable], structure: dict[str, Any], stored: Stored
    ) -> Self:
        """A model whose scores a file contains; ValueError or TypeError if these do not fit."""


def unfitted(vectorizer: BaseEstimator) -> BaseEstimator:
    """A vectorizer with the same parameters."""
    from sklearn.base import clone

    return clone(vectorizer)


def structure_of(
    params: SimpleNamespace, labels: Sequence[Hashable], y: Iterable[object] = ()
) -> tuple[Taxonomy, Structure]:
    """The taxonomy that parameters ask for, and a model's other arguments as a dict.

    `y` has the labels by document, whose row errors name.
    """
    taxonomy = checked_taxonomy(params, labels, y)
    names = taxonomy.leaves if params.leaf_only else taxonomy.nodes
    scored = labels if params.leaf_only else taxonomy.restricted(labels).nodes
    loss = USUAL_LOSS if is_auto(params.loss) else _rows_of(params, "loss", names, scored)
    return taxonomy, {
        "leaf_only": bool(params.leaf_only),
        "intercept": bool(params.fit_intercept) and params.kernel is None,
        "loss": loss,
        "attributes": _rows_of(params, "attributes", names, labels),
    }


def checked_taxonomy(params: SimpleNamespace, labels: Sequence[Hashable], y: Iterable[object]) -> Taxonomy:
    """The taxonomy that parameters ask for; ValueError unless these labels may be learnt in it."""
    if len(labels) < 2:
        raise ValueError(f"TaxonomyClassifier needs at least 2 classes; y holds one class, {labels[0]!r}")
    taxonomy = params.taxonomy
    if taxonomy is None:
        if not params.leaf_only:
            raise ValueError("leaf_only=False needs a taxonomy")
        return Taxonomy.flat(labels)
    unknown = [label for label in labels if label not in taxonomy]
    if unknown:
        near = did_you_mean(unknown[0], taxonomy.nodes)
        rows = (i for i, own in enumerate(y) if own == unknown[0] or (isinstance(own, SETS) and unknown[0] in own))
        row = next((f"row {i} of y: " for i in rows), "")
        raise ValueError(f"{row}the label {unknown[0]!r:.80} is no node of the taxonomy{near}")
    leaves = set(taxonomy.leaves)
    inner = [label for label in labels if label not in leaves]
    if inner and params.leaf_only:
        raise ValueError(
            f"the label {inner[0]!r:.80} is an inner node of the taxonomy; set leaf_only=False for labels above the "
            "leaves"
        )
    return taxonomy


def _rows_of(params: SimpleNamespace, name: str, names: Sequence[Hashable], chosen: Iterable[Hashable]) -> Any:
    """A parameter that is a matrix with a row per name (the loss also a column): the part for `chosen`."""
    value = getattr(params, name)
    if isinstance(value, str):
        return value
    if name == "loss":
        matrix = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
    else:
        matrix = value.tocsr() if hasattr(value, "tocsr") else np.asarray(value)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise ValueError(f"The {name!r} parameter must be a matrix of numbers. Got {value!r:.80} instead.")
    if len(names) not in ((matrix.shape[0],) if name == "attributes" else set(matrix.shape)) or (
        name == "loss" and matrix.shape[0] != matrix.shape[1]
    ):
        raise ValueError(
            f"The {name!r} parameter must have a row for each of the {len(names)} nodes that may be predicted. "
            f"Got shape {matrix.shape}."
        )
    if name == "loss" and not ((matrix >= 0.0).all() and np.isfinite(matrix).all()):
        raise ValueError("The 'loss' parameter must hold finite numbers that are not negative.")
    number = {node: k for k, node in enumerate(names)}
    places = [number[node] for node in chosen]
    return matrix[places][:, places] if name == "loss" else matrix[places]


def _taxonomy_from(stored: Stored) -> Taxonomy:
    """The taxonomy of a file."""
    nodes, separator = stored.nodes, stored.separator
    indptr, parents = stored.taxonomy.arrays().values()
    edges = [(nodes[p], node) for k, node in enumerate(nodes) for p in parents[indptr[k] : indptr[k + 1]].tolist()]
    taxonomy = Taxonomy(edges)
    if separator == "" or (separator is not None and not all(isinstance(node, str) for node in nodes)):
        raise ValueError(f"a separator {separator!r:.80} of levels in names of nodes that are no paths")
    taxonomy.separator = separator
    return taxonomy
