"""The compiled modules: all are linked into one file, which is smaller than a file per module.

Python imports a module from a file by the function ``PyInit_NAME`` in it, so that one file may hold several. What it
cannot know is the file: a finder says it.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec, spec_from_file_location
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# Code that all of them share. The file has its name.
SHARED = "structsvm._shared"


@cache
def joined() -> dict[str, str]:
    """The file of each compiled module, by name; a list of the names stands beside it."""
    spec = find_spec(SHARED)
    if spec is None or spec.origin is None:
        return {}
    with open(os.path.join(os.path.dirname(spec.origin), "_shared.txt"), encoding="utf-8") as names:
        return dict.fromkeys(names.read().split(), spec.origin)


class Finder:
    """Finder of the compiled modules, for those that are found nowhere else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("structsvm.") or fullname == SHARED or fullname not in joined():
            return None
        return spec_from_file_location(fullname, joined()[fullname])


def install() -> None:
    """Let Python find the compiled modules."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
