"""The commands for alignments, on FASTA and A2M files of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click
import numpy as np

import structsvm.cli.output as out
from structsvm.cli.task import Task, Wanted
from structsvm.cli.training import Training, defaults, option_of, optional, refuse, training
from structsvm.features.inputs.places import located
from structsvm.metrics import alignment_scores, homologue_error
from structsvm.tasks.alignment.doubts import warn_of_gaps
from structsvm.tasks.alignment.examples import AlignedPairs
from structsvm.tasks.alignment.files import AlignmentFile, read_alignments, read_words, to_a2m, to_words
from structsvm.tasks.alignment.model import ALIGNMENT_C, AlignmentModel
from structsvm.tasks.alignment.parameters import SequenceAlignerParameters
from structsvm.tasks.alignment.selection import prior_costs
from structsvm.tasks.common.solver import AUTO, make_solver

# Homologues of other examples that are used in place of decoys if a file has none.
N_STAND_INS = 10


def predict(model: Any, path: str, wanted: Wanted) -> Iterator[str]:
    """The alignments of the input's pairs as A2M; of words as lines."""
    of_words = has_words(model)
    file = read(path, of_words=of_words)
    with located(file.rows):
        yield from _aligned(model, file, wanted, of_words=of_words)


def _aligned(model: Any, file: AlignmentFile, wanted: Wanted, *, of_words: bool) -> Iterator[str]:
    """The lines of `predict`."""
    if not wanted.is_ranked:
        for name, rows in zip(file.names, model.align(file.pairs, wanted.jobs), strict=True):
            yield f"{to_words(rows)}\n" if of_words else to_a2m(name, rows)
        return
    model.say_unseen(string for pair in file.pairs for string in pair)
    value = "probability" if wanted.confidence else "score"
    for name, pair in zip(file.names, file.pairs, strict=True):
        ranked = model.align_kbest(pair, wanted.kbest or 1, probabilities=wanted.confidence)
        if of_words:
            yield from (f"{to_words(rows)}\t{x:.6f}\n" for rows, x in ranked)
            continue
        yield from (to_a2m(f"{name} rank={k} {value}={x:.6f}", rows) for k, (rows, x) in enumerate(ranked, start=1))


def evaluate(model: Any, path: str, jobs: int) -> tuple[dict[str, Any], str, Any]:
    """How many aligned pairs are right, and how often the homologue is chosen."""
    file = read(path, of_words=has_words(model))
    file.check_aligned(path)
    file, n_left_out = file.with_pairs(path)
    pairs = zip(file.pairs, file.rows, strict=True)
    warn_of_gaps(
        len(file.rows),
        has_gaps=any(len(x) < len(row) for pair, rows in pairs for x, row in zip(pair, rows, strict=True)),
    )
    with located(file.rows):
        scores = alignment_scores(file.rows, model.align(file.pairs, jobs))
    decoys = file.decoys if file.has_decoys else stand_ins(file.pairs)
    error = choice_error(model, file.pairs, decoys, jobs) if all(decoys) else None
    results = {"error": error, **scores._asdict(), "n_pairs": len(file.pairs), "own_decoys": file.has_decoys}
    results |= {"n_left_out": n_left_out}
    text = (
        f"{len(file.pairs)} pairs{left_out(n_left_out)}; aligned letters: precision {scores.pair_precision:.4f}, "
        f"recall {scores.pair_recall:.4f}, F1 {scores.pair_f1:.4f}\n"
        f"Q {scores.q:.4f}, all columns right {scores.total_column:.4f}"
    )
    whose = "decoys" if file.has_decoys else "homologues of other examples"
    return results, text + ("" if error is None else f"\nhomologue not chosen among its {whose}: {error:.4f}"), None


def has_words(model: Any) -> bool:
    """Whether a model aligns lists of words."""
    return model.encoder.words is not None


def read(path: str, *, of_words: bool) -> AlignmentFile:
    """The pairs of a file, of letters or of words."""
    return read_words(out.source(path)) if of_words else read_alignments(out.source(path))


def left_out(n: int) -> str:
    """Remark on alignments that pair no letters."""
    return f" ({n} without aligned letters left out)" if n else ""


