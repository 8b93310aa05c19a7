"""Classes in a taxonomy: the oracle for taxonomic and for flat classification.

Tsochantaridis and others 2004, sections 5.1 and 5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.dense import DenseRows, padded
from structsvm.features.matrices import encode_rows, is_sparse
from structsvm.features.ranges import take_ranges
from structsvm.features.tokens import Tokens, narrowed
from structsvm.oracles._taxonomy import DenseDecoder, OutputAttributes, TaxonomyDecoder, TaxonomyProblem
from structsvm.parameters import COUNT, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling, UnsupportedFormulation, checked_weights
from structsvm.structures._lattice import NODE_LOSSES
from structsvm.structures.taxonomy import Taxonomy

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["TaxonomyOracle"]

ATTRIBUTES = ("ancestors", "normalized", "flat")

Indices = NDArray[np.integer[Any]]

# Number of nodes with several parents, which are processed one by one: some seconds of work.
MAX_ANCESTORS = 10_000_000


class Candidates(NamedTuple):
    """Partial knowledge of the outputs of documents: sets that contain them.

    Attributes
    ----------
    which : ndarray of shape (n_documents,), int32
        The set of each document.
    bounds : ndarray of shape (n_sets + 1,), int64
        Where each set begins in `outputs`.
    outputs : ndarray of int32
        Ascending in each set.
    weights : ndarray of float64, or None
        Weights of `outputs`, the greatest of each set 1. None: they are equal.
    """

    which: NDArray[np.int32]
    bounds: NDArray[np.int64]
    outputs: NDArray[np.int32]
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, sets: list[Any], which: ArrayLike | None = None) -> Self:
        """From sets of output indices: one per document, or those that `which` has the numbers of.

        A dict from indices to weights is a set whose members are not equally likely.
        """
        members = [np.unique(np.asarray(list(outputs))) for outputs in sets]
        weights = None
        if any(isinstance(one, dict) for one in sets):
            parts = [
                np.array([one[k] for k in outputs.tolist()]) if isinstance(one, dict) else np.ones(len(outputs))
                for one, outputs in zip(sets, members, strict=True)
            ]
            with np.errstate(divide="ignore", invalid="ignore"):  # `check_candidates` refuses what comes of it
                weights = np.concatenate([part / part.max(initial=0.0) for part in parts])
        for k, outputs in enumerate(members):
            if not len(outputs) or outputs.dtype.kind not in "iu":
                what = "empty" if not len(outputs) else f"of {outputs.dtype}"
                raise ValueError(f"set {k} of candidates is {what}, expected one or more output indices")
        return cls(
            np.asarray(np.arange(len(sets)) if which is None else which, dtype=np.int32),
            np.concatenate([[0], np.cumsum([len(outputs) for outputs in members])]).astype(np.int64),
            np.concatenate([np.empty(0, np.int32), *members]).astype(np.int32),
            weights,
        )

    def rows(self, part: Any) -> Self:
        """The sets of some of the documents, given by a slice or by indices."""
        return self._replace(which=np.ascontiguousarray(self.which[part]))

    @property
    def whole(self) -> NDArray[np.int32]:
        """The outputs of documents whose set has one member, -1 for the others."""
        alone = np.diff(self.bounds) == 1
        return np.where(alone, self.outputs[self.bounds[:-1]], -1)[self.which].astype(np.int32)

    def table(self, n_outputs: int) -> NDArray[np.bool_]:
        """Outputs that each document may have: bool array (n_documents, n_outputs)."""
        found = np.zeros((len(self.bounds) - 1, n_outputs), dtype=bool)
        found[np.repeat(np.arange(len(found)), np.diff(self.bounds)), self.outputs] = True
        return found[self.which]


class TaxonomyOutputs:
    """Nodes of a taxonomy as outputs, their losses and attributes.

    Parameters
    ----------
    taxonomy, outputs, loss, attributes : see `TaxonomyOracle`

    Attributes
    ----------
    outputs : ndarray of shape (n_outputs,), int32
    loss_name, loss_matrix : str, float32 array
        "matrix" and the matrix, or a name and None.
    attributes : OutputAttributes
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        outputs: ArrayLike | None = None,
        *,
        loss: str | ArrayLike = "tree",
        attributes: Any = "ancestors",
    ) -> None:
        if outputs is None:
            outputs = [taxonomy.number(leaf) for leaf in taxonomy.leaves]
        self.taxonomy, self.outputs = taxonomy, _checked_outputs(outputs, len(taxonomy))
        self.loss_name, self.loss_matrix = _checked_loss(loss, len(self.outputs))
        self.attributes = _attributes(taxonomy, self.outputs, attributes)

    def losses(self, true: int) -> NDArray[np.float32]:
        """Losses of all outputs where output `true` is the true one: float32 array (n_outputs,)."""
        if self.loss_matrix is not None:
            return self.loss_matrix[true]
        return self.taxonomy.lattice.losses(self.loss_name, self.outputs[true])[self.outputs]


