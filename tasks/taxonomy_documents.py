"""Files of labelled documents: texts, one a line behind its label, and svmlight."""

from __future__ import annotations

import re

import numpy as np

from structsvm.sources import load_bytes

_SVMLIGHT = re.compile(r"\S+(\s+\d+:\S+)*\s*(#.*)?")


LOOK = 20  # lines that tell the form of a file


class DocumentFileError(ValueError):
    """A file of documents that cannot be read; the message names file and line."""


def read_documents(source):
    """Read documents.

    Parameters
    ----------
    source : path or binary file
        UTF-8, compressed with gzip, xz or bzip2 or not. Each line holds a document: a label, a tab, and a text; or a
        text alone; or, in svmlight's form, a label and ``index:value`` pairs between blanks (indices from 1, what
        follows ``#`` is left out). The first lines tell which. Empty lines are left out.

    Returns
    -------
    X : list of str, or scipy CSR array of shape (n_documents, largest index), float32
    labels : list of str, or None
        None: texts alone.

    Raises
    ------
    DocumentFileError
        A line of another form than the first, a value that is no finite number, an index below 1, no documents.
    """
    data, name, _ = load_bytes(source)
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise DocumentFileError(f"{name}, line {number}: bytes that are not UTF-8") from None
    rows = [(k, line.rstrip("\r")) for k, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise DocumentFileError(f"{name}: holds no documents")
    first = [line for _, line in rows[:LOOK]]
    if all(map(_SVMLIGHT.fullmatch, first)) and any(":" in line for line in first):
        return _svmlight(rows, name)
    if "\t" in first[0]:
        return _labelled_texts(rows, name)
    for k, line in rows:
        if "\t" in line:
            raise DocumentFileError(f"{name}, line {k}: has a tab, and the first line has none: a label there or not?")
    return [line for _, line in rows], None


def _labelled_texts(rows, name):
    labels, texts = [], []
    for k, line in rows:
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            raise DocumentFileError(f"{name}, line {k}: expected label<TAB>text, found {line!r:.80}")
        labels.append(label)
        texts.append(text)
    return texts, labels


def _svmlight(rows, name):
    from scipy.sparse import csr_array

    labels, counts, indices, values = [], [0], [], []
    for k, line in rows:
        label, *pairs = line.partition("#")[0].split()
        try:
            split = [pair.split(":") for pair in pairs]
            indices += [int(index) for index, _ in split]
            values += [float(value) for _, value in split]
        except ValueError:
            raise DocumentFileError(
                f"{name}, line {k}: expected a label and index:value pairs, found {line!r:.80}"
            ) from None
        new = indices[counts[-1] :]
        if new and (min(new) < 1 or max(new) >= 2**31):
            raise DocumentFileError(f"{name}, line {k}: an index that is not in 1 .. 2**31 - 1")
        if not np.isfinite(np.array(values[counts[-1] :], dtype=np.float32)).all():
            raise DocumentFileError(f"{name}, line {k}: a value that is no finite float32 number")
        labels.append(label)
        counts.append(len(indices))
    columns = np.array(indices, dtype=np.int32) - 1
    shape = (len(labels), int(columns.max(initial=-1)) + 1)
    return csr_array((np.array(values, dtype=np.float32), columns, np.array(counts, dtype=np.int32)), shape), labels
