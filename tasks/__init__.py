"""Estimators for tasks: an oracle, features and metrics behind `fit` and `predict`.

Names are imported when they are first used. Type checkers see the imports; a test holds them equal to the registry.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from structsvm import _distribution
from structsvm.tasks.registry import ESTIMATORS, GROUPS, TOOLS

_distribution.check()
_HOMES = {entry.name: f"structsvm.tasks.{entry.module}" for entry in ESTIMATORS} | GROUPS | TOOLS

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from structsvm.kernel.parameters import KernelFunction as KernelFunction
    from structsvm.solvers.kernel.lasvm import LaSVMSteps as LaSVMSteps
    from structsvm.tasks.alignment.estimator import SequenceAligner as SequenceAligner
    from structsvm.tasks.ambiguous.estimator import AmbiguousClassifier as AmbiguousClassifier
    from structsvm.tasks.common.labels import Not as Not
    from structsvm.tasks.common.questions.pool import Pool as Pool
    from structsvm.tasks.concepts.estimator import ConceptLabeler as ConceptLabeler
    from structsvm.tasks.dependency.estimator import DependencyParser as DependencyParser
    from structsvm.tasks.dependency.parameters import ArcFeatures as ArcFeatures
    from structsvm.tasks.grammar.estimator import GrammarParser as GrammarParser
    from structsvm.tasks.grammar.parameters import SpanFeatures as SpanFeatures
    from structsvm.tasks.grammar.parameters import TreebankGrammar as TreebankGrammar
    from structsvm.tasks.graph.estimator import GraphLabeler as GraphLabeler
    from structsvm.tasks.kernel.crammer_singer import CrammerSingerClassifier as CrammerSingerClassifier
    from structsvm.tasks.kernel.huller import HullerClassifier as HullerClassifier
    from structsvm.tasks.kernel.kernel_perceptron import KernelPerceptronClassifier as KernelPerceptronClassifier
    from structsvm.tasks.kernel.larank import LaRankClassifier as LaRankClassifier
    from structsvm.tasks.kernel.lasvm import LaSVMClassifier as LaSVMClassifier
    from structsvm.tasks.kernel.pairwise import PairwiseClassifier as PairwiseClassifier
    from structsvm.tasks.kernel.weston_watkins import WestonWatkinsClassifier as WestonWatkinsClassifier
    from structsvm.tasks.linear.sgdqn import SGDQNClassifier as SGDQNClassifier
    from structsvm.tasks.linear.tracking import TrackingClassifier as TrackingClassifier
    from structsvm.tasks.multilabel.estimator import MultilabelClassifier as MultilabelClassifier
    from structsvm.tasks.ordering.estimator import ItemOrderer as ItemOrderer
    from structsvm.tasks.ranking.multivariate import MultivariateClassifier as MultivariateClassifier
    from structsvm.tasks.ranking.ranker import Ranker as Ranker
    from structsvm.tasks.semantics.estimator import SemanticParser as SemanticParser
    from structsvm.tasks.semantics.parameters import Hybrid as Hybrid
    from structsvm.tasks.semantics.parameters import Ospas as Ospas
    from structsvm.tasks.sequence.estimator import SequenceLabeler as SequenceLabeler
    from structsvm.tasks.sequence.parameters import TokenFeatures as TokenFeatures
    from structsvm.tasks.tagged.estimator import TaggedParser as TaggedParser
    from structsvm.tasks.taxonomy.estimator import TaxonomyClassifier as TaxonomyClassifier
else:  # out of the sight of type checkers, for which it would make any name an Any

    def __getattr__(name):
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'structsvm.tasks' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
