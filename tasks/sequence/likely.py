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
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from structsvm.tasks.sequence.chains import nothing_left
from structsvm.tasks.sequence.chances import INSIDE, OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.features.tokens import Tokens
    from structsvm.metrics._schemes import Part
    from structsvm.oracles.chain import LabelChain
    from structsvm.oracles.viterbi import ViterbiOracle
    from structsvm.tasks.sequence.examples import Span

# The labels of a type of chunks, and which pairs of these belong together.
Group: TypeAlias = "tuple[NDArray[np.intp], NDArray[np.bool_]]"
# Numbers of pairs of labels, of the tokens of sequences side by side.
MOST_PAIRS = 1 << 20
# Numbers of labels of tokens whose chunks are followed together: with what is counted they stay in a cache.
MOST_TOGETHER = 1 << 18


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
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens, chosen: NDArray[np.int64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores of neighbouring labels, (1, 1, K, K); with features of pairs those of each token but the first of each."""
    K, own = oracle.n_labels, tokens.take(chosen)
    if own.bigrams is None or not oracle.n_bigrams:
        return edges[None, None]
    rows = np.asarray(weights).reshape(-1, oracle.stride)[oracle.first_bigram_row :, :K]
    pairs = summed(rows.reshape(oracle.n_bigrams, K, K), own.bigrams)
    return padded(pairs, own.offsets, np.arange(len(own)))[:, 1:] + edges


def batches(tokens: Tokens, K: int) -> Iterator[NDArray[np.int64]]:
    """Sequences of similar lengths, so that several together have no more than `MOST_PAIRS` pairs of labels.

    They come from one run of sequences after another, with about `MOST_TOGETHER` labels of tokens each.
    """
    starts = np.searchsorted(tokens.offsets, np.arange(0, tokens.n_tokens, MOST_TOGETHER // K + 1))
    for a, b in pairwise(np.unique(np.append(starts, len(tokens))).tolist()):
        order, first = a + np.argsort(tokens.lengths[a:b], kind="stable"), 0
        for k, length in enumerate(tokens.lengths[order].tolist()):
            if k > first and (k + 1 - first) * length * K * K > MOST_PAIRS:
                yield order[first:k]
                first = k
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
    own = [groups[kind] for kind in kinds]
    steps = (steps_of(*found, own) for found in marginals_of(oracle, weights, tokens))
    found = [Chunks.of_lists([]), *(chunks_of(some, own, kinds, least) for some in together(steps))]
    sizes = np.concatenate([np.diff(chunks.offsets) for chunks in found])
    columns = zip(*((some.start, some.stop, some.kind, some.chance) for some in found), strict=True)
    start, stop, kind, chance = map(np.concatenate, columns)
    return Chunks(np.append(0, np.cumsum(sizes)), start, stop, kind, chance, kinds)


def chunks_of(some: Steps, groups: Sequence[Group], kinds: Sequence[str], least: float) -> Chunks:
    """The chunks of sequences that follow one another, by place, the shorter ones first.

    How many begin at each token says where each chunk goes.
    """
    bounds, order = np.append(0, np.cumsum(some.lengths)), np.argsort(some.sequences)
    sorted_bounds = np.append(0, np.cumsum(some.lengths[order]))
    shift = np.empty_like(order)
    shift[order] = sorted_bounds[:-1] - bounds[order]
    tokens = np.arange(bounds[-1]) + np.repeat(shift, some.lengths)
    found = sorted(runs_of(some, groups, least), key=lambda runs: (runs.length, runs.kind))
    counts = np.bincount(tokens[np.concatenate([runs.start for runs in found])], minlength=len(tokens))
    ends = np.append(0, np.cumsum(counts))
    start, stop, kind = (np.empty(ends[-1], dtype=np.int64) for _ in range(3))
    chance, free = np.empty(ends[-1]), ends[:-1].copy()
    for runs in found:
        first = tokens[runs.start]
        at = free[first]
        free[first] += 1
        start[at], stop[at], kind[at], chance[at] = first, first + runs.length, runs.kind, runs.chance
    offsets = ends[sorted_bounds]
    before = np.repeat(sorted_bounds[:-1], np.diff(offsets))
    return Chunks(offsets, start - before, stop - before, kind, chance, kinds)


def marginals_of(
    oracle: ViterbiOracle, weights: Floats, tokens: Tokens
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield some sequences, their lengths, and the probabilities of labels and of pairs of neighbours."""
    from structsvm.layers._chain import Batch

    rows = np.asarray(weights).reshape(-1, oracle.stride)[: oracle.n_token_features, : oracle.n_labels]
    emissions, (edges, start, end) = summed(rows, tokens), edges_of(oracle, weights)
    for chosen in batches(tokens, oracle.n_labels):
        lengths, scores = tokens.lengths[chosen], padded(emissions, tokens.offsets, chosen)
        moves = transitions_of(oracle, weights, tokens, chosen, edges)
        log_sums, labels = np.empty(len(lengths)), np.empty_like(scores)
        pairs = np.empty((*scores.shape[:1], scores.shape[1] - 1, *edges.shape))
        batch = Batch(scores, moves, start[None], end[None], lengths, apart=True)
        batch.sums(1, log_sums, labels, pairs)
        for i in np.flatnonzero(~np.isfinite(log_sums))[:1].tolist():
            raise nothing_left(oracle, int(chosen[i]), int(lengths[i]))
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


def labels_of_kinds(parts: Sequence[Part]) -> dict[str, Group]:
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


class Steps(NamedTuple):
    """The tokens of some sequences side by side.

    Attributes
    ----------
    sequences, lengths : int64 arrays (n_sequences,)
        Their numbers, and those of their tokens.
    labels : array (n_labels, n_tokens)
        The probability of each label.
    moves : array (n_moves, n_tokens)
        The probability of two labels of a type that belong together, of a token and the next one: type by type, as
        `labels_of_kinds` has them. 0 at the last token of a sequence.
    """

    sequences: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: NDArray[np.float64]
    moves: NDArray[np.float64]


def steps_of(
    chosen: NDArray[np.int64],
    lengths: NDArray[np.int64],
    labels: NDArray[np.float64],
    pairs: NDArray[np.float64],
    groups: Sequence[Group],
) -> Steps:
    """The tokens of some sequences, from what `marginals_of` yields."""
    is_there = np.arange(labels.shape[1]) < lengths[:, None]
    links = [(own[a], own[b]) for own, together in groups for a, b in np.argwhere(together).tolist()]
    moves = np.zeros((len(links), *is_there.shape))
    for move, (a, b) in zip(moves, links, strict=True):
        move[:, :-1] = pairs[:, :, a, b]
    return Steps(chosen, lengths, labels[is_there].T, moves[:, is_there])


def together(steps: Iterable[Steps]) -> Iterator[Steps]:
    """Join the steps of each run of sequences: see `batches`."""
    some, n, last = list[Steps](), 0, 0
    for one in steps:
        some.append(one)
        n, last = n + len(one.sequences), max(last, int(one.sequences.max()))
        if n == last + 1:
            yield Steps(*(np.concatenate(column, axis=-1) for column in zip(*some, strict=True)))
            some = []


class Runs(NamedTuple):
    """Chunks of one type and length: the tokens at which they begin, and their probabilities."""

    length: int
    kind: int
    start: NDArray[np.intp]
    chance: NDArray[np.float64]


def runs_of(some: Steps, groups: Sequence[Group], least: float) -> Iterator[Runs]:
    """Yield the chunks with a probability of at least `least`, of each type the shorter ones first."""
    none, row = np.empty(0, dtype=np.intp), 0
    yield Runs(0, 0, none, np.empty(0))
    for kind, (own, together) in enumerate(groups):
        links = np.argwhere(together)
        chances = runs_of_kind(some.labels[own], some.moves[row : row + len(links)], links, least)
        row += len(links)
        yield from (Runs(length, kind, *found) for length, found in enumerate(chances, 1))


def runs_of_kind(
    labels: NDArray[np.float64], moves: NDArray[np.float64], links: NDArray[np.intp], least: float
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Yield where chunks of one token begin, of two, and so on, and their probabilities.

    Parameters
    ----------
    labels, moves : arrays (n_labels, n) and (n_links, n)
        As `Steps` has them, of the type alone. `moves` is overwritten.
    links : array (n_links, 2)
        The labels of each move.
    least : float
    """
    pairs, goes_in, goes_on = links.tolist(), np.zeros_like(labels), np.zeros_like(labels)
    for move, (a, b) in zip(moves, pairs, strict=True):
        goes_in[b, 1:] += move[:-1]
        move[:] = np.divide(move, labels[a], out=np.zeros_like(move), where=labels[a] > 0.0)  # P(b | a) from here on
        goes_on[a] += move
    run, ends = labels - goes_in, 1.0 - goes_on
    at = starts = np.flatnonzero(run.sum(axis=0) >= least)
    run = run[:, starts]
    while len(at):
        chances = np.clip((run * ends.take(at, axis=1)).sum(axis=0), 0.0, 1.0)
        is_likely, after = np.flatnonzero(chances >= least), np.zeros_like(run)
        yield starts.take(is_likely), chances.take(is_likely)
        for move, (a, b) in zip(moves, pairs, strict=True):
            after[b] += run[a] * move.take(at)
        stays = np.flatnonzero(after.sum(axis=0) >= least)
        starts, at, run = starts.take(stays), at.take(stays) + 1, after.take(stays, axis=1)
