"""The commands for semantic parsing, on JSON lines of sentences with bags of meanings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, defaults, grouped, option_of, optional, refuse, training
from structsvm.metrics import alignment_error, meaning_scores
from structsvm.parameters import printable
from structsvm.solvers.base import raise_if_interrupted
from structsvm.structures.bag_lines import read_bags, read_lexicon
from structsvm.structures.meanings import format_meaning
from structsvm.tasks.common.training import Job, train
from structsvm.tasks.semantics.bags import BagModel, as_grammar
from structsvm.tasks.semantics.hybrid import HybridModel, make_learner
from structsvm.tasks.semantics.hybrid import describe as describe_tree
from structsvm.tasks.semantics.likelihood import FEATURES, USUAL
from structsvm.tasks.semantics.model import SemanticModel
from structsvm.tasks.semantics.parameters import (
    METHODS,
    Hybrid,
    Ospas,
    SemanticParserParameters,
    checked_features,
    method_of,
)
from structsvm.tasks.semantics.solver import make_ospas


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The input's sentences as JSON lines, with their meanings and alignments, or with the most probable meanings."""
    if wanted.kbest is not None and not isinstance(model, HybridModel):
        raise ValueError("--kbest: a semantic parser learnt by OSPAS has one parse of a sentence")
    lines = read_bags(out.source(path), bags=False)
    tokens = model.tokens_of(lines.sentences, lines.places)
    rows: Iterator[dict[str, Any]]
    if wanted.kbest is None:
        parsed = zip(model.parse(tokens, wanted.jobs), names_of(model, tokens), strict=True)
        rows = ({"meaning": [format_meaning(tree) for tree in trees], "alignment": names} for trees, names in parsed)
    else:
        ranked = model.kbest(tokens, wanted.kbest, wanted.jobs)
        rows = (
            {"best": [{"meaning": format_meaning(d.meaning), "probability": p} for d, p in best]} for best in ranked
        )
    for sentence, row in zip(lines.sentences, rows, strict=True):
        yield json.dumps({"sentence": sentence} | row, ensure_ascii=False) + "\n"


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """Precision, recall and F1 of the meanings, and the alignment error if the input has alignments."""
    lines: Any = read_bags(out.source(path))  # every line has a bag
    tokens = model.tokens_of(lines.sentences, lines.places)
    scores = meaning_scores(lines.bags, model.parse(tokens, jobs), grammar=model.grammar)
    aligned = [i for i, alignment in enumerate(lines.alignments) if alignment is not None]
    found = names_of(model, tokens)
    error = alignment_error([lines.alignments[i] for i in aligned], [found[i] for i in aligned]) if aligned else None
    results = out.named(scores, "f1", "precision", "recall") | {"alignment_error": error, "n_sentences": len(tokens)}
    text = (
        f"{len(tokens)} sentences; precision {100 * scores.precision:.2f} %, recall {100 * scores.recall:.2f} %, "
        f"F1 {100 * scores.f1:.2f}"
    )
    return results, text + ("" if error is None else f"; alignment error {100 * error:.2f} %"), None


