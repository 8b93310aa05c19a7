"""The kernel, training, reading and scores of the commands of classifiers on files in svmlight format."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

import click
import numpy as np

import structsvm.cli.output as out
from structsvm._warnings import AdviceWarning, warn
from structsvm.arrays import LabelArray
from structsvm.cli.training import Training, given_of, grouped, refuse, with_options
from structsvm.features.inputs.places import PlacedRows
from structsvm.features.svmlight import label_values, read_rows
from structsvm.kernel.parameters import KernelFunction, leaves_gamma
from structsvm.kernel.soundness import check_inputs
from structsvm.metrics._counts import is_unknown, say_unseen
from structsvm.model_file import read_header
from structsvm.parameters import ParameterGroup
from structsvm.tasks.common.examples import LabeledRows
from structsvm.tasks.common.kernel_machine import KernelRows, kernel_of
from structsvm.tasks.common.labels import label_costs, label_ids_of
from structsvm.tasks.common.solver import AUTO, Settings, is_auto
from structsvm.tasks.kernel.model import BinaryKernelModel, KernelModel
from structsvm.tasks.linear.model import LinearModel
from structsvm.tasks.registry import ESTIMATORS

# Files with a greater share of nonzero values are faster as dense matrices.
DENSE = 0.25

LINEAR = [entry.name for entry in ESTIMATORS if entry.module.startswith("linear.")]

# Labels that read as several: ``1,3``, ``1;3``, ``1|3``.
SEVERAL = re.compile(r"[^,;|][,;|][^,;|]")

# The kernel where its options are not given.
KERNEL = KernelFunction().get_params()


def kernel_options(default: str | None = None) -> Any:
    """Decorate a command with --kernel, --gamma, --degree and --coef0, None where not given.

    `default` describes what a command without --kernel does, if it does without one.
    """
    of_kernel = partial(given_of, KernelFunction)
    options = [
        of_kernel("kernel", "The kernel.", default),
        of_kernel("gamma", "A number, scale, or auto: chosen as C is."),
        of_kernel("degree", "poly: the degree."),
        of_kernel("coef0", "poly, sigmoid: the constant term."),
    ]
    return partial(with_options, options)


def kernel_rules(kernel: Any) -> Any:
    """For `refuse`: the options that a kernel does not have."""
    return (
        (kernel == "linear", "gamma", "with --kernel linear"),
        (kernel != "poly", "degree", f"with --kernel {kernel}"),
        (kernel not in ("poly", "sigmoid"), "coef0", f"with --kernel {kernel}"),
    )


def kernel_text(kernel: Any) -> str:
    """The kernel and its parameters."""
    used = {"rbf": ("gamma",), "poly": ("gamma", "degree", "coef0"), "sigmoid": ("gamma", "coef0")}.get(kernel.name, ())
    return f"{kernel.name}({', '.join(f'{name}={getattr(kernel, name):g}' for name in used)})"


class Machine(NamedTuple):
    """A kind of machine: its solver, model and estimator, whether examples have weights, and groups of parameters."""

    solver: Any
    model: Any
    estimator: str
    balances: bool = True
    groups: tuple[tuple[str, type[ParameterGroup]], ...] = ()

    @property
    def has_kernel(self) -> bool:
        return self.model is not LinearModel

    def params(self, given: dict[str, Any], before: Any, option: str) -> dict[str, Any]:
        """All parameters: those given, else those of the model to continue, else the usual ones."""
        names = self.solver().get_params().keys() | (KERNEL.keys() if self.has_kernel else set())
        for unknown in sorted(given.keys() - names - ({"balanced"} if self.balances else set())):
            raise click.UsageError(f"{option} has no {unknown}")
        if given.pop("balanced", False):
            given["class_weight"] = "balanced"
        own = {} if before is None else dict(before.params)
        for group, _ in self.groups:
            if (values := own.pop(group, None)) is not None:
                own |= values.get_params()
        merged = KERNEL | ({"C": AUTO} if "C" in names else {}) | {"random_state": 0} | own | given
        if self.has_kernel:
            KernelFunction(**{key: given[key] for key in given.keys() & KERNEL.keys()}).validate()
            refuse(given, *kernel_rules(merged["kernel"]))
        names |= {"class_weight"} if merged.get("class_weight") is not None else set()
        return {key: value for key, value in merged.items() if key in names}


def train_machine(
    job: Training, path: str, params: dict[str, Any], option: str, machines: Any, about_labels: Any
) -> int:
    """Train on a file and write the model; returns the exit status.

    `option` is the one that names one of the machines, by default the first. ``about_labels(path, labels)`` returns a
    text about labels, or raises ValueError for those that the machines cannot be trained on.
    """
    before = None if job.warm_start is None else load(job.warm_start)
    name = machine_name(job, params.pop(option, None), option, machines, before)
    machine, probability = machines[name], params.pop("probability", False)
    params = machine.params(params, before, f"--{option} {name}")
    settings = Settings(**params)
    left_out = KERNEL.keys() | {"class_weight"} | ({"C"} if is_auto(settings.C) else set())
    solver = machine.solver(**{key: params[key] for key in params.keys() - left_out})
    solver.validate()
    X, y, first_index, job.read = examples(before, path)
    labels = np.unique(y) if before is None else before.labels
    about = about_labels(path, labels)
    label_ids = label_ids_of(y, labels)
    X, model = X if X.nnz < DENSE * X.shape[0] * X.shape[1] else X.toarray(), before
    if model is None:
        model = machine.model(labels, *([kernel_of(settings, X)] if machine.has_kernel else []))
        model.estimator = machine.estimator
    elif machine.has_kernel:
        model.check_kernel(settings, X, model.params)
    else:
        X = X.astype(model.coef.dtype)
    if machine.has_kernel:
        check_inputs(model.kernel, X, None if before is None else model.vector_sizes)
    say_several(labels)
    model.first_index = first_index
    model.calibrates = probability or model.temperature is not None
    text = f"kernel {kernel_text(model.kernel)}" if machine.has_kernel else "linear"
    if before is None and machine.has_kernel and leaves_gamma(settings):
        text = f"kernel {model.kernel.name}"
    job.announce(f"{X.shape[0]} examples, {X.shape[1]} features, {about}, {text}")
    costs = label_costs(params.get("class_weight"), labels.tolist(), label_ids)
    kind = KernelRows if machine.has_kernel else LabeledRows
    rows = kind(X, label_ids, weight=None if costs is None else costs[label_ids])
    return job.run(model, rows, solver, grouped(params, params, dict(machine.groups)), rows.doubt, describe=describe)


def say_several(labels: LabelArray) -> None:
    """Warn of labels that read as several, ``1,3``, each of which is one class here."""
    several = [label for label in labels.tolist() if isinstance(label, str) and SEVERAL.search(label)]
    if several:
        warn(
            f"labels such as {several[0]!r:.40} are one class each; train multilabel reads several labels per row, "
            "between commas",
            AdviceWarning,
        )


def machine_name(job: Training, name: str | None, option: str, machines: Any, before: Any) -> str:
    """The name that is given, that of the model to continue, or the first; ValueError where the first two differ."""
    if before is None:
        return name or next(iter(machines))
    trained = next((key for key, machine in machines.items() if machine.estimator == before.estimator), None)
    if trained is None or name not in (trained, None):
        what = f"--{option} {name}" if name else "this command"
        raise ValueError(f"{job.warm_start}: a model of {before.estimator}, which {what} cannot continue")
    return trained


def describe(model: Any) -> str:
    """The certificate, and the cost of a kernel."""
    text = model.result.certificate()
    if isinstance(model, LinearModel):
        return text
    vectors = f"{np.count_nonzero(model.coef.data)} support vectors, " * isinstance(model, BinaryKernelModel)
    rows = f"{100 * model.hit_rate:.1f} % of rows in the cache"
    return f"{text}\n{vectors}{model.n_kernel / 1e6:.4g} million kernel values, {rows}"


def load(path: str) -> Any:
    """The model of a file, linear or with a kernel."""
    file = read_header(path)
    linear = file.meta.get("estimator") in LINEAR
    kind = LinearModel if linear else BinaryKernelModel if file.kind == BinaryKernelModel.kind else KernelModel
    return kind.load(path)


def examples(model: Any, path: str, *, needs_labels: bool = True) -> Any:
    """Return ``(X, labels, first_index, places)`` of a file, with the features of the model, if there is one."""
    X, labels, first_index, lines = read_rows(out.source(path), None if model is None else model.first_index)
    if labels is None and needs_labels:
        raise ValueError(f"{path}, line {lines[0]}: has no label, but features alone")
    X = X if model is None else out.widened(X, path, model.n_features)
    unknown = [i for i, label in enumerate(labels or ()) if needs_labels and is_unknown(label, None)]
    if labels is not None and unknown:
        raise ValueError(
            f"{path}, line {lines[unknown[0]]}: the label {labels[unknown[0]]} means one that is not known, and stands "
            f"in {len(unknown)} lines: leave these out"
        )
    return X, None if labels is None else label_values(labels), first_index, PlacedRows(path, lines)


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """The accuracy; the picture is the confusion matrix."""
    X, y, _, places = examples(model, path)
    out.say_other_units(X, model)
    # As strings: labels that the model does not know may be of another type, and count as errors.
    gold, found = y.astype(str), model.predict(X).astype(str)
    accuracy = float(np.mean(gold == found))
    text = f"{len(y)} examples: accuracy {100 * accuracy:.2f}% ({np.sum(gold != found)} errors)"
    n_unseen = say_unseen(gold.tolist(), set(map(str, model.labels)), "examples", places)
    scores = {"accuracy": accuracy, "n_samples": len(y), "n_unseen": n_unseen}
    return scores, text, lambda: out.compared("ConfusionDisplay", (7, 6), [gold.tolist()], [found.tolist()])
