"""Two texts as one text of features, so that a classifier of texts judges pairs."""

from __future__ import annotations

import re

from structsvm.features.text.words import words

N_STEPS = 10


def pair_text(one: str, other: str) -> str:
    """Return a text that says what two texts share, and what only one of them has.

    Words of both begin with ``both_``, of one alone with ``left_`` or ``right_``; ``only_`` stands for a word of either
    alone. Last comes the share of letter trigrams that both have, in tenths. Each is a word for scikit-learn's
    vectorizers.

    Examples
    --------
    >>> from structsvm.annotate.pairs import pair_text
    >>> pair_text("Oak Street", "oak st")
    'both_oak left_street only_street right_st only_st share_5 share_over_1 share_over_2 share_over_3 share_over_4'
    """
    left, right = _names(one), _names(other)
    said = [f"both_{name}" for name in left if name in right]
    said += [f"{kind}_{name}" for name in left if name not in right for kind in ("left", "only")]
    said += [f"{kind}_{name}" for name in right if name not in left for kind in ("right", "only")]
    step = int(N_STEPS * _shared(" ".join(left), " ".join(right)))
    return " ".join([*said, f"share_{step}", *(f"share_over_{k}" for k in range(1, step))])


def _names(text: str) -> list[str]:
    """Words in lower case, each once, with other characters than letters and digits replaced."""
    return list(dict.fromkeys(re.sub(r"\W", "_", word.casefold()) for word in words(text)))


def _shared(one: str, other: str) -> float:
    """The share of trigrams that two texts have in common (Jaccard)."""
    left, right = _trigrams(one), _trigrams(other)
    return len(left & right) / len(left | right)


def _trigrams(text: str) -> set[str]:
    padded = f"  {text} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}
