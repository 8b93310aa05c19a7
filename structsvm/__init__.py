"""structsvm: support vector machines that predict structures.

Names are imported when they are first used, so that ``import structsvm`` costs nothing and the command
line never pays for scikit-learn.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_HOMES = {
    "ConvergenceWarning": "structsvm.result",
    "CuttingPlane": "structsvm.solvers",
    "FrankWolfe": "structsvm.solvers",
    "LaRank": "structsvm.solvers",
    "ModelFileError": "structsvm.model_file",
    "Oracle": "structsvm.protocol",
    "OracleError": "structsvm.protocol",
    "PassiveAggressive": "structsvm.solvers",
    "PathSearch": "structsvm.solvers.path",
    "Perceptron": "structsvm.solvers",
    "Result": "structsvm.result",
    "SlackSearch": "structsvm.solvers.slack_search",
    "StructuredSVM": "structsvm.estimator",
    "Taxonomy": "structsvm.structures.taxonomy",
    "UnsupportedFormulation": "structsvm.protocol",
    "load": "structsvm.estimator",
}
_MODULES = ("datasets", "metrics", "oracles", "plotting", "solvers", "tasks", "testing")

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"structsvm.{name}")
    raise AttributeError(f"module 'structsvm' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
