"""Train a tagger and tag, in a process of its own: python -m scale.tagging TRAIN TEST HASH_BITS; prints JSON.

Texts are column files of words and tags. HASH_BITS = 0: no hashing.
"""

from __future__ import annotations

import json
import sys
import time

from common.measure import peak
from structsvm import LaRank
from structsvm.features.columns import read_columns
from structsvm.metrics import token_accuracy
from structsvm.tasks import SequenceLabeler, TokenFeatures


def main(train, test, hash_bits):
    columns, others = read_columns(train), read_columns(test)
    solver = LaRank(C=0.1, max_iter=1, random_state=0)
    features = TokenFeatures(hash_bits=hash_bits or None)
    labeler = SequenceLabeler(solver=solver, loss="hamming", probability=False, features=features)
    before, begin = peak(), time.process_time()
    labeler.fit(columns.drop_last(), columns.select([-1]))
    fitted, grown = time.process_time() - begin, peak() - before
    X, found = others.drop_last(), []
    for _ in range(3):
        begin = time.process_time()
        predicted = labeler.predict(X)
        found.append(time.process_time() - begin)
    print(json.dumps({
        "labels": len(labeler.classes_),
        "tokens": columns.n_tokens,
        "features": labeler.model_.encoder.n_features,
        "weights": labeler.model_.weights.nbytes / 1e6,
        "cpu": fitted,
        "peak": grown,
        "speed": others.n_tokens / min(found),
        "accuracy": 100.0 * token_accuracy(others.column(-1), predicted),
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:3], int(sys.argv[3]))
