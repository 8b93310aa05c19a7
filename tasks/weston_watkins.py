"""The multiclass support vector machine of Weston and Watkins, with biases (Guermeur 2023)."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm._kernels import KERNELS, Gram, Kernel, Rows
from structsvm.callbacks import CallbackSupportMixin, with_callbacks
from structsvm.estimator import checked_sample_weight, monitor_for
from structsvm.gram_rows import GramRows
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.parameters import FLAG, POSITIVE, RANDOM_STATE, Interval, Kind, Options, plain, validate
from structsvm.result import Result
from structsvm.solvers.weston_watkins import SOLVERS, WestonWatkinsRun
from structsvm.tasks.sequence_labels import label_from_json, label_to_json

KIND = "weston_watkins"
TYPES = (np.float64, np.float32)
CHUNK = 1024  # rows to predict at a time


class Function:
    """Anything that can be called: a kernel function."""

    def accepts(self, value):
        return callable(value)

    def __str__(self):
        return "a function"


class WestonWatkinsClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Multiclass support vector machine of Weston and Watkins, with biases.

    One machine for all classes: it minimises

        1/2 sum_k |h_k|^2 + C sum_i sum_{k != y_i} (1 - (f_{y_i}(x_i) - f_k(x_i)))_+,   f_k(x) = <h_k, phi(x)> + b_k

    (problem 1 of Guermeur 2023), by its dual (problem 2), to a certified duality gap.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks. With two classes the machine is `sklearn.svm.SVC` with twice this C.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        As for `sklearn.svm.SVC`. A function takes two matrices of rows and returns the matrix of their kernel values.
        Kernel values are rounded to float32, and so relative gaps below about 1e-6 may be out of reach where the
        kernel matrix has not full rank.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "poly", "rbf" and "sigmoid"; "scale": 1 / (n_features * X.var()), "auto": 1 / n_features.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    tol : float, default=1e-3
        Relative duality gap, (primal - dual) / primal, to stop at.
    max_iter : int, default=1000
        Rounds at most; each improves the dual on one working set of examples.
    cache_size : float, default=200
        Memory for rows of the kernel matrix, in MB. It bounds the working sets; a row for each class has to fit.
    solver : {"cycles", "frank_wolfe"}, default="cycles"
        How a working set is improved: by pair steps and their generalisation to cycles of classes, or by Frank-Wolfe
        (section 5 of the paper), which has the same optimum and a long tail.
    class_weight : dict or "balanced", optional
        Factor on the C of each class's examples.
    random_state : int, RandomState or None
        Without effect: training is deterministic. It is here for searches and scripts that set it on any classifier.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,), int32
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or CSR array of shape (n_SV, n_features)
        Of shape (0, 0) for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), int32
        Support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes, n_SV)
        beta: f_k(x) = sum_s dual_coef_[k, s] k(support_vectors_[s], x) + intercept_[k].
    intercept_ : ndarray of shape (n_classes,)
        The biases: of the optimal ones the middle, with sum zero.
    result_ : Result
        Primal, dual and their gap, recomputed at the end; the history has a row for each round.
    gamma_ : float
        The coefficient of the kernel, "scale" and "auto" worked out.
    n_iter_ : int
        Rounds.
    n_kernel_ : int
        Kernel values computed.
    n_features_in_ : int

    References
    ----------
    J. Weston and C. Watkins, Multi-class support vector machines, Royal Holloway CSD-TR-98-04, 1998.

    Y. Guermeur, Technical documentation of the WW-M-SVM, 2023.
    """

    _constraints = {
        "C": POSITIVE,
        "kernel": (Options(*KERNELS), Function()),
        "gamma": (Options("scale", "auto"), POSITIVE),
        "degree": Interval(Integral, 0),
        "coef0": Interval(Real, -np.inf, closed="neither"),
        "tol": POSITIVE,
        "max_iter": Interval(Integral, 1),
        "cache_size": POSITIVE,
        "solver": Options(*SOLVERS),
        "class_weight": (Options("balanced", None), Kind(dict, "a dict")),
        "random_state": RANDOM_STATE,
        "verbose": FLAG,
    }

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        tol=1e-3,
        max_iter=1000,
        cache_size=200,
        solver="cycles",
        class_weight=None,
        random_state=None,
        verbose=False,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.solver = solver
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on labelled examples.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 and float64 are taken as they are.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's C; examples of weight 0 are left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, values that are not finite, one class only, a precomputed kernel that is not
            square, a function that returns anything but a matrix of kernel values.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.
        """
        validate(self, self._constraints)
        X, y = validate_data(self, X, y, accept_sparse=self._sparse_formats, dtype=TYPES, order="C")
        check_classification_targets(y)
        weight = checked_sample_weight(sample_weight, len(y))
        used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        classes, numbers = np.unique(y[used], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"training needs at least 2 classes, y has one class: {classes[0]!r}")
        factor = compute_class_weight(self.class_weight, classes=classes, y=y[used])
        if not (np.isfinite(factor).all() and (factor > 0.0).all()):
            raise ValueError(f"class_weight must be positive and finite, got {self.class_weight!r}")
        by_class = np.argsort(numbers, kind="stable")
        C = self.C * factor[numbers[by_class]]
        order = used[by_class]
        if weight is not None:
            C *= weight[order]
        gamma = self._gamma(X)
        rows = GramRows(Gram(self._kernel(gamma), Rows(X)), order, self.cache_size)
        start = np.searchsorted(numbers[by_class], np.arange(len(classes) + 1))
        run = WestonWatkinsRun(rows, start, C, self.solver)

        def attributes(run):
            return self._fitted(run, X, gamma, classes, order)

        run.solve(self.tol, self.max_iter, monitor_for(self, X, y, self.max_iter, attributes))
        for name, value in attributes(run).items():
            setattr(self, name, value)
        if run.status == "interrupted":
            raise KeyboardInterrupt(
                f"training was interrupted after {run.n_iter} rounds; the estimator holds the model as it was then"
            )
        return self

    def _gamma(self, X):
        if self.gamma == "auto" or (self.gamma == "scale" and self.kernel == "precomputed"):
            return 1.0 / X.shape[1]
        if self.gamma != "scale":
            return float(self.gamma)
        values = X.data if issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            mean = values.sum(dtype=np.float64) / np.prod(X.shape)
            variance = np.square(values, dtype=np.float64).sum() / np.prod(X.shape) - mean**2
        if not np.isfinite(variance):
            raise ValueError("the variance of X, which gamma='scale' asks for, overflows; scale the features down")
        return 1.0 / (X.shape[1] * float(variance)) if variance > 0.0 else 1.0

    def _kernel(self, gamma):
        return Kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=float(self.coef0))

    @property
    def _sparse_formats(self):
        return False if self.kernel == "precomputed" else "csr"

    def _fitted(self, run, X, gamma, classes, order):
        """What fitting leaves in the estimator, as of now."""
        support = np.flatnonzero(run.beta.any(axis=0))
        return {
            "classes_": classes,
            "support_": order[support].astype(np.int32),
            "support_vectors_": np.empty((0, 0)) if self.kernel == "precomputed" else X[order[support]],
            "n_support_": np.bincount(run.owner[support], minlength=len(classes)).astype(np.int32),
            "dual_coef_": run.beta[:, support],
            "intercept_": run.biases.copy(),
            "result_": run.result(),
            "n_iter_": run.n_iter,
            "n_kernel_": run.rows.gram.n_values,
            "gamma_": gamma,
        }

    # ---- prediction -----------------------------------------------------------------------------

    def decision_function(self, X):
        """Return the scores f_k(x): array (n_samples, n_classes); of two classes f_1 - f_0: array (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=self._sparse_formats, dtype=TYPES, order="C", reset=False)
        kernel, vectors = self._kernel(self.gamma_), self.support_vectors_
        if self.kernel == "precomputed":
            a = b = Rows(X)
            columns = self.support_
        else:
            if issparse(X) and not issparse(vectors):
                X = X.toarray()
            elif issparse(vectors) and not issparse(X):
                X = csr_array(X)
            a, b = Rows(X.astype(vectors.dtype, copy=False)), Rows(vectors)
            columns = np.arange(b.n_rows)
        scores = np.tile(self.intercept_, (a.n_rows, 1))
        for first in range(0, a.n_rows, CHUNK):
            chunk = np.arange(first, min(first + CHUNK, a.n_rows))
            scores[chunk] += kernel.block(a, chunk, b, columns).astype(np.float64) @ self.dual_coef_.T
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Return the class with the greatest score for each row: array (n_samples,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    # ---- files ----------------------------------------------------------------------------------

    def save(self, path):
        """Write the model to one file: arrays and a JSON header, no pickle; `structsvm.load` opens it.

        Raises
        ------
        TypeError
            For a kernel that is a function, and for classes that a file cannot hold. No file has been touched.
        """
        check_is_fitted(self)
        if callable(self.kernel):
            raise TypeError(f"a model file cannot hold the kernel function {self.kernel!r}")
        params = {name: plain(value) for name, value in self.get_params(deep=False).items()}
        if isinstance(self.class_weight, dict):
            params["class_weight"] = [[label_to_json(plain_label(k)), float(v)] for k, v in self.class_weight.items()]
        meta = {
            "params": params,
            "classes": [label_to_json(label) for label in self.classes_.tolist()],
            "gamma": self.gamma_,
            "n_features": self.n_features_in_,
            "n_kernel": self.n_kernel_,
            "sparse": issparse(self.support_vectors_),
            "result": self.result_.to_dict(),
        }
        names = ("support", "n_support", "dual_coef", "intercept")
        arrays = {name: getattr(self, name + "_") for name in names}
        if meta["sparse"]:
            arrays |= {
                f"vectors.{name}": getattr(self.support_vectors_, name) for name in ("data", "indices", "indptr")
            }
        else:
            arrays["vectors"] = self.support_vectors_
        arrays |= {f"history.{name}": column for name, column in self.result_.history.items()}
        write_model(path, KIND, meta, arrays)

    @classmethod
    def load(cls, path, *, mmap=False):
        """Open a file of `save`; ModelFileError if it is not a whole, sound model."""
        file = read_model(path, kind=KIND, mmap=mmap)
        try:
            return cls._from_file(file)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound model of Weston and Watkins: {error}") from error

    @classmethod
    def _from_file(cls, file):
        meta, arrays = file.meta, file.arrays
        params = {name: value for name, value in meta["params"].items() if name in cls().get_params()}
        if isinstance(params["class_weight"], list):
            params["class_weight"] = {label_from_json(label): weight for label, weight in params["class_weight"]}
        self = cls(**params)
        validate(self, cls._constraints)
        if type(meta["n_features"]) is not int or type(meta["n_kernel"]) is not int:
            raise TypeError("counts that are not int")
        self.n_features_in_, self.n_kernel_ = meta["n_features"], meta["n_kernel"]
        self.classes_ = np.array([label_from_json(label) for label in meta["classes"]])
        self.result_ = Result.from_dict(meta["result"], file.under("history."))
        self.n_iter_ = self.result_.n_iter
        for name, kind in (("support", "i"), ("n_support", "i"), ("dual_coef", "f"), ("intercept", "f")):
            if arrays[name].dtype.kind != kind or not np.isfinite(arrays[name]).all():
                raise ValueError(f"an array {name!r} of type {arrays[name].dtype}, or not finite")
            setattr(self, name + "_", arrays[name])
        self.gamma_ = float(meta["gamma"])
        n, Q = len(self.support_), len(self.classes_)
        if meta["sparse"]:
            parts = tuple(arrays[f"vectors.{name}"] for name in ("data", "indices", "indptr"))
            self.support_vectors_ = csr_array(parts, shape=(n, self.n_features_in_))
        else:
            self.support_vectors_ = arrays["vectors"]
        shape = (0, 0) if self.kernel == "precomputed" else (n, self.n_features_in_)
        if (
            not len(set(self.classes_.tolist())) == Q > 1
            or self.dual_coef_.shape != (Q, n)
            or self.intercept_.shape != (Q,)
            or self.n_support_.shape != (Q,)
            or self.support_vectors_.shape != shape
            or (n and not 0 <= self.support_.min() <= self.support_.max())
            or (self.kernel == "precomputed" and n and self.support_.max() >= self.n_features_in_)
        ):
            raise ValueError("arrays that do not fit one another")
        Rows(self.support_vectors_)
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def plain_label(label):
    """A label as Python has it, if it is one of numpy's numbers."""
    return label.item() if isinstance(label, np.generic) else label
