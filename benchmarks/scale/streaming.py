"""A stream of sentences in a process of its own: python -m scale.streaming HASH_BITS N_SENTENCES SIZE; prints JSON."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from common.measure import no_gc, peak
from structsvm.datasets import fetch_conll2000
from structsvm.features.columns import read_columns
from structsvm.tasks import SequenceLabeler, TokenFeatures


def main(hash_bits, n, size):
    columns = read_columns(fetch_conll2000().train_path)[:n]
    X, y = columns.drop_last(), columns.select([-1])
    labeler = SequenceLabeler(C=0.1, templates="crf++", features=TokenFeatures(hash_bits=hash_bits), random_state=0)
    batches = [(X[k : k + size], y[k : k + size]) for k in range(0, n, size)]
    classes = sorted({label for labels in columns.column(-1) for label in labels})
    labeler.partial_fit(*batches[0], classes=classes)
    seconds, peaks = [], []
    with no_gc():
        for batch in batches[1:]:
            begin = time.process_time()
            labeler.partial_fit(*batch)
            seconds.append(time.process_time() - begin)
            peaks.append(peak())
    tenth = max(len(seconds) // 10, 1)
    print(json.dumps({
        "n": len(batches),
        "median": 1e3 * float(np.median(seconds)),
        "first": 1e3 * float(np.mean(seconds[:tenth])),
        "last": 1e3 * float(np.mean(seconds[-tenth:])),
        "peak": peaks[-1],
        "grown": peaks[-1] - peaks[tenth],
        "weights": labeler.model_.weights.nbytes / 1e6,
    }))  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
