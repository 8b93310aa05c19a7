"""The commands for alignments, on FASTA and A2M files of pairs."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from structsvm.cli.output import blank, check_writable, drawable, save, writing
from structsvm.cli.training import COMMON, Training, passes_if_interrupted, training
from structsvm.metrics import alignment_scores, homologue_error
from structsvm.progress import Bar
from structsvm.tasks.alignment.files import read_alignments, write_alignments
from structsvm.tasks.alignment.model import DEFAULT_C, AlignmentModel
from structsvm.tasks.common.solver import make_solver

DEFAULTS = COMMON | {
    "mode": "semi_global",
    "gaps": "affine",
    "symmetric": True,
    "letter_gaps": False,
    "classes": None,
    "alphabet": "protein",
    "band": None,
    "loss": "q",
    "window": 0,
    "prior": None,
    "prior_gap_open": -11.0,
    "prior_gap_extend": -1.0,
}

# Homologues of other examples that stand in for decoys where a file has none.
N_STAND_INS = 10


def train(
    path: str | os.PathLike[str], model_path: str, params: Any, decoys: Any, plot: Any, matrix: Any, quiet: bool
) -> int:
    """Train on a file and write the model; returns the exit status (130 after Ctrl-C)."""
    job = Training(quiet)
    for output in (model_path, plot, matrix):
        check_writable(output)
    drawable(plot)
    file = read(path)
    file.check_aligned(path)
    if decoys and not file.has_decoys:
        name = file.names[next(k for k, some in enumerate(file.decoys) if not some)]
        raise ValueError(f"{path}, record {name!r}: has no decoys (more records with that first word) to learn from")
    decoys = file.has_decoys if decoys is None else decoys
    settings = SimpleNamespace(**DEFAULTS | params)
    solver = make_solver(settings, DEFAULT_C)
    model = AlignmentModel.of(settings)
    model.params = vars(settings)
    references = model.references(file.pairs, file.rows, file.decoys if decoys else None)
    job.say(
        f"{len(references)} pairs, {len(references.decoys)} decoys, {len(references.strings)} sequences, "
        f"{model.oracle.n_features} weights ({job.seconds:.2f} s)"
    )
    with job.warnings():
        run = model.train(references, solver, monitor=job.bar(solver))
    model.save(model_path)
    if matrix:
        with writing(matrix) as stream:
            stream.write(matrix_text(model))
    job.say(model.result.certificate())
    if plot:
        picture(model, plot, say=job.say)
    return job.end(model_path, passes_if_interrupted(run))


def predict(model_path: str, path: str | os.PathLike[str], output: Any, kbest: int | None, jobs: Any) -> None:
    """Write the alignments of the input's pairs as A2M; with `kbest` the best ones of each with their scores."""
    model = AlignmentModel.load(model_path)
    file = read(path)
    with writing(output) as stream:
        if kbest is None:
            write_alignments(stream, file.names, model.align(file.pairs, jobs))
            return
        for name, pair in zip(file.names, file.pairs, strict=True):
            for rank, (rows, score) in enumerate(model.align_kbest(pair, kbest), start=1):
                write_alignments(stream, [f"{name} rank={rank} score={score:.6f}"], [rows])


def evaluate(model_path: str, path: str | os.PathLike[str], as_json: bool, jobs: Any, plot: Any) -> None:
    """Print how many aligned pairs are right, and how often the homologue is chosen."""
    if plot:
        raise ValueError("--plot draws a confusion matrix, which alignments have none of")
    model = AlignmentModel.load(model_path)
    file = read(path)
    file.check_aligned(path)
    scores = alignment_scores(file.rows, model.align(file.pairs, jobs))
    decoys = file.decoys if file.has_decoys else stand_ins(file.pairs)
    error = None
    if all(decoys):
        candidates = [[z, *others] for (_, z), others in zip(file.pairs, decoys, strict=True)]
        found = model.scores([x for x, _ in file.pairs], candidates, jobs)
        error = homologue_error([s[0] for s in found], [s[1:] for s in found])
    results = {"error": error, **scores._asdict(), "n_pairs": len(file.pairs), "own_decoys": file.has_decoys}
    if as_json:
        click.echo(json.dumps(results))
        return
    click.echo(
        f"{len(file.pairs)} pairs; aligned letters: precision {scores.pair_precision:.4f}, "
        f"recall {scores.pair_recall:.4f}, F1 {scores.pair_f1:.4f}"
    )
    click.echo(f"Q {scores.q:.4f}, all columns right {scores.total_column:.4f}")
    if error is not None:
        whose = "decoys" if file.has_decoys else "homologues of other examples"
        click.echo(f"homologue not chosen among its {whose}: {error:.4f}")


def inspect(model_path: str, top: Any, only: Any, plot: Any) -> None:
    """Print what the model is, and its costs."""
    drawable(plot)
    if only:
        raise ValueError("--label is for models of labels; this one aligns sequences")
    model = AlignmentModel.load(model_path)
    oracle = model.oracle
    click.echo(f"task: alignment, {oracle.mode}, {oracle.gaps} gaps, {oracle.n_features} weights")
    given = {k: v for k, v in model.params.items() if k not in DEFAULTS or v != DEFAULTS[k]}
    click.echo("parameters: " + (", ".join(f"{k}={v!r}" for k, v in given.items()) or "defaults"))
    if model.result is not None:
        click.echo(model.result.certificate())
    click.echo(f"gap: open {model.gap_open:+.4f}, extend {model.gap_extend:+.4f}")
    matrix = model.substitution_matrix
    a, b = np.triu_indices(len(matrix.alphabet)) if oracle.symmetric else np.indices(matrix.shape).reshape(2, -1)
    values = matrix.values[a, b]
    for sign in (1.0, -1.0):
        best = np.argsort(-sign * values, kind="stable")[:top]
        pairs = (f"{matrix.alphabet[a[k]]}{matrix.alphabet[b[k]]} {values[k]:+.3f}" for k in best)
        click.echo(("highest: " if sign > 0.0 else "lowest:  ") + "  ".join(pairs))
    click.echo(matrix_text(model))
    if plot:
        picture(model, plot)


