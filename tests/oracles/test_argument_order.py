"""The order in which arguments of lists are written."""

import itertools

import pytest

from structsvm.oracles.hybrid import Lexicon
from structsvm.oracles.meanings.order import ListOrder, following
from structsvm.structures.meaning_units import MeaningUnits, lists
from structsvm.structures.meanings import MeaningGrammar, parse_meaning


def trees_of(*texts):
    return [*map(parse_meaning, texts)]


def test_lists_are_relations_about_whose_order_meanings_disagree():
    some = trees_of("and(f(a),g(b))", "and(g(b),f(a))", "and(f(a),g(b),h())")
    assert lists(some) == {"and"}
    assert lists(some[:2]) == set()  # two arguments always
    assert lists([some[0], some[2]]) == set()  # the same order always
    assert lists([*some, *trees_of("and(a,f(b))")]) == set()  # a constant
    assert lists(trees_of("or(f(a),f(b))", "or(f(a),f(b),f(c))")) == {"or"}
    many = trees_of(*[f"and(f(a{k}),g(b))" for k in range(99)], "and(f(a),g(b),h())")
    assert lists([*many, *some[1:2]]) == set()  # one of a hundred
    assert lists([*many[:40], *some]) == {"and"}


def test_all_slots_of_a_list_take_the_same():
    units = MeaningUnits(trees_of("and(f(a),g(b))", "and(g(b),f(a))", "and(f(a),g(b),h())", "no(f(a),h())"))
    taken = [
        {units.units[u].name for u in units.fillers[slot]}
        for u, unit in enumerate(units.units)
        for slot in units.slots_of(u)
        if unit.name == "and"
    ]
    assert taken == [{"f(a)", "g(b)", "h"}] * 5
    of_no = next(u for u, unit in enumerate(units.units) if unit.name == "no")
    assert not units.is_list(of_no)
    assert [{units.units[u].name for u in units.fillers[s]} for s in units.slots_of(of_no)] == [{"f(a)"}, {"h"}]


def test_all_slots_of_a_list_take_the_same_with_a_grammar():
    """Also where the grammar fills slots by their places: else a sum over free orders lacks some derivations."""
    grammar = MeaningGrammar(
        "S -> and ( @A , @B )\nS -> and ( @A , @B , @B )\nS -> h ( @A )\nS -> h ( @B )\n"
        "A -> f ( @X )\nA -> p ( @X )\nB -> g ( @X )\nB -> f ( @X )\nB -> q ( @X )\nX -> a\nX -> b"
    )
    units = MeaningUnits(trees_of("and(f(a),g(b))", "and(f(b),g(a),f(a))", "h(p(a))", "h(q(a))"), grammar=grammar)
    taken = [
        {*units.fillers[slot]} for u, unit in enumerate(units.units) if unit.name == "and" for slot in units.slots_of(u)
    ]
    assert len(taken) == 5 and all(own == taken[0] for own in taken)


@pytest.mark.parametrize("order", [*itertools.permutations(["f(x)", "g(y)", "h(z)"])])
def test_arguments_are_written_as_in_training(order):
    trained = ListOrder(trees_of(*["and(f(a),g(b),h(c))"] * 3, "and(g(b),f(a))"), {"and"}, {})
    text = f"k(and({','.join(order)}),no({order[0]},{order[1]}))"
    assert trained.sorted(parse_meaning(text)) == parse_meaning(f"k(and(f(x),g(y),h(z)),no({order[0]},{order[1]}))")


def test_words_say_the_order_where_relations_do_not():
    undecided = trees_of(*["and(f(a),g(b))", "and(g(b),f(a))"] * 5, *["and(f(a),h(c))"] * 5)
    order = ListOrder(undecided, {"and"}, {"and": [20, 5]})
    for text in ("and(g(x),f(y))", "and(f(x),g(y))", "and(f(x),f(w))"):
        assert order.sorted(parse_meaning(text)) == parse_meaning(text)
    assert order.sorted(parse_meaning("and(h(x),f(y))")) == parse_meaning("and(f(y),h(x))")
    surer = ListOrder(undecided, {"and"}, {"and": [2000, 5]})
    assert surer.sorted(parse_meaning("and(h(x),f(y))")) == parse_meaning("and(h(x),f(y))")


def test_what_joins_several_of_a_kind_stands_where_they_do():
    trees = trees_of(*["and(f(a),g(b))"] * 5, "and(g(b),f(a))", "and(f(a),g(b),h())", *["and(or(h(),h()),f(a))"] * 3)
    order = ListOrder(trees, {"and"}, {})
    joined = parse_meaning("and(f(z),or(g(x),g(y)))")
    assert order.sorted((joined[0], *joined[:0:-1])) == joined
    twice = parse_meaning("and(or(f(w),f(z)),or(g(x),g(y)))")
    assert order.sorted((twice[0], *twice[:0:-1])) == twice
    shown = parse_meaning("and(or(h(),h()),f(z))")  # although h alone stands behind f
    assert order.sorted(shown) == shown
    assert order.sorted((shown[0], *shown[:0:-1])) == shown
    for text in ("and(or(g(x),h()),f(z))", "and(near(g(x),g(y),f(z)),f(z))"):  # several kinds: nothing is known
        assert ListOrder(trees[:6], {"and"}, {}).sorted(parse_meaning(text)) == parse_meaning(text)


def test_names_in_sentences_say_how_often_arguments_follow_them():
    trees = trees_of("and(f(rome),g(oslo))", "and(g(rome),f(oslo))", "and(f(oslo),g(rome),h())", "no(f(rome),g(oslo))")
    lexicon = Lexicon(MeaningUnits(trees), {}, [])
    words = ["from", "rome", "to", "oslo"]
    assert following(lexicon, [words] * 4, [[tree] for tree in trees], {"and"}) == {"and": [2, 1]}
    assert following(lexicon, [["nothing"]], [trees], {"and"}) == {}
