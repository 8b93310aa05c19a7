"""The commands for label sequences, on CoNLL column files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.sequence import prediction
from structsvm.cli.sequence.attributes import are_attributes, labels_text, read_input, sequences_of
from structsvm.cli.sequence.prediction import columns_of_features, n_columns
from structsvm.cli.sequence.stream import BATCH, Stream, check_no_stream, check_stream
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import (
    SHARDS,
    UNKNOWN,
    InShards,
    Training,
    choice,
    defaults,
    flag,
    grouped,
    option_of,
    optional,
    refuse,
    training,
    with_options,
)
from structsvm.features.columns import ColumnPieces, Columns, read_form, settled_reading
from structsvm.features.tables.forms import Reading
from structsvm.metrics import Scheme, chunk_scores, field_f1, record_accuracy, scheme_of, token_accuracy
from structsvm.metrics._counts import mark_for, say_unseen
from structsvm.metrics._labels import known_tokens
from structsvm.metrics._schemes import SCHEMES, scheme_name, why_none
from structsvm.parameters import ParameterGroup, printable
from structsvm.progress import Bar
from structsvm.shards.pieces import arrow_batches
from structsvm.shards.sequences import SequenceShards
from structsvm.solvers.base import raise_if_interrupted
from structsvm.tasks.common.examples import doubt_of_outputs
from structsvm.tasks.common.solver import AUTO, LIKELIHOODS, SOLVERS, make_solver
from structsvm.tasks.common.training import Job, train
from structsvm.tasks.sequence.constraints import numbered_constraints, read_constraints
from structsvm.tasks.sequence.labels import known_columns, labelled
from structsvm.tasks.sequence.model import SequenceModel
from structsvm.tasks.sequence.parameters import (
    OF_OPEN_C,
    SequenceLabelerParameters,
    TokenFeatures,
    check_greedy,
    check_sharded,
    features_of,
    loss_of,
    solver_for,
)
from structsvm.tasks.sequence.preparation import prepare
from structsvm.tasks.sequence.segments import MOST_TOKENS


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The input's columns, then the predicted label and its probability; or with the k best labellings.

    The input is labelled as it is read, piece by piece, and held no longer.
    """
    if wanted.kbest is not None and model.is_greedy:
        raise ValueError("--kbest needs a model with exact inference")
    model = ruled(model, wanted.constraints)
    if wanted.kbest is None:
        yield from prediction.predict(model, path, wanted)
        return
    if model.encoder.kind == "attributes":
        chances = prediction.chances_of_labels(model)
        yield from labels_text(sequences_of(path), wanted, model.predict, model.predict_kbest, chances)
        return
    pieces = ColumnPieces(out.source(path), None, out.reading(model.reading), n_columns(model))

    def text_of(piece: Any) -> str:
        columns = pieces.parse(piece)
        return ranked_text(model, columns, columns_of_features(model, columns, pieces.form), wanted)

    yield from prediction.in_threads(wanted.jobs, text_of, prediction.checked(pieces, out.reading()))


def ruled(model: Any, path: str | None) -> Any:
    """The model under the constraints of a file; ValueError, naming it and the line, for one that it cannot meet."""
    if path is None:
        return model
    lines = numbered_constraints(path)
    try:
        return model.constrained_by([line for _, line in lines])
    except ValueError as error:
        where = next((f", line {k}" for k, line in lines if not takes(model, line)), "")
        raise ValueError(f"{path}{where}: {error}") from None


def takes(model: Any, constraint: str) -> bool:
    """Whether a model can meet a constraint."""
    try:
        model.constrained_by([constraint])
    except ValueError:
        return False
    return True


def ranked_text(model: Any, columns: Any, X: Any, wanted: Wanted) -> str:
    """The k best labellings of each sequence, each after its columns and below its score or probability."""
    lines = [list(map("\t".join, zip(*rows))) for rows in zip(*(columns.column(j) for j in range(columns.n_columns)))]
    return "".join(
        f"# {rank} {score:.6f}\n" + "".join(f"{token}\t{label}\n" for token, label in zip(tokens, labels)) + "\n"
        for tokens, ranked in zip(lines, model.predict_kbest(X, wanted.kbest, probabilities=wanted.confidence))
        for rank, (labels, score) in enumerate(ranked, start=1)
    )


