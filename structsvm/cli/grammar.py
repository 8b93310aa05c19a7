"""The commands for parsers, on files of bracketed trees and of sentences.

A sentence is a line of tags or words (what the model was trained on) between spaces, or of ``word/TAG``;
predict also takes files of trees, and parses their sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click

import structsvm.cli.output as out
from structsvm._warnings import AdviceWarning, warn
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, choice, defaults, flag, option_of, optional, refuse, training
from structsvm.features.sources import load_text
from structsvm.metrics import bracket_scores
from structsvm.parameters import printable
from structsvm.solvers import LaRank
from structsvm.structures.trees import after_comments, parse_trees, read_trees
from structsvm.tasks.common.examples import TREE
from structsvm.tasks.common.solver import AUTO, SOLVERS, Settings, given_to_solver, limits_of, make_solver
from structsvm.tasks.grammar.model import FRAGMENTS, GrammarModel
from structsvm.tasks.grammar.parameters import (
    GRAMMAR_C,
    PCFG,
    GrammarParserParameters,
    SpanFeatures,
    TreebankGrammar,
    features_of,
)
from structsvm.tasks.grammar.preparation import pcfg, prepare
from structsvm.tasks.grammar.trees import as_trees, check_whole


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The best tree of each sentence, one per line, ranked ones after a line with the score.

    A blank line stays one; a sentence that the grammar does not cover gets constituents side by side, and is counted at
    the end.
    """
    lines = read_sentences(path, model.terminals.kind)
    sentences = [line for line in lines if line]
    uncovered = 0
    if wanted.is_ranked:
        k = wanted.kbest or 1
        ranked = model.predict_kbest(sentences, k, on_no_parse=None, probabilities=wanted.confidence)
    else:
        ranked = ([(tree, 0.0)] for tree in model.predict(sentences, on_no_parse=None, n_jobs=wanted.jobs))
    for line in lines:
        if not line:
            yield "\n"
            continue
        for rank, (tree, score) in enumerate(next(ranked), start=1):
            uncovered += tree is None
            tree = tree or model.fallback(line)
            head = f"# {rank} {score:.6f}\n" if wanted.is_ranked else ""
            yield f"{head}{tree.pretty() if wanted.pretty else tree}\n"
    if uncovered:
        share = f"{uncovered} of {len(sentences)} sentences ({uncovered / len(sentences):.1%})"
        warn(f"{share} are not covered by the grammar", AdviceWarning)


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """The scores of the brackets; the picture shows the first wrong tree."""
    trees = as_trees(read_trees(out.source(path)), clean=True)
    check_whole(trees, "evaluate")
    predicted = model.predict([tree.tokens() for tree in trees], on_no_parse=FRAGMENTS, n_jobs=jobs)
    scores = bracket_scores(trees, predicted)
    names = ("accuracy", "f1", "precision", "recall", "tag_accuracy", "n_sentences", "n_true")
    return out.named(scores, *names), scores.report(), lambda: errors(trees, predicted)


