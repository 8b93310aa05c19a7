"""What a grammar's terminals are: part-of-speech tags, or words with classes for the rare and the unknown."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from structsvm.structures.trees import STRETCH, UNKNOWN_LABEL, Tree, escaped

UNKNOWN = "<unk>"  # the class of all rare words: for those whose own class was never seen

_SUFFIXES = ("ing", "ed", "tion", "ion", "er", "est", "ly", "ity", "able", "al", "s")


def word_class(word: Any) -> Any:
    """The class of a rare word: capitals, digits, hyphen and suffix, ``<unk-Cap-s>``."""
    if re.fullmatch(r"[+-]?[\d.,:/]*\d[\d.,:/]*", word):
        return "<unk-number>"
    marks = []
    if word[0].isupper():
        marks.append("CAPS" if word.isupper() and len(word) > 1 else "Cap")
    if any(letter.isdigit() for letter in word):
        marks.append("digit")
    if "-" in word:
        marks.append("dash")
    suffix = next((end for end in _SUFFIXES if word.lower().endswith(end) and len(word) > len(end) + 2), None)
    return "-".join(["<unk", *marks, *([suffix] if suffix else [])]) + ">"


class Terminals:
    """From the tokens of sentences and trees to the terminals of a grammar.

    Parameters
    ----------
    kind : {"tags", "words"}
    known : collection of str
        The words that are terminals themselves; for tags not used.
    """

    def __init__(self, kind: Any, known: Any = ()) -> None:
        self.kind, self.known = kind, frozenset(known)

    @classmethod
    def of_trees(cls, kind: Any, trees: Any, min_count: Any) -> Any:
        """Words seen `min_count` times or more are known."""
        if kind == "tags":
            return cls(kind)
        counts = Counter(escaped(word) for tree in trees for word in tree.leaves())
        return cls(kind, (word for word, count in counts.items() if count >= min_count))

    def of_word(self, word: Any, grammar: Any = None) -> Any:
        """The terminal of a word; where there is a grammar, UNKNOWN for a class that is not in it."""
        word = escaped(word)  # trees that were read have brackets in that form
        terminal = word if word in self.known else word_class(word)
        return terminal if grammar is None or terminal in grammar.terminal_number else UNKNOWN

    def of_tree(self, tree: Any, grammar: Any = None) -> Any:
        """The tree whose words are the grammar's terminals; ValueError for a word without the tag that is needed."""
        if self.kind == "words":
            return tree.map(
                lambda node, children: Tree(
                    node.label, (self.of_word(c, grammar) if isinstance(c, str) else c for c in children)
                )
            )
        for word, tag in tree.tokens():
            if tag in (None, UNKNOWN_LABEL, STRETCH):
                raise ValueError(f"the word {word!r} has no tag of its own; use terminals='words'")
        if tree.is_preterminal:
            raise ValueError(f"the tree is only a tag and its word, {tree!s:.80}")
        return tree.map(lambda node, children: node.label if node.is_preterminal else Tree(node.label, children))

    def of_sentence(self, tokens: Any, grammar: Any) -> tuple[Any, Any]:
        """``(terminals, words)`` of a sentence, a list of tags or words or of (word, tag).

        The words are what a tree of the sentence is to hold: nodes of a tag and a word, or words.
        """
        terminals, words = [], []
        for token in tokens:
            pair = isinstance(token, (tuple, list))
            if not (isinstance(token, str) or (pair and len(token) == 2 and all(isinstance(x, str) for x in token))):
                raise ValueError(f"a token must be a str or a pair (word, tag), got {token!r:.80}")
            word, tag = token if pair else (token, token)
            if self.kind == "tags":
                terminals.append(tag)
                words.append(Tree(tag, (word,)))
            else:
                terminals.append(self.of_word(word, grammar))
                words.append(word)
        return terminals, words
