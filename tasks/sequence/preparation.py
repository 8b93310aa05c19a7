"""From parameters and sequences to a model and its encoded examples."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.columns import Columns
from structsvm.features.dense import warn_of_few_digits
from structsvm.features.encoder import FeatureEncoder, words_as_columns
from structsvm.features.inputs.outliers import table
from structsvm.features.tokens import Tokens
from structsvm.metrics._counts import is_unknown
from structsvm.shards.sequences import SequenceShards, features_fingerprint
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_classes, listed, sort_labels
from structsvm.tasks.common.parameters import unlike
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.common.training import check_whole
from structsvm.tasks.common.units import Units
from structsvm.tasks.sequence.constraints import repair
from structsvm.tasks.sequence.examples import LabeledSequences
from structsvm.tasks.sequence.labels import encode_known, warn_of_columns
from structsvm.tasks.sequence.model import NONE, SequenceModel, read
from structsvm.tasks.sequence.parameters import (
    check_open,
    check_segments,
    check_sharded,
    check_unchanged,
    leaves_templates,
    length_of,
    make_encoder,
    make_oracle,
)
from structsvm.tasks.sequence.phrases import Phrases
from structsvm.tasks.sequence.segments import Segments, all_tags, given, usual_length
from structsvm.tasks.sequence.selection.templates import FEWEST, choose_templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from structsvm.arrays import Integers
    from structsvm.tasks.sequence.examples import LabelSets, LabelsLike, SequencesLike
    from structsvm.tasks.sequence.parameters import LabelerParams
    from structsvm.tasks.sequence.segments import KnownTag
    from structsvm.tasks.sequence.selection.templates import TemplateChoice


def prepare(
    params: LabelerParams,
    X: SequencesLike | SequenceShards,
    y: LabelsLike | None,
    before: SequenceModel | None = None,
    *,
    lengths: ArrayLike | None = None,
    classes: Iterable[Hashable] | None = None,
    weight: ArrayLike | None = None,
    held_out: bool = False,
) -> tuple[SequenceModel, LabeledSequences]:
    """Return ``(model, examples)``: a model as parameters ask for it, X and y encoded.

    Parameters
    ----------
    params : object with `SequenceLabeler`'s parameters as attributes
    X, y : sequences and their labels; see `FeatureEncoder` and `encode_known`
    before : SequenceModel, optional
        The model to resume; ValueError if the parameters ask for other features or another structure.
    lengths : see `FeatureEncoder.fit_transform`
    classes : iterable, optional
        All labels that a new model is to know; for `before`, None or those that it knows.
    weight : array-like of shape (n_sequences,), optional
        Sequences of weight 0 have no influence on the units of columns and the balance of classes.
    held_out : bool
        Whether `before` is to label the sequences, not to be trained on them: words then have their kinds.
    """
    check_open(params)
    if isinstance(X, SequenceShards):
        return prepare_shards(params, X, before, lengths=lengths, classes=classes, weight=weight)
    if before is not None:
        check_whole(before)
    if params.segments:
        check_segments(params)
        X = read(X)
        if before is None:
            return _new_model_of_segments(params, X, y, lengths, classes, weight)
        return before, _segments_for_model(params, X, y, before, lengths, classes, weight)
    if before is None:
        return _new_model(params, X, y, lengths, classes, weight)
    return before, _for_model(params, X, y, before, lengths, classes, weight, held_out=held_out)


class Known(NamedTuple):
    """Labels as far as y tells them: see `encode_known`."""

    labels: Sequence[Hashable]
    label_ids: NDArray[np.int32]
    sets: LabelSets


class KnownSegments(NamedTuple):
    """Tags of segments as far as y tells them, with the form of the segments."""

    labels: Sequence[Hashable]
    label_ids: NDArray[np.int32]
    sets: LabelSets
    segments: Segments
    tags: Sequence[Sequence[KnownTag]]


K = TypeVar("K", Known, KnownSegments)


def _for_model(
    params: LabelerParams,
    X: SequencesLike,
    y: LabelsLike | None,
    before: SequenceModel,
    lengths: ArrayLike | None,
    classes: Iterable[Hashable] | None,
    weight: ArrayLike | None,
    *,
    held_out: bool,
) -> LabeledSequences:
    """Labelled sequences for a model that is trained further, or labels them."""
    check_classes(classes, before.labels)
    has_kinds = before.encoder.has_kinds and not held_out
    X = before.encoder.columns_of(X, lengths, fit=False) if has_kinds else X
    tokens = before.in_units(before.later(before.encoder.transform(X, lengths)))
    labels, label_ids, sets = encode_known(y, tokens, before.labels, getattr(params, "unknown", AUTO))
    if params.broken == "repair":
        check_all_known(sets)
        _, label_ids = repair(params.constraints, labels, label_ids, tokens.offsets, is_open=False)
    if has_kinds and len(tokens):
        tokens = before.encoder.labelled(
            cast(Columns, X), tokens, label_ids, _counted(tokens, label_ids < len(labels), weight)
        )
    check_unchanged(params, before, label_ids[label_ids < len(labels)])
    return examples_of(tokens, label_ids, sets, weight)


def _new_model(
    params: LabelerParams,
    X: SequencesLike,
    y: LabelsLike | None,
    lengths: ArrayLike | None,
    classes: Iterable[Hashable] | None,
    weight: ArrayLike | None,
) -> tuple[SequenceModel, LabeledSequences]:
    """A new model of labels, and its examples."""
    settled = None if classes is None else sort_labels(listed(classes))

    def known_of(tokens: Tokens | Columns) -> Known:
        return Known(*encode_known(y, tokens, settled, getattr(params, "unknown", AUTO)))

    X, choice, known = _with_templates(params, X, known_of, lengths, weight)
    encoder = make_encoder(params, None if choice is None else choice.templates)
    X = encoder.columns_of(X, lengths, fit=True) if encoder.kinds else X
    tokens = encoder.fit_transform(X, lengths)
    labels, label_ids, sets = known or known_of(tokens)
    if isinstance(X, Columns):
        warn_of_columns(X, labels, label_ids)
    if params.broken == "repair":
        check_all_known(sets)
        labels, label_ids = repair(params.constraints, labels, label_ids, tokens.offsets, is_open=classes is None)
    if encoder.kinds:
        tokens = encoder.learn_kinds(
            cast(Columns, X), tokens, label_ids, _counted(tokens, label_ids < len(labels), weight)
        )
    return _model_of(params, encoder, tokens, Known(labels, label_ids, sets), choice, weight)


def _segments_for_model(
    params: LabelerParams,
    X: SequencesLike,
    y: LabelsLike | None,
    before: SequenceModel,
    lengths: ArrayLike | None,
    classes: Iterable[Hashable] | None,
    weight: ArrayLike | None,
) -> LabeledSequences:
    """As `_for_model`, for whole segments."""
    segments = before.segments
    if segments is None:
        raise unlike("segments", params.segments, False)
    tokens = before.in_units(segments.with_phrases(X, before.later(before.encoder.transform(X, lengths))))
    spans, form = given(y, tokens.lengths, params.constraints, segments, getattr(params, "unknown", AUTO))
    tags = dataclasses.replace(segments, form=form).tags(spans, tokens.lengths, params.broken)
    check_classes(None if classes is None else all_tags([], classes, segments.scheme), before.labels)
    labels, label_ids, sets = encode_known(tags, tokens, before.labels)
    check_unchanged(params, before, label_ids[label_ids < len(labels)])
    return examples_of(tokens, label_ids, sets, weight)


def _new_model_of_segments(
    params: LabelerParams,
    X: SequencesLike,
    y: LabelsLike | None,
    lengths: ArrayLike | None,
    classes: Iterable[Hashable] | None,
    weight: ArrayLike | None,
) -> tuple[SequenceModel, LabeledSequences]:
    """As `_new_model`, for whole segments."""

    def known_of(tokens: Tokens | Columns) -> KnownSegments:
        spans, form = given(y, tokens.lengths, params.constraints, unknown=getattr(params, "unknown", AUTO))
        segments = Segments(form, NONE)
        tags = segments.tags(spans, tokens.lengths, params.broken)
        labels = all_tags(tags, classes, segments.scheme)
        return KnownSegments(*encode_known(tags, tokens, labels), segments, tags)

    X, choice, known = _with_templates(params, X, known_of, lengths, weight)
    encoder = make_encoder(params, None if choice is None else choice.templates)
    tokens = encoder.fit_transform(X, lengths)
    if encoder.n_bigrams:
        raise ValueError(
            "templates that begin with 'B' and a feature need segments=False: phrases take their place "
            "('record-tokens' are 'records' without them)"
        )
    known = known or known_of(tokens)
    segments, length = known.segments, length_of(params.segments) or usual_length(known.tags)
    segments.phrases, phrases = Phrases.fit(X, tokens, length, are_columns=encoder.kind == "columns")
    tokens = dataclasses.replace(tokens, bigrams=phrases)
    return _model_of(params, encoder, tokens, Known(*known[:3]), choice, weight, segments)


def _with_templates(
    params: LabelerParams,
    X: SequencesLike,
    known_of: Callable[[Columns], K],
    lengths: ArrayLike | None,
    weight: ArrayLike | None,
) -> tuple[SequencesLike, TemplateChoice | None, K | None]:
    """Return ``(X, choice, known)``: X as columns if its tokens are words, the choice of templates, and what is known.

    Without a choice both are None.
    """
    if not leaves_templates(params) or lengths is not None:
        return X, None, None
    X = words_as_columns(X)
    if not isinstance(X, Columns) or len(X) < FEWEST or (X.n_columns != 1 and params.templates is None):
        return X, None, None
    known = known_of(X)
    return X, choose_templates(params, X, known.labels, known.label_ids, weight), known


def _model_of(
    params: LabelerParams,
    encoder: FeatureEncoder,
    tokens: Tokens,
    known: Known,
    choice: TemplateChoice | None,
    weight: ArrayLike | None,
    segments: Segments | None = None,
) -> tuple[SequenceModel, LabeledSequences]:
    """A new model of encoded tokens, and these as its examples, in their units."""
    labels, label_ids, sets = known
    seen, seen_ids = _of_weight(tokens, label_ids, weight)
    units = _units_of(encoder, seen)
    oracle = make_oracle(params, encoder, labels, seen_ids[seen_ids < len(labels)], segments=segments, units=units)
    model = SequenceModel(encoder, labels, oracle, units=units, segments=segments)
    model.template_choice = choice
    return model, examples_of(model.in_units(tokens), label_ids, sets, weight)


def _counted(tokens: Tokens, is_known: NDArray[np.bool_], weight: ArrayLike | None) -> NDArray[np.bool_]:
    """Tokens whose labels are known, of sequences of weight."""
    weights = checked_sample_weight(weight, len(tokens))
    return is_known if weights is None else is_known & np.repeat(weights > 0.0, tokens.lengths)


def examples_of(
    tokens: Tokens, label_ids: NDArray[np.int32], sets: LabelSets, weight: ArrayLike | None
) -> LabeledSequences:
    """Encoded sequences with the weight of each, which is checked."""
    return LabeledSequences(tokens, label_ids, sets, weight=checked_sample_weight(weight, len(tokens)))


def prepare_shards(
    params: LabelerParams,
    shards: SequenceShards,
    before: SequenceModel | None,
    *,
    lengths: ArrayLike | None,
    classes: Iterable[Hashable] | None,
    weight: ArrayLike | None,
) -> tuple[SequenceModel, LabeledSequences]:
    """As `prepare`, for sequences in shards; ValueError, naming it, for a parameter that these leave no choice of."""
    encoder = shards.encoder
    given = make_encoder(params)
    for name in ("templates", "min_count", "hash_bits"):
        mine, its = getattr(given, name), getattr(encoder, name)
        if mine != its:
            raise ValueError(f"the shards were made with {name}={its!r:.80}, and the labeler has {name}={mine!r:.80}")
    check_sharded(params, lengths=lengths, classes=classes)
    for mark in (label for label in shards.labels if is_unknown(label, getattr(params, "unknown", AUTO))):
        raise ValueError(
            f"shards need labels that are all known, and theirs hold {mark!r}: unknown=None makes -1 a label"
        )
    shards.check()
    if before is not None:
        if before.segments is not None or before.encoder.kind != "columns":
            raise ValueError("the model to resume was trained on other data than columns")
        if features_fingerprint(before.encoder, before.labels) != shards.fingerprint():
            hint = "; its file has features with weights alone: save it with training_state=True" * bool(
                before.n_left_out
            )
            raise ValueError(f"the model to resume has other features or labels than the shards{hint}")
        check_unchanged(params, before, shards.label_ids)
        model = before
    else:
        model = SequenceModel(encoder, shards.labels, make_oracle(params, encoder, shards.labels, shards.label_ids))
    return model, examples_of(shards.tokens, shards.label_ids, np.zeros((0, len(model.labels)), dtype=bool), weight)


def _units_of(encoder: FeatureEncoder, tokens: Tokens) -> Units | None:
    """The units of columns of numbers; None for named features unless some are numbers."""
    if encoder.kind != "numeric":
        return Units.of_named(tokens, encoder) if len(encoder.numbers) else None
    units = Units.of_tokens(tokens)
    if units.centre is not None:
        warn_of_few_digits(table(tokens), str)
    return units


def _of_weight(tokens: Tokens, label_ids: Integers, weight: ArrayLike | None) -> tuple[Tokens, Integers]:
    """The tokens and label ids of sequences whose weight is not 0; all, if weights are not one per sequence."""
    weight = None if weight is None else np.asarray(weight, dtype=object)  # checked later
    if weight is None or weight.shape != (len(tokens),) or weight.all() or not weight.any():
        return tokens, label_ids
    chosen = weight != 0.0
    return tokens.take(chosen), label_ids[np.repeat(chosen, tokens.lengths)]


def check_all_known(sets: LabelSets) -> None:
    """Raise ValueError if labels are known in part."""
    if len(sets):
        raise ValueError("broken='repair' needs labels that are all known, and y tells some in part")
