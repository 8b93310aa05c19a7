"""Files of meanings that were once read without a word: slots that got lost, names that are none, half of a file."""

import io
import json

import pytest

from structsvm.structures.bag_lines import read_bags, read_lexicon
from structsvm.tasks import SemanticParser

LINE = {"sentence": "purple9 passes out", "bag": ["pass(purple9,purple2)"]}
YAML = """nlu:
- intent: fly
  examples: |
    - to [Boston](city)
    - from [New York]{"entity": "city", "role": "from"}
"""


def read(value):
    return read_bags(io.StringIO(value if isinstance(value, str) else json.dumps(value)))


def rasa(text="fly to Boston", intent="fly", **entity):
    return {"rasa_nlu_data": {"common_examples": [{"text": text, "intent": intent, "entities": [entity]}]}}


def snips(*data):
    return {"fly": [{"data": list(data)}]}


@pytest.mark.parametrize(
    "text",
    [json.dumps([LINE, LINE]), json.dumps([LINE, LINE], indent=1), f"{json.dumps(LINE)}\n\r\n{json.dumps(LINE)}\n"],
    ids=["list", "indented list", "lines"],
)
def test_objects_in_a_list_and_in_lines(text):
    assert read(text).sentences == [LINE["sentence"]] * 2


def test_one_object_over_several_lines():
    found = read(json.dumps(LINE, indent=1))
    assert found.sentences == [LINE["sentence"]] and found.places == ["<lines>, object 1"]


def test_a_file_of_intents_is_read_as_before():
    pytest.importorskip("yaml")
    assert read(YAML).bags == [["fly(city(Boston))"], ["fly(city.from('New York'))"]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- to", "* to", r"intent 'fly': an example begins with a dash, and this does not: '\* to"),
        ("- to", "to", "an example begins with a dash"),
        ("[Boston](city)", "[Boston(city)", "example 1: a slot is .* and one here is not"),
        ("[Boston](city)", "[Boston](city", "and one here is not"),
        ("[Boston](city)", "[Boston] (city)", "and one here is not"),
        ("[Boston](city)", "[[Boston]](city)", "and one here is not"),
        ("[Boston](city)", "[Boston]()", "and one here is not"),
        ("(city)", "(city,x)", "example 1: the slot 'city,x' has a blank, a comma"),
        ("(city)", "(city x)", "the slot 'city x' has a blank"),
        ("[Boston]", '[O\'Hare "x"]', "has both kinds of quotes"),
        ("intent: fly", "intent: no", "the intent must be text, got False: YAML reads no"),
        ("intent: fly", "intent: 3", "the intent must be text, got 3"),
        ("intent: fly", "intent:", "the intent must be text, got None"),
        ("nlu:\n", "nlu:\n- intent: x\nnlu:\n", "no YAML: the key 'nlu' stands twice"),
    ],
)
def test_examples_of_rasa_that_are_none(old, new, message):
    pytest.importorskip("yaml")
    with pytest.raises(ValueError, match=message):
        read(YAML.replace(old, new, 1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (rasa(start=99, end=105, entity="city"), "example 1: a slot at 99 to 105 of a text of 13 characters"),
        (rasa(start=7, end=3, entity="city"), "a slot at 7 to 3"),
        (rasa(start="7", end=13, entity="city"), "a slot at '7' to 13"),
        (rasa(start=7, entity="city"), "a slot at 7 to None"),
        (rasa(start=5, end=13, entity="city", value="Boston"), "within a word, 'o Boston'"),
        (rasa(start=7, end=13, entity="city", value=["a"]), r"must be text or a number, got \['a'\]"),
        (rasa(intent=None, entity="city", value="a"), "the intent must be text, got None"),
        (
            snips({"text": "to"}, {"text": "Boston", "entity": "city"}),
            "utterance 1: the slot at 2 to 8 .* within a word",
        ),
        (snips({"text": "x", "entity": None}), "the slot must be text, got None"),
        (snips({"text": "x"}) | {"version": 3}, "'version' is no intent of Snips"),
        ("## intent:fly\n- to [Boston](city)\n", r"line 1: no object of JSON, \{\"sentence\""),
        ({"sentence": ["a", ""], "bag": "p"}, '"sentence" must be text, or a list of words'),
    ],
)
def test_what_is_no_slot_or_sentence(value, message):
    with pytest.raises(ValueError, match=message):
        read(value)


def test_overlapping_slots():
    value = rasa(start=7, end=13, entity="city")
    value["rasa_nlu_data"]["common_examples"][0]["entities"].append({"start": 7, "end": 13, "entity": "town"})
    with pytest.raises(ValueError, match="the slot at 7 to 13, 'Boston', overlaps the one before"):
        read(value)


def test_slots_without_a_value_or_an_entity():
    assert read(rasa(start=7, end=13, entity="city", value=None)).bags == [["fly(city(Boston))"]]
    assert read(snips({"text": "to "}, {"text": "Boston", "slot_name": "to"})).bags == [["fly(to(Boston))"]]
    value = rasa()
    value["rasa_nlu_data"]["common_examples"][0]["entities"] = None
    assert read(value).bags == [["fly()"]]


def test_an_object_in_place_of_a_file():
    with pytest.raises(TypeError, match="got a dict"):
        read_bags(LINE)


def test_phrases_end_at_the_end_of_lines_alone(tmp_path):
    (tmp_path / "phrases").write_text("big\u2028apple\tny\r\nwindy\x0bcity\tchicago\n", encoding="utf-8", newline="")
    assert read_lexicon(tmp_path / "phrases") == {"big\u2028apple": "ny", "windy\x0bcity": "chicago"}


def test_errors_of_training_name_the_line():
    found = read(f"{json.dumps(LINE)}\n\n{json.dumps(LINE)}\n")
    found.bags[1] = ["p(q"]
    with pytest.raises(ValueError, match=r"^<lines>, line 3: sentence 1: "):
        SemanticParser().fit(found.sentences, found.bags)
