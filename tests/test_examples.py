"""Every script in examples/ runs from any folder, without warnings and without the network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SLOW = {"chunking_conll2000.py"}
NEEDS = {"label_sequences.py": "matplotlib"}


def run(script, folder, *arguments, **environment):
    # A proxy that is not there: a download fails at once.
    offline = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **offline, **environment}
    command = [sys.executable, "-W", "error", str(FOLDER / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def scripts():
    for path in sorted(FOLDER.glob("*.py")):
        yield pytest.param(path.name, marks=pytest.mark.slow if path.name in SLOW else ())


@pytest.mark.parametrize("script", [*scripts()])
def test_runs(script, tmp_path):
    if script in NEEDS:
        pytest.importorskip(NEEDS[script])
    assert run(script, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_pictures_go_to_the_folder_that_is_named(tmp_path):
    pytest.importorskip("matplotlib")
    run("label_sequences.py", tmp_path, "made/here")
    made = {path.name for path in (tmp_path / "made" / "here").iterdir()}
    assert made == {"chunk.model", "confusion.png", "features.png", "history.png", "transitions.png"}


def test_missing_data_set_is_a_message(tmp_path):
    said = run("chunking_conll2000.py", tmp_path, STRUCTSVM_DATA=str(tmp_path))
    assert "STRUCTSVM_DATA" in said
    assert "conll2000" in said


@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.py")))
def test_says_what_it_shows(script):
    text = (FOLDER / script).read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert f"Run it: python examples/{script}" in text
