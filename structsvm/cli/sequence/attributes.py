"""Files of attributes (CRFsuite's text) in the commands for label sequences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import structsvm.cli.output as out
from structsvm.cli.task import Wanted
from structsvm.features.sources import stream_bytes
from structsvm.features.tables.attribute_files import is_of_attributes, read_attributes, stream_attributes

HEAD = 1 << 18  # bytes that tell of what a file is


def are_attributes(path: str, form: str, before: Any = None) -> bool:
    """Whether a training file is one of attributes: by --format, by the model to continue, or by how it begins.

    Standard input and folders are not looked into.
    """
    if form != "auto":
        return form == "crfsuite"
    if before is not None:
        return before.encoder.kind == "attributes"
    source = out.source(path)
    if path == "-" or not os.path.isfile(path):
        return False
    head = bytearray()
    for block, _ in stream_bytes(source):
        head += block
        if len(head) >= HEAD:
            break
    text = bytes(head[:HEAD]).decode("utf-8", "replace")
    return is_of_attributes(text[: text.rfind("\n")] if len(head) > HEAD else text)


def labels_text(
    X: Iterable[Any],
    wanted: Wanted,
    predict: Callable[..., Any],
    kbest: Callable[..., Any] | None,
    chances: Callable[..., Any],
) -> Iterator[str]:
    """Labels of sequences, a line per token and a blank line after each, as ``crfsuite tag`` writes them.

    With `confidence` the label's probability follows, of ``chances(x, labels)``; with `kbest` each labelling stands
    below its rank and score.
    """
    for x in X:
        if wanted.kbest is not None and kbest is not None:
            for rank, (labels, score) in enumerate(kbest([x], wanted.kbest, probabilities=wanted.confidence)[0], 1):
                yield f"# {rank} {score:.6f}\n" + "".join(f"{label}\n" for label in labels) + "\n"
            continue
        labels = lines = predict([x])[0]
        if wanted.confidence:
            lines = [f"{label}\t{chance:.6f}" for label, chance in zip(labels, chances(x, labels), strict=True)]
        yield "".join(f"{line}\n" for line in lines) + "\n"


def sequences_of(path: str) -> Iterator[Any]:
    """Tokens of an input, of each sequence as soon as it ends."""
    return stream_attributes(out.source(path))


def read_input(path: str) -> tuple[Any, list[list[str]]]:
    """Tokens and labels of an input."""
    return read_attributes(out.source(path))
