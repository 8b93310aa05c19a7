"""Outputs and parts that a structure has not: each is named, with the way out."""

import math
import subprocess
import sys

import numpy as np
import pytest

import structsvm
from structsvm.execution._stop import shared
from structsvm.layers import (
    Alignment,
    Arborescence,
    Assignment,
    Chain,
    LabelSets,
    Ordering,
    Projective,
    SemiMarkov,
    Spans,
    Taxonomy,
    hinge,
    kl_divergence,
    log_loss,
    perturbed,
    spo_plus,
)
from structsvm.layers._chain import Batch
from structsvm.layers.structure import GREATEST, as_floats, as_narrow

ARCS = np.zeros((2, 5, 5))
NODES = structsvm.Taxonomy([("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")])
PAIRS = np.zeros((1, 2, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e6, 1e16, 1e30])
@pytest.mark.parametrize(
    ("structure", "shapes"),
    [
        (Chain(), [(6, 3), (1, 3, 3)]),
        (SemiMarkov(), [(7, 3, 2), (2, 2)]),
        (LabelSets(4, [(0, 1), (1, 2), (1, 3)]), [(4,), (3,)]),
        (Spans(), [(7, 7, 2), (2, 2, 2)]),
        (Spans(), [(7, 7, 2)]),
        (Projective(), [(7, 7)]),
        (Ordering(), [(6, 6)]),
    ],
)
def test_huge_scores_have_probabilities(structure, shapes, scale, dtype):
    """Where the log of a sum is lost beside the scores, the parts of an output still have chances of 1 together."""
    n_samples = 3000
    for seed in range(10):
        rng = np.random.default_rng(seed)
        parts = [rng.choice([-scale, 0, scale], size=(1, *shape)).astype(dtype) for shape in shapes]
        found, y = structure.marginals(*parts)[0], structure.argmax(*parts)
        assert found.min() >= 0 and found.max() <= 1 + 1e-5
        if not isinstance(structure, (LabelSets, SemiMarkov)):
            indicators = structure.indicators(y, structure.check(parts, None))[0]
            assert found.sum() == pytest.approx(indicators.sum(), rel=1e-4)
        if isinstance(structure, Projective):
            heads = structure.sample(*parts, n_samples=n_samples, seed=0)[0]
            share = (heads[:, None] == np.arange(7)[:, None]).mean(axis=0)
            np.testing.assert_allclose(share, found[0, :, 1:], atol=5 * np.sqrt(0.25 / n_samples))
        if isinstance(structure, SemiMarkov):
            ends = np.add.outer(np.arange(7), np.arange(3))
            for token in range(7):
                over = (np.arange(7)[:, None] <= token) & (ends >= token)
                assert found[0, over].sum() == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 4e37), (np.float64, 9e299)])
def test_scores_whose_sums_would_overflow(dtype, most):
    for sign in (1, -1):
        spans, chain = np.full((1, 60, 60, 1), sign * most, dtype), np.full((1, 300, 3), sign * most, dtype)
        edges, heads = np.full((3, 3), sign * most, dtype), np.full((1, 40, 40), sign * most, dtype)
        for structure, parts in ((Spans(), (spans,)), (Chain(), (chain, edges)), (Projective(), (heads,))):
            assert np.isfinite(structure.log_partition(*parts)).all()
            assert all(np.isfinite(part).all() for part in structure.marginals(*parts))
            with pytest.raises(ValueError, match="must be finite, or -inf"):
                structure.log_partition(parts[0] * dtype(2), *parts[1:])
    y = Spans().argmax(np.zeros((1, 4, 4, 1)))
    with pytest.raises(ValueError, match="cost must be finite and"):
        hinge(Spans(), (np.zeros((1, 4, 4, 1), dtype),), y, cost=np.full((1, 4, 4, 1), 2 * most))


