"""The terminals of a grammar: part-of-speech tags, or words with classes for the rare and the unknown.

With terminals="predicted" they are what a tagger says of a word: a tag, or several with blanks between them, the
likeliest first. The grammar has weights of its own tags for each of these, so that a wrong tag can be overruled, and
inference is exact over all taggings. Templates see words, the first tag as the column "tag", and all as "tags".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Self, TypeAlias

from structsvm.features.word_codes import OwnColumns, code, shape
from structsvm.structures.spans import Token
from structsvm.structures.trees import STRETCH, UNKNOWN_LABEL, Tree, clean_label, escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from structsvm.features.word_codes import OwnFeatures
    from structsvm.structures.grammar import Grammar

UNKNOWN = "<unk>"  # the class of all rare words: for those whose own class was never seen
KINDS = ("tags", "words", "both", "predicted")
FOUND = ("words", "predicted")  # their parsers find the tags of trees
# Columns of a word that templates of span features see: the form in lower case, its first three letters, its last one
# to four, and its shape. With terminals="tags" they see its tag alone, which is the column "terminal".
COLUMNS = ("word", "prefix", "end1", "end2", "end3", "end4", "shape")

# The columns of the tags that are given, with terminals="predicted": the likeliest one, and all.
GIVEN = ("tag", "tags")
BESIDE, ESCAPE = "|", "\\"  # between tags in the name of a terminal, where blanks cannot stand; before one in a tag

# A word's values in the user's columns: codes, and numbers of vectors.
Own: TypeAlias = "tuple[tuple[int, ...], Sequence[float] | NDArray[np.float32]]"
NOTHING: Own = ((), ())

# Endings of the classes of rare words: those of at least so many of the rare words of the training trees.
LONGEST_ENDING, LEAST_WITH_ENDING = 4, 20
# The usual ones.
ENGLISH = ("ing", "ed", "tion", "ion", "er", "est", "ly", "ity", "able", "al", "s")


class TaggedWord(str):
    """A word of a tree that carries the tag or tags given with it, `tag`."""

    __slots__ = ("tag",)
    tag: str

    def __new__(cls, word: str, tag: str) -> Self:
        made = super().__new__(cls, word)
        made.tag = tag
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.tag


def with_given(tree: Tree, tags: Iterable[str]) -> Tree:
    """The tree whose words carry tags, left to right."""
    return _with_words(tree, map(TaggedWord, tree.leaves(), tags))


def joined(tags: str) -> str:
    """The name of a terminal for tags with blanks between them, another one for any others."""
    return BESIDE.join(tags.replace(ESCAPE, ESCAPE * 2).replace(BESIDE, ESCAPE + BESIDE).split())


def given_tokens(tree: Tree) -> list[tuple[str, str | None]]:
    """``(word, tag)`` of the words of a tree: the tag that is given with a word, else the tree's."""
    return [(word, word.tag if isinstance(word, TaggedWord) else tag) for word, tag in tree.tokens()]


def codes_of(word: str) -> tuple[int, ...]:
    """The codes of a word's columns."""
    lower = word.lower()
    return tuple(map(code, (lower, lower[:3], *(lower[-k:] for k in range(1, 5)), shape(word))))


@lru_cache(1 << 16)
def coded(terminal: str, word: str, own: tuple[int, ...]) -> Token:
    """A terminal with the codes of its word, those of the user's columns last."""
    return Token(terminal, codes_of(word) + own)


def token_of(terminal: str, word: str, own: Own = NOTHING) -> Token:
    """A terminal with the codes of its word and what the user's columns have."""
    codes, numbers = own
    token = coded(terminal, word, codes)
    return Token(terminal, token.codes, numbers) if len(numbers) else token


@lru_cache(1 << 16)
def word_class(word: str, endings: tuple[str, ...]) -> str:
    """The class of a rare word: capitals, digits, hyphen and the longest of the endings, ``<unk-Cap-s>``."""
    if re.fullmatch(r"[+-]?[\d.,:/]+", word) and re.search(r"\d", word):
        return "<unk-number>"
    marks = []
    if word[0].isupper():
        marks.append("CAPS" if word.isupper() and len(word) > 1 else "Cap")
    if any(letter.isdigit() for letter in word):
        marks.append("digit")
    if "-" in word:
        marks.append("dash")
    lower = word.lower()
    ending = next((end for end in endings if lower.endswith(end) and len(word) > len(end) + 2), None)
    return "-".join(["<unk", *marks, *([ending] if ending else [])]) + ">"


