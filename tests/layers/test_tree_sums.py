"""Sums over trees by weights: equal to those by logs wherever they are given, and left to these where they must be."""

from itertools import product

import numpy as np
import pytest

from structsvm.layers import Arborescence, Projective, log_loss
from structsvm.layers._trees import CROSSING, CYCLE, ROOTS, Batch, faults
from structsvm.oracles.dependency._dependency import TreeFinder

KINDS = [(Projective, False), (Projective, True), (Arborescence, False), (Arborescence, True)]


def both(arcs, lengths, kind, several):
    """Log partitions and probabilities by weights and by logs, and the entries that only logs will do for."""
    structure = kind(several_roots=several)
    scores = structure.check((arcs,), lengths)
    found = [(np.zeros(len(arcs)), np.zeros_like(scores.parts[0])) for _ in range(2)]
    log_z, chances = found[0]
    in_logs = Batch(scores.parts[0], scores.lengths, kind is Projective, several).sums(1, log_z, chances)
    for entry in np.flatnonzero(scores.lengths).tolist():
        structure._sum_logs(scores.parts[0], scores, entry, *found[1])
    return *found, in_logs


def near(found, wanted, tol):
    """Whether arrays differ by no more than that anywhere; `pytest.approx` looks at their numbers one by one."""
    return found.shape == np.shape(wanted) and bool((np.abs(found - wanted) <= tol).all())


@pytest.mark.parametrize(("kind", "several"), KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 41, 130])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 60.0])
def test_weights_and_logs_agree(kind, several, n, spread):
    arcs = spread * np.random.default_rng(n).normal(size=(3, n + 3, n + 3))
    arcs[:, :, 0] = arcs[:, range(n + 3), range(n + 3)] = np.nan  # do not matter
    if n > 2:
        arcs[:2, 1, 2] = arcs[1, 0, 1] = -np.inf
    (log_z, chances), (wanted, of_logs), in_logs = both(arcs, [n, 0, max(n - 1, 1)], kind, several)
    if kind is Arborescence or spread * n <= 410:
        assert in_logs == []
    given = [entry for entry in range(3) if entry not in in_logs]
    assert log_z[given] == pytest.approx(wanted[given], rel=1e-12, abs=1e-12)
    assert near(chances[given], of_logs[given], 1e-9)
    for entry, size in {0: n, 2: max(n - 1, 1)}.items():
        if entry in given:
            assert chances[entry, :, 1 : size + 1].sum(axis=0) == pytest.approx(1.0, abs=1e-11)
    assert not chances[1].any()


@pytest.mark.parametrize("several", [False, True])
def test_narrow_numbers_of_projective_trees_are_summed_in_wide_ones(several):
    arcs = np.random.default_rng(0).normal(size=(2, 30, 30)).astype(np.float32)
    structure = Projective(several_roots=several)
    wide = structure.marginals(arcs.astype(np.float64))[0]
    assert structure.marginals(arcs)[0] == pytest.approx(wide, abs=1e-7)
    assert structure.log_partition(arcs).tolist() == structure.log_partition(arcs.astype(np.float64)).tolist()


# ---- entries alone and side by side, in narrow numbers ----


def beside(arcs, lengths, several):
    """Log partitions and probabilities side by side, and those of the same scores in wide numbers, one by one."""
    structure = Arborescence(several_roots=several)
    narrow = np.asarray(arcs, np.float32)
    return [
        (structure.log_partition(part, lengths=lengths), structure.marginals(part, lengths=lengths)[0])
        for part in (narrow, narrow.astype(np.float64))
    ]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 41, 170])
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
def test_entries_side_by_side_are_those_one_by_one(n, spread, several):
    rng = np.random.default_rng(n)
    lengths = rng.integers(0, n + 1, size=21)
    lengths[:2] = n
    arcs = spread * rng.normal(size=(21, n + 1, n + 1))
    if n > 2:
        arcs[0, 1, 2] = arcs[1, 0, 1] = -np.inf
    beyond = np.arange(n + 1) > lengths[:, None]
    arcs[beyond[:, :, None] | beyond[:, None] | np.eye(n + 1, dtype=bool)] = np.nan
    arcs[:, :, 0] = np.inf
    (log_z, chances), (wanted, of_wide) = beside(arcs, lengths, several)
    assert log_z == pytest.approx(wanted, rel=1e-6, abs=1e-5)
    assert near(chances, of_wide, 1e-5)
    assert (np.abs(chances.sum(axis=1)[:, 1:][~beyond[:, 1:]] - 1.0) <= 1e-5).all()
    assert not chances[beyond].any()
    assert not chances[:, :, 0].any()
    assert not np.einsum("bii->bi", chances).any()
    for entry in (0, 1, 20):  # alone
        one = slice(entry, entry + 1)
        (own,), (found, _) = (
            Arborescence(several_roots=several).marginals(arcs[one].astype(np.float32), lengths=lengths[one]),
            beside(arcs[one], lengths[one], several)[0],
        )
        assert found[0] == pytest.approx(wanted[entry], rel=1e-6, abs=1e-5)
        assert near(own[0], of_wide[entry], 1e-5)
        assert not own[0, lengths[entry] + 1 :].any() and not own[0, :, lengths[entry] + 1 :].any()
        assert not own[0, :, 0].any() and not np.diagonal(own[0]).any()


