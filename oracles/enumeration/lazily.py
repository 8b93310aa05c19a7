"""Decoding under more rules than one automaton can hold: lazily, by those that labellings would break.

A sequence is labelled without the rules; those that its labelling breaks are added, as one automaton, and it is
labelled anew, until it breaks none. The labelling is then the best of a larger set and belongs to the smaller one, and
so is the best that the rules allow. Where it breaks more in turn than one automaton holds, `by_groups` finds one that
breaks none, and a warning says how far it may be from the best. Sums over all labellings need all rules at once, and
are refused.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.oracles.enumeration.by_groups import first_kept, groups_of, improved
from structsvm.structures.languages.automaton import MOST_STATES, Automaton, NoLabelling, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from structsvm.features.tokens import Tokens
    from structsvm.oracles.chain import ExactChain

    # Takes, per sequence, by how much its best score may be higher.
    OnGaps: TypeAlias = Callable[[NDArray[np.float64]], object]


# Bytes of tables of automata that are kept.
MOST_BYTES = 1 << 26


class Products:
    """Automata of masks and rules. Groups are made once; products that were made, or are too large, are remembered.

    Attributes
    ----------
    rules : list of Automaton
        The masks, then the rules.
    too_large : set of frozenset of int
        Rules whose product with the masks is too large, the first rule number 0.
    """

    def __init__(self, masks: Automaton, rules: Sequence[Automaton]) -> None:
        self.rules = [masks, *rules]
        self.too_large: set[frozenset[int]] = set()
        self.found: dict[frozenset[int], Automaton] = {}
        self.room = MOST_BYTES

    def __reduce__(self) -> tuple[type[Products], tuple[Automaton, list[Automaton]]]:
        return Products, (self.rules[0], self.rules[1:])

    @cached_property
    def groups(self) -> list[tuple[Automaton, list[int]]]:
        """See `groups_of`; masks have number 0."""
        return groups_of(self.rules)

    def of(self, rules: frozenset[int]) -> Automaton:
        """The automaton of the masks and of some rules, the first one number 0. Raises TooLarge."""
        if not rules:
            return self.rules[0]
        if rules in self.too_large:
            raise TooLarge(f"their common automaton has more than {MOST_STATES} states")
        found, last = self.found.get(rules), max(rules)
        if found is None:
            try:
                found = self.of(rules - {last}) & self.rules[last + 1]
            except TooLarge:
                self.too_large.add(rules)
                raise
            self.room -= found.following.nbytes
            if self.room < 0:
                self.found, self.room = {}, MOST_BYTES - found.following.nbytes
            self.found[rules] = found
        return found


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
        on_gaps: OnGaps | None = None,
    ) -> NDArray[np.int32]:
        """Label sequences start .. stop - 1; see `LabelDecoder.decode`.

        `on_gaps` takes by how much, at most, the best score of each sequence is higher; None: a warning says it.
        """
        labels = self.base.decode(w, start, stop, allowed, scores)
        stop = len(self.tokens) if stop is None else stop
        offsets = self.tokens.offsets[start : stop + 1] - self.tokens.offsets[start]
        active: list[frozenset[int]] = [frozenset()] * (stop - start)
        pending, gaps = np.arange(stop - start), np.zeros(stop - start)
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
                try:
                    labels[rows_of(offsets, group)] = self._under(rules, start + group, w, some, scores)
                except TooLarge:
                    for i in group.tolist():
                        own, mask = slice(offsets[i], offsets[i + 1]), None if allowed is None else allowed[i]
                        labels[own], gaps[i] = self._by_groups(start + i, labels[own], w, mask, scores)
        warn_of_gaps(gaps, len(self.oracle.rules)) if on_gaps is None else on_gaps(gaps)
        return labels

    @cached_property
    def groups(self) -> list[tuple[ExactChain, list[int]]]:
        """The oracle under each group of rules whose segments one automaton holds, and the numbers of the rules."""
        found = []
        for language, own in self.oracle.products.groups:
            try:
                found.append((self.oracle.within((None, None, None), language), own))
            except TooLarge:
                continue
        return found

    def _by_groups(
        self,
        i: int,
        labels: NDArray[np.int32],
        w: ArrayLike,
        allowed: NDArray[np.bool_] | None,
        scores: NDArray[np.float32] | None,
    ) -> tuple[NDArray[np.int32], float]:
        """The labels of a sequence under all rules, where those given are the best under some; see `by_groups`.

        And the most by which the best score under all rules is higher than theirs; 0: it is not.
        """
        oracle, tokens, weights = self.oracle, self.tokens[i : i + 1], np.asarray(w, dtype=np.float64)
        may = np.ones((len(labels), oracle.n_labels), dtype=bool) if allowed is None else allowed
        more = None if scores is None or not len(scores) else scores[rows_of(self.tokens.offsets, np.array([i]))]

        def score(found: NDArray[np.int32]) -> float:
            own = 0.0 if more is None else float(more[np.arange(len(found)), found].sum(dtype=np.float64))
            return float(oracle.joint_feature(tokens, found) @ weights) + own

        def best(some: ExactChain, may: NDArray[np.bool_]) -> tuple[NDArray[np.int32], float]:
            with numbered(np.array([i])):
                chain = some.chain(tokens)
                if more is None:
                    found = chain.decode(w, allowed=[may])
                else:
                    inside = np.pad(may, ((0, 0), (0, more.shape[1] - may.shape[1])))
                    found = chain.decode(w, scores=np.where(inside, more, np.float32(-np.inf)))
            return found, score(found)

        rules = oracle.products.rules
        first = first_kept([language for language, _ in oracle.products.groups], labels, may)
        if first is None:
            raise NoLabelling(
                f"its labellings break so many of the {len(oracle.rules)} rules of the constraints in turn that their "
                f"automaton has more than {MOST_STATES} states, and no labelling of its {len(labels)} tokens that "
                "keeps all of them was found: divide the sequence, or leave out rules",
                i,
            )
        found, reached = improved(first, score(first), rules, self.groups, may, best)
        gap = score(labels) - reached
        return found, gap if gap > 1e-5 * abs(reached) else 0.0

    def _under(
        self,
        rules: frozenset[int],
        group: NDArray[np.integer],
        w: ArrayLike,
        allowed: Sequence[NDArray[np.bool_] | None] | None,
        scores: NDArray[np.float32] | None,
    ) -> NDArray[np.int32]:
        """The labels of some sequences under some rules. Raises TooLarge."""
        if rules not in self.oracles:
            self.oracles[rules] = under(self.oracle, rules)
        oracle, chosen = self.oracles[rules], np.zeros(len(self.tokens), dtype=bool)
        chosen[group] = True
        tokens = self.tokens.take(chosen)
        oracle.check_lengths(tokens.offsets, group)
        own = None if scores is None or not len(scores) else scores[rows_of(self.tokens.offsets, group)]
        with numbered(group):
            return oracle.chain(tokens).decode(w, allowed=allowed, scores=own)

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise ValueError: sums and lists of labellings need all rules at once."""
        raise ValueError(no_sums(self.oracle.rules))

    kbest = expect = log_sum = max_marginals = refuse


