"""Answers that are right as often as promised, and questions that are worth asking: for the page of news."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pictures.ink import Ink, axes, picture
from structsvm.datasets import make_addresses
from structsvm.metrics import record_accuracy
from structsvm.risk import RiskController
from structsvm.tasks import Pool, SequenceLabeler

KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "layers.json"
PEERS = {"crf1": "pytorch-crf", "struct1": "torch-struct", "scan1": "lax.scan"}
PROMISES = (0.05, 0.08, 0.1, 0.15, 0.2)
ANSWERS = (5, 10, 20, 30, 40, 50, 60)


@picture
def promise(ink: Ink) -> None:
    """Shares of fresh addresses that are answered, and of answers that are wrong, by what was promised."""
    found = promises()
    left, right = axes(columns=2)
    promised = [100 * alpha for alpha in PROMISES]
    left.plot(promised, [100 * answered for answered, _ in found], "-o", color=ink.blue)
    left.set(xlabel="promised: at most this % wrong", title="% of addresses answered", ylim=(0, 100))
    right.plot(promised, promised, "--", color=ink.faint, label="promised")
    right.plot(promised, [100 * wrong for _, wrong in found], "-o", color=ink.orange, label="true")
    right.set(xlabel="promised: at most this % wrong", title="% of answers wrong", ylim=(0, None))
    right.legend()


@cache
def promises() -> list[tuple[float, float]]:
    """The two shares of each promise."""
    X, y = make_addresses(2400, ambiguity=0.5, typos=0.1, random_state=0)
    tagger = SequenceLabeler(loss="log", C=1.0, templates="records", random_state=0).fit(X[:60], y[:60])
    return [kept(tagger, X, y, alpha) for alpha in PROMISES]


def kept(tagger: Any, X: Any, y: Any, alpha: float) -> tuple[float, float]:
    """The share of fresh inputs that are answered, and that of answers which are wrong."""
    careful = RiskController(tagger, alpha=alpha, delta=0.1).calibrate(X[60:1000], y[60:1000])
    pairs = list(zip(careful.predict(X[1000:]), y[1000:], strict=True))
    wrong = [found != true for found, true in pairs if found is not None]
    return len(wrong) / len(pairs), float(np.mean(wrong)) if wrong else 0.0


@picture
def asked(ink: Ink) -> None:
    """Whole addresses that are right, after answers to questions by the margin and by chance."""
    (ax,) = [axes(width=5.0)]
    for strategy, color, label in (("margin", ink.blue, "asked by margin"), ("random", ink.faint, "by chance")):
        ax.plot(ANSWERS, [100 * share for share in learnt(strategy)], "-o", color=color, label=label)
    ax.set(xlabel="addresses labelled", ylabel="% of whole addresses right", ylim=(0, 100))
    ax.legend(loc="lower right")


@cache
def learnt(strategy: str) -> list[float]:
    """The share of whole test addresses that are right after each number of answers: the mean of three pools."""
    shares: list[float] = np.mean([answered(strategy, seed) for seed in range(3)], axis=0).tolist()
    return shares


def answered(strategy: str, seed: int) -> list[float]:
    """The same for one pool."""
    X, answers = make_addresses(400, random_state=10 * seed)
    X_test, y_test = make_addresses(200, random_state=10 * seed + 1)
    labeler = SequenceLabeler(C=1.0, loss="log", templates="records", random_state=seed)
    pool, shares = Pool(labeler, X), []
    for n in range(1, max(ANSWERS) + 1):
        (i,) = labeler.query(pool, strategy=strategy if n > 5 else "random", random_state=100 * seed + n)
        labeler.teach(X[i], answers[i])
        pool.discard(i)
        if n in ANSWERS:
            shares.append(record_accuracy(y_test, labeler.predict(X_test)))
    return shares


@picture
def heads(ink: Ink) -> None:
    """Milliseconds of a loss with gradients, ours and those of the fastest other program, by structure."""
    rows = fastest()
    (ax,) = [axes(height=0.32 * len(rows) + 0.9)]
    for place, (_, ours, (theirs, peer)) in enumerate(rows):
        ax.barh(place - 0.2, ours, 0.36, color=ink.blue, label=None if place else "structsvm")
        ax.barh(place + 0.2, theirs, 0.36, color=ink.faint, label=None if place else "the fastest other")
        ax.text(theirs * 1.15, place + 0.2, peer, va="center", fontsize=8.5)
    ax.set_xscale("log")
    ax.set(xlabel="milliseconds, logarithmic", yticks=range(len(rows)), yticklabels=[what for what, *_ in rows])
    ax.set_xlim(None, 6 * max(theirs for *_, (theirs, _) in rows))
    ax.invert_yaxis()
    ax.legend(loc="upper left", bbox_to_anchor=(0, 1.12), ncols=2)


def fastest() -> list[tuple[str, float, tuple[float, str]]]:
    """Structure, our time, and the least of the others' with its program: kept losses of batches of 32, one thread."""
    parts = json.loads(KEPT.read_text(encoding="utf-8"))
    rows = [row for part in ("heads-chains", "heads-trees", "heads-others") for row in parts[part]["tables"][0]["rows"]]
    compared = []
    for row in (row for row in rows if row["batch"] == 32 and row["action"] == "loss"):
        others = [(row[key], name) for key, name in PEERS.items() if row.get(key)]
        if others:
            name, _, *labels = row["what"].partition(" of up to")[0].split(", ")
            compared.append((", ".join((name, *labels)), row["ours1"], min(others)))
    return compared
