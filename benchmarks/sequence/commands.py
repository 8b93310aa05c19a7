"""Competitors that are programs of their own: Wapiti (limsi.fr) and CRF++.

Both are found on the PATH, or by the environment variables WAPITI and CRF_LEARN; without
them their rows are left out. (Debian's package "wapiti" is another program, a scanner of web pages. The
source of the right one is in the sdist of PyPI's libwapiti; CRF++ comes with PyPI's crfpy.)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from common.measure import run_command
from sequence.attributes import read_attributes

COPIES = 11  # tagging is timed as the difference between so many copies of the test sentences and one


def found(variable, name):
    """Path of a program, or None."""
    return os.environ.get(variable) or shutil.which(name)


def answer(path, option):
    """Output of a program for an option, such as its version."""
    if path is None:
        return ""
    try:
        done = subprocess.run([path, option], check=False, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def wapiti():
    """Path and version of Wapiti, the sequence labeller; None if it is not installed."""
    path = found("WAPITI", "wapiti")
    match = re.match(r"Wapiti v([\d.]+)\s+Optimization mode", answer(path, "--version"))
    return (path, match[1]) if match else None


def crfpp():
    """Paths of crf_learn and crf_test and the version of CRF++; None if it is not installed."""
    learn = found("CRF_LEARN", "crf_learn")
    match = re.match(r"CRF\+\+ of ([\d.]+)", answer(learn, "--version"))
    return (learn, str(Path(learn).with_name("crf_test")), match[1]) if match else None


# ---- Wapiti ------------------------------------------------------------------------------------


def run_wapiti(task, limit):
    """Train and label; `task` as for `sequence.peer`, `settings` has the algorithm."""
    path, _ = wapiti()
    folder = Path(task["model"]).parent
    data = [write_raw(folder / "wapiti.train", task["attributes"], 1, labelled=True)]
    data += [write_raw(folder / f"wapiti{k}.test", task["test"], k, labelled=False) for k in (1, COPIES)]
    trained = run_command(
        [path, "train", "-t", "1", "-a", task["settings"]["algorithm"], data[0], task["model"]], limit=limit
    )
    seconds = [float(s) for s in re.findall(r"time=[\d.]+s/([\d.]+)s", trained.stdout + trained.stderr)]
    once, often = (
        run_command([path, "label", "-l", "-m", task["model"], file, file.with_suffix(".out")]) for file in data[1:]
    )
    result = {
        "features": trained.wall - seconds[-1],
        "train": seconds[-1],
        "cpu": trained.cpu,
        "peak": trained.peak,
        "model": Path(task["model"]).stat().st_size / 1e6,
        "passes": len(seconds),
        "in_time": trained.in_time,
    }
    predicted = label_blocks(data[1].with_suffix(".out"), -1)
    return result | {"tag_attributes": speed(predicted, once, often)}, predicted


def write_raw(path, attributes, copies, *, labelled):
    """Wapiti's raw format: attributes of single labels ("u"), one of label pairs ("b"), the label."""
    lines = []
    for sentence, labels in read_attributes(attributes):
        for token, label in zip(sentence, labels, strict=True):
            lines.append(" ".join([*("u" + name for name in token), "b", *([label] if labelled else [])]))
        lines.append("")
    path.write_text(("\n".join(lines) + "\n") * copies, encoding="utf-8")
    return path


# ---- CRF++ -------------------------------------------------------------------------------------


def run_crfpp(task, limit):
    """Train and test from the column text, by CRF++'s own templates, or by those that the task has as a text."""
    from structsvm.features.templates import built_in_templates

    learn, test, _ = crfpp()
    folder = Path(task["model"]).parent
    templates, copies = folder / "templates", folder / "crfpp.test"
    text = task.get("template_text") or built_in_templates(task["templates"], 2)
    templates.write_text(text, encoding="utf-8")
    copies.write_text(Path(task["test_text"]).read_text(encoding="utf-8") * COPIES, encoding="utf-8")
    trained = run_command(
        [
            learn,
            "-f",
            task["min_count"],
            "-p",
            "1",
            "-a",
            task["settings"]["algorithm"],
            templates,
            task["train_text"],
            task["model"],
        ],
        limit=limit,
    )
    reading = float(re.search(r"Done!\s*([\d.]+) s", trained.stdout)[1])
    outputs = [folder / "crfpp.out1", folder / "crfpp.out"]
    once, often = (
        run_command([test, "-m", task["model"], "-o", out, file])
        for out, file in zip(outputs, (task["test_text"], copies), strict=True)
    )
    result = {
        "features": reading,
        "train": trained.wall - reading,
        "cpu": trained.cpu,
        "peak": trained.peak,
        "model": Path(task["model"]).stat().st_size / 1e6,
        "passes": trained.stdout.count("iter="),
        "in_time": trained.in_time,
    }
    predicted = label_blocks(outputs[0], -1)
    return result | {"tag_text": speed(predicted, once, often)}, predicted


# ---- both --------------------------------------------------------------------------------------


def label_blocks(path, column):
    """Labels of each sentence, from a column of an output file."""
    blocks = re.split(r"\n[ \t]*\n", Path(path).read_text(encoding="utf-8").strip("\n"))
    return [[line.split()[column] for line in block.split("\n")] for block in blocks]


def speed(predicted, once, often):
    """Tokens per second, without start and model loading."""
    return (COPIES - 1) * sum(map(len, predicted)) / max(often.wall - once.wall, 1e-9)
