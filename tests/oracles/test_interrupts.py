"""Long work without the GIL is interrupted: in every kernel and thread, and nothing is half written afterwards."""

import signal
import threading
from functools import partial

import numpy as np
import pytest
from structures_table import ARC_TEMPLATES, LABEL_TEMPLATES, STRUCTURES, case_of

from structsvm.dual._rounds import log_losses, violations
from structsvm.dual._weights import copied
from structsvm.dual.parallel import parallel_map
from structsvm.execution._stop import Job, look_every, looks
from structsvm.features.arc_templates import ArcTemplates
from structsvm.features.dense import DenseRows
from structsvm.features.sparse import as_rows
from structsvm.features.tokens import Tokens
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel._row_cache import RowCache
from structsvm.oracles.cky import CKYOracle
from structsvm.oracles.dependency._dependency import TreeFinder
from structsvm.oracles.eisner import EisnerOracle
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.hybrid import HybridTrees, Lexicon
from structsvm.oracles.label_sets import LabelSetOracle, all_pairs
from structsvm.oracles.ranking import Groups, RankingOracle
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.alignments import Alignment, Strings
from structsvm.structures.grammar import Grammar
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import parse_meaning


class Ring(Exception):
    """Raised by the handler of a signal."""


@pytest.fixture(autouse=True)
def _afterwards():
    yield
    look_every()


def alarm(n):
    """A handler that raises at the n-th look, and then no more."""
    count = 0

    def ring():
        nonlocal count
        count += 1
        if count == n:
            raise Ring

    return ring


def stopped():
    job = Job()
    job.stop()
    return job


# ---- jobs ----------------------------------------------------------------------------------------


def chain(T=3000, K=8, order=2, seed=0, **params):
    rng = np.random.default_rng(seed)
    oracle = ViterbiOracle(K, 50, order=order, **params)
    indices = rng.integers(0, 50, T).astype(np.int32)
    tokens = Tokens(np.array([0, T]), np.arange(T + 1), indices, None, 50)
    w = rng.normal(size=oracle.n_features).reshape(-1, oracle.stride).astype(np.float32)
    w[:, K:] = 0.0
    return oracle, tokens, rng.integers(0, K, T), w.ravel()


def test_a_job_is_stopped_and_no_other():
    oracle, tokens, _, w = chain()
    decode = oracle.chain(tokens).decode
    look_every(1000)
    job, other = stopped(), Job()
    assert job.stopped and not other.stopped
    with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
        job.run(decode, w)
    y = decode(w)
    np.testing.assert_array_equal(other.run(decode, w), y)
    with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
        other.run(job.run, decode, w)
    np.testing.assert_array_equal(other.run(decode, w), y)


def test_a_job_ends_those_that_it_started():
    oracle, tokens, _, w = chain()
    look_every(1000)
    job = stopped()
    with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
        job.run(parallel_map, lambda part: oracle.chain(tokens).decode(w), range(4), 2)
    inner = job.run(Job)
    del job
    assert inner.stopped


def test_a_thread_that_fails_stops_the_others():
    oracle, tokens, _, w = chain()
    at_work, ended = threading.Event(), threading.Event()

    def work(part):
        if part == 0:
            at_work.wait()
            raise ZeroDivisionError
        try:
            decoder = oracle.chain(tokens)
            while True:
                decoder.decode(w)
                at_work.set()
        except KeyboardInterrupt:
            ended.set()
            raise

    with pytest.raises(ZeroDivisionError):
        parallel_map(work, range(2), 2)
    assert ended.wait(60.0)
    oracle.chain(tokens).decode(w)


def test_looks_go_by_work():
    oracle, tokens, _, w = chain()
    decoder = oracle.chain(tokens)

    def count(work):
        look_every(work)
        before = looks()
        decoder.decode(w)
        return looks() - before

    # The rows of 3000 tokens, a label of a group before each (9 * 9 * 8 sums, in vectors), the sequence itself.
    most = 3000 // 256 + 3000 // (2**16 // 81) + 2
    assert most - 3 <= count(1) <= most
    assert 2 <= count(70_000) <= 4
    assert count(None) <= 1


# ---- every kernel --------------------------------------------------------------------------------


