"""sklearn-crfsuite's place of the estimator, by which pickles name it."""

from structsvm.interop.sklearn_crfsuite.crf import CRF

__all__ = ["CRF"]
