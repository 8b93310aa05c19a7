"""Multiclass classification from sets of candidate labels (partial labels; Bordes 2010, section 6.1)."""

from __future__ import annotations

from itertools import chain
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm.callbacks import CallbackSupportMixin, with_callbacks
from structsvm.checkpoint import resumed
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.oracles.ambiguous import AmbiguousOracle, Rows, as_rows
from structsvm.parameters import (
    CHECKPOINT,
    FLAG,
    N_JOBS,
    POSITIVE,
    RANDOM_STATE,
    Interval,
    Kind,
    Options,
    plain,
    validate,
)
from structsvm.result import read_result, result_arrays
from structsvm.solvers import Solver
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.estimator import checked_sample_weight
from structsvm.tasks.common.labels import label_array, label_from_json, label_to_json, sort_labels
from structsvm.tasks.common.solver import SOLVERS, make_solver, solver_from_json, solver_to_json
from structsvm.tasks.common.stored_estimator import all_or_nothing, monitor_for

KIND = "ambiguous"
COLLECTIONS = (set, frozenset, list, tuple, np.ndarray)


class AmbiguousClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Linear multiclass SVM that learns from a set of candidate labels for each row, of which one is right.

    Minimises ``1/2 |w|^2 + C sum_i L_w(x_i, Y_i)`` with the mean pairwise hinge (equation 6.5 of the thesis)

    ``L_w(x, Y) = 1 / (|Y| |not Y|) sum_{y in Y} sum_{z not in Y} [1 - <w_y, x> + <w_z, x>]_+``.

    If the wrong candidates come at random, its minimiser predicts the right labels (theorem 12).

    Parameters
    ----------
    C : float, optional
        Weight of the sum of losses. None: 0.1, or what a solver given as an object says.
    solver : {"larank", "passive_aggressive", "cutting_plane", "frank_wolfe"} or Solver, default="larank"
        "passive_aggressive" is algorithm 23: one step an example, in one pass unless `max_iter` says otherwise. The
        others go on to the optimum.
    fit_intercept : bool, default=True
        Give each label a bias, regularised like the weights.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one, on the same data.
    n_jobs : int, optional
        Jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that keeps the state of training every `checkpoint_every` passes; if it exists, `fit` goes on from it.
    checkpoint_every : int, default=1
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
    intercept_ : ndarray of shape (n_classes,)
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

    _constraints = {
        "C": (POSITIVE, Options(None)),
        "solver": (Options(*(name for name in SOLVERS if name != "perceptron")), Kind(Solver, "a Solver")),
        "fit_intercept": FLAG,
        "max_iter": (Interval(Integral, 1), Options(None)),
        "tol": (Interval(Real, 0.0, closed="neither"), Options(None)),
        "random_state": RANDOM_STATE,
        "warm_start": FLAG,
        "n_jobs": N_JOBS,
        "checkpoint": CHECKPOINT,
        "checkpoint_every": Interval(Integral, 1),
        "verbose": FLAG,
    }

    _weights: np.ndarray
    _run: dict | None
    _fingerprint: int

    def __init__(
        self,
        C=None,
        *,
        solver="larank",
        fit_intercept=True,
        max_iter=None,
        tol=None,
        random_state=None,
        warm_start=False,
        n_jobs=None,
        checkpoint=None,
        checkpoint_every=1,
        verbose=False,
    ):
        self.C = C
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose

    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Train on rows and their candidate labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : list of n_samples collections of labels
            A set, list, tuple or array of candidates for each row; what is no collection is a label that is known.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each row's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, an empty set of candidates, values that are not finite, X and y that do not
            fit.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.
        """
        validate(self, self._constraints)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        resume = self.warm_start and getattr(self, "_run", None) is not None
        labels, bags = encode_bags(y, self._labels() if resume else None)
        return self._train(X, bags, labels, y, sample_weight, resume=resume)

    @with_callbacks
    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None, *, classes=None):
        """One pass over a batch, starting from the present weights w0.

        The first call fixes the labels (`classes` names those that come later). The batch's own problem is solved
        around the weights so far: minimise ``1/2 |w - w0|^2 + C sum_i L_w(x_i, Y_i)``; `result_` certifies that.
        """
        validate(self, self._constraints)
        first = not hasattr(self, "_weights")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)
        known = None if classes is None else sort_labels(list(dict.fromkeys(classes)))
        if not first:
            if known is not None and known != self._labels():
                raise ValueError(f"classes={classes!r} is not the same as on the first call: {self._labels()}")
            known = self._labels()
        labels, bags = encode_bags(y, known)
        return self._train(X, bags, labels, y, sample_weight, base=None if first else self._weights, passes=1)

    def _train(self, X, bags, labels, y, sample_weight, *, resume=False, base=None, passes=None):
        if len(labels) < 2:
            raise ValueError(f"AmbiguousClassifier needs at least 2 classes, and y holds one class alone: {labels}")
        if len(bags) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} samples, y has {len(bags)}")
        solver = make_solver(self)
        rows = rows_of(X, self.fit_intercept if base is None else self._has_intercept)
        problem = AmbiguousOracle(len(labels), rows.n_features).bind(rows, bags, **solver.formulation())
        weight = checked_sample_weight(sample_weight, len(bags))
        run = resumed(solver, problem, self._run, self._fingerprint, sample_weight=weight) if resume else None
        monitor = monitor_for(
            self,
            X,
            y,
            solver.n_passes if passes is None else passes,
            lambda run: {"_weights": run.weights, "classes_": label_array(labels)},
        )
        run = solver.solve(problem, sample_weight=weight, base=base, run=run, monitor=monitor, passes=passes)
        self.classes_ = label_array(labels)
        self._weights, self.result_, self.n_iter_ = run.weights, run.result(), run.n_iter
        self._run, self._fingerprint = (run.get_state(), problem.fingerprint()) if base is None else (None, 0)
        raise_if_interrupted(run)
        return self

    def _labels(self):
        return self.classes_.tolist()

    @property
    def _has_intercept(self):
        """Of the weights, whatever `fit_intercept` has become."""
        return len(self._table) > self.n_features_in_

    # ---- prediction -----------------------------------------------------------------------------

    @property
    def _table(self):
        return self._weights.reshape(-1, len(self.classes_))

    @property
    def coef_(self):
        return self._table[: self.n_features_in_].T

    @property
    def intercept_(self):
        return self._table[self.n_features_in_] if self._has_intercept else np.zeros(len(self.classes_))

    def _scores(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        rows = rows_of(X, self._has_intercept)
        return AmbiguousOracle(len(self.classes_), rows.n_features).scores(rows, self._weights)

    def decision_function(self, X):
        """Return the labels' scores: array (n_samples, n_classes); with two labels (n_samples,), their difference."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Return the label of the highest score for each row: array (n_samples,)."""
        best = self._scores(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X, y, sample_weight=None):
        """Return the share of rows whose prediction is among the candidates; with known labels, the accuracy."""
        predicted, bags = self.predict(X).tolist(), [as_bag(bag) for bag in y]
        if len(predicted) != len(bags):
            raise ValueError(f"X has {len(predicted)} samples, y has {len(bags)}")
        right = [label in bag for label, bag in zip(predicted, bags, strict=True)]
        return float(np.average(right, weights=checked_sample_weight(sample_weight, len(right))))

    # ---- files ----------------------------------------------------------------------------------

    def save(self, path):
        """Write the model, with the training state that `warm_start` goes on from, to one file.

        Arrays and a JSON header, no pickle; written to a temporary file and renamed. `structsvm.load` opens it.
        """
        check_is_fitted(self)
        params = {name: plain(value) for name, value in self.get_params(deep=False).items()}
        params |= {"checkpoint": None, "fit_intercept": self._has_intercept}
        if isinstance(self.solver, Solver):
            params["solver"] = solver_to_json(self.solver)
        meta = {
            "params": params,
            "labels": [label_to_json(label) for label in self._labels()],
            "n_features_in": self.n_features_in_,
            "fingerprint": self._fingerprint,
            "result": self.result_.to_dict(),
        }
        arrays = {"weights": self._table}
        arrays |= result_arrays(self.result_, self._run)
        write_model(path, KIND, meta, arrays)

    @classmethod
    def load(cls, path, *, mmap=False):
        """Open a file of `save`; ModelFileError if it is not a whole, sound model."""
        file = read_model(path, kind=KIND, mmap=mmap)
        try:
            return cls._from_file(file)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound ambiguous model: {error}") from error

    @classmethod
    def _from_file(cls, file):
        meta, weights = file.meta, file.arrays["weights"]
        params = {name: value for name, value in meta["params"].items() if name in cls().get_params()}
        if not isinstance(params["solver"], str):
            params["solver"] = solver_from_json(params["solver"]) or "larank"
        self = cls(**params)
        validate(self, cls._constraints)
        labels = [label_from_json(label) for label in meta["labels"]]
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise ValueError("two labels at least, each once")
        self.classes_, self.n_features_in_ = label_array(labels), int(meta["n_features_in"])
        shape = (self.n_features_in_ + self.fit_intercept, len(labels))
        if weights.shape != shape or weights.dtype != np.float64 or not np.isfinite(weights).all():
            raise ValueError(f"weights of shape {weights.shape} and type {weights.dtype}, not finite {shape} float64")
        self._weights = weights.ravel()
        self.result_, self._run = read_result(file)
        self.n_iter_, self._fingerprint = self.result_.n_iter, int(meta["fingerprint"])
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_weights")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def rows_of(X, has_intercept):
    """Rows of a matrix, for an intercept with one more column, of ones."""
    rows = as_rows(X, X.shape[1])
    if not has_intercept:
        return rows
    n, d = len(rows), rows.n_features
    ends = rows.indptr[1:]
    return Rows(
        rows.indptr + np.arange(n + 1),
        np.insert(rows.indices, ends, np.int32(d)),
        np.insert(rows.values, ends, 1.0),
        d + 1,
    )


