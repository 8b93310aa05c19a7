"""The rooms: what each holds; compiled modules import and cimport downwards only, and no module in a circle.

The order of the layers stands in pyproject.toml, where import-linter reads it for the modules in Python.
"""

import ast
import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"structsvm": "structsvm", "oracles": "structsvm.oracles", "tasks": "structsvm.tasks"}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
IMPORT = re.compile(r"^ *(?:from +([\w.]+) +c?import|c?import +([\w.]+))\b", re.MULTILINE)
FILES = [path for top in PACKAGES for path in sorted((ROOT / top).rglob("*")) if path.suffix in (".py", ".pyx", ".pxd")]
CYTHON = [path for path in FILES if path.suffix != ".py"]
LEAVES = [path for path in CYTHON if not path.is_relative_to(ROOT / "structsvm")]


def in_root(path):
    return path.relative_to(ROOT).as_posix()


def rooms():
    """``{folder: names of its modules}``; `_cky` and `cky`, a compiled module and the Python around it, are one."""
    found = {}
    for path in FILES:
        if path.suffix != ".pxd" and not path.stem.startswith("__"):
            found.setdefault(path.parent, set()).add(path.stem.lstrip("_"))
    return found


ROOMS = rooms()


def module_of(path):
    top, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGES[top], *parts])


def imported_by(source):
    """Names of the modules that a source imports or cimports."""
    return [first or second for first, second in IMPORT.findall(source)]


def layers_of(contract):
    """``{module: (depth of its layer, whether the layer's modules may import one another)}``."""
    (container,) = contract["containers"]
    return {
        f"{container}.{name}": (depth, "|" not in layer)
        for depth, layer in enumerate(contract["layers"])
        for name in re.findall(r"\w+", layer)
    }


def matches(expression, name):
    """Whether a module is one of an expression, in which ``*`` is a name and ``**`` names with dots between them."""
    names = {"**": r"\w+(\.\w+)*", "*": r"\w+"}
    return re.fullmatch("".join(names.get(part, re.escape(part)) for part in re.split(r"(\*+)", expression)), name)


def are_independent(importer, imported, contract):
    """Whether an import stays within a room, or is one of those that the contract ignores."""
    (rooms_of,) = contract["modules"]
    above, below = (".".join(name.split(".")[: rooms_of.count(".") + 1]) for name in (importer, imported))
    if above == below or not (matches(rooms_of, above) and matches(rooms_of, below)):
        return True
    pairs = (ignored.split(" -> ") for ignored in contract["ignore_imports"])
    return any(matches(one, importer) and matches(other, imported) for one, other in pairs)


def is_allowed(importer, imported, contract):
    if contract["type"] == "independence":
        return are_independent(importer, imported, contract)
    layers = layers_of(contract)
    n_parts = contract["containers"][0].count(".") + 2
    above, below = (".".join(name.split(".")[:n_parts]) for name in (importer, imported))
    if above not in layers or below not in layers or above == below:
        return True
    (depth, may_share), (depth_below, _) = layers[above], layers[below]
    return depth < depth_below or (depth == depth_below and may_share)


@pytest.mark.parametrize("path", CYTHON, ids=in_root)
def test_compiled_modules_import_downwards(path):
    for imported in imported_by(path.read_text()):
        for contract in CONTRACTS:
            assert is_allowed(module_of(path), imported, contract), f"{in_root(path)} imports {imported}"


@pytest.mark.parametrize("path", LEAVES, ids=in_root)
def test_oracles_and_tasks_are_leaves(path):
    assert path.suffix == ".pyx", "each .pxd stands below structsvm/"
    lines = [line for line in path.read_text().splitlines() if "cimport" in line]
    assert not [line for line in lines if re.search(r"(from|cimport) +(\.|structsvm\.(oracles|tasks)\b)", line)]


def test_what_is_refused():
    downwards, tasks = CONTRACTS
    assert is_allowed("structsvm.kernel._lasvm", "structsvm.dual._state", downwards)
    assert is_allowed("structsvm._adapter", "structsvm._problem", downwards)
    assert is_allowed("structsvm.tasks.linear._x", "structsvm.tasks.common.x", tasks)
    assert is_allowed("structsvm.tasks.linear._x", "structsvm.tasks.linear.x.y", tasks)
    assert is_allowed("structsvm.tasks.tagged._x", "structsvm.tasks.sequence.x", tasks)
    for importer, imported, contract in (
        ("structsvm.dual._dual", "structsvm.kernel._lasvm", downwards),
        ("structsvm._problem", "structsvm.features._tokens", downwards),
        ("structsvm.oracles._cky", "structsvm.solvers.base", downwards),
        ("structsvm.solvers.base", "structsvm.oracles._cky", downwards),
        ("structsvm.tasks.common._x", "structsvm.tasks.linear.x", tasks),
        ("structsvm.tasks.linear._x", "structsvm.tasks.kernel.x", tasks),
        ("structsvm.tasks.new._x", "structsvm.tasks.kernel.x", tasks),
        ("structsvm.tasks.sequence._x", "structsvm.tasks.tagged.x", tasks),
    ):
        assert not is_allowed(importer, imported, contract)
    source = "from a.b cimport (\n    c,\n)\ncdef f():\n    from d import e\n    import g\ncimport h.i as j\n"
    assert imported_by(source) == ["a.b", "d", "g", "h.i"]


