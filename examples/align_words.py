"""
How do I find the translation of each word?
===========================================

Word alignment, learnt from a few aligned sentences.

Many sentence pairs without alignments say how often two words occur together (Dice's coefficient). That, places in the
sentence and spelling describe each pair of words; the weights of these are learnt from the aligned ones.

Run it: python examples/align_words.py
"""

import random
from collections import Counter

import numpy as np

import structsvm
from structsvm.metrics import matching_scores
from structsvm.oracles.assignment import AssignmentOracle
from structsvm.plotting import MatchingDisplay

NOUNS = {
    "dog": ["le chien"], "cat": ["le chat"], "book": ["le livre", "le volume"], "train": ["le train"],
    "garden": ["le jardin"], "street": ["la rue"], "car": ["la voiture", "la bagnole"], "door": ["la porte"],
    "letter": ["la lettre"], "house": ["la maison", "la demeure"], "table": ["la table"], "lamp": ["la lampe"],
}  # fmt: skip
BEFORE = {"young": "jeune", "vast": "vaste", "poor": "pauvre"}
BEHIND = {"pink": "rose", "yellow": "jaune", "quiet": "calme", "modern": "moderne", "useful": "utile"}
VERBS = {"see": "voit", "want": "veut", "paint": "peint", "find": "trouve", "draw": "dessine"}
DAYS = {"today": "aujourd'hui", "tomorrow": "demain", "often": "souvent"}
NAMES = ["Anna", "Bruno", "Clara", "David", "Emil"]


def phrase(rng):
    """English and French words, and for each English one the number of its French one: adjectives change places."""
    noun = rng.choice([*NOUNS])
    article, french = rng.choice(NOUNS[noun]).split()
    before = [rng.choice([*BEFORE])] * (rng.random() < 0.3)
    behind = [rng.choice([*BEHIND])] * (rng.random() < 0.5)
    left, right = ["the", *before, *behind, noun], [article, *(BEFORE[word] for word in before), french]
    place = len(right) - 1
    return left, right + [BEHIND[word] for word in behind], [0, *[1] * len(before), *[place + 1] * len(behind), place]


def sentence(rng):
    """A pair of sentences, and for each English word the number of its French one, -1 for none."""
    who, verb = rng.choice(NAMES), rng.choice([*VERBS])
    parts = [([who], [who], [0])]
    if rng.random() < 0.3:
        parts.append((["does", "not", verb], ["ne", VERBS[verb], "pas"], [0, 2, 1]))
    else:
        parts.append(([f"{verb}s"], [VERBS[verb]], [0]))
    parts.append(phrase(rng))
    if rng.random() < 0.4:
        parts += [(["and"], ["et"], [0]), phrase(rng)]
    left, right, y = [], [], []
    for words, others, places in parts:
        y += [len(right) + k if k >= 0 else -1 for k in places]
        left, right = left + words, right + others
    if rng.random() < 0.4:
        day = rng.choice([*DAYS])
        left, right, y = [*left, day], [DAYS[day], *right], [*(k + (k >= 0) for k in y), 0]
    return (left, right), np.array(y)


def sentences(n, seed):
    """Pairs of sentences, and their alignments."""
    rng = random.Random(seed)  # noqa: S311 - sentences, no secrets
    return map(list, zip(*(sentence(rng) for _ in range(n)), strict=True))


class WordPairs:
    """Features of the pairs of two sentences' words."""

    names = ("dice", "dice of the best", "is spelled the same", "distance", "distance squared", "is frequent")

    def __init__(self, sentences):
        self.left, self.right, self.both = Counter(), Counter(), Counter()
        for left, right in sentences:
            self.left.update(set(left))
            self.right.update(set(right))
            self.both.update((a, b) for a in set(left) for b in set(right))
        self.often = 0.02 * len(sentences)

    def dice(self, left, right):
        """Array (n_left, n_right)."""
        return np.array([[2.0 * self.both[a, b] / (self.left[a] + self.right[b] or 1) for b in right] for a in left])

    def __call__(self, left, right):
        """Array (n_left, n_right, n_features)."""
        dice = self.dice(left, right).reshape(len(left), len(right))
        best = np.maximum(dice.max(axis=0, initial=0.0)[None, :], dice.max(axis=1, initial=0.0)[:, None])
        same = np.array([[a == b for b in right] for a in left]).reshape(dice.shape)
        often = np.array([[self.left[a] > self.often for _ in right] for a in left]).reshape(dice.shape)
        distance = np.abs(np.linspace(0, 1, len(left))[:, None] - np.linspace(0, 1, len(right))[None, :])
        features = [dice, dice >= best, same, distance, distance**2, often]
        return np.stack(features, axis=2).astype(float)


def by_dice(dice, threshold):
    """The best matching by Dice's coefficient alone, of pairs above a threshold."""
    return AssignmentOracle(1).argmax(dice[:, :, None], np.array([1.0, threshold]))


def main():
    """Train on 50 aligned sentences and 1000 without alignment; compare with Dice's coefficient alone."""
    aligned, y = sentences(50, seed=0)
    test, y_test = sentences(300, seed=1)
    unaligned, _ = sentences(1000, seed=2)

    pairs = WordPairs([*unaligned, *aligned])
    X, X_test = ([pairs(*sentence) for sentence in part] for part in (aligned, test))
    solver = structsvm.LaRank(C=0.1, tol=0.01, random_state=0)
    model = structsvm.StructuredSVM(AssignmentOracle(len(pairs.names)), solver).fit(X, y)
    print(model.result_.certificate())
    print({name: round(float(weight), 2) for name, weight in zip([*pairs.names, "alone"], model.coef_)})

    best = max(np.linspace(0.0, 0.5, 11), key=lambda t: matching_scores(y, [by_dice(x[:, :, 0], t) for x in X]).f1)
    for name, found in (
        (f"Dice above {best:.2f}", [by_dice(x[:, :, 0], best) for x in X_test]),
        ("learnt", model.predict(X_test)),
    ):
        scores = matching_scores(y_test, found)
        print(f"{name}: F1 {100 * scores.f1:.1f} %, alignment error rate {100 * scores.alignment_error_rate:.1f} %")
    (left, right), found = test[0], model.predict(X_test[:1])[0]
    MatchingDisplay.from_predictions(y_test[0], found, left, right)


if __name__ == "__main__":
    main()
