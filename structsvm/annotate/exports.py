"""Answers as files: CoNLL, JSON lines, CoNLL-U; and the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import zip_longest
from typing import NamedTuple

from structsvm.annotate.answers import UNIVERSAL_TAGS, Answer, tags_of
from structsvm.annotate.inputs import Item
from structsvm.annotate.session import Session, settled
from structsvm.features.columns import read_columns

# Columns of CoNLL-U: the id, the word, its lemma, the tags, features, head, relation, more, and anything else.
N_COLUMNS, UPOS, MISC = 10, 3, 9
# The last one has a bar between its values.
BAR = "|"


class Export(NamedTuple):
    """A file for download: its contents, the end of its name, its type, and what it leaves out."""

    data: bytes
    ending: str
    media_type: str
    left_out: str = ""


def exported(session: Session, kind: str) -> Export:
    """The answers of a session as a file.

    Raises
    ------
    ValueError
        For another kind, or one that does not fit the task.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no export {kind!r:.40}: {', '.join(KINDS)}")
    if kind in ("conll", "conllu") and session.task != "sequence":
        raise ValueError(f"{kind} has words with labels, and the task is {session.task}: export JSON lines")
    return KINDS[kind](session)


def _model(session: Session) -> Export:
    return Export(session.model_file(), ".model", "application/octet-stream")


def _json_lines(session: Session) -> Export:
    """A text per line with each annotator's answer; spans in characters, as other programs have them."""
    with session.lock:
        answers = session.answers()
    lines = []
    for k, own in answers.items():
        item = session.inputs.items[k]
        line: dict[str, object] = {"text": item.text}
        if item.other is not None:
            line["other"] = item.other
        if item.given is not None:
            line["words"] = list(item.given)
        line |= _content(item, settled(list(own.values())))
        if len(own) > 1:
            line["by"] = {name: _content(item, answer) for name, answer in own.items()}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return Export("".join(lines).encode(), ".jsonl", "application/x-ndjson")


def _content(item: Item, answer: Answer) -> dict[str, object]:
    if answer.label is not None:
        return {"label": answer.label}
    if answer.wrong_labels:
        return {"wrong": list(answer.wrong_labels)}
    found: dict[str, object] = {"spans": _in_characters(item, answer.spans), "complete": answer.complete}
    return found | ({"wrong": _in_characters(item, answer.wrong_spans)} if answer.wrong_spans else {})


def _in_characters(item: Item, spans: Sequence[tuple[int, int, str]]) -> list[dict[str, object]]:
    places = item.spans
    return [{"start": places[start][0], "end": places[stop - 1][1], "label": label} for start, stop, label in spans]


def _conll(session: Session) -> Export:
    export = _words_file(session, _conll_lines, ".conll")
    if export.data:
        _check_words(export.data)
    return export


def _check_words(data: bytes) -> None:
    """Raise ValueError for a word that `read_columns` leaves out, changes or splits, and name it."""
    blocks = data.decode().removesuffix("\n\n").split("\n\n")
    none: list[tuple[str, ...]] = []
    wanted = [[tuple(line.split("\t")) for line in block.split("\n")] for block in blocks]
    try:
        found = list(read_columns(BytesIO(data)))
    except ValueError as error:
        raise ValueError(f"the words do not make a column file, {error}: export JSON lines") from None
    for rows, own in zip_longest(wanted, found, fillvalue=none):
        for row, other in zip_longest(rows, own):
            if row != other:
                word, *tag = row or other
                raise ValueError(
                    f"the word {word!r:.100} with {', '.join(tag)!r:.100} is read again from a column file as another: "
                    f"export JSON lines"
                )


def _conllu(session: Session) -> Export:
    return _words_file(session, _conllu_lines, ".conllu")


def _words_file(session: Session, lines: Callable[[Item, Sequence[str]], Iterator[str]], ending: str) -> Export:
    """Texts with complete answers, by a function of words and tags."""
    with session.lock:
        answers = session.settled()
    whole = [(item, tags_of(answer, len(item.spans))) for item, answer in answers if answer.is_whole]
    text = "".join(f"{line}\n" for item, tags in whole for line in (*lines(item, [str(tag) for tag in tags]), ""))
    n_left = len(answers) - len(whole)
    left_out = f"{n_left} partial answers are left out: JSON lines have them" if n_left else ""
    return Export(text.encode(), ending, "text/plain; charset=utf-8", left_out)


def _conll_lines(item: Item, tags: Sequence[str]) -> Iterator[str]:
    yield from (f"{_cell(word)}\t{tag}" for word, tag in zip(item.words, tags, strict=True))


def _cell(text: str, others: str = "") -> str:
    """A word or label as a cell of a line. Raises ValueError for what would end the cell or the line."""
    if not set(text).isdisjoint("\t\n\r" + others):
        raise ValueError(f"{text!r:.100} has a tab, the end of a line{others and f' or {others}'}: export JSON lines")
    return text


def _conllu_lines(item: Item, tags: Sequence[str]) -> Iterator[str]:
    """Universal tags of parts of speech in their column; other labels as ``Label=B-X`` in the last one."""
    places = item.spans
    yield f"# text = {' '.join(item.text.split())}"
    labels = [tag.partition("-")[2] for tag in tags]
    are_tags = all(tag.startswith("B-") and label in UNIVERSAL_TAGS for tag, label in zip(tags, labels, strict=True))
    for k, word in enumerate(item.words):
        row = ["_"] * N_COLUMNS
        row[0], row[1] = str(k + 1), _cell(word)
        more = [] if are_tags else [f"Label={_cell(tags[k], BAR)}"]
        if are_tags:
            row[UPOS] = labels[k]
        if k + 1 < len(places) and places[k + 1][0] == places[k][1]:
            more.append("SpaceAfter=No")
        row[MISC] = "|".join(more) or "_"
        yield "\t".join(row)


KINDS: dict[str, Callable[[Session], Export]] = {
    "jsonl": _json_lines,
    "conll": _conll,
    "conllu": _conllu,
    "model": _model,
}
