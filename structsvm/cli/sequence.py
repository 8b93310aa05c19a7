"""The commands for label sequences, on CoNLL column files."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.training import Training, choice, count, defaults, training
from structsvm.features.columns import Columns, read_columns
from structsvm.progress import Bar
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.sequence.model import SequenceModel, prepare

load = SequenceModel.load


def predict(model: Any, path: str, output: str | None, kbest: int | None, jobs: int) -> None:
    """Write the input's columns with the predicted label behind them."""
    columns = read_columns(out.source(path))
    X, _ = split_labels(model, columns, path)
    lines = [list(map("\t".join, zip(*rows))) for rows in zip(*(columns.column(j) for j in range(columns.n_columns)))]
    if kbest is not None and model.is_greedy:
        raise ValueError("--kbest needs a model with exact inference")
    with out.writing(output) as stream:
        if kbest is None:
            for tokens, labels in zip(lines, model.predict(X, n_jobs=jobs)):
                stream.write("".join(f"{token}\t{label}\n" for token, label in zip(tokens, labels)) + "\n")
            return
        chain = model.oracle.chain(model.encode(X))
        for i, tokens in enumerate(lines):
            paths, scores = chain.kbest(model.weights, i, kbest)
            for rank, (label_ids, score) in enumerate(zip(paths, scores), start=1):
                stream.write(f"# {rank} {score:.6f}\n")
                stream.write("".join(f"{token}\t{model.labels[c]}\n" for token, c in zip(tokens, label_ids)) + "\n")


def evaluate(model: Any, path: str, as_json: bool, jobs: int, plot: str | None) -> None:
    """Print token accuracy and chunk scores."""
    from structsvm.metrics import chunk_scores, token_accuracy

    X, y = split_labels(model, read_columns(out.source(path)), path)
    if y is None:
        raise ValueError(
            f"{path}: has {X.n_columns} columns like the model's features, and so no labels to compare with"
        )
    gold, predicted = y.column(0), model.predict(X, n_jobs=jobs)
    scores = chunk_scores(gold, predicted)
    found = {
        "accuracy": token_accuracy(gold, predicted),
        "f1": scores.f1,
        "precision": scores.precision,
        "recall": scores.recall,
        "n_sequences": len(X),
        "n_tokens": X.n_tokens,
    }
    out.scores(found, as_json, scores.report())
    out.confusions(gold, predicted, plot)


def inspect(model: Any, top: int, only: Sequence[str], plot: str | None) -> None:
    """Print what the model is and its heaviest weights."""
    oracle = model.oracle
    shown = out.chosen(only, model.labels)
    click.echo(f"task: sequence, {'greedy' if model.is_greedy else 'exact'} inference of order {oracle.order}")
    out.parameters(model.params, DEFAULTS)
    click.echo(f"{oracle.n_token_features} features, {oracle.n_labels} labels: {', '.join(map(str, model.labels))}")
    out.certificate(model)
    names, weights, transition = model.encoder.feature_names, model.emission(), model.transition()
    for k, label in shown:
        click.echo(f"\n{label}")
        out.heaviest(weights[:, k], top, names.__getitem__)
        follows = np.argsort(-transition[k], kind="stable")[:3]
        click.echo("  then " + "  ".join(f"{model.labels[c]} {transition[k, c]:+.3f}" for c in follows))
    if plot:
        picture(model, plot)


def demo(output: str | None, seed: int) -> None:
    """Train on simulated chunks, evaluate on fresh ones, draw what happened."""
    from structsvm.datasets import make_sequences
    from structsvm.metrics import chunk_scores

    click.echo("simulating 3000 sentences with chunk labels, and 1000 to test on")
    X, y = make_sequences(3000, random_state=seed)
    X_test, y_test = make_sequences(1000, random_state=seed + 1)
    settings = SimpleNamespace(**DEFAULTS | {"random_state": seed, "tol": 0.05})
    model, tokens, label_ids = prepare(settings, Columns.from_sequences(X), y)
    solver = make_solver(settings)
    click.echo(f"{tokens.n_tokens} tokens, {tokens.n_features} features, {len(model.labels)} labels")
    run = model.train((tokens, label_ids), solver, monitor=Bar(solver.n_passes))
    predicted = model.predict(Columns.from_sequences(X_test))
    click.echo(chunk_scores(y_test, predicted).report())
    click.echo(model.result.certificate())
    picture(model, output, (y_test, predicted))
    raise_if_interrupted(run)


