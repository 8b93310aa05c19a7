"""Mutants of exported models in the runtime in C, under sanitizers of addresses and of undefined behaviour.

``python tests/fuzz/test_runtime_mutants.py SEED COUNT [KIND...]`` reads COUNT mutants of each of the small models, of
all kinds or of those named.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "reference"))

import candidate_models  # noqa: E402
import document_models  # noqa: E402
import parser_models  # noqa: E402
from runtime_models import COMPILER, MODELS, RUNTIME, SEGMENTS, SOURCES, arrays_of, fitted  # noqa: E402

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
OPTIONS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
N_PAGES = 8  # 128 letters each
# No mutant of files of 200 kB at most asks for more at once. What is freed is used again soon: most of the time would
# otherwise go to memory that was not touched yet.
ENVIRONMENT = {
    "ASAN_OPTIONS": "max_allocation_size_mb=64:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:"
    "malloc_context_size=1",
    "LSAN_OPTIONS": "",
}
FEW = 12  # sequences, texts or sentences of which small models are made


@cache
def programs():
    """The folder of the programs, one per structure; it goes with the process."""
    return tempfile.TemporaryDirectory()


@cache
def compiled(structure):
    """The program, or None if the compiler has no sanitizers."""
    program = Path(programs().name) / structure
    source = f'-DSOURCE="{SOURCES[structure]}"'
    files = [str(FOLDER / "runtime_mutants.c"), source, "-I", str(RUNTIME), "-lm", "-o", str(program)]
    done = subprocess.run([COMPILER, *OPTIONS, *SANITIZERS, *files], capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr + done.stdout:
        return None
    assert done.returncode == 0, done.stderr
    return program


CHAINS = [name for name in MODELS if name not in SEGMENTS]
CANDIDATES = [*candidate_models.TEXTS, *candidate_models.ROWS]
# Models of kinds: the structure of their source, their names, and what exports one of n inputs.
KINDS = {
    "sequences": ("sequences", CHAINS, lambda name, folder, *n: fitted(name, *n).export(folder)),
    "segments": ("segments", SEGMENTS, lambda name, folder, *n: fitted(name, *n).export(folder)),
    "documents": (
        "documents",
        document_models.MODELS,
        lambda name, folder, *n: document_models.fitted(name, *n).export(folder),
    ),
    "candidates": ("documents", CANDIDATES, lambda name, folder, *n: candidate_models.export(name, folder, "c", *n)),
    "trees": ("trees", parser_models.MODELS, lambda name, folder, *n: parser_models.fitted(name, *n).export(folder)),
}


def exported(folder, kind, *n):
    """Files of models, of n inputs, in a folder."""
    paths, (_, names, export) = [], KINDS[kind]
    for name in names:
        export(name, folder / name, *n)
        path = folder / name / "model.bin"
        path.write_bytes(with_few_letters(path.read_bytes()))
        paths.append(str(path))
    return paths


def with_few_letters(data):
    """The same model with properties of the letters below 1024 alone: most of a small model's bytes are all others'."""
    heads, arrays = heads_of(data), arrays_of(data)
    first = next((i for i, two in enumerate(pairwise(arrays)) if are_letters(*two)), None)
    if first is None:
        return data
    rows, pages = np.unique(arrays[first][:N_PAGES], return_inverse=True)
    letters = arrays[first + 1].reshape(-1, 128)[rows].ravel()
    kinds = np.union1d([0], letters)
    arrays[first : first + 4] = [
        pages.astype("<u2"),
        np.searchsorted(kinds, letters).astype("u1"),
        *(array[kinds] for array in arrays[first + 2 : first + 4]),
    ]
    parts = []
    for kind, array in zip(heads, arrays, strict=True):
        parts += [struct.pack("<IIQ", kind, 0, len(array)), array.tobytes(), bytes(-array.nbytes % 8)]
    body = b"".join(parts)
    rest = struct.pack("<Q", 24 + len(body)) + body
    return data[:12] + struct.pack("<I", crc32(rest)) + rest


def are_letters(pages, kinds):
    """Whether two arrays are rows of pages of letters, and the kinds of letters, 128 of them in each row."""
    is_of_pages = pages.itemsize == 2 and kinds.itemsize == 1 and len(pages) > 0
    return is_of_pages and len(kinds) == 128 * (int(pages.max()) + 1)


def heads_of(data):
    """The kinds of the arrays of a model."""
    at, found = 24, []
    while at < len(data):
        kind, _, count = struct.unpack_from("<IIQ", data, at)
        found.append(kind)
        at += 16 + (count * (kind & 15) + 7) // 8 * 8
    return found


def run(folder, kind, seed, count, *n):
    """Numbers of mutants, of those opened, of what these gave, and of those refused; None without sanitizers."""
    program = compiled(KINDS[kind][0])
    if program is None:
        return None
    command = [str(program), str(seed), str(count), *exported(folder, kind, *n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(number) for number in re.findall(r"[0-9]+", done.stdout)]


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("n", [(), (FEW,)], ids=["whole", "small"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_is_read_or_used_beyond_its_bytes(kind, n, tmp_path):
    found = run(tmp_path, kind, 1, 100, *n)
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
    program = compiled("sequences")
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
    for one in sys.argv[3:] or KINDS:
        with tempfile.TemporaryDirectory() as name:
            print(one, run(Path(name), one, int(sys.argv[1]), int(sys.argv[2]), FEW), flush=True)
