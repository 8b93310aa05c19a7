"""Every script in examples/ runs from any folder, without warnings and without the network."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from structsvm import datasets
from structsvm.datasets import fetch_conll2000, make_sequences

FOLDER = Path(__file__).parents[1] / "examples"
SLOW = {"chunking_conll2000.py", "neural_tagger.py"}
DRAWN = (
    "align_sequences", "align_words", "ask_a_pool", "batch_training", "classify_taxonomy", "label_graphs",
    "label_segments", "label_sequences", "label_sets", "new_oracle", "parse_dependencies", "parse_treebank",
    "rank_queries", "semantic_parsing", "tune_C",
)  # fmt: skip
NEEDS = {"neural_tagger.py": "jax", "serve_tagger.py": "fastapi"} | {f"{name}.py": "matplotlib" for name in DRAWN}


def few_of(data):
    """Enough of a real data set to run a script on."""
    return replace(data, X_train=data.X_train[:500], y_train=data.y_train[:500])


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a script as Python does, in this process and a folder of its own; returns what it prints."""

    def run(script, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        monkeypatch.setattr("time.sleep", lambda seconds: None)  # an oracle that is slow on purpose
        monkeypatch.setattr(datasets, "make_sequences", lambda n, **params: make_sequences(min(n, 100), **params))
        monkeypatch.setattr(datasets, "fetch_conll2000", lambda: few_of(fetch_conll2000()))
        for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # not there: a download fails at once
        runpy.run_path(str(FOLDER / script), run_name="__main__")
        return capsys.readouterr().out

    monkeypatch.setenv("MPLBACKEND", "agg")
    yield run
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def scripts():
    for path in sorted(FOLDER.glob("*.py")):
        yield pytest.param(path.name, marks=pytest.mark.slow if path.name in SLOW else ())


@pytest.mark.parametrize("script", [*scripts()])
def test_runs(script, run, tmp_path):
    if script in NEEDS:
        pytest.importorskip(NEEDS[script])
    assert run(script)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_pictures_go_to_the_folder_that_is_named(run, tmp_path):
    pytest.importorskip("matplotlib")
    run("label_sequences.py", "made/here")
    made = {path.name for path in (tmp_path / "made" / "here").iterdir()}
    assert made == {"address.model", "confusion.png", "features.png", "history.png", "transitions.png"}


def test_missing_data_set_is_a_message(run, tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTSVM_DATA", str(tmp_path))
    said = run("chunking_conll2000.py")
    assert "STRUCTSVM_DATA" in said
    assert "conll2000" in said


@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.py")))
def test_says_what_it_shows(script):
    text = (FOLDER / script).read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert f"Run it: python examples/{script}" in text
    assert text.splitlines()[1].endswith("?")  # begins with a question


@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.py")))
def test_has_a_thumbnail(script):
    """A picture that it draws, or one that it names."""
    text = (FOLDER / script).read_text(encoding="utf-8")
    assert script.removesuffix(".py") in DRAWN or "# sphinx_gallery_thumbnail_path = " in text
