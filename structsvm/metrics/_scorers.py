"""``scoring=`` of scikit-learn's model selection, for every kind of output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from structsvm.features.inputs.masks import without_masks
from structsvm.metrics._alignments import pair_f1, q_score
from structsvm.metrics._chunks import chunk_f1, chunk_precision, chunk_recall
from structsvm.metrics._counts import AUTO, check_no_nan, is_unknown, say_unseen
from structsvm.metrics._dependencies import dependency_scores, say_unseen_relations
from structsvm.metrics._graphs import mean_jaccard, node_accuracy
from structsvm.metrics._labels import check_sequences, token_accuracy
from structsvm.metrics._matchings import matching_f1, matching_scores
from structsvm.metrics._meanings import meaning_scores
from structsvm.metrics._rankings import break_even_point, ranking_scores
from structsvm.metrics._records import field_f1, record_accuracy
from structsvm.metrics._schemes import scheme_of
from structsvm.metrics._taxonomies import hierarchical_scores, path_loss, tree_loss
from structsvm.metrics._tokens import flat_f1_score, flat_precision_score, flat_recall_score
from structsvm.metrics._trees import bracket_scores


@dataclass(frozen=True)
class Scorer:
    """(estimator, X, y) -> float; more is better.

    Attributes
    ----------
    name : str
    metric : callable
        A function of true and predicted outputs.
    part : str
        The attribute of the metric's result; "": the result itself.
    of_estimator : str
        The attribute of the estimator, or of a pipeline's last step, that the metric also takes.
    of_predict, of_metric : tuple of str
        Keywords passed to `predict`, and to the metric, for scikit-learn's metadata routing.
    sign : float
        -1 for losses.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from structsvm.metrics import chunk_f1_scorer
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [["Anna", "sleeps"], ["Bert", "eats"]] * 2, [["B-PER", "O"]] * 4
    >>> cross_val_score(SequenceLabeler(C=1.0, random_state=0), X, y, cv=2, scoring=chunk_f1_scorer).tolist()
    [1.0, 1.0]
    """

    name: str
    metric: Callable[..., Any]
    part: str = ""
    of_estimator: str = ""
    of_predict: tuple[str, ...] = ()
    of_metric: tuple[str, ...] = ()
    sign: float = 1.0

    def __call__(self, estimator: Any, X: Any, y: Any, **about: Any) -> float:
        for name in about.keys() - {*self.of_predict, *self.of_metric}:
            raise TypeError(f"{self!r} takes no {name!r}")
        about = {name: value for name, value in about.items() if value is not None}
        predicted = self.predicted(estimator, X, **{name: about.pop(name) for name in self.of_predict if name in about})
        true = self.true(estimator, without_masks(y))
        about |= self.marks(estimator, true)
        value = self.metric(true, predicted, *self.more(estimator, true, predicted), **about)
        value = float(getattr(value, self.part) if self.part else value)
        return self.sign * value

    def predicted(self, estimator: Any, X: Any, **about: Any) -> Any:
        """The outputs to score."""
        return estimator.predict(X, **about)

    def true(self, estimator: Any, y: Any) -> Any:
        """The outputs to compare with."""
        return y

    def more(self, estimator: Any, true: Any, predicted: Any) -> list[Any]:
        """Further arguments of the metric."""
        return [getattr(last(estimator), self.of_estimator)] if self.of_estimator else []

    def marks(self, estimator: Any, true: Any) -> dict[str, Any]:
        """Further keywords of the metric."""
        return {}

    def get_metadata_routing(self) -> Any:
        """The keywords that scikit-learn's metadata routing passes."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        for name in self.of_predict + self.of_metric:
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return f"{self.name}_scorer"


class FoundScorer(Scorer):
    """For scores of two classes; the second is to be found."""

    def predicted(self, estimator: Any, X: Any, **about: Any) -> Any:
        return estimator.decision_function(X)

    def true(self, estimator: Any, y: Any) -> Any:
        check_no_nan(true := np.asarray(y).tolist(), "row {} of y".format)
        if None in true:
            raise ValueError(f"row {true.index(None)} of y has no label: leave rows without one out of X and y")
        classes = last(estimator).classes_
        say_unseen(true, set(classes.tolist()), "rows")
        return np.asarray(y) == classes[1]


class LabelScorer(Scorer):
    """For labels of nodes or tokens: the estimator's mark of unknown ones is the metric's too."""

    def marks(self, estimator: Any, true: Any) -> dict[str, Any]:
        say_unseen_of(estimator, true)
        return {"unknown": getattr(last(estimator), "unknown", AUTO)}