class TaxonomyOracle(Oracle):
    """Nodes of a taxonomy as outputs; the joint feature is ``Psi(x, y) = Phi(x) (x) L(y)``.

    An output is its index, 0 .. n_outputs - 1. Inputs are rows of numbers: dense, sparse, or `Tokens` with one token
    per document.

    Parameters
    ----------
    taxonomy : Taxonomy
    n_input_features : int
        Length of Phi(x).
    outputs : array-like of int, optional
        Indices in ``taxonomy.nodes`` of the nodes that are outputs. Default: the leaves.
    loss : {"zero_one", "tree", "path"} or array of shape (n_outputs, n_outputs), default="tree"
        See `Taxonomy`; or the loss of each true output (row) and predicted one (column), positive except for a zero
        diagonal.
    attributes : {"ancestors", "normalized", "flat"} or array (n_outputs, n_attributes), default="ancestors"
        L(y): indicators of y and its ancestors without the root, which all outputs share; these divided by the
        square root of their number, so that |L(y)| = 1; indicators of y alone; or rows of numbers, dense or sparse.
    lists : (int64 array, int32 array), optional
        The attributes for which each of the last input features has a weight, ascending, as indptr and indices of
        a CSR matrix. All other features have a weight for every attribute.

    Attributes
    ----------
    n_features : int
        Length of w: ``n_full * stride``, and one per entry of `lists`; at least 1.
    stride : int
        Floats in a full row: the number of attributes rounded up to a multiple of 8.
    attributes : OutputAttributes

    Notes
    -----
    Exact for both rescalings and all penalties: a document costs its number of entries times the attributes, and one
    pass over the nodes. What may be known of an output is a set that contains it, such as the leaves below an
    inner node. The inner product of two constraints of a document is ``|x|^2 <L - L', L - L''>``.

    Examples
    --------
    >>> from structsvm import Taxonomy
    >>> from structsvm.oracles.taxonomy import TaxonomyOracle
    >>> taxonomy = Taxonomy([("all", "comp"), ("all", "autos"), ("comp", "mac"), ("comp", "pc")])
    >>> oracle = TaxonomyOracle(taxonomy, n_input_features=1)
    >>> oracle.n_outputs, oracle.loss(0, 1)
    (3, 2.0)
    """

    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(
        self,
        taxonomy: Taxonomy,
        n_input_features: int,
        *,
        outputs: ArrayLike | None = None,
        loss: str | ArrayLike = "tree",
        attributes: Any = "ancestors",
        lists: tuple[Indices, Indices] | None = None,
    ) -> None:
        self._over(TaxonomyOutputs(taxonomy, outputs, loss=loss, attributes=attributes), n_input_features, lists)

    @classmethod
    def over(
        cls, targets: TaxonomyOutputs, n_input_features: int, lists: tuple[Indices, Indices] | None = None
    ) -> Self:
        """An oracle over existing `TaxonomyOutputs`."""
        self = cls.__new__(cls)
        self._over(targets, n_input_features, lists)
        return self

    def _over(self, targets: TaxonomyOutputs, n_input_features: int, lists: tuple[Indices, Indices] | None) -> None:
        check_arguments("TaxonomyOracle", locals(), n_input_features=COUNT)
        self.targets, self.n_input_features = targets, int(n_input_features)
        self.taxonomy, self.outputs, self.attributes = targets.taxonomy, targets.outputs, targets.attributes
        self.loss_name, self.loss_matrix = targets.loss_name, targets.loss_matrix
        self.stride = padded(self.attributes.n_attributes)
        indptr, listed = (np.zeros(1, np.int64), np.empty(0, np.int64)) if lists is None else lists
        self.n_full = self.n_input_features - (len(indptr) - 1)
        # Start of each listed row in w.
        self.list_places = np.ascontiguousarray(indptr, dtype=np.int64) + self.n_full * self.stride
        self.listed = np.ascontiguousarray(listed, dtype=np.int32)
        self._check_lists()
        self.n_features = max(int(self.list_places[-1]), 1)
        if self.n_features >= 2**31:
            raise ValueError(
                f"{self.n_input_features} features with {self.attributes.n_attributes} attributes need "
                f"{self.n_features} weights, more than 2**31: drop rare features, or list the attributes for "
                "which they have weights"
            )

    def _check_lists(self) -> None:
        places, listed, full = self.list_places, self.listed, self.n_full * self.stride
        steps = np.diff(listed)
        steps[places[1:-1][(places[1:-1] > full) & (places[1:-1] < full + len(listed))] - full - 1] = 1
        if (
            self.n_full < 0
            or (places[1:] < places[:-1]).any()
            or (places[0], places[-1]) != (full, full + len(listed))
            or (steps <= 0).any()
            or (len(listed) and not 0 <= listed.min() <= listed.max() < self.attributes.n_attributes)
        ):
            raise ValueError(
                "The 'lists' parameter of TaxonomyOracle must be indptr and indices of a CSR matrix with at most "
                f"{self.n_input_features} rows and {self.attributes.n_attributes} columns, ascending in each row."
            )

    @property
    def n_outputs(self) -> int:
        return len(self.outputs)

    def touched(self, documents: Tokens) -> tuple[Self, Tokens, NDArray[np.int64]]:
        """The oracle of only those features that some documents have, these with their features renumbered, and the
        rows of weights that are its own; with `lists` the single weights.
        """
        documents, features = narrowed(documents)
        if self.n_full == self.n_input_features:
            return self.over(self.targets, len(features)), documents, features
        full = features[features < self.n_full]
        entries = (full[:, None] * self.stride + np.arange(self.stride)).ravel()
        indptr, places = take_ranges(self.list_places - self.list_places[0], features[len(full) :] - self.n_full)
        oracle = self.over(self.targets, len(features), (indptr, self.listed[places]))
        return oracle, documents, np.concatenate([entries, self.list_places[0] + places])

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> TaxonomyProblem:
        """Bind training documents; see `Oracle.bind`.

        X is `Tokens`, `DenseRows`, a matrix or a list of rows; Y the indices of their outputs. Where these are known in
        part, an entry is a set of indices, or a dict from them to weights, or Y is `Candidates`. The problem of
        `DenseRows` has its weights in another order: `TaxonomyProblem.to_oracle` returns them in that of the oracle.
        """
        self.check_formulation(rescaling, penalty)
        known = Y if isinstance(Y, Candidates) else None
        is_plain = isinstance(Y, np.ndarray) and Y.dtype != object
        sets = (set, frozenset, dict)
        if known is None and not is_plain and any(isinstance(y, sets) for y in Y):
            known = Candidates.of([y if isinstance(y, sets) else (y,) for y in Y])
        if known is not None and known.weights is not None and rescaling is not None:
            raise UnsupportedFormulation("weights of candidates need the log loss: a margin has none for them")
        if known is not None:
            Y = known.whole
            if (Y >= 0).all():
                known = None
        return TaxonomyProblem(self, as_documents(X), Y, known, rescaling=rescaling, penalty=penalty)

    def decoder(self, X: Any) -> TaxonomyDecoder | DenseDecoder:
        """Return a decoder for documents without labels."""
        return DenseDecoder(self, X) if isinstance(X, DenseRows) else TaxonomyDecoder(self, as_documents(X))

    # ---- the protocol on single objects ---------------------------------------------------------

    def joint_feature(self, x: Any, y: int) -> NDArray[np.float64]:
        document = as_documents([x])
        self.check_documents(document)
        vector = self.attributes.vector(int(self.check_labels(document, [y])[0]))
        psi = np.zeros(self.n_features)
        for f, value in zip(
            document.indices, np.ones(document.n_entries) if document.values is None else document.values
        ):
            if f < self.n_full:
                psi[f * self.stride : f * self.stride + len(vector)] = float(value) * vector
            else:
                a, b = self.list_places[f - self.n_full : f - self.n_full + 2]
                psi[a:b] = float(value) * vector[self.listed[a - self.list_places[0] : b - self.list_places[0]]]
        return psi

    def loss(self, y_true: int, y: int) -> float:
        return float(self.targets.losses(y_true)[y])

    def argmax(self, x: Any, w: ArrayLike, y_true: int | None = None, rescaling: Rescaling | None = None) -> int:
        if y_true is None:
            return int(self.decoder([x]).decode(w)[0])
        return self.bind([x], [y_true], rescaling=rescaling).most_violated(0, w)

    def complete(self, x: Any, known: Any, w: ArrayLike) -> int:
        """The best of a set of outputs; a known output is returned unchanged."""
        return int(self.bind([x], [known]).complete(0, w)[0])

    def expect(self, x: Any, w: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        loss, _, gradient = self.bind([x], [0], rescaling=None).expect(0, w)
        psi = self.joint_feature(x, 0)
        return loss + float(psi @ self.check_weights(w)), gradient + psi

    # ---- checks for the compiled code ----- --------------------------------------------------------

    def check_documents(self, documents: Tokens | DenseRows) -> None:
        """Raise ValueError unless the documents have the features of this oracle and one token each."""
        if documents.n_features != self.n_input_features:
            raise ValueError(f"the documents have {documents.n_features} features, the oracle {self.n_input_features}")
        if isinstance(documents, DenseRows):
            self._check_dense(documents.values)
        else:
            self._check_tokens(documents)

    def _check_dense(self, values: AnyArray) -> None:
        if self.n_full != self.n_input_features:
            raise ValueError("dense rows need a weight for each feature and attribute, and there are lists")
        if values.dtype != np.float32 or not values.flags.c_contiguous or not np.isfinite(values).all():
            raise ValueError("dense rows must be finite, in a C-contiguous float32 array")

    def _check_tokens(self, documents: Tokens) -> None:
        indptr, indices, values = documents.indptr, documents.indices, documents.values
        sound = (
            np.array_equal(documents.offsets, np.arange(len(indptr)))
            and indptr[0] == 0
            and indptr[-1] == len(indices)
            and (values is None or len(values) == len(indices))
            and all(a.flags.c_contiguous and a.flags.aligned for a in (indptr, indices, values) if a is not None)
            and [a.dtype for a in (indptr, indices)] == [np.int64, np.int32]
            and (values is None or values.dtype == np.float32)
        )
        if not sound or not all(map(self._ascends, documents.parts())):
            raise ValueError("the documents must be Tokens of one token each, with features that ascend")

    def _ascends(self, part: Tokens) -> bool:
        """Whether the features of each document ascend: those with full rows come first."""
        indptr, indices = part.indptr, part.indices
        if (indptr[1:] < indptr[:-1]).any() or indptr[-1] != len(indices):
            return False
        steps = np.diff(indices)
        bounds = indptr[1:-1]
        steps[bounds[(bounds > 0) & (bounds < len(indices))] - 1] = 1
        within = not len(indices) or 0 <= indices.min() <= indices.max() < self.n_input_features
        return bool(within and (steps > 0).all())

    def check_labels(self, documents: Tokens | DenseRows, labels: ArrayLike, least: int = 0) -> NDArray[np.int32]:
        """Return the labels as an int32 array of output indices (or -1 if `least` is -1); raises ValueError."""
        labels = np.asarray(labels)
        if labels.shape != (len(documents),):
            raise ValueError(f"labels have shape {labels.shape}, expected ({len(documents)},)")
        if len(labels) and labels.dtype.kind not in "iu":
            raise ValueError(f"labels are of type {labels.dtype}, expected integers")
        if len(labels) and not least <= labels.min() <= labels.max() < self.n_outputs:
            raise ValueError(f"labels lie in {labels.min()}..{labels.max()}, expected 0..{self.n_outputs - 1}")
        return np.ascontiguousarray(labels, dtype=np.int32)

    def check_candidates(self, documents: Tokens | DenseRows, known: Candidates) -> None:
        """Raise ValueError unless there is a set of outputs for each document."""
        which, bounds, outputs, weights = known
        arrays = (which, bounds, outputs)
        if [array.dtype for array in arrays] != [np.int32, np.int64, np.int32] or not all(
            array.ndim == 1 and array.flags.c_contiguous and array.flags.aligned for array in arrays
        ):
            raise ValueError("candidates must be contiguous arrays of int32, int64 and int32")
        if len(which) != len(documents):
            raise ValueError(f"there are candidates for {len(which)} documents, and {len(documents)} documents")
        if not len(bounds) or bounds[0] != 0 or bounds[-1] != len(outputs) or (bounds[1:] <= bounds[:-1]).any():
            raise ValueError("sets of candidates must have one member or more")
        if len(which) and not 0 <= which.min() <= which.max() < len(bounds) - 1:
            raise ValueError(f"sets of candidates lie in {which.min()}..{which.max()}, expected 0..{len(bounds) - 2}")
        if len(outputs) and not 0 <= outputs.min() <= outputs.max() < self.n_outputs:
            raise ValueError(f"candidates lie in {outputs.min()}..{outputs.max()}, expected 0..{self.n_outputs - 1}")
        if weights is not None and not (
            weights.dtype == np.float64
            and weights.shape == outputs.shape
            and ((weights > 0.0) & (weights <= 1.0)).all()
        ):
            raise ValueError(f"weights of candidates must be {len(outputs)} float64 numbers > 0, at most 1")

    def check_weights(self, w: ArrayLike) -> NDArray[np.float32]:
        """Return the weights as a float32 array of n_features values; raises ValueError."""
        return checked_weights(w, self.n_features, np.float32)


def as_documents(X: Any) -> Any:
    """Return a matrix, dense or sparse, or a list of rows, as `Tokens` with one token per document.

    `DenseRows` are returned as they are.
    """
    if isinstance(X, (Tokens, DenseRows)):
        return X
    if not is_sparse(X) and not (isinstance(X, np.ndarray) and X.ndim == 2):
        dense = [x.toarray().ravel() if is_sparse(x) else np.ravel(x) for x in X]
        X = np.array(dense) if dense else np.empty((0, 0))
    if X.shape[0] == 0:
        return Tokens(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32), None, X.shape[1])
    rows = encode_rows([X])
    return Tokens(np.arange(len(rows.indptr)), rows.indptr, rows.indices, rows.values, rows.n_features)


