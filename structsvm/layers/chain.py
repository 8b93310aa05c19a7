"""Label chains (linear-chain CRFs): forward-backward and Viterbi on given scores.

All verbs are compiled (see potentials.h); sums, samples and the best labelling run in threads. A chain of order 2 is
one of states, pairs of neighbouring labels, and a chain under a language one of nodes, pairs of a label and a state of
the language's automaton, for order 2 with the label before: all verbs work on states, and labels are read off them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import prod
from typing import ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import Floats, Integers
from structsvm.layers._chain import Batch, are_chains, are_labels
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Structure,
    Values,
    as_narrow,
    as_outputs,
    as_parts,
    check_lengths,
    check_values,
    over_batch,
    plain_outputs,
    possible_truths,
    widened,
    without_output,
    zeros_like,
)
from structsvm.metrics._schemes import TAGGED, scheme_for, scheme_name, scheme_of
from structsvm.parameters import checked_k, checked_threads
from structsvm.structures.languages import Automaton, Rule
from structsvm.structures.languages.expressions import automaton_of, parse
from structsvm.structures.languages.nodes import Nodes, nodes_of
from structsvm.structures.languages.rules import rule_of

MAX_TABLE_BYTES = 2 << 30  # steps between the nodes of a language: their scores, and what is counted

Reduce = Callable[[Floats, int], Floats]
LabelRule: TypeAlias = str | Rule | Automaton


class Chain(Structure):
    """Labellings of B sequences of T tokens with K labels each.

    The parts are, in this order,

    - ``emissions`` (B, T, K);
    - ``transitions`` (K, K), from row to column; (B, 1, K, K), each sequence's own; or (B, T - 1, K, K), each step's;
    - ``start`` and ``end`` (K,), optional.

    With ``order=2``, ``transitions`` score three labels in a row: (K, K, K); (B, 1, K, K, K); or (B, T - 2, K, K, K). A
    fifth part is that of pairs then,

    - ``pairs`` (K, K), (B, 1, K, K) or (B, T - 1, K, K), optional.

    An output is an integer array (B, T), with -1 beyond the lengths.

    Parameters
    ----------
    order : {1, 2}, default=1
        On how many labels before it a label depends.
    language : Automaton, optional
        Labellings that there are: all others have no score, and no probability. `label_language` compiles rules and
        expressions. y of a loss must belong to it. Tables have an entry for each two pairs of a label and a state;
        ValueError where they are larger than 2 GiB.
    n_threads : int, default=1
        The batch is split among them; results are bit-identical for every number.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain
    >>> emissions, transitions = np.array([[[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> Chain().argmax(emissions, transitions).tolist()
    [[0, 0, 0]]
    >>> labels, values = Chain().kbest(emissions, transitions, k=2)
    >>> labels[0].tolist(), values[0].tolist()
    ([[0, 0, 0], [0, 1, 1]], [4.5, 4.0])
    >>> Chain().log_partition(emissions, transitions).round(2).tolist()
    [5.46]
    >>> triples = np.zeros((2, 2, 2))
    >>> triples[0, 1, 0] = 1.0
    >>> Chain(order=2).argmax(emissions, triples).tolist()
    [[0, 1, 0]]
    """

    part_names: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "start", "end", "pairs")
    is_centred: ClassVar[bool] = True

    def __init__(self, *, order: int = 1, language: Automaton | None = None, n_threads: int = 1) -> None:
        if order not in (1, 2):
            raise ValueError(f"order must be 1 or 2. Got {order!r}.")
        self.language = None if language is None else language.minimal()
        self._nodes = None if self.language is None else nodes_of(self.language, order)
        self.order, self.n_threads = order, checked_threads(n_threads)

    def check_for_sums(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        if self.order == 1 and self.language is None and are_chains(parts):
            return _shared(cast(Parts, parts), lengths, self.n_threads)
        return self.check(parts, lengths)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(Chain, parts, 2)
        if self.order == 1 and "pairs" in present:
            raise ValueError("pairs is a part of Chain(order=2); transitions score the pairs of a chain of order 1.")
        emissions = present["emissions"]
        if emissions.ndim != 3 or emissions.shape[2] == 0:
            raise ValueError(f"emissions must have shape (B, T, K), with K >= 1. Got {emissions.shape}.")
        n, longest, K = emissions.shape
        if self.language is not None and self.language.n_labels != K:
            raise ValueError(f"emissions have {K} labels, and language has {self.language.n_labels}.")
        sizes = check_lengths(lengths, n, longest)
        _check_emissions(emissions, sizes, self.n_threads)
        tables = [_steps("transitions", present["transitions"], self.order, K, sizes, longest)]
        if self.order == 2:
            pairs = present.get("pairs", np.zeros((K, K), emissions.dtype))
            tables.append(_steps("pairs", pairs, 1, K, sizes, longest))
        start, end = _edge("start", present, emissions), _edge("end", present, emissions)
        return Scores((emissions, tables[0], start, end, *tables[1:]), shapes, sizes, self.n_threads)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        emissions, found = _emissions(scores), as_outputs(y)
        n, longest, K = emissions.shape
        if found.shape != (n, longest) or found.dtype.kind not in "iu":
            raise ValueError(
                f"y must be an array of integers of shape {(n, longest)}. Got {found.dtype} {found.shape}."
            )
        inside, (narrow, is_narrow) = np.arange(longest) < scores.lengths[:, None], as_narrow(found)
        if self.language is None and is_narrow and are_labels(narrow, scores.lengths, K):
            return np.where(inside, narrow, np.int32(-1))
        bad = inside & ((found < (-1 if partly else 0)) | (found >= K))
        if bad.any():
            entry, token = np.argwhere(bad)[0].tolist()
            unknown = ", or -1 for an unknown one" if partly else ""
            raise ValueError(
                f"y must contain labels from 0 to {K - 1}{unknown}. Got {found[entry, token]} at batch entry {entry}, "
                f"token {token}; leave out what does not count by `lengths`."
            )
        labels = np.where(inside, found, -1).astype(np.int32)
        if self.language is not None:
            self._check_language(labels, scores, self.language)
        return labels

    def _check_language(self, labels: Labels, scores: Scores, language: Automaton) -> None:
        """Raise ValueError for the first labelling, of those that are whole, that the language does not have."""
        for entry, length in enumerate(scores.lengths.tolist()):
            own = labels[entry, :length].tolist()
            if own and -1 not in own and not language.accepts(own):  # no tokens have the empty one
                raise ValueError(f"y at batch entry {entry} is no labelling of the language.")

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        counts = zeros_like(scores)
        for part, places in self._places(y, scores):
            table = counts[part]
            where = np.ravel_multi_index(places, table.shape)
            if table.size > 32 * where.size:  # bincount would write all of it, and as int64
                np.add.at(table.reshape(-1), where, 1)
            else:
                table += np.bincount(where, minlength=table.size).reshape(table.shape).astype(table.dtype)
        return tuple(counts)

    def _places(self, y: Labels, scores: Scores) -> Iterator[tuple[int, tuple[Integers, ...]]]:
        """Number of each part, and where its scores of known labels stand: entries, steps and labels."""
        entries, tokens = np.nonzero(y >= 0)
        yield 0, (entries, tokens, y[entries, tokens])
        for part, order in ((1, self.order), *((part, 1) for part in range(4, len(scores.parts)))):
            entries, steps = np.nonzero(y[:, order:] >= 0)
            labels = tuple(y[entries, steps + j] for j in range(order + 1))
            yield part, (entries, steps if scores.parts[part].shape[1] != 1 else np.zeros_like(steps), *labels)
        full = np.flatnonzero(scores.lengths)
        for part, token in ((2, np.zeros_like(full)), (3, scores.lengths[full] - 1)):
            yield part, (full, y[full, token])

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        emissions = _emissions(scores)
        allowed = (y[:, :, None] < 0) | (y[:, :, None] == np.arange(emissions.shape[2]))
        masked = np.where(allowed, emissions, emissions.dtype.type(-np.inf))
        return replace(scores, parts=(np.ascontiguousarray(masked), *scores.parts[1:]), truth=None)

    def centred(self, scores: Scores, y: Labels) -> Scores:
        """In float64, less each token's score of its label, and less scores of pairs or triples: see `_less_own`."""
        emissions, transitions, start, end, *pairs = widened(scores).parts
        with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
            own = emissions - np.take_along_axis(emissions, np.maximum(y, 0)[..., None], axis=2)
            steps, *others = (_less_own(table, y) for table in (transitions, *pairs))
        return replace(scores, parts=(own, steps, start, end, *others))

    def is_known(self, y: Labels, scores: Scores) -> bool:
        return bool(np.count_nonzero(y >= 0) == scores.lengths.sum())

    def sums_less(self, scores: Scores, y: ArrayLike, *, per_entry: bool = True) -> tuple[Values, Values, Parts]:
        """In one go for each entry, where states are labels and all of y is known."""
        emissions, transitions, *_ = scores.parts
        n, longest, K = emissions.shape
        labels = plain_outputs(y, (n, longest)) if self.order == 1 and self.language is None else None
        if labels is None or not are_labels(labels, scores.lengths, K):
            return super().sums_less(scores, y, per_entry=per_entry)
        log_z, known, nodes, batch = np.empty(n), np.empty(n), np.empty_like(emissions), _batch(scores)
        added = batch.adds and not per_entry
        if added:  # in the shapes that the user's parts have
            given = (*scores.shapes[1:], None, None)
            steps, start, end = map(_like, scores.parts[1:], given)
        else:
            steps, (start, end) = _per_entry(transitions, n), np.zeros((2, n, K), nodes.dtype)
        sums = self.n_threads, log_z, nodes, steps, (start, end), labels, known, added
        if not batch.sums(*sums, looks=scores.later is not None):
            scores.settle()  # raises, unless another thread has mended the scores
            batch.sums(*sums)
        for entry in without_output(log_z)[:1]:
            raise self._no_output(entry, scores)
        return log_z, possible_truths(known), (nodes, steps, start, end)

    def values_of(self, y: Labels, scores: Scores, counts: Parts) -> Values:
        values = np.zeros(len(y))
        for part, (entries, *others) in self._places(y, scores):
            own = scores.parts[part][entries if len(scores.parts[part]) == len(y) else 0, *others]
            values += np.bincount(entries, own, minlength=len(y))
        return values

    def best(self, scores: Scores) -> Labels:
        states = self._states(scores)
        paths, batch = np.full(_emissions(states).shape[:2], -1, np.int32), _batch(states)
        for entry in over_batch(len(paths), self.n_threads, lambda first, last: batch.best(first, last, paths)):
            if entry >= 0:
                raise self._no_output(entry, scores)
        return self._labels(paths, scores)

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        each = len(scores.lengths) * scores.parts[1].itemsize if marginals else 0
        states, log_z = self._states(scores, each), np.empty(len(scores.lengths))
        nodes, steps = (_per_entry(part, len(log_z)) for part in states.parts[:2]) if marginals else (None, None)
        _batch(states).sums(self.n_threads, log_z, nodes, steps)
        if nodes is None or steps is None:
            return log_z, ()
        for entry in without_output(log_z)[:1]:
            raise self._no_output(entry, scores)
        form = _per_entry(scores.parts[1], len(log_z))
        counts = [self._per_label(nodes, scores, np.sum, 0.0), self._per_pair(steps, form)]
        counts += [np.zeros((len(log_z), *part.shape[1:]), part.dtype) for part in scores.parts[2:]]
        if self.order == 2 and self._nodes is not None:
            counts[4] = pairs_under(nodes, counts[4], self._nodes)
        elif self.order == 2:
            several = np.where(scores.lengths > 1, 1, 0).reshape(-1, 1, 1, 1).astype(nodes.dtype)
            both = several * nodes.reshape(*nodes.shape[:2], *counts[4].shape[2:])
            together = both.sum(axis=1, keepdims=True, dtype=np.float64).astype(both.dtype)
            counts[4] = together if counts[4].shape[1] == 1 else both[:, : counts[4].shape[1]]
        (full,) = scores.lengths.nonzero()
        for edge, token in ((counts[2], np.zeros_like(full)), (counts[3], scores.lengths[full] - 1)):
            edge[full] = counts[0][full, token]
        return log_z, tuple(counts)

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, scores = checked_k(k), self.check(parts, lengths)
        states = self._states(widened(scores))
        n, longest, _ = _emissions(states).shape
        paths, values = np.full((n, k, longest), -1, np.int32), np.full((n, k), -np.inf)
        _batch(states).kbest(k, paths, values)
        paths[np.isneginf(values)] = -1
        return self._labels(paths, scores), values

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        states = self._states(widened(scores), 8 * len(scores.parts[1]))  # and in reverse
        there, (rows, _, start, end) = states.lengths > 0, states.parts
        before, after = (np.full(rows.shape, -np.inf) for _ in range(2))
        _batch(states).reached(before)
        _batch(_reversed(states)).reached(after)
        own = rows.copy()
        with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
            own[:, :1] += start
        own[there, states.lengths[there] - 1] += end[0]
        before += _turned(after, states) - np.where(np.isneginf(own), 0.0, own)
        before[np.arange(rows.shape[1]) >= states.lengths[:, None]] = -np.inf
        return self._per_label(before, scores, np.max, -np.inf).astype(np.float64, copy=False)

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        states = self._states(scores, 0, 40)
        n, longest, _ = _emissions(states).shape
        paths, batch = np.full((n, n_samples, longest), -1, np.int32), _batch(states)
        for entry in over_batch(n, self.n_threads, lambda first, last: batch.draws(first, last, generators, paths)):
            if entry >= 0:
                raise self._no_output(entry, scores)
        return self._labels(paths, scores)

    def _no_output(self, entry: int, scores: Scores) -> NoOutput:
        """The error of an entry without a labelling, which says whether the language has none of its length."""
        length = scores.lengths[[entry]]
        if self.language is None or (found := self.language.impossible_length(length)) is None:
            return NoOutput(entry)
        return NoOutput(entry, f"the language has no labelling of length {length[0]} ({found[1]}).")

    # ---- states: labels, or with order 2 pairs (a, q), numbered a K + q, at the second one's token less 1 ----------
    # A single token's label q is the state (0, q).

    def _states(self, scores: Scores, each: int = 0, once: int = 0) -> Scores:
        """The same scores as those of a chain of order 1, whose states K others may follow (see potentials.h).

        Beside them a verb needs so many bytes for each pair of nodes of a language: at each step, and once.
        """
        if self._nodes is not None:
            check_tables(scores, len(self._nodes.labels), each, once)
            return nodes_under(scores, self._nodes)
        if self.order == 1:
            return scores
        emissions, triples, start, end, pairs = scores.parts
        n, longest, K = emissions.shape
        nodes = np.full((n, max(longest - 1, min(longest, 1)), K, K), -np.inf, emissions.dtype)
        several, single = np.flatnonzero(scores.lengths > 1), np.flatnonzero(scores.lengths == 1)
        if longest > 1:
            with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
                nodes[:] = emissions[:, 1:, None] + pairs
                nodes[:, 0] += (emissions[:, 0] + start)[:, :, None]
            nodes[several, scores.lengths[several] - 2] += end[:, None]
        if longest:
            nodes[single, 0] = -np.inf
            nodes[single, 0, 0] = emissions[single, 0] + start + end
        edge, flat = np.zeros((1, K * K), emissions.dtype), nodes.reshape(*nodes.shape[:2], K * K)
        tables = triples.reshape(*triples.shape[:2], K * K, K)
        return Scores((flat, tables, edge, edge), scores.shapes, np.maximum(scores.lengths - 1, scores.lengths > 0))

    def _labels(self, paths: Labels, scores: Scores) -> Labels:
        """Labellings (B, ..., T) of paths of states."""
        if self._nodes is not None:
            return np.where(paths < 0, -1, self._nodes.labels[paths]).astype(np.int32)
        if self.order == 1:
            return paths
        _, longest, K = _emissions(scores).shape
        y = np.full((*paths.shape[:-1], longest), -1, np.int32)
        lengths = scores.lengths.reshape(-1, *[1] * (paths.ndim - 1))
        if longest:
            y[..., 1:] = np.where(paths < 0, -1, paths % K)[..., : longest - 1]
            y[..., :1] = np.where(lengths == 1, paths[..., :1], paths[..., :1] // K)
        return np.where(np.arange(longest) < lengths, y, -1).astype(np.int32)

    def _per_label(self, nodes: Floats, scores: Scores, reduce: Reduce, nothing: float) -> Floats:
        """Reduce what is known of states (B, T', S) to labels (B, T, K); `nothing` beyond the lengths."""
        if self._nodes is not None:
            own = np.full(_emissions(scores).shape, nothing, nodes.dtype)
            for label in np.unique(self._nodes.labels).tolist():
                own[:, :, label] = reduce(nodes[:, :, self._nodes.labels == label], 2)
            return own
        if self.order == 1:
            return nodes
        n, longest, K = _emissions(scores).shape
        both, own = nodes.reshape(*nodes.shape[:2], K, K), np.empty((n, longest, K), nodes.dtype)
        if longest:
            own[:, 1:] = reduce(both, 2)[:, : longest - 1]
            own[:, 0] = np.where(scores.lengths[:, None] == 1, both[:, 0, 0], reduce(both[:, 0], 2))
        own[np.arange(longest) >= scores.lengths[:, None]] = nothing
        return own

    def _per_pair(self, steps: Floats, table: Floats) -> Floats:
        """Add up what is expected of steps between states to pairs, or triples, of labels, in the form of `table`."""
        if self._nodes is None:
            return steps.reshape(table.shape)
        first, then, places = scored(self._nodes, self.order, table.shape[-1])
        order, starts, where = gathered(places, table)
        flat = steps.reshape(*steps.shape[:2], steps.shape[2] * steps.shape[3])
        taken = flat.take(first[order] * steps.shape[3] + then[order], axis=2)
        if self.order == 2 and table.shape[1] != 1:
            taken = taken[:, 1:]
        return put(np.add.reduceat(taken, starts, axis=2), where, table)


def links(nodes: Nodes) -> tuple[Integers, Integers]:
    """The steps that there are between nodes: the numbers of those that come first, and of those that follow."""
    first, labels = np.nonzero(nodes.following[nodes.group] >= 0)
    return first, nodes.following[nodes.group[first], labels].astype(np.intp)


def scored(nodes: Nodes, order: int, K: int) -> tuple[Integers, Integers, tuple[Integers, ...]]:
    """The links that transitions score, and the labels that they are scored by."""
    (first, then), before = links(nodes), earlier(nodes, order, K)
    if order == 2:
        known = before[first] >= 0
        first, then = first[known], then[known]
    return first, then, (before[first], nodes.labels[first], nodes.labels[then])[2 - order :]


def gathered(places: tuple[Integers, ...], table: Floats) -> tuple[Integers, Integers, Integers]:
    """An order in which those of the same labels stand together, where each group starts, and its place in a table."""
    keys = np.ravel_multi_index(places, table.shape[2:])
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    return order, starts, keys[order][starts]


def put(sums: Floats, where: Integers, table: Floats) -> Floats:
    """A table of zeros but for sums (B, T, n) at some places of its last axes."""
    own = np.zeros((*table.shape[:2], prod(table.shape[2:])), table.dtype)
    own[:, :, where] = sums
    return own.reshape(table.shape)


def earlier(nodes: Nodes, order: int, K: int) -> Integers:
    """The label before each node's own, of a chain of order 2; -1 at the first token, and for order 1."""
    if order == 1:
        return np.full(len(nodes.labels), -1)
    found: Integers = nodes.rows % (K + 1)
    return np.where(found < K, found, -1)


def pairs_under(probabilities: Floats, table: Floats, nodes: Nodes) -> Floats:
    """Expected pairs of labels in the form of `table`, from the probabilities of nodes (B, T, n_nodes)."""
    before, after = earlier(nodes, 2, table.shape[-1]), probabilities[:, 1:]
    known = np.flatnonzero(before >= 0)
    order, starts, where = gathered((before[known], nodes.labels[known]), table)
    if table.shape[1] == 1:
        after = after.sum(axis=1, keepdims=True)
    return put(np.add.reduceat(after.take(known[order], axis=2), starts, axis=2), where, table)


def nodes_under(scores: Scores, nodes: Nodes) -> Scores:
    """Scores of labels as those of the nodes of a language, which have them: -inf where it allows no step."""
    emissions, transitions, start, end = scores.parts[:4]
    labels, dtype = nodes.labels, emissions.dtype.type
    nothing, order, K = dtype(-np.inf), len(transitions.shape) - 3, emissions.shape[2]
    own = np.ascontiguousarray(emissions[:, :, labels])
    if order == 2:
        before = earlier(nodes, order, K)
        with np.errstate(invalid="ignore"):  # beyond the lengths stands anything
            own[:, 1:] += np.where(before >= 0, scores.parts[4][..., before, labels], dtype(0))
    n_steps, N = steps_under(transitions), len(labels)
    steps = np.full((len(transitions), n_steps, N, N), nothing)
    first, then = links(nodes)
    steps[:, :, first, then] = 0
    first, then, places = scored(nodes, order, K)
    flat = transitions.reshape(*transitions.shape[:2], prod(transitions.shape[2:]))
    where = np.ravel_multi_index(places, transitions.shape[2:])
    steps[:, n_steps - transitions.shape[1] :, first, then] = flat.take(where, axis=2)
    begin = np.where(nodes.first[labels] == np.arange(N), start[:, labels], nothing)
    last = np.where(nodes.ends > 0, end[:, labels], nothing)
    return Scores((own, steps, *map(np.ascontiguousarray, (begin, last))), scores.shapes, scores.lengths)


def steps_under(transitions: Floats) -> int:
    """How many tables of steps between nodes there are of an entry: no triple ends with the first step of order 2."""
    return transitions.shape[1] + (transitions.ndim == 5 and transitions.shape[1] != 1)


def check_tables(scores: Scores, n_nodes: int, each: int, once: int) -> None:
    """Raise ValueError where tables of all pairs of nodes are too large; `_states` has the numbers of bytes."""
    transitions = scores.parts[1]
    size = n_nodes**2 * (steps_under(transitions) * (transitions.itemsize * len(transitions) + each) + once)
    if size > MAX_TABLE_BYTES:
        raise ValueError(
            f"language has {n_nodes} pairs of labels and states: {len(scores.lengths)} sequences of up to "
            f"{scores.parts[0].shape[1]} tokens need tables of {size} bytes, more than {MAX_TABLE_BYTES}. Leave rules "
            "out, take smaller batches, or transitions that all steps share."
        )


def scheme_masks(labels: Sequence[str], scheme: str) -> tuple[Floats, Floats, Floats]:
    """Return the masks of a labelling scheme: `transitions`, `start` and `end`, 0 or -inf, to add to those of a chain.

    Parameters
    ----------
    labels : sequence of str
        The names of labels 0 .. K - 1; tags with types, as in "B-PER", "B_PER" or "PER-B", and "O".
    scheme : str
        bio, bioes, bilou, bmes, bmewo, iob1, ioe1, ioe2 or io, also by other orders of their letters (IOB2).

    Returns
    -------
    transitions, start, end : float32 arrays (K, K), (K,) and (K,)

    Raises
    ------
    ValueError
        The scheme is unknown, or a label is none of it.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, scheme_masks
    >>> labels = ["O", "B-PER", "I-PER"]
    >>> emissions = np.array([[[0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]])
    >>> best = Chain().argmax(emissions, *scheme_masks(labels, "bio"))
    >>> [labels[k] for k in best[0]]
    ['B-PER', 'I-PER']
    """
    transitions, start, end = (
        np.where(allowed, 0.0, -np.inf).astype(np.float32) for allowed in scheme_for(labels, scheme).masks(labels)
    )
    return transitions, start, end


def label_language(labels: Sequence[str], *constraints: LabelRule | list[LabelRule]) -> Automaton:
    """Return the labellings that meet rules and expressions, for `Chain`; see "Valid by construction" in the docs.

    Parameters
    ----------
    labels : sequence of str
        The names of labels 0 .. K - 1.
    constraints : str, Rule or Automaton, or lists of them
        A rule such as `structsvm.structures.languages.at_most_once`, as an object or as text, a regular expression
        over labels, the name of a labelling scheme, or an automaton. All of them hold.

    Raises
    ------
    ValueError
        A constraint names no label, no labelling meets them, or their automaton is too large.
    TypeError
        A constraint is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Chain, label_language
    >>> once = label_language(["street", "city"], "at_most_once(street, city)")
    >>> scores = np.array([[[1.0, 0.0], [0.0, 1.5], [1.0, 0.0]]])
    >>> Chain(language=once).argmax(scores, np.zeros((2, 2))).tolist()
    [[0, 1, 1]]
    """
    names = [str(label) for label in labels]
    found = Automaton.of_masks(None, None, None, n_labels=len(names))
    for part in chain.from_iterable(one if isinstance(one, list) else [one] for one in constraints):
        for own in _languages_of(part, names):
            found &= own
            if found.is_empty:
                raise ValueError(f"no labelling meets {part} and what is before it")
    return found.minimal()


def _languages_of(part: LabelRule, names: list[str]) -> list[Automaton]:
    """The languages of a constraint, all of which hold."""
    if isinstance(part, Automaton):
        if part.n_labels != len(names):
            raise ValueError(f"the automaton has {part.n_labels} labels, labels {len(names)}")
        return [part]
    if isinstance(part, str) and scheme_name(part) is not None and part not in names:
        return [Automaton.of_masks(*scheme_for(names, part).masks(names), n_labels=len(names))]
    rule = rule_of(part, names) if isinstance(part, str) else part
    if rule is None:
        return [automaton_of(parse(str(part), names), len(names))]
    if not isinstance(rule, Rule):
        raise TypeError(f"a constraint is a text, a Rule or an Automaton, got {type(part).__name__}")
    tagged = {name for name in names if TAGGED.fullmatch(name)} | {"O"}
    scheme = scheme_of(sorted(tagged))
    roles = [scheme.part(name) if scheme is not None and name in tagged else None for name in names]
    return [one.automaton(names, roles) for one in rule.each()]


def _emissions(scores: Scores) -> Floats:
    return scores.parts[0]


def _batch(states: Scores) -> Batch:
    emissions, transitions, start, end = states.parts
    return Batch(emissions, transitions, start, end, states.lengths)


def _shared(parts: Parts, lengths: ArrayLike | None, n_threads: int) -> Scores:
    """Scores of parts that `are_chains`, whose emissions are yet to be looked at."""
    emissions, transitions, *edges = parts
    n, longest, K = emissions.shape
    sizes, rows = check_lengths(lengths, n, longest), [edge.reshape(1, K) for edge in edges]
    while len(rows) < 2:
        rows.append(np.zeros((1, K), emissions.dtype))
    own, shapes = (emissions, transitions.reshape(1, 1, K, K), *rows), tuple([part.shape for part in parts])
    return Scores(own, shapes, sizes, n_threads, None, lambda: _check_emissions(emissions, sizes, n_threads))


def _check_emissions(emissions: Floats, sizes: NDArray[np.int64], n_threads: int) -> None:
    longest = emissions.shape[1]
    check_values("emissions", emissions, lambda: np.arange(longest) < sizes[:, None], n_threads=n_threads)


def _steps(name: str, table: Floats, order: int, K: int, sizes: NDArray[np.int64], longest: int) -> Floats:
    """A checked table of the scores of order + 1 labels in a row, with axes for entries and steps."""
    shape, n = (K,) * (order + 1), len(sizes)
    if table.shape == shape:
        check_values(name, table, is_batch=False)
        return table.reshape(1, 1, *shape)
    fitting = (n, 1, *shape), (n, max(longest - order, 0), *shape)
    if table.shape not in fitting:
        raise ValueError(f"{name} must have shape {shape}, {fitting[0]} or {fitting[1]}. Got {table.shape}.")
    check_values(name, table, lambda: np.arange(table.shape[1]) < sizes[:, None] - order)
    return table


def _less_own(table: Floats, y: Labels) -> Floats:
    """Steps less their scores of y; where all steps have one table, less its greatest score."""
    order, (n, longest) = table.ndim - 3, y.shape
    if table.shape[:2] == (n, longest - order):
        labels = (np.maximum(y, 0)[:, j : longest - order + j] for j in range(order + 1))
        off: Floats = table[np.arange(n)[:, None], np.arange(longest - order), *labels]
    else:
        off = table.reshape(*table.shape[:2], prod(table.shape[2:])).max(axis=2)
    off = np.where(np.isneginf(off), 0.0, off)
    return np.ascontiguousarray(table - off.reshape(*off.shape, *[1] * (order + 1)))


def _per_entry(part: Floats, n: int) -> Floats:
    """An array like a part, with each of the n entries' own, whose values are to be written."""
    return np.empty((n, *part.shape[1:]), part.dtype)


def _like(part: Floats, shape: tuple[int, ...] | None) -> Floats:
    """An array for the gradient of a part that all entries share, whose values are to be written."""
    return np.empty(part.shape if shape is None else shape, part.dtype)


def _edge(name: str, present: dict[str, Floats], emissions: Floats) -> Floats:
    """Checked scores (1, K) of the first or the last labels, 0 where they were left out."""
    K, edge = emissions.shape[2], present.get(name)
    if edge is None:
        return np.zeros((1, K), emissions.dtype)
    if edge.shape != (K,):
        raise ValueError(f"{name} must have shape ({K},). Got {edge.shape}.")
    check_values(name, edge, is_batch=False)
    return edge.reshape(1, K)


def _backwards(array: Floats, sizes: NDArray[np.int64]) -> Floats:
    """The first rows of each entry (B, T, ...), so many, in reverse order; others are of no use."""
    if not array.shape[1]:
        return array
    places = (sizes[:, None] - 1 - np.arange(array.shape[1])) % array.shape[1]
    return array[np.arange(len(array))[:, None], places]


def _turned(rows: Floats, states: Scores) -> Floats:
    """Numbers (B, T, S) of the states of each token in reverse: (x, g) becomes (g, x) (see potentials.h)."""
    K = states.parts[1].shape[3]
    pairs = _backwards(rows, states.lengths).reshape(*rows.shape[:2], K, rows.shape[2] // K)
    return np.ascontiguousarray(pairs.swapaxes(2, 3)).reshape(rows.shape)


def _reversed(states: Scores) -> Scores:
    """Scores of the sequences in reverse. (q, g) comes before (g, x) there, as (x, g) before (g, q) here."""
    rows, steps, start, end = states.parts
    n, n_steps, S, K = steps.shape
    if n_steps > 1:
        steps = _backwards(steps, states.lengths - 1)
    steps = steps.reshape(n, n_steps, K, S // K, K).swapaxes(2, 4)
    edges = (edge.reshape(-1, K, S // K).swapaxes(1, 2).reshape(edge.shape) for edge in (end, start))
    parts = (_turned(rows, states), steps.reshape(n, n_steps, S, K), *edges)
    return replace(states, parts=tuple(map(np.ascontiguousarray, parts)))
