"""Models that predict and learn from raw texts: sequences of words, and classifiers of texts."""

from __future__ import annotations

import copy
import hashlib
import os
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from structsvm.features.text.words import word_spans
from structsvm.metrics._schemes import Runs, Scheme, scheme_of
from structsvm.opening import load_estimator
from structsvm.serve.chances import span_chances

if TYPE_CHECKING:
    from structsvm.tasks import SequenceLabeler, TaxonomyClassifier

# Classes of a text that a prediction names, at most.
N_RANKED = 10
# Hex digits of a file's hash in the version of its model.
DIGITS = 8
# One of these differs in another file that took its place.
STAMP = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
OUTSIDE = "O"


@dataclass(frozen=True)
class Span:
    """A labelled span of a text, in characters; `confidence` is None where the model has no probabilities."""

    start: int
    end: int
    label: str
    confidence: float | None = None


class Marked(NamedTuple):
    """A text, its spans, and where its words begin and end."""

    text: str
    spans: Sequence[Span]
    places: Sequence[tuple[int, int]]


class Learnt(NamedTuple):
    """How many texts were learnt, and the version of the model that has learnt them."""

    n: int
    version: str


@dataclass(frozen=True)
class Prediction:
    """The output for one text.

    Attributes
    ----------
    text : str
    confidence : float or None
        The probability of the whole output; None where the model has none.
    spans : tuple of Span
        Of a sequence.
    label : str or None
        Of a text as a whole; None for sequences.
    ranked : tuple of (str, float)
        The most probable labels of the text.
    """

    text: str
    confidence: float | None
    spans: tuple[Span, ...] = ()
    label: str | None = None
    ranked: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> dict[str, object]:
        """The prediction as ``POST /predict`` returns it."""
        found: dict[str, object] = {"text": self.text, "confidence": self.confidence}
        if self.label is not None:
            ranked = [{"label": label, "confidence": p} for label, p in self.ranked]
            return {**found, "label": self.label, "labels": ranked}
        return {**found, "spans": [{**vars(span), "text": self.text[span.start : span.end]} for span in self.spans]}


def _opened(path: str) -> tuple[SequenceLabeler | TaxonomyClassifier, str]:
    """The estimator of a model file, and its hash: both again if another file took its place in between."""
    while True:
        before = os.stat(path)
        estimator = load_estimator(path)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]
        after = os.stat(path)
        if all(getattr(before, name) == getattr(after, name) for name in STAMP):
            return estimator, digest


