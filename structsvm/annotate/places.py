"""Where the texts of stored answers are, in a file that changes between openings.

A record says by number where a text was when it was answered. An opening that finds the texts changed says once, in a
record of its own, which of the answered texts moved where. Later openings read this, so answers that are given after a
move never change what the move was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

from structsvm.annotate.store import Record

Key = tuple[int, str]


class Places:
    """Places of answered texts: where they were, or where the same text stands.

    Of several texts that are the same, each answered one has a place of its own; those for which none is left are gone
    until the file has room again. An answered text is identified by the number of the record of its first answer.

    Parameters
    ----------
    digests : sequence of str
        Digests of the texts as they are now.

    Attributes
    ----------
    state : str
        A hash of all the texts as they are now.
    """

    def __init__(self, digests: Sequence[str]) -> None:
        self._digests = digests
        self.state = hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
        self._settled: object = None
        self._text_of: dict[int, int] = {}
        self._last: dict[int, Key] = {}
        self._here: dict[Key, int] = {}
        self._gone: set[int] = set()
        # Records of answers that were not taken back, by annotator.
        self._standing: dict[str, list[int]] = {}

    def add(self, number: int, record: Record) -> None:
        """Read the next record of the store. Raises ValueError for moves that are none."""
        by, was, digest = str(record.get("by")), record.get("item"), record.get("digest")
        if "texts" in record:
            self._settle(record["texts"], self._checked(record.get("moved", [])))
        elif "undo" in record:
            if self._standing.get(by):
                self._standing[by].pop()
        elif type(was) is int and isinstance(digest, str):
            text = self._text_of[number] = self._here.setdefault((was, digest), number)
            self._last[text] = (was, digest)
            self._standing.setdefault(by, []).append(number)

    def of(self, number: int) -> int | None:
        """The place of the text that a record answers; None if it is gone."""
        text = self._text_of[number]
        return None if text in self._gone or not self._is_at(*self._last[text]) else self._last[text][0]

    def unsettled(self) -> dict[str, object] | None:
        """The record of the moves since the last opening; None if the texts are the same as then."""
        if self._settled == self.state:
            return None
        found: dict[int, int | None] = {}
        taken: set[int] = set()
        free = self._free(taken)
        texts = self._answered()
        # Texts that were here go before those that were gone, and those that stand where they were before the others.
        for group in (texts - self._gone, texts & self._gone):
            moved = []
            for text in sorted(group, key=self._last.__getitem__):
                place, digest = self._last[text]
                if self._is_at(place, digest) and place not in taken:
                    taken.add(place)
                    found[text] = place
                else:
                    moved.append(text)
            found |= {text: self._moved(text, free, taken) for text in moved}
        changed = [[text, place] for text, place in sorted(found.items()) if place != self._place(text)]
        return {"texts": self.state, "moved": changed}

    def _moved(self, text: int, free: Mapping[str, Iterator[int]], taken: set[int]) -> int | None:
        """Take a free place for a text; None if there is none."""
        place = next(free.get(self._last[text][1], iter(())), None)
        if place is not None:
            taken.add(place)
        return place

    def _free(self, taken: set[int]) -> dict[str, Iterator[int]]:
        """By digest, places that are not taken when they are asked for.

        Answers of a program without records of moves took the first text that is the same, taken or not.
        """
        alike: dict[str, list[int]] = {}
        for k, digest in enumerate(self._digests):
            alike.setdefault(digest, []).append(k)
        if self._settled is None:
            return {digest: repeat(places[0]) for digest, places in alike.items()}
        return {digest: (k for k in places if k not in taken) for digest, places in alike.items()}

    def _settle(self, state: object, moved: Mapping[int, int | None]) -> None:
        self._settled = state
        for text, place in moved.items():
            if place is None:
                self._gone.add(text)
            else:
                self._gone.discard(text)
                self._last[text] = (place, self._last[text][1])
        self._here = {}
        for text in sorted(self._answered() - self._gone):
            self._here.setdefault(self._last[text], text)
        # Two texts at one place are one from here on.
        for number in self._numbers():
            if self._text_of[number] not in self._gone:
                self._text_of[number] = self._here[self._last[self._text_of[number]]]

    def _checked(self, moved: object) -> dict[int, int | None]:
        found: dict[int, int | None] = {}
        for pair in moved if isinstance(moved, list) else [None]:
            if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int and pair[0] in self._last):
                raise ValueError("no record of texts that moved")
            if pair[1] is not None and type(pair[1]) is not int:
                raise ValueError("no record of texts that moved")
            found[pair[0]] = pair[1]
        return found

    def _numbers(self) -> list[int]:
        return [number for own in self._standing.values() for number in own]

    def _answered(self) -> set[int]:
        return {self._text_of[number] for number in self._numbers()}

    def _place(self, text: int) -> int | None:
        return None if text in self._gone else self._last[text][0]

    def _is_at(self, k: int, digest: str) -> bool:
        return 0 <= k < len(self._digests) and self._digests[k] == digest
