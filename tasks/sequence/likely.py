"""All chunks of chains of order 1 that have at least some probability, many sequences at once.

Under its scores a chain is a Markov chain, whatever its features are: the probability of a label given all labels
before depends on the one before alone, ``P(b | a) = P(a, b) / P(a)``. So a chunk's probability is a product along its
tokens, from the probabilities of neighbouring labels, which forward-backward gives. With o the labels of the chunk's
type after which it goes on, and i those with which it does,

    begin(a)    =  P(a at start) - sum over a' in o of P(a', a), if a is in i
    run(b)      =  sum over a in o of run(a) P(b | a),  b in i
    chance      =  sum over a of run(a) (1 - sum over b in i of P(b | a), if a is in o)

and all starts of all sequences go on by one token at a time, as long as their runs are probable enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.tasks.sequence.chances import INSIDE, OPEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.features.tokens import Tokens
    from structsvm.metrics._schemes import Part
    from structsvm.oracles.chain import LabelChain
    from structsvm.oracles.viterbi import ViterbiOracle
    from structsvm.tasks.sequence.examples import Span

# Numbers of pairs of labels, of the tokens of sequences side by side.
MOST_PAIRS = 1 << 20


@dataclass(frozen=True, eq=False)
class Chunks:
    """Probable chunks of several sequences by column, an entry per chunk, by place.

    Attributes
    ----------
    offsets : int64 array (n_sequences + 1,)
        The chunks of sequence i are those from ``offsets[i]`` to ``offsets[i + 1]``.
    start, stop, kind : int64 arrays
        `kind` is the number of the type.
    chance : float64 array
    kinds : list of str
        The types.
    """

    offsets: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    kind: NDArray[np.int64]
    chance: NDArray[np.float64]
    kinds: Sequence[str]

    @classmethod
    def of_lists(cls, found: Sequence[Sequence[tuple[int, int, str, float]]]) -> Chunks:
        """The columns of lists of chunks."""
        flat = [chunk for own in found for chunk in own]
        kinds = sorted({kind for _, _, kind, _ in flat}, key=str)
        at = {kind: k for k, kind in enumerate(kinds)}
        numbers = np.array([(start, stop, at[kind]) for start, stop, kind, _ in flat], dtype=np.int64).reshape(-1, 3)
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int64)
        chance = np.array([chance for *_, chance in flat], dtype=np.float64)
        return cls(offsets, numbers[:, 0], numbers[:, 1], numbers[:, 2], chance, kinds)

    def lists(self) -> list[list[tuple[int, int, str, float]]]:
        """The chunks of each sequence, ``(start, stop, type, probability)``."""
        names = [self.kinds[k] for k in self.kind.tolist()]
        flat = list(zip(self.start.tolist(), self.stop.tolist(), names, self.chance.tolist(), strict=True))
        return [flat[a:b] for a, b in pairwise(self.offsets.tolist())]


def is_markov(oracle: object) -> bool:
    """Whether a chain has scores of single labels and of neighbouring ones alone, and masks at most."""
    has_more = getattr(oracle, "language", None) is not None or bool(getattr(oracle, "rules", ()))
    return getattr(oracle, "order", 0) == 1 and hasattr(oracle, "padding_row") and not has_more


def has_room(oracle: LabelChain, longest: int) -> bool:
    """Whether the pairs of labels of the longest sequence are few enough to be kept."""
    return longest * oracle.n_labels**2 <= MOST_PAIRS


def summed(rows: Floats, tokens: Tokens) -> NDArray[np.float64]:
    """Sums of the rows of weights of each token's features."""
    from scipy.sparse import csr_array

    values = np.ones(tokens.n_entries) if tokens.values is None else tokens.values.astype(np.float64)
    table = csr_array((values, tokens.indices, tokens.indptr), shape=(tokens.n_tokens, len(rows)))
    flat = table @ rows.reshape(len(rows), -1).astype(np.float64)
    return np.asarray(flat, dtype=np.float64).reshape(-1, *rows.shape[1:])


