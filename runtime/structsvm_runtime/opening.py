"""Opening of models, by the kind that their file states."""

from __future__ import annotations

import os
from pathlib import Path

from structsvm_runtime.classifier import Classifier
from structsvm_runtime.parser import Parser
from structsvm_runtime.tagger import SegmentTagger, Tagger

__all__ = ["load"]

KIND = slice(40, 44)  # bytes of a file: its first number after the heads of the file and of the first array
KINDS: dict[int, type[Tagger | Classifier | Parser]] = {1: Tagger, 2: Classifier, 3: Parser, 4: SegmentTagger}


def load(source: str | os.PathLike[str] | bytes) -> Tagger | Classifier | Parser:
    """Open a model: the path of a file, which is mapped into memory, or its bytes.

    Returns
    -------
    Tagger, Classifier or Parser
        The one of label sequences, of documents, or of dependency trees.

    Raises
    ------
    ModelError
        If it is no complete, sound model.
    """
    if isinstance(source, bytes):
        head = source[: KIND.stop]
    else:
        with Path(source).open("rb") as file:
            head = file.read(KIND.stop)
    return KINDS.get(int.from_bytes(head[KIND], "little"), Tagger)(source)