def as_bag(candidates):
    """The candidates of one row as a list; what is no collection is one candidate."""
    if isinstance(candidates, np.ndarray) and candidates.ndim == 0:
        candidates = candidates.item()
    if not isinstance(candidates, COLLECTIONS):
        candidates = [candidates]
    return [label.item() if isinstance(label, np.generic) else label for label in candidates]


def encode_bags(y, labels=None):
    """Return ``(labels, bags)``: the distinct labels, sorted, and each row's candidates as a set of their numbers.

    `labels` are the labels known already: ValueError for another one, and for a row without candidates.
    """
    if y is None:
        raise ValueError("AmbiguousClassifier requires y to be passed, but the target y is None")
    bags = [as_bag(candidates) for candidates in (y if hasattr(y, "__iter__") else np.asarray(y))]
    for i, bag in enumerate(bags):
        if any(isinstance(label, float) and label != label // 1 for label in bag):
            raise ValueError(f"Unknown label type: continuous, {bag} of example {i}; labels are names or whole numbers")
    if labels is None:
        labels = sort_labels(list(dict.fromkeys(chain.from_iterable(bags))))
    number = {label: k for k, label in enumerate(labels)}
    for i, bag in enumerate(bags):
        if not bag:
            raise ValueError(f"the set of candidate labels of example {i} is empty; at least one must stand there")
        for label in bag:
            if label not in number:
                raise ValueError(
                    f"example {i} has the candidate {label!r}, which is not one of the model's labels; the first fit "
                    f"settles them (partial_fit can name later ones: classes=): {labels}"
                )
    return labels, [{number[label] for label in bag} for bag in bags]
