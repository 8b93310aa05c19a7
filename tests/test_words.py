"""The lint for first words: each kind of fault is found, and each text that only looks like one is not."""

import importlib.util
from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[1] / ".ci" / "words.py"
pytestmark = pytest.mark.skipif(not LINT.exists(), reason="needs a checkout")


@pytest.fixture(scope="module")
def lint():
    spec = importlib.util.spec_from_file_location("words", LINT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAULTS = {
    "module.py": '"""What all share."""\n',
    "function.py": 'def f():\n    """Those of a table."""\n',
    "next_line.py": 'def f():\n    """\n    Those of a table.\n    """\n',
    "raw.py": 'def f():\n    r"""Of a table."""\n',
    "attribute.py": 'class A:\n    """Rows."""\n\n    x: int = 0\n    """That of a row."""\n',
    "block.py": "x = 0\n\n# Of each row the label.\nx = 1\n",
    "first_line.py": "# Of each row the label.\nx = 1\n",
    "after_blank.py": "# Rows.\n\n# of columns\n",
    "trailing.py": "x = 0  # which is small\n",
    "each_trailing.py": "x = 0  # small\ny = 1  # of rows\n",
    "indented.py": "# Rows.\nif x:\n    # Of columns.\n    pass\n",
    "error.py": 'raise ValueError("what is known is wrong")\n',
    "f_string.py": 'raise ValueError(f"of {n} rows none is left")\n',
    "own_error.py": 'raise click.UsageError(\n    "of several files each is a path"\n)\n',
    "lower_case.py": 'raise oops("that is no row")\n',
    "made.py": 'return ParserError("which of them?")\n',
    "warning.py": 'warn("those are equal", UserWarning)\n',
    "method.pyx": 'cdef int f(int* x) except? -1 nogil:\n    """Of a row."""\n    return <int>x[0]\n',
    "field.pxd": "cdef class A:\n    cdef int* x     # of a row\n",
    "stub.pyi": "x: int  # that of a row\n",
    "block.h": "/* What a row takes. */\nint x;\n",
    "trailing.h": "int x;   /* of a row */\n",
    "starred.h": "/*\n * Which rows are full.\n */\n",
    "line.c": "// Rows.\nint x; // of columns\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(lint, tmp_path, capsys, name):
    path = tmp_path / name
    path.write_text(FAULTS[name], encoding="utf-8")
    assert lint.main([str(tmp_path)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    row = next(k for k, text in enumerate(FAULTS[name].splitlines(), 1) if lint.FAULT.search(text))
    assert line.startswith((f"{path}:{row}: ", f"{path}:{row - 1}: "))


GOOD = {
    "docstring.py": 'def f():\n    """Offsets of a table.\n\n    What is more: of rows, too.\n    """\n',
    "string.py": 'x = """Of a table."""\nf("what is known")\n',
    "list.py": 'x = [\n    "of a table",\n    "that",\n]\n',
    "word.py": "# Thatch, offers, whatever: longer words.\nx = 0  # offset\n",
    "block.py": "# Rows, and the labels\n# of each; lines of one block\n# that go on.\nx = 0\n",
    "trailing.py": "x = 0  # rows, and the labels\n       # of each\n",
    "error.py": 'raise ValueError(f"{n} of the rows are missing")\n',
    "second_argument.py": 'raise ValueError(n, "of the rows")\n',
    "ends_alike.py": 'check_error_of("what")\n',
    "cast.pyx": 'cdef int x = <int>"of"[0]      # a letter\n',
    "block.h": '/* Rows, and the labels\n * of each. */\nconst char *x = "/* of */", *y = "// that";\n',
    "line.c": "// Rows, and the labels\n// of each\nint x;\n",
    "text.md": "Of this, nothing is read.\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_text_is_not(lint, tmp_path, capsys, name):
    (tmp_path / name).write_text(GOOD[name], encoding="utf-8")
    assert lint.main([str(tmp_path)]) == 0
    assert not capsys.readouterr().out


def test_the_shebang_is_no_word(lint, tmp_path):
    (tmp_path / "a.py").write_text('#!/usr/bin/env python\n"""Rows."""\n', encoding="utf-8")
    assert [*lint.faults(tmp_path / "a.py")] == []


def test_the_project_has_none(lint):
    root = LINT.parents[1]
    assert lint.main([str(root / name) for name in ("structsvm", "oracles", "tasks")]) == 0
