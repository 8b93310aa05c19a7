"""The part of a label-sequence model that predicts: what a file contains of it, and sums over all labellings.

It imports neither the metrics nor what trains, which take longer to import than a sentence takes to label.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from structsvm.features.encoder import FeatureEncoder
from structsvm.oracles.enumeration.lazily import LazyChain
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.stored_values import Array, Count, Flag, Matrix, OneOf, Part, Record, Stored, Text, matrix_of
from structsvm.structures.languages import Automaton
from structsvm.structures.languages.automaton import NoLabelling
from structsvm.tasks.common.stored_labels import Labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.features.tokens import Tokens
    from structsvm.oracles._viterbi import Chain
    from structsvm.oracles.chain import ExactChain, LabelChain
    from structsvm.oracles.enumeration.lazily import OnGaps
    from structsvm.oracles.semi_markov import SegmentDecoder
    from structsvm.tasks.sequence.examples import Masks


def how_inferred(oracle: LabelChain) -> str:
    """The inference of an oracle, as a parameter."""
    return "greedy" if isinstance(oracle, GreedyOracle) else "exact"


class RuleTables(NamedTuple):
    """The automata of rules, one after the other."""

    following: NDArray[np.int32]
    accepting: NDArray[np.bool_]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, oracle: LabelChain) -> RuleTables | None:
        """The tables of an oracle's rules; None without any."""
        if not oracle.rules:
            return None
        tables = [rule.following for rule in oracle.rules], [rule.accepting for rule in oracle.rules]
        starts = np.cumsum([0, *(rule.n_states for rule in oracle.rules)])
        return cls(np.concatenate(tables[0]), np.concatenate(tables[1]), starts)

    def rules(self) -> tuple[Automaton, ...]:
        """The automata; ValueError if one has a state of another."""
        cuts = self.starts[1:-1]
        return tuple(map(Automaton, np.split(self.following, cuts), np.split(self.accepting, cuts)))


ORACLE = Record({
    "inference": OneOf(("exact", "greedy"), of=how_inferred),
    "n_token_features": Count(),
    "n_bigrams": Count(),
    "order": Count(),
    "end": Flag(),
    "loss": Text(of="loss_name"),
    "allowed_transitions": Array("b1", ("n_labels", "n_labels"), needed=False, of=lambda oracle: oracle.allowed[0]),
    "allowed_first": Array("b1", ("n_labels",), needed=False, of=lambda oracle: oracle.allowed[1]),
    "allowed_last": Array("b1", ("n_labels",), needed=False, of=lambda oracle: oracle.allowed[2]),
    "language": Record(
        {
            "following": Array("i4", ("n_states", "n_labels"), within=(-1, "n_states")),
            "accepting": Array("b1", ("n_states",)),
        },
        needed=False,
    ),
    "rules": Record(
        {
            "following": Array("i4", ("n_states", "n_labels"), within=(-1, "n_states")),
            "accepting": Array("b1", ("n_states",)),
            "starts": Array("i8", ("n_rules+1",), rises_to="n_states"),
        },
        needed=False,
        of=RuleTables.of,
    ),
    "label_costs": Array("f8", ("n_labels",), needed=False),
})  # fmt: skip
WEIGHTS = Matrix(
    "n_rows",
    "stride",
    of=lambda model: (model.weights.reshape(model.oracle.n_rows, model.oracle.stride), model.report is not None),
)
ENCODER = Part(FeatureEncoder.from_arrays, FeatureEncoder.to_arrays)
# The entries that prediction needs, of a chain over tokens.
CHAIN = Record({"weights": WEIGHTS, "labels": Labels(), "encoder": ENCODER, "oracle": ORACLE})


def chain_of(stored: Stored, labels: Sequence[Hashable]) -> GreedyOracle | ViterbiOracle:
    """The oracle of a file whose tokens have labels of their own."""
    about = {"n_bigrams": stored.n_bigrams, "order": stored.order, **stored.arrays()}
    language, rules = allowed_of(stored)
    if stored.inference == "greedy":
        if language is not None or rules:
            raise ValueError("greedy inference with a language")
        return GreedyOracle(len(labels), stored.n_token_features, **about)
    about |= {"end": stored.end, "loss": stored.loss, "language": language, "rules": rules}
    return ViterbiOracle(len(labels), stored.n_token_features, **about)


