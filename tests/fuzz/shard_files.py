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
from typing import Any

import model_files
import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm import DocumentShards, ModelFileError, SequenceShards
from structsvm.shards.base import DTYPES, INDEX
from structsvm.tasks import SequenceLabeler, TaxonomyClassifier, TokenFeatures

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
    kind: type[SequenceShards | DocumentShards]
    estimator: SequenceLabeler | TaxonomyClassifier
    asked: list[Any]


def folders() -> list[Folder]:
    """Folders of sequences (a vocabulary; hashed features, which have values) and of documents (texts; rows)."""
    texts = [(["red dog", "red", "cat dog", "a cat"], ["A > x", "A > y", "B", "B"])]
    rows = [([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], ["A > x", "A > y", "B"])]
    how = {"C": 0.1, "max_iter": 1, "random_state": 0}
    sources: list[Any] = [
        (SequenceShards, io.BytesIO(TEXT), {"templates": TEMPLATES, "hash_bits": bits}, [["the", "dog"]])
        for bits in (None, 3)
    ]
    sources += [
        (DocumentShards, texts, {"vectorizer": TfidfVectorizer()}, ["a dog"]),
        (DocumentShards, rows, {}, [[1.0, 2.0]]),
    ]
    found = []
    for kind, source, given, asked in sources:
        is_sequence = kind is SequenceShards
        features = TokenFeatures(hash_bits=given.get("hash_bits"))
        labeler = SequenceLabeler(**how, templates=TEMPLATES, features=features)
        estimator = labeler if is_sequence else TaxonomyClassifier(" > ", **how)
        with scratch() as folder:
            made = kind.make(source, folder / "new", **given, max_memory=90)
            index = model_files.original("shards", made.folder / INDEX, None, (None, None, None), None)
            vectors = {name: (made.folder / name).read_bytes() for name in DTYPES if (made.folder / name).exists()}
        found.append(Folder(index, vectors, kind, estimator, asked))
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
                shards = seed.kind.open(folder, mmap=mmap)
            except ModelFileError:
                return "ModelFileError"
            try:
                clone(seed.estimator).fit(shards).predict(seed.asked)
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
