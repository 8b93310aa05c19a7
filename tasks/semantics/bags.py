"""The base of a semantic parser's models: sentences and bags that are read and checked, the grammar, the file."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from structsvm._warnings import AdviceWarning, warn, warn_of_unknown
from structsvm.features.sources import load_text
from structsvm.stored_values import Array, Field, Flag, Record, Value
from structsvm.structures.meanings import MeaningGrammar, as_meaning, half_of_list
from structsvm.tasks.common.examples import Examples, checked_sample_weight
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import check_settled, is_same
from structsvm.tasks.semantics.features import split_sentence
from structsvm.tasks.semantics.parameters import METHODS, Hybrid, Ospas, method_from_json, method_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from structsvm.structures.meanings import Meaning
    from structsvm.tasks.semantics.features import Tokens
    from structsvm.tasks.semantics.parameters import GrammarLike, Params

    # A sentence as users give it: its text or words; and the meanings of one, as text or trees.
    SentenceLike: TypeAlias = str | Sequence[str | tuple[str, ...]]
    BagLike: TypeAlias = Meaning | Collection[Meaning]


def as_grammar(grammar: GrammarLike | None) -> MeaningGrammar | None:
    """A `MeaningGrammar` of one, of its text, or of the file of this path."""
    if grammar is None or isinstance(grammar, MeaningGrammar):
        return grammar
    if isinstance(grammar, str) and "->" in grammar:
        return MeaningGrammar(grammar)
    if not os.fspath(grammar):
        raise ValueError("The 'grammar' parameter must be a grammar, or a path. Got '' instead.")
    return MeaningGrammar(*load_text(grammar, ValueError, "{}, line {}"))


def warn_of_lists(bags: Iterable[Iterable[Meaning]], places: Iterable[str]) -> None:
    """Warn of the first list in brackets, whose beginning and end are read as two constants."""
    halves = ((half_of_list(tree), place) for bag, place in zip(bags, places, strict=True) for tree in bag)
    half, place = next((found for found in halves if found[0] is not None), (None, ""))
    if half is not None:
        warn(
            f"{place}: {half!r:.80} is read as a constant. Lists in brackets are none here: write them as relations, "
            "list(a,b) for [a,b]",
            AdviceWarning,
        )


# The parameters that both models read from their files, and the grammar.
SETTINGS: dict[str, Field | Array] = {
    "params": Record({"lowercase": Flag(), "method": Value(method_from_json)}, written=False),
    "grammar": Value(MeaningGrammar, lambda grammar: grammar.text, null=True),
}


@dataclass(frozen=True, eq=False)
class MeaningBags(Examples):
    """Sentences with the bags of their meanings.

    Attributes
    ----------
    sentences : list of list of tokens
    bags : list of list of trees
    """

    sentences: list[Tokens]
    bags: list[list[Meaning]]


class BagModel(TaskModel[MeaningBags]):
    """Base of the models.

    Attributes
    ----------
    methods : dict
        The models by the names of their methods.
    followed, fixed : tuple of str
        Parameters of its method that the model follows; parameters that must stay the same once it is trained.
    """

    kind = "semantics"
    estimator = "SemanticParser"
    groups = (Hybrid, Ospas)
    methods: ClassVar[dict[str, Any]] = {}
    method: ClassVar[str]
    followed: ClassVar[tuple[str, ...]]
    fixed: ClassVar[tuple[str, ...]]
    settings: SimpleNamespace
    grammar: MeaningGrammar | None

    def __init_subclass__(cls, *, method: str) -> None:
        super().__init_subclass__()
        cls.method = method
        cls.methods[method] = cls

    def follow(self, params: Params) -> None:
        """Set the settings to those of parameters; ValueError if a trained model has others that must stay."""
        method = method_of(params.method)
        followed = {name: getattr(method, name) for name in self.followed}
        settings = SimpleNamespace(lowercase=params.lowercase, **followed)
        if self.result is not None:
            check_settled((name, getattr(settings, name), getattr(self.settings, name)) for name in self.fixed)
        self.settings, self.grammar = settings, as_grammar(params.grammar)

    def read(
        self,
        sentences: Sequence[SentenceLike],
        bags: Sequence[BagLike],
        places: Sequence[str] | None = None,
        weight: ArrayLike | None = None,
    ) -> MeaningBags:
        """Tokens of sentences and trees of bags, checked; `places` are what messages call the sentences."""
        if len(sentences) != len(bags):
            raise ValueError(f"there are {len(sentences)} sentences and {len(bags)} bags")
        places = [f"sentence {i}" for i in range(len(bags))] if places is None else places
        trees = [self.trees_of(bag, place) for bag, place in zip(bags, places, strict=True)]
        warn_of_lists(trees, places)
        tokens = self.tokens_of(sentences, places, allow_empty=False)
        return MeaningBags(tokens, trees, weight=checked_sample_weight(weight, len(tokens)))

    def tokens_of(
        self, sentences: Sequence[SentenceLike], places: Sequence[str] | None = None, *, allow_empty: bool = True
    ) -> list[Tokens]:
        """Words of sentences, checked; `places` as for `read`.

        Without `allow_empty` they are to be learnt; otherwise a warning says if most have no known word.
        """
        places = [f"sentence {i}" for i in range(len(sentences))] if places is None else places
        pairs = zip(sentences, places, strict=True)
        options = {"lowercase": self.settings.lowercase, "allow_empty": allow_empty}
        tokens = [split_sentence(sentence, place, **options) for sentence, place in pairs]
        if allow_empty:
            warn_of_unknown(
                sum(not self.knows([token[0] for token in words]) for words in tokens), len(tokens), "sentences"
            )
        return tokens

    @abstractmethod
    def knows(self, words: Sequence[str]) -> bool:
        """Whether one of the words, or none, was in a training sentence."""

    def trees_of(self, bag: BagLike, place: str) -> list[Meaning]:
        """The distinct trees of a bag; a single meaning is a bag of one."""
        if isinstance(bag, (str, tuple)):
            bag = [bag]
        if not isinstance(bag, (list, set, frozenset)):
            raise TypeError(f"{place}: the bag must be a list of meaning representations, got {bag!r:.80}")
        if not bag:
            raise ValueError(f"{place}: the bag is empty; at least one meaning representation must stand there")
        if isinstance(bag, (set, frozenset)):  # whose order depends on the hash seed
            bag = sorted(bag, key=repr)
        try:
            trees = [as_meaning(meaning) for meaning in bag]
        except (ValueError, TypeError) as error:
            raise type(error)(f"{place}: {error}") from None
        return self.checked_trees(trees, place)

    @abstractmethod
    def checked_trees(self, trees: Iterable[Meaning], place: str) -> list[Meaning]:
        """The distinct trees of a list; ValueError, beginning with `place`, for what the model cannot hold."""

    # ---- model files ----------------------------------------------------------------------------

    def stored_params(self) -> dict[str, object]:
        """The parameters but the grammar; those that the model follows as they were in training."""
        kept = {name: value for name, value in self.params.items() if name != "grammar"}
        return kept | {"lowercase": self.settings.lowercase, "method": self.stored_method()}

    def stored_method(self) -> str | Hybrid | Ospas:
        """The method, by its name if that says all."""
        given, kind = self.params["method"], METHODS[self.method]
        own = method_of(given).get_params(deep=False) if method_of(given).name == self.method else {}
        method = kind(**own | {name: getattr(self.settings, name) for name in self.followed})
        return self.method if isinstance(given, str) and is_same(method, kind()) else method

    def restored_params(self, params: dict[str, object]) -> dict[str, object]:
        return params | {"grammar": self.grammar}

    @classmethod
    def kind_in(cls, header: dict[str, Any]) -> type[TaskModel[MeaningBags]]:
        params = header["params"]
        method = method_from_json(params["method"])
        if beside := method.get_params(deep=False).keys() & params.keys():
            raise ValueError(f"the parameter {min(beside)!r} is not with its method, as in files of earlier versions")
        kind: type[TaskModel[MeaningBags]] = cls.methods[method.name]
        return kind
