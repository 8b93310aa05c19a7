"""Regular languages over labels, against Python's own expressions, walks over labels, and counts of states."""

import itertools
import re
from functools import reduce
from operator import and_

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm.layers import label_language
from structsvm.metrics import Scheme
from structsvm.structures.languages import (
    Automaton,
    Rule,
    at_least_one,
    at_most_once,
    before,
    exactly_one,
    in_order,
    max_length,
    one_run_each,
    rules,
)
from structsvm.structures.languages.automaton import MOST_STATES, TooLarge
from structsvm.structures.languages.expressions import MOST_PLACES, automaton_of, parse
from structsvm.structures.languages.nodes import nodes_of
from structsvm.structures.languages.rules import rule_of

NAMES = ["a", "b", "c"]


def name_of_rule(value):
    return str(value) if isinstance(value, Rule) else None


def words(longest, names=range(3), shortest=0):
    return itertools.chain.from_iterable(itertools.product(names, repeat=n) for n in range(shortest, longest + 1))


def of(text, names=NAMES):
    return automaton_of(parse(text, names), len(names))


# --- expressions ----------------------------------------------------------------------------------


def expressions():
    leaves = st.sampled_from([*NAMES, ".", "[a b]", "[^c]", "'a'"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(" ".join),
            st.tuples(inner, inner).map(lambda two: f"({two[0]} | {two[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{0}"])).map(
                lambda two: f"({two[0]}){two[1]}"
            ),
        ),
        max_leaves=6,
    )


@given(expressions())
def test_expressions(text):
    automaton = of(text)
    pattern = re.compile(text.replace("[a b]", "[ab]").replace(" ", "").replace("'", ""))
    found = {word: bool(pattern.fullmatch("".join(NAMES[k] for k in word))) for word in words(5)}
    assert all(automaton.accepts(word) == is_one for word, is_one in found.items())
    lengths = [any(is_one for word, is_one in found.items() if len(word) == n) for n in range(6)]
    assert automaton.possible_lengths(5).tolist() == lengths
    assert automaton.minimal() == automaton
    masks = automaton.as_masks()
    if masks is not None:
        allowed, first, last = masks
        for word in words(4, shortest=1):
            by_masks = first[word[0]] and last[word[-1]] and all(allowed[p] for p in itertools.pairwise(word))
            assert by_masks == automaton.accepts(word)


@pytest.mark.parametrize(
    ("text", "states", "is_local"),
    [("(a | b c*)*", 2, True), (".*", 1, True), ("a a", 3, False), ("[^a]* (a+ [^a]*)?", 3, False), ("a b*", 2, True)],
)
def test_smallest_automata(text, states, is_local):
    automaton = of(text)
    assert automaton.n_states == states
    assert (automaton.as_masks() is not None) == is_local
    twice = Automaton(np.vstack([automaton.following] * 2), np.tile(automaton.accepting, 2))
    assert twice.minimal() == automaton == (automaton & automaton)


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("(a", 3, r"a \) for the \( at character 1, got its end"),
        ("a |", 4, "a label or a class of labels, got its end"),
        ("", 1, "a label or a class"),
        ("a )", 3, "an operator or the end"),
        ("a{3,2}", 2, "at least 3 repetitions"),
        ("[a", 3, r"a \] for the \[ at character 1"),
        ("a []", 3, "a class with labels"),
        ("* a", 1, "a label or a class"),
        ("a { b", 3, "a label, a class or an operator"),
        ("a d", 3, "'d' is none of the labels a, b, c"),
        ("a [b x*]", 6, r"'x\*' is none of the labels"),
    ],
)
def test_malformed_expressions(text, place, wanted):
    with pytest.raises(ValueError, match=f"at character {place}: .*{wanted}"):
        of(text)


def test_names_of_labels():
    names = ["O", "B-PER", "I-PER", "x (y)", "?"]
    assert of("[B-* I-*]+", names).accepts([1, 2])
    assert of("'x (y)' \"?\"", names).accepts([3, 4])
    assert of("['x (y)' O]", names).accepts([0])
    assert not of("[^B-* O]", names).accepts([1])


