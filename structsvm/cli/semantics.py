"""The commands for semantic parsing, on JSON lines of sentences with bags of meanings."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import Training, passes_if_interrupted, training
from structsvm.metrics import alignment_error, meaning_scores
from structsvm.structures.bag_lines import read_bags
from structsvm.structures.meanings import format_meaning
from structsvm.tasks.semantics.model import SemanticModel, as_grammar
from structsvm.tasks.semantics.solver import make_ospas

# What SemanticParser's parameters are where no option says otherwise.
DEFAULTS = {
    "C": 0.1,
    "strategy": "order_free",
    "max_iter": 1,
    "average": False,
    "refine": 0,
    "window": 0,
    "ngrams": 1,
    "role_window": 2,
    "grammar": None,
    "max_meanings": None,
    "complete": True,
    "fold_constants": False,
    "lowercase": True,
    "random_state": 0,
    "checkpoint": None,
    "checkpoint_every": 1,
}


def train(path: str | os.PathLike[str], model_path: str, params: Any, quiet: bool) -> int:
    """Train on a file and write the model; returns the exit status (130 after Ctrl-C)."""
    job = Training(quiet)
    check_writable(model_path)
    given = {name: value for name, value in params.items() if value is not None}
    settings = SimpleNamespace(**DEFAULTS | given)
    settings.grammar = as_grammar(None if settings.grammar is None else Path(settings.grammar))
    solver = make_ospas(settings)
    solver.validate()
    lines = read_bags(path)
    model = SemanticModel(settings)
    model.params = vars(settings)
    tokens, bags = model.read(lines.sentences, lines.bags, lines.places)
    job.say(
        f"{len(tokens)} sentences, {sum(map(len, tokens))} words, "
        f"{np.mean([len(bag) for bag in bags]):.2f} meanings per bag ({job.seconds:.2f} s)"
    )
    run = model.train((tokens, bags), solver, monitor=job.bar(solver))
    model.save(model_path)
    job.say(f"{len(model.symbols.labels) - 1} symbols; {run.result().certificate()}")
    return job.end(model_path, passes_if_interrupted(run))


def predict(model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any) -> None:
    """Write the input's sentences with their meanings and alignments, as JSON lines."""
    if kbest is not None:
        raise ValueError("--kbest is for label sequences; a semantic parser has one parse of a sentence")
    model = SemanticModel.load(model_path, mmap=True)
    lines = read_input(path, bags=False)
    tokens = model.tokens_of(lines.sentences, lines.places)
    with writing(output) as stream:
        for sentence, trees, symbols in zip(lines.sentences, model.parse(tokens, jobs), model.align(tokens)):
            row = {
                "sentence": sentence,
                "meaning": [format_meaning(tree) for tree in trees],
                "alignment": [symbol.name for symbol in symbols],
            }
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Print precision, recall and F1 of the meanings, and the alignment error where the input tells alignments."""
    refuse_plot(plot)
    model = SemanticModel.load(model_path, mmap=True)
    lines = read_input(path)
    tokens = model.tokens_of(lines.sentences, lines.places)
    scores = meaning_scores(lines.bags, model.parse(tokens, jobs), grammar=model.grammar)
    told = [i for i, alignment in enumerate(lines.alignments) if alignment is not None]
    found = [[symbol.name for symbol in symbols] for symbols in model.align(tokens)]
    error = alignment_error([lines.alignments[i] for i in told], [found[i] for i in told]) if told else None
    if as_json:
        click.echo(
            json.dumps(
                {
                    "f1": scores.f1,
                    "precision": scores.precision,
                    "recall": scores.recall,
                    "alignment_error": error,
                    "n_sentences": len(tokens),
                }
            )
        )
    else:
        click.echo(
            f"{len(tokens)} sentences; precision {100 * scores.precision:.2f} %, recall {100 * scores.recall:.2f} %, "
            f"F1 {100 * scores.f1:.2f}" + ("" if error is None else f"; alignment error {100 * error:.2f} %")
        )


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is, and the words that mean each symbol most."""
    refuse_plot(plot)
    model = SemanticModel.load(model_path, mmap=True)
    names = [symbol.name for symbol in model.symbols.labels]
    unknown = [label for label in only if label not in names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the symbols {', '.join(names)}")
    click.echo(f"task: semantics; {len(model.symbols.encoder)} features of words, {len(names) - 1} symbols")
    if model.result is not None:
        click.echo(model.result.certificate())
    attributes, weights = list(model.symbols.encoder.index), model.symbols.weights
    labels = weights.argmax(axis=1)
    for k, symbol in enumerate(model.symbols.labels):
        if only and symbol.name not in only:
            continue
        words = np.flatnonzero((labels == k) & (weights[:, k] > 0.0))
        best = words[np.argsort(-weights[words, k], kind="stable")][:top]
        kind = "" if symbol.arity is None else f" ({symbol.arity} arguments)"
        click.echo(f"{symbol.name}{kind}: " + "  ".join(f"{attributes[f]} {weights[f, k]:.3f}" for f in best))


def demo(output: Any, seed: Any) -> None:
    """Learn the language of a simulated house from ambiguous sentences, and draw how the alignment error falls."""
    from structsvm.datasets import make_ambig_house

    drawable(output)
    click.echo("simulating 2000 sentences about a house with 1, 2 or 4 meanings each, and 500 to test on")
    test = make_ambig_house(500, level=0, random_state=seed + 1)
    figure = blank(7, 5)
    axes = figure.add_subplot(xlabel="training sentences", ylabel="sentences with a wrong alignment (%)")
    for level, colour in ((0, "#0072B2"), (1, "#009E73"), (3, "#D55E00")):
        house = make_ambig_house(2000, level=level, random_state=seed)
        settings = SimpleNamespace(**DEFAULTS | {"random_state": seed})
        model, solver = SemanticModel(settings), make_ospas(settings)
        tokens, bags = model.read(house.sentences, house.bags)
        words = model.tokens_of(test.sentences)
        ends, errors = list(range(100, 2001, 100)), []
        model.register(bags)
        for end in ends:
            model.train((tokens[end - 100 : end], bags[end - 100 : end]), solver, passes=1)
            found = [[symbol.name for symbol in symbols] for symbols in model.align(words)]
            errors.append(100 * alignment_error(test.alignment, found))
        scores = meaning_scores(test.meanings, model.parse(words))
        click.echo(f"level {level}: alignment error {errors[-1]:.1f} %, F1 of meanings {100 * scores.f1:.1f}")
        axes.plot(ends, errors, color=colour, label=f"level {level}")
    axes.legend()
    save(figure, output)


def refuse_plot(plot: Any) -> None:
    """Raise ValueError if a picture is asked for."""
    if plot:
        raise ValueError("--plot has nothing to show for a semantic parser")


def read_input(path: str | os.PathLike[str], *, bags: bool = True) -> Any:
    """Read JSON lines; "-" is standard input."""
    return read_bags(click.get_binary_stream("stdin") if path == "-" else path, bags=bags)  # type: ignore[operator]


@training(DEFAULTS["C"], metavar="BAGS", online=True, role_of_C="Longest step.")
@click.option(
    "--strategy",
    type=click.Choice(["order_free", "random", "left_right"]),
    default=DEFAULTS["strategy"],
    show_default=True,
    help="Which word is learnt next.",
)
@click.option("--average", is_flag=True, help="Predict with the average of the weights.")
@click.option("--refine", type=click.IntRange(0), default=0, show_default=True, help="Choose the best meaning of bags.")
@click.option(
    "--window", type=click.IntRange(0), default=0, show_default=True, help="Words beside one as its features."
)
@click.option("--ngrams", type=click.IntRange(1), default=1, show_default=True, help="Longest n-gram as a feature.")
@click.option("--role-window", type=click.IntRange(0), default=2, show_default=True, help="Words beside an argument.")
@click.option("--grammar", type=click.Path(exists=True, dir_okay=False), help="Grammar of the valid meanings.")
@click.option("--max-meanings", type=click.IntRange(1), help="Meanings of a sentence, at most.")
@click.option("--complete/--no-complete", default=True, help="Make one word a relation where that makes a meaning.")
@click.option("--fold-constants", is_flag=True, help="A relation of constants alone is one symbol.")
@click.option("--lowercase/--no-lowercase", default=True)
def command(train_file: Any, model: Any, quiet: bool, **params: Any) -> None:
    """Train a semantic parser on JSON lines of sentences with bags of meanings.

    A line is {"sentence": "purple9 passes out", "bag": ["pass(purple9,purple2)", "kick(purple9)"]}. Files that end in
    .gz, .xz or .bz2 are read as they are.
    """
    sys.exit(train(train_file, model, params, quiet))
