"""Charts of weighted grammars against the enumeration of all trees."""

import math
import signal
import threading
from bisect import bisect_left
from collections import Counter
from contextlib import suppress
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structures_table import FORMULATIONS, Trees, check_most_violated
from tree_reference import ReferenceGrammar, as_text, catalan

from structsvm.execution._stop import Job, look_every
from structsvm.oracles.cky import CKYOracle, NoParseError
from structsvm.oracles.enumeration.kbest import fragments
from structsvm.structures.grammar import Grammar
from structsvm.structures.rules import Rule, Terminal, annotate, category_of, format_rule, parse_rules, plain, rules_of
from structsvm.structures.trees import parse_tree
from structsvm.testing import check_oracle

LOSSES = ("zero_one", "hamming", "f1")
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Case(Trees):
    """One sentence with all of its trees, if it has any, and weights of various sizes."""

    def __init__(self, seed, **options):
        super().__init__(seed, n_sentences=1, n_trees=(0, math.inf), **options)
        (self.x,), (self.trees,) = self.X, self.forests
        w = self.rng.normal(size=self.oracle.n_features) * self.rng.choice([0.0, 0.1, 1.0, 3.0], p=[0.1, 0.3, 0.3, 0.3])
        self.w = np.round(w) if self.rng.random() < 0.2 else w


@st.composite
def cases(draw, **options):
    return Case(draw(st.integers(0, 2**32 - 1)), **options)


@settings(max_examples=60)
@given(cases())
def test_the_best_tree_and_all_in_order(case):
    oracle = case.oracle
    found, trees = oracle.parse(case.x, case.w), case.trees
    if not trees:
        assert found is None
        with pytest.raises(NoParseError, match="no tree for the sentence"):
            oracle.argmax(case.x, case.w)
        return
    scores = {case.reference.text(tree): case.feature(tree) @ case.w for tree in trees}
    assert scores[str(found[0])] == pytest.approx(found[1], **CLOSE) == pytest.approx(max(scores.values()), **CLOSE)
    ranked = list(oracle.kbest(case.x, case.w, 2000))
    assert len({str(tree) for tree, _ in ranked}) == len(ranked) == min(2000, len(trees))
    assert [score for _, score in ranked] == pytest.approx(sorted(scores.values(), reverse=True)[:2000], **CLOSE)
    assert all(scores[str(tree)] == pytest.approx(score, **CLOSE) for tree, score in ranked)


def chances_of(case):
    """Probability over all trees of each labelled span, and what is right above each word, by label or None."""
    scores = np.array([case.feature(tree) @ case.w for tree in case.trees])
    share = np.exp(scores - scores.max())
    spans, above = Counter(), Counter()
    for tree, p in zip(case.trees, (share / share.sum()).tolist(), strict=True):
        found = [(category_of(label), i, j) for label, i, j in parse_tree(case.reference.text(tree)).spans()]
        innermost = {i: label for label, i, j in found if j - i == 1}  # inner nodes come later
        spans.update({span: p * n for span, n in Counter(found).items()})
        above.update({(innermost.get(i), i, i + 1): p for i in range(len(case.x))})
    return spans, above


@settings(max_examples=40)
@given(cases(), st.sampled_from([0.1, 0.4, 0.7]))
def test_the_likeliest_brackets(case, cost):
    oracle, n = case.oracle, len(case.x)
    if not case.trees:
        assert list(oracle.parse_all([case.x], case.w, cost=cost)) == [None]
        return
    spans, above = chances_of(case)
    for i in range(n):  # the likeliest label right above a word, if it is likelier than nothing
        found = {label: p for (label, k, _), p in above.items() if k == i}
        if len(found) > 1 and np.diff(sorted(found.values())[-2:]) < 1e-6:
            return  # either will do
        alone, chosen = found.pop(None, 0.0), max(found, key=found.get, default=None)
        for label, p in found.items():
            spans[label, i, i + 1] -= p * (label != chosen)
        if chosen is not None and found[chosen] > alone:
            spans[chosen, i, i + 1] = max(spans[chosen, i, i + 1], cost)

    @cache
    def worth(i, j):
        own = sum(max(p - cost, 0.0) for (_, a, b), p in spans.items() if (a, b) == (i, j))
        return own + max((worth(i, k) + worth(k, j) for k in range(i + 1, j)), default=0.0)

    parser = oracle.parser()
    parser.read(oracle.words(case.x), np.array([0, n]))
    _, rows, (total,) = parser.parse_read(0, 1, oracle.check_weights(case.w), cost, 200.0)
    close = {"rel": 1e-7, "abs": 1e-7}
    assert total == pytest.approx(worth(0, n), **close)
    found = [(oracle.grammar.categories[label], i, j) for label, i, j in rows.tolist()]
    assert sum(max(spans[span] - cost, 0.0) for span in found) == pytest.approx(total, **close)
    tree = oracle.grammar.tree_of(rows, case.x)
    assert sorted(tree.spans()) == sorted(found) and tree.leaves() == case.x
    assert tree.label in {category_of(name) for name in oracle.grammar.start}


