"""structsvm: support vector machines that predict structures.

Names are imported when they are first used, so that ``import structsvm`` costs nothing and the command
line never pays for scikit-learn. Type checkers see the imports; a test holds them equal to the table.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from structsvm import _distribution
from structsvm.execution import joined

__version__ = "0.3.0"

_HOMES = {
    "AdviceWarning": "structsvm._warnings",
    "Checkpoint": "structsvm.checkpoint",
    "ConvergenceWarning": "structsvm.result",
    "CuttingPlane": "structsvm.solvers",
    "DocumentShards": "structsvm.tasks.taxonomy.shards",
    "FrankWolfe": "structsvm.solvers",
    "LaRank": "structsvm.solvers",
    "LatentSVM": "structsvm.solvers",
    "ModelFileError": "structsvm.model_file",
    "Oracle": "structsvm.protocol",
    "OracleError": "structsvm.adapter",
    "PassiveAggressive": "structsvm.solvers",
    "PathSearch": "structsvm.solvers.path",
    "Perceptron": "structsvm.solvers",
    "Result": "structsvm.result",
    "SequenceShards": "structsvm.shards.sequences",
    "SlackSearch": "structsvm.solvers.slack_search",
    "StructuredSVM": "structsvm.estimator",
    "Taxonomy": "structsvm.structures.taxonomy",
    "UnsupportedFormulation": "structsvm.protocol",
    "instruction_set": "structsvm.execution._processor",
    "load": "structsvm.opening",
}
_distribution.check()
joined.install()
_MODULES = (
    "datasets",
    "interop",
    "layers",
    "metrics",
    "oracles",
    "plotting",
    "risk",
    "solvers",
    "tasks",
    "testing",
    "weak",
)

__all__ = [*_HOMES, *_MODULES]

if TYPE_CHECKING:
    from structsvm import datasets as datasets
    from structsvm import interop as interop
    from structsvm import layers as layers
    from structsvm import metrics as metrics
    from structsvm import oracles as oracles
    from structsvm import plotting as plotting
    from structsvm import risk as risk
    from structsvm import solvers as solvers
    from structsvm import tasks as tasks
    from structsvm import testing as testing
    from structsvm import weak as weak
    from structsvm._warnings import AdviceWarning as AdviceWarning
    from structsvm.adapter import OracleError as OracleError
    from structsvm.checkpoint import Checkpoint as Checkpoint
    from structsvm.estimator import StructuredSVM as StructuredSVM
    from structsvm.execution._processor import instruction_set as instruction_set
    from structsvm.model_file import ModelFileError as ModelFileError
    from structsvm.opening import load as load
    from structsvm.protocol import Oracle as Oracle
    from structsvm.protocol import UnsupportedFormulation as UnsupportedFormulation
    from structsvm.result import ConvergenceWarning as ConvergenceWarning
    from structsvm.result import Result as Result
    from structsvm.shards.sequences import SequenceShards as SequenceShards
    from structsvm.solvers import CuttingPlane as CuttingPlane
    from structsvm.solvers import FrankWolfe as FrankWolfe
    from structsvm.solvers import LaRank as LaRank
    from structsvm.solvers import LatentSVM as LatentSVM
    from structsvm.solvers import PassiveAggressive as PassiveAggressive
    from structsvm.solvers import Perceptron as Perceptron
    from structsvm.solvers.path import PathSearch as PathSearch
    from structsvm.solvers.slack_search import SlackSearch as SlackSearch
    from structsvm.structures.taxonomy import Taxonomy as Taxonomy
    from structsvm.tasks.taxonomy.shards import DocumentShards as DocumentShards
else:  # out of the sight of type checkers, for which it would make any name an Any

    def __getattr__(name):
        joined.install()  # again, if what stood in sys.meta_path at the first import was for a time
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        if name in _MODULES:
            return importlib.import_module(f"structsvm.{name}")
        raise AttributeError(f"module 'structsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
