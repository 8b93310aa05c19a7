"""The floor for charts: their max-plus loops alone, over arrays of the same layout, built by the local compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from common.measure import repeat

BLOCK = 4
PASSES = 20  # the first one finds cold caches
SOURCE = """
#include <stdint.h>
typedef double block __attribute__((vector_size(32)));
void max_plus(block *values, const int64_t *runs, int64_t n_runs, const double *weights) {
    for (int64_t r = 0; r < n_runs; r++) {
        block *to = values + runs[3 * r];
        const block *from = values + runs[3 * r + 1];
        for (int64_t k = 0; k < runs[3 * r + 2]; k++) {
            block sum = from[k] + weights[r], best = to[k];
            for (int q = 0; q < 4; q++) best[q] = sum[q] > best[q] ? sum[q] : best[q];
            to[k] = best;
        }
    }
}
"""


def compiled():
    """The loop, or None if there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "floor.c", Path(folder) / "floor.so"
        source.write_text(SOURCE)
        options = ["-O3", "-march=native", "-Wno-psabi", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, str(source), "-o", str(library)], check=True)
        loop = ctypes.CDLL(str(library)).max_plus
    loop.restype = None
    return loop


def floor(loop, parser, sentence, w):
    """CPU seconds of the loops of a sentence's chart: one run of ends per rule and left child."""
    runs, n_rows = runs_of(parser, sentence, w)
    if len(runs) == 0:
        return 0.0
    values = np.zeros(BLOCK * n_rows + 8)
    values = values[(-values.ctypes.data // 8) % 8 :]  # whole blocks, aligned
    weights = np.random.default_rng(0).normal(size=len(runs))
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    operands = (values.ctypes.data, runs.ctypes.data, len(runs), weights.ctypes.data)
    arguments = [kind(number) for kind, number in zip(kinds, operands, strict=True)]
    return repeat(lambda: [loop(*arguments) for _ in range(PASSES)], 3)[1].cpu / PASSES


def runs_of(parser, sentence, w):
    """``(row to, row from, length)`` in blocks of the runs, in the order of the chart; and the rows' blocks."""
    parser.fill(sentence, w)
    grammar, n = parser.tables, len(sentence)
    pairs = np.stack([grammar.arrays["pair_left"], grammar.arrays["pair_right"]], axis=1)
    found = []
    for i in range(n):
        for j in range(i + 2, n + 1):
            for symbol in range(grammar.n_symbols):
                found += [(i, k, rule, symbol, j) for _, rule, k in parser.rules(symbol, i, j)]
    i, k, rule, symbol, j = np.array(found, dtype=np.int64).reshape(-1, 5).T
    right = pairs[grammar.arrays["rule_pair"][rule], 1]
    used, indices = np.unique(np.concatenate([symbol, right]), return_inverse=True)
    symbol, right = indices[: len(i)], indices[len(i) :]
    width = n // BLOCK + 1
    order = np.lexsort((j, rule, k, -i))
    i, k, rule, symbol, right, j = (x[order] for x in (i, k, rule, symbol, right, j))
    first = np.flatnonzero(np.diff(np.stack([i, k, rule]), axis=1, prepend=-1).any(axis=0))
    last = np.append(first[1:], len(i)) - 1
    begin, length = j[first] // BLOCK, j[last] // BLOCK - j[first] // BLOCK + 1
    rows = [(x[first] * len(used) + s[first]) * width + begin for x, s in ((i, symbol), (k, right))]
    return np.ascontiguousarray(np.stack([*rows, length], axis=1)), n * len(used) * width