def _checked_outputs(outputs: ArrayLike, n_nodes: int) -> NDArray[np.int32]:
    outputs = np.asarray(outputs)
    if (
        outputs.ndim != 1
        or outputs.dtype.kind not in "iu"
        or not 0 <= outputs.min() <= outputs.max() < n_nodes
        or len(np.unique(outputs)) != len(outputs)
    ):
        raise ValueError(
            "The 'outputs' parameter of TaxonomyOracle must be distinct indices of nodes, "
            f"0 .. {n_nodes - 1}. Got {outputs!r:.80} instead."
        )
    return np.ascontiguousarray(outputs, dtype=np.int32)


def _checked_loss(loss: str | ArrayLike, n_outputs: int) -> tuple[str, NDArray[np.float32] | None]:
    """Name of the loss and None, or "matrix" and the matrix."""
    if isinstance(loss, str):
        if loss not in NODE_LOSSES:
            raise ValueError(
                "The 'loss' parameter of TaxonomyOracle must be 'zero_one', 'tree', 'path' or a matrix. "
                f"Got {loss!r} instead."
            )
        return loss, None
    matrix = np.ascontiguousarray(loss, dtype=np.float32)
    if matrix.shape != (n_outputs, n_outputs) or not np.isfinite(matrix).all():
        raise ValueError(
            f"The 'loss' matrix must be finite and of shape ({n_outputs}, {n_outputs}). Got shape {matrix.shape}."
        )
    if matrix.diagonal().any() or (matrix[~np.eye(n_outputs, dtype=bool)] <= 0.0).any():
        raise ValueError("The 'loss' matrix must be 0 on the diagonal and positive everywhere else.")
    return "matrix", matrix


