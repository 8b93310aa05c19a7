"""Peak memory of inputs that are refused."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from textwrap import dedent, indent

from common.report import Table, notes

# The shortest lines of each kind of text, and one that is none: below the limit of what files may unfold to.
SHORTEST = [
    ("columns", "read_columns", "a b\n\n", "a b c\n", 33),
    ("svmlight", "read_svmlight", "1 \n", "1 a\n", 33),
    ("documents", "read_documents", "ab\n", "a\tb\n", 33),
    ("labelled documents", "read_documents", "ab\tcd\n", "ab\n", 33),
    ("trees", "read_trees", "(a b)\n", "(\n", 33),
    ("deep trees", "read_trees", "(a", "\n", 33),
    ("bags", "read_bags", '{"sentence":"a","bag":"b"}\n', "{}\n", 33),
    ("alignments", "read_alignments", ">ab\nAC\n", ">ab\n\n", 33),
]

# Each makes a hostile file and reads it; the size in MB is a tenth with --quick.
CASES = {
    "model file, header of 16 MB of brackets": """
        header = b"[" * (16 * mega - 64)
        write(struct.pack("<8sII", MAGIC, len(header), zlib.crc32(struct.pack("<I", len(header)) + header)) + header)
        load(path)
        """,
    "model file, an array that claims 2^60 numbers": """
        header = json.dumps({"schema": 1, "version": "0", "kind": "sequence", "meta": {}, "arrays": [
            {"name": "weights", "dtype": "<f8", "shape": [2**60], "offset": 0, "crc32": 0}]}).encode()
        header += b" " * (-(16 + len(header)) % 64)
        write(struct.pack("<8sII", MAGIC, len(header), zlib.crc32(struct.pack("<I", len(header)) + header)) + header)
        load(path)
        """,
    "columns, compressed: 10,000 MB of one letter": """
        with gzip.open(path + ".gz", "wb", 1) as file:
            for _ in range(10_000 * mega >> 20):
                file.write(b"a" * (1 << 20))
        read_columns(path + ".gz")
        """,
    "columns, compressed: 25 times 22 MB, of one letter but for 44 MB; a line of 3 columns": """
        with gzip.open(path + ".gz", "wb", 1) as file:
            file.write(b"w " + np.random.default_rng(0).bytes(22 * mega).hex().encode() + b"\\nw ")
            for _ in range(450 * mega >> 20):
                file.write(b"a" * (1 << 20))
            file.write(b"\\nw a b\\n")
        read_columns(path + ".gz")
        """,
    **{
        f"{name}, compressed: {unfolded} MB of the shortest lines, and a bad one": f"""
        with gzip.open(path + ".gz", "wb", 1) as file:
            file.write({line!r}.encode() * ({unfolded} * mega // {len(line)}) + {bad!r}.encode())
        {reader}(path + ".gz")
        """
        for name, reader, line, bad, unfolded in SHORTEST
    },
    "columns, a line of 100 MB without a label": """
        write(b"a" * (100 * mega))
        read_columns(path)
        """,
    "trees, 10 million brackets deep": """
        write(b"(S " * (10 * mega))
        read_trees(path)
        """,
    "grammar, 100,000 rules in one cycle": """
        write("".join(f"N{k} -> N{(k + 1) % 100_000}\\n" for k in range(100_000)).encode())
        CKYOracle(open(path).read())
        """,
    "svmlight, a column index of 2^62": """
        write(b"1 1:1\\n2 4611686018427387904:1\\n" * (mega // 4))
        read_svmlight(path)
        """,
}
CHILD = """
import gzip, json, resource, struct, sys, tempfile, zlib
import numpy as np
from structsvm import load
from structsvm.features.columns import read_columns
from structsvm.features.svmlight import read_svmlight
from structsvm.model_file import MAGIC
from structsvm.oracles.cky import CKYOracle
from structsvm.structures.bag_lines import read_bags
from structsvm.structures.trees import read_trees
from structsvm.tasks.alignment.files import read_alignments
from structsvm.tasks.taxonomy.documents import read_documents
folder, mega = sys.argv[1], int(sys.argv[2])
path = folder + "/file"
def write(data):
    with open(path, "wb") as file:
        file.write(data)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
before = peak()
try:
    CASE
except Exception as error:
    print(f"{peak():.0f}\\t{before:.0f}\\t{type(error).__name__}\\t{str(error).replace(folder, '')[:90]!r}")
else:
    print(f"{peak():.0f}\\t{before:.0f}\\tread\\t")
"""
COLUMNS = {
    "case": ("input", ""),
    "outcome": ("outcome", ""),
    "peak": ("peak of the process, MB", "d"),
    "before": ("of which imports, MB", "d"),
    "message": ("message begins", ""),
}


def run(options):
    rows = []
    for case, code in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            code = CHILD.replace("    CASE", indent(dedent(code).strip(), "    "))
            command = [sys.executable, "-P", "-c", code, folder, str(10**5 if options.quick else 10**6)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            rows.append({"case": case, "outcome": f"exit {done.returncode}", "message": done.stderr[-200:]})
            continue
        peak, before, outcome, message = done.stdout.rstrip("\n").split("\t")
        rows.append({"case": case, "outcome": outcome, "peak": int(peak), "before": int(before), "message": message})
    yield Table("Memory of refused inputs", COLUMNS, rows, ABOUT)


ABOUT = notes("""The largest resident size of a process that makes the input and reads it.""")