@pytest.mark.parametrize("several", [False, True])
def test_neighbours_change_no_bit(several):
    rng = np.random.default_rng(0)
    arcs, lengths = rng.normal(size=(40, 21, 21)).astype(np.float32), rng.integers(0, 21, size=40)
    structure = Arborescence(several_roots=several)
    log_z, (chances,) = structure.log_partition(arcs, lengths=lengths), structure.marginals(arcs, lengths=lengths)
    order = rng.permutation(40)
    assert structure.log_partition(arcs[order], lengths=lengths[order]).tolist() == log_z[order].tolist()
    assert structure.marginals(arcs[order], lengths=lengths[order])[0].tolist() == chances[order].tolist()


@pytest.mark.parametrize("several", [False, True])
def test_what_narrow_numbers_would_lose_is_left_to_wide_ones(several):
    """The root's arc, behind all others of all words: weights of e^-70, and of e^-200, beside harmless entries."""
    arcs = np.random.default_rng(0).normal(size=(18, 9, 9)).astype(np.float32)
    arcs[3, 0], arcs[7, 0], arcs[9] = -70.0, -200.0, 0.0
    arcs[9, 1, 2] = arcs[9, 2, 1] = 150.0
    (log_z, chances), (wanted, of_wide) = beside(arcs, None, several)
    assert log_z == pytest.approx(wanted, rel=1e-6)
    assert log_z[7] < -150 or several
    assert near(chances, of_wide, 1e-5)
    structure = Arborescence(several_roots=several)
    for entry in (3, 7, 9):
        assert structure.log_partition(arcs[entry : entry + 1]) == pytest.approx(wanted[[entry]], rel=1e-6)
        assert near(structure.marginals(arcs[entry : entry + 1])[0][0], of_wide[entry], 1e-5)


def test_sums_that_are_no_numbers_are_left_to_wide_ones():
    """The root's weights grow beyond all floats, word by word, until infinity meets a weight of 0."""
    n = 160
    arcs = np.full((4, n + 1, n + 1), -200.0, np.float32)
    for hub in range(n, 3, -3):
        below = hub - 3
        arcs[:, hub, below] = arcs[:, below, below + 1 : hub + 1] = arcs[:, below + 1 : hub, max(below - 3, 0)] = 0.0
    arcs[:, n - 3, n], arcs[:, 0, n] = -53.0, 0.0
    for scores in (arcs, arcs[:1]):
        (log_z, chances), (wanted, of_wide) = beside(scores, None, several=False)
        assert log_z == pytest.approx(wanted, rel=1e-6)
        assert near(chances, of_wide, 1e-5)


def test_an_entry_without_a_tree_is_none_beside_others():
    arcs = np.zeros((5, 4, 4), np.float32)
    arcs[2, :, 3] = -np.inf
    assert np.isneginf(Arborescence().log_partition(arcs)).tolist() == [False, False, True, False, False]
    with pytest.raises(ValueError, match="Batch entry 2 has no output"):
        Arborescence().marginals(arcs)
    arcs[2, :, 3], arcs[2, 0] = 0.0, -np.inf
    with pytest.raises(ValueError, match="Batch entry 2 has no output"):
        Arborescence().marginals(arcs)


def test_what_weights_would_lose_is_left_to_logs():
    """Words that are each other's best heads by far: every projective tree underflows."""
    arcs = np.full((2, 3, 3), -700.0)
    arcs[:, 1, 2] = arcs[:, 2, 1] = 0.0
    arcs[1] /= 7
    (log_z, chances), (wanted, of_logs), in_logs = both(arcs, None, Projective, False)
    assert in_logs == [0]
    assert log_z[1] == pytest.approx(wanted[1], rel=1e-14)
    assert chances[1] == pytest.approx(of_logs[1], abs=1e-14)
    values = Projective().log_partition(arcs)
    assert values == pytest.approx([np.log(2) - 700, np.log(2) - 100], rel=1e-14)
    assert Projective().marginals(arcs)[0][0, 0, 1:] == pytest.approx([0.5, 0.5], abs=1e-12)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("arcs", [[(0, 1, -744.0)], [(0, 3, -371.0), (3, 1, -371.0), (1, 3, 0.0)]])
def test_weights_without_all_their_digits_are_no_sums(several, arcs):
    """The arcs of the only tree, or their products, have weights below the least normal number."""
    scores = np.full((1, 4, 4), -np.inf)
    scores[0, 1, 2] = scores[0, 2, 1] = 0.0
    for head, word, score in arcs:
        scores[0, head, word] = score
    size = max(2, *(word for _, word, _ in arcs))
    with pytest.raises(ValueError, match=r"batch entry 0 underflows.*Scale the scores"):
        Arborescence(several_roots=several).log_partition(scores, lengths=[size])


