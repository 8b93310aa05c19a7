"""The runtime, compiled once for all tests of it."""

from functools import cache

import pytest
import runtime_models


@pytest.fixture(scope="session")
def runtime(tmp_path_factory):
    if runtime_models.COMPILER is None:
        pytest.skip("needs a C compiler")
    return runtime_models.compiled(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="session")
def counting(runtime, tmp_path_factory):
    """The runtime with a library that counts what it allocates, by its structure."""
    return cache(lambda structure: runtime_models.counted(tmp_path_factory.mktemp("counted"), runtime, structure))
