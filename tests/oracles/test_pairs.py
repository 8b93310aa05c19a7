"""Trees scored by pairs of arcs: features beside an enumeration, the search beside single changes, what is refused."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structures_table import ARC_TEMPLATES, LABEL_TEMPLATES

from structsvm import LaRank
from structsvm.features.arc_templates import ArcTemplates, PairTemplates
from structsvm.oracles.arborescence import ArborescenceOracle
from structsvm.oracles.dependency._dependency import ARC, CANDIDATES
from structsvm.oracles.dependency.pairs import PairOracle, TreeCandidates
from structsvm.oracles.eisner import EisnerOracle
from structsvm.structures.dependencies import what_is_no_tree
from structsvm.testing import check_oracle

COLUMNS = ("word", "tag")
TEXTS = (
    "h.tag s.tag m.tag dir",
    "h.label s.label m.label",
    "g.tag h.word m.label dir",
    "t.tag s-1.word m.tag",
    "g.tag",
)


def case(seed, n, projective=True, *, bits=12, gap=4.0):
    """An oracle, a sentence with its candidates, and the tree that they come with."""
    rng = np.random.default_rng(seed)
    kind = EisnerOracle if projective else ArborescenceOracle
    first = kind(2, ArcTemplates(COLUMNS, ARC_TEMPLATES, LABEL_TEMPLATES), arc_bits=8, row_bits=6)
    x = rng.integers(2, 6, (n, 2)).astype(np.int32)
    w = rng.normal(size=first.n_features).astype(np.float32)
    found = first.decoder(n).candidates(x, np.array([0, n]), w, gap)
    oracle = PairOracle(2, PairTemplates(COLUMNS, TEXTS), projective=projective, bits=bits)
    return oracle, (x, TreeCandidates(*found)), np.ascontiguousarray(found[0].T)


def n_crossing(heads):
    arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, 1)]
    return sum(a < c < b < d for a, b in arcs for c, d in arcs)


def is_allowed(oracle, tree):
    heads = tree[:, 0].tolist()
    return what_is_no_tree(heads) is None and not (oracle.projective and n_crossing(heads))


def choices(candidates, m):
    return [(int(arc["head"]), int(arc["label"])) for arc in candidates.arcs[m, : candidates.counts[m]]]


def enumerated(x, tree):
    """The features of TEXTS of a tree, as tuples."""
    n, heads, labels = len(x), [None, *tree[:, 0].tolist()], [None, *tree[:, 1].tolist()]

    def seen(i, column, offset=0):
        return "none" if i is None else "root" if i + offset == 0 else tuple(x[i + offset - 1 : i + offset, column])

    def label(i):
        return "none" if i is None else labels[i]

    found = Counter()
    for h in range(1, n + 1):
        g = heads[h]
        for step in (-1, 1):
            below = [m for m in range(1, n + 1) if heads[m] == h and (m - h) * step > 0][::step]
            for t, s, m in zip([None, None, *below], [None, *below], [*below, None]):
                side = (step, g < h)
                found[0, seen(h, 1), seen(s, 1), seen(m, 1), side] += 1
                found[1, label(h), label(s), label(m)] += 1
                found[2, seen(g, 1), seen(h, 0), label(m), side] += 1
                found[3, seen(t, 1), seen(s, 0, -1), seen(m, 1)] += 1
                found[4, seen(g, 1)] += 1
    return found


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_features_are_those_that_two_trees_share(seed, n, projective):
    """Equal things have equal hashes, and others (but for one in 2**28) have not."""
    oracle, (x, candidates), tree = case(seed, n, projective, bits=28)
    rng, trees = np.random.default_rng(seed), [tree]
    while len(trees) < 3:
        other = np.array([choices(candidates, m)[rng.integers(candidates.counts[m])] for m in range(n)], dtype=np.int32)
        if is_allowed(oracle, other):
            trees.append(other)
    check_features(oracle, x, trees)


@given(st.integers(0, 2**32 - 1), st.integers(7, 12), st.booleans())
def test_features_of_long_sentences(seed, n, projective):
    oracle, x, tree = case(seed, n, projective, bits=28)
    smaller, _, _ = case(seed, n, projective)
    other = smaller.argmax(x, np.random.default_rng(seed).normal(size=smaller.n_features))
    check_features(oracle, x[0], [tree, other])


def check_features(oracle, x, trees):
    found = [oracle.decoder(len(x)).features(x, one) for one in trees]
    assert [crossings for _, crossings in found] == [n_crossing(one[:, 0].tolist()) for one in trees]
    hashed = [Counter(features.tolist()) for features, _ in found]
    features = [enumerated(x, one) for one in trees]
    for a, of_a in zip(hashed, features):
        for b, of_b in zip(hashed, features):
            assert sum(a[at] * b[at] for at in a) == sum(of_a[one] * of_b[one] for one in of_a)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans(), st.booleans())
def test_no_other_arc_of_a_word_makes_the_tree_better(seed, n, projective, has_loss):
    """Scores from joint features: a change of one word's arc to another candidate."""
    oracle, x, start = case(seed, n, projective)
    w = np.random.default_rng(seed).normal(size=oracle.n_features).astype(np.float32)
    true = start if has_loss else None
    found = oracle.argmax(x, w, true, "margin" if has_loss else None)

    def score(tree):
        return oracle.joint_feature(x, tree) @ w + (oracle.loss(start, tree) if has_loss else 0.0)

    best = score(found)
    assert is_allowed(oracle, found) and best >= score(start) - 1e-3
    for m in range(n):
        for choice in choices(x[1], m):
            other = found.copy()
            other[m] = choice
            assert not is_allowed(oracle, other) or score(other) <= best + 1e-3


