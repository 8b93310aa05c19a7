"""Charts of weighted grammars against the enumeration of all trees."""

import math
import pickle
import signal
import threading

import numpy as np
import pytest
from dual_reference import constraint, primal, solve_dual
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tree_reference import ReferenceGrammar, as_text, catalan, random_grammar, random_sentence

from structsvm import CuttingPlane, LaRank, StructuredSVM
from structsvm.oracles.cky import CKYOracle, NoParseError
from structsvm.structures.grammar import Grammar, Rule, Terminal, annotate, format_rule, parse_rules, plain, rules_of
from structsvm.structures.trees import parse_tree
from structsvm.testing import check_oracle

LOSSES = ("zero_one", "hamming", "f1")
FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Case:
    """A grammar, a sentence, all of its trees, and weights."""

    def __init__(self, seed, **options):
        rng = self.rng = np.random.default_rng(seed)
        self.rules = random_grammar(rng, int(rng.integers(1, 5)), int(rng.integers(1, 3)), int(rng.integers(2, 9)))
        start = ("S",) if rng.random() < 0.6 else tuple(sorted({lhs for lhs, _ in self.rules}))[:2]
        max_unary, uncounted = int(rng.integers(0, 4)), ("A",) if rng.random() < 0.3 else ()
        self.reference = ReferenceGrammar(self.rules, start, max_unary, uncounted)
        self.grammar = Grammar(as_text(self.rules), start, max_unary=max_unary, uncounted=uncounted)
        self.x = random_sentence(rng, self.rules, int(rng.integers(1, 6)))
        self.trees = self.reference.trees(self.x)
        oracle = CKYOracle(self.grammar, **options)
        w = rng.normal(size=oracle.n_features) * rng.choice([0.1, 1.0, 3.0])
        w = np.round(w) if rng.random() < 0.2 else w
        self.w = 0.0 * w if rng.random() < 0.1 else w

    def feature(self, tree):
        """Rule counts, by the reference."""
        counts = self.reference.counts(tree)
        counts["start symbol", (tree[0],)] = 1
        return np.array([counts[lhs, tuple(map(str, rhs))] for lhs, rhs in self.grammar.features], dtype=float)

    def span_feature(self, tree):
        """Rule counts and span features, as the class documents them."""
        T, K = len(self.grammar.terminals), len(self.grammar.categories)
        tables, lengths = np.zeros((5, K, T + 1)), np.zeros((K, 9))
        words = [self.grammar.terminals.index(word) for word in self.x]

        def visit(node, i):
            label, children = node
            ends = [i]
            for child in children:
                ends.append(ends[-1] + (1 if isinstance(child, str) else visit(child, ends[-1])))
            k, j = self.grammar.categories.index(label), ends[-1]
            tables[0, k, words[i]] += 1
            tables[1, k, words[j - 1]] += 1
            tables[2, k, words[i - 1] if i else T] += 1
            tables[3, k, words[j] if j < len(words) else T] += 1
            lengths[k, sum(j - i >= bound for bound in (2, 3, 4, 5, 7, 10, 15, 20))] += 1
            if len(children) > 1:
                tables[4, k, words[ends[1]]] += 1
            return j - i

        visit(tree, 0)
        return np.concatenate([self.feature(tree), tables.ravel(), lengths.ravel()])


@st.composite
def cases(draw, **options):
    return Case(draw(st.integers(0, 2**32 - 1)), **options)


def check_search(case, feature, **options):
    """Every loss under every formulation: the most violated constraint of one tree, drawn as the true one."""
    if not 1 < len(case.trees) <= 1500:
        return
    gold = case.trees[int(case.rng.integers(len(case.trees)))]
    y, psi = parse_tree(case.reference.text(gold)), [feature(tree) for tree in case.trees]
    true = psi[case.trees.index(gold)]
    for loss in LOSSES:
        oracle = CKYOracle(case.grammar, loss=loss, **options)
        losses = [case.reference.loss(gold, tree, loss) for tree in case.trees]
        for rescaling, penalty in FORMULATIONS:
            problem = oracle.bind([case.x], [y], rescaling=rescaling, penalty=penalty)
            b, found = problem.separate(0, case.w)
            best = -np.inf if penalty is None else 0.0
            for other, size in zip(psi, losses, strict=True):
                if size > 0.0:
                    other_b, difference = constraint(true - other, size, rescaling, penalty)
                    best = max(best, other_b - difference @ case.w)
            assert b - found @ case.w == pytest.approx(best, **CLOSE)
            assert any(
                np.allclose(found, constraint(true - other, size, rescaling, penalty)[1])
                for other, size in zip(psi, losses, strict=True)
                if size > 0.0 or b == 0.0
            )
    # A perceptron is given another tree wherever one is as good.
    found = CKYOracle(case.grammar, **options).bind(None, [y], rescaling=None).separate(0, case.w)[1]
    scores = [other @ case.w for other, size in zip(psi, losses, strict=True) if size > 0.0]
    assert -found @ case.w == pytest.approx(max(0.0, max(scores) - true @ case.w), **CLOSE)


@settings(max_examples=60)
@given(cases())
def test_the_best_tree_and_all_in_order(case):
    oracle = CKYOracle(case.grammar)
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


@settings(max_examples=60)
@given(cases())
def test_the_most_violated_tree(case):
    check_search(case, case.feature)