def allowed_of(stored: Stored) -> tuple[Automaton | None, tuple[Automaton, ...]]:
    """The ``(language, rules)`` of a file."""
    language = None if stored.language is None else Automaton(**stored.language.arrays())
    return language, () if stored.rules is None else RuleTables(**stored.rules.arrays()).rules()


def weights_of(stored: Stored, oracle: LabelChain) -> Floats:
    """The weights of a file."""
    shape = oracle.n_rows, oracle.stride
    weights: Floats = matrix_of(stored.arrays(n_rows=shape[0], stride=shape[1]), "weights", shape).ravel()
    return weights


def check_fits(encoder: FeatureEncoder, oracle: LabelChain, n_more: int, n_bigrams: int) -> None:
    """Raise ValueError unless the features of a file are those of its oracle, which may have `n_more`."""
    if encoder.kind is None:
        raise ValueError("a feature encoder that was never fitted")
    for what, ours, its in [
        ("features", encoder.n_features + n_more, oracle.n_token_features),
        ("bigrams", encoder.n_bigrams, n_bigrams),
    ]:
        if ours != its:
            raise ValueError(f"{ours} {what} in the vocabulary, {its} in the oracle")
    if encoder.n_labels_of_kinds > oracle.n_labels:
        raise ValueError(f"kinds of {encoder.n_labels_of_kinds} labels in the vocabulary, {oracle.n_labels} labels")


def marginals_of(
    oracle: ExactChain, weights: Floats, tokens: Tokens, allowed: Masks | None = None
) -> list[NDArray[np.float64]]:
    """For each sequence an array (length, n_labels): the probability of each label at each token."""
    decoder, found, place = decoder_of(oracle, tokens), [], 0
    for i, length in enumerate(tokens.lengths.tolist()):
        if not length:
            found.append(np.empty((0, oracle.n_labels)))
            continue
        log_sum, labels, _ = decoder.expect(weights, place, None if allowed is None else allowed[i])
        if log_sum == -np.inf:
            raise nothing_left(oracle, i, length)
        found.append(labels)
        place += 1
    return found


def texts_of(labels: Sequence[Hashable], label_ids: Integers) -> tuple[list[str], Integers]:
    """Return ``(names, ids)``: the texts of labels, each once, and the index of each token's."""
    texts = list(map(str, labels))
    number = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    return list(number), np.array([number[text] for text in texts], dtype=np.int32)[label_ids]


def nothing_left(oracle: LabelChain, i: int, length: int) -> NoLabelling:
    """The error of a sequence without any labelling. Raises it where already its length has none."""
    oracle.check_length(i, length)
    return NoLabelling("the masks leave no labelling, or its scores overflow", i)


def decoded(
    oracle: LabelChain,
    tokens: Tokens,
    weights: Floats,
    allowed: Masks | None = None,
    scores: NDArray[np.float32] | None = None,
    on_gaps: OnGaps | None = None,
) -> NDArray[np.int32]:
    """The labels of all tokens; `allowed` are those of the sequences that have some.

    Under rules that are too many for one automaton a warning says how much better the best labels may be; or `on_gaps`
    takes it, by sequence that has tokens.
    """
    try:
        chain = oracle.chain(tokens.without_empty())
        if isinstance(chain, LazyChain):
            return chain.decode(weights, allowed=allowed, scores=scores, on_gaps=on_gaps)
        return chain.decode(weights, allowed=allowed, scores=scores)
    except NoLabelling as error:
        found = error.among(tokens.lengths)
        if found.number is not None:
            oracle.check_length(found.number, int(tokens.lengths[found.number]))
        raise found from None


def decoder_of(oracle: ExactChain, tokens: Tokens) -> Chain | SegmentDecoder:
    """The decoder of the sequences that have tokens."""
    try:
        return cast("Chain | SegmentDecoder", oracle.chain(tokens.without_empty()))
    except NoLabelling as error:
        raise error.among(tokens.lengths) from None