@pytest.mark.parametrize("room", ROOMS, ids=in_root)
def test_a_room_holds_one_idea(room):
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    assert said.partition("\n\n")[0].endswith("."), "its __init__ says in a sentence what belongs there"
    least = 1 if any(inner.parent == room for inner in ROOMS) else 2
    assert least <= len(ROOMS[room]) <= 16, sorted(ROOMS[room])


@pytest.mark.parametrize(
    "room", sorted({path.parent for path in CYTHON} - {path.parent for path in LEAVES}), ids=in_root
)
def test_other_rooms_can_cimport_from_it(room):
    assert (room / "__init__.pxd").read_text() == ""


def test_every_room_has_a_layer():
    """A room within a room is of its layer."""
    listed = {name for contract in CONTRACTS if contract["type"] == "layers" for name in layers_of(contract)}
    for name in {module_of(room) for room in ROOMS} - set(PACKAGES.values()):
        parts = name.split(".")
        assert listed & {".".join(parts[:n]) for n in range(2, len(parts) + 1)}, name


# ---- circles -----------------------------------------------------------------------------------

NAMED = re.compile(r"^ *from +([\w.]+) +c?import +(\([^)]*\)|.*)|^ *c?import +([\w.]+)", re.MULTILINE)
INCLUDE = re.compile(r'^ *#include "([\w.]+)"', re.MULTILINE)


def python_imports(node):
    """``(module, names)`` of each import of a tree, also of those within functions, but not under TYPE_CHECKING."""
    if isinstance(node, ast.expr):  # none has a statement
        return
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children = node.orelse
    else:
        children = ast.iter_child_nodes(node)
    if isinstance(node, ast.Import):
        yield from ((alias.name, []) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module, [alias.name for alias in node.names]
    for child in children:
        yield from python_imports(child)


def cython_imports(source):
    for module, names, other in NAMED.findall(source):
        yield module or other, re.findall(r"\w+", names)


def imports_of_modules(files):
    """``{module: the modules that it imports}``, of sources by their path; a .pxd and its .pyx are one module."""
    modules = {path: module_of(path).removesuffix(".__init__") for path in files}
    known, graph = set(modules.values()), {}
    for path, source in files.items():
        found = python_imports(ast.parse(source)) if path.suffix == ".py" else cython_imports(source)
        own = graph.setdefault(modules[path], set())
        for module, names in found:
            own |= {f"{module}.{name}" if f"{module}.{name}" in known else module for name in names or [""]} & known
        own.discard(modules[path])
    return graph


def circle(graph):
    """The members of a circle, the first one again at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_modules_import_one_another_in_no_circle():
    assert circle(imports_of_modules({path: path.read_text(encoding="utf-8") for path in FILES})) == []


def test_headers_include_one_another_in_no_circle():
    paths = [path for top in PACKAGES for path in (ROOT / top).rglob("*.[ch]")]
    names = {path.name for path in paths}
    assert len(names) == len(paths) > 40
    graph = {path.name: set(INCLUDE.findall(path.read_text(encoding="utf-8"))) for path in paths}
    assert set().union(*graph.values()) <= names
    assert circle(graph) == []
    assert set().union(*graph.values()) & {name for name in names if name.endswith(".c")} == set()


def test_which_circles_are_found():
    a, b, c = (ROOT / "structsvm" / name for name in ("a.py", "_b.pyx", "room/c.py"))
    lazy = "def f():\n    from structsvm.room import c\n"
    files = {a: "from structsvm._b import x\n", b: lazy, c: "import structsvm.a\n"}
    assert set(circle(imports_of_modules(files))) == {"structsvm.a", "structsvm._b", "structsvm.room.c"}
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import structsvm.a\nelse:\n    import math\n"
    assert circle(imports_of_modules(files | {c: typed})) == []
    cython = imports_of_modules({b: "from structsvm.room cimport (\n    c,\n    other as d,\n)\n", c: ""})
    assert cython["structsvm._b"] == {"structsvm.room.c"}
    assert circle({"a.h": {"b.h"}, "b.h": {"a.h"}})
