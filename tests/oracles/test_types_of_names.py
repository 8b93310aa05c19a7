"""Types of names, found where sentences spell names without them; and names that are written with theirs."""

import pytest

from structsvm.oracles.meanings.spelling import Spelling
from structsvm.oracles.meanings.types import SpeltOut, spelt_types, type_spellings
from structsvm.oracles.meanings.words import Folded
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import parse_meaning

CITIES = ("oslo", "rome", "ulm", "bonn")


def found(sentences, constants):
    """The types that sentences, each about one constant, tell, and their counts."""
    trees = [parse_meaning(f"to({constant})") for constant in constants]
    counts = type_spellings(trees, [sentence.split() for sentence in sentences], [[tree] for tree in trees])
    return spelt_types(counts), counts


@pytest.mark.parametrize(
    ("said", "form", "types"),
    [
        ("to {} now", "{}:city", {("", ":city")}),
        ("to {} now", "/en/{}", {("/en/", "")}),
        ("to {} now", "'{}:city'", {("", ":city")}),
        ("to {}:city now", "{}:city", set()),
        ("to {} : city now", "{}:city", set()),  # tokens of their own
        ("to {} city now", "{}:city", set()),
        ("to nowhere", "{}:city", set()),  # never said
        ("to {}", "{}.5", set()),  # no letters in it
        ("to {}", "{}_city", set()),  # words and their joint
        ("to version {}", "v1.{}", {("v1.", "")}),
    ],
)
def test_types_are_what_sentences_leave_out(said, form, types):
    assert found([said.format(city) for city in CITIES], [form.format(city) for city in CITIES])[0] == types


def test_two_thirds_leave_a_type_out():
    constants = [f"{city}:city" for city in CITIES] * 3
    for n_whole, types in [(4, {("", ":city")}), (5, set())]:
        sentences = [constant if k < n_whole else constant[:-5] for k, constant in enumerate(constants)]
        assert found(sentences, constants) == (types, {" :city": (12.0 - n_whole, 12.0)})


def test_two_names_have_no_type():
    for n, types in [(2, set()), (3, {("", ":city")})]:
        assert found([*CITIES[:n]] * 3, [f"{city}:city" for city in CITIES[:n]] * 3)[0] == types


def test_the_longest_name_that_is_said_has_the_type():
    constants = [f"geo.city.{city}" for city in CITIES]
    assert found(CITIES, constants)[0] == {("geo.city.", "")}
    assert found([f"city {city}" for city in CITIES], constants)[0] == {("geo.", "")}


def test_numbers_are_said_otherwise():
    sentences, constants = ["5 pm", "6:30pm", "7 pm", "8"], ["1700:time", "1830:time", "1900:time", "2000:time"]
    assert found(sentences, constants)[0] == {("", ":time")}
    assert found(["late"] * 4, constants)[0] == set()
    assert found(["version 1.2", "version 1.3", "version 1.4"], ["v1.2", "v1.3", "v1.4"])[0] == set()
    assert found(constants, constants)[0] == set()


def test_counts_of_earlier_sentences_are_added():
    constants = [f"{city}:city" for city in CITIES]
    trees = [parse_meaning(f"to({constant})") for constant in constants]
    bags = [[tree] for tree in trees]
    one = type_spellings(trees, [[city] for city in CITIES], bags)
    two = type_spellings(trees, [[constant] for constant in constants], bags, one)
    assert (one, two) == ({" :city": (4.0, 4.0)}, {" :city": (4.0, 8.0)})
    assert spelt_types(one) and not spelt_types(two)


def test_letters_within_words_spell_nothing():
    spelt = SpeltOut(["Maine", "St.", "Paul", "6:45pm"])
    assert [text in spelt for text in ("main", "st._paul", "aul", "PAUL", "645pm", ":")] == [
        False, True, False, True, True, False,
    ]  # fmt: skip


def spelling(names, typed=()):
    units = MeaningUnits([parse_meaning(f"in({name})") for name in names], typed=typed)
    return Spelling(units, max(units.kinds))


