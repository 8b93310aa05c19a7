"""Packages whose names are imported at first use: what type checkers see is what is there at run time."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest


def names_for_type_checkers(package):
    """From the names in the block ``if TYPE_CHECKING`` to the modules that they are imported from."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [(statement.module, alias) for statement in block.body for alias in statement.names]
    assert all(alias.asname == alias.name for _, alias in imports)  # re-exported, as PEP 484 has it
    return {alias.name: module for module, alias in imports}


@pytest.mark.parametrize("name", ["structsvm", "structsvm.tasks"])
class TestLazyNames:
    def test_type_checkers_see_the_table(self, name):
        package = importlib.import_module(name)
        modules = dict.fromkeys(getattr(package, "_MODULES", ()), name)
        assert names_for_type_checkers(package) == package._HOMES | modules
        assert sorted(package.__all__) == sorted(package._HOMES | modules)

    def test_every_name_is_there(self, name):
        package = importlib.import_module(name)
        for public in package.__all__:
            value = getattr(package, public)
            assert value.__name__.rpartition(".")[2] == public
            if public in package._HOMES:
                assert value is getattr(importlib.import_module(package._HOMES[public]), public)
        assert set(package.__all__) <= set(dir(package))
        assert len(dir(package)) == len(set(dir(package)))

    def test_other_names_raise(self, name):
        with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Absent'"):
            importlib.import_module(name).Absent  # noqa: B018

    def test_nothing_is_imported_before_its_use(self, name):
        code = (
            f"import {name}, sys; dir({name}); "
            f"print(*sorted(m for m in sys.modules if m.startswith('structsvm')), 'numpy' in sys.modules)"
        )
        run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
        registry = {f"{name}.registry"} if name == "structsvm.tasks" else set()  # strings alone
        first = {"structsvm", "structsvm._distribution", "structsvm.execution", "structsvm.execution.joined"}
        assert run.stdout.split() == [*sorted({*first, name, *registry}), "False"]
