"""Ctrl-C: from the signal to KeyboardInterrupt in the program, for each solver and structure, in each phase."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from importlib import import_module
from subprocess import PIPE
from textwrap import dedent

from common.measure import BENCHMARKS
from common.report import Table, notes
from structsvm.tasks.registry import ESTIMATORS

REFERENCE = str(BENCHMARKS.parent / "tests" / "reference")


def estimators():
    """The names of the first case of each estimator in the table of the tests."""
    sys.path.insert(0, REFERENCE)
    first = {case.kind.__name__: name for name, case in reversed(import_module("cases").TABLE.items())}
    return {entry.name: first[entry.name] for entry in ESTIMATORS}


# Work, which is repeated until the signal: "setup | fit", "... | predict" and the like.
SEQUENCES = """
rng = np.random.default_rng(0)
X = [rng.normal(size=(200_000, 3)).astype(np.float32)]
y = [rng.integers(0, 60, 200_000).tolist()]
small = SequenceLabeler(order=2, max_iter=1, random_state=0).fit([X[0][:300]], [y[0][:300]])
"""
CHUNKS = """
rng = np.random.default_rng(0)
X = [rng.normal(size=(20, 50)) for _ in range(20_000)]
y = [rng.integers(0, 20, 20).tolist() for _ in X]
"""
STRINGS = """
rng = np.random.default_rng(0)
x, z = ("".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 30_000)) for _ in range(2))
small = SequenceAligner(max_iter=1, random_state=0).fit([(x[:50], z[:50])], [(x[:50], z[:50])])
"""
TREES = """
from structsvm.oracles.cky import CKYOracle
oracle = CKYOracle("S -> S S | 'a'", max_length=3000)
w, x = np.ones(2), ["a"] * 3000
"""
DOCUMENTS = """
import scipy.sparse as sp
rng = np.random.default_rng(0)
X = sp.random(20_000, 5000, density=0.01, format="csr", random_state=0)
y = [f"n{k}" for k in rng.integers(0, 3000, 20_000)]
"""
POINTS = """
rng = np.random.default_rng(0)
X = rng.normal(size=(30_000, 100)).astype(np.float32)
y = rng.integers(0, 20, 30_000)
"""
BINARY = POINTS + "y = y % 2\n"
LEARNT = (
    POINTS
    + """
