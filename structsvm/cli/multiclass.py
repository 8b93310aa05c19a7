"""The commands for multiclass kernel machines, on files in svmlight's form."""

from __future__ import annotations

import json
import os
import sys
from textwrap import shorten
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_array

from structsvm.cli.kernels import DEFAULTS, kernel_options, kernel_text, split_given
from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import Training, passes_if_interrupted
from structsvm.features.svmlight import read_svmlight
from structsvm.solvers import CrammerSinger, KernelLaRank, KernelPerceptron, WestonWatkins
from structsvm.tasks.common.kernel_machine import kernel_of
from structsvm.tasks.common.labels import label_costs
from structsvm.tasks.kernel.model import KernelModel

# Solvers, and the estimators that hold their models.
SOLVERS = {
    "larank": (KernelLaRank, "LaRankClassifier"),
    "crammer_singer": (CrammerSinger, "CrammerSingerClassifier"),
    "weston_watkins": (WestonWatkins, "WestonWatkinsClassifier"),
    "perceptron": (KernelPerceptron, "KernelPerceptronClassifier"),
}

# Files with a greater share of numbers that are not zero are faster as dense matrices.
DENSE = 0.25


def train(
    path: str | os.PathLike[str],
    model_path: str,
    solver: Any,
    kernel: Any,
    params: Any,
    balanced: bool,
    plot: Any,
    quiet: bool,
) -> int:
    """Train on a file and write the model; returns the exit status (130 after Ctrl-C)."""
    job = Training(quiet)
    for output in (model_path, plot):
        check_writable(output)
    drawable(plot)
    X, y = read_svmlight(path)
    labels, numbers = np.unique(y, return_inverse=True)
    if len(labels) < 2:
        raise ValueError(f"{path}: all examples have the label {labels.tolist()[0]!r}; two classes or more are wanted")
    kind, estimator = SOLVERS[solver]
    known = kind().get_params().keys()
    unknown = sorted(params.keys() - known)
    if unknown:
        raise ValueError(f"--solver {solver} has no {unknown[0]}")
    if "random_state" in known:
        params = {"random_state": 0} | params
    machine = kind(**params)
    machine.validate()
    X = fast_layout(X)
    model = KernelModel(labels, kernel_of(SimpleNamespace(**kernel), X))
    model.estimator = estimator
    model.params = kernel | params | ({"class_weight": "balanced"} if balanced else {})
    job.say(
        f"{X.shape[0]} examples, {X.shape[1]} features, {len(labels)} classes, kernel {kernel_text(model.kernel)} "
        f"({job.seconds:.2f} s)"
    )
    costs = label_costs("balanced" if balanced else None, labels.tolist(), numbers)
    with job.warnings():
        run = model.train(
            (X, numbers.astype(np.int32)),
            machine,
            sample_weight=None if costs is None else costs[numbers],
            monitor=job.bar(machine),
        )
    model.save(model_path)
    job.say(model.result.certificate())
    job.say(f"{model.n_kernel / 1e6:.4g} million kernel values, {100 * model.hit_rate:.1f} % of rows in the cache")
    if plot:
        picture(model, plot, job.say)
    return job.end(model_path, passes_if_interrupted(run))


