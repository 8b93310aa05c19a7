"""
How do I train a tagger, and see what it learnt?
================================================

Label sequences, from training to pictures.

On simulated chunks.

Shows a progress bar, the certificate, chunk scores as conlleval counts them, constraints, the best labellings
of a sentence, the tokens that the model is least sure of, a model file, and plots.

Run it: python examples/label_sequences.py [FOLDER]   (files go to FOLDER, or to a temporary one)
"""

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

import structsvm
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.metrics import chunk_f1, chunk_scores
from structsvm.plotting import ConfusionDisplay, FeatureDisplay, HistoryDisplay, TransitionDisplay
from structsvm.tasks import SequenceLabeler


def main(folder):
    mpl.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    X, y = make_sequences(600, random_state=0)
    X_test, y_test = make_sequences(300, random_state=1)
    train, test = Columns.from_sequences(X), Columns.from_sequences(X_test)
    labeler = SequenceLabeler(C=0.1, constraints="bio", tol=0.1, verbose=True, random_state=0).fit(train, y)
    print(labeler.result_.certificate())
    print(chunk_scores(y_test, labeler.predict(test)).report())

    free = SequenceLabeler(C=0.1, tol=0.1, random_state=0).fit(train, y)
    print(f"F1 without constraints: {100.0 * chunk_f1(y_test, free.predict(test)):.2f}")
    print("the best labellings of a sentence:")
    i = next(i for i, sentence in enumerate(X_test) if 6 <= len(sentence) <= 8)
    for labels, score in labeler.predict_kbest(test[i : i + 1], 3)[0]:
        print(f"  {score:8.3f}  {' '.join(labels)}")
    margins = [-np.sort(costs, axis=1)[:, -2] for costs in labeler.decision_function(test)]
    right = [np.array(a) == np.array(b) for a, b in zip(y_test, labeler.predict(test), strict=True)]
    right = np.concatenate(right)[np.argsort(np.concatenate(margins))]
    least, others = np.split(right, [len(right) // 10])
    print(f"right: {100.0 * least.mean():.1f} % of the tokens with the least margins, a tenth of all;")
    print(f"{100.0 * others.mean():.1f} % of the others")

    labeler.save(folder / "chunk.model")
    same = structsvm.load(folder / "chunk.model").predict(test) == labeler.predict(test)
    print(f"the model read from its file predicts the same: {same}")
    HistoryDisplay.from_estimator(labeler).figure_.savefig(folder / "history.png")
    TransitionDisplay.from_estimator(labeler).figure_.savefig(folder / "transitions.png")
    ConfusionDisplay.from_estimator(labeler, test, y_test).figure_.savefig(folder / "confusion.png")
    FeatureDisplay.from_estimator(labeler, "B-NP").figure_.savefig(folder / "features.png")
    print(f"in {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