def test_brackets_by_hand():
    """Two trees of three labels each, 0.6 and 0.4; what they share is certain."""
    oracle = CKYOracle("S -> A C | B C\nA -> 'x' 'x'\nB -> 'x' 'x'\nC -> D\nD -> 'x'")
    rule = [str(rule) for rule in oracle.grammar.features].index
    w = np.zeros(oracle.n_features)
    w[[k for k, one in enumerate(oracle.grammar.features) if one.lhs == "A"]] = math.log(1.5)
    (found,) = oracle.parse_all(["xxx"], w, cost=0.5)
    assert (str(found[0]), found[1]) == ("(S (A x x) (C (D x)))", pytest.approx(3 * 0.5 + 0.1))
    (both,) = oracle.parse_all(["xxx"], w, cost=0.3)
    assert str(both[0]) in ("(S (A (B x x)) (C (D x)))", "(S (B (A x x)) (C (D x)))")
    (none,) = oracle.parse_all(["xxx"], w, cost=0.7)
    assert str(none[0]) == "(S x x (C (D x)))"
    w[rule("A -> 'x' 'x'")] = 6.0  # beyond e^-3 of the best tree there is nothing
    (found,) = oracle.parse_all(["xxx"], w, cost=0.0)
    assert (str(found[0]), found[1]) == ("(S (A x x) (C (D x)))", 4.0)
    with pytest.raises(ValueError, match="too large for probabilities; decode='tree'"):
        list(oracle.parse_all(["xxx"], np.full(oracle.n_features, 1e308), cost=0.4))


def test_sentences_side_by_side_are_parsed_as_each_alone():
    grammar = "S -> S S | A S | S A | T\nT -> A\nA -> 'a'\nS -> 'b' | 'c'"
    oracle = CKYOracle(grammar, span_features=["first.terminal last.terminal", "split-1.terminal split.terminal"])
    X = [list(text) for text in ("ab", "a?c", "cabac", "b", "aabcb", "bca")]
    w = np.random.default_rng(0).normal(size=oracle.n_features)
    alone = [oracle.parse(x, w) for x in X]
    assert alone[1] is None and None not in alone[2:]
    assert list(oracle.parse_all(X, w)) == alone
    for x, found in zip(X[2:], alone[2:], strict=True):
        assert oracle.joint_feature(x, found[0]) @ w == pytest.approx(found[1], **CLOSE)
        assert next(oracle.kbest(x, w, 1))[1] == pytest.approx(found[1], **CLOSE)
    likely = [next(oracle.parse_all([x], w, cost=0.3)) for x in X]
    assert list(oracle.parse_all(X + X[::-1], w, cost=0.3)) == likely + likely[::-1]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_of_one_tree_all_brackets_are_likely(seed):
    """The bounds of the outside pass leave no more of the chart than the best tree."""
    rules = "S -> S S | A S | S A | T | A A\nT -> A\nA -> 'a' | 'd' | 'f' | S A\nS -> 'b' | 'c' | 'e'"
    oracle = CKYOracle(rules, span_features=["first.terminal last.terminal", "split.terminal", "length"])
    rng = np.random.default_rng(seed)
    w, x, parser = rng.normal(size=oracle.n_features) * 3.0, list(rng.permutation(list("abcdef"))), oracle.parser()
    tree, _ = oracle.parse(x, w)
    parser.read(oracle.words(x), np.array([0, len(x)]))
    _, rows, _ = parser.parse_read(0, 1, w, 0.5, 1e-9)
    found = [(oracle.grammar.categories[label], i, j) for label, i, j in rows.tolist()]
    assert sorted(found) == sorted(tree.spans())


