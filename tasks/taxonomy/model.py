"""A trained classifier of documents in a taxonomy: structure, rows of weights, weights; and its file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from structsvm.checkpoint import must_resume, resumed
from structsvm.features.tokens import Tokens
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.oracles.taxonomy import TaxonomyOracle, as_documents
from structsvm.result import Result, read_result, result_arrays
from structsvm.solvers.base import DualSolver
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks.common.labels import label_array, label_from_json, label_to_json, sort_labels
from structsvm.tasks.taxonomy.rows import WeightRows

KIND = "taxonomy"

BLOCK = 1024  # documents that a thread decides, and whose scores are held, at a time


class TaxonomyModel:
    """Taxonomy, labels, oracle and weights.

    Attributes
    ----------
    taxonomy : Taxonomy
        The whole one. The oracle's is what lies above the labels.
    labels : ndarray
        The labels seen in training, sorted; the oracle's output k is ``labels[k]``.
    leaf_only : bool
        Whether labels alone are predicted, or the nodes above them too.
    oracle : TaxonomyOracle
    rows : WeightRows
    intercept : bool
        Whether documents get one more feature, of value 1.
    loss, attributes : str or array
        As the parameters, matrices for the labels alone (without `leaf_only` the loss for ``oracle.taxonomy.nodes``).
    weights : ndarray of shape (oracle.n_features,), float32
    result : Result or None
    state : dict of ndarray, or None
        Where training stands, for another model's `train(before=...)`.
    fingerprint : int
        Tells the training data of `state` from others.
    """

    def __init__(self, taxonomy, labels, rows, *, leaf_only, intercept, loss, attributes):
        self.taxonomy, self.labels, self.rows = taxonomy, label_array(labels), rows
        self.leaf_only, self.intercept, self.loss, self.attributes = leaf_only, intercept, loss, attributes
        part = taxonomy.restricted(labels)
        outputs = [part.number(label) for label in labels]
        if not (leaf_only or isinstance(loss, str)):
            loss = loss[outputs][:, outputs]
        self.oracle = TaxonomyOracle(
            part, rows.n_rows, outputs=outputs, loss=loss, attributes=attributes, lists=rows.lists
        )
        self.weights = np.zeros(self.oracle.n_features, dtype=np.float32)
        self.result: Result | None = None
        self.state: dict[str, np.ndarray] | None = None
        self.fingerprint = 0

    @classmethod
    def prepare(cls, params, X, y, *, classes=None, before=None):
        """Return ``(model, documents, numbers)``: an untrained model as parameters ask for it, X and y encoded.

        Parameters
        ----------
        params : object with `TaxonomyClassifier`'s parameters as attributes
        X : float32 array or CSR matrix of shape (n_documents, n_features)
        y : ndarray of shape (n_documents,)
            Names of nodes.
        classes : array-like, optional
            All labels. None: those of y.
        before : TaxonomyModel, optional
            A model of earlier batches, whose labels and rows of weights are taken over.
        """
        labels, numbers = numbered(y, classes if before is None else before.labels)
        taxonomy, structure = structure_of(params, labels)
        documents = with_intercept(as_documents(X), structure["intercept"])
        if before is None:
            # The attributes of labels do not depend on the rows of features.
            attributes = cls(taxonomy, labels, WeightRows(1), **structure).oracle.attributes
            rows = WeightRows.fit(documents, numbers, attributes, params.max_weights)
        else:
            rows = before.rows
        return cls(taxonomy, labels, rows, **structure), rows.encode(documents), numbers

    def check_same(self, other):
        """Raise ValueError, naming the parameter, if `other` was made of other labels or another structure."""
        if self.labels.tolist() != other.labels.tolist():
            raise ValueError("warm_start=True goes on with the same classes; these data have others")
        for name, mine, its in (
            ("taxonomy", self.taxonomy, other.taxonomy),
            ("leaf_only", self.leaf_only, other.leaf_only),
            ("fit_intercept", self.intercept, other.intercept),
            ("loss", self.loss, other.loss),
            ("attributes", self.attributes, other.attributes),
        ):
            if not _equal(mine, its):
                raise ValueError(
                    f"The {name!r} parameter of TaxonomyClassifier is not that of the model to go on from; set "
                    "it back, or train afresh."
                )

    def train(self, documents, numbers, solver, *, sample_weight=None, monitor=None, before=None, passes=None):
        """Fit the weights to encoded documents.

        To solvers of the dual neither the order of the documents makes a difference nor whether equal ones come
        several times, or once with the sum of their weights.

        Parameters
        ----------
        documents, numbers : as `prepare` returns them
        solver : Solver
        sample_weight, monitor : see `Solver.solve`
        before : TaxonomyModel, optional
            One of the same structure to go on from: with its run, on the same documents; or with `passes` from its
            weights.
        passes : int, optional
            So many over a batch, which leave no state to go on from.

        Returns
        -------
        Run
            Which may have been interrupted.
        """
        if isinstance(solver, DualSolver):
            documents, numbers, sample_weight = distinct(documents, numbers, sample_weight)
        problem = self.oracle.bind(documents, numbers, **solver.formulation())
        run = base = None
        if before is not None and passes is None:
            run = must_resume(resumed(solver, problem, before.state, before.fingerprint, sample_weight=sample_weight))
        elif before is not None:
            base = before.weights
        run = solver.solve(problem, sample_weight=sample_weight, base=base, run=run, monitor=monitor, passes=passes)
        self.weights, self.result = run.weights, run.result()
        if passes is None:
            self.state, self.fingerprint = run.get_state(), problem.fingerprint()
        return run

    def take(self, run, documents):
        """Take over what a run on these documents has learnt so far."""
        self.weights = run.weights

    # ---- prediction -----------------------------------------------------------------------------

    def blocks(self, X):
        """A matrix of documents in parts of at most BLOCK, as `best` and `scores_of` take them."""
        return self.oracle.decoder(self.rows.encode(with_intercept(as_documents(X), self.intercept))).parts(BLOCK)

    def best(self, block):
        """Numbers of the labels of highest score."""
        return block.decode(self.weights)

    def scores_of(self, block):
        """Scores of all `nodes`, float64 array (documents of the block, n_nodes)."""
        return block.scores(self.weights)

    def predict(self, X, *, n_jobs=1):
        """Names of the best nodes, array (n_documents,); `n_jobs` threads."""
        decide = self.best if self.leaf_only else self._nearest_safe
        with ThreadPoolExecutor(n_jobs) as pool:
            chosen = list(pool.map(decide, self.blocks(X)))
        return self.classes[np.concatenate([np.empty(0, dtype=np.intp), *chosen])]

    @property
    def classes(self):
        """Names of what is predicted, sorted."""
        return self.labels if self.leaf_only else label_array(sort_labels(self.oracle.taxonomy.nodes))

    def _nearest_safe(self, block):
        """For each document the place in `classes` of its best label, or of the node above that is safest.

        Training asks that ``s(y) >= loss(y, y') + s(y')`` for the true y and all y'. So what node z risks is

            max_y' loss(y', z) + s(y'),

        which is s(z) itself for a label that keeps its margins; of the best label and its ancestors the one of least
        risk is chosen, of several the lowest.
        """
        taxonomy, outputs = self.oracle.taxonomy, self.oracle.outputs
        scores = self._of_labels(self.scores_of(block))
        best = scores.argmax(axis=1)
        place = {name: k for k, name in enumerate(self.classes.tolist())}
        chosen = np.empty(len(best), dtype=np.intp)
        for k in np.unique(best):
            of_k = np.flatnonzero(best == k)
            label = self.labels.tolist()[k]
            above = sorted({*taxonomy.ancestors(label), taxonomy.root}, key=taxonomy.number)[::-1]
            risks = [(scores[of_k] + self._losses_if(taxonomy.number(z))[outputs]).max(axis=1) for z in above]
            chosen[of_k] = np.array([place[z] for z in above])[np.argmin(risks, axis=0)]
        return chosen

    def _losses_if(self, z):
        """Loss of predicting node z, by the true node."""
        return self.oracle.taxonomy.lattice.losses(self.loss, z) if isinstance(self.loss, str) else self.loss[:, z]

    def scores(self, X):
        """Scores of all `nodes`, float64 array (n_documents, n_nodes)."""
        empty = np.empty((0, self.oracle.attributes.n_positions))
        return np.concatenate([empty, *map(self.scores_of, self.blocks(X))])

    def label_scores(self, X):
        """Scores of the labels alone, float64 array (n_documents, n_labels)."""
        return self._of_labels(self.scores(X))

    def _of_labels(self, scores):
        return scores[:, self.oracle.attributes.arrays[5]]

    @property
    def nodes(self):
        """Names of what `scores` scores: nodes, or labels alone where attributes are not those of ancestors."""
        of_ancestors = isinstance(self.attributes, str) and self.attributes != "flat"
        return self.oracle.taxonomy.nodes if of_ancestors else self.labels.tolist()

    def weight_matrix(self):
        """Weights of all attributes (rows) and features (columns); sparse if there are lists."""
        oracle, n = self.oracle, self.oracle.attributes.n_attributes
        full = self.weights[: oracle.n_full * oracle.stride].reshape(oracle.n_full, oracle.stride)[:, :n]
        if self.rows.row is None:
            return full.T
        from scipy.sparse import csr_array, vstack

        shape = (self.rows.n_rows - oracle.n_full, n)
        lists = csr_array(
            (self.weights[oracle.n_full * oracle.stride :], self.rows.lists[1], self.rows.lists[0]), shape
        )
        rows = vstack([csr_array(full), lists, csr_array((1, n))], format="csr")
        return rows[self.rows.row].T.tocsr()  # row -1 is the last one, of zeros

    # ---- model files ----------------------------------------------------------------------------

    @property
    def n_input_features(self):
        """Columns of X."""
        return (self.rows.n_rows if self.rows.row is None else len(self.rows.row)) - self.intercept

    def learnt(self):
        """What training has made, for a file: a dict for its header, and arrays."""
        rows, arrays = self.rows, {"weights": self.weights}
        if rows.row is not None:
            arrays |= {"rows.row": rows.row, "rows.indptr": rows.lists[0], "rows.indices": rows.lists[1]}
        return {"n_rows": rows.n_rows}, arrays

    def save(self, path, params, extra, arrays):
        """Write the model file; `params` and `extra` go to its header, `arrays` beside its own."""
        lattice = self.taxonomy.lattice
        learnt, mine = self.learnt()
        arrays = dict(arrays) | mine | {"taxonomy.indptr": lattice.indptr, "taxonomy.parents": lattice.parents}
        structure = {"leaf_only": self.leaf_only, "intercept": self.intercept}
        for name in ("loss", "attributes"):
            value = getattr(self, name)
            structure[name] = value if isinstance(value, str) else None
            if not isinstance(value, str):
                arrays[f"structure.{name}"] = value if isinstance(value, np.ndarray) else value.toarray()
        arrays |= result_arrays(self.result, self.state)
        meta = {
            "params": params,
            "nodes": [label_to_json(node) for node in self.taxonomy.nodes],
            "labels": [label_to_json(label) for label in self.labels.tolist()],
            "structure": structure,
            **learnt,
            "fingerprint": self.fingerprint,
            "result": None if self.result is None else self.result.to_dict(),
        }
        write_model(path, KIND, meta | extra, arrays)

    @classmethod
    def load(cls, path, *, mmap=False):
        """Return ``(model, file)``; ModelFileError if it is not a whole, sound model."""
        file = read_model(path, kind=KIND, mmap=mmap)
        try:
            return cls._from_file(file), file
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound taxonomy model: {error}") from error

    @classmethod
    def _from_file(cls, file):
        meta, arrays = file.meta, file.arrays
        nodes = [label_from_json(node) for node in meta["nodes"]]
        labels = [label_from_json(label) for label in meta["labels"]]
        taxonomy = _taxonomy_from(nodes, arrays["taxonomy.indptr"], arrays["taxonomy.parents"])
        structure = {name: meta["structure"][name] for name in ("leaf_only", "intercept", "loss", "attributes")}
        for name in ("loss", "attributes"):
            if structure[name] is None:
                structure[name] = arrays[f"structure.{name}"]
        if [type(structure["leaf_only"]), type(structure["intercept"])] != [bool, bool] or not labels:
            raise TypeError(f"{len(labels)} labels, structure {meta['structure']!r:.80}")
        model = cls.with_learnt(taxonomy, labels, structure, meta, arrays)
        if meta["result"] is not None:
            model.result, model.state = read_result(file)
            if model.state is not None:
                model.fingerprint = int(meta["fingerprint"])
        return model

    @classmethod
    def with_learnt(cls, taxonomy, labels, structure, meta, arrays):
        """A model with what `learnt` returned; ValueError or TypeError for what it cannot have."""
        n_rows, row = meta["n_rows"], arrays.get("rows.row")
        if type(n_rows) is not int:
            raise TypeError(f"{n_rows!r:.80} rows")
        if row is not None and (row.dtype != np.int32 or row.ndim != 1 or not -1 <= row.min() <= row.max() < n_rows):
            raise ValueError("numbers of rows that are out of range")
        rows = WeightRows(n_rows, row, None if row is None else (arrays["rows.indptr"], arrays["rows.indices"]))
        model = cls(taxonomy, labels, rows, **structure)
        weights = arrays["weights"]
        if weights.shape != model.weights.shape or weights.dtype != np.float32 or not np.isfinite(weights).all():
            raise ValueError(f"weights of shape {weights.shape} and type {weights.dtype}, or not finite")
        model.weights = weights
        return model


def numbered(y, classes=None):
    """The labels, sorted, and the number of each of y; ValueError for one that is none of `classes`."""
    labels = np.unique(y if classes is None else classes)
    numbers = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
    unknown = np.flatnonzero(labels[numbers] != y)
    if len(unknown):
        raise ValueError(
            f"y has the label {np.asarray(y).tolist()[unknown[0]]!r}, none of the classes that the first call has "
            f"settled: {labels.tolist()!r:.200}"
        )
    return labels.tolist(), numbers


def structure_of(params, labels):
    """The taxonomy that parameters ask for, and a model's other arguments as a dict."""
    taxonomy = checked_taxonomy(params, labels)
    names = taxonomy.leaves if params.leaf_only else taxonomy.nodes
    scored = labels if params.leaf_only else taxonomy.restricted(labels).nodes
    return taxonomy, {
        "leaf_only": bool(params.leaf_only),
        "intercept": bool(params.fit_intercept) and params.kernel is None,
        "loss": _rows_of(params, "loss", names, scored),
        "attributes": _rows_of(params, "attributes", names, labels),
    }


def checked_taxonomy(params, labels):
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
        raise ValueError(f"the label {unknown[0]!r} is no node of the taxonomy")
    leaves = set(taxonomy.leaves)
    inner = [label for label in labels if label not in leaves]
    if inner and params.leaf_only:
        raise ValueError(
            f"the label {inner[0]!r} is an inner node of the taxonomy; set leaf_only=False for labels above the leaves"
        )
    return taxonomy


def with_intercept(documents, wanted):
    """Documents with one more feature of value 1, if wanted."""
    if not wanted:
        return documents
    n, ends = len(documents), documents.indptr[1:]
    values = documents.values
    return Tokens(
        documents.offsets,
        documents.indptr + np.arange(n + 1),
        np.insert(documents.indices, ends, np.int32(documents.n_features)),
        None if values is None else np.insert(values, ends, np.float32(1.0)),
        documents.n_features + 1,
    )


def distinct(documents, numbers, weight):
    """Documents, labels and weights (None: 1) with equal ones put together, in an order that depends on them alone."""
    bounds, values = documents.indptr.tolist(), documents.values
    parts = [documents.indices] if values is None else [documents.indices, values]
    views = [memoryview(part).cast("B") for part in parts]
    keys = [
        (label, b"".join(view[4 * a : 4 * b] for view in views))
        for label, (a, b) in zip(numbers.tolist(), pairwise(bounds))
    ]
    total: dict = {}
    for i, (key, w) in enumerate(zip(keys, [1.0] * len(keys) if weight is None else weight.tolist())):
        if w > 0.0:
            first, sum_ = total.get(key, (i, 0.0))
            total[key] = (first, sum_ + w)
    chosen = [total[key] for key in sorted(total)]
    places = np.array([first for first, _ in chosen])
    return documents.take(places), numbers[places], np.array([w for _, w in chosen])


def _rows_of(params, name, names, chosen):
    """A parameter that is a matrix with a row for each of `names` (the loss also a column): the part for `chosen`."""
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


def _equal(a, b):
    """Whether two taxonomies, names or matrices are the same."""
    if isinstance(a, (str, bool, Taxonomy)) or isinstance(b, (str, bool, Taxonomy)):
        return type(a) is type(b) and a == b
    return np.array_equal(*(m.toarray() if hasattr(m, "toarray") else m for m in (a, b)))


def _taxonomy_from(nodes, indptr, parents):
    """A taxonomy from a file's arrays."""
    if indptr.shape != (len(nodes) + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] != len(parents):
        raise ValueError("the arrays of the taxonomy do not fit together")
    if len(parents) and not 0 <= parents.min() <= parents.max() < len(nodes):
        raise ValueError("parents that are no nodes")
    edges = [(nodes[p], node) for k, node in enumerate(nodes) for p in parents[indptr[k] : indptr[k + 1]].tolist()]
    return Taxonomy(edges)
