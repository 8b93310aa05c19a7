"""Kernels for label sequences, by rows of features whose inner products are the kernel's, exactly or nearly.

An oracle has explicit weights. For a kernel of tokens it sees them through a map z with <z(x), z(x')> = k(x, x'):
exactly where the map is finite (all pairs, for a polynomial of second degree; all training tokens, for any kernel, by
the representer theorem), nearly by scikit-learn's kernel approximations.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from common.measure import Clock
from common.report import Table, notes
from sequence.data import FETCH, SEED
from structsvm.datasets import fetch_ocr_letters
from structsvm.features.columns import read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import token_accuracy
from structsvm.tasks import SequenceLabeler
from svmstruct.table3 import ATOMS

WORDS, TEST_WORDS, SENTENCES, TEST_SENTENCES, QUICK = 250, 1000, 300, 500, 40
COMPONENTS, QUICK_COMPONENTS = (250, 1000), (50,)
JUDGED = 500  # test tokens whose kernel values with all training tokens are compared
COLUMNS = {
    "kernel": ("kernel", ""),
    "rows": ("rows of a token", ""),
    "n": ("their length", "d"),
    "off": ("kernel error %", ".2f"),
    "C": ("C", "g"),
    "primal": ("primal", ".2f"),
    "error": ("test error %", ".2f"),
    "cpu_map": ("rows, CPU s", ".2f"),
    "cpu": ("training, CPU s", ".2f"),
}
NOTES = """
    Rows go to SequenceLabeler(loss="hamming", C=C): exact inference. C: what C="auto" chooses on the training part for
    the exact rows of a kernel, then that for its other rows, so that their primals are of one problem.

    Kernel error: |K - ZZ'| / |K| in the Frobenius norm, K the kernel of {} test tokens with all training tokens.
    Test error: tokens with a wrong label.

    Exact rows: all pairs of features, with the kernel's factors; or, by Nystroem's method, one number per
    training token, which is the kernel machine itself. Nystroem, sketch (PolynomialCountSketch), Fourier (RBFSampler):
    of scikit-learn, seed 0.
