"""Alignments against the enumeration of all alignments."""

import pickle
import tracemalloc
from itertools import islice, pairwise
from math import comb

import numpy as np
import pytest
from alignment_reference import ReferenceAligner, best_by_hits, delannoy, lattice_paths, pairs
from dual_reference import constraint, primal, solve_dual
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm import CuttingPlane, LaRank, Perceptron, UnsupportedFormulation
from structsvm.oracles._smith_waterman import MAX_BYTES
from structsvm.oracles.alignment import Alignment, References, Strings
from structsvm.oracles.smith_waterman import MAX_SYMBOLS, SmithWatermanOracle
from structsvm.testing import check_oracle

MODES = ("global", "semi_global", "local")
FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Case:
    """Two strings, their oracle, its reference, weights, and a reference alignment."""

    def __init__(self, seed, mode, gaps, *, loss="q", longest=4, whole=False, tracks=None, banded=None):
        rng = self.rng = np.random.default_rng(seed)
        classes = tuple(int(k) for k in rng.integers(1, 3, int(rng.integers(0, 3)) if tracks is None else tracks))
        sizes = (int(rng.integers(1, 4)), *classes)
        banded = rng.random() < 0.3 if banded is None else banded
        band = tuple(int(b) for b in rng.integers(0, 3, 2)) if banded else None
        options = {"mode": mode, "gaps": gaps, "symmetric": bool(rng.random() < 0.5), "loss": loss}
        options |= {"letter_gaps": bool(rng.random() < 0.5), "window": int(rng.integers(0, 3)), "band": band}
        self.oracle = SmithWatermanOracle(sizes[0], classes=classes, **options)
        self.reference = ReferenceAligner(sizes, **options)
        self.x, self.z = (
            np.stack([rng.integers(0, size, length) for size in sizes], axis=1)
            for length in rng.integers(1, longest + 1, 2)
        )
        self.all = self.reference.alignments(len(self.x), len(self.z))
        self.psi = [self.reference.histogram(self.x, self.z, a) for a in self.all]
        w = rng.integers(-2, 3, self.oracle.n_features) if whole else rng.normal(size=self.oracle.n_features)
        self.w = w.astype(np.float64)
        paired = [k for k, (_, _, path) in enumerate(self.all) if "M" in path]
        self.gold = self.all[paired[int(rng.integers(len(paired)))]]
        self.assessed = rng.random(self.gold[2].count("M")) < 0.7
        self.assessed[int(rng.integers(len(self.assessed)))] = True

    @property
    def pair(self):
        if len(self.oracle.sizes) == 1:
            return self.x[:, 0], self.z[:, 0]
        return self.x, self.z

    @property
    def gold_alignment(self):
        marks = iter(self.assessed)
        letters = "".join(("M" if next(marks) else "m") if c == "M" else c for c in self.gold[2])
        return Alignment(self.gold[0], self.gold[1], letters.encode())

    def scores(self):
        return np.array([self.w @ psi for psi in self.psi])

    def constraints(self, rescaling, penalty):
        """(b, psi) of every alignment but the reference."""
        gold_psi = self.reference.histogram(self.x, self.z, self.gold)
        found = []
        for alignment, psi in zip(self.all, self.psi, strict=True):
            loss = self.reference.loss(self.gold, self.assessed, alignment)
            if loss > 0.0:
                found.append(constraint(gold_psi - psi, loss, rescaling, penalty))
            elif alignment != self.gold and rescaling == "margin":
                found.append((0.0, gold_psi - psi))
        return found


def plain(alignment):
    return alignment.x_start, alignment.z_start, alignment.operations.decode()


@st.composite
def cases(draw, **options):
    seed = draw(st.integers(0, 2**32 - 1))
    return Case(seed, draw(st.sampled_from(MODES)), draw(st.sampled_from(["affine", "linear"])), **options)


