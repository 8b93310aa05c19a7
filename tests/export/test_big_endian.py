"""The runtime on a machine that is not little-endian, by emulation: models are refused by name."""

import shutil
import subprocess

import document_models
import parser_models
import pytest
import runtime_models
from runtime_models import RUNTIME, SOURCES

CROSS = next(filter(None, map(shutil.which, ("s390x-linux-gnu-gcc", "powerpc64-linux-gnu-gcc"))), None)
EMULATOR = next(filter(None, map(shutil.which, ("qemu-s390x", "qemu-ppc64"))), None)
pytestmark = pytest.mark.skipif(CROSS is None, reason="needs gcc for s390x or ppc64")
OPTIONS = ("-std=c99", "-O1", "-static", "-ffp-contract=off", "-I", str(RUNTIME))
OPEN = """
#include "structsvm_runtime.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static double room[1 << 17];
    const unsigned short one = 1;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    structsvm *tagger;
    if (file == NULL) return 2;
    size_t size = fread(room, 1, sizeof room, file);
    int status = structsvm_open(room, size, &tagger);
    printf("%d %d %d", status, tagger == NULL, *(const unsigned char *)&one);
    return 0;
}
"""


def model_of(structure, folder):
    models = {
        "sequences": (runtime_models, "words"),
        "segments": (runtime_models, "segments"),
        "documents": (document_models, "tfidf"),
        "trees": (parser_models, "own templates"),
    }
    module, name = models[structure]
    module.fitted(name).export(folder)
    return folder / "model.bin"


@pytest.mark.parametrize("structure", SOURCES)
def test_the_source_says_why_it_does_not_compile(structure, tmp_path):
    command = [CROSS, *OPTIONS, "-c", str(SOURCES[structure]), "-o", str(tmp_path / "runtime.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "models are little-endian, and are used where they are: this machine is not" in done.stderr


@pytest.mark.skipif(EMULATOR is None, reason="needs qemu-s390x or qemu-ppc64")
@pytest.mark.parametrize("structure", SOURCES)
def test_models_are_refused_where_the_compiler_does_not_say_its_order(structure, tmp_path):
    """Without the macro that names the order of bytes, the file's version is not the one that is read."""
    (tmp_path / "open.c").write_text(OPEN, encoding="ascii")
    files = [str(tmp_path / "open.c"), str(SOURCES[structure]), "-lm", "-o", str(tmp_path / "open")]
    subprocess.run([CROSS, *OPTIONS, "-U__BYTE_ORDER__", *files], check=True, capture_output=True)
    model = model_of(structure, tmp_path)
    assert model.stat().st_size < 1 << 20
    # The same program reads the model on this machine.
    native = [runtime_models.COMPILER, *OPTIONS, "-U__BYTE_ORDER__", *files[:-1], str(tmp_path / "native")]
    subprocess.run([option for option in native if option != "-static"], check=True, capture_output=True)
    found = subprocess.run([tmp_path / "native", model], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["0", "0", "1"]
    command = [EMULATOR, str(tmp_path / "open"), str(model)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.split() == ["-1", "1", "0"]  # STRUCTSVM_FILE, no tagger, the first byte of 1
