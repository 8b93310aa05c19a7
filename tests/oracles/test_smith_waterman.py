"""Alignments against the enumeration of all alignments."""

import tracemalloc
from itertools import islice, pairwise
from math import comb

import numpy as np
import pytest
from alignment_reference import best_by_hits, delannoy, lattice_paths, pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from structures_table import FORMULATIONS, Alignments, Decoys, agrees

from structsvm import UnsupportedFormulation
from structsvm.dual._rounds import completions
from structsvm.oracles._smith_waterman import MAX_BYTES
from structsvm.oracles.enumeration import suboptimal
from structsvm.oracles.smith_waterman import MAX_SYMBOLS, SmithWatermanOracle
from structsvm.structures.alignments import Alignment, Context, References, Strings

MODES = ("global", "semi_global", "local")
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Case(Alignments):
    """One pair of strings, and weights."""

    def __init__(self, seed, mode, gaps, *, whole=False):
        super().__init__(seed, mode, gaps)
        (self.pair,), (self.all,), (self.space,) = self.X, self.alignments, self.spaces
        self.w = self.weights(seed, whole=whole)
        self.scores = self.space.psi @ self.w


@st.composite
def cases(draw, **options):
    seed = draw(st.integers(0, 2**32 - 1))
    return Case(seed, draw(st.sampled_from(MODES)), draw(st.sampled_from(["affine", "linear"])), **options)


def plain(alignment):
    return alignment.x_start, alignment.z_start, alignment.operations.decode()


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
    psi = dict(zip(case.all, case.space.psi, strict=True))
    for score, alignment in found:
        feature = case.oracle.joint_feature(case.pair, alignment)
        assert np.array_equal(feature, psi[plain(alignment)])
        assert score == pytest.approx(case.w @ feature, **CLOSE)
    scores = [score for score, _ in found]
    assert scores == pytest.approx(sorted(case.scores, reverse=True), **CLOSE)
    assert all(a >= b - 1e-9 for a, b in pairwise(scores))


# --- inference ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(cases())
def test_scores_without_alignments(case):
    strings = Strings.of([case.oracle.encode(s) for s in case.pair])
    aligner = case.oracle.aligner(strings, [[0, 1]], traceback=False)
    assert aligner.scores(case.w, np.array([[0, 1]])) == pytest.approx(case.scores.max(), **CLOSE)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    mode=st.sampled_from(MODES),
    gaps=st.sampled_from(["affine", "linear"]),
    extend=st.integers(0, 3),
    more=st.sampled_from([0, 1, 9]),
)
def test_scores_in_16_bits(seed, mode, gaps, extend, more):
    """Strings of several vectors and of less than one, against float64, which scores in sixteenths are summed in."""
    rng = np.random.default_rng(seed)
    oracle = SmithWatermanOracle(3, mode=mode, gaps=gaps)
    w = rng.integers(-6, 7, oracle.n_features).astype(np.float64)
    w[[oracle.first_gap, -1]] = -extend - more, -extend
    start = rng.integers(0, 3, 70)
    cut = [np.concatenate([start[:a], start[a + gap :]]) for a, gap in rng.integers(0, 60, (5, 2)).tolist()]
    strings = Strings.of([*cut, rng.integers(0, 3, 1), rng.integers(0, 3, 17), rng.integers(0, 3, 33)])
    pairs = np.array([[x, z] for x in range(8) for z in range(8)])
    aligner = oracle.aligner(strings, pairs, traceback=False)
    found = aligner.scores(w, pairs)
    assert aligner.n_striped == len(pairs)
    assert np.array_equal(found, aligner.scores(w / 16.0, pairs) * 16.0)
    assert aligner.n_striped == 0