class TextModel:
    """A model file that predicts for texts, and may learn.

    Parameters
    ----------
    path : str
        A `SequenceLabeler` of words alone, or a `TaxonomyClassifier` with a vectorizer.
    learns_to : str, optional
        Where the model is stored after each answer that it has learnt; None: it learns nothing.

    Raises
    ------
    ValueError
        For a model of another task, or one that does not read texts.
    """

    def __init__(self, path: str, learns_to: str | None = None) -> None:
        estimator, self.digest = _opened(path)
        if type(estimator).__name__ not in ("SequenceLabeler", "TaxonomyClassifier"):
            raise ValueError(f"{path}: a {type(estimator).__name__}; texts are for SequenceLabeler, TaxonomyClassifier")
        self.estimator: SequenceLabeler | TaxonomyClassifier = estimator
        self.path, self.learns_to = path, learns_to
        self.is_sequence = type(estimator).__name__ == "SequenceLabeler"
        self.has_chances = estimator.temperature_ is not None
        self.n_learnt = 0
        # The labels of each text of a tool that sends all again, as they came last: by sender and text.
        self._resent: dict[tuple[str, str], Counter[str]] = {}
        self.lock = threading.Lock()
        if not self.is_sequence and not hasattr(estimator, "vectorizer_"):
            raise ValueError(f"{path}: its documents are rows of numbers; texts need a model with a vectorizer")
        if learns_to is not None and self.is_sequence and self._labeler.segments:
            raise ValueError(f"{path}: a model of segments, which predicts here and learns with fit alone")
        self._try()

    def _try(self) -> None:
        """Raise ValueError for a model of columns or of features, which words alone do not have."""
        try:
            self.predict(["structsvm"])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path}: its tokens have more than words: {error}") from error

    @property
    def _labeler(self) -> SequenceLabeler:
        return cast("SequenceLabeler", self.estimator)

    @property
    def _classifier(self) -> TaxonomyClassifier:
        return cast("TaxonomyClassifier", self.estimator)

    @property
    def version(self) -> str:
        """The version that annotation tools are told: of this file, and another one after each answer learnt."""
        return f"structsvm-{self.digest}-{self.n_learnt}"

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        """The outputs for texts."""
        return self.predict_as(texts)[1]

    def predict_as(self, texts: Sequence[str]) -> tuple[str, list[Prediction]]:
        """The version of the model, and its outputs for texts."""
        with self.lock:
            if self.is_sequence:
                return self.version, self._predict_words(texts, [word_spans(text) for text in texts])
            return self.version, self._predict_texts(texts)

    def predict_words(self, text: str, places: Sequence[tuple[int, int]]) -> Prediction:
        """The spans of a text whose words are given by where they begin and end."""
        with self.lock:
            return self._predict_words([text], [places])[0]

    def predict_each_word(self, text: str, places: Sequence[tuple[int, int]]) -> Prediction:
        """The labelled words of a text, each a span of its own, with the probability that the word has this label."""
        with self.lock:
            estimator = self._labeler
            words = [text[a:b] for a, b in places]
            if not words:
                return Prediction(text, None)
            scheme, classes = self._scheme()
            kinds = [_kind(scheme, label) for label in estimator.predict([words])[0]]
            of_classes = np.array([_kind(scheme, label) for label in classes])
            chances: list[float | None] = [None] * len(kinds)
            if self.has_chances:
                rows = estimator.predict_marginals([words])[0]
                chances = [rounded(row[of_classes == kind].sum()) for row, kind in zip(rows, kinds, strict=True)]
            spans = [Span(a, b, kind, p) for (a, b), kind, p in zip(places, kinds, chances, strict=True) if kind]
            return Prediction(text, None, tuple(spans))

    def _scheme(self) -> tuple[Scheme, list[str]]:
        """The scheme of the model's labels, and the labels."""
        classes = [str(label) for label in self.estimator.classes_.tolist()]
        return scheme_of(classes) or Runs(), classes

    def _predict_words(self, texts: Sequence[str], places: Sequence[Sequence[tuple[int, int]]]) -> list[Prediction]:
        X = [[text[a:b] for a, b in own] for text, own in zip(texts, places, strict=True)]
        rows = [k for k, words in enumerate(X) if words]
        found = [Prediction(text, 1.0 if self.has_chances else None) for text in texts]
        if not rows:
            return found
        full, estimator = [X[k] for k in rows], self._labeler
        spans = span_chances(estimator, full) if self.has_chances else estimator.predict_spans(full)
        for k, own, whole in zip(rows, spans, self._whole_chances(full), strict=True):
            at = places[k]
            shown = tuple(
                Span(at[start][0], at[stop - 1][1], str(label), rounded(chance[0]) if chance else None)
                for start, stop, label, *chance in own
            )
            found[k] = Prediction(texts[k], whole, shown)
        return found

    def _whole_chances(self, X: Sequence[Sequence[str]]) -> list[float | None]:
        """The probability of the best labelling of each text."""
        if not self.has_chances:
            return [None] * len(X)
        return [rounded(best[0][1]) for best in self._labeler.predict_kbest(X, 1, probabilities=True)]

    def _predict_texts(self, texts: Sequence[str]) -> list[Prediction]:
        estimator = self._classifier
        if not texts:
            return []
        if not self.has_chances:
            return [
                Prediction(text, None, label=str(own)) for text, own in zip(texts, estimator.predict(texts).tolist())
            ]
        names, found = estimator.classes_.tolist(), []
        for text, row in zip(texts, estimator.predict_proba(texts), strict=True):
            ranked = tuple((str(names[k]), rounded(row[k])) for k in np.argsort(-row, kind="stable")[:N_RANKED])
            found.append(Prediction(text, ranked[0][1], label=ranked[0][0], ranked=ranked))
        return found

    # ---- learning -------------------------------------------------------------------------------

    def teach_labels(self, answers: Sequence[tuple[str, str]], *, senders: Sequence[str] | None = None) -> Learnt:
        """Learn labels of texts, all or none, and store the model. Raises as `teach_spans`."""
        self._check_learns(is_sequence=False)
        with self.lock:
            names = {str(name): name for name in self.estimator.classes_.tolist()}
            self._check_known([label for _, label in answers], names)
            X, y = [text for text, _ in answers], [names[label] for _, label in answers]
            return self._learn(X, y, senders)

    def teach_spans(self, answers: Sequence[Marked], *, senders: Sequence[str] | None = None) -> Learnt:
        """Learn the spans of texts, all or none, and store the model; a span that cuts a word has it whole.

        A text without words teaches nothing, and is not counted.

        Parameters
        ----------
        answers : sequence of Marked
        senders : sequence of str, optional
            Whose answer each is, where earlier ones come again each time, as from INCEpTION. Only those are learnt that
            differ from the last that this sender had for the text.

        Raises
        ------
        ValueError
            For a label that the model does not have, overlapping spans, or a model that was not opened to learn.
        OSError
            If the model cannot be stored; it is then as it was before.
        """
        self._check_learns(is_sequence=True)
        with self.lock:
            scheme, classes = self._scheme()
            parts = [scheme.part(label) for label in classes]
            known = {part.kind for part in parts if part is not None}
            X: list[list[str]] = []
            y: list[list[str | None]] = []
            if senders is not None:
                senders = [sender for sender, answer in zip(senders, answers, strict=True) if answer.places]
            for text, spans, places in answers:
                self._check_known([span.label for span in spans], known)
                chunks = in_words(spans, places)
                if places:
                    X.append([text[a:b] for a, b in places])
                    # A model whose training words all had labels cannot say that a word has none: it may have any.
                    tags = scheme.labels(chunks, len(places))
                    y.append([tag if tag in classes or tag != OUTSIDE else None for tag in tags])
            return self._learn(X, y, senders)

    def _learn(self, X: Sequence[object], y: Sequence[object], senders: Sequence[str] | None) -> Learnt:
        """Train a copy and store it; it takes the model's place once it is stored."""
        sent: dict[tuple[str, str], Counter[str]] = {}
        if senders is not None:
            X, y, sent = self._new(X, y, senders)
        if X:
            estimator = copy.deepcopy(self.estimator)
            estimator.partial_fit(X, y)
            if self.learns_to is not None:
                estimator.save(self.learns_to)
            self.estimator = estimator
            self.n_learnt += len(X)
        self._resent |= sent
        return Learnt(len(X), self.version)

    def _new(
        self, X: Sequence[object], y: Sequence[object], senders: Sequence[str]
    ) -> tuple[list[object], list[object], dict[tuple[str, str], Counter[str]]]:
        """The examples that their sender's last request did not have, or not as often; and the labels of all texts."""
        sent: dict[tuple[str, str], Counter[str]] = {}
        found = []
        for x, own, sender in zip(X, y, senders, strict=True):
            key, label = (sender, repr(x)), repr(own)
            labels = sent.setdefault(key, Counter())
            labels[label] += 1
            if labels[label] > self._resent.get(key, Counter())[label]:
                found.append((x, own))
        return [x for x, _ in found], [own for _, own in found], sent

    def _check_learns(self, *, is_sequence: bool) -> None:
        if self.learns_to is None:
            raise ValueError("this server only predicts: start it with --learn FILE to have it learn")
        if is_sequence != self.is_sequence:
            raise ValueError(f"the model has {'spans of words' if self.is_sequence else 'one label per text'}")

    def _check_known(self, labels: Sequence[str], known: object) -> None:
        names = set(known) if isinstance(known, (set, dict)) else set()
        unknown = sorted(set(labels) - names)
        if unknown:
            raise ValueError(f"the model does not know the labels {', '.join(unknown):.200}: train it with them first")


def _kind(scheme: Scheme, label: str) -> str:
    """The type that a label names; none outside."""
    part = scheme.part(label)
    return "" if part is None else part.kind


def rounded(p: float) -> float:
    """A probability as JSON has it."""
    return round(float(p), 6)


def in_words(spans: Sequence[Span], places: Sequence[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """Spans of characters as spans of words, each of all words that it touches; words ascend.

    Raises
    ------
    ValueError
        For spans without a word, or two that touch one word.
    """
    found: list[tuple[int, int, str]] = []
    starts, ends = [a for a, _ in places], list(accumulate((b for _, b in places), max))
    for span in sorted(spans, key=lambda span: span.start):
        first, stop = bisect_right(ends, span.start), bisect_left(starts, span.end)
        while stop > first and places[stop - 1][1] <= span.start:
            stop -= 1
        if first >= stop:
            raise ValueError(f"no word stands at characters {span.start} to {span.end}")
        if found and first < found[-1][1]:
            raise ValueError(f"two spans share the word at character {places[first][0]}")
        found.append((first, stop, span.label))
    return found
