"""Numbers that sentences write otherwise than meanings: how that is learnt, and that others are read alike."""

import random

import pytest

import structsvm
from structsvm import ModelFileError
from structsvm.oracles.hybrid import Lexicon
from structsvm.oracles.meanings.readings import Form, Reading, form_of, number_in, readings_of
from structsvm.oracles.meanings.spelling import Spelling
from structsvm.structures.meaning_units import MeaningUnits
from structsvm.structures.meanings import parse_meaning
from structsvm.tasks import SemanticParser

PM, AM = Form("", 3, "", "pm"), Form("", 3, "", "am")


def flights(n, seed):
    """Questions with times as words say them, and their meanings with times of 24 hours."""
    rng = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        hour, minute, half = rng.randint(1, 11), rng.choice([0, 15, 30, 45, 5, 10, 20]), rng.choice(["am", "pm"])
        verb, town = rng.choice(["leaving", "arriving"]), rng.choice(["rome", "oslo", "ulm", "bonn"])
        said = f"{hour}{minute:02d}{half}" if minute else f"{hour}{half}"
        X.append(f"flights {verb} at {said} to {town}")
        y.append(f"flight(and({verb[:3]}(time({100 * hour + minute + 1200 * (half == 'pm')})),to({town})))")
    return X, y


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("645pm", (PM, 645)),
        ("645PM", (PM, 645)),
        ("0615", (Form("", 4, "", ""), 615)),
        ("$300", (Form("$", 3, "", ""), 300)),
        ("don't", None),
        ("", None),
        ("1a2", None),
        ("6:45 pm", (Form("", 3, ":", " pm"), 645)),
        ("$1,234.50", (Form("$", 6, ",.", ""), 123450)),
        ("1..5", None),
        ("٣pm", None),
        ("1234567890", None),
    ],
)
def test_forms_of_words(word, wanted):
    assert form_of(word) == wanted


def read(names, sentences, share=1.0):
    """Readings of the names of one kind, of a sentence each, which have a share of its bag."""
    units = MeaningUnits([parse_meaning(f"at(time({name}))") for name in names])
    leaf = {unit.name: u for u, unit in enumerate(units.units)}
    bags = [{leaf[f"time({name})"]: share} for name in names]
    return [*readings_of(units, [sentence.split() for sentence in sentences], bags).values()]


def test_readings_hold_for_most_words_of_a_form_and_several_numbers():
    names, words = [1815, 1320, 2250], ["by 615pm", "by 120pm", "by 1050pm or 5"]
    assert read(names, words) == []  # two of three digits, and one of four
    names, words = [*names, 1905], [*words, "till 705pm"]
    assert read(names, words) == [{PM: Reading(1, 1200)}]
    assert read([*names, *names], [*words, *words]) == [{PM: Reading(1, 1200)}]
    assert read([*names, *[k + 1 for k in names]], [*words, *["by 630pm"] * 4]) == []  # three of seven
    assert read([*names, 90001], [*words, "nothing"]) == [{PM: Reading(1, 1200)}]
    assert read([100, 200, 300], ["for $100", "for $200", "for $300"]) == [{Form("$", 3, "", ""): Reading(1, 0)}]
    assert read([100, 200, 300], ["for 100", "for 200", "for 300"]) == []  # as it is written
    assert read([1500, 1200, 7650], ["1,500", "1,200", "7,650"]) == [{Form("", 4, ",", ""): Reading(1, 0)}]
    assert read([1845, 1320, 2250], ["6:45pm", "1:20pm", "10:50pm or 9:10pm"]) == []
    assert read([5000, 7000, 9000], ["5k", "7k", "9k"]) == [{Form("", 1, "", "k"): Reading(1000, 0)}]
    assert read([*names, "noon"], [*words, "by noon"]) == []  # a kind with other names
    assert read(["007", "008", "009"], ["a7", "a8", "a9"]) == []
    assert read([10**9 + k for k in range(3)], ["a0", "a1", "a2"]) == []