@pytest.mark.parametrize("projective", [True, False])
def test_the_search_mostly_finds_the_best_of_all(projective):
    """And another root, which takes two changes at a time."""
    n_best = n_roots = 0
    for seed in range(40):
        oracle, x, start = case(seed, 3, projective)
        w = 0.5 * np.random.default_rng(seed).normal(size=oracle.n_features)
        found = oracle.argmax(x, w)
        trees = (np.array(one, dtype=np.int32) for one in product(*(choices(x[1], m) for m in range(3))))
        scores = [oracle.joint_feature(x, tree) @ w for tree in trees if is_allowed(oracle, tree)]
        score = oracle.joint_feature(x, found) @ w
        assert score <= max(scores) + 1e-4
        n_best += score >= max(scores) - 1e-4
        n_roots += found[:, 0].tolist().index(0) != start[:, 0].tolist().index(0)
    assert n_best >= 28 and n_roots >= 3


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_constraints_are_differences_of_joint_features(seed, n, projective):
    oracle, x, start = case(seed, n, projective, bits=10)
    w = np.random.default_rng(seed).normal(size=oracle.n_features).astype(np.float32)
    problem = oracle.bind([x], [start])
    b, psi = problem.separate(0, w)
    found = problem.most_violated(0, w)
    assert b == oracle.loss(start, found)
    np.testing.assert_allclose(psi, oracle.joint_feature(x, start) - oracle.joint_feature(x, found), atol=1e-4)


def test_training_separates_what_candidates_allow():
    """The dual rises, all true trees are found again, and a resumed problem is the same."""
    made = [case(seed, 4, bits=14) for seed in range(12)]
    oracle, X = made[0][0], [x for _, x, _ in made]
    rng, Y = np.random.default_rng(0), []
    for x in X:
        trees = [np.array(one, dtype=np.int32) for one in product(*(choices(x[1], m)[:3] for m in range(4)))]
        trees = [made[len(Y)][2], *(tree for tree in trees if is_allowed(oracle, tree))]
        Y.append(trees[rng.integers(len(trees))])
    run = LaRank(C=1.0, max_iter=20, random_state=0).solve(oracle.bind(X, Y))
    result = run.result()
    assert result.inference == "approximate" and np.isnan(result.gap)
    right = [np.array_equal(oracle.argmax(x, run.weights), y) for x, y in zip(X, Y)]
    assert sum(right) >= 10
    duals = result.history["dual"]
    assert all(a <= b + 1e-9 for a, b in pairwise(duals)) and duals[-1] > 0.0


def test_the_protocol():
    made = [case(seed, n, bits=8) for seed, n in enumerate((3, 1, 4))]
    check_oracle(made[0][0], [x for _, x, _ in made], [tree for _, _, tree in made])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x.tag", "'x.tag' is no part of one of pairs"),
        ("g.label m.tag", "'g.label' is no part"),
        ("s+1.label", r"'s\+1.label' is no part"),
        ("m.lemma", "no column 'lemma'; there are word, tag"),
        ("dir dir2", "'dir2' is no part"),
        ("", "it sees nothing"),
    ],
)
def test_what_is_no_template(text, message):
    with pytest.raises(ValueError, match=message):
        PairTemplates(COLUMNS, [text])


def test_what_is_refused():
    oracle, (x, candidates), tree = case(0, 4)
    with pytest.raises(ValueError, match="The 'bits' parameter of PairOracle"):
        PairOracle(2, oracle.templates, projective=True, bits=29)
    with pytest.raises(ValueError, match="The 'n_labels' parameter of PairOracle"):
        PairOracle(0, oracle.templates, projective=True)
    with pytest.raises(ValueError, match="must be PairTemplates"):
        PairOracle(2, TEXTS, projective=True)
    with pytest.raises(ValueError, match=r"expected \(n_words, 2\)"):
        oracle.argmax((x[:, :1], candidates), np.zeros(oracle.n_features))
    with pytest.raises(ValueError, match="are not those of 3 words"):
        oracle.argmax((x[:3], candidates), np.zeros(oracle.n_features))
    with pytest.raises(ValueError, match="1 sentences, Y has 2"):
        oracle.bind([(x, candidates)], [tree, tree])
    other = tree.copy()
    other[:, 1] = 1 - other[:, 1]
    with pytest.raises(ValueError, match="sentence 0: the arc of word 1 is no candidate"):
        oracle.bind([case(0, 4, gap=0.0)[1]], [other])
    for name, value in (("head", 5), ("head", -1), ("head", 1), ("label", 2), ("score", np.nan)):
        arcs = candidates.arcs.copy()
        arcs[name][0, 1] = value
        with pytest.raises(ValueError, match="candidates must have heads and labels of the sentence"):
            oracle.argmax((x, TreeCandidates(candidates.trees, arcs, candidates.counts)), np.zeros(oracle.n_features))
    cycle = np.array([[2, 1, 1, 1], [0, 0, 0, 0]], dtype=np.int32)
    with pytest.raises(ValueError, match="is below itself"):
        oracle.argmax((x, TreeCandidates(cycle, candidates.arcs, candidates.counts)), np.zeros(oracle.n_features))
    assert candidates.arcs.dtype == ARC and candidates.arcs.shape == (4, CANDIDATES)