def errors(trees: Any, predicted: Any) -> Any:
    """A figure of the first wrong tree."""
    return out.first_wrong("TreeDisplay", trees, predicted, lambda tree: len(tree.leaves()), 0.62, 10.0, nrows=2)


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with the heaviest rules of each nonterminal."""
    grammar = model.oracle.grammar
    shown = out.chosen(only, grammar.nodes, "nonterminals")
    starts = [f"{name} {weight:+.4f}" if weight else name for name, weight in model.weighted_starts().items()]
    text = f"{len(grammar.rules)} rules over {model.terminals.kind}, {len(grammar.nodes)} nonterminals"
    out.heading(model, f"task: grammar, {text}, {len(grammar.terminals)} terminals, start {', '.join(starts)}")
    rules = sorted(model.weighted_rules(), key=lambda pair: -pair[1])
    for k, label in shown:
        click.echo(f"\n{label}")
        for rule, weight in [pair for pair in rules if pair[0].lhs == grammar.nodes[k]][:top]:
            click.echo(f"  {weight:+9.4f}  {printable(rule)}")


def demo(seed: int) -> Any:
    """Train on simulated trees in several ways, beside the generative grammar, and draw a wrong tree."""
    from structsvm.datasets import make_treebank
    from structsvm.tasks import GrammarParser

    click.echo("simulating 500 trees, and 200 to test on")
    trees, test = (make_treebank(n, english=True, random_state=seed + k) for k, n in enumerate((500, 200)))
    usual: dict[str, Any] = {"C": 0.1, "random_state": seed}
    parsers = {
        "generative grammar": GrammarParser.from_counts(trees),
        "LaRank, zero-one loss": GrammarParser(loss="zero_one", **usual).fit(trees),
        "LaRank, F1 loss": GrammarParser(loss="f1", **usual).fit(trees),
        "LaRank, Hamming loss": GrammarParser(**usual).fit(trees),
    }
    for name, parser in parsers.items():
        predicted = parser.predict([tree.tokens() for tree in test])
        scores = bracket_scores(test, predicted)
        click.echo(f"{name}: F1 {100 * scores.f1:.2f} %, complete trees {100 * scores.accuracy:.1f} %")
    click.echo(parser.result_.certificate())
    click.echo(predicted[0].pretty())
    return errors(test, predicted)


def read_sentences(path: str, terminals: str) -> Any:
    """Sentences of a file: lines of tokens (blank if empty), or the tokens of trees.

    ``word/TAG`` is a pair where the grammar's terminals are both, or if the file holds nothing else.
    """
    return read_examples(path, terminals)[0]


def read_examples(path: str, terminals: str) -> tuple[Any, Any]:
    """Sentences of a file as of `read_sentences`, and their trees; None for a file of sentences alone."""
    text, name = load_text(out.source(path), ValueError)
    lines = [line.split() for line in text.splitlines()]
    first = next(filter(None, lines), None)
    if first is None:
        raise ValueError(f"{name}: no sentences")
    pairs = [[_pair(token) for token in line] for line in lines]
    body = after_comments(text)
    if TREE.match(body) and isinstance(_pair(body.split(maxsplit=1)[0]), str):
        trees = as_trees(parse_trees(text, name), clean=True)
        return [tree.tokens() for tree in trees], trees
    are_pairs = terminals in ("both", "predicted") or not any(
        isinstance(token, str) for line in pairs for token in line
    )
    return (pairs if are_pairs else lines), None


def _pair(token: str) -> str | tuple[str, str]:
    word, _, tag = token.rpartition("/")
    return (word, tag) if word and tag else token


class Order(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A number of children, "exact" (None), or "auto"."""

    name = "integer|exact|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in ("exact", AUTO):
            return None if value == "exact" else AUTO
        return click.IntRange(0).convert(value, param, ctx)


of_parser, of_grammar = partial(option_of, GrammarParserParameters), partial(option_of, TreebankGrammar)
# Options that are no parameters of parsers.
OF_COMMAND = {"pcfg": False, "smoothing": 0.0, "partial": False}
# Options of the formulation, which solver objects have.
FORMULATION = {"rescaling": "margin", "penalty": "linear"}
# Options without effect on relative frequencies.
OF_TRAINING = (
    "C solver max_iter tol n_jobs checkpoint random_state loss probability rescaling penalty templates bits prior "
    "partial"
)
GROUPS = {"grammar": TreebankGrammar, "features": SpanFeatures}


def set_formulation(settings: Settings, given: dict[str, Any]) -> None:
    """Make the solver an object with its options, where the formulation is not the usual one, or where it is an object.

    Raises
    ------
    click.UsageError
        For an option that the solver does not have, or without C.
    """
    formulation, named = {name: given[name] for name in FORMULATION if name in given}, SOLVERS.get(settings.solver)
    if named and formulation.items() <= FORMULATION.items():
        return
    own = formulation | given_to_solver(settings)
    own |= {} if settings.n_jobs is None else {"n_jobs": settings.n_jobs}
    kind: Any = named or type(settings.solver)
    for name in own:
        if name not in kind.parameter_names():
            raise click.UsageError(f"{kind.__name__} has no {name!r}")
    if named and "C" not in own:
        raise click.UsageError("-C is chosen for margin rescaling and a linear penalty alone: it has to be given")
    settings.solver = kind(**(limits_of(kind, own) if named else settings.solver.get_params(deep=False)) | own)
    vars(settings).update(dict.fromkeys(("max_iter", "tol", "random_state", "checkpoint")), C=AUTO)


