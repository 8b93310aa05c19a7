"""Segments in a label-sequence model (``segments=True``): labels that are the tags of segments, and phrases.

Tokens are scored by tags, of each type B (first), I (inside), E (last) and S (single), whatever form y has: labels in
BIO, in BIOES, or lists of spans ``(start, stop, label)``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.attributes import unwrapped
from structsvm.features.columns import Columns
from structsvm.tasks.common.labels import sort_labels
from structsvm.tasks.sequence.constraints import has_tag, label_of, parts_of, repaired
from structsvm.tasks.sequence.labels import COLLECTIONS, by_sequence
from structsvm.tasks.sequence.phrases import Phrases

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.features.tokens import Tokens
    from structsvm.tasks.common.arrays import Integers
    from structsvm.tasks.sequence.examples import AllowedLike, SequencesLike, Span

    # The tag of a token; or what is known of it: some tags, or their weights; None: nothing.
    KnownTag: TypeAlias = str | list[str] | dict[str, float] | None

TAGS = "BIES"
FORMS = ("bio", "bioes", "spans")
# The tags of a label of BIO.
IN_TAGS = {"B": "BS", "I": "IE"}
# The longest segments that have weights of their own: as many as nearly all are, within these bounds.
SHARE, SHORTEST, LONGEST = 0.995, 4, 8
MOST_TOKENS = 1000


@dataclass
class Segments:
    """The form in which users have segments, and the phrases of the training text.

    Attributes
    ----------
    form : {"bio", "bioes", "spans"}
    phrases : Phrases
    """

    form: str
    phrases: Phrases

    def with_phrases(self, X: SequencesLike, tokens: Tokens) -> Tokens:
        """Encoded tokens of X with their phrases."""
        return replace(tokens, bigrams=self.phrases.transform(X, tokens))

    def shown(self, tag: str) -> str:
        """A tag as users have it; of spans as in BIO."""
        return tag if self.form == "bioes" else in_bio(tag)

    def in_tags(self, label: str) -> list[str]:
        """The tags that a user's label may be."""
        head, kind = parts_of(label)
        return [label] if self.form == "bioes" or kind is None else [label_of(tag, kind) for tag in IN_TAGS[head]]

    def allowed(self, allowed: AllowedLike | None) -> list[list[KnownTag] | None] | None:
        """Partly known labels (see `allowed_masks`) as tags."""
        if allowed is None:
            return None
        return [None if some is None else [self._known(item) for item in some] for some in allowed]

    def _known(self, some: Any) -> list[str] | dict[str, float] | None:
        """Tags of a token that is known in part."""
        if some is None:
            return None
        if isinstance(some, dict):
            return {tag: weight for label, weight in some.items() for tag in self._checked_tags(label)}
        labels = [some] if isinstance(some, str) or not hasattr(some, "__iter__") else some
        return [tag for label in labels for tag in self._checked_tags(label)]

    def _checked_tags(self, label: Any) -> list[str]:
        _check_label(label, self.form, "what is known")
        return self.in_tags(label)

    def tags(self, y: Sequence[Sequence[Any]], lengths: NDArray[np.int64], broken: str) -> Sequence[Sequence[KnownTag]]:
        """y as lists of tags, where labels are not known as `encode_known` has it."""
        if self.form == "spans":
            return [labels_of(spans, int(n), i) for i, (spans, n) in enumerate(zip(y, lengths, strict=True))]
        found: list[Sequence[KnownTag]] = []
        for i, labels in enumerate(y):
            for t, label in enumerate(labels):
                if label is not None and not isinstance(label, COLLECTIONS):
                    _check_label(label, self.form, f"sequence {i}, token {t}")
            if any(label is None or isinstance(label, COLLECTIONS) for label in labels):
                found.append([self._known(label) for label in labels])
                continue
            if broken != "repair":
                check_scheme(self.form, labels, i)
            found.append(repaired("bioes", labels))
        return found


def in_bio(tag: str) -> str:
    """A tag as a label of BIO, which is what conlleval reads."""
    head, kind = parts_of(tag)
    return tag if kind is None else label_of({"S": "B", "E": "I"}.get(head, head), kind)


def given(y: object, lengths: NDArray[np.int64]) -> tuple[list[Sequence[Any]], str]:
    """``(y, form)``: y as lists, and their form; ValueError for labels that are of none."""
    if isinstance(y, Columns):
        y = y.column(0)
    if not hasattr(y, "__iter__") or isinstance(y, (str, bytes)):
        raise TypeError(f"y must hold a list of labels, or of spans, for each sequence, got {y!r:.80}")
    y = [labels.tolist() if isinstance(labels, np.ndarray) else unwrapped(labels) for labels in by_sequence(y, lengths)]
    for i, labels in enumerate(y):
        if not isinstance(labels, (list, tuple)):
            raise TypeError(
                f"y must hold a list of labels, or of spans, for each sequence; for {i} it is {labels!r:.80}"
            )
    if len(y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences, y has {len(y)}")
    first = next(chain.from_iterable(y), None)
    if (first is None and not any(y)) or _is_span(first):
        return y, "spans"
    for i, (labels, n) in enumerate(zip(y, lengths, strict=True)):
        if len(labels) != n:
            raise ValueError(f"sequence {i} has {n} tokens but {len(labels)} labels")
    every = chain.from_iterable(_labels_in(label) for labels in y for label in labels)
    return y, "bioes" if any(has_tag(label, "ES") for label in every) else "bio"


def _labels_in(some: object) -> Collection[Any]:
    return some if isinstance(some, COLLECTIONS) else (some,)


def _is_span(value: object) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 3
        and all(isinstance(at, Integral) and not isinstance(at, bool) for at in value[:2])
    )


