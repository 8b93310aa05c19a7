"""sklearn-crfsuite's package: ``sys.modules["sklearn_crfsuite"] = structsvm.interop.sklearn_crfsuite``."""

import os

from structsvm.interop.sklearn_crfsuite import metrics
from structsvm.interop.sklearn_crfsuite.crf import CRF

__all__ = ["CRF", "metrics"]

# An editable install's path, of a kind of its own, finds submodules by this package's full name only.
__path__ = [os.path.dirname(__file__)]
