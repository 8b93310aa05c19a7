"""Models that the servers of these tests have."""

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.tasks import SequenceLabeler, TaxonomyClassifier

CLASSES = ["red car", "small dog", "blue car", "big dog", "old car", "old dog"]


@pytest.fixture(scope="module")
def entities(tmp_path_factory):
    """A model of labels in a scheme, with words outside."""
    X = [
        ["Ann", "met", "Bob"],
        ["Bob", "saw", "New", "York"],
        ["She", "likes", "New", "York", "."],
        ["Ann", "slept", "."],
    ] * 3
    y = [["B-P", "O", "B-P"], ["B-P", "O", "B-L", "I-L"], ["O", "O", "B-L", "I-L", "O"], ["B-P", "O", "O"]] * 3
    path = str(tmp_path_factory.mktemp("models") / "entities.model")
    SequenceLabeler(C=10.0, loss="log", constraints="bio", random_state=0).fit(X, y).save(path)
    return path


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("models") / "classes.model")
    labels = [text.split()[1] for text in CLASSES]
    TaxonomyClassifier(C=10.0, loss="log", vectorizer=TfidfVectorizer(), random_state=0).fit(CLASSES, labels).save(path)
    return path
