"""From words with their symbols, and scores of roles, to meaning representations."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from structsvm.structures.meanings import MAX_DEPTH, parse_meaning, symbol_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import TypeAlias

    from structsvm.structures.meanings import Meaning, MeaningGrammar, Symbol
    from structsvm.tasks.semantics.trees import Role

    # The words that a relation chooses its arguments from, and for each of them the scores of all roles.
    Scored: TypeAlias = tuple[Sequence[int], Sequence[Sequence[float]]]
    # From a relation's word to those of its arguments.
    Arguments: TypeAlias = Mapping[int, Sequence[int]]


class Assembly(NamedTuple):
    """Trees of a sentence, and how good they are.

    `value` is what their words gain over meaning nothing, minus infinity without trees; `n_words` is how many words
    they explain.
    """

    trees: list[Meaning]
    value: float
    n_words: int


class Assembler:
    """Puts relations and constants together.

    Parameters
    ----------
    grammar : MeaningGrammar or None
        What it does not accept is not put together.
    roles : dict
        From a relation to the roles of its arguments, and from a role to its number: the column of its scores.
    nested : set of (Symbol, Symbol)
        A relation, and one that can be its argument.
    max_meanings : int or None
        Trees to keep of each sentence, those of the highest values.
    """

    def __init__(
        self,
        grammar: MeaningGrammar | None,
        roles: Mapping[Symbol, Mapping[Role, int]],
        nested: AbstractSet[tuple[Symbol, Symbol]],
        max_meanings: int | None,
    ) -> None:
        self.grammar, self.roles, self.nested, self.max_meanings = grammar, roles, nested, max_meanings

    def parse(self, symbols: Sequence[Symbol], margins: Sequence[float], scored: Mapping[int, Scored]) -> Assembly:
        """The parse of a sentence.

        Relations choose their arguments in the order of what the choice gains; a relation can be the argument of one
        other only, and never of itself.

        Parameters
        ----------
        symbols : list of Symbol
        margins : list of float
            What each word's symbol gains over the empty one.
        scored : dict
            From a relation's word to ``(others, scores)``: the other words that mean something, and for each of them
            the scores of all roles.
        """
        arguments: dict[int, list[int]] = {}
        parent: dict[int, int] = {}
        waiting = {t for t, symbol in enumerate(symbols) if symbol.arity is not None}
        choices: dict[int, tuple[float, list[int]]] | None = None
        while waiting:
            if choices is None:
                found = {t: self.choose(symbols, t, scored.get(t, ((), ())), parent) for t in sorted(waiting)}
                choices = {t: choice for t, choice in found.items() if choice is not None}
            if not choices:
                break
            t = max(choices.items(), key=lambda item: item[1][0])[0]
            arguments[t] = choices.pop(t)[1]
            waiting.remove(t)
            owned = {j: t for j in arguments[t] if symbols[j].arity is not None}
            if owned:
                parent |= owned
                choices = None  # others may have counted on them
        return self.best_trees(symbols, margins, arguments, parent)

    def best_trees(
        self, symbols: Sequence[Symbol], margins: Sequence[float], arguments: Arguments, parent: Mapping[int, int]
    ) -> Assembly:
        """The trees under relations that are no argument, as an `Assembly`."""
        parses: dict[Meaning, tuple[float, int, int]] = {}
        for t in arguments:
            if t in parent or depth_of(t, arguments) > MAX_DEPTH:
                continue
            tree = tree_of(t, symbols, arguments)
            if tree is None or (self.grammar is not None and not self.grammar.accepts(tree)):
                continue
            words = below(t, arguments)
            value = sum(margins[j] for j in words)
            if tree not in parses or value > parses[tree][0]:
                parses[tree] = value, t, len(words)
        kept = sorted(parses, key=lambda tree: -parses[tree][0])[: self.max_meanings]
        value = sum(parses[tree][0] for tree in kept) if kept else -inf
        return Assembly(sorted(kept, key=lambda tree: parses[tree][1]), value, sum(parses[tree][2] for tree in kept))

    def choose(
        self, symbols: Sequence[Symbol], relation: int, scored: Scored, parent: Mapping[int, int]
    ) -> tuple[float, list[int]] | None:
        """``(gain, arguments)``: the best words for all arguments of a relation, or None; `scored` as in `parse`.

        best[filled] is the most that words so far gain over having no role, when they fill the arguments in the bit
        mask `filled`; a word may fill several (a relation of something with itself).
        """
        symbol: Any = symbols[relation]  # a relation, whose arity is a number
        whole = (1 << symbol.arity) - 1
        best: dict[int, tuple[float, tuple[tuple[int, Role], ...]]] = {0: (0.0, ())}
        roles = [(k, role, sum(1 << a for a in role)) for role, k in self.roles.get(symbol, {}).items()]
        for j, row in zip(*scored, strict=True):
            if symbols[j].arity is not None and (
                (symbol, symbols[j]) not in self.nested or j in parent or is_above(j, relation, parent)
            ):
                continue
            fitting = [
                (row[k] - row[0], role, mask)
                for k, role, mask in roles
                if self.grammar is None or all(self.grammar.allows(symbol, a, head_of(symbols[j])) for a in role)
            ]
            for filled, (value, chosen) in list(best.items()):
                for gain, role, mask in fitting:
                    if not filled & mask and best.get(filled | mask, (-inf,))[0] < value + gain:
                        best[filled | mask] = value + gain, (*chosen, (j, role))
        if whole not in best:
            return None
        gain, chosen = best[whole]
        words = {a: j for j, role in chosen for a in role}
        return gain, [words[a] for a in range(symbol.arity)]


@cache
def head_of(symbol: Symbol) -> Symbol:
    """The symbol at the root of what a symbol stands for: a folded constant is a relation."""
    return symbol if symbol.arity is not None else symbol_of(parse_meaning(symbol.name))


def below(t: int, arguments: Arguments) -> list[int]:
    """The words of the tree under word t."""
    words, waiting = [], [t]
    while waiting:
        j = waiting.pop()
        words.append(j)
        waiting += dict.fromkeys(arguments.get(j, ()))
    return words


def tree_of(t: int, symbols: Sequence[Symbol], arguments: Arguments) -> Meaning | None:
    """The tree under word t, None where the arguments of a relation are missing."""
    symbol = symbols[t]
    if symbol.arity is None:
        return parse_meaning(symbol.name)
    if t not in arguments:
        return None
    parts = [tree_of(j, symbols, arguments) for j in arguments[t]]
    return None if None in parts else (symbol.name, *parts)


def depth_of(t: int, arguments: Arguments) -> int:
    """How many words stand in one another's arguments at most, from word t down."""
    depth, level = 0, [t]
    while level:
        depth += 1
        level = list(dict.fromkeys(j for i in level for j in arguments.get(i, ())))
    return depth


def is_above(word: int, relation: int | None, parent: Mapping[int, int]) -> bool:
    """Whether `word` is the relation or has it below itself."""
    while relation is not None:
        if relation == word:
            return True
        relation = parent.get(relation)
    return False
