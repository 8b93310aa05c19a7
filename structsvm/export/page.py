"""A model as one page for browsers, with the runtime in it: it opens from a file address, without a server."""

from __future__ import annotations

import re
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from structsvm.export.folders import MODEL, RUNTIME, WASM

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["page_of"]

PAGE = "tagger.html"


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
    page = (RUNTIME / name).read_text(encoding="utf-8")
    return {name: re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], page).encode()}
