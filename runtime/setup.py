"""Compiles the runtime, whose source stands in the package that exports models, as a library for ctypes."""

import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FUNCTIONS = [f"structsvm_{name}" for name in ("open", "predict", "kbest", "probability", "close")]
SOURCE = os.path.join("..", "structsvm", "export", "runtime", "structsvm_runtime.c")


class BuildLibrary(build_ext):
    """Exports the functions of the runtime in the place of those of a module of Python."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return FUNCTIONS


setup(
    cmdclass={"build_ext": BuildLibrary},
    ext_modules=[
        Extension("structsvm_runtime._native", [SOURCE], extra_compile_args=["-std=c99", "-O3", "-ffp-contract=off"])
    ],
)