# --- the space of alignments ----------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (3, 2), (4, 4), (5, 3)])
def test_counts(m, n):
    """All orders of operations are the Delannoy number; with X before Z each set of pairs has one."""
    paths = lattice_paths(m, n)
    assert len(set(paths)) == delannoy(m, n)
    assert len({tuple(pairs((0, 0, path))) for path in paths}) == comb(m + n, m)
    oracle = SmithWatermanOracle(1)
    found = [plain(a) for _, a in oracle.alignments((np.zeros(m, int), np.zeros(n, int)), np.zeros(oracle.n_features))]
    assert len(found) == len(set(found)) == comb(m + n, m)
    assert {path for _, _, path in found} == {path for path in paths if "ZX" not in path}


@settings(max_examples=60)
@given(cases())
def test_the_space_and_the_histograms(case):
    found = list(case.oracle.alignments(case.pair, case.w))
    assert sorted(plain(a) for _, a in found) == sorted(case.all)
    psi = dict(zip(case.all, case.psi, strict=True))
    for score, alignment in found:
        feature = case.oracle.joint_feature(case.pair, alignment)
        assert np.array_equal(feature, psi[plain(alignment)])
        assert score == pytest.approx(case.w @ feature, **CLOSE)
    scores = [score for score, _ in found]
    assert scores == pytest.approx(sorted(case.scores(), reverse=True), **CLOSE)
    assert all(a >= b - 1e-9 for a, b in pairwise(scores))


# --- inference ------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(cases(longest=5))
def test_argmax(case):
    alignment = case.oracle.argmax(case.pair, case.w)
    assert plain(alignment) in case.all
    table = np.sort(case.scores())
    score = case.w @ case.oracle.joint_feature(case.pair, alignment)
    assert score == pytest.approx(table[-1], **CLOSE)
    if len(table) == 1 or table[-1] - table[-2] > 1e-6:
        assert plain(alignment) == case.all[int(case.scores().argmax())]
    strings = Strings.of([case.oracle.encode(s) for s in case.pair])
    aligner = case.oracle.aligner(strings, [[0, 1]], traceback=False)
    assert aligner.scores(case.w, np.array([[0, 1]])) == pytest.approx(table[-1], **CLOSE)


@settings(max_examples=40)
@given(cases(whole=True))
def test_ties_are_broken_in_one_way(case):
    found = case.oracle.argmax(case.pair, case.w)
    assert case.w @ case.oracle.joint_feature(case.pair, found) == pytest.approx(case.scores().max(), **CLOSE)
    assert all(case.oracle.argmax(case.pair, case.w) == found for _ in range(3))
    first = list(case.oracle.alignments(case.pair, case.w))
    assert first == list(case.oracle.alignments(case.pair, case.w))


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@pytest.mark.parametrize("loss", ["q", "zero_one"])
@settings(max_examples=40)
@given(data=st.data())
def test_the_most_violated_constraint(rescaling, penalty, loss, data):
    case = data.draw(cases(loss=loss, whole=data.draw(st.booleans())))
    problem = case.oracle.bind([case.pair], [case.gold_alignment], rescaling=rescaling, penalty=penalty)
    b, psi = problem.separate(0, case.w)
    table = case.constraints(rescaling, penalty)
    violations = [bound - row @ case.w for bound, row in table]
    worst = max(violations, default=-np.inf)
    if penalty is not None:
        worst = max(worst, 0.0)
    elif worst <= 0.0:
        assert b - psi @ case.w <= 1e-9
        return
    assert b - psi @ case.w == pytest.approx(worst, **CLOSE)
    if worst > 1e-9:
        assert any(abs(bound - b) < 1e-12 and np.allclose(row, psi, atol=1e-12) for bound, row in table)
        x_start, z_start, codes = problem.most_violated(0, case.w)
        found = Alignment.from_codes(x_start, z_start, codes)
        assert plain(found) in case.all
        assert case.oracle.loss(case.gold_alignment, found) == pytest.approx(
            case.reference.loss(case.gold, case.assessed, plain(found))
        )


