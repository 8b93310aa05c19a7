"""A semantic parser without scikit-learn: two taggers that learn from bags, and the assembly of what they find."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm.dual.parallel import parallel_parts
from structsvm.features.attributes import AttributeVocabulary
from structsvm.model_file import under
from structsvm.oracles._ambiguous import decision_scores
from structsvm.stored_values import Array, Group, OneOf, Record, Stored, Value, checked_arrays, strings
from structsvm.structures.meanings import Symbol
from structsvm.tasks.semantics.assembly import Assembler
from structsvm.tasks.semantics.bags import SETTINGS, BagModel, MeaningBags
from structsvm.tasks.semantics.features import Encoder, role_attributes, symbol_attributes
from structsvm.tasks.semantics.parameters import Ospas
from structsvm.tasks.semantics.problem import SemanticProblem
from structsvm.tasks.semantics.solver import tagger
from structsvm.tasks.semantics.trees import EMPTY, NO_ROLE, folded, relations_in, symbols_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from structsvm._problem import BoundProblem
    from structsvm.arrays import State, Weights
    from structsvm.features.sparse import SparseRows
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.structures.meanings import Meaning
    from structsvm.tasks.common.training import Job
    from structsvm.tasks.semantics.assembly import Assembly, Scored
    from structsvm.tasks.semantics.features import Tokens
    from structsvm.tasks.semantics.parameters import Params
    from structsvm.tasks.semantics.trees import Role

L = TypeVar("L", bound=Hashable)
T = TypeVar("T")

# Arrays of a tagger: names of attributes, weights, and the state that training resumes from (`TaggerState.get_state`).
TAGGER = strings("names", "name_starts", "n_features") | tagger()

# Arguments of a relation: prediction takes time and memory that double with each.
MAX_ARITY = 12

# Relations that are tried for a sentence whose symbols make no whole.
MAX_CHANGES = 20


def symbols_from(stored: Any) -> list[Symbol]:
    """The symbols of a header; ValueError for what they cannot be."""
    symbols = [Symbol(name, arity) for name, arity in stored]
    for name, arity in symbols:
        if type(name) is not str or not (arity is None or (type(arity) is int and 0 <= arity <= MAX_ARITY)):
            raise ValueError(f"a symbol {name!r:.80} of {arity!r:.80} arguments")
    return symbols


def roles_from(stored: Any) -> list[Role]:
    """The roles of a header; ValueError for what they cannot be."""
    roles = [tuple(role) for role in stored]
    if not all(type(a) is int and 0 <= a < MAX_ARITY for role in roles for a in role):
        raise ValueError("a role that no argument has")
    return roles


RECORD = Record({
    **SETTINGS,
    "symbols": Value(symbols_from, lambda symbols: [list(symbol) for symbol in symbols], of="symbols.labels"),
    "roles": Value(roles_from, lambda roles: [list(role) for role in roles], of="roles.labels"),
    "relation_roles": Value(
        list, lambda roles: [[*relation, list(known.values())] for relation, known in roles.items()]
    ),
    "nested": Value(
        lambda pairs: {(Symbol(*pair[:2]), Symbol(*pair[2:])) for pair in pairs},
        lambda nested: sorted([*outer, *inner] for outer, inner in nested),
    ),
    "empty_takes_ties": OneOf((False,), of=lambda model: False),
    "taggers": Group(bare=True, of="named_arrays"),
    "seed": Array("u8", (1,), of=lambda model: model.tagger_arrays["seed"]),
})  # fmt: skip


class Tagger(Generic[L]):
    """Attributes and labels, numbered as they come, and their weights.

    Label 0, which an untrained word gets, is the empty one.

    Attributes
    ----------
    encoder : Encoder
    labels : list
    number : dict
        From a label to its id.
    weights : ndarray of shape (n_features, n_labels)
    """

    def __init__(
        self, labels: Sequence[L], names: Iterable[str] = (), weights: NDArray[np.float64] | None = None
    ) -> None:
        self.encoder, self.labels = Encoder(names), list(labels)
        self.number = {label: k for k, label in enumerate(labels)}
        self.weights = np.zeros((0, len(labels))) if weights is None else weights

    def copy(self) -> Tagger[L]:
        """A copy whose attributes and labels may grow."""
        return Tagger(self.labels, self.encoder.index, self.weights)

    def add(self, labels: Iterable[L]) -> None:
        """Give ids to labels that are new."""
        for label in labels:
            if label not in self.number:
                self.number[label] = len(self.labels)
                self.labels.append(label)

    def scores(self, rows: SparseRows, offsets: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return per sentence, encoded by the encoder, an array (n_words, n_labels)."""
        scores = decision_scores(rows, len(self.labels), self.weights.ravel())
        return [scores[a:b] for a, b in pairwise(offsets.tolist())]


