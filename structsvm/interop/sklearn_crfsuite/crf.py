"""sklearn-crfsuite's estimator over this package's chains, with its model in a CRFsuite file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Self, TypeAlias

from sklearn.base import BaseEstimator

from structsvm.interop import pycrfsuite
from structsvm.interop.crfsuite_log import TrainLogParser
from structsvm.interop.pycrfsuite.items import Token
from structsvm.interop.sklearn_crfsuite._fileresource import FileResource
from structsvm.interop.sklearn_crfsuite.metrics import flat_accuracy_score
from structsvm.interop.sklearn_crfsuite.trainer import LinePerIterationTrainer

__all__ = ["CRF"]

# Parameters that CRFsuite has under another name; others have dots there for underscores.
NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
}
Tokens: TypeAlias = Iterable[Token] | pycrfsuite.ItemSequence
OWN = ("algorithm", "verbose", "model_filename", "keep_tempfiles", "trainer_cls")


class CRF(BaseEstimator):
    """Conditional random field with sklearn-crfsuite's parameters and attributes.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, optional
    min_freq, all_possible_states, all_possible_transitions, c1, c2, max_iterations, num_memories, epsilon, period, \
delta, linesearch, max_linesearch, calibration_eta, calibration_rate, calibration_samples, calibration_candidates, \
calibration_max_trials, pa_type, c, error_sensitive, averaging, variance, gamma : optional
        CRFsuite's parameters; ``structsvm.interop.pycrfsuite.Trainer.help`` describes them. None: its defaults.
    verbose : bool, default=False
    model_filename : path, optional
        File that `fit` writes the model to, and that is read where there was no `fit`. None: memory keeps it.
    keep_tempfiles : bool, default=False
        Whether a temporary file that `modelfile` has written is left at the end.
    trainer_cls : type, optional
        Subclass of `structsvm.interop.pycrfsuite.Trainer`. None: `LinePerIterationTrainer`.

    Attributes
    ----------
    tagger_ : structsvm.interop.pycrfsuite.Tagger or None
        None, as the others: not fitted.
    classes_, attributes_ : list of str
    size_, num_attributes_ : int
        Bytes of the model file, and attributes with weights.
    state_features_, transition_features_ : dict
        Weights by (attribute, label) and by (label before, label).
    modelfile : FileResource
        Its `name` is `model_filename`; where there is none, or it contains another model by now, it is a temporary file
        of the model, written at the first use.
    training_log_ : structsvm.interop.crfsuite_log.TrainLogParser or None

    Examples
    --------
    >>> from structsvm.interop.sklearn_crfsuite import CRF
    >>> X, y = [[{"word": "a"}, {"word": "dog"}], [{"word": "the"}, {"word": "cat"}]], [["D", "N"], ["D", "N"]]
    >>> crf = CRF(c1=0.1, c2=0.1).fit(X, y)
    >>> crf.predict([[{"word": "the"}, {"word": "dog"}]])
    [['D', 'N']]
    """

    training_log_: TrainLogParser | None = None

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | os.PathLike[str] | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: type[pycrfsuite.Trainer] | None = None,
    ) -> None:
        for name, value in list(locals().items()):
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def fit(
        self,
        X: Iterable[Tokens],
        y: Iterable[Sequence[str]],
        X_dev: Iterable[Tokens] | None = None,
        y_dev: Iterable[Sequence[str]] | None = None,
    ) -> Self:
        """Train on sequences of feature dicts; each iteration assesses the `dev` sequences, which have no other use."""
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev belong together: give both, or none")
        params = {name: getattr(self, name) for name in CRF._get_param_names() if name not in OWN}
        trainer = (self.trainer_cls or LinePerIterationTrainer)(
            algorithm=self.algorithm,
            params={
                NAMES.get(name, name.replace("calibration_", "calibration.")): value
                for name, value in params.items()
                if value is not None
            },
            verbose=self.verbose,
        )
        _append(trainer, X, y, 0, "")
        if X_dev is not None and y_dev is not None:
            _append(trainer, X_dev, y_dev, 1, "_dev")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model") if self.model_filename is None else os.fspath(self.model_filename)
            trainer.train(path, holdout=-1 if X_dev is None else 1)
            with open(path, "rb") as file:
                self._data = file.read()
        self._tagger: pycrfsuite.Tagger | None = None
        self._modelfile: FileResource | None = None
        self.training_log_ = trainer.logparser
        return self

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in super().__getstate__().items() if name not in ("_tagger", "_modelfile")}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore a pickle, also one of sklearn-crfsuite."""
        if "modelfile" in state:
            file = state["modelfile"]
            own = {"_data": getattr(file, "data", None), "keep_tempfiles": getattr(file, "keep_tempfiles", False)}
            own["model_filename"] = None if own["_data"] is not None else getattr(file, "name", None)
            theirs = {name: state[name] for name in state if name not in ("modelfile", "_tagger", "_info_cached")}
            state = vars(CRF()) | own | theirs
        super().__setstate__(state)

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[Tokens]) -> list[list[str]]:
        """Labels of each sequence."""
        return [self.predict_single(xseq) for xseq in X]

    def predict_single(self, xseq: Tokens) -> list[str]:
        """Labels of one sequence."""
        return self._opened().tag(xseq)

    def predict_marginals(self, X: Iterable[Tokens]) -> list[list[dict[str, float]]]:
        """Probabilities of the labels of each token, by label."""
        return [self.predict_marginals_single(xseq) for xseq in X]

    def predict_marginals_single(self, xseq: Tokens) -> list[dict[str, float]]:
        """Probabilities of the labels of each token of one sequence."""
        tagger = self._opened()
        labels = tagger.labels()
        return [dict(zip(labels, row, strict=True)) for row in tagger.marginals(xseq).tolist()]

    def score(self, X: Iterable[Tokens], y: Sequence[Sequence[str]]) -> float:
        """Share of tokens whose label is right."""
        return flat_accuracy_score(y, self.predict(X))

    # ---- the model ------------------------------------------------------------------------------

    @property
    def tagger_(self) -> pycrfsuite.Tagger | None:
        if getattr(self, "_tagger", None) is None:
            tagger, data = pycrfsuite.Tagger(), getattr(self, "_data", None)
            if data is not None:
                tagger.open_inmemory(data)
            elif self.model_filename is not None and os.path.exists(self.model_filename):
                tagger.open(self.model_filename)
            else:
                return None
            self._tagger = tagger
        return self._tagger

    @property
    def modelfile(self) -> FileResource:
        data = getattr(self, "_data", None)
        if self.model_filename is not None and (data is None or _contains(self.model_filename, data)):
            return FileResource(self.model_filename)
        found: FileResource | None = getattr(self, "_modelfile", None)
        if found is None:
            found = self._modelfile = FileResource(None, data, self.keep_tempfiles)
        return found

    def _opened(self) -> pycrfsuite.Tagger:
        tagger = self.tagger_
        if tagger is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this CRF is not fitted yet: call fit, or give a model_filename that is there")
        return tagger

    @property
    def _info(self) -> pycrfsuite.ParsedDump | None:
        return None if self.tagger_ is None else self.tagger_.info()

    @property
    def classes_(self) -> list[str] | None:
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        return None if (info := self._info) is None else int(info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        return None if (info := self._info) is None else len(info.attributes)

    @property
    def attributes_(self) -> list[str] | None:
        return None if (info := self._info) is None else list(info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        return None if (info := self._info) is None else info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        return None if (info := self._info) is None else info.transitions


def _append(trainer: pycrfsuite.Trainer, X: Iterable[Tokens], y: Iterable[Sequence[str]], group: int, dev: str) -> None:
    """Append sequences and labels, whose names end with `dev`."""
    n, ys, end = 0, iter(y), list[str]()
    for n, x in enumerate(X, 1):
        if (labels := next(ys, end)) is end:
            raise ValueError(f"y{dev} has {n - 1} sequences, and X{dev} has more")
        trainer.append(x, labels, group)
    if next(ys, end) is not end:
        raise ValueError(f"X{dev} has {n} sequences, and y{dev} has more")
    if not n:
        raise ValueError(f"X{dev} has no sequences")


def _contains(path: str | os.PathLike[str], data: bytes) -> bool:
    """Whether there is a file with this content."""
    try:
        with open(path, "rb") as file:
            return file.read() == data
    except OSError:
        return False
