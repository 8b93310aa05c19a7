"""sklearn-crfsuite's package: ``sys.modules["sklearn_crfsuite"] = structsvm.interop.sklearn_crfsuite``."""

from structsvm.interop.sklearn_crfsuite import metrics
from structsvm.interop.sklearn_crfsuite.crf import CRF

__all__ = ["CRF", "metrics"]
