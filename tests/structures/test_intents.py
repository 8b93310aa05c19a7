"""Files of intents and slots, of Rasa and of Snips, as sentences with meanings."""

import json

import pytest

from structsvm.structures.bag_lines import read_bags

YAML = """version: "3.1"
nlu:
- intent: fly
  examples: |
    - fly to [Boston](city)
    - from [New York]{"entity": "city", "role": "from", "value": "NYC"} to [Zürich](city:ZRH)
    - to [St. John's](city)
- intent: faq/greet
  examples: |
    - hello  there
- synonym: NYC
  examples: |
    - big apple
"""
RASA = {
    "rasa_nlu_data": {
        "common_examples": [
            {"text": "fly to Boston", "intent": "fly", "entities": [{"start": 7, "end": 13, "entity": "city"}]},
            {
                "text": "from New York to Zürich",
                "intent": "fly",
                "entities": [
                    {"start": 17, "end": 23, "value": "ZRH", "entity": "city"},
                    {"start": 5, "end": 13, "value": "NYC", "entity": "city", "role": "from"},
                ],
            },
            {"text": "to St. John's", "intent": "fly", "entities": [{"start": 3, "end": 13, "entity": "city"}]},
            {"text": "hello there", "intent": "faq/greet"},
        ]
    }
}
MEANINGS = [["fly(city(Boston))"], ["fly(city.from(NYC),city(ZRH))"], ['fly(city("St. John\'s"))'], ["faq/greet()"]]


@pytest.mark.parametrize(("name", "text"), [("nlu.yml", YAML), ("nlu.json", json.dumps(RASA, indent=1))])
def test_rasa(name, text, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_bags(tmp_path / name)
    assert [sentence.split() for sentence in found.sentences] == [
        ["fly", "to", "Boston"],
        ["from", "New", "York", "to", "Zürich"],
        ["to", "St.", "John's"],
        ["hello", "there"],
    ]
    assert found.bags == MEANINGS and found.alignments == [None] * 4
    assert found.places[1].endswith("nlu.yml, intent 'fly', example 2" if name == "nlu.yml" else ", example 2")


@pytest.mark.parametrize("is_benchmark", [True, False])
def test_snips(is_benchmark, tmp_path):
    weather = [{"data": [{"text": "weather in "}, {"text": "New York", "entity": "place", "slot_name": "city"}]}]
    hello = [{"data": [{"text": "hello"}]}]
    intents = {"GetWeather": weather, "Hello": hello}
    if not is_benchmark:
        intents = {"language": "en", "intents": {name: {"utterances": some} for name, some in intents.items()}}
    (tmp_path / "s.json").write_text(json.dumps(intents))
    found = read_bags(tmp_path / "s.json")
    assert found.sentences == ["weather in New York", "hello"]
    assert found.bags == [["GetWeather(city('New York'))"], ["Hello()"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nlu:\n- intent: a\n  examples: |\n    - '[x]{3}'\n", "intent 'a', example 1: .*"),
        ("nlu: [", "no YAML"),
        ('nlu:\n- intent: a\n  examples: |\n    - [x]{"role": "b"}\n', 'has no "entity"'),
        ("nlu:\n- intent: a b\n  examples: |\n    - x\n", "intent 'a b', example 1: the intent 'a b' has a blank"),
        ("nlu: []\n", "contains no sentences"),
        (json.dumps({"rasa_nlu_data": {}}), 'no list of "common_examples"'),
        (
            json.dumps({"rasa_nlu_data": {"common_examples": [{"text": "x"}]}}),
            'example 1: expected an object with "text"',
        ),
        (json.dumps({"a": [{"data": [{}]}]}), "intent 'a', utterance 1: pieces must be objects"),
        (json.dumps({"a": [{"data": [{"text": " "}]}]}), "intent 'a', utterance 1: a sentence without words"),
        (json.dumps({"a": 3}), 'line 1: not an object with a "sentence"'),
    ],
)
def test_what_is_none(text, message, tmp_path):
    (tmp_path / "f").write_text(text)
    with pytest.raises(ValueError, match=f"f(, |: ).*{message}|f, {message}"):
        read_bags(tmp_path / "f")
