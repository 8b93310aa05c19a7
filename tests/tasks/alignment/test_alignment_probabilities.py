"""Probabilities of alignments: sums over all of them, and the temperature of scores."""

import itertools
import math

import numpy as np
import pytest
from command_line import run
from hypothesis import example, given
from hypothesis import strategies as st

import structsvm
from structsvm.datasets import make_alignment, write_alignments
from structsvm.oracles.smith_waterman import SmithWatermanOracle
from structsvm.structures.alignments import FREE, PAIR, SKIP_X, SKIP_Z
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.model import AlignmentModel

TRAIN, FRESH = make_alignment(12, random_state=0), make_alignment(15, random_state=1)
SHORT = [("ACD", "ACE"), ("WYWY", "WY")]


@given(
    st.sampled_from(["global", "semi_global", "local"]),
    st.sampled_from([None, (0, 1), (1, 1), (2, 0)]),
    st.sampled_from(["affine", "linear"]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    st.integers(0, 2**32 - 1),
)
def test_sums_over_all_alignments(mode, band, gaps, sizes, beta, seed):
    rng = np.random.default_rng(seed)
    oracle = SmithWatermanOracle(3, mode=mode, band=band, gaps=gaps)
    x, z = (rng.integers(0, 3, size) for size in sizes)
    w = 2.0 * rng.normal(size=oracle.n_features)
    scores = np.array([score for score, _ in oracle.alignments((x, z), w)])
    aligner = oracle._aligner_of((x, z))
    top = scores.max()
    p = np.exp(beta * (scores - top))
    found, mean = aligner.log_sum(w, 0, 1, beta)
    assert found == pytest.approx(beta * top + math.log(p.sum()), abs=1e-9)
    assert mean == pytest.approx(p @ scores / p.sum(), abs=1e-9)
    assert oracle.log_sum((x, z), w) == aligner.log_sum(w, 0, 1)[0]


def test_long_strings_and_steep_scores():
    rng = np.random.default_rng(0)
    oracle = SmithWatermanOracle(4, mode="global")
    x, z = rng.integers(0, 4, (2, 400))
    w = 1000.0 * rng.normal(size=oracle.n_features)
    found, mean = oracle._aligner_of((x, z)).log_sum(w, 0, 1)
    best, _ = next(oracle.alignments((x, z), w))
    # Many are as good as the best; all are less than 3^800.
    assert best * (1.0 - 1e-9) <= found < best + 800 * math.log(3.0) and mean == pytest.approx(best, rel=1e-6)


@pytest.fixture(scope="module", params=["global", "local", "semi_global"])
def aligner(request):
    made = SequenceAligner(C=0.1, mode=request.param, prior=None, random_state=0).fit(TRAIN.X, TRAIN.y)
    with pytest.raises(ValueError, match=r"probabilities=True needs probabilities, .* call calibrate on aligned pairs"):
        made.predict_kbest(SHORT, 2, probabilities=True)
    assert made.temperature_ is None
    return made.calibrate(FRESH.X, FRESH.y)


def test_probabilities_sum_to_one(aligner):
    for pair in SHORT:
        (found,) = aligner.predict_kbest([pair], 100_000, probabilities=True)
        (scored,) = aligner.predict_kbest([pair], 100_000)
        assert sum(p for _, p in found) == pytest.approx(1.0, abs=1e-9)
        assert [rows for rows, _ in found] == [rows for rows, _ in scored]
        for (_, p), (_, score) in itertools.islice(zip(found, scored, strict=True), 20):
            share = math.exp((score - scored[0][1]) / aligner.temperature_)
            if aligner.mode_ != "semi_global":  # whose rows have one or more alignments
                assert p == pytest.approx(found[0][1] * share, rel=1e-6, abs=1e-12)


@given(
    st.sampled_from([None, 0, (0, 1), 1]),
    st.sampled_from(["affine", "linear"]),
    st.text("AC", min_size=1, max_size=4),
    st.text("AC", min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)
@example(None, "affine", "ACCA", "CC", 0)
def test_probabilities_of_semi_global_rows(band, gaps, x, z, seed):
    """Rows have the probabilities of all alignments that look so."""
    aligner = SequenceAligner(alphabet="AC", mode="semi_global", gaps=gaps, band=band, letter_gaps=True)
    model = AlignmentModel.of(aligner)
    model.weights = np.random.default_rng(seed).normal(size=model.oracle.n_features)
    model.temperature = 0.7
    shares, strings = {}, [np.array(["AC".index(letter) for letter in s]) for s in (x, z)]
    for score, a in model.oracle.alignments(strings, model.weights):
        rows = model._rows((x, z), a.x_start, a.z_start, a.codes)
        shares[rows] = shares.get(rows, 0.0) + math.exp(score / 0.7)
    found = dict(model.align_kbest((x, z), 100_000, probabilities=True))
    assert found == pytest.approx({rows: share / sum(shares.values()) for rows, share in shares.items()}, abs=1e-9)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)


def test_the_temperature_is_that_of_greatest_likelihood(aligner):
    check_temperature(aligner, FRESH.X, FRESH.y)


def test_the_temperature_counts_gaps_at_the_ends_free_and_paid_for():
    aligner = SequenceAligner.from_costs(SubstitutionMatrix("AC", [[2, -1], [-1, 2]]), -0.5, -0.25, alphabet="AC")
    rows = [("ACCA", "-CC-"), ("CCAAC", "--AA-"), ("ACA", "AAA"), ("ACCAC", "-CCA-")]
    X = [tuple(row.replace("-", "") for row in pair) for pair in rows]
    check_temperature(aligner.calibrate(X, rows), X, rows)


def check_temperature(aligner, X, y):
    model, oracle = aligner.model_, aligner.model_.oracle
    references = model.references(X, y)

    def loss(temperature):
        total = 0.0
        for k in range(len(references)):
            strings = [references.strings[s] for s in (references.x[k], references.z[k])]
            pair, told = oracle._aligner_of(strings), references.known[k]
            if told is None:
                told = references.alignment(k).whole(*map(len, strings)).known
            (right, _), (everything, _) = (
                pair.log_sum(model.weights / temperature, 0, 1, 1.0, known) for known in (told, None)
            )
            total += everything - right
        return total

    best = loss(aligner.temperature_)
    assert best < min(loss(0.998 * aligner.temperature_), loss(1.002 * aligner.temperature_))


def test_files_and_the_command_line(aligner, tmp_path):
    pytest.importorskip("Bio")
    aligner.save(tmp_path / "m")
    assert structsvm.load(tmp_path / "m").temperature_ == aligner.temperature_
    write_alignments(tmp_path / "x.a2m", FRESH.y[:2])
    out, _ = run(tmp_path, "predict", "m", "x.a2m", "--confidence", "-k", "2")
    found = [float(line.split("probability=")[1].split()[0]) for line in out.splitlines() if line.startswith(">")][::2]
    ranked = aligner.predict_kbest(FRESH.X[:2], 2, probabilities=True)
    assert found == pytest.approx([p for best in ranked for _, p in best], abs=1e-6)
    out, _ = run(tmp_path, "predict", "m", "x.a2m", "--confidence")
    assert out.count("rank=1 probability=") == 4 and "rank=2" not in out


@given(
    st.sampled_from(["global", "semi_global", "local"]),
    st.sampled_from([None, (1, 1)]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.integers(0, 2**32 - 1),
)
def test_sums_over_what_agrees(mode, band, sizes, seed):
    """Some operations of an alignment of whole strings are known: pairs, and letters that are in none."""
    rng = np.random.default_rng(seed)
    oracle = SmithWatermanOracle(3, mode=mode, band=band)
    x, z = (rng.integers(0, 3, size) for size in sizes)
    w = rng.normal(size=oracle.n_features)
    ranked = list(oracle.alignments((x, z), w))
    aligner = oracle._aligner_of((x, z))
    codes = whole_codes(ranked[rng.integers(len(ranked))][1], sizes)
    known = np.where(rng.random(len(codes)) < 0.5, codes, codes | FREE).astype(np.uint8)
    pairs, alone = known_of(known)
    right = [
        score
        for score, y in ranked
        for found, _ in [known_of(whole_codes(y, sizes))]
        if pairs <= found and not alone[0] & {i for i, _ in found} and not alone[1] & {j for _, j in found}
    ]
    scores = np.array(right)
    p = np.exp(scores - scores.max())
    log_sum, mean = aligner.log_sum(w, 0, 1, 1.0, known)
    assert log_sum == pytest.approx(scores.max() + math.log(p.sum()), abs=1e-9)
    assert mean == pytest.approx(p @ scores / p.sum(), abs=1e-9)


def whole_codes(y, sizes):
    """The operations of both strings, whole: what is before an alignment and behind it in no pair."""
    m = y.x_start + int(np.sum(y.codes != SKIP_Z))
    n = y.z_start + int(np.sum(y.codes != SKIP_X))
    ends = [(SKIP_X, y.x_start), (SKIP_Z, y.z_start)], [(SKIP_X, sizes[0] - m), (SKIP_Z, sizes[1] - n)]
    before, behind = (np.concatenate([np.full(count, code, np.uint8) for code, count in end]) for end in ends)
    return np.concatenate([before, y.codes, behind]).astype(np.uint8)


def known_of(codes):
    """The known pairs, and the letters of x and of z that are known to be in none."""
    pairs, alone, i, j = set(), (set(), set()), 0, 0
    for code in codes.tolist():
        kind = code & (FREE - 1)
        if not code & FREE:
            if kind == PAIR:
                pairs.add((i, j))
            elif kind == SKIP_X:
                alone[0].add(i)
            else:
                alone[1].add(j)
        i += kind != SKIP_Z
        j += kind != SKIP_X
    return pairs, alone


def test_open_columns_count_with_all_that_agrees():
    aligner = SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0, mode="global")
    rows = [("ACDEFG", "ACDEFG"), ("WYWYAC", "W--YWY"), ("ACDEFG", "A-CDEF")]
    X = [tuple(row.replace("-", "") for row in pair) for pair in rows]
    known = aligner.calibrate(X, rows).temperature_
    assert aligner.calibrate([*X, ("acd", "cd")], [*rows, ("acd", "-cd")]).temperature_ == known  # nothing is assessed
    assert aligner.calibrate(X, [*rows[:2], ("ACDEfg", "A-CDef")]).temperature_ != known