def _check_label(label: object, form: str, where: str) -> None:
    heads = "BI" if form != "bioes" else TAGS
    if not isinstance(label, str):
        raise TypeError(
            f"{where}: segments need labels that are strings, such as 'B-PER', or spans (start, stop, label), got "
            f"{label!r:.80}"
        )
    head, kind = parts_of(label)
    if kind is not None and head not in heads:
        raise ValueError(f"{where}: the label {label!r} is none of a segment, which begin with {', '.join(heads)}")


def check_scheme(form: str, labels: Sequence[str], i: int) -> None:
    """Raise ValueError, naming sequence and token, for labels that are no chain of segments in a form."""
    wanted = repaired(form, labels)
    for t, (label, other) in enumerate(zip(labels, wanted, strict=True)):
        if label != other:
            before = f", after {labels[t - 1]!r}" if t else ""
            raise ValueError(
                f"sequence {i}: its label {label!r} at token {t}{before}, breaks the scheme {form.upper()}. Correct "
                "the data; or broken='repair' takes the chunks that conlleval reads in them"
            )


def labels_of(spans: Iterable[Span], length: int, i: int) -> list[str]:
    """Tags of spans ``(start, stop, label)``; ValueError, naming the sequence, for spans outside it or overlapping."""
    labels = ["O"] * length
    for span in spans:
        if not _is_span(span):
            raise ValueError(f"sequence {i}: {span!r:.80} is no span (start, stop, label)")
        start, stop, kind = span
        if not isinstance(kind, str):
            raise TypeError(f"sequence {i}: the label of the span {span!r:.80} must be a string")
        if not 0 <= start < stop <= length:
            raise ValueError(f"sequence {i}: the span {span!r:.80} is empty or outside its {length} tokens")
        if any(label != "O" for label in labels[start:stop]):
            raise ValueError(f"sequence {i}: the span {span!r:.80} overlaps another one")
        n = stop - start
        labels[start:stop] = [label_of(tag, kind) for tag in ("S" if n == 1 else f"B{'I' * (n - 2)}E")]
    return labels


def spans_of(tags: Iterable[str]) -> list[Span]:
    """The spans ``(start, stop, label)`` of a chain of segments in tags."""
    return list(_each_span(tags))


def _each_span(tags: Iterable[str]) -> Iterator[Span]:
    start = 0
    for t, tag in enumerate(tags):
        head, kind = parts_of(tag)
        if kind is not None:
            if head in "BS":
                start = t
            if head in "ES":
                yield start, t + 1, kind


def all_tags(tags: Iterable[Iterable[KnownTag]], classes: Iterable[Hashable] | None) -> list[str]:
    """All tags of the types that some labels name, sorted, and the labels that name none; these are tags or of BIO."""
    every = (label for labels in tags for label in labels if label is not None)
    named = dict.fromkeys(chain.from_iterable(_labels_in(label) for label in every))
    found = dict.fromkeys([*named, *(() if classes is None else classes)])
    for label in found:
        _check_label(label, "bioes", "classes")
    kinds = dict.fromkeys(parts_of(label)[1] for label in found)
    plain = [label for label in found if parts_of(label)[1] is None]
    return sort_labels([*plain, *(label_of(tag, kind) for kind in kinds if kind is not None for tag in TAGS)])


def tags_of_types(labels: Sequence[Any]) -> Integers:
    """The label ids of each type's first, inside, last and single tag: int array (n_types, 4)."""
    id_of = {label: k for k, label in enumerate(labels)}
    kinds = dict.fromkeys(parts_of(label)[1] for label in labels)
    rows = [[id_of[label_of(tag, kind)] for tag in TAGS] for kind in kinds if kind is not None]
    return np.array(rows, dtype=np.int32).reshape(-1, 4)


def usual_length(tags: Iterable[Iterable[KnownTag]]) -> int:
    """The longest of nearly all segments, within bounds; what is known in part counts as outside."""
    known = ([tag if isinstance(tag, str) else "O" for tag in labels] for labels in tags)
    counts = np.bincount(np.fromiter((b - a for labels in known for a, b, _ in _each_span(labels)), np.int64))
    most = int(np.searchsorted(counts.cumsum(), int(SHARE * (counts.sum() - 1)), "right")) if len(counts) else SHORTEST
    return min(max(most, SHORTEST), LONGEST)
