"""Labels learnt from sets of candidates (thesis, section 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.export.folders import write_files
from structsvm.metrics._counts import mark_for, say_unseen
from structsvm.parameters import FLAG, Kind, Options, check_arguments, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.ambiguous.model import (
    LOSSES,
    AmbiguousModel,
    BaggedRows,
    as_bags,
    encode_bags,
    is_weighted,
    possible_losses,
    solver_of,
)
from structsvm.tasks.ambiguous.portable import TARGETS, runtime_files
from structsvm.tasks.ambiguous.questions import BagReader, grown, labels_in
from structsvm.tasks.common.bases import ClassifierMixin
from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.common.estimator import share_of
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import Not, check_classes, label_array, listed, sort_labels
from structsvm.tasks.common.parameters import MARK, OF_C, Training, check_settled
from structsvm.tasks.common.questions.denied import as_answers
from structsvm.tasks.common.questions.given import one_row
from structsvm.tasks.common.questions.loop import LearningLoop
from structsvm.tasks.common.solver import AUTO, SOLVERS, is_auto
from structsvm.tasks.common.units import Units, check_scale, later_rows, settle_sizes

if TYPE_CHECKING:
    import os

    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import Pipeline
    from sklearn.utils import Tags

    from structsvm.arrays import Floats, LabelArray, MatrixLike
    from structsvm.tasks.ambiguous.model import Candidates
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.questions.given import Batch


@declared
class AmbiguousClassifier(Training, ClassifierMixin, LearningLoop):
    """Linear classifier that learns from sets of candidate labels, one set per row, with one right label in each.

    Minimises ``1/2 |w|^2 + C sum_i L_w(x_i, Y_i)``, where with the scores ``s_y = <w_y, x>`` the loss is one of

    - "pairwise": ``1 / (|Y| |not Y|) sum_{y in Y} sum_{z not in Y} [1 - s_y + s_z]_+``, the mean pairwise hinge
      (equation 6.5 of the thesis). If the wrong candidates come at random, its minimiser predicts the right labels
      (theorem 12).
    - "mean": ``[1 - mean_{y in Y} s_y]_+ + sum_{z not in Y} [1 + s_z]_+`` (CLPL: Cour, Sapp and Taskar 2011).
    - "max": the same with the best candidate's score in place of the mean. Not convex.
    - "log": ``log sum_k exp s_k - log sum_{y in Y} exp s_y``, minus the log of the probability that the label is a
      candidate. Not convex: candidates that the other rows make likely count for more.

    The last two complete the sets during training: "max" in rounds, by the best candidate (`structsvm.LatentSVM`),
    "log" in each step, by the distribution over the candidates. `result_` then certifies the convex problem with the
    final completions.

    Parameters
    ----------
    loss : {"auto", "pairwise", "mean", "max", "log"}, default="auto"
        "auto": chosen on held-out examples, each loss with its best C (`validation_`); "pairwise" with fewer than 20
        rows, and in `partial_fit` before any `fit` ("log" where candidates have weights).
    C : float, "auto" or None, default="auto"
        Weight of the sum of losses. "auto": chosen on held-out examples (`validation_`), by the probability that their
        labels are candidates, or with loss="max" by how often the predicted one is, see
        `structsvm.tasks.common.selection`; 0.1 (with loss="log" 1) with fewer than 20 rows, and in `partial_fit` before
        any `fit`. None: 0.1 or 1. A solver given as an object has its own.
    solver : {"larank", "passive_aggressive", "cutting_plane", "frank_wolfe"} or Solver, default="larank"
        "passive_aggressive" is algorithm 23: one step per example, in one pass unless `max_iter` says otherwise. The
        others continue to the optimum. loss="log" replaces "larank" by `ConditionalLikelihood`; loss="max" wraps the
        solver in a `LatentSVM`, unless it is one.
    fit_intercept : bool, default=True
        Give each label a bias, regularised like the weights.
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero arrays, with mean 0 and variance 1 each, so units make no
        difference. `coef_` and `intercept_` are for the columns as given.
    unknown : object, default="auto"
        The mark of rows whose label is not known, in y; "auto": -1, and training says how many there are. None: there
        is none, and -1 is a label. None and -100 in y are always unknown labels.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes the last one, on the same data.
    n_jobs : int, optional
        Jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
    temperature_ : float or None
        Divisor of the scores for probabilities, fitted to the likelihood of the bags of held-out rows.
    loss_ : str
        The loss of the last training.
    C_ : float
        The C of the last training.
    validation_ : dict
        What "auto" has chosen C from: with loss="auto" the "loss", and "losses", per loss (C, score, standard
        error) of its best C; arrays "C", "score", "error" (standard errors of the scores) and "passes" (over
        the part that was trained on), the "metric" and the number of examples "n_held_out".
    result_ : Result
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> from structsvm.tasks import AmbiguousClassifier
    >>> X = [[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.1]]
    >>> model = AmbiguousClassifier(C=10.0, random_state=0).fit(X, [{"a", "b"}, {"a"}, {"b", "c"}, {"b", "c"}])
    >>> model.predict([[0.0, 1.0]]).tolist()
    ['a']
    """

    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO, kw_only=False)
    loss: Literal["auto", "pairwise", "mean", "max", "log"] = parameter(Options(AUTO, *LOSSES), default=AUTO)
    solver: str | Solver = parameter(
        Options(*(name for name in SOLVERS if name != "perceptron")), Kind(Solver, "a Solver"), default="larank"
    )
    fit_intercept: bool = parameter(FLAG, default=True)
    standardize: bool = parameter(FLAG, default=True)
    unknown: object = parameter(*MARK, default=AUTO)

    _model_class = AmbiguousModel
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: MatrixLike, y: Candidates, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows and their candidate labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : list of n_samples collections of labels
            A set, list, tuple or array of candidates per row, or a dict from candidates to their weights (such as votes
            of annotators), which losses "mean" and "log" support; anything else is a known label. None is a
            row about which nothing is known, and so are -100 and the mark `unknown`. Or all
            weights as a matrix of shape (n_samples, n_classes): sparse, a data frame whose columns are labels, or an
            array of floats, bools, or of 0 and 1 alone; columns without names are labels 0, 1, ...
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each row's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, an empty set of candidates, values that are not finite, X and y that do not
            match.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: Candidates,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current weights w0.

        The first call fixes the labels (`classes` names those that come later). The batch's own problem is solved
        around the current weights: minimise ``1/2 |w - w0|^2 + C sum_i L_w(x_i, Y_i)``; `result_` certifies that.
        """
        return self._train(X, y, sample_weight, passes=1, classes=classes)

    def _make_solver(self, before: TaskModel[BaggedRows] | None = None) -> Solver:
        params = self.get_params(deep=False)
        if self.loss != "auto":
            return solver_of(params, self.loss)
        return solver_of(params, possible_losses(params)[0] if before is None else before.loss)

    def _prepare(
        self,
        X: Any,
        y: Candidates,
        sample_weight: ArrayLike | None,
        before: AmbiguousModel | None,
        *,
        classes: Iterable[Hashable] | None = None,
    ) -> tuple[AmbiguousModel, BaggedRows]:
        X, columns = self._validated(X, before=before, accept_sparse="csr", dtype=np.float64)
        if before is not None:
            check_classes(classes, before.labels)
            wanted = before.loss if is_auto(self.loss) else self.loss
            check_settled([("loss", wanted, before.loss)])
            known: Sequence[Hashable] | None = before.labels
        else:
            known = None if classes is None else sort_labels(list(dict.fromkeys(listed(classes))))
        labels, bags = encode_bags(y, known, self.unknown)
        if not labels:
            raise ValueError("nothing is known of any row: y holds no candidates")
        if len(labels) < 2:
            raise ValueError(f"AmbiguousClassifier needs at least 2 classes, and y holds one class alone: {labels}")
        if len(bags) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} samples, y has {len(bags)}")
        weight = checked_sample_weight(sample_weight, len(bags))
        model = before
        if model is None:
            check_scale(X)
            loss: str = self.loss
            if loss == "auto":
                loss = possible_losses(self.get_params(deep=False), weighted=is_weighted(bags))[0]
            has_intercept = bool(self.fit_intercept)
            units = Units.of_matrix(X, has_intercept, weight) if self.standardize else None
            model = AmbiguousModel(labels, X.shape[1], has_intercept=has_intercept, loss=loss, units=units)
            model.columns = columns
            settle_sizes(model, X)
        else:
            X = later_rows(model, X, is_cut=self.standardize)
        n_unknown = sum(len(bag) == len(labels) for bag in bags)
        return model, BaggedRows(model.rows(X), bags, n_unknown, weight=weight)

    # ---- the learning loop ------------------------------------------------------------------------

    _least_labels = 2

    def _one(self, x: Any) -> Any:
        return one_row(x)

    def _reader_of(self, model: AmbiguousModel, X: Any) -> BagReader:
        return BagReader(model, self._rows_of_prediction(X, model, accept_sparse="csr", dtype=np.float64))

    def _labels_in(self, y: Sequence[Any]) -> set[Hashable]:
        return labels_in(y, self.unknown)

    def _choices(
        self, y: Sequence[Any], named: set[Hashable], model: AmbiguousModel | None
    ) -> tuple[set[Hashable], Callable[[Hashable], set[Hashable]]]:
        return named | {*(() if model is None else model.labels)}, lambda label: {label}

    def _grown(self, model: AmbiguousModel, X: Any, y: Sequence[Any], new: set[Hashable]) -> AmbiguousModel:
        return grown(model, new)

    def _check_first(self, batch: Batch) -> None:
        self._validated(batch.X, accept_sparse="csr", dtype=np.float64)

    # ---- prediction -----------------------------------------------------------------------------

    @property
    def loss_(self) -> str:
        return self._fitted().loss

    @property
    def coef_(self) -> Floats:
        return self._fitted().table[: self.n_features_in_].T

    @property
    def intercept_(self) -> Floats:
        model = self._fitted()
        return model.table[self.n_features_in_] if model.has_intercept else np.zeros(len(model.labels))

    def _scores(self, model: AmbiguousModel, X: MatrixLike) -> Floats:
        X = self._rows_of_prediction(X, model, accept_sparse="csr", dtype=np.float64)
        return model.scores(X)

    def decision_function(self, X: MatrixLike) -> Floats:
        """Return the labels' scores: array (n_samples, n_classes); with two labels (n_samples,), their difference."""
        scores = self._scores(self._fitted(), X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: MatrixLike) -> Floats:
        """Return the labels' probabilities, array (n_samples, n_classes).

        A softmax over the scores at the temperature `temperature_`.
        """
        model = self._fitted()
        return class_probabilities(model, self._scores(model, X))

    def predict_log_proba(self, X: MatrixLike) -> Floats:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: MatrixLike) -> LabelArray:
        """Return the label of the highest score for each row: array (n_samples,)."""
        model = self._fitted()
        return label_array(model.labels)[self._scores(model, X).argmax(axis=1)]

    def score(self, X: MatrixLike, y: Candidates, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose prediction is among the candidates; with known labels, the accuracy.

        With ``Not`` right is what it does not deny. Rows about which nothing is known are left out.
        """
        answers = as_answers(y) or []
        denied = {i: one.labels for i, one in enumerate(answers) if isinstance(one, Not)}
        plain = [None if i in denied else one for i, one in enumerate(answers)] if denied else y
        predicted, (_, bags) = self.predict(X).tolist(), as_bags(plain, mark_for(self.unknown, self._fitted().labels))
        if len(predicted) != len(bags):
            raise ValueError(f"X has {len(predicted)} samples, y has {len(bags)}")
        right = np.array([bag is None or label in bag for label, bag in zip(predicted, bags, strict=True)])
        says = np.array([bag is not None for bag in bags])
        for i, labels in denied.items():
            right[i], says[i] = predicted[i] not in labels, True
        if not says.any():
            raise ValueError("y tells nothing of any example")
        alone = (next(iter(bag)) for bag in bags if bag is not None and len(bag) == 1)
        say_unseen(alone, set(self._fitted().labels), "rows")
        return share_of(right, says, sample_weight)

    def export(self, folder: str | os.PathLike[str], to: str = "c", pipeline: Pipeline | None = None) -> None:
        """Write the model to a folder for use without Python; of texts with the vectorizer of a pipeline.

        Scores of texts and of other sparse rows are the same, bit for bit; those of dense rows, which NumPy sums in an
        order of its own, are the same but for rounding.

        Parameters
        ----------
        folder : path-like
            A folder, made if it is missing. Files of earlier exports are replaced.
        to : {"c", "wasm", "page"}, default="c"
            "c": ``model.bin``, and ``structsvm_runtime.c`` and ``.h``, in C99, that read it. "wasm": ``model.bin``, and
            the same as WebAssembly with a module in JavaScript. "page", for texts: ``classifier.html``, all of these in
            one page that browsers open from a file.
        pipeline : sklearn.pipeline.Pipeline, optional
            A `CountVectorizer` or `TfidfVectorizer` with this classifier behind it: the model then reads texts. None:
            it reads rows of numbers.

        Raises
        ------
        ValueError
            For labels that are not str; for a pipeline of other steps, or a vectorizer with functions, accents
            stripped, or a pattern of its own; for a page without a pipeline.
        ImportError
            For "wasm" and "page" without zig, which compiles the runtime.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from structsvm.tasks import AmbiguousClassifier
        >>> model = make_pipeline(TfidfVectorizer(), AmbiguousClassifier(C=1.0, random_state=0))
        >>> model = model.fit(["red tent", "blue shoe", "red shoe"], [{"a", "b"}, {"c"}, {"b", "c"}])
        >>> model[-1].export(tempfile.mkdtemp(), pipeline=model)
        """
        check_arguments("AmbiguousClassifier.export", locals(), to=Options(*TARGETS))
        vectorizer = None if pipeline is None else self._vectorizer_of(pipeline)
        write_files(folder, runtime_files(self._fitted(), vectorizer, to))

    def _vectorizer_of(self, pipeline: Pipeline) -> CountVectorizer:
        """The first step of a pipeline whose other step is this classifier; ValueError for another pipeline."""
        steps = [step for _, step in getattr(pipeline, "steps", [])]
        if len(steps) != 2 or steps[1] is not self:
            raise ValueError(
                f"pipeline must be a vectorizer and this classifier, with nothing between them, got {pipeline!r:.80}"
            )
        return steps[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
