"""The programs that label with an exported model, and what they read and print."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from common.measure import run_command, run_module
from runtime.browser import CHROMIUM, measured_in_browser
from structsvm.export.folders import WASM, compiled_wasm

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "structsvm" / "export" / "runtime"
C_OPTIONS = ("-std=c99", "-O3", "-ffp-contract=off")
PYTHON, C, NODE, BROWSER = "Python", "C", "WebAssembly in Node", "WebAssembly in Chromium"


def made(folder):
    """Compile the programs in a folder; returns their names, beside Python those that the machine has."""
    source = [str(HERE / "tag.c"), str(RUNTIME / "structsvm_sequences.c"), "-I", str(RUNTIME)]
    subprocess.run(["cc", *C_OPTIONS, *source, "-lm", "-o", str(folder / "tag")], check=True)
    try:
        (folder / WASM).write_bytes(compiled_wasm("sequences"))
    except ImportError:
        return [C]
    for path in (HERE / "tag.mjs", HERE / "tag.html", HERE / "measured.mjs", RUNTIME / "structsvm.mjs"):
        shutil.copy(path, folder)
    found = ((C, True), (NODE, shutil.which("node")), (BROWSER, CHROMIUM))
    return [name for name, is_there in found if is_there]


def written(folder, X):
    """Write sentences for programs: a line per token, its texts between tabs, and an empty one behind each; JSON."""
    lines = ["".join("\t".join(texts_of(token)) + "\n" for token in x) for x in X]
    (folder / "words").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "words.json").write_text(json.dumps(X), encoding="utf-8")


def texts_of(token):
    """Texts of a token that the program in C reads: the word, its columns, or of a dict the names of its features."""
    if isinstance(token, dict):
        return [name for key, value in token.items() for name in names_of(key, value)]
    return [token] if isinstance(token, str) else token


def names_of(key, value):
    """The names of a feature, as Python has them: those of a dict within it, none of a false one."""
    if isinstance(value, dict):
        return [f"{key}:{name}" for inner, own in value.items() for name in names_of(inner, own)]
    return [f"{key}:{value}" if isinstance(value, str) else key] if value is not False else []


def measured(program, folder):
    """Label the sentences of a folder with its model, model.svm or model.bin: what `tag.c` prints, as a dict."""
    if program == PYTHON:
        found = run_module("runtime.program", str(folder / "model.svm"), str(folder / "words.json"))
        return found | {"labels": [label for sentence in found["labels"] for label in sentence]}
    if program == BROWSER:
        return measured_in_browser(folder)
    files = [folder / "model.bin", folder / "words"]
    command = [folder / "tag", *files] if program == C else [shutil.which("node"), folder / "tag.mjs", *files]
    return json.loads(run_command(command).stdout)
