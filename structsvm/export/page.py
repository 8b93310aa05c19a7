"""A model as one page for browsers, with the runtime in it: it opens from a file address, without a server."""

from __future__ import annotations

import re
import tempfile
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from structsvm.export.folders import MODEL, RUNTIME, WASM

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Framed", "page_of"]

PAGE = "tagger.html"
FRAME = "page.html"  # the parts that all pages share


class Exported(Protocol):
    """An estimator that can be exported."""

    def export(self, folder: Path, to: str) -> None:
        """Write the model to a folder."""


@dataclass(frozen=True, repr=False)
class Framed:
    """A page within another one: notebooks show it.

    Attributes
    ----------
    page : str
        A page that needs nothing else.
    """

    page: str

    @classmethod
    def of(cls, estimator: Exported) -> Self:
        """The page that an estimator's `export` writes.

        Raises
        ------
        ValueError, ImportError
            As `export` does.
        """
        with tempfile.TemporaryDirectory() as folder:
            estimator.export(Path(folder), to="page")
            (found,) = Path(folder).glob("*.html")
            return cls(found.read_text(encoding="utf-8"))

    def _repr_html_(self) -> str:
        """A frame whose contents stand in an attribute, so that it works from files."""
        style = "width: 100%; height: 32rem; border: 1px solid #8886; border-radius: 6px"
        return f'<iframe title="An exported model" style="{style}" srcdoc="{escape(self.page)}"></iframe>'


def page_of(files: Mapping[str, bytes], title: str, text: str, name: str = PAGE) -> dict[str, bytes]:
    """The page of a model, by its name.

    Parameters
    ----------
    files : mapping of str to bytes
        The model and the runtime, as `files_of` returns them for "wasm".
    title, text : str
        The heading, and the text that is labelled first.
    name : {"tagger.html", "classifier.html"}
        The page: of label sequences, or of documents.
    """
    parts = {
        "TITLE": escape(title),
        "TEXT": escape(text),
        "SIZE": f"{len(files[MODEL]) / 1000:,.0f} kB",
        "MODEL": b64encode(files[MODEL]).decode(),
        "WASM": b64encode(files[WASM]).decode(),
        "MODULE": re.sub(r"^export ", "", files["structsvm.mjs"].decode(), flags=re.MULTILINE),
    }
    style, _, rest = (RUNTIME / name).read_text(encoding="utf-8").partition("</style>\n")
    body, _, script = rest.partition("<script>\n")
    own = {"STYLE": style.removeprefix("<style>\n"), "BODY": body, "SCRIPT": script.removesuffix("</script>\n")}
    page = (RUNTIME / FRAME).read_text(encoding="utf-8")
    for part, lines in own.items():
        page = page.replace(f"@{part}@\n", lines)
    return {name: re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], page).encode()}