def dense_grammar(seed=0, n=12, n_rules=400, length=40):
    rng = np.random.default_rng(seed)
    rules = "\n".join(f"N{k % n} -> N{k // n % n} N{k // n**2}" for k in rng.permutation(n**3)[:n_rules])
    oracle = CKYOracle(Grammar(rules + "\n" + "\n".join(f"N{k} -> 'w{k}'" for k in range(n)), "N0"))
    return oracle, rng.normal(size=oracle.n_features), [f"w{k}" for k in rng.integers(0, n, length)]


def a_chain(order, **params):
    oracle, tokens, _, w = chain(order=order, **params)
    return lambda: oracle.chain(tokens).decode(w)


def a_count():
    oracle, tokens, y, w = chain(T=150, K=5)
    problem = oracle.bind(tokens, y, rescaling="slack")
    return lambda: problem.most_violated(0, w)


def a_greedy():
    _, tokens, _, _ = chain(T=30_000)
    oracle = GreedyOracle(40, 50, order=2)
    w = np.zeros(oracle.n_features, dtype=np.float32)
    return lambda: oracle.chain(tokens).decode(w)


def some_best():
    oracle, tokens, _, w = chain(T=60, K=5)
    return lambda: oracle.chain(tokens).kbest(w, 0, 50)[0]


def margins():
    oracle, tokens, _, w = chain()
    return lambda: oracle.chain(tokens).max_marginals(w, 0)


def an_aligner(mode="global", size=700):
    rng = np.random.default_rng(0)
    oracle = SmithWatermanOracle(4, mode=mode)
    strings = Strings.of([rng.integers(0, 4, size + 100 * k) for k in range(2)])
    return oracle.aligner(strings, [[0, 1]]), rng.normal(size=oracle.n_features)


def an_alignment(mode):
    aligner, w = an_aligner(mode)
    return lambda: aligner.align(w, 0, 1)[2]


def a_table():
    aligner, w = an_aligner()
    return lambda: aligner.table(w, 0, 1)[0]


def sums_of_alignments():
    aligner, w = an_aligner()
    return lambda: np.array(aligner.log_sum(w, 0, 1))


def references():
    rng = np.random.default_rng(0)
    oracle = SmithWatermanOracle(4)
    x, z = rng.integers(0, 4, 300), rng.integers(0, 4, 300)
    problem = oracle.bind([(x, z)], [Alignment(0, 0, b"M" * 300)], rescaling="slack")
    w = rng.normal(size=oracle.n_features)
    return lambda: problem.separate(0, w)[1]


def a_parse():
    oracle, w, x = dense_grammar()
    return lambda: np.array([oracle.parse(x, w)[1]])


def sums():
    oracle, w, x = dense_grammar(length=30)
    return lambda: oracle.expect(x, w)[1]


def applications():
    oracle, w, x = dense_grammar()
    parser = oracle.parser()
    parser.fill(oracle.grammar.sentence(x), w)
    return lambda: np.array([parser.n_applications()])


def a_block(sparse=False, name="rbf"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 500))
    if sparse:
        from scipy.sparse import csr_array

        X = csr_array(X * (X > 1.5))
    rows, kernel = Rows(X / 30.0), Kernel(name)
    return lambda: kernel.block(rows, range(100), rows, range(2000))


def a_tree(projective, n):
    scores = np.random.default_rng(0).normal(size=(n + 1, n + 1)).astype(np.float32)
    finder = TreeFinder(projective, n)
    return lambda: finder.tree(scores)[0]


def sums_of_trees(projective, n):
    scores = np.random.default_rng(0).normal(size=(n + 1, n + 1))
    finder = TreeFinder(projective, n)
    return lambda: finder.log_sum(scores)[1]


def a_hybrid_tree():
    units = MeaningUnits([parse_meaning("f(a,b,c,d,e,g)")])
    hybrid = HybridTrees(units, Lexicon(units, {}, range(1, 7)), ["w:p"], ["l:p", "r:p"])
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    return lambda: hybrid.expect(["p"] * 20, w)[1]


def a_group(loss, sparse=False):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 20)), rng.integers(0, 2, 30_000)
    rows = as_rows(X, 20) if sparse else DenseRows(X)
    problem = RankingOracle(20, loss).bind(Groups(rows, np.array([0, 30_000])), y)
    return lambda: problem.separate(0, np.ones(20))[1]