def common_endings(words: Iterable[str]) -> tuple[str, ...]:
    """The endings that many of the words have, the longest first."""
    counts = Counter(
        word[-k:].lower()
        for word in words
        for k in range(1, LONGEST_ENDING + 1)
        if len(word) > k + 2 and word.isalpha()
    )
    found = (ending for ending, count in counts.items() if count >= LEAST_WITH_ENDING)
    return tuple(sorted(found, key=lambda ending: (-len(ending), ending)))


class Terminals:
    """From the tokens of sentences and trees to the terminals of a grammar.

    Parameters
    ----------
    kind : {"tags", "words", "both", "predicted"}
        "both": tags, with words for templates to see. "predicted": words, with tags for templates to see.
    known : collection of str
        The words that are terminals themselves, or what is said of words; for tags not used.
    endings : sequence of str
        Those by which rare words are classed.
    own : OwnColumns, optional
        Columns of the user's.
    """

    def __init__(
        self, kind: str, known: Iterable[str] = (), endings: Iterable[str] = ENGLISH, own: OwnColumns | None = None
    ) -> None:
        self.kind, self.known, self.endings = kind, frozenset(known), tuple(endings)
        self.own = OwnColumns() if own is None else own

    @classmethod
    def of_trees(
        cls, kind: str, trees: Sequence[Tree], min_count: int, columns: OwnFeatures | None = None
    ) -> Terminals:
        """Words seen `min_count` times or more are known."""
        own = OwnColumns(columns, () if columns is None else None)
        own.values(trees[0].leaves())  # finds the columns
        if kind not in FOUND:
            return cls(kind, own=own)
        if kind == "predicted":
            given = Counter(joined(tag or "") for tree in trees for _, tag in given_tokens(tree))
            return cls(kind, (tags for tags, count in given.items() if count >= min_count), (), own)
        counts = Counter(escaped(word) for tree in trees for word in tree.leaves())
        rare = [word for word, count in counts.items() if count < min_count]
        return cls(kind, (word for word, count in counts.items() if count >= min_count), common_endings(rare), own)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a word that templates see beside its terminal."""
        given = GIVEN if self.kind == "predicted" else ()
        return (() if self.kind == "tags" and not self.own.sizes else COLUMNS) + given + self.own.names

    @property
    def finds_tags(self) -> bool:
        """Whether a parser finds the tags of its trees."""
        return self.kind in FOUND

    def _own(self, tokens: Sequence[tuple[str, str | None]]) -> Iterator[Own]:
        """Values of each word of a sentence in the columns of given tags, if there are such, and in the user's."""
        codes, numbers = self.own.values([word for word, _ in tokens])
        if self.kind == "predicted":
            given = [str(tag) for _, tag in tokens]
            codes = [(code(tags.split()[0]), code(joined(tags)), *own) for tags, own in zip(given, codes, strict=True)]
        return zip(codes, numbers, strict=True)

    def of_word(self, word: str, grammar: Grammar | None = None, own: Own = NOTHING) -> Token:
        """The terminal of a word; where there is a grammar, UNKNOWN for a class that is not in it."""
        word = escaped(word)  # trees that were read have brackets in that form
        terminal = word if word in self.known else word_class(word, self.endings)
        known = grammar is None or terminal in grammar.terminal_number
        return token_of(terminal if known else UNKNOWN, word, own)

    def of_given(self, word: str, tags: str, grammar: Grammar | None = None, own: Own = NOTHING) -> Token:
        """The terminal of a word by the tags given with it: these if they are known, else the likeliest one."""
        terminal = joined(tags)
        if terminal not in self.known:
            terminal = joined(tags.split(maxsplit=1)[0])
        known = grammar is None or terminal in grammar.terminal_number
        return token_of(terminal if known else UNKNOWN, escaped(word), own)

    def of_pair(self, word: str, tag: str, own: Own = NOTHING) -> str:
        """The terminal of a word and its tag, a tag."""
        return tag if self.kind == "tags" and not self.own.sizes else token_of(tag, escaped(word), own)

    def of_tree(self, tree: Tree, grammar: Grammar | None = None) -> Tree:
        """The tree whose words are the grammar's terminals; ValueError for a word without the tag that is needed."""
        tokens = given_tokens(tree) if self.kind == "predicted" else tree.tokens()
        if self.kind != "words":
            for word, tag in tokens:
                if tag is None or tag.strip() in ("", UNKNOWN_LABEL, STRETCH):
                    raise ValueError(f"the word {word!r} has no tag of its own; use terminals='words'")
        own = self._own(tokens)
        if self.finds_tags:
            return _with_words(
                tree, [self._found(*token, grammar, more) for token, more in zip(tokens, own, strict=True)]
            )
        if tree.is_preterminal:
            raise ValueError(f"the tree is only a tag and its word, {tree!s:.80}")
        return tree.map(
            lambda node, children: (
                self.of_pair(node.leaves()[0], node.label, next(own))
                if node.is_preterminal
                else Tree.made(node.label, tuple(children))
            )
        )

    def _found(self, word: str, tag: str | None, grammar: Grammar | None, own: Own) -> Token:
        """The terminal of a word whose tag the parser finds."""
        if self.kind == "predicted":
            return self.of_given(word, tag or "", grammar, own)
        return self.of_word(word, grammar, own)

    def of_sentence(self, tokens: Iterable[object], grammar: Grammar) -> tuple[list[str], list[str | Tree]]:
        """``(terminals, words)`` of a sentence, a list of tags or words or of (word, tag).

        The words are what a tree of the sentence is to hold: nodes of a tag and a word, or words.
        """
        terminals: list[str] = []
        words: list[str | Tree] = []
        pairs = []
        for token in tokens:
            word, tag = token if isinstance(token, (tuple, list)) and len(token) == 2 else (token, token)
            if not (isinstance(word, str) and isinstance(tag, str)):
                raise ValueError(f"a token must be a str or a pair (word, tag), got {token!r:.80}")
            if isinstance(token, str) and (
                self.kind in ("both", "predicted") or (self.kind == "tags" and self.own.sizes)
            ):
                what = "features of words" if self.kind == "tags" else f"terminals={self.kind!r}"
                raise ValueError(f"with {what} a token must be a pair (word, tag), got {token!r:.80}")
            if not word or not tag.strip():
                raise ValueError(f"a word and its tag must not be empty, got {token!r:.80}")
            if not self.finds_tags and tag not in grammar.terminal_number:
                cleaned = clean_label(tag)
                tag = cleaned if cleaned in grammar.terminal_number else tag
            pairs.append((word, tag))
        for (word, tag), own in zip(pairs, self._own(pairs), strict=True):
            if self.finds_tags:
                terminals.append(self._found(word, tag, grammar, own))
                words.append(word)
            else:
                terminals.append(self.of_pair(word, tag, own))
                words.append(Tree(tag, (word,)))
        if not self.finds_tags:
            _check_tags([node for node in words if isinstance(node, Tree)], grammar.terminal_number)
        return terminals, words


