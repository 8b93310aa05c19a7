"""Scores of predictions, one module per kind of output, which defines what is counted and how."""

from structsvm.metrics._alignments import (
    AlignmentScores,
    alignment_scores,
    homologue_error,
    pair_f1,
    q_score,
    total_column,
)
from structsvm.metrics._calibration import CalibrationScores, calibration_scores
from structsvm.metrics._chunks import (
    ChunkScores,
    chunk_f1,
    chunk_f1_scorer,
    chunk_precision,
    chunk_precision_scorer,
    chunk_recall,
    chunk_recall_scorer,
    chunk_scores,
)
from structsvm.metrics._dependencies import CONTENT_RELATIONS, DependencyScores, dependency_scores
from structsvm.metrics._graphs import (
    GraphScores,
    graph_scores,
    mean_jaccard,
    mean_jaccard_scorer,
    node_accuracy,
    node_accuracy_scorer,
)
from structsvm.metrics._labels import LabelScore, label_report, token_accuracy, token_accuracy_scorer
from structsvm.metrics._meanings import MeaningScores, alignment_error, meaning_scores
from structsvm.metrics._rankings import (
    RankingScores,
    average_precision,
    break_even_point,
    ndcg,
    ordered_pairs,
    precision_at_k,
    ranking_scores,
)
from structsvm.metrics._taxonomies import HierarchicalScores, hierarchical_scores, path_loss, tree_loss
from structsvm.metrics._trees import EVALB_DELETED, EVALB_EQUAL, BracketScores, bracket_scores

__all__ = [
    "CONTENT_RELATIONS",
    "EVALB_DELETED",
    "EVALB_EQUAL",
    "AlignmentScores",
    "BracketScores",
    "CalibrationScores",
    "ChunkScores",
    "DependencyScores",
    "GraphScores",
    "HierarchicalScores",
    "LabelScore",
    "MeaningScores",
    "RankingScores",
    "alignment_error",
    "alignment_scores",
    "average_precision",
    "bracket_scores",
    "break_even_point",
    "calibration_scores",
    "chunk_f1",
    "chunk_f1_scorer",
    "chunk_precision",
    "chunk_precision_scorer",
    "chunk_recall",
    "chunk_recall_scorer",
    "chunk_scores",
    "dependency_scores",
    "graph_scores",
    "hierarchical_scores",
    "homologue_error",
    "label_report",
    "mean_jaccard",
    "mean_jaccard_scorer",
    "meaning_scores",
    "ndcg",
    "node_accuracy",
    "node_accuracy_scorer",
    "ordered_pairs",
    "pair_f1",
    "path_loss",
    "precision_at_k",
    "q_score",
    "ranking_scores",
    "token_accuracy",
    "token_accuracy_scorer",
    "total_column",
    "tree_loss",
]
