"""The commands for documents in a taxonomy, on files of texts or in svmlight's form."""

from __future__ import annotations

import json
import os
import sys
from textwrap import shorten
from typing import Any

import click
import numpy as np

from structsvm.cli.kernels import kernel_options, split_given
from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import Training, training
from structsvm.metrics import hierarchical_scores, path_loss, tree_loss
from structsvm.structures.taxonomy import read_taxonomy
from structsvm.tasks.taxonomy.documents import read_documents
from structsvm.tasks.taxonomy.estimator import TaxonomyClassifier


def train(
    path: str | os.PathLike[str],
    model_path: str,
    edges: Any,
    params: Any,
    min_count: Any,
    ngrams: Any,
    plot: Any,
    quiet: bool,
) -> int:
    """Train on a file and write the model; returns the exit status (130 after Ctrl-C)."""
    job = Training(quiet)
    for output in (model_path, plot):
        check_writable(output)
    drawable(plot)
    taxonomy = None if edges is None else read_taxonomy(edges)
    X, y = read_documents(path)
    if y is None:
        raise ValueError(f"{path}: the documents have no labels; expected label<TAB>text")
    model = TaxonomyClassifier(taxonomy, vectorizer=vectorizer(X, min_count, ngrams), **params)
    model.verbose = not quiet and sys.stderr.isatty()
    if taxonomy is None:
        job.say(f"{len(y)} documents, {len(set(y))} classes without a taxonomy")
    else:
        absent = len(set(taxonomy.leaves) - set(y))
        job.say(
            f"{len(y)} documents, {len(set(y))} labels in a taxonomy of {len(taxonomy)} nodes and "
            f"{len(taxonomy.leaves)} leaves" + (f" ({absent} without documents)" if absent else "")
        )
    interrupted = False
    with job.warnings():
        try:
            model.fit(X, np.array(y))
        except KeyboardInterrupt:
            if not hasattr(model, "model_"):
                raise
            interrupted = True
    model.save(model_path)
    job.say(model.result_.certificate())
    if plot:
        history(model, plot, job.say)
    return job.end(model_path, model.result_.n_iter if interrupted else None)


def predict(model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any) -> None:
    """Write the predicted node of each document, or with `kbest` its best classes and their scores."""
    model = TaxonomyClassifier.load(model_path, mmap=True).set_params(n_jobs=jobs)
    X, _ = documents(model, path)
    with writing(output) as stream:
        if kbest is None:
            stream.writelines(f"{name}\n" for name in model.predict(X))
            return
        scores = model.model_.label_scores(X if not hasattr(model, "vectorizer_") else model.vectorizer_.transform(X))
        for row in scores:
            best = np.argsort(-row, kind="stable")[:kbest]
            stream.write("\t".join(f"{model.model_.labels[k]} {row[k]:.6f}" for k in best) + "\n")


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Print accuracy and the losses along the taxonomy."""
    drawable(plot)
    model = TaxonomyClassifier.load(model_path, mmap=True).set_params(n_jobs=jobs)
    X, y = documents(model, path)
    if y is None:
        raise ValueError(f"{path}: the documents have no labels to compare with")
    names = {str(node): node for node in model.taxonomy_.nodes}
    unknown = [label for label in y if label not in names]
    if unknown:
        raise ValueError(f"{path}: the label {unknown[0]!r} is no node of the model's taxonomy")
    y = [names[label] for label in y]
    predicted = model.predict(X).tolist()
    scores = hierarchical_scores(y, predicted, model.taxonomy_)
    found = {
        "accuracy": float(np.mean([a == b for a, b in zip(y, predicted)])),
        "tree_loss": tree_loss(y, predicted, model.taxonomy_),
        "path_loss": path_loss(y, predicted, model.taxonomy_),
        "hierarchical_precision": scores.precision,
        "hierarchical_recall": scores.recall,
        "hierarchical_f1": scores.f1,
        "n_documents": len(y),
    }
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(
            f"{len(y)} documents: accuracy {100 * found['accuracy']:.2f}%, mean tree loss {found['tree_loss']:.4f}"
        )
        click.echo(
            f"over ancestors: precision {100 * scores.precision:.2f}%, recall {100 * scores.recall:.2f}%, "
            f"F1 {100 * scores.f1:.2f}%; mean path length {found['path_loss']:.4f}"
        )
    if plot:
        from structsvm.plotting import TaxonomyDisplay

        figure = blank(18, 9)
        TaxonomyDisplay.from_predictions(y, predicted, model.taxonomy_, ax=figure.subplots(ncols=2))
        save(figure, plot, say=lambda text: click.echo(text, err=True))


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is, and the heaviest weights of its nodes."""
    drawable(plot)
    model = TaxonomyClassifier.load(model_path)
    targets, taxonomy = model.model_.targets, model.taxonomy_
    nodes = model.nodes_.tolist()
    nodes = nodes[1:] if len(nodes) > targets.attributes.n_attributes else nodes
    names = {str(node): k for k, node in enumerate(nodes)}
    unknown = [label for label in only if label not in names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the nodes that the model has weights for")
    defaults, given = TaxonomyClassifier().get_params(deep=False), model.get_params(deep=False)
    told = {
        k: v
        for k, v in given.items()
        if k not in ("taxonomy", "vectorizer") and v is not defaults[k] and v != defaults[k]
    }
    click.echo(
        f"task: taxonomy, {len(model.classes_)} classes" + ("" if taxonomy.root is None else f" in {taxonomy!r}")
    )
    click.echo("parameters: " + (", ".join(f"{k}={shorten(repr(v), 60)}" for k, v in told.items()) or "defaults"))
    kind = f"{model.n_features_in_} features{' of texts' if hasattr(model, 'vectorizer_') else ''}, "
    if model.kernel is None:
        oracle = model.model_.oracle
        click.echo(f"{kind}{oracle.n_features} weights, {oracle.n_full} features with all of them")
    else:
        click.echo(f"{kind}{len(model.support_)} support patterns, kernel {model.kernel}")
    if model.result_ is not None:
        click.echo(model.result_.certificate())
    features = (
        model.vectorizer_.get_feature_names_out()
        if hasattr(model, "vectorizer_")
        else [str(k + 1) for k in range(model.n_features_in_)]
    )
    if isinstance(model.attributes, str) and model.kernel is None:
        matrix = model.coef_
        for name, k in names.items():
            if only and name not in only:
                continue
            weights = matrix[[k]].toarray().ravel() if hasattr(matrix, "toarray") else matrix[k]
            click.echo(f"\n{name}")
            for sign, column in (("+", weights), ("-", -weights)):
                best = np.argsort(-column, kind="stable")[:top]
                click.echo(f"  {sign} " + "  ".join(f"{features[f]} {column[f]:.3f}" for f in best if column[f] > 0.0))
    if plot:
        history(model, plot, click.echo)


def demo(output: Any, seed: Any) -> None:
    """Train on simulated documents, evaluate on fresh ones, draw how they are confused."""
    from structsvm.datasets import make_taxonomy
    from structsvm.plotting import TaxonomyDisplay

    drawable(output)
    size = {"n_leaves": 48, "depth": 3, "n_words": 3000}
    click.echo("simulating 500 documents in a taxonomy of 48 leaves, and 2000 to test on")
    X, y, taxonomy = make_taxonomy(500, **size, random_state=seed)
    X_test, y_test, _ = make_taxonomy(2000, **size, random_state=seed + 1)
    for attributes, loss in (("flat", "zero_one"), ("ancestors", "tree")):
        model = TaxonomyClassifier(
            taxonomy, attributes=attributes, loss=loss, vectorizer=vectorizer(X, 1, 1), random_state=seed
        ).fit(X, y)
        predicted = model.predict(X_test)
        click.echo(
            f"{attributes} features, {loss} loss: accuracy {100 * np.mean(predicted == y_test):.2f}%, mean tree loss "
            f"{tree_loss(y_test, predicted, taxonomy):.4f}"
        )
    click.echo(model.result_.certificate())
    figure = blank(16, 8)
    TaxonomyDisplay.from_predictions(y_test, predicted, taxonomy, ax=figure.subplots(ncols=2))
    save(figure, output)


# ---- files --------------------------------------------------------------------------------------


def vectorizer(X: Any, min_count: Any, ngrams: Any) -> Any:
    """What makes features of texts: term frequencies, on a log scale, by inverse document frequencies."""
    if not isinstance(X, list):
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, min_df=min_count, ngram_range=(1, ngrams))


