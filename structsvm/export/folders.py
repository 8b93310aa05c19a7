"""Folders of exported models: a model's file beside the runtime that reads it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from structsvm.files.new_file import new_file

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["TARGETS", "compiled_wasm", "files_of", "write_files"]

MODEL, SOURCE, HEADER, WASM = "model.bin", "structsvm_runtime.c", "structsvm_runtime.h", "structsvm.wasm"
RUNTIME = Path(__file__).parent / "runtime"
PARTS = ("structsvm_core.h", "structsvm_names.h", "structsvm_tokens.h")  # shared by some structures, or by all
# The files of a folder beside the model.
TARGETS = {"c": (SOURCE, HEADER), "wasm": (WASM, "structsvm.mjs", "structsvm.d.mts"), "page": (), "json": ()}
FUNCTIONS = ("open", "predict", "kbest", "probability", "close")
WASM_OPTIONS = (
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-std=c99",
    "-Os",
    "-msimd128",
    "-ffp-contract=off",
    "-s",
)


def files_of(target: str, model: bytes, structure: str) -> dict[str, bytes]:
    """The files of a folder, by name: the model and the runtime of a target, "c" or "wasm".

    Parameters
    ----------
    structure : {"sequences", "segments", "documents", "trees"}
        The source of the runtime.

    Raises
    ------
    ImportError
        If there is no compiler for WebAssembly.
    """
    files = {MODEL: model}
    for name in TARGETS[target]:
        if name == WASM:
            files[name] = compiled_wasm(structure)
        else:
            files[name] = source_of(structure) if name == SOURCE else (RUNTIME / name).read_bytes()
    return files


def source_of(structure: str) -> bytes:
    """The source of a structure, with the parts that it shares with others in the place of their includes."""
    source = (RUNTIME / f"structsvm_{structure}.c").read_text(encoding="ascii")
    for part in PARTS:
        source = source.replace(f'#include "{part}"\n', (RUNTIME / part).read_text(encoding="ascii"), 1)
    return source.encode("ascii")


def write_files(folder: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Write files to a folder, which is made if it is missing; each appears complete, or not at all."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with new_file(folder / name) as file:
            file.write(content)


def compiled_wasm(structure: str) -> bytes:
    """The runtime of a structure as WebAssembly, by zig.

    Raises
    ------
    ImportError
        If zig is neither installed as a package nor on the path.
    OSError
        If it fails; the message is its own.
    """
    exports = [f"-Wl,--export={name}" for name in (*(f"structsvm_{one}" for one in FUNCTIONS), "malloc", "free")]
    with tempfile.TemporaryDirectory() as folder:
        out, source = Path(folder) / WASM, RUNTIME / f"structsvm_{structure}.c"
        command = [*zig(), "cc", *WASM_OPTIONS, str(source), *exports, "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"zig could not compile the runtime: {done.stderr.strip()[-1000:]}")
        return out.read_bytes()


def zig() -> list[str]:
    """The command of zig: the package's, or the first on the path."""
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-P", "-m", "ziglang"]
    if (found := shutil.which("zig")) is not None:
        return [found]
    raise ImportError(
        "WebAssembly is compiled by zig, which is not installed: pip install 'structured-svm[wasm]', or zig on the path"
    )