@pytest.mark.parametrize("several", [False, True])
def test_many_cycles_may_cost_what_one_may_not(several):
    scores = np.full((1, 5, 5), -np.inf)
    scores[0, [1, 2, 3, 4], [2, 1, 4, 3]] = 0.0
    scores[0, 0, 1] = scores[0, 0 if several else 1, 3] = -500.0
    assert Arborescence(several_roots=several).log_partition(scores) == pytest.approx([-1000.0], rel=1e-14)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("projective", [False, True])
def test_faults_of_heads_are_those_of_the_definition(projective, several):
    n = 4
    every = np.array(list(product(range(n + 1), repeat=n)), np.int32)
    wanted = [fault(heads, several, projective) for heads in every.tolist()]
    assert faults(every, np.full(len(every), n), several, projective).tolist() == wanted
    assert set(wanted) == {0, CYCLE, *([] if several else [ROOTS]), *([CROSSING] if projective else [])}


def fault(heads, several, projective):
    for word in range(1, len(heads) + 1):
        at, steps = word, 0
        while at and steps <= len(heads):
            at, steps = heads[at - 1], steps + 1
        if at:
            return CYCLE
    if heads.count(0) > 1 and not several:
        return ROOTS
    arcs = [sorted(arc) for arc in enumerate(heads, start=1)]
    return CROSSING if projective and any(a < c < b < d for a, b in arcs for c, d in arcs) else 0


def test_a_truth_that_is_no_tree_has_no_log_loss():
    with pytest.raises(ValueError, match="entry 1 has a cycle"):
        log_loss(Projective(), (np.zeros((2, 4, 4)),), [[0, 1, 2], [2, 1, 0]])


@pytest.mark.parametrize("kind", [Projective, Arborescence])
def test_labels_where_nothing_counts_do_not_matter(kind):
    """Warnings are errors."""
    arcs = np.random.default_rng(0).normal(size=(2, 4, 4, 2))
    other, structure = arcs.copy(), kind()
    other[:, range(4), range(4)], other[:, :, 0] = np.nan, np.inf
    wanted, (chances,) = structure.sample(arcs, n_samples=9, seed=0), structure.marginals(arcs)
    assert structure.sample(other, n_samples=9, seed=0).tolist() == wanted.tolist()
    assert structure.marginals(other)[0].tolist() == chances.tolist()


def test_lengths_do_not_need_a_second_sum(monkeypatch):
    """A truth of words within the lengths is one tree: no masks, and no sum over what agrees with it."""
    monkeypatch.setattr(Projective, "restrict", None)
    arcs, y = np.random.default_rng(0).normal(size=(2, 4, 4)), [[0, 1, 2], [0, 1, -1]]
    values, (gradients,) = log_loss(Projective(), (arcs,), y, [3, 2])
    scores = Projective().score(y, arcs, lengths=[3, 2])
    assert values == pytest.approx(Projective().log_partition(arcs, lengths=[3, 2]) - scores, abs=1e-12)
    assert not gradients[1, 3].any() and not gradients[1, :, 3].any()


# ---- the best trees of a batch ----


@pytest.mark.parametrize(("kind", "several"), KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_best_trees_of_a_batch_are_those_of_its_entries(kind, several, dtype):
    rng, structure = np.random.default_rng(0), kind(several_roots=several)
    arcs, lengths = rng.normal(size=(9, 13, 13)).astype(dtype), [12, 0, 1, 7, 2, 12, 3, 9, 12]
    arcs[3] *= 1e30
    arcs[5, 0, 1:4] = -np.inf
    y = structure.argmax(arcs, lengths=lengths)
    assert structure.check_output(y, structure.check((arcs,), lengths)).tolist() == y.tolist()
    for entry, size in enumerate(lengths):
        one = arcs[entry : entry + 1, : size + 1, : size + 1]
        assert structure.argmax(one).tolist() == y[entry : entry + 1, :size].tolist()
        if 0 < size < 4:
            values = structure.kbest(one, k=1)[1][:, 0]
            assert structure.score(y[entry : entry + 1, :size], one) == pytest.approx(values, rel=1e-6)
    assert kind(several_roots=several, n_threads=2).argmax(arcs, lengths=lengths).tolist() == y.tolist()


@pytest.mark.parametrize(("kind", "several"), KINDS)
def test_entries_without_a_tree_are_named(kind, several):
    arcs = np.zeros((3, 4, 4))
    arcs[1, :, 2] = -np.inf
    with pytest.raises(ValueError, match="Batch entry 1 has no output"):
        kind(several_roots=several).argmax(arcs)
    arcs[1, :, 2], arcs[1, 0] = 0.0, -np.inf
    with pytest.raises(ValueError, match="Batch entry 1 has no output"):
        kind(several_roots=several).argmax(arcs)


def test_tables_of_trees_that_do_not_fit_are_refused():
    finder, heads = TreeFinder(True, 3), np.zeros((1, 3), np.int32)
    for tables, sizes in ((np.zeros((1, 16), np.float32), [4]), (np.zeros((1, 15), np.float32), [3])):
        with pytest.raises(ValueError, match="do not fit"):
            finder.trees(tables, np.array(sizes), heads)
