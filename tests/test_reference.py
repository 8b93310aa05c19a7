"""The examples of the reference: each public name has one in its docstring, and what it shows is what comes out."""

import doctest
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

from structsvm import Oracle
from structsvm.datasets import DatasetUnavailableError

spec = importlib.util.spec_from_file_location("reference_names", Path(__file__).parents[1] / "docs" / "names.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

NEEDS = {"plotting": "matplotlib", "layers.jax": "jax", "layers.torch": "torch"}
# Real data of which there is a lot to read; the other sets show that readers' examples are run.
SLOW = {
    f"datasets.{name}"
    for name in (
        "DependencyTreebank",
        "Treebank",
        "fetch_adult",
        "fetch_conll2002",
        "fetch_mnist",
        "fetch_treebank_sample",
        "fetch_ud_dutch",
        "fetch_ud_english_ewt",
        "fetch_w8a",
    )
}


def documented():
    """The classes and functions of the reference, by name; instances are documented by their classes."""
    for module in reference.modules():
        for name in reference.public_names(module):
            item = getattr(importlib.import_module(module), name)
            if inspect.isclass(item) or inspect.isroutine(item):
                yield f"{module}.{name}".removeprefix("structsvm."), item


ITEMS = dict(documented())


def example_of(name):
    """The section of examples, in a namespace of its own: it imports all that it uses."""
    _, _, section = inspect.cleandoc(ITEMS[name].__doc__ or "").partition("\nExamples\n--------\n")
    return doctest.DocTestParser().get_doctest(section, {"__name__": "__main__"}, name, None, None)


def names():
    for name in ITEMS:
        yield pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())


def test_the_page_lists_what_is_public():
    """``python docs/names.py`` writes it again."""
    assert reference.REFERENCE.read_text(encoding="utf-8") == reference.page()
    assert len(reference.modules()) == len(set(reference.modules()))


def test_every_oracle_is_public():
    """The bases of several, which are abstract, need not be."""
    for path in sorted((reference.ROOT / "oracles").glob("[a-z]*.py")):
        module = importlib.import_module(f"structsvm.oracles.{path.stem}")
        own = [k for k in vars(module).values() if inspect.isclass(k) and k.__module__ == module.__name__]
        made = [kind.__name__ for kind in own if issubclass(kind, Oracle) and not inspect.isabstract(kind)]
        assert set(made) <= set(getattr(module, "__all__", ())), module.__name__


def test_every_name_has_an_example():
    assert len(ITEMS) > 150
    assert [name for name in ITEMS if not example_of(name).examples] == []


@pytest.fixture
def quiet(tmp_path, monkeypatch):
    """No windows, no network, temporary files where they are cleared away."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # not there: a download fails at once
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("name", [*names()])
def test_example(name, quiet):
    pytest.importorskip(NEEDS.get(name.partition(".")[0], NEEDS.get(name.rpartition(".")[0], "numpy")))
    try:
        doctest.DebugRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(example_of(name), out=lambda text: None)
    except doctest.DocTestFailure as failure:
        pytest.fail(f"{failure.example.source}wanted: {failure.example.want}got: {failure.got}", pytrace=False)
    except doctest.UnexpectedException as failure:
        if isinstance(failure.exc_info[1], DatasetUnavailableError):
            pytest.skip(f"{name} is not here")
        raise failure.exc_info[1] from None
