"""Units found in meanings; of many of them, what would be quadratic is refused."""

import numpy as np
import pytest

from structsvm.oracles.meanings.spelling import Spelling
from structsvm.structures import meaning_units
from structsvm.structures.meaning_units import MeaningUnits, Unit, fixed_terms, selectors, similar_slots, type_splits
from structsvm.structures.meanings import MeaningGrammar, Symbol, parse_meaning


def test_slots_of_one_unit_are_like_no_other():
    assert similar_slots({0: frozenset([1]), 1: frozenset([1]), 2: frozenset([1, 2]), 3: frozenset([1, 2, 3])}) == {
        0: [], 1: [], 2: [2, 3], 3: [2, 3],
    }  # fmt: skip


def test_pairs_of_slots_are_counted_before_they_are_compared():
    """A million relations of one constant each are linear work; two each are too many pairs."""
    n = 8000
    units = MeaningUnits([parse_meaning(f"r{k}(a)") for k in range(n)])
    assert len(units.slots) == n
    with pytest.raises(ValueError, match="more than 50000000 pairs of slots that take the same unit"):
        MeaningUnits([parse_meaning(f"r{k}({name})") for k in range(n) for name in ("a", f"b{k}")])


def test_ways_to_fill_slots_are_counted_before_they_are_held(monkeypatch):
    trees = [parse_meaning(f"r{k}({name}{k % m})") for k in range(30) for name, m in (("a", 30), ("b", 2), ("c", 2))]
    units = MeaningUnits(trees)
    held = sum(map(len, units.fillers.values()))
    assert held > len(units.pairs)
    monkeypatch.setattr(meaning_units, "MOST_FILLINGS", held)
    assert MeaningUnits(trees).fillers == units.fillers
    monkeypatch.setattr(meaning_units, "MOST_FILLINGS", held - 1)
    with pytest.raises(ValueError, match=r"more than .* ways to fill them"):
        MeaningUnits(trees)


def test_members_of_kinds_ascend():
    units = MeaningUnits([parse_meaning(f"r({name})") for name in ("texas", "ohio", "maine", "3")])
    for kind, members in units.members.items():
        assert members == [u for u, own in enumerate(units.kinds) if own == kind]


def test_kinds_of_a_new_name_are_known_at_once(monkeypatch):
    """A lexicon of many phrases is not one walk through all kinds of names for each."""
    n = 300
    units = MeaningUnits([parse_meaning(f"r{k}({name}{k})") for k in range(n) for name in ("a", "b")[: 1 + k % 2]])
    asked = 0

    def tree(self, plain=Unit.tree.fget):
        nonlocal asked
        asked += 1
        return plain(self)

    monkeypatch.setattr(Unit, "tree", property(tree))
    found = [units.kinds_like(f"new{k}") for k in range(n)]
    assert found[0] == sorted(units.members) and all(kinds == found[0] for kinds in found)
    assert asked <= len(units.members) + 1
    assert units.kinds_like(("none", "x")) == [] and units.kinds_like(("r0", "x", "y")) == []


@pytest.mark.parametrize(
    ("words", "wanted"),
    [(["guam"], "guam"), (["x__", "1"], "'x__ 1'"), (["_"], None), (["a,b"], None), (["a(b"], None), (["12"], None)],
)
def test_how_a_name_is_written(words, wanted):
    units = MeaningUnits([parse_meaning(f"r({name})") for name in ("texas", "ohio", "maine")])
    (kind,) = units.members
    assert Spelling(units, kind)(words) == wanted
    assert Spelling(units, kind)(["a" * 200_000 + "("]) is None  # in no quadratic time


def test_categories_of_names_are_counted_before_they_are_held(monkeypatch):
    trees = [parse_meaning(f"top(p{k}({name}))") for k in range(9) for name in ("a", f"b{k}", f"c{k}")]
    lines = [f"A{k} -> @A{k - 1}" for k in range(1, 21)] + ["A0 -> a"]
    grammar, asked, categories = MeaningGrammar("\n".join(lines)), [], MeaningGrammar.categories

    def counted(self, tree):
        asked.append(tree)
        return categories(self, tree)

    monkeypatch.setattr(MeaningGrammar, "categories", counted)
    assert len(MeaningUnits(trees, grammar).names) == 9
    assert sorted(asked) == sorted({*asked}) and len(asked) == 19
    monkeypatch.setattr(meaning_units, "MOST_FILLINGS", 9 * 21 - 1)
    with pytest.raises(ValueError, match="the names are in more than 188 categories of the grammar"):
        MeaningUnits(trees, grammar)


