"""The generic estimator: any oracle, any solver; and `load`, which opens every kind of model file."""

from __future__ import annotations

import importlib
from functools import wraps

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from structsvm.callbacks import CallbackMonitor, CallbackSupportMixin, with_callbacks
from structsvm.checkpoint import resumed
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.parameters import FLAG, validate
from structsvm.progress import Bar, Monitors
from structsvm.protocol import Oracle
from structsvm.result import Result, result_arrays
from structsvm.solvers import LaRank, Solver
from structsvm.solvers.base import raise_if_interrupted
from structsvm.solvers.stored import solver_from_json, solver_to_json

KIND = "structured"


def checked_sample_weight(sample_weight, n_samples):
    """Return sample weights as float64 array, or None; ValueError unless finite, >= 0 and one a sample."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n_samples},)")
    if not np.isfinite(weight).all() or (weight < 0.0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if n_samples and not weight.any():
        raise ValueError("sample_weight must not be zero for every sample: nothing would be left to learn from")
    return weight


def monitor_for(estimator, X, y, max_iter, attributes, **metadata):
    """The monitors of an estimator's fit: its callbacks (see `CallbackMonitor`), and a bar if it is verbose."""
    callbacks = CallbackMonitor(estimator, X, y, max_iter, attributes, **metadata)
    return Monitors(callbacks, Bar(max_iter, disable=False)) if estimator.verbose else callbacks


def all_or_nothing(method):
    """Make a method that trains leave its estimator as it was, attribute by attribute, if it raises an error.

    Ctrl-C is none: what has been learnt until then stays.
    """

    @wraps(method)
    def train(self, *args, **kwargs):
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    return train


