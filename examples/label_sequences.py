"""
How do I train a tagger, and see what it learnt?
================================================

Label sequences, from training to pictures.

On simulated addresses.

Shows a progress bar, the certificate, chunk scores as conlleval counts them, constraints, the best labellings
of an address, the tokens that the model is least sure of, a model file, and plots.

Run it: python examples/label_sequences.py [FOLDER]   (files go to FOLDER, or to a temporary one)
"""

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

import structsvm
from structsvm.datasets import make_addresses
from structsvm.metrics import chunk_f1, chunk_scores
from structsvm.plotting import ConfusionDisplay, FeatureDisplay, HistoryDisplay, TransitionDisplay
from structsvm.tasks import SequenceLabeler


def in_bio(fields):
    """Labels of a scheme: B- begins a field, I- goes on with it."""
    return [f"{'I' if before == field else 'B'}-{field}" for before, field in zip([None, *fields], fields)]


def main(folder):
    mpl.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    X, y = make_addresses(300, ambiguity=0.8, typos=0.1, random_state=0)
    X_test, y_test = make_addresses(300, ambiguity=0.8, typos=0.1, random_state=1)
    y, y_test = [in_bio(fields) for fields in y], [in_bio(fields) for fields in y_test]
    labeler = SequenceLabeler(C=0.1, constraints="bio", tol=0.1, verbose=True, random_state=0).fit(X, y)
    print(labeler.result_.certificate())
    print(chunk_scores(y_test, labeler.predict(X_test)).report())

    free = SequenceLabeler(C=0.1, tol=0.1, random_state=0).fit(X, y)
    print(f"F1 without constraints: {100.0 * chunk_f1(y_test, free.predict(X_test)):.2f}")
    words = ["Salem", "Lincoln", "Washington", "OH"]
    print(f"the best labellings of {' '.join(words)}:")
    for labels, score in labeler.predict_kbest([words], 3)[0]:
        print(f"  {score:8.3f}  {' '.join(labels)}")
    margins = [-np.sort(costs, axis=1)[:, -2] for costs in labeler.decision_function(X_test)]
    right = [np.array(a) == np.array(b) for a, b in zip(y_test, labeler.predict(X_test), strict=True)]
    right = np.concatenate(right)[np.argsort(np.concatenate(margins))]
    least, others = np.split(right, [len(right) // 10])
    print(f"right: {100.0 * least.mean():.1f} % of the tokens with the least margins, a tenth of all;")
    print(f"{100.0 * others.mean():.1f} % of the others")

    labeler.save(folder / "address.model")
    same = structsvm.load(folder / "address.model").predict(X_test) == labeler.predict(X_test)
    print(f"the model read from its file predicts the same: {same}")
    HistoryDisplay.from_estimator(labeler).figure_.savefig(folder / "history.png")
    TransitionDisplay.from_estimator(labeler).figure_.savefig(folder / "transitions.png")
    ConfusionDisplay.from_estimator(labeler, X_test, y_test).figure_.savefig(folder / "confusion.png")
    FeatureDisplay.from_estimator(labeler, "B-street").figure_.savefig(folder / "features.png")
    print(f"in {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
