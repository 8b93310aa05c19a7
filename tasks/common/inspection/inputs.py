"""Whether what stands where one input is asked for is a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structsvm.tasks.common.inspection.weights import Explanation
    from structsvm.tasks.common.model import TaskModel

SEVERAL = "explain takes one input, got {} of them: use [estimator.explain(x) for x in X]"


def explain_one(model: TaskModel, x: object) -> Explanation:
    """Return the model's explanation of x. Raises ValueError for a list of inputs."""
    if model.holds_several(x):
        refuse(x)
    return model.explain(x)


def refuse(X: object) -> None:
    """Raise ValueError for a list of inputs."""
    shape = getattr(X, "shape", None)
    raise ValueError(SEVERAL.format(len(X) if shape is None else shape[0]))  # type: ignore[arg-type]


def depth(x: object) -> int:
    """Levels of lists, tuples and arrays in x, by the first entry of each."""
    if isinstance(x, list | tuple):
        return 1 + (depth(x[0]) if x else 0)
    return int(getattr(x, "ndim", 0))


def leaf(x: object) -> object:
    """The first entry of x that is no list or tuple; None if there is none."""
    while isinstance(x, list | tuple):
        x = x[0] if x else None
    return x


def are_sentences(x: object) -> bool:
    """Return whether x is a list of sentences: where a sentence has words, it has lists, texts or trees.

    A word is a text, a tuple that begins with one, or a dict.
    """
    if not isinstance(x, list | tuple) or not x:
        return False
    word = x[0][0] if isinstance(x[0], tuple) and x[0] else x[0]
    return not isinstance(word, str | dict) or any(isinstance(text, str) and " " in text.strip() for text in x)
