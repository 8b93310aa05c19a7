"""Probabilities of chunks of labels, against the enumeration of all labellings."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from structsvm.datasets import make_sequences
from structsvm.metrics import scheme_of
from structsvm.structures.languages import at_most_once, max_length
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence import likely
from structsvm.tasks.sequence.likely import is_markov

RNG = np.random.default_rng(0)
WORDS = [[f"w{RNG.integers(0, 5)}" for _ in range(RNG.integers(3, 6))] for _ in range(30)]
SCHEMES = {
    "bio": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "suffixes": ["O", "X_B", "X_I"],
    "one tag of a type": ["O", "B-X", "I-X", "B-Y"],
    "bioes": ["O", "B-X", "I-X", "E-X", "S-X"],
    "ioe2": ["O", "I-X", "E-X"],
    "fields": ["name", "street", "O"],
    "numbers": [1, 2, 3],
}


def runs(labels):
    """Runs of one label but O, as spans."""
    ends = [k for k in range(1, len(labels)) if labels[k] != labels[k - 1]]
    bounds = [0, *ends, len(labels)]
    return [(a, b, labels[a]) for a, b in pairwise(bounds) if labels[a] != "O"]


@pytest.mark.parametrize("params", [{"loss": "log"}, {"order": 2, "loss": "log"}], ids=["order 1", "order 2"])
@pytest.mark.parametrize("name", SCHEMES)
def test_chances_by_enumeration(name, params):
    known = SCHEMES[name]
    y = [[known[RNG.integers(0, len(known))] for _ in x] for x in WORDS]
    y[0][: len(known)] = known[: len(y[0])]
    model = SequenceLabeler(C=0.3, random_state=0, **params).fit(WORDS, y)
    scheme = scheme_of(known)
    assert (scheme is None) == (name in ("fields", "numbers"))
    short = [x[:4] for x in WORDS[:4]]
    every = model.predict_kbest(short, len(known) ** 4, probabilities=True)
    for labels, spans, all_of in zip(
        model.predict(short), model.predict_spans(short, probabilities=True), every, strict=True
    ):
        chunks = scheme.chunks if scheme else runs
        assert sum(p for _, p in all_of) == pytest.approx(1.0, abs=1e-4)
        assert [span[:3] for span in spans] == chunks(labels)
        for *span, p in spans:
            assert p == pytest.approx(sum(own for one, own in all_of if tuple(span) in chunks(one)), abs=1e-5)
    for found, all_of in zip(model.predict_spans(short, probabilities=True, least=0.05), every, strict=True):
        chances = Counter()
        for one, own in all_of:
            chances.update(dict.fromkeys(scheme.chunks(one) if scheme else runs(one), own))
        likely = {span: p for span, p in chances.items() if p > 0.05 + 1e-4}
        assert likely.keys() <= {span[:3] for span in found} and found == sorted(found)
        assert all(p == pytest.approx(chances[tuple(span)], abs=1e-5) and p >= 0.05 for *span, p in found)


@pytest.mark.parametrize("case", ["masks", "pairs of labels", "numbers", "an automaton"])
def test_both_ways_to_probable_chunks(case):
    """Many sequences at once, from neighbouring labels, and one after another, from masks: the same chunks."""
    X, y = make_sequences(60, mean_length=5.0, random_state=0)
    params = {
        "masks": {"constraints": "bio"},
        "pairs of labels": {"templates": "U00:%x[0,0]\nB00:%x[0,0]\n"},
        "numbers": {},
        "an automaton": {"constraints": max_length("NP", 2)},
    }[case]
    if case == "numbers":
        X = [np.random.default_rng(0).normal(size=(len(x), 3)) for x in X]
    model = SequenceLabeler(loss="log", C=1.0, broken="predict", random_state=0, **params).fit(X[:50], y[:50]).model_
    assert (model.oracle.n_bigrams > 0) == (case == "pairs of labels") and is_markov(model.oracle) == (
        "auto" not in case
    )
    tokens, fast = model.encode(X), model.predict_spans(X, probabilities=True, least=0.02)
    decoder, n = model.oracle.chain(tokens), 0
    for i, (own, marginals) in enumerate(zip(fast, model.marginals(X), strict=True)):
        slow = {
            span[:3]: span[3] for span in model._chances(decoder, model.weights, i, len(X[i])).likely(marginals, 0.02)
        }
        assert {span[:3]: span[3] for span in own} == pytest.approx(slow, abs=2e-5)
        n += len(own)
    assert n > 100


@pytest.mark.parametrize("params", [{}, {"order": 2}, {"segments": 2}], ids=["order 1", "order 2", "segments"])
@pytest.mark.parametrize("constraints", [at_most_once("X"), "bio", ["bio", max_length("Y", 1)]], ids=str)
def test_chances_under_the_constraints_of_a_prediction(constraints, params):
    known = SCHEMES["bio"]
    y = [scheme_of(known).repaired([known[RNG.integers(0, len(known))] for _ in x]) for x in WORDS]
    model = SequenceLabeler(loss="log", C=0.3, random_state=0, **params).fit(WORDS, y)
    short, chunks = [x[:4] for x in WORDS[:4]], scheme_of(known).chunks
    every = model.predict_kbest(short, 5**4, probabilities=True, constraints=constraints)
    assert model.predict_spans(short) == model.predict_spans(short, constraints=None)
    best = model.predict_spans(short, probabilities=True, constraints=constraints)
    likely = model.predict_spans(short, probabilities=True, least=0.01, constraints=constraints)
    for own, some, all_of in zip(best, likely, every, strict=True):
        chances = Counter()
        for labels, p in all_of:
            chances.update(dict.fromkeys(chunks(labels), p))
        assert sum(p for _, p in all_of) == pytest.approx(1.0, abs=1e-4)
        assert [span[:3] for span in own] == chunks(all_of[0][0])
        assert {span[:3]: span[3] for span in [*own, *some]} == pytest.approx(
            {span[:3]: chances[span[:3]] for span in [*own, *some]}, abs=1e-5
        )
        assert {span for span, p in chances.items() if p > 0.01 + 1e-4} <= {span[:3] for span in some}


def test_what_has_no_sums():
    y = [["B-X" if word > "w2" else "O" for word in x] for x in WORDS]
    greedy = SequenceLabeler(C=0.1, inference="greedy", random_state=0).fit(WORDS, y)
    assert len(greedy.predict_spans(WORDS)) == 30
    with pytest.raises(ValueError, match="predict_spans needs"):
        greedy.predict_spans(WORDS, probabilities=True)
    model = SequenceLabeler(loss="log", C=0.1, random_state=0).fit(WORDS, y)
    assert model.predict_spans([[]], probabilities=True) == [[]]
    assert model.predict_spans([[], WORDS[0]], probabilities=True, least=1e-3)[0] == []
    for least in (0.0, 1.5, "high"):
        with pytest.raises(ValueError, match=r"The 'least' parameter of SequenceLabeler.predict_spans must be"):
            model.predict_spans(WORDS, probabilities=True, least=least)
    with pytest.raises(ValueError, match="it needs probabilities=True"):
        model.predict_spans(WORDS, least=0.5)


def test_sequences_without_a_labelling_are_named():
    alone = np.zeros((2, 2), dtype=bool), None, None
    model = SequenceLabeler(constraints=alone, loss="log", C=1.0, random_state=0).fit(
        [["a"], ["b"]] * 10, [["B-X"], ["O"]] * 10
    )
    assert len(model.predict_spans([["a"], [], ["a"]], probabilities=True, least=0.1)) == 3
    for least in (None, 0.1):
        with pytest.raises(ValueError, match=r"sequence 2: the constraints allow no labelling of length 2, .* 1\)"):
            model.predict_spans([["a"], [], ["a", "b"]], probabilities=True, least=least)


def test_few_tokens_at_a_time_change_nothing(monkeypatch):
    """Chunks are followed over many sequences at once, as many as there is room for."""
    X, y = make_sequences(40, mean_length=6.0, random_state=0)
    model = SequenceLabeler(loss="log", C=1.0, random_state=0).fit(X[:20], y[:20])
    whole = model.predict_spans(X, probabilities=True, least=0.01)
    monkeypatch.setattr(likely, "MOST_PAIRS", 2000)
    monkeypatch.setattr(likely, "MOST_TOGETHER", 500)
    assert model.predict_spans(X, probabilities=True, least=0.01) == whole and sum(map(len, whole)) > 100
    assert model.predict_spans([], probabilities=True, least=0.01) == []
