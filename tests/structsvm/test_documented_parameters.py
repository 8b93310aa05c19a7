"""The docstrings of solvers and estimators: the names and defaults of their parameters are those of the constructor."""

import inspect
import re

import pytest

from structsvm import PathSearch, StructuredSVM, solvers, tasks

KINDS = [
    kind
    for kind in (
        *(getattr(room, name) for room in (solvers, tasks) for name in room.__all__),
        PathSearch,
        StructuredSVM,
    )
    if isinstance(kind, type) and kind not in (solvers.Run, solvers.Solver)
]


def documented(kind):
    """The section Parameters as a dict from names to what stands behind their colon, or None."""
    section = re.search(r"\nParameters\n-+\n(.*?)(\n\n\w+\n-+\n|\Z)", inspect.getdoc(kind), re.DOTALL)[1]
    heads = [line for line in section.replace(",\n", ", ").split("\n") if line and not line.startswith(" ")]
    parts = [head.partition(" : ") for head in heads]
    return {name: text or None for names, _, text in parts for name in names.split(", ")}


def defaults_of(text):
    """The values of ``default=a`` or ``default=a and b``; otherwise the first of ``{a, b}``, or None."""
    given = re.search(r"default=(.*)", text) or re.match(r"{(.*?),", text)
    return [eval(value, {"__builtins__": {}}) for value in given[1].split(" and ")] if given else [None]


@pytest.mark.parametrize("kind", [*KINDS, PathSearch, StructuredSVM], ids=lambda kind: kind.__name__)
def test_docstrings_have_the_parameters(kind):
    taken, found = inspect.signature(kind).parameters, documented(kind)
    assert sorted(found) == sorted(taken)
    for name, text in found.items():
        if text and not text.endswith("optional") and taken[name].default is not inspect.Parameter.empty:
            assert taken[name].default in defaults_of(text), (name, text)
