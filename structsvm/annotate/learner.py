"""Learners of the page: one answer in, suggestions out, and the text whose answer would help most.

A learner wraps one estimator. Trainings here take milliseconds: below `ALWAYS` answers all of them are trained on anew,
beyond that each answer is taught (`teach` of the estimators), and all are trained on anew whenever their number has
grown by a tenth.
"""

from __future__ import annotations

import importlib
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from structsvm.annotate.answers import Answer, tags_of
from structsvm.annotate.inputs import Item
from structsvm.annotate.pairs import pair_text
from structsvm.parameters import printable
from structsvm.serve.chances import span_chances

if TYPE_CHECKING:
    from structsvm.tasks import SequenceLabeler, TaxonomyClassifier
    from structsvm.tasks.common.inspection.weights import Contribution

# Suggestions begin with this many examples of each label, or with so many answers in all.
LEAST_OF_EACH, LEAST_ANSWERS = 2, 10
ALWAYS, GROWTH = 300, 1.1
# Texts that are compared for the next question, and at most so many words of each.
N_COMPARED, MAX_WORDS = 300, 200
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
    notes.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: notes.append(str(message))
        yield


class Learner(ABC, Generic[Estimator]):
    """A model that learns answer by answer.

    Attributes
    ----------
    n_trained : int
        Answers that the model has been trained on.
    notes : list of str
        Warnings of the last training.
    """

    def __init__(self) -> None:
        self.estimator: Estimator | None = None
        self.n_trained, self._n_anew = 0, 0
        self.notes: list[str] = []

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
        if enough and self._can_learn(labels):
            with noting(self.notes):
                self.estimator = self._trained(examples)

    def teach(self, example: Example, examples: Sequence[Example]) -> None:
        """Learn one more answer; `examples` are all of them, this one last."""
        n, estimator = len(examples), self.estimator
        if estimator is None or n <= ALWAYS or n >= GROWTH * self._n_anew:
            self.learn(examples)
            return
        self.n_trained = n
        with noting(self.notes):
            self._step(estimator, example)

    def least_certain(self, items: Sequence[Item]) -> int:
        """The index of the item whose best output is least probable, per word."""
        estimator = self._fitted()
        with noting(self.notes):
            return int(self._certainties(estimator, items).argmin())

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
    def _can_learn(self, labels: Counter[str]) -> bool: ...

    @abstractmethod
    def _trained(self, examples: Sequence[Example]) -> Estimator: ...

    @abstractmethod
    def _step(self, estimator: Estimator, example: Example) -> None: ...

    @abstractmethod
    def _certainties(self, estimator: Estimator, items: Sequence[Item]) -> NDArray[np.float64]: ...


class SpanLearner(Learner["SequenceLabeler"]):
    """Spans of words, by a conditional random field over tags."""

    def __init__(self) -> None:
        super().__init__()
        preload()

    def suggest(self, item: Item) -> dict[str, object]:
        with noting(self.notes):
            (spans,) = span_chances(self._fitted(), [item.words])
        return {"spans": [[start, stop, label, round(p, 4)] for start, stop, label, p in spans]}

    def why(self, item: Item) -> list[dict[str, object]]:
        return reasons(self._fitted().explain(item.words).contributions)

    def scores(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        with noting(self.notes):
            predicted = self._fitted().predict([item.words for item, _ in examples])
        true = [tags_of(answer, len(own)) for (_, answer), own in zip(examples, predicted)]
        pairs = [[a == b for a, b in zip(*both) if a is not None] for both in zip(true, predicted)]
        return np.array([np.mean(own) if own else 1.0 for own in pairs])

    def final(self, examples: Sequence[Example]) -> bytes:
        from structsvm.tasks import SequenceLabeler

        return saved(SequenceLabeler(constraints="bio", random_state=0).fit(*self._sequences(examples)))

    def _can_learn(self, labels: Counter[str]) -> bool:
        return True

    def _trained(self, examples: Sequence[Example]) -> SequenceLabeler:
        from structsvm.tasks import SequenceLabeler

        own = SequenceLabeler(C=C_OF_SPANS, loss="log", templates="rich", constraints="bio", random_state=0)
        return own.fit(*self._sequences(examples))

    def _step(self, estimator: SequenceLabeler, example: Example) -> None:
        item, answer = example
        estimator.teach(item.words, tags_of(answer, len(item.words)))

    def _certainties(self, estimator: SequenceLabeler, items: Sequence[Item]) -> NDArray[np.float64]:
        marginals = estimator.predict_marginals([item.words[:MAX_WORDS] for item in items])
        return np.array([own.max(axis=1).mean() for own in marginals])

    @staticmethod
    def _sequences(examples: Iterable[Example]) -> tuple[list[list[str]], list[list[str | None]]]:
        X, y = [], []
        for item, answer in examples:
            X.append(item.words)
            y.append(tags_of(answer, len(X[-1])))
        return X, y


class TextLearner(Learner["TaxonomyClassifier"]):
    """One label for a text, or for a pair of texts."""

    def __init__(self) -> None:
        super().__init__()
        preload()

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
        return np.array([float(answer.label == own) for (_, answer), own in zip(examples, predicted)])

    def final(self, examples: Sequence[Example]) -> bytes:
        return saved(self._trained(examples, C="auto"))

    def _can_learn(self, labels: Counter[str]) -> bool:
        return len(labels) > 1

    def _trained(self, examples: Sequence[Example], C: float | Literal["auto"] = C_OF_TEXTS) -> TaxonomyClassifier:
        from sklearn.feature_extraction.text import TfidfVectorizer

        from structsvm.tasks import TaxonomyClassifier

        is_pair = examples[0][0].other is not None
        analyzer = {"analyzer": "word"} if is_pair else {"analyzer": "char_wb", "ngram_range": (2, 4)}
        labels = [str(answer.label) for _, answer in examples]
        own = TaxonomyClassifier(
            PATHS if any(PATHS in label for label in labels) else None,
            C=C,
            loss="log",
            vectorizer=TfidfVectorizer(sublinear_tf=True, **analyzer),
            random_state=0,
        )
        return own.fit([text_of(item) for item, _ in examples], labels)

    def _step(self, estimator: TaxonomyClassifier, example: Example) -> None:
        item, answer = example
        estimator.teach(text_of(item), str(answer.label))

    def _certainties(self, estimator: TaxonomyClassifier, items: Sequence[Item]) -> NDArray[np.float64]:
        return np.asarray(estimator.predict_proba([text_of(item) for item in items]).max(axis=1))


def preload() -> None:
    """Import what trains, which takes a second, before the first question instead of after an answer."""
    for name in ("structsvm.tasks.sequence.estimator", "structsvm.tasks.taxonomy.estimator"):
        importlib.import_module(name)


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
