"""Names that have a page in the reference, for the site and the tests; the script writes `reference.md` from it.

Public are the modules that say so: the package and its rooms at the front door, and below these the modules that
declare ``__all__``.
"""

import importlib
import inspect
from pathlib import Path

import structsvm

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference.md"
SECTIONS = {
    "Layers": ("structsvm/layers",),
    "Oracles": ("oracles",),
    "Inputs and structures": ("structsvm/features", "structsvm/structures"),
    "Files and statistics of tasks": ("tasks",),
}
HEAD = """# Reference

Every public name, with its parameters, errors and sources.

```{eval-rst}
"""
LIST = """.. autosummary::
   :toctree: reference
   :template: autosummary/module.rst

"""


def front_door():
    """The package, and its rooms that say what is public."""
    rooms = (name for name in structsvm.__all__ if hasattr(getattr(structsvm, name), "__all__"))
    return ["structsvm", *(f"structsvm.{room}" for room in rooms if inspect.ismodule(getattr(structsvm, room)))]


def declaring(folder):
    """The modules below a folder of the sources that say what is public, and rooms whose modules do not say it."""
    found = [
        path for path in sorted((ROOT / folder).rglob("*.py")) if "\n__all__ = " in path.read_text(encoding="utf-8")
    ]
    own = {path.parent for path in found if path.stem[0] != "_"}
    for path in found:
        if path.stem[0] != "_" or (path.stem == "__init__" and path.parent not in {*own, ROOT / folder}):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            yield ".".join(parts if parts[0] == "structsvm" else ("structsvm", *parts))


def sections():
    """From the titles of the page, "" for its beginning, to their modules."""
    return {"": front_door()} | {
        title: [module for folder in folders for module in declaring(folder)] for title, folders in SECTIONS.items()
    }


def modules():
    """The modules that the page lists."""
    return [module for listed in sections().values() for module in listed]


def public_names(module):
    """Names that a module says are public, but for modules."""
    module = importlib.import_module(module)
    # Names that the package itself offers of its rooms have their page there.
    elsewhere = module.solvers.__all__ if module.__name__ == "structsvm" else ()
    names = [name for name in module.__all__ if name not in elsewhere]
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


def page():
    """The text of the page."""
    titled = (
        (f"{title}\n{'-' * len(title)}\n\n" if title else "") + LIST + "".join(f"   {module}\n" for module in listed)
        for title, listed in sections().items()
    )
    return HEAD + "\n".join(titled) + "```\n"


if __name__ == "__main__":
    REFERENCE.write_text(page(), encoding="utf-8")
