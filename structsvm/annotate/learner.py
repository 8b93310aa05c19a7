"""Learners of the page: one answer in, suggestions out, and the text whose answer would help most.

A learner wraps one estimator. Trainings here take milliseconds: below `ALWAYS` answers all of them are trained on anew,
beyond that each answer is taught (`teach` of the estimators), and all are trained on anew whenever their number has
grown by a tenth. What to ask next is the estimators' own `query`, of a pool of texts.
"""

from __future__ import annotations

import importlib
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm.annotate.answers import Answer, tags_of
from structsvm.annotate.inputs import Item
from structsvm.annotate.pairs import pair_text
from structsvm.parameters import printable
from structsvm.serve.chances import span_chances

if TYPE_CHECKING:
    from structsvm.tasks import Not, Pool, SequenceLabeler, TaxonomyClassifier
    from structsvm.tasks.common.inspection.weights import Contribution

# Suggestions begin with this many examples of each label, or with so many answers in all.
LEAST_OF_EACH, LEAST_ANSWERS = 2, 10
ALWAYS, GROWTH = 300, 1.1
# Words of a text that are compared for the next question, at most.
MAX_WORDS = 200
N_REASONS = 12
# Runs from the top of a class to its leaves are written with this between.
PATHS = " > "
# With some ten to two hundred answers, what is right about as often as it is probable; texts have rows of length 1.
C_OF_SPANS, C_OF_TEXTS = 10.0, 100.0

Example = tuple[Item, Answer]
Estimator = TypeVar("Estimator", "SequenceLabeler", "TaxonomyClassifier")


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Within it, warnings become notes, which the page shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: notes.append(str(message))
        yield
    notes[:] = dict.fromkeys(notes)


