"""Classifiers learnt from candidates in the binary file of the runtime in C; `structsvm.export` has the layout.

Scores are sums in float64, of weights as they are, or of those of a compact model in fewer bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.export.binary import RuntimeFile
from structsvm.export.folders import files_of
from structsvm.export.page import page_of
from structsvm.export.texts import NUMBERS, TermValues, add_terms, check_vectorizer, refusal, shown, units_of
from structsvm.export.weights import Form, form_of

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

    from structsvm.arrays import Floats
    from structsvm.tasks.ambiguous.model import AmbiguousModel

TARGETS = ("c", "wasm", "page")
KIND, NAME = 2, "AmbiguousClassifier"
IS_WIDE, WIDE_WEIGHTS = 4, 7


def runtime_files(model: AmbiguousModel, vectorizer: CountVectorizer | None, to: str) -> dict[str, bytes]:
    """The files of a folder for "c", "wasm" or "page"; of texts with a vectorizer.

    Raises
    ------
    ValueError
        As `runtime_bytes`; for a page of rows of numbers.
    ImportError
        If WebAssembly is asked for and cannot be compiled.
    """
    data = runtime_bytes(model, vectorizer)
    if to != "page":
        return files_of(to, data, "documents")
    if vectorizer is None:
        raise ValueError('a page labels texts, and this model reads rows of numbers: to="c" or to="wasm"')
    return page_of(files_of("wasm", data, "documents"), "Label of a text", shown(vectorizer), "classifier.html")


def runtime_bytes(model: AmbiguousModel, vectorizer: CountVectorizer | None) -> bytes:
    """The file of a model for the runtime.

    Raises
    ------
    ValueError
        For what the runtime does not support; the message names it.
    """
    check(model, vectorizer)
    K, n = len(model.labels), model.columns["n_features_in_"]
    form, file = weights_in(model.weights.reshape(-1, K)), RuntimeFile()
    values = None if vectorizer is None else TermValues.of(vectorizer)
    reading = [NUMBERS, 0, 1, 1] if vectorizer is None else reading_of(vectorizer)
    flags, norm = (0, 0) if values is None else (values.flags, values.norm)
    n_rows = n + model.has_intercept
    file.add("<u4", [
        KIND, K, 1, *reading, n, model.has_intercept, form.number, K, 1, n_rows, n_rows, flags + IS_WIDE, norm,
    ])  # fmt: skip
    file.add("<f8", [model.temperature or 0.0])
    file.add_texts([str(label) for label in model.labels])
    if vectorizer is not None:
        add_terms(file, vectorizer)
    add_units(file, model)
    for dtype, array in form.arrays:
        file.add(dtype, array)
    return file.contents()


def check(model: AmbiguousModel, vectorizer: CountVectorizer | None) -> None:
    """Raise ValueError, naming it, for what the runtime does not have."""
    if not all(isinstance(label, str) for label in model.labels):
        raise ValueError(refusal(NAME, "labels that are not str"))
    if vectorizer is None:
        return
    check_vectorizer(vectorizer, NAME)
    n = model.columns["n_features_in_"]
    if len(vectorizer.vocabulary_) != n:
        raise ValueError(f"the vectorizer has {len(vectorizer.vocabulary_)} terms, and the model {n} columns")
    if model.units is not None and model.units.centre is not None:
        raise ValueError(
            refusal(NAME, "texts whose counts are standardised (standardize=False leaves them as they are)")
        )


def reading_of(vectorizer: CountVectorizer) -> list[int]:
    """How texts become terms: their units, whether in lower case, the least and the most units."""
    return [units_of(vectorizer), int(vectorizer.lowercase), *vectorizer.ngram_range]


def weights_in(weights: Floats) -> Form:
    """Weights by feature and label: as float64, or as one of `form_of` where float32 or fewer bits are enough."""
    narrow = weights.astype(np.float32)
    return form_of(narrow, weights.shape[1]) if (narrow == weights).all() else Form(WIDE_WEIGHTS, [("<f8", weights)])


def add_units(file: RuntimeFile, model: AmbiguousModel) -> None:
    """Limits of columns, their centres, and what then multiplies them, or without centres divides them."""
    units, none = model.units, np.zeros(0)
    low, high = (none, none) if units is None or units.limits is None else units.limits
    file.add("<f8", low)
    file.add("<f8", high)
    if units is not None and units.centre is not None:
        file.add("<f8", units.centre)
        file.add("<f8", 1.0 / units.scale)
        return
    file.add("<f8", none)
    file.add("<f8", none if units is None or (units.scale == 1.0).all() else units.scale)
