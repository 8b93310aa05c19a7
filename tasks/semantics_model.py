"""A semantic parser without scikit-learn: two taggers that learn from bags, and the assembly of what they find.

`SemanticParser` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structsvm.tasks._ospas import Ospas, word_scores
from structsvm.tasks.meanings import Symbol, as_meaning, format_meaning, parse_meaning, symbol_of
from structsvm.tasks.semantics_features import Encoder, role_attributes, split_sentence, symbol_attributes

EMPTY = Symbol("-", None)
NO_ROLE: tuple[int, ...] = ()

# Relations that are tried for a sentence whose symbols make no whole.
MAX_CHANGES = 20


class Tagger:
    """Attributes and labels, numbered as they come, and the weights that OSPAS trains.

    Label 0, which an untrained word gets, is `empty`.
    """

    def __init__(self, empty, params):
        self.encoder = Encoder()
        self.labels, self.number = [empty], {empty: 0}
        self.ospas = Ospas(0, 1, C=params.C, strategy=params.strategy, average=params.average, seed=params.seed)

    def label_number(self, label):
        """The number of a label; a new one if it is new."""
        if label not in self.number:
            self.number[label] = len(self.labels)
            self.labels.append(label)
        return self.number[label]

    def learn(self, sequences, bag_of, bags):
        """One pass over sequences of attribute lists.

        Parameters
        ----------
        sequences : iterable of lists
        bag_of : list of int
            The bag of each word.
        bags : list of dict
            How many of each label number.

        Returns
        -------
        labels : list of int
            What each word took from its bag, -1 for nothing.
        """
        tokens = self.encoder.encode(sequences, grow=True)
        if tokens.n_tokens == 0:
            return []
        self.ospas.resize(len(self.encoder), len(self.labels))
        entries = [sorted(bag.items()) for bag in bags]
        indptr = np.concatenate([[0], np.cumsum([len(items) for items in entries])]).astype(np.int64)
        flat = np.array([pair for items in entries for pair in items], dtype=np.int32).reshape(-1, 2)
        labels = self.ospas.learn(
            tokens,
            np.array(bag_of, dtype=np.int64),
            indptr,
            np.ascontiguousarray(flat[:, 0]),
            np.ascontiguousarray(flat[:, 1]),
        )
        return labels.tolist()

    def scores(self, sequences):
        """``(scores, offsets)``: array (n_words, n_labels), and where each sequence begins in it."""
        tokens = self.encoder.encode(sequences, grow=False)
        return word_scores(tokens, self.weights), tokens.offsets.tolist()

    @property
    def weights(self):
        return self.ospas.weights


class SemanticModel:
    """Symbol tagger, role tagger, grammar, parameters.

    `params` has the attributes C, window, ngrams, role_window, strategy, average, lowercase, fold, max_meanings, seed.
    """

    def __init__(self, params, grammar=None):
        self.params, self.grammar = params, grammar
        self.symbols = Tagger(EMPTY, params)
        self.roles = Tagger(NO_ROLE, params)
        self.relation_roles = defaultdict(set)  # relation -> the roles that its arguments were seen in
        self.n_sentences = 0

    # ---- training -------------------------------------------------------------------------------

    def read(self, sentences, bags, first=0):
        """Tokens of sentences and trees of bags, checked; messages count from `first`."""
        if len(sentences) != len(bags):
            raise ValueError(f"there are {len(sentences)} sentences and {len(bags)} bags")
        tokens = [self.tokens_of(sentence, first + i) for i, sentence in enumerate(sentences)]
        return tokens, [self.trees_of(bag, first + i) for i, bag in enumerate(bags)]

    def tokens_of(self, sentence, i):
        return split_sentence(sentence, f"sentence {i}", lowercase=self.params.lowercase)

    def trees_of(self, bag, i):
        """The distinct trees of a bag; a single meaning is a bag of one."""
        if isinstance(bag, (str, tuple)):
            bag = [bag]
        if not isinstance(bag, (list, set, frozenset)):
            raise TypeError(f"the bag of sentence {i} must be a list of meaning representations, got {bag!r:.80}")
        if not bag:
            raise ValueError(f"the bag of sentence {i} is empty; at least one meaning representation must stand there")
        try:
            trees = [as_meaning(meaning) for meaning in bag]
        except (ValueError, TypeError) as error:
            raise type(error)(f"sentence {i}: {error}") from None
        return list(dict.fromkeys(folded(tree) if self.params.fold else tree for tree in trees))

    def learn(self, tokens, bags):
        """One online pass over sentences and bags as `read` returns them.

        Roles are learnt from the symbols that the words took while they were learnt. So it makes no difference in
        what portions sentences come.
        """
        label = self.symbols.label_number
        bag_of, symbol_bags = [], []
        for s, (sentence, trees) in enumerate(zip(tokens, bags, strict=True)):
            sizes = []
            counts: Counter = Counter()
            for tree in trees:
                found = symbols_in(tree)
                sizes.append(len(found))
                counts.update(map(label, found))
            # The alignment must be feasible for each meaning: the shortest leaves the most words empty.
            if len(sentence) > min(sizes):
                counts[0] = len(sentence) - min(sizes)
            symbol_bags.append(counts)
            bag_of += [s] * len(sentence)
        attributes = (symbol_attributes(sentence, self.params.window, self.params.ngrams) for sentence in tokens)
        taken = self.symbols.learn(attributes, bag_of, symbol_bags)
        self._learn_roles(tokens, bags, taken)
        self.n_sentences += len(tokens)

    def _learn_roles(self, tokens, bags, taken):
        sequences, bag_of, role_bags, at = [], [], [], 0
        for sentence, trees in zip(tokens, bags, strict=True):
            numbers = taken[at : at + len(sentence)]
            at += len(sentence)
            instances = relations_in(trees)
            for relation, found in instances.items():
                self.relation_roles[relation].update(role for roles in found for role in roles.values())
            meant = [self.symbols.labels[k].name if k > 0 else "" for k in numbers]
            for t, number in enumerate(numbers):
                relation = self.symbols.labels[number] if number > 0 else EMPTY
                if not relation.arity:
                    continue
                others = [j for j, k in enumerate(numbers) if k > 0 and j != t]
                if others:
                    sequences.append(role_attributes(sentence, meant, t, others, self.params.role_window))
                    self._add_role_bags(instances[relation], [numbers[j] for j in others], bag_of, role_bags)
        self.roles.learn(sequences, bag_of, role_bags)

    def _add_role_bags(self, instances, numbers, bag_of, role_bags):
        """One bag for each symbol among the words: the roles that it has in the relation's instances, or none."""
        first = len(role_bags)
        place = {number: first + k for k, number in enumerate(dict.fromkeys(numbers))}
        bag_of += [place[number] for number in numbers]
        n_words = Counter(numbers)
        for number in place:
            symbol, counts = self.symbols.labels[number], Counter()
            for roles in instances:
                role = roles.get(symbol)
                if role is not None:
                    counts[self.roles.label_number(role)] += 1
                spare = n_words[number] - (role is not None)
                if spare > 0:
                    counts[0] += spare
            role_bags.append(counts)

    # ---- prediction -----------------------------------------------------------------------------

    def align(self, tokens):
        """The symbol of each word of each sentence: a list of lists."""
        return [[self.symbols.labels[k] for k in scores.argmax(axis=1)] for scores in self._symbol_scores(tokens)]

    def _symbol_scores(self, tokens):
        """For each sentence an array (n_words, n_symbols)."""
        attributes = (symbol_attributes(sentence, self.params.window, self.params.ngrams) for sentence in tokens)
        scores, offsets = self.symbols.scores(attributes)
        return [scores[a:b] for a, b in pairwise(offsets)]

    def parse(self, tokens):
        """The meaning representations of each sentence, as a list of lists of trees."""
        scores = self._symbol_scores(tokens)
        numbers = [table.argmax(axis=1).tolist() for table in scores]
        parsed = self._parse_labelled(tokens, scores, numbers)
        if self.params.complete:
            for s, parse in enumerate(parsed):
                if parse.n_words < sum(k > 0 for k in numbers[s]) or not parse.trees:
                    parsed[s] = self._parse_changed(tokens[s], scores[s], numbers[s], parse)
        return [parse.trees for parse in parsed]

    def _parse_labelled(self, tokens, scores, numbers):
        """The trees of sentences whose words have these symbols (their numbers)."""
        alignment = [[self.symbols.labels[k] for k in sentence] for sentence in numbers]
        sequences, places = [], []
        for s, symbols in enumerate(alignment):
            meant = ["" if symbol == EMPTY else symbol.name for symbol in symbols]
            for t, symbol in enumerate(symbols):
                others = [j for j, other in enumerate(symbols) if other != EMPTY and j != t]
                if symbol.arity and others:
                    sequences.append(role_attributes(tokens[s], meant, t, others, self.params.role_window))
                    places.append((s, t, others))
        found = defaultdict(dict)  # sentence -> relation's word -> (others, their scores)
        if sequences:
            role_scores, offsets = self.roles.scores(sequences)
            for (s, t, others), (a, b) in zip(places, pairwise(offsets), strict=True):
                found[s][t] = others, role_scores[a:b].tolist()
        parsed = []
        for s, symbols in enumerate(alignment):
            margins = [float(row[k] - row[0]) for row, k in zip(scores[s], numbers[s], strict=True)]
            parsed.append(self._assemble(symbols, margins, found[s]))
        return parsed

    def _parse_changed(self, tokens, scores, numbers, parse):
        """The parse of highest value after at most one word has become a relation.

        For each relation the word that loses least by it is tried.
        """
        cost = scores.max(axis=1)[:, None] - scores
        words = cost.argmin(axis=0)
        least = cost[words, np.arange(len(words))]
        changed = []
        for k in np.argsort(least, kind="stable").tolist():
            t = int(words[k])
            if self.symbols.labels[k].arity is not None and numbers[t] != k:
                changed.append([*numbers[:t], k, *numbers[t + 1 :]])
            if len(changed) == MAX_CHANGES:
                break
        parses = self._parse_labelled([tokens] * len(changed), [scores] * len(changed), changed)
        return max([parse, *parses], key=lambda parse: parse.value)

    def _assemble(self, symbols, margins, found):
        """The parse of words with these symbols.

        Relations choose their arguments in the order of what the choice gains; a relation can be the argument of one
        other only, and never of itself.
        """
        arguments, parent = {}, {}
        waiting = {t for t, symbol in enumerate(symbols) if symbol.arity is not None}
        choices = None
        while waiting:
            if choices is None:
                choices = {t: self._choose(symbols, t, *found.get(t, ((), ())), parent) for t in sorted(waiting)}
                choices = {t: choice for t, choice in choices.items() if choice is not None}
            if not choices:
                break
            t = max(choices, key=lambda t: choices[t][0])
            arguments[t] = choices.pop(t)[1]
            waiting.remove(t)
            owned = {j: t for j in arguments[t] if symbols[j].arity is not None}
            if owned:
                parent |= owned
                choices = None  # they may have been counted on by others
        parses = {}
        for t in arguments:
            if t not in parent:
                words, tree = below(t, arguments), tree_of(t, symbols, arguments)
                if tree is not None and (self.grammar is None or self.grammar.accepts(tree)):
                    value = sum(margins[j] for j in words)
                    if tree not in parses or value > parses[tree][0]:
                        parses[tree] = value, t, len(words)
        kept = sorted(parses, key=lambda tree: -parses[tree][0])[: self.params.max_meanings]
        value = sum(parses[tree][0] for tree in kept) if kept else -np.inf
        return Parse(sorted(kept, key=lambda tree: parses[tree][1]), value, sum(parses[tree][2] for tree in kept))

    def _choose(self, symbols, relation, others, scores, parent):
        """``(gain, arguments)``: the best words for all arguments of a relation, or None.

        best[filled] is the most that words so far gain over having no role, when they fill the arguments in the bit
        mask `filled`; a word may fill several (a relation of something with itself).
        """
        symbol = symbols[relation]
        whole = (1 << symbol.arity) - 1
        best = {0: (0.0, ())}
        known, number = self.relation_roles.get(symbol, ()), self.roles.number
        roles = [(number[role], role, sum(1 << a for a in role)) for role in known if role in number]
        for j, row in zip(others, scores, strict=True):
            if symbols[j].arity is not None and (j in parent or is_above(j, relation, parent)):
                continue
            fitting = [
                (row[k] - row[0], role, mask)
                for k, role, mask in roles
                if self.grammar is None or all(self.grammar.allows(symbol, a, symbols[j]) for a in role)
            ]
            for filled, (value, chosen) in list(best.items()):
                for gain, role, mask in fitting:
                    if not filled & mask and best.get(filled | mask, (-np.inf,))[0] < value + gain:
                        best[filled | mask] = value + gain, (*chosen, (j, role))
        if whole not in best:
            return None
        gain, chosen = best[whole]
        words = {a: j for j, role in chosen for a in role}
        return gain, [words[a] for a in range(symbol.arity)]


