"""Classification of documents into a taxonomy of classes, or into classes without one.

Tsochantaridis and others 2004, sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from structsvm._adapter import as_objects
from structsvm._warnings import AdviceWarning, warn, warn_of_unknown
from structsvm.callbacks import with_callbacks
from structsvm.export.folders import write_files
from structsvm.features.dense import warn_of_few_digits
from structsvm.features.matrices import LEAST_OF_SPARSE, LEAST_SIZE
from structsvm.kernel.objects import are_objects, values_for, values_of
from structsvm.metrics._counts import is_unknown, mark_for
from structsvm.parameters import Options, check_arguments, checked_k, declared
from structsvm.solvers.kernel.base import KernelSolver
from structsvm.structures.taxonomy import PATH_SEPARATOR, joined_levels, rows_of_levels
from structsvm.tasks.common.bases import ClassifierMixin
from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.common.estimator import share_of, weighted_by_class
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import (
    agreement,
    check_classes,
    check_labelled,
    check_stream_weight,
    check_targets,
    listed,
)
from structsvm.tasks.common.parameters import check_settled
from structsvm.tasks.common.questions.given import one_row
from structsvm.tasks.common.questions.loop import LearningLoop
from structsvm.tasks.common.solver import is_log, make_solver
from structsvm.tasks.taxonomy.kernel import KernelTaxonomyModel, make_kernel_solver
from structsvm.tasks.taxonomy.known import SETS, is_inner, predicts_leaves
from structsvm.tasks.taxonomy.linear import LinearTaxonomyModel
from structsvm.tasks.taxonomy.model import TaxonomyModel
from structsvm.tasks.taxonomy.parameters import TaxonomyClassifierParameters
from structsvm.tasks.taxonomy.paths import settled
from structsvm.tasks.taxonomy.portable import TARGETS, runtime_files
from structsvm.tasks.taxonomy.questions import DocumentReader, grown, labels_in
from structsvm.tasks.taxonomy.shards import DocumentShards
from structsvm.tasks.taxonomy.vectorizer import check_vectorizer, checked_documents

if TYPE_CHECKING:
    import os

    from scipy.sparse import csr_array
    from sklearn.base import BaseEstimator
    from sklearn.utils import Tags

    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, MatrixLike
    from structsvm.result import Result
    from structsvm.solvers import Solver
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.tasks.common.examples import LabeledRows
    from structsvm.tasks.common.kernel_machine import KernelMachine
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.questions.given import Batch
    from structsvm.tasks.taxonomy.examples import DocumentsLike, KnownLabels


@declared
class TaxonomyClassifier(TaxonomyClassifierParameters, ClassifierMixin, LearningLoop):
    """Support vector machine for classes in a taxonomy; without one, a linear multiclass machine.

    A document is assigned to the class y of highest ``<w, Phi(x) (x) L(y)>``, where the attributes L(y) say which nodes
    lie above y. So classes share the weights of their ancestors, and a loss that grows with the distance in the
    taxonomy makes the margin wide where errors are costly.

    Parameters
    ----------
    taxonomy : Taxonomy, networkx.DiGraph, edge list, parent array or label paths, or str, optional
        See `structsvm.structures.taxonomy.as_taxonomy`. A string is the separator of the levels in labels that are
        whole paths, " > " in "Toys > Games > Chess"; the taxonomy is that of these paths. None: for rows of levels the
        same; for other labels no taxonomy, and classes share nothing.
    loss : {"auto", "tree", "path", "zero_one", "log"} or array of shape (n_labels, n_labels), default="auto"
        Height of the first common ancestor; path length; 1 for any error; "log": not a margin but the conditional
        likelihood, as of logistic regression (`ConditionalLikelihood`); or the loss of each true label (row) and
        predicted one, in the order of the taxonomy's `leaves` (with leaf_only=False, of its `nodes`; without a
        taxonomy, of the sorted classes). "auto": for standardised columns "log" and "tree", each with its own C, with
        both models' log-odds added (`structsvm.tasks.common.selection`); otherwise, and if C is not "auto" or cannot be
        chosen, with another solver, inner nodes as labels, or labels known in part, "tree".
    attributes : {"ancestors", "normalized", "flat"} or matrix (n_labels, n_attributes), default="ancestors"
        L(y): see `structsvm.oracles.taxonomy.TaxonomyOracle`; rows of a matrix are in the order as for `loss`. "flat"
        leaves the taxonomy to the loss.
    leaf_only : bool or "auto", default="auto"
        True: labels are leaves, and only leaves are predicted; a document at an inner node then belongs to an unknown
        leaf below it, see `fit`. "auto": True unless a label by itself (not in a set) is an inner node: such a label is
        predicted as it stands, as HiClass predicts rows that end early. False, and "auto" with inner nodes: a document
        is assigned to a node above its best label y if that is safer under the loss: among y and its ancestors, up to
        the root, the z of least expected loss, ``sum_y' P(y') loss(y', z)``; without probabilities, of least ``max_y'
        loss(y', z) + score(y')``. With the tree loss that is always y itself, since a wrong leaf below a node costs as
        much as the node; with "path" a parent costs half a sibling.
    C : float, "auto" or None, default="auto"
        Weight of the sum of slacks. "auto": chosen on held-out examples (`validation_`), see
        `structsvm.tasks.common.selection`; 1 with fewer than 20 distinct documents, and in `partial_fit` before any
        `fit`. None: 1. A solver given as an object has its own.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"} or Solver, default="larank"
        A name, to which `C`, `max_iter`, `tol`, `random_state` and `checkpoint` apply; or a solver object with its own
        parameters (slack rescaling, say).
    fit_intercept : bool, default=True
        Add a feature of value 1 to every document. Ignored with a kernel.
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero arrays, with mean 0 and variance 1 each, so units make no
        difference: `coef_` and `intercept_` are for the columns as given, C and `result_` for the standardised ones.
        The first `fit` or batch fixes means and variances; with fewer than 20 rows, and with a kernel, columns
        are used as given.
    kernel : {"linear", "poly", "rbf", "sigmoid"}, KernelFunction or callable, optional
        Compare documents by this instead of having weights for their features: the joint kernel is
        ``k(x, x') <L(y), L(y')>``. `solver` must then be "larank" or a `KernelLaRank`. A callable is one of
        `LaRankClassifier`: X may then also be a list of any objects.
        ``structsvm.tasks.KernelFunction("poly", degree=2)`` has numbers of its own.
    class_weight : dict or "balanced", optional
        Factor on C by the true class (default 1); "balanced": ``n_samples / (n_classes * count)``.
    vectorizer : scikit-learn vectorizer, optional
        Makes the features if X contains texts. (It may also precede the classifier in a `Pipeline`; here it is
        saved with the model.)
    max_weights : int, default=2**25
        If features times nodes are at most this number, there is a weight for each pair. Otherwise rare features have
        weights only for the nodes below which they occur in training (see `structsvm.tasks.taxonomy.rows`).
        Training takes about 24 bytes per weight.
    unknown : object, default="auto"
        The mark of documents whose label is not known, in y; "auto": -1, and training says how many there are. None:
        there is none, and -1 is a label. None and -100 in y are always unknown labels.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    warm_start : bool, default=False
        Whether `fit` resumes the last one, for another `max_iter` passes over the same documents.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        What is predicted, sorted: the labels seen in training, and with leaf_only=False all nodes above them. A leaf
        without documents is never predicted.
    nodes_ : ndarray of shape (n_nodes,)
        Columns of `node_scores`: the labels and the nodes of the taxonomy above them, the root first (with attributes
        other than ancestors': the labels).
    taxonomy_ : Taxonomy
    coef_ : array or CSR array of shape (n_attributes, n_features)
        Weights; rows are `nodes_` without the root (without a taxonomy: `classes_`). Sparse if `max_weights` is short.
        With a kernel these and intercepts exist only if it is linear.
    intercept_ : ndarray of shape (n_attributes,)
    gamma_ : float
        That of the kernel, if there is one.
    support_, support_vectors_, dual_coef_
        With a kernel, as in `LaRankClassifier`: the scores of x are ``L L' dual_coef_ @ k(support_vectors_, x)``, L the
        attributes of `classes_`.
    temperature_ : float or None
        Divisor of the scores for probabilities, fitted on documents held out.
    C_ : float
        The C of the last training.
    validation_ : dict
        The table from which "auto" chose C: arrays "C", "score", "error" (standard errors of the scores) and "passes"
        (over the part that was trained on), the "metric" and the number of examples "n_held_out".
    result_ : Result
    results_ : dict of str to Result
        The outcome of each training, by its loss; `result_` is the first one.
    n_iter_ : int
    n_features_in_ : int
    vectorizer_ : vectorizer
        The fitted one, if there is one.

    Examples
    --------
    >>> from structsvm.tasks import TaxonomyClassifier
    >>> X = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> y = ["Toys > Games > Chess", "Toys > Games > Dice", "Books"]
    >>> goods = TaxonomyClassifier(" > ", C=10.0, loss="tree", random_state=0).fit(X, y)
    >>> goods.predict([[2, 0, 0]]).tolist()
    ['Toys > Games > Chess']
    """

    _model_class = TaxonomyModel
    _reader = "tasks.taxonomy.documents.read_documents"
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: DocumentsLike, y: KnownLabels | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train on labelled documents.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features), or list of str with a `vectorizer`
            Or `structsvm.DocumentShards`, which contain the labels too, without y: C is chosen on as many documents as
            one shard may have, and there is a weight for every feature and node.
        y : array-like of shape (n_documents,), or of levels (n_documents, n_levels)
            Names of nodes (tuples in a 1-D array of objects); or rows of levels from the top, ended by "", None or NaN,
            which are joined by " > " to names (or by the separator `taxonomy`); or an array, a series or a list of such
            rows, each as long as it is. An inner node is a label like any other. Labels known in part: a set of nodes
            that contains the document's; with leaf_only=True (given, not "auto") also an inner node, which means the
            leaves below it that y names elsewhere (the root: all of them); None (any), and so are -100 and the mark
            `unknown`; with loss="log" a dict from nodes to weights (such as votes of annotators; the leaves below a
            node share its weight). Such documents are completed and trained on in turn (`structsvm.LatentSVM`; with
            loss="log" in each step), and "auto" chooses C on the others.
        sample_weight : array-like of shape (n_documents,), optional
            Factor on each document's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, a taxonomy with cycles or several roots, a label that is not a node, an inner
            node without leaves that y names, an empty set, labels of one class only, X and y that do not match.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        if isinstance(X, DocumentShards):
            if y is not None:
                raise ValueError("X has the labels of its documents: fit(shards), without y")
            y = X.labels
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: KnownLabels,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current model.

        The first call fixes labels (`classes` names those that come later), the vectorizer's words, and, beyond
        `max_weights`, the features that have weights. The batch's problem is solved around the current weights w0:
        minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies that problem. With a kernel, the
        current support vectors are part of it, as in `LaRankClassifier.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight : see `fit`
        classes : array-like, optional
            All labels, in the first call; default: those of its y. Any other label is an error.
        """
        check_stream_weight(self.class_weight)
        if isinstance(X, DocumentShards):
            raise TypeError("shards are for fit; partial_fit takes a batch of documents in memory")
        return self._train(X, y, sample_weight, passes=1, classes=classes)

    def _make_solver(self, before: TaskModel[LabeledRows] | None = None) -> Solver:
        if is_log(self.loss) and self.kernel is not None:
            raise ValueError("The 'kernel' parameter must be None with loss='log'.")
        solver = make_solver(self, default_C=1.0) if self.kernel is None else make_kernel_solver(self)
        if self.kernel is None and isinstance(solver, KernelSolver):
            raise ValueError(
                f"The 'kernel' parameter is None, and {type(solver).__name__} solves problems with kernels"
            )
        return solver

    def _prepare(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, before: Any, *, classes: Iterable[Hashable] | None = None
    ) -> tuple[TaxonomyModel, LabeledRows]:
        params = SimpleNamespace(**self.get_params(deep=False))
        known = None if before is None or before.taxonomy.separator is None else before.taxonomy
        params.taxonomy, y, classes = settled(self.taxonomy, y, classes, known, self.unknown)
        if before is not None:
            check_classes(classes, before.labels.tolist())
            check_settled([("kernel", self._kind, type(before))])
        classes = None if classes is None else listed(classes)
        if isinstance(X, DocumentShards):
            model, examples = self._of_shards(params, X, y, classes, sample_weight, before)
        else:
            model, examples = self._of_rows(params, X, y, classes, sample_weight, before)
        return model, weighted_by_class(examples, self.class_weight, model.labels.tolist())

    @property
    def _kind(self) -> type[LinearTaxonomyModel | KernelTaxonomyModel]:
        return LinearTaxonomyModel if self.kernel is None else KernelTaxonomyModel

    def _settle_leaves(self, params: SimpleNamespace, y: Any, classes: Any, before: Any) -> None:
        own = None if before is None else before.leaf_only
        params.leaf_only = predicts_leaves(self.leaf_only, params.taxonomy, y, classes, own)

    def _of_shards(
        self, params: SimpleNamespace, X: DocumentShards, y: Any, classes: Any, sample_weight: Any, before: Any
    ) -> tuple[TaxonomyModel, LabeledRows]:
        """The model of documents in shards, and these."""
        if self.kernel is not None:
            raise ValueError(f"shards need kernel=None, got {self.kernel!r:.80}")
        own = None if before is None else before.vectorizer
        check_vectorizer(self.vectorizer, own, X.vectorizer, is_new=before is None)
        if before is not None and None not in (both := {before.first_index, X.first_index}) and len(both) > 1:
            raise ValueError(
                f"the indices of the shards' files begin with {X.first_index}, those of the model's with "
                f"{before.first_index}: DocumentShards.make(first_index={before.first_index}) reads them alike"
            )
        self._settle_leaves(params, y, classes, before)
        weight = checked_sample_weight(sample_weight, len(X))
        model, examples = LinearTaxonomyModel.prepare(params, X, y, before=before, weight=weight)
        if before is None:
            model.columns, model.vectorizer = {"n_features_in_": X.n_features}, X.vectorizer
            model.first_index = X.first_index
        return model, examples

    def _of_rows(
        self, params: SimpleNamespace, X: Any, y: Any, classes: Any, sample_weight: Any, before: Any
    ) -> tuple[TaxonomyModel, LabeledRows]:
        """The model of documents in memory, and these."""
        given, vectorizer, objects = self._as_rows(params, X, before)
        check_labelled(y, takes_unknown=True)
        X, y, columns = self._validated(given, y, before=before, accept_sparse="csr", dtype=np.float32)
        if before is None and vectorizer is None and objects is None:
            self._check_float32(given, X, columns)
        in_part = (isinstance(label, SETS) or is_unknown(label, self.unknown) for label in y)
        if params.taxonomy is None and not any(in_part):
            check_targets(y)
        weight = checked_sample_weight(sample_weight, len(y))
        self._settle_leaves(params, y, classes, before)
        model, examples = self._kind.prepare(params, X, y, classes=classes, before=before, weight=weight)
        if self.class_weight is not None and examples.has_unknown:
            raise ValueError("class_weight goes by the true class, and y has documents whose class is not known")
        if before is None:
            model.columns, model.vectorizer = columns, vectorizer
        if objects is not None and isinstance(model, KernelTaxonomyModel):
            model.machine.objects = objects
        return model, examples

    def _as_rows(self, params: SimpleNamespace, X: Any, before: Any) -> tuple[Any, Any, list[Any] | None]:
        """Documents as a matrix; the vectorizer of texts and the objects that a function compares, None without any."""
        vectorizer = None if before is None else before.vectorizer
        if vectorizer is not None:
            return vectorizer.transform(checked_documents(vectorizer, X)), vectorizer, None
        if callable(self.kernel) and self.vectorizer is None and are_objects(X):
            objects, params.kernel = list(X), "precomputed"
            return values_of(self.kernel, objects, is_new=before is None), None, objects
        if self.vectorizer is not None:
            vectorizer = clone(self.vectorizer)
            return vectorizer.fit_transform(checked_documents(vectorizer, X)), vectorizer, None
        if isinstance(X, (list, tuple)) and X and isinstance(X[0], str):
            raise ValueError(
                "texts need a vectorizer: TaxonomyClassifier(..., vectorizer=TfidfVectorizer()), or a function of two "
                "lists of them as kernel="
            )
        return X, None, None

    def _check_float32(self, given: MatrixLike, X: Matrix, columns: dict[str, Any]) -> None:
        """Raise ValueError for a matrix too small for float32; warn of columns of which it keeps too few digits."""
        is_small = max(X.max(), -X.min()) < (LEAST_OF_SPARSE if hasattr(X, "indptr") else LEAST_SIZE)
        if is_small and np.any(given.tocsr().data if hasattr(given, "tocsr") else np.asarray(given)):
            raise ValueError("X underflows float32, as which it is read; scale the features up")
        if isinstance(X, np.ndarray):
            names = columns.get("feature_names_in_", range(X.shape[1]))
            warn_of_few_digits(X, names.__getitem__)

    # ---- the learning loop ------------------------------------------------------------------------

    _least_labels = 2

    def _one(self, x: Any) -> Any:
        return one_row(x)

    def _reader_of(self, model: TaxonomyModel, X: Any) -> DocumentReader:
        return DocumentReader(model, self._documents(model, X))

    def _labels_in(self, y: Sequence[Any]) -> set[Hashable]:
        separator = self.taxonomy if isinstance(self.taxonomy, str) else getattr(self.taxonomy, "separator", None)
        return labels_in(separator, y, self.unknown)

    def _known_labels(self, model: TaxonomyModel) -> set[Hashable]:
        inner = set() if self.leaf_only is not True else {*model.targets.taxonomy.nodes}
        return {*model.labels.tolist(), *inner}

    def _choices(
        self, y: Sequence[Any], named: set[Hashable], model: TaxonomyModel | None
    ) -> tuple[set[Hashable], Callable[[Hashable], set[Hashable]]]:
        labels = named | {*(() if model is None else model.labels.tolist())}
        before = None if model is None or model.taxonomy.separator is None else model.taxonomy
        taxonomy = settled(self.taxonomy, y, None, before, self.unknown)[0]
        is_leaf = None if model is None else model.leaf_only
        if taxonomy is None or not predicts_leaves(self.leaf_only, taxonomy, as_objects([*y]), None, is_leaf):
            return labels, lambda label: {label}
        leaves = labels & {*taxonomy.leaves}
        above = {leaf: {leaf, *taxonomy.ancestors(leaf)} for leaf in leaves}
        return leaves, lambda node: {leaf for leaf in leaves if node in above[leaf]}

    def _grown(self, model: TaxonomyModel, X: Any, y: Sequence[Any], new: set[Hashable]) -> TaxonomyModel | None:
        return grown(self, model, X, y, new)

    def _check_first(self, batch: Batch) -> None:
        if self.vectorizer is None and not callable(self.kernel):
            self._validated(batch.X, accept_sparse="csr", dtype=np.float32)

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: MatrixLike) -> LabelArray:
        """Return the best node for each document: array (n_documents,)."""
        model = self._fitted()
        return model.predict(self._documents(model, X), n_jobs=self._threads)

    def predict_levels(self, X: MatrixLike) -> NDArray[np.object_]:
        """Return the levels of each predicted node, object array (n_documents, n_levels), ended by "".

        The form of a y with columns of levels; if names are not whole paths, the nodes on the path to it.
        """
        taxonomy, predicted = self.taxonomy_, self.predict(X).tolist()
        levels = {name: taxonomy.levels(name) for name in set(predicted)}
        found = np.full((len(predicted), int(taxonomy.height[0])), "", dtype=object)
        for row, name in zip(found, predicted, strict=True):
            row[: len(levels[name])] = levels[name]
        return found

    def score(self, X: MatrixLike, y: KnownLabels, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of documents whose node is right; y as in `fit`.

        Right is each node that y admits: one of a set, in which an inner node stands for the leaves below it where
        leaves alone are predicted. Documents of which y says nothing are left out; so are those at inner nodes with
        leaf_only=True, which a warning counts. With "auto" these have another label than was predicted.

        Warns
        -----
        AdviceWarning
            Documents at inner nodes are left out.
        """
        taxonomy, predicted, leaf_only = self.taxonomy_, self.predict(X).tolist(), self._fitted().leaf_only
        above = {name: taxonomy.ancestors(name) if leaf_only else {name} for name in set(predicted)}
        rows = rows_of_levels(y)
        y = y if rows is None else joined_levels(rows, taxonomy.separator or PATH_SEPARATOR)
        known: list[Any] = y.tolist() if hasattr(y, "tolist") else list(y)  # type: ignore[arg-type]
        classes = self.classes_.tolist()
        unknown = mark_for(self.unknown, classes)
        seen = {taxonomy.root, *classes}.union(*(taxonomy.ancestors(name) for name in classes))
        right, says = agreement(
            known, predicted, unknown, SETS, lambda node, name: node == name or node in above[name], seen=seen
        )
        if leaf_only:
            leaves = set(taxonomy.leaves)
            is_above = np.array([is_inner(label, taxonomy, leaves) for label in known], dtype=np.bool_)
            right &= ~is_above
            if self.leaf_only is True and is_above.any():
                says &= ~is_above
                self._say_left_out(int(is_above.sum()), len(says))
        return share_of(right, says, sample_weight)

    @staticmethod
    def _say_left_out(n: int, n_documents: int) -> None:
        """Warn of documents at inner nodes that `score` leaves out; ValueError if these are all."""
        what = f"{n} of {n_documents} documents are at inner nodes, and with leaf_only=True only leaves are predicted"
        if n == n_documents:
            raise ValueError(f"{what}: nothing is left to score")
        warn(f"{what}: score leaves them out; leaf_only='auto' predicts the inner nodes that y names", AdviceWarning)

    def predict_path(self, X: MatrixLike) -> list[list[Any]]:
        """Return per document the nodes on the path from the root (excluded) to the predicted node.

        A list of lists of names; a shortest path if a node has several parents.
        """
        predicted = self.predict(X).tolist()
        paths = {name: self.taxonomy_.path(name) for name in set(predicted)}
        return [list(paths[name]) for name in predicted]

    def decision_function(self, X: MatrixLike) -> Floats:
        """Return scores, float64 array (n_documents, n_classes), columns as `classes_`.

        For two classes (n_documents,): the second one's minus the first one's. If inner nodes are predicted
        (leaf_only=False), the predicted one need not have the highest score; nodes without a score, with attributes
        other than ancestors', have minus infinity.
        """
        model = self._fitted()
        X = self._documents(model, X)
        if model.leaf_only:
            scores = model.label_scores(X, n_jobs=self._threads)
        else:
            scores = model.of_classes(model.scores(X, n_jobs=self._threads), model.nodes, -np.inf)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def node_scores(self, X: MatrixLike) -> Floats:
        """Return the scores of all `nodes_`, float64 array (n_documents, n_nodes)."""
        model = self._fitted()
        return model.scores(self._documents(model, X), n_jobs=self._threads)

    def predict_proba(self, X: MatrixLike) -> Floats:
        """Return the probability that each class is the label, array (n_documents, n_classes), columns as `classes_`.

        A softmax over the labels' scores at the temperature `temperature_`. A node that is not a label has 0;
        `node_proba` sums over the labels below it.
        """
        model = self._fitted()
        proba = self._label_proba(model, X)
        return proba if model.leaf_only else model.of_classes(proba, model.labels.tolist(), 0.0)

    def predict_log_proba(self, X: MatrixLike) -> Floats:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def node_proba(self, X: MatrixLike) -> Floats:
        """Return the probability that the label is each node or lies below it, for the nodes of the taxonomy.

        Array (n_documents, n_nodes), columns as ``taxonomy_.nodes``; 1 for the root, 0 for nodes without documents.
        """
        model = self._fitted()
        part, whole = model.targets.taxonomy, model.taxonomy
        proba = self._label_proba(model, X) @ model.below()
        found = np.zeros((len(proba), len(whole)))
        found[:, [whole.number(node) for node in part.nodes]] = np.minimum(proba, 1.0)
        return found

    def predict_kbest(self, X: MatrixLike, k: int) -> list[list[tuple[Any, float]]]:
        """Return per document its k most probable labels and their probabilities, best first."""
        k = checked_k(k)
        model = self._fitted()
        proba = self._label_proba(model, X)
        order = np.argsort(-proba, axis=1, kind="stable")[:, :k]
        labels = model.labels.tolist()
        return [[(labels[y], float(p[y])) for y in best] for p, best in zip(proba, order.tolist(), strict=True)]

    def _label_proba(self, model: TaxonomyModel, X: MatrixLike) -> Floats:
        return class_probabilities(model, model.label_scores(self._documents(model, X), n_jobs=self._threads))

    def _documents(self, model: TaxonomyModel, X: MatrixLike) -> Matrix:
        if model.vectorizer is not None:
            X = model.vectorizer.transform(checked_documents(model.vectorizer, X))
            if hasattr(X, "indptr"):
                warn_of_unknown(int(np.count_nonzero(np.diff(X.indptr) == 0)), X.shape[0], "documents")
        elif isinstance(model, KernelTaxonomyModel) and model.machine.objects is not None and callable(self.kernel):
            X = values_for(self.kernel, X, model.machine.objects, model.machine.support)  # type: ignore[arg-type]
        return self._rows_of_prediction(X, model, accept_sparse="csr", dtype=np.float32)

    def export(self, folder: str | os.PathLike[str], to: str = "c") -> None:
        """Write a model of texts to a folder for use without Python: labels and their scores are the same, bit for bit.

        Parameters
        ----------
        folder : path-like
            A folder, made if it is missing. Files of earlier exports are replaced.
        to : {"c", "wasm", "page"}, default="c"
            "c": ``model.bin``, and ``structsvm_runtime.c`` and ``.h``, in C99, that read it. "wasm": ``model.bin``, and
            the same as WebAssembly with a module in JavaScript. "page": ``classifier.html``, all of these in one page
            that browsers open from a file.

        Raises
        ------
        ValueError
            For a model that the runtime does not support: without a vectorizer, with a kernel, of inner nodes, with
            labels that are not str, or a vectorizer with functions, accents stripped, or a pattern of its own.
        ImportError
            For "wasm" and "page" without zig, which compiles the runtime.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from structsvm.tasks import TaxonomyClassifier
        >>> folder = tempfile.mkdtemp()
        >>> goods = TaxonomyClassifier(vectorizer=TfidfVectorizer(), C=1.0, random_state=0)
        >>> goods.fit(["a red tent", "a blue shoe"], ["camping", "shoes"]).export(folder)
        >>> sorted(os.listdir(folder))
        ['model.bin', 'structsvm_runtime.c', 'structsvm_runtime.h']
        """
        check_arguments("TaxonomyClassifier.export", locals(), to=Options(*TARGETS))
        write_files(folder, runtime_files(self._fitted(), to))

    # ---- views ---------------------------------------------------------------------------

    @property
    def classes_(self) -> LabelArray:
        return self._fitted().classes

    @property
    def vectorizer_(self) -> BaseEstimator:
        vectorizer = self._fitted().vectorizer
        if vectorizer is None:
            raise AttributeError("there is no vectorizer: the model was trained on a matrix")
        return vectorizer

    @property
    def taxonomy_(self) -> Taxonomy:
        return self._fitted().taxonomy

    @property
    def nodes_(self) -> NDArray[np.object_]:
        nodes = self._fitted().nodes
        array = np.empty(len(nodes), dtype=object)
        array[:] = nodes
        return array

    @property
    def results_(self) -> dict[str, Result]:
        return self._fitted().results

    @property
    def gamma_(self) -> float:
        """The kernel's gamma, as given or as chosen."""
        return self._machine.kernel.gamma

    @property
    def support_(self) -> Integers:
        return self._machine.support

    @property
    def support_vectors_(self) -> Matrix | NDArray[np.object_]:
        machine = self._machine
        return machine.vectors if machine.objects is None else machine.support_objects

    @property
    def dual_coef_(self) -> csr_array:
        return self._machine.coef

    @property
    def _machine(self) -> KernelMachine:
        model = self._fitted()
        if not isinstance(model, KernelTaxonomyModel):
            raise AttributeError("there are no support vectors: the model has weights (kernel=None)")
        return model.machine

    @property
    def coef_(self) -> Floats | csr_array:
        model = self._fitted()
        matrix = model.weight_matrix()
        return matrix[:, :-1] if model.intercept else matrix

    @property
    def intercept_(self) -> Floats:
        model = self._fitted()
        matrix = model.weight_matrix()
        if not model.intercept:
            return np.zeros(matrix.shape[0], dtype=np.float32)
        last = matrix[:, [-1]]
        return (last.toarray() if hasattr(last, "toarray") else last).ravel()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = self.vectorizer is not None
        tags.input_tags.two_d_array = self.vectorizer is None
        return tags
