"""``predict`` by chains that `Predictor` opens: labels and their probabilities, without what trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import structsvm.cli.output as out
from structsvm.cli.sequence.attributes import labels_text, sequences_of
from structsvm.cli.task import Wanted
from structsvm.features.columns import ColumnPieces, Vocabulary
from structsvm.features.tables.forms import Form, Reading
from structsvm.model_file import read_header
from structsvm.tasks.sequence.predictor import Predictor, is_opened


def opened(path: str, *, needs_probabilities: bool) -> Predictor | None:
    """The predictor of a file; None for one that it does not open, or whose scores are no probabilities."""
    if not is_opened(read_header(path)):
        return None
    model = Predictor.load(path)
    return model if model.has_probabilities or not needs_probabilities else None


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The input's columns, then the predicted label and with `confidence` its probability; of attributes labels alone.

    The input is labelled as it is read, piece by piece, and held no longer.
    """
    if model.encoder.kind == "attributes":
        yield from labels_text(sequences_of(path), wanted, model.predict, None, chances_of_labels(model))
        return
    pieces = ColumnPieces(out.source(path), None, out.reading(model.reading), n_columns(model))
    yield from in_threads(
        wanted.jobs, lambda piece: labelled_text(model, pieces, piece, wanted), checked(pieces, out.reading())
    )


def checked(pieces: ColumnPieces, given: Reading) -> Iterator[Any]:
    """The pieces, once the file has the columns that options name."""
    for piece in pieces:
        check_given(pieces.form, given)
        yield piece


def check_given(form: Form, given: Reading) -> None:
    """Raise ColumnFileError for a column that an option names and the file does not have; it may lack a model's.

    A label it may lack in any case.
    """
    for column in [*(given.columns or ()), *([] if given.sequence is None else [given.sequence])]:
        form.place(column)


def in_threads(jobs: int, text_of: Callable[[Any], str], pieces: Iterable[Any]) -> Iterator[str]:
    """Texts of pieces, in their order."""
    if jobs == 1:
        yield from map(text_of, pieces)
        return
    from structsvm.dual.parallel import parallel_stream  # imports what trains

    yield from parallel_stream(text_of, pieces, jobs)


def chances_of_labels(model: Any) -> Callable[[Any, Any], Any]:
    """The function that returns the probability of the label that is predicted for each token of a sequence."""

    def chances(x: Any, _labels: Any) -> Any:
        ids = model.predict_tokens(model.encode([x]))
        return model.marginals([x])[0][np.arange(len(ids)), ids]

    return chances


def labelled_text(model: Any, pieces: ColumnPieces, piece: Any, wanted: Wanted) -> str:
    """Columns, then the best label of each token, and with `confidence` its probability."""
    columns = pieces.parse(piece)
    X = columns_of_features(model, columns, pieces.form)
    tokens = model.encode(X)
    label_ids = model.predict_tokens(tokens)
    names, ids = model.shown_tokens(label_ids, tokens.offsets)
    columns = columns.with_column(ids, Vocabulary.from_strings(names))
    if wanted.confidence:
        chances = np.concatenate(model.marginals(X))[np.arange(len(label_ids)), label_ids]
        texts = Vocabulary.from_strings([f"{p:.6f}" for p in chances.tolist()])
        columns = columns.with_column(np.arange(len(chances), dtype=np.int32), texts)
    return columns.to_bytes().decode("utf-8", "surrogatepass")


def n_columns(model: Any) -> int:
    """The columns of a token in a model; ValueError if it has none."""
    n: int | None = model.encoder.n_columns
    if n is None:
        raise ValueError("this model was trained on Python data, not on columns; predict with structsvm.load")
    return n


def columns_of_features(model: Any, columns: Any, form: Any) -> Any:
    """The columns that the model's features need, without the label column."""
    n = n_columns(model)
    if columns.n_columns - form.has_label != n:
        raise ValueError(
            f"{form.name}: has {columns.n_columns} columns; the model was trained on {n} and a label: a line is one "
            "token, and an empty line ends a sequence"
        )
    return columns.drop_last() if form.has_label else columns