def evaluate(model: Any, path: str, jobs: int, *, constraints: str | None = None) -> tuple[dict[str, Any], str, Any]:
    """Token accuracy, and chunk scores of labels that have a scheme; the picture is the confusion matrix."""
    model = ruled(model, constraints)
    X: Any
    if model.encoder.kind == "attributes":
        X, gold = read_input(path)
    else:
        columns, form = read_form(out.source(path), out.reading(model.reading), n_columns(model))
        prediction.check_given(form, out.reading())
        X, y = split_labels(model, columns, form)
        if y is None:
            raise ValueError(
                f"{path}: its columns, {X.n_columns}, are as many as the model's features: there are no labels to "
                "compare with, or a column of training is missing"
            )
        gold = y.column(0)
    predicted = [list(map(str, labels)) for labels in model.predict(X, n_jobs=jobs)]  # as files have them
    return scored(gold, predicted, list(map(str, model.shown)), model.scheme, mark_for(model.unknown, model.labels))


def scored(
    gold: list[list[str]], predicted: list[list[str]], known: list[str], own: Scheme | None, mark: Any
) -> tuple[dict[str, Any], str, Any]:
    """Scores of predictions, for `evaluate`.

    Parameters
    ----------
    gold, predicted : lists of label lists
    known : list of str
        The model's labels.
    own : Scheme, optional
        The model's scheme, where the labels tell none.
    mark : Mark
        What stands for unknown labels.
    """
    n_sequences, n_tokens = len(gold), sum(map(len, gold))
    gold, predicted = known_tokens(gold, predicted, mark)
    found = {"accuracy": token_accuracy(gold, predicted, None)}
    labels = {*chain.from_iterable(gold), *known}
    scheme = scheme_of(labels) or own
    if scheme is None:
        text = f"accuracy: {100.0 * found['accuracy']:6.2f}%\nno chunk scores: {why_none(labels)}"
    else:
        scores = chunk_scores(inside(gold, scheme), inside(predicted, scheme), scheme)
        scores = replace(scores, accuracy=found["accuracy"])
        found, text = out.named(scores, "accuracy", "f1", "precision", "recall"), scores.report()
    n_unseen = say_unseen(chain.from_iterable(gold), set(known), "tokens")
    found["records"] = record_accuracy(gold, predicted, None)
    found["fields"] = field_f1(gold, predicted) if scheme is None else found["f1"]
    if scheme is None:  # the other text is conlleval's
        text += f"\nrecords:  {100.0 * found['records']:6.2f}%"
        text += f"\nfields:   {100.0 * found['fields']:6.2f} F1 of runs of labels"
    found |= {"n_sequences": n_sequences, "n_tokens": n_tokens, "n_unseen": n_unseen}
    found |= {"n_unknown": n_tokens - sum(map(len, gold))}
    return found, text, lambda: out.compared("ConfusionDisplay", (7, 6), gold, predicted)


