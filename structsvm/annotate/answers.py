"""Answers of annotators: spans of words with labels, or one label of a whole text; checked where they come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from structsvm.metrics._schemes import Runs, Scheme, scheme_of

# An annotator's label for what stands outside every span, as in the schemes of chunks.
OUTSIDE = "O"
MAX_LABEL = 200
# Letters of Persian and Indian scripts, and emoji, are written with these between them: they are seen by what they do.
JOINERS = str.maketrans("", "", "\u200c\u200d")
UNIVERSAL_TAGS = {
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
}


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes
    ----------
    spans : tuple of (start, stop, label)
        Spans of words, sorted, none overlapping; empty for tasks of one label per text.
    label : str or None
        The label of the whole text; None for sequences, and where only wrong ones are known.
    complete : bool
        Whether the spans are all there are outside those that are wrong. If not, nothing is known of the other words.
    wrong_spans : tuple of (start, stop, label)
        Words that do not have the label, as `spans`.
    wrong_labels : tuple of str
        Labels that the text does not have.
    """

    spans: tuple[tuple[int, int, str], ...] = ()
    label: str | None = None
    complete: bool = True
    wrong_spans: tuple[tuple[int, int, str], ...] = ()
    wrong_labels: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The answer as a record has it."""
        if self.label is not None:
            return {"label": self.label}
        if self.wrong_labels:
            return {"wrong": list(self.wrong_labels)}
        found: dict[str, object] = {"spans": [list(span) for span in self.spans], "complete": self.complete}
        return found | ({"wrong": [list(span) for span in self.wrong_spans]} if self.wrong_spans else {})

    @property
    def labels(self) -> set[str]:
        """The labels that it gives."""
        return {label for _, _, label in self.spans} if self.label is None else {self.label}

    @property
    def is_whole(self) -> bool:
        """Whether it leaves nothing open."""
        return self.complete and not self.wrong_spans and not self.wrong_labels


def answer_of(value: object, n_words: int, *, is_sequence: bool) -> Answer:
    """The answer of a JSON object for a text of `n_words` words.

    Raises
    ------
    ValueError
        For anything else, or spans that overlap or leave the text.
    """
    if not isinstance(value, Mapping):
        raise ValueError("answer must be an object")
    wrong = _listed(value.get("wrong") or (), "answer.wrong must be a list")
    if not is_sequence:
        if not wrong:
            return Answer(label=checked_label(value.get("label")))
        if value.get("label") is not None:
            raise ValueError("answer has a label: the others are wrong then, and answer.wrong is for none")
        return Answer(wrong_labels=tuple(sorted({checked_label(label) for label in wrong})))
    spans = _listed(value.get("spans"), "answer.spans must be a list of [start, stop, label]")
    found, denied = (sorted(_span_of(span, n_words) for span in some) for some in (spans, wrong))
    for (_, stop, one), (start, _, other) in pairwise(sorted([*found, *denied])):
        if start < stop:
            raise ValueError(f"answer.spans overlap: {one!r} ends after word {start}, where {other!r} begins")
    complete = value.get("complete", True)
    if not isinstance(complete, bool):
        raise ValueError("answer.complete must be true or false")
    if not (complete or found or denied):
        raise ValueError("a partial answer has at least one span: mark one first")
    return Answer(tuple(found), complete=complete, wrong_spans=tuple(denied))


def _listed(value: object, message: str) -> Sequence[object]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(message)
    return value


def _span_of(value: object, n_words: int) -> tuple[int, int, str]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
        raise ValueError(f"answer.spans: {value!r:.80} is no [start, stop, label]")
    start, stop, label = value
    if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= n_words:
        raise ValueError(f"answer.spans: [{start!r:.20}, {stop!r:.20}] is no span of {n_words} words")
    try:
        return start, stop, checked_span_label(label)
    except ValueError as error:
        raise ValueError(f"answer.spans: {error}") from None


def checked_span_label(value: object) -> str:
    """A label of a span, as `checked_label`. Raises ValueError for what stands outside spans, too."""
    label = checked_label(value)
    if label == OUTSIDE:
        raise ValueError(f"{OUTSIDE} is what stands outside spans, and no label")
    return label


def checked_label(value: object, noun: str = "a label") -> str:
    """A label, without blanks around it. Raises ValueError, which begins with `noun`, for what is none."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{noun} is a text that is not empty, got {value!r:.80}")
    label = value.strip()
    seen = label.translate(JOINERS)
    if len(label) > MAX_LABEL or not seen.isprintable() or seen[:1] != label[:1] or seen[-1:] != label[-1:]:
        raise ValueError(f"{noun} has at most {MAX_LABEL} printable characters, got {label!r:.80}")
    return label


def tags_of(answer: Answer, n_words: int) -> list[str | None]:
    """Tags B-X, I-X and O of the words; None where the answer does not tell it."""
    tags: list[str | None] = [OUTSIDE if answer.complete else None] * n_words
    for start, stop, _ in answer.wrong_spans:
        tags[start:stop] = [None] * (stop - start)
    for start, stop, label in answer.spans:
        tags[start:stop] = [f"B-{label}", *[f"I-{label}"] * (stop - start - 1)]
    return tags


@dataclass(frozen=True)
class EachWord(Runs):
    """Labels without tags, each of its word alone, as parts of speech are."""

    def chunks(self, labels: Iterable[object]) -> list[tuple[int, int, str]]:
        return [(k, k + 1, str(label)) for k, label in enumerate(labels) if label != OUTSIDE]


def scheme_of_tags(labels: Iterable[str]) -> Scheme:
    """The scheme of labels of words; where there is none, runs of one label but O, or universal parts of speech."""
    labels = list(labels)
    return scheme_of(labels) or (EachWord() if UNIVERSAL_TAGS.issuperset(labels) else Runs())