# ---- files --------------------------------------------------------------------------------------


def labelled(columns: Any, path: str) -> Any:
    """Split off the last column as labels."""
    if columns.n_columns < 2:
        raise ValueError(f"{path}: has one column; training needs at least a word and, last, its label")
    return columns.drop_last(), columns.select([columns.n_columns - 1])


def split_labels(model: Any, columns: Any, path: str) -> Any:
    """Return ``(X, y)``: the columns that the model's features need, and the label column, or None."""
    n = model.encoder.n_columns
    if n is None:
        raise ValueError("this model was trained on Python data, not on columns; predict with structsvm.load")
    if columns.n_columns == n + 1:
        return labelled(columns, path)
    if columns.n_columns != n:
        raise ValueError(f"{path}: has {columns.n_columns} columns; the model was trained on {n} and a label")
    return columns, None


# ---- pictures -----------------------------------------------------------------------------------


def picture(model: Any, output: str | None, predictions: Any = None, *, say: Any = click.echo) -> None:
    """Save training history and transition weights; with ``(gold, predicted)`` the confusion matrix too."""
    from structsvm.plotting import ConfusionDisplay, HistoryDisplay, TransitionDisplay

    panels = 2 if predictions is None else 3
    figure = out.blank(7 * panels, 6)
    grid = figure.add_gridspec(1, panels, width_ratios=[0.8, 1, 1][:panels])
    history = model.result.history
    halves = grid[0].subgridspec(2, 1, height_ratios=(3, 2))
    objectives = figure.add_subplot(halves[0])
    gaps = figure.add_subplot(halves[1], sharex=objectives)
    HistoryDisplay(history).plot(ax=(objectives, gaps))
    if np.isfinite(history["gap"]).sum() < 2:  # without tol it is known at the end alone: the title says it
        gaps.set(visible=False, in_layout=False)
        objectives.set_subplotspec(grid[0])
        objectives.set(xlabel="training time (seconds)")
    objectives.set_title(
        f"gap {100 * model.result.relative_gap:.3g} % after {model.result.n_iter} passes"
        if np.isfinite(model.result.gap)
        else f"{model.result.n_iter} passes"
    )
    TransitionDisplay(model.transition(), model.labels).plot(ax=figure.add_subplot(grid[1]))
    if predictions is not None:
        ConfusionDisplay.from_predictions(*predictions, ax=figure.add_subplot(grid[2]))
    out.save(figure, output, say=say)


@training(0.1, plot="Save the training history as a picture.")
@click.option("--templates", help="Features: rich, crf++, attributes, or a CRF++ template file.  [default: rich]")
@count("--min-count", 1, "Drop rarer features.")
@click.option("--hash-bits", type=click.IntRange(1, 30), help="Hash features to 2**BITS numbers.")
@choice("--inference", "exact", "greedy")
@click.option("--order", type=click.IntRange(0), help="Labels before that a score sees.  [default: 1, greedy 2]")
@click.option("--constraints", type=click.Choice(["bio", "bioes"]), help="Predict only labellings of this scheme.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a label-sequence model on a CoNLL column file.

    One token per line, its columns between spaces or tabs, the label last; blank lines end a sequence. Files that end
    in .gz, .xz or .bz2 are read as they are.

    With --warm-start, options that are not given are those of the model, and --max-iter more passes follow. On the file
    that the model was trained on, its run is resumed; on another one, features that the model does not know are left
    out, a label that it does not know is an error, and training starts from its weights and stays close to them.
    """
    X, y = labelled(read_columns(path), path)
    before, settings = job.start(load, DEFAULTS, params)
    solver = make_solver(settings)
    solver.validate()
    model, tokens, label_ids = prepare(settings, X, y, before)
    job.announce(
        f"{len(tokens)} sequences, {tokens.n_tokens} tokens, {tokens.n_features} features, {len(model.labels)} labels"
    )
    return job.run(model, (tokens, label_ids), solver, vars(settings), draw=picture)


DEFAULTS = {"end": False, "loss": "hamming", "class_weight": None} | defaults(command)
