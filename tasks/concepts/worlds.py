"""Sentences in worlds, and their labels: read, checked, and turned into rows of the network's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm._problem import BoundProblem
from structsvm.arrays import checksum
from structsvm.checkpoint import as_array
from structsvm.tasks.concepts._network import NOTHING, UNKNOWN, Scenes
from structsvm.tasks.concepts.alignment import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Weights
    from structsvm.tasks.concepts.model import ConceptModel, WordLabels

# The entry of a word that refers to no concept.
EMPTY = "-"
# Key of a world's concepts, if it has but some of them.
CONCEPTS = "concepts"
# Words of a sentence: what is known of each is kept beside what every name would add.
MAX_WORDS = 1000

NO_RELATION: dict[str, str] = {}


class ConceptProblem(BoundProblem):
    """Sentences with labels, and the network to train on them.

    Parameters
    ----------
    scenes : Scenes
    model : ConceptModel
    """

    offers = frozenset({"concepts"})
    formulation = {"rescaling": "margin", "penalty": "linear"}

    def __init__(self, scenes: Scenes, model: ConceptModel) -> None:
        super().__init__(
            scenes.n_sentences, sum(layer.size for layer in model.layers.values()), inference="approximate"
        )
        self.scenes, self.layers, self.settings = scenes, model.layers, model.settings
        self.about = repr((model.relations, model.labels, sorted(vars(model.settings).items())))

    def structure_fingerprint(self) -> int:
        """A checksum of labels, relations and settings."""
        return checksum([as_array(self.about)])

    def fingerprint(self) -> int:
        """A checksum of the words, worlds and labels."""
        return checksum(self.scenes.arrays)


def read_inputs(X: object, *, lowercase: bool, allow_empty: bool) -> tuple[list[list[str]], list[object]]:
    """Return ``(sentences, worlds)`` of pairs of both, checked."""
    if isinstance(X, (str, Mapping)) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list of pairs (sentence, world), got {X!r:.80}")
    sentences, worlds = [], []
    for i, pair in enumerate(X):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"sentence {i}: a pair (sentence, world) is wanted, got {pair!r:.80}")
        words, world = pair
        words = words.split() if isinstance(words, str) else words
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
            raise TypeError(f"sentence {i}: text or a list of words is wanted, got {words!r:.80}")
        if not (words or allow_empty):
            raise ValueError(f"sentence {i} has no words")
        if len(words) > MAX_WORDS:
            raise ValueError(f"sentence {i} has {len(words)} words; at most {MAX_WORDS} are allowed")
        sentences.append([word.lower() for word in words] if lowercase else list(words))
        worlds.append(world)
    return sentences, worlds


def read_labels(y: Iterable[WordLabels], sentences: Sequence[Sequence[str]]) -> list[list[str] | Counter[str]]:
    """The labels of sentences, checked: of each a list in the order of its words, or a `Counter` of as many."""
    if isinstance(y, (str, Mapping)):
        raise TypeError(f"y must be a list of labels per sentence, got {y!r:.80}")
    y = list(y)
    if len(y) != len(sentences):
        raise ValueError(f"there are {len(sentences)} sentences and labels for {len(y)}")
    return [labels_of(labels, len(words), i) for i, (labels, words) in enumerate(zip(y, sentences, strict=True))]


def labels_of(labels: WordLabels, n_words: int, i: int) -> list[str] | Counter[str]:
    """The labels of one sentence; see `read_labels`."""
    is_bag = isinstance(labels, (set, frozenset, Mapping))
    if not (is_bag or isinstance(labels, (list, tuple, np.ndarray))):
        raise TypeError(f"sentence {i}: labels must be a list of one per word, or a set or Counter, got {labels!r:.80}")
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(f"sentence {i}: a label must be text, got {label!r:.80}")
    if not is_bag:
        if len(labels) != n_words:
            raise ValueError(f"sentence {i} has {n_words} words and {len(labels)} labels")
        return [str(label) for label in labels]
    bag = Counter(labels)
    if any(not isinstance(n, Integral) or n < 1 for n in bag.values()):
        raise ValueError(f"sentence {i}: label counts must be integers of at least 1, got {dict(bag)!r:.80}")
    spare = n_words - bag.total()
    if spare < 0:
        raise ValueError(f"sentence {i} has {n_words} words and a bag of {bag.total()} labels")
    if spare:
        bag[EMPTY] += spare
    return bag


def tables_of(world: object, i: int) -> dict[str, Any]:
    """The relations of a world by name; its list of concepts, if it has one, under `CONCEPTS`."""
    if world is None:
        return {}
    tables = world if isinstance(world, Mapping) else getattr(world, "__dict__", None)
    if tables is None:
        raise TypeError(
            f"sentence {i}: a world must be a dict of relations, or an object that has them, got {world!r:.80}"
        )
    found = {name: table for name, table in tables.items() if table is not None}
    for name, table in found.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"sentence {i}: the name of a relation of its world must be text, got {name!r:.80}")
        if name == CONCEPTS:
            if isinstance(table, str) or not isinstance(table, Collection):
                raise TypeError(f"sentence {i}: {CONCEPTS!r} of its world must be a list or set, got {table!r:.80}")
        elif not isinstance(table, Mapping):
            raise TypeError(f"sentence {i}: relation {name!r:.40} of its world must be a dict, got {table!r:.80}")
    return found


class Worlds:
    """The worlds of sentences, each distinct object once.

    Attributes
    ----------
    tables : list of dict
    world_of : ndarray of shape (n_sentences,), int64
    first : list of int
        The first sentence in each.
    """

    def __init__(self, worlds: Sequence[object]) -> None:
        number: dict[int, int] = {}
        self.first: list[int] = []
        found = []
        for i, world in enumerate(worlds):
            if id(world) not in number:
                number[id(world)] = len(self.first)
                self.first.append(i)
            found.append(number[id(world)])
        self.world_of = np.array(found, dtype=np.int64)
        self.tables = [tables_of(worlds[i], i) for i in self.first]

    def take(self, chosen: slice) -> Worlds:
        """The worlds of some sentences, by their indices or as a slice."""
        part = Worlds([])
        used, part.world_of = np.unique(self.world_of[chosen], return_inverse=True)
        part.tables, part.first = [self.tables[k] for k in used], [self.first[k] for k in used]
        return part

    def relations(self) -> list[str]:
        """The names of all relations, sorted."""
        return sorted({name for tables in self.tables for name in tables if name != CONCEPTS})

    def values(self, relations: Sequence[str]) -> list[str]:
        """Whatever the relations say of concepts, sorted; TypeError for what is not text."""
        found: set[str] = set()
        for tables, i in zip(self.tables, self.first, strict=True):
            for name in relations:
                values = tables.get(name, NO_RELATION).values()
                try:
                    found.update(values)
                except TypeError:
                    found.update(v for v in values if isinstance(v, str))
                    check_texts(values, name, i)
        if not all(isinstance(value, str) for value in found):
            for tables, i in zip(self.tables, self.first, strict=True):
                for name in relations:
                    check_texts(tables.get(name, NO_RELATION).values(), name, i)
        return sorted(value for value in found if value is not None)

    def encode(self, labels: list[str], names: dict[str, int], relations: Sequence[str]) -> NDArray[np.int32]:
        """The rows of names that labels stand for: int32 array (n_worlds, n_labels, 1 + n_relations)."""
        rows = np.zeros((max(len(self.tables), 1), len(labels), 1 + len(relations)), dtype=np.int32)
        rows[:, :, 0] = [names[label] for label in labels]
        for k, (tables, i) in enumerate(zip(self.tables, self.first, strict=True)):
            for b, name in enumerate(relations):
                table = tables.get(name)
                if table:
                    try:
                        rows[k, :, 1 + b] = [names.get(value, NOTHING) for value in map(table.get, labels)]
                    except TypeError:
                        check_texts(table.values(), name, i)
                        raise
            if CONCEPTS in tables:
                there = {EMPTY, *tables[CONCEPTS]}
                rows[k, [label not in there for label in labels], 0] = -1
        return rows


def check_texts(values: Iterable[object], name: str, i: int) -> None:
    """Raise TypeError for the first value of a relation that is neither text nor None."""
    wrong = next((value for value in values if not (value is None or isinstance(value, str))), None)
    if wrong is not None:
        raise TypeError(f"sentence {i}: relation {name!r:.40} of its world must be between texts, got {wrong!r:.80}")


def scenes_of(
    model: ConceptModel,
    sentences: Sequence[Sequence[str]],
    worlds: Worlds,
    y: Sequence[list[str] | Counter[str]] | None = None,
    weight: Weights | None = None,
) -> Scenes:
    """Sentences as rows of a model's tables; ValueError for a label that is not in its world.

    The labels of bags are put into the order of `aligned`, where sentences count by their weights.
    """
    offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    words = np.fromiter((model.words.get(word, UNKNOWN) for word in chain.from_iterable(sentences)), dtype=np.int32)
    rows = worlds.encode(model.labels, model.names, model.relations)
    if y is None:
        return Scenes(words, offsets, rows, worlds.world_of)
    ids = {label: k for k, label in enumerate(model.labels)}
    ordered = np.array([isinstance(labels, list) for labels in y], dtype=np.uint8)
    listed = [labels if isinstance(labels, list) else sorted(labels.elements()) for labels in y]
    targets = np.fromiter((ids[label] for label in chain.from_iterable(listed)), dtype=np.int32)
    absent = rows[np.repeat(worlds.world_of, np.diff(offsets)), targets, 0] < 0
    if absent.any():
        at = int(np.argmax(absent))
        i = int(np.searchsorted(offsets, at, side="right")) - 1
        raise ValueError(f"sentence {i}: its world does not list the concept {model.labels[targets[at]]!r:.40}")
    weight = np.ones(len(y)) if weight is None else weight
    targets = aligned(words, targets, offsets, ordered, weight, ids[EMPTY])
    return Scenes(words, offsets, rows, worlds.world_of, targets, ordered)
