"""Files of Snips: JSON of utterances by intents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from structsvm.structures.intents.utterances import Utterance, checked_slots, meaning_of


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
            pieces, text, ends = one["data"], "", list[tuple[object, object]]()
            for piece in pieces:
                if _is_slot(piece):
                    ends.append((len(text), len(text) + len(piece["text"].rstrip())))
                text += piece["text"]
            checked_slots(place, text, ends)
            slots = [
                (piece.get("slot_name") or piece.get("entity"), piece["text"]) for piece in pieces if _is_slot(piece)
            ]
            yield Utterance(place, text, meaning_of(place, intent, slots))


def _is_slot(piece: dict[str, Any]) -> bool:
    return "entity" in piece or "slot_name" in piece
