"""Trees as users give them, checked, and as the oracle takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from structsvm.structures.known_trees import is_partial
from structsvm.structures.rules import annotate
from structsvm.structures.trees import (
    STRETCH,
    UNKNOWN_LABEL,
    Tree,
    clean_label,
    clean_tree,
    escaped,
    merge_repeats,
    parse_tree,
)
from structsvm.tasks.common.examples import split_text
from structsvm.tasks.grammar.parameters import grammar_of
from structsvm.tasks.grammar.terminals import with_given

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol, TypeAlias

    from structsvm.structures.grammar import Grammar
    from structsvm.tasks.grammar.parameters import Params
    from structsvm.tasks.grammar.terminals import Terminals

    class NLTKTree(Protocol):
        """A tree of NLTK."""

        def label(self) -> str: ...
        def __iter__(self) -> Iterator[object]: ...

    # A tree as users give it: one of ours, its text, or NLTK's; and a sentence of words, of tags, or of (word, tag), as
    # `Tree.tokens` returns them: a tag that is None is an error that names the sentence.
    TreeLike: TypeAlias = Tree | str | NLTKTree
    TokenLike: TypeAlias = str | tuple[str, str | None] | list[str] | None
    SentenceLike: TypeAlias = str | Sequence[TokenLike]


def as_trees(trees: object, clean: bool) -> list[Tree]:
    """Our trees from bracketed strings, NLTK's trees or ours; `clean`: with the treebank's conventions applied.

    Raises
    ------
    ValueError
        For what is not a tree, or nothing but traces; the message names its index.
    """
    made = []
    if isinstance(trees, str) or hasattr(trees, "label") or not isinstance(trees, Iterable):
        raise ValueError(f"trees must be a list of trees, got {trees!r:.80}")
    for i, tree in enumerate(trees):
        try:
            if isinstance(tree, str):
                tree = parse_tree(tree)
            elif not isinstance(tree, Tree):
                if not hasattr(tree, "label"):
                    raise ValueError(f"expected a tree, got {tree!r:.80}")
                tree = Tree.from_nltk(tree)
        except ValueError as error:
            raise ValueError(f"tree {i}: {error}") from None
        tree = clean_tree(tree) if clean else merge_repeats(tree)
        if tree is None:
            raise ValueError(f"tree {i}: nothing is left of it without empty elements")
        made.append(tree)
    if not made:
        raise ValueError("there are no trees")
    return made


def is_nothing(sentence: object) -> bool:
    """Whether it is a sentence without words, which has no tree."""
    return not sentence.strip() if isinstance(sentence, str) else hasattr(sentence, "__len__") and len(sentence) == 0


def check_sentence(sentence: object) -> None:
    """Raise ValueError unless it is a list of tokens."""
    if isinstance(sentence, (str, bytes)) or not hasattr(sentence, "__len__"):
        raise ValueError(f"a sentence must be a list of tokens, got {sentence!r:.80}")
    if len(sentence) == 0:
        raise ValueError("a sentence must have at least one word")


def trees_of(X: Any, y: Any, params: Params) -> list[Tree]:
    """The trees that an estimator is given: X, or y, where X are their sentences.

    Raises
    ------
    ValueError
        For what is not a tree, and for a sentence with other tokens than its tree; the message names the index.
    """
    clean = grammar_of(params).clean
    trees = as_trees(X if y is None else y, clean)
    if y is None:
        return trees
    if isinstance(X, str) or not hasattr(X, "__iter__"):
        raise ValueError(f"X must be a list of sentences, got {X!r:.80}")
    X = list(X)
    if len(X) != len(trees):
        raise ValueError(f"X has {len(X)} sentences, y has {len(trees)} trees")
    for i, (sentence, tree) in enumerate(zip(X, trees, strict=True)):
        try:
            X[i] = sentence = split_text(sentence)
            check_sentence(sentence)
            _check_tokens(sentence, tree.tokens(), params.terminals, clean)
        except ValueError as error:
            raise ValueError(f"sentence {i}: {error}") from None
    if params.terminals == "both":
        return [_tagged_as(sentence, tree, clean) for sentence, tree in zip(X, trees, strict=True)]
    if params.terminals == "predicted":
        return [with_given(tree, [tag for _, tag in sentence]) for sentence, tree in zip(X, trees, strict=True)]
    return trees


def _tagged_as(sentence: Sequence[Sequence[str]], tree: Tree, clean: bool) -> Tree:
    """The tree with the tags of the sentence."""
    tags = (clean_label(tag) if clean else tag for _, tag in sentence)
    return tree.map(lambda node, made: Tree(next(tags) if node.is_preterminal else node.label, made))


def _check_tokens(sentence: Sequence[object], tokens: Sequence[tuple[str, str | None]], kind: str, clean: bool) -> None:
    if len(sentence) != len(tokens):
        raise ValueError(f"it has {len(sentence)} tokens, and its tree {len(tokens)} words")
    for k, (token, (word, tag)) in enumerate(zip(sentence, tokens, strict=True)):
        given = token if isinstance(token, (tuple, list)) else (token,)
        if kind == "predicted" and not isinstance(given[-1], (str, type(None))):
            raise ValueError(f"the tag of its token {k} must be a str, got {given[-1]!r:.80}")
        if clean and kind in ("tags", "both") and isinstance(given[-1], str):
            given = (*given[:-1], clean_label(given[-1]))
        wanted = (word, tag) if len(given) == 2 else (tag if kind == "tags" else word,)
        if len(given) == 2 and (kind in ("both", "predicted") or tag in (None, UNKNOWN_LABEL, STRETCH)):
            wanted = (word, given[1])  # a tag that the tree does not tell, or that is the sentence's own
        elif kind in ("both", "predicted"):
            raise ValueError(f"its token {k} is {token!r:.80}; with terminals={kind!r} it must be a pair (word, tag)")
        if [escaped(str(part)) for part in given] != [escaped(str(part)) for part in wanted]:
            raise ValueError(f"its token {k} is {token!r:.80}, and its tree has {(word, tag)!r:.80} there")


def check_whole(trees: Iterable[Tree], what: str) -> None:
    """Raise ValueError, naming the tree and what needs it whole, for one that is known in part."""
    for i, tree in enumerate(trees):
        if is_partial(tree):
            raise ValueError(f"tree {i}: it is known in part ('_' or '...'), and {what} needs whole trees")


def encode_trees(terminals: Terminals, v: int, trees: Iterable[Tree], grammar: Grammar | None = None) -> list[Tree]:
    """Trees as the oracle takes them; `grammar`: see `Terminals.of_word`. Errors name the tree.

    Those known in part have no annotated labels: a label is that of any ancestors.
    """
    encoded = []
    for i, tree in enumerate(trees):
        try:
            made = terminals.of_tree(tree, grammar)
            encoded.append(made if is_partial(made) else annotate(made, v))
        except ValueError as error:
            raise ValueError(f"tree {i}: {error}") from None
    return encoded
