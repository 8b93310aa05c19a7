"""The commands for parsers, on files of bracketed trees and of sentences.

A sentence is a line of tags or words (what the model was trained on) between spaces, or of nothing but ``word/TAG``;
predict also takes files of trees, and parses their sentences.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import click

from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import COMMON, Training, passes_if_interrupted, training
from structsvm.features.sources import load_text
from structsvm.metrics import bracket_scores
from structsvm.structures.trees import parse_trees, read_trees
from structsvm.tasks.grammar.model import PCFG, GrammarModel, as_trees, prepare
from structsvm.tasks.grammar.parameters import make_grammar_solver

# How a file of trees begins, and no sentence whose first word is a bracket: (S ..., or ( (S ...
_TREES = re.compile(r"\s*\((\s*\(|[^\s()])")

DEFAULTS = COMMON | {
    "loss": "f1",
    "rescaling": "margin",
    "penalty": "linear",
    "terminals": "tags",
    "min_count": 2,
    "h": None,
    "v": 1,
    "span_features": False,
    "max_unary": None,
    "smoothing": 0.0,
    "max_length": 400,
    "max_chart_bytes": 2**31,
}


def train(path: str | os.PathLike[str], model_path: str, params: Any, quiet: bool) -> int:
    """Train on a file and write the model; returns the exit status (130 after Ctrl-C)."""
    job = Training(quiet)
    check_writable(model_path)
    settings = SimpleNamespace(**DEFAULTS | params)
    generative = settings.solver == PCFG
    if generative and settings.span_features:
        raise ValueError("--span-features has no meaning with --solver pcfg: a generative grammar has only rules")
    solver = None if generative else make_grammar_solver(settings)
    model, trees = prepare(settings, as_trees(read_trees(path), clean=True))
    model.params = vars(settings)
    grammar = model.oracle.grammar
    job.say(
        f"{len(trees)} trees, {len(grammar.rules)} rules, {len(grammar.nodes)} nonterminals, {len(grammar.terminals)} "
        f"terminals, {model.oracle.n_features} features ({job.seconds:.2f} s)"
    )
    interrupted = None
    if solver is None:
        model.estimate(trees, settings.smoothing)
    else:
        with job.warnings():
            run = model.train(trees, solver, monitor=job.bar(solver))
        interrupted = passes_if_interrupted(run)
        job.say(model.result.certificate())
    model.save(model_path)
    return job.end(model_path, interrupted)


def predict(
    model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any, *, pretty: bool = False
) -> None:
    """Write the best tree of each sentence, one a line; with `kbest` each after a line with its rank and score.

    A blank line stays one; a sentence that the grammar does not cover gets the flat tree, and how many there are is
    said at the end.
    """
    model = GrammarModel.load(model_path, mmap=True)
    lines = read_sentences(path)
    sentences = [line for line in lines if line]
    uncovered = 0
    with writing(output) as stream:
        if kbest is None:
            ranked: Iterator[Any] = ([(tree, 0.0)] for tree in model.predict(sentences, on_no_parse=None, n_jobs=jobs))
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


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Parse the sentences of a file of trees and score the brackets; `plot`: the first tree that is not right."""
    drawable(plot)
    model = GrammarModel.load(model_path, mmap=True)
    trees = as_trees(read_trees(source_of(path)), clean=True)
    predicted = model.predict([tree.tokens() for tree in trees], on_no_parse="flat", n_jobs=jobs)
    scores = bracket_scores(trees, predicted)
    keys = ("accuracy", "f1", "precision", "recall", "tag_accuracy", "n_sentences", "n_true")
    click.echo(json.dumps({key: getattr(scores, key) for key in keys}) if as_json else scores.report())
    if plot:
        save(picture_of(trees, predicted), plot, say=lambda text: click.echo(text, err=True))