def test_arrays_that_are_not_aligned():
    def unaligned(array):
        memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
        moved = memory.view(array.dtype).reshape(array.shape)
        moved[...] = array
        assert moved.flags.c_contiguous and not moved.flags.aligned
        return moved

    for dtype in (np.float32, np.float64):
        spans = np.random.default_rng(0).normal(size=(2, 5, 5, 2)).astype(dtype)
        y, lengths = Spans().argmax(spans, lengths=[5, 4]), np.array([5, 4])
        assert as_floats("spans", unaligned(spans)).flags.aligned and as_floats("gap", dtype(1)).shape == ()
        scores = Spans().check((unaligned(spans),), unaligned(lengths))
        assert scores.parts[0].flags.aligned and scores.lengths.flags.aligned
        assert as_narrow(unaligned(y))[0].flags.aligned
        wanted, found = (log_loss(Spans(), (move(spans),), move(y), move(lengths)) for move in (np.asarray, unaligned))
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1][0], wanted[1][0])


@pytest.mark.parametrize(
    ("structure", "heads", "message"),
    [
        (Projective(), [2, 0, 4, 3], "entry 1 has a cycle"),
        (Projective(), [1, 0, 2, 3], "entry 1 has a cycle"),
        (Projective(), [0, 1, 0, 3], "entry 1 has 2 words below the root .several_roots=True"),
        (Projective(several_roots=True), [3, 4, 0, 3], "entry 1 has arcs that cross .Arborescence"),
        (Projective(), [3, 0, 2, 1], "entry 1 has arcs that cross"),
        (Arborescence(), [0, 0, 1, 1], "entry 1 has 2 words below the root"),
    ],
    ids=["cycle", "own head", "roots", "crossing", "over the root", "roots of any"],
)
def test_heads_that_are_no_tree_of_the_structure(structure, heads, message):
    good = [0, 1, 2, 3]
    with pytest.raises(ValueError, match=message):
        hinge(structure, (ARCS,), [good, heads])
    hinge(structure, (ARCS,), [good, good])
    hinge(Arborescence(several_roots=True), (ARCS,), [good, [0, 0, 1, 2]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelSets(3, [(0, 1), (1, 2), (0, 2)]), "edges must form a forest.*chow_liu"),
        (lambda: LabelSets(3, [(0, 1)]).argmax(np.zeros((1, 3))), "pairs must be an array of the scores of 1 edges"),
        (lambda: LabelSets(3, [(0, 1)]).argmax(np.zeros((1, 3)), np.zeros(2)), r"pairs must have shape \(1,\) or"),
        (lambda: LabelSets(3).argmax(np.zeros((1, 4))), r"labels must have shape \(B, 3\)"),
        (lambda: LabelSets(3).argmax(np.zeros((1, 3)), lengths=[2]), "LabelSets has no lengths: mask"),
        (lambda: LabelSets(0), "n_labels must be at least 1"),
        (lambda: Taxonomy(NODES).argmax(np.zeros((1, 3))), r"nodes must have shape \(B, 5\)"),
        (lambda: Taxonomy(NODES, []), "outputs must be different nodes"),
        (lambda: Taxonomy(NODES, ["c", "c"]), "outputs must be different nodes"),
        (lambda: hinge(Taxonomy(NODES), (np.zeros((1, 5)),), [1]), "Got the node 'a' at batch entry 0, which is none"),
        (lambda: hinge(Assignment(), (PAIRS,), [[1, 1]]), "y matches 2 nodes of batch entry 0 with node 1"),
        (lambda: hinge(Assignment(), (PAIRS,), [[1, -1]]), "y must match 2 nodes of batch entry 0.*`alone`"),
        (lambda: Assignment().argmax(PAIRS, lengths=[2]), r"lengths must have shape \(1, 2\)"),
        (lambda: Assignment().argmax(PAIRS[0]), r"pairs must have shape \(B, n, m\)"),
        (lambda: Alignment("semiglobal"), "mode must be one of global, semi-global, local. Got 'semiglobal'"),
        (lambda: Alignment().argmax(PAIRS[0]), r"pairs must have shape \(B, n, m\)"),
        (lambda: Alignment().argmax(PAIRS, np.zeros(3)), r"open_x must be a number or have shape \(2,\) or \(1, 2\)"),
        (lambda: Alignment().argmax(PAIRS, 0.0, 0.0, np.zeros(2)), r"open_z must be a number or have shape \(3,\)"),
        (lambda: Alignment().argmax(PAIRS, np.nan), r"open_x must be finite.*Got nan at position \(\)"),
        (
            lambda: Alignment().argmax(PAIRS, lengths=np.ma.array([[2, 3]], mask=[[True, False]])),
            "lengths has masked entries, 1 of them",
        ),
        (
            lambda: Assignment().argmax(PAIRS, lengths=np.ma.array([[2, 3]], mask=[[True, False]])),
            "lengths has masked entries, 1 of them",
        ),
        (lambda: Alignment().argmax(PAIRS, lengths=[2]), r"lengths must have shape \(1, 2\): letters of x and of z"),
        (lambda: Ordering().argmax(PAIRS), r"pairs must have shape \(B, n, n\). Got \(1, 2, 3\)"),
        (lambda: Ordering().argmax(np.zeros((1, 11, 11))), "up to 10 items. Batch entry 0 has 11: .*relaxes"),
        (lambda: hinge(Ordering(), (np.zeros((1, 3, 3)),), [[0, 2, 0]]), "y lists item 0 of batch entry 0 2 times"),
        (lambda: Projective().argmax(np.zeros((1, 3, 4))), r"arcs must have shape \(B, n \+ 1, n \+ 1\)"),
        (lambda: kl_divergence(LabelSets(3), (np.zeros((1, 3)),), np.zeros((1, 3))), "y must be a teacher's parts, a"),
        (
            lambda: kl_divergence(Projective(), (ARCS,), (np.zeros((2, 4, 4)),)),
            "y must be a teacher's parts, arrays of the shapes",
        ),
        (lambda: Projective(n_threads=0), "n_threads must be an integer of at least 1"),
        (lambda: Chain(n_threads=1025), "n_threads must be at most 1024, got 1025"),
        (lambda: Spans(n_threads=2**31), "n_threads must be at most 1024"),
        (lambda: perturbed(Projective(), (ARCS,), [[0, 1, 2, 3]], n_samples=0), "n_samples must be an integer of at"),
        (lambda: perturbed(Projective(), (ARCS,), [[0, 1, 2, 3]], sigma=np.nan), "sigma must be a number above 0"),
        (
            lambda: perturbed(Projective(), (ARCS,), [[0, 1, 2, 3]] * 2, seed=None),
            "seed must be an integer of at least 0",
        ),
        (lambda: Projective().kbest(ARCS, k=0), "k must be an integer of at least 1"),
        (lambda: hinge(Projective(), (ARCS,), [[0, 1, 2, 3]] * 2, cost=np.zeros((1, 5, 5))), "cost must be finite and"),
    ],
)
def test_parts_and_outputs_that_do_not_fit(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("mode", "partners", "message"),
    [
        ("global", [1, 0, 2], "global alignments. Batch entry 1 has partners that do not ascend"),
        ("global", [1, 1, 2], "partners that do not ascend"),
        ("global", [0, 5, 2], r"a letter between two pairs that is outside \(5\), not in a gap \(4\)"),
        ("global", [5, 0, 2], r"beyond the outer pairs that are not all 4 \(in a gap\)"),
        ("local", [4, 0, 2], r"beyond the outer pairs that are not all 5 \(outside\)"),
        ("local", [4, 4, 4], r"not all 5 \(outside\)"),
        ("semi-global", [4, 0, 2], r"not all 5 \(outside\)"),
        ("semi-global", [4, 5, 2], r"not all 4 \(in a gap\) or all 5 \(outside\)"),
        ("semi-global", [0, 3, 4], r"not all 5 \(outside\)"),
    ],
)
def test_partners_that_are_no_alignment_of_the_mode(mode, partners, message):
    good = {"global": [0, 4, 2], "local": [5, 0, 5], "semi-global": [4, 1, 4]}[mode]
    with pytest.raises(ValueError, match=message):
        hinge(Alignment(mode), (np.zeros((2, 3, 4)),), [good, partners])
    hinge(Alignment(mode), (np.zeros((2, 3, 4)),), [good, good])


