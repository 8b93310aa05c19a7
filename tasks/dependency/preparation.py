"""From parameters and sentences to a model and its encoded examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.inputs.seen_columns import SeenColumns
from structsvm.features.word_codes import OwnColumns
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.dependency.arcs import DependencyOracle
from structsvm.oracles.eisner import EisnerOracle
from structsvm.structures.dependencies import crossing_arcs
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_classes, listed
from structsvm.tasks.common.parameters import bits_for, check_group_unchanged, check_unchanged
from structsvm.tasks.common.units import later_vectors, units_of_vectors
from structsvm.tasks.dependency.arcs import arcs_of, outputs_of, single_rooted, without_subtype
from structsvm.tasks.dependency.examples import ParsedSentences
from structsvm.tasks.dependency.model import XPOS, DependencyModel, check_lengths
from structsvm.tasks.dependency.parameters import (
    OF_FEATURES,
    SETTLED,
    ArcFeatures,
    features_of,
    make_pair_templates,
    make_templates,
)
from structsvm.tasks.dependency.words import GIVEN, encoded, values_given

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from structsvm.arrays import Integers
    from structsvm.tasks.dependency.examples import Arcs, ArcsLike
    from structsvm.tasks.dependency.parameters import Params
    from structsvm.tasks.dependency.words import SentenceLike

# From this share of training arcs that cross others on, "auto" lets arcs cross, and without them there is a warning. A
# projective parser never finds them, but errs less elsewhere.
MANY_CROSSING = 0.02
# More values of XPOS than that are morphology, which FEATS tells as well: UPOS stands in for it.
MOST_TAGS = 100
# Without arc_bits and row_bits: so many numbers and rows per word of the training trees, in powers of two, and their
# bounds; see `bits_for`.
ARC_BITS, ROW_BITS = (5, 10, 22), (1, 6, 18)


def cut_labels(classes: Iterable[str], params: Params) -> list[str]:
    """The argument `classes` of `partial_fit`, without subtypes if parameters say so; ValueError for other than str."""
    found = listed(classes)
    if not all(isinstance(label, str) for label in found):
        raise ValueError(f"classes must be a list of str, got {classes!r:.80}")
    return found if params.subtypes else list(map(without_subtype, found))


def prepare(
    params: Params,
    X: Collection[SentenceLike],
    y: Collection[ArcsLike] | None,
    before: DependencyModel | None = None,
    *,
    classes: Iterable[str] | None = None,
    weight: ArrayLike | None = None,
) -> tuple[DependencyModel, ParsedSentences]:
    """Return ``(model, examples)``: a model as parameters ask for it, and the sentences encoded.

    Parameters
    ----------
    params : object with `DependencyParser`'s parameters as attributes
    X, y : sentences and their arcs, or trees
    before : DependencyModel, optional
        The model to resume; ValueError if the parameters ask for other features or trees.
    classes : iterable, optional
        All labels that a new model is to know; for `before`, None or those that it knows.
    weight : array-like of shape (n_sentences,), optional
    """
    arcs, features = single_rooted(arcs_of(X, y)), features_of(params)
    if before is None:
        own = OwnColumns(features.columns, () if features.columns is None else None)
    else:
        before.set_columns(features.columns)
        own = before.own
    codes, offsets = encoded(X, own)
    check_lengths(offsets, params.max_length)
    labels: Sequence[str]
    weights = checked_sample_weight(weight, len(arcs))
    if before is None:
        _settle_units(own, codes, None if weights is None else np.repeat(weights > 0.0, np.diff(offsets)))
        labels = labels_of(arcs, classes, params)
    else:
        check_unchanged(params, before, SETTLED)
        check_group_unchanged("features", ArcFeatures, params, before, OF_FEATURES)
        check_classes(None if classes is None else cut_labels(classes, params), before.labels)
        labels = before.labels
        if n := len(own.number_names):
            numbers = codes[:, -n:].view(np.float32)
            numbers[:] = later_vectors(numbers, own)
    outputs = outputs_of(arcs, offsets, labels, params.subtypes)
    model = new_model(params, own, codes, arcs, labels, outputs) if before is None else before
    codes, offsets = model.as_trained(codes, offsets)
    model.pair_templates = make_pair_templates(params, own)
    model.pairs_cross = params.projective == "auto" and model.n_crossing > 0
    return model, ParsedSentences(codes, offsets, outputs, weight=weights)


def labels_of(arcs: Iterable[Arcs], classes: Iterable[str] | None, params: Params) -> list[str]:
    """The labels of a new model, sorted: `classes`, or those of the arcs; ValueError if there are none."""
    if classes is None:
        found = {label if params.subtypes else without_subtype(label) for tree in arcs for _, label in tree} - {"_"}
    else:
        found = set(cut_labels(classes, params))
    if not found:
        raise ValueError("no arc has a label")
    return sorted(found)


def new_model(
    params: Params,
    own: OwnColumns,
    codes: NDArray[np.int32],
    arcs: Sequence[Arcs],
    labels: Sequence[str],
    outputs: NDArray[np.int32],
) -> DependencyModel:
    """A model as parameters ask for it, whose oracle suits the arcs and the number of words."""
    crossing = [len(crossing_arcs([head for head, _ in tree])) for tree in arcs]
    n_crossing, is_many = sum(map(bool, crossing)), sum(crossing) >= MANY_CROSSING * max(len(codes), 1)
    projective = not is_many if params.projective == "auto" else params.projective
    if projective and is_many:
        warn(
            f"{n_crossing} of {len(arcs)} trees have crossing arcs, which a projective parser never finds: "
            "projective=False does, and 'auto' would choose it",
            AdviceWarning,
        )
    kind: type[DependencyOracle] = EisnerOracle if projective else ArborescenceOracle
    features = features_of(params)
    oracle = kind(
        len(labels),
        make_templates(features, own),
        arc_bits=features.arc_bits or bits_for(len(codes), *ARC_BITS),
        row_bits=features.row_bits or bits_for(len(codes), *ROW_BITS, row=4 * len(labels)),
        root_label=_root_label(outputs, len(labels)),
        loss=params.loss,
    )
    return DependencyModel(
        labels,
        oracle,
        subtypes=params.subtypes,
        max_length=params.max_length,
        n_crossing=n_crossing,
        coarse=len(np.unique(codes[:, XPOS])) > MOST_TAGS,
        own=own,
        seen=SeenColumns.of(values_given(codes, GIVEN), len(codes)),
    )


def _settle_units(own: OwnColumns, codes: NDArray[np.int32], counts: NDArray[np.bool_] | None) -> None:
    """Find the units of vectors, by the words that count, and have the numbers behind the codes in them."""
    n = len(own.number_names)
    if n:
        numbers = codes[:, -n:].view(np.float32)
        own.units = units_of_vectors(numbers if counts is None else numbers[counts], own.number_names)
        if own.units is not None:
            numbers[:] = own.units.applied(numbers)


def _root_label(outputs: Integers, n_labels: int) -> int | None:
    """The label of all arcs from the root, and of no others; None if there is none."""
    known = outputs[(outputs >= 0).all(axis=1)]
    of_root = np.unique(known[known[:, 0] == 0, 1])
    if n_labels < 2 or len(of_root) != 1 or of_root[0] in known[known[:, 0] > 0, 1]:
        return None
    half_known = outputs[(outputs[:, 0] < 0) | (outputs[:, 1] < 0)]
    clashes = (half_known[:, 0] == 0) & (half_known[:, 1] >= 0) & (half_known[:, 1] != of_root[0])
    return None if clashes.any() else int(of_root[0])