def test_a_tree_that_text_cannot_hold_is_refused():
    rules = [Rule("S", (Terminal("a"), Terminal("a")))]
    with pytest.raises(ValueError, match="white space and brackets, got 'S \\('"):
        CKYOracle(Grammar([Rule("S (", rules[0].rhs)])).parse(["a", "a"], [0.0])
    with pytest.raises(ValueError, match="words without white space, got 'a b'"):
        CKYOracle(Grammar(rules)).parse(["a", "a"], [0.0], words=["a", "a b"])


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_sentences_of_many_trees(seed, span_features):
    """The most violated tree among up to some hundreds, for every loss."""
    for loss in LOSSES:
        case = Trees(seed, 1, (1, 400), loss=loss, span_features=span_features)
        w = case.weights(seed, whole=seed % 4 == 0)
        for rescaling, penalty in FORMULATIONS:
            check_most_violated(case, [w], rescaling, penalty)
    best = (case.spaces[0].psi @ w).max()
    assert case.oracle.parse(case.X[0], w)[1] == pytest.approx(best, **CLOSE)
    assert next(case.oracle.kbest(case.X[0], w))[1] == pytest.approx(best, **CLOSE)


# Templates see of a span: its begin, its end, each with its length, both, all its words, and its split.
TEMPLATES = (
    *("length", "first.terminal", "last-1.terminal last.terminal length", "first-1.terminal first.terminal length"),
    *("last+1.terminal", "first.terminal last.terminal", "first+1.terminal last+1.terminal length", "split.terminal"),
    "all.terminal all+1.terminal first-1.terminal",
    *("rule split-1.terminal split.terminal", "rule first-1.terminal first.terminal"),
)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.permutations(TEMPLATES), st.integers(1, len(TEMPLATES)))
def test_templates_score_what_they_count(seed, templates, count):
    rng = np.random.default_rng(seed)
    grammar = Grammar("S -> S T S | S S | T 'b' | 'a' | 'b'\nT -> S S T | 'b' | 'a'", h=int(rng.integers(2)))
    oracle = CKYOracle(grammar, span_features=templates[:count], span_bits=5)
    w = rng.normal(size=oracle.n_features)
    parser = oracle.parser()
    for n in (13, 2, 8):  # charts one after another
        x = rng.choice(["a", "b"], size=n).tolist()
        tree, score = oracle.parse(x, w, parser=parser)
        assert oracle.joint_feature(x, tree) @ w == pytest.approx(score, **CLOSE)


def rule_features(tree, x, h):
    """Features of a tree by ``rule split-1.terminal split.terminal`` and ``rule first.terminal``: a Counter."""
    found = Counter()

    def visit(node, i):
        ends = [i]
        for child in node.children:
            ends.append(ends[-1] + (1 if isinstance(child, str) else visit(child, ends[-1])))
        names = [repr(child) if isinstance(child, str) else child.label for child in node.children]
        n = len(names)
        for k in range(n - 1):
            rest = tuple(names[k + 1 :]) if h is None else (node.label, *names[max(0, k + 1 - h) : k + 1])
            rule = (node.label if k == 0 or h is not None else None, names[k], names[-1] if k + 2 == n else rest)
            at = ends[k + 1]
            found["split", x[at - 1], x[at], rule] += 1
            if k > 0:
                found["rest", x[ends[k]], rule] += 1
        return ends[-1] - i

    visit(tree, 0)
    return found


@pytest.mark.parametrize("h", [None, 0, 1])
def test_features_of_rules(h):
    """They are those of a slow count, up to their order, and so are the best trees, their sums and what is expected."""
    grammar = Grammar("S -> S T S S | S T S | S S | 'b' T | 'a' | 'b'\nT -> S S T | 'a' | S", h=h)
    templates = ["rule split-1.terminal split.terminal", "rule first.terminal"]
    oracle, x, rng = CKYOracle(grammar, span_features=templates, span_bits=16), list("abbab"), np.random.default_rng(0)
    n_rules, w = len(grammar.features), rng.normal(size=oracle.n_features)
    assert oracle.n_features == n_rules + 2**10 * len(grammar.arrays["pair_left"])
    ranked = list(oracle.kbest(x, w))
    psi = np.array([oracle.joint_feature(x, tree) for tree, _ in ranked])
    counts = [rule_features(tree, x, h) for tree, _ in ranked]
    keys = sorted(set().union(*counts), key=str)
    expected = [tuple(count[key] for count in counts) for key in keys]
    own = psi[:, n_rules:]
    assert sorted(map(tuple, own[:, own.any(axis=0)].T.tolist())) == sorted(expected)
    scores = np.array([score for _, score in ranked])
    assert len(ranked) > 100 and psi @ w == pytest.approx(scores, **CLOSE)
    chances = np.exp(scores - scores.max())
    log_sum, mean = oracle.expect(x, w)
    assert log_sum == pytest.approx(scores.max() + math.log(chances.sum()), **CLOSE)
    assert mean == pytest.approx(chances @ psi / chances.sum(), **CLOSE)
    true = ranked[7][0]
    for loss in LOSSES:
        other = CKYOracle(grammar, loss=loss, span_features=templates, span_bits=16)
        value = max(score + other.loss(true, tree) for tree, score in ranked)
        found = other.argmax(x, w, true, "margin")
        assert other.loss(true, found) + other.joint_feature(x, found) @ w == pytest.approx(value, **CLOSE)
    check_oracle(oracle, [x], [true])


