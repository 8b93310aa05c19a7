"""Train on simulated headers in a process of its own: python -m scale.heading SEQUENCES LOSS; prints JSON."""

from __future__ import annotations

import io
import json
import sys
import time

import numpy as np

from common.measure import peak
from scale.headers import MEAN_LENGTH, N_LABELS
from structsvm.metrics import token_accuracy
from structsvm.tasks import SequenceLabeler

# Words of each label and of all, the share of the latter, and the mean length of a run of one label.
OWN_WORDS, SHARED_WORDS, SHARED, RUN = 4000, 60000, 0.6, 12.0


def main(n_sequences, loss):
    words, labels = simulated(n_sequences + n_sequences // 10)
    texts = [[f"L{label}" for label in own] for own in labels]
    labeler = SequenceLabeler(loss=loss, random_state=0)
    begin = time.process_time()
    labeler.fit(map(attributes, words[:n_sequences]), texts[:n_sequences])
    cpu, largest = time.process_time() - begin, peak()
    found, file = labeler.predict(map(attributes, words[n_sequences:])), io.BytesIO()
    labeler.save(file)
    n_features = labeler.model_.encoder.n_features
    print(json.dumps({
        "tokens": sum(map(len, words[:n_sequences])),
        "attributes": float(np.mean([len(token) for token in attributes(words[0])])),
        "features": n_features,
        "possible": n_features * len(labeler.classes_) / 1e6,
        "cpu": cpu,
        "peak": largest / 1e3,
        "C": float(labeler.C_),
        "accuracy": 100.0 * token_accuracy(texts[n_sequences:], found),
        "model": file.tell() / 1e6,
    }))  # fmt: skip


def simulated(n):
    """Words and labels of sequences: runs of one label, whose words are its own or everybody's, by Zipf's law."""
    rng = np.random.default_rng(0)
    words, labels = [], []
    for length in rng.poisson(MEAN_LENGTH, n):
        changes = rng.random(length) < 1.0 / RUN
        own = rng.integers(N_LABELS, size=changes.sum() + 1)[np.cumsum(changes)]
        ranks = rng.random(length) ** 3.0
        shared = rng.random(length) < SHARED
        ids = np.where(shared, ranks * SHARED_WORDS, SHARED_WORDS + own * OWN_WORDS + ranks * OWN_WORDS)
        words.append(ids.astype(int).tolist())
        labels.append(own.tolist())
    return words, labels


def attributes(ids):
    """The attributes of each token of a sequence of words."""
    words = [f"{k * 2654435761 % 2**32:07x}" for k in ids]
    padded = ["<<", "<", *words, ">", ">>"]
    return [bag(*padded[t : t + 5]) for t in range(len(words))]


def bag(before2, before, word, after, after2):
    ends = [f"p{k}={word[:k]}" for k in (1, 2, 3, 4)] + [f"s{k}={word[-k:]}" for k in (1, 2, 3, 4)]
    around = [f"{k}={one}" for k, one in zip((-2, -1, 0, 1, 2), (before2, before, word, after, after2), strict=True)]
    near = [f"{k}{part}" for k, one in ((-1, before), (1, after)) for part in (f"p={one[:3]}", f"s={one[-3:]}")]
    runs = [f"-1|0={before}|{word}", f"0|1={word}|{after}", f"-1|0|1={before}|{word}|{after}"]
    return ends + around + near + runs


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