def documents(model: Any, path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return ``(X, labels)`` of a file in the form that the model was trained on."""
    X, y = read_documents(sys.stdin.buffer if path == "-" else path, texts=hasattr(model, "vectorizer_"))
    if not isinstance(X, list):
        from scipy.sparse import csr_array

        # Features that the model does not know are left out.
        known = X.indices < model.n_features_in_
        counts = np.concatenate([[0], np.cumsum(known)])[X.indptr]
        X = csr_array((X.data[known], X.indices[known], counts), (X.shape[0], model.n_features_in_))
    return X, y


def history(model: Any, output: Any, say: Any) -> None:
    """Save the objectives over time as a picture."""
    from structsvm.plotting import HistoryDisplay

    figure = blank(7, 6)
    HistoryDisplay(model.result_.history).plot(ax=figure.subplots(2, sharex=True, height_ratios=(3, 2)))
    save(figure, output, say=say)


@training(1.0, metavar="DOCS")
@click.option(
    "--taxonomy",
    "edges",
    type=click.Path(exists=True, dir_okay=False),
    help="Edges, child<TAB>parent a line.  [default: classes have nothing in common]",
)
@click.option("--loss", type=click.Choice(["tree", "path", "zero_one"]), default="tree", show_default=True)
@click.option(
    "--attributes", type=click.Choice(["ancestors", "normalized", "flat"]), default="ancestors", show_default=True
)
@kernel_options("none: weights for features")
@click.option("--any-node", is_flag=True, help="Labels may be inner nodes; predict one where that is safer.")
@click.option("--balanced", is_flag=True, help="Let every class weigh the same.")
@click.option("--min-count", type=click.IntRange(1), default=1, show_default=True, help="Drop words of fewer texts.")
@click.option("--ngrams", type=click.IntRange(1), default=1, show_default=True, help="Longest runs of words.")
@click.option(
    "--max-weights",
    type=click.IntRange(1),
    default=2**25,
    show_default=True,
    help="Beyond, rare features have weights only where they occur.",
)
@click.option("--plot", type=click.Path(dir_okay=False), help="Save the training history as a picture.")
def command(
    train_file: Any,
    model: Any,
    edges: Any,
    any_node: Any,
    balanced: bool,
    min_count: Any,
    ngrams: Any,
    plot: Any,
    quiet: bool,
    **params: Any,
) -> None:
    """Train a classifier of documents in a taxonomy.

    DOCS holds a document a line: label<TAB>text, or svmlight's label and index:value pairs. Files that end in .gz,
    .xz or .bz2 are read as they are.
    """
    kernel, given = split_given(params)
    if kernel and "kernel" not in kernel:
        raise click.UsageError(f"--{min(kernel)} has no meaning without --kernel")
    given |= kernel | {"leaf_only": not any_node, "class_weight": "balanced" if balanced else None}
    sys.exit(train(train_file, model, edges, given, min_count, ngrams, plot, quiet))
