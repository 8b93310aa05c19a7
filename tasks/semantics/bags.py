"""The base of a semantic parser's models: sentences and bags that are read and checked, the grammar, the file."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

from structsvm.features.sources import load_text
from structsvm.stored_values import Array, Field, Value
from structsvm.structures.meanings import MeaningGrammar, as_meaning
from structsvm.tasks.common.examples import Examples, checked_sample_weight
from structsvm.tasks.common.model import TaskModel
from structsvm.tasks.common.parameters import check_settled
from structsvm.tasks.semantics.features import split_sentence


def as_grammar(grammar: Any) -> Any:
    """A `MeaningGrammar` of one, of its text, or of the file of this path."""
    if grammar is None or isinstance(grammar, MeaningGrammar):
        return grammar
    if isinstance(grammar, str) and "->" in grammar:
        return MeaningGrammar(grammar)
    if not os.fspath(grammar):
        raise ValueError("The 'grammar' parameter must be a grammar, or a path. Got '' instead.")
    return MeaningGrammar(*load_text(grammar, ValueError, "{}, line {}"))


# The grammar, in the files of both models.
GRAMMAR: dict[str, Field | Array] = {"grammar": Value(MeaningGrammar, lambda grammar: grammar.text, null=True)}


@dataclass(frozen=True, eq=False)
class MeaningBags(Examples):
    """Sentences with the bags of their meanings.

    Attributes
    ----------
    sentences : list of list of tokens
    bags : list of list of trees
    """

    sentences: list[Any]
    bags: list[Any]


class BagModel(TaskModel[MeaningBags]):
    """Base of the models.

    Attributes
    ----------
    methods : dict
        The models by the names of their methods.
    followed, fixed : tuple of str
        Parameters that the model follows, and those of them that must stay the same once it is trained.
    """

    kind = "semantics"
    estimator = "SemanticParser"
    methods: ClassVar[dict[str, Any]] = {}
    method: ClassVar[str]
    followed: ClassVar[tuple[str, ...]]
    fixed: ClassVar[tuple[str, ...]]
    settings: SimpleNamespace
    grammar: Any

    def __init_subclass__(cls, *, method: str) -> None:
        super().__init_subclass__()
        cls.method = method
        cls.methods[method] = cls

    def follow(self, params: Any) -> None:
        """Set the settings to those of parameters; ValueError if a trained model has others that must stay."""
        settings = SimpleNamespace(**{name: getattr(params, name) for name in self.followed})
        if self.result is not None:
            check_settled((name, getattr(settings, name), getattr(self.settings, name)) for name in self.fixed)
        self.settings, self.grammar = settings, as_grammar(params.grammar)

    def read(self, sentences: Any, bags: Any, places: Any = None, weight: Any = None) -> MeaningBags:
        """Tokens of sentences and trees of bags, checked; `places` are what messages call the sentences."""
        if len(sentences) != len(bags):
            raise ValueError(f"there are {len(sentences)} sentences and {len(bags)} bags")
        places = [f"sentence {i}" for i in range(len(bags))] if places is None else places
        trees = [self.trees_of(bag, place) for bag, place in zip(bags, places, strict=True)]
        tokens = self.tokens_of(sentences, places, allow_empty=False)
        return MeaningBags(tokens, trees, weight=checked_sample_weight(weight, len(tokens)))

    def tokens_of(self, sentences: Any, places: list[str] | None = None, *, allow_empty: bool = True) -> list[Any]:
        """Words of sentences, checked; `places` as for `read`."""
        places = [f"sentence {i}" for i in range(len(sentences))] if places is None else places
        pairs = zip(sentences, places, strict=True)
        options = {"lowercase": self.settings.lowercase, "allow_empty": allow_empty}
        return [split_sentence(sentence, place, **options) for sentence, place in pairs]

    def trees_of(self, bag: list[str], place: str) -> list[Any]:
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
    def checked_trees(self, trees: Any, place: Any) -> Any:
        """The distinct trees of a list; ValueError, beginning with `place`, for what the model cannot hold."""

    # ---- model files ----------------------------------------------------------------------------

    def stored_params(self) -> Any:
        kept = self.params | vars(self.settings)
        return {name: value for name, value in kept.items() if name not in ("grammar", "executor", "lexicon")}

    def restored_params(self, params: Any) -> Any:
        lexicon = getattr(self.settings, "lexicon", None)
        return params | {"grammar": self.grammar, "executor": None, "lexicon": lexicon, "method": self.method}

    @classmethod
    def kind_in(cls, header: dict[str, Any]) -> type[TaskModel]:
        kind: type[TaskModel] = cls.methods[header["params"]["method"]]
        return kind
