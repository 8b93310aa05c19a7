"""Names that have a page in the reference, for the site and the tests."""

import importlib
import inspect
import re
from pathlib import Path

REFERENCE = Path(__file__).parent / "reference.md"


def modules():
    """The modules that the page lists."""
    return re.findall(r"^   (structsvm[\w.]*)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)


def public_names(module):
    """Names that a module says are public; of modules that say nothing, the classes and functions that they define."""
    module = importlib.import_module(module)
    own = [k for k, v in vars(module).items() if k[0] != "_" and callable(v) and v.__module__ == module.__name__]
    # Names that the package itself offers of its rooms have their page there.
    elsewhere = module.solvers.__all__ if module.__name__ == "structsvm" else ()
    names = [name for name in getattr(module, "__all__", own) if name not in elsewhere]
    return [name for name in names if not inspect.ismodule(getattr(module, name))]
