"""Sizes beyond what memory or indices can hold: an error that says so, never a crash.

Each case runs in a child process, first without a limit, which gives its need of address space beyond that of the
imports; then under limits from a little of that need to one and a half times it.
"""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "STRUCTSVM_SANITIZED" in os.environ, reason="limits of address space as Linux has them"
)

CASES = {
    "a sequence of 50,000 tokens": """
        from structsvm.tasks import SequenceLabeler
        rng = np.random.default_rng(0)
        X, y = [rng.normal(size=(50_000, 3))], [rng.integers(0, 4, 50_000).tolist()]
        def work():
            SequenceLabeler(max_iter=1, random_state=0).fit(X, y).predict(X)
        """,
    "10,000 labels": """
        from structsvm.tasks import TaxonomyClassifier
        X, y = np.random.default_rng(0).normal(size=(10_000, 30)), [f"n{k}" for k in range(10_000)]
        def work():
            TaxonomyClassifier(max_iter=1, random_state=0).partial_fit(X[:100], y[:100], classes=y).predict(X[:100])
        """,
    "kernel machines of 2,000 examples": """
        from structsvm.tasks import CrammerSingerClassifier, LaRankClassifier
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(2000, 20)), rng.integers(0, 30, 2000)
        def work():
            LaRankClassifier(kernel="rbf", max_iter=1, random_state=0).fit(X, y).predict(X)
            CrammerSingerClassifier(kernel="rbf", max_iter=2, tol=0.5, random_state=0).fit(X, y)
        """,
    "an alignment of 3,000 x 3,000": """
        from structsvm.tasks import SequenceAligner
        rng = np.random.default_rng(0)
        x, z = ("".join(rng.choice(list("ACGT"), 3000)) for _ in range(2))
        def work():
            SequenceAligner(max_iter=1, random_state=0).fit([(x, z)], [(x, z)]).predict([(x, z)])
        """,
    "a chart of 300 words and 100 symbols": r"""
        from structsvm.oracles.cky import CKYOracle
        rules = "".join(f"S -> X{k} S\nX{k} -> 'a'\n" for k in range(100))
        oracle = CKYOracle(rules + "S -> 'a'", max_length=300)
        def work():
            oracle.argmax(["a"] * 300, np.ones(oracle.n_features))
        """,
}
CHILD = """
import resource, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
np.ones((600, 600), np.float32) @ np.ones((600, 600), np.float32)  # OpenBLAS ends a process without room for its buffer
{case}
def size(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))
need, *shares = map(float, sys.argv[1:])
before = size("VmSize")
if not need:
    work()
    print(size("VmPeak") - before)
for share in shares:
    resource.setrlimit(resource.RLIMIT_AS, (before + int(share * need), resource.RLIM_INFINITY))
    try:
        work()
    except MemoryError as error:
        print("MemoryError", error)
    else:
        print("done")
"""


def outcome(case, *arguments):
    code = CHILD.replace("{case}", textwrap.dedent(case))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_too_little_memory_is_an_error(case):
    need = int(outcome(case, 0))
    assert outcome(case, need, 0.05, 0.5).startswith("MemoryError")
    assert outcome(case, need, 1.5) == "done"
