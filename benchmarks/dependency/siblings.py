"""What scores of two siblings at once could add: the k best trees, ranked anew with features of siblings."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from dependency.data import TREEBANKS, some
from structsvm import LaRank, Oracle, StructuredSVM
from structsvm.metrics import dependency_scores
from structsvm.tasks import DependencyParser

SENTENCES, QUICK, K, BITS = 1000, 40, 8, 18
CS = (0.0001, 0.001, 0.01)
SCALE = 10.0  # of the first-order score, which regularisation is not to hold back
COLUMNS = {
    "trees": ("trees", ""),
    "uas": ("UAS %", ".2f"),
    "las": ("LAS %", ".2f"),
    "cpu": ("CPU s", ".1f"),
}


def features(tree, arcs, score):
    """The first-order score, and hashed features of the neighbours among the words on one side of a head."""
    tags = ["ROOT", *(word.xpos or word.upos for word in tree.words)]
    forms = ["", *(word.form.lower() for word in tree.words)]
    found = {0: SCALE * score}
    for h in range(len(tags)):
        below = [m for m, (head, _) in enumerate(arcs, 1) if head == h]
        for side, words in (("L", [m for m in below if m < h][::-1]), ("R", [m for m in below if m > h])):
            for a, b in zip([0, *words], [*words, 0]):
                first, second = tags[a] if a else "-", tags[b] if b else "-"
                labels = arcs[a - 1][1] if a else "-", arcs[b - 1][1] if b else "-"
                for text in (
                    f"{side} {tags[h]} {first} {second}",
                    f"{side} {first} {second}",
                    f"{side} {tags[h]} {labels}",
                    f"{side} {forms[h]} {first} {second}",
                ):
                    at = 1 + crc32(text.encode()) % (2**BITS - 1)
                    found[at] = found.get(at, 0.0) + 1.0
    return np.array([*found]), np.array([*found.values()])


class Candidates(Oracle):
    """An input is the features of candidates, an output the index of one; the true one has the fewest wrong words."""

    n_features = 2**BITS

    def __init__(self, n_wrong):
        self.n_wrong = n_wrong  # of each sentence, by candidate; a true output is the number of its sentence

    def joint_feature(self, x, y):
        return x[y if y >= 0 else int(np.argmin(self.n_wrong[~y]))]

    def loss(self, y_true, y):
        more = self.n_wrong[~y_true] - self.n_wrong[~y_true].min()
        return 0.0 if y in (y_true, int(more.argmin())) else float(max(more[y], 0.1))

    def argmax(self, x, w, y_true=None, rescaling=None):
        scores = [values @ w[indices] for indices, values in x]
        if y_true is not None:
            scores = [score + self.loss(y_true, y) for y, score in enumerate(scores)]
        return int(np.argmax(scores))


def row(trees, name, arcs, cpu):
    scores = dependency_scores(trees, arcs)
    return {"trees": name, "uas": 100.0 * scores.uas, "las": 100.0 * scores.las, "cpu": cpu}


def candidates(parser, trees):
    return parser.predict_kbest([tree.words for tree in trees], K)


def n_wrong(tree, found):
    return np.array([sum(one != true for one, true in zip(arcs, tree.arcs, strict=True)) for arcs, _ in found])


def run(options):
    data = TREEBANKS["UD English EWT"]()
    train = some(data.train, QUICK if options.quick else SENTENCES)
    test = some(data.dev, len(train))
    table = Table(
        f"UD English EWT: the best {K} trees, ranked anew, {len(train)} sentences", COLUMNS, notes=notes(NOTES)
    )
    with Clock() as clock:
        parser = DependencyParser(C=0.1, random_state=0).fit(train)
        best = candidates(parser, test)
    table.rows.append(row(test, "first order", [found[0][0] for found in best], clock.cpu))
    least = [found[int(np.argmin(n_wrong(tree, found)))][0] for tree, found in zip(test, best, strict=True)]
    table.rows.append(row(test, f"the best of the {K}", least, None))
    yield table
    with Clock() as clock:
        lists = [None] * len(train)
        for fold in (0, 1):
            half = DependencyParser(C=0.1, random_state=0).fit(train[1 - fold :: 2])
            lists[fold::2] = candidates(half, train[fold::2])
        encode = lambda tree, found: [features(tree, arcs, score) for arcs, score in found]  # noqa: E731
        oracle = Candidates([n_wrong(tree, found) for tree, found in zip(train, lists, strict=True)])
        X = [encode(tree, found) for tree, found in zip(train, lists, strict=True)]
        Z = [encode(tree, found) for tree, found in zip(test, best, strict=True)]
    for C in CS:
        with Clock() as training:
            ranker = StructuredSVM(oracle, LaRank(C=C, max_iter=5, random_state=0)).fit(X, [~i for i in range(len(X))])
        arcs = [found[y][0] for found, y in zip(best, ranker.predict(Z), strict=True)]
        name = f"ranked with features of siblings, C = {C:g}"
        table.rows.append(row(test, name, arcs, clock.cpu + training.cpu))
        yield table


NOTES = f"""
Trained on sentences of the training part, judged on as many of the development part. The {K} best trees of a
first-order parser, ranked by its score and hashed features of a head, its neighbouring words on one side and their
labels, which are learnt (five passes of LaRank) on the {K} best trees of each half of the training sentences by a
parser of the other half.
"""
