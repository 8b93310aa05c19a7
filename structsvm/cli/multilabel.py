"""The commands for sets of labels, on files in svmlight format with the labels of a row between commas."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm._warnings import AdviceWarning, warn
from structsvm.cli.machines import DENSE, SEVERAL
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import UNKNOWN, Training, flag, option_of, training
from structsvm.features.inputs.places import PlacedRows
from structsvm.features.svmlight import label_values, read_rows
from structsvm.metrics._counts import is_unknown, mark_for, say_unknown
from structsvm.tasks.common.examples import doubt_of_outputs
from structsvm.tasks.multilabel.estimator import MultilabelClassifier


def sets_of(path: str, model: Any = None, *, needs_labels: bool = True) -> tuple[Any, list[list[str]], int, Any]:
    """Return ``(X, labels, first_index, places)`` of a file: labels as text; the model's features, if given."""
    rows = read_rows(out.source(path), None if model is None else model.model_.first_index, may_lack=True)
    labels = [[name for name in text.split(",") if name] for text in rows.labels or []]
    if needs_labels and not any(labels):
        raise ValueError(f"{path}, line {rows.lines[0]}: no line has a label, but features alone")
    places = PlacedRows(path, rows.lines)
    X = rows.X if model is None else out.widened(rows.X, path, model.n_features_in_)
    return (X if X.nnz < DENSE * X.shape[0] * X.shape[1] else X.toarray()), labels, rows.first_index, places


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The labels of each row between commas, or each with its probability."""
    if wanted.kbest is not None:
        raise ValueError("--kbest is for models of one output; this one predicts a set of labels for each row")
    model.set_params(n_jobs=wanted.jobs)
    X, *_ = sets_of(path, model, needs_labels=False)
    chosen = model.decision_function(X) > 0.0
    names = list(map(str, model.classes_))
    if not wanted.confidence:
        yield from (",".join(names[k] for k in np.flatnonzero(row)) + "\n" for row in chosen)
        return
    for row, chances in zip(chosen, model.predict_proba(X), strict=True):
        yield "\t".join(f"{names[k]} {chances[k]:.6f}" for k in np.flatnonzero(row)) + "\n"


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """Accuracy of whole sets, Hamming loss and F1 of labels; labels that training did not have are never predicted."""
    model.set_params(n_jobs=jobs)
    X, labels, *_ = sets_of(path, model)
    known = {str(name): k for k, name in enumerate(model.classes_)}
    found = model.decision_function(X) > 0.0
    mark = mark_for(model.unknown, known)
    says = [len(row) != 1 or not is_unknown(row[0], mark) for row in labels]
    if not any(says):
        raise ValueError(f"{path}: the rows have no labels to compare with")
    say_unknown((row[0] for row in labels if len(row) == 1), mark, None, "rows that the scores leave out")
    n_unknown, labels, found = len(says) - sum(says), [*compress(labels, says)], found[says]
    true = np.zeros_like(found)
    strange = np.zeros(len(labels), dtype=np.int64)
    for i, names in enumerate(labels):
        true[i, [known[name] for name in names if name in known]] = True
        strange[i] = len({*names} - known.keys())
    wrong = (found != true).sum(axis=1) + strange
    total = int(found.sum() + true.sum() + strange.sum())
    scores = {
        "accuracy": float(np.mean(wrong == 0)),
        "hamming_loss": float(wrong.mean() / len(known)),
        "f1": 2.0 * int((found & true).sum()) / total if total else 1.0,
        "n_samples": len(labels),
        "n_unknown": n_unknown,
    }
    text = (
        f"{len(labels)} rows: accuracy of sets {100 * scores['accuracy']:.2f}%, Hamming loss "
        f"{scores['hamming_loss']:.4f}, F1 of labels {100 * scores['f1']:.2f}%"
    )
    if strange.any():
        text += f"; {strange.sum()} labels are none of training's, and count as errors"
    return scores, text, None


def row_of(labels: set[Any], unknown: object) -> Any:
    """The labels of a row; its mark, if that is the only one."""
    first = next(iter(labels), None)
    return first if len(labels) == 1 and is_unknown(first, unknown) else labels


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with the heaviest weights of each label."""
    shown = out.chosen(only, model.classes_)
    text = f"task: multilabel, {len(model.classes_)} labels, {len(model.edges_)} pairs of them have weights"
    out.heading(model.model_, text, None, f"{model.n_features_in_} features")
    for k, name in shown:
        click.echo(f"\n{name}")
        out.heaviest(model.coef_[k], top, lambda j: f"feature {j + out.first_index(model.model_)}")


def demo(seed: int) -> Any:
    """Train on simulated rows with sets of labels, evaluate on fresh ones, draw the training history."""
    from structsvm.datasets import make_label_sets

    click.echo("simulating 400 rows with sets of labels, and 400 to test on")
    X, y = make_label_sets(800, random_state=seed)
    model = MultilabelClassifier(C=1.0, random_state=seed).fit(X[:400], y[:400])
    click.echo(f"accuracy of sets {100 * model.score(X[400:], y[400:]):.2f}%")
    click.echo(model.result_.certificate())
    return out.history(model.model_)


@training(plot="Save the training history as a picture.")
@option_of(MultilabelClassifier, "loss")
@option_of(MultilabelClassifier, "interactions", "Pairs of labels that have weights.")
@UNKNOWN
@flag("--probability", "Fit what predict --confidence needs, on held-out rows.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a classifier of sets of labels.

    A line of TRAIN is a row in svmlight format: its labels between commas, "1,3 2:0.5 7:1", and index:value pairs. A
    line without labels has none of them.
    """
    before = None if job.warm_start is None else MultilabelClassifier.load(job.warm_start)
    X, labels, first_index, job.read = sets_of(path, before)
    names = sorted({name for row in labels for name in row})
    for name in [name for name in names if SEVERAL.search(name)][:1]:
        warn(f"{name!r:.40} is one label: several stand between commas, as in '1,3'", AdviceWarning)
    value = dict(zip(names, label_values(names).tolist(), strict=True))
    if before is None:
        if doubt := doubt_of_outputs(np.array([set(row) != set(labels[0]) for row in labels]).astype(np.int64)):
            raise ValueError(f"{path}: {doubt}")
        model = MultilabelClassifier(**dict[str, Any](random_state=0) | params)
    else:
        model = before.set_params(**params, warm_start=True)
    model.verbose = not job.quiet and sys.stderr.isatty()
    job.announce(f"{len(labels)} rows, {X.shape[1]} features, {len(names)} labels")
    trained, interrupted = vars(model).get("model_"), None
    try:
        model.fit(X, [row_of({value[name] for name in row}, model.unknown) for row in labels])
    except KeyboardInterrupt:
        if vars(model).get("model_") is trained:
            raise
        interrupted = f"{model.n_iter_:.1f} passes"
    model.model_.params |= {"warm_start": False, "verbose": False}
    model.model_.first_index = first_index
    return job.end(model.model_, interrupted)


NOT_DRAWN = "has no picture for sets of labels"
TASK = Task(
    command,
    MultilabelClassifier.load,
    predict,
    evaluate,
    inspect,
    demo,
    lambda model: out.history(model.model_),
    undrawn={"evaluate": NOT_DRAWN},
    has_unknown=True,
)