def test_long_strings_have_as_many_alignments_as_is_known():
    found = Alignment().log_partition(np.zeros((1, 60, 50)))
    assert found == pytest.approx(math.log(math.comb(110, 50)), rel=1e-12)
    assert Alignment("local").marginals(np.zeros((1, 60, 50)))[0].sum() > 1


def test_long_orders_are_told_by_their_lengths():
    pairs = np.zeros((2, 12, 12))
    assert Ordering().log_partition(pairs, lengths=[10, 3]) == pytest.approx(np.log([math.factorial(10), 6]))
    assert (np.sort(Ordering().sample(pairs, n_samples=3, seed=0, lengths=[10, 0])[0, :, :10]) == np.arange(10)).all()


def test_numbers_of_gaps_leave_the_type_of_pairs():
    pairs, gaps = np.zeros((1, 3, 4), np.float32), (-1.0, -0.5, -1, 0)
    of_pairs, *of_gaps = Alignment().marginals(pairs, *gaps)
    assert of_pairs.dtype == np.float32 and all(gap.shape == (1,) for gap in of_gaps)
    _, gradients = hinge(Alignment(), (pairs, *gaps), [[0, 1, 2]])
    assert [gradient.shape for gradient in gradients] == [(1, 3, 4), (), (), (), ()]


