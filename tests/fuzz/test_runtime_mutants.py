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

import candidate_models  # noqa: E402
import document_models  # noqa: E402
import parser_models  # noqa: E402
from runtime_models import COMPILER, MODELS, RUNTIME, SOURCES, arrays_of, fitted  # noqa: E402

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
OPTIONS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
# No mutant of files of 90 kB at most asks for more at once.
ENVIRONMENT = {"ASAN_OPTIONS": "max_allocation_size_mb=64", "LSAN_OPTIONS": ""}


def compiled(folder, structure):
    """The program, or None if the compiler has no sanitizers."""
    program = folder / "runtime_mutants"
    files = [str(FOLDER / "runtime_mutants.c"), str(SOURCES[structure]), "-I", str(RUNTIME), "-lm", "-o", str(program)]
    done = subprocess.run([COMPILER, *OPTIONS, *SANITIZERS, *files], capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr + done.stdout:
        return None
    assert done.returncode == 0, done.stderr
    return program


CANDIDATES = [*candidate_models.TEXTS, *candidate_models.ROWS]
# Models of kinds: the structure of their source, their names, and how each is exported.
KINDS = {
    "sequences": ("sequences", MODELS, lambda name, folder: fitted(name).export(folder)),
    "documents": (
        "documents", document_models.MODELS, lambda name, folder: document_models.fitted(name).export(folder)
    ),
    "candidates": ("documents", CANDIDATES, candidate_models.export),
    "trees": ("trees", parser_models.MODELS, parser_models.export),
}  # fmt: skip


def exported(folder, kind):
    paths, (_, names, export) = [], KINDS[kind]
    for name in names:
        export(name, folder / name)
        paths.append(str(folder / name / "model.bin"))
    return paths


def run(folder, kind, seed, count):
    """Numbers of mutants, of those opened, of what these gave, and of those refused; None without sanitizers."""
    program = compiled(folder, KINDS[kind][0])
    if program is None:
        return None
    command = [str(program), str(seed), str(count), *exported(folder, kind)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(number) for number in re.findall(r"[0-9]+", done.stdout)]


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_is_read_or_used_beyond_its_bytes(kind, tmp_path):
    found = run(tmp_path, kind, 1, 100)
    if found is None:
        pytest.skip("the compiler has no sanitizers")
    mutants, opened, used, refused = found
    assert mutants == 100 * len(KINDS[kind][1])
    assert (
        mutants // 20 < opened < mutants // 2
    )  # neither are all refused by the checksum, nor are the faults too small
    assert used > opened // 2
    assert refused == mutants - opened


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", ["records", "functions"])
def test_letters_whose_lower_case_takes_four_times_their_bytes(name, tmp_path):
    program = compiled(tmp_path, "sequences")
    if program is None:
        pytest.skip("the compiler has no sanitizers")
    fitted(name).export(tmp_path)
    data = bytearray((tmp_path / "model.bin").read_bytes())
    arrays = arrays_of(data)
    first = [array.itemsize for array in arrays].index(2)  # pages of letters are the first numbers of two bytes
    pages, kinds, flags, lower = arrays[first : first + 4]
    kind = kinds[128 * int(pages[0]) + ord("A")]
    assert len(flags) == len(lower) and lower[kind] == 32
    lower[kind] = 0x10000
    (tmp_path / "model.bin").write_bytes(data)
    command = [str(program), "1", "0", str(tmp_path / "model.bin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("1 mutants: 1 opened, ")


if __name__ == "__main__":
    for one in KINDS:
        with tempfile.TemporaryDirectory() as name:
            print(one, run(Path(name), one, int(sys.argv[1]), int(sys.argv[2])), flush=True)