def sets_of_labels(edges, margins, n=3, n_labels=30):
    rng = np.random.default_rng(0)
    oracle = LabelSetOracle(n_labels, 5, edges)
    problem = oracle.bind(DenseRows(rng.normal(size=(n, 5))), np.full((n, n_labels), -1, dtype=np.int8))
    w = rng.normal(size=oracle.n_features)
    return lambda: problem.margins(w) if margins else problem.decoded(w)


KERNELS = {
    "order 1": (lambda: a_chain(1, T=60_000, K=30), 20),
    "order 2": (lambda: a_chain(2), 4),
    "counts": (a_count, 10),
    "greedy": (a_greedy, 10),
    "k best": (some_best, 8),
    "max-marginals": (margins, 4),
    "global": (lambda: an_alignment("global"), 8),
    "local": (lambda: an_alignment("local"), 8),
    "cells": (a_table, 30),
    "sums of alignments": (sums_of_alignments, 30),
    "references": (references, 30),
    "parse": (a_parse, 10),
    "sums": (sums, 30),
    "applications": (applications, 10),
    "dense block": (a_block, 20),
    "sparse block": (lambda: a_block(True), 20),
    "sigmoid block": (lambda: a_block(name="sigmoid"), 20),
    "projective trees": (lambda: a_tree(True, 150), 9),
    "crossing trees": (lambda: a_tree(False, 300), 10),
    "sums of projective trees": (lambda: sums_of_trees(True, 75), 30),
    "sums of crossing trees": (lambda: sums_of_trees(False, 100), 34),
    "hybrid trees": (a_hybrid_tree, 40),
    **{f"group, {loss}": (partial(a_group, loss), 30) for loss in ("error", "f1", "pairs", "map", "ndcg")},
    "group of sparse rows": (lambda: a_group("prbep", sparse=True), 100),
    "sets of labels": (lambda: sets_of_labels(all_pairs(30), False), 6),
    "sets with each label": (lambda: sets_of_labels(all_pairs(30), True), 180),
    "forests with each label": (lambda: sets_of_labels(np.stack([np.arange(29), np.arange(1, 30)], 1), True), 180),
    "long vectors": (lambda: lambda: copied(np.ones(1 << 20)), 16),
}


@pytest.mark.parametrize(("make", "least"), KERNELS.values(), ids=KERNELS.keys())
def test_kernels_are_interrupted_anywhere(make, least):
    """Each may look up often enough, wherever it is interrupted the exception comes out, and nothing stays behind."""
    call = make()
    result, before = call(), looks()
    look_every(1)
    call()
    n = looks() - before
    assert n >= least
    for at in sorted({1, 2, n // 3, n // 2, n - 1}):
        look_every(1, alarm(at))
        with pytest.raises(Ring):
            call()
        np.testing.assert_array_equal(call(), result)
    look_every(1)
    with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
        stopped().run(call)


def test_work_on_relations_with_many_arguments_counts():
    call = a_hybrid_tree()  # 64 sets of arguments, and 210 spans of up to 20 words
    look_every(200_000)
    before = looks()
    call()
    assert 4 <= looks() - before <= 20  # 1.3 ms


@pytest.mark.parametrize("sparse", [False, True])
def test_threads_share_a_kernel(sparse):
    call = a_block(sparse)
    expected = call()
    for values in parallel_map(lambda part: call(), range(8), 4):
        np.testing.assert_array_equal(values, expected)


def test_rows_in_a_cache_are_whole():
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(300, 40)))
    expected = Kernel("rbf").block(rows, range(300), rows, range(300))
    look_every(1)
    for at in (1, 5, 16):
        cache = RowCache(Gram(Kernel("rbf"), rows), 2.0)
        cache.restart(range(300))
        look_every(1, alarm(at))
        with pytest.raises(Ring):
            cache.rows(range(40))
        np.testing.assert_array_equal(cache.rows(range(300)), expected)


