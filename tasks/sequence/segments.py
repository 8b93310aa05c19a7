"""Segments in a label-sequence model (``segments=True``): labels that are the tags of segments, and phrases.

Tokens are scored by tags, of each type B (first), I (inside), E (last) and S (single), whatever form y has: labels in
any scheme (`structsvm.metrics.Scheme`), labels without tags, of which each run of one label is a segment, or lists of
spans ``(start, stop, label)``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.attributes import unwrapped
from structsvm.features.columns import Columns
from structsvm.metrics._counts import AUTO, is_unknown, say_unknown
from structsvm.metrics._schemes import (
    BIO,
    BIOES,
    FORMS,
    OUTSIDE,
    SCHEMES,
    Runs,
    Scheme,
    name_no_tags,
    odd_one,
    scheme_for,
)
from structsvm.tasks.common.labels import sort_labels
from structsvm.tasks.sequence.constraints import TagNames, constrained, scheme_among
from structsvm.tasks.sequence.labels import COLLECTIONS, by_sequence, warn_of_tags
from structsvm.tasks.sequence.phrases import Phrases

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.arrays import Integers
    from structsvm.features.tokens import Tokens
    from structsvm.metrics._schemes import Part
    from structsvm.tasks.sequence.constraints import ConstraintsLike
    from structsvm.tasks.sequence.examples import AllowedLike, SequencesLike, Span

    # The tag of a token; or what is known of it: some tags, or their weights; None: nothing.
    KnownTag: TypeAlias = str | list[str] | dict[str, float] | None

TAGS = "BIES"
SPANS = "spans"
# The schemes of files, by their texts.
WITH_TAGS = [Scheme(name, sep, end) for name, (end, sep) in product(SCHEMES, FORMS)]
BY_TEXT: dict[str, Scheme] = {str(scheme): scheme for scheme in [*WITH_TAGS, Runs()]}
# The roles in a chunk that labels of schemes without B, E or S may stand for, by their own roles.
ROLES = {
    "bio": {"B": "BS", "I": "IE"},
    "iob1": {"B": "BS", "I": "BIES"},
    "ioe1": {"I": "BIES", "E": "ES"},
    "ioe2": {"I": "BI", "E": "ES"},
    "io": {"I": "BIES"},
}
# The longest segments that have weights of their own: as many as nearly all are, within these bounds.
SHARE, SHORTEST, LONGEST = 0.995, 4, 8
MOST_TOKENS = 1000


@dataclass
class Segments:
    """The form in which users have segments, and the phrases of the training text.

    Attributes
    ----------
    form : str
        The text of a scheme, or "spans".
    phrases : Phrases
    """

    form: str
    phrases: Phrases

    @property
    def scheme(self) -> Scheme:
        """The scheme in which users see labels; of spans BIO."""
        return BY_TEXT.get(self.form, BIO)

    def with_phrases(self, X: SequencesLike, tokens: Tokens) -> Tokens:
        """Encoded tokens of X with their phrases."""
        return replace(tokens, bigrams=self.phrases.transform(X, tokens))

    @property
    def depends_on_neighbours(self) -> bool:
        """Whether the label of a tag depends on the chunks beside its own."""
        return self.scheme.name in ("iob1", "ioe1")

    def shown(self, tag: str) -> str:
        """A tag as users have it, were its chunk alone."""
        role, kind = part_of(tag)
        may_be = ROLES.get(self.scheme.name, {})
        return self.scheme.label(next((own for own, roles in may_be.items() if role in roles), role), kind)

    def shown_labels(self, tags: Sequence[str]) -> list[str]:
        """The tags of a sequence as users have them."""
        return self.scheme.labels(BIOES.chunks(tags), len(tags))

    def names_of(self, tags: Sequence[Any]) -> TagNames:
        """The names that users have for tags."""
        return TagNames([self.shown(tag) for tag in tags], self.scheme, self.depends_on_neighbours)

    def in_tags(self, label: str) -> list[str]:
        """The tags that a user's label may be."""
        role, kind = self.scheme.part(label) or OUTSIDE
        return [BIOES.label(one, kind) for one in ROLES.get(self.scheme.name, {}).get(role, role)]

    def allowed(self, allowed: AllowedLike | None, unknown: object = AUTO) -> list[list[KnownTag] | None] | None:
        """Partly known labels (see `allowed_masks`) as tags."""
        if allowed is None:
            return None

        def known(item: Any) -> KnownTag:
            return None if is_unknown(item, unknown) else self._known(item)

        return [None if some is None else list(map(known, some)) for some in allowed]

    def _known(self, some: Any) -> list[str] | dict[str, float] | None:
        """Tags of a token that is known in part."""
        if some is None:
            return None
        if isinstance(some, dict):
            return {tag: weight for label, weight in some.items() for tag in self._checked_tags(label)}
        labels = [some] if isinstance(some, str) or not hasattr(some, "__iter__") else some
        return [tag for label in labels for tag in self._checked_tags(label)]

    def _checked_tags(self, label: Any) -> list[str]:
        _check_label(label, self.scheme, "what is known")
        return self.in_tags(label)

    def tags(self, y: Sequence[Sequence[Any]], lengths: NDArray[np.int64], broken: str) -> Sequence[Sequence[KnownTag]]:
        """y as lists of tags, where labels are not known as `encode_known` has it."""
        if self.form == SPANS:
            return [labels_of(spans, int(n), i) for i, (spans, n) in enumerate(zip(y, lengths, strict=True))]
        found: list[Sequence[KnownTag]] = []
        for i, labels in enumerate(y):
            for t, label in enumerate(labels):
                if label is not None and not isinstance(label, COLLECTIONS):
                    _check_label(label, self.scheme, f"sequence {i}, token {t}")
            if any(label is None or isinstance(label, COLLECTIONS) for label in labels):
                found.append([self._known(label) for label in labels])
                continue
            if broken != "repair":
                check_scheme(self.scheme, labels, i)
            found.append(BIOES.labels(self.scheme.chunks(labels), len(labels)))
        return found


