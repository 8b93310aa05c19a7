"""The runtime, compiled once for all tests of it."""

import pytest
import runtime_models


@pytest.fixture(scope="session")
def runtime(tmp_path_factory):
    if runtime_models.COMPILER is None:
        pytest.skip("needs a C compiler")
    return runtime_models.compiled(tmp_path_factory.mktemp("runtime"))