KEYS = {"cuisine": ("greek", "thai", "french"), "shop": ("books", "bikes", "wine"), "sport": ("golf", "chess", "judo")}
# Languages of meanings: a term of a key and a value, the units that it is made of, and the arguments that select.
TERMS = [
    ("find0(tag('{key}','{value}'))", {"find0", "tag('cuisine','greek')"}, {Symbol("tag", 2): {0}}),
    ("find0(tag({value},{key}))", {"find0", "tag", "greek"}, {Symbol("tag", 2): {1}}),
    ("find0(has(X,{key},{value}))", {"find0", "has(X,cuisine,greek)"}, {Symbol("has", 3): {0, 1}}),
    ("find0(tag(key('{key}'),value('{value}')))", {"find0", "tag", "value('greek')"}, {Symbol("tag", 2): {0}}),
    ("find0({value},not(eq({key},{value})))", {"find0", "greek", "not", "eq(cuisine,greek)"}, {Symbol("eq", 2): {0}}),
]


@pytest.mark.parametrize(("pattern", "names", "selecting"), TERMS, ids=range(len(TERMS)))
def test_arguments_that_select_belong_to_their_relation(pattern, names, selecting):
    pairs = [(key, value) for key, values in KEYS.items() for value in values] * 8
    texts = [pattern.format(key=key, value=value) for key, value in pairs]
    trees = [parse_meaning(text.replace("find0", f"find{k // 9}")) for k, text in enumerate(texts)]
    units = MeaningUnits(trees)
    assert units.selectors == selecting
    for tree in trees:
        unit, parts = units.split(tree)
        assert units.join(units.number[unit], parts) == tree
    tree = trees[0]
    assert {units.units[u].name for u in units.unit_ids(tree)} == names
    if "tag" in names:  # a relation per key, with a slot that takes its values
        (unit,) = [u for u in units.unit_ids(tree) if units.units[u].name == "tag"]
        taken = {units.units[u].name for u in units.fillers[units.first_slot[unit]]}
        assert units.units[unit].n_slots == 1 and len(taken) == 3 and not any("books" in name for name in taken)


@pytest.mark.parametrize("n", [20, 100, 400])
def test_arguments_that_select_nothing_stay_slots(n):
    rng = np.random.default_rng(n)
    trees = [parse_meaning(f"get(p{rng.integers(6)},t{rng.integers(9)},f{rng.integers(5)})") for _ in range(n)]
    assert selectors(trees) == {}
    assert selectors([("same", "a", "b")] * n) == selectors(["bare"]) == selectors([("none",)]) == {}
    assert selectors([parse_meaning(f"in(X,c{k})") for k in range(n)]) == {Symbol("in", 2): {0}}
    assert selectors([parse_meaning(f"in(X,c{k})") for k in range(19)]) == {}


def test_names_and_values_of_keys():
    """Values that come again have kinds of their own, names that keep coming are of one."""
    trees = [parse_meaning(f"{a}(tag('{key}','{v}'))") for a in "abcdef" for key in KEYS for v in KEYS[key]]
    trees += [parse_meaning(f"a(tag('name','N{k}'))") for k in range(60)]
    units = MeaningUnits(trees)
    assert [len(members) for members in units.members.values()] == [60]
    (slot,) = [units.first_slot[u] for u, unit in enumerate(units.units) if unit.name == "a"]
    assert len(units.fillers[slot]) == 69
    assert units.kinds_like(parse_meaning("tag('name','Upper Mill')")) == [*units.members]
    found = units.described()
    assert found.keys() >= {"a(_1)", "tag('cuisine','greek')", "tag('name',_)"} and len(found) == 6 + 9 + 1
    assert found["tag('name',_)"][:2] == ["'N0'", "'N1'"] and found["a(_1)"] == []
    assert [*MeaningUnits([parse_meaning("f(a,g(b,b),a)")]).described()][:2] == ["f(_1,_2,_1)", "g(_1,_1)"]


