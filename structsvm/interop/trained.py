"""Trained label-sequence models in the form of another program: its names of features, its patterns, its weights.

A first and a last label have weights here; there they are the weights of an observation that only the first or the last
token has. Probabilities stay: weights are divided by the temperature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.features.functions.patterns import (
    CRFPP_BOUNDARIES,
    WAPITI_BOUNDARIES,
    Pattern,
    parse_crfpp,
    parse_wapiti,
    read_wapiti_patterns,
)
from structsvm.features.templates import is_of_wapiti, parse_templates
from structsvm.interop.chain_model import PROGRAMS, ChainModel, Weights
from structsvm.interop.conversions import converted

if TYPE_CHECKING:
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.tasks.sequence.estimator import SequenceLabeler
    from structsvm.tasks.sequence.model import SequenceModel

    Trained: TypeAlias = SequenceLabeler | SequenceModel

Floats: TypeAlias = NDArray[np.float64]


def chain_of(model: ChainModel | Trained, kind: str) -> ChainModel:
    """The model in the form of a program, ``"wapiti"``, ``"crfpp"`` or ``"crfsuite"``; its cost factor is 1.

    Raises
    ------
    ValueError
        For what that program has no counterpart of; the message names it.
    """
    if not isinstance(model, ChainModel):
        return _of_labeler(_own_model(model), kind)
    model = model.rescaled()
    if model.kind == kind:
        return model
    chain = converted(model, kind)
    return chain if kind == "crfsuite" or model.kind != "crfsuite" else _without_edges(chain)


def _own_model(model: object) -> SequenceModel:
    """The model of a labeler; TypeError for other objects."""
    from structsvm.tasks.sequence.model import SequenceModel  # reading other programs' files takes no trainer

    own = model if isinstance(model, SequenceModel) else getattr(model, "model_", None)
    if not isinstance(own, SequenceModel):
        raise TypeError(f"model must be a trained SequenceLabeler or a ChainModel, got {model!r:.60}")
    return own


class _Names(NamedTuple):
    """Names of features and of those that are conjoined with pairs of labels, and the patterns that form them.

    Some features have more names, which come last: `more` are their indices.
    """

    features: list[str]
    bigrams: list[str]
    patterns: list[Pattern]
    more: list[int] = []


def _of_labeler(model: SequenceModel, kind: str) -> ChainModel:
    _check(model, kind)
    names = _names(model.encoder, kind)
    oracle = model.oracle
    scale = 1.0 / (model.temperature or 1.0)
    edges = model.rows(oracle.n_token_features + oracle.n_labels, 2).astype(np.float64)
    intercept = model.intercept().astype(np.float64)
    transitions = scale * (model.transition() + intercept)  # each label but the first follows another one
    start, end = scale * (edges[0] + intercept), scale * edges[1]
    emission = scale * model.emission().astype(np.float64)
    states = _weights(np.concatenate([emission, emission[names.more]]) if names.more else emission)
    pairs = _weights(scale * model.bigram().astype(np.float64))
    attributes = list(dict.fromkeys([*names.features, *names.bigrams]))
    if any(len(set(some)) < len(some) for some in (names.features, names.bigrams)):
        raise ValueError(
            f"model: two of its features have one name in {PROGRAMS[kind]}: give the templates other texts"
        )
    number = {name: row for row, name in enumerate(attributes)}
    n = len(attributes)
    its = np.array([number[name] for name in names.bigrams], dtype=np.int64)
    chain = ChainModel(
        kind,
        _labels(model),
        attributes,
        states.placed(np.arange(len(names.features)), n),
        pairs.placed(its, n) if len(its) else None,
        transitions=transitions,
        start=start if start.any() else None,
        end=end if end.any() else None,
        patterns=names.patterns,
    )
    return chain if kind == "crfsuite" else _without_edges(chain)


def _check(model: SequenceModel, kind: str) -> None:
    """Raise ValueError, naming it, for what no other program has."""
    program, encoder = PROGRAMS[kind], model.encoder
    for is_there, what, remedy in [
        (model.segments is not None, "weights of whole segments", "train with segments=False"),
        (model.is_greedy, "inference='greedy'", "train with inference='exact'"),
        (model.oracle.order > 1, "weights of three labels in a row", "train with order=1"),
        (model.oracle.is_constrained, "constraints", "train without constraints="),
        (encoder.hash_bits is not None, "names of features that were hashed", "train with hash_bits=None"),
        (encoder.kind == "numeric", "names of columns of numbers", "give dicts of features"),
        (model.units is not None and kind != "crfsuite", "numbers as values of features", "give them as strings"),
        (encoder.kind != "columns" and kind == "crfpp", "attributes", "train on columns with templates="),
    ]:
        if is_there:
            raise ValueError(f"model: {program} has no counterpart of {what}; {remedy}")


def _labels(model: SequenceModel) -> list[str]:
    """Labels as text."""
    labels = [str(label) for label in model.labels]
    if len(set(labels)) < len(labels):
        raise ValueError(f"model: two of its labels are the same text: {labels!r:.80}")
    return labels


# ----------------------------------------------------------------------------------------- names


def _names(encoder: FeatureEncoder, kind: str) -> _Names:
    features, bigrams = encoder.feature_names, encoder.bigram_names
    if encoder.kind == "columns":
        return _of_templates(encoder, features, bigrams, kind)
    if kind != "wapiti":
        return _Names(features, bigrams, [])
    conjoined = set(bigrams)
    named = ["*" + name if name in conjoined else "u" + name for name in features]
    return _Names(named, ["*" + name for name in bigrams], [])


def _of_templates(encoder: FeatureEncoder, features: list[str], bigrams: list[str], kind: str) -> _Names:
    text = encoder.template_text
    if kind == "crfsuite":
        own = set(features)
        # Words of a kind share a feature; there each has an attribute of its own.
        words = {name: j for name, j in encoder.words_of_kinds.items() if name not in own}
        return _Names([*features, *words], bigrams, [], [*words.values()])
    if is_of_wapiti(text):
        if kind != "wapiti":
            raise ValueError("model: CRF++ has no counterpart of Wapiti's patterns; train with CRF++'s templates")
        return _Names(features, bigrams, [_exact(pattern) for pattern in read_wapiti_patterns(text)])
    farthest = WAPITI_BOUNDARIES if kind == "wapiti" else CRFPP_BOUNDARIES
    templates, _ = parse_templates(text)
    for template in templates:
        if any(item.function != "x" for item in template.items):
            raise ValueError(
                f"model: {PROGRAMS[kind]} has no counterpart of the template {str(template)!r}; train with templates "
                "of %x alone, such as templates='crf++'"
            )
        if any(abs(item.row) > farthest for item in template.items):
            raise ValueError(
                f"model: the template {str(template)!r} reads further than {farthest} tokens, which {PROGRAMS[kind]} "
                "has no names for outside a sequence"
            )
    lines = [str(template) for template in templates]
    if kind == "crfpp":
        return _Names(features, bigrams, [parse_crfpp(line) for line in lines])
    features, bigrams = ([_lower(name) for name in names] for names in encoder.names_outside("_x-", "_x+"))
    return _Names(features, bigrams, [parse_wapiti(line) for line in lines])


def _exact(pattern: Pattern) -> Pattern:
    """A pattern of which Wapiti takes what matches; ValueError for others."""
    if any(command.overruns for command in pattern.commands):
        raise ValueError(
            f"model: of the pattern {pattern.source!r} Wapiti takes more of a string than matches, as the character of "
            "an 'x?' may be the first of what follows; train with other patterns"
        )
    return pattern


def _lower(name: str) -> str:
    """A name with its first letter, which is U or B, as Wapiti has it."""
    return name[0].lower() + name[1:]


# --------------------------------------------------------------------------------------- weights


def _weights(table: Floats) -> Weights:
    """Rows of a dense table of weights; what is behind the first axis are the targets."""
    flat = table.reshape(len(table), int(np.prod(table.shape[1:])))
    rows, targets = np.nonzero(flat)
    return Weights.of_entries(rows, targets, flat[rows, targets], len(table))


def _without_edges(chain: ChainModel) -> ChainModel:
    """The same chain, with transitions and first and last labels as weights of observations."""
    letter, every, before, after = ("u", "b", "_x-1", "_x+1") if chain.kind == "wapiti" else ("U", "B", "_B-1", "_B+1")
    parse = parse_wapiti if chain.kind == "wapiti" else parse_crfpp
    attributes, patterns, K = list(chain.attributes), list(chain.patterns), len(chain.labels)
    edges = []
    for name, place, outside, weights in [("__BOS__", -1, before, chain.start), ("__EOS__", 1, after, chain.end)]:
        if weights is None:
            continue
        edges.append(weights)
        attributes.append(f"{letter}{name}={outside}" if chain.patterns else f"{letter}{name}")
        if chain.patterns:
            patterns.append(parse(f"{letter}{name}=%x[{place},0]"))
    attributes.append(every)
    if chain.patterns and not any(pattern.source == every for pattern in patterns):
        patterns.append(parse(every))
    n, n_rows = len(chain.attributes), len(attributes)
    states = _stacked(chain.states, np.reshape(edges, (-1, K)), n_rows)
    transitions = np.zeros((K, K)) if chain.transitions is None else chain.transitions
    pairs = chain.pairs or _weights(np.zeros((n, 1)))
    pairs = _stacked(pairs, np.concatenate([np.zeros((n_rows - n - 1, K * K)), transitions.reshape(1, -1)]), n_rows)
    return ChainModel(chain.kind, chain.labels, attributes, states, pairs, patterns=patterns)


def _stacked(weights: Weights, table: Floats, n_rows: int) -> Weights:
    """Rows, then those of a table, then empty ones up to `n_rows`."""
    more = _weights(table)
    rows = np.concatenate([weights.rows(), len(weights.starts) - 1 + more.rows()])
    targets = np.concatenate([weights.targets, more.targets])
    return Weights.of_entries(rows, targets, np.concatenate([weights.weights, more.weights]), n_rows)
