"""Hybrid trees against the enumeration of all derivations: sums, the best, expectations, the k best meanings."""

import copy
import heapq
import itertools
import math
import pickle
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.oracles import hybrid as hybrid_trees
from structsvm.oracles._hybrid import Chart, Forest, Kind, Layout, Learner, Order
from structsvm.oracles.hybrid import HybridTrees, Lexicon, border_attributes, word_attributes
from structsvm.oracles.meanings.lexicon import BESIDE
from structsvm.structures.meaning_units import ROOT, MeaningUnits, similar_slots, wrappers
from structsvm.structures.meanings import MeaningGrammar, format_meaning, in_one_order, parse_meaning
from structsvm.testing import check_oracle

TREES = [
    [parse_meaning(text) for text in texts]
    for texts in (
        ["f(a)", "g(a,b)"],
        ["f(g(a,b))", "g(f(a),b)", "f(f(b))"],
        ["g(a,a)", "g(b,a)", "s()"],
        ["h(a,f(b),s())", "f(a)"],
        ["f(a)", "g(f(a,b))"],
        ["k(l('x y'))", "k(k(l('z')))", "k(m(l('x y'),b))"],
    )
]
# Arguments in any order.
LISTS = [parse_meaning(text) for text in ("and(f(a),g(b))", "and(g(b),f(a))", "and(f(a),g(b),h())", "h()")]


def trees_of(trees, words, depth=2, **options):
    units = MeaningUnits(trees)
    around = ["\x02", *words, "\x03"]
    attributes = sorted({f"w:{word}" for word in words})
    attributes += sorted({n for t in range(1, len(around) - 1) for n in word_attributes(around, t, attributes)})
    borders = sorted({n for pair in itertools.pairwise(around) for n in border_attributes(*pair)})
    leaves = [u for u, unit in enumerate(units.units) if unit.n_slots == 0]
    return HybridTrees(units, Lexicon(units, {}, leaves), list(dict.fromkeys(attributes)), borders, depth, **options)


def reference(hybrid, words, w):
    """``[(meaning, score, features)]`` of all derivations, from the definition, without a chart."""
    units, lay, n = hybrid.units, hybrid.layout, len(words)
    word_ptr, word_att, border_ptr, border_att = (array.tolist() for array in hybrid.encode(words))
    in_word = [word_att[a:b] for a, b in itertools.pairwise(word_ptr)]
    in_border = [border_att[a:b] for a, b in itertools.pairwise(border_ptr)]
    kinds, rows = [lay.rows[kind] for kind in units.kinds], hybrid.slot_rows
    lists = {u for u, unit in enumerate(units.units) if unit.name in hybrid.lists or hybrid._is_long[u]}

    def of_word(u, t):
        return [k for row in {u, units.kinds[u]} for k in hybrid.word_features(row, in_word[t]) if k >= 0]

    def of_presence(u):
        firsts = [of_one[0] for of_one in in_word if of_one and of_one[0] < lay.n_present]
        return [lay.present + kinds[u] * lay.n_present + a for a in firsts]

    def of_inside(u, i, j):
        firsts = [of_one[0] for of_one in in_word[i:j] if of_one and of_one[0] < lay.n_present]
        columns = [*firsts, *[lay.n_present] * (j - i)] if lay.n_inside else []
        return [lay.inside + kinds[u] * lay.n_inside + a for a in columns]

    def of_span(begin, end, row, i, j):
        borders = lay.n_borders
        return [begin + row * borders + a for a in in_border[i]] + [end + row * borders + a for a in in_border[j]]

    def empties(u, height):
        """Trees of unit u without words, ``(meaning, features)``."""
        slots = list(units.slots_of(u))
        if slots and height == 0:
            return
        for parts, features in choices([(s, None) for s in slots], height - 1):
            yield units.join(u, parts), [lay.empty + kinds[u], *features]

    def choices(slots, height):
        if not slots:
            yield [], []
            return
        slot = slots[0][0]
        for c in units.fillers.get(slot, ()):
            for part, features in empties(c, height):
                for rest, more in choices(slots[1:], height):
                    yield [part, *rest], [lay.pair + hybrid.pair(slot, c), *features, *more]

    memo = {}  # (u, i, j) -> (wordless units on top, meaning, features), by level

    def made(u, i, j):
        """Trees of unit u over [i, j), with the children known so far."""
        own = of_span(lay.begin, lay.end, kinds[u], i, j) + of_presence(u) + of_inside(u, i, j)
        slots = list(units.slots_of(u))
        # Children that have words, in which order, and where they begin and end.
        is_list = u in lists
        for order in orders(range(len(slots))):
            if is_list and order != (*range(len(slots) - len(order), len(slots)),):
                continue  # the last slots, from left to right
            silent = [s for a, s in enumerate(slots) if a not in order]
            for spans in placed(i, j, len(order)):
                covered = {t for a, b in spans for t in range(a, b)}
                words_of_own = [t for t in range(i, j) if t not in covered]
                whole = spans == [(i, j)]
                arranged = []
                for rank, a in enumerate(order):
                    filled = {*order[:rank], *[x for x in range(len(slots)) if x not in order]}
                    if rank:
                        is_after = not is_list and any(x > a for x in filled)
                        arranged.append(lay.order + 2 * rows[slots[a]] + is_after)
                base = own + arranged + [f for t in words_of_own for f in of_word(u, t)]
                if whole:
                    base.append(lay.wordless + kinds[u])
                for kids, more in filled_by([slots[a] for a in order], spans):
                    if whole and max((k for k, _ in kids), default=0) >= hybrid.depth:
                        continue
                    for rest, nothing in choices([(s, None) for s in silent], hybrid.depth):
                        part = dict(zip([slots[a] for a in order], [m for _, m in kids]))
                        part |= dict(zip(silent, rest))
                        level = kids[0][0] + 1 if whole else 0
                        yield level, units.join(u, [part[s] for s in slots]), base + more + nothing

    def filled_by(slots, spans):
        if not slots:
            yield [], []
            return
        slot, (i, j) = slots[0], spans[0]
        for c in units.fillers.get(slot, ()):
            for level, meaning, features in memo[c, i, j]:
                own = [*of_span(lay.slot_begin, lay.slot_end, rows[slot], i, j), lay.pair + hybrid.pair(slot, c)]
                for rest, more in filled_by(slots[1:], spans[1:]):
                    yield [(level, meaning), *rest], own + features + more

    # Units without words above one another over one span: level by level, from the smallest spans on.
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            memo |= {(u, i, j): [] for u in range(len(units.units))}
            for level in range(hybrid.depth + 1):
                new = [[d for d in made(u, i, j) if d[0] == level] for u in range(len(units.units))]
                for u, of_unit in enumerate(new):
                    memo[u, i, j] += of_unit
    out = []
    for u in units.fillers[ROOT]:
        for _, meaning, features in memo[u, 0, n]:
            features = [*features, lay.pair + hybrid.pair(ROOT, u)]
            out.append((meaning, float(sum(w[f] for f in features)), features))
    return out


