"""Scores of rankings against scikit-learn's, and their means over queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from structsvm.metrics import average_precision, break_even_point, ndcg, ordered_pairs, precision_at_k, ranking_scores


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), ties=st.booleans())
def test_scores_of_one_ranking(seed, n, ties):
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 4, n), rng.integers(0, 3, n) if ties else rng.normal(size=n)
    y[:2] = 0, 1
    for k in (None, 1, 3, n, n + 5):
        assert ndcg(y, s, k) == pytest.approx(sklearn.ndcg_score([2.0**y - 1.0], [s], k=k))
    assert average_precision(y, s) == pytest.approx(sklearn.average_precision_score(y > 0, s))
    assert ordered_pairs(y > 0, s) == pytest.approx(sklearn.roc_auc_score(y > 0, s))
    pairs = [(s[i] > s[j]) + 0.5 * (s[i] == s[j]) for i in range(n) for j in range(n) if y[i] > y[j]]
    assert ordered_pairs(y, s) == pytest.approx(np.mean(pairs))
    if not ties:
        best = (y > 0)[np.argsort(-s)].astype(float)
        assert [precision_at_k(y, s, k) for k in (1, n)] == pytest.approx([best[0], best.mean()])
        assert break_even_point(y, s) == pytest.approx(best[: int(best.sum())].mean())


def test_equal_scores_share_their_places():
    assert precision_at_k([1, 0, 0, 1], [2.0, 1.0, 1.0, 1.0], 2) == pytest.approx((1 + 1 / 3) / 2)
    assert break_even_point([1, 0, 0, 1], [2.0, 1.0, 1.0, 1.0]) == pytest.approx((1 + 1 / 3) / 2)


def test_means_are_over_queries_that_say_something():
    y, s = np.array([2, 0, 1, 1, 1, 0, 0, 1, 0]), np.arange(9.0)
    scores = ranking_scores(y, s, group=[3, 2, 2, 2], at=(k for k in (1, 2)))
    assert scores.n_queries == 2
    parts = [slice(0, 3), slice(7, 9)]
    assert scores.ndcg == pytest.approx(np.mean([ndcg(y[p], s[p]) for p in parts]))
    assert scores.ndcg_at[1] == pytest.approx(np.mean([ndcg(y[p], s[p], 1) for p in parts]))
    assert scores.map == pytest.approx(np.mean([average_precision(y[p], s[p]) for p in parts]))
    assert scores.pairs == pytest.approx(np.mean([ordered_pairs(y[p], s[p]) for p in parts]))
    assert scores == ranking_scores(y, s, qid=list("aaabbccdd"), at=(1, 2))
    nothing = ranking_scores([0, 0], [1.0, 2.0], group=[2])
    assert np.isnan([nothing.ndcg, nothing.map, nothing.pairs]).all() and nothing.n_queries == 0
    for dull in (1, 3):  # any ranking is perfect
        assert ndcg([dull] * 3, [1.0, 2.0, 3.0]) == average_precision([dull] * 3, [1.0, 2.0, 3.0]) == 1.0
        assert ranking_scores([dull] * 3 + [0, 2], [1, 2, 3, 5, 4], group=[3, 2]) == ranking_scores(
            [0, 2], [5, 4], group=[2]
        )
        assert np.isnan(ranking_scores([dull] * 3, [1, 2, 3], group=[3]).ndcg_at[1])
    assert np.isnan(average_precision([], [])) and np.isnan(ndcg([], [])) and np.isnan(break_even_point([0], [1.0]))


def test_bad_input():
    for group, qid, words in (
        ([2, 2], None, "adds up to 4 rows, X has 3"),
        ([3, 0], None, "integers >= 1"),
        ([1.5, 1.5], None, "integers >= 1"),
        (None, [1, 2], r"qid has shape \(2,\), expected \(3,\)"),
        (None, [1, 2, 1], "query 1 begins in row 0 and again in row 2"),
        ([3], [1, 1, 1], "one of them"),
        (None, None, r"queries are not known: give group= .* or qid= .*group=\[3\] says that all rows are of one"),
    ):
        with pytest.raises(ValueError, match=words):
            ranking_scores([1, 0, 0], [1.0, 2.0, 3.0], group=group, qid=qid)
    with pytest.raises(ValueError, match="k must be from 1 to the number of rows, 3, got 4"):
        precision_at_k([1, 0, 0], [1.0, 2.0, 3.0], 4)
    for k in (0, -1, 1.5, True):
        for score in (precision_at_k, ndcg, lambda y, s, k: ranking_scores(y, s, group=[3], at=[1, k])):
            with pytest.raises(ValueError, match="k must be an integer of at least 1, got"):
                score([1, 0, 1], [1.0, 2.0, 0.0], k)
    with pytest.raises(ValueError, match="one number per row"):
        ndcg([1, 0], [1.0])
    with pytest.raises(ValueError, match="finite"):
        ndcg([1, 0], [1.0, np.nan])


def test_grades_that_have_no_gain_or_a_huge_one():
    with pytest.raises(ValueError, match="grades must be at least 0, got -1"):
        ndcg([-1, 2], [1.0, 2.0])
    assert ndcg([0, 1000, 2000], [1.0, 2.0, 3.0]) == 1.0 and ndcg([0, 1000, 2000], [3.0, 2.0, 1.0]) == 0.5
