"""Files of Rasa: ``nlu.yml``, and its JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from structsvm.files.strict_json import parse_json
from structsvm.structures.intents.utterances import Utterance, meaning_of

# [Boston](city), [Boston](city:BOS) or [Boston]{"entity": "city", "role": "from", "value": "BOS"}.
_SLOT = re.compile(r"\[([^\]]+)\](?:\(([^():]+)(?::([^()]*))?\)|(\{[^{}]*\}))")


def from_yaml(content: bytes, name: str) -> Iterator[Utterance]:
    """Yield the examples of a file of YAML; ImportError without PyYAML."""
    try:
        import yaml
    except ImportError:
        raise ImportError("files of Rasa in YAML need PyYAML: pip install 'structured-svm[nlu]'") from None
    try:
        blocks = yaml.safe_load(content.decode("utf-8"))["nlu"]
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{name}: no YAML: {error!s:.200}") from None
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict) or "intent" not in block:
            continue  # synonyms, lookup tables, regular expressions
        intent, examples = block["intent"], block.get("examples", "")
        lines = examples.splitlines() if isinstance(examples, str) else [str(one.get("text", "")) for one in examples]
        texts = [line.strip().removeprefix("-").strip() for line in lines]
        for number, text in enumerate(filter(None, texts), start=1):
            place = f"{name}, intent {intent!r}, example {number}"
            yield Utterance(place, _SLOT.sub(r"\1", text), meaning_of(intent, _slots_in(text, place)))


def _slots_in(text: str, place: str) -> Iterator[tuple[str, str]]:
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
        text = example["text"]
        entities = sorted(example.get("entities", []), key=lambda own: own.get("start", 0))
        slots = [(_slot(own, place), own.get("value", text[own.get("start", 0) : own.get("end")])) for own in entities]
        yield Utterance(place, text, meaning_of(example["intent"], slots))