def choice_error(model: Any, pairs: Any, decoys: Any, jobs: int = 1) -> float:
    """How often a decoy is preferred to the homologue."""
    candidates = [[z, *others] for (_, z), others in zip(pairs, decoys, strict=True)]
    found = model.scores([x for x, _ in pairs], candidates, jobs)
    return homologue_error([scores[0] for scores in found], [scores[1:] for scores in found])


def inspect(model: Any, top: int, only: Sequence[str]) -> None:
    """Print what the model is, and its costs."""
    if only:
        raise ValueError("--label is for models of labels; this one aligns sequences")
    oracle = model.oracle
    out.heading(model, f"task: alignment, {oracle.mode}, {oracle.gaps} gaps, {oracle.n_features} weights", DEFAULTS)
    if model.costs is not None:
        click.echo(f"prior: {model.costs}")
    click.echo(f"gap: open {model.gap_open:+.4f}, extend {model.gap_extend:+.4f}")
    matrix = model.substitution_matrix
    a, b = np.triu_indices(len(matrix.alphabet)) if oracle.symmetric else np.indices(matrix.shape).reshape(2, -1)
    values = matrix.values[a, b]
    for sign in (1.0, -1.0):
        best = np.argsort(-sign * values, kind="stable")[:top]
        between = " with " if has_words(model) else ""
        pairs = (f"{matrix.alphabet[a[k]]}{between}{matrix.alphabet[b[k]]} {values[k]:+.3f}" for k in best)
        click.echo(("highest: " if sign > 0.0 else "lowest:  ") + "  ".join(pairs))
    if not has_words(model):
        click.echo(matrix_text(model))


def demo(seed: int) -> Any:
    """Learn costs from simulated homologues and decoys, compare with plain ones, draw the matrix."""
    from structsvm.datasets import make_alignment
    from structsvm.tasks import SequenceAligner

    click.echo("simulating 40 sequences with a homologue and decoys each, and 100 to test on")
    data, test = make_alignment(40, random_state=seed), make_alignment(100, random_state=seed + 1)
    aligner = SequenceAligner(mode="local", C=1.0, tol=0.01, random_state=seed)
    model = aligner.fit(data.X, data.y, decoys=data.decoys).model_
    click.echo(f"homologue not chosen: {choice_error(model, test.X, test.decoys):.3f} of the test examples")
    click.echo(f"gap: open {model.gap_open:+.4f}, extend {model.gap_extend:+.4f}")
    click.echo(model.result.certificate())
    return picture(model)


