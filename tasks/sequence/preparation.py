"""From parameters and sequences to a model and its encoded examples."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

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
from structsvm.tasks.sequence.labels import encode_known, warn_of_columns, warn_of_tags
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
        return _new_model(params, X, y, lengths, classes, weight)
    return before, _for_model(params, X, y, before, lengths, classes, weight, held_out=held_out)


class Known(NamedTuple):
    """Labels as far as y tells them: see `encode_known`. For segments they are tags, with the form of the segments."""

    labels: Sequence[Hashable]
    label_ids: NDArray[np.int32]
    sets: LabelSets
    segments: Segments | None = None
    tags: Sequence[Sequence[KnownTag]] = ()


def _known_labels(
    params: LabelerParams,
    y: LabelsLike | None,
    tokens: Tokens | Columns,
    classes: Iterable[Hashable] | None,
    before: SequenceModel | None = None,
) -> Known:
    """Read labels of tokens, or tags of segments, off y: those of a model, or of y and `classes`."""
    unknown, own = getattr(params, "unknown", AUTO), None if before is None else before.segments
    if not params.segments:
        if before is not None:
            check_classes(classes, before.labels)
        settled = None if classes is None else sort_labels(listed(classes))
        return Known(*encode_known(y, tokens, settled if before is None else before.labels, unknown))
    spans, form = given(y, tokens.lengths, params.constraints, own, unknown)
    segments = Segments(form, NONE if own is None else own.phrases)
    tags = segments.tags(spans, tokens.lengths, params.broken)
    if before is None or own is None:
        labels: Sequence[Hashable] = all_tags(tags, classes, segments.scheme)
    else:
        check_classes(None if classes is None else all_tags([], classes, own.scheme), before.labels)
        labels = before.labels
    return Known(*encode_known(tags, tokens, labels), segments, tags)


def _repaired(params: LabelerParams, known: Known, tokens: Tokens, *, is_open: bool) -> Known:
    """Labels that obey the constraints, if they are to be repaired; tags of segments obey them as they are."""
    if params.broken != "repair" or params.segments:
        return known
    check_all_known(known.sets)
    labels, label_ids = repair(params.constraints, known.labels, known.label_ids, tokens.offsets, is_open=is_open)
    return known._replace(labels=labels, label_ids=label_ids)


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
    if bool(params.segments) != (before.segments is not None):
        raise unlike("segments", params.segments, before.segments is not None)
    has_kinds = before.encoder.has_kinds and not held_out
    X = before.encoder.columns_of(X, lengths, fit=False) if has_kinds else X
    tokens = before.later(before.encoder.transform(X, lengths))
    if before.segments is not None:
        tokens = before.segments.with_phrases(X, tokens)
    tokens = before.in_units(tokens)
    known = _repaired(params, _known_labels(params, y, tokens, classes, before), tokens, is_open=False)
    if has_kinds and len(tokens):
        tokens = before.encoder.labelled(cast(Columns, X), tokens, known.label_ids, _counted(tokens, known, weight))
    check_unchanged(params, before, known.label_ids[known.label_ids < len(known.labels)])
    return examples_of(tokens, known.label_ids, known.sets, weight)


def _new_model(
    params: LabelerParams,
    X: SequencesLike,
    y: LabelsLike | None,
    lengths: ArrayLike | None,
    classes: Iterable[Hashable] | None,
    weight: ArrayLike | None,
) -> tuple[SequenceModel, LabeledSequences]:
    """A new model of labels, or of the tags of segments, and its examples."""
    known_of = partial(_known_labels, params, y, classes=classes)
    X, choice, known = _with_templates(params, X, known_of, lengths, weight)
    encoder = make_encoder(params, None if choice is None else choice.templates)
    has_kinds = bool(encoder.kinds) and not params.segments
    X = encoder.columns_of(X, lengths, fit=True) if has_kinds else X
    tokens = encoder.fit_transform(X, lengths)
    if params.segments and encoder.n_bigrams:
        raise ValueError(
            "templates that begin with 'B' and a feature need segments=False: phrases take their place "
            "('record-tokens' are 'records' without them)"
        )
    known = known or known_of(tokens)
    if isinstance(X, Columns) and not params.segments:
        warn_of_columns(X, known.labels, known.label_ids)
    known = _repaired(params, known, tokens, is_open=classes is None)
    if has_kinds:
        tokens = encoder.learn_kinds(cast(Columns, X), tokens, known.label_ids, _counted(tokens, known, weight))
    if known.segments is not None:
        length = length_of(params.segments) or usual_length(known.tags)
        known.segments.phrases, phrases = Phrases.fit(X, tokens, length, are_columns=encoder.kind == "columns")
        tokens = dataclasses.replace(tokens, bigrams=phrases)
    model, examples = _model_of(params, encoder, tokens, known, choice, weight)
    if not params.segments and params.constraints is None:  # else they have said what the labels are
        warn_of_tags(known.labels)
    return model, examples


def _with_templates(
    params: LabelerParams,
    X: SequencesLike,
    known_of: Callable[[Columns], Known],
    lengths: ArrayLike | None,
    weight: ArrayLike | None,
) -> tuple[SequencesLike, TemplateChoice | None, Known | None]:
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
) -> tuple[SequenceModel, LabeledSequences]:
    """A new model of encoded tokens, and these as its examples, in their units."""
    labels, label_ids, sets, segments, _ = known
    seen, seen_ids = _of_weight(tokens, label_ids, weight)
    units = _units_of(encoder, seen)
    oracle = make_oracle(params, encoder, labels, seen_ids[seen_ids < len(labels)], segments=segments, units=units)
    model = SequenceModel(encoder, labels, oracle, units=units, segments=segments)
    model.template_choice = choice
    return model, examples_of(model.in_units(tokens), label_ids, sets, weight)


def _counted(tokens: Tokens, known: Known, weight: ArrayLike | None) -> NDArray[np.bool_]:
    """Tokens whose labels are known, of sequences of weight."""
    weights, is_known = checked_sample_weight(weight, len(tokens)), known.label_ids < len(known.labels)
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
        warn_of_tags(shards.labels)
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