@training()
@of_parser("loss", "A margin, or that of a log-linear grammar.")
@of_parser("probability", "Fit what predict --confidence needs, on held-out trees.")
@option_of(LaRank, "rescaling")
@option_of(LaRank, "penalty")
@of_parser("terminals")
@of_grammar("min_count", "Words: rarer ones become classes.")
@click.option("--h", "h", type=Order(), default=AUTO, show_default=True, help="Horizontal Markovisation, or exact.")
@of_grammar("v", "Vertical Markovisation.")
@click.option(
    "--span-features/--no-span-features",
    "templates",
    default=None,
    help="Weights for first and last words, length, split.  [default: yes]",
)
@option_of(SpanFeatures, "bits", "Rows of their weights, a power of 2.  [default: by the trees' words]", "--span-bits")
@choice("--prior", PCFG, "none", text="Weights to start from and stay close to: relative frequencies.")
@flag("--pcfg", "Relative frequencies of the rules instead of training: the generative baseline.")
@optional("--smoothing", click.FloatRange(0.0), "--pcfg: added to each rule's count.  [default: 0]")
@of_parser("decode", "Likely brackets, or the best tree.  [default: by the loss]")
@of_grammar("max_unary", "Longest chain of unary rules.  [default: the trees']")
@flag("--partial", "Trees may be known in part: (_ ...) has any label, (... ) are siblings known no further.")
@of_parser("max_length", "Longest sentence.")
@of_parser("max_chart_bytes", "Largest chart.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a parser on a file of bracketed trees, one per line or as in a treebank's .mrg files."""
    given = params.copy()
    is_pcfg, smoothing, is_partial = (params.pop(name, default) for name, default in OF_COMMAND.items())
    if is_pcfg and job.warm_start:
        raise click.UsageError("--warm-start has no effect with --pcfg")
    for name in FORMULATION:
        params.pop(name, None)
    if params.get("prior") == "none":
        params["prior"] = None
    if "templates" in params:
        params["templates"] = None if params["templates"] else ()
    before, settings = job.start(GrammarModel.load, DEFAULTS, params, GROUPS)
    refuse(
        given,
        (is_pcfg, OF_TRAINING, "with --pcfg"),
        (not is_pcfg, "smoothing", "without --pcfg"),
        (settings.terminals == "tags", "min_count", "with --terminals tags"),
        (features_of(settings).templates == (), "bits", "with --no-span-features"),
        (settings.loss == "log", " ".join(FORMULATION), "with --loss log"),
    )
    set_formulation(settings, given)
    solver = make_solver(settings, GRAMMAR_C)
    job.read = read_trees(out.source(path))
    known = as_trees(job.read, clean=True)
    if not is_partial:
        check_whole(known, "training with --pcfg" if is_pcfg else "training without --partial")
    if is_pcfg:
        model, examples = pcfg(settings, known, smoothing)
    else:
        model, examples = prepare(settings, known, before)
    examples = model.learnable(examples, None)
    grammar = model.oracle.grammar
    job.announce(
        f"{len(examples)} trees, {len(grammar.rules)} rules, {len(grammar.nodes)} nonterminals, "
        f"{len(grammar.terminals)} terminals, {model.oracle.n_features} features"
    )
    if not is_pcfg:
        return job.run(model, examples, solver, vars(settings))
    model.params = vars(settings)
    return job.end(model)


DEFAULTS = defaults(command, *OF_COMMAND, *FORMULATION) | dict.fromkeys(GROUPS)
TASK = Task(command, GrammarModel.load, predict, evaluate, inspect, demo, has_trees=True)