def demo(output: Any, seed: Any) -> None:
    """Learn costs from simulated homologues and decoys, compare with plain ones, draw the matrix."""
    from structsvm.datasets import make_alignment

    drawable(output)
    click.echo("simulating 40 sequences with a homologue and decoys each, and 100 to test on")
    data, test = make_alignment(40, random_state=seed), make_alignment(100, random_state=seed + 1)
    settings = SimpleNamespace(**DEFAULTS | {"random_state": seed, "mode": "local", "C": 1.0, "tol": 0.01})
    model = AlignmentModel.of(settings)
    solver = make_solver(settings, DEFAULT_C)
    run = model.train(model.references(data.X, data.y, data.decoys), solver, monitor=Bar(solver.n_passes))
    found = model.scores([x for x, _ in test.X], [[z, *d] for (_, z), d in zip(test.X, test.decoys, strict=True)])
    error = homologue_error([s[0] for s in found], [s[1:] for s in found])
    click.echo(f"homologue not chosen: {error:.3f} of the test examples")
    click.echo(f"gap: open {model.gap_open:+.4f}, extend {model.gap_extend:+.4f}")
    click.echo(model.result.certificate())
    picture(model, output)
    if run.status == "interrupted":
        raise KeyboardInterrupt


def read(path: str | os.PathLike[str]) -> Any:
    """Read a FASTA file; "-" is standard input."""
    try:
        return read_alignments(sys.stdin if path == "-" else path)
    except ImportError as error:
        raise OSError(str(error)) from error


def stand_ins(X: Any) -> list[Any]:
    """For each example homologues of others, spread evenly over the file, in place of decoys."""
    n = len(X)
    steps = sorted({t * n // (N_STAND_INS + 1) for t in range(1, N_STAND_INS + 1)} - {0})
    return [[X[(k + step) % n][1] for step in steps if X[(k + step) % n][1] not in X[k]] for k in range(n)]


def matrix_text(model: Any) -> Any:
    """The learnt matrix in NCBI's text form."""
    gaps = f"gap open {model.gap_open:.6g}, gap extend {model.gap_extend:.6g} (the first, each further letter of a gap)"
    return model.substitution_matrix.to_ncbi(comments=["Substitution scores learnt by structsvm", gaps])


def picture(model: Any, output: Any, *, say: Any = click.echo) -> None:
    """Save the training history and the matrix."""
    from structsvm.plotting import HistoryDisplay, SubstitutionDisplay

    figure = blank(14, 6)
    grid = figure.add_gridspec(1, 2, width_ratios=[0.8, 1])
    halves = grid[0].subgridspec(2, 1, height_ratios=(3, 2))
    objectives = figure.add_subplot(halves[0])
    HistoryDisplay(model.result.history).plot(ax=(objectives, figure.add_subplot(halves[1], sharex=objectives)))
    SubstitutionDisplay(model.substitution_matrix).plot(ax=figure.add_subplot(grid[1]))
    save(figure, output, say=say)


@training(DEFAULT_C)
@click.option("--mode", type=click.Choice(["semi_global", "global", "local"]), default="semi_global", show_default=True)
@click.option("--gaps", type=click.Choice(["affine", "linear"]), default="affine", show_default=True)
@click.option("--symmetric/--asymmetric", default=True, show_default=True, help="One weight for (a, b) and (b, a).")
@click.option("--letter-gaps", is_flag=True, help="Gaps also weigh by the letter that stands against them.")
@click.option("--classes", type=click.Choice(["hydrophobicity"]), help="Position features.")
@click.option("--alphabet", default="protein", show_default=True, help="protein, dna, or all letters.")
@click.option("--band", type=click.IntRange(0), help="Search only so far from the diagonal.")
@click.option("--loss", type=click.Choice(["q", "zero_one"]), default="q", show_default=True)
@click.option("--window", type=click.IntRange(0), default=0, show_default=True, help="How far off a pair may be.")
@click.option("--prior", help="Matrix to start from and stay close to: a file in NCBI's text form, or BLOSUM62, ...")
@click.option("--prior-gap-open", type=float, default=-11.0, show_default=True)
@click.option("--prior-gap-extend", type=float, default=-1.0, show_default=True)
@click.option("--decoys/--no-decoys", default=None, help="Learn from decoys.  [default: if all examples have some]")
@click.option("--plot", type=click.Path(dir_okay=False), help="Save training history and matrix as a picture.")
@click.option("--matrix", type=click.Path(dir_okay=False), help="Write the learnt matrix in NCBI's text form.")
def command(train_file: Any, model: Any, decoys: Any, plot: Any, matrix: Any, quiet: bool, **params: Any) -> None:
    """Learn alignment costs from a FASTA or A2M file of aligned pairs.

    Two records an example, with gaps; records with the same first word that follow are its decoys. Files that end in
    .gz, .xz or .bz2 are read as they are.
    """
    sys.exit(train(train_file, model, params, decoys, plot, matrix, quiet))
