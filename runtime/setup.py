"""Compiles the runtime, whose sources stand in the package that exports models, as libraries for ctypes."""

import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FUNCTIONS = [f"structsvm_{name}" for name in ("open", "predict", "kbest", "probability", "close")]
RUNTIME = os.path.join("..", "structsvm", "export", "runtime")
OPTIONS = ["-std=c99", "-O3", "-g0", "-ffp-contract=off"]


class BuildLibrary(build_ext):
    """Exports the functions of the runtime in the place of those of a module of Python."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return FUNCTIONS


setup(
    cmdclass={"build_ext": BuildLibrary},
    ext_modules=[
        Extension(
            f"structsvm_runtime._{structure}",
            [os.path.join(RUNTIME, f"structsvm_{structure}.c")],
            extra_compile_args=OPTIONS,
        )
        for structure in ("sequences", "documents", "trees")
    ],
)
