"""The commands for machines of two classes, on files in svmlight's form."""

from __future__ import annotations

import os
import sys
from textwrap import shorten
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from structsvm.cli.kernels import DEFAULTS, kernel_options, kernel_text, split_given
from structsvm.cli.multiclass import examples, fast_layout, picture, report
from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import Training, passes_if_interrupted
from structsvm.features.svmlight import read_svmlight
from structsvm.model_file import read_model
from structsvm.solvers import SGDQN, Huller, LaSVM
from structsvm.tasks.common.kernel_machine import kernel_of
from structsvm.tasks.common.labels import label_costs
from structsvm.tasks.kernel.model import BinaryKernelModel
from structsvm.tasks.linear.model import LinearModel

# Solvers, and the estimators that hold their models.
MACHINES = {
    "lasvm": (LaSVM, "LaSVMClassifier"),
    "huller": (Huller, "HullerClassifier"),
    "sgdqn": (SGDQN, "SGDQNClassifier"),
}

# Estimators of linear models; the second one has no command that trains it.
LINEAR = ("SGDQNClassifier", "TrackingClassifier")


def train(
    path: str | os.PathLike[str],
    model_path: str,
    machine: Any,
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
    kind, estimator = MACHINES[machine]
    unknown = sorted((params | kernel if kind is SGDQN else params).keys() - kind().get_params().keys())
    if unknown or (balanced and kind is Huller):
        raise ValueError(f"--machine {machine} has no {unknown[0] if unknown else 'balanced'}")
    solver = kind(**params)
    solver.validate()
    X, y = read_svmlight(path)
    labels, label_ids = np.unique(y, return_inverse=True)
    if len(labels) != 2:
        shown = ", ".join(map(repr, labels[:5].tolist()))
        raise ValueError(f"{path}: two classes are wanted, and there are {len(labels)}: {shown}")
    X, label_ids = fast_layout(X), label_ids.astype(np.int32)
    about = f"{X.shape[0]} examples, {X.shape[1]} features, {shorten(repr(labels.tolist()[1]), 40)} is y = 1"
    costs = label_costs("balanced" if balanced else None, labels.tolist(), label_ids)
    weight = None if costs is None else costs[label_ids]
    if kind is SGDQN:
        job.say(f"{about}, linear ({job.seconds:.2f} s)")
        model: LinearModel | BinaryKernelModel = LinearModel(labels)
    else:
        kernel = DEFAULTS | kernel
        model = BinaryKernelModel(labels, kernel_of(SimpleNamespace(**kernel), X))
        model.estimator = estimator
        job.say(f"{about}, kernel {kernel_text(model.kernel)} ({job.seconds:.2f} s)")
    with job.warnings():
        run = model.train((X, label_ids), solver, sample_weight=weight, monitor=job.bar(solver))
    model.params = kernel | params | ({"class_weight": "balanced"} if balanced else {})
    model.save(model_path)
    job.say(model.result.certificate())
    if isinstance(model, BinaryKernelModel):
        job.say(
            f"{np.count_nonzero(model.coef.data)} support vectors, {model.n_kernel / 1e6:.4g} million kernel values, "
            f"{100 * model.hit_rate:.1f} % of rows in the cache"
        )
    if plot:
        picture(model, plot, job.say)
    return job.end(model_path, passes_if_interrupted(run))


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """The model of a file, linear or with a kernel."""
    estimator = read_model(path, mmap=True).meta.get("estimator")
    kind = LinearModel if estimator in LINEAR else BinaryKernelModel
    return kind.load(path, mmap=mmap)


def scores(model: Any, X: Any) -> Any:
    """f(x): array (n_samples,)."""
    found = model.decision_function(X)
    return found[:, -1]


def predict(model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any) -> None:
    """Write the predicted label of each example, with `kbest` and f(x) or -f(x) as the score of both labels."""
    model = load(model_path, mmap=True)
    X, _ = examples(model, path)
    f = scores(model, X)
    with writing(output) as stream:
        for value, number in zip(f, model.predict_ids(X)):
            if kbest is None:
                stream.write(f"{model.labels[number]}\n")
                continue
            order = [number, 1 - number][:kbest]
            stream.write("\t".join(f"{model.labels[k]} {value if k else -value:.6f}" for k in order) + "\n")


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Print the accuracy."""
    drawable(plot)
    report(load(model_path, mmap=True), path, as_json, plot)


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is, and the heaviest support vectors or weights of each label."""
    drawable(plot)
    model = load(model_path)
    names = [str(label) for label in model.labels]
    unknown = [label for label in only if label not in names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the labels {', '.join(names)}")
    is_linear = isinstance(model, LinearModel)
    text = "linear" if is_linear else f"kernel {kernel_text(model.kernel)}"
    click.echo(f"task: binary, {model.estimator}, {text}, {names[1]} is y = 1")
    click.echo("parameters: " + ", ".join(f"{k}={shorten(repr(v), 60)}" for k, v in model.params.items()))
    heavy = model.coef[0] if is_linear else model.coef[[1]].toarray().ravel()
    what = "weights" if is_linear else "support vectors"
    click.echo(
        f"{model.n_features} features, {np.count_nonzero(heavy)} {what}, intercept {float(model.intercept[-1]):.6g}"
    )
    if model.result is not None:
        click.echo(model.result.certificate())
    number = np.arange(len(heavy)) if is_linear else model.support
    for k, name in enumerate(names):
        if only and name not in only:
            continue
        signed = heavy if k else -heavy
        best = [j for j in np.argsort(-signed, kind="stable")[:top] if signed[j] > 0.0]
        shown = "  ".join(f"{'feature' if is_linear else 'example'} {number[j] + 1} {signed[j]:.4g}" for j in best)
        click.echo(f"\n{name}: {np.sum(signed > 0.0)} {what}\n  {shown}")
    if plot:
        picture(model, plot, click.echo)


def demo(output: Any, seed: Any) -> None:
    """Train on simulated crescents, evaluate on fresh ones, draw the boundary and the support vectors."""
    from structsvm.datasets import make_banana

    drawable(output)
    click.echo("simulating 1000 points of two crescents, and 1000 to test on")
    rng = np.random.default_rng(seed)
    X, y = make_banana(1000, random_state=rng)
    X_test, y_test = make_banana(1000, random_state=rng)
    model = BinaryKernelModel(np.arange(2), kernel_of(SimpleNamespace(**DEFAULTS | {"gamma": 1.0}), X))
    run = model.train((X, y.astype(np.int32)), LaSVM(random_state=seed))
    click.echo(f"accuracy {100 * np.mean(model.predict(X_test) == y_test):.2f}%, {len(model.support)} support vectors")
    click.echo(model.result.certificate())
    figure = blank(8, 6)
    axes = figure.add_subplot()
    ticks = [np.linspace(X[:, k].min() - 0.5, X[:, k].max() + 0.5, 200) for k in range(2)]
    grid = np.stack(np.meshgrid(*ticks), axis=-1)
    f = scores(model, grid.reshape(-1, 2)).reshape(200, 200)
    axes.contour(*ticks, f, levels=[-1.0, 0.0, 1.0], colors="k", linestyles=["--", "-", "--"])
    axes.scatter(*X.T, c=y, s=8, cmap="coolwarm")
    axes.scatter(*X[model.support].T, s=40, facecolors="none", edgecolors="0.3", linewidths=0.6)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", title="LaSVM, one pass: f(x) = -1, 0, 1, and the support vectors")
    save(figure, output)
    if run.status == "interrupted":
        raise KeyboardInterrupt


@click.command
@click.argument("train_file", metavar="TRAIN", type=click.Path(exists=True, dir_okay=False))
@click.option("-m", "--model", required=True, type=click.Path(dir_okay=False), help="File to write the model to.")
@click.option("--machine", type=click.Choice([*MACHINES]), default="lasvm", show_default=True)
@kernel_options("rbf")
@click.option("-C", "C", type=float, help="Of lasvm: weight of the slacks.  [default: 1]")
@click.option("--alpha", type=float, help="Of sgdqn: the regularisation, 1 / (n C).  [default: 0.0001]")
@click.option("--balanced", is_flag=True, help="Of lasvm and sgdqn: let both classes weigh the same.")
@click.option("--n-reprocess", type=float, help="Of lasvm: Reprocess steps after each Process.  [default: 1]")
@click.option("--selection", type=click.Choice(["random", "gradient", "active", "autoactive"]), help="Of lasvm.")
@click.option("--max-visits", type=click.IntRange(1), help="Of lasvm: examples that a pass visits at most.")
@click.option(
    "--loss",
    type=click.Choice(["squared_hinge", "hinge", "smooth_hinge", "smooth_squared_hinge"]),
    help="Of sgdqn.  [default: squared_hinge]",
)
@click.option("--method", type=click.Choice(["sgdqn", "svmsgd2"]), help="Of sgdqn.  [default: sgdqn]")
@click.option("--average", is_flag=True, default=None, help="Of sgdqn: average the weights over the last pass.")
@click.option("--t0", type=float, help="Of sgdqn; chosen on a tenth of the examples by default.")
@click.option("--max-iter", type=click.IntRange(1), help="Passes over the data.")
@click.option("--tol", type=float, help="Of lasvm: stop at this relative duality gap.")
@click.option("--cache-size", type=float, help="Of lasvm and huller: memory for kernel rows in MB.  [default: 200]")
@click.option("--seed", "random_state", type=click.IntRange(0), default=0, show_default=True)
@click.option("--plot", type=click.Path(dir_okay=False), help="Save the objectives over time as a picture.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(train_file: Any, model: Any, machine: Any, balanced: bool, plot: Any, quiet: bool, **params: Any) -> None:
    """Train a machine of two classes on a file in svmlight's form.

    A line is "label index:value ...", indices from 1; the larger label (or the later word) is y = 1. Files whose names
    end in .gz, .xz or .bz2 are read as they are.
    """
    kernel, given = split_given(params)
    sys.exit(train(train_file, model, machine, kernel, given, balanced, plot, quiet))
