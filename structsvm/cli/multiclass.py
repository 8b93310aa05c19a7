"""The commands for multiclass kernel machines, on files in svmlight format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.machines import Machine, evaluate, examples, kernel_options, kernel_text, load, train_machine
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, choice, flag, given_of, option_of, training
from structsvm.solvers import CrammerSinger, KernelLaRank, KernelPerceptron, Pairwise, WestonWatkins
from structsvm.solvers.kernel.larank import KernelLaRankParameters
from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.kernel.model import KernelModel

SOLVERS = {
    "larank": Machine(KernelLaRank, KernelModel, "LaRankClassifier"),
    "pairwise": Machine(Pairwise, KernelModel, "PairwiseClassifier"),
    "crammer_singer": Machine(CrammerSinger, KernelModel, "CrammerSingerClassifier"),
    "weston_watkins": Machine(WestonWatkins, KernelModel, "WestonWatkinsClassifier"),
    "perceptron": Machine(KernelPerceptron, KernelModel, "KernelPerceptronClassifier"),
}


def about_labels(path: str, labels: Any) -> str:
    """Describe the labels of a training file; ValueError for a single one."""
    if len(labels) < 2:
        raise ValueError(f"{path}: all examples have the label {labels.tolist()[0]!r}; two classes or more are wanted")
    return f"{len(labels)} classes"


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The predicted label of each example, or the best ones with their scores."""
    X, *_ = examples(model, path, needs_labels=False)
    out.say_other_units(X, model)
    for _, scores in model.scores(X):
        scores = class_probabilities(model, scores) if wanted.confidence else scores
        yield from out.best(model.labels, scores, wanted.kbest, confidence=wanted.confidence)


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with the support patterns of largest coefficients per label."""
    shown = out.chosen(only, model.labels)
    text = f"task: multiclass, {len(model.labels)} classes, {model.estimator}, kernel {kernel_text(model.kernel)}"
    sizes = f"{model.n_features} features, {len(model.support)} support patterns, {model.coef.nnz} coefficients"
    out.heading(model, text, {}, sizes)
    for k, name in shown:
        row = model.coef[[k]].toarray().ravel()
        click.echo(f"\n{name}: {np.sum(model.support_labels == k)} support patterns")
        out.heaviest(row, top, lambda j: f"example {model.support[j] + 1}", ".4g")


def demo(seed: int) -> Any:
    """Train on simulated classes, evaluate on fresh ones, draw the confusions."""
    from structsvm.tasks import LaRankClassifier

    click.echo("simulating 2000 points in 5 classes, each of 3 clouds, and 2000 to test on")
    X, y = clouds(2000, seed)
    X_test, y_test = clouds(2000, seed, fresh=True)
    model = LaRankClassifier(C=1.0, gamma="scale", tol=0.01, random_state=seed).fit(X, y).model_
    predicted = model.predict(X_test)
    click.echo(f"accuracy {100 * np.mean(predicted == y_test):.2f}%, {len(model.support)} support patterns")
    click.echo(model.result.certificate())
    return out.compared("ConfusionDisplay", (7, 6), [y_test.tolist()], [predicted.tolist()])


def clouds(n: int, seed: int, *, fresh: bool = False) -> Any:
    """Points of classes that are mixtures of clouds, in 10 dimensions; `fresh` draws others of the same clouds."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=1.5, size=(15, 10))
    rng = np.random.default_rng([seed, fresh])
    cloud = rng.integers(0, 15, n)
    return (centres[cloud] + rng.normal(size=(n, 10))).astype(np.float32), cloud % 5


of_larank = partial(option_of, KernelLaRankParameters)


@training(solvers=(), plot="Save the training history as a picture.")
@choice("--solver", *SOLVERS)
@kernel_options()
@flag("--balanced", "Let every class weigh the same.")
@of_larank("schedule", "larank: steps after each new example.")
@of_larank("n_reprocess", "larank: steps on old examples after each new one.")
@of_larank("selection", "larank: which old examples.")
@given_of(KernelLaRankParameters, "tol", "Stop at this relative duality gap.")
@given_of(KernelLaRankParameters, "cache_size", "Memory for kernel rows in MB.")
@flag("--probability", "Fit what predict --confidence needs, on held-out examples.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a multiclass support vector machine with a kernel.

    TRAIN has one example per line in svmlight format: its label, a number or a word, and index:value pairs.
    """
    return train_machine(job, path, params, "solver", SOLVERS, about_labels)


TASK = Task(command, load, predict, evaluate, inspect, demo)