def part_of(tag: str) -> Part:
    """The role and the type of a tag."""
    return BIOES.part(tag) or OUTSIDE


def given(
    y: object,
    lengths: NDArray[np.int64],
    constraints: ConstraintsLike = None,
    before: Segments | None = None,
    unknown: object = AUTO,
) -> tuple[list[Sequence[Any]], str]:
    """``(y, form)``: y as lists, and their form; ValueError for labels that are of none.

    The scheme is the one that `constraints` names, or the one of the model `before`, if the labels fit it. Marks of
    unknown labels are None.
    """
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
        return y, SPANS
    for i, (labels, n) in enumerate(zip(y, lengths, strict=True)):
        if len(labels) != n:
            raise ValueError(f"sequence {i} has {n} tokens but {len(labels)} labels")
    y = _unmarked(y, unknown)
    known = (_labels_in(label) for labels in y for label in labels if label is not None)
    every = dict.fromkeys(chain.from_iterable(known))
    named = scheme_among(constraints)
    if named is not None:
        return y, str(constrained(named, every))
    if before is not None and not before.scheme.outside(every):
        return y, str(before.scheme)
    return y, str(_scheme_of(y, every))


def _unmarked(y: list[Sequence[Any]], unknown: object) -> list[Sequence[Any]]:
    """Labels with None for the marks of unknown ones, whose number is said."""
    if not any(label is not None and is_unknown(label, unknown) for labels in y for label in labels):
        return y
    say_unknown(chain.from_iterable(y), unknown, None, "tokens")
    return [[None if is_unknown(label, unknown) else label for label in labels] for labels in y]


def _scheme_of(y: Sequence[Sequence[Any]], every: Collection[Any]) -> Scheme:
    """The scheme of labels; of labels without any tag their runs. Errors name sequence and token of other labels."""
    if {*every} - {"O"} and name_no_tags(every):
        warn_of_tags(every, segments=True)
        return Runs()
    try:
        return scheme_for(every)
    except (TypeError, ValueError) as error:
        strange = next((label for label in every if not isinstance(label, str)), None) or odd_one(every)[0]
        places = ((i, t, label) for i, labels in enumerate(y) for t, label in enumerate(labels))
        i, t = next((i, t) for i, t, label in places if strange in _labels_in(label))
        wanted = "labels of a scheme, labels of which none looks like a tag, or spans"
        raise type(error)(f"sequence {i}, token {t}: segments need {wanted}: {error}") from None


