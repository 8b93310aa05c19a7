"""Sentences bound to their bags of meanings: what OSPAS sees."""

from __future__ import annotations

from collections import Counter
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import BoundProblem
from structsvm.arrays import checksum
from structsvm.checkpoint import as_array
from structsvm.features.sparse import SparseRows
from structsvm.oracles._ambiguous import decision_scores
from structsvm.tasks.semantics._ospas import Words
from structsvm.tasks.semantics.features import role_attributes
from structsvm.tasks.semantics.trees import EMPTY, relations_in, symbols_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Sized

    from structsvm.structures.meanings import Meaning, Symbol
    from structsvm.tasks.semantics.features import Encoder, Tokens
    from structsvm.tasks.semantics.model import SemanticModel
    from structsvm.tasks.semantics.trees import Role


class SemanticProblem(BoundProblem):
    """Sentences, the symbols that their words choose from, and the roles.

    Parameters
    ----------
    model : SemanticModel
        Its taggers number symbols, roles and the attributes of words; what is new here is numbered.
    tokens : list of sentences
        As `SemanticModel.read` returns them.
    bags : list of lists of trees
    encoded : (SparseRows, ndarray), optional
        The sentences' attributes, if they are known.

    Attributes
    ----------
    words : Words
        Those of all sentences, each sentence with one bag of symbols.
    """

    offers = frozenset({"words in bags"})
    formulation = {"rescaling": "margin", "penalty": "linear"}

    def __init__(
        self,
        model: SemanticModel,
        tokens: Sequence[Tokens],
        bags: Sequence[Sequence[Meaning]],
        encoded: tuple[SparseRows, NDArray[np.int64]] | None = None,
    ) -> None:
        model.register(bags)
        self.model, self.tokens, self.bags = model, tokens, bags
        self.encoded = model.encode(tokens, grow=True) if encoded is None else encoded
        rows, offsets = self.encoded
        # The weights of roles, whose features grow while training, are not counted.
        super().__init__(len(tokens), rows.n_features * len(model.symbols.labels), inference="approximate")
        self.relations = [relations_in(trees) for trees in bags]
        counted = [self._symbol_bag(sentence, trees) for sentence, trees in zip(tokens, bags, strict=True)]
        bag_of = np.repeat(np.arange(len(bags)), np.diff(offsets))
        self.words = Words(rows, offsets, bag_of, *bag_arrays(counted))

    def _symbol_bag(self, sentence: Tokens, trees: Sequence[Meaning]) -> Counter[int]:
        """How many of each symbol the bag holds."""
        found = [symbols_in(tree) for tree in trees]
        counts = Counter(self.model.symbols.number[symbol] for symbols in found for symbol in symbols)
        # The alignment must be feasible for each meaning: the shortest leaves the most words empty.
        shortest = min(map(len, found))
        if len(sentence) > shortest:
            counts[0] = len(sentence) - shortest
        return counts

    @property
    def n_symbols(self) -> int:
        return len(self.model.symbols.labels)

    @property
    def n_roles(self) -> int:
        return len(self.model.roles.labels)

    def structure_fingerprint(self) -> int:
        """A checksum of the symbols and roles."""
        return checksum([as_array(repr((self.model.symbols.labels, self.model.roles.labels)))])

    def fingerprint(self) -> int:
        """A checksum of the words, their attributes, and the bags."""
        return checksum(
            [*self.words.rows.arrays, as_array(repr((self.tokens, self.bags, self.model.settings.role_window)))]
        )

    def role_words(self, i: int, taken: Sequence[int], encoder: Encoder) -> Words | None:
        """The other words of sentence i as arguments of its relations, or None where there are none.

        Parameters
        ----------
        i : int
        taken : list of int
            The symbol of each word, -1 for none.
        encoder : Encoder
            Numbers the attributes, new ones too.

        Returns
        -------
        Words
            A sentence for each relation. Its bags are one for each symbol among the words: the roles that it has in
            the relation's instances, or none.
        """
        sentence, symbols, window = self.tokens[i], self.model.symbols.labels, self.model.settings.role_window
        meant = [symbols[k].name if k > 0 else "" for k in taken]
        numbers: list[list[int]] = []
        ends, bag_of = [0], []
        bags: list[Counter[int]] = []
        for t, k in enumerate(taken):
            relation = symbols[k] if k > 0 else EMPTY
            others = [j for j, other in enumerate(taken) if other > 0 and j != t] if relation.arity else []
            if not others:
                continue
            numbers += map(encoder.number, role_attributes(sentence, meant, t, others, window))
            ends.append(len(numbers))
            n_words = Counter(taken[j] for j in others)
            place = {symbol: len(bags) + b for b, symbol in enumerate(n_words)}
            bag_of += [place[taken[j]] for j in others]
            instances = self.relations[i][relation]
            bags += [self._role_bag(instances, symbols[k], n) for k, n in n_words.items()]
        if not numbers:
            return None
        indices = np.fromiter(chain.from_iterable(numbers), dtype=np.int32)
        rows = SparseRows(indptr_of(numbers), indices, np.ones(len(indices)), len(encoder))
        return Words(rows, np.array(ends), np.array(bag_of), *bag_arrays(bags))

    def _role_bag(self, instances: Iterable[Mapping[Symbol, Role]], symbol: Symbol, n_words: int) -> Counter[int]:
        """The roles of a symbol that `n_words` words mean."""
        counts: Counter[int] = Counter()
        for roles in instances:
            role = roles.get(symbol)
            if role is not None:
                counts[self.model.roles.number[role]] += 1
            spare = n_words - (role is not None)
            if spare > 0:
                counts[0] += spare
        return counts

    # ---- refinement -----------------------------------------------------------------------------

    def best_meanings(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """The meaning of each bag whose symbols fit the sentence's words best: array (n_samples,) of its indices.

        A meaning is worth the most that its symbols gain over the empty one when each takes a word of its own.
        """
        from scipy.optimize import linear_sum_assignment

        scores = decision_scores(self.words.rows, self.n_symbols, weights.ravel())
        chosen = []
        for (a, b), trees in zip(pairwise(self.encoded[1].tolist()), self.bags, strict=True):
            gains = scores[a:b] - scores[a:b, :1]
            values = []
            for tree in trees:
                table = gains[:, [self.model.symbols.number[symbol] for symbol in symbols_in(tree)]]
                values.append(table[linear_sum_assignment(table, maximize=True)].sum())
            chosen.append(int(np.argmax(values)))
        return np.array(chosen)

    def with_meanings(self, chosen: NDArray[np.int64]) -> SemanticProblem:
        """The problem of the same sentences with bags of one meaning; `chosen` as `best_meanings` returns it."""
        bags = [[trees[k]] for trees, k in zip(self.bags, chosen, strict=True)]
        return SemanticProblem(self.model, self.tokens, bags, self.encoded)


def bag_arrays(bags: Iterable[Mapping[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """``(indptr, labels, counts)`` of bags as dicts from labels to how many of each there are."""
    entries = [sorted(bag.items()) for bag in bags]
    flat = np.array([pair for items in entries for pair in items], dtype=np.int32).reshape(-1, 2)
    return indptr_of(entries), np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])


def indptr_of(lists: Iterable[Sized]) -> NDArray[np.int64]:
    """Where each of several lists begins in all of them, and where the last one ends."""
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)