@settings(max_examples=30)
@given(cases(span_features=True))
def test_span_features(case):
    oracle = CKYOracle(case.grammar, span_features=True)
    for tree in case.trees[:5]:
        y = parse_tree(case.reference.text(tree))
        assert np.array_equal(oracle.joint_feature(case.x, y), case.span_feature(tree))
    if case.trees:
        best = max(case.span_feature(tree) @ case.w for tree in case.trees[:1500])
        if len(case.trees) <= 1500:
            assert oracle.parse(case.x, case.w)[1] == pytest.approx(best, **CLOSE)
            assert next(oracle.kbest(case.x, case.w))[1] == pytest.approx(best, **CLOSE)
            check_search(case, case.span_feature, span_features=True)


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
        with pytest.raises(ValueError, match="k must be an int of at least 1, or None"):
            oracle.kbest(["a"], np.zeros(2), k)


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


@pytest.mark.parametrize("loss", LOSSES)
def test_check_oracle(loss):
    oracle = CKYOracle("S -> A S | A A A | S S\nA -> S | 'a' | 'b' 'a'", loss=loss)
    X = [list("aaa"), list("abaa")]
    check_oracle(oracle, X, [oracle.argmax(x, np.linspace(-1.0, 1.0, oracle.n_features)) for x in X])


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS[:2] + FORMULATIONS[3:5])
def test_training_reaches_the_optimum(rescaling, penalty):
    rng = np.random.default_rng(3)
    oracle = CKYOracle("S -> S S | A S | 'a'\nA -> S S S | S 'b' | 'b'")
    reference = ReferenceGrammar(
        [
            ("S", ("S", "S")),
            ("S", ("A", "S")),
            ("S", ("'a'",)),
            ("A", ("S", "S", "S")),
            ("A", ("S", "'b'")),
            ("A", ("'b'",)),
        ],
        ("S",),
    )
    X = [list("aaba"), list("baa"), list("aaaa"), list("aba")]
    Y, constraints = [], []
    for x in X:
        trees = reference.trees(x)
        gold = trees[int(rng.integers(len(trees)))]
        Y.append(parse_tree(reference.text(gold)))
        true = oracle.joint_feature(x, Y[-1])
        constraints.append(
            [
                constraint(true - psi, reference.loss(gold, other, "f1"), rescaling, penalty)
                for other, psi in zip(trees, [oracle.joint_feature(x, parse_tree(reference.text(t))) for t in trees])
                if other != gold
            ]
        )
    C = np.full(len(X), 0.7)
    best = solve_dual(constraints, C, penalty)
    for kind in (LaRank, CuttingPlane):
        solver = kind(C=0.7, rescaling=rescaling, penalty=penalty, tol=1e-7, max_iter=1000, random_state=0)
        model = StructuredSVM(oracle, solver).fit(X, Y)
        assert model.result_.dual == pytest.approx(best, rel=1e-5)
        assert model.result_.primal == pytest.approx(primal(model.coef_, constraints, C, penalty), rel=1e-6)


def test_shards_and_pickles():
    oracle = CKYOracle("S -> S S | A S | 'a'\nA -> S A | 'b'", loss="f1")
    X = [list("aba"), list("aa"), list("baaa")]
    Y = [oracle.argmax(x, np.array([0.1, 1.0, 0.0, 0.3, 0.0])) for x in X]
    problem, w = oracle.bind(X, Y), np.array([0.3, -0.2, 0.1, 0.7, 0.0])
    whole = [problem.separate(i, w) for i in range(3)]
    for other in (problem.shard(1, 3), pickle.loads(pickle.dumps(problem)).shard(1, 3)):
        assert other.first == 1
        for (b, psi), i in zip(whole[1:], range(2), strict=True):
            assert other.separate(i, w)[0] == b and np.array_equal(other.separate(i, w)[1], psi)
    assert problem.fingerprint() != oracle.bind(X[:2], Y[:2]).fingerprint()


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
    parser, ended = oracle.parser(), []

    def search():
        try:
            oracle.parse(x, w, parser=parser)
        except KeyboardInterrupt as error:
            ended.append(str(error))

    thread = threading.Thread(target=search)
    thread.start()
    parser.stop()
    thread.join()
    assert ended == ["the search was stopped"]


def test_work_on_chains_is_interrupted():
    # 64460 chains: filling a chart of 45 words is little work but for them, and so are fronts over 25.
    rules = "\n".join(f"N{a} -> N{b}" for a in range(11) for b in range(11) if a != b)
    oracle = CKYOracle(f"N0 -> N0 N0 | 'a'\n{rules}")
    parser = oracle.parser()
    parser.stop()
    with pytest.raises(KeyboardInterrupt, match="the search was stopped"):
        oracle.parse(["a"] * 45, np.zeros(oracle.n_features), parser=parser)
    problem = oracle.bind(None, [parse_tree("(N0 (N0 a) " * 24 + "(N0 a)" + ")" * 24)])
    problem.stop()
    n_charts = problem.n_charts
    with pytest.raises(KeyboardInterrupt, match="the search was stopped"):
        problem.separate(0, np.zeros(oracle.n_features))
    assert problem.n_charts == n_charts + 1 and problem.n_fronts == 1


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
        ("S -> 'a", "line 1: a quote that does not close"),
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
