"""Sequences of feature dicts with numbers, bools and nested features, and labels, for programs of CRFsuite's kind."""

import numpy as np


def sequences(n=60, seed=0):
    """Words, most of which have a label of their own; three repeat the label before."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for _ in range(n):
        words, before, labels = rng.integers(12, size=rng.integers(1, 8)), 0, []
        for word in words.tolist():
            before = (word + (rng.random() < 0.05)) % 3 if word < 9 else before
            labels.append("ABC"[before])
        xs.append([_token(w, v) for w, v in zip(words, [0, *words], strict=False)])
        ys.append(labels)
    return xs, ys


def _token(word, before):
    return {"w": f"w{word}", "odd": bool(word % 2), "size": word / 10, "p": {"v": [f"w{before}"]}}
