"""The commands that keep a promise: `calibrate` on held-out examples, and predictions that may be none.

Imported when they run: a promise needs scikit-learn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.risk import RiskController
from structsvm.risk.base import Promise
from structsvm.risk.files import KEY, with_promise
from structsvm.risk.parts import known_parts

# The text for an output that is not given.
NOTHING = "_"


class Examples(NamedTuple):
    """Inputs and true outputs (None: the file has none), and the text of outputs, of which those not given are None.

    ``check()`` raises ValueError for true outputs that are none, where reading alone does not say so.
    """

    X: Any
    y: Any
    text: Callable[[Sequence[Any]], Iterator[str]]
    check: Callable[[], object] = bool


def labels_text(outputs: Sequence[Any]) -> Iterator[str]:
    """A label per line."""
    yield from (f"{NOTHING if one is None else one}\n" for one in outputs)


def by_name(labels: Any, known: Sequence[Any]) -> list[Any]:
    """Labels of a file as a model has them, which may be numbers; others stay as they are."""
    names = {str(label): label for label in known}
    return [names.get(str(label), label) for label in labels]


def sequences(estimator: Any, path: str) -> Examples:
    """Files of columns, or of attributes; without an output, each token's label is `NOTHING`."""
    from structsvm.cli.sequence import command, prediction
    from structsvm.cli.sequence.attributes import read_input
    from structsvm.features.columns import Vocabulary, read_form

    model = estimator.model_
    y: Any
    if model.encoder.kind == "attributes":
        tokens, gold = read_input(path)
        X, y, columns = list(tokens), gold, None
    else:
        columns, form = read_form(out.source(path), out.reading(model.reading), prediction.n_columns(model))
        X, labels = command.split_labels(model, columns, form)
        y = None if labels is None else labels.column(0)
    y = None if y is None or not any(map(any, y)) else [by_name(own, model.shown) for own in y]

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        lengths = [len(x) for x in X]
        found = [[NOTHING] * n if own is None else list(map(str, own)) for n, own in zip(lengths, outputs, strict=True)]
        if columns is None:
            yield from ("".join(f"{label}\n" for label in labels) + "\n" for labels in found)
            return
        flat = [label for labels in found for label in labels]
        names = list(dict.fromkeys(flat))
        ids = np.array([names.index(label) for label in flat], dtype=np.int32)
        yield columns.with_column(ids, Vocabulary.from_strings(names)).to_bytes().decode("utf-8", "surrogatepass")

    return Examples(X, y, text)


def rows(estimator: Any, path: str) -> Examples:
    """Classes, of files in svmlight format."""
    from structsvm.cli.machines import examples

    X, y, *_ = examples(estimator.model_, path, needs_labels=False)
    return Examples(X, None if y is None else by_name(y.tolist(), estimator.classes_.tolist()), labels_text)


def documents(estimator: Any, path: str) -> Examples:
    """Nodes of a taxonomy."""
    from structsvm.cli.taxonomy import documents as read

    X, y, *_ = read(estimator, path)
    return Examples(X, None if y is None else by_name(y, estimator.taxonomy_.nodes), labels_text)


def sets(estimator: Any, path: str) -> Examples:
    """Sets of labels, between commas."""
    from structsvm.cli.multilabel import sets_of

    X, y, *_ = sets_of(path, estimator, needs_labels=False)
    known, names = estimator.classes_.tolist(), list(map(str, estimator.classes_))

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        for one in outputs:
            marks = one if isinstance(one, np.ndarray) else None
            own = one if marks is None else [names[k] for k in np.flatnonzero(marks)]
            yield (NOTHING if own is None else ",".join(map(str, own))) + "\n"

    return Examples(X, [by_name(own, known) for own in y] if any(y) else None, text)


def sentences_of_words(estimator: Any, path: str) -> Examples:
    """Dependency trees; without an output, words have no heads."""
    from structsvm.structures.dependencies import read_conllu

    trees = read_conllu(out.source(path))
    known = all(head >= 0 for tree in trees for head, _ in tree.arcs)

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        for tree, arcs in zip(trees, outputs, strict=True):
            yield tree.with_arcs([(-1, NOTHING)] * len(tree.words) if arcs is None else arcs).to_conllu()

    return Examples(trees, [tree.arcs for tree in trees] if known else None, text)


def meanings(estimator: Any, path: str) -> Examples:
    """Meanings, as JSON lines; an output that is not given is an empty list."""
    from structsvm.structures.bag_lines import read_bags

    lines = read_bags(out.source(path), bags=False)
    has_bags = lines.bags is not None and all(lines.bags)

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        for sentence, own in zip(lines.sentences, outputs, strict=True):
            yield json.dumps({"sentence": sentence, "meaning": own or []}, ensure_ascii=False) + "\n"

    return Examples(lines.sentences, lines.bags if has_bags else None, text)


def trees_of_words(estimator: Any, path: str) -> Examples:
    """Trees, one per line; blank lines stay."""
    from structsvm.cli.grammar import read_examples

    sentences, trees = read_examples(path, estimator.model_.terminals.kind)

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        for sentence, tree in zip(sentences, outputs, strict=True):
            yield f"{NOTHING if tree is None else tree}\n" if sentence else "\n"

    return Examples(sentences, trees, text)


