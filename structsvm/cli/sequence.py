"""The commands for label sequences, on CoNLL column files."""

from __future__ import annotations

import json
import os
import sys
from textwrap import shorten
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import COMMON, Training, passes_if_interrupted, training
from structsvm.features.columns import Columns, read_columns
from structsvm.progress import Bar
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.sequence.model import SequenceModel, prepare

DEFAULTS = COMMON | {
    "end": False,
    "loss": "hamming",
    "class_weight": None,
    "constraints": None,
    "order": None,
    "hash_bits": None,
    "templates": None,
    "min_count": 1,
    "inference": "exact",
}


def train(
    path: str | os.PathLike[str],
    model_path: str,
    params: Any,
    warm_start: str | os.PathLike[str] | None,
    plot: Any,
    quiet: bool,
) -> int:
    """Train on a file and write the model; returns the exit status (130 after Ctrl-C)."""
    job = Training(quiet)
    for output in (model_path, plot):
        check_writable(output)
    drawable(plot)
    X, y = labelled(read_columns(path), path)
    model = SequenceModel.load(warm_start) if warm_start else None
    settings = SimpleNamespace(**DEFAULTS | ({} if model is None else model.params) | params)
    solver = make_solver(settings)
    solver.validate()
    model, tokens, label_ids = prepare(settings, X, y, model)
    model.params = vars(settings)
    job.say(
        f"{len(tokens)} sequences, {tokens.n_tokens} tokens, {tokens.n_features} features, {len(model.labels)} labels "
        f"({job.seconds:.2f} s)"
    )
    with job.warnings():
        run = model.train((tokens, label_ids), solver, monitor=job.bar(solver), resume=bool(warm_start))
    model.save(model_path)
    job.say(model.result.certificate())
    if plot:
        picture(model, plot, say=job.say)
    return job.end(model_path, passes_if_interrupted(run), hint=f", and --warm-start {model_path} goes on from it")


def predict(model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any) -> None:
    """Write the input's columns with the predicted label behind them."""
    model = SequenceModel.load(model_path, mmap=True)
    columns = read_input(path)
    X, _ = split_labels(model, columns, path)
    lines = [list(map("\t".join, zip(*rows))) for rows in zip(*(columns.column(j) for j in range(columns.n_columns)))]
    if kbest is not None and model.is_greedy:
        raise ValueError("--kbest needs a model with exact inference")
    with writing(output) as stream:
        if kbest is None:
            for tokens, labels in zip(lines, model.predict(X, n_jobs=jobs)):
                stream.write("".join(f"{token}\t{label}\n" for token, label in zip(tokens, labels)) + "\n")
            return
        chain = model.oracle.chain(model.encode(X))
        for i, tokens in enumerate(lines):
            paths, scores = chain.kbest(model.weights, i, kbest)
            for rank, (numbers, score) in enumerate(zip(paths, scores), start=1):
                stream.write(f"# {rank} {score:.6f}\n")
                stream.write("".join(f"{token}\t{model.labels[c]}\n" for token, c in zip(tokens, numbers)) + "\n")


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Print token accuracy and chunk scores."""
    from structsvm.metrics import chunk_scores, token_accuracy

    drawable(plot)
    model = SequenceModel.load(model_path, mmap=True)
    X, y = split_labels(model, read_input(path), path)
    if y is None:
        raise ValueError(
            f"{path}: has {X.n_columns} columns like the model's features, and so no labels to compare with"
        )
    gold, predicted = y.column(0), model.predict(X, n_jobs=jobs)
    scores = chunk_scores(gold, predicted)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "accuracy": token_accuracy(gold, predicted),
                    "f1": scores.f1,
                    "precision": scores.precision,
                    "recall": scores.recall,
                    "n_sequences": len(X),
                    "n_tokens": X.n_tokens,
                }
            )
        )
    else:
        click.echo(scores.report())
    if plot:
        from structsvm.plotting import ConfusionDisplay

        figure = blank(7, 6)
        ConfusionDisplay.from_predictions(gold, predicted, ax=figure.add_subplot())
        save(figure, plot, say=lambda text: click.echo(text, err=True))


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is and its heaviest weights."""
    drawable(plot)
    model = SequenceModel.load(model_path)
    oracle = model.oracle
    unknown = [label for label in only if label not in model.labels]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the labels {', '.join(map(str, model.labels))}")
    click.echo(f"task: sequence, {'greedy' if model.is_greedy else 'exact'} inference of order {oracle.order}")
    given = {k: v for k, v in model.params.items() if k not in DEFAULTS or (v is not DEFAULTS[k] and v != DEFAULTS[k])}
    click.echo("parameters: " + (", ".join(f"{k}={shorten(repr(v), 60)}" for k, v in given.items()) or "defaults"))
    click.echo(f"{oracle.n_token_features} features, {oracle.n_labels} labels: {', '.join(map(str, model.labels))}")
    if model.result is not None:
        click.echo(model.result.certificate())
    names, weights, transition = model.encoder.feature_names, model.emission(), model.transition()
    for k, label in enumerate(model.labels):
        if only and label not in only:
            continue
        click.echo(f"\n{label}")
        for sign, column in (("+", weights[:, k]), ("-", -weights[:, k])):
            best = np.argsort(-column, kind="stable")[:top]
            click.echo(f"  {sign} " + "  ".join(f"{names[f]} {abs(column[f]):.3f}" for f in best if column[f] > 0.0))
        follows = np.argsort(-transition[k], kind="stable")[:3]
        click.echo("  then " + "  ".join(f"{model.labels[c]} {transition[k, c]:+.3f}" for c in follows))
    if plot:
        picture(model, plot)


