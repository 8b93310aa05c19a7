"""Figures 5.3 to 5.6 of the thesis: scaling beside a batch solver, sparsity, reprocessing, the order of the chain."""

from __future__ import annotations

import io

import numpy as np

from common.pictures import Panel, draw, lines_of
from common.report import Table, notes
from sequence.data import SEED, C, StopAtGap, text_task, train
from sequence.scaling import exponent, part
from sequence.tables import SETTINGS, ocr_folds
from structsvm import CuttingPlane, LaRank

SIZES, QUICK_SIZES = (1 / 64, 1 / 16, 1 / 4), (1 / 256, 1 / 64)
SMALLER, QUICK_SMALLER = 64, 1  # times, for algorithm 1 as written
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
N_REPROCESS, ORDERS, FOLDS = (0, 1, 2, 5, 10, 20), (1, 2, 3, 5, 10, 15), 3
INFERENCES = {"LaRankGreedy": "greedy", "LaRankExact": "exact"}
AS_WRITTEN = "CuttingPlane, as written"
PICTURE = "sequence_curves.png"


def run(options):
    chunks = text_task("CoNLL-2000", "crf++", 3, share=0.1 if options.quick else 1.0)
    folds = ocr_folds()[: 1 if options.quick else FOLDS]
    tables = []
    for table in (
        scaling(chunks, *((QUICK_SIZES, QUICK_SMALLER) if options.quick else (SIZES, SMALLER))),
        sparsity(chunks),
        reprocessing(folds),
        orders(folds),
    ):
        tables.append(table)
        yield table
    draw(panels(*tables), 3, io.BytesIO() if options.quick else options.output / PICTURE)


def larank(n_reprocess):
    return LaRank(C=C, schedule="fixed", n_reprocess=n_reprocess, average=False, max_iter=1, random_state=SEED)


def scaling(task, sizes, smaller):
    """Figure 5.3: CPU seconds of a pass, and of a batch solver to the thesis's gap."""
    solvers = {name: (inference, larank(1), None) for name, inference in INFERENCES.items()}
    common = {"C": C, "tol": 1e-12, "max_iter": 10**4, "random_state": SEED}
    batch, written = CuttingPlane(**common), CuttingPlane(**common, optimize="constraint", qp_tol=1e-3)
    solvers |= {"CuttingPlane": ("exact", batch, StopAtGap()), AS_WRITTEN: ("exact", written, StopAtGap())}
    rows = []
    for name, (inference, solver, monitor) in solvers.items():
        for size in sizes:
            some = part(task, size / smaller if name == AS_WRITTEN else size)
            done = train(some.oracle(inference), some.train, some.label_ids, solver, monitor)
            row = {"machine": name, "tokens": some.train.n_tokens, "cpu": done.cpu}
            rows.append(row | {"calls": done.run.result().n_argmax})
        for key in ("cpu", "calls"):
            rows[-1][f"{key}_exponent"] = exponent(sizes, [row[key] for row in rows[-len(sizes) :]])
    columns = {"machine": ("machine", ""), "tokens": ("tokens", ",d"), "cpu": ("CPU s", ".3f")}
    columns |= {"cpu_exponent": ("exponent", ".2f"), "calls": ("arg max calls", ",d")}
    columns |= {"calls_exponent": ("of arg max calls", ".2f")}
    about = """First sentences of CoNLL-2000. LaRank: one pass, n_R = 1. CuttingPlane: exact
    inference, until primal - dual < C, by rounds; as written: the dual is optimised over all working sets after each
    constraint (algorithm 1 of the SVMstruct paper). Exponents: slopes of the logarithms, 1: linear.

    The finding of the thesis: LaRank scales linearly, SVMstruct does not."""
    return Table("Scaling beside a batch solver (thesis, figure 5.3)", columns, rows, notes(about))


