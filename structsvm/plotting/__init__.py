"""Pictures of training runs, models and errors, as scikit-learn style display objects.

Each display stores its data, draws with ``plot(ax=None)``, and then has the axes as ``ax_`` and the figure as
``figure_``. Matplotlib (the extra ``structured-svm[plot]``) is imported when something is drawn. Colours are safe for
colour-blind readers: Okabe and Ito's for lines and bars, one hue of decreasing lightness for quantities, ``PuOr`` for
signed weights.
"""

from structsvm.plotting._alignments import AlignmentDisplay
from structsvm.plotting._calibration import CalibrationDisplay
from structsvm.plotting._confusions import ConfusionDisplay
from structsvm.plotting._dependencies import DependencyDisplay
from structsvm.plotting._features import FeatureDisplay
from structsvm.plotting._history import HistoryComparison, HistoryDisplay
from structsvm.plotting._matchings import MatchingDisplay
from structsvm.plotting._risk import RiskCoverageDisplay
from structsvm.plotting._substitutions import SubstitutionDisplay
from structsvm.plotting._taxonomies import TaxonomyDisplay
from structsvm.plotting._transitions import TransitionDisplay
from structsvm.plotting._trees import TreeDisplay

__all__ = [
    "AlignmentDisplay",
    "CalibrationDisplay",
    "ConfusionDisplay",
    "DependencyDisplay",
    "FeatureDisplay",
    "HistoryComparison",
    "HistoryDisplay",
    "MatchingDisplay",
    "RiskCoverageDisplay",
    "SubstitutionDisplay",
    "TaxonomyDisplay",
    "TransitionDisplay",
    "TreeDisplay",
]
