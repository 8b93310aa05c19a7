"""Structure-based alignments of real proteins: published, counted and learnt costs."""

from __future__ import annotations

import time
import warnings

import numpy as np

from common.report import Table, notes
from structsvm.datasets import fetch_oxbench, fetch_prefab
from structsvm.metrics import alignment_scores, homologue_error
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.model import log_odds_matrix

GRID = (0.0003, 0.003)
NEAR_GRID = (0.03, 0.3)  # around a prior, whose scores are many times larger
# Parameters that the aligner chooses by itself (benchmarks/defaults.py) are given here.
GIVEN = {"mode": "semi_global", "prior": None, "random_state": 0}
NEAR = {"prior": ("BLOSUM62", -11.0, -1.0)}
LEARNERS = {
    "LaRank": {"solver": "larank", "max_iter": 6},
    "CuttingPlane": {"solver": "cutting_plane", "max_iter": 40, "tol": 0.05},
    "FrankWolfe": {"solver": "frank_wolfe", "max_iter": 6},
    "LaRank, around BLOSUM62": {"solver": "larank", "max_iter": 6, **NEAR},
    "LaRank, with hydrophobicity": {"solver": "larank", "max_iter": 6, "classes": "hydrophobicity"},
    "LaRank, with gaps by letter": {"solver": "larank", "max_iter": 6, "letter_gaps": True},
    "LaRank, zero-one loss": {"solver": "larank", "max_iter": 6, "loss": "zero_one"},
    "Perceptron, averaged": {"solver": "perceptron", "max_iter": 6},
}
COLUMNS = {
    "name": ("costs", ""),
    "chosen": ("chosen on the validation part", ""),
    "valid": ("valid Q", ".4f"),
    "q": ("test Q", ""),
    "difference": ("minus BLOSUM62's", ""),
    "f1": ("test pair F1", ".4f"),
    "columns": ("all columns", ".3f"),
    "error": ("decoy error", ""),
    "gap": ("gap (primal - dual) / primal", ".3f"),
    "cpu": ("CPU s a training", ".2f"),
}


def run(options):
    for name, fetch in (("PREFAB 4.0", fetch_prefab), ("OXBench", fetch_oxbench)):
        data = fetch()
        n = 100 if options.quick else None
        train = (data.X_train[:n], data.y_train[:n])
        rows = []
        base = None
        for row, model in candidates(train, data, options.quick):
            q, _ = measure(model, data, n, row)
            base = q if base is None else base
            difference = q - base
            row["difference"] = f"{difference.mean():+.4f} ± {standard_error(difference):.4f}"
            rows.append(row)
        title = f"{name}: {len(train[0])} pairs to train on, {len(q)} to test on, semi-global alignments"
        yield Table(title, COLUMNS, rows, notes(NOTES))


def candidates(train, data, quick):
    """Yield ``(row, model)``: published costs, counted ones, and learnt ones."""
    yield choose("BLOSUM62", {"-11, -1": lambda: SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0)}, data)
    counted = log_odds_matrix(train[1])
    paper = {"gap -0.2": lambda: SequenceAligner.from_costs(counted, -0.2)}
    yield choose("generative, the paper's gap", paper, data)
    affine = {
        f"gaps {o}, {e}": lambda o=o, e=e: SequenceAligner.from_costs(counted, o, e)
        for o in (-2.0, -3.0, -4.0, -6.0)
        for e in (-0.1, -0.3, -0.6)
    }
    yield choose("generative, affine gaps", affine, data)
    for name, settings in LEARNERS.items():
        grid = NEAR_GRID if "prior" in settings else GRID
        grid = grid[:1] if quick else grid
        settings = GIVEN | settings
        if settings["solver"] == "perceptron":
            trained = {"": lambda settings=settings: SequenceAligner(C=None, **settings).fit(*train)}
        else:
            trained = {
                f"C = {C}": lambda C=C, settings=settings: SequenceAligner(C=C, **settings).fit(*train) for C in grid
            }
        yield choose(name, trained, data)


def choose(name, makers, data):
    """The model with the highest Q on the validation part."""
    best, row = None, {"name": name}
    seconds = 0.0
    for setting, make in makers.items():
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a gap above `tol` is in the table
            model = make()
        seconds += time.process_time() - begin
        valid = model.score(data.X_valid, data.y_valid)
        if best is None or valid > row["valid"]:
            best = model
            row |= {
                "chosen": setting,
                "valid": valid,
                "gap": getattr(model, "result_", None) and model.result_.relative_gap,
            }
    return row | {"cpu": seconds / len(makers) if getattr(best, "result_", None) else None}, best


def measure(model, data, n, row):
    X, y, decoys = data.X_test[:n], data.y_test[:n], data.decoys_test[:n]
    predicted = model.predict(X)
    q = np.array([alignment_scores([a], [b]).q for a, b in zip(y, predicted, strict=True)])
    scores = model.decision_function([x for x, _ in X], [[z, *d] for (_, z), d in zip(X, decoys, strict=True)])
    wrong = np.array([homologue_error([s[0]], [s[1:]]) for s in scores])
    total = alignment_scores(y, predicted)
    row |= {"q": f"{q.mean():.4f} ± {standard_error(q):.4f}", "f1": total.pair_f1, "columns": total.total_column}
    row["error"] = f"{wrong.mean():.3f} ± {standard_error(wrong):.3f}"
    return q, wrong


def standard_error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


NOTES = """
Q: share of the reference's core pairs found, mean over the pairs; ± is the standard error of the mean over the test
pairs, for differences that of the paired differences.

Decoy error: the homologue does not score more than its 10 decoys, proteins without detectable relation. The costs are
learnt from alignments alone, not from decoys.

C maps to SVMstruct's as C times the number of pairs. CPU: the mean over the settings that were tried.
"""
