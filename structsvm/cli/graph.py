"""The commands for labelled graphs, on files of JSON or GraphML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import UNKNOWN, Training, defaults, option_of, optional, training
from structsvm.features.inputs.places import PlacedList
from structsvm.features.sources import load_bytes
from structsvm.files.strict_json import parse_json
from structsvm.metrics import graph_scores
from structsvm.metrics._counts import is_unknown, mark_for
from structsvm.parameters import printable
from structsvm.structures.graphs.files import LABEL, GraphLines, read_graphs
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.graph.model import GraphModel
from structsvm.tasks.graph.parameters import GraphLabelerParameters
from structsvm.tasks.graph.preparation import prepare


def read(path: str, label: str) -> GraphLines:
    """The graphs of a file; ValueError, which names it, for graphs that no model accepts."""
    return read_graphs(out.source(path), label=label)


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """A line of JSON per graph: labels of its nodes, in their order, or by their ids if they have them."""
    lines = read(path, model.label)
    if wanted.kbest is not None:
        for ranked, ids in zip(
            model.predict_kbest(lines.X, wanted.kbest, probabilities=wanted.confidence), lines.ids, strict=True
        ):
            key = "probability" if wanted.confidence else "score"
            yield json.dumps([{"labels": named(own, ids), key: round(score, 6)} for own, score in ranked]) + "\n"
        return
    rules = None if wanted.constraints is None else read_rules(wanted.constraints, lines.ids)
    labels = model.predict(lines.X, constraints=rules, n_jobs=wanted.jobs)
    chances = model.marginals(lines.X) if wanted.confidence else [None] * len(labels)
    for own, ids, table in zip(labels, lines.ids, chances, strict=True):
        about: dict[str, Any] = {"labels": named(own, ids)}
        if table is not None:
            rows = [dict(zip(map(str, model.labels), row, strict=True)) for row in np.round(table, 6).tolist()]
            about["probabilities"] = rows if ids is None else dict(zip(map(str, ids), rows, strict=True))
        yield json.dumps(about) + "\n"


def named(labels: Any, ids: Any) -> Any:
    """Labels of nodes in their order, or by their ids if they have them."""
    names = labels.tolist()
    return names if ids is None else dict(zip(map(str, ids), names, strict=True))


def read_rules(path: str, ids: Any) -> list[Any]:
    """The constraints of each graph, one JSON list per line, with nodes named by their ids if they have them.

    ValueError, which names file and line, for what is no list of ``[kind, [[node, label], ...]]``.
    """
    found = []
    for number, line in enumerate(load_bytes(path)[0].splitlines(), 1):
        try:
            rules = parse_json(line)
            if number > len(ids):
                raise ValueError(f"there are no more than {len(ids)} graphs")
            names = ids[number - 1]
            if names is not None:
                place = {name: k for k, name in enumerate(names)}
                rules = [[kind, [[place[node], label] for node, label in pairs]] for kind, pairs in rules]
            found.append(rules)
        except KeyError as error:
            raise ValueError(f"{path}:{number}: {error.args[0]!r:.80} is no node") from None
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{number}: expected a list of [kind, [[node, label], ...]]: {error}") from None
    return found


def evaluate(model: Any, path: str, jobs: int, *, constraints: str | None = None) -> tuple[dict[str, Any], str, Any]:
    """Accuracy and intersection over union per label; the picture is the confusion matrix."""
    lines = read(path, model.label)
    unknown = mark_for(model.unknown, model.labels)
    y = [[None if is_unknown(label, unknown) else label for label in labels] for labels in lines.y]
    known = [[k for k, label in enumerate(labels) if label is not None] for labels in y]
    if not any(known):
        raise ValueError(f"{path}: its nodes have no label, to compare with")
    rules = None if constraints is None else read_rules(constraints, lines.ids)
    predicted = model.predict(lines.X, constraints=rules, n_jobs=jobs)
    scores = graph_scores(y, predicted, model.labels)

    def drawn() -> Any:
        pairs = (
            [[labels[k] for k in at] for labels, at in zip(of, known, strict=True)]
            for of in (y, [labels.tolist() for labels in predicted])
        )
        return out.compared("ConfusionDisplay", (7, 6), *pairs)

    found = out.named(scores, "accuracy", "mean_jaccard", "n_graphs", "n_nodes")
    found |= {"n_unknown": sum(map(len, y)) - scores.n_nodes}
    text = scores.report()
    if found["n_unknown"]:
        text += f"\n{found['n_unknown']} nodes without a known label are left out"
    return found | {"jaccard": {str(k): v for k, v in scores.jaccard.items()}}, text, drawn


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with the heaviest weights of each label and of pairs of labels."""
    oracle = model.oracle
    shown = out.chosen(only, model.labels)
    text = f"task: graph, interactions {oracle.interactions}, method {oracle.method}, loss {model.loss}"
    sizes = f"{model.encoder.n_features} features of nodes, {len(model.edge_units.shift)} of edges"
    labels = ", ".join(map(str, model.labels))
    out.heading(model, text, DEFAULTS, f"{sizes}, {len(model.labels)} labels: {labels}")
    names, (weights, intercept) = model.encoder.feature_names, model.node_weights()
    tables, constant = model.edge_weights()
    for k, label in shown:
        click.echo(f"\n{label}  {intercept[k]:+.3f}")
        out.heaviest(weights[:, k], top, names.__getitem__)
        beside = np.argsort(-constant[k], kind="stable")[:3]
        after = "  ".join(f"{model.labels[c]} {constant[k, c]:+.3f}" for c in beside)
        click.echo(f"  before {printable(after)}")
        for j, table in enumerate(tables[:top]):
            best = np.argsort(-np.abs(table[k]), kind="stable")[:3]
            after = "  ".join(f"{model.labels[c]} {table[k, c]:+.3f}" for c in best)
            click.echo(f"    edge {j}: {printable(after)}")


