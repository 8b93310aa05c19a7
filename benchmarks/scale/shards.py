"""Training on data that are larger than the memory allowed: shards in mapped files, beside all data in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from common.measure import run_module
from common.report import Table, notes, verdict
from structsvm.datasets import fetch_conll2000
from structsvm.features.columns import read_columns

SHARE = 4  # how many times the memory allowed the encoded data take
MAX_MEMORY = 16_000_000
COLUMNS = {
    "copies": ("times the text", ".0f"),
    "tokens": ("tokens", ".0f"),
    "encoded": ("encoded, MB", ".0f"),
    "n_shards": ("shards", ".0f"),
    "limit": ("memory allowed, MB", ".0f"),
    "made": ("made: peak MB", ".0f"),
    "made_cpu": ("CPU s", ".1f"),
    "fitted": ("fit on shards: peak MB", ".0f"),
    "fitted_cpu": ("CPU s", ".1f"),
    "dual": ("dual", ".5g"),
    "plain": ("the same limit, data in memory", ""),
    "memory": ("without limit: peak MB", ".0f"),
    "memory_cpu": ("CPU s", ".1f"),
    "dual_memory": ("dual", ".5g"),
}


def run(options):
    """Yield the one table, again with each size."""
    rows = []
    for copies in (1,) if options.quick else (2, 8):
        rows.append(measure(copies))
        yield table(rows)


def measure(copies):
    with tempfile.TemporaryDirectory() as scratch:
        file, folder = Path(scratch, "train.parquet"), Path(scratch, "shards")
        write(file, copies)
        made = fit("make", file, folder)
        encoded = sum(path.stat().st_size for path in folder.iterdir())
        limit = encoded // SHARE if copies == 8 else 0
        fitted, memory = fit("shards", file, folder, limit), fit("memory", file, folder)
        plain = fit("memory", file, folder, limit) if limit else memory
    return {
        "copies": copies,
        "tokens": made["n_tokens"],
        "encoded": encoded / 1e6,
        "n_shards": made["n_shards"],
        "limit": limit / 1e6 if limit else None,
        "made": made["peak"],
        "made_cpu": made["cpu"],
        "fitted": fitted["peak"],
        "fitted_cpu": fitted["cpu"],
        "outcome": fitted["outcome"],
        "dual": fitted.get("dual"),
        "plain": plain["outcome"] if limit else None,
        "memory": memory["peak"],
        "memory_cpu": memory["cpu"],
        "dual_memory": memory["dual"],
    }


def write(file, copies):
    """A Parquet file with a sentence per row, the training part of CoNLL-2000 so many times."""
    columns = read_columns(fetch_conll2000().train_path)
    rows = pa.table({name: columns.column(j) for j, name in enumerate(("word", "tag", "chunk"))})
    with parquet.ParquetWriter(file, rows.schema) as writer:
        for _ in range(copies):
            writer.write_table(rows)


def fit(action, file, folder, limit=0):
    return run_module("scale.fitting", action, file, folder, MAX_MEMORY, limit)


def table(rows):
    text = f"""
    chunking (CoNLL-2000, its training text so many times, as Parquet), templates of CRF++ hashed to 2^14, LaRank, 2
    passes with their certificate; each action in a process of its own, its peak of resident memory less that of the
    imports; max_memory={MAX_MEMORY / 1e6:.0f} MB

    memory allowed: private memory beyond that of the imports (RLIMIT_DATA), a quarter of the encoded data
    """
    last = rows[-1]
    target = verdict(
        f"training on data {SHARE} times the memory allowed",
        f"{last['outcome']}; with the data in memory: {last['plain']}",
        last["outcome"] == "done" and last["plain"] == "no memory",
    )
    return Table("Training sets larger than memory", COLUMNS, rows, [*notes(text), target])
