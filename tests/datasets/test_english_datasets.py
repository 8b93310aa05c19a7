"""Simulated addresses, recipe lines, citations and product titles."""

import numpy as np
import pytest

from structsvm.datasets import make_addresses, make_citations, make_products, make_recipes
from structsvm.metrics import tree_loss
from structsvm.tasks import SequenceLabeler, TaxonomyClassifier

LINES = [make_addresses, make_recipes, make_citations]
MAKERS = [*LINES, make_products]
lines = pytest.mark.parametrize("make", LINES, ids=lambda make: make.__name__)
makers = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def words(X):
    return [word for x in X for word in (x.split() if isinstance(x, str) else x)]


@lines
def test_each_word_has_a_label_and_each_label_occurs(make):
    X, y = make(500, random_state=0)
    assert len(X) == len(y) == 500
    assert all(len(x) == len(labels) > 0 for x, labels in zip(X, y, strict=True))
    names = {label for labels in y for label in labels}
    _, noisy = make(500, noise=1.0, random_state=0)
    assert names == {label for labels in noisy for label in labels}


@makers
def test_a_seed_draws_the_same_data(make):
    first, again, other = (make(20, random_state=seed) for seed in (3, 3, 4))
    assert first[0] == again[0] != other[0]
    assert list(first[1]) == list(again[1])


@makers
def test_typing_errors_are_in_words_alone(make):
    (clean, labels, *_), (mistyped, same, *_) = (make(300, typos=typos, random_state=1) for typos in (0.0, 1.0))
    assert list(labels) == list(same)
    pairs = list(zip(words(clean), words(mistyped), strict=True))
    long = [len(word) >= 4 and word.isalpha() for word, _ in pairs]
    changed = [a != b for a, b in pairs]
    assert not any(new and not old for new, old in zip(changed, long, strict=True))
    assert sum(changed) > 0.9 * sum(long) > 0  # equal letters may be exchanged
    assert all(a[0] == b[0] for a, b in pairs)


@makers
def test_noise_is_the_share_of_labels_drawn_at_random(make):
    (X, clean, *_), (same, noisy, *_) = (make(1500, noise=noise, random_state=2) for noise in (0.0, 0.3))
    assert same == X
    right, drawn = (np.concatenate([np.atleast_1d(labels) for labels in y]) for y in (clean, noisy))
    assert np.mean(right != drawn) == pytest.approx(0.3 * (1 - 1 / len(set(right))), abs=0.04)


@makers
def test_ambiguous_words_make_it_harder(make):
    plain, ambiguous = (make(400, ambiguity=share, typos=0.0, random_state=5) for share in (0.0, 1.0))
    fields = [set() for _ in range(2)]
    for seen, (X, y, *_) in zip(fields, (plain, ambiguous), strict=True):
        for x, labels in zip(X, y, strict=True):
            tokens, names = (x.split(), [str(labels)] * len(x.split())) if isinstance(x, str) else (x, labels)
            seen.update((word.strip(".,:").lower(), label) for word, label in zip(tokens, names, strict=True))
    shares = [len(seen) / len({word for word, _ in seen}) for seen in fields]
    assert shares[1] > shares[0]


@makers
@pytest.mark.parametrize(("name", "value"), [("ambiguity", 1.5), ("typos", -0.1), ("noise", 2), ("n", 0)])
def test_bad_parameters(make, name, value):
    first = make.__code__.co_varnames[0]
    with pytest.raises(
        ValueError, match=f"The '{first if name == 'n' else name}' parameter of {make.__name__} must be"
    ):
        make(**{first if name == "n" else name: value})


@lines
def test_the_fields_are_learnt(make):
    (X, y), (X_test, y_test) = make(200, random_state=0), make(100, random_state=1)
    labeler = SequenceLabeler(C=1.0, tol=0.1, probability=False, random_state=0).fit(X, y)
    assert labeler.score(X_test, y_test) > 0.9


def test_the_categories_are_learnt_from_words():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    (X, y, taxonomy), (X_test, y_test, _) = (make_products(400, random_state=seed) for seed in (0, 1))
    classifier = TaxonomyClassifier(taxonomy, C=1.0, vectorizer=text.TfidfVectorizer(), random_state=0).fit(X, y)
    assert tree_loss(y_test, classifier.predict(X_test), taxonomy) < 0.2
    assert {leaf.split("/")[0] for leaf in y} == {"Electronics", "Home", "Clothing", "Sports"}