def demo(output: Any, seed: Any) -> None:
    """Train on simulated chunks, evaluate on fresh ones, draw what happened."""
    from structsvm.datasets import make_sequences
    from structsvm.metrics import chunk_scores

    drawable(output)
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
    if run.status == "interrupted":
        raise KeyboardInterrupt


# ---- files --------------------------------------------------------------------------------------


def read_input(path: str | os.PathLike[str]) -> Any:
    """Read a column file; "-" is standard input."""
    return read_columns(click.get_binary_stream("stdin") if path == "-" else path)  # type: ignore[operator]


def labelled(columns: Any, path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Split off the last column as labels."""
    if columns.n_columns < 2:
        raise ValueError(f"{path}: has one column; training needs at least a word and, last, its label")
    return columns.drop_last(), columns.select([columns.n_columns - 1])


def split_labels(model: Any, columns: Any, path: str | os.PathLike[str]) -> Any:
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


def picture(model: Any, output: Any, predictions: Any = None, *, say: Any = click.echo) -> None:
    """Save training history and transition weights; with ``(gold, predicted)`` the confusion matrix too."""
    from structsvm.plotting import ConfusionDisplay, HistoryDisplay, TransitionDisplay

    panels = 2 if predictions is None else 3
    figure = blank(7 * panels, 6)
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
    save(figure, output, say=say)


@training(0.1)
@click.option(
    "--templates",
    help="Feature templates: rich, crf++, attributes, or a CRF++ template file.  [default: rich]",
)
@click.option("--min-count", type=click.IntRange(1), default=1, show_default=True, help="Drop rarer features.")
@click.option("--hash-bits", type=click.IntRange(1, 30), help="Hash features to 2**BITS numbers.")
@click.option("--inference", type=click.Choice(["exact", "greedy"]), default="exact", show_default=True)
@click.option("--order", type=click.IntRange(0), help="Labels before that a score sees.  [default: 1, greedy 2]")
@click.option("--constraints", type=click.Choice(["bio", "bioes"]), help="Predict only labellings of this scheme.")
@click.option("--warm-start", type=click.Path(exists=True, dir_okay=False), help="Go on from this model.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save the training history as a picture.")
def command(
    train_file: Any, model: Any, warm_start: str | os.PathLike[str] | None, plot: Any, quiet: bool, **params: Any
) -> None:
    """Train a label-sequence model on a CoNLL column file.

    One token a line, its columns between spaces or tabs, the label last; blank lines end a sequence. Files that
    end in .gz, .xz or .bz2 are read as they are. With --warm-start, options that are not given are those of the
    model, TRAIN must be the file that it was trained on, and --max-iter more passes follow.
    """
    if warm_start:
        source = click.get_current_context().get_parameter_source
        default = click.core.ParameterSource.DEFAULT
        params = {name: value for name, value in params.items() if source(name) is not default}
    sys.exit(train(train_file, model, params, warm_start, plot, quiet))
