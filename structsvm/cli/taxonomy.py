"""The commands for documents in a taxonomy, on files of texts or in svmlight format."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm._adapter import as_objects
from structsvm.cli.machines import DENSE, KERNEL, kernel_options, kernel_rules, kernel_text
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import (
    SHARDS,
    UNKNOWN,
    InShards,
    Training,
    count,
    flag,
    option_of,
    optional,
    refuse,
    training,
    with_options,
)
from structsvm.features.inputs.places import PlacedRows
from structsvm.features.matrices import is_sparse
from structsvm.kernel.parameters import KernelFunction, kernel_params
from structsvm.metrics import hierarchical_scores, path_loss, tree_loss
from structsvm.metrics._counts import is_unknown, mark_for, say_unknown, say_unseen
from structsvm.structures.taxonomy import Taxonomy, read_taxonomy
from structsvm.tasks.common.calibration import class_probabilities
from structsvm.tasks.common.examples import doubt_of_outputs
from structsvm.tasks.common.labels import from_text
from structsvm.tasks.taxonomy.documents import document_rows
from structsvm.tasks.taxonomy.estimator import TaxonomyClassifier
from structsvm.tasks.taxonomy.known import SETS, is_inner
from structsvm.tasks.taxonomy.parameters import TaxonomyClassifierParameters
from structsvm.tasks.taxonomy.paths import settled
from structsvm.tasks.taxonomy.shards import DocumentShards, holds_texts


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The predicted node of each document, and the probability that the label is at or below it; or the k best."""
    model.set_params(n_jobs=wanted.jobs)
    X, *_ = documents(model, path)
    if wanted.kbest is not None:
        own = model.model_
        scores = own.label_scores(X if own.vectorizer is None else own.vectorizer.transform(X))
        yield from out.best(own.labels, class_probabilities(own, scores) if wanted.confidence else scores, wanted.kbest)
    elif wanted.confidence:
        column = {node: k for k, node in enumerate(model.taxonomy_.nodes)}
        for name, p in zip(model.predict(X).tolist(), model.node_proba(X), strict=True):
            yield f"{name}\t{p[column[name]]:.6f}\n"
    else:
        yield from (f"{name}\n" for name in model.predict(X))


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """Accuracy and the losses along the taxonomy; the picture is the recall of its nodes."""
    model.set_params(n_jobs=jobs)
    X, y, _, places = documents(model, path)
    if y is None:
        raise ValueError(f"{path}: the documents have no labels to compare with")
    names = {str(node): node for node in model.taxonomy_.nodes}
    y, predicted = [names.get(label, label) for label in y], model.predict(X).tolist()
    mark = mark_for(model.unknown, model.classes_.tolist())
    known = [not is_unknown(label, mark) for label in y]
    if not any(known):
        raise ValueError(f"{path}: the documents have no labels to compare with")
    say_unknown(y, mark, None, "documents that the scores leave out")
    n_unknown, places = len(y) - sum(known), PlacedRows(path, [*compress(places.lines, known)])
    y, predicted = [*compress(y, known)], [*compress(predicted, known)]
    n_unseen = say_unseen(y, model.taxonomy_, "documents", places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said above
        scores = hierarchical_scores(y, predicted, model.taxonomy_)
        losses = [loss(y, predicted, model.taxonomy_) for loss in (tree_loss, path_loss)]
    found = {
        "accuracy": float(np.mean([a == b for a, b in zip(y, predicted)])),
        "tree_loss": losses[0],
        "path_loss": losses[1],
        **{f"hierarchical_{name}": score for name, score in scores._asdict().items()},
        "n_documents": len(y),
        "n_unseen": n_unseen,
        "n_unknown": n_unknown,
    }
    precision, recall, f1 = (f"{100 * score:.2f}%" for score in scores)
    text = (
        f"{len(y)} documents: accuracy {100 * found['accuracy']:.2f}%, mean tree loss {found['tree_loss']:.4f}\n"
        f"over ancestors: precision {precision}, recall {recall}, F1 {f1}; mean path length {found['path_loss']:.4f}"
    )
    leaves = {*model.taxonomy_.leaves}
    n_above = sum(label in model.taxonomy_ and label not in leaves for label in y)
    if n_above and model.model_.leaf_only:
        text += f"\n{n_above} documents are at inner nodes, and count as wrong: the model predicts leaves alone"
    pairs = [(a, b) for a, b in zip(y, predicted, strict=True) if a in model.taxonomy_]
    drawn = [list(own) for own in zip(*pairs, strict=True)] or [[], []]
    return found, text, lambda: out.compared("TaxonomyDisplay", (18, 9), *drawn, model.taxonomy_, ncols=2)


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Describe the model, with the heaviest weights of its nodes."""
    targets, taxonomy, of_texts = model.model_.targets, model.taxonomy_, model.model_.vectorizer is not None
    nodes = model.nodes_.tolist()
    nodes = nodes[1:] if len(nodes) > targets.attributes.n_attributes else nodes
    shown = out.chosen(only, nodes, "nodes that the model has weights for", listed=False)
    text = f"task: taxonomy, {len(model.classes_)} classes" + ("" if taxonomy.root is None else f" in {taxonomy!r}")
    params = {k: v for k, v in model.get_params(deep=False).items() if k not in ("taxonomy", "vectorizer")}
    click.echo(text)
    out.parameters(params, TaxonomyClassifier().get_params(deep=False))
    kind = f"{model.n_features_in_} features{' of texts' * of_texts}, "
    if model.kernel is None:
        oracle = model.model_.oracle
        click.echo(f"{kind}{oracle.n_features} weights, {oracle.n_full} features with all of them")
    else:
        click.echo(f"{kind}{len(model.support_)} support patterns, kernel {kernel_text(model.model_.machine.kernel)}")
    out.certificate(model.model_, out.certificates)
    features = model.vectorizer_.get_feature_names_out() if of_texts else range(1, model.n_features_in_ + 1)
    if isinstance(model.attributes, str) and model.kernel is None:
        matrix = model.coef_
        for k, name in shown:
            weights = matrix[[k]].toarray().ravel() if is_sparse(matrix) else matrix[k]
            click.echo(f"\n{name}")
            out.heaviest(weights, top, features.__getitem__)


def demo(seed: int) -> Any:
    """Train on simulated titles of products, evaluate on fresh ones, draw how they are confused."""
    from structsvm.datasets import make_products

    hard = {"ambiguity": 0.5, "typos": 0.2, "noise": 0.05}
    click.echo("simulating 640 titles of products in a shop's categories, and 2000 to test on")
    X, y, taxonomy = make_products(640, **hard, random_state=seed)
    X_test, y_test, _ = make_products(2000, **hard, random_state=seed + 1)
    click.echo(f"{X_test[0]} [{y_test[0]}]")
    for n in (80, 640):
        model = TaxonomyClassifier(taxonomy, vectorizer=vectorizer(X), random_state=seed).fit(X[:n], y[:n])
        predicted = model.predict(X_test)
        click.echo(
            f"{n} titles: accuracy {100 * np.mean(predicted == y_test):.2f}%, mean tree loss "
            f"{tree_loss(y_test, predicted, taxonomy):.4f}"
        )
    click.echo(model.result_.certificate())
    return out.compared("TaxonomyDisplay", (16, 8), y_test, predicted, taxonomy, ncols=2)


# ---- files --------------------------------------------------------------------------------------


def vectorizer(X: Any, min_count: Any = 1, ngrams: Any = 1) -> Any:
    """The vectorizer of texts, tf-idf with logarithmic term frequencies; None for other documents."""
    if not isinstance(X, list):
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, min_df=min_count, ngram_range=(1, ngrams))


def documents(model: Any, path: str) -> Any:
    """Return ``(X, labels, first_index, places)`` of a file in the form that the model was trained on."""
    own = model.model_
    X, y, first_index, lines, _ = document_rows(out.source(path), own.vectorizer is not None, own.first_index)
    if not isinstance(X, list):
        X = out.widened(X, path, model.n_features_in_)
    return as_filled(X), y, first_index, PlacedRows(path, lines)


NOT_OF_TEXTS = "on documents in svmlight format"


def shards(in_shards: InShards, of_texts: Any, model: Any = None) -> tuple[DocumentShards, Any, Any, Any]:
    """As `documents`, of the shards that options ask for, with the words of a model to resume; lines have no places."""
    given: dict[str, Any] = {}
    if of_texts and in_shards.folder is None:
        raise click.UsageError(
            f"--{'ngrams' if 'ngrams' in of_texts else 'min-count'}: shards have the terms they have"
        )
    if in_shards.folder is not None and holds_texts(out.source(in_shards.path)):
        given = {"vectorizer": vectorizer([], **of_texts) if model is None else model.vectorizer}
    else:
        refuse(of_texts, (True, "min_count ngrams", NOT_OF_TEXTS))
    if model is not None:
        given["first_index"] = model.model_.first_index
    found = in_shards.of(DocumentShards, **given)
    return found, found.labels, found.first_index, PlacedRows(in_shards.path, ())


def node_set(name: str, row: int) -> Any:
    """The label of a name; of one with bars the set that contains it."""
    try:
        known = from_text(name)
    except ValueError as error:
        raise ValueError(f"row {row} of y: {error}") from None
    if known is None:
        raise ValueError(
            f"row {row} of y: the label {name!r}: a document of which nothing is known has the taxonomy's root"
        )
    return frozenset(known) if isinstance(known, set) else known


def as_filled(X: Any) -> Any:
    """Texts, or a matrix: as an array if much of it is nonzero."""
    return X if isinstance(X, list) or X.nnz < DENSE * X.shape[0] * X.shape[1] else X.toarray()


@training(metavar="DOCS", file=out.Input(exists=True), plot="Save the training history as a picture.")
@click.option("--taxonomy", "edges", type=out.FILE, help="One child<TAB>parent per line.  [default: no relations]")
@option_of(TaxonomyClassifierParameters, "loss")
@option_of(TaxonomyClassifierParameters, "attributes")
@kernel_options("none: weights for features")
@optional("--separator", str, 'Labels are paths: this separates their levels, such as " > ".')
@optional("--leaves/--any-node", None, "Inner nodes are unknown leaves; or predict a safer node above.")
@flag("--balanced", "Give every class the same weight.")
@UNKNOWN
@flag("--partial", "Labels may be known in part: A|B is one of these.")
@count("--min-count", 1, "Drop words that occur in fewer texts.")
@count("--ngrams", 1, "Longest runs of words.")
@option_of(TaxonomyClassifierParameters, "max_weights", "Beyond, rare features have weights only where they occur.")
@partial(with_options, SHARDS)
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Train a classifier of documents in a taxonomy.

    DOCS has one document per line: label<TAB>text, or svmlight's label and index:value pairs. Or it is a table with
    the names of its columns in the first line, one of texts (title, text) and one of labels (category, label).

    Data larger than memory: --shards, with which DOCS may also be a Parquet or Arrow file with a column of texts and
    one of labels. To train on the shards again, name their folder as DOCS.
    """
    is_partial, in_shards = params.pop("partial", False), InShards.taken(path, params)
    for name, is_given in (("partial", is_partial), ("kernel", "kernel" in params)):
        if in_shards and is_given:
            raise click.UsageError(f"--{name} has no meaning with shards")
    of_texts: dict[str, Any] = {name: params.pop(name) for name in ("min_count", "ngrams") if name in params}
    params = as_parameters(params)
    before = None if job.warm_start is None else TaxonomyClassifier.load(job.warm_start)
    of_kernel = {name: params.pop(name) for name in KERNEL if name in params}
    if of_kernel:
        own = kernel_params(before).get_params() if before is not None and before.kernel is not None else {}
        params["kernel"] = KernelFunction(**own | of_kernel)
    if before is None:
        if of_kernel and "kernel" not in of_kernel:
            raise click.UsageError(f"--{min(of_kernel)} has no meaning without --kernel")
        if of_kernel:
            refuse(params | of_kernel, *kernel_rules(of_kernel["kernel"]), (True, "max_weights", "with --kernel"))
        X, y, first_index = shards_or_rows(job, path, in_shards, of_texts)
        params = dict[str, Any](solver="larank", random_state=0) | params
        model = TaxonomyClassifier(vectorizer=None if in_shards else vectorizer(X, **of_texts), **params)
    elif of_texts:
        raise click.UsageError("--min-count and --ngrams have no meaning with --warm-start: its words stay")
    else:
        model = before.set_params(**params, warm_start=True)
        X, y, first_index, job.read = shards(in_shards, {}, model) if in_shards else documents(model, path)
    if y is None:
        raise ValueError(
            f"{path}: the documents have no labels; expected label<TAB>text, label index:value ..., or a table whose "
            "first line names its columns, such as title,category"
        )
    if is_partial:
        y = [node_set(name, i) for i, name in enumerate(y)]
    elif (
        before is None
        and not in_shards
        and len(set(y)) > 1
        and (doubt := doubt_of_outputs(np.unique(y, return_inverse=True)[1]))
    ):
        raise ValueError(f"{path}: {doubt}{if_swapped(X)}")
    model.verbose = not job.quiet and sys.stderr.isatty()
    n = len(X) if in_shards else len(y)
    taxonomy = settled(model.taxonomy, y, unknown=model.unknown)[0]
    job.say(f"{n} documents, {len(set(y))} {labels_in(taxonomy, y, not in_shards)}")
    trained, interrupted = vars(model).get("model_"), None
    try:
        model.fit(X, None if in_shards else as_objects(y) if is_partial else np.array(y))
    except KeyboardInterrupt:
        if vars(model).get("model_") is trained:
            raise
        interrupted = f"{model.n_iter_:.1f} passes"
    model.model_.first_index = first_index
    model.model_.params |= {"warm_start": False, "verbose": False}
    return job.end(model.model_, interrupted, describe=out.certificates)


def as_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """Options as parameters of the estimator."""
    if "edges" in options and "separator" in options:
        raise click.UsageError("--taxonomy and --separator: the taxonomy is a file's, or that of the labels' levels")
    names = {"leaves": "leaf_only", "separator": "taxonomy"}
    params = {names.get(name, name): value for name, value in options.items()}
    if "edges" in params:
        params["taxonomy"] = read_taxonomy(params.pop("edges"))
    if params.pop("balanced", False):
        params["class_weight"] = "balanced"
    return params


def shards_or_rows(job: Training, path: str, in_shards: InShards, of_texts: dict[str, Any]) -> Any:
    """Return ``(X, labels, first_index)`` for a new model, and store in the job where its documents stand."""
    if in_shards:
        *found, job.read = shards(in_shards, of_texts)
        return found
    X, y, first_index, lines, remark = document_rows(out.source(path))
    job.read = PlacedRows(path, lines)
    if remark:
        job.say(f"{path}: {remark}")
    refuse(of_texts, (not isinstance(X, list), "min_count ngrams", NOT_OF_TEXTS))
    return as_filled(X), y, first_index


SEPARATORS = " > ", "/", "|", "::"  # between levels of paths, in the files of shops and libraries


def if_swapped(X: Any) -> str:
    """The end of a message about labels that differ: of texts that repeat, it says that they may be the labels."""
    if not isinstance(X, list) or len(set(X)) > len(X) / 2:
        return ""
    return f" Or are the columns in the other order? A line is label<TAB>text, and {X[0]!r:.60} is taken for a text"


def labels_in(taxonomy: Taxonomy | None, y: Any, by_document: bool) -> str:
    """Remark on labels: leaves without documents, and, if y has a label per document, documents at inner nodes."""
    if taxonomy is None:
        separator = next((mark for mark in SEPARATORS if all(mark in str(label) for label in set(y))), None)
        return "classes without a taxonomy" + f" (if they are paths, say --separator {separator!r})" * bool(separator)
    leaves = set(taxonomy.leaves)
    absent = len(leaves.difference(label for label in y if not isinstance(label, SETS)))
    above = sum(is_inner(label, taxonomy, leaves) for label in y) if by_document else 0
    about = [f"{absent} without documents"] * (absent > 0) + [f"{above} documents at inner nodes"] * (above > 0)
    text = f"labels in a taxonomy of {len(taxonomy)} nodes and {len(leaves)} leaves"
    return text + f" ({', '.join(about)})" * bool(about)


TASK = Task(
    command,
    TaxonomyClassifier.load,
    predict,
    evaluate,
    inspect,
    demo,
    lambda model: out.history(model.model_),
    has_unknown=True,
)