def test_numbers_of_arcs_that_no_tree_has_do_not_matter():
    arcs = np.random.default_rng(0).normal(size=(1, 4, 4))
    wild = arcs.copy()
    wild[:, :, 0] = wild[:, range(4), range(4)] = np.nan
    for structure in (Projective(), Arborescence(several_roots=True)):
        np.testing.assert_array_equal(structure.marginals(arcs)[0], structure.marginals(wild)[0])
        assert structure.entropy(wild) == structure.entropy(arcs)


@pytest.mark.parametrize("structure", [Projective(), Arborescence(), Arborescence(several_roots=True), Ordering()])
def test_rounded_probabilities_of_masked_parts_are_zero(structure):
    """The entropy is infinite if one is not."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(1, 7, 7))
        np.putmask(scores, (rng.random((7, 7)) < 0.3) & (np.arange(7)[:, None] > np.arange(7)), -np.inf)
        (marginals,) = structure.marginals(scores)
        assert (marginals[np.isneginf(scores)] == 0).all()
        assert np.isfinite(structure.entropy(scores)).all()


def test_labels_of_arcs_that_do_not_fit_are_named():
    arcs, good = np.zeros((1, 3, 3, 2)), [[[2, 0], [0, 1]]]
    assert hinge(Projective(), (arcs,), good)[0].tolist() == [2.0]
    for bad, message in (
        ([[[2, 0], [0, 2]]], "y must contain labels from 0 to 1. Got 2 at batch entry 0, word 2"),
        ([[[3, 0], [0, 1]]], "y must contain heads from 0 .the root. to 2. Got 3 at batch entry 0, word 1"),
        ([[[2, 0], [1, 1]]], "Batch entry 0 has a cycle"),
        ([[2, 0]], r"y must be an array of integers of shape \(1, 2, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            hinge(Projective(), (arcs,), bad)
    with pytest.raises(ValueError, match=r"arcs must have shape .* or \(B, n \+ 1, n \+ 1, K\) with K labels"):
        Projective().argmax(np.zeros((1, 3, 3, 0)))


def test_one_label_of_arcs_is_none():
    arcs = np.random.default_rng(0).normal(size=(2, 6, 6))
    for structure in (Projective(), Arborescence(several_roots=True)):
        assert structure.argmax(arcs[..., None])[..., 0].tolist() == structure.argmax(arcs).tolist()
        for verb in ("marginals", "max_marginals"):
            for one, plain in zip(
                getattr(structure, verb)(arcs[..., None]), getattr(structure, verb)(arcs), strict=True
            ):
                np.testing.assert_allclose(one[..., 0], plain, atol=1e-12)


@pytest.mark.parametrize("structure", [Projective(), Arborescence()])
@pytest.mark.parametrize("scale", [1e30, 1e200])
def test_huge_scores_of_arcs_have_best_trees(structure, scale):
    arcs = np.random.default_rng(0).normal(size=(2, 6, 6))
    np.testing.assert_array_equal(structure.argmax(arcs), structure.argmax(scale * arcs))
    np.testing.assert_array_equal(structure.argmax(arcs), structure.argmax(arcs + 1e9))


@pytest.mark.parametrize("structure", [Projective(), Arborescence()])
def test_long_sentences(structure):
    zeros = np.zeros((1, 41, 41))
    n = 40
    known = np.log(float(n)) * (n - 1)  # Cayley: n^(n - 1) trees with one word below the root
    if isinstance(structure, Arborescence):
        assert structure.log_partition(zeros) == pytest.approx(known)
    assert structure.marginals(zeros)[0].sum() == pytest.approx(n)


def test_frameworks_are_not_imported_before_they_are_asked_for():
    code = "import sys, structsvm.layers.jax; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0


def eighths(rng, *shape):
    """Numbers that huge ones can be added to without rounding."""
    return rng.integers(-24, 24, size=shape) / 8


@pytest.mark.parametrize("order", [1, 2])
def test_entropies_of_chains_keep_their_digits_beside_huge_scores(order):
    rng = np.random.default_rng(order)
    emissions, transitions = eighths(rng, 3, 9, 4), eighths(rng, *[4] * (order + 1))
    common = rng.integers(-9, 9, size=(3, 9, 1)) * 2.0**30
    chain, lengths = Chain(order=order), [9, 1, 4]
    wanted = chain.entropy(emissions, transitions, lengths=lengths)
    np.testing.assert_allclose(chain.entropy(emissions + common, transitions, lengths=lengths), wanted, rtol=1e-12)
    assert wanted.min() > 0.1


@pytest.mark.parametrize("kind", [Projective, Arborescence])
@pytest.mark.parametrize("labels", [(), (2,)])
def test_entropies_of_trees_keep_their_digits_beside_huge_scores(kind, labels):
    rng = np.random.default_rng(0)
    arcs = eighths(rng, 3, 7, 7, *labels)
    common = rng.integers(-9, 9, size=(3, 1, 7, *[1 for _ in labels])) * 2.0**30
    structure, lengths = kind(several_roots=True), [6, 1, 3]
    wanted = structure.entropy(arcs, lengths=lengths)
    np.testing.assert_allclose(structure.entropy(arcs + common, lengths=lengths), wanted, rtol=1e-12, atol=1e-13)
    assert wanted.max() > 0.1


@pytest.mark.parametrize("structure", [Chain(), Projective()])
def test_entropy_names_the_entry_without_an_output(structure):
    parts = [np.zeros((2, 3, 3)), np.zeros((3, 3))][: len(structure.part_names)]
    parts[0][1] = -np.inf
    with pytest.raises(ValueError, match="Batch entry 1 has no output"):
        structure.entropy(*parts)


@pytest.mark.parametrize("scale", [2.0**30, 2.0**45])
def test_log_losses_keep_their_digits_beside_huge_scores(scale):
    rng = np.random.default_rng(0)
    emissions, transitions, arcs = eighths(rng, 3, 9, 4), eighths(rng, 4, 4), eighths(rng, 3, 7, 7, 2)
    tokens, words = rng.integers(-9, 9, size=(3, 9, 1)) * scale, rng.integers(-9, 9, size=(3, 1, 7, 1)) * scale
    chains, trees = Chain(), Projective()
    for structure, parts, common, lengths in (
        (chains, (emissions, transitions), tokens, [9, 1, 4]),
        (Chain(order=2), (emissions, eighths(rng, 4, 4, 4)), tokens, [9, 1, 4]),
        (trees, (arcs,), words, [6, 1, 3]),
        (trees, (arcs[..., 0],), words[..., 0], [6, 1, 3]),
        (Arborescence(), (arcs[..., 0],), words[..., 0], [6, 1, 3]),
    ):
        y = structure.sample(*parts, n_samples=1, seed=0, lengths=lengths)[:, 0]
        wanted = log_loss(structure, parts, y, lengths)[0]
        found = log_loss(structure, (parts[0] + common, *parts[1:]), y, lengths)[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        assert wanted.max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_losses_do_not_depend_on_a_huge_neighbour(dtype):
    rng = np.random.default_rng(0)
    emissions, transitions = (rng.normal(size=size).astype(dtype) for size in ((4, 50, 5), (5, 5)))
    y = rng.integers(0, 5, (4, 50))
    alone, huge = log_loss(Chain(), (emissions, transitions), y)[0], emissions.copy()
    huge[3] *= dtype(1e8)
    beside = log_loss(Chain(), (huge, transitions), y)[0]
    assert beside[:3].tolist() == alone[:3].tolist()
    assert beside[3] == log_loss(Chain(), (huge[3:], transitions), y[3:])[0][0]


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 1, 1), (0, 1, 1), (2, 1, 1, 3), (0, 4, 4, 3)])
@pytest.mark.parametrize("kind", [Projective, Arborescence])
def test_no_trees_and_trees_of_no_words_have_no_entropy(kind, shape):
    assert kind().entropy(np.zeros(shape)).tolist() == [0.0] * shape[0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 0, 3), (0, 0, 3)])
def test_maxima_with_a_label_of_no_chains_and_of_no_tokens(order, shape):
    assert Chain(order=order).max_marginals(np.zeros(shape), np.zeros((3,) * (order + 1))).shape == shape


def test_each_step_has_its_own_pairs_less_those_of_a_truth():
    rng = np.random.default_rng(0)
    emissions, transitions, edge = rng.normal(size=(2, 4, 3)), rng.normal(size=(1, 1, 3, 3)), np.zeros((1, 3))
    y = rng.integers(0, 3, (2, 4)).astype(np.int32)
    batch = Batch(emissions, transitions, edge, edge, np.array([4, 3]), apart=True)
    nodes, pairs, less = np.empty((2, 4, 3)), np.empty((2, 3, 3, 3)), np.empty((2, 3, 3, 3))
    batch.sums(1, np.empty(2), nodes, pairs)
    batch.sums(1, np.empty(2), nodes, less, None, y, np.empty(2))
    for entry, step in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        pairs[entry, step, y[entry, step], y[entry, step + 1]] -= 1
    np.testing.assert_allclose(less, pairs, atol=1e-12)


def test_other_scores_of_a_batch_have_not_its_truth():
    segmenter, segments = SemiMarkov(), np.zeros((2, 3, 2, 4))
    scores = segmenter.check((segments, np.zeros((4, 4))), None)
    y = segmenter.check_output(np.zeros((2, 3), int), scores)
    assert scores.truth is not None
    others = scores.take([1]), scores.plus(np.ones(segments.shape)), segmenter.restrict(scores, y)
    assert [other.truth for other in others] == [None] * 3


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("scale", [1e6, 1e8, 1e12, 1e16])
def test_entropies_of_chains_keep_their_digits_beside_huge_transitions(scale, each):
    transitions = np.zeros((3, 3))
    transitions[:2, :2] = scale
    table = np.tile(transitions, (1, 49, 1, 1)) if each else transitions
    entropy = Chain().entropy(np.zeros((1, 50, 3)), table)
    assert entropy == pytest.approx([50 * np.log(2)], rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1e8, 1e16, 1e200])
def test_pairs_of_each_step_add_up_to_one_beside_huge_transitions(order, scale):
    transitions = np.zeros((3,) * (order + 1))
    transitions[(slice(2),) * (order + 1)] = scale
    table = np.tile(transitions, (1, 9 - order, *[1] * (order + 1)))
    for steps in (table, transitions):
        found = Chain(order=order).marginals(np.zeros((1, 9, 3)), steps)[1]
        wanted = np.zeros(transitions.shape)
        wanted[(slice(2),) * (order + 1)] = 0.5 ** (order + 1) * (1 if steps is table else 9 - order)
        np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-12)


@pytest.mark.parametrize("sizes", [(2, 1), (1, 2)])
def test_a_teacher_of_another_batch_is_refused(sizes):
    parts, teacher = (((np.ones((n, 4, 3)), np.zeros((3, 3)))) for n in sizes)
    with pytest.raises(ValueError, match="y must be a teacher's parts, arrays of the shapes that the parts have"):
        kl_divergence(Chain(), parts, teacher)


@pytest.mark.parametrize("scale", [1e6, 1e16, 1e300 / 4])
def test_nodes_that_score_the_same_share_probabilities_beside_huge_scores(scale):
    layer, nodes = Taxonomy(NODES), np.zeros((1, len(NODES.nodes)))
    nodes[0, NODES.number("a")] = scale
    found = layer.marginals(nodes)[0][0, layer.outputs]
    below = np.isin([NODES.nodes[k] for k in layer.outputs], ["c", "d"])  # a's leaves
    np.testing.assert_allclose(found, np.where(below, 0.5, 0.0))


@pytest.mark.parametrize("structure", [Chain(), SemiMarkov()])
def test_numbers_beyond_a_length_of_0_do_not_matter_to_masked_starts(structure):
    first = np.full((2, 3, 2), np.inf) if isinstance(structure, Chain) else np.full((2, 3, 2, 2), np.inf)
    first[0] = 0.0
    found = structure.max_marginals(first, np.zeros((2, 2)), np.array([0.0, -np.inf]), lengths=[3, 0])
    assert np.isfinite(found[0]).any() and np.isneginf(found[1]).all()


def test_scores_of_decisions_beyond_a_length_do_not_matter():
    guess, truth = np.zeros((1, 3, 2)), np.ones((1, 3, 2))
    guess[:, 2] = truth[:, 2] = np.inf
    values, gradients = spo_plus(Chain(), (guess, np.zeros((2, 2))), (truth, np.zeros((2, 2))), [2])
    assert np.isfinite(values).all() and np.isfinite(gradients[0]).all()


@pytest.mark.parametrize("structure", [Chain(), SemiMarkov(), Spans(), Projective(), Ordering(), Assignment()])
def test_no_entries_have_no_lengths(structure):
    shapes = {Chain: ((0, 3, 2), (2, 2)), SemiMarkov: ((0, 3, 2, 2), (2, 2)), Spans: ((0, 3, 3, 2),)}
    parts = [np.zeros(shape) for shape in shapes.get(type(structure), ((0, 4, 4),))]
    lengths = np.empty((0, 2), int) if isinstance(structure, Assignment) else []
    assert len(structure.argmax(*parts, lengths=lengths)) == 0
    with pytest.raises(ValueError, match="lengths must"):
        structure.argmax(*parts, lengths=[1])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64, ">i4"])
@pytest.mark.parametrize(("structure", "shapes"), [(Chain(), [(3, 4, 5), (5, 5)]), (Arborescence(), [(3, 5, 5)])])
def test_truths_of_any_integers_and_what_stands_beyond_them(structure, shapes, dtype):
    rng, lengths = np.random.default_rng(0), [4, 2, 0]
    parts = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    y = structure.sample(*parts, n_samples=1, seed=0, lengths=lengths)[:, 0]
    wanted = log_loss(structure, parts, y, lengths)
    beyond = np.where(y < 0, 99, y).astype(dtype)
    for given in (beyond, np.asfortranarray(beyond), beyond.tolist()):
        values, gradients = log_loss(structure, parts, given, lengths)
        np.testing.assert_array_equal(values, wanted[0])
        for one, other in zip(gradients, wanted[1], strict=True):
            np.testing.assert_array_equal(one, other)
    for wrong in (99, -2, 2**31 if np.dtype(dtype).itemsize > 4 else 100):
        bad = y.astype(np.int64)
        bad[1, 1] = wrong
        with pytest.raises(ValueError, match=rf"Got {wrong} at batch entry 1"):
            log_loss(structure, parts, bad, lengths)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "shapes"), [(Chain, [(400, 6, 3), (3, 3)]), (Arborescence, [(400, 7, 7)]), (Projective, [(400, 7, 7)])]
)
def test_threads_look_at_what_they_sum(kind, shapes, dtype, n_threads):
    """Masks, and what stands beyond a length, are no numbers out of bounds; what is one is named."""
    structure, rng = kind(n_threads=n_threads), np.random.default_rng(0)
    parts, lengths = [rng.normal(size=shape).astype(dtype) for shape in shapes], rng.integers(2, 7, 400)
    lengths[[5, 17]] = 3, 5
    y = structure.sample(*parts, n_samples=1, seed=0, lengths=lengths)[:, 0]
    parts[0][5, 5:] = np.nan
    for _ in range(2):
        before = shared()
        values, gradients = log_loss(structure, parts, y, lengths)
        assert (shared() > before) == (n_threads > 1)
        known = structure.score(y, *parts, lengths=lengths)
        np.testing.assert_allclose(values, structure.log_partition(*parts, lengths=lengths) - known, atol=1e-5)
        wanted = structure.marginals(*parts, lengths=lengths)[0]
        wanted -= structure.indicators(y, structure.check(parts, lengths))[0]
        np.testing.assert_allclose(gradients[0], wanted, atol=1e-5)
        place = (17, 2, (y[17, 2] + 1) % 3) if kind is Chain else (17, 4 if y[17, 2] != 4 else 5, 3)
        parts[0][place] = -np.inf
    assert gradients[0][place] == 0
    parts[0][33, 0, 1] = np.nan
    for truth in (y, np.full_like(y, -1)):
        with pytest.raises(ValueError, match=r"must be finite.* Got nan at batch entry 33, position \(0, 1\)"):
            log_loss(structure, parts, truth, lengths)


class Counting:
    """Counts the calls of a batch's `sums`."""

    calls = 0

    def sums(self, *arguments, **options):
        type(self).calls += 1
        return super().sums(*arguments, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "shapes"), [(Chain, [(40, 6, 3), (3, 3)]), (Arborescence, [(40, 7, 7)]), (Projective, [(40, 7, 7)])]
)
def test_masks_do_not_make_sums_run_twice(kind, shapes, dtype, monkeypatch):
    module, rng = sys.modules[kind.__module__], np.random.default_rng(0)
    structure, parts, lengths = kind(), [rng.normal(size=shape).astype(dtype) for shape in shapes], np.full(40, 6)
    y = structure.argmax(*parts, lengths=lengths)
    lengths[5] = 3
    parts[0][5, 5:] = np.nan  # beyond its length
    if kind is Chain:
        parts[0][17, 2, (y[17, 2] + 1) % 3] = -np.inf
    else:
        y[5] = 2, 0, 2, -1, -1, -1
        parts[0][:, np.arange(7), np.arange(7)] = np.inf
        parts[0][:, :, 0] = np.nan
        parts[0][17, 4 if y[17, 2] != 4 else 5, 3] = -np.inf
    batch = type("Counted", (Counting, module.Batch), {})
    monkeypatch.setattr(module, "Batch", batch)
    assert np.isfinite(log_loss(structure, parts, y, lengths)[0]).all()
    assert batch.calls == 1
    for bad in (np.nan, np.inf, GREATEST[np.dtype(dtype)], -GREATEST[np.dtype(dtype)]):
        parts[0][33, 1, 2] = bad
        with pytest.raises(ValueError, match=r"must be finite.* at batch entry 33, position \(1, 2\)"):
            log_loss(structure, parts, y, lengths)


@pytest.mark.parametrize("kind", [Projective, Arborescence])
def test_an_unknown_head_is_seen_before_any_sum(kind, monkeypatch):
    module, arcs = sys.modules[kind.__module__], np.random.default_rng(0).normal(size=(40, 7, 7))
    y = kind().argmax(arcs)
    wanted, (gradient,) = log_loss(kind(), (arcs,), y)
    batch = type("Counted", (Counting, module.Batch), {})
    y[39] = -1
    monkeypatch.setattr(module, "Batch", batch)
    found, (others,) = log_loss(kind(), (arcs,), y)
    np.testing.assert_allclose(found[:39], wanted[:39])
    np.testing.assert_allclose(others[:39], gradient[:39], atol=1e-12)
    assert found[39] == pytest.approx(0, abs=1e-12)
    assert batch.calls == 2  # for all trees, and for those that agree
