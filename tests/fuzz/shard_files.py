"""Folders of encoded sequences, whose index or one of whose vectors is changed."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import model_files
import numpy as np

from structsvm import ModelFileError, SequenceShards
from structsvm.shards.base import DTYPES, INDEX
from structsvm.tasks import SequenceLabeler

WORDS = [["the", "dog", "sees"], ["a", "cat"], ["runs"], ["the", "cat", "sees", "a", "dog"]]
LABELS = [["D", "N", "V"], ["D", "N"], ["V"], ["D", "N", "V", "D", "N"]]
TEMPLATES = "U:%x[0,0]\nU1:%x[-1,0]\nB\n"
NAMES = ["D", "N", "V"]
TEXT = b"".join(
    b"".join(f"{word} {label}\n".encode() for word, label in zip(words, labels, strict=True)) + b"\n"
    for words, labels in zip(WORDS, LABELS, strict=True)
)


@dataclass(frozen=True)
class Folder:
    """A folder of shards: its index, and the bytes of its vectors."""

    index: model_files.Original
    vectors: dict[str, bytes]
    hash_bits: int | None


def folders() -> list[Folder]:
    """Of a vocabulary and of hashed features, which have values."""
    found = []
    for bits in (None, 3):
        with scratch() as folder:
            made = SequenceShards.make(
                io.BytesIO(TEXT), folder / "new", templates=TEMPLATES, hash_bits=bits, max_memory=90
            )
            index = model_files.original("shards", made.folder / INDEX, None, (None, None, None), None)
            vectors = {name: (made.folder / name).read_bytes() for name in DTYPES if (made.folder / name).exists()}
        found.append(Folder(index, vectors, bits))
    return found


def mutate(rng: random.Random, seed: Folder) -> bytes:
    """A folder, as one text of JSON and bytes, whose index, or one of whose vectors, is changed."""
    files = dict(seed.vectors)
    index = seed.index.data
    if rng.random() < 0.4:
        index = model_files.mutate(rng, seed.index)
    else:
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice(list(files))
            array = np.frombuffer(files[name], DTYPES[name])
            files[name] = (model_files.resized if rng.random() < 0.1 else model_files.revalued)(rng, array).tobytes()
    files[INDEX] = index
    sizes = json.dumps({name: len(data) for name, data in files.items()}).encode()
    return sizes + b"\n" + b"".join(files.values())


def read(data: bytes, seed: Folder) -> str:
    """Open a folder, mapped and in memory, and train on it."""
    head, _, rest = data.partition(b"\n")
    sizes = json.loads(head)
    outcome = "is trained on"
    with scratch() as folder:
        start = 0
        for name, size in sizes.items():
            (folder / name).write_bytes(rest[start : start + size])
            start += size
        for mmap in (True, False):
            try:
                shards = SequenceShards.open(folder, mmap=mmap)
            except ModelFileError:
                return "ModelFileError"
            try:
                labeler = SequenceLabeler(
                    C=0.1, templates=TEMPLATES, hash_bits=seed.hash_bits, max_iter=1, random_state=0
                )
                labeler.fit(shards).predict([["the", "dog"]])
            except ValueError:
                outcome = "ValueError of training"
    return outcome


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this process, emptied."""
    folder = Path(model_files.MEMORY or tempfile.gettempdir()) / f"structsvm-fuzz-{os.getpid()}.d"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