class ChunkScorer(LabelScorer):
    """For scores of chunks, whose scheme is that of all labels of the estimator, where a fold has few of them."""

    def more(self, estimator: Any, true: Any, predicted: Any) -> list[Any]:
        known = chain.from_iterable(chain(*check_sequences(true, predicted)))
        unknown = getattr(last(estimator), "unknown", AUTO)
        found = {label for label in known if not is_unknown(label, unknown)}
        return [scheme_of(found) or scheme_of(found.union(getattr(last(estimator), "classes_", ())))]


class RelationScorer(Scorer):
    """For scores of relations."""

    def marks(self, estimator: Any, true: Any) -> dict[str, Any]:
        model = last(estimator)
        if seen := list(getattr(model, "_seen", getattr(model, "classes_", ()))):
            say_unseen_relations(true, seen)
        return {}


def say_unseen_of(estimator: Any, true: Any) -> None:
    """Say how many labels of tokens or nodes are none of the estimator's."""
    model = last(estimator)
    seen, unknown = set(getattr(model, "_seen", getattr(model, "classes_", ()))), getattr(model, "unknown", AUTO)
    lists = (labels.values() if isinstance(labels, dict) else np.ravel(labels).tolist() for labels in true)
    say_unseen((label for own in lists for label in own if seen and not is_unknown(label, unknown)), seen, "labels")


def last(estimator: Any) -> Any:
    """The last step of a pipeline; another estimator itself."""
    return estimator[-1] if hasattr(estimator, "steps") else estimator


LENGTHS, QUERIES = ("lengths",), ("group", "qid")

# Sequences of labels.
token_accuracy_scorer = LabelScorer("token_accuracy", token_accuracy, of_predict=LENGTHS)
flat_f1_scorer = LabelScorer("flat_f1", flat_f1_score, of_predict=LENGTHS)
flat_precision_scorer = LabelScorer("flat_precision", flat_precision_score, of_predict=LENGTHS)
flat_recall_scorer = LabelScorer("flat_recall", flat_recall_score, of_predict=LENGTHS)
chunk_f1_scorer = ChunkScorer("chunk_f1", chunk_f1, of_predict=LENGTHS)
chunk_precision_scorer = ChunkScorer("chunk_precision", chunk_precision, of_predict=LENGTHS)
chunk_recall_scorer = ChunkScorer("chunk_recall", chunk_recall, of_predict=LENGTHS)
record_accuracy_scorer = LabelScorer("record_accuracy", record_accuracy, of_predict=LENGTHS)
field_f1_scorer = ChunkScorer("field_f1", field_f1, of_predict=LENGTHS)
# Trees, bracketed and of dependencies.
bracket_f1_scorer = Scorer("bracket_f1", bracket_scores, "f1")
uas_scorer = Scorer("uas", dependency_scores, "uas")
las_scorer = RelationScorer("las", dependency_scores, "las")
# Alignments of strings.
pair_f1_scorer = Scorer("pair_f1", pair_f1)
q_scorer = Scorer("q", q_score)
# Nodes of a taxonomy.
hierarchical_f1_scorer = Scorer("hierarchical_f1", hierarchical_scores, "f1", "taxonomy_")
hierarchical_precision_scorer = Scorer("hierarchical_precision", hierarchical_scores, "precision", "taxonomy_")
hierarchical_recall_scorer = Scorer("hierarchical_recall", hierarchical_scores, "recall", "taxonomy_")
tree_loss_scorer = Scorer("tree_loss", tree_loss, of_estimator="taxonomy_", sign=-1.0)
path_loss_scorer = Scorer("path_loss", path_loss, of_estimator="taxonomy_", sign=-1.0)
# Nodes of graphs.
node_accuracy_scorer = LabelScorer("node_accuracy", node_accuracy, of_estimator="classes_")
mean_jaccard_scorer = LabelScorer("mean_jaccard", mean_jaccard, of_estimator="classes_")
# Meaning representations.
meaning_f1_scorer = Scorer("meaning_f1", meaning_scores, "f1")
# Matchings.
matching_f1_scorer = Scorer("matching_f1", matching_f1)
alignment_error_rate_scorer = Scorer("alignment_error_rate", matching_scores, "alignment_error_rate", sign=-1.0)
# Rows of queries, and rows to be found.
ndcg_scorer = Scorer("ndcg", ranking_scores, "ndcg", of_metric=QUERIES)
map_scorer = Scorer("map", ranking_scores, "map", of_metric=QUERIES)
ordered_pairs_scorer = Scorer("ordered_pairs", ranking_scores, "pairs", of_metric=QUERIES)
break_even_point_scorer = FoundScorer("break_even_point", break_even_point)

SCORERS = {scorer.name: scorer for scorer in list(globals().values()) if isinstance(scorer, Scorer)}
