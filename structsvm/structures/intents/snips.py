"""Files of Snips: JSON of utterances by intents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from structsvm.structures.intents.utterances import Utterance, meaning_of


def is_intent(intent: Any) -> bool:
    """Whether a value is the utterances of an intent: a list, or an object of one, of objects with "data"."""
    some = intent.get("utterances") if isinstance(intent, dict) else intent
    return isinstance(some, list) and all(isinstance(one, dict) and isinstance(one.get("data"), list) for one in some)


def from_json(intents: dict[str, Any], name: str) -> Iterator[Utterance]:
    """Yield the utterances of all intents."""
    for intent, value in intents.items():
        some = value["utterances"] if isinstance(value, dict) else value
        for number, one in enumerate(some, start=1):
            place = f"{name}, intent {intent!r}, utterance {number}"
            if not all(isinstance(piece, dict) and isinstance(piece.get("text"), str) for piece in one["data"]):
                raise ValueError(f'{place}: pieces must be objects with a "text", got {one["data"]!r:.80}')
            slots = [
                (piece.get("slot_name") or piece["entity"], piece["text"]) for piece in one["data"] if "entity" in piece
            ]
            yield Utterance(place, "".join(piece["text"] for piece in one["data"]), meaning_of(intent, slots))