def padded(rows: NDArray[np.float64], offsets: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows of the tokens of some sequences, with zeros beyond the lengths."""
    lengths = np.diff(offsets)[chosen]
    steps = np.arange(int(lengths.max()))
    found = np.zeros((len(lengths), len(steps), *rows.shape[1:]))
    is_there = steps < lengths[:, None]
    found[is_there] = rows[(offsets[chosen, None] + steps)[is_there]]
    return found


def edges_of(oracle: ViterbiOracle, weights: Floats) -> list[NDArray[np.float64]]:
    """Scores of transitions, start and end, as `structsvm.layers.Chain` takes them."""
    K, first = oracle.n_labels, oracle.n_token_features
    edges = np.asarray(weights).reshape(-1, oracle.stride)[first : first + K + 2, :K].astype(np.float64)
    if not oracle.end:
        edges[K + 1] = 0.0
    found = [edges[:K], edges[K], edges[K + 1]]
    for mask, part in zip(oracle.allowed, found, strict=True):
        if mask is not None:
            part[~mask] = -np.inf
    return found


def transitions_of(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens, chosen: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Scores of pairs of features and of neighbouring labels, for the tokens of some sequences but their first ones."""
    K, own = oracle.n_labels, tokens.take(chosen)
    if own.bigrams is None or not oracle.n_bigrams:
        return np.zeros((len(own), int(own.lengths.max()) - 1, K, K))
    rows = np.asarray(weights).reshape(-1, oracle.stride)[oracle.first_bigram_row :, :K]
    pairs = summed(rows.reshape(oracle.n_bigrams, K, K), own.bigrams)
    return padded(pairs, own.offsets, np.arange(len(own)))[:, 1:]


def batches(tokens: Tokens, K: int) -> Iterator[NDArray[np.int64]]:
    """Sequences of similar lengths, so that several together have no more than `MOST_PAIRS` pairs of labels."""
    order = np.argsort(tokens.lengths, kind="stable")
    first = 0
    for k, length in enumerate(tokens.lengths[order].tolist()):
        if k > first and (k + 1 - first) * length * K * K > MOST_PAIRS:
            yield order[first:k]
            first = k
    if len(order):
        yield order[first:]


def likely_chunks(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens, parts: Sequence[Part], least: float
) -> Chunks:
    """The chunks of each sequence, none of them empty, that have a probability of at least `least`, with it.

    Parameters
    ----------
    oracle, weights : a chain (see `is_markov`), and weights whose scores are logarithms of probabilities
    tokens : Tokens
    parts : list of Part
        Role and type of each label.
    least : float
        Over 0.
    """
    groups, kinds = labels_of_kinds(parts), sorted({part.kind for part in parts if part.role != "O"}, key=str)
    found = [Runs(*(np.empty(0, dtype=np.int64),) * 3, np.empty(0))]
    kind = [0]
    for chosen, lengths, labels, pairs in marginals_of(oracle, weights, tokens):
        # By label first: what is summed over labels lies in rows.
        of_label = np.ascontiguousarray(np.moveaxis(labels, 2, 0))
        for k, name in enumerate(kinds):
            own, together = groups[name]
            first = of_label[own]
            goes_on = np.zeros((len(own), *first.shape))
            for a, b in np.argwhere(together).tolist():
                goes_on[a, b, :, :-1] = pairs[:, :, own[a], own[b]]
            for runs in runs_of(first, goes_on, lengths, least):
                found.append(runs._replace(sequence=chosen[runs.sequence]))
                kind.append(k)
    each = np.repeat(kind, [len(runs.start) for runs in found])
    sequence, start, stop, chance = (np.concatenate(column) for column in zip(*found, strict=True))
    place = (tokens.offsets[sequence] + start) * (int(tokens.lengths.max(initial=0)) + 1) + stop - start
    order = np.argsort(place * len(kinds) + each)
    offsets = np.append(0, np.cumsum(np.bincount(sequence, minlength=len(tokens))))
    return Chunks(offsets, start[order], stop[order], each[order], chance[order], kinds)


def marginals_of(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield some sequences, their lengths, and the probabilities of labels and of pairs of neighbours."""
    from structsvm.layers import Chain  # scipy comes with it

    rows = np.asarray(weights).reshape(-1, oracle.stride)[: oracle.n_token_features, : oracle.n_labels]
    emissions, (edges, start, end) = summed(rows, tokens), edges_of(oracle, weights)
    for chosen in batches(tokens, oracle.n_labels):
        lengths = tokens.lengths[chosen]
        scores = padded(emissions, tokens.offsets, chosen), transitions_of(oracle, weights, tokens, chosen) + edges
        marginals = Chain().marginals(*scores, start, end, lengths=lengths)
        labels, pairs = (np.asarray(part, dtype=np.float64) for part in marginals[:2])
        yield chosen, lengths, labels, pairs


def chances_of(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens, parts: Sequence[Part], spans: Sequence[Sequence[Span]]
) -> list[list[tuple[int, int, str, float]]]:
    """Chunks of sequences, none of them empty, with their probabilities: in time linear in the length.

    Parameters
    ----------
    oracle, weights, tokens, parts : see `likely_chunks`
    spans : list, per sequence of chunks ``(start, stop, type)``
    """
    kinds, found = labels_of_kinds(parts), list[list[tuple[int, int, str, float]]]([[] for _ in spans])
    for chosen, lengths, labels, pairs in marginals_of(oracle, weights, tokens):
        for i, (at, n) in enumerate(zip(chosen.tolist(), lengths.tolist(), strict=True)):
            own = labels[i, :n], pairs[i, : n - 1]
            found[at] = [(*span, chance_of(*own, span[0], span[1], *kinds[span[2]])) for span in spans[at]]
    return found


def labels_of_kinds(parts: Sequence[Part]) -> dict[str, tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Per type of chunks its labels, and which pairs of these belong together."""
    found = {}
    for kind in {part.kind for part in parts if part.role != "O"}:
        own = np.array([k for k, part in enumerate(parts) if part.role != "O" and part.kind == kind])
        opens, inside = (np.array([parts[k].role in roles for k in own]) for roles in (OPEN, INSIDE))
        found[kind] = own, opens[:, None] & inside
    return found


def chance_of(
    labels: Floats, pairs: Floats, start: int, stop: int, own: NDArray[np.intp], together: NDArray[np.bool_]
) -> float:
    """The probability of a chunk.

    Parameters
    ----------
    labels, pairs : arrays (length, K) and (length - 1, K, K)
        The probabilities of the sequence's labels, and of pairs of neighbours.
    own, together : arrays (n,) and (n, n)
        Of the chunk's type, see `labels_of_kinds`.
    """
    first = max(start - 1, 0)
    goes_on = pairs[first:stop, own[:, None], own] * together
    before = labels[first : first + len(goes_on), own, None]
    share = np.divide(goes_on, before, out=np.zeros_like(goes_on), where=before > 0.0)
    run = labels[start, own] - (goes_on[0].sum(axis=0) if start > 0 else 0.0)
    for on in share[start - first : stop - 1 - first]:
        run = run @ on
    if stop < len(labels):
        run = run * (1.0 - share[-1].sum(axis=1))
    return min(max(float(run.sum()), 0.0), 1.0)


class Runs(NamedTuple):
    """Chunks of one type and length: numbers of their sequences, begins and ends, and probabilities."""

    sequence: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    chance: NDArray[np.float64]


def runs_of(labels: Floats, goes_on: Floats, lengths: NDArray[np.int64], least: float) -> Iterator[Runs]:
    """Yield the chunks of one type with a probability of at least `least`, the shorter ones first.

    Parameters
    ----------
    labels : array (K, n, length)
        The probability of each of its labels.
    goes_on : array (K, K, n, length)
        The probability of each pair of them, of a token and the next one, that belong together; 0 for others.
    lengths : array (n,)
    least : float
    """
    run = labels.copy()
    run[:, :, 1:] -= goes_on.sum(axis=0)[..., :-1]
    entries, starts = np.nonzero(run.sum(axis=0) >= least)
    run, stops = run[:, entries, starts], starts + 1
    while len(entries):
        # share[a, b, k] is P(b | a) of the tokens after and at the end of chunk k.
        before, on = labels[:, None, entries, stops - 1], goes_on[:, :, entries, stops - 1]
        can = (stops < lengths[entries]) & (before > 0.0)
        share = np.divide(on, before, out=np.zeros(on.shape), where=can)
        chances = np.clip((run * (1.0 - share.sum(axis=1))).sum(axis=0), 0.0, 1.0)
        is_likely = chances >= least
        yield Runs(entries[is_likely], starts[is_likely], stops[is_likely], chances[is_likely])
        run = (run[:, None] * share).sum(axis=0)
        stays = run.sum(axis=0) >= least
        entries, starts, stops, run = entries[stays], starts[stays], stops[stays] + 1, run[:, stays]
