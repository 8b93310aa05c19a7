"""The compiled modules: all are linked into one file, which is smaller than a file per module.

Python imports a module from a file by the function ``PyInit_NAME`` in it, so that one file may hold several. What it
cannot know is the file: a finder says it. It keeps nothing, so that it serves whatever package is imported.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, spec_from_file_location
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# The list of their names, which the build writes, and code that all of them share, whose file they are in.
LIST, SHARED = "structsvm._compiled", "structsvm._shared"


def joined() -> dict[str, str]:
    """The file of each compiled module, by name; ImportError without it or the list."""
    try:
        from structsvm._compiled import NAMES
    except ImportError as error:
        raise _incomplete(LIST) from error
    spec = find_spec(SHARED)
    if spec is None or spec.origin is None or not NAMES:
        raise _incomplete(SHARED if NAMES else LIST)
    return dict.fromkeys(NAMES, spec.origin)


def _incomplete(name: str) -> ImportError:
    return ImportError(f"structsvm is installed incompletely; install it anew. It has no {name}.", name=name)


class Finder:
    """Finder of the compiled modules, all of whose names begin with an underscore."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("structsvm.") or "._" not in fullname or fullname in (LIST, SHARED):
            return None
        file = joined().get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


FINDER = Finder()


def install() -> None:
    """Let Python find the compiled modules, before files of older versions, and by no finder of another import."""
    if FINDER not in sys.meta_path:
        others = [finder for finder in sys.meta_path if type(finder).__module__ != __name__]
        sys.meta_path[:] = [FINDER, *others]
