"""The commands for dependency parsers, on files of CoNLL-U, CoNLL-X and CoNLL-2009; predictions are CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

import structsvm.cli.output as out
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, defaults, option_of, optional, refuse, training
from structsvm.features.inputs.places import in_files, located
from structsvm.metrics import dependency_scores
from structsvm.metrics._dependencies import say_unseen_relations
from structsvm.structures.dependencies import read_conllu
from structsvm.tasks.common.parameters import lines
from structsvm.tasks.dependency.arcs import known_arcs_of
from structsvm.tasks.dependency.model import DependencyModel
from structsvm.tasks.dependency.parameters import ArcFeatures, DependencyParserParameters, make_dependency_solver
from structsvm.tasks.dependency.preparation import prepare


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The input's sentences with the predicted heads and relations, of ranked trees with the score in comments.

    Multiword tokens, empty nodes and comments stay.
    """
    trees = read_conllu(out.source(path))
    if wanted.is_ranked:
        ranked = model.predict_kbest(trees, wanted.kbest or 1, probabilities=wanted.confidence)
    else:
        ranked = ([(arcs, None)] for arcs in model.predict(trees, n_jobs=wanted.jobs))
    for tree, found in zip(trees, ranked):
        for rank, (arcs, score) in enumerate(found, start=1):
            parsed = tree.with_arcs(arcs)
            if score is not None:
                about = (f"# rank = {rank}", f"# {'probability' if wanted.confidence else 'score'} = {score:.6f}")
                parsed = replace(parsed, comments=(*parsed.comments, *about))
            lines = (*parsed.comments, parsed.pretty(), "")
            yield "".join(f"{line}\n" for line in lines) if wanted.pretty else parsed.to_conllu()


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """UAS, LAS and CLAS; the picture is of the first sentence with a wrong arc."""
    trees = read_conllu(out.source(path))
    with located(trees):
        known_arcs_of(trees, None)
    predicted = [tree.with_arcs(arcs) for tree, arcs in zip(trees, model.predict(trees, n_jobs=jobs))]
    say_unseen_relations(trees, model.labels)
    scores = dependency_scores(trees, predicted)
    names = ("uas", "las", "clas", "las_subtypes", "accuracy", "n_sentences", "n_words")
    several = sum(tree.heads.count(0) > 1 for tree in trees)
    text = scores.report() + f"\nseveral roots in {several} sentences, of which a parser finds one" * (several > 0)
    return out.named(scores, *names) | {"n_several_roots": several}, text, lambda: errors(trees, predicted)


def errors(trees: Any, predicted: Any) -> Any:
    """A figure of the first wrong tree."""
    return out.first_wrong("DependencyDisplay", trees, predicted, len, 0.9, 6.0)


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model: its templates with `top` of each kind, and its labels."""
    oracle = model.oracle
    shown = out.chosen(only, model.labels)
    kind = "projective trees" if model.projective else "trees whose arcs may cross"
    text = f"task: dependency, {kind}; features hashed to 2**{oracle.arc_bits} and to 2**{oracle.row_bits} rows"
    out.heading(model, text, DEFAULTS, f"{len(shown)} labels: {', '.join(label for _, label in shown)}")
    pairs = () if model.pairs is None else model.pairs.oracle.templates.texts
    kinds = ("arcs", oracle.templates.arcs), ("labels", oracle.templates.labels), ("pairs of arcs", pairs)
    for name, templates in kinds:
        click.echo(f"\n{len(templates)} templates of {name}")
        for template in templates[:top]:
            click.echo(f"  {template}")


def demo(seed: int) -> Any:
    """Train on simulated trees, some of them with crossing arcs, and draw a wrong prediction."""
    from structsvm.datasets import make_dependency_trees
    from structsvm.tasks import DependencyParser

    click.echo("simulating 500 trees, in one of twelve a word has moved, and 200 to test on")
    trees, test = (
        make_dependency_trees(n, crossing=0.08, english=True, random_state=seed + k) for k, n in enumerate((500, 200))
    )
    for name, projective in (("projective", True), ("arcs may cross", False)):
        parser = DependencyParser(C=0.1, projective=projective, random_state=seed).fit(trees)
        predicted = [tree.with_arcs(arcs) for tree, arcs in zip(test, parser.predict(test))]
        scores = dependency_scores(test, predicted)
        click.echo(f"{name}: UAS {100 * scores.uas:.2f} %, LAS {100 * scores.las:.2f} %")
    click.echo(parser.result_.certificate())
    click.echo(predicted[0].pretty())
    return errors(test, predicted)


def crossing(model: Any) -> str:
    """Whether arcs may cross in the trees of a model that is to be trained."""
    if not model.oracle.projective:
        return "arcs may cross"
    has_pairs = model.pair_templates is not None
    return "projective, but in the second stage arcs may cross" if has_pairs and model.pairs_cross else "projective"


of_parser, of_features = partial(option_of, DependencyParserParameters), partial(option_of, ArcFeatures)


@training()
@of_parser("loss", "A margin, or the likelihood.")
@of_parser("order", "2: score pairs of arcs, too.")
@optional("--projective/--crossing", None, "Whether arcs may cross.  [default: by the trees]")
@of_parser("probability", "Fit what predict --confidence needs, on held-out trees.")
@of_parser("subtypes", "Keep what follows a colon in labels.")
@click.option("--arc-templates", "arcs", type=out.Input(), help="File of arc templates, one per line.")
@click.option("--label-templates", "labels", type=out.Input(), help="File of label templates.")
@click.option("--pair-templates", "pairs", type=out.Input(), help="File of templates of pairs of arcs.")
@of_features("arc_bits", "Hash features of arcs to 2**BITS.  [default: by the words]")
@of_features("row_bits", "The same for rows of label weights.")
@of_parser("max_length", "Longest sentence.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a dependency parser on a file of CoNLL-U, CoNLL-X or CoNLL-2009."""
    texts: dict[str, str] = {}
    for name in ("arcs", "labels", "pairs"):
        if params.get(name) is not None:
            with open(params[name], encoding="utf-8-sig") as file:
                texts[params[name]] = text = file.read()
            if not lines(text):
                raise ValueError(f"{params[name]}: contains no templates")
            params[name] = text
    before, settings = job.start(DependencyModel.load, DEFAULTS, params, {"features": ArcFeatures})
    refuse(params, (settings.order == 1, "pairs", "with --order 1"))
    if settings.order == 1 and before is not None and before.pairs is not None:
        raise click.UsageError(f"--order 1: {job.warm_start} has a second stage, which would be lost")
    if settings.projective is None:
        settings.projective = "auto"
    solver = make_dependency_solver(settings)
    solver.validate()
    job.read = read_conllu(out.source(path))
    with in_files(texts, "template "):
        model, examples = prepare(settings, job.read, None, before)
    job.announce(
        f"{len(examples)} sentences, {len(examples.codes)} words, {len(model.labels)} labels, "
        f"{model.oracle.n_features} weights, {crossing(model)}"
    )
    return job.run(model, examples, solver, vars(settings))


DEFAULTS = defaults(command) | {"projective": "auto", "features": None}
TASK = Task(command, DependencyModel.load, predict, evaluate, inspect, demo, has_trees=True)
