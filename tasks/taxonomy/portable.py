"""Classifiers of texts in the binary file of the runtime in C; `structsvm.export` has the layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.export.binary import RuntimeFile
from structsvm.export.folders import files_of
from structsvm.export.page import page_of
from structsvm.export.texts import TermValues, add_terms, check_vectorizer, refusal, shown, units_of
from structsvm.export.weights import form_of
from structsvm.tasks.taxonomy.linear import LinearTaxonomyModel

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

    from structsvm.arrays import Floats
    from structsvm.tasks.taxonomy.model import TaxonomyModel

TARGETS = ("c", "wasm", "page")
KIND, NAME = 2, "TaxonomyClassifier"
MOST_DENSE = 1 << 28  # weights of lists that are written as whole rows


def runtime_files(model: TaxonomyModel, to: str) -> dict[str, bytes]:
    """The files of a folder for "c", "wasm" or "page".

    Raises
    ------
    ValueError
        As `runtime_bytes`.
    ImportError
        If WebAssembly is asked for and cannot be compiled.
    """
    data = runtime_bytes(model)
    if to != "page":
        return files_of(to, data, "documents")
    return page_of(files_of("wasm", data, "documents"), "Class of a text", shown(model.vectorizer), "classifier.html")


def runtime_bytes(model: TaxonomyModel) -> bytes:
    """The file of a model for the runtime.

    Raises
    ------
    ValueError
        For a model that the runtime does not support; the message names what it has.
    """
    vectorizer, linear = supported(model)
    values, attributes, matrix = TermValues.of(vectorizer), model.targets.attributes, rows_of_weights(linear)
    base, first, attribute, value, scale, position = attributes.arrays
    form, file = form_of(matrix, attributes.n_attributes), RuntimeFile()
    file.add("<u4", [
        KIND, len(model.labels), 1, units_of(vectorizer), bool(vectorizer.lowercase), *vectorizer.ngram_range,
        len(vectorizer.vocabulary_), model.intercept, form.number, attributes.n_attributes, attributes.n_positions,
        len(matrix), linear.oracle.n_full, values.flags, values.norm,
    ])  # fmt: skip
    file.add("<f8", [model.temperature or 0.0])
    file.add_texts(model.labels.tolist())
    add_terms(file, vectorizer)
    add_columns(file, linear)
    for dtype, array in form.arrays:
        file.add(dtype, array)
    for dtype, items in (
        ("<u4", base), ("<u4", first), ("<u4", attribute), ("<f4", value), ("<f4", scale), ("<u4", position),
    ):  # fmt: skip
        file.add(dtype, items)
    return file.contents()


def supported(model: TaxonomyModel) -> tuple[CountVectorizer, LinearTaxonomyModel]:
    """The vectorizer and the model; ValueError, naming it, for what the runtime does not have."""
    vectorizer = model.vectorizer
    if not isinstance(model, LinearTaxonomyModel):
        raise ValueError(refusal(NAME, "a kernel"))
    if vectorizer is None:
        raise ValueError(refusal(NAME, "rows of numbers: it is texts, with a vectorizer, that the runtime reads"))
    for holds, what in [
        (not model.leaf_only, "inner nodes that are predicted (leaf_only=False)"),
        (not all(isinstance(label, str) for label in model.labels.tolist()), "labels that are not str"),
        (model.is_standardized, "standardised columns"),
    ]:
        if holds:
            raise ValueError(refusal(NAME, what))
    check_vectorizer(vectorizer, NAME)
    return vectorizer, model


def add_columns(file: RuntimeFile, model: LinearTaxonomyModel) -> None:
    """Limits and units of features, and their rows of weights."""
    units, none = model.units, np.zeros(0)
    low, high = (none, none) if units is None or units.limits is None else units.limits
    for items in (low, high, none if units is None or (units.scale == 1.0).all() else units.scale):
        file.add("<f4", items)
    file.add("<u4", none if model.rows.row is None else model.rows.row.astype(np.int64) % (1 << 32))


def rows_of_weights(model: LinearTaxonomyModel) -> Floats:
    """All rows, those of lists with zeros: array (n_rows, n_attributes)."""
    oracle, n = model.oracle, model.targets.attributes.n_attributes
    if model.rows.lists is not None and model.rows.n_rows * n > MOST_DENSE:
        raise ValueError(refusal(NAME, f"{model.rows.n_rows} features and {n} nodes, which have lists of weights,"))
    found = np.zeros((model.rows.n_rows, n), dtype=np.float32)
    n_full, places = oracle.n_full, oracle.n_full * oracle.stride
    found[:n_full] = model.weights[:places].reshape(n_full, oracle.stride)[:, :n]
    if model.rows.lists is not None:
        indptr, listed = model.rows.lists
        found[np.repeat(np.arange(n_full, len(found)), np.diff(indptr)), listed] = model.weights[places:]
    return found