class SemanticModel(BagModel, method=Ospas.name):
    """Symbol tagger, role tagger, grammar.

    Parameters
    ----------
    params : object with the attributes `method`, `lowercase` and `grammar`
        See `SemanticParser`.

    Attributes
    ----------
    symbols, roles : Tagger
    relation_roles : dict
        From a relation to the roles that an argument was seen in, and from these to their ids.
    nested : set of (Symbol, Symbol)
        A relation, and one that is its argument.
    tagger_arrays : dict of ndarray
        The state that training resumes: see `OspasState.to_arrays`.
    """

    record = RECORD
    fixed = ("window", "ngrams", "role_window", "lowercase", "fold_constants", "average")
    followed = ("window", "ngrams", "role_window", "fold_constants", "average", "max_meanings", "complete")

    def __init__(self, params: Params) -> None:
        super().__init__()
        self.follow(params)
        self.symbols, self.roles = Tagger([EMPTY]), Tagger([NO_ROLE])
        self.relation_roles: dict[Symbol, dict[Role, int]] = defaultdict(dict)
        self.nested: set[tuple[Symbol, Symbol]] = set()
        self.tagger_arrays: State = {}

    # ---- training -------------------------------------------------------------------------------

    def checked_trees(self, trees: Iterable[Meaning], place: str) -> list[Meaning]:
        trees = list(dict.fromkeys(folded(tree) if self.settings.fold_constants else tree for tree in trees))
        relations: dict[Any, list[dict[Symbol, Role]]] = relations_in(trees)  # the arity of all is a number
        if EMPTY.name in trees or any(EMPTY in roles for found in relations.values() for roles in found):
            raise ValueError(f"{place}: the constant '-' is what words have that mean nothing; rename it")
        for relation in relations:
            if relation.arity > MAX_ARITY:
                raise ValueError(f"{place}: {relation.name} has {relation.arity} arguments, more than {MAX_ARITY}")
        return trees

    def encode(self, tokens: Iterable[Tokens], *, grow: bool) -> tuple[SparseRows, NDArray[np.int64]]:
        """The attributes that predict symbols: see `Encoder.encode`."""
        attributes = (symbol_attributes(words, self.settings.window, self.settings.ngrams) for words in tokens)
        return self.symbols.encoder.encode(attributes, grow=grow)

    def knows(self, words: Sequence[str]) -> bool:
        is_alone = self.settings.window == 0 and self.settings.ngrams == 1
        names = words if is_alone else [f"0:0:{word}" for word in words]
        return not words or any(name in self.symbols.encoder.index for name in names)

    def register(self, bags: Iterable[Sequence[Meaning]]) -> None:
        """Number the symbols and roles in the bags, of which the taggers will know that they could be wrong."""
        for trees in bags:
            for tree in trees:
                self.symbols.add(symbols_in(tree))
            for relation, found in relations_in(trees).items():
                self.roles.add(role for roles in found for role in roles.values())
                known = self.relation_roles[relation]
                known.update({role: self.roles.number[role] for roles in found for role in roles.values()})
                self.nested |= {(relation, s) for roles in found for s in roles if s.arity is not None}

    def copy(self) -> Self:
        model = copy.copy(self)
        model.symbols, model.roles = self.symbols.copy(), self.roles.copy()
        model.relation_roles = defaultdict(dict, {symbol: dict(known) for symbol, known in self.relation_roles.items()})
        model.nested = set(self.nested)
        return model

    def bind(self, examples: MeaningBags, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """The problem of sentences and bags, also with new words and symbols."""
        return SemanticProblem(self, examples.sentences, examples.bags), examples.weight

    def recentred(
        self, problem: BoundProblem, sample_weight: Weights | None, solver: Solver
    ) -> tuple[BoundProblem, Weights | None, State]:
        return problem, sample_weight, self.tagger_arrays

    def set_weights_from(self, run: Run) -> None:
        state = run.state
        self.tagger_arrays = state.to_arrays()
        self.symbols.weights, self.roles.weights = state.symbols.averaged, state.roles.averaged
        self.roles.encoder = Encoder(state.encoder.index)

    def settle(self, job: Job[MeaningBags]) -> None:
        """Train in passes that later calls resume bit for bit; the solver's C is but the default, and stays it.

        Once all that the bags hold is registered, it makes no difference in what portions sentences come.
        """
        job.passes = job.solver.n_passes if job.passes is None else job.passes
        job.choose = False

    def finish(self, job: Job[MeaningBags]) -> None:
        """Count all trainings in the result."""
        if job.before is not None:
            before, result = job.before.result, self.result
            counts = ("n_iter", "n_argmax", "seconds")
            self.result = replace(result, **{name: getattr(before, name) + getattr(result, name) for name in counts})

    # ---- prediction -----------------------------------------------------------------------------

    def align(self, tokens: Sequence[Tokens]) -> list[list[Symbol]]:
        """The symbol of each word of each sentence: a list of lists."""
        if not all(tokens):
            return without_empty(self.align, tokens)
        scored = self.symbol_scores(tokens)
        return [[self.symbols.labels[k] for k in self.best_symbols(scores)] for scores in scored]

    def best_symbols(self, scores: NDArray[np.float64]) -> list[int]:
        """The id of the best symbol of each word: of several not the empty one, unless nothing is known of the word."""
        best = scores.argmax(axis=1)
        if scores.shape[1] > 1:
            other = scores[:, 1:].argmax(axis=1) + 1
            best = np.where(
                (scores.max(axis=1) == scores[np.arange(len(best)), other]) & scores.any(axis=1), other, best
            )
        return best.tolist()

    def symbol_scores(self, tokens: Iterable[Tokens]) -> list[NDArray[np.float64]]:
        """For each sentence an array (n_words, n_symbols)."""
        return self.symbols.scores(*self.encode(tokens, grow=False))

    def parse(self, tokens: Sequence[Tokens], n_jobs: int = 1) -> list[list[Meaning]]:
        """The meaning representations of each sentence, as a list of lists of trees."""
        if not all(tokens):
            return without_empty(lambda full: self.parse(full, n_jobs), tokens)
        return parallel_parts(lambda a, b: self._parse_part(tokens[a:b]), len(tokens), n_jobs)

    def _parse_part(self, tokens: Sequence[Tokens]) -> list[list[Meaning]]:
        scores = self.symbol_scores(tokens)
        label_ids = [self.best_symbols(table) for table in scores]
        parsed = self._parse_labelled(tokens, scores, label_ids)
        if self.settings.complete:
            for s, parse in enumerate(parsed):
                if parse.n_words < sum(k > 0 for k in label_ids[s]) or not parse.trees:
                    parsed[s] = self._parse_changed(tokens[s], scores[s], label_ids[s], parse)
        return [parse.trees for parse in parsed]

    def _parse_labelled(
        self, tokens: Sequence[Tokens], scores: Sequence[NDArray[np.float64]], label_ids: Sequence[Sequence[int]]
    ) -> list[Assembly]:
        """The trees of sentences whose words have these symbols (their ids)."""
        alignment = [[self.symbols.labels[k] for k in sentence] for sentence in label_ids]
        sequences, places = [], []
        for s, symbols in enumerate(alignment):
            meant = ["" if symbol == EMPTY else symbol.name for symbol in symbols]
            for t, symbol in enumerate(symbols):
                others = [j for j, other in enumerate(symbols) if other != EMPTY and j != t]
                if symbol.arity and others:
                    sequences.append(role_attributes(tokens[s], meant, t, others, self.settings.role_window))
                    places.append((s, t, others))
        assembler = Assembler(self.grammar, self.relation_roles, self.nested, self.settings.max_meanings)
        found: dict[int, dict[int, Scored]] = defaultdict(dict)  # sentence -> relation's word -> (others, their scores)
        scored_words = self.roles.scores(*self.roles.encoder.encode(sequences, grow=False))
        for (s, t, others), scored in zip(places, scored_words, strict=True):
            found[s][t] = others, scored.tolist()
        parsed = []
        for s, symbols in enumerate(alignment):
            margins = [float(row[k] - row[0]) for row, k in zip(scores[s], label_ids[s], strict=True)]
            parsed.append(assembler.parse(symbols, margins, found[s]))
        return parsed

    def _parse_changed(
        self, tokens: Tokens, scores: NDArray[np.float64], label_ids: list[int], parse: Assembly
    ) -> Assembly:
        """The parse of highest value after at most one word has become a relation.

        For each relation the word that loses least by it is tried.
        """
        cost = scores.max(axis=1)[:, None] - scores
        words = cost.argmin(axis=0)
        least = cost[words, np.arange(len(words))]
        changed = []
        for k in np.argsort(least, kind="stable").tolist():
            t = int(words[k])
            if self.symbols.labels[k].arity is not None and label_ids[t] != k:
                changed.append([*label_ids[:t], k, *label_ids[t + 1 :]])
            if len(changed) == MAX_CHANGES:
                break
        parses = self._parse_labelled([tokens] * len(changed), [scores] * len(changed), changed)
        return max([parse, *parses], key=lambda parse: parse.value)

    # ---- model files ----------------------------------------------------------------------------

    @property
    def named_arrays(self) -> State:
        """The names of the symbols' attributes, and `tagger_arrays`."""
        names = AttributeVocabulary(list(self.symbols.encoder.index)).to_plain_arrays()
        return {f"symbols.{name}": array for name, array in names.items()} | self.tagger_arrays

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        model, average = cls(SimpleNamespace(**stored.params, grammar=None)), stored.params.method.average
        model.grammar, model.nested, roles = stored.grammar, stored.nested, stored.roles
        model.symbols = restored(stored.symbols, EMPTY, under(stored.taggers, "symbols."), average)
        model.roles = restored(roles, NO_ROLE, under(stored.taggers, "roles."), average)
        for name, arity, label_ids in stored.relation_roles:
            known = {roles[k]: k for k in label_ids if k > 0}
            if any(a >= arity for role in known for a in role):
                raise ValueError(f"roles {list(known)!r:.80} of {name!r:.80}, which has {arity} arguments")
            model.relation_roles[Symbol(name, arity)] = known
        own = ("symbols.", "roles.")
        model.tagger_arrays = {name: array for name, array in stored.taggers.items() if name.startswith(own)}
        model.tagger_arrays |= stored.arrays()
        return model


def without_empty(predict: Callable[[list[Tokens]], Iterable[list[T]]], tokens: Iterable[Tokens]) -> list[list[T]]:
    """``predict(tokens)``, with an empty list per sentence without words."""
    found = iter(predict([words for words in tokens if words]))
    return [next(found) if words else [] for words in tokens]


def restored(labels: Sequence[L], empty: L, arrays: State, average: bool) -> Tagger[L]:
    """The tagger of a model file; ValueError if its labels, attributes and weights do not fit one another."""
    if len(set(labels)) != len(labels) or labels[0] != empty:
        raise ValueError("labels that are missing or repeated")
    stored = checked_arrays(arrays, TAGGER, n_labels=len(labels))
    weights, n_visits = stored["weights"], int(stored["counters"][0])
    if average and n_visits > 0:
        weights = weights - stored["average_sum"] / n_visits
    return Tagger(labels, AttributeVocabulary.from_arrays(arrays, len(weights)).names, weights)
