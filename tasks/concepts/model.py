"""A concept labeller without scikit-learn: the words, names and labels that it knows, its network, its file."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.dual.parallel import parallel_parts
from structsvm.parameters import seed_from
from structsvm.stored_values import Count, Flag, Group, Names, OneOf, Record, Stored, checked_arrays
from structsvm.tasks.common.examples import Examples, checked_sample_weight
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import check_settled
from structsvm.tasks.concepts._network import STRATEGIES, UNKNOWN, Network, rounded
from structsvm.tasks.concepts.solver import LAYERS
from structsvm.tasks.concepts.worlds import EMPTY, ConceptProblem, Worlds, read_inputs, read_labels, scenes_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from structsvm._problem import BoundProblem
    from structsvm.arrays import Floats, State, Weights
    from structsvm.solvers import Solver
    from structsvm.solvers.run import Run
    from structsvm.tasks.concepts.estimator import ConceptLabeler

    # A sentence, as text or words, and its world: a dict of relations, or an object that has them, or None.
    SentenceInWorld: TypeAlias = tuple[str | Sequence[str], object]
    # The labels of a sentence's words, in their order or as a bag.
    WordLabels: TypeAlias = Sequence[str] | set[str] | frozenset[str] | Mapping[str, int] | NDArray[np.str_]

# Parameters that the layers depend on, and the most that a file may ask for.
SIZES = {"dimension": (1, 2**12), "hidden": (1, 2**14), "window": (0, 2**10)}
RECORD = Record({
    "settings": Record({
        **{name: Count(*bounds) for name, bounds in SIZES.items()},
        "strategy": OneOf(tuple(STRATEGIES)),
        "lowercase": Flag(),
    }),
    "relations": Names(),
    "words": Names(),
    "names": Names(),
    "labels": Names(),
    "seed": Count(0, 2**64 - 1),
    "layers": Group(bare=True),
})  # fmt: skip
# Passes, if no number is given: as many as take so many steps, at least and at most.
STEPS, LEAST_PASSES, MOST_PASSES = 60_000, 10, 100
# The size of the vectors of words and names before training.
START = 0.1


@dataclass(frozen=True, eq=False)
class Scenes(Examples):
    """Sentences, the worlds that they are said in, and the labels of their words.

    Attributes
    ----------
    sentences : list of list of str
    worlds : Worlds
    labels : list of list of str, or of Counter
    """

    sentences: list[list[str]]
    worlds: Worlds
    labels: list[list[str] | Counter[str]]


class ConceptModel(TaskModel[Scenes]):
    """Tables and layers, and what their rows stand for.

    Parameters
    ----------
    params : object with the attributes of `ConceptLabeler`

    Attributes
    ----------
    settings : SimpleNamespace
        ``dimension``, ``hidden``, ``window``, ``strategy``, ``lowercase``.
    relations : list of str or None
        Those that the layers have parts for; None before training.
    words, names : dict
        From a word, and from the name of a concept or of what a relation says of one, to a row.
    labels : list of str
        In the order of their ids.
    layers : dict of ndarray
        See `Network`.
    """

    kind = "concepts"
    needs_state = True
    estimator = "ConceptLabeler"
    record = RECORD

    def __init__(self, params: ConceptLabeler | SimpleNamespace) -> None:
        super().__init__()
        names = (*SIZES, "strategy", "lowercase")
        self.settings = SimpleNamespace(**{name: getattr(params, name) for name in names})
        self.relations: Any = None if params.relations is None else list(params.relations)
        self.words: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.labels: list[str] = []
        self.layers: dict[str, NDArray[np.float32]] = {}
        self.seed = 0

    def follow(self, params: ConceptLabeler | SimpleNamespace) -> None:
        """Raise ValueError if parameters ask for another network than this one."""
        settings = vars(self.settings)
        check_settled((name, getattr(params, name), value) for name, value in settings.items())
        if params.relations is not None:
            check_settled([("relations", list(params.relations), self.relations)])

    # ---- training -------------------------------------------------------------------------------

    def read(self, X: Iterable[SentenceInWorld], *, allow_empty: bool = True) -> tuple[list[list[str]], Worlds]:
        """Sentences and worlds, checked."""
        sentences, worlds = read_inputs(X, lowercase=self.settings.lowercase, allow_empty=allow_empty)
        return sentences, Worlds(worlds)

    def read_labeled(
        self, X: Iterable[SentenceInWorld], y: Iterable[WordLabels], weight: ArrayLike | None = None
    ) -> Scenes:
        """Sentences, worlds and labels, checked."""
        sentences, worlds = self.read(X, allow_empty=False)
        labels = read_labels(y, sentences)
        return Scenes(sentences, worlds, labels, weight=checked_sample_weight(weight, len(sentences)))

    def adapted(self, solver: Solver, examples: Scenes) -> Solver:
        if solver.max_iter is None:
            solver.set_params(max_iter=min(max(-(-STEPS // len(examples)), LEAST_PASSES), MOST_PASSES))
        return super().adapted(solver, examples)

    def bind(self, examples: Scenes, solver: Solver) -> tuple[BoundProblem, Weights | None]:
        """The problem of scenes, with whatever words, names and labels are new in it."""
        sentences, worlds, y = examples.sentences, examples.worlds, examples.labels
        if not self.layers:
            self.seed = seed_from(solver.random_state)
            there = worlds.relations()
            self.relations = there if self.relations is None else self.relations
            absent = [name for name in self.relations if name not in there]
            if absent:
                warn(
                    f"no world has the relation {', '.join(map(repr, absent))}: nothing is learnt from it; "
                    f"the worlds have {', '.join(map(repr, there)) or 'none'}",
                    AdviceWarning,
                )
            self.layers = first_layers(self.settings, len(self.relations), self.seed)
            self.layers |= {"words": self.vectors(2, 0), "names": self.vectors(1, 0)}
            self.layers["words"][UNKNOWN] = 0.0
        labels = {EMPTY, *(label for of_one in y for label in of_one)}
        self.labels += sorted(labels.difference(self.labels))
        self.register(self.words, 2, "words", sorted({word for words in sentences for word in words}))
        self.register(self.names, 1, "names", [*self.labels, *worlds.values(self.relations)])
        return ConceptProblem(scenes_of(self, sentences, worlds, y, examples.weight), self), examples.weight

    def register(self, rows: dict[str, int], first: int, name: str, texts: Iterable[str]) -> None:
        """Give rows to texts that are new, the first of all the row `first`, and vectors to these."""
        before = first + len(rows)
        for text in texts:
            rows.setdefault(text, first + len(rows))
        self.layers[name] = np.concatenate([self.layers[name], self.vectors(first + len(rows) - before, before)])

    def vectors(self, n: int, first: int) -> NDArray[np.float32]:
        """Vectors of n rows of a table before training, from the row `first` on."""
        d = self.settings.dimension
        found = np.zeros((n, rounded(d)), dtype=np.float32)
        found[:, :d] = START * np.random.default_rng([self.seed, 1, first]).normal(size=(n, d))
        return found

    def recentred(
        self, problem: BoundProblem, sample_weight: Weights | None, solver: Solver
    ) -> tuple[BoundProblem, Weights | None, State | None]:
        return problem, sample_weight, self.state

    def copy(self) -> Self:
        model = copy.copy(self)
        model.words, model.names, model.labels = dict(self.words), dict(self.names), list(self.labels)
        model.layers = dict(self.layers)
        return model

    def set_weights_from(self, run: Run) -> None:
        self.layers = {name: layer.copy() for name, layer in run.state.layers.items()}

    def state_for(self, problem: BoundProblem) -> State | None:
        """The training state with the layers, which the model keeps itself."""
        return None if self.state is None else self.state | {f"layers.{k}": v for k, v in self.layers.items()}

    def state_of(self, run: Run, passes: int | None) -> State | None:
        arrays = run.get_state() if passes is None else run.batch_state()
        return {name: array for name, array in arrays.items() if not name.startswith("layers.")}

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[SentenceInWorld], n_jobs: int = 1) -> tuple[list[list[str]], list[list[int]]]:
        """The label of each word of each sentence, and when it was given."""
        sentences, worlds = self.read(X)

        def part(a: int, b: int) -> NDArray[np.int32]:
            scenes = scenes_of(self, sentences[a:b], worlds.take(slice(a, b)))
            network = Network(self.layers, self.settings.dimension, strategy=self.settings.strategy)
            return np.column_stack(network.find(scenes))

        bounds = np.cumsum([0, *map(len, sentences)]).tolist()
        found = parallel_parts(part, len(sentences), n_jobs).tolist() if sentences else []
        of_each = [found[a:b] for a, b in pairwise(bounds)]
        labels = [[self.labels[k] for k, _ in words] for words in of_each]
        return labels, [[place for _, place in words] for words in of_each]

    def similar(self, concept: str, k: int) -> list[str]:
        """The k labels whose vectors are nearest to that of a concept."""
        if concept not in self.names:
            raise ValueError(f"{concept!r:.80} is not known")
        others = [label for label in self.labels if label != concept]
        table = self.layers["names"]
        away = ((table[[self.names[label] for label in others]] - table[self.names[concept]]) ** 2).sum(axis=1)
        return [others[i] for i in np.argsort(away, kind="stable")[:k]]

    # ---- model files ----------------------------------------------------------------------------

    def restored_params(self, params: dict[str, Any]) -> dict[str, Any]:
        relations = params.get("relations")
        return params if relations is None else params | {"relations": list(relations)}

    @classmethod
    def from_record(cls, stored: Stored) -> Self:
        settings = stored.settings
        model = cls(SimpleNamespace(**settings, relations=stored.relations))
        model.words = {word: 2 + k for k, word in enumerate(stored.words)}
        model.names = {name: 1 + k for k, name in enumerate(stored.names)}
        model.labels, model.seed = stored.labels, stored.seed
        if EMPTY not in model.labels or not model.names.keys() >= set(model.labels):
            raise ValueError("labels without a name, or none for words that refer to nothing")
        sizes = {
            "dimension": settings.dimension,
            "whole_dimension": rounded(settings.dimension),
            "whole_hidden": rounded(settings.hidden),
            "width": 2 * settings.window + 1,
            "of_relations": (1 + len(model.relations)) * settings.dimension,
        }
        model.layers = checked_arrays(stored.layers, LAYERS, **stored.sizes, **sizes)
        return model


def first_layers(settings: SimpleNamespace, n_relations: int, seed: int) -> dict[str, NDArray[np.float32]]:
    """Layers before training: normal numbers, by the number of inputs."""
    d, width = settings.dimension, 2 * settings.window + 1
    m = 1 + n_relations
    rng = np.random.default_rng([seed, 0])

    def layer(*shape: int, inputs: int) -> Floats:
        found = np.zeros((*shape, rounded(settings.hidden)), dtype=np.float32)
        found[..., : settings.hidden] = rng.normal(size=(*shape, settings.hidden)) / np.sqrt(inputs)
        return found

    of_window = width * (1 + m) * d
    h = layer(m * d + 1, inputs=m * d)
    h[m * d] = 0.0
    return {
        "g_words": layer(width, d, inputs=of_window),
        "g_names": layer(width, m * d, inputs=of_window),
        "g_bias": np.zeros(rounded(settings.hidden), dtype=np.float32),
        "h": h,
    }