@pytest.mark.parametrize(
    ("names", "words", "wanted"),
    [
        (("'Paris'", "'Old Town'", "'Bo'"), ["Upper", "Mill?"], "'Upper Mill'"),
        (("'Paris'", "'St.'", "'Bo'"), ["St."], "'St.'"),
        (("'Paris'", "'Old Town'", "'Bo'"), ["upper", "mill"], "'Upper Mill'"),
        (("'Paris'", "'of Town'", "'Bo'"), ["upper", "mill"], "'upper mill'"),
        (("'Paris'", "'Rome'", "'Bo'"), ["Rue", "de", "l'Orme?"], "'Rue de l'Orme'"),
        (("'Paris'", "'Rome'", "'Bo'"), ["Bo's", "(Inn)"], None),
        (("paris", "rome", "oslo"), ["O'Bo"], None),  # a constant without quotes
        (("paris", "rome", "oslo"), ["Bo's"], "bo"),
        (("paris", "rome", "oslo"), ["Upper"], "upper"),
        (("san_diego", "rome", "oslo"), ["Upper", "Mill"], "upper_mill"),
        # One name that is written unlike the others decides nothing.
        (("'Old Town'", "'New Inn'", "'place_of_rest'"), ["Upper", "Mill"], "'Upper Mill'"),
        (("'Old Town'", *[f"'Inn {n}'" for n in range(20)], "'a'"), ["upper", "mill"], "'Upper Mill'"),
        (("'Mill on Sea'", "'Paris'", "'Bo'"), ["ham", "on", "wye"], "'Ham on Wye'"),
        (("'Mill on Sea'", "'Ash on Wye'", "'Bo'"), ["on", "sea"], "'On Sea'"),
        (("'Jr.'", "'Rome'", "'Bo'"), ["Oslo?"], "'Oslo'"),
        # A mark that is a word of its own.
        (("'Bo-Po'", "'Paris'", "'Bo'"), ["Upper", "-", "Mill"], "'Upper-Mill'"),
        (("'Bo - Po'", "'Paris'", "'Bo'"), ["Upper", "-", "Mill"], "'Upper - Mill'"),
        (("'St. Bo'", "'Paris'", "'Bo'"), ["Dr", ".", "Mill"], "'Dr. Mill'"),
        (("'Bo Po'", "'Paris'", "'Bo'"), ["Upper", "-", "Mill"], None),
        (("'Bo-Po'", "'Paris'", "'Bo'"), ["Upper", "-"], None),
    ],
)
def test_case_and_marks_of_names(names, words, wanted):
    units = MeaningUnits([parse_meaning(f"r({name})") for name in names])
    (kind,) = units.members
    assert Spelling(units, kind)(words) == wanted
    assert wanted is None or parse_meaning(f"f({wanted},{wanted})") == ("f", wanted, wanted)


@pytest.mark.parametrize("n", [1, 2])
def test_what_selects_pays_for_its_values(n):
    """Nine terms of three keys are too few to tell, twice nine are enough."""
    trees = [
        parse_meaning(f"find{k}(tag({key},{v}))") for key, of_key in KEYS.items() for v in of_key for k in range(n)
    ]
    assert selectors(trees) == ({} if n == 1 else {Symbol("tag", 2): {0}})


# Questions of an application language: its functions stand as constants, and their arguments are terms.
ALL = {kind: f"call(get,call(one,{kind}),string(all,type))" for kind in ("recipe", "meal")}
APPLIED = [
    parse_meaning(f"call(list,call(filter,{of_kind},string({key}),{name}))")
    for of_kind in ALL.values()
    for key in ("cuisine", "author")
    for name in ("milk", "rice", "'Rye'", "7", "name(ann)", "name(joe)", "name(kim)")
]


def test_terms_whose_parts_stand_together_are_fixed():
    assert fixed_terms(APPLIED) == {
        *ALL.values(), "call(one,recipe)", "call(one,meal)", "string(all,type)", "string(cuisine)", "string(author)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("part", "fixed"),
    [("k", True), ("-k", True), *[(part, False) for part in ("'k'", '"k"', "7", "-1.5", ".5", "+7", "٣")]],
)
def test_terms_with_what_may_be_a_name_are_not_fixed(part, fixed):
    trees = [parse_meaning(f"ask(in({part},x),a{k})") for k in range(9)]
    assert fixed_terms(trees) == ({f"in({part},x)"} if fixed else set())


