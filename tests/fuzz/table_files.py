"""Tables in Parquet and Arrow files: sound ones of any contents, and damaged ones."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
import struct
from decimal import Decimal
from typing import Any

import model_files
import pyarrow as pa
from pyarrow import parquet
from shard_files import LABELS, NAMES, TEMPLATES, WORDS, scratch
from text_files import change_bytes

from structsvm import SequenceShards

READINGS = ({}, {"sequence": "sentence"}, {"columns": ["word", "label"], "names": {"label": NAMES}})

# Cells of a column, by its type.
CELLS: list[tuple[Any, list[Any]]] = [
    (pa.string(), ["a", "", "b", "\0", "é" * 40, "a\tb", "a\nb", " ", None]),
    (pa.large_string(), ["a", "b", None]),
    (pa.string_view(), ["a", "b" * 30, None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    (pa.binary(), [b"a", b"\xff", None]),
    (pa.int64(), [0, 1, 2, -1, 2**63 - 1, -(2**63), None]),
    (pa.uint8(), [0, 1, 2, 255, None]),
    (pa.float64(), [0.0, 1.0, -0.0, float("nan"), float("inf"), None]),
    (pa.float16(), [0.0, 1.0, None]),
    (pa.bool_(), [True, False, None]),
    (pa.null(), [None]),
    (pa.date32(), [dt.date(2000, 1, 1), None]),
    (pa.timestamp("s"), [0, 2**62, None]),
    (pa.timestamp("ns", tz="Europe/Berlin"), [0, 1, None]),
    (pa.timestamp("us", tz="Nowhere/Land"), [0, 1]),
    (pa.duration("s"), [0, 2**62, None]),
    (pa.time64("ns"), [0, 1, None]),
    (pa.decimal128(38, 2), [Decimal("1.00"), None]),
    (pa.list_(pa.string()), [["a", "b"], ["a"], [], [None], None]),
    (pa.large_list(pa.int32()), [[0, 1], [2], [], [None], None]),
    (pa.list_(pa.list_(pa.string())), [[["a"]], [[]], None]),
    (pa.list_(pa.int8(), 2), [[0, 1], [1, 2]]),
    (pa.map_(pa.string(), pa.int8()), [[("a", 1)], [], None]),
    (pa.struct([("a", pa.int8())]), [{"a": 1}, None]),
    (pa.struct([]), [{}, None]),
]
HUGGING_FACE = [
    {"info": {"features": {"label": {"feature": {"names": NAMES, "_type": "ClassLabel"}}}}},
    {"info": {"features": {"word": [{"names": [1, 2], "_type": "ClassLabel"}]}}},
    {"info": {"features": {"label": {"names": "ab", "_type": "ClassLabel"}}}},
    {"info": {"features": {"word": {"names": 3, "_type": "ClassLabel"}}}},
    {"info": {"features": {"label": {"names": {"a": 1}, "_type": "ClassLabel"}}}},
    {"info": {"features": [1]}},
    [],
]

# ---- tables -------------------------------------------------------------------------------------


def tables() -> list[pa.Table]:
    """Sound tables: a sentence per row, a token per row, class ids and their names."""
    rows = [(f"s{k}", *pair) for k in range(len(WORDS)) for pair in zip(WORDS[k], LABELS[k], strict=True)]
    named, words, labels = (list(column) for column in zip(*rows, strict=True))
    ids = pa.table({"word": WORDS, "label": [[NAMES.index(label) for label in row] for row in LABELS]})
    features = {"label": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}}
    return [
        pa.table({"word": WORDS, "label": LABELS}),
        pa.table({"sentence": named, "word": words, "label": pa.array(labels).dictionary_encode()}),
        ids.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}),
    ]


def mutate(rng: random.Random, seed: pa.Table) -> bytes:
    """A file of a table, of which columns are changed or bytes are."""
    table = seed
    is_damaged = rng.random() < 0.5
    if not is_damaged or rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2))):
            table = changed(rng, table)
    data = written(rng, table)
    for _ in range(rng.choice((1, 1, 2, 4)) if is_damaged else 0):
        data = change_bytes(rng, data) if rng.random() < 0.3 else with_number(rng, data)
    return data[: 1 << 17]


def changed(rng: random.Random, table: pa.Table) -> pa.Table:
    """With a column that is another, gone, doubled or named otherwise, rows in another order, or other metadata."""
    if not table.num_columns:
        return table
    k = rng.randrange(table.num_columns)
    match rng.randrange(8):
        case 0:
            return table.remove_column(k)
        case 1:
            return table.append_column(rng.choice((table.column_names[k], "", "\0", "x" * 300)), table.column(k))
        case 2:
            return pa.concat_tables([table.slice(rng.randrange(len(table) + 1)), table])
        case 3:
            return table.slice(0, 0)
        case 4:
            return table.replace_schema_metadata({"huggingface": json.dumps(rng.choice(HUGGING_FACE))})
        case 5:
            return table.replace_schema_metadata({"huggingface": rng.choice(["", "{", "[" * 5000, "null", "\ud7ff"])})
        case _:
            kind, cells = rng.choice(CELLS)
            column = pa.array(rng.choices(cells, k=len(table)), type=kind)
            return table.set_column(k, table.column_names[k], column)


def written(rng: random.Random, table: pa.Table) -> bytes:
    """A file of a table, of either form; one that the form cannot hold is the other's."""
    sink = io.BytesIO()
    if rng.random() < 0.5:
        try:
            parquet.write_table(
                table, sink, row_group_size=rng.choice((1, 2, 100)), use_dictionary=rng.random() < 0.5,
                compression=rng.choice(("none", "snappy", "gzip", "zstd", "lz4")), version=rng.choice(("1.0", "2.6")),
                data_page_version=rng.choice(("1.0", "2.0")),
            )  # fmt: skip
            return sink.getvalue()
        except (pa.ArrowException, ValueError):
            sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice((None, None, "lz4", "zstd")))
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rng.choice((1, 3, 100)))
    return sink.getvalue()


def with_number(rng: random.Random, data: bytes) -> bytes:
    """With a number of a few bytes in some place: a length, an offset, a type."""
    form, bits = rng.choice((("<b", 8), ("<h", 16), ("<i", 32), ("<q", 64)))
    value = rng.choice((*model_files.INTEGERS, rng.randrange(256)))
    value = min(max(value, -(2 ** (bits - 1))), 2 ** (bits - 1) - 1)
    size = struct.calcsize(form)
    place = rng.randrange(max(len(data) - size, 1))
    return data[:place] + struct.pack(form, value) + data[place + size :]


def read(data: bytes, seed: Any) -> str:
    """Encode a file into shards, by rows and by sequences of rows, and open them."""
    with scratch() as folder:
        (folder / "table").write_bytes(data)
        refused = 0
        for k, how in enumerate(
            ({}, {"sequence": "sentence"}, {"columns": ["word", "label"], "names": {"label": NAMES}})
        ):
            try:
                made = SequenceShards.make(folder / "table", folder / str(k), hash_bits=4, templates=TEMPLATES, **how)
            except ValueError as error:
                refused += 1
                if refused == len(READINGS):
                    raise error from None
                continue
            assert len(made) and made.n_tokens
    return "is read"