def _attributes(taxonomy: Taxonomy, outputs: NDArray[np.int32], attributes: Any) -> OutputAttributes:
    """L(y) of all outputs as a programme; see the head of `_taxonomy.pyx`."""
    if isinstance(attributes, str):
        if attributes not in ATTRIBUTES:
            raise ValueError(
                f"The 'attributes' parameter of TaxonomyOracle must be one of {', '.join(map(repr, ATTRIBUTES))} or a "
                f"matrix. Got {attributes!r} instead."
            )
        if attributes != "flat":
            return _ancestor_attributes(taxonomy, outputs, normalized=attributes == "normalized")
        first, columns, values, n_attributes = np.arange(len(outputs) + 1), np.arange(len(outputs)), [], len(outputs)
    else:
        from scipy.sparse import csr_array

        matrix = csr_array(attributes, dtype=np.float32)
        matrix.sum_duplicates()
        if matrix.shape[0] != len(outputs) or matrix.shape[1] < 1 or not np.isfinite(matrix.data).all():
            raise ValueError(
                f"The 'attributes' matrix must be finite and have {len(outputs)} rows (one per output) and at least "
                f"one column. Got shape {matrix.shape}."
            )
        first, columns, values, n_attributes = matrix.indptr, matrix.indices, matrix.data, matrix.shape[1]
    n = len(outputs)
    return _programme(np.zeros(n), first, columns, values, np.ones(n), np.arange(n), n_attributes)


