"""Files of intents: told by what is in them, and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structsvm.files.strict_json import parse_json
from structsvm.structures.intents import rasa, snips
from structsvm.structures.intents.utterances import Utterance
from structsvm.structures.meanings import as_meaning

_YAML = re.compile(rb"^nlu\s*:", re.MULTILINE)


def utterances_of(content: bytes, name: str) -> list[Utterance] | None:
    """The sentences of a file of Rasa or Snips; None for any other. ValueError names file, intent and example."""
    if _YAML.search(content):
        return _checked(rasa.from_yaml(content, name), name)
    start = content.lstrip()
    if not start.startswith(b"{") or b'"sentence"' in start.partition(b"\n")[0]:
        return None
    try:
        value = parse_json(content)
    except (ValueError, RecursionError):
        return None  # lines, perhaps
    if "rasa_nlu_data" in value:
        return _checked(rasa.from_json(value["rasa_nlu_data"], name), name)
    intents = value.get("intents", value)
    if isinstance(intents, dict) and any(map(snips.is_intent, intents.values())):
        for intent, own in intents.items():
            if not snips.is_intent(own):
                raise ValueError(f'{name}: {intent!r:.60} is no intent of Snips, a list of objects with "data"')
        return _checked(snips.from_json(intents, name), name)
    return None


def _checked(found: Iterator[Utterance], name: str) -> list[Utterance]:
    """All sentences; ValueError for a meaning that is none, and for what has another form than the file promised."""
    utterances = []
    try:
        for one in found:
            try:
                as_meaning(one.meaning)
            except ValueError as error:
                raise ValueError(f"{one.place}: {error}") from None
            if not one.sentence.split():
                raise ValueError(f"{one.place}: a sentence without words")
            utterances.append(one)
    except (TypeError, AttributeError, KeyError) as error:
        where = utterances[-1].place if utterances else name
        raise ValueError(f"{where}: what follows has not the form of Rasa or Snips: {error!r:.80}") from None
    return utterances