def sparsity(task):
    """Figure 5.4: what a pass keeps of the examples that it has seen."""
    rows = []
    for name, inference in INFERENCES.items():
        setting = SETTINGS["CoNLL-2000"]
        solver = larank(setting.greedy_n_reprocess if inference == "greedy" else setting.exact_n_reprocess)
        for share in SHARES:
            some = part(task, share)
            state = train(some.oracle(inference), some.train, some.label_ids, solver).run.state
            arrays = state.get_state()
            vectors = arrays["cut_example"][arrays["cut_numbers"][:, 0] > 0.0]
            patterns = len(np.unique(vectors))
            row = {"machine": name, "sentences": len(some.train), "examples": state.n_samples, "patterns": patterns}
            per_cent, each = 100.0 * patterns / state.n_samples, len(vectors) / patterns
            rows.append(row | {"share": per_cent, "vectors": len(vectors), "each": each})
    columns = {"machine": ("machine", ""), "sentences": ("sentences seen", ",d"), "examples": ("examples", ",d")}
    columns |= {"patterns": ("support patterns", ",d"), "share": ("of the examples, %", ".1f")}
    columns |= {"vectors": ("support vectors", ",d"), "each": ("per pattern", ".2f")}
    about = """One pass over the first sentences of CoNLL-2000, n_R of table 5.4. An example is a sentence, with greedy
    inference a token; a support vector is a wrong output with a multiplier above 0.

    The finding of the thesis: LaRankExact keeps a large share of its examples, LaRankGreedy a small one, and
    LaRankExact has more support vectors per pattern."""
    return Table("Sparsity (thesis, figure 5.4)", columns, rows, notes(about))


def accuracy(folds, inference, n_reprocess, order=None):
    """Mean test accuracy in %, and CPU seconds, of a pass."""
    found = []
    for fold in folds:
        oracle = fold.oracle(inference, order)
        done = train(oracle, fold.train, fold.label_ids, larank(n_reprocess))
        found.append((100.0 * fold.score(oracle, done.run.weights)["accuracy"], done.cpu))
    return dict(zip(("accuracy", "cpu"), np.mean(found, axis=0).tolist(), strict=True))


def reprocessing(folds):
    """Figure 5.5: the gain over the passive-aggressive pass."""
    rows = []
    for name, inference in INFERENCES.items():
        order = SETTINGS["OCR"].greedy_order if inference == "greedy" else None
        for n in N_REPROCESS:
            rows.append({"machine": name, "n": n} | accuracy(folds, inference, n, order))
            rows[-1]["gain"] = rows[-1]["accuracy"] - rows[-1 - N_REPROCESS.index(n)]["accuracy"]
    columns = {"machine": ("machine", ""), "n": ("n_R", "d"), "accuracy": ("accuracy %", ".2f")}
    columns |= {"gain": ("gain", ".2f"), "cpu": ("CPU s", ".3f")}
    about = f"""OCR, one pass, means of {len(folds)} folds; n_R = 0 is passive-aggressive.

    The finding of the thesis: LaRankExact needs more reprocessing (10) than LaRankGreedy (5) to come to its best."""
    return Table("Gain by n_R (thesis, figure 5.5)", columns, rows, notes(about))


def orders(folds):
    """Figure 5.6: accuracy by the length of the Markov interaction."""
    setting, rows = SETTINGS["OCR"], []
    for order in ORDERS:
        found = accuracy(folds, "greedy", setting.greedy_n_reprocess, order)
        rows.append({"machine": "LaRankGreedy", "order": order} | found)
    exact = {"machine": "LaRankExact"} | accuracy(folds, "exact", setting.exact_n_reprocess)
    rows += [exact | {"order": order} for order in (ORDERS[0], ORDERS[-1])]
    columns = {"machine": ("machine", ""), "order": ("order k", "d"), "accuracy": ("accuracy %", ".2f")}
    columns |= {"cpu": ("CPU s", ".3f")}
    about = f"""OCR, one pass, n_R of table 5.4, means of {len(folds)} folds. LaRankExact has order 1 throughout.

    The finding of the thesis: greedy inference makes up for its loss by orders above 1, and ends above exact."""
    return Table("Accuracy by Markov order (thesis, figure 5.6)", columns, rows, notes(about))


def panels(scaling, sparsity, reprocessing, orders):
    log = {"xscale": "log"}
    times = lines_of(scaling.rows, "machine", "tokens", "cpu")
    times = {name: ([x / xs[0] for x in xs], [y / ys[0] for y in ys]) for name, (xs, ys) in times.items()}
    both = log | {"yscale": "log"}
    found = [Panel("5.3: CoNLL-2000", "times the tokens", "times the CPU time", times, axes=both)]
    for key, label in (("share", "support patterns, % of examples"), ("each", "support vectors per pattern")):
        lines = lines_of(sparsity.rows, "machine", "sentences", key)
        found.append(Panel("5.4: CoNLL-2000", "sentences seen", label, lines, axes=log))
    gains = lines_of(reprocessing.rows, "machine", "n", "gain")
    found.append(Panel("5.5: OCR", "n_R", "gain in accuracy (%)", gains))
    lines = lines_of(orders.rows, "machine", "order", "accuracy")
    return [*found, Panel("5.6: OCR", "order of the chain", "test accuracy (%)", lines)]