# ---- every structure -----------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
def test_rounds_are_interrupted(structure):
    """At any example; afterwards the problem returns what a fresh one does."""
    case = case_of(structure, 0)
    for rescaling, penalty in case.formulations:
        problem = case.bind(rescaling, penalty)
        w = case.weights(0).astype(problem.weight_dtype)
        expected = violations(case.bind(rescaling, penalty), w)
        for at in range(1, problem.n_samples + 1):
            look_every(1, alarm(at))
            with pytest.raises(Ring):
                violations(problem, w)
            look_every(1)
            with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
                stopped().run(violations, problem, w)
            np.testing.assert_array_equal(violations(problem, w), expected)


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if case_of(s, 0).oracle.has_expect])
def test_rounds_of_expectations_are_interrupted(structure):
    case = case_of(structure, 0)
    problem, fresh = (case.oracle.bind(case.X, case.Y, rescaling=None) for _ in range(2))
    w, every = case.weights(0).astype(problem.weight_dtype), np.arange(problem.n_samples)
    expected = log_losses(fresh, w, every)
    log_losses(problem, w, every)
    look_every(1)
    before = looks()
    log_losses(problem, w, every)
    for at in range(1, looks() - before):  # some work of the last call may count for the next
        look_every(1, alarm(at))
        with pytest.raises(Ring):
            log_losses(problem, w, every)
        look_every(1)
        np.testing.assert_array_equal(log_losses(problem, w, every), expected)


def test_steps_of_likelihood_on_a_long_tree_are_interrupted():
    """Within an addition to the weights, too; nothing stays behind in the problem."""
    n, rng = 30, np.random.default_rng(0)
    oracle = EisnerOracle(2, ArcTemplates(("word", "tag"), ARC_TEMPLATES, LABEL_TEMPLATES), arc_bits=6, row_bits=4)
    x, y = rng.integers(2, 9, (n, 2)), np.stack([np.arange(n), np.zeros(n)], axis=1)
    problem, fresh = (oracle.bind([x], [y.astype(np.int32)], rescaling=None) for _ in range(2))
    solver = ConditionalLikelihood(C=1.0, max_iter=2, tol=None, random_state=0)
    expected = solver.solve(fresh).weights
    look_every(1)
    before = looks()
    solver.solve(problem)
    total = looks() - before
    assert total > 10 * n  # per word: scores, sums, products, squares and additions, in two passes
    for at in range(1, total, 11):
        look_every(1, alarm(at))
        with pytest.raises(Ring):
            solver.solve(problem)
        look_every(1)
        np.testing.assert_array_equal(solver.solve(problem).weights, expected)


# ---- signals -------------------------------------------------------------------------------------


def repeat(call, thread):
    thread.start()
    while True:
        call()


def interrupted(call, n):
    """Repeat a call until Ctrl-C, which comes after n looks; return how many were taken after Python was told of it."""
    main, told = threading.main_thread().ident, []

    def send(start):
        while looks() < start + n:
            pause.wait(1e-3)
        signal.pthread_kill(main, signal.SIGINT)

    def handler(number, frame):
        told.append(looks())
        raise KeyboardInterrupt

    pause, thread = threading.Event(), threading.Thread(target=send, args=(looks(),))
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            repeat(call, thread)
    finally:
        signal.signal(signal.SIGINT, before)
    after = looks() - told[0]
    thread.join()
    return after


def many_best():
    oracle, tokens, _, w = chain(T=40, K=30)
    decoder = oracle.chain(tokens)
    return lambda: decoder.kbest(w, 0, 500)


def a_large_alignment():
    aligner, w = an_aligner(size=12_000)
    return lambda: aligner.align(w, 0, 1)


def a_large_chart():
    oracle, w, x = dense_grammar(n=40, n_rules=10_000, length=120)
    return lambda: oracle.parse(x, w)


LARGE = {
    "chain": lambda: a_chain(2, T=4000, K=60),
    "k best": many_best,
    "alignment": a_large_alignment,
    "chart": a_large_chart,
    "block": a_block,
}


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of threads")
@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE.keys())
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_is_answered_at_the_next_look(make, n_threads):
    """Once Python is told. Looks are some 8 ms of work apart: a dozen of each thread's would be a tenth of a second."""
    calls = [make() for _ in range(n_threads)]
    assert interrupted(lambda: parallel_map(lambda call: call(), calls, n_threads), 3) <= 12 * n_threads
