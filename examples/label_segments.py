"""
Should I label tokens, or whole names?
======================================

Segments: chunks as wholes.

Learn to find the names of people: with whole segments, and token by token. People have two names here or four, with
those of their mothers; other runs of capitals are places. A chain of labels cannot count words, a segment has a length.

Run it: python examples/label_segments.py
"""

import numpy as np

from structsvm.metrics import Scheme, chunk_f1
from structsvm.tasks import SequenceLabeler

NAMES = ["Alba", "Anders", "Baker", "Bell", "Clara", "Cole", "Dora", "Dean"]


def sentences(n, rng):
    """Words, and the spans of people: runs of two or four capitals, where others are places."""
    X, y = [], []
    for _ in range(n):
        words, spans = [], []
        for _ in range(rng.integers(3, 6)):
            words += [str(rng.choice(["and", "near", "met", "of", "for"])) for _ in range(rng.integers(1, 4))]
            length = int(rng.integers(1, 6))
            if length in (2, 4):
                spans.append((len(words), len(words) + length, "PERSON"))
            words += map(str, rng.choice(NAMES, length))
        capital = [False, *(word in NAMES for word in words), False]
        X.append([{"capital": "".join("xX"[c] for c in capital[k : k + 3])} for k in range(len(words))])
        y.append(spans)
    return X, y


def main():
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = sentences(150, rng), sentences(100, rng)

    def as_labels(X, spans):
        return [Scheme("bio").labels(its, len(x)) for x, its in zip(X, spans, strict=True)]

    chain = SequenceLabeler(constraints="bio", random_state=0).fit(X, as_labels(X, y))
    segments = SequenceLabeler(segments=True, random_state=0).fit(X, y)
    gold = as_labels(X_test, y_test)
    scores = {
        "tokens": chunk_f1(gold, chain.predict(X_test)),
        "segments": chunk_f1(gold, as_labels(X_test, segments.predict(X_test))),
    }
    print(f"F1 of a chain: {scores['tokens']:.3f}")
    print(f"F1 of segments: {scores['segments']:.3f}")
    named = next(k for k, spans in enumerate(y_test) if spans)
    print(segments.predict_spans(X_test[named : named + 1], probabilities=True)[0])

    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(4, 3), layout="constrained")
    ax.bar(list(scores), list(scores.values()), width=0.5)
    ax.set(ylabel="F1 of people", ylim=(0, 1))


if __name__ == "__main__":
    main()