class Learner(ABC, Generic[Estimator]):
    """A model that learns answer by answer.

    Attributes
    ----------
    n_trained : int
        Answers that the model has been trained on.
    notes : list of str
        Warnings since the last training began.
    n_compared : int
        Texts that are compared for the next question.
    """

    n_compared: ClassVar[int]

    def __init__(self) -> None:
        preload()
        self.estimator: Estimator | None = None
        self.n_trained, self._n_anew = 0, 0
        self.notes: list[str] = []
        self._own: Estimator = self._made()
        self._pools: dict[str, tuple[Sequence[Item], Pool]] = {}

    @property
    def is_ready(self) -> bool:
        """Whether there is a model."""
        return self.estimator is not None

    def learn(self, examples: Sequence[Example]) -> None:
        """Train on all answers anew, once there are enough of them."""
        labels = Counter(label for _, answer in examples for label in answer.labels)
        enough = labels and (min(labels.values()) >= LEAST_OF_EACH or len(examples) >= LEAST_ANSWERS)
        self.estimator = None
        self.n_trained = self._n_anew = len(examples)
        self.notes.clear()
        if enough and self._can_learn(labels):
            with noting(self.notes):
                self._train(self._own, examples)
            self.estimator = self._own

    def teach(self, example: Example, examples: Sequence[Example]) -> None:
        """Learn one more answer; `examples` are all of them, this one last."""
        n, estimator = len(examples), self.estimator
        if estimator is None or n <= ALWAYS or n >= GROWTH * self._n_anew:
            self.learn(examples)
            return
        self.n_trained = n
        self.notes.clear()
        with noting(self.notes):
            self._step(estimator, example)

    def most_useful(self, items: Sequence[Item], left: Sequence[int], by: str) -> int:
        """The index of the item, among those that are left, whose answer would teach most.

        `items` of one annotator are encoded once, as long as they are the same object.
        """
        estimator = self._fitted()
        with noting(self.notes):
            if by not in self._pools or self._pools[by][0] is not items:
                from structsvm.tasks import Pool

                self._pools[by] = items, Pool(estimator, [self._input_of(item) for item in items])
            pool = self._pools[by][1]
            pool.keep(np.asarray(left))
            return self._query(estimator, pool)

    def _fitted(self) -> Estimator:
        if self.estimator is None:
            raise ValueError("the model has not seen enough answers yet")
        return self.estimator

    @abstractmethod
    def suggest(self, item: Item) -> dict[str, object]:
        """The model's answer for an item, with probabilities."""

    @abstractmethod
    def why(self, item: Item) -> list[dict[str, object]]:
        """Reasons of the model's answer: features with labels and what they add to its lead over the runner-up."""

    @abstractmethod
    def scores(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Per answer the share of it that the model gets right."""

    @abstractmethod
    def final(self, examples: Sequence[Example]) -> bytes:
        """A model file, of a model whose parameters are chosen on held-out answers."""

    @abstractmethod
    def _made(self) -> Estimator:
        """An estimator that has learnt nothing."""

    @abstractmethod
    def _can_learn(self, labels: Counter[str]) -> bool: ...

    @abstractmethod
    def _train(self, estimator: Estimator, examples: Sequence[Example]) -> None: ...

    @abstractmethod
    def _step(self, estimator: Estimator, example: Example) -> None: ...

    @abstractmethod
    def _input_of(self, item: Item) -> list[str] | str: ...

    @abstractmethod
    def _query(self, estimator: Estimator, pool: Pool) -> int: ...


class SpanLearner(Learner["SequenceLabeler"]):
    """Spans of words, by a conditional random field over tags."""

    n_compared = 2000

    def suggest(self, item: Item) -> dict[str, object]:
        with noting(self.notes):
            (spans,) = span_chances(self._fitted(), [item.words])
        return {"spans": [[start, stop, label, round(p, 4)] for start, stop, label, p in spans]}

    def why(self, item: Item) -> list[dict[str, object]]:
        return reasons(self._fitted().explain(item.words).contributions)

    def scores(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        with noting(self.notes):
            predicted = self._fitted().predict([item.words for item, _ in examples])
        true = [known_tags(answer, len(own)) for (_, answer), own in zip(examples, predicted)]
        pairs = [[agrees(a, b) for a, b in zip(*both) if a is not None] for both in zip(true, predicted)]
        return np.array([np.mean(own) if own else 1.0 for own in pairs])

    def final(self, examples: Sequence[Example]) -> bytes:
        from structsvm.tasks import SequenceLabeler

        return saved(SequenceLabeler(constraints="bio", random_state=0).fit(*self._sequences(examples)))

    def _made(self) -> SequenceLabeler:
        from structsvm.tasks import SequenceLabeler

        return SequenceLabeler(C=C_OF_SPANS, loss="log", templates="rich", constraints="bio", random_state=0)

    def _can_learn(self, labels: Counter[str]) -> bool:
        return True

    def _train(self, estimator: SequenceLabeler, examples: Sequence[Example]) -> None:
        estimator.fit(*self._sequences(examples))

    def _step(self, estimator: SequenceLabeler, example: Example) -> None:
        item, answer = example
        estimator.teach(item.words, known_tags(answer, len(item.words)))

    def _input_of(self, item: Item) -> list[str]:
        return item.words[:MAX_WORDS]

    def _query(self, estimator: SequenceLabeler, pool: Pool) -> int:
        """The one of which most of its words are expected to be wrong."""
        return int(estimator.query(pool, strategy="risk", cost=1.0)[0])

    @staticmethod
    def _sequences(examples: Iterable[Example]) -> tuple[list[list[str]], list[list[str | Not | None]]]:
        """Words and tags; a mark that leaves none of the tags so far says nothing yet."""
        from structsvm.tasks import Not

        X, y = [], []
        for item, answer in examples:
            X.append(item.words)
            y.append(known_tags(answer, len(X[-1])))
        named = {tag for tags in y for tag in tags if isinstance(tag, str)}
        return X, [[None if isinstance(t, Not) and named <= t.labels else t for t in tags] for tags in y]


class TextLearner(Learner["TaxonomyClassifier"]):
    """One label for a text, or for a pair of texts."""

    n_compared = 300

    def suggest(self, item: Item) -> dict[str, object]:
        estimator = self._fitted()
        (row,) = estimator.predict_proba([text_of(item)])
        best = np.argsort(-row)[:5]
        names = estimator.classes_.tolist()
        return {"label": names[best[0]], "ranked": [[names[k], round(float(row[k]), 4)] for k in best]}

    def why(self, item: Item) -> list[dict[str, object]]:
        return reasons(self._fitted().explain(text_of(item)).contributions)

    def scores(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        predicted = self._fitted().predict([text_of(item) for item, _ in examples]).tolist()
        return np.array([float(agrees(known_label(answer), own)) for (_, answer), own in zip(examples, predicted)])

    def final(self, examples: Sequence[Example]) -> bytes:
        own = self._made()
        own.C = "auto"
        self._train(own, examples)
        return saved(own)

    def _made(self) -> TaxonomyClassifier:
        from structsvm.tasks import TaxonomyClassifier

        return TaxonomyClassifier(C=C_OF_TEXTS, loss="log", random_state=0)

    def _can_learn(self, labels: Counter[str]) -> bool:
        return len(labels) > 1

    def _train(self, estimator: TaxonomyClassifier, examples: Sequence[Example]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        is_pair = examples[0][0].other is not None
        analyzer = {"analyzer": "word"} if is_pair else {"analyzer": "char_wb", "ngram_range": (2, 4)}
        estimator.vectorizer = TfidfVectorizer(sublinear_tf=True, **analyzer)
        estimator.taxonomy = PATHS if any(PATHS in label for _, one in examples for label in one.labels) else None
        named = {label for _, answer in examples for label in answer.labels}
        told = [(item, answer) for item, answer in examples if leaves_some(answer, named)]
        estimator.fit([text_of(item) for item, _ in told], [known_label(answer) for _, answer in told])

    def _step(self, estimator: TaxonomyClassifier, example: Example) -> None:
        item, answer = example
        if leaves_some(answer, {*estimator.classes_.tolist()}):
            estimator.teach(text_of(item), known_label(answer))

    def _input_of(self, item: Item) -> str:
        return text_of(item)

    def _query(self, estimator: TaxonomyClassifier, pool: Pool) -> int:
        """The one whose best label is least probable."""
        return int(estimator.query(pool, strategy="confidence")[0])


def preload() -> None:
    """Import what trains, which takes a second, before the first question instead of after an answer."""
    for name in ("structsvm.tasks.sequence.estimator", "structsvm.tasks.taxonomy.estimator"):
        importlib.import_module(name)


def known_tags(answer: Answer, n_words: int) -> list[str | Not | None]:
    """Tags of the words as far as an answer tells them; see `tags_of`."""
    from structsvm.tasks import Not

    tags: list[str | Not | None] = [*tags_of(answer, n_words)]
    for start, stop, label in answer.wrong_spans:
        tags[start:stop] = [Not(f"B-{label}", f"I-{label}")] * (stop - start)
    return tags


def known_label(answer: Answer) -> str | Not:
    """The label of a text as far as an answer tells it."""
    from structsvm.tasks import Not

    return Not(*answer.wrong_labels) if answer.label is None else answer.label


def leaves_some(answer: Answer, labels: set[str]) -> bool:
    """Whether an answer leaves any of the labels of texts, which are paths to leaves unless some are above others."""
    inner = {above for label in labels for above in paths_above(label)}
    denied = set(answer.wrong_labels)
    if inner.isdisjoint(labels):
        return answer.label is not None or any(denied.isdisjoint([label, *paths_above(label)]) for label in labels)
    return answer.label is not None or not labels <= denied


def paths_above(label: str) -> list[str]:
    """The paths to what is above a label."""
    parts = label.split(PATHS)
    return [PATHS.join(parts[:n]) for n in range(1, len(parts))]


def agrees(known: str | Not | None, found: str) -> bool:
    """Whether a label is as an answer says, or none of those that it calls wrong."""
    return known == found if isinstance(known, str) else known is None or found not in known.labels


def text_of(item: Item) -> str:
    """The text that a classifier reads."""
    return item.text if item.other is None else pair_text(item.text, item.other)


def saved(estimator: SequenceLabeler | TaxonomyClassifier) -> bytes:
    """The bytes of a model file."""
    file = BytesIO()
    estimator.save(file)
    return file.getvalue()


def reasons(contributions: Sequence[Contribution]) -> list[dict[str, object]]:
    """The heaviest parts of an explanation."""
    return [
        {"feature": printable(part.feature), "label": str(part.label), "value": round(part.value, 4)}
        for part in contributions[:N_REASONS]
    ]
