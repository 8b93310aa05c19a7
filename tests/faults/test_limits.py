"""Sizes beyond what memory or indices can hold: an error that says so, never a crash.

The first cases are large structures; then come many copies of the data of each estimator's case. Each runs in a child
process, first in a copy of it without a limit, which gives its need of address space beyond that of the imports; then
under limits from a little of that need to one and a half times it. With STRUCTSVM_LARGE set, as in the weekly runs,
cases are ten and more times as large.
"""

import os
import subprocess
import sys
import textwrap

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from cases import TABLE

from structsvm.datasets import make_dependency_trees
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.structures.taxonomy import Taxonomy
from structsvm.tasks import (
    AmbiguousClassifier,
    ArcFeatures,
    DependencyParser,
    LaRankClassifier,
    SequenceLabeler,
    SGDQNClassifier,
    TaxonomyClassifier,
)

LARGE = "STRUCTSVM_LARGE" in os.environ
N_TOKENS, N_LABELS = (1_000_000, 100_000) if LARGE else (50_000, 10_000)

CASES = {
    f"a sequence of {N_TOKENS:,} tokens": f"""
        from structsvm.tasks import SequenceLabeler
        rng = np.random.default_rng(0)
        X, y = [rng.normal(size=({N_TOKENS}, 3))], [rng.integers(0, 4, {N_TOKENS}).tolist()]
        def work():
            SequenceLabeler(C=1.0, max_iter=1, random_state=0).fit(X, y).predict(X)
        """,
    f"{N_LABELS:,} labels": f"""
        from structsvm.tasks import TaxonomyClassifier
        X, y = np.random.default_rng(0).normal(size=({N_LABELS}, 30)), [f"n{{k}}" for k in range({N_LABELS})]
        def work():
            TaxonomyClassifier(max_iter=1, random_state=0).partial_fit(X[:100], y[:100], classes=y).predict(X[:100])
        """,
    "kernel machines of 2,000 examples": """
        from structsvm.tasks import CrammerSingerClassifier, LaRankClassifier
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(2000, 20)), rng.integers(0, 30, 2000)
        def work():
            LaRankClassifier(C=1.0, kernel="rbf", gamma="scale", max_iter=1, random_state=0).fit(X, y).predict(X)
            CrammerSingerClassifier(C=1.0, kernel="rbf", gamma="scale", max_iter=2, tol=0.5, random_state=0).fit(X, y)
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
    **{
        f"a grid of {side} x {side}, {method}": f"""
        from structsvm.tasks import GraphLabeler
        y = np.random.default_rng(0).integers(0, 2, ({side}, {side}))
        X = np.eye(2)[y]
        def work():
            GraphLabeler(C=0.1, method="{method}", max_iter=1, random_state=0).fit([X], [y]).predict([X])
        """
        for method, side in (("cut", 300), ("relaxed", 200), ("expansion", 200))
    },
    "segments of 50,000 tokens": """
        from structsvm.tasks import SequenceLabeler
        rng = np.random.default_rng(0)
        X = [[(f"w{k}",) for k in rng.integers(0, 1000, 50_000).tolist()]]
        y = [[(k, k + 2, f"n{k % 5}") for k in range(0, 50_000, 2)]]
        def work():
            SequenceLabeler(segments=True, C=0.1, max_iter=1, random_state=0).fit(X, y).predict(X)
        """,
    "an assignment of 1,500 x 1,500": """
        from structsvm.oracles.assignment import AssignmentOracle
        x = np.random.default_rng(0).random((1500, 1500, 1))
        def work():
            AssignmentOracle(1).argmax(x, [1.0, 0.0])
        """,
    "a ranking of 300,000 rows": """
        from structsvm.tasks import MultivariateClassifier, Ranker
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300_000, 5)), rng.integers(0, 2, 300_000)
        def work():
            Ranker("ndcg", C=0.1, max_iter=1, random_state=0).fit(X, y, group=[300_000]).predict(X)
            MultivariateClassifier("f1", C=0.1, max_iter=1, random_state=0).fit(X, y).predict(X)
        """,
    "sets of 1,000 labels": """
        from structsvm.tasks import MultilabelClassifier
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(60, 20)), rng.integers(0, 2, (60, 1000))
        def work():
            MultilabelClassifier(C=0.1, interactions="tree", max_iter=1, random_state=0).fit(X, y).predict(X)
        """,
    "concepts of 2,000 sentences": """
        from structsvm.datasets import make_concept_world
        from structsvm.tasks import ConceptLabeler
        words, y, worlds = make_concept_world(2000, random_state=0)
        X = list(zip(words, worlds))
        def work():
            ConceptLabeler(max_iter=1, random_state=0).fit(X, y).predict(X)
        """,
}
FIRST = {case.kind: name for name, case in reversed(TABLE.items())}
CASES |= {
    f"many examples of {kind.__name__}": f"""
        sys.path.insert(0, {os.path.dirname(cases.__file__)!r})
        from cases import TABLE
        case = TABLE[{name!r}]
        X, y, asked = case.copied({(10 if LARGE else 1) * TABLE[name].copies})
        def work():
            case.train_on(case.without_choice(**case.passes(1)), X, y).predict(asked)
        """
    for kind, name in FIRST.items()
}
# One estimator per form of inputs here; all of them in benchmarks/reliability.py.
FORMS = (SequenceLabeler, DependencyParser, TaxonomyClassifier, LaRankClassifier)
ELSEWHERE = {f"many examples of {kind.__name__}" for kind in FIRST if kind not in FORMS}
TRIED = [name for name in CASES if name not in ELSEWHERE]
CHILD = """
import os, resource, sys, traceback, warnings
import numpy as np
warnings.simplefilter("ignore")
np.ones((600, 600), np.float32) @ np.ones((600, 600), np.float32)  # OpenBLAS ends a process without room for its buffer
# Room for small objects: where an exception passes a clean-up, and none is left for the number of its line, CPython
# tries again without end (ceval.c, "exception_unwind" with "lasti").
kept = [float(k) for k in range(300_000)][::1000]
{case}
def size(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))
need, *shares = map(float, sys.argv[1:])
before = size("VmSize")
if not need:
    reading, writing = os.pipe()
    if (copy := os.fork()) == 0:
        try:
            work()
            os.write(writing, str(size("VmPeak") - before).encode())
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(copy, 0)[1]:
        sys.exit(1)
    need = int(os.read(reading, 99))
    print(need, flush=True)
