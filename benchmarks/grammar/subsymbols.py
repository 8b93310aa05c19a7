"""Labels refined by hidden subsymbols, which `LatentSVM` completes: whether they pay."""

from __future__ import annotations

import warnings
from itertools import product

from common.measure import Clock
from common.report import Table, notes
from grammar.choices import counts, f1
from grammar.data import treebank
from structsvm.metrics import EVALB_DELETED
from structsvm.oracles.cky import CKYOracle
from structsvm.solvers import LaRank, LatentSVM
from structsvm.structures.grammar import Grammar
from structsvm.structures.rules import Rule, Terminal, plain, rules_of
from structsvm.structures.trees import STRETCH, Tree
from structsvm.tasks.grammar.templates import default_templates

LONGEST, QUICK = 12, 8
MOST_BYTES = 2**33
COLUMNS = {
    "split": ("subsymbols a label", "d"),
    "rules": ("rules", "d"),
    "first": ("F1 %, first", ".2f"),
    "second": ("F1 %, second", ".2f"),
    "cpu": ("training, CPU s", ".1f"),
    "rate": ("sentences/s", ".0f"),
}


def as_tags(tree):
    """The tree over its tags."""
    return tree.map(lambda node, made: node.label if node.is_preterminal else Tree(node.label, made))


def split_rules(trees, split):
    """The rules of trees, each label in so many kinds: ``NP^0``, ``NP^1``."""
    rules = {}
    for rule in dict.fromkeys(rule for tree in trees for rule in rules_of(tree)):
        kinds = [
            [symbol] if isinstance(symbol, Terminal) or split == 1 else [f"{symbol}^{k}" for k in range(split)]
            for symbol in (rule.lhs, *rule.rhs)
        ]
        rules |= dict.fromkeys(Rule(lhs, tuple(rhs)) for lhs, *rhs in product(*kinds))
    return list(rules)


class Parser:
    def __init__(self, trees, split):
        trees = [as_tags(tree) for tree in trees]
        starts = dict.fromkeys(tree.label for tree in trees)
        starts = [name if split == 1 else f"{name}^{k}" for name in starts for k in range(split)]
        grammar = Grammar(split_rules(trees, split), starts, h=1, max_unary=2, uncounted=EVALB_DELETED)
        self.rules = len(grammar.arrays["rule_pair"])
        self.oracle = CKYOracle(
            grammar,
            loss="hamming",
            span_features=default_templates("tags", rules=False),
            span_bits=14,
            max_chart_bytes=MOST_BYTES,
        )
        solver = LaRank(C=0.1, max_iter=4, random_state=0)
        # Under the brackets of a tree that is known in part, a label may have any subsymbol.
        open_ = [Tree(STRETCH, (tree,)) for tree in trees]
        longer = self.oracle.disagreeing(open_)  # chains
        known = [one for i, one in enumerate(trees if split == 1 else open_) if i not in longer]
        solver = solver if split == 1 else LatentSVM(solver)
        self.weights = solver.solve(self.oracle.bind(None, known, **solver.formulation())).weights

    def predict(self, sentences):
        tags = [[tag for _, tag in sentence] for sentence in sentences]
        words = [[Tree(tag, (word,)) for word, tag in sentence] for sentence in sentences]
        found = self.oracle.parse_all(tags, self.weights, words=words)
        return [plain(one[0]) if one else Tree("S", shown) for one, shown in zip(found, words, strict=True)]


def run(options):
    trees, _ = treebank(QUICK if options.quick else LONGEST, options.quick)
    n = len(trees) // 5
    divisions = [(trees[:-n], trees[-n:]), (trees[n:], trees[:n])]
    title = f"Hidden subsymbols: {len(divisions[0][0])} trees to train on, {n} others to judge by, twice"
    table = Table(title, COLUMNS, notes=notes(NOTES))
    for split in (1, 2) if options.quick else (1, 2, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Clock() as training:
                parsers = [Parser(train, split) for train, _ in divisions]
            with Clock() as parsing:
                both = [counts(test, parser) for parser, (_, test) in zip(parsers, divisions, strict=True)]
        row = {"split": split, "rules": parsers[0].rules, "first": f1(both[0]), "second": f1(both[1])}
        table.rows.append(row | {"cpu": training.cpu / 2, "rate": 2 * n / parsing.cpu})
        yield table


NOTES = f"""
From tags, sentences up to {LONGEST} words of wsj_0001-0159, divided as in the part of choices; h = 1, span features by
label, C = 0.1, four passes of LaRank, with subsymbols in rounds of `LatentSVM`; at most two unary rules in a chain.
Rules: binary ones, of the first division.
"""
