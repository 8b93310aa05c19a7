"""A semantic parser without scikit-learn: two taggers that learn from bags, and the assembly of what they find.

`SemanticParser` wraps it for Python users; the command line uses it as it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np

from structsvm.features.attributes import AttributeVocabulary
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.result import Result, read_result, result_arrays
from structsvm.structures.meanings import MeaningGrammar, Symbol, as_meaning, format_meaning, symbol_of
from structsvm.tasks.semantics._ospas import Ospas
from structsvm.tasks.semantics.assembly import Assembler
from structsvm.tasks.semantics.features import Encoder, role_attributes, split_sentence, symbol_attributes

KIND = "semantics"
EMPTY = Symbol("-", None)
NO_ROLE: tuple[int, ...] = ()

# Arguments of a relation: prediction takes time and memory that double with each.
MAX_ARITY = 12

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

    def settle(self):
        """Give weights, of 0, to the attributes and labels that have a number and none yet."""
        self.ospas.resize(len(self.encoder), len(self.labels))

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
        self.settle()
        if tokens.n_tokens == 0:
            return []
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

    def restore(self, labels, arrays):
        """Take over labels, attributes and weights of a model file; ValueError if they do not fit one another."""
        if len(set(labels)) != len(labels) or labels[0] != self.labels[0]:
            raise ValueError("labels that are missing or repeated")
        names = AttributeVocabulary.from_arrays(arrays, len(arrays["name_starts"]) - 1).names
        self.encoder = Encoder(names)
        self.labels, self.number = labels, {label: k for k, label in enumerate(labels)}
        self.ospas.resize(len(names), len(labels))
        self.ospas.set_state(arrays)

    def scores(self, sequences):
        """``(scores, offsets)``: array (n_words, n_labels), and where each sequence begins in it."""
        tokens = self.encoder.encode(sequences, grow=False)
        return self.ospas.scores(tokens), tokens.offsets.tolist()

    @property
    def weights(self):
        return self.ospas.weights


class SemanticModel:
    """Symbol tagger, role tagger, grammar, parameters.

    `params` has the attributes C, window, ngrams, role_window, strategy, average, lowercase, fold, max_meanings,
    complete and seed (see `SemanticParser`).
    """

    def __init__(self, params, grammar=None):
        self.params, self.grammar = params, grammar
        self.symbols = Tagger(EMPTY, params)
        self.roles = Tagger(NO_ROLE, params)
        # relation -> role that an argument was seen in -> its number; pairs of a relation and one that is its argument
        self.relation_roles: dict[Symbol, dict[tuple[int, ...], int]] = defaultdict(dict)
        self.nested: set[tuple[Symbol, Symbol]] = set()
        self.result: Result | None = None

    # ---- training -------------------------------------------------------------------------------

    def read(self, sentences, bags, places=None):
        """Tokens of sentences and trees of bags, checked; `places` are what messages call the sentences."""
        if len(sentences) != len(bags):
            raise ValueError(f"there are {len(sentences)} sentences and {len(bags)} bags")
        places = [f"sentence {i}" for i in range(len(bags))] if places is None else places
        trees = [self.trees_of(bag, place) for bag, place in zip(bags, places, strict=True)]
        return self.tokens_of(sentences, places), trees

    def tokens_of(self, sentences, places=None):
        """Words of sentences, checked; `places` as for `read`."""
        places = [f"sentence {i}" for i in range(len(sentences))] if places is None else places
        pairs = zip(sentences, places, strict=True)
        return [split_sentence(sentence, place, lowercase=self.params.lowercase) for sentence, place in pairs]

    def trees_of(self, bag, place):
        """The distinct trees of a bag; a single meaning is a bag of one."""
        if isinstance(bag, (str, tuple)):
            bag = [bag]
        if not isinstance(bag, (list, set, frozenset)):
            raise TypeError(f"{place}: the bag must be a list of meaning representations, got {bag!r:.80}")
        if not bag:
            raise ValueError(f"{place}: the bag is empty; at least one meaning representation must stand there")
        try:
            trees = [as_meaning(meaning) for meaning in bag]
        except (ValueError, TypeError) as error:
            raise type(error)(f"{place}: {error}") from None
        trees = list(dict.fromkeys(folded(tree) if self.params.fold else tree for tree in trees))
        relations = relations_in(trees)
        if EMPTY.name in trees or any(EMPTY in roles for found in relations.values() for roles in found):
            raise ValueError(f"{place}: the constant '-' is what words have that mean nothing; rename it")
        for relation in relations:
            if relation.arity > MAX_ARITY:
                raise ValueError(f"{place}: {relation.name} has {relation.arity} arguments, more than {MAX_ARITY}")
        return trees

    def register(self, bags):
        """Number the symbols and roles in the bags, of which the taggers will know that they could be wrong."""
        for trees in bags:
            for tree in trees:
                for symbol in symbols_in(tree):
                    self.symbols.label_number(symbol)
            for relation, found in relations_in(trees).items():
                known = self.relation_roles[relation]
                known.update({role: self.roles.label_number(role) for roles in found for role in roles.values()})
                self.nested |= {(relation, s) for roles in found for s in roles if s.arity is not None}

    def settle(self):
        """Make a model whole that was left in the midst of `learn`."""
        self.symbols.settle()
        self.roles.settle()

    def learn(self, tokens, bags):
        """One online pass over sentences and bags as `read` returns them.

        Roles are learnt from the symbols that the words took while they were learnt. Once all that the bags hold is
        registered, it makes no difference in what portions sentences come.
        """
        self.register(bags)
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

    def _learn_roles(self, tokens, bags, taken):
        sequences: list[list] = []
        bag_of: list[int] = []
        role_bags: list[Counter] = []
        at = 0
        for sentence, trees in zip(tokens, bags, strict=True):
            numbers = taken[at : at + len(sentence)]
            at += len(sentence)
            instances = relations_in(trees)
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
            symbol = self.symbols.labels[number]
            counts: Counter = Counter()
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
        return [[self.symbols.labels[k] for k in scores.argmax(axis=1)] for scores in self.symbol_scores(tokens)]

    def symbol_scores(self, tokens):
        """For each sentence an array (n_words, n_symbols)."""
        attributes = (symbol_attributes(sentence, self.params.window, self.params.ngrams) for sentence in tokens)
        scores, offsets = self.symbols.scores(attributes)
        return [scores[a:b] for a, b in pairwise(offsets)]

    def parse(self, tokens):
        """The meaning representations of each sentence, as a list of lists of trees."""
        scores = self.symbol_scores(tokens)
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
        assembler = Assembler(self.grammar, self.relation_roles, self.nested, self.params.max_meanings)
        found: dict[int, dict] = defaultdict(dict)  # sentence -> relation's word -> (others, their scores)
        if sequences:
            role_scores, offsets = self.roles.scores(sequences)
            for (s, t, others), (a, b) in zip(places, pairwise(offsets), strict=True):
                found[s][t] = others, role_scores[a:b].tolist()
        parsed = []
        for s, symbols in enumerate(alignment):
            margins = [float(row[k] - row[0]) for row, k in zip(scores[s], numbers[s], strict=True)]
            parsed.append(assembler.parse(symbols, margins, found[s]))
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

    # ---- model files ----------------------------------------------------------------------------

    def save(self, path, stored):
        """Write the model file; `stored` are the parameters for its header."""
        meta = {
            "params": stored,
            "seed": self.params.seed,
            "grammar": None if self.grammar is None else self.grammar.text,
            "symbols": [list(symbol) for symbol in self.symbols.labels],
            "roles": [list(role) for role in self.roles.labels],
            "relation_roles": [[*relation, list(known.values())] for relation, known in self.relation_roles.items()],
            "nested": sorted([*outer, *inner] for outer, inner in self.nested),
            "result": None if self.result is None else self.result.to_dict(),
        }
        arrays: dict[str, np.ndarray] = {}
        for name, tagger in (("symbols", self.symbols), ("roles", self.roles)):
            vocabulary = AttributeVocabulary(list(tagger.encoder.index))
            for part in (vocabulary.to_arrays(), tagger.ospas.get_state()):
                arrays |= {f"{name}.{key}": array for key, array in part.items()}
        arrays |= result_arrays(self.result)
        write_model(path, KIND, meta, arrays)

    @classmethod
    def load(cls, path, read_params, *, mmap=False):
        """Read a model file; ModelFileError if it is not a whole, sound semantic parser.

        `read_params` makes the model's parameters of what `save` stored, and of the seed.
        """
        file = read_model(path, kind=KIND, mmap=mmap)
        try:
            return cls._from_file(file, read_params(file.meta["params"], file.meta["seed"]))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"{path}: not a sound semantic parser: {error}") from error

    @classmethod
    def _from_file(cls, file, params):
        meta = file.meta
        model = cls(params, None if meta["grammar"] is None else MeaningGrammar(meta["grammar"]))
        symbols = [Symbol(name, arity) for name, arity in meta["symbols"]]
        for name, arity in symbols:
            if type(name) is not str or not (arity is None or (type(arity) is int and 0 <= arity <= MAX_ARITY)):
                raise ValueError(f"a symbol {name!r:.80} of {arity!r:.80} arguments")
        model.symbols.restore(symbols, file.under("symbols."))
        roles = [tuple(role) for role in meta["roles"]]
        if not all(type(a) is int and 0 <= a < MAX_ARITY for role in roles for a in role):
            raise ValueError("a role that no argument has")
        model.roles.restore(roles, file.under("roles."))
        for name, arity, numbers in meta["relation_roles"]:
            known = {roles[k]: k for k in numbers if k > 0}
            if any(a >= arity for role in known for a in role):
                raise ValueError(f"roles {list(known)!r:.80} of {name!r:.80}, which has {arity} arguments")
            model.relation_roles[Symbol(name, arity)] = known
        model.nested = {(Symbol(*pair[:2]), Symbol(*pair[2:])) for pair in meta["nested"]}
        if meta["result"] is not None:
            model.result, _ = read_result(file)
        return model


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
        roles: dict[Symbol, tuple[int, ...]] = defaultdict(tuple)
        for k, part in enumerate(node[1:]):
            roles[symbol_of(part)] += (k,)
        found[symbol_of(node)].append(dict(roles))
        waiting += node[1:]
    return found
