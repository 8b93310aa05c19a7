"""Files of labelled documents: texts, one per line after its label, and svmlight."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from structsvm.features.sources import load_text, numbered_lines
from structsvm.features.svmlight import SvmlightFileError, parse_svmlight

_SVMLIGHT = re.compile(r"\S+(\s+\d+:\S+)*\s*(#.*)?")


LOOK = 20  # lines that decide the form of a file


class DocumentFileError(ValueError):
    """A file of documents that cannot be read; the message names file and line."""


def read_documents(source: Any, *, texts: Any = None) -> Any:
    """Read documents.

    Parameters
    ----------
    source : path or binary file
        UTF-8, compressed with gzip, xz or bzip2 or not. Each line holds a document: a label, a tab, and a text; or a
        text alone; or, in svmlight format, a label and ``index:value`` pairs between blanks (indices from 1, what
        follows ``#`` is left out). The first lines decide which. Empty lines are left out.
    texts : bool, optional
        Whether they are texts, where that is known.

    Returns
    -------
    X : list of str, or scipy CSR array of shape (n_documents, largest index), float32
    labels : list of str, or None
        None: texts alone.

    Raises
    ------
    DocumentFileError
        A line of another form than the first, a value that is no finite number, an index below 1 or twice, no
        documents.
    """
    text, name = load_text(source, DocumentFileError, "{}, line {}")
    first = [line.rstrip("\r") for _, line in islice(numbered_lines(text), LOOK)]
    if not first:
        raise DocumentFileError(f"{name}: holds no documents")
    rows = ((k, line.rstrip("\r")) for k, line in numbered_lines(text))
    if texts is None:
        texts = not (all(map(_SVMLIGHT.fullmatch, first)) and any(":" in line for line in first))
    if not texts:
        try:
            return parse_svmlight(rows, name)
        except SvmlightFileError as error:
            raise DocumentFileError(str(error)) from None
    if "\t" in first[0]:
        return _labelled_texts(rows, name)
    found = []
    for k, line in rows:
        if "\t" in line:
            raise DocumentFileError(f"{name}, line {k}: has a tab, and the first line has none: a label there or not?")
        found.append(line)
    return found, None


def _labelled_texts(rows: Any, name: Any) -> tuple[Any, Any]:
    labels, texts = [], []
    seen: dict[str, str] = {}  # equal labels are one string
    for k, line in rows:
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            raise DocumentFileError(f"{name}, line {k}: expected label<TAB>text, found {line!r:.80}")
        labels.append(seen.setdefault(label, label))
        texts.append(text)
    return texts, labels