@pytest.mark.parametrize(
    ("text", "labels", "place", "other"),
    [
        ("NAME? O", ["NAME", "NAME?", "O"], 1, r"an expression: put \( \)"),
        ("O (C++ O)*", ["C", "C++", "O"], 4, "an expression"),
        ("O New York", ["New", "York", "New York", "O"], 3, "an expression"),
        ("[New York]", ["New", "York", "New York"], 2, "an expression"),
        ("x (y)", ["x", "y", "x (y)"], 1, "an expression"),
        ("O *x", ["O", "x", "*x"], 3, "an expression"),
        (". NN", ["NN", "."], 1, r"any label: write \[\*\]"),
        (". NN", ["NN", "*", "."], 1, r"any label: write \[\*\*\]"),
        ("[*] NN", ["NN", "*", "**"], 2, r"some labels: name them, or write \*\*\*"),
        ("(NN .*)*", ["NN", "."], 5, "any label"),
        ("NN | VB", ["NN", "VB", "|"], 4, "an operator or a group"),
        ("( NN )", ["NN", "(", ")"], 1, "an operator or a group"),
        ("NN +", ["NN", "+"], 4, "an operator or a group"),
        ("[O I-*]", ["O", "I-X", "I-*"], 4, "some labels: name them"),
        ("[^I-*]", ["O", "I-X", "I-*"], 3, "some labels"),
        ("[NN ]", ["NN", "]"], 5, "an operator or a group"),
        ("[^ N]*", ["^", "N"], 2, "all labels but some: put the first"),
        ("[^N V]", ["^N", "N", "V"], 2, "all labels but some"),
    ],
)
def test_labels_that_have_the_signs_of_expressions(text, labels, place, other):
    """A text that could mean such a label, or something else, is an error, and never one of the two in silence."""
    with pytest.raises(ValueError, match=rf"at character {place}: this may be the label .* in quotes, or {other}"):
        of(text, labels)


@pytest.mark.parametrize(
    ("text", "labels", "accepted", "refused"),
    [
        ("(NAME)? O", ["NAME", "NAME?", "O"], [[2], [0, 2]], [[1, 2]]),
        ("'NAME?' O", ["NAME", "NAME?", "O"], [[1, 2]], [[2], [0, 2]]),
        ("[*] NN '.'", ["NN", "."], [[1, 0, 1], [0, 0, 1]], [[0, 0, 0]]),
        ("[**] NN", ["NN", "*", "."], [[1, 0], [2, 0]], [[0, 1]]),
        ("[A*] [^A*]", ["A*", "B"], [[0, 1]], [[0, 0], [1, 1]]),
        ("[NN .]", ["NN", "."], [[0], [1]], [[]]),
        ("(New) York", ["New", "York", "New York"], [[0, 1]], [[2]]),
        ("NN|VB", ["NN", "VB", "|"], [[0], [1]], [[0, 2, 1]]),
        ("(NN)+", ["NN", "(", ")", "+"], [[0, 0]], [[1, 0, 2, 3]]),
        ("[^a]*", ["a", "b?"], [[1, 1]], [[0]]),
        ("a*b", ["a", "b", "*b"], [[0, 0, 1], [1]], [[0, 2]]),
        ("[^'N']", ["^", "N", "^N"], [[0], [2]], [[1]]),
        ("[^N]", ["^", "N"], [[0]], [[1]]),
        ("[^ N]", ["^N", "N", "V"], [[0], [2]], [[1]]),
        ("['^' N]", ["^", "N", "V"], [[0], [1]], [[2]]),
        ("[N ^] ^", ["^", "N", "V"], [[0, 0], [1, 0]], [[2, 0]]),
    ],
)
def test_both_meanings_can_be_written(text, labels, accepted, refused):
    automaton = of(text, labels)
    assert all(map(automaton.accepts, accepted)) and not any(map(automaton.accepts, refused))


