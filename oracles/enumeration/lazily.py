"""Decoding under more rules than one automaton can hold: lazily, by those that labellings would break.

A sequence is labelled without the rules; those that its labelling breaks are added, as one automaton, and it is
labelled anew, until it breaks none. The labelling is then the best of a larger set and belongs to the smaller one, and
so is the best that the rules allow. Sums over all labellings need all rules at once, and are refused.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.structures.languages.automaton import MOST_STATES, Automaton, TooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.features.tokens import Tokens
    from structsvm.oracles.chain import ExactChain


class LazyChain:
    """The decoder of a set of sequences by an oracle with `rules`."""

    def __init__(self, oracle: ExactChain, tokens: Tokens) -> None:
        self.oracle, self.tokens = oracle, tokens
        self.base = oracle.within(oracle.allowed, None).chain(tokens)
        self.oracles: dict[frozenset[int], ExactChain] = {}

    def decode(
        self,
        w: ArrayLike,
        start: int = 0,
        stop: int | None = None,
        allowed: Sequence[NDArray[np.bool_] | None] | None = None,
        scores: NDArray[np.float32] | None = None,
    ) -> NDArray[np.int32]:
        """Label sequences start .. stop - 1; see `LabelDecoder.decode`."""
        labels = self.base.decode(w, start, stop, allowed, scores)
        stop = len(self.tokens) if stop is None else stop
        offsets = self.tokens.offsets[start : stop + 1] - self.tokens.offsets[start]
        active: list[frozenset[int]] = [frozenset()] * (stop - start)
        pending = np.arange(stop - start)
        while len(pending):
            rows = rows_of(offsets, pending)
            bounds = np.concatenate([[0], np.cumsum(np.diff(offsets)[pending])])
            broken = np.array([rule.breaks(bounds, labels[rows]) >= 0 for rule in self.oracle.rules])
            pending, broken = pending[broken.any(axis=0)], broken[:, broken.any(axis=0)]
            for i, own in zip(pending.tolist(), broken.T, strict=True):
                active[i] |= frozenset(np.flatnonzero(own).tolist())
            for rules in {active[i] for i in pending.tolist()}:
                group = np.array([i for i in pending.tolist() if active[i] == rules])
                some = None if allowed is None else [allowed[i] for i in group.tolist()]
                labels[rows_of(offsets, group)] = self._under(rules, start + group, w, some, scores)
        return labels

    def _under(
        self,
        rules: frozenset[int],
        group: NDArray[np.integer],
        w: ArrayLike,
        allowed: Sequence[NDArray[np.bool_] | None] | None,
        scores: NDArray[np.float32] | None,
    ) -> NDArray[np.int32]:
        """The labels of some sequences under some rules."""
        if rules not in self.oracles:
            self.oracles[rules] = under(self.oracle, rules, int(group[0]))
        oracle, chosen = self.oracles[rules], np.zeros(len(self.tokens), dtype=bool)
        chosen[group] = True
        tokens = self.tokens.take(chosen)
        oracle.check_lengths(tokens.offsets, group)
        own = None if scores is None or not len(scores) else scores[rows_of(self.tokens.offsets, group)]
        return oracle.chain(tokens).decode(w, allowed=allowed, scores=own)

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise ValueError: sums and lists of labellings need all rules at once."""
        raise ValueError(no_sums(self.oracle.rules))

    kbest = expect = max_marginals = refuse


def under(oracle: ExactChain, rules: frozenset[int], i: int) -> ExactChain:
    """The same oracle under some of its rules; ValueError, naming sequence i, if these alone are too many."""
    masks = Automaton.of_masks(*oracle.allowed, n_labels=oracle.n_labels)
    try:
        language = reduce(and_, (oracle.rules[k] for k in sorted(rules)), masks)
    except TooLarge:
        raise ValueError(
            f"sequence {i}: labellings break {len(rules)} of the {len(oracle.rules)} rules of the constraints in turn, "
            f"whose automaton has more than {MOST_STATES} states: divide the sequence, leave out rules, or train "
            "without them (broken='predict')"
        ) from None
    some = oracle.within((None, None, None), language)
    some.is_checked = True  # by the problem of all rules
    return some


def no_sums(rules: Sequence[Automaton]) -> str:
    """The reason why there are no sums and lists of labellings under rules."""
    return (
        f"the constraints are {len(rules)} rules whose automaton has more than {MOST_STATES} states: only the best "
        f"labelling can be found, not probabilities, margins or the k best. Leave out rules: {fitting(rules)}"
    )


def check_few(rules: Sequence[Automaton], training: str) -> None:
    """Raise ValueError for rules, which are too many for a way of training."""
    if rules:
        raise ValueError(
            f"the constraints are {len(rules)} rules whose automaton has more than {MOST_STATES} states, too many for "
            f"{training}: broken='predict' constrains predictions only; or leave out rules: {fitting(rules)}"
        )


def fitting(rules: Sequence[Automaton]) -> str:
    """How many of the rules, in their order, have a common automaton that is small enough, and how large it is."""
    both, n = rules[0], 1
    while n < len(rules):
        try:
            both = both & rules[n]
        except TooLarge:
            break
        n += 1
    return f"the first {n} together have {both.n_states} states"


def rows_of(offsets: NDArray[np.int64], sequences: NDArray[np.integer]) -> NDArray[np.int64]:
    """The numbers of the tokens of some sequences."""
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in sequences] or [np.empty(0, dtype=np.int64)])
