"""Context-free grammars, and the tables from which a CKY chart is filled.

A rule's right-hand side consists of nonterminals (`str`) and terminals (`Terminal`). In trees, nodes are nonterminals
and words are terminals. Rules with more than two children are binarised, in one of two ways:

- exactly (``h=None``): ``A -> B C D`` becomes ``A -> B <C D>`` and ``<C D> -> C D``. Rules with the same end share
  it, each rule keeps one weight, and the trees are those of the grammar as it was given;
- with horizontal Markovisation (``h`` = 0, 1, 2 ...): ``A -> B <A|B>`` and ``<A|B> -> C D``, where an intermediate
  knows its parent and the `h` children before it. Each binary rule has a weight, and unseen rules are composed of parts
  of seen ones.

Vertical Markovisation annotates labels with their ancestors' (`annotate`): ``NP`` under ``S`` is ``NP^S``. The part
before the first ``^`` is the label's *category*, which is all that losses and span features use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.rules import Rule, Terminal, category_of, format_rule, parse_rules
from structsvm.structures.trees import Tree, check_children, check_label

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["Grammar", "pair_tables"]

START = "start symbol"  # a left-hand side that cannot be a label
MAX_RULES = 1_000_000
MAX_CHAINS = 100_000
MAX_CHAIN_SYMBOLS = 1_000_000  # in all chains together
MAX_END_SYMBOLS = 10_000_000  # in the keys of all intermediates together, which are quadratic in a rule's length


def check_rules(rules: list[Rule], h: int | None) -> None:
    """Raise ValueError unless there are rules, all different, none of them empty, and few and short enough."""
    if not rules:
        raise ValueError("a grammar must have rules")
    if len(rules) > MAX_RULES:
        raise ValueError(f"a grammar of {len(rules)} rules is above the cap of {MAX_RULES} rules")
    for rule, count in Counter(rules).items():
        if count > 1:
            raise ValueError(f"the rule {rule!s:.200} is given {count} times")
        if not rule.rhs:
            raise ValueError(f"an empty production of {rule.lhs!r}; the grammar must be without them")
    longest = max(len(rule.rhs) for rule in rules)
    if sum(len(rule.rhs) * min(len(rule.rhs), longest if h is None else h) for rule in rules) > MAX_END_SYMBOLS:
        raise ValueError(f"rules of up to {longest} children are too long to be made binary; split them")


class Grammar:
    r"""A context-free grammar, numbered and binarised.

    Parameters
    ----------
    rules : iterable of Rule
        Or text for `parse_rules`.
    start : str or iterable of str, optional
        Start symbols; default: the left-hand side of the first rule.
    h : int, optional
        Horizontal Markovisation: how many children before it an intermediate knows. None: exact.
    max_unary : int, default=4
        Longest chain of unary rules between nonterminals, in rules. No category stands twice in a chain.
    uncounted : iterable of str
        Categories that losses leave out.

    Attributes
    ----------
    rules : list of Rule
    start : tuple of str
    nodes : list of str
        Nonterminals; symbol s is ``nodes[s]``.
    wide : set of str
        Nodes that may stand over several words.
    terminals : list of str
        Symbol ``len(nodes) + t`` is ``terminals[t]``; intermediates come after.
    categories : list of str
        The first `n_wide_categories` are those of `wide`.
    features : list of Rule
        The features of the first weights: rules (binary ones if ``h`` is given), then the start symbols, if there are
        several, as right-hand sides of `START`.
    chains : list of tuple of str
        Chains of unary rules, top first.

    Raises
    ------
    ValueError
        For no rules, an empty production, a repeated rule, a start symbol without rules, too many rules or chains,
        `h` or `max_unary` out of range.

    Examples
    --------
    >>> from structsvm.structures.grammar import Grammar
    >>> grammar = Grammar("S -> NP VP\nNP -> 'ice' | 'dogs'\nVP -> 'melts'")
    >>> grammar.n_rules, grammar.terminals
    (4, ['ice', 'dogs', 'melts'])
    """

    def __init__(
        self,
        rules: Iterable[Rule] | str,
        start: str | Iterable[str] | None = None,
        *,
        h: int | None = None,
        max_unary: int = 4,
        uncounted: Iterable[str] = (),
    ) -> None:
        self.rules = parse_rules(rules) if isinstance(rules, str) else [Rule(lhs, tuple(rhs)) for lhs, rhs in rules]
        for name, value in (("h", 0 if h is None else h), ("max_unary", max_unary)):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} must be an int of at least 0. Got {value!r:.80} instead.")
        check_rules(self.rules, h)
        start = self.rules[0].lhs if start is None else start
        self.start = (start,) if isinstance(start, str) else tuple(dict.fromkeys(start))
        self.h, self.max_unary, self.uncounted = h, max_unary, tuple(uncounted)
        symbols = [symbol for rule in self.rules for symbol in (rule.lhs, *rule.rhs)]
        self.nodes = list(dict.fromkeys(symbol for symbol in symbols if isinstance(symbol, str)))
        self.terminals = list(dict.fromkeys(str(symbol.name) for symbol in symbols if isinstance(symbol, Terminal)))
        self.wide = _wide(self.rules)
        wide = sorted(self.nodes, key=lambda name: name not in self.wide)
        self.categories = list(dict.fromkeys(map(category_of, wide)))
        self.n_wide_categories = len(set(map(category_of, self.wide)))
        sides = {rule.lhs for rule in self.rules}
        missing = [symbol for symbol in self.start if symbol not in sides]
        if missing or not self.start:
            raise ValueError(f"the start symbol {missing[0]!r} has no rules" if missing else "no start symbol")
        _Compiler(self)

    # Set by the compiler.
    features: list[Rule]
    chains: list[tuple[str, ...]]
    category: NDArray[np.int32]  # by node
    arrays: dict[str, NDArray[np.int32]]
    n_symbols: int
    binary_number: dict[tuple[int, int, int], int]
    lexical_number: dict[tuple[int, int], int]
    intermediate_number: dict[tuple[Any, ...], int]
    lexical: list[tuple[int, int]]

    @cached_property
    def node_number(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.nodes)}

    @cached_property
    def _labels(self) -> list[str]:
        """`nodes`, which trees may have as their labels."""
        for name in self.nodes:
            check_label(name)
        return self.nodes

    @cached_property
    def terminal_number(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.terminals)}

    @cached_property
    def feature_number(self) -> dict[Rule, int]:
        return {rule: k for k, rule in enumerate(self.features)}

    @cached_property
    def chain_number(self) -> dict[tuple[str, ...], int]:
        return {chain: k for k, chain in enumerate(self.chains)}

    @cached_property
    def tags(self) -> dict[int, list[tuple[int, str]]]:
        """By terminal: its lexical rules, each as its number and the name of its node."""
        found: dict[int, list[tuple[int, str]]] = {}
        for (node, terminal), k in self.lexical_number.items():
            found.setdefault(terminal, []).append((k, self.nodes[node]))
        return found

    @cached_property
    def counted(self) -> NDArray[np.uint8]:
        """By node: whether losses count it."""
        return np.array([category_of(name) not in self.uncounted for name in self.nodes], dtype=np.uint8)

    @cached_property
    def _ambiguous(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """By node and then by chain, and by terminal: whether another label may stand there at no loss."""
        below = {symbol for rule in self.rules for symbol in rule.rhs}
        root = self.start[0] if len(self.start) == 1 and self.start[0] not in below else None
        above = {rule.lhs for rule in self.rules if len(rule.rhs) > 1 or isinstance(rule.rhs[0], str)}
        is_counted = dict(zip(self.nodes, self.counted.tolist(), strict=True))
        tags = {name for name in self.nodes if not is_counted[name] and name not in above}
        every: list[tuple[str, ...]] = [*((name,) for name in self.nodes), *self.chains]
        keys = [
            (labels[0] == root, *sorted(category_of(name) for name in labels if is_counted[name])) for labels in every
        ]
        many = Counter(key for key, labels in zip(keys, every, strict=True) if labels[0] not in tags)
        # Nodes that are not counted, but for the root and for tags, may stand anywhere.
        anywhere = any(not is_counted[name] and name != root and name not in tags for name in self.nodes)
        of_nodes = [
            anywhere or (labels[0] not in tags and many[key] > 1) for key, labels in zip(keys, every, strict=True)
        ]
        uncounted = Counter(t for node, t in self.lexical if self.nodes[node] in tags)
        bare = {
            symbol.name
            for rule in self.rules
            if len(rule.rhs) > 1
            for symbol in rule.rhs
            if not isinstance(symbol, str)
        }
        of_words = [uncounted[t] > (name not in bare) for t, name in enumerate(self.terminals)]
        return np.array(of_nodes, dtype=bool), np.array(of_words, dtype=bool)

    def may_have_twin(self, words: NDArray[np.int32], rows: NDArray[np.int32]) -> bool:
        """Whether another tree may have just the counted nodes of a derivation: seen without a chart, which decides."""
        of_nodes, of_words = self._ambiguous
        symbols, chains = rows[:, 0], rows[:, 3]
        at = np.where(chains >= 0, len(self.nodes) + chains, symbols)[(chains >= 0) | (symbols < len(self.nodes))]
        return bool(of_nodes[at].any() or of_words[words].any())

    @cached_property
    def longest_chain(self) -> int:
        """Rules in the longest chain."""
        return max((len(chain) - 1 for chain in self.chains), default=0)

    def __str__(self) -> str:
        """NLTK's text form, see `format_rule`."""
        return "\n".join(map(format_rule, self.rules))

    @property
    def n_rules(self) -> int:
        """Number of features that are rules."""
        return len(self.features) - (len(self.start) if len(self.start) > 1 else 0)

    def symbol(self, item: str | Terminal) -> int:
        """Index of a nonterminal or terminal."""
        return (
            len(self.nodes) + self.terminal_number[item.name] if isinstance(item, Terminal) else self.node_number[item]
        )

    def end_key(self, lhs: str, rhs: tuple[str | Terminal, ...], k: int) -> tuple[Any, ...]:
        """Key of the intermediate for children k, k + 1, ... of a rule."""
        return rhs[k:] if self.h is None else (lhs, rhs[max(0, k - self.h) : k])

    def sentence(self, words: Iterable[str]) -> NDArray[np.int32] | None:
        """Indices of terminals; None if one is not in the grammar."""
        terminal_ids = [self.terminal_number.get(word, -1) for word in words]
        return None if -1 in terminal_ids else np.array(terminal_ids, dtype=np.int32)

    # ---- trees and derivations ------------------------------------------------------------------

    def encode(self, tree: Tree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return a tree's terminals (n,) and its derivation (n_nodes, 6) in the format of charts.

        Raises
        ------
        ValueError
            For a rule, a chain or a root that is not in the grammar.
        """
        words: list[int] = []
        rows: list[list[int]] = []
        if tree.label not in self.start:
            raise ValueError(f"the root {tree.label!r} is not a start symbol ({', '.join(self.start)})")
        # Items are (lhs, rhs, children, k) or a single node; the end of an item is filled in after its words.
        stack: list[Any] = [(tree,)]
        while stack:
            item = stack.pop()
            if isinstance(item, int):  # all words of row `item` have been added
                rows[item][2] = len(words)
                continue
            row, at = [-1, len(words), -1, -1, -1, -1], len(rows)
            rows.append(row)
            stack.append(at)
            if len(item) == 1:
                self._encode_top(item[0], row, words, stack)
            else:
                lhs, rhs, children, k = item
                row[0] = self.intermediate_number[self.end_key(lhs, rhs, k)]
                self._push_pair(row, lhs, rhs, children, k, stack)
        table = np.array(rows, dtype=np.int32)
        for row_, split in zip(table, self._splits(table), strict=True):
            row_[5] = split
        return np.array(words, dtype=np.int32), table

    def _encode_top(self, node: Tree | str, row: list[int], words: list[int], stack: list[Any]) -> None:
        if isinstance(node, str):
            row[0] = self.symbol(Terminal(node))
            words.append(self.terminal_number[node])
            return
        chain = [node.label]
        while len(node.children) == 1 and isinstance(node.children[0], Tree):
            node = node.children[0]
            chain.append(node.label)
        missing = [label for label in chain if label not in self.node_number]
        if missing:
            raise ValueError(f"the label {missing[0]!r} is not in the grammar")
        row[0] = self.node_number[chain[0]]
        if len(chain) > 1:
            if tuple(chain) not in self.chain_number:
                text = " -> ".join(chain)[:200]
                raise ValueError(f"the grammar has no chain {text} (max_unary={self.max_unary}, no label twice)")
            row[3] = self.chain_number[tuple(chain)]
        if len(node.children) == 1:
            word = node.children[0]
            pair = (self.node_number[node.label], self.terminal_number.get(word, -1))  # type: ignore[arg-type]
            if pair not in self.lexical_number:
                raise ValueError(f"the grammar has no rule {node.label} -> {Terminal(word)}")  # type: ignore[arg-type]
            row[4] = self.lexical_number[pair]
            words.append(pair[1])
            return
        rhs = tuple(child.label if isinstance(child, Tree) else Terminal(child) for child in node.children)
        self._push_pair(row, node.label, rhs, node.children, 0, stack)

    def _push_pair(
        self, row: list[int], lhs: str, rhs: tuple[str | Terminal, ...], children: Any, k: int, stack: list[Any]
    ) -> None:
        """Set the binary rule over children k, k + 1, ... and push its two sides on the stack."""
        row[4] = self._binary(lhs, rhs, k)
        stack.append((children[-1],) if k + 2 == len(rhs) else (lhs, rhs, children, k + 1))
        stack.append((children[k],))

    def _binary(self, lhs: str, rhs: tuple[str | Terminal, ...], k: int) -> int:
        """Number of the binary rule over children k, k + 1, ...; ValueError if there is none."""
        try:
            left, is_last = self.symbol(rhs[k]), k + 2 == len(rhs)
            right = self.symbol(rhs[-1]) if is_last else self.intermediate_number[self.end_key(lhs, rhs, k + 1)]
            parent = self.node_number[lhs] if k == 0 else self.intermediate_number[self.end_key(lhs, rhs, k)]
            return self.binary_number[parent, left, right]
        except KeyError:
            raise ValueError(f"the grammar has no rule {Rule(lhs, rhs)!s:.200}") from None

    def features_of(self, rule: Rule) -> list[int]:
        """Indices of the features of a rule, or of a start symbol: one, or with `h` one per binary rule."""
        lhs, rhs = rule
        if self.h is None or len(rhs) == 1:
            return [self.feature_number[rule]]
        return [int(self.arrays["rule_feature"][self._binary(lhs, rhs, k)]) for k in range(len(rhs) - 1)]

    @staticmethod
    def _splits(rows: NDArray[np.int32]) -> list[int]:
        """Split points of the binary rules of a derivation in preorder: the end of the next node."""
        is_binary = np.zeros(len(rows), dtype=bool)
        is_binary[:-1] = rows[:-1, 2] - rows[:-1, 1] > 1
        return [int(rows[k + 1, 2]) if binary else -1 for k, binary in enumerate(is_binary)]

    def decode(self, rows: NDArray[np.int32], words: Iterable[Any]) -> Tree:
        """The tree of a derivation over the given words (one per terminal; trees may replace words)."""
        words, nodes, first_intermediate = list(words), self._labels, len(self.nodes) + len(self.terminals)
        check_children(words)
        made: list[Any] = []  # from the right: the children of each node (one tree, or those of an intermediate)
        for symbol, begin, _, chain, rule, split in rows[::-1].tolist():
            children = made.pop() + made.pop() if split >= 0 else (words[begin],)
            if rule >= 0 and symbol < first_intermediate:
                for label in (nodes[symbol],) if chain < 0 else reversed(self.chains[chain]):
                    children = (Tree.made(label, children),)
            made.append(children)
        return made[0][0]

    @cached_property
    def _names(self) -> list[str]:
        """By category: the label that is of it, if there is one alone; or the category."""
        one = len(self.nodes) == len(self.categories)
        names = {category_of(name): name for name in self.nodes} if one else {}
        return [names.get(name, name) for name in self.categories]

    @cached_property
    def _depth(self) -> list[tuple[Any, Any]]:
        """By category: how high it stands in chains, from 0 to 1 on average; the same with start symbols above all."""
        heights: dict[str, list[float]] = {name: [] for name in self.categories}
        for chain in self.chains:
            for k, label in enumerate(chain):
                heights[category_of(label)].append(1.0 - k / (len(chain) - 1))
        starts = {category_of(name) for name in self.start}
        mean = [(name, sum(found) / max(len(found), 1)) for name, found in heights.items()]
        return [((False, height), (name in starts, height)) for name, height in mean]

    def tree_of(self, brackets: NDArray[np.int32], words: Iterable[Any]) -> Tree:
        """The tree of brackets (category, begin, end) that do not cross, one of them over all of the given words.

        Of labels over one span those stand above that do so in chains of unary rules; above all words start symbols.
        """
        words, depth, names = list(words), self._depth, self._names
        check_children(words)
        # The highest node that begins there, its end first.
        at: list[Any] = [(i + 1, word) for i, word in enumerate(words)]
        for category, begin, end in sorted(
            brackets.tolist(), key=lambda row: (row[2] - row[1], depth[row[0]][row[2] - row[1] == len(words)])
        ):
            children: list[Any] = []
            k = begin
            while k < end:
                k, node = at[k]
                children.append(node)
            at[begin] = end, Tree.made(names[category], tuple(children))
        return at[0][1]


def _wide(rules: list[Rule]) -> set[str]:
    """The nonterminals that may stand over several words."""
    above: dict[str, list[str]] = {}
    for lhs, rhs in rules:
        if len(rhs) == 1 and isinstance(rhs[0], str):
            above.setdefault(rhs[0], []).append(lhs)
    found = {rule.lhs for rule in rules if len(rule.rhs) > 1}
    fresh = list(found)
    while fresh:
        parents = set(above.get(fresh.pop(), ())) - found
        found |= parents
        fresh += parents
    return found


class _Compiler:
    """Sets the indices and tables of a `Grammar`."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.features: list[Rule] = []
        self.binary: dict[tuple[int, int, int], int] = {}  # (parent, left, right) -> feature
        self.intermediates: dict[tuple[Any, ...], int] = {}
        self.names: list[str] = []
        unary: dict[str, dict[str, int]] = {}  # child -> parent -> feature
        lexical: dict[tuple[int, int], int] = {}  # (terminal, node) -> feature
        for rule in grammar.rules:
            if len(rule.rhs) > 1:
                self.binarise(rule)
            elif isinstance(rule.rhs[0], Terminal):
                number = grammar.terminal_number[rule.rhs[0].name]
                lexical[number, grammar.node_number[rule.lhs]] = self.feature(rule.lhs, rule.rhs)
            else:
                unary.setdefault(rule.rhs[0], {})[rule.lhs] = self.feature(rule.lhs, rule.rhs)
        starts = {name: self.feature(START, (name,)) if len(grammar.start) > 1 else -1 for name in grammar.start}
        grammar.features = self.features
        grammar.intermediate_number = self.intermediates
        grammar.n_symbols = len(grammar.nodes) + len(grammar.terminals) + len(self.intermediates)
        if len(self.binary) > MAX_RULES:
            raise ValueError(f"{len(self.binary)} binary rules are above the cap of {MAX_RULES} rules")
        chains = self.chains(unary)
        grammar.chains = list(chains)
        order = {name: k for k, name in enumerate(grammar.categories)}
        grammar.category = _ints([order[category_of(name)] for name in grammar.nodes])
        grammar.arrays = {
            "start_feature": _ints([starts.get(name, -2) for name in grammar.nodes]),
            **self.binary_tables(),
            **self.lexical_tables(lexical),
            **self.unary_tables(unary, chains),
        }

    def parent_categories(self) -> NDArray[np.int32]:
        """By symbol: the category of the node that it is or is part of; -1 for others."""
        grammar, category = self.grammar, self.grammar.category.tolist()
        of_intermediates = [
            -1 if grammar.h is None else category[grammar.node_number[key[0]]] for key in self.intermediates
        ]
        return _ints([*category, *[-1] * len(grammar.terminals), *of_intermediates])

    def feature(self, lhs: str, rhs: tuple[str | Terminal, ...]) -> int:
        """Index of a new feature."""
        self.features.append(Rule(lhs, rhs))
        return len(self.features) - 1

    def intermediate(self, key: tuple[Any, ...]) -> tuple[int, str]:
        """Index and name of an intermediate."""
        grammar = self.grammar
        if key not in self.intermediates:
            self.intermediates[key] = len(grammar.nodes) + len(grammar.terminals) + len(self.intermediates)
            # Intermediate symbols of exact grammars are no feature's, and have no name.
            self.names.append("" if grammar.h is None else f"<{' '.join(map(str, (f'{key[0]}|', *key[1])))}>")
        number = self.intermediates[key]
        return number, self.names[number - len(grammar.nodes) - len(grammar.terminals)]

    def binarise(self, rule: Rule) -> None:
        grammar, (lhs, rhs) = self.grammar, rule
        parent, parent_name = grammar.node_number[lhs], lhs
        name: Any
        whole = self.feature(lhs, rhs) if grammar.h is None else -1
        for k in range(len(rhs) - 1):
            is_last = k + 2 == len(rhs)
            right, name = (
                (grammar.symbol(rhs[-1]), rhs[-1]) if is_last else self.intermediate(grammar.end_key(lhs, rhs, k + 1))
            )
            key = (parent, grammar.symbol(rhs[k]), right)
            if grammar.h is None:
                self.binary[key] = whole if k == 0 else -1
            elif key not in self.binary:
                self.binary[key] = self.feature(parent_name, (rhs[k], name))
            parent, parent_name = right, name

    def binary_tables(self) -> dict[str, NDArray[np.int32]]:
        """`pair_tables` of the binary rules, by the categories of their parents."""
        rules = np.array([(l, r, p, f) for (p, l, r), f in self.binary.items()], dtype=np.int64).reshape(-1, 4)
        tables = pair_tables(rules, self.parent_categories()[rules[:, 2]], self.grammar.n_symbols)
        pairs = tables["rule_pair"]
        children = tables["pair_left"][pairs].tolist(), tables["pair_right"][pairs].tolist()
        keys = zip(tables["rule_parent"].tolist(), *children, strict=True)
        self.grammar.binary_number = {key: k for k, key in enumerate(keys)}
        return tables

    def lexical_tables(self, lexical: dict[tuple[int, int], int]) -> dict[str, NDArray[np.int32]]:
        pairs = sorted(lexical)
        self.grammar.lexical = [(node, terminal) for terminal, node in pairs]
        self.grammar.lexical_number = {pair: k for k, pair in enumerate(self.grammar.lexical)}
        return {
            "lexical_ptr": _pointers(np.array([t for t, _ in pairs], dtype=np.int64), len(self.grammar.terminals)),
            "lexical_node": _ints([node for _, node in pairs]),
            "lexical_feature": _ints([lexical[pair] for pair in pairs]),
        }

    def chains(self, unary: dict[str, dict[str, int]]) -> dict[tuple[str, ...], int]:
        """Chains without repeated categories, shorter ones first, and the feature of each one's top rule."""
        category = {name: category_of(name) for name in self.grammar.nodes}
        # Each with its categories.
        longer: dict[tuple[str, ...], tuple[int, set[str]]]
        longer = {(name,): (-1, {category[name]}) for name in self.grammar.nodes}
        found: dict[tuple[str, ...], int] = {}
        n_symbols = 0
        while longer and len(next(iter(longer))) <= self.grammar.max_unary:
            shorter, longer = longer, {}
            for chain, (_, categories) in shorter.items():
                for parent, feature in unary.get(chain[0], {}).items():
                    if category[parent] in categories:
                        continue
                    n_symbols += len(chain) + 1
                    if len(found) + len(longer) >= MAX_CHAINS or n_symbols > MAX_CHAIN_SYMBOLS:
                        raise ValueError(
                            f"the unary rules make more than {MAX_CHAINS} chains of up to "
                            f"max_unary={self.grammar.max_unary} rules, or chains of more than {MAX_CHAIN_SYMBOLS} "
                            "symbols in all; lower max_unary"
                        )
                    longer[parent, *chain] = feature, categories | {category[parent]}
            found |= {chain: feature for chain, (feature, _) in longer.items()}
        return found

    def unary_tables(
        self, unary: dict[str, dict[str, int]], chains: dict[tuple[str, ...], int]
    ) -> dict[str, NDArray[np.int32]]:
        number = self.grammar.node_number
        edges = sorted((number[child], number[parent]) for child, parents in unary.items() for parent in parents)
        at = {chain: k for k, chain in enumerate(chains)}
        return {
            "up_ptr": _pointers(np.array([child for child, _ in edges], dtype=np.int64), len(number)),
            "up_node": _ints([parent for _, parent in edges]),
            "chain_below": _ints([at.get(chain[1:], -1) for chain in chains]),
            "chain_top": _ints([number[chain[0]] for chain in chains]),
            "chain_bottom": _ints([number[chain[-1]] for chain in chains]),
            "chain_feature": _ints(list(chains.values())),
        }


def pair_tables(rules: AnyArray, category: AnyArray, n_symbols: int) -> dict[str, NDArray[np.int32]]:
    """Rules by pair of children and category, pairs by left child; and the inverse tables.

    Parameters
    ----------
    rules : int array of shape (n_rules, 4)
        Left child, right child, parent, feature.
    category : int array of shape (n_rules,)
    n_symbols : int

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.structures.grammar import pair_tables
    >>> rules = np.array([[1, 2, 0, 5], [1, 2, 3, 6]])
    >>> pair_tables(rules, np.array([0, 0]), 4)["rule_pair"], pair_tables(rules, np.array([1, 0]), 4)["rule_pair"]
    (array([0, 0], dtype=int32), array([0, 1], dtype=int32))
    """
    order = np.lexsort((rules[:, 2], category, rules[:, 1], rules[:, 0]))
    left, right, parent, feature = rules[order].T
    is_new = np.ones(len(rules), dtype=bool)
    is_new[1:] = (np.diff(left) != 0) | (np.diff(right) != 0) | (np.diff(category[order]) != 0)
    first = np.flatnonzero(is_new)
    return {
        "pair_left": _ints(left[first]),
        "pair_right": _ints(right[first]),
        "left_ptr": _pointers(left[first], n_symbols),
        "right_ptr": _pointers(right[first], n_symbols),
        "right_pair": _ints(np.argsort(right[first], kind="stable")),
        "rule_ptr": _ints(np.append(first, len(rules))),
        "rule_pair": _ints(np.cumsum(is_new) - 1),
        "rule_parent": _ints(parent),
        "rule_feature": _ints(feature),
    }


def _ints(values: Any) -> NDArray[np.int32]:
    return np.array(values, dtype=np.int32)


def _pointers(keys: Any, n: int) -> NDArray[np.int32]:
    """Start of each key 0 .. n - 1 among sorted keys."""
    return _ints(np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=n))]))