class Parse(NamedTuple):
    """Trees of a sentence, and how good they are.

    `value` is what their words gain over meaning nothing, minus infinity without trees; `n_words` is how many words they
    explain.
    """

    trees: list
    value: float
    n_words: int


def below(t, arguments):
    """The words of the tree under word t."""
    words, waiting = [], [t]
    while waiting:
        j = waiting.pop()
        words.append(j)
        waiting += dict.fromkeys(arguments.get(j, ()))
    return words


def tree_of(t, symbols, arguments):
    """The tree under word t, None where the arguments of a relation are missing."""
    symbol = symbols[t]
    if symbol.arity is None:
        return parse_meaning(symbol.name)
    if t not in arguments:
        return None
    parts = [tree_of(j, symbols, arguments) for j in arguments[t]]
    return None if None in parts else (symbol.name, *parts)


def is_above(word, relation, parent):
    """Whether `word` is the relation or has it below itself."""
    while relation is not None:
        if relation == word:
            return True
        relation = parent.get(relation)
    return False


def folded(tree):
    """A tree in which a relation between constants alone is a constant: its text."""
    if isinstance(tree, str):
        return tree
    if len(tree) > 1 and all(isinstance(part, str) for part in tree[1:]):
        return format_meaning(tree)
    return (tree[0], *map(folded, tree[1:]))


def symbols_in(tree):
    """The symbols of a tree, one for each node; arguments of a relation that are the same count once."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(symbol_of(node))
        if not isinstance(node, str):
            waiting += dict.fromkeys(node[1:])
    return found


def relations_in(trees):
    """The relations of all trees: symbol -> list of dicts from an argument's symbol to its role.

    A role is the tuple of the numbers of the arguments, more than one where they are the same.
    """
    found = defaultdict(list)
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            continue
        roles = defaultdict(tuple)
        for k, part in enumerate(node[1:]):
            roles[symbol_of(part)] += (k,)
        found[symbol_of(node)].append(dict(roles))
        waiting += node[1:]
    return found