def test_readings_count_by_shares_of_bags():
    names, words = [1815, 1320, 2250, 1905], ["615pm", "120pm", "1050pm", "705pm"]
    assert read([*names[:2], 1845, 1905], [*words[:2], "645pm", "705pm"], 0.5) == [{PM: Reading(1, 1200)}]
    assert read([*names[:2], 1845, 1905], [*words[:2], "645pm", "705pm"], 0.4) == []


def test_looks_are_none_where_later_sentences_say_numbers_otherwise():
    """Whatever few of them look like: 4pm has been 1600, and 900 is 900 from then on."""
    said = [(f"leave at {h}{half}", 100 * h + 1200 * (half == "pm")) for h in range(1, 12) for half in ("pm", "am")]
    X, y = [one for one, _ in said], [f"at(time({number}))" for _, number in said]
    kept = [k for k in range(22) if X[k] not in ("leave at 4pm", "leave at 4am")]
    parser = SemanticParser(random_state=0).fit([X[k] for k in kept], [y[k] for k in kept])
    parser.partial_fit([f"leave at {h}00" for h in range(1, 9)], [f"at(time({h}00))" for h in range(1, 9)])
    assert parser.predict(["leave at 4pm", "leave at 4am"]) == [["at(time(1600))"], ["at(time(400))"]]


def test_names_are_written_as_numbers_are_read():
    names = [1815, 1320, 2250, 1905]
    units = MeaningUnits([parse_meaning(f"at(time({name}))") for name in names])
    kind = max(units.kinds)
    spelling = Spelling(units, kind, {PM: Reading(1, 1200), AM: Reading(1, -700)})
    assert spelling(["615pm"]) == spelling(["615PM?"]) == ("time", "1815")
    assert spelling(["815am"]) == ("time", "115") and spelling(["615am"]) is None  # less than 0
    assert spelling(["615"]) == ("time", "615") and spelling(["6pm"]) is None and spelling(["615pm", "sharp"]) is None
    lexicon = Lexicon(units, {}, [], readings={kind: {PM: Reading(1, 1200)}})
    assert {units.units[u].name for u in lexicon.called(["by", "615pm", "or", "616pm"])} == {"time(1815)"}
    assert number_in("615pm", {}) is None


def test_times_that_training_had_not_are_predicted(tmp_path):
    (X, y), (others, meanings) = flights(60, 0), flights(60, 1)
    parser = SemanticParser(random_state=0).fit(X, y)
    found = parser.predict(others)
    assert sum(one == [meaning] for one, meaning in zip(found, meanings, strict=True)) > 54  # 14 as they are written
    assert not {meaning for (meaning,) in found} <= {*y}
    parser.save(tmp_path / "model")
    loaded = structsvm.load(tmp_path / "model")
    assert loaded.predict(others) == found
    assert loaded.model_.hybrid.lexicon.readings == parser.model_.hybrid.lexicon.readings
    parser.partial_fit(["all flights to rome"], ["flight(to(rome))"])
    own = parser.model_.hybrid.lexicon.readings
    assert own and all(PM in readings and AM in readings for readings in own.values())


@pytest.mark.parametrize(
    ("kind", "form", "reading"),
    [
        (0, PM, (1, 0)),
        (None, ("", 3, "pm"), (1, 0)),
        (None, (3, 3, "", "pm"), (1, 0)),
        (None, PM, (1, 0.5)),
        (None, PM, (7, 0)),
        (None, PM, (1, 10**18)),
        (None, PM, ("1", 0)),
        ("a", PM, (1, 0)),
    ],
    ids=str,
)
def test_readings_in_files_are_checked(tmp_path, kind, form, reading):
    parser = SemanticParser(max_iter=1, random_state=0).fit(*flights(60, 0))
    lexicon = parser.model_.hybrid.lexicon
    lexicon.readings = {next(iter(lexicon.readings)) if kind is None else kind: {form: reading}}
    parser.save(tmp_path / "model")
    with pytest.raises(ModelFileError):
        structsvm.load(tmp_path / "model")
