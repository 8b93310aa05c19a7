"""Base of the label-chain oracles: labels in padded rows, masks, label costs, encoded tokens."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features._tokens import are_entries, are_within, steps
from structsvm.features.dense import padded
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.tokens import Tokens, narrowed
from structsvm.oracles.enumeration.lazily import Products
from structsvm.protocol import Oracle, Penalty, Rescaling, UnsupportedFormulation, checked_weights
from structsvm.structures._labels import LabelDecoder, LabelLattice, LabelProblem
from structsvm.structures.languages import Automaton
from structsvm.structures.languages.automaton import NoLabelling
from structsvm.structures.languages.nodes import Nodes, nodes_of

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray


class KnownLabels(NamedTuple):
    """Partial knowledge of the labels of tokens.

    Attributes
    ----------
    which : int32 array of shape (n_tokens,)
        Per token its label, or n_labels plus the number of the set that contains its label.
    sets : bool or float64 array of shape (n_sets, n_labels)
        The labels of each set; or their weights, the greatest of each set 1, 0 for excluded labels.
    """

    which: NDArray[np.int32]
    sets: NDArray[np.bool_ | np.float64]

    @classmethod
    def of(cls, Y: Any, tokens: Tokens, n_labels: int) -> tuple[AnyArray | None, KnownLabels | None]:
        """``(labels, known)``, one of them None: flat labels where all are known.

        Y is a list of labellings and of boolean arrays (length, n_labels), or one of these two.
        """
        if isinstance(Y, KnownLabels):
            return None, Y
        if isinstance(Y, np.ndarray) and Y.dtype == np.int32:
            return flat_labels(Y, tokens), None
        if not any(getattr(y, "ndim", 0) == 2 and y.dtype.kind == "b" for y in Y):
            return flat_labels(Y, tokens), None
        rows = []
        for i, y in enumerate(Y):
            if getattr(y, "ndim", 1) == 1:
                y = flat_labels([y], tokens[i : i + 1])
                if len(y) and not 0 <= min(y) <= max(y) < n_labels:
                    raise ValueError(f"labels lie in {min(y)}..{max(y)}, expected 0..{n_labels - 1}")
                y = np.eye(n_labels, dtype=bool)[y]
            if y.shape[1] != n_labels:
                raise ValueError(f"sequence {i} has a boolean array of {y.shape[1]} labels, expected {n_labels}")
            rows.append(y)
        flat = flat_labels(rows, tokens)
        sizes = flat.sum(axis=1)
        if not sizes.all():
            i, t = place_of(int(sizes.argmin()), tokens.offsets)
            raise ValueError(f"sequence {i}, token {t}: no label may stand there")
        if (sizes == 1).all():
            return flat.argmax(axis=1), None
        sets, number = np.unique(flat[sizes > 1], axis=0, return_inverse=True)
        which = flat.argmax(axis=1).astype(np.int32)
        which[sizes > 1] = n_labels + number.reshape(-1)
        return None, cls(which, sets)

    @property
    def table(self) -> NDArray[np.bool_]:
        """The allowed labels at a token, by its number in `which`: those of a label, then the sets."""
        return self.weights > 0.0

    @property
    def weights(self) -> NDArray[np.float64]:
        """Their weights."""
        return np.concatenate([np.eye(self.sets.shape[1]), self.sets])

    def is_open(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Sequences, none of them empty, that have a token with unknown label: bool array."""
        return (
            np.maximum.reduceat(self.which, offsets[:-1]) >= self.sets.shape[1]
            if len(offsets) > 1
            else np.zeros(0, bool)
        )