small = LaRankClassifier(max_iter=1, random_state=0).fit(X[:5000], y[:5000])
X = np.tile(X, (10, 1))
"""
)
ARCS = """
from structsvm.datasets import make_dependency_trees
from structsvm.structures.dependencies import DependencyTree, Word
trees = make_dependency_trees(300, random_state=0)
small = DependencyParser(C=0.1, max_iter=1, projective=PROJECTIVE, probability=True, random_state=0).fit(trees)
small.set_params(max_length=4000)
small.model_.max_length = 4000
rng = np.random.default_rng(0)
words = [word for tree in trees for word in tree.words][:2500]
chain = [DependencyTree(tuple(word._replace(head=k) for k, word in enumerate(words[:n]))) for n in (600, 1000)]
"""
QUESTIONS = """
from structsvm.datasets import make_ambig_house
house = make_ambig_house(3000, level=1, random_state=0)
small = SemanticParser(method="hybrid", max_iter=1, random_state=0).fit(house.sentences[:300], house.bags[:300])
long = " ".join(house.sentences[:40]).split()[:110]
"""
GRIDS = """
rng = np.random.default_rng(0)
def grids(n, size, K):
    y = [np.kron(rng.integers(0, K, (size // 4, size // 4)), np.ones((4, 4), int)) for _ in range(n)]
    return [np.eye(K)[labels] + 1.5 * rng.normal(size=(size, size, K)) for labels in y], y
def small(K, **params):
    return GraphLabeler(C=0.1, max_iter=3, random_state=0, **params).fit(*grids(20, 8, K))
cut, relaxed, moves = small(2, method="cut"), small(6, method="relaxed"), small(6, method="expansion", neighbours=8)
large, many = grids(1, 1000, 2), grids(1, 240, 6)
"""
LADDERS = """
rng = np.random.default_rng(0)
def ladder(n, width):  # a grid of so few columns that its junction tree has tables of 8^(width + 1) entries
    at = np.arange(n * width).reshape(n, width)
    edges = np.concatenate([np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2),
                            np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)])
    y = rng.integers(0, 8, n * width)
    return (np.eye(8)[y] + rng.normal(size=(n * width, 8)), edges), y
X, y = map(list, zip(*(ladder(400, 5) for _ in range(2))))
options = {"method": "junction", "max_table": 2**21}
small = GraphLabeler(C=0.1, max_iter=1, probability=True, random_state=0, **options)
small.fit(*map(list, zip(*(ladder(3, 2) for _ in range(20)))))
"""
RULED = (
    LADDERS.partition("X, y =")[0]
    + """
X, y = map(list, zip(*(ladder(100, 5) for _ in range(2))))
rules = [[("exactly_one", [(v, 0) for v in range(500)])]] * 2
for labels in y:
    labels[labels == 0], labels[7] = 1, 0
small = GraphLabeler(C=0.1, max_iter=2, method="relaxed", random_state=0).fit(X, y)
"""
)
SEGMENTS = """
rng = np.random.default_rng(0)
n = 200_000
X = [[(f"w{k}", f"t{k % 40}") for k in rng.integers(0, 2000, n).tolist()]]
names = [f"n{k}" for k in rng.integers(0, 20, n // 2).tolist()]
y = [[(2 * k, 2 * k + 1 + k % 2, name) for k, name in enumerate(names)]]
few = [x[:300] for x in X], [[span for span in spans if span[1] <= 300] for spans in y]
small = SequenceLabeler(segments=True, C=0.1, max_iter=1, random_state=0).fit(*few)
"""
TABLES = """
from structsvm.oracles.assignment import AssignmentOracle
rng = np.random.default_rng(0)
oracle, w = AssignmentOracle(1, unmatched=False), np.ones(1)
random = oracle.encoded(rng.normal(size=(2000, 2000, 1)))
products = oracle.encoded((rng.random(2000)[:, None] * rng.random(2000))[:, :, None])  # which take the longest
"""
RANKED = """
rng = np.random.default_rng(0)
X = rng.normal(size=(10**6, 10))
y = rng.integers(0, 5, 10**6)
small = Ranker(C=0.1, random_state=0).fit(X[:100], y[:100], group=[100])
rare = X[:, 0] + rng.normal(size=10**6) > 2.0
"""
SETS = """
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 50))
y = (X @ rng.normal(size=(50, 200)) + rng.normal(size=(20_000, 200)) > 8.0).astype(int)
def learnt(how):
    return MultilabelClassifier(C=0.1, interactions=how, max_iter=1, random_state=0).fit(X[:200], y[:200])
full, tree = learnt("full"), learnt("tree")
X4 = np.tile(X, (10, 1))
"""
WORLDS = """
from structsvm.datasets import make_concept_world
words, concepts, worlds = make_concept_world(3000, random_state=0)
X, y = list(zip(words, worlds)), concepts
small = ConceptLabeler(max_iter=1, random_state=0).fit(X[:100], y[:100])
"""
# Many copies of the data of an estimator's case: "fit" trains one after the other.
TABLE = """
sys.path.insert(0, FOLDER)
from cases import TABLE
case = TABLE[NAME]
X, y, asked = case.copied(case.copies)
small = case.train(case.without_choice(**case.passes(1)))
"""
MANY = "max_iter=10**6, random_state=0"
CASES = {
    "sequences of order 2, 200,000 tokens, 60 labels": (SEQUENCES, {
        "fit": f"SequenceLabeler(order=2, {MANY}).fit(X, y)", "predict": "small.predict(X)",
        "predict, 2 threads": "small.set_params(n_jobs=2).predict(X * 2)",
        "500 best of 80 tokens": "small.predict_kbest([X[0][:80]], k=500)",
    }),
    **{f"sequences, {solver}": (CHUNKS, {"fit": f"SequenceLabeler(solver={solver!r}, n_jobs={jobs}, {MANY}).fit(X, y)"})
       for solver, jobs in {"larank": 1, "cutting_plane": 2, "frank_wolfe": 2, "passive_aggressive": 1, "perceptron": 1}
       .items()},
    **{f"sequences, {solver}, in 2 threads": (CHUNKS, {
        "fit": f"SequenceLabeler(solver={solver}(n_jobs=2, deterministic=False, {MANY})).fit(X, y)"})
       for solver in ("LaRank", "FrankWolfe", "PassiveAggressive")},
    "alignment of 30,000 x 30,000": (STRINGS, {
        "fit": f"SequenceAligner({MANY}).fit([(x, z)], [(x, z)])", "predict": "small.predict([(x, z)])",
        "k-best": "small.predict_kbest([(x[:8000], z[:8000])], k=500)",
    }),
    "chart of 3,000 words": (TREES, {
        "predict": "oracle.argmax(x, w)", "k-best": "list(oracle.kbest(x[:600], w, 500))",
    }),
    **{f"{kind} dependency trees": (ARCS.replace("PROJECTIVE", str(projective)), {
        "predict 2,500 words": "small.predict([words] * 9)",
        "k-best of 200 words": "small.predict_kbest([words[:200]], k=10**5)",
        "marginals of 1,000 words": "list(small.predict_proba([words[:1000]] * 9))",
        "fit 1,000 words": f"DependencyParser(C=0.1, projective={projective}, {MANY}).fit(chain)",
        "fit 1,000 words, log loss": f"DependencyParser(C=0.1, loss='log', projective={projective}, {MANY}).fit(chain)",
    }) for kind, projective in {"projective": True, "crossing": False}.items()},
    "hybrid trees": (QUESTIONS, {
        "fit": f"SemanticParser(method='hybrid', {MANY}).fit(house.sentences, house.bags)",
        "predict 110 words": "small.predict([long] * 50)",
        "k-best of 110 words": "small.predict_kbest([long] * 50, k=50)",
    }),
    "taxonomy of 3,000 nodes": (DOCUMENTS, {
        "fit": f"TaxonomyClassifier({MANY}, tol=1e-9).fit(X, y)",
        "fit, rbf kernel": f"TaxonomyClassifier(kernel='rbf', {MANY}, tol=1e-9).fit(X, y)",
    }),
    "bags of labels": (DOCUMENTS, {"fit": f"AmbiguousClassifier({MANY}, tol=1e-9).fit(X, [{{v}} for v in y])"}),
    **{f"{kind}": (BINARY if kind in ("LaSVMClassifier", "HullerClassifier", "TrackingClassifier") else POINTS, {
        "fit": f"{kind}({options}).fit(X, y)"}) for kind, options in {
            "LaRankClassifier": MANY, "CrammerSingerClassifier": MANY + ", tol=1e-9",
            "WestonWatkinsClassifier": "max_iter=10**6, tol=1e-9", "KernelPerceptronClassifier": MANY,
            "LaSVMClassifier": MANY, "HullerClassifier": MANY, "SGDQNClassifier": MANY, "TrackingClassifier": MANY,
        }.items()},
    "LaRankClassifier, 5,000 support vectors": (LEARNT, {
        "predict": "small.predict(X)", "predict, 2 threads": "small.set_params(n_jobs=2).predict(X)",
    }),
    "grids": (GRIDS, {
        "predict a million nodes by a cut": "cut.predict(large[0])",
        "fit a million nodes by cuts": f"GraphLabeler(C=0.1, method='cut', {MANY}).fit(*large)",
        "predict 57,600 nodes of 6 labels by the relaxation": "relaxed.predict(many[0])",
        "fit 57,600 nodes of 6 labels by the relaxation": f"GraphLabeler(C=0.1, method='relaxed', {MANY}).fit(*many)",
        "predict 57,600 nodes of 6 labels by expansion": "moves.predict(many[0] * 9)",
        "fit 57,600 nodes of 6 labels by expansion": f"GraphLabeler(C=0.1, method='expansion', {MANY}).fit(*many)",
    }),
    "500 nodes of 8 labels under constraints": (RULED, {
        "predict": "small.predict(X * 9, constraints=rules * 9)",
        "fit": f"GraphLabeler(C=0.1, method='relaxed', {MANY}).fit(X, y, constraints=rules)",
    }),
    "junction trees of 8^6 entries": (LADDERS, {
        "predict": "small.predict(X * 9)", "marginals": "small.predict_marginals(X * 9)",
        "fit": f"GraphLabeler(C=0.1, **options, {MANY}).fit(X, y)",
        "fit, log loss": f"GraphLabeler(C=0.1, loss='log', **options, {MANY}).fit(X, y)",
    }),
    "segments of 200,000 tokens": (SEGMENTS, {
        "fit": f"SequenceLabeler(segments=True, C=0.1, {MANY}).fit(X, y)", "predict": "small.predict(X * 9)",
        "predict, 2 threads": "small.set_params(n_jobs=2).predict(X * 9)",
        "k-best of 300 tokens": "small.predict_kbest(few[0] * 99, k=300)",
    }),
    "assignments of 2,000 x 2,000": (TABLES, {
        "argmax": "oracle.argmax(random, w)", "k-best": "oracle.kbest(random, w, 500)",
        "argmax, products": "oracle.argmax(products, w)",  # last: threads that nobody waits for take CPU time
    }),
    "a million rows": (RANKED, {
        "predict a ranking": "small.predict(X)",
        **{f"fit, {loss}": f"Ranker({loss!r}, C=0.1, {MANY}).fit(X, {'y' if loss == 'ndcg' else 'rare'}, group=[10**6])"
           for loss in ("pairs", "map", "ndcg")},
        **{f"fit, {loss}": f"MultivariateClassifier({loss!r}, C=0.1, {MANY}).fit(X, rare)"
           for loss in ("roc_area", "f1", "prbep", "error")},
    }),
    "sets of 200 labels": (SETS, {
        **{f"fit, {how}": f"MultilabelClassifier(C=0.1, interactions={how!r}, {MANY}).fit(X, y)"
           for how in ("none", "tree", "full")},
        "predict, tree": "tree.predict(X4)", "predict, full": "full.predict(X4)",
        "predict, full, 2 threads": "full.set_params(n_jobs=2).predict(X4)",
    }),
    "concepts of words": (WORLDS, {
        "fit": f"ConceptLabeler({MANY}).fit(X, y)",
        "fit, bags": f"ConceptLabeler({MANY}).fit(X, list(map(Counter, y)))",
        "predict": "small.predict(X * 30)",
    }),
    **{f"many examples of {kind}": (TABLE.replace("FOLDER", repr(REFERENCE)).replace("NAME", repr(name)), {
        "fit": "case.train_on(case.without_choice(), X, y)", "predict": "small.predict(asked)",
    }) for kind, name in estimators().items()},
}  # fmt: skip
CHILD = """
import json, signal, sys, threading, time, warnings
from collections import Counter
import numpy as np
from structsvm import FrankWolfe, LaRank, PassiveAggressive
from structsvm.tasks import *
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for what is in the background
SETUP
print("ready", flush=True)
while work := sys.stdin.readline():
    try:
        code = compile(work, "<work>", "exec")  # of text, CPython would end with SIGINT
        while True:
            exec(code, globals())
    except KeyboardInterrupt:
        found = time.process_time(), threading.active_count()
    print(json.dumps(found), flush=True)
"""
COLUMNS = {
    "case": ("case", ""),
    "phase": ("phase", ""),
    "signals": ("signals", "d"),
    "slowest": ("slowest, CPU s", ".3f"),
    "threads": ("threads left", "d"),
}
N_SIGNALS = 4


def run(options):
    kept = [row for table in options.kept.tables(options.part) for row in table.rows]
    chosen = [case for case in CASES if any(word in case for word in options.only.split(","))]
    chosen = chosen[::6] if options.quick else chosen
    rng, rows = random.Random(0), [row for row in kept if row["case"] in CASES.keys() - set(chosen)]
    for case in chosen:
        setup, phases = CASES[case]
        code = CHILD.replace("SETUP", dedent(setup).strip())
        with subprocess.Popen([sys.executable, "-P", "-c", code], stdin=PIPE, stdout=PIPE, text=True) as child:
            child.stdout.readline()
            for phase, work in phases.items():
                n_signals = 1 if options.quick else N_SIGNALS
                found = [interrupted(child, work, rng.uniform(0.2, 1.0)) for _ in range(n_signals)]
                row = {"case": case, "phase": phase, "signals": len(found)}
                rows.append(row | {"slowest": max(t for t, _ in found), "threads": max(n for _, n in found) - 1})
            child.stdin.close()
        yield Table("Ctrl-C", COLUMNS, sorted(rows, key=lambda row: -row["slowest"]), ABOUT)


def interrupted(child, work, wait):
    """``(CPU seconds from the signal to KeyboardInterrupt, threads)`` of work that is repeated until then."""
    clock = (~child.pid << 3) | 2  # the clock of all threads of a process, as Linux numbers it
    print(work, file=child.stdin, flush=True)
    end = time.clock_gettime(clock) + wait
    while (sent := time.clock_gettime(clock)) < end:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    now, n_threads = json.loads(child.stdout.readline())
    return now - sent, n_threads


ABOUT = notes("""From a signal, at a random moment of the work, to KeyboardInterrupt in the program: CPU time of all
threads, which other work on the machine does not stretch.

Large assignments and programmes of constraints are at work in threads of scipy's own, which do not look up: they end by
themselves, and nobody waits for them.""")