def inside(y: list[list[str]], scheme: Scheme) -> list[list[str]]:
    """Labels with O for those that are none of the scheme."""
    strange = set(scheme.outside(set(chain.from_iterable(y))))
    return [["O" if label in strange else label for label in labels] for labels in y] if strange else y


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with its heaviest weights."""
    oracle = model.oracle
    shown = out.chosen(only, model.labels)
    kind = "greedy" if model.is_greedy else "exact"
    text = f"task: sequence, {kind} inference of order {oracle.order}"
    if model.segments is not None:
        text = f"task: sequence, exact inference of segments, those of 1 to {oracle.max_length} tokens by length"
    what = "bigrams" if model.segments is None else "phrases"
    bigrams = f"{oracle.n_bigrams} {what}, " if oracle.n_bigrams else ""
    labels = ", ".join(map(str, model.labels))
    sizes = f"{oracle.n_token_features} features, {bigrams}{oracle.n_labels} labels: {labels}"
    out.heading(model, text, DEFAULTS, sizes, describe=out.certificates)
    say_rules(model)
    names, weights, transition = model.encoder.feature_names, model.emission(), model.transition()
    bigram, bigram_names = model.bigram(), model.encoder.bigram_names

    def named(j: int) -> str:
        return f"{bigram_names[j // oracle.n_labels]} after {model.labels[j % oracle.n_labels]}"

    for k, label in shown:
        click.echo(f"\n{label}")
        out.heaviest(weights[:, k], top, names.__getitem__)
        follows = np.argsort(-transition[k], kind="stable")[:3]
        if bigram.size:
            out.heaviest(bigram[:, :, k].ravel(), top, named)
        after = "  ".join(f"{model.labels[c]} {transition[k, c]:+.3f}" for c in follows)
        click.echo(f"  then {printable(after)}")


def say_rules(model: Any) -> None:
    """Print the constraints, and the automaton of them all."""
    for words, n_states in model.rules:
        click.echo(printable(f"{words}: {n_states} states"))
    oracle = model.oracle
    if getattr(oracle, "rules", ()):
        click.echo("the rules are too large together: predictions add the rules that they break one after another")
    elif oracle.language is not None:
        click.echo(f"all rules together: {oracle.language.n_states} states")


def demo(seed: int) -> Any:
    """Train on simulated addresses, evaluate on fresh ones, draw what happened."""
    from structsvm.datasets import make_addresses

    click.echo("simulating 1000 addresses whose words are labelled, and 500 to test on")
    X, y = make_addresses(1000, ambiguity=0.6, typos=0.1, noise=0.02, random_state=seed)
    X_test, y_test = make_addresses(500, ambiguity=0.6, typos=0.1, noise=0.02, random_state=seed + 1)
    settings = SimpleNamespace(**DEFAULTS | {"random_state": seed, "tol": 0.05})
    model, examples = prepare(settings, Columns.from_sequences(X), y)
    tokens = examples.tokens
    solver = make_solver(settings)
    click.echo(f"{tokens.n_tokens} tokens, {tokens.n_features} features, {len(model.labels)} labels")
    raise_if_interrupted(train(Job(model, examples, solver), Bar(solver.n_passes)))
    predicted = model.predict(Columns.from_sequences(X_test))
    click.echo("  ".join(f"{word} [{label}]" for word, label in zip(X_test[0], predicted[0], strict=True)))
    right = 100.0 * token_accuracy(y_test, predicted), 100.0 * record_accuracy(y_test, predicted)
    click.echo("right: {:.2f} % of the words, {:.2f} % of whole addresses".format(*right))
    click.echo(model.result.certificate())
    return picture(model, (y_test, predicted))


# ---- files --------------------------------------------------------------------------------------


def split_labels(model: Any, columns: Any, form: Any) -> Any:
    """Return ``(X, y)``: the columns that the model's features need, and the label column, or None."""
    X = columns_of_features(model, columns, form)
    return X, labelled(columns, form.name)[1] if form.has_label else None


# ---- pictures -----------------------------------------------------------------------------------


def picture(model: Any, predictions: Any = None) -> Any:
    """Training history and transition weights; with ``(gold, predicted)`` the confusion matrix too."""
    from structsvm.plotting import ConfusionDisplay, TransitionDisplay

    n_panels = 2 if predictions is None else 3
    figure = out.blank(7 * n_panels, 6)
    left, *others = figure.subfigures(1, n_panels, width_ratios=[0.8, 1, 1][:n_panels])
    out.history(model, left)
    result = model.result
    gap = f"gap {100 * result.relative_gap:.3g} % after " if np.isfinite(result.gap) else ""
    left.axes[0].set_title(f"{gap}{result.n_iter} passes")
    TransitionDisplay(model.transition(), model.labels).plot(ax=others[0].add_subplot())
    if predictions is not None:
        ConfusionDisplay.from_predictions(*predictions, ax=others[1].add_subplot())
    return figure


class Constraints(out.OtherNames):
    """The scheme of labels, or a file of constraints: one per line."""

    def __init__(self) -> None:
        super().__init__(SCHEMES, scheme_name)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if os.path.isfile(value):
            return read_constraints(value)
        if scheme_name(value) is None:
            self.fail(f"{value!r} is no scheme ({', '.join(SCHEMES)}) and no file of constraints", param, ctx)
        return super().convert(value, param, ctx)