class LabelChain(Oracle):
    """Base of the label-chain oracles.

    Weights and scores are rows of `stride` float32, one column per label; the columns from n_labels on
    are padding (zero weights, scores of -inf). The last rows are those of attributes that are conjoined with pairs of
    labels (`Tokens.bigrams`): n_labels rows each, one per label before.
    """

    end = False  # whether the last label has a weight of its own
    seen_only = False  # see `of_seen`
    is_checked = False  # whether true labellings are known to be allowed
    language: Automaton | None = None  # labellings that are allowed, where masks do not say it
    rules: tuple[Automaton, ...] = ()  # beside masks: where one automaton of all would be too large

    def __init__(
        self,
        n_labels: int,
        n_token_features: int,
        n_bigrams: int,
        order: int,
        n_history_rows: int,
        loss: str,
        label_costs: ArrayLike | None,
        allowed_transitions: ArrayLike | None,
        allowed_first: ArrayLike | None,
        allowed_last: ArrayLike | None,
    ) -> None:
        name = type(self).__name__
        sizes = (("n_labels", n_labels, 1), ("n_token_features", n_token_features, 1), ("n_bigrams", n_bigrams, 0))
        for parameter, value, least in sizes:
            if not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(
                    f"The {parameter!r} parameter of {name} must be an integer of at least {least}. "
                    f"Got {value!r} instead."
                )
        # NumPy integers would overflow in the products below.
        n_labels = int(n_labels)
        self.n_labels, self.order, self.n_history_rows = n_labels, order, int(n_history_rows)
        self.loss_name = loss
        self.label_costs = None if label_costs is None else _checked_costs(label_costs, n_labels)
        self.stride = padded(n_labels)
        self.set_features(int(n_token_features), int(n_bigrams))
        self.allowed = (
            _checked_mask("allowed_transitions", allowed_transitions, (n_labels, n_labels)),
            _checked_mask("allowed_first", allowed_first, (n_labels,)),
            _checked_mask("allowed_last", allowed_last, (n_labels,)),
        )

    def set_features(self, n_token_features: int, n_bigrams: int) -> None:
        """Set the numbers of features, and with them the rows of weights."""
        self.n_token_features, self.n_bigrams = n_token_features, n_bigrams
        self.first_bigram_row = n_token_features + self.n_history_rows
        self.n_rows = self.first_bigram_row + n_bigrams * self.n_labels
        self.n_features = self.n_rows * self.stride
        if self.n_features >= 2**31:
            bigrams = f" and {n_bigrams} bigrams" if n_bigrams else ""
            raise ValueError(
                f"{n_token_features} features{bigrams} with {self.n_labels} labels need {self.n_features} weights, "
                "more than 2**31; cut rare features (min_count) or hash them (hash_bits)"
            )

    def touched(self, tokens: Tokens) -> tuple[Self, Tokens, NDArray[np.int64]]:
        """The oracle of only those features that some tokens have, these with their features renumbered, and the
        rows of weights that are its own.
        """
        tokens, features = narrowed(tokens)
        rows = [features, np.arange(self.n_token_features, self.first_bigram_row)]
        if tokens.bigrams is not None and self.n_bigrams:
            bigrams, attributes = narrowed(tokens.bigrams)
            tokens = replace(tokens, bigrams=bigrams)
            first = self.first_bigram_row + attributes * self.n_labels
            rows.append((first[:, None] + np.arange(self.n_labels)).ravel())
        oracle = copy.copy(self)
        oracle.set_features(tokens.n_features, tokens.n_bigrams)
        return oracle, tokens, np.concatenate(rows)

    @property
    def padding_row(self) -> NDArray[np.float32]:
        row = np.zeros(self.stride, dtype=np.float32)
        row[self.n_labels :] = -np.inf
        return row

    @property
    def mask_rows(self) -> NDArray[np.float32]:
        """0 where allowed and -inf where not: transitions, first, last; empty if all is allowed."""
        if all(mask is None for mask in self.allowed):
            return np.empty(0, dtype=np.float32)
        rows = np.zeros((self.n_labels + 2, self.stride), dtype=np.float32)
        for mask, part in zip(self.allowed, (rows[:-2], rows[-2], rows[-1])):
            if mask is not None:
                part[..., : self.n_labels][~mask] = -np.inf
        return rows.ravel()

    @cached_property
    def fixed_rows(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """`padding_row` and `mask_rows`, which decoders share and do not change."""
        return self.padding_row, self.mask_rows

    @property
    def loss_rows(self) -> NDArray[np.float32]:
        rows = np.zeros((self.n_labels, self.stride), dtype=np.float32)
        rows[:, : self.n_labels] = 1.0 if self.label_costs is None else self.label_costs[:, None]
        np.fill_diagonal(rows, 0.0)
        return rows.ravel()

    def losses_of(self, sets: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The loss of each label if only a set is known, by sets: the least of its labels' costs."""
        rows = np.zeros((len(sets), self.stride), dtype=np.float32)
        costs = np.ones(self.n_labels) if self.label_costs is None else self.label_costs
        rows[:, : self.n_labels] = np.where(sets, costs, np.inf).min(axis=1)[:, None] * ~sets
        return rows.ravel()

    def allowed_of(self, weights: AnyArray) -> NDArray[np.float32]:
        """The logarithms of weights of labels (True: 1), row by row: 0, less, or -inf."""
        rows = np.tile(self.padding_row, (len(weights), 1))
        with np.errstate(divide="ignore"):
            rows[:, : self.n_labels] = np.log(weights)
        return rows

    def without_masks(self) -> Self:
        """The same oracle, for which all labellings are allowed."""
        return self.within((None, None, None), None)

    def within(
        self, allowed: tuple[ArrayLike | None, ...], language: Automaton | None, rules: tuple[Automaton, ...] = ()
    ) -> Self:
        """The same oracle, which allows other labellings: those of masks, of a smallest automaton, or of rules."""
        oracle, n = copy.copy(self), self.n_labels
        for cached in ("fixed_rows", "n_joint_rules", "products"):
            vars(oracle).pop(cached, None)
        transitions, first, last = allowed
        oracle.allowed = (
            _checked_mask("allowed_transitions", transitions, (n, n)),
            _checked_mask("allowed_first", first, (n,)),
            _checked_mask("allowed_last", last, (n,)),
        )
        oracle.language, oracle.rules = language, rules
        return oracle

    @property
    def is_constrained(self) -> bool:
        """Whether some labellings are excluded."""
        return self.language is not None or bool(self.rules) or any(mask is not None for mask in self.allowed)

    @property
    def nodes(self) -> Nodes | None:
        """The nodes that the language leaves; None without one."""
        return None if self.language is None else nodes_of(self.language, self.order)

    def check_lengths(self, offsets: NDArray[np.int64], numbers: NDArray[np.integer[Any]] | None = None) -> None:
        """Raise ValueError, naming the sequence, if the language has no labelling of its length.

        `numbers` are those of the sequences, if not 0, 1, ...
        """
        if self.language is None:
            return
        lengths = np.diff(offsets)
        if (found := self.language.impossible_length(lengths)) is not None:
            i, near = found
            raise NoLabelling(
                f"the constraints allow no labelling of length {lengths[i]}, the number of its tokens ({near}). Loosen "
                "the constraints, or leave the sequence out",
                i if numbers is None else int(numbers[i]),
            )

    def check_length(self, i: int, length: int) -> None:
        """Raise ValueError, naming sequence i, if masks or language have labellings, but none of its length."""
        language = self.language or Automaton.of_masks(*self.allowed, n_labels=self.n_labels)
        if language.possible_lengths(length + language.n_states)[1:].any():
            oracle = copy.copy(self)
            oracle.language = language
            oracle.check_lengths(np.array([0, length]), np.array([i]))

    def of_seen(self) -> Self:
        """The same oracle, whose problems leave weights of a feature and a label at 0 that no token has together."""
        oracle = copy.copy(self)
        oracle.seen_only = True
        return oracle

    def possible(self, tokens: Tokens, labels: NDArray[np.integer[Any]]) -> NDArray[np.bool_] | None:
        """The weights that may differ from 0 in a problem of these tokens and labels; None: all."""
        if not self.seen_only:
            return None
        may = np.ones((self.n_rows, self.stride), dtype=bool)
        may[: self.n_token_features] = False
        label = np.repeat(labels, np.diff(tokens.indptr))
        known = label < self.n_labels
        may[tokens.indices[known], label[known]] = True
        return may.ravel()

    def broken_at(self, offsets: NDArray[np.int64], labels: NDArray[np.integer[Any]]) -> tuple[int, int] | None:
        """The first ``(sequence, token)`` at which a labelling violates a mask or leaves the language, or None.

        Of a labelling that is incomplete this is its last token.
        """
        if self.language is not None:
            return self.language.broken_at(offsets, labels)
        if self.rules:
            every = (Automaton.of_masks(*self.allowed, n_labels=self.n_labels), *self.rules)
            return min(filter(None, (rule.broken_at(offsets, labels) for rule in every)), default=None)
        transitions, first, last = self.allowed
        if transitions is first is last is None:
            return None
        bounds = np.unique(offsets)  # sequences that are not empty
        starts, ends = bounds[:-1], bounds[1:] - 1
        broken = np.zeros(len(labels), dtype=bool)
        if first is not None:
            broken[starts] |= ~first[labels[starts]]
        if last is not None:
            broken[ends] |= ~last[labels[ends]]
        if transitions is not None and len(labels) > 1:
            wrong = ~transitions[labels[:-1], labels[1:]]
            wrong[starts[1:] - 1] = False
            broken[1:] |= wrong
        if not broken.any():
            return None
        return place_of(int(broken.argmax()), offsets)

    def check_allowed(self, offsets: NDArray[np.int64], labels: NDArray[np.integer[Any]]) -> None:
        """Raise ValueError, naming the sequence, if a labelling violates a mask."""
        place = None if self.is_checked else self.broken_at(offsets, labels)
        if place is not None:
            sequence, token = place
            raise ValueError(
                f"sequence {sequence}: the true labelling breaks the mask at token "
                f"{token} (label {labels[offsets[sequence] + token]})"
            )

    def contradicted_at(self, offsets: NDArray[np.int64], known: KnownLabels) -> tuple[int, int] | None:
        """The first ``(sequence, token)`` at which masks or language leave no labelling that agrees with what is known.

        Under masks all sequences at once, token by token: which labels can be reached from the labels before.
        """
        if self.language is not None:
            return self.language.left_at(offsets, known.which, known.table)
        transitions, first, last = self.allowed
        lengths, table = np.diff(offsets), known.table
        order = np.argsort(-lengths, kind="stable")
        places = []
        reached = np.ones((len(lengths), self.n_labels), dtype=bool)
        for t in range(int(lengths.max(initial=0))):
            here = order[: np.searchsorted(-lengths[order], -t, side="left")]
            before, now = reached[here], table[known.which[offsets[here] + t]]
            if t == 0:
                now &= True if first is None else first
            elif transitions is not None:
                now &= before @ transitions
            if last is not None:
                ends = lengths[here] == t + 1
                now[ends] &= last
            reached[here] = now
            lost = before.any(axis=1) & ~now.any(axis=1)
            places += [(i, t) for i in here[lost].tolist()]
        return min(places, default=None)

    def check_known(self, tokens: Tokens, known: KnownLabels, takes_weights: bool = False) -> None:
        """Raise ValueError unless what is known is of these labels and tokens, and agrees with the masks."""
        n = self.n_labels + len(known.sets)
        if known.sets.dtype == np.float64 and not takes_weights:
            raise UnsupportedFormulation("weights of labels need exact inference and the log loss: margins have none")
        if (
            known.sets.shape[1:] != (self.n_labels,)
            or known.sets.dtype not in (bool, np.float64)
            or not known.sets.any(axis=1).all()
            or not ((known.sets >= 0.0) & (known.sets <= 1.0)).all()
        ):
            raise ValueError(
                f"the sets of labels must be a boolean array (n_sets, {self.n_labels}), none of them empty, or of "
                "float64 weights from 0 to 1"
            )
        if known.which.shape != (tokens.n_tokens,) or known.which.dtype != np.int32:
            raise ValueError(f"known labels must be {tokens.n_tokens} label or set indices, int32")
        if len(known.which) and not 0 <= known.which.min() <= known.which.max() < n:
            raise ValueError(f"labels and sets lie in {known.which.min()}..{known.which.max()}, expected 0..{n - 1}")
        place = self.contradicted_at(tokens.offsets, known)
        if place is not None:
            raise ValueError(
                f"sequence {place[0]}: the mask allows no labelling that agrees with what is known, at token {place[1]}"
            )

    def check_tokens(self, tokens: Tokens) -> None:
        """Raise ValueError unless the tokens have this oracle's features and no sequence is empty.

        The compiled decoders do not check offsets and indices, so all of them are checked here.
        """
        if type(tokens) is Tokens and self._are_sound(tokens):
            return
        _check_entries("sequences", tokens, self.n_token_features)
        if tokens.bigrams is not None:
            _check_entries("sequences' bigrams", tokens.bigrams, self.n_bigrams)
            if not np.array_equal(tokens.bigrams.offsets, tokens.offsets):
                raise ValueError("the sequences' bigrams must have the offsets of the sequences")
        elif self.n_bigrams:
            raise ValueError(f"the sequences have no bigrams, the oracle {self.n_bigrams}")
        if steps(tokens.offsets)[2]:
            raise ValueError(f"sequence {int(tokens.lengths.argmin())} is empty")

    def _are_sound(self, tokens: Tokens) -> bool:
        """Whether tokens in memory are what `check_tokens` wants; if not, it says why."""
        bigrams, n = tokens.bigrams, tokens.n_features
        if n != self.n_token_features or tokens.n_bigrams != self.n_bigrams:
            return False
        if not are_entries(tokens.offsets, tokens.indptr, tokens.indices, tokens.values, n):
            return False
        return bigrams is None or (
            type(bigrams) is Tokens
            and (bigrams.offsets is tokens.offsets or np.array_equal(bigrams.offsets, tokens.offsets))
            and are_entries(bigrams.offsets, bigrams.indptr, bigrams.indices, bigrams.values, bigrams.n_features)
        )

    def check_labels(self, tokens: Tokens, labels: ArrayLike) -> NDArray[np.int32]:
        """Return the labels as an int32 array of n_tokens values in 0 .. n_labels - 1; raises ValueError."""
        labels = np.asarray(labels)
        if labels.shape != (tokens.n_tokens,):
            raise ValueError(f"labels have shape {labels.shape}, expected ({tokens.n_tokens},)")
        if labels.dtype.kind not in "iu":
            raise ValueError(f"labels are of type {labels.dtype}, expected integers")
        if len(labels) and not 0 <= labels.min() <= labels.max() < self.n_labels:
            raise ValueError(f"labels lie in {labels.min()}..{labels.max()}, expected 0..{self.n_labels - 1}")
        return np.ascontiguousarray(labels, dtype=np.int32)

    def check_weights(self, w: ArrayLike) -> NDArray[np.float32]:
        """Return the weights as a float32 array of n_features values; raises ValueError."""
        return checked_weights(w, self.n_features, np.float32)

    def allowed_rows(self, allowed: ArrayLike, length: int, i: int) -> NDArray[np.float32]:
        """Rows of 0 and -inf (length, stride) from a boolean array of the labels allowed at each token."""
        allowed = np.asarray(allowed)
        if allowed.shape != (length, self.n_labels) or allowed.dtype != bool:
            raise ValueError(
                f"the allowed labels of sequence {i} must be a boolean array of shape "
                f"{(length, self.n_labels)}, got {allowed.dtype} {allowed.shape}"
            )
        return self.allowed_of(allowed)

    def emission(self, tokens: Tokens, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of weights: features of tokens with an array (length, n_labels) of labels; the others are 0."""
        psi = np.zeros((self.n_rows, self.stride))
        at = np.repeat(np.arange(tokens.n_tokens), np.diff(tokens.indptr))
        values = np.ones(len(at)) if tokens.values is None else tokens.values
        np.add.at(psi[:, : self.n_labels], tokens.indices, values[:, None] * labels[at])
        return psi

    def add_bigrams(self, psi: NDArray[np.float64], tokens: Any, pairs: NDArray[np.float64]) -> None:
        """Add to the rows `psi` a sequence's bigrams, with an array (length, n_labels, n_labels) of label pairs."""
        bigrams, K = tokens.bigrams, self.n_labels
        at = np.repeat(np.arange(tokens.n_tokens), np.diff(bigrams.indptr))
        values = np.ones(len(at)) if bigrams.values is None else bigrams.values
        rows = psi[self.first_bigram_row :].reshape(self.n_bigrams, K, self.stride)
        np.add.at(rows[:, :, :K], bigrams.indices, values[:, None, None] * pairs[at])

    def pairs(self, y: AnyArray) -> NDArray[np.float64]:
        """Array (length, n_labels, n_labels): 1 at each token but the first for the label before and its own."""
        pairs = np.zeros((len(y), self.n_labels, self.n_labels))
        pairs[np.arange(1, len(y)), y[:-1], y[1:]] = 1.0
        return pairs

    def complete(self, x: Any, known: Any, w: AnyArray) -> NDArray[np.integer[Any]]:
        """The best labelling under a boolean array (length, n_labels) of allowed labels."""
        known = np.asarray(known)
        if known.ndim == 1:
            return known
        x = as_tokens(x, self.n_token_features, single=True)
        return self.chain(x).decode(w, allowed=[known])

    @abstractmethod
    def chain(self, X: Any) -> LabelDecoder:
        """Return a decoder for sequences without labels."""

    def loss(self, y_true: ArrayLike, y: ArrayLike) -> float:
        wrong = np.asarray(y_true) != np.asarray(y)
        if self.loss_name == "zero_one":
            return float(wrong.any())
        costs = np.ones(self.n_labels) if self.label_costs is None else self.label_costs
        return float(costs[np.asarray(y_true)][wrong].sum())


class ExactChain(LabelChain):
    """Base of those with exact inference."""

    @cached_property
    def products(self) -> Products:
        """Automata of the masks and rules."""
        return Products(Automaton.of_masks(*self.allowed, n_labels=self.n_labels), self.rules)

    @abstractmethod
    def add_conjoined(self, psi: NDArray[np.float64], tokens: Any, rows: NDArray[np.float64]) -> None:
        """Add to the rows `psi` a sequence's conjoined attributes, with their rows of `LabelLattice.expect`."""

    def argmax(
        self, x: Any, w: ArrayLike, y_true: ArrayLike | None = None, rescaling: Rescaling | None = None
    ) -> NDArray[np.int32]:
        x = as_tokens(x, self.n_token_features, single=True)
        if y_true is None:
            return self.chain(x).decode(w)
        return self.bind(x, [y_true], rescaling=rescaling).most_violated(0, w)

    def expect(self, x: Any, w: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        x = as_tokens(x, self.n_token_features, single=True)
        log_sum, labels, others = self.chain(x).expect(w, 0)
        psi = self.emission(x, labels)
        n_edges = self.first_bigram_row - self.n_token_features
        psi[self.n_token_features : self.first_bigram_row] = others[:n_edges]
        if self.n_bigrams:
            self.add_conjoined(psi, x, others[n_edges:])
        return log_sum, psi.ravel()

    @abstractmethod
    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> LabelProblem:
        """Bind training sequences; see `ViterbiOracle.bind`."""

    @abstractmethod
    def chain(self, X: Any) -> LabelLattice:
        """Return a decoder for sequences without labels."""


def place_of(token: int, offsets: NDArray[np.int64]) -> tuple[int, int]:
    """The sequence of a token of all, and its number there."""
    sequence = int(np.searchsorted(offsets, token, side="right")) - 1
    return sequence, token - int(offsets[sequence])


def _checked_mask(name: str, mask: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.shape != shape or mask.dtype != bool:
        raise ValueError(
            f"The {name!r} parameter must be a boolean array of shape {shape}. Got {mask.dtype} {mask.shape} instead."
        )
    return None if mask.all() else mask


ENTRIES = tuple(
    (name, np.dtype(kind)) for name, kind in (("offsets", "i8"), ("indptr", "i8"), ("indices", "i4"), ("values", "f4"))
)


def _check_entries(of: str, tokens: Tokens, n_features: int) -> None:
    for name, dtype in ENTRIES:
        array = getattr(tokens, name)
        if array is None and name == "values":
            continue
        flags = array.flags if isinstance(array, np.ndarray) else None
        if flags is None or array.ndim != 1 or array.dtype != dtype or not (flags.c_contiguous and flags.aligned):
            raise ValueError(f"the {of}' {name} must be a contiguous array of {dtype}")
    for name, size in (("offsets", tokens.n_tokens), ("indptr", len(tokens.indices))):
        array = getattr(tokens, name)
        ascends = len(array) and array[0] == 0 and array[-1] == size
        if ascends and name == "indptr":
            ascends = all(steps(part.indptr)[0] >= 0 for part in tokens.parts())
        elif ascends:
            ascends = steps(array)[0] >= 0
        if not ascends:
            raise ValueError(f"the {of}' {name} must ascend from 0 to {size}")
    if tokens.values is not None and len(tokens.values) != len(tokens.indices):
        raise ValueError(f"the {of} have {len(tokens.indices)} indices and {len(tokens.values)} values")
    if tokens.n_features != n_features:
        raise ValueError(f"the {of} have {tokens.n_features} features, the oracle {n_features}")
    if not all(are_within(part.indices, n_features) for part in tokens.parts()):
        raise ValueError(f"the {of} have feature indices outside 0..{tokens.n_features - 1}")


def _checked_costs(costs: ArrayLike, n_labels: int) -> NDArray[np.float64] | None:
    costs = np.ascontiguousarray(costs, dtype=np.float64)
    if costs.shape != (n_labels,) or not np.isfinite(costs).all() or (costs <= 0.0).any():
        raise ValueError(
            f"The 'label_costs' parameter must be {n_labels} positive finite numbers. Got {costs!r} instead."
        )
    return None if (costs == 1.0).all() else costs


def as_tokens(X: Any, n_features: int, *, single: bool = False) -> Tokens:
    """Return X (`Tokens`, or a list of 2-D arrays or of `Tokens`; with `single` one such array) as `Tokens`."""
    if isinstance(X, Tokens):
        return X
    if isinstance(X, list) and X and isinstance(X[0], Tokens):
        return Tokens.joined(X)
    tokens = FeatureEncoder().fit_transform([X] if single else X)
    if tokens.n_features != n_features:
        raise ValueError(f"the sequences have {tokens.n_features} features, the oracle {n_features}")
    return tokens


def flat_labels(Y: Any, tokens: Tokens) -> AnyArray:
    """Return one flat array of labels from a list of label arrays; a flat array is returned unchanged."""
    if isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype != object:
        return Y
    lengths = np.diff(tokens.offsets)
    if len(Y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences, Y has {len(Y)}")
    for i, (labels, length) in enumerate(zip(Y, lengths)):
        if len(labels) != length:
            raise ValueError(f"sequence {i} has {length} tokens but {len(labels)} labels")
    return np.concatenate([np.asarray(labels) for labels in Y]) if len(Y) else np.empty(0, dtype=np.int32)