TYPE = ("", ":city")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["graz"], "graz:city"),
        (["ulm:city"], "ulm:city"),
        (["Graz:CITY?"], "graz:city"),
        (["new york"], "new_york:city"),
        (["new", "york:city"], "new_york:city"),
        (["graz:station"], "graz:station"),
        (["O'Brien"], None),
        ([" "], None),
        (["graz", ":city"], None),
        (["[graz"], None),
        (["graz[x]"], "graz[x]:city"),
    ],
)
def test_words_have_the_type_once(words, wanted):
    assert spelling([f"{city}:city" for city in CITIES], [TYPE])(words) == wanted


def test_the_mark_of_a_type_may_join_words():
    own = spelling([f"{city}_:ci" for city in CITIES], [("", "_:ci")])
    assert [own(words) for words in (["graz"], ["new", "york"], ["new_york"])] == [
        "graz_:ci", "new_york_:ci", "new_york_:ci",
    ]  # fmt: skip


def test_no_name_ends_with_the_mark_of_its_type():
    own = spelling([f"{name}@corp.com" for name in ("ann", "bob", "eve")], [("", "@corp.com")])
    assert [*map(own, (["kim@"], ["@home.org"], ["kim"], ["kim@home.org"]))] == [
        None, None, "kim@corp.com", "kim@home.org",
    ]  # fmt: skip


def test_a_sign_is_no_joint():
    assert spelling(["-5", "-7", "12"])(["new", "york"]) == "'new york'"


def test_words_with_the_type_are_found_as_they_are_written():
    own = spelling([f"City:{city.title()}" for city in CITIES], [("City:", "")])
    words = [*map(Folded, ("to", "City:Graz?", "Graz", "City:"))]
    assert [*own.typed_in(words, ())] == [(1, 2)] and [*own.typed_in(words, ("Xx",))] == [(1, 2), (1, 3), (1, 4)]
    assert [*spelling([*CITIES]).typed_in(["to", "graz"], ("x",))] == []
    behind = spelling([f"{city}:city" for city in CITIES], [TYPE])
    assert [*behind.typed_in(["New", "York:city", "Here"], ("Xx",))] == [(0, 2), (1, 2)]


def test_quotation_marks_stand_around_name_and_type():
    own = spelling([f"'{city}:city'" for city in ("Oslo", "Rome", "Bad Ems", "Ulm")], [TYPE])
    names = [["new", "york"], ["O'Brien"], ["Graz:city"], ["Graz:station"]]
    assert [*map(own, names)] == ["'New York:city'", "'O'Brien:city'", "'Graz:city'", "'Graz:station'"]
    for name in map(own, names):
        assert parse_meaning(f"f({name})") == ("f", name)


@pytest.mark.parametrize(
    ("names", "words", "wanted"),
    [
        (["#oslo", "#rome", "#ulm"], ["graz"], "#graz"),
        (["#oslo", "#rome", "#ulm"], ["#Graz"], "#graz"),
        (["#oslo", "#rome", "#ulm"], ["bad", "ems"], "#bad_ems"),
        (["#oslo", "rome", "ulm"], ["graz"], "graz"),  # not all
        (["<oslo>", "<rome>", "<ulm>"], ["graz"], "<graz>"),
        (["$5", "$7", "$12"], ["9"], "$9"),
        (["$5", "$7", "$12"], ["$9.50"], "$9.50"),
        (["5%", "7%", "12%"], ["9%"], "9%"),
        (["5", "7", "12"], ["2.5"], "2.5"),
        (["5", "7", "12"], ["nine"], None),
        (["-5", "-7", "-12"], ["-9"], "-9"),
        (["-5", "-7", "-12"], ["9"], None),
        (["'Yahoo!'", "'Jeopardy!'", "'Aha!'"], ["Wham!"], "'Wham!'"),
    ],
)
def test_marks_that_all_names_have_stand_beside_new_ones(names, words, wanted):
    assert spelling(names)(words) == wanted


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (['"Rome"', '"Ulm"', '"Kiel"', "'O''Hare'"], '"O\'Brien"'),
        (['"Rome"', '"Ulm"', '"Kiel"', r"'O\'Hare'"], '"O\'Brien"'),
        (['"Rome"', '"Ulm"', "\"6'' nails\""], '"O\'Brien"'),
        (["'Rome'", "'Ulm'", "'O''Hare'"], "'O''Brien'"),
        (['"Rome"', '"Ulm"', r'"O\'Hare"'], r'"O\'Brien"'),
    ],
)
def test_apostrophes_are_written_as_between_the_same_marks(names, wanted):
    assert spelling(names)(["O'Brien"]) == wanted