def test_features_of_rules_count_as_bytes_of_a_chart():
    def parse(max_bytes, templates):
        oracle = CKYOracle("S -> S S | 'a'", span_bits=6, span_features=templates, max_chart_bytes=max_bytes)
        return oracle.parse(["a"] * 30, np.zeros(oracle.n_features))

    def is_enough(max_bytes):
        with suppress(ValueError):
            return max_bytes > 0 and parse(max_bytes, ()) is not None
        return False

    most = bisect_left(range(30_000), True, key=is_enough) + 2 * 30 * 8  # two tables of one pair of children
    assert parse(most, ["rule split.terminal"]) is not None
    with pytest.raises(ValueError, match=f"above the cap max_chart_bytes={most - 1}"):
        parse(most - 1, ["rule split.terminal"])


def test_twins_count_as_one_span_more():
    # The chain A -> B and the chain B -> A have the same spans.
    oracle = CKYOracle("S -> A | B\nA -> B | 'a'\nB -> A | 'a'")
    one, other = parse_tree("(S (A (B a)))"), parse_tree("(S (B (A a)))")
    assert oracle.loss(one, other) == 1.0 - 6.0 / 7.0
    problem = oracle.bind(None, [one])
    assert problem.twins_array.tolist() == [1]
    w = 20.0 * oracle.joint_feature(None, other) - 10.0
    assert problem.separate(0, w)[0] == 1.0 - 6.0 / 7.0
    check_oracle(oracle, [["a"]], [one])


class Twins(Trees):
    """Sentences whose trees come in pairs of the same spans: the chain A -> B and the chain B -> A."""

    def draw_grammar(self, rng):
        self.rules = [("S", ("A",)), ("S", ("B",)), ("S", ("S", "S"))]
        self.rules += [("A", ("B",)), ("A", ("'a'",)), ("B", ("A",)), ("B", ("'a'",)), ("A", ("B", "A"))]
        self.reference = ReferenceGrammar(self.rules, ("S",), 3)
        self.grammar = Grammar(as_text(self.rules), ("S",), max_unary=3)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_twins_among_many_trees(seed):
    for loss in LOSSES[1:]:
        case = Twins(seed, 1, (2, 150), loss=loss)
        weights = case.weights(seed), 3.0 * case.weights(seed + 1), case.winning_weights(0)
        for rescaling, penalty in FORMULATIONS:
            check_most_violated(case, weights, rescaling, penalty)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_twins_are_found(seed):
    for case in (Trees(seed, loss="hamming"), Twins(seed, 2, (2, 50), loss="hamming")):
        problem = case.oracle.bind(None, case.Y)
        for i, (trees, true) in enumerate(zip(case.forests, case.true, strict=True)):
            spans = [case.oracle.counted_spans(case.tree(tree)) for tree in trees]
            assert problem.twins_array[i] == (spans.count(spans[true]) > 1)


def test_few_trees_are_searched_for_twins():
    # Tags that are not counted stand over words alone; TOP stands at the root alone.
    rules = (
        "TOP -> S | NP\nS -> NP VP P\nNP -> 'a' | NP NP\nVP -> 'b' | S\nP -> '.' | 'c'\nNP -> 'c'\nQ -> 'c'\nS -> VP Q"
    )
    grammar = Grammar(rules, "TOP", uncounted=("TOP", "P", "Q"))

    def may(text):
        words, rows = grammar.encode(parse_tree(text))
        return grammar.may_have_twin(words, rows)

    assert not may("(TOP (S (NP a) (VP b) (P .)))")
    assert may("(TOP (S (NP a) (VP b) (P c)))")  # or Q
    assert not may("(TOP (S (NP (NP a) (NP a)) (VP (S (NP a) (VP b) (P .))) (P .)))")
    other = Grammar(rules + "\nNP -> VP\nVP -> NP", "TOP", uncounted=("TOP", "P", "Q"))
    words, rows = other.encode(parse_tree("(TOP (S (NP (VP b)) (VP b) (P .)))"))
    assert other.may_have_twin(words, rows)  # VP over NP


