"""The registry of estimators: a line each, which every other list of estimators or of tasks reads.

Nothing but strings: the command line starts with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One estimator.

    Attributes
    ----------
    name : str
        The class.
    module : str
        The module that defines it, below `structsvm.tasks`.
    kind : str
        The task, as model files name it. Where estimators share one, a file names its estimator as well.
    page : str
        The page of docs/ about it.
    has_commands : bool
        Whether the command line has the task, in ``structsvm.cli.KIND``: what it trains, it does with the first
        estimator of the kind unless options name another.
    """

    name: str
    module: str
    kind: str
    page: str
    has_commands: bool = True


ESTIMATORS = (
    Entry("SequenceLabeler", "sequence.estimator", "sequence", "sequences"),
    Entry("GrammarParser", "grammar.estimator", "grammar", "grammars"),
    Entry("DependencyParser", "dependency.estimator", "dependency", "dependencies"),
    Entry("TaggedParser", "tagged.estimator", "tagged", "dependencies", has_commands=False),
    Entry("SequenceAligner", "alignment.estimator", "alignment", "alignment"),
    Entry("TaxonomyClassifier", "taxonomy.estimator", "taxonomy", "taxonomies"),
    Entry("SemanticParser", "semantics.estimator", "semantics", "semantics"),
    Entry("ConceptLabeler", "concepts.estimator", "concepts", "concepts", has_commands=False),
    Entry("GraphLabeler", "graph.estimator", "graph", "graphs"),
    Entry("MultilabelClassifier", "multilabel.estimator", "multilabel", "multilabel"),
    Entry("AmbiguousClassifier", "ambiguous.estimator", "ambiguous", "semantics", has_commands=False),
    Entry("Ranker", "ranking.ranker", "ranking", "ranking"),
    Entry("MultivariateClassifier", "ranking.multivariate", "multivariate", "ranking", has_commands=False),
    Entry("ItemOrderer", "ordering.estimator", "ordering", "ordering", has_commands=False),
    Entry("LaRankClassifier", "kernel.larank", "multiclass", "multiclass"),
    Entry("PairwiseClassifier", "kernel.pairwise", "multiclass", "multiclass"),
    Entry("CrammerSingerClassifier", "kernel.crammer_singer", "multiclass", "multiclass"),
    Entry("WestonWatkinsClassifier", "kernel.weston_watkins", "multiclass", "multiclass"),
    Entry("KernelPerceptronClassifier", "kernel.kernel_perceptron", "multiclass", "multiclass"),
    Entry("LaSVMClassifier", "kernel.lasvm", "binary", "binary"),
    Entry("HullerClassifier", "kernel.huller", "binary", "binary"),
    Entry("SGDQNClassifier", "linear.sgdqn", "binary", "binary"),
    Entry("TrackingClassifier", "linear.tracking", "binary", "binary"),
)


# The groups of parameters that estimators take as the value of one, and the modules that define them.
GROUPS = {
    "TreebankGrammar": "structsvm.tasks.grammar.parameters",
    "SpanFeatures": "structsvm.tasks.grammar.parameters",
    "ArcFeatures": "structsvm.tasks.dependency.parameters",
    "KernelFunction": "structsvm.kernel.parameters",
    "LaSVMSteps": "structsvm.solvers.kernel.lasvm",
    "TokenFeatures": "structsvm.tasks.sequence.parameters",
    "Hybrid": "structsvm.tasks.semantics.parameters",
    "Ospas": "structsvm.tasks.semantics.parameters",
}

# Classes that work together with estimators of several tasks.
TOOLS = {"Not": "structsvm.tasks.common.labels", "Pool": "structsvm.tasks.common.questions.pool"}


def names_of(kind: str) -> list[str]:
    """Return the names of the estimators whose model files are of a kind."""
    return [entry.name for entry in ESTIMATORS if entry.kind == kind]
