"""Margins and doubts of small chains, against the enumeration of all labellings."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.execution._stop import look_every
from structsvm.metrics._schemes import Part
from structsvm.tasks.sequence.chances import INSIDE, OPEN
from structsvm.tasks.sequence.questions._margins import KINDS, add_rows, doubts
from structsvm.tasks.sequence.questions.scores import UNIT, chunk_tables

PARTS = [Part("O", ""), Part("B", "x"), Part("I", "x"), Part("E", "y"), Part("I", "y"), Part("S", "x")]


class Small:
    """A pool of few sequences with arbitrary scores, some moves of which are forbidden."""

    def __init__(self, seed, K, size=1.0, masks=0.2):
        self.rng = rng = np.random.default_rng(seed)
        self.K, self.S, self.size = K, (K + 7) // 8 * 8, size
        self.parts = [PARTS[k] for k in rng.permutation(len(PARTS))[:K]]
        self.lengths = rng.integers(1, 5, size=6)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        n = int(self.offsets[-1])
        self.scores, self.moves = self.rows(n), self.rows(K)
        self.moves[rng.random((K, self.S)) < masks] = -np.inf
        self.begin, self.end = self.rows(1)[0], self.rows(1)[0]
        counts = rng.integers(0, 3, size=n) * (rng.random(n) < 0.5)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        tables = rng.integers(-1, 4, size=int(starts[-1])).astype(np.int64)
        values = rng.normal(size=len(tables)).astype(np.float32) if seed % 2 else None
        own = np.where(np.isinf(self.rows(4 * K)), 0.0, self.rows(4 * K)).reshape(4, K, self.S).astype(np.float32)
        self.pairs = starts, tables, values, own

    def rows(self, n):
        found = (self.size * self.rng.normal(size=(n, self.S))).astype(np.float32)
        found[:, self.K :] = -np.inf
        return found

    def moves_to(self, token):
        starts, tables, values, own = self.pairs
        found = self.moves[:, : self.K].astype(np.float64)
        for p in range(starts[token], starts[token + 1]):
            if tables[p] >= 0:
                found = found + (1.0 if values is None else values[p]) * own[tables[p]][:, : self.K]
        return found

    def found(self, strategy, heat=1.0, near=1e-4):
        out, values = np.empty(6), np.empty(6)
        doubts(
            self.scores,
            self.offsets,
            self.moves,
            self.begin,
            self.end,
            out,
            values,
            strategy,
            heat,
            np.full(6, near),
            chunk_tables(self.parts),
            self.pairs,
        )
        return out, values

    def labellings(self, i):
        """All labellings of a sequence that are allowed, best first, and their scores."""
        first, length = int(self.offsets[i]), int(self.lengths[i])
        e = self.scores[first : first + length, : self.K].astype(np.float64)
        moves = [self.moves_to(first + t) for t in range(length)]
        every = []
        for y in product(range(self.K), repeat=length):
            score = self.begin[y[0]] + self.end[y[-1]] + sum(e[t, k] for t, k in enumerate(y))
            score += sum(moves[t][y[t - 1], y[t]] for t in range(1, length))
            if score > -np.inf:
                every.append((score, y))
        every.sort(reverse=True)
        return [y for _, y in every], np.array([score for score, _ in every])

    def chunks(self, y):
        parts, spans, start = [self.parts[k] for k in y], [], None
        for t, part in enumerate(parts):
            if part.role == "O":
                continue
            start = t if start is None else start
            after = parts[t + 1] if t + 1 < len(y) else None
            if not (after and after.kind == part.kind and part.role in OPEN and after.role in INSIDE):
                spans.append((start, t, part.kind))
                start = None
        return spans

    def expected(self, i, strategy, heat):
        every, scores = self.labellings(i)
        p = np.exp(heat * (scores - scores[0]))
        p /= p.sum()
        best = every[0]
        wrong = [sum(own for own, y in zip(p, every, strict=True) if y[t] != k) for t, k in enumerate(best)]
        if strategy == "confidence":
            return 1.0 - p[0]
        if strategy == "entropy":
            return -(p[p > 0] * np.log(p[p > 0])).sum()
        if strategy == "risk":
            return sum(wrong)
        found = [self.chunks(y) for y in every]
        shares = [sum(own for own, spans in zip(p, found, strict=True) if chunk in spans) for chunk in found[0]]
        return 1.0 - min(shares) if shares else max(wrong)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([*KINDS]), st.sampled_from([0.5, 1.0, 3.0]))
def test_against_all_labellings(seed, K, strategy, heat):
    small = Small(seed, K)
    margins, values = small.found(strategy, heat)
    for i in range(6):
        every, scores = small.labellings(i)
        if not every:
            assert margins[i] == -np.inf and (strategy == "margin" or np.isnan(values[i]))
            continue
        margin = scores[0] - scores[1] if len(scores) > 1 else np.inf
        assert margins[i] == pytest.approx(margin, abs=1e-4)
        if strategy != "margin" and margin > 1e-3:
            assert values[i] == pytest.approx(small.expected(i, strategy, heat), abs=1e-5)


def test_risk_is_none_too_small_where_the_best_come_near():
    """Each labelling within the tolerance of the best one has at most this many wrong labels in expectation."""
    n = 0
    for seed in range(60):
        small = Small(seed, 3, masks=0.0)
        _, values = small.found("risk", near=0.5)
        _, alone = small.found("risk", near=0.0)
        assert (values >= alone - 1e-12).all()
        for i in range(6):
            every, scores = small.labellings(i)
            p = np.exp(scores - scores[0])
            p /= p.sum()
            for y in (y for y, score in zip(every, scores, strict=True) if score >= scores[0] - 0.5):
                wrong = sum(own * sum(a != b for a, b in zip(y, other)) for own, other in zip(p, every, strict=True))
                assert values[i] >= wrong - 1e-6
            n += values[i] > alone[i] + 1e-6
    assert n > 20


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_chunks_are_those_of_all_labellings_near_the_best_one(seed, K, near, is_tied):
    """No smaller than for each labelling within the tolerance; with none but the best one, its own."""
    small = Small(seed, K, masks=0.1)
    if is_tied:
        small.scores = np.where(small.scores > -np.inf, np.round(small.scores), -np.inf).astype(np.float32)
        small.moves = np.where(small.moves > -np.inf, 0.0, -np.inf).astype(np.float32)
        small.pairs = small.pairs[0], np.full_like(small.pairs[1], -1), *small.pairs[2:]
    _, values = small.found("span", near=near + 1e-4)
    for i in range(6):
        every, scores = small.labellings(i)
        if not every:
            continue
        p = np.exp(scores - scores[0])
        p /= p.sum()
        found = [small.chunks(y) for y in every]
        worst = []
        for y, chunks in [(y, c) for y, c, s in zip(every, found, scores, strict=True) if s >= scores[0] - near]:
            shares = [sum(own for own, spans in zip(p, found, strict=True) if chunk in spans) for chunk in chunks]
            wrong = [sum(own for own, other in zip(p, every, strict=True) if other[t] != k) for t, k in enumerate(y)]
            worst.append(1.0 - min(shares) if chunks else max(wrong))
        assert max(worst) - 1e-6 <= values[i] <= 1.0
        if len(scores) < 2 or scores[1] < scores[0] - near - 1e-3:
            assert values[i] == pytest.approx(worst[0], abs=1e-6)


def test_chunks_of_long_sequences_that_tell_nothing_are_not_all_tried():
    """All labellings are equal: the value is 1, after work that grows with the length and not with its square."""
    parts, looked = [Part("B", "x"), Part("I", "x"), Part("O", "")], []
    row = np.array([0.0] * 3 + [-np.inf] * 5, dtype=np.float32)
    for T in (200, 2000):
        scores, moves, value = np.tile(row, (T, 1)), np.tile(row, (3, 1)), np.empty(1)
        look_every(1, lambda: looked[-1].append(1))
        looked.append([])
        try:
            doubts(
                scores,
                np.array([0, T]),
                moves,
                row,
                row,
                np.empty(1),
                value,
                "span",
                1.0,
                np.zeros(1),
                chunk_tables(parts),
            )
        finally:
            look_every()
        assert value[0] == 1.0
    assert len(looked[1]) <= 400 * max(len(looked[0]), 1)


def test_scores_too_far_apart_have_no_value():
    small = Small(1, 4, size=1.0, masks=0.0)
    small.moves[0, 1] = -1000.0
    _, values = small.found("entropy")
    assert np.isnan(values[small.lengths > 1]).all() and np.isfinite(values[small.lengths == 1]).all()
    small = Small(4, 4, size=200.0, masks=0.5)
    margins, values = small.found("entropy")
    assert np.isfinite(margins).any()
    for i in np.flatnonzero(np.isfinite(values)):
        assert values[i] == pytest.approx(small.expected(i, "entropy", 1.0), abs=1e-4)


@pytest.mark.parametrize("has_values", [True, False])
def test_changes_are_added_block_after_block(has_values):
    rng = np.random.default_rng(0)
    n, S, n_features = 5000, 8, 40
    lists = [np.sort(rng.integers(n, size=rng.integers(0, 3000))) for _ in range(n_features)]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in lists])]).astype(np.int64)
    tokens = np.concatenate(lists).astype(np.int64)
    values = rng.integers(-3, 4, size=len(tokens)).astype(np.float32) if has_values else None
    features = np.sort(rng.permutation(n_features)[:25]).astype(np.int64)
    changes = rng.integers(-9, 9, size=(25, S)).astype(np.float32)
    scores = rng.integers(-9, 9, size=(n, S)).astype(np.float32)
    expected = scores.astype(np.float64)
    for change, f in zip(changes, features, strict=True):
        of = slice(starts[f], starts[f + 1])
        np.add.at(
            expected, tokens[of], np.outer(1.0 if values is None else values[of], change) + np.zeros((len(lists[f]), S))
        )
    sizes = np.zeros((n, 2), dtype=np.float32)
    add_rows(scores, sizes, starts, tokens, values, features, changes)
    added = np.concatenate([lists[f] for f in features])
    tops = np.repeat(np.abs(changes).max(axis=1), [len(lists[f]) for f in features])
    if has_values:
        tops = tops * np.abs(np.concatenate([values[starts[f] : starts[f + 1]] for f in features]))
    np.testing.assert_array_equal(sizes[:, 0], np.bincount(added, tops, minlength=n))
    np.testing.assert_array_equal(scores, expected)


def test_errors_of_sums_are_none_too_small():
    """Changes that come and go again leave their rounding behind: against sums in double precision."""
    rng = np.random.default_rng(0)
    n, S, n_features = 50, 8, 30
    lists = [np.sort(rng.integers(n, size=20)) for _ in range(n_features)]
    starts, tokens = np.arange(n_features + 1) * 20, np.concatenate(lists)
    values = rng.normal(size=len(tokens)).astype(np.float32)
    scores, sizes = np.zeros((n, S), dtype=np.float32), np.zeros((n, 2), dtype=np.float32)
    before = np.zeros((n_features, S), dtype=np.float32)
    for scale in (1.0, 1000.0, 0.01, 30.0):
        now = (scale * rng.normal(size=(n_features, S))).astype(np.float32)
        add_rows(scores, sizes, starts, tokens, values, np.arange(n_features), now - before)
        expected = np.zeros((n, S))
        np.add.at(expected, tokens, values[:, None] * now.astype(np.float64)[np.arange(n_features).repeat(20)])
        errors, bounds = np.abs(scores - expected).max(axis=1), UNIT * sizes[:, 1]
        assert (errors <= bounds).all() and (sizes[:, 0] >= np.abs(expected).max(axis=1)).all()
        before = now
    assert np.median(bounds / errors) < 300.0


def test_rare_features_cost_their_tokens_alone():
    """By the work that is counted: not one step for each block of each feature."""
    n, S = 300_000, 8
    scores, changes = np.zeros((n, S), dtype=np.float32), np.ones((n, S), dtype=np.float32)
    tokens, starts = np.random.default_rng(0).permutation(n), np.arange(n + 1)
    looked = []
    look_every(1, lambda: looked.append(1))
    try:
        add_rows(scores, np.zeros((n, 2), dtype=np.float32), starts, tokens, None, np.arange(n), changes)
    finally:
        look_every()
    assert (scores == 1.0).all()
    assert 3 <= len(looked) <= 3 * n * S // 4 // (1 << 16)


@pytest.mark.parametrize("T", [1, 50, 3000])
def test_margins_of_long_sequences_are_right_within_their_error(T):
    """Scores of the whole grow, the rows that are summed do not: the error is far below a float's share of a score."""
    rng = np.random.default_rng(T)
    K, S = 3, 8
    scores, moves = np.full((T, S), -np.inf, dtype=np.float32), np.full((K, S), -np.inf, dtype=np.float32)
    scores[:, :K], moves[:, :K] = rng.uniform(18, 20, size=(T, K)), rng.uniform(0.9, 1, size=(K, K))
    edge, chunks = np.zeros(S, dtype=np.float32), chunk_tables(PARTS[:K])
    margin, values, near = np.empty(1), np.empty(1), np.zeros(1)
    doubts(scores, np.array([0, T]), moves, edge, edge, margin, values, "margin", 1.0, near, chunks)
    e, d = scores[:, :K].astype(np.float64), moves[:, :K].astype(np.float64)
    ahead, behind = [e[0]], [np.zeros(K)]
    for t in range(1, T):
        ahead.append(e[t] + (ahead[-1][:, None] + d).max(axis=0))
        behind.append((d + (e[-t] + behind[-1])).max(axis=1))
    best = np.sort(np.array(ahead) + np.array(behind[::-1]), axis=1)
    error = abs(margin[0] - (best[:, -1] - best[:, -2]).min())
    assert error <= near[0] and error < 1e-4
    # The decoder sums up to T scores of 20.
    assert near[0] >= 2.0 * 2.0**-24 * 19.0 * T * (T + 1) / 2


