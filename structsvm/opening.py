"""`load`, which opens every kind of model file, and imports what the file is of."""

from __future__ import annotations

import importlib
from typing import Any

from structsvm._warnings import AdviceWarning, warn
from structsvm.model_file import ModelFileError, Origin, name_of, read_header, whole
from structsvm.tasks.registry import names_of


def load(
    path: Origin, *, oracle: Any = None, mmap: bool = False, trusted: bool = False, predictor: bool = False
) -> Any:
    """Open a model file of any task.

    Parameters
    ----------
    path : path-like, bytes, or binary file open for reading
        The file, its contents, or a file or another stream that is read from its position to its end.
    oracle : Oracle, optional
        For models of `StructuredSVM`, whose oracle is code and is not in the file.
    mmap : bool, default=False
        Map the arrays instead of reading them: models of any size open at once, and processes share them.
    trusted : bool, default=False
        Whether to trust the file's author, so that this process may run and open what the file names: a regular
        expression of a text vectorizer other than scikit-learn's own (it may take exponential time), or the path of a
        substitution matrix. No file, trusted or not, contains code.
    predictor : bool, default=False
        Open a `SequenceLabeler` of columns or named features to predict alone, without importing scikit-learn or scipy:
        in a small part of the time and memory. The object has `predict`, `predict_iter`, `predict_marginals` and
        `classes_`, and predicts the same.

    Returns
    -------
    estimator
        A fitted estimator of the class that saved the file; one of `structsvm.risk` with its estimator.

    Raises
    ------
    ModelFileError
        If the file is not a complete, valid model, or needs `trusted`.
    ValueError
        With `predictor`, for a model of another task, of segments or of numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> import structsvm
    >>> from structsvm.tasks import SequenceLabeler
    >>> path = os.path.join(tempfile.mkdtemp(), "tags.model")
    >>> SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).save(path)
    >>> structsvm.load(path).predict([["b", "a"]])
    [['x', 'y']]
    """
    path = whole(path)
    file = read_header(path)
    kind = file.kind
    if predictor:
        if kind != "sequence":
            raise ValueError(
                f"{name_of(path)}: predictor=True opens a SequenceLabeler, and this is a model of {kind!r}"
            )
        return importlib.import_module("structsvm.tasks.sequence.predictor").Predictor.load(path, mmap=mmap)
    if "guarantee" in file.meta:
        return importlib.import_module("structsvm.risk.files").opened(path, mmap=mmap, trusted=trusted)
    if kind == "structured":
        if oracle is None:
            raise ModelFileError(f"{name_of(path)}: a model of StructuredSVM: give its oracle, load(path, oracle=...)")
        return importlib.import_module("structsvm.estimator").StructuredSVM.load(
            path, oracle=oracle, mmap=mmap, trusted=trusted
        )
    names = names_of(kind)
    name = names[0] if len(names) == 1 else file.meta.get("estimator")
    if name not in names:
        raise ModelFileError(f"{name_of(path)}: a model of the task {kind!r}, which this version does not know")
    tasks = importlib.import_module("structsvm.tasks")
    return getattr(tasks, name).load(path, mmap=mmap, trusted=trusted)


def load_estimator(path: Origin) -> Any:
    """Open the estimator of a model file; a promise about its outputs that the file makes is left out, with a warning.

    Raises as `load` does.
    """
    found = load(path)
    if not hasattr(found, "estimator_"):
        return found
    warn(f"{name_of(path)}: its {type(found).__name__} is left out: outputs come without that promise", AdviceWarning)
    return found.estimator_
