"""The commands for rankings, on files in svmlight format with the query of each row, or the sizes of queries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, defaults, option_of, optional, training
from structsvm.features.dense import FILLED
from structsvm.metrics import ranking_scores
from structsvm.structures.queries import query_bounds, query_rows, read_sizes
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.ranking.model import RANKER_LOSSES, RankerModel, prepare
from structsvm.tasks.ranking.parameters import RankerParameters

PLACES = 20  # most places in a picture


def queries(path: str, query: str | None, model: Any = None) -> Any:
    """Return ``(X, grades, qid, first_index)`` of a file, with the features of a model if there is one.

    Where its lines have no qid, sizes of queries come from the file `query`, by default that beside it.
    """
    first_index = None if model is None else model.first_index
    X, grades, qid, first_index = query_rows(out.source(path), query, first_index, graded=True)
    if qid is None:
        query = f"{path}.query"
        if path == "-" or not os.path.isfile(query):
            raise ValueError(f"{path}: its lines have no qid; sizes of queries go into {query}, or where --query says")
        click.get_current_context().params["query"] = query
        out.check_files()  # no output is this input
        qid = read_sizes(query, len(grades), path)
    return X if model is None else out.widened(X, path, model.n_features), grades, qid, first_index


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The score of each row."""
    if wanted.kbest is not None:
        raise ValueError("--kbest is for models that choose among outputs; this one gives each row a score")
    X, *_ = query_rows(out.source(path), None, model.first_index, graded=False)
    X = out.widened(X, path, model.n_features)
    out.say_other_units(X, model)
    yield from (f"{score:.9g}\n" for score in model.scores(X).tolist())


def evaluate(model: Any, path: str, jobs: int, query: str | None) -> tuple[dict[str, Any], str, Any]:
    """NDCG, mean average precision and ordered pairs; the picture shows NDCG by the number of places."""
    X, grades, qid, _ = queries(path, query, model)
    out.say_other_units(X, model)
    found = model.scores(X)
    scores = ranking_scores(grades, found, qid=qid)
    if not scores.n_queries:
        raise ValueError(f"{path}: in each query all rows have the same grade: there is nothing to compare with")
    first = {f"ndcg@{k}": value for k, value in scores.ndcg_at.items()}
    values = out.named(scores, "ndcg", "map", "pairs", "n_queries") | first | {"n_rows": len(grades)}
    return values, f"{len(grades)} rows; {report(scores)}", lambda: drawn(grades, found, qid)


def report(scores: Any) -> str:
    """Scores as text."""
    first = ", ".join(f"at {k} {100 * value:.2f}" for k, value in scores.ndcg_at.items())
    return (
        f"means of {scores.n_queries} queries: NDCG {100 * scores.ndcg:.2f} % ({first}), MAP {100 * scores.map:.2f} %, "
        f"ordered pairs {100 * scores.pairs:.2f} %"
    )


def drawn(grades: Any, scores: Any, qid: Any) -> Any:
    """A figure of the NDCG of the first places, beside that of rows in random order (equal scores)."""
    at = range(1, min(int(np.diff(query_bounds(len(grades), qid=qid)).max()), PLACES) + 1)
    figure = out.blank(7, 5)
    axes = figure.add_subplot()
    for label, values in (("by score", scores), ("in any order", np.zeros(len(scores)))):
        found = ranking_scores(grades, values, qid=qid, at=at).ndcg_at
        axes.plot(list(at), [100.0 * value for value in found.values()], marker=".", label=label)
    axes.set(xlabel="first places", ylabel="NDCG %", title="NDCG of the first places, mean over queries")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    return figure


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with its heaviest weights."""
    if only:
        raise ValueError("--label is for models of labels; this one ranks rows")
    places = "" if model.k is None else f" of the first {model.k} places"
    sizes = f"{model.n_features} features, {np.count_nonzero(model.coef)} weights that are not 0"
    out.heading(model, f"task: ranking, loss {model.loss}{places}", DEFAULTS, sizes)
    names = model.columns.get("feature_names_in_")
    click.echo()
    out.heaviest(
        model.coef, top, lambda j: f"feature {j + out.first_index(model)}" if names is None else names[j], ".4g"
    )


def demo(seed: int) -> Any:
    """Train each loss on simulated queries, evaluate on fresh ones, draw the last one's NDCG."""
    from structsvm.datasets import make_rankings
    from structsvm.tasks import Ranker

    click.echo("simulating 100 queries of 2 to 20 rows with grades from 0 to 4, and 100 to test on")
    (X, y, qid), (X_test, y_test, qid_test) = (make_rankings(100, random_state=seed + k) for k in range(2))
    losses: Any = RANKER_LOSSES
    for loss in losses:
        model = Ranker(loss, random_state=seed).fit(X, y, qid=qid).model_
        scores = ranking_scores(y_test, model.scores(X_test), qid=qid_test)
        click.echo(f"{loss}: {report(scores)}")
    click.echo(model.result.certificate())
    return drawn(y_test, model.scores(X_test), qid_test)


@training(plot="Save the training history as a picture.")
@option_of(RankerParameters, "loss", "Training minimises 1 - this.")
@option_of(RankerParameters, "k", "First places that ndcg counts.  [default: all]")
@optional("--query", out.FILE, "Query sizes of TRAIN, one per line.  [default: TRAIN.query]")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Learn to rank the rows of queries.

    A line of TRAIN is a row in svmlight format, "grade qid:ID index:value ...", sorted by qid. Without qid, TRAIN.query
    contains the number of rows of each query, one per line, as for LightGBM.
    """
    query = params.pop("query", None)
    before, settings = job.start(RankerModel.load, DEFAULTS, params)
    solver = make_solver(settings, closes_gap=True)
    solver.validate()
    X, grades, qid, first_index = queries(path, query, before)
    if not X.shape[1]:
        raise ValueError(f"{path}: the rows have no features")
    X = X if X.nnz < FILLED * X.shape[0] * X.shape[1] else X.toarray()
    bounds = query_bounds(len(grades), qid=qid)
    model, examples = prepare(settings, X, grades, bounds, before)
    model.first_index = first_index
    levels = f"grades from {grades.min():g} to {grades.max():g}"
    job.announce(f"{len(bounds) - 1} queries, {len(grades)} rows, {X.shape[1]} features, {levels}")
    return job.run(model, examples, solver, vars(settings))


DEFAULTS = {"standardize": True} | defaults(command, "query")
TASK = Task(command, RankerModel.load, predict, evaluate, inspect, demo, has_probabilities=False, has_queries=True)
