"""The modules of clusters where Dask's distributed, or Ray, is not installed."""

import importlib
import re
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "engine", "message"),
    [
        ("cluster", "distributed", "a Dask cluster need distributed: pip install 'structured-svm[cluster]'"),
        ("ray_cluster", "ray", "a Ray cluster need ray: pip install 'structured-svm[ray]'"),
    ],
    ids=["dask", "ray"],
)
def test_the_error_names_the_extra(monkeypatch, module, engine, message):
    monkeypatch.setitem(sys.modules, engine, None)
    monkeypatch.delitem(sys.modules, f"structsvm.shards.{module}", raising=False)
    with pytest.raises(ImportError, match=f"^rounds on {re.escape(message)}$"):
        importlib.import_module(f"structsvm.shards.{module}")
