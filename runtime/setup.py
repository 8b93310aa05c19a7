"""Compiles the runtime, whose sources stand in the package that exports models, as libraries for ctypes.

A source distribution has copies of them beside this file.
"""

import os
import shutil

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

FUNCTIONS = [f"structsvm_{name}" for name in ("open", "predict", "kbest", "probability", "close")]
COPIES = "source"
RUNTIME = COPIES if os.path.isdir(COPIES) else os.path.join("..", "structsvm", "export", "runtime")
OPTIONS = ["-std=c99", "-O3", "-g0", "-ffp-contract=off"]


class BuildLibrary(build_ext):
    """Exports the functions of the runtime in the place of those of a module of Python."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return FUNCTIONS


class SourceDistribution(sdist):
    """Contains the sources and headers of the runtime: what stands above this folder is in no archive."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, [name for name in files if not name.startswith(os.pardir)])
        copies = os.path.join(base_dir, COPIES)
        os.makedirs(copies, exist_ok=True)
        for name in os.listdir(RUNTIME):
            if name.endswith((".c", ".h")):
                shutil.copy(os.path.join(RUNTIME, name), copies)


setup(
    cmdclass={"build_ext": BuildLibrary, "sdist": SourceDistribution},
    ext_modules=[
        Extension(
            f"structsvm_runtime._{structure}",
            [os.path.join(RUNTIME, f"structsvm_{structure}.c")],
            extra_compile_args=OPTIONS,
        )
        for structure in ("sequences", "segments", "documents", "trees")
    ],
)
