"""Classifiers of texts in the binary file of the runtime in C; `structsvm.export` has the layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.export.binary import RuntimeFile, StringTable
from structsvm.export.folders import files_of
from structsvm.export.letters import LetterTable
from structsvm.export.page import page_of
from structsvm.export.weights import form_of
from structsvm.features.columns import Vocabulary
from structsvm.tasks.taxonomy.linear import LinearTaxonomyModel
from structsvm.tasks.taxonomy.vectorizer import TOKEN_PATTERNS, VECTORIZERS

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

    from structsvm.arrays import Floats
    from structsvm.tasks.taxonomy.model import TaxonomyModel

TARGETS = ("c", "wasm", "page")
KIND = 2
# Units of terms, as the runtime numbers them: words by their pattern, letters.
UNITS = {**{pattern: number for number, pattern in enumerate(TOKEN_PATTERNS)}, "char": 3, "char_wb": 4}
NORMS = {None: 0, "l1": 1, "l2": 2}
IS_BINARY, IS_NARROW = 1, 2
N_LOGS = 256  # logarithms of counts that are in a file, as NumPy rounds them
MOST_DENSE = 1 << 28  # weights of lists that are written as whole rows
N_SHOWN = 12  # words on a page


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


def shown(vectorizer: CountVectorizer) -> str:
    """A text of terms that the model knows."""
    names = vectorizer.get_feature_names_out()
    return " ".join(names[:: -(-len(names) // N_SHOWN)])


def runtime_bytes(model: TaxonomyModel) -> bytes:
    """The file of a model for the runtime.

    Raises
    ------
    ValueError
        For a model that the runtime does not support; the message names what it has.
    """
    vectorizer, linear = supported(model)
    values, attributes, matrix = term_values(vectorizer), model.targets.attributes, rows_of_weights(linear)
    base, first, attribute, value, scale, position = attributes.arrays
    form, file = form_of(matrix, attributes.n_attributes), RuntimeFile()
    file.add("<u4", [
        KIND, len(model.labels), 1, units_of(vectorizer), bool(vectorizer.lowercase), *vectorizer.ngram_range,
        len(vectorizer.vocabulary_), model.intercept, form.number, attributes.n_attributes, attributes.n_positions,
        len(matrix), linear.oracle.n_full, values.flags, NORMS[values.norm],
    ])  # fmt: skip
    file.add("<f8", [model.temperature or 0.0])
    file.add_texts(model.labels.tolist())
    LetterTable.of_python().add_to(file)
    add_terms(file, vectorizer, values)
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
        raise ValueError(refusal("a kernel"))
    if vectorizer is None:
        raise ValueError(refusal("rows of numbers: it is texts, with a vectorizer, that the runtime reads"))
    for holds, what in [
        (not model.leaf_only, "inner nodes that are predicted (leaf_only=False)"),
        (not all(isinstance(label, str) for label in model.labels.tolist()), "labels that are not str"),
        (model.is_standardized, "standardised columns"),
    ]:
        if holds:
            raise ValueError(refusal(what))
    check_vectorizer(vectorizer)
    return vectorizer, model


def refusal(what: str) -> str:
    """The message for a model with something that the runtime does not have."""
    return f"a TaxonomyClassifier with {what} cannot be exported: the runtime does not support them"


def check_vectorizer(vectorizer: CountVectorizer) -> None:
    """Raise ValueError for a vectorizer that reads texts otherwise than the runtime."""
    name = type(vectorizer).__name__
    if name not in VECTORIZERS:
        raise ValueError(refusal(f"texts of a {name}"))
    if vectorizer.input != "content":
        raise ValueError(refusal(f"the input={vectorizer.input!r} of its vectorizer"))
    for key in ("preprocessor", "tokenizer", "strip_accents"):
        if (value := getattr(vectorizer, key)) is not None:
            raise ValueError(refusal(f"the {key}={value!r:.60} of its vectorizer"))
    if vectorizer.analyzer not in ("word", "char", "char_wb"):
        raise ValueError(refusal(f"the analyzer={vectorizer.analyzer!r:.60} of its vectorizer"))
    if vectorizer.analyzer == "word" and vectorizer.token_pattern not in TOKEN_PATTERNS:
        raise ValueError(refusal(f"the token_pattern={vectorizer.token_pattern!r:.60} of its vectorizer"))


def units_of(vectorizer: CountVectorizer) -> int:
    """The number of the units that terms consist of."""
    return UNITS[vectorizer.token_pattern if vectorizer.analyzer == "word" else vectorizer.analyzer]


class TermValues(NamedTuple):
    """How the counts of terms become values: flags, norm, 1 + log(count) of the counts 1, 2, ..., factors of terms."""

    flags: int
    norm: str | None
    logs: Floats
    idf: Floats


def term_values(vectorizer: CountVectorizer) -> TermValues:
    """The values of a vectorizer's terms."""
    flags, none = IS_BINARY * bool(vectorizer.binary), np.zeros(0)
    if type(vectorizer).__name__ == "CountVectorizer":
        return TermValues(flags, None, none, none)
    is_narrow = np.dtype(vectorizer.dtype) == np.float32
    counts: Floats = np.arange(1.0, N_LOGS + 1.0).astype(np.float32 if is_narrow else np.float64)
    logs: Floats = np.log(counts) + 1.0
    idf = np.asarray(vectorizer.idf_, dtype=np.float64) if vectorizer.use_idf else none
    if not np.isfinite(idf).all():
        raise ValueError(refusal("infinite inverse document frequencies"))
    return TermValues(flags + IS_NARROW * is_narrow, vectorizer.norm, logs if vectorizer.sublinear_tf else none, idf)


def add_terms(file: RuntimeFile, vectorizer: CountVectorizer, values: TermValues) -> None:
    """Terms with their features, stop words, and what values are computed from."""
    names = Vocabulary.from_strings(sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get))
    table = StringTable.of(names.data, names.starts)
    table.add_to(file)
    stops = Vocabulary.from_strings(sorted((vectorizer.analyzer == "word" and vectorizer.get_stop_words()) or ()))
    StringTable.of(stops.data, stops.starts).add_to(file)
    file.add("<u4", table.order)
    file.add("<f8", values.logs)
    file.add("<f8", values.idf)


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
        raise ValueError(refusal(f"{model.rows.n_rows} features and {n} nodes, which have lists of weights,"))
    found = np.zeros((model.rows.n_rows, n), dtype=np.float32)
    n_full, places = oracle.n_full, oracle.n_full * oracle.stride
    found[:n_full] = model.weights[:places].reshape(n_full, oracle.stride)[:, :n]
    if model.rows.lists is not None:
        indptr, listed = model.rows.lists
        found[np.repeat(np.arange(n_full, len(found)), np.diff(indptr)), listed] = model.weights[places:]
    return found