of_labeler = partial(option_of, SequenceLabelerParameters)
GROUPS: dict[str, type[ParameterGroup]] = {"features": TokenFeatures}
LENGTH = click.IntRange(2, MOST_TOKENS)
TEMPLATES = (
    "Features: rich, records, record-kinds, record-tokens, crf++, attributes, or a file of CRF++ or Wapiti; auto: "
    "rich, records or record-kinds, by held-out sequences.  [default: auto for words alone, else rich]"
)


@training(
    role_of_C="Weight of the slacks; auto: chosen on held-out sequences; records, tokens: by such that are right.",
    of_C=OF_OPEN_C,
    file=out.Input(exists=True, allow_dash=True),
    solvers=(*SOLVERS, *LIKELIHOODS, AUTO),
    plot="Save the training history as a picture.",
)
@optional("--templates", out.Input(), TEMPLATES)
@option_of(TokenFeatures, "min_count", "Drop rarer features.")
@option_of(TokenFeatures, "hash_bits", "Hash features to 2**BITS numbers.")
@option_of(TokenFeatures, "possible_states", "Weights for all labels, not just those seen with a feature.")
@of_labeler("inference")
@of_labeler("order", "Previous labels that a score sees.  [default: 1, greedy 2]")
@of_labeler("segments", "Score whole segments, by their length and phrases.")
@optional("--segment-length", LENGTH, "Longer segments share a weight.  [default: 4 to 8, by TRAIN]")
@of_labeler("loss", "Margin of wrong labels or sequences; or that of a CRF; auto: a CRF and a margin, added.")
@of_labeler("probability", "Fit a margin's temperature.")
@optional("--constraints", Constraints(), "Predict only labellings of this scheme, or that meet the rules of a file.")
@of_labeler("broken", "What to do with training labels that violate them.")
@flag("--partial", "Labels may be known in part: _ is unknown, A|B is one of these, \\_ the label _.")
@UNKNOWN
@flag("--stream", "Read TRAIN once, in batches, at constant memory; features are hashed.")
@optional("--labels", str, "Labels of a stream, separated by commas or blanks.  [default: those of its first megabyte]")
@optional("--batch", click.IntRange(1), f"Sequences per batch of a stream.  [default: {BATCH}]")
@choice("--format", "auto", "columns", "crfsuite", text="crfsuite: a label, then attributes between tabs; auto: told.")
@partial(with_options, out.COLUMNS)
@partial(with_options, SHARDS)
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a label-sequence model on a CoNLL column file; - is standard input.

    One token per line, its columns separated by spaces or tabs, the label last; blank lines end a sequence. Of CoNLL-U
    the universal tags are learnt. predict and evaluate take the columns that the model was trained on. Or CRFsuite's
    text: per token its label and its attributes between tabs, which is told by lines such as B<TAB>w=the<TAB>t=DT.

    Data larger than memory: --shards, with which TRAIN may also be a Parquet or Arrow file with one sequence per row
    and lists as cells. To train on the shards again, name their folder as TRAIN.

    With --warm-start, options that are not given are those of the model, and --max-iter more passes follow. On the file
    that the model was trained on, its run is resumed; on another one, unknown features are ignored,
    an unknown label is an error, and training starts from the model's weights and stays close to them.
    """
    is_partial, is_stream = params.pop("partial", False), params.pop("stream", False)
    labels, size, form_given = params.pop("labels", None), params.pop("batch", None), params.pop("format", "auto")
    of_columns = {name: params.pop(name) for name in ("columns", "label", "sequence", "sentence_end") if name in params}
    in_shards = InShards.taken(path, params)
    check_stream(params) if is_stream else check_no_stream(labels=labels, batch=size)
    if form_given == "crfsuite" and (in_shards or is_stream or is_partial or of_columns):
        raise click.UsageError("--format crfsuite is for files in memory, with labels that are known, without columns")
    if in_shards and (is_stream or is_partial):
        raise click.UsageError(f"--{'stream' if is_stream else 'partial'} has no meaning with shards")
    before, settings = job.start(SequenceModel.load, DEFAULTS, params, GROUPS)
    reading = out.reading(None if before is None else before.reading)
    refuse(
        params,
        (not settings.segments, "segment_length", "without --segments"),
        (settings.constraints is None, "broken", "without --constraints"),
    )
    if "segment_length" in params:
        settings.segments = vars(settings).pop("segment_length")
    if is_stream:
        options = {"labels": labels, "size": size or BATCH, "is_partial": is_partial}
        stream = Stream(job, path, settings, before, reading, has_ends="sentence_end" in of_columns, **options)
        return stream.train(draw=picture)
    solver = solver_for(vars(settings), loss_of(settings, before), None if before is None else before.choice)
    solver.validate()
    is_plain = not (in_shards or is_partial or of_columns)
    has_attributes = is_plain and are_attributes(path, form_given, before)
    X: Any
    known: Any = None
    form = None  # shards have their labels
    if in_shards:
        X, reading = shards(in_shards, settings, before, reading)
    elif has_attributes:
        X, known = read_input(path)
        job.read = X
        job.say(f"{path}: CRFsuite's text, labels first (--format columns: labels last)")
    else:
        columns, form = read_form(out.source(path), reading)
        X, y = labelled(columns, path)
        job.read = X
        known = known_columns(y) if is_partial else y
        if text := form.describe():
            job.say(text)
    model, examples = prepare(settings, X, known, before)
    reading = reading if form is None else form.settled()
    model.reading = reading if reading != Reading() else None
    tokens = examples.tokens
    if model.template_choice is not None:
        job.say(model.template_choice.text)
    job.announce(
        f"{len(tokens)} sequences, {tokens.n_tokens} tokens, {tokens.n_features} features, {len(model.labels)} labels"
    )
    doubt = doubt_of(path, examples, form, has_ends="sentence_end" in of_columns)
    return job.run(model, examples, solver, vars(settings), doubt, describe=out.certificates, draw=picture)


def shards(
    in_shards: InShards, settings: Any, before: SequenceModel | None, reading: Reading
) -> tuple[SequenceShards, Reading]:
    """The shards that options ask for, and the columns that are meant in the file that they are made of."""
    check_sharded(settings)
    if settings.inference == "greedy":
        check_greedy(settings, loss_of(settings, before))
    features, path = features_of(settings), in_shards.path
    given: dict[str, Any] = {"min_count": features.min_count, "hash_bits": features.hash_bits}
    if in_shards.folder is not None and os.path.isfile(path) and arrow_batches(path, 1) is None:
        reading = settled_reading(out.source(path), reading)
    if in_shards.folder is not None and reading != Reading():
        given |= {"columns": reading.columns, "label": reading.label}
        given |= {"sequence": reading.sequence, "sentence_end": reading.sentence_end}
    return in_shards.of(SequenceShards, templates=settings.templates, **given), reading


def doubt_of(path: str, examples: Any, form: Any, *, has_ends: bool) -> str | None:
    """The doubt about a file's examples, with the option that removes it; `has_ends`: whether their ends are named."""
    ids = examples.output_ids
    doubt = examples.doubt if not has_ends or ids is None else doubt_of_outputs(ids)
    if doubt is None:
        return None
    if examples.are_few_and_long and not has_ends:
        doubt += "; --sentence-end '' trains on them as they are"
    elif form is not None:
        doubt += f"; its column {form.called(form.places[-1])} is the label: --label names another"
    return f"{path}: {doubt}"


NOT_OF_LABELERS = (
    *("partial", "stream", "labels", "batch", "shards", "max_memory", "segment_length"),
    *("columns", "label", "sequence", "sentence_end", "format"),
)
DEFAULTS = {"class_weight": None} | grouped(defaults(command, *NOT_OF_LABELERS), {}, GROUPS)
TASK = Task(
    command, SequenceModel.load, predict, evaluate, inspect, demo, picture,
    has_columns=True, has_unknown=True, has_constraints=True,
)  # fmt: skip