def demo(seed: int) -> Any:
    """Label noisy grids with edges and without, and draw one of them."""
    from structsvm.datasets import make_noisy_grids
    from structsvm.tasks import GraphLabeler

    click.echo("simulating 20 grids of 24 x 24 cells with 2 labels and noise, and 10 to test on")
    X, y = make_noisy_grids(20, random_state=seed)
    X_test, y_test = make_noisy_grids(10, random_state=seed + 1)
    found: dict[str, Any] = {}
    for name, params in (("no edges", {"interactions": "none"}), ("edges", {}), ("edges, cut", {"method": "cut"})):
        model = GraphLabeler(random_state=seed, **params).fit(X, y)  # type: ignore[arg-type]
        found[name] = model.predict(X_test)
        click.echo(f"{name}: {graph_scores(y_test, found[name]).report().splitlines()[0]}")
    click.echo(model.result_.certificate())
    figure = out.blank(12, 3.4)
    panels = {"one feature": X_test[0][..., 1], "labels": y_test[0], **{k: v[0] for k, v in found.items()}}
    for axes, (name, cells) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        axes.imshow(cells, cmap="cividis")
        axes.set(title=name, xticks=[], yticks=[])
    return figure


of_labeler = partial(option_of, GraphLabelerParameters)


@training(file=out.FILE_OR_STDIN, plot="Save the training history as a picture.")
@of_labeler("interactions", "What edges tell of their labels; auto: full, for undirected graphs symmetric.")
@of_labeler("method", "How the best labels are found.")
@of_labeler("loss", "A margin of wrong nodes, or that of a CRF (graphs close to trees).")
@of_labeler("max_table", "Entries of the largest table of junction trees.")
@of_labeler("probability", "Fit the temperature of a margin (graphs close to trees).")
@optional("--label", str, "The entry of nodes that is their label.  [default: label]")
@UNKNOWN
@optional("--constraints", out.FILE, "Constraints on the labels, one JSON list per line.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Label the nodes of graphs.

    TRAIN is JSON, one graph per line or a list of them, each an object with "nodes" (with "features" and a "label") and
    "edges" ([0, 1] or [0, 1, [features]]); or a GraphML file. Labels that are missing or null are completed. - is
    standard input.
    """
    name, rules = params.pop("label", None), params.pop("constraints", None)
    before, settings = job.start(GraphModel.load, DEFAULTS, params)
    solver = make_solver(settings)
    solver.validate()
    lines = read(path, name or (LABEL if before is None else before.label))
    job.read = PlacedList(lines.X, lines.places)
    if before is None and settings.interactions == "auto" and not lines.is_directed and settings.method != "cut":
        settings.interactions = "symmetric"
    constraints = None if rules is None else read_rules(rules, lines.ids)
    model, examples = prepare(settings, lines.X, lines.y, before, constraints=constraints)
    if before is None:
        model.label = name or LABEL
    graphs = examples.graphs
    sizes = f"{len(graphs)} graphs, {graphs.n_nodes} nodes, {graphs.n_edges} edges, {model.encoder.n_features} features"
    job.announce(f"{sizes}, {len(model.labels)} labels")
    return job.run(model, examples, solver, vars(settings), examples.doubt)


DEFAULTS = {"neighbours": 4, "contrast": True, "class_weight": None} | defaults(command, "label", "constraints")
TASK = Task(command, GraphModel.load, predict, evaluate, inspect, demo, has_constraints=True, has_unknown=True)