@pytest.mark.parametrize(("n_together", "n_apart", "fixed"), [(5, 0, True), (4, 0, False), (9, 1, True), (8, 1, False)])
def test_terms_are_fixed_by_what_their_parts_are_in(n_together, n_apart, fixed):
    trees = [parse_meaning(f"ask(in(k,x),a{n})") for n in range(n_together)]
    trees += [parse_meaning(f"ask(on(k,b{n}),on(x,b{n}))") for n in range(n_apart)]
    assert fixed_terms(trees) == ({"in(k,x)"} if fixed else set())
    assert fixed_terms(trees[:1] * 9) == set()  # one meaning
    assert fixed_terms([parse_meaning(f"ask({','.join(['in(k,x)'] * 9)})")]) == set()


def test_terms_are_no_constants_of_other_relations():
    """A relation of a name and a term has slots for both."""
    acts = ("go(to,home)", "read(of,books)", "eat(some,bread)", "play(at,chess)")
    trees = [parse_meaning(f"do(n{k},{act})") for k in range(30) for act in acts]
    units = MeaningUnits(trees, terms=fixed_terms(trees))
    assert units.fixed == sorted(acts) and Symbol("do", 2) not in units.selectors
    assert units.splits(trees[0])[0][1] == ["n0", parse_meaning(acts[0])]


def test_relations_met_in_terms_alone_get_more_terms():
    trees = [parse_meaning(f"do(n{k},{act})") for k in range(9) for act in ("go(to,home)", "read(of,books)")]
    before = MeaningUnits(trees, terms=fixed_terms(trees))
    new = [parse_meaning(f"do(n0,{act})") for act in ("go(to,away)", "go(to,'Ash')", "go(to,7)", "eat(some,bread)")]
    assert fixed_terms(trees + new[1:], before) == {*before.fixed}
    assert fixed_terms(trees + new[:1], before) == {*before.fixed, "go(to,away)"}
    # A relation with slots of its own keeps them.
    trees.append(parse_meaning("do(n0,go(to,'Ash'))"))
    before = MeaningUnits(trees, terms=fixed_terms(trees))
    assert fixed_terms(trees + new, before) == {*before.fixed} == {"go(to,home)", "read(of,books)"}


def test_a_fixed_term_is_a_leaf_of_its_own_kind():
    units = MeaningUnits(APPLIED, terms=fixed_terms(APPLIED))
    assert units.fixed == sorted(fixed_terms(APPLIED))
    term = parse_meaning(ALL["meal"])
    leaf = units.number[Unit(ALL["meal"], None)]
    assert units.split(term) == (Unit(ALL["meal"], None), []) and units.join(leaf, []) == term
    for text in units.fixed:
        if (number := units.number.get(Unit(text, None))) is not None:
            assert units.kinds[number] == number
    for tree in APPLIED:
        unit, parts = units.split(tree)
        assert units.join(units.number[unit], parts) == tree and -1 not in units.unit_ids(tree)


def test_a_relation_of_constants_that_is_no_leaf_has_the_units_of_its_relation():
    names = [f"n{k}" for k in range(10)]
    trees = [parse_meaning(f"call(size,{of}({name}))") for name in names for of in ("set", "g")]
    units = MeaningUnits(trees)
    (number,) = units.alike["call", 2]
    assert units.units[number].places == ("size", 0)
    assert units.split(("call", "size", "n1")) == (Unit("call(size,n1)", None), [])
    assert units.splits(("call", "size", "n1")) == [(number, ["n1"])]
    assert units.splits(("call", "other", "n1")) == units.splits(("none", "n1")) == units.splits("none") == []


CITIES, AIRLINES = ("oslo", "rome", "new_york", "ulm", "bonn"), ("aa", "dl", "klm", "ua", "lh")


def typed(behind=True):
    """Meanings whose constants are typed, and variables, which are not."""
    names = [("ci", city) for city in CITIES] + [("al", airline) for airline in AIRLINES]
    constants = [f"{name}:_{kind}" if behind else f"fb:{kind}.{name}" for kind, name in names]
    return [("lambda", "$0", ("of", "$0", constant)) for constant in constants]


