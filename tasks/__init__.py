"""Estimators for tasks: an oracle, features and metrics behind `fit` and `predict`.

Names are imported when they are first used.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "AmbiguousClassifier": "structsvm.tasks.ambiguous",
    "SemanticParser": "structsvm.tasks.semantics",
    "SequenceLabeler": "structsvm.tasks.sequence",
}

__all__ = list(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'structsvm.tasks' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