@pytest.mark.parametrize("n", range(1, 8))
def test_catalan_numbers(n):
    oracle = CKYOracle("S -> S S | 'a'")
    assert len(list(oracle.kbest(["a"] * n, np.zeros(2)))) == catalan(n - 1)
    # By ternary rules: nodes of three children only, n = 2 m + 1 words, (3 m choose m) / (2 m + 1) trees.
    oracle = CKYOracle("S -> S S S | 'a'")
    count = {1: 1, 3: 1, 5: 3, 7: 12}.get(n, 0)
    assert len(list(oracle.kbest(["a"] * n, np.zeros(2)))) == count


def test_kbest_is_lazy():
    oracle = CKYOracle("S -> S S | 'a'")
    ranked = oracle.kbest(["a"] * 60, np.array([0.5, 1.0]))  # Catalan(59) is 4e32
    scores = [next(ranked)[1] for _ in range(50)]
    assert scores == [59 * 0.5 + 60.0] * 50
    for k in (0, -1, 1.5, "x"):
        with pytest.raises(ValueError, match="k must be an integer of at least 1"):
            oracle.kbest(["a"], np.zeros(2), k)


def test_sums_of_weights_that_overflow():
    """A chart whose best sum is infinite may have nothing below it that adds up to that: weights of a forged file."""
    arrays = {"chain_bottom": np.zeros(0, dtype=np.int32)}
    chart = SimpleNamespace(
        tables=SimpleNamespace(arrays=arrays),
        chains=lambda *_: [(np.inf, -1)],
        rules=lambda *_: [],
        cover=lambda *_: [(0, 0, 3)],
    )
    with pytest.raises(ValueError, match="the scores of a derivation overflow: the weights are too large"):
        fragments(chart, np.zeros(3, dtype=np.int32), np.zeros(1))


def test_kbest_keeps_its_weights():
    oracle, w = CKYOracle("S -> A | B\nA -> 'a'\nB -> 'a'"), np.arange(4.0)
    expected = list(oracle.kbest(["a"], w))
    ranked = oracle.kbest(["a"], w)
    w[:] = 0.0
    found = [next(ranked)]
    w[:] = 9.0
    assert [*found, *ranked] == expected


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0, 1, 2]), st.sampled_from([1, 2, 3]))
@settings(max_examples=40)
def test_markovised_grammars_cover_their_trees(seed, h, v):
    case = Case(seed)
    trees = [parse_tree(case.reference.text(tree)) for tree in case.trees[:20]]
    if not trees:
        return
    annotated = [annotate(tree, v) for tree in trees]
    assert [plain(tree) for tree in annotated] == trees
    rules = dict.fromkeys(rule for tree in annotated for rule in rules_of(tree))
    starts = dict.fromkeys(tree.label for tree in annotated)
    oracle = CKYOracle(Grammar(rules, starts, h=h, max_unary=3, uncounted=case.grammar.uncounted))
    for tree, other in zip(annotated, trees, strict=True):
        words, rows = oracle.grammar.encode(tree)
        assert oracle.grammar.decode(rows, other.leaves()) == tree
        assert [oracle.grammar.terminals[t] for t in words] == case.x
        assert oracle.loss(annotated[0], tree) == CKYOracle(case.grammar).loss(trees[0], other)
    # The tree that its own features reward is found; in a markovised grammar nothing else needs to be.
    w = case.rng.normal(size=oracle.n_features)
    found, score = oracle.parse(case.x, w)
    assert w @ oracle.joint_feature(case.x, found) == pytest.approx(score, **CLOSE)
    assert score >= max(w @ oracle.joint_feature(case.x, tree) for tree in annotated) - 1e-9
    for (tree, s), _ in zip(oracle.kbest(case.x, w), range(30), strict=False):
        assert w @ oracle.joint_feature(case.x, tree) == pytest.approx(s, **CLOSE)


