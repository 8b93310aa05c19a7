"""Meaning representations: text and trees, grammars against what they generate."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structsvm.structures import meanings
from structsvm.structures.meanings import (
    MAX_DEPTH,
    MeaningGrammar,
    Symbol,
    as_meaning,
    format_list,
    format_meaning,
    parse_meaning,
    symbol_of,
)

NAMES = st.sampled_from(["a", "b_1", "größe", "漢字", "_", "'south carolina'", "7", "x.y"])
PLAIN = NAMES.filter(lambda name: name[0] != "'")
TREES = st.recursive(
    NAMES, lambda part: st.tuples(PLAIN, st.lists(part, max_size=3)).map(lambda t: (t[0], *t[1])), max_leaves=12
)


@given(TREES, st.integers(0, 3))
def test_text_and_back(tree, blanks):
    text = format_meaning(tree)
    assert parse_meaning(text) == tree
    assert as_meaning(tree) == tree
    gap = " " * blanks
    spaced = text.replace("(", gap + "(" + gap).replace(",", gap + "," + gap).replace(")", gap + ")" + gap)
    assert parse_meaning(gap + spaced + gap) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("f(a", "the end, with 1 brackets open: they are unbalanced, at character 4"),
        ("f(a))", "outside of all brackets: they are unbalanced, at character 5"),
        (")", "unbalanced, at character 1"),
        ("a,b", "',' outside of all brackets"),
        ("f(,a)", "an argument that is missing, at character 3"),
        ("f(a,)", "an argument that is missing, at character 5"),
        ("f(a,,b)", "an argument that is missing"),
        ("( )", "an opening bracket without the name"),
        ("f(a)(b)", "an opening bracket without the name"),
        ("f a", "a name where a comma or a bracket should stand"),
        ("f(a) g", "a name where a comma"),
        ("'x'(a)", "an opening bracket without the name"),
        ("f('x)", "a quote that is not closed, at character 3"),
        ("f(" * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
        ("(f a", "the end, with 1 brackets open: they are unbalanced, at character 5"),
        ("()", "an opening bracket without the name"),
        ("(f ())", "an opening bracket without the name of a relation, at character 5"),
        ("(f a) b", "something after the last bracket of the list that the text begins with, at character 7"),
        ("(f a))", "something after the last bracket of the list that the text begins with, at character 6"),
        ("(f(a))", "'(' where a list, as in '(f a (g b))', has blanks, at character 3"),
        ("(f a, b)", "',' where a list, as in '(f a (g b))', has blanks, at character 5"),
        ("(f o'clock)", '"\'" where a list'),
        ("(f don't can't)", "\"'\" where a list, as in '(f a (g b))', has blanks, at character 7"),
        (r'(f "a \"b\" c")', "where a list, as in '(f a (g b))', has blanks, at character 14"),
        ("(f 'a'b)", "where a list, as in '(f a (g b))', has blanks, at character 4"),
        ("(f 'a'b 'c')", "where a list, as in '(f a (g b))', has blanks, at character 4"),
        ("(f 'a''b')", "where a list, as in '(f a (g b))', has blanks, at character 4"),
        ("(f'a')", "where a list, as in '(f a (g b))', has blanks, at character 3"),
        ("((f a) b)", "a list that begins with a list, not with the name of a relation, at character 2"),
        ("('f' a)", "a list that begins with a quotation, not with the name of a relation, at character 2"),
        ("(f " * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
    ],
)
def test_text_that_is_no_meaning(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_meaning(text)


@given(TREES, st.integers(0, 3))
def test_lists_and_back(tree, blanks):
    text = format_list(tree)
    gap = " " * blanks
    assert parse_meaning(gap + text.replace("(", gap + "(" + gap).replace(")", gap + ")" + gap)) == tree
    assert as_meaning(text) == tree
    assert text.count("(") == format_meaning(tree).count("(") and "," not in text


QUOTED = st.tuples(st.sampled_from("'\""), st.text("ab'\" ()", max_size=8)).map(lambda t: t[0] + t[1] + t[0])


def quotes_within_words(name):
    quote, inner = name[0], name[1:-1]
    neighbours = [(name[k], name[k + 2]) for k, mark in enumerate(inner) if mark == quote]
    return all(before not in f" {quote}" and after not in f" (){quote}" for before, after in neighbours)


@given(st.lists(QUOTED, min_size=1, max_size=3))
@example(['"a"\'"'])
@example(["'('a'"])
def test_lists_of_quotations_are_read_as_they_were_or_refused(names):
    try:
        tree = parse_meaning(f"f({','.join(names)})")
    except ValueError:
        return
    if all(quotes_within_words(part) for part in tree[1:]):
        assert parse_meaning(format_list(tree)) == tree
    else:
        with pytest.raises(ValueError, match="cannot stand in a list"):
            format_list(tree)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ballstopped()", "(ballstopped)"),
        ("f('McDonald's')", "(f 'McDonald's')"),
        ("f('a'b','c'd',g())", "(f 'a'b' 'c'd' (g))"),
        ("f('don't','')", "(f 'don't' '')"),
    ],
)
def test_lists_hold_quotes_within_words(text, found):
    assert format_list(parse_meaning(text)) == found
    assert parse_meaning(found) == parse_meaning(text)


@pytest.mark.parametrize("name", ["'the Smiths' inn'", "'a 'b c'", "'" * 3, "a b"])
def test_what_lists_cannot_hold_is_refused(name):
    with pytest.raises(ValueError, match="cannot stand in a list"):
        format_list(("f", name))


def test_lists_as_others_write_them():
    text = "( lambda $0 e ( and ( flight $0 ) ( from $0 'new  york' ) ( > ( stops $0 ) 1 ) ( today ) ) )"
    found = "lambda($0,e,and(flight($0),from($0,'new york'),>(stops($0),1),today()))"
    assert format_meaning(parse_meaning(text)) == found
    assert (
        format_list(parse_meaning(found))
        == "(lambda $0 e (and (flight $0) (from $0 'new york') (> (stops $0) 1) (today)))"
    )


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("f('McDonald's')", ("f", "'McDonald's'")),
        ("f( 'o'brien's' , 'x' )", ("f", "'o'brien's'", "'x'")),
        ('f("a "b" c",g(\'\'))', ("f", '"a "b" c"', ("g", "''"))),
    ],
)
def test_quotes_inside_of_quotes(text, tree):
    assert parse_meaning(text) == tree == as_meaning(tree) == parse_meaning(format_meaning(tree))


def test_trees_that_are_no_meaning():
    for wrong in (3, None, ["f", "a"]):
        with pytest.raises(TypeError, match="text or nested tuples"):
            as_meaning(wrong)
    for wrong in ((), (("f",), "a"), (3, "a")):
        with pytest.raises(TypeError, match="a tuple of a name and its arguments"):
            as_meaning(wrong)
    with pytest.raises(TypeError, match="an argument is a str or a tuple, got 3"):
        as_meaning(("f", 3))
    deep = "a"
    for _ in range(MAX_DEPTH + 1):
        deep = ("f", deep)
    with pytest.raises(ValueError, match="deeper than"):
        as_meaning(deep)


GAME = """# a comment
S -> 'pass' '(' Player ',' Player ')'
S -> 'stopped' '(' ')'
S -> Act
Act -> 'says' '(' Player ',' S ')'
Player -> 'pink1'
Player -> 'pink2'
"""
FUNQL = """# counts may stand before
2\tQuery -> answer ( @Num )
1\tNum -> count ( @City )
1\tNum -> @Size
3\tSize -> size ( largest_one ( population ( @City ) ) )
3\tCity -> cityid ( @CityName , _ )
3\tCity -> city ( all )
1\tCityName -> ' new york '
"""


def trees_of(grammar, category, depth):
    """All trees of a category up to a depth, by expanding the productions."""
    if depth == 0:
        return set()
    found = set()
    for productions in grammar.by_symbol.values():
        for left, pattern in productions:
            if left == category:
                found |= set(fill(grammar, pattern, depth))
    for inner, outers in grammar.units.items():
        if category in outers:
            found |= trees_of(grammar, inner, depth - 1)
    return found


def fill(grammar, pattern, depth):
    if type(pattern) is not str and isinstance(pattern, str):
        return trees_of(grammar, str(pattern), depth - 1)
    if isinstance(pattern, str):
        return {pattern}
    found = {(pattern[0],)}
    for part in pattern[1:]:
        found = {(*tree, more) for tree in found for more in fill(grammar, part, depth)}
    return found


@pytest.mark.parametrize(("text", "start", "n"), [(GAME, "S", 19), (FUNQL, "Query", 4)])
def test_a_grammar_accepts_what_it_generates(text, start, n):
    grammar = MeaningGrammar(text)
    assert grammar.start == start
    generated = trees_of(grammar, start, 5)
    assert len(generated) == n
    for tree in generated:
        assert grammar.accepts(tree)
        for k in range(1, len(tree)):  # an argument more, one less, another name
            assert not grammar.accepts((*tree, tree[k]))
            assert not grammar.accepts(tree[:k] + tree[k + 1 :])
        assert not grammar.accepts(("other", *tree[1:]))
        check_heads(grammar, tree)
    assert not grammar.accepts("pink1")


def check_heads(grammar, tree):
    if isinstance(tree, tuple):
        for k, part in enumerate(tree[1:]):
            assert grammar.allows(symbol_of(tree), k, symbol_of(part))
            check_heads(grammar, part)


def test_what_may_stand_where():
    grammar = MeaningGrammar(GAME)
    says, passing = Symbol("says", 2), Symbol("pass", 2)
    assert grammar.allows(says, 0, Symbol("pink1", None)) and not grammar.allows(says, 0, passing)
    assert grammar.allows(says, 1, passing) and grammar.allows(says, 1, says)
    assert not grammar.allows(passing, 0, says) and not grammar.allows(Symbol("says", 3), 0, says)
    assert grammar.categories(parse_meaning("says(pink1,stopped())")) == {"Act", "S"}
    assert grammar.categories("nobody") == set()


@given(
    lines=st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 2**30)), min_size=1, max_size=8),
    seeds=st.lists(st.integers(0, 2**30), min_size=1, max_size=5),
)
def test_categories_are_those_of_the_productions_that_fit(lines, seeds):
    def term(number, depth, names):
        number, k = divmod(number, len(names) + 3 * (depth > 0))
        if k < len(names):
            return names[k]
        parts = [term(number // 7**j, depth - 1, names) for j in range(k - len(names))]
        return f"f({','.join(parts)})"

    def fits(tree, pattern):
        if isinstance(pattern, meanings.Nonterminal):
            return str(pattern) in categories(tree)
        if isinstance(pattern, str) or isinstance(tree, str):
            return pattern == tree
        return len(tree) == len(pattern) and all(map(fits, tree, pattern))

    def categories(tree):
        fitting = {left for left, pattern in rules if type(pattern) is not meanings.Nonterminal and fits(tree, pattern)}
        for _ in range(2):
            fitting |= {left for left, pattern in rules if type(pattern) is meanings.Nonterminal and pattern in fitting}
        return fitting

    texts = [(left, term(number, 2, ["a", "b", "@A", "@B"])) for left, number in lines]
    rules = [(left, parse_meaning(text, lambda word: word[0] == "@")) for left, text in texts]
    grammar = MeaningGrammar("\n".join([*(f"{left} -> {text}" for left, text in texts), "Z -> @A"]))
    for number in seeds:
        tree = parse_meaning(term(number, 2, ["a", "b"]))
        assert grammar.categories(tree) - {"Z"} == categories(tree)


@pytest.mark.parametrize("pattern", ["f ( c{} )", "f ( @N , c{} )", "f ( @M{} )", "f ( g ( c{} ) )"])
def test_productions_of_one_relation_are_not_looked_through(pattern, monkeypatch):
    calls = []
    monkeypatch.setattr(meanings, "symbol_of", lambda tree: (calls.append(tree), symbol_of(tree))[1])
    tree, counts = parse_meaning("f(c1,c1)" if "," in pattern else "f(c1)"), []
    for n in (3, 300):
        grammar = MeaningGrammar(
            "\n".join(["S -> f ( @N )", "N -> c1", *(f"S -> {pattern.format(k)}" for k in range(n))])
        )
        calls.clear()
        assert grammar.accepts(tree)
        counts.append(len(calls))
    assert counts[0] == counts[1] <= 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g: holds no productions"),
        ("# S -> 'a'", "g: holds no productions"),
        ("S -> 'a'\nnonsense", "g, line 2: 'nonsense' is no production"),
        ("S ->", "g, line 1: 'S ->' is no production"),
        ("S -> 'f' '(' 'a'", "g, line 1: the end, with 1 brackets open"),
        ("S -> f ( @A", "g, line 1: the end, with 1 brackets open"),
    ],
)
def test_grammars_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        MeaningGrammar(text, "g")


def test_grammars_that_would_be_quadratic_are_refused(monkeypatch):
    """Each symbol in each category above it, and in each argument that takes it, is counted before it is held."""
    n = 100
    chain = [f"A{k} -> @A{k + 1}" for k in range(n)] + [f"A{k} -> c{k} ( x )" for k in range(n)]
    arguments = [f"S -> r{k} ( @A )" for k in range(n)] + [f"A -> c{k} ( x )" for k in range(n)]
    for lines, n_held in ((chain, n * (n + 1) // 2 + n), (arguments, 3 * n + n * n)):
        monkeypatch.setattr(meanings, "MOST_HEADS", n_held)
        MeaningGrammar("\n".join(lines))
        monkeypatch.setattr(meanings, "MOST_HEADS", n_held - 1)
        with pytest.raises(ValueError, match=f"forged: symbols may stand in more than {n_held - 1} places"):
            MeaningGrammar("\n".join(lines), "forged")