def _labels_in(some: object) -> Collection[Any]:
    return some if isinstance(some, COLLECTIONS) else (some,)


def _is_span(value: object) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 3
        and all(isinstance(at, Integral) and not isinstance(at, bool) for at in value[:2])
    )


def _check_label(label: object, scheme: Scheme, where: str) -> None:
    if scheme.part(label) is None:
        raise ValueError(
            f"{where}: segments need labels of {str(scheme).upper()}, the scheme of the others, or spans (start, stop, "
            f"label), got {label!r:.80}"
        )


def check_scheme(scheme: Scheme, labels: Sequence[str], i: int) -> None:
    """Raise ValueError, naming sequence and token, for labels that are no chain of segments in a scheme."""
    wanted = scheme.repaired(labels)
    for t, (label, other) in enumerate(zip(labels, wanted, strict=True)):
        if label != other and scheme.part(label) != OUTSIDE:
            before = f", after {labels[t - 1]!r}" if t else ""
            hint = "constraints='iob1' reads chunks that begin with I; " if scheme.name == "bio" else ""
            raise ValueError(
                f"sequence {i}: its label {label!r} at token {t}{before}, breaks the scheme {str(scheme).upper()}. "
                f"Correct the data; {hint}or broken='repair' takes the chunks that are read in them"
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
        if kind != kind.strip():
            raise ValueError(f"sequence {i}: the label of the span {span!r:.80} begins or ends with a blank")
        if not 0 <= start < stop <= length:
            raise ValueError(f"sequence {i}: the span {span!r:.80} is empty or outside its {length} tokens")
        if any(label != "O" for label in labels[start:stop]):
            raise ValueError(f"sequence {i}: the span {span!r:.80} overlaps another one")
        n = stop - start
        labels[start:stop] = BIOES.labels([(0, n, kind)], n)
    return labels


def all_tags(
    tags: Iterable[Iterable[KnownTag]], classes: Iterable[Hashable] | None, scheme: Scheme = BIOES
) -> list[str]:
    """All tags of the types that some tags name, or `classes`, which are labels of a scheme or tags; sorted."""
    every = (tag for labels in tags for tag in labels if tag is not None)
    parts = [part_of(tag) for tag in dict.fromkeys(chain.from_iterable(_labels_in(tag) for tag in every))]
    for label in () if classes is None else classes:
        if BIOES.part(label) is None:
            _check_label(label, scheme, "classes")
        parts.append(scheme.part(label) or part_of(str(label)))
    kinds = dict.fromkeys(part.kind for part in parts if part != OUTSIDE)
    plain = ["O"] if OUTSIDE in parts else []
    return sort_labels([*plain, *(BIOES.label(tag, kind) for kind in kinds for tag in TAGS)])


def tags_of_types(labels: Sequence[Any]) -> Integers:
    """The label ids of each type's first, inside, last and single tag: int array (n_types, 4)."""
    id_of = {label: k for k, label in enumerate(labels)}
    kinds = dict.fromkeys(part.kind for part in map(part_of, labels) if part != OUTSIDE)
    rows = [[id_of[BIOES.label(tag, kind)] for tag in TAGS] for kind in kinds]
    return np.array(rows, dtype=np.int32).reshape(-1, 4)


def usual_length(tags: Iterable[Iterable[KnownTag]]) -> int:
    """The longest of nearly all segments, within bounds; what is known in part counts as outside."""
    known = ([tag if isinstance(tag, str) else "O" for tag in labels] for labels in tags)
    counts = np.bincount(np.fromiter((b - a for labels in known for a, b, _ in BIOES.chunks(labels)), np.int64))
    most = int(np.searchsorted(counts.cumsum(), int(SHARE * (counts.sum() - 1)), "right")) if len(counts) else SHORTEST
    return min(max(most, SHORTEST), LONGEST)