@contextmanager
def numbered(sequences: NDArray[np.integer]) -> Iterator[None]:
    """Errors of some sequences have their numbers among all."""
    try:
        yield
    except NoLabelling as error:
        number = None if error.number is None else int(sequences[error.number])
        raise NoLabelling(error.why, number) from None


def under(oracle: ExactChain, rules: frozenset[int]) -> ExactChain:
    """The same oracle under some of its rules; TooLarge if these alone are too many."""
    some = oracle.within((None, None, None), oracle.products.of(rules))
    some.is_checked = True  # by the problem of all rules
    return some


def warn_of_gaps(gaps: NDArray[np.float64], n_rules: int) -> None:
    """Say how many sequences may have a better labelling, and how much better."""
    if not gaps.any():
        return
    warn(
        f"the labellings of {np.count_nonzero(gaps)} of {len(gaps)} sequences break so many of the {n_rules} rules of "
        "the constraints in turn that no automaton holds them: their labels keep all rules, but need not be the best "
        f"that do: these have a score that is higher by up to {gaps.max():.4g}",
        AdviceWarning,
    )


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


def joint(language: Automaton, rules: Sequence[Automaton]) -> tuple[Automaton, int]:
    """The automaton of a language and of the first rules, as many as it holds; and their number."""
    for n, rule in enumerate(rules):
        try:
            language &= rule
        except TooLarge:
            return language, n
    return language, len(rules)


def fitting(rules: Sequence[Automaton]) -> str:
    """How many of the rules, in their order, have a common automaton that is small enough, and how large it is."""
    both, n = joint(rules[0], rules[1:])
    return f"the first {n + 1} together have {both.n_states} states"


def rows_of(offsets: NDArray[np.int64], sequences: NDArray[np.integer]) -> NDArray[np.int64]:
    """The numbers of the tokens of some sequences."""
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in sequences] or [np.empty(0, dtype=np.int64)])
