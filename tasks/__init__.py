"""Estimators for tasks: an oracle, features and metrics behind `fit` and `predict`.

Names are imported when they are first used.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "CrammerSingerClassifier": "structsvm.tasks.kernel.crammer_singer",
    "GrammarParser": "structsvm.tasks.grammar.estimator",
    "HullerClassifier": "structsvm.tasks.kernel.huller",
    "KernelPerceptronClassifier": "structsvm.tasks.kernel.kernel_perceptron",
    "LaRankClassifier": "structsvm.tasks.kernel.larank",
    "LaSVMClassifier": "structsvm.tasks.kernel.lasvm",
    "SequenceAligner": "structsvm.tasks.alignment.estimator",
    "AmbiguousClassifier": "structsvm.tasks.ambiguous.estimator",
    "SGDQNClassifier": "structsvm.tasks.linear.sgdqn",
    "SemanticParser": "structsvm.tasks.semantics.estimator",
    "SequenceLabeler": "structsvm.tasks.sequence.estimator",
    "TaxonomyClassifier": "structsvm.tasks.taxonomy.estimator",
    "TrackingClassifier": "structsvm.tasks.linear.tracking",
    "WestonWatkinsClassifier": "structsvm.tasks.kernel.weston_watkins",
}

__all__ = list(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'structsvm.tasks' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
