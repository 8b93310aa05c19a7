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

from typing import TYPE_CHECKING

import numpy as np

from structsvm.tasks.sequence.chances import INSIDE, OPEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.features.tokens import Tokens
    from structsvm.metrics._schemes import Part
    from structsvm.oracles.viterbi import ViterbiOracle

# Numbers of pairs of labels, of the tokens of sequences side by side.
MOST_PAIRS = 1 << 22


def is_markov(oracle: object) -> bool:
    """Whether a chain has scores of single labels and of neighbouring ones alone, and masks at most."""
    has_more = getattr(oracle, "language", None) is not None or bool(getattr(oracle, "rules", ()))
    return getattr(oracle, "order", 0) == 1 and hasattr(oracle, "padding_row") and not has_more


def summed(rows: Floats, tokens: Tokens) -> NDArray[np.float64]:
    """Sums of the rows of weights of each token's features."""
    taken = rows[tokens.indices].astype(np.float64)
    if tokens.values is not None:
        taken *= tokens.values.reshape(-1, *[1] * (rows.ndim - 1))
    found = np.zeros((tokens.n_tokens, *rows.shape[1:]))
    full = np.flatnonzero(np.diff(tokens.indptr))
    if len(full):
        found[full] = np.add.reduceat(taken, tokens.indptr[full], axis=0)
    return found


def padded(rows: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows of tokens by sequence, with zeros beyond the lengths."""
    lengths = np.diff(offsets)
    found = np.zeros((len(lengths), int(lengths.max()), *rows.shape[1:]))
    found[np.arange(found.shape[1]) < lengths[:, None]] = rows
    return found


def scores_of(oracle: ViterbiOracle, weights: Floats, tokens: Tokens) -> list[NDArray[np.float64]]:
    """Scores for `structsvm.layers.Chain`: emissions, transitions, start and end."""
    K, first = oracle.n_labels, oracle.n_token_features
    rows = np.asarray(weights).reshape(-1, oracle.stride)[:, :K]
    edges = rows[first : first + K + 2].astype(np.float64)
    if not oracle.end:
        edges[K + 1] = 0.0
    for mask, part in zip(oracle.allowed, (edges[:K], edges[K], edges[K + 1]), strict=True):
        if mask is not None:
            part[~mask] = -np.inf
    emissions = padded(summed(rows[:first], tokens), tokens.offsets)
    transitions = np.zeros((*emissions.shape[:2], K, K))
    if tokens.bigrams is not None and oracle.n_bigrams:
        own = rows[oracle.first_bigram_row :].reshape(oracle.n_bigrams, K, K)
        transitions = padded(summed(own, tokens.bigrams), tokens.offsets)
    return [emissions, transitions[:, 1:] + edges[:K], edges[K], edges[K + 1]]


def batches(tokens: Tokens, K: int) -> Iterator[tuple[int, int]]:
    """First and last sequences, so that several together have no more than `MOST_PAIRS` pairs of labels."""
    first, longest = 0, 0
    for i, length in enumerate(tokens.lengths.tolist()):
        longest = max(longest, length)
        if i > first and (i + 1 - first) * longest * K * K > MOST_PAIRS:
            yield first, i
            first, longest = i, length
    if len(tokens):
        yield first, len(tokens)


def likely_chunks(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens, parts: Sequence[Part], least: float
) -> list[list[tuple[int, int, str, float]]]:
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
    found: list[list[tuple[int, int, str, float]]] = [[] for _ in range(len(tokens))]
    for a, lengths, labels, pairs in marginals_of(oracle, weights, tokens):
        for i, start, stop, kind, chance in chunks_in(labels, pairs, lengths, parts, least):
            found[a + i].append((start, stop, kind, chance))
    return [sorted(own, key=lambda span: (*span[:2], str(span[2]))) for own in found]


def marginals_of(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the first of some sequences, their lengths, and the probabilities of labels and of pairs of neighbours."""
    from structsvm.layers import Chain  # scipy comes with it

    for a, b in batches(tokens, oracle.n_labels):
        own = tokens[a:b]
        emissions, *edges = scores_of(oracle, weights, own)
        marginals = Chain().marginals(emissions, *edges, lengths=own.lengths)
        labels, pairs = (np.asarray(part, dtype=np.float64) for part in marginals[:2])
        yield a, own.lengths, labels, pairs


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


def chunks_in(
    labels: Floats, pairs: Floats, lengths: NDArray[np.int64], parts: Sequence[Part], least: float
) -> Iterator[tuple[int, int, int, str, float]]:
    """Yield the sequence, begin, end, type and probability of each chunk with a probability of at least `least`.

    Parameters
    ----------
    labels : array (n, length, K)
        The probability of each label.
    pairs : array (n, length - 1, K, K)
        The probability of each pair of neighbouring labels.
    lengths : array (n,)
    parts, least : as of `likely_chunks`
    """
    for kind, (own, together) in sorted(labels_of_kinds(parts).items(), key=lambda entry: str(entry[0])):
        yield from runs_of(kind, labels[:, :, own], pairs[:, :, own][..., own] * together, lengths, least)


def runs_of(
    kind: str, labels: Floats, goes_on: Floats, lengths: NDArray[np.int64], least: float
) -> Iterator[tuple[int, int, int, str, float]]:
    """Yield the probable chunks of one type, the shorter ones first.

    `goes_on` are the probabilities of pairs of its labels that belong together, 0 for others.
    """
    run = labels.copy()
    run[:, 1:] -= goes_on.sum(axis=2)
    entries, starts = np.nonzero(run.sum(axis=2) >= least)
    run, stops = run[entries, starts], starts + 1
    share = np.divide(goes_on, labels[:, :-1, :, None], out=np.zeros_like(goes_on), where=labels[:, :-1, :, None] > 0.0)
    while len(entries):
        is_last = stops == lengths[entries]
        at = entries, np.minimum(stops - 1, max(share.shape[1] - 1, 0))
        on = share[at] if share.shape[1] else np.zeros((len(entries), *share.shape[2:]))
        on[is_last] = 0.0
        chances = np.clip((run * (1.0 - on.sum(axis=2))).sum(axis=1), 0.0, 1.0)
        for k in np.flatnonzero(chances >= least).tolist():
            yield int(entries[k]), int(starts[k]), int(stops[k]), kind, float(chances[k])
        run = np.einsum("na,nab->nb", run, on)
        stays = run.sum(axis=1) >= least
        entries, starts, stops, run = entries[stays], starts[stays], stops[stays] + 1, run[stays]
