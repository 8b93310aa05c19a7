"""Python in a process of its own: ``python -m runtime.program MODEL SENTENCES.json``; prints JSON."""

from __future__ import annotations

import json
import sys
import time

from common.measure import peak, repeat_for
from installed.program import as_columns


def main():
    model, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        X = [[as_columns(token) if isinstance(token, list) else token for token in x] for x in json.load(file)]
    before, begin = peak(), time.process_time()
    import structsvm

    labeler = structsvm.load(model)
    labeler.predict(X[:1])
    found = {"load": 1e3 * (time.process_time() - begin), "resident": peak() - before}
    labels, runs = repeat_for(lambda: labeler.predict(X))
    found["speed"] = sum(map(len, X)) / runs.best
    json.dump(found | {"labels": [list(map(str, y)) for y in labels]}, sys.stdout)


if __name__ == "__main__":
    main()
