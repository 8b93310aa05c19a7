"""The programs that measure the runtime: what they count, and one rule of how often."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from itertools import chain, pairwise
from pathlib import Path

import pytest

from structsvm.datasets import make_addresses
from structsvm.metrics import field_f1
from structsvm.tasks import SequenceLabeler

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUNTIME = Path(__file__).parents[2] / "structsvm" / "export" / "runtime"
RULE = r"\b(FEWEST_RUNS|MOST_RUNS|LEAST)\b *=? *([0-9.]+)"


@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and cc")
def test_memory_of_a_model_has_no_test_set_in_it(tmp_path):
    X, y = make_addresses(100, random_state=0)
    SequenceLabeler(C=1.0, random_state=0).fit(X, y).export(tmp_path)
    source = [str(BENCHMARKS / "runtime" / "tag.c"), str(RUNTIME / "structsvm_sequences.c"), "-I", str(RUNTIME)]
    subprocess.run(["cc", "-std=c99", "-O1", *source, "-lm", "-o", str(tmp_path / "tag")], check=True)
    found = []
    for times in (1, 50):
        (tmp_path / "words").write_text("".join("\n".join(x) + "\n\n" for x in X * times))
        done = subprocess.run([tmp_path / "tag", tmp_path / "model.bin", tmp_path / "words"], capture_output=True)
        found.append(json.loads(done.stdout))
        assert len(found[-1]["labels"]) == times * sum(map(len, X))
    # The words and labels of the longer file are more than 1 MB.
    assert found[0]["labels"] * 50 == found[1]["labels"] and found[1]["resident"] < found[0]["resident"] + 0.3


def test_programs_are_run_equally_often():
    texts = [(BENCHMARKS / name).read_text() for name in ("runtime/tag.c", "runtime/measured.mjs")]
    c, mjs = ({name: float(value) for name, value in re.findall(RULE, text)} for text in texts)
    (own,) = re.findall(
        r"^FEWEST_RUNS, MOST_RUNS, LEAST_SECONDS = (\d+), (\d+), ([0-9.]+)$",
        (BENCHMARKS / "common" / "measure.py").read_text(),
        re.MULTILINE,
    )
    fewest, most, seconds = map(float, own)
    assert c == {"FEWEST_RUNS": fewest, "MOST_RUNS": most, "LEAST": seconds}
    assert mjs == {"FEWEST_RUNS": fewest, "MOST_RUNS": most, "LEAST": 1e3 * seconds}


@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and cc")
def test_features_of_dicts_are_labelled_as_in_python(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delitem(sys.modules, "runtime", raising=False)
    programs = importlib.import_module("runtime.programs")
    X, y = make_addresses(60, random_state=0)
    features = [
        [{"word": word, "digits": any(map(str.isdigit, word)), "next": {"word": after, "is last": not after}}
         for word, after in pairwise([*x, ""])]
        for x in X
    ]  # fmt: skip
    labeler = SequenceLabeler(C=1.0, random_state=0).fit(features, y)
    labeler.export(tmp_path)
    programs.written(tmp_path, features)
    source = [str(BENCHMARKS / "runtime" / "tag.c"), str(RUNTIME / "structsvm_sequences.c"), "-I", str(RUNTIME)]
    subprocess.run(["cc", *programs.C_OPTIONS, *source, "-lm", "-o", str(tmp_path / "tag")], check=True)
    assert programs.measured("C", tmp_path)["labels"] == [*chain.from_iterable(labeler.predict(features))]
    assert programs.texts_of(features[0][-1])[1:] == ["next:word:", "next:is last"]


def test_a_fall_of_f1_is_that_of_the_metric(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delitem(sys.modules, "runtime", raising=False)
    paired = importlib.import_module("runtime.paired")
    for gold, before, after in (
        ([["B-A", "I-A", "O"], ["B-A"]], [["B-A", "I-A", "O"], ["B-A"]], [["B-A", "O", "O"], ["B-A"]]),
        ([["x", "x", "y"], ["z"]], [["x", "x", "y"], ["y"]], [["x", "y", "y"], ["z"]]),
    ):
        worse, error = paired.fall(gold, before, after)
        assert worse == pytest.approx(100.0 * (field_f1(gold, before) - field_f1(gold, after)))
        assert error > 0.0
        assert paired.fall(gold, before, before) == (0.0, 0.0)
