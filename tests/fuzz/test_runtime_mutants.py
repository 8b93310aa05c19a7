"""Mutants of exported models in the runtime in C, under sanitizers of addresses and of undefined behaviour.

``python tests/fuzz/test_runtime_mutants.py SEED COUNT`` reads COUNT mutants of each of the models.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "reference"))

from runtime_models import COMPILER, MODELS, SOURCE, fitted  # noqa: E402

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
OPTIONS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
# No mutant of files of 90 kB at most asks for more at once.
ENVIRONMENT = {"ASAN_OPTIONS": "max_allocation_size_mb=64", "LSAN_OPTIONS": ""}


def compiled(folder):
    """The program, or None if the compiler has no sanitizers."""
    program = folder / "runtime_mutants"
    files = [str(FOLDER / "runtime_mutants.c"), str(SOURCE), "-I", str(SOURCE.parent), "-lm", "-o", str(program)]
    done = subprocess.run([COMPILER, *OPTIONS, *SANITIZERS, *files], capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr + done.stdout:
        return None
    assert done.returncode == 0, done.stderr
    return program


def exported(folder):
    paths = []
    for name in MODELS:
        fitted(name).export(folder / name)
        paths.append(str(folder / name / "model.bin"))
    return paths


def run(folder, seed, count):
    """Numbers of mutants, of those opened, of what these gave, and of those refused; None without sanitizers."""
    program = compiled(folder)
    if program is None:
        return None
    command = [str(program), str(seed), str(count), *exported(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(number) for number in re.findall(r"[0-9]+", done.stdout)]


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_no_mutant_is_read_or_used_beyond_its_bytes(tmp_path):
    found = run(tmp_path, 1, 100)
    if found is None:
        pytest.skip("the compiler has no sanitizers")
    mutants, opened, used, refused = found
    assert mutants == 100 * len(MODELS)
    assert (
        mutants // 20 < opened < mutants // 2
    )  # neither are all refused by the checksum, nor are the faults too small
    assert used > opened // 2
    assert refused == mutants - opened


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(run(Path(name), int(sys.argv[1]), int(sys.argv[2])))