@pytest.mark.parametrize(
    ("text", "labels", "wanted"),
    [
        ("n't", ["n't"], "'n' is none of the labels .*; the label \"n't\" stands in quotes"),
        ("VB n't", ["VB", "n", "n't"], 'at character 5: expected .*; the label "n\'t" stands in quotes'),
        ("NAME? X", ["NAME", "NAME?"], r"at character 7: 'X' is none of .*; the label 'NAME\?' stands in quotes"),
        ("N [^]", ["^", "N"], r"at character 3: expected a class with labels, got .*; the label '\^' stands in quotes"),
        ("VB (", ["VB", "NAME?"], r"at character 5: expected a label or a class of labels, got its end$"),
    ],
)
def test_texts_that_are_no_expression_have_one_meaning_at_most(text, labels, wanted):
    with pytest.raises(ValueError, match=wanted) as failed:
        of(text, labels)
    assert "this may be" not in str(failed.value)


def test_expressions_that_are_too_large():
    with pytest.raises(TooLarge, match=f"more than {MOST_PLACES} labels"):
        of(f"a{{{MOST_PLACES + 1}}}")
    with pytest.raises(TooLarge, match=f"more than {MOST_STATES} states"):
        of(".* a .{20}")


# --- ready rules ----------------------------------------------------------------------------------


def runs(word, name):
    return [len(list(group)) for key, group in itertools.groupby(word) if key == name]


def parts(word):
    """Texts between the labels c."""
    return "".join(word).split("c")


def is_behind(word, since):
    """Whether each b stands behind an a, since the last label `since`."""
    seen = False
    for name in word:
        if name == "b" and not seen:
            return False
        seen = name == "a" or (seen and name != since)
    return True


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        (at_most_once("a"), lambda w: len(runs(w, "a")) <= 1),
        (exactly_one("a"), lambda w: len(runs(w, "a")) == 1),
        (at_least_one("a"), lambda w: "a" in w),
        (one_run_each("a"), lambda w: len(runs(w, "a")) <= 1),
        (in_order("a", "b"), lambda w: "b" not in w or "a" not in w[w.index("b") :]),
        (max_length("a", 2), lambda w: max(runs(w, "a"), default=0) <= 2),
        (before("a", "b"), lambda w: is_behind(w, None)),
        (before("a", "b", since="c"), lambda w: is_behind(w, "c")),
        (at_most_once("a", since="c"), lambda w: all(len(runs(part, "a")) <= 1 for part in parts(w))),
        (exactly_one("a", since="c"), lambda w: all(len(runs(part, "a")) == 1 for part in parts(w))),
        (in_order("a", "b", since="c"), lambda w: all("ba" not in "".join(part) for part in parts(w))),
    ],
    ids=name_of_rule,
)
def test_rules_about_labels(rule, holds):
    automaton = rule.automaton(NAMES, [None] * 3)
    for word in words(6, NAMES):
        assert automaton.accepts([NAMES.index(name) for name in word]) == holds(word)
    assert rule_of(str(rule)) == rule


@pytest.mark.parametrize("name", ["bio", "bioes"])
@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        (at_most_once("X"), lambda chunks: len(chunks) <= 1),
        (exactly_one("X"), lambda chunks: len(chunks) == 1),
        (max_length("X", 2), lambda chunks: all(b - a <= 2 for a, b, _ in chunks)),
        (one_run_each("X"), lambda chunks: all(a[1] == b[0] for a, b in itertools.pairwise(chunks))),
    ],
    ids=name_of_rule,
)
def test_rules_about_chunks(rule, holds, name):
    scheme = Scheme(name)
    names = ["O", *(scheme.label(role, "X") for role in scheme.rules.roles)]
    parts = [scheme.part(label) for label in names]
    automaton = rule.automaton(names, parts)
    for word in words(5, names):
        ends = [parts[0], *(scheme.part(label) for label in word), parts[0]]
        if all(scheme.allows(a, b) for a, b in itertools.pairwise(ends)):
            assert automaton.accepts([names.index(label) for label in word]) == holds(scheme.chunks(word))


