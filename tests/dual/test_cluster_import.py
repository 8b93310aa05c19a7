"""The module of clusters where Dask's distributed is not installed."""

import sys

import pytest


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "structsvm.shards.cluster", raising=False)
    with pytest.raises(ImportError, match=r"^rounds on a Dask cluster need distributed: pip install 'structsvm\[clus"):
        import structsvm.shards.cluster  # noqa: F401