def graphs(estimator: Any, path: str) -> Examples:
    """Labels of the nodes of graphs, as JSON lines; null for a graph without an output."""
    from structsvm.cli.graph import named, read

    lines = read(path, estimator.model_.label)
    known = all(label is not None for labels in lines.y for label in labels)

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        for own, ids in zip(outputs, lines.ids, strict=True):
            yield json.dumps({"labels": None if own is None else named(own, ids)}) + "\n"

    return Examples(lines.X, lines.y if known else None, text)


def alignments(estimator: Any, path: str) -> Examples:
    """Pairs of rows, as A2M or as lines of words."""
    from structsvm.cli.alignment import has_words, read
    from structsvm.tasks.alignment.files import to_a2m, to_words

    of_words = has_words(estimator.model_)
    file = read(path, of_words=of_words)

    def text(outputs: Sequence[Any]) -> Iterator[str]:
        for name, rows in zip(file.names, outputs, strict=True):
            if rows is None:
                yield f"{NOTHING}\n" if of_words else f">{name}\n{NOTHING}\n"
            else:
                yield f"{to_words(rows)}\n" if of_words else to_a2m(name, rows)

    return Examples(file.pairs, file.rows, text, lambda: file.check_aligned(path))


READERS: dict[str, Callable[[Any, str], Examples]] = {
    "sequence": sequences,
    "multiclass": rows,
    "binary": rows,
    "taxonomy": documents,
    "multilabel": sets,
    "dependency": sentences_of_words,
    "semantics": meanings,
    "grammar": trees_of_words,
    "graph": graphs,
    "alignment": alignments,
}


def reader_of(path: str, estimator: Any) -> Callable[[Any, str], Examples]:
    """The reader of a model's examples; UsageError for one without."""
    kind = estimator.model_.kind
    if kind not in READERS:
        raise click.UsageError(f"{path}: a model of the task {kind!r}; promises are for {', '.join(READERS)}")
    if kind == "semantics" and estimator.model_.method == "ospas":
        raise click.UsageError(f"{path}: meanings of --method ospas have no confidence, those of hybrid have")
    return READERS[kind]


def check_parts(path: str, estimator: Any) -> None:
    """UsageError for a model whose outputs have no parts."""
    try:
        known_parts(estimator)
    except TypeError as error:
        raise click.UsageError(f"{path}: {error}") from None


# Texts of a risk, found and promised, by the name of its loss.
WRONG = {"wrong": "these wrong", "parts": "the parts of these wrong, as a mean over answers"}
PROMISED = {"wrong": "at most {:g} % are wrong", "parts": "the share of wrong parts is at most {:g} % as a mean"}


def calibrated(path: str, input: str, output: str, alpha: float, delta: float, loss: Literal["wrong", "parts"]) -> str:
    """Write a model with the promise that at most a share `alpha` of its answers is wrong, or of the parts of an answer
    as a mean over answers; returns what was found.
    """
    import structsvm

    estimator = structsvm.load(path)
    estimator = getattr(estimator, "estimator_", estimator)
    read = reader_of(path, estimator)
    if loss == "parts":
        check_parts(path, estimator)
    examples = read(estimator, input)
    if examples.y is None:
        raise ValueError(f"{input}: has no true outputs to calibrate on, or not all of them")
    examples.check()
    careful = RiskController(estimator, alpha=alpha, delta=delta, loss=loss).calibrate(examples.X, examples.y)
    with_promise(path, output, careful)
    wrong = f", {100.0 * careful.risk_:.3g} % of {WRONG[loss]}" if careful.coverage_ else ""
    return (
        f"{careful.n_calibration_} held-out outputs: {100.0 * careful.coverage_:.1f} % are answered{wrong}\n"
        f"of later answers {PROMISED[loss].format(100.0 * alpha)}, with probability {1.0 - delta:g}\n"
        "assumed: later inputs, each as a whole, are drawn as these were, from which nothing was learnt"
    )


def selective(path: str, input: str, abstain_below: float | None = None) -> Iterator[str]:
    """The answers of a model with a promise; or of any model, with a number that its confidence must not be below."""
    import structsvm

    if abstain_below is not None:
        estimator = structsvm.load(path)
        estimator = getattr(estimator, "estimator_", estimator)
        examples = reader_of(path, estimator)(estimator, input)
        yield from examples.text(estimator.predict_selective(examples.X, abstain_below=abstain_below))
        return
    careful = structsvm.load(path)
    if not isinstance(careful, RiskController):
        needs = f"a model with a promise, {KEY!r} in its file"
        if isinstance(careful, Promise):
            needs = f"the promise of a RiskController, and this is {type(careful).__name__}, for programs in Python"
        raise click.UsageError(f"--abstain needs {needs}: structsvm calibrate {path} FILE --risk 0.01")
    examples = reader_of(path, careful.estimator_)(careful.estimator_, input)
    yield from examples.text(careful.predict(examples.X))
