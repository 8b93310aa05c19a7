"""Rows of queries: the real files where STRUCTSVM_DATA has them, and the simulator."""

import gzip
import os
import re
import zipfile

import numpy as np
import pytest

from structsvm import datasets
from structsvm.datasets import _fetch, _sources

real_data = pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA does not name a data folder")


@real_data
def test_lightgbm(tmp_path):
    data = datasets.fetch_rank_lightgbm()
    assert repr(data) == "QueryRows(n_train=3005, n_test=768, n_features=300)"
    for X, y, qid, first, grades, largest in (
        (data.X_train, data.y_train, data.qid_train, 1, [645, 1211, 858, 222, 69], 27),
        (data.X_test, data.y_test, data.qid_test, 1001, [206, 256, 252, 44, 10], 24),
    ):
        assert X.shape == (len(y), 300) and X.dtype == np.float32 and X.format == "csr"
        assert 0.01 <= X.data.min() <= X.data.max() <= 1.0
        assert np.bincount(y.astype(int)).tolist() == grades and len(qid) == len(y)
        sizes = np.bincount(qid - first)
        assert (sizes > 0).all() and sizes.max() == largest and (np.diff(qid) >= 0).all()
    assert (len(np.unique(data.qid_train)), len(np.unique(data.qid_test))) == (201, 50)
    # The published files, laid out again as the origin's archive has them, give ours.
    source = _sources.SOURCES["rank_lightgbm"]
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("LightGBM-1/README.md", "")
        for part, qid in (("train", data.qid_train), ("test", data.qid_test)):
            text = gzip.decompress((data.path.parent / f"{part}.letor.gz").read_bytes()).decode()
            member = f"LightGBM-1/examples/lambdarank/rank.{part}"
            archive.writestr(member, re.sub(r" qid:\d+", "", text))
            archive.writestr(f"{member}.query", "".join(f"{n}\n" for n in np.unique(qid, return_counts=True)[1]))
    made = source.convert(tmp_path / "archive")
    for file in source.sha256:
        _fetch._checked(source, file, made[file], file)


def test_simulated():
    X, y, qid = datasets.make_rankings(2000, 4, max_rows=9, n_grades=4, noise=0.5, random_state=0)
    sizes = np.bincount(qid)[1:]
    assert len(sizes) == 2000 and (sizes.min(), sizes.max()) == (2, 9) and X.shape == (sizes.sum(), 4)
    assert np.unique(sizes, return_counts=True)[1] == pytest.approx([250] * 8, rel=0.2)
    np.testing.assert_allclose(np.bincount(y) / len(y), [0.5, 0.25, 0.125, 0.125], atol=0.015)
    for ours, again in zip((X, y, qid), datasets.make_rankings(2000, 4, max_rows=9, n_grades=4, noise=0.5,
                                                               random_state=0), strict=True):  # fmt: skip
        np.testing.assert_array_equal(ours, again)
    # Within queries the grades go with one direction, which two draws share; between them each query has its own.
    rows, grades, ids = datasets.make_rankings(2000, 4, n_grades=4, noise=0.0, random_state=1)

    def within(values, of):
        return values - (np.bincount(of, values) / np.maximum(np.bincount(of), 1))[of]

    centred = np.column_stack([within(x, qid) for x in X.T])
    w = np.linalg.lstsq(centred, within(y, qid), rcond=None)[0]
    assert np.corrcoef(within(rows @ w, ids), within(grades, ids))[0, 1] > 0.85
    assert np.corrcoef(rows @ w, grades)[0, 1] < 0.75
    calm, grades, _ = datasets.make_rankings(500, 4, shift=0.0, n_grades=2, noise=0.0, random_state=1)
    assert np.mean((calm @ w > 0.0) == grades) > 0.97


@pytest.mark.parametrize(
    "params",
    [{"n_queries": 0}, {"n_features": 0}, {"max_rows": 1}, {"n_grades": 1}, {"n_grades": 52}, {"noise": -1.0},
     {"shift": float("nan")}],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(params):
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of make_rankings must be"):
        datasets.make_rankings(**params)


def test_label_sets_follow_their_distribution():
    """Frequencies of sets at one temperature, by the formula; none of rows without features that say anything."""
    X, y = datasets.make_label_sets(4000, 1, 3, strength=2.0, random_state=0)
    assert all(
        np.array_equal(a, b)
        for a, b in zip((X, y), datasets.make_label_sets(4000, 1, 3, strength=2.0, random_state=0), strict=True)
    )
    truth = np.random.default_rng([1, 3])
    w = np.sign(truth.normal(size=3))
    t = np.triu(truth.normal(size=(3, 3)), 1) * 2.0 / 2.0**0.5
    sets = np.array([[k >> j & 1 for j in range(3)] for k in range(8)])
    score = 2.0 * ((X * w) @ sets.T + 2.0 * np.einsum("kj,jl,kl->k", sets - 0.5, t, sets - 0.5))
    p = np.exp(score - score.max(axis=1, keepdims=True))
    expected = (p / p.sum(axis=1, keepdims=True)).mean(axis=0)
    found = np.bincount(y @ [1, 2, 4], minlength=8) / 4000
    np.testing.assert_allclose(found, expected, atol=0.025)


@pytest.mark.parametrize("params", [{"n_labels": 0}, {"noise": 0.0}, {"strength": -1.0}, {"n_samples": 1.5}], ids=str)
def test_what_label_sets_refuse(params):
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of make_label_sets must be"):
        datasets.make_label_sets(**params)
