"""Sentences given as text: cut at blanks, and told from trees and from the words of one sentence."""

from __future__ import annotations

import re
from typing import Any

# How a bracketed tree begins, and no sentence whose first word is a bracket: (S ..., or ( (S ...
TREE = re.compile(r"\s*\((\s*\(|[^\s()])")


def split_text(sentence: Any) -> Any:
    """The words of a sentence that is text; anything else as it is. ValueError for a bracketed tree."""
    if not isinstance(sentence, str):
        return sentence
    if TREE.match(sentence):
        raise ValueError(f"a sentence must be a list of words or text, and this seems to be a tree: {sentence!r:.80}")
    return sentence.split()


def check_no_words(X: Any) -> None:
    """Raise ValueError for several texts without a blank, which are the words of one sentence."""
    if not isinstance(X, (list, tuple)) or len(X) < 2:
        return
    if all(isinstance(text, str) and len(text.split()) < 2 for text in X):
        raise ValueError(
            f"X must be a list of sentences, and seems to be the words of one, {X!r:.80}: give [X], or sentences of "
            f"one word as lists, [[{X[0]!r:.40}], ...]"
        )