@pytest.mark.parametrize("mode", MODES)
def test_sums_that_leave_16_bits(mode):
    """As far as sums surely fit, and one step further: the scores are those of float64."""
    oracle = SmithWatermanOracle(2, mode=mode)
    strings = Strings.of([[0] * 40, [1] * 40, [0, 1] * 20])
    pairs = np.array([[0, 0], [0, 1], [2, 2], [2, 0]])
    aligner = oracle.aligner(strings, pairs, traceback=False)
    striped = []
    for pair, mismatch, gap in [
        (800, -3, -7), (801, -3, -7), (5, -7, -12000), (5, -32001, -7), (5, -20000, -100), (1, -3, -400), (2, 0.5, -1),
        (2, -1, 1), (40000, -1, -1),
    ]:  # fmt: skip
        w = np.zeros(oracle.n_features)
        w[[oracle.pair_features[0, 0], oracle.pair_features[3, 0]]] = pair
        w[oracle.pair_features[1, 0]] = mismatch
        w[oracle.first_gap :] = gap
        found = aligner.scores(w, pairs)
        striped.append(aligner.n_striped)
        assert np.array_equal(found, aligner.scores(w / 2.0**20, pairs) * 2.0**20)
        assert aligner.n_striped == 0
    local = mode == "local"
    assert striped == [4, 0, 0, 0, 4 * local, 4 * local, 0, 0, 0]


@settings(max_examples=40)
@given(cases(whole=True))
def test_ties_are_broken_in_one_way(case):
    found = case.oracle.argmax(case.pair, case.w)
    assert case.w @ case.oracle.joint_feature(case.pair, found) == pytest.approx(case.scores.max(), **CLOSE)
    assert all(case.oracle.argmax(case.pair, case.w) == found for _ in range(3))
    first = list(case.oracle.alignments(case.pair, case.w))
    assert first == list(case.oracle.alignments(case.pair, case.w))


# --- completion -----------------------------------------------------------------------------------


def with_free(rng, path, share):
    return "".join(c.lower() if rng.random() < share else c for c in path).encode()


@settings(max_examples=150)
@given(cases(), st.sampled_from([0.0, 0.4, 0.8, 1.0]))
def test_completion(case, share):
    """The best of all alignments that agree with what is known; what is known whole comes back."""
    (m, n) = (len(s) for s in case.strings[0])
    whole = [path for path in lattice_paths(m, n) if "ZX" not in path and case.reference.in_band(0, 0, path, m, n)]
    path = whole[int(case.rng.integers(len(whole)))]
    known = Alignment(0, 0, with_free(case.rng, path, share))
    found = case.oracle.complete(case.pair, known, case.w)
    if known.is_assessed and b"M" in known.operations and plain(known) in case.all:
        assert found == known
        return
    agreeing = [k for k, (i, j, path) in enumerate(case.all) if agrees(Alignment(i, j, path.encode()), known)]
    assert agrees(found, known)
    score = case.w @ case.oracle.joint_feature(case.pair, found)
    assert score == pytest.approx(max(case.scores[k] for k in agreeing), **CLOSE)
    assert (found.x_start, found.z_start, found.operations.upper().decode()) in case.all
    assert found.operations.count(b"M") == known.operations.count(b"M")
    if share == 0.0 and case.oracle.mode == "global":
        assert found == known


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(MODES), st.sampled_from(["linear", "affine"]))
def test_completion_of_homologues(seed, mode, gaps):
    """Among decoys too: the best alignment of the two homologues that agrees, and has a pair if none is known."""
    case = Decoys(seed, mode, gaps, n=2)
    case.augments = True  # `knowledge` asks for it
    (first, agree), _ = case.knowledge(seed)
    nothing = [np.array(["M" in path for _, _, path in case.alignments[1]])]
    arrays, pairs, decoys = [], [], []
    for strings, others in zip(case.strings, case.decoys, strict=True):
        pairs.append((len(arrays), len(arrays) + 1))
        decoys.append(list(range(len(arrays) + 2, len(arrays) + 2 + len(others))))
        arrays += [case.oracle.encode(case.as_given(string)) for string in (*strings, *others)]
    (m, n), (x, z) = ([len(string) for string in strings] for strings in case.strings)
    known = [None if first.is_assessed else first.whole(m, n).known, Alignment(0, 0, b"x" * x + b"z" * z).known]
    references = References.of(Strings.of(arrays), pairs, [first, Alignment(0, 0, b"")], decoys, known)
    problem = case.oracle.bind_references(references)
    assert problem.offers == {"completions"}
    w = case.weights(seed)
    bounds, words = completions(problem, w)
    completed = problem.with_targets((bounds, words))
    assert completed.offers == {"constraints", "completions"}
    for i, agreeing in enumerate([agree, *nothing]):
        found = completed.references.alignment(i)
        scores = case.spaces[i].psi @ w
        k = case.spaces[i].find(found)
        assert agreeing[k]
        if i == 0 or case.oracle.band is None or scores[agreeing].max() == scores.max():
            assert scores[k] == pytest.approx(scores[agreeing].max(), **CLOSE)


