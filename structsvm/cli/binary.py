"""The commands for machines of two classes, on files in svmlight format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import shorten
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.machines import Machine, evaluate, examples, kernel_options, kernel_text, load, train_machine
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, choice, flag, given_of, option_of, training
from structsvm.solvers import SGDQN, Huller, LaSVM
from structsvm.solvers.kernel.lasvm import LaSVMParameters, LaSVMSteps
from structsvm.solvers.linear.sgdqn import SGDQNParameters
from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.kernel.model import BinaryKernelModel
from structsvm.tasks.linear.model import LinearModel

MACHINES = {
    "lasvm": Machine(LaSVM, BinaryKernelModel, "LaSVMClassifier", groups=(("steps", LaSVMSteps),)),
    "huller": Machine(Huller, BinaryKernelModel, "HullerClassifier", balances=False),
    "sgdqn": Machine(SGDQN, LinearModel, "SGDQNClassifier"),
}


def about_labels(path: str, labels: Any) -> str:
    """Describe the labels of a training file; ValueError unless there are two."""
    if len(labels) != 2:
        shown = ", ".join(map(repr, labels[:5].tolist()))
        raise ValueError(f"{path}: two classes are wanted, and there are {len(labels)}: {shown}")
    return f"{shorten(repr(labels.tolist()[1]), 40)} is y = 1"


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The predicted label of each example, or both with f(x) and -f(x) as their scores."""
    X, *_ = examples(model, path, needs_labels=False)
    out.say_other_units(X, model)
    if wanted.confidence:
        scores = class_probabilities(model, model.class_scores(X))
    else:
        f = model.decision_function(X)[:, -1]
        scores = np.column_stack([-f, f])
    yield from out.best(model.labels, scores, wanted.kbest, confidence=wanted.confidence)


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Print what the model is, and the heaviest support vectors or weights of each label."""
    shown = out.chosen(only, model.labels)
    is_linear = isinstance(model, LinearModel)
    text = "linear" if is_linear else f"kernel {kernel_text(model.kernel)}"
    heavy = model.coef[0] if is_linear else model.coef[[1]].toarray().ravel()
    what = "weights" if is_linear else "support vectors"
    sizes = f"{model.n_features} features, {np.count_nonzero(heavy)} {what}"
    text = f"task: binary, {model.estimator}, {text}, {model.labels[1]} is y = 1"
    out.heading(model, text, {}, f"{sizes}, intercept {float(model.intercept[-1]):.6g}")
    ids = np.arange(len(heavy)) + out.first_index(model) if is_linear else model.support + 1
    for k, name in shown:
        signed = heavy if k else -heavy
        best = [j for j in np.argsort(-signed, kind="stable")[:top] if signed[j] > 0.0]
        text = "  ".join(f"{'feature' if is_linear else 'example'} {ids[j]} {signed[j]:.4g}" for j in best)
        click.echo(f"\n{name}: {np.sum(signed > 0.0)} {what}\n  {text}")


def demo(seed: int) -> Any:
    """Train on simulated crescents, evaluate on fresh ones, draw the boundary and the support vectors."""
    from structsvm.datasets import make_banana
    from structsvm.tasks import LaSVMClassifier

    click.echo("simulating 1000 points of two crescents, and 1000 to test on")
    rng = np.random.default_rng(seed)
    X, y = make_banana(1000, random_state=rng)
    X_test, y_test = make_banana(1000, random_state=rng)
    model = LaSVMClassifier(C=1.0, gamma=1.0, random_state=seed).fit(X, y).model_
    click.echo(f"accuracy {100 * np.mean(model.predict(X_test) == y_test):.2f}%, {len(model.support)} support vectors")
    click.echo(model.result.certificate())
    figure = out.blank(8, 6)
    axes = figure.add_subplot()
    ticks = [np.linspace(X[:, k].min() - 0.5, X[:, k].max() + 0.5, 200) for k in range(2)]
    grid = np.stack(np.meshgrid(*ticks), axis=-1)
    f = model.decision_function(grid.reshape(-1, 2))[:, -1].reshape(200, 200)
    axes.contour(*ticks, f, levels=[-1.0, 0.0, 1.0], colors="k", linestyles=["--", "-", "--"])
    axes.scatter(*X.T, c=y, s=8, cmap="coolwarm")
    axes.scatter(*X[model.support].T, s=40, facecolors="none", edgecolors="0.3", linewidths=0.6)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", title="LaSVM, one pass: f(x) = -1, 0, 1, and the support vectors")
    return figure


of_lasvm, of_sgdqn = partial(given_of, LaSVMParameters), partial(given_of, SGDQNParameters)


@training(
    role_of_C="lasvm: weight of the slacks; auto: chosen on held-out examples.",
    solvers=(),
    plot="Save the objectives over time as a picture.",
)
@choice("--machine", *MACHINES)
@kernel_options()
@of_sgdqn("alpha", "sgdqn: the regularisation, 1 / (n C).")
@flag("--balanced", "lasvm, sgdqn: give both classes the same weight.")
@given_of(LaSVMSteps, "n_reprocess", "lasvm: Reprocess steps after each Process.")
@of_lasvm("selection", "lasvm: the next example.")
@of_lasvm("max_visits", "lasvm: examples that a pass visits at most.")
@of_sgdqn("loss", "sgdqn: the loss.")
@of_sgdqn("method", "sgdqn: feature scaling.")
@option_of(SGDQNParameters, "average", "sgdqn: average the weights over the last pass.")
@of_sgdqn("t0", "sgdqn: offset of t in the gain; chosen on a tenth of the examples by default.")
@of_lasvm("tol", "lasvm: stop at this relative duality gap.")
@of_lasvm("cache_size", "lasvm, huller: memory for kernel rows in MB.")
@flag("--probability", "Fit what predict --confidence needs, on held-out examples.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a machine of two classes on a file in svmlight format.

    A line is "label index:value ...", indices from 0 or 1; the larger label (or the later word) is y = 1.
    """
    return train_machine(job, path, params, "machine", MACHINES, about_labels)


TASK = Task(command, load, predict, evaluate, inspect, demo)
