"""Probabilities as they come, beside CRFsuite's marginals and scikit-learn's: reliability diagrams."""

from __future__ import annotations

import io
import warnings
from itertools import chain

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from common.measure import Clock
from common.report import Table, notes, verdict
from defaults import sequences, taxonomies
from structsvm.metrics import CalibrationScores, calibration_scores
from structsvm.plotting import CalibrationDisplay
from structsvm.tasks import SequenceLabeler, TaxonomyClassifier
from taxonomy.data import splits

BINS = 15
SEQUENCES = ("Spanish entities, dicts, 1000 sentences: chunk F1", "OCR, one fold: token accuracy")
CLASSES = (("CLINC150", "words"), ("ImCLEF07A", "80 bins"))
COLUMNS = {
    "method": ("method", ""),
    "setting": ("setting", ""),
    "accuracy": ("accuracy %", ".2f"),
    "log_loss": ("log loss", ".4f"),
    "error": ("calibration error %", ".2f"),
    "confidence": ("mean probability %", ".2f"),
    "cpu": ("CPU s", ".2f"),
}
NOTES = f"""
structsvm: as it comes, without a parameter but random_state=0 (and probability=True), its choice of C included in the
CPU seconds; the others: the best setting of their grid by the score of the part "sequences" or "taxonomies", one
training

accuracy, log loss: of tokens or documents of the test part; a probability below 1e-6 counts as that

calibration error: predictions by their probability in {BINS} bins of equal size, the mean distance of its mean and the
accuracy (expected calibration error). The bins are in defaults.json, and drawn in defaults_calibration.png

CRFsuite: its own marginals, of the labels of its best path; calibrated LinearSVC: CalibratedClassifierCV, 5 folds, in
one model (ensemble=False), one sigmoid per class or one temperature
"""


def run(options):
    tables = {table.title: table for table in options.kept.tables(options.part)}
    for make in (of_sequences, of_classes):
        for table in make(options):
            tables[table.title] = table
            yield table
    draw(list(tables.values()), io.BytesIO() if options.quick else options.output / "defaults_calibration.png")


def best(options, part, title, method, grid):
    """The setting of a grid that a part of these results has chosen."""
    tables = {table.title: table for table in options.kept.tables(part)}
    (row,) = (row for row in tables[title].rows if row["method"] == method)
    return grid[int(np.argmax(row["grid"]))]


def of_sequences(options):
    for title in SEQUENCES:
        if options.only not in title:
            continue
        (X, y), (X_test, y_test) = sequences.SETS[title.rpartition(":")[0]]()
        if options.quick:
            X, y = X[:100], y[:100]
        known = best(options, "sequences", title, "CRFsuite, lbfgs", sequences.GRIDS["lbfgs"])
        with Clock() as clock:
            tagger = sequences.tagger_of(X, y, "lbfgs", known)
        peer = of_tagger(tagger, X_test, y_test) | {"method": "CRFsuite, lbfgs", "setting": text(known)}
        rows = [
            *(labeler(X, y, X_test, y_test, loss) for loss in ("auto", "hamming", "log")),
            peer | {"cpu": clock.cpu},
        ]
        yield made(title, rows)


def labeler(X, y, X_test, y_test, loss):
    with Clock() as clock:
        model = SequenceLabeler(loss=loss, random_state=0).fit(X, y)
    rows, at = model.predict_marginals(X_test), {label: k for k, label in enumerate(model.classes_.tolist())}
    found = scores(np.concatenate(rows), at, chain(*model.predict(X_test)), chain(*y_test))
    name = "structsvm" + f', loss="{loss}"' * (loss != "auto")
    return found | {"method": name, "setting": f"C {model.C_:g}", "cpu": clock.cpu}


def of_tagger(tagger, X, y):
    labels, rows, predicted = tagger.labels(), [], []
    for sentence in map(sequences.named, X):
        predicted += tagger.tag(sentence)
        rows += [[tagger.marginal(label, t) for label in labels] for t in range(len(sentence))]
    return scores(np.array(rows), {label: k for k, label in enumerate(labels)}, predicted, chain(*y))


