"""A classifier of documents in a taxonomy with a weight per feature and attribute of nodes."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows
from structsvm.files.weight_rows import RaggedRows, rows_from
from structsvm.oracles.taxonomy import TaxonomyOracle, as_documents
from structsvm.solvers import ConditionalLikelihood, LaRank
from structsvm.stored_values import Array, Count, Record, Stored
from structsvm.tasks.common.calibration import LabelCalibration, one_hot
from structsvm.tasks.common.inspection.inputs import depth, refuse
from structsvm.tasks.common.inspection.weights import Contribution, Explanation, WeightTable, one_row
from structsvm.tasks.common.labels import label_array
from structsvm.tasks.common.model import MARGIN
from structsvm.tasks.common.selection.search import Held, total_variance
from structsvm.tasks.common.selection.sums import MOST_MOMENTS, SumSearch
from structsvm.tasks.common.solver import Settings, is_auto, is_log, make_solver
from structsvm.tasks.common.units import UNITS, Units, later_rows, rows_in, settle_sizes, undone, units_of
from structsvm.tasks.taxonomy.examples import Documents
from structsvm.tasks.taxonomy.known import known_labels
from structsvm.tasks.taxonomy.model import BLOCK, TAXONOMY, USUAL_LOSS, TaxonomyModel, structure_of
from structsvm.tasks.taxonomy.rows import WeightRows
from structsvm.tasks.taxonomy.shards import DocumentShards
from structsvm.tasks.taxonomy.vectorizer import are_words, checked_documents, takes_texts

if TYPE_CHECKING:
    from types import SimpleNamespace

    from scipy.sparse import csr_array

    from structsvm.arrays import Floats, Integers, LabelArray, Matrix, Numbers, Weights
    from structsvm.features.tokens import Tokens
    from structsvm.oracles._taxonomy import DenseDecoder, TaxonomyDecoder, TaxonomyProblem
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.selection.search import Search
    from structsvm.tasks.common.training import Job

# LaRank over standardised columns: the dual gains little after four passes, and predictions still do.
LEAST_PASSES = 8
# Fifths of their examples that are held out in turn where C is chosen: for LaRank this costs less than that training.
# Of as many examples as MANY_ROWS one fifth is enough.
TURNS, MANY_ROWS = 2, 10_000
# Where there are more than `max_weights`: the row of each feature, and the attributes of the last rows.
ROWS = Record(
    {
        "row": Array("i4", ("n_columns",), within=(-1, "n_rows")),
        "indptr": Array("i8", ("n_lists+1",), rises_to="n_listed", of=lambda rows: rows.lists[0]),
        "indices": Array(
            "i4", ("n_listed",), within=(0, "n_attributes"), ascends_by="indptr", of=lambda rows: rows.lists[1]
        ),
    },
    needed=False,
    of=lambda model: None if model.rows.row is None else model.rows,
)
LINEAR = TAXONOMY | {
    "weights": RaggedRows(("n_weights",), of="stored_weights"),
    "units": UNITS,
    "n_rows": Count(of="rows.n_rows"),
    "rows": ROWS,
    "margin": MARGIN,
}


class DocumentCalibration(LabelCalibration):
    """Calibration of documents by linear scores."""

    def fit(self, job: Job[Documents]) -> None:
        if is_log(job.learner.loss):
            job.learner.temperature = 1.0  # scores are log-odds
        else:
            super().fit(job)

    def run_without(
        self, model: TaskModel[Documents], chosen: Integers, solver: Solver, problem: Any, weight: Weights
    ) -> Run:
        if solver.maximises_dual:
            return super().run_without(model, chosen, solver, problem, weight)
        # The perceptron's examples have no weights.
        rest = np.setdiff1d(np.arange(problem.n_samples), chosen)
        data = problem.decoder.documents.take(rest), problem.labels[rest]
        return solver.start(model.oracle.bind(*data, **solver.formulation()))


class LinearTaxonomyModel(TaxonomyModel, has_machine=False):
    """Taxonomy, labels, and weights.

    Attributes
    ----------
    rows : WeightRows
    oracle : TaxonomyOracle
    weights : ndarray of shape (oracle.n_features,), float32
    units : Units or None
        Those of the columns in training, where these are dense.
    """

    record = LINEAR
    has_temperature = True
    calibration = DocumentCalibration()
    comparison = SumSearch
    rivals = (ConditionalLikelihood,)
    sums_over_known = narrows = True

    def set_rows(self, rows: WeightRows, stored: Stored | None = None) -> None:
        """Set which weights there are, all of them 0 unless a file contains them."""
        self.rows = rows
        self.oracle = TaxonomyOracle.over(self.targets, rows.n_rows, rows.lists)
        n = self.oracle.n_features
        if stored is None:
            self.weights = np.zeros(n, np.float32)
        else:
            n_rows = self.oracle.n_full + (0 if rows.lists is None else len(rows.lists[0]) - 1)
            self.weights = rows_from(stored.arrays(n_weights=n), "weights", n_rows, self.weight_rows)

    @classmethod
    def prepare(
        cls,
        params: SimpleNamespace,
        X: Matrix | DocumentShards,
        y: LabelArray,
        *,
        classes: Iterable[Hashable] | None = None,
        before: LinearTaxonomyModel | None = None,
        weight: Weights | None = None,
    ) -> tuple[LinearTaxonomyModel, Documents]:
        """Return ``(model, examples)``: a model as parameters ask for it, X and y encoded.

        Parameters
        ----------
        params : object with `TaxonomyClassifier`'s parameters as attributes
        X : float32 array or CSR matrix of shape (n_documents, n_features), or DocumentShards
        y : ndarray of shape (n_documents,)
            Names of nodes, or sets of them.
        classes : array-like, optional
            All labels. None: those of y.
        before : LinearTaxonomyModel, optional
            The model to resume; ValueError if the parameters ask for another structure.
        weight : ndarray of shape (n_documents,), optional
        """
        if isinstance(X, DocumentShards):
            return cls._prepare_shards(params, X, before, weight)
        labels, label_ids, sets = known_labels(params, y, classes if before is None else before.labels)
        taxonomy, structure = structure_of(params, labels, y)
        documents = rows_in(None, X, structure["intercept"], as_documents)
        model = before
        if model is None:
            model = cls(taxonomy, labels, **structure)
            seen = label_ids, documents
            if sets:  # a document stands for one of each of its labels
                ids = [list(sets[k - len(labels)]) if k >= len(labels) else [k] for k in label_ids.tolist()]
                rows = np.repeat(np.arange(len(ids)), [len(one) for one in ids])
                seen = np.concatenate(ids), documents.take(rows)
            model.set_rows(WeightRows.fit(seen[1], seen[0], model.targets.attributes, params.max_weights))
            if params.standardize and model.rows.row is None:
                if isinstance(documents, DenseRows):
                    dense = Documents(documents, label_ids, len(labels), weight=weight)
                    model.units = Units.of_rows(dense.merged().rows)
                else:
                    model.units = Units.of_matrix(X, has_intercept=False)
                documents = rows_in(model.units, X, structure["intercept"], as_documents)
            settle_sizes(model, X)
        else:
            if is_auto(params.loss):
                structure["loss"] = model.loss
            model.check_same(taxonomy, structure)
            X = later_rows(model, X, is_cut=params.standardize and model.rows.row is None)
            documents = rows_in(model.units, X, structure["intercept"], as_documents)
        return model, Documents(model.rows.encode(documents), label_ids, len(labels), sets, weight=weight)

    @classmethod
    def _prepare_shards(
        cls, params: SimpleNamespace, shards: DocumentShards, before: LinearTaxonomyModel | None, weight: Weights | None
    ) -> tuple[LinearTaxonomyModel, Documents]:
        """As `prepare`; ValueError, naming it, for a parameter that shards leave no choice of."""
        labels, _, sets = known_labels(params, label_array(shards.labels))
        if sets or labels != shards.labels:
            raise ValueError("shards need labels that are sorted and fully known; theirs hold inner nodes, or -1")
        label_ids, n = shards.label_ids, len(labels)
        if label_ids.shape != (len(shards),) or not 0 <= label_ids.min() <= label_ids.max() < n:
            raise ValueError(f"the shards' label ids must be one per document, from 0 to {n - 1}")
        taxonomy, structure = structure_of(params, labels)
        if structure["intercept"] != shards.has_intercept:
            raise ValueError(f"the shards were made with fit_intercept={shards.has_intercept}")
        shards.check()
        model = before
        if model is None:
            model = cls(taxonomy, labels, **structure)
            n_weights = shards.tokens.n_features * model.targets.attributes.n_attributes
            if n_weights > params.max_weights:
                raise ValueError(
                    f"shards have a weight for every feature and node, {n_weights}, more than max_weights="
                    f"{params.max_weights}: raise it, or make them with fewer terms (min_df, max_features)"
                )
            model.set_rows(WeightRows(shards.tokens.n_features))
        else:
            if is_auto(params.loss):
                structure["loss"] = model.loss
            model.check_same(taxonomy, structure)
            same = model.rows.row is None and model.rows.n_rows == shards.tokens.n_features and model.units is None
            if not same or model.labels.tolist() != labels:
                raise ValueError("the model to resume has other features or labels than the shards")
        return model, Documents(shards.tokens, label_ids, n, weight=weight)

    def bind(self, examples: Documents, solver: Solver) -> tuple[TaxonomyProblem, Weights | None]:
        """The oracle bound to documents.

        To solvers of the dual neither the order of the documents makes a difference nor whether equal ones come
        several times, or once with the sum of their weights. Those in shards keep their order.
        """
        if not examples.is_stored and solver.maximises_dual:
            examples = examples.merged()
        problem = self.oracle.bind(examples.rows, examples.known, **solver.formulation())
        if examples.is_stored:
            examples.rows.set_sections(problem)
        return problem, examples.weight

    def adapted(self, solver: Solver, examples: Documents) -> Solver:
        """In no less than `LEAST_PASSES` where columns are standardised."""
        return super().adapted(self._patient(solver), examples)

    @property
    def is_standardized(self) -> bool:
        """Whether columns have one size, not limits alone."""
        return self.units is not None and self.units.centre is not None

    def _patient(self, solver: Solver) -> Solver:
        if self.is_standardized and isinstance(solver, LaRank):
            solver = copy.copy(solver)
            solver.least_passes = LEAST_PASSES
        return solver

    def solver_of_loss(self, loss: str) -> Solver:
        return self._patient(make_solver(Settings(**self.params | {"loss": loss}), default_C=1.0))

    def set_loss(self, loss: str | Numbers) -> None:
        if loss is not self.loss:
            self.aim_at(loss)
            self.oracle = TaxonomyOracle.over(self.targets, self.rows.n_rows, self.rows.lists)

    def adopt_loss(self, other: Self) -> None:
        self.set_loss(other.loss)
        self.oracle = other.oracle

    def losses_to_compare(self, examples: Documents) -> tuple[str, ...]:
        params = self.params
        adds = is_auto(params.get("loss")) and self.leaf_only and params.get("solver") == "larank"
        if not adds or not self.is_standardized or self.is_trained or len(examples) * len(self.labels) > MOST_MOMENTS:
            return ()
        return () if examples.has_unknown else ("log", USUAL_LOSS)

    def search_of_loss(self, examples: Documents, solver: Solver) -> Search:
        search = super().search_of_loss(examples, solver)
        is_cheap = is_auto(self.params.get("loss")) or isinstance(search.solver, LaRank)
        if self.is_standardized and is_cheap and len(search.examples) < MANY_ROWS:
            search.turns = TURNS
        return search

    def examples_of(self, problem: TaxonomyProblem, chosen: Integers) -> tuple[Tokens | DenseRows, NDArray[np.bool_]]:
        n = len(self.labels)
        known = one_hot(problem.labels[chosen], n) if problem.known is None else problem.known.rows(chosen).table(n)
        return problem.decoder.documents.take(chosen), known

    # ---- choosing C -----------------------------------------------------------------------------

    def scale(self, examples: Documents) -> float:
        return total_variance(examples.rows) * self.loss_scale()

    # ---- prediction -----------------------------------------------------------------------------

    def encode(self, X: Matrix) -> Tokens | DenseRows:
        return self.rows.encode(rows_in(self.units, X, self.intercept, as_documents))

    def blocks(self, documents: Tokens | DenseRows) -> list[TaxonomyDecoder | DenseDecoder]:
        starts = range(0, len(documents), BLOCK)
        return [self.oracle.decoder(documents[start : start + BLOCK]) for start in starts]

    def best(self, block: TaxonomyDecoder | DenseDecoder) -> Integers:
        return block.decode(self.weights)

    def scores_of(self, block: TaxonomyDecoder | DenseDecoder) -> Floats:
        return block.scores(self.weights)

    # ---- compact models -------------------------------------------------------------------------

    def output_scores(self, examples: Documents) -> Held:
        """The accuracy, where leaves alone are predicted; otherwise the mean loss."""
        if not self.leaf_only:
            return self.held_out_scores(examples)
        chosen = [self.best(block) for block in self.blocks(examples.rows)]
        right = np.concatenate([np.empty(0, np.intp), *chosen]) == examples.label_ids
        return Held("accuracy", right.astype(np.float64), np.ones(len(right)))

    def weight_rows(self) -> Integers:
        full = np.full(self.oracle.n_full, self.oracle.stride)
        return full if self.rows.lists is None else np.concatenate([full, np.diff(self.rows.lists[0])])

    def pruned(self, size: float) -> Floats:
        """The weights, with 0 for those of features below a size; intercepts stay."""
        weights = super().pruned(size)
        if self.intercept:
            row, lengths = self.rows.n_rows - 1 if self.rows.row is None else int(self.rows.row[-1]), self.weight_rows()
            start = int(lengths[:row].sum())
            weights[start : start + lengths[row]] = self.weights[start : start + lengths[row]]
        return weights

    def narrowed_by_weights(self) -> Self:
        """The model whose lists have the weights alone that are not 0."""
        if self.report is None or self.rows.lists is None:
            return self
        first = self.oracle.n_full * self.oracle.stride
        own, (indptr, listed) = self.weights[first:], self.rows.lists
        counts = np.bincount(
            np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[own != 0.0], minlength=len(indptr) - 1
        )
        model = self.copy()
        lists = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), listed[own != 0.0]
        model.rows = WeightRows(self.rows.n_rows, self.rows.row, lists)
        model.oracle = TaxonomyOracle.over(self.targets, self.rows.n_rows, lists)
        model.weights = np.concatenate([self.weights[:first], own[own != 0.0]])
        return model

    def weight_matrix(self) -> Floats | csr_array:
        """Weights of all attributes (rows) and features (columns) as the data are; sparse if there are lists."""
        oracle, n = self.oracle, self.oracle.attributes.n_attributes
        full = self.weights[: oracle.n_full * oracle.stride].reshape(oracle.n_full, oracle.stride)[:, :n]
        if self.rows.row is None:
            return undone(self.units, full).T
        from scipy.sparse import csr_array, vstack

        shape = (self.rows.n_rows - oracle.n_full, n)
        lists = csr_array(
            (self.weights[oracle.n_full * oracle.stride :], self.rows.lists[1], self.rows.lists[0]), shape
        )
        rows = vstack([csr_array(full), lists, csr_array((1, n))], format="csr")
        return rows[self.rows.row].T.tocsr()  # row -1 is the last one, of zeros

    def weight_table(self) -> WeightTable:
        if not isinstance(self.attributes, str):
            raise TypeError("attributes that are a matrix have no names")
        matrix = self.weight_matrix()
        matrix = matrix[:, :-1] if self.intercept else matrix
        nodes = self.nodes
        names = None if self.vectorizer is None else self.vectorizer.get_feature_names_out().tolist()
        return WeightTable(names or self.name_columns(matrix.shape[1]), nodes[len(nodes) - matrix.shape[0] :], matrix.T)

    def _one_document(self, x: Any) -> Any:
        """The row of a document as given to `explain`, a matrix."""
        if self.vectorizer is None:
            return one_row(x, self.n_input_features)[np.newaxis]
        if takes_texts(self.vectorizer) and depth(x) > 0 and not are_words(x):
            refuse(x)
        return self.vectorizer.transform(checked_documents(self.vectorizer, [x]))

    def explain(self, x: Any) -> Explanation:
        from scipy.sparse import csr_array

        row = csr_array(self._one_document(x))
        table, taxonomy = self.weight_table(), self.targets.taxonomy
        order = np.argsort(-self.label_scores(row.astype(np.float32))[0], kind="stable")[:2]
        best, other = (self.labels.tolist()[k] for k in order)
        flat = self.attributes == "flat"
        above = [{name} if flat else taxonomy.ancestors(name) for name in (best, other)]
        sizes = [len(nodes) ** 0.5 if self.attributes == "normalized" else 1.0 for nodes in above]
        intercepts = self.weight_matrix()[:, [-1]] if self.intercept else None
        found = []
        for nodes, size, sign in zip(above, sizes, (1.0, -1.0), strict=True):
            # Nodes above both cancel out, but where each row of attributes has a length of its own.
            for node in nodes if self.attributes == "normalized" else nodes - (above[0] & above[1]):
                weights = table.column(node)
                found += [
                    Contribution(table.features[j], str(node), sign * value * float(weights[j]) / size)
                    for j, value in zip(row.indices.tolist(), row.data.tolist())
                ]
                if intercepts is not None:
                    own = intercepts[[table.labels.index(node)]]
                    own = own.toarray() if hasattr(own, "toarray") else own
                    found.append(Contribution("intercept", str(node), sign * float(own[0, 0]) / size))
        return Explanation.of(best, other, found)

    # ---- model files ----------------------------------------------------------------------------

    @property
    def n_input_features(self) -> int:
        """Columns of X."""
        return (self.rows.n_rows if self.rows.row is None else len(self.rows.row)) - self.intercept

    @classmethod
    def from_parts(
        cls, taxonomy: Taxonomy, labels: Sequence[Hashable], structure: dict[str, Any], stored: Stored
    ) -> LinearTaxonomyModel:
        model = cls(taxonomy, labels, **structure)
        rows = WeightRows(stored.n_rows)
        if stored.rows is not None:
            row, *lists = stored.rows.arrays(n_attributes=model.targets.attributes.n_attributes).values()
            rows = WeightRows(stored.n_rows, row, tuple(lists))
        model.set_rows(rows, stored)
        model.units = units_of(stored.units, model.n_input_features)
        model.set_margin(stored.margin)
        return model