@pytest.mark.parametrize("loss", ["q", "zero_one"])
@settings(max_examples=40)
@given(data=st.data())
def test_plain_inference_finds_another_that_ties(loss, data):
    case = data.draw(cases(loss=loss, whole=True))
    problem = case.oracle.bind([case.pair], [case.gold_alignment], rescaling=None)
    _, psi = problem.separate(0, case.w)
    gold_psi = case.reference.histogram(case.x, case.z, case.gold)
    scores = case.scores()
    others = [s for s, a in zip(scores, case.all, strict=True) if a != case.gold]
    if max(others, default=-np.inf) < case.w @ gold_psi - 1e-9:
        assert not psi.any()
    else:
        assert case.w @ (gold_psi - psi) == pytest.approx(scores.max(), **CLOSE)


@settings(max_examples=60)
@given(cases(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_decoys(case, n_decoys, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, n_decoys)
    decoys = [np.stack([rng.integers(0, size, k) for size in case.oracle.sizes], axis=1) for k in lengths]
    given_as = [d if d.shape[1] > 1 else d[:, 0] for d in decoys]
    strings = Strings.of([case.oracle.encode(s) for s in (*case.pair, *given_as)])
    references = References.of(strings, [[0, 1]], [case.gold_alignment], [list(range(2, 2 + n_decoys))])
    gold_psi = case.reference.histogram(case.x, case.z, case.gold)
    rows = [
        case.reference.histogram(case.x, decoy, a)
        for decoy in decoys
        for a in case.reference.alignments(len(case.x), len(decoy))
    ]
    worst = max(1.0 - case.w @ (gold_psi - row) for row in rows)
    for rescaling, penalty in FORMULATIONS:
        problem = case.oracle.bind_references(references, rescaling=rescaling, penalty=penalty)
        b, psi = problem.separate(0, case.w)
        assert b - psi @ case.w == pytest.approx(worst if penalty is None else max(worst, 0.0), **CLOSE)
        if b > 0.0:
            assert any(np.allclose(psi, gold_psi - row) for row in rows)


# --- longer strings: several blocks on the way back ------------------------------------------------


def long_case(seed, mode, band, m=90, n=110, window=1):
    rng = np.random.default_rng(seed)
    oracle = SmithWatermanOracle(5, classes=(2,), mode=mode, band=band, letter_gaps=True, window=window)
    x, z = (np.stack([rng.integers(0, 5, k), rng.integers(0, 2, k)], axis=1) for k in (m, n))
    z[:m] = np.where(rng.random((m, 1)) < 0.5, x, z[:m])
    w = rng.normal(size=oracle.n_features)
    w[oracle.first_gap :] -= 1.0
    gold = oracle.argmax((x, z), w + 0.5 * rng.normal(size=len(w)))
    return oracle, (x, z), w, gold


def scores_of_operations(oracle, x, z, w):
    a, b = oracle.encode(x), oracle.encode(z)
    pair = w[oracle.pair_features].sum(axis=1).reshape(oracle.n_symbols, -1)[np.ix_(a, b)]
    opening, extension = (w[f].sum(axis=1) for f in (oracle.open_features, oracle.extend_features))
    return pair, opening[a], extension[a], opening[b], extension[b]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", [None, 12, (3, 20)])
def test_blocks(mode, band):
    oracle, (x, z), w, _ = long_case(0, mode, band)
    operations = scores_of_operations(oracle, x, z, w)
    best = best_by_hits(*operations, mode, oracle.band, np.zeros((len(x), len(z)), bool), 1)[0]
    found = oracle.argmax((x, z), w)
    oracle.check_alignment(found, len(x), len(z))
    assert w @ oracle.joint_feature((x, z), found) == pytest.approx(best, **CLOSE)
    # The runner-up, and where the best is the reference, the most violated other alignment.
    (first, a), (second, b) = islice(oracle.alignments((x, z), w), 2)
    assert first == pytest.approx(best, **CLOSE)
    assert w @ oracle.joint_feature((x, z), a) == pytest.approx(best, **CLOSE)
    oracle.loss_name = "zero_one"
    for reference, other in ((a, second), (b, first)):
        right, psi = oracle.bind([(x, z)], [reference]).separate(0, w)
        gold_score = w @ oracle.joint_feature((x, z), reference)
        assert right - psi @ w == pytest.approx(1.0 - gold_score + other, **CLOSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", [None, 12])
def test_blocks_with_counts(mode, band):
    oracle, (x, z), w, gold = long_case(1, mode, band)
    wanted = gold.pairs
    hit = np.zeros((len(x), len(z)), dtype=bool)
    for i, j in wanted.tolist():
        hit[i, max(j - oracle.window, 0) : j + oracle.window + 1] = True
    R = len(wanted)
    best = best_by_hits(*scores_of_operations(oracle, x, z, w), mode, oracle.band, hit, R + 1)
    loss = 1.0 - np.arange(R + 1) / R
    gold_score = w @ oracle.joint_feature((x, z), gold)
    for rescaling, penalty in FORMULATIONS:
        size = np.sqrt(loss) if penalty == "quadratic" else loss if penalty else (loss > 0.0).astype(float)
        values = size - (size if rescaling == "slack" else 1.0) * (gold_score - best)
        values = values[np.isfinite(values)]
        b, psi = oracle.bind([(x, z)], [gold], rescaling=rescaling, penalty=penalty).separate(0, w)
        assert b - psi @ w == pytest.approx(max(values.max(), 0.0), **CLOSE)


def test_long_strings_take_little_memory():
    rng = np.random.default_rng(0)
    oracle = SmithWatermanOracle(4, symmetric=True)
    w = np.full(oracle.n_features, -1.0)
    w[[0, 4, 7, 9]] = 1.0  # the diagonal
    w[oracle.first_gap :] = [-3.0, -0.5]
    x = rng.integers(0, 4, 30_000)
    keep = np.ones(len(x), dtype=bool)
    keep[5_000:5_100] = keep[20_000:20_010] = False
    tracemalloc.start()
    found = oracle.argmax((x, x[keep]), w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6
    # As long as what was left out, and in two pieces.
    assert found.operations.count(b"M") == keep.sum()
    score = w @ oracle.joint_feature((x, x[keep]), found)
    assert score == keep.sum() - 6.0 - 0.5 * (99 + 9)
    banded = SmithWatermanOracle(4, symmetric=True, band=10)
    assert w @ banded.joint_feature((x, x[keep]), banded.argmax((x, x[keep]), w)) == score


def test_tables_that_would_not_fit():
    oracle = SmithWatermanOracle(2)
    x = np.zeros(30_000, dtype=int)
    assert MAX_BYTES < 24 * 30_000**2
    with pytest.raises(ValueError, match="a table of all cells of strings of 30000 and 30000 letters takes more than"):
        next(oracle.alignments((x, x), np.zeros(oracle.n_features)))
    gold = Alignment(0, 0, b"M" * len(x))
    with pytest.raises(UnsupportedFormulation, match=r"counts of reference pairs .* use rescaling='margin'"):
        oracle.bind([(x, x)], [gold], rescaling="slack")


# --- training -------------------------------------------------------------------------------------


def small_problem(seed, mode, loss, decoys):
    rng = np.random.default_rng(seed)
    oracle = SmithWatermanOracle(2, mode=mode, loss=loss, symmetric=True)
    reference = ReferenceAligner((2,), mode, "affine", True, False, None, loss, 0)
    arrays, pairs_, golds, sets, constraints = [], [], [], [], []
    for _ in range(3):
        x, z, *others = (rng.integers(0, 2, int(rng.integers(2, 4))) for _ in range(4))
        pairs_.append((len(arrays), len(arrays) + 1))
        sets.append([len(arrays) + 2, len(arrays) + 3] if decoys else [])
        arrays += [x, z, *others]
        space = [a for a in reference.alignments(len(x), len(z)) if "M" in a[2]]
        gold = space[int(rng.integers(len(space)))]
        golds.append(Alignment(gold[0], gold[1], gold[2].encode()))

        def histogram(z, alignment, x=x):
            return reference.histogram(x[:, None], z[:, None], alignment)

        if decoys:
            found = [
                (1.0, histogram(z, gold) - histogram(o, a))
                for o in others
                for a in reference.alignments(len(x), len(o))
            ]
        else:
            found = [
                (reference.loss(gold, [True] * gold[2].count("M"), a), histogram(z, gold) - histogram(z, a))
                for a in reference.alignments(len(x), len(z))
                if a != gold
            ]
        constraints.append(found)
    references = References.of(Strings.of(arrays), pairs_, golds, sets if decoys else None)
    return oracle, references, constraints


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("loss", "decoys"), [("q", False), ("zero_one", False), ("zero_one", True)])
@pytest.mark.parametrize("penalty", ["linear", "quadratic"])
def test_the_optimum_of_an_independent_solver(mode, loss, decoys, penalty):
    oracle, references, constraints = small_problem(3, mode, loss, decoys)
    if penalty == "quadratic":
        constraints = [[(np.sqrt(b), psi) for b, psi in of_one] for of_one in constraints]
    C = np.full(3, 0.7)
    best = solve_dual(constraints, C, penalty)
    for kind in (LaRank, CuttingPlane):
        solver = kind(C=0.7, penalty=penalty, tol=1e-3, random_state=0)
        run = solver.solve(oracle.bind_references(references, **solver.formulation()))
        assert run.primal == pytest.approx(best, rel=1.1e-3)
        assert run.dual <= best * (1 + 1e-7) + 1e-9
        assert primal(run.weights, constraints, C, penalty) == pytest.approx(run.primal, rel=1e-6)


@pytest.mark.parametrize("decoys", [False, True])
def test_shards_pickles_and_checkpoints(decoys, tmp_path):
    oracle, references, _ = small_problem(5, "global", "q", decoys)
    problem = oracle.bind_references(references)
    w = np.random.default_rng(0).normal(size=oracle.n_features)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.fingerprint() == problem.fingerprint()
    assert oracle.bind_references(references[:2]).fingerprint() != problem.fingerprint()
    for i in range(3):
        for other in (copy.separate(i, w), problem.shard(i, 3).separate(0, w)):
            assert other[0] == problem.separate(i, w)[0]
            assert np.array_equal(other[1], problem.separate(i, w)[1])
    weights = [
        CuttingPlane(C=0.5, tol=1e-3, random_state=0, n_jobs=n_jobs).solve(oracle.bind_references(references)).weights
        for n_jobs in (None, 2)
    ]
    assert np.array_equal(*weights)
    whole = LaRank(C=0.5, max_iter=6, random_state=0).solve(oracle.bind_references(references))
    for passes in (3, 6):
        solver = LaRank(C=0.5, max_iter=passes, random_state=0, checkpoint=tmp_path / "state")
        run = solver.solve(oracle.bind_references(references))
    assert np.array_equal(run.weights, whole.weights)


def test_the_perceptron_leaves_zero():
    oracle, references, _ = small_problem(7, "global", "q", False)
    run = Perceptron(max_iter=5, random_state=0).solve(oracle.bind_references(references, rescaling=None))
    assert run.weights.any()


def test_the_protocol():
    rng = np.random.default_rng(0)
    for mode in MODES:
        oracle = SmithWatermanOracle(3, mode=mode, loss="zero_one")
        X = [(rng.integers(0, 3, 4), rng.integers(0, 3, 3)) for _ in range(3)]
        Y = [
            next(a for _, a in oracle.alignments(x, rng.normal(size=oracle.n_features)) if b"M" in a.operations)
            for x in X
        ]
        check_oracle(oracle, X, Y)


# --- bad input ------------------------------------------------------------------------------------


def test_references_that_do_not_fit():
    def bind(operations, start=(0, 0), **options):
        oracle = SmithWatermanOracle(2, **options)
        oracle.bind([(np.zeros(2, int), np.zeros(3, int))], [Alignment(*start, operations)])

    bind(b"MZM")
    bind(b"mMZ")
    bind(b"MM", (0, 1), mode="semi_global")
    bind(b"M", (1, 1), mode="local")
    for operations, start, options, message in [
        (b"MM", (0, 0), {}, "example 0: a global alignment must cover both strings whole"),
        (b"MMZZ", (0, 0), {}, r"example 0: the alignment takes letters 0\.\.2 and 0\.\.4 of strings of 2 and 3"),
        (b"XXZZZ", (0, 0), {}, "example 0: the alignment has no pair"),
        (b"MZXZ", (0, 0), {}, "X must come before Z"),
        (b"M?", (0, 0), {}, r"operations must be M, m, X or Z, got b'M\?'"),
        (b"mZm", (0, 0), {}, "example 0: its reference alignment has no pair that the loss assesses"),
        (b"ZZMX", (0, 0), {"band": 0}, r"leaves the band \(j - i in 0..1\)"),
        (b"M", (1, 1), {"mode": "semi_global"}, "must begin with the first letter"),
        (b"MX", (0, 0), {"mode": "local"}, "must begin and end with a pair"),
    ]:
        with pytest.raises(ValueError, match=message):
            bind(operations, start, **options)


def test_bad_parameters_and_strings():
    for options, message in [
        ({"n_letters": 0}, "The 'n_letters' parameter"),
        ({"mode": "glocal"}, "The 'mode' parameter"),
        ({"classes": (2.5,)}, "The 'classes' parameter"),
        ({"band": -1}, "The 'band' parameter"),
        ({"band": (1, 2, 3)}, "The 'band' parameter .* one or two integers"),
        ({"window": -1}, "The 'window' parameter"),
        ({"classes": (MAX_SYMBOLS,)}, "combinations of letters and classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            SmithWatermanOracle(**{"n_letters": 3} | options)
    oracle = SmithWatermanOracle(3, classes=(2,))
    w = np.zeros(oracle.n_features)
    good = np.array([[2, 1], [0, 0]])
    for bad, message in [
        (np.empty((0, 2), int), "a string is empty"),
        (np.array([0, 1]), "an integer array of 2 numbers per position"),
        (np.array([[0, 2]]), "values outside"),
        (np.array([[-1, 0]]), "values outside"),
        (np.array([[0.0, 1.0]]), "an integer array"),
    ]:
        with pytest.raises(ValueError, match=message):
            oracle.argmax((good, bad), w)
    with pytest.raises(ValueError, match="not finite"):
        oracle.argmax((good, good), np.full(oracle.n_features, np.nan))
    with pytest.raises(ValueError, match="w has shape"):
        oracle.argmax((good, good), w[1:])
    references = References.of(Strings.of([[0], [1], [2]]), [[0, 1], [0, 1]], [Alignment(0, 0, b"M")] * 2, [[2], []])
    with pytest.raises(ValueError, match="example 1 has no decoys"):
        SmithWatermanOracle(3).bind_references(references)
    references = References.of(Strings.of([[0], [1], [2]]), [[0, 1]], [Alignment(0, 0, b"M")], [[-1]])
    with pytest.raises(IndexError, match=r"decoys refers to strings outside 0\.\.2"):
        SmithWatermanOracle(3).bind_references(references)
    # One letter against a thousand.
    found = SmithWatermanOracle(3).argmax((np.zeros(1, int), np.zeros(1000, int)), np.ones(11))
    assert found.operations.count(b"M") <= 1 and len(found.operations) >= 1000


def test_pairs_that_an_aligner_was_not_made_for():
    oracle = SmithWatermanOracle(2)
    w = np.zeros(oracle.n_features)
    strings = Strings.of([[0, 1], [1], [0] * 50])
    aligner = oracle.aligner(strings, [[0, 1]])
    for x, z in ((0, 2), (2, 2)):
        with pytest.raises(ValueError, match="larger than the pairs that this aligner was made for"):
            aligner.align(w, x, z)
        with pytest.raises(ValueError, match="larger than the pairs"):
            aligner.scores(w, np.array([[0, 1], [x, z]]))
    with pytest.raises(IndexError, match="strings 0 and 3 are out of range for 3"):
        aligner.align(w, 0, 3)
    with pytest.raises(IndexError, match=r"pairs of strings lie in 0\.\.3, expected 0\.\.2"):
        oracle.aligner(strings, [[0, 3]])
    with pytest.raises(ValueError, match="for scores only"):
        oracle.aligner(strings, [[0, 1]], traceback=False).align(w, 0, 1)
    for alignment in (Alignment(0, 0, b"MM"), Alignment(-1, 0, b"M"), Alignment(1, 1, b"M")):
        with pytest.raises(ValueError, match="the alignment takes letters"):
            oracle.joint_feature(([0, 1], [1]), alignment)