def of_classes(options):
    for name, kind in CLASSES:
        title = f"{name}, {kind}: accuracy"
        if options.only not in title:
            continue
        train, test = splits(name)
        if options.quick:
            train, test = train.take(np.arange(0, len(train.y), 10)), test.take(np.arange(0, len(test.y), 5))
        X, X_test = taxonomies.matrices(train, test, kind)
        grid = taxonomies.DENSE if isinstance(X, np.ndarray) else taxonomies.GRID
        linear, logistic = (best(options, "taxonomies", title, m, grid) for m in ("LinearSVC", "LogisticRegression"))
        machine = LinearSVC(C=linear["C"], random_state=0)
        models = {
            "structsvm": TaxonomyClassifier(taxonomy=train.taxonomy, random_state=0),
            'structsvm, loss="log"': TaxonomyClassifier(taxonomy=train.taxonomy, loss="log", random_state=0),
            "LinearSVC, sigmoids": CalibratedClassifierCV(machine, ensemble=False),
            "LinearSVC, temperature": CalibratedClassifierCV(machine, method="temperature", ensemble=False),
            "LogisticRegression": LogisticRegression(C=logistic["C"], max_iter=taxonomies.PASSES),
        }
        rows = []
        for method, model in models.items():
            with warnings.catch_warnings(), Clock() as clock:
                warnings.simplefilter("ignore", (ConvergenceWarning, FutureWarning, UserWarning))
                model.fit(X, train.y)
            p, at = model.predict_proba(X_test), {label: k for k, label in enumerate(model.classes_.tolist())}
            found = scores(p, at, model.classes_[p.argmax(axis=1)], test.y)
            setting = {"C": model.C_} if method.startswith("structsvm") else linear if "SVC" in method else logistic
            rows.append(found | {"method": method, "setting": text(setting), "cpu": clock.cpu})
        yield made(title, rows)


def text(setting):
    return ", ".join(f"{name} {value:g}" for name, value in setting.items())


def scores(p, at, predicted, y):
    """Scores of probabilities (n, n_classes), whose columns are `at`, by predictions and true labels."""
    y, predicted = list(y), list(predicted)
    sure = np.minimum(p[np.arange(len(p)), [at[label] for label in predicted]], 1.0)
    right = np.array([a == b for a, b in zip(predicted, y, strict=True)])
    of_true = np.array([row[at[label]] if label in at else 0.0 for row, label in zip(p, y, strict=True)])
    found = calibration_scores(sure, right, n_bins=BINS)
    return {
        "accuracy": 100.0 * right.mean(),
        "log_loss": float(-np.log(np.maximum(of_true, 1e-6)).mean()),
        "error": 100.0 * found.error,
        "confidence": 100.0 * float(sure.mean()),
        "bins": [found.confidence.tolist(), found.accuracy.tolist(), found.counts.tolist()],
    }


def made(title, rows):
    """The table, with the targets for the estimator as it comes."""
    ours, others = rows[0], [row for row in rows if not row["method"].startswith("structsvm")]
    table = Table(f"{title.rpartition(':')[0]}: probabilities", COLUMNS, rows, notes(NOTES))
    for what, key in (("log loss", "log_loss"), ("calibration error", "error")):
        peer = min(others, key=lambda row: row[key])
        both = f"{ours[key]:.4g}, {peer['method']} {peer[key]:.4g}"
        table.notes.append(verdict(f"{what} no higher than the others' least", both, ours[key] <= peer[key]))
    return table


def draw(tables, where):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 9.0), layout="constrained")
    for ax, table in zip(figure.subplots(2, 2).flat, tables, strict=False):
        for row in table.rows:
            scores = CalibrationScores(row["error"] / 100.0, *map(np.array, row["bins"]))
            CalibrationDisplay(scores, row["method"]).plot(ax, linewidth=1.0)
        ax.set_title(table.title.partition(":")[0])
    figure.savefig(where, dpi=100, format="png")