def _with_words(tree: Tree, words: Iterable[str]) -> Tree:
    """The tree with other words, left to right."""
    made, places = list(words), _places(tree)
    return tree.map(
        lambda node, children: Tree.made(
            node.label, tuple([made[places[id(node)].popleft()] if isinstance(c, str) else c for c in children])
        )
    )


def _places(tree: Tree) -> dict[int, deque[int]]:
    """Words that are a node's own children, by the node; for one that stands in the tree twice, both lots in order."""
    found: dict[int, deque[int]] = defaultdict(deque)
    n = 0
    stack: list[tuple[Tree, Tree | str]] = [(tree, tree)]
    while stack:
        above, item = stack.pop()
        if isinstance(item, str):
            found[id(above)].append(n)
            n += 1
        else:
            stack.extend((item, child) for child in reversed(item.children))
    return found


def _check_tags(nodes: Sequence[Tree], known: Mapping[str, int]) -> None:
    """Raise ValueError if most of what should be tags is none of the grammar's, and so are words.

    One or two tags may well be new ones, unless they are in lower case and the grammar's are not.
    """
    unknown = [node.label for node in nodes if node.label not in known]
    if 2 * len(unknown) <= len(nodes):
        return
    if len(nodes) < 3 and (
        any(label == label.upper() for label in unknown) or any(tag != tag.upper() for tag in known)
    ):
        return
    if sum(word in known for node in nodes for word in node.children) * 2 > len(nodes):
        raise ValueError("its pairs must be (word, tag), and seem to be (tag, word)")
    raise ValueError(
        f"{unknown[0]!r} and {len(unknown) - 1} others of its {len(nodes)} tags are not among the grammar's "
        f"{len(known)} tags. Are they words? This parser goes by tags: give it tags, or pairs (word, tag); "
        "GrammarParser(terminals='words') and the option terminals of train grammar go by words"
    )