@settings(max_examples=120, deadline=None)
@given(cases())
def test_the_last_pair_of_the_best_alignment_that_has_one(case):
    if case.oracle.band is not None:
        return
    known = suboptimal.pair_to_keep(*case.oracle._aligner_of(case.pair).table(case.w, 0, 1), case.oracle.mode)
    found = case.oracle.complete(case.pair, Alignment.from_codes(0, 0, known), case.w)
    best = max(score for (_, _, path), score in zip(case.all, case.scores, strict=True) if "M" in path)
    assert case.w @ case.oracle.joint_feature(case.pair, found) == pytest.approx(best, **CLOSE)


# --- longer strings: several blocks on the way back ------------------------------------------------


CONTEXTS = (
    Context("around", scale=(0, 2, 1, 3, 0, 1, 2, 0, 1, 3), offsets=(-2, 0, 1), limits=(0.6, 1.6)),
    Context("left", scale=(0, 1, 2, 3, 0, 0, 0, 1, 2, 3), offsets=(-1,), limits=(0.5, 1.5, 2.5)),
)


def long_case(seed, mode, band, m=90, n=110, window=1, contexts=()):
    rng = np.random.default_rng(seed)
    settings = {"mode": mode, "band": band, "letter_gaps": True, "window": window, "contexts": contexts}
    oracle = SmithWatermanOracle(5, classes=(2,), **settings)
    x, z = (np.stack([rng.integers(0, 5, k), rng.integers(0, 2, k)], axis=1) for k in (m, n))
    z[:m] = np.where(rng.random((m, 1)) < 0.5, x, z[:m])
    w = rng.normal(size=oracle.n_features)
    w[oracle.first_gap : len(w) if not contexts else oracle.context_ids()[0][0].min()] -= 1.0
    gold = oracle.argmax((x, z), w + 0.5 * rng.normal(size=len(w)))
    return oracle, (x, z), w, gold


def scores_of_operations(oracle, x, z, w):
    a, b = oracle.encode(x), oracle.encode(z)
    pair = w[oracle.pair_features].sum(axis=1).reshape(oracle.n_symbols, -1)[np.ix_(a, b)]
    opening, extension = (w[f].sum(axis=1) for f in (oracle.open_features, oracle.extend_features))
    of_x, of_z = (oracle.context_values(Strings.of([string])) for string in (a, b))
    for left, right in zip(of_x, of_z, strict=True):
        pair = pair + w[oracle.context_pairs[np.ix_(left, right)]]
    found = [pair]
    for own, other, is_x in ((a, of_z, True), (b, of_x, False)):
        for k, letters in enumerate((opening, extension)):
            beside = np.zeros(other.shape[1] + 1)
            for values in w[oracle.context_gaps[k][other]]:
                beside += np.append(values, 0.0) + np.append(0.0, values)
            found.append(np.add.outer(letters[own], beside) if is_x else np.add.outer(beside, letters[own]))
    return found