def _ancestor_attributes(taxonomy: Taxonomy, outputs: NDArray[np.int32], *, normalized: bool) -> OutputAttributes:
    """Node k > 0 is attribute k - 1. The base of a node is its parent with most ancestors; the node adds the rest."""
    base, lists, count, looked = [0], [np.empty(0, dtype=np.int64)], [0], 0
    for node in taxonomy.nodes[1:]:
        parents = taxonomy.parents(node)
        chosen = max(parents, key=lambda p: count[taxonomy.number(p)])
        rest = {node}
        if len(parents) > 1:
            rest = (ancestors := taxonomy.ancestors(node)) - taxonomy.ancestors(chosen)
            looked += len(ancestors)
            if looked > MAX_ANCESTORS:
                raise ValueError(
                    f"the taxonomy's nodes of several parents have more than {MAX_ANCESTORS} ancestors in all, up to "
                    f"node {node!r:.80}"
                )
        base.append(taxonomy.number(chosen) + 1)
        lists.append(np.sort([taxonomy.number(a) - 1 for a in rest]))
        count.append(count[taxonomy.number(chosen)] + len(rest))
    first = np.cumsum([0, *map(len, lists)])
    scale = 1.0 / np.sqrt(np.maximum(count, 1.0)) if normalized else np.ones(len(count))
    return _programme(base, first, np.concatenate(lists), [], scale, outputs, len(taxonomy) - 1)


def _programme(
    base: ArrayLike,
    first: ArrayLike,
    columns: ArrayLike,
    values: ArrayLike,
    scale: ArrayLike,
    position: ArrayLike,
    n_attributes: int,
) -> OutputAttributes:
    return OutputAttributes(
        np.array(base, dtype=np.int32),
        np.array(first, dtype=np.int32),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.float32),
        np.array(scale, dtype=np.float32),
        np.array(position, dtype=np.int32),
        int(n_attributes),
    )
