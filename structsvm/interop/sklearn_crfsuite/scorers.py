"""Scorers under sklearn-crfsuite's names, for scikit-learn's searches."""

from sklearn.metrics import make_scorer

from structsvm.interop.sklearn_crfsuite.metrics import flat_accuracy_score, sequence_accuracy_score

__all__ = ["flat_accuracy", "sequence_accuracy"]

flat_accuracy = make_scorer(flat_accuracy_score)
sequence_accuracy = make_scorer(sequence_accuracy_score)
