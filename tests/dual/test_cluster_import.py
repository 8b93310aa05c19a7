"""The modules of clusters where Dask's distributed, or Ray, is not installed."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "engine", "message"),
    [
        ("cluster", "distributed", r"^rounds on a Dask cluster need distributed: pip install 'structsvm\[cluster\]'$"),
        ("ray_cluster", "ray", r"^rounds on a Ray cluster need ray: pip install 'structsvm\[ray\]'$"),
    ],
    ids=["dask", "ray"],
)
def test_the_error_names_the_extra(monkeypatch, module, engine, message):
    monkeypatch.setitem(sys.modules, engine, None)
    monkeypatch.delitem(sys.modules, f"structsvm.shards.{module}", raising=False)
    with pytest.raises(ImportError, match=message):
        importlib.import_module(f"structsvm.shards.{module}")
