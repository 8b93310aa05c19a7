"""The choice of C where labels are known in part: by the labels of chunks, which are few beside those outside."""

import numpy as np
import pytest

from structsvm.tasks import SequenceLabeler


def sentences(n, seed, hidden=0.5):
    """Words of which one in six is a name; what is hidden is None."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        is_name = rng.random(8) < 0.16
        X.append([f"Name{rng.integers(40)}" if name else f"word{rng.integers(60)}" for name in is_name])
        y.append([None if rng.random() < hidden else ("B-PER" if name else "O") for name in is_name])
    return X, y


def test_f1_of_known_tokens_in_chunks():
    X, y = sentences(80, 0)
    model = SequenceLabeler(random_state=0, probability=False).fit(X, y)
    assert model.validation_["metric"] == "F1"
    held, examples = model.model_, sentences(30, 1)
    found = held.held_out_scores(held_examples(held, *examples))
    predicted = model.predict(examples[0])
    pairs = [
        [(true, guess) for true, guess in zip(t, p, strict=True) if true is not None]
        for t, p in zip(examples[1], predicted, strict=True)
    ]
    right = [2.0 * sum(true == guess != "O" for true, guess in of) for of in pairs]
    total = [1.0 * sum((true != "O") + (guess != "O") for true, guess in of) for of in pairs]
    assert found.numerator.tolist() == pytest.approx(right) and found.denominator.tolist() == pytest.approx(total)
    assert sum(right) > 0.0


def held_examples(model, X, y):
    """The examples of a trained model."""
    from structsvm.tasks.sequence.model import prepare

    return prepare(SequenceLabeler(random_state=0, probability=False), X, y, before=model)[1]


def test_accuracy_without_chunks():
    X, y = sentences(80, 2)
    y = [[label and {"B-PER": "name", "O": "word"}[label] for label in labels] for labels in y]
    assert SequenceLabeler(random_state=0, probability=False).fit(X, y).validation_["metric"] == "accuracy"