def names_of(model: Any, tokens: Any) -> list[list[str]]:
    """The name of the symbol of each word."""
    return [[symbol.name for symbol in symbols] for symbols in model.align(tokens)]


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with the heaviest words of each symbol or unit."""
    if isinstance(model, HybridModel):
        units, attributes = model.hybrid.units.units, [*model.hybrid.attributes]
        names, arities, what = [unit.label for unit in units], [unit.n_slots or None for unit in units], "units"
        text = f"{np.count_nonzero(model.weights)} weights that are not 0, {len(units)} units"
    else:
        attributes, weights, what = list(model.symbols.encoder.index), model.symbols.weights, "symbols"
        names, arities = map(list, zip(*model.symbols.labels))
        weights = weights * (weights.argmax(axis=1)[:, None] == np.arange(len(names)))  # each word with its symbol
        text = f"{len(attributes)} features of words, {len(names) - 1} symbols"
    shown = out.chosen(only, names, what)
    out.heading(model, f"task: semantics; {text}")
    if isinstance(model, HybridModel) and not only:
        for names_like, looks in model.hybrid.lexicon.looks.items():
            members = model.hybrid.units.members[names_like]
            like = ", ".join(look for look in looks if look)
            click.echo(f"{len(members)} names like {units[members[0]].name}: copied where words look like {like}")
    for k, name in shown:
        own = model.hybrid.word_weights(k, model.weights) if isinstance(model, HybridModel) else weights[:, k]
        best = [f for f in np.argsort(-own, kind="stable")[:top] if own[f] > 0.0]
        kind = "" if arities[k] is None else f" ({arities[k]} arguments)"
        click.echo(f"{name}{kind}: " + "  ".join(f"{printable(attributes[f])} {own[f]:.3f}" for f in best))


def demo(seed: int) -> Any:
    """Learn the language of a simulated house from ambiguous sentences, and draw how the alignment error falls.

    OSPAS, sentence by sentence; then hybrid trees, with what the words of a sentence say.
    """
    from structsvm.datasets import make_ambig_house

    click.echo("simulating 2000 sentences about a house with 1, 2 or 4 meanings each, and 500 to test on")
    test = make_ambig_house(500, level=0, random_state=seed + 1)
    figure = out.blank(7, 5)
    axes = figure.add_subplot(xlabel="training sentences", ylabel="sentences with a wrong alignment (%)")
    for level, colour in ((0, "#0072B2"), (1, "#009E73"), (3, "#D55E00")):
        house = make_ambig_house(2000, level=level, random_state=seed)
        settings = SimpleNamespace(**DEFAULTS | {"method": Ospas.name, "random_state": seed})
        model, solver = SemanticModel(settings), make_ospas(settings)
        examples = model.read(house.sentences, house.bags)
        words = model.tokens_of(test.sentences, allow_empty=False)  # untrained, it knows none
        ends, errors = list(range(100, 2001, 100)), []
        model.register(examples.bags)
        for end in ends:
            job = Job(model, examples.take(np.arange(end - 100, end)), solver, passes=1)
            raise_if_interrupted(train(job))
            errors.append(100 * alignment_error(test.alignment, names_of(model, words)))
        scores = meaning_scores(test.meanings, model.parse(words))
        click.echo(f"level {level}: alignment error {errors[-1]:.1f} %, F1 of meanings {100 * scores.f1:.1f}")
        axes.plot(ends, errors, color=colour, label=f"level {level}")
    axes.legend()
    house = make_ambig_house(300, level=1, random_state=seed)
    settings = SimpleNamespace(**DEFAULTS | {"random_state": seed})
    parser = HybridModel(settings)
    raise_if_interrupted(train(Job(parser, parser.read(house.sentences, house.bags), make_learner(settings))))
    scores = meaning_scores(test.meanings[:100], parser.parse(words[:100]))
    click.echo(f"hybrid trees, from 300 ambiguous sentences: F1 of meanings {100 * scores.f1:.1f}")
    derivation = parser.best(words[:1])[0]
    if derivation is not None:
        click.echo(f"{test.sentences[0]}\n{describe_tree(derivation[0], [token[0] for token in words[0]])}")
    return figure


of_parser, of_hybrid, of_ospas = (partial(option_of, kind) for kind in (SemanticParserParameters, Hybrid, Ospas))


@training(metavar="BAGS", solvers=(), role_of_C="Longest step; auto: 0.1 for ospas, 0.2 or 0.05 for hybrid.")
@of_parser("method", "Hybrid trees trained by likelihood, or taggers trained online.")
@of_hybrid("solver", "Likelihood of bags, averaged perceptron, or a margin (hybrid).")
@of_hybrid("loss", "margin: wrong units, or one less their F1 (hybrid).")
@optional("--features", str, f"Commas between some of {', '.join(FEATURES)} (hybrid).  [default: {','.join(USUAL)}]")
@of_ospas("strategy", "Which word is trained next.")
@of_ospas("average", "Predict with the average of the weights.")
@of_ospas("refine", "Times to choose the best meaning of each bag and train again.")
@of_ospas("window", "Neighbouring words as features.")
@of_ospas("ngrams", "Longest n-gram as a feature.")
@of_ospas("role_window", "Neighbouring words of an argument.")
@optional("--grammar", out.FILE, "Grammar of the valid meanings.")
@optional("--lexicon", out.FILE, "Lines of a phrase, a tab and its name (hybrid).")
@of_ospas("max_meanings", "Maximum number of meanings per sentence.")
@of_ospas("complete", "Make one word a relation if that completes a meaning.")
@of_ospas("fold_constants", "A relation of constants alone is one symbol.")
@of_hybrid("abstain_below", "Least probability of a meaning (hybrid).")
@of_parser("lowercase")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a semantic parser on JSON lines of sentences with bags of meanings.

    A line is {"sentence": "purple9 passes out", "bag": ["pass(purple9,purple2)", "kick(purple9)"]}.
    """
    if "grammar" in params:
        params["grammar"] = as_grammar(Path(params["grammar"]))
    if "lexicon" in params:
        params["lexicon"] = read_lexicon(params["lexicon"])
    if "features" in params:
        params["features"] = checked_features([*filter(None, params["features"].split(","))])
    given = {name: params.pop(name) for name in OPTIONS & params.keys()}
    model, settings = job.start(BagModel.load, DEFAULTS, params)
    settings.method = method_with(given, settings.method, None if model is None else model.params["method"])
    method = method_of(settings.method).name
    solver = make_learner(settings) if method == Hybrid.name else make_ospas(settings)
    solver.validate()
    lines = read_bags(out.source(path))
    if model is not None and model.method != method:
        raise ValueError("the model was trained with another '--method'")
    model = model or BagModel.methods[method](settings)
    model.follow(settings)
    examples = model.read(lines.sentences, lines.bags, lines.places)
    job.announce(
        f"{len(examples)} sentences, {sum(map(len, examples.sentences))} words, "
        f"{np.mean([len(bag) for bag in examples.bags]):.2f} meanings per bag"
    )
    return job.run(model, examples, solver, vars(settings), describe=describe)


def method_with(given: dict[str, Any], method: Any, before: Any) -> Any:
    """A method with the given options, and otherwise with the parameters that the method before had, if it is this."""
    kind = type(method_of(method))
    others = " ".join(name for other in METHODS.values() if other is not kind for name in other.parameter_names())
    refuse(given, (True, others, f"with --method {kind.name}"))
    if before is not None and type(method_of(before)) is kind:
        method = before
    return grouped({"method": method}, given, {"method": kind})["method"]


def describe(model: Any) -> str:
    """Symbols or units, and certificate."""
    if isinstance(model, HybridModel):
        return f"{len(model.hybrid.units.units)} units; {model.result.certificate()}"
    return f"{len(model.symbols.labels) - 1} symbols; {model.result.certificate()}"


OPTIONS = {*Hybrid.parameter_names(), *Ospas.parameter_names()}
DEFAULTS = {name: value for name, value in defaults(command).items() if name not in OPTIONS}
UNDRAWN = dict.fromkeys(("evaluate", "inspect"), "has nothing to show for a semantic parser")
TASK = Task(command, BagModel.load, predict, evaluate, inspect, demo, undrawn=UNDRAWN, has_probabilities=False)
