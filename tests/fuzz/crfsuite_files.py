"""Model files of CRFsuite: sound ones, in which numbers of headers, lists and databases, or any bytes, are changed."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
from text_files import change_bytes

from structsvm.interop import ChainModel, read_crfsuite
from structsvm.interop.chain_model import Weights
from structsvm.interop.crfsuite import to_bytes

NUMBERS = [0, 1, 2, 3, 8, 12, 24, 48, 255, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
HEADS = range(0, 48, 4)


def models() -> list[bytes]:
    """Files of one and of several labels, with and without transitions and attributes."""
    files = []
    for n_labels, n_attributes in ((1, 0), (2, 3), (5, 40)):
        rng = np.random.default_rng(n_labels)
        rows, targets = np.divmod(np.flatnonzero(rng.random(n_attributes * n_labels) < 0.7), n_labels)
        states = Weights.of_entries(rows, targets, rng.normal(size=len(rows)), n_attributes)
        attributes = [f"w:{k}" for k in range(n_attributes)]
        between = rng.normal(size=(n_labels, n_labels)) * (n_labels > 1)
        files.append(
            to_bytes(ChainModel("crfsuite", list("ABCDE"[:n_labels]), attributes, states, transitions=between))
        )
    return files


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A mutant: one to three numbers of 32 bits, of the header or anywhere, or a few bytes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.3:
            data = change_bytes(rng, data)
            continue
        at = rng.choice(HEADS) if rng.random() < 0.3 else rng.randrange(0, max(len(data) - 3, 1), 1)
        if at + 4 <= len(data):
            (old,) = struct.unpack_from("<I", data, at)
            near = (old + rng.choice((-4, -1, 1, 4))) % 2**32
            new = rng.choice([*NUMBERS, near, near, near, len(data), rng.randrange(len(data) + 1)])
            data = data[:at] + struct.pack("<I", new) + data[at + 4 :]
    return data[: 1 << 16]


def read(data: bytes, seed: Any) -> str:
    """Read a mutant, tag with it, and write it."""
    model = read_crfsuite(data)
    sequence = [model.attributes[:3], {"w": ["1", "2"]}, []]
    model.predict([sequence])
    model.predict_marginals([sequence])
    read_crfsuite(to_bytes(model))
    return "read"
