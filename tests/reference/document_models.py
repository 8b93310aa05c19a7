"""Classifiers of texts for the runtime in C, for the tests that compare it with Python."""

from functools import cache

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from structsvm.datasets import make_products
from structsvm.tasks import TaxonomyClassifier

X, Y, TAXONOMY = make_products(150, random_state=0)
# Texts with what tokenizers see: cases, marks, blanks of several kinds, letters beyond the first plane, long runs.
ODD = [
    "", "-", "...", "Straße STRASSE", "İstanbul naïve ÀÉÎ", "ΟΔΥΣΣΕΥΣ ΑΣ.", "x² ٣٤ 한국 ⅷ",
    "e\u0301tude (5th) 60611-1234",
    "a b c  d\n\ne\tf \u00a0 g", "\ud800 lone", "_x_ __ a_b", "the red shoes and the tent " * 99,
    "\U0001d400\U0001d401 ok", "tent   bag", "\x1c\x1d x \x85 y", "running  shoes\u2003running", "I'm", "a" * 300,
]  # fmt: skip
SETS = np.random.default_rng(0).normal(size=(len(set(Y.tolist())), 7)).astype(np.float32)
# Each label has a few of many attributes: words of many labels have rows of more than 255 weights.
MANY = (np.random.default_rng(1).random((len(SETS), 300)) < 0.15).astype(np.float32)
TREE = {"taxonomy": TAXONOMY}
# A vectorizer, and the classifier's parameters.
MODELS = {
    "tfidf": (lambda: TfidfVectorizer(), TREE),
    "logarithms of pairs": (lambda: TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), TREE),
    "float32, sums": (lambda: TfidfVectorizer(dtype=np.float32, norm="l1", sublinear_tf=True), TREE),
    "float32": (lambda: TfidfVectorizer(dtype=np.float32), TREE),
    "no norm": (lambda: TfidfVectorizer(norm=None, use_idf=False, sublinear_tf=True), TREE),
    "counts": (lambda: CountVectorizer(), TREE),
    "binary": (lambda: CountVectorizer(binary=True, lowercase=False, token_pattern=r"(?u)\b\w+\b"), TREE),
    "blanks": (lambda: TfidfVectorizer(token_pattern=r"\S+", ngram_range=(2, 3)), TREE),
    "letters": (lambda: TfidfVectorizer(analyzer="char", ngram_range=(1, 3)), TREE),
    "letters of words": (lambda: CountVectorizer(analyzer="char_wb", ngram_range=(1, 9), max_features=500), TREE),
    "stop words": (lambda: TfidfVectorizer(stop_words="english", ngram_range=(1, 2)), TREE),
    "no taxonomy": (lambda: TfidfVectorizer(), {}),
    "normalized": (lambda: TfidfVectorizer(), {**TREE, "attributes": "normalized"}),
    "log loss": (lambda: TfidfVectorizer(), {**TREE, "attributes": "flat", "loss": "log"}),
    "attributes of numbers": (lambda: CountVectorizer(), {"attributes": SETS, "fit_intercept": False}),
    "many attributes": (lambda: CountVectorizer(), {"attributes": MANY}),
    "lists of weights": (lambda: TfidfVectorizer(ngram_range=(1, 2)), {**TREE, "max_weights": 4000}),
    "perceptron": (lambda: CountVectorizer(), {**TREE, "solver": "perceptron", "C": None}),
}
# Compact models: of which model, and with how many bits.
COMPACT = {"tfidf, 8 bits": ("tfidf", 8), "lists, 8 bits": ("lists of weights", 8), "counts, 16 bits": ("counts", 16)}
MODELS |= {name: MODELS[whole] for name, (whole, _) in COMPACT.items()}


def fitted(name, n=None):
    """A model of the first n texts, and of odd ones."""
    return fitted_to(name, n)


@cache
def fitted_to(name, n):
    if name in COMPACT:
        whole, bits = COMPACT[name]
        return fitted(whole, n).compact(bits=bits, tolerance=0.1, data=(X[:n:3], Y[:n:3]))
    make, params = MODELS[name]
    params = {"C": 1.0, "max_iter": 3, "random_state": 0, **params}
    texts, labels = X[:n] + ODD, [*Y.tolist()[:n], *Y.tolist()[: len(ODD)]]
    if isinstance(params.get("attributes"), np.ndarray):
        params["attributes"] = params["attributes"][: len(set(labels))]
    return TaxonomyClassifier(vectorizer=make(), **params).fit(texts, labels)


@cache
def texts():
    """Texts to classify: other products, and odd ones."""
    return [*make_products(100, typos=0.1, random_state=1)[0], *ODD]
