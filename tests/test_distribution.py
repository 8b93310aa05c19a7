"""The package beside, and under, the files of the other project that installs as structsvm."""

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from structsvm import cli

OURS = (
    "structsvm",
    "structsvm._distribution",
    "structsvm.execution",
    "structsvm.execution.joined",
    "structsvm.oracles",
    "structsvm.tasks",
    "structsvm.tasks.registry",
)


@pytest.fixture
def site(tmp_path):
    """A folder with the first files of this package that are imported."""
    for name in OURS:
        source = Path(importlib.import_module(name).__file__)
        folders = name.split(".") if source.name == "__init__.py" else name.split(".")[:-1]
        target = tmp_path.joinpath(*folders, source.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    return tmp_path


def imported(site, module):
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import {module}"
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["structsvm", "structsvm.tasks", "structsvm.oracles"])
def test_alone_it_is_imported(site, module):
    assert imported(site, module).returncode == 0


@pytest.mark.parametrize("module", ["structsvm", "structsvm.tasks", "structsvm.oracles"])
def test_files_of_the_other_project_beside_ours(site, module):
    (site / "structsvm" / "bundle_method.py").touch()
    done = imported(site, module)
    assert done.returncode == 1
    assert "ImportError: the distributions structured-svm, which this is, and structsvm" in done.stderr
    assert "pip uninstall -y structsvm structured-svm; pip install structured-svm" in done.stderr


@pytest.mark.parametrize("content", ["", None])
@pytest.mark.parametrize("module", ["structsvm.tasks", "structsvm.oracles"])
def test_our_first_file_is_theirs_or_gone(site, module, content):
    """As it is after their installation, and after an installation of ours and a removal of theirs."""
    first = site / "structsvm" / "__init__.py"
    first.unlink()
    if content is not None:
        first.write_text(content, encoding="utf-8")
    done = imported(site, module)
    assert done.returncode == 1
    assert "ImportError: the distributions structured-svm" in done.stderr


def test_the_command_says_so_too():
    """Whatever stands in the place of our first file: it takes no names of it before the tasks are imported."""
    nodes = ast.parse(Path(cli.__file__).read_text(encoding="utf-8")).body
    modules = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    assert "structsvm" not in modules and "structsvm.tasks.registry" in modules
