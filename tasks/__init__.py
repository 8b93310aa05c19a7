"""Estimators for tasks: an oracle, features and metrics behind `fit` and `predict`.

Names are imported when they are first used.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "CrammerSingerClassifier": "structsvm.tasks.crammer_singer",
    "GrammarParser": "structsvm.tasks.grammar",
    "HullerClassifier": "structsvm.tasks.huller",
    "KernelPerceptronClassifier": "structsvm.tasks.kernel_perceptron",
    "LaRankClassifier": "structsvm.tasks.larank_classifier",
    "LaSVMClassifier": "structsvm.tasks.lasvm",
    "SequenceAligner": "structsvm.tasks.alignment",
    "AmbiguousClassifier": "structsvm.tasks.ambiguous",
    "SGDQNClassifier": "structsvm.tasks.sgdqn",
    "SemanticParser": "structsvm.tasks.semantics",
    "SequenceLabeler": "structsvm.tasks.sequence",
    "TaxonomyClassifier": "structsvm.tasks.taxonomy",
    "TrackingClassifier": "structsvm.tasks.tracking",
    "WestonWatkinsClassifier": "structsvm.tasks.weston_watkins",
}

__all__ = list(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'structsvm.tasks' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
