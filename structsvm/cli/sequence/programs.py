"""The commands for model files of other programs: predict, evaluate and inspect with models of Wapiti, CRF++, ..."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.sequence.attributes import labels_text, read_input
from structsvm.cli.sequence.command import ranked_text, scored
from structsvm.cli.task import Task, Wanted
from structsvm.dual.parallel import parallel_stream
from structsvm.features.columns import ColumnPieces, Columns, Vocabulary, read_form
from structsvm.features.sources import ColumnFileError, load_text
from structsvm.interop.chain_model import PROGRAMS, ChainModel
from structsvm.interop.kinds import read_chain
from structsvm.metrics import scheme_of
from structsvm.parameters import printable

# Fields of a line of Wapiti's, which ASCII's blanks alone part.
FIELDS = re.compile(r"[^ \t\r\v\f]+")


def predict(model: ChainModel, path: str, wanted: Wanted) -> Iterator[str]:
    """Columns with the label behind them; of a model without patterns the labels alone."""
    if not model.patterns:
        yield from labels_text(tokens_of(model, path)[0], wanted, model.predict, model.predict_kbest, chances_of(model))
        return
    pieces = ColumnPieces(out.source(path), None, out.reading())

    def text_of(piece: Any) -> str:
        columns = pieces.parse(piece)
        check_width(model, columns)
        X = rows(columns)
        return (
            labelled_text(model, columns, X, wanted) if wanted.kbest is None else ranked_text(model, columns, X, wanted)
        )

    yield from parallel_stream(text_of, pieces, wanted.jobs)


def labelled_text(model: ChainModel, columns: Columns, X: Any, wanted: Wanted) -> str:
    """Columns, then the label of each token, and with `confidence` its probability."""
    number = {label: k for k, label in enumerate(model.labels)}
    predicted = model.predict(X)
    ids = np.array([number[label] for labels in predicted for label in labels], dtype=np.int32)
    labelled = columns.with_column(ids, Vocabulary.from_strings(model.labels))
    if wanted.confidence:
        chances = [p for x, labels in zip(X, predicted, strict=True) for p in chances_of(model)(x, labels)]
        texts = Vocabulary.from_strings([f"{p:.6f}" for p in chances])
        labelled = labelled.with_column(np.arange(len(chances), dtype=np.int32), texts)
    return labelled.to_bytes().decode("utf-8", "surrogatepass")


def chances_of(model: ChainModel) -> Any:
    """The function of a sequence and its labels that returns their probabilities."""
    number = {label: k for k, label in enumerate(model.labels)}

    def chances(x: Any, labels: Sequence[str]) -> list[float]:
        return [float(row[number[label]]) for row, label in zip(model.predict_marginals([x])[0], labels, strict=True)]

    return chances


def evaluate(model: ChainModel, path: str, _jobs: int) -> tuple[dict[str, Any], str, Any]:
    """Token accuracy, and chunk scores of labels that have a scheme."""
    X: Any
    if model.patterns:
        columns, _ = read_form(out.source(path), out.reading())
        check_width(model, columns, 1)
        X, gold = rows(columns), columns.column(-1)
    else:
        X, gold = tokens_of(model, path)
    return scored(gold, model.predict(X), model.labels, scheme_of(set(model.labels)), None)


def rows(columns: Columns) -> list[list[tuple[str, ...]]]:
    """Tokens with all columns."""
    return [[(token,) if isinstance(token, str) else token for token in sequence] for sequence in columns]


def check_width(model: ChainModel, columns: Columns, n_labels: int = 0) -> None:
    """Raise ColumnFileError if a file has fewer columns than the model's patterns read."""
    if columns.n_columns < model.n_columns + n_labels:
        more = " and a label" * n_labels
        raise ColumnFileError(
            f"{columns.name}: has {columns.n_columns} columns; the model's patterns read {model.n_columns}{more}"
        )


def tokens_of(model: ChainModel, path: str) -> tuple[Any, list[list[str]]]:
    """Tokens with their attributes, and labels: CRFsuite's text, or of Wapiti observations and, last, the label."""
    if model.kind != "wapiti":
        return read_input(path)
    text, name = load_text(out.source(path), ColumnFileError)
    blocks: list[list[list[str]]] = [[]]
    for fields in map(FIELDS.findall, text.split("\n")):
        if fields:
            blocks[-1].append(fields)
        elif blocks[-1]:
            blocks.append([])
    X = blocks if blocks[-1] else blocks[:-1]
    if not X:
        raise ColumnFileError(f"{name}: no tokens")
    return X, [[fields[-1] for fields in x] for x in X]


# ---------------------------------------------------------------------------------------- inspect


def weights_of(model: ChainModel, label: int) -> tuple[np.ndarray, np.ndarray]:
    """Attributes with weights of a label, and these."""
    its = model.states.targets == label
    return model.states.rows()[its], model.states.weights[its]


def inspect(model: ChainModel, top: int, only: Sequence[str]) -> None:
    """Describe the model, with its heaviest weights."""
    shown = out.chosen(only, model.labels)
    n_pairs = 0 if model.pairs is None else len(model.pairs.weights)
    what = "each token by itself" if model.independent else "exact inference of order 1"
    click.echo(f"task: sequence, {what}, from a file of {PROGRAMS[model.kind]}")
    click.echo(
        printable(
            f"{len(model.attributes)} features, {len(model.patterns)} patterns, {len(model.states.weights)} weights of "
            f"labels, {n_pairs} of pairs, {len(model.labels)} labels: {', '.join(model.labels)}"
        )
    )
    for k, label in shown:
        click.echo(f"\n{label}")
        rows, weights = weights_of(model, k)
        out.heaviest(weights, top, lambda j, rows=rows: model.attributes[rows[j]])


def contents(model: ChainModel, top: int, only: Sequence[str]) -> dict[str, Any]:
    """Contents for ``inspect --json``."""
    found: dict[str, Any] = {"task": "sequence", "program": PROGRAMS[model.kind], "labels": model.labels}
    found |= {"patterns": [pattern.source for pattern in model.patterns], "n_features": len(model.attributes)}
    found["weights"] = {}
    for k, name in out.chosen(only, model.labels):
        rows, weights = weights_of(model, k)
        best = np.argsort(-np.abs(weights), kind="stable")[:top]
        found["weights"][name] = [(model.attributes[rows[j]], float(weights[j])) for j in best.tolist()]
    return found


UNDRAWN = {"inspect": "draws trainings, and model files of other programs have none"}
TASK = Task(None, read_chain, predict, evaluate, inspect, None, undrawn=UNDRAWN, has_columns=True, contents=contents)