def dense(n_rules, n=60, seed=0):
    """An oracle for binary rules drawn at random, their weights, and 300 words."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n**3)[:n_rules]
    rules = "\n".join(f"N{k % n} -> N{k // n % n} N{k // n**2}" for k in pairs)
    rules += "\n" + "\n".join(f"N{k} -> 'w{k}'" for k in range(n))
    oracle = CKYOracle(Grammar(rules, "N0"))
    return oracle, rng.normal(size=oracle.n_features), [f"w{k}" for k in rng.integers(0, n, 300)]


def test_large_charts():
    oracle, w, x = dense(20_000)
    tree, score = oracle.parse(x[:40], w)
    assert tree.leaves() == x[:40]
    assert w @ oracle.joint_feature(x[:40], tree) == pytest.approx(score, **CLOSE)


class Alarm(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("search", ["parse", "kbest", "bind"])
def test_signals_reach_long_charts(search):
    oracle, w, x = dense(20_000)  # a chart of 300 words takes half a minute
    right = parse_tree("(N0 " + " ".join(f"(N{word[1:]} {word})" for word in x) + ")")
    binary = Grammar("\n".join([*map(str, oracle.grammar.rules), *map(str, rules_of(right)[:1])]), "N0")
    problem = CKYOracle(binary, loss="zero_one").bind(None, [right])
    calls = {
        "parse": lambda: oracle.parse(x, w),
        "kbest": lambda: next(oracle.kbest(x, w)),
        "bind": lambda: problem.separate(0, np.append(w, 0.0)),
    }

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm):
            calls[search]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_search_that_nobody_waits_for_can_be_stopped():
    oracle, w, x = dense(20_000)
    job, ended = Job(), []

    def search():
        try:
            job.run(oracle.parse, x, w)
        except KeyboardInterrupt as error:
            ended.append(str(error))

    thread = threading.Thread(target=search)
    thread.start()
    job.stop()
    thread.join()
    assert ended == ["the job was stopped"]


def test_work_on_chains_is_interrupted():
    # 64460 chains: filling a chart of 45 words is little work but for them, and so are fronts over 25.
    rules = "\n".join(f"N{a} -> N{b}" for a in range(11) for b in range(11) if a != b)
    oracle = CKYOracle(f"N0 -> N0 N0 | 'a'\n{rules}")
    job = Job()
    job.stop()
    with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
        job.run(oracle.parse, ["a"] * 45, np.zeros(oracle.n_features))
    problem = oracle.bind(None, [parse_tree("(N0 (N0 a) " * 24 + "(N0 a)" + ")" * 24)])
    w = np.zeros(oracle.n_features)
    b, psi = problem.separate(0, w)
    n_charts, n_fronts = problem.n_charts, problem.n_fronts

    def ring():
        if problem.n_fronts > n_fronts:
            raise KeyboardInterrupt("in the fronts")

    look_every(1, ring)
    try:
        with pytest.raises(KeyboardInterrupt, match="in the fronts"):
            problem.separate(0, w)
    finally:
        look_every()
    assert problem.n_charts == n_charts + 1 and problem.n_fronts == n_fronts + 1
    assert problem.separate(0, w)[0] == b
    np.testing.assert_array_equal(problem.separate(0, w)[1], psi)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 16])
def test_rule_applications_are_counted(n):
    oracle = CKYOracle("S -> S S | 'a'")
    parser = oracle.parser()
    parser.fill(oracle.grammar.sentence("a" * n), np.zeros(2))
    assert parser.n_applications() == math.comb(n + 1, 3)


def test_start_symbols_have_weights():
    oracle = CKYOracle(Grammar("S -> A 'b'\nA -> 'b' | S", ("S", "A")))
    assert oracle.grammar.features[-2:] == [("start symbol", ("S",)), ("start symbol", ("A",))]
    w = np.array([0.0, 0.0, 0.0, 1.0, 2.0])
    assert [(str(tree), score) for tree, score in oracle.kbest(["b", "b"], w)] == [
        ("(A (S (A b) b))", 2.0),
        ("(S (A b) b)", 1.0),
    ]
    assert oracle.joint_feature(None, parse_tree("(S (A b) b)")).tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert CKYOracle("S -> 'a'").n_features == 1  # a single one has none


def test_caps_are_named():
    with pytest.raises(ValueError, match="9 words is longer than the cap max_length=8"):
        CKYOracle("S -> S S | 'a'", max_length=8).parse(["a"] * 9, np.zeros(2))
    with pytest.raises(ValueError, match="tree 0: 3 words are more than the cap max_length=2"):
        CKYOracle("S -> S S | 'a'", max_length=2).bind(None, [parse_tree("(S (S a) (S (S a) (S a)))")])
    with pytest.raises(ValueError, match=r"above the cap max_chart_bytes=1000; raise it"):
        CKYOracle("S -> S S | 'a'", max_chart_bytes=1000).parse(["a"] * 30, np.zeros(2))
    with pytest.raises(ValueError, match="more than 100000 chains of up to max_unary=4"):
        Grammar("\n".join(f"N{a} -> N{b}" for a in range(30) for b in range(30) if a != b) + "\nN0 -> 'a'")
    # The tables of counts (c, p): 10 words, each under 50 nodes.
    unary = "\n".join(f"N{k} -> N{k + 1}" for k in range(49))
    grammar = Grammar(f"S -> N0 N0 | S N0 | N0 S\n{unary}\nN49 -> 'a'", max_unary=49)
    word = "".join(f"(N{k} " for k in range(50)) + "a" + ")" * 50
    tree = parse_tree("(S " * 9 + f"{word} {word})" + f" {word})" * 8)
    size = 24 * (509 + 1) * (19 * 50 + 1)
    with pytest.raises(ValueError, match=r"tree 0: the counts of its nodes need 1.16e\+07 bytes, above the cap"):
        CKYOracle(grammar, max_chart_bytes=size - 1).bind(None, [tree])
    w = np.zeros(CKYOracle(grammar).n_features)
    with pytest.raises(ValueError, match=r"of a sentence of 10 words needs 1.18e\+07 bytes or more, above the cap"):
        CKYOracle(grammar, max_chart_bytes=size).bind(None, [tree]).separate(0, w)
    assert np.isfinite(CKYOracle(grammar, max_chart_bytes=2 * size).bind(None, [tree]).separate(0, w)[0])


def test_the_cap_on_rules(monkeypatch):
    monkeypatch.setattr("structsvm.structures.grammar.MAX_RULES", 3)
    Grammar("S -> S S S S | 'a'")
    with pytest.raises(ValueError, match="a grammar of 4 rules is above the cap of 3 rules"):
        Grammar("S -> S S | 'a' | 'b' | 'c'")
    with pytest.raises(ValueError, match="4 binary rules are above the cap of 3 rules"):
        Grammar("S -> S S S S S | 'a'")


NAMES = st.text(st.sampled_from("aS0/u4>-<^|$#'\"[]. \u00e9\u2028\U0001f333"), min_size=1)


@given(NAMES, NAMES, st.text(st.sampled_from("aS/u4>-|#'[]."), min_size=1))
@example("PRP$", "->", '"')
@example("/u24/", "/u2$", "#")
def test_rules_can_be_read_back(lhs, name, word):
    rule = Rule(lhs, (name, Terminal(word), name))
    assert parse_rules(format_rule(rule) + "  # it's a comment") == [rule]
    nltk = pytest.importorskip("nltk")
    production = nltk.CFG.fromstring(format_rule(rule)).productions()
    assert len(production) == 1 and production[0].rhs()[1] == word


def test_words_that_text_cannot_hold():
    for word in ("'\"", "a b", ""):
        with pytest.raises(ValueError, match="a grammar's text cannot contain the terminal"):
            format_rule(Rule("S", (Terminal(word),)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a grammar must have rules"),
        ("S -> S S |", "line 1: an empty production of 'S'"),
        ("S -> 'a'\nS ->", "line 2: an empty production of 'S'"),
        ("S -> 'a' | 'a'", "the rule S -> 'a' is given 2 times"),
        ("S 'a'", "line 1: expected a rule such as S -> NP VP"),
        ("S -> 'a", "line 1: a quote that is empty or not closed"),
        ("S T -> 'a'", "line 1: expected a rule"),
        ("S -> ''", "line 1: a quote that is empty or not closed"),
        ("S -> NP VP [0.25]", "line 1: expected a rule without weights"),
        ("S -> A -> 'a'", "line 1: expected a rule without weights"),
    ],
)
def test_bad_grammars(text, message):
    with pytest.raises(ValueError, match=message):
        CKYOracle(text)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(A b)", "tree 0: the root 'A' is not a start symbol"),
        ("(S (B b))", "tree 0: the label 'B' is not in the grammar"),
        ("(S (A b))", "tree 0: the grammar has no chain S -> A"),
        ("(S (S a) (A b))", "tree 0: the grammar has no rule S -> S A"),
        ("(S (S (S a)) (S a))", "tree 0: the grammar has no chain S -> S"),
        ("(S b)", "tree 0: the grammar has no rule S -> 'b'"),
        ("(S c)", "tree 0: the grammar has no rule S -> 'c'"),
    ],
)
def test_trees_that_do_not_belong(tree, message):
    with pytest.raises(ValueError, match=message):
        CKYOracle("S -> S S | 'a'\nA -> 'b'").bind(None, [parse_tree(tree)])


def test_unary_cycles_end():
    oracle = CKYOracle("S -> A | 'a'\nA -> B | S\nB -> S | A")
    trees = {str(tree) for tree, _ in oracle.kbest(["a"], np.ones(oracle.n_features))}
    assert trees == {"(S a)"}  # S -> A -> S has S twice
    oracle = CKYOracle("S -> A | B | 'a'\nA -> B | 'a'\nB -> A | 'a'")
    found = [(str(tree), score) for tree, score in oracle.kbest(["a"], np.ones(oracle.n_features))]
    assert len(found) == 5 and found[0][1] == found[1][1] == 3.0


def test_parameters():
    with pytest.raises(ValueError, match="The 'loss' parameter of CKYOracle must be 'zero_one' or 'hamming' or 'f1'"):
        CKYOracle("S -> 'a'", loss="f2")
    for name, values in {
        "loss": (["f1"], None),
        "max_length": (0, 1.5, 2**70),
        "max_chart_bytes": (0, True, 2**63),
    }.items():
        for value in values:
            with pytest.raises(ValueError, match=f"The '{name}' parameter of CKYOracle must be"):
                CKYOracle("S -> 'a'", **{name: value})
    for options in ({"h": -1}, {"h": 0.5}, {"max_unary": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be an int of at least 0"):
            Grammar("S -> 'a'", **options)
    with pytest.raises(ValueError, match="must be a Grammar or text"):
        CKYOracle(3)
    with pytest.raises(ValueError, match="start symbol 'X' has no rules"):
        Grammar("S -> 'a'", "X")
    with pytest.raises(ValueError, match="start symbol 'X' has no rules"):
        Grammar("S -> X 'a'", "X")
    oracle = CKYOracle("S -> S S | 'a'")
    with pytest.raises(ValueError, match=r"w has shape \(3,\), expected \(2,\)"):
        oracle.parse(["a"], np.zeros(3))
    numbers = oracle.grammar.sentence(["a"])
    for search in (oracle.parser().parse, oracle.parser().fill):
        with pytest.raises(ValueError, match=r"w has shape \(1,\), expected \(2,\)"):
            search(numbers, np.zeros(1))
    for value in (np.nan, np.inf, -np.inf):
        for search in (oracle.parse, oracle.kbest, oracle.argmax):
            with pytest.raises(ValueError, match="w has values that are not finite"):
                search(["a"], [0.0, value])
    with pytest.raises(ValueError, match="tree 0 does not have the words of the sentence"):
        oracle.bind([["a", "a"]], [parse_tree("(S a)")])
    assert oracle.parse(["b"], np.zeros(2)) is None
    with pytest.raises(ValueError, match="at least one word"):
        oracle.parse([], np.zeros(2))


def test_a_deep_tree():
    n = 399
    tree = parse_tree("(S (S a) " * (n - 1) + "(S a)" + ")" * (n - 1))
    oracle = CKYOracle("S -> S S | 'a'")
    _, rows = oracle.grammar.encode(tree)
    assert oracle.grammar.decode(rows, tree.leaves()) == tree
    assert oracle.bind(None, [tree]).separate(0, np.zeros(2))[0] > 0.0
    unary = "\n".join(f"N{k} -> N{k + 1}" for k in range(50)) + "\nN50 -> 'a'"
    with pytest.raises(ValueError, match="no chain N0 -> N1"):
        Grammar(unary).encode(parse_tree("".join(f"(N{k} " for k in range(51)) + "a" + ")" * 51))


def test_a_batch_ends_before_a_sentence_that_fails():
    """Sentences before it are parsed; it is the first of the next batch, whose error is its own."""
    oracle = CKYOracle("S -> S S | 'a'\nS -> 'b'", max_length=40)
    w, X = oracle.check_weights(np.zeros(oracle.n_features)), [list("ab"), list("aba"), ["a"] * 41, list("a")]
    found = oracle.parse_all(X, w)
    assert [len(next(found)[0].leaves()) for _ in range(2)] == [2, 3]
    with pytest.raises(ValueError, match="a sentence of 41 words is longer than the cap max_length=40"):
        next(found)
    parser = oracle.parser()
    parser.read(np.concatenate([oracle.words(x) for x in (X[0], X[1], X[3])]), np.array([0, 2, 5, 6]))
    for cost in (None, 0.5):
        ends, rows, values = parser.parse_read(0, 3, w, cost)
        assert ends[-1] == len(rows)
        for own, value, k in zip(np.split(rows, ends), values, range(3)):
            alone = parser.parse_read(k, k + 1, w, cost)
            assert np.array_equal(own, alone[1]) and [value] == alone[2]
    small = CKYOracle("S -> S S | 'a'", max_chart_bytes=20_000)
    numbers = small.words(["a"] * 60)
    parser = small.parser()
    parser.read(np.concatenate([small.words(["a"] * 2), numbers]), np.array([0, 2, 62]))
    w = small.check_weights(np.zeros(small.n_features))
    assert len(parser.parse_read(0, 2, w)[0]) == 1
    with pytest.raises(ValueError, match=r"needs .* bytes or more, above the cap max_chart_bytes=20000"):
        parser.parse_read(1, 2, w)
