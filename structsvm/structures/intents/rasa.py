"""Files of Rasa: ``nlu.yml``, and its JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from structsvm.features.text.encodings import not_utf8
from structsvm.files.strict_json import parse_json
from structsvm.structures.intents.utterances import Utterance, checked_slots, meaning_of

# [Boston](city), [Boston](city:BOS) or [Boston]{"entity": "city", "role": "from", "value": "BOS"}.
_SLOT = re.compile(r"\[([^\]]+)\](?:\(([^():]+)(?::([^()]*))?\)|(\{[^{}]*\}))")
# The rest of a mark that is none: a bracket that closes before one that opens.
_BROKEN = re.compile(r"\]\s*[({]")


def from_yaml(content: bytes, name: str) -> Iterator[Utterance]:
    """Yield the examples of a file of YAML; ImportError without PyYAML."""
    try:
        import yaml
    except ImportError:
        raise ImportError("files of Rasa in YAML need PyYAML: pip install 'structured-svm[nlu]'") from None
    blocks = _loaded(yaml, content, name)["nlu"]
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict) or "intent" not in block:
            continue  # synonyms, lookup tables, regular expressions
        intent, examples = block["intent"], block.get("examples", "")
        for number, text in enumerate(_texts(examples, f"{name}, intent {intent!r}"), start=1):
            place = f"{name}, intent {intent!r}, example {number}"
            yield Utterance(place, _unmarked(text, place), meaning_of(place, intent, _slots_in(text, place)))


def _loaded(yaml: Any, content: bytes, name: str) -> Any:
    """The value of YAML; ValueError, which names the file, also for a key that an object has twice."""

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            for key in keys:
                if isinstance(key, str) and keys.count(key) > 1:
                    raise ValueError(f"the key {key!r:.60} stands twice")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(content.decode("utf-8"), Loader)
    except UnicodeDecodeError:
        raise ValueError(f"{name}: {not_utf8(content)}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"{name}: no YAML: {' '.join(str(error).split()):.200}") from None


def _texts(examples: Any, place: str) -> Iterator[str]:
    """The texts of an intent: lines that begin with a dash, or objects with a text; ValueError for any other line."""
    if not isinstance(examples, str):
        yield from (str(one.get("text", "")).strip().removeprefix("-").strip() for one in examples)
        return
    for line in filter(None, map(str.strip, examples.splitlines())):
        if not line.startswith("-"):
            raise ValueError(f"{place}: an example begins with a dash, and this does not: {line!r:.60}")
        if text := line.removeprefix("-").strip():
            yield text


def _unmarked(text: str, place: str) -> str:
    """An example of Rasa without the marks of its slots; ValueError for a mark that is none."""
    rest = _SLOT.sub("", text)
    if _BROKEN.search(rest) or rest.count("[") != rest.count("]"):
        raise ValueError(f"{place}: a slot is [words](entity) or [words]{{...}}, and one here is not: {text!r:.80}")
    return _SLOT.sub(r"\1", text)


def _slots_in(text: str, place: str) -> Iterator[tuple[str, object]]:
    """The slots that are marked in an example of Rasa, and their values."""
    for words, entity, value, about in _SLOT.findall(text):
        if not about:
            yield entity, value or words
            continue
        try:
            own = parse_json(about.encode())
        except ValueError as error:
            raise ValueError(f"{place}: {about!r:.80} is no JSON: {error}") from None
        yield _slot(own, place), own.get("value", words)


def _slot(own: dict[str, Any], place: str) -> str:
    if "entity" not in own:
        raise ValueError(f'{place}: {own!r:.80} has no "entity"')
    return ".".join(str(own[key]) for key in ("entity", "role") if own.get(key))


def from_json(data: Any, name: str) -> Iterator[Utterance]:
    """Yield the examples of the object ``"rasa_nlu_data"``."""
    examples = data.get("common_examples") if isinstance(data, dict) else None
    if not isinstance(examples, list):
        raise ValueError(f'{name}: "rasa_nlu_data" has no list of "common_examples"')
    for number, example in enumerate(examples, start=1):
        place = f"{name}, example {number}"
        if not isinstance(example, dict) or not isinstance(example.get("text"), str) or "intent" not in example:
            raise ValueError(f'{place}: expected an object with "text" and "intent", got {example!r:.80}')
        text, entities = example["text"], example.get("entities") or []
        if not isinstance(entities, list) or not all(isinstance(own, dict) for own in entities):
            raise ValueError(f'{place}: "entities" must be a list of objects, got {entities!r:.80}')
        marked = [own for own in entities if "start" in own or "end" in own]
        marked.sort(key=lambda own: own["start"] if type(own.get("start")) is int else -1)
        checked_slots(place, text, [(own.get("start"), own.get("end")) for own in marked])
        others = [own for own in entities if own not in marked]
        slots = [(_slot(own, place), _value(own, text)) for own in [*marked, *others]]
        yield Utterance(place, text, meaning_of(place, example["intent"], slots))


def _value(own: dict[str, Any], text: str) -> Any:
    """The value of an entity: the one that is given, else its words."""
    value = own.get("value")
    return text[own.get("start", 0) : own.get("end")] if value is None else value