def orders(items):
    """All sequences of distinct items."""
    yield ()
    for item in items:
        for rest in orders([x for x in items if x != item]):
            yield item, *rest


def placed(i, j, k):
    """All lists of k spans, each of a word or more, from left to right in [i, j)."""
    if k == 0:
        yield []
        return
    for a in range(i, j):
        for b in range(a + 1, j + 1):
            for rest in placed(b, j, k - 1):
                yield [(a, b), *rest]


def check_sums(hybrid, words, w, found):
    """The sum and the expectation over all derivations that were found; returns their scores and the sum."""
    scores = np.array([score for _, score, _ in found])
    log_sum = np.logaddexp.reduce(scores)
    value, expectation = hybrid.expect(words, w)
    assert value == pytest.approx(log_sum) == pytest.approx(hybrid.log_sum(words, w))
    wanted = np.zeros(hybrid.n_features)
    for (_, _, features), p in zip(found, np.exp(scores - log_sum), strict=True):
        np.add.at(wanted, features, p)
    np.testing.assert_allclose(expectation, wanted, atol=1e-9)
    return scores, log_sum


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(TREES), st.lists(st.sampled_from("pqx"), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_all_derivations(trees, words, seed):
    inside = seed % 3 == 0
    hybrid = trees_of(trees, words, depth=1 + seed % 2, inside=inside)
    if hybrid.log_sum(words, np.zeros(hybrid.n_features)) > math.log(1500):
        hybrid = trees_of(trees, words[:1], depth=1, inside=inside)
        words = words[:1]
    w = np.random.default_rng(seed).normal(size=hybrid.n_features)
    found = reference(hybrid, words, w)
    if not found:
        assert hybrid.log_sum(words, w) == -math.inf and hybrid.argmax(words, w) is None
        return
    scores, log_sum = check_sums(hybrid, words, w, found)
    best = hybrid.argmax(words, w)
    assert best.score == pytest.approx(scores.max())
    assert max(score for meaning, score, _ in found if meaning == best.meaning) == pytest.approx(scores.max())
    # One meaning, two, and the best meanings in order.
    by_meaning = defaultdict(list)
    for meaning, score, _ in found:
        by_meaning[meaning].append(score)
    for meaning in list(by_meaning)[:5]:
        assert hybrid.log_sum(words, w, [meaning]) == pytest.approx(np.logaddexp.reduce(by_meaning[meaning]))
        assert hybrid.complete(words, [meaning], w).score == pytest.approx(max(by_meaning[meaning]))
    bag = list(by_meaning)[:2]
    both = [score for meaning in bag for score in by_meaning[meaning]]
    assert hybrid.log_sum(words, w, bag) == pytest.approx(np.logaddexp.reduce(both))
    assert hybrid.expect(words, w, bag)[0] == pytest.approx(np.logaddexp.reduce(both))
    assert hybrid.complete(words, bag, w).meaning in bag
    kbest = hybrid.kbest(words, w, 3)
    ranked = sorted(map(max, by_meaning.values()), reverse=True)[:3]
    assert len({d.meaning for d, _ in kbest}) == len(kbest)
    np.testing.assert_allclose(sorted([d.score for d, _ in kbest], reverse=True), ranked)
    for derivation, p in kbest:
        assert derivation.score == pytest.approx(max(by_meaning[derivation.meaning]))
        assert p == pytest.approx(np.exp(np.logaddexp.reduce(by_meaning[derivation.meaning]) - log_sum))


@pytest.mark.parametrize("seed", range(4))
def test_arguments_of_lists_in_any_order_are_one_meaning(seed):
    """All derivations of lists, whose slots are filled from left to right; two orders of one are as probable."""
    words = ["p", "q", "x"][: 2 + seed % 2]
    hybrid = trees_of(LISTS, words, depth=1)
    assert hybrid.lists == {"and"}
    w = np.random.default_rng(seed).normal(size=hybrid.n_features)
    w[hybrid.layout.empty : hybrid.layout.order] = -30.0  # with several arguments without words all their orders count
    found = reference(hybrid, words, w)
    check_sums(hybrid, words, w, found)
    by_meaning = defaultdict(list)
    for meaning, score, _ in found:
        by_meaning[in_one_order(meaning, {"and"})].append(score)
    for tree in LISTS:
        of_one = np.logaddexp.reduce(by_meaning[in_one_order(tree, {"and"})])
        assert hybrid.log_sum(words, w, [tree]) == pytest.approx(of_one, abs=1e-6)
        y = hybrid.complete(words, [tree], w)
        assert y.score == pytest.approx(max(by_meaning[in_one_order(tree, {"and"})]))
        assert w[y.features[0]] @ y.features[1] == pytest.approx(y.score)
    best = hybrid.kbest(words, w, 4)
    meanings = [in_one_order(d.meaning, {"and"}) for d, _ in best]
    assert len({*meanings}) == len(meanings) == 4
    parses = all_parses(hybrid, words, w)
    assert Counter((y.meaning, tuple(spelt_out(y))) for y in parses) == Counter(
        (meaning, tuple(sorted(features))) for meaning, _, features in found
    )


@pytest.mark.parametrize("trees", [TREES[0], TREES[2], TREES[3], LISTS], ids=["names", "equal", "three", "list"])
def test_many_arguments_are_filled_from_left_to_right(trees, monkeypatch):
    """All derivations where two arguments are too many for any order, as nine are."""
    monkeypatch.setattr(hybrid_trees, "MOST_IN_ANY_ORDER", 1)
    words = ["p", "q", "x"] if trees is TREES[0] else ["p", "q"]
    hybrid = trees_of(trees, words, depth=1)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    check_sums(hybrid, words, w, found := reference(hybrid, words, w))
    by_meaning = defaultdict(list)
    for meaning, score, _ in found:
        by_meaning[meaning].append(score)
    for meaning, scores in by_meaning.items():
        assert hybrid.log_sum(words, w, [meaning]) == pytest.approx(np.logaddexp.reduce(scores))
        y = hybrid.complete(words, [meaning], w)
        assert y.score == pytest.approx(max(scores)) == pytest.approx(w[y.features[0]] @ y.features[1])
    parses = all_parses(hybrid, words, w)
    assert Counter((y.meaning, tuple(spelt_out(y))) for y in parses) == Counter(
        (meaning, tuple(sorted(features))) for meaning, _, features in found
    )


def all_parses(hybrid, words, w):
    encoded, forest = hybrid.encode(words), hybrid.meant(words)
    return [hybrid._parse(encoded, forest, *found) for found in hybrid._search(encoded, forest, [], w)]


def spelt_out(y):
    """The features of a derivation, each as often as it has it."""
    indices, counts = y.features
    return np.repeat(indices, counts.astype(int)).tolist()


@pytest.mark.parametrize("loss", ["hamming", "f1"])
@pytest.mark.parametrize("trees", [TREES[0], TREES[2], TREES[3]], ids=["names", "equal", "three"])
def test_joint_features_and_the_loss_inside_inference(trees, loss):
    """Against all derivations of the reference, and all of their losses."""
    words = ["p", "x"] if trees is TREES[0] else ["p"]
    hybrid = trees_of(trees, words, inside=True, loss=loss)
    rng = np.random.default_rng(0)
    w = rng.normal(size=hybrid.n_features)
    parses = all_parses(hybrid, words, w)
    wanted = Counter((meaning, tuple(sorted(features))) for meaning, _, features in reference(hybrid, words, w))
    assert Counter((y.meaning, tuple(spelt_out(y))) for y in parses) == wanted
    for y_true in parses[:: max(len(parses) // 4, 1)]:
        losses = np.array([hybrid.loss(y_true, y) for y in parses])
        same = np.array([spelt_out(y) == spelt_out(y_true) for y in parses])
        assert (losses[same] == 0.0).all() and (losses[[y.meaning != y_true.meaning for y in parses]] > 0.0).all()
        best = hybrid.argmax(words, w, y_true, "margin")
        scores = np.array([w[y.features[0]] @ y.features[1] for y in (*parses, best)])
        assert best.score == pytest.approx(max((scores[:-1] + losses)[same | (losses > 0.0)]))
        assert scores[-1] + hybrid.loss(y_true, best) == pytest.approx(best.score)
    # Where a unit comes twice, another arrangement may have no loss, and other features.
    alone = [y for y in parses if all(hybrid.loss(y, z) > 0.0 or spelt_out(z) == spelt_out(y) for z in parses)]
    check_oracle(hybrid, [words] * 2, alone[:2])


class Cleared(dict):
    """Forests that another thread clears whenever they have been looked at."""

    def __contains__(self, key):
        found = super().__contains__(key)
        self.clear()
        return found

    def get(self, key, default=None):
        found = super().get(key, default)
        self.clear()
        return found


def test_forests_that_another_thread_clears_are_made_again():
    hybrid = trees_of(TREES[0], ["p", "x"])
    hybrid._free = Cleared()
    leaves = hybrid.lexicon.called(["p"])
    first = hybrid.free(leaves)
    assert hybrid.free(leaves) is first and hybrid.free(leaves) is not first
    np.testing.assert_array_equal(hybrid.free(leaves).fill, first.fill)


def test_the_loss_counts_units_in_their_places_and_words_of_others():
    hybrid = trees_of(TREES[0], ["p", "x"])
    of_a, of_g = (hybrid.complete(["p", "x"], [tree], np.zeros(hybrid.n_features)) for tree in TREES[0])
    assert [len(y.fillings) for y in (of_a, of_g)] == [2, 3]  # f(a), g(a,b)
    others = sum(a != b for a, b in zip(of_a.owners, of_g.owners, strict=True))
    assert hybrid.loss(of_a, of_g) == 3 + others / 3  # a is no argument of g there
    assert hybrid.loss(of_g, of_a) == 2 + others / 3
    assert hybrid.loss(of_a, of_a._replace(owners=of_a.owners[::-1])) in (0.0, 2 / 3)


def test_the_f1_loss_counts_units():
    hybrid = trees_of(TREES[0], ["p", "x"], loss="f1")
    of_a, of_g = (hybrid.complete(["p", "x"], [tree], np.zeros(hybrid.n_features)) for tree in TREES[0])
    others = sum(a != b for a, b in zip(of_a.owners, of_g.owners, strict=True))
    assert hybrid.loss(of_a, of_g) == pytest.approx(1.0 + others / 12) and hybrid.loss(of_a, of_a) == 0.0
    half = of_a._replace(fillings=[of_a.fillings[0], *of_g.fillings])
    assert hybrid.loss(of_a, half) == pytest.approx(1 - 2 / 6)
    # A unit there once, there three times.
    assert hybrid.loss(of_a, of_a._replace(fillings=of_a.fillings * 3)) == pytest.approx(1 - 4 / 8)
    assert pickle.loads(pickle.dumps(hybrid)).loss_name == "f1"


@pytest.mark.parametrize(("k", "n"), [(0, 2), (1, 1), (2, 3), (3, 2)])
def test_the_f1_loss_leaves_nothing_out(k, n):
    """Scores of all sizes: the parts that are left out are none of the best, wherever y_true stands."""
    words = ["p", "q", "x"][:n]
    hybrid = trees_of(TREES[k], words, depth=1, loss="f1")
    parses = all_parses(hybrid, words, np.zeros(hybrid.n_features))
    for seed in (*range(40), 288, 450):
        rng = np.random.default_rng(seed)
        w = rng.normal(scale=rng.choice([0.1, 0.3, 1.0, 3.0]), size=hybrid.n_features)
        y_true = parses[rng.integers(len(parses))]
        losses = [hybrid.loss(y_true, y) for y in parses]
        totals = [w[y.features[0]] @ y.features[1] + loss for y, loss in zip(parses, losses, strict=True)]
        wanted = max(t for t, y, loss in zip(totals, parses, losses, strict=True) if y is y_true or loss > 0.0)
        found = hybrid.argmax(words, w, y_true, "margin")
        assert found is y_true or hybrid.loss(y_true, found) > 0.0
        assert w[found.features[0]] @ found.features[1] + hybrid.loss(y_true, found) == pytest.approx(wanted)


def test_an_arrangement_without_a_loss_bounds_no_other():
    """f(f(b)) without a word for the outer f is by far the best, and no output; f(f(f(b))) is, and far from it."""
    tree = parse_meaning("f(f(b))")
    hybrid = trees_of([tree], ["p"], depth=1, loss="f1")
    f = hybrid.units.number[hybrid.units.split(tree)[0]]
    lay = hybrid.layout
    wordless, pair = lay.wordless + lay.rows[f], lay.pair + hybrid.pair(hybrid.units.slots_of(f)[0], f)
    w = np.zeros(hybrid.n_features)
    w[wordless] = -1.0
    y_true = hybrid.complete(["p"], [tree], w)
    w[hybrid.layout.pair :][: hybrid.layout.n_pairs] = -9.0
    for slot, unit in y_true.fillings:
        w[hybrid.layout.pair + hybrid.pair(slot, unit)] = 0.0
    w[wordless], w[pair] = 9.0, -3.0
    w[: hybrid.layout.begin] = w[hybrid.layout.name :] = -9.0  # the words of all but f
    w[hybrid.word_features(f, [*hybrid.attributes.values()])] = 0.0
    best, found = hybrid.argmax(["p"], w), hybrid.argmax(["p"], w, y_true)
    assert best.score == 6.0 and best.meaning == y_true.meaning and hybrid.loss(y_true, best) == 0.0
    assert found.score > 3.0 and format_meaning(found.meaning) == "f(f(f(b)))"


@pytest.mark.parametrize("loss", ["hamming", "f1"])
def test_where_a_unit_comes_twice_another_arrangement_has_no_loss(loss):
    """f(f(b)) and f(f(f(b))) fill the same slots with the same: it is the one or what has a loss that comes out."""
    words = ["p"]
    hybrid = trees_of(TREES[1], words, loss=loss)
    w = np.zeros(hybrid.n_features)
    f = next(u for u, unit in enumerate(hybrid.units.units) if unit.name == "f")
    w[hybrid.layout.pair + hybrid.pair(hybrid.units.slots_of(f)[0], f)] = 9.0
    y_true = hybrid.complete(words, [parse_meaning("f(f(b))")], w)
    longer = hybrid.argmax(words, w)
    assert format_meaning(longer.meaning).startswith("f(f(f(") and len(longer.fillings) > len(y_true.fillings)
    b, psi = hybrid.bind([words], [y_true]).separate(0, w)  # it refuses another output without a loss
    assert b > 0.0 and psi.any()


@pytest.mark.parametrize("trees", [TREES[0], *TREES[2:]], ids=range(len(TREES) - 1))
def test_derivations_come_in_order_and_all(trees):
    words = ["p", "x"]
    hybrid = trees_of(trees, words)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    found = list(hybrid.derivations(words, w))
    scores = [d.score for d in found]
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(scores, sorted([score for _, score, _ in reference(hybrid, words, w)], reverse=True))
    for derivation in found:
        covered = sorted(t for _, _, own in derivation.nodes for t in own)
        assert covered == [0, 1]  # each word belongs to one unit


def test_expectations_are_derivatives():
    words = ["p", "q", "x", "y", "p"]
    hybrid = trees_of(TREES[3], words, depth=3)
    rng = np.random.default_rng(0)
    w = rng.normal(size=hybrid.n_features)
    _, expectation = hybrid.expect(words, w)
    for _ in range(20):
        step = rng.normal(size=len(w))
        up, down = (hybrid.log_sum(words, w + sign * 1e-5 * step) for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(expectation @ step, abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(TREES), st.integers(4, 9), st.integers(0, 2**32 - 1))
def test_longer_sentences(trees, n, seed):
    """Spans of several vectors: the sum of a bag of all meanings is that of all; sums and their derivatives agree."""
    rng = np.random.default_rng(seed)
    words = [str(word) for word in rng.choice(["p", "q", "x"], n)]
    hybrid = trees_of(trees, words, depth=2)
    w = rng.normal(size=hybrid.n_features)
    value, expectation = hybrid.expect(words, w)
    step = rng.normal(size=len(w))
    up, down = (hybrid.log_sum(words, w + sign * 1e-5 * step) for sign in (1, -1))
    assert (up - down) / 2e-5 == pytest.approx(expectation @ step, abs=1e-5)
    best = hybrid.argmax(words, w)
    assert best.score - 1e-9 <= hybrid.log_sum(words, w, [best.meaning]) <= value + 1e-9
    assert hybrid.complete(words, [best.meaning], w).score == pytest.approx(best.score)


def test_what_is_pickled():
    words = ["p", "q", "x"]
    hybrid = trees_of(TREES[1], words)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    forest = hybrid.known(TREES[1])
    sentence = hybrid.encode(words)
    wanted = hybrid.sums.log_sum(sentence, forest, w)
    for chart in (pickle.loads(pickle.dumps(hybrid.sums)), copy.deepcopy(hybrid.sums)):
        assert chart.log_sum(sentence, pickle.loads(pickle.dumps(forest)), w) == wanted
    assert pickle.loads(pickle.dumps(hybrid)).log_sum(words, w) == hybrid.log_sum(words, w)
    learners = [Learner(w.copy(), 0.01, np.ones(len(w)))]
    free = hybrid.free(hybrid.lexicon.called(words))
    hybrid.sums.learn(sentence, forest, free, learners[0], 0.5)
    learners.append(pickle.loads(pickle.dumps(learners[0])))
    for learner in learners:
        hybrid.sums.learn(sentence, forest, free, learner, 0.5)
    np.testing.assert_array_equal(learners[0].weights, learners[1].weights)
    np.testing.assert_array_equal(learners[0].average, learners[1].average)


def test_copies_cover_their_words():
    """A copied name says its words and no others: against all derivations of the trees with the name among them."""
    trees = [parse_meaning(f"f(k('{c}'))") for c in "abc"] + [parse_meaning("g(f(k('a')))")]
    units = MeaningUnits(trees)
    kind = next(kind for u, kind in enumerate(units.kinds) if kind != u)
    attributes = ["w:p", "w:\x04", "l:p z"]
    hybrid = HybridTrees(units, Lexicon(units, {}, [], [kind]), attributes, ["l:p", "r:z"], 2)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    words = ["p", "z", "p"]
    copies = hybrid.copies(words)
    assert {copy.tree[1]: copy[2:] for copy in copies} == {"'z'": (1, 2), "'p z'": (0, 2), "'z p'": (1, 3)}
    found = list(hybrid.derivations(words, w))
    scores = np.array([d.score for d in found])
    value, expectation = hybrid.expect(words, w)
    assert value == pytest.approx(np.logaddexp.reduce(scores)) and (np.diff(scores) <= 1e-12).all()
    for derivation in found:
        (name, _, own) = (
            derivation.nodes[-1] if len(derivation.nodes) < 3 else max(derivation.nodes, key=lambda x: x[1])
        )
        assert name == f"k('{' '.join(words[t] for t in own)}')"  # no known name is called
        of_one = hybrid.log_sum(words, w, [derivation.meaning])
        alike = [d.score for d in found if d.meaning == derivation.meaning]
        assert of_one == pytest.approx(np.logaddexp.reduce(alike))
        assert hybrid.complete(words, [derivation.meaning], w).score == pytest.approx(max(alike))
    step = np.random.default_rng(1).normal(size=len(w))
    up, down = (hybrid.log_sum(words, w + sign * 1e-5 * step) for sign in (1, -1))
    assert (up - down) / 2e-5 == pytest.approx(expectation @ step, abs=1e-6)


def test_the_average_counts_later_iterates_more():
    words = ["p", "q"]
    hybrid = trees_of(TREES[0], words)
    sentence, free = hybrid.encode(words), hybrid.free(hybrid.lexicon.called(words))
    learner = Learner(np.zeros(hybrid.n_features), 0.01, np.ones(hybrid.n_features))
    iterates = []
    for k in range(4):
        hybrid.sums.learn(sentence, hybrid.known(TREES[0][k % 2 : k % 2 + 1]), free, learner, 0.5)
        iterates.append(learner.weights.copy())
    np.testing.assert_allclose(learner.average, np.average(iterates, axis=0, weights=[1, 2, 3, 4]), atol=1e-12)


def test_doubt_is_in_the_objective():
    """The squares that a first step keeps are those of the derivatives of log(p + doubt)."""
    words, doubt = ["p", "q"], 0.3
    hybrid = trees_of(TREES[0], words)
    forests = hybrid.known(TREES[0][:1]), hybrid.meant(words)
    w, step = np.random.default_rng(0).normal(size=(2, hybrid.n_features))

    def value(weights):
        return np.log(doubt + np.exp(hybrid.log_sum(words, weights, TREES[0][:1]) - hybrid.log_sum(words, weights)))

    learner = Learner(w.copy(), 0.0, np.ones(len(w)))
    log_p = hybrid.sums.learn(hybrid.encode(words), *forests, learner, 0.5, 1.0, doubt)
    assert np.exp(log_p) + doubt == pytest.approx(np.exp(value(w)))
    moved = learner.weights - w
    gradient = np.sign(moved) * np.sqrt(learner.squares)
    assert gradient @ step == pytest.approx((value(w + 1e-5 * step) - value(w - 1e-5 * step)) / 2e-5, abs=1e-6)


def test_large_weights_do_not_overflow():
    words = ["p", "q"] * 20
    hybrid = trees_of(TREES[1], words)
    w = 200.0 * np.ones(hybrid.n_features)
    w[hybrid.layout.begin : hybrid.layout.name] = 0.0
    assert np.isfinite(hybrid.log_sum(words, w))
    assert hybrid.argmax(words, w).score > 40 * 200.0


def test_a_sentence_without_words_has_no_meaning():
    hybrid = trees_of(TREES[0], ["p"])
    assert hybrid.argmax([], np.zeros(hybrid.n_features)) is None
    assert hybrid.kbest([], np.zeros(hybrid.n_features), 2) == []


def test_meanings_whose_slots_take_constants_from_elsewhere_have_probabilities():
    """``call(size,n0)`` reads as a leaf, which is none: a slot has taken the constant that another one takes."""
    names = [f"n{k}" for k in range(10)]
    terms = [f"{of}({name})" for name in names for of in ("set", "g")]
    texts = [f"call(size,{term})" for term in terms] + [f"h({term})" for term in [*terms, "n0", "n1"]]
    hybrid = trees_of([*map(parse_meaning, texts)], ["p", "q"], depth=1)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    words = ["p", "q"]
    total: dict = defaultdict(float)
    for derivation in hybrid.derivations(words, w, most=100_000):
        total[derivation.meaning] += math.exp(derivation.score - hybrid.log_sum(words, w))
    assert ("call", "size", "n0") in total and sum(total.values()) == pytest.approx(1.0)
    found = {derivation.meaning: p for derivation, p in hybrid.kbest(words, w, 1000)}
    assert found[("call", "size", "n0")] == pytest.approx(total[("call", "size", "n0")])
    assert all(p == pytest.approx(total[meaning]) for meaning, p in found.items())
    with pytest.raises(KeyError, match="unknown"):
        hybrid.log_sum(words, w, [parse_meaning("call(size,unknown)")])


def test_what_is_refused():
    with pytest.raises(ValueError, match="a unit has 9 arguments, more than 8"):
        Forest([0], [0], [[(s, []) for s in range(9)]], [(0, 0)])
    with pytest.raises(ValueError, match="a unit has 31 arguments, more than 30"):
        Forest([0], [0], [[(s, []) for s in range(31)]], [(0, 0)], lists=[Order.IN_ORDER])
    hybrid = trees_of(TREES[0], ["p"])
    with pytest.raises(KeyError):
        hybrid.log_sum(["p"], np.zeros(hybrid.n_features), [parse_meaning("unknown(a)")])
    assert isinstance(hybrid.chart, Chart) and isinstance(hybrid.layout, Layout)


def test_what_would_take_too_much_memory_is_refused(monkeypatch):
    hybrid = trees_of(TREES[0], ["p"])
    w = np.zeros(hybrid.n_features)
    with pytest.raises(
        ValueError, match=r"a sentence of 5000 words, of \d units, needs a chart of [\d.]+ GB, more than 4"
    ):
        hybrid.log_sum(["p"] * 5000, w)
    assert hybrid.log_sum(["p"], w) > -np.inf
    monkeypatch.setattr("structsvm.oracles.hybrid.MOST_FEATURES", hybrid.n_features - 1)
    with pytest.raises(ValueError, match=r"features are more than \d+: too many units or words"):
        copy.deepcopy(hybrid)


def test_meanings_are_no_deeper_than_text_may_be():
    hybrid = trees_of([parse_meaning("f(f(a))")], ["p"])
    w = np.zeros(hybrid.n_features)
    w[hybrid.layout.pair + hybrid.pair(0, 1)] = -50.0  # a relation to each word, one below the other
    w[hybrid.layout.wordless :][: hybrid.layout.n_rows] = -50.0
    w[hybrid.layout.slot_begin : hybrid.layout.wordless] = 1.0
    for n, found in (40, 2), (130, 0):
        meanings = [derivation.meaning for derivation, _ in hybrid.kbest(["p"] * n, w, 2)]
        assert len(meanings) == found and all(parse_meaning(format_meaning(m)) == m for m in meanings)


def test_items_without_a_way_to_make_them_end_a_search():
    """As where numbers are so small that a product is 0 in one order, and not in another."""
    hybrid = trees_of(TREES[0], ["p", "q"])
    chart, w = hybrid.chart, np.zeros(hybrid.n_features)
    every = list(hybrid.derivations(["p", "q"], w))

    def edges(kind, u, *item):
        return [] if (kind, u) == (Kind.NODE, 0) else chart.edges(kind, u, *item)

    hybrid._charts.searches = SimpleNamespace(log_sum=chart.log_sum, edges=edges)
    rest = list(hybrid.derivations(["p", "q"], w))
    name = hybrid.units.units[0].name
    assert 0 < len(rest) < len(every) and not any(node[0] == name for d in rest for node in d.nodes)


@pytest.mark.parametrize("value", [1e308, -1e308, np.nan])
def test_scores_that_overflow_leave_no_derivation(value):
    hybrid = trees_of(TREES[0], ["p", "q"])
    w = np.full(hybrid.n_features, value)
    with pytest.raises(ValueError, match="none of its meanings has a derivation over the sentence, or scores overflow"):
        hybrid.complete(["p", "q"], [TREES[0][0]], w)
    assert hybrid.argmax(["p", "q"], w) is None


# ---- units -------------------------------------------------------------------------------------


def test_names_and_their_kinds():
    trees = [parse_meaning(f"answer(city(loc(stateid('{name}'))))") for name in ("new york", "ohio", "iowa")]
    trees += [parse_meaning(f"answer(size(stateid('{name}')))") for name in ("new york", "ohio", "utah")]
    trees += [parse_meaning("answer(city(all))"), parse_meaning("answer(size(city(all)))")]
    assert wrappers(trees) == {"stateid"}
    units = MeaningUnits(trees)
    names = {u: unit for u, unit in enumerate(units.units) if unit.name.startswith("stateid")}
    assert len({units.kinds[u] for u in names}) == 1 and all(unit.n_slots == 0 for unit in names.values())
    slot = next(s for s, (u, _) in enumerate(units.slots) if units.units[u].name == "loc")
    assert set(names) <= set(units.fillers[slot])  # 'utah' was seen in size() only
    for tree in trees:
        unit, parts = units.split(tree)
        assert units.join(units.number[unit], parts) == tree
    grammar = MeaningGrammar(
        "Q -> answer ( @C )\nC -> city ( @C )\nC -> loc ( @S )\nS -> stateid ( @N )\nC -> city ( all )\n"
        "C -> size ( @S )\n" + "\n".join(f"N -> ' {n} '" for n in ("new york", "ohio", "iowa", "utah", "maine"))
    )
    assert "stateid('maine')" in [unit.name for unit in MeaningUnits(trees, grammar).units]


@given(st.dictionaries(st.integers(0, 9), st.frozensets(st.integers(0, 6))))
def test_similar_slots(taken):
    def similar(units, other):
        shared = len(units & other)
        return shared >= 2 and 2 * shared >= min(len(units), len(other))

    expected = {slot: {o for o in taken if similar(taken[slot], taken[o])} for slot in taken}
    assert {slot: set(others) for slot, others in similar_slots(taken).items()} == expected


def test_equal_arguments_share_a_slot():
    units = MeaningUnits([parse_meaning("f(a,g(b,b),a)")])
    assert {unit.name: unit.places for unit in units.units} == {"f": (0, 1, 0), "g": (0, 0), "a": None, "b": None}


def test_what_a_lexicon_calls():
    trees = [parse_meaning(f"go('{name}')") for name in ("san diego", "rome", "oslo")]
    units = MeaningUnits(trees)
    sentences = [["to", "san", "diego"], ["to", "rome"], ["up", "north"]]
    bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    lexicon = Lexicon.learn(units, sentences, bags)
    called = {units.units[u].name for u in lexicon.called(["north", "San-Diego".lower()])}
    assert {"'san diego'", "'oslo'"} <= called and "'rome'" not in called


def test_two_words_call_a_leaf_that_neither_calls():
    """As "twenty first" does 21 where "twenty" and "first" are in many other dates."""
    sentences = [["twenty", f"x{k}"] if k % 2 else [f"x{k}", "first"] for k in range(120)]
    names = [f"a{k}" for k in range(120)]
    sentences += [["twenty", "first"], ["twenty", "first"], ["first", "once"]]
    trees = [parse_meaning(f"on({name})") for name in [*names, "d21", "d21", "a0"]]
    units = MeaningUnits(trees)
    bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    lexicon = Lexicon.learn(units, sentences, bags)
    leaf = next(u for u, unit in enumerate(units.units) if unit.name == "d21")
    pair = f"twenty{BESIDE}first"
    assert [word for word, leaves in lexicon.calls.items() if leaf in leaves] == [pair]
    assert [word for word in lexicon.calls if BESIDE in word] == [pair]  # pairs that come once call nothing
    assert leaf in lexicon.called(["the", "twenty", "first"])
    assert leaf not in lexicon.called(["first", "twenty"]) | lexicon.called(["twenty"]) | lexicon.called(["first", "x"])
    assert leaf not in lexicon.called(["twenty first"])  # a token of its own


def test_a_word_with_a_blank_calls_other_leaves_than_two_words():
    sentences = [["new york"]] * 2 + [["new", f"x{k}"] for k in range(99)] + [["york", f"z{k}"] for k in range(99)]
    trees = [parse_meaning(f"on({name})") for name in ["a7", "a7", *(f"b{k}" for k in range(198)), "c1", "c1"]]
    units = MeaningUnits(trees)
    bags = [dict.fromkeys(units.unit_ids(tree), 1.0) for tree in trees]
    lexicon = Lexicon.learn(units, [*sentences, *[["new", "york"]] * 2], bags)
    leaf = {unit.name: u for u, unit in enumerate(units.units)}
    assert lexicon.called(["new york"]) & {leaf["a7"], leaf["c1"]} == {leaf["a7"]}
    assert lexicon.called(["new", "york"]) & {leaf["a7"], leaf["c1"]} == {leaf["c1"]}


def test_words_that_names_are_written_with():
    units = MeaningUnits([parse_meaning(f"go('{name}')") for name in ("san diego", "rome", "purple9")])
    lexicon = Lexicon(units, {}, [])
    leaves = {unit.name: u for u, unit in enumerate(units.units)}
    spelt = lexicon.spelt([["to", "san", "-", "diego", "?"], ["Purple".lower(), "9", "!"], ["x"]])
    assert spelt == {leaves["'san diego'"]: {"san", "diego"}, leaves["'purple9'"]: {"purple", "9"}}


def test_priors_are_added_to_the_scores_of_meanings():
    words = ["p", "q", "x"]
    hybrid = trees_of(TREES[1], words)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    sentence, priors = hybrid.encode(words), dict(zip(TREES[1], [-1.0, 0.5, 0.0], strict=True))
    with_priors = hybrid.known(TREES[1], (), priors)
    wanted = [hybrid.log_sum(words, w, [tree]) + priors[tree] for tree in TREES[1]]
    for forest in (with_priors, pickle.loads(pickle.dumps(with_priors))):
        assert hybrid.sums.log_sum(sentence, forest, w) == pytest.approx(np.logaddexp.reduce(wanted))
    # The joint feature, too.
    parts = [hybrid.expect(words, w, [tree])[1] for tree in TREES[1]]
    shares = np.exp(np.array(wanted) - np.logaddexp.reduce(wanted))
    np.testing.assert_allclose(hybrid.sums.expect(sentence, with_priors, w)[1], shares @ parts, atol=1e-12)


def test_a_meaning_of_many_derivations_is_not_looked_for_for_ever(monkeypatch):
    """Where one meaning is all there is, a second one is not found by walking through its derivations."""
    words = [*"abcdefgh"]
    trees = trees_of([parse_meaning("r(p(u),q(v,w))")], words)
    taken = 0
    pop = heapq.heappop

    def counted(agenda):
        nonlocal taken
        taken += 1
        return pop(agenda)

    monkeypatch.setattr(heapq, "heappop", counted)
    w = np.zeros(trees.n_features)
    assert len(trees.kbest(words, w, 3, most=50)) == 1 and taken == 500
    assert len([*trees.derivations(words, w, most=50)]) == 500


def test_a_search_ends_at_what_is_unlikely():
    """Once k meanings are found, none is tried whose best derivation is worth a hundredth of theirs, or less."""
    units = MeaningUnits([parse_meaning(f"f({c})") for c in "abcd"])
    trees = HybridTrees(units, Lexicon(units, {}, range(5)), ["w:x"], [])
    w, tried = np.zeros(trees.n_features), []
    for name, score in {"a": 20.0, "b": 9.0, "c": 5.0, "d": 0.0}.items():
        w[trees.word_features(units.number[units.split(name)[0]], 0)] = score

    def accepts(meaning):
        tried.append(meaning[1])
        return meaning[1] != "a"

    found = {k: [m.meaning[1] for m, _ in trees.kbest(["x"], w, k, considered=3, accepts=accepts)] for k in (1, 2)}
    assert found == {1: ["b"], 2: ["b", "c"]}
    assert tried == [*"abc", *"abc"]


def test_names_of_too_many_kinds(monkeypatch):
    units = MeaningUnits([parse_meaning(f"r{k}(a{k})") for k in range(5)])
    assert len(units.members) == 5
    monkeypatch.setattr("structsvm.oracles.meanings.lexicon.MOST_KINDS", 4)
    Lexicon(units, {}, [], [*units.members][:4], {("x",): "a0"})
    with pytest.raises(ValueError, match="names of 5 kinds may be new, more than 4"):
        Lexicon(units, {}, [], units.members)
    with pytest.raises(ValueError, match=r"for 'x', which is like names of 5 kinds, more than 4"):
        Lexicon(units, {}, [], [], {("x",): "b"})


def test_phrases_of_a_lexicon():
    """A new name is a copy that covers the phrase; a known one is called; words of phrases have an attribute."""
    units = MeaningUnits([parse_meaning(f"f(k('{c}'))") for c in "abc"])
    phrases = {("big", "p"): parse_meaning("k('new')"), ("q",): parse_meaning("k('a')")}
    lexicon = Lexicon(units, {}, [], (), phrases)
    (a,), (kind,) = lexicon.called(["q"]), lexicon.kinds_of_phrases
    assert lexicon.listed == {"g:k": [kind], "g:=k('a')": [a]} and units.kinds[a] == kind
    attributes = ["w:p", "w:q", "w:big", "w:\x04", "g:k", "g:=k('a')"]
    hybrid = HybridTrees(units, lexicon, attributes, [], 2)
    words = ["p", "big", "p"]
    assert [copy[1:] for copy in hybrid.copies(words)] == [(kind, 1, 3)] and not lexicon.called(words)
    ptr, values, *_ = hybrid.encode(words)
    assert [4 in values[a:b] for a, b in itertools.pairwise(ptr)] == [False, True, True] and 5 not in values
    assert {4, 5} <= {*hybrid.encode(["q"])[1].tolist()}
    found = {format_meaning(d.meaning) for d in hybrid.derivations(words, np.zeros(hybrid.n_features))}
    assert found == {"f(k('new'))"}
    assert pickle.loads(pickle.dumps(hybrid)).copies(words) == hybrid.copies(words)
    for text in ("other('a')", "f(k('a'))", "bare"):
        with pytest.raises(ValueError, match=r"the lexicon says .* for 'x', which is like no name in the meanings"):
            Lexicon(units, {}, [], (), {("x",): parse_meaning(text)})


# Arguments in any order: equal ones in slots of their own, and in one; and a form with a constant.
REPEATED = [*LISTS[:3], parse_meaning("and(f(a),f(b))")]
SHARING = [*REPEATED, parse_meaning("k(and(f(a),f(a)))"), parse_meaning("k(h())")]
CONSTANT = [
    parse_meaning(text)
    for a, b in itertools.permutations("abcde", 2)
    for text in (f"and(f({a}),g({b}))", f"and(g({b}),f({a}))", f"and(c(x),g({b}),f({a}))", f"and(f({a}),c(x))")
]


def log_orders(hybrid, nodes):
    """The log of in how many orders a derivation's lists have arguments without words, which have none."""
    total = 0.0
    for k, (name, depth, _) in enumerate(nodes):
        if name not in hybrid.lists:
            continue
        end = next((t for t in range(k + 1, len(nodes)) if nodes[t][1] <= depth), len(nodes))
        below = nodes[k + 1 : end]
        starts = [t for t, node in enumerate(below) if node[1] == depth + 1]
        parts = [below[a:b] for a, b in itertools.pairwise([*starts, len(below)])]
        total += math.lgamma(1 + sum(not any(words for *_, words in part) for part in parts))
    return total


@pytest.mark.parametrize(("trees", "words"), [(REPEATED, "x y x"), (SHARING, "x y x")])
def test_sums_have_each_derivation_of_a_list_once(trees, words):
    words = words.split()
    hybrid = trees_of(trees, words)
    w = np.random.default_rng(0).normal(size=hybrid.n_features)
    scores, meanings = defaultdict(list), {}
    for derivation in hybrid.derivations(words, w):
        meaning = in_one_order(derivation.meaning, hybrid.lists)
        scores[meaning].append(derivation.score - log_orders(hybrid, derivation.nodes))
        meanings[meaning] = derivation.meaning
    for meaning, own in scores.items():
        for order in (meaning, meanings[meaning]):
            assert hybrid.log_sum(words, w, [order]) == pytest.approx(np.logaddexp.reduce(own), abs=1e-9)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_meaning_is_no_more_than_all_where_a_list_has_a_form_with_a_constant(by_name):
    hybrid = trees_of(CONSTANT, ["x", "y"], by_name=by_name)
    assert hybrid.lists == {"and"} and {"and", "and(c(x),_1,_2)"} <= {unit.label for unit in hybrid.units.units}
    for seed in range(20):
        w = np.random.default_rng(seed).normal(size=hybrid.n_features)
        for meaning in CONSTANT[:3]:
            assert hybrid.log_sum(["x", "y"], w, [meaning]) < hybrid.log_sum(["x", "y"], w)
        # All that is found is no more than all there is.
        assert sum(p for _, p in hybrid.kbest(["x", "y"], w, 100)) < 1.0 + 1e-9