@pytest.mark.parametrize("behind", [True, False])
def test_names_of_one_type_are_of_one_kind(behind):
    types = {("", ":_ci"), ("", ":_al")} if behind else {("fb:ci.", ""), ("fb:al.", "")}
    units = MeaningUnits(typed(behind), typed=types)
    kinds = [[units.parted(units.units[u].tree)[1] for u in members] for members in units.members.values()]
    assert sorted(kinds) == sorted([["$0"], [*CITIES], [*AIRLINES]])
    (cities,) = {units.kinds[u] for u, unit in enumerate(units.units) if "oslo" in unit.name}
    new = "bad_ems:_ci" if behind else "fb:ci.bad_ems"
    assert units.kinds_like(new) == [cities] and units.kinds_like("bad_ems") == units.kinds_like("$1") != [cities]
    assert Spelling(units, cities)(["bad", "ems"]) == new
    assert units.words(units.number[Unit(new.replace("bad_ems", "new_york"), None)]) == ["new", "york"]


@pytest.mark.parametrize(
    ("constant", "wanted"),
    [
        ("boston:_ci", [("", "boston", ":_ci"), ("boston:_", "ci", "")]),
        (
            "fb:en.rome",
            [("fb:", "en.rome", ""), ("", "fb:en", ".rome"), ("fb:en.", "rome", ""), ("", "fb", ":en.rome")],
        ),
        ("/en/rome", [("/en/", "rome", ""), ("/", "en", "/rome")]),
        ("'bad ems:city'", [("", "'bad ems'", ":city")]),
        ("<http://x.y/rome>", None),
        ("3.5", []),  # no letters in a type
        ("rome_city", []),  # words and their joint
        ("rome-city", []),
        ("$0", []),
        ("'Frankfurt (Main)'", []),
        ("a.b.c.d.e.f.g.h.i.j", []),  # a text
    ],
)
def test_ways_to_part_a_constant_into_a_type_and_a_name(constant, wanted):
    found = type_splits(constant)
    if wanted is None:
        assert ("<http://x.y/", "rome", ">") in found
    else:
        assert sorted(found) == sorted(wanted)
    assert [len(name) for _, name, _ in found] == sorted((len(name) for _, name, _ in found), reverse=True)


@pytest.mark.parametrize(
    ("names", "quoted", "with_apostrophe"),
    [
        (['"Upper Mill"', '"Rome"', '"Ulm"'], '"Bad Ems"', '"O\'Brien"'),
        (["'Upper Mill'", "'Rome'", "'Ulm'"], "'Bad Ems'", "'O'Brien'"),
        (["'Upper Mill'", r"'O\'Hare'", "'Ulm'"], "'Bad Ems'", r"'O\'Brien'"),
        (["'Upper Mill'", "'O''Hare'", "'Ulm'"], "'Bad Ems'", "'O''Brien'"),
        (['"Upper Mill"', "Rome", "Ulm"], '"Bad Ems"', None),  # quoted for the blank
    ],
)
def test_names_are_quoted_as_in_training(names, quoted, with_apostrophe):
    units = MeaningUnits([parse_meaning(f"in({name})") for name in names])
    spelling = Spelling(units, max(units.kinds))
    assert (spelling(["Bad", "Ems"]), spelling(["O'Brien"])) == (quoted, with_apostrophe)
    if with_apostrophe is not None:
        assert parse_meaning(f"f({quoted},{with_apostrophe})") == ("f", quoted, with_apostrophe)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["new-york", "rome", "ulm"], "bad-ems"),
        (["new_york", "rome", "ulm"], "bad_ems"),
        (["rome", "ulm", "kiel"], "'bad ems'"),
        (["'stoke-on-trent'", "'rome'", "'ulm'"], "'bad ems'"),
        (["new_york", "los_angeles", "wilkes-barre"], "bad_ems"),
    ],
)
def test_words_of_names_are_joined_as_in_training(names, wanted):
    units = MeaningUnits([parse_meaning(f"in({name})") for name in names])
    assert Spelling(units, max(units.kinds))(["bad", "ems"]) == wanted


def test_names_in_capitals_alone_are_copied_so():
    units = MeaningUnits([parse_meaning(f"top({name})") for name in ("HAM", "FETA_CHEESE", "D10", "OLIVES")])
    spelling = Spelling(units, max(units.kinds))
    assert spelling(["red", "Onions"]) == "RED_ONIONS" and spelling(["d5"]) == "D5"
    units = MeaningUnits([parse_meaning(f"top({name})") for name in ("Ham", "KLM", "Rome")])
    assert Spelling(units, max(units.kinds))(["onions"]) == "Onions"