def test_expressions_of_any_size_end():
    deep = "(" * 60 + "a" + ("{1}*+)" * 60)
    assert automaton_of(parse(deep, NAMES), 3).accepts([0, 0])
    for text in ["(a{0}){3000000}", "((a{0}|b{0} a{0})*?){3000000}"]:
        assert automaton_of(parse(text, NAMES), 3) == automaton_of(parse("a{0}", NAMES), 3)
    with pytest.raises(ValueError, match="at character 61: expected at most 60 groups within groups"):
        parse("(" * 61 + "a" + ")" * 61, NAMES)
    with pytest.raises(ValueError, match="at character 5: expected at most 3 operators one after another"):
        parse("a???????", NAMES)
    for text in ["a{99999999999}", "a{1,99999999999}", "(a{4000}){4000}"]:
        with pytest.raises(TooLarge, match="more than 4096 labels"):
            automaton_of(parse(text, NAMES), 3)


def test_rules_as_text():
    assert rule_of("before(B-NAME, 'I NAME', since=SEP)") == before("B-NAME", "I NAME", since="SEP")
    assert rule_of(str(at_most_once("a b", "c,d", "e"))) == at_most_once("a b", "c,d", "e")
    for name in ("it's", 'a "b"', "a b\\c", "a\u00a0b", "new\nline", "x=y", "since=S", "(", ""):
        for rule in (at_most_once(name), before("q", "r", since=name), max_length(name, 2)):
            assert rule.is_text and rule_of(str(rule)) == rule
    assert not at_most_once('it\'s "both"').is_text
    assert rule_of("a (b)") is None
    assert {rule_of(f"{name}(a, {3 if name == 'max_length' else 'b'})").name for name in rules.NAMES} == set(
        rules.NAMES
    )
    assert [str(one) for one in at_most_once("a", "b").each()] == ["at_most_once(a)", "at_most_once(b)"]
    for text, wanted in [
        ("at_most_once()", "needs 1 or more fields, got 0"),
        ("before(a)", "needs 2 fields, got 1"),
        ("max_length(a)", "max_length\\(field, number of tokens\\)"),
        ("max_length(a, 0)", "at least 1, got 0"),
        ("in_order(a, a)", "named twice"),
        ("before(a, b, since=a)", "named twice"),
        ("in_order(a b)", "character 10: expected labels and commas"),
        ("max_length(a, 2, since=c)", "since= has no meaning"),
        ("at_most_once(a, since=b, since=c)", "since= stands there twice"),
    ]:
        with pytest.raises(ValueError, match=wanted):
            rule_of(text)
    with pytest.raises(ValueError, match="'d' is none of the labels a, b, c, and no type of theirs"):
        at_most_once("d").automaton(NAMES, [None] * 3)


def test_the_most_tokens_are_any_whole_number():
    """NumPy's are stored as Python's; True and False are none."""
    assert max_length("a", np.int64(3)) == max_length("a", 3) == rule_of(str(max_length("a", np.int64(3))))
    assert type(max_length("a", np.int32(3)).most) is int
    for most in (True, np.True_, 3.0, "3", None, np.int64(0)):
        with pytest.raises(ValueError, match="max_length needs a whole number of tokens of at least 1, got "):
            max_length("a", most)


def test_labels_that_are_called_as_rules_are():
    """A label before a group is an expression, too."""
    names = ["exactly_one", "city", "O"]
    with pytest.raises(ValueError, match=r"may be the rule, .* or an expression, in which the label 'exactly_one' st"):
        label_language(names, "exactly_one (city)")
    assert label_language(names, "'exactly_one' (city)").accepts([0, 1])
    assert label_language(names, exactly_one("city")).accepts([2, 1])
    assert label_language(names[1:], "exactly_one(city)").accepts([1, 0])


