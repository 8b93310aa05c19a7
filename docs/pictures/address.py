"""One address, its labellings, and their scores by a small model: the example of the first pictures."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from structsvm.datasets import make_addresses
from structsvm.tasks import SequenceLabeler

KEPT = ("number", "street", "city", "state")
WORDS = ("12", "Salem", "Mill", "Ashford", "VT")
TRUE = ("number", "street", "street", "city", "state")
CELLS = 1024  # labellings of five words with four labels each


class Address(NamedTuple):
    """A model's view of `WORDS`: scores of labels (5, 4), of pairs (4, 4), and all labellings with theirs."""

    labels: list[str]
    emissions: Any
    transitions: Any
    labellings: list[tuple[list[str], float]]


def attributes(word: str) -> list[str]:
    """Three attributes of a word."""
    form = "digits" if word.isdigit() else "capital" if word[:1].isupper() else "small"
    return [word, form, "ends in " + word[-2:]]


def data(n: int) -> tuple[list[Any], list[list[str]]]:
    """Simulated addresses, of which the words with one of four labels are kept."""
    X, y = [], []
    for words, labels in zip(*make_addresses(n, random_state=0), strict=True):
        kept = [
            (attributes(word.strip(",.")), label) for word, label in zip(words, labels, strict=True) if label in KEPT
        ]
        if len(kept) > 2:
            X.append([token for token, _ in kept])
            y.append([label for _, label in kept])
    return X, y


@cache
def address(n_addresses: int = 60) -> Address:
    """Train on some addresses, and take the scores apart; they add up to those of the library."""
    X, y = data(400)
    model = SequenceLabeler(C=0.1, loss="hamming", random_state=0).fit(X[:n_addresses], y[:n_addresses])
    tokens = [attributes(word) for word in WORDS]
    labels = [str(label) for label in model.classes_]
    weights = model.state_features_
    emissions = np.array([[sum(weights.get((a, c), 0.0) for a in token) for c in labels] for token in tokens])
    transitions = model.transition_
    labellings = model.predict_kbest([tokens], k=CELLS)[0]
    for first, label in enumerate(labels):  # the weight of beginning with a label
        of_label = next((found, score) for found, score in labellings if found[0] == label)
        emissions[0, first] += of_label[1] - total(labels, emissions, transitions, of_label[0])
    if any(abs(total(labels, emissions, transitions, found) - score) > 1e-4 for found, score in labellings):
        raise ValueError("the scores of words and pairs do not add up to those of the labellings")
    return Address(labels, emissions, transitions, labellings)


def total(labels: list[str], emissions: Any, transitions: Any, found: Any) -> float:
    """The score of a labelling: a term for each word and for each pair of neighbours."""
    ids = [labels.index(label) for label in found]
    return float(emissions[range(len(ids)), ids].sum() + transitions[ids[:-1], ids[1:]].sum())


def wrong(found: Any, true: Any = TRUE) -> int:
    """The number of wrong labels."""
    return sum(a != b for a, b in zip(found, true, strict=True))
