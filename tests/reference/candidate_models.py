"""Classifiers learnt from candidates for the runtime in C, for the tests that compare it with Python."""

import warnings
from functools import cache

import document_models
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from structsvm.tasks import AmbiguousClassifier

texts = document_models.texts

# A vectorizer, and the classifier's parameters.
TEXTS = {
    "tfidf": (lambda: TfidfVectorizer(sublinear_tf=True), {}),
    "counts": (lambda: CountVectorizer(ngram_range=(1, 2)), {"loss": "log", "fit_intercept": False}),
    "float32": (lambda: TfidfVectorizer(dtype=np.float32), {"loss": "mean"}),
    "letters": (lambda: CountVectorizer(analyzer="char_wb", ngram_range=(1, 3)), {"solver": "passive_aggressive"}),
}  # fmt: skip
# Rows of numbers, and the parameters.
ROWS = {
    "dense": (lambda: dense(), {}),
    "dense with outliers": (lambda: far(dense()), {"loss": "log"}),
    "dense as they are": (lambda: dense(), {"standardize": False}),
    "sparse": (lambda: sparse(), {}),
    "sparse with large columns": (lambda: large(sparse()), {"loss": "log", "fit_intercept": False}),
}
# Compact models: of which model, and with how many bits.
COMPACT = {"tfidf, 8 bits": ("tfidf", 8), "sparse, 16 bits": ("sparse", 16), "dense, 32 bits": ("dense", 32)}
TEXTS["tfidf, 8 bits"] = TEXTS["tfidf"]
ROWS |= {name: ROWS[whole] for name, (whole, _) in COMPACT.items() if whole in ROWS}


def labels_of(n):
    rng = np.random.default_rng(1)
    return [f"c{k}" for k in rng.integers(0, 6, n)]


def bags_of(labels, seed=0):
    """Each label with another one, but for every third."""
    rng = np.random.default_rng(seed)
    others = sorted(set(labels))
    return [{y} if i % 3 == 0 else {y, others[rng.integers(len(others))]} for i, y in enumerate(labels)]


def dense():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 9))
    rows = centres[[int(y[1:]) for y in labels_of(300)]] + 0.4 * rng.normal(size=(300, 9))
    return rows * np.arange(1, 10) ** 3 + 100.0


def far(X):
    X = X.copy()
    X[7, 3] = 1e9
    return X


def sparse():
    rng = np.random.default_rng(0)
    labels = labels_of(300)
    table = np.where(rng.random((300, 60)) < 0.04, rng.normal(size=(300, 60)), 0.0)
    for i, y in enumerate(labels):
        table[i, int(y[1:])] = 1.0 + rng.random()
    return sp.csr_array(table)


def large(X):
    table = X.toarray()
    table[:, 20:25] *= 1e5
    table[9, 3] = -1e7
    return sp.csr_array(table)


@cache
def rows(name):
    return ROWS[name][0]()


def fitted(name, n=None):
    """A classifier, or a pipeline of one behind a vectorizer of n texts; odd columns are not warned of."""
    return fitted_to(name, n)


@cache
def fitted_to(name, n):
    if name in COMPACT:
        return compacted(*COMPACT[name], n)
    make, params = (TEXTS | ROWS)[name]
    model = AmbiguousClassifier(**{"C": 1.0, "max_iter": 4, "random_state": 0, "loss": "pairwise", **params})
    if name in TEXTS:
        return make_pipeline(make(), model).fit(document_models.X[:n], bags_of(document_models.Y.tolist()[:n]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows(name), bags_of(labels_of(300)))


def compacted(name, bits, n):
    """A compact copy of a model."""
    if name in ROWS:
        return fitted(name).compact(bits=bits, tolerance=0.1, data=(rows(name), labels_of(300)))
    whole, labels = fitted(name, n), document_models.Y.tolist()[:n]
    data = whole[0].transform(document_models.X[:n]), bags_of(labels)
    return make_pipeline(whole[0], whole[1].compact(bits=bits, tolerance=0.1, data=data))


def export(name, folder, to="c", n=None):
    """Export a model, of texts with its vectorizer."""
    model = fitted(name, n)
    if name in TEXTS:
        model[-1].export(folder, to, pipeline=model)
    else:
        model.export(folder, to)