@pytest.mark.parametrize("contexts", [(), CONTEXTS], ids=["", "contexts"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", [None, 12, (3, 20)])
def test_blocks(mode, band, contexts):
    oracle, (x, z), w, _ = long_case(0, mode, band, contexts=contexts)
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


@pytest.mark.parametrize("contexts", [(), CONTEXTS], ids=["", "contexts"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", [None, 12, (3, 20)])
def test_blocks_of_parts(mode, band, contexts):
    """The best alignment agrees with any part of it that is known; the memory of the whole serves its parts."""
    oracle, (x, z), w, _ = long_case(2, mode, band, contexts=contexts)
    best = oracle.argmax((x, z), w)
    i, j = best.stop
    whole = b"X" * best.x_start + b"Z" * best.z_start + best.operations + b"X" * (len(x) - i) + b"Z" * (len(z) - j)
    whole = sorted_gaps(whole)
    score = w @ oracle.joint_feature((x, z), best)
    paired = [k for k, operation in enumerate(whole) if operation in b"M"]
    for kept in ([], paired[:1], paired[-1:], paired[::2], paired[:: len(paired) - 1]):
        known = bytes(c if k in kept else c + 32 for k, c in enumerate(whole))
        found = oracle.complete((x, z), Alignment(0, 0, known), w)
        oracle.check_alignment(found, len(x), len(z))
        assert w @ oracle.joint_feature((x, z), found) == pytest.approx(score, **CLOSE)
        assert found.operations.count(b"M") == len(kept)
    with pytest.raises(ValueError, match="the known part must take all 90 letters of x and 110 of z"):
        oracle.complete((x, z), Alignment(0, 0, whole + b"x"), w)
    with pytest.raises(ValueError, match="the known part must take all 90 letters of x and 110 of z"):
        oracle.complete((x, z), Alignment(1, 0, whole.lower()), w)


def sorted_gaps(operations):
    while b"ZX" in operations:
        operations = operations.replace(b"ZX", b"XZ")
    return operations


@pytest.mark.parametrize("contexts", [(), CONTEXTS], ids=["", "contexts"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", [None, 12])
def test_blocks_with_counts(mode, band, contexts):
    oracle, (x, z), w, gold = long_case(1, mode, band, contexts=contexts)
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


# --- bad input ------------------------------------------------------------------------------------


def test_contexts_that_do_not_fit():
    with pytest.raises(ValueError, match="the context 'left' has numbers for 10 symbols, the strings have 5"):
        SmithWatermanOracle(5, contexts=CONTEXTS[1:])
    oracle = SmithWatermanOracle(5, classes=(2,), contexts=CONTEXTS)
    strings = Strings.of([np.zeros(20000, int)] * 2 + [np.zeros(30, int)] * 2)
    with pytest.raises(
        UnsupportedFormulation, match="contexts of strings of 20000 and 20000 letters take 3200320008 b"
    ):
        oracle.aligner(strings, [[0, 1]])
    aligner = oracle.aligner(strings, [[2, 3]])
    with pytest.raises(ValueError, match="strings 0 and 2 are larger than the pairs"):
        aligner.align(np.zeros(oracle.n_features), 0, 2)


def test_a_context_does_not_depend_on_other_strings():
    rng = np.random.default_rng(0)
    strings = [rng.integers(0, 10, k) for k in (1, 2, 7, 1, 30)]
    for context in CONTEXTS:
        alone = [context.values(Strings.of([string])) for string in strings]
        assert np.array_equal(context.values(Strings.of(strings)), np.concatenate(alone))
        assert set(np.concatenate(alone).tolist()) == set(range(context.size))


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
        (b"M?", (0, 0), {}, r"operations must be M, X, Z, m, x or z, got b'M\?'"),
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


@pytest.mark.parametrize("mode", ["global", "semi_global", "local"])
@pytest.mark.parametrize("scale", [1.0, 1e38, 1e300])
def test_ranks_take_time_in_proportion_to_the_lengths(mode, scale, monkeypatch):
    """Also where scores differ by less than rounding, which leads a best-first search everywhere."""
    n_pushed, push = 0, suboptimal.heapq.heappush

    def counted(heap, item):
        nonlocal n_pushed
        n_pushed += 1
        assert n_pushed < 60_000
        push(heap, item)

    monkeypatch.setattr(suboptimal.heapq, "heappush", counted)
    rng = np.random.default_rng(0)
    oracle = SmithWatermanOracle(4, mode=mode)
    w = scale * rng.normal(size=oracle.n_features)
    w[:3] = 1.0
    x, z = rng.integers(0, 4, (2, 50))
    found = list(islice(oracle.alignments((x, z), w), 40))
    scores = [score for score, _ in found]
    assert scores == sorted(scores, reverse=True)
    assert len({plain(a) for _, a in found}) == 40
