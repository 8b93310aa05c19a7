"""Estimators for tasks: an oracle, features and metrics behind `fit` and `predict`.

Names are imported when they are first used.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "CrammerSingerClassifier": "structsvm.tasks.crammer_singer",
    "GrammarParser": "structsvm.tasks.grammar",
    "KernelPerceptronClassifier": "structsvm.tasks.kernel_perceptron",
    "LaRankClassifier": "structsvm.tasks.larank_classifier",
    "SequenceAligner": "structsvm.tasks.alignment",
    "AmbiguousClassifier": "structsvm.tasks.ambiguous",
    "SemanticParser": "structsvm.tasks.semantics",
    "SequenceLabeler": "structsvm.tasks.sequence",
    "TaxonomyClassifier": "structsvm.tasks.taxonomy",
    "WestonWatkinsClassifier": "structsvm.tasks.weston_watkins",
}

__all__ = list(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'structsvm.tasks' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
