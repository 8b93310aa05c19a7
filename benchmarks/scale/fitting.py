"""Make shards of a Parquet file, or train on them or on the file itself, in a process of its own that may be short of
memory: python -m scale.fitting make|shards|memory FILE FOLDER MAX_MEMORY LIMIT; prints JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import pyarrow as pa
from pyarrow import parquet

from common.measure import peak
from structsvm import LaRank, SequenceShards
from structsvm.features.columns import Columns
from structsvm.tasks import SequenceLabeler, TokenFeatures

TEMPLATES, HASH_BITS, PASSES = "crf++", 14, 2


def data_used():
    """Bytes of private memory, which RLIMIT_DATA limits."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmData"))


def main(action, file, folder, max_memory, limit):
    labeler = SequenceLabeler(
        solver=LaRank(C=0.1, max_iter=PASSES, random_state=0),
        loss="hamming",
        probability=False,
        templates=TEMPLATES,
        features=TokenFeatures(hash_bits=HASH_BITS),
    )
    SequenceLabeler(C=0.1, templates="attributes").fit([["a"], ["b"]], [["x"], ["y"]])  # memory of imports and pools
    pa.set_cpu_count(1)  # without memory for their stacks, its threads would be waited for without an end
    before = peak()
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (data_used() + limit, resource.RLIM_INFINITY))
    begin, outcome, found = time.process_time(), "done", {}
    try:
        if action == "make":
            shards = SequenceShards.make(file, folder, max_memory=max_memory, templates=TEMPLATES, hash_bits=HASH_BITS)
            found = {"n_shards": shards.n_shards, "n_tokens": shards.n_tokens}
        elif action == "shards":
            labeler.fit(SequenceShards.open(folder))
        else:
            columns = Columns.from_dataframe(parquet.read_table(file, use_threads=False))
            labeler.fit(columns.drop_last(), columns.select([-1]))
    except MemoryError:
        outcome = "no memory"
    seconds = time.process_time() - begin
    if hasattr(labeler, "model_"):
        found["dual"] = labeler.result_.dual
        found["gap"] = 100.0 * labeler.result_.relative_gap
    print(json.dumps(found | {"outcome": outcome, "peak": peak() - before, "imports": before, "cpu": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:6]))
