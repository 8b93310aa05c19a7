"""JSON lines of sentences with their bags of meaning representations.

A line is an object ``{"sentence": "purple 9 passes out", "bag": ["pass(purple9,purple2)", "kick(purple9)"]}``; the
sentence may also be a list of words, and the bag a single meaning. For evaluation, ``"alignment"`` may contain the
symbol of each word. Lines without a bag can be predicted on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from json import JSONDecodeError
from typing import Any, BinaryIO, NamedTuple

from structsvm.features.inputs.places import PlacedList
from structsvm.features.sources import load_bytes, load_text, numbered_lines
from structsvm.features.text.encodings import not_utf8
from structsvm.files.new_file import new_file
from structsvm.files.strict_json import parse_json
from structsvm.structures.intents.files import utterances_of
from structsvm.structures.meanings import as_meaning

__all__ = ["read_bags", "write_bags"]


class BagLines(NamedTuple):
    """The contents of a file, line by line; None where a line has no such entry.

    `places` are the names of the lines in messages: "train.jsonl, line 3".
    """

    sentences: list[str | list[str]]
    bags: list[list[str] | None]
    alignments: list[list[str] | None]
    places: list[str]


def read_bags(source: str | os.PathLike[str] | BinaryIO | Iterable[str], *, bags: bool = True) -> BagLines:
    """Read JSON lines, or a file of intents and slots of Rasa (YAML or JSON) or Snips (see
    `structsvm.structures.intents.utterances`); compressed files are read as they are.

    Parameters
    ----------
    source : path, file or iterable of lines
    bags : bool, default=True
        Whether every line must have a bag.

    Returns
    -------
    BagLines

    Raises
    ------
    ValueError
        For a line that is not such an object, has an empty bag, an invalid meaning, or half of a surrogate pair; names
        file and line.

    Examples
    --------
    >>> from structsvm.structures.bag_lines import read_bags
    >>> lines = read_bags(['{"sentence": "anna sleeps", "bag": ["sleep(anna)"]}'])
    >>> lines.sentences, lines.bags
    (['anna sleeps'], [['sleep(anna)']])
    """
    if isinstance(source, dict):
        raise TypeError("source must be a path, a file or lines, got a dict: [json.dumps(value)] is the line of one")
    content, name, _ = load_bytes(source)
    utterances = utterances_of(content, name)
    if utterances is not None:
        if not utterances:
            raise ValueError(f"{name}: contains no sentences")
        places, sentences, meanings = map(list, zip(*utterances, strict=True))
        return BagLines(
            PlacedList(sentences, places), [[meaning] for meaning in meanings], [None] * len(places), places
        )
    found = BagLines(PlacedList([], []), [], [], [])
    for place, line in _objects(content, name):
        try:
            value = parse_json(line) if isinstance(line, bytes) else line
            if rb"\u" in content:
                json.dumps(value, ensure_ascii=False).encode()
            sentence, bag, alignment = _parts(value, bags)
        except RecursionError:
            raise ValueError(f"{place}: nested too deeply") from None
        except UnicodeDecodeError:
            raise ValueError(f"{place}: {not_utf8(content)}") from None
        except UnicodeEncodeError as error:
            raise ValueError(f"{place}: {error.object[error.start]!r} is half a character") from None
        except JSONDecodeError as error:
            raise ValueError(f'{place}: no object of JSON, {{"sentence": ..., "bag": [...]}}: {error}') from None
        except (ValueError, TypeError) as error:
            raise ValueError(f"{place}: {error}") from None
        found.sentences.append(sentence)
        found.bags.append(bag)
        found.alignments.append(alignment)
        found.places.append(place)
    if not found.sentences:
        raise ValueError(f"{name}: contains no sentences")
    return found._replace(sentences=PlacedList(found.sentences, found.places))


def _objects(content: bytes, name: str) -> Iterator[tuple[str, Any]]:
    """The lines with their places; or the objects of a file that is a list of them, or one over several lines."""
    lines = [(f"{name}, line {k}", line) for k, line in enumerate(content.splitlines(), start=1) if line.strip()]
    first = lines[0][1].strip() if lines else b""
    if first.startswith(b"[") or first == b"{":
        try:
            value = parse_json(content)
        except (ValueError, RecursionError):
            value = None  # as lines, whose errors name theirs
        if value is not None:
            objects = value if isinstance(value, list) else [value]
            lines = [(f"{name}, object {k}", one) for k, one in enumerate(objects, start=1)]
    yield from lines


def read_lexicon(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read lines of a phrase, a tab and the name that it says; ValueError, naming file and line, for any other."""
    content, name = load_text(path, ValueError, "{}, line {}")
    found: dict[str, str] = {}
    for number, line in numbered_lines(content.replace("\r\n", "\n").replace("\r", "\n")):
        phrase, *names = [part.strip() for part in line.split("\t")]
        try:
            if not phrase or len(names) != 1 or not names[0]:
                raise ValueError(f"not a phrase, a tab and a name: {line!r:.80}")
            if found.setdefault(phrase, names[0]) != names[0]:
                raise ValueError(f"{phrase!r:.80} has another name above")
            as_meaning(names[0])
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    return found


def _parts(value: Any, needs_bag: bool) -> tuple[str | list[str], list[str] | None, list[str] | None]:
    if not isinstance(value, dict) or "sentence" not in value:
        raise ValueError('not an object with a "sentence"')
    sentence, bag, alignment = value["sentence"], value.get("bag"), value.get("alignment")
    words = sentence.split() if isinstance(sentence, str) else sentence
    if not _is_text_list(words) or not words or not all(map(str.strip, words)):
        raise ValueError('"sentence" must be text, or a list of words')
    bag = [bag] if isinstance(bag, str) else bag
    if bag is None and needs_bag:
        raise ValueError('no "bag" of meaning representations')
    if bag is not None:
        if not _is_text_list(bag) or not bag:
            raise ValueError('"bag" must be a list of meaning representations, one at least')
        for meaning in bag:
            as_meaning(meaning)
    if alignment is not None and (not _is_text_list(alignment) or len(alignment) != len(words)):
        raise ValueError(f'"alignment" must be a list of {len(words)} symbols, one per word')
    return sentence, bag, alignment


def _is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def write_bags(
    path: str | os.PathLike[str],
    sentences: Sequence[str | Sequence[str]],
    bags: Sequence[str | Sequence[str] | None],
    alignments: Sequence[Sequence[str] | None] | None = None,
) -> None:
    r"""Write sentences, bags and, if given, alignments as JSON lines.

    Raises
    ------
    ValueError
        If their lengths differ.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.structures.bag_lines import write_bags
    >>> path = Path(tempfile.mkdtemp()) / "bags.jsonl"
    >>> write_bags(path, ["anna sleeps"], [["sleep(anna)"]])
    >>> path.read_text()
    '{"sentence": "anna sleeps", "bag": ["sleep(anna)"]}\n'
    """
    columns = {"sentence": sentences, "bag": bags} | ({} if alignments is None else {"alignment": alignments})
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError(f"lengths differ: {', '.join(f'{len(c)} of {name}' for name, c in columns.items())}")
    with new_file(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(
            json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n"
            for row in zip(*columns.values(), strict=True)
        )