@pytest.mark.parametrize("strategy", KINDS)
def test_one_long_sequence_is_interrupted(strategy):
    """Within it, not after it: each loop over its tokens looks up."""
    T, S = 200_000, 8
    scores, moves = np.random.default_rng(0).normal(size=(T, S)).astype(np.float32), np.zeros((S, S), dtype=np.float32)
    edge, chunks, margin, values = moves[0].copy(), chunk_tables([PARTS[2]] * S), np.empty(1), np.empty(1)

    def run(most=None):
        """The number of looks; KeyboardInterrupt at the last one, if a number is given."""
        n = 0

        def look():
            nonlocal n
            n += 1
            if n == most:
                raise KeyboardInterrupt

        look_every(1, look)
        try:
            doubts(scores, np.array([0, T]), moves, edge, edge, margin, values, strategy, 1.0, np.zeros(1), chunks)
        except KeyboardInterrupt:
            assert n == most
        finally:
            look_every()
        return n

    n = run()
    assert n >= 40
    assert [run(most) for most in (1, n // 4, n // 2, 3 * n // 4, n)] == [1, n // 4, n // 2, 3 * n // 4, n]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scores", lambda x: x.astype(np.float64)),
        ("scores", lambda x: x[:-1]),
        ("offsets", lambda x: x.astype(np.int32)),
        ("moves", lambda x: x.T),
        ("begin", lambda x: x[:-1]),
        ("end", lambda x: x[::2]),
        ("pairs", lambda x: (x[0][:-1], *x[1:])),
        ("pairs", lambda x: (*x[:3], x[3].astype(np.float64))),
    ],
)
def test_arrays_of_other_kinds_are_refused(name, change):
    small = Small(0, 4)
    setattr(small, name, change(getattr(small, name)))
    with pytest.raises(ValueError, match=r"Buffer dtype|not C.contiguous|are wanted"):
        small.found("margin")


def test_changes_of_other_kinds_are_refused():
    arrays = [
        np.zeros((3, 8), dtype=np.float32),
        np.zeros((3, 2), dtype=np.float32),
        np.array([0, 1, 3]),
        np.array([0, 1, 2]),
        None,
        np.array([0, 1]),
        np.ones((2, 8), dtype=np.float32),
    ]
    add_rows(*arrays)
    assert arrays[0].sum() == 3 * 8
    for i, other in ((0, arrays[0].astype(np.float64)), (1, arrays[1][:2]), (6, arrays[6][:1]), (6, arrays[6].T)):
        with pytest.raises(ValueError, match=r"Buffer dtype|not C.contiguous|are wanted"):
            add_rows(*arrays[:i], other, *arrays[i + 1 :])