class StructuredSVM(CallbackSupportMixin, BaseEstimator):
    """A structural support vector machine over any oracle.

    Parameters
    ----------
    oracle : Oracle
        The structure: joint feature, loss and inference; an instance of a subclass of `structsvm.Oracle`.
    solver : Solver, optional
        Default: ``LaRank()``. Its parameters are searched over as ``solver__C`` and so on.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one, for another `max_iter` passes over the same examples.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights.
    result_ : Result
        Objectives, certificate, counts, history.
    n_iter_ : int
        Passes over the data.
    """

    _constraints = {"warm_start": FLAG, "verbose": FLAG}

    _run: dict
    _fingerprint: int

    def __init__(self, oracle=None, solver=None, *, warm_start=False, verbose=False):
        self.oracle = oracle
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on examples.

        Parameters
        ----------
        X, y : sequences of equal length
            Inputs and true outputs, of whatever type the oracle takes.
        sample_weight : array-like of shape (n_samples,), optional
            Factor on each example's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters out of range, an oracle that breaks the protocol (`OracleError`), or a
            formulation that it does not offer (`UnsupportedFormulation`).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been put in place.
        """
        return self._train(X, y, sample_weight, resume=self.warm_start and hasattr(self, "_run"))

    @with_callbacks
    def partial_fit(self, X, y, sample_weight=None):
        """One pass over a batch, starting from the present weights w0.

        The batch's own problem is solved around them: minimise ``1/2 |w - w0|^2 + C sum_i xi_i`` over the
        batch; `result_` certifies that. Earlier batches are not looked at again.
        """
        return self._train(X, y, sample_weight, base=getattr(self, "coef_", None), passes=1)

    def _train(self, X, y, sample_weight, *, resume=False, base=None, passes=None):
        if not isinstance(self.oracle, Oracle):
            raise ValueError(
                "The 'oracle' parameter of StructuredSVM must be an instance of a subclass of structsvm.Oracle. "
                f"Got {self.oracle!r} instead."
            )
        solver = LaRank() if self.solver is None else self.solver
        if not isinstance(solver, Solver):
            raise ValueError(f"The 'solver' parameter of StructuredSVM must be a Solver. Got {solver!r} instead.")
        validate(self, self._constraints)
        solver.validate()
        if y is None:
            raise ValueError("StructuredSVM requires y to be passed, but the target y is None")
        problem = self.oracle.bind(X, y, **solver.formulation())
        weight = checked_sample_weight(sample_weight, problem.n_samples)
        run = resumed(solver, problem, self._run, self._fingerprint, sample_weight=weight) if resume else None
        monitor = monitor_for(
            self, X, y, solver.n_passes if passes is None else passes, lambda run: {"coef_": run.weights}
        )
        run = solver.solve(problem, sample_weight=weight, base=base, run=run, monitor=monitor, passes=passes)
        self.coef_, self.result_, self.n_iter_ = run.weights, run.result(), run.n_iter
        self._run, self._fingerprint = run.get_state(), problem.fingerprint()
        raise_if_interrupted(run)
        return self

    def predict(self, X):
        """Return the oracle's argmax for each input, as a list."""
        check_is_fitted(self)
        return [self.oracle.argmax(x, self.coef_) for x in X]

    def score(self, X, y, sample_weight=None):
        """Return minus the mean loss of the predictions: 0 is perfect."""
        predicted = self.predict(X)
        if len(predicted) != len(y):
            raise ValueError(f"X has {len(predicted)} examples, y has {len(y)}")
        losses = [self.oracle.loss(true, guess) for true, guess in zip(y, predicted, strict=True)]
        return -float(np.average(losses, weights=checked_sample_weight(sample_weight, len(losses))))

    def save(self, path):
        """Write weights, solver, result and training state to a model file.

        The oracle is code and is not kept; nor is a solver that is not one of `structsvm.solvers`.
        """
        check_is_fitted(self)
        meta = {
            "oracle": type(self.oracle).__qualname__,
            "solver": None if self.solver is None else solver_to_json(self.solver),
            "warm_start": bool(self.warm_start),
            "verbose": bool(self.verbose),
            "fingerprint": self._fingerprint,
            "result": self.result_.to_dict(),
        }
        arrays = {"coef": self.coef_}
        arrays |= result_arrays(self.result_, self._run)
        write_model(path, KIND, meta, arrays)

    @classmethod
    def load(cls, path, *, oracle, mmap=False):
        """Read a file of `save`; the oracle must be given again."""
        file = read_model(path, kind=KIND, mmap=mmap)
        meta, coef = file.meta, file.arrays.get("coef")
        if meta.get("oracle") != type(oracle).__qualname__:
            raise ModelFileError(
                f"{path}: the model is for the oracle {meta.get('oracle')!r:.80}, not {type(oracle).__qualname__!r}"
            )
        if (
            coef is None
            or coef.shape != (oracle.n_features,)
            or coef.dtype not in (np.float32, np.float64)
            or not np.isfinite(coef).all()
        ):
            raise ModelFileError(f"{path}: no weights for the {oracle.n_features} features of the oracle")
        try:
            self = cls(
                oracle,
                solver_from_json(meta["solver"]),
                warm_start=meta["warm_start"],
                verbose=meta["verbose"],
            )
            validate(self, cls._constraints)
            self.result_ = Result.from_dict(meta["result"], file.under("history."))
            self._fingerprint = int(meta["fingerprint"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound structured model: {error!r}") from error
        self.coef_, self.n_iter_ = coef, self.result_.n_iter
        # Checked where it is used, by `Run.set_state`.
        self._run = file.under("state.") | {f"history_{k}": v for k, v in self.result_.history.items()}
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def load(path, *, oracle=None, mmap=False):
    """Open a model file of any task.

    Parameters
    ----------
    path : path-like
    oracle : Oracle, optional
        For models of `StructuredSVM`, whose oracle is code and is not in the file.
    mmap : bool, default=False
        Map the arrays instead of reading them: models of any size open at once, and processes share them.

    Returns
    -------
    estimator
        Of the class that saved the file, fitted.

    Raises
    ------
    ModelFileError
        If the file is not a whole, sound model.
    """
    file = read_model(path, mmap=True)
    kind = file.kind
    if kind == KIND:
        if oracle is None:
            raise ModelFileError(f"{path}: a model of StructuredSVM: give its oracle, load(path, oracle=...)")
        return StructuredSVM.load(path, oracle=oracle, mmap=mmap)
    # Tasks with several estimators say in the file which one it was.
    name = {
        "alignment": "SequenceAligner",
        "ambiguous": "AmbiguousClassifier",
        "binary": file.meta.get("estimator"),
        "grammar": "GrammarParser",
        "multiclass": file.meta.get("estimator"),
        "semantics": "SemanticParser",
        "sequence": "SequenceLabeler",
        "taxonomy": "TaxonomyClassifier",
    }.get(kind)
    tasks = importlib.import_module("structsvm.tasks")
    if not isinstance(name, str) or name not in tasks.__all__:
        raise ModelFileError(f"{path}: a model of the task {kind!r}, which this version does not know")
    return getattr(tasks, name).load(path, mmap=mmap)