def stand_ins(X: Any) -> Any:
    """For each example homologues of others, spread evenly over the file, in place of decoys."""
    n = len(X)
    steps = sorted({t * n // (N_STAND_INS + 1) for t in range(1, N_STAND_INS + 1)} - {0})
    return [[X[(k + step) % n][1] for step in steps if X[(k + step) % n][1] not in X[k]] for k in range(n)]


def matrix_text(model: Any) -> str:
    """The learnt matrix in NCBI's text format."""
    gaps = f"gap open {model.gap_open:.6g}, gap extend {model.gap_extend:.6g} (the first, each further letter of a gap)"
    return model.substitution_matrix.to_ncbi(comments=["Substitution scores learnt by structsvm", gaps])


def picture(model: Any) -> Any:
    """The training history and the matrix."""
    from structsvm.plotting import SubstitutionDisplay

    figure = out.blank(14, 6)
    left, right = figure.subfigures(1, 2, width_ratios=[0.8, 1])
    out.history(model, left)
    SubstitutionDisplay(model.substitution_matrix).plot(ax=right.add_subplot())
    return figure


def with_gaps(prior: Any, given: list[float | None]) -> Any:
    """A prior with the given scores of gaps in place of its own."""
    matrix, *own = prior_costs(prior)
    gaps = [mine if score is None else score for score, mine in zip(given, own, strict=True)]
    return matrix if gaps == [None, None] else (matrix, *gaps)


# The options of the prior's scores of gaps.
GAPS = ("prior_gap_open", "prior_gap_extend")
of_aligner = partial(option_of, SequenceAlignerParameters)


@training(plot="Save training history and matrix as a picture.")
@of_aligner("mode")
@of_aligner("gaps")
@click.option("--symmetric/--asymmetric", default=True, show_default=True, help="One weight for (a, b) and (b, a).")
@of_aligner("letter_gaps", "Gaps also have weights by the opposite letter.")
@of_aligner("classes", "Position features.")
@of_aligner("context", "Weights by the letters around.")
@click.option("--words", is_flag=True, help="Align words: a line per pair, rows between tabs, words between blanks.")
@click.option("--alphabet", default="protein", show_default=True, help="protein, dna, or all letters.")
@of_aligner("band", "Search only this far from the diagonal.")
@of_aligner("loss")
@of_aligner("window", "How far off a pair may be.")
@click.option(
    "--prior",
    type=out.Input(),
    default=AUTO,
    show_default=True,
    help="Matrix to start from and stay close to: a file in NCBI's text format, BLOSUM62, ..., or none.",
)
@optional("--prior-gap-open", float, "Its score of a gap's first letter.  [default: chosen]")
@optional("--prior-gap-extend", float, "Its score of each further letter.  [default: chosen]")
@optional("--decoys/--no-decoys", None, "Learn from decoys.  [default: if all examples have some]")
@optional("--matrix", out.TEXT, "Write the learnt matrix in NCBI's text format.")
def command(job: Training, path: str, params: dict[str, Any]) -> int:
    """Learn alignment costs from a FASTA or A2M file of aligned pairs, or with --words from lines of words.

    Two records per example, with gaps; following records with the same first word are its decoys.
    """
    decoys, matrix, of_words = params.pop("decoys", None), params.pop("matrix", None), params.pop("words", False)
    if of_words and matrix:
        raise ValueError("--matrix writes scores of letters, not those of --words: structsvm inspect shows them")
    if params.get("prior") == "none":
        params["prior"] = None
    file = read(path, of_words=of_words)
    file.check_aligned(path)
    if decoys and not file.has_decoys:
        name = next(name for name, some in zip(file.names, file.decoys, strict=True) if not some)
        raise ValueError(f"{path}, record {name!r}: has no decoys (more records with that first word) to learn from")
    sets = file.decoys if decoys or (decoys is None and file.has_decoys) else None
    model, settings = job.start(
        AlignmentModel.load, DEFAULTS, {name: value for name, value in params.items() if name not in GAPS}
    )
    refuse(
        params,
        (settings.prior is None, "prior_gap_open prior_gap_extend", "with --prior none"),
        (settings.gaps == "linear", "prior_gap_extend", "with --gaps linear"),
        (sets is not None, "window", "where decoys are learnt from"),
        (sets is not None and settings.loss != "q", "loss", "where decoys are learnt from"),
    )
    settings.prior = with_gaps(settings.prior, [params.get(name) for name in GAPS])
    solver = make_solver(settings, ALIGNMENT_C)
    file, n_left_out = file.with_pairs(path, assessed=sets is None and settings.loss == "q")
    sets, job.read = None if sets is None else file.decoys, file.pairs
    if model is None:
        model, references = AlignmentModel.prepared(settings, file.pairs, file.rows, sets)
    else:
        model.check_unchanged(settings)
        references = model.references(file.pairs, file.rows, sets)
    job.announce(
        f"{len(references)} pairs{left_out(n_left_out)}, {len(references.decoys)} decoys, "
        f"{len(references.strings)} sequences, {model.oracle.n_features} weights"
    )
    if model.costs is not None:
        job.say(f"prior: {model.costs}")
    status = job.run(model, AlignedPairs(references), solver, vars(settings), draw=picture)
    if matrix:
        with out.writing(matrix) as stream:
            stream.write(matrix_text(model))
    return status


DEFAULTS = defaults(command, "decoys", "matrix", "words", *GAPS)
UNDRAWN = {"evaluate": "draws a confusion matrix, which alignments have none of"}
TASK = Task(command, AlignmentModel.load, predict, evaluate, inspect, demo, picture, UNDRAWN)