def picture_of(trees: Any, predicted: Any) -> Any:
    """A figure of the first true and predicted tree that differ, or of the first tree where none does."""
    from structsvm.plotting import TreeDisplay

    pair = next((pair for pair in zip(trees, predicted, strict=True) if pair[0] != pair[1]), (trees[0], predicted[0]))
    figure = blank(min(max(0.62 * len(pair[0].leaves()), 6.0), 40.0), 10.0)
    TreeDisplay.from_predictions(*pair, ax=figure.subplots(2))
    return figure


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is and the heaviest rules of each nonterminal."""
    drawable(plot)
    model = GrammarModel.load(model_path)
    if plot and model.result is None:
        raise ValueError("--plot: a grammar of relative frequencies has no training history")
    grammar = model.oracle.grammar
    unknown = [label for label in only if label not in grammar.nodes]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the nonterminals {', '.join(grammar.nodes)}")
    click.echo(
        f"task: grammar, {len(grammar.rules)} rules over {model.terminals.kind}, {len(grammar.nodes)} nonterminals, "
        f"{len(grammar.terminals)} terminals, start "
        + ", ".join(f"{name} {weight:+.4f}" if weight else name for name, weight in model.weighted_starts().items())
    )
    if model.result is not None:
        click.echo(model.result.certificate())
    rules = sorted(model.weighted_rules(), key=lambda pair: -pair[1])
    for label in only or grammar.nodes:
        click.echo(f"\n{label}")
        for rule, weight in [pair for pair in rules if pair[0].lhs == label][:top]:
            click.echo(f"  {weight:+9.4f}  {rule}")
    if plot:
        from structsvm.plotting import HistoryDisplay

        figure = blank(7, 6)
        HistoryDisplay(model.result.history).plot(ax=figure.subplots(2, sharex=True))
        save(figure, plot)


def demo(output: Any, seed: Any) -> None:
    """Train on simulated trees in several ways, beside the generative grammar, and draw a tree that came out wrong."""
    from structsvm.datasets import make_treebank

    drawable(output)
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
    save(picture_of(test, predicted), output)


def source_of(path: str | os.PathLike[str]) -> Any:
    """The path, or standard input for "-"."""
    return click.get_binary_stream("stdin") if path == "-" else path  # type: ignore[operator]


def read_sentences(path: str | os.PathLike[str]) -> Any:
    """Sentences of a file: lines of tokens (none: blank), ``word/TAG`` for pairs; or trees, whose tokens they are."""
    text, name = load_text(source_of(path), ValueError)
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


@training(1.0, more_solvers=[PCFG])
@click.option("--loss", type=click.Choice(["f1", "hamming", "zero_one"]), default="f1", show_default=True)
@click.option("--rescaling", type=click.Choice(["margin", "slack"]), default="margin", show_default=True)
@click.option("--penalty", type=click.Choice(["linear", "quadratic"]), default="linear", show_default=True)
@click.option("--terminals", type=click.Choice(["tags", "words"]), default="tags", show_default=True)
@click.option(
    "--min-count", type=click.IntRange(1), default=2, show_default=True, help="Words: rarer ones are classes."
)
@click.option("--h", "h", type=click.IntRange(0), help="Horizontal Markovisation.  [default: exact rules]")
@click.option("--v", "v", type=click.IntRange(1), default=1, show_default=True, help="Vertical Markovisation.")
@click.option("--span-features", is_flag=True, help="Weights for first and last words, length, split.")
@click.option("--smoothing", type=click.FloatRange(0.0), default=0.0, help="pcfg: added to each rule's count.")
@click.option("--max-unary", type=click.IntRange(0), help="Longest chain of unary rules.  [default: the trees']")
@click.option("--max-length", type=click.IntRange(1), default=400, show_default=True, help="Longest sentence.")
@click.option(
    "--max-chart-bytes",
    type=click.IntRange(1),
    default=DEFAULTS["max_chart_bytes"],
    show_default=True,
    help="Largest chart.",
)
def command(train_file: Any, model: Any, quiet: bool, **params: Any) -> None:
    """Train a parser on a file of bracketed trees, one a line or as in a treebank's .mrg files.

    Files that end in .gz, .xz or .bz2 are read as they are.
    """
    sys.exit(train(train_file, model, params, quiet))
