"""The commands for parsers, on files of bracketed trees and of sentences.

A sentence is a line of tags or words (what the model was trained on) between spaces, or of nothing but ``word/TAG``;
predict also takes files of trees, and parses their sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import click

import structsvm.cli.output as out
from structsvm.cli.training import Training, choice, count, defaults, flag, training
from structsvm.features.sources import load_text
from structsvm.metrics import bracket_scores
from structsvm.structures.trees import parse_trees, read_trees
from structsvm.tasks.common.solver import SOLVERS
from structsvm.tasks.grammar.model import PCFG, GrammarModel, as_trees, prepare
from structsvm.tasks.grammar.parameters import make_grammar_solver

# How a file of trees begins, and no sentence whose first word is a bracket: (S ..., or ( (S ...
_TREES = re.compile(r"\s*\((\s*\(|[^\s()])")


load = GrammarModel.load


def predict(model: Any, path: str, output: str | None, kbest: int | None, jobs: int, *, pretty: bool = False) -> None:
    """Write the best tree of each sentence, one per line; with `kbest` each after a line with its rank and score.

    A blank line stays one; a sentence that the grammar does not cover gets the flat tree, and how many there are is
    said at the end.
    """
    lines = read_sentences(path)
    sentences = [line for line in lines if line]
    uncovered = 0
    with out.writing(output) as stream:
        if kbest is None:
            ranked = ([(tree, 0.0)] for tree in model.predict(sentences, on_no_parse=None, n_jobs=jobs))
        else:
            ranked = model.predict_kbest(sentences, kbest, on_no_parse=None)
        for line in lines:
            if not line:
                stream.write("\n")
                continue
            for rank, (tree, score) in enumerate(next(ranked), start=1):
                uncovered += tree is None
                tree = tree or model.flat(line)
                head = "" if kbest is None else f"# {rank} {score:.6f}\n"
                stream.write(f"{head}{tree.pretty() if pretty else tree}\n")
    if uncovered:
        click.echo(f"{uncovered} of {len(sentences)} sentences are not covered by the grammar", err=True)


def evaluate(model: Any, path: str, as_json: bool, jobs: int, plot: str | None) -> None:
    """Parse the sentences of a file of trees and score the brackets; `plot`: the first tree that is not right."""
    trees = as_trees(read_trees(out.source(path)), clean=True)
    predicted = model.predict([tree.tokens() for tree in trees], on_no_parse="flat", n_jobs=jobs)
    scores = bracket_scores(trees, predicted)
    keys = ("accuracy", "f1", "precision", "recall", "tag_accuracy", "n_sentences", "n_true")
    out.scores({key: getattr(scores, key) for key in keys}, as_json, scores.report())
    if plot:
        out.save(picture_of(trees, predicted), plot, say=out.note)


def picture_of(trees: Any, predicted: Any) -> Any:
    """A figure of the first true and predicted tree that differ, or of the first tree where none does."""
    from structsvm.plotting import TreeDisplay

    pair = next((pair for pair in zip(trees, predicted, strict=True) if pair[0] != pair[1]), (trees[0], predicted[0]))
    figure = out.blank(min(max(0.62 * len(pair[0].leaves()), 6.0), 40.0), 10.0)
    TreeDisplay.from_predictions(*pair, ax=figure.subplots(2))
    return figure


def inspect(model: Any, top: int, only: Sequence[str], plot: str | None) -> None:
    """Print what the model is and the heaviest rules of each nonterminal."""
    if plot and model.result is None:
        raise ValueError("--plot: a grammar of relative frequencies has no training history")
    grammar = model.oracle.grammar
    shown = out.chosen(only, grammar.nodes, "nonterminals")
    click.echo(
        f"task: grammar, {len(grammar.rules)} rules over {model.terminals.kind}, {len(grammar.nodes)} nonterminals, "
        f"{len(grammar.terminals)} terminals, start "
        + ", ".join(f"{name} {weight:+.4f}" if weight else name for name, weight in model.weighted_starts().items())
    )
    out.certificate(model)
    rules = sorted(model.weighted_rules(), key=lambda pair: -pair[1])
    for _, label in shown:
        click.echo(f"\n{label}")
        for rule, weight in [pair for pair in rules if pair[0].lhs == label][:top]:
            click.echo(f"  {weight:+9.4f}  {rule}")
    if plot:
        out.history(model, plot)


def demo(output: str | None, seed: int) -> None:
    """Train on simulated trees in several ways, beside the generative grammar, and draw a tree that came out wrong."""
    from structsvm.datasets import make_treebank

    click.echo("simulating 500 trees, and 200 to test on")
    trees, test = (make_treebank(n, random_state=seed + k) for k, n in enumerate((500, 200)))
    variants: dict[str, dict[str, Any]] = {
        "generative grammar": {"solver": PCFG},
        "LaRank, zero-one loss": {"loss": "zero_one"},
        "LaRank, F1 loss": {},
        "LaRank, F1 loss, span features": {"span_features": True},
    }
    for name, changes in variants.items():
        settings = SimpleNamespace(**DEFAULTS | {"random_state": seed} | changes)
        model, encoded = prepare(settings, trees)
        if settings.solver == PCFG:
            model.estimate(encoded, 0.0)
        else:
            model.train(encoded, make_grammar_solver(settings))
        predicted = model.predict([tree.tokens() for tree in test], on_no_parse="flat")
        scores = bracket_scores(test, predicted)
        click.echo(f"{name}: F1 {100 * scores.f1:.2f} %, complete trees {100 * scores.accuracy:.1f} %")
    click.echo(model.result.certificate())
    click.echo(predicted[0].pretty())
    out.save(picture_of(test, predicted), output)


def read_sentences(path: str) -> Any:
    """Sentences of a file: lines of tokens (none: blank), ``word/TAG`` for pairs; or trees, whose tokens they are."""
    text, name = load_text(out.source(path), ValueError)
    lines = [_tokens(line.split()) for line in text.splitlines()]
    first = next(filter(None, lines), None)
    if first is None:
        raise ValueError(f"{name}: no sentences")
    if isinstance(first[0], str) and _TREES.match(text):
        return [tree.tokens() for tree in as_trees(parse_trees(text, name), clean=True)]
    return lines


def _tokens(texts: Any) -> Any:
    pairs = [text.rpartition("/") for text in texts]
    if all(word and tag for word, _, tag in pairs):
        return [(word, tag) for word, _, tag in pairs]
    return texts


@training(1.0, solvers=(*SOLVERS, PCFG))
@choice("--loss", "f1", "hamming", "zero_one")
@choice("--rescaling", "margin", "slack")
@choice("--penalty", "linear", "quadratic")
@choice("--terminals", "tags", "words")
@count("--min-count", 2, "Words: rarer ones are classes.")
@click.option("--h", "h", type=click.IntRange(0), help="Horizontal Markovisation.  [default: exact rules]")
@count("--v", 1, "Vertical Markovisation.")
@flag("--span-features", "Weights for first and last words, length, split.")
@click.option("--smoothing", type=click.FloatRange(0.0), default=0.0, help="pcfg: added to each rule's count.")
@click.option("--max-unary", type=click.IntRange(0), help="Longest chain of unary rules.  [default: the trees']")
@count("--max-length", 400, "Longest sentence.")
@count("--max-chart-bytes", 2**31, "Largest chart.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a parser on a file of bracketed trees, one per line or as in a treebank's .mrg files.

    Files that end in .gz, .xz or .bz2 are read as they are.
    """
    before, settings = job.start(load, DEFAULTS, params)
    generative = settings.solver == PCFG
    if generative and settings.span_features:
        raise ValueError("--span-features has no meaning with --solver pcfg: a generative grammar has only rules")
    if before is not None and (generative or before.result is None):
        raise ValueError("--warm-start has no meaning with relative frequencies: they are no training to continue")
    solver = None if generative else make_grammar_solver(settings)
    model, trees = prepare(settings, as_trees(read_trees(path), clean=True), before)
    grammar = model.oracle.grammar
    job.announce(
        f"{len(trees)} trees, {len(grammar.rules)} rules, {len(grammar.nodes)} nonterminals, {len(grammar.terminals)} "
        f"terminals, {model.oracle.n_features} features"
    )
    if solver is not None:
        return job.run(model, trees, solver, vars(settings))
    model.params = vars(settings)
    model.estimate(trees, settings.smoothing)
    return job.end(model)


DEFAULTS = defaults(command)
