"""Dependency trees with labelled arcs: what the projective oracle and the one for any tree share."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import count, islice
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.features.dense import padded
from structsvm.oracles.dependency._dependency import ArcDecoder, DependencyProblem
from structsvm.parameters import NONE, Interval, Kind, Options, check_arguments, checked_k
from structsvm.protocol import Oracle, Penalty, Rescaling, checked_weights
from structsvm.structures.dependencies import what_is_no_tree

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

MOST_BITS = 28


class DependencyOracle(Oracle):
    """Dependency trees with one word below the root, scored by their labelled arcs.

    An input x is an int32 array (n_words, n_columns) of codes, all of them at least 2; an output y an int32 array
    (n_words, 2) of heads (0: the root, k: the k-th word) and label ids. In a partly known output, -1 means
    unknown. The joint feature is the sum over words m with head h and label l of

        sum_t e[hash(t, h, m)] + sum_r e[hash(r, h, m), l]

    for the arc templates t and the label templates r of `templates`. Features are hashed, to 2**arc_bits numbers and
    2**row_bits rows of labels. Templates of vectors have rows of their own after those, a row per number x_d of the
    vector, and add ``sum_d x_d e[row + d, l]``; the numbers stand in `x` after the codes, as the bits of float32.

    Parameters
    ----------
    n_labels : int
    templates : ArcTemplates
    arc_bits, row_bits : int
        At most 28, and such that there are fewer than 2**31 weights.
    root_label : int, optional
        The label of the arc from the root, which no other arc may have. None: any arc may have any label.
    loss : {"hamming", "log"}, default="hamming"
        The number of words with a wrong head or a wrong label. "log": the same where a loss is needed, but for training
        by `structsvm.solvers.ConditionalLikelihood`.

    Attributes
    ----------
    projective : bool
        Whether no arcs cross. True trees may still have crossing arcs: no output then has loss 0.
    n_features : int
        ``2**arc_bits + (2**row_bits + templates.n_number_rows) * stride``
    stride : int
        `n_labels`, as a multiple of 8.

    Notes
    -----
    Exact for the margin with linear slacks, as the loss is a sum over words; `EisnerOracle` for the other formulations,
    too. Of all trees, the best one with so many wrong words is a constrained arborescence, for which no polynomial
    algorithm without chance is known: `ArborescenceOracle` refuses them. Weights are float32.
    """

    rescalings: tuple[Rescaling, ...] = ("margin",)
    penalties: tuple[Penalty | None, ...] = ("linear",)
    projective: ClassVar[bool]

    def __init__(
        self,
        n_labels: int,
        templates: ArcTemplates,
        *,
        arc_bits: int = 20,
        row_bits: int = 15,
        root_label: int | None = None,
        loss: str = "hamming",
    ) -> None:
        check_arguments(
            type(self).__name__,
            locals(),
            n_labels=Interval(Integral, 1, 2**20, closed="both"),
            templates=Kind(ArcTemplates, "ArcTemplates"),
            arc_bits=Interval(Integral, 1, MOST_BITS, closed="both"),
            row_bits=Interval(Integral, 1, MOST_BITS, closed="both"),
            root_label=(Interval(Integral, 0, n_labels - 1, closed="both"), NONE),
            loss=Options("hamming", "log"),
        )
        if root_label is not None and n_labels == 1:
            raise ValueError("The 'root_label' parameter must be None where there is only one label")
        self.n_labels, self.templates, self.loss_name = int(n_labels), templates, loss
        self.arc_bits, self.row_bits = int(arc_bits), int(row_bits)
        self.root_label = None if root_label is None else int(root_label)
        self.stride = padded(self.n_labels)
        self.n_features = 2**self.arc_bits + (2**self.row_bits + templates.n_number_rows) * self.stride
        if self.n_features >= 2**31:
            raise ValueError(f"{self.n_features} weights are more than 2**31; take fewer arc_bits or row_bits")

    @property
    def identity(self) -> list[AnyArray]:
        """Arrays that distinguish joint features from those of others."""
        root = -1 if self.root_label is None else self.root_label
        sizes = [self.n_labels, self.arc_bits, self.row_bits, root, self.projective, *self.templates.sizes]
        return [np.array(sizes), *self.templates.arrays.values()]

    def decoder(self, longest: int) -> ArcDecoder:
        """A new decoder of sentences of up to that many words, for one thread."""
        return ArcDecoder(self, max(int(longest), 1))

    def bind(
        self,
        X: Sequence[NDArray[np.int32]] | tuple[NDArray[np.int32], NDArray[np.int64]],
        Y: Sequence[NDArray[np.int32]] | NDArray[np.int32],
        *,
        rescaling: Rescaling | None = "margin",
        penalty: Penalty | None = "linear",
    ) -> DependencyProblem:
        """Bind training sentences; see `Oracle.bind`.

        X may also be ``(codes, offsets)`` and Y one array, of the words of all sentences: sentence i has words
        ``offsets[i]`` to ``offsets[i + 1]``.
        """
        self.check_formulation(rescaling, penalty)
        if isinstance(X, tuple):
            codes, offsets, outputs = X[0], X[1], np.asarray(Y)
        else:
            if len(X) != len(Y):
                raise ValueError(f"X has {len(X)} sentences, Y has {len(Y)} trees")
            lengths = [len(x) for x in X]
            if [len(y) for y in Y] != lengths:
                i = next(i for i, y in enumerate(Y) if len(y) != lengths[i])
                raise ValueError(f"sentence {i} has {lengths[i]} words, and its tree {len(Y[i])}")
            offsets = np.cumsum([0, *lengths], dtype=np.int64)
            own = [checked_codes(x, self.templates) for x in X]
            codes = np.concatenate([np.empty((0, self.templates.n_codes), dtype=np.int32), *own])
            outputs = np.concatenate([np.empty((0, 2), dtype=np.int32), *(np.reshape(y, (-1, 2)) for y in Y)])
        codes, outputs = checked_codes(codes, self.templates), np.ascontiguousarray(outputs, dtype=np.int32)
        self.check_outputs(offsets, outputs)
        known = outputs.copy() if len(outputs) and outputs.min() < 0 else None
        return DependencyProblem(self, codes, offsets, outputs, known, rescaling=rescaling, penalty=penalty)

    def check_outputs(self, offsets: NDArray[np.int64], outputs: NDArray[np.int32]) -> None:
        """Raise ValueError, naming sentence and word, for heads or labels out of range, cycles, or not one root."""
        check_trees(offsets, outputs, self.n_labels, self.root_label)

    # ---- the protocol on single objects ---------------------------------------------------------

    def joint_feature(self, x: NDArray[np.int32], y: NDArray[np.int32]) -> NDArray[np.float64]:
        self.check_outputs(np.array([0, len(x)]), y)
        if (y < 0).any():
            raise ValueError("the joint feature is of a tree whose heads and labels are all known")
        amounts = np.zeros((len(x) + 1, len(x), self.n_labels))
        amounts[y[:, 0], np.arange(len(x)), y[:, 1]] = 1.0
        return self.decoder(len(x)).feature_sum(checked_codes(x, self.templates), amounts)

    def loss(self, y_true: NDArray[np.int32], y: NDArray[np.int32]) -> float:
        return float((np.asarray(y_true) != np.asarray(y)).any(axis=1).sum())

    def argmax(
        self,
        x: NDArray[np.int32],
        w: ArrayLike,
        y_true: NDArray[np.int32] | None = None,
        rescaling: Rescaling | None = None,
    ) -> NDArray[np.int32]:
        if y_true is not None:
            return self.bind([x], [y_true], rescaling=rescaling).most_violated(0, w)
        offsets = np.array([0, len(x)])
        return self.decoder(len(x)).parse(checked_codes(x, self.templates), offsets, self.check_weights(w))[0]

    def complete(self, x: NDArray[np.int32], known: NDArray[np.int32], w: ArrayLike) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self.bind([x], [known]).complete(0, w)
        return found.reshape(-1, 2)

    def expect(self, x: NDArray[np.int32], w: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        codes, decoder = checked_codes(x, self.templates), self.decoder(len(x))
        log_sum, chances = decoder.chances(decoder.table(codes, self.check_weights(w)))
        return log_sum, decoder.feature_sum(codes, chances)

    def kbest(
        self, x: NDArray[np.int32], w: ArrayLike, k: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], float]]:
        """The trees of a sentence with their scores, best first: a lazy iterator over the best k (None: all)."""
        k = k if k is None else checked_k(k)
        decoder = self.decoder(len(x))
        table = decoder.table(checked_codes(x, self.templates), self.check_weights(w))
        return islice(ranked(decoder.finder, table), k)

    def check_weights(self, w: ArrayLike) -> NDArray[np.float32]:
        """Return the weights as a float32 array of n_features finite values; raises ValueError."""
        return checked_weights(w, self.n_features, np.float32, finite=True)


def checked_codes(codes: ArrayLike, templates: ArcTemplates | PairTemplates) -> NDArray[np.int32]:
    """Return codes of words as an int32 array (n_words, n_columns); ValueError unless they are those of templates."""
    checked = np.ascontiguousarray(codes, dtype=np.int32)
    if checked.ndim != 2 or checked.shape[1] != templates.n_codes:
        raise ValueError(f"codes of words have shape {checked.shape}, expected (n_words, {templates.n_codes})")
    return checked


def check_trees(
    offsets: NDArray[np.int64], outputs: NDArray[np.int32], n_labels: int, root_label: int | None = None
) -> None:
    """Raise ValueError, naming sentence and word, for heads or labels out of range, cycles, or not one root."""
    if len(offsets) == 0 or outputs.shape != (offsets[-1], 2):
        raise ValueError(f"outputs have shape {outputs.shape}, expected ({offsets[-1]}, 2)")
    for i, (a, b) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        if a == b:
            raise ValueError(f"sentence {i} has no words")
        heads, labels = outputs[a:b, 0], outputs[a:b, 1]
        for name, values, end in (("head", heads, b - a + 1), ("label", labels, n_labels)):
            wrong = np.flatnonzero((values < -1) | (values >= end))
            if len(wrong):
                m = int(wrong[0])
                raise ValueError(f"sentence {i}: word {m + 1} has {name} {values[m]}, expected one below {end}")
        problem = what_is_no_tree(heads.tolist())
        if problem:
            raise ValueError(f"sentence {i}: {problem}")
        if root_label is not None:
            wrong = np.flatnonzero((heads >= 0) & (labels >= 0) & ((heads == 0) != (labels == root_label)))
            if len(wrong):
                raise ValueError(
                    f"sentence {i}: word {int(wrong[0]) + 1} has a label that is not for its head: label "
                    f"{root_label} is for the root's arc, and for no other"
                )


def ranked(finder: Any, table: NDArray[np.float32]) -> Iterator[tuple[NDArray[np.int32], float]]:
    """Yield the trees over a table of scores (see `ArcDecoder.table`), best first, by Murty's partition.

    A set of trees without its best one falls into n parts: in part m words 1 .. m - 1 have their arcs
    of that tree, and word m has another one. Each part's best tree takes one decoding. A set is stored as its best
    tree, the words whose arcs are fixed, and the arcs that the next word must not have.
    """
    n = table.shape[1]
    words = np.arange(n)
    best_labels = table.argmax(axis=2)
    best_arcs = np.take_along_axis(table, best_labels[..., None], axis=2)[..., 0]

    def push(arcs: NDArray[np.float32], labels: NDArray[np.intp], settled: int, refused: Any) -> None:
        padded = np.full((n + 1, n + 1), -np.inf, dtype=np.float32)
        padded[:, 1:] = arcs
        found = finder.tree(padded)
        if found is not None and np.isfinite(found[1]):
            heads = found[0]
            output = np.stack([heads, labels[heads, words]], axis=1).astype(np.int32)
            score = float(table[heads, words, output[:, 1]].sum(dtype=np.float64))
            heapq.heappush(queue, (-score, next(order), output, settled, refused))

    queue: list[Any] = []
    order = count()
    push(best_arcs, best_labels, 0, ())
    while queue:
        score, _, output, settled, refused = heapq.heappop(queue)
        yield output, -score
        arcs, labels = best_arcs.copy(), best_labels.copy()
        for m, (h, label) in enumerate(output.tolist()):
            if m >= settled:
                now = *(refused if m == settled else ()), (h, label)
                column, names = arcs[:, m].copy(), labels[:, m].copy()
                for head in {head for head, _ in now}:
                    scores = table[head, m].copy()
                    scores[[name for other, name in now if other == head]] = -np.inf
                    labels[head, m] = scores.argmax()
                    arcs[head, m] = scores[labels[head, m]]
                push(arcs, labels, m, now)
                arcs[:, m], labels[:, m] = column, names
            arcs[:, m] = -np.inf
            arcs[h, m], labels[h, m] = table[h, m, label], label