# --- automata -------------------------------------------------------------------------------------


@st.composite
def automata(draw, K=3):
    n = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(-1, n - 1), min_size=K, max_size=K), min_size=n, max_size=n))
    return Automaton(rows, draw(st.lists(st.booleans(), min_size=n, max_size=n).map(np.array)))


@given(automata(), automata())
def test_products(one, other):
    both, smallest = one & other, one.minimal()
    for word in words(5):
        assert both.accepts(word) == (one.accepts(word) and other.accepts(word))
        assert smallest.accepts(word) == one.accepts(word)
    assert smallest.n_states <= one.n_states


@given(automata(), st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=4))
def test_places_where_sequences_leave(automaton, sequences):
    automaton = automaton.minimal()
    offsets, ids = np.cumsum([0, *map(len, sequences)]), np.concatenate(sequences)
    completable = {w for w in words(9, shortest=0) if automaton.accepts(w)} if automaton.n_states else set()
    heads = {w[:k] for w in completable for k in range(len(w) + 1)}

    def left(y):
        for t in range(len(y)):
            is_last = t + 1 == len(y)
            if tuple(y[: t + 1]) not in (completable if is_last else heads):
                return t
        return None

    expected = [(i, left(y)) for i, y in enumerate(sequences) if left(y) is not None]
    assert automaton.broken_at(offsets, ids) == (expected[0] if expected else None)
    assert automaton.left_at(offsets, ids, np.eye(3, dtype=bool)) == (expected[0] if expected else None)


@given(automata(), st.sampled_from([1, 2]))
def test_nodes(automaton, order):
    """Paths of nodes are the labellings of the language, each once; no node is without one."""
    automaton = automaton.minimal()
    if not (automaton.following >= 0).any():
        with pytest.raises(ValueError, match="no sequence of labels is allowed"):
            nodes_of(automaton, order)
        return
    nodes = nodes_of(automaton, order)
    assert (np.diff(nodes.groups) > 0).all()
    for word in words(4, shortest=1):
        node, path = nodes.first[word[0]], []
        for t, label in enumerate(word):
            if t > 0:
                node = nodes.following[nodes.group[node], label] if node >= 0 else -1
            path.append(node)
            if node >= 0:
                assert nodes.labels[node] == label
                before = word[t - 1] if t else 3
                assert nodes.rows[node] == (label if order == 1 else 4 * label + before)
        assert (node >= 0 and bool(nodes.ends[node])) == automaton.accepts(word)
    for node in range(len(nodes.labels)):
        groups = nodes.origin[nodes.origins[node] : nodes.origins[node + 1]]
        assert (nodes.following[groups, nodes.labels[node]] == node).all()
    assert len(nodes.origin) == (nodes.following >= 0).sum()


def test_tables_that_are_none():
    for following, accepting, wanted in [
        ([0, 1], [True], "integer array"),
        ([[0.0]], [True], "integer array"),
        ([[0]], [True, False], "bool array"),
        ([[0]], [1], "bool array"),
        ([[1]], [True], "states 1 to 1, expected -1"),
        ([[-2]], [True], "states -2 to -2"),
        ([[0, 1], [1]], [True, True], "following and accepting must be arrays, got rows of several lengths"),
    ]:
        with pytest.raises(ValueError, match=wanted):
            Automaton(following, accepting)


def test_products_that_are_too_large():
    names = [f"l{k}" for k in range(30)]
    each = [one.automaton(names, [None] * 30) for one in at_most_once(*names).each()]
    few = reduce(and_, each[:6])
    assert few.n_states == 2**6 + 6 * 2**5
    with pytest.raises(TooLarge, match=f"more than {MOST_STATES} states"):
        reduce(and_, each[6:20], few)


def test_fields_are_texts():
    for make in (lambda: at_most_once(1), lambda: in_order("a", None), lambda: before("a", "b", since=3)):
        with pytest.raises(TypeError, match="takes the texts of labels, or types, got"):
            make()
