"""Trees of small grammars by enumeration: slow, obvious, and without the package's charts.

A grammar is a list of ``(lhs, rhs)``; in a right-hand side ``"'a'"`` is a terminal. A tree is ``(label, children)``,
a child a tree or a terminal's name.
"""

import itertools
from collections import Counter

import numpy as np


def category(label):
    return label.split("^")[0]


class ReferenceGrammar:
    def __init__(self, rules, start, max_unary=4, uncounted=()):
        self.rules, self.start, self.max_unary, self.uncounted = list(rules), start, max_unary, set(uncounted)
        self.memory = {}

    def trees(self, words):
        """All trees with a start symbol at the root, in some order."""
        self.memory = {}
        words = tuple(words)
        return [tree for symbol in self.start for tree in self.of(symbol, words, ())]

    def of(self, symbol, words, above):
        """Trees of `symbol` over all the words, whose root continues a unary chain of the categories `above`."""
        key = (symbol, words, above)
        if key in self.memory:
            return self.memory[key]
        found = []
        if category(symbol) not in above:
            for lhs, rhs in self.rules:
                if lhs != symbol:
                    continue
                if len(rhs) == 1 and not rhs[0].startswith("'"):
                    if len(above) < self.max_unary:
                        chain = (*above, category(symbol))
                        found += [(symbol, (below,)) for below in self.of(rhs[0], words, chain)]
                else:
                    found += [(symbol, children) for children in self.forests(rhs, words)]
        self.memory[key] = found
        return found

    def forests(self, rhs, words):
        if len(rhs) > len(words):
            return []
        if not rhs:
            return [] if words else [()]
        found = []
        for k in range(1, len(words) - len(rhs) + 2):
            if rhs[0].startswith("'"):
                firsts = [words[0]] if k == 1 and words[0] == rhs[0][1:-1] else []
            else:
                firsts = self.of(rhs[0], words[:k], ())
            if firsts:
                rests = self.forests(rhs[1:], words[k:])
                found += [(first, *rest) for first, rest in itertools.product(firsts, rests)]
        return found

    # ---- what a tree is made of -----------------------------------------------------------------

    def counts(self, tree):
        """Counter of the rules in a tree."""
        label, children = tree
        rhs = tuple(f"'{c}'" if isinstance(c, str) else c[0] for c in children)
        total = Counter([(label, rhs)])
        for child in children:
            if not isinstance(child, str):
                total += self.counts(child)
        return total

    def spans(self, tree, begin=0):
        """(labelled spans, length): every node as (category, begin, end)."""
        label, children = tree
        spans, end = [], begin
        for child in children:
            if isinstance(child, str):
                end += 1
            else:
                more, length = self.spans(child, end)
                spans += more
                end += length
        return [(category(label), begin, end), *spans], end - begin

    def loss(self, true, other, kind):
        if true == other:
            return 0.0
        if kind == "zero_one":
            return 1.0
        a, b = ([s for s in self.spans(t)[0] if s[0] not in self.uncounted] for t in (true, other))
        assert len(set(a)) == len(a) and len(set(b)) == len(b)
        c, g, p = len(set(a) & set(b)), len(a), len(b)
        if c == g == p:
            p += 1
        if kind == "hamming":
            return float((g - c) + (p - c))
        recall, precision = c / g if g else 1.0, c / p if p else 1.0
        return 1.0 - (2 * precision * recall / (precision + recall) if precision + recall else 0.0)

    def score(self, tree, weights):
        """Sum of rule weights (a dict)."""
        return sum(weights[rule] * count for rule, count in self.counts(tree).items())

    def text(self, tree):
        label, children = tree
        return f"({label} {' '.join(c if isinstance(c, str) else self.text(c) for c in children)})"


# ---- trees known in part ---------------------------------------------------------------------------

UNKNOWN_LABEL, STRETCH = "_", "..."


def width(node):
    return 1 if isinstance(node, str) else sum(map(width, node[1]))


def agrees(known, tree):
    """Whether a tree agrees with what is known of it: node by node, without spans that are not allowed."""
    if isinstance(known, str) or isinstance(tree, str):
        return known == tree
    if known[0] == STRETCH:
        return width(known) == width(tree) and has_brackets(known, [tree])
    return known[0] in (UNKNOWN_LABEL, category(tree[0])) and siblings_agree(known[1], tree[1])


def siblings_agree(known, children):
    if not known:
        return not children
    if isinstance(known[0], str) or known[0][0] != STRETCH:
        return bool(children) and agrees(known[0], children[0]) and siblings_agree(known[1:], children[1:])
    return any(
        sum(map(width, children[:k])) == width(known[0])
        and has_brackets(known[0], children[:k])
        and siblings_agree(known[1:], children[k:])
        for k in range(1, len(children) + 1)
    )


def has_brackets(stretch, forest):
    """Whether each bracket of a stretch is somewhere in a forest over the same words."""
    begin = 0
    for part in stretch[1]:
        if not isinstance(part, str):
            inner = [part] if part[0] != STRETCH else [p for p, _ in placed(part, 0)]
            starts = [0] if part[0] != STRETCH else [i for _, i in placed(part, 0)]
            for bracket, i in zip(inner, starts):
                if not any(at == begin + i and agrees(bracket, node) for node, at in nodes_of(forest)):
                    return False
        begin += width(part)
    return True


def placed(stretch, begin):
    """The brackets of a stretch, those of stretches in it too, with their places."""
    for part in stretch[1]:
        if not isinstance(part, str):
            yield from placed(part, begin) if part[0] == STRETCH else [(part, begin)]
        begin += width(part)


def nodes_of(forest, begin=0):
    for tree in forest:
        if not isinstance(tree, str):
            yield tree, begin
            yield from nodes_of(tree[1], begin)
        begin += width(tree)


def hidden(rng, tree):
    """A tree of which some brackets, labels and siblings are not known."""
    label, children = tree
    parts = [child if isinstance(child, str) else hidden(rng, child) for child in children]
    if rng.random() < 0.3:
        a, b = sorted(rng.integers(0, len(parts) + 1, 2).tolist())
        if a < b:
            parts[a:b] = [(STRETCH, tuple(parts[a:b]))]
    kind = rng.choice([label, UNKNOWN_LABEL, STRETCH], p=[0.5, 0.15, 0.35])
    return str(kind), tuple(parts)


def random_grammar(rng, n_nonterminals=3, n_terminals=2, n_rules=8):
    """Rules over S, A, B ... and 'a', 'b' ...: each nonterminal has a lexical rule; the rest of any shape."""
    names = "SABCDEFG"[:n_nonterminals]
    words = [f"'{c}'" for c in "abcdefg"[:n_terminals]]
    rules = {(name, (str(rng.choice(words)),)) for name in names}
    for _ in range(n_rules):
        size = int(rng.choice([1, 2, 2, 2, 3, 4]))
        rhs = tuple(str(rng.choice(words) if rng.random() < 0.25 else rng.choice(list(names))) for _ in range(size))
        rules.add((str(rng.choice(list(names))), rhs))
    return sorted(rules)


def as_text(rules):
    return "\n".join(f"{lhs} -> {' '.join(rhs)}" for lhs, rhs in rules)


def random_sentence(rng, rules, length):
    words = sorted({s[1:-1] for _, rhs in rules for s in rhs if s.startswith("'")})
    return [str(w) for w in rng.choice(words, length)]


def catalan(n):
    return int(np.prod([(n + k) / k for k in range(2, n + 1)]).round()) if n > 1 else 1