def predict(model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any) -> None:
    """Write the predicted label of each example, or with `kbest` its best labels and their scores."""
    model = KernelModel.load(model_path, mmap=True)
    X, _ = examples(model, path)
    with writing(output) as stream:
        for _, scores in model.scores(X):
            for row in scores:
                if kbest is None:
                    stream.write(f"{model.labels[row.argmax()]}\n")
                    continue
                best = np.argsort(-row, kind="stable")[:kbest]
                stream.write("\t".join(f"{model.labels[k]} {row[k]:.6f}" for k in best) + "\n")


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Print the accuracy."""
    drawable(plot)
    report(KernelModel.load(model_path, mmap=True), path, as_json, plot)


def report(model: Any, path: str | os.PathLike[str], as_json: bool, plot: Any) -> None:
    """Print the accuracy of a model on a file, and draw its confusion matrix."""
    X, y = examples(model, path)
    predicted = model.predict(X)
    # As strings: labels that the model does not know may be of another type, and count as errors.
    gold, found = y.astype(str), predicted.astype(str)
    accuracy = float(np.mean(gold == found))
    if as_json:
        click.echo(json.dumps({"accuracy": accuracy, "n_samples": len(y)}))
    else:
        click.echo(f"{len(y)} examples: accuracy {100 * accuracy:.2f}% ({np.sum(gold != found)} errors)")
    if plot:
        from structsvm.plotting import ConfusionDisplay

        figure = blank(7, 6)
        ConfusionDisplay.from_predictions([gold.tolist()], [found.tolist()], ax=figure.add_subplot())
        save(figure, plot, say=lambda text: click.echo(text, err=True))


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is, and the support patterns of each label with the largest coefficients."""
    drawable(plot)
    model = KernelModel.load(model_path)
    names = [str(label) for label in model.labels]
    unknown = [label for label in only if label not in names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the labels {', '.join(names)}")
    click.echo(f"task: multiclass, {len(names)} classes, {model.estimator}, kernel {kernel_text(model.kernel)}")
    click.echo("parameters: " + ", ".join(f"{k}={shorten(repr(v), 60)}" for k, v in model.params.items()))
    click.echo(f"{model.n_features} features, {len(model.support)} support patterns, {model.coef.nnz} coefficients")
    if model.result is not None:
        click.echo(model.result.certificate())
    for k, name in enumerate(names):
        if only and name not in only:
            continue
        row = model.coef[[k]].toarray().ravel()
        click.echo(f"\n{name}: {np.sum(model.support_labels == k)} support patterns")
        for sign, beta in (("+", row), ("-", -row)):
            best = [j for j in np.argsort(-beta, kind="stable")[:top] if beta[j] > 0.0]
            click.echo(f"  {sign} " + "  ".join(f"example {model.support[j] + 1} {beta[j]:.4g}" for j in best))
    if plot:
        picture(model, plot, click.echo)


def demo(output: Any, seed: Any) -> None:
    """Train on simulated classes, evaluate on fresh ones, draw what happened."""
    from structsvm.plotting import ConfusionDisplay

    drawable(output)
    click.echo("simulating 2000 points in 5 classes, each of 3 clouds, and 2000 to test on")
    X, y = clouds(2000, seed)
    X_test, y_test = clouds(2000, seed, fresh=True)
    labels = np.arange(5)
    model = KernelModel(labels, kernel_of(SimpleNamespace(**DEFAULTS), X))
    run = model.train((X, y.astype(np.int32)), KernelLaRank(tol=0.01, random_state=seed))
    predicted = model.predict(X_test)
    click.echo(f"accuracy {100 * np.mean(predicted == y_test):.2f}%, {len(model.support)} support patterns")
    click.echo(model.result.certificate())
    figure = blank(14, 6)
    ConfusionDisplay.from_predictions([y_test.tolist()], [predicted.tolist()], ax=figure.add_subplot())
    save(figure, output)
    if run.status == "interrupted":
        raise KeyboardInterrupt


def clouds(n: Any, seed: Any, *, fresh: bool = False) -> tuple[Any, Any]:
    """Points of classes that are mixtures of clouds, in 10 dimensions; `fresh` draws others of the same clouds."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=1.5, size=(15, 10))
    rng = np.random.default_rng([seed, fresh])
    cloud = rng.integers(0, 15, n)
    return (centres[cloud] + rng.normal(size=(n, 10))).astype(np.float32), cloud % 5


# ---- files --------------------------------------------------------------------------------------


def examples(model: Any, path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return ``(X, labels)`` of a file, with the features of the model."""
    X, y = read_svmlight(sys.stdin.buffer if path == "-" else path)
    if X.shape[1] > model.n_features:
        raise ValueError(f"{path}: has a feature {X.shape[1]}; the model was trained on {model.n_features} features")
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], model.n_features)), y


def fast_layout(X: Any) -> Any:
    """A CSR matrix as it is, or as an array if that is faster."""
    return csr_array(X) if X.nnz < DENSE * X.shape[0] * X.shape[1] else X.toarray()


def picture(model: Any, output: Any, say: Any) -> None:
    """Save the objectives over time."""
    from structsvm.plotting import HistoryDisplay

    figure = blank(7, 6)
    HistoryDisplay(model.result.history).plot(ax=figure.subplots(2, sharex=True, height_ratios=(3, 2)))
    save(figure, output, say=say)


@click.command
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True, dir_okay=False))
@click.option("-m", "--model", required=True, type=click.Path(dir_okay=False), help="File to write the model to.")
@click.option("--solver", type=click.Choice([*SOLVERS]), default="larank", show_default=True)
@kernel_options("rbf")
@click.option("-C", "C", type=float, help="Weight of the slacks.  [default: 1]")
@click.option("--balanced", is_flag=True, help="Let every class weigh the same.")
@click.option("--schedule", type=click.Choice(["fixed", "adaptive", "decode-once"]), help="Of larank.")
@click.option("--n-reprocess", type=float, help="Of larank: work on old examples after each new one.")
@click.option("--selection", type=click.Choice(["random", "gain"]), help="Of larank: which old examples.")
@click.option("--max-iter", type=click.IntRange(1), help="Passes over the data.")
@click.option("--tol", type=float, help="Stop at this relative duality gap.")
@click.option("--cache-size", type=float, help="Memory for kernel rows in MB.  [default: 200]")
@click.option("--seed", "random_state", type=click.IntRange(0), help="Where the solver draws.  [default: 0]")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save the training history as a picture.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(train_file: Any, model: Any, solver: Any, balanced: bool, plot: Any, quiet: bool, **params: Any) -> None:
    """Train a multiclass support vector machine with a kernel.

    TRAIN holds an example a line in svmlight's form: its label, a number or a word, and index:value pairs. Files that
    end in .gz, .xz or .bz2 are read as they are.
    """
    kernel, given = split_given(params)
    sys.exit(train(train_file, model, solver, DEFAULTS | kernel, given, balanced, plot, quiet))