"""


def run(options):
    for make in (letters, entities):
        yield make(options.quick)


# ---- the data sets -------------------------------------------------------------------------------


def letters(quick):
    data = fetch_ocr_letters()
    rng = np.random.default_rng(SEED)
    train, test = (rng.permutation(np.flatnonzero(chosen)) for chosen in (data.folds == 0, data.folds != 0))
    train, test = train[: QUICK if quick else WORDS], test[: QUICK if quick else TEST_WORDS]
    X, Z = ([np.asarray(data.X[i], dtype=np.float64) for i in part] for part in (train, test))
    y, gold = ([data.y[i] for i in part] for part in (train, test))
    rows = np.concatenate(X)
    gamma = 1.0 / (rows.shape[1] * rows.var())
    poly = {"degree": 2, "gamma": gamma, "coef0": 1.0}
    few = QUICK_COMPONENTS if quick else COMPONENTS
    ways = [("linear", linear_kernel, "as they are", None)]
    ways += [("polynomial", lambda a, b: polynomial_kernel(a, b, **poly), "all pairs, exact", PairFeatures(gamma))]
    ways += [(None, None, "Nystroem", Nystroem(kernel="polynomial", **poly, n_components=n)) for n in few]
    ways += [(None, None, "sketch", PolynomialCountSketch(**poly, n_components=n)) for n in few]
    rbf = [*((n, "Nystroem") for n in few), (len(rows), "Nystroem, exact")]
    rbf = [(name, Nystroem(kernel="rbf", gamma=gamma, n_components=n)) for n, name in reversed(rbf)]
    rbf += [("Fourier", RBFSampler(gamma=gamma, n_components=n)) for n in few]
    ways += [("RBF", lambda a, b: rbf_kernel(a, b, gamma=gamma), *rbf[0])]
    ways += [(None, None, *way) for way in rbf[1:]]
    title = f"Kernels: OCR letters, {len(rows)} letters of {len(X)} words to train on, {len(Z)} words to test on"
    about = f"the polynomial is (1 + gamma <x, x'>)^2; gamma {gamma:.4g}, 1 over the sum of the pixels' variances"
    return table(title, about, X, y, Z, gold, ways)


def entities(quick):
    data = FETCH["CoNLL-2002 es"]()
    columns = read_columns(data.train_path).select([0, -1])
    order = np.random.default_rng(SEED).permutation(len(columns))
    n_train, n_test = (QUICK, QUICK) if quick else (SENTENCES, TEST_SENTENCES)
    train, test = (columns.take(part) for part in (order[:n_train], order[n_train : n_train + n_test]))
    encoder = FeatureEncoder("".join(f"U{k:02d}:{atom}\n" for k, atom in enumerate(ATOMS)) + "B\n")
    X, Z = (
        sparse_rows(tokens)
        for tokens in (encoder.fit_transform(train.drop_last()), encoder.transform(test.drop_last()))
    )
    poly = {"degree": 2, "gamma": 1.0, "coef0": 1.0}
    few = QUICK_COMPONENTS if quick else COMPONENTS
    ways = [("linear", linear_kernel, f"{len(ATOMS)} strings", None)]
    ways += [("polynomial", lambda a, b: polynomial_kernel(a, b, **poly), "all pairs, exact", PairFeatures(1.0))]
    ways += [(None, None, "Nystroem", Nystroem(kernel="polynomial", **poly, n_components=n)) for n in few]
    ways += [(None, None, "sketch", PolynomialCountSketch(**poly, n_components=n)) for n in few]
    title = f"Kernels: Spanish entities, {len(X)} sentences to train on, {len(Z)} of the same file to test on"
    about = f"the polynomial is (1 + <x, x'>)^2 of {len(ATOMS)} strings, those of table 3 of the SVMstruct paper"
    return table(title, about, X, train.column(-1), Z, test.column(-1), ways)


def sparse_rows(tokens):
    """The sequences of tokens as CSR matrices of ones."""
    shape = tokens.n_tokens, tokens.n_features
    whole = sp.csr_matrix((np.ones(len(tokens.indices)), tokens.indices, tokens.indptr), shape=shape)
    return [whole[a:b] for a, b in pairwise(tokens.offsets.tolist())]


class PairFeatures:
    """(1 + gamma <x, x'>)^2 of rows of zeros and ones, by their features and all pairs that training rows have."""

    def __init__(self, gamma):
        self.gamma = gamma

    def fit(self, X):
        X = sp.csr_matrix(X)
        self.n_features = X.shape[1]
        self.known = np.unique(np.concatenate([keys for _, keys in self.pairs(X)]))
        self.one = self.n_features + len(self.known)
        return self

    def pairs(self, X):
        for indices in np.split(X.indices, X.indptr[1:-1]):
            both = np.array(list(combinations(np.sort(indices).tolist(), 2)), dtype=np.int64).reshape(-1, 2)
            yield indices, both[:, 0] * self.n_features + both[:, 1]

    def transform(self, X):
        columns = []
        for indices, keys in self.pairs(sp.csr_matrix(X)):
            at = np.minimum(np.searchsorted(self.known, keys), len(self.known) - 1)
            columns.append(np.concatenate([indices, self.n_features + at[self.known[at] == keys], [self.one]]))
        indptr = np.cumsum([0, *map(len, columns)])
        columns = np.concatenate(columns)
        # (1 + g s)^2 = 1 + 2 g s + g^2 s^2 for s = <x, x'>, and s^2 is s and twice the pairs that both have.
        single, pair = np.sqrt(2.0 * self.gamma + self.gamma**2), self.gamma * np.sqrt(2.0)
        values = np.where(columns < self.n_features, single, np.where(columns < self.one, pair, 1.0))
        return sp.csr_matrix((values, columns, indptr), shape=(len(indptr) - 1, self.one + 1))


# ---- measured ------------------------------------------------------------------------------------


def table(title, about, X, y, Z, gold, ways):
    rows = []
    stacked = np.concatenate if isinstance(X[0], np.ndarray) else sp.vstack
    train, test = stacked(X), stacked(Z)
    judged = np.random.default_rng(SEED).permutation(test.shape[0])[:JUDGED]
    for kernel, function, name, chart in ways:
        if kernel is not None:
            K, C, family = function(test[judged], train), "auto", kernel
        with Clock() as mapped:
            if chart is not None:
                chart = chart.set_params(random_state=SEED) if hasattr(chart, "set_params") else chart
                chart.fit(train)
            z, z_test = (part if chart is None else chart.transform(part) for part in (train, test))
        near = z_test[judged] @ z.T
        near = near.toarray() if sp.issparse(near) else near
        model = SequenceLabeler(loss="hamming", C=C, random_state=SEED)
        with Clock() as trained:
            model.fit(divided(z, X), y)
        C = getattr(model, "C_", C)
        row = {"kernel": family, "rows": name, "n": z.shape[1], "C": C, "primal": model.result_.primal}
        row |= {"off": 100.0 * np.linalg.norm(near - K) / np.linalg.norm(K), "cpu_map": mapped.cpu}
        row["error"] = 100.0 * (1.0 - token_accuracy(gold, model.predict(divided(z_test, Z))))
        rows.append(row | {"cpu": None if kernel else trained.cpu})
    about = f"{about}; seconds of training where C is given"
    return Table(title, COLUMNS, rows, [*notes(NOTES.format(len(judged))), about])


def divided(rows, like):
    """Rows of all sequences as those of each."""
    bounds = np.cumsum([0, *(part.shape[0] for part in like)]).tolist()
    return [rows[a:b] for a, b in pairwise(bounds)]
