"""A small run of the fuzzer; and that it finds crashes, hangs, hunger for memory and exceptions."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
TEXTS = ["conllu", "columns", "templates", "trees", "grammar", "taxonomy", "svmlight", "queries"]
TEXTS += [
    "attributes",
    "documents",
    "graphs",
    "bags",
    "meanings",
    "questions",
    "partial",
    "pieces",
    "alignments",
    "many",
    "matrix",
]
OTHERS = ["resume", "checkpoint", "shards", "wapiti", "crfpp", "crfsuite"]
OTHERS += ["tables"] if find_spec("pyarrow") and find_spec("narwhals") else []

FAULTY = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import runner
from runner import FileKind, run

def read(data, seed):
    match data[0] % 10:
        case 1: os.kill(os.getpid(), signal.SIGSEGV)
        case 2:
            while True: pass
        case 3: bytearray(5 << 30)
        case 4: raise KeyError("no key")
        case 5: raise ValueError("documented")
        case 6: os._exit(3)
    return "read"

runner.LIMIT_SECONDS, runner.BATCH = 0.2, 7
kind = FileKind("x", lambda: [0], lambda rng, seed: bytes([seed + rng.randrange(10)]), read, (ValueError,))
report = run(kind, 1, 5, 60)
drawn = [runner.mutant(kind, [0], 1, k)[0][0] for k in range(5, 65)]
places = {k: [i for i, value in enumerate(drawn, start=5) if value == k] for k in range(10)}
assert all(places.values())
assert report.faults.pop("SIGSEGV") == places[1]
assert report.faults.pop("more than 0.2 s") == places[2]
assert report.faults.pop("exit 3") == places[6]
(memory,) = [what for what in report.faults if what.startswith("MemoryError")]
assert report.faults.pop(memory) == places[3]
((what, indices),) = report.faults.items()
assert what.startswith("KeyError at <string>") and indices == places[4]
assert report.outcomes["ValueError"] == len(places[5])
assert report.outcomes["read"] == sum(len(places[k]) for k in (0, 7, 8, 9))
"""


@pytest.mark.parametrize(("kinds", "count"), [(["model"], 120), ([*OTHERS, *TEXTS], 60)], ids=lambda k: str(k))
def test_no_mutant_crashes_hangs_or_raises_what_is_not_documented(kinds, count):
    command = [sys.executable, str(FOLDER), "--seed", "0", "--count", str(count), "--kind", *kinds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(kinds)


@pytest.mark.skipif(
    sys.platform != "linux" or "STRUCTSVM_SANITIZED" in os.environ, reason="limits of memory as Linux has them"
)
def test_faults_are_found():
    done = subprocess.run([sys.executable, "-c", FAULTY, str(FOLDER)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
