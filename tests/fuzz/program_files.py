"""Model files of Wapiti and CRF++: sound ones with changes, read, tagged with, and written as every kind."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from text_files import MEMORY, change_bytes
from text_files import mutate as mutate_text

from structsvm.interop import ChainModel
from structsvm.interop.kinds import KINDS

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from crfpp_files import TEXT, binary

MODEL = (
    b"#mdl#2#7\n#rdr#3/1/0\n9:u:%X[0,0],\n1:b,\n10:*:%x[-1,1],\n#qrk#2\n1:A,\n2:\xc3\xa9,\n"
    b"#qrk#4\n5:u:dog,\n1:b,\n6:*:_x-1,\n3:*:N,\n0=0x1.8p+1\n1=-0x1p-1\n3=0x1p+0\n4=-0x1.4p+2\n6=0x1p+3\n13=0x1.0cp+1\n15=-2.5\n"
)
BARE = b"#mdl#2#3\n#rdr#0/0/0\n#qrk#2\n1:A,\n1:B,\n#qrk#2\n4:ux=1,\n1:b,\n0=0x1p+0\n2=0x1p+1\n5=-0x1p+1\n"
ALONE = b"#mdl#0#1\n#rdr#1/0/1\n10:u:%x[-1,0],\n#qrk#2\n1:A,\n1:B,\n#qrk#1\n7:uu:_x-1,\n1=0x1p+0\n"
SEQUENCE = [["Dog", "N"], ["a", "D"], ["DOG", "N"]]


def wapiti() -> list[bytes]:
    return [MODEL, BARE, ALONE, gzip.compress(MODEL, mtime=0)]


def crfpp() -> list[bytes]:
    return [TEXT, binary()]


def mutate(rng: random.Random, seed: bytes) -> bytes:
    """A mutant: of text as others, else with one to three numbers or some bytes changed."""
    if seed == TEXT:
        return mutate_text(rng, seed)
    data = seed
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.choice((rng.randrange(0, 36, 4), rng.randrange(max(len(data) - 3, 1))))
        if rng.random() < 0.3 or at + 4 > len(data):
            data = change_bytes(rng, data)
            continue
        (old,) = struct.unpack_from("<I", data, at)
        new = rng.choice((0, 1, old + 1, old - 1, old ^ 0x80000000, 2**31 - 1, 2**32 - 1, len(data))) % 2**32
        data = data[:at] + struct.pack("<I", new) + data[at + 4 :]
    return data


def reader(read: Callable[[bytes], ChainModel]) -> Callable[[bytes, Any], str]:
    """The `read` of a kind: tag, and write as all kinds."""

    def use(data: bytes, _seed: Any) -> str:
        model = read(data)
        sequence = SEQUENCE if model.n_columns <= 2 else [["x"] * min(model.n_columns, 100)] * 2
        with contextlib.suppress(ValueError):  # more columns than that
            model.predict([sequence])
            model.predict_marginals([sequence])
        path = os.path.join(MEMORY, f"structsvm-fuzz-{os.getpid()}.program")
        try:
            for kind in KINDS.values():
                with contextlib.suppress(ValueError):  # the other program has no counterpart
                    kind.write(model, path)
                    kind.read(path)
        finally:
            if os.path.exists(path):
                os.unlink(path)
        return "is read"

    return use
