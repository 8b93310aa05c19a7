"""Addresses whose words are ours, with their spans, and sessions on them."""

import re

from structsvm.annotate.inputs import read_inputs
from structsvm.annotate.session import Session
from structsvm.annotate.store import Store
from structsvm.datasets import make_addresses


def write_addresses(folder, n=60):
    """A file of addresses without marks between fields; returns it and the spans of each line."""
    X, y = make_addresses(n, typos=0.0, ambiguity=0.0, random_state=3)
    path, known = folder / "addresses.txt", {}
    for tokens, labels in zip(X, y):
        spans = []
        for k, label in enumerate(labels):
            if spans and spans[-1][2] == label:
                spans[-1][1] = k + 1
            else:
                spans.append([k, k + 1, label])
        known[" ".join(re.sub(r"\W", "", word) for word in tokens)] = spans
    path.write_text("".join(f"{line}\n" for line in known))
    return path, known


def session_of(path, task="sequence", labels=(), order="query", **how):
    """A session of a file, with the answers that are there; close its store."""
    return Session(read_inputs(str(path), task, **how), Store(f"{path}.answers.jsonl"), task, labels, order)


def answered(session, known, n, by="eve"):
    """Answer n questions as one who knows; returns the texts that were asked."""
    asked = []
    for _ in range(n):
        k = session.next(by, "page")
        session.answer(k, {"spans": known[session.inputs.items[k].text]}, by)
        asked.append(k)
    return asked
