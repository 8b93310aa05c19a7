"""Work under limits of address space: the cases of tests/faults/test_limits.py, in their large sizes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from resource import RUSAGE_CHILDREN, getrusage

from common.measure import BENCHMARKS
from common.report import Table, notes

SHARES = (0.05, 0.5, 1.5)
COLUMNS = {
    "case": ("work", ""),
    "need": ("address space that it takes, MB", ",d"),
    "seconds": ("CPU s", ".1f"),
    **{f"{share:g}": (f"with {100 * share:g} % of it", "") for share in SHARES},
}


def run(options):
    if not options.quick:
        os.environ["STRUCTSVM_LARGE"] = "1"
    sys.path.insert(0, str(BENCHMARKS.parent / "tests" / "faults"))
    limits, rows = import_module("test_limits"), []
    for case, code in limits.CASES.items():
        begin = getrusage(RUSAGE_CHILDREN).ru_utime
        need = int(limits.outcome(code, 0))
        seconds = getrusage(RUSAGE_CHILDREN).ru_utime - begin
        said = [line.split()[0] for line in limits.outcome(code, need, *SHARES).splitlines()]
        outcomes = {f"{share:g}": what for share, what in zip(SHARES, said, strict=True)}
        rows.append({"case": case, "need": need // 10**6, "seconds": seconds} | outcomes)
        yield Table("Limits of address space", COLUMNS, rows, ABOUT)


ABOUT = notes("""What a process takes beyond its imports, without a limit, training and prediction together; and what
comes of the same work under limits (RLIMIT_AS) to shares of it: MemoryError, or done.""")