for share in shares:
    resource.setrlimit(resource.RLIMIT_AS, (before + int(share * need), resource.RLIM_INFINITY))
    try:
        work()
    except MemoryError as error:
        print("MemoryError", error)
    except SystemError as error:  # numpy's, where indexing by arrays finds no memory
        if "error return without exception set" not in str(error):
            raise
        print("MemoryError of numpy")
    else:
        print("done")
"""


def outcome(case, *arguments):
    """The need of a case, where it is given as 0, and what becomes of it under limits to shares of the need."""
    code = CHILD.replace("{case}", textwrap.dedent(case))
    # One arena: where it is full, glibc would try to map another at each of the allocations that still find room.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, (arguments, done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout.strip()


@pytest.mark.skipif(
    sys.platform != "linux" or "STRUCTSVM_SANITIZED" in os.environ, reason="limits of address space as Linux has them"
)
@pytest.mark.slow
@pytest.mark.parametrize("case", [case for name, case in CASES.items() if name not in ELSEWHERE], ids=TRIED)
def test_too_little_memory_is_an_error(case):
    need, *said = outcome(case, 0, 0.05, 0.5, 1.5).splitlines()
    assert int(need) > 0 and said[0].startswith("MemoryError")
    assert said[-1] == "done"


@pytest.mark.filterwarnings("ignore:The number of unique classes", "ignore::structsvm.AdviceWarning")
def test_more_than_2_31_weights_are_refused():
    """By their number, before they are there: indices of features are int32."""
    n = 2000
    X = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, 1_500_000))
    y = [f"n{k}" for k in range(n)]
    for model, labels in (
        (SequenceLabeler(C=1.0, loss="hamming", max_iter=1), [y]),
        (AmbiguousClassifier(C=1.0, loss="pairwise", max_iter=1), [{label} for label in y]),
        (SGDQNClassifier(max_iter=1), y),
    ):
        with pytest.raises(ValueError, match=r"weights"):
            model.fit([X] if labels[0] is y else X, labels)
    with pytest.raises(ValueError, match=r"weights"):
        DependencyParser(C=0.1, features=ArcFeatures(arc_bits=28, row_bits=28), random_state=0).fit(
            make_dependency_trees(3, random_state=0)
        )
    with pytest.raises(ValueError, match=r"weights|2\*\*31"):
        TaxonomyOracle(Taxonomy([("root", label) for label in y]), 1_500_000)
